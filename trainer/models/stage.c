/*
 * A pipeline stage: creation, destruction, and access to its tensors.
 *
 * Threading: one thread at a time. Ownership: the stage owns its plan and its memory, and borrows
 * model and pool.
 *
 * Running it is the iteration over its layers, forward and backward: pointers are derived from the
 * plan's buffers, and the layers distribute their work through the pool. Nothing is allocated.
 */
#include "trainer/models/stage.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/models/stage_internal.h"

/* ---- limits ---------------------------------------------------------------------------------- */

static enum status stage_limit(const struct stage_params *p, struct err *err)
{
	double count = 0.0;

	for (int i = 0; i < p->layer_count; i++)
		count += (double)model_shape_count(&p->model->layers[p->first_layer + i].output);
	return err_set(err, ST_LIMIT,
		       "a micro-batch of %lld in %d slots would take %.1f GB of activations: it is "
		       "beyond the limit",
		       (long long)p->batch, p->slots,
		       count * (double)p->batch * (double)p->slots * 4e-9);
}

static enum status stage_check(const struct stage_params *p, struct err *err)
{
	assert(p->first_layer >= 0 && p->layer_count > 0);
	assert(p->layer_count <= p->model->layer_count - p->first_layer);
	if (p->batch < 1 || p->slots < 1)
		return err_set(err, ST_INVALID, "a stage needs a batch and slots of at least 1");
	if (p->model->batch && p->model->batch != p->batch)
		return err_set(err, ST_INVALID,
			       "the model's input layer asks for batches of %lld, but the batch "
			       "size is %lld",
			       (long long)p->model->batch, (long long)p->batch);
	/* Tensors must be within bounds. Matrix products count rows in an int; and layers compute
	 * their memory sizes before the sizes are summed. */
	for (int i = 0; i < p->layer_count; i++) {
		const struct model_layer *layer = &p->model->layers[p->first_layer + i];
		int64_t rows;

		if (__builtin_mul_overflow(model_shape_count(&layer->output), p->batch, &rows) ||
		    (size_t)rows > STAGE_FLOATS)
			return stage_limit(p, err);
		rows /= layer->output.ndim ? layer->output.dim[layer->output.ndim - 1] : 1;
		if (rows > INT_MAX)
			return stage_limit(p, err);
	}
	return ST_OK;
}

/* Sum up the floats of the whole block; false: too large. */
static bool stage_total(const struct stage_plan *plan, size_t *total)
{
	return !__builtin_mul_overflow(plan->slot_floats, (size_t)plan->params.slots, total) &&
	       !__builtin_add_overflow(*total, plan->shared_floats, total) &&
	       !__builtin_add_overflow(*total, plan->scratch_floats, total) &&
	       !__builtin_add_overflow(*total, plan->state_floats, total) && *total <= STAGE_FLOATS;
}

int64_t stage_memory(const struct stage_params *params)
{
	int64_t bytes = STAGE_UNCOUNTABLE;
	struct stage_plan plan;
	enum status status = stage__plan(&plan, params, NULL);
	size_t total;

	if (status != ST_OK)
		return status == ST_NOMEM ? STAGE_NO_MEMORY : STAGE_UNCOUNTABLE;
	if (stage_total(&plan, &total))
		bytes = (int64_t)(total * sizeof(float));
	stage__plan_fini(&plan);
	return bytes;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static enum status stage_no_memory(const struct stage_params *p, enum status status, size_t floats,
				   struct err *err)
{
	char bytes[FMT_SIZE];

	return err_set(err, status,
		       "out of memory: %s for a stage's activations (micro-batch of %lld, %d "
		       "slots)",
		       fmt_bytes(bytes, floats * sizeof(float)), (long long)p->batch, p->slots);
}

/* Systems overcommit memory, and kill the program that touches more than exists. */
static bool stage_fits_machine(size_t floats)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages <= 0 || size <= 0 ||
	       (double)floats * sizeof(float) <= (double)pages * (double)size;
}

static enum status stage_allocate(struct stage *stage, struct err *err)
{
	const struct stage_plan *plan = &stage->plan;
	const struct stage_params *p = &plan->params;
	size_t inputs = (size_t)plan->most_inputs, values = (size_t)plan->value_count, total;

