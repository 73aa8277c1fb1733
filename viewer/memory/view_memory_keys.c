/*
 * Keys and mouse of the Memory screen.
 *
 * Threading: the session's. Ownership: none.
 */
#include "viewer/memory/view_memory_internal.h"

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/named/report_floor.h"

#define PAGE_PARTS 4 /* paging moves the window by all but one of these parts of its span */

/* ---- moving in the pictures ------------------------------------------------------------------ */

static int64_t memory_position(const struct view_memory *screen)
{
	return view__memory_position(screen, view__memory_cursor(screen));
}

static void memory_set_position(struct view_memory *screen, int64_t position)
{
	const int64_t last = view__memory_shown(screen) - 1;

	position = max(0, min(position, last));
	view__memory_set_cursor(screen, view__memory_at(screen, position));
	if (screen->span == 0)
		return;
	if (position < screen->from)
		screen->from = position;
	if (position >= screen->from + screen->span)
		screen->from = position - screen->span + 1;
}

/* Move by columns of the curve. A column shows its fullest tile, so move the cursor to that
 * tile. */
static void memory_move_column(struct view_memory *screen, int by)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	const int64_t position = memory_position(screen);
	int column;

	if (screen->curve.count == 0 || span <= screen->curve.count) {
		memory_set_position(screen, position + by);
		return;
	}
	/* The window was zoomed after the curve was computed, so the columns do not match. */
	if (screen->curve.from != screen->from || screen->curve.span != screen->span) {
		memory_set_position(screen, position + by * (span / screen->curve.count));
		return;
	}
	column = view__memory_column_of(screen, position) + by;
	if (column >= 0 && column < screen->curve.count)
		view__memory_set_cursor(screen, screen->curve.index[column]);
	else
		memory_set_position(screen, position + by * (span / screen->curve.count));
}

static void memory_move_bin(struct view_memory *screen, int by)
{
	int at = screen->bin_at + by;

	while (at >= 0 && at < screen->bin_count && screen->bins[at].fullest < 0)
		at += by;
	if (at < 0 || at >= screen->bin_count)
		return;
	screen->bin_at = at;
	view__memory_set_cursor(screen, screen->bins[at].fullest);
}

static void memory_move_curve(struct view_memory *screen, enum view_request request)
{
	const int64_t span = screen->span > 0 ? screen->span : view__memory_shown(screen);
	const int64_t page = span - span / PAGE_PARTS;

	if (request == VIEW_LEFT_REQUEST || request == VIEW_RIGHT_REQUEST)
		memory_move_column(screen, request == VIEW_LEFT_REQUEST ? -1 : 1);
	else if (request == VIEW_PAGE_LEFT_REQUEST || request == VIEW_PAGE_RIGHT_REQUEST)
		memory_set_position(screen,
				    memory_position(screen) +
					    (request == VIEW_PAGE_LEFT_REQUEST ? -page : page));
}

static void memory_move_chip(struct view_memory *screen, enum view_request request)
{
	/* On the floor plan: columns across, rows down, and whole IPUs. */
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
		if (moves[i].request == request) {
			const int64_t first = view__memory_first(screen),
				      shown = view__memory_shown(screen);
			const int64_t step = moves[i].across + moves[i].down * REPORT_FLOOR_ACROSS +
					     moves[i].ipus * screen->tiles;
			const int64_t index = view__memory_cursor(screen) + step;

			if (index >= first && index < first + shown)
				view__memory_set_cursor(screen, index);
		}
}

static void memory_move_histogram(struct view_memory *screen, enum view_request request)
{
	const int64_t shown = view__memory_shown(screen);
	const int by = request == VIEW_LEFT_REQUEST ? -1 : request == VIEW_RIGHT_REQUEST ? 1 : 0;

	if (request == VIEW_UP_REQUEST || request == VIEW_DOWN_REQUEST)
		memory_move_bin(screen, request == VIEW_UP_REQUEST ? -1 : 1);
	/* Left and Right move to the next tile of the same bin. */
	for (int64_t p = memory_position(screen) + by; by != 0 && p >= 0 && p < shown; p += by) {
		const int64_t index = view__memory_at(screen, p);
		const int64_t value = view__memory_value(screen, 0, index);

		if ((value - screen->bin_base) / screen->bin_bytes == screen->bin_at) {
			view__memory_set_cursor(screen, index);
			break;
		}
	}
}

