/*
 * The histograms of one tensor over the run, of one report or two, as heat maps: time from left to
 * right, values upwards.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the page's arena.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_chart.h"

#define BIN_LEAST    (-256)
#define BIN_GREATEST 257
#define BINS         (BIN_GREATEST - BIN_LEAST + 1)
#define COLUMNS_MOST 512
#define RECENT       64 /* moments searched for another replica's histogram */

/* When a histogram was recorded, and the replica of the first one of that time. */
struct moment {
	int64_t step, update, microbatch, replica;
	char mode[12];
	int64_t number; /* of the moment */
};

struct bins {
	double low[BINS], high[BINS];
	bool there[BINS];
};

/* Counts are collected in one column per moment; when there are too many columns, pairs are
 * merged. */
struct histogram_builder {
	struct view_tensors *screen;
	struct prof_db *db;
	struct bins *bins;
	int side;
	int64_t context;            /* of the last row */
	int64_t column;             /* of the last row */
	bool wanted;                /* its replica is shown */
	int64_t moments;            /* number so far */
	int64_t share;              /* moments per column */
	struct moment last[RECENT]; /* ring, indexed by moment number */
	double *count;              /* COLUMNS_MOST x BINS */
	int64_t *step, *update;
};

/* ---- collecting ------------------------------------------------------------------------------ */

static void tensors_merge_columns(struct histogram_builder *g)
{
	for (int c = 0; c < COLUMNS_MOST / 2; c++) {
		g->step[c] = g->step[2 * c];
		g->update[c] = g->update[2 * c];
		for (int b = 0; b < BINS; b++)
			g->count[c * BINS + b] =
				g->count[2 * c * BINS + b] + g->count[(2 * c + 1) * BINS + b];
	}
	memset(g->count + COLUMNS_MOST / 2 * BINS, 0, COLUMNS_MOST / 2 * BINS * sizeof(*g->count));
	g->share *= 2;
}

/* Find the column of a histogram: that of another replica at the same time, or a new one. */
static void tensors_find_column(struct histogram_builder *g, struct moment *moment)
{
	for (int64_t i = g->moments - 1; i >= 0 && i >= g->moments - RECENT; i--) {
		const struct moment *a = &g->last[i % RECENT];

		if (a->replica != moment->replica && a->step == moment->step &&
		    a->update == moment->update && a->microbatch == moment->microbatch &&
		    strcmp(a->mode, moment->mode) == 0) {
			g->column = i / g->share;
			return;
		}
	}
	if (g->moments == COLUMNS_MOST * g->share)
		tensors_merge_columns(g);
	g->column = g->moments / g->share;
	if (g->moments % g->share == 0) {
		g->step[g->column] = moment->step;
		g->update[g->column] = moment->update;
	}
	g->last[g->moments++ % RECENT] = *moment;
}

static void tensors_collect_row(struct histogram_builder *g, const struct prof_query *query)
{
	struct view_tensor_histograms *side = &g->screen->histogram.side[g->side];
	const int64_t context = prof_column_int(query, 0), bin = prof_column_int(query, 1);
	int b;

	if (bin < BIN_LEAST || bin > BIN_GREATEST)
		return;
	if (g->context != context || g->moments == 0) {
		struct moment moment = {.step = prof_column_int(query, 5),
					.update = prof_column_int(query, 6),
					.microbatch = prof_column_int(query, 7),
					.replica = prof_column_int(query, 8)};
		const char *mode = prof_column_text(query, 9);

		str_copy(moment.mode, sizeof(moment.mode), mode ? mode : "");
		g->context = context;
		g->wanted = view__replica_shows(g->screen, moment.replica);
		if (g->wanted)
			tensors_find_column(g, &moment);
		side->found += g->wanted;
	}
	if (!g->wanted)
		return;
	b = (int)(bin - BIN_LEAST);
	g->bins->low[b] = prof_column_real(query, 2);
	g->bins->high[b] = prof_column_real(query, 3);
	g->bins->there[b] = true;
	g->count[g->column * BINS + b] += (double)prof_column_int(query, 4);
}

static enum status tensors_collect_range(void *user, int64_t from, int64_t to, struct err *err)
{
	struct histogram_builder *g = user;
	struct prof_query *query = view__tensors_rows(
		g->screen, g->side, g->db,
		"SELECT h.context_id, h.bin, h.low, h.high, h.count, c.step, c.weight_update, "
		"c.microbatch, c.replica, c.mode "
		"FROM tensor_histogram_rows h LEFT JOIN contexts c ON c.context_id = h.context_id "
		"WHERE h.row_id >= :from AND h.row_id < :to AND h.tensor_id = :tensor "
		"AND (:rank IS NULL OR c.rank = :rank)",
		from, to, err);