	if (!stage_total(plan, &total))
		return stage_limit(p, err);
	if (!stage_fits_machine(total))
		return stage_no_memory(p, ST_LIMIT, total, err);
	stage->micro = mem_calloc((size_t)p->slots, sizeof(*stage->micro));
	stage->watches = mem_calloc(values, sizeof(*stage->watches));
	stage->inputs = mem_calloc(inputs, sizeof(*stage->inputs));
	stage->grad_inputs = mem_calloc(inputs, sizeof(*stage->grad_inputs));
	stage->add = mem_calloc(inputs, sizeof(*stage->add));
	if (!stage->micro || !stage->watches || !stage->inputs || !stage->grad_inputs ||
	    !stage->add)
		return err_nomem(err);

	stage->block = mem_aligned(total, sizeof(float));
	if (!stage->block)
		return stage_no_memory(p, ST_NOMEM, total, err);
	stage->shared = stage->block + plan->slot_floats * (size_t)p->slots;
	stage->scratch = stage->shared + plan->shared_floats;
	stage->states = stage->scratch + plan->scratch_floats;
	return ST_OK;
}

enum status stage_new(struct stage **out, const struct stage_params *params, struct err *err)
{
	enum status status = stage_check(params, err);
	struct stage *stage;

	*out = NULL;
	if (status != ST_OK)
		return status;
	stage = mem_calloc(1, sizeof(*stage));
	if (!stage)
		return err_nomem(err);

	status = stage__plan(&stage->plan, params, err);
	if (status != ST_OK) {
		mem_free(stage);
		return status == ST_LIMIT ? stage_limit(params, err) : status;
	}
	status = stage_allocate(stage, err);
	if (status != ST_OK) {
		stage_free(stage);
		return status;
	}
	*out = stage;
	return ST_OK;
}

void stage_free(struct stage *stage)
{
	if (!stage)
		return;
	mem_free(stage->block);
	mem_free(stage->micro);
	mem_free(stage->watches);
	mem_free(stage->inputs);
	mem_free(stage->grad_inputs);
	mem_free(stage->add);
	stage__plan_fini(&stage->plan);
	mem_free(stage);
}

/* ---- access ---------------------------------------------------------------------------------- */

float *stage__slot(const struct stage *stage, int slot)
{
	assert(slot >= 0 && slot < stage->plan.params.slots);
	return stage->block + stage->plan.slot_floats * (size_t)slot;
}

static float *stage_in_slot(const struct stage *stage, int slot, int buffer)
{
	assert(stage->plan.buffers[buffer].area == STAGE_SLOT);
	return stage__slot(stage, slot) + stage->plan.buffers[buffer].offset;
}

static float *stage_value(const struct stage *stage, int slot, int value)
{
	return stage_in_slot(stage, slot, stage->plan.values[value].buffer);
}

struct pool *stage_pool(const struct stage *stage)
{
	return stage->plan.params.pool;
}

float *stage_input(struct stage *stage, int slot)
{
	return stage__slot(stage, slot);
}

size_t stage_input_count(const struct stage *stage)
{
	return stage->plan.in.floats;
}

size_t stage_output_count(const struct stage *stage)
{
	return stage->plan.out.floats;
}

const float *stage_output(const struct stage *stage, int slot)
{
	return stage_value(stage, slot, stage->plan.out.tensors[0].value);
}

const float *stage_logits(const struct stage *stage, int slot)
{
	return stage->plan.logits == STAGE_NONE ? NULL
						: stage_in_slot(stage, slot, stage->plan.logits);
}

const float *stage_mask(const struct stage *stage, int slot, int output)
{
	const int mask = stage->plan.masks[output];

	return mask == STAGE_NONE ? NULL : stage_value(stage, slot, mask);
}

float *stage_state(struct stage *stage, int layer, size_t *count)
{
	const struct stage_layer *at = &stage->plan.layers[layer - stage->plan.params.first_layer];

	*count = model_layer_again(stage->plan.params.model, at->layer) ? 0 : at->state_floats;
	return stage->states + at->state;
}

void stage_receive(struct stage *stage, int slot, const struct stage *from, int from_slot)
{
	const struct stage_border *in = &stage->plan.in, *out = &from->plan.out;
	size_t batch = (size_t)from->micro[from_slot].batch;

	assert(in->count == out->count && in->floats == out->floats);
	for (int i = 0; i < in->count; i++) {
		const struct stage_value *value = &stage->plan.values[in->tensors[i].value];

		assert(in->tensors[i].position == out->tensors[i].position);
		memcpy(stage_value(stage, slot, in->tensors[i].value),
		       stage_value(from, from_slot, out->tensors[i].value),
		       value->each * batch * sizeof(float));
	}
}

