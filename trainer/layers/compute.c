/*
 * The table of the layers' compute functions, and what they share: parameters, slices, coefficients
 * per channel.
 *
 * Thread safe. Slices depend on the shape only.
 */
#include "trainer/layers/compute.h"

#include <assert.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_work.h"
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

/* ---- slices ---------------------------------------------------------------------------------- */

#define ELEMENTS_HOT  4096 /* floats that stay in the L1 cache */
#define ELEMENTS_WORK 6    /* cost of an element: reading, computing and writing, in floats */

struct elements_work {
	compute_body body;
	const void *context;
	int64_t rows, step;
	/* For a watched forward pass: */
	struct kernel_watch *watch;
	const float *output;
	int64_t columns;
};

static void elements_slice(void *context, unsigned slice)
{
	const struct elements_work *w = context;
	int64_t first = slice * w->step, left = w->rows - first;

	w->body(w->context, first, min(left, w->step));
}

/* Process the slice in parts, and scan each part while it is in the cache. */
static void elements_watched_slice(void *context, unsigned slice)
{
	const struct elements_work *w = context;
	int64_t at = slice * w->step, left = w->rows - at;
	int64_t end = at + min(left, w->step);
	int64_t part = w->columns < ELEMENTS_HOT ? ELEMENTS_HOT / w->columns : 1;
	uint32_t abs_max = 0;

	for (; at < end; at += part) {
		int64_t rows = min(end - at, part);
		uint32_t part_max;

		w->body(w->context, at, rows);
		part_max = kernel_abs_max(w->output + at * w->columns, (size_t)(rows * w->columns));
		abs_max = max(part_max, abs_max);
	}
	kernel_watch_update(w->watch, abs_max);
}

static void elements_run(struct pool *pool, struct elements_work *work, int64_t columns,
			 pool_slice slice)
{
	work->step = columns < COMPUTE_GRAIN ? COMPUTE_GRAIN / (columns > 0 ? columns : 1) : 1;
	pool_share(pool, kernel_work_floats(ELEMENTS_WORK * work->rows * columns), slice, work,
		   (unsigned)((work->rows + work->step - 1) / work->step));
}

void compute__share(struct pool *pool, int64_t rows, int64_t columns, compute_body body,
		    const void *context)
{
	struct elements_work work = {.body = body, .context = context, .rows = rows};

	elements_run(pool, &work, columns, elements_slice);
}

void compute__share_output(const struct layer_pass *pass, int64_t rows, int64_t columns,
			   compute_body body, const void *context)
{
	struct elements_work work = {
		.body = body,
		.context = context,
		.rows = rows,
		.watch = pass->watch,
		.output = pass->output,
		.columns = columns,
	};

	if (!pass->watch || columns < 1) {
		elements_run(pass->pool, &work, columns, elements_slice);
		return;
	}
	elements_run(pass->pool, &work, columns, elements_watched_slice);
	pass->watch->known = true;
}

int64_t compute__pattern(int64_t channels)
{
	return channels < COMPUTE_PATTERN ? COMPUTE_PATTERN / channels * channels : channels;
}

size_t compute__pattern_pair(const struct layer_pass *pass)
{
	return 2 * (size_t)compute__pattern(layer_last_dim(&pass->layer->input)) * sizeof(float);
}

void compute__repeat(float *pattern, const float *numbers, int64_t channels)
{
	for (int64_t i = 0; i < compute__pattern(channels); i++)
		pattern[i] = numbers[i % channels];
}
