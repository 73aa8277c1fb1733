/*
 * Convolutions of 3 x 3 taps with a quarter of the multiplications: Winograd's F(4x4, 3x3).
 *
 * The output is cut into tiles of 4 x 4 pixels. The 6 x 6 pixels that a tile reads and the
 * kernel's 3 x 3 weights are each transformed to 36 values. These are multiplied per channel and
 * summed over the channels; the inverse transform turns the 36 sums into 16 outputs. This takes 36
 * matrix products instead of 144 multiplications, computed by the tiles of kernel_conv_tile.h. The
 * rounding errors are twice those of direct sums (tests/trainer/test_kernel_conv.c), relative to
 * all that the tile reads.
 *
 * A NaN, an infinity, or a value so large that a sum might overflow would spoil all outputs of its
 * tile. A row of tiles that reads such a value is summed directly, and so is a panel of 32 filters
 * that has such a weight: each element then is exactly the direct sum.
 *
 * A slice is a range of tile rows by a range of filter panels. It transforms its pixels first,
 * then one panel of weights at a time, unless the weights are so few that they are transformed
 * once for all slices.
 */
#include <string.h>

#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

#define WINOGRAD_TILES    56  /* per slice, about: amortizes the transform of the weights */
#define WINOGRAD_SLICES   8   /* target minimum; below that, panels are split too */
#define WINOGRAD_BLOCK    28  /* tiles whose products are still in the L2 cache when transformed */
#define WINOGRAD_DEPTH    128 /* channels of a panel whose weights stay in the L2 cache */
#define WINOGRAD_KERNEL   (1 << 20) /* maximum floats of weights transformed once for all slices */
#define WINOGRAD_CHANNELS 16        /* minimum channels and filters: fewer do not pay off */
#define WINOGRAD_MOST     0x4e800000u /* 2^30 */

/* ---- tiles ----------------------------------------------------------------------------------- */

struct winograd_tiles conv__winograd_tiles(const struct conv_view *v)
{
	struct winograd_tiles tiles = {
		.across = conv__ceil(v->out_columns, WINOGRAD_SIDE),
		.down = conv__ceil(v->out_rows, WINOGRAD_SIDE),
	};

	tiles.rows = v->images * tiles.down;
	return tiles;
}

bool conv__winograd_applies(const struct conv_view *v, int64_t filters, int64_t groups)
{
	struct winograd_tiles tiles = conv__winograd_tiles(v);
	int64_t image = tiles.across * tiles.down;

	return groups == 1 && v->taps_y == 3 && v->taps_x == 3 && v->step_y == 1 &&
	       v->step_x == 1 && v->dilation_y == 1 && v->dilation_x == 1 &&
	       v->depth >= WINOGRAD_CHANNELS && filters >= WINOGRAD_CHANNELS && image >= 4 &&
	       2 * WINOGRAD_POSITIONS * image <= 9 * v->out_rows * v->out_columns;
}

int64_t conv__winograd_pitch(int64_t channels)
{
	int64_t pitch = conv__whole_lines(channels);

	return pitch % 64 ? pitch : pitch + 16;
}

bool conv__winograd_in_range(uint32_t abs_max)
{
	return abs_max < WINOGRAD_MOST;
}

/* The range of a tile's WINOGRAD_READ pixels from @from on that are in 0 .. @size - 1. */
static void winograd_clip(int64_t from, int64_t size, int *first, int *end)
{
	*first = (int)min(max(0, -from), WINOGRAD_READ);
	*end = (int)max(*first, min(size - from, WINOGRAD_READ));
}

