/*
 * Charts in character cells: axes, curves, and filled areas.
 *
 * Threading: one thread per canvas. Ownership: none.
 */
#include "viewer/draw/view_chart.h"

#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_axis.h"

/* ---- axes around a plot ---------------------------------------------------------------------- */

#define ROWS_EACH 3  /* rows of the plot per number of the scale */
#define TWO_ROWS  9  /* least height of a chart with numbers below the axis line, not in it */
#define TITLE     9  /* columns to which the scale is widened at most for the x axis's title */
#define NUMBER    20 /* most columns of a number: "-1.23456789012e-100" */

static int view_scale_ticks(const struct report_axis *y, int rows, double out[REPORT_AXIS_TICKS])
{
	return rows < 2 ? 0 : report_axis_ticks(y, max(rows / ROWS_EACH + 1, 2), out);
}

int view_chart_scale_width(const struct report_axis *y, int height)
{
	double ticks[REPORT_AXIS_TICKS];
	char text[FMT_SIZE];
	int count = view_scale_ticks(y, height, ticks), width = 0;

	if (count < 2) {
		ticks[0] = y->high;
		ticks[1] = y->low;
		count = 2;
	}
	for (int i = 0; i < count; i++)
		width = max(width, utf8_columns(report_axis_text(y, ticks[i], text)));
	width = min(width, NUMBER);
	return y->title ? max(width, utf8_columns(y->title)) : width;
}

struct view_chart_layout view_chart_areas(int width, int height, int scale, bool axis)
{
	struct view_chart_layout out = {.plot = {0, 0, width, height}};
	int rows = 0;

	if (axis)
		rows = height >= TWO_ROWS ? 2 : height >= 3 ? 1 : 0;
	/* Two more columns: a gap and the line. */
	scale = scale > 0 && width >= 3 * (scale + 2) ? scale + 2 : 0;
	out.plot = (struct view_rect){scale, 0, width - scale, height - rows};
	if (scale)
		out.scale = (struct view_rect){0, 0, scale, height - rows};
	if (rows)
		out.axis = (struct view_rect){0, height - rows, width, rows};
	return out;
}

/* ---- the scale at the left ------------------------------------------------------------------- */

static void view_scale_number(struct view_pane *pane, const struct report_axis *y, double value,
			      int row)
{
	const int line = pane->rect.width - 1;
	char text[FMT_SIZE];

	view_text_right(pane, 0, row, line - 1, VIEW_DIM, report_axis_text(y, value, text));
	view_glyphs(pane, line, row, VIEW_DIM, VIEW_GLYPH_TEE, 1);
}

/* Draw the title in the topmost row that has no number. */
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

static void view_draw_scale(struct view_pane *pane, const struct report_axis *y)
{
	const int rows = pane->rect.height;
	double ticks[REPORT_AXIS_TICKS];
	const int count = view_scale_ticks(y, rows, ticks);

	for (int row = 0; row < rows; row++)
		view_glyphs(pane, pane->rect.width - 1, row, VIEW_DIM, VIEW_GLYPH_VERTICAL, 1);
	for (int i = 0; i < count; i++)
		view_scale_number(pane, y, ticks[i],
				  (int)lrint((1 - report_axis_part(y, ticks[i])) * (rows * 4 - 1)) /
					  4);
	/* A single round number does not define a scale: show both ends. */
	if (count < 2) {
		view_scale_number(pane, y, y->low, rows - 1);
		view_scale_number(pane, y, y->high, 0);
	}
	if (y->title)
		view_scale_title(pane, y->title);
}

/* ---- the axis below -------------------------------------------------------------------------- */

