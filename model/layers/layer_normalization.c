/*
 * Keras's preprocessing layer Normalization: y = (x - mean) / max(sqrt(variance), 1e-7) per
 * channel.
 *
 * Mean and variance are in the config, or they are fixed parameters that come with loaded weights
 * (with count, which only Keras's adapt() would read).
 */
#include <math.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_normalization;

/* ---- reading --------------------------------------------------------------------------------- */

static enum status normalization_read(struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"axis", MODEL_ANY},
		{"mean", MODEL_ANY},
		{"variance", MODEL_ANY},
		{"invert", MODEL_FALSE},
	};
	const int64_t channels = layer_last_dim(&layer->input);
	const struct model_shape shape = {.ndim = 1, .dim = {channels}};
	const struct layer_param params[] = {
		{.name = "mean", .initializer = "Zeros", .shape = shape, .fixed = true},
		{.name = "variance", .initializer = "Ones", .shape = shape, .fixed = true},
		{.name = "count", .initializer = "Zeros", .fixed = true},
	};
	struct layer_normalization *c;
	bool mean_here, variance_here, one;
	struct json_at axis;

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*c), err);
	/* null: one mean and one variance for all channels. */
	one = model_option_given(config, "axis", &axis, err) && json_is_null(&axis);
	if (!one && layer__check_last_axis(layer, config, err) != ST_OK)
		return err->status;
	c = layer->config;
	c->mean = model__alloc(model, (size_t)channels, sizeof(float));
	c->variance = model__alloc(model, (size_t)channels, sizeof(float));
	if (!c->mean || !c->variance)
		return err_nomem(err);
	layer__channel_numbers(config, "mean", c->mean, channels, &mean_here, err);
	if (layer__channel_numbers(config, "variance", c->variance, channels, &variance_here,
				   err) != ST_OK)
		return err->status;
	if (mean_here != variance_here)
		return json_fail(config, err, "\"mean\" and \"variance\" must be given together");
	if (!mean_here && one)
		return model_config_unsupported(
			&axis, err, "not supported without \"mean\" and \"variance\" here");
	if (!mean_here) {
		c->mean = c->variance = NULL;
		for (size_t i = 0; i < ARRAY_LEN(params); i++)
			layer__add_param(model, layer, config, &params[i], err);
		return err->status;
	}
	for (int64_t i = 0; i < channels; i++)
		if (c->variance[i] < 0.0f)
			return json_fail(config, err, "\"variance\" must not be negative");
	return ST_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

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
	.read = normalization_read,
	.flops = normalization_flops,
	.lower = normalization_lower,
};
