/*
 * What batches get out of a data set, and how arrays of any user become one.
 */
#include <math.h>
#include <stdlib.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset.h"

static void test_bytes_become_value_by_255_rounded_once(void **state)
{
	uint8_t bytes[2 * 256];
	const int32_t labels[2] = {3, 9};
	const struct dataset set = {.count = 2,
				    .ndim = 3,
				    .shape = {16, 16, 1},
				    .classes = 10,
				    .bytes = bytes,
				    .labels = labels};
	const uint32_t items[] = {1, 0};
	float images[2 * 256];
	int32_t classes[2];

	(void)state;
	for (int i = 0; i < 256; i++) {
		bytes[i] = 0;
		bytes[256 + i] = (uint8_t)i;
	}
	dataset_gather_inputs(&set, items, 2, images);
	for (int i = 0; i < 256; i++) {
		float once = (float)((double)i / 255.0), divided = (float)i / 255.0f;

		assert_memory_equal(&images[i], &once, sizeof(once));
		assert_memory_equal(&images[i], &divided, sizeof(divided));
		assert_true(images[256 + i] == 0.0f);
	}
	dataset_gather_targets(&set, items, 2, classes, NULL);
	assert_int_equal(classes[0], 9);
	assert_int_equal(classes[1], 3);
}

/* ---- arrays of a user ------------------------------------------------------------------------ */

struct user {
	char folder[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE];
	struct sample_zip zip;
	struct dataset train, test;
	struct err err;
};

static int set_up(void **state)
{
	struct user *user = calloc(1, sizeof(*user));

	assert_non_null(user);
	support_tempdir(user->folder);
	assert_true(fs_path(user->path, "%s/a.npz", user->folder));
	*state = user;
	return 0;
}

static int tear_down(void **state)
{
	struct user *user = *state;

	dataset_close(&user->train);
	dataset_close(&user->test);
	support_tempdir_remove(user->folder);
	free(user);
	return 0;
}

static void add(struct user *user, const char *name, const char *descr, const char *shape,
		const void *values, size_t size)
{
	struct sample_bytes in;

	sample_npy_values(&in, descr, shape, values, size);
	sample_zip_add(&user->zip, name, &in, 0);
}

static enum status open_as(struct user *user, const char *name, bool one_hot)
{
	const struct dataset_params params = {.name = name, .path = user->path, .one_hot = one_hot};

	dataset_close(&user->train);
	dataset_close(&user->test);
	user->err = (struct err){0};
	return dataset_open(&user->train, &user->test, &params, &user->err);
}

static enum status open_user(struct user *user, bool one_hot)
{
	sample_zip_end(&user->zip);
	support_write_file(user->path, user->zip.file.bytes, user->zip.file.length);
	user->zip = (struct sample_zip){0};
	return open_as(user, "npz", one_hot);
}

static const float six[6] = {0.5f, -1, 2, 3, 4, 1e9f};

static void test_floats_and_classes_of_any_whole_type(void **state)
{
	struct user *user = *state;
	const int64_t labels[3] = {4, 0, 2}, more[3] = {1, 6, 0};
	const uint32_t items[] = {2, 0};
	float out[4];
	int32_t classes[2];

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'<i8'", "(3,)", labels, sizeof(labels));
	assert_int_equal(open_user(user, false), ST_OK);
	assert_int_equal(user->train.ndim, 1);
	assert_int_equal(user->train.shape[0], 2);
	assert_int_equal(dataset_targets(&user->train).classes, 5);
	assert_null(user->train.names);
	assert_int_equal(user->test.count, 0);
	dataset_gather_inputs(&user->train, items, 2, out);
	assert_true(out[0] == 4 && out[1] == 1e9f && out[2] == 0.5f && out[3] == -1);
	dataset_gather_targets(&user->train, items, 2, classes, NULL);
	assert_int_equal(classes[0], 2);
	assert_int_equal(classes[1], 4);

	/* The greatest class may be in the test set alone. */
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'<i8'", "(3, 1)", labels, sizeof(labels));
	add(user, "x_test.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_test.npy", "'<i8'", "(3,)", more, sizeof(more));
	assert_int_equal(open_user(user, false), ST_OK);
	assert_int_equal(dataset_targets(&user->train).classes, 7);
	assert_int_equal(dataset_targets(&user->test).classes, 7);
}

