/*
 * Outfeed queues: what is printed, byte for byte, where a queue may be enqueued, and the rows that
 * reach the database.
 */
#include "support/support.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pool.h"
#include "outfeed/outfeed_queue.h"

#define HEADER_23                                                                                  \
	"Index Name                         Mean         Std          Minimum      Maximum      "  \
	"NaNs    infs   \n"

static const struct outfeed_policy everything = {0};
static struct outfeed *recorder; /* of no recording: what queues print is theirs */

static int setup(void **state)
{
	const struct outfeed_params params = {.policy = &everything, .replicas = 8};

	(void)state;
	return (int)outfeed_new(&recorder, &params, NULL);
}

static int teardown(void **state)
{
	(void)state;
	return (int)outfeed_close(recorder, NULL);
}

static struct outfeed_queue *queue_of(enum outfeed_mode mode, int replicas, bool wrapped)
{
	struct outfeed_queue_params params = {
		.name = "queue", .mode = mode, .replicas = replicas, .wrapped = wrapped};
	struct outfeed_queue *queue;

	assert_int_equal(outfeed_queue_new(&queue, recorder, &params, NULL), ST_OK);
	return queue;
}

static enum status add(struct outfeed_queue *queue, struct outfeed_tensor **key, const char *name,
		       const char *kind, const int64_t *shape, int ndim, bool final,
		       struct err *err)
{
	struct outfeed_tensor_params params = {.key = name, .shape = shape, .ndim = ndim};

	assert_true(outfeed_kind_of(&params.kind, kind));
	return outfeed_queue_add(queue, key, &params, final, err);
}

static struct outfeed_tensor *key_of(struct outfeed_queue *queue, const char *name,
				     const char *kind, const int64_t *shape, int ndim, bool final)
{
	struct outfeed_tensor *key;
	struct err err;

	if (add(queue, &key, name, kind, shape, ndim, final, &err) != ST_OK)
		fail_msg("%s", err.text);
	return key;
}

static void record(struct outfeed_tensor *key, int replica, const float *values, size_t count)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};

	moment.keys.replica = replica;
	assert_int_equal(outfeed_record(key, &moment, values, count, NULL, NULL), ST_OK);
}

/* What the callback prints; to be freed. */
static char *printed(struct outfeed_queue *queue, const char *name, int64_t epoch)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(outfeed_callback(queue, name, IPS_TRAIN, epoch, out, NULL), ST_OK);
	fclose(out);
	return text;
}

static void check_printed(struct outfeed_queue *queue, const char *name, int64_t epoch,
			  const char *expected)
{
	char *text = printed(queue, name, epoch);

	assert_string_equal(text, expected);
	free(text);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const int64_t bias_shape[] = {128}, kernel_shape[] = {256, 128}, four[] = {4}, two[] = {2};

/* +a and -a in turn, about @mean: the deviation is a. */
static void record_swing(struct outfeed_tensor *key, size_t count, float mean, float a)
{
	float *values = mem_alloc(count * sizeof(float));

	assert_non_null(values);
	for (size_t i = 0; i < count; i++)
		values[i] = i % 2 ? mean - a : mean + a;
	record(key, 0, values, count);
	mem_free(values);
}

static void test_the_table_is_the_tutorials(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1, true);
	struct outfeed_tensor *bias, *kernel;

	(void)state;
	bias = key_of(queue, "Dense_128/bias:0_grad", "gradient", bias_shape, 1, true);
	kernel = key_of(queue, "Dense_128/kernel:0_grad", "gradient", kernel_shape, 2, true);
	for (int update = 0; update < 125; update++) {
		record_swing(bias, 128, -0.0625f, 0.5f);
		record_swing(kernel, 256 * 128, 0.25f, 0.125f);
	}
	check_printed(queue, "Gradients callback", 3,
		      "\nGradients callback\n"
		      "key: Dense_128/bias:0_grad shape: (125, 128)\n"
		      "key: Dense_128/kernel:0_grad shape: (125, 256, 128)\n"
		      "Epoch 3 - Summary Stats\n" HEADER_23
		      "0     Dense_128/bias:0_grad        -0.062500    0.500000     -0.562500    "
		      "0.437500     False   False  \n"
		      "1     Dense_128/kernel:0_grad      0.250000     0.125000     0.125000     "
		      "0.375000     False   False  \n");
	outfeed_queue_free(queue);
}

