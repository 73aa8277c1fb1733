/*
 * Layers that make one output of several inputs of its shape, element by element: Add, Subtract,
 * Multiply, Average, Maximum, Minimum.
 *
 * Multiply also takes a gate: one input of shape (1, ..., 1, C) that scales the channels of the
 * other. Sums over a gate's positions run in an order that depends on shapes only.
 */
#include <assert.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_merge.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_add, layer_average, layer_maximum, layer_minimum,
	layer_multiply, layer_subtract;

#define MERGE_INPUTS 64
#define MERGE_TILE   1024 /* elements that lie in the nearest cache while inputs are gone through */
#define MERGE_NONE   (-1)

struct merge_config {
	int gate; /* the input that is broadcast, or MERGE_NONE */
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool merge_same(const struct model_shape *a, const struct model_shape *b)
{
	bool same = a->ndim == b->ndim;

	for (int i = 0; same && i < a->ndim; i++)
		same = a->dim[i] == b->dim[i];
	return same;
}

/* Is @a (1, ..., 1, C) where @b has C channels? */
static bool merge_is_gate(const struct model_shape *a, const struct model_shape *b)
{
	bool gate = a->ndim == b->ndim && a->ndim > 1;

	for (int i = 0; gate && i < a->ndim; i++)
		gate = a->dim[i] == (i == a->ndim - 1 ? b->dim[i] : 1);
	return gate;
}

static enum status merge_check_shapes(const struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	const struct merge_config *c = layer->config;
	char first_text[192], other_text[192];

	for (int i = 1; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(model, layer, i);

		if (i == c->gate || merge_same(shape, &layer->input))
			continue;
		if (c->gate == 0) {
			layer->output = *shape;
			continue;
		}
		model_shape_text(&layer->input, 0, first_text, sizeof(first_text));
		model_shape_text(shape, 0, other_text, sizeof(other_text));
		return json_fail(config, err,
				 "the inputs of %s must have one shape: the first is %s, but input "
				 "%d is %s",
				 model_layer_class(layer), first_text, i, other_text);
	}
	return ST_OK;
}

static enum status merge_read(struct model *model, struct model_layer *layer,
			      const struct json_at *config, struct err *err)
{
	enum status status =
		layer__begin(model, layer, config, NULL, 0, sizeof(struct merge_config), err);
	struct merge_config *c = layer->config;

	if (status != ST_OK)
		return status;
	layer->reads_output = false; /* unless a ReLU is done with it */
	c->gate = MERGE_NONE;
	if (layer->ops == &layer_multiply && layer->input_count == 2) {
		const struct model_shape *other = model_input_shape(model, layer, 1);

		if (merge_same(&layer->input, other))
			c->gate = MERGE_NONE;
		else if (merge_is_gate(other, &layer->input))
			c->gate = 1;
		else if (merge_is_gate(&layer->input, other))
			c->gate = 0;
	}
	return merge_check_shapes(model, layer, config, err);
}

/* ---- inputs of one shape --------------------------------------------------------------------- */

typedef void (*merge_pair)(const float *a, const float *b, float *y, size_t count);

/* A kind: what is done to the inputs from the first to the last, and how it is undone. */
struct merge_kind {
	const struct layer_ops *ops;
	merge_pair kernel;
	layer_body backward;
	const char *part, *grad_part; /* NULL: gradients are handed on as they are */
};

struct merge_work {
	const struct layer_pass *pass;
	const struct merge_kind *kind;
	int inputs;
};

static size_t merge_tile(int64_t at, int64_t end)
{
	return (size_t)(end - at < MERGE_TILE ? end - at : MERGE_TILE);
}

/* The last of the inputs, with what follows it. */
static void merge_last(const struct merge_work *w, const float *before, int64_t at, size_t count)
{
	const struct layer_pass *pass = w->pass;
	const float *last = pass->inputs[w->inputs - 1] + at;

	if (pass->relu) {
		kernel_merge_add_relu(before, last, pass->output + at, pass->relu_most, count);
		return;
	}
	w->kind->kernel(before, last, pass->output + at, count);
	if (pass->layer->ops == &layer_average)
		kernel_merge_pass(pass->output + at, 1.0f / (float)w->inputs, pass->output + at,
				  false, count);
}

/*
 * In between results are in a tile: an output may lie on the first input, which may be read again.
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

static bool merge_adds(const struct layer_pass *pass, int input)
{
	return pass->add && pass->add[input];
}

/* Add, Subtract, Average: the gradient as it is, or times a number. The first input's may lie on
 * it, and is then left as it is. */
static void merge_linear_body(const void *context, int64_t first, int64_t count)
{
	const struct merge_work *w = context;
	const struct layer_pass *pass = w->pass;
	float *dy = pass->grad_output + first;
	bool average = pass->layer->ops == &layer_average;

	if (pass->relu)
		kernel_bounded_relu_grad(pass->output + first, dy, dy, pass->relu_most,
					 (size_t)count);
	for (int i = 0; i < w->inputs; i++) {
		float factor = average ? 1.0f / (float)w->inputs : 1.0f;

		if (i && pass->layer->ops == &layer_subtract)
			factor = -1.0f;
		if (pass->grad_inputs[i])
			kernel_merge_pass(dy, factor, pass->grad_inputs[i] + first,
					  merge_adds(pass, i), (size_t)count);
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
						   pass->grad_inputs[i] + at, merge_adds(pass, i),
						   n);
		}
	}
}

