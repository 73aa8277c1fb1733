/*
 * The plan of a stage: its tensors, which of them cross its borders, what is fused or done in
 * place, what a backward pass needs, the location of each gradient and which layers write or add
 * to it, and the offsets of all buffers.
 *
 * Layers that pass their input through make no tensor, so readers are counted per tensor. What
 * crosses a border, and what the model's output depends on, is determined from the whole model, so
 * that the stages on both sides of a border agree.
 *
 * The last reader of a tensor writes its gradient and earlier readers add to it, in this order for
 * any cut into stages: sums of floats depend on it.
 *
 * Buffers in a slot are contiguous; those in the shared area are placed by lifetime. That is first
 * fit by size: the largest buffer first, each at the lowest offset that no buffer in use at the
 * same time occupies. Ties are resolved by number, so that plans are deterministic. Quadratic in
 * the number of buffers, a few per layer.
 *
 * Threading: none. Ownership: everything is in the plan's arena.
 */
#include <stdlib.h>
#include <string.h>

#include "common/minmax.h"
#include "common/sorted.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/models/stage_internal.h"

/* ---- buffers --------------------------------------------------------------------------------- */

/* Floats of a batch with @each floats per item, rounded up to whole cache lines. */
static size_t plan_floats(const struct stage_plan *plan, size_t each)
{
	size_t floats;

	if (__builtin_mul_overflow(each, (size_t)plan->params.batch, &floats) ||
	    floats > STAGE_FLOATS)
		return STAGE_FLOATS;
	return model_align(floats);
}

/* Add a buffer in use from @first to @last; return its index. A size beyond the limit is stored as
 * STAGE_FLOATS, which the sums reject. */
static int plan_buffer(struct stage_plan *plan, enum stage_area area, size_t floats, int first,
		       int last)
{
	plan->buffers[plan->buffer_count] =
		(struct stage_buffer){.area = area, .floats = floats, .first = first, .last = last};
	return plan->buffer_count++;
}

/* ---- borders --------------------------------------------------------------------------------- */

/* The layer that makes the tensor at @position: follow layers that pass their input through. */
static int plan_source(const struct model *model, int position)
{
	while (position != MODEL_INPUT && model->layers[position].ops->pass_through)
		position = model->layers[position].inputs[0];
	return position;
}

/* The shape of the tensor at @position. */
static const struct model_shape *plan_shape(const struct model *model, int position)
{
	return position == MODEL_INPUT ? &model->input : &model->layers[position].output;
}

/* Find the layers that the model's output depends on. */
static void plan_find_reached(struct stage_plan *plan)
{
	const struct model *model = plan->params.model;

	plan->reached[model->layer_count - 1] = true;
	for (int i = model->layer_count - 1; i >= 0; i--) {
		const struct model_layer *layer = &model->layers[i];

		for (int k = 0; plan->reached[i] && k < layer->input_count; k++)
			if (layer->inputs[k] != MODEL_INPUT)
				plan->reached[layer->inputs[k]] = true;
	}
}

/* List the tensors that cross the border before layer @border. */
static void plan_border(struct stage_plan *plan, int border, struct stage_border *out)
{
	const struct model *model = plan->params.model;
	int end = plan_source(model, border - 1) + 1;

	memset(plan->read, 0, ((size_t)model->layer_count + 1) * sizeof(*plan->read));
	memset(plan->live, 0, ((size_t)model->layer_count + 1) * sizeof(*plan->live));
	if (border == model->layer_count)
		plan->read[end] = plan->live[end] = true;
	for (int o = 0; o < model->output_count && border < model->layer_count; o++)
		if (model->outputs[o].mask && model->outputs[o].mask < border)
			plan->read[model->outputs[o].mask + 1] = true;
	for (int i = border; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int k = 0; k < layer->input_count; k++) {
			int root = plan_source(model, layer->inputs[k]);

			if (root >= border)
				continue;
			plan->read[root + 1] = true;
			plan->live[root + 1] = plan->live[root + 1] || plan->reached[i];
		}
	}
	for (int i = 0; i <= border; i++) {
		size_t each, floats, begin;

		if (!plan->read[i])
			continue;
		each = (size_t)model_shape_count(plan_shape(model, i - 1));
		floats = plan_floats(plan, each);
		begin = model_align(out->floats);
		out->tensors[out->count++] = (struct stage_tensor){
			.position = i - 1, .offset = begin, .live = plan->live[i]};
		/* Once beyond the limit, the sum stays there. */
		out->floats = floats >= STAGE_FLOATS || begin >= STAGE_FLOATS
				      ? STAGE_FLOATS
				      : begin + each * (size_t)plan->params.batch;
	}
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int plan_value(struct stage_plan *plan, int position)
{
	struct stage_value *value = &plan->values[plan->value_count];

	*value = (struct stage_value){
		.each = (size_t)model_shape_count(plan_shape(plan->params.model, position)),
		.buffer = STAGE_NONE,
		.gradient = STAGE_NONE,
		.last = STAGE_NONE,
		.until = STAGE_NONE,
	};
	plan->value_of[position + 1] = plan->value_count;
	return plan->value_count++;
}

