/*
 * Where data sets come from, in which order, and what is an error on the way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/fs.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset.h"

static void write_at(const struct sample_place *place, const char *name,
		     const struct sample_bytes *in)
{
	sample_write(place, name, in->bytes, in->length);
}

/* Four IDX files of @images training images under @folder; the test images gzipped. */
static void write_idx(const struct sample_place *place, const char *folder, uint32_t images)
{
	struct sample_bytes in, packed;
	char name[256];

	sample_idx(&in, 3, (const uint32_t[]){images, 3, 2}, 250);
	snprintf(name, sizeof(name), "%s/train-images-idx3-ubyte", folder);
	write_at(place, name, &in);
	sample_idx(&in, 1, (const uint32_t[]){images}, 10);
	snprintf(name, sizeof(name), "%s/train-labels.idx1-ubyte", folder);
	write_at(place, name, &in);
	sample_idx(&in, 3, (const uint32_t[]){4, 3, 2}, 250);
	sample_gzip(&packed, &in);
	snprintf(name, sizeof(name), "%s/t10k-images-idx3-ubyte.gz", folder);
	write_at(place, name, &packed);
	sample_idx(&in, 1, (const uint32_t[]){4}, 10);
	snprintf(name, sizeof(name), "%s/t10k-labels-idx1-ubyte", folder);
	write_at(place, name, &in);
}

static enum status open_set(struct sample_place *place, const char *path, int64_t limit,
			    struct dataset *train, struct dataset *test, struct err *err)
{
	const struct dataset_params params = {.name = "mnist",
					      .path = path,
					      .limit = limit,
					      .notice = sample_notice,
					      .user = place};

	*err = (struct err){0};
	return dataset_open(train, test, &params, err);
}

static void expect(struct sample_place *place, const char *path, int64_t count, const char *source)
{
	struct dataset train, test;
	struct err err;

	if (open_set(place, path, 0, &train, &test, &err) != ST_OK)
		print_error("%s\n", err.text);
	assert_int_equal(train.count, count);
	assert_contains(train.source, source);
	assert_int_equal(test.count, 4);
	assert_int_equal(train.shape[0], 3);
	assert_int_equal(train.shape[1], 2);
	assert_int_equal(train.shape[2], 1);
	assert_int_equal(train.classes, 10);
	assert_string_equal(train.names[7], "7");
	assert_int_equal(dataset_targets(&test).classes, 10);
	assert_int_equal(dataset_item_floats(&test), 6);
	assert_false(train.synthetic);
	dataset_close(&train);
	dataset_close(&test);
	assert_int_equal(place->notices, 0);
}

static void refuses(struct sample_place *place, const char *path, const char *part)
{
	struct dataset train, test;
	struct err err;

	assert_int_not_equal(open_set(place, path, 0, &train, &test, &err), ST_OK);
	assert_null(train.memory);
	assert_null(test.memory);
	assert_contains(err.text, part);
}

static void test_sources_come_in_their_order(void **state)
{
	static struct sample_zip zip;
	struct sample_place *place = *state;
	char data[FS_PATH_SIZE], path[FS_PATH_SIZE];

	/* From the last to the first. */
	sample_npz(&zip, 1);
	write_at(place, ".keras/datasets/mnist.npz", &zip.file);
	expect(place, NULL, 6, "mnist.npz (npz)");
	write_idx(place, ".local/share/ipuscope/mnist", 7);
	expect(place, NULL, 7, "ipuscope/mnist (IDX)");
	write_idx(place, "data/mnist", 8);
	assert_true(fs_path(data, "%s/data", place->folder));
	setenv("IPUSCOPE_DATA", data, 1);
	expect(place, NULL, 8, "data/mnist (IDX)");
	write_idx(place, "given", 9);
	assert_true(fs_path(path, "%s/given", place->folder));
	expect(place, path, 9, "given (IDX)");
	assert_true(fs_path(path, "%s/.keras/datasets/mnist.npz", place->folder));
	expect(place, path, 6, "mnist.npz");
}