static bool memory_is_vertical(enum view_request request)
{
	return request == VIEW_UP_REQUEST || request == VIEW_DOWN_REQUEST ||
	       request == VIEW_PAGE_UP_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
}

static enum view_answer memory_move(struct view_memory *screen, enum view_request request)
{
	static void (*const moves[])(struct view_memory *, enum view_request) = {
		[VIEW_MEMORY_CURVE] = memory_move_curve,
		[VIEW_MEMORY_CHIP] = memory_move_chip,
		[VIEW_MEMORY_HISTOGRAM] = memory_move_histogram};
	const bool last = request == VIEW_END_REQUEST, end = last || request == VIEW_HOME_REQUEST;

	if ((screen->details.active && (end || memory_is_vertical(request))) ||
	    (screen->view == VIEW_MEMORY_CURVE && memory_is_vertical(request))) {
		struct view_memory_details *details = &screen->details;
		int64_t at = details->at;

		view_list_move(&at, request, max(screen->areas.details.height - 2, 1),
			       details->count);
		details->at = (int)max(0, min(at, details->count - 1));
		return VIEW_DRAW;
	}
	if (end && screen->view == VIEW_MEMORY_HISTOGRAM) {
		screen->bin_at = last ? screen->bin_count : -1;
		memory_move_bin(screen, last ? -1 : 1);
	} else if (end) {
		memory_set_position(screen, last ? view__memory_shown(screen) - 1 : 0);
	} else if (!view__memory_shown_grid(screen)) {
		moves[screen->view](screen, request);
	}
	return VIEW_LOAD;
}

/* ---- zooming --------------------------------------------------------------------------------- */

/* Say why a request does nothing. */
static enum view_answer memory_decline(struct view_memory *screen, const char *text)
{
	view_message(screen->context, text, NULL);
	return VIEW_DRAW;
}

static enum view_answer memory_zoom(struct view_memory *screen, enum view_request request)
{
	const int64_t shown = view__memory_shown(screen), at = memory_position(screen);
	const int64_t span = screen->span > 0 ? screen->span : shown;
	int64_t next = request == VIEW_ZOOM_IN_REQUEST ? span / 2 : span * 2;

	if (request == VIEW_ZOOM_ALL_REQUEST) {
		/* If all tiles are shown already, toggle the scale up to the tile's capacity. */
		if (screen->span == 0 || screen->view != VIEW_MEMORY_CURVE)
			screen->capacity = !screen->capacity;
		screen->span = 0;
		return VIEW_LOAD;
	}
	if (screen->view != VIEW_MEMORY_CURVE)
		return memory_decline(screen, "the curve zooms: v goes there");
	next = min(shown, max(VIEW_MEMORY_SPAN_LEAST, next));
	if (next == span)
		return memory_decline(screen, request == VIEW_ZOOM_IN_REQUEST
						      ? "this is as close as it gets"
						      : "all tiles are shown");
	/* The cursor keeps its relative position in the window. */
	screen->from = at - (at - screen->from) * next / span;
	screen->span = next < shown ? next : 0;
	return VIEW_LOAD;
}

/* ---- the mouse ------------------------------------------------------------------------------- */

/* Move the cursor to the tile of the selected row, or to the fullest of its IPU. If the screen
 * shows one IPU, show that one. */
static void memory_go_to_row(struct view_memory *screen)
{
	const struct view_grid *grid = view__memory_shown_grid(screen);
	const bool ipus = screen->view == VIEW_MEMORY_IPUS;
	const int64_t ipu = view_grid_int(grid, "ipu");
	int64_t tile = view_grid_int(grid, ipus ? "fullest_tile" : "tile");

	if (ipus && tile == IPS_NULL) /* a row that only the Target has */
		tile = view_grid_int(grid, "fullest_tile_target");
	if (ipu == IPS_NULL || tile == IPS_NULL)
		return;
	view__memory_set_cursor(screen, view__memory_index(screen, ipu, tile));
	if (!ipus || screen->ipu == IPS_NULL || screen->ipu == screen->at_ipu)
		return;
	screen->ipu = screen->at_ipu;
	screen->span = 0;
	screen->grid_stale = true;
}

