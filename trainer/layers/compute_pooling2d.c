/*
 * MaxPooling2D and AveragePooling2D: windows over NHWC images, with TensorFlow's paddings.
 *
 * layer_config.h defines the sizes; a mean is over the cells inside the image. The index of a
 * maximum is kept, usually as a byte, from forward to backward, so that neither input nor output
 * is read again. Slices are ranges of rows.
 */
#include "common/minmax.h"
#include "trainer/kernels/kernel_pool.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

#define POOLING_GRAIN 16384 /* minimum floats of the input that are worth a slice */

static struct kernel_pool pooling_of(const struct model_layer *layer)
{
	const struct layer_pool *p = layer->config;

	return (struct kernel_pool){
		.height = p->height,
		.width = p->width,
		.channels = p->channels,
		.out_height = p->out_height,
		.out_width = p->out_width,
		.pool_height = p->pool_height,
		.pool_width = p->pool_width,
		.stride_height = p->stride_height,
		.stride_width = p->stride_width,
		.top = p->top,
		.left = p->left,
	};
}

struct pooling_work {
	struct kernel_pool pool;
	const struct layer_pass *pass;
	int64_t rows, step;
};

/* Set up work on rows of @floats input floats each; set the number of slices. */
static struct pooling_work pooling_work(const struct layer_pass *pass, int64_t rows, int64_t floats,
					unsigned *slices)
{
	struct pooling_work work = {pooling_of(pass->layer), pass, rows, POOLING_GRAIN / floats};

	if (work.step < 1)
		work.step = 1;
	*slices = (unsigned)((rows + work.step - 1) / work.step);
	return work;
}

/* The cost: each output float is computed from its whole window, or distributed to it. */
static uint64_t pooling_cost(const struct layer_pass *pass)
{
	const struct layer_pool *p = pass->layer->config;

	return kernel_work_floats(pass->batch * p->out_height * p->out_width * p->channels *
				  p->pool_height * p->pool_width);
}

static int64_t pooling_count(const struct pooling_work *w, unsigned slice)
{
	int64_t left = w->rows - slice * w->step;

	return min(left, w->step);
}

static void pooling_forward(const struct layer_pass *pass, pool_slice slice)
{
	const struct layer_pool *pool = pass->layer->config;
	unsigned slices;
	struct pooling_work work =
		pooling_work(pass, pass->batch * pool->out_height,
			     pool->stride_height * pool->width * pool->channels, &slices);

	pool_share(pass->pool, pooling_cost(pass), slice, &work, slices);
	if (pass->watch)
		pass->watch->known = true;
}

static void pooling_backward(const struct layer_pass *pass, pool_slice slice)
{
	const struct layer_pool *pool = pass->layer->config;
	unsigned slices;
	struct pooling_work work = pooling_work(pass, pass->batch * pool->height,
						pool->width * pool->channels, &slices);

	if (pass->grad_inputs[0])
		pool_share(pass->pool, pooling_cost(pass), slice, &work, slices);
}

/* Report the rows that the slice has just written to the watch. */
static void pooling_watch(const struct pooling_work *w, unsigned slice)
{
	int64_t line = w->pool.out_width * w->pool.channels;

	if (w->pass->watch)
		kernel_watch_update(w->pass->watch,
				    kernel_abs_max(w->pass->output + slice * w->step * line,
						   (size_t)(pooling_count(w, slice) * line)));
}

static void max_forward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_max(&w->pool, w->pass->inputs[0], w->pass->output,
			w->pass->training ? w->pass->kept : NULL, slice * w->step,
			pooling_count(w, slice));
	pooling_watch(w, slice);
}

static void max_backward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_max_grad(&w->pool, w->pass->kept, w->pass->grad_output, w->pass->grad_inputs[0],
			     slice * w->step, pooling_count(w, slice), compute__adds(w->pass, 0));
}

static void max_forward(const struct layer_pass *pass)
{
	pooling_forward(pass, max_forward_slice);
}

static void max_backward(const struct layer_pass *pass)
{
	pooling_backward(pass, max_backward_slice);
}

static size_t max_kept(const struct model *model, const struct model_layer *layer, int64_t batch)
{
	const struct kernel_pool pool = pooling_of(layer);

	(void)model;
	return (size_t)(batch * model_shape_count(&layer->output)) * kernel_pool_argmax_size(&pool);
}

static void average_forward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_average(&w->pool, w->pass->inputs[0], w->pass->output, slice * w->step,
			    pooling_count(w, slice));
	pooling_watch(w, slice);
}

static void average_backward_slice(void *context, unsigned slice)
{
	const struct pooling_work *w = context;

	kernel_pool_average_grad(&w->pool, w->pass->grad_output, w->pass->grad_inputs[0],
				 slice * w->step, pooling_count(w, slice),
				 compute__adds(w->pass, 0));
}

static void average_forward(const struct layer_pass *pass)
{
	pooling_forward(pass, average_forward_slice);
}

static void average_backward(const struct layer_pass *pass)
{
	pooling_backward(pass, average_backward_slice);
}

const struct compute_ops compute_max_pooling2d = {
	.forward = max_forward,
	.backward = max_backward,
	.kept = max_kept,
	.adds = true,
};

const struct compute_ops compute_average_pooling2d = {
	.forward = average_forward,
	.backward = average_backward,
	.adds = true,
};