static void test_one_hot_gives_class_numbers_as_vectors(void **state)
{
	struct user *user = *state;
	const uint8_t labels[3] = {1, 0, 2};
	const int32_t many[3] = {1, 2000000000, 0};
	const uint32_t items[] = {2, 0};
	const float expected[] = {0, 0, 1, 0, 1, 0};
	struct target_kind kind;
	float out[6];

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, sizeof(labels));
	assert_int_equal(open_user(user, true), ST_OK);
	kind = dataset_targets(&user->train);
	assert_int_equal(kind.classes, 0);
	assert_int_equal(kind.width, 3);
	dataset_gather_targets(&user->train, items, 2, NULL, out);
	assert_memory_equal(out, expected, sizeof(expected));

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	assert_int_equal(open_user(user, true), ST_INVALID);
	assert_contains(user->err.text, "data.one_hot: the targets are values");

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'<i4'", "(3,)", many, sizeof(many));
	assert_int_equal(open_user(user, true), ST_LIMIT);
	assert_contains(user->err.text, "vectors of 2000000001 classes are too long");
}

/* The model says what positions are: the numbers are given out as they are, or as vectors. */
static void test_whole_numbers_of_many_positions(void **state)
{
	struct user *user = *state;
	const int64_t tokens[8] = {3, 0, 1, 2, 2, 2, 0, 1}, below[8] = {3, 0, -1, 2, 2, 2, 0, 1};
	const uint8_t pixels[8] = {1, 0, 0, 4, 1, 1, 0, 1};
	const uint32_t items[] = {1, 0};
	const float expected[] = {2, 2, 0, 1, 3, 0, 1, 2};
	struct target_kind kind;
	float out[32];

	add(user, "x_train.npy", "'<f4'", "(2, 3)", six, sizeof(six));
	add(user, "y_train.npy", "'<i8'", "(2, 4)", tokens, sizeof(tokens));
	assert_int_equal(open_user(user, false), ST_OK);
	kind = dataset_targets(&user->train);
	assert_int_equal(kind.classes, 4);
	assert_int_equal(kind.width, 4);
	assert_false(dataset_gives_classes(&user->train));
	dataset_gather_targets(&user->train, items, 2, NULL, out);
	assert_memory_equal(out, expected, sizeof(expected));

	add(user, "x_train.npy", "'<f4'", "(2, 3)", six, sizeof(six));
	add(user, "y_train.npy", "'<i8'", "(2, 4)", tokens, sizeof(tokens));
	assert_int_equal(open_user(user, true), ST_OK);
	kind = dataset_targets(&user->train);
	assert_int_equal(kind.classes, 0);
	assert_int_equal(kind.width, 16);
	dataset_gather_targets(&user->train, items, 2, NULL, out);
	for (int i = 0; i < 32; i++)
		assert_true(out[i] == (i % 4 == (int)expected[i / 4] ? 1.0f : 0.0f));

	/* the greatest class is the test part's; numbers below 0 are values */
	add(user, "x_train.npy", "'<f4'", "(2, 3)", six, sizeof(six));
	add(user, "y_train.npy", "'<i8'", "(2, 2, 2)", tokens, sizeof(tokens));
	add(user, "x_test.npy", "'<f4'", "(2, 3)", six, sizeof(six));
	add(user, "y_test.npy", "'|u1'", "(2, 2, 2, 1)", pixels, sizeof(pixels));
	assert_int_equal(open_user(user, false), ST_OK);
	assert_int_equal(dataset_targets(&user->train).classes, 5);
	add(user, "x_train.npy", "'<f4'", "(2, 3)", six, sizeof(six));
	add(user, "y_train.npy", "'<i8'", "(2, 4)", tokens, sizeof(tokens));
	add(user, "x_test.npy", "'<f4'", "(2, 3)", six, sizeof(six));
	add(user, "y_test.npy", "'<i8'", "(2, 4)", below, sizeof(below));
	assert_int_equal(open_user(user, false), ST_OK);
	assert_int_equal(dataset_targets(&user->train).classes, 0);
	assert_int_equal(dataset_targets(&user->test).classes, 0);
}

