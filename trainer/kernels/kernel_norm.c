/*
 * Normalization by channel: the sums, as loops that the compiler vectorizes over channels. See the
 * header for the arithmetic.
 *
 * If there are few channels, several rows are processed side by side as one wide row. Many channels
 * are summed in strips, whose sums stay in the L1 cache.
 */
#include "trainer/kernels/kernel_norm.h"

#include <assert.h>
#include <string.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_norm_internal.h"

#define NORM_RUN    64    /* rows summed in float; a multiple of NORM_ROWS */
#define NORM_ROWS   4     /* rows per loop iteration */
#define NORM_FIRST  256   /* K is the mean of the first 1/256 of the rows, */
#define NORM_FEWEST 8     /* but of at least this many, if they exist */
#define NORM_GRAIN  32768 /* minimum floats that are worth a slice */

/* ---- slices ---------------------------------------------------------------------------------- */

static int64_t norm_min_rows(int64_t channels)
{
	return max(NORM_GRAIN / channels, 1);
}

struct kernel_norm_cut kernel_norm_cut(int64_t rows, int64_t channels)
{
	struct kernel_norm_cut cut = {.rows = rows};
	int64_t even = (rows + KERNEL_NORM_SLICES - 1) / KERNEL_NORM_SLICES;

	cut.step = max(norm_min_rows(channels), even);
	cut.slices = (unsigned)((rows + cut.step - 1) / cut.step);
	return cut;
}

unsigned kernel_norm_max_slices(int64_t rows, int64_t channels)
{
	int64_t slices = (rows - 1) / norm_min_rows(channels) + 1;

	return (unsigned)min(slices, KERNEL_NORM_SLICES);
}

int64_t kernel_norm_slice_rows(const struct kernel_norm_cut *cut, unsigned slice)
{
	int64_t left = cut->rows - slice * cut->step;

	return min(left, cut->step);
}

/* ---- sums by channel ------------------------------------------------------------------------- */

/* The columns that are summed together: `tiles` copies of the channels, or a strip of them. */
struct norm_strip {
	const float *x, *dy;
	int64_t stride; /* floats from row to row */
	int64_t columns;
	float low, high; /* bounds of a ReLU: see norm_gate() */
	float shift[NORM_WIDE], scale[NORM_WIDE], offset[NORM_WIDE];
	float a[NORM_WIDE], b[NORM_WIDE]; /* sums of a run */
	double sum_a[NORM_WIDE], sum_b[NORM_WIDE];
};

/* Add @rows rows of the strip, from float @at on, to a and b. */
typedef void (*norm_rows)(struct norm_strip *strip, int64_t at, int64_t rows, int64_t columns);

KERNEL_INLINE void norm_moment_rows_of(struct norm_strip *s, const float *x, int64_t columns,
				       int rows)
{
	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < columns; j++) {
		float sum = 0.0f, squares = 0.0f;

		for (int i = 0; i < rows; i++) {
			float d = x[i * s->stride + j] - s->shift[j];

			sum += d;
			squares += d * d;
		}
		s->a[j] += sum;
		s->b[j] += squares;
	}
}

KERNEL_CLONES
static void norm_moment_rows(struct norm_strip *s, int64_t at, int64_t rows, int64_t columns)
{
	const float *x = s->x + at;

	for (; rows >= NORM_ROWS; rows -= NORM_ROWS, x += NORM_ROWS * s->stride)
		norm_moment_rows_of(s, x, columns, NORM_ROWS);
	for (; rows > 0; rows--, x += s->stride)
		norm_moment_rows_of(s, x, columns, 1);
}

KERNEL_INLINE void norm_grad_rows_of(struct norm_strip *s, const float *x, const float *dy,
				     int64_t columns, int rows, bool relu)
{
	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < columns; j++) {
		float sum = 0.0f, products = 0.0f;

		for (int i = 0; i < rows; i++) {
			float d = x[i * s->stride + j] - s->shift[j];
			float g = dy[i * s->stride + j];

			if (relu)
				g = norm_gate(d * s->scale[j] + s->offset[j], g, s->low, s->high);
			sum += g;
			products += g * d;
		}
		s->a[j] += sum;
		s->b[j] += products;
	}
}

