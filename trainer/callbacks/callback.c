/*
 * The table of callbacks, calling them, and parsing their options; and the callbacks of the
 * training loop and of a program, which have no work of their own.
 *
 * Threading: see callback.h. Ownership: the list owns its callbacks and their state.
 */
#include "trainer/callbacks/callback.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

/* State of a callback that a program added. */
struct callback_own {
	struct ips_callback own;
	struct ips_trainer *trainer;
};

static const struct callback_ops callback_own_ops;

/* The state of @callback if a program added it; otherwise NULL. */
static const struct callback_own *own_of(const struct callback *callback)
{
	return callback->ops == &callback_own_ops ? callback->state : NULL;
}

static const struct callback_ops *const callback_rows[] = {
	&callback_backup_and_restore,      &callback_csv_logger,       &callback_early_stopping,
	&callback_learning_rate_scheduler, &callback_model_checkpoint, &callback_outfeed,
	&callback_reduce_lr_on_plateau,    &callback_terminate_on_nan,
};

const char *callback_class_name(int index)
{
	return (size_t)index < ARRAY_LEN(callback_rows) ? callback_rows[index]->class_name : NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

const char *const callback_modes[] = {"auto", "min", "max", NULL};

void callback_read_frequency(const struct json_at *config, int64_t *out, struct err *err)
{
	struct json_at here;

	if (!model_option_at(config, "save_freq", &here, err) ||
	    (cJSON_IsString(here.node) && !strcmp(here.node->valuestring, "epoch")))
		return;
	if (cJSON_IsString(here.node))
		json_fail(&here, err, "must be \"epoch\" or a number of batches");
	else
		json_int(&here, 1, INT32_MAX, out, err);
}

/* The field of row @i if it is a text, otherwise NULL. */
static const char **text_field(const struct callback *callback, size_t i)
{
	const struct model_option *option = &callback->ops->options.rows[i];

	if (option->rule != MODEL_TEXT)
		return NULL;
	return (const char **)((char *)callback->state + option->offset);
}

static void read_options(struct callback *callback, const struct json_at *config, struct err *err)
{
	const struct callback_ops *ops = callback->ops;

	callback->state = mem_calloc(1, ops->size + 1);
	if (!callback->state) {
		err_nomem(err);
		return;
	}
	model_config_check(config, ops->options.rows, ops->options.count, NULL, 0, err);
	model_config_read(config, &ops->options, callback->state, NULL, err);
	for (size_t i = 0; i < ops->options.count; i++) {
		const char **text = text_field(callback, i);

		if (text && *text && !(*text = mem_strdup(*text)))
			err_nomem(err);
	}
	if (ops->read && !err_stuck(err))
		ops->read(callback, config, err);
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct callback *callbacks_append(struct callbacks *callbacks,
					 const struct callback_ops *ops, struct err *err)
{
	struct callback *added;

	if (mem_grow(&callbacks->items, &callbacks->capacity, (size_t)callbacks->count + 1,
		     sizeof(*added))) {
		err_nomem(err);
		return NULL;
	}
	added = &callbacks->items[callbacks->count++];
	*added = (struct callback){.ops = ops};
	return added;
}

static void callback_read(struct callbacks *out, const struct json_at *at, struct err *err)
{
	static const cJSON nothing = {.type = cJSON_Object};
	const char *known[ARRAY_LEN(callback_rows)], *class_name;
	const struct callback_ops *ops = NULL;
	struct callback *callback;
	struct json_at config;
	bool config_here;

	if (model_config_object(at, &class_name, &config, &config_here, err) != ST_OK)
		return;
	for (size_t i = 0; i < ARRAY_LEN(callback_rows); i++) {
		known[i] = callback_rows[i]->class_name;
		if (!strcmp(known[i], class_name))
			ops = callback_rows[i];
	}
	if (!ops) {
		json_unknown(at, "callback", class_name, known, ARRAY_LEN(known), err);
		return;
	}
	callback = callbacks_append(out, ops, err);
	if (!config_here) {
		config = *at;
		config.node = &nothing;
	}
	if (callback)
		read_options(callback, &config, err);
}

enum status callbacks_read(struct callbacks *out, const struct json_at *list, struct err *err)
{
	struct json_at item = {0};
	struct err own;

	err = err_start(err, &own);
	*out = (struct callbacks){.silent = out->silent};
	while (list && !err_stuck(err) && json_next(list, &item))
		callback_read(out, &item, err);
	if (err_stuck(err))
		callbacks_fini(out);
	return err->status;
}

enum status callbacks_load(struct callbacks *out, const struct run_file *run, struct err *err)
{
	const struct json_at root = json_root(run->path, run->json);
	struct json_at list;

	if (!run->callbacks || !json_child(&root, "callbacks", &list))
		return ST_OK;
	return callbacks_read(out, &list, err);
}

/* The first callback of a class, or NULL. */
static const struct callback *find(const struct callbacks *callbacks,
				   const struct callback_ops *ops)
{
	for (int i = 0; i < callbacks->count; i++)
		if (callbacks->items[i].ops == ops)
			return &callbacks->items[i];
	return NULL;
}

bool callbacks_show_outfeeds(const struct callbacks *callbacks)
{
	return find(callbacks, &callback_outfeed);
}

bool callbacks_move_rate(const struct callbacks *callbacks)
{
	for (int i = 0; i < callbacks->count; i++)
		if (callbacks->items[i].ops->moves_rate)
			return true;
	return false;
}

void callbacks_fini(struct callbacks *callbacks)
{
	for (int i = 0; i < callbacks->count; i++) {
		struct callback *one = &callbacks->items[i];

		if (one->ops->fini && one->state)
			one->ops->fini(one);
		for (size_t o = 0; one->state && o < one->ops->options.count; o++)
			if (text_field(one, o))
				mem_free((void *)(uintptr_t)*text_field(one, o));
		mem_free(one->state);
	}
	mem_free(callbacks->items);
	*callbacks = (struct callbacks){0};
}

/* ---- calling --------------------------------------------------------------------------------- */

static bool is_silent(const struct callbacks *callbacks, const struct callback *one)
{
	return callbacks->silent && one->ops->writes;
}

enum status callbacks_call(const struct callbacks *callbacks, const struct callback_event *event)
{
	struct callback_event at = *event;
	struct err own;

	at.err = err_start(event->err, &own);
	for (int i = 0; i < callbacks->count && !err_stuck(at.err); i++) {
		struct callback *one = &callbacks->items[i];

		if (one->ops->on[at.moment] && !is_silent(callbacks, one) &&
		    (at.which == CALLBACK_ALL ||
		     one->ops->any_thread == (at.which == CALLBACK_RUNNING)))
			one->ops->on[at.moment](one, &at);
	}
	return at.err->status;
}

bool callbacks_dequeue_outfeeds(const struct callbacks *callbacks)
{
	for (int i = 0; i < callbacks->count; i++)
		if (own_of(&callbacks->items[i]) && own_of(&callbacks->items[i])->own.outfeed)
			return true;
	return false;
}

void callbacks_outfeed(const struct callbacks *callbacks, const struct ips_trainer_outfeed *sent)
{
	for (int i = 0; i < callbacks->count; i++) {
		const struct callback_own *state = own_of(&callbacks->items[i]);

		if (state && state->own.outfeed)
			state->own.outfeed(state->own.user, state->trainer, sent);
	}
}

const char *callback_snapshot_name(const struct callback *callback)
{
	const struct callback_own *state = own_of(callback);

	if (state && (!state->own.save || !state->own.restore))
		return NULL;
	return callback->ops->on[CALLBACK_SNAPSHOT] ? callback->ops->class_name : NULL;
}

void callbacks_snapshot(const struct callbacks *callbacks, const struct callback_host *host,
			struct snapshot *snapshot)
{
	const struct callback_event event = {.moment = CALLBACK_SNAPSHOT,
					     .host = host,
					     .snapshot = snapshot,
					     .err = snapshot_err(snapshot)};

	for (int i = 0; i < callbacks->count; i++) {
		struct callback *one = &callbacks->items[i];

		if (!callback_snapshot_name(one) || is_silent(callbacks, one))
			continue;
		snapshot_prefix(snapshot, "callbacks[%d].%s.", i, one->ops->class_name);
		one->ops->on[CALLBACK_SNAPSHOT](one, &event);
	}
	snapshot_prefix(snapshot, "%s", "");
}

/* ---- BackupAndRestore ------------------------------------------------------------------------ */

/* The training loop makes the backups itself after calling all callbacks, since their state is part
 * of a backup. */
static const struct model_option backup_options[] = {
	{"backup_dir", MODEL_TEXT, .offset = offsetof(struct callback_backup, folder)},
	{"save_freq", .rule = MODEL_ANY},
	{"delete_checkpoint", MODEL_BOOL, .offset = offsetof(struct callback_backup, deletes),
	 .fallback = true},
	{"double_checkpoint", .rule = MODEL_FALSE},
	{"save_before_preemption", .rule = MODEL_FALSE},
	{"name", .rule = MODEL_ANY},
};

static void backup_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	struct callback_backup *backup = callback->state;

	callback_read_frequency(config, &backup->every, err);
	if (!err_stuck(err) && (!backup->folder || !backup->folder[0]))
		json_fail(config, err, "\"backup_dir\" is missing");
}

const struct callback_ops callback_backup_and_restore = {
	.class_name = "BackupAndRestore",
	.size = sizeof(struct callback_backup),
	.options = MODEL_OPTIONS(backup_options),
	.read = backup_read,
};

const struct callback_backup *callbacks_backup(const struct callbacks *callbacks)
{
	const struct callback *backup = find(callbacks, &callback_backup_and_restore);

	return backup ? backup->state : NULL;
}

/* ---- OutfeedCallback ------------------------------------------------------------------------- */

/* As in the tutorial: dequeues an outfeed queue at the end of every epoch and prints its values. */
struct outfeed_callback {
	const char *queue, *name;
};

static const struct model_option outfeed_options[] = {
	{"queue", MODEL_TEXT, .offset = offsetof(struct outfeed_callback, queue)},
	{"name", MODEL_TEXT, .offset = offsetof(struct outfeed_callback, name)},
};

static void outfeed_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	const struct outfeed_callback *state = callback->state;

	if (!state->queue)
		json_fail(config, err, "\"queue\" is missing: the name of an outfeed queue");
}

