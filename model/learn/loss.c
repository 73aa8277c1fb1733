/*
 * Losses: the table, reading, and checks against outputs and targets. No state.
 */
#include "model/learn/loss.h"

#include <stdio.h>
#include <float.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/model_config.h"

struct loss_ops {
	const char *class_name, *name;
	const char *other_names[4]; /* that Keras accepts, or NULL */
	/* Reads the input of this activation if it ends the model; MODEL_LINEAR: of none. */
	enum model_activation takes;
	bool error;                   /* of values, not a crossentropy */
	bool classes;                 /* the targets are class numbers */
	bool single_values;           /* one target may serve all outputs of its item */
	struct model_options options; /* beyond those of all losses */
};

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct loss, member)

/* clang-format off */
#define FROM_LOGITS {"from_logits", MODEL_BOOL, AT(from_logits), .strict = true}
#define SMOOTHING   {"label_smoothing", MODEL_FLOAT, AT(label_smoothing), .most = 1.0, .must = "must be from 0 to 1"}
#define AXIS        {"axis", .rule = MODEL_ANY} /* loss_config() checks it */
static const struct model_option sparse_options[] = {FROM_LOGITS, AXIS, {"ignore_class", .rule = MODEL_ANY}};
static const struct model_option smooth_options[] = {FROM_LOGITS, AXIS, SMOOTHING};
static const struct model_option focal_options[] = {
	FROM_LOGITS,
	AXIS,
	SMOOTHING,
	{"gamma", MODEL_REAL, AT(gamma), .most = 1000.0, .must = "must be from 0 to 1000"},
	{"alpha", MODEL_REAL, AT(alpha), .most = 1.0, .must = "must be from 0 to 1"},
	{"apply_class_balancing", MODEL_BOOL, AT(apply_class_balancing)},
};
static const struct model_option huber_options[] = {
	{"delta", MODEL_REAL, AT(delta), .least = DBL_MIN, .most = 3e38, .must = "must be above 0"},
};
/* clang-format on */

#define OPTIONS(own) .options = MODEL_OPTIONS(own##_options)

static const struct loss_ops loss_rows[LOSS_KINDS] = {
	[LOSS_BINARY_CROSSENTROPY] = {"BinaryCrossentropy", "binary_crossentropy",
				      .other_names = {"bce", "BCE"}, .takes = MODEL_SIGMOID,
				      .single_values = true, OPTIONS(smooth)},
	[LOSS_BINARY_FOCAL_CROSSENTROPY] = {"BinaryFocalCrossentropy", "binary_focal_crossentropy",
					    .single_values = true, OPTIONS(focal)},
	[LOSS_CATEGORICAL_CROSSENTROPY] = {"CategoricalCrossentropy", "categorical_crossentropy",
					   .takes = MODEL_SOFTMAX, OPTIONS(smooth)},
	[LOSS_CATEGORICAL_FOCAL_CROSSENTROPY] = {"CategoricalFocalCrossentropy",
						 "categorical_focal_crossentropy", OPTIONS(focal)},
	[LOSS_CATEGORICAL_HINGE] = {"CategoricalHinge", "categorical_hinge", .error = true},
	[LOSS_HINGE] = {"Hinge", "hinge", .error = true, .single_values = true},
	[LOSS_HUBER] = {"Huber", "huber", .error = true, .single_values = true, OPTIONS(huber)},
	[LOSS_KL_DIVERGENCE] = {"KLDivergence", "kl_divergence",
				.other_names = {"kld", "KLD", "kullback_leibler_divergence"}},
	[LOSS_LOG_COSH] = {"LogCosh", "log_cosh", .other_names = {"logcosh"}, .error = true,
			   .single_values = true},
	[LOSS_MEAN_ABSOLUTE_ERROR] = {"MeanAbsoluteError", "mean_absolute_error",
				      .other_names = {"mae", "MAE"}, .error = true,
				      .single_values = true},
	[LOSS_MEAN_SQUARED_ERROR] = {"MeanSquaredError", "mean_squared_error",
				     .other_names = {"mse", "MSE"}, .error = true,
				     .single_values = true},
	[LOSS_SQUARED_HINGE] = {"SquaredHinge", "squared_hinge", .error = true,
				.single_values = true},
	[LOSS_SPARSE_CATEGORICAL_CROSSENTROPY] = {"SparseCategoricalCrossentropy",
						  "sparse_categorical_crossentropy",
						  .takes = MODEL_SOFTMAX, .classes = true,
						  OPTIONS(sparse)},
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool loss_is(const struct loss_ops *ops, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ops->other_names); i++)
		if (ops->other_names[i] && !strcmp(ops->other_names[i], name))
			return true;
	return !strcmp(ops->class_name, name) || !strcmp(ops->name, name);
}

