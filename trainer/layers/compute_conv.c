/*
 * Convolutions: their passes, and the activations that follow the sums. Bias and ReLU, the layer's
 * own or a following layer's, are applied when sums are stored. No state.
 */

#include <math.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_conv.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

/* The kernels that compute the sums and their gradients: kernel_conv_forward() and the like. */
struct conv_kernels {
	void (*forward)(const struct kernel_conv *conv, const struct kernel_room *room,
			const float *x, const float *kernel,
			const struct kernel_conv_finish *finish, float *y);
	void (*grad_kernel)(const struct kernel_conv *conv, const struct kernel_room *room,
			    const float *x, float *dy, const struct kernel_conv_relu *relu,
			    float *dkernel, float *dbias);
	void (*grad_input)(const struct kernel_conv *conv, const struct kernel_room *room,
			   const float *dy, const float *kernel, float *dx, bool add);
	size_t (*scratch)(const struct kernel_conv *conv, unsigned lanes, bool training);
};

/* The convolution over a batch of the layer's input; a transposed layer's is over its output. */
static struct kernel_conv conv_kernel(const struct layer_pass *pass, int64_t channels,
				      int64_t filters)
{
	const struct model_layer *layer = pass->layer;
	const struct layer_conv *w = layer->config;
	const struct model_shape *from = w->transposed ? &layer->output : &layer->input;
	const struct model_shape *to = w->transposed ? &layer->input : &layer->output;

	return (struct kernel_conv){
		.batch = pass->batch,
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

/* The part of the activation that is applied when sums are stored, and below the rest of it. */
static struct kernel_conv_finish conv_finish(const struct layer_pass *pass, int bias)
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

static void conv_activate(const struct layer_pass *pass)
{
	enum model_activation activation = pass->layer->activation;

	if (activation != MODEL_LINEAR && activation != MODEL_RELU)
		compute__activate(pass, activation, compute__activation_sums(pass),
				  layer_conv_pixels(pass->layer, pass->batch),
				  layer_last_dim(&pass->layer->output));
}

/* Apply the activation's gradient to pass->grad_output; a ReLU's is left to the kernels. */
static struct kernel_conv_relu conv_gradient(const struct layer_pass *pass)
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

enum {
	CONV_KERNEL,
	CONV_BIAS
};

static struct kernel_conv conv_of(const struct layer_pass *pass)
{
	return conv_kernel(pass, layer_last_dim(&pass->layer->input), pass->layer->units);
}

static void conv_forward(const struct layer_pass *pass)
{
	const struct conv_kernels *kernels = compute_of(pass->layer)->own;
	struct kernel_conv conv = conv_of(pass);
	struct kernel_room room = {pass->pool, pass->scratch};
	struct kernel_conv_finish finish = conv_finish(pass, CONV_BIAS);

	kernels->forward(&conv, &room, pass->inputs[0], compute__weights(pass, CONV_KERNEL),
			 &finish, compute__activation_sums(pass));
	conv_activate(pass);
}

static void conv_backward(const struct layer_pass *pass)
{
	const struct conv_kernels *kernels = compute_of(pass->layer)->own;
	struct kernel_conv conv = conv_of(pass);
	struct kernel_room room = {pass->pool, pass->scratch};
	struct kernel_conv_relu relu = conv_gradient(pass);
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

static size_t conv_scratch(const struct layer_pass *pass)
{
	const struct conv_kernels *kernels = compute_of(pass->layer)->own;
	struct kernel_conv conv = conv_of(pass);

	return kernels->scratch(&conv, pool_lanes(pass->pool), pass->training);
}

#define CONV_OPS                                                                                   \
	.forward = conv_forward, .backward = conv_backward, .kept = compute__activation_kept,      \
	.scratch = conv_scratch, .adds = true, .fuses_relu = true

const struct compute_ops compute_conv2d = {
	CONV_OPS,
	.own =
		&(const struct conv_kernels){
			kernel_conv_forward,
			kernel_conv_grad_kernel,
			kernel_conv_grad_input,
			kernel_conv_scratch,
		},
};

const struct compute_ops compute_depthwise_conv2d = {
	CONV_OPS,
	.own =
		&(const struct conv_kernels){
			kernel_depthwise_forward,
			kernel_depthwise_grad_kernel,
			kernel_depthwise_grad_input,
			kernel_depthwise_scratch,
		},
};

/* ---- Conv2DTranspose and Conv1DTranspose ----------------------------------------------------- */

/* The passes of the convolution from the output to the input, in reverse. Bias and activation
 * follow in separate passes. */
static struct kernel_conv transposed_of(const struct layer_pass *pass)
{
	return conv_kernel(pass, pass->layer->units, layer_last_dim(&pass->layer->input));
}

static void bias_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t filters = pass->layer->units;

	kernel_bias(compute__activation_sums(pass) + first * filters, filters, rows, filters,
		    compute__weights(pass, CONV_BIAS));
}

static void transposed_forward(const struct layer_pass *pass)
{
	const struct kernel_conv conv = transposed_of(pass);
	const struct kernel_room room = {pass->pool, pass->scratch};
	const int64_t pixels = layer_conv_pixels(pass->layer, pass->batch);
	float *sums = compute__activation_sums(pass);

	kernel_conv_grad_input(&conv, &room, pass->inputs[0], compute__weights(pass, CONV_KERNEL),
			       sums, false);
	if (pass->layer->use_bias)
		compute__share(pass->pool, pixels, pass->layer->units, bias_body, pass);
	compute__activate(pass, pass->layer->activation, sums, pixels, pass->layer->units);
}

/* The bias gradients of filters @first .. @first + @filters - 1. */
static void bias_grad_body(const void *context, int64_t first, int64_t filters)
{
	const struct layer_pass *pass = context;

	kernel_column_sums(pass->grad_output + first, pass->layer->units,
			   layer_conv_pixels(pass->layer, pass->batch), filters,
			   compute__gradients(pass, CONV_BIAS) + first);
}

static void transposed_backward(const struct layer_pass *pass)
{
	const struct kernel_conv_finish plain = {0};
	const struct kernel_conv_relu none = {0};
	const struct kernel_conv conv = transposed_of(pass);
	const struct kernel_room room = {pass->pool, pass->scratch};
	const int64_t pixels = layer_conv_pixels(pass->layer, pass->batch);

	if (!pass->skip_activation)
		compute__activate_grad(pass->pool, pass->layer->activation, pass->kept,
				       pass->output, pass->grad_output, pixels, pass->layer->units);
	/* Without a ReLU the kernel does not write to its output gradient, here the inputs. */
	if (compute__learns(pass))
		kernel_conv_grad_kernel(&conv, &room, pass->grad_output, (float *)pass->inputs[0],
					&none, compute__gradients(pass, CONV_KERNEL), NULL);
	if (compute__learns(pass) && pass->layer->use_bias)
		compute__share(pass->pool, pass->layer->units, pixels, bias_grad_body, pass);
	if (pass->grad_inputs[0])
		kernel_conv_forward(&conv, &room, pass->grad_output,
				    compute__weights(pass, CONV_KERNEL), &plain,
				    pass->grad_inputs[0]);
}

/* The forward pass is a gradient of the convolution. */
static size_t transposed_scratch(const struct layer_pass *pass)
{
	const struct kernel_conv conv = transposed_of(pass);

	return kernel_conv_scratch(&conv, pool_lanes(pass->pool), true);
}

const struct compute_ops compute_conv2d_transpose = {
	.forward = transposed_forward,
	.backward = transposed_backward,
	.kept = compute__activation_kept,
	.scratch = transposed_scratch,
};

/* ---- SeparableConv2D and SeparableConv1D ----------------------------------------------------- */

/* A depthwise convolution without bias, then a 1 x 1 convolution over its channels with bias and
 * activation. The intermediate result is kept for the backward pass; its gradient is scratch. */
struct separable {
	struct kernel_conv depthwise, pointwise;
	struct kernel_room room;
	float *between, *grad; /* the intermediate result, and its gradient */
};

static struct separable separable_of(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	struct separable s = {
		.depthwise = conv_kernel(pass, layer_last_dim(&layer->input),
					 layer_separable_between(layer)),
	};

	s.pointwise = (struct kernel_conv){
		.batch = pass->batch,
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
static size_t separable_floats(const struct layer_pass *pass)
{
	return model_align((size_t)(layer_conv_pixels(pass->layer, pass->batch) *
				    layer_separable_between(pass->layer)));
}

/* Floats that the activation keeps, stored before the intermediate result. */
static size_t separable_first(const struct layer_pass *pass)
{
	return model_align(compute__activation_kept(pass) / sizeof(float));
}

static struct separable separable_pass(const struct layer_pass *pass)
{
	struct separable s = separable_of(pass);

	s.between = (float *)pass->kept + separable_first(pass);
	s.grad = pass->scratch;
	s.room = (struct kernel_room){pass->pool, pass->scratch};
	return s;
}

static void separable_forward(const struct layer_pass *pass)
{
	const struct kernel_conv_finish plain = {0};
	struct kernel_conv_finish finish = conv_finish(pass, LAYER_SEPARABLE_BIAS);
	struct separable s = separable_pass(pass);

	kernel_depthwise_forward(&s.depthwise, &s.room, pass->inputs[0],
				 compute__weights(pass, LAYER_SEPARABLE_DEPTHWISE), &plain,
				 s.between);
	kernel_conv_forward(&s.pointwise, &s.room, s.between,
			    compute__weights(pass, LAYER_SEPARABLE_POINTWISE), &finish,
			    compute__activation_sums(pass));
	conv_activate(pass);
}

static void separable_backward(const struct layer_pass *pass)
{
	const struct kernel_conv_relu none = {0};
	const struct model_layer *layer = pass->layer;
	struct kernel_conv_relu relu = conv_gradient(pass);
	struct separable s = separable_pass(pass);

	s.room.scratch = s.grad + separable_floats(pass);
	relu.keep = true;
	if (!compute__learns(pass))
		kernel_conv_grad_relu(&relu, pass->pool, pass->grad_output,
				      (size_t)compute__count(pass));
	else
		kernel_conv_grad_kernel(
			&s.pointwise, &s.room, s.between, pass->grad_output, &relu,
			compute__gradients(pass, LAYER_SEPARABLE_POINTWISE),
			layer->use_bias ? compute__gradients(pass, LAYER_SEPARABLE_BIAS) : NULL);
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

static size_t separable_kept(const struct layer_pass *pass)
{
	return (separable_first(pass) + separable_floats(pass)) * sizeof(float);
}

static size_t separable_scratch(const struct layer_pass *pass)
{
	const unsigned lanes = pool_lanes(pass->pool);
	struct separable s = separable_of(pass);
	size_t depthwise = kernel_depthwise_scratch(&s.depthwise, lanes, pass->training);
	size_t pointwise = kernel_conv_scratch(&s.pointwise, lanes, pass->training);
	size_t grad = pass->training ? separable_floats(pass) * sizeof(float) : 0;

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
