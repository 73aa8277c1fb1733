/*
 * Drawing the timeline from its columns.
 *
 * A span wide enough to be one is a bar with its label (phase letter and micro-batch, or name);
 * many in one cell are a column whose height is their share of the time. The bubble is shaded with
 * a character. No query, no allocation, no change.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "viewer/timeline/view_timeline_internal.h"

#define TICKS_APART 14
#define FIELD_WIDTH 38
#define NAME_WIDTH  15

struct view_phase_style {
	char phase;
	enum view_style bar[2]; /* even and odd micro-batches */
	enum view_style text;
	enum view_glyph fill;
};

static const struct view_phase_style view_phases[] = {
	{'F', {VIEW_FORWARD, VIEW_FORWARD_2}, VIEW_FORWARD_TEXT, VIEW_GLYPH_FILL_FORWARD},
	{'B', {VIEW_BACKWARD, VIEW_BACKWARD_2}, VIEW_BACKWARD_TEXT, VIEW_GLYPH_FILL_BACKWARD},
	{'W', {VIEW_WEIGHT, VIEW_WEIGHT}, VIEW_WEIGHT_TEXT, VIEW_GLYPH_FILL_WEIGHT},
	{'R', {VIEW_RECOMPUTE, VIEW_RECOMPUTE}, VIEW_RECOMPUTE_TEXT, VIEW_GLYPH_FILL_RECOMPUTE},
	{'U', {VIEW_UPDATE, VIEW_UPDATE}, VIEW_UPDATE_TEXT, VIEW_GLYPH_FILL_UPDATE},
	{0, {VIEW_OTHER, VIEW_OTHER}, VIEW_OTHER_TEXT, VIEW_GLYPH_FILL_OTHER},
};

static const struct view_phase_style *view_phase_style(char phase)
{
	size_t i = 0;

	while (view_phases[i].phase && view_phases[i].phase != phase)
		i++;
	return &view_phases[i];
}

/* --- bars ------------------------------------------------------------------------------------- */

struct view_row {
	const struct view_timeline *tl;
	const struct view_lane *lane;
	const struct view_column *columns;
	struct view_pane *pane;
	int y;        /* first of `thick` */
	int label_y;  /* where labels are */
	int cursor_x; /* -1: on another clock */
	int64_t column_ns;
};

/* Does the cell's bar fill whole cells? Others are shown by their share of the cell. */
static bool view_is_wide(const struct view_row *row, int x)
{
	const struct view_column *column = &row->columns[x];
	const struct prof_bar *bar = column->bar >= 0 ? &row->lane->bars[column->bar] : NULL;

	return bar && bar->span_id != VIEW_NONE_ID && bar->dur_ns >= row->column_ns;
}

/* Half a cell or more belongs to the bar, less to what is beside it. */
static bool view_is_solid(const struct view_row *row, int x)
{
	return view_is_wide(row, x) && row->columns[x].busy_ns * 2 >= row->column_ns;
}

