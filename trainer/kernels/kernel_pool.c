/*
 * Pooling over windows: loops over channels that the compiler vectorizes.
 *
 * Windows of 2x2 and 3x3 cells that lie inside the image are computed from all cells at once.
 * Others are accumulated cell by cell in their output, which stays in the L1 cache.
 */
#include "trainer/kernels/kernel_pool.h"

#include <string.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_pool_internal.h"

#define POOL_BYTE 256 /* cells that a byte can index */

static bool pool_is_wide(const struct kernel_pool *pool)
{
	return pool->pool_height * pool->pool_width > POOL_BYTE;
}

size_t kernel_pool_argmax_size(const struct kernel_pool *pool)
{
	return pool_is_wide(pool) ? sizeof(uint32_t) : sizeof(uint8_t);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* A window's cells inside the image: [from, to) per axis; cell 0 is at pixel (row, column). */
struct pool_window {
	int64_t row, column;
	int64_t row_from, row_to, column_from, column_to;
};

static void pool_window_rows(const struct kernel_pool *p, int64_t out_row, struct pool_window *w)
{
	w->row = out_row * p->stride_height - p->top;
	w->row_from = max(0, -w->row);
	w->row_to = min(p->pool_height, p->height - w->row);
}

static void pool_window_columns(const struct kernel_pool *p, int64_t out_column,
				struct pool_window *w)
{
	w->column = out_column * p->stride_width - p->left;
	w->column_from = max(0, -w->column);
	w->column_to = min(p->pool_width, p->width - w->column);
}

/* For an output row whose windows contain all rows of the pool: the columns [*from, *to) whose
 * windows are complete. */
static void pool_complete_columns(const struct kernel_pool *p, int64_t *from, int64_t *to)
{
	*from = min(p->out_width, (p->left + p->stride_width - 1) / p->stride_width);
	*to = (p->width + p->left - p->pool_width) / p->stride_width + 1;
	if (p->width + p->left < p->pool_width || *to < *from)
		*to = *from;
	*to = min(*to, p->out_width);
}

/*
 * Set the offsets of a complete window's cells from its first; return their number, 0 if no kernel
 * exists for the pool size.
 */
static int pool_offsets(const struct kernel_pool *p, int64_t offsets[9])
{
	int cells = 0;

	if (p->pool_height != p->pool_width || p->pool_width < 2 || p->pool_width > 3)
		return 0;
	for (int64_t i = 0; i < p->pool_height; i++)
		for (int64_t j = 0; j < p->pool_width; j++)
			offsets[cells++] = (i * p->width + j) * p->channels;
	return cells;
}

/* ---- maximum --------------------------------------------------------------------------------- */

/* Whether x replaces the maximum so far. A NaN does, and is not replaced itself. */
KERNEL_INLINE bool pool_replaces(float x, float maximum)
{
	return !(x <= maximum) & (maximum == maximum);
}

/* Accumulate cell @at in y; the first cell of a window is stored. */
KERNEL_CLONES
static void pool_max_cell(const float *x, float *y, uint8_t *argmax, int64_t channels, uint8_t at,
			  bool first)
{
	KERNEL_INDEPENDENT
	for (int64_t c = 0; c < channels; c++) {
		bool replaces = first | pool_replaces(x[c], y[c]);

		y[c] = replaces ? x[c] : y[c];
		if (argmax)
			argmax[c] = replaces ? at : argmax[c];
	}
}

static void pool_max_cell_wide(const float *x, float *y, uint32_t *argmax, int64_t channels,
			       uint32_t at, bool first)
{
	for (int64_t c = 0; c < channels; c++) {
		if (!first && !pool_replaces(x[c], y[c]))
			continue;
		y[c] = x[c];
		argmax[c] = at;
	}
}

static void pool_max_window(const struct kernel_pool *p, const struct pool_window *w,
			    const float *x, float *y, void *argmax)
{
	bool first = true;

	for (int64_t i = w->row_from; i < w->row_to; i++) {
		for (int64_t j = w->column_from; j < w->column_to; j++) {
			int64_t pixel = (w->row + i) * p->width + w->column + j;
			const float *cell = x + pixel * p->channels;
			int64_t at = i * p->pool_width + j;

			if (argmax && pool_is_wide(p))
				pool_max_cell_wide(cell, y, argmax, p->channels, (uint32_t)at,
						   first);
			else
				pool_max_cell(cell, y, argmax, p->channels, (uint8_t)at, first);
			first = false;
		}
	}
}

/* ---- mean ------------------------------------------------------------------------------------ */

KERNEL_INLINE void pool_average_run_of(const struct pool_run *r, int cells)
{
	for (int64_t i = 0; i < r->count; i++) {
		const float *x = r->x + i * r->step;
		float *y = r->y + i * r->channels;

		KERNEL_INDEPENDENT
		for (int64_t c = 0; c < r->channels; c++) {
			float sum = x[c];

			for (int k = 1; k < cells; k++)
				sum += x[r->offsets[k] + c];
			y[c] = sum / (float)cells;
		}
	}
}

KERNEL_CLONES
static void pool_average_run(const struct pool_run *run)
{
	if (run->cells == 4)
		pool_average_run_of(run, 4);
	else
		pool_average_run_of(run, 9);
}

KERNEL_CLONES
static void pool_add_cell(const float *restrict x, float *restrict y, int64_t channels)
{
	for (int64_t c = 0; c < channels; c++)
		y[c] += x[c];
}

KERNEL_CLONES
static void pool_divide(float *y, int64_t channels, float by)
{
	for (int64_t c = 0; c < channels; c++)
		y[c] /= by;
}

static void pool_average_window(const struct kernel_pool *p, const struct pool_window *w,
				const float *x, float *y, void *unused)
{
	int64_t cells = (w->row_to - w->row_from) * (w->column_to - w->column_from);

	(void)unused;
	memset(y, 0, (size_t)p->channels * sizeof(*y));
	for (int64_t i = w->row_from; i < w->row_to; i++)
		for (int64_t j = w->column_from; j < w->column_to; j++)
			pool_add_cell(x + ((w->row + i) * p->width + w->column + j) * p->channels,
				      y, p->channels);
	pool_divide(y, p->channels, (float)cells);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The functions of one kind of pooling: for a run of complete windows, and for any window. */
struct pool_kind {
	void (*run)(const struct pool_run *run); /* of 4 or 9 cells */
	void (*window)(const struct kernel_pool *pool, const struct pool_window *window,
		       const float *x, float *y, void *argmax);
};

static void pool_windows(const struct kernel_pool *p, const struct pool_kind *kind,
			 struct pool_window *w, const float *x, float *y, char *argmax,
			 int64_t from, int64_t to)
{
	size_t size = kernel_pool_argmax_size(p);

	for (int64_t j = from; j < to; j++) {
		pool_window_columns(p, j, w);
		kind->window(p, w, x, y + j * p->channels,
			     argmax ? argmax + (size_t)(j * p->channels) * size : NULL);
	}
}

static void pool_rows(const struct kernel_pool *p, const struct pool_kind *kind, const float *x,
		      float *y, char *argmax, int64_t row, int64_t rows)
{
	int64_t offsets[9], line = p->out_width * p->channels, from, to;
	size_t size = kernel_pool_argmax_size(p);
	const int cells = pool_offsets(p, offsets);

	pool_complete_columns(p, &from, &to);
	for (int64_t r = row; r < row + rows; r++) {
		const float *image = x + r / p->out_height * (p->height * p->width * p->channels);
		float *out = y + r * line;
		char *indexes = argmax ? argmax + (size_t)(r * line) * size : NULL;
		struct pool_window w;
		struct pool_run run;

		pool_window_rows(p, r % p->out_height, &w);
		if (!cells || w.row_to - w.row_from < p->pool_height || from == to) {
			pool_windows(p, kind, &w, image, out, indexes, 0, p->out_width);
			continue;
		}
		pool_windows(p, kind, &w, image, out, indexes, 0, from);
		run = (struct pool_run){
			.x = image +
			     (w.row * p->width + from * p->stride_width - p->left) * p->channels,
			.y = out + from * p->channels,
			.argmax = indexes ? (uint8_t *)indexes + from * p->channels : NULL,
			.count = to - from,
			.step = p->stride_width * p->channels,
			.channels = p->channels,
			.cells = cells,
			.offsets = offsets,
		};
		kind->run(&run);
		pool_windows(p, kind, &w, image, out, indexes, to, p->out_width);
	}
}

void kernel_pool_max(const struct kernel_pool *pool, const float *x, float *y, void *argmax,
		     int64_t row, int64_t rows)
{
	const struct pool_kind kind = {pool__body()->max, pool_max_window};

	pool_rows(pool, &kind, x, y, argmax, row, rows);
}

void kernel_pool_average(const struct kernel_pool *pool, const float *x, float *y, int64_t row,
			 int64_t rows)
{
	static const struct pool_kind kind = {pool_average_run, pool_average_window};

	pool_rows(pool, &kind, x, y, NULL, row, rows);
}
