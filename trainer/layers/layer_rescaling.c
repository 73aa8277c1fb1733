/*
 * Rescaling: y = x scale + offset, each a number or one per channel.
 */
#include "common/mem.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_rescaling;

struct rescaling_config {
	float *scale, *offset; /* layer__pattern() floats of the channels */
};

static enum status rescaling_numbers(struct model *model, const struct model_layer *layer,
				     struct rescaling_config *c, const struct json_at *config,
				     struct err *err)
{
	int64_t channels = layer__last_dim(&layer->input), pattern = layer__pattern(channels);
	enum status status;
	bool here;

	c->scale = model__alloc(model, (size_t)pattern, sizeof(float));
	c->offset = model__alloc(model, (size_t)pattern, sizeof(float));
	if (!c->scale || !c->offset)
		return err_nomem(err);
	status = layer__channel_numbers(config, "scale", c->scale, channels, &here, err);
	if (status == ST_OK && !here)
		return json_fail(config, err, "\"scale\" is missing");
	if (status == ST_OK)
		status = layer__channel_numbers(config, "offset", c->offset, channels, &here, err);
	layer__repeat(c->scale, channels);
	layer__repeat(c->offset, channels);
	return status;
}

static enum status rescaling_read(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"scale", MODEL_ANY}, {"offset", MODEL_ANY}};
	enum status status = layer__begin(model, layer, config, own, ARRAY_LEN(own),
					  sizeof(struct rescaling_config), err);

	return status == ST_OK ? rescaling_numbers(model, layer, layer->config, config, err)
			       : status;
}

struct rescaling_work {
	const struct rescaling_config *config;
	const float *x, *offset;
	float *y;
	int64_t channels;
};

static void rescaling_body(const void *context, int64_t first, int64_t rows)
{
	const struct rescaling_work *w = context;

	kernel_affine(w->x + first * w->channels, w->y + first * w->channels,
		      (size_t)(rows * w->channels), w->config->scale, w->offset,
		      (size_t)layer__pattern(w->channels));
}

static void rescaling_run(const struct layer_pass *pass, const float *x, float *y, bool forward)
{
	const struct rescaling_config *c = pass->layer->config;
	int64_t channels = layer__last_dim(&pass->layer->output);
	const struct rescaling_work work = {c, x, forward ? c->offset : NULL, y, channels};
	int64_t rows = pass->batch * (model_shape_count(&pass->layer->output) / channels);

	if (forward)
		layer__share_output(pass, rows, channels, rescaling_body, &work);
	else
		layer__share(pass->pool, rows, channels, rescaling_body, &work);
}

static void rescaling_forward(const struct layer_pass *pass)
{
	rescaling_run(pass, pass->inputs[0], pass->output, true);
}

static void rescaling_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		rescaling_run(pass, pass->grad_output, pass->grad_inputs[0], false);
}

static int64_t rescaling_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * 2;
}

static void rescaling_lower(struct layer_lowering *lowering)
{
	const bool forward = lowering->phase == 'F';
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
	.read = rescaling_read,
	.forward = rescaling_forward,
	.backward = rescaling_backward,
	.flops = rescaling_flops,
	.lower = rescaling_lower,
	.in_place = true,
	.grad_in_place = true,
};
