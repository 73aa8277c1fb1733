/*
 * Builds a session, in this order: figures, memory and its limits, workers and their threads.
 */
#include "trainer/train_session.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/train_outfeed.h"
#include "trainer/train_ranks.h"
#include "trainer/train_record.h"
#include "trainer/train_tensors.h"

/* ---- figures --------------------------------------------------------------------------------- */

/* Name the figures of each mode that computes any: the loss, then the metrics. */
static enum status name_figures(struct train_session *session, struct err *err)
{
	for (int mode = IPS_TRAIN; mode < TRAIN_MODES; mode++) {
		const struct plan_program *program = &session->plan->program[mode];
		struct train_figures *figures = &session->program[mode].figures;
		const size_t count = (size_t)program->metrics.count + 1;

		if (!program->measured)
			continue;
		figures->names = arena_alloc(&session->arena, count, sizeof(*figures->names));
		figures->values = arena_alloc(&session->arena, count, sizeof(*figures->values));
		if (!figures->names || !figures->values)
			return err_nomem(err);
		figures->count = (int)count;
		figures->names[0] = "loss";
		for (size_t i = 1; i < count; i++)
			figures->names[i] = program->metrics.items[i - 1].name;
	}
	return ST_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Report that values retained for the program need too much memory. */
static enum status report_retained(const struct train_session *session, double values, double have,
				   struct err *err)
{
	static const char *const fewer[] = {
		[TRAIN_VALUES_EXECUTION] = "a smaller compile.steps_per_execution",
		[TRAIN_VALUES_RUNNING] = "a smaller outfeed.buffer_depth",
		[TRAIN_VALUES_EPOCH] = "a smaller fit.steps_per_epoch",
	};
	char values_text[FMT_SIZE], have_text[FMT_SIZE];

	fmt_bytes(have_text, (uint64_t)have);
	return err_set(err, ST_LIMIT,
		       "outfeed: the values that wait for the program need about %s of memory "
		       "beside the training's and this machine has %s: use filters that let fewer "
		       "tensors pass (outfeed.activations, outfeed.gradients), or %s",
		       values < 1e18 ? fmt_bytes(values_text, (uint64_t)values) : "countless bytes",
		       have_text, fewer[session->values]);
}

/* Check the memory of recorded tensors, which is mostly that of rings of "last N". */
static enum status check_recorded(const struct train_session *session, double have, struct err *err)
{
	struct train_tensors_forecast forecast;
	char need_text[FMT_SIZE], have_text[FMT_SIZE];

	train_tensors_forecast(&forecast, session);
	if (forecast.memory <= have)
		return ST_OK;
	fmt_bytes(have_text, (uint64_t)have);
	return err_set(
		err, ST_LIMIT,
		"outfeed.capture: what is kept in memory of the tensors needs about %s beside "
		"the training's and this machine has %s: use a smaller N in \"last N\", or "
		"rules for fewer tensors",
		forecast.memory < 1e18 ? fmt_bytes(need_text, (uint64_t)forecast.memory)
				       : "countless bytes",
		have_text);
}

/* Reject a model that is too large before allocating memory for it. */
static enum status check_memory(const struct train_session *session, struct err *err)
{
	const double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	const double need = train_replica_bytes(session) * session->replicas;
	const double values = train_tensors_retained(session);
	char need_text[FMT_SIZE], have_text[FMT_SIZE];

	if (isnan(need))
		return err_nomem(err);
	if (need <= have && need + values > have)
		return report_retained(session, values, have, err);
	if (need <= have)
		return !session->recording ? ST_OK
					   : check_recorded(session, have - need - values, err);
	fmt_bytes(have_text, (uint64_t)have);
	if (!(need < 1e18))
		return err_set(err, ST_LIMIT,
			       "model: training needs more memory than can be counted: use a "
			       "smaller model or batch_size");
	return err_set(err, ST_LIMIT,
		       "model: training needs about %s of memory and this machine has %s: use a "
		       "smaller model, batch_size or fewer replicas",
		       fmt_bytes(need_text, (uint64_t)need), have_text);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void init_workers(struct train_session *session)
{
	for (int i = 0; i < session->worker_count; i++) {
		struct train_worker *worker = &session->worker[i];

		worker->session = session;
		worker->replica = &session->replica[i / session->workers_per_replica];
		worker->ipu = i % session->workers_per_replica;
		worker->loss_scale.scale = optimizer_scales_loss(&session->optimizer)
						   ? session->optimizer.loss_scale
						   : 1.0;
		train_signal_init(&worker->finished, false);
	}
}

static enum status start_threads(struct train_session *session, struct err *err)
{
	for (int i = 0; i < session->worker_count; i++) {
		struct train_worker *worker = &session->worker[i];
		int failed;

		failed = thread_start(&worker->thread, train_worker_main, worker);
		if (failed != 0)
			return err_set(err, ST_FAILED, "worker %d: cannot start a thread: %s", i,
				       strerror(failed));
		worker->started = true;
	}
	return ST_OK;
}

static enum status new_pool(struct train_session *session, struct err *err)
{
	const unsigned processors = pool_processors();
	unsigned threads =
		session->run->host.threads > 0 ? (unsigned)session->run->host.threads : processors;
	const unsigned workers = (unsigned)session->worker_count;