	while (view_query_next(query, err))
		tensors_collect_row(g, query);
	prof_query_close(query);
	g->screen->histogram.side[g->side].looked += to - from;
	return err->status;
}

static void tensors_collect_side(struct histogram_builder *g, struct view_context *context,
				 struct err *err)
{
	struct view_tensor_histograms *side = &g->screen->histogram.side[g->side];
	struct arena *arena = &g->screen->page_arena;

	g->db = view__tensors_db(context, g->side);
	if (!g->db || g->screen->id[g->side] == IPS_NULL)
		return;
	g->count = view_alloc(arena, (size_t)COLUMNS_MOST * BINS, sizeof(*g->count), err);
	g->step = view_alloc(arena, COLUMNS_MOST, sizeof(*g->step), err);
	g->update = view_alloc(arena, COLUMNS_MOST, sizeof(*g->update), err);
	side->all = view_query_number(
		g->db, "SELECT ifnull(max(row_id), 0) FROM tensor_histogram_rows", err);
	if (!err_stuck(err))
		report_ranges(side->all, VIEW_TENSORS_HISTOGRAMS, 2048, tensors_collect_range, g,
			      err);
}

/* ---- the pictures ---------------------------------------------------------------------------- */

/* Collect the bins that occur in either report, the greatest values first. */
static void tensors_picture_bins(struct view_tensor_histogram *h, const struct bins *bins,
				 struct arena *arena, struct err *err)
{
	int count = 0;

	for (int b = 0; b < BINS; b++)
		count += bins->there[b];
	h->low = view_alloc(arena, (size_t)count, sizeof(*h->low), err);
	h->high = view_alloc(arena, (size_t)count, sizeof(*h->high), err);
	h->bin = view_alloc(arena, (size_t)count, sizeof(*h->bin), err);
	for (int b = BINS - 1; b >= 0 && !err_stuck(err); b--) {
		if (!bins->there[b])
			continue;
		h->low[h->bins] = bins->low[b];
		h->high[h->bins] = bins->high[b];
		h->bin[h->bins++] = b + BIN_LEAST;
	}
}

static void tensors_picture_side(struct view_tensor_histogram *h, const struct histogram_builder *g,
				 struct arena *arena, struct err *err)
{
	struct view_tensor_histograms *side = &h->side[g->side];
	const size_t cells = (size_t)h->bins * (size_t)h->columns;

	side->step = g->step;
	side->update = g->update;
	if (g->moments > 0) {
		side->last_step = g->last[(g->moments - 1) % RECENT].step;
		side->last_update = g->last[(g->moments - 1) % RECENT].update;
	}
	side->count = view_alloc(arena, cells, sizeof(*side->count), err);
	for (size_t i = 0; i < cells && side->count; i++) {
		const size_t b = (size_t)(h->bin[i / (size_t)h->columns] - BIN_LEAST);
		const size_t c = i % (size_t)h->columns;
		const double count = (int)c < side->columns ? g->count[c * BINS + b] : 0;

		side->count[i] = count > 0 ? count : (double)NAN;
		h->greatest = fmax(h->greatest, count);
	}
}

/* With D: clear counts that are equal at the same step in both. */
static void tensors_picture_differ(struct view_tensor_histogram *h)
{
	struct view_tensor_histograms *source = &h->side[0], *target = &h->side[1];

	for (int i = 0; i < h->bins * h->columns; i++) {
		const int c = i % h->columns;
		const double a = source->count[i], b = target->count[i];
		const bool both = c < source->columns && c < target->columns &&
				  source->step[c] == target->step[c] &&
				  source->update[c] == target->update[c];

		if (both && !(a < b || a > b) && isnan(a) == isnan(b))
			source->count[i] = target->count[i] = (double)NAN;
		else
			h->differs = true;
	}
}

static void tensors_build_pictures(struct histogram_builder *g, struct view_tensors *screen,
				   struct err *err)
{
	struct view_tensor_histogram *h = &screen->histogram;

	tensors_picture_bins(h, g[0].bins, &screen->page_arena, err);
	for (int side = 0; side < VIEW_TENSORS_SIDES && !err_stuck(err); side++) {
		/* Use the same number of moments per column in both. */
		while (g[side].moments > 0 && g[side].share < g[!side].share)
			tensors_merge_columns(&g[side]);
		h->side[side].columns =
			(int)((g[side].moments + g[side].share - 1) / g[side].share);
		h->columns = max(h->columns, h->side[side].columns);
	}
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		tensors_picture_side(h, &g[side], &screen->page_arena, err);
}

