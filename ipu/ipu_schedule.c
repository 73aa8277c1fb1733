/*
 * Pipeline schedules: the table, validation, and the order of work of every IPU.
 *
 * No state besides the schedule, which is immutable after ipu_schedule_new(): any number of threads
 * may read it. The schedule owns its arrays.
 */
#include "ipu/ipu_schedule.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "ipu/ipu_schedule_internal.h"

#define STAGES_MAX 4096
#define WORKS_MAX  (1 << 20) /* each takes some 0.5 KB in the timeline */
#define NOT_YET    (-1)      /* as a time step */

/* ---- table ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	const struct ipu_schedule_row *row;
} table[] = {
#define ROW(kind, row, name) [IPU_##kind] = {name, &ipu__schedule_##row},
	IPU_SCHEDULE_MAP(ROW)
#undef ROW
};

const struct ipu_schedule_row *ipu_schedule_row(enum ipu_schedule_kind kind)
{
	assert((unsigned)kind < IPU_SCHEDULE_KINDS);
	return table[kind].row;
}

bool ipu_schedule_lockstep(enum ipu_schedule_kind kind)
{
	return ipu_schedule_row(kind)->pace != IPU_PACE_FREE;
}

const char *ipu_schedule_name(enum ipu_schedule_kind kind)
{
	assert((unsigned)kind < IPU_SCHEDULE_KINDS);
	return table[kind].name;
}

enum status ipu_schedule_kind_get(const char *name, enum ipu_schedule_kind *out, struct err *err)
{
#define NAME(kind, row, name) ", " name
	static const char all[] = "" IPU_SCHEDULE_MAP(NAME);
#undef NAME
	const char *names[IPU_SCHEDULE_KINDS], *nearest;

	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++) {
		names[i] = table[i].name;
		if (strcmp(names[i], name) == 0) {
			*out = (enum ipu_schedule_kind)i;
			return ST_OK;
		}
	}
	nearest = str_nearest(name, names, ARRAY_LEN(names));
	if (nearest)
		return err_set(err, ST_NOTFOUND, "unknown schedule \"%s\" (did you mean \"%s\"?)",
			       name, nearest);
	return err_set(err, ST_NOTFOUND, "unknown schedule \"%s\" (there are %s)", name, all + 2);
}

/* ---- helpers for the rows -------------------------------------------------------------------- */

int ipu__program_count(const struct ipu_schedule_shape *shape)
{
	return shape->training ? 2 * shape->stages : shape->stages;
}

/* Stage of program @p of a micro-batch: F0 .. F(N-1), B(N-1) .. B0. */
static int program_stage(const struct ipu_schedule_shape *shape, int p)
{
	return p < shape->stages ? p : 2 * shape->stages - 1 - p;
}

static int stage_ipu(const struct ipu_schedule_shape *shape, int stage)
{
	return shape->device ? shape->device[stage] : stage % shape->places;
}

int ipu__program_ipu(const struct ipu_schedule_shape *shape, int p)
{
	return stage_ipu(shape, program_stage(shape, p));
}

void ipu__list_add(struct ipu__list *list, char phase, int chunk, int microbatch)
{
	*list->next++ = (struct ipu_work){.time_step = NOT_YET,
					  .stage = chunk * list->shape->places + list->place,
					  .microbatch = microbatch,
					  .phase = phase};
}

struct ipu__form ipu__form_unknown(void)
{
	return (struct ipu__form){NAN, NAN};
}

struct ipu__form ipu__form_same(double makespan)
{
	return (struct ipu__form){makespan, makespan};
}

double ipu__times_all(const struct ipu__times *times)
{
	return times->f + times->b + times->w;
}

/* ---- validation ------------------------------------------------------------------------------ */

/* A single stage runs micro-batch after micro-batch under any schedule. */
static enum ipu_schedule_kind effective_kind(const struct ipu_schedule_params *params)
{
	return params->stages == 1 ? IPU_SEQUENTIAL : params->kind;
}

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

/* Number of places: if stages are assigned to IPUs in turn, the period after which IPUs repeat. */
static int count_places(const struct ipu_schedule_params *params)
{
	int places = 1;

	if (!params->device ||
	    ipu_schedule_row(effective_kind(params))->sharing != IPU_SHARE_IN_TURN)
		return params->stages;
	while (places < params->stages && params->device[places] != params->device[0])
		places++;
	return places;
}

