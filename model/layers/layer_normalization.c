/*
 * Normalizing layers: BatchNormalization, LayerNormalization, GroupNormalization, and Keras's
 * preprocessing layers Normalization and Rescaling. No state.
 */
#include <math.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

/* ---- gamma, beta and statistics -------------------------------------------------------------- */

/* clang-format off */
/* The options of a struct layer_norm: the config of a layer, or its member @norm ("norm."). */
#define NORM_OPTIONS(of, norm) \
	{"axis", .rule = MODEL_ANY}, LAYER_PARAM_OPTIONS("gamma"), LAYER_PARAM_OPTIONS("beta"), \
	{"epsilon", MODEL_REAL, LAYER_CONFIG(of, norm epsilon), .strict = true, .most = 3e38, \
	 .must = "must be 0 or greater", .fallback = 1e-3}, \
	{"center", MODEL_BOOL, LAYER_CONFIG(of, norm center), .strict = true, .fallback = true}, \
	{"scale", MODEL_BOOL, LAYER_CONFIG(of, norm scale), .strict = true, .fallback = true}
/* clang-format on */

/* Add gamma (ones) and beta (zeros). */
static enum status read_norm(const struct layer_reading *in, const struct layer_norm *norm)
{
	struct model_layer *layer = in->layer;
	int64_t channels = layer_last_dim(&layer->input);
	struct layer_param param = {
		.shape = {.ndim = 1, .dim = {channels}},
		.fan_in = channels,
		.fan_out = channels,
		.no_autocast = true, /* as in Keras */
	};

	if (!layer->input.ndim)
		return json_fail(in->config, in->err, "%s needs an input of at least one dimension",
				 layer->ops->class_name);
	layer__check_last_axis(in);
	param.name = "gamma";
	param.initializer = "Ones";
	if (norm->scale)
		layer__add_param(in, &param);
	param.name = "beta";
	param.initializer = "Zeros";
	if (norm->center)
		layer__add_param(in, &param);
	return in->err->status;
}

/* Append @op as NAME/PART.
 *
 * The computations are those of poplibs (popnn's batchNormStatistics, batchNormParamGradients): the
 * statistics are two reductions, the gradients of gamma and beta another two; everything else is
 * a map over elements with values per channel broadcast. poplibs runs two reductions in the same
 * compute sets, but each step of a map in a separate one; so the number of phases is about the
 * same (docs/cost-model.md). */
static void lower_below(struct layer_lowering *lowering, const char *name, const char *part,
			const struct layer_op *op)
{
	const char *text = arena_printf(lowering->arena, "%s/%s", name, part);

	if (text)
		layer__lower(lowering, text, op);
	else
		lowering->failed = true;
}

/* A sum and a sum of squares for each of the @groups, to LAYER_BETWEEN and LAYER_BETWEEN_TOO. */
static void lower_statistics(struct layer_lowering *lowering, const char *name, int64_t groups,
			     bool training_only)
{
	const int64_t count = layer__lower_count(lowering);
	struct layer_op sum = layer__reduce(count, groups, LAYER_INPUT, LAYER_BETWEEN);
	struct layer_op squares = layer__reduce(count, groups, LAYER_INPUT, LAYER_BETWEEN_TOO);

	sum.training_only = squares.training_only = training_only;
	lower_below(lowering, name, "Mean", &sum);
	lower_below(lowering, name, "PowerSum", &squares);
}

/* A map over all elements with @adds operations each, which reads values per channel. */
static struct layer_op norm_map(const struct layer_lowering *lowering, int adds, unsigned reads,
				unsigned writes)
{
	return layer__map(
		&(struct ipu_elements){
			.count = layer__lower_count(lowering),
			.operands = (reads & LAYER_INPUT) && (reads & LAYER_GRAD_OUTPUT) ? 2 : 1,
			.broadcast = layer_last_dim(&lowering->layer->input),
			.times = {[IPU_FN_ADD] = (uint8_t)adds}},
		reads, writes);
}

static unsigned norm_params(const struct layer_norm *norm)
{
	return (norm->scale ? LAYER_PARAM(0) : 0u) | (norm->center ? LAYER_PARAM(norm->scale) : 0u);
}

static unsigned norm_gamma_sum(const struct layer_norm *norm)
{
	return norm->scale ? LAYER_GRAD_PARAM(0) : (unsigned)LAYER_BETWEEN_TOO;
}