enum view_answer view__memory_click(void *state, struct view_context *context, int x, int y)
{
	struct view_memory *screen = state;
	const struct view_rect *area = &screen->areas.picture;
	/* In the picture. */
	const int column = x - area->x - VIEW_MEMORY_SCALE, row = y - area->y;
	const int bin = screen->sides > 0 ? (row - 1) / screen->sides : -1;
	struct view_grid *grid = view__memory_shown_grid(screen);

	(void)context;
	if (screen->ipus == 0)
		return VIEW_DRAW;
	if (view_rect_contains(screen->areas.details, x, y)) {
		screen->details.active = true;
		return VIEW_LOAD;
	}
	if (!view_rect_contains(*area, x, y))
		return VIEW_LOAD;
	screen->details.active = false;
	if (screen->view == VIEW_MEMORY_CURVE && column >= 0 && column < screen->curve.count)
		view__memory_set_cursor(screen, screen->curve.index[column]);
	else if (screen->view == VIEW_MEMORY_CHIP)
		view__memory_set_cursor(screen, view__memory_floor_find(screen, x - area->x, row));
	else if (screen->view == VIEW_MEMORY_HISTOGRAM && row >= 1 && bin < screen->bin_count)
		view__memory_set_cursor(screen, screen->bins[bin].fullest);
	else if (grid && view_grid_click(grid, x, y) != VIEW_UNHANDLED)
		memory_go_to_row(screen);
	return VIEW_LOAD;
}

/* ---- selection ------------------------------------------------------------------------------- */

static enum view_answer memory_change_view(struct view_memory *screen, enum view_request request)
{
	const int views = screen->ipus > 1 ? VIEW_MEMORY_VIEWS : VIEW_MEMORY_IPUS;

	screen->view = (enum view_memory_view)view_next_choice((int)screen->view, views, request);
	return VIEW_LOAD;
}

static enum view_answer memory_next_breakdown(struct view_memory *screen, enum view_request request)
{
	(void)request;
	if (screen->subject.name[0])
		view__memory_select(screen, IPS_NULL, "");
	else
		screen->breakdown = (enum view_memory_breakdown)(((int)screen->breakdown + 1) %
								 VIEW_MEMORY_BREAKDOWNS);
	if (screen->sides > 1 && screen->breakdown != VIEW_MEMORY_WHOLE)
		view_message(screen->context, "comparing, one part at a time is shown: s, S", NULL);
	view__memory_choose(screen, -1);
	screen->grid_stale = true;
	return VIEW_LOAD;
}

/* Select the next part of the breakdown; after the last, all of them. */
static enum view_answer memory_next_part(struct view_memory *screen, enum view_request request)
{
	if (screen->subject.name[0])
		view__memory_select(screen, IPS_NULL, "");
	if (screen->breakdown == VIEW_MEMORY_WHOLE) {
		screen->breakdown = VIEW_MEMORY_BY_CATEGORY;
		view__memory_series(screen);
	}
	/* -1 (all) takes part in the cycle. */
	view__memory_choose(
		screen,
		view_next_choice(screen->chosen + 1, screen->series_count + 1, request) - 1);
	screen->grid_stale = true;
	return VIEW_LOAD;
}

static enum view_answer memory_change_ipu(struct view_memory *screen, enum view_request request)
{
	const int at = screen->ipu == IPS_NULL ? -1 : view__memory_ipu_at(screen, screen->ipu);

	(void)request;
	if (screen->ipus == 1)
		return memory_decline(screen, "there is one IPU");
	screen->ipu = at + 1 < screen->ipus ? screen->ipu_ids[at + 1] : IPS_NULL;
	screen->span = 0;
	screen->grid_stale = true;
	/* Keep the tile number on the new IPU. */
	if (screen->ipu != IPS_NULL)
		screen->at_ipu = screen->ipu;
	return VIEW_LOAD;
}

