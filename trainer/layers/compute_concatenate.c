/*
 * Concatenate: the channels of several inputs, in order.
 */
#include <string.h>

#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

/* An input's columns of an output row. The layer that joins a model's outputs has one row per item,
 * whatever their shapes. */
static int64_t concatenate_columns(const struct layer_pass *pass, int input)
{
	const struct model_shape *output = &pass->layer->output;

	return model_shape_count(model_input_shape(pass->model, pass->layer, input)) /
	       (model_shape_count(output) / layer_last_dim(output));
}

/* Copy rows of one input to column @column of the output. */
static void concatenate_rows(const struct layer_pass *pass, int input, int64_t column,
			     int64_t first, int64_t rows)
{
	int64_t width = layer_last_dim(&pass->layer->output);
	int64_t columns = concatenate_columns(pass, input);
	const float *x = pass->inputs[input];

	for (int64_t row = first; row < first + rows; row++)
		memcpy(pass->output + row * width + column, x + row * columns,
		       (size_t)columns * sizeof(*x));
}

static void concatenate_grad_rows(const struct layer_pass *pass, int input, int64_t column,
				  int64_t first, int64_t rows)
{
	int64_t width = layer_last_dim(&pass->layer->output);
	int64_t columns = concatenate_columns(pass, input);
	float *dx = pass->grad_inputs[input];

	if (!dx)
		return;
	for (int64_t row = first; row < first + rows; row++) {
		const float *dy = pass->grad_output + row * width + column;

		if (compute__adds(pass, input))
			kernel_add(dx + row * columns, dy, (size_t)columns);
		else
			memcpy(dx + row * columns, dy, (size_t)columns * sizeof(*dx));
	}
}

typedef void (*concatenate_work)(const struct layer_pass *pass, int input, int64_t column,
				 int64_t first, int64_t rows);

static void concatenate_inputs(const struct layer_pass *pass, concatenate_work work, int64_t first,
			       int64_t rows)
{
	int64_t column = 0;

	for (int i = 0; i < pass->layer->input_count; i++) {
		work(pass, i, column, first, rows);
		column += concatenate_columns(pass, i);
	}
}

static void concatenate_forward_body(const void *context, int64_t first, int64_t rows)
{
	concatenate_inputs(context, concatenate_rows, first, rows);
}

static void concatenate_backward_body(const void *context, int64_t first, int64_t rows)
{
	concatenate_inputs(context, concatenate_grad_rows, first, rows);
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
