/*
 * ReLU with its bound, slope and threshold; LeakyReLU; ELU with its alpha.
 *
 * The gradient of a ReLU with neither slope nor threshold follows from its output, and the ReLU may
 * be fused into the layer before. With a slope or a threshold the gradient reads the input.
 */
#include <math.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_activation, layer_elu, layer_leaky_relu, layer_relu;

/* ---- reading --------------------------------------------------------------------------------- */

/* Read a finite number of at least 0 at @key. If it is absent or null, *@out does not change. */
static void relu_number(const struct json_at *config, const char *key, float *out, struct err *err)
{
	struct json_at here;
	double value;

	if (!model_option_at(config, key, &here, err) || json_real(&here, &value, err) != ST_OK)
		return;
	if (!(value >= 0.0) || value > 3e38)
		json_fail(&here, err, "must be a number of at least 0");
	*out = (float)value;
}

/* NULL: a failure. */
static struct layer_relu *relu_config(struct model *model, struct model_layer *layer,
				      const struct json_at *config, const struct model_option *own,
				      size_t count, struct err *err)
{
	struct layer_relu *c;

	if (layer__begin(model, layer, config, own, count, sizeof(*c), err) != ST_OK)
		return NULL;
	c = layer->config;
	*c = (struct layer_relu){.most = INFINITY, .alpha = 1.0f};
	return c;
}

bool layer_relu_is_plain(const struct model_layer *layer)
{
	const struct layer_relu *c = layer->config;

	return !(c->threshold > 0.0f) && !(c->slope > 0.0f);
}

static void relu_set_reads(struct model_layer *layer)
{
	layer->reads_inputs = !layer_relu_is_plain(layer);
	layer->reads_output = layer_relu_is_plain(layer);
}

static enum status relu_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"max_value", MODEL_ANY},
		{"negative_slope", MODEL_ANY},
		{"threshold", MODEL_ANY},
	};
	struct layer_relu *c = relu_config(model, layer, config, own, ARRAY_LEN(own), err);

	if (!c)
		return err->status;
	relu_number(config, "max_value", &c->most, err);
	relu_number(config, "negative_slope", &c->slope, err);
	relu_number(config, "threshold", &c->threshold, err);
	relu_set_reads(layer);
	return err->status;
}

/* Keras 2 writes alpha, Keras 3 negative_slope. */
static enum status leaky_relu_read(struct model *model, struct model_layer *layer,
				   const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"alpha", MODEL_ANY},
						  {"negative_slope", MODEL_ANY}};
	struct layer_relu *c = relu_config(model, layer, config, own, ARRAY_LEN(own), err);
	struct json_at here;

	if (!c)
		return err->status;
	c->slope = 0.3f;
	relu_number(config,
		    model_option_at(config, "negative_slope", &here, err) ? "negative_slope"
									  : "alpha",
		    &c->slope, err);
	relu_set_reads(layer);
	return err->status;
}

static enum status elu_read(struct model *model, struct model_layer *layer,
			    const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"alpha", MODEL_ANY}};
	struct layer_relu *c = relu_config(model, layer, config, own, ARRAY_LEN(own), err);

	if (c)
		relu_number(config, "alpha", &c->alpha, err);
	return err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t relu_work(const struct model_layer *layer)
{
	const struct layer_relu *c = layer->config;

	if (layer->ops == &layer_elu)
		return 3;
	return 1 + (c->most < INFINITY) + (layer_relu_is_plain(layer) ? 0 : 2);
}

static int64_t relu_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * relu_work(layer);
}

/* A bound and a threshold cost a select each; a slope costs a select and a product. */
static void relu_functions(const struct model_layer *layer, bool forward, struct ipu_elements *out)
{
	const struct layer_relu *c = layer->config;

	if (layer->ops == &layer_elu) {
		out->times[IPU_FN_EXP] = forward;
		out->times[IPU_FN_ADD] = 2;
		out->times[IPU_FN_SELECT] = 1;
	} else if (layer_relu_is_plain(layer)) {
		out->times[forward ? IPU_FN_RELU : IPU_FN_RELU_GRAD] = 1;
		out->times[forward ? IPU_FN_ADD : IPU_FN_SELECT] = c->most < INFINITY;
	} else {
		out->times[IPU_FN_ADD] = (uint8_t)(1 + (c->threshold > 0.0f));
		out->times[IPU_FN_SELECT] = (uint8_t)(1 + (c->most < INFINITY));
	}
}

static void relu_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool elu = layer->ops == &layer_elu, forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op =
		layer__map(&(struct ipu_elements){.count = layer__lower_count(lowering),
						  .operands = forward ? 1 : 2},
			   LAYER_INPUT, LAYER_OUTPUT);

	relu_functions(layer, forward, &op.op.elements);
	if (!forward) {
		op.reads = LAYER_GRAD_OUTPUT | (layer->reads_inputs ? LAYER_INPUT : LAYER_OUTPUT);
		op.writes = LAYER_GRAD_INPUT;
	}
	if (forward)
		layer__lower(lowering, elu ? "Elu" : "Relu", &op);
	else if (layer__wants_any(lowering))
		layer__lower(lowering, elu ? "Elu/Grad" : "Relu/Grad", &op);
}

/* What all of these layers share. */
#define RELU_OPS(row, name, how)                                                                   \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = (how), .flops = relu_flops,        \
	.lower = relu_lower, .reads_output = true, .masks = LAYER_MASKS_PASS

const struct layer_ops layer_relu = {
	RELU_OPS(relu, "ReLU", relu_read),
	.reads_inputs = true,
};

const struct layer_ops layer_leaky_relu = {
	RELU_OPS(leaky_relu, "LeakyReLU", leaky_relu_read),
	.reads_inputs = true,
};

const struct layer_ops layer_elu = {
	RELU_OPS(elu, "ELU", elu_read),
};

bool layer_is_relu(const struct model_layer *layer, float *most)
{
	const struct layer_relu *c = layer->config;

	*most = INFINITY;
	if (layer->ops == &layer_relu && layer_relu_is_plain(layer)) {
		*most = c->most;
		return true;
	}
	if (layer->ops != &layer_activation)
		return false;
	if (layer->activation == MODEL_RELU6)
		*most = 6.0f;
	return layer->activation == MODEL_RELU || layer->activation == MODEL_RELU6;
}
