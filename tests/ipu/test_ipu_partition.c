/*
 * Partitioning against brute force, over small random models.
 */
#include "support/support.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "ipu/ipu_partition.h"

#define UNITS_MOST 9
#define FLOWS_MOST (2 * UNITS_MOST)

struct sample {
	struct ipu_unit units[UNITS_MOST];
	struct ipu_flow flows[FLOWS_MOST];
	int kept[FLOWS_MOST][UNITS_MOST];
	int device[UNITS_MOST];
	struct ipu_partition_params params;
};

static int64_t below(struct rng *rng, uint32_t bound)
{
	return (int64_t)rng_below(rng, bound);
}

static void random_flow(struct sample *sample, struct rng *rng, int f)
{
	const int units = sample->params.unit_count;
	struct ipu_flow *flow = &sample->flows[f];

	flow->bytes = below(rng, 50);
	flow->fifo = below(rng, 4);
	flow->made = f < units ? f - 1 : (int)below(rng, (uint32_t)units) - 1;
	flow->last = flow->made < 0 ? 0 : flow->made;
	flow->last += (int)below(rng, (uint32_t)(units - flow->last));
	if (f < units && flow->last > flow->made + 1)
		flow->last = flow->made + 1; /* most go to the next layer */
	flow->kept = sample->kept[f];
	flow->kept_count = 0;
	for (int u = flow->made < 0 ? 0 : flow->made; u <= flow->last; u++)
		if (rng_below(rng, 2) != 0)
			sample->kept[f][flow->kept_count++] = u;
}

/* Few distinct numbers, so that there are ties. */
static void random_sample(struct sample *sample, uint64_t seed)
{
	static const enum ipu_schedule_kind kinds[] = {IPU_GROUPED, IPU_INTERLEAVED, IPU_SEQUENTIAL,
						       IPU_GPIPE,   IPU_1F1B,        IPU_ZB_H1,
						       IPU_ZB_H2};
	struct ipu_partition_params *params = &sample->params;
	struct rng rng;

	memset(sample, 0, sizeof(*sample));
	rng_init(&rng, seed, rng_stream("partition"), 0, 0);
	params->units = sample->units;
	params->flows = sample->flows;
	params->unit_count = 2 + (int)rng_below(&rng, UNITS_MOST - 1);
	params->flow_count = params->unit_count + (int)rng_below(&rng, UNITS_MOST);
	params->schedule = kinds[rng_below(&rng, sizeof(kinds) / sizeof(kinds[0]))];
	params->microbatches = params->schedule < IPU_GROUPED ? (int)below(&rng, 12) : 0;
	params->training = rng_below(&rng, 4) != 0;
	params->recompute = rng_below(&rng, 4) == 0;
	params->offload_activations = rng_below(&rng, 4) == 0;
	params->link_bytes_cycle = rng_below(&rng, 3) == 0 ? 0 : 7;
	params->sync_cycles = below(&rng, 3);
	params->memory_bytes = rng_below(&rng, 3) == 0 ? 0 : 1 + below(&rng, 700);
	for (int u = 0; u < params->unit_count; u++) {
		struct ipu_unit *unit = &sample->units[u];

		unit->computes = rng_below(&rng, 4) != 0;
		unit->joined = u > 0 && rng_below(&rng, 6) == 0;
		unit->forward = below(&rng, 12);
		unit->backward = below(&rng, 24);
		unit->update = below(&rng, 5);
		unit->host = u == 0 ? below(&rng, 9) : 0;
		unit->variable_bytes = below(&rng, 100);
		sample->device[u] = (int)rng_below(&rng, 3);
	}
	if (rng_below(&rng, 4) == 0)
		params->device = sample->device;
	for (int f = 0; f < params->flow_count; f++)
		random_flow(sample, &rng, f);
}

/* ---- the costs, plainly ---------------------------------------------------------------------- */

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t bytes_over(const struct ipu_partition_params *p, int border)
{
	int64_t bytes = 0;

	for (int f = 0; f < p->flow_count; f++)
		if (p->flows[f].made < border && p->flows[f].last >= border)
			bytes += p->flows[f].bytes;
	return bytes;
}

/* From IPU to IPU: the input comes from the host, to whoever reads it. */
static int64_t sent_over(const struct ipu_partition_params *p, int border)
{
	int64_t bytes = bytes_over(p, border);

	for (int f = 0; f < p->flow_count; f++)
		if (p->flows[f].made < 0 && p->flows[f].last >= border)
			bytes -= p->flows[f].bytes;
	return bytes;
}

