/*
 * Heap memory through replaceable functions, so that tests can fail the n-th allocation.
 *
 * Every allocation may return NULL; callers report ST_NOMEM and undo cleanly. Sizes are checked for
 * overflow here. As thread safe as the installed functions.
 */
#ifndef COMMON_MEM_H
#define COMMON_MEM_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct mem_functions {
	void *(*resize)(void *old, size_t size); /* like realloc; old may be NULL */
	void *(*aligned)(size_t alignment, size_t size);
	void (*release)(void *p); /* accepts NULL and memory from either of the two */
};

void *mem_alloc(size_t size);                           /* uninitialized */
void *mem_calloc(size_t count, size_t size);            /* zeroed */
void *mem_resize(void *old, size_t count, size_t size); /* on failure @old is unchanged */
void *mem_aligned(size_t count, size_t size); /* 64-byte aligned, zeroed (every page touched) */
char *mem_strdup(const char *text);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mem_free(void *p); /* accepts NULL */

/* Replace the allocator (tests); NULL restores the C library's. No other thread may allocate. */
void mem_set_functions(const struct mem_functions *functions);

/* Bytes that this machine, and its container, can still provide; INT64_MAX if unknown. */
int64_t mem_available(void);

/* Grow *@items (*@capacity elements of @size bytes) to hold at least @needed elements. Return 0, or
 * -1 with everything unchanged. */
int mem_grow(void *items, size_t *capacity, size_t needed, size_t size);

#endif /* COMMON_MEM_H */
