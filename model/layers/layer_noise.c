/*
 * GaussianNoise, GaussianDropout and AlphaDropout: random in training, the identity otherwise.
 *
 *	GaussianNoise    y = x + stddev n
 *	GaussianDropout  y = x (1 + sqrt(rate / (1 - rate)) n)
 *	AlphaDropout     y = a x + b if x is retained, a alpha' + b if it is dropped, with
 *	                 alpha' = -1.0507 1.6733 of SELU, a = ((1 - rate)(1 + rate alpha'^2))^-1/2
 *	                 and b = -a alpha' rate: preserves mean and variance (Klambauer et al., 2017)
 *
 * n is normal. Each element uses two words of the random numbers of (seed, layer, step,
 * replica), so they do not depend on threads.
 */
#include <math.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_alpha_dropout, layer_gaussian_dropout, layer_gaussian_noise;

#define SELU_LOW (-1.0507009873554805 * 1.6732632423543772)

static enum status noise_read(struct model *model, struct model_layer *layer,
			      const struct json_at *config, struct err *err)
{
	static const struct model_option noise[] = {{"stddev", MODEL_ANY}, {"seed", MODEL_ANY}};
	static const struct model_option dropout[] = {
		{"rate", MODEL_ANY}, {"seed", MODEL_ANY}, {"noise_shape", MODEL_NULL}};
	const bool adds = layer->ops == &layer_gaussian_noise;
	struct layer_noise *c;
	struct json_at here;
	double a;

	layer__begin(model, layer, config, adds ? noise : dropout,
		     adds ? ARRAY_LEN(noise) : ARRAY_LEN(dropout), sizeof(*c), err);
	c = layer->config;
	if (!model_option_need(config, adds ? "stddev" : "rate", &here, err) ||
	    json_real(&here, &c->rate, err) != ST_OK)
		return err->status;
	if (!(c->rate >= 0.0 && c->rate < (adds ? (double)INFINITY : 1.0)))
		return json_fail(
			&here, err,
			adds ? "must be 0 or greater: the standard deviation"
			     : "must be at least 0 and below 1: the share of what is dropped");
	c->spread = (float)(adds ? c->rate : sqrt(c->rate / (1.0 - c->rate)));
	a = 1.0 / sqrt((1.0 - c->rate) * (1.0 + c->rate * SELU_LOW * SELU_LOW));
	if (layer->ops == &layer_alpha_dropout) {
		c->keep_factor = (float)a;
		c->keep_offset = (float)(-a * SELU_LOW * c->rate);
		c->drop_offset = (float)(a * SELU_LOW - a * SELU_LOW * c->rate);
		c->threshold = (uint32_t)(c->rate * 0x1p32);
	}
	layer__read_seed(config, &c->seed, err);
	return err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t noise_flops(const struct model_layer *layer, int64_t batch)
{
	return 2 * batch * model_shape_count(&layer->output);
}

/* poprand's numbers, then a map. The factors of the elements are retained. */
static void noise_lower(struct layer_lowering *lowering)
{
	const struct layer_noise *c = lowering->layer->config;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const bool adds = lowering->layer->ops == &layer_gaussian_noise;
	const unsigned random = forward && (adds || !lowering->keeps) ? LAYER_BETWEEN : LAYER_KEPT;
	const int64_t count = layer__lower_count(lowering);
	struct layer_op numbers = layer__map(
		&(struct ipu_elements){.count = count, .times = {[IPU_FN_RANDOM] = 1}}, 0, random);
	struct layer_op each = layer__map(
		&(struct ipu_elements){.count = count,
				       .operands = 2,
				       .times = {[IPU_FN_ADD] = forward && !adds ? 2 : 1}},
		random | (forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT),
		forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	/* GaussianNoise passes its gradient on unchanged. */
	if (!(c->rate > 0.0) || !lowering->training ||
	    (!forward && (adds || !layer__wants_any(lowering))))
		return;
	numbers.makes = count;
	numbers.training_only = each.training_only = true;
	if (forward)
		layer__lower(lowering, "noise/RandomNormal", &numbers);
	layer__lower(lowering, forward ? "noise/MulAdd" : "noise/Mul/Grad", &each);
}

/* What all of these layers share. */
#define NOISE_OPS(row, name)                                                                       \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = noise_read, .flops = noise_flops,  \
	.lower = noise_lower, .masks = LAYER_MASKS_PASS

const struct layer_ops layer_gaussian_noise = {
	NOISE_OPS(gaussian_noise, "GaussianNoise"),
};

const struct layer_ops layer_gaussian_dropout = {
	NOISE_OPS(gaussian_dropout, "GaussianDropout"),
};

const struct layer_ops layer_alpha_dropout = {
	NOISE_OPS(alpha_dropout, "AlphaDropout"),
};