static void test_weights_stand_beside_the_targets(void **state)
{
	struct user *user = *state;
	const float weights[6] = {0, 1, 2, 0.5f, -1, 3}, bad[3] = {1, NAN, 1};
	const struct dataset_params split = {
		.name = "npz", .path = user->path, .validation_split = 0.4};
	const uint8_t labels[3] = {1, 0, 2};

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, sizeof(labels));
	add(user, "sample_weight_train.npy", "'<f4'", "(3, 2)", weights, sizeof(weights));
	assert_int_equal(open_user(user, true), ST_OK);
	assert_int_equal(dataset_targets(&user->train).weights, 2);
	assert_memory_equal(user->train.weights, weights, sizeof(weights));
	assert_int_equal(dataset_targets(&user->test).weights, 2);
	assert_null(user->test.weights);

	/* The last items are split off, with their weights. */
	dataset_close(&user->train);
	dataset_close(&user->test);
	assert_int_equal(dataset_open(&user->train, &user->test, &split, &user->err), ST_OK);
	assert_int_equal(user->test.count, 2);
	assert_memory_equal(user->test.weights, weights + 2, 16);

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, sizeof(labels));
	add(user, "sample_weight_train.npy", "'<f4'", "(2,)", weights, 8);
	assert_int_equal(open_user(user, false), ST_FORMAT);
	assert_contains(user->err.text, "sample_weight_train has 2 items, the targets more: 3");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, sizeof(labels));
	add(user, "sample_weight_train.npy", "'<f4'", "(3, 1)", bad, sizeof(bad));
	assert_int_equal(open_user(user, false), ST_FORMAT);
	assert_contains(user->err.text, "sample_weight_train: number 1 is nan: no weight");
}

static void test_float_values_are_not_sent_as_bytes(void **state)
{
	struct user *user = *state;
	const struct dataset_params params = {.name = "npz", .path = user->path, .pictures = true};
	const uint8_t labels[3] = {1, 0, 2}, pixels[6] = {0, 1, 2, 127, 254, 255};

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, sizeof(six));
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, sizeof(labels));
	assert_int_equal(open_user(user, false), ST_OK);
	dataset_close(&user->train);
	dataset_close(&user->test);
	assert_int_equal(dataset_open(&user->train, &user->test, &params, &user->err), ST_INVALID);
	assert_contains(user->err.text, "infeed.dtype: uint8 is for pictures stored as bytes");

	add(user, "x_train.npy", "'|u1'", "(3, 2)", pixels, sizeof(pixels));
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, sizeof(labels));
	assert_int_equal(open_user(user, false), ST_OK);
	dataset_close(&user->train);
	dataset_close(&user->test);
	assert_int_equal(dataset_open(&user->train, &user->test, &params, &user->err), ST_OK);
}

static void test_values_of_any_width_are_targets(void **state)
{
	static const char *const shapes[] = {"(3,)", "(3, 1)", "(3, 2)"};
	static const size_t widths[] = {1, 1, 2};
	struct user *user = *state;
	const uint32_t items[] = {2, 1};
	double values[6];

	for (int i = 0; i < 6; i++)
		values[i] = six[i];
	for (size_t c = 0; c < ARRAY_LEN(shapes); c++) {
		struct target_kind kind;
		float out[4];

		add(user, "x_train.npy", "'<f4'", "(3, 2, 1)", six, sizeof(six));
		add(user, "y_train.npy", "'<f8'", shapes[c], values, 24 * widths[c]);
		assert_int_equal(open_user(user, false), ST_OK);
		kind = dataset_targets(&user->train);
		assert_int_equal(kind.classes, 0);
		assert_int_equal(kind.width, widths[c]);
		dataset_gather_targets(&user->train, items, 2, NULL, out);
		assert_memory_equal(out, six + 2 * widths[c], 4 * widths[c]);
		assert_memory_equal(out + widths[c], six + widths[c], 4 * widths[c]);
	}
}