	session->oversubscribed = workers > processors || threads > processors;
	if (session->run->host.products == RUN_PRODUCTS_OPENBLAS &&
	    kernel_openblas_open((int)max(threads, workers), err) != ST_OK)
		return err->status;
	return pool_new(&session->pool, threads > workers ? threads - workers : 0, err);
}

static enum status new_barriers(struct train_session *session, struct err *err)
{
	const int stages = session->layout->stages;

	session->barrier = arena_alloc(&session->arena, (size_t)stages, sizeof(*session->barrier));
	session->reduced = mem_aligned(session->model->weights + 1, sizeof(float));
	if (!session->barrier || !session->reduced)
		return err_nomem(err);
	for (; session->barrier_count < stages; session->barrier_count++)
		if (pthread_barrier_init(&session->barrier[session->barrier_count], NULL,
					 (unsigned)session->replicas) != 0)
			return err_set(err, ST_FAILED, "cannot make a barrier");
	if (optimizer_needs_whole_norm(&session->optimizer)) {
		if (pthread_barrier_init(&session->norm_barrier, NULL,
					 (unsigned)session->worker_count) != 0)
			return err_set(err, ST_FAILED, "cannot make a barrier");
		session->norm_meets = true;
	}
	return ST_OK;
}

bool train_session_fits(const struct train_session *session)
{
	return !session->device || ipu_memory_fits(session->device->memory);
}

static enum status build_session(struct train_session *session, struct err *err)
{
	if (name_figures(session, err) != ST_OK)
		return err->status;
	session->sharded = train_shard_wanted(session->ranks, session->run, &session->optimizer);
	if (train_tensors_plan(session, session->recording != NULL, err) != ST_OK)
		return err->status;
	train_ranks_share(session);
	session->workers_per_replica = session->layout->ipus_used;
	session->worker_count = session->replicas * session->workers_per_replica;
	session->replica =
		arena_alloc(&session->arena, (size_t)session->replicas, sizeof(*session->replica));
	session->worker = arena_alloc(&session->arena, (size_t)session->worker_count,
				      sizeof(*session->worker));
	if (!session->replica || !session->worker)
		return err_nomem(err);
	if (new_pool(session, err) != ST_OK)
		return err->status;
	if (!train_session_fits(session)) {
		/* It will not run, so allocate nothing for it. */
		session->worker_count = 0;
		return train_record_start(session, err);
	}
	if (check_memory(session, err) != ST_OK || new_barriers(session, err) != ST_OK)
		return err->status;
	for (int r = 0; r < session->replicas; r++)
		if (train_replica_init(session, r, err) != ST_OK)
			return err->status;
	if (train_ranks_new(session, err) != ST_OK || train_health_read(session, err) != ST_OK ||
	    train_outfeed_new(session, err) != ST_OK || train_health_new(session, err) != ST_OK)
		return err->status;
	init_workers(session);
	if (train_record_start(session, err) != ST_OK)
		return err->status;
	return start_threads(session, err);
}

enum status train_session_new(struct train_session **out, const struct train_session_params *params,
			      struct err *err)
{
	struct train_session *session = mem_calloc(1, sizeof(*session));
	enum status status;

	*out = NULL;
	if (!session || arena_init(&session->arena, 0) != 0) {
		mem_free(session);
		return err_nomem(err);
	}
	session->plan = params->plan;
	session->run = params->plan->run;
	session->layout = params->plan->layout;
	session->model = params->plan->model;
	session->optimizer = params->plan->optimizer;
	session->device = params->plan->device;
	session->train_set = params->train_set;
	session->test_set = params->test_set;
	session->recording = params->recording;
	session->trace_executions = params->trace_executions;
	session->values = params->values;
	session->report = params->report;
	session->ranks = params->ranks;
	session->part = 1;
	session->screen = params->screen;
	session->health.broken = params->broken;
	train_signal_init(&session->go, false);
	train_stop_init(&session->stop_early);
	status = build_session(session, err);
	if (status != ST_OK) {
		train_session_free(session);
		return status;
	}
	*out = session;
	return ST_OK;
}

bool train_session_interrupted(const struct train_session *session)
{
	return session->ranks ? session->interrupted : train_interrupted();
}

void train_session_free(struct train_session *session)
{
	if (!session)
		return;
	atomic_store(&session->stop, true);
	train_signal_set(&session->go, INT64_MAX);
	for (int i = 0; session->worker && i < session->worker_count; i++) {
		struct train_worker *worker = &session->worker[i];

		if (worker->started)
			pthread_join(worker->thread, NULL);
		if (worker->session)
			train_signal_fini(&worker->finished);
	}
	for (int r = 0; session->replica && r < session->replicas; r++)
		train_replica_fini(session, &session->replica[r]);
	for (int i = 0; i < session->barrier_count; i++)
		pthread_barrier_destroy(&session->barrier[i]);
	if (session->norm_meets)
		pthread_barrier_destroy(&session->norm_barrier);
	train_ranks_free(session);
	train_outfeed_close(session, NULL);
	train_tensors_fini(&session->tensors);
	pool_free(session->pool);
	mem_free(session->reduced);
	train_signal_fini(&session->go);
	train_stop_fini(&session->stop_early);
	arena_fini(&session->arena);
	mem_free(session);
}