/* @pane holds the axis's rows; the plot begins at column @left. */
static void view_draw_ticks(struct view_pane *pane, const struct report_axis *x, int left)
{
	const int columns = pane->rect.width - left, row = pane->rect.height - 1;
	char text[FMT_SIZE];
	const int low = utf8_columns(report_axis_text(x, x->low, text));
	const int each = max(low, utf8_columns(report_axis_text(x, x->high, text))) + 4;
	double ticks[REPORT_AXIS_TICKS];
	const int count = report_axis_ticks(x, max(columns / each, 2), ticks);
	int used = left;

	for (int i = 0; i < count; i++) {
		const int at = left + (int)lrint(report_axis_part(x, ticks[i]) * (columns - 1));
		const int width = utf8_columns(report_axis_text(x, ticks[i], text));
		const int from = max(left, min(at - width / 2, pane->rect.width - width));

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

/* The most last words of @title that fit in @width, at least one: "update" of "weight update". */
static const char *view_title_suffix(const char *title, int width)
{
	while (utf8_columns(title) > width && strchr(title, ' '))
		title = strchr(title, ' ') + 1;
	return title;
}

/* Columns to which the scale is widened for the title; 0 if the pane is too narrow. */
static int view_title_width(const struct view_pane *pane, const char *title)
{
	const int width = utf8_columns(view_title_suffix(title, 0));
	const int columns = min(width, TITLE);

	return view_chart_areas(pane->rect.width, pane->rect.height, columns, true).scale.width > 0
		       ? columns
		       : 0;
}

struct view_pane view_chart_axes(struct view_pane *pane, const struct report_axis *x,
				 const struct report_axis *y, int scale)
{
	int columns = 0;
	struct view_chart_layout areas;
	struct view_pane part;

	if (y)
		columns = scale > 0 ? scale : view_chart_scale_width(y, pane->rect.height);
	if (y && x && x->title && scale <= 0)
		columns = max(columns, view_title_width(pane, x->title));
	areas = view_chart_areas(pane->rect.width, pane->rect.height, columns, x != NULL);
	if (areas.scale.height > 0) {
		part = view_pane_sub(pane, areas.scale);
		view_draw_scale(&part, y);
	}
	if (areas.axis.height > 0) {
		part = view_pane_sub(pane, areas.axis);
		if (areas.scale.width > 0)
			view_glyphs(&part, areas.scale.width - 1, 0, VIEW_DIM, VIEW_GLYPH_CORNER,
				    1);
		view_glyphs(&part, areas.scale.width, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL,
			    part.rect.width - areas.scale.width);
		view_draw_ticks(&part, x, areas.scale.width);
		if (x->title && areas.scale.width > 2)
			view_text_right(&part, 0, part.rect.height - 1, areas.scale.width - 2,
					VIEW_DIM,
					view_title_suffix(x->title, areas.scale.width - 2));
	}
	return view_pane_sub(pane, areas.plot);
}

/* ---- curves ---------------------------------------------------------------------------------- */

#define BRAILLE 0x2800u

/* The bit of each dot by row and column of its cell, in Unicode's order. */
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
		int finite = 0;
		bool bad = false;

		view_share(count, width, at, &from, &to);
		for (int64_t i = from; i < to; i++) {
			bad = bad || points[i].bad;
			if (isfinite(points[i].value)) {
				sum += points[i].value;
				finite++;
			}
		}
		if (finite == 0) {
			view_put(pane, x + at, y, bad ? VIEW_BAD : VIEW_DIM, bad ? '!' : ' ');
			continue;
		}
		level = high > low ? (sum / finite - low) / (high - low) : 0.4;
		view_put(pane, x + at, y, bad ? VIEW_BAD : style,
			 view_level_char(pane->canvas, fmax(level, 0.01)));
	}
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Points arrive from left to right. Those that share a column of dots are drawn together. */
struct view_pen {
	struct view_pane *pane;
	enum view_style style;
	uint32_t mark;                /* for whole cells; 0: braille dots */
	int x, first, last, low, top; /* the pending column; x -1: none. Rows of dots */
	int last_x, last_y;           /* end of the previous column; x -1: a gap */
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

static void view_draw_dot(const struct view_pen *pen, int x, int y)
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

static void view_draw_dot_column(const struct view_pen *pen, int x, int from, int to)
{
	for (int y = min(from, to); y <= max(to, from); y++)
		view_draw_dot(pen, x, y);
}

/* Draw the pending column and the line that leads to it. */
static void view_pen_flush(struct view_pen *pen)
{
	int before = pen->last_y;

	if (pen->x < 0)
		return;
	for (int x = pen->last_x + 1; pen->last_x >= 0 && x <= pen->x; x++) {
		const int y = pen->last_y + (int)((int64_t)(pen->first - pen->last_y) *
						  (x - pen->last_x) / (pen->x - pen->last_x));

		view_draw_dot_column(pen, x, before, y);
		before = y;
	}
	view_draw_dot_column(pen, pen->x, pen->low, pen->top);
	pen->last_x = pen->x;
	pen->last_y = pen->last;
	pen->x = -1;
}

static void view_pen_lift(struct view_pen *pen)
{
	view_pen_flush(pen);
	pen->last_x = -1;
}

/* @low, @top: rows between which the point extends. */
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

static int view_dot_row(const struct report_axis *axis, double value, int dots)
{
	return (int)lrint((1 - report_axis_part(axis, value)) * (dots - 1));
}

/* The column of dots of point @index if the points are evenly spaced from end to end. */
static int view_even_dot(int64_t count, int dots, int64_t index)
{
	return count <= 1 ? 0 : (int)(index * (dots - 1) / (count - 1));
}

int view_chart_column(int width, int64_t count, int64_t index)
{
	return view_even_dot(count, width * 2, index) / 2;
}

void view_chart_line(struct view_pane *plot, const struct view_series *series,
		     const struct report_axis *x, const struct report_axis *y)
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
				       : report_axis_part(x, series->at[i]);
		if (!isfinite(value) || isnan(part)) {
			view_pen_lift(&pen);
			continue;
		}
		row = view_dot_row(y, value, height);
		view_pen_point(&pen,
			       series->at && x ? (int)lrint(part * (width - 1))
					       : view_even_dot(series->count, width, i),
			       row, row, row);
	}
	view_pen_lift(&pen);
}

