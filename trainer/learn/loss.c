/*
 * Losses. No state: all is on the caller's memory.
 */
#include "trainer/learn/loss.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/elementary.h"
#include "common/mem.h"
#include "trainer/kernels/kernel_elementary.h"
#include "trainer/models/model_config.h"
#include "trainer/models/model_internal.h"

#define LOSS_EPSILON  1e-7f /* Keras's backend.epsilon() */
#define LOSS_LEAST    LOSS_EPSILON
#define LOSS_GREATEST (1.0f - LOSS_EPSILON)

struct loss_item {
	const float *x; /* [width]: logits, or outputs where the loss is not from logits */
	int64_t width;
	int32_t label;
	const float *y;  /* the targets of the item, @y_step apart: 0 where there is one for all */
	int64_t y_step;  /* 0 or 1 */
	float smoothing; /* of labels */
	float share;     /* of the item in the mean: 1 / batch */
	float *gradient; /* of x; NULL: not wanted */
};

struct loss_ops {
	const char *class_name, *name;
	const char *other_names[2]; /* that Keras accepts, or NULL */
	/* Takes the input of this where it ends the model; MODEL_LINEAR: of none. */
	enum model_activation takes;
	bool classes;                       /* the targets are class numbers */
	bool single_values;                 /* a target may stand for all outputs of its item */
	const struct model_option *options; /* beyond those of all losses */
	size_t option_count;
	/* The loss of an item. */
	double (*from_logits)(const struct loss_item *item); /* NULL: there is no such form */
	double (*from_outputs)(const struct loss_item *item);
};

static float loss_clip(float p)
{
	return p < LOSS_LEAST ? LOSS_LEAST : p > LOSS_GREATEST ? LOSS_GREATEST : p;
}

/* false for NaN: it goes through. */
static bool loss_clipped(float p)
{
	return p < LOSS_LEAST || p > LOSS_GREATEST;
}

/* exp(x - the greatest), whose sum is returned; kept in the gradient where there is one. */
static float loss_exponentials(const struct loss_item *item, float *most)
{
	const float *x = item->x;
	float sum = 0.0f;

	*most = x[0];
	for (int64_t j = 1; j < item->width; j++)
		*most = x[j] > *most ? x[j] : *most;
	for (int64_t j = 0; j < item->width; j++) {
		float e = elementary_expf(x[j] - *most);

		sum += e;
		if (item->gradient)
			item->gradient[j] = e;
	}
	return sum;
}

/* ---- sparse_categorical_crossentropy --------------------------------------------------------- */

/* log(sum(exp(x))) - x[label], the greatest taken out first. */
static double sparse_from_logits(const struct loss_item *item)
{
	float most, sum = loss_exponentials(item, &most);

	for (int64_t j = 0; item->gradient && j < item->width; j++) {
		float p = item->gradient[j] / sum;

		item->gradient[j] = (j == item->label ? p - 1.0f : p) * item->share;
	}
	return elementary_log((double)sum) - ((double)item->x[item->label] - (double)most);
}

/* The logarithms of the clipped go through the softmax again: so they are normalised. */
static double sparse_from_outputs(const struct loss_item *item)
{
	float right = loss_clip(item->x[item->label]), sum = 0.0f;

	for (int64_t j = 0; j < item->width; j++)
		sum += loss_clip(item->x[j]);
	for (int64_t j = 0; item->gradient && j < item->width; j++) {
		float slope = 1.0f / sum - (j == item->label ? 1.0f / right : 0.0f);

		item->gradient[j] = loss_clipped(item->x[j]) ? 0.0f : slope * item->share;
	}
	return elementary_log((double)sum) - elementary_log((double)right);
}

/* ---- categorical_crossentropy ---------------------------------------------------------------- */

static float categorical_target(const struct loss_item *item, int64_t j)
{
	float s = item->smoothing;

	return s > 0.0f ? item->y[j] * (1.0f - s) + s / (float)item->width : item->y[j];
}

