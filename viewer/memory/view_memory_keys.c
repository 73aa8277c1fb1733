/*
 * What keys do on the screen Memory: what is shown, and what is open in the details.
 *
 * Threading: the worker's.
 */
#include <stdio.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/memory/view_memory_internal.h"

void view__memory_say(struct view_context *context, const char *text)
{
	str_copy(context->message, sizeof(context->message), text);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void view_forget_subject(struct view_memory *screen)
{
	screen->subject = (struct view_memory_subject){.variable_id = IPS_NULL, .name = ""};
	screen->subject_stale = screen->grid_stale = true;
}

static enum view_answer view_change_view(struct view_memory *screen, struct view_context *context,
					 enum view_request request)
{
	const int views = screen->ipus > 1 ? VIEW_MEMORY_VIEWS : VIEW_MEMORY_IPUS;
	const int by = request == VIEW_VIEW_REQUEST ? 1 : views - 1;

	(void)context;
	screen->view = (enum view_memory_view)(((int)screen->view + by) % views);
	return VIEW_LOAD;
}

static enum view_answer view_break_down(struct view_memory *screen, struct view_context *context,
					enum view_request request)
{
	(void)request;
	if (screen->subject.name[0])
		view_forget_subject(screen);
	else
		screen->breakdown = (enum view_memory_breakdown)(((int)screen->breakdown + 1) %
								 VIEW_MEMORY_BREAKDOWNS);
	if (screen->sides > 1 && screen->breakdown != VIEW_MEMORY_WHOLE)
		view__memory_say(context, "comparing, one part at a time is shown: s, S");
	view__memory_choose(screen, -1);
	screen->grid_stale = true;
	return VIEW_LOAD;
}

/* One part of the breakdown after the other, then all of them. */
static enum view_answer view_choose(struct view_memory *screen, struct view_context *context,
				    enum view_request request)
{
	const int by = request == VIEW_STATISTIC_REQUEST ? 1 : -1;

	(void)context;
	if (screen->subject.name[0])
		view_forget_subject(screen);
	if (screen->breakdown == VIEW_MEMORY_WHOLE) {
		screen->breakdown = VIEW_MEMORY_BY_CATEGORY;
		view__memory_series(screen);
	}
	/* -1 (all) is one of them. */
	view__memory_choose(screen, (screen->chosen + 1 + by + screen->series_count + 1) %
						    (screen->series_count + 1) -
					    1);
	screen->grid_stale = true;
	return VIEW_LOAD;
}

static enum view_answer view_change_ipu(struct view_memory *screen, struct view_context *context,
					enum view_request request)
{
	const int at = screen->ipu == IPS_NULL ? -1 : view__memory_ipu_at(screen, screen->ipu);

	(void)request;
	if (screen->ipus == 1) {
		view__memory_say(context, "there is one IPU");
		return VIEW_DRAW;
	}
	screen->ipu = at + 1 < screen->ipus ? screen->ipu_ids[at + 1] : IPS_NULL;
	screen->span = 0;
	screen->grid_stale = true;
	/* The same tile of that IPU. */
	if (screen->ipu != IPS_NULL)
		screen->at_ipu = screen->ipu;
	return VIEW_LOAD;
}

static enum view_answer view_change_order(struct view_memory *screen, struct view_context *context,
					  enum view_request request)
{
	(void)request;
	if (screen->view == VIEW_MEMORY_CHIP) {
		view__memory_say(context,
				 "the floor plan is the physical order: v shows the curve");
		return VIEW_DRAW;
	}
	screen->physical = !screen->physical;
	screen->grid_stale = true;
	view__memory_say(context, screen->physical
					  ? "physical order: down the 16 columns of the floor plan"
					  : "software order: by tile number");
	return VIEW_LOAD;
}

static enum view_answer view_mark(struct view_memory *screen, struct view_context *context,
				  enum view_request request)
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
	if (screen->marks == VIEW_MEMORY_MARKS) {
		view__memory_say(context,
				 "as many tiles as can be are selected: Esc lets go of them");
		return VIEW_DRAW;
	}
	screen->mark[screen->marks].ipu = screen->at_ipu;
	screen->mark[screen->marks++].tile = screen->at_tile;
	return VIEW_LOAD;
}

