/*
 * From the run file to queues and tensors, and from a worker's place to the order of execution.
 *
 * Ownership: the session's; keys belong to their queues. Threading: as the header says.
 */
#include "trainer/train_outfeed.h"

#include "common/mem.h"
#include "trainer/train_health.h"
#include "trainer/train_order.h"
#include "trainer/train_outfeed_forecast.h"
#include "trainer/train_outfeed_queue.h"
#include "trainer/train_outfeed_watch.h"

struct train_outfeed {
	struct outfeed *outfeed;
	struct train_queues *queues; /* NULL: off */
	struct train_watch *watch;
};

/* ---- making ---------------------------------------------------------------------------------- */

enum status train_outfeed_plan_session(struct train_session *session, bool recorded,
				       struct err *err)
{
	struct run_queues *plan = &session->outfeed_plan;
	enum status status;

	session->taps = arena_alloc(&session->arena, (size_t)session->model->layer_count + 1,
				    sizeof(*session->taps));
	if (!session->taps)
		return err_nomem(err);
	if (session->layout->steps_per_epoch == 0)
		return ST_OK;
	status = run_queues_plan(plan, &session->arena, session->run, session->model,
				 session->layout, err);
	if (status == ST_OK)
		status = run_queues_check(plan, session->run, session->model, err);
	for (int i = 0; status == ST_OK && i < plan->send_count; i++)
		if (plan->sends[i].sent)
			session->taps[plan->sends[i].layer] |= STAGE_LOOK;
	return status == ST_OK ? train_watch_plan(session, recorded, err) : status;
}

static bool rules_wanted(const struct train_session *session)
{
	return session->layout->steps_per_epoch > 0 && session->run->health.wanted &&
	       train_watch_wanted(session->run, session->recording != NULL);
}

static enum status new_recorder(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	const struct outfeed_params params = {
		.recording = session->recording,
		.policy = &session->watch_plan.policy,
		.rules = rules_wanted(session) ? &session->health.rules : NULL,
		.say = train_health_say,
		.hit = train_health_hit,
		.user = session,
		.replicas = session->layout->replicas,
		.budget = train_outfeed_budget(session, NULL),
		.pool = session->pool,
	};

	return outfeed_new(&of->outfeed, &params, err);
}

enum status train_outfeed_new(struct train_session *session, struct err *err)
{
	struct train_outfeed *of;
	enum status status;

	if (session->run->outfeed.off && session->watch_plan.count == 0 && !rules_wanted(session))
		return ST_OK;
	of = mem_calloc(1, sizeof(*of));
	session->outfeed = of;
	if (!of)
		return err_nomem(err);
	status = new_recorder(session, err);
	if (status == ST_OK && !session->run->outfeed.off)
		status = train_queues_new(&of->queues, session, of->outfeed, err);
	return status == ST_OK ? train_watch_new(&of->watch, session, of->outfeed, err) : status;
}

enum status train_outfeed_close(struct train_session *session, struct err *err)
{
	struct train_outfeed *of = session->outfeed;
	enum status status;

	if (!of)
		return ST_OK;
	status = outfeed_close(of->outfeed, err);
	train_queues_free(of->queues);
	mem_free(of);
	session->outfeed = NULL;
	return status;
}

struct outfeed_health *train_outfeed_health(const struct train_session *session)
{
	return !session->outfeed ? NULL : outfeed_health_of(session->outfeed->outfeed);
}

/* ---- the order of execution ------------------------------------------------------------------ */

static struct train_order order_of(const struct train_session *session)
{
	return (struct train_order){
		.layers = session->model->layer_count,
		.params = session->model->param_count,
		.slots = optimizer_slots(&session->optimizer),
		.accumulation = session->layout->accumulation,
	};
}

