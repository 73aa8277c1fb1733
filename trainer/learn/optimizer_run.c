/*
 * Running optimizers and regularizers. No state but a table of constants: the caller owns the
 * slots. Slices of a parameter depend on its length only.
 */
#include "trainer/learn/optimizer_run.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>

#include "common/elementary.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_optimizer.h"
#include "trainer/kernels/kernel_work.h"

#define NADAM_WARM        1024  /* updates after which Nadam's momentum no longer changes */
#define OPTIMIZER_BLOCK   1024  /* weights updated at a time: they stay in the cache */
#define REGULARIZER_SLICE 65536 /* floats */
#define REGULARIZER_SUMS  64    /* slices per pool job, whose sums are stored */

/* ---- optimizers ------------------------------------------------------------------------------ */

struct optimizer_pass {
	const struct optimizer *optimizer;
	struct optimizer_range *ranges;
	size_t count;
	float *weights;
	const float *gradients;
	float *slots;
	size_t stride;
	double rate;
	int64_t update;
	double norm;           /* of all gradients */
	float decay;           /* times the weight, subtracted from it before the update */
	double mean_1, mean_2; /* 1 - beta^t: bias correction of means that start at 0 */
	double product;        /* Nadam's U_t */
};

/* What one call works on: at most OPTIMIZER_BLOCK weights of a range, or a whole range. */
struct optimizer_piece {
	const struct optimizer_pass *pass;
	struct optimizer_range *range;
	float *weights;
	const float *gradients; /* clipped */
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

static void adagrad_apply(const struct optimizer_piece *piece)
{
	kernel_adagrad(piece->weights, piece->gradients, piece->slots[0], (float)piece->pass->rate,
		       (float)piece->pass->optimizer->epsilon, piece->count);
}

static void lion_apply(const struct optimizer_piece *piece)
{
	const struct optimizer *o = piece->pass->optimizer;

	kernel_lion(piece->weights, piece->gradients, piece->slots[0], (float)piece->pass->rate,
		    (float)o->beta_1, (float)o->beta_2, piece->count);
}

/* The betas are rounded to float32 before use, as everywhere. */
static void means_prepare(struct optimizer_pass *pass)
{
	const struct optimizer *o = pass->optimizer;
	const double t = (double)pass->update + 1.0;

	pass->mean_1 = 1.0 - elementary_pow((double)(float)o->beta_1, t);
	pass->mean_2 = 1.0 - elementary_pow((double)(float)o->beta_2, t);
}

static void adam_apply(const struct optimizer_piece *piece)
{
	const struct optimizer_pass *pass = piece->pass;
	const struct optimizer *o = pass->optimizer;
	const struct kernel_adam p = {
		.rate = (float)(pass->rate * (sqrt(pass->mean_2) / pass->mean_1)),
		.beta_1 = (float)o->beta_1,
		.beta_2 = (float)o->beta_2,
		.epsilon = (float)o->epsilon,
	};

	kernel_adam(piece->weights, piece->gradients, piece->slots[0], piece->slots[1],
		    o->amsgrad ? piece->slots[2] : NULL, &p, piece->count);
}

/* 1 - 0.96^t / 2, by t: from NADAM_WARM on it is 1. */
static double nadam_warm[NADAM_WARM];

static void nadam_warm_init(void)
{
	for (int t = 0; t < NADAM_WARM; t++)
		nadam_warm[t] = 1.0 - 0.5 * elementary_pow(0.96, (double)t);
}

/* u_t of Nadam. */
static double nadam_momentum(const struct optimizer *o, int64_t t)
{
	return (double)(float)o->beta_1 * (t < NADAM_WARM ? nadam_warm[t] : 1.0);
}

/* Stop at 1e-20: such a product is negligible beside 1, so further factors do not matter. */
static void nadam_prepare(struct optimizer_pass *pass)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const int64_t now = pass->update + 1, warm = min(now, NADAM_WARM - 1);

	pthread_once(&once, nadam_warm_init);
	means_prepare(pass);
	pass->product = 1.0;
	for (int64_t t = 1; t <= warm && pass->product > 1e-20; t++)
		pass->product *= nadam_momentum(pass->optimizer, t);
	if (now > warm && pass->product > 1e-20)
		pass->product *=
			elementary_pow(nadam_momentum(pass->optimizer, now), (double)(now - warm));
}

