/*
 * Keys and requests. One table generates the enum, the help screen, the bar at the foot of a screen
 * and the manual's text.
 *
 * A key has the same meaning on every screen, so no key is in the table twice. Key codes are
 * Unicode characters or values of enum view_key; only view_term.c knows the codes of ncurses.
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
	VIEW_KEY_DELETE,
	VIEW_KEY_F1,
	VIEW_KEY_F3,
	VIEW_KEY_F4,
	VIEW_KEY_F5,
	VIEW_KEY_F6,
	VIEW_KEY_F10,
	VIEW_KEY_RESIZE, /* the terminal's size changed */
	VIEW_KEY_WHEEL_UP,
	VIEW_KEY_WHEEL_DOWN
};

/* The screens that a request applies to. */
enum {
	VIEW_ON_SUMMARY = 1 << 0,
	VIEW_ON_INSIGHTS = 1 << 1,
	VIEW_ON_MEMORY = 1 << 2,
	VIEW_ON_LIVENESS = 1 << 3,
	VIEW_ON_PROGRAMS = 1 << 4,
	VIEW_ON_OPERATIONS = 1 << 5,
	VIEW_ON_TIMELINE = 1 << 6,
	VIEW_ON_TENSORS = 1 << 7,
	VIEW_ON_METRICS = 1 << 8,
	VIEW_ON_HEALTH = 1 << 9,
	VIEW_ON_SQL = 1 << 10,
	VIEW_ON_HELP = 1 << 11,
	VIEW_ON_WHATIF = 1 << 12,
	VIEW_ON_COMMUNICATION = 1 << 13,
	VIEW_ON_ACCELERATORS = 1 << 14,
	VIEW_ON_ALL = (1 << 15) - 1,
	VIEW_ON_COMPARED = 1 << 15, /* the Summary of two reports, which is a table */
	VIEW_ON_DATA = VIEW_ON_ALL & ~VIEW_ON_HELP,
	/* Screens that are tables, or have one. */
	VIEW_ON_TABLES = VIEW_ON_INSIGHTS | VIEW_ON_MEMORY | VIEW_ON_LIVENESS | VIEW_ON_PROGRAMS |
			 VIEW_ON_OPERATIONS | VIEW_ON_TENSORS | VIEW_ON_METRICS | VIEW_ON_HEALTH |
			 VIEW_ON_SQL | VIEW_ON_WHATIF | VIEW_ON_COMMUNICATION |
			 VIEW_ON_ACCELERATORS | VIEW_ON_COMPARED,
	/* Screens with a picture of the chip, the run or a curve that Left and Right move in. */
	VIEW_ON_PICTURES = VIEW_ON_MEMORY | VIEW_ON_LIVENESS | VIEW_ON_TIMELINE | VIEW_ON_METRICS |
			   VIEW_ON_COMMUNICATION
};

