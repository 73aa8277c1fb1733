/*
 * Off-screen cells that screens draw into: one file flushes them to the terminal, another prints
 * them as text.
 *
 * A cell is a character and a style; styles are roles ("title", "forward"), and only the terminal
 * knows colours. Text is sanitised here: control characters, bad UTF-8 and characters that take no
 * room become '?' or nothing, so no name in a database can reach the terminal as a command. Drawing
 * never allocates and never leaves its pane. Not thread safe.
 */
#ifndef VIEW_CANVAS_H
#define VIEW_CANVAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "viewer/draw/view_style.h"

/* X(name, with Unicode, in ASCII). */
#define VIEW_GLYPH_MAP(X)                                                                          \
	X(HORIZONTAL, 0x2500, '-')                                                                 \
	X(VERTICAL, 0x2502, '|')                                                                   \
	X(VERTICAL_DOTS, 0x250a, ':')                                                              \
	X(TICK, 0x252c, '|')                                                                       \
	X(CORNER, 0x2514, '+')                                                                     \
	X(TOP_LEFT, 0x250c, '+')                                                                   \
	X(TOP_RIGHT, 0x2510, '+')                                                                  \
	X(BOTTOM_RIGHT, 0x2518, '+')                                                               \
	X(TEE, 0x2524, '|')                                                                        \
	X(SHADE, 0x2591, '.')                                                                      \
	X(UNTRACED, 0x00b7, '_')                                                                   \
	X(LEFT_OUT, 0x2508, ',')                                                                   \
	X(FULL, 0x2588, '#')                                                                       \
	X(TRACK, 0x2500, '-')                                                                      \
	X(THEORY, 0x2503, '|')                                                                     \
	X(CURSOR, 0x25bc, 'v')                                                                     \
	X(SELECT, 0x25b6, '>')                                                                     \
	X(DOT, 0x25cf, '*')                                                                        \
	X(MIDDLE, 0x00b7, '-')                                                                     \
	X(ARROW, 0x203a, '>')                                                                      \
	X(ELLIPSIS, 0x2026, '~')                                                                   \
	X(UP, 0x25b2, '^')                                                                         \
	X(DOWN, 0x25bc, 'v')                                                                       \
	X(WINDOW, 0x2501, '=')                                                                     \
	X(FILL_FORWARD, 0x2501, '=')                                                               \
	X(FILL_BACKWARD, 0x2550, '#')                                                              \
	X(FILL_WEIGHT, 0x2505, '%')                                                                \
	X(FILL_RECOMPUTE, 0x254c, '~')                                                             \
	X(FILL_UPDATE, 0x2593, '+')                                                                \
	X(FILL_OTHER, 0x2500, '-')                                                                 \
	X(FILL_BUBBLE, 0x2591, '.')                                                                \
	X(FILL_CURVE, 0x2588, '*')                                                                 \
	X(FILL_TARGET, 'o', 'o')                                                                   \
	X(FILL_SERIES_1, 0x2588, '#')                                                              \
	X(FILL_SERIES_2, 0x2592, '=')                                                              \
	X(FILL_SERIES_3, 0x2591, ':')                                                              \
	X(FILL_SERIES_4, 0x2573, 'x')                                                              \
	X(FILL_SERIES_5, 0x253c, '+')                                                              \
	X(FILL_SERIES_6, 0x25cb, 'o')                                                              \
	X(FILL_RAMP_UP, 0x2571, '/')                                                               \
	X(FILL_RAMP_DOWN, 0x2572, '\\')                                                            \
	X(FILL_IMBALANCE, 0x2592, '%')                                                             \
	X(FILL_COMMUNICATION, 0x2248, '~')                                                         \
	X(FILL_COMPUTE, 'C', 'C')                                                                  \
	X(FILL_EXCHANGE, 'X', 'X')                                                                 \
	X(FILL_SYNC, 'S', 'S')                                                                     \
	X(FILL_HOST_COPY, 'H', 'H')

enum view_glyph {
#define VIEW_GLYPH_ENUM(name, wide, narrow) VIEW_GLYPH_##name,
	VIEW_GLYPH_MAP(VIEW_GLYPH_ENUM)
#undef VIEW_GLYPH_ENUM
	VIEW_GLYPHS
};

struct view_rect {
	int x, y, width, height; /* cells */
};

struct view_cell {
	uint32_t character; /* 0: the right half of a wide character */
	uint16_t style;     /* enum view_style, below VIEW_STYLES_ALL */
};

struct view_canvas {
	int width, height;
	bool ascii;  /* no character beyond 126 */
	bool plain;  /* styles will be lost: text, so that fills must carry the meaning */
	int colours; /* what the styles will have: 256, 16, 8, or 0 where they have none */
	struct view_cell *cells;
	size_t capacity; /* cells */
};

