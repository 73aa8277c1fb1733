/*
 * Optimal partitioning: dynamic programming from the last stage to the first, for one objective at
 * a time (memory, work, transfers and then bytes sent) within bounds for the others.
 *
 * A time step takes the greatest work plus the transfers of all stages. The search for the least
 * transfers is repeated with ever tighter bounds for the work until it cannot improve any more.
 *
 * Threads: none.
 */
#include "ipu/ipu_partition.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

/* A unit's backward pass reads a flow; @before is the previous unit that does, or -1. */
struct partition_keep {
	int64_t bytes, fifo;
	int before;
};

struct partition_end {
	int64_t bytes;
	int made;
};

/* Tables for the costs of ranges; a border has the number of the unit after it. */
struct partition_table {
	const struct ipu_partition_params *params;
	int64_t *border_bytes;       /* over each border; border 0: from the host */
	int64_t *border_sent;        /* the part that is sent between IPUs */
	int64_t *border_cycles;      /* of a link; 0 at both ends */
	struct partition_keep *keep; /* those of unit u from keep_first[u] on */
	struct partition_end *end;   /* flows whose last reader is u, from end_first[u] on */
	int *keep_first, *end_first;
	int64_t *memory; /* by stage */
	int64_t *live;   /* by stage: micro-batches whose kept tensors it holds */
	bool *fifo;      /* by stage: it has one */
};

/* Sums over the units @first to @end - 1; extended by one unit at a time. */
struct partition_range {
	const struct partition_table *table;
	int first, end;
	bool computes;
	struct ipu_unit sum;
	int64_t kept_bytes, kept_fifo, passing_bytes;
};

/* ---- table ----------------------------------------------------------------------------------- */

static void fill_borders(struct partition_table *table)
{
	const struct ipu_partition_params *params = table->params;

	for (int f = 0; f < params->flow_count; f++) {
		const struct ipu_flow *flow = &params->flows[f];

		for (int border = flow->made + 1; border <= flow->last; border++) {
			table->border_bytes[border] += flow->bytes;
			/* Each stage that reads the input streams it from the host. */
			table->border_sent[border] += flow->made < 0 ? 0 : flow->bytes;
		}
	}
	for (int border = 1; border < params->unit_count && params->link_bytes_cycle > 0; border++)
		table->border_cycles[border] = (int64_t)ceil((double)table->border_sent[border] /
							     params->link_bytes_cycle);
}

/* Turn counts into end indices per unit; filling from the back turns these into start indices. */
static void prefix_sum(int *counts, int units)
{
	for (int u = 1; u <= units; u++)
		counts[u] += counts[u - 1];
}

static void fill_lists(struct partition_table *table)
{
	const struct ipu_partition_params *params = table->params;

	for (int f = 0; f < params->flow_count; f++) {
		const struct ipu_flow *flow = &params->flows[f];

		table->end_first[flow->last]++;
		for (int k = 0; k < flow->kept_count; k++)
			table->keep_first[flow->kept[k]]++;
	}
	prefix_sum(table->end_first, params->unit_count);
	prefix_sum(table->keep_first, params->unit_count);
	for (int f = 0; f < params->flow_count; f++) {
		const struct ipu_flow *flow = &params->flows[f];

		table->end[--table->end_first[flow->last]] =
			(struct partition_end){flow->bytes, flow->made};
		for (int k = 0; k < flow->kept_count; k++)
			table->keep[--table->keep_first[flow->kept[k]]] = (struct partition_keep){
				flow->bytes, flow->fifo, k > 0 ? flow->kept[k - 1] : -1};
	}
}

/* What stages keep depends only on the order of work, not on which of them share an IPU, except for
 * schedules that assign stages in turn. Four rounds suffice for all schedules that do not keep all
 * micro-batches. */
static enum status fill_stages(struct partition_table *table, struct err *err)
{
	const struct ipu_partition_params *params = table->params;
	const bool in_turn = ipu_schedule_row(params->schedule)->sharing == IPU_SHARE_IN_TURN;
	const bool all = !ipu_schedule_lockstep(params->schedule) && !in_turn;
	const struct ipu_schedule_params of = {.kind = params->schedule,
					       .stages = params->stages,
					       .microbatches = all && params->microbatches > 0
								       ? params->microbatches
								       : 4 * params->stages,
					       .training = params->training,
					       .device = in_turn ? params->device : NULL};
	struct ipu_schedule *schedule;
	enum status status = ipu_schedule_new(&schedule, &of, err);