/* Incoming tensors get the first buffers, in the order of the block. */
static void plan_inputs(struct stage_plan *plan)
{
	for (int i = 0; i < plan->in.count; i++) {
		struct stage_tensor *tensor = &plan->in.tensors[i];
		struct stage_value *value;

		tensor->value = plan_value(plan, tensor->position);
		value = &plan->values[tensor->value];
		value->held = true;
		value->buffer = plan_buffer(plan, STAGE_SLOT, plan_floats(plan, value->each), 0, 0);
		plan->buffers[value->buffer].offset = tensor->offset;
	}
}

static void plan_count_uses(struct stage_plan *plan)
{
	const struct model *model = plan->params.model;

	plan->uses[model->layer_count - 1] = 1; /* the model's output */
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int k = 0; k < layer->input_count; k++) {
			if (layer->inputs[k] == MODEL_INPUT)
				continue;
			plan->uses[layer->inputs[k]]++;
			plan->user[layer->inputs[k]] = i;
		}
	}
}

static unsigned plan_taps_of(const struct stage_plan *plan, const struct model_layer *layer)
{
	const uint8_t *taps = plan->params.taps;

	return (taps ? taps[layer->position] : 0u) |
	       (layer->ops->outfeed != MODEL_NO_OUTFEED ? STAGE_LOOK : 0u);
}

/* If a ReLU in the same stage is the layer's only reader, the layer's own pass applies it. The
 * layer then has no output of its own that a tap could see. */
static void plan_fuse(struct stage_plan *plan, struct stage_layer *at)
{
	const struct stage_params *p = &plan->params;
	const struct model_layer *layer = at->layer, *relu;

	if (p->unfused || at->tapped || !compute_of(layer)->fuses_relu ||
	    layer->activation != MODEL_LINEAR || plan->uses[layer->position] != 1 ||
	    layer->position == p->model->layer_count - 1)
		return;
	relu = &p->model->layers[plan->user[layer->position]];
	if (relu->position >= p->first_layer + p->layer_count ||
	    !layer_is_relu(relu, &at->relu_most))
		return;
	at->relu = true;
	plan->layers[relu->position - p->first_layer].passes = true;
}

/* If the layer adds two tensors, of which the layer before it makes one that nobody else sees, that
 * layer's pass computes the sum and the ReLU that follows it. Not where the sum is tapped: a tap is
 * given both tensors, too. */
static void plan_fuse_sum(const struct stage_plan *plan, struct stage_layer *at)
{
	const struct stage_params *p = &plan->params;
	const struct stage_layer *before = at == plan->layers ? NULL : at - 1;

	if (p->unfused || p->unshared || !before || at->tapped ||
	    at->layer->ops->kind != LAYER_KIND_add || at->layer->input_count != 2 ||
	    before->passes || before->relu || before->tapped ||
	    !compute_of(before->layer)->fuses_add || plan->uses[before->layer->position] != 1)
		return;
	if (at->links[0].value == before->output)
		at->plus = at->links[1].value;
	else if (at->links[1].value == before->output)
		at->plus = at->links[0].value;
}