/* Do glyphs have to tell what colours tell elsewhere? */
static inline bool view_colourless(const struct view_canvas *canvas)
{
	return canvas->plain || canvas->colours < 8;
}

/* The part of a canvas that one drawer may touch; coordinates below are relative to it. */
struct view_pane {
	struct view_canvas *canvas;
	struct view_rect rect;
};

/* Make the canvas (zeroed at first) @width x @height and clear it. On failure it is unchanged. */
enum status view_canvas_resize(struct view_canvas *canvas, int width, int height, struct err *err);
void view_canvas_clear(struct view_canvas *canvas);
void view_canvas_fini(struct view_canvas *canvas); /* accepts a zeroed canvas */

/* The text of rows @from .. @to - 1, blanks at their ends cut. */
enum status view_canvas_print(const struct view_canvas *canvas, int from, int to, FILE *out,
			      struct err *err);

struct view_pane view_pane_all(struct view_canvas *canvas);
struct view_pane view_pane_at(struct view_canvas *canvas, struct view_rect rect); /* clipped */
/* @rect of @pane, in the pane's coordinates; clipped. */
struct view_pane view_pane_sub(const struct view_pane *pane, struct view_rect rect);

void view_put(struct view_pane *pane, int x, int y, enum view_style style, uint32_t character);
void view_restyle(struct view_pane *pane, int x, int y, enum view_style style);
/* What fills areas and draws curves of @style, where colours do not. */
uint32_t view_fill_char(const struct view_canvas *canvas, enum view_style style);
void view_glyphs(struct view_pane *pane, int x, int y, enum view_style style, enum view_glyph glyph,
		 int count);
uint32_t view_glyph_char(const struct view_canvas *canvas, enum view_glyph glyph);
void view_fill(struct view_pane *pane, int x, int y, int count, enum view_style style);

/* Draw @text (UTF-8, NULL draws nothing) in at most @width columns; what does not fit ends in an
 * ellipsis. Returns the columns used. */
int view_text_cut(struct view_pane *pane, int x, int y, int width, enum view_style style,
		  const char *text);
/* The same in a bar, where the beginning alone says more in four columns and less. */
int view_text_label(struct view_pane *pane, int x, int y, int width, enum view_style style,
		    const char *text);
int view_text(struct view_pane *pane, int x, int y, enum view_style style, const char *text);
/* The same, but what does not fit loses its middle: two thirds of the columns are for the end. */
int view_text_middle(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     const char *text);
/* The last part of @text that takes at most @width columns. */
const char *view_text_tail(const char *text, int width);
/* Bytes of @text, up to its end or a new line, that fill at most @width columns: whole words where
 * one fits at all. */
size_t view_text_fold(const char *text, int width);
/* @text in the rows of @area; only where it has more of it is it cut. Returns the rows used; @pane
 * NULL: draws nothing. */
int view_text_folded(struct view_pane *pane, struct view_rect area, enum view_style style,
		     const char *text);
/* A screen with nothing on it: what there is none of, and why, or what would record it; @elsewhere,
 * where not NULL, is why in a recording that is not ipu-train's. Three rows. */
#define VIEW_NOTHING_ROWS 3
void view_nothing(struct view_pane *pane, const char *what, const char *why, const char *elsewhere);
int view_textf(struct view_pane *pane, int x, int y, enum view_style style, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* The last @width columns, right-aligned in them. */
void view_text_right(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     const char *text);
int view_text_width(const char *text); /* columns that view_text() would use */

uint32_t view_char_at(const struct view_pane *pane, int x, int y); /* ' ' outside */

/* A cell filled to @fraction (0 .. 1) from below; 0 is a blank, anything above shows. */
uint32_t view_level_char(const struct view_canvas *canvas, double fraction);

int view_encode(uint32_t character, char out[5]); /* bytes of UTF-8; 0-terminated */

/*
 * A canvas as a picture: SVG with the theme's colours, for documents and tickets.
 *
 * Cells are a grid of VIEW_SVG_CELL_WIDTH x VIEW_SVG_CELL_HEIGHT; blocks and braille are drawn as
 * shapes, so that they meet whatever the font; texts are text, escaped, and stretched to the grid.
 * The same canvas makes the same bytes.
 */

#define VIEW_SVG_CELL_WIDTH  8  /* px */
#define VIEW_SVG_CELL_HEIGHT 16 /* px */

/* Rows @from .. @to - 1 of @canvas; @title (UTF-8, NULL: none) is its accessible name. ST_IO: the
 * output was refused. */
enum status view_svg_write(const struct view_canvas *canvas, int from, int to,
			   enum view_theme theme, const char *title, FILE *out, struct err *err);

#endif /* VIEW_CANVAS_H */
