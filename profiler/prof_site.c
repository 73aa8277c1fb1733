/*
 * Call sites, for the whole process.
 *
 * One mutex guards the table of interned sites and the counter. Interned sites are never freed:
 * slots in rings point to them, and so may the program for as long as it runs.
 */
#include "profiler/prof_site.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;
static struct ips_site **table; /* open addressing */
static size_t table_capacity, table_count;

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

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text != 0; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return (hash ^ 0xff) * 0x100000001b3u;
}

static uint64_t hash_site(const char *category, const char *name, const char *operation)
{
	uint64_t hash = hash_text(0xcbf29ce484222325u, category);

	return hash_text(hash_text(hash, name), operation);
}

static int same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static struct ips_site **slot_of(struct ips_site **slots, size_t capacity, const char *category,
				 const char *name, const char *operation)
{
	size_t i = hash_site(category, name, operation) & (capacity - 1);

	for (;; i = (i + 1) & (capacity - 1)) {
		const struct ips_site *site = slots[i];

		if (!site)
			return &slots[i];
		if (strcmp(site->name, name) == 0 && strcmp(site->category, category) == 0 &&
		    same_text(site->operation, operation))
			return &slots[i];
	}
}

static int grow(void)
{
	size_t capacity = table_capacity == 0 ? 64 : table_capacity * 2;
	struct ips_site **slots = mem_calloc(capacity, sizeof(struct ips_site *));

	if (!slots)
		return -1;
	for (size_t i = 0; i < table_capacity; i++) {
		struct ips_site *site = table[i];

		if (site)
			*slot_of(slots, capacity, site->category, site->name, site->operation) =
				site;
	}
	mem_free(table);
	table = slots;
	table_capacity = capacity;
	return 0;
}

/* The site and its texts in one block. */
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
	struct ips_site *site = NULL, **slot;

	category = !category ? "" : category;
	name = !name ? "" : name;
	pthread_mutex_lock(&lock);
	if ((table_count + 1) * 2 <= table_capacity || grow() == 0) {
		slot = slot_of(table, table_capacity, category, name, operation);
		if (!*slot) {
			*slot = site_new(category, name, operation);
			table_count += *slot != NULL;
		}
		site = *slot;
	}
	pthread_mutex_unlock(&lock);
	return site;
}
