/*
 * Drawing the timeline from its columns, and what is around them: the line above, axes, labels,
 * idle times, the overview and the details.
 *
 * A span wide enough to be one is a bar with its label (phase letter and micro-batch, or name);
 * many in one cell are a column whose height is their share of the time. The bubble is shaded with
 * a character. No query, no allocation, no change.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"

#define TICKS_APART  14
#define FIELD_WIDTH  38
#define NAME_WIDTH   15
#define FILTER_WIDTH 16
#define WAYS_FROM    120 /* columns that show the names of all ways */

struct view_phase_style {
	char phase;
	enum view_style bar[2]; /* even and odd micro-batches */
	enum view_style text;
	enum view_glyph fill;
};

static const struct view_phase_style view_phases[] = {
	{IPS_FORWARD, {VIEW_FORWARD, VIEW_FORWARD_2}, VIEW_FORWARD_TEXT, VIEW_GLYPH_FILL_FORWARD},
	{IPS_BACKWARD,
	 {VIEW_BACKWARD, VIEW_BACKWARD_2},
	 VIEW_BACKWARD_TEXT,
	 VIEW_GLYPH_FILL_BACKWARD},
	{IPS_WEIGHTS, {VIEW_WEIGHT, VIEW_WEIGHT}, VIEW_WEIGHT_TEXT, VIEW_GLYPH_FILL_WEIGHT},
	{IPS_RECOMPUTATION,
	 {VIEW_RECOMPUTE, VIEW_RECOMPUTE},
	 VIEW_RECOMPUTE_TEXT,
	 VIEW_GLYPH_FILL_RECOMPUTE},
	{IPS_UPDATE, {VIEW_UPDATE, VIEW_UPDATE}, VIEW_UPDATE_TEXT, VIEW_GLYPH_FILL_UPDATE},
	{0, {VIEW_OTHER, VIEW_OTHER}, VIEW_OTHER_TEXT, VIEW_GLYPH_FILL_OTHER},
};

static const struct view_phase_style *view_phase_style(char phase)
{
	size_t i = 0;

	while (view_phases[i].phase && view_phases[i].phase != phase)
		i++;
	return &view_phases[i];
}

static enum view_style view_phase_level(char phase)
{
	return view_phase_style(phase)->text;
}

static enum view_style view_cause_style(enum view_cause cause)
{
	static const enum view_style styles[VIEW_CAUSES] = {
		VIEW_BUBBLE, VIEW_RAMP_UP, VIEW_RAMP_DOWN, VIEW_IMBALANCE, VIEW_COMMUNICATION};

	return styles[cause];
}

static enum view_glyph view_cause_glyph(enum view_cause cause)
{
	static const enum view_glyph glyphs[VIEW_CAUSES] = {
		VIEW_GLYPH_SHADE, VIEW_GLYPH_FILL_RAMP_UP, VIEW_GLYPH_FILL_RAMP_DOWN,
		VIEW_GLYPH_FILL_IMBALANCE, VIEW_GLYPH_FILL_COMMUNICATION};

	return glyphs[cause];
}

int view__cursor_column(const struct view_timeline *tl, int clock)
{
	const struct view_clock *of = &tl->clock[clock];

	if (view__lead(tl) != clock)
		return -1;
	return (int)view_window_column(of->window, tl->width, tl->cursor.ns);
}

/* ---- around the bars ------------------------------------------------------------------------- */

/* Columns of the axis that are marked: x and the cursor; -1: not. */
static void view_axis_marks(const struct view_timeline *tl, int clock, const struct view_pane *pane,
			    int marks[2])
{
	const int64_t x =
		tl->cursor.x_ns == IPS_NULL || tl->cursor.x_clock != clock
			? -1
			: view_window_column(tl->clock[clock].window, tl->width, tl->cursor.x_ns);

	marks[0] = x >= 0 && x < tl->width ? (int)x : -1;
	marks[1] = pane->canvas->plain ? -1 : view__cursor_column(tl, clock);
}

/* A tick's label; a mark pushes it by a column, or takes its place: half a number is another. */
static void view_draw_tick(const struct view_timeline *tl, struct view_pane *pane, int y, int x,
			   const int marks[2], const char *text)
{
	const int width = view_text_width(text);

	for (int i = 0; i < 2; i++)
		x += marks[i] == x + 1;
	for (int i = 0; i < 2; i++)
		if (marks[i] > x && marks[i] <= x + width)
			return;
	if (x + 1 + width < tl->width)
		view_text(pane, x + 1, y, VIEW_DIM, text);
}

