/*
 * CIFAR-10: the binary version, and what else lies in its places.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset.h"

static struct dataset train, test;
static struct err err;
static const char *wanted = "cifar10";
static bool coarse;

static void write_at(const struct sample_place *place, const char *folder, const char *name,
		     const void *bytes, size_t length)
{
	char path[FS_PATH_SIZE];

	assert_true(fs_path(path, "%s/%s", folder, name));
	sample_write(place, path, bytes, length);
}

/* Batches 1 and 3 of two records, a test batch of one. */
static void write_set(const struct sample_place *place, const char *folder)
{
	struct sample_bytes in;

	sample_cifar(&in, 2, 1, false);
	write_at(place, folder, "data_batch_1.bin", in.bytes, in.length);
	sample_cifar(&in, 2, 7, false);
	write_at(place, folder, "data_batch_3.bin", in.bytes, in.length);
	sample_cifar(&in, 1, 5, false);
	write_at(place, folder, "test_batch.bin", in.bytes, in.length);
}

static enum status open_set(struct sample_place *place, const char *folder)
{
	struct dataset_params params = {.name = wanted, .coarse = coarse};
	char path[FS_PATH_SIZE];

	err = (struct err){0};
	if (folder) {
		assert_true(fs_path(path, "%s/%s", place->folder, folder));
		params.path = path;
	}
	return dataset_open(&train, &test, &params, &err);
}

static void close_set(void)
{
	dataset_close(&train);
	dataset_close(&test);
}

static void expect(struct sample_place *place, const char *folder, const char *source)
{
	if (open_set(place, folder) != ST_OK)
		print_error("%s\n", err.text);
	assert_int_equal(train.count, 4);
	assert_int_equal(test.count, 1);
	assert_contains(train.source, source);
	close_set();
}

static void refuses(struct sample_place *place, const char *folder, const char *part)
{
	assert_int_not_equal(open_set(place, folder), ST_OK);
	assert_null(train.memory);
	assert_null(test.memory);
	assert_contains(err.text, part);
}

static void test_planes_become_pixels_batch_after_batch(void **state)
{
	static const int32_t labels[] = {1, 2, 7, 8};
	struct sample_place *place = *state;

	write_set(place, "d");
	assert_int_equal(open_set(place, "d"), ST_OK);
	assert_int_equal(train.ndim, 3);
	assert_int_equal(train.shape[0], 32);
	assert_int_equal(train.shape[1], 32);
	assert_int_equal(train.shape[2], 3);
	assert_memory_equal(train.labels, labels, sizeof(labels));
	assert_int_equal(test.labels[0], 5);
	for (int r = 0; r < 4; r++)
		for (int p = 0; p < 1024; p++)
			for (int c = 0; c < 3; c++)
				assert_int_equal(train.bytes[(r * 1024 + p) * 3 + c],
						 (uint8_t)(p + r % 2 + c));
	assert_string_equal(train.names[9], "truck");
	close_set();
}

