/*
 * Products with a bias and an activation: what Dense and the convolutions are lowered to. No state;
 * names are in the caller's arena.
 */
#include "model/layers/layer_internal.h"

void layer__lower_bias(struct layer_lowering *lowering, int param)
{
	const struct model_layer *layer = lowering->layer;
	const unsigned sums = layer__lower_sums(lowering);
	const struct layer_op op =
		layer__map(&(struct ipu_elements){.count = layer__lower_count(lowering),
						  .operands = 1,
						  .broadcast = layer_last_dim(&layer->output),
						  .times = {[IPU_FN_ADD] = 1}},
			   sums | LAYER_PARAM(param), sums);

	if (layer->use_bias)
		layer__lower(lowering, "BiasAdd", &op);
}

void layer__lower_bias_grad(struct layer_lowering *lowering, int param)
{
	const struct model_layer *layer = lowering->layer;
	const struct layer_op op =
		layer__reduce(layer__lower_count(lowering), layer_last_dim(&layer->output),
			      LAYER_GRAD_OUTPUT, LAYER_GRAD_PARAM(param));

	if (layer->use_bias && layer->trainable)
		layer__lower(lowering, "BiasAdd/Grad", &op);
}

static void lower_product_backward(struct layer_lowering *lowering, const char *part,
				   layer_product product)
{
	const char *weights = arena_printf(lowering->arena, "%s/GradW", part);
	const char *data = arena_printf(lowering->arena, "%s/GradX", part);
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_GRAD_OUTPUT,
			      .writes = LAYER_GRAD_PARAM(0)};

	if (!weights || !data) {
		lowering->failed = true;
		return;
	}
	layer__lower_activation(lowering);
	if (lowering->layer->trainable) {
		product(lowering, IPU_BACKWARD_WEIGHTS, &op.op);
		layer__lower(lowering, weights, &op);
		layer__lower_bias_grad(lowering, 1);
	}
	if (!layer__wants_any(lowering))
		return;
	op.reads = LAYER_GRAD_OUTPUT | LAYER_PARAM(0);
	op.writes = LAYER_GRAD_INPUT;
	product(lowering, IPU_BACKWARD_DATA, &op.op);
	layer__lower(lowering, data, &op);
}

void layer__lower_product(struct layer_lowering *lowering, const char *part, layer_product product)
{
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_PARAM(0),
			      .writes = layer__lower_sums(lowering),
			      .makes = layer__lower_count(lowering)};

	if (lowering->phase != IPU_PHASE_F) {
		lower_product_backward(lowering, part, product);
		return;
	}
	product(lowering, IPU_FORWARD, &op.op);
	layer__lower(lowering, part, &op);
	layer__lower_bias(lowering, 1);
	layer__lower_activation(lowering);
}
