/*
 * Histograms of one tensor over the run as a heat map: steps from left to right, values upwards.
 *
 * Bins are signs and binary exponents (outfeed_histogram.h): in the order of their numbers they are
 * in the order of their values.
 *
 * Threading: the session's worker; drawing on the terminal's thread.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "viewer/draw/view_heat.h"

#define BIN_LEAST    (-256)
#define BIN_GREATEST 257
#define BINS         (BIN_GREATEST - BIN_LEAST + 1)
#define COLUMNS_MOST 512
#define LABEL_WIDTH  11

/* Counts are gathered for as many columns as histograms were found, two becoming one when there
 * are too many. */
struct gathering {
	struct view_tensors *screen;
	struct prof_db *db;
	int64_t context; /* of the last row */
	int64_t found;   /* histograms */
	int64_t share;   /* histograms of a column */
	double *count;   /* COLUMNS_MOST x BINS */
	int64_t *step;
	double low[BINS], high[BINS];
	bool there[BINS];
};

static void gather_halve(struct gathering *g)
{
	for (int c = 0; c < COLUMNS_MOST / 2; c++) {
		g->step[c] = g->step[2 * c];
		for (int b = 0; b < BINS; b++)
			g->count[c * BINS + b] =
				g->count[2 * c * BINS + b] + g->count[(2 * c + 1) * BINS + b];
	}
	memset(g->count + COLUMNS_MOST / 2 * BINS, 0, COLUMNS_MOST / 2 * BINS * sizeof(*g->count));
	g->share *= 2;
}

static void gather_row(struct gathering *g, const struct prof_query *query)
{
	const int64_t context = prof_column_int(query, 0), bin = prof_column_int(query, 1);
	int64_t column;
	int b;

	if (bin < BIN_LEAST || bin > BIN_GREATEST)
		return;
	if (g->found == 0 || context != g->context) {
		if (g->found == COLUMNS_MOST * g->share)
			gather_halve(g);
		if (g->found % g->share == 0)
			g->step[g->found / g->share] = prof_column_int(query, 5);
		g->found++;
		g->context = context;
	}
	column = (g->found - 1) / g->share;
	b = (int)(bin - BIN_LEAST);
	g->low[b] = prof_column_real(query, 2);
	g->high[b] = prof_column_real(query, 3);
	g->there[b] = true;
	g->count[column * BINS + b] += (double)prof_column_int(query, 4);
}

static enum status gather_range(void *user, int64_t from, int64_t to, struct err *err)
{
	struct gathering *g = user;
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, g->db,
		"SELECT h.context_id, h.bin, h.low, h.high, h.count, c.step "
		"FROM tensor_histogram_rows h LEFT JOIN contexts c ON c.context_id = h.context_id "
		"WHERE h.row_id >= :from AND h.row_id < :to AND h.tensor_id = :tensor",
		err);
	bool row = true;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":from", from);
	prof_query_int(query, ":to", to);
	prof_query_int(query, ":tensor", g->screen->id);
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row)
		gather_row(g, query);
	prof_query_close(query);
	g->screen->histogram.looked += to - from;
	return status;
}

/* The picture: the bins that occur, the greatest values first. */
static enum status gather_picture(struct gathering *g, struct err *err)
{
	struct view_tensor_histogram *h = &g->screen->histogram;
	struct arena *arena = &g->screen->page_arena;
	const int columns = (int)((g->found + g->share - 1) / g->share);
	int bins = 0;

	for (int b = 0; b < BINS; b++)
		bins += g->there[b];
	h->count = arena_alloc(arena, (size_t)bins * (size_t)columns + 1, sizeof(*h->count));
	h->low = arena_alloc(arena, (size_t)bins + 1, sizeof(*h->low));
	h->high = arena_alloc(arena, (size_t)bins + 1, sizeof(*h->high));
	h->bin = arena_alloc(arena, (size_t)bins + 1, sizeof(*h->bin));
	if (!h->count || !h->low || !h->high || !h->bin)
		return err_nomem(err);
	h->step = g->step;
	h->columns = columns;
	h->found = g->found;
	for (int b = BINS - 1; b >= 0; b--) {
		if (!g->there[b])
			continue;
		h->low[h->bins] = g->low[b];
		h->high[h->bins] = g->high[b];
		h->bin[h->bins] = b + BIN_LEAST;
		for (int c = 0; c < columns; c++) {
			const double count = g->count[c * BINS + b];

			h->count[h->bins * columns + c] = count > 0 ? count : NAN;
			h->greatest = fmax(h->greatest, count);
		}
		h->bins++;
	}
	return ST_OK;
}