#define RUN_ADD_GRAIN 32768 /* minimum floats of a sum that are worth a slice */

/* A pass in progress. */
struct run {
	struct stage *stage;
	float *base[STAGE_AREAS];
	struct layer_pass pass; /* the current layer's pass */
	stage_tap tap;          /* forward; NULL: no taps */
	void *tap_user;
};

static struct run run_begin(struct stage *stage, int slot, float *weights)
{
	const struct stage_params *p = &stage->plan.params;

	return (struct run){
		.stage = stage,
		.base = {[STAGE_SHARED] = stage->shared, [STAGE_SLOT] = stage__slot(stage, slot)},
		.pass =
			{
				.model = p->model,
				.batch = stage->micro[slot].batch,
				.training = p->training && !stage->inference,
				.pool = p->pool,
				.openblas = p->openblas,
				.weights = weights,
				.halves = p->halves,
				.inputs = stage->inputs,
				.scratch = stage->scratch,
				.seed = p->seed,
				.step = stage->micro[slot].step,
				.replica = p->replica,
				.grad_inputs = stage->grad_inputs,
				.add = stage->add,
			},
	};
}

static float *run_pointer(const struct run *run, int index)
{
	const struct stage_buffer *buffer;

	if (index == STAGE_NONE)
		return NULL;
	buffer = &run->stage->plan.buffers[index];
	return run->base[buffer->area] ? run->base[buffer->area] + buffer->offset : NULL;
}

static float *run_value(const struct run *run, int value)
{
	return run_pointer(run, run->stage->plan.values[value].buffer);
}

static size_t run_floats(const struct run *run, int value)
{
	return run->stage->plan.values[value].each * (size_t)run->pass.batch;
}

/* ---- poison ---------------------------------------------------------------------------------- */

/* Overwrite @values with NaN: all bits set. */
static void run_fill_nan(float *values, size_t count)
{
	memset(values, 0xff, count * sizeof(*values));
}

/* In a slot only the input is valid before a forward pass, and nothing after a backward pass. */
static void run_poison_slot(const struct run *run, size_t from)
{
	const struct stage_plan *plan = &run->stage->plan;

	if (plan->params.poison)
		run_fill_nan(run->base[STAGE_SLOT] + from, plan->slot_floats - from);
}

/* After the layer at @time: overwrite buffers that are not read again, and the layer's scratch. */
static void run_poison_dead(const struct run *run, int time)
{
	const struct stage_plan *plan = &run->stage->plan;

	if (!plan->params.poison)
		return;
	for (int i = 0; i < plan->buffer_count; i++)
		if (plan->buffers[i].area == STAGE_SHARED && plan->buffers[i].last == time)
			run_fill_nan(run_pointer(run, i), plan->buffers[i].floats);
	run_fill_nan(run->stage->scratch, plan->scratch_floats);
}

/* ---- one layer ------------------------------------------------------------------------------- */

/* The watch of the layer's output; NULL: not wanted. */
static struct kernel_watch *run_watch(const struct run *run, const struct stage_layer *at)
{
	if (!run->tap || !run->stage->plan.values[at->output].watched)
		return NULL;
	return &run->stage->watches[at->output];
}

/* Set the fields of the pass that both directions need. */
static void run_set_pass(struct run *run, const struct stage_layer *at)
{
	struct layer_pass *pass = &run->pass;

	pass->layer = at->layer;
	for (int k = 0; k < at->layer->input_count; k++)
		run->stage->inputs[k] = run_value(run, at->links[k].value);
	pass->output = run_value(run, at->output);
	pass->logits = run_pointer(run, at->logits);
	pass->kept = run_pointer(run, at->kept);
	pass->state = at->state_floats ? run->stage->states + at->state : NULL;
	pass->skip_activation = at->skip_activation;
	pass->relu = at->relu;
	pass->relu_most = at->relu_most;
	pass->plus = NULL;
	pass->watch = run_watch(run, at);
	pass->scores = run->tap && run->stage->scores ? run_pointer(run, at->scores) : NULL;
}

/* Set the fields for a forward pass that also computes the sum of the Add @sum after the layer. */
static void run_set_sum(struct run *run, const struct stage_layer *sum)
{
	struct layer_pass *pass = &run->pass;

	pass->plus = run_value(run, sum->plus);
	pass->relu = sum->relu;
	pass->relu_most = sum->relu_most;
	pass->watch = run_watch(run, sum);
}

