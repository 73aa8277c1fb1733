/*
 * Moving the cursor of the screen Memory: along the curve, over the floor plan, through the
 * histogram and the lines of the details; zooming; the mouse.
 *
 * Threading: the worker's.
 */
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/named/report_floor.h"
#include "viewer/memory/view_memory_internal.h"

#define SPAN_LEAST 8 /* tiles in the curve's window */
#define PAGE_PARTS 4 /* a window is moved by all but one of so many parts */

static int64_t view_clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* ---- moving in the pictures ------------------------------------------------------------------ */

static int64_t view_position(const struct view_memory *screen)
{
	return view__memory_position(screen, view__memory_cursor(screen));
}

static void view_set_position(struct view_memory *screen, int64_t position)
{
	const int64_t last = view__memory_shown(screen) - 1;

	position = view_clamp(position, 0, last);
	view__memory_set_cursor(screen, view__memory_at(screen, position));
	if (screen->span == 0)
		return;
	if (position < screen->from)
		screen->from = position;
	if (position >= screen->from + screen->span)
		screen->from = position - screen->span + 1;
}

/* A column of the curve on: to the fullest of its tiles, which is what it shows. */
static void view_move_column(struct view_memory *screen, int by)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	const int64_t position = view_position(screen);
	int column;

	if (screen->curve.count == 0 || span <= screen->curve.count) {
		view_set_position(screen, position + by);
		return;
	}
	/* Zoomed since the curve was made: its columns are others now. */
	if (screen->curve.from != screen->from || screen->curve.span != screen->span) {
		view_set_position(screen, position + by * (span / screen->curve.count));
		return;
	}
	column = view__memory_column_of(screen, position) + by;
	if (column >= 0 && column < screen->curve.count)
		view__memory_set_cursor(screen, screen->curve.index[column]);
	else
		view_set_position(screen, position + by * (span / screen->curve.count));
}

/* In the floor plan: columns across, rows down, and IPUs. */
static void view_move_floor(struct view_memory *screen, int64_t across, int64_t down, int64_t ipus)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	const int64_t step = across + down * REPORT_FLOOR_ACROSS + ipus * screen->tiles;
	const int64_t index = view__memory_cursor(screen) + step;

	if (index >= first && index < first + shown)
		view__memory_set_cursor(screen, index);
}

static void view_move_bin(struct view_memory *screen, int by)
{
	int at = screen->bin_at + by;

	while (at >= 0 && at < screen->bin_count && screen->bins[at].fullest < 0)
		at += by;
	if (at < 0 || at >= screen->bin_count)
		return;
	screen->bin_at = at;
	view__memory_set_cursor(screen, screen->bins[at].fullest);
}

/* To the next tile of the same bin. */
static void view_move_in_bin(struct view_memory *screen, int by)
{
	const int64_t shown = view__memory_shown(screen);

	for (int64_t p = view_position(screen) + by; p >= 0 && p < shown; p += by) {
		const int64_t index = view__memory_at(screen, p);
		const int64_t value = view__memory_value(screen, 0, index);

		if ((value - screen->bin_base) / screen->bin_bytes == screen->bin_at) {
			view__memory_set_cursor(screen, index);
			return;
		}
	}
}

static void view_move_curve(struct view_memory *screen, enum view_request request)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	const int64_t page = span - span / PAGE_PARTS;

	if (request == VIEW_LEFT_REQUEST || request == VIEW_RIGHT_REQUEST)
		view_move_column(screen, request == VIEW_LEFT_REQUEST ? -1 : 1);
	else if (request == VIEW_PAGE_LEFT_REQUEST || request == VIEW_PAGE_RIGHT_REQUEST)
		view_set_position(screen,
				  view_position(screen) +
					  (request == VIEW_PAGE_LEFT_REQUEST ? -page : page));
}

