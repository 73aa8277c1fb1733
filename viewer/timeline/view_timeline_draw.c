/*
 * Drawing the timeline from its columns, and what surrounds them: the heading, labels, idle times,
 * the overview, counters, arrows, and the comparison of two.
 *
 * A span at least one cell wide is a bar with its label (phase letter and micro-batch, or name);
 * several spans in one cell are a column whose height is their share of the time. The bubble is
 * shaded with a character. Of the device's steps, a column's colour is the kind with most of its
 * time, its height the share of active tiles (or the tile balance), and below it is a letter, or a
 * name if the step is wide. No query, no allocation, no change of state.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define FILTER_WIDTH 16
#define WAYS_FROM    120 /* least width to show the names of all ways */

/* ---- styles ---------------------------------------------------------------------------------- */

static const struct view_phase_style {
	char phase;
	const char *name;          /* in the legend */
	enum view_style even, odd; /* bars of micro-batches */
	enum view_style text;
	enum view_glyph fill;
} view_phases[] = {
	{IPS_FORWARD, "forward", VIEW_FORWARD, VIEW_FORWARD_2, VIEW_FORWARD_TEXT,
	 VIEW_GLYPH_FILL_FORWARD},
	{IPS_BACKWARD, "backward", VIEW_BACKWARD, VIEW_BACKWARD_2, VIEW_BACKWARD_TEXT,
	 VIEW_GLYPH_FILL_BACKWARD},
	{IPS_WEIGHTS, "weights", VIEW_WEIGHT, VIEW_WEIGHT, VIEW_WEIGHT_TEXT,
	 VIEW_GLYPH_FILL_WEIGHT},
	{IPS_RECOMPUTATION, "recomputation", VIEW_RECOMPUTE, VIEW_RECOMPUTE, VIEW_RECOMPUTE_TEXT,
	 VIEW_GLYPH_FILL_RECOMPUTE},
	{IPS_UPDATE, "update", VIEW_UPDATE, VIEW_UPDATE, VIEW_UPDATE_TEXT, VIEW_GLYPH_FILL_UPDATE},
	{0, "other", VIEW_OTHER, VIEW_OTHER, VIEW_OTHER_TEXT, VIEW_GLYPH_FILL_OTHER},
};

static const struct view_phase_style *view_phase_style(const struct view_timeline *tl,
						       const struct prof_bar *bar)
{
	const char phase = view__phase(tl, bar);
	size_t i = 0;

	while (view_phases[i].phase && view_phases[i].phase != phase)
		i++;
	return &view_phases[i];
}

static const struct {
	const char *brief;
	enum view_style style;
	enum view_glyph glyph;
} view_causes[VIEW_CAUSES] = {
	{"", VIEW_BUBBLE, VIEW_GLYPH_SHADE},
	{"up", VIEW_RAMP_UP, VIEW_GLYPH_FILL_RAMP_UP},
	{"down", VIEW_RAMP_DOWN, VIEW_GLYPH_FILL_RAMP_DOWN},
	{"imb.", VIEW_IMBALANCE, VIEW_GLYPH_FILL_IMBALANCE},
	{"comm.", VIEW_COMMUNICATION, VIEW_GLYPH_FILL_COMMUNICATION},
};

/* ---- steps of the device --------------------------------------------------------------------- */

static const struct {
	const char *name, *brief;
	enum view_style style;
	char letter;
} view_kinds[VIEW_KINDS] = {{"no run", "no run", VIEW_DIM, '.'},
			    {"compute", "comp", VIEW_COMPUTE, 'C'},
			    {"exchange", "exch", VIEW_EXCHANGE, 'X'},
			    {"sync", "sync", VIEW_SYNC, 'S'},
			    {"host copy", "host", VIEW_HOST_COPY, 'H'}};

static enum view_kind view_cell_kind(const struct view_bsp *cell)
{
	int best = VIEW_KIND_IDLE;

	for (int k = VIEW_KIND_COMPUTE; k < VIEW_KINDS; k++)
		if (cell->cycles[k] > cell->cycles[best])
			best = k;
	return (enum view_kind)best;
}

/* Draw the column above the names. If steps share columns, the kinds are stacked by share, compute
 * at the bottom, and a row shows the kind at its middle. Else the kind with most time is as high as
 * the share of active tiles, or the tile balance; steps without a number count as all tiles. */
static void view_draw_column(const struct view_timeline *tl, const struct view_lane *lane,
			     struct view_pane *pane, int x, int rows, bool cursor)
{
	const struct view_bsp *cell = &lane->bsp[x];
	const double busy = cell->all - cell->cycles[VIEW_KIND_IDLE];
	double height = 0;

	if (cell->all > 0 && tl->choice.balance)
		height = cell->balanced > 0 ? cell->balance / cell->balanced
					    : fmin(1, cell->balance / cell->all);
	else if (cell->all > 0)
		height = fmin(1, (cell->tiles + (busy - cell->counted)) / cell->all);
	height *= rows;
	for (int i = 0; i < rows; i++) {
		const double middle = cell->all * (rows - 1 - i + 0.5) / rows;
		double part = height - (rows - 1 - i), below = 0;
		int kind = (int)view_cell_kind(cell);

		if (tl->device.mixed) {
			kind = VIEW_KIND_COMPUTE;
			while (kind < VIEW_KINDS && middle >= below + cell->cycles[kind])
				below += cell->cycles[kind++];
			part = kind < VIEW_KINDS;
		}
		if (part > 0)
			view_put(pane, x, lane->y + i, view_kinds[kind].style,
				 pane->canvas->plain || pane->canvas->ascii
					 ? (uint32_t)(unsigned char)view_kinds[kind].letter
					 : view_level_char(pane->canvas, part));
		else if (cursor)
			view_glyphs(pane, x, lane->y + i, VIEW_DIM, VIEW_GLYPH_VERTICAL_DOTS, 1);
	}
}