static void nadam_apply(const struct optimizer_piece *piece)
{
	const struct optimizer_pass *pass = piece->pass;
	const struct optimizer *o = pass->optimizer;
	const int64_t t = pass->update + 1;
	const double now = nadam_momentum(o, t), next = nadam_momentum(o, t + 1);
	const struct kernel_moment_step p = {
		.from_mean = (float)(next / (1.0 - pass->product * next)),
		.from_gradient = (float)((1.0 - now) / (1.0 - pass->product)),
		.from_square = (float)(1.0 / pass->mean_2),
		.epsilon = (float)o->epsilon,
	};
	float steps[OPTIMIZER_BLOCK];

	kernel_moments(piece->gradients, piece->slots[0], piece->slots[1], (float)o->beta_1,
		       (float)o->beta_2, piece->count);
	kernel_moment_step(steps, piece->weights, piece->gradients, piece->slots[0],
			   piece->slots[1], &p, piece->count);
	kernel_sgd(piece->weights, steps, (float)pass->rate, piece->count);
}

/* ---- Lamb: two passes, since its step needs norms over the whole parameter ------------------- */

static void lamb_step(const struct optimizer_piece *piece, float *steps)
{
	const struct optimizer *o = piece->pass->optimizer;
	const struct kernel_moment_step p = {
		.from_mean = (float)(1.0 / piece->pass->mean_1),
		.from_square = (float)(1.0 / piece->pass->mean_2),
		.epsilon = (float)o->epsilon,
		.decay = (float)o->weight_decay_rate,
	};

	kernel_moment_step(steps, piece->weights, piece->gradients, piece->slots[0],
			   piece->slots[1], &p, piece->count);
}

static void lamb_measure(const struct optimizer_piece *piece)
{
	const struct optimizer *o = piece->pass->optimizer;
	float steps[OPTIMIZER_BLOCK];

	kernel_moments(piece->gradients, piece->slots[0], piece->slots[1], (float)o->beta_1,
		       (float)o->beta_2, piece->count);
	lamb_step(piece, steps);
	piece->range->squares[OPTIMIZER_WEIGHT] += kernel_square_sum(piece->weights, piece->count);
	piece->range->squares[OPTIMIZER_STEP] += kernel_square_sum(steps, piece->count);
}

static void lamb_apply(const struct optimizer_piece *piece)
{
	const double weights = sqrt(piece->range->squares[OPTIMIZER_WEIGHT]);
	const double step = sqrt(piece->range->squares[OPTIMIZER_STEP]);
	const double ratio = weights == 0.0 || step == 0.0 ? 1.0 : weights / step;
	float steps[OPTIMIZER_BLOCK];

	lamb_step(piece, steps);
	kernel_sgd(piece->weights, steps, (float)(piece->pass->rate * ratio), piece->count);
}

static const struct optimizer_work {
	void (*apply)(const struct optimizer_piece *piece);
	bool by_block; /* apply handles at most OPTIMIZER_BLOCK weights */
	void (*prepare)(struct optimizer_pass *pass); /* or NULL */
	void (*measure)(
		const struct optimizer_piece *piece); /* on all pieces before any apply; or NULL */
} optimizer_works[OPTIMIZER_KINDS] = {
	[OPTIMIZER_ADAGRAD] = {.apply = adagrad_apply},
	[OPTIMIZER_ADAM] = {adam_apply, .prepare = means_prepare},
	[OPTIMIZER_ADAMW] = {adam_apply, .prepare = means_prepare},
	[OPTIMIZER_LAMB] = {lamb_apply, true, means_prepare, lamb_measure},
	[OPTIMIZER_LION] = {.apply = lion_apply},
	[OPTIMIZER_NADAM] = {nadam_apply, true, .prepare = nadam_prepare},
	[OPTIMIZER_RMSPROP] = {.apply = rmsprop_apply},
	[OPTIMIZER_SGD] = {.apply = sgd_apply},
};

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Cut @whole into pieces as equal as cache lines allow, by the parameters' sizes only. Does
 * nothing after a failure. */
static void range_cut(struct optimizer_range **out, size_t *capacity, size_t *count,
		      struct optimizer_range whole, struct err *err)
{
	size_t pieces = (whole.count + OPTIMIZER_PIECE - 1) / OPTIMIZER_PIECE;
	size_t length = pieces ? model_align((whole.count + pieces - 1) / pieces) : 0;

	if (!err_stuck(err) && mem_grow(out, capacity, *count + pieces, sizeof(**out)) != 0)
		err_nomem(err);
	for (size_t done = 0; done < whole.count && !err_stuck(err); done += length) {
		size_t left = whole.count - done;

		(*out)[(*count)++] = (struct optimizer_range){.first = whole.first + done,
							      .count = min(left, length),
							      .kept = whole.first + done,
							      .param = whole.param};
	}
}

