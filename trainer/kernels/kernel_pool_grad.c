/*
 * Gradients of pooling: each pixel of the input gathers from the windows that contain it.
 */
#include <string.h>

#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_pool.h"
#include "trainer/kernels/kernel_pool_internal.h"

/* ---- one pixel ------------------------------------------------------------------------------- */

/* dx = (with @add: +=) the sum of the shares. */
typedef void (*pool_gather)(const struct pool_share *shares, int count, float *dx, int64_t channels,
			    bool add);

static void pool_gather_wide(const struct pool_share *shares, int count, float *dx,
			     int64_t channels, bool add)
{
	if (!add)
		memset(dx, 0, (size_t)channels * sizeof(*dx));
	for (int i = 0; i < count; i++)
		for (int64_t c = 0; c < channels; c++)
			if (shares[i].wide[c] == shares[i].cell)
				dx[c] += shares[i].dy[c];
}

KERNEL_CLONES
static void pool_gather_average(const struct pool_share *shares, int count, float *dx,
				int64_t channels, bool add)
{
	for (int i = 0; i < count; i++) {
		const float *dy = shares[i].dy;
		float factor = shares[i].factor;

		KERNEL_INDEPENDENT
		for (int64_t c = 0; c < channels; c++)
			dx[c] = add || i ? dx[c] + dy[c] * factor : dy[c] * factor;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The windows [from, to) along one axis that contain a cell. */
struct pool_cover {
	int64_t from, to;
};

/* Advance @cover to cell @at, counted from the first window's first cell; @at must not decrease. */
static void pool_advance(struct pool_cover *cover, int64_t at, int64_t pool, int64_t stride,
			 int64_t windows)
{
	while (cover->to < windows && cover->to * stride <= at)
		cover->to++;
	while (cover->from < cover->to && cover->from * stride + pool <= at)
		cover->from++;
}

static int64_t pool_inside(int64_t first, int64_t pool, int64_t length)
{
	int64_t from = first < 0 ? 0 : first;
	int64_t to = first + pool < length ? first + pool : length;

	return to - from;
}

struct pool_grad {
	const struct kernel_pool *pool;
	pool_gather gather;
	const float *dy;
	const void *argmax; /* NULL: average pooling */
	bool wide, add;
};

static struct pool_share pool_share_of(const struct pool_grad *b, int64_t image, int64_t row,
				       int64_t column, int64_t i, int64_t j)
{
	const struct kernel_pool *p = b->pool;
	int64_t at = ((image * p->out_height + i) * p->out_width + j) * p->channels;
	int64_t top = i * p->stride_height - p->top, left = j * p->stride_width - p->left;
	struct pool_share share = {.dy = b->dy + at};

	if (!b->argmax) {
		share.factor = 1.0f / (float)(pool_inside(top, p->pool_height, p->height) *
					      pool_inside(left, p->pool_width, p->width));
		return share;
	}
	share.cell = (uint32_t)((row - top) * p->pool_width + column - left);
	if (b->wide)
		share.wide = (const uint32_t *)b->argmax + at;
	else
		share.argmax = (const uint8_t *)b->argmax + at;
	return share;
}

static void pool_grad_pixel(const struct pool_grad *b, int64_t image, int64_t row, int64_t column,
			    struct pool_cover rows, struct pool_cover columns, float *dx)
{
	struct pool_share shares[POOL_SHARES];
	int64_t channels = b->pool->channels;
	bool add = b->add;
	int count = 0;

	for (int64_t i = rows.from; i < rows.to; i++) {
		for (int64_t j = columns.from; j < columns.to; j++) {
			if (count == POOL_SHARES) {
				b->gather(shares, count, dx, channels, add);
				add = true;
				count = 0;
			}
			shares[count++] = pool_share_of(b, image, row, column, i, j);
		}
	}
	if (count)
		b->gather(shares, count, dx, channels, add);
	else if (!add)
		memset(dx, 0, (size_t)channels * sizeof(*dx));
}

static void pool_grad_row(const struct pool_grad *b, int64_t image, int64_t row,
			  struct pool_cover rows, float *dx)
{
	const struct kernel_pool *p = b->pool;
	struct pool_cover columns = {0, 0};

	for (int64_t column = 0; column < p->width; column++) {
		pool_advance(&columns, column + p->left, p->pool_width, p->stride_width,
			     p->out_width);
		pool_grad_pixel(b, image, row, column, rows, columns, dx + column * p->channels);
	}
}

/* Whether windows neither overlap, leave gaps nor get cut: each is read once for the whole row. */
static bool pool_is_tiled(const struct pool_grad *b)
{
	const struct kernel_pool *p = b->pool;

	return b->argmax && !b->wide && !b->add && !p->top && !p->left &&
	       p->stride_height == p->pool_height && p->stride_width == p->pool_width &&
	       p->out_height * p->pool_height <= p->height &&
	       p->out_width * p->pool_width <= p->width;
}

static void pool_grad_tiles(const struct pool_grad *b, int64_t image, int64_t row, float *dx)
{
	const struct kernel_pool *p = b->pool;
	int64_t i = row / p->pool_height, used = p->out_width * p->pool_width * p->channels;
	int64_t at = (image * p->out_height + i) * p->out_width * p->channels;

	if (i >= p->out_height)
		used = 0;
	else
		pool__body()->spread(b->dy + at, (const uint8_t *)b->argmax + at, dx, p->out_width,
				     p->pool_width, p->channels,
				     (uint32_t)(row % p->pool_height * p->pool_width));
	memset(dx + used, 0, (size_t)(p->width * p->channels - used) * sizeof(*dx));
}

static void pool_grad_rows(const struct pool_grad *b, float *dx, int64_t first, int64_t count)
{
	const struct kernel_pool *p = b->pool;
	bool tiled = pool_is_tiled(b);

	for (int64_t r = first; r < first + count; r++) {
		int64_t image = r / p->height, row = r % p->height;
		float *line = dx + r * p->width * p->channels;
		struct pool_cover rows = {0, 0};

		if (tiled) {
			pool_grad_tiles(b, image, row, line);
			continue;
		}
		pool_advance(&rows, row + p->top, p->pool_height, p->stride_height, p->out_height);
		pool_grad_row(b, image, row, rows, line);
	}
}

void kernel_pool_max_grad(const struct kernel_pool *pool, const void *argmax, const float *dy,
			  float *dx, int64_t row, int64_t rows, bool add)
{
	bool wide = kernel_pool_argmax_size(pool) > 1;
	struct pool_grad grad = {.pool = pool,
				 .gather = wide ? pool_gather_wide : pool__body()->gather,
				 .dy = dy,
				 .argmax = argmax,
				 .wide = wide,
				 .add = add};

	pool_grad_rows(&grad, dx, row, rows);
}

void kernel_pool_average_grad(const struct kernel_pool *pool, const float *dy, float *dx,
			      int64_t row, int64_t rows, bool add)
{
	struct pool_grad grad = {.pool = pool, .gather = pool_gather_average, .dy = dy, .add = add};

	pool_grad_rows(&grad, dx, row, rows);
}
