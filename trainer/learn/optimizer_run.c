/*
 * Optimizers and regularisers at work. No state of their own: slots are the caller's. A parameter
 * is shared out in slices that depend on its length alone.
 */
#include "trainer/learn/optimizer_run.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#include "common/elementary.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_optimizer.h"
#include "trainer/kernels/kernel_regularizer.h"
#include "trainer/kernels/kernel_work.h"

#define REGULARIZER_SLICE 65536 /* floats */
#define REGULARIZER_SUMS  64    /* slices whose sums are held at a time */

/* ---- optimizers ------------------------------------------------------------------------------ */

struct optimizer_pass {
	const struct optimizer *optimizer;
	const struct optimizer_range *ranges;
	float *weights;
	const float *gradients;
	float *slots;
	size_t stride;
	double rate;
	int64_t update;
};

/* What a slice works on. */
struct optimizer_piece {
	const struct optimizer_pass *pass;
	float *weights;
	const float *gradients;
	float *slots[OPTIMIZER_SLOTS];
	size_t count;
};

static void sgd_apply(const struct optimizer_piece *piece)
{
	const struct optimizer *o = piece->pass->optimizer;
	float rate = (float)piece->pass->rate;

	if (o->momentum > 0.0)
		kernel_sgd_momentum(piece->weights, piece->gradients, piece->slots[0], rate,
				    (float)o->momentum, o->nesterov, piece->count);
	else
		kernel_sgd(piece->weights, piece->gradients, rate, piece->count);
}

static void rmsprop_apply(const struct optimizer_piece *piece)
{
	const struct optimizer *o = piece->pass->optimizer;
	const struct kernel_rmsprop p = {
		.rate = (float)piece->pass->rate,
		.rho = (float)o->rho,
		.momentum = (float)o->momentum,
		.epsilon = (float)o->epsilon,
	};
	bool momentum = o->momentum > 0.0;

	kernel_rmsprop(piece->weights, piece->gradients, piece->slots[0],
		       momentum ? piece->slots[1] : NULL,
		       o->centered ? piece->slots[momentum ? 2 : 1] : NULL, &p, piece->count);
}

/* The betas are rounded to float32 before anything is made of them, as everywhere. */
static void adam_apply(const struct optimizer_piece *piece)
{
	const struct optimizer *o = piece->pass->optimizer;
	float beta_1 = (float)o->beta_1, beta_2 = (float)o->beta_2;
	double t = (double)piece->pass->update + 1.0;
	double fix = sqrt(1.0 - elementary_pow((double)beta_2, t)) /
		     (1.0 - elementary_pow((double)beta_1, t));
	const struct kernel_adam p = {
		.rate = (float)(piece->pass->rate * fix),
		.beta_1 = beta_1,
		.beta_2 = beta_2,
		.epsilon = (float)o->epsilon,
	};

	kernel_adam(piece->weights, piece->gradients, piece->slots[0], piece->slots[1],
		    o->amsgrad ? piece->slots[2] : NULL, &p, piece->count);
}

static void (*const optimizer_applies[OPTIMIZER_KINDS])(const struct optimizer_piece *piece) = {
	[OPTIMIZER_ADAM] = adam_apply,
	[OPTIMIZER_RMSPROP] = rmsprop_apply,
	[OPTIMIZER_SGD] = sgd_apply,
};

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Pieces as equal as lines of memory allow: their borders depend on the parameters alone. */
static enum status range_cut(struct optimizer_range **out, size_t *capacity, size_t *count,
			     struct optimizer_range whole, struct err *err)
{
	size_t pieces = (whole.count + OPTIMIZER_PIECE - 1) / OPTIMIZER_PIECE;
	size_t length = pieces ? model_align((whole.count + pieces - 1) / pieces) : 0;

	if (mem_grow(out, capacity, *count + pieces, sizeof(**out)) != 0)
		return err_nomem(err);
	for (size_t done = 0; done < whole.count; done += length) {
		size_t left = whole.count - done;

		(*out)[(*count)++] =
			(struct optimizer_range){whole.first + done, min(left, length)};
	}
	return ST_OK;
}

enum status optimizer_ranges_new(struct optimizer_range **out, size_t *count,
				 const struct model *model, int first_layer, int layer_count,
				 struct err *err)
{
	struct optimizer_range whole = {0};
	enum status status = ST_OK;
	size_t capacity = 0;

	*out = NULL;
	*count = 0;
	for (int i = 0; i < model->param_count && status == ST_OK; i++) {
		const struct model_param *param = &model->params[i];

		if (!param->trainable || param->layer < first_layer ||
		    param->layer >= first_layer + layer_count)
			continue;
		if (whole.count && whole.first + whole.count == param->offset) {
			whole.count += param->count;
			continue;
		}
		status = range_cut(out, &capacity, count, whole, err);
		whole = (struct optimizer_range){param->offset, param->count};
	}
	if (status == ST_OK)
		status = range_cut(out, &capacity, count, whole, err);
	if (status == ST_OK && *count > INT_MAX)
		status = err_set(err, ST_LIMIT, "more parameters than can be counted");
	if (status != ST_OK || !*count) {
		mem_free(*out);
		*out = NULL;
		*count = 0;
	}
	return status;
}

/* ---- running --------------------------------------------------------------------------------- */

static void optimizer_slice(void *context, unsigned slice)
{
	const struct optimizer_pass *pass = context;
	struct optimizer_range range = pass->ranges[slice];
	struct optimizer_piece piece = {
		.pass = pass,
		.weights = pass->weights + range.first,
		.gradients = pass->gradients + range.first,
		.count = range.count,
	};

	for (size_t i = 0; pass->slots && i < OPTIMIZER_SLOTS; i++)
		if ((int)i < optimizer_slots(pass->optimizer))
			piece.slots[i] = pass->slots + i * pass->stride + range.first;
	optimizer_applies[pass->optimizer->kind](&piece);
}

void optimizer_run(const struct optimizer *optimizer, struct pool *pool,
		   const struct optimizer_range *ranges, size_t count, float *weights,
		   const float *gradients, float *slots, size_t stride, int64_t update)
{
	struct optimizer_pass pass = {
		.optimizer = optimizer,
		.ranges = ranges,
		.weights = weights,
		.gradients = gradients,
		.slots = slots,
		.stride = stride,
		.rate = optimizer_rate(optimizer, update),
		.update = update,
	};
	int64_t floats = 0; /* each weight, gradient and slot read, all but gradients written */

	assert(slots || !optimizer_slots(optimizer));
	for (size_t i = 0; i < count; i++)
		floats += (int64_t)ranges[i].count * (3 + 2 * optimizer_slots(optimizer));
	pool_share(pool, kernel_work_floats(floats), optimizer_slice, &pass, (unsigned)count);
}

/* ---- regularisers ---------------------------------------------------------------------------- */

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
