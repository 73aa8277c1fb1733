/*
 * Layers that combine several inputs of one shape element by element: Add, Subtract, Multiply,
 * Average, Maximum, Minimum.
 *
 * Multiply also accepts a gate: one input of shape (1, ..., 1, C) that scales the channels of the
 * other. Sums over a gate's positions run in an order that depends on shapes only.
 */
#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

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

static enum status merge_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_merge *c = layer->config;
	char first_text[192], other_text[192];

	layer->reads_output = false; /* unless a ReLU is fused */
	c->gate = LAYER_NO_GATE;
	if (layer->ops == &layer_multiply && layer->input_count == 2) {
		const struct model_shape *other = model_input_shape(in->model, layer, 1);

		if (model__same_shape(&layer->input, other))
			c->gate = LAYER_NO_GATE;
		else if (merge_is_gate(other, &layer->input))
			c->gate = 1;
		else if (merge_is_gate(&layer->input, other))
			c->gate = 0;
	}
	for (int i = 1; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(in->model, layer, i);

		if (i == c->gate || model__same_shape(shape, &layer->input))
			continue;
		if (c->gate == 0) {
			layer->output = *shape;
			continue;
		}
		model_shape_text(&layer->input, 0, first_text, sizeof(first_text));
		model_shape_text(shape, 0, other_text, sizeof(other_text));
		return json_fail(in->config, in->err,
				 "the inputs of %s must have one shape: the first is %s, but input "
				 "%d is %s",
				 model_layer_class(layer), first_text, i, other_text);
	}
	return ST_OK;
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

/* Add passes its gradient on unchanged; Average scales it. */
static void merge_lower(struct layer_lowering *lowering)
{
	static const char *const parts[LAYER_KINDS] = {
		[LAYER_KIND_add] = "AddV2",       [LAYER_KIND_average] = "TrueDiv",
		[LAYER_KIND_maximum] = "Maximum", [LAYER_KIND_minimum] = "Minimum",
		[LAYER_KIND_multiply] = "Mul",    [LAYER_KIND_subtract] = "Sub",
	};
	const struct model_layer *layer = lowering->layer;
	const struct layer_merge *c = layer->config;
	const int64_t inputs = layer->input_count;
	int64_t wanted = 0;

	for (int i = 0; i < inputs; i++)
		wanted += layer__wants(lowering, i);
	if (lowering->phase == IPU_PHASE_F)
		merge_lower_map(lowering, parts[layer->ops->kind],
				c->gate == LAYER_NO_GATE ? inputs : 1, IPU_FN_ADD,
				merge_work_per_element(layer), LAYER_INPUT, LAYER_OUTPUT);
	else if (!wanted)
		return;
	else if (c->gate != LAYER_NO_GATE)
		merge_lower_gate(lowering, c->gate);
	else if (layer->ops == &layer_average)
		merge_lower_map(lowering, "TrueDiv/Grad", 1, IPU_FN_ADD, 1, LAYER_GRAD_OUTPUT,
				LAYER_GRAD_OUTPUT);
	else if (layer->ops == &layer_subtract && layer__wants(lowering, 1))
		merge_lower_map(lowering, "Neg", 1, IPU_FN_ADD, 1, LAYER_GRAD_OUTPUT,
				LAYER_GRAD_INPUT_AT(1));
	else if (layer->ops == &layer_maximum || layer->ops == &layer_minimum)
		merge_lower_map(lowering,
				layer->ops == &layer_maximum ? "Maximum/Grad" : "Minimum/Grad",
				inputs + 1, IPU_FN_SELECT, inputs, LAYER_INPUT | LAYER_GRAD_OUTPUT,
				LAYER_GRAD_INPUT);
	else if (layer->ops == &layer_multiply)
		merge_lower_map(lowering, "Mul/Grad", inputs + 1, IPU_FN_ADD, wanted * (inputs - 1),
				LAYER_INPUT | LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT);
}

/* A function of TensorFlow is named by its config: see model_legacy_function(). */
static const struct model_option merge_options[] = {
	{"function", .rule = MODEL_ANY},
};

/* An Add reads its output if a ReLU is fused. */
#define MERGE_LAYER(row, name, inputs, needs_inputs, needs_output)                                 \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .config_size = sizeof(struct layer_merge),           \
					      .options = MODEL_OPTIONS(merge_options),             \
					      .read = merge_read,                                  \
					      .flops = merge_flops,                                \
					      .lower = merge_lower,                                \
					      .least_inputs = 2,                                   \
					      .most_inputs = (inputs),                             \
					      .masks = LAYER_MASKS_PASS,                           \
					      .reads_inputs = (needs_inputs),                      \
					      .reads_output = (needs_output)}

MERGE_LAYER(add, "Add", MERGE_INPUTS, false, true);
MERGE_LAYER(average, "Average", MERGE_INPUTS, false, false);
MERGE_LAYER(maximum, "Maximum", MERGE_INPUTS, true, false);
MERGE_LAYER(minimum, "Minimum", MERGE_INPUTS, true, false);
MERGE_LAYER(multiply, "Multiply", MERGE_INPUTS, true, false);
MERGE_LAYER(subtract, "Subtract", 2, false, false);