static unsigned norm_beta_sum(const struct layer_norm *norm)
{
	return norm->center ? LAYER_GRAD_PARAM(norm->scale) : (unsigned)LAYER_BETWEEN;
}

/* Gradients of gamma and beta: the sums of whitened x times dy, and of dy. If @both are needed and
 * one is not a parameter, its sum goes to LAYER_BETWEEN_TOO (gamma) or LAYER_BETWEEN (beta). */
static void lower_norm_sums(struct layer_lowering *lowering, const char *name,
			    const struct layer_norm *norm, bool both)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t channels = layer_last_dim(&lowering->layer->input);
	struct layer_op op =
		norm_map(lowering, 3, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);

	if (both || norm->scale) {
		op.makes = count;
		lower_below(lowering, name, "GradWhitened", &op);
		op = layer__reduce(count, channels, LAYER_BETWEEN, norm_gamma_sum(norm));
		lower_below(lowering, name, "GradGamma", &op);
	}
	op = layer__reduce(count, channels, LAYER_GRAD_OUTPUT, norm_beta_sum(norm));
	if (both || norm->center)
		lower_below(lowering, name, "GradBeta", &op);
}

/* ---- BatchNormalization ---------------------------------------------------------------------- */

/*
 * Over the last axis, as TensorFlow 2.6 computes it. For a sequence with a mask, as in Keras 3, the
 * moments are of the valid steps, and all steps are normalised by them.
 *
 * Training, with the micro-batch's mean and population variance over all other axes:
 *
 *	y = gamma (x - mean) / sqrt(variance + epsilon) + beta
 *	moving = moving momentum + micro-batch's (1 - momentum)
 *
 * For inputs of rank 4 and 5 (including the batch), TensorFlow uses its fused kernel: the moving
 * variance is then updated with the unbiased variance (n / (n - 1)), and epsilon is at least
 * 1.001e-5. For other ranks it is updated with the population variance. Inference normalises by the
 * moving statistics; so does training if the layer is not trainable or is called with
 * training: false.
 *
 * The coefficients of the forward pass are retained for the backward pass, so a weight update in
 * between does no harm. A following ReLU is fused into the normalising pass; its gradient is
 * recomputed from x, so the output is never read again.
 */
#define NORM_FUSED_EPSILON 1.001e-5

/* clang-format off */
static const struct model_option norm_options[] = {
	NORM_OPTIONS(batch_norm, norm.),
	{"momentum", MODEL_REAL, LAYER_CONFIG(batch_norm, momentum), .strict = true, .most = 1.0,
	 .must = "must be from 0 to 1", .fallback = 0.99},
	{"moving_mean_initializer", .rule = MODEL_ANY},
	{"moving_variance_initializer", .rule = MODEL_ANY},
	{"synchronized", .rule = MODEL_FALSE},
	{"renorm", .rule = MODEL_FALSE},
	{"renorm_clipping", .rule = MODEL_NULL},
	{"renorm_momentum", .rule = MODEL_ANY}, /* used by renorm only */
	{"virtual_batch_size", .rule = MODEL_NULL},
	{"adjustment", .rule = MODEL_NULL},
	{"fused", .rule = MODEL_NULL},
};
/* clang-format on */

static enum status norm_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const int64_t channels = layer_last_dim(&layer->input);
	struct layer_param moving = {.name = "moving_mean",
				     .initializer = "Zeros",
				     .shape = {.ndim = 1, .dim = {channels}},
				     .fan_in = channels,
				     .fan_out = channels,
				     .fixed = true};
	struct layer_batch_norm *c = layer->config;

	if (layer->mask && layer->input.ndim != 2)
		return model_config_unsupported(
			in->config, in->err,
			"\"%s\": BatchNormalization with a mask is of (steps, channels) alone",
			layer->name);
	c->fused = layer->input.ndim == 3 || layer->input.ndim == 4;
	read_norm(in, &c->norm);
	layer__add_param(in, &moving);
	moving.name = "moving_variance";
	moving.initializer = "Ones";
	layer__add_param(in, &moving);
	if (c->fused && c->norm.epsilon < NORM_FUSED_EPSILON)
		c->norm.epsilon = NORM_FUSED_EPSILON;
	return in->err->status;
}

int layer_batch_norm_bias(const struct model_layer *layer)
{
	const struct layer_batch_norm *own = layer->config;

	return own->norm.scale;
}

bool layer_batch_norm_learns(const struct model_layer *layer)
{
	return layer->trainable && !layer->inference;
}

