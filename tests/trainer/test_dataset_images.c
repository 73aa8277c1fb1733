/*
 * Images of files: every kind of PNG, JPEG to the byte on any processor, folders by class, one size
 * of many; a line for everything that is wrong with one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset_feed.h"
#include "trainer/data/dataset_internal.h"
#include "trainer/data/image.h"

static struct err err;

static char *read_sample(const char *name, size_t *length)
{
	char path[FS_PATH_SIZE], *bytes;

	assert_true(fs_path(path, "%s/tests/fuzz/corpus/fuzz_image/%s",
			    getenv("IPUSCOPE_SOURCE_DIR"), name));
	assert_int_equal(fs_read(path, 1 << 20, &bytes, length, &err), ST_OK);
	return bytes;
}

static enum status decode(struct image *out, const char *name, bool gray)
{
	size_t length;
	char *bytes = read_sample(name, &length);
	const enum status status = image_decode(out, gray, name, bytes, length, &err);

	mem_free(bytes);
	return status;
}

#ifdef IPUSCOPE_IMAGES
static struct dataset train, test;

static void test_every_kind_of_png(void **state)
{
	static const struct {
		const char *name;
		bool gray;
		int64_t height, width;
		uint8_t bytes[27];
	} rows[] = {
		{"rgb.png", false, 2, 2, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}},
		/* (299 R + 587 G + 114 B) / 1000, rounded */
		{"rgb.png", true, 2, 2, {76, 150, 29, 18}},
		{"gray16.png", true, 1, 2, {0x12, 0xff}},
		{"gray16.png", false, 1, 2, {0x12, 0x12, 0x12, 0xff, 0xff, 0xff}},
		{"gray1.png", true, 1, 9, {255, 0, 255, 0, 0, 255, 0, 255, 255}},
		{"palette.png", false, 1, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"rgba.png", false, 1, 1, {1, 2, 3}},
		{"interlaced.png", true, 2, 2, {1, 2, 3, 4}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t channels = rows[i].gray ? 1 : 3;
		struct image image;

		assert_int_equal(decode(&image, rows[i].name, rows[i].gray), ST_OK);
		assert_int_equal(image.height, rows[i].height);
		assert_int_equal(image.width, rows[i].width);
		assert_int_equal(image.channels, channels);
		assert_memory_equal(image.bytes, rows[i].bytes,
				    (size_t)(image.height * image.width) * channels);
		mem_free(image.bytes);
	}
}

/* What libjpeg-turbo 2.1.5 gives, without vector instructions (JSIMD_FORCENONE=1) too; a
 * progressive file has the pixels of the other. What was encoded is near: 15 x. */
static void test_jpeg_to_the_byte(void **state)
{
	static const struct {
		const char *name;
		bool gray;
		uint64_t digest;
	} rows[] = {
		{"colour.jpg", false, 0x6a6f0d587d4d290c},
		{"colour.jpg", true, 0xb6618110be5f12ec},
		{"progressive.jpg", false, 0x6a6f0d587d4d290c},
		{"gray.jpg", true, 0x1de1c6b3a0c6670b},
	};
	struct image image;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t digest;

		assert_int_equal(decode(&image, rows[i].name, rows[i].gray), ST_OK);
		assert_int_equal(image.height, 11);
		assert_int_equal(image.width, 17);
		digest = XXH3_64bits(image.bytes, 11 * 17 * (rows[i].gray ? 1 : 3));
		if (digest != rows[i].digest)
			fail_msg("%s: 0x%016llx", rows[i].name, (unsigned long long)digest);
		mem_free(image.bytes);
	}
	assert_int_equal(decode(&image, "gray.jpg", true), ST_OK);
	for (int x = 0; x < 17; x++)
		assert_in_range(abs(image.bytes[x] - 15 * x), 0, 12);
	mem_free(image.bytes);
}

static void test_what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *name, *part;
	} rows[] = {
		{"cut.png", "cut.png: is a damaged PNG: the file ends early"},
		{"crc.png", "crc.png: is a damaged PNG: "},
		{"short.png", "short.png: is a damaged PNG: "},
		{"none.png", "none.png: is a damaged PNG: the file ends early"},
		{"huge.png", "huge.png: says that it has 2000000000 x 2000000000 pixels; sides "},
		{"wide.png", "wide.png: says that it has 65536 x 65536 pixels"},
		{"huge.jpg", "huge.jpg: "},
		{"cut.jpg", "cut.jpg: is a damaged JPEG: Premature end of JPEG file"},
		{"scans.jpg", "scans.jpg: has more than 100 scans of the whole image"},
		{"cmyk.jpg", "cmyk.jpg: is a JPEG of 4 components (CMYK, for printing): save it"},
		{"empty.jpg", "empty.jpg: is neither a PNG nor a JPEG, whatever its name says"},
		{"bmp.png", "bmp.png: is neither a PNG nor a JPEG"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct image image;

		assert_int_not_equal(decode(&image, rows[i].name, false), ST_OK);
		assert_null(image.bytes);
		assert_contains(err.text, rows[i].part);
		assert_null(strchr(err.text, '\n'));
	}
}

