/*
 * Recorded tensors: the rows of each tier, every K steps, what is due, actual shapes, halves, and
 * that a step allocates nothing.
 */
#include "support/recorder.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "outfeed/outfeed_stats.h"

static struct recorder r[1]; /* each test opens it */

static int teardown(void **state)
{
	(void)state;
	recorder_close(r);
	return 0;
}

static const int64_t four[] = {4}, two_by_three[] = {2, 3};
static const float plain[] = {1, -2, 0, 3}, broken[] = {1, NAN, -INFINITY, 3};

static void open_with(const char *capture)
{
	const struct recorder_params params = {.capture = capture};

	recorder_open(r, &params);
}

#define ALL_STATS                                                                                  \
	"SELECT key, step, n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg, n_pos, min, max, mean, " \
	"l1, abs_min_nonzero, abs_max, inactive, update_ratio, n_changed FROM tensor_stats "       \
	"ORDER BY step, key"

/* ---- tiers ----------------------------------------------------------------------------------- */

static void test_health_writes_bad_values_only_and_then_all_of_the_row(void **state)
{
	struct outfeed_tensor *t;

	(void)state;
	open_with("[{\"tier\": \"health\"}]");
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	recorder_record(r, t, 0, plain, 4);
	recorder_record(r, t, 1, broken, 4);
	recorder_record(r, t, 2, plain, 4);
	recorder_stop(r);
	assert_answer(r->place.path, ALL_STATS,
		      "t|1|4|1|0|1|0|1|2|1.0|3.0|2.0|4.0|1.0|3.0|-|-|-\n");
	assert_answer(r->place.path,
		      "SELECT key, tier, every, keep, step, time_ns, why FROM tensor_tiers",
		      "t|health|1|-|-|-|outfeed.capture[0]\n");
}

static void test_what_is_bad_for_ever_is_not_written_for_ever(void **state)
{
	struct outfeed_tensor *t;

	(void)state;
	open_with("[{\"tier\": \"health\"}]");
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	for (int i = 0; i < 1000; i++)
		recorder_record(r, t, i, broken, 4);
	/* Sound again: known to be, since rows of the stretch were left out. */
	for (int i = 1000; i < 1010; i++)
		recorder_record(r, t, i, plain, 4);
	recorder_record(r, t, 1010, broken, 4);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT count(*), max(step) FROM tensor_stats WHERE step < 64",
		      "64|63\n");
	assert_answer(r->place.path,
		      "SELECT step, n_nan, abs_max FROM tensor_stats WHERE step > 63 ORDER BY step",
		      "127|1|3.0\n255|1|3.0\n511|1|3.0\n1000|-|3.0\n1010|1|3.0\n");
}

static void test_the_greatest_magnitude_that_is_known_saves_the_pass(void **state)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL, .abs_max_known = true};
	struct outfeed_tensor *t;

	(void)state;
	open_with("[{\"tier\": \"health\"}]");
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	/* It is believed, so the values are not read. */
	assert_int_equal(outfeed_record(t, &moment, NULL, 4, NULL, NULL), ST_OK);
	moment.abs_max = OUTFEED_NONFINITE_BITS;
	assert_int_equal(outfeed_record(t, &moment, broken, 4, NULL, NULL), ST_OK);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT n_nan, n_neg_inf FROM tensor_stats", "1|1\n");
}

static void test_each_tier_keeps_its_rows(void **state)
{
	static const char *const keys[] = {"counts", "full", "histogram", "last", "off", "stats"};

	(void)state;
	open_with("[{\"tensors\": \"off\", \"tier\": \"off\"},"
		  "{\"tensors\": \"counts\", \"tier\": \"counts\"},"
		  "{\"tensors\": \"stats\", \"tier\": \"stats\"},"
		  "{\"tensors\": \"histogram\", \"tier\": \"histogram\"},"
		  "{\"tensors\": \"last\", \"tier\": \"last 2\"},"
		  "{\"tensors\": \"full\", \"tier\": \"full\"}]");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct outfeed_tensor *t = recorder_tensor(r, keys[i], OUTFEED_GRADIENT, four, 1);

		assert_true((!t) == (strcmp(keys[i], "off") == 0));
		recorder_record(r, t, 5, plain, 4);
	}
	recorder_stop(r);
