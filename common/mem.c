/*
 * Heap memory through replaceable functions.
 *
 * Threading: as thread safe as the installed functions; install only while no thread allocates.
 * Ownership: the caller owns an allocation until mem_free().
 */
#include "common/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/minmax.h"

#define MEM_ALIGNMENT 64
#define MEM_PAGE      4096
#define MEM_HUGE      ((size_t)4 << 20) /* bytes from which pages of 2 MiB pay */
#define MEM_LARGE     1024              /* bytes of an item from which arrays begin with one */

static const struct mem_functions mem_libc = {
	.resize = realloc,
	.aligned = aligned_alloc,
	.release = free,
};

static struct mem_functions mem_now = {
	.resize = realloc,
	.aligned = aligned_alloc,
	.release = free,
};

void mem_set_functions(const struct mem_functions *functions)
{
	mem_now = functions ? *functions : mem_libc;
}

/* Return the product, or 0 on overflow. An empty request asks for one byte, so that NULL always
 * means out of memory. */
static size_t mem_product(size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
		return 0;

	return bytes ? bytes : 1;
}

/* Request transparent huge pages: fewer page faults and TLB misses. The system may refuse. */
static void mem_advise(void *p, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
	size_t before = (MEM_PAGE - (uintptr_t)p % MEM_PAGE) % MEM_PAGE;

	if (bytes >= MEM_HUGE)
		(void)madvise((char *)p + before, (bytes - before) / MEM_PAGE * MEM_PAGE,
			      MADV_HUGEPAGE);
#else
	(void)p;
	(void)bytes;
#endif
}

void *mem_alloc(size_t size)
{
	return mem_resize(NULL, 1, size);
}

void *mem_calloc(size_t count, size_t size)
{
	size_t bytes = mem_product(count, size);
	void *p = bytes ? mem_now.resize(NULL, bytes) : NULL;

	if (p)
		memset(p, 0, bytes);
	return p;
}

void *mem_resize(void *old, size_t count, size_t size)
{
	size_t bytes = mem_product(count, size);
	void *p = bytes ? mem_now.resize(old, bytes) : NULL;

	if (p)
		mem_advise(p, bytes);
	return p;
}

void *mem_aligned(size_t count, size_t size)
{
	size_t bytes = mem_product(count, size);
	void *p;

	if (!bytes || bytes > PTRDIFF_MAX - MEM_ALIGNMENT)
		return NULL;

	/* aligned_alloc() of C11 requires a multiple of the alignment. */
	bytes = (bytes + MEM_ALIGNMENT - 1) / MEM_ALIGNMENT * MEM_ALIGNMENT;
	p = mem_now.aligned(MEM_ALIGNMENT, bytes);
	if (!p)
		return NULL;
	mem_advise(p, bytes);
	memset(p, 0, bytes);
	return p;
}

char *mem_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = mem_alloc(size);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

char *mem_printf(const char *format, ...)
{
	va_list args, again;
	char *text = NULL;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	if (length >= 0)
		text = mem_alloc((size_t)length + 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void mem_free(void *p)
{
	mem_now.release(p);
}

int mem_grow(void *items, size_t *capacity, size_t needed, size_t size)
{
	/* Of large items a single one may be all. */
	size_t wanted = max(*capacity, size < MEM_LARGE ? (size_t)8 : 1);
	void *old, *grown;

	if (needed <= *capacity)
		return 0;

	while (wanted < needed) {
		if (wanted > SIZE_MAX / 2)
			return -1;
		wanted *= 2;
	}

	/*
	 * @items is the address of a pointer of unknown type: memcpy() avoids type punning.
	 */
	memcpy(&old, items, sizeof(old));
	grown = mem_resize(old, wanted, size);
	if (!grown)
		return -1;

	memcpy(items, &grown, sizeof(grown));
	*capacity = wanted;
	return 0;
}

/* Read the number after @key in the first line of @path that begins with @key; -1 if none. */
static int64_t read_number(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[128];
	int64_t number = -1;

	while (file && number < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) &&
		    sscanf(line + strlen(key), "%" SCNd64, &number) != 1)
			number = -1;
	if (file)
		fclose(file);
	return number;
}

int64_t mem_available(void)
{
	const int64_t machine = read_number("/proc/meminfo", "MemAvailable:");
	const int64_t most = read_number("/sys/fs/cgroup/memory.max", "");
	const int64_t used = read_number("/sys/fs/cgroup/memory.current", "");
	int64_t bytes = machine < 0 ? INT64_MAX : machine * 1024;

	/* The container's page cache counts as used but can be reclaimed. */
	if (most >= 0 && used >= 0)
		bytes = min(bytes, max(most - used, most / 4));
	return bytes;
}
