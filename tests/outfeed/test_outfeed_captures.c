/*
 * Kept values read back: what is put together, what is left out, what it is called, and files that
 * nobody wrote.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "outfeed/outfeed_captures.h"

#define PAGE 16384

struct fixture {
	struct prof_place place;
	struct ips_recording *recording;
	struct prof_db *db;
	struct outfeed_captures *captures;
	float *values; /* of the last read_all() */
	size_t bytes;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	prof_place_make(&f->place);
	f->recording = prof_start(&f->place, NULL);
	*state = f;
	return 0;
}

static void close_reader(struct fixture *f)
{
	outfeed_captures_close(f->captures);
	prof_db_close(f->db);
	free(f->values);
	f->captures = NULL;
	f->db = NULL;
	f->values = NULL;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_reader(f);
	if (f->recording)
		prof_stop(f->recording);
	prof_place_remove(&f->place);
	free(f);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int64_t tensor(struct fixture *f, const char *queue, const char *key)
{
	const struct ips_tensor tensor = {
		.queue = queue, .key = key, .kind = "gradient", .stage = IPS_NULL};

	return ips_tensor_add(f->recording, &tensor);
}

static struct ips_keys keys_of(int64_t replica, int64_t step)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.replica = replica;
	keys.step = step;
	keys.mode = IPS_TRAIN;
	keys.phase = 'B';
	return keys;
}

static void put_piece(struct fixture *f, int64_t id, struct ips_keys keys, const char *shape,
		      int64_t chunk, const void *data, int64_t bytes)
{
	const struct ips_capture row = {keys, id, "float32", shape, bytes, chunk, data};

	assert_int_equal(ips_append_capture(f->recording, &row), 0);
}

