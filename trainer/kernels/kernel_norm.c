/*
 * Normalization by channel and by row, as loops that the compiler vectorizes. See the header for
 * the arithmetic.
 *
 * By channel: if there are few channels, `tiles` rows are processed side by side as one wide row.
 * Many channels are summed in strips, whose sums stay in the L1 cache. By row: a row's sums are
 * LANES partial sums, added in a fixed order: the same bytes with every clone of the loops.
 */
#include "trainer/kernels/kernel_norm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_watch.h"

#define NORM_WIDE 512 /* maximum columns of a wide row or of a strip */

/* The number of copies of the channels in a wide row. */
static inline int64_t norm_tiles(int64_t channels)
{
	return channels < NORM_WIDE ? NORM_WIDE / channels : 1;
}

static inline void norm_tile(float *values, int64_t channels, int64_t tiles)
{
	for (int64_t t = 1; t < tiles; t++)
		memcpy(values + t * channels, values, (size_t)channels * sizeof(float));
}

/*
 * The gradient @dy that a ReLU passes for its input @y. The bounds express 0 < y < most: low is 0,
 * high the greatest float below most (or infinity, which passes). Without a ReLU the bounds are
 * infinities, which exclude nothing.
 */
KERNEL_INLINE float norm_gate(float y, float dy, float low, float high)
{
	return ((y <= low) | (y > high)) ? 0.0f : dy;
}

static inline void norm_bounds(const struct kernel_norm *norm, float *low, float *high)
{
	*low = norm->relu ? 0.0f : -INFINITY;
	*high = norm->relu && !isinf(norm->most) ? nextafterf(norm->most, -INFINITY) : INFINITY;
}

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

/* ---- the passes that write each element ------------------------------------------------------ */

/* Wide rows, and the coefficients of each of their columns: the caller's own arrays if one copy of
 * the channels is wide enough. */
struct norm_wide {
	int64_t rows, columns, rest; /* rest: columns of an incomplete last row */
	const float *mean, *scale, *offset, *constant, *slope;
	float low, high, most;
	float tiled[5][NORM_WIDE];
};

static const float *norm_repeat(float *tiled, const float *values, int64_t channels, int64_t tiles)
{
	if (!values || tiles == 1)
		return values;
	memcpy(tiled, values, (size_t)channels * sizeof(float));
	norm_tile(tiled, channels, tiles);
	return tiled;
}

static void norm_wide_init(struct norm_wide *w, const struct kernel_norm *norm,
			   const float *constant, const float *slope, int64_t rows)
{
	int64_t tiles = norm_tiles(norm->channels);

	w->rows = rows / tiles;
	w->columns = tiles * norm->channels;
	w->rest = rows % tiles * norm->channels;
	w->most = norm->most;
	norm_bounds(norm, &w->low, &w->high);
	w->mean = norm_repeat(w->tiled[0], norm->mean, norm->channels, tiles);
	w->scale = norm_repeat(w->tiled[1], norm->scale, norm->channels, tiles);
	w->offset = norm_repeat(w->tiled[2], norm->offset, norm->channels, tiles);
	w->constant = norm_repeat(w->tiled[3], constant, norm->channels, tiles);
	w->slope = norm_repeat(w->tiled[4], slope, norm->channels, tiles);
}

/* What a variant of the normalizing pass computes: a compile-time constant in each variant. */
enum norm_apply_flags {
	APPLY_RELU = 1,
	APPLY_WATCHED = 2, /* return the greatest magnitude, else 0 */
	APPLY_PLUS = 4,
	APPLY_VARIANTS = 8
};

KERNEL_INLINE uint32_t norm_apply_row(const struct norm_wide *w, const float *x, const float *plus,
				      float *y, int64_t columns, int flags)
{
	const float *mean = w->mean, *scale = w->scale, *offset = w->offset;
	float most = w->most;
	uint32_t greatest = 0;

	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < columns; j++) {
		float sum = (x[j] - mean[j]) * scale[j] + offset[j];

		if (flags & APPLY_PLUS)
			sum = plus[j] + sum;
		if (flags & APPLY_RELU) {
			sum = sum < 0.0f ? 0.0f : sum;
			sum = sum > most ? most : sum;
		}
		y[j] = sum;
		if (flags & APPLY_WATCHED)
			greatest = kernel_greatest(greatest, sum);
	}
	return greatest;
}