#define WHOLE "|5|4|0|0|0|1|1|2|-2.0|3.0|0.5|6.0|1.0|3.0|-|-|-\n"
	assert_answer(r->place.path, ALL_STATS,
		      "counts|5|4|0|0|0|1|1|2|-|-|-|-|-|3.0|-|-|-\n"
		      "full" WHOLE "histogram" WHOLE "last" WHOLE "stats" WHOLE);
	assert_answer(r->place.path,
		      "SELECT key, step, bin, low, high, count FROM tensor_histograms",
		      "histogram|5|-129|-4.0|-2.0|1\nhistogram|5|0|0.0|0.0|1\n"
		      "histogram|5|128|1.0|2.0|1\nhistogram|5|129|2.0|4.0|1\n");
	assert_answer(r->place.path,
		      "SELECT key, step, dtype, shape, bytes, chunk, hex(data) FROM captures "
		      "ORDER BY key",
		      "full|5|float32|(4,)|16|0|0000803F000000C00000000000004040\n"
		      "last|5|float32|(4,)|16|0|0000803F000000C00000000000004040\n");
	assert_answer(r->place.path, "SELECT key, tier, keep FROM tensor_tiers ORDER BY key",
		      "counts|counts|-\nfull|full|-\nhistogram|histogram|-\nlast|last|2\n"
		      "stats|stats|-\n");
}

static void test_every_tier_finds_what_explodes(void **state)
{
	static const char *const tiers[] = {"health", "counts", "stats", "histogram", "full"};
	static const float great[] = {1, -2e6f, 0, 3};
	static const float infinite[] = {1, -2e6f, INFINITY, 3};
	struct outfeed_health_rules rules;

	(void)state;
	outfeed_health_defaults(&rules);
	for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
		char capture[64];
		const struct recorder_params params = {.capture = capture, .rules = &rules};
		struct outfeed_tensor *t;

		snprintf(capture, sizeof(capture), "[{\"tier\": \"%s\"}]", tiers[i]);
		recorder_open(r, &params);
		t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
		recorder_record(r, t, 0, plain, 4);
		recorder_record(r, t, 1, great, 4);
		recorder_record(r, t, 2, infinite, 4);
		recorder_stop(r);
		assert_answer(r->place.path, "SELECT rule, step FROM health ORDER BY step",
			      "exploding|1\nnonfinite|2\n");
		if (i + 1 < sizeof(tiers) / sizeof(tiers[0]))
			recorder_close(r);
	}
}

static void test_every_k_counts_steps_and_else_updates(void **state)
{
	struct ips_keys keys = IPS_KEYS_NULL;
	struct outfeed_tensor *t;

	(void)state;
	open_with("[{\"tier\": \"counts\", \"every\": 3}]");
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	assert_true(outfeed_due(t, &keys));
	keys.weight_update = 4;
	assert_false(outfeed_due(t, &keys));
	keys.weight_update = 6;
	assert_true(outfeed_due(t, &keys));
	keys.step = 7;
	assert_false(outfeed_due(t, &keys));
	assert_false(outfeed_due(NULL, &keys));
	for (int i = 0; i < 10; i++)
		recorder_record(r, t, i, plain, 4);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT group_concat(step) FROM tensor_stats", "0,3,6,9\n");
}

static void test_a_row_is_given_at_any_tier_and_step(void **state)
{
	const struct outfeed_tensor_params queued = {
		.queue = "q", .key = "k", .shape = four, .ndim = 1, .asked = OUTFEED_SENT};
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	static const char *const captures[] = {"\"off\"", "\"health\"", "\"counts\"",
					       "[{\"tier\": \"full\", \"every\": 2}]"};
	struct outfeed_stats row;

	(void)state;
	moment.keys.step = 1;
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
		struct outfeed_tensor *t;

		open_with(captures[i]);
		t = recorder_add(r, &queued);
		assert_non_null(t);
		assert_int_equal(outfeed_record(t, &moment, plain, 4, &row, NULL), ST_OK);
		assert_close(row.mean, 0.5, 1e-12);
		assert_int_equal(row.n, 4);
		recorder_stop(r);
		/* What the tier does not keep is not written. */
		assert_answer(r->place.path, "SELECT count(*), count(mean) FROM tensor_stats",
			      i == 2 ? "1|0\n" : "0|0\n");
		if (i + 1 < sizeof(captures) / sizeof(captures[0]))
			recorder_close(r);
	}
}

/* ---- odd values ------------------------------------------------------------------------------ */

