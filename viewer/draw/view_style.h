/*
 * Styles: the role of a cell, and its colours on a terminal or in a picture.
 *
 * A style is a role ("title", "forward"). Its colours depend on the theme (dark or light
 * background) and on the number of colours of the terminal. Without colours only attributes remain,
 * and plain text has not even those, so every distinction made by colour also has its own glyph
 * (view_fill_char() of view_canvas.h). Further styles combine two colours: the two halves of a heat
 * map cell, and the border between two stacked series. Constant data and pure functions.
 */
#ifndef VIEW_STYLE_H
#define VIEW_STYLE_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, dark background with 256 colours, light with 256 colours, dark with 16, light with 16 or
 * 8, dark with 8, attributes with colours, attributes without). Colours are pairs of text and
 * background; -1 is the terminal's default. Attributes: B bold, R reverse, U underline, D dim. */
#define VIEW_STYLE_MAP(X)                                                                          \
	X(NORMAL, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, "", "")                                  \
	X(DIM, 244, -1, 241, -1, -1, -1, -1, -1, -1, -1, "", "")                                   \
	X(BOLD, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, "B", "B")                                  \
	X(TITLE, 39, -1, 25, -1, 14, -1, 4, -1, 6, -1, "B", "B")                                   \
	X(BAR, 252, 236, 235, 253, 15, 4, 0, 7, 7, 4, "", "R")                                     \
	X(BAR_ACTIVE, 16, 39, 231, 25, 0, 14, 7, 4, 0, 6, "", "B")                                 \
	X(BAR_NOTE, 250, 236, 238, 253, 7, 4, 0, 7, 7, 4, "", "R")                                 \
	X(KEY, 39, -1, 25, -1, 14, -1, 4, -1, 6, -1, "B", "B")                                     \
	X(GOOD, 71, -1, 28, -1, 10, -1, 2, -1, 2, -1, "", "")                                      \
	X(WARN, 172, -1, 94, -1, 11, -1, 5, -1, 3, -1, "B", "B")                                   \
	X(BAD, 167, -1, 160, -1, 9, -1, 1, -1, 1, -1, "B", "B")                                    \
	X(CURSOR, 16, 252, 231, 238, 0, 7, 7, 0, 0, 7, "", "R")                                    \
	X(SELECTED, 16, 226, 16, 220, 0, 11, 0, 3, 0, 3, "", "RB")                                 \
	X(SELECT_MARK, 226, -1, 127, -1, 13, -1, 5, -1, 3, -1, "B", "B")                           \
	X(BUBBLE, 131, -1, 95, -1, 1, -1, 1, -1, 1, -1, "", "")                                    \
	X(FORWARD, 16, 75, 16, 75, 15, 4, 7, 4, 7, 4, "", "R")                                     \
	X(FORWARD_2, 16, 111, 16, 111, 15, 4, 7, 4, 7, 4, "", "R")                                 \
	X(BACKWARD, 16, 215, 16, 215, 0, 3, 0, 3, 0, 3, "", "R")                                   \
	X(BACKWARD_2, 16, 179, 16, 179, 0, 3, 0, 3, 0, 3, "", "R")                                 \
	X(WEIGHT, 16, 114, 16, 114, 0, 2, 0, 2, 0, 2, "", "R")                                     \
	X(RECOMPUTE, 16, 152, 16, 152, 0, 6, 0, 6, 0, 6, "", "R")                                  \
	X(UPDATE, 16, 177, 16, 177, 15, 5, 7, 5, 7, 5, "", "R")                                    \
	X(OTHER, 16, 248, 16, 250, 0, 7, 0, 7, 0, 7, "", "R")                                      \
	X(FORWARD_TEXT, 75, -1, 26, -1, 12, -1, 4, -1, 4, -1, "B", "")                             \
	X(BACKWARD_TEXT, 208, -1, 130, -1, 11, -1, 3, -1, 3, -1, "", "")                           \
	X(WEIGHT_TEXT, 71, -1, 28, -1, 10, -1, 2, -1, 2, -1, "", "")                               \
	X(RECOMPUTE_TEXT, 73, -1, 23, -1, 14, -1, 6, -1, 6, -1, "", "")                            \
	X(UPDATE_TEXT, 133, -1, 127, -1, 13, -1, 5, -1, 5, -1, "", "")                             \
	X(OTHER_TEXT, 245, -1, 241, -1, -1, -1, -1, -1, -1, -1, "", "")                            \
	X(CURVE, 39, -1, 26, -1, 14, -1, 4, -1, 6, -1, "", "")                                     \
	X(SOURCE, 39, -1, 26, -1, 14, -1, 4, -1, 6, -1, "", "")                                    \
	X(TARGET, 208, -1, 130, -1, 11, -1, 5, -1, 3, -1, "", "B")                                 \
	X(SERIES_1, 75, -1, 26, -1, 12, -1, 4, -1, 4, -1, "", "")                                  \
	X(SERIES_2, 215, -1, 130, -1, 11, -1, 3, -1, 3, -1, "", "")                                \
	X(SERIES_3, 114, -1, 28, -1, 10, -1, 2, -1, 2, -1, "", "")                                 \
	X(SERIES_4, 177, -1, 91, -1, 13, -1, 5, -1, 5, -1, "", "")                                 \
	X(SERIES_5, 80, -1, 23, -1, 14, -1, 6, -1, 6, -1, "", "")                                  \
	X(SERIES_6, 203, -1, 160, -1, 9, -1, 1, -1, 1, -1, "", "")                                 \
	X(RAMP_UP, 180, -1, 94, -1, 11, -1, 3, -1, 3, -1, "", "")                                  \
	X(RAMP_DOWN, 109, -1, 61, -1, 12, -1, 4, -1, 4, -1, "", "")                                \
	X(IMBALANCE, 203, -1, 160, -1, 9, -1, 1, -1, 1, -1, "", "")                                \
	X(COMMUNICATION, 141, -1, 91, -1, 13, -1, 5, -1, 5, -1, "", "")                            \
	X(COMPUTE, 204, -1, 160, -1, 9, -1, 1, -1, 1, -1, "", "")                                  \
	X(EXCHANGE, 117, -1, 25, -1, 14, -1, 6, -1, 6, -1, "", "")                                 \
	X(SYNC, 220, -1, 94, -1, 11, -1, 3, -1, 3, -1, "", "")                                     \
	X(HOST_COPY, 209, -1, 130, -1, 13, -1, 5, -1, 5, -1, "", "")                               \
	X(COOL, 25, -1, 153, -1, 4, -1, 4, -1, 4, -1, "", "")                                      \
	X(WARM, 172, -1, 208, -1, 11, -1, 5, -1, 3, -1, "", "")                                    \
	X(HOT, 197, -1, 88, -1, 9, -1, 1, -1, 1, -1, "B", "")

