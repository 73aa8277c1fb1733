/*
 * Preloaded into a program (LD_PRELOAD): counts its allocations and fails one of them, those of
 * the program and of every library alike.
 *
 * FAIL_ALLOC_AT=N: the N-th from 0 on, those of child processes counted along; "N-": all from the
 * N-th on; unset: none.
 * FAIL_ALLOC_STACK=HASH: the first whose call stack has this hash, which is the same in each run;
 * "HASH-": all from there on.
 * FAIL_ALLOC_LOG=FILE: at exit, append a line for each call stack seen: its hash, the number of its
 * first allocation, and "module+offset" of the calls. Without FAIL_ALLOC_STACK and this variable no
 * stack is looked at.
 * FAIL_ALLOC_CHILD=FILE: make this file where the allocation that fails is a child process's.
 *
 * Before main() nothing fails: the dynamic linker itself ends a program without memory. Threads:
 * counts are atomic; the table of stacks has a lock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#define DEPTH  24
#define STACKS 65536

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

struct stack {
	uint64_t hash;
	long first;
	size_t depth;
	uintptr_t at[DEPTH];
};

static struct stack stacks[STACKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	atomic_long count;
	atomic_bool failing;
} * shared; /* with child processes */
static atomic_bool begun;
static _Thread_local bool within;
static long fail_at = -1;
static uint64_t fail_stack;
static bool ever_after, by_stack;
static const char *log_path, *child_path;
static pid_t parent;

struct walk {
	uintptr_t at[DEPTH];
	size_t depth;
	uint64_t hash;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *user)
{
	struct walk *walk = user;
	const uintptr_t at = _Unwind_GetIP(context);
	struct dl_find_object found;

	if (at == 0 || walk->depth == DEPTH)
		return _URC_END_OF_STACK;
	/* The place in its module, which is loaded elsewhere in each run. */
	if (_dl_find_object((void *)at, &found) == 0)
		walk->hash = (walk->hash ^ (at - (uintptr_t)found.dlfo_map_start)) *
			     UINT64_C(0x100000001b3);
	walk->at[walk->depth++] = at;
	return _URC_NO_REASON;
}

/* Return the entry of this call stack, a new one with the number @now; NULL: too many. */
static struct stack *look_up(long now)
{
	struct walk walk = {.hash = UINT64_C(0xcbf29ce484222325)};
	struct stack *entry = NULL;
	size_t slot;

	_Unwind_Backtrace(step, &walk);
	walk.hash += walk.hash == 0;
	pthread_mutex_lock(&lock);
	slot = walk.hash % STACKS;
	for (size_t i = 0; i < STACKS; i++, slot = (slot + 1) % STACKS) {
		if (stacks[slot].hash == walk.hash || stacks[slot].hash == 0) {
			entry = &stacks[slot];
			break;
		}
	}
	if (entry && entry->hash == 0) {
		entry->first = now;
		entry->depth = walk.depth;
		memcpy(entry->at, walk.at, sizeof(walk.at));
		entry->hash = walk.hash;
	}
	pthread_mutex_unlock(&lock);
	return entry;
}

static bool fails(void)
{
	long now;
	bool yes;

	if (!atomic_load(&begun) || within)
		return false;
	if (atomic_load(&shared->failing))
		return true;
	within = true;
	now = atomic_fetch_add(&shared->count, 1);
	yes = now == fail_at;
	if (by_stack || log_path) {
		const struct stack *stack = look_up(now);

		yes = yes ||
		      (by_stack && stack && stack->hash == fail_stack && stack->first == now);
	}
	if (yes && child_path && getpid() != parent)
		close(open(child_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	if (yes && ever_after)
		atomic_store(&shared->failing, true);
	within = false;
	return yes;
}

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	return fails() ? none() : __libc_malloc(size);
}

void *calloc(size_t items, size_t size)
{
	return fails() ? none() : __libc_calloc(items, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? none() : __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
	return fails() ? none() : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *memory = memalign(alignment, size);

	if (!memory)
		return ENOMEM;
	*out = memory;
	return 0;
}

__attribute__((destructor)) static void write_log(void)
{
	FILE *file;

	atomic_store(&begun, false);
	file = log_path ? fopen(log_path, "ae") : NULL;
	for (size_t i = 0; file && i < STACKS; i++) {
		if (stacks[i].hash == 0)
			continue;
		fprintf(file, "%016llx %ld", (unsigned long long)stacks[i].hash, stacks[i].first);
		for (size_t at = 0; at < stacks[i].depth; at++) {
			Dl_info info = {0};
			const char *name;

			dladdr((void *)stacks[i].at[at], &info);
			name = info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
			fprintf(file, " %s+%lx", name ? name + 1 : "?",
				(long)(stacks[i].at[at] - (uintptr_t)info.dli_fbase));
		}
		fputc('\n', file);
	}
	if (file)
		fclose(file);
}

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_ALLOC_AT"), *stack = getenv("FAIL_ALLOC_STACK");
	const char *which = stack ? stack : at;
	struct walk walk = {0};

	log_path = getenv("FAIL_ALLOC_LOG");
	child_path = getenv("FAIL_ALLOC_CHILD");
	parent = getpid();
	by_stack = stack != NULL;
	if (stack)
		fail_stack = strtoull(stack, NULL, 16);
	else if (at)
		fail_at = strtol(at, NULL, 10);
	ever_after = which && which[0] != 0 && which[strlen(which) - 1] == '-';
	/* A program that this one starts runs whole. */
	unsetenv("LD_PRELOAD");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		abort();
	_Unwind_Backtrace(step, &walk); /* allocates at its first call */
	atomic_store(&begun, true);
}
