/*
 * The plan of a stage, as far as the forward pass goes: which tensors there are, which flow in and
 * out, what is fused or done in place, and what must be held for a backward pass.
 *
 * Layers that pass their input on make no tensor, so "who reads it" is always asked of tensors.
 * Threading: none. Ownership: all in the plan's arena.
 */
#include "trainer/kernels/kernel_work.h"
#include "common/minmax.h"
#include "trainer/models/stage_internal.h"

size_t stage__floats(const struct stage_plan *plan, size_t each)
{
	size_t floats;

	if (__builtin_mul_overflow(each, (size_t)plan->params.batch, &floats) ||
	    floats > STAGE_FLOATS)
		return STAGE_FLOATS;
	return model_align(floats);
}

int stage__buffer(struct stage_plan *plan, enum stage_area area, size_t floats, int first, int last)
{
	plan->buffers[plan->buffer_count] =
		(struct stage_buffer){.area = area, .floats = floats, .first = first, .last = last};
	return plan->buffer_count++;
}

void *stage__alloc(struct stage_plan *plan, size_t count, size_t size)
{
	return arena_alloc(&plan->arena, count + 1, size);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int plan_value(struct stage_plan *plan, int position)
{
	struct stage_value *value = &plan->values[plan->value_count];

	*value = (struct stage_value){
		.each = (size_t)model_shape_count(stage__shape(plan->params.model, position)),
		.buffer = STAGE_NONE,
		.gradient = STAGE_NONE,
		.last = STAGE_NONE,
		.until = STAGE_NONE,
	};
	plan->value_of[position + 1] = plan->value_count;
	return plan->value_count++;
}

/* Their buffers come first, as they lie in the block. */
static void plan_inputs(struct stage_plan *plan)
{
	for (int i = 0; i < plan->in.count; i++) {
		struct stage_tensor *tensor = &plan->in.tensors[i];
		struct stage_value *value;

		tensor->value = plan_value(plan, tensor->position);
		value = &plan->values[tensor->value];
		value->held = true;
		value->buffer =
			stage__buffer(plan, STAGE_SLOT, stage__floats(plan, value->each), 0, 0);
		plan->buffers[value->buffer].offset = tensor->offset;
	}
}

/* Who reads what comes out of each layer, over the whole model. */
struct plan_uses {
	int *count, *user; /* by position */
};

static bool plan_count_uses(struct stage_plan *plan, struct plan_uses *uses)
{
	const struct model *model = plan->params.model;

	uses->count = stage__alloc(plan, (size_t)model->layer_count, sizeof(*uses->count));
	uses->user = stage__alloc(plan, (size_t)model->layer_count, sizeof(*uses->user));
	if (!uses->count || !uses->user)
		return false;
	uses->count[model->layer_count - 1] = 1; /* the model's output */
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int k = 0; k < layer->input_count; k++) {
			if (layer->inputs[k] == MODEL_INPUT)
				continue;
			uses->count[layer->inputs[k]]++;
			uses->user[layer->inputs[k]] = i;
		}
	}
	return true;
}

static unsigned plan_look(const struct stage_plan *plan, const struct model_layer *layer)
{
	const uint8_t *taps = plan->params.taps;

	return (taps ? taps[layer->position] : 0u) |
	       (layer->ops->outfeed != MODEL_NO_OUTFEED ? STAGE_LOOK : 0u);
}

/* A ReLU that alone reads the layer, in the same stage, is done in the layer's own pass: there is
 * no output of the layer's own then, to look at. */
static void plan_fuse(struct stage_plan *plan, const struct plan_uses *uses, struct stage_layer *at)
{
	const struct stage_params *p = &plan->params;
	const struct model_layer *layer = at->layer, *relu;

	if (p->unfused || at->tapped || !compute_of(layer)->fuses_relu ||
	    layer->activation != MODEL_LINEAR || uses->count[layer->position] != 1 ||
	    layer->position == p->model->layer_count - 1)
		return;
	relu = &p->model->layers[uses->user[layer->position]];
	if (relu->position >= p->first_layer + p->layer_count ||
	    !layer_is_relu(relu, &at->relu_most))
		return;
	at->relu = true;
	plan->layers[relu->position - p->first_layer].passes = true;
}

