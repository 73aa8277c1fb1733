/*
 * Convolutions as sums over what an output pixel reads: the forward pass and the input's gradient.
 *
 * A slice is a range of output rows by a range of filter panels. It copies one panel of weights at
 * a time into its lane's memory, where the panel stays in the cache, and computes its rows.
 */
#include <string.h>

#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"

#define GATHER_SLICES 32        /* target number of row slices */
#define GATHER_TILES  24        /* minimum tiles of a slice, to amortize copying the weights */
#define GATHER_LEAST  8         /* target minimum of slices; below that, panels are split too */
#define GATHER_SHARED 4         /* minimum panel slices that share one copy of the pixels */
#define GATHER_FETCH  (1 << 11) /* minimum floats of a panel: time enough to fetch outputs */
#define GATHER_BAND   (1 << 18) /* floats of a slice's copied pixels, approximately */

struct gather_plan {
	const struct conv_gather *gather;
	const struct conv_body *body;
	float *memory;
	int64_t lane;                               /* floats */
	int64_t band, panel;                        /* floats of the lane's parts */
	int64_t lines, slice_lines, line_slices;    /* output rows */
	int64_t panels, slice_panels, panel_slices; /* per group */
	struct conv_band shared;
	bool is_shared; /* all slices read one band */
	bool pairs;     /* a tile holds two short rows */
};

/* Minimum output rows that are worth a slice. */
static int64_t gather_min_lines(const struct gather_plan *p, const struct conv_view *v)
{
	int64_t tiles = conv__ceil(v->out_columns, p->body->rows); /* per row */
	int64_t min_lines = p->pairs ? 2 * GATHER_TILES : conv__ceil(GATHER_TILES, tiles);
	int64_t lines = max(conv__ceil(p->lines, GATHER_SLICES), min_lines);
	int64_t row = conv__band_floats(v, 2) - conv__band_floats(v, 1);

	if (row > 0)
		lines = max(1, min(lines, GATHER_BAND / row));
	return min(lines, p->lines);
}

static struct gather_plan gather_plan(const struct conv_gather *g)
{
	const struct conv_view *v = &g->view;
	struct gather_plan p = {.gather = g, .body = conv__body()};
	int64_t min_lines;

	p.lines = v->images * v->out_rows;
	p.pairs = v->out_columns <= p.body->rows / 2 && p.lines > 1;
	min_lines = gather_min_lines(&p, v);
	p.slice_lines = conv__ceil(p.lines, p.lines / min_lines);
	if (p.pairs)
		p.slice_lines = (p.slice_lines + 1) / 2 * 2;
	p.line_slices = conv__ceil(p.lines, p.slice_lines);

	p.panels = conv__ceil(g->filters, p.body->panel);
	p.panel_slices = min(p.panels, conv__ceil(GATHER_LEAST, p.line_slices));
	p.slice_panels = conv__ceil(p.panels, p.panel_slices);
	p.panel_slices = conv__ceil(p.panels, p.slice_panels);

	/* A slice has less than twice the minimum; this also covers any smaller batch. */
	p.band = conv__band_floats(v, min(p.lines, 2 * min_lines));
	p.panel = v->taps_y * v->taps_x * v->depth * p.body->panel;
	p.lane = p.band + p.panel + CONV_PANEL_MOST;
	return p;
}

int64_t conv__gather_scratch(const struct conv_gather *gather, unsigned lanes)
{
	struct gather_plan p = gather_plan(gather);

	return conv__dense_floats(&gather->view) + conv__shared_floats(&gather->view) +
	       p.lane * lanes;
}

/* ---- weights --------------------------------------------------------------------------------- */

