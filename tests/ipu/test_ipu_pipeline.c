/*
 * Pipeline schedules: what none may do, over random unequal stages; edges, rules and errors.
 */
#include "support/pipeline_sample.h"
#include "support/support.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "ipu/ipu_pipeline.h"

/* ---- what no schedule may do ----------------------------------------------------------------- */

/* Works by what they are: at most one of each. */
struct table {
	const struct ipu_pipeline *pipeline;
	const struct ipu_pipeline_work **cells;
};

static const struct ipu_pipeline_work **cell(const struct table *table, char phase, int stage,
					     int chunk, int microbatch)
{
	const struct ipu_pipeline *pipeline = table->pipeline;
	int row = phase == 'F' ? 0 : phase == 'B' ? 1 : 2;

	return &table->cells[((row * pipeline->stages + stage) * pipeline->chunks + chunk) *
				     pipeline->microbatches +
			     microbatch];
}

static void table_fill(struct table *table, const struct ipu_pipeline *pipeline)
{
	int count = pipeline->first[pipeline->stages];
	int each = ipu_schedule_row(pipeline->kind)->splits ? 3 : 2;

	table->pipeline = pipeline;
	table->cells = mem_calloc((size_t)(3 * pipeline->stages * pipeline->chunks) *
					  (size_t)pipeline->microbatches,
				  sizeof(*table->cells));
	assert_non_null(table->cells);
	assert_int_equal(count,
			 each * pipeline->stages * pipeline->chunks * pipeline->microbatches);
	for (int s = 0; s < pipeline->stages; s++) {
		for (int i = pipeline->first[s]; i < pipeline->first[s + 1]; i++) {
			const struct ipu_pipeline_work *work = &pipeline->works[i];
			const struct ipu_pipeline_work **at = cell(table, work->phase, work->stage,
								   work->chunk, work->microbatch);

			assert_int_equal(work->stage, s);
			assert_non_null(strchr(each == 3 ? "FBW" : "FB", work->phase));
			assert_null(*at);
			*at = work;
			/* No two of a stage overlap. */
			assert_true(i == pipeline->first[s] ||
				    work->start_ns >= pipeline->works[i - 1].end_ns);
		}
	}
}

/* What @work waits for on another stage, or NULL at the ends of the model. */
static const struct ipu_pipeline_work *producer(const struct table *table,
						const struct ipu_pipeline_work *work)
{
	int p = table->pipeline->stages;
	int place = work->chunk * p + work->stage + (work->phase == 'F' ? -1 : 1);

	if (place < 0 || place >= p * table->pipeline->chunks)
		return NULL;
	return *cell(table, work->phase, place % p, place / p, work->microbatch);
}

static void check_work(const struct table *table, const struct pipeline_sample *sample,
		       const struct ipu_pipeline_work *work)
{
	int64_t hop = table->pipeline->stages > 1 ? sample->params.communication_ns : 0;
	const struct ipu_pipeline_work *input;

	assert_true(work->start_ns >= 0 && work->end_ns >= work->start_ns);
	if (work->phase != 'F') {
		input = *cell(table, work->phase == 'W' ? 'B' : 'F', work->stage, work->chunk,
			      work->microbatch);
		assert_true(work->start_ns >= input->end_ns);
	}
	input = work->phase == 'W' ? NULL : producer(table, work);
	if (input)
		assert_true(work->start_ns >= input->end_ns + hop);
}

/* No stage can be faster than its work after the way there, nor a micro-batch than its way. */
static void check_makespan(const struct pipeline_sample *sample,
			   const struct ipu_pipeline *pipeline)
{
	bool splits = ipu_schedule_row(pipeline->kind)->splits;
	int64_t hop = sample->params.communication_ns, way = 0, there = 0;

	for (int s = 0; s < pipeline->stages; s++) {
		int64_t work = sample->forward[s] + sample->input[s] + sample->weight[s];

		assert_true(pipeline->bubble.makespan_ns >=
			    there / pipeline->chunks + pipeline->microbatches * work);
		way += work - (splits ? sample->weight[s] : 0) + (s > 0 ? 2 * hop : 0);
		there += sample->forward[s];
	}
	assert_true(pipeline->bubble.makespan_ns >= way);
}