static enum view_answer view_fullest(struct view_memory *screen, struct view_context *context,
				     enum view_request request)
{
	(void)context;
	(void)request;
	screen->jump = true;
	screen->span = 0;
	return VIEW_LOAD;
}

/* ---- details --------------------------------------------------------------------------------- */

static enum view_answer view_expand(struct view_memory *screen, struct view_context *context,
				    enum view_request request)
{
	struct view_memory_details *details = &screen->details;
	const int group = details->at < details->count ? details->lines[details->at].group : -1;
	const unsigned bit = group >= 0 ? 1u << group : 0;

	if (bit == 0 && (request == VIEW_EXPAND_REQUEST || request == VIEW_COLLAPSE_REQUEST))
		view__memory_say(context, "Enter, then j and k, go to what opens: By category ...");
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

/* Into the details; there, opens a group or shows where a variable lies. */
static enum view_answer view_enter(struct view_memory *screen, struct view_context *context,
				   enum view_request request)
{
	struct view_memory_details *details = &screen->details;
	const struct view_memory_line *line =
		details->at < details->count ? &details->lines[details->at] : NULL;

	(void)request;
	if (!details->active) {
		details->active = true;
		view__memory_say(context,
				 "in the details: Enter opens, on a variable shows its tiles");
		return VIEW_LOAD;
	}
	if (line && line->kind == VIEW_MEMORY_GROUP) {
		details->open ^= 1u << line->group;
	} else if (line && line->kind == VIEW_MEMORY_VARIABLE) {
		view_forget_subject(screen);
		screen->subject.variable_id = line->variable_id;
		str_copy(screen->subject.name, sizeof(screen->subject.name), line->name);
	}
	return VIEW_LOAD;
}

/* Out of whatever was gone into last. */
static enum view_answer view_back(struct view_memory *screen, struct view_context *context,
				  enum view_request request)
{
	(void)context;
	(void)request;
	if (screen->details.active) {
		screen->details.active = false;
	} else if (screen->subject.name[0]) {
		view_forget_subject(screen);
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

/* Of an IPU its fullest tile; where one IPU is shown, that one then is. */
static void view_take_ipu(struct view_memory *screen)
{
	const struct report_cell *ipu = view_grid_cell(&screen->ipu_grid, "ipu");
	const struct report_cell *tile = view_grid_cell(&screen->ipu_grid, "fullest_tile");

	if (tile && tile->type != PROF_INT) /* the Target's alone */
		tile = view_grid_cell(&screen->ipu_grid, "fullest_tile_target");
	if (!ipu || !tile)
		return;
	view__memory_set_cursor(screen, view__memory_index(screen, ipu->integer, tile->integer));
	if (screen->ipu == IPS_NULL || screen->ipu == screen->at_ipu)
		return;
	screen->ipu = screen->at_ipu;
	screen->span = 0;
	screen->grid_stale = true;
}

void view__memory_take_row(struct view_memory *screen)
{
	const struct report_cell *ipu = view_grid_cell(&screen->grid, "ipu");
	const struct report_cell *tile = view_grid_cell(&screen->grid, "tile");

	if (screen->view == VIEW_MEMORY_IPUS)
		view_take_ipu(screen);
	else if (ipu && tile)
		view__memory_set_cursor(screen,
					view__memory_index(screen, ipu->integer, tile->integer));
}

static enum view_answer view_in_table(struct view_memory *screen, struct view_context *context,
				      enum view_request request)
{
	struct view_grid *grid = view__memory_shown_grid(screen);
	enum view_answer answer;

	/* A burst of keys: the table that they are about has not been loaded yet. */
	if ((screen->grid_stale || grid->table.column_count == 0) && !screen->subject_stale) {
		view__memory_series(screen);
		if (view__memory_load_grid(screen, context, NULL) != ST_OK)
			return VIEW_LOAD; /* which says why */
	}
	answer = view_grid_request(grid, screen->areas.picture.height, request);
	if (answer != VIEW_UNHANDLED)
		view__memory_take_row(screen);
	return answer == VIEW_DRAW ? VIEW_LOAD : answer;
}

/* What is for tables goes to one, as a filter does. */
static enum view_answer view_to_table(struct view_memory *screen, struct view_context *context,
				      enum view_request request)
{
	screen->details.active = false;
	if (!view__memory_shown_grid(screen))
		screen->view = VIEW_MEMORY_TABLE;
	return view_in_table(screen, context, request);
}

/* ---- all of them ----------------------------------------------------------------------------- */

typedef enum view_answer (*view_memory_answer)(struct view_memory *screen,
					       struct view_context *context,
					       enum view_request request);

static const view_memory_answer view_answers[VIEW_REQUESTS] = {
	[VIEW_UP_REQUEST] = view__memory_move,
	[VIEW_DOWN_REQUEST] = view__memory_move,
	[VIEW_LEFT_REQUEST] = view__memory_move,
	[VIEW_RIGHT_REQUEST] = view__memory_move,
	[VIEW_PAGE_UP_REQUEST] = view__memory_move,
	[VIEW_PAGE_DOWN_REQUEST] = view__memory_move,
	[VIEW_PAGE_LEFT_REQUEST] = view__memory_move,
	[VIEW_PAGE_RIGHT_REQUEST] = view__memory_move,
	[VIEW_HOME_REQUEST] = view__memory_move,
	[VIEW_END_REQUEST] = view__memory_move,
	[VIEW_ENTER_REQUEST] = view_enter,
	[VIEW_BACK_REQUEST] = view_back,
	[VIEW_VIEW_REQUEST] = view_change_view,
	[VIEW_VIEW_BACK_REQUEST] = view_change_view,
	[VIEW_BREAKDOWN_REQUEST] = view_break_down,
	[VIEW_STATISTIC_REQUEST] = view_choose,
	[VIEW_STATISTIC_BACK_REQUEST] = view_choose,
	[VIEW_SELECT_REQUEST] = view_change_ipu,
	[VIEW_UNIT_REQUEST] = view_change_order,
	[VIEW_MARK_ROW_REQUEST] = view_mark,
	[VIEW_LONGEST_GAP_REQUEST] = view_fullest,
	[VIEW_EXPAND_REQUEST] = view_expand,
	[VIEW_COLLAPSE_REQUEST] = view_expand,
	[VIEW_EXPAND_ALL_REQUEST] = view_expand,
	[VIEW_COLLAPSE_ALL_REQUEST] = view_expand,
	[VIEW_ZOOM_IN_REQUEST] = view__memory_zoom,
	[VIEW_ZOOM_OUT_REQUEST] = view__memory_zoom,
	[VIEW_ZOOM_ALL_REQUEST] = view__memory_zoom,
	[VIEW_SORT_NEXT_REQUEST] = view_to_table,
	[VIEW_SORT_BACK_REQUEST] = view_to_table,
	[VIEW_REVERSE_REQUEST] = view_to_table,
	[VIEW_COLUMNS_REQUEST] = view_to_table,
};

enum view_answer view__memory_request(void *state, struct view_context *context,
				      enum view_request request)
{
	struct view_memory *screen = state;
	enum view_answer answer;

	if (!view_answers[request])
		return VIEW_UNHANDLED;
	if (screen->ipus == 0) {
		if (request == VIEW_BACK_REQUEST)
			return VIEW_UNHANDLED;
		view__memory_say(context, "no memory of tiles was recorded");
		return VIEW_DRAW;
	}
	if (view__memory_shown_grid(screen) && !screen->details.active) {
		answer = view_in_table(screen, context, request);
		if (answer != VIEW_UNHANDLED)
			return answer;
	}
	return view_answers[request](screen, context, request);
}