/* X(request, screens, group, key, key, key, in the bar ("" : not there), what it does) */
#define VIEW_REQUEST_MAP(X)                                                                        \
	X(UP, VIEW_ON_ALL, "Moving", 'k', VIEW_KEY_UP, VIEW_KEY_WHEEL_UP, "",                      \
	  "A row up; the timeline: the lane or depth above")                                       \
	X(DOWN, VIEW_ON_ALL, "Moving", 'j', VIEW_KEY_DOWN, VIEW_KEY_WHEEL_DOWN, "",                \
	  "A row down; the timeline: the lane or depth below")                                     \
	X(LEFT, (VIEW_ON_DATA & ~VIEW_ON_SUMMARY) | VIEW_ON_COMPARED, "Moving", 'h',               \
	  VIEW_KEY_LEFT, 0, "", "Left: earlier, the tile before, columns of a wide table")         \
	X(RIGHT, (VIEW_ON_DATA & ~VIEW_ON_SUMMARY) | VIEW_ON_COMPARED, "Moving", 'l',              \
	  VIEW_KEY_RIGHT, 0, "", "Right: later, the next tile, columns of a wide table")           \
	X(PAGE_UP, VIEW_ON_ALL, "Moving", VIEW_KEY_PAGE_UP, VIEW_CTRL('U'), 0, "", "A page up")    \
	X(PAGE_DOWN, VIEW_ON_ALL, "Moving", VIEW_KEY_PAGE_DOWN, VIEW_CTRL('D'), ' ', "",           \
	  "A page down")                                                                           \
	X(HOME, VIEW_ON_ALL, "Moving", 'g', VIEW_KEY_HOME, 0, "",                                  \
	  "The first row; pictures: the beginning")                                                \
	X(END, VIEW_ON_ALL, "Moving", 'G', VIEW_KEY_END, 0, "", "The last row; pictures: the end") \
	X(ENTER, VIEW_ON_DATA, "Looking closer", VIEW_KEY_ENTER, 0, 0, "open",                     \
	  "Open what the cursor is on; the timeline: its details")                                 \
	X(VIEW, VIEW_ON_DATA & ~(VIEW_ON_SUMMARY | VIEW_ON_WHATIF), "Looking closer", 'v', 0, 0,   \
	  "view", "The next way to look at it: flame, flat, BSP; chip")                            \
	X(VIEW_BACK, VIEW_ON_DATA & ~(VIEW_ON_SUMMARY | VIEW_ON_WHATIF), "Looking closer", 'V', 0, \
	  0, "", "The way before")                                                                 \
	X(BREAKDOWN, VIEW_ON_DATA & ~(VIEW_ON_SUMMARY | VIEW_ON_SQL | VIEW_ON_WHATIF),             \
	  "Looking closer", 'b', 0, 0, "break down",                                               \
	  "Break down: memory by category, bubble; critical path")                                 \
	X(SELECT,                                                                                  \
	  VIEW_ON_DATA & ~(VIEW_ON_SUMMARY | VIEW_ON_METRICS | VIEW_ON_HEALTH | VIEW_ON_SQL |      \
			   VIEW_ON_WHATIF | VIEW_ON_ACCELERATORS),                                 \
	  "Looking closer", 'i', 0, 0, "IPU",                                                      \
	  "The next IPU or replica, and all of them; the next rank")                               \
	X(MARK_ROW, VIEW_ON_MEMORY | VIEW_ON_LIVENESS | VIEW_ON_TIMELINE, "Looking closer", 'x',   \
	  0, 0, "", "Select this tile or step beside others; measure time")                        \
	X(UNIT,                                                                                    \
	  VIEW_ON_TIMELINE | VIEW_ON_OPERATIONS | VIEW_ON_MEMORY | VIEW_ON_TENSORS |               \
		  VIEW_ON_METRICS,                                                                 \
	  "Looking closer", 't', 0, 0, "",                                                         \
	  "Cycles or ns; physical order; curves: a logarithmic axis")                              \
	X(ALWAYS_LIVE, VIEW_ON_LIVENESS | VIEW_ON_TIMELINE, "Looking closer", 'a', 0, 0,           \
	  "always live", "Without what is always live; timeline: along an arrow")                  \
	X(EXPAND, VIEW_ON_PROGRAMS | VIEW_ON_MEMORY | VIEW_ON_TIMELINE, "Looking closer", 'e', 0,  \
	  0, "expand", "Expand what the cursor is on; the timeline: fold lanes")                   \
	X(COLLAPSE, VIEW_ON_PROGRAMS | VIEW_ON_MEMORY | VIEW_ON_TIMELINE, "Looking closer", 'c',   \
	  0, 0, "", "Collapse it; the timeline: hide the lane")                                    \
	X(EXPAND_ALL, VIEW_ON_PROGRAMS | VIEW_ON_MEMORY | VIEW_ON_TIMELINE, "Looking closer", 'E', \
	  0, 0, "", "Expand everything; the timeline: all lanes again")                            \
	X(COLLAPSE_ALL, VIEW_ON_PROGRAMS | VIEW_ON_MEMORY | VIEW_ON_TIMELINE, "Looking closer",    \
	  'C', 0, 0, "", "Collapse everything; the timeline: only this lane")                      \
	X(STATISTIC, VIEW_ON_TENSORS | VIEW_ON_METRICS | VIEW_ON_MEMORY | VIEW_ON_COMMUNICATION,   \
	  "Looking closer", 's', 0, 0, "statistic",                                                \
	  "Another statistic, metric, category of memory, quantity")                               \
	X(STATISTIC_BACK,                                                                          \
	  VIEW_ON_TENSORS | VIEW_ON_METRICS | VIEW_ON_MEMORY | VIEW_ON_COMMUNICATION,              \
	  "Looking closer", 'S', 0, 0, "", "The one before")                                       \
	X(ZOOM_IN, VIEW_ON_PICTURES, "Zooming", '+', '=', 0, "zoom", "Zoom in about the cursor")   \
	X(ZOOM_OUT, VIEW_ON_PICTURES, "Zooming", '-', '_', 0, "", "Zoom out about the cursor")     \
	X(ZOOM_ALL, VIEW_ON_PICTURES, "Zooming", '0', 0, 0, "all", "Show all of it")               \
	X(ZOOM_SPAN, VIEW_ON_TIMELINE, "Zooming", 'z', 0, 0, "fit span",                           \
	  "Fit the selected span to the window")                                                   \
	X(PAGE_LEFT, VIEW_ON_PICTURES, "Zooming", '(', VIEW_KEY_SHIFT_LEFT, 0, "",                 \
	  "A window earlier")                                                                      \
	X(PAGE_RIGHT, VIEW_ON_PICTURES, "Zooming", ')', VIEW_KEY_SHIFT_RIGHT, 0, "",               \
	  "A window later")                                                                        \
	X(CURSOR_LEFT, VIEW_ON_TIMELINE, "Timeline", ',', 0, 0, "", "The cursor a column earlier") \
	X(CURSOR_RIGHT, VIEW_ON_TIMELINE, "Timeline", '.', 0, 0, "", "The cursor a column later")  \
	X(NEXT_SPAN, VIEW_ON_TIMELINE, "Timeline", ']', 0, 0, "span",                              \
	  "The next span of the lane at this depth")                                               \
	X(PREVIOUS_SPAN, VIEW_ON_TIMELINE, "Timeline", '[', 0, 0, "", "The span before")           \
	X(NEXT_GAP, VIEW_ON_TIMELINE, "Timeline", '}', 0, 0, "gap",                                \
	  "The next idle time of the lane that shows at this zoom")                                \
	X(PREVIOUS_GAP, VIEW_ON_TIMELINE, "Timeline", '{', 0, 0, "", "The idle time before")       \
	X(LONGEST_GAP,                                                                             \
	  VIEW_ON_TIMELINE | VIEW_ON_MEMORY | VIEW_ON_LIVENESS | VIEW_ON_COMMUNICATION,            \
	  "Timeline", 'w', 0, 0, "worst", "The longest idle time or wait; fullest tile; the peak") \
	X(LONGEST_CHILD, VIEW_ON_TIMELINE, "Timeline", 'L', 0, 0, "longest child",                 \
	  "The longest span inside the selected one")                                              \
	X(PARENT, VIEW_ON_TIMELINE | VIEW_ON_PROGRAMS, "Timeline", 'u', 0, 0, "",                  \
	  "The span or program around the selected one")                                           \
	X(COUNTERS, VIEW_ON_TIMELINE, "Timeline", 'p', 0, 0, "",                                   \
	  "Counters under the lanes: the next ones, then none")                                    \
	X(CENTRE, VIEW_ON_TIMELINE, "Timeline", 'M', 0, 0, "", "Bring the cursor to the middle")   \
	X(SORT_NEXT, VIEW_ON_TABLES, "Tables", '>', VIEW_KEY_F6, 0, "sort",                        \
	  "Sort by the next column")                                                               \
	X(SORT_BACK, VIEW_ON_TABLES, "Tables", '<', 0, 0, "", "Sort by the column before")         \
	X(REVERSE, VIEW_ON_TABLES, "Tables", 'I', 0, 0, "reverse", "Reverse the order")            \
	X(COLUMNS, VIEW_ON_TABLES, "Tables", '|', 0, 0, "", "Choose the columns")                  \
	X(FILTER, VIEW_ON_TABLES | VIEW_ON_TIMELINE, "Tables", '\\', 'f', VIEW_KEY_F4, "filter",   \
	  "Only what matches a regular expression, or with ! not")                                 \
	X(SEARCH, VIEW_ON_ALL, "Searching", '/', VIEW_KEY_F3, 0, "search",                         \
	  "Search names: spans, keys of tensors, lines")                                           \
	X(SEARCH_NEXT, VIEW_ON_ALL, "Searching", 'n', 0, 0, "", "The next match")                  \
	X(SEARCH_BACK, VIEW_ON_ALL, "Searching", 'N', 0, 0, "", "The match before")                \
	X(JOIN, VIEW_ON_DATA & ~VIEW_ON_WHATIF, "From screen to screen", 'o', 0, 0, "go to",       \
	  "What belongs to this on other screens: Enter goes there")                               \
	X(RETURN, VIEW_ON_ALL, "From screen to screen", VIEW_KEY_BACKSPACE, 0, 0, "",              \
	  "Back to where you came from")                                                           \
	X(MARK, VIEW_ON_DATA & ~VIEW_ON_WHATIF, "From screen to screen", 'm', 0, 0, "",            \
	  "Bookmark this place")                                                                   \
	X(MARKS, VIEW_ON_ALL, "From screen to screen", '\'', 0, 0, "",                             \
	  "The bookmarks: Enter goes there, d forgets one")                                        \
	X(QUERY, VIEW_ON_DATA & ~VIEW_ON_WHATIF, "From screen to screen", 'y', 0, 0, "query",      \
	  "The query behind the screen; Enter runs it in SQL")                                     \
	X(DIFFER, VIEW_ON_DATA & ~VIEW_ON_WHATIF, "Comparing two reports", 'D', 0, 0, "",          \
	  "Only what differs, and everything again")                                               \
	X(RUNS, VIEW_ON_ALL, "Comparing two reports", 'R', 0, 0, "",                               \
	  "The run beside this one: choose, swap the two, end it")                                 \
	X(FOLLOW, VIEW_ON_ALL, "A run that is still recording", 'F', 0, 0, "",                     \
	  "Follow it: keep the newest in view, on and off")                                        \
	X(PAUSE, VIEW_ON_ALL, "A run that is still recording", 'Z', 0, 0, "",                      \
	  "Stop looking for news, and look again")                                                 \
	X(RELOAD, VIEW_ON_ALL, "A run that is still recording", 'r', VIEW_KEY_F5, 0, "",           \
	  "Read the screen afresh")                                                                \
	X(NEXT_SCREEN, VIEW_ON_ALL, "Screens", VIEW_KEY_TAB, 0, 0, "screen", "The next screen")    \
	X(PREVIOUS_SCREEN, VIEW_ON_ALL, "Screens", VIEW_KEY_BACK_TAB, 0, 0, "",                    \
	  "The screen before")                                                                     \
	X(HELP, VIEW_ON_ALL, "Screens", '?', VIEW_KEY_F1, 0, "help", "Help: these keys, and back") \
	X(WRITE, VIEW_ON_ALL, "Screens", 'W', 0, 0, "",                                            \
	  "Write the screen to a file: .txt, .csv, .json or .svg")                                 \
	X(REDRAW, VIEW_ON_ALL, "Screens", VIEW_CTRL('L'), 0, 0, "", "Draw the screen again")       \
	X(BACK, VIEW_ON_ALL, "Leaving", VIEW_KEY_ESCAPE, 0, 0, "",                                 \
	  "Leave a prompt, a list or the help; stop what takes long")                              \
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

