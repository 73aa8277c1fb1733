/*
 * The gradient of a 3 x 3 kernel by Winograd's tiles: see kernel_conv_winograd.c.
 *
 * The pixels that a tile reads and the gradients of its 4 x 4 outputs are each transformed to 36
 * values, whose products are summed over all tiles and transformed to 3 x 3 weights. The gradient
 * of a small kernel is summed in parts, as in kernel_conv_sum.c: each slice handles some rows of
 * tiles and the whole kernel. For a large kernel each slice handles one panel of filters and a
 * range of the channels; the pixels, if they are few, are transformed once for all slices. If any
 * value cannot be transformed, everything is summed directly instead.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

#define SUM_PARTS    8         /* maximum slices of tiles */
#define SUM_PART     64        /* minimum tiles of a part */
#define SUM_SMALL    (1 << 16) /* maximum floats of a kernel that is summed in parts */
#define SUM_SLICES   8         /* target slices of a large kernel */
#define SUM_CHANNELS 128       /* maximum per slice: their sums stay in the L2 cache */
#define SUM_TILES    56        /* maximum per block */
#define SUM_BLOCK    (1 << 17) /* floats of a block's transformed pixels, about */
#define SUM_SHARED   (1 << 19) /* maximum floats of pixels transformed once for all slices */

struct winograd_sum {
	const struct kernel_conv *conv;
	const struct conv_body *body;
	struct conv_view view;
	struct winograd_tiles tiles;
	struct kernel_conv_relu relu;
	float most; /* upper bound of the ReLU */
	float *dy, *dkernel, *dbias;
	int64_t panels, part_count, channel_slices;
	int64_t kernel, part;                  /* floats: of the kernel, of a part */
	int64_t block;                         /* rows of tiles */
	int64_t pitch, position, dy_position;  /* of transformed pixels, and of the gradient's */
	int64_t pixels, gradients, sums, lane; /* floats */
	float *memory, *parts;
	float *shared; /* pixels transformed for all slices; NULL: each slice does its own */
	atomic_bool direct;
};

static struct winograd_sum winograd_sum(const struct kernel_conv *c)
{
	struct winograd_sum p = {
		.conv = c,
		.body = conv__body(),
		.view = conv__forward_view(c, NULL),
		.kernel = conv__kernel_floats(c),
		.part_count = 1,
	};
	int64_t tiles, channels, slice_panels = 1;

	p.tiles = conv__winograd_tiles(&p.view);
	p.panels = conv__ceil(c->filters, p.body->panel);
	p.channel_slices =
		min(conv__ceil(SUM_SLICES, p.panels), conv__ceil(c->channels, p.body->rows));
	p.channel_slices = max(p.channel_slices, conv__ceil(c->channels, SUM_CHANNELS));
	if (p.kernel <= SUM_SMALL) {
		int64_t min_rows = conv__ceil(SUM_PART, p.tiles.across);

		p.part_count = min(SUM_PARTS, conv__ceil(p.tiles.rows, min_rows));
		p.channel_slices = 1;
		slice_panels = p.panels;
	}
	p.part = conv__part_floats(c);

	channels = conv__ceil(c->channels, p.channel_slices);
	p.pitch = conv__winograd_pitch(channels);
	tiles = min(SUM_TILES, SUM_BLOCK / (WINOGRAD_POSITIONS * p.pitch));
	p.block = min(p.tiles.rows, max(1, tiles / p.tiles.across));
	p.position = conv__winograd_position(p.block * p.tiles.across * p.pitch);
	p.dy_position = conv__winograd_position(p.block * p.tiles.across * p.body->panel);
	p.pixels = WINOGRAD_POSITIONS * p.position;
	p.gradients = WINOGRAD_POSITIONS * p.dy_position;
	p.sums = WINOGRAD_POSITIONS * conv__winograd_position(channels * p.body->panel);
	p.lane = p.pixels + p.gradients + slice_panels * (p.sums + CONV_PANEL_MOST);
	return p;
}

/* Floats between two of the 36 values of all pixels, transformed once. */
static int64_t sum_shared_position(const struct winograd_sum *p)
{
	return conv__winograd_position(p->tiles.rows * p->tiles.across *
				       conv__winograd_pitch(p->conv->channels));
}

int64_t conv__winograd_sum_scratch(const struct kernel_conv *conv, unsigned lanes)
{
	struct winograd_sum p = winograd_sum(conv);

	/* Of a large kernel, the shared pixels of any smaller batch. */
	if (p.kernel > SUM_SMALL)
		return p.lane * lanes +
		       min(WINOGRAD_POSITIONS * sum_shared_position(&p), SUM_SHARED);
	return p.lane * lanes + (p.part_count > 1 ? p.part_count * p.part : 0);
}