KERNEL_INLINE void norm_grad_rows_any(struct norm_strip *s, int64_t at, int64_t rows,
				      int64_t columns, bool relu)
{
	const float *x = s->x + at, *dy = s->dy + at;

	for (; rows >= NORM_ROWS; rows -= NORM_ROWS) {
		norm_grad_rows_of(s, x, dy, columns, NORM_ROWS, relu);
		x += NORM_ROWS * s->stride;
		dy += NORM_ROWS * s->stride;
	}
	for (; rows > 0; rows--, x += s->stride, dy += s->stride)
		norm_grad_rows_of(s, x, dy, columns, 1, relu);
}

KERNEL_CLONES
static void norm_grad_rows(struct norm_strip *s, int64_t at, int64_t rows, int64_t columns)
{
	norm_grad_rows_any(s, at, rows, columns, false);
}

KERNEL_CLONES
static void norm_grad_rows_relu(struct norm_strip *s, int64_t at, int64_t rows, int64_t columns)
{
	norm_grad_rows_any(s, at, rows, columns, true);
}

KERNEL_CLONES
static void norm_flush(struct norm_strip *s, int64_t columns)
{
	for (int64_t j = 0; j < columns; j++) {
		s->sum_a[j] += (double)s->a[j];
		s->sum_b[j] += (double)s->b[j];
		s->a[j] = s->b[j] = 0.0f;
	}
}

/* Sum @count rows of @channels channels into the first @channels entries of sum_a and sum_b. */
static void norm_sum(struct norm_strip *s, norm_rows add, int64_t count, int64_t channels,
		     int64_t tiles)
{
	int64_t wide = count / tiles, rest = count % tiles * channels;
	int64_t columns = tiles * channels;

	memset(s->a, 0, sizeof(s->a));
	memset(s->b, 0, sizeof(s->b));
	memset(s->sum_a, 0, (size_t)columns * sizeof(double));
	memset(s->sum_b, 0, (size_t)columns * sizeof(double));
	for (int64_t row = 0; row < wide; row += NORM_RUN) {
		add(s, row * s->stride, min(wide - row, NORM_RUN), columns);
		norm_flush(s, columns);
	}
	if (rest) {
		add(s, wide * s->stride, 1, rest);
		norm_flush(s, rest);
	}
	for (int64_t j = channels; j < columns; j++) {
		s->sum_a[j % channels] += s->sum_a[j];
		s->sum_b[j % channels] += s->sum_b[j];
	}
}

/* Set @shift to the mean of the first rows. */
KERNEL_CLONES
static void norm_shift(float *restrict shift, const float *restrict x, int64_t stride, int64_t rows,
		       int64_t channels)
{
	int64_t first = (rows + NORM_FIRST - 1) / NORM_FIRST;

	rows = min(max(first, NORM_FEWEST), rows);
	memcpy(shift, x, (size_t)channels * sizeof(*shift));
	for (int64_t i = 1; i < rows; i++)
		for (int64_t j = 0; j < channels; j++)
			shift[j] += x[i * stride + j];
	for (int64_t j = 0; j < channels; j++)
		shift[j] /= (float)rows;
}

/* Derive the moments of x from the sums of x - shift and (x - shift)^2. */
KERNEL_CLONES
static void norm_finish(const struct norm_strip *restrict s, double rows, int64_t channels,
			double *restrict mean, double *restrict squares)
{
	for (int64_t j = 0; j < channels; j++) {
		double off = s->sum_a[j] / rows;
		double spread = s->sum_b[j] - s->sum_a[j] * off;

		mean[j] = (double)s->shift[j] + off;
		squares[j] = spread < 0.0 ? 0.0 : spread;
	}
}

static int64_t norm_strip_channels(int64_t channels, int64_t from)
{
	return min(channels - from, NORM_WIDE);
}