bool conv__winograd_transform(const struct conv_view *view, int64_t row, float *v, int64_t pitch,
			      int64_t v_position)
{
	const struct winograd_tiles tiles = conv__winograd_tiles(view);
	const struct conv_body *body = conv__body();
	const int64_t line = view->columns * view->pitch;
	const int64_t y = view->origin_y + row % tiles.down * WINOGRAD_SIDE;
	struct conv_transform transform = {
		.row = line,
		.pixel = view->pitch,
		.channels = view->depth,
		.position = v_position,
	};
	const float *x;

	winograd_clip(y, view->rows, &transform.first_y, &transform.end_y);
	x = view->source + (row / tiles.down * view->rows + y + transform.first_y) * line;
	if (!conv__winograd_in_range(kernel_abs_max_rows(
		    x, view->pitch, (transform.end_y - transform.first_y) * view->columns,
		    view->depth)))
		return false;
	for (int64_t i = 0; i < tiles.across; i++) {
		int64_t column = view->origin_x + i * WINOGRAD_SIDE;

		winograd_clip(column, view->columns, &transform.first_x, &transform.end_x);
		transform.x = x + (column + transform.first_x) * view->pitch;
		transform.v = v + i * pitch;
		body->transform_input(&transform);
	}
	return true;
}

/* ---- slices ---------------------------------------------------------------------------------- */

struct winograd_plan {
	const struct conv_gather *gather;
	const struct conv_body *body;
	struct winograd_tiles tiles;
	int64_t slice_rows, row_slices;
	int64_t panels, slice_panels, panel_slices;
	int64_t depth;              /* channels whose weights are transformed together */
	int64_t block;              /* tiles that are multiplied together */
	int64_t pitch, position;    /* of transformed pixels */
	int64_t product;            /* floats between two of a tile's 36 products */
	int64_t packed, transform;  /* floats of a panel's weights: packed, and transformed */
	int64_t pixels, work, lane; /* floats of transformed pixels, of the rest, of a lane */
	float *memory;
	float *shared;  /* pixels transformed for all slices; NULL: each slice does its own */
	int64_t kernel; /* floats of all weights, transformed for all slices; 0: per slice */
	float *weights;
};

static struct winograd_plan winograd_plan(const struct conv_gather *g)
{
	struct winograd_plan p = {
		.gather = g,
		.body = conv__body(),
		.tiles = conv__winograd_tiles(&g->view),
		.pitch = conv__winograd_pitch(g->view.depth),
	};

	p.slice_rows = max(1, WINOGRAD_TILES / p.tiles.across);
	p.slice_rows = min(p.tiles.rows, p.slice_rows);
	p.row_slices = conv__ceil(p.tiles.rows, p.slice_rows);
	p.panels = conv__ceil(g->filters, p.body->panel);
	p.panel_slices = min(p.panels, conv__ceil(WINOGRAD_SLICES, p.row_slices));
	p.slice_panels = conv__ceil(p.panels, p.panel_slices);
	p.panel_slices = conv__ceil(p.panels, p.slice_panels);

	p.depth = min(g->view.depth, WINOGRAD_DEPTH);
	p.block = p.slice_rows * p.tiles.across;
	if (p.depth == g->view.depth)
		p.block = min(p.block, WINOGRAD_BLOCK);
	p.position = conv__winograd_position(p.slice_rows * p.tiles.across * p.pitch);
	p.pixels = WINOGRAD_POSITIONS * p.position + conv__whole_lines(p.slice_rows);
	p.packed = 9 * p.depth * p.body->panel;
	p.transform = WINOGRAD_POSITIONS * conv__winograd_position(p.depth * p.body->panel);
	p.product = conv__winograd_position(p.block * p.body->panel);
	p.work = max(p.packed + p.transform + WINOGRAD_POSITIONS * p.product + CONV_PANEL_MOST,
		     conv__gather_lines_scratch(g, p.slice_rows * WINOGRAD_SIDE));
	p.lane = p.pixels + p.work;
	if (p.row_slices > 1 && p.depth == g->view.depth &&
	    p.panels * p.transform <= WINOGRAD_KERNEL)
		p.kernel = p.panels * p.transform + conv__whole_lines(p.panels);
	return p;
}