/* A capture of (2, 3), counted on from @first, in @pieces. */
static void put(struct fixture *f, int64_t id, int64_t replica, int64_t step, float first,
		int pieces)
{
	float values[6];

	for (int i = 0; i < 6; i++)
		values[i] = first + (float)i;
	for (int i = 0; i < pieces; i++)
		put_piece(f, id, keys_of(replica, step), "(2, 3)", i, values + i * 6 / pieces,
			  (int64_t)sizeof(float) * 6 / pieces);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void open_reader(struct fixture *f)
{
	struct err err = {0};

	if (f->recording)
		prof_stop(f->recording);
	f->recording = NULL;
	assert_int_equal(prof_db_open(&f->db, f->place.path, &err), ST_OK);
	if (outfeed_captures_open(&f->captures, f->db, &err) != ST_OK)
		fail_msg("%s", err.text);
}

static enum status take(void *user, const void *data, size_t bytes, struct err *err)
{
	struct fixture *f = user;

	(void)err;
	f->values = realloc(f->values, f->bytes + bytes);
	assert_non_null(f->values);
	memcpy((char *)f->values + f->bytes, data, bytes);
	f->bytes += bytes;
	return ST_OK;
}

static void read_all(struct fixture *f, int index)
{
	struct err err = {0};

	free(f->values);
	f->values = NULL;
	f->bytes = 0;
	if (outfeed_captures_read(f->captures, index, take, f, &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_int_equal(f->bytes, outfeed_captures_at(f->captures, index)->bytes);
}

static void check_shape(const struct outfeed_array *array, const char *expected)
{
	char text[256] = "(";

	for (int i = 0; i < array->ndim; i++)
		sprintf(text + strlen(text), "%s%lld", i > 0 ? ", " : "",
			(long long)array->shape[i]);
	strcat(text, ")");
	assert_string_equal(text, expected);
}

/* ---- what is put together -------------------------------------------------------------------- */

static void test_captures_are_stacked_in_order_of_time(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "Dense_128/kernel:0_grad");
	const struct outfeed_array *array;
	struct ips_keys keys[3];

	for (int i = 0; i < 3; i++)
		put(f, id, IPS_NULL, 4 + 2 * i, 10.0f * (float)i, 1 + i);
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 1);
	array = outfeed_captures_at(f->captures, 0);
	assert_string_equal(array->name, "Dense_128/kernel:0_grad");
	assert_string_equal(array->queue, "q");
	check_shape(array, "(3, 2, 3)");
	assert_int_equal(array->bytes, 3 * 6 * 4);
	assert_int_equal(array->replicas, 1);
	assert_false(array->uneven);
	read_all(f, 0);
	for (int i = 0; i < 18; i++)
		assert_true(f->values[i] == (float)(i / 6 * 10 + i % 6));
	assert_int_equal(outfeed_captures_keys(f->captures, 0, keys, NULL), ST_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(outfeed_captures_step(f->captures, 0, i), 4 + 2 * i);
		assert_int_equal(keys[i].step, 4 + 2 * i);
		assert_int_equal(keys[i].mode, IPS_TRAIN);
		assert_int_equal(keys[i].phase, 'B');
		assert_int_equal(keys[i].replica, IPS_NULL);
	}
	assert_int_equal(outfeed_captures_incomplete(f->captures), 0);
}

static void test_replicas_are_an_axis_whatever_order_their_pieces_come_in(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k");
	float values[2][6];

	for (int step = 0; step < 2; step++) {
		for (int i = 0; i < 12; i++)
			values[i / 6][i % 6] = (float)(100 * step + 10 * (i / 6) + i % 6);
		/* The second one first, and their pieces by turns. */
		for (int piece = 0; piece < 3; piece++)
			for (int replica = 1; replica >= 0; replica--)
				put_piece(f, id, keys_of(replica, step), "(2, 3)", piece,
					  values[replica] + 2 * piece, 8);
	}
	open_reader(f);
	check_shape(outfeed_captures_at(f->captures, 0), "(2, 2, 2, 3)");
	assert_int_equal(outfeed_captures_at(f->captures, 0)->replicas, 2);
	read_all(f, 0);
	for (int i = 0; i < 24; i++)
		assert_true(f->values[i] == (float)(100 * (i / 12) + 10 * (i / 6 % 2) + i % 6));
}

static void test_uneven_replicas_come_in_order_of_time(void **state)
{
	struct fixture *f = *state;
	int64_t a = tensor(f, "q", "a"), b = tensor(f, "q", "b");

	put(f, a, 1, 0, 0, 1);
	put(f, a, 0, 0, 10, 1);
	put(f, a, 1, 1, 20, 2);
	/* As many, but of other steps. */
	put(f, b, 0, 0, 0, 1);
	put(f, b, 1, 1, 10, 1);
	open_reader(f);
	check_shape(outfeed_captures_at(f->captures, 0), "(3, 2, 3)");
	assert_true(outfeed_captures_at(f->captures, 0)->uneven);
	read_all(f, 0);
	assert_true(f->values[0] == 0 && f->values[6] == 10 && f->values[12] == 20);
	check_shape(outfeed_captures_at(f->captures, 1), "(2, 2, 3)");
	assert_true(outfeed_captures_at(f->captures, 1)->uneven);
	assert_int_equal(outfeed_captures_step(f->captures, 1, 1), 1);
}

static void test_each_shape_is_an_array_and_the_commonest_has_the_name(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "dense");
	const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct ips_capture half = {keys_of(0, 4), id, "float16", "(2, 3)", 12, 0, values};

	put_piece(f, id, keys_of(0, 0), "(1, 3)", 0, values, 12);
	put(f, id, 0, 1, 0, 1);
	put(f, id, 0, 2, 0, 1);
	put_piece(f, id, keys_of(0, 3), "()", 0, values, 4);
	assert_int_equal(ips_append_capture(f->recording, &half), 0);
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 4);
	assert_string_equal(outfeed_captures_at(f->captures, 0)->name, "dense");
	check_shape(outfeed_captures_at(f->captures, 0), "(2, 2, 3)");
	assert_string_equal(outfeed_captures_at(f->captures, 1)->name, "dense@1x3");
	check_shape(outfeed_captures_at(f->captures, 1), "(1, 1, 3)");
	assert_string_equal(outfeed_captures_at(f->captures, 2)->name, "dense@scalar");
	check_shape(outfeed_captures_at(f->captures, 2), "(1)");
	assert_string_equal(outfeed_captures_at(f->captures, 3)->name, "dense@2x3@float16");
	assert_int_equal(outfeed_captures_at(f->captures, 3)->dtype, DTYPE_FLOAT16);
	assert_int_equal(outfeed_captures_at(f->captures, 3)->bytes, 12);
	for (int i = 0; i < 4; i++)
		read_all(f, i);
}

