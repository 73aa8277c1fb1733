/*
 * The budget of bytes: forecasts beside real databases, tiers that are lowered and say so, and what
 * is written all the same.
 */
#include "support/recorder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct recorder r[1]; /* each test opens it */

static int teardown(void **state)
{
	(void)state;
	recorder_close(r);
	return 0;
}

enum {
	COUNT = 1000
};
static const int64_t thousand[] = {COUNT};
static float values[COUNT];

/* Of both signs, over many magnitudes as gradients are. */
static void fill(void)
{
	uint32_t state = 1;

	for (int i = 0; i < COUNT; i++) {
		double sum = 0;

		for (int k = 0; k < 4; k++) {
			state = state * 1664525u + 1013904223u;
			sum += (double)state / 4294967296.0 - 0.5;
		}
		values[i] = (float)(sum * 0.01);
	}
}

static int64_t file_size(void)
{
	struct stat info;

	assert_int_equal(stat(r->place.path, &info), 0);
	return info.st_size;
}

/* What a recording of @tensors tensors over @steps steps takes; they are all in one stage, or each
 * in one of its own. */
static int64_t recorded_size(const char *capture, int tensors, int steps, bool stages)
{
	const struct recorder_params params = {.capture = capture};
	struct outfeed_tensor *t[64];
	int64_t size;
	char key[32];

	recorder_open(r, &params);
	for (int i = 0; i < tensors; i++) {
		snprintf(key, sizeof(key), "tensor_%d", i);
		t[i] = recorder_tensor(r, key, OUTFEED_GRADIENT, thousand, 1);
	}
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < tensors; i++) {
			r->keys.stage = stages ? i : 0;
			r->keys.weight_update = step;
			r->keys.execution = step / 10;
			recorder_record(r, t[i], step, values, COUNT);
		}
	}
	recorder_stop(r);
	size = file_size();
	recorder_close(r);
	return size;
}

static void test_forecasts_are_near_real_databases(void **state)
{
	static const struct {
		const char *capture;
		enum outfeed_tier tier;
		int steps;
	} cases[] = {
		{"[{\"tier\": \"counts\"}]", OUTFEED_COUNTS, 600},
		{"[{\"tier\": \"stats\"}]", OUTFEED_STATS, 600},
		{"[{\"tier\": \"histogram\"}]", OUTFEED_HISTOGRAM, 60},
		{"[{\"tier\": \"full\"}]", OUTFEED_FULL, 60},
	};
	double ratio;

	(void)state;
	fill();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct outfeed_choice choice = {cases[i].tier, 1, 0};
		const int64_t none = recorded_size(cases[i].capture, 20, 0, false);
		const int64_t some = recorded_size(cases[i].capture, 20, cases[i].steps, false);
		const double bytes = (double)(some - none) / (20.0 * cases[i].steps);

		ratio = outfeed_bytes(&choice, COUNT, DTYPE_FLOAT32) / bytes;
		print_message("%s: %.1f bytes, forecast / real = %.3f\n",
			      outfeed_tier_text(cases[i].tier), bytes, ratio);
		assert_true(ratio > 0.7 && ratio < 1.3);
	}
	recorder_open(r, NULL);
}

static void test_cheap_tiers_take_nothing(void **state)
{
	const struct outfeed_choice off = {OUTFEED_OFF, 1, 0}, health = {OUTFEED_HEALTH, 1, 0};

	(void)state;
	recorder_open(r, NULL);
	assert_true(outfeed_bytes(&off, 1000, DTYPE_FLOAT32) == 0);
	assert_true(outfeed_bytes(&health, 1000, DTYPE_FLOAT32) == 0);
	assert_true(outfeed_memory(&off, OUTFEED_WEIGHT, 1000, DTYPE_FLOAT32, 2) == 0);
}

static void test_memory_is_that_of_rings_and_of_values_before(void **state)
{
	const struct outfeed_choice last = {OUTFEED_LAST_N, 1, 20}, stats = {OUTFEED_STATS, 1, 0};
	const double ring = outfeed_memory(&last, OUTFEED_GRADIENT, 10000, DTYPE_FLOAT16, 3);
	const double before = outfeed_memory(&stats, OUTFEED_WEIGHT, 10000, DTYPE_FLOAT32, 3);

	(void)state;
	recorder_open(r, NULL);
	assert_true(ring >= 3.0 * 20 * 20000 && ring < 3.0 * 20 * 20000 * 1.05);
	assert_true(before >= 3.0 * 40000 && before < 3.0 * 40000 * 1.2);
}

/* ---- lowering -------------------------------------------------------------------------------- */

#define BUDGET 2000000