static void run_layer(const struct run *run, void (*work)(const struct layer_pass *pass))
{
	const struct stage_params *p = &run->stage->plan.params;
	int layer = run->pass.layer->position;

	if (p->trace)
		p->trace(p->trace_user, layer, true);
	work(&run->pass);
	if (p->trace)
		p->trace(p->trace_user, layer, false);
}

/* ---- taps ------------------------------------------------------------------------------------ */

/* The layer's input after its forward pass, or NULL. The input of a fused ReLU was never stored;
 * that of a layer that runs in place is overwritten. */
static const float *run_surviving_input(const struct run *run, const struct stage_layer *at,
					int input)
{
	const struct stage_value *values = run->stage->plan.values;
	const int value = at->links[input].value;

	if (at->passes)
		return at->layer->ops->pass_through ? run_value(run, value) : NULL;
	return values[value].buffer == values[at->output].buffer ? NULL : run_value(run, value);
}

static void run_tap(const struct run *run, const struct stage_layer *at)
{
	struct kernel_watch *watch = run_watch(run, at);
	struct stage_tapped tapped = {
		.layer = at->layer->position,
		.values = run_value(run, at->output),
		.count = run_floats(run, at->output),
	};

	while (tapped.input_count < at->layer->input_count &&
	       tapped.input_count < STAGE_TAP_INPUTS) {
		const int k = tapped.input_count++;

		tapped.inputs[k] = (struct stage_tap_input){run_surviving_input(run, at, k),
							    run_floats(run, at->links[k].value)};
	}
	if (run->stage->scores && at->scores != STAGE_NONE) {
		tapped.scores = run_pointer(run, at->scores);
		tapped.score_count = compute_of(at->layer)->scores(&run->pass) / sizeof(float);
	}
	if (watch) {
		tapped.abs_max_known = true;
		tapped.abs_max =
			kernel_watch_most(watch, run->pass.pool, tapped.values, tapped.count);
	}
	run->tap(run->tap_user, &tapped);
}

/* ---- forward --------------------------------------------------------------------------------- */

void stage_set_training(struct stage *stage, bool training)
{
	stage->inference = !training;
}

void stage_set_scores(struct stage *stage, bool scores)
{
	stage->scores = scores;
}

void stage_forward(struct stage *stage, int slot, int64_t batch, uint64_t step, float *weights,
		   stage_tap tap, void *user)
{
	struct run run;

	assert(batch > 0 && batch <= stage->plan.params.batch);
	assert(slot >= 0 && slot < stage->plan.params.slots);
	stage->micro[slot] = (struct stage_micro){batch, step};
	run = run_begin(stage, slot, weights);
	run.tap = tap;
	run.tap_user = user;
	memset(stage->watches, 0, (size_t)stage->plan.value_count * sizeof(*stage->watches));
	/* Before a forward pass the shared area holds no values. */
	if (stage->plan.params.poison)
		run_fill_nan(stage->shared, stage->plan.shared_floats + stage->plan.scratch_floats);
	run_poison_slot(&run, model_align(stage->plan.in.floats));
	for (int i = 0; i < stage->plan.params.layer_count; i++) {
		const struct stage_layer *at = &stage->plan.layers[i];

		if (!at->passes && at->plus == STAGE_NONE) {
			run_set_pass(&run, at);
			if (i + 1 < stage->plan.params.layer_count && at[1].plus != STAGE_NONE)
				run_set_sum(&run, at + 1);
			run_layer(&run, compute_of(at->layer)->forward);
		}
		if (at->tapped && tap)
			run_tap(&run, at);
		run_poison_dead(&run, i);
	}
}

/* ---- single steps ---------------------------------------------------------------------------- */

static bool is_of_steps(const struct model_shape *shape, int64_t steps)
{
	return shape->ndim > 0 && shape->dim[0] == steps;
}

/* Whether a step of the layer's output depends on this step and earlier ones only. */
static bool is_stepwise(const struct model_layer *layer)
{
	const struct layer_attention *attention = layer->config;
	const struct layer_ops *ops = layer->ops;

	switch (ops->kind) {
	case LAYER_KIND_attention:
	case LAYER_KIND_multi_head_attention:
		return attention->causal && !layer->mask && !layer->key_mask;
	case LAYER_KIND_position_embedding: /* rows of a table, by position */
	case LAYER_KIND_add:
	case LAYER_KIND_average:
	case LAYER_KIND_maximum:
	case LAYER_KIND_minimum:
	case LAYER_KIND_multiply:
	case LAYER_KIND_subtract:
		return true;
	default: /* What works over the last axis must have another one for the steps. */
		return ops->pass_through ||
		       (ops->each_step && (ops->looks_up || layer->input.ndim > 1));
	}
}

