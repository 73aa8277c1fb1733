/*
 * Curves in character cells.
 *
 * A cell is 2 x 4 dots in braille. Dots are set straight in the canvas: a braille character already
 * there is joined with.
 */
#include "viewer/draw/view_chart.h"

#include <math.h>

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

/* Points @from .. @to - 1 that fall on cell @at of @cells; at least one. */
static void view_share(int count, int cells, int at, int *from, int *to)
{
	*from = (int)((int64_t)at * count / cells);
	*to = (int)((int64_t)(at + 1) * count / cells);
	if (*to <= *from)
		*to = *from + 1;
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
		int from, to, taken = 0;
		bool bad = false;

		view_share(count, width, at, &from, &to);
		for (int i = from; i < to; i++) {
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

static void view_dot(struct view_pane *pane, enum view_style style, int x, int y)
{
	const int column = x / 2, row = y / 4;
	const struct view_canvas *canvas = pane->canvas;
	uint32_t character;

	if (x < 0 || y < 0 || column >= pane->rect.width || row >= pane->rect.height)
		return;
	if (canvas->ascii) {
		view_put(pane, column, row, style, '*');
		return;
	}
	character = canvas->cells[(size_t)(pane->rect.y + row) * (size_t)canvas->width +
				  (size_t)(pane->rect.x + column)]
			    .character;
	if (character < BRAILLE || character > BRAILLE + 0xff)
		character = BRAILLE;
	view_put(pane, column, row, style, character | view_dots[y % 4][x % 2]);
}

static int view_height(double value, double low, double high, int dots)
{
	const double part = (value - low) / (high - low);

	return (int)lrint((1 - fmin(fmax(part, 0), 1)) * (dots - 1));
}

static void view_column(struct view_pane *pane, enum view_style style, int x, int from, int to)
{
	if (from > to) {
		view_column(pane, style, x, to, from);
		return;
	}
	for (int y = from; y <= to; y++)
		view_dot(pane, style, x, y);
}

void view_chart_curve(struct view_pane *pane, enum view_style style,
		      const struct view_chart_point *points, int count, double low, double high)
{
	const int width = pane->rect.width * 2, height = pane->rect.height * 4;
	int last_x = -1, last_y = 0;

	if (!(high > low) || width <= 0 || height <= 0)
		return;
	for (int i = 0; i < count; i++) {
		const int x = count == 1 ? 0 : (int)((int64_t)i * (width - 1) / (count - 1));
		int y;

		if (points[i].bad)
			view_put(pane, x / 2, 0, VIEW_BAD, '!');
		if (!isfinite(points[i].value)) {
			last_x = -1;
			continue;
		}
		y = view_height(points[i].value, low, high, height);
		if (isfinite(points[i].least) && isfinite(points[i].greatest))
			view_column(pane, style, x, view_height(points[i].least, low, high, height),
				    view_height(points[i].greatest, low, high, height));
		/* A line from the point before: steep parts stay joined. */
		for (int between = last_x < 0 ? x : last_x; between <= x; between++) {
			const int at =
				last_x < 0 || x == last_x
					? y
					: last_y + (y - last_y) * (between - last_x) / (x - last_x);

			view_dot(pane, style, between, at);
			if (between == x && last_x >= 0 && x - last_x <= 1)
				view_column(pane, style, x, at, last_y);
		}
		last_x = x;
		last_y = y;
	}
}