static void test_more_shapes_than_can_be_are_counted(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k");
	const float values[40] = {0};

	for (int i = 0; i < OUTFEED_SHAPES + 5; i++) {
		char shape[32];

		snprintf(shape, sizeof(shape), "(%d,)", i + 1);
		put_piece(f, id, keys_of(0, i), shape, 0, values, 4 * (i + 1));
	}
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), OUTFEED_SHAPES);
	assert_int_equal(outfeed_captures_incomplete(f->captures), 5);
	assert_int_equal(outfeed_captures_at(f->captures, 0)->incomplete, 5);
}

static void test_tensors_without_elements_and_without_axes_are_arrays(void **state)
{
	struct fixture *f = *state;
	int64_t empty = tensor(f, "q", "empty"), scalar = tensor(f, "q", "scalar");
	const float value = 42;

	for (int i = 0; i < 3; i++) {
		put_piece(f, empty, keys_of(0, i), "(0, 5)", 0, NULL, 0);
		put_piece(f, scalar, keys_of(0, i), "()", 0, &value, 4);
	}
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 2);
	check_shape(outfeed_captures_at(f->captures, 0), "(3, 0, 5)");
	check_shape(outfeed_captures_at(f->captures, 1), "(3)");
	read_all(f, 0);
	read_all(f, 1);
	assert_true(f->values[2] == 42);
}

/* ---- what is left out ------------------------------------------------------------------------ */

static void test_captures_that_are_not_whole_are_left_out_and_counted(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k"), other = tensor(f, "q", "other");
	const float values[6] = {1, 2, 3, 4, 5, 6};

	put(f, id, 0, 0, 10, 3);
	/* Its middle is missing. */
	put_piece(f, id, keys_of(0, 1), "(2, 3)", 0, values, 8);
	put_piece(f, id, keys_of(0, 1), "(2, 3)", 2, values + 4, 8);
	/* Its beginning is. */
	put_piece(f, id, keys_of(0, 2), "(2, 3)", 1, values, 16);
	put_piece(f, id, keys_of(0, 2), "(2, 3)", 2, values, 16);
	put(f, id, 0, 3, 20, 2);
	/* Too much. */
	put_piece(f, id, keys_of(0, 4), "(2, 3)", 0, values, 16);
	put_piece(f, id, keys_of(0, 4), "(2, 3)", 1, values, 16);
	/* Another begins before it ends; then the run ends. */
	put_piece(f, id, keys_of(0, 5), "(2, 3)", 0, values, 8);
	put(f, id, 0, 6, 30, 1);
	put_piece(f, id, keys_of(0, 7), "(2, 3)", 0, values, 8);
	put_piece(f, other, keys_of(0, 7), "(2, 3)", 0, values, 8);
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 1);
	check_shape(outfeed_captures_at(f->captures, 0), "(3, 2, 3)");
	assert_int_equal(outfeed_captures_at(f->captures, 0)->incomplete, 5);
	assert_int_equal(outfeed_captures_incomplete(f->captures), 6);
	read_all(f, 0);
	assert_true(f->values[0] == 10 && f->values[6] == 20 && f->values[12] == 30);
}

/* Whatever number a piece has that has no beginning, the next without one is counted, too. */
static void test_pieces_of_the_greatest_number_are_counted(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k");

	put_piece(f, id, keys_of(0, 0), "(2, 3)", INT64_MAX, "01234567", 8);
	put_piece(f, id, keys_of(0, 1), "(2, 3)", 1, "01234567", 8);
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 0);
	assert_int_equal(outfeed_captures_incomplete(f->captures), 2);
}

