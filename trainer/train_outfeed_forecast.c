/*
 * Rows and values by tensor, from the plans of queues and of what is watched. As the header says.
 */
#include "trainer/train_outfeed_forecast.h"

#include <math.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "common/fmt.h"

/* Bytes of a tensor's own rows, from dbstat over reports of the examples. */
#define TENSOR 180.0

/* ---- the budget ------------------------------------------------------------------------------ */

int64_t train_outfeed_budget(const struct train_session *session, bool *disk)
{
	const int64_t budget = session->run->outfeed.budget;
	struct statvfs of;
	double half;
	bool less;

	if (!session->report || statvfs(session->report, &of) != 0)
		half = INFINITY;
	else
		half = (double)of.f_bavail * (double)of.f_frsize / 2;
	less = half < (double)budget;
	if (disk)
		*disk = less;
	return less ? (int64_t)half : budget;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static double steps_of(const struct train_session *session)
{
	return (double)session->layout->steps_per_epoch * (double)session->run->fit.epochs;
}

/* How often one replica has a value of it. */
static double values_of(const struct train_session *session, enum outfeed_kind kind)
{
	const double steps = steps_of(session);
	const bool by_step = kind == OUTFEED_ACTIVATION ||
			     (kind == OUTFEED_GRADIENT &&
			      session->run->outfeed.optimizer_mode == RUN_AFTER_COMPUTE);

	return by_step ? steps : steps / (double)session->layout->accumulation;
}

static void add(struct train_outfeed_forecast *out, const struct train_session *session,
		const struct outfeed_choice *choice, enum outfeed_kind kind, size_t count)
{
	const double replicas = session->layout->replicas;
	const double values = ceil(values_of(session, kind) / (double)choice->every);
	const struct outfeed_choice full = {OUTFEED_FULL, 1, 0};

	out->tensors++;
	out->bytes += TENSOR + replicas * values * outfeed_bytes(choice, count, OUTFEED_FLOAT32);
	/* What a ring holds is written at the end. */
	if (choice->tier == OUTFEED_LAST_N)
		out->bytes += replicas * fmin(values, (double)choice->last) *
			      (outfeed_bytes(&full, count, OUTFEED_FLOAT32) -
			       outfeed_bytes(choice, count, OUTFEED_FLOAT32));
	out->memory +=
		outfeed_memory(choice, kind, count, OUTFEED_FLOAT32, session->layout->replicas);
}

static void add_sends(struct train_outfeed_forecast *out, const struct train_session *session)
{
	const struct run_queues *plan = &session->outfeed_plan;

	for (int i = 0; i < plan->send_count; i++) {
		const struct run_send *send = &plan->sends[i];
		const struct model_shape *shape = &session->model->layers[send->layer].output;
		const struct outfeed_choice choice = outfeed_policy_choose(
			&session->watch_plan.policy, send->key, OUTFEED_ACTIVATION, true);

		if (send->sent && choice.tier != OUTFEED_OFF)
			add(out, session, &choice, OUTFEED_ACTIVATION,
			    (size_t)session->run->data.batch_size *
				    (size_t)model_shape_count(shape));
	}
}

static void add_gradients(struct train_outfeed_forecast *out, const struct train_session *session)
{
	for (int p = 0; p < session->model->param_count; p++) {
		const struct run_gradient *gradient = &session->outfeed_plan.gradients[p];
		const struct outfeed_choice choice = outfeed_policy_choose(
			&session->watch_plan.policy, gradient->key, OUTFEED_GRADIENT, true);

		if (gradient->sent && choice.tier != OUTFEED_OFF)
			add(out, session, &choice, OUTFEED_GRADIENT,
			    session->model->params[p].count);
	}
}

void train_outfeed_forecast(struct train_outfeed_forecast *out, const struct train_session *session)
{
	const struct train_watch_plan *watch = &session->watch_plan;

	*out = (struct train_outfeed_forecast){0};
	if (session->layout->steps_per_epoch == 0)
		return;
	add_sends(out, session);
	add_gradients(out, session);
	for (int i = 0; i < watch->count; i++)
		add(out, session, &watch->tensors[i].choice, watch->tensors[i].tensor.kind,
		    watch->tensors[i].count);
}

/* ---- in words -------------------------------------------------------------------------------- */

static const char *bytes_text(char out[FMT_SIZE], double bytes)
{
	return fmt_bytes(out, bytes < 0x1p63 ? (uint64_t)bytes : (uint64_t)INT64_MAX);
}

void train_outfeed_forecast_text(char out[TRAIN_OUTFEED_FORECAST_SIZE],
				 const struct train_session *session)
{
	char bytes[FMT_SIZE], memory[FMT_SIZE], limit[FMT_SIZE];
	struct train_outfeed_forecast forecast;
	bool disk;
	const int64_t budget = train_outfeed_budget(session, &disk);
	int length;

	train_outfeed_forecast(&forecast, session);
	out[0] = '\0';
	if (forecast.tensors == 0)
		return;
	length = snprintf(out, TRAIN_OUTFEED_FORECAST_SIZE,
			  "Looking at %d tensor%s: about %s of the report and %s of memory",
			  forecast.tensors, forecast.tensors == 1 ? "" : "s",
			  bytes_text(bytes, forecast.bytes), bytes_text(memory, forecast.memory));
	if (forecast.bytes > (double)budget)
		snprintf(out + length, (size_t)(TRAIN_OUTFEED_FORECAST_SIZE - length),
			 "; the budget is %s%s, so tiers will be lowered",
			 bytes_text(limit, (double)budget),
			 disk ? ", half of what the disk has free" : " (outfeed.budget)");
	else if (disk)
		snprintf(out + length, (size_t)(TRAIN_OUTFEED_FORECAST_SIZE - length),
			 "; the budget is lowered to %s, half of what the disk has free",
			 bytes_text(limit, (double)budget));
}

int train_outfeed_unused_rule(const struct train_session *session, int rule)
{
	const struct train_watch_plan *plan = &session->watch_plan;

	for (int i = rule; plan->used && i < plan->policy.count; i++)
		if (!plan->used[i] && !plan->policy.rules[i].queued_only)
			return i;
	return -1;
}