/* What to write into a bar: "F0", "F0 stage 0 forward", a name. */
static void view_label(const struct view_row *row, const struct prof_bar *bar, int width, char *out,
		       size_t size)
{
	const struct view_site *site = view__site(row->tl, bar->site_id);
	const char *name = site && site->name ? site->name : "";
	const char phase = view__phase(row->tl, bar);
	char head[32];

	if (!phase || bar->depth != row->lane->work_depth) {
		snprintf(out, size, "%s", name);
		return;
	}
	if (bar->microbatch == VIEW_NONE_ID || phase == 'U')
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

static void view_draw_span(const struct view_row *row, int from, int to)
{
	const struct prof_bar *bar = &row->lane->bars[row->columns[from].bar];
	const struct view_phase_style *phase = view_phase_style(view__phase(row->tl, bar));
	const bool plain = row->pane->canvas->plain;
	/* A drawing on paper has no cursor. */
	const bool selected = bar->span_id == row->tl->selected && !row->tl->in_gap && !plain;
	const enum view_style style =
		selected ? VIEW_SELECTED
			 : phase->bar[bar->microbatch != VIEW_NONE_ID && bar->microbatch % 2];
	const int width = to - from;
	char label[128];
	int used;

	for (int y = row->y; y < row->y + row->lane->thick; y++) {
		if (plain)
			view_glyphs(row->pane, from, y, style, phase->fill, width);
		else
			view_fill(row->pane, from, y, width, style);
	}
	view_label(row, bar, width, label, sizeof(label));
	used = view_text_cut(row->pane, from, row->label_y, width, style, label);
	if (plain && used < width && used > 3)
		view_put(row->pane, from + used, row->label_y, style, ' ');
	if (selected && width >= 4) {
		view_put(row->pane, from, row->label_y, style, '[');
		view_text_cut(row->pane, from + 1, row->label_y, width - 2, style, label);
		view_put(row->pane, to - 1, row->label_y, style, ']');
	}
	if (bar->open && width >= 2)
		view_glyphs(row->pane, to - 1, row->label_y, style, VIEW_GLYPH_ARROW, 1);
}

/* Many spans in one cell, or one much shorter than it. */
static void view_draw_share(const struct view_row *row, int x)
{
	const struct view_column *column = &row->columns[x];
	const struct prof_bar *bar = &row->lane->bars[column->bar];
	const double share = (double)column->busy_ns / (double)row->column_ns;
	const struct view_phase_style *phase = view_phase_style(view__phase(row->tl, bar));
	const int thick = row->lane->thick;

	for (int i = 0; i < thick; i++) {
		/* The lowest row of the bar fills first. */
		const double part = share * thick - (thick - 1 - i);

		if (part > 0)
			view_put(row->pane, x, row->y + i, phase->text,
				 view_level_char(row->pane->canvas, part));
	}
}

static void view_draw_empty(const struct view_row *row, int x)
{
	const bool bubble = row->lane->pipeline && row->columns[x].run;
	const bool cursor = x == row->cursor_x;

	for (int y = row->y; y < row->y + row->lane->thick; y++) {
		if (bubble)
			view_glyphs(row->pane, x, y, cursor ? VIEW_SELECTED : VIEW_BUBBLE,
				    VIEW_GLYPH_SHADE, 1);
		else if (cursor)
			view_glyphs(row->pane, x, y, VIEW_DIM, VIEW_GLYPH_VERTICAL_DOTS, 1);
	}
}

static void view_draw_row(const struct view_row *row)
{
	const int width = row->tl->width;

	for (int x = 0; x < width;) {
		int end = x + 1;

		if (view_is_solid(row, x)) {
			while (end < width && view_is_solid(row, end) &&
			       row->columns[end].bar == row->columns[x].bar)
				end++;
			view_draw_span(row, x, end);
		} else if (row->columns[x].bar >= 0 && !view_is_wide(row, x)) {
			view_draw_share(row, x);
		} else {
			view_draw_empty(row, x);
		}
		x = end;
	}
}

static int view_cursor_column(const struct view_timeline *tl, int clock)
{
	const struct view_clock *of = &tl->clock[clock];

	if (view__lead(tl) != clock)
		return -1;
	return (int)view_window_column(of->window, tl->width, tl->cursor_ns);
}

static void view_draw_lane(const struct view_timeline *tl, const struct view_lane *lane,
			   struct view_pane *pane)
{
	const int clock = lane->track->clock == 1;
	const struct view_window window = tl->clock[clock].window;
	struct view_row row = {.tl = tl, .lane = lane, .pane = pane};

	if (!lane->columns)
		return;
	row.cursor_x = pane->canvas->plain ? -1 : view_cursor_column(tl, clock);
	row.column_ns = (window.to - window.from) / tl->width;
	if (row.column_ns < 1)
		row.column_ns = 1;
	for (int r = 0; r < lane->rows; r++) {
		row.columns = &lane->columns[(size_t)r * (size_t)tl->width];
		row.y = lane->y + r * lane->thick;
		row.label_y = row.y + (lane->thick - 1) / 2;
		view_draw_row(&row);
	}
}

/* --- around the bars -------------------------------------------------------------------------- */

static void view_draw_axis(const struct view_timeline *tl, int clock, struct view_pane *pane)
{
	const struct view_clock *of = &tl->clock[clock];
	char text[VIEW_TICK_SIZE];
	const int64_t widest = view_text_width(view_tick_text(
		text, of->window.to, view_tick_step(of->window, tl->width, 8), of->window));
	const int apart = widest + 3 > TICKS_APART ? (int)widest + 3 : TICKS_APART;
	const int64_t step = view_tick_step(of->window, tl->width, apart);
	int64_t time = of->window.from - of->window.from % step;

	view_glyphs(pane, 0, of->axis_y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, tl->width);
	for (; time <= of->window.to; time += step) {
		const int64_t x = view_window_column(of->window, tl->width, time);

		if (time < of->window.from || x + 2 >= tl->width)
			continue;
		view_glyphs(pane, (int)x, of->axis_y, VIEW_DIM, VIEW_GLYPH_TICK, 1);
		if (x + 1 + view_text_width(view_tick_text(text, time, step, of->window)) <
		    tl->width)
			view_text(pane, (int)x + 1, of->axis_y, VIEW_DIM, text);
	}
	if (view_cursor_column(tl, clock) >= 0 && !pane->canvas->plain)
		view_glyphs(pane, view_cursor_column(tl, clock), of->axis_y, VIEW_TITLE,
			    VIEW_GLYPH_CURSOR, 1);
}

/* Arrows where lanes lie beyond what is shown. */
static void view_draw_more(const struct view_timeline *tl, struct view_pane *pane)
{
	const int x = pane->rect.width - 1;

	if (tl->scroll > 0)
		view_glyphs(pane, x, 0, VIEW_KEY, VIEW_GLYPH_UP, 1);
	if (tl->lanes[tl->lane_count - 1].rows == 0)
		view_glyphs(pane, x, pane->rect.height - 1, VIEW_KEY, VIEW_GLYPH_DOWN, 1);
}

static void view_draw_labels(const struct view_timeline *tl, struct view_pane *pane)
{
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_text(pane, 0, tl->clock[c].axis_y, VIEW_TITLE,
				  c ? "DEVICE (sim)" : "HOST");
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const bool here = i == tl->lane && !pane->canvas->plain;
		const int depth = tl->depth - lane->first_depth;
		const int row = depth < 0 || depth >= lane->rows ? 0 : depth;
		const int y = lane->y + (lane->thick - 1) / 2;

		if (lane->rows == 0)
			continue;
		view_text_cut(pane, 1, y, pane->rect.width - 2, here ? VIEW_BOLD : VIEW_NORMAL,
			      lane->track->name);
		if (here)
			view_glyphs(pane, 0, y + row * lane->thick, VIEW_KEY, VIEW_GLYPH_SELECT, 1);
	}
}