static void test_a_file_that_is_being_written_is_read_as_far_as_it_goes(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k");
	struct outfeed_captures *captures;
	struct prof_db *db;

	put(f, id, 0, 0, 10, 2);
	put_piece(f, id, keys_of(0, 1), "(2, 3)", 0, "01234567", 8);
	assert_int_equal(ips_recording_flush(f->recording), 0);
	assert_int_equal(prof_db_open(&db, f->place.path, NULL), ST_OK);
	assert_int_equal(outfeed_captures_open(&captures, db, NULL), ST_OK);
	check_shape(outfeed_captures_at(captures, 0), "(1, 2, 3)");
	assert_int_equal(outfeed_captures_incomplete(captures), 1);
	/* More comes: not to this reader. */
	put(f, id, 0, 2, 10, 2);
	assert_int_equal(ips_recording_flush(f->recording), 0);
	assert_int_equal(outfeed_captures_read(captures, 0, take, f, NULL), ST_OK);
	assert_int_equal(f->bytes, 24);
	outfeed_captures_close(captures);
	prof_db_close(db);
}

static enum status stop(void *user, const void *data, size_t bytes, struct err *err)
{
	(void)data;
	(void)bytes;
	++*(int *)user;
	return err_set(err, ST_CLOSED, "enough");
}

static void test_who_takes_the_values_may_stop(void **state)
{
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k");
	struct err err = {0};
	int taken = 0;

	put(f, id, 0, 0, 0, 3);
	open_reader(f);
	assert_int_equal(outfeed_captures_read(f->captures, 0, stop, &taken, &err), ST_CLOSED);
	assert_string_equal(err.text, "enough");
	assert_int_equal(taken, 1);
}

static void test_nothing_captured_is_no_error(void **state)
{
	struct fixture *f = *state;

	tensor(f, "q", "k");
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 0);
	assert_int_equal(outfeed_captures_incomplete(f->captures), 0);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_a_key_of_two_queues_has_the_queue_in_its_name(void **state)
{
	struct fixture *f = *state;
	int64_t ids[] = {tensor(f, "a", "k"), tensor(f, "b", "k"), tensor(f, "b", "l")};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		put(f, ids[i], 0, 0, 0, 1);
	open_reader(f);
	assert_string_equal(outfeed_captures_at(f->captures, 0)->name, "a/k");
	assert_string_equal(outfeed_captures_at(f->captures, 1)->name, "b/k");
	assert_string_equal(outfeed_captures_at(f->captures, 2)->name, "l");
	assert_string_equal(outfeed_captures_at(f->captures, 1)->key, "k");
}

static void test_names_are_unique_and_lead_nowhere(void **state)
{
	static const struct {
		const char *queue, *key, *name;
	} tensors[] = {
		{"q", "../../etc/passwd", "_/_/etc/passwd"},
		{"q", "/etc/passwd", "_etc/passwd"},
		{"q", "a/../..", "a/_/_"},
		{"q", "..a/...", "..a/..."},
		{"q", "", "unnamed"},
		{"q", "x\n\x1b[31m\xff\xc0\xaf\xed\xa0\x80", "x??[31m??????"},
		{"q", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"q", "a\x01", "a?"},
		{"q", "a\x02", "a?#2"},
		{"q", "a?#2", "a?#2#2"},
		/* Cut by their queues, they would be one. */
		{"r", "s/t", "r/s/t"},
		{"r/s", "t", "r/s/t#2"},
		{"x", "s/t", "x/s/t"},
		{"x", "t", "x/t"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(tensors); i++)
		put(f, tensor(f, tensors[i].queue, tensors[i].key), 0, 0, 0, 1);
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), ARRAY_LEN(tensors));
	for (int i = 0; i < (int)ARRAY_LEN(tensors); i++)
		assert_string_equal(outfeed_captures_at(f->captures, i)->name, tensors[i].name);
}

