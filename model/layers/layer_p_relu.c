/*
 * PReLU: x if it is above 0, otherwise alpha x, with a trained alpha: one for each value of an
 * item; axes in shared_axes, which must be the first ones, share an alpha. No state.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_p_relu;

/* Number of shared axes: shared_axes, numbered from 1, must be the first ones. 0 after an error. */
static int shared_axes(const struct model_layer *layer, const struct json_at *config,
		       struct err *err)
{
	struct json_at here, item = {0};
	unsigned seen = 0;
	int count;

	if (!model_option_at(config, "shared_axes", &here, err) || json_array(&here, err) != ST_OK)
		return 0;
	count = json_count(&here);
	while (json_next(&here, &item)) {
		int64_t axis;

		if (json_int(&item, 1, layer->input.ndim, &axis, err) != ST_OK)
			return 0;
		seen |= 1u << axis;
	}
	if (count <= layer->input.ndim && seen == (2u << count) - 2u)
		return count;
	model_config_unsupported(
		&here, err, "not supported: shared axes must be the first ones, as [1] or [1, 2]");
	return 0;
}

static enum status p_relu_read(struct model *model, struct model_layer *layer,
			       const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_PARAM_OPTIONS("alpha"),
		{"shared_axes", MODEL_ANY},
	};
	struct layer_param alpha = {.name = "alpha", .initializer = "Zeros"};
	int shared;

	layer->output = layer->input;
	layer__check(config, own, ARRAY_LEN(own), err);
	shared = shared_axes(layer, config, err);
	alpha.shape = layer->input;
	for (int d = 0; d < shared; d++)
		alpha.shape.dim[d] = 1;
	alpha.fan_in = alpha.fan_out = model_shape_count(&alpha.shape);
	return layer__add_param(model, layer, config, &alpha, err);
}

static int64_t p_relu_flops(const struct model_layer *layer, int64_t batch)
{
	return 2 * batch * model_shape_count(&layer->output);
}

static void p_relu_lower(struct layer_lowering *lowering)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t alphas =
		model_shape_count(&lowering->model->params[lowering->layer->first_param].shape);
	const struct ipu_elements each = {.count = count,
					  .operands = lowering->phase == IPU_PHASE_F ? 1 : 2,
					  .broadcast = alphas,
					  .times = {[IPU_FN_ADD] = 1, [IPU_FN_SELECT] = 1}};
	struct layer_op op = layer__map(&each, LAYER_INPUT | LAYER_PARAM(0), LAYER_OUTPUT);

	if (lowering->phase == IPU_PHASE_F) {
		layer__lower(lowering, "PRelu", &op);
		return;
	}
	if (lowering->layer->trainable) {
		op = layer__map(&each, LAYER_INPUT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);
		op.op.elements.broadcast = 0;
		op.makes = count;
		layer__lower(lowering, "PRelu/Grad/alpha", &op);
		op = layer__reduce(count, alphas, LAYER_BETWEEN, LAYER_GRAD_PARAM(0));
		op.makes = 0;
		layer__lower(lowering, "PRelu/Grad/alpha/Sum", &op);
	}
	op = layer__map(&each, LAYER_INPUT | LAYER_GRAD_OUTPUT | LAYER_PARAM(0), LAYER_GRAD_INPUT);
	if (layer__wants_any(lowering))
		layer__lower(lowering, "PRelu/Grad", &op);
}

const struct layer_ops layer_p_relu = {
	.class_name = "PReLU",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_p_relu,
	.read = p_relu_read,
	.flops = p_relu_flops,
	.lower = p_relu_lower,
	.reads_inputs = true,
};
