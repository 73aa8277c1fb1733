/*
 * The table of the layers' compute functions, and access to their parameters. No state.
 */
#include "trainer/layers/compute.h"

#include <assert.h>

#include "trainer/layers/compute_internal.h"

/* Several kinds may share one row, which is then declared more than once. */
#define COMPUTE_EXTERN(kind, name, compute) extern const struct compute_ops compute_##compute;
LAYER_MAP(COMPUTE_EXTERN)
#undef COMPUTE_EXTERN

const struct compute_ops compute_none = {0};

static const struct compute_ops *const compute_rows[LAYER_KINDS] = {
#define COMPUTE_ROW(kind, name, compute) [LAYER_KIND_##kind] = &compute_##compute,
	LAYER_MAP(COMPUTE_ROW)
#undef COMPUTE_ROW
};

const struct compute_ops *compute_of(const struct model_layer *layer)
{
	return layer->ops->compute ? layer->ops->compute : compute_rows[layer->ops->kind];
}

static const struct model_param *pass_param(const struct layer_pass *pass, int index)
{
	assert(index < pass->layer->param_count);
	return &pass->model->params[pass->layer->first_param + index];
}

float *compute__weights(const struct layer_pass *pass, int index)
{
	const struct model_param *param = pass_param(pass, index);

	const bool rounded = param->half || param->bfloat16;

	assert(!rounded || pass->halves);
	return (rounded ? pass->halves : pass->weights) + param->offset;
}

float *compute__gradients(const struct layer_pass *pass, int index)
{
	return pass->gradients + (pass_param(pass, index)->offset - pass->first_gradient);
}

void compute__masks_backward(const struct layer_pass *pass)
{
	for (int i = layer_own_inputs(pass->layer); i < pass->layer->input_count; i++)
		if (pass->grad_inputs[i] && !compute__adds(pass, i))
			memset(pass->grad_inputs[i], 0,
			       (size_t)(pass->batch * model_shape_count(model_input_shape(
							      pass->model, pass->layer, i))) *
				       sizeof(float));
}

bool compute__learns(const struct layer_pass *pass)
{
	return pass->layer->trainable && pass->gradients;
}
