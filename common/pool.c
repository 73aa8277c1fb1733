/*
 * Thread pool.
 *
 * A job lives on its caller's stack and is in the pool's list while it has slices left. Its slices
 * are divided into ranges, one per participating thread. A thread first runs the slices of its own
 * range, the same one in every job, and then those left in other ranges: so it mostly finds in its
 * own cache what it wrote in the previous job. A helper enters a job under the lock (inside++),
 * claims slices from the atomic counters of the ranges, and leaves under the lock (inside--); it
 * does not touch the job afterwards. The caller claims slices too. When none are left, it unlinks
 * the job, so that no other helper enters, and waits until those inside have left. So each slice
 * runs once, and no thread refers to the job after pool_run() returns.
 *
 * Locking: pool.lock guards the list, jobs' inside, asleep and waiting; it is never held while a
 * slice runs. Slices may call pool_run() of the same pool: a caller waits only for threads that run
 * slices.
 */
#include "common/minmax.h"
#include "common/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#define POOL_SPIN_NS 20000 /* runs follow each other closely; going to sleep costs as much */
#define POOL_RANGES  64    /* further threads share the ranges of others */

struct pool_range {
	/* Wider than a slice number, so that increments past the end cannot wrap. */
	_Alignas(64) _Atomic uint64_t next;
	uint64_t end;
};

struct pool_job {
	pool_lane_slice slice;
	void *context;
	atomic_uint inside; /* helpers working on the job; written under the lock */
	unsigned lanes;     /* lanes assigned so far; the caller's is 0. Under the lock */
	unsigned lanes_most, wakes_most;
	unsigned ranges;
	struct pool_job *link;
	struct pool_range range[POOL_RANGES];
};

struct pool_thread {
	pthread_t thread;
	struct pool *pool;
	unsigned number; /* from 1; callers are 0 */
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* helpers wait on it */
	pthread_cond_t left; /* callers wait on it */
	struct pool_job *jobs;
	atomic_uint arrivals; /* changes when a job arrives or the pool ends: helpers spin on it */
	unsigned asleep, waiting; /* numbers of helpers; of callers */
	bool ending;
	bool spin;
	unsigned helpers;
	struct pool_thread threads[];
};

static void pool_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static bool pool_has_slices(struct pool_job *job)
{
	for (unsigned i = 0; i < job->ranges; i++)
		if (atomic_load_explicit(&job->range[i].next, memory_order_relaxed) <
		    job->range[i].end)
			return true;
	return false;
}

static void pool_run_slices(struct pool_job *job, unsigned lane, unsigned number)
{
	for (unsigned i = 0; i < job->ranges; i++) {
		struct pool_range *range = &job->range[(number + i) % job->ranges];
		uint64_t slice;

		while ((slice = atomic_fetch_add_explicit(&range->next, 1, memory_order_relaxed)) <
		       range->end)
			job->slice(job->context, (unsigned)slice, lane);
	}
}

/* Return the job with the fewest helpers, to balance concurrent callers. Lock held. */
static struct pool_job *pool_choose_job(struct pool *pool)
{
	struct pool_job *chosen = NULL;

	for (struct pool_job *job = pool->jobs; job; job = job->link) {
		if (job->lanes == job->lanes_most || !pool_has_slices(job))
			continue;
		if (!chosen || atomic_load_explicit(&job->inside, memory_order_relaxed) <
				       atomic_load_explicit(&chosen->inside, memory_order_relaxed))
			chosen = job;
	}
	return chosen;
}

/* Work on @job. Lock held at entry and exit. */
static void pool_work_on(struct pool_thread *thread, struct pool_job *job)
{
	struct pool *pool = thread->pool;
	/* When a helper leaves a job, it has no slices left: each helper enters at most once. */
	unsigned lane = job->lanes++;

	assert(lane <= pool->helpers);
	atomic_fetch_add_explicit(&job->inside, 1, memory_order_relaxed);
	pthread_mutex_unlock(&pool->lock);
	pool_run_slices(job, lane, thread->number);
	pthread_mutex_lock(&pool->lock);
	/* Release: a caller that spins on the counter sees what the slices wrote. */
	if (atomic_fetch_sub_explicit(&job->inside, 1, memory_order_release) == 1 && pool->waiting)
		pthread_cond_broadcast(&pool->left);
}

/* Wait for the next arrival. Lock held at entry and exit. */
static void pool_wait_for_job(struct pool *pool)
{
	unsigned seen = atomic_load_explicit(&pool->arrivals, memory_order_relaxed);

	if (pool->spin) {
		uint64_t until = clock_ns() + POOL_SPIN_NS;

		pthread_mutex_unlock(&pool->lock);
		while (atomic_load_explicit(&pool->arrivals, memory_order_relaxed) == seen &&
		       clock_ns() < until)
			pool_pause();
		pthread_mutex_lock(&pool->lock);
	}

	pool->asleep++;
	while (atomic_load_explicit(&pool->arrivals, memory_order_relaxed) == seen)
		pthread_cond_wait(&pool->wake, &pool->lock);
	pool->asleep--;
}

