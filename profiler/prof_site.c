/*
 * Call sites, for the whole process.
 *
 * One mutex guards the table of interned sites and the id counter. Interned sites are never freed:
 * slots in rings point to them, and the program may keep pointers as long as it runs.
 */
#include "profiler/prof_internal.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/map.h"
#include "common/mem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;
static struct map known; /* of the interned sites */
static struct ips_site **sites;
static size_t capacity, name_bytes;

uint32_t prof_site_id(struct ips_site *site)
{
	uint32_t id = __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);

	if (id != 0)
		return id;
	pthread_mutex_lock(&lock);
	id = site->id;
	if (id == 0) {
		id = ++last_id;
		__atomic_store_n(&site->id, id, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return id;
}

/* A text that names a site, NULL or of which `length` bytes are kept. */
struct part {
	const char *text;
	size_t length;
};

enum {
	CATEGORY,
	NAME,
	OPERATION,
	PARTS
};

static bool is_site(const struct ips_site *site, const struct part parts[PARTS])
{
	const char *const kept[PARTS] = {site->category, site->name, site->operation};

	for (int i = 0; i < PARTS; i++) {
		if (!kept[i] != !parts[i].text ||
		    (kept[i] && !prof_name_is(kept[i], parts[i].text, parts[i].length)))
			return false;
	}
	return true;
}

/* Allocate the site and its texts in one block. */
static struct ips_site *site_new(const struct part parts[PARTS])
{
	size_t size = sizeof(struct ips_site);
	const char *kept[PARTS] = {NULL};
	struct ips_site *site;
	char *texts;

	for (int i = 0; i < PARTS; i++)
		size += parts[i].length + 1;
	site = mem_calloc(1, size);
	if (!site)
		return NULL;
	texts = (char *)(site + 1);
	for (int i = 0; i < PARTS; i++) {
		if (!parts[i].text)
			continue;
		kept[i] = memcpy(texts, parts[i].text, parts[i].length);
		texts += parts[i].length + 1;
		if (parts[i].text[parts[i].length] != 0)
			prof_name_lost();
	}
	site->category = kept[CATEGORY];
	site->name = kept[NAME];
	site->operation = kept[OPERATION];
	return site;
}

struct ips_site *ips_site_intern(const char *category, const char *name, const char *operation)
{
	static struct ips_site more = {"", IPS_MORE_NAMES, NULL, NULL, 0, 0};
	struct part parts[PARTS] = {
		{!category ? "" : category, 0}, {!name ? "" : name, 0}, {operation, 0}};
	struct ips_site *site = NULL;
	uint64_t hash = MAP_SEED;
	size_t at, bytes = 0;

	for (int i = 0; i < PARTS; i++) {
		parts[i].length = prof_name_length(parts[i].text);
		bytes += parts[i].length;
		hash = !parts[i].text ? map_text(hash, NULL)
				      : map_bytes(hash, parts[i].text, parts[i].length);
	}
	pthread_mutex_lock(&lock);
	MAP_FIND(at, &known, hash, is_site(sites[at], parts));
	if (at != MAP_NONE) {
		site = sites[at];
	} else if (!prof_name_fits(&name_bytes, bytes)) {
		prof_name_lost();
		site = &more;
	} else if (mem_grow(&sites, &capacity, known.count + 1, sizeof(struct ips_site *)) == 0) {
		site = site_new(parts);
		if (site && map_add(&known, hash, known.count) != 0) {
			mem_free(site);
			site = NULL;
		}
		if (site)
			sites[known.count - 1] = site;
	}
	pthread_mutex_unlock(&lock);
	return site;
}
