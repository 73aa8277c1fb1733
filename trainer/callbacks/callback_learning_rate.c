/*
 * ReduceLROnPlateau and LearningRateScheduler: set the learning rate of the next epochs.
 *
 * Both need an optimizer with a constant rate; a schedule computes its own.
 */
#include <math.h>
#include <stddef.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/model_config.h"
#include "trainer/callbacks/callback.h"

static void rate_begin(struct callback *callback, const struct callback_event *event)
{
	if (isnan(event->host->rate(event->host->user)))
		err_set(event->err, ST_INVALID,
			"%s changes a constant learning rate, but the optimizer's is a schedule: "
			"give compile.optimizer a number as learning_rate, or leave the callback "
			"out",
			callback->ops->class_name);
}

static void set_rate(const struct callback *callback, const struct callback_event *event,
		     double rate, int64_t verbose)
{
	event->host->set_rate(event->host->user, rate);
	if (verbose)
		callback_say(event, "Epoch %lld: %s setting learning rate to %g.",
			     (long long)event->epoch, callback->ops->class_name, rate);
}

/* ---- ReduceLROnPlateau ----------------------------------------------------------------------- */

struct plateau {
	const char *monitor;
	double factor, min_delta, min_lr;
	int64_t patience, cooldown, verbose;
	enum callback_mode mode;
	bool warned;
	double best; /* NaN: none yet */
	int64_t waited, cooling;
};

#define AT(member) .offset = offsetof(struct plateau, member)

static const struct model_option plateau_options[] = {
	{"monitor", MODEL_TEXT, AT(monitor), .text = "val_loss"},
	{"factor", MODEL_REAL, AT(factor), .fallback = 0.1},
	{"min_delta", MODEL_REAL, AT(min_delta), .fallback = 1e-4},
	{"min_lr", MODEL_REAL, AT(min_lr)},
	{"patience", MODEL_INT, AT(patience), .most = INT32_MAX, .fallback = 10},
	{"cooldown", MODEL_INT, AT(cooldown), .most = INT32_MAX},
	{"verbose", MODEL_INT, AT(verbose), .most = INT32_MAX},
	{"mode", MODEL_CHOICE, AT(mode), .choices = callback_modes},
	{"name", .rule = MODEL_ANY},
};

#undef AT

static void plateau_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	struct plateau *p = callback->state;

	p->best = NAN;
	if (!err_stuck(err) && !(p->factor >= 0.0 && p->factor < 1.0))
		json_fail(config, err, "factor must be at least 0 and below 1, not %g", p->factor);
	if (!err_stuck(err) && !(p->min_lr >= 0.0))
		json_fail(config, err, "min_lr must be at least 0, not %g", p->min_lr);
}

static void plateau_epoch(struct callback *callback, const struct callback_event *event)
{
	struct plateau *p = callback->state;
	const double *value = callback_monitored(callback, event, p->monitor, &p->warned);
	const double rate = event->host->rate(event->host->user);

	if (!value)
		return;
	if (p->cooling > 0) {
		p->cooling--;
		p->waited = 0;
	}
	if (callback_improves(p->mode, p->monitor, *value, p->best, p->min_delta)) {
		p->best = *value;
		p->waited = 0;
		return;
	}
	if (p->cooling > 0 || ++p->waited < p->patience || rate <= p->min_lr)
		return;
	set_rate(callback, event, max(rate * p->factor, p->min_lr), p->verbose);
	p->cooling = p->cooldown;
	p->waited = 0;
}

static void plateau_snapshot(struct callback *callback, const struct callback_event *event)
{
	struct plateau *p = callback->state;

	snapshot_real(event->snapshot, "best", &p->best);
	snapshot_integer(event->snapshot, "waited", &p->waited, 0, INT32_MAX);
	snapshot_integer(event->snapshot, "cooling", &p->cooling, 0, INT32_MAX);
}

const struct callback_ops callback_reduce_lr_on_plateau = {
	.class_name = "ReduceLROnPlateau",
	.moves_rate = true,
	.size = sizeof(struct plateau),
	.options = MODEL_OPTIONS(plateau_options),
	.read = plateau_read,
	.on = {[CALLBACK_TRAIN_BEGIN] = rate_begin,
	       [CALLBACK_EPOCH_END] = plateau_epoch,
	       [CALLBACK_SNAPSHOT] = plateau_snapshot},
};

/* ---- LearningRateScheduler ------------------------------------------------------------------- */

/* Keras's schedule is a function of the epoch; a run file holds its table instead. */
struct scheduler {
	struct {
		int64_t epoch; /* from 0: the first one with this rate */
		double rate;
	} * rows;
	int count;
	int64_t verbose;
};

static const struct model_option scheduler_options[] = {
	{"schedule", .rule = MODEL_ANY}, /* read below */
	{"verbose", MODEL_INT, .offset = offsetof(struct scheduler, verbose), .most = INT32_MAX},
	{"name", .rule = MODEL_ANY},
};

static void scheduler_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	struct scheduler *s = callback->state;
	struct json_at table, row = {0};

	if (!model_option_need(config, "schedule", &table, err) || json_array(&table, err) != ST_OK)
		return;
	s->rows = mem_calloc((size_t)json_count(&table) + 1, sizeof(*s->rows));
	if (!s->rows) {
		err_nomem(err);
		return;
	}
	while (!err_stuck(err) && json_next(&table, &row)) {
		struct json_at epoch, rate;
		const int64_t least = s->count > 0 ? s->rows[s->count - 1].epoch + 1 : 0;

		if (json_array(&row, err) != ST_OK)
			return;
		if (json_count(&row) != 2 || !json_item(&row, 0, &epoch) ||
		    !json_item(&row, 1, &rate)) {
			json_fail(&row, err, "must be [epoch, rate]");
			return;
		}
		if (json_int(&epoch, least, INT32_MAX, &s->rows[s->count].epoch, err) == ST_OK &&
		    json_real(&rate, &s->rows[s->count].rate, err) == ST_OK &&
		    !(s->rows[s->count].rate >= 0.0 && s->rows[s->count].rate <= 3e38))
			json_fail(&rate, err, "must be at least 0, not %g", s->rows[s->count].rate);
		s->count++;
	}
}

static void scheduler_epoch(struct callback *callback, const struct callback_event *event)
{
	const struct scheduler *s = callback->state;
	int last = -1;

	for (int i = 0; i < s->count && s->rows[i].epoch < event->epoch; i++)
		last = i;
	if (last >= 0)
		set_rate(callback, event, s->rows[last].rate, s->verbose);
}

static void scheduler_fini(struct callback *callback)
{
	const struct scheduler *s = callback->state;

	mem_free(s->rows);
}

const struct callback_ops callback_learning_rate_scheduler = {
	.class_name = "LearningRateScheduler",
	.moves_rate = true,
	.size = sizeof(struct scheduler),
	.options = MODEL_OPTIONS(scheduler_options),
	.read = scheduler_read,
	.on = {[CALLBACK_TRAIN_BEGIN] = rate_begin, [CALLBACK_EPOCH_BEGIN] = scheduler_epoch},
	.fini = scheduler_fini,
};