static void view_draw_axis(const struct view_timeline *tl, int clock, struct view_pane *pane)
{
	const struct view_clock *of = &tl->clock[clock];
	const struct view_window unit = view__unit_window(tl, clock);
	char text[VIEW_UNIT_SIZE];
	const int64_t widest = view_text_width(
		view__tick_text(tl, clock, text, unit.to, view_tick_step(unit, tl->width, 8)));
	const int apart = widest + 3 > TICKS_APART ? (int)widest + 3 : TICKS_APART;
	const int64_t step = view_tick_step(unit, tl->width, apart);
	int64_t at = unit.from - unit.from % step;
	int marks[2];

	view_axis_marks(tl, clock, pane, marks);
	view_glyphs(pane, 0, of->axis_y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, tl->width);
	for (; at <= unit.to && at < INT64_MAX; at = sat_add(at, step)) {
		const int64_t x = view_window_column(unit, tl->width, at);

		if (at < unit.from || x + 2 >= tl->width)
			continue;
		view_glyphs(pane, (int)x, of->axis_y, VIEW_DIM, VIEW_GLYPH_TICK, 1);
		view_draw_tick(tl, pane, of->axis_y, (int)x, marks,
			       view__tick_text(tl, clock, text, at, step));
	}
	if (marks[0] >= 0)
		view_put(pane, marks[0], of->axis_y, VIEW_KEY, 'x');
	if (marks[1] >= 0)
		view_glyphs(pane, marks[1], of->axis_y, VIEW_TITLE, VIEW_GLYPH_CURSOR, 1);
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

static enum view_style view_mark_style(const struct view_timeline *tl)
{
	return tl->mark == 'S' ? VIEW_SOURCE : tl->mark ? VIEW_TARGET : VIEW_TITLE;
}

/* "DEVICE (sim)", with the unit where there is room and it is not that of the ticks. */
static void view_draw_clock_names(const struct view_timeline *tl, struct view_pane *pane)
{
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_textf(pane, 0, tl->clock[c].axis_y, view_mark_style(tl), "%.2s%s",
				   tl->mark == 'S' ? "S "
				   : tl->mark      ? "T "
						   : "",
				   c == 0                   ? "HOST"
				   : view__in_cycles(tl, c) ? "DEVICE cycles"
							    : "DEVICE (sim)");
}

static void view_draw_labels(const struct view_timeline *tl, struct view_pane *pane)
{
	view_draw_clock_names(tl, pane);
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const bool here = i == tl->cursor.lane && !pane->canvas->plain && tl->mark != 'T';
		const int main = max(lane->work_row, 0);
		int row, y;

		if (lane->rows == 0)
			continue;
		y = view__row_y(lane, main) + (view__row_thick(lane, main) - 1) / 2;
		if (tl->mark)
			view_put(pane, 1, y, view_mark_style(tl), (uint32_t)tl->mark);
		view_text_cut(pane, tl->mark ? 3 : 1, y, pane->rect.width - (tl->mark ? 4 : 2),
			      here ? VIEW_BOLD : VIEW_NORMAL, lane->track->name);
		row = view__row_of_depth(tl, lane, tl->cursor.depth);
		if (here)
			view_glyphs(pane, 0,
				    view__row_y(lane, row) + (view__row_thick(lane, row) - 1) / 2,
				    VIEW_KEY, VIEW_GLYPH_SELECT, 1);
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
		int row;

		if (lane->rows == 0 || isnan(lane->idle))
			continue;
		snprintf(text, sizeof(text), "%.1f%%", lane->idle * 100);
		row = max(lane->work_row, 0);
		view_text_right(pane, 0,
				view__row_y(lane, row) + (view__row_thick(lane, row) - 1) / 2,
				pane->rect.width,
				lane->pipeline && lane->idle > 0.5 ? VIEW_WARN : VIEW_NORMAL, text);
	}
}

