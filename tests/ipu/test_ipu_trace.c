/*
 * The trace of a pipeline run in parts: put together again they are the trace of the whole, to the
 * cycle, and they stay short however many micro-batches there are.
 */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/sorted.h"
#include "ipu/compile/ipu_trace.h"
#include "support/program_sample.h"

/* The steps of a trace, shifted as a row per repeat would. */
struct steps {
	struct ipu_trace_step *all;
	size_t count, capacity;
	int64_t cycles;
	int microbatches;
};

static int keep_step(void *user, const struct ipu_trace_step *step)
{
	struct steps *steps = user;

	assert_int_equal(
		mem_grow(&steps->all, &steps->capacity, steps->count + 1, sizeof(*steps->all)), 0);
	steps->all[steps->count] = *step;
	steps->all[steps->count].start_cycle += steps->cycles;
	if (step->microbatch >= 0)
		steps->all[steps->count].microbatch += steps->microbatches;
	steps->count++;
	return 0;
}

static int compare_steps(const void *left, const void *right)
{
	const struct ipu_trace_step *a = left, *b = right;

	return SORTED_BY(a, b, ipu, start_cycle, cycles, program, stage, microbatch);
}

static void assert_same_step(const struct ipu_trace_step *a, const struct ipu_trace_step *b)
{
	assert_int_equal(compare_steps(a, b), 0);
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->node, b->node);
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->overlapped, b->overlapped);
	assert_int_equal(a->tiles, b->tiles);
	assert_true(a->mean_cycles == b->mean_cycles);
	assert_int_equal(a->bytes_in, b->bytes_in);
	assert_int_equal(a->bytes_out, b->bytes_out);
}

/* Returns how many parts there are. */
static int check_parts(const struct program_sample *sample)
{
	struct steps whole = {0}, joined = {0};
	struct ipu_trace_part parts[IPU_TRACE_PARTS];
	const int count = ipu_trace_parts(parts, sample->schedule, sample->timeline);

	assert_in_range(count, 1, IPU_TRACE_PARTS);
	assert_int_equal(ipu_trace(sample->executable, sample->timeline, keep_step, &whole), 0);
	for (int i = 0; i < count; i++) {
		for (int r = 0; r < parts[i].repeats; r++) {
			joined.cycles = parts[i].start_cycle + r * parts[i].cycles;
			joined.microbatches = r * parts[i].microbatches;
			assert_int_equal(ipu_trace_part(sample->executable, sample->timeline,
							&parts[i], keep_step, &joined),
					 0);
		}
	}
	assert_int_equal(joined.count, whole.count);
	qsort(whole.all, whole.count, sizeof(*whole.all), compare_steps);
	qsort(joined.all, joined.count, sizeof(*joined.all), compare_steps);
	for (size_t i = 0; i < whole.count; i++)
		assert_same_step(&joined.all[i], &whole.all[i]);
	mem_free(whole.all);
	mem_free(joined.all);
	return count;
}

static void random_params(struct rng *rng, struct program_sample_params *params)
{
	const bool io = rng_below(rng, 4) == 0;
	const enum ipu_schedule_kind kinds[] = {IPU_GROUPED, IPU_INTERLEAVED, IPU_SEQUENTIAL,
						IPU_GPIPE,   IPU_1F1B,        IPU_ZB_H1};

	*params = (struct program_sample_params){
		.kind = io ? IPU_GROUPED : kinds[rng_below(rng, 6)],
		.stages = 1 + (int)rng_below(rng, 4),
		.layout = {.batch = 1 + (int64_t)rng_below(rng, 40),
			   .replicas = 1 << rng_below(rng, 3),
			   .recompute = (enum ipu_recompute)rng_below(rng, 3),
			   .offload_activations = rng_below(rng, 4) == 0,
			   .prefetch_depth = 1 + (int64_t)rng_below(rng, 3),
			   .io_tiles = io ? 32 : 0},
	};
	if (params->kind == IPU_ZB_H1)
		params->layout.recompute = IPU_RECOMPUTE_NONE;
	params->microbatches = 2 * params->stages * (1 + (int)rng_below(rng, 9));
}

