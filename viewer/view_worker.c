/*
 * One thread, one job.
 *
 * Locking: the mutex guards job and done. Ownership: the worker owns its thread.
 */
#include "viewer/view_worker.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"

#define SECOND_NS UINT64_C(1000000000)

struct view_worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t given, done;
	void (*job)(void *user); /* NULL: none is waiting or running */
	void *user;
	int wake_fd;
	bool stop;
};

static void *view_worker_main(void *user)
{
	struct view_worker *worker = user;

	pthread_mutex_lock(&worker->mutex);
	for (;;) {
		while (!worker->job && !worker->stop)
			pthread_cond_wait(&worker->given, &worker->mutex);
		if (!worker->job)
			break;
		pthread_mutex_unlock(&worker->mutex);
		worker->job(worker->user);
		pthread_mutex_lock(&worker->mutex);
		worker->job = NULL;
		pthread_cond_signal(&worker->done);
		if (worker->wake_fd >= 0 && write(worker->wake_fd, "", 1) < 0)
			errno = 0; /* a full pipe wakes as well */
	}
	pthread_mutex_unlock(&worker->mutex);
	return NULL;
}

/* Waits must not jump with the time of day. */
static void view_worker_conditions(struct view_worker *worker)
{
	pthread_condattr_t clock;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_cond_init(&worker->given, &clock);
	pthread_cond_init(&worker->done, &clock);
	pthread_condattr_destroy(&clock);
}

static void view_worker_free(struct view_worker *worker)
{
	pthread_cond_destroy(&worker->given);
	pthread_cond_destroy(&worker->done);
	pthread_mutex_destroy(&worker->mutex);
	mem_free(worker);
}

enum status view_worker_start(struct view_worker **out, int wake_fd, struct err *err)
{
	struct view_worker *worker = mem_calloc(1, sizeof(*worker));
	int failed;

	*out = NULL;
	if (!worker)
		return err_nomem(err);
	worker->wake_fd = wake_fd;
	view_worker_conditions(worker);
	failed = pthread_create(&worker->thread, NULL, view_worker_main, worker);
	if (failed) {
		view_worker_free(worker);
		return err_set(err, ST_LIMIT, "no thread could be started: %s", strerror(failed));
	}
	*out = worker;
	return ST_OK;
}

void view_worker_stop(struct view_worker *worker)
{
	if (!worker)
		return;
	pthread_mutex_lock(&worker->mutex);
	worker->stop = true;
	pthread_cond_signal(&worker->given);
	pthread_mutex_unlock(&worker->mutex);
	pthread_join(worker->thread, NULL);
	view_worker_free(worker);
}

void view_worker_give(struct view_worker *worker, void (*job)(void *user), void *user)
{
	pthread_mutex_lock(&worker->mutex);
	worker->user = user;
	worker->job = job;
	pthread_cond_signal(&worker->given);
	pthread_mutex_unlock(&worker->mutex);
}

bool view_worker_wait(struct view_worker *worker, uint64_t ns)
{
	struct timespec until;
	bool done;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)((uint64_t)until.tv_nsec + ns) / (time_t)SECOND_NS;
	until.tv_nsec = (long)(((uint64_t)until.tv_nsec + ns) % SECOND_NS);
	pthread_mutex_lock(&worker->mutex);
	while (worker->job && ns > 0)
		if (pthread_cond_timedwait(&worker->done, &worker->mutex, &until) == ETIMEDOUT)
			break;
	done = !worker->job;
	pthread_mutex_unlock(&worker->mutex);
	return done;
}