static void outfeed_epoch_end(struct callback *callback, const struct callback_event *event)
{
	const struct outfeed_callback *state = callback->state;
	const struct callback_host *host = event->host;

	if (host->outfeed)
		host->outfeed(host->user, state->queue, state->name ? state->name : state->queue,
			      event->epoch, event->err);
}

const struct callback_ops callback_outfeed = {
	.class_name = "OutfeedCallback",
	.size = sizeof(struct outfeed_callback),
	.options = MODEL_OPTIONS(outfeed_options),
	.read = outfeed_read,
	.on = {[CALLBACK_EPOCH_END] = outfeed_epoch_end},
};

/* ---- callbacks of a program ------------------------------------------------------------------ */

static void own_call(struct callback *callback, const struct callback_event *event)
{
	const struct callback_own *state = callback->state;
	const struct ips_callback *own = &state->own;

	switch (event->moment) {
	case CALLBACK_TRAIN_BEGIN:
		if (own->train_begin)
			own->train_begin(own->user, state->trainer);
		break;
	case CALLBACK_EPOCH_BEGIN:
		if (own->epoch_begin)
			own->epoch_begin(own->user, state->trainer, event->epoch);
		break;
	case CALLBACK_BATCH_END:
		if (own->batch_end)
			own->batch_end(own->user, state->trainer, event->mode, event->batch,
				       event->logs);
		break;
	case CALLBACK_EPOCH_END:
		if (own->epoch_end)
			own->epoch_end(own->user, state->trainer, event->epoch, event->logs);
		break;
	default:
		if (own->train_end)
			own->train_end(own->user, state->trainer);
	}
}

