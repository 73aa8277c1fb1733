/*
 * Tables of trained rows: Embedding and PositionEmbedding.
 */
#include <math.h>
#include <string.h>

#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

/* An index outside the table gives NaN, which health rules detect. Slices of the gradient are
 * columns of the table; one thread sums each of them in the order of the items. */

/* Return the row, or -1 if it does not exist. */
static int64_t embedding_row(const struct layer_pass *pass, float number)
{
	const int64_t rows = pass->model->params[pass->layer->first_param].shape.dim[0];

	return number >= 0.0f && number < (float)rows ? (int64_t)number : -1;
}

static void embedding_forward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const float *table = compute__weights(pass, 0);
	const int64_t units = pass->layer->units;

	for (int64_t i = first; i < first + count; i++) {
		const int64_t row = embedding_row(pass, pass->inputs[0][i]);
		float *y = pass->output + i * units;

		if (row >= 0)
			memcpy(y, table + row * units, (size_t)units * sizeof(*y));
		for (int64_t j = 0; row < 0 && j < units; j++)
			y[j] = NAN;
	}
}

static void embedding_table_body(const void *context, int64_t first, int64_t columns)
{
	const struct layer_pass *pass = context;
	const int64_t units = pass->layer->units;
	const int64_t rows = pass->model->params[pass->layer->first_param].shape.dim[0];
	const int64_t count = pass->batch * model_shape_count(&pass->layer->input);
	float *table = compute__gradients(pass, 0);

	for (int64_t row = 0; row < rows; row++)
		memset(table + row * units + first, 0, (size_t)columns * sizeof(*table));
	for (int64_t i = 0; i < count; i++) {
		const int64_t row = embedding_row(pass, pass->inputs[0][i]);
		const float *dy = pass->grad_output + i * units;

		for (int64_t j = first; row >= 0 && j < first + columns; j++)
			table[row * units + j] += dy[j];
	}
}

static void embedding_forward(const struct layer_pass *pass)
{
	compute__share(pass->pool, pass->batch * model_shape_count(&pass->layer->input),
		       pass->layer->units, embedding_forward_body, pass);
}

static void embedding_backward(const struct layer_pass *pass)
{
	const int64_t count = pass->batch * model_shape_count(&pass->layer->input);

	if (compute__learns(pass))
		compute__share(pass->pool, pass->layer->units, count, embedding_table_body, pass);
	if (pass->grad_inputs[0])
		memset(pass->grad_inputs[0], 0, (size_t)count * sizeof(float));
}

const struct compute_ops compute_embedding = {
	.forward = embedding_forward,
	.backward = embedding_backward,
};

/* The same rows for every item. The table's gradient is summed over the items in order. */

static void position_body(const void *context, int64_t first, int64_t items)
{
	const struct layer_pass *pass = context;
	const size_t count = (size_t)model_shape_count(&pass->layer->output);

	for (int64_t i = first; i < first + items; i++)
		memcpy(pass->output + (size_t)i * count, compute__weights(pass, 0),
		       count * sizeof(float));
}

static void position_forward(const struct layer_pass *pass)
{
	compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output),
		       position_body, pass);
}

static void position_backward(const struct layer_pass *pass)
{
	const size_t count = (size_t)model_shape_count(&pass->layer->output);

	if (compute__learns(pass)) {
		const struct model_param *table = &pass->model->params[pass->layer->first_param];
		float *sums = compute__gradients(pass, 0);

		memset(sums, 0, table->count * sizeof(*sums));
		for (int64_t i = 0; i < pass->batch; i++)
			kernel_add(sums, pass->grad_output + (size_t)i * count, count);
	}
	if (pass->grad_inputs[0])
		memset(pass->grad_inputs[0], 0, (size_t)pass->batch * count * sizeof(float));
}

const struct compute_ops compute_position_embedding = {
	.forward = position_forward,
	.backward = position_backward,
};