/* Over the border after @stage. */
static int64_t link_cycles(const struct ipu_partition_params *p, int stage, int border)
{
	int from = stage, to = stage + 1;
	int64_t cycles;

	if (stage < 0 || to >= p->stages || p->link_bytes_cycle <= 0)
		return 0;
	from = p->device ? p->device[from] : from;
	to = p->device ? p->device[to] : to;
	cycles = (int64_t)ceil((double)sent_over(p, border) / p->link_bytes_cycle);
	return from == to ? 0 : from / 2 != to / 2 ? 2 * cycles : cycles;
}

static bool kept_within(const struct ipu_flow *flow, int first, int end)
{
	for (int k = 0; k < flow->kept_count; k++)
		if (flow->kept[k] >= first && flow->kept[k] < end)
			return true;
	return false;
}

static int plain_least(int a, int b)
{
	return a < b ? a : b;
}

/* Micro-batches that wait between a stage's forward and its backward, by each schedule's formula.
 */
static int plain_depth(const struct ipu_partition_params *p, int s)
{
	const int m = p->microbatches > 0 ? p->microbatches : 4 * p->stages, n = p->stages;

	if (!p->training || n == 1)
		return 0;
	switch (p->schedule) {
	case IPU_GROUPED:
		return 2 * (n - 1 - s);
	case IPU_INTERLEAVED:
		return n - 1 - s;
	case IPU_GPIPE:
		return m - 1;
	case IPU_1F1B:
		return plain_least(m, n - s) - 1;
	case IPU_ZB_H1:
		return plain_least(m, n) - 1;
	case IPU_ZB_H2:
		return plain_least(m, 2 * n - 1) - 1;
	default:
		return 0;
	}
}

static int plain_live(const struct ipu_partition_params *p, int s)
{
	const bool beside = p->training && p->schedule == IPU_GROUPED && p->stages > 1;

	return (p->offload_activations ? 0 : plain_depth(p, s)) + 1 + beside;
}

static int64_t plain_fifo(const struct ipu_partition_params *p, int s, int first, int end)
{
	int64_t cycles = 0;

	if (plain_depth(p, s) == 0 || (p->recompute && s + 1 < p->stages))
		return 0;
	for (int f = 0; f < p->flow_count; f++)
		if (kept_within(&p->flows[f], first, end))
			cycles += p->flows[f].fifo;
	return cycles;
}

static int64_t plain_work(const struct ipu_partition_params *p, int s, int first, int end)
{
	const int64_t in = link_cycles(p, s - 1, first), after = link_cycles(p, s, end);
	int64_t forward = 0, backward = 0, host = 0;

	for (int u = first; u < end; u++) {
		forward += p->units[u].forward;
		backward += p->units[u].backward;
		host += p->units[u].host;
	}
	if (p->recompute && s + 1 < p->stages)
		backward += forward;
	backward = p->training ? backward + plain_fifo(p, s, first, end) : 0;
	forward += host + plain_fifo(p, s, first, end);
	if (p->schedule == IPU_INTERLEAVED)
		return greater(forward, backward);
	if (p->schedule == IPU_GROUPED)
		return forward + backward;
	if (p->schedule < IPU_GROUPED)
		return forward + backward + (p->training ? 2 : 1) * (in + after + p->sync_cycles);
	return forward + backward + after + p->sync_cycles +
	       (p->training ? in + p->sync_cycles : 0);
}

/* Its own copies, each after a sync. */
static int64_t plain_transfer(const struct ipu_partition_params *p, int s, int first, int end)
{
	const int64_t in = link_cycles(p, s - 1, first), after = link_cycles(p, s, end);
	int64_t cycles = after > 0 ? after + p->sync_cycles : 0;

	if (p->schedule == IPU_SEQUENTIAL || p->schedule < IPU_GROUPED)
		return 0;
	if (p->schedule == IPU_GROUPED && p->training && in > 0)
		cycles += in + p->sync_cycles;
	return cycles;
}

static int64_t plain_memory(const struct ipu_partition_params *p, int s, int first, int end)
{
	const int live = plain_live(p, s);
	int64_t variables = 0, kept = 0, passing = 0;

	for (int u = first; u < end; u++)
		variables += p->units[u].variable_bytes;
	for (int f = 0; f < p->flow_count; f++) {
		const struct ipu_flow *flow = &p->flows[f];

		kept += kept_within(flow, first, end) ? flow->bytes : 0;
		if (flow->made < first && flow->last >= end)
			passing += flow->bytes;
	}
	if (p->recompute && s + 1 < p->stages)
		return variables + kept + bytes_over(p, first) * (live - 1) + passing;
	return variables + kept * live + passing;
}

