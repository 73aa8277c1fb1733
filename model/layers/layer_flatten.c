/*
 * Flatten: the same values in another shape.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_flatten;

static enum status flatten_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"data_format", MODEL_CHANNELS_LAST}};

	(void)model;
	layer->output = (struct model_shape){.ndim = 1, .dim = {model_shape_count(&layer->input)}};
	return layer__check(config, own, ARRAY_LEN(own), err);
}

const struct layer_ops layer_flatten = {
	.class_name = "Flatten",
	.kind = LAYER_KIND_flatten,
	.read = flatten_read,
	.pass_through = true,
};