/* Draw "MatMul/Dense_256" under a wide step, else the letter of its kind. */
static void view_draw_step_names(const struct view_timeline *tl, const struct view_lane *lane,
				 struct view_pane *pane, int y, int cursor_x)
{
	for (int x = 0, end; x < tl->width; x = end) {
		const struct view_bsp *cell = &lane->bsp[x];
		const enum view_kind kind = view_cell_kind(cell);
		const enum view_style style = view_kinds[kind].style;
		const uint32_t letter = (unsigned char)view_kinds[kind].letter;
		const struct prof_step *step = kind == VIEW_KIND_IDLE ? NULL : cell->step;
		const char *name = NULL;

		for (end = x + 1; step && end < tl->width && lane->bsp[end].step == step; end++)
			;
		if (cell->dark) {
			view_glyphs(pane, x, y, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
			continue;
		}
		if (step)
			name = step->operation ? step->operation : step->name;
		if (name && strrchr(name, '/') && utf8_columns(name) > end - x - 3)
			name = strrchr(name, '/') + 1;
		name = end - x >= 7 ? name : NULL;
		for (int i = x; i < (name ? x + 1 : end); i++)
			view_put(pane, i, y, i == cursor_x ? VIEW_SELECTED : style, letter);
		if (name)
			view_text_cut(pane, x + 2, y, end - x - 3, style, name);
	}
}

static void view_draw_device(const struct view_timeline *tl, const struct view_lane *lane,
			     struct view_pane *pane)
{
	const int height = view__lane_height(lane);
	const int cursor_x = pane->canvas->plain ? -1 : view__cursor_column(tl, 1);