static int64_t plain_overflow(const struct ipu_partition_params *p, int s, int64_t memory)
{
	int sharing = 0;

	for (int other = 0; other < p->stages; other++)
		sharing += p->device ? p->device[other] == p->device[s] : other == s;
	return p->memory_bytes > 0 ? greater(0, memory - p->memory_bytes / sharing) : 0;
}

/* ---- all splits ------------------------------------------------------------------------------ */

struct score {
	int64_t overflow, work, transfer, sent;
	int first[UNITS_MOST];
};

static bool split_allowed(const struct ipu_partition_params *p, const int *first)
{
	for (int s = 0; s < p->stages; s++) {
		const int end = s + 1 < p->stages ? first[s + 1] : p->unit_count;
		bool computes = false;

		for (int u = first[s]; u < end; u++)
			computes |= p->units[u].computes;
		if (!computes || (s > 0 && p->units[first[s]].joined))
			return false;
	}
	return true;
}

static void score_of(const struct ipu_partition_params *p, const int *first, struct score *out)
{
	memset(out, 0, sizeof(*out));
	for (int s = 0; s < p->stages; s++) {
		const int end = s + 1 < p->stages ? first[s + 1] : p->unit_count;
		const int64_t memory = plain_memory(p, s, first[s], end);

		out->first[s] = first[s];
		out->work = greater(out->work, plain_work(p, s, first[s], end));
		out->transfer += plain_transfer(p, s, first[s], end);
		out->overflow = greater(out->overflow, plain_overflow(p, s, memory));
		out->sent += s + 1 < p->stages ? sent_over(p, end) : 0;
	}
}

static int compare_scores(const struct score *a, const struct score *b, int stages)
{
	if (a->overflow != b->overflow)
		return a->overflow < b->overflow ? -1 : 1;
	if (a->work + a->transfer != b->work + b->transfer)
		return a->work + a->transfer < b->work + b->transfer ? -1 : 1;
	if (a->work != b->work)
		return a->work < b->work ? -1 : 1;
	if (a->sent != b->sent)
		return a->sent < b->sent ? -1 : 1;
	for (int s = 0; s < stages; s++)
		if (a->first[s] != b->first[s])
			return a->first[s] < b->first[s] ? -1 : 1;
	return 0;
}

/* By the units that begin a stage, as bits; false: there is no split. */
static bool best_of_all(const struct ipu_partition_params *p, struct score *best)
{
	bool found = false;

	for (unsigned cuts = 0; cuts < 1u << p->unit_count; cuts++) {
		int first[UNITS_MOST + 1], count = 0;
		struct score score;

		for (int u = 0; u < p->unit_count; u++)
			if (u == 0 || (cuts >> u & 1) != 0)
				first[count++] = u;
		if ((cuts & 1) != 0 || count != p->stages || !split_allowed(p, first))
			continue;
		score_of(p, first, &score);
		if (!found || compare_scores(&score, best, p->stages) < 0)
			*best = score;
		found = true;
	}
	return found;
}

static void assert_is_best(const struct sample *sample)
{
	const struct ipu_partition_params *p = &sample->params;
	struct ipu_partition *partition;
	struct err err = {.text = ""};
	struct score best = {0};

	if (!best_of_all(p, &best)) {
		assert_true(p->stages > ipu_partition_most_stages(p));
		assert_int_equal(ipu_partition_new(&partition, p, &err), ST_INVALID);
		assert_null(partition);
		return;
	}
	assert_true(p->stages <= ipu_partition_most_stages(p));
	assert_int_equal(ipu_partition_new(&partition, p, &err), ST_OK);
	assert_int_equal(partition->most_overflow, best.overflow);
	if (p->schedule == IPU_GROUPED || p->schedule == IPU_INTERLEAVED)
		best.transfer = greater(best.transfer, p->sync_cycles);
	assert_int_equal(partition->cycles, best.work + best.transfer);
	assert_int_equal(partition->sent_bytes, best.sent);
	for (int s = 0; s < p->stages; s++) {
		const struct ipu_partition_stage *stage = &partition->stage[s];
		const int end = stage->first + stage->count;

		assert_int_equal(stage->first, best.first[s]);
		assert_int_equal(stage->work, plain_work(p, s, stage->first, end));
		assert_int_equal(stage->cycles, stage->work + best.transfer);
		assert_int_equal(stage->memory_bytes, plain_memory(p, s, stage->first, end));
	}
	ipu_partition_free(partition);
}