static void *pool_helper(void *argument)
{
	struct pool_thread *thread = argument;
	struct pool *pool = thread->pool;

	pthread_mutex_lock(&pool->lock);
	while (!pool->ending) {
		struct pool_job *job = pool_choose_job(pool);

		if (job)
			pool_work_on(thread, job);
		else
			pool_wait_for_job(pool);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Join the first @started threads and free the pool. */
static void pool_destroy(struct pool *pool, unsigned started)
{
	pthread_mutex_lock(&pool->lock);
	assert(!pool->jobs);
	pool->ending = true;
	atomic_fetch_add(&pool->arrivals, 1);
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->lock);

	for (unsigned i = 0; i < started; i++)
		pthread_join(pool->threads[i].thread, NULL);
	pthread_cond_destroy(&pool->left);
	pthread_cond_destroy(&pool->wake);
	pthread_mutex_destroy(&pool->lock);
	mem_free(pool);
}

int thread_start(pthread_t *thread, void *(*run)(void *), void *user)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t blocked, before;
	int number;

	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	number = pthread_create(thread, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return number;
}

enum status pool_new(struct pool **out, unsigned helpers, struct err *err)
{
	struct pool *pool;
	unsigned started = 0;
	int number;

	*out = NULL;
	pool = mem_calloc(1, sizeof(*pool) + helpers * sizeof(pool->threads[0]));
	if (!pool)
		return err_nomem(err);

	pool->helpers = helpers;
	pool->spin = helpers < pool_processors(); /* a processor for each helper and a caller */
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->wake, NULL);
	pthread_cond_init(&pool->left, NULL);

	number = 0;
	while (started < pool->helpers && !number) {
		struct pool_thread *thread = &pool->threads[started];

		thread->pool = pool;
		thread->number = started + 1;
		number = thread_start(&thread->thread, pool_helper, thread);
		if (!number)
			++started;
	}

	if (number) {
		pool_destroy(pool, started);
		return err_set(err, ST_FAILED, "cannot start thread %u of %u: %s", started + 1,
			       helpers, strerror(number));
	}

	*out = pool;
	return ST_OK;
}

void pool_free(struct pool *pool)
{
	if (pool)
		pool_destroy(pool, pool->helpers);
}

unsigned pool_helpers(const struct pool *pool)
{
	return pool ? pool->helpers : 0;
}

unsigned pool_lanes(const struct pool *pool)
{
	return pool_helpers(pool) + 1;
}

static bool pool_job_is_left(struct pool_job *job)
{
	return atomic_load_explicit(&job->inside, memory_order_acquire) == 0;
}

static void pool_wait_for_helpers(struct pool *pool, struct pool_job *job)
{
	struct pool_job **link = &pool->jobs;

	pthread_mutex_lock(&pool->lock);
	while (*link != job)
		link = &(*link)->link;
	*link = job->link;
	pthread_mutex_unlock(&pool->lock);

	if (pool->spin && !pool_job_is_left(job)) {
		uint64_t until = clock_ns() + POOL_SPIN_NS;

		while (!pool_job_is_left(job) && clock_ns() < until)
			pool_pause();
	}
	if (pool_job_is_left(job))
		return;

	pthread_mutex_lock(&pool->lock);
	pool->waiting++;
	while (!pool_job_is_left(job))
		pthread_cond_wait(&pool->left, &pool->lock);
	pool->waiting--;
	pthread_mutex_unlock(&pool->lock);
}

static unsigned pool_min(uint64_t a, unsigned b)
{
	return a < b ? (unsigned)a : b;
}

/* Number of threads to use: at most one per slice and one per @least of @work. */
static unsigned pool_threads(const struct pool *pool, uint64_t work, uint64_t least,
			     unsigned slices)
{
	return pool_min(work / least, pool_min(slices, pool_lanes(pool)));
}

void pool_share_lanes(struct pool *pool, uint64_t work, pool_lane_slice slice, void *context,
		      unsigned slices)
{
	unsigned lanes = pool_threads(pool, work, POOL_LANE_WORK, slices);
	unsigned awake = pool_threads(pool, work, POOL_WAKE_WORK, slices);
	struct pool_job job;
	unsigned wakes;

	if (lanes < 2) {
		for (unsigned i = 0; i < slices; i++)
			slice(context, i, 0);
		return;
	}

	job.slice = slice;
	job.context = context;
	job.lanes = 1;
	job.lanes_most = lanes;
	job.wakes_most = awake > 1 ? awake - 1 : 0; /* less the caller */
	job.ranges = pool_min(lanes, POOL_RANGES);
	atomic_init(&job.inside, 0);
	for (unsigned i = 0; i < job.ranges; i++) {
		atomic_init(&job.range[i].next, (uint64_t)slices * i / job.ranges);
		job.range[i].end = (uint64_t)slices * (i + 1) / job.ranges;
	}

	pthread_mutex_lock(&pool->lock);
	job.link = pool->jobs;
	pool->jobs = &job;
	atomic_fetch_add_explicit(&pool->arrivals, 1, memory_order_relaxed);
	wakes = min(job.wakes_most, pool->asleep);
	pthread_mutex_unlock(&pool->lock);

	for (unsigned i = 0; i < wakes; i++)
		pthread_cond_signal(&pool->wake);

	pool_run_slices(&job, 0, 0);
	pool_wait_for_helpers(pool, &job);
}

