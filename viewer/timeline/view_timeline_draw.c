/*
 * Drawing the timeline from its columns, and what surrounds them: the heading, labels, idle times
 * and the overview.
 *
 * A span at least one cell wide is a bar with its label (phase letter and micro-batch, or name);
 * several spans in one cell are a column whose height is their share of the time. The bubble is
 * shaded with a character. No query, no allocation, no change of state.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"

#define FILTER_WIDTH 16
#define WAYS_FROM    120 /* least width to show the names of all ways */

/* ---- styles ---------------------------------------------------------------------------------- */

static const struct view_phase_style {
	char phase;
	const char *name;       /* in the legend */
	enum view_style bar[2]; /* even and odd micro-batches */
	enum view_style text;
	enum view_glyph fill;
} view_phases[] = {
	{IPS_FORWARD,
	 "forward",
	 {VIEW_FORWARD, VIEW_FORWARD_2},
	 VIEW_FORWARD_TEXT,
	 VIEW_GLYPH_FILL_FORWARD},
	{IPS_BACKWARD,
	 "backward",
	 {VIEW_BACKWARD, VIEW_BACKWARD_2},
	 VIEW_BACKWARD_TEXT,
	 VIEW_GLYPH_FILL_BACKWARD},
	{IPS_WEIGHTS,
	 "weights",
	 {VIEW_WEIGHT, VIEW_WEIGHT},
	 VIEW_WEIGHT_TEXT,
	 VIEW_GLYPH_FILL_WEIGHT},
	{IPS_RECOMPUTATION,
	 "recomputation",
	 {VIEW_RECOMPUTE, VIEW_RECOMPUTE},
	 VIEW_RECOMPUTE_TEXT,
	 VIEW_GLYPH_FILL_RECOMPUTE},
	{IPS_UPDATE,
	 "update",
	 {VIEW_UPDATE, VIEW_UPDATE},
	 VIEW_UPDATE_TEXT,
	 VIEW_GLYPH_FILL_UPDATE},
	{0, "other", {VIEW_OTHER, VIEW_OTHER}, VIEW_OTHER_TEXT, VIEW_GLYPH_FILL_OTHER},
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
			 last && last[1] && view_text_width(name) > width ? last + 1 : name);
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
	const enum view_style style =
		selected ? VIEW_SELECTED
			 : phase->bar[bar->microbatch != IPS_NULL && bar->microbatch % 2];
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

/* Write "not traced" over untraced ranges that are wide enough. */
static void view_draw_untraced(const struct view_timeline *tl, const struct view_lane *lane,
			       struct view_pane *pane)
{
	static const char text[] = " not traced ";
	const int64_t size = sizeof(text);
	const struct view_window window = tl->clock[IPS_DEVICE].window;
	struct view_dark dark;

	for (int64_t at = window.from;
	     view__next_untraced(tl, lane, at, &dark) && dark.at.from < window.to;
	     at = dark.at.to) {
		const int64_t left = view_window_column(window, tl->width, dark.at.from);
		const int64_t from = left < 0 ? 0 : left + 1;
		const int64_t to = min(view_window_column(window, tl->width, dark.at.to - 1),
				       (int64_t)tl->width);

		if (to - from >= size)
			view_text(pane, (int)(from + (to - from - size) / 2), view__row_y(lane, 0),
				  VIEW_DIM, text);
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

	if (tl->choice.way == VIEW_BSP)
		view__draw_device(tl, lane, pane);
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
	view_draw_untraced(tl, lane, pane);
}

/* ---- beside the lanes ------------------------------------------------------------------------ */

/* The screen row of a lane's name and idle time: the middle of @row. */
static int view_middle_y(const struct view_lane *lane, int row)
{
	return view__row_y(lane, row) + (view__row_thick(lane, row) - 1) / 2;
}

/* Return the last part of a lane's path, or all of it if another lane has the same last part; "+"
 * and the name of what is folded. */
const char *view__lane_name(const struct view_timeline *tl, int lane)
{
	const struct view_lane *mine = &tl->lanes[lane];

	if (mine->fold)
		return mine->fold;
	return mine->namesake ? mine->track->track : mine->track->name;
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

static void view_draw_idle(const struct view_timeline *tl, struct view_pane *pane)
{
	char text[FMT_SIZE];

	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_text_right(pane, 0, tl->clock[c].axis_y, pane->rect.width, VIEW_DIM,
					c == IPS_DEVICE && tl->choice.way == VIEW_BSP ? "no run"
										      : "idle");
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (lane->rows == 0 || isnan(lane->idle))
			continue;
		snprintf(text, sizeof(text), "%.1f%%", lane->idle * 100);
		view_text_right(pane, 0, view_middle_y(lane, max(lane->work_row, 0)),
				pane->rect.width,
				lane->pipeline && lane->idle > 0.5 ? VIEW_WARN : VIEW_NORMAL, text);
	}
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
	view_text_cut(pane, view_text_width(text) + 1 < left, 0, left, VIEW_DIM, text);
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
		room -= 1 + fills + view_text_width(causes[i]);
	}
	x += view_text(pane, x, 0, VIEW_BOLD, text);
	if (room > view_text_width(text) + view_text_width(theory))
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
	if (x + 2 + view_text_width(text) < pane->rect.width)
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
			view_glyphs(pane, x, 1, view_phases[i].bar[0], view_phases[i].fill, 2);
		else
			view_fill(pane, x, 1, 2, view_phases[i].bar[0]);
		if (view_phases[i].phase)
			view_put(pane, x, 1, view_phases[i].bar[0], (uint32_t)view_phases[i].phase);
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
		view__draw_device_key(tl, pane, x);
	else
		view_draw_bubble(tl, pane, x);
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
		view__draw_arrows(tl, &lanes);
	view_draw_head(tl, &head);
	if (tl->heading.height > 1)
		view_draw_legend(tl, &head);
	view_draw_labels(tl, &labels);
	view_draw_idle(tl, &idle);
	if (overview.rect.height > 0)
		view_draw_whole_run(tl, &overview);
	view__draw_strips(tl, pane);
	view__draw_details(tl, &details);
}

void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_timeline *tl = state;

	(void)context;
	if (tl->target) {
		view__draw_comparison(tl, pane);
		view_draw_report(tl->target, pane);
	}
	view_draw_report(tl, pane);
}