static void test_the_split_is_the_best_of_all(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct sample sample;

		random_sample(&sample, seed);
		for (int n = 1; n <= sample.params.unit_count; n++) {
			sample.params.stages = n;
			assert_is_best(&sample);
		}
	}
}

/* ---- properties ------------------------------------------------------------------------------ */

static void test_more_stages_are_never_slower_where_they_cost_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 500; seed++) {
		int64_t before = INT64_MAX;
		struct sample sample;

		random_sample(&sample, seed);
		sample.params.link_bytes_cycle = 0;
		sample.params.memory_bytes = 0;
		sample.params.device = NULL;
		sample.params.recompute = false;
		for (int f = 0; f < sample.params.flow_count; f++)
			sample.flows[f].fifo = 0;
		for (int n = 1; n <= ipu_partition_most_stages(&sample.params); n++) {
			struct ipu_partition *partition;

			sample.params.stages = n;
			assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL),
					 ST_OK);
			assert_true(partition->cycles <= before);
			before = partition->cycles;
			ipu_partition_free(partition);
		}
	}
}

static void test_a_given_split_is_never_faster(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct ipu_partition *best, *given;
		struct sample sample;
		int first[2];

		random_sample(&sample, seed);
		sample.params.stages = 2;
		sample.params.memory_bytes = 0;
		if (ipu_partition_new(&best, &sample.params, NULL) != ST_OK)
			continue;
		first[0] = 0;
		for (first[1] = 1; first[1] < sample.params.unit_count; first[1]++) {
			if (!split_allowed(&sample.params, first))
				continue;
			assert_int_equal(ipu_partition_given(&given, &sample.params, first, NULL),
					 ST_OK);
			assert_true(best->cycles <= given->cycles);
			ipu_partition_free(given);
		}
		ipu_partition_free(best);
	}
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* Three layers in a row and one that only passes on, with a skip from the first to the last. */
static void hand_sample(struct sample *sample)
{
	static const int next[] = {1}, last[] = {3};
	const struct ipu_unit units[] = {
		{.forward = 10, .backward = 20, .variable_bytes = 5, .computes = true},
		{.forward = 10, .backward = 20, .variable_bytes = 7, .computes = true},
		{.computes = false},
		{.forward = 10, .backward = 20, .variable_bytes = 9, .computes = true},
	};
	const struct ipu_flow flows[] = {
		{.bytes = 100, .made = -1, .last = 0, .kept = NULL, .kept_count = 0},
		{.bytes = 40, .made = 0, .last = 1, .kept = next, .kept_count = 1},
		{.bytes = 30, .made = 1, .last = 3, .kept = last, .kept_count = 1},
		{.bytes = 8, .made = 0, .last = 3, .kept = NULL, .kept_count = 0},
	};

	memset(sample, 0, sizeof(*sample));
	memcpy(sample->units, units, sizeof(units));
	memcpy(sample->flows, flows, sizeof(flows));
	sample->params = (struct ipu_partition_params){.units = sample->units,
						       .unit_count = 4,
						       .flows = sample->flows,
						       .flow_count = 4,
						       .stages = 3,
						       .schedule = IPU_GROUPED,
						       .training = true,
						       .link_bytes_cycle = 4};
}

static void test_a_skip_connection_is_sent_and_held_all_along(void **state)
{
	struct ipu_partition *partition;
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[0].sent_bytes, 48);
	assert_int_equal(partition->stage[1].sent_bytes, 38);
	assert_int_equal(partition->stage[0].transfer, 12);
	/* Over the slower link to the next pair; all copies one after the other. */
	assert_int_equal(partition->stage[1].transfer, 12 + 2 * 10);
	assert_int_equal(partition->stage[2].transfer, 2 * 10);
	assert_int_equal(partition->cycles, 30 + 2 * (12 + 20));
	/* Kept: nothing; 4 of 40, and the skip; 2 of 30. */
	assert_int_equal(partition->stage[0].memory_bytes, 5);
	assert_int_equal(partition->stage[1].memory_bytes, 7 + 4 * 40 + 8);
	assert_int_equal(partition->stage[2].memory_bytes, 9 + 2 * 30);
	ipu_partition_free(partition);
}

