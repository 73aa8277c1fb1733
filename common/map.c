/*
 * Hash tables: growing, removing and hashing. See map.h.
 */
#include "common/map.h"

#include <string.h>

#include "common/mem.h"

#define FIRST_SLOTS 64

static void map_insert(struct map *map, struct map_slot put)
{
	size_t slot = map_home(map, put.hash);

	while (map->slots[slot].item != 0)
		slot = (slot + 1) & map->mask;
	map->slots[slot] = put;
	map->count++;
}

int map_add(struct map *map, uint64_t hash, size_t item)
{
	const size_t room = map->slots ? map->mask + 1 : 0;

	if ((map->count + 1) * 2 > room) {
		struct map grown = {.mask = (room == 0 ? FIRST_SLOTS : 2 * room) - 1};

		grown.slots = mem_calloc(grown.mask + 1, sizeof(*grown.slots));
		if (!grown.slots)
			return -1;
		for (size_t i = 0; i < room; i++)
			if (map->slots[i].item != 0)
				map_insert(&grown, map->slots[i]);
		mem_free(map->slots);
		*map = grown;
	}
	map_insert(map, (struct map_slot){hash, item + 1});
	return 0;
}

void map_remove(struct map *map, uint64_t hash, size_t item)
{
	size_t hole = map_home(map, hash);

	if (map->count == 0)
		return;
	while (map->slots[hole].hash != hash || map->slots[hole].item != item + 1) {
		if (map->slots[hole].item == 0)
			return;
		hole = (hole + 1) & map->mask;
	}
	map->count--;
	for (size_t at = (hole + 1) & map->mask; map->slots[at].item != 0;
	     at = (at + 1) & map->mask) {
		const size_t home = map_home(map, map->slots[at].hash);

		/* Move the slot into the hole unless its home lies behind the hole. */
		if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
			map->slots[hole] = map->slots[at];
			hole = at;
		}
	}
	map->slots[hole].item = 0;
}

void map_clear(struct map *map)
{
	if (map->count > 0)
		memset(map->slots, 0, (map->mask + 1) * sizeof(*map->slots));
	map->count = 0;
}

void map_fini(struct map *map)
{
	mem_free(map->slots);
	*map = (struct map){0};
}

/* ---- hashing --------------------------------------------------------------------------------- */

static uint64_t map_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 29);
}

uint64_t map_bytes(uint64_t seed, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;
	uint64_t hash = seed + size, word;

	for (; size >= 8; size -= 8, p += 8) {
		memcpy(&word, p, 8);
		hash = map_mix(hash, word);
	}
	if (size > 0) {
		word = 0;
		memcpy(&word, p, size);
		hash = map_mix(hash, word);
	}
	return map_mix(hash, hash >> 32);
}

uint64_t map_text(uint64_t seed, const char *text)
{
	return text ? map_bytes(seed, text, strlen(text)) : map_mix(seed, 1);
}