	if (status != ST_OK)
		return status;
	for (int s = 0; s < params->stages; s++) {
		int sharing = !params->device;

		for (int other = 0; params->device && other < params->stages; other++)
			sharing += params->device[other] == params->device[s];
		table->memory[s] =
			params->memory_bytes > 0 ? params->memory_bytes / sharing : INT64_MAX;
		table->live[s] = ipu_schedule_live(schedule, s);
		table->fifo[s] = ipu_schedule_fifo_depth(schedule, s) > 0;
		if (params->offload_activations)
			table->live[s] -= ipu_schedule_fifo_depth(schedule, s);
	}
	ipu_schedule_free(schedule);
	return ST_OK;
}

static void table_fini(struct partition_table *table)
{
	mem_free(table->border_bytes);
	mem_free(table->border_sent);
	mem_free(table->border_cycles);
	mem_free(table->keep);
	mem_free(table->end);
	mem_free(table->keep_first);
	mem_free(table->end_first);
	mem_free(table->memory);
	mem_free(table->live);
	mem_free(table->fifo);
	memset(table, 0, sizeof(*table));
}

static enum status table_init(struct partition_table *table,
			      const struct ipu_partition_params *params, struct err *err)
{
	const size_t units = (size_t)params->unit_count, stages = (size_t)params->stages;
	enum status status;
	size_t keeps = 0;

	assert(params->unit_count > 0 && params->stages > 0);
	for (int f = 0; f < params->flow_count; f++) {
		const struct ipu_flow *flow = &params->flows[f];

		assert(flow->bytes >= 0 && flow->made >= -1);
		assert(flow->last >= flow->made && flow->last >= 0);
		assert(flow->last < params->unit_count);
		for (int k = 0; k < flow->kept_count; k++)
			assert(flow->kept[k] > (k > 0 ? flow->kept[k - 1] : -1) &&
			       flow->kept[k] <= flow->last);
		keeps += (size_t)flow->kept_count;
	}
	*table = (struct partition_table){
		.params = params,
		.border_bytes = mem_calloc(units + 1, sizeof(*table->border_bytes)),
		.border_sent = mem_calloc(units + 1, sizeof(*table->border_sent)),
		.border_cycles = mem_calloc(units + 1, sizeof(*table->border_cycles)),
		.keep = mem_calloc(keeps + 1, sizeof(*table->keep)),
		.end = mem_calloc((size_t)params->flow_count + 1, sizeof(*table->end)),
		.keep_first = mem_calloc(units + 1, sizeof(*table->keep_first)),
		.end_first = mem_calloc(units + 1, sizeof(*table->end_first)),
		.memory = mem_calloc(stages, sizeof(*table->memory)),
		.live = mem_calloc(stages, sizeof(*table->live)),
		.fifo = mem_calloc(stages, sizeof(*table->fifo)),
	};
	if (!table->border_bytes || !table->border_sent || !table->border_cycles || !table->keep ||
	    !table->end || !table->keep_first || !table->end_first || !table->memory ||
	    !table->live || !table->fifo) {
		table_fini(table);
		return err_nomem(err);
	}
	fill_borders(table);
	fill_lists(table);
	status = fill_stages(table, err);
	if (status != ST_OK)
		table_fini(table);
	return status;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void range_begin(struct partition_range *range, const struct partition_table *table,
			int first)
{
	*range = (struct partition_range){.table = table, .first = first, .end = first};
	range->passing_bytes = table->border_bytes[first];
}

static void range_extend(struct partition_range *range)
{
	const struct partition_table *table = range->table;
	const int u = range->end++;
	const struct ipu_unit *unit = &table->params->units[u];

	range->computes |= unit->computes;
	range->sum.forward += unit->forward;
	range->sum.backward += unit->backward;
	range->sum.update += unit->update;
	range->sum.host += unit->host;
	range->sum.variable_bytes += unit->variable_bytes;
	for (int i = table->keep_first[u]; i < table->keep_first[u + 1]; i++)
		if (table->keep[i].before < range->first) {
			range->kept_bytes += table->keep[i].bytes;
			range->kept_fifo += table->keep[i].fifo;
		}
	for (int i = table->end_first[u]; i < table->end_first[u + 1]; i++)
		if (table->end[i].made < range->first)
			range->passing_bytes -= table->end[i].bytes;
}

/* Link cycles of a copy over @border, which precedes stage @stage: pairs of IPUs are connected at
 * half the rate. */
static int64_t crossing_cycles(const struct partition_table *table, int stage, int border)
{
	const int *device = table->params->device;
	int from, to;

	if (stage == 0 || stage == table->params->stages)
		return 0;
	from = device ? device[stage - 1] : stage - 1;
	to = device ? device[stage] : stage;
	if (from == to)
		return 0;
	return (from / 2 == to / 2 ? 1 : 2) * table->border_cycles[border];
}

/* Set work and transfer; @in and @after are the cycles over the borders. */
static void set_cycles(struct ipu_partition_stage *out, const struct ipu_partition_params *params,
		       int64_t in, int64_t after)
{
	const int ways = params->training ? 2 : 1;
	const int64_t sent = after > 0 ? after + params->sync_cycles : 0;
	const int64_t returned = in > 0 && params->training ? in + params->sync_cycles : 0;

	out->work = out->forward + out->backward;
	out->one_way = out->transfer = sent;
	switch (ipu_schedule_row(params->schedule)->pace) {
	case IPU_PACE_BOTH:
		out->transfer += returned;
		break;
	case IPU_PACE_ONE:
		out->work = max(out->forward, out->backward);
		break;
	case IPU_PACE_ALONE:
		out->transfer = after + (params->training ? in : 0);
		out->work += out->transfer + ways * params->sync_cycles;
		break;
	case IPU_PACE_FREE:
		out->transfer = ways * (in + after);
		out->work += out->transfer + ways * params->sync_cycles;
		break;
	}
}

static bool is_recomputed(const struct partition_table *table, int stage)
{
	return table->params->recompute && stage + 1 < table->params->stages;
}

/* Compute the cost of the range as stage @stage. */
static void range_as_stage(struct ipu_partition_stage *out, const struct partition_range *range,
			   int stage)
{
	const struct partition_table *table = range->table;
	const struct ipu_partition_params *params = table->params;
	const int64_t live = table->live[stage];
	int64_t kept = range->kept_bytes * live;

	*out = (struct ipu_partition_stage){
		.first = range->first,
		.count = range->end - range->first,
		.forward = range->sum.forward + range->sum.host,
		.sent_bytes = stage + 1 < params->stages ? table->border_sent[range->end] : 0,
	};
	if (params->training) {
		out->backward = range->sum.backward;
		out->update = range->sum.update;
	}
	if (params->training && is_recomputed(table, stage)) {
		out->backward += range->sum.forward;
	} else if (table->fifo[stage]) {
		out->forward += range->kept_fifo;
		out->backward += range->kept_fifo;
	}
	set_cycles(out, params, crossing_cycles(table, stage, range->first),
		   crossing_cycles(table, stage + 1, range->end));
	if (is_recomputed(table, stage))
		kept = range->kept_bytes + table->border_bytes[range->first] * (live - 1);
	out->memory_bytes = range->sum.variable_bytes + kept + range->passing_bytes;
	out->overflow_bytes = max(0, out->memory_bytes - table->memory[stage]);
}

/* ---- search ---------------------------------------------------------------------------------- */

enum aim {
	AIM_OVERFLOW,
	AIM_WORK,
	AIM_TRANSFER
};

/* Value of a split: the objective; for transfers, the bytes sent break ties. */
struct value {
	int64_t first, then;
};

struct search {
	const struct partition_table *table;
	int units, stages;
	enum aim aim;
	int64_t most_overflow, most_work; /* bounds per stage */
	struct value *best; /* [stages + 1][units + 1]: units from i on in stages from s on */
	int *end;           /* end of stage s that begins at i in that split */
};

#define NEVER INT64_MAX

static size_t cell(const struct search *search, int stage, int unit)
{
	return (size_t)stage * (size_t)(search->units + 1) + (size_t)unit;
}

static bool cut_allowed(const struct ipu_partition_params *params, int border)
{
	return border == params->unit_count || border == 0 || !params->units[border].joined;
}

/* Return whether all IPUs wait for the transfers of each stage (lockstep). */
static bool is_lockstep(const struct ipu_partition_params *params)
{
	const enum ipu_schedule_pace pace = ipu_schedule_row(params->schedule)->pace;

	return pace == IPU_PACE_BOTH || pace == IPU_PACE_ONE;
}

/* Transfer that all IPUs wait for; without lockstep 0, since it is part of the stage's work. */
static int64_t shared_transfer(const struct ipu_partition_params *params,
			       const struct ipu_partition_stage *stage)
{
	return is_lockstep(params) ? stage->transfer : 0;
}

/* Value of the range as @stage with the best split of the rest; NEVER if a bound forbids it. */
static struct value evaluate(const struct search *search, const struct partition_range *range,
			     int stage)
{
	struct value value = search->best[cell(search, stage + 1, range->end)];
	struct ipu_partition_stage cost;

	if (value.first == NEVER)
		return value;
	range_as_stage(&cost, range, stage);
	if (cost.overflow_bytes > search->most_overflow || cost.work > search->most_work)
		return (struct value){NEVER, 0};
	switch (search->aim) {
	case AIM_OVERFLOW:
		value.first = max(value.first, cost.overflow_bytes);
		break;
	case AIM_WORK:
		value.first = max(value.first, cost.work);
		break;
	case AIM_TRANSFER:
		value.first += shared_transfer(search->table->params, &cost);
		value.then += cost.sent_bytes;
		break;
	}
	return value;
}

static bool is_better(struct value a, struct value b)
{
	return a.first < b.first || (a.first == b.first && a.then < b.then);
}

/* Try all stages that may begin at @first. */
static void search_from(struct search *search, int first)
{
	const struct ipu_partition_params *params = search->table->params;
	const int most = min(first, search->stages - 1);
	struct partition_range range;

	range_begin(&range, search->table, first);
	while (range.end < search->units) {
		range_extend(&range);
		if (!range.computes || !cut_allowed(params, range.end))
			continue;
		for (int s = 0; s <= most; s++) {
			const struct value value = evaluate(search, &range, s);

			/* Ends are tried in ascending order, so the earliest wins ties. */
			if (is_better(value, search->best[cell(search, s, first)])) {
				search->best[cell(search, s, first)] = value;
				search->end[cell(search, s, first)] = range.end;
			}
		}
	}
}

static int64_t search_aim(struct search *search, enum aim aim)
{
	const size_t count = ((size_t)search->stages + 1) * ((size_t)search->units + 1);

	search->aim = aim;
	for (size_t i = 0; i < count; i++)
		search->best[i] = (struct value){NEVER, 0};
	search->best[cell(search, search->stages, search->units)] = (struct value){0, 0};
	for (int i = search->units - 1; i >= 0; i--)
		if (cut_allowed(search->table->params, i))
			search_from(search, i);
	return search->best[0].first;
}

/* The greatest work in the split found last. */
static int64_t last_work(const struct search *search)
{
	int64_t work = 0;

	for (int s = 0, at = 0; s < search->stages; s++) {
		const int end = search->end[cell(search, s, at)];
		struct partition_range range;
		struct ipu_partition_stage cost;

		range_begin(&range, search->table, at);
		while (range.end < end)
			range_extend(&range);
		range_as_stage(&cost, &range, s);
		work = max(work, cost.work);
		at = end;
	}
	return work;
}

/* Bound the work by that of the best time step; false: there is no split. */
static bool bound_cycles(struct search *search)
{
	const int64_t least = search_aim(search, AIM_WORK);
	int64_t best_work = least, best, most;

	if (least == NEVER)
		return false;
	search->most_work = least;
	most = search_aim(search, AIM_TRANSFER);
	best = least + most;
	search->most_work = NEVER;
	for (;;) {
		const int64_t transfer = search_aim(search, AIM_TRANSFER);
		int64_t work;

		if (transfer >= most || least + transfer > best)
			break;
		work = last_work(search);
		if (work + transfer < best || (work + transfer == best && work < best_work)) {
			best = work + transfer;
			best_work = work;
		}
		search->most_work = min(work - 1, best - transfer);
	}
	search->most_work = best_work;
	return true;
}

/* ---- results --------------------------------------------------------------------------------- */

static enum status partition_make(struct ipu_partition **out, const struct partition_table *table,
				  const int *first, struct err *err)
{
	const int stages = table->params->stages;
	struct ipu_partition *partition = mem_calloc(1, sizeof(*partition));
	int64_t shared = 0;

	if (partition)
		partition->stage = mem_calloc((size_t)stages, sizeof(*partition->stage));
	if (!partition || !partition->stage) {
		mem_free(partition);
		return err_nomem(err);
	}
	partition->stages = stages;
	for (int s = 0; s < stages; s++) {
		const int end = s + 1 < stages ? first[s + 1] : table->params->unit_count;
		struct partition_range range;

		assert(end > first[s]);
		range_begin(&range, table, first[s]);
		while (range.end < end)
			range_extend(&range);
		range_as_stage(&partition->stage[s], &range, s);
	}

	partition->fullest = -1;
	/* The first of the copies comes after the sync. */
	for (int s = 0; s < partition->stages; s++)
		shared += shared_transfer(table->params, &partition->stage[s]);
	if (is_lockstep(table->params))
		shared = max(shared, table->params->sync_cycles);
	for (int s = 0; s < partition->stages; s++) {
		struct ipu_partition_stage *stage = &partition->stage[s];

		partition->sent_bytes += stage->sent_bytes;
		stage->cycles = stage->work + shared;
		if (stage->cycles > partition->cycles) {
			partition->cycles = stage->cycles;
			partition->slowest = s;
		}
		if (stage->overflow_bytes > partition->most_overflow) {
			partition->most_overflow = stage->overflow_bytes;
			partition->fullest = s;
		}
	}

	*out = partition;
	return ST_OK;
}

static enum status run_search(struct search *search, int *first, struct err *err)
{
	int at = 0;

	search->most_overflow = search->most_work = NEVER;
	search->most_overflow = search_aim(search, AIM_OVERFLOW);
	if (search->most_overflow == NEVER || !bound_cycles(search))
		return err_set(err, ST_INVALID,
			       "%d stages are more than the layers can be split into, %d",
			       search->stages, ipu_partition_most_stages(search->table->params));
	search_aim(search, AIM_TRANSFER);
	for (int s = 0; s < search->stages; s++) {
		first[s] = at;
		at = search->end[cell(search, s, at)];
	}
	return ST_OK;
}

enum status ipu_partition_new(struct ipu_partition **out, const struct ipu_partition_params *params,
			      struct err *err)
{
	const size_t stages = (size_t)params->stages, units = (size_t)params->unit_count;
	struct partition_table table;
	struct search search = {
		.table = &table, .units = params->unit_count, .stages = params->stages};
	enum status status = table_init(&table, params, err);
	int *first;

	*out = NULL;
	if (status != ST_OK)
		return status;
	search.best = mem_calloc(stages + 1, (units + 1) * sizeof(*search.best));
	search.end = mem_calloc(stages + 1, (units + 1) * sizeof(*search.end));
	first = mem_calloc(stages, sizeof(*first));
	if (search.best && search.end && first)
		status = run_search(&search, first, err);
	else
		status = err_nomem(err);
	if (status == ST_OK)
		status = partition_make(out, &table, first, err);
	mem_free(search.best);
	mem_free(search.end);
	mem_free(first);
	table_fini(&table);
	return status;
}

enum status ipu_partition_given(struct ipu_partition **out,
				const struct ipu_partition_params *params, const int *first,
				struct err *err)
{
	struct partition_table table;
	enum status status = table_init(&table, params, err);

	*out = NULL;
	if (status != ST_OK)
		return status;
	assert(first[0] == 0);
	status = partition_make(out, &table, first, err);
	table_fini(&table);
	return status;
}

void ipu_partition_free(struct ipu_partition *partition)
{
	if (!partition)
		return;
	mem_free(partition->stage);
	mem_free(partition);
}

/* End each stage as early as possible; trailing units without work belong to the last stage. */
int ipu_partition_most_stages(const struct ipu_partition_params *params)
{
	bool computes = false;
	int stages = 0;

	for (int u = 0; u < params->unit_count; u++) {
		computes |= params->units[u].computes;
		if (computes && cut_allowed(params, u + 1)) {
			stages++;
			computes = false;
		}
	}
	return stages;
}

int64_t ipu_partition_run_cycles(const struct ipu_partition *partition,
				 const struct ipu_partition_params *params, int64_t microbatches)
{
	/* The maximum of each figure over the stages; of one_way the sum. */
	struct ipu_partition_stage most = {0};
	const int64_t steps = microbatches + params->stages - 1;
	const enum ipu_schedule_pace pace = ipu_schedule_row(params->schedule)->pace;
	int64_t beyond, sum = 0;

	for (int s = 0; s < partition->stages; s++) {
		const struct ipu_partition_stage *stage = &partition->stage[s];

		most.forward = max(most.forward, stage->forward);
		most.backward = max(most.backward, stage->backward);
		most.update = max(most.update, stage->update);
		most.one_way += stage->one_way;
	}
	beyond = max(most.one_way, params->sync_cycles);
	if (pace != IPU_PACE_ALONE && !params->training)
		return steps * partition->cycles;
	switch (pace) {
	case IPU_PACE_ALONE:
		for (int s = 0; s < partition->stages; s++)
			sum += partition->stage[s].cycles;
		return microbatches * sum + most.update;
	case IPU_PACE_ONE:
		return 2 * steps * partition->cycles + most.update;
	case IPU_PACE_FREE:
		return steps * partition->cycles + most.update;
	case IPU_PACE_BOTH:
		break;
	}
	return (microbatches - 1) * partition->cycles +
	       params->stages * (most.forward + most.backward + 2 * beyond) + most.update;
}