static double categorical_from_logits(const struct loss_item *item)
{
	float most, sum = loss_exponentials(item, &most);
	double rest = elementary_log((double)sum), value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float y = categorical_target(item, j);

		value += (double)y * (rest - ((double)item->x[j] - (double)most));
		if (item->gradient)
			item->gradient[j] = (item->gradient[j] / sum - y) * item->share;
	}
	return value;
}

/* With q = p / sum p and g the gradient of q, that of p is (g - sum g q) / sum p. */
static double categorical_from_outputs(const struct loss_item *item)
{
	double value = 0.0;
	float sum = 0.0f, flow = 0.0f;

	for (int64_t j = 0; j < item->width; j++)
		sum += item->x[j];
	for (int64_t j = 0; j < item->width; j++) {
		float y = categorical_target(item, j), q = item->x[j] / sum;
		float slope = loss_clipped(q) ? 0.0f : -y / q;

		value -= (double)y * elementary_log((double)loss_clip(q));
		flow += slope * q;
		if (item->gradient)
			item->gradient[j] = slope;
	}
	for (int64_t j = 0; item->gradient && j < item->width; j++)
		item->gradient[j] = (item->gradient[j] - flow) / sum * item->share;
	return value;
}

/* ---- binary_crossentropy --------------------------------------------------------------------- */

static float binary_target(const struct loss_item *item, int64_t j)
{
	float s = item->smoothing, y = item->y[j * item->y_step];

	return s > 0.0f ? y * (1.0f - s) + 0.5f * s : y;
}

static double binary_from_logits(const struct loss_item *item)
{
	float share = item->share / (float)item->width;
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float x = item->x[j], y = binary_target(item, j), e = elementary_expf(-fabsf(x));

		value += (double)(x < 0.0f ? 0.0f : x) - (double)x * (double)y +
			 elementary_log1p((double)e);
		if (item->gradient)
			item->gradient[j] = ((x < 0.0f ? e : 1.0f) / (1.0f + e) - y) * share;
	}
	return value / (double)item->width;
}

static double binary_from_outputs(const struct loss_item *item)
{
	float share = item->share / (float)item->width;
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float y = binary_target(item, j), c = loss_clip(item->x[j]);
		float yes = c + LOSS_EPSILON, no = 1.0f - c + LOSS_EPSILON;
		float slope = (1.0f - y) / no - y / yes;

		value -= (double)y * elementary_log((double)yes) +
			 (double)(1.0f - y) * elementary_log((double)no);
		if (item->gradient)
			item->gradient[j] = loss_clipped(item->x[j]) ? 0.0f : slope * share;
	}
	return value / (double)item->width;
}

/* ---- mean_squared_error ---------------------------------------------------------------------- */

static double squared_error(const struct loss_item *item)
{
	float share = 2.0f * item->share / (float)item->width;
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float apart = item->x[j] - item->y[j * item->y_step];

		value += (double)apart * (double)apart;
		if (item->gradient)
			item->gradient[j] = apart * share;
	}
	return value / (double)item->width;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct model_option sparse_options[] = {
	{"from_logits", MODEL_ANY},
	{"ignore_class", MODEL_NULL},
	{"axis", MODEL_ANY},
};

static const struct model_option smooth_options[] = {
	{"from_logits", MODEL_ANY},
	{"label_smoothing", MODEL_ANY},
	{"axis", MODEL_ANY},
};

