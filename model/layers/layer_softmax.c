/*
 * Softmax, over the last axis.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_softmax;

static enum status softmax_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"axis", MODEL_ANY}};

	(void)model;
	layer->output = layer->input;
	layer__set_activation(layer, MODEL_SOFTMAX);
	layer__check(config, own, ARRAY_LEN(own), err);
	return layer__check_last_axis(layer, config, err);
}

const struct layer_ops layer_softmax = {
	.class_name = "Softmax",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_softmax,
	.read = softmax_read,
	.flops = layer__activation_flops,
	.lower = layer__activation_lower,
	.reads_output = true,
};
