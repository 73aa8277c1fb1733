/*
 * Pipeline schedules: offsets of the lines first, then every stage program sorted by IPU and step.
 *
 * No state besides the schedule, which does not change after ipu_schedule_new(): readable by any
 * number of threads. The schedule owns its arrays.
 */
#include "ipu/ipu_schedule.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define STAGES_MAX 4096
#define WORKS_MAX  (1 << 20) /* each has its place in the timeline: some 0.5 KB */

/* The programs of one micro-batch and the lines of micro-batches, before they are laid out. */
struct plan {
	int stages, programs, ipus, lines;
	int *offsets;      /* of each line, ascending; room for `programs` */
	const int *device; /* as given: NULL is the identity */
};

static const char *const schedule_names[] = {
	[IPU_GROUPED] = "Grouped",
	[IPU_INTERLEAVED] = "Interleaved",
	[IPU_SEQUENTIAL] = "Sequential",
};
_Static_assert(ARRAY_LEN(schedule_names) == IPU_SCHEDULE_KINDS, "schedule table out of step");

const char *ipu_schedule_name(enum ipu_schedule_kind kind)
{
	assert((unsigned)kind < IPU_SCHEDULE_KINDS);
	return schedule_names[kind];
}

enum status ipu_schedule_kind_get(const char *name, enum ipu_schedule_kind *out, struct err *err)
{
	const char *nearest;

	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++) {
		if (strcmp(schedule_names[i], name) == 0) {
			*out = (enum ipu_schedule_kind)i;
			return ST_OK;
		}
	}
	nearest = str_nearest(name, schedule_names, ARRAY_LEN(schedule_names));
	if (nearest)
		return err_set(err, ST_NOTFOUND, "unknown schedule \"%s\" (did you mean \"%s\"?)",
			       name, nearest);
	return err_set(err, ST_NOTFOUND,
		       "unknown schedule \"%s\" (there are Grouped, Interleaved, Sequential)",
		       name);
}

/* ---- programs and lines ---------------------------------------------------------------------- */

/* Program @p of a micro-batch: F0 .. F(N-1), B(N-1) .. B0. */
static int program_stage(int stages, int p)
{
	return p < stages ? p : 2 * stages - 1 - p;
}

static int plan_ipu(const struct plan *plan, int p)
{
	int stage = program_stage(plan->stages, p);

	return plan->device ? plan->device[stage] : stage;
}

/* Does a line at offset @a ever use an IPU in the same step as one at offset @b? Both repeat every
 * `programs` steps, so one period tells. */
static bool lines_meet(const struct plan *plan, int a, int b)
{
	for (int p = 0; p < plan->programs; p++) {
		int q = (p + b - a) % plan->programs;

		if (q < 0)
			q += plan->programs;
		if (plan_ipu(plan, p) == plan_ipu(plan, q))
			return true;
	}
	return false;
}

static void interleave(struct plan *plan)
{
	for (int offset = 0; offset < plan->programs; offset++) {
		bool free_of_all = true;

		for (int i = 0; i < plan->lines && free_of_all; i++)
			free_of_all = !lines_meet(plan, offset, plan->offsets[i]);
		if (free_of_all)
			plan->offsets[plan->lines++] = offset;
	}
}

static enum ipu_schedule_kind effective_kind(const struct ipu_schedule_params *params)
{
	/* One stage is no pipeline: micro-batch after micro-batch. */
	return params->stages == 1 ? IPU_SEQUENTIAL : params->kind;
}

static enum status plan_lines(struct plan *plan, const struct ipu_schedule_params *params,
			      struct err *err)
{
	plan->stages = params->stages;
	plan->programs = params->training ? 2 * params->stages : params->stages;
	plan->ipus = params->ipus;
	plan->device = params->device;
	plan->lines = 0;
	plan->offsets = mem_calloc((size_t)plan->programs, sizeof(int));
	if (!plan->offsets)
		return err_nomem(err);
	switch (effective_kind(params)) {
	case IPU_GROUPED:
		for (int i = 0; i < plan->programs; i++)
			plan->offsets[i] = i;
		plan->lines = plan->programs;
		break;
	case IPU_INTERLEAVED:
		interleave(plan);
		break;
	case IPU_SEQUENTIAL:
	case IPU_SCHEDULE_KINDS:
		plan->lines = 1;
		break;
	}
	return ST_OK;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static int ipu_count(const struct ipu_schedule_params *params)
{
	int ipus = params->ipus;

	if (ipus > 0)
		return ipus;
	if (!params->device)
		return params->stages;
	for (int s = 0; s < params->stages; s++) {
		if (params->device[s] >= ipus)
			ipus = params->device[s] + 1;
	}
	return ipus;
}

static enum status check_devices(const struct ipu_schedule_params *params, struct err *err)
{
	int ipus = ipu_count(params);

