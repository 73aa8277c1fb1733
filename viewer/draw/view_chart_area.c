/*
 * Filled charts: stacked areas, histograms, lying bars.
 *
 * A cell is eight steps high or wide. Where two series meet in a cell both are shown if there are
 * colours for it; else the cell is the one's that has more of it.
 *
 * Threading: one thread per canvas. Ownership: none.
 */
#include <math.h>

#include "common/minmax.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_share.h"

#define EIGHTHS     8
#define LEFT_BLOCKS 0x2590u /* less n eighths */
#define NAME_PART   3       /* names of bars get a third of the width at the most */
#define GAP_FROM    3       /* cells of a histogram's bar from which on a gap is left */

static double view_above_zero(double value)
{
	return isfinite(value) && value > 0 ? value : 0;
}

static bool view_solid(const struct view_canvas *canvas)
{
	return !canvas->ascii && !view_colourless(canvas);
}

/* ---- stacked areas --------------------------------------------------------------------------- */

static double view_total(const struct view_series *series, int count, int64_t index)
{
	double total = 0;

	for (int i = 0; i < count; i++)
		total += view_above_zero(series[i].values[index]);
	return total;
}

/* What series has of the eighths @from .. @to of a column: -1 is the blank above. */
struct view_piece {
	int series, eighths;
};

/* The lowest piece of a cell and the greatest one above it; @tops: eighths where series end. */
static void view_pieces(const int *tops, int count, int from, struct view_piece out[2])
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
	/* The foot of something is never hidden by the blank above it. */
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
			      int count, int64_t index, const struct view_axis *y)
{
	const int rows = plot->rect.height;
	int tops[STACK_MOST];
	double sum = 0;

	for (int i = 0; i < count; i++) {
		const double before = sum,
			     part = view_axis_part(y,
						   sum += view_above_zero(series[i].values[index]));

		tops[i] = isnan(part) ? 0 : (int)lrint(part * rows * EIGHTHS);
		/* The least there is shows at the foot. */
		if (sum > y->low && before == 0 && tops[i] == 0)
			tops[i] = 1;
	}
	for (int row = 0; row < rows; row++) {
		struct view_piece piece[2];

		view_pieces(tops, count, row * EIGHTHS, piece);
		view_stack_cell(plot, x, rows - 1 - row, series, piece);
	}
}

void view_chart_stack(struct view_pane *plot, const struct view_series *series, int count,
		      const struct view_axis *y)
{
	const int64_t points = count > 0 ? series[0].count : 0;

	count = min(STACK_MOST, count);
	for (int x = 0; x < plot->rect.width && points > 0; x++) {
		int64_t from, to, best;

		view_share(points, plot->rect.width, x, &from, &to);
		best = from;
		for (int64_t i = from + 1; i < to; i++)
			if (view_total(series, count, i) > view_total(series, count, best))
				best = i;
		view_stack_column(plot, x, series, count, best, y);
	}
}

/* ---- histograms ------------------------------------------------------------------------------ */

static void view_upright(struct view_pane *plot, int x, enum view_style style, double part)
{
	const int rows = plot->rect.height;
	const double full = part * rows;

	for (int row = 0; row < rows && full > row; row++) {
		const double cell = full - row >= 1 ? 1 : full - row;

		view_put(plot, x, rows - 1 - row, style, view_level_char(plot->canvas, cell));
	}
}

void view_chart_columns(struct view_pane *plot, enum view_style style, const double *values,
			int64_t count, const struct view_axis *y)
{
	const int width = plot->rect.width;

	for (int x = 0; x < width && count > 0; x++) {
		double greatest = NAN;
		int64_t from, to, next, end;

		view_share(count, width, x, &from, &to);
		view_share(count, width, x + 1, &next, &end);
		if (width / count >= GAP_FROM && next != from)
			continue; /* the last cell of a bar that is wide */
		for (int64_t i = from; i < to; i++)
			if (isfinite(values[i]))
				greatest = fmax(greatest, values[i]);
		if (!isnan(greatest))
			view_upright(plot, x, style, view_axis_part(y, greatest));
	}
}

/* ---- lying bars ------------------------------------------------------------------------------ */

int view_chart_bar(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   double part)
{
	const struct view_canvas *canvas = pane->canvas;
	const int most = width * EIGHTHS;
	int eighths, cells;

	if (!(part > 0) || width < 1)
		return 0;
	eighths = (int)lrint(fmin(part, 1) * most);
	eighths = max(1, eighths);
	cells = (eighths + EIGHTHS - 1) / EIGHTHS;
	if (!view_solid(canvas)) {
		cells = (eighths + EIGHTHS / 2) / EIGHTHS;
		cells = max(1, cells);
	}
	for (int i = 0; i < cells; i++) {
		const int rest = eighths - i * EIGHTHS;

		if (!view_solid(canvas))
			view_put(pane, x + i, y, style, view_fill_char(canvas, style));
		else
			view_put(pane, x + i, y, style, LEFT_BLOCKS - (uint32_t)min(rest, EIGHTHS));
	}
	return cells;
}

void view_chart_bars(struct view_pane *pane, const struct view_bar *bars, int count,
		     const struct view_axis *scale)
{
	const int width = pane->rect.width;
	int names = 0, numbers = 1, room;
	char text[FMT_SIZE];

	for (int i = 0; i < count; i++) {
		const int name = view_text_width(bars[i].name);
		const int number = view_text_width(view_axis_text(scale, bars[i].value, text));

		names = max(name, names);
		if (isfinite(bars[i].value))
			numbers = max(number, numbers);
	}
	names = min(width / NAME_PART, names);
	room = width - names - numbers - 2;
	for (int i = 0; i < count && i < pane->rect.height; i++) {
		const bool known = isfinite(bars[i].value);

		view_text_cut(pane, 0, i, names, VIEW_NORMAL, bars[i].name);
		if (known)
			view_chart_bar(pane, names + 1, i, room, bars[i].style,
				       view_axis_part(scale, bars[i].value));
		view_text_right(pane, width - numbers, i, numbers, VIEW_NORMAL,
				known ? view_axis_text(scale, bars[i].value, text) : "-");
	}
}

void view_chart_parts(struct view_pane *pane, int x, int y, int width, const struct view_bar *parts,
		      int count, double whole)
{
	const struct view_canvas *canvas = pane->canvas;
	double sum = 0;
	int at = 0;

	if (!(whole > 0) || !isfinite(whole))
		return;
	for (int i = 0; i < count; i++) {
		int end;

		sum += view_above_zero(parts[i].value);
		end = (int)lrint(fmin(sum / whole, 1) * width);
		for (; at < end; at++)
			view_put(pane, x + at, y, parts[i].style,
				 view_solid(canvas) ? view_glyph_char(canvas, VIEW_GLYPH_FULL)
						    : view_fill_char(canvas, parts[i].style));
	}
}

int view_chart_key(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   const char *name)
{
	const struct view_canvas *canvas = pane->canvas;
	const int used = view_text_width(name) + 2;

	if (used > width)
		return 0;
	view_put(pane, x, y, style,
		 view_solid(canvas) ? view_glyph_char(canvas, VIEW_GLYPH_FULL)
				    : view_fill_char(canvas, style));
	view_text_cut(pane, x + 2, y, used - 2, VIEW_NORMAL, name);
	return used + 2;
}