static void test_tiers_are_lowered_one_by_one_and_say_so(void **state)
{
	const struct recorder_params params = {
		.capture =
			"[{\"tensors\": \"full*\", \"tier\": \"full\"},"
			"{\"tensors\": \"last\", \"tier\": \"last 5\"},"
			"{\"tensors\": \"histogram\", \"tier\": \"histogram\"},"
			"{\"tensors\": \"health\", \"tier\": \"health\"}, {\"tier\": \"counts\"}]",
		.budget = BUDGET};
	static const char *const keys[] = {"full_a",    "full_b", "last",
					   "histogram", "counts", "health"};
	struct outfeed_tensor *t[6];
	int64_t before;

	(void)state;
	fill();
	before = recorded_size(params.capture, 6, 0, false);
	recorder_open(r, &params);
	for (int i = 0; i < 6; i++)
		t[i] = recorder_tensor(r, keys[i], OUTFEED_GRADIENT, thousand, 1);
	for (int step = 0; step < 6000; step++) {
		for (int i = 0; i < 6; i++) {
			values[0] = step == 5999 ? NAN : 0;
			recorder_record(r, t[i], step, values, COUNT);
		}
		if (step % 1000 == 0)
			ips_recording_flush(r->recording);
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(outfeed_tensor_tier(t[i]), OUTFEED_HEALTH);
	recorder_stop(r);
	/* Each step down once, in order; `last` before its ring was ever written. */
	assert_answer(
		r->place.path,
		"SELECT key, group_concat(tier, ' ') FROM (SELECT * FROM tensor_tiers) GROUP BY "
		"key ORDER BY key",
		"counts|counts health\nfull_a|full histogram stats counts health\n"
		"full_b|full histogram stats counts health\nhealth|health\n"
		"histogram|histogram stats counts health\nlast|last stats counts health\n");
	assert_answer(r->place.path,
		      "SELECT DISTINCT why FROM tensor_tiers WHERE time_ns IS NOT NULL",
		      "budget of 1.91 MB\n");
	assert_answer(r->place.path, "SELECT name FROM instants ORDER BY time_ns",
		      "full lowered to histogram\nlast lowered to stats\n"
		      "histogram lowered to stats\nstats lowered to counts\n"
		      "counts lowered to health\nfirst_nonfinite\n");
	assert_contains(r->lines, "[OUTFEED] budget of 1.91 MB: 1.5");
	assert_contains(r->lines, "MB are used, so 2 tensors of tier "
				  "full are from now on kept as histogram epoch=1 step=");
	/* Nothing is lost to a tier that could not be paid: a row each, until none could. */
	assert_answer(r->place.path,
		      "SELECT count(DISTINCT c) FROM (SELECT count(*) AS c FROM tensor_stats WHERE "
		      "step < 500 GROUP BY key)",
		      "1\n");
	/* Within the budget, and it is used. */
	assert_in_range(file_size() - before, BUDGET * 7 / 10, BUDGET * 115 / 100);
	/* The first bad number comes in any case. */
	assert_answer(r->place.path, "SELECT key, step FROM first_nonfinite", "full_a|5999\n");
}

static void test_a_histogram_is_paid_once(void **state)
{
	enum {
		HISTOGRAMS = 100
	};
	const struct outfeed_choice choice = {OUTFEED_HISTOGRAM, 1, 0};
	const double each = outfeed_bytes(&choice, COUNT, DTYPE_FLOAT32);
	/* What a histogram may spend is 0.9 of it; forecasts are good to a third. */
	const struct recorder_params params = {.capture = "[{\"tier\": \"histogram\"}]",
					       .budget = (int64_t)(HISTOGRAMS * each / 0.9 * 1.35)};
	struct outfeed_tensor *t;

	(void)state;
	fill();
	recorder_open(r, &params);
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, thousand, 1);
	for (int step = 0; step < HISTOGRAMS; step++)
		recorder_record(r, t, step, values, COUNT);
	assert_int_equal(outfeed_tensor_tier(t), OUTFEED_HISTOGRAM);
	for (int step = HISTOGRAMS; step < 2 * HISTOGRAMS; step++)
		recorder_record(r, t, step, values, COUNT);
	assert_int_equal(outfeed_tensor_tier(t), OUTFEED_STATS);
	recorder_stop(r);
}

static void test_hits_are_written_beyond_the_budget(void **state)
{
	struct outfeed_health_rules rules;
	const struct recorder_params params = {
		.capture = "[{\"tier\": \"last 4\"}]", .budget = 1, .rules = &rules};
	struct outfeed_tensor *t;

	(void)state;
	fill();
	recorder_rule(&rules, OUTFEED_HEALTH_nonfinite, 0, 1);
	recorder_open(r, &params);
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, thousand, 1);
	for (int step = 0; step < 10; step++) {
		values[7] = step == 6 ? INFINITY : 0;
		recorder_record(r, t, step, values, COUNT);
	}
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT rule, key, layer, step FROM health",
		      "nonfinite|t|layer|6\n");
	assert_answer(r->place.path, "SELECT element, value FROM first_nonfinite", "7|inf\n");
	/* A row is not left out in silence. */
	assert_contains(r->lines, "[OUTFEED] budget of 1 B: it is used up, so bad values have no "
				  "more rows");
	assert_answer(r->place.path,
		      "SELECT count(*), min(step) FROM instants WHERE name = 'budget used up'",
		      "1|6\n");
	assert_answer(r->place.path,
		      "SELECT (SELECT count(*) FROM captures), (SELECT count(*) FROM "
		      "tensor_stats)",
		      "0|0\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_forecasts_are_near_real_databases),
		TEST(test_cheap_tiers_take_nothing),
		TEST(test_memory_is_that_of_rings_and_of_values_before),
		TEST(test_tiers_are_lowered_one_by_one_and_say_so),
		TEST(test_a_histogram_is_paid_once),
		TEST(test_hits_are_written_beyond_the_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