	for (int s = 0; s < params->stages; s++) {
		int device = params->device ? params->device[s] : s;

		if (device < 0 || device >= ipus)
			return err_set(err, ST_INVALID,
				       "stage %d is on IPU %d, but there are %d IPUs (0 to %d)", s,
				       device, ipus, ipus - 1);
		if (effective_kind(params) != IPU_INTERLEAVED || !params->training ||
		    !params->device)
			continue;
		for (int other = 0; other < s; other++) {
			if (params->device[other] == device)
				return err_set(err, ST_INVALID,
					       "Interleaved training needs an IPU for each stage, "
					       "but stages %d and %d are both on IPU %d",
					       other, s, device);
		}
	}
	return ST_OK;
}

/* The number of lines in the words of the rule. */
static const char *lines_text(const struct plan *plan, enum ipu_schedule_kind kind)
{
	if (kind == IPU_GROUPED)
		return plan->programs == plan->stages ? "the number of stages" : "2 x stages";
	return plan->lines == plan->stages ? "the number of stages" : "the lines that fit the IPUs";
}

static enum status check_count(const struct ipu_schedule_params *params, const char *what,
			       const struct plan *plan, struct err *err)
{
	int g = params->microbatches;

	if (g % plan->lines == 0 && g >= plan->lines)
		return ST_OK;
	return err_set(err, ST_INVALID,
		       "%s needs %s to be a multiple of %s (= %d) and at least that: it is %d",
		       ipu_schedule_name(effective_kind(params)), what,
		       lines_text(plan, effective_kind(params)), plan->lines, g);
}

static enum status check_sizes(const struct ipu_schedule_params *params, const char *what,
			       struct err *err)
{
	int most;

	if (params->stages < 1 || params->stages > STAGES_MAX)
		return err_set(err, ST_INVALID, "a pipeline has 1 to %d stages: it has %d",
			       STAGES_MAX, params->stages);
	if ((unsigned)params->kind >= IPU_SCHEDULE_KINDS)
		return err_set(err, ST_INVALID, "there is no schedule number %d",
			       (int)params->kind);
	if (params->microbatches < 1)
		return err_set(err, ST_INVALID, "%s must be at least 1: it is %d", what,
			       params->microbatches);
	most = WORKS_MAX / (params->training ? 2 * params->stages : params->stages);
	if (params->microbatches > most)
		return err_set(err, ST_LIMIT, "%s may be at most %d with %d stage%s: it is %d",
			       what, most, params->stages, params->stages == 1 ? "" : "s",
			       params->microbatches);
	return ST_OK;
}

enum status ipu_schedule_check(const struct ipu_schedule_params *params, const char *what,
			       struct err *err)
{
	struct plan plan;
	enum status status = check_sizes(params, what, err);