int64_t conv__winograd_scratch(const struct conv_gather *gather, unsigned lanes)
{
	struct winograd_plan p = winograd_plan(gather);

	return p.pixels + p.kernel + p.lane * lanes;
}

/* The first output line of a row of tiles; for the row after the last, the end of the lines. */
static int64_t winograd_line(const struct winograd_plan *p, int64_t row)
{
	return row / p->tiles.down * p->gather->view.out_rows + row % p->tiles.down * WINOGRAD_SIDE;
}

static float *winograd_out(const struct winograd_plan *p, int64_t row)
{
	const struct conv_gather *g = p->gather;

	return g->out + row / p->tiles.down * g->out_image +
	       row % p->tiles.down * WINOGRAD_SIDE * g->out_row;
}

/* The flags behind the transformed pixels: for each row, whether it is summed directly. */
static float *winograd_direct_flags(const struct winograd_plan *p, float *pixels)
{
	return pixels + WINOGRAD_POSITIONS * p->position;
}

static void winograd_transform_row(const struct winograd_plan *p, int64_t first, int64_t row,
				   float *pixels)
{
	bool transform = conv__winograd_transform(
		&p->gather->view, row, pixels + (row - first) * p->tiles.across * p->pitch,
		p->pitch, p->position);

	winograd_direct_flags(p, pixels)[row - first] = transform ? 0.0f : 1.0f;
}

/* Whether the weights of the panel and its neighbours can be transformed. All bodies decide for as
 * many filters as the widest panel has, so that their results agree. */
static bool winograd_panel_in_range(const struct winograd_plan *p, int64_t panel)
{
	const struct conv_gather *g = p->gather;
	const struct conv_weights *w = &g->weights;
	int64_t first = panel * p->body->panel / CONV_PANEL_MOST * CONV_PANEL_MOST;
	int64_t columns = min(CONV_PANEL_MOST, g->filters - first);
	bool in_range = true;

	if (p->body->panel == CONV_PANEL_MOST)
		return true;
	for (int64_t tap = 0; in_range && tap < 9; tap++) {
		const float *from = w->w + tap * w->tap + first * (w->transpose ? w->ld : 1);

		in_range = conv__winograd_in_range(
			kernel_abs_max_rows(from, w->ld, w->transpose ? columns : g->view.depth,
					    w->transpose ? g->view.depth : columns));
	}
	return in_range;
}

struct winograd_range {
	int64_t row, end;
	int64_t column, columns; /* of the panel */
	const float *direct;
};

static void winograd_select_panel(const struct winograd_plan *p, int64_t panel,
				  struct winograd_range *range)
{
	range->column = panel * p->body->panel;
	range->columns = min(p->body->panel, p->gather->filters - range->column);
}

/* Transform channels @channel .. @end - 1 of a panel's weights; false if they are out of range. */
static bool winograd_transform_weights(const struct winograd_plan *p,
				       const struct winograd_range *range, int64_t channel,
				       int64_t end, float *packed, float *weights)
{
	struct conv_gather g = *p->gather;

	g.weights.w += channel * (g.weights.transpose ? 1 : g.weights.ld);
	g.view.depth = end - channel;
	conv__gather_pack(&g, 0, range->column, range->columns, packed);
	if (!conv__winograd_in_range(
		    kernel_abs_max(packed, (size_t)(9 * g.view.depth * p->body->panel))))
		return false;
	p->body->transform_kernel(packed, g.view.depth, weights,
				  conv__winograd_position(g.view.depth * p->body->panel));
	return true;
}

