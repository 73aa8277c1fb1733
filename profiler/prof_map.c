/*
 * Texts use the map of common/map.h. The table of recent keys has its own open addressing (linear
 * probing, a power of two, at most half full), because it discards whole generations.
 */
#include "profiler/prof_map.h"

#include <string.h>

#include "common/mem.h"

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t names_lost; /* atomic */

size_t prof_name_length(const char *text)
{
	size_t length = !text ? 0 : strnlen(text, IPS_NAME_MOST + 1);

	if (length <= IPS_NAME_MOST)
		return length;
	/* A character has at most three bytes after its first. */
	length = IPS_NAME_MOST;
	for (size_t cut = length; cut > IPS_NAME_MOST - 4; cut--) {
		if ((text[cut] & 0xc0) != 0x80)
			return cut;
	}
	return length;
}

bool prof_name_is(const char *kept, const char *text, size_t length)
{
	return strncmp(kept, text, length) == 0 && kept[length] == 0;
}

bool prof_name_fits(size_t *bytes, size_t length)
{
	if (*bytes + length + PROF_NAME_COST > IPS_NAMES_MOST)
		return false;
	*bytes += length + PROF_NAME_COST;
	return true;
}

void prof_name_lost(void)
{
	__atomic_fetch_add(&names_lost, 1, __ATOMIC_RELAXED);
}

uint64_t prof_names_lost(void)
{
	return __atomic_load_n(&names_lost, __ATOMIC_RELAXED);
}

/* ---- texts ----------------------------------------------------------------------------------- */

uint32_t prof_texts_add(struct prof_texts *texts, const char *text, bool *fresh)
{
	uint32_t *recent = &texts->recent[(uintptr_t)text / 8 % PROF_TEXTS_RECENT];
	size_t at, length;
	uint64_t hash;
	char *copy;

	*fresh = false;
	/* Most texts are given again at the same address; comparing takes less time than a hash. */
	if (*recent != 0 && strcmp(texts->items[*recent - 1], text) == 0)
		return *recent;
	length = prof_name_length(text);
	hash = map_bytes(MAP_SEED, text, length);
	MAP_FIND(at, &texts->map, hash, prof_name_is(texts->items[at], text, length));
	if (at != MAP_NONE)
		return *recent = (uint32_t)at + 1;
	if (strcmp(text, IPS_MORE_NAMES) != 0 && !prof_name_fits(&texts->bytes, length)) {
		prof_name_lost();
		return prof_texts_add(texts, IPS_MORE_NAMES, fresh);
	}
	if (text[length] != 0)
		prof_name_lost();
	if (mem_grow(&texts->items, &texts->capacity, texts->map.count + 1,
		     sizeof(*texts->items)) != 0)
		return 0;
	copy = mem_printf("%.*s", (int)length, text);
	if (!copy || map_add(&texts->map, hash, texts->map.count) != 0) {
		mem_free(copy);
		return 0;
	}
	*fresh = true;
	texts->items[texts->map.count - 1] = copy;
	return *recent = (uint32_t)texts->map.count;
}

void prof_texts_fini(struct prof_texts *texts)
{
	for (size_t i = 0; i < texts->map.count; i++)
		mem_free(texts->items[i]);
	mem_free(texts->items);
	map_fini(&texts->map);
	memset(texts, 0, sizeof(*texts));
}

/* ---- recent keys: a slot is a value, a state, the key ---------------------------------------- */

struct slot_head {
	int64_t value;
	uint64_t state;
};

enum {
	SLOT_FREE,
	SLOT_USED,
	SLOT_REMOVED
};

static size_t slot_size(const struct prof_recent *recent)
{
	return sizeof(struct slot_head) + (recent->key_size + 7) / 8 * 8;
}

static struct slot_head *slot_at(const struct prof_recent *recent,
				 const struct prof_recent_table *table, size_t i)
{
	return (struct slot_head *)(void *)(table->slots + i * slot_size(recent));
}

/* Return the slot of @key, or the free slot for it (*@found tells which); NULL for an empty
 * table. */
static struct slot_head *find(const struct prof_recent *recent,
			      const struct prof_recent_table *table, const void *key, bool *found)
{
	struct slot_head *free_slot = NULL;
	size_t i;

	*found = false;
	if (table->capacity == 0)
		return NULL;
	i = map_bytes(MAP_SEED, key, recent->key_size) & (table->capacity - 1);
	for (size_t probes = 0; probes < table->capacity; probes++) {
		struct slot_head *slot = slot_at(recent, table, i);

		if (slot->state == SLOT_USED && memcmp(slot + 1, key, recent->key_size) == 0) {
			*found = true;
			return slot;
		}
		if (slot->state != SLOT_USED && !free_slot)
			free_slot = slot;
		if (slot->state == SLOT_FREE)
			break;
		i = (i + 1) & (table->capacity - 1);
	}
	return free_slot;
}

