/*
 * What layers that work element by element share: slices, and numbers per channel.
 *
 * Thread safe. Slices depend on the shape only.
 */
#include <math.h>

#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/layer_internal.h"

#define ELEMENTS_HOT  4096 /* floats that stay in the innermost cache */
#define ELEMENTS_WORK 6    /* one is read, worked on and written in the time of so many floats */

struct elements_work {
	layer_body body;
	const void *context;
	int64_t rows, step;
	/* Of a forward pass that is watched: */
	struct kernel_watch *watch;
	const float *output;
	int64_t columns;
};

static void elements_slice(void *context, unsigned slice)
{
	const struct elements_work *w = context;
	int64_t first = slice * w->step, left = w->rows - first;

	w->body(w->context, first, left < w->step ? left : w->step);
}

/* Part by part, and each is looked at while it is hot. */
static void elements_watched_slice(void *context, unsigned slice)
{
	const struct elements_work *w = context;
	int64_t at = slice * w->step, left = w->rows - at;
	int64_t end = at + (left < w->step ? left : w->step);
	int64_t part = w->columns < ELEMENTS_HOT ? ELEMENTS_HOT / w->columns : 1;
	uint32_t most = 0;

	for (; at < end; at += part) {
		int64_t rows = end - at < part ? end - at : part;
		uint32_t seen;

		w->body(w->context, at, rows);
		seen = kernel_abs_max(w->output + at * w->columns, (size_t)(rows * w->columns));
		most = seen > most ? seen : most;
	}
	kernel_watch_put(w->watch, most);
}

static void elements_run(struct pool *pool, struct elements_work *work, int64_t columns,
			 pool_slice slice)
{
	work->step = columns < LAYER_GRAIN ? LAYER_GRAIN / (columns > 0 ? columns : 1) : 1;
	pool_share(pool, kernel_work_floats(ELEMENTS_WORK * work->rows * columns), slice, work,
		   (unsigned)((work->rows + work->step - 1) / work->step));
}

void layer__share(struct pool *pool, int64_t rows, int64_t columns, layer_body body,
		  const void *context)
{
	struct elements_work work = {.body = body, .context = context, .rows = rows};

	elements_run(pool, &work, columns, elements_slice);
}

void layer__share_output(const struct layer_pass *pass, int64_t rows, int64_t columns,
			 layer_body body, const void *context)
{
	struct elements_work work = {
		.body = body,
		.context = context,
		.rows = rows,
		.watch = pass->watch,
		.output = pass->output,
		.columns = columns,
	};

	if (!pass->watch || columns < 1) {
		elements_run(pass->pool, &work, columns, elements_slice);
		return;
	}
	elements_run(pass->pool, &work, columns, elements_watched_slice);
	pass->watch->known = true;
}

/* ---- channels -------------------------------------------------------------------------------- */

enum status layer__check_last_axis(const struct model_layer *layer, const struct json_at *config,
				   struct err *err)
{
	struct json_at here, item;
	int64_t axis;
	enum status status;

	if (!json_child(config, "axis", &here) || json_is_null(&here))
		return ST_OK;
	item = here;
	if (cJSON_IsArray(here.node) && (json_count(&here) != 1 || !json_item(&here, 0, &item)))
		return model_config_unsupported(&here, err, "not supported: it must be one axis");
	status = json_int(&item, INT32_MIN, INT32_MAX, &axis, err);
	if (status == ST_OK && axis != -1 && axis != layer->input.ndim)
		return model_config_unsupported(&item, err,
						"not supported: it must be the last axis (-1 or "
						"%d) here",
						layer->input.ndim);
	return status;
}

int64_t layer__pattern(int64_t channels)
{
	return channels < LAYER_PATTERN ? LAYER_PATTERN / channels * channels : channels;
}

void layer__repeat(float *pattern, int64_t channels)
{
	for (int64_t i = channels; i < layer__pattern(channels); i++)
		pattern[i] = pattern[i - channels];
}

static enum status elements_number(const struct json_at *at, float *out, struct err *err)
{
	double value;
	enum status status = json_real(at, &value, err);

	if (status == ST_OK && !isfinite((float)value))
		return json_fail(at, err, "must be a finite number");
	*out = status == ST_OK ? (float)value : 0.0f;
	return status;
}

enum status layer__channel_numbers(const struct json_at *config, const char *key, float *out,
				   int64_t channels, bool *here, struct err *err)
{
	enum status status = ST_OK;
	struct json_at at, item;
	int count;

	*here = json_child(config, key, &at) && !json_is_null(&at);
	if (!*here)
		return ST_OK;
	count = cJSON_IsArray(at.node) ? json_count(&at) : 1;
	if (count != 1 && count != channels)
		return json_fail(&at, err, "must be a number or a list of %lld, one per channel",
				 (long long)channels);
	for (int64_t i = 0; i < channels && status == ST_OK; i++) {
		if (i >= count) {
			out[i] = out[0];
			continue;
		}
		item = at;
		if (cJSON_IsArray(at.node))
			json_item(&at, (int)i, &item);
		status = elements_number(&item, &out[i], err);
	}
	return status;
}
