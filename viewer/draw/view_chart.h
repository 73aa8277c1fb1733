/*
 * Curves in character cells: sparklines, and lines of braille dots (asterisks in ASCII).
 *
 * Threading: one thread per canvas. Nothing is allocated.
 */
#ifndef VIEW_CHART_H
#define VIEW_CHART_H

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

/* The points over the whole pane; the range between least and greatest is drawn, too. */
void view_chart_curve(struct view_pane *pane, enum view_style style,
		      const struct view_chart_point *points, int count, double low, double high);

#endif /* VIEW_CHART_H */
