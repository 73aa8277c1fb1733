/*
 * What is around the timeline's bars: the line above, axes, labels, idle times, the overview and
 * the details.
 *
 * No query, no allocation, no change.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/timeline/view_timeline_internal.h"

#define TICKS_APART  14
#define FIELD_WIDTH  38
#define NAME_WIDTH   15
#define FILTER_WIDTH 16
#define WAYS_FROM    120 /* columns that show the names of all ways */

int view__cursor_column(const struct view_timeline *tl, int clock)
{
	const struct view_clock *of = &tl->clock[clock];

	if (view__lead(tl) != clock)
		return -1;
	return (int)view_window_column(of->window, tl->width, tl->cursor_ns);
}

/* ---- around the bars ------------------------------------------------------------------------- */

/* Columns of the axis that are marked: x and the cursor; -1: not. */
static void view_axis_marks(const struct view_timeline *tl, int clock, const struct view_pane *pane,
			    int marks[2])
{
	const int64_t x =
		tl->measured_ns == IPS_NULL || tl->measured_clock != clock
			? -1
			: view_window_column(tl->clock[clock].window, tl->width, tl->measured_ns);

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

void view__draw_axis(const struct view_timeline *tl, int clock, struct view_pane *pane)
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
		const bool here = i == tl->lane && !pane->canvas->plain && tl->mark != 'T';
		const int main = max(lane->work_row, 0);
		int row, y;

		if (lane->rows == 0)
			continue;
		y = view__row_y(lane, main) + (view__row_thick(lane, main) - 1) / 2;
		if (tl->mark)
			view_put(pane, 1, y, view_mark_style(tl), (uint32_t)tl->mark);
		view_text_cut(pane, tl->mark ? 3 : 1, y, pane->rect.width - (tl->mark ? 4 : 2),
			      here ? VIEW_BOLD : VIEW_NORMAL, lane->track->name);
		row = view__row_of_depth(tl, lane, tl->depth);
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
	const struct view_bubble *bubble = &tl->bubble[view__lead(tl)];
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
	for (int x = 0; x < tl->width && tl->overview && tl->overview_width == tl->width; x++) {
		const struct view_column *column = &tl->overview[x];

		if (column->bar < 0 && column->dark)
			view_glyphs(pane, left + x, 0, VIEW_DIM, VIEW_GLYPH_UNTRACED, 1);
		else if (column->bar >= 0 && column->left_out)
			view_glyphs(pane, left + x, 0, VIEW_DIM, VIEW_GLYPH_LEFT_OUT, 1);
		else if (column->bar >= 0 && column_ns > 0)
			view_put(pane, left + x, 0,
				 view__phase_text(view__phase(tl, &tl->overview_bars[column->bar])),
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
	const char phase = tl->selected != IPS_NULL ? tl->span.phase : 0;
	char title[VIEW_PATH_SIZE + 8];
	int x;

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	if (tl->step.step)
		snprintf(title, sizeof(title), " %s ",
			 tl->step.step->name ? tl->step.step->name : tl->step.step->type);
	else if (tl->in_gap)
		snprintf(title, sizeof(title), " %s ",
			 tl->gap.dark          ? "not traced"
			 : tl->gap_run >= 0    ? "idle: bubble"
			 : tl->way == VIEW_BSP ? "no stage work"
					       : "idle");
	else if (tl->selected == IPS_NULL)
		snprintf(title, sizeof(title), " nothing here ");
	else if (phase && tl->span.microbatch != IPS_NULL && phase != IPS_UPDATE)
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
	if (view__shows_sums(tl)) {
		view__draw_sums(tl, pane);
		return;
	}
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
		return x + view_text(pane, x, 0, VIEW_TITLE, view__way_names[tl->way]) + 2;
	for (int w = 0; w < VIEW_WAYS; w++) {
		const bool here = w == (int)tl->way;

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
	const struct view_bubble *bubble = &tl->bubble[view__lead(tl)];
	const bool wide = pane->rect.width - x >= 100;
	char causes[VIEW_CAUSES][32], theory[32], text[64];
	int room = pane->rect.width - x;

	if (bubble->runs < 1 || isnan(bubble->idle))
		return;
	snprintf(text, sizeof(text), "bubble %.1f %%", bubble->idle * 100);
	snprintf(theory, sizeof(theory), " (theory %.1f %%)", bubble->theory * 100);
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		view_cause_text(bubble, i, wide, causes[i], sizeof(causes[i]));
		room -= 1 + tl->by_cause + view_text_width(causes[i]);
	}
	x += view_text(pane, x, 0, VIEW_BOLD, text);
	if (room > view_text_width(text) + view_text_width(theory))
		x += view_text(pane, x, 0, VIEW_NORMAL, theory);
	x += view_text(pane, x, 0, VIEW_NORMAL, ":");
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		x++;
		if (tl->by_cause)
			view_glyphs(pane, x, 0, view__cause_style((enum view_cause)i),
				    view__cause_glyph((enum view_cause)i), 1);
		x += tl->by_cause;
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
	if (tl->only_ipu != IPS_NULL || tl->only_replica != IPS_NULL)
		x += view_text(pane, x, 0, VIEW_WARN, text) + 2;
	if (tl->filter.active && tl->way != VIEW_BSP) {
		x += view_text(pane, x, 0, VIEW_WARN, "filter ");
		x += view_text_cut(pane, x, 0, FILTER_WIDTH, VIEW_WARN, tl->filter.text) + 2;
	}
	if (tl->way == VIEW_BSP)
		view__draw_bsp_key(tl, pane, x);
	else
		view_draw_bubble(tl, pane, x);
}

void view__draw_around(const struct view_timeline *tl, struct view_pane *pane)
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