	if (!lane->bsp)
		return;
	for (int x = 0; height > 1 && x < tl->width; x++)
		view_draw_column(tl, lane, pane, x, height - 1, x == cursor_x);
	view_draw_step_names(tl, lane, pane, lane->y + height - 1, cursor_x);
}

/* Draw "C compute 16.4 %  X exchange 2.0 % ...  height: active tiles". */
static void view_draw_device_key(const struct view_timeline *tl, struct view_pane *pane, int x)
{
	const bool wide = pane->rect.width - x >= 100;
	double all = 0;

	for (int k = 0; k < VIEW_KINDS; k++)
		all += tl->device.share[k];
	if (all <= 0) {
		view_text(pane, x, 0, VIEW_WARN, "no device steps are recorded here");
		return;
	}
	for (int k = 1; k <= VIEW_KINDS; k++) {
		const int kind = k % VIEW_KINDS; /* idle last */

		x += view_textf(pane, x, 0, view_kinds[kind].style, "%c %s",
				view_kinds[kind].letter,
				wide ? view_kinds[kind].name : view_kinds[kind].brief);
		x += 2 + view_textf(pane, x + 1, 0, VIEW_NORMAL, "%.1f%s",
				    tl->device.share[kind] / all * 100, wide ? " %" : "");
	}
	if (tl->device.stride > 1)
		view_textf(pane, x, 0, VIEW_DIM, "1 run of %lld", (long long)tl->device.stride);
	else
		view_textf(pane, x, 0, VIEW_DIM, "height: %s",
			   tl->device.mixed     ? "share of time"
			   : tl->choice.balance ? "tile balance"
						: "active tiles");
}

/* ---- bars ------------------------------------------------------------------------------------ */

struct view_bar_row {
	const struct view_timeline *tl;
	const struct view_lane *lane;
	const struct view_lane_cell *columns;
	struct view_pane *pane;
	int number;   /* of the row in its lane */
	int y, thick; /* screen rows */
	int label_y;  /* row of the labels */
	int cursor_x; /* -1: on another clock */
	int64_t column_ns;
};

/* Is the cell's bar at least one cell wide? Others are drawn by their share of the cell. */
static bool view_is_wide(const struct view_bar_row *row, int x)
{
	const struct view_lane_cell *column = &row->columns[x];
	const struct prof_bar *bar = column->bar >= 0 ? &row->lane->bars[column->bar] : NULL;

	return bar && bar->span_id != IPS_NULL && bar->dur_ns >= row->column_ns;
}

/* Does a wide bar take at least half of the cell? */
static bool view_is_solid(const struct view_bar_row *row, int x)
{
	return view_is_wide(row, x) && row->columns[x].busy_ns * 2 >= row->column_ns;
}

/* Compose the label of a bar: "F0", "F0 stage 0 forward", a name. */
static void view_bar_label(const struct view_bar_row *row, const struct prof_bar *bar, int width,
			   char *out, size_t size)
{
	const struct view_site *site = view__site(row->tl, bar->site_id);
	const char *name = site && site->name ? site->name : "";
	const char phase = view__phase(row->tl, bar);
	char head[32];

	if (row->lane->bar_row) {
		view__name_part(name, row->number - row->lane->bar_row[bar - row->lane->bars], out,
				size);
		return;
	}
	if (!phase || bar->depth != row->lane->work_depth) {
		const char *last = strrchr(name, '/');

		/* The end of "Stage0/Infeed" says more than the beginning. */
		snprintf(out, size, "%s",
			 last && last[1] && utf8_columns(name) > width ? last + 1 : name);
		return;
	}
	if (bar->microbatch == IPS_NULL || phase == IPS_UPDATE)
		snprintf(head, sizeof(head), "%c", phase);
	else
		snprintf(head, sizeof(head), "%c%lld", phase, (long long)bar->microbatch);
	if ((int)strlen(head) > width)
		snprintf(out, size, "%c", phase);
	else if (width >= (int)strlen(head) + 6 && name[0])
		snprintf(out, size, "%s %s", head, name);
	else
		snprintf(out, size, "%s", head);
}

static void view_draw_span(const struct view_bar_row *row, int from, int to)
{
	const struct prof_bar *bar = &row->lane->bars[row->columns[from].bar];
	const struct view_phase_style *phase = view_phase_style(row->tl, bar);
	const bool plain = row->pane->canvas->plain;
	/* Plain text has no cursor. */
	const bool selected =
		bar->span_id == row->tl->under.selected && !row->tl->under.in_gap && !plain;
	const enum view_style style = selected ? VIEW_SELECTED
				      : bar->microbatch != IPS_NULL && bar->microbatch % 2
					      ? phase->odd
					      : phase->even;
	const int width = to - from;
	char label[128];
	int used;

	for (int y = row->y; y < row->y + row->thick; y++) {
		if (plain)
			view_glyphs(row->pane, from, y, style, phase->fill, width);
		else
			view_fill(row->pane, from, y, width, style);
	}
	view_bar_label(row, bar, width, label, sizeof(label));
	used = view_text_label(row->pane, from, row->label_y, width, style, label);
	if (plain && used < width && used > 3)
		view_put(row->pane, from + used, row->label_y, style, ' ');
	if (selected && width >= 4) {
		view_put(row->pane, from, row->label_y, style, '[');
		view_text_label(row->pane, from + 1, row->label_y, width - 2, style, label);
		view_put(row->pane, to - 1, row->label_y, style, ']');
	}
	if (bar->open && width >= 2)
		view_glyphs(row->pane, to - 1, row->label_y, style, VIEW_GLYPH_ARROW, 1);
}

/* Draw a cell of several spans, or of one much shorter than the cell. */
static void view_draw_share(const struct view_bar_row *row, int x)
{
	const struct view_lane_cell *column = &row->columns[x];
	const struct prof_bar *bar = &row->lane->bars[column->bar];
	const double share = (double)column->busy_ns / (double)row->column_ns;
	const struct view_phase_style *phase = view_phase_style(row->tl, bar);
	const int thick = row->thick;

	for (int i = 0; i < thick; i++) {
		/* The lowest row of the bar fills first. */
		const double part = share * thick - (thick - 1 - i);

		if (part > 0)
			view_put(row->pane, x, row->y + i, phase->text,
				 view_level_char(row->pane->canvas, part));
	}
}

/* Draw a cell without work: of a bubble, by its cause if that is chosen; or not traced. */
static void view_draw_gap(const struct view_bar_row *row, int x)
{
	const struct view_lane_cell *cell = &row->columns[x];
	const bool dark = cell->dark && row->number == 0, cursor = x == row->cursor_x;
	const bool bubble = cell->cause || (row->lane->pipeline && cell->run && !dark);

	for (int y = row->y; y < row->y + row->thick; y++) {
		if (bubble)
			view_glyphs(row->pane, x, y,
				    cursor ? VIEW_SELECTED : view_causes[cell->cause].style,
				    view_causes[cell->cause].glyph, 1);
		else if (cursor)
			view_glyphs(row->pane, x, y, VIEW_DIM, VIEW_GLYPH_VERTICAL_DOTS, 1);
		else if (dark)
			view_glyphs(row->pane, x, y, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
	}
}

/* Is it the same bar? In a flame also an adjacent bar whose name has the same parts up to this
 * row. */
static bool view_is_same_bar(const struct view_bar_row *row, int x, int next)
{
	const struct view_lane *lane = row->lane;
	const int a = row->columns[x].bar, b = row->columns[next].bar;
	const struct view_site *from, *to;
	const char *ends;
	size_t length;

	if (a == b || !lane->bar_row)
		return a == b;
	from = view__site(row->tl, lane->bars[a].site_id);
	to = view__site(row->tl, lane->bars[b].site_id);
	if (!from || !to || !from->name || !to->name || lane->bar_row[a] != lane->bar_row[b] ||
	    lane->bars[a].microbatch != lane->bars[b].microbatch ||
	    lane->bars[b].start_ns > lane->bars[a].start_ns + lane->bars[a].dur_ns)
		return false;
	ends = from->name;
	for (int part = lane->bar_row[a]; part <= row->number && ends; part++) {
		ends = strchr(ends, '/');
		ends += ends != NULL;
	}
	length = ends ? (size_t)(ends - from->name) : 0;
	return length > 0 && strncmp(from->name, to->name, length) == 0;
}

/* Draw one row. The cause of a cell, which is idle for at least half, takes precedence over
 * work. */
static void view_draw_row(const struct view_bar_row *row)
{
	const int width = row->tl->width;

	for (int x = 0, end; x < width; x = end) {
		const struct view_lane_cell *cell = &row->columns[x];
		const bool solid = !cell->cause && view_is_solid(row, x);

		end = x + 1;
		while (solid && end < width && view_is_solid(row, end) &&
		       !row->columns[end].cause && view_is_same_bar(row, x, end))
			end++;
		if (cell->cause || cell->bar < 0 || (!solid && view_is_wide(row, x)))
			view_draw_gap(row, x);
		else if (cell->left_out) {
			const struct prof_bar *bar = &row->lane->bars[row->columns[x].bar];
			const bool selected = bar->span_id == row->tl->under.selected &&
					      !row->tl->under.in_gap && bar->span_id != IPS_NULL &&
					      !row->pane->canvas->plain;

			view_glyphs(row->pane, x, row->label_y, selected ? VIEW_SELECTED : VIEW_DIM,
				    VIEW_GLYPH_LEFT_OUT, end - x);
		} else if (solid)
			view_draw_span(row, x, end);
		else
			view_draw_share(row, x);
	}
}

static void view_draw_lane(const struct view_timeline *tl, const struct view_lane *lane,
			   struct view_pane *pane)
{
	const int clock = lane->track->clock;
	const struct view_window window = tl->clock[clock].window;
	struct view_bar_row row = {.tl = tl,
				   .lane = lane,
				   .pane = pane,
				   .cursor_x = pane->canvas->plain ? -1
								   : view__cursor_column(tl, clock),
				   .column_ns = max((window.to - window.from) / tl->width, 1)};
	static const char text[] = " not traced ";
	const int64_t size = sizeof(text);
	const struct view_window device = tl->clock[IPS_DEVICE].window;
	struct view_dark dark;

	if (tl->choice.way == VIEW_BSP)
		view_draw_device(tl, lane, pane);
	if (!lane->columns)
		return;
	for (int r = 0; r < lane->rows && tl->choice.way != VIEW_BSP; r++) {
		row.columns = &lane->columns[(size_t)r * (size_t)tl->width];
		row.number = r;
		row.y = view__row_y(lane, r);
		row.thick = view__row_thick(lane, r);
		row.label_y = row.y + (row.thick - 1) / 2;
		view_draw_row(&row);
	}
	/* Write "not traced" over untraced ranges that are wide enough. */
	for (int64_t at = device.from;
	     view__next_untraced(tl, lane, at, &dark) && dark.at.from < device.to;
	     at = dark.at.to) {
		const int64_t left = view_window_column(device, tl->width, dark.at.from);
		const int64_t from = left < 0 ? 0 : left + 1;
		const int64_t to = min(view_window_column(device, tl->width, dark.at.to - 1),
				       (int64_t)tl->width);

		if (to - from >= size)
			view_text(pane, (int)(from + (to - from - size) / 2), view__row_y(lane, 0),
				  VIEW_DIM, text);
	}
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Format a counter's value in the unit that its name ends in. */
static const char *view_counter_text(const char *name, double value, char out[FMT_SIZE])
{
	const size_t length = strlen(name);

	if (isnan(value)) {
		snprintf(out, FMT_SIZE, "-");
		return out;
	}
	if (length >= 5 && strcmp(name + length - 5, "bytes") == 0 && value >= 0 && value < 1e18)
		return fmt_bytes(out, (uint64_t)value);
	if (length >= 3 && strcmp(name + length - 3, "_ns") == 0 && fabs(value) < 1e18)
		return fmt_ns(out, (int64_t)value);
	if (fabs(value) < 1e9 && value == floor(value))
		return fmt_count(out, (int64_t)value);
	return fmt_real(out, value);
}

/* Return the counter's name, prefixed with its track if another counter has the same name. */
static const char *view_strip_name(const struct view_counters *all, int i, char *out, size_t size)
{
	const struct prof_counter *counter = all->strips[i].counter;

	for (int j = 0; j < all->count; j++)
		if (&all->series[j] != counter && strcmp(all->series[j].name, counter->name) == 0) {
			snprintf(out, size, "%s %s", counter->track, counter->name);
			return out;
		}
	return counter->name;
}

/* Draw a curve of Braille dots; in ASCII fill the cells from below instead. */
static void view_draw_strip(const struct view_strip *strip, struct view_pane *plot)
{
	const int height = plot->rect.height, count = 2 * plot->rect.width;

	if (!plot->canvas->ascii) {
		view_chart_curve(plot, VIEW_CURVE, strip->points, count, strip->low, strip->high);
		return;
	}
	for (int i = 0; i < count; i++) {
		const struct view_chart_point *a = &strip->points[i & ~1], *b = a + 1;
		const double most = fmax(a->greatest, b->greatest);
		const double level = (most - strip->low) / (strip->high - strip->low);

		for (int y = 0; y < height && isfinite(most); y++)
			view_put(plot, i / 2, y, VIEW_CURVE,
				 view_level_char(plot->canvas,
						 fmax(level * height - (height - 1 - y),
						      y == height - 1 ? 0.01 : 0)));
	}
}

static void view_draw_strip_texts(const struct view_timeline *tl, int i, struct view_pane *pane)
{
	const struct view_strip *strip = &tl->counters.strips[i];
	const char *name = strip->counter->name;
	const int label = tl->areas.labels.width, x = tl->mark ? 3 : 1;
	char text[VIEW_PATH_SIZE], low[FMT_SIZE], high[FMT_SIZE];

	if (tl->mark)
		view_put(pane, 1, 0, tl->mark == 'S' ? VIEW_SOURCE : VIEW_TARGET,
			 (uint32_t)tl->mark);
	view_text_cut(pane, x, 0, label - x - 1, VIEW_NORMAL,
		      view_strip_name(&tl->counters, i, text, sizeof(text)));
	if (tl->areas.idle.width > 0)
		view_text_right(pane, pane->rect.width - tl->areas.idle.width, 0,
				tl->areas.idle.width, VIEW_BOLD,
				view_counter_text(name, strip->at_cursor, low));
	if (pane->rect.height < 2 || strip->flat)
		return;
	snprintf(text, sizeof(text), "%s to %s", view_counter_text(name, strip->low, low),
		 view_counter_text(name, strip->high, high));
	view_text_cut(pane, x, 1, label - x - 1, VIEW_DIM, text);
}

static void view_draw_strips(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_counters *all = &tl->counters;
	struct view_rect rect = all->area;

	rect.height = all->rows;
	for (int i = 0; i < all->strip_count; i++, rect.y += all->rows) {
		struct view_pane strip = view_pane_sub(pane, rect);
		struct view_pane plot =
			view_pane_sub(pane, (struct view_rect){tl->areas.lanes.x, rect.y, tl->width,
							       rect.height});
		const int x = view__cursor_column(tl, all->strips[i].counter->clock);

		view_draw_strip_texts(tl, i, &strip);
		if (all->strips[i].low <= all->strips[i].high)
			view_draw_strip(&all->strips[i], &plot);
		for (int y = 0; y < rect.height && x >= 0 && !pane->canvas->plain; y++)
			view_restyle(&plot, x, y, VIEW_SELECTED);
	}
}

/* ---- arrows ---------------------------------------------------------------------------------- */

/* Draw over an empty cell. */
static void view_arrow_cell(struct view_pane *pane, int x, int y, enum view_glyph glyph)
{
	if (x >= 0 && y >= 0 && x < pane->rect.width && y < pane->rect.height &&
	    view_char_at(pane, x, y) == ' ' && view_style_at(pane, x, y) == VIEW_NORMAL)
		view_glyphs(pane, x, y, VIEW_SELECT_MARK, glyph, 1);
}

/* The screen row of a span in the lanes' area; above or below it, if its lane is not visible. */
static int view_span_y(const struct view_timeline *tl, const struct view_pane *pane,
		       int64_t track_id, int depth)
{
	const int lane = view__lane_of(tl, track_id);
	const struct view_lane *at = lane < 0 ? NULL : &tl->lanes[lane];
	int row;

	if (!at || at->rows == 0)
		return lane >= 0 && lane < tl->scroll ? -1 : pane->rect.height;
	row = view__row_of_depth(tl, at, depth);
	return view__row_y(at, row) + (view__row_thick(at, row) - 1) / 2;
}

static void view_draw_arrows(const struct view_timeline *tl, struct view_pane *pane)
{
	if (pane->canvas->plain || tl->choice.way == VIEW_BSP)
		return;
	for (int i = 0; i < tl->arrows.count; i++) {
		const struct view_arrow *arrow = &tl->arrows.all[i];
		const struct prof_span *from = arrow->in ? &arrow->other : &tl->under.span;
		const struct prof_span *to = arrow->in ? &tl->under.span : &arrow->other;
		const struct view_window window = view__clock((struct view_timeline *)tl)->window;
		const int64_t end = from->start_ns + max(from->dur_ns, 0);
		const int64_t left = view_window_column(window, tl->width, min(end, to->start_ns));
		const int64_t right = view_window_column(window, tl->width, to->start_ns);
		const int width = tl->width, x = (int)min(max(left, 0), (int64_t)width - 1),
			  until = (int)min(max(right, 0), (int64_t)width);
		const int y = view_span_y(tl, pane, from->track_id, from->depth);
		const int to_y = view_span_y(tl, pane, to->track_id, to->depth),
			  step = to_y > y ? 1 : -1;

		if (right < 0 || left >= width || y == to_y)
			continue;
		for (int at = y + step; at != to_y; at += step)
			view_arrow_cell(pane, x, at,
					right > left || at + step != to_y ? VIEW_GLYPH_VERTICAL
					: step > 0                        ? VIEW_GLYPH_DOWN
									  : VIEW_GLYPH_UP);
		if (right > left) {
			view_arrow_cell(pane, x, to_y,
					step > 0 ? VIEW_GLYPH_CORNER : VIEW_GLYPH_TOP_LEFT);
			for (int at = x + 1; at < until - 1; at++)
				view_arrow_cell(pane, at, to_y, VIEW_GLYPH_HORIZONTAL);
			view_arrow_cell(pane, until - 1, to_y, VIEW_GLYPH_SELECT);
		}
		if (to_y < 0 || to_y >= pane->rect.height)
			view_arrow_cell(pane, x, to_y < 0 ? 0 : pane->rect.height - 1,
					to_y < 0 ? VIEW_GLYPH_UP : VIEW_GLYPH_DOWN);
	}
}

/* ---- beside the lanes ------------------------------------------------------------------------ */

/* The screen row of a lane's name and idle time: the middle of @row. */
static int view_middle_y(const struct view_lane *lane, int row)
{
	return view__row_y(lane, row) + (view__row_thick(lane, row) - 1) / 2;
}

/* Draw the names of clocks and lanes, mark the cursor's lane, and draw arrows if lanes are
 * outside. */
static void view_draw_labels(const struct view_timeline *tl, struct view_pane *pane)
{
	const enum view_style style = tl->mark == 'S' ? VIEW_SOURCE
				      : tl->mark      ? VIEW_TARGET
						      : VIEW_TITLE;
	const bool cycles = tl->choice.cycles && tl->facts.hertz > 0;
	const int right = pane->rect.width - 1;

	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_textf(pane, 0, tl->clock[c].axis_y, style, "%.2s%s",
				   tl->mark == 'S' ? "S "
				   : tl->mark      ? "T "
						   : "",
				   c == 0   ? "host"
				   : cycles ? "device cycles"
					    : "device (sim)");
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const bool here = i == tl->cursor.lane && !pane->canvas->plain && tl->mark != 'T';
		const int y = view_middle_y(lane, max(lane->work_row, 0));

		if (lane->rows == 0)
			continue;
		if (tl->mark)
			view_put(pane, 1, y, style, (uint32_t)tl->mark);
		view_text_middle(pane, tl->mark ? 3 : 1, y, pane->rect.width - (tl->mark ? 4 : 2),
				 here ? VIEW_BOLD : VIEW_NORMAL, view__lane_name(tl, i));
		if (here)
			view_glyphs(
				pane, 0,
				view_middle_y(lane, view__row_of_depth(tl, lane, tl->cursor.depth)),
				VIEW_KEY, VIEW_GLYPH_SELECT, 1);
	}
	if (tl->scroll > 0)
		view_glyphs(pane, right, 0, VIEW_KEY, VIEW_GLYPH_UP, 1);
	if (tl->lanes[tl->lane_count - 1].rows == 0)
		view_glyphs(pane, right, pane->rect.height - 1, VIEW_KEY, VIEW_GLYPH_DOWN, 1);
}

/* Draw the whole run on one row; brackets enclose the window. The label is "whole run", or if the
 * heading is not shown, the bubble. */
static void view_draw_whole_run(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_overview *all = &tl->overview;
	const struct view_clock *clock = &tl->clock[view__lead(tl)];
	const struct view_bubble *bubble = &tl->bubbles.shown[view__lead(tl)];
	const int left = tl->areas.lanes.x;
	const int64_t column_ns = (clock->extent.to - clock->extent.from) / tl->width;
	const int from = (int)view_window_column(clock->extent, tl->width, clock->window.from);
	const int to = (int)view_window_column(clock->extent, tl->width, clock->window.to - 1);
	char text[32] = "whole run";

	if (tl->heading.height == 0 && !tl->mark && bubble->runs > 0 && !isnan(bubble->idle))
		snprintf(text, sizeof(text), "bubble %.1f%%", bubble->idle * 100);
	view_text_cut(pane, utf8_columns(text) + 1 < left, 0, left, VIEW_DIM, text);
	for (int x = 0; x < tl->width && all->columns && all->width == tl->width; x++) {
		const struct view_lane_cell *column = &all->columns[x];

		if (column->bar < 0 && column->dark)
			view_glyphs(pane, left + x, 0, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
		else if (column->bar >= 0 && column->left_out)
			view_glyphs(pane, left + x, 0, VIEW_DIM, VIEW_GLYPH_LEFT_OUT, 1);
		else if (column->bar >= 0 && column_ns > 0)
			view_put(pane, left + x, 0,
				 view_phase_style(tl, &all->bars[column->bar])->text,
				 view_level_char(pane->canvas,
						 (double)column->busy_ns / (double)column_ns));
	}
	if (from == 0 && to >= tl->width - 1)
		return;
	view_put(pane, left + from, 0, VIEW_KEY, '[');
	view_put(pane, left + (to > from ? to : from + 1), 0, VIEW_KEY, ']');
}

/* ---- the heading ----------------------------------------------------------------------------- */

/* Draw "bubble 55.1 % (theory 39.4 %): ramp-up 4.3, ..., update 51"; each cause after its fill
 * if the bubble is split. Theory, which the Summary shows as well, is dropped first if space is
 * short. */
static void view_draw_bubble(const struct view_timeline *tl, struct view_pane *pane, int x)
{
	const struct view_bubble *bubble = &tl->bubbles.shown[view__lead(tl)];
	const bool wide = pane->rect.width - x >= 100, fills = tl->choice.by_cause;
	char causes[VIEW_CAUSES][32], theory[32] = "", text[64], number[FMT_SIZE];
	int room = pane->rect.width - x;

	if (bubble->runs < 1 || isnan(bubble->idle))
		return;
	snprintf(text, sizeof(text), "bubble %.1f %%", bubble->idle * 100);
	if (!isnan(bubble->theory))
		snprintf(theory, sizeof(theory), " (theory %.1f %%)", bubble->theory * 100);
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		snprintf(causes[i], sizeof(causes[i]), "%s %.1f%s",
			 wide ? view__cause_names[i] : view_causes[i].brief, bubble->part[i] * 100,
			 i + 1 < VIEW_CAUSES && wide ? "," : "");
		room -= 1 + fills + utf8_columns(causes[i]);
	}
	x += view_text(pane, x, 0, VIEW_BOLD, text);
	if (room > utf8_columns(text) + utf8_columns(theory))
		x += view_text(pane, x, 0, VIEW_NORMAL, theory);
	x += view_text(pane, x, 0, VIEW_NORMAL, ":");
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		x++;
		if (fills)
			view_glyphs(pane, x, 0, view_causes[i].style, view_causes[i].glyph, 1);
		x += fills;
		x += view_text(pane, x, 0, VIEW_NORMAL, causes[i]);
	}
	/* The runs that the numbers are of, if it fits. */
	text[0] = '\0';
	if (bubble->mean)
		snprintf(text, sizeof(text), "all %s runs", fmt_count(number, bubble->runs));
	else if (bubble->runs > 1)
		snprintf(text, sizeof(text), "%s runs", fmt_count(number, bubble->runs));
	else if (bubble->update != IPS_NULL)
		snprintf(text, sizeof(text), "update %s", fmt_count(number, bubble->update));
	if (x + 2 + utf8_columns(text) < pane->rect.width)
		view_text_right(pane, 0, 0, pane->rect.width - 1, VIEW_DIM, text);
}

/* Draw the legend: the phases that have a bar on the leading clock, then kinds of idle time. */
static void view_draw_legend(const struct view_timeline *tl, struct view_pane *pane)
{
	bool phase[ARRAY_LEN(view_phases)] = {false}, bubble = false, dark = false, out = false;
	int x = 1;

	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		for (int c = 0; lane->columns && c < lane->rows * tl->width; c++) {
			const struct view_lane_cell *cell = &lane->columns[c];

			bubble |= cell->run && lane->pipeline;
			dark |= cell->dark;
			out |= cell->left_out && cell->bar >= 0;
			if (cell->bar >= 0 && !cell->left_out &&
			    lane->track->clock == view__lead(tl))
				phase[view_phase_style(tl, &lane->bars[cell->bar]) - view_phases] =
					true;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(view_phases); i++) {
		if (!phase[i])
			continue;
		if (pane->canvas->plain)
			view_glyphs(pane, x, 1, view_phases[i].even, view_phases[i].fill, 2);
		else
			view_fill(pane, x, 1, 2, view_phases[i].even);
		if (view_phases[i].phase)
			view_put(pane, x, 1, view_phases[i].even, (uint32_t)view_phases[i].phase);
		x += 3;
		x += view_text(pane, x, 1, VIEW_DIM, view_phases[i].name) + 2;
	}
	for (int i = 0; i < 3; i++) {
		static const struct {
			const char *name;
			enum view_style style;
			enum view_glyph glyph;
		} rest[] = {{"bubble", VIEW_BUBBLE, VIEW_GLYPH_SHADE},
			    {"not traced", VIEW_DIM, VIEW_GLYPH_UNTRACED},
			    {"left out", VIEW_DIM, VIEW_GLYPH_LEFT_OUT}};
		const bool path = i == 2 && tl->choice.critical && !tl->filter.active;

		/* The first line shows the bubble's causes if it is split. */
		if (i == 0 ? !bubble || tl->choice.by_cause : i == 1 ? !dark : !out)
			continue;
		view_glyphs(pane, x, 1, rest[i].style, rest[i].glyph, 2);
		x += 3;
		x += view_text(pane, x, 1, VIEW_DIM, path ? "off the path" : rest[i].name) + 2;
	}
}

/* Draw the ways to show lanes with the current one marked, or only that if space is short; then the
 * choices made by keys, and the bubble or the kinds of steps. */
static void view_draw_head(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_chosen *choice = &tl->choice;
	char text[48];
	int x = 1;

	if (pane->rect.height < 1)
		return;
	if (pane->rect.width < WAYS_FROM)
		x += view_text(pane, x, 0, VIEW_TITLE, view__way_names[choice->way]);
	for (int w = 0; w < VIEW_WAYS && pane->rect.width >= WAYS_FROM; w++) {
		const bool here = w == (int)choice->way;

		x += view_textf(pane, x, 0, here ? VIEW_TITLE : VIEW_DIM, here ? "[%s]" : " %s ",
				view__way_names[w]);
	}
	x += 2;
	view__only_text(tl, text, sizeof(text));
	if (choice->only_ipu != IPS_NULL || choice->only_replica != IPS_NULL)
		x += view_text(pane, x, 0, VIEW_WARN, text) + 2;
	if (tl->filter.active && choice->way != VIEW_BSP) {
		x += view_text(pane, x, 0, VIEW_WARN, "filter ");
		x += view_text_cut(pane, x, 0, FILTER_WIDTH, VIEW_WARN, tl->filter.text) + 2;
	}
	if (choice->fold != VIEW_FOLD_NONE && choice->way != VIEW_BSP)
		x += view_textf(pane, x, 0, VIEW_WARN, "folded by %s",
				view__fold_names[choice->fold]) +
		     2;
	if (choice->critical && choice->way != VIEW_BSP)
		x += view_text(pane, x, 0, VIEW_WARN, "critical path") + 2;
	if (choice->way == VIEW_BSP)
		view_draw_device_key(tl, pane, x);
	else
		view_draw_bubble(tl, pane, x);
}

/* ---- the table above two timelines ----------------------------------------------------------- */

#define FIGURES 7

/* The figure of column @column; NaN: unknown. */
static double view_figure(const struct view_bubble *bubble, int column)
{
	const double figures[FIGURES] = {
		(double)bubble->mean_makespan_ns,
		bubble->idle * 100,
		bubble->theory * 100,
		bubble->part[VIEW_CAUSE_RAMP_UP] * 100,
		bubble->part[VIEW_CAUSE_RAMP_DOWN] * 100,
		bubble->part[VIEW_CAUSE_IMBALANCE] * 100,
		bubble->part[VIEW_CAUSE_COMMUNICATION] * 100,
	};

	return bubble->runs < 1 ? NAN : figures[column];
}

static void view_figure_text(double value, int column, bool sign, char *out, size_t size)
{
	char ns[FMT_SIZE];

	if (isnan(value))
		snprintf(out, size, "-");
	else if (column == 0)
		snprintf(out, size, "%s%s", sign && value > 0 ? "+" : "",
			 fmt_ns(ns, (int64_t)value));
	else
		snprintf(out, size, sign && fabs(value) >= 0.05 ? "%+.1f" : "%.1f",
			 fabs(value) < 0.05 ? 0 : value);
}

/* Draw Source, Target and Diff for the runs in the windows: makespan, and the bubble in % of IPUs x
 * makespan. In a low body draw one line. */
static void view_draw_comparison(const struct view_timeline *tl, struct view_pane *whole)
{
	static const char *const titles[FIGURES] = {"makespan",  "bubble %",  "theory", "ramp-up",
						    "ramp-down", "imbalance", "comm."};
	static const struct {
		const char *name;
		enum view_style style;
	} rows[] = {{"Source", VIEW_SOURCE}, {"Target", VIEW_TARGET}, {"Diff", VIEW_BOLD}};
	struct view_pane table = view_pane_sub(whole, tl->beside.head), *pane = &table;
	const int left = 9, cells = min(max((table.rect.width - left - 1) / FIGURES, 9), 16);
	const struct view_bubble *source = &tl->bubbles.shown[view__lead(tl)];
	const struct view_bubble *target = &tl->target->bubbles.shown[view__lead(tl)];
	char text[FMT_SIZE + 8];

	if (table.rect.height < VIEW_TABLE_ROWS) {
		const double mine = view_figure(source, 1), its = view_figure(target, 1);

		if (table.rect.height > 0 && (isnan(mine) || isnan(its)))
			view_text(pane, 1, 0, VIEW_DIM, "no pipeline runs to compare");
		view_figure_text(its - mine, 1, true, text, sizeof(text));
		if (table.rect.height > 0 && !isnan(mine) && !isnan(its))
			view_textf(pane, 1, 0, VIEW_BOLD, "bubble: S %.1f %% T %.1f %% diff %s",
				   mine, its, text);
		return;
	}
	for (int i = 0; i < FIGURES && left + (i + 1) * cells <= table.rect.width; i++) {
		const double mine = view_figure(source, i), its = view_figure(target, i);
		const double values[] = {mine, its, its - mine};

		view_text_right(pane, left + i * cells, 0, cells, VIEW_DIM, titles[i]);
		for (int r = 0; r < 3; r++) {
			view_figure_text(values[r], i, r == 2, text, sizeof(text));
			view_text_right(pane, left + i * cells, r + 1, cells,
					r == 2 ? VIEW_BOLD : VIEW_NORMAL, text);
		}
	}
	view_text(pane, 1, 0, VIEW_TITLE, view__way_names[tl->choice.way]);
	for (int r = 0; r < 3; r++)
		view_text(pane, 1, r + 1, rows[r].style, rows[r].name);
}

/* ---- the whole body -------------------------------------------------------------------------- */

/* Draw one report: its lanes and what surrounds them. */
static void view_draw_report(const struct view_timeline *tl, struct view_pane *pane)
{
	struct view_pane lanes = view_pane_sub(pane, tl->areas.lanes);
	struct view_pane head = view_pane_sub(pane, tl->heading);
	struct view_pane overview = view_pane_sub(pane, tl->areas.overview);
	struct view_pane labels = view_pane_sub(pane, tl->areas.labels);
	struct view_pane idle = view_pane_sub(pane, tl->areas.idle);
	struct view_pane details = view_pane_sub(pane, tl->areas.details);
	char text[FMT_SIZE];

	if (tl->lane_count == 0) {
		view_text(pane, 2, tl->beside.half.y + 1, VIEW_DIM, "No spans have been recorded.");
		return;
	}
	if (tl->width < 1 || lanes.rect.width != tl->width)
		return;
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view__draw_axis(tl, c, &lanes);
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0)
			view_draw_lane(tl, &tl->lanes[i], &lanes);
	if (tl->mark != 'T')
		view_draw_arrows(tl, &lanes);
	view_draw_head(tl, &head);
	if (tl->heading.height > 1)
		view_draw_legend(tl, &head);
	view_draw_labels(tl, &labels);
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_text_right(&idle, 0, tl->clock[c].axis_y, idle.rect.width, VIEW_DIM,
					c == IPS_DEVICE && tl->choice.way == VIEW_BSP ? "no run"
										      : "idle");
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (lane->rows == 0 || isnan(lane->idle))
			continue;
		snprintf(text, sizeof(text), "%.1f%%", lane->idle * 100);
		view_text_right(&idle, 0, view_middle_y(lane, max(lane->work_row, 0)),
				idle.rect.width,
				lane->pipeline && lane->idle > 0.5 ? VIEW_WARN : VIEW_NORMAL, text);
	}
	if (overview.rect.height > 0)
		view_draw_whole_run(tl, &overview);
	view_draw_strips(tl, pane);
	view__draw_details(tl, &details);
}

void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_timeline *tl = state;

	(void)context;
	if (tl->target) {
		view_draw_comparison(tl, pane);
		view_draw_report(tl->target, pane);
	}
	view_draw_report(tl, pane);
}
