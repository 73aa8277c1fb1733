/*
 * Drawing the timeline from its columns.
 *
 * A span wide enough to be one is a bar with its label (phase letter and micro-batch, or name);
 * many in one cell are a column whose height is their share of the time. The bubble is shaded with
 * a character. No query, no allocation, no change.
 */
#include <stdio.h>
#include <string.h>

#include "viewer/timeline/view_timeline_internal.h"

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

enum view_style view__phase_text(char phase)
{
	return view_phase_style(phase)->text;
}

enum view_style view__cause_style(enum view_cause cause)
{
	static const enum view_style styles[VIEW_CAUSES] = {
		VIEW_BUBBLE, VIEW_RAMP_UP, VIEW_RAMP_DOWN, VIEW_IMBALANCE, VIEW_COMMUNICATION};

	return styles[cause];
}

enum view_glyph view__cause_glyph(enum view_cause cause)
{
	static const enum view_glyph glyphs[VIEW_CAUSES] = {
		VIEW_GLYPH_SHADE, VIEW_GLYPH_FILL_RAMP_UP, VIEW_GLYPH_FILL_RAMP_DOWN,
		VIEW_GLYPH_FILL_IMBALANCE, VIEW_GLYPH_FILL_COMMUNICATION};

	return glyphs[cause];
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
	const bool selected = bar->span_id == row->tl->selected && !row->tl->in_gap &&
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
	const bool selected = bar->span_id == row->tl->selected && !row->tl->in_gap && !plain;
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
	const enum view_style style = x == row->cursor_x ? VIEW_SELECTED : view__cause_style(cause);

	for (int y = row->y; y < row->y + row->thick; y++)
		view_glyphs(row->pane, x, y, style, view__cause_glyph(cause), 1);
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

	if (tl->way == VIEW_BSP) {
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
		view_text(pane, 2, tl->half.y + 1, VIEW_DIM, "No spans have been recorded.");
		return;
	}
	if (tl->width < 1 || lanes.rect.width != tl->width)
		return;
	for (int c = 0; c < 2; c++)
		if (tl->clock[c].present && tl->clock[c].axis_y >= 0)
			view__draw_axis(tl, c, &lanes);
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0) {
			view_draw_lane(tl, &tl->lanes[i], &lanes);
			view_draw_untraced(tl, &tl->lanes[i], &lanes);
		}
	view__draw_around(tl, pane);
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