void conv__gather_pack(const struct conv_gather *g, int64_t group, int64_t column, int64_t columns,
		       float *b)
{
	const struct conv_body *body = conv__body();
	const struct conv_weights *w = &g->weights;
	const struct conv_view *v = &g->view;
	void (*pack)(const float *, int64_t, int64_t, int, float *) =
		w->transpose ? body->pack_transposed : body->pack;
	const float *from = w->w + group * g->group_weights + column * (w->transpose ? w->ld : 1);

	for (int64_t i = 0; i < v->taps_y; i++) {
		for (int64_t j = 0; j < v->taps_x; j++) {
			int64_t tap = (w->first_y + i * w->step_y) * w->kernel_width + w->first_x +
				      j * w->step_x;

			pack(from + tap * w->tap, w->ld, v->depth, (int)columns, b);
			b += v->depth * body->panel;
		}
	}
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* All fields of a tile except those that depend on its pixels. */
static struct conv_tile gather_tile(const struct gather_plan *p, const struct conv_band *band,
				    const float *b, int64_t columns)
{
	const struct conv_gather *g = p->gather;

	return (struct conv_tile){
		.pixel = band->pixel,
		.runs_y = band->runs_y,
		.run_y = band->tap_y,
		.runs_x = band->runs_x,
		.run_x = band->tap_x,
		.length = band->length,
		.b = b,
		.b_step = p->body->panel,
		.c_pixel = g->out_pixel,
		.columns = (int)columns,
		.fetch = p->panel >= GATHER_FETCH,
		.relu = g->finish.relu,
		.most = g->finish.most,
		.add = g->add,
	};
}

/* Compute one output row, cut into tiles of nearly equal size. */
static void gather_row(const struct gather_plan *p, struct conv_tile *tile, const float *a,
		       float *c, int64_t pixels)
{
	int64_t tiles = conv__ceil(pixels, p->body->rows);
	bool wide = tile->columns > p->body->lanes;

	for (int64_t i = 0; i < tiles; i++) {
		int64_t first = conv__piece(pixels, tiles, i);
		int64_t count = conv__piece(pixels, tiles, i + 1) - first, half = (count + 1) / 2;

		tile->a0 = a + first * tile->pixel;
		tile->a1 = tile->a0 + half * tile->pixel;
		tile->c0 = c + first * tile->c_pixel;
		tile->c1 = tile->c0 + half * tile->c_pixel;
		p->body->tile[wide][count - 1](tile);
	}
}

static float *gather_out(const struct conv_gather *g, int64_t line)
{
	return g->out + line / g->view.out_rows * g->out_image +
	       line % g->view.out_rows * g->out_row;
}

/* Whether taps in the border's rows may be skipped. A tile skips the taps that none of its rows
 * needs, and the tile's size depends on the body. Other bodies multiply these weights by zeros,
 * which leaves the sum unchanged only if all weights are finite. */
static bool gather_may_clip(const struct gather_plan *p, const struct conv_band *band,
			    const float *b)
{
	const struct conv_view *v = &p->gather->view;
	int64_t last = v->origin_y + (v->out_rows - 1) * v->step_y;

	if (!v->depth || band->runs_y != v->taps_y ||
	    (v->origin_y >= 0 && last + (v->taps_y - 1) * v->dilation_y < v->rows))
		return false;
	return kernel_abs_max(b, (size_t)p->panel) < KERNEL_NONFINITE_BITS;
}

/* Skip the taps that fall into the border for all of rows @line .. @line + @lines - 1. */
static struct conv_tile gather_clip(const struct gather_plan *p, const struct conv_band *band,
				    const struct conv_tile *whole, int64_t line, int64_t lines,
				    int64_t *skip)
{
	const struct conv_view *v = &p->gather->view;
	struct conv_tile tile = *whole;
	int64_t first = v->taps_y, end = 0;

	*skip = 0;
	for (int64_t i = 0; i < lines; i++) {
		int64_t row = v->origin_y + (line + i) % v->out_rows * v->step_y;
		int64_t above = row < 0 ? conv__ceil(-row, v->dilation_y) : 0;
		int64_t below = row < v->rows ? conv__ceil(v->rows - row, v->dilation_y) : 0;

		first = min(first, above);
		end = max(end, min(below, v->taps_y));
	}
	tile.runs_y = max(end - first, 0);
	*skip = first * band->tap_y;
	tile.b += first * band->runs_x * band->length * p->body->panel;
	return tile;
}

/* Watch rows @line .. @end - 1 of a panel, which were just stored and are still in the L1 cache. */
static void gather_watch(const struct gather_plan *p, const struct conv_tile *tile, int64_t offset,
			 int64_t line, int64_t end)
{
	const struct conv_gather *g = p->gather;
	const struct conv_view *v = &g->view;

	for (; g->finish.watch && line < end; line++)
		kernel_watch_update(
			g->finish.watch,
			kernel_abs_max_rows(gather_out(g, line) + offset, g->out_pixel,
					    line == p->lines - 1 ? v->last_columns : v->out_columns,
					    tile->columns));
}

static void gather_rows(const struct gather_plan *p, const struct conv_view *v,
			const struct conv_band *band, const struct conv_tile *whole, int64_t offset,
			int64_t line, int64_t end)
{
	const struct conv_gather *g = p->gather;
	bool clips = gather_may_clip(p, band, whole->b);
	bool wide = whole->columns > p->body->lanes;
	struct conv_tile tile = *whole;
	int64_t skip = 0;

	for (; p->pairs && line + 1 < end; line += 2) {
		if (clips)
			tile = gather_clip(p, band, whole, line, 2, &skip);
		tile.a0 = conv__band_line(v, band, line) + skip;
		tile.a1 = conv__band_line(v, band, line + 1) + skip;
		tile.c0 = gather_out(g, line) + offset;
		tile.c1 = gather_out(g, line + 1) + offset;
		p->body->tile[wide][2 * v->out_columns - 1](&tile);
		gather_watch(p, whole, offset, line, line + 2);
	}
	for (; line < end; line++) {
		if (clips)
			tile = gather_clip(p, band, whole, line, 1, &skip);
		gather_row(p, &tile, conv__band_line(v, band, line) + skip,
			   gather_out(g, line) + offset,
			   line == p->lines - 1 ? v->last_columns : v->out_columns);
		gather_watch(p, whole, offset, line, line + 1);
	}
}

static void gather_panels(const struct gather_plan *p, const struct conv_view *v,
			  const struct conv_band *band, int64_t group, int64_t panel, int64_t last,
			  int64_t line, int64_t end, float *b)
{
	const struct conv_gather *g = p->gather;
	float *bias = b + p->panel;

	for (; panel < last; panel++) {
		int64_t column = panel * p->body->panel;
		int64_t columns = min(p->body->panel, g->filters - column);
		int64_t offset = group * g->group_out + column;
		struct conv_tile tile = gather_tile(p, band, b, columns);

		conv__gather_pack(g, group, column, columns, b);
		if (g->finish.bias) {
			memset(bias, 0, CONV_PANEL_MOST * sizeof(float));
			memcpy(bias, g->finish.bias + offset, (size_t)columns * sizeof(float));
			tile.bias = bias;
		}
		gather_rows(p, v, band, &tile, offset, line, end);
	}
}

static void gather_slice(void *context, unsigned slice, unsigned lane)
{
	const struct gather_plan *p = context;
	int64_t rest = slice / p->line_slices;
	int64_t line = slice % p->line_slices * p->slice_lines;
	int64_t end = min(line + p->slice_lines, p->lines);
	int64_t group = rest / p->panel_slices;
	int64_t panel = rest % p->panel_slices * p->slice_panels;
	float *memory = p->memory + lane * p->lane;
	struct conv_view view = p->gather->view;
	struct conv_band band;

	view.source += group * p->gather->group_source;
	band = p->is_shared ? p->shared : conv__band(&view, line, end - line, memory);
	gather_panels(p, &view, &band, group, panel, min(panel + p->slice_panels, p->panels), line,
		      end, memory + p->band);
}

int64_t conv__gather_lines_scratch(const struct conv_gather *gather, int64_t lines)
{
	return conv__band_floats(&gather->view, lines) + gather_plan(gather).panel +
	       CONV_PANEL_MOST;
}

void conv__gather_lines(const struct conv_gather *gather, int64_t panel, int64_t panels,
			int64_t line, int64_t end, float *memory)
{
	struct gather_plan p = gather_plan(gather);
	struct conv_band band = conv__band(&gather->view, line, end - line, memory);

	gather_panels(&p, &gather->view, &band, 0, panel, panel + panels, line, end,
		      memory + conv__band_floats(&gather->view, end - line));
}

void conv__gather(const struct conv_gather *gather, const struct kernel_room *room)
{
	float *shared = (float *)room->scratch + conv__dense_floats(&gather->view);
	struct conv_gather g = *gather;
	struct gather_plan p;

	conv__dense(&g.view, room->pool, room->scratch);
	p = gather_plan(&g);
	p.memory = shared + conv__shared_floats(&gather->view);
	if (p.panel_slices >= GATHER_SHARED && g.groups == 1)
		p.is_shared = conv__shared(&g.view, room->pool, shared, &p.shared);
	pool_share_lanes(room->pool,
			 kernel_work_products(g.view.images * g.view.out_rows * g.view.out_columns *
					      g.view.taps_y * g.view.taps_x * g.view.depth *
					      g.filters * g.groups),
			 gather_slice, &p,
			 (unsigned)(gather->groups * p.panel_slices * p.line_slices));
}
