/*
 * Layers that are random in training and the identity otherwise: Dropout, SpatialDropout1D and 2D;
 * GaussianNoise, GaussianDropout and AlphaDropout. The formulas are in
 * model/layers/layer_dropout.c.
 *
 * Random numbers are those of (seed, layer, step, replica), so they do not depend on threads.
 */
#include <string.h>

#include "common/rng.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

/* ---- Dropout --------------------------------------------------------------------------------- */

/* Inverted, as in TensorFlow. Decisions are numbered over the micro-batch; they are kept, one byte
 * each, for the backward pass. */

_Static_assert(COMPUTE_GRAIN % KERNEL_DROPOUT_GROUP == 0, "slices begin where groups do");

static size_t dropout_kept(const struct layer_pass *pass)
{
	const struct layer_dropout *c = pass->layer->config;
	struct layer_dropout_sizes s = layer_dropout_sizes(pass->layer, pass->batch);

	return c->drop.threshold ? (size_t)(s.outer * s.inner) : 0;
}

struct dropout_work {
	struct rng stream;
	struct layer_dropout_sizes sizes;
	uint32_t threshold;
	float scale;
	uint8_t *mask;
	bool draw; /* draw the mask in the same pass */
	const float *x;
	float *y;
};

static void dropout_draw_body(const void *context, int64_t first, int64_t count)
{
	const struct dropout_work *w = context;

	kernel_dropout_mask(&w->stream, w->threshold, (size_t)first, (size_t)count,
			    w->mask + first);
}

static void dropout_each_body(const void *context, int64_t first, int64_t count)
{
	const struct dropout_work *w = context;

	if (w->draw)
		dropout_draw_body(w, first, count);
	kernel_dropout_apply(w->x + first, w->mask + first, w->scale, w->y + first, (size_t)count);
}

/* Rows of the inner dimensions; all rows of one outer index share their decisions. */
static void dropout_rows_body(const void *context, int64_t first, int64_t rows)
{
	const struct dropout_work *w = context;
	int64_t inner = w->sizes.inner;

	for (int64_t row = first; row < first + rows; row++)
		kernel_dropout_apply(w->x + row * inner, w->mask + row / w->sizes.shared * inner,
				     w->scale, w->y + row * inner, (size_t)inner);
}

/* One decision per outer index. */
static void dropout_items_body(const void *context, int64_t first, int64_t items)
{
	const struct dropout_work *w = context;
	int64_t shared = w->sizes.shared;

	for (int64_t item = first; item < first + items; item++) {
		float factor = w->mask[item] ? w->scale : 0.0f;

		if (w->x != w->y)
			memcpy(w->y + item * shared, w->x + item * shared,
			       (size_t)shared * sizeof(float));
		kernel_scale(w->y + item * shared, factor, (size_t)shared);
	}
}

/* The forward pass draws the mask. */
static void dropout_run(const struct layer_pass *pass, const float *x, float *y, bool forward)
{
	const struct layer_dropout *c = pass->layer->config;
	struct dropout_work w = {
		.sizes = layer_dropout_sizes(pass->layer, pass->batch),
		.threshold = c->drop.threshold,
		.scale = c->drop.scale,
		.mask = pass->kept,
		.draw = forward,
		.x = x,
		.y = y,
	};
	const struct layer_dropout_sizes *s = &w.sizes;
	compute_body body = dropout_each_body;
	int64_t rows = s->outer * s->inner, columns = 1;

	if (forward)
		rng_init(&w.stream, pass->seed, rng_stream(pass->layer->name) ^ c->seed, pass->step,
			 pass->replica);
	if (s->shared > 1) {
		if (forward)
			compute__share(pass->pool, rows, 1, dropout_draw_body, &w);
		body = s->inner == 1 ? dropout_items_body : dropout_rows_body;
		rows = s->inner == 1 ? s->outer : s->outer * s->shared;
		columns = s->inner == 1 ? s->shared : s->inner;
	}
	if (forward)
		compute__share_output(pass, rows, columns, body, &w);
	else
		compute__share(pass->pool, rows, columns, body, &w);
}