static struct ipu_schedule_shape shape_of(const struct ipu_schedule_params *params)
{
	const int places = count_places(params);

	return (struct ipu_schedule_shape){.stages = params->stages,
					   .microbatches = params->microbatches,
					   .places = places,
					   .chunks = params->stages / places,
					   .training = params->training,
					   .ipus = ipu_count(params),
					   .device = params->device};
}

static enum status check_devices(const struct ipu_schedule_params *params, struct err *err)
{
	const int ipus = ipu_count(params);

	for (int s = 0; s < params->stages; s++) {
		const int device = params->device ? params->device[s] : s;

		if (device < 0 || device >= ipus)
			return err_set(err, ST_INVALID,
				       "stage %d is on IPU %d, but there are %d IPUs (0 to %d)", s,
				       device, ipus, ipus - 1);
	}
	return ST_OK;
}

static enum status check_sharing(const struct ipu_schedule_params *params, struct err *err)
{
	const enum ipu_schedule_kind kind = effective_kind(params);
	const enum ipu_schedule_sharing sharing = ipu_schedule_row(kind)->sharing;
	static const char *const needs[] = {
		[IPU_SHARE_FORWARD] = " training needs an IPU for each stage",
		[IPU_SHARE_NONE] = " needs an IPU for each stage",
		[IPU_SHARE_IN_TURN] =
			" deals the stages to the IPUs in turn (4 stages on IPUs 0, 1, 0, 1)",
	};
	const int *device = params->device;
	const int places = count_places(params);

	if (sharing == IPU_SHARE_IN_TURN && places == params->stages)
		return err_set(err, ST_INVALID,
			       "%s needs at least two stages on each IPU, dealt in turn (4 stages "
			       "on IPUs 0, 1, 0, 1)",
			       ipu_schedule_name(kind));
	if (sharing == IPU_SHARE_ANY || (sharing == IPU_SHARE_FORWARD && !params->training))
		return ST_OK;
	for (int s = 0; device && s < params->stages; s++) {
		if (s >= places && device[s] != device[s - places])
			return err_set(err, ST_INVALID,
				       "%s deals the stages to %d IPUs in turn, so stage %d "
				       "belongs on IPU %d as stage %d does, not on IPU %d",
				       ipu_schedule_name(kind), places, s, device[s - places],
				       s - places, device[s]);
		for (int other = 0; other < s && s < places; other++)
			if (device[other] == device[s])
				return err_set(err, ST_INVALID,
					       "%s%s, but stages %d and %d are both on IPU %d",
					       ipu_schedule_name(kind), needs[sharing], other, s,
					       device[s]);
	}
	if (params->stages % places != 0)
		return err_set(err, ST_INVALID,
			       "%s needs as many stages on each of %d IPUs: there are %d",
			       ipu_schedule_name(kind), places, params->stages);
	return ST_OK;
}

static enum status check_sizes(const struct ipu_schedule_params *params, const char *what,
			       struct err *err)
{
	int programs, most;

	if (params->stages < 1 || params->stages > STAGES_MAX)
		return err_set(err, ST_INVALID, "a pipeline has 1 to %d stages: it has %d",
			       STAGES_MAX, params->stages);
	if ((unsigned)params->kind >= IPU_SCHEDULE_KINDS)
		return err_set(err, ST_INVALID, "there is no schedule number %d",
			       (int)params->kind);
	if (params->microbatches < 1)
		return err_set(err, ST_INVALID, "%s must be at least 1: it is %d", what,
			       params->microbatches);
	programs = !params->training ? 1 : ipu_schedule_row(effective_kind(params))->splits ? 3 : 2;
	most = WORKS_MAX / (programs * params->stages);
	if (params->microbatches > most)
		return err_set(err, ST_LIMIT, "%s may be at most %d with %d stage%s: it is %d",
			       what, most, params->stages, params->stages == 1 ? "" : "s",
			       params->microbatches);
	return ST_OK;
}

/* The number of micro-batches must be a multiple of this. */
static int multiple_of(const struct ipu_schedule_params *params)
{
	const struct ipu_schedule_row *row = ipu_schedule_row(effective_kind(params));
	const struct ipu_schedule_shape shape = shape_of(params);
	int offsets[2 * STAGES_MAX];

	if (row->lines)
		return row->lines(&shape, offsets);
	return row->multiple ? row->multiple(&shape) : 1;
}