KERNEL_INLINE uint32_t norm_apply_all(const struct norm_wide *w, const float *x, const float *plus,
				      float *y, int flags)
{
	const int64_t step = flags & APPLY_PLUS ? w->columns : 0;
	uint32_t greatest = 0, row;

	for (int64_t i = 0; i < w->rows; i++, x += w->columns, plus += step, y += w->columns) {
		row = norm_apply_row(w, x, plus, y, w->columns, flags);
		greatest = max(row, greatest);
	}
	row = norm_apply_row(w, x, plus, y, w->rest, flags);
	return max(row, greatest);
}

#define NORM_APPLY_VARIANT(flags)                                                                  \
	KERNEL_CLONES static uint32_t norm_apply_##flags(                                          \
		const struct norm_wide *w, const float *x, const float *plus, float *y)            \
	{                                                                                          \
		return norm_apply_all(w, x, plus, y, flags);                                       \
	}

NORM_APPLY_VARIANT(0)
NORM_APPLY_VARIANT(1)
NORM_APPLY_VARIANT(2)
NORM_APPLY_VARIANT(3)
NORM_APPLY_VARIANT(4)
NORM_APPLY_VARIANT(5)
NORM_APPLY_VARIANT(6)
NORM_APPLY_VARIANT(7)

typedef uint32_t (*norm_apply_variant)(const struct norm_wide *w, const float *x, const float *plus,
				       float *y);

static const norm_apply_variant norm_apply_variants[] = {
	norm_apply_0, norm_apply_1, norm_apply_2, norm_apply_3,
	norm_apply_4, norm_apply_5, norm_apply_6, norm_apply_7,
};
_Static_assert(ARRAY_LEN(norm_apply_variants) == APPLY_VARIANTS, "apply table out of step");

uint32_t kernel_norm_apply(const struct kernel_norm *norm, const float *x, const float *plus,
			   float *y, int64_t rows, bool watched)
{
	int flags = (norm->relu ? APPLY_RELU : 0) | (watched ? APPLY_WATCHED : 0) |
		    (plus ? APPLY_PLUS : 0);
	struct norm_wide w;

	norm_wide_init(&w, norm, NULL, NULL, rows);
	return norm_apply_variants[flags](&w, x, plus ? plus : x, y);
}

/* What a variant of the gradient computes: a compile-time constant in each variant. */
enum norm_grad_flags {
	NORM_RELU = 1,
	NORM_MOMENTS = 2, /* the moments are the batch's, so they have a gradient too */
	NORM_ADD = 4,
	NORM_VARIANTS = 8
};

KERNEL_INLINE void norm_grad_row(const struct norm_wide *w, const float *x, const float *dy,
				 float *dx, int64_t columns, int flags)
{
	const float *mean = w->mean, *scale = w->scale, *offset = w->offset;
	const float *constant = w->constant, *slope = w->slope;
	float low = w->low, high = w->high;

	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < columns; j++) {
		float g = dy[j], d;

		if (flags & (NORM_RELU | NORM_MOMENTS))
			d = x[j] - mean[j];
		if (flags & NORM_RELU)
			g = norm_gate(d * scale[j] + offset[j], g, low, high);
		if (flags & NORM_MOMENTS)
			g -= constant[j] + slope[j] * d;
		g *= scale[j];
		dx[j] = flags & NORM_ADD ? dx[j] + g : g;
	}
}

KERNEL_INLINE void norm_grad_all(const struct norm_wide *w, const float *x, const float *dy,
				 float *dx, int flags)
{
	for (int64_t i = 0; i < w->rows; i++) {
		norm_grad_row(w, x, dy, dx, w->columns, flags);
		x += w->columns;
		dy += w->columns;
		dx += w->columns;
	}
	norm_grad_row(w, x, dy, dx, w->rest, flags);
}