bool stage_by_steps(const struct model *model)
{
	const int64_t steps = model->input.ndim > 0 ? model->input.dim[0] : 0;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		if (!is_stepwise(layer) || !is_of_steps(&layer->output, steps))
			return false;
		for (int k = 0; k < layer->input_count; k++)
			if (!is_of_steps(model_input_shape(model, layer, k), steps))
				return false;
	}
	return steps > 0;
}

/* Run one step. Layers other than attention run on a sequence of one step, at its offset. */
static void run_step(struct run *run, const struct stage_layer *at, int64_t step)
{
	struct model_layer one = *at->layer;
	struct layer_pass *pass = &run->pass;
	const int64_t steps = one.output.dim[0];

	run_set_pass(run, at);
	if (one.ops->kind != LAYER_KIND_attention &&
	    one.ops->kind != LAYER_KIND_multi_head_attention) {
		one.input.dim[0] = one.output.dim[0] = 1;
		pass->layer = &one;
		pass->output += step * (model_shape_count(&at->layer->output) / steps);
		for (int k = 0; k < one.input_count; k++)
			run->stage->inputs[k] +=
				step *
				((int64_t)run->stage->plan.values[at->links[k].value].each / steps);
	}
	run_layer(run, compute_of(at->layer)->forward);
}

void stage_forward_step(struct stage *stage, int slot, int64_t at, float *weights)
{
	struct run run = run_begin(stage, slot, weights);

	assert(stage->plan.params.unshared && stage->micro[slot].batch == 1);
	run.pass.one_step = true;
	run.pass.step_at = at;
	for (int i = 0; i < stage->plan.params.layer_count; i++) {
		const struct stage_layer *layer = &stage->plan.layers[i];

		/* Position embeddings do not depend on the input. */
		if (!layer->passes && layer->layer->ops->kind != LAYER_KIND_position_embedding)
			run_step(&run, layer, at);
	}
}

/* ---- backward -------------------------------------------------------------------------------- */

struct run_sum {
	float *sum;
	const float *part;
	size_t count;
};

static void run_add_slice(void *context, unsigned slice)
{
	const struct run_sum *s = context;
	size_t begin = (size_t)slice * RUN_ADD_GRAIN, left = s->count - begin;

	kernel_add(s->sum + begin, s->part + begin, min(left, RUN_ADD_GRAIN));
}

static void run_add(const struct run *run, float *sum, const float *part, size_t count)
{
	struct run_sum s = {sum, part, count};

	pool_share(run->pass.pool, kernel_work_floats(3 * (int64_t)count), run_add_slice, &s,
		   (unsigned)((count + RUN_ADD_GRAIN - 1) / RUN_ADD_GRAIN));
}

/* Set the destinations of the input gradients; false: none is wanted. */
static bool run_set_gradients(struct run *run, const struct stage_layer *at)
{
	bool any = false;

	for (int k = 0; k < at->layer->input_count; k++) {
		const struct stage_link *link = &at->links[k];
		float *to = run_pointer(run, link->gradient);

		any = any || to;
		run->stage->add[k] = to && link->add;
		run->stage->grad_inputs[k] =
			to && link->partial != STAGE_NONE ? run_pointer(run, link->partial) : to;
	}
	run->pass.grad_output = run_pointer(run, run->stage->plan.values[at->output].gradient);
	return any;
}

static void run_add_partials(const struct run *run, const struct stage_layer *at)
{
	for (int k = 0; k < at->layer->input_count; k++) {
		const struct stage_link *link = &at->links[k];

		if (link->partial != STAGE_NONE && run->stage->grad_inputs[k])
			run_add(run, run_pointer(run, link->gradient), run->stage->grad_inputs[k],
				run_floats(run, link->value));
	}
}

/* Run the backward pass; add a repeated call's parameter gradients to those of later calls. */
static void run_layer_backward(struct run *run, const struct stage_layer *at)
{
	const struct model_param *params = run->pass.model->params + at->layer->first_param;
	float *sum = run->pass.gradients, *part = run_pointer(run, at->partial);

	if (part && sum) {
		run->pass.gradients = part;
		run->pass.first_gradient = params->offset;
	}
	run_layer(run, compute_of(at->layer)->backward);
	for (int i = 0; part && sum && i < at->layer->param_count; i++)
		if (params[i].trainable)
			run_add(run, sum + params[i].offset,
				part + (params[i].offset - params->offset), params[i].count);
	run->pass.gradients = sum;
	run->pass.first_gradient = 0;
}

