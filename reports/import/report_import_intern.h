/*
 * Byte strings as numbers from 0, each once, in order of arrival.
 *
 * One thread. The strings are the table's; they stay where they are until fini.
 */
#ifndef REPORT_IMPORT_INTERN_H
#define REPORT_IMPORT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/map.h"

#define IMPORT_NO_ID UINT32_MAX

struct import_intern {
	struct arena arena;
	struct import_string {
		const char *text; /* 0-terminated */
		size_t length;
	} * strings;
	size_t count, capacity;
	struct map map;
};

void report__import_intern_fini(struct import_intern *table); /* accepts a zeroed struct */
/* The id of @length bytes at @text, which become known where there are fewer than @most. *@fresh:
 * they are new. IMPORT_NO_ID: unknown beyond @most, or (*@fresh true) no memory. */
uint32_t report__import_intern(struct import_intern *table, const char *text, size_t length,
			       size_t most, bool *fresh);

/* A quick hash, not one against enemies: collisions cost time only. @seed chains several. */
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

#endif /* REPORT_IMPORT_INTERN_H */
