/*
 * Masking: steps whose features all equal mask_value are padding; the layer zeroes them. The reader
 * adds a second layer beside it (and beside an Embedding with mask_zero), which outputs the mask: 1
 * for a valid step, 0 for padding. The mask is the last input of each layer that uses it. No state.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

static const struct model_option masking_options[] = {
	{"mask_value", MODEL_FLOAT, LAYER_CONFIG(masking, value), .strict = true}};

static enum status masking_read(const struct layer_reading *in)
{
	if (in->layer->input.ndim < 2)
		return json_fail(in->config, in->err,
				 "Masking needs sequences (steps, features), one number a step has "
				 "no features: Embedding's mask_zero is for numbers of words");
	in->layer->makes_mask = true;
	return ST_OK;
}

enum status layer_mask(struct model *model, const struct model_layer *maker,
		       struct model_layer *mask, struct err *err)
{
	const bool masking = maker->ops == &layer_masking;
	struct layer_masking *c = model__alloc(model, 1, sizeof(*c));

	if (!c)
		return err_nomem(err);
	*c = (struct layer_masking){.alone = true};
	if (masking)
		c->value = ((const struct layer_masking *)maker->config)->value;
	mask->ops = &layer_masking;
	mask->config = c;
	mask->output = mask->input;
	if (masking)
		mask->output.ndim = 1;
	return ST_OK;
}

int layer_own_inputs(const struct model_layer *layer)
{
	const int first =
		layer->mask && layer->mask < layer->key_mask ? layer->mask : layer->key_mask;

	return first ? first : layer->mask ? layer->mask : layer->input_count;
}

static void masking_lower(struct layer_lowering *lowering)
{
	const struct layer_masking *c = lowering->layer->config;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const int64_t count = lowering->batch * model_shape_count(&lowering->layer->input);
	const int64_t steps = lowering->batch * lowering->layer->input.dim[0];
	struct layer_op op = layer__map(&(struct ipu_elements){.count = count,
							       .operands = 1,
							       .times = {[IPU_FN_SELECT] = 1}},
					forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT | LAYER_INPUT,
					forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	if (!forward && !layer__wants_any(lowering))
		return;
	if (!forward && c->alone)
		op = layer__map(&(struct ipu_elements){.count = count,
						       .operands = 0,
						       .times = {[IPU_FN_FILL] = 1}},
				0, LAYER_GRAD_INPUT);
	else if (c->alone && count > steps)
		op = layer__reduce(count, steps, LAYER_INPUT, LAYER_OUTPUT);
	layer__lower(lowering, forward ? c->alone ? "NotEqual" : "Mul" : "Mul/Grad", &op);
}

const struct layer_ops layer_masking = {
	.class_name = "Masking",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_masking,
	.options = MODEL_OPTIONS(masking_options),
	.config_size = sizeof(struct layer_masking),
	.read = masking_read,
	.lower = masking_lower,
	.reads_inputs = true,
};
