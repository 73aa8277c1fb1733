/*
 * Bilinear resizing of images, as tf.image.resize(images, size): pixel centres at half-integers
 * (half_pixel_centers), no antialiasing, float32 throughout.
 *
 * Output pixel i of n from an axis of m pixels is at x = (i + 0.5) (m / n) - 0.5, between
 * max(floor x, 0) and min(ceil x, m - 1), and is a + (b - a) (x - floor x); first along rows, then
 * between two rows. Source: TensorFlow's resize_bilinear_op and image_resizer_state.h.
 *
 * An item's stored floats are counted here too: a set keeps its images unresized.
 *
 * Threading: a plan is read-only. An image is processed in strips of columns whose two current rows
 * are on the stack: each source row is interpolated to the new width once; the interpolation
 * between rows then runs over contiguous floats.
 */
#include "trainer/data/dataset_internal.h"

#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"

#define RESIZE_STRIP 768   /* floats of an output row in one strip */
#define RESIZE_MOST  65536 /* pixels of a side */

/* For each output of an axis: the two inputs it lies between, and its distance from the lower. */
struct resize_axis {
	int32_t *lower, *upper;
	float *lerp;
};

struct dataset_resize {
	int64_t in_height, in_width, channels, out_height, out_width;
	struct resize_axis rows;    /* by output row */
	struct resize_axis columns; /* by float of an output row, channels included */
};

/* ---- the plan -------------------------------------------------------------------------------- */

/* Plan each output pixel @channels times; indices count floats. */
static void resize_plan_axis(struct resize_axis *axis, int64_t in, int64_t out, int64_t channels)
{
	const float scale = (float)in / (float)out;

	for (int64_t i = 0; i < out; i++) {
		float at = ((float)i + 0.5f) * scale - 0.5f, below = floorf(at);
		int64_t lower = (int64_t)below, upper = (int64_t)ceilf(at);

		if (lower < 0)
			lower = 0;
		if (upper > in - 1)
			upper = in - 1;
		for (int64_t c = 0; c < channels; c++) {
			axis->lower[i * channels + c] = (int32_t)(lower * channels + c);
			axis->upper[i * channels + c] = (int32_t)(upper * channels + c);
			axis->lerp[i * channels + c] = at - below;
		}
	}
}

static bool resize_new_axis(struct resize_axis *axis, int64_t count)
{
	axis->lower = mem_calloc((size_t)count, sizeof(*axis->lower));
	axis->upper = mem_calloc((size_t)count, sizeof(*axis->upper));
	axis->lerp = mem_calloc((size_t)count, sizeof(*axis->lerp));
	return axis->lower && axis->upper && axis->lerp;
}

static void resize_free_axis(struct resize_axis *axis)
{
	mem_free(axis->lower);
	mem_free(axis->upper);
	mem_free(axis->lerp);
}

void dataset__resize_free(struct dataset_resize *resize)
{
	if (!resize)
		return;
	resize_free_axis(&resize->rows);
	resize_free_axis(&resize->columns);
	mem_free(resize);
}

enum status dataset__resize_set(struct dataset *set, int64_t height, int64_t width, struct err *err)
{
	struct dataset_resize *resize;

	if (set->ndim != 3)
		return err_set(err, ST_INVALID,
			       "data.resize: the items of %s have %d dimensions; images have 3 "
			       "(height, width, channels)",
			       set->source, set->ndim);
	if (height < 1 || width < 1 || height > RESIZE_MOST || width > RESIZE_MOST)
		return err_set(err, ST_INVALID,
			       "data.resize: %lld x %lld: sides are from 1 to %d pixels",
			       (long long)height, (long long)width, RESIZE_MOST);
	/* Both products fit 32 bits: sides are at most 2^16, an array at most
	 * DATASET_ARRAY_LIMIT bytes. */
	if (height * width > INT32_MAX / set->shape[2] || set->shape[1] * set->shape[2] > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "data.resize: images of %lld x %lld and %lld channels are too large",
			       (long long)height, (long long)width, (long long)set->shape[2]);
	if (set->shape[0] == height && set->shape[1] == width)
		return ST_OK;
	resize = mem_calloc(1, sizeof(*resize));
	if (!resize)
		return err_nomem(err);
	*resize = (struct dataset_resize){.in_height = set->shape[0],
					  .in_width = set->shape[1],
					  .channels = set->shape[2],
					  .out_height = height,
					  .out_width = width};
	if (!resize_new_axis(&resize->rows, height) ||
	    !resize_new_axis(&resize->columns, width * resize->channels)) {
		dataset__resize_free(resize);
		return err_nomem(err);
	}
	resize_plan_axis(&resize->rows, resize->in_height, height, 1);
	resize_plan_axis(&resize->columns, resize->in_width, width, resize->channels);
	set->shape[0] = height;
	set->shape[1] = width;
	set->resize = resize;
	return ST_OK;
}

