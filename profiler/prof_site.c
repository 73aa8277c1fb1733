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
static size_t capacity;

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

static bool is_site(const struct ips_site *site, const char *category, const char *name,
		    const char *operation)
{
	return strcmp(site->name, name) == 0 && strcmp(site->category, category) == 0 &&
	       (site->operation == operation ||
		(site->operation && operation && strcmp(site->operation, operation) == 0));
}

/* Allocate the site and its texts in one block. */
static struct ips_site *site_new(const char *category, const char *name, const char *operation)
{
	size_t category_size = strlen(category) + 1, name_size = strlen(name) + 1;
	size_t operation_size = !operation ? 0 : strlen(operation) + 1;
	struct ips_site *site =
		mem_alloc(sizeof(*site) + category_size + name_size + operation_size);
	char *texts;

	if (!site)
		return NULL;
	memset(site, 0, sizeof(*site));
	texts = (char *)(site + 1);
	site->category = memcpy(texts, category, category_size);
	site->name = memcpy(texts + category_size, name, name_size);
	if (operation)
		site->operation =
			memcpy(texts + category_size + name_size, operation, operation_size);
	return site;
}

struct ips_site *ips_site_intern(const char *category, const char *name, const char *operation)
{
	struct ips_site *site = NULL;
	uint64_t hash;
	size_t at;

	category = !category ? "" : category;
	name = !name ? "" : name;
	hash = map_text(map_text(map_text(MAP_SEED, category), name), operation);
	pthread_mutex_lock(&lock);
	MAP_FIND(at, &known, hash, is_site(sites[at], category, name, operation));
	if (at != MAP_NONE) {
		site = sites[at];
	} else if (mem_grow(&sites, &capacity, known.count + 1, sizeof(struct ips_site *)) == 0) {
		site = site_new(category, name, operation);
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
