/*
 * Curves in character cells.
 *
 * A cell is 2 x 4 dots in braille. Dots are set straight in the canvas: a braille character already
 * there is joined with.
 */
#include "viewer/draw/view_chart.h"

#include <math.h>

#include "common/minmax.h"
#include "viewer/draw/view_share.h"

#define BRAILLE 0x2800u

/* The bit of a dot by row and column of its cell, as Unicode orders them. */
static const uint8_t view_dots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

bool view_chart_range(const struct view_chart_point *points, int count, double *low, double *high)
{
	bool found = false;

	*low = 0;
	*high = 1;
	for (int i = 0; i < count; i++) {
		const double values[] = {points[i].value, points[i].least, points[i].greatest};

		for (int v = 0; v < 3; v++) {
			if (!isfinite(values[v]))
				continue;
			*low = found ? fmin(*low, values[v]) : values[v];
			*high = found ? fmax(*high, values[v]) : values[v];
			found = true;
		}
	}
	if (found && !(*high > *low)) {
		const double half = *low == 0 ? 0.5 : fabs(*low) * 0.05;

		*low -= half;
		*high += half;
	}
	return found;
}

void view_chart_spark(struct view_pane *pane, int x, int y, int width, enum view_style style,
		      const struct view_chart_point *points, int count)
{
	double low = INFINITY, high = -INFINITY;

	for (int i = 0; i < count; i++)
		if (isfinite(points[i].value)) {
			low = fmin(low, points[i].value);
			high = fmax(high, points[i].value);
		}
	for (int at = 0; at < width && count > 0; at++) {
		double sum = 0, level;
		int64_t from, to;
		int taken = 0;
		bool bad = false;

		view_share(count, width, at, &from, &to);
		for (int64_t i = from; i < to; i++) {
			bad = bad || points[i].bad;
			if (isfinite(points[i].value)) {
				sum += points[i].value;
				taken++;
			}
		}
		if (taken == 0) {
			view_put(pane, x + at, y, bad ? VIEW_BAD : VIEW_DIM, bad ? '!' : ' ');
			continue;
		}
		level = high > low ? (sum / taken - low) / (high - low) : 0.4;
		view_put(pane, x + at, y, bad ? VIEW_BAD : style,
			 view_level_char(pane->canvas, fmax(level, 0.01)));
	}
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Points come from left to right; those of one column of dots are drawn together. */
struct view_pen {
	struct view_pane *pane;
	enum view_style style;
	uint32_t mark;                /* for whole cells; 0: dots */
	int x, first, last, low, top; /* the column at hand; x -1: none. Rows of dots */
	int last_x, last_y;           /* where the column before ended; x -1: a hole */
};

static struct view_pen view_pen_begin(struct view_pane *pane, enum view_style style)
{
	const uint32_t fill = view_fill_char(pane->canvas, style);
	const bool dots =
		!pane->canvas->ascii && (!view_colourless(pane->canvas) ||
					 fill == view_glyph_char(pane->canvas, VIEW_GLYPH_FULL));

	return (struct view_pen){
		.pane = pane, .style = style, .mark = dots ? 0 : fill, .x = -1, .last_x = -1};
}

static void view_dot(const struct view_pen *pen, int x, int y)
{
	const int column = x / 2, row = y / 4;
	uint32_t character;

	if (pen->mark) {
		view_put(pen->pane, column, row, pen->style, pen->mark);
		return;
	}
	character = view_char_at(pen->pane, column, row);
	if (character < BRAILLE || character > BRAILLE + 0xff)
		character = BRAILLE;
	view_put(pen->pane, column, row, pen->style, character | view_dots[y % 4][x % 2]);
}

static void view_column(const struct view_pen *pen, int x, int from, int to)
{
	for (int y = min(from, to); y <= max(to, from); y++)
		view_dot(pen, x, y);
}

/* Draw the column at hand and the way to it. */
static void view_pen_flush(struct view_pen *pen)
{
	int before = pen->last_y;

	if (pen->x < 0)
		return;
	for (int x = pen->last_x + 1; pen->last_x >= 0 && x <= pen->x; x++) {
		const int y = pen->last_y + (int)((int64_t)(pen->first - pen->last_y) *
						  (x - pen->last_x) / (pen->x - pen->last_x));

		view_column(pen, x, before, y);
		before = y;
	}
	view_column(pen, pen->x, pen->low, pen->top);
	pen->last_x = pen->x;
	pen->last_y = pen->last;
	pen->x = -1;
}

static void view_pen_lift(struct view_pen *pen)
{
	view_pen_flush(pen);
	pen->last_x = -1;
}

/* @low, @top: the rows between which the point stretches. */
static void view_pen_point(struct view_pen *pen, int x, int y, int low, int top)
{
	if (x != pen->x) {
		view_pen_flush(pen);
		pen->x = x;
		pen->first = pen->low = pen->top = y;
	}
	pen->last = y;
	pen->low = max(low, pen->low);
	pen->top = min(top, pen->top);
	pen->low = max(y, pen->low);
	pen->top = min(y, pen->top);
}

static int view_height(const struct view_axis *axis, double value, int dots)
{
	return (int)lrint((1 - view_axis_part(axis, value)) * (dots - 1));
}

/* The column of dots of point @index, evenly from end to end. */
static int view_even(int64_t count, int dots, int64_t index)
{
	return count <= 1 ? 0 : (int)(index * (dots - 1) / (count - 1));
}

int view_chart_column(int width, int64_t count, int64_t index)
{
	return view_even(count, width * 2, index) / 2;
}

void view_chart_line(struct view_pane *plot, const struct view_series *series,
		     const struct view_axis *x, const struct view_axis *y)
{
	const int width = plot->rect.width * 2, height = plot->rect.height * 4;
	struct view_pen pen = view_pen_begin(plot, series->style);

	if (!(y->high > y->low) || width <= 0 || height <= 0)
		return;
	for (int64_t i = 0; i < series->count; i++) {
		const double value = series->values[i];
		double part = 0;
		int row;

		if (series->at && x)
			part = series->at[i] < x->low || series->at[i] > x->high
				       ? NAN
				       : view_axis_part(x, series->at[i]);
		if (!isfinite(value) || isnan(part)) {
			view_pen_lift(&pen);
			continue;
		}
		row = view_height(y, value, height);
		view_pen_point(&pen,
			       series->at && x ? (int)lrint(part * (width - 1))
					       : view_even(series->count, width, i),
			       row, row, row);
	}
	view_pen_lift(&pen);
}

void view_chart_curve(struct view_pane *pane, enum view_style style,
		      const struct view_chart_point *points, int count, double low, double high)
{
	const struct view_axis axis = {.low = low, .high = high};
	const int width = pane->rect.width * 2, height = pane->rect.height * 4;
	struct view_pen pen = view_pen_begin(pane, style);

	if (!(high > low) || width <= 0 || height <= 0)
		return;
	for (int i = 0; i < count; i++) {
		const struct view_chart_point *point = &points[i];
		const bool range = isfinite(point->least) && isfinite(point->greatest);
		int row;

		if (!isfinite(point->value)) {
			view_pen_lift(&pen);
			continue;
		}
		row = view_height(&axis, point->value, height);
		view_pen_point(&pen, view_even(count, width, i), row,
			       range ? view_height(&axis, point->least, height) : row,
			       range ? view_height(&axis, point->greatest, height) : row);
	}
	view_pen_lift(&pen);
	for (int i = 0; i < count; i++)
		if (points[i].bad)
			view_put(pane, view_even(count, width, i) / 2, 0, VIEW_BAD, '!');
}

void view_chart_marker(struct view_pane *plot, int x)
{
	for (int y = 0; y < plot->rect.height; y++)
		if (view_char_at(plot, x, y) == ' ')
			view_glyphs(plot, x, y, VIEW_SELECT_MARK, VIEW_GLYPH_VERTICAL_DOTS, 1);
	view_glyphs(plot, x, 0, VIEW_SELECT_MARK, VIEW_GLYPH_CURSOR, 1);
}
