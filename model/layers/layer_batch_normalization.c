/*
 * BatchNormalization over the last axis, as TensorFlow 2.6 computes it. For a sequence with a mask,
 * as in Keras 3, the moments are of the valid steps, and all steps are normalised by them.
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
#include <math.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_batch_normalization;

#define NORM_FUSED_EPSILON 1.001e-5

/* ---- reading --------------------------------------------------------------------------------- */

static enum status norm_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_NORM_OPTIONS,
		{"momentum", MODEL_ANY},
		{"moving_mean_initializer", MODEL_ANY},
		{"moving_variance_initializer", MODEL_ANY},
		{"synchronized", MODEL_FALSE},
		{"renorm", MODEL_FALSE},
		{"renorm_clipping", MODEL_NULL},
		{"renorm_momentum", MODEL_ANY}, /* used by renorm only */
		{"virtual_batch_size", MODEL_NULL},
		{"adjustment", MODEL_NULL},
		{"fused", MODEL_NULL},
	};
	const int64_t channels = layer_last_dim(&layer->input);
	struct layer_param moving = {.name = "moving_mean",
				     .initializer = "Zeros",
				     .shape = {.ndim = 1, .dim = {channels}},
				     .fan_in = channels,
				     .fan_out = channels,
				     .fixed = true};
	struct layer_batch_norm *c;
	struct json_at here;

	if (layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*c), err) != ST_OK)
		return err->status;
	if (layer->mask && layer->input.ndim != 2)
		return model_config_unsupported(
			config, err,
			"\"%s\": BatchNormalization with a mask is of (steps, channels) alone",
			layer->name);
	c = layer->config;
	c->fused = layer->input.ndim == 3 || layer->input.ndim == 4;
	layer__read_norm(model, layer, config, &c->norm, err);
	c->momentum = 0.99;
	if (model_option_given(config, "momentum", &here, err) &&
	    json_real(&here, &c->momentum, err) == ST_OK &&
	    !(c->momentum >= 0.0 && c->momentum <= 1.0))
		json_fail(&here, err, "must be from 0 to 1");
	layer__add_param(model, layer, config, &moving, err);
	moving.name = "moving_variance";
	moving.initializer = "Ones";
	layer__add_param(model, layer, config, &moving, err);
	if (c->fused && c->norm.epsilon < NORM_FUSED_EPSILON)
		c->norm.epsilon = NORM_FUSED_EPSILON;
	return err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t norm_values(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input);
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
	return norm_values(layer, batch) * (layer_batch_norm_learns(layer) ? 7 : 3);
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
			   moving, lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN);

	op.makes = 2 * channels;
	op.full = true;
	if (learns) {
		op.reads |= LAYER_BETWEEN | LAYER_BETWEEN_TOO;
		op.writes |= moving;
	} else {
		op.reads |= layer__norm_params(&own->norm);
	}
	layer__lower_norm(lowering, NORM_NAME, "Statistics", &op);
}

static void norm_lower_forward(struct layer_lowering *lowering)
{
	const struct layer_batch_norm *own = lowering->layer->config;
	const bool learns = norm_lower_learns(lowering);
	const struct layer_op each =
		layer__norm_map(lowering, learns ? 4 : 2,
				LAYER_INPUT | (lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN) |
					(learns ? layer__norm_params(&own->norm) : 0u),
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
		layer__lower_statistics(lowering, NORM_NAME,
					layer_last_dim(&lowering->layer->input), true);
	norm_lower_coefficients(lowering);
	layer__lower(lowering, NORM_NAME, &each);
}

/* The factors are in the weights of the convolution before; a sum is left if that has no bias. */
static void norm_lower_folded(struct layer_lowering *lowering)
{
	const struct model_layer *from = &lowering->model->layers[lowering->layer->inputs[0]];
	const struct layer_op add = layer__map(
		&(struct ipu_elements){.count = layer__lower_count(lowering),
				       .operands = 1,
				       .broadcast = layer_last_dim(&lowering->layer->input),
				       .times = {[IPU_FN_ADD] = 1}},
		LAYER_INPUT | LAYER_PARAM(layer_batch_norm_bias(lowering->layer)), LAYER_OUTPUT);

	if (!from->use_bias)
		layer__lower(lowering, "BiasAdd", &add);
}

/* dx = gamma inverse (dy - mean(dy) - whitened x mean(dy whitened x)). */
static void norm_lower(struct layer_lowering *lowering)
{
	const struct layer_batch_norm *own = lowering->layer->config;
	struct layer_op each =
		layer__norm_map(lowering, 1, LAYER_GRAD_OUTPUT | LAYER_KEPT, LAYER_GRAD_INPUT);

	if (lowering->folded) {
		norm_lower_folded(lowering);
		return;
	}
	if (lowering->phase == IPU_PHASE_F) {
		norm_lower_forward(lowering);
		return;
	}
	if (lowering->layer->trainable)
		layer__lower_norm_sums(lowering, NORM_NAME, &own->norm, layer__wants_any(lowering));
	if (norm_lower_learns(lowering))
		each = layer__norm_map(lowering, 6,
				       LAYER_INPUT | LAYER_GRAD_OUTPUT | LAYER_KEPT |
					       layer__norm_sums(&own->norm) |
					       (own->norm.scale ? LAYER_PARAM(0) : 0u),
				       LAYER_GRAD_INPUT);
	if (layer__wants_any(lowering))
		layer__lower_norm(lowering, NORM_NAME, "GradX", &each);
}

const struct layer_ops layer_batch_normalization = {
	.class_name = "BatchNormalization",
	.masks = LAYER_MASKS_USED,
	.kind = LAYER_KIND_batch_normalization,
	.read = norm_read,
	.flops = norm_flops,
	.lower = norm_lower,
	.function = true,
	.reads_inputs = true,
};