static enum status check_count(const struct ipu_schedule_params *params, const char *what,
			       struct err *err)
{
	const enum ipu_schedule_kind kind = effective_kind(params);
	const struct ipu_schedule_row *row = ipu_schedule_row(kind);
	const struct ipu_schedule_shape shape = shape_of(params);
	const int g = params->microbatches, multiple = multiple_of(params);

	if (g % multiple == 0 && g >= multiple)
		return ST_OK;
	return err_set(err, ST_INVALID,
		       "%s needs %s to be a multiple of %s (= %d) and at least that: it is %d",
		       ipu_schedule_name(kind), what, row->rule(&shape, multiple), multiple, g);
}

/* All but the rule for the number of micro-batches. */
static enum status check_stages(const struct ipu_schedule_params *params, const char *what,
				struct err *err)
{
	enum status status = check_sizes(params, what, err);

	if (status == ST_OK)
		status = check_devices(params, err);
	return status == ST_OK ? check_sharing(params, err) : status;
}

enum status ipu_schedule_check(const struct ipu_schedule_params *params, const char *what,
			       struct err *err)
{
	const enum status status = check_stages(params, what, err);

	return status == ST_OK ? check_count(params, what, err) : status;
}

enum status ipu_schedule_check_stages(const struct ipu_schedule_params *params, struct err *err)
{
	struct ipu_schedule_params one = *params;

	one.microbatches = 1;
	return check_stages(&one, "the number of micro-batches", err);
}

int ipu_schedule_multiple(const struct ipu_schedule_params *params)
{
	return ipu_schedule_check_stages(params, NULL) == ST_OK ? multiple_of(params) : 0;
}

/* ---- order of work --------------------------------------------------------------------------- */

static int compare_works(const void *left, const void *right)
{
	const struct ipu_work *a = left, *b = right;

	if (a->time_step == b->time_step && a->phase != b->phase)
		return a->phase == IPU_PHASE_F ? -1 : 1;
	return SORTED_BY(a, b, time_step, stage);
}

/* Assign time steps to lines of micro-batches through the programs; sort by step. */
static void schedule_lines(struct ipu_schedule *schedule, const struct ipu_schedule_row *row,
			   const struct ipu_schedule_shape *shape, int *offsets, int *next)
{
	const int lines = row->lines(shape, offsets), programs = ipu__program_count(shape);
	const int rounds = shape->microbatches / lines;

	memcpy(next, schedule->first, (size_t)schedule->ipus * sizeof(*next));
	for (int line = 0; line < lines; line++) {
		for (int round = 0; round < rounds; round++) {
			for (int p = 0; p < programs; p++) {
				const int ipu = ipu__program_ipu(shape, p);

				schedule->works[next[ipu]++] = (struct ipu_work){
					.time_step = offsets[line] + round * programs + p,
					.stage = program_stage(shape, p),
					.microbatch = line + round * lines,
					.phase = p < shape->stages ? IPU_PHASE_F : IPU_PHASE_B};
			}
		}
	}
	for (int i = 0; i < schedule->ipus; i++)
		qsort(schedule->works + schedule->first[i],
		      (size_t)(schedule->first[i + 1] - schedule->first[i]),
		      sizeof(*schedule->works), compare_works);
	schedule->time_steps = offsets[lines - 1] + rounds * programs;
	schedule->round = programs;
}

/* Order without backward passes: send as many micro-batches as there are places through one chunk,
 * then through the next. */
static void order_forwards(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out)
{
	struct ipu__list list = {shape, out, place};
	const int group = shape->places;

	for (int first = 0; first < shape->microbatches; first += group)
		for (int c = 0; c < shape->chunks; c++)
			for (int i = first; i < first + group && i < shape->microbatches; i++)
				ipu__list_add(&list, IPU_PHASE_F, c, i);
}

/* Works of a stage in a phase that have a time step so far: their number and their steps. */
struct progress {
	int count, *steps;
};

static struct progress *progress_of(struct progress *all, int stages, int stage, char phase)
{
	return &all[(phase == IPU_PHASE_F ? 0 : phase == IPU_PHASE_B ? 1 : 2) * stages + stage];
}

