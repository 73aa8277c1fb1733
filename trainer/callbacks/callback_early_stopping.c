/*
 * EarlyStopping and TerminateOnNaN: stop training when a metric has stopped improving, or when the
 * loss is not finite.
 *
 * Ownership: EarlyStopping's state owns a copy of the best weights if they are to be restored.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
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

static enum status stopping_begin(struct callback *callback, const struct callback_host *host,
				  struct err *err)
{
	struct early_stopping *s = callback->state;

	if (!s->restore || s->best_weights)
		return ST_OK;
	s->best_weights = mem_aligned(host->model->weights + 1, sizeof(float));
	return s->best_weights ? ST_OK : err_nomem(err);
}

static void stopping_save(struct early_stopping *s, const struct callback_host *host, int64_t epoch)
{
	s->best_epoch = epoch;
	if (s->best_weights)
		memcpy(s->best_weights, host->weights(host->user),
		       host->model->weights * sizeof(float));
}

static enum status stopping_epoch(struct callback *callback, const struct callback_host *host,
				  int64_t epoch, const struct ips_logs *logs, struct err *err)
{
	struct early_stopping *s = callback->state;
	const double *value =
		callback_monitored(host, "EarlyStopping", s->monitor, logs, &s->warned);

	(void)err;
	if (!value || epoch <= s->start_from_epoch)
		return ST_OK;
	if (!s->best_epoch)
		stopping_save(s, host, epoch);
	s->waited++;
	if (callback_improves(s->mode, s->monitor, *value, s->best, s->min_delta)) {
		s->best = *value;
		stopping_save(s, host, epoch);
		/* Reset the patience only if the value beats the baseline, too. */
		if (isnan(s->baseline) ||
		    callback_improves(s->mode, s->monitor, *value, s->baseline, s->min_delta))
			s->waited = 0;
	}
	/* As in Keras, the first epoch never ends the training. */
	if (s->waited < s->patience || !s->waited || epoch < 2)
		return ST_OK;
	s->stopped_epoch = epoch;
	host->stop(host->user);
	return ST_OK;
}

static enum status stopping_end(struct callback *callback, const struct callback_host *host,
				struct err *err)
{
	struct early_stopping *s = callback->state;
	char text[160];

	(void)err;
	if (!s->stopped_epoch)
		return ST_OK;
	if (s->restore && s->best_epoch)
		host->set_weights(host->user, s->best_weights);
	if (!s->verbose)
		return ST_OK;
	if (s->restore && s->best_epoch)
		snprintf(text, sizeof(text),
			 "Epoch %lld: early stopping. Weights restored from the best epoch: %lld",
			 (long long)s->stopped_epoch, (long long)s->best_epoch);
	else
		snprintf(text, sizeof(text), "Epoch %lld: early stopping",
			 (long long)s->stopped_epoch);
	host->say(host->user, text);
	return ST_OK;
}

static void stopping_keep(struct callback *callback, const struct callback_host *host,
			  struct snapshot *snapshot)
{
	struct early_stopping *s = callback->state;

	snapshot_real(snapshot, "best", &s->best);
	snapshot_integer(snapshot, "waited", &s->waited, 0, INT32_MAX);
	snapshot_integer(snapshot, "best_epoch", &s->best_epoch, 0, INT32_MAX);
	snapshot_integer(snapshot, "stopped_epoch", &s->stopped_epoch, 0, INT32_MAX);
	if (s->best_weights && s->best_epoch > 0)
		model_weights_keep(host->model, s->best_weights, "best_weights", snapshot);
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
	.train_begin = stopping_begin,
	.epoch_end = stopping_epoch,
	.train_end = stopping_end,
	.keep = stopping_keep,
	.fini = stopping_fini,
};

/* ---- TerminateOnNaN -------------------------------------------------------------------------- */

static const struct model_option terminate_options[] = {{"name", .rule = MODEL_ANY}};

static enum status terminate_batch(struct callback *callback, const struct callback_host *host,
				   enum ips_mode mode, int64_t batch, const struct ips_logs *logs,
				   struct err *err)
{
	const double *loss = callback_log(logs, "loss");
	char text[96];

	(void)callback;
	(void)err;
	if (mode != IPS_TRAIN || !loss || isfinite(*loss))
		return ST_OK;
	snprintf(text, sizeof(text), "Batch %lld: Invalid loss, terminating training",
		 (long long)batch);
	host->say(host->user, text);
	host->stop(host->user);
	return ST_OK;
}

const struct callback_ops callback_terminate_on_nan = {
	.class_name = "TerminateOnNaN",
	.options = MODEL_OPTIONS(terminate_options),
	.batch_end = terminate_batch,
};