static void view_draw_idle(const struct view_timeline *tl, struct view_pane *pane)
{
	char text[FMT_SIZE];

	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_text_right(pane, 0, tl->clock[c].axis_y, pane->rect.width, VIEW_DIM,
					"idle");
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (lane->rows == 0 || isnan(lane->idle))
			continue;
		snprintf(text, sizeof(text), "%.1f%%", lane->idle * 100);
		view_text_right(pane, 0, lane->y + (lane->thick - 1) / 2, pane->rect.width,
				lane->pipeline && lane->idle > 0.5 ? VIEW_WARN : VIEW_NORMAL, text);
	}
}

/* The whole run on one row; brackets hold the window. */
static void view_draw_overview(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_clock *clock = &tl->clock[view__lead(tl)];
	const int left = tl->areas.lanes.x;
	const int64_t column_ns = (clock->extent.to - clock->extent.from) / tl->width;
	int from = (int)view_window_column(clock->extent, tl->width, clock->window.from);
	int to = (int)view_window_column(clock->extent, tl->width, clock->window.to - 1);

	view_text(pane, 1, 0, VIEW_DIM, "whole run");
	for (int x = 0; x < tl->width && tl->overview; x++) {
		const struct view_column *column = &tl->overview[x];

		if (column->bar >= 0 && column_ns > 0)
			view_put(pane, left + x, 0,
				 view_phase_style(view__phase(tl, &tl->overview_bars[column->bar]))
					 ->text,
				 view_level_char(pane->canvas,
						 (double)column->busy_ns / (double)column_ns));
	}
	if (from == 0 && to >= tl->width - 1)
		return;
	view_put(pane, left + from, 0, VIEW_KEY, '[');
	view_put(pane, left + (to > from ? to : from + 1), 0, VIEW_KEY, ']');
}