static void test_empty_values_and_scalars_have_rows(void **state)
{
	static const int64_t none[] = {0, 3};
	static const float one[] = {-0.5f};
	struct outfeed_tensor *empty, *scalar;

	(void)state;
	open_with("[{\"tier\": \"full\"}]");
	empty = recorder_tensor(r, "empty", OUTFEED_ACTIVATION, none, 2);
	scalar = recorder_tensor(r, "scalar", OUTFEED_GRADIENT, NULL, 0);
	recorder_record(r, empty, 0, NULL, 0);
	recorder_record(r, scalar, 0, one, 1);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT key, n, mean, max FROM tensor_stats ORDER BY key",
		      "empty|0|-|-\nscalar|1|-0.5|-0.5\n");
	assert_answer(r->place.path, "SELECT key, shape, bytes, chunk FROM captures ORDER BY key",
		      "empty|(0, 3)|0|0\nscalar|()|4|0\n");
	assert_answer(r->place.path, "SELECT key, shape FROM tensors ORDER BY key",
		      "empty|(0, 3)\nscalar|()\n");
}

static void test_a_shorter_value_has_its_own_shape(void **state)
{
	static const float values[] = {1, 2, 3, 4, 5, 6};
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	struct outfeed_tensor *t;
	struct err err;

	(void)state;
	open_with("[{\"tier\": \"full\"}]");
	t = recorder_tensor(r, "t", OUTFEED_ACTIVATION, two_by_three, 2);
	for (size_t i = 0; i < 4; i++)
		recorder_record(r, t, (int64_t)i, values, i == 3 ? 4 : 3 * i);
	assert_int_equal(outfeed_record(t, &moment, values, 7, NULL, &err), ST_INVALID);
	assert_contains(err.text, "\"t\" has 6 elements by its shape, but 7 were given");
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT step, shape, bytes FROM captures ORDER BY step",
		      "0|(0, 3)|0\n1|(1, 3)|12\n2|(2, 3)|24\n3|(4,)|16\n");
}

static void test_great_values_come_in_numbered_pieces(void **state)
{
	const int64_t shape[] = {700, 1000};
	float *values = calloc(700000, sizeof(*values));
	struct outfeed_tensor *t;

	(void)state;
	assert_non_null(values);
	for (int i = 0; i < 700000; i++)
		values[i] = (float)i;
	open_with("[{\"tier\": \"full\"}]");
	t = recorder_tensor(r, "t", OUTFEED_WEIGHT, shape, 2);
	for (int i = 0; i < 3; i++)
		recorder_record(r, t, i, values, 700000);
	recorder_stop(r);
	/* The first value of a piece is what its number says, and pieces are neighbours. */
	assert_answer(r->place.path,
		      "SELECT step, count(*), sum(bytes), min(chunk), max(chunk), max(bytes) <= "
		      "1048576, sum(length(data)) FROM captures GROUP BY step",
		      "0|11|2800000|0|10|1|2800000\n1|11|2800000|0|10|1|2800000\n"
		      "2|11|2800000|0|10|1|2800000\n");
	assert_answer(r->place.path,
		      "SELECT count(*) FROM (SELECT step * 100 + chunk AS place, lag(step * 100 + "
		      "chunk) OVER () AS before FROM captures) WHERE before > place",
		      "0\n");
	free(values);
}

