/*
 * See guard_alloc.h. A block that has no room in the table is an ordinary one.
 */
#include "support/guard_alloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/mem.h"
#include "support/support.h"

#define BLOCKS 1024

static struct block {
	char *map, *at;
	size_t mapped, size;
} blocks[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t guarded_from;

/* The block at @at; @at NULL: a free place; NULL: none. */
static struct block *find(const void *at)
{
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i].at == at)
			return &blocks[i];
	return NULL;
}

static void *guarded(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t bytes = (size + 7) / 8 * 8, pages = (bytes + page - 1) / page;
	struct block *block;
	char *map;

	pthread_mutex_lock(&lock);
	block = find(NULL);
	map = !block ? MAP_FAILED
		     : mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map != MAP_FAILED) {
		mprotect(map + pages * page, page, PROT_NONE);
		*block = (struct block){map, map + pages * page - bytes, (pages + 1) * page, size};
	}
	pthread_mutex_unlock(&lock);
	return map == MAP_FAILED ? malloc(size) : block->at;
}

static void release(void *at)
{
	struct block *block = NULL;

	pthread_mutex_lock(&lock);
	if (at)
		block = find(at);
	if (block) {
		munmap(block->map, block->mapped);
		*block = (struct block){0};
	}
	pthread_mutex_unlock(&lock);
	if (!block)
		free(at);
}

static void *resize(void *old, size_t size)
{
	struct block *block = NULL;
	size_t had = 0;
	void *at;

	pthread_mutex_lock(&lock);
	if (old)
		block = find(old);
	if (block)
		had = block->size;
	pthread_mutex_unlock(&lock);
	/* An ordinary block stays one: nobody knows its size. */
	if ((old && !block) || (!old && size < guarded_from))
		return realloc(old, size);
	at = guarded(size);
	if (block && at) {
		memcpy(at, old, had < size ? had : size);
		release(old);
	}
	return at;
}

void guard_alloc(size_t least)
{
	static const struct mem_functions functions = {resize, aligned_alloc, release};

	guarded_from = least > 0 ? least : SIZE_MAX;
	mem_set_functions(&functions);
}