/* "whole run"; where the line above has no room, the bubble, which would stand there. */
static void view_draw_overview_name(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_bubble *bubble = &tl->bubbles.shown[view__lead(tl)];
	char text[32] = "whole run";
	const int room = tl->areas.lanes.x;

	if (tl->heading.height == 0 && !tl->mark && bubble->runs > 0 && !isnan(bubble->idle))
		snprintf(text, sizeof(text), "bubble %.1f%%", bubble->idle * 100);
	view_text_cut(pane, view_text_width(text) + 1 < room, 0, room, VIEW_DIM, text);
}

/* The whole run on one row; brackets hold the window. */
static void view_draw_overview(const struct view_timeline *tl, struct view_pane *pane)
{
	const struct view_clock *clock = &tl->clock[view__lead(tl)];
	const int left = tl->areas.lanes.x;
	const int64_t column_ns = (clock->extent.to - clock->extent.from) / tl->width;
	int from = (int)view_window_column(clock->extent, tl->width, clock->window.from);
	int to = (int)view_window_column(clock->extent, tl->width, clock->window.to - 1);

	view_draw_overview_name(tl, pane);
	for (int x = 0; x < tl->width && tl->overview.columns && tl->overview.width == tl->width;
	     x++) {
		const struct view_column *column = &tl->overview.columns[x];

		if (column->bar < 0 && column->dark)
			view_glyphs(pane, left + x, 0, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
		else if (column->bar >= 0 && column->left_out)
			view_glyphs(pane, left + x, 0, VIEW_DIM, VIEW_GLYPH_LEFT_OUT, 1);
		else if (column->bar >= 0 && column_ns > 0)
			view_put(pane, left + x, 0,
				 view_phase_level(view__phase(tl, &tl->overview.bars[column->bar])),
				 view_level_char(pane->canvas,
						 (double)column->busy_ns / (double)column_ns));
	}
	if (from == 0 && to >= tl->width - 1)
		return;
	view_put(pane, left + from, 0, VIEW_KEY, '[');
	view_put(pane, left + (to > from ? to : from + 1), 0, VIEW_KEY, ']');
}

/* ---- details --------------------------------------------------------------------------------- */

static void view_draw_heading(const struct view_timeline *tl, struct view_pane *pane)
{
	const char phase = tl->under.selected != IPS_NULL ? tl->under.span.phase : 0;
	char title[VIEW_PATH_SIZE + 8];
	int x;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	if (tl->device.at_cursor.step)
		snprintf(title, sizeof(title), " %s ",
			 tl->device.at_cursor.step->name ? tl->device.at_cursor.step->name
							 : tl->device.at_cursor.step->type);
	else if (tl->under.in_gap)
		snprintf(title, sizeof(title), " %s ",
			 tl->under.gap.dark           ? "not traced"
			 : tl->under.gap_run >= 0     ? "idle: bubble"
			 : tl->choice.way == VIEW_BSP ? "no stage work"
						      : "idle");
	else if (tl->under.selected == IPS_NULL)
		snprintf(title, sizeof(title), " nothing here ");
	else if (phase && tl->under.span.microbatch != IPS_NULL && phase != IPS_UPDATE)
		snprintf(title, sizeof(title), " %c%lld %s ", phase,
			 (long long)tl->under.span.microbatch,
			 tl->under.span.name ? tl->under.span.name : "");
	else
		snprintf(title, sizeof(title), " %s ",
			 tl->under.span.name ? tl->under.span.name : "");
	x = 2 + view_text_cut(pane, 2, 0, pane->rect.width - 4, VIEW_BOLD, title);
	if (tl->under.path[0] && x + 12 < pane->rect.width) {
		snprintf(title, sizeof(title), " %s ", tl->under.path);
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
	if (view__shows_sums(tl)) {
		view__draw_sums(tl, pane);
		return;
	}
	view_draw_heading(tl, pane);
	for (int i = 0; i < tl->under.count && i < rows * columns; i++) {
		const int x = i / rows * width + 1, y = 1 + i % rows;

		view_text_cut(pane, x, y, NAME_WIDTH - 1, VIEW_DIM, tl->under.fields[i].name);
		/* The last column has the rest of the row. */
		view_text_cut(pane, x + NAME_WIDTH, y,
			      (i + rows < tl->under.count && i / rows + 1 < columns
				       ? width
				       : pane->rect.width - x) -
				      NAME_WIDTH - 2,
			      VIEW_NORMAL, tl->under.fields[i].value);
	}
}

struct view_pane view__sub(struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

/* ---- the line above -------------------------------------------------------------------------- */

/* The ways to look at it, the present one marked; the present one alone where there is little room.
 * Returns the columns used. */
static int view_draw_ways(const struct view_timeline *tl, struct view_pane *pane)
{
	int x = 1;

	if (pane->rect.width < WAYS_FROM)
		return x + view_text(pane, x, 0, VIEW_TITLE, view__way_names[tl->choice.way]) + 2;
	for (int w = 0; w < VIEW_WAYS; w++) {
		const bool here = w == (int)tl->choice.way;

		x += view_textf(pane, x, 0, here ? VIEW_TITLE : VIEW_DIM, here ? "[%s]" : " %s ",
				view__way_names[w]);
	}
	return x + 2;
}

/* Which runs the numbers are of; "" where there is little room. */
static void view_runs_text(const struct view_bubble *bubble, char *out, size_t size)
{
	char number[FMT_SIZE];

	if (bubble->mean)
		snprintf(out, size, "all %s runs", fmt_count(number, bubble->runs));
	else if (bubble->runs > 1)
		snprintf(out, size, "%s runs", fmt_count(number, bubble->runs));
	else if (bubble->update != IPS_NULL)
		snprintf(out, size, "update %s", fmt_count(number, bubble->update));
	else
		out[0] = '\0';
}

/* " ramp-up 4.3," of cause @i. */
static void view_cause_text(const struct view_bubble *bubble, int i, bool wide, char *out,
			    size_t size)
{
	static const char *const brief[VIEW_CAUSES] = {"", "up", "down", "imb.", "comm."};

	snprintf(out, size, "%s %.1f%s", wide ? view__cause_names[i] : brief[i],
		 bubble->part[i] * 100, i + 1 < VIEW_CAUSES && wide ? "," : "");
}

/* "bubble 55.1 % (theory 39.4 %): ramp-up 4.3, ..., update 51"; each cause after its fill where the
 * bubble is split. Theory, which the Summary has too, makes room for the causes. */
static void view_draw_bubble(const struct view_timeline *tl, struct view_pane *pane, int x)
{
	const struct view_bubble *bubble = &tl->bubbles.shown[view__lead(tl)];
	const bool wide = pane->rect.width - x >= 100;
	char causes[VIEW_CAUSES][32], theory[32], text[64];
	int room = pane->rect.width - x;

	if (bubble->runs < 1 || isnan(bubble->idle))
		return;
	snprintf(text, sizeof(text), "bubble %.1f %%", bubble->idle * 100);
	snprintf(theory, sizeof(theory), " (theory %.1f %%)", bubble->theory * 100);
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		view_cause_text(bubble, i, wide, causes[i], sizeof(causes[i]));
		room -= 1 + tl->choice.by_cause + view_text_width(causes[i]);
	}
	x += view_text(pane, x, 0, VIEW_BOLD, text);
	if (room > view_text_width(text) + view_text_width(theory))
		x += view_text(pane, x, 0, VIEW_NORMAL, theory);
	x += view_text(pane, x, 0, VIEW_NORMAL, ":");
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		x++;
		if (tl->choice.by_cause)
			view_glyphs(pane, x, 0, view_cause_style((enum view_cause)i),
				    view_cause_glyph((enum view_cause)i), 1);
		x += tl->choice.by_cause;
		x += view_text(pane, x, 0, VIEW_NORMAL, causes[i]);
	}
	view_runs_text(bubble, text, sizeof(text));
	if (x + 2 + view_text_width(text) < pane->rect.width)
		view_text_right(pane, 0, 0, pane->rect.width - 1, VIEW_DIM, text);
}

static void view_draw_head(const struct view_timeline *tl, struct view_pane *pane)
{
	char text[48];
	int x;

	if (pane->rect.height < 1)
		return;
	x = view_draw_ways(tl, pane);
	view__filter_text(tl, text, sizeof(text));
	if (tl->choice.only_ipu != IPS_NULL || tl->choice.only_replica != IPS_NULL)
		x += view_text(pane, x, 0, VIEW_WARN, text) + 2;
	if (tl->filter.active && tl->choice.way != VIEW_BSP) {
		x += view_text(pane, x, 0, VIEW_WARN, "filter ");
		x += view_text_cut(pane, x, 0, FILTER_WIDTH, VIEW_WARN, tl->filter.text) + 2;
	}
	if (tl->choice.way == VIEW_BSP)
		view__draw_bsp_key(tl, pane, x);
	else
		view_draw_bubble(tl, pane, x);
}

static void view_draw_around(const struct view_timeline *tl, struct view_pane *pane)
{
	struct view_pane head = view__sub(pane, tl->heading);
	struct view_pane overview = view__sub(pane, tl->areas.overview);
	struct view_pane labels = view__sub(pane, tl->areas.labels);
	struct view_pane idle = view__sub(pane, tl->areas.idle);
	struct view_pane details = view__sub(pane, tl->areas.details);

	view_draw_head(tl, &head);
	view_draw_labels(tl, &labels);
	view_draw_more(tl, &labels);
	view_draw_idle(tl, &idle);
	if (overview.rect.height > 0)
		view_draw_overview(tl, &overview);
	view__draw_strips(tl, pane);
	view_draw_details(tl, &details);
}

/* ---- bars ------------------------------------------------------------------------------------ */

struct view_row {
	const struct view_timeline *tl;
	const struct view_lane *lane;
	const struct view_column *columns;
	struct view_pane *pane;
	int number;   /* of the row in its lane */
	int y, thick; /* screen rows */
	int label_y;  /* where labels are */
	int cursor_x; /* -1: on another clock */
	int64_t column_ns;
};

/* Does the cell's bar fill whole cells? Others are shown by their share of the cell. */
static bool view_is_wide(const struct view_row *row, int x)
{
	const struct view_column *column = &row->columns[x];
	const struct prof_bar *bar = column->bar >= 0 ? &row->lane->bars[column->bar] : NULL;

	return bar && bar->span_id != IPS_NULL && bar->dur_ns >= row->column_ns;
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

	if (row->lane->bar_row) {
		view__name_part(name, row->number - row->lane->bar_row[bar - row->lane->bars], out,
				size);
		return;
	}
	if (!phase || bar->depth != row->lane->work_depth) {
		const char *last = strrchr(name, '/');

		/* Of "Stage0/Infeed" the end says more than the beginning. */
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

/* What the filter leaves out. */
static void view_draw_left_out(const struct view_row *row, int from, int to)
{
	const struct prof_bar *bar = &row->lane->bars[row->columns[from].bar];
	const bool selected = bar->span_id == row->tl->under.selected && !row->tl->under.in_gap &&
			      bar->span_id != IPS_NULL && !row->pane->canvas->plain;

	view_glyphs(row->pane, from, row->label_y, selected ? VIEW_SELECTED : VIEW_DIM,
		    VIEW_GLYPH_LEFT_OUT, to - from);
}

static void view_draw_span(const struct view_row *row, int from, int to)
{
	const struct prof_bar *bar = &row->lane->bars[row->columns[from].bar];
	const struct view_phase_style *phase = view_phase_style(view__phase(row->tl, bar));
	const bool plain = row->pane->canvas->plain;
	/* A drawing on paper has no cursor. */
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
	const int thick = row->thick;

	for (int i = 0; i < thick; i++) {
		/* The lowest row of the bar fills first. */
		const double part = share * thick - (thick - 1 - i);

		if (part > 0)
			view_put(row->pane, x, row->y + i, phase->text,
				 view_level_char(row->pane->canvas, part));
	}
}

/* Idle within a run: by cause where that is wanted. Works of half a cell cover it. */
static void view_draw_cause(const struct view_row *row, int x)
{
	const enum view_cause cause = (enum view_cause)row->columns[x].cause;
	const enum view_style style = x == row->cursor_x ? VIEW_SELECTED : view_cause_style(cause);

	for (int y = row->y; y < row->y + row->thick; y++)
		view_glyphs(row->pane, x, y, style, view_cause_glyph(cause), 1);
}

static void view_draw_empty(const struct view_row *row, int x)
{
	const bool dark = row->columns[x].dark && row->number == 0;
	const bool bubble = row->lane->pipeline && row->columns[x].run && !dark;
	const bool cursor = x == row->cursor_x;

	for (int y = row->y; y < row->y + row->thick; y++) {
		if (bubble)
			view_glyphs(row->pane, x, y, cursor ? VIEW_SELECTED : VIEW_BUBBLE,
				    VIEW_GLYPH_SHADE, 1);
		else if (cursor)
			view_glyphs(row->pane, x, y, VIEW_DIM, VIEW_GLYPH_VERTICAL_DOTS, 1);
		else if (dark)
			view_glyphs(row->pane, x, y, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
	}
}

/* The same bar; in a flame, also the next one where the name's part and all above it are. */
static bool view_is_same(const struct view_row *row, int x, int next)
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

static void view_draw_row(const struct view_row *row)
{
	const int width = row->tl->width;

	for (int x = 0; x < width;) {
		int end = x + 1;

		if (row->columns[x].cause) {
			view_draw_cause(row, x);
		} else if (view_is_solid(row, x)) {
			while (end < width && view_is_solid(row, end) && !row->columns[end].cause &&
			       view_is_same(row, x, end))
				end++;
			if (row->columns[x].left_out)
				view_draw_left_out(row, x, end);
			else
				view_draw_span(row, x, end);
		} else if (row->columns[x].bar >= 0 && !view_is_wide(row, x)) {
			if (row->columns[x].left_out)
				view_draw_left_out(row, x, end);
			else
				view_draw_share(row, x);
		} else {
			view_draw_empty(row, x);
		}
		x = end;
	}
}

static void view_draw_lane(const struct view_timeline *tl, const struct view_lane *lane,
			   struct view_pane *pane)
{
	const int clock = lane->track->clock == IPS_DEVICE;
	const struct view_window window = tl->clock[clock].window;
	struct view_row row = {.tl = tl, .lane = lane, .pane = pane};

	if (tl->choice.way == VIEW_BSP) {
		view__draw_bsp(tl, lane, pane);
		return;
	}
	if (!lane->columns)
		return;
	row.cursor_x = pane->canvas->plain ? -1 : view__cursor_column(tl, clock);
	row.column_ns = (window.to - window.from) / tl->width;
	if (row.column_ns < 1)
		row.column_ns = 1;
	for (int r = 0; r < lane->rows; r++) {
		row.columns = &lane->columns[(size_t)r * (size_t)tl->width];
		row.number = r;
		row.y = view__row_y(lane, r);
		row.thick = view__row_thick(lane, r);
		row.label_y = row.y + (row.thick - 1) / 2;
		view_draw_row(&row);
	}
}

/* Say of what was not traced that it was not, where there is room for the words. */
static void view_draw_untraced(const struct view_timeline *tl, const struct view_lane *lane,
			       struct view_pane *pane)
{
	static const char text[] = " not traced ";
	const struct view_window window = tl->clock[IPS_DEVICE].window;
	struct view_dark dark;

	if (!lane->columns)
		return;
	for (int64_t at = window.from;
	     view__next_dark(tl, lane, at, &dark) && dark.at.from < window.to; at = dark.at.to) {
		const int64_t left = view_window_column(window, tl->width, dark.at.from);
		const int64_t right = view_window_column(window, tl->width, dark.at.to - 1);
		const int64_t from = left < 0 ? 0 : left + 1;
		const int64_t to = right >= tl->width ? tl->width : right;

		if (to - from >= (int64_t)sizeof(text))
			view_text(pane, (int)(from + (to - from - (int64_t)sizeof(text)) / 2),
				  view__row_y(lane, 0), VIEW_DIM, text);
	}
}

/* The lanes and what is around them. */
static void view_draw_timeline(const struct view_timeline *tl, struct view_pane *pane)
{
	struct view_pane lanes = view__sub(pane, tl->areas.lanes);

	if (tl->lane_count == 0) {
		view_text(pane, 2, tl->beside.half.y + 1, VIEW_DIM, "No spans have been recorded.");
		return;
	}
	if (tl->width < 1 || lanes.rect.width != tl->width)
		return;
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view_draw_axis(tl, c, &lanes);
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0) {
			view_draw_lane(tl, &tl->lanes[i], &lanes);
			view_draw_untraced(tl, &tl->lanes[i], &lanes);
		}
	view_draw_around(tl, pane);
}

void view__timeline_draw(const void *state, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct view_timeline *tl = state;

	(void)context;
	if (tl->target) {
		view__timeline_compared(tl, pane);
		view_draw_timeline(tl->target, pane);
	}
	view_draw_timeline(tl, pane);
}