static void test_halves_are_kept_as_they_are_and_have_the_rows_of_their_floats(void **state)
{
	/* 1, -2, 65504, 2^-24, infinity, -0, NaN */
	static const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x8000, 0x7e00};
	static const int64_t seven[] = {7}, many[] = {10000};
	const struct outfeed_tensor_params params[] = {
		{.queue = "watch",
		 .key = "full",
		 .shape = seven,
		 .ndim = 1,
		 .dtype = DTYPE_FLOAT16},
		{.queue = "watch",
		 .key = "counts",
		 .shape = seven,
		 .ndim = 1,
		 .dtype = DTYPE_FLOAT16},
		{.queue = "watch",
		 .key = "histogram",
		 .shape = seven,
		 .ndim = 1,
		 .dtype = DTYPE_FLOAT16},
		{.queue = "watch",
		 .key = "stats",
		 .shape = many,
		 .ndim = 1,
		 .dtype = DTYPE_FLOAT16},
	};
	uint16_t *great = malloc(10000 * sizeof(*great));

	(void)state;
	assert_non_null(great);
	for (int i = 0; i < 10000; i++)
		great[i] = (uint16_t)(0x3c00 + i % 1024); /* 1 up to below 2 */
	open_with("[{\"tensors\": \"counts\", \"tier\": \"counts\"},"
		  "{\"tensors\": \"histogram\", \"tier\": \"histogram\"},"
		  "{\"tensors\": \"stats\", \"tier\": \"stats\"}, {\"tier\": \"full\"}]");
	for (size_t i = 0; i < 3; i++)
		recorder_record(r, recorder_add(r, &params[i]), 0, halves, 7);
	recorder_record(r, recorder_add(r, &params[3]), 0, great, 10000);
	recorder_stop(r);
	assert_answer(r->place.path,
		      "SELECT key, n, n_nan, n_pos_inf, n_zero, n_neg, n_pos, min, max, "
		      "abs_min_nonzero * 16777216 FROM tensor_stats WHERE n = 7 ORDER BY key",
		      "counts|7|1|1|1|1|4|-|-|-\nfull|7|1|1|1|1|4|-2.0|65504.0|1.0\n"
		      "histogram|7|1|1|1|1|4|-2.0|65504.0|1.0\n");
	assert_answer(
		r->place.path,
		"SELECT n, n_pos, min, max, abs(mean - 1.49032421875) < 1e-9 FROM tensor_stats "
		"WHERE key = 'stats'",
		"10000|10000|1.0|1.9990234375|1\n");
	assert_answer(r->place.path, "SELECT dtype, shape, bytes, hex(data) FROM captures",
		      "float16|(7,)|14|003C00C0FF7B0100007C0080007E\n");
	assert_answer(r->place.path, "SELECT sum(count), min(bin), max(bin) FROM tensor_histograms",
		      "7|-129|257\n");
	assert_answer(r->place.path, "SELECT element, value FROM first_nonfinite", "4|inf\n");
	free(great);
}

/* ---- neurons and changes --------------------------------------------------------------------- */

static void test_inactive_neurons_are_counted_along_the_last_axis(void **state)
{
	/* of three neurons the second never lives, the third in one case */
	static const float relu[] = {1, 0, 0, 2, 0, 3};
	struct outfeed_tensor_params params = {.queue = "watch",
					       .key = "counts",
					       .kind = OUTFEED_ACTIVATION,
					       .shape = two_by_three,
					       .ndim = 2,
					       .activity = OUTFEED_RELU};

	(void)state;
	open_with("[{\"tensors\": \"health\", \"tier\": \"health\"}, {\"tier\": \"counts\"}]");
	recorder_record(r, recorder_add(r, &params), 0, relu, 6);
	params.key = "plain";
	params.activity = OUTFEED_NO_ACTIVITY;
	recorder_record(r, recorder_add(r, &params), 0, relu, 6);
	params.key = "gradient";
	params.activity = OUTFEED_RELU;
	params.kind = OUTFEED_GRADIENT;
	recorder_record(r, recorder_add(r, &params), 0, relu, 6);
	recorder_stop(r);
	assert_answer(r->place.path,
		      "SELECT key, round(inactive, 4) FROM tensor_stats ORDER BY key",
		      "counts|0.3333\ngradient|-\nplain|-\n");
}

/* A layer that is all NaN is not saturated: only `nonfinite` knows what is wrong with it. */
static void test_neurons_of_nan_are_not_called_dead(void **state)
{
	static const float values[] = {NAN, NAN, 0.5f, NAN, NAN, 1};
	struct outfeed_health_rules rules;
	const struct recorder_params recorder = {.capture = "[{\"tier\": \"counts\"}]",
						 .rules = &rules};
	const struct outfeed_tensor_params params = {.queue = "watch",
						     .key = "t",
						     .kind = OUTFEED_ACTIVATION,
						     .shape = two_by_three,
						     .ndim = 2,
						     .activity = OUTFEED_TANH};

	(void)state;
	recorder_rule(&rules, OUTFEED_HEALTH_saturated_activation, 0.5, 1);
	recorder_open(r, &recorder);
	recorder_record(r, recorder_add(r, &params), 0, values, 6);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT n_nan, inactive FROM tensor_stats", "4|-\n");
	assert_answer(r->place.path, "SELECT count(*) FROM health", "0\n");
}

