/*
 * Threads, and a pool of them: a caller divides work into numbered slices and works on them
 * together with the pool's helper threads until all are done.
 *
 * Any number of callers may run at once. Which thread runs which slice is unspecified. A slice must
 * write only its own results, and the division into slices must depend on the shape of the work
 * only, never on the number of threads: then results are the same bytes under any load. Slices at
 * the same relative position tend to run on the same thread in every run: runs over the same memory
 * should number it alike, so that each thread finds its part in its own cache. A pool of 0 helpers
 * runs all slices on the caller. A run never allocates.
 *
 * An idle helper spins for about 20 us, if each thread of the pool has a processor to itself, and
 * then sleeps: waking it costs the caller a few microseconds more.
 *
 * Locking: one mutex guards the list of jobs; atomic counters hand out slices.
 */
#ifndef COMMON_POOL_H
#define COMMON_POOL_H

#include <pthread.h>
#include <stdint.h>

#include "common/err.h"

/*
 * Start a thread that runs @run. Signals to the process are blocked in it, so that their handlers
 * run on the program's own threads: a handler of a program that links our libraries knows nothing
 * of ours. Faults (SIGSEGV, SIGBUS) still reach their handlers. Return 0 or an errno.
 */
int thread_start(pthread_t *thread, void *(*run)(void *), void *user);

struct pool;

/* Start @helpers threads; callers work too. On failure *@out is NULL. */
enum status pool_new(struct pool **out, unsigned helpers, struct err *err);
void pool_free(struct pool *pool); /* accepts NULL; no run may be in progress */
unsigned pool_helpers(const struct pool *pool);

/* Most threads in one run: the helpers and the caller. 1 for NULL. */
unsigned pool_lanes(const struct pool *pool);

typedef void (*pool_slice)(void *context, unsigned slice);

/* Run @slice for 0 .. @slices - 1 on all free threads; return when all slices have ended. Each
 * slice should be worth a thread. @pool may be NULL (no helpers). */
void pool_run(struct pool *pool, pool_slice slice, void *context, unsigned slices);

/*
 * pool_run() for work that may be small: use only as many threads as pay off.
 *
 * @work is the estimated time of all slices together on one thread, in ns; a factor of two or three
 * is close enough. trainer/kernels/kernel_work.h estimates it from shapes.
 */
void pool_share(struct pool *pool, uint64_t work, pool_slice slice, void *context, unsigned slices);

/*
 * The same two for slices that need scratch memory: @lane, below pool_lanes(), belongs to one
 * thread for the whole run, so memory indexed by lane is private to it. A slice must not read what
 * an earlier slice left there: which slices share a lane is unspecified.
 */
typedef void (*pool_lane_slice)(void *context, unsigned slice, unsigned lane);
void pool_run_lanes(struct pool *pool, pool_lane_slice slice, void *context, unsigned slices);
void pool_share_lanes(struct pool *pool, uint64_t work, pool_lane_slice slice, void *context,
		      unsigned slices);

/* Processors that this process may use (affinity and cgroup quota), at least 1. */
unsigned pool_processors(void);

/*
 * Parts of the pool that its tests use.
 */

/*
 * The least work per thread in a run, in ns, to use a helper that is awake and one that has to be
 * woken. Measured with bench_pool on a Xeon (Sapphire Rapids, virtual machine): two threads break
 * even with one at 3 and at 12 us if slices touch no memory, and at twice that if they do, since
 * cache lines then move between cores.
 */
#define POOL_LANE_WORK 3000
#define POOL_WAKE_WORK 12000

/*
 * CPU quota of the process's cgroup in processors, rounded up; 0: no limit. @membership is the file
 * that names the process's groups (/proc/self/cgroup), @mount their mount point (/sys/fs/cgroup).
 */
unsigned pool__quota(const char *membership, const char *mount);

#endif /* COMMON_POOL_H */