/* Maximum, Minimum: the gradient goes to the input that was taken. */
static void merge_choice_body(const void *context, int64_t first, int64_t count)
{
	const struct merge_work *w = context;
	const struct layer_pass *pass = w->pass;
	bool minimum = pass->layer->ops == &layer_minimum;
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
							 merge_adds(pass, i), n);
	}
}

/* ---- a gate ---------------------------------------------------------------------------------- */

/* An item has @positions of @channels; a slice's rows are blocks of an item's channels. */
struct merge_gate {
	const struct layer_pass *pass;
	int gate;
	int64_t positions, channels, blocks;
};

static struct merge_gate merge_gate(const struct layer_pass *pass)
{
	const struct model_shape *shape = &pass->layer->output;
	const struct merge_config *c = pass->layer->config;
	int64_t channels = layer__last_dim(shape);

	return (struct merge_gate){
		.pass = pass,
		.gate = c->gate,
		.positions = model_shape_count(shape) / channels,
		.channels = channels,
		.blocks = (channels + KERNEL_MERGE_COLUMNS - 1) / KERNEL_MERGE_COLUMNS,
	};
}

/* Where block @row begins in the image and in the gate; returns its columns. */
static int64_t merge_gate_block(const struct merge_gate *g, int64_t row, int64_t *image,
				int64_t *gate)
{
	int64_t item = row / g->blocks, column = row % g->blocks * KERNEL_MERGE_COLUMNS;
	int64_t left = g->channels - column;

	*image = item * g->positions * g->channels + column;
	*gate = item * g->channels + column;
	return left < KERNEL_MERGE_COLUMNS ? left : KERNEL_MERGE_COLUMNS;
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
			kernel_watch_put(pass->watch,
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
					       dx[g->gate] + gate, merge_adds(pass, g->gate),
					       g->positions, columns, g->channels);
		if (dx[!g->gate])
			kernel_merge_gate(dy, pass->inputs[g->gate] + gate, dx[!g->gate] + image,
					  merge_adds(pass, !g->gate), g->positions, columns,
					  g->channels);
	}
}

static void merge_gate_share(const struct merge_gate *g, layer_body body)
{
	int64_t columns = g->channels < KERNEL_MERGE_COLUMNS ? g->channels : KERNEL_MERGE_COLUMNS;

	layer__share(g->pass->pool, g->pass->batch * g->blocks, g->positions * columns, body, g);
}

/* ---- running --------------------------------------------------------------------------------- */

static const struct merge_kind merge_kinds[] = {
	{&layer_add, kernel_merge_add, merge_linear_body, "AddV2", NULL},
	{&layer_average, kernel_merge_add, merge_linear_body, "TrueDiv", "TrueDiv/Grad"},
	{&layer_maximum, kernel_merge_maximum, merge_choice_body, "Maximum", "Maximum/Grad"},
	{&layer_minimum, kernel_merge_minimum, merge_choice_body, "Minimum", "Minimum/Grad"},
	{&layer_multiply, kernel_merge_multiply, merge_multiply_body, "Mul", "Mul/Grad"},
	{&layer_subtract, kernel_merge_subtract, merge_linear_body, "Sub", "Neg"},
};

static const struct merge_kind *merge_kind(const struct model_layer *layer)
{
	size_t i = 0;

	while (merge_kinds[i].ops != layer->ops)
		i++;
	assert(i < ARRAY_LEN(merge_kinds));
	return &merge_kinds[i];
}

static void merge_forward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct merge_config *c = layer->config;
	const struct merge_work work = {pass, merge_kind(layer), layer->input_count};
	const struct merge_gate gate = merge_gate(pass);

	if (c->gate == MERGE_NONE) {
		layer__share_output(pass, pass->batch * model_shape_count(&layer->output), 1,
				    merge_forward_body, &work);
		return;
	}
	merge_gate_share(&gate, merge_gate_forward_body);
	if (pass->watch)
		pass->watch->known = true;
}

static void merge_backward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct merge_config *c = layer->config;
	const struct merge_work work = {pass, merge_kind(layer), layer->input_count};
	const struct merge_gate gate = merge_gate(pass);

	if (c->gate != MERGE_NONE)
		merge_gate_share(&gate, merge_gate_backward_body);
	else
		layer__share(pass->pool, pass->batch * model_shape_count(&layer->output), 1,
			     work.kind->backward, &work);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t merge_work_each(const struct model_layer *layer)
{
	return layer->input_count - 1 + (layer->ops == &layer_average);
}

static int64_t merge_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * merge_work_each(layer);
}