#define VIEW_HEAT_STEPS 12 /* shades of a heat map with 256 colours */
#define VIEW_SERIES     6

enum view_style {
#define VIEW_STYLE_ENUM(name, ...) VIEW_##name,
	VIEW_STYLE_MAP(VIEW_STYLE_ENUM)
#undef VIEW_STYLE_ENUM
	VIEW_STYLES,
	/* With 256 colours only: the upper half's shade on the lower half's, one half's shade on
	 * the default background, and one series on another. */
	VIEW_HEAT_PAIR = VIEW_STYLES,
	VIEW_HEAT_HALF = VIEW_HEAT_PAIR + VIEW_HEAT_STEPS * VIEW_HEAT_STEPS,
	VIEW_SERIES_PAIR = VIEW_HEAT_HALF + VIEW_HEAT_STEPS,
	VIEW_STYLES_ALL = VIEW_SERIES_PAIR + VIEW_SERIES * VIEW_SERIES
};

enum view_theme {
	VIEW_DARK,
	VIEW_LIGHT
};

struct view_paint {
	short text, ground;     /* palette indices; -1: the terminal's default */
	const char *attributes; /* letters as in VIEW_STYLE_MAP */
};

/* @colours: 256, 16, 8 or 0. Two-colour styles always get the 256-colour paint. */
struct view_paint view_style_paint(unsigned style, enum view_theme theme, int colours);

static inline enum view_style view_series_style(int series)
{
	return (enum view_style)(VIEW_SERIES_1 + (unsigned)series % VIEW_SERIES);
}

/* Return 0xRRGGBB of xterm's 256 colours; for -1, the theme's default @text or background
 * colour. */
uint32_t view_palette(int colour, enum view_theme theme, bool text);

#endif /* VIEW_STYLE_H */