void kernel_norm_moments(const float *x, int64_t rows, int64_t channels, double *mean,
			 double *squares)
{
	int64_t tiles = norm_tiles(channels);
	struct norm_strip s;

	assert(rows > 0 && channels > 0);
	s.stride = tiles * channels;
	for (int64_t from = 0; from < channels; from += NORM_WIDE) {
		int64_t count = norm_strip_channels(channels, from);

		s.x = x + from;
		norm_shift(s.shift, s.x, channels, rows, count);
		norm_tile(s.shift, count, tiles);
		norm_sum(&s, norm_moment_rows, rows, count, tiles);
		norm_finish(&s, (double)rows, count, mean + from, squares + from);
	}
}

void kernel_norm_grad_sums(const struct kernel_norm *norm, const float *x, const float *dy,
			   int64_t rows, double *sums, double *products)
{
	int64_t channels = norm->channels, tiles = norm_tiles(channels);
	norm_rows add = norm->relu ? norm_grad_rows_relu : norm_grad_rows;
	struct norm_strip s;

	assert(rows > 0 && channels > 0);
	s.stride = tiles * channels;
	norm_bounds(norm, &s.low, &s.high);
	for (int64_t from = 0; from < channels; from += NORM_WIDE) {
		int64_t count = norm_strip_channels(channels, from);
		size_t bytes = (size_t)count * sizeof(float);

		s.x = x + from;
		s.dy = dy + from;
		memcpy(s.shift, norm->mean + from, bytes);
		memcpy(s.scale, norm->scale + from, bytes);
		memcpy(s.offset, norm->offset + from, bytes);
		norm_tile(s.shift, count, tiles);
		norm_tile(s.scale, count, tiles);
		norm_tile(s.offset, count, tiles);
		norm_sum(&s, add, rows, count, tiles);
		memcpy(sums + from, s.sum_a, (size_t)count * sizeof(double));
		memcpy(products + from, s.sum_b, (size_t)count * sizeof(double));
	}
}

/* ---- merging --------------------------------------------------------------------------------- */

void kernel_norm_merge_sums(unsigned slices, int64_t channels, double *sums)
{
	for (unsigned i = 1; i < slices; i++) {
		const double *more = sums + i * channels;

		KERNEL_INDEPENDENT
		for (int64_t j = 0; j < channels; j++)
			sums[j] += more[j];
	}
}

/* Compute the offset of the mean of all rows from the first slice's mean: differences stay small
 * even if the mean is large. */
KERNEL_CLONES
static void norm_mean_offset(const struct kernel_norm_cut *cut, int64_t stride, int64_t columns,
			     const double *restrict mean, double *restrict offset)
{
	memset(offset, 0, (size_t)columns * sizeof(*offset));
	for (unsigned i = 1; i < cut->slices; i++) {
		double weight = (double)kernel_norm_slice_rows(cut, i) / (double)cut->rows;

		for (int64_t j = 0; j < columns; j++)
			offset[j] += (mean[i * stride + j] - mean[j]) * weight;
	}
}

KERNEL_CLONES
static void norm_merge_strip(const struct kernel_norm_cut *cut, int64_t stride, int64_t columns,
			     double *restrict mean, double *restrict squares,
			     const double *restrict offset)
{
	double first = (double)kernel_norm_slice_rows(cut, 0);

	for (int64_t j = 0; j < columns; j++)
		squares[j] += first * (offset[j] * offset[j]);
	for (unsigned i = 1; i < cut->slices; i++) {
		double rows = (double)kernel_norm_slice_rows(cut, i);

		for (int64_t j = 0; j < columns; j++) {
			double d = mean[i * stride + j] - mean[j] - offset[j];

			squares[j] += squares[i * stride + j] + rows * (d * d);
		}
	}
	for (int64_t j = 0; j < columns; j++)
		mean[j] += offset[j];
}

void kernel_norm_merge_moments(const struct kernel_norm_cut *cut, int64_t channels, double *mean,
			       double *squares)
{
	double offset[NORM_WIDE];

	if (cut->slices < 2)
		return;
	for (int64_t from = 0; from < channels; from += NORM_WIDE) {
		int64_t count = norm_strip_channels(channels, from);

		norm_mean_offset(cut, channels, count, mean + from, offset);
		norm_merge_strip(cut, channels, count, mean + from, squares + from, offset);
	}
}