/* Moments: subtract, add, multiply, add; then subtract, multiply, add. */
static int64_t norm_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input) * (layer_batch_norm_learns(layer) ? 7 : 3);
}

#define NORM_NAME "FusedBatchNormV3"

static bool norm_lower_learns(const struct layer_lowering *lowering)
{
	return lowering->training && layer_batch_norm_learns(lowering->layer);
}

/* Append the computation of the coefficients for x, and of the moving statistics: inverse
 * deviation (3 steps, root, division), variance from sums (2), each moving statistic (2).
 * Without training: one factor and one summand from the moving statistics. An evaluation within
 * training costs the same. */
static void norm_lower_coefficients(struct layer_lowering *lowering)
{
	const struct layer_batch_norm *own = lowering->layer->config;
	const int mean = own->norm.scale + own->norm.center;
	const unsigned moving = LAYER_PARAM(mean) | LAYER_PARAM(mean + 1);
	const bool learns = norm_lower_learns(lowering);
	const int64_t channels = layer_last_dim(&lowering->layer->input);
	struct layer_op op =
		layer__map(&(struct ipu_elements){.count = channels,
						  .operands = learns ? 4 : 2,
						  .times = {[IPU_FN_SQRT] = 1,
							    [IPU_FN_DIVIDE] = 1,
							    [IPU_FN_ADD] = learns ? 9 : 3}},
			   moving, lowering->retains ? LAYER_KEPT : LAYER_BETWEEN);

	op.makes = 2 * channels;
	op.full = true;
	if (learns) {
		op.reads |= LAYER_BETWEEN | LAYER_BETWEEN_TOO;
		op.writes |= moving;
	} else {
		op.reads |= norm_params(&own->norm);
	}
	lower_below(lowering, NORM_NAME, "Statistics", &op);
}

static void norm_lower_forward(struct layer_lowering *lowering)
{
	const struct layer_batch_norm *own = lowering->layer->config;
	const bool learns = norm_lower_learns(lowering);
	const struct layer_op each =
		norm_map(lowering, learns ? 4 : 2,
			 LAYER_INPUT | (lowering->retains ? LAYER_KEPT : LAYER_BETWEEN) |
				 (learns ? norm_params(&own->norm) : 0u),
			 LAYER_OUTPUT);
	struct layer_op weigh = layer__map(
		&(struct ipu_elements){.count = layer__lower_count(lowering),
				       .operands = 1,
				       .broadcast = layer_rows(lowering->layer, lowering->batch),
				       .times = {[IPU_FN_ADD] = 1}},
		LAYER_INPUT, LAYER_BETWEEN);

	weigh.makes = layer__lower_count(lowering);
	weigh.training_only = true;
	if (learns && lowering->layer->mask)
		layer__lower(lowering, NORM_NAME "/Mask/Mul", &weigh);
	if (learns)
		lower_statistics(lowering, NORM_NAME, layer_last_dim(&lowering->layer->input),
				 true);
	norm_lower_coefficients(lowering);
	layer__lower(lowering, NORM_NAME, &each);
}

/* dx = gamma inverse (dy - mean(dy) - whitened x mean(dy whitened x)). */
static void norm_lower(struct layer_lowering *lowering)
{
	const struct layer_batch_norm *own = lowering->layer->config;
	struct layer_op each =
		norm_map(lowering, 1, LAYER_GRAD_OUTPUT | LAYER_KEPT, LAYER_GRAD_INPUT);

	/* The factors are in the weights of the convolution before; a sum is left if that has no
	 * bias. */
	if (lowering->folded) {
		each = layer__map(
			&(struct ipu_elements){.count = layer__lower_count(lowering),
					       .operands = 1,
					       .broadcast = layer_last_dim(&lowering->layer->input),
					       .times = {[IPU_FN_ADD] = 1}},
			LAYER_INPUT | LAYER_PARAM(layer_batch_norm_bias(lowering->layer)),
			LAYER_OUTPUT);
		if (!lowering->model->layers[lowering->layer->inputs[0]].use_bias)
			layer__lower(lowering, "BiasAdd", &each);
		return;
	}
	if (lowering->phase == IPU_PHASE_F) {
		norm_lower_forward(lowering);
		return;
	}
	if (lowering->layer->trainable)
		lower_norm_sums(lowering, NORM_NAME, &own->norm, layer__wants_any(lowering));
	if (norm_lower_learns(lowering))
		each = norm_map(lowering, 6,
				LAYER_INPUT | LAYER_GRAD_OUTPUT | LAYER_KEPT |
					norm_gamma_sum(&own->norm) | norm_beta_sum(&own->norm) |
					(own->norm.scale ? LAYER_PARAM(0) : 0u),
				LAYER_GRAD_INPUT);
	if (layer__wants_any(lowering))
		lower_below(lowering, NORM_NAME, "GradX", &each);
}