enum status view__histogram_load(struct view_tensors *screen, struct view_context *context,
				 struct err *err)
{
	struct gathering g = {.screen = screen, .db = context->source->db, .share = 1};
	enum status status;

	screen->histogram = (struct view_tensor_histogram){0};
	arena_reset(&screen->page_arena);
	if (screen->id == INT64_MIN)
		return ST_OK;
	g.count = arena_alloc(&screen->page_arena, (size_t)COLUMNS_MOST * BINS, sizeof(*g.count));
	g.step = arena_alloc(&screen->page_arena, COLUMNS_MOST, sizeof(*g.step));
	if (!g.count || !g.step)
		return err_nomem(err);
	status = view__last_row(g.db, "SELECT max(row_id) FROM tensor_histogram_rows",
				&screen->histogram.all, err);
	if (status == ST_OK)
		status = report_ranges(screen->histogram.all, VIEW_TENSORS_HISTOGRAMS, 2048,
				       gather_range, &g, err);
	return status == ST_OK ? gather_picture(&g, err) : status;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void draw_label(const struct view_tensor_histogram *h, int at, struct view_pane *pane, int y)
{
	const int bin = h->bin[at];
	char text[32];

	if (bin == 257)
		snprintf(text, sizeof(text), "NaN");
	else if (bin == 256 || bin == -256)
		snprintf(text, sizeof(text), bin > 0 ? "Inf" : "-Inf");
	else
		snprintf(text, sizeof(text), "%.3g", bin >= 0 ? h->low[at] : h->high[at]);
	view_text_right(pane, 0, y, LABEL_WIDTH - 1, bin > 255 || bin == -256 ? VIEW_BAD : VIEW_DIM,
			text);
}

/* A label wherever another bin begins and the label above has left room. */
static void draw_labels(const struct view_tensor_histogram *h, const struct view_pane *map,
			struct view_pane *pane)
{
	int last = -1, above = -1;

	for (int y = 0; y < map->rect.height; y++) {
		int column, at;

		if (!view_heat_find(map, h->columns, h->bins, 0, y, &column, &at) || at == last)
			continue;
		if (above >= 0 && y - above < 2 && h->bin[at] > -256 && h->bin[at] < 256)
			continue;
		draw_label(h, at, pane, y);
		above = y;
		last = at;
	}
}

static void draw_steps(const struct view_tensor_histogram *h, const struct view_axis *scale,
		       struct view_pane *pane)
{
	const int y = pane->rect.height - 1, width = pane->rect.width - LABEL_WIDTH;
	const int64_t first = h->step[0], last = h->step[h->columns - 1];
	char text[160], count[FMT_SIZE];
	int used;

	used = first == INT64_MIN || last == INT64_MIN
		       ? 0
		       : snprintf(text, sizeof(text), "steps %lld to %lld, ", (long long)first,
				  (long long)last);
	used += snprintf(text + used, sizeof(text) - (size_t)used, "%s histograms",
			 fmt_count(count, h->found));
	if (h->looked < h->all)
		snprintf(text + used, sizeof(text) - (size_t)used, " (%.0f %% looked at)",
			 100.0 * (double)h->looked / (double)h->all);
	used = view_text_cut(pane, LABEL_WIDTH, y, width, VIEW_DIM, text) + 2;
	if (used < width)
		view_heat_legend(pane, LABEL_WIDTH + used, y, width - used, scale);
}

void view__histogram_draw(const struct view_tensors *screen, struct view_pane *pane)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	const struct view_axis scale = {.low = 1,
					.high = fmax(h->greatest, 2),
					.logarithmic = true,
					.quantity = REPORT_COUNT};
	struct view_rect area = pane->rect;
	struct view_pane map;

	if (h->columns == 0 || h->bins == 0) {
		view_text_cut(
			pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			h->looked < h->all
				? "None of its histograms is among the rows looked at."
				: "No histograms were kept of it (outfeed.capture histogram).");
		return;
	}
	area.x += LABEL_WIDTH;
	area.width -= LABEL_WIDTH + 1;
	area.height -= 1;
	map = view_pane_at(pane->canvas, area);
	view_heat_map(&map, h->count, h->columns, h->bins, &scale);
	draw_labels(h, &map, pane);
	draw_steps(h, &scale, pane);
}