static const struct loss_ops loss_rows[] = {
	{
		.class_name = "BinaryCrossentropy",
		.name = "binary_crossentropy",
		.other_names = {"bce", "BCE"},
		.takes = MODEL_SIGMOID,
		.single_values = true,
		.options = smooth_options,
		.option_count = ARRAY_LEN(smooth_options),
		.from_logits = binary_from_logits,
		.from_outputs = binary_from_outputs,
	},
	{
		.class_name = "CategoricalCrossentropy",
		.name = "categorical_crossentropy",
		.takes = MODEL_SOFTMAX,
		.options = smooth_options,
		.option_count = ARRAY_LEN(smooth_options),
		.from_logits = categorical_from_logits,
		.from_outputs = categorical_from_outputs,
	},
	{
		.class_name = "MeanSquaredError",
		.name = "mean_squared_error",
		.other_names = {"mse", "MSE"},
		.single_values = true,
		.from_outputs = squared_error,
	},
	{
		.class_name = "SparseCategoricalCrossentropy",
		.name = "sparse_categorical_crossentropy",
		.takes = MODEL_SOFTMAX,
		.classes = true,
		.options = sparse_options,
		.option_count = ARRAY_LEN(sparse_options),
		.from_logits = sparse_from_logits,
		.from_outputs = sparse_from_outputs,
	},
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool loss_is(const struct loss_ops *ops, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ops->other_names); i++)
		if (ops->other_names[i] && !strcmp(ops->other_names[i], name))
			return true;
	return !strcmp(ops->class_name, name) || !strcmp(ops->name, name);
}

static const struct loss_ops *loss_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(loss_rows); i++)
		if (loss_is(&loss_rows[i], name))
			return &loss_rows[i];
	return NULL;
}

static enum status loss_unknown(const struct json_at *at, const char *name, struct err *err)
{
	const char *known[2 * ARRAY_LEN(loss_rows)];

	for (size_t i = 0; i < ARRAY_LEN(loss_rows); i++) {
		known[2 * i] = loss_rows[i].name;
		known[2 * i + 1] = loss_rows[i].class_name;
	}
	return json_unknown(at, "loss", name, known, ARRAY_LEN(known), err);
}

static enum status loss_reduction(const struct json_at *config, struct err *err)
{
	static const char *const means[] = {"auto", "sum_over_batch_size"};
	struct json_at here;
	const char *text;
	enum status status;

	if (!json_child(config, "reduction", &here) || json_is_null(&here))
		return ST_OK;
	status = json_text(&here, &text, err);
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(means); i++)
		if (!strcmp(text, means[i]))
			return ST_OK;
	if (status != ST_OK)
		return status;
	return model_config_unsupported(&here, err,
					"the reduction \"%s\" is not supported: it must be "
					"\"sum_over_batch_size\" (or \"auto\")",
					text);
}

static enum status loss_smoothing(struct loss *out, const struct json_at *at, struct err *err)
{
	double value;
	enum status status = json_real(at, &value, err);

	if (status != ST_OK)
		return status;
	if (!(value >= 0.0 && value <= 1.0))
		return json_fail(at, err, "must be from 0 to 1, not %g", value);
	out->label_smoothing = (float)value;
	return ST_OK;
}

static enum status loss_config(struct loss *out, const struct json_at *config, struct err *err)
{
	static const struct model_option options[] = {
		{"name", MODEL_ANY},
		{"reduction", MODEL_ANY},
		{"dtype", MODEL_FLOAT32},
		{"fn", MODEL_ANY},
	};
	enum status status;
	struct json_at here;
	int64_t axis;

	status = model_config_check(config, out->ops->options, out->ops->option_count, options,
				    ARRAY_LEN(options), err);
	if (status == ST_OK)
		status = loss_reduction(config, err);
	if (status == ST_OK && json_child(config, "from_logits", &here))
		status = json_bool(&here, &out->from_logits, err);
	if (status == ST_OK && json_child(config, "label_smoothing", &here))
		status = loss_smoothing(out, &here, err);
	if (status == ST_OK && json_child(config, "axis", &here))
		status = json_int(&here, -1, -1, &axis, err);
	return status;
}

enum status loss_get(struct loss *out, const struct json_at *at, struct err *err)
{
	struct json_at config;
	const char *name;
	bool config_here;
	enum status status = model_config_object(at, &name, &config, &config_here, err);

	*out = (struct loss){0};
	if (status != ST_OK)
		return status;
	out->ops = loss_find(name);
	if (!out->ops)
		return loss_unknown(at, name, err);
	return config_here ? loss_config(out, &config, err) : ST_OK;
}

const char *loss_name(const struct loss *loss)
{
	return loss->ops->name;
}

