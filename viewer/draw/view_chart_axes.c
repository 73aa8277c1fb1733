/*
 * Axes around a plot: numbers at the left, numbers below.
 *
 * Threading: one thread per canvas. Ownership: none.
 */
#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "viewer/draw/view_chart.h"

#define ROWS_EACH 3  /* rows of the plot that a number of the scale gets */
#define TWO_ROWS  9  /* charts as high as that have numbers under the axis, not in it */
#define TITLE     9  /* columns of a title below the scale that it is widened for */
#define NUMBER    11 /* columns of a number at the most: "1.234e-100" */

static int view_less(int a, int b)
{
	return min(a, b);
}

static int view_most(int a, int b)
{
	return max(a, b);
}

static int view_scale_ticks(const struct view_axis *y, int rows, double out[VIEW_AXIS_TICKS])
{
	return rows < 2 ? 0 : view_axis_ticks(y, view_most(rows / ROWS_EACH + 1, 2), out);
}

int view_chart_scale_width(const struct view_axis *y, int height)
{
	double ticks[VIEW_AXIS_TICKS];
	char text[FMT_SIZE];
	int count = view_scale_ticks(y, height, ticks), width = 0;

	if (count < 2) {
		ticks[0] = y->high;
		ticks[1] = y->low;
		count = 2;
	}
	for (int i = 0; i < count; i++)
		width = view_most(width, view_text_width(view_axis_text(y, ticks[i], text)));
	width = view_less(width, NUMBER);
	return y->title ? view_most(width, view_text_width(y->title)) : width;
}

struct view_chart_layout view_chart_areas(int width, int height, int scale, bool axis)
{
	struct view_chart_layout out = {.plot = {0, 0, width, height}};
	int rows = 0;

	if (axis)
		rows = height >= TWO_ROWS ? 2 : height >= 3 ? 1 : 0;
	/* Two columns more: a gap and the line. */
	scale = scale > 0 && width >= 3 * (scale + 2) ? scale + 2 : 0;
	out.plot = (struct view_rect){scale, 0, width - scale, height - rows};
	if (scale)
		out.scale = (struct view_rect){0, 0, scale, height - rows};
	if (rows)
		out.axis = (struct view_rect){0, height - rows, width, rows};
	return out;
}

/* ---- the scale at the left ------------------------------------------------------------------- */

static void view_scale_number(struct view_pane *pane, const struct view_axis *y, double value,
			      int row)
{
	const int line = pane->rect.width - 1;
	char text[FMT_SIZE];

	view_text_right(pane, 0, row, line - 1, VIEW_DIM, view_axis_text(y, value, text));
	view_glyphs(pane, line, row, VIEW_DIM, VIEW_GLYPH_TEE, 1);
}

/* In the first row from the top that has no number. */
static void view_scale_title(struct view_pane *pane, const char *title)
{
	const int line = pane->rect.width - 1;

	for (int row = 0; row < pane->rect.height; row++) {
		bool blank = true;

		for (int x = 0; x < line; x++)
			blank = blank && view_char_at(pane, x, row) == ' ';
		if (!blank)
			continue;
		view_text_right(pane, 0, row, line - 1, VIEW_DIM, title);
		return;
	}
}

static void view_draw_scale(struct view_pane *pane, const struct view_axis *y)
{
	const int rows = pane->rect.height;
	double ticks[VIEW_AXIS_TICKS];
	const int count = view_scale_ticks(y, rows, ticks);

	for (int row = 0; row < rows; row++)
		view_glyphs(pane, pane->rect.width - 1, row, VIEW_DIM, VIEW_GLYPH_VERTICAL, 1);
	for (int i = 0; i < count; i++)
		view_scale_number(pane, y, ticks[i],
				  (int)lrint((1 - view_axis_part(y, ticks[i])) * (rows * 4 - 1)) /
					  4);
	/* One round number tells no scale. */
	if (count < 2) {
		view_scale_number(pane, y, y->low, rows - 1);
		view_scale_number(pane, y, y->high, 0);
	}
	if (y->title)
		view_scale_title(pane, y->title);
}

