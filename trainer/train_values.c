/*
 * Passes values of outfeed queues to callbacks: which queues are wanted, and when their values are
 * dequeued, finished and released. The thread of asynchronous callbacks polls for steps that all
 * replicas have completed, dequeues their values, and calls batch_end.
 */
#include "trainer/train_outfeed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/pool.h"
#include "trainer/train_phase.h"

#define WAIT_LEAST_NS  1000000
#define WAIT_MOST_NS   50000000
#define WAIT_VALUES_NS 1000000

/* ---- values ---------------------------------------------------------------------------------- */

bool train_values_running(const struct run_file *run)
{
	/* Accumulated outfeeds have no values before the end of a pipeline run. */
	return run->fit.asynchronous_callbacks && !run->pipeline.accumulate_outfeed;
}

enum train_values train_values_of(const struct run_file *run, const struct callbacks *callbacks,
				  bool kept)
{
	if (kept)
		return TRAIN_VALUES_EPOCH;
	if (!callbacks_dequeue_outfeeds(callbacks))
		return TRAIN_VALUES_NONE;
	/* With LAST the value is known only after all enqueues. */
	return train_values_running(run) && !run->outfeed.last ? TRAIN_VALUES_RUNNING
							       : TRAIN_VALUES_EXECUTION;
}

static void deliver_value(void *user, const struct outfeed_value *value)
{
	const struct ips_trainer_outfeed sent = {
		.queue = value->queue,
		.key = value->key,
		.kind = outfeed_kind_text(value->kind),
		.layer = value->layer,
		.shape = value->shape,
		.ndim = value->ndim,
		.keys = value->keys,
		.values = value->values,
		.count = value->count,
	};

	callbacks_outfeed(user, &sent);
}

/* Pass arrived values to @callbacks (NULL: discard them). While workers enqueue (@running) dequeue
 * at most one enqueue of each queue, so that no queue waits for another. Return false if there was
 * nothing. */
static bool values_dequeue(struct train_session *session, const struct callbacks *callbacks,
			   bool running)
{
	return session->values != TRAIN_VALUES_NONE &&
	       train_outfeed_next(session, running, callbacks ? deliver_value : NULL,
				  (void *)callbacks);
}

void train_values_finish(struct train_session *session, const struct callbacks *callbacks)
{
	while (values_dequeue(session, callbacks, false))
		;
	if (session->values == TRAIN_VALUES_EXECUTION)
		train_outfeed_restart(session);
}

void train_values_begin_epoch(struct train_session *session)
{
	if (session->values == TRAIN_VALUES_EPOCH)
		train_outfeed_restart(session);
}

/* ---- asynchronous callbacks ------------------------------------------------------------------ */

struct train_async {
	struct train_phase *phase;
	const struct callbacks *callbacks;
	const struct callback_host *host;
	struct ips_log *logs;
	double *values;
	int64_t called; /* steps of the execution delivered so far */
	_Atomic bool ended;
	bool started;
	pthread_t thread;
	struct err err; /* the first failure */
};

static void call_step(struct train_async *async, int64_t step)
{
	const struct train_figures *figures = async->phase->figures;
	const struct train_session *session = async->phase->session;
	const struct ips_logs logs = {async->logs, figures->count};
	const struct callback_event event = {.moment = CALLBACK_BATCH_END,
					     .host = async->host,
					     .which = CALLBACK_RUNNING,
					     .mode = async->phase->mode,
					     .batch = session->execution.first_step + step,
					     .logs = &logs,
					     .err = &async->err};

	for (int r = 0; r < session->layout->replicas && !err_stuck(&async->err); r++) {
		train_phase_step(async->phase, step, r, async->values);
		for (int i = 0; i < figures->count; i++)
			async->logs[i] = (struct ips_log){figures->names[i], async->values[i]};
		callbacks_call(async->callbacks, &event);
	}
}

static void *async_main(void *argument)
{
	struct train_async *async = argument;
	struct train_session *session = async->phase->session;
	/* Workers may wait for room in a queue, but never for a step's results. */
	const int64_t most_ns =
		session->values == TRAIN_VALUES_RUNNING ? WAIT_VALUES_NS : WAIT_MOST_NS;
	int64_t wait_ns = WAIT_LEAST_NS;

	for (;;) {
		/* Read `ended` first: what workers did before it was set is visible after this. */
		const bool ended = atomic_load_explicit(&async->ended, memory_order_acquire);
		const struct timespec pause = {0, wait_ns};
		/* After a failure values are discarded, so that workers do not block on a full
		 * queue. */
		bool any = values_dequeue(session, err_stuck(&async->err) ? NULL : async->callbacks,
					  true);

		if (async->called < train_phase_steps_done(async->phase)) {
			call_step(async, async->called++);
			any = true;
		}
		if (any) {
			wait_ns = WAIT_LEAST_NS;
		} else if (ended) {
			return NULL;
		} else {
			nanosleep(&pause, NULL);
			wait_ns = wait_ns < most_ns / 2 ? 2 * wait_ns : most_ns;
		}
	}
}

/* Called when the execution is planned and the workers are still idle. */
static void async_start(void *user)
{
	struct train_async *async = user;
	int failed;

	async->called = 0;
	atomic_store(&async->ended, false);
	failed = thread_start(&async->thread, async_main, async);
	async->started = failed == 0;
	/* Without a thread that dequeues while an execution runs, workers must not wait for room. */
	if (failed != 0 && async->phase->session->values == TRAIN_VALUES_RUNNING)
		train_outfeed_abandon(async->phase->session);
	if (failed != 0 && !err_stuck(&async->err))
		err_set(&async->err, ST_FAILED, "asynchronous callbacks: cannot start a thread: %s",
			strerror(failed));
}

enum status train_async_new(struct train_async **out, struct train_phase *phase,
			    const struct callbacks *callbacks, const struct callback_host *host,
			    struct err *err)
{
	struct train_async *async = mem_calloc(1, sizeof(*async));
	const size_t count = (size_t)phase->figures->count;

	*out = NULL;
	if (!async)
		return err_nomem(err);
	async->phase = phase;
	async->callbacks = callbacks;
	async->host = host;
	async->logs = mem_calloc(count, sizeof(*async->logs));
	async->values = mem_calloc(count, sizeof(*async->values));
	if (!async->logs || !async->values) {
		train_async_free(async);
		return err_nomem(err);
	}
	phase->planned = async_start;
	phase->user = async;
	*out = async;
	return ST_OK;
}

void train_async_join(struct train_async *async, struct err *err)
{
	atomic_store_explicit(&async->ended, true, memory_order_release);
	if (async->started)
		pthread_join(async->thread, NULL);
	async->started = false;
	if (!err_stuck(err))
		*err = async->err;
}

void train_async_free(struct train_async *async)
{
	if (!async)
		return;
	mem_free(async->logs);
	mem_free(async->values);
	mem_free(async);
}
