/*
 * Interned strings, and lists that a map finds the items of: what all tables of an import are made
 * of.
 *
 * Threading: none.
 */
#ifndef REPORT_IMPORT_INTERN_H
#define REPORT_IMPORT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/map.h"
#include "common/str.h"

/* Map byte strings to ids from 0 in order of arrival. The table owns the strings; their addresses
 * are stable until fini. */
#define IMPORT_NO_ID UINT32_MAX

struct import_intern {
	struct arena arena;
	struct import_string {
		const char *text; /* 0-terminated */
		size_t length;
	} * strings;
	size_t count, capacity;
	size_t bytes; /* of the strings */
	struct map map;
};

void report__import_intern_fini(struct import_intern *table); /* accepts a zeroed struct */
/* Return the id of @length bytes at @text, adding them if there are fewer than @most strings.
 * *@fresh: they were added. IMPORT_NO_ID: @most is reached, or (*@fresh true) out of memory. */
uint32_t report__import_intern(struct import_intern *table, const char *text, size_t length,
			       size_t most, bool *fresh);

/* Append @length bytes at @text to @key; of more than @most the first @most, a `#`, and two hashes
 * of them all, so that long texts differ in few bytes, too. */
void report__import_key_add(struct str *key, const char *text, size_t length, size_t most);

/* Return the id of a string that was added; else IMPORT_NO_ID. */
uint32_t report__import_intern_find(const struct import_intern *table, const char *text,
				    size_t length);

/* A fast hash, not collision-resistant: collisions only cost time. @seed chains several hashes. */
static inline uint64_t import_hash(uint64_t seed, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	uint64_t hash = seed ^ (length * 0x9e3779b97f4a7c15u), word;

	for (; length >= 8; length -= 8, at += 8) {
		__builtin_memcpy(&word, at, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	word = 0;
	if (length > 0)
		__builtin_memcpy(&word, at, length);
	hash = (hash ^ word) * 0xc4ceb9fe1a85ec53u;
	return hash ^ hash >> 29;
}

/* Append an item to the list *@items, and add it to @map under @key. Return it, not initialised;
 * NULL: out of memory, which is set in @err. */
void *report__import_append(struct map *map, uint64_t key, void *items, size_t *count,
			    size_t *capacity, size_t size, struct err *err);

#endif /* REPORT_IMPORT_INTERN_H */