static void test_halves_have_the_inactive_neurons_of_their_floats(void **state)
{
	/* 3 x 3,000: pieces end within rows */
	static const int64_t shape[] = {3, 3000};
	const struct outfeed_tensor_params params = {.queue = "watch",
						     .key = "t",
						     .kind = OUTFEED_ACTIVATION,
						     .shape = shape,
						     .ndim = 2,
						     .dtype = DTYPE_FLOAT16,
						     .activity = OUTFEED_RELU};
	uint16_t *halves = calloc(9000, sizeof(*halves));

	(void)state;
	assert_non_null(halves);
	for (int i = 0; i < 3000; i++)
		halves[(i % 3) * 3000 + i] = i < 2000 ? 0x3c00 : 0xbc00;
	open_with("[{\"tier\": \"counts\"}]");
	recorder_record(r, recorder_add(r, &params), 0, halves, 9000);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT round(inactive, 6) FROM tensor_stats", "0.333333\n");
	free(halves);
}

static void test_changes_are_since_the_last_look(void **state)
{
	static const float values[][4] = {
		{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 5}, {2, 2, 3, 5}, {2, 2, 3, 7}};
	static const enum outfeed_kind kinds[] = {OUTFEED_WEIGHT, OUTFEED_OPTIMIZER_STATE,
						  OUTFEED_GRADIENT, OUTFEED_WEIGHT, OUTFEED_WEIGHT};
	static const char *const keys[] = {"w", "m", "g", "sparse", "counts"};

	(void)state;
	open_with("[{\"tensors\": \"sparse\", \"tier\": \"stats\", \"every\": 2},"
		  "{\"tensors\": \"counts\", \"tier\": \"counts\"}, {\"tier\": \"stats\"}]");
	for (size_t k = 0; k < 5; k++) {
		struct outfeed_tensor *t = recorder_tensor(r, keys[k], kinds[k], four, 1);

		for (int i = 0; i < 5; i++)
			recorder_record(r, t, i, values[i], 4);
	}
	recorder_stop(r);
	assert_answer(
		r->place.path,
		"SELECT step, n_changed, round(update_ratio, 6) FROM tensor_stats WHERE key = 'w' "
		"ORDER BY step",
		"0|-|-\n1|0|0.0\n2|1|0.1\n3|1|0.090909\n4|1|0.166667\n");
	assert_answer(
		r->place.path,
		"SELECT step, n_changed, round(update_ratio, 6) FROM tensor_stats WHERE key = "
		"'sparse' ORDER BY step",
		"0|-|-\n2|1|0.1\n4|2|0.272727\n");
	assert_answer(r->place.path,
		      "SELECT key, count(n_changed), count(update_ratio) FROM tensor_stats "
		      "GROUP BY key ORDER BY key",
		      "counts|0|0\ng|0|0\nm|4|4\nsparse|2|2\nw|4|4\n");
}

/* ---- no recording, no memory, no disk -------------------------------------------------------- */

static void test_without_a_recording_rules_are_asked_all_the_same(void **state)
{
	struct outfeed_health_rules rules;
	const struct recorder_params params = {
		.capture = "[{\"tier\": \"last 3\"}]", .rules = &rules, .unrecorded = true};
	struct outfeed_tensor *t;

	(void)state;
	recorder_rule(&rules, OUTFEED_HEALTH_nonfinite, 0, 1);
	recorder_open(r, &params);
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	for (int i = 0; i < 5; i++)
		recorder_record(r, t, i, i == 3 ? broken : plain, 4);
	assert_int_equal(outfeed_drain(r->outfeed, 100, NULL), ST_OK);
	assert_int_equal(r->hits, 1);
	assert_contains(r->lines,
			"[HEALTH] rule=nonfinite key=t layer=layer epoch=1 step=3 replica=0");
}

struct names {
	int count;
	char name[8][2048];
};

static bool add_name(void *user, const char *name, void *data, size_t bytes)
{
	struct names *names = user;

	(void)data;
	(void)bytes;
	assert_true(names->count < (int)ARRAY_LEN(names->name));
	for (int i = 0; i < names->count; i++)
		assert_string_not_equal(names->name[i], name);
	str_copy(names->name[names->count++], sizeof(names->name[0]), name);
	return true;
}