static void plan_links(struct stage_plan *plan, struct stage_layer *at, int index)
{
	for (int k = 0; k < at->layer->input_count; k++) {
		int value =
			plan->value_of[stage__root(plan->params.model, at->layer->inputs[k]) + 1];

		at->links[k] = (struct stage_link){
			.value = value, .gradient = STAGE_NONE, .partial = STAGE_NONE};
		plan->values[value].last = index;
	}
	if (at->layer->input_count > plan->most_inputs)
		plan->most_inputs = at->layer->input_count;
}

/* What each layer reads and makes. false: no memory. */
static bool plan_layers(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;
	int final = p->logits_loss ? model_final_activation(p->model) : -1;
	struct plan_uses uses;

	if (!plan_count_uses(plan, &uses))
		return false;
	for (int i = 0; i < p->layer_count; i++) {
		struct stage_layer *at = &plan->layers[i];
		const struct model_layer *layer = &p->model->layers[p->first_layer + i];

		at->layer = layer;
		at->kept = at->logits = STAGE_NONE;
		at->passes = at->passes || layer->ops->pass_through;
		at->skip_activation = layer->position == final;
		at->tapped = plan_look(plan, layer) != 0;
		at->links = stage__alloc(plan, (size_t)layer->input_count, sizeof(*at->links));
		if (!at->links)
			return false;
		plan_links(plan, at, i);
		if (at->passes) {
			at->output = at->links[0].value;
			plan->value_of[layer->position + 1] = at->output;
			continue;
		}
		at->output = plan_value(plan, layer->position);
		plan_fuse(plan, &uses, at);
	}
	return true;
}

static void plan_watched(struct stage_plan *plan)
{
	for (int i = 0; i < plan->params.layer_count; i++)
		if (plan_look(plan, plan->layers[i].layer) & STAGE_ABS_MAX)
			plan->values[plan->layers[i].output].watched = true;
}

static void plan_outputs(struct stage_plan *plan)
{
	for (int i = 0; i < plan->out.count; i++) {
		struct stage_tensor *tensor = &plan->out.tensors[i];

		tensor->value = plan->value_of[tensor->position + 1];
		plan->values[tensor->value].held = true;
	}
}

/* ---- who takes part in a backward pass ------------------------------------------------------- */

static bool plan_learns(const struct model *model, const struct model_layer *layer)
{
	for (int i = 0; i < layer->param_count; i++)
		if (model->params[layer->first_param + i].trainable)
			return true;
	return false;
}

/* Find where something that learns comes before. */
static bool plan_wanted(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;
	int end = p->first_layer + p->layer_count;
	bool *wanted = stage__alloc(plan, (size_t)end + 1, sizeof(*wanted));

	if (!wanted)
		return false;
	wanted[0] = !p->fixed_input;
	for (int i = 0; i < end; i++) {
		const struct model_layer *layer = &p->model->layers[i];

		wanted[i + 1] = plan_learns(p->model, layer);
		for (int k = 0; k < layer->input_count; k++)
			wanted[i + 1] = wanted[i + 1] || wanted[layer->inputs[k] + 1];
		if (i >= p->first_layer)
			plan->layers[i - p->first_layer].learns = plan_learns(p->model, layer);
	}
	for (int i = 0; i <= end; i++)
		if (plan->value_of[i] != STAGE_NONE)
			plan->values[plan->value_of[i]].wanted = p->training && wanted[i];
	return true;
}

/* A layer has a backward pass where a gradient reaches it and something wants one from it. */
static void plan_take_part(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;

	for (int i = 0; i < p->layer_count; i++) {
		struct stage_layer *at = &plan->layers[i];
		bool reached = plan->reached[at->layer->position];

		if (at->passes)
			continue;
		at->backward = plan->values[at->output].wanted && reached;
		at->unreached = p->training && at->learns && !reached;
	}
}

/* When layer @index has its backward pass. */
static int plan_backward_time(const struct stage_plan *plan, int index)
{
	return 2 * plan->params.layer_count - 1 - index;
}

