/*
 * ModelCheckpoint: save the weights after each epoch, every few batches, or when a metric is better
 * than before. Only weights are saved (.npz, .h5, .weights.h5), whatever save_weights_only says:
 * the run file defines the model.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/str.h"
#include "trainer/callbacks/callback.h"
#include "trainer/models/keras_save.h"

/* ---- file names that contain the epoch and its logs ------------------------------------------ */

#define FIELD_SIZE  64
#define FIELD_DIGIT 40 /* maximum width and precision of a field */

struct field {
	char name[FIELD_SIZE];
	bool zero;
	int width, precision; /* precision -1: not given */
	char conversion;      /* d, f, e, g; 0: not given */
};

static int read_number(const char **text)
{
	int value = 0;

	while (isdigit((unsigned char)**text) && value < 1000)
		value = value * 10 + (*(*text)++ - '0');
	return value;
}

/* "02d", ".4f", "8.3f", "" */
static bool read_format(struct field *field, const char *text)
{
	field->zero = *text == '0';
	field->width = read_number(&text);
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return false;
		field->precision = read_number(&text);
	}
	if (*text && strchr("dfeg", *text))
		field->conversion = *text++;
	return !*text && field->width <= FIELD_DIGIT && field->precision <= FIELD_DIGIT;
}

/* Parse a field; @text is after "{". Return the text after "}", or NULL if it is no field. */
static const char *read_field(struct field *field, const char *text)
{
	const char *end = strchr(text, '}');
	char inside[FIELD_SIZE], *colon;
	size_t length = end ? (size_t)(end - text) : 0;

	*field = (struct field){.precision = -1};
	if (!end || !length || length >= sizeof(inside))
		return NULL;
	memcpy(inside, text, length);
	inside[length] = '\0';
	colon = strchr(inside, ':');
	if (colon)
		*colon = '\0';
	str_copy(field->name, sizeof(field->name), inside);
	if (!*field->name || (colon && !read_format(field, colon + 1)))
		return NULL;
	return end + 1;
}

enum status callback_name_check(const char *pattern, struct err *err)
{
	for (const char *c = pattern; *c;) {
		struct field field;
		const char *next = *c == '{' ? read_field(&field, c + 1) : c + 1;

		if (!next || *c == '}')
			return err_set(err, ST_INVALID,
				       "\"%s\": a field is {NAME} or {NAME:FORMAT}, as in "
				       "{epoch:02d} or {val_loss:.4f}",
				       c);
		c = next;
	}
	return ST_OK;
}

/* "d" cuts off the fraction; nan and inf have no whole part and stay what they are. */
static int format_value(const struct field *field, double value, char *out, size_t size)
{
	const int precision = field->precision < 0 ? 6 : field->precision, width = field->width;
	const bool zero = field->zero;

	value = isnan(value) ? (double)NAN : value; /* "-nan" is "nan" */

	switch (field->conversion) {
	case 'f':
		return snprintf(out, size, zero ? "%0*.*f" : "%*.*f", width, precision, value);
	case 'e':
		return snprintf(out, size, zero ? "%0*.*e" : "%*.*e", width, precision, value);
	case 'd':
		return snprintf(out, size, zero ? "%0*.0f" : "%*.0f", width, trunc(value) + 0.0);
	default:
		return snprintf(out, size, zero ? "%0*.*g" : "%*.*g", width, precision, value);
	}
}

static enum status report_unknown_field(const struct field *field, const struct ips_logs *logs,
					struct err *err)
{
	char known[256] = "epoch";

	for (int i = 0; i < logs->count; i++) {
		size_t used = strlen(known);

		snprintf(known + used, sizeof(known) - used, ", %s", logs->items[i].name);
	}
	return err_set(err, ST_INVALID, "there is no {%s} among the logs (%s)", field->name, known);
}

enum status callback_name(const char *pattern, int64_t epoch, const struct ips_logs *logs,
			  char *out, size_t size, struct err *err)
{
	size_t used = 0;

	for (const char *c = pattern; *c;) {
		struct field field;
		const double *value;
		double number;
		int put;

		if (used + 1 >= size)
			return err_set(err, ST_INVALID, "the file's name is too long");
		if (*c != '{') {
			out[used++] = *c++;
			continue;
		}
		c = read_field(&field, c + 1);
		if (!c)
			return err_set(err, ST_INVALID, "\"%s\" has a field that is none", pattern);
		value = callback_log(logs, field.name);
		if (!strcmp(field.name, "epoch")) {
			field.conversion = field.conversion ? field.conversion : 'd';
			number = (double)epoch;
			value = &number;
		}
		if (!value)
			return report_unknown_field(&field, logs, err);
		put = format_value(&field, *value, out + used, size - used);
		if (put < 0 || (size_t)put >= size - used)
			return err_set(err, ST_INVALID, "the file's name is too long");
		used += (size_t)put;
	}
	out[used] = '\0';
	return ST_OK;
}