/* Compute the 36 products of @tiles tiles with @depth channels of one panel. */
static void winograd_multiply(const struct winograd_plan *p, const float *pixels,
			      const float *weights, int64_t depth, int64_t tiles, bool wide,
			      bool add, float *products)
{
	int64_t pieces = conv__ceil(tiles, p->body->rows);
	int64_t position = conv__winograd_position(depth * p->body->panel);

	for (int64_t i = 0; i < WINOGRAD_POSITIONS; i++) {
		for (int64_t piece = 0; piece < pieces; piece++) {
			int64_t first = conv__piece(tiles, pieces, piece);
			int64_t rows = conv__piece(tiles, pieces, piece + 1) - first;
			int64_t half = (rows + 1) / 2, panel = p->body->panel;
			const float *a = pixels + i * p->position + first * p->pitch;
			float *c = products + i * p->product + first * panel;
			struct conv_tile tile = {
				.a0 = a,
				.a1 = a + half * p->pitch,
				.pixel = p->pitch,
				.runs_y = 1,
				.runs_x = 1,
				.length = depth,
				.b = weights + i * position,
				.b_step = panel,
				.c0 = c,
				.c1 = c + half * panel,
				.c_pixel = panel,
				.columns = (int)(wide ? panel : p->body->lanes),
				.add = add,
			};

			p->body->tile[wide][rows - 1](&tile);
		}
	}
}

/* Transform the products of tiles @tile .. @tile + @tiles - 1 of the range into outputs. */
static void winograd_store_outputs(const struct winograd_plan *p,
				   const struct winograd_range *range, int64_t tile, int64_t tiles,
				   const float *products, const float *bias)
{
	const struct conv_gather *g = p->gather;
	const struct conv_view *v = &g->view;
	struct conv_inverse inverse = {
		.position = p->product,
		.row = g->out_row,
		.pixel = g->out_pixel,
		.columns = (int)range->columns,
		.add = g->add,
		.bias = bias,
		.relu = g->finish.relu,
		.most = g->finish.most,
	};

	for (int64_t i = 0; i < tiles; i++) {
		int64_t row = range->row + (tile + i) / p->tiles.across;
		int64_t x = (tile + i) % p->tiles.across * WINOGRAD_SIDE;
		int64_t y = row % p->tiles.down * WINOGRAD_SIDE;

		if (range->direct[row - range->row] != 0.0f)
			continue;
		inverse.m = products + i * p->body->panel;
		inverse.c = winograd_out(p, row) + x * g->out_pixel + range->column;
		inverse.rows = (int)min(WINOGRAD_SIDE, v->out_rows - y);
		inverse.pixels = (int)min(WINOGRAD_SIDE, v->out_columns - x);
		p->body->inverse(&inverse);
	}
}

/* Sum the rows that cannot be transformed directly, and report the others' outputs to the watch. */
static void winograd_finish(const struct winograd_plan *p, const struct winograd_range *range,
			    float *memory)
{
	const struct conv_gather *g = p->gather;
	int64_t panel = range->column / p->body->panel;

	for (int64_t row = range->row; row < range->end; row++) {
		int64_t line = winograd_line(p, row), end = winograd_line(p, row + 1);
		const float *out = winograd_out(p, row) + range->column;

		if (range->direct[row - range->row] != 0.0f) {
			conv__gather_lines(g, panel, 1, line, end, memory);
			continue;
		}
		for (; g->finish.watch && line < end; line++, out += g->out_row)
			kernel_watch_update(g->finish.watch,
					    kernel_abs_max_rows(out, g->out_pixel,
								g->view.out_columns,
								range->columns));
	}
}

