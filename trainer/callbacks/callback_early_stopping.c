/*
 * EarlyStopping and TerminateOnNaN: stop training when a metric has stopped improving, or when the
 * loss is not finite.
 *
 * Ownership: EarlyStopping's state owns a copy of the best weights if they are to be restored.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/mem.h"
#include "trainer/callbacks/callback.h"
#include "trainer/models/model_weights.h"

struct early_stopping {
	const char *monitor;
	double min_delta, baseline; /* baseline NaN: none */
	int64_t patience, start_from_epoch, waited;
	enum callback_mode mode;
	int64_t verbose;
	bool restore, warned;
	double best;         /* NaN: none yet */
	float *best_weights; /* NULL: not stored */
	int64_t best_epoch, stopped_epoch;
};

#define AT(member) .offset = offsetof(struct early_stopping, member)

static const struct model_option stopping_options[] = {
	{"monitor", MODEL_TEXT, AT(monitor), .text = "val_loss"},
	{"min_delta", MODEL_REAL, AT(min_delta)},
	{"baseline", MODEL_REAL, AT(baseline), .fallback = NAN},
	{"patience", MODEL_INT, AT(patience), .most = INT32_MAX},
	{"start_from_epoch", MODEL_INT, AT(start_from_epoch), .most = INT32_MAX},
	{"verbose", MODEL_INT, AT(verbose), .most = INT32_MAX},
	{"restore_best_weights", MODEL_BOOL, AT(restore)},
	{"mode", MODEL_CHOICE, AT(mode), .choices = callback_modes},
	{"name", .rule = MODEL_ANY},
};

static void stopping_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	struct early_stopping *s = callback->state;

	(void)config;
	(void)err;
	s->best = NAN;
	s->min_delta = fabs(s->min_delta);
}

static void stopping_begin(struct callback *callback, const struct callback_event *event)
{
	struct early_stopping *s = callback->state;

	if (!s->restore || s->best_weights)
		return;
	s->best_weights = mem_aligned(event->host->model->weights + 1, sizeof(float));
	if (!s->best_weights)
		err_nomem(event->err);
}

static void stopping_save(struct early_stopping *s, const struct callback_event *event)
{
	const struct callback_host *host = event->host;

	s->best_epoch = event->epoch;
	if (s->best_weights)
		memcpy(s->best_weights, host->weights(host->user),
		       host->model->weights * sizeof(float));
}

static void stopping_epoch(struct callback *callback, const struct callback_event *event)
{
	struct early_stopping *s = callback->state;
	const double *value = callback_monitored(callback, event, s->monitor, &s->warned);

	if (!value || event->epoch <= s->start_from_epoch)
		return;
	if (!s->best_epoch)
		stopping_save(s, event);
	s->waited++;
	if (callback_improves(s->mode, s->monitor, *value, s->best, s->min_delta)) {
		s->best = *value;
		stopping_save(s, event);
		/* Reset the patience only if the value beats the baseline, too. */
		if (isnan(s->baseline) ||
		    callback_improves(s->mode, s->monitor, *value, s->baseline, s->min_delta))
			s->waited = 0;
	}
	/* As in Keras, the first epoch never ends the training. */
	if (s->waited < s->patience || !s->waited || event->epoch < 2)
		return;
	s->stopped_epoch = event->epoch;
	event->host->stop(event->host->user);
}

static void stopping_end(struct callback *callback, const struct callback_event *event)
{
	struct early_stopping *s = callback->state;
	const bool restores = s->restore && s->best_epoch;

	if (!s->stopped_epoch)
		return;
	if (restores)
		event->host->set_weights(event->host->user, s->best_weights);
	if (s->verbose && restores)
		callback_say(event,
			     "Epoch %lld: early stopping. Weights restored from the best epoch: "
			     "%lld",
			     (long long)s->stopped_epoch, (long long)s->best_epoch);
	else if (s->verbose)
		callback_say(event, "Epoch %lld: early stopping", (long long)s->stopped_epoch);
}

static void stopping_snapshot(struct callback *callback, const struct callback_event *event)
{
	struct early_stopping *s = callback->state;

	snapshot_real(event->snapshot, "best", &s->best);
	snapshot_integer(event->snapshot, "waited", &s->waited, 0, INT32_MAX);
	snapshot_integer(event->snapshot, "best_epoch", &s->best_epoch, 0, INT32_MAX);
	snapshot_integer(event->snapshot, "stopped_epoch", &s->stopped_epoch, 0, INT32_MAX);
	if (s->best_weights && s->best_epoch > 0)
		model_weights_snapshot(event->host->model, s->best_weights, "best_weights",
				       event->snapshot);
}

static void stopping_fini(struct callback *callback)
{
	const struct early_stopping *s = callback->state;

	mem_free(s->best_weights);
}

const struct callback_ops callback_early_stopping = {
	.class_name = "EarlyStopping",
	.size = sizeof(struct early_stopping),
	.options = MODEL_OPTIONS(stopping_options),
	.read = stopping_read,
	.on = {[CALLBACK_TRAIN_BEGIN] = stopping_begin,
	       [CALLBACK_EPOCH_END] = stopping_epoch,
	       [CALLBACK_TRAIN_END] = stopping_end,
	       [CALLBACK_SNAPSHOT] = stopping_snapshot},
	.fini = stopping_fini,
};

/* ---- TerminateOnNaN -------------------------------------------------------------------------- */

static const struct model_option terminate_options[] = {{"name", .rule = MODEL_ANY}};

static void terminate_batch(struct callback *callback, const struct callback_event *event)
{
	const double *loss = callback_log(event->logs, "loss");

	(void)callback;
	if (event->mode != IPS_TRAIN || !loss || isfinite(*loss))
		return;
	callback_say(event, "Batch %lld: Invalid loss, terminating training",
		     (long long)event->batch);
	event->host->stop(event->host->user);
}

const struct callback_ops callback_terminate_on_nan = {
	.class_name = "TerminateOnNaN",
	.options = MODEL_OPTIONS(terminate_options),
	.on = {[CALLBACK_BATCH_END] = terminate_batch},
};
