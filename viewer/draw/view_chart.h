/*
 * Charts in character cells: sparklines, curves of braille dots, stacked areas, bars, and the axes
 * around them.
 *
 * Any number of points is drawn in any pane: what falls on one column is drawn from its least to
 * its greatest, so nothing is lost. Numbers that are not finite leave a hole. Where there are no
 * colours (plain text, NO_COLOR) styles are told apart by characters, in ASCII always.
 *
 * Threading: one thread per canvas. Nothing is allocated.
 */
#ifndef VIEW_CHART_H
#define VIEW_CHART_H

#include "viewer/draw/view_axis.h"
#include "viewer/draw/view_canvas.h"

struct view_chart_point {
	double value, least, greatest; /* NaN: nothing to draw there */
	bool bad;                      /* had NaN or Inf elements: marked */
};

/* The least and greatest of finite @points; equal ones are moved apart. false: there are none. */
bool view_chart_range(const struct view_chart_point *points, int count, double *low, double *high);

/* @count points over @width cells of one row. */
void view_chart_spark(struct view_pane *pane, int x, int y, int width, enum view_style style,
		      const struct view_chart_point *points, int count);

/* ---- axes: around a plot --------------------------------------------------------------------- */

struct view_chart_layout {
	struct view_rect scale; /* numbers and the line left of the plot */
	struct view_rect plot;
	struct view_rect axis; /* under both: a row, or two with ticks between line and numbers */
};

/* @scale columns for the scale's numbers (0: no scale). What there is no room for is empty; the
 * plot never is. */
struct view_chart_layout view_chart_areas(int width, int height, int scale, bool axis);
/* Columns that the numbers of @y need in a chart @height high. */
int view_chart_scale_width(const struct view_axis *y, int height);

/* Draw the axes (NULL: without that one) with round numbers at their ticks; returns the plot.
 * Charts one above the other are aligned by the same @scale, the greatest of their
 * view_chart_scale_width(); 0: what @y needs. */
struct view_pane view_chart_axes(struct view_pane *pane, const struct view_axis *x,
				 const struct view_axis *y, int scale);

/* ---- in a plot ------------------------------------------------------------------------------- */

struct view_series {
	const double *values; /* NaN, Inf: a hole */
	const double *at;     /* of the x axis, never falling; NULL: evenly over the plot */
	int64_t count;
	enum view_style style; /* VIEW_CURVE, VIEW_SOURCE, VIEW_TARGET, VIEW_SERIES_... */
};

/* A line; several are drawn one after another. @x may be NULL where there is no `at`. */
void view_chart_line(struct view_pane *plot, const struct view_series *series,
		     const struct view_axis *x, const struct view_axis *y);

/* The points over the whole pane; the range between least and greatest is drawn, too. */
void view_chart_curve(struct view_pane *pane, enum view_style style,
		      const struct view_chart_point *points, int count, double low, double high);

/*
 * Series of as many values each, in steps one upon the other, the first at the foot; without `at`.
 * Numbers below 0 count as 0. Of the points in one column the one with the greatest sum is drawn.
 */
void view_chart_stack(struct view_pane *plot, const struct view_series *series, int count,
		      const struct view_axis *y);

/* A histogram: bars from the foot, the greatest of those in one column. */
void view_chart_columns(struct view_pane *plot, enum view_style style, const double *values,
			int64_t count, const struct view_axis *y);

/* The cell of a plot's column that value @index of @count is drawn in (lines; stacks and columns:
 * view_share_cell()). */
int view_chart_column(int width, int64_t count, int64_t index);

/* A line from top to bottom where nothing else is drawn, and a mark at its top. */
void view_chart_marker(struct view_pane *plot, int x);

/* ---- lying bars ------------------------------------------------------------------------------ */

/* @part (0 .. 1) of @width cells, in eighths of a cell but in ASCII; the least above 0 shows. A bar
 * stands alone, so that it is drawn with and without colours in the same way. Returns the cells
 * used. */
int view_chart_bar(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   double part);

/* What a style stands for: its character and @name. Returns the cells used with the gap after it; 0
 * where it does not fit in @width. */
int view_chart_key(struct view_pane *pane, int x, int y, int width, enum view_style style,
		   const char *name);

#endif /* VIEW_CHART_H */
