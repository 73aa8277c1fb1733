/*
 * The best split: dynamic programming from the last stage to the first, once for each of the aims
 * (memory, time, bytes sent), each within what the aims before it have reached.
 */
#include "ipu/ipu_partition.h"

#include <assert.h>

#include "common/mem.h"
#include "ipu/ipu_partition_internal.h"

enum aim {
	AIM_OVERFLOW,
	AIM_CYCLES,
	AIM_SENT,
	AIMS
};

struct search {
	const struct ipu_partition_table *table;
	int units, stages;
	enum aim aim;
	int64_t reached[AIMS]; /* by the aims before */
	int64_t *best; /* [stages + 1][units + 1]: units from i on in the stages from s on */
	int *end;      /* of stage s that begins at i in that best split */
};

#define NEVER INT64_MAX

static size_t place(const struct search *search, int stage, int unit)
{
	return (size_t)stage * (size_t)(search->units + 1) + (size_t)unit;
}

static bool cut_allowed(const struct ipu_partition_params *params, int border)
{
	return border == params->unit_count || border == 0 || !params->units[border].joined;
}

/* Of the range as @stage with the best of what follows; NEVER where an earlier aim forbids it. */
static int64_t value_of(const struct search *search, const struct ipu_partition_range *range,
			int stage)
{
	const int64_t rest = search->best[place(search, stage + 1, range->end)];
	struct ipu_partition_stage cost;
	int64_t own;

	if (rest == NEVER)
		return NEVER;
	ipu__partition_stage(&cost, range, stage);
	if ((search->aim > AIM_OVERFLOW && cost.overflow_bytes > search->reached[AIM_OVERFLOW]) ||
	    (search->aim > AIM_CYCLES && cost.cycles > search->reached[AIM_CYCLES]))
		return NEVER;
	if (search->aim == AIM_SENT)
		return rest + cost.sent_bytes;
	own = search->aim == AIM_OVERFLOW ? cost.overflow_bytes : cost.cycles;
	return own > rest ? own : rest;
}

/* All stages that may begin at @first. */
static void search_from(struct search *search, int first)
{
	const struct ipu_partition_params *params = search->table->params;
	const int most = first < search->stages - 1 ? first : search->stages - 1;
	struct ipu_partition_range range;

	ipu__partition_range_begin(&range, search->table, first);
	while (range.end < search->units) {
		ipu__partition_range_extend(&range);
		if (!range.computes || !cut_allowed(params, range.end))
			continue;
		for (int s = 0; s <= most; s++) {
			const int64_t value = value_of(search, &range, s);

			/* Ends are tried in rising order, so ties go to the earliest. */
			if (value < search->best[place(search, s, first)]) {
				search->best[place(search, s, first)] = value;
				search->end[place(search, s, first)] = range.end;
			}
		}
	}
}

static void search_aim(struct search *search, enum aim aim)
{
	const size_t count = ((size_t)search->stages + 1) * ((size_t)search->units + 1);

	search->aim = aim;
	for (size_t i = 0; i < count; i++)
		search->best[i] = NEVER;
	search->best[place(search, search->stages, search->units)] = 0;
	for (int i = search->units - 1; i >= 0; i--)
		if (cut_allowed(search->table->params, i))
			search_from(search, i);
	search->reached[aim] = search->best[0];
}

/* --- results -------------------------------------------------------------------------------------
 */

static void sum_up(struct ipu_partition *partition)
{
	partition->fullest = -1;
	for (int s = 0; s < partition->stages; s++) {
		const struct ipu_partition_stage *stage = &partition->stage[s];

		partition->sent_bytes += stage->sent_bytes;
		if (stage->cycles > partition->cycles) {
			partition->cycles = stage->cycles;
			partition->slowest = s;
		}
		if (stage->overflow_bytes > partition->most_overflow) {
			partition->most_overflow = stage->overflow_bytes;
			partition->fullest = s;
		}
	}
}

static enum status partition_make(struct ipu_partition **out,
				  const struct ipu_partition_table *table, const int *first,
				  struct err *err)
{
	const int stages = table->params->stages;
	struct ipu_partition *partition = mem_calloc(1, sizeof(*partition));

	if (partition)
		partition->stage = mem_calloc((size_t)stages, sizeof(*partition->stage));
	if (!partition || !partition->stage) {
		mem_free(partition);
		return err_nomem(err);
	}
	partition->stages = stages;
	for (int s = 0; s < stages; s++) {
		const int end = s + 1 < stages ? first[s + 1] : table->params->unit_count;
		struct ipu_partition_range range;

		assert(end > first[s]);
		ipu__partition_range_begin(&range, table, first[s]);
		while (range.end < end)
			ipu__partition_range_extend(&range);
		ipu__partition_stage(&partition->stage[s], &range, s);
	}
	sum_up(partition);
	*out = partition;
	return ST_OK;
}

static enum status run_search(struct search *search, int *first, struct err *err)
{
	int at = 0;

	for (int aim = 0; aim < AIMS; aim++) {
		search_aim(search, (enum aim)aim);
		if (search->reached[aim] == NEVER)
			return err_set(err, ST_INVALID,
				       "%d stages are more than the layers can be split into, %d",
				       search->stages,
				       ipu_partition_most_stages(search->table->params));
	}
	for (int s = 0; s < search->stages; s++) {
		first[s] = at;
		at = search->end[place(search, s, at)];
	}
	return ST_OK;
}

enum status ipu_partition_new(struct ipu_partition **out, const struct ipu_partition_params *params,
			      struct err *err)
{
	const size_t stages = (size_t)params->stages, units = (size_t)params->unit_count;
	struct ipu_partition_table table;
	struct search search = {
		.table = &table, .units = params->unit_count, .stages = params->stages};
	enum status status = ipu__partition_table_init(&table, params, err);
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
	ipu__partition_table_fini(&table);
	return status;
}

enum status ipu_partition_given(struct ipu_partition **out,
				const struct ipu_partition_params *params, const int *first,
				struct err *err)
{
	struct ipu_partition_table table;
	enum status status = ipu__partition_table_init(&table, params, err);

	*out = NULL;
	if (status != ST_OK)
		return status;
	assert(first[0] == 0);
	status = partition_make(out, &table, first, err);
	ipu__partition_table_fini(&table);
	return status;
}

void ipu_partition_free(struct ipu_partition *partition)
{
	if (!partition)
		return;
	mem_free(partition->stage);
	mem_free(partition);
}

/* A stage ends as soon as it may; what is left over without work goes with the last. */
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
	const int64_t steps = microbatches + params->stages - 1;
	int64_t sum = 0, update = 0;

	for (int s = 0; s < partition->stages; s++) {
		sum += partition->stage[s].cycles;
		if (partition->stage[s].update > update)
			update = partition->stage[s].update;
	}
	if (params->schedule == IPU_SEQUENTIAL)
		return microbatches * sum + update;
	if (params->schedule == IPU_INTERLEAVED && params->training)
		return 2 * steps * partition->cycles + update;
	return steps * partition->cycles + update;
}