#define NORM_GRAD_VARIANT(flags)                                                                   \
	KERNEL_CLONES static void norm_grad_##flags(const struct norm_wide *w, const float *x,     \
						    const float *dy, float *dx)                    \
	{                                                                                          \
		norm_grad_all(w, x, dy, dx, flags);                                                \
	}

NORM_GRAD_VARIANT(0)
NORM_GRAD_VARIANT(1)
NORM_GRAD_VARIANT(2)
NORM_GRAD_VARIANT(3)
NORM_GRAD_VARIANT(4)
NORM_GRAD_VARIANT(5)
NORM_GRAD_VARIANT(6)
NORM_GRAD_VARIANT(7)

typedef void (*norm_grad_variant)(const struct norm_wide *w, const float *x, const float *dy,
				  float *dx);

static const norm_grad_variant norm_grad_variants[] = {
	norm_grad_0, norm_grad_1, norm_grad_2, norm_grad_3,
	norm_grad_4, norm_grad_5, norm_grad_6, norm_grad_7,
};
_Static_assert(ARRAY_LEN(norm_grad_variants) == NORM_VARIANTS, "gradient table out of step");

void kernel_norm_grad(const struct kernel_norm *norm, const float *constant, const float *slope,
		      const float *x, const float *dy, float *dx, int64_t rows, bool add)
{
	int flags =
		(norm->relu ? NORM_RELU : 0) | (slope ? NORM_MOMENTS : 0) | (add ? NORM_ADD : 0);
	struct norm_wide w;

	assert(!constant == !slope);
	norm_wide_init(&w, norm, constant, slope, rows);
	norm_grad_variants[flags](&w, x, dy, dx);
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define LANES 64 /* partial sums: several vectors, to hide the latency of additions */
#define FOLD  8

struct rows_sums {
	float a[LANES], b[LANES];
};

KERNEL_CLONES
static double rows_fold(const float *lanes)
{
	float part[FOLD] = {0};
	double sum = 0.0;

	for (int i = 0; i < LANES; i += FOLD)
		for (int j = 0; j < FOLD; j++)
			part[j] += lanes[i + j];
	for (int j = 0; j < FOLD; j++)
		sum += (double)part[j];
	return sum;
}

KERNEL_CLONES
static float rows_mean(const float *x, int64_t channels)
{
	float sums[LANES] = {0};
	int64_t j = 0;

	for (; j + LANES <= channels; j += LANES)
		for (int i = 0; i < LANES; i++)
			sums[i] += x[j + i];
	for (int i = 0; j + i < channels; i++)
		sums[i] += x[j + i];
	return (float)(rows_fold(sums) / (double)channels);
}

/* Sums of x - about and (x - about)^2. */
KERNEL_CLONES
static void rows_deviations(const float *x, int64_t channels, float about, struct rows_sums *out)
{
	struct rows_sums s = {{0}, {0}};
	int64_t j = 0;

	for (; j + LANES <= channels; j += LANES) {
		for (int i = 0; i < LANES; i++) {
			float d = x[j + i] - about;

			s.a[i] += d;
			s.b[i] += d * d;
		}
	}
	for (int i = 0; j + i < channels; i++) {
		float d = x[j + i] - about;

		s.a[i] += d;
		s.b[i] += d * d;
	}
	*out = s;
}

/* @gamma and @beta may be NULL; y = (x - mean) inverse gamma + beta. */
KERNEL_CLONES
static void rows_apply(const float *restrict x, float *restrict y, int64_t channels, float mean,
		       float inverse, const float *restrict gamma, const float *restrict beta)
{
	for (int64_t j = 0; j < channels; j++)
		y[j] = (x[j] - mean) * inverse;
	for (int64_t j = 0; gamma && j < channels; j++)
		y[j] *= gamma[j];
	for (int64_t j = 0; beta && j < channels; j++)
		y[j] += beta[j];
}

void kernel_norm_rows(const float *x, float *y, int64_t rows, int64_t channels, float epsilon,
		      const float *gamma, const float *beta, float *mean, float *inverse)
{
	for (int64_t i = 0; i < rows; i++, x += channels, y += channels) {
		float about = rows_mean(x, channels);
		struct rows_sums s;
		double off, variance;

		/* The second pass measures the mean's rounding error and removes it. */
		rows_deviations(x, channels, about, &s);
		off = rows_fold(s.a) / (double)channels;
		variance = rows_fold(s.b) / (double)channels - off * off;
		variance = variance < 0.0 ? 0.0 : variance;
		mean[i] = (float)((double)about + off);
		inverse[i] = (float)(1.0 / sqrt(variance + (double)epsilon));
		rows_apply(x, y, channels, mean[i], inverse[i], gamma, beta);
	}
}

/* ---- the gradient ---------------------------------------------------------------------------- */

struct rows_row {
	const float *x, *dy, *gamma;
	float mean, inverse;
};

KERNEL_INLINE float rows_scaled(const struct rows_row *r, int64_t j)
{
	return r->gamma ? r->dy[j] * r->gamma[j] : r->dy[j];
}

KERNEL_INLINE void rows_grad_lanes(const struct rows_row *r, int64_t from, int lanes,
				   struct rows_sums *s)
{
	KERNEL_INDEPENDENT
	for (int i = 0; i < lanes; i++) {
		float h = rows_scaled(r, from + i);

		s->a[i] += h;
		s->b[i] += h * ((r->x[from + i] - r->mean) * r->inverse);
	}
}

/* Sums of h = dy gamma and of h (x - mean) inverse. */
KERNEL_CLONES
static void rows_grad_sums(const struct rows_row *r, int64_t channels, struct rows_sums *out)
{
	struct rows_sums s = {{0}, {0}};
	int64_t j = 0;

	for (; j + LANES <= channels; j += LANES)
		rows_grad_lanes(r, j, LANES, &s);
	rows_grad_lanes(r, j, (int)(channels - j), &s);
	*out = s;
}

KERNEL_CLONES
static void rows_grad_row(const struct rows_row *r, float *dx, int64_t channels, float constant,
			  float slope, bool add)
{
	const float *x = r->x, *dy = r->dy, *gamma = r->gamma;
	float mean = r->mean, inverse = r->inverse;

	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < channels; j++) {
		float h = gamma ? dy[j] * gamma[j] : dy[j];
		float g = inverse * (h - constant - slope * ((x[j] - mean) * inverse));

		dx[j] = add ? dx[j] + g : g;
	}
}