static void test_the_input_is_streamed_to_whoever_reads_it_and_sent_by_nobody(void **state)
{
	struct ipu_partition *partition;
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	sample.flows[0].last = 3;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[0].sent_bytes, 48);
	assert_int_equal(partition->stage[1].sent_bytes, 38);
	assert_int_equal(partition->cycles, 30 + 2 * (12 + 20));
	ipu_partition_free(partition);
}

static void test_what_only_passes_on_goes_with_the_earlier_end_of_a_tie(void **state)
{
	struct ipu_partition *partition;
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[1].count, 1);
	assert_int_equal(partition->stage[2].first, 2);
	ipu_partition_free(partition);
}

static void test_joined_units_stay_together(void **state)
{
	struct ipu_partition *partition;
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	sample.units[1].joined = true;
	sample.params.stages = 2;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[1].first, 2);
	ipu_partition_free(partition);
}

static void test_memory_goes_before_time_and_names_the_fullest_stage(void **state)
{
	struct ipu_partition *partition;
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	sample.params.stages = 2;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[1].first, 2);
	assert_int_equal(partition->stage[0].memory_bytes, 5 + 7 + 4 * 40);
	ipu_partition_free(partition);

	sample.params.memory_bytes = 160;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[1].first, 1);
	assert_int_equal(partition->fullest, -1);
	ipu_partition_free(partition);

	/* Neither fits: 22 bytes too many, or here six. */
	sample.params.memory_bytes = 150;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->stage[1].memory_bytes, 156);
	assert_int_equal(partition->fullest, 1);
	assert_int_equal(partition->most_overflow, 6);
	ipu_partition_free(partition);
}

static void test_too_many_stages_are_refused_with_the_number_there_can_be(void **state)
{
	struct ipu_partition *partition;
	struct err err = {.text = ""};
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	sample.params.stages = 4;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, &err), ST_INVALID);
	assert_null(partition);
	assert_contains(err.text, "4 stages are more than the layers can be split into, 3");
}

static void test_a_run_takes_as_many_steps_as_its_schedule(void **state)
{
	struct ipu_partition *partition;
	struct sample sample;

	(void)state;
	hand_sample(&sample);
	sample.units[2].update = 5;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(ipu_partition_run_cycles(partition, &sample.params, 12),
			 11 * 94 + 3 * (10 + 20 + 2 * 32) + 5);
	ipu_partition_free(partition);
	sample.params.schedule = IPU_INTERLEAVED;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(partition->cycles, 20 + 32);
	assert_int_equal(ipu_partition_run_cycles(partition, &sample.params, 12), 2 * 14 * 52 + 5);
	ipu_partition_free(partition);
	sample.params.schedule = IPU_SEQUENTIAL;
	assert_int_equal(ipu_partition_new(&partition, &sample.params, NULL), ST_OK);
	assert_int_equal(ipu_partition_run_cycles(partition, &sample.params, 12),
			 12 * (90 + 2 * (12 + 2 * 10)) + 5);
	ipu_partition_free(partition);
}

static void test_failing_allocations_are_undone(void **state)
{
	struct sample sample;
	bool failed = true;

	(void)state;
	hand_sample(&sample);
	for (long n = 0; failed; n++) {
		struct ipu_partition *partition;
		enum status status;

		support_fail_alloc(n);
		status = ipu_partition_new(&partition, &sample.params, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		ipu_partition_free(partition);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_split_is_the_best_of_all),
		cmocka_unit_test(test_more_stages_are_never_slower_where_they_cost_nothing),
		cmocka_unit_test(test_a_given_split_is_never_faster),
		cmocka_unit_test(test_a_skip_connection_is_sent_and_held_all_along),
		cmocka_unit_test(test_the_input_is_streamed_to_whoever_reads_it_and_sent_by_nobody),
		cmocka_unit_test(test_what_only_passes_on_goes_with_the_earlier_end_of_a_tie),
		cmocka_unit_test(test_joined_units_stay_together),
		cmocka_unit_test(test_memory_goes_before_time_and_names_the_fullest_stage),
		cmocka_unit_test(test_too_many_stages_are_refused_with_the_number_there_can_be),
		cmocka_unit_test(test_a_run_takes_as_many_steps_as_its_schedule),
		cmocka_unit_test(test_failing_allocations_are_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