static double peak_limit(enum ipu_schedule_kind kind, int p, int m, int v, int s)
{
	double limit = m;

	switch (kind) {
	case IPU_GPIPE:
	case IPU_SCHEDULE_KINDS:
		break;
	case IPU_1F1B:
	case IPU_ZB_H1:
	case IPU_INTERLEAVED:
		limit = p - s;
		break;
	case IPU_1F1B_INTERLEAVED:
		limit = (2 * (p - s - 1) + (v - 1) * p + 1) / (double)v;
		break;
	case IPU_ZB_H2:
		limit = 2 * (p - s) - 1;
		break;
	case IPU_GROUPED:
		limit = p > 1 ? 2 * (p - s) : 1;
		break;
	case IPU_SEQUENTIAL:
		limit = 1;
		break;
	}
	return fmin(limit, m);
}

static void check_pipeline(const struct pipeline_sample *sample)
{
	struct ipu_pipeline *pipeline = pipeline_sample_run(sample);
	const struct ipu_bubble *b = &pipeline->bubble;
	struct table table;

	table_fill(&table, pipeline);
	for (int i = 0; i < pipeline->first[pipeline->stages]; i++)
		check_work(&table, sample, &pipeline->works[i]);
	mem_free(table.cells);
	check_makespan(sample, pipeline);
	for (int s = 0; s < pipeline->stages; s++)
		assert_close(pipeline->peak_activations[s],
			     peak_limit(pipeline->kind, pipeline->stages, pipeline->microbatches,
					pipeline->chunks, s),
			     1e-12);
	assert_int_equal(b->ramp_up_ns + b->ramp_down_ns + b->imbalance_ns + b->communication_ns,
			 pipeline->stages * b->makespan_ns - b->busy_ns);
	ipu_pipeline_free(pipeline);
}

static void test_no_work_comes_before_its_input_or_beside_another(void **state)
{
	struct rng rng;
	int checked[IPU_SCHEDULE_KINDS] = {0};

	(void)state;
	rng_init(&rng, 4, rng_stream("pipelines"), 0, 0);
	for (int round = 0; round < 2000; round++) {
		int kind = (int)rng_below(&rng, IPU_SCHEDULE_KINDS);
		int p = 1 + (int)rng_below(&rng, 9), m = 1 + (int)rng_below(&rng, 24);
		struct pipeline_sample sample;

		if (rng_below(&rng, 2))
			m = p * (1 + (int)rng_below(&rng, 5));
		pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, p, m,
				     2 + (int)rng_below(&rng, 4));
		pipeline_sample_random(&sample, &rng);
		if (!pipeline_sample_holds(&sample))
			continue;
		check_pipeline(&sample);
		checked[kind]++;
	}
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++)
		assert_true(checked[kind] > 30);
}

static void test_held_back_weight_gradients_are_what_the_rules_say(void **state)
{
	(void)state;
	for (int p = 1; p <= 8; p++) {
		struct pipeline_sample sample;
		struct ipu_pipeline *h1, *h2;

		pipeline_sample_fill(&sample, IPU_ZB_H1, p, 3 * p, 1);
		pipeline_sample_times(&sample, 3, 3, 2, 0);
		h1 = pipeline_sample_run(&sample);
		sample.params.kind = IPU_ZB_H2;
		h2 = pipeline_sample_run(&sample);
		for (int s = 0; s < p; s++) {
			assert_int_equal(h1->peak_weights[s], s + 1);
			assert_int_equal(h2->peak_weights[s], 2 * s + 1);
		}
		ipu_pipeline_free(h1);
		ipu_pipeline_free(h2);
	}
}