static void test_a_new_epoch_starts_a_new_summary(void **state)
{
	static const float ones[] = {1, 1}, threes[] = {3, 3};
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1, false);
	struct outfeed_tensor *key = key_of(queue, "k", "activation", two, 1, true);

	(void)state;
	record(key, 0, ones, 2);
	record(key, 0, ones, 2);
	check_printed(queue, "c", 1,
		      "\nc\nkey: k shape: (2, 2)\nEpoch 1 - Summary Stats\n"
		      "Index Name   Mean         Std          Minimum      Maximum      NaNs    "
		      "infs   \n"
		      "0     k      1.000000     0.000000     1.000000     1.000000     False   "
		      "False  \n");
	record(key, 0, threes, 2);
	check_printed(queue, "c", 2,
		      "\nc\nkey: k shape: (1, 2)\nEpoch 2 - Summary Stats\n"
		      "Index Name   Mean         Std          Minimum      Maximum      NaNs    "
		      "infs   \n"
		      "0     k      3.000000     0.000000     3.000000     3.000000     False   "
		      "False  \n");
	check_printed(queue, "c", 3,
		      "\nc\nNo data enqueued\n(nothing was recorded since the last time)\n");
	outfeed_queue_free(queue);
}

static void test_shapes_are_stacked_by_enqueues_and_replicas(void **state)
{
	static const float values[] = {1, 2, 3, 4};
	static const struct {
		enum outfeed_mode mode;
		int replicas, ndim;
		const char *text;
	} cases[] = {
		{OUTFEED_ALL, 1, 1, "shape: (3, 4)\n"}, {OUTFEED_ALL, 2, 1, "shape: (3, 2, 4)\n"},
		{OUTFEED_LAST, 1, 1, "shape: (4,)\n"},  {OUTFEED_LAST, 2, 1, "shape: (2, 4)\n"},
		{OUTFEED_ALL, 1, 0, "shape: (3,)\n"},   {OUTFEED_LAST, 1, 0, "shape: ()\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct outfeed_queue *queue = queue_of(cases[i].mode, cases[i].replicas, false);
		struct outfeed_tensor *key =
			key_of(queue, "k", "activation", four, cases[i].ndim, true);
		char *text;

		for (int time = 0; time < 3; time++) {
			for (int r = 0; r < cases[i].replicas; r++)
				record(key, r, values, cases[i].ndim ? 4 : 1);
		}
		text = printed(queue, "c", 1);
		assert_contains(text, cases[i].text);
		free(text);
		outfeed_queue_free(queue);
	}
}

static void test_last_mode_keeps_the_last_value_only(void **state)
{
	static const float bad[] = {NAN, 100}, good[] = {1, 2};
	struct outfeed_queue *queue = queue_of(OUTFEED_LAST, 1, false);
	struct outfeed_tensor *key = key_of(queue, "k", "activation", two, 1, true);
	char *text;

	(void)state;
	record(key, 0, bad, 2);
	record(key, 0, good, 2);
	text = printed(queue, "c", 1);
	assert_contains(text, "1.500000     0.500000     1.000000     2.000000     False   False");
	free(text);
	outfeed_queue_free(queue);
}

/* What numpy gives for mean, std, min and max. */
static void test_bad_values_print_as_numpy_has_them(void **state)
{
	static const struct {
		float values[4];
		const char *row;
	} cases[] = {
		{{1, NAN, INFINITY, 2},
		 "nan          nan          nan          nan          True    True   \n"},
		{{1, NAN, 3, 2},
		 "nan          nan          nan          nan          True    False  \n"},
		{{1, INFINITY, 3, 2},
		 "inf          nan          1.000000     inf          False   True   \n"},
		{{1, -INFINITY, 3, 2},
		 "-inf         nan          -inf         3.000000     False   True   \n"},
		{{1, -INFINITY, INFINITY, 2},
		 "nan          nan          -inf         inf          False   True   \n"},
		{{INFINITY, INFINITY, INFINITY, INFINITY},
		 "inf          nan          inf          inf          False   True   \n"},
		{{-INFINITY, -INFINITY, -INFINITY, -INFINITY},
		 "-inf         nan          -inf         -inf         False   True   \n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1, false);
		struct outfeed_tensor *key = key_of(queue, "k", "activation", four, 1, true);
		char *text;

		record(key, 0, cases[i].values, 4);
		text = printed(queue, "c", 1);
		assert_contains(text, cases[i].row);
		free(text);
		outfeed_queue_free(queue);
	}
}

static void test_values_without_elements_print_as_unknown(void **state)
{
	static const int64_t none[] = {0};
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1, false);
	struct outfeed_tensor *key = key_of(queue, "k", "activation", none, 1, true);
	char *text;

	(void)state;
	record(key, 0, NULL, 0);
	text = printed(queue, "c", 1);
	assert_contains(text, "k      nan          nan          nan          nan          "
			      "False   False  \n");
	free(text);
	outfeed_queue_free(queue);
}

/* ---- nothing to print ------------------------------------------------------------------------ */

static struct outfeed_queue *filtered_queue(const char *const *filters, int count)
{
	struct outfeed_queue_params params = {.name = "queue",
					      .filters = filters,
					      .filter_count = count,
					      .replicas = 1,
					      .wrapped = true};
	struct outfeed_queue *queue;

	assert_int_equal(outfeed_queue_new(&queue, recorder, &params, NULL), ST_OK);
	return queue;
}

static void test_no_data_says_why(void **state)
{
	static const char *const filters[] = {"Dense_10"};
	static const float value = 1;
	struct outfeed_queue *queue = filtered_queue(filters, 1);

	(void)state;
	check_printed(queue, "Single layer activations callback", 1,
		      "\nSingle layer activations callback\nNo data enqueued\n"
		      "(nothing feeds queue \"queue\")\n");
	assert_null(key_of(queue, "Dense_128_acts", "activation", two, 1, false));
	check_printed(queue, "c", 1,
		      "\nc\nNo data enqueued\n"
		      "(the filters of queue \"queue\" let none of its 1 keys pass)\n");
	record(key_of(queue, "Dense_10_acts", "activation", two, 1, false), 0, &value, 1);
	assert_false(outfeed_queue_enqueued(queue));
	check_printed(queue, "c", 1,
		      "\nc\nNo data enqueued\n"
		      "(no layer of queue \"queue\" has final_outfeed, so nothing is sent)\n");
	outfeed_queue_free(queue);
}

/* The dictionary decides: a refused final layer still sends what came before it. */
static void test_a_refused_final_layer_sends_the_earlier_keys(void **state)
{
	static const char *const filters[] = {"Dense_128"};
	static const float value = 1;
	struct outfeed_queue *queue = filtered_queue(filters, 1);
	struct outfeed_tensor *key = key_of(queue, "Dense_128_acts", "activation", two, 1, false);

	(void)state;
	assert_null(key_of(queue, "Dense_10_acts", "activation", two, 1, true));
	record(NULL, 0, &value, 1);
	check_printed(queue, "c", 1, "\nc\nNo data enqueued\n(nothing was recorded)\n");
	record(key, 0, &value, 1);
	assert_true(outfeed_queue_enqueued(queue));
	outfeed_queue_free(queue);
}

/* ---- one place ------------------------------------------------------------------------------- */

static void test_a_queue_is_enqueued_in_one_place(void **state)
{
	struct outfeed_queue *plain = queue_of(OUTFEED_ALL, 1, false);
	struct outfeed_queue *wrapped = queue_of(OUTFEED_ALL, 1, true);
	struct outfeed_tensor *key;
	struct err err;

	(void)state;
	key_of(plain, "a", "activation", two, 1, true);
	assert_int_equal(add(plain, &key, "b", "activation", two, 1, true, &err), ST_INVALID);
	assert_null(key);
	assert_contains(err.text, "enqueued in one place, but both \"a\" and \"b\" use it");
	key_of(wrapped, "a", "activation", two, 1, true);
	assert_int_equal(add(wrapped, &key, "b", "activation", two, 1, true, &err), ST_INVALID);
	assert_contains(err.text, "final_outfeed=False");
	outfeed_queue_free(plain);
	outfeed_queue_free(wrapped);
}

static void test_a_key_after_the_final_layer_is_never_sent(void **state)
{
	static const float value = 1;
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1, true);
	struct outfeed_tensor *first = key_of(queue, "first", "activation", two, 1, true);
	struct outfeed_tensor *late = key_of(queue, "late", "activation", two, 1, false);
	char *text;

	(void)state;
	record(first, 0, &value, 1);
	record(late, 0, &value, 1);
	text = printed(queue, "c", 1);
	assert_contains(text, "key: first");
	assert_null(strstr(text, "late"));
	free(text);
	outfeed_queue_free(queue);
}