void prof_recent_init(struct prof_recent *recent, size_t key_size, size_t generation)
{
	memset(recent, 0, sizeof(*recent));
	recent->key_size = key_size;
	recent->generation = generation;
}

void prof_recent_fini(struct prof_recent *recent)
{
	mem_free(recent->young.slots);
	mem_free(recent->old.slots);
	memset(&recent->young, 0, sizeof(recent->young));
	memset(&recent->old, 0, sizeof(recent->old));
}

bool prof_recent_get(struct prof_recent *recent, const void *key, int64_t *value)
{
	bool found;
	struct slot_head *slot = find(recent, &recent->young, key, &found);

	if (found) {
		*value = slot->value;
		return true;
	}
	slot = find(recent, &recent->old, key, &found);
	if (!found)
		return false;
	*value = slot->value;
	if (prof_recent_put(recent, key, *value)) {
		/* prof_recent_put() may have freed the old generation and this slot. */
		slot = find(recent, &recent->old, key, &found);
		if (found) {
			slot->state = SLOT_REMOVED;
			recent->old.count--;
		}
	}
	return true;
}

/* Grow or rehash the young table; removed slots are dropped. */
static bool young_grow(struct prof_recent *recent)
{
	struct prof_recent_table bigger = {NULL, 0, 0, 0};

	bigger.capacity = recent->young.capacity == 0 ? 64 : recent->young.capacity;
	if (recent->young.count * 4 > bigger.capacity)
		bigger.capacity *= 2;
	bigger.slots = mem_calloc(bigger.capacity, slot_size(recent));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < recent->young.capacity; i++) {
		const struct slot_head *old = slot_at(recent, &recent->young, i);
		bool found;

		if (old->state == SLOT_USED) {
			memcpy(find(recent, &bigger, old + 1, &found), old, slot_size(recent));
			bigger.count++;
			bigger.filled++;
		}
	}
	mem_free(recent->young.slots);
	recent->young = bigger;
	return true;
}

bool prof_recent_put(struct prof_recent *recent, const void *key, int64_t value)
{
	struct slot_head *slot;
	bool found;

	if (recent->young.count >= recent->generation) {
		for (size_t i = 0; recent->forget && i < recent->old.capacity; i++) {
			struct slot_head *old = slot_at(recent, &recent->old, i);

			if (old->state == SLOT_USED && memcmp(old + 1, key, recent->key_size) != 0)
				recent->forget(recent->user, old->value);
		}
		mem_free(recent->old.slots);
		recent->old = recent->young;
		memset(&recent->young, 0, sizeof(recent->young));
	}
	if ((recent->young.filled + 1) * 2 > recent->young.capacity && !young_grow(recent))
		return false;
	slot = find(recent, &recent->young, key, &found);
	if (!found) {
		recent->young.count++;
		recent->young.filled += slot->state == SLOT_FREE;
		slot->state = SLOT_USED;
		memcpy(slot + 1, key, recent->key_size);
	}
	slot->value = value;
	return true;
}

bool prof_recent_remove(struct prof_recent *recent, const void *key)
{
	struct prof_recent_table *tables[] = {&recent->young, &recent->old};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		bool found;
		struct slot_head *slot = find(recent, tables[i], key, &found);

		if (found) {
			slot->state = SLOT_REMOVED;
			tables[i]->count--;
			return true;
		}
	}
	return false;
}

/* ---- recent contexts ------------------------------------------------------------------------- */

#define CONTEXT_SETS 2048u
#define CONTEXT_WAYS 4

struct prof_context_set {
	uint64_t hashes[CONTEXT_WAYS];
	int64_t ids[CONTEXT_WAYS]; /* 0: free; the newest entry has the greatest id */
	struct ips_keys keys[CONTEXT_WAYS];
};

bool prof_contexts_init(struct prof_contexts *contexts)
{
	contexts->sets = mem_calloc(CONTEXT_SETS, sizeof(*contexts->sets));
	return contexts->sets != NULL;
}

void prof_contexts_fini(struct prof_contexts *contexts)
{
	mem_free(contexts->sets);
	contexts->sets = NULL;
}

int64_t prof_contexts_add(struct prof_contexts *contexts, const struct ips_keys *keys,
			  int64_t fresh)
{
	uint64_t hash = map_bytes(MAP_SEED, keys, sizeof(*keys));
	struct prof_context_set *set = &contexts->sets[(hash >> 32) % CONTEXT_SETS];
	int oldest = 0;

	for (int i = 0; i < CONTEXT_WAYS; i++) {
		if (set->hashes[i] == hash && set->ids[i] != 0 &&
		    memcmp(&set->keys[i], keys, sizeof(*keys)) == 0)
			return set->ids[i];
		if (set->ids[i] < set->ids[oldest])
			oldest = i;
	}
	set->hashes[oldest] = hash;
	set->ids[oldest] = fresh;
	set->keys[oldest] = *keys;
	return fresh;
}