void view_chart_curve(struct view_pane *pane, enum view_style style,
		      const struct view_chart_point *points, int count, double low, double high)
{
	const struct report_axis axis = {.low = low, .high = high};
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
		row = view_dot_row(&axis, point->value, height);
		view_pen_point(&pen, view_even_dot(count, width, i), row,
			       range ? view_dot_row(&axis, point->least, height) : row,
			       range ? view_dot_row(&axis, point->greatest, height) : row);
	}
	view_pen_lift(&pen);
	for (int i = 0; i < count; i++)
		if (points[i].bad)
			view_put(pane, view_even_dot(count, width, i) / 2, 0, VIEW_BAD, '!');
}

void view_chart_marker(struct view_pane *plot, int x)
{
	for (int y = 0; y < plot->rect.height; y++)
		if (view_char_at(plot, x, y) == ' ')
			view_glyphs(plot, x, y, VIEW_SELECT_MARK, VIEW_GLYPH_VERTICAL_DOTS, 1);
	view_glyphs(plot, x, 0, VIEW_SELECT_MARK, VIEW_GLYPH_CURSOR, 1);
}

/* ---- stacked areas, histograms, horizontal bars ---------------------------------------------- */

#define EIGHTHS     8
#define LEFT_BLOCKS 0x2590u /* minus n: n eighths from the left */
#define GAP_FROM    3       /* least cells of a histogram's bar with a gap after it */

static double view_above_zero(double value)
{
	return isfinite(value) && value > 0 ? value : 0;
}

static bool view_solid(const struct view_canvas *canvas)
{
	return !canvas->ascii && !view_colourless(canvas);
}

/* ---- stacked areas --------------------------------------------------------------------------- */

static double view_stack_total(const struct view_series *series, int count, int64_t index)
{
	double total = 0;

	for (int i = 0; i < count; i++)
		total += view_above_zero(series[i].values[index]);
	return total;
}

/* The eighths of a cell that one series covers; series -1 is the blank above all. */
struct view_piece {
	int series, eighths;
};

/* Find the lowest piece of a cell and the greatest one above it. @tops: eighths where series
 * end. */
static void view_cell_pieces(const int *tops, int count, int from, struct view_piece out[2])
{
	int at = from, series = 0;

	out[0] = out[1] = (struct view_piece){-1, 0};
	while (at < from + EIGHTHS) {
		int end = from + EIGHTHS;
		struct view_piece piece;

		while (series < count && tops[series] <= at)
			series++;
		if (series < count && tops[series] < end)
			end = tops[series];
		piece = (struct view_piece){series < count ? series : -1, end - at};
		if (at == from)
			out[0] = piece;
		else if (piece.eighths > out[1].eighths)
			out[1] = piece;
		at = end;
	}
}

static bool view_is_series(enum view_style style)
{
	return style >= VIEW_SERIES_1 && style < VIEW_SERIES_1 + VIEW_SERIES;
}

static void view_stack_cell(struct view_pane *plot, int x, int y, const struct view_series *series,
			    const struct view_piece piece[2])
{
	const struct view_canvas *canvas = plot->canvas;
	const struct view_piece *most = piece[1].eighths > piece[0].eighths ? &piece[1] : piece;
	const double part = (double)piece[0].eighths / EIGHTHS;
	enum view_style low, up;

	if (piece[0].series < 0)
		return;
	low = series[piece[0].series].style;
	if (piece[1].series < 0 && piece[1].eighths > 0 && view_solid(canvas)) {
		view_put(plot, x, y, low, view_level_char(canvas, part - 1e-9));
		return;
	}
	/* The blank above never hides the bottom of a stack. */
	if (most->series < 0)
		most = piece;
	up = piece[1].series >= 0 ? series[piece[1].series].style : low;
	if (view_solid(canvas) && canvas->colours >= 256 && up != low && view_is_series(low) &&
	    view_is_series(up))
		view_put(plot, x, y,
			 (enum view_style)(VIEW_SERIES_PAIR + (low - VIEW_SERIES_1) * VIEW_SERIES +
					   (up - VIEW_SERIES_1)),
			 view_level_char(canvas, part - 1e-9));
	else if (view_solid(canvas))
		view_glyphs(plot, x, y, series[most->series].style, VIEW_GLYPH_FULL, 1);
	else
		view_put(plot, x, y, series[most->series].style,
			 view_fill_char(canvas, series[most->series].style));
}