static enum view_answer memory_change_order(struct view_memory *screen, enum view_request request)
{
	(void)request;
	if (screen->view == VIEW_MEMORY_CHIP)
		return memory_decline(screen,
				      "the floor plan is the physical order: v shows the curve");
	screen->physical = !screen->physical;
	screen->grid_stale = true;
	view_message(screen->context,
		     screen->physical ? "physical order: down the 16 columns of the floor plan"
				      : "software order: by tile number",
		     NULL);
	return VIEW_LOAD;
}

static enum view_answer memory_toggle_mark(struct view_memory *screen, enum view_request request)
{
	(void)request;
	for (int i = 0; i < screen->marks; i++) {
		if (screen->mark[i].ipu != screen->at_ipu ||
		    screen->mark[i].tile != screen->at_tile)
			continue;
		for (screen->marks--; i < screen->marks; i++)
			screen->mark[i] = screen->mark[i + 1];
		return VIEW_LOAD;
	}
	if (screen->marks == VIEW_MEMORY_MARKS)
		return memory_decline(screen,
				      "as many tiles as can be are selected: Esc lets go of them");
	screen->mark[screen->marks].ipu = screen->at_ipu;
	screen->mark[screen->marks++].tile = screen->at_tile;
	return VIEW_LOAD;
}

static enum view_answer memory_go_to_fullest(struct view_memory *screen, enum view_request request)
{
	(void)request;
	screen->jump = true;
	screen->span = 0;
	return VIEW_LOAD;
}

/* ---- details --------------------------------------------------------------------------------- */

static enum view_answer memory_open_or_close(struct view_memory *screen, enum view_request request)
{
	struct view_memory_details *details = &screen->details;
	const int group = details->at < details->count ? details->lines[details->at].group : -1;
	const unsigned bit = group >= 0 ? 1u << group : 0;

	if (bit == 0 && (request == VIEW_EXPAND_REQUEST || request == VIEW_COLLAPSE_REQUEST))
		view_message(screen->context,
			     "Enter, then j and k, go to what opens: By category ...", NULL);
	if (request == VIEW_EXPAND_REQUEST)
		details->open |= bit;
	else if (request == VIEW_COLLAPSE_REQUEST)
		details->open &= ~bit;
	else
		details->open = request == VIEW_EXPAND_ALL_REQUEST ? VIEW_MEMORY_ALL_GROUPS : 0;
	if (request == VIEW_COLLAPSE_REQUEST)
		while (details->at > 0 && group >= 0 &&
		       details->lines[details->at].kind != VIEW_MEMORY_GROUP)
			details->at--;
	return VIEW_LOAD;
}

/* Enter the details; inside, open a group or show the tiles of a variable. */
static enum view_answer memory_enter(struct view_memory *screen, enum view_request request)
{
	struct view_memory_details *details = &screen->details;
	const struct view_memory_line *line =
		details->at < details->count ? &details->lines[details->at] : NULL;

	(void)request;
	if (!details->active) {
		details->active = true;
		view_message(screen->context,
			     "in the details: Enter opens, on a variable shows its tiles", NULL);
		return VIEW_LOAD;
	}
	if (line && line->kind == VIEW_MEMORY_GROUP) {
		details->open ^= 1u << line->group;
	} else if (line && line->kind == VIEW_MEMORY_VARIABLE) {
		view__memory_select(screen, line->variable_id, line->name);
	}
	return VIEW_LOAD;
}