static const struct loss_ops *loss_ops(const struct loss *loss)
{
	return &loss_rows[loss->kind];
}

/* The row named @name, or -1. */
static int loss_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(loss_rows); i++)
		if (loss_is(&loss_rows[i], name))
			return (int)i;
	return -1;
}

void loss_read_ignored(struct loss *out, const struct json_at *config, const char *key,
		       struct err *err)
{
	struct json_at here;

	out->ignores = model_option_given(config, key, &here, err) &&
		       json_int(&here, INT32_MIN, INT32_MAX, &out->ignore_class, err) == ST_OK;
}

bool loss_known(const char *name)
{
	return loss_find(name) >= 0;
}

static void loss_config(struct loss *out, const struct json_at *config, struct err *err)
{
	static const struct model_option options[] = {
		{"name", .rule = MODEL_ANY},
		{"reduction", .rule = MODEL_ANY},
		{"dtype", .rule = MODEL_FLOAT32},
		{"fn", .rule = MODEL_ANY},
	};
	const struct model_options *own = &loss_ops(out)->options;
	const char *reduction = "auto";
	struct json_at here;
	int64_t axis;

	model_config_check(config, own->rows, own->count, options, ARRAY_LEN(options), err);
	if (model_option_at(config, "reduction", &here, err) &&
	    json_text(&here, &reduction, err) == ST_OK && strcmp(reduction, "auto") != 0 &&
	    strcmp(reduction, "sum_over_batch_size") != 0)
		model_config_unsupported(&here, err,
					 "the reduction \"%s\" is not supported: it must be "
					 "\"sum_over_batch_size\" (or \"auto\")",
					 reduction);
	model_config_read(config, own, out, NULL, err);
	if (model_option_given(config, "axis", &here, err))
		json_int(&here, -1, -1, &axis, err);
	loss_read_ignored(out, config, "ignore_class", err);
}

struct loss loss_of(enum loss_kind kind)
{
	return (struct loss){.kind = kind, .delta = 1.0, .gamma = 2.0, .alpha = 0.25};
}

enum status loss_get(struct loss *out, const struct json_at *at, struct err *err)
{
	const char *known[2 * LOSS_KINDS], *name;
	struct json_at config;
	bool config_here;
	struct err own;
	int found;

	err = err_start(err, &own);
	*out = loss_of(LOSS_BINARY_CROSSENTROPY);
	if (model_config_object(at, &name, &config, &config_here, err) != ST_OK)
		return err->status;
	found = loss_find(name);
	if (found < 0) {
		for (int i = 0; i < LOSS_KINDS; i++) {
			known[i] = loss_rows[i].name;
			known[LOSS_KINDS + i] = loss_rows[i].class_name;
		}
		return json_unknown(at, "loss", name, known,
				    str_nearest(name, known, ARRAY_LEN(known)) ? ARRAY_LEN(known)
									       : LOSS_KINDS,
				    err);
	}
	out->kind = (enum loss_kind)found;
	if (config_here)
		loss_config(out, &config, err);
	return err->status;
}

const char *loss_name(const struct loss *loss)
{
	return loss_ops(loss)->name;
}

const char *loss_class_name(const struct loss *loss)
{
	return loss_ops(loss)->class_name;
}

/* ---- checks against outputs and targets ------------------------------------------------------ */

bool loss_is_error(const struct loss *loss)
{
	return loss_ops(loss)->error;
}