/* Determine what each layer reads and makes. */
static void plan_layers(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;
	int final = p->logits_loss ? model_final_activation(p->model) : -1;

	for (int i = 0; i < p->layer_count; i++) {
		struct stage_layer *at = &plan->layers[i];
		const struct model_layer *layer = &p->model->layers[p->first_layer + i];

		at->layer = layer;
		at->kept = at->logits = at->scores = at->partial = at->plus = STAGE_NONE;
		at->passes = at->passes || layer->ops->pass_through;
		at->skip_activation = layer->position == final;
		at->tapped = plan_taps_of(plan, layer) != 0;
		if (i > 0) /* the first layer has the links of all */
			at->links = at[-1].links + at[-1].layer->input_count;
		for (int k = 0; k < layer->input_count; k++) {
			const int value =
				plan->value_of[plan_source(p->model, layer->inputs[k]) + 1];

			at->links[k] = (struct stage_link){
				.value = value, .gradient = STAGE_NONE, .partial = STAGE_NONE};
			plan->values[value].last = i;
		}
		plan->most_inputs = max(plan->most_inputs, layer->input_count);
		if (at->passes) {
			at->output = at->links[0].value;
			plan->value_of[layer->position + 1] = at->output;
			continue;
		}
		at->output = plan_value(plan, layer->position);
		plan_fuse(plan, at);
		plan_fuse_sum(plan, at);
	}
}

static void plan_outputs(struct stage_plan *plan)
{
	const struct model *model = plan->params.model;

	for (int i = 0; i < plan->out.count; i++) {
		struct stage_tensor *tensor = &plan->out.tensors[i];

		tensor->value = plan->value_of[tensor->position + 1];
		plan->values[tensor->value].held = true;
	}
	for (int o = 0; o < model->output_count; o++) {
		plan->masks[o] = STAGE_NONE;
		if (!model->outputs[o].mask ||
		    plan->params.first_layer + plan->params.layer_count < model->layer_count)
			continue;
		plan->masks[o] = plan->value_of[model->outputs[o].mask + 1];
		plan->values[plan->masks[o]].held = true;
	}
}

/* ---- participation in the backward pass ------------------------------------------------------ */

static bool plan_learns(const struct model *model, const struct model_layer *layer)
{
	for (int i = 0; i < layer->param_count; i++)
		if (model->params[layer->first_param + i].trainable)
			return true;
	return false;
}

/* Find the tensors that have a trainable layer before them. */
static void plan_find_wanted(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;
	int end = p->first_layer + p->layer_count;
	bool *wanted = plan->wanted;

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
}

/* A layer has a backward pass if a gradient reaches it and an input or a parameter wants one. */
static void plan_backward_passes(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;

	for (int i = 0; i < p->layer_count; i++) {
		struct stage_layer *at = &plan->layers[i];
		if (!at->passes)
			at->backward = plan->values[at->output].wanted &&
				       plan->reached[at->layer->position];
	}
}

/* The time of layer @index's backward pass. */
static int plan_backward_time(const struct stage_plan *plan, int index)
{
	return 2 * plan->params.layer_count - 1 - index;
}

/* Set the last time a backward pass reads each value: iterate in the order of the passes. */
static void plan_last_reads(struct stage_plan *plan)
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
 * A training step with less work (in ns as counted by kernel_work.h) runs on one thread. Measured
 * with bench_train at batches of 8 to 128 (Xeon, Sapphire Rapids, virtual machine): two threads
 * need half the time of one, plus 60 to 130 us.
 */
#define PLAN_SHARED_STEP 250000