const struct layer_ops layer_batch_normalization = {
	.class_name = "BatchNormalization",
	.masks = LAYER_MASKS_USED,
	.kind = LAYER_KIND_batch_normalization,
	.options = MODEL_OPTIONS(norm_options),
	.config_size = sizeof(struct layer_batch_norm),
	.read = norm_read,
	.flops = norm_flops,
	.lower = norm_lower,
	.function = true,
	.reads_inputs = true,
};

/* ---- LayerNormalization and GroupNormalization ----------------------------------------------- */

/*
 * Each row along the last axis by its mean and population variance, or each group of an item's
 * channels likewise; the same in training and inference.
 * y = gamma (x - mean) / sqrt(variance + epsilon) + beta, gamma and beta by channel.
 *
 * Means and inverse deviations are retained for the backward pass. Gradients of gamma and beta
 * are summed within each slice, then over the slices in their order.
 */
static const struct model_option rows_options[] = {NORM_OPTIONS(norm, ),
						   {"rms_scaling", .rule = MODEL_FALSE}};

static enum status rows_read(const struct layer_reading *in)
{
	return read_norm(in, in->layer->config);
}

/* "groups" -1: one group per channel. */
static const struct model_option groups_options[] = {
	NORM_OPTIONS(norm, ),
	{"groups", MODEL_INT, LAYER_CONFIG(norm, groups), .strict = true, .least = -1,
	 .most = INT32_MAX, .fallback = 32}};

static enum status groups_read(const struct layer_reading *in)
{
	const int64_t channels = layer_last_dim(&in->layer->input);
	struct layer_norm *norm = in->layer->config;
	struct json_at here = *in->config;

	if (read_norm(in, norm) != ST_OK)
		return in->err->status;
	model_option_given(in->config, "groups", &here, in->err);
	if (norm->groups == -1)
		norm->groups = channels;
	if (!norm->groups || channels % norm->groups)
		json_fail(&here, in->err,
			  "%lld groups do not divide the input's %lld channels: \"groups\" must "
			  "be a divisor of them, or -1 for a group of each",
			  (long long)norm->groups, (long long)channels);
	return in->err->status;
}

/* The same as BatchNormalization: moments, then values. */
static int64_t rows_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input) * 7;
}

static const char *name_of(const struct layer_lowering *lowering)
{
	return lowering->layer->ops == &layer_group_normalization ? "GroupNorm" : "LayerNorm";
}

/* Number of rows or groups of a micro-batch, each of which has a mean. */
static int64_t rows_of(const struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;

	return own->groups ? lowering->batch * own->groups
			   : layer_rows(lowering->layer, lowering->batch);
}

/* dx needs the row sums of dy gamma, and of dy gamma times whitened x. */
static void rows_lower_gradient(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned gamma = own->scale ? LAYER_PARAM(0) : 0u;
	const int64_t rows = rows_of(lowering);
	const int64_t count = layer__lower_count(lowering);
	struct layer_op op = norm_map(
		lowering, 4, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | gamma, LAYER_BETWEEN);

	op.makes = count;
	lower_below(lowering, name_of(lowering), "GradScaled", &op);
	op = layer__reduce(2 * count, 2 * rows, LAYER_BETWEEN | LAYER_GRAD_OUTPUT | gamma,
			   LAYER_BETWEEN_TOO);
	lower_below(lowering, name_of(lowering), "GradMoments", &op);
	op = norm_map(lowering, 7,
		      LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | LAYER_BETWEEN_TOO | gamma,
		      LAYER_GRAD_INPUT);
	lower_below(lowering, name_of(lowering), "GradX", &op);
}

