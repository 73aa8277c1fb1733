/*
 * The public header of tensors: statistics without a recording, kept values read back, and errors
 * that name the place.
 */
#include "support/public_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "common/err.h"
#include "common/mem.h"
#include "outfeed/outfeed_stats.h"

static char message[512];

/* ---- statistics ------------------------------------------------------------------------------ */

static void test_statistics_need_no_recording(void **state)
{
	const float values[] = {1, 2, 3, 4, NAN, -INFINITY};
	const uint16_t halves[] = {0x3c00, 0xc000, 0x7c00}; /* 1, -2, inf */
	struct ips_tensor_stats row;

	(void)state;
	assert_int_equal(ips_outfeed_stats(&row, values, 6, IPS_OUTFEED_FLOAT32), 0);
	assert_int_equal(row.n, 6);
	assert_int_equal(row.n_nan, 1);
	assert_int_equal(row.n_neg_inf, 1);
	assert_close(row.mean, 2.5, 1e-15);
	assert_close(row.std, sqrt(1.25), 1e-15);
	assert_close(row.l2, sqrt(30.0), 1e-15);
	assert_true(row.tensor_id == IPS_NULL && row.time_ns == IPS_NULL &&
		    row.keys.step == IPS_NULL && row.n_changed == IPS_NULL && isnan(row.inactive));
	assert_int_equal(ips_outfeed_stats(&row, halves, 3, IPS_OUTFEED_FLOAT16), 0);
	assert_true(row.n_pos_inf == 1 && row.min == -2 && row.max == 1);
	assert_int_equal(ips_outfeed_stats(&row, NULL, 0, IPS_OUTFEED_FLOAT32), 0);
	assert_true(row.n == 0 && isnan(row.mean));
	assert_int_equal(ips_outfeed_stats(&row, values, 1, (enum ips_outfeed_dtype)10),
			 ST_INVALID);
}

/* A program of -Ofast takes denormals for zeros; they count as what they are. */
static void test_denormals_count_whatever_the_program_makes_of_them(void **state)
{
#if defined(__SSE2__)
	static float values[3000]; /* more than any kernel takes at once */
	const unsigned before = _mm_getcsr(), fast = before | 0x8040;
	struct ips_tensor_stats row;

	(void)state;
	for (int i = 0; i < 3000; i++)
		values[i] = i % 3 == 0 ? -1e-41f : i % 3 == 1 ? 1e-41f : 0;
	_mm_setcsr(fast);
	assert_int_equal(ips_outfeed_stats(&row, values, 3000, IPS_OUTFEED_FLOAT32), 0);
	assert_int_equal(_mm_getcsr() & fast, fast);
	_mm_setcsr(before);
	assert_int_equal(row.n_neg, 1000);
	assert_int_equal(row.n_pos, 1000);
	assert_int_equal(row.n_zero, 1000);
	assert_true(row.min == (double)-1e-41f && row.abs_min_nonzero == (double)1e-41f);
#else
	(void)state;
	skip();
#endif
}

/* As outfeed_stats.h promises the room itself. */
static void test_halves_have_the_row_of_the_floats_they_are(void **state)
{
	static uint16_t halves[30000];
	static float wide[30000];
	struct ips_tensor_stats of_halves, of_floats;

	(void)state;
	for (uint32_t i = 0; i < 30000; i++)
		halves[i] = (uint16_t)((i * 2654435761u >> 13) & 0xfbff);
	for (uint32_t i = 0; i < 30000; i++)
		halves[i] = (halves[i] & 0x7c00) == 0x7c00 ? 0x3c00 : halves[i];
	outfeed_scan_widen(wide, halves, 30000);
	assert_int_equal(ips_outfeed_stats(&of_halves, halves, 30000, IPS_OUTFEED_FLOAT16), 0);
	assert_int_equal(ips_outfeed_stats(&of_floats, wide, 30000, IPS_OUTFEED_FLOAT32), 0);
	/* Keys have padding. */
	assert_memory_equal(&of_halves.n, &of_floats.n,
			    sizeof(of_halves) - offsetof(struct ips_tensor_stats, n));
}