static void test_shapes_up_to_four_dimensions(void **state)
{
	static const struct {
		const char *descr, *shape;
		int ndim;
		int64_t last;
		bool bytes;
	} cases[] = {
		{"'|u1'", "(2,)", 1, 1, true},
		{"'|u1'", "(2, 4)", 1, 4, true},
		{"'|u1'", "(2, 2, 2)", 3, 1, true},
		{"'|u1'", "(2, 1, 2, 2)", 3, 2, true},
		{"'|i1'", "(2, 2, 2)", 2, 2, false},
		{"'|b1'", "(2, 4)", 1, 4, false},
		{"'|i1'", "(2, 1, 1, 2, 2)", 4, 2, false},
	};
	struct user *user = *state;
	const uint8_t values[8] = {0, 1, 0, 1, 1, 0, 1, 1};

	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		const uint32_t items[] = {1};
		float out[4];

		add(user, "x_train.npy", cases[c].descr, cases[c].shape, values, c ? 8 : 2);
		add(user, "y_train.npy", "'|u1'", "(2,)", values, 2);
		assert_int_equal(open_user(user, false), ST_OK);
		assert_int_equal(user->train.ndim, cases[c].ndim);
		assert_int_equal(user->train.shape[cases[c].ndim - 1], cases[c].last);
		assert_int_equal(!user->train.floats, cases[c].bytes);
		dataset_gather_inputs(&user->train, items, 1, out);
		assert_true(out[0] == (cases[c].bytes ? 1.0f / 255.0f : 1.0f));
	}
}

static void refuses(struct user *user, const char *part)
{
	assert_int_not_equal(open_user(user, false), ST_OK);
	assert_contains(user->err.text, "a.npz");
	assert_contains(user->err.text, part);
	assert_null(user->train.memory);
	assert_null(user->test.memory);
}

static void test_what_does_not_fit_together_is_refused(void **state)
{
	struct user *user = *state;
	const int16_t labels[6] = {0, 1, -2, 3, 4, 5};

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	refuses(user, "there is no array \"y_train\"");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'<i2'", "(2,)", labels, 4);
	refuses(user, "there are 3 x_train but 2 y_train");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'<i2'", "(3,)", labels, 6);
	refuses(user, "y_train: item 2 has class -2; classes are from 0");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'<i2'", "(3, 2)", labels, 12);
	add(user, "x_test.npy", "'<f4'", "(3, 2)", six, 24);
	refuses(user, "there is no array \"y_test\"");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'<i2'", "(3, 2)", labels, 12);
	add(user, "x_test.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_test.npy", "'<f4'", "(3,)", six, 12);
	refuses(user, "differ in type or width");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'<f4'", "(3,)", six, 12);
	add(user, "x_test.npy", "'|u1'", "(3, 2)", six, 6);
	add(user, "y_test.npy", "'<f4'", "(3,)", six, 12);
	refuses(user, "not of one type (the latter are bytes)");
	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'<f4'", "(3,)", six, 12);
	add(user, "x_test.npy", "'<f4'", "(3, 1)", six, 12);
	add(user, "y_test.npy", "'<f4'", "(3,)", six, 12);
	refuses(user, "items to train with are 2, to test with 1");
}

static void test_known_sets_know_their_classes(void **state)
{
	struct user *user = *state;
	const uint8_t labels[3] = {4, 11, 2};

	add(user, "x_train.npy", "'<f4'", "(3, 2)", six, 24);
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, 3);
	assert_int_equal(open_user(user, false), ST_OK);
	assert_int_equal(user->train.classes, 12);
	assert_int_equal(open_as(user, "fashion_mnist", false), ST_FORMAT);
	assert_contains(user->err.text, "item 1 has class 11; classes are from 0 to 9");
}

static void test_no_memory_is_undone(void **state)
{
	struct user *user = *state;
	const uint8_t labels[3] = {4, 1, 2};

	add(user, "x_train.npy", "'<f8'", "(3,)", six, 24);
	add(user, "y_train.npy", "'|u1'", "(3,)", labels, 3);
	assert_int_equal(open_user(user, false), ST_OK);
	for (long n = 0;; n++) {
		enum status status;
		bool failed;

		dataset_close(&user->train);
		dataset_close(&user->test);
		support_fail_alloc(n);
		status = open_as(user, "npz", false);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
		assert_null(user->train.memory);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_become_value_by_255_rounded_once),
		TEST(test_floats_and_classes_of_any_whole_type),
		TEST(test_one_hot_gives_class_numbers_as_vectors),
		TEST(test_whole_numbers_of_many_positions),
		TEST(test_weights_stand_beside_the_targets),
		TEST(test_float_values_are_not_sent_as_bytes),
		TEST(test_values_of_any_width_are_targets),
		TEST(test_shapes_up_to_four_dimensions),
		TEST(test_what_does_not_fit_together_is_refused),
		TEST(test_known_sets_know_their_classes),
		TEST(test_no_memory_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