/* ---- sizes of items, resized and stored ------------------------------------------------------ */

size_t dataset_item_floats(const struct dataset *dataset)
{
	size_t floats = 1;

	for (int i = 0; i < dataset->ndim; i++)
		floats *= (size_t)dataset->shape[i];
	return floats;
}

size_t dataset__stored_floats(const struct dataset *set)
{
	const struct dataset_resize *resize = set->resize;

	if (!resize)
		return dataset_item_floats(set);
	return (size_t)(resize->in_height * resize->in_width * resize->channels);
}

/* ---- resizing -------------------------------------------------------------------------------- */

static void resize_row_bytes(const struct resize_axis *columns, size_t first, size_t count,
			     const uint8_t *row, float *to)
{
	for (size_t j = 0; j < count; j++) {
		float low = (float)row[columns->lower[first + j]];
		float high = (float)row[columns->upper[first + j]];

		low = low * DATASET_BYTE_HIGH + low * DATASET_BYTE_LOW;
		high = high * DATASET_BYTE_HIGH + high * DATASET_BYTE_LOW;
		to[j] = low + (high - low) * columns->lerp[first + j];
	}
}

static void resize_row_floats(const struct resize_axis *columns, size_t first, size_t count,
			      const float *row, float *to)
{
	for (size_t j = 0; j < count; j++) {
		float low = row[columns->lower[first + j]];
		float high = row[columns->upper[first + j]];

		to[j] = low + (high - low) * columns->lerp[first + j];
	}
}

KERNEL_CLONES static void resize_between(const float *restrict top, const float *restrict bottom,
					 float lerp, size_t count, float *restrict to)
{
	for (size_t j = 0; j < count; j++)
		to[j] = top[j] + (bottom[j] - top[j]) * lerp;
}

/* Two source rows interpolated to the new width, and their indices. */
struct resize_strip {
	const struct dataset_resize *resize;
	const uint8_t *bytes; /* either this or `floats` is set */
	const float *floats;
	size_t first, count;
	int32_t row[2];
	float values[2][RESIZE_STRIP];
};

static const float *resize_row(struct resize_strip *strip, int32_t row)
{
	const struct dataset_resize *resize = strip->resize;
	size_t at = (size_t)row * (size_t)(resize->in_width * resize->channels);
	/* Adjacent rows differ in the last bit of their index, so they use different buffers. */
	float *to = strip->values[row & 1];

	if (strip->row[row & 1] == row)
		return to;
	strip->row[row & 1] = row;
	if (strip->bytes)
		resize_row_bytes(&resize->columns, strip->first, strip->count, strip->bytes + at,
				 to);
	else
		resize_row_floats(&resize->columns, strip->first, strip->count, strip->floats + at,
				  to);
	return to;
}

void dataset__resize(const struct dataset_resize *resize, const uint8_t *bytes, const float *floats,
		     float *to)
{
	const size_t width = (size_t)(resize->out_width * resize->channels);
	struct resize_strip strip = {.resize = resize, .bytes = bytes, .floats = floats};

	for (strip.first = 0; strip.first < width; strip.first += RESIZE_STRIP) {
		strip.count = min(width - strip.first, RESIZE_STRIP);
		strip.row[0] = strip.row[1] = -1;
		for (int64_t y = 0; y < resize->out_height; y++) {
			const float *top = resize_row(&strip, resize->rows.lower[y]);
			const float *bottom = resize_row(&strip, resize->rows.upper[y]);

			resize_between(top, bottom, resize->rows.lerp[y], strip.count,
				       to + (size_t)y * width + strip.first);
		}
	}
}