static void test_the_parts_of_a_trace_are_the_whole_trace(void **state)
{
	int folded = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, 1, rng_stream("trace"), 0, 0);
	for (int round = 0; round < 120; round++) {
		struct program_sample_params params;
		struct program_sample sample;

		random_params(&rng, &params);
		program_sample_plain(&sample);
		program_sample_setup(&sample, &params);
		assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
		folded += check_parts(&sample) > 1;
		program_sample_free(&sample);
	}
	assert_in_range(folded, 40, 100);
}

static int count_step(void *user, const struct ipu_trace_step *step)
{
	int64_t *count = user;

	(void)step;
	(*count)++;
	return 0;
}

static int64_t steps_of_parts(enum ipu_schedule_kind kind, int stages, int microbatches)
{
	const struct program_sample_params params = {.kind = kind,
						     .stages = stages,
						     .microbatches = microbatches,
						     .layout = {.batch = 1}};
	struct program_sample sample;
	struct ipu_trace_part parts[IPU_TRACE_PARTS];
	int64_t steps = 0;
	int count;

	program_sample_plain(&sample);
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	count = ipu_trace_parts(parts, sample.schedule, sample.timeline);
	for (int i = 0; i < count; i++)
		ipu_trace_part(sample.executable, sample.timeline, &parts[i], count_step, &steps);
	program_sample_free(&sample);
	return steps;
}

static void test_a_trace_is_no_longer_for_more_micro_batches(void **state)
{
	(void)state;
	for (int kind = IPU_GROUPED; kind < IPU_SCHEDULE_KINDS; kind++)
		for (int stages = 1; stages <= 3; stages++)
			assert_int_equal(
				steps_of_parts((enum ipu_schedule_kind)kind, stages, 16 * stages),
				steps_of_parts((enum ipu_schedule_kind)kind, stages,
					       2000 * stages));
}

/* Of an evaluation on one IPU, all micro-batches are alike, the first, too. */
static void test_a_run_whose_periods_are_all_alike_is_one_part(void **state)
{
	static const struct ipu_target target = {.name = "plain",
						 .tiles = 1,
						 .clock_hz = 1e9,
						 .link_bytes_second = 1e9,
						 .host_bytes_second = 1e9};
	static const struct ipu_stage_cost cost = {.function = {[IPU_FUNCTION_F] = {.cycles = 100}},
						   .infeed_bytes = 50};
	const struct ipu_schedule_params evaluation = {
		.kind = IPU_SEQUENTIAL, .stages = 1, .microbatches = 7};
	struct ipu_trace_part parts[IPU_TRACE_PARTS];
	struct ipu_timeline_params params = {.target = &target, .stages = &cost};
	struct ipu_schedule *schedule;
	struct ipu_timeline *timeline;

	(void)state;
	assert_int_equal(ipu_schedule_new(&schedule, &evaluation, NULL), ST_OK);
	params.schedule = schedule;
	assert_int_equal(ipu_timeline_new(&timeline, &params, NULL), ST_OK);
	assert_int_equal(ipu_trace_parts(parts, schedule, timeline), 1);
	assert_int_equal(parts[0].first_step, 0);
	assert_int_equal(parts[0].end_step, 1);
	assert_int_equal(parts[0].repeats, 7);
	assert_int_equal(parts[0].start_cycle, 0);
	assert_int_equal(parts[0].cycles, 50 + 100);
	assert_int_equal(parts[0].microbatches, 1);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_parts_of_a_trace_are_the_whole_trace),
		cmocka_unit_test(test_a_trace_is_no_longer_for_more_micro_batches),
		cmocka_unit_test(test_a_run_whose_periods_are_all_alike_is_one_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