/* A path of layers within layers, of which the ends differ. */
static void test_states_of_long_keys_have_different_names(void **state)
{
	static struct names names;
	struct outfeed_health_rules rules;
	const struct recorder_params params = {
		.capture = "[{\"tier\": \"last 3\"}]", .rules = &rules, .unrecorded = true};
	char key[600];

	(void)state;
	recorder_rule(&rules, OUTFEED_HEALTH_nonfinite, 0, 1);
	recorder_open(r, &params);
	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	for (int i = 0; i < 2; i++) {
		key[sizeof(key) - 2] = (char)('0' + i);
		recorder_tensor(r, key, OUTFEED_GRADIENT, four, 1);
	}
	outfeed_state(r->outfeed, 0, add_name, &names);
	assert_true(names.count >= 4);
}

/* Open a recorder with two tensors, the @n-th allocation failing. */
static enum status open_failing(struct ips_recording *recording, long n, bool *failed)
{
	static const struct outfeed_tensor_params tensors[] = {
		{.queue = "q", .key = "a", .kind = OUTFEED_WEIGHT, .shape = four, .ndim = 1},
		{.queue = "q",
		 .key = "b",
		 .layer = "l",
		 .shape = two_by_three,
		 .ndim = 2,
		 .activity = OUTFEED_TANH},
	};
	struct outfeed_health_rules rules;
	const struct outfeed_params params = {
		.recording = recording, .policy = &r->policy, .rules = &rules, .replicas = 2};
	struct outfeed *outfeed;
	enum status status;

	outfeed_health_defaults(&rules);
	support_fail_alloc_here(n);
	status = outfeed_new(&outfeed, &params, NULL);
	for (int i = 0; i < 2 && status == ST_OK; i++) {
		struct outfeed_tensor *t;

		status = outfeed_tensor_add(outfeed, &t, &tensors[i], NULL);
		assert_true((status == ST_OK) == (t != NULL));
	}
	*failed = support_alloc_failed();
	support_fail_alloc(-1);
	assert_int_equal(outfeed_close(outfeed, NULL), ST_OK);
	return status;
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	const struct recorder_params params = {
		.capture = "[{\"tensors\": \"a\", \"tier\": \"last 3\"}, {\"tier\": \"full\"}]",
		.unrecorded = true};
	bool failed = true;

	(void)state;
	recorder_open(r, &params);
	for (long n = 0; failed; n++) {
		const enum status status = open_failing(NULL, n, &failed);

		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
	}
	failed = true;
	for (long n = 0; failed; n++) {
		struct ips_recording *recording = prof_start(&r->place, NULL);
		const enum status status = open_failing(recording, n, &failed);

		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		prof_stop(recording);
		unlink(r->place.path);
	}
}

/* The recording's threads allocate as they like beside it. */
static void test_a_step_allocates_nothing(void **state)
{
	static const char *const tiers[] = {"health",    "counts", "stats",
					    "histogram", "last 3", "full"};
	struct outfeed_health_rules rules;
	struct outfeed_tensor *t[6][2];
	char capture[512] = "[";
	const struct recorder_params params = {.capture = capture, .rules = &rules};
	static float values[6];

	(void)state;
	outfeed_health_defaults(&rules);
	for (int i = 0; i < 6; i++)
		snprintf(capture + strlen(capture), sizeof(capture) - strlen(capture),
			 "%s{\"tensors\": \"%d*\", \"tier\": \"%s\"}", i == 0 ? "" : ",", i,
			 tiers[i]);
	strcat(capture, "]");
	recorder_open(r, &params);
	for (int i = 0; i < 6; i++) {
		struct outfeed_tensor_params p = {.queue = "watch",
						  .key = (const char[]){(char)('0' + i), 0},
						  .kind = OUTFEED_ACTIVATION,
						  .shape = two_by_three,
						  .ndim = 2,
						  .activity = OUTFEED_RELU};

		t[i][0] = recorder_add(r, &p);
		p.key = (const char[]){(char)('0' + i), 'w', 0};
		p.kind = OUTFEED_WEIGHT;
		p.activity = OUTFEED_NO_ACTIVITY;
		p.dtype = DTYPE_FLOAT16;
		t[i][1] = recorder_add(r, &p);
	}
	for (int step = 0; step < 4; step++) {
		assert_int_equal(ips_recording_flush(r->recording), 0);
		if (step > 0)
			support_fail_alloc_here(0);
		for (int i = 0; i < 12; i++) {
			values[0] = (float)step;
			recorder_record(r, t[i / 2][i % 2], step, values, 6);
		}
		assert_false(step > 0 && support_alloc_failed());
		support_fail_alloc(-1);
	}
}

