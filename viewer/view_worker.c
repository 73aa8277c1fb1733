/*
 * Jobs: calls of a screen's functions, on the calling thread or on the worker.
 *
 * Threading: view_worker.h. Ownership: the caller owns the job.
 */
#include "viewer/view_worker.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "viewer/draw/view_grid.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool view_lacked_memory(const struct view_context *context)
{
	const bool source = prof_db_lacked_memory(context->source ? context->source->db : NULL);
	const bool target = prof_db_lacked_memory(context->target ? context->target->db : NULL);

	return source || target;
}

static void view_job_load(struct view_job *job)
{
	/* A read that failed before is no failure of this load. */
	view_lacked_memory(job->context);
	job->context->more = false;
	job->err.status = job->ops->load(job->state, job->context, job->news, &job->err);
	if (job->err.status != ST_OK)
		return;
	/* A screen may omit data that it failed to read, but not data whose loading the user
	 * cancelled. */
	if (view_lacked_memory(job->context))
		err_nomem(&job->err);
	else if (view_cancelled(job->context))
		err_set(&job->err, ST_INTERRUPTED, "stopped");
}

static struct view_grid *view_job_grid(const struct view_job *job)
{
	return job->ops->grid ? job->ops->grid(job->state) : NULL;
}

static void view_job_request(struct view_job *job)
{
	struct view_grid *grid;

	if (job->due)
		view_job_load(job);
	if (job->err.status != ST_OK)
		return;
	job->answer = job->ops->request ? job->ops->request(job->state, job->context, job->request)
					: VIEW_UNHANDLED;
	grid = view_job_grid(job);
	if (job->answer == VIEW_UNHANDLED && grid)
		job->answer = view_grid_request(grid, job->request);
}

static void view_job_search(struct view_job *job)
{
	struct view_grid *grid = view_job_grid(job);

	job->context->hit = job->context->hits = 0;
	if (job->ops->search)
		job->found = job->ops->search(job->state, job->context, job->text, job->forward);
	else
		job->found = grid && view_grid_search(grid, job->context, job->text, job->forward);
}

static void view_job_filter(struct view_job *job)
{
	struct view_grid *grid = view_job_grid(job);

	if (job->ops->filter)
		job->ops->filter(job->state, job->text);
	else if (grid)
		view_grid_filter(grid, job->text);
}

static void view_job_key(struct view_job *job)
{
	job->answer = job->ops->type(job->state, job->context, job->key);
}

static void view_job_click(struct view_job *job)
{
	struct view_grid *grid;

	job->answer = job->ops->click ? job->ops->click(job->state, job->context, job->x, job->y)
				      : VIEW_UNHANDLED;
	grid = view_job_grid(job);
	if (job->answer == VIEW_UNHANDLED && grid)
		job->answer = view_grid_click(grid, job->x, job->y);
}

static void view_job_go(struct view_job *job)
{
	if (!job->fresh) {
		view_job_load(job);
		job->fresh = job->err.status == ST_OK;
	}
	if (job->err.status == ST_OK)
		job->err.status = job->ops->go(job->state, job->context, &job->place, &job->err);
}

/* Look up whether the layer has hits in the target, if the source has none. */
static enum status view_job_hits(struct view_job *job)
{
	struct view_place *place = &job->place, its;
	enum status status;

	if (!job->context->target || !job->context->target->db || place->layer_hits != 0)
		return ST_OK;
	view_place_clear(&its);
	view_place_text(its.layer, place->layer);
	status = view_place_complete(&its, job->context->target->db, &job->err);
	place->layer_hits = its.layer_hits;
	return status;
}

static void view_job_join(struct view_job *job)
{
	struct view_place *place = &job->place;
	const bool target = place->target_only == 1 && job->context->target;
	struct prof_db *db = target ? job->context->target->db : job->context->source->db;

	if (db)
		job->err.status = view_place_complete(place, db, &job->err);
	if (job->err.status == ST_OK)
		job->err.status = view_job_hits(job);
	/* The target's ids mean something else in the source; names are the same. */
	if (target)
		place->program_id = place->program_step = place->variable_id = IPS_NULL;
	for (int i = 0; i < VIEW_SCREENS && job->err.status == ST_OK; i++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)i);
		char text[VIEW_PLACE_NAME];

		if (ops->offers && ops->go && ops->offers(place, text, sizeof(text)))
			job->offering |= 1u << i;
	}
}

/* Find the screens that know more of what is under the cursor now, for the key line: drawing must
 * not read the report. If that fails, or the run still records, they may all know more. */
static void view_job_offering(struct view_job *job)
{
	const struct err err = job->err;
	const bool loaded = job->fresh || job->kind == VIEW_LOAD_JOB || job->due;

	if (!job->ops->place || !loaded || err.status != ST_OK)
		return;
	view_place_clear(&job->place);
	if (!job->ops->place(job->state, &job->place))
		return;
	/* Each reading of a database that is being written holds its log: only the load reads it. */
	if (job->context->source->state != VIEW_RECORDING)
		view_job_join(job);
	if (job->context->source->state == VIEW_RECORDING || job->err.status != ST_OK)
		job->offering = ~0u;
	job->err = err;
	/* The user cancelled the load, whose message says so. */
	if (view_cancelled(job->context) && (job->kind == VIEW_LOAD_JOB || job->due))
		err_set(&job->err, ST_INTERRUPTED, "stopped");
}

static void view_job_write(struct view_job *job)
{
	job->err.status =
		view_screen_rows(job->ops, job->state, job->context, &job->table, &job->err);
}

static void view_job_runs(struct view_job *job)
{
	job->err.status = view_runs_read(job->runs, job->context, &job->err);
}

void view_job_run(void *user)
{
	static void (*const runs[])(struct view_job *) = {
		[VIEW_LOAD_JOB] = view_job_load,     [VIEW_REQUEST_JOB] = view_job_request,
		[VIEW_SEARCH_JOB] = view_job_search, [VIEW_FILTER_JOB] = view_job_filter,
		[VIEW_KEY_JOB] = view_job_key,       [VIEW_CLICK_JOB] = view_job_click,
		[VIEW_GO_JOB] = view_job_go,         [VIEW_JOIN_JOB] = view_job_join,
		[VIEW_WRITE_JOB] = view_job_write,   [VIEW_RUNS_JOB] = view_job_runs};
	struct view_job *job = user;
	const uint64_t start = clock_ns();

	job->err.status = ST_OK;
	runs[job->kind](job);
	if (view_job_moves(job))
		view_job_offering(job);
	job->took_ns = clock_ns() - start;
}

/* ---- the thread ------------------------------------------------------------------------------ */

#define SECOND_NS UINT64_C(1000000000)

struct view_worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t given, done;
	void (*job)(void *user); /* NULL: none is queued or running */
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

static void view_worker_free(struct view_worker *worker)
{
	pthread_cond_destroy(&worker->given);
	pthread_cond_destroy(&worker->done);
	pthread_mutex_destroy(&worker->mutex);
	mem_free(worker);
}

enum status view_worker_start(struct view_worker **out, int wake_fd, struct err *err)
{
	pthread_condattr_t clock;
	struct view_worker *worker = mem_calloc(1, sizeof(*worker));
	int failed;

	*out = NULL;
	if (!worker)
		return err_nomem(err);
	worker->wake_fd = wake_fd;

	/* Use the monotonic clock, so that a change of the system time does not affect waits. */
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_cond_init(&worker->given, &clock);
	pthread_cond_init(&worker->done, &clock);
	pthread_condattr_destroy(&clock);
	failed = thread_start(&worker->thread, view_worker_main, worker);
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