static void test_a_key_comes_once(void **state)
{
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, 1, true);
	struct outfeed_tensor *key;
	struct err err;

	(void)state;
	key_of(queue, "w_grad", "gradient", two, 1, true);
	key_of(queue, "b_grad", "gradient", two, 1, true);
	assert_int_equal(add(queue, &key, "w_grad", "gradient", two, 1, true, &err), ST_INVALID);
	assert_string_equal(err.text, "outfeed queue \"queue\": it has two keys \"w_grad\"");
	outfeed_queue_free(queue);
}

/* Its dictionary is empty, so it does nothing, and the next may enqueue. */
static void test_a_final_layer_of_nothing_enqueues_nothing(void **state)
{
	static const char *const filters[] = {"Dense_10"};
	static const float value = 1;
	struct outfeed_queue *queue = filtered_queue(filters, 1);
	struct outfeed_tensor *key;
	struct err err;

	(void)state;
	assert_null(key_of(queue, "Dense_128_acts", "activation", two, 1, true));
	key = key_of(queue, "Dense_10_acts", "activation", two, 1, true);
	assert_int_equal(add(queue, &key, "Dense_10_more", "activation", two, 1, true, &err),
			 ST_INVALID);
	assert_null(key);
	record(key_of(queue, "Dense_10/bias:0_grad", "gradient", two, 1, true), 0, &value, 1);
	assert_true(outfeed_queue_enqueued(queue));
	outfeed_queue_free(queue);
}