static void run_clear_gradients(const struct run *run, const struct stage_layer *at)
{
	const struct model *model = run->pass.model;

	for (int i = 0; i < at->layer->param_count; i++) {
		const struct model_param *param = &model->params[at->layer->first_param + i];

		if (param->trainable)
			memset(run->pass.gradients + param->offset, 0,
			       param->count * sizeof(float));
	}
}

/* Initialize gradients of incoming tensors before the first layer adds to them: the outgoing
 * gradient if the tensor also leaves the stage, 0 if the model's output does not depend on it. */
static void run_begin_grad_input(const struct run *run, const float *grad_output)
{
	const struct stage_plan *plan = &run->stage->plan;

	for (int i = 0; i < plan->in.count; i++) {
		const struct stage_tensor *tensor = &plan->in.tensors[i];
		const struct stage_value *value = &plan->values[tensor->value];

		if (value->wanted && !tensor->live)
			memset(run_pointer(run, value->gradient), 0,
			       run_floats(run, tensor->value) * sizeof(float));
	}
	for (int i = 0; i < plan->out.count; i++) {
		const struct stage_tensor *tensor = &plan->out.tensors[i];
		const struct stage_value *value = &plan->values[tensor->value];

		if (value->wanted && tensor->live &&
		    plan->buffers[value->gradient].area == STAGE_GRAD_INPUT)
			memcpy(run_pointer(run, value->gradient), grad_output + tensor->offset,
			       run_floats(run, tensor->value) * sizeof(float));
	}
}

/* Report that layers after @at are done. A layer's first call, done last, completes its
 * parameters. */
static void run_report_passed(const struct run *run, int at)
{
	const struct stage_params *p = &run->stage->plan.params;

	if (p->passed && at + 1 < p->layer_count)
		p->passed(p->passed_user, p->first_layer + at + 1);
}

void stage_backward(struct stage *stage, int slot, float *weights, float *grad_output,
		    float *gradients, float *grad_input)
{
	struct run run = run_begin(stage, slot, weights);
	const int count = stage->plan.params.layer_count;
	const bool later = stage->plan.params.split && !gradients;

	assert(stage->plan.params.training);
	run.base[STAGE_GRAD_OUTPUT] = grad_output;
	run.base[STAGE_GRAD_INPUT] = grad_input;
	run.pass.gradients = gradients;
	if (grad_input)
		run_begin_grad_input(&run, grad_output);
	for (int i = count - 1; i >= 0; i--) {
		const struct stage_layer *at = &stage->plan.layers[i];

		bool any;

		if (!later)
			run_report_passed(&run, i);
		if (at->unreached && !later)
			run_clear_gradients(&run, at);
		if (!at->backward)
			continue;
		any = run_set_gradients(&run, at);
		if (at->learns && later)
			memcpy(run_pointer(&run, at->held), run.pass.grad_output,
			       run_floats(&run, at->output) * sizeof(float));
		if (!any && (!at->learns || later))
			continue;
		run_set_pass(&run, at);
		run_layer_backward(&run, at);
		run_add_partials(&run, at);
		run_poison_dead(&run, 2 * count - 1 - i);
	}
	if (!later)
		run_poison_slot(&run, 0);
}

/* Each trainable layer repeats its backward pass, on the held gradient, for its parameters only. */
void stage_backward_weights(struct stage *stage, int slot, float *weights, float *gradients)
{
	struct run run = run_begin(stage, slot, weights);

	assert(stage->plan.params.split);
	run.pass.gradients = gradients;
	for (int i = stage->plan.params.layer_count - 1; i >= 0; i--) {
		const struct stage_layer *at = &stage->plan.layers[i];

		run_report_passed(&run, i);
		if (at->unreached)
			run_clear_gradients(&run, at);
		if (!at->backward || !at->learns)
			continue;
		for (int k = 0; k < at->layer->input_count; k++) {
			stage->grad_inputs[k] = NULL;
			stage->add[k] = false;
		}
		run.pass.grad_output = run_pointer(&run, at->held);
		run_set_pass(&run, at);
		run_layer_backward(&run, at);
		if (stage->plan.params.poison)
			run_fill_nan(stage->scratch, stage->plan.scratch_floats);
	}
	run_poison_slot(&run, 0);
}