static void test_long_keys_are_cut_between_characters_and_stay_apart(void **state)
{
	struct fixture *f = *state;
	char key[2049];
	size_t length;

	for (size_t i = 0; i < 2048; i += 4)
		memcpy(key + i, "\xf0\x9f\x98\x80", 4);
	key[2048] = '\0';
	put(f, tensor(f, "q", key), 0, 0, 0, 1);
	key[2044] = '\0';
	put(f, tensor(f, "q", key), 0, 0, 0, 1);
	open_reader(f);
	assert_int_equal(outfeed_captures_count(f->captures), 2);
	length = strlen(outfeed_captures_at(f->captures, 0)->name);
	assert_true(length > 1000 && length < 1024 && length % 4 == 0);
	assert_memory_equal(outfeed_captures_at(f->captures, 0)->name, key, length);
	assert_memory_equal(outfeed_captures_at(f->captures, 1)->name, key, length);
	assert_string_equal(outfeed_captures_at(f->captures, 1)->name + length, "#2");
}

static void test_the_longest_name_has_1016_bytes(void **state)
{
	struct fixture *f = *state;
	char key[1025];

	memset(key, 'a', 1024);
	for (int length = 1015; length <= 1017; length++) {
		key[length] = '\0';
		put(f, tensor(f, "q", key), 0, 0, 0, 1);
		key[length] = 'a';
	}
	open_reader(f);
	assert_int_equal(strlen(outfeed_captures_at(f->captures, 0)->name), 1015);
	assert_int_equal(strlen(outfeed_captures_at(f->captures, 1)->name), 1016);
	assert_int_equal(strlen(outfeed_captures_at(f->captures, 2)->name), 1016 + strlen("#2"));
}

/* ---- files that nobody wrote ----------------------------------------------------------------- */

static void read_anything(struct fixture *f, int64_t *arrays)
{
	struct prof_db *db;
	struct outfeed_captures *captures;
	struct err err = {0};

	*arrays = -1;
	if (prof_db_open(&db, f->place.path, &err) != ST_OK)
		return;
	if (outfeed_captures_open(&captures, db, &err) == ST_OK) {
		*arrays = outfeed_captures_count(captures);
		for (int i = 0; i < *arrays; i++) {
			const struct outfeed_array *array = outfeed_captures_at(captures, i);
			struct ips_keys *keys =
				calloc((size_t)(array->shape[0] * array->replicas), sizeof(*keys));

			f->bytes = 0;
			if (outfeed_captures_read(captures, i, take, f, &err) == ST_OK)
				assert_int_equal(f->bytes, array->bytes);
			(void)outfeed_captures_keys(captures, i, keys, &err);
			free(keys);
		}
		outfeed_captures_close(captures);
	} else {
		assert_true(err.text[0] != '\0');
	}
	prof_db_close(db);
}