static bool dropout_drops(const struct layer_pass *pass)
{
	const struct layer_dropout *c = pass->layer->config;

	return compute__is_random(pass) && c->drop.threshold;
}

static void dropout_forward(const struct layer_pass *pass)
{
	if (dropout_drops(pass))
		dropout_run(pass, pass->inputs[0], pass->output, true);
	else
		compute__identity(pass);
}

static void dropout_backward(const struct layer_pass *pass)
{
	if (dropout_drops(pass))
		dropout_run(pass, pass->grad_output, pass->grad_inputs[0], false);
	else
		compute__identity_grad(pass);
}

const struct compute_ops compute_dropout = {
	.forward = dropout_forward,
	.backward = dropout_backward,
	.kept = dropout_kept,
	.in_place = true,
	.grad_in_place = true,
};

/* ---- noise ----------------------------------------------------------------------------------- */

/* An element's random number is keyed by its index i in the micro-batch: the first or second half
 * of the stream's block i / 2. The element's factor is kept for the backward pass. */

#define NOISE_EACH 2 /* elements per block of random numbers */

_Static_assert(COMPUTE_GRAIN % NOISE_EACH == 0, "slices begin where blocks do");

static size_t noise_kept(const struct layer_pass *pass)
{
	const struct layer_noise *c = pass->layer->config;

	if (pass->layer->ops->kind == LAYER_KIND_gaussian_noise || !(c->rate > 0.0))
		return 0;
	return (size_t)compute__count(pass) * sizeof(float);
}

static bool noise_applies(const struct layer_pass *pass)
{
	const struct layer_noise *c = pass->layer->config;

	return compute__is_random(pass) && c->rate > 0.0;
}

static void noise_forward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const struct layer_noise *c = pass->layer->config;
	const float *x = pass->inputs[0];
	float *y = pass->output, *factors = pass->kept;
	struct rng rng;

	rng_init(&rng, pass->seed, rng_stream(pass->layer->name) ^ c->seed, pass->step,
		 pass->replica);
	rng.counter[0] = (uint32_t)(first / NOISE_EACH);
	for (int64_t i = first; i < first + count; i++) {
		if (pass->layer->ops->kind == LAYER_KIND_gaussian_noise) {
			y[i] = x[i] + c->spread * rng_normal(&rng);
		} else if (pass->layer->ops->kind == LAYER_KIND_gaussian_dropout) {
			factors[i] = 1.0f + c->spread * rng_normal(&rng);
			y[i] = x[i] * factors[i];
		} else {
			const bool keep = rng_u32(&rng) >= c->threshold;

			rng_u32(&rng);
			factors[i] = keep ? c->keep_factor : 0.0f;
			y[i] = keep ? x[i] * c->keep_factor + c->keep_offset : c->drop_offset;
		}
	}
}

static void noise_forward(const struct layer_pass *pass)
{
	if (noise_applies(pass))
		compute__share_output(pass, compute__count(pass), 1, noise_forward_body, pass);
	else
		compute__identity(pass);
}

static void noise_backward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const float *factors = pass->kept;

	for (int64_t i = first; i < first + count; i++)
		pass->grad_inputs[0][i] = pass->grad_output[i] * factors[i];
}

static void noise_backward(const struct layer_pass *pass)
{
	if (!noise_applies(pass) || pass->layer->ops->kind == LAYER_KIND_gaussian_noise)
		compute__identity_grad(pass);
	else
		compute__share(pass->pool, compute__count(pass), 1, noise_backward_body, pass);
}

const struct compute_ops compute_noise = {
	.forward = noise_forward,
	.backward = noise_backward,
	.kept = noise_kept,
	.in_place = true,
	.grad_in_place = true,
};