struct winograd_sum_range {
	int64_t row, end, panel, panel_end, channel, channels;
	float *dkernel, *dbias;
};

/* Transform the gradients of @rows rows of tiles and one panel; false if they are out of range. */
static bool sum_transform_gradients(const struct winograd_sum *p, int64_t row, int64_t rows,
				    int64_t column, int64_t columns, float *sums, float *gradients)
{
	const struct kernel_conv *c = p->conv;
	struct conv_transform transform = {
		.row = c->out_width * c->filters,
		.pixel = c->filters,
		.channels = columns,
		.position = p->dy_position,
		.most = p->most,
		.keep = p->relu.keep,
		.sums = sums,
	};

	for (int64_t end = row + rows; row < end; row++) {
		int64_t y = row % p->tiles.down * WINOGRAD_SIDE;
		int64_t first = (row / p->tiles.down * c->out_height + y) * c->out_width;

		transform.end_y = (int)min(WINOGRAD_SIDE, c->out_height - y);
		if (!conv__winograd_in_range(
			    kernel_abs_max_rows(p->dy + first * c->filters + column, c->filters,
						transform.end_y * c->out_width, columns)))
			return false;
		for (int64_t x = 0; x < c->out_width; x += WINOGRAD_SIDE) {
			int64_t at = (first + x) * c->filters + column;

			transform.end_x = (int)min(WINOGRAD_SIDE, c->out_width - x);
			transform.y = p->relu.y ? p->relu.y + at : NULL;
			transform.v = gradients;
			p->body->transform_gradient(&transform, p->dy + at);
			gradients += p->body->panel;
		}
	}
	return true;
}

/* Add the products of @tiles tiles, for one panel, to @sums. */
static void sum_multiply(const struct winograd_sum *p, const struct winograd_sum_range *range,
			 const float *pixels, const float *gradients, int64_t tiles, bool wide,
			 bool add, float *sums)
{
	int64_t pieces = conv__ceil(range->channels, p->body->rows), panel = p->body->panel;
	int64_t position = conv__winograd_position(range->channels * panel);

	for (int64_t i = 0; i < WINOGRAD_POSITIONS; i++) {
		for (int64_t piece = 0; piece < pieces; piece++) {
			int64_t first = conv__piece(range->channels, pieces, piece);
			int64_t rows = conv__piece(range->channels, pieces, piece + 1) - first;
			struct conv_sum_tile tile = {
				.a = pixels + i * p->position + first,
				.images = 1,
				.lines = 1,
				.pixels = tiles,
				.a_pixel = p->pitch,
				.b = gradients + i * p->dy_position,
				.b_step = panel,
				.c = sums + i * position + first * panel,
				.c_row = panel,
				.columns = (int)(wide ? panel : p->body->lanes),
				.add = add,
			};

			p->body->sum[wide][rows - 1](&tile);
		}
	}
}

static void sum_range(struct winograd_sum *p, const struct winograd_sum_range *range, float *memory)
{
	const struct kernel_conv *c = p->conv;
	float *gradients = memory + p->pixels, *sums = gradients + p->gradients;
	float *biases = sums + (range->panel_end - range->panel) * p->sums;
	struct conv_view view = p->view;

	view.source += range->channel;
	view.depth = range->channels;
	memset(biases, 0,
	       (size_t)((range->panel_end - range->panel) * CONV_PANEL_MOST) * sizeof(float));
	for (int64_t row = range->row; row < range->end; row += p->block) {
		int64_t rows = min(p->block, range->end - row);
		const float *pixels = memory;

		if (p->shared)
			pixels = p->shared + row * p->tiles.across * p->pitch + range->channel;
		for (int64_t i = 0; !p->shared && i < rows; i++)
			if (!conv__winograd_transform(&view, row + i,
						      memory + i * p->tiles.across * p->pitch,
						      p->pitch, p->position))
				atomic_store_explicit(&p->direct, true, memory_order_relaxed);
		for (int64_t panel = range->panel; panel < range->panel_end; panel++) {
			int64_t column = panel * p->body->panel, at = panel - range->panel;
			int64_t columns = min(p->body->panel, c->filters - column);

			if (!sum_transform_gradients(p, row, rows, column, columns,
						     biases + at * CONV_PANEL_MOST, gradients))
				atomic_store_explicit(&p->direct, true, memory_order_relaxed);
			if (atomic_load_explicit(&p->direct, memory_order_relaxed))
				return;
			sum_multiply(p, range, pixels, gradients, rows * p->tiles.across,
				     columns > p->body->lanes, row > range->row,
				     sums + at * p->sums);
		}
	}
	for (int64_t panel = range->panel; panel < range->panel_end; panel++) {
		int64_t column = panel * p->body->panel, at = panel - range->panel;
		int64_t columns = min(p->body->panel, c->filters - column);

		p->body->inverse_kernel(sums + at * p->sums,
					conv__winograd_position(range->channels * p->body->panel),
					range->channels, (int)columns,
					range->dkernel + range->channel * c->filters + column,
					c->channels * c->filters, c->filters);
		if (range->dbias && !range->channel)
			memcpy(range->dbias + column, biases + at * CONV_PANEL_MOST,
			       (size_t)columns * sizeof(float));
	}
}

