/*
 * A pipeline stage: creation, destruction, and access to its tensors.
 *
 * Threading: one thread at a time. Ownership: the stage owns its plan and its memory, and borrows
 * model and pool.
 */
#include "trainer/models/stage.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/fmt.h"
#include "common/mem.h"
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

/* Whether tensors are within bounds. Matrix products count rows in an int; and layers compute their
 * memory sizes before the sizes are summed. */
static bool stage_rows_fit(const struct stage_params *p)
{
	for (int i = 0; i < p->layer_count; i++) {
		const struct model_layer *layer = &p->model->layers[p->first_layer + i];
		int64_t rows;

		if (__builtin_mul_overflow(model_shape_count(&layer->output), p->batch, &rows) ||
		    (size_t)rows > STAGE_FLOATS)
			return false;
		rows /= layer->output.ndim ? layer->output.dim[layer->output.ndim - 1] : 1;
		if (rows > INT_MAX)
			return false;
	}
	return true;
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
	return stage_rows_fit(p) ? ST_OK : stage_limit(p, err);
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
	struct stage_plan plan;
	int64_t bytes = -1;
	size_t total;

	if (stage__plan(&plan, params, NULL) != ST_OK)
		return -1;
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
