/*
 * Heap memory behind replaceable functions, so that tests can fail the n-th allocation.
 *
 * Every function may return NULL; callers report ST_NOMEM and undo cleanly. Sizes are checked for
 * overflow here. Thread safe as far as the installed functions are.
 */
#ifndef COMMON_MEM_H
#define COMMON_MEM_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct mem_functions {
	void *(*resize)(void *old, size_t size); /* like realloc; old may be NULL */
	void *(*aligned)(size_t alignment, size_t size);
	void (*release)(void *p); /* accepts NULL and what either of the two gave */
};

void *mem_alloc(size_t size);                           /* not cleared */
void *mem_calloc(size_t count, size_t size);            /* cleared */
void *mem_resize(void *old, size_t count, size_t size); /* on failure old stays as it was */
void *mem_aligned(size_t count, size_t size); /* 64-byte aligned, cleared (touched once) */
char *mem_strdup(const char *text);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mem_free(void *p); /* accepts NULL */

/* Replace the allocator (tests); NULL brings the C library's back. Not while others allocate. */
void mem_set_functions(const struct mem_functions *functions);

/* Bytes that this machine, and the container around it, have for one who asks now; INT64_MAX: it
 * does not say. */
int64_t mem_available(void);

/* Grow *@items (elements of @size bytes, *@capacity of them) to hold at least @needed.
 * Returns 0, or -1 with everything unchanged. */
int mem_grow(void *items, size_t *capacity, size_t needed, size_t size);

#endif /* COMMON_MEM_H */