/* Expected values were worked out by hand. */
static void test_each_type_has_the_row_of_its_values(void **state)
{
	static const uint16_t bfloats[] = {0x3f80, 0xc040, 0x7f80, 0xff80, 0x7fc1}; /* 1 -3 inf */
	static const double doubles[] = {1e300, -1e-300, 0, INFINITY, 2.5};
	static const int8_t bytes[] = {-128, 127, 0, 1, 0};
	static const uint8_t images[] = {0, 255, 3, 2, 0};
	static const int16_t shorts[] = {-32768, 32767, 0, 1, 0};
	static const int32_t ints[] = {INT32_MIN, 0, 5, 3, 0};
	static const int64_t longs[] = {INT64_MIN, 1, 0, 0, 7};
	static const uint8_t bools[] = {0, 1, 2, 0, 1};
	static const struct {
		enum ips_outfeed_dtype dtype;
		const void *values;
		int64_t nan, pos_inf, neg_inf, zero, neg;
		double min, max, l1;
	} rows[] = {
		{IPS_OUTFEED_BFLOAT16, bfloats, 1, 1, 1, 0, 2, -3, 1, 4},
		{IPS_OUTFEED_FLOAT64, doubles, 0, 1, 0, 1, 1, -0x1p-149, 0x1.fffffep127,
		 0x1.fffffep127},
		{IPS_OUTFEED_INT8, bytes, 0, 0, 0, 2, 1, -128, 127, 256},
		{IPS_OUTFEED_UINT8, images, 0, 0, 0, 2, 0, 0, 255, 260},
		{IPS_OUTFEED_INT16, shorts, 0, 0, 0, 2, 1, -32768, 32767, 65536},
		{IPS_OUTFEED_INT32, ints, 0, 0, 0, 2, 1, -0x1p31, 5, 0x1p31 + 8},
		{IPS_OUTFEED_INT64, longs, 0, 0, 0, 2, 1, -0x1p63, 7, 0x1p63},
		{IPS_OUTFEED_BOOL, bools, 0, 0, 0, 2, 0, 0, 1, 3},
	};
	struct ips_tensor_stats row;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(ips_outfeed_stats(&row, rows[i].values, 5, rows[i].dtype), 0);
		assert_int_equal(row.n, 5);
		assert_int_equal(row.n_nan, rows[i].nan);
		assert_int_equal(row.n_pos_inf, rows[i].pos_inf);
		assert_int_equal(row.n_neg_inf, rows[i].neg_inf);
		assert_int_equal(row.n_zero, rows[i].zero);
		assert_int_equal(row.n_neg, rows[i].neg);
		assert_true(row.min == rows[i].min && row.max == rows[i].max);
		assert_close(row.l1, rows[i].l1, 1e-7);
	}
}

static void test_captured_values_keep_their_type(void **state)
{
	static const int64_t values[] = {INT64_MAX, -5, 7}, shape[] = {3};
	struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults("tokens");
	struct ips_outfeed_params own = ips_outfeed_defaults();
	const struct ips_captures_array *array;
	struct ips_outfeed_tensor *tensor;
	struct ips_recording *recording;
	struct ips_captures *captures;
	struct ips_outfeed *outfeed;
	struct prof_place place;
	int64_t back[3];

	(void)state;
	prof_place_make(&place);
	own.capture = "full";
	params.dtype = IPS_OUTFEED_INT64;
	params.shape = shape;
	params.ndim = 1;
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, &own);
	assert_int_equal(ips_outfeed_tensor(outfeed, &tensor, &params, NULL, 0), 0);
	assert_int_equal(ips_outfeed_record(tensor, NULL, values, 3), 0);
	public_close(outfeed);
	prof_stop(recording);
	assert_int_equal(ips_captures_open(&captures, place.path, NULL, 0), 0);
	array = ips_captures_at(captures, 0);
	assert_true(array && array->dtype == IPS_OUTFEED_INT64 && array->bytes == 24);
	assert_int_equal(ips_captures_read(captures, 0, 0, 1, back, NULL, 0), 0);
	assert_memory_equal(back, values, sizeof(values));
	ips_captures_close(captures);
	prof_place_remove(&place);
}

