/*
 * Heat maps in character cells. With 256 colours a cell shows two values, one above the other; with
 * fewer, shades of one colour or of characters.
 *
 * If values share a cell, the greatest is shown, so peaks never vanish. Nothing is allocated. One
 * thread per canvas.
 */
#ifndef VIEW_HEAT_H
#define VIEW_HEAT_H

#include "reports/table/report_axis.h"
#include "viewer/draw/view_canvas.h"

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

#endif /* VIEW_HEAT_H */