static void test_damaged_rows_are_left_out(void **state)
{
	static const struct {
		const char *damage;
		int64_t arrays;
	} cases[] = {
		{"UPDATE capture_rows SET bytes = -1", 0},
		{"UPDATE capture_rows SET bytes = 9223372036854775807", 0},
		{"UPDATE capture_rows SET bytes = NULL", 0},
		{"UPDATE capture_rows SET bytes = 'x'", 0},
		{"UPDATE capture_rows SET data = NULL", 0},
		{"UPDATE capture_rows SET data = 'text that is none'", 0},
		{"UPDATE capture_rows SET data = zeroblob(100000000), bytes = 100000000", 0},
		{"UPDATE capture_rows SET data = x''", 0},
		{"UPDATE capture_rows SET chunk = NULL", 0},
		{"UPDATE capture_rows SET chunk = -1", 0},
		{"UPDATE capture_rows SET chunk = 9223372036854775807", 0},
		{"UPDATE capture_rows SET chunk = 0", 0},
		{"UPDATE capture_rows SET dtype = NULL", 0},
		{"UPDATE capture_rows SET dtype = 'float64'", 0},
		{"UPDATE capture_rows SET shape = NULL", 0},
		{"UPDATE capture_rows SET shape = x'00'", 0},
		{"UPDATE capture_rows SET shape = ''", 0},
		{"UPDATE capture_rows SET shape = '('", 0},
		{"UPDATE capture_rows SET shape = '(2 3)'", 0},
		{"UPDATE capture_rows SET shape = '(2, 3'", 0},
		{"UPDATE capture_rows SET shape = '(2, -3)'", 0},
		{"UPDATE capture_rows SET shape = '(,2, 3)'", 0},
		{"UPDATE capture_rows SET shape = '(2, 3) '", 1},
		{"UPDATE capture_rows SET shape = '(2,3,)'", 1},
		{"UPDATE capture_rows SET shape = '(2, 3))'", 0},
		{"UPDATE capture_rows SET shape = '(1, 1, 1, 1, 1, 1, 2, 3)'", 1},
		{"UPDATE capture_rows SET shape = '(1, 1, 1, 1, 1, 1, 1, 2, 3)'", 0},
		{"UPDATE capture_rows SET shape = '(99999999999999999999, 3)'", 0},
		{"UPDATE capture_rows SET shape = '(9223372036854775807, 9223372036854775807)'", 0},
		{"UPDATE capture_rows SET shape = '(4611686018427387904, 4, 0)', bytes = 0, "
		 "data = x'', chunk = 0",
		 1},
		{"UPDATE capture_rows SET tensor_id = 77", 0},
		{"UPDATE capture_rows SET tensor_id = 'x'", 0},
		{"UPDATE capture_rows SET context_id = -5", 1},
		{"UPDATE capture_rows SET row_id = row_id - 9223372036854775000", 1},
		{"UPDATE contexts SET step = 'x', weight_update = x'01', mode = x'ff', phase = 7, "
		 "replica = 'y'",
		 1},
		{"UPDATE tensor_rows SET queue = NULL, key = NULL", 1},
		{"UPDATE tensor_rows SET key = cast(x'ff0a00' AS TEXT)", 1},
		{"DELETE FROM tensor_rows", 0},
		{"DELETE FROM contexts", 1},
		{"DROP TABLE contexts", -1},
		{"DROP TABLE capture_rows", -1},
		/* What a table lacks is NULL, as in a file of an earlier version. */
		{"DROP TABLE capture_rows; CREATE TABLE capture_rows (row_id)", 0},
		{"DROP TABLE capture_rows; CREATE TABLE capture_rows (row_id); "
		 "INSERT INTO capture_rows VALUES (1)",
		 0},
	};
	struct fixture *f = *state;
	int64_t id = tensor(f, "q", "k");
	size_t length;
	char *whole;

	put(f, id, 0, 0, 0, 2);
	put(f, id, 1, 0, 0, 2);
	put(f, id, 0, 1, 0, 3);
	prof_stop(f->recording);
	f->recording = NULL;
	whole = support_read_file(f->place.path, &length);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t arrays;

		support_write_file(f->place.path, whole, length);
		prof_change(f->place.path, cases[i].damage);
		read_anything(f, &arrays);
		if (arrays != cases[i].arrays)
			fail_msg("%s: %lld arrays", cases[i].damage, (long long)arrays);
	}
	free(whole);
}

/* Most damage keeps away from the first page, or little more than the header would be tried. */
static void test_flipped_bytes_are_survived(void **state)
{
	struct fixture *f = *state;
	int64_t arrays, opened = 0;
	size_t length;
	char *whole, *damaged;

	for (int i = 0; i < 400; i++)
		put(f, tensor(f, i % 3 ? "q" : "r", i % 2 ? "k" : "l"), i % 5, i, 0, 1 + i % 3);
	prof_stop(f->recording);
	f->recording = NULL;
	whole = support_read_file(f->place.path, &length);
	damaged = malloc(length);
	assert_non_null(damaged);
	for (uint32_t round = 0; round < support_rounds(200); round++) {
		struct rng rng;

		rng_init(&rng, 11, 1, round, 0);
		memcpy(damaged, whole, length);
		for (int i = 0; i < 1 + (int)rng_below(&rng, 40); i++)
			damaged[PAGE + rng_below(&rng, (uint32_t)length - PAGE)] =
				(char)rng_u32(&rng);
		support_write_file(f->place.path, damaged, length);
		read_anything(f, &arrays);
		opened += arrays > 0;
	}
	assert_true(opened > (int64_t)support_rounds(200) / 4);
	free(damaged);
	free(whole);
}