/* The text of the help and the manual on the screens' own keys (VIEW_SCREEN_MAP), in this group. */
#define VIEW_SCREENS_GROUP    "Screens"
#define VIEW_SCREEN_KEYS      "1 to 9, H, X, A, P, :"
#define VIEW_SCREEN_KEYS_HELP "The screen whose name stands behind it in the first line"

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

/* The choice that follows @at of @count (at least 1) in a circle; the one before, if the request
 * goes back (VIEW_VIEW_BACK_REQUEST, VIEW_STATISTIC_BACK_REQUEST ...). */
int view_next_choice(int at, int count, enum view_request request);

/* Move *@at, the cursor of a list of @count items, by one, by @page, or to an end; the caller keeps
 * it within the list. Return false: the request does not move it. */
bool view_list_move(int64_t *at, enum view_request request, int64_t page, int64_t count);

/* A search in a list, from the item @from on, forwards or backwards and around: count each match in
 * the order of the list, then end with the one to go to (-1: no match), its number from 1, and the
 * count of all. */
struct view_search {
	int64_t from, found, first, last, hit, hits;
	bool forward;
};

static inline struct view_search view_search_from(int64_t from, bool forward)
{
	return (struct view_search){from, -1, -1, -1, 0, 0, forward};
}

void view_search_match(struct view_search *search, int64_t at);
int64_t view_search_end(const struct view_search *search, int64_t *hit, int64_t *hits);

/* "Ctrl-L", "Shift-Left", "PgUp", "k". Returns @out. */
#define VIEW_KEY_NAME_SIZE 16
const char *view_key_name(uint32_t key, char out[VIEW_KEY_NAME_SIZE]);
/* All keys of a request: "k Up". */
#define VIEW_KEY_LIST_SIZE 48
const char *view_key_list(enum view_request request, char out[VIEW_KEY_LIST_SIZE]);

/* The section KEYS of the manual, as struct cli_command wants details ("KEYS\n..."). */
void view_keys_manual(struct str *out);

#endif /* VIEW_KEYS_H */
