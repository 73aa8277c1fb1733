/*
 * Heap memory behind replaceable functions.
 *
 * Threading: as thread safe as the installed functions; installing is for quiet moments only.
 * Ownership: what is handed out is the caller's until mem_free().
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
#define MEM_HUGE      ((size_t)4 << 20) /* bytes: from here on pages of 2 MiB are worth asking for */

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

/* The product, or 0 where it does not fit; an empty request asks for one byte, so that NULL always
 * means no memory. */
static size_t mem_product(size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
		return 0;

	return bytes ? bytes : 1;
}

/* Asks for large pages where the system gives them to those who ask: fewer page faults, and fewer
 * misses of the processor's table of pages. It may refuse. */
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

	/* C11 wants a multiple of the alignment. */
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
	size_t wanted = *capacity < 8 ? 8 : *capacity;
	void *old, *grown;

	if (needed <= *capacity)
		return 0;

	while (wanted < needed) {
		if (wanted > SIZE_MAX / 2)
			return -1;
		wanted *= 2;
	}

	/*
	 * @items is the address of a pointer of some type: copied, since types may not be punned.
	 */
	memcpy(&old, items, sizeof(old));
	grown = mem_resize(old, wanted, size);
	if (!grown)
		return -1;

	memcpy(items, &grown, sizeof(grown));
	*capacity = wanted;
	return 0;
}

/* The number behind @key in the file @path, whose lines begin with such; -1: there is none. */
static int64_t number_in(const char *path, const char *key)
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
	const int64_t machine = number_in("/proc/meminfo", "MemAvailable:");
	const int64_t most = number_in("/sys/fs/cgroup/memory.max", "");
	const int64_t used = number_in("/sys/fs/cgroup/memory.current", "");
	int64_t bytes = machine < 0 ? INT64_MAX : machine * 1024;

	/* A container's files in memory count as used, and give way. */
	if (most >= 0 && used >= 0)
		bytes = min(bytes, max(most - used, most / 4));
	return bytes;
}
