/*
 * Keys and requests. One table makes the enum, the help screen, the bar at the foot of a screen and
 * the manual's text.
 *
 * A key means the same on every screen, so no key is in the table twice. Key codes are Unicode
 * characters, or one of enum view_key; only view_term.c knows what the terminal library calls them.
 */
#ifndef VIEW_KEYS_H
#define VIEW_KEYS_H

#include <stdint.h>

#include "common/str.h"

#define VIEW_CTRL(letter) ((letter)&0x1f)

enum view_key {
	VIEW_KEY_NONE = 0,
	VIEW_KEY_TAB = '\t',
	VIEW_KEY_ENTER = '\r',
	VIEW_KEY_ESCAPE = 27,
	VIEW_KEY_BACKSPACE = 127,
	VIEW_KEY_UP = 0x110000, /* beyond Unicode */
	VIEW_KEY_DOWN,
	VIEW_KEY_LEFT,
	VIEW_KEY_RIGHT,
	VIEW_KEY_SHIFT_LEFT,
	VIEW_KEY_SHIFT_RIGHT,
	VIEW_KEY_PAGE_UP,
	VIEW_KEY_PAGE_DOWN,
	VIEW_KEY_HOME,
	VIEW_KEY_END,
	VIEW_KEY_BACK_TAB,
	VIEW_KEY_F1,
	VIEW_KEY_F5,
	VIEW_KEY_F6,
	VIEW_KEY_F10,
	VIEW_KEY_RESIZE /* the terminal's size changed */
};

/* Where a request means something. */
#define VIEW_ON_SUMMARY  1u
#define VIEW_ON_TIMELINE 2u
#define VIEW_ON_TENSORS  4u
#define VIEW_ON_HELP     8u
#define VIEW_ON_LISTS    (VIEW_ON_SUMMARY | VIEW_ON_TENSORS | VIEW_ON_HELP)
#define VIEW_ON_ALL      (VIEW_ON_LISTS | VIEW_ON_TIMELINE)