static void test_merged_statistics_are_those_of_both(void **state)
{
	float values[10000];
	struct ips_tensor_stats all, one, two;

	(void)state;
	for (int i = 0; i < 10000; i++)
		values[i] = 1e4f + (float)(i % 7) * 1e-2f;
	values[9000] = NAN;
	assert_int_equal(ips_outfeed_stats(&all, values, 10000, IPS_OUTFEED_FLOAT32), 0);
	assert_int_equal(ips_outfeed_stats(&one, values, 3333, IPS_OUTFEED_FLOAT32), 0);
	assert_int_equal(ips_outfeed_stats(&two, values + 3333, 6667, IPS_OUTFEED_FLOAT32), 0);
	one.tensor_id = 5;
	ips_outfeed_stats_merge(&one, &two);
	assert_true(one.tensor_id == 5 && one.n == all.n && one.n_nan == 1 && one.n_pos == 9999);
	assert_close(one.mean, all.mean, 1e-14);
	assert_close(one.std, all.std, 1e-9);
	assert_close(one.l2, all.l2, 1e-14);
	assert_true(one.min == all.min && one.max == all.max);
	assert_int_equal(ips_outfeed_stats(&two, NULL, 0, IPS_OUTFEED_FLOAT32), 0);
	all = one;
	ips_outfeed_stats_merge(&one, &two);
	assert_close(one.std, all.std, 1e-15);
	ips_outfeed_stats_merge(&two, &one);
	assert_close(two.std, all.std, 1e-15);
}

/* ---- kept values ----------------------------------------------------------------------------- */

static void keep_values(const char *path_capture, struct ips_recording *recording)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	struct ips_outfeed_tensor *tensor;
	struct ips_outfeed *outfeed;

	params.capture = path_capture;
	outfeed = public_open(recording, &params);
	tensor = public_add(outfeed, "k", IPS_OUTFEED_GRADIENT, 2, 2);
	for (int step = 0; step < 10; step++) {
		const struct ips_keys keys = public_step(step);
		const float s = (float)step, values[] = {s, s + 0.25f, s + 0.5f, s + 0.75f};

		assert_int_equal(ips_outfeed_record(tensor, &keys, values, 4), 0);
	}
	public_close(outfeed);
}

static void check_kept(const char *path, int from)
{
	struct ips_captures *captures;
	const struct ips_captures_array *array;
	struct ips_keys keys[10];
	float values[8];

	if (ips_captures_open(&captures, path, message, sizeof(message)) != 0)
		fail_msg("%s", message);
	assert_int_equal(ips_captures_count(captures), 1);
	assert_null(ips_captures_at(captures, 1));
	assert_null(ips_captures_at(captures, -1));
	array = ips_captures_at(captures, 0);
	assert_string_equal(array->name, "k");
	assert_string_equal(array->queue, "outfeed");
	assert_int_equal(array->dtype, IPS_OUTFEED_FLOAT32);
	assert_true(array->ndim == 3 && array->shape[0] == 10 - from && array->shape[1] == 2 &&
		    array->shape[2] == 2 && array->bytes == (10 - from) * 16);
	assert_int_equal(ips_captures_read(captures, 0, 3, 2, values, NULL, 0), 0);
	for (int i = 0; i < 8; i++)
		assert_true(values[i] == (float)(from + 3) + (float)i * 0.25f);
	assert_int_equal(ips_captures_keys(captures, 0, keys, NULL, 0), 0);
	assert_true(keys[0].step == from && keys[9 - from].step == 9);
	assert_int_equal(ips_captures_read(captures, 0, 10 - from, 0, values, NULL, 0), 0);
	assert_int_equal(
		ips_captures_read(captures, 0, 9 - from, 2, values, message, sizeof(message)),
		ST_INVALID);
	assert_contains(message, "\"k\": 2 items from");
	assert_int_equal(ips_captures_keys(captures, 1, keys, message, sizeof(message)),
			 ST_INVALID);
	assert_contains(message, "array 1, where there are 1");
	ips_captures_close(captures);
}

static void test_kept_values_are_read_back(void **state)
{
	static const struct {
		const char *capture;
		int from;
	} cases[] = {{"full", 0}, {"last 6", 4}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct prof_place place;
		struct ips_recording *recording;

		prof_place_make(&place);
		recording = prof_start(&place, NULL);
		keep_values(cases[i].capture, recording);
		prof_stop(recording);
		check_kept(place.path, cases[i].from);
		prof_place_remove(&place);
	}
}

