/*
 * Bump allocation in chained blocks.
 *
 * The header occupies the first 64 bytes of a block, so the payload is as aligned as the block.
 * Allocations of 64 bytes or more are aligned to 64, smaller ones to 16, strings not at all.
 *
 * Threading: none; an arena belongs to one thread at a time. Ownership: the arena owns its blocks.
 */
#include "common/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define ARENA_HEADER      64
#define ARENA_LEAST_BLOCK 4096
#define ARENA_ALIGN_SMALL 16
#define ARENA_ALIGN_LARGE 64

struct arena_block {
	struct arena_block *older;
	size_t capacity; /* bytes after the header */
};

_Static_assert(sizeof(struct arena_block) <= ARENA_HEADER, "arena header out of step");

static char *arena_bytes(struct arena_block *block)
{
	return (char *)block + ARENA_HEADER;
}

static struct arena_block *arena_block_new(size_t capacity)
{
	struct arena_block *block;

	if (capacity > PTRDIFF_MAX - ARENA_HEADER)
		return NULL;

	block = mem_aligned(ARENA_HEADER + capacity, 1);
	if (!block)
		return NULL;

	block->capacity = capacity;
	ASAN_POISON_MEMORY_REGION(arena_bytes(block), capacity);
	return block;
}

int arena_init(struct arena *arena, size_t capacity)
{
	*arena = (struct arena){0};
	if (!capacity)
		return 0;

	arena->block = arena_block_new(capacity);
	return arena->block ? 0 : -1;
}

static void arena_free_from(struct arena_block *block)
{
	while (block) {
		struct arena_block *older = block->older;

		ASAN_UNPOISON_MEMORY_REGION(arena_bytes(block), block->capacity);
		mem_free(block);
		block = older;
	}
}

void arena_fini(struct arena *arena)
{
	arena_free_from(arena->block);
	*arena = (struct arena){0};
}

void arena_reset(struct arena *arena)
{
	if (arena->block && arena->block->older) {
		/* One block of their total capacity replaces all. If out of memory, only the newest
		 * stays, which is the largest unless a single large request made an older one
		 * larger. */
		struct arena_block *joined;
		size_t capacity = 0;

		for (struct arena_block *b = arena->block; b; b = b->older)
			capacity += b->capacity;

		joined = arena_block_new(capacity);
		if (joined) {
			arena_free_from(arena->block);
			arena->block = joined;
		} else {
			arena_free_from(arena->block->older);
			arena->block->older = NULL;
		}
	}
	if (arena->block)
		ASAN_POISON_MEMORY_REGION(arena_bytes(arena->block), arena->block->capacity);
	arena->used = 0;
	arena->total = 0;
}

static int arena_add_block(struct arena *arena, size_t bytes)
{
	size_t capacity = arena->block ? arena->block->capacity : ARENA_LEAST_BLOCK / 2;
	struct arena_block *block;

	capacity *= 2; /* cannot wrap: arena_block_new() gives at most half of all addresses */
	if (capacity < bytes)
		capacity = bytes;

	block = arena_block_new(capacity);
	if (!block && capacity > bytes)
		block = arena_block_new(bytes);
	if (!block)
		return -1;

	block->older = arena->block;
	arena->block = block;
	arena->used = 0;
	return 0;
}

static void *arena_reserve(struct arena *arena, size_t bytes, size_t alignment)
{
	size_t start;
	char *p;

	if (bytes > PTRDIFF_MAX / 2)
		return NULL;

	start = (arena->used + alignment - 1) & ~(alignment - 1);
	if (!arena->block || start > arena->block->capacity ||
	    bytes > arena->block->capacity - start) {
		if (arena_add_block(arena, bytes))
			return NULL;
		start = 0;
	}

	p = arena_bytes(arena->block) + start;
	ASAN_UNPOISON_MEMORY_REGION(p, bytes);
	arena->total += start + bytes - arena->used;
	arena->used = start + bytes;
	if (arena->peak < arena->total)
		arena->peak = arena->total;
	return p;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;

	/* An empty request still returns a distinct pointer. */
	if (!bytes)
		bytes = 1;
	p = arena_reserve(arena, bytes,
			  bytes < ARENA_ALIGN_LARGE ? ARENA_ALIGN_SMALL : ARENA_ALIGN_LARGE);
	if (p)
		memset(p, 0, bytes);
	return p;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = arena_reserve(arena, size, 1);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
	va_list again;
	char *text = NULL;
	int length;

	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	if (length >= 0)
		text = arena_reserve(arena, (size_t)length + 1, 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = arena_vprintf(arena, format, args);
	va_end(args);
	return text;
}