/* What passes comes too late for it. */
static void test_a_final_layer_before_the_keys_that_pass_sends_nothing(void **state)
{
	static const char *const filters[] = {"Dense_10"};
	static const float value = 1;
	struct outfeed_queue *queue = filtered_queue(filters, 1);
	struct outfeed_tensor *key;

	(void)state;
	assert_null(key_of(queue, "Dense_128_acts", "activation", two, 1, true));
	key = key_of(queue, "Dense_10_acts", "activation", two, 1, false);
	record(key, 0, &value, 1);
	assert_false(outfeed_queue_enqueued(queue));
	check_printed(queue, "c", 1,
		      "\nc\nNo data enqueued\n"
		      "(the final outfeed of queue \"queue\" comes before all that its filters let "
		      "pass, so nothing is sent)\n");
	outfeed_queue_free(queue);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define REPLICAS 4

static void record_replica(void *context, unsigned replica)
{
	float values[1000];

	for (int time = 0; time < 50; time++) {
		for (int i = 0; i < 1000; i++)
			values[i] = (float)(replica + 1) * 1e-3f * (float)((i * 37 + time) % 1000);
		record(context, (int)replica, values, 1000);
	}
}

static char *printed_with(struct pool *pool)
{
	static const int64_t shape[] = {1000};
	struct outfeed_queue *queue = queue_of(OUTFEED_ALL, REPLICAS, false);
	struct outfeed_tensor *key = key_of(queue, "k", "activation", shape, 1, true);
	char *text;

	pool_run(pool, record_replica, key, REPLICAS);
	text = printed(queue, "c", 1);
	outfeed_queue_free(queue);
	return text;
}

static void test_replicas_record_at_once_and_print_the_same(void **state)
{
	char *one = printed_with(NULL), *many;
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 3, NULL), ST_OK);
	many = printed_with(pool);
	assert_string_equal(one, many);
	assert_contains(one, "shape: (50, 4, 1000)");
	pool_free(pool);
	free(one);
	free(many);
}

static void test_no_failed_allocation_leaves_anything(void **state)
{
	static const char *const filters[] = {"a", "b"};
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct outfeed_queue_params params = {
			.name = "q", .filters = filters, .filter_count = 2, .replicas = 2};
		struct outfeed_queue *queue;
		struct outfeed_tensor *key = NULL;
		enum status status;

		support_fail_alloc(n);
		status = outfeed_queue_new(&queue, recorder, &params, NULL);
		if (status == ST_OK)
			status = add(queue, &key, "a", "activation", two, 1, true, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == (!key));
		outfeed_queue_free(queue);
	}
}

/* ---- the database ---------------------------------------------------------------------------- */

static char *query(sqlite3 *db, const char *sql)
{
	static char row[1024];
	sqlite3_stmt *stmt;
	size_t length = 0;

	row[0] = '\0';
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(stmt) && length < sizeof(row); i++) {
			const char *text = (const char *)sqlite3_column_text(stmt, i);

			length += (size_t)snprintf(row + length, sizeof(row) - length, "%s%s",
						   text ? text : "NULL",
						   i + 1 < sqlite3_column_count(stmt) ? "|" : ";");
		}
	}
	sqlite3_finalize(stmt);
	return row;
}

static void enqueue_at(struct outfeed_tensor *key, int64_t time_ns, int64_t replica,
		       const float *values)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL, .time_ns = time_ns};

	moment.keys.mode = IPS_TRAIN;
	moment.keys.epoch = 1;
	moment.keys.step = 7;
	moment.keys.stage = 1;
	moment.keys.phase = 'F';
	moment.keys.replica = replica;
	assert_int_equal(outfeed_record(key, &moment, values, 2, NULL, NULL), ST_OK);
}