void view__histogram_load(struct view_tensors *screen, struct view_context *context,
			  struct err *err)
{
	struct bins *bins;
	struct histogram_builder *g;

	screen->histogram = (struct view_tensor_histogram){0};
	arena_reset(&screen->page_arena);
	bins = view_alloc(&screen->page_arena, 1, sizeof(*bins), err);
	g = view_alloc(&screen->page_arena, VIEW_TENSORS_SIDES, sizeof(*g), err);
	for (int side = 0; side < VIEW_TENSORS_SIDES && !err_stuck(err); side++) {
		g[side] = (struct histogram_builder){
			.screen = screen, .bins = bins, .side = side, .share = 1};
		if (view_cancelled(context))
			err_set(err, ST_INTERRUPTED, "interrupted");
		else
			tensors_collect_side(&g[side], context, err);
	}
	if (!err_stuck(err))
		tensors_build_pictures(g, screen, err);
	if (err_stuck(err))
		screen->histogram = (struct view_tensor_histogram){0};
	else if (context->target && context->differ)
		tensors_picture_differ(&screen->histogram);
}

/* The column of the row under the curve's cursor; -1: none. */
static int histogram_column(const struct view_tensors *screen, int side)
{
	const struct view_tensor_histograms *h = &screen->histogram.side[side];
	const struct report_tensor_row *row = view__curve_row(screen);
	int found = -1;

	for (int c = 0; row && c < h->columns; c++) {
		const bool steps = h->step[c] != IPS_NULL && row->step != IPS_NULL;
		const int64_t at = steps ? h->step[c] : h->update[c];
		const int64_t wanted = steps ? row->step : row->weight_update;

		if (at != IPS_NULL && at <= wanted)
			found = c;
	}
	return found;
}

/* ---- drawing --------------------------------------------------------------------------------- */

#define LABEL_WIDTH 11

static struct view_pane tensors_cut_row(struct view_rect *area, struct view_canvas *canvas,
					bool bottom)
{
	struct view_rect row = *area;

	row.height = area->height > 0;
	if (bottom)
		row.y += area->height - row.height;
	else
		area->y += row.height;
	area->height -= row.height;
	return view_pane_at(canvas, row);
}

/* ---- one map --------------------------------------------------------------------------------- */

/* Draw a label where another bin starts, unless the label above is adjacent. */
static void tensors_draw_labels(const struct view_tensor_histogram *h, const struct view_pane *map,
				struct view_pane *pane)
{
	int last = -1, above = -1;
	int bin;
	char text[32];

	for (int y = 0; y < map->rect.height; y++) {
		int column, at;

		if (!view_heat_find(map, h->columns, h->bins, 0, y, &column, &at) || at == last)
			continue;
		if (above >= 0 && y - above < 2 && h->bin[at] > -256 && h->bin[at] < 256)
			continue;
		bin = h->bin[at];
		if (bin == 257)
			snprintf(text, sizeof(text), "NaN");
		else if (bin == 256 || bin == -256)
			snprintf(text, sizeof(text), bin > 0 ? "Inf" : "-Inf");
		else
			snprintf(text, sizeof(text), "%.3g", bin >= 0 ? h->low[at] : h->high[at]);
		view_text_right(pane, 0, y, LABEL_WIDTH - 1,
				bin > 255 || bin == -256 ? VIEW_BAD : VIEW_DIM, text);
		above = y;
		last = at;
	}
}

static struct report_axis tensors_colours(const struct view_tensor_histogram *h)
{
	return (struct report_axis){.low = 1,
				    .high = fmax(h->greatest, 2),
				    .logarithmic = true,
				    .quantity = REPORT_COUNT};
}

static void tensors_draw_map(const struct view_tensors *screen, const struct view_context *context,
			     int side, struct view_rect area, struct view_canvas *canvas)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	const struct report_axis scale = tensors_colours(h);
	const int column = histogram_column(screen, side);
	struct view_pane labels = view_pane_at(canvas, area), map;

	area.x += LABEL_WIDTH;
	area.width -= LABEL_WIDTH + 1;
	map = view_pane_at(canvas, area);
	view_heat_map(&map, h->side[side].count, h->columns, h->bins, &scale);
	tensors_draw_labels(h, &map, &labels);
	if (screen->opened && !context->whole && column >= 0)
		view_chart_marker(&map, view_heat_place(&map, h->columns, h->bins, column, 0).x);
}

