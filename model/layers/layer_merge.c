/*
 * Layers that combine several inputs of one shape element by element: Add, Subtract, Multiply,
 * Average, Maximum, Minimum.
 *
 * Multiply also accepts a gate: one input of shape (1, ..., 1, C) that scales the channels of the
 * other. Sums over a gate's positions run in an order that depends on shapes only.
 */
#include <assert.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_add, layer_average, layer_maximum, layer_minimum,
	layer_multiply, layer_subtract;

#define MERGE_INPUTS 64

/* ---- reading --------------------------------------------------------------------------------- */

/* Whether @a is (1, ..., 1, C) and @b has C channels. */
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
	const struct layer_merge *c = layer->config;
	char first_text[192], other_text[192];

	for (int i = 1; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(model, layer, i);

		if (i == c->gate || model__same_shape(shape, &layer->input))
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
		layer__begin(model, layer, config, NULL, 0, sizeof(struct layer_merge), err);
	struct layer_merge *c = layer->config;

	if (status != ST_OK)
		return status;
	layer->reads_output = false; /* unless a ReLU is fused */
	c->gate = LAYER_NO_GATE;
	if (layer->ops == &layer_multiply && layer->input_count == 2) {
		const struct model_shape *other = model_input_shape(model, layer, 1);

		if (model__same_shape(&layer->input, other))
			c->gate = LAYER_NO_GATE;
		else if (merge_is_gate(other, &layer->input))
			c->gate = 1;
		else if (merge_is_gate(&layer->input, other))
			c->gate = 0;
	}
	return merge_check_shapes(model, layer, config, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t merge_work_per_element(const struct model_layer *layer)
{
	return layer->input_count - 1 + (layer->ops == &layer_average);
}

static int64_t merge_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * merge_work_per_element(layer);
}

/* Names of a kind's operations; a gradient without a name is passed on unchanged. */
struct merge_parts {
	const struct layer_ops *ops;
	const char *part, *grad_part;
};

static const struct merge_parts merge_parts[] = {
	{&layer_add, "AddV2", NULL},
	{&layer_average, "TrueDiv", "TrueDiv/Grad"},
	{&layer_maximum, "Maximum", "Maximum/Grad"},
	{&layer_minimum, "Minimum", "Minimum/Grad"},
	{&layer_multiply, "Mul", "Mul/Grad"},
	{&layer_subtract, "Sub", "Neg"},
};

static const struct merge_parts *merge_parts_of(const struct model_layer *layer)
{
	size_t i = 0;

	while (merge_parts[i].ops != layer->ops)
		i++;
	assert(i < ARRAY_LEN(merge_parts));
	return &merge_parts[i];
}

static void merge_lower_map(struct layer_lowering *lowering, const char *part, int64_t operands,
			    enum ipu_function function, int64_t times, unsigned reads,
			    unsigned writes)
{
	const struct layer_merge *c = lowering->layer->config;
	struct ipu_elements each = {.count = layer__lower_count(lowering), .operands = operands};
	struct layer_op op;

	each.times[function] = (uint8_t)(min(times, UINT8_MAX));
	if (c->gate != LAYER_NO_GATE)
		each.broadcast = lowering->batch * layer_last_dim(&lowering->layer->output);
	op = layer__map(&each, reads, writes);
	layer__lower(lowering, part, &op);
}

/* The gate's gradient is summed over all positions. */
static void merge_lower_gate(struct layer_lowering *lowering, int gate)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t outputs = lowering->batch * layer_last_dim(&lowering->layer->output);
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

/* Add passes its gradient on unchanged; Average scales it. */
static void merge_lower_backward(struct layer_lowering *lowering, const struct merge_parts *kind)
{
	const struct model_layer *layer = lowering->layer;
	const struct layer_merge *c = layer->config;
	const int64_t wanted = merge_wanted(lowering), inputs = layer->input_count;

	if (!wanted)
		return;
	if (c->gate != LAYER_NO_GATE)
		merge_lower_gate(lowering, c->gate);
	else if (layer->ops == &layer_average)
		merge_lower_map(lowering, kind->grad_part, 1, IPU_FN_ADD, 1, LAYER_GRAD_OUTPUT,
				LAYER_GRAD_OUTPUT);
	else if (layer->ops == &layer_subtract && layer__wants(lowering, 1))
		merge_lower_map(lowering, kind->grad_part, 1, IPU_FN_ADD, 1, LAYER_GRAD_OUTPUT,
				LAYER_GRAD_INPUT_AT(1));
	else if (layer->ops == &layer_maximum || layer->ops == &layer_minimum)
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
	const struct layer_merge *c = layer->config;
	const struct merge_parts *kind = merge_parts_of(layer);

	if (lowering->phase == IPU_PHASE_F)
		merge_lower_map(lowering, kind->part,
				c->gate == LAYER_NO_GATE ? layer->input_count : 1, IPU_FN_ADD,
				merge_work_per_element(layer), LAYER_INPUT, LAYER_OUTPUT);
	else
		merge_lower_backward(lowering, kind);
}

/* What all of these layers share; what the backward pass reads differs by row. */
#define MERGE_OPS(row, inputs)                                                                     \
	.kind = LAYER_KIND_##row, .read = merge_read, .flops = merge_flops, .lower = merge_lower,  \
	.least_inputs = 2, .most_inputs = (inputs), .masks = LAYER_MASKS_PASS

const struct layer_ops layer_add = {
	.class_name = "Add",
	MERGE_OPS(add, MERGE_INPUTS),
	.reads_output = true, /* if a ReLU is fused */
};

const struct layer_ops layer_average = {
	.class_name = "Average",
	MERGE_OPS(average, MERGE_INPUTS),
};

const struct layer_ops layer_maximum = {
	.class_name = "Maximum",
	MERGE_OPS(maximum, MERGE_INPUTS),
	.reads_inputs = true,
};

const struct layer_ops layer_minimum = {
	.class_name = "Minimum",
	MERGE_OPS(minimum, MERGE_INPUTS),
	.reads_inputs = true,
};

const struct layer_ops layer_multiply = {
	.class_name = "Multiply",
	MERGE_OPS(multiply, MERGE_INPUTS),
	.reads_inputs = true,
};

const struct layer_ops layer_subtract = {
	.class_name = "Subtract",
	MERGE_OPS(subtract, 2),
};
