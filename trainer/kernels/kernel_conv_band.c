/*
 * The location of a convolution's pixels: in place, or in a copy that includes the border's zeros.
 *
 * A copy holds some output rows at a time, so that it stays in the cache. No state.
 */
#include <string.h>

#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

/* Distance in floats at which pixels map to the same set of an L1 cache of 48 KiB and 12 ways, or
 * of 32 KiB and 8. */
#define BAND_SET 1024

void conv__flatten(struct conv_view *v, int64_t columns)
{
	int64_t pixels = v->images * v->rows * v->columns;

	if (v->taps_y != 1 || v->taps_x != 1 || v->step_y != 1 || v->step_x != 1 || v->origin_y ||
	    v->origin_x || v->out_rows != v->rows || v->out_columns != v->columns || !pixels)
		return;
	v->images = 1;
	v->columns = v->out_columns = min(columns, pixels);
	v->rows = v->out_rows = conv__ceil(pixels, v->columns);
	v->last_columns = pixels - (v->rows - 1) * v->columns;
}

static bool band_has_borders(const struct conv_view *v)
{
	return v->origin_y < 0 || v->origin_x < 0 ||
	       v->origin_y + (v->out_rows - 1) * v->step_y + (v->taps_y - 1) * v->dilation_y >=
		       v->rows ||
	       v->origin_x + (v->out_columns - 1) * v->step_x + (v->taps_x - 1) * v->dilation_x >=
		       v->columns;
}

static bool band_is_copied(const struct conv_view *v)
{
	if (!v->depth)
		return false;
	return band_has_borders(v) || (v->spread && v->step_x * v->pitch % BAND_SET == 0);
}

/* ---- pixels far apart ------------------------------------------------------------------------ */

#define DENSE_PIXELS 2048 /* above that, each slice copies its own */
#define DENSE_GAP    16   /* floats */
#define DENSE_SLICES 16

static bool band_is_sparse(const struct conv_view *v)
{
	return v->depth && v->taps_y == 1 && v->taps_x == 1 &&
	       v->step_x * v->pitch % BAND_SET == 0 && !band_has_borders(v);
}

int64_t conv__dense_floats(const struct conv_view *v)
{
	int64_t pixels = v->images * v->out_rows * v->out_columns;

	return band_is_sparse(v) ? min(pixels, DENSE_PIXELS) * (v->pitch + DENSE_GAP) : 0;
}

struct band_dense {
	const struct conv_view *view;
	float *memory;
};

static void band_dense_slice(void *context, unsigned slice)
{
	const struct band_dense *d = context;
	const struct conv_view *v = d->view;
	int64_t lines = v->images * v->out_rows, width = v->pitch + DENSE_GAP;
	int64_t end = conv__piece(lines, DENSE_SLICES, slice + 1);

	for (int64_t line = conv__piece(lines, DENSE_SLICES, slice); line < end; line++) {
		int64_t row =
			line / v->out_rows * v->rows + v->origin_y + line % v->out_rows * v->step_y;
		const float *from = v->source + (row * v->columns + v->origin_x) * v->pitch;
		int64_t columns = line == lines - 1 ? v->last_columns : v->out_columns;

		for (int64_t i = 0; i < columns; i++)
			memcpy(d->memory + (line * v->out_columns + i) * width,
			       from + i * v->step_x * v->pitch, (size_t)v->pitch * sizeof(float));
	}
}