	if (status == ST_OK)
		status = check_devices(params, err);
	if (status == ST_OK)
		status = plan_lines(&plan, params, err);
	if (status != ST_OK)
		return status;
	status = check_count(params, what, &plan, err);
	mem_free(plan.offsets);
	return status;
}

/* ---- layout ---------------------------------------------------------------------------------- */

static int compare_works(const void *left, const void *right)
{
	const struct ipu_work *a = left, *b = right;

	if (a->time_step != b->time_step)
		return a->time_step < b->time_step ? -1 : 1;
	if (a->phase != b->phase)
		return a->phase == 'F' ? -1 : 1;
	return (a->stage > b->stage) - (a->stage < b->stage);
}

/* Count each IPU's works, so that first[] can be cut before they are placed. */
static void cut_works(struct ipu_schedule *schedule, const struct plan *plan)
{
	for (int p = 0; p < plan->programs; p++)
		schedule->first[plan_ipu(plan, p) + 1] += schedule->microbatches;
	for (int i = 0; i < schedule->ipus; i++)
		schedule->first[i + 1] += schedule->first[i];
}

static void place_works(struct ipu_schedule *schedule, const struct plan *plan, int *next)
{
	int rounds = schedule->microbatches / plan->lines;

	memcpy(next, schedule->first, (size_t)schedule->ipus * sizeof(*next));
	for (int line = 0; line < plan->lines; line++) {
		for (int round = 0; round < rounds; round++) {
			for (int p = 0; p < plan->programs; p++) {
				struct ipu_work *work = &schedule->works[next[plan_ipu(plan, p)]++];

				work->time_step = plan->offsets[line] + round * plan->programs + p;
				work->stage = program_stage(plan->stages, p);
				work->microbatch = line + round * plan->lines;
				work->phase = p < plan->stages ? 'F' : 'B';
			}
		}
	}
	for (int i = 0; i < schedule->ipus; i++)
		qsort(schedule->works + schedule->first[i],
		      (size_t)(schedule->first[i + 1] - schedule->first[i]),
		      sizeof(*schedule->works), compare_works);
	schedule->time_steps = plan->offsets[plan->lines - 1] + rounds * plan->programs;
}

static enum status schedule_fill(struct ipu_schedule *schedule, const struct plan *plan,
				 struct err *err)
{
	size_t works = (size_t)plan->programs * (size_t)schedule->microbatches;
	int *next = mem_calloc((size_t)schedule->ipus, sizeof(*next));

	schedule->device = mem_calloc((size_t)schedule->stages, sizeof(*schedule->device));
	schedule->first = mem_calloc((size_t)schedule->ipus + 1, sizeof(*schedule->first));
	schedule->works = mem_calloc(works, sizeof(*schedule->works));
	if (!next || !schedule->device || !schedule->first || !schedule->works) {
		mem_free(next);
		return err_nomem(err);
	}
	for (int s = 0; s < schedule->stages; s++)
		schedule->device[s] = plan_ipu(plan, s);
	cut_works(schedule, plan);
	place_works(schedule, plan, next);
	mem_free(next);
	return ST_OK;
}

enum status ipu_schedule_new(struct ipu_schedule **out, const struct ipu_schedule_params *params,
			     struct err *err)
{
	struct ipu_schedule *schedule;
	struct plan plan;
	enum status status;

	*out = NULL;
	status = ipu_schedule_check(params, "the number of micro-batches", err);
	if (status != ST_OK)
		return status;
	status = plan_lines(&plan, params, err);
	if (status != ST_OK)
		return status;
	schedule = mem_calloc(1, sizeof(*schedule));
	if (!schedule) {
		mem_free(plan.offsets);
		return err_nomem(err);
	}
	schedule->kind = effective_kind(params);
	schedule->stages = params->stages;
	schedule->microbatches = params->microbatches;
	schedule->ipus = ipu_count(params);
	schedule->training = params->training;
	status = schedule_fill(schedule, &plan, err);
	mem_free(plan.offsets);
	if (status != ST_OK) {
		ipu_schedule_free(schedule);
		return status;
	}
	*out = schedule;
	return ST_OK;
}

void ipu_schedule_free(struct ipu_schedule *schedule)
{
	if (!schedule)
		return;
	mem_free(schedule->device);
	mem_free(schedule->works);
	mem_free(schedule->first);
	mem_free(schedule);
}

int ipu_schedule_fifo_depth(const struct ipu_schedule *schedule, int stage)
{
	int after = schedule->stages - 1 - stage;

	assert(stage >= 0 && stage < schedule->stages);
	if (!schedule->training || schedule->kind == IPU_SEQUENTIAL)
		return 0;
	return schedule->kind == IPU_GROUPED ? 2 * after : after;
}

int ipu_schedule_live(const struct ipu_schedule *schedule, int stage)
{
	/* A Grouped step runs the forward first: the new activation is there beside the one that
	 * the backward of the same step still reads. */
	int beside = schedule->training && schedule->kind == IPU_GROUPED ? 1 : 0;

	return ipu_schedule_fifo_depth(schedule, stage) + 1 + beside;
}