/* X(request, screens, group, key, key, key, in the bar ("" : not there), what it does) */
#define VIEW_REQUEST_MAP(X)                                                                        \
	X(UP, VIEW_ON_ALL, "Moving", 'k', VIEW_KEY_UP, 0, "",                                      \
	  "A row up; the timeline: the lane or depth above")                                       \
	X(DOWN, VIEW_ON_ALL, "Moving", 'j', VIEW_KEY_DOWN, 0, "",                                  \
	  "A row down; the timeline: the lane or depth below")                                     \
	X(LEFT, VIEW_ON_TIMELINE | VIEW_ON_TENSORS, "Moving", 'h', VIEW_KEY_LEFT, 0, "",           \
	  "Timeline: earlier; tensors: the statistic before")                                      \
	X(RIGHT, VIEW_ON_TIMELINE | VIEW_ON_TENSORS, "Moving", 'l', VIEW_KEY_RIGHT, 0, "",         \
	  "Timeline: later; tensors: the next statistic")                                          \
	X(PAGE_UP, VIEW_ON_ALL, "Moving", VIEW_KEY_PAGE_UP, VIEW_CTRL('U'), 0, "", "A page up")    \
	X(PAGE_DOWN, VIEW_ON_ALL, "Moving", VIEW_KEY_PAGE_DOWN, VIEW_CTRL('D'), ' ', "",           \
	  "A page down")                                                                           \
	X(HOME, VIEW_ON_ALL, "Moving", 'g', VIEW_KEY_HOME, 0, "",                                  \
	  "The first row; the timeline: the beginning of the run")                                 \
	X(END, VIEW_ON_ALL, "Moving", 'G', VIEW_KEY_END, 0, "",                                    \
	  "The last row; the timeline: the end of the run")                                        \
	X(ZOOM_IN, VIEW_ON_TIMELINE, "Timeline", '+', '=', 0, "zoom", "Zoom in about the cursor")  \
	X(ZOOM_OUT, VIEW_ON_TIMELINE, "Timeline", '-', '_', 0, "", "Zoom out about the cursor")    \
	X(ZOOM_ALL, VIEW_ON_TIMELINE, "Timeline", '0', 0, 0, "all", "Show the whole run")          \
	X(ZOOM_SPAN, VIEW_ON_TIMELINE, "Timeline", 'z', 0, 0, "fit span",                          \
	  "Fit the selected span to the window")                                                   \
	X(PAGE_LEFT, VIEW_ON_TIMELINE, "Timeline", '(', VIEW_KEY_SHIFT_LEFT, 0, "",                \
	  "A window earlier")                                                                      \
	X(PAGE_RIGHT, VIEW_ON_TIMELINE, "Timeline", ')', VIEW_KEY_SHIFT_RIGHT, 0, "",              \
	  "A window later")                                                                        \
	X(CURSOR_LEFT, VIEW_ON_TIMELINE, "Timeline", ',', 0, 0, "", "The cursor a column earlier") \
	X(CURSOR_RIGHT, VIEW_ON_TIMELINE, "Timeline", '.', 0, 0, "", "The cursor a column later")  \
	X(NEXT_SPAN, VIEW_ON_TIMELINE, "Timeline", ']', 0, 0, "span",                              \
	  "The next span of the lane at this depth")                                               \
	X(PREVIOUS_SPAN, VIEW_ON_TIMELINE, "Timeline", '[', 0, 0, "", "The span before")           \
	X(NEXT_GAP, VIEW_ON_TIMELINE, "Timeline", '}', 0, 0, "gap",                                \
	  "The next idle time of the lane that shows at this zoom")                                \
	X(PREVIOUS_GAP, VIEW_ON_TIMELINE, "Timeline", '{', 0, 0, "", "The idle time before")       \
	X(LONGEST_CHILD, VIEW_ON_TIMELINE, "Timeline", 'L', 0, 0, "longest child",                 \
	  "The longest span inside the selected one")                                              \
	X(PARENT, VIEW_ON_TIMELINE, "Timeline", 'u', 0, 0, "", "The span around the selected one") \
	X(CENTRE, VIEW_ON_TIMELINE, "Timeline", 'c', 0, 0, "", "Bring the cursor to the middle")   \
	X(DETAILS, VIEW_ON_TIMELINE, "Timeline", VIEW_KEY_ENTER, 0, 0, "details",                  \
	  "Show or hide the details of the selected span")                                         \
	X(STATISTIC, VIEW_ON_TENSORS, "Tensors", 's', 0, 0, "statistic", "The next statistic")     \
	X(STATISTIC_BACK, VIEW_ON_TENSORS, "Tensors", 'S', 0, 0, "", "The statistic before")       \
	X(SORT_NEXT, VIEW_ON_TENSORS, "Tensors", '>', VIEW_KEY_F6, 0, "sort",                      \
	  "Sort by the next column")                                                               \
	X(SORT_BACK, VIEW_ON_TENSORS, "Tensors", '<', 0, 0, "", "Sort by the column before")       \
	X(REVERSE, VIEW_ON_TENSORS, "Tensors", 'I', 0, 0, "reverse", "Reverse the order")          \
	X(FILTER, VIEW_ON_TENSORS, "Tensors", '\\', 0, 0, "filter",                                \
	  "Show only keys that contain a text; Esc shows all again")                               \
	X(SEARCH, VIEW_ON_ALL, "Searching", '/', 0, 0, "search",                                   \
	  "Search names: spans, keys of tensors, lines")                                           \
	X(SEARCH_NEXT, VIEW_ON_ALL, "Searching", 'n', 0, 0, "", "The next match")                  \
	X(SEARCH_BACK, VIEW_ON_ALL, "Searching", 'N', 0, 0, "", "The match before")                \
	X(FOLLOW, VIEW_ON_ALL, "A run that is still recording", 'F', 0, 0, "",                     \
	  "Follow it: keep the newest in view, on and off")                                        \
	X(PAUSE, VIEW_ON_ALL, "A run that is still recording", 'Z', 0, 0, "",                      \
	  "Stop looking for news, and look again")                                                 \
	X(RELOAD, VIEW_ON_ALL, "A run that is still recording", 'r', VIEW_KEY_F5, 0, "",           \
	  "Read the screen afresh")                                                                \
	X(NEXT_SCREEN, VIEW_ON_ALL, "Screens", VIEW_KEY_TAB, 0, 0, "screen", "The next screen")    \
	X(PREVIOUS_SCREEN, VIEW_ON_ALL, "Screens", VIEW_KEY_BACK_TAB, 0, 0, "",                    \
	  "The screen before")                                                                     \
	X(SCREEN_1, VIEW_ON_ALL, "Screens", '1', 0, 0, "", "Summary")                              \
	X(SCREEN_2, VIEW_ON_ALL, "Screens", '2', 0, 0, "", "Timeline")                             \
	X(SCREEN_3, VIEW_ON_ALL, "Screens", '3', 0, 0, "", "Tensors")                              \
	X(HELP, VIEW_ON_ALL, "Screens", '?', VIEW_KEY_F1, 0, "help", "Help: these keys, and back") \
	X(WRITE, VIEW_ON_ALL, "Screens", 'W', 0, 0, "",                                            \
	  "Write the screen to a file: .txt, .csv or .json")                                       \
	X(REDRAW, VIEW_ON_ALL, "Screens", VIEW_CTRL('L'), 0, 0, "", "Draw the screen again")       \
	X(BACK, VIEW_ON_ALL, "Leaving", VIEW_KEY_ESCAPE, 0, 0, "", "Leave a prompt or the help")   \
	X(CLOSE, VIEW_ON_ALL, "Leaving", 'q', 0, 0, "quit",                                        \
	  "Leave the help; on any other screen, the program")                                      \
	X(QUIT, VIEW_ON_ALL, "Leaving", 'Q', VIEW_KEY_F10, 0, "",                                  \
	  "Leave the program (Ctrl-C does, too)")

enum view_request {
	VIEW_NONE = 0,
#define VIEW_REQUEST_ENUM(name, ...) VIEW_##name##_REQUEST,
	VIEW_REQUEST_MAP(VIEW_REQUEST_ENUM)
#undef VIEW_REQUEST_ENUM
	VIEW_REQUESTS
};

#define VIEW_KEYS_EACH 3

struct view_request_info {
	const char *name;
	unsigned screens; /* VIEW_ON_... */
	const char *group;
	uint32_t keys[VIEW_KEYS_EACH]; /* 0: none */
	const char *bar, *help;
};

const struct view_request_info *view_request_info(enum view_request request);
enum view_request view_request_of(uint32_t key); /* VIEW_NONE where the key has none */

/* "Ctrl-L", "Shift-Left", "PgUp", "k". Returns @out. */
#define VIEW_KEY_NAME_SIZE 16
const char *view_key_name(uint32_t key, char out[VIEW_KEY_NAME_SIZE]);
/* All keys of a request: "k Up". */
#define VIEW_KEY_LIST_SIZE 48
const char *view_key_list(enum view_request request, char out[VIEW_KEY_LIST_SIZE]);

/* The section KEYS of the manual, as struct cli_command wants details ("KEYS\n..."). */
void view_keys_manual(struct str *out);

#endif /* VIEW_KEYS_H */
