/*
 * Regularisation. No state; a parameter is shared out in slices of equal length.
 */
#include "trainer/learn/regularizer.h"

#include "common/minmax.h"
#include "trainer/kernels/kernel_regularizer.h"
#include "trainer/kernels/kernel_work.h"

#define REGULARIZER_SLICE 65536 /* floats */
#define REGULARIZER_SUMS  64    /* slices whose sums are held at a time */

struct regularizer_work {
	const float *weights;
	float *gradients;
	size_t count;
	float l1, l2;
	double sums[REGULARIZER_SUMS];
};

static bool regularizer_here(const struct model_param *param, int first_layer, int layer_count)
{
	return (param->l1 > 0.0f || param->l2 > 0.0f) && param->layer >= first_layer &&
	       param->layer < first_layer + layer_count;
}

static size_t regularizer_length(const struct regularizer_work *work, size_t first)
{
	size_t left = work->count - first;

	return min(left, REGULARIZER_SLICE);
}

static unsigned regularizer_slices(size_t count)
{
	return (unsigned)((count + REGULARIZER_SLICE - 1) / REGULARIZER_SLICE);
}

bool regularizer_any(const struct model *model, int first_layer, int layer_count)
{
	for (int i = 0; i < model->param_count; i++)
		if (regularizer_here(&model->params[i], first_layer, layer_count))
			return true;
	return false;
}

static void regularizer_sum_slice(void *context, unsigned slice)
{
	struct regularizer_work *work = context;
	size_t first = (size_t)slice * REGULARIZER_SLICE;
	size_t length = regularizer_length(work, first);
	const float *weights = work->weights + first;
	double sum = 0.0;

	if (work->l1 > 0.0f)
		sum += (double)work->l1 * kernel_absolute_sum(weights, length);
	if (work->l2 > 0.0f)
		sum += (double)work->l2 * kernel_square_sum(weights, length);
	work->sums[slice] = sum;
}

/* Sums of slices are added from the first to the last, some at a time. */
static double regularizer_param(struct pool *pool, const struct model_param *param,
				const float *weights)
{
	const size_t most = (size_t)REGULARIZER_SUMS * REGULARIZER_SLICE;
	double penalty = 0.0;

	for (size_t done = 0; done < param->count; done += most) {
		struct regularizer_work work = {
			.weights = weights + param->offset + done,
			.count = min(param->count - done, most),
			.l1 = param->l1,
			.l2 = param->l2,
		};
		unsigned slices = regularizer_slices(work.count);

		pool_share(pool, kernel_work_floats((int64_t)work.count), regularizer_sum_slice,
			   &work, slices);
		for (unsigned i = 0; i < slices; i++)
			penalty += work.sums[i];
	}
	return penalty;
}

double regularizer_penalty(struct pool *pool, const struct model *model, int first_layer,
			   int layer_count, const float *weights)
{
	double penalty = 0.0;

	for (int i = 0; i < model->param_count; i++)
		if (regularizer_here(&model->params[i], first_layer, layer_count))
			penalty += regularizer_param(pool, &model->params[i], weights);
	return penalty;
}

static void regularizer_gradient_slice(void *context, unsigned slice)
{
	struct regularizer_work *work = context;
	size_t first = (size_t)slice * REGULARIZER_SLICE;

	kernel_regularize(work->gradients + first, work->weights + first, work->l1, 2.0f * work->l2,
			  regularizer_length(work, first));
}

void regularizer_gradient(struct pool *pool, const struct model *model, int first_layer,
			  int layer_count, const float *weights, float *gradients)
{
	for (int i = 0; i < model->param_count; i++) {
		const struct model_param *param = &model->params[i];
		struct regularizer_work work = {
			.weights = weights + param->offset,
			.gradients = gradients + param->offset,
			.count = param->count,
			.l1 = param->l1,
			.l2 = param->l2,
		};

		if (param->trainable && regularizer_here(param, first_layer, layer_count))
			pool_share(pool, kernel_work_floats(3 * (int64_t)param->count),
				   regularizer_gradient_slice, &work,
				   regularizer_slices(param->count));
	}
}