KERNEL_CLONES
static void rows_grad_params(const struct rows_row *r, int64_t channels,
			     double *restrict gamma_sums, double *restrict beta_sums)
{
	for (int64_t j = 0; gamma_sums && j < channels; j++)
		gamma_sums[j] += (double)(r->dy[j] * ((r->x[j] - r->mean) * r->inverse));
	for (int64_t j = 0; beta_sums && j < channels; j++)
		beta_sums[j] += (double)r->dy[j];
}

void kernel_norm_rows_grad(const float *x, const float *dy, float *dx, int64_t rows,
			   int64_t channels, const float *gamma, const float *mean,
			   const float *inverse, bool add, double *gamma_sums, double *beta_sums)
{
	for (int64_t j = 0; gamma_sums && j < channels; j++)
		gamma_sums[j] = 0.0;
	for (int64_t j = 0; beta_sums && j < channels; j++)
		beta_sums[j] = 0.0;

	for (int64_t i = 0; i < rows; i++) {
		struct rows_row row = {x + i * channels, dy + i * channels, gamma, mean[i],
				       inverse[i]};
		struct rows_sums s;

		rows_grad_params(&row, channels, gamma_sums, beta_sums);
		if (!dx)
			continue;
		rows_grad_sums(&row, channels, &s);
		rows_grad_row(&row, dx + i * channels, channels,
			      (float)(rows_fold(s.a) / (double)channels),
			      (float)(rows_fold(s.b) / (double)channels), add);
	}
}
