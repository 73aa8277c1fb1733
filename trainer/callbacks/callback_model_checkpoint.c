/*
 * ModelCheckpoint: save the weights after each epoch, every few batches, or when a metric is better
 * than before. Only weights are saved (.npz, .h5, .weights.h5), whatever save_weights_only says:
 * the run file defines the model.
 */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/callback_name.h"
#include "trainer/models/keras_save.h"

struct checkpoint {
	const char *path, *monitor;
	enum callback_mode mode;
	bool best_only, warned;
	int64_t verbose;
	int64_t every; /* batches; 0: epochs */
	int64_t seen;  /* batches since the last save */
	int64_t epoch;
	double best; /* NaN: none yet */
};

#define AT(member) .offset = offsetof(struct checkpoint, member)

static const struct model_option checkpoint_options[] = {
	{"filepath", MODEL_TEXT, AT(path), .required = true},
	{"monitor", MODEL_TEXT, AT(monitor), .text = "val_loss"},
	{"verbose", MODEL_INT, AT(verbose), .most = INT32_MAX},
	{"save_best_only", MODEL_BOOL, AT(best_only)},
	{"save_weights_only", .rule = MODEL_ANY},
	{"initial_value_threshold", MODEL_REAL, AT(best), .fallback = NAN},
	{"save_freq", .rule = MODEL_ANY},
	{"mode", MODEL_CHOICE, AT(mode), .choices = callback_modes},
	{"options", .rule = MODEL_NULL},
	{"name", .rule = MODEL_ANY},
};

static void checkpoint_read(struct callback *callback, const struct json_at *config,
			    struct err *err)
{
	struct checkpoint *c = callback->state;
	struct json_at here;
	struct err why;

	callback_read_frequency(config, &c->every, err);
	if (callback_name_check(c->path, &why) != ST_OK && json_child(config, "filepath", &here))
		json_fail(&here, err, "%s", why.text);
}

static bool checkpoint_improves(const struct checkpoint *c, double value)
{
	if (isnan(c->best))
		return !isnan(value);
	return callback_smaller_is_better(c->mode, c->monitor) ? value < c->best : value > c->best;
}

static void checkpoint_print(const struct checkpoint *c, const struct callback_host *host,
			     const char *path)
{
	char text[FS_PATH_SIZE + 64];

	snprintf(text, sizeof(text), "Epoch %" PRId64 ": saving model to %s", c->epoch, path);
	if (c->verbose)
		host->say(host->user, text);
}

static enum status checkpoint_save(struct checkpoint *c, const struct callback_host *host,
				   const struct ips_logs *logs, struct err *err)
{
	char path[FS_PATH_SIZE];
	enum status status;

	if (c->best_only) {
		const double *value = callback_log(logs, c->monitor);

		if (!value && !c->warned)
			callback_print_missing(host, "ModelCheckpoint", c->monitor, logs);
		c->warned = c->warned || !value;
		if (!value || !checkpoint_improves(c, *value))
			return ST_OK;
		c->best = *value;
	}
	status = callback_name(c->path, c->epoch, logs, path, sizeof(path), err);
	if (status != ST_OK) {
		err_prefix(err, "ModelCheckpoint: %s", c->path);
		return status;
	}
	status = keras_save_weights(host->model, host->weights(host->user), path, err);
	if (status == ST_OK)
		checkpoint_print(c, host, path);
	return status;
}

/* Check that the logs have every field of the name. After a batch they lack validation metrics. */
static enum status checkpoint_check_name(const struct checkpoint *c, const struct ips_logs *logs,
					 struct err *err)
{
	char path[FS_PATH_SIZE];
	struct ips_logs some = *logs;
	enum status status;

	while (c->every && some.count && !strncmp(some.items[some.count - 1].name, "val_", 4))
		some.count--;
	status = callback_name(c->path, 1, &some, path, sizeof(path), err);
	if (status != ST_OK)
		err_prefix(err, "ModelCheckpoint: %s", c->path);
	return status;
}

/* Before the first epoch, report a name whose fields have no value, and a missing folder, unless
 * the folder's name depends on the epoch. */
static enum status checkpoint_begin(struct callback *callback, const struct callback_host *host,
				    struct err *err)
{
	const struct checkpoint *c = callback->state;
	const char *slash = strrchr(c->path, '/');
	const char *field = strchr(c->path, '{');
	enum status status = keras_save_check(c->path, NULL, err);

	if (status == ST_OK && host->logs)
		status = checkpoint_check_name(c, host->logs, err);
	if (status != ST_OK)
		return status;
	return slash && field && field < slash ? ST_OK : fs_check_write(c->path, err);
}

static enum status checkpoint_epoch_begin(struct callback *callback,
					  const struct callback_host *host, int64_t epoch,
					  struct err *err)
{
	struct checkpoint *c = callback->state;

	(void)host;
	(void)err;
	c->epoch = epoch;
	return ST_OK;
}

/* Called once per execution, so @batch advances by several batches. */
static enum status checkpoint_batch(struct callback *callback, const struct callback_host *host,
				    enum ips_mode mode, int64_t batch, const struct ips_logs *logs,
				    struct err *err)
{
	struct checkpoint *c = callback->state;

	if (mode != IPS_TRAIN || !c->every || batch + 1 - c->seen < c->every)
		return ST_OK;
	c->seen = batch + 1;
	return checkpoint_save(c, host, logs, err);
}

static enum status checkpoint_epoch(struct callback *callback, const struct callback_host *host,
				    int64_t epoch, const struct ips_logs *logs, struct err *err)
{
	struct checkpoint *c = callback->state;

	(void)epoch;
	return c->every ? ST_OK : checkpoint_save(c, host, logs, err);
}

static void checkpoint_keep(struct callback *callback, const struct callback_host *host,
			    struct snapshot *snapshot)
{
	struct checkpoint *c = callback->state;

	(void)host;
	snapshot_integer(snapshot, "seen", &c->seen, 0, INT64_MAX);
	snapshot_real(snapshot, "best", &c->best);
}

const struct callback_ops callback_model_checkpoint = {
	.class_name = "ModelCheckpoint",
	.writes = true,
	.size = sizeof(struct checkpoint),
	.options = MODEL_OPTIONS(checkpoint_options),
	.read = checkpoint_read,
	.train_begin = checkpoint_begin,
	.epoch_begin = checkpoint_epoch_begin,
	.batch_end = checkpoint_batch,
	.epoch_end = checkpoint_epoch,
	.keep = checkpoint_keep,
};