static uint64_t plan_layer_work(const struct stage_plan *plan, const struct stage_layer *at)
{
	const struct stage_params *p = &plan->params;
	const uint64_t pass =
		kernel_work_products(model_layer_flops(p->model, at->layer->position, p->batch) /
				     2) +
		kernel_work_floats(2 * (int64_t)plan_floats(plan, plan->values[at->output].each));
	int64_t weights = 0;
	bool wanted = false;

	if (!at->backward)
		return pass;
	for (int k = 0; k < at->layer->input_count; k++)
		wanted = wanted || plan->values[at->links[k].value].wanted;
	for (int i = 0; i < at->layer->param_count && at->learns; i++)
		weights += (int64_t)p->model->params[at->layer->first_param + i].count;
	/* A weight and its gradient are read, and the weight is written. */
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

/* Whether layer @index may write its output over its first input. */
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

/* Extend the lifetime of @buffer to the backward pass at @time. The next forward pass may come
 * earlier, unless there is a single slot. */
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

	if (at->plus != STAGE_NONE)
		output->buffer = plan->values[at[-1].output].buffer;
	else if (plan_in_place(plan, at, index))
		output->buffer = plan->values[at->links[0].value].buffer;
	else
		output->buffer = plan_buffer(plan, STAGE_SHARED, plan_floats(plan, output->each),
					     index, last);
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
	const struct layer_pass pass = {.model = p->model,
					.layer = at->layer,
					.batch = p->batch,
					.training = p->training,
					.pool = p->pool};
	size_t floats;

	if (ops->kept) {
		floats = plan_bytes_floats(ops->kept(&pass));
		at->kept = plan_buffer(plan, STAGE_SHARED, floats, index, index);
		if (at->backward)
			plan_extend(plan, &plan->buffers[at->kept],
				    plan_backward_time(plan, index));
	}
	if (ops->scores && plan_taps_of(plan, at->layer) & STAGE_SCORES) {
		floats = plan_bytes_floats(ops->scores(&pass));
		at->scores = plan_buffer(plan, STAGE_SHARED, floats, index, index);
	}
	if (ops->scratch) {
		floats = plan_bytes_floats(ops->scratch(&pass));
		plan->scratch_floats = max(plan->scratch_floats, floats);
	}
	if (ops->state && model_layer_again(p->model, at->layer)) {
		/* A repeated call shares the state, and starts where the previous one ended. */
		const int first = p->model->params[at->layer->first_param].layer;

		at->state = plan->layers[first - p->first_layer].state;
		at->state_floats = plan->layers[first - p->first_layer].state_floats;
	} else if (ops->state) {
		at->state = plan->state_floats;
		at->state_floats = ops->state(&pass);
		plan->state_floats += plan_bytes_floats(at->state_floats * sizeof(float));
	}
}