const char *loss_class_name(const struct loss *loss)
{
	return loss->ops->class_name;
}

/* ---- fitting --------------------------------------------------------------------------------- */

bool loss_is_error(const struct loss *loss)
{
	return loss->ops->takes == MODEL_LINEAR;
}

bool loss_takes_logits(const struct loss *loss, const struct model *model)
{
	int last = model__final_activation(model);

	return last >= 0 && model->layers[last].activation == loss->ops->takes;
}

static const struct model_layer *loss_layer(const struct model *model)
{
	return &model->layers[model->layer_count - 1];
}

static enum status loss_misfit(const struct loss *loss, const struct model *model, const char *why,
			       struct err *err)
{
	const struct model_layer *last = loss_layer(model);
	char text[192];

	model_shape_text(&last->output, 0, text, sizeof(text));
	return err_set(err, ST_INVALID,
		       "the model's output %s (layer \"%s\") does not fit the loss %s: %s", text,
		       last->name, loss_name(loss), why);
}

static enum status loss_check_classes(const struct loss *loss, const struct model *model,
				      const struct target_kind *kind, struct err *err)
{
	const struct model_shape *output = &loss_layer(model)->output;
	char why[160];

	if (!kind->classes)
		return err_set(err, ST_INVALID,
			       "the loss %s needs class numbers, but the data's targets are values "
			       "(%lld of each item): use categorical_crossentropy, or set "
			       "data.one_hot to false",
			       loss_name(loss), (long long)kind->width);
	if (output->ndim == 1 && output->dim[0] >= kind->classes)
		return ST_OK;
	snprintf(why, sizeof(why), "with %d classes in the data it must be (None, %d)",
		 kind->classes, kind->classes);
	return loss_misfit(loss, model, why, err);
}

enum status loss_check(const struct loss *loss, const struct model *model,
		       const struct target_kind *kind, struct err *err)
{
	const struct model_shape *output = &loss_layer(model)->output;
	int64_t width = kind->classes ? 1 : kind->width;
	char why[160];

	if (loss->ops->classes)
		return loss_check_classes(loss, model, kind, err);
	if (kind->classes && !loss->ops->single_values)
		return err_set(err, ST_INVALID,
			       "the loss %s needs values, but the data's targets are class "
			       "numbers: set data.one_hot to true, or use "
			       "sparse_categorical_crossentropy",
			       loss_name(loss));
	if (!loss->ops->single_values && output->ndim != 1)
		return loss_misfit(loss, model, "it must be (None, classes)", err);
	if (width == model_shape_count(output))
		return ST_OK;
	if (loss->ops->single_values && width == 1 && output->ndim == 1)
		return ST_OK;
	snprintf(why, sizeof(why), "an item of the data has %lld target%s", (long long)width,
		 width == 1 ? "" : "s");
	return loss_misfit(loss, model, why, err);
}

/* ---- running --------------------------------------------------------------------------------- */

void loss_run(const struct loss *loss, const float *outputs, const float *logits,
	      const struct targets *targets, int64_t batch, int64_t width, float *gradient,
	      struct loss_result *out)
{
	bool from_logits = loss->ops->from_logits && (logits || loss->from_logits);
	const float *x = logits ? logits : outputs;
	double sum = 0.0;

	assert(!logits || loss->ops->from_logits);
	for (int64_t i = 0; i < batch; i++) {
		struct loss_item item = {
			.x = x + i * width,
			.width = width,
			.smoothing = loss->label_smoothing,
			.share = 1.0f / (float)batch,
			.gradient = gradient ? gradient + i * width : NULL,
		};
		float number;

		if (targets->classes) {
			item.label = targets->classes[i];
			number = (float)item.label;
			item.y = &number;
			assert(!loss->ops->classes || (item.label >= 0 && item.label < width));
		} else {
			item.y = targets->values + i * targets->width;
			item.y_step = targets->width > 1;
		}
		sum += from_logits ? loss->ops->from_logits(&item) : loss->ops->from_outputs(&item);
	}
	*out = (struct loss_result){.loss = sum / (double)batch};
}