static void test_the_ipus_schedules_hold_what_ipu_schedule_says(void **state)
{
	(void)state;
	for (int kind = IPU_GROUPED; kind <= IPU_SEQUENTIAL; kind++) {
		const struct ipu_schedule_params params = {.kind = (enum ipu_schedule_kind)kind,
							   .stages = 5,
							   .microbatches = 20,
							   .training = true};
		struct ipu_schedule *schedule;
		struct ipu_pipeline *pipeline;
		struct pipeline_sample sample;

		assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
		pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 5, 20, 1);
		pipeline_sample_times(&sample, 1, 1, 1, 0);
		pipeline = pipeline_sample_run(&sample);
		for (int s = 0; s < 5; s++)
			assert_close(pipeline->peak_activations[s], ipu_schedule_live(schedule, s),
				     1e-12);
		ipu_pipeline_free(pipeline);
		ipu_schedule_free(schedule);
	}
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void test_one_stage_has_no_bubble_and_no_hops(void **state)
{
	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		struct ipu_pipeline *pipeline;
		struct pipeline_sample sample;

		pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 1, 4, 2);
		pipeline_sample_times(&sample, 6, 4, 2, 100);
		pipeline = pipeline_sample_run(&sample);
		assert_int_equal(pipeline->bubble.makespan_ns, 48);
		assert_close(pipeline->bubble.bubble_rate, 0, 1e-12);
		assert_close(pipeline->closed.makespan_ns, 48, 1e-12);
		ipu_pipeline_free(pipeline);
	}
}

static void test_one_microbatch_goes_there_and_back(void **state)
{
	static const enum ipu_schedule_kind kinds[] = {IPU_GPIPE, IPU_1F1B, IPU_SEQUENTIAL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct ipu_pipeline *pipeline;
		struct pipeline_sample sample;

		pipeline_sample_fill(&sample, kinds[i], 4, 1, 1);
		pipeline_sample_times(&sample, 6, 4, 2, 10);
		pipeline = pipeline_sample_run(&sample);
		assert_int_equal(pipeline->bubble.makespan_ns, 4 * 12 + 6 * 10);
		ipu_pipeline_free(pipeline);
	}
}

static void test_times_of_nothing_have_no_rates(void **state)
{
	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		struct ipu_pipeline *pipeline;
		struct pipeline_sample sample;

		pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 2, 4, 2);
		pipeline_sample_times(&sample, 0, 0, 0, 0);
		pipeline = pipeline_sample_run(&sample);
		assert_int_equal(pipeline->bubble.makespan_ns, 0);
		assert_true(isnan(pipeline->bubble.bubble_rate));
		assert_true(isnan(pipeline->closed.bubble_rate));
		assert_true(isnan(pipeline->closed.idle_fraction));
		assert_true(isnan(pipeline->closed.bubble_over_ideal));
		ipu_pipeline_free(pipeline);
	}
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void assert_refused(const struct pipeline_sample *sample, enum status status,
			   const char *text)
{
	struct ipu_pipeline *pipeline;
	struct err err = {ST_OK, ""};

	assert_int_equal(ipu_pipeline_new(&pipeline, &sample->params, &err), status);
	assert_null(pipeline);
	assert_contains(err.text, text);
}

static void test_rules_are_named_when_they_are_broken(void **state)
{
	struct pipeline_sample sample;

	(void)state;
	pipeline_sample_times(&sample, 1, 1, 1, 0);
	pipeline_sample_fill(&sample, IPU_1F1B_INTERLEAVED, 4, 10, 2);
	assert_refused(&sample, ST_INVALID, "a multiple of the number of stages (= 4): it is 10");
	pipeline_sample_fill(&sample, IPU_1F1B_INTERLEAVED, 4, 8, 1);
	assert_refused(&sample, ST_INVALID, "needs at least 2 chunks");
	pipeline_sample_fill(&sample, IPU_ZB_H1, 4, 8, 1);
	sample.params.chunks = 2;
	assert_refused(&sample, ST_INVALID, "chunks are for 1f1b-interleaved");
	pipeline_sample_fill(&sample, IPU_GROUPED, 4, 12, 1);
	assert_refused(&sample, ST_INVALID, "a multiple of 2 x stages (= 8)");
	pipeline_sample_fill(&sample, IPU_INTERLEAVED, 4, 10, 1);
	assert_refused(&sample, ST_INVALID, "a multiple of the number of stages (= 4)");
	pipeline_sample_fill(&sample, IPU_SCHEDULE_KINDS, 4, 10, 1);
	assert_refused(&sample, ST_INVALID, "no schedule number");
	pipeline_sample_fill(&sample, IPU_1F1B, 4, 8, 1);
	sample.weight[3] = -1;
	assert_refused(&sample, ST_INVALID, "stage 3 takes a time below 0");
	sample.weight[3] = 0;
	sample.params.communication_ns = -1;
	assert_refused(&sample, ST_INVALID, "communication takes a time below 0");
}

