/*
 * Off-screen cells that screens draw into. One file flushes them to the terminal, another prints
 * them as text.
 *
 * A cell is a character and a style. A style is a role ("title", "forward"); only the terminal
 * backend knows colours. Text is sanitised here: control characters and invalid UTF-8 become '?',
 * zero-width characters are dropped, so no name in a database can reach the terminal as an escape
 * sequence. Drawing never allocates and never writes outside its pane. Not thread safe.
 */
#ifndef VIEW_CANVAS_H
#define VIEW_CANVAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "viewer/draw/view_style.h"

/* X(name, Unicode character, ASCII character). */
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

static inline bool view_rect_contains(struct view_rect rect, int x, int y)
{
	return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

struct view_cell {
	uint32_t character; /* 0: the right half of a wide character */
	uint16_t style;     /* enum view_style, below VIEW_STYLES_ALL */
};

struct view_canvas {
	int width, height;
	bool ascii;  /* use no character above 126 */
	bool plain;  /* text output: styles are lost, so fill characters must carry the meaning */
	int colours; /* of the terminal: 256, 16, 8, or 0 for none */
	struct view_cell *cells;
	size_t capacity; /* cells */
};

/* Return true if characters must distinguish what colours normally distinguish. */
static inline bool view_colourless(const struct view_canvas *canvas)
{
	return canvas->plain || canvas->colours < 8;
}

/* The part of a canvas that one drawing function may write. Coordinates are relative to it. */
struct view_pane {
	struct view_canvas *canvas;
	struct view_rect rect;
};

/* Resize the canvas (zeroed before first use) to @width x @height and clear it. On failure it is
 * unchanged. */
enum status view_canvas_resize(struct view_canvas *canvas, int width, int height, struct err *err);
void view_canvas_clear(struct view_canvas *canvas);
void view_canvas_fini(struct view_canvas *canvas); /* accepts a zeroed canvas */

/* Write the text of rows @from .. @to - 1 without trailing blanks. */
enum status view_canvas_print(const struct view_canvas *canvas, int from, int to, FILE *out,
			      struct err *err);

struct view_pane view_pane_all(struct view_canvas *canvas);
struct view_pane view_pane_at(struct view_canvas *canvas, struct view_rect rect); /* clipped */
/* @rect of @pane, in the pane's coordinates; clipped. */
struct view_pane view_pane_sub(const struct view_pane *pane, struct view_rect rect);

void view_put(struct view_pane *pane, int x, int y, enum view_style style, uint32_t character);
void view_restyle(struct view_pane *pane, int x, int y, enum view_style style);
/* The character for areas and curves of @style if there are no colours. */
uint32_t view_fill_char(const struct view_canvas *canvas, enum view_style style);
void view_glyphs(struct view_pane *pane, int x, int y, enum view_style style, enum view_glyph glyph,
		 int count);
uint32_t view_glyph_char(const struct view_canvas *canvas, enum view_glyph glyph);
void view_fill(struct view_pane *pane, int x, int y, int count, enum view_style style);

/* Draw @text (UTF-8; NULL draws nothing) in at most @width columns. Text that does not fit ends in
 * an ellipsis. Return the columns used. */
int view_text_cut(struct view_pane *pane, int x, int y, int width, enum view_style style,
		  const char *text);
/* The same for a label in a bar: in four columns or fewer, cut without an ellipsis. */
int view_text_label(struct view_pane *pane, int x, int y, int width, enum view_style style,
		    const char *text);
int view_text(struct view_pane *pane, int x, int y, enum view_style style, const char *text);
/* The same, but cut text that does not fit in its middle: two thirds of the columns show its
 * end. */
int view_text_middle(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     const char *text);
/* Return the longest suffix of @text that fits in @width columns. */
const char *view_text_tail(const char *text, int width);
/* Return the bytes of @text, up to its end or a newline, that fit in @width columns. Break between
 * words unless the first word alone is too long. */
size_t view_text_fold(const char *text, int width);
/* Wrap @text into the rows of @area; cut it only if it needs more rows. Return the rows used. @pane
 * may be NULL: draw nothing. */
int view_text_folded(struct view_pane *pane, struct view_rect area, enum view_style style,
		     const char *text);
/* Draw the message of an empty screen: @what is missing, and @why or what would record it. If not
 * NULL, @elsewhere replaces @why (for recordings not made by ipu-train). Three rows. */
#define VIEW_NOTHING_ROWS 3
void view_nothing(struct view_pane *pane, const char *what, const char *why, const char *elsewhere);
int view_textf(struct view_pane *pane, int x, int y, enum view_style style, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Draw @text right-aligned in the @width columns from @x on. */
void view_text_right(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     const char *text);

uint32_t view_char_at(const struct view_pane *pane, int x, int y); /* ' ' outside */
enum view_style view_style_at(const struct view_pane *pane, int x, int y);

/* The character of a cell filled from below to @fraction (0 .. 1). 0 is blank; any positive
 * fraction is visible. */
uint32_t view_level_char(const struct view_canvas *canvas, double fraction);

/* Encode @character as 0-terminated UTF-8. Return its bytes. */
int view_encode(uint32_t character, char out[5]);

/*
 * A canvas as an SVG picture with the theme's colours, for documents and tickets.
 *
 * Cells form a grid of VIEW_SVG_CELL_WIDTH x VIEW_SVG_CELL_HEIGHT. Block and braille characters are
 * drawn as shapes, so they join seamlessly in any font. Text stays text, escaped and stretched to
 * the grid. The same canvas produces the same bytes.
 */

#define VIEW_SVG_CELL_WIDTH  8  /* px */
#define VIEW_SVG_CELL_HEIGHT 16 /* px */

/* Write rows @from .. @to - 1 of @canvas. @title (UTF-8, NULL: none) is the accessible name. Return
 * ST_IO if writing fails. */
enum status view_svg_write(const struct view_canvas *canvas, int from, int to,
			   enum view_theme theme, const char *title, FILE *out, struct err *err);

/* ---- items in cells -------------------------------------------------------------------------- */

/* Distribute items over cells, whichever are more. */

/* @count * @at / @cells without overflow. */
static inline int64_t view_share_begin(int64_t count, int cells, int at)
{
	return count / cells * at + count % cells * at / cells;
}

/* The items @from .. @to - 1 of @count that belong to cell @at of @cells. Every cell has at least
 * one item and every item at least one cell. */
static inline void view_share(int64_t count, int cells, int at, int64_t *from, int64_t *to)
{
	*from = view_share_begin(count, cells, at);
	*to = view_share_begin(count, cells, at + 1);
	if (*to <= *from)
		*to = *from + 1;
}

/* The first of @cells cells that item @index of @count belongs to. */
static inline int view_share_cell(int64_t count, int cells, int64_t index)
{
	/* The least cell whose share ends beyond the item; approximate for very large counts. */
	if (count > INT64_MAX / cells)
		return (int)(index / (count / cells + 1));
	return count >= cells ? (int)(((index + 1) * cells - 1) / count)
			      : (int)((index * cells + count - 1) / count);
}

#endif /* VIEW_CANVAS_H */
