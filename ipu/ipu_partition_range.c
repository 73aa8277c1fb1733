/*
 * Cost of a range of units as a stage: time and memory. Pure functions; threads: none.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/ipu_partition_internal.h"

/* ---- table ----------------------------------------------------------------------------------- */

static void fill_borders(struct ipu_partition_table *table)
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

static void fill_lists(struct ipu_partition_table *table)
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
			(struct ipu_partition_end){flow->bytes, flow->made};
		for (int k = 0; k < flow->kept_count; k++)
			table->keep[--table->keep_first[flow->kept[k]]] =
				(struct ipu_partition_keep){flow->bytes, flow->fifo,
							    k > 0 ? flow->kept[k - 1] : -1};
	}
}

/* What stages keep depends only on the order of work, not on which of them share an IPU, except for
 * schedules that assign stages in turn. Four rounds suffice for all schedules that do not keep all
 * micro-batches. */
static struct ipu_schedule_params schedule_params(const struct ipu_partition_params *params)
{
	const bool in_turn = ipu_schedule_row(params->schedule)->sharing == IPU_SHARE_IN_TURN;
	const bool all = !ipu_schedule_lockstep(params->schedule) && !in_turn;

	return (struct ipu_schedule_params){.kind = params->schedule,
					    .stages = params->stages,
					    .microbatches = all && params->microbatches > 0
								    ? params->microbatches
								    : 4 * params->stages,
					    .training = params->training,
					    .device = in_turn ? params->device : NULL};
}

static enum status fill_stages(struct ipu_partition_table *table, struct err *err)
{
	const struct ipu_partition_params *params = table->params;
	const struct ipu_schedule_params of = schedule_params(params);
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

static void check_flows(const struct ipu_partition_params *params)
{
	for (int f = 0; f < params->flow_count; f++) {
		const struct ipu_flow *flow = &params->flows[f];

		assert(flow->bytes >= 0 && flow->made >= -1);
		assert(flow->last >= flow->made && flow->last >= 0);
		assert(flow->last < params->unit_count);
		for (int k = 0; k < flow->kept_count; k++)
			assert(flow->kept[k] > (k > 0 ? flow->kept[k - 1] : -1) &&
			       flow->kept[k] <= flow->last);
	}
}

enum status ipu__partition_table_init(struct ipu_partition_table *table,
				      const struct ipu_partition_params *params, struct err *err)
{
	const size_t units = (size_t)params->unit_count, stages = (size_t)params->stages;
	enum status status;
	size_t keeps = 0;

	assert(params->unit_count > 0 && params->stages > 0);
	check_flows(params);
	for (int f = 0; f < params->flow_count; f++)
		keeps += (size_t)params->flows[f].kept_count;
	*table = (struct ipu_partition_table){
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
		ipu__partition_table_fini(table);
		return err_nomem(err);
	}
	fill_borders(table);
	fill_lists(table);
	status = fill_stages(table, err);
	if (status != ST_OK)
		ipu__partition_table_fini(table);
	return status;
}

void ipu__partition_table_fini(struct ipu_partition_table *table)
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

/* ---- ranges ---------------------------------------------------------------------------------- */

void ipu__partition_range_begin(struct ipu_partition_range *range,
				const struct ipu_partition_table *table, int first)
{
	*range = (struct ipu_partition_range){.table = table, .first = first, .end = first};
	range->passing_bytes = table->border_bytes[first];
}

void ipu__partition_range_extend(struct ipu_partition_range *range)
{
	const struct ipu_partition_table *table = range->table;
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
static int64_t crossing_cycles(const struct ipu_partition_table *table, int stage, int border)
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

static bool is_recomputed(const struct ipu_partition_table *table, int stage)
{
	return table->params->recompute && stage + 1 < table->params->stages;
}

static void set_memory(struct ipu_partition_stage *out, const struct ipu_partition_range *range,
		       int stage)
{
	const struct ipu_partition_table *table = range->table;
	const int64_t live = table->live[stage];
	int64_t kept = range->kept_bytes * live;

	if (is_recomputed(table, stage))
		kept = range->kept_bytes + table->border_bytes[range->first] * (live - 1);
	out->memory_bytes = range->sum.variable_bytes + kept + range->passing_bytes;
	out->overflow_bytes = max(0, out->memory_bytes - table->memory[stage]);
}

void ipu__partition_stage(struct ipu_partition_stage *out, const struct ipu_partition_range *range,
			  int stage)
{
	const struct ipu_partition_table *table = range->table;
	const struct ipu_partition_params *params = table->params;

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
	set_memory(out, range, stage);
}
