/*
 * Rescaling: y = x scale + offset, each a number or one per channel.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_rescaling;

static enum status rescaling_read(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"scale", MODEL_ANY}, {"offset", MODEL_ANY}};
	const int64_t channels = layer_last_dim(&layer->input);
	struct layer_rescaling *c;
	bool here;

	if (layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*c), err) != ST_OK)
		return err->status;
	c = layer->config;
	c->scale = model__alloc(model, (size_t)channels, sizeof(float));
	c->offset = model__alloc(model, (size_t)channels, sizeof(float));
	if (!c->scale || !c->offset)
		return err_nomem(err);
	layer__channel_numbers(config, "scale", c->scale, channels, &here, err);
	if (!here && !err_stuck(err))
		return json_fail(config, err, "\"scale\" is missing");
	return layer__channel_numbers(config, "offset", c->offset, channels, &here, err);
}

static int64_t rescaling_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * 2;
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
	.read = rescaling_read,
	.flops = rescaling_flops,
	.lower = rescaling_lower,
};