static void test_names_come_from_the_meta_file(void **state)
{
	static const char names[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj k\n\n";
	struct sample_place *place = *state;

	write_set(place, "d");
	write_at(place, "d", "batches.meta.txt", names, sizeof(names) - 1);
	assert_int_equal(open_set(place, "d"), ST_OK);
	assert_string_equal(test.names[9], "j k");
	close_set();
	write_at(place, "d", "batches.meta.txt", names, 10);
	refuses(place, "d", "batches.meta.txt: has 5 lines, not the names of 10 classes");
	write_at(place, "d", "batches.meta.txt", names, sizeof(names));
	refuses(place, "d", "batches.meta.txt: is no text");
}

static void test_places_come_in_their_order(void **state)
{
	struct sample_place *place = *state;
	char path[FS_PATH_SIZE];

	write_at(place, ".keras/datasets/cifar-10-batches-py", "data_batch_1", "\x80\4", 2);
	refuses(place, NULL, "cifar-10-batches-py: holds CIFAR-10 as Python pickles");
	assert_contains(err.text, "script/get-cifar10");
	write_set(place, ".keras/datasets/cifar-10-batches-bin");
	expect(place, NULL, "cifar-10-batches-bin (CIFAR-10)");
	write_at(place, ".keras/datasets", "cifar10.npz", "text", 4);
	refuses(place, NULL, "cifar10.npz: is not an .npz");
	/* As the archive unpacks. */
	write_set(place, "data/cifar10/cifar-10-batches-bin");
	assert_true(fs_path(path, "%s/data", place->folder));
	setenv("IPUSCOPE_DATA", path, 1);
	expect(place, NULL, "data/cifar10/cifar-10-batches-bin (CIFAR-10)");
	write_set(place, "given");
	expect(place, "given", "given (CIFAR-10)");
	refuses(place, "none",
		"none: there is no such folder of CIFAR-10's binary version or .npz");
}

static void test_spoiled_files_are_refused(void **state)
{
	struct sample_place *place = *state;
	struct sample_bytes in;

	write_at(place, "d", "x", "", 0);
	refuses(place, "d", "d: there is no data_batch_1.bin in this folder");
	write_set(place, "d");
	sample_cifar(&in, 2, 7, false);
	write_at(place, "d", "data_batch_3.bin", in.bytes, in.length - 1);
	refuses(place, "d", "data_batch_3.bin: is truncated or no CIFAR-10 file: 6145 bytes");
	write_at(place, "d", "data_batch_3.bin", "", 0);
	refuses(place, "d", "data_batch_3.bin: is empty");
	sample_cifar(&in, 2, 9, false);
	write_at(place, "d", "data_batch_3.bin", in.bytes, in.length);
	refuses(place, "d", "data_batch_3.bin: record 1 has the label 10; labels are from 0 to 9");
	write_set(place, "d");
	write_at(place, "d", "test_batch.bin", in.bytes, 100);
	refuses(place, "d", "test_batch.bin: is truncated");
}

static void test_arrays_of_keras_are_read(void **state)
{
	static struct sample_zip zip;
	struct sample_bytes array;
	struct sample_place *place = *state;

	zip = (struct sample_zip){0};
	sample_npy(&array, "'|u1'", "False", "(4, 2, 5, 3)", 120, 250);
	sample_zip_add(&zip, "x_train.npy", &array, 1);
	sample_zip_add(&zip, "x_test.npy", &array, 1);
	sample_npy(&array, "'|u1'", "False", "(4, 1)", 4, 10);
	sample_zip_add(&zip, "y_train.npy", &array, 1);
	sample_zip_add(&zip, "y_test.npy", &array, 1);
	sample_zip_end(&zip);
	write_at(place, ".keras/datasets", "cifar10.npz", zip.file.bytes, zip.file.length);
	assert_int_equal(open_set(place, NULL), ST_OK);
	assert_int_equal(train.shape[2], 3);
	assert_int_equal(train.labels[3], 3);
	assert_int_equal(train.classes, 10);
	assert_string_equal(train.names[0], "airplane");
	close_set();
}

static void test_cifar100_has_its_fine_labels(void **state)
{
	struct sample_place *place = *state;
	struct sample_bytes in;

	sample_cifar(&in, 2, 98, true);
	write_at(place, ".keras/datasets/cifar-100-binary", "train.bin", in.bytes, in.length);
	write_at(place, "wrong", "train.bin", in.bytes, in.length - 3);
	sample_cifar(&in, 2, 4, true);
	write_at(place, ".keras/datasets/cifar-100-binary", "test.bin", in.bytes, in.length);
	wanted = "cifar100";
	assert_int_equal(open_set(place, NULL), ST_OK);
	assert_int_equal(train.count, 2);
	assert_int_equal(train.labels[0], 98);
	assert_int_equal(train.labels[1], 99);
	assert_int_equal(test.labels[1], 5);
	assert_int_equal(train.classes, 100);
	assert_int_equal(train.bytes[3072 + 2], 3);
	assert_contains(train.source, "cifar-100-binary (CIFAR-100)");
	close_set();

	refuses(place, "wrong", "train.bin: is truncated or no CIFAR-100 file: 6145 bytes");
	sample_cifar(&in, 1, 100, true);
	write_at(place, "wrong", "train.bin", in.bytes, in.length);
	refuses(place, "wrong", "record 0 has the label 100; labels are from 0 to 99");
	write_at(place, "pickled", "train", "\x80\4", 2);
	refuses(place, "pickled", "holds CIFAR-100 as Python pickles, which are not read: get the");
	wanted = "cifar10";
}

static void test_cifar100_has_its_coarse_labels(void **state)
{
	struct sample_place *place = *state;
	struct dataset_params params = {.name = "cifar100", .coarse = true};
	struct sample_bytes in;
	char names[20 * 3];

	sample_cifar(&in, 2, 98, true);
	write_at(place, "d", "train.bin", in.bytes, in.length);
	in.bytes[0] = 7;
	write_at(place, "d", "test.bin", in.bytes, in.length);
	for (int i = 0; i < 20; i++)
		memcpy(names + 3 * i, (char[]){(char)('0' + i / 10), (char)('0' + i % 10), '\n'},
		       3);
	write_at(place, "d", "coarse_label_names.txt", names, sizeof(names));
	wanted = "cifar100";
	coarse = true;
	assert_int_equal(open_set(place, "d"), ST_OK);
	assert_int_equal(train.classes, 20);
	assert_int_equal(train.labels[1], 19);
	assert_int_equal(test.labels[0], 7);
	assert_string_equal(test.names[7], "07");
	assert_int_equal(train.bytes[3072 + 2], 3);
	close_set();

	in.bytes[0] = 20;
	write_at(place, "d", "test.bin", in.bytes, in.length);
	refuses(place, "d", "record 0 has the label 20; labels are from 0 to 19");
	assert_int_equal(dataset_describe(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.classes, 20);
	close_set();
	wanted = "cifar10";
	refuses(place, "d", "data.label_mode: coarse labels are of data.name cifar100, and this");
	coarse = false;
}

/* Nothing stands in for it. */
static void test_cifar100_is_not_made_up(void **state)
{
	wanted = "cifar100";
	refuses(*state, NULL, "data set \"cifar100\": is not on this machine: give its folder");
	wanted = "cifar10";
}

static void test_no_memory_is_undone(void **state)
{
	struct sample_place *place = *state;

	write_set(place, "d");
	write_at(place, "d", "batches.meta.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", 20);
	for (long n = 0;; n++) {
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = open_set(place, "d");
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
		assert_null(train.memory);
		assert_null(test.memory);
	}
	close_set();
}

/* Needs real files, of the whole set or a part: colours are as in everybody's statistics. */
static void test_real_cifar10_is_read(void **state)
{
	static const double means[] = {0.4914, 0.4822, 0.4465};
	const char *path = getenv("IPUSCOPE_TEST_CIFAR10");
	const struct dataset_params params = {.name = "cifar10", .path = path};
	uint64_t sums[3] = {0};
	int64_t pixels;

	(void)state;
	if (!path || !*path) {
		print_message("$IPUSCOPE_TEST_CIFAR10 is not set: skipped\n");
		skip();
	}
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	pixels = train.count * 1024;
	assert_true(train.count >= 1000 && test.count >= 1000);
	for (int64_t i = 0; i < pixels * 3; i++)
		sums[i % 3] += train.bytes[i];
	for (int c = 0; c < 3; c++)
		assert_close((double)sums[c] / (255.0 * (double)pixels), means[c], 0.01);
	assert_string_equal(train.names[6], "frog");
	close_set();
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, sample_place_set_up, sample_place_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_planes_become_pixels_batch_after_batch),
		TEST(test_names_come_from_the_meta_file),
		TEST(test_cifar100_has_its_fine_labels),
		TEST(test_cifar100_has_its_coarse_labels),
		TEST(test_cifar100_is_not_made_up),
		TEST(test_places_come_in_their_order),
		TEST(test_spoiled_files_are_refused),
		TEST(test_arrays_of_keras_are_read),
		TEST(test_no_memory_is_undone),
		TEST(test_real_cifar10_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