static void plan_buffers(struct stage_plan *plan)
{
	/* The input of the final softmax or sigmoid is kept; that of a layer with a kernel needs a
	 * buffer. */
	for (int i = 0; i < plan->params.layer_count; i++) {
		struct stage_layer *at = &plan->layers[i];

		if (at->passes || !at->skip_activation)
			continue;
		if (at->layer->param_count == 0) {
			plan->values[at->links[0].value].held = true;
			continue;
		}
		at->logits = plan_buffer(plan, STAGE_SLOT,
					 plan_floats(plan, plan->values[at->output].each), 0, 0);
		plan->logits = at->logits;
	}
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

/* ---- the backward pass ----------------------------------------------------------------------- */

/* Gradients that cross borders are in the caller's blocks. For a tensor that only passes through
 * the stage, the gradient starts as a copy. */
static void plan_border_gradients(struct stage_plan *plan)
{
	for (int i = 0; i < plan->in.count; i++) {
		const struct stage_tensor *tensor = &plan->in.tensors[i];
		struct stage_value *value = &plan->values[tensor->value];

		if (!value->wanted)
			continue;
		value->gradient = plan_buffer(plan, STAGE_GRAD_INPUT, 0, 0, 0);
		plan->buffers[value->gradient].offset = tensor->offset;
	}
	for (int i = 0; i < plan->out.count; i++) {
		const struct stage_tensor *tensor = &plan->out.tensors[i];
		struct stage_value *value = &plan->values[tensor->value];

		if (!value->wanted || !tensor->live)
			continue;
		value->written = true;
		if (value->gradient != STAGE_NONE)
			continue;
		value->gradient = plan_buffer(plan, STAGE_GRAD_OUTPUT, 0, 0, 0);
		plan->buffers[value->gradient].offset = tensor->offset;
	}
}

static void plan_link_backward(struct stage_plan *plan, const struct stage_layer *at, int input,
			       int time)
{
	const struct compute_ops *ops = compute_of(at->layer);
	const struct stage_value *output = &plan->values[at->output];
	struct stage_link *link = &at->links[input];
	struct stage_value *value = &plan->values[link->value];
	const size_t floats = plan_floats(plan, value->each);
	bool twice = false;

	if (!value->wanted)
		return;
	/* The two gradients of a tensor that the layer reads twice need different buffers. */
	for (int k = 0; k < at->layer->input_count; k++)
		twice = twice || (k != input && at->links[k].value == link->value);
	if (!value->written && value->gradient == STAGE_NONE) {
		/* The first input's may use the buffer of the output's gradient. */
		if (ops->grad_in_place && !plan->params.unshared && input == 0 &&
		    value->each == output->each)
			value->gradient = output->gradient;
		else
			value->gradient = plan_buffer(plan, STAGE_SHARED, floats, time, time);
	} else if (value->written && ops->adds && !twice) {
		link->add = true;
	} else if (value->written) {
		link->partial = plan_buffer(plan, STAGE_SHARED, floats, time, time);
	}
	value->written = true;
	link->gradient = value->gradient;
}

/* If a layer is called several times, its last call writes the parameters' gradients and earlier
 * calls add to them, in this order for any schedule: the first call comes last. */
static void plan_parameters(struct stage_plan *plan, struct stage_layer *at, int time)
{
	const struct model_layer *layer = at->layer;
	const struct model_param *first, *last;

	if (!at->learns || at->passes)
		return;
	first = &plan->params.model->params[layer->first_param];
	last = first + layer->param_count - 1;
	if (!at->backward) {
		at->unreached = first->layer == layer->position && !plan->written[first->layer];
		return;
	}
	if (plan->written[first->layer])
		at->partial = plan_buffer(plan, STAGE_SHARED,
					  last->offset + model_align(last->count) - first->offset,
					  time, time);
	plan->written[first->layer] = true;
}

static void plan_backward(struct stage_plan *plan)
{
	int count = plan->params.layer_count;

	if (!plan->params.training)
		return;
	plan_border_gradients(plan);
	for (int i = count - 1; i >= 0; i--) {
		struct stage_layer *at = &plan->layers[i];
		int time = 2 * count - 1 - i;

		plan_parameters(plan, at, time);
		if (!at->backward)
			continue;
		plan->buffers[plan->values[at->output].gradient].last = time;
		if (plan->params.split && at->learns)
			at->held =
				plan_buffer(plan, STAGE_SLOT,
					    plan_floats(plan, plan->values[at->output].each), 0, 0);
		for (int k = 0; k < at->layer->input_count; k++)
			plan_link_backward(plan, at, k, time);
	}
}

/* ---- offsets --------------------------------------------------------------------------------- */

static bool memory_append(size_t *total, struct stage_buffer *buffer)
{
	buffer->offset = *total;
	return !__builtin_add_overflow(*total, buffer->floats, total) && *total < STAGE_FLOATS;
}

/* Incoming tensors already have their offsets. */
static bool memory_offset_slot(struct stage_plan *plan)
{
	plan->slot_floats = model_align(plan->in.floats);
	for (int i = plan->in.count; i < plan->buffer_count; i++)
		if (plan->buffers[i].area == STAGE_SLOT &&
		    !memory_append(&plan->slot_floats, &plan->buffers[i]))
			return false;
	return true;
}

static int memory_larger_first(const void *a, const void *b)
{
	const struct stage_buffer *left = *(struct stage_buffer *const *)a;
	const struct stage_buffer *right = *(struct stage_buffer *const *)b;

	return left->floats != right->floats ? SORTED_BY(right, left, floats)
					     : (left > right) - (left < right);
}

/* Insert @buffer among the @count placed buffers, which are sorted by offset. */
static void memory_insert(struct stage_buffer **placed, int count, struct stage_buffer *buffer)
{
	size_t offset = 0;
	int at = count;

	for (int i = 0; i < count; i++) {
		size_t end = placed[i]->offset + placed[i]->floats;

		if (placed[i]->first > buffer->last || buffer->first > placed[i]->last)
			continue;
		if (offset + buffer->floats <= placed[i]->offset)
			break;
		offset = max(end, offset);
	}
	buffer->offset = offset;
	for (; at > 0 && placed[at - 1]->offset > offset; at--)
		placed[at] = placed[at - 1];
	placed[at] = buffer;
}

static bool memory_offset_shared(struct stage_plan *plan)
{
	struct stage_buffer **sorted = plan->sorted;
	int count = 0;

	/* If the sum of all sizes is within bounds, so is every offset. */
	for (int i = 0; i < plan->buffer_count; i++) {
		if (plan->buffers[i].area != STAGE_SHARED)
			continue;
		if (!memory_append(&plan->shared_floats, &plan->buffers[i]))
			return false;
		sorted[count++] = &plan->buffers[i];
	}
	if (plan->params.unshared)
		return true;

	qsort(sorted, (size_t)count, sizeof(struct stage_buffer *), memory_larger_first);
	plan->shared_floats = 0;
	/* Those before @i have their places, and are sorted by offset. */
	for (int i = 0; i < count; i++) {
		struct stage_buffer *buffer = sorted[i];

		memory_insert(sorted, i, buffer);
		plan->shared_floats = max(plan->shared_floats, buffer->offset + buffer->floats);
	}
	return true;
}

/* ---- the whole plan -------------------------------------------------------------------------- */

/* Allocate all arrays, zeroed; false: out of memory. */
static bool plan_allocate(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;
	const size_t layers = (size_t)p->layer_count, positions = (size_t)p->model->layer_count + 1;
	/* Those of the stage's layers, and what the layers before them make. */
	const size_t values = layers + (size_t)p->first_layer + 1;
	size_t links = 1, buffers;
	struct arena *arena = &plan->arena;

	for (int i = 0; i < p->layer_count; i++)
		links += (size_t)p->model->layers[p->first_layer + i].input_count;
	/* Tensors and their gradients; per layer the kept memory, logits, scores, the gradient held
	 * for the weights, and a repeated call's gradients; per link a partial gradient. */
	buffers = 2 * values + 5 * layers + links;
	plan->layers = arena_alloc(arena, layers, sizeof(*plan->layers));
	plan->values = arena_alloc(arena, values, sizeof(*plan->values));
	plan->buffers = arena_alloc(arena, buffers, sizeof(*plan->buffers));
	plan->sorted = arena_alloc(arena, buffers, sizeof(struct stage_buffer *));
	plan->in.tensors = arena_alloc(arena, positions, sizeof(*plan->in.tensors));
	plan->out.tensors = arena_alloc(arena, positions, sizeof(*plan->out.tensors));
	plan->value_of = arena_alloc(arena, positions, sizeof(*plan->value_of));
	/* Five flags and two numbers by position. */
	plan->reached = arena_alloc(arena, positions, 5 * sizeof(*plan->reached));
	plan->uses = arena_alloc(arena, positions, 2 * sizeof(*plan->uses));
	if (!plan->layers || !plan->values || !plan->buffers || !plan->sorted ||
	    !plan->in.tensors || !plan->out.tensors || !plan->value_of || !plan->reached ||
	    !plan->uses)
		return false;
	plan->written = plan->reached + positions;
	plan->wanted = plan->written + positions;
	plan->read = plan->wanted + positions;
	plan->live = plan->read + positions;
	plan->user = plan->uses + positions;
	plan->layers[0].links = arena_alloc(arena, links, sizeof(struct stage_link));
	for (size_t i = 0; i < positions; i++)
		plan->value_of[i] = STAGE_NONE;
	return plan->layers[0].links;
}

/* ST_LIMIT if sizes are out of bounds. */
static enum status plan_make(struct stage_plan *plan)
{
	const struct stage_params *p = &plan->params;

	plan_find_reached(plan);
	plan_border(plan, p->first_layer, &plan->in);
	plan_border(plan, p->first_layer + p->layer_count, &plan->out);
	plan->logits = STAGE_NONE;
	plan_inputs(plan);
	plan_count_uses(plan);
	plan_layers(plan);
	for (int i = 0; i < p->layer_count; i++)
		if (plan_taps_of(plan, plan->layers[i].layer) & STAGE_ABS_MAX)
			plan->values[plan->layers[i].output].watched = true;
	plan_outputs(plan);
	plan_find_wanted(plan);
	plan_backward_passes(plan);
	plan_last_reads(plan);
	plan_threads(plan);
	plan_buffers(plan);
	plan_backward(plan);
	/* A sum that has reached the bound is too large for offsets. */
	if (plan->in.floats >= STAGE_FLOATS || plan->state_floats >= STAGE_FLOATS ||
	    plan->out.floats >= STAGE_FLOATS || plan->scratch_floats >= STAGE_FLOATS ||
	    !memory_offset_slot(plan) || !memory_offset_shared(plan))
		return ST_LIMIT;
	return ST_OK;
}

enum status stage__plan(struct stage_plan *plan, const struct stage_params *params, struct err *err)
{
	enum status status;

	*plan = (struct stage_plan){.params = *params};
	if (arena_init(&plan->arena, 0))
		return err_nomem(err);
	status = plan_allocate(plan) ? plan_make(plan) : err_nomem(err);
	if (status != ST_OK)
		stage__plan_fini(plan);
	return status;
}

void stage__plan_fini(struct stage_plan *plan)
{
	arena_fini(&plan->arena);
}