static void test_fashion_mnist_is_found_where_keras_keeps_it(void **state)
{
	struct sample_place *place = *state;
	const struct dataset_params params = {
		.name = "fashion_mnist", .notice = sample_notice, .user = place};
	struct dataset train, test;

	write_idx(place, ".keras/datasets/fashion-mnist", 6);
	assert_int_equal(dataset_open(&train, &test, &params, NULL), ST_OK);
	assert_contains(train.source, "fashion-mnist (IDX)");
	assert_string_equal(train.names[9], "Ankle boot");
	assert_int_equal(place->notices, 0);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_what_is_given_and_fails_is_an_error(void **state)
{
	struct sample_place *place = *state;
	char path[FS_PATH_SIZE];

	refuses(place, "/no/such/place", "/no/such/place: there is no such folder");
	refuses(place, place->folder, "there is no train-images-idx3-ubyte (or .gz)");
	assert_true(fs_path(path, "%s/x.npz", place->folder));
	support_write_file(path, "text", 4);
	refuses(place, path, "x.npz: is not an .npz (zip) file");

	/* Found, but not readable: nothing else is taken in its place. */
	write_at(place, ".keras/datasets/mnist.npz", &(struct sample_bytes){4, "text"});
	refuses(place, NULL, "is not an .npz");
}

static void test_parts_must_fit_together(void **state)
{
	struct sample_place *place = *state;
	struct sample_bytes in;

	write_idx(place, "d", 6);
	sample_idx(&in, 1, (const uint32_t[]){5}, 10);
	write_at(place, "d/train-labels.idx1-ubyte", &in);
	setenv("IPUSCOPE_DATA", place->folder, 1);
	{
		char path[FS_PATH_SIZE];

		assert_true(fs_path(path, "%s/d", place->folder));
		refuses(place, path, "there are 6 images but 5 labels");
		sample_idx(&in, 1, (const uint32_t[]){6}, 10);
		in.bytes[8 + 5] = 12;
		write_at(place, "d/train-labels.idx1-ubyte", &in);
		refuses(place, path, "labels: item 5 has class 12; classes are from 0 to 9");
		sample_idx(&in, 1, (const uint32_t[]){6}, 10);
		write_at(place, "d/train-labels.idx1-ubyte", &in);
		sample_idx(&in, 3, (const uint32_t[]){6, 2, 3}, 250);
		write_at(place, "d/train-images-idx3-ubyte", &in);
		refuses(place, path, "items to train with are 2x3x1, to test with 3x2x1");
	}
}

static void test_limit_holds_for_both_parts(void **state)
{
	struct sample_place *place = *state;
	struct dataset train, test;
	char path[FS_PATH_SIZE];
	struct err err;

	write_idx(place, "d", 6);
	assert_true(fs_path(path, "%s/d", place->folder));
	assert_int_equal(open_set(place, path, 3, &train, &test, &err), ST_OK);
	assert_int_equal(train.count, 3);
	assert_int_equal(test.count, 3);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_unknown_names_are_refused(void **state)
{
	const struct dataset_params near = {.name = "cifar"}, far = {.name = "wikipedia"};
	const struct dataset_params nowhere = {.name = "npz"};
	struct dataset train, test;
	struct err err = {0};

	(void)state;
	assert_int_equal(dataset_open(&train, &test, &near, &err), ST_INVALID);
	assert_contains(err.text, "unknown data set \"cifar\" (did you mean \"cifar10\"?)");
	assert_int_equal(dataset_open(&train, &test, &far, &err), ST_INVALID);
	assert_contains(err.text, "there are: mnist, fashion_mnist, cifar10, cifar100, npz");
	assert_int_equal(dataset_open(&train, &test, &nowhere, &err), ST_INVALID);
	assert_contains(err.text, "Give it with --data.path");
}

/* There may be more inputs than outputs: what is given for each output is not read for them. */
static void test_inputs_may_be_many(void **state)
{
	enum {
		INPUTS = 40
	};
	static struct sample_zip zip;
	struct sample_place *place = *state;
	char names[INPUTS][12], path[FS_PATH_SIZE];
	const char *inputs[INPUTS];
	struct sample_bytes array;
	struct dataset train, test;
	struct err err = {0};
	const struct dataset_params params = {
		.name = "npz", .path = path, .inputs = inputs, .input_count = INPUTS};

	for (int i = 0; i < INPUTS; i++) {
		char member[32];

		inputs[i] = names[i];
		snprintf(names[i], sizeof(names[i]), "%d", i);
		snprintf(member, sizeof(member), "x_train_%d.npy", i);
		sample_npy(&array, "'|u1'", "False", "(2, 1)", 2, 250);
		sample_zip_add(&zip, member, &array, 0);
	}
	sample_npy(&array, "'|u1'", "False", "(2,)", 2, 10);
	sample_zip_add(&zip, "y_train.npy", &array, 0);
	sample_zip_end(&zip);
	write_at(place, "x.npz", &zip.file);
	assert_true(fs_path(path, "%s/x.npz", place->folder));
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 2);
	assert_int_equal(train.shape[0], INPUTS);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_no_memory_is_undone(void **state)
{
	struct sample_place *place = *state;
	struct dataset train, test;
	char path[FS_PATH_SIZE];
	struct err err;

	write_idx(place, "d", 6);
	assert_true(fs_path(path, "%s/d", place->folder));
	for (long n = 0;; n++) {
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = open_set(place, path, 0, &train, &test, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			dataset_close(&train);
			dataset_close(&test);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
		assert_null(train.memory);
		assert_null(test.memory);
	}
}

/* Needs the real files; their counts and a sum of their pixels are known. */
static void test_real_mnist_is_read(void **state)
{
	const char *path = getenv("IPUSCOPE_TEST_MNIST");
	struct sample_place *place = *state;
	struct dataset train, test;
	uint64_t sum = 0;
	struct err err;

	if (!path || !*path) {
		print_message("$IPUSCOPE_TEST_MNIST is not set: skipped\n");
		skip();
	}
	assert_int_equal(open_set(place, path, 0, &train, &test, &err), ST_OK);
	assert_int_equal(train.count, 60000);
	assert_int_equal(test.count, 10000);
	assert_int_equal(train.labels[0], 5);
	assert_int_equal(test.labels[0], 7);
	for (size_t i = 0; i < (size_t)60000 * 784; i++)
		sum += train.bytes[i];
	/* The mean of 0.1307 that everybody normalises with. */
	assert_close((double)sum / (60000.0 * 784 * 255), 0.1306604762738429, 1e-9);
	dataset_close(&train);
	dataset_close(&test);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, sample_place_set_up, sample_place_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sources_come_in_their_order),
		TEST(test_fashion_mnist_is_found_where_keras_keeps_it),
		TEST(test_what_is_given_and_fails_is_an_error),
		TEST(test_parts_must_fit_together),
		TEST(test_limit_holds_for_both_parts),
		TEST(test_unknown_names_are_refused),
		TEST(test_inputs_may_be_many),
		TEST(test_no_memory_is_undone),
		TEST(test_real_mnist_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
