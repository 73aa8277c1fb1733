/*
 * A hash table from 64-bit hashes to numbers: where in an array of the caller's an item with that
 * hash stands, or what else a number may say. Several items may have one hash, so the caller
 * compares what they are.
 *
 *	hash = map_text(MAP_SEED, name);
 *	MAP_FIND(at, &names->map, hash, strcmp(names->items[at].name, name) == 0);
 *	if (at == MAP_NONE && map_add(&names->map, hash, names->count))
 *		...                                 (no memory)
 *
 * Open addressing with linear probing, at most half full; equal hashes of other things cost time
 * only. Threading: none. Ownership: a zeroed struct is an empty map; it owns its slots.
 */
#ifndef COMMON_MAP_H
#define COMMON_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE SIZE_MAX
#define MAP_SEED UINT64_C(0x243f6a8885a308d3)

struct map_slot {
	uint64_t hash;
	size_t item; /* one more than what was added; 0: the slot is free */
};

struct map {
	struct map_slot *slots;
	size_t mask; /* one less than the slots, a power of two of them */
	size_t count;
};

/* @item, not MAP_NONE, for @hash. 0, or -1 without memory: then the map is as it was. */
int map_add(struct map *map, uint64_t hash, size_t item);
/* Take away the first @item of @hash, if there is one. */
void map_remove(struct map *map, uint64_t hash, size_t item);
void map_clear(struct map *map); /* keeps its memory */
void map_fini(struct map *map);  /* accepts a zeroed struct */

/* @seed with @bytes; to be chained. Not against enemies. */
uint64_t map_bytes(uint64_t seed, const void *bytes, size_t size);
uint64_t map_text(uint64_t seed, const char *text); /* NULL is not "" */

/* Where to look first for @hash: its upper bits, mixed, so a hash may be any number. */
static inline size_t map_home(const struct map *map, uint64_t hash)
{
	return (size_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & map->mask;
}

/* The next item of @hash from slot *@slot on, which goes behind it; MAP_NONE: there is none. */
static inline size_t map_next(const struct map *map, uint64_t hash, size_t *slot)
{
	while (map->count > 0 && map->slots[*slot].item != 0) {
		const struct map_slot at = map->slots[*slot];

		*slot = (*slot + 1) & map->mask;
		if (at.hash == hash)
			return at.item - 1;
	}
	return MAP_NONE;
}

/* Set @at to the item of the hash @wanted in @table for which @same, an expression of @at, is true;
 * MAP_NONE: there is none. */
#define MAP_FIND(at, table, wanted, same)                                                          \
	do {                                                                                       \
		const struct map *map_in = (table);                                                \
		const uint64_t map_hash = (wanted);                                                \
		size_t map_slot = map_home(map_in, map_hash);                                      \
                                                                                                   \
		do {                                                                               \
			(at) = map_next(map_in, map_hash, &map_slot);                              \
		} while ((at) != MAP_NONE && !(same));                                             \
	} while (0)

#endif /* COMMON_MAP_H */