static void test_a_failure_is_told_where_a_tier_was_lowered_first(void **state)
{
	const struct recorder_params params = {.capture = "[{\"tier\": \"full\"}]", .budget = 400};
	const struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "m", 1.0};
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	struct outfeed_tensor *t;
	struct err err;

	(void)state;
	recorder_open(r, &params);
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	recorder_record(r, t, 0, plain, 4);
	assert_int_equal(outfeed_tensor_tier(t), OUTFEED_FULL);
	assert_int_equal(ips_recording_flush(r->recording), 0);
	prof_change(r->place.path, "DROP VIEW metrics; DROP TABLE metric_rows");
	for (int i = 0; i < 10000 && ips_recording_status(r->recording, NULL, 0) == 0; i++) {
		ips_append_metric(r->recording, &row);
		ips_recording_flush(r->recording);
		usleep(1000);
	}
	assert_int_not_equal(outfeed_record(t, &moment, plain, 4, NULL, &err), ST_OK);
	assert_contains(err.text, "metric_rows");
	assert_int_equal(outfeed_tensor_tier(t), OUTFEED_STATS);
	assert_int_equal(outfeed_record(t, &moment, plain, 4, NULL, &err), ST_OK);
	assert_int_equal(outfeed_close(r->outfeed, NULL), ST_OK);
	r->outfeed = NULL;
	assert_int_not_equal(ips_recording_close(r->recording, NULL, 0), 0);
	r->recording = NULL;
}

static void test_a_full_disk_is_told_once_and_rules_go_on(void **state)
{
	struct outfeed_health_rules rules;
	const struct recorder_params params = {.capture = "[{\"tier\": \"full\"}]",
					       .rules = &rules};
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	struct outfeed_tensor *t;
	int failures = 0;
	struct err err;

	(void)state;
	recorder_rule(&rules, OUTFEED_HEALTH_nonfinite, 0, 1);
	recorder_open(r, &params);
	t = recorder_tensor(r, "t", OUTFEED_GRADIENT, four, 1);
	/*
	 * Behind its back another connection takes the table away: the next row cannot be written.
	 */
	recorder_record(r, t, 0, plain, 4);
	assert_int_equal(ips_recording_flush(r->recording), 0);
	prof_change(r->place.path, "DROP VIEW captures; DROP TABLE capture_rows");
	/* Until the queue has heard of it rows may still be taken. */
	for (int i = 0; i < 50 || (failures == 0 && i < 10000); i++) {
		enum status status =
			outfeed_record(t, &moment, i == 40 ? broken : plain, 4, NULL, &err);

		failures += status != ST_OK;
		if (status != ST_OK)
			assert_contains(err.text, "capture_rows");
		ips_recording_flush(r->recording);
		usleep(1000); /* or the writer may not come to say so */
	}
	assert_int_equal(failures, 1);
	assert_int_equal(r->hits, 1);
	assert_int_equal(outfeed_close(r->outfeed, NULL), ST_OK);
	r->outfeed = NULL;
	assert_int_not_equal(ips_recording_close(r->recording, NULL, 0), 0);
	r->recording = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_health_writes_bad_values_only_and_then_all_of_the_row),
		TEST(test_what_is_bad_for_ever_is_not_written_for_ever),
		TEST(test_the_greatest_magnitude_that_is_known_saves_the_pass),
		TEST(test_each_tier_keeps_its_rows),
		TEST(test_every_tier_finds_what_explodes),
		TEST(test_every_k_counts_steps_and_else_updates),
		TEST(test_a_row_is_given_at_any_tier_and_step),
		TEST(test_empty_values_and_scalars_have_rows),
		TEST(test_a_shorter_value_has_its_own_shape),
		TEST(test_great_values_come_in_numbered_pieces),
		TEST(test_halves_are_kept_as_they_are_and_have_the_rows_of_their_floats),
		TEST(test_inactive_neurons_are_counted_along_the_last_axis),
		TEST(test_neurons_of_nan_are_not_called_dead),
		TEST(test_halves_have_the_inactive_neurons_of_their_floats),
		TEST(test_changes_are_since_the_last_look),
		TEST(test_without_a_recording_rules_are_asked_all_the_same),
		TEST(test_states_of_long_keys_have_different_names),
		TEST(test_no_failed_allocation_leaves_anything),
		TEST(test_a_step_allocates_nothing),
		TEST(test_a_failure_is_told_where_a_tier_was_lowered_first),
		TEST(test_a_full_disk_is_told_once_and_rules_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