void conv__dense(struct conv_view *v, struct pool *pool, float *memory)
{
	struct band_dense dense = {v, memory};

	if (!band_is_sparse(v) || v->images * v->out_rows * v->out_columns > DENSE_PIXELS)
		return;
	pool_share(pool, kernel_work_floats(2 * conv__dense_floats(v)), band_dense_slice, &dense,
		   DENSE_SLICES);
	v->source = memory;
	v->pitch += DENSE_GAP;
	v->rows = v->out_rows;
	v->columns = v->out_columns;
	v->step_y = v->step_x = 1;
	v->origin_y = v->origin_x = 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Layout of a copy. With a single tap, only the pixels that it reads are copied. */
struct band_copy {
	int64_t step_y, step_x; /* in the source, between copied pixels */
	int64_t columns, pitch;
};

static struct band_copy band_copy(const struct conv_view *v)
{
	struct band_copy copy = {
		.step_y = v->taps_y == 1 ? v->step_y : 1,
		.step_x = v->taps_x == 1 ? v->step_x : 1,
		.columns = v->out_columns,
		.pitch = v->depth,
	};
	int64_t step = v->taps_x == 1 ? 1 : v->step_x;

	if (v->taps_x > 1)
		copy.columns = (v->out_columns - 1) * step + (v->taps_x - 1) * v->dilation_x + 1;
	if (v->spread && step * copy.pitch % BAND_SET == 0)
		copy.pitch += 16;
	return copy;
}

/* Rows of a copy for @lines output rows of one image. */
static int64_t band_rows(const struct conv_view *v, int64_t lines)
{
	return v->taps_y == 1 ? lines
			      : (lines - 1) * v->step_y + (v->taps_y - 1) * v->dilation_y + 1;
}

int64_t conv__band_floats(const struct conv_view *v, int64_t lines)
{
	struct band_copy copy = band_copy(v);
	int64_t images = min(v->images, (lines + v->out_rows - 2) / v->out_rows + 1);
	int64_t rows;

	if (!band_is_copied(v))
		return 0;
	lines = min(lines, v->images * v->out_rows);
	/* Each image that the rows touch adds its own halo. */
	rows = v->taps_y == 1 ? lines
			      : lines * v->step_y + images * ((v->taps_y - 1) * v->dilation_y + 1);
	return conv__whole_lines(rows * copy.columns * copy.pitch);
}

static void band_copy_row(const struct conv_view *v, const struct band_copy *copy, int64_t image,
			  int64_t row, float *out)
{
	size_t each = (size_t)v->depth * sizeof(float);
	int64_t width = v->columns, begin = 0, end;
	const float *from;

	if (row < 0 || row >= v->rows) {
		memset(out, 0, (size_t)(copy->columns * copy->pitch) * sizeof(float));
		return;
	}
	if (image == v->images - 1 && row == v->rows - 1 && v->last_columns < v->out_columns)
		width = v->last_columns;
	if (v->origin_x < 0)
		begin = min(conv__ceil(-v->origin_x, copy->step_x), copy->columns);
	end = v->origin_x < width ? conv__ceil(width - v->origin_x, copy->step_x) : begin;
	end = max(begin, min(end, copy->columns));

	memset(out, 0, (size_t)(begin * copy->pitch) * sizeof(float));
	memset(out + end * copy->pitch, 0,
	       (size_t)((copy->columns - end) * copy->pitch) * sizeof(float));
	if (begin == end)
		return;
	from = v->source +
	       ((image * v->rows + row) * v->columns + v->origin_x + begin * copy->step_x) *
		       v->pitch;
	out += begin * copy->pitch;
	if (copy->step_x * v->pitch == copy->pitch && copy->pitch == v->depth) {
		memcpy(out, from, (size_t)(end - begin) * each);
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		memcpy(out, from, each);
		out += copy->pitch;
		from += copy->step_x * v->pitch;
	}
}

static void band_fill(const struct conv_view *v, const struct band_copy *copy, int64_t line,
		      int64_t lines, float *out)
{
	while (lines > 0) {
		int64_t image = line / v->out_rows, first = line % v->out_rows;
		int64_t here = min(lines, v->out_rows - first);
		int64_t row = v->origin_y + first * v->step_y;

		for (int64_t i = 0; i < band_rows(v, here); i++) {
			band_copy_row(v, copy, image, row + i * copy->step_y, out);
			out += copy->columns * copy->pitch;
		}
		line += here;
		lines -= here;
	}
}

/* Merge taps that are adjacent in memory into one run. */
static void band_runs(const struct conv_view *v, struct conv_band *band)
{
	band->runs_y = v->taps_y;
	band->runs_x = v->taps_x;
	band->length = v->depth;
	if (band->runs_x == 1 || band->tap_x == band->length) {
		band->length *= band->runs_x;
		band->runs_x = 1;
	}
	if (band->runs_x == 1 && band->tap_y == band->length) {
		band->length *= band->runs_y;
		band->runs_y = 1;
	}
}

static struct conv_band band_in_place(const struct conv_view *v, int64_t line)
{
	struct conv_band band = {
		.first_image = line / v->out_rows,
		.first_row = line % v->out_rows,
		.base = v->source,
		.line = v->step_y * v->columns * v->pitch,
		.pixel = v->step_x * v->pitch,
		.image = v->rows * v->columns * v->pitch,
		.tap_y = v->dilation_y * v->columns * v->pitch,
		.tap_x = v->dilation_x * v->pitch,
	};
	int64_t row = v->origin_y + band.first_row * v->step_y;

	band.next = band.image - band.first_row * band.line;
	/* Without depth nothing is read, and the source may be NULL. */
	if (v->depth)
		band.base +=
			((band.first_image * v->rows + row) * v->columns + v->origin_x) * v->pitch;
	return band;
}

static struct conv_band band_copied(const struct conv_view *v, int64_t line, int64_t lines,
				    float *memory)
{
	struct band_copy copy = band_copy(v);
	int64_t width = copy.columns * copy.pitch;
	struct conv_band band = {
		.first_image = line / v->out_rows,
		.first_row = line % v->out_rows,
		.base = memory,
		.line = (v->taps_y == 1 ? 1 : v->step_y) * width,
		.pixel = (v->taps_x == 1 ? 1 : v->step_x) * copy.pitch,
		.image = band_rows(v, v->out_rows) * width,
		.tap_y = v->dilation_y * width,
		.tap_x = v->dilation_x * copy.pitch,
	};

	band.next = band_rows(v, min(lines, v->out_rows - band.first_row)) * width;
	return band;
}

struct conv_band conv__band_shape(const struct conv_view *view, int64_t line, int64_t lines,
				  float *memory)
{
	struct conv_band band = band_is_copied(view) ? band_copied(view, line, lines, memory)
						     : band_in_place(view, line);

	band_runs(view, &band);
	return band;
}

struct conv_band conv__band(const struct conv_view *view, int64_t line, int64_t lines,
			    float *memory)
{
	struct band_copy copy = band_copy(view);

	if (band_is_copied(view))
		band_fill(view, &copy, line, lines, memory);
	return conv__band_shape(view, line, lines, memory);
}

/* ---- copies shared by all slices ------------------------------------------------------------- */

#define SHARED_FLOATS (1 << 19) /* above that, each slice copies its own */
#define SHARED_SLICES 16

int64_t conv__shared_floats(const struct conv_view *v)
{
	return min(conv__band_floats(v, v->images * v->out_rows), SHARED_FLOATS);
}

struct band_shared {
	const struct conv_view *view;
	float *memory;
};

static void band_shared_slice(void *context, unsigned slice)
{
	const struct band_shared *s = context;
	const struct conv_view *v = s->view;
	struct band_copy copy = band_copy(v);
	int64_t rows = band_rows(v, v->out_rows), width = copy.columns * copy.pitch;
	int64_t end = conv__piece(v->images * rows, SHARED_SLICES, slice + 1);

	for (int64_t row = conv__piece(v->images * rows, SHARED_SLICES, slice); row < end; row++)
		band_copy_row(v, &copy, row / rows, v->origin_y + row % rows * copy.step_y,
			      s->memory + row * width);
}

bool conv__shared(const struct conv_view *v, struct pool *pool, float *memory,
		  struct conv_band *band)
{
	struct band_shared shared = {v, memory};
	int64_t lines = v->images * v->out_rows, floats = conv__band_floats(v, lines);

	if (!floats || floats > SHARED_FLOATS)
		return false;
	pool_share(pool, kernel_work_floats(2 * floats), band_shared_slice, &shared, SHARED_SLICES);
	*band = conv__band_shape(v, 0, lines, memory);
	return true;
}

const float *conv__band_line(const struct conv_view *view, const struct conv_band *band,
			     int64_t line)
{
	int64_t image = line / view->out_rows - band->first_image, row = line % view->out_rows;

	if (!image)
		return band->base + (row - band->first_row) * band->line;
	return band->base + band->next + (image - 1) * band->image + row * band->line;
}