/* As in Keras, all operations are float32, even in a layer that is half. */
static void rows_lower(struct layer_lowering *lowering)
{
	if (lowering->phase == IPU_PHASE_F) {
		const struct layer_norm *own = lowering->layer->config;
		const unsigned kept = lowering->retains ? LAYER_KEPT : LAYER_BETWEEN;
		const int64_t rows = rows_of(lowering);
		struct layer_op op = layer__map(
			&(struct ipu_elements){
				.count = rows,
				.operands = 2,
				.times =
					{[IPU_FN_SQRT] = 1, [IPU_FN_DIVIDE] = 1, [IPU_FN_ADD] = 5}},
			LAYER_BETWEEN | LAYER_BETWEEN_TOO, kept);

		/* Mean and inverse deviation of each row, then the normalisation. */
		op.makes = 2 * rows;
		lower_statistics(lowering, name_of(lowering), rows, false);
		lower_below(lowering, name_of(lowering), "Statistics", &op);
		op = norm_map(lowering, 4, LAYER_INPUT | kept | norm_params(own), LAYER_OUTPUT);
		layer__lower(lowering, name_of(lowering), &op);
	} else {
		if (lowering->layer->trainable)
			lower_norm_sums(lowering, name_of(lowering), lowering->layer->config,
					false);
		if (layer__wants_any(lowering))
			rows_lower_gradient(lowering);
	}
	for (int i = 0; i < lowering->count; i++)
		lowering->ops[i].op.dtype = IPU_FLOAT32;
}

#define ROWS_LAYER(row, name, how, of_each_step)                                                   \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(how##_options),             \
					      .config_size = sizeof(struct layer_norm),            \
					      .read = how##_read,                                  \
					      .flops = rows_flops,                                 \
					      .lower = rows_lower,                                 \
					      .function = true,                                    \
					      .each_step = (of_each_step),                         \
					      .reads_inputs = true,                                \
					      .masks = LAYER_MASKS_PASS}

ROWS_LAYER(layer_normalization, "LayerNormalization", rows, true);
ROWS_LAYER(group_normalization, "GroupNormalization", groups, false);

/* ---- Normalization --------------------------------------------------------------------------- */

/* Read @key: a number for all channels or a list of @channels. *@here is false if it is absent or
 * null. */
static enum status channel_numbers(const struct layer_reading *in, const char *key, float *out,
				   int64_t channels, bool *here)
{
	struct json_at at, item = {0};
	double value;
	int count;

	*here = model_option_at(in->config, key, &at, in->err);
	if (!*here)
		return in->err->status;
	count = cJSON_IsArray(at.node) ? json_count(&at) : 1;
	if (count != 1 && count != channels)
		return json_fail(&at, in->err,
				 "must be a number or a list of %lld, one per channel",
				 (long long)channels);
	for (int i = 0; i < count; i++) {
		if (cJSON_IsArray(at.node))
			json_next(&at, &item);
		else
			item = at;
		if (json_real(&item, &value, in->err) != ST_OK)
			return in->err->status;
		if (!isfinite((float)value))
			return json_fail(&item, in->err, "must be a finite number");
		out[i] = (float)value;
	}
	for (int64_t i = count; i < channels; i++)
		out[i] = out[0];
	return ST_OK;
}

/*
 * y = (x - mean) / max(sqrt(variance), 1e-7) per channel.
 *
 * Mean and variance are in the config, or they are fixed parameters that come with loaded weights
 * (with count, which only Keras's adapt() would read).
 */
static const struct model_option normalization_options[] = {
	{"axis", .rule = MODEL_ANY},
	{"mean", .rule = MODEL_ANY},
	{"variance", .rule = MODEL_ANY},
	{"invert", .rule = MODEL_FALSE},
};

static enum status normalization_read(const struct layer_reading *in)
{
	const int64_t channels = layer_last_dim(&in->layer->input);
	const struct model_shape shape = {.ndim = 1, .dim = {channels}};
	const struct layer_param params[] = {
		{.name = "mean", .initializer = "Zeros", .shape = shape, .fixed = true},
		{.name = "variance", .initializer = "Ones", .shape = shape, .fixed = true},
		{.name = "count", .initializer = "Zeros", .fixed = true},
	};
	struct layer_normalization *c = in->layer->config;
	bool mean_here, variance_here, one;
	struct json_at axis;

