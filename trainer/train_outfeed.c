/*
 * From the run file to queues and tensors, and from a worker's place to the order of execution.
 *
 * Ownership: the session's; keys belong to their queues. Threading: as the header says.
 */
#include "trainer/train_outfeed.h"

#include <string.h>
#include <sys/statvfs.h>

#include "common/mem.h"
#include "trainer/train_outfeed_queue.h"

struct train_outfeed {
	struct outfeed *outfeed;
	struct train_queues *queues;
};

/* ---- making -----------------------------------------------------------------------------------
 */

enum status train_outfeed_plan_session(struct train_session *session, struct err *err)
{
	struct train_outfeed_plan *plan = &session->outfeed_plan;
	enum status status;

	session->taps = arena_alloc(&session->arena, (size_t)session->model->layer_count + 1,
				    sizeof(*session->taps));
	if (session->taps == NULL)
		return err_nomem(err);
	if (session->layout->steps_per_epoch == 0)
		return ST_OK;
	status = train_outfeed_plan(plan, &session->arena, session->run, session->model,
				    session->layout, err);
	for (int i = 0; status == ST_OK && i < plan->send_count; i++)
		if (plan->sends[i].sent)
			session->taps[plan->sends[i].layer] |= STAGE_LOOK;
	return status;
}

/* A report never takes more than half of what its disk has free. */
static int64_t budget_of(const struct train_session *session)
{
	int64_t budget = session->run->outfeed.budget;
	struct statvfs disk;
	double half;

	if (session->report == NULL || statvfs(session->report, &disk) != 0)
		return budget;
	half = (double)disk.f_bavail * (double)disk.f_frsize / 2;
	return half < (double)budget ? (int64_t)half : budget;
}

static enum status new_recorder(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	const struct outfeed_params params = {
		.recording = session->recording,
		.policy = &session->run->outfeed.capture,
		.replicas = session->layout->replicas,
		.budget = budget_of(session),
		.pool = session->pool,
	};

	return outfeed_new(&of->outfeed, &params, err);
}

enum status train_outfeed_new(struct train_session *session, struct err *err)
{
	struct train_outfeed *of;
	enum status status;

	if (session->run->outfeed.off)
		return ST_OK;
	of = mem_calloc(1, sizeof(*of));
	session->outfeed = of;
	if (of == NULL)
		return err_nomem(err);
	status = new_recorder(session, err);
	return status == ST_OK ? train_queues_new(&of->queues, session, of->outfeed, err) : status;
}

enum status train_outfeed_close(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	enum status status;

	if (of == NULL)
		return ST_OK;
	status = outfeed_close(of->outfeed, err);
	train_queues_free(of->queues);
	mem_free(of);
	session->outfeed = NULL;
	return status;
}

/* ---- the order of execution ---------------------------------------------------------------------
 */

/*
 * Numbers that grow along every chain of computation, and are the same for any schedule: by weight
 * update, micro-batch, forward before backward before update, stages as the data flows, and within
 * a stage as the data flows.
 */
static uint64_t order_of(const struct train_session *session, int64_t update, int64_t microbatch,
			 uint64_t position, uint64_t within)
{
	const uint64_t stages = (uint64_t)session->layout->stages;
	const uint64_t tensors = (uint64_t)session->model->layer_count +
				 4 * (uint64_t)session->model->param_count + 1;
	const uint64_t parts = (uint64_t)session->layout->accumulation + 1;

	return (((uint64_t)update * parts + (uint64_t)microbatch) * (2 * stages) + position) *
		       tensors +
	       within;
}

static struct outfeed_moment moment_of(const struct train_session *session,
				       const struct train_outfeed_place *place, uint64_t within)
{
	const uint64_t stage = (uint64_t)place->keys.stage;
	const uint64_t position = place->keys.phase == 'B'
					  ? 2 * (uint64_t)session->layout->stages - 1 - stage
					  : stage;

	return (struct outfeed_moment){
		.keys = place->keys,
		.time_ns = ips_recording_now_ns(session->recording),
		.order = order_of(session, place->update, place->microbatch, position, within),
	};
}

/* ---- recording ----------------------------------------------------------------------------------
 */

enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place, int layer,
				     const float *values, size_t count, struct err *err)
{
	struct outfeed_moment moment;

	if (session->outfeed == NULL)
		return ST_OK;
	moment = moment_of(session, place, (uint64_t)layer);
	return train_queues_activation(session->outfeed->queues, layer, &moment, values, count,
				       err);
}

enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err)
{
	const struct model *model = session->model;
	const struct train_outfeed *of = session->outfeed;
	enum status status = ST_OK;

	if (of == NULL || !train_queues_gradients(of->queues) ||
	    session->run->outfeed.optimizer_mode != mode)
		return ST_OK;
	for (int p = model->param_count - 1; p >= 0 && status == ST_OK; p--) {
		const struct model_param *param = &model->params[p];
		struct outfeed_moment moment;

		if (session->layout->stage[param->layer] != (int)place->keys.stage)
			continue;
		moment = moment_of(session, place, (uint64_t)(model->param_count - p));
		status = train_queues_gradient(of->queues, p, &moment, gradients + param->offset,
					       param->count, err);
	}
	return status;
}

/* ---- callbacks ----------------------------------------------------------------------------------
 */

enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err)
{
	struct train_outfeed *of = session->outfeed;

	return train_queues_callback(of == NULL ? NULL : of->queues, session, queue, callback, out,
				     epoch, err);
}
