/*
 * Concatenate: the channels of several inputs, one after the other.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_concatenate;

#define CONCATENATE_INPUTS 1024

static enum status concatenate_shapes(const struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	int last = layer->input.ndim - 1;
	char first_text[192], other_text[192];

	layer->output = layer->input;
	for (int i = 1; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(model, layer, i);
		bool fits = shape->ndim == layer->input.ndim;

		for (int d = 0; fits && d < last; d++)
			fits = shape->dim[d] == layer->input.dim[d];
		if (fits) {
			layer->output.dim[last] += shape->dim[last];
			continue;
		}
		model_shape_text(&layer->input, 0, first_text, sizeof(first_text));
		model_shape_text(shape, 0, other_text, sizeof(other_text));
		return json_fail(config, err,
				 "the inputs of Concatenate must agree in all but the last "
				 "dimension: the first is %s, but input %d is %s",
				 first_text, i, other_text);
	}
	return ST_OK;
}

static enum status concatenate_read(struct model *model, struct model_layer *layer,
				    const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"axis", MODEL_ANY}};

	layer__check(config, own, ARRAY_LEN(own), err);
	if (layer__check_last_axis(layer, config, err) != ST_OK)
		return err->status;
	if (!layer->input.ndim)
		return json_fail(config, err, "Concatenate needs inputs of at least one dimension");
	return concatenate_shapes(model, layer, config, err);
}

/* The atom is the channels of the narrowest input; backward, of those whose gradient is wanted. */
static void concatenate_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op = layer__copy(0, layer_last_dim(&layer->output),
					 forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
					 forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	for (int i = 0; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(lowering->model, layer, i);

		if (!forward && !layer__wants(lowering, i))
			continue;
		op.op.copy.count += lowering->batch * model_shape_count(shape);
		if (layer_last_dim(shape) < op.op.copy.atom)
			op.op.copy.atom = layer_last_dim(shape);
	}
	if (op.op.copy.count > 0)
		layer__lower(lowering, forward ? "ConcatV2" : "Slice", &op);
}

const struct layer_ops layer_concatenate = {
	.class_name = "Concatenate",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_concatenate,
	.read = concatenate_read,
	.lower = concatenate_lower,
	.least_inputs = 2,
	.most_inputs = CONCATENATE_INPUTS,
};