/* Return whether another work makes the input of @work before @step. */
static bool is_ready(const struct ipu_schedule *schedule, struct progress *all,
		     const struct ipu_work *work, int step)
{
	const int last = schedule->stages - 1;
	const struct progress *from;

	if (work->phase == IPU_PHASE_F && work->stage == 0)
		return true;
	if (work->phase == IPU_PHASE_F)
		from = progress_of(all, schedule->stages, work->stage - 1, IPU_PHASE_F);
	else if (work->phase == IPU_PHASE_W)
		from = progress_of(all, schedule->stages, work->stage, IPU_PHASE_B);
	else
		from = progress_of(all, schedule->stages, work->stage + (work->stage < last),
				   work->stage < last ? IPU_PHASE_B : IPU_PHASE_F);
	return from->count > work->microbatch && from->steps[work->microbatch] < step;
}

/* Assign time steps: each IPU runs at most one work per step, as soon as its input exists. */
static void assign_steps(struct ipu_schedule *schedule, struct progress *all, int *next)
{
	const int count = schedule->first[schedule->ipus];
	int placed = 0;

	memcpy(next, schedule->first, (size_t)schedule->ipus * sizeof(*next));
	for (int step = 0; placed < count; step++) {
		const int before = placed;

		for (int i = 0; i < schedule->ipus; i++) {
			struct ipu_work *work = &schedule->works[next[i]];
			struct progress *own;

			if (next[i] == schedule->first[i + 1] ||
			    !is_ready(schedule, all, work, step))
				continue;
			own = progress_of(all, schedule->stages, work->stage, work->phase);
			assert(own->count == work->microbatch);
			own->steps[own->count++] = work->time_step = step;
			next[i]++;
			placed++;
		}
		assert(placed > before); /* otherwise the order is a deadlock */
		(void)before;
		schedule->time_steps = step + 1;
	}
}

/* Return false if memory runs out. */
static bool schedule_orders(struct ipu_schedule *schedule, const struct ipu_schedule_row *row,
			    const struct ipu_schedule_shape *shape, int *next)
{
	const size_t rows = 3 * (size_t)shape->stages, each = (size_t)shape->microbatches;
	struct progress *all = mem_calloc(rows, sizeof(*all));
	int *steps = mem_calloc(rows * each, sizeof(*steps));

	for (int place = 0; place < shape->places; place++) {
		struct ipu_work *works = &schedule->works[schedule->first[stage_ipu(shape, place)]];

		if (shape->training)
			row->order(shape, place, works);
		else
			order_forwards(shape, place, works);
	}
	for (size_t r = 0; all && r < rows; r++)
		all[r].steps = steps + r * each;
	if (all && steps)
		assign_steps(schedule, all, next);
	mem_free(all);
	mem_free(steps);
	return all && steps;
}

/* Counting sort; returns false if memory runs out. */
static bool sort_by_step(struct ipu_schedule *schedule)
{
	const int count = schedule->first[schedule->ipus];
	int *first = mem_calloc((size_t)schedule->time_steps + 2, sizeof(*first));

	schedule->step_first = first;
	if (!first)
		return false;
	for (int i = 0; i < count; i++)
		first[schedule->works[i].time_step + 2]++;
	for (int t = 0; t < schedule->time_steps; t++)
		first[t + 2] += first[t + 1];
	for (int i = 0; i < count; i++)
		schedule->by_step[first[schedule->works[i].time_step + 1]++] = i;
	return true;
}

/* Count the micro-batches that are live between each stage's forward and the end of its backward.
 * @scratch: two zeros per stage. */
static void measure_live(struct ipu_schedule *schedule, int *scratch)
{
	const char last = schedule->splits ? IPU_PHASE_W : IPU_PHASE_B;
	int *live = scratch, *pushed_step = scratch + schedule->stages;

	for (int s = 0; s < schedule->stages; s++)
		schedule->live[s] = 1;
	for (int i = 0; schedule->training && i < schedule->first[schedule->ipus]; i++) {
		const struct ipu_work *work = &schedule->works[i];
		const int s = work->stage;

		if (work->phase == IPU_PHASE_F) {
			pushed_step[s] = work->time_step;
			live[s]++;
			schedule->live[s] = max(live[s], schedule->live[s]);
		} else {
			const int waiting = live[s] - (pushed_step[s] == work->time_step) - 1;

			schedule->depth[s] = max(waiting, schedule->depth[s]);
			live[s] -= work->phase == last;
		}
	}
}