/* From the last layer to the first: what is found last is read last. */
static void plan_until(struct stage_plan *plan)
{
	for (int i = plan->params.layer_count - 1; i >= 0; i--) {
		const struct stage_layer *at = &plan->layers[i];
		const struct model_layer *layer = at->layer;

		if (!at->backward)
			continue;
		for (int k = 0; layer->reads_inputs && k < layer->input_count; k++)
			plan->values[at->links[k].value].until = plan_backward_time(plan, i);
		if (at->relu ? layer->ops->reads_output : layer->reads_output)
			plan->values[at->output].until = plan_backward_time(plan, i);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

/*
 * A training step of less work, in ns as kernel_work.h counts them, is one thread's. Steps of
 * bench_train at batches of 8 to 128 (Xeon, Sapphire Rapids, virtual machine): two threads need
 * half of one's time and 60 to 130 us more.
 */
#define PLAN_SHARED_STEP 250000

static uint64_t plan_layer_work(const struct stage_plan *plan, const struct stage_layer *at)
{
	const struct stage_params *p = &plan->params;
	const uint64_t pass =
		kernel_work_products(model_layer_flops(p->model, at->layer->position, p->batch) /
				     2) +
		kernel_work_floats(2 * (int64_t)stage__floats(plan, plan->values[at->output].each));
	int64_t weights = 0;
	bool wanted = false;

	if (!at->backward)
		return pass;
	for (int k = 0; k < at->layer->input_count; k++)
		wanted = wanted || plan->values[at->links[k].value].wanted;
	for (int i = 0; i < at->layer->param_count && at->learns; i++)
		weights += (int64_t)p->model->params[at->layer->first_param + i].count;
	/* A weight and its gradient are read, the weight is written. */
	return pass * (1u + at->learns + wanted) + kernel_work_floats(3 * weights);
}

static void plan_threads(struct stage_plan *plan)
{
	uint64_t work = 0;

	for (int i = 0; i < plan->params.layer_count; i++)
		if (!plan->layers[i].passes)
			work += plan_layer_work(plan, &plan->layers[i]);
	if (plan->params.training && !plan->params.spread && work < PLAN_SHARED_STEP)
		plan->params.pool = NULL;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* A softmax or sigmoid with a kernel of its own does not leave its input anywhere. */
static void plan_logits(struct stage_plan *plan, struct stage_layer *at)
{
	struct stage_value *input = &plan->values[at->links[0].value];

	if (!at->skip_activation)
		return;
	if (at->layer->param_count > 0) {
		at->logits = stage__buffer(
			plan, STAGE_SLOT, stage__floats(plan, plan->values[at->output].each), 0, 0);
		plan->logits = at->logits;
		return;
	}
	input->held = true;
}

/* May layer @index write its output over its first input? */
static bool plan_in_place(const struct stage_plan *plan, const struct stage_layer *at, int index)
{
	const struct stage_value *input = &plan->values[at->links[0].value];

	if (!compute_of(at->layer)->in_place || plan->params.unshared || input->held ||
	    input->until != STAGE_NONE || input->last != index ||
	    input->each != plan->values[at->output].each)
		return false;
	for (int k = 1; k < at->layer->input_count; k++)
		if (at->links[k].value == at->links[0].value)
			return false;
	return true;
}

/* @buffer is to be there until the backward pass at @time. The next forward pass may come before,
 * unless there is one slot alone. */
static void plan_extend(const struct stage_plan *plan, struct stage_buffer *buffer, int time)
{
	if (plan->params.slots > 1 || plan->params.split)
		buffer->area = STAGE_SLOT;
	buffer->last = time;
}

static void plan_output_buffer(struct stage_plan *plan, struct stage_layer *at, int index)
{
	struct stage_value *output = &plan->values[at->output];
	int last = max(output->last, index);
	struct stage_buffer *buffer;

	if (plan_in_place(plan, at, index))
		output->buffer = plan->values[at->links[0].value].buffer;
	else
		output->buffer = stage__buffer(plan, STAGE_SHARED,
					       stage__floats(plan, output->each), index, last);
	buffer = &plan->buffers[output->buffer];
	buffer->last = last;
	if (output->held)
		buffer->area = STAGE_SLOT;
	else if (output->until != STAGE_NONE)
		plan_extend(plan, buffer, output->until);
}

static size_t plan_bytes_floats(size_t bytes)
{
	return bytes > STAGE_FLOATS ? STAGE_FLOATS : model_align((bytes + 3) / 4);
}

static void plan_working_memory(struct stage_plan *plan, struct stage_layer *at, int index)
{
	const struct stage_params *p = &plan->params;
	const struct compute_ops *ops = compute_of(at->layer);
	size_t floats;

	if (ops->kept) {
		floats = plan_bytes_floats(ops->kept(p->model, at->layer, p->batch));
		at->kept = stage__buffer(plan, STAGE_SHARED, floats, index, index);
		if (at->backward)
			plan_extend(plan, &plan->buffers[at->kept],
				    plan_backward_time(plan, index));
	}
	if (ops->scratch) {
		floats = plan_bytes_floats(ops->scratch(p->model, at->layer, p->batch,
							pool_lanes(p->pool), p->training));
		if (floats > plan->scratch_floats)
			plan->scratch_floats = floats;
	}
}

static void plan_buffers(struct stage_plan *plan)
{
	for (int i = 0; i < plan->params.layer_count; i++)
		if (!plan->layers[i].passes)
			plan_logits(plan, &plan->layers[i]);
	for (int i = 0; i < plan->params.layer_count; i++) {
		struct stage_layer *at = &plan->layers[i];

		if (at->passes)
			continue;
		plan_output_buffer(plan, at, i);
		plan_working_memory(plan, at, i);
		if (at->skip_activation && at->logits == STAGE_NONE)
			plan->logits = plan->values[at->links[0].value].buffer;
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool plan_allocate(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;
	size_t layers = (size_t)p->layer_count, links = 0, values, positions;

	for (int i = 0; i < p->layer_count; i++)
		links += (size_t)p->model->layers[p->first_layer + i].input_count;
	values = layers + (size_t)plan->in.count;
	positions = (size_t)p->model->layer_count + 1;
	plan->layers = stage__alloc(plan, layers, sizeof(*plan->layers));
	plan->values = stage__alloc(plan, values, sizeof(*plan->values));
	/* A tensor and a gradient each, what is kept, the logits, what is held for the weights, and
	 * parts of gradients. */
	plan->buffers = stage__alloc(plan, 2 * values + 3 * layers + links, sizeof(*plan->buffers));
	plan->value_of = stage__alloc(plan, positions, sizeof(*plan->value_of));
	if (!plan->layers || !plan->values || !plan->buffers || !plan->value_of)
		return false;
	for (size_t i = 0; i < positions; i++)
		plan->value_of[i] = STAGE_NONE;
	return true;
}

static enum status plan_make(struct stage_plan *plan, struct err *err)
{
	const struct stage_params *p = &plan->params;
	enum status status;

	if (!stage__reached(plan) || !stage__border(plan, p->first_layer, &plan->in) ||
	    !stage__border(plan, p->first_layer + p->layer_count, &plan->out) ||
	    !plan_allocate(plan))
		return err_nomem(err);
	plan->logits = STAGE_NONE;
	plan_inputs(plan);
	if (!plan_layers(plan))
		return err_nomem(err);
	plan_watched(plan);
	plan_outputs(plan);
	if (!plan_wanted(plan))
		return err_nomem(err);
	plan_take_part(plan);
	plan_until(plan);
	plan_threads(plan);
	plan_buffers(plan);
	stage__plan_backward(plan);
	status = stage__place(plan);
	return status == ST_NOMEM ? err_nomem(err) : status;
}

enum status stage__plan(struct stage_plan *plan, const struct stage_params *params, struct err *err)
{
	enum status status;

	*plan = (struct stage_plan){.params = *params};
	if (arena_init(&plan->arena, 0))
		return err_nomem(err);
	status = plan_make(plan, err);
	if (status != ST_OK)
		stage__plan_fini(plan);
	return status;
}

void stage__plan_fini(struct stage_plan *plan)
{
	arena_fini(&plan->arena);
}