static void view_move_chip(struct view_memory *screen, enum view_request request)
{
	static const struct {
		enum view_request request;
		int across, down, ipus;
	} moves[] = {
		{VIEW_LEFT_REQUEST, -1, 0, 0},      {VIEW_RIGHT_REQUEST, 1, 0, 0},
		{VIEW_UP_REQUEST, 0, -1, 0},        {VIEW_DOWN_REQUEST, 0, 1, 0},
		{VIEW_PAGE_LEFT_REQUEST, 0, 0, -1}, {VIEW_PAGE_RIGHT_REQUEST, 0, 0, 1},
		{VIEW_PAGE_UP_REQUEST, 0, 0, -1},   {VIEW_PAGE_DOWN_REQUEST, 0, 0, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(moves); i++)
		if (moves[i].request == request)
			view_move_floor(screen, moves[i].across, moves[i].down, moves[i].ipus);
}

static void view_move_histogram(struct view_memory *screen, enum view_request request)
{
	if (request == VIEW_UP_REQUEST || request == VIEW_DOWN_REQUEST)
		view_move_bin(screen, request == VIEW_UP_REQUEST ? -1 : 1);
	else if (request == VIEW_LEFT_REQUEST || request == VIEW_RIGHT_REQUEST)
		view_move_in_bin(screen, request == VIEW_LEFT_REQUEST ? -1 : 1);
}

static void view_move_details(struct view_memory *screen, enum view_request request)
{
	struct view_memory_details *details = &screen->details;
	const int page = screen->areas.details.height > 2 ? screen->areas.details.height - 2 : 1;
	const int by = request == VIEW_UP_REQUEST          ? -1
		       : request == VIEW_DOWN_REQUEST      ? 1
		       : request == VIEW_PAGE_UP_REQUEST   ? -page
		       : request == VIEW_PAGE_DOWN_REQUEST ? page
		       : request == VIEW_HOME_REQUEST      ? -details->count
		       : request == VIEW_END_REQUEST       ? details->count
							   : 0;

	details->at = (int)view_clamp(details->at + by, 0, details->count - 1);
}

static bool view_is_vertical(enum view_request request)
{
	return request == VIEW_UP_REQUEST || request == VIEW_DOWN_REQUEST ||
	       request == VIEW_PAGE_UP_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
}

static void view_move_end(struct view_memory *screen, bool last)
{
	if (screen->view != VIEW_MEMORY_HISTOGRAM) {
		view_set_position(screen, last ? view__memory_shown(screen) - 1 : 0);
		return;
	}
	screen->bin_at = last ? screen->bin_count : -1;
	view_move_bin(screen, last ? -1 : 1);
}

enum view_answer view__memory_move(struct view_memory *screen, struct view_context *context,
				   enum view_request request)
{
	static void (*const moves[])(struct view_memory *, enum view_request) = {
		[VIEW_MEMORY_CURVE] = view_move_curve,
		[VIEW_MEMORY_CHIP] = view_move_chip,
		[VIEW_MEMORY_HISTOGRAM] = view_move_histogram};
	const bool end = request == VIEW_HOME_REQUEST || request == VIEW_END_REQUEST;

	(void)context;
	if ((screen->details.active && (end || view_is_vertical(request))) ||
	    (screen->view == VIEW_MEMORY_CURVE && view_is_vertical(request))) {
		view_move_details(screen, request);
		return VIEW_DRAW;
	}
	if (end)
		view_move_end(screen, request == VIEW_END_REQUEST);
	else if (!view__memory_shown_grid(screen))
		moves[screen->view](screen, request);
	return VIEW_LOAD;
}

/* ---- zooming --------------------------------------------------------------------------------- */

enum view_answer view__memory_zoom(struct view_memory *screen, struct view_context *context,
				   enum view_request request)
{
	const int64_t shown = view__memory_shown(screen), at = view_position(screen);
	const int64_t span = screen->span > 0 ? screen->span : shown;
	int64_t next = request == VIEW_ZOOM_IN_REQUEST ? span / 2 : span * 2;

	if (request == VIEW_ZOOM_ALL_REQUEST) {
		/* What is all of it is asked for again: up to the tile's end, too. */
		if (screen->span == 0 || screen->view != VIEW_MEMORY_CURVE)
			screen->capacity = !screen->capacity;
		screen->span = 0;
		return VIEW_LOAD;
	}
	if (screen->view != VIEW_MEMORY_CURVE) {
		view__memory_say(context, "the curve zooms: v goes there");
		return VIEW_DRAW;
	}
	next = max(SPAN_LEAST, next);
	next = min(shown, next);
	if (next == span) {
		view__memory_say(context, request == VIEW_ZOOM_IN_REQUEST
						  ? "this is as close as it gets"
						  : "all tiles are shown");
		return VIEW_DRAW;
	}
	/* The cursor stays where it is in the window. */
	screen->from = at - (at - screen->from) * next / span;
	screen->span = next < shown ? next : 0;
	return VIEW_LOAD;
}

/* ---- the mouse ------------------------------------------------------------------------------- */

static bool view_inside(const struct view_rect *rect, int x, int y)
{
	return x >= rect->x && x < rect->x + rect->width && y >= rect->y &&
	       y < rect->y + rect->height;
}

static void view_click_picture(struct view_memory *screen, int x, int y)
{
	const int bin = screen->sides > 0 ? (y - 1) / screen->sides : -1;
	struct view_grid *grid = view__memory_shown_grid(screen);

	if (screen->view == VIEW_MEMORY_CURVE && x >= VIEW_MEMORY_SCALE &&
	    x - VIEW_MEMORY_SCALE < screen->curve.count)
		view__memory_set_cursor(screen, screen->curve.index[x - VIEW_MEMORY_SCALE]);
	else if (screen->view == VIEW_MEMORY_CHIP)
		view__memory_set_cursor(screen, view__memory_floor_find(screen, x, y));
	else if (screen->view == VIEW_MEMORY_HISTOGRAM && y >= 1 && bin < screen->bin_count)
		view__memory_set_cursor(screen, screen->bins[bin].fullest);
	else if (grid &&
		 view_grid_click(grid, screen->areas.picture.height, x, y) != VIEW_UNHANDLED)
		view__memory_take_row(screen);
}

enum view_answer view__memory_click(void *state, struct view_context *context, int x, int y)
{
	struct view_memory *screen = state;
	const struct view_rect *area = &screen->areas.picture;

	(void)context;
	if (screen->ipus == 0)
		return VIEW_DRAW;
	if (view_inside(&screen->areas.details, x, y)) {
		screen->details.active = true;
	} else if (view_inside(area, x, y)) {
		screen->details.active = false;
		view_click_picture(screen, x - area->x, y - area->y);
	}
	return VIEW_LOAD;
}