static void own_snapshot(struct callback *callback, const struct callback_event *event)
{
	const struct callback_own *own = callback->state;
	struct snapshot *snapshot = event->snapshot;
	const void *lent = NULL;
	size_t bytes = 0;
	void *state;

	if (err_stuck(event->err))
		return;
	if (!snapshot_reads(snapshot))
		lent = own->own.save(own->own.user, own->trainer, &bytes);
	bytes = lent ? bytes : 0;
	lent = snapshot_bytes(snapshot, "state", lent, &bytes);
	if (!lent || !snapshot_reads(snapshot))
		return;
	/* The backup's bytes are unaligned, so pass a copy. */
	state = mem_alloc(bytes + 1);
	if (!state)
		err_nomem(event->err);
	else if (own->own.restore(own->own.user, own->trainer, memcpy(state, lent, bytes), bytes))
		err_set(event->err, ST_INVALID, "%s: a callback of the program refuses its state",
			snapshot_path(snapshot));
	mem_free(state);
}

static const struct callback_ops callback_own_ops = {
	.class_name = "Callback",
	.any_thread = true,
	.on = {[CALLBACK_TRAIN_BEGIN] = own_call,
	       [CALLBACK_EPOCH_BEGIN] = own_call,
	       [CALLBACK_BATCH_END] = own_call,
	       [CALLBACK_EPOCH_END] = own_call,
	       [CALLBACK_TRAIN_END] = own_call,
	       [CALLBACK_SNAPSHOT] = own_snapshot},
};