static void sum_part_slice(void *context, unsigned slice, unsigned lane)
{
	struct winograd_sum *p = context;
	struct winograd_sum_range range = {
		.row = conv__piece(p->tiles.rows, p->part_count, slice),
		.end = conv__piece(p->tiles.rows, p->part_count, slice + 1),
		.panel_end = p->panels,
		.channels = p->conv->channels,
		.dkernel = p->dkernel,
		.dbias = p->dbias,
	};

	if (p->part_count > 1) {
		range.dkernel = p->parts + slice * p->part;
		range.dbias = conv__part_bias(p->conv, range.dkernel);
	}
	sum_range(p, &range, p->memory + lane * p->lane);
}

static void sum_kernel_slice(void *context, unsigned slice, unsigned lane)
{
	struct winograd_sum *p = context;
	int64_t part = slice % p->channel_slices;
	struct winograd_sum_range range = {
		.end = p->tiles.rows,
		.panel = slice / p->channel_slices,
		.panel_end = slice / p->channel_slices + 1,
		.channel = conv__piece(p->conv->channels, p->channel_slices, part),
		.dkernel = p->dkernel,
		.dbias = p->dbias,
	};

	range.channels =
		conv__piece(p->conv->channels, p->channel_slices, part + 1) - range.channel;
	sum_range(p, &range, p->memory + lane * p->lane);
}

static void sum_shared_slice(void *context, unsigned row)
{
	struct winograd_sum *p = context;

	if (!conv__winograd_transform(&p->view, row, p->shared + row * p->tiles.across * p->pitch,
				      p->pitch, p->position))
		atomic_store_explicit(&p->direct, true, memory_order_relaxed);
}

/* Transform the pixels of all tiles, if they are few. */
static void sum_share(struct winograd_sum *p, struct pool *pool, float *memory)
{
	int64_t position = sum_shared_position(p);

	if (WINOGRAD_POSITIONS * position > SUM_SHARED)
		return;
	p->shared = memory;
	p->position = position;
	p->pitch = conv__winograd_pitch(p->conv->channels);
	pool_share(pool, kernel_work_floats(2 * WINOGRAD_POSITIONS * position), sum_shared_slice, p,
		   (unsigned)p->tiles.rows);
}

bool conv__winograd_sum(const struct kernel_conv *c, const struct kernel_room *room, const float *x,
			float *dy, const struct kernel_conv_relu *relu, float *dkernel,
			float *dbias)
{
	struct winograd_sum p = winograd_sum(c);
	uint64_t work = kernel_work_products(WINOGRAD_POSITIONS * p.tiles.rows * p.tiles.across *
					     c->channels * c->filters);

	p.relu = *relu;
	p.most = isinf(relu->most) ? NAN : relu->most; /* no value compares >= NaN */
	p.view.source = x;
	p.dy = dy;
	p.dkernel = dkernel;
	p.dbias = dbias;
	p.memory = room->scratch;
	p.parts = p.memory + p.lane * pool_lanes(room->pool);
	if (p.kernel <= SUM_SMALL) {
		pool_share_lanes(room->pool, work, sum_part_slice, &p, (unsigned)p.part_count);
	} else {
		/* Several slices read the same gradients: apply the ReLU's gradient before them. */
		if (relu->keep) {
			kernel_conv_grad_relu(
				relu, room->pool, dy,
				(size_t)(c->batch * c->out_height * c->out_width * c->filters));
			p.relu.y = NULL;
		}
		sum_share(&p, room->pool, p.parts);
		pool_share_lanes(room->pool, work, sum_kernel_slice, &p,
				 (unsigned)(p.panels * p.channel_slices));
	}
	if (atomic_load_explicit(&p.direct, memory_order_relaxed))
		return false;
	if (p.part_count > 1)
		conv__add_parts(c, room->pool, p.parts, p.part_count, dkernel, dbias);
	return true;
}
