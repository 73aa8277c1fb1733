/*
 * PositionEmbedding: the same rows for every item. The table's gradient is summed over the items in
 * order.
 */
#include <string.h>

#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

static void item_body(const void *context, int64_t first, int64_t items)
{
	const struct layer_pass *pass = context;
	const size_t count = (size_t)model_shape_count(&pass->layer->output);

	for (int64_t i = first; i < first + items; i++)
		memcpy(pass->output + (size_t)i * count, compute__weights(pass, 0),
		       count * sizeof(float));
}

static void position_forward(const struct layer_pass *pass)
{
	compute__share(pass->pool, pass->batch, model_shape_count(&pass->layer->output), item_body,
		       pass);
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
