/*
 * Charts in character cells: sparklines, curves of braille dots, stacked areas, bars, the axes
 * around them, and heat maps (view_heat.c).
 *
 * Any number of points fits any pane: points that share a column are drawn from their least to
 * their greatest value, so nothing is lost. Non-finite values leave a gap. Without colours (plain
 * text, NO_COLOR) characters distinguish the styles, in ASCII always.
 *
 * Threading: one thread per canvas. Nothing is allocated.
 */
#ifndef VIEW_CHART_H
#define VIEW_CHART_H

#include "reports/table/report_axis.h"
#include "viewer/draw/view_canvas.h"

struct view_chart_point {
	double value, least, greatest; /* NaN: draw nothing */
	bool bad;                      /* had NaN or Inf elements; drawn with a mark */
};

/* The range of finite @points; equal ends are moved apart. Return false if there is no such
 * point. */
bool view_chart_range(const struct view_chart_point *points, int count, double *low, double *high);

/* Draw @count points over @width cells of one row. */
void view_chart_spark(struct view_pane *pane, int x, int y, int width, enum view_style style,
		      const struct view_chart_point *points, int count);

/* ---- axes around a plot ---------------------------------------------------------------------- */

struct view_chart_layout {
	struct view_rect scale; /* y numbers and the line, left of the plot */
	struct view_rect plot;
	struct view_rect axis; /* below both: one row, or two with ticks between line and numbers */
};

/* Split a chart. @scale: columns for the numbers of the y axis (0: none). Parts that do not fit are
 * empty, but never the plot. */
struct view_chart_layout view_chart_areas(int width, int height, int scale, bool axis);
/* Columns that the numbers of @y need in a chart @height high. */
int view_chart_scale_width(const struct report_axis *y, int height);

/* Draw the axes (NULL: omit that one) with round numbers at their ticks, and return the plot. To
 * align charts above each other, pass all of them the same @scale, the greatest of their
 * view_chart_scale_width(). 0: what @y needs. */
struct view_pane view_chart_axes(struct view_pane *pane, const struct report_axis *x,
				 const struct report_axis *y, int scale);

/* ---- in a plot ------------------------------------------------------------------------------- */

struct view_series {
	const double *values; /* NaN, Inf: a gap */
	const double *at;     /* x values, not decreasing; NULL: evenly over the plot */
	int64_t count;
	enum view_style style; /* VIEW_CURVE, VIEW_SOURCE, VIEW_TARGET, VIEW_SERIES_... */
};

/* Draw a line; later lines overwrite earlier ones. @x may be NULL if the series has no `at`. */
void view_chart_line(struct view_pane *plot, const struct view_series *series,
		     const struct report_axis *x, const struct report_axis *y);

/* Draw the points over the whole pane, with the range between least and greatest of each. */
void view_chart_curve(struct view_pane *pane, enum view_style style,
		      const struct view_chart_point *points, int count, double low, double high);

/*
 * Draw series of equal length as stacked steps, the first at the bottom. `at` is not used. Negative
 * values count as 0. Of the points in one column, draw the one with the greatest sum.
 */
void view_chart_stack(struct view_pane *plot, const struct view_series *series, int count,
		      const struct report_axis *y);

/* Draw a histogram: bars from the bottom, each the greatest value of its column. */
void view_chart_columns(struct view_pane *plot, enum view_style style, const double *values,
			int64_t count, const struct report_axis *y);

/* The column of a plot in which a line draws value @index of @count. (Stacks and histograms use
 * view_share_cell().) */
int view_chart_column(int width, int64_t count, int64_t index);

/* Draw a vertical line where the plot is blank, and a mark at its top. */
void view_chart_marker(struct view_pane *plot, int x);

/* ---- horizontal bars ------------------------------------------------------------------------- */

/* Fill @part (0 .. 1) of @width cells, in eighths of a cell (whole cells in ASCII); any positive
 * part is visible. A bar needs no distinction from others, so it looks the same without colours.
 * Return the cells used. */
int view_chart_bar(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   double part);

/* Draw a legend entry: the style's character and @name. Return the cells used including the gap
 * after it, or 0 if it does not fit in @width. */
int view_chart_key(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   const char *name);

/* ---- heat maps ------------------------------------------------------------------------------- */

/*
 * With 256 colours a cell shows two values, one above the other; with fewer, shades of one colour
 * or of characters. If values share a cell, the greatest is shown, so peaks never vanish.
 */

/* Return true if a cell shows two values separately. Otherwise it shows the greater one. */
bool view_heat_halves(const struct view_canvas *canvas);

/* Draw a cell of two values 0 .. 1. 0 is the faintest shade or a blank, any positive value is
 * visible; NaN: no value. */
void view_heat(struct view_pane *pane, int x, int y, double top, double bottom);

/* Draw @values (row-major; NaN: no value) over the whole pane. Each cell shows the greatest of its
 * values; fewer values than cells are enlarged. */
void view_heat_map(struct view_pane *pane, const double *values, int columns, int rows,
		   const struct report_axis *scale);

/* The cells in which such a map draws the value at @column, @row; none in a pane without cells. */
struct view_rect view_heat_place(const struct view_pane *pane, int columns, int rows, int column,
				 int row);
/* Find the value that is drawn in the cell @x, @y (its upper half). Return false if outside. */
bool view_heat_find(const struct view_pane *pane, int columns, int rows, int x, int y, int *column,
		    int *row);

/* "0 B ...:::+++ 624 kB": draw the legend of the shades in at most @width cells. Return the cells
 * used, or 0 if it does not fit. */
int view_heat_legend(struct view_pane *pane, int x, int y, int width,
		     const struct report_axis *scale);

/* As view_heat_map(), for signed values -@most .. @most. A cell shows the one of its values that is
 * farthest from 0; its sign shows as the character or the colour. */
void view_heat_signed_map(struct view_pane *pane, const double *values, int columns, int rows,
			  double most);
/* "-388 B =-.+# +388 B"; return the cells used, or 0 if it does not fit. */
int view_heat_signed_legend(struct view_pane *pane, int x, int y, int width, double most,
			    enum report_quantity quantity);

#endif /* VIEW_CHART_H */