bool loss_takes_logits(const struct loss *loss, const struct model *model)
{
	int last = model_final_activation(model);

	return last >= 0 && loss_ops(loss)->takes != MODEL_LINEAR &&
	       model->layers[last].activation == loss_ops(loss)->takes;
}

struct loss_rows loss_rows_of(const struct model_output *output)
{
	const struct model_shape *shape = &output->shape;
	const int64_t width = shape->ndim ? shape->dim[shape->ndim - 1] : 1;

	return (struct loss_rows){model_shape_count(shape) / width, width};
}

int64_t loss_positions(const struct model *model)
{
	return model->output_count > 1 ? 1 : loss_rows_of(&model->outputs[0]).positions;
}

static enum status loss_report_misfit(const struct loss *loss, const struct model_output *output,
				      const char *why, struct err *err)
{
	char text[192];

	model_shape_text(&output->shape, 0, text, sizeof(text));
	return err_set(err, ST_INVALID,
		       "the model's output %s (layer \"%s\") does not fit the loss %s: %s", text,
		       output->name, loss_name(loss), why);
}

enum status loss_check_ignored(const struct loss *loss, const struct model_output *output,
			       const struct target_kind *kind, struct err *err)
{
	const bool is_class = kind->ignored >= 0 && kind->ignored < loss_rows_of(output).width;

	if (!kind->ignores || is_class || (loss->ignores && loss->ignore_class == kind->ignored))
		return ST_OK;
	return err_set(err, ST_INVALID,
		       "rows of the class %lld, which compile.loss ignores, have no %s, since the "
		       "output \"%s\" has no such class: ignore it here too",
		       (long long)kind->ignored, loss_name(loss), output->name);
}

static enum status loss_check_classes(const struct loss *loss, const struct model_output *output,
				      const struct target_kind *kind, struct err *err)
{
	const struct loss_rows rows = loss_rows_of(output);
	char why[160];

	if (!kind->classes)
		return err_set(err, ST_INVALID,
			       "the loss %s needs class numbers, but the data's targets are values "
			       "(%lld of each item): use categorical_crossentropy, or set "
			       "data.one_hot to false",
			       loss_name(loss), (long long)kind->width);
	if (targets_are_classes(kind, rows.positions) && rows.width >= kind->classes)
		return loss_check_ignored(loss, output, kind, err);
	if (targets_per_item(kind) == 1)
		snprintf(why, sizeof(why), "with %d classes in the data it must be (None, %d)",
			 kind->classes, kind->classes);
	else
		snprintf(why, sizeof(why),
			 "with %lld class numbers below %d for each item it must have as many "
			 "positions, of %d classes each",
			 (long long)targets_per_item(kind), kind->classes, kind->classes);
	return loss_report_misfit(loss, output, why, err);
}

enum status loss_check(const struct loss *loss, const struct model_output *output,
		       const struct target_kind *kind, struct err *err)
{
	const struct loss_rows rows = loss_rows_of(output);
	const int64_t width = targets_per_item(kind);
	char why[160];

	if (kind->weights > 1 && kind->weights != rows.positions) {
		snprintf(why, sizeof(why),
			 "sample_weight has %lld numbers for each item: 1, or one for each of the "
			 "output's %lld positions is wanted",
			 (long long)kind->weights, (long long)rows.positions);
		return loss_report_misfit(loss, output, why, err);
	}
	if (loss_ops(loss)->classes)
		return loss_check_classes(loss, output, kind, err);
	if (targets_are_classes(kind, rows.positions) && !loss_ops(loss)->single_values)
		return err_set(err, ST_INVALID,
			       "the loss %s needs values, but the data's targets are class "
			       "numbers: set data.one_hot to true, or use "
			       "sparse_categorical_crossentropy",
			       loss_name(loss));
	if (width == rows.positions * rows.width)
		return ST_OK;
	if (loss_ops(loss)->single_values && width == 1 && output->shape.ndim == 1)
		return ST_OK;
	snprintf(why, sizeof(why), "an item of the data has %lld target%s", (long long)width,
		 width == 1 ? "" : "s");
	return loss_report_misfit(loss, output, why, err);
}
