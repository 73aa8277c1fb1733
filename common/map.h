/*
 * Hash table from 64-bit hashes to numbers, typically indices into an array of the caller. Several
 * items may share a hash, so the caller compares the items themselves.
 *
 *	hash = map_text(MAP_SEED, name);
 *	MAP_FIND(at, &names->map, hash, strcmp(names->items[at].name, name) == 0);
 *	if (at == MAP_NONE && map_add(&names->map, hash, names->count))
 *		...                                 (out of memory)
 *
 * Open addressing with linear probing, at most half full; hash collisions cost only time.
 * Threading: none. Ownership: a zeroed struct is an empty map; the map owns its slots.
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
	size_t item; /* the added number plus 1; 0: the slot is free */
};

struct map {
	struct map_slot *slots;
	size_t mask; /* number of slots, a power of two, minus 1 */
	size_t count;
};

/* Add @item (not MAP_NONE) under @hash. Return 0, or -1 if out of memory (the map is unchanged). */
int map_add(struct map *map, uint64_t hash, size_t item);
/* Remove the first @item with @hash, if present. */
void map_remove(struct map *map, uint64_t hash, size_t item);
void map_clear(struct map *map); /* keeps its memory */
void map_fini(struct map *map);  /* accepts a zeroed struct */

/* Hash @bytes, starting from @seed; calls can be chained. Not safe against chosen collisions. */
uint64_t map_bytes(uint64_t seed, const void *bytes, size_t size);
uint64_t map_text(uint64_t seed, const char *text); /* NULL is not "" */

/* First slot to probe for @hash: its upper bits after mixing, so any number can serve as a hash. */
static inline size_t map_home(const struct map *map, uint64_t hash)
{
	return (size_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & map->mask;
}

/* Return the next item of @hash from slot *@slot on and advance *@slot past it; MAP_NONE: none. */
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

/* Set @at to the item in @table with hash @wanted for which @same, an expression of @at, is true;
 * MAP_NONE if there is no such item. */
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