static void test_hostile_sizes_are_refused(void **state)
{
	static const int sizes[] = {INT_MIN, -1, 0, INT_MAX};
	struct pipeline_sample sample;

	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, sizes[i], 8, 2);
			pipeline_sample_times(&sample, 1, 1, 1, 0);
			assert_refused(&sample, sizes[i] > 0 ? ST_LIMIT : ST_INVALID, "stages");
			pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 4, sizes[i], 2);
			assert_refused(&sample, sizes[i] > 0 ? ST_LIMIT : ST_INVALID,
				       "micro-batches");
			pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 4, 8, 2);
			sample.params.chunks = sizes[i];
			if (sizes[i] != 0)
				assert_refused(&sample, ST_INVALID, "chunks");
		}
		pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 4, 8, 2);
		sample.forward[1] = INT64_MAX;
		assert_refused(&sample, ST_LIMIT, "too long");
		sample.forward[1] = 1;
		sample.input[2] = INT64_MAX;
		assert_refused(&sample, ST_LIMIT, "too long");
		sample.input[2] = 1;
		sample.weight[3] = INT64_MAX;
		assert_refused(&sample, ST_LIMIT, "too long");
		sample.weight[3] = 1;
		sample.params.communication_ns = INT64_MAX;
		assert_refused(&sample, ST_LIMIT, "too long");
	}
}

static void test_names_are_found_and_suggested(void **state)
{
	enum ipu_schedule_kind kind;
	struct err err;

	(void)state;
	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++) {
		assert_int_equal(ipu_schedule_kind_get(ipu_schedule_name((enum ipu_schedule_kind)i),
						       &kind, NULL),
				 ST_OK);
		assert_int_equal(kind, i);
	}
	assert_int_equal(ipu_schedule_kind_get("zb-h3", &kind, &err), ST_NOTFOUND);
	assert_contains(err.text, "did you mean \"zb-h");
	assert_int_equal(ipu_schedule_kind_get("nothing like it", &kind, &err), ST_NOTFOUND);
	for (int i = 0; i < IPU_SCHEDULE_KINDS; i++)
		assert_contains(err.text, ipu_schedule_name((enum ipu_schedule_kind)i));
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	(void)state;
	for (int kind = 0; kind < IPU_SCHEDULE_KINDS; kind++) {
		bool failed = true;

		for (long n = 0; failed; n++) {
			struct ipu_pipeline *pipeline;
			struct pipeline_sample sample;
			enum status status;

			pipeline_sample_fill(&sample, (enum ipu_schedule_kind)kind, 2, 4, 2);
			pipeline_sample_times(&sample, 3, 2, 1, 1);
			support_fail_alloc(n);
			status = ipu_pipeline_new(&pipeline, &sample.params, NULL);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
			assert_true((!pipeline) == failed);
			ipu_pipeline_free(pipeline);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_work_comes_before_its_input_or_beside_another),
		cmocka_unit_test(test_held_back_weight_gradients_are_what_the_rules_say),
		cmocka_unit_test(test_the_ipus_schedules_hold_what_ipu_schedule_says),
		cmocka_unit_test(test_one_stage_has_no_bubble_and_no_hops),
		cmocka_unit_test(test_one_microbatch_goes_there_and_back),
		cmocka_unit_test(test_times_of_nothing_have_no_rates),
		cmocka_unit_test(test_rules_are_named_when_they_are_broken),
		cmocka_unit_test(test_hostile_sizes_are_refused),
		cmocka_unit_test(test_names_are_found_and_suggested),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