/* ---- the axis below -------------------------------------------------------------------------- */

static int view_axis_number_width(const struct view_axis *x)
{
	char text[FMT_SIZE];
	const int low = view_text_width(view_axis_text(x, x->low, text));

	return view_most(low, view_text_width(view_axis_text(x, x->high, text)));
}

/* @pane: the axis's rows, @left columns of it before the plot. */
static void view_draw_ticks(struct view_pane *pane, const struct view_axis *x, int left)
{
	const int columns = pane->rect.width - left, row = pane->rect.height - 1;
	const int each = view_axis_number_width(x) + 4;
	double ticks[VIEW_AXIS_TICKS];
	const int count = view_axis_ticks(x, view_most(columns / each, 2), ticks);
	int used = left;

	for (int i = 0; i < count; i++) {
		const int at = left + (int)lrint(view_axis_part(x, ticks[i]) * (columns - 1));
		char text[FMT_SIZE];
		const int width = view_text_width(view_axis_text(x, ticks[i], text));
		const int from =
			view_most(left, view_less(at - width / 2, pane->rect.width - width));

		if (row > 0)
			view_glyphs(pane, at, 0, VIEW_DIM, VIEW_GLYPH_TICK, 1);
		if (from < used || from + width > pane->rect.width)
			continue;
		if (row == 0) {
			view_fill(pane, from - 1, 0, width + 2, VIEW_DIM);
			if (from == left && left > 0)
				view_glyphs(pane, left - 1, 0, VIEW_DIM, VIEW_GLYPH_CORNER, 1);
		}
		view_text(pane, from, row, VIEW_DIM, text);
		used = from + width + 2;
	}
}

/*
 * As many of the last words of @title as @width holds, one at least: "update" of "weight update".
 */
static const char *view_title_within(const char *title, int width)
{
	while (view_text_width(title) > width && strchr(title, ' '))
		title = strchr(title, ' ') + 1;
	return title;
}

/* Columns that the scale is to have for the title; 0: there is no room for more than it has. */
static int view_title_width(const struct view_pane *pane, const char *title)
{
	const int width = view_text_width(view_title_within(title, 0));
	const int columns = view_less(width, TITLE);

	return view_chart_areas(pane->rect.width, pane->rect.height, columns, true).scale.width > 0
		       ? columns
		       : 0;
}

static void view_draw_axis(struct view_pane *pane, const struct view_axis *x, int left)
{
	if (left > 0)
		view_glyphs(pane, left - 1, 0, VIEW_DIM, VIEW_GLYPH_CORNER, 1);
	view_glyphs(pane, left, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width - left);
	view_draw_ticks(pane, x, left);
	if (x->title && left > 2)
		view_text_right(pane, 0, pane->rect.height - 1, left - 2, VIEW_DIM,
				view_title_within(x->title, left - 2));
}

struct view_pane view_chart_axes(struct view_pane *pane, const struct view_axis *x,
				 const struct view_axis *y, int scale)
{
	int columns = 0;
	struct view_chart_layout areas;
	struct view_pane part;

	if (y)
		columns = scale > 0 ? scale : view_chart_scale_width(y, pane->rect.height);
	if (y && x && x->title && scale <= 0)
		columns = view_most(columns, view_title_width(pane, x->title));
	areas = view_chart_areas(pane->rect.width, pane->rect.height, columns, x != NULL);
	if (areas.scale.height > 0) {
		part = view_pane_sub(pane, areas.scale);
		view_draw_scale(&part, y);
	}
	if (areas.axis.height > 0) {
		part = view_pane_sub(pane, areas.axis);
		view_draw_axis(&part, x, areas.scale.width);
	}
	return view_pane_sub(pane, areas.plot);
}