static void copy_sample(const struct sample_place *place, const char *to, const char *name)
{
	size_t length;
	char *bytes = read_sample(name, &length);

	sample_write(place, to, bytes, length);
	mem_free(bytes);
}

static enum status open_folder(const struct sample_place *place, int64_t side, bool gray,
			       unsigned threads)
{
	char path[SUPPORT_PATH_SIZE + 8];
	const struct dataset_params params = {.name = "images",
					      .path = path,
					      .resize = {side, side},
					      .images = {.gray = gray},
					      .threads = threads};

	snprintf(path, sizeof(path), "%s/set", place->folder);
	return dataset_open(&train, &test, &params, &err);
}

static void close_both(void)
{
	dataset_close(&train);
	dataset_close(&test);
}

static void test_folders_are_classes(void **state)
{
	struct sample_place *place = *state;
	uint64_t digest;

	copy_sample(place, "set/train/b/1.png", "rgb.png");
	copy_sample(place, "set/train/b/2.PNG", "rgb.png");
	copy_sample(place, "set/train/B/1.jpeg", "colour.jpg");
	copy_sample(place, "set/train/B/notes.txt", "bmp.png");
	copy_sample(place, "set/test/b/1.jpg", "gray.jpg");
	assert_int_equal(open_folder(place, 2, false, 1), ST_OK);
	assert_int_equal(train.count, 3);
	assert_int_equal(test.count, 1);
	assert_int_equal(train.classes, 2);
	assert_string_equal(train.names[0], "B");
	assert_string_equal(train.names[1], "b");
	assert_int_equal(train.shape[0], 2);
	assert_int_equal(train.shape[2], 3);
	/* Mixed by share: b at 1/4, B at 1/2, b at 3/4. */
	assert_int_equal(train.labels[0], 1);
	assert_int_equal(train.labels[1], 0);
	assert_int_equal(train.labels[2], 1);
	assert_int_equal(test.labels[0], 1);
	/* Of the size already: as it is. */
	assert_memory_equal(train.bytes, "\xff\0\0\0\xff\0\0\0\xff\x0a\x14\x1e", 12);
	digest = XXH3_64bits(train.bytes, 36);
	close_both();
	assert_int_equal(open_folder(place, 2, false, 3), ST_OK);
	assert_true(XXH3_64bits(train.bytes, 36) == digest);
	close_both();
}

/* One pixel of four lies between all: their mean, rounded. */
static void test_images_are_scaled(void **state)
{
	struct sample_place *place = *state;

	copy_sample(place, "set/a/1.png", "rgb.png");
	assert_int_equal(open_folder(place, 1, false, 1), ST_OK);
	assert_int_equal(train.bytes[0], 66); /* 265 / 4 = 66.25 */
	assert_int_equal(train.bytes[1], 69); /* 275 / 4 = 68.75 */
	assert_int_equal(train.bytes[2], 71); /* 285 / 4 = 71.25 */
	close_both();
	copy_sample(place, "set/a/2.png", "rgba.png");
	assert_int_not_equal(open_folder(place, 0, false, 1), ST_OK);
	assert_contains(err.text, "set/a/2.png: has 1 x 1 pixels, ");
	assert_contains(err.text, "set/a/1.png has 2 x 2: data.resize");
	assert_int_equal(open_folder(place, 65536, false, 1), ST_LIMIT);
	assert_contains(err.text, "data.resize: images of 65536 x 65536 pixels are more than the ");
}