/* --- details ---------------------------------------------------------------------------------- */

static void view_draw_heading(const struct view_timeline *tl, struct view_pane *pane)
{
	const char phase = tl->selected != VIEW_NONE_ID ? tl->span.phase : 0;
	char title[VIEW_PATH_SIZE + 8];
	int x;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	if (tl->in_gap)
		snprintf(title, sizeof(title), " %s ",
			 tl->gap_run != VIEW_NONE_ID ? "idle: bubble" : "idle");
	else if (tl->selected == VIEW_NONE_ID)
		snprintf(title, sizeof(title), " nothing here ");
	else if (phase && tl->span.microbatch != VIEW_NONE_ID && phase != 'U')
		snprintf(title, sizeof(title), " %c%lld %s ", phase, (long long)tl->span.microbatch,
			 tl->span.name ? tl->span.name : "");
	else
		snprintf(title, sizeof(title), " %s ", tl->span.name ? tl->span.name : "");
	x = 2 + view_text_cut(pane, 2, 0, pane->rect.width - 4, VIEW_BOLD, title);
	if (tl->path[0] && x + 12 < pane->rect.width) {
		snprintf(title, sizeof(title), " %s ", tl->path);
		view_text_cut(pane, x + 1, 0, pane->rect.width - x - 3, VIEW_DIM, title);
	}
}

static void view_draw_details(const struct view_timeline *tl, struct view_pane *pane)
{
	const int rows = pane->rect.height - 1;
	const int columns = pane->rect.width / FIELD_WIDTH > 0 ? pane->rect.width / FIELD_WIDTH : 1;
	const int width = pane->rect.width / columns;

	if (rows < 1)
		return;
	view_draw_heading(tl, pane);
	for (int i = 0; i < tl->field_count && i < rows * columns; i++) {
		const int x = i / rows * width + 1, y = 1 + i % rows;

		view_text_cut(pane, x, y, NAME_WIDTH - 1, VIEW_DIM, tl->fields[i].name);
		/* The last column has the rest of the row. */
		view_text_cut(pane, x + NAME_WIDTH, y,
			      (i + rows < tl->field_count && i / rows + 1 < columns
				       ? width
				       : pane->rect.width - x) -
				      NAME_WIDTH - 2,
			      VIEW_NORMAL, tl->fields[i].value);
	}
}

static struct view_pane view_sub(struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_timeline *tl = state;
	struct view_pane overview = view_sub(pane, tl->areas.overview);
	struct view_pane lanes = view_sub(pane, tl->areas.lanes);
	struct view_pane labels = view_sub(pane, tl->areas.labels);
	struct view_pane idle = view_sub(pane, tl->areas.idle);
	struct view_pane details = view_sub(pane, tl->areas.details);

	(void)context;
	if (tl->lane_count == 0) {
		view_text(pane, 2, 1, VIEW_DIM, "No spans have been recorded.");
		return;
	}
	if (tl->width < 1 || lanes.rect.width != tl->width)
		return;
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_draw_axis(tl, c, &lanes);
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0)
			view_draw_lane(tl, &tl->lanes[i], &lanes);
	view_draw_labels(tl, &labels);
	view_draw_more(tl, &labels);
	view_draw_idle(tl, &idle);
	if (overview.rect.height > 0)
		view_draw_overview(tl, &overview);
	view_draw_details(tl, &details);
}
