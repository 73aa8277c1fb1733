/*
 * When the works of a pipeline begin and end: each device does its list in order, each work as soon
 * as its input is there; or all devices step by step.
 *
 * No state: scratch memory is freed before the functions return. Sums cannot overflow, since
 * ipu_pipeline_check() has bounded the sum of all works.
 */
#include "ipu/ipu_pipeline_internal.h"

#include <assert.h>

#include "common/mem.h"

#define NOT_YET (-1)

struct events {
	struct ipu_pipeline *pipeline;
	const struct ipu_pipeline_params *params;
	int64_t *made[2]; /* end of F and of B by stage, chunk, micro-batch; or NOT_YET */
	int *next;        /* by stage: its first work that has no time */
	int64_t *free_at; /* by stage */
	int *ready;       /* stages to look at: a stack, each once in it */
	bool *listed;     /* by stage: is it in there? */
	int ready_count;
};

/* A chunk's share of a stage's time: shares add up to the whole to the ns. */
static int64_t share(int64_t whole, int chunk, int chunks)
{
	return whole / chunks + (chunk < whole % chunks);
}

static int64_t duration(const struct ipu_pipeline_params *params,
			const struct ipu_pipeline_work *work, int chunks)
{
	int64_t whole = 0;

	switch (work->phase) {
	case 'F':
		whole = params->forward_ns[work->stage];
		break;
	case 'B':
		whole = params->backward_input_ns[work->stage];
		if (!ipu__pipeline_rules[params->kind].splits)
			whole += params->backward_weight_ns[work->stage];
		break;
	case 'W':
		whole = params->backward_weight_ns[work->stage];
		break;
	}
	return share(whole, work->chunk, chunks);
}

static int64_t *made_at(const struct events *e, char phase, int stage, int chunk, int microbatch)
{
	size_t row = (size_t)stage * (size_t)e->pipeline->chunks + (size_t)chunk;

	return &e->made[phase == 'B'][row * (size_t)e->pipeline->microbatches + (size_t)microbatch];
}

/* The stage before (+1: after) in the direction of the data; false at the end of the model. */
static bool neighbour(const struct ipu_pipeline *pipeline, int direction, int *stage, int *chunk)
{
	*stage += direction;
	if (*stage < 0 || *stage >= pipeline->stages) {
		*chunk += direction;
		*stage = direction < 0 ? pipeline->stages - 1 : 0;
	}
	return *chunk >= 0 && *chunk < pipeline->chunks;
}

/* When what @work needs from other works is there: NOT_YET, or the time. */
static int64_t input_at(const struct events *e, const struct ipu_pipeline_work *work)
{
	int64_t hop = e->pipeline->stages > 1 ? e->params->communication_ns : 0, made;
	int stage = work->stage, chunk = work->chunk;

	if (work->phase == 'W')
		return *made_at(e, 'B', stage, chunk, work->microbatch);
	if (work->phase == 'B' && *made_at(e, 'F', stage, chunk, work->microbatch) == NOT_YET)
		return NOT_YET;
	if (!neighbour(e->pipeline, work->phase == 'F' ? -1 : 1, &stage, &chunk))
		return 0;
	made = *made_at(e, work->phase, stage, chunk, work->microbatch);
	return made == NOT_YET ? NOT_YET : made + hop;
}

static void wake(struct events *e, int stage)
{
	if (e->listed[stage])
		return;
	e->listed[stage] = true;
	e->ready[e->ready_count++] = stage;
}

/* Place the works of @stage up to the first whose input is not made. */
static void advance(struct events *e, int stage)
{
	struct ipu_pipeline *pipeline = e->pipeline;

	for (; e->next[stage] < pipeline->first[stage + 1]; e->next[stage]++) {
		struct ipu_pipeline_work *work = &pipeline->works[e->next[stage]];
		int64_t input = input_at(e, work);
		int to = stage, chunk = work->chunk;

		if (input == NOT_YET)
			return;
		work->start_ns = input > e->free_at[stage] ? input : e->free_at[stage];
		work->end_ns = work->start_ns + duration(e->params, work, pipeline->chunks);
		e->free_at[stage] = work->end_ns;
		if (work->phase == 'W')
			continue;
		*made_at(e, work->phase, stage, chunk, work->microbatch) = work->end_ns;
		if (neighbour(pipeline, work->phase == 'F' ? 1 : -1, &to, &chunk) && to != stage)
			wake(e, to);
	}
}

static void events_fini(struct events *e)
{
	mem_free(e->made[0]);
	mem_free(e->made[1]);
	mem_free(e->next);
	mem_free(e->free_at);
	mem_free(e->ready);
	mem_free(e->listed);
}