enum status optimizer_ranges_new(struct optimizer_range **out, size_t *count,
				 const struct optimizer *optimizer, const struct model *model,
				 int first_layer, int layer_count, struct err *err)
{
	const bool joins = !optimizer_needs_norms(optimizer);
	struct optimizer_range whole = {0};
	size_t capacity = 0;
	struct err own;

	err = err_start(err, &own);
	*out = NULL;
	*count = 0;
	for (int i = 0; i < model->param_count; i++) {
		const struct model_param *param = &model->params[i];

		if (!param->trainable || param->layer < first_layer ||
		    param->layer >= first_layer + layer_count)
			continue;
		if (joins && whole.count && whole.first + whole.count == param->offset) {
			whole.count += param->count;
			continue;
		}
		range_cut(out, &capacity, count, whole, err);
		whole = (struct optimizer_range){param->offset, param->count, .param = i};
	}
	range_cut(out, &capacity, count, whole, err);
	if (*count > INT_MAX && !err_stuck(err))
		err_set(err, ST_LIMIT, "more parameters than can be counted");
	if (err_stuck(err) || !*count) {
		mem_free(*out);
		*out = NULL;
		*count = 0;
	}
	return err->status;
}

/* ---- running --------------------------------------------------------------------------------- */

void optimizer_start(const struct optimizer *optimizer, float *slots, size_t stride)
{
	const float start = optimizer_slot_start(optimizer);

	for (size_t i = 0; i < stride * (size_t)optimizer_slots(optimizer); i++)
		slots[i] = start;
}

/* Store each parameter's sum over its ranges, which are adjacent, in all of them. */
static void sum_by_param(struct optimizer_range *ranges, size_t count, enum optimizer_sum which)
{
	for (size_t first = 0, end; first < count; first = end) {
		double sum = 0.0;

		for (end = first; end < count && ranges[end].param == ranges[first].param; end++)
			sum += ranges[end].squares[which];
		for (size_t i = first; i < end; i++)
			ranges[i].squares[which] = sum;
	}
}

static void square_slice(void *context, unsigned slice)
{
	const struct optimizer_pass *pass = context;
	struct optimizer_range *range = &pass->ranges[slice];

	range->squares[OPTIMIZER_GRADIENT] =
		kernel_square_sum(pass->gradients + range->first, range->count);
}

/* A norm that is not finite makes all gradients NaN, as in TensorFlow. */
static float clip_scale(double limit, double norm)
{
	if (!isfinite(norm))
		return NAN;
	return norm > limit ? (float)(limit / norm) : 1.0f;
}

/* Call @work on a range, as a whole or in blocks, with its gradients clipped. */
static void run_range(const struct optimizer_pass *pass, struct optimizer_range *range,
		      void (*work)(const struct optimizer_piece *piece))
{
	const struct optimizer *o = pass->optimizer;
	const bool clips = o->clipvalue > 0.0 || o->clipnorm > 0.0 || o->global_clipnorm > 0.0;
	const size_t step =
		clips || optimizer_works[o->kind].by_block ? OPTIMIZER_BLOCK : OPTIMIZER_PIECE;
	const float value = o->clipvalue > 0.0 ? (float)o->clipvalue : INFINITY;
	float clipped[OPTIMIZER_BLOCK], scale = 1.0f;

	if (o->global_clipnorm > 0.0)
		scale = clip_scale(o->global_clipnorm, pass->norm);
	else if (o->clipnorm > 0.0)
		scale = clip_scale(o->clipnorm, sqrt(range->squares[OPTIMIZER_GRADIENT]));
	for (size_t done = 0; done < range->count; done += step) {
		const size_t at = range->first + done;
		struct optimizer_piece piece = {
			.pass = pass,
			.range = range,
			.weights = pass->weights + at,
			.gradients = pass->gradients + at,
			.count = min(range->count - done, step),
		};

		for (size_t i = 0; pass->slots && i < OPTIMIZER_SLOTS; i++)
			if ((int)i < optimizer_slots(o))
				piece.slots[i] =
					pass->slots + i * pass->stride + range->kept + done;
		if (clips) {
			kernel_clip(clipped, piece.gradients, scale, value, piece.count);
			piece.gradients = clipped;
		}
		if (pass->decay > 0.0f)
			kernel_decay(piece.weights, pass->decay, piece.count);
		work(&piece);
	}
}