/* Return false, with nothing stored, if the weights cannot be transformed. */
static bool winograd_panel(const struct winograd_plan *p, const struct winograd_range *range,
			   const float *pixels, float *memory)
{
	const struct conv_gather *g = p->gather;
	int64_t tiles = (range->end - range->row) * p->tiles.across;
	int64_t panel = range->column / p->body->panel;
	float *weights = memory + p->packed, *products = weights + p->transform;
	float *bias = products + WINOGRAD_POSITIONS * p->product;

	if (p->kernel)
		weights = p->weights + panel * p->transform;
	if (g->finish.bias) {
		memset(bias, 0, CONV_PANEL_MOST * sizeof(float));
		memcpy(bias, g->finish.bias + range->column,
		       (size_t)range->columns * sizeof(float));
	}
	for (int64_t tile = 0; tile < tiles; tile += p->block) {
		int64_t count = min(p->block, tiles - tile);

		/* Either all channels are transformed at once, or there is only one block. */
		for (int64_t k = 0; k < g->view.depth; k += p->depth) {
			int64_t end = min(k + p->depth, g->view.depth);

			if (!tile && !p->kernel &&
			    !winograd_transform_weights(p, range, k, end, memory, weights))
				return false;
			winograd_multiply(p, pixels + tile * p->pitch + k, weights, end - k, count,
					  range->columns > p->body->lanes, k > 0, products);
		}
		winograd_store_outputs(p, range, tile, count, products,
				       g->finish.bias ? bias : NULL);
	}
	winograd_finish(p, range, memory);
	return true;
}

static void winograd_slice(void *context, unsigned slice, unsigned lane)
{
	const struct winograd_plan *p = context;
	int64_t panel = slice / p->row_slices * p->slice_panels;
	int64_t last = min(panel + p->slice_panels, p->panels);
	float *memory = p->memory + lane * p->lane, *pixels = p->shared ? p->shared : memory;
	struct winograd_range range = {.row = slice % p->row_slices * p->slice_rows};
	bool in_range;

	range.end = min(range.row + p->slice_rows, p->tiles.rows);
	range.direct = winograd_direct_flags(p, pixels);
	for (int64_t row = range.row; !p->shared && row < range.end; row++)
		winograd_transform_row(p, range.row, row, pixels);
	for (; panel < last; panel++) {
		winograd_select_panel(p, panel, &range);
		in_range = p->kernel ? p->weights[p->panels * p->transform + panel] != 0.0f
				     : winograd_panel_in_range(p, panel);
		if (!in_range || !winograd_panel(p, &range, pixels, memory + p->pixels))
			conv__gather_lines(p->gather, panel, 1, winograd_line(p, range.row),
					   winograd_line(p, range.end), memory + p->pixels);
	}
}

static void winograd_shared_slice(void *context, unsigned row)
{
	const struct winograd_plan *p = context;

	winograd_transform_row(p, 0, row, p->shared);
}

static void winograd_kernel_slice(void *context, unsigned panel, unsigned lane)
{
	const struct winograd_plan *p = context;
	struct winograd_range range = {.row = 0};
	bool in_range;

	winograd_select_panel(p, panel, &range);
	in_range = winograd_panel_in_range(p, panel) &&
		   winograd_transform_weights(p, &range, 0, p->depth, p->memory + lane * p->lane,
					      p->weights + panel * p->transform);
	p->weights[p->panels * p->transform + panel] = in_range ? 1.0f : 0.0f;
}

void conv__winograd(const struct conv_gather *gather, const struct kernel_room *room)
{
	struct winograd_plan p = winograd_plan(gather);
	const struct conv_view *v = &gather->view;

	p.weights = (float *)room->scratch + p.pixels;
	p.memory = p.weights + p.kernel;
	if (p.kernel)
		pool_share_lanes(room->pool, kernel_work_floats(3 * p.kernel),
				 winograd_kernel_slice, &p, (unsigned)p.panels);
	if (p.row_slices == 1 && p.panel_slices > 1) {
		p.shared = room->scratch;
		pool_share(room->pool, kernel_work_floats(2 * WINOGRAD_POSITIONS * p.position),
			   winograd_shared_slice, &p, (unsigned)p.tiles.rows);
	}
	pool_share_lanes(room->pool,
			 kernel_work_products(WINOGRAD_POSITIONS * p.tiles.rows * p.tiles.across *
					      v->depth * gather->filters),
			 winograd_slice, &p, (unsigned)(p.row_slices * p.panel_slices));
}