static enum status events_init(struct events *e, struct err *err)
{
	size_t stages = (size_t)e->pipeline->stages;
	size_t cells = stages * (size_t)e->pipeline->chunks * (size_t)e->pipeline->microbatches;

	e->made[0] = mem_calloc(cells, sizeof(int64_t));
	e->made[1] = mem_calloc(cells, sizeof(int64_t));
	e->next = mem_calloc(stages, sizeof(*e->next));
	e->free_at = mem_calloc(stages, sizeof(*e->free_at));
	e->ready = mem_calloc(stages, sizeof(*e->ready));
	e->listed = mem_calloc(stages, sizeof(*e->listed));
	if (!e->made[0] || !e->made[1] || !e->next || !e->free_at || !e->ready || !e->listed)
		return err_nomem(err);
	for (size_t i = 0; i < cells; i++)
		e->made[0][i] = e->made[1][i] = NOT_YET;
	for (int s = e->pipeline->stages - 1; s >= 0; s--) {
		e->next[s] = e->pipeline->first[s];
		wake(e, s);
	}
	return ST_OK;
}

enum status ipu__pipeline_events(struct ipu_pipeline *pipeline,
				 const struct ipu_pipeline_params *params, struct err *err)
{
	struct events e = {.pipeline = pipeline, .params = params};
	enum status status = events_init(&e, err);

	while (status == ST_OK && e.ready_count > 0) {
		int stage = e.ready[--e.ready_count];

		e.listed[stage] = false;
		advance(&e, stage);
	}
	for (int s = 0; status == ST_OK && s < pipeline->stages; s++)
		assert(e.next[s] == pipeline->first[s + 1]); /* an order that waits for itself */
	events_fini(&e);
	return status;
}

/* ---- lockstep -------------------------------------------------------------------------------- */

struct steps {
	struct ipu_pipeline *pipeline;
	const struct ipu_pipeline_params *params;
	const struct ipu_schedule *schedule;
	int *first;       /* step t has list[first[t]] .. list[first[t + 1] - 1] */
	int *list;        /* works by step, within it by stage and in the stage's order */
	int64_t *free_at; /* by stage */
};

static bool sends(const struct ipu_pipeline *pipeline, const struct ipu_pipeline_work *work)
{
	return work->phase == 'F' ? work->stage < pipeline->stages - 1 : work->stage > 0;
}

static void steps_fini(struct steps *steps)
{
	mem_free(steps->first);
	mem_free(steps->list);
	mem_free(steps->free_at);
}

/* Sort by counting: a step of a long pipeline has few works, so nobody asks every stage. */
static enum status steps_init(struct steps *steps, struct err *err)
{
	const struct ipu_schedule *schedule = steps->schedule;
	int count = schedule->first[schedule->ipus];

	steps->first = mem_calloc((size_t)schedule->time_steps + 2, sizeof(*steps->first));
	steps->list = mem_calloc((size_t)count, sizeof(*steps->list));
	steps->free_at = mem_calloc((size_t)steps->pipeline->stages, sizeof(*steps->free_at));
	if (!steps->first || !steps->list || !steps->free_at)
		return err_nomem(err);
	for (int i = 0; i < count; i++)
		steps->first[schedule->works[i].time_step + 2]++;
	for (int t = 0; t < schedule->time_steps; t++)
		steps->first[t + 2] += steps->first[t + 1];
	for (int i = 0; i < count; i++)
		steps->list[steps->first[schedule->works[i].time_step + 1]++] = i;
	return ST_OK;
}

/* Run step @t from @begin; returns when the next one begins. */
static int64_t run_step(struct steps *steps, int t, int64_t begin)
{
	int64_t end = begin;
	bool sent = false;

	for (int i = steps->first[t]; i < steps->first[t + 1]; i++) {
		struct ipu_pipeline_work *work = &steps->pipeline->works[steps->list[i]];
		int64_t *free_at = &steps->free_at[work->stage];

		work->start_ns = *free_at > begin ? *free_at : begin;
		work->end_ns = work->start_ns + duration(steps->params, work, 1);
		*free_at = work->end_ns;
		end = work->end_ns > end ? work->end_ns : end;
		sent = sent || sends(steps->pipeline, work);
	}
	return end + (sent ? steps->params->communication_ns : 0);
}

enum status ipu__pipeline_lockstep(struct ipu_pipeline *pipeline,
				   const struct ipu_pipeline_params *params,
				   const struct ipu_schedule *schedule, struct err *err)
{
	struct steps steps = {.pipeline = pipeline, .params = params, .schedule = schedule};
	enum status status = steps_init(&steps, err);
	int64_t at = 0;

	for (int t = 0; status == ST_OK && t < schedule->time_steps; t++)
		at = run_step(&steps, t, at);
	steps_fini(&steps);
	return status;
}