/* Each row with a tensor, a replica and a shape of its own: no time without end, no crash. */
static void test_many_odd_rows_are_survived(void **state)
{
	struct fixture *f = *state;
	int64_t arrays;

	tensor(f, "q", "k");
	prof_stop(f->recording);
	f->recording = NULL;
	prof_change(f->place.path,
		    "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < "
		    "20000) INSERT INTO contexts (context_id, rank, replica, step) SELECT i + "
		    "1000, 0, i, i FROM n;"
		    "INSERT INTO capture_rows (tensor_id, context_id, dtype, shape, bytes, chunk, "
		    "data) SELECT 1, context_id, 'float32', '(' || context_id || ',)', 4, 0, "
		    "x'00000000' FROM contexts;"
		    "INSERT INTO capture_rows (tensor_id, context_id, dtype, shape, bytes, chunk, "
		    "data) SELECT 1, context_id, 'float32', '()', 4, 0, x'00000000' FROM contexts");
	read_anything(f, &arrays);
	assert_int_equal(arrays, 1);
	/* And as many tensors that are called alike. */
	prof_change(f->place.path,
		    "INSERT INTO tensor_rows (tensor_id, queue, key) SELECT context_id, 'q', 'k' "
		    "FROM contexts WHERE context_id > 1;"
		    "INSERT INTO capture_rows (tensor_id, context_id, dtype, shape, bytes, chunk, "
		    "data) SELECT tensor_id, 1, 'float32', '()', 4, 0, x'00000000' FROM "
		    "tensor_rows");
	read_anything(f, &arrays);
	assert_true(arrays > 19000);
}

static void test_failing_allocations_leave_nothing(void **state)
{
	struct fixture *f = *state;
	struct outfeed_captures *captures;
	struct prof_db *db;
	long n = 0;

	for (int i = 0; i < 3; i++) {
		put(f, tensor(f, i == 1 ? "r" : "q", i == 2 ? "l" : "k"), 0, 0, 0, 3);
		put_piece(f, tensor(f, "q", "l"), keys_of(1, 1), "()", 0, "0123", 4);
	}
	prof_stop(f->recording);
	f->recording = NULL;
	assert_int_equal(prof_db_open(&db, f->place.path, NULL), ST_OK);
	for (bool failed = true; failed; n++) {
		enum status status;

		support_fail_alloc(n);
		status = outfeed_captures_open(&captures, db, NULL);
		if (status == ST_OK)
			status = outfeed_captures_read(captures, 0, take, f, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		outfeed_captures_close(captures);
	}
	assert_true(n > 10);
	prof_db_close(db);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_captures_are_stacked_in_order_of_time),
		CASE(test_replicas_are_an_axis_whatever_order_their_pieces_come_in),
		CASE(test_uneven_replicas_come_in_order_of_time),
		CASE(test_each_shape_is_an_array_and_the_commonest_has_the_name),
		CASE(test_more_shapes_than_can_be_are_counted),
		CASE(test_tensors_without_elements_and_without_axes_are_arrays),
		CASE(test_captures_that_are_not_whole_are_left_out_and_counted),
		CASE(test_pieces_of_the_greatest_number_are_counted),
		CASE(test_a_file_that_is_being_written_is_read_as_far_as_it_goes),
		CASE(test_who_takes_the_values_may_stop),
		CASE(test_nothing_captured_is_no_error),
		CASE(test_a_key_of_two_queues_has_the_queue_in_its_name),
		CASE(test_names_are_unique_and_lead_nowhere),
		CASE(test_long_keys_are_cut_between_characters_and_stay_apart),
		CASE(test_the_longest_name_has_1016_bytes),
		CASE(test_damaged_rows_are_left_out),
		CASE(test_flipped_bytes_are_survived),
		CASE(test_many_odd_rows_are_survived),
		CASE(test_failing_allocations_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