enum status ipu__schedule_make(struct ipu_schedule **out, enum ipu_schedule_kind kind,
			       const struct ipu_schedule_shape *shape, struct err *err)
{
	const struct ipu_schedule_row *row = ipu_schedule_row(kind);
	const size_t ipus = (size_t)shape->ipus, stages = (size_t)shape->stages;
	const int programs = !shape->training ? 1 : row->splits ? 3 : 2;
	const size_t works = (size_t)programs * stages * (size_t)shape->microbatches;
	struct ipu_schedule *schedule = mem_calloc(1, sizeof(*schedule));
	int *next = mem_calloc(ipus, sizeof(*next));
	int *offsets = mem_calloc(2 * stages, sizeof(*offsets));

	*out = NULL;
	if (!schedule || !next || !offsets)
		goto end;
	*schedule = (struct ipu_schedule){
		.kind = kind,
		.stages = shape->stages,
		.microbatches = shape->microbatches,
		.ipus = shape->ipus,
		.training = shape->training,
		.splits = shape->training && row->splits,
		.device = mem_calloc(stages, sizeof(int)),
		.works = mem_calloc(works, sizeof(struct ipu_work)),
		.first = mem_calloc(ipus + 1, sizeof(int)),
		.by_step = mem_calloc(works, sizeof(int)),
		.live = mem_calloc(stages, sizeof(int)),
		.depth = mem_calloc(stages, sizeof(int)),
	};
	if (!schedule->device || !schedule->works || !schedule->first || !schedule->by_step ||
	    !schedule->live || !schedule->depth)
		goto end;
	for (int s = 0; s < shape->stages; s++) {
		schedule->device[s] = stage_ipu(shape, s);
		schedule->first[schedule->device[s] + 1] += programs * shape->microbatches;
	}
	for (int i = 0; i < shape->ipus; i++)
		schedule->first[i + 1] += schedule->first[i];
	if (row->lines)
		schedule_lines(schedule, row, shape, offsets, next);
	else if (!schedule_orders(schedule, row, shape, next))
		goto end;
	if (!sort_by_step(schedule))
		goto end;
	memset(offsets, 0, 2 * stages * sizeof(*offsets));
	measure_live(schedule, offsets);
	*out = schedule;
end:
	mem_free(next);
	mem_free(offsets);
	if (*out)
		return ST_OK;
	ipu_schedule_free(schedule);
	return err_nomem(err);
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

enum status ipu_schedule_new(struct ipu_schedule **out, const struct ipu_schedule_params *params,
			     struct err *err)
{
	struct ipu_schedule_shape shape;
	enum status status;

	*out = NULL;
	status = ipu_schedule_check(params, "the number of micro-batches", err);
	if (status != ST_OK)
		return status;
	shape = shape_of(params);
	return ipu__schedule_make(out, effective_kind(params), &shape, err);
}

void ipu_schedule_free(struct ipu_schedule *schedule)
{
	if (!schedule)
		return;
	mem_free(schedule->device);
	mem_free(schedule->works);
	mem_free(schedule->first);
	mem_free(schedule->by_step);
	mem_free(schedule->step_first);
	mem_free(schedule->live);
	mem_free(schedule->depth);
	mem_free(schedule);
}

/* ---- derived figures ------------------------------------------------------------------------- */

int ipu_schedule_live(const struct ipu_schedule *schedule, int stage)
{
	assert(stage >= 0 && stage < schedule->stages);
	return schedule->live[stage];
}

int ipu_schedule_fifo_depth(const struct ipu_schedule *schedule, int stage)
{
	assert(stage >= 0 && stage < schedule->stages);
	return schedule->depth[stage];
}

int ipu_schedule_held(const struct ipu_schedule *schedule, int stage)
{
	const int ipu = schedule->device[stage];
	int held = 0, most = 0;

	for (int i = schedule->first[ipu]; schedule->splits && i < schedule->first[ipu + 1]; i++) {
		if (schedule->works[i].stage != stage)
			continue;
		held += schedule->works[i].phase == IPU_PHASE_B;
		most = max(held, most);
		held -= schedule->works[i].phase == IPU_PHASE_W;
	}
	return most;
}

/* Most micro-batches between the start of @phase of stage @from and its end of stage @to. */
static int count_between(const struct ipu_schedule *schedule, char phase, int from, int to)
{
	const int count = schedule->first[schedule->ipus];
	int made = 0, taken = 0, being_taken = 0, most = 0, step = NOT_YET;

	for (int i = 0; i < count; i++) {
		const struct ipu_work *work = &schedule->works[schedule->by_step[i]];

		if (work->time_step != step) {
			step = work->time_step;
			taken += being_taken;
			being_taken = 0;
		}
		if (work->phase != phase)
			continue;
		made += work->stage == from;
		being_taken += work->stage == to;
		most = max(made - taken, most);
	}
	return most;
}

int ipu_schedule_in_flight(const struct ipu_schedule *schedule, int stage, char phase)
{
	return count_between(schedule, phase, stage, stage + (phase == IPU_PHASE_F ? 1 : -1));
}

int ipu_schedule_ahead(const struct ipu_schedule *schedule)
{
	return count_between(schedule, IPU_PHASE_F, 0, schedule->stages - 1);
}

/* ---- times ----------------------------------------------------------------------------------- */

struct clock {
	const struct ipu_schedule *schedule;
	const struct ipu_schedule_costs *costs;
	double *made[2]; /* end of F and of B at [stage * microbatches + microbatch] */
	double *free_at; /* by IPU */
};

static double *made_entry(const struct clock *clock, char phase, int stage, int microbatch)
{
	const size_t each = (size_t)clock->schedule->microbatches;

	return &clock->made[phase == IPU_PHASE_B][(size_t)stage * each + (size_t)microbatch];
}

/* Time at which the input of @work is available. Its producer is in an earlier step, so its end is
 * known. */
static double input_time(const struct clock *clock, const struct ipu_work *work)
{
	const struct ipu_schedule *schedule = clock->schedule;
	const int from = work->stage + (work->phase == IPU_PHASE_F ? -1 : 1);

	if (work->phase == IPU_PHASE_W || from < 0)
		return 0;
	if (from == schedule->stages)
		return *made_entry(clock, IPU_PHASE_F, work->stage, work->microbatch);
	return *made_entry(clock, work->phase, from, work->microbatch) +
	       (schedule->device[from] != schedule->device[work->stage] ? clock->costs->hop : 0);
}

static bool sends(const struct ipu_schedule *schedule, const struct ipu_work *work)
{
	const int to = work->stage + (work->phase == IPU_PHASE_F ? 1 : -1);

	return work->phase != IPU_PHASE_W && to >= 0 && to < schedule->stages &&
	       schedule->device[to] != schedule->device[work->stage];
}

static void run_works(struct clock *clock, double *start, double *end)
{
	const struct ipu_schedule *schedule = clock->schedule;
	const bool lockstep = clock->costs->lockstep;
	const int count = schedule->first[schedule->ipus];
	double step_at = 0, step_end = 0;
	bool sent = false;
	int step = 0;

	for (int i = 0; i < count; i++) {
		const int w = schedule->by_step[i];
		const struct ipu_work *work = &schedule->works[w];
		const double *cost = work->phase == IPU_PHASE_F   ? clock->costs->forward
				     : work->phase == IPU_PHASE_B ? clock->costs->backward
								  : clock->costs->weight;
		double *free_at = &clock->free_at[schedule->device[work->stage]];
		double input;

		if (work->time_step != step) {
			step = work->time_step;
			step_at = step_end = step_end + (sent ? clock->costs->hop : 0);
			sent = false;
		}
		input = lockstep ? step_at : input_time(clock, work);
		start[w] = max(input, *free_at);
		end[w] = *free_at = start[w] + cost[work->stage];
		step_end = max(end[w], step_end);
		sent = sent || sends(schedule, work);
		if (work->phase != IPU_PHASE_W)
			*made_entry(clock, work->phase, work->stage, work->microbatch) = end[w];
	}
}

enum status ipu_schedule_run(const struct ipu_schedule *schedule,
			     const struct ipu_schedule_costs *costs, double *start, double *end,
			     struct err *err)
{
	const size_t cells = (size_t)schedule->stages * (size_t)schedule->microbatches;
	struct clock clock = {
		.schedule = schedule,
		.costs = costs,
		.made = {mem_calloc(cells, sizeof(double)), mem_calloc(cells, sizeof(double))},
		.free_at = mem_calloc((size_t)schedule->ipus, sizeof(double))};
	const bool there = clock.made[0] && clock.made[1] && clock.free_at;

	if (there)
		run_works(&clock, start, end);
	mem_free(clock.made[0]);
	mem_free(clock.made[1]);
	mem_free(clock.free_at);
	return there ? ST_OK : err_nomem(err);
}