	/* null: one mean and one variance for all channels. */
	one = model_option_given(in->config, "axis", &axis, in->err) && json_is_null(&axis);
	if (!one && layer__check_last_axis(in) != ST_OK)
		return in->err->status;
	c->mean = model__alloc(in->model, (size_t)channels, sizeof(float));
	c->variance = model__alloc(in->model, (size_t)channels, sizeof(float));
	if (!c->mean || !c->variance)
		return err_nomem(in->err);
	channel_numbers(in, "mean", c->mean, channels, &mean_here);
	if (channel_numbers(in, "variance", c->variance, channels, &variance_here) != ST_OK)
		return in->err->status;
	if (mean_here != variance_here)
		return json_fail(in->config, in->err,
				 "\"mean\" and \"variance\" must be given together");
	if (!mean_here && one)
		return model_config_unsupported(
			&axis, in->err, "not supported without \"mean\" and \"variance\" here");
	if (!mean_here) {
		c->mean = c->variance = NULL;
		for (size_t i = 0; i < ARRAY_LEN(params); i++)
			layer__add_param(in, &params[i]);
		return in->err->status;
	}
	for (int64_t i = 0; i < channels; i++)
		if (c->variance[i] < 0.0f)
			return json_fail(in->config, in->err, "\"variance\" must not be negative");
	return ST_OK;
}

static int64_t normalization_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * 2;
}

/* If the variance is a parameter, append its root first; then the normalisation. */
static void normalization_lower(struct layer_lowering *lowering)
{
	const struct layer_normalization *c = lowering->layer->config;
	const int64_t channels = layer_last_dim(&lowering->layer->output);
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct layer_op deviation =
		layer__map(&(struct ipu_elements){.count = channels,
						  .operands = 1,
						  .times = {[IPU_FN_SQRT] = 1, [IPU_FN_ADD] = 1}},
			   LAYER_PARAM(LAYER_NORMALIZATION_VARIANCE), LAYER_BETWEEN);
	struct layer_op op = layer__map(
		&(struct ipu_elements){.count = layer__lower_count(lowering),
				       .operands = 1,
				       .broadcast = channels,
				       .times = {[IPU_FN_ADD] = forward, [IPU_FN_DIVIDE] = 1}},
		forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
		forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	if (!forward && !layer__wants_any(lowering))
		return;
	deviation.makes = channels;
	if (!c->mean) {
		layer__lower(lowering, forward ? "Sqrt" : "Sqrt/Grad", &deviation);
		op.reads |= LAYER_BETWEEN;
		op.reads |= forward ? LAYER_PARAM(LAYER_NORMALIZATION_MEAN) : 0u;
	}
	layer__lower(lowering, forward ? "Normalize" : "Normalize/Grad", &op);
}

const struct layer_ops layer_normalization = {
	.class_name = "Normalization",
	.kind = LAYER_KIND_normalization,
	.options = MODEL_OPTIONS(normalization_options),
	.config_size = sizeof(struct layer_normalization),
	.read = normalization_read,
	.flops = normalization_flops,
	.lower = normalization_lower,
};

/* ---- Rescaling ------------------------------------------------------------------------------- */

/* y = x scale + offset, each a number or one per channel. */
static const struct model_option rescaling_options[] = {{"scale", .rule = MODEL_ANY},
							{"offset", .rule = MODEL_ANY}};

static enum status rescaling_read(const struct layer_reading *in)
{
	const int64_t channels = layer_last_dim(&in->layer->input);
	struct layer_rescaling *c = in->layer->config;
	bool here;

	c->scale = model__alloc(in->model, (size_t)channels, sizeof(float));
	c->offset = model__alloc(in->model, (size_t)channels, sizeof(float));
	if (!c->scale || !c->offset)
		return err_nomem(in->err);
	channel_numbers(in, "scale", c->scale, channels, &here);
	if (!here && !err_stuck(in->err))
		return json_fail(in->config, in->err, "\"scale\" is missing");
	return channel_numbers(in, "offset", c->offset, channels, &here);
}

static void rescaling_lower(struct layer_lowering *lowering)
{
	const bool forward = lowering->phase == IPU_PHASE_F;
	const struct layer_op op =
		layer__map(&(struct ipu_elements){.count = layer__lower_count(lowering),
						  .operands = 1,
						  .times = {[IPU_FN_ADD] = forward ? 2 : 1}},
			   forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
			   forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	if (forward || layer__wants_any(lowering))
		layer__lower(lowering, forward ? "MulAdd" : "Mul/Grad", &op);
}

const struct layer_ops layer_rescaling = {
	.class_name = "Rescaling",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_rescaling,
	.options = MODEL_OPTIONS(rescaling_options),
	.config_size = sizeof(struct layer_rescaling),
	.read = rescaling_read,
	.flops = normalization_flops,
	.lower = rescaling_lower,
	.each_step = true,
};
