/*
 * The layout: pure functions from sizes to rectangles. No terminal, no state.
 *
 * At every size the rectangles lie inside the screen and do not overlap; one that does not fit is
 * empty. Below VIEW_MIN_WIDTH x VIEW_MIN_HEIGHT only `line` is used.
 */
#ifndef VIEW_LAYOUT_H
#define VIEW_LAYOUT_H

#include <stdbool.h>

#include "viewer/draw/view_canvas.h"

#define VIEW_MIN_WIDTH  40
#define VIEW_MIN_HEIGHT 10

/* The frame around every screen. */
struct view_frame {
	bool too_small;
	struct view_rect line;   /* too small: the only line */
	struct view_rect title;  /* names of the screens, state of the run */
	struct view_rect body;   /* the screen's own */
	struct view_rect status; /* a summary of the screen; messages; prompts */
	struct view_rect keys;
};

struct view_frame view_frame_layout(int width, int height);

/* Cut @rows, as many as there are, from the top of *@rect and return them. */
struct view_rect view_cut_top(struct view_rect *rect, int rows);

/* A list of @rows x @columns in the middle of @body, cut to its size. */
struct view_rect view_popup_area(struct view_rect body, int columns, int rows);

/* Keep *@at, the cursor of a list of @count items, within it, and scroll until it is among the
 * @rows visible ones. */
void view_list_scroll(int64_t *at, int64_t *scroll, int64_t count, int64_t rows);

/* Two areas one above the other with a heading between: the upper gets @upper rows if both have at
 * least @least. If the body is too low for both: only the upper one. */
struct view_split {
	struct view_rect upper, heading, lower;
};

struct view_split view_split_rows(struct view_rect body, int upper, int least);

/* Two areas side by side with an empty column between: the right one @columns wide, and empty if
 * the left one would be narrower than @least. */
struct view_sides {
	struct view_rect left, right;
};

struct view_sides view_split_sides(struct view_rect body, int columns, int least);

/* The timeline within its body. */
#define VIEW_DETAILS_FROM 12 /* least rows of a body with details */

struct view_timeline_layout {
	struct view_rect overview;            /* the whole run, one row */
	struct view_rect labels, lanes, idle; /* side by side, axes included */
	struct view_rect details;
};

struct view_timeline_layout view_timeline_areas(struct view_rect body, int label_width,
						bool details);

/* The tensors within their body: the table above, a page on one tensor below. */
struct view_tensors_layout {
	struct view_rect table;
	struct view_rect heading; /* the subject of the page */
	struct view_rect body;
};

struct view_tensors_layout view_tensors_areas(struct view_rect body, int rows);
/* The area of picture @at of @count: side by side if the page is wide or low, else stacked. */
struct view_rect view_tensors_share(struct view_rect area, int count, int at);

/*
 * Lay out blocks of @heights rows in order: two columns if @width is @two_from or more, three if it
 * is 7/4 of that (fewer and wider ones if some would be empty). Store their rectangles in @places,
 * an array of @count, relative to the top left. Return the total height.
 */
int view_blocks_layout(int width, int two_from, const int *heights, int count,
		       struct view_rect *places);

/*
 * Distribute @rows among @count lanes: at least 1 each in order while rows last (then 0), then one
 * more each in turn up to its depth (and at most @most).
 */
void view_lane_heights(const int *depths, int count, int rows, int most, int *heights);

#endif /* VIEW_LAYOUT_H */