static void measure_slice(void *context, unsigned slice)
{
	const struct optimizer_pass *pass = context;
	struct optimizer_range *range = &pass->ranges[slice];

	range->squares[OPTIMIZER_WEIGHT] = range->squares[OPTIMIZER_STEP] = 0.0;
	run_range(pass, range, optimizer_works[pass->optimizer->kind].measure);
}

static void apply_slice(void *context, unsigned slice)
{
	const struct optimizer_pass *pass = context;

	run_range(pass, &pass->ranges[slice], optimizer_works[pass->optimizer->kind].apply);
}

/* @floats: the floats read and written per weight. */
static void run_pass(struct optimizer_pass *pass, struct pool *pool,
		     void (*slice)(void *context, unsigned slice), int floats)
{
	int64_t all = 0;

	for (size_t i = 0; i < pass->count; i++)
		all += (int64_t)pass->ranges[i].count * floats;
	pool_share(pool, kernel_work_floats(all), slice, pass, (unsigned)pass->count);
}

void optimizer_squares(struct pool *pool, struct optimizer_range *ranges, size_t count,
		       const float *gradients, double *squares)
{
	struct optimizer_pass pass = {.ranges = ranges, .count = count, .gradients = gradients};

	run_pass(&pass, pool, square_slice, 1);
	sum_by_param(ranges, count, OPTIMIZER_GRADIENT);
	for (size_t i = 0; i < count; i++)
		squares[ranges[i].param] = ranges[i].squares[OPTIMIZER_GRADIENT];
}

void optimizer_run(const struct optimizer *optimizer, struct pool *pool,
		   struct optimizer_range *ranges, size_t count, float *weights,
		   const float *gradients, float *slots, size_t stride, int64_t update, double norm)
{
	const struct optimizer_work *work = &optimizer_works[optimizer->kind];
	const int floats = 3 + 2 * optimizer_slots(optimizer);
	const double rate = optimizer_rate(optimizer, update);
	struct optimizer_pass pass = {
		.optimizer = optimizer,
		.ranges = ranges,
		.count = count,
		.weights = weights,
		.gradients = gradients,
		.slots = slots,
		.stride = stride,
		.rate = rate,
		.update = update,
		.norm = norm,
		.decay = (float)(rate * optimizer->weight_decay),
	};

	assert(slots || !optimizer_slots(optimizer));
	if (work->prepare)
		work->prepare(&pass);
	if (optimizer->clipnorm > 0.0) {
		run_pass(&pass, pool, square_slice, 1);
		sum_by_param(ranges, count, OPTIMIZER_GRADIENT);
	}
	if (work->measure) {
		run_pass(&pass, pool, measure_slice, floats);
		sum_by_param(ranges, count, OPTIMIZER_WEIGHT);
		sum_by_param(ranges, count, OPTIMIZER_STEP);
		pass.decay = 0.0f;
	}
	run_pass(&pass, pool, apply_slice, floats);
}

/* ---- regularizers ---------------------------------------------------------------------------- */

struct regularizer_work {
	const float *weights;
	float *gradients;
	size_t count;
	float l1, l2;
	double sums[REGULARIZER_SUMS];
};

static bool regularizer_applies(const struct model_param *param, int first_layer, int layer_count)
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
		if (regularizer_applies(&model->params[i], first_layer, layer_count))
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

/* Add the slices' sums from first to last, REGULARIZER_SUMS at a time. */
static double regularizer_param(struct pool *pool, const struct model_param *param,
				const float *weights)
{
	const size_t step = (size_t)REGULARIZER_SUMS * REGULARIZER_SLICE;
	double penalty = 0.0;

	for (size_t done = 0; done < param->count; done += step) {
		struct regularizer_work work = {
			.weights = weights + param->offset + done,
			.count = min(param->count - done, step),
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
		if (regularizer_applies(&model->params[i], first_layer, layer_count))
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
			  int layer_count, const float *weights, float *gradients,
			  double loss_scale)
{
	for (int i = 0; i < model->param_count; i++) {
		const struct model_param *param = &model->params[i];
		struct regularizer_work work = {
			.weights = weights + param->offset,
			.gradients = gradients + param->offset,
			.count = param->count,
			.l1 = param->l1 * (float)loss_scale,
			.l2 = param->l2 * (float)loss_scale,
		};

		if (param->trainable && regularizer_applies(param, first_layer, layer_count))
			pool_share(pool, kernel_work_floats(3 * (int64_t)param->count),
				   regularizer_gradient_slice, &work,
				   regularizer_slices(param->count));
	}
}