void pool_run_lanes(struct pool *pool, pool_lane_slice slice, void *context, unsigned slices)
{
	pool_share_lanes(pool, UINT64_MAX, slice, context, slices);
}

/* Context of a slice that needs no lane. */
struct pool_plain {
	pool_slice slice;
	void *context;
};

static void pool_plain_slice(void *context, unsigned slice, unsigned lane)
{
	const struct pool_plain *plain = context;

	(void)lane;
	plain->slice(plain->context, slice);
}

void pool_share(struct pool *pool, uint64_t work, pool_slice slice, void *context, unsigned slices)
{
	struct pool_plain plain = {slice, context};

	pool_share_lanes(pool, work, pool_plain_slice, &plain, slices);
}

void pool_run(struct pool *pool, pool_slice slice, void *context, unsigned slices)
{
	pool_share(pool, UINT64_MAX, slice, context, slices);
}

/* ---- processors ------------------------------------------------------------------------------ */

#define POOL_FILE_LIMIT 65536

/* Read the first two words of @path as numbers; false if one is not a number ("max"). */
static bool pool_read_numbers(const char *path, long long *first, long long *second)
{
	char *text, *word, *rest = NULL;
	bool good = false;
	size_t length;

	if (fs_read(path, POOL_FILE_LIMIT, &text, &length, NULL) != ST_OK)
		return false;

	word = strtok_r(text, " \n", &rest);
	if (word && str_to_int(word, first)) {
		word = second ? strtok_r(NULL, " \n", &rest) : NULL;
		good = !second || (word && str_to_int(word, second));
	}
	mem_free(text);
	return good;
}

/* Quota of the single group at @folder in processors, rounded up; 0: none. */
static unsigned pool_group_quota(const char *folder)
{
	char path[FS_PATH_SIZE], other[FS_PATH_SIZE];
	long long quota = 0, period = 0;
	bool found;

	found = fs_path(path, "%s/cpu.max", folder) && pool_read_numbers(path, &quota, &period);
	if (!found)
		found = fs_path(path, "%s/cpu.cfs_quota_us", folder) &&
			fs_path(other, "%s/cpu.cfs_period_us", folder) &&
			pool_read_numbers(path, &quota, NULL) &&
			pool_read_numbers(other, &period, NULL);
	if (!found || quota <= 0 || period <= 0)
		return 0;

	return (unsigned)((quota - 1) / period + 1);
}

/* The smallest quota from @group up to the root: each level limits those below it. */
static unsigned pool_tree_quota(const char *mount, const char *group)
{
	char folder[FS_PATH_SIZE];
	size_t base = strlen(mount);
	unsigned least = 0;
	char *cut;

	if (!fs_path(folder, "%s%s", mount, group))
		return 0;

	for (;;) {
		unsigned quota = pool_group_quota(folder);

		if (quota && (!least || quota < least))
			least = quota;
		if (strlen(folder) <= base)
			break;
		cut = strrchr(folder + base, '/');
		if (!cut)
			break;
		*cut = '\0';
	}
	return least;
}

/* Quota of a line "ID:CONTROLLERS:PATH"; version 2 has no controllers. */
static unsigned pool_line_quota(char *line, const char *mount)
{
	char root[FS_PATH_SIZE];
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	char *rest = NULL;

	if (!path)
		return 0;
	*path++ = '\0';
	controllers++;
	if (!*controllers)
		return pool_tree_quota(mount, path);

	if (!fs_path(root, "%s/%s", mount, controllers))
		return 0;
	for (char *word = strtok_r(controllers, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest)) {
		if (strcmp(word, "cpu") != 0)
			continue;
		/* "cpu" is usually a link to "cpu,cpuacct", but not everywhere. */
		if (!fs_is_dir(root) && !fs_path(root, "%s/cpu", mount))
			return 0;
		return pool_tree_quota(root, path);
	}
	return 0;
}

unsigned pool__quota(const char *membership, const char *mount)
{
	unsigned least = 0;
	char *text, *rest = NULL;
	size_t length;

	if (fs_read(membership, POOL_FILE_LIMIT, &text, &length, NULL) != ST_OK)
		return 0;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned quota = pool_line_quota(line, mount);

		if (quota && (!least || quota < least))
			least = quota;
	}
	mem_free(text);
	return least;
}

unsigned pool_processors(void)
{
	unsigned count = 0, quota = pool__quota("/proc/self/cgroup", "/sys/fs/cgroup");
	cpu_set_t set;

	/* Fails on machines with more processors than the set can hold. */
	if (!sched_getaffinity(0, sizeof(set), &set)) {
		count = (unsigned)CPU_COUNT(&set);
	} else {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		count = online > 0 ? (unsigned)online : 1;
	}

	if (quota && quota < count)
		count = quota;
	return count ? count : 1;
}
