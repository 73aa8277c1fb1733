/*
 * A list over the screen to choose one item from: places to go to, bookmarks, the lines of a query.
 * It owns its texts.
 */
#ifndef VIEW_POPUP_H
#define VIEW_POPUP_H

#include <stdbool.h>

#include "common/arena.h"
#include "viewer/draw/view_canvas.h"
#include "viewer/view_keys.h"

#define VIEW_POPUP_ITEMS 512
#define VIEW_POPUP_FRAME 6 /* columns beside a text: the frame and its margins */

struct view_popup_item {
	const char *name, *text; /* name: left of it, or NULL */
	int tag;                 /* set and used by the caller */
};

struct view_popup {
	int kind; /* set by the caller; 0: no popup */
	const char *title, *foot;
	struct view_popup_item items[VIEW_POPUP_ITEMS];
	int count, at, scroll, rows; /* rows: visible ones, set by the layout */
	struct view_rect rect;       /* frame included */
	struct arena arena;
	bool failed; /* out of memory: items are missing */
};

/* Empty it and set its @kind; @title and @foot (NULL: none) must be constant data. */
void view_popup_begin(struct view_popup *popup, int kind, const char *title, const char *foot);
void view_popup_add(struct view_popup *popup, int tag, const char *name, const char *text);
void view_popup_close(struct view_popup *popup); /* kind 0, memory freed; accepts a zeroed one */

/* Position it over @body, and draw it. */
void view_popup_draw(struct view_popup *popup, struct view_rect body, struct view_canvas *canvas);

/* Move the selection; false: @request is no movement. */
bool view_popup_request(struct view_popup *popup, enum view_request request);
/* The item at this cell of the screen; -1: none. */
int view_popup_hit(const struct view_popup *popup, int x, int y);

#endif /* VIEW_POPUP_H */