static void record_two_replicas(struct ips_recording *recording)
{
	static const float first[] = {1, 3}, second[] = {0, NAN}, inf[] = {-INFINITY, -2};
	const struct outfeed_queue_params params = {.name = "acts", .replicas = 2, .wrapped = true};
	const struct outfeed_params own = {
		.recording = recording, .policy = &everything, .replicas = 2};
	const struct outfeed_tensor_params tensor = {.key = "Dense_acts",
						     .kind = OUTFEED_ACTIVATION,
						     .layer = "Dense",
						     .stage = 1,
						     .shape = two,
						     .ndim = 1};
	struct outfeed *outfeed;
	struct outfeed_queue *queue;
	struct outfeed_tensor *key;

	assert_int_equal(outfeed_new(&outfeed, &own, NULL), ST_OK);
	assert_int_equal(outfeed_queue_new(&queue, outfeed, &params, NULL), ST_OK);
	assert_int_equal(outfeed_queue_add(queue, &key, &tensor, true, NULL), ST_OK);
	enqueue_at(key, 123, 0, first);
	enqueue_at(key, 456, 1, second);
	assert_int_equal(outfeed_callback(queue, "Acts", IPS_TRAIN, 1, NULL, NULL), ST_OK);
	enqueue_at(key, 789, 1, inf);
	assert_int_equal(outfeed_callback(queue, "Acts", IPS_TRAIN, 2, NULL, NULL), ST_OK);
	outfeed_queue_free(queue);
	assert_int_equal(outfeed_close(outfeed, NULL), ST_OK);
}

static void test_rows_reach_the_database(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16], message[256] = "";
	struct ips_recording *recording;
	sqlite3 *db;

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/profile.db", folder);
	if (ips_recording_open(&recording, path, NULL, message, sizeof(message)) != 0)
		fail_msg("%s", message);
	record_two_replicas(recording);
	assert_int_equal(ips_recording_close(recording, message, sizeof(message)), 0);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_string_equal(query(db, "SELECT * FROM tensors"),
			    "acts|Dense_acts|activation|Dense|1|(2,)|float32|NULL|NULL;");
	assert_string_equal(query(db,
				  "SELECT mode, epoch, step, replica, stage, phase, time_ns, n, "
				  "n_nan, n_zero, n_pos, min, max, mean, std, l1, "
				  "abs_min_nonzero, abs_max FROM tensor_stats WHERE epoch = 1 AND "
				  "time_ns < 500 ORDER BY time_ns"),
			    "train|1|7|0|1|F|123|2|0|0|2|1.0|3.0|2.0|1.0|4.0|1.0|3.0;"
			    "train|1|7|1|1|F|456|2|1|1|0|0.0|0.0|0.0|0.0|0.0|NULL|0.0;");
	assert_string_equal(query(db,
				  "SELECT l2 * l2 > 9.999 AND l2 * l2 < 10.001 FROM tensor_stats "
				  "WHERE time_ns = 123"),
			    "1;");
	assert_string_equal(
		query(db, "SELECT mode, epoch, callback, queue, key, shape, mean, std, min, "
			  "max, nans, infs FROM tensor_epochs ORDER BY epoch"),
		"train|1|Acts|acts|Dense_acts|(1, 2, 2)|NULL|NULL|NULL|NULL|1|0;"
		"train|2|Acts|acts|Dense_acts|(1, 2, 2)|-Inf|NULL|-Inf|-2.0|0|1;");
	sqlite3_close(db);
	support_tempdir_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_is_the_tutorials),
		cmocka_unit_test(test_a_new_epoch_starts_a_new_summary),
		cmocka_unit_test(test_shapes_are_stacked_by_enqueues_and_replicas),
		cmocka_unit_test(test_last_mode_keeps_the_last_value_only),
		cmocka_unit_test(test_bad_values_print_as_numpy_has_them),
		cmocka_unit_test(test_values_without_elements_print_as_unknown),
		cmocka_unit_test(test_no_data_says_why),
		cmocka_unit_test(test_a_refused_final_layer_sends_the_earlier_keys),
		cmocka_unit_test(test_a_queue_is_enqueued_in_one_place),
		cmocka_unit_test(test_a_key_after_the_final_layer_is_never_sent),
		cmocka_unit_test(test_a_key_comes_once),
		cmocka_unit_test(test_a_final_layer_of_nothing_enqueues_nothing),
		cmocka_unit_test(test_a_final_layer_before_the_keys_that_pass_sends_nothing),
		cmocka_unit_test(test_replicas_record_at_once_and_print_the_same),
		cmocka_unit_test(test_no_failed_allocation_leaves_anything),
		cmocka_unit_test(test_rows_reach_the_database),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
