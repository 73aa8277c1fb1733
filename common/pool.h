/*
 * Threads that lend a hand: a caller shares numbered slices of work out and helps until all are
 * done.
 *
 * Any number of callers at once. Which thread runs which slice is open, so a slice must write only
 * what is its own, and what the slices are must depend on the work's shape alone, never on the
 * number of threads: then results are the same bytes on any machine load. But slices that lie in
 * the same part of their run tend to the same thread, from run to run: runs over the same memory
 * should number it alike, and each thread finds its part in its own cache. A pool of 0 helpers runs
 * all slices on the caller. A run never allocates.
 *
 * A helper without work looks out for some 20 us, where each thread of the pool has a processor of
 * its own, and then sleeps: waking it costs the caller a few microseconds more.
 *
 * Locking: one mutex guards the list of jobs; slices are taken with atomic counters.
 */
#ifndef COMMON_POOL_H
#define COMMON_POOL_H

#include <stdint.h>

#include "common/err.h"

struct pool;

/* @helpers threads besides the callers. On failure *@out is NULL. */
enum status pool_new(struct pool **out, unsigned helpers, struct err *err);
void pool_free(struct pool *pool); /* accepts NULL; no run may be under way */
unsigned pool_helpers(const struct pool *pool);

/* Threads that can be in one run at a time: helpers and the caller. 1 for NULL. */
unsigned pool_lanes(const struct pool *pool);

typedef void (*pool_slice)(void *context, unsigned slice);

/* Run @slice for 0 .. @slices - 1 on all threads that are free; returns when all have ended. For
 * slices each of which is worth a thread. @pool may be NULL (no helpers). */
void pool_run(struct pool *pool, pool_slice slice, void *context, unsigned slices);

/*
 * The same for work that may be small: no more threads take part than pay.
 *
 * @work is what all slices together take on one thread, in ns, about: right within a factor of two
 * or three is enough. trainer/kernels/kernel_work.h estimates it from shapes.
 */
void pool_share(struct pool *pool, uint64_t work, pool_slice slice, void *context, unsigned slices);

/*
 * The same two for slices that need working memory: @lane, below pool_lanes(), belongs to the
 * thread for as long as the run lasts, so memory by lane is nobody else's. What a slice leaves
 * there must not be read by the next: which slices share a lane is open.
 */
typedef void (*pool_lane_slice)(void *context, unsigned slice, unsigned lane);
void pool_run_lanes(struct pool *pool, pool_lane_slice slice, void *context, unsigned slices);
void pool_share_lanes(struct pool *pool, uint64_t work, pool_lane_slice slice, void *context,
		      unsigned slices);

/* Processors this process may run on (affinity and cgroup quota counted), at least 1. */
unsigned pool_processors(void);

#endif /* COMMON_POOL_H */
