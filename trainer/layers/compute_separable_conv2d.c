/*
 * SeparableConv2D: a depthwise convolution without bias, then a 1 x 1 convolution over its
 * channels with bias and activation.
 *
 * The intermediate result between the two is kept for the backward pass; its gradient is scratch.
 */
#include "common/minmax.h"
#include "trainer/kernels/kernel_depthwise.h"
#include "trainer/layers/compute_conv.h"

struct separable {
	struct kernel_conv depthwise, pointwise;
	struct kernel_room room;
	float *between, *grad; /* the intermediate result, and its gradient */
};

static struct separable separable_of(const struct model_layer *layer, int64_t batch)
{
	struct separable s = {
		.depthwise = compute__conv_kernel(layer, layer_last_dim(&layer->input),
						  layer_separable_between(layer), batch),
	};

	s.pointwise = (struct kernel_conv){
		.batch = batch,
		.height = s.depthwise.out_height,
		.width = s.depthwise.out_width,
		.channels = s.depthwise.filters,
		.out_height = s.depthwise.out_height,
		.out_width = s.depthwise.out_width,
		.filters = layer->units,
		.kernel_height = 1,
		.kernel_width = 1,
		.stride_y = 1,
		.stride_x = 1,
		.dilation_y = 1,
		.dilation_x = 1,
		.groups = 1,
	};
	return s;
}

/* Floats of the intermediate result, in whole cache lines. */
static size_t separable_floats(const struct model_layer *layer, int64_t batch)
{
	return model_align(
		(size_t)(layer_conv_pixels(layer, batch) * layer_separable_between(layer)));
}

/* Floats that the activation keeps, stored before the intermediate result. */
static size_t separable_first(const struct model *model, const struct model_layer *layer,
			      int64_t batch)
{
	return model_align(compute__activation_kept(model, layer, batch) / sizeof(float));
}

static struct separable separable_pass(const struct layer_pass *pass)
{
	struct separable s = separable_of(pass->layer, pass->batch);

	s.between = (float *)pass->kept + separable_first(pass->model, pass->layer, pass->batch);
	s.grad = pass->scratch;
	s.room = (struct kernel_room){pass->pool, pass->scratch};
	return s;
}

static void separable_forward(const struct layer_pass *pass)
{
	const struct kernel_conv_finish plain = {0};
	struct kernel_conv_finish finish = compute__conv_finish(pass, LAYER_SEPARABLE_BIAS);
	struct separable s = separable_pass(pass);

	kernel_depthwise_forward(&s.depthwise, &s.room, pass->inputs[0],
				 compute__weights(pass, LAYER_SEPARABLE_DEPTHWISE), &plain,
				 s.between);
	kernel_conv_forward(&s.pointwise, &s.room, s.between,
			    compute__weights(pass, LAYER_SEPARABLE_POINTWISE), &finish,
			    compute__activation_sums(pass));
	compute__conv_activate(pass);
}

static void separable_backward(const struct layer_pass *pass)
{
	const struct kernel_conv_relu none = {0};
	const struct model_layer *layer = pass->layer;
	struct kernel_conv_relu relu = compute__conv_gradient(pass);
	struct separable s = separable_pass(pass);

	s.room.scratch = s.grad + separable_floats(layer, pass->batch);
	relu.keep = true;
	if (!compute__learns(pass))
		kernel_conv_grad_relu(&relu, pass->pool, pass->grad_output,
				      (size_t)compute__count(pass));
	else
		kernel_conv_grad_kernel(
			&s.pointwise, &s.room, s.between, pass->grad_output, &relu,
			compute__gradients(pass, LAYER_SEPARABLE_POINTWISE),
			layer->use_bias ? compute__gradients(pass, LAYER_SEPARABLE_BIAS) : NULL);
	if (!compute__learns(pass) && !pass->grad_inputs[0])
		return;
	kernel_conv_grad_input(&s.pointwise, &s.room, pass->grad_output,
			       compute__weights(pass, LAYER_SEPARABLE_POINTWISE), s.grad, false);
	if (compute__learns(pass))
		kernel_depthwise_grad_kernel(&s.depthwise, &s.room, pass->inputs[0], s.grad, &none,
					     compute__gradients(pass, LAYER_SEPARABLE_DEPTHWISE),
					     NULL);
	if (pass->grad_inputs[0])
		kernel_depthwise_grad_input(&s.depthwise, &s.room, s.grad,
					    compute__weights(pass, LAYER_SEPARABLE_DEPTHWISE),
					    pass->grad_inputs[0], compute__adds(pass, 0));
}

static size_t separable_kept(const struct model *model, const struct model_layer *layer,
			     int64_t batch)
{
	return (separable_first(model, layer, batch) + separable_floats(layer, batch)) *
	       sizeof(float);
}

static size_t separable_scratch(const struct model *model, const struct model_layer *layer,
				int64_t batch, unsigned lanes, bool training)
{
	struct separable s = separable_of(layer, batch);
	size_t depthwise = kernel_depthwise_scratch(&s.depthwise, lanes, training);
	size_t pointwise = kernel_conv_scratch(&s.pointwise, lanes, training);
	size_t grad = training ? separable_floats(layer, batch) * sizeof(float) : 0;

	(void)model;
	return grad + max(depthwise, pointwise);
}

const struct compute_ops compute_separable_conv2d = {
	.forward = separable_forward,
	.backward = separable_backward,
	.kept = separable_kept,
	.scratch = separable_scratch,
	.adds = true,
	.fuses_relu = true,
};