static void test_a_flush_writes_what_is_kept_in_memory(void **state)
{
	struct ips_outfeed_params params = ips_outfeed_defaults();
	const struct ips_keys keys = public_step(0), next = public_step(1);
	const float values[] = {1, 2};
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_outfeed *outfeed;
	struct ips_outfeed_tensor *tensor;

	(void)state;
	params.capture = "last 3";
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	outfeed = public_open(recording, &params);
	tensor = public_add(outfeed, "k", IPS_OUTFEED_GRADIENT, 1, 2);
	assert_int_equal(ips_outfeed_record(tensor, &keys, values, 2), 0);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place.path, "SELECT count(*) FROM captures", "0\n");
	ips_outfeed_flush(outfeed);
	assert_int_equal(ips_outfeed_record(tensor, &next, values, 2), 0);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place.path, "SELECT step FROM captures WHERE step = 0", "0\n");
	public_close(outfeed);
	prof_stop(recording);
	assert_answer(place.path, "SELECT step FROM captures ORDER BY step", "0\n1\n");
	prof_place_remove(&place);
}

static void test_what_is_no_recording_is_refused(void **state)
{
	struct ips_captures *captures = (struct ips_captures *)&message;

	(void)state;
	assert_int_equal(ips_captures_open(&captures, "/nowhere/run.db", message, sizeof(message)),
			 ST_NOTFOUND);
	assert_null(captures);
	assert_contains(message, "/nowhere/run.db");
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_errors_name_the_place(void **state)
{
	static const struct {
		const char *capture, *health;
		int replicas;
		int64_t budget;
		const char *part;
	} cases[] = {
		{"[{\"tier\": \"ful\"}]", NULL, 1, 0,
		 "capture: [0].tier: unknown tier \"ful\" (did you mean \"full\"?)"},
		{"statts", NULL, 1, 0, "did you mean \"stats\"?"},
		{"[{", NULL, 1, 0, "capture:1:3: unexpected end"},
		{NULL, "{\"exploding\": {\"treshold\": 1}}", 1, 0, "did you mean \"threshold\"?"},
		{NULL, "vanishing", 1, 0, "health"},
		{NULL, NULL, 0, 0, "replicas: 0"},
		{NULL, NULL, 1, -1, "budget: "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ips_outfeed_params params = ips_outfeed_defaults();
		struct ips_outfeed *outfeed = (struct ips_outfeed *)&message;

		params.capture = cases[i].capture;
		params.health = cases[i].health;
		params.replicas = cases[i].replicas;
		params.budget = cases[i].budget;
		assert_int_not_equal(
			ips_outfeed_open(&outfeed, NULL, &params, message, sizeof(message)), 0);
		assert_null(outfeed);
		assert_contains(message, cases[i].part);
	}
}

static void test_params_without_a_size_are_refused(void **state)
{
	const struct ips_outfeed_params none = {0};
	const struct ips_outfeed_tensor_params empty = {0};
	struct ips_outfeed_tensor *tensor;
	struct ips_outfeed *outfeed;

	(void)state;
	assert_int_equal(ips_outfeed_open(&outfeed, NULL, &none, message, sizeof(message)),
			 ST_INVALID);
	assert_null(outfeed);
	assert_contains(message, "begin with ips_outfeed_defaults()");
	assert_int_equal(ips_outfeed_tensor(NULL, &tensor, &empty, message, sizeof(message)),
			 ST_INVALID);
	assert_contains(message, "begin with ips_outfeed_tensor_defaults()");
}

static void expect_refused(struct ips_outfeed *outfeed,
			   const struct ips_outfeed_tensor_params *params, const char *part)
{
	struct ips_outfeed_tensor *tensor = (struct ips_outfeed_tensor *)&message;

	assert_int_equal(ips_outfeed_tensor(outfeed, &tensor, params, message, sizeof(message)),
			 ST_INVALID);
	assert_null(tensor);
	assert_contains(message, part);
}

static void test_impossible_tensors_are_refused(void **state)
{
	struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults(NULL);
	const int64_t great[] = {INT64_MAX / 2, 8}, none[] = {4, 0};
	static char name[IPS_NAME_MOST + 2];
	struct ips_outfeed *outfeed = public_open(NULL, NULL);

	(void)state;
	expect_refused(outfeed, &params, "no key");
	memset(name, 'n', sizeof(name) - 1);
	params.key = name;
	expect_refused(outfeed, &params,
		       "nnn...\": its key, queue or layer has more than 16384 bytes");
	params.key = "x";
	params.queue = name;
	expect_refused(outfeed, &params, "tensor \"x...\": its key, queue or layer");
	params.queue = NULL;
	params.layer = name;
	expect_refused(outfeed, &params, "tensor \"x...\": its key, queue or layer");
	params.layer = NULL;
	params.ndim = 2;
	expect_refused(outfeed, &params, "tensor \"x\": a shape of 2 dimensions");
	params.shape = great;
	expect_refused(outfeed, &params, "shape[0]");
	params.shape = none;
	expect_refused(outfeed, &params, "shape[1] is 0");
	params.ndim = 0;
	params.stage = -3;
	expect_refused(outfeed, &params, "stage -3");
	params.stage = IPS_NULL;
	params.kind = (enum ips_outfeed_kind)9;
	expect_refused(outfeed, &params, "kind 9");
	public_add(outfeed, "y", IPS_OUTFEED_WEIGHT, 1, 1);
	params = ips_outfeed_tensor_defaults("y");
	expect_refused(outfeed, &params, "queue \"outfeed\" has it already");
	public_close(outfeed);
}

static void test_impossible_values_are_refused_and_the_first_is_kept(void **state)
{
	const float values[12] = {0};
	struct ips_keys keys = public_step(0);
	struct ips_outfeed *outfeed = public_open(NULL, NULL);
	struct ips_outfeed_tensor *tensor = public_add(outfeed, "x", IPS_OUTFEED_WEIGHT, 3, 2);

	(void)state;
	assert_int_equal(ips_outfeed_record(tensor, &keys, values, 5), ST_INVALID);
	assert_int_equal(ips_outfeed_status(outfeed, message, sizeof(message)), ST_INVALID);
	assert_contains(message, "tensor \"x\": 5 values, where its shape has 6");
	assert_int_equal(ips_outfeed_record(tensor, &keys, values, 12), ST_INVALID);
	keys.replica = 1;
	assert_int_equal(ips_outfeed_record(tensor, &keys, values, 6), ST_INVALID);
	keys.replica = 0;
	assert_int_equal(ips_outfeed_record(tensor, &keys, values, 4), 0);
	assert_int_equal(ips_outfeed_close(outfeed, message, sizeof(message)), ST_INVALID);
	assert_contains(message, "tensor \"x\": 5 values");
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct ips_outfeed_tensor_params params = ips_outfeed_tensor_defaults("x");
		struct ips_outfeed_params own = ips_outfeed_defaults();
		struct ips_outfeed_tensor *tensor = NULL;
		struct ips_outfeed *outfeed;
		int status;

		own.capture = "[{\"tensors\": [\"a\", \"x\"], \"tier\": \"last 3\"}]";
		own.health = "{\"overfit\": false}";
		params.layer = "dense";
		support_fail_alloc(n);
		status = ips_outfeed_open(&outfeed, NULL, &own, message, sizeof(message));
		if (status == 0)
			status = ips_outfeed_tensor(outfeed, &tensor, &params, message,
						    sizeof(message));
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : 0);
		assert_true(failed == (!tensor));
		assert_true(!failed || strstr(message, "out of memory"));
		assert_int_equal(ips_outfeed_close(outfeed, NULL, 0), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statistics_need_no_recording),
		cmocka_unit_test(test_denormals_count_whatever_the_program_makes_of_them),
		cmocka_unit_test(test_halves_have_the_row_of_the_floats_they_are),
		cmocka_unit_test(test_each_type_has_the_row_of_its_values),
		cmocka_unit_test(test_captured_values_keep_their_type),
		cmocka_unit_test(test_merged_statistics_are_those_of_both),
		cmocka_unit_test(test_kept_values_are_read_back),
		cmocka_unit_test(test_a_flush_writes_what_is_kept_in_memory),
		cmocka_unit_test(test_what_is_no_recording_is_refused),
		cmocka_unit_test(test_errors_name_the_place),
		cmocka_unit_test(test_params_without_a_size_are_refused),
		cmocka_unit_test(test_impossible_tensors_are_refused),
		cmocka_unit_test(test_impossible_values_are_refused_and_the_first_is_kept),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
