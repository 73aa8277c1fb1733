/*
 * Layers that move values: Cropping1D and 2D, UpSampling1D, Permute and RepeatVector; ZeroPadding1D
 * and 2D; Concatenate.
 */
#include <string.h>

#include "trainer/kernels/kernel_conv.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

/* ---- copies of input values ------------------------------------------------------------------ */

/* Each output value is a copy of an input value, and its gradient is added to that input's. Slices
 * are ranges of items: one thread sums an input's gradient, in the output's order. */

/* The input's offset, along dimension @d, for index @at of the output. */
static int64_t source_of(const struct layer_rearrange_dim *d, int64_t at)
{
	return (at / d->repeat + d->first) * d->stride;
}

/* Call @body for each row of the output's last dimension, with the input's offset of the row. */
static void each_row(const struct layer_rearrange *r, int64_t rows,
		     void (*body)(void *context, int64_t row, int64_t source), void *context)
{
	int64_t at[MODEL_DIMS] = {0};

	for (int64_t row = 0; row < rows; row++) {
		int64_t source = 0;

		for (int d = 0; d < r->ndim - 1; d++)
			source += source_of(&r->dim[d], at[d]);
		body(context, row, source);
		for (int d = r->ndim - 2; d >= 0 && ++at[d] == r->dim[d].size; d--)
			at[d] = 0;
	}
}

struct rearrange_item {
	const struct layer_rearrange_dim *last;
	const float *from;
	float *to;
};

static void forward_row(void *context, int64_t row, int64_t source)
{
	const struct rearrange_item *item = context;
	const struct layer_rearrange_dim *last = item->last;
	const float *x = item->from + source;
	float *y = item->to + row * last->size;

	if (last->stride == 1 && last->repeat == 1)
		memcpy(y, x + last->first, (size_t)last->size * sizeof(*y));
	else
		for (int64_t i = 0; i < last->size; i++)
			y[i] = x[source_of(last, i)];
}

static void backward_row(void *context, int64_t row, int64_t source)
{
	const struct rearrange_item *item = context;
	const struct layer_rearrange_dim *last = item->last;
	const float *dy = item->from + row * last->size;
	float *dx = item->to + source;

	if (last->stride == 1 && last->repeat == 1)
		kernel_add(dx + last->first, dy, (size_t)last->size);
	else
		for (int64_t i = 0; i < last->size; i++)
			dx[source_of(last, i)] += dy[i];
}

static void rearrange_items(const struct layer_pass *pass, int64_t first, int64_t items,
			    bool forward)
{
	const struct layer_rearrange *r = pass->layer->config;
	const struct layer_rearrange_dim *last = &r->dim[r->ndim - 1];
	const int64_t in = model_shape_count(&pass->layer->input);
	const int64_t out = model_shape_count(&pass->layer->output);

	for (int64_t i = first; i < first + items; i++) {
		struct rearrange_item item = {.last = last};

		if (forward) {
			item.from = pass->inputs[0] + i * in;
			item.to = pass->output + i * out;
		} else {
			item.from = pass->grad_output + i * out;
			item.to = pass->grad_inputs[0] + i * in;
			if (!compute__adds(pass, 0))
				memset(item.to, 0, (size_t)in * sizeof(*item.to));
		}
		each_row(r, out / last->size, forward ? forward_row : backward_row, &item);
	}
}

static void rearrange_forward_body(const void *context, int64_t first, int64_t items)
{
	rearrange_items(context, first, items, true);
}

static void rearrange_backward_body(const void *context, int64_t first, int64_t items)
{
	rearrange_items(context, first, items, false);
}

static void rearrange_forward(const struct layer_pass *pass)
{
	compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
		       rearrange_forward_body, pass);
}

static void rearrange_backward(const struct layer_pass *pass)
{
	compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
		       rearrange_backward_body, pass);
}

const struct compute_ops compute_rearrange = {
	.forward = rearrange_forward,
	.backward = rearrange_backward,
	.adds = true,
};

/* ---- ZeroPadding2D and ZeroPadding1D --------------------------------------------------------- */

static struct kernel_pad padding_of(const struct layer_pass *pass)
{
	const struct layer_pad *pad = pass->layer->config;

	return (struct kernel_pad){
		.batch = pass->batch,
		.height = layer_side(&pass->layer->input, LAYER_Y),
		.width = layer_side(&pass->layer->input, LAYER_X),
		.channels = layer_last_dim(&pass->layer->input),
		.top = pad->top,
		.bottom = pad->bottom,
		.left = pad->left,
		.right = pad->right,
	};
}

static void padding_forward(const struct layer_pass *pass)
{
	const struct kernel_pad pad = padding_of(pass);

	kernel_pad_forward(&pad, pass->pool, pass->inputs[0], pass->output);
}

static void padding_backward(const struct layer_pass *pass)
{
	const struct kernel_pad pad = padding_of(pass);

	kernel_pad_grad(&pad, pass->pool, pass->grad_output, pass->grad_inputs[0],
			compute__adds(pass, 0));
}

const struct compute_ops compute_zero_padding2d = {
	.forward = padding_forward,
	.backward = padding_backward,
	.adds = true,
};

/* ---- Concatenate ----------------------------------------------------------------------------- */

/* An input's columns of an output row. The layer that joins a model's outputs has one row per item,
 * whatever their shapes. */
static int64_t concatenate_columns(const struct layer_pass *pass, int input)
{
	const struct model_shape *output = &pass->layer->output;

	return model_shape_count(model_input_shape(pass->model, pass->layer, input)) /
	       (model_shape_count(output) / layer_last_dim(output));
}

static void concatenate_forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t width = layer_last_dim(&pass->layer->output);
	int64_t column = 0;

	for (int i = 0; i < pass->layer->input_count; i++) {
		const int64_t columns = concatenate_columns(pass, i);
		const float *x = pass->inputs[i];

		for (int64_t row = first; row < first + rows; row++)
			memcpy(pass->output + row * width + column, x + row * columns,
			       (size_t)columns * sizeof(*x));
		column += columns;
	}
}

static void concatenate_backward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t width = layer_last_dim(&pass->layer->output);
	int64_t column = 0;

	for (int i = 0; i < pass->layer->input_count; i++) {
		const int64_t columns = concatenate_columns(pass, i);
		float *dx = pass->grad_inputs[i];

		for (int64_t row = first; dx && row < first + rows; row++)
			kernel_merge_pass(pass->grad_output + row * width + column, 1.0f,
					  dx + row * columns, compute__adds(pass, i),
					  (size_t)columns);
		column += columns;
	}
}

static int64_t concatenate_count(const struct layer_pass *pass)
{
	const struct model_shape *shape = &pass->layer->output;

	return pass->batch * (model_shape_count(shape) / layer_last_dim(shape));
}

static void concatenate_forward(const struct layer_pass *pass)
{
	compute__share_output(pass, concatenate_count(pass), layer_last_dim(&pass->layer->output),
			      concatenate_forward_body, pass);
}

static void concatenate_backward(const struct layer_pass *pass)
{
	compute__share(pass->pool, concatenate_count(pass), layer_last_dim(&pass->layer->output),
		       concatenate_backward_body, pass);
}

const struct compute_ops compute_concatenate = {
	.forward = concatenate_forward,
	.backward = concatenate_backward,
	.adds = true,
};