#define STACK_MOST 32

static void view_stack_column(struct view_pane *plot, int x, const struct view_series *series,
			      int count, int64_t index, const struct report_axis *y)
{
	const int rows = plot->rect.height;
	int tops[STACK_MOST];
	double sum = 0;

	for (int i = 0; i < count; i++) {
		const double before = sum,
			     part = report_axis_part(y, sum +=
							view_above_zero(series[i].values[index]));

		tops[i] = isnan(part) ? 0 : (int)lrint(part * rows * EIGHTHS);
		/* The lowest series is visible even if it rounds to nothing. */
		if (sum > y->low && before == 0 && tops[i] == 0)
			tops[i] = 1;
	}
	for (int row = 0; row < rows; row++) {
		struct view_piece piece[2];

		view_cell_pieces(tops, count, row * EIGHTHS, piece);
		view_stack_cell(plot, x, rows - 1 - row, series, piece);
	}
}

void view_chart_stack(struct view_pane *plot, const struct view_series *series, int count,
		      const struct report_axis *y)
{
	const int64_t points = count > 0 ? series[0].count : 0;

	count = min(STACK_MOST, count);
	for (int x = 0; x < plot->rect.width && points > 0; x++) {
		int64_t from, to, best;

		view_share(points, plot->rect.width, x, &from, &to);
		best = from;
		for (int64_t i = from + 1; i < to; i++)
			if (view_stack_total(series, count, i) >
			    view_stack_total(series, count, best))
				best = i;
		view_stack_column(plot, x, series, count, best, y);
	}
}

/* ---- histograms ------------------------------------------------------------------------------ */

void view_chart_columns(struct view_pane *plot, enum view_style style, const double *values,
			int64_t count, const struct report_axis *y)
{
	const int width = plot->rect.width;

	for (int x = 0; x < width && count > 0; x++) {
		double greatest = NAN;
		int64_t from, to, next, end;

		view_share(count, width, x, &from, &to);
		view_share(count, width, x + 1, &next, &end);
		if (width / count >= GAP_FROM && next != from)
			continue; /* the gap: last cell of a wide bar */
		for (int64_t i = from; i < to; i++)
			if (isfinite(values[i]))
				greatest = fmax(greatest, values[i]);
		if (!isnan(greatest)) {
			const int rows = plot->rect.height;
			const double full = report_axis_part(y, greatest) * rows;

			for (int row = 0; row < rows && full > row; row++) {
				const double cell = full - row >= 1 ? 1 : full - row;

				view_put(plot, x, rows - 1 - row, style,
					 view_level_char(plot->canvas, cell));
			}
		}
	}
}

/* ---- horizontal bars ------------------------------------------------------------------------- */

int view_chart_bar(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   double part)
{
	const bool ascii = pane->canvas->ascii;
	const int each = ascii ? 1 : EIGHTHS; /* steps per cell */
	int steps, cells;

	if (!(part > 0) || width < 1)
		return 0;
	steps = (int)lrint(fmin(part, 1) * width * each);
	steps = max(1, steps);
	cells = (steps + each - 1) / each;
	view_glyphs(pane, x, y, style, VIEW_GLYPH_FULL, steps / each);
	if (steps % each > 0)
		view_put(pane, x + cells - 1, y, style, LEFT_BLOCKS - (uint32_t)(steps % each));
	return cells;
}

int view_chart_key(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   const char *name)
{
	const struct view_canvas *canvas = pane->canvas;
	const int used = utf8_columns(name) + 2;

	if (used > width)
		return 0;
	view_put(pane, x, y, style,
		 view_solid(canvas) ? view_glyph_char(canvas, VIEW_GLYPH_FULL)
				    : view_fill_char(canvas, style));
	view_text_cut(pane, x + 2, y, used - 2, VIEW_NORMAL, name);
	return used + 2;
}