static void merge_lower_map(struct layer_lowering *lowering, const char *part, int64_t operands,
			    enum ipu_function function, int64_t times, unsigned reads,
			    unsigned writes)
{
	const struct merge_config *c = lowering->layer->config;
	struct ipu_elements each = {.count = layer__lower_count(lowering), .operands = operands};
	struct layer_op op;

	each.times[function] = (uint8_t)(times < UINT8_MAX ? times : UINT8_MAX);
	if (c->gate != MERGE_NONE)
		each.broadcast = lowering->batch * layer__last_dim(&lowering->layer->output);
	op = layer__map(&each, reads, writes);
	layer__lower(lowering, part, &op);
}

/* The gate's gradient is summed over the positions. */
static void merge_lower_gate(struct layer_lowering *lowering, int gate)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t outputs = lowering->batch * layer__last_dim(&lowering->layer->output);
	struct layer_op op = layer__map(
		&(struct ipu_elements){.count = count, .operands = 2, .times = {[IPU_FN_ADD] = 1}},
		LAYER_INPUT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);

	if (layer__wants(lowering, gate)) {
		op.makes = count;
		layer__lower(lowering, "Mul/Grad/Gate", &op);
		op = layer__reduce(count, outputs, LAYER_BETWEEN, LAYER_GRAD_INPUT_AT(gate));
		layer__lower(lowering, "Mul/Grad/Sum", &op);
	}
	if (layer__wants(lowering, !gate))
		merge_lower_map(lowering, "Mul/Grad", 1, IPU_FN_ADD, 1,
				LAYER_INPUT | LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT_AT(!gate));
}

static int64_t merge_wanted(const struct layer_lowering *lowering)
{
	int64_t wanted = 0;

	for (int i = 0; i < lowering->layer->input_count; i++)
		wanted += layer__wants(lowering, i);
	return wanted;
}

/* Sums hand their gradient on as it is, a mean the scaled one. */
static void merge_lower_backward(struct layer_lowering *lowering, const struct merge_kind *kind)
{
	const struct model_layer *layer = lowering->layer;
	const struct merge_config *c = layer->config;
	const int64_t wanted = merge_wanted(lowering), inputs = layer->input_count;

	if (!wanted)
		return;
	if (c->gate != MERGE_NONE)
		merge_lower_gate(lowering, c->gate);
	else if (layer->ops == &layer_average)
		merge_lower_map(lowering, kind->grad_part, 1, IPU_FN_ADD, 1, LAYER_GRAD_OUTPUT,
				LAYER_GRAD_OUTPUT);
	else if (layer->ops == &layer_subtract && layer__wants(lowering, 1))
		merge_lower_map(lowering, kind->grad_part, 1, IPU_FN_ADD, 1, LAYER_GRAD_OUTPUT,
				LAYER_GRAD_INPUT_AT(1));
	else if (kind->backward == merge_choice_body)
		merge_lower_map(lowering, kind->grad_part, inputs + 1, IPU_FN_SELECT, inputs,
				LAYER_INPUT | LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT);
	else if (layer->ops == &layer_multiply)
		merge_lower_map(lowering, kind->grad_part, inputs + 1, IPU_FN_ADD,
				wanted * (inputs - 1), LAYER_INPUT | LAYER_GRAD_OUTPUT,
				LAYER_GRAD_INPUT);
}

static void merge_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const struct merge_config *c = layer->config;
	const struct merge_kind *kind = merge_kind(layer);

	if (lowering->phase == 'F')
		merge_lower_map(lowering, kind->part,
				c->gate == MERGE_NONE ? layer->input_count : 1, IPU_FN_ADD,
				merge_work_each(layer), LAYER_INPUT, LAYER_OUTPUT);
	else
		merge_lower_backward(lowering, kind);
}

/* What all of them have; what each reads and where it may write stands in its row. */
#define MERGE_OPS(name, inputs)                                                                    \
	.class_name = (name), .read = merge_read, .forward = merge_forward,                        \
	.backward = merge_backward, .flops = merge_flops, .lower = merge_lower, .least_inputs = 2, \
	.most_inputs = (inputs), .adds = true

const struct layer_ops layer_add = {
	MERGE_OPS("Add", MERGE_INPUTS),
	.reads_output = true, /* where a ReLU is done with it */
	.in_place = true,
	.grad_in_place = true,
	.fuses_relu = true,
};

const struct layer_ops layer_average = {MERGE_OPS("Average", MERGE_INPUTS), .in_place = true};

const struct layer_ops layer_maximum = {MERGE_OPS("Maximum", MERGE_INPUTS), .reads_inputs = true};

const struct layer_ops layer_minimum = {MERGE_OPS("Minimum", MERGE_INPUTS), .reads_inputs = true};

const struct layer_ops layer_multiply = {MERGE_OPS("Multiply", MERGE_INPUTS), .reads_inputs = true};

const struct layer_ops layer_subtract = {
	MERGE_OPS("Subtract", 2),
	.in_place = true,
	.grad_in_place = true,
};
