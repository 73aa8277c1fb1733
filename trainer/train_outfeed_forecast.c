/*
 * Rows and values by tensor, from the plans of queues and of what is watched. As the header says.
 */
#include "trainer/train_outfeed_forecast.h"

#include <math.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "common/fmt.h"
#include "common/str.h"
#include "outfeed/outfeed_filter.h"

/* Bytes of a tensor's own rows, from dbstat over reports of the examples. */
#define TENSOR 180.0

/* ---- the budget ---------------------------------------------------------------------------------
 */

int64_t train_outfeed_budget(const struct train_session *session, bool *disk)
{
	const int64_t budget = session->run->outfeed.budget;
	struct statvfs of;
	double half;
	bool less;

	if (session->report == NULL || statvfs(session->report, &of) != 0)
		half = INFINITY;
	else
		half = (double)of.f_bavail * (double)of.f_frsize / 2;
	less = half < (double)budget;
	if (disk != NULL)
		*disk = less;
	return less ? (int64_t)half : budget;
}

/* ---- tensors ------------------------------------------------------------------------------------
 */

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
	const struct train_outfeed_plan *plan = &session->outfeed_plan;

	for (int i = 0; i < plan->send_count; i++) {
		const struct train_send_plan *send = &plan->sends[i];
		const struct model_shape *shape = &session->model->layers[send->layer].output;
		const struct outfeed_choice choice = outfeed_policy_choose(
			&session->watch_plan.policy, send->key, OUTFEED_ACTIVATION, true);

		if (send->sent && choice.tier != OUTFEED_OFF)
			add(out, session, &choice, OUTFEED_ACTIVATION,
			    (size_t)session->run->data.batch_size *
				    (size_t)model_shape_count(shape));
	}
}

static enum status add_gradients(struct train_outfeed_forecast *out,
				 const struct train_session *session, struct err *err)
{
	const struct run_texts *filters = &session->run->outfeed.gradients;
	enum status status = ST_OK;
	struct str key = {0};

	for (int p = 0; filters->given && p < session->model->param_count; p++) {
		const struct model_param *param = &session->model->params[p];
		struct outfeed_choice choice;

		str_clear(&key);
		str_addf(&key, "%s_grad", param->name);
		if (!param->trainable ||
		    !outfeed_filter_passes(filters->items, filters->count, str_peek(&key)))
			continue;
		choice = outfeed_policy_choose(&session->watch_plan.policy, str_peek(&key),
					       OUTFEED_GRADIENT, true);
		if (choice.tier != OUTFEED_OFF)
			add(out, session, &choice, OUTFEED_GRADIENT, param->count);
	}
	if (key.failed)
		status = err_nomem(err);
	str_free(&key);
	return status;
}

enum status train_outfeed_forecast(struct train_outfeed_forecast *out,
				   const struct train_session *session, struct err *err)
{
	const struct train_watch_plan *watch = &session->watch_plan;
	enum status status = ST_OK;

	*out = (struct train_outfeed_forecast){0};
	if (session->layout->steps_per_epoch == 0)
		return ST_OK;
	add_sends(out, session);
	if (!session->run->outfeed.off)
		status = add_gradients(out, session, err);
	for (int i = 0; i < watch->count; i++)
		add(out, session, &watch->tensors[i].choice, watch->tensors[i].tensor.kind,
		    watch->tensors[i].count);
	if (status != ST_OK)
		*out = (struct train_outfeed_forecast){0};
	return status;
}

/* ---- in words -----------------------------------------------------------------------------------
 */

static const char *bytes_text(char out[FMT_SIZE], double bytes)
{
	return fmt_bytes(out, bytes < 0x1p63 ? (uint64_t)bytes : (uint64_t)INT64_MAX);
}

enum status train_outfeed_forecast_text(char out[TRAIN_OUTFEED_FORECAST_SIZE],
					const struct train_session *session, struct err *err)
{
	char bytes[FMT_SIZE], memory[FMT_SIZE], limit[FMT_SIZE];
	struct train_outfeed_forecast forecast;
	enum status status = train_outfeed_forecast(&forecast, session, err);
	bool disk;
	const int64_t budget = train_outfeed_budget(session, &disk);
	int length;

	out[0] = '\0';
	if (status != ST_OK || forecast.tensors == 0)
		return status;
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
	return ST_OK;
}

int train_outfeed_unused_rule(const struct train_session *session, int rule)
{
	const struct train_watch_plan *plan = &session->watch_plan;

	for (int i = rule; plan->used != NULL && i < plan->policy.count; i++)
		if (!plan->used[i] && !plan->policy.rules[i].queued_only)
			return i;
	return -1;
}
