/*
 * GlobalAveragePooling2D and GlobalMaxPooling2D: one value per channel, from whole NHWC images;
 * the 1D kinds pool over sequences. The average of a sequence with a mask (1 or 0 per step, the
 * second input) is over the valid steps, and 0 / 0 if there are none, as in Keras.
 *
 * Slices are groups of images, or strips of channels for large images. The gradient of a maximum
 * is divided evenly among the cells that equal it, as in TensorFlow's reduce_max (MaxPooling2D
 * gives it to the first).
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_global_average_pooling1d, layer_global_average_pooling2d;
extern const struct layer_ops layer_global_max_pooling1d, layer_global_max_pooling2d;

static enum status global_read(struct model *model, struct model_layer *layer,
			       const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"data_format", MODEL_CHANNELS_LAST},
						  {"keepdims", MODEL_ANY}};
	bool keepdims = false;

	(void)model;
	layer__check(config, own, ARRAY_LEN(own), err);
	layer__check_images(layer, config, err);
	model_option_bool(config, "keepdims", &keepdims, err);
	layer->output = (struct model_shape){.ndim = 1, .dim = {layer_last_dim(&layer->input)}};
	if (keepdims)
		layer__set_output(layer, (const int64_t[]){1, 1}, layer_last_dim(&layer->input));
	return err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t global_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input);
}

/* Append the forward reduction; it includes the scale of a mean. */
static void global_lower_forward(struct layer_lowering *lowering, const char *part)
{
	const struct layer_op op =
		layer__reduce(global_flops(lowering->layer, lowering->batch),
			      layer__lower_count(lowering), LAYER_INPUT, LAYER_OUTPUT);

	layer__lower(lowering, part, &op);
}

static void average_lower(struct layer_lowering *lowering)
{
	const struct layer_op backward = layer__map(
		&(struct ipu_elements){.count = global_flops(lowering->layer, lowering->batch),
				       .operands = 0,
				       .broadcast = layer__lower_count(lowering),
				       .times = {[IPU_FN_ADD] = 1}},
		LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT);

	const bool masked = lowering->layer->mask != 0;
	const int64_t steps = lowering->batch * lowering->layer->input.dim[0];
	struct layer_op weigh = layer__map(
		&(struct ipu_elements){.count = global_flops(lowering->layer, lowering->batch),
				       .operands = 1,
				       .broadcast = steps,
				       .times = {[IPU_FN_ADD] = 1}},
		LAYER_INPUT, LAYER_BETWEEN);
	struct layer_op mean;

	if (masked && lowering->phase == IPU_PHASE_F) {
		weigh.makes = global_flops(lowering->layer, lowering->batch);
		mean = layer__reduce(weigh.makes, layer__lower_count(lowering),
				     LAYER_INPUT | LAYER_BETWEEN, LAYER_OUTPUT);
		layer__lower(lowering, "Mask/Mul", &weigh);
		layer__lower(lowering, "Mask/Mean", &mean);
	} else if (lowering->phase == IPU_PHASE_F)
		global_lower_forward(lowering, "Mean");
	else if (layer__wants_any(lowering))
		layer__lower(lowering, "Mean/Grad", &backward);
}

/* Backward: find the cells that equal the maximum, count them, and divide the gradient. */
static void max_lower(struct layer_lowering *lowering)
{
	const int64_t count = global_flops(lowering->layer, lowering->batch);
	const int64_t outputs = layer__lower_count(lowering);
	struct ipu_elements each = {.count = count,
				    .operands = 1,
				    .broadcast = outputs,
				    .times = {[IPU_FN_SELECT] = 1}};
	struct layer_op op = layer__map(&each, LAYER_INPUT | LAYER_OUTPUT, LAYER_BETWEEN);

	if (lowering->phase == IPU_PHASE_F) {
		global_lower_forward(lowering, "Max");
		return;
	}
	if (!layer__wants_any(lowering))
		return;
	op.makes = count;
	layer__lower(lowering, "Max/Grad/Equal", &op);
	op = layer__reduce(count, outputs, LAYER_BETWEEN, LAYER_BETWEEN_TOO);
	layer__lower(lowering, "Max/Grad/Sum", &op);
	each.times[IPU_FN_SELECT] = 0;
	each.times[IPU_FN_ADD] = each.times[IPU_FN_DIVIDE] = 1;
	op = layer__map(&each, LAYER_BETWEEN | LAYER_BETWEEN_TOO | LAYER_GRAD_OUTPUT,
			LAYER_GRAD_INPUT);
	layer__lower(lowering, "Max/Grad", &op);
}

/* What all of these layers share. */
#define GLOBAL_OPS(row, name, how)                                                                 \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = global_read,                       \
	.flops = global_flops, .lower = (how)

const struct layer_ops layer_global_average_pooling2d = {
	GLOBAL_OPS(global_average_pooling2d, "GlobalAveragePooling2D", average_lower),
};

const struct layer_ops layer_global_average_pooling1d = {
	GLOBAL_OPS(global_average_pooling1d, "GlobalAveragePooling1D", average_lower),
	.sequence = true,
	.masks = LAYER_MASKS_USED,
};

const struct layer_ops layer_global_max_pooling2d = {
	GLOBAL_OPS(global_max_pooling2d, "GlobalMaxPooling2D", max_lower),
	.reads_inputs = true,
	.reads_output = true,
};

const struct layer_ops layer_global_max_pooling1d = {
	GLOBAL_OPS(global_max_pooling1d, "GlobalMaxPooling1D", max_lower),
	.sequence = true,
	.reads_inputs = true,
	.reads_output = true,
};
