/*
 * A canvas as a picture: SVG with the theme's colours, for documents and tickets.
 *
 * Cells are a grid of VIEW_SVG_CELL_WIDTH x VIEW_SVG_CELL_HEIGHT; blocks and braille are drawn as
 * shapes, so that they meet whatever the font; texts are text, escaped, and stretched to the grid.
 * The same canvas makes the same bytes.
 */
#ifndef VIEW_SVG_H
#define VIEW_SVG_H

#include "viewer/draw/view_canvas.h"

#define VIEW_SVG_CELL_WIDTH  8  /* px */
#define VIEW_SVG_CELL_HEIGHT 16 /* px */

/* Rows @from .. @to - 1 of @canvas; @title (UTF-8, NULL: none) is its accessible name. ST_IO: the
 * output was refused. */
enum status view_svg_write(const struct view_canvas *canvas, int from, int to,
			   enum view_theme theme, const char *title, FILE *out, struct err *err);

#endif /* VIEW_SVG_H */