/* ---- the callback ---------------------------------------------------------------------------- */

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
	if (!err_stuck(err) && callback_name_check(c->path, &why) != ST_OK &&
	    json_child(config, "filepath", &here))
		json_fail(&here, err, "%s", why.text);
}

/* Format the file's name for @epoch. */
static enum status checkpoint_path(const struct checkpoint *c, int64_t epoch,
				   const struct ips_logs *logs, char path[FS_PATH_SIZE],
				   struct err *err)
{
	if (callback_name(c->path, epoch, logs, path, FS_PATH_SIZE, err) == ST_OK)
		return ST_OK;
	return err_prefix(err, "ModelCheckpoint: %s", c->path);
}

static void checkpoint_save(struct callback *callback, const struct callback_event *event)
{
	struct checkpoint *c = callback->state;
	const struct callback_host *host = event->host;
	char path[FS_PATH_SIZE];

	if (c->best_only) {
		const double *value = callback_monitored(callback, event, c->monitor, &c->warned);

		if (!value || !callback_improves(c->mode, c->monitor, *value, c->best, 0.0))
			return;
		c->best = *value;
	}
	if (checkpoint_path(c, c->epoch, event->logs, path, event->err) == ST_OK &&
	    keras_save_weights(host->model, host->weights(host->user), path, event->err) == ST_OK &&
	    c->verbose)
		callback_say(event, "Epoch %" PRId64 ": saving model to %s", c->epoch, path);
}

/* Before the first epoch, report a name whose fields have no value, and a missing folder, unless
 * the folder's name depends on the epoch. */
static void checkpoint_begin(struct callback *callback, const struct callback_event *event)
{
	const struct checkpoint *c = callback->state;
	const char *slash = strrchr(c->path, '/');
	const char *field = strchr(c->path, '{');

	keras_save_check(c->path, NULL, event->err);
	/* A field that no log has would fail only at the first save. After a batch the logs lack
	 * validation metrics. */
	if (event->logs && !err_stuck(event->err)) {
		struct ips_logs some = *event->logs;
		char path[FS_PATH_SIZE];

		while (c->every && some.count &&
		       !strncmp(some.items[some.count - 1].name, "val_", 4))
			some.count--;
		checkpoint_path(c, 1, &some, path, event->err);
	}
	if (!err_stuck(event->err) && !(slash && field && field < slash))
		fs_check_write(c->path, event->err);
}

static void checkpoint_epoch_begin(struct callback *callback, const struct callback_event *event)
{
	struct checkpoint *c = callback->state;

	c->epoch = event->epoch;
}

/* Called once per execution, so @event->batch advances by several batches. */
static void checkpoint_batch(struct callback *callback, const struct callback_event *event)
{
	struct checkpoint *c = callback->state;

	if (event->mode != IPS_TRAIN || !c->every || event->batch + 1 - c->seen < c->every)
		return;
	c->seen = event->batch + 1;
	checkpoint_save(callback, event);
}

static void checkpoint_epoch(struct callback *callback, const struct callback_event *event)
{
	const struct checkpoint *c = callback->state;

	if (!c->every)
		checkpoint_save(callback, event);
}

static void checkpoint_snapshot(struct callback *callback, const struct callback_event *event)
{
	struct checkpoint *c = callback->state;

	snapshot_integer(event->snapshot, "seen", &c->seen, 0, INT64_MAX);
	snapshot_real(event->snapshot, "best", &c->best);
}

const struct callback_ops callback_model_checkpoint = {
	.class_name = "ModelCheckpoint",
	.writes = true,
	.size = sizeof(struct checkpoint),
	.options = MODEL_OPTIONS(checkpoint_options),
	.read = checkpoint_read,
	.on = {[CALLBACK_TRAIN_BEGIN] = checkpoint_begin,
	       [CALLBACK_EPOCH_BEGIN] = checkpoint_epoch_begin,
	       [CALLBACK_BATCH_END] = checkpoint_batch,
	       [CALLBACK_EPOCH_END] = checkpoint_epoch,
	       [CALLBACK_SNAPSHOT] = checkpoint_snapshot},
};