/* Undo the most specific selection. */
static enum view_answer memory_back(struct view_memory *screen, enum view_request request)
{
	(void)request;
	if (screen->details.active) {
		screen->details.active = false;
	} else if (screen->subject.name[0]) {
		view__memory_select(screen, IPS_NULL, "");
	} else if (screen->chosen >= 0) {
		view__memory_choose(screen, -1);
		screen->grid_stale = true;
	} else if (screen->marks > 0) {
		screen->marks = 0;
	} else {
		return VIEW_UNHANDLED;
	}
	return VIEW_LOAD;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static enum view_answer memory_request_table(struct view_memory *screen, enum view_request request)
{
	struct view_grid *grid = view__memory_shown_grid(screen);
	enum view_answer answer;

	/* If keys arrived before the load, load the grid now. */
	if ((screen->grid_stale || grid->table.column_count == 0) && !screen->subject_stale) {
		view__memory_series(screen);
		view__memory_load_grid(screen);
		if (err_stuck(&screen->err))
			return VIEW_LOAD; /* the load reports the error */
	}
	answer = view_grid_request(grid, request);
	if (answer != VIEW_UNHANDLED)
		memory_go_to_row(screen);
	return answer == VIEW_DRAW ? VIEW_LOAD : answer;
}

/* Sorting and choosing columns need a table, so switch to one (as filtering does). */
static enum view_answer memory_switch_to_table(struct view_memory *screen,
					       enum view_request request)
{
	screen->details.active = false;
	if (!view__memory_shown_grid(screen))
		screen->view = VIEW_MEMORY_TABLE;
	return memory_request_table(screen, request);
}

/* ---- requests -------------------------------------------------------------------------------- */

typedef enum view_answer (*view_memory_answer)(struct view_memory *screen,
					       enum view_request request);

static const view_memory_answer memory_answers[VIEW_REQUESTS] = {
	[VIEW_UP_REQUEST] = memory_move,
	[VIEW_DOWN_REQUEST] = memory_move,
	[VIEW_LEFT_REQUEST] = memory_move,
	[VIEW_RIGHT_REQUEST] = memory_move,
	[VIEW_PAGE_UP_REQUEST] = memory_move,
	[VIEW_PAGE_DOWN_REQUEST] = memory_move,
	[VIEW_PAGE_LEFT_REQUEST] = memory_move,
	[VIEW_PAGE_RIGHT_REQUEST] = memory_move,
	[VIEW_HOME_REQUEST] = memory_move,
	[VIEW_END_REQUEST] = memory_move,
	[VIEW_ENTER_REQUEST] = memory_enter,
	[VIEW_BACK_REQUEST] = memory_back,
	[VIEW_VIEW_REQUEST] = memory_change_view,
	[VIEW_VIEW_BACK_REQUEST] = memory_change_view,
	[VIEW_BREAKDOWN_REQUEST] = memory_next_breakdown,
	[VIEW_STATISTIC_REQUEST] = memory_next_part,
	[VIEW_STATISTIC_BACK_REQUEST] = memory_next_part,
	[VIEW_SELECT_REQUEST] = memory_change_ipu,
	[VIEW_UNIT_REQUEST] = memory_change_order,
	[VIEW_MARK_ROW_REQUEST] = memory_toggle_mark,
	[VIEW_LONGEST_GAP_REQUEST] = memory_go_to_fullest,
	[VIEW_EXPAND_REQUEST] = memory_open_or_close,
	[VIEW_COLLAPSE_REQUEST] = memory_open_or_close,
	[VIEW_EXPAND_ALL_REQUEST] = memory_open_or_close,
	[VIEW_COLLAPSE_ALL_REQUEST] = memory_open_or_close,
	[VIEW_ZOOM_IN_REQUEST] = memory_zoom,
	[VIEW_ZOOM_OUT_REQUEST] = memory_zoom,
	[VIEW_ZOOM_ALL_REQUEST] = memory_zoom,
	[VIEW_SORT_NEXT_REQUEST] = memory_switch_to_table,
	[VIEW_SORT_BACK_REQUEST] = memory_switch_to_table,
	[VIEW_REVERSE_REQUEST] = memory_switch_to_table,
	[VIEW_COLUMNS_REQUEST] = memory_switch_to_table,
};

enum view_answer view__memory_request(void *state, struct view_context *context,
				      enum view_request request)
{
	struct view_memory *screen = state;
	enum view_answer answer;

	if (!memory_answers[request] || (screen->ipus == 0 && request == VIEW_BACK_REQUEST))
		return VIEW_UNHANDLED;
	view__memory_begin(screen, context);
	if (screen->ipus == 0)
		return memory_decline(screen, "no memory of tiles was recorded");
	if (view__memory_shown_grid(screen) && !screen->details.active) {
		answer = memory_request_table(screen, request);
		if (answer != VIEW_UNHANDLED)
			return answer;
	}
	return memory_answers[request](screen, request);
}
