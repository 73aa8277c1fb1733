/*
 * Cropping1D and 2D, UpSampling1D, Permute and RepeatVector: each output value is a copy of an
 * input value, and its gradient is added to that input's.
 *
 * Slices are ranges of items: one thread sums an input's gradient, in the output's order.
 */
#include <string.h>

#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

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

static void forward_body(const void *context, int64_t first, int64_t items)
{
	rearrange_items(context, first, items, true);
}

static void backward_body(const void *context, int64_t first, int64_t items)
{
	rearrange_items(context, first, items, false);
}

static void rearrange_forward(const struct layer_pass *pass)
{
	compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
		       forward_body, pass);
}

static void rearrange_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
			       backward_body, pass);
}

const struct compute_ops compute_rearrange = {
	.forward = rearrange_forward,
	.backward = rearrange_backward,
	.adds = true,
};