static void test_wrong_folders_are_named(void **state)
{
	struct sample_place *place = *state;

	copy_sample(place, "set/train/a/1.txt", "bmp.png");
	assert_int_not_equal(open_folder(place, 2, false, 1), ST_OK);
	assert_contains(err.text, "set/train: has no files LABEL/*.png, *.jpg or *.jpeg");
	copy_sample(place, "set/train/a/1.png", "rgb.png");
	copy_sample(place, "set/train/a/2.png", "cut.png");
	copy_sample(place, "set/train/a/3.png", "bmp.png");
	assert_int_not_equal(open_folder(place, 2, false, 3), ST_OK);
	assert_contains(err.text, "set/train/a/2.png: is a damaged PNG: the file ends early");
	copy_sample(place, "set/train/a/2.png", "rgb.png");
	copy_sample(place, "set/train/a/3.png", "rgb.png");
	copy_sample(place, "set/test/c/1.png", "rgb.png");
	assert_int_not_equal(open_folder(place, 2, false, 1), ST_OK);
	assert_contains(err.text, "set/test/c: is no label of the training part");
}

/* What is predicted alone lies there without classes, beside what is trained on or by itself. */
static void test_images_to_predict_need_no_class(void **state)
{
	struct sample_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	struct dataset_params params = {
		.name = "images", .path = path, .resize = {2, 2}, .no_test_targets = true};

	snprintf(path, sizeof(path), "%s/set", place->folder);
	copy_sample(place, "set/train/a/1.png", "rgb.png");
	copy_sample(place, "set/train/b/1.png", "rgb.png");
	copy_sample(place, "set/test/2.png", "palette.png");
	copy_sample(place, "set/test/1.png", "rgb.png");
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.classes, 2);
	assert_true(test.unlabelled && !test.labels);
	assert_int_equal(test.count, 2);
	assert_memory_equal(test.bytes, "\xff\0\0\0\xff\0\0\0\xff\x0a\x14\x1e", 12);
	close_both();
	params.no_test_targets = false;
	assert_int_not_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_contains(err.text, "set/test: has no files LABEL/*.png");

	params.no_test_targets = params.no_train = true;
	snprintf(path, sizeof(path), "%s/set/test", place->folder);
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 0);
	assert_int_equal(test.count, 2);
	assert_true(test.unlabelled);
	close_both();
	/* By class: what is evaluated. */
	params.no_test_targets = false;
	snprintf(path, sizeof(path), "%s/set/train", place->folder);
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 0);
	assert_int_equal(test.labels[1], 1);
	close_both();
}

/* What @feed gives of its @steps, one after the other. */
static float *take(const struct dataset *set, unsigned threads, int64_t steps, enum status *status)
{
	const struct dataset_feed_params params = {.set = set,
						   .batch = 2,
						   .replicas = 1,
						   .shuffle = -1,
						   .seed = 7,
						   .steps = steps,
						   .depth = (int)threads,
						   .threads = threads};
	struct dataset_feed *feed;
	float *inputs = mem_calloc((size_t)steps * 24, sizeof(*inputs));
	struct targets targets;

	assert_non_null(inputs);
	assert_int_equal(dataset_feed_new(&feed, &params, &err), ST_OK);
	for (int64_t step = 0; step < steps; step++) {
		assert_int_equal(dataset_feed_inputs(feed, 0, step, inputs + step * 24), 2);
		dataset_feed_targets(feed, 0, step, &targets);
		assert_false(dataset_feed_lags(feed, 0, step) && !set->decoder);
	}
	*status = dataset_feed_failure(feed, &err);
	dataset_feed_free(feed);
	return inputs;
}

/* Change the file's last byte. */
static void spoil_end(const struct sample_place *place, const char *name)
{
	char path[2 * SUPPORT_PATH_SIZE];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", place->folder, name);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, -1, SEEK_END), 0);
	assert_int_equal(fputc('!', file), '!');
	fclose(file);
}

