/*
 * Resizing: against PyTorch's values (tests/golden/torch_resize.txt, made by
 * script/make-resize-golden.py), and to the bit against TensorFlow's formula written plainly.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"
#include "trainer/data/dataset_internal.h"

struct image {
	int64_t height, width, channels;
	size_t count;
	uint8_t *bytes;
	float *floats; /* bytes / 255 */
};

static void make(struct image *image, uint32_t *lcg, int64_t height, int64_t width,
		 int64_t channels)
{
	*image = (struct image){.height = height, .width = width, .channels = channels};
	image->count = (size_t)(height * width * channels);
	image->bytes = malloc(image->count);
	image->floats = malloc(image->count * sizeof(float));
	assert_true(image->bytes && image->floats);
	for (size_t i = 0; i < image->count; i++) {
		*lcg = 1664525u * *lcg + 1013904223u;
		image->bytes[i] = (uint8_t)(*lcg >> 24);
		image->floats[i] = (float)image->bytes[i] / 255.0f;
	}
}

static void drop(struct image *image)
{
	free(image->bytes);
	free(image->floats);
}

/* Through a data set of one item, of bytes or of floats; the caller frees. */
static float *resized(const struct image *image, bool bytes, int64_t height, int64_t width)
{
	struct dataset set = {.count = 1,
			      .ndim = 3,
			      .shape = {image->height, image->width, image->channels},
			      .bytes = bytes ? image->bytes : NULL,
			      .floats = bytes ? NULL : image->floats,
			      .source = "test"};
	const uint32_t item = 0;
	float *out;

	assert_int_equal(dataset__resize_set(&set, height, width, NULL), ST_OK);
	assert_int_equal(set.shape[0], height);
	assert_int_equal(set.shape[1], width);
	out = malloc(dataset_item_floats(&set) * sizeof(float));
	assert_non_null(out);
	dataset_gather_inputs(&set, &item, 1, out);
	dataset__resize_free((struct dataset_resize *)(uintptr_t)set.resize);
	return out;
}

static void test_values_are_pytorch_s(void **state)
{
	char path[SUPPORT_PATH_SIZE], line[256];
	uint32_t lcg = 7;
	int cases = 0, values = 0;
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/torch_resize.txt", support_source_dir());
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		long long h, w, c, to_h, to_w, every;
		struct image image;
		float *out;

		assert_int_equal(sscanf(line, "case %lld %lld %lld %lld %lld %lld", &h, &w, &c,
					&to_h, &to_w, &every),
				 6);
		make(&image, &lcg, h, w, c);
		out = resized(&image, true, to_h, to_w);
		for (long long i = 0; i < to_h * to_w * c; i += every, values++) {
			assert_non_null(fgets(line, sizeof(line), file));
			/* Where a pixel lies is rounded before the others' weights are. */
			assert_true(fabs(out[i] - strtod(line, NULL)) < 4e-6);
		}
		cases++;
		free(out);
		drop(&image);
	}
	fclose(file);
	assert_true(cases >= 7 && values > 400);
}

struct between {
	int64_t lower, upper;
	float lerp;
};

static struct between between(int64_t i, int64_t in, int64_t out)
{
	float scale = (float)in / (float)out, at = ((float)i + 0.5f) * scale - 0.5f;
	struct between b = {(int64_t)floorf(at), (int64_t)ceilf(at), at - floorf(at)};

	b.lower = b.lower < 0 ? 0 : b.lower;
	b.upper = b.upper > in - 1 ? in - 1 : b.upper;
	return b;
}

static float plain(const struct image *image, int64_t height, int64_t width, int64_t y, int64_t x,
		   int64_t c)
{
	const struct between row = between(y, image->height, height);
	const struct between column = between(x, image->width, width);
	const float *top = image->floats + row.lower * image->width * image->channels + c;
	const float *bottom = image->floats + row.upper * image->width * image->channels + c;
	const int64_t left = column.lower * image->channels, right = column.upper * image->channels;
	float above = top[left] + (top[right] - top[left]) * column.lerp;
	float below = bottom[left] + (bottom[right] - bottom[left]) * column.lerp;

	return above + (below - above) * row.lerp;
}

static void test_bytes_and_floats_are_tensorflow_s_formula_to_the_bit(void **state)
{
	static const int64_t cases[][5] = {
		{3, 4, 1, 9, 5},   {9, 5, 3, 3, 4},   {1, 7, 2, 6, 1},   {32, 32, 3, 224, 224},
		{5, 6, 4, 5, 400}, {300, 2, 1, 7, 3}, {2, 900, 1, 3, 2},
	};
	uint32_t lcg = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const int64_t *row = cases[i];
		struct image image;
		float *from_bytes, *from_floats;

		make(&image, &lcg, row[0], row[1], row[2]);
		from_bytes = resized(&image, true, row[3], row[4]);
		from_floats = resized(&image, false, row[3], row[4]);
		for (int64_t at = 0; at < row[3] * row[4] * row[2]; at++) {
			float expected = plain(&image, row[3], row[4], at / row[2] / row[4],
					       at / row[2] % row[4], at % row[2]);

			assert_memory_equal(&from_bytes[at], &expected, sizeof(expected));
			assert_memory_equal(&from_floats[at], &expected, sizeof(expected));
		}
		free(from_bytes);
		free(from_floats);
		drop(&image);
	}
}

static void test_the_same_size_is_no_resizing(void **state)
{
	struct dataset set = {.ndim = 3, .shape = {4, 6, 1}, .source = "test"};

	(void)state;
	assert_int_equal(dataset__resize_set(&set, 4, 6, NULL), ST_OK);
	assert_null(set.resize);
}

static void test_what_cannot_be_resized_is_refused(void **state)
{
	static const struct {
		int ndim;
		int64_t channels, height, width;
		const char *part;
	} cases[] = {
		{1, 0, 2, 2, "the items of test have 1 dimensions; images have 3"},
		{4, 3, 2, 2, "have 4 dimensions"},
		{3, 3, 0, 2, "0 x 2: sides are from 1 to 65536 pixels"},
		{3, 3, 2, 65537, "2 x 65537"},
		{3, 3, 65536, 65536, "65536 x 65536 and 3 channels are too large"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct dataset set = {.ndim = cases[i].ndim,
				      .shape = {4, 4, cases[i].channels, 1},
				      .source = "test"};
		struct err err = {0};

		assert_int_not_equal(
			dataset__resize_set(&set, cases[i].height, cases[i].width, &err), ST_OK);
		assert_contains(err.text, "data.resize: ");
		assert_contains(err.text, cases[i].part);
		assert_null(set.resize);
	}
}

static void test_no_memory_is_undone(void **state)
{
	(void)state;
	for (long n = 0;; n++) {
		struct dataset set = {.ndim = 3, .shape = {4, 6, 1}, .source = "test"};
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = dataset__resize_set(&set, 8, 8, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			dataset__resize_free((struct dataset_resize *)(uintptr_t)set.resize);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
		assert_null(set.resize);
		assert_int_equal(set.shape[0], 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_pytorch_s),
		cmocka_unit_test(test_bytes_and_floats_are_tensorflow_s_formula_to_the_bit),
		cmocka_unit_test(test_the_same_size_is_no_resizing),
		cmocka_unit_test(test_what_cannot_be_resized_is_refused),
		cmocka_unit_test(test_no_memory_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
