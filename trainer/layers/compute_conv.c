/*
 * Convolutions: their passes, and the activations that follow the sums. No state.
 */
#include "trainer/layers/compute_conv.h"

#include <math.h>

struct kernel_conv compute__conv_kernel(const struct model_layer *layer, int64_t channels,
					int64_t filters, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	const struct model_shape *from = w->transposed ? &layer->output : &layer->input;
	const struct model_shape *to = w->transposed ? &layer->input : &layer->output;

	return (struct kernel_conv){
		.batch = batch,
		.height = layer_side(from, LAYER_Y),
		.width = layer_side(from, LAYER_X),
		.channels = channels,
		.out_height = layer_side(to, LAYER_Y),
		.out_width = layer_side(to, LAYER_X),
		.filters = filters,
		.kernel_height = w->kernel[LAYER_Y],
		.kernel_width = w->kernel[LAYER_X],
		.stride_y = w->stride[LAYER_Y],
		.stride_x = w->stride[LAYER_X],
		.dilation_y = w->dilation[LAYER_Y],
		.dilation_x = w->dilation[LAYER_X],
		.pad_top = w->pad[LAYER_Y],
		.pad_left = w->pad[LAYER_X],
		.groups = w->groups,
	};
}

/* ---- activations ----------------------------------------------------------------------------- */

struct kernel_conv_finish compute__conv_finish(const struct layer_pass *pass, int bias)
{
	const enum model_activation activation = pass->layer->activation;
	const bool relu = activation == MODEL_RELU;

	return (struct kernel_conv_finish){
		.bias = pass->layer->use_bias ? compute__weights(pass, bias) : NULL,
		.relu = relu || pass->relu,
		.most = pass->relu ? pass->relu_most : INFINITY,
		.watch = relu || activation == MODEL_LINEAR ? pass->watch : NULL,
	};
}

void compute__conv_activate(const struct layer_pass *pass)
{
	enum model_activation activation = pass->layer->activation;

	if (activation != MODEL_LINEAR && activation != MODEL_RELU)
		compute__activate(pass, activation, compute__activation_sums(pass),
				  layer_conv_pixels(pass->layer, pass->batch),
				  layer_last_dim(&pass->layer->output));
}

struct kernel_conv_relu compute__conv_gradient(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	bool relu = pass->relu || layer->activation == MODEL_RELU;

	if (!pass->skip_activation && !relu)
		compute__activate_grad(pass->pool, layer->activation, pass->kept, pass->output,
				       pass->grad_output, layer_conv_pixels(layer, pass->batch),
				       layer_last_dim(&layer->output));
	return (struct kernel_conv_relu){
		.y = relu && !pass->skip_activation ? pass->output : NULL,
		.most = pass->relu ? pass->relu_most : INFINITY,
		.keep = pass->grad_inputs[0],
	};
}

/* ---- passes ---------------------------------------------------------------------------------- */

enum {
	CONV_KERNEL,
	CONV_BIAS
};

static struct kernel_conv conv_of(const struct model_layer *layer, int64_t batch)
{
	return compute__conv_kernel(layer, layer_last_dim(&layer->input), layer->units, batch);
}

void compute__conv_forward(const struct layer_pass *pass)
{
	const struct compute_conv_kernels *kernels = compute_of(pass->layer)->own;
	struct kernel_conv conv = conv_of(pass->layer, pass->batch);
	struct kernel_room room = {pass->pool, pass->scratch};
	struct kernel_conv_finish finish = compute__conv_finish(pass, CONV_BIAS);

	kernels->forward(&conv, &room, pass->inputs[0], compute__weights(pass, CONV_KERNEL),
			 &finish, compute__activation_sums(pass));
	compute__conv_activate(pass);
}

void compute__conv_backward(const struct layer_pass *pass)
{
	const struct compute_conv_kernels *kernels = compute_of(pass->layer)->own;
	struct kernel_conv conv = conv_of(pass->layer, pass->batch);
	struct kernel_room room = {pass->pool, pass->scratch};
	struct kernel_conv_relu relu = compute__conv_gradient(pass);
	float *bias = compute__learns(pass) && pass->layer->use_bias
			      ? compute__gradients(pass, CONV_BIAS)
			      : NULL;

	if (!compute__learns(pass))
		kernel_conv_grad_relu(&relu, pass->pool, pass->grad_output,
				      (size_t)compute__count(pass));
	else
		kernels->grad_kernel(&conv, &room, pass->inputs[0], pass->grad_output, &relu,
				     compute__gradients(pass, CONV_KERNEL), bias);
	if (pass->grad_inputs[0])
		kernels->grad_input(&conv, &room, pass->grad_output,
				    compute__weights(pass, CONV_KERNEL), pass->grad_inputs[0],
				    compute__adds(pass, 0));
}

size_t compute__conv_scratch(const struct model *model, const struct model_layer *layer,
			     int64_t batch, unsigned lanes, bool training)
{
	const struct compute_conv_kernels *kernels = compute_of(layer)->own;
	struct kernel_conv conv = conv_of(layer, batch);

	(void)model;
	return kernels->scratch(&conv, lanes, training);
}
