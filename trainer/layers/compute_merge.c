/*
 * Layers that merge several inputs of one shape element by element: Add, Subtract, Multiply,
 * Average, Maximum, Minimum.
 *
 * Multiply also accepts a gate: one input of shape (1, ..., 1, C) that scales the channels of the
 * other. Sums over a gate's positions run in an order that depends on shapes only.
 */
#include "common/minmax.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

#define MERGE_TILE 1024 /* elements that stay in the L1 cache while the inputs are read in turn */

/* ---- inputs of one shape --------------------------------------------------------------------- */

typedef void (*merge_pair)(const float *a, const float *b, float *y, size_t count);

/* A kind: the operation, applied to the inputs from first to last, and its gradient. */
struct merge_kind {
	merge_pair kernel;
	compute_body backward;
};

struct merge_work {
	const struct layer_pass *pass;
	const struct merge_kind *kind;
	int inputs;
};

static size_t merge_tile(int64_t at, int64_t end)
{
	return (size_t)min(end - at, MERGE_TILE);
}

/* Merge the last input, and apply what follows (a ReLU, the mean's factor). */
static void merge_last(const struct merge_work *w, const float *merged, int64_t at, size_t count)
{
	const struct layer_pass *pass = w->pass;
	const float *last = pass->inputs[w->inputs - 1] + at;

	if (pass->relu) {
		kernel_merge_add_relu(merged, last, pass->output + at, pass->relu_most, count);
		return;
	}
	w->kind->kernel(merged, last, pass->output + at, count);
	if (pass->layer->ops->kind == LAYER_KIND_average)
		kernel_merge_pass(pass->output + at, 1.0f / (float)w->inputs, pass->output + at,
				  false, count);
}

/*
 * Intermediate results are in a tile: the output may be the first input, which may be read again.
 */
static void merge_forward_body(const void *context, int64_t first, int64_t count)
{
	const struct merge_work *w = context;
	const float *const *inputs = w->pass->inputs;
	float tile[MERGE_TILE];

	if (w->inputs == 2) {
		merge_last(w, inputs[0] + first, first, (size_t)count);
		return;
	}
	for (int64_t at = first; at < first + count; at += MERGE_TILE) {
		size_t n = merge_tile(at, first + count);

		w->kind->kernel(inputs[0] + at, inputs[1] + at, tile, n);
		for (int i = 2; i < w->inputs - 1; i++)
			w->kind->kernel(tile, inputs[i] + at, tile, n);
		merge_last(w, tile, at, n);
	}
}

/* Add, Subtract, Average: the gradient, or a multiple of it. The first input's gradient may be the
 * output's buffer, which then stays as it is. */
static void merge_linear_body(const void *context, int64_t first, int64_t count)
{
	const struct merge_work *w = context;
	const struct layer_pass *pass = w->pass;
	float *dy = pass->grad_output + first;
	bool average = pass->layer->ops->kind == LAYER_KIND_average;

	if (pass->relu)
		kernel_bounded_relu_grad(pass->output + first, dy, dy, pass->relu_most,
					 (size_t)count);
	for (int i = 0; i < w->inputs; i++) {
		float factor = average ? 1.0f / (float)w->inputs : 1.0f;

		if (i && pass->layer->ops->kind == LAYER_KIND_subtract)
			factor = -1.0f;
		if (pass->grad_inputs[i])
			kernel_merge_pass(dy, factor, pass->grad_inputs[i] + first,
					  compute__adds(pass, i), (size_t)count);
	}
}

/* Multiply: the gradient times all the other inputs. */
static void merge_multiply_body(const void *context, int64_t first, int64_t count)
{
	const struct merge_work *w = context;
	const struct layer_pass *pass = w->pass;
	float tile[MERGE_TILE];

	for (int64_t at = first; at < first + count; at += MERGE_TILE) {
		size_t n = merge_tile(at, first + count);

		for (int i = 0; i < w->inputs; i++) {
			int last = i == w->inputs - 1 ? i - 1 : w->inputs - 1;
			const float *dy = pass->grad_output + at;

			if (!pass->grad_inputs[i])
				continue;
			for (int j = 0; j < last; j++) {
				if (j == i)
					continue;
				kernel_merge_multiply(dy, pass->inputs[j] + at, tile, n);
				dy = tile;
			}
			kernel_merge_multiply_grad(dy, pass->inputs[last] + at,
						   pass->grad_inputs[i] + at,
						   compute__adds(pass, i), n);
		}
	}
}

/* Maximum, Minimum: the gradient goes to the input that was selected. */
static void merge_choice_body(const void *context, int64_t first, int64_t count)
{
	const struct merge_work *w = context;
	const struct layer_pass *pass = w->pass;
	bool minimum = pass->layer->ops->kind == LAYER_KIND_minimum;
	int32_t choice[MERGE_TILE];
	float best[MERGE_TILE];

	for (int64_t at = first; at < first + count; at += MERGE_TILE) {
		size_t n = merge_tile(at, first + count);

		for (size_t e = 0; e < n; e++) {
			best[e] = pass->inputs[0][at + (int64_t)e];
			choice[e] = 0;
		}
		for (int i = 1; i < w->inputs; i++)
			kernel_merge_choose(pass->inputs[i] + at, i, minimum, best, choice, n);
		for (int i = 0; i < w->inputs; i++)
			if (pass->grad_inputs[i])
				kernel_merge_choice_grad(pass->grad_output + at, choice, i,
							 pass->grad_inputs[i] + at,
							 compute__adds(pass, i), n);
	}
}

