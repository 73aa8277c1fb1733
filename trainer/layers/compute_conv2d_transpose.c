/*
 * Conv2DTranspose and Conv1DTranspose: the passes of the convolution from the output to the input,
 * in reverse. Bias and activation follow in separate passes.
 */
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_conv.h"

enum {
	KERNEL,
	BIAS
};

static struct kernel_conv conv_of(const struct model_layer *layer, int64_t batch)
{
	return compute__conv_kernel(layer, layer->units, layer_last_dim(&layer->input), batch);
}

static void bias_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t filters = pass->layer->units;

	kernel_bias(compute__activation_sums(pass) + first * filters, filters, rows, filters,
		    compute__weights(pass, BIAS));
}

static void transposed_forward(const struct layer_pass *pass)
{
	const struct kernel_conv conv = conv_of(pass->layer, pass->batch);
	const struct kernel_room room = {pass->pool, pass->scratch};
	const int64_t pixels = layer_conv_pixels(pass->layer, pass->batch);
	float *sums = compute__activation_sums(pass);

	kernel_conv_grad_input(&conv, &room, pass->inputs[0], compute__weights(pass, KERNEL), sums,
			       false);
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
			   compute__gradients(pass, BIAS) + first);
}

static void transposed_backward(const struct layer_pass *pass)
{
	const struct kernel_conv_finish plain = {0};
	const struct kernel_conv_relu none = {0};
	const struct kernel_conv conv = conv_of(pass->layer, pass->batch);
	const struct kernel_room room = {pass->pool, pass->scratch};
	const int64_t pixels = layer_conv_pixels(pass->layer, pass->batch);

	if (!pass->skip_activation)
		compute__activate_grad(pass->pool, pass->layer->activation, pass->kept,
				       pass->output, pass->grad_output, pixels, pass->layer->units);
	/* Without a ReLU the kernel does not write to its output gradient, here the inputs. */
	if (compute__learns(pass))
		kernel_conv_grad_kernel(&conv, &room, pass->grad_output, (float *)pass->inputs[0],
					&none, compute__gradients(pass, KERNEL), NULL);
	if (compute__learns(pass) && pass->layer->use_bias)
		compute__share(pass->pool, pass->layer->units, pixels, bias_grad_body, pass);
	if (pass->grad_inputs[0])
		kernel_conv_forward(&conv, &room, pass->grad_output, compute__weights(pass, KERNEL),
				    &plain, pass->grad_inputs[0]);
}

/* The forward pass is a gradient of the convolution. */
static size_t transposed_scratch(const struct model *model, const struct model_layer *layer,
				 int64_t batch, unsigned lanes, bool training)
{
	const struct kernel_conv conv = conv_of(layer, batch);

	(void)model;
	(void)training;
	return kernel_conv_scratch(&conv, lanes, true);
}

const struct compute_ops compute_conv2d_transpose = {
	.forward = transposed_forward,
	.backward = transposed_backward,
	.kept = compute__activation_kept,
	.scratch = transposed_scratch,
};