enum status callbacks_add(struct callbacks *callbacks, const struct ips_callback *own,
			  struct ips_trainer *trainer, struct err *err)
{
	struct callback_own *state = mem_calloc(1, sizeof(*state));
	struct callback *callback;
	/* A program built against an older header has fewer members: the rest stay NULL. */
	size_t known = min(own->size, sizeof(state->own));

	if (!state)
		return err_nomem(err);
	memcpy(&state->own, own, known);
	state->trainer = trainer;
	callback = callbacks_append(callbacks, &callback_own_ops, err);
	if (!callback) {
		mem_free(state);
		return ST_NOMEM;
	}
	callback->state = state;
	return ST_OK;
}

/* ---- helpers of the callbacks ---------------------------------------------------------------- */

const double *callback_log(const struct ips_logs *logs, const char *name)
{
	for (int i = 0; i < logs->count; i++)
		if (!strcmp(logs->items[i].name, name))
			return &logs->items[i].value;
	return NULL;
}

bool callback_improves(enum callback_mode mode, const char *monitor, double value, double best,
		       double min_delta)
{
	const size_t length = strlen(monitor);
	bool smaller = mode == CALLBACK_MIN;

	if (isnan(best))
		return !isnan(value);
	/* Keras's rule: metrics that contain "acc" or end in "auc" should grow. */
	if (mode == CALLBACK_AUTO)
		smaller = !strstr(monitor, "acc") &&
			  (length < 3 || strcmp(monitor + length - 3, "auc") != 0);
	return smaller ? value < best - min_delta : value > best + min_delta;
}

void callback_say(const struct callback_event *event, const char *format, ...)
{
	char text[FS_PATH_SIZE + 128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	event->host->say(event->host->user, text);
}

const double *callback_monitored(const struct callback *callback,
				 const struct callback_event *event, const char *monitor,
				 bool *warned)
{
	const struct ips_logs *logs = event->logs;
	const double *value = callback_log(logs, monitor);
	struct str text = {0};

	if (value || *warned)
		return value;
	*warned = true;
	str_addf(&text,
		 "%s: the metric \"%s\" is not available; there are:", callback->ops->class_name,
		 monitor);
	for (int i = 0; i < logs->count; i++)
		str_addf(&text, "%s %s", i ? "," : "", logs->items[i].name);
	if (!strncmp(monitor, "val_", 4))
		str_add(&text, " (fit.validation gives those that begin with val_)");
	if (!text.failed)
		event->host->say(event->host->user, text.text);
	str_free(&text);
	return NULL;
}