/* ---- a gate ---------------------------------------------------------------------------------- */

/* An item has @positions x @channels; the rows of a slice are blocks of an item's channels. */
struct merge_gate {
	const struct layer_pass *pass;
	int gate;
	int64_t positions, channels, blocks;
};

static struct merge_gate merge_gate(const struct layer_pass *pass)
{
	const struct model_shape *shape = &pass->layer->output;
	const struct layer_merge *c = pass->layer->config;
	int64_t channels = layer_last_dim(shape);

	return (struct merge_gate){
		.pass = pass,
		.gate = c->gate,
		.positions = model_shape_count(shape) / channels,
		.channels = channels,
		.blocks = (channels + KERNEL_MERGE_COLUMNS - 1) / KERNEL_MERGE_COLUMNS,
	};
}

/* Set the offsets of block @row in the image and in the gate; return its columns. */
static int64_t merge_gate_block(const struct merge_gate *g, int64_t row, int64_t *image,
				int64_t *gate)
{
	int64_t item = row / g->blocks, column = row % g->blocks * KERNEL_MERGE_COLUMNS;
	int64_t left = g->channels - column;

	*image = item * g->positions * g->channels + column;
	*gate = item * g->channels + column;
	return min(left, KERNEL_MERGE_COLUMNS);
}

static void merge_gate_forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct merge_gate *g = context;
	const struct layer_pass *pass = g->pass;

	for (int64_t row = first; row < first + rows; row++) {
		int64_t image, gate, columns = merge_gate_block(g, row, &image, &gate);

		kernel_merge_gate(pass->inputs[!g->gate] + image, pass->inputs[g->gate] + gate,
				  pass->output + image, false, g->positions, columns, g->channels);
		if (pass->watch)
			kernel_watch_update(pass->watch,
					    kernel_abs_max_rows(pass->output + image, g->channels,
								g->positions, columns));
	}
}

static void merge_gate_backward_body(const void *context, int64_t first, int64_t rows)
{
	const struct merge_gate *g = context;
	const struct layer_pass *pass = g->pass;
	float *const *dx = pass->grad_inputs;

	for (int64_t row = first; row < first + rows; row++) {
		int64_t image, gate, columns = merge_gate_block(g, row, &image, &gate);
		const float *dy = pass->grad_output + image;

		if (dx[g->gate])
			kernel_merge_gate_grad(pass->inputs[!g->gate] + image, dy,
					       dx[g->gate] + gate, compute__adds(pass, g->gate),
					       g->positions, columns, g->channels);
		if (dx[!g->gate])
			kernel_merge_gate(dy, pass->inputs[g->gate] + gate, dx[!g->gate] + image,
					  compute__adds(pass, !g->gate), g->positions, columns,
					  g->channels);
	}
}

static void merge_gate_share(const struct merge_gate *g, compute_body body)
{
	int64_t columns = min(g->channels, KERNEL_MERGE_COLUMNS);

	compute__share(g->pass->pool, g->pass->batch * g->blocks, g->positions * columns, body, g);
}

/* ---- running --------------------------------------------------------------------------------- */

static const struct merge_kind merge_kinds[LAYER_KINDS] = {
	[LAYER_KIND_add] = {kernel_merge_add, merge_linear_body},
	[LAYER_KIND_average] = {kernel_merge_add, merge_linear_body},
	[LAYER_KIND_maximum] = {kernel_merge_maximum, merge_choice_body},
	[LAYER_KIND_minimum] = {kernel_merge_minimum, merge_choice_body},
	[LAYER_KIND_multiply] = {kernel_merge_multiply, merge_multiply_body},
	[LAYER_KIND_subtract] = {kernel_merge_subtract, merge_linear_body},
};

static void merge_forward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct layer_merge *c = layer->config;
	const struct merge_work work = {pass, &merge_kinds[layer->ops->kind], layer->input_count};
	const struct merge_gate gate = merge_gate(pass);

	if (c->gate == LAYER_NO_GATE) {
		compute__share_output(pass, compute__count(pass), 1, merge_forward_body, &work);
		return;
	}
	merge_gate_share(&gate, merge_gate_forward_body);
	if (pass->watch)
		pass->watch->known = true;
}

static void merge_backward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct layer_merge *c = layer->config;
	const struct merge_work work = {pass, &merge_kinds[layer->ops->kind], layer->input_count};
	const struct merge_gate gate = merge_gate(pass);

	if (c->gate != LAYER_NO_GATE)
		merge_gate_share(&gate, merge_gate_backward_body);
	else
		compute__share(pass->pool, compute__count(pass), 1, work.kind->backward, &work);
}

/* Common to all rows; each row says where its passes may write. */
#define MERGE_PASSES .forward = merge_forward, .backward = merge_backward, .adds = true

const struct compute_ops compute_add = {
	MERGE_PASSES,
	.in_place = true,
	.grad_in_place = true,
	.fuses_relu = true,
};

const struct compute_ops compute_average = {MERGE_PASSES, .in_place = true};

/* Maximum, Minimum, Multiply */
const struct compute_ops compute_merge = {MERGE_PASSES};

const struct compute_ops compute_subtract = {
	MERGE_PASSES,
	.in_place = true,
	.grad_in_place = true,
};
