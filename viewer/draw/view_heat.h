/*
 * Heat maps in character cells: two values in a cell, one above the other, where there are 256
 * colours; shades of one colour or of characters where there are fewer.
 *
 * What cannot be shown apart shows the greater: peaks never vanish. Nothing is allocated. One
 * thread per canvas.
 */
#ifndef VIEW_HEAT_H
#define VIEW_HEAT_H

#include "viewer/draw/view_axis.h"
#include "viewer/draw/view_canvas.h"

/* Are the two values of a cell shown apart? Otherwise a row shows the greater of two. */
bool view_heat_halves(const struct view_canvas *canvas);

/* A cell: 0 .. 1 each; 0 is the faintest shade or a blank, anything above shows; NaN: nothing is
 * there. */
void view_heat(struct view_pane *pane, int x, int y, double top, double bottom);

/* @values (row after row; NaN: nothing there) over the whole pane, each cell the greatest of its
 * share; fewer values than cells are drawn larger. */
void view_heat_map(struct view_pane *pane, const double *values, int columns, int rows,
		   const struct view_axis *scale);

/* Where the value @column, @row of such a map is drawn. */
struct view_rect view_heat_place(const struct view_pane *pane, int columns, int rows, int column,
				 int row);
/* The value that is drawn at the cell @x, @y (its upper half); false: outside. */
bool view_heat_find(const struct view_pane *pane, int columns, int rows, int x, int y, int *column,
		    int *row);

/* "0 B ...:::+++ 624 kB": what the shades mean, in at most @width cells of a row. Returns the cells
 * used; 0 where there is no room. */
int view_heat_legend(struct view_pane *pane, int x, int y, int width,
		     const struct view_axis *scale);

/* As view_heat_map(), of numbers less and greater than 0: -@most .. @most. A cell shows what is
 * farthest from 0 of its share; the sign is told by the character, or by its colour. */
void view_heat_signed_map(struct view_pane *pane, const double *values, int columns, int rows,
			  double most);
/* "-388 B =-.+# +388 B"; returns the cells used, 0 where there is no room. */
int view_heat_signed_legend(struct view_pane *pane, int x, int y, int width, double most,
			    enum report_quantity quantity);

#endif /* VIEW_HEAT_H */