/* ---- titles ---------------------------------------------------------------------------------- */

/* "steps 0 to 39, 40 histograms" */
static void tensors_side_text(const struct view_tensor_histograms *side, char *out, size_t size)
{
	const bool steps = side->step[0] != IPS_NULL && side->last_step != IPS_NULL;
	const int64_t first = steps ? side->step[0] : side->update[0];
	const int64_t last = steps ? side->last_step : side->last_update;
	char count[FMT_SIZE];

	out[0] = '\0';
	if (first != IPS_NULL && last != IPS_NULL)
		snprintf(out, size, "%s %lld to %lld, ", steps ? "steps" : "weight updates",
			 (long long)first, (long long)last);
	view_append(out, size, "%s histogram%s", fmt_count(count, side->found),
		    side->found == 1 ? "" : "s");
	if (side->looked < side->all)
		view_append(out, size, " (%.0f %% looked at)",
			    100.0 * (double)side->looked / (double)side->all);
}

static const char *tensors_missing_histogram(const struct view_tensors *screen,
					     const struct view_tensor_histograms *side)
{
	if (side->looked < side->all)
		return "None of its histograms is among the rows looked at.";
	return screen->replica >= 0 ? "No histograms of it are this replica's: i shows another."
				    : "No histograms were kept of it (outfeed.capture histogram).";
}

static void tensors_draw_title(const struct view_tensors *screen,
			       const struct view_context *context, int side, struct view_pane *pane)
{
	const struct view_tensor_histograms *h = &screen->histogram.side[side];
	const struct view_source *report = side ? context->target : context->source;
	char text[160];
	int x = 1 +
		view_text(pane, 1, 0, side ? VIEW_TARGET : VIEW_SOURCE, side ? "Target" : "Source");

	/* The run's name, if the rest still fits. */
	if (pane->rect.width >= 60)
		x += 1 +
		     view_text_cut(pane, x + 1, 0, pane->rect.width / 3, VIEW_BOLD, report->name);
	x += view_text(pane, x, 0, VIEW_DIM, ":");
	if (h->columns > 0)
		tensors_side_text(h, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s", tensors_missing_histogram(screen, h));
	view_text_cut(pane, x + 1, 0, pane->rect.width - x - 2, VIEW_DIM, text);
}

static void tensors_draw_map_legend(const struct view_tensors *screen,
				    const struct view_context *context, struct view_pane *pane)
{
	const struct report_axis scale = tensors_colours(&screen->histogram);
	const int width = pane->rect.width - LABEL_WIDTH;
	char text[160] = "elements of a bin";
	int used = 0;

	if (!context->target)
		tensors_side_text(&screen->histogram.side[0], text, sizeof(text));
	/* With two reports the titles have the rest: if space is short, keep the shades only. */
	if (!context->target || width > 48)
		used = view_text_cut(pane, LABEL_WIDTH, 0, width, VIEW_DIM, text) + 2;
	if (used < width)
		view_heat_legend(pane, LABEL_WIDTH + used, 0, width - used, &scale);
}

/* ---- both ------------------------------------------------------------------------------------ */

void view__histogram_draw(const struct view_tensors *screen, const struct view_context *context,
			  struct view_pane *pane)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	struct view_canvas *canvas = pane->canvas;
	struct view_rect area = pane->rect;
	struct view_pane row;

	if (h->columns == 0 || h->bins == 0) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      tensors_missing_histogram(screen, &h->side[0]));
		return;
	}
	if (context->target && context->differ && !h->differs) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      "Nothing differs: D shows all.");
		return;
	}
	if (screen->opened && !context->whole && area.height > 4) {
		row = tensors_cut_row(&area, canvas, false);
		view__curve_readout(screen, context, &row);
	}
	row = tensors_cut_row(&area, canvas, true);
	tensors_draw_map_legend(screen, context, &row);
	if (context->target) {
		for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
			struct view_rect share = view_tensors_share(area, VIEW_TENSORS_SIDES, side);
			struct view_pane title = tensors_cut_row(&share, canvas, false);

			tensors_draw_title(screen, context, side, &title);
			if (screen->histogram.side[side].columns > 0 && share.height > 0)
				tensors_draw_map(screen, context, side, share, canvas);
		}
	} else
		tensors_draw_map(screen, context, 0, area, canvas);
}