/* More than may be kept is decoded as it is needed: the same batches, on any number of threads. */
static void test_what_is_not_kept_is_decoded_in_time(void **state)
{
	static const char *const names[] = {"rgb.png", "palette.png", "gray16.png", "colour.jpg",
					    "gray.jpg"};
	struct sample_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 8], name[64];
	struct dataset_params params = {.name = "images",
					.path = path,
					.resize = {2, 2},
					.threads = 2,
					.validation_split = 0.2};
	enum status status;
	uint64_t digest;
	float *kept;

	snprintf(path, sizeof(path), "%s/set", place->folder);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "set/%c/%d%s", 'a' + i % 2, i,
			 strrchr(names[i / 2], '.'));
		copy_sample(place, name, names[i / 2]);
	}
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_non_null(train.bytes);
	kept = take(&train, 1, 9, &status);
	digest = dataset_digest(&train);
	close_both();
	/* 10 images of 12 bytes. */
	params.cache_bytes = 120;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_null(train.decoder);
	close_both();
	params.cache_bytes = 119;
	for (unsigned threads = 1; threads <= 4; threads++) {
		float *inputs;

		assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
		assert_true(train.decoder && test.decoder && !train.bytes);
		assert_true(dataset_digest(&train) == digest);
		assert_int_equal(test.count, 2);
		inputs = take(&train, threads, 9, &status);
		assert_int_equal(status, ST_OK);
		assert_memory_equal(inputs, kept, 9 * 24 * sizeof(*inputs));
		mem_free(inputs);
		close_both();
	}
	mem_free(kept);

	/* Another image of the same size is seen where the set is to be identified. */
	params.identify = true;
	for (int i = 0; i < 3; i++) {
		params.cache_bytes = i == 0 ? 120 : 119;
		if (i == 2)
			spoil_end(place, "set/b/9.jpg");
		assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
		assert_true(i > 0 || dataset_digest(&train) != digest);
		if (i == 0)
			digest = dataset_digest(&train) + dataset_digest(&test);
		else
			assert_true((dataset_digest(&train) + dataset_digest(&test) == digest) ==
				    (i == 1));
		close_both();
	}
	params.identify = false;

	/* What is wrong with a file turns up when it is decoded. */
	copy_sample(place, "set/a/2.png", "cut.png");
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	kept = take(&train, 3, 4, &status);
	assert_int_not_equal(status, ST_OK);
	assert_contains(err.text, "set/a/2.png: is a damaged PNG: the file ends early");
	mem_free(kept);
	close_both();
}

/* 5,000 images of 201 MB each: no machine's memory is asked for them. */
static void test_more_than_the_machine_has_is_not_asked_for(void **state)
{
	struct sample_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 8], first[SUPPORT_PATH_SIZE + 32];
	struct dataset_params params = {
		.name = "images", .path = path, .resize = {8192, 8192}, .cache_bytes = INT64_MAX};

	snprintf(path, sizeof(path), "%s/set", place->folder);
	snprintf(first, sizeof(first), "%s/a/0.png", path);
	copy_sample(place, "set/a/0.png", "cut.png");
	for (int i = 1; i < 5000; i++) {
		char name[SUPPORT_PATH_SIZE + 32];

		snprintf(name, sizeof(name), "%s/a/%d.png", path, i);
		assert_int_equal(link(first, name), 0);
	}
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_LIMIT);
	assert_contains(err.text, "data.cache_bytes: 5000 images of 8192 x 8192 pixels take ");
	assert_contains(err.text, " of memory and this machine has ");
	assert_null(train.memory);
}

/* Who only plans waits for no decoding: the damaged file is not read. */
static void test_shapes_without_decoding(void **state)
{
	struct sample_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 8];
	struct dataset_params params = {
		.name = "images", .path = path, .resize = {4, 6}, .images = {.gray = true}};

	snprintf(path, sizeof(path), "%s/set", place->folder);
	copy_sample(place, "set/a/1.png", "cut.png");
	copy_sample(place, "set/b/1.png", "rgb.png");
	assert_int_equal(dataset_describe(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 2);
	assert_int_equal(train.classes, 2);
	assert_int_equal(train.shape[1], 6);
	assert_int_equal(train.shape[2], 1);
	close_both();
	assert_int_not_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	params.path = NULL;
	assert_int_not_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_contains(err.text, "which images? Give a folder");
}
#else
/* A build without the libraries says so. */
static void test_without_libraries(void **state)
{
	struct image image;

	(void)state;
	assert_int_equal(decode(&image, "rgb.png", false), ST_UNSUPPORTED);
	assert_contains(err.text, "rgb.png: needs libpng and libjpeg");
}
#endif

int main(void)
{
#ifdef IPUSCOPE_IMAGES
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_png),
		cmocka_unit_test(test_jpeg_to_the_byte),
		cmocka_unit_test(test_what_is_wrong_is_named),
		cmocka_unit_test_setup_teardown(test_folders_are_classes, sample_place_set_up,
						sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_images_are_scaled, sample_place_set_up,
						sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_folders_are_named, sample_place_set_up,
						sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_images_to_predict_need_no_class,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_kept_is_decoded_in_time,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_more_than_the_machine_has_is_not_asked_for,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_shapes_without_decoding, sample_place_set_up,
						sample_place_tear_down),
	};
#else
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_libraries)};
#endif

	return cmocka_run_group_tests(tests, NULL, NULL);
}