struct outfeed_moment train_outfeed_moment(const struct train_session *session,
					   const struct train_outfeed_place *place,
					   enum outfeed_kind kind, int number, int slot)
{
	const struct train_order order = order_of(session);
	const struct train_order_place at = {
		.update = place->update,
		.microbatch = place->microbatch,
		.phase = place->keys.phase,
		.kind = kind,
		.number = number,
		.slot = slot,
	};

	return (struct outfeed_moment){
		.keys = place->keys,
		.time_ns = ips_recording_now_ns(session->recording),
		.order = train_order_of(&order, &at),
	};
}

/* While workers go on, the updates of the last run that is done may not be. */
void train_outfeed_settle(struct train_session *session, int64_t runs, bool ended)
{
	const struct train_order order = order_of(session);
	const int64_t update = session->execution.first_update + runs;
	struct err err = {ST_OK, ""};
	uint64_t before;
	enum status status;

	if (!session->outfeed || session->execution.mode != IPS_TRAIN)
		return;
	if (train_flush_wanted())
		outfeed_flush(session->outfeed->outfeed);
	if (update == 0)
		return;
	before = ended ? train_order_begin(&order, update, 0)
		       : train_order_begin(&order, update - 1, order.accumulation);
	status = outfeed_settle(session->outfeed->outfeed, before, &err);
	if (status != ST_OK && session->looking.status == ST_OK)
		session->looking = err;
}

/* ---- recording ------------------------------------------------------------------------------- */

bool train_outfeed_looks(const struct train_session *session,
			 const struct train_outfeed_place *place)
{
	const struct train_outfeed *of = session->outfeed;

	if (!of || session->execution.mode != IPS_TRAIN)
		return false;
	return session->outfeed_plan.send_count > 0 || train_watch_looks(of->watch, place);
}

enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place,
				     const struct stage_tapped *tapped, struct err *err)
{
	const struct train_outfeed *of = session->outfeed;
	struct outfeed_source sources[OUTFEED_TRAIL];
	struct outfeed_moment moment =
		train_outfeed_moment(session, place, OUTFEED_ACTIVATION, tapped->layer, 0);
	enum status status = ST_OK;

	moment.abs_max_known = tapped->abs_max_known;
	moment.abs_max = tapped->abs_max;
	moment.sources = sources;
	moment.source_count = train_watch_sources(of->watch, place, tapped, sources);
	if (of->queues)
		status = train_queues_activation(of->queues, tapped->layer, &moment, tapped->values,
						 tapped->count, err);
	if (status == ST_OK)
		status = train_watch_activation(of->watch, &moment, tapped, err);
	return status;
}

enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err)
{
	const struct model *model = session->model;
	const struct train_outfeed *of = session->outfeed;
	enum status status = ST_OK;

	if (!of || session->run->outfeed.optimizer_mode != mode)
		return ST_OK;
	for (int p = model->param_count - 1; p >= 0 && status == ST_OK; p--) {
		const struct model_param *param = &model->params[p];
		struct outfeed_moment moment;

		if (session->layout->stage[param->layer] != (int)place->keys.stage)
			continue;
		if (of->queues && train_queues_takes_gradient(of->queues, p)) {
			moment = train_outfeed_moment(session, place, OUTFEED_GRADIENT, p, 0);
			status =
				train_queues_gradient(of->queues, p, &moment,
						      gradients + param->offset, param->count, err);
		}
		if (status == ST_OK)
			status = train_watch_gradient(of->watch, place, p,
						      gradients + param->offset, err);
	}
	return status;
}

enum status train_outfeed_update(struct train_session *session,
				 const struct train_outfeed_place *place, struct err *err)
{
	if (!session->outfeed)
		return ST_OK;
	return train_watch_update(session->outfeed->watch, place, err);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

struct train_queues *train_outfeed_queues(const struct train_session *session)
{
	return !session->outfeed ? NULL : session->outfeed->queues;
}

enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err)
{
	return train_queues_callback(train_outfeed_queues(session), session, queue, callback, out,
				     epoch, err);
}
