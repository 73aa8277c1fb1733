/*
 * Bump allocator for objects that share a lifetime: per-step scratch, query results, parsed models.
 *
 * Blocks are 64-byte aligned. An initial capacity allocates the first block at once; it is reused
 * until arena_fini(). A full block chains another one. The next reset joins all blocks into one,
 * so a steady state allocates nothing. Not thread safe. Under AddressSanitizer freed space is
 * poisoned.
 */
#ifndef COMMON_ARENA_H
#define COMMON_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *block; /* the newest block, linked to older ones */
	size_t used;               /* bytes of the newest block in use */
	size_t total;              /* bytes in use over all blocks */
	size_t peak;               /* greatest total ever, bytes */
};

/* @capacity may be 0. Return 0, or -1 if out of memory (nothing to undo). */
int arena_init(struct arena *arena, size_t capacity);
void arena_fini(struct arena *arena);
void arena_reset(struct arena *arena); /* frees every allocation; keeps the memory */

void *arena_alloc(struct arena *arena, size_t count, size_t size); /* zeroed; NULL: out of memory */
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

#endif /* COMMON_ARENA_H */
