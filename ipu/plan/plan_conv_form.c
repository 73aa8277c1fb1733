/*
 * The forms of a convolution: its pass expressed as a convolution, with every choice of taps turned
 * into input channels. Pure functions: any thread.
 */
#include "ipu/plan/plan_conv_internal.h"

#include <assert.h>

#include "common/mem.h"

int64_t ipu__times(int64_t a, int64_t b)
{
	assert(a >= 1 && b >= 1);
	return a > CONV_MOST / b ? CONV_MOST : a * b;
}

static double volume(const struct conv_form *form)
{
	return (double)form->position[0] * (double)form->position[1] * (double)form->position[2];
}

static double taps(const struct conv_form *form)
{
	return (double)form->kernel[0] * (double)form->kernel[1];
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void forward(const struct ipu_conv *conv, struct conv_form *form)
{
	*form = (struct conv_form){.in = conv->in_channels,
				   .out = conv->out_channels,
				   .position = {conv->batch, conv->out[0], conv->out[1]}};
	for (int i = 0; i < 2; i++) {
		form->kernel[i] = conv->kernel[i];
		form->stride[i] = conv->stride[i];
		form->dilation[i] = conv->dilation[i];
		form->input_dilation[i] = 1;
		form->in_field[i] = conv->in[i];
	}
}

/* A convolution of the output's gradient; the kernel is transposed and rotated. With a stride the
 * gradient has zeros between its positions. With one tap only the strided positions are computed;
 * the rest is zeros. */
static void backward_data(const struct ipu_conv *conv, struct conv_form *form)
{
	bool one_tap = conv->kernel[0] == 1 && conv->kernel[1] == 1;

	*form = (struct conv_form){.in = conv->out_channels,
				   .out = conv->in_channels,
				   .position = {conv->batch, 1, 1},
				   .move_weights = true};
	for (int i = 0; i < 2; i++) {
		form->position[1 + i] = one_tap ? conv->out[i] : conv->in[i];
		form->kernel[i] = conv->kernel[i];
		form->stride[i] = 1;
		form->dilation[i] = conv->dilation[i];
		form->input_dilation[i] = one_tap ? 1 : conv->stride[i];
		form->in_field[i] = conv->out[i];
	}
	/* If the gradient has one position, as with a kernel as large as its field, each input
	 * position has its own tap: positions are channels, and the weights a matrix. */
	for (int i = 0; i < 2; i++) {
		if (conv->out[i] > 1 || conv->kernel[i] == 1)
			continue;
		form->out = ipu__times(form->out, form->position[1 + i]);
		form->position[1 + i] = 1;
		form->kernel[i] = form->dilation[i] = form->input_dilation[i] = 1;
		form->move_out = true;
	}
	if (one_tap && (conv->stride[0] > 1 || conv->stride[1] > 1))
		form->fill_elements = (double)conv->batch * (double)conv->in[0] *
				      (double)conv->in[1] * (double)conv->in_channels *
				      (double)conv->groups;
}

/* Positions are the kernel's taps, their batch the input's channels; the input channels, which are
 * summed over, are the batch, and the taps the output's field. */
static void backward_weights(const struct ipu_conv *conv, struct conv_form *form)
{
	*form = (struct conv_form){
		.in = conv->batch,
		.out = conv->out_channels,
		.position = {conv->in_channels, conv->kernel[0], conv->kernel[1]},
		.move_in = true,
		.move_weights = true,
		.move_out = true};
	for (int i = 0; i < 2; i++) {
		form->kernel[i] = conv->out[i];
		form->stride[i] = conv->dilation[i];
		form->dilation[i] = conv->stride[i];
		form->input_dilation[i] = 1;
		form->in_field[i] = conv->in[i];
	}
}

static void (*const passes[])(const struct ipu_conv *conv, struct conv_form *form) = {
	[IPU_FORWARD] = forward,
	[IPU_BACKWARD_DATA] = backward_data,
	[IPU_BACKWARD_WEIGHTS] = backward_weights,
};
_Static_assert(ARRAY_LEN(passes) == IPU_PASSES, "passes out of step");

/* ---- forms of a pass ------------------------------------------------------------------------- */

/* With one tap, turn the field into a row of positions. */
static void flatten(struct conv_form *form)
{
	if (form->kernel[0] > 1 || form->kernel[1] > 1 || form->input_dilation[0] > 1 ||
	    form->input_dilation[1] > 1)
		return;
	form->position[0] =
		ipu__times(form->position[0], ipu__times(form->position[1], form->position[2]));
	form->position[1] = form->position[2] = 1;
	form->stride[0] = form->stride[1] = 1;
	form->in_field[0] = form->in_field[1] = 1;
	form->flat = true;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
	while (b > 0) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static double count_inputs(const struct conv_form *form)
{
	if (form->flat)
		return volume(form) * (double)form->in;
	return (double)form->position[0] * (double)form->in_field[0] * (double)form->in_field[1] *
	       (double)form->in;
}

/* Set the sizes of the operands and the atoms of their layout, by the channel groups of the AMP. */
static void set_layout_sizes(struct conv_form *form)
{
	const int64_t in_group = form->dtype == IPU_FLOAT16 ? 16 : 8, out_group = 16;
	const int64_t bytes = ipu_dtype_bytes(form->dtype);
	double groups = (double)form->groups;

	form->inputs = count_inputs(form) * groups;
	form->weights = (double)form->in * (double)form->out * taps(form) * groups;
	form->outputs = volume(form) * (double)form->out * groups;
	form->in_atom = greatest_common_divisor(form->in, in_group) * bytes;
	form->weight_atom = form->in_atom * greatest_common_divisor(form->out, out_group);
	form->out_atom = greatest_common_divisor(form->out, out_group) * bytes;
}

static void add(struct conv_form *forms, int *count, struct conv_form form)
{
	assert(*count < CONV_FORMS);
	flatten(&form);
	set_layout_sizes(&form);
	forms[(*count)++] = form;
}

static int conv_forms(const struct ipu_conv *conv, struct conv_form base, struct conv_form *forms,
		      int count)
{

	for (int which = 0; which < 4; which++) {
		struct conv_form form = base;
		bool skip = false;

		for (int i = 0; i < 2; i++) {
			if (!(which >> i & 1))
				continue;
			/* More taps than inputs: poplibs does not try it. */
			skip = skip || base.kernel[i] == 1 || base.kernel[i] > base.in_field[i];
			/* Turn the taps of dimension i into input channels. */
			form.in = ipu__times(form.in, form.kernel[i]);
			form.in_field[i] = form.position[1 + i];
			form.kernel[i] = form.stride[i] = form.dilation[i] =
				form.input_dilation[i] = 1;
			form.move_in = form.move_weights = true;
		}
		if (skip)
			continue;
		add(forms, &count, form);
		if (conv->pass != IPU_BACKWARD_WEIGHTS || !forms[count - 1].flat)
			continue;
		/* Exchange the operands: the gradient's channels are the positions, and the weight
		 * gradient has the layout of the weights. */
		form = forms[count - 1];
		form.out = form.position[0];
		form.position[0] = base.out;
		form.move_out = false;
		add(forms, &count, form);
	}
	return count;
}

/* Combine groups of few channels into groups as large as the AMP reads at once. Weights between
 * channels of different groups are zeros, and all operands change layout. */
static bool combine_groups(struct ipu_conv *conv, enum ipu_dtype dtype)
{
	const int64_t in_group = dtype == IPU_FLOAT16 ? 16 : 8;
	int64_t together = in_group / conv->in_channels;

	if (together > conv->groups)
		together = conv->groups;
	if (together <= 1)
		return false;
	conv->groups = ipu__ceil_div(conv->groups, together);
	conv->in_channels *= together;
	conv->out_channels = ipu__times(conv->out_channels, together);
	return true;
}

/* Initialize @base for the forms of @conv. */
static void conv_base(const struct ipu_conv *conv, enum ipu_dtype dtype, enum ipu_dtype partials,
		      struct conv_form *base)
{
	passes[conv->pass](conv, base);
	base->groups = conv->groups;
	base->dtype = dtype;
	base->partials = partials;
	base->activations = conv->pass != IPU_BACKWARD_WEIGHTS;
	base->depthwise = conv->groups > 1 && conv->in_channels == 1 && conv->out_channels == 1;
}

int ipu__conv_forms(const struct ipu_op *op, const struct ipu_plan_options *options,
		    struct conv_form forms[CONV_FORMS])
{
	const enum ipu_dtype dtype = op->dtype == IPU_FLOAT16 ? IPU_FLOAT16 : IPU_FLOAT32;
	const enum ipu_dtype partials = dtype == IPU_FLOAT16 ? options->partials : IPU_FLOAT32;
	struct conv_form base;
	struct ipu_conv conv;
	int count = 0;

	if (op->kind == IPU_OP_MATMUL) {
		base = (struct conv_form){
			.groups = 1,
			.in = op->matmul.k,
			.out = op->matmul.m,
			.position = {op->matmul.n, 1, 1},
			.kernel = {1, 1},
			.stride = {1, 1},
			.dilation = {1, 1},
			.input_dilation = {1, 1},
			.in_field = {1, 1},
		};
		base.dtype = dtype;
		base.partials = partials;
		base.move_in = op->pass != IPU_FORWARD;
		base.move_out = op->pass == IPU_BACKWARD_WEIGHTS;
		add(forms, &count, base);
		base.out = op->matmul.n;
		base.position[0] = op->matmul.m;
		base.move_in = base.move_weights = base.move_out = true;
		add(forms, &count, base);
		return count;
	}
	conv = op->conv;
	conv_base(&conv, dtype, partials, &base);
	count = conv_forms(&conv, base, forms, count);
	if (!combine_groups(&conv, dtype))
		return count;
	conv_base(&conv, dtype, partials, &base);
	base.move_in = base.move_weights = base.move_out = true;
	return conv_forms(&conv, base, forms, count);
}
