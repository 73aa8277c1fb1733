/*
 * The timeline's requests: what a key does to the window, the cursor and the lane.
 *
 * Nothing is read here but by jumps (view_timeline_jump.c); the load that follows does that.
 *
 * Threading: one thread. Ownership: none.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id)
{
	struct view_clock *clock;

	tl->lane = lane;
	tl->lane_id = tl->lanes[lane].track->track_id;
	tl->depth = depth;
	clock = view__clock(tl);
	tl->cursor_ns = time;
	clock->window = view_window_show(clock->window, time, clock->extent);
	tl->pinned = span_id;
}

static void view_keep_inside(struct view_timeline *tl)
{
	const struct view_window extent = view__clock(tl)->extent;

	if (tl->cursor_ns < extent.from)
		tl->cursor_ns = extent.from;
	if (tl->cursor_ns >= extent.to)
		tl->cursor_ns = extent.to - 1;
}

static void view_pan(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t before = clock->window.from;
	int64_t shift;

	clock->window = view_window_pan(clock->window, numerator, denominator, clock->extent);
	shift = clock->window.from - before;
	/* At the end of the run the window stays and the cursor goes on. */
	if (shift == 0)
		shift = (int64_t)((double)(clock->window.to - clock->window.from) * numerator /
				  denominator / 2);
	tl->cursor_ns += shift;
	view_keep_inside(tl);
	tl->pinned = IPS_NULL;
}

static void view_step_column(struct view_timeline *tl, int by)
{
	struct view_clock *clock = view__clock(tl);
	int64_t step = (clock->window.to - clock->window.from) / (tl->width > 0 ? tl->width : 1);

	if (step < 1)
		step = 1;
	tl->cursor_ns += by * step;
	view_keep_inside(tl);
	clock->window = view_window_show(clock->window, tl->cursor_ns, clock->extent);
	tl->pinned = IPS_NULL;
}

/*
 * From lane to lane by way of the rows of each. On a change of clock the cursor keeps its column.
 */
static void view_step_lane(struct view_timeline *tl, int by)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_clock *from = view__clock(tl), *to;
	const int depth = tl->depth + by;
	int next = tl->lane;

	if (tl->way != VIEW_FLAT && tl->way != VIEW_BSP && depth >= lane->first_depth &&
	    depth < lane->first_depth + (tl->way == VIEW_FLAME ? lane->track->depth : lane->rows)) {
		tl->depth = depth;
		tl->pinned = IPS_NULL;
		return;
	}
	next += by;
	if (next < 0 || next >= tl->lane_count)
		return;
	tl->lane = next;
	lane = view__lane(tl);
	tl->depth = lane->work_depth;
	to = view__clock(tl);
	if (to != from)
		tl->cursor_ns =
			to->window.from + (int64_t)((double)(tl->cursor_ns - from->window.from) /
						    (double)(from->window.to - from->window.from) *
						    (double)(to->window.to - to->window.from));
	tl->pinned = IPS_NULL;
}

static void view_go_end(struct view_timeline *tl, bool last)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t length = clock->window.to - clock->window.from;

	clock->window =
		last ? (struct view_window){clock->extent.to - length, clock->extent.to}
		     : (struct view_window){clock->extent.from, clock->extent.from + length};
	clock->window = view_window_clamp(clock->window, clock->extent);
	tl->cursor_ns = last ? clock->extent.to - 1 : clock->extent.from;
	tl->pinned = IPS_NULL;
}

static void view_zoom_span(struct view_timeline *tl, struct view_context *context)
{
	struct view_clock *clock = view__clock(tl);
	struct view_window to;

	if (tl->selected == IPS_NULL && !tl->in_gap) {
		snprintf(context->message, sizeof(context->message), "no span under the cursor");
		return;
	}
	if (tl->in_gap) {
		to = tl->gap.at;
	} else {
		to.from = tl->span.start_ns;
		to.to = tl->span.dur_ns == IPS_NULL ? clock->extent.to : to.from + tl->span.dur_ns;
	}
	/* A little of what is around it. */
	to.from -= (to.to - to.from) / 8;
	to.to += (to.to - to.from) / 8;
	if (to.to - to.from < VIEW_WINDOW_LEAST)
		to.to = to.from + VIEW_WINDOW_LEAST;
	clock->window = view_window_clamp(to, clock->extent);
}

static void view_zoom(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);

	clock->window = view_window_zoom(clock->window, tl->cursor_ns, numerator, denominator,
					 clock->extent);
}

static void view_centre(struct view_timeline *tl)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t half = (clock->window.to - clock->window.from) / 2;

	clock->window = view_window_clamp(
		(struct view_window){tl->cursor_ns - half,
				     tl->cursor_ns - half +
					     (clock->window.to - clock->window.from)},
		clock->extent);
}

/* Count lengths from the cursor on; again: no longer. */
static void view_measure(struct view_timeline *tl, struct view_context *context)
{
	if (tl->measured_ns != IPS_NULL) {
		tl->measured_ns = IPS_NULL;
		snprintf(context->message, sizeof(context->message),
			 "lengths are no longer counted from x");
		return;
	}
	tl->measured_ns = tl->cursor_ns;
	tl->measured_clock = view__lead(tl);
	snprintf(context->message, sizeof(context->message),
		 "lengths are counted from x; x again ends that");
}

/* Jumps ask the database; @done tells whether the request was one. */
static bool view_jump(struct view_timeline *tl, struct view_context *context,
		      enum view_request request)
{
	switch (request) {
	case VIEW_NEXT_SPAN_REQUEST:
	case VIEW_PREVIOUS_SPAN_REQUEST:
		view__jump_span(tl, context, request == VIEW_NEXT_SPAN_REQUEST);
		return true;
	case VIEW_NEXT_GAP_REQUEST:
	case VIEW_PREVIOUS_GAP_REQUEST:
		view__jump_gap(tl, context, request == VIEW_NEXT_GAP_REQUEST);
		return true;
	case VIEW_LONGEST_GAP_REQUEST:
		view__jump_worst(tl, context);
		return true;
	case VIEW_LONGEST_CHILD_REQUEST:
		view__jump_child(tl, context);
		return true;
	case VIEW_PARENT_REQUEST:
		view__jump_parent(tl, context);
		return true;
	default:
		return false;
	}
}

/* From lane to lane, by one or as many as there is room for. */
static bool view_move_lane(struct view_timeline *tl, enum view_request request)
{
	const bool page = request == VIEW_PAGE_UP_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
	const bool up = request == VIEW_PAGE_UP_REQUEST || request == VIEW_UP_REQUEST;

	for (int i = page ? tl->areas.lanes.height : 1; i > 0; i--)
		view_step_lane(tl, up ? -1 : 1);
	return true;
}

static bool view_make_move(struct view_timeline *tl, struct view_context *context,
			   enum view_request request)
{
	switch (request) {
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		return view_move_lane(tl, request);
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		view_pan(tl, request == VIEW_LEFT_REQUEST ? -1 : 1, 8);
		return true;
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		view_pan(tl, request == VIEW_PAGE_LEFT_REQUEST ? -1 : 1, 1);
		return true;
	case VIEW_CURSOR_LEFT_REQUEST:
	case VIEW_CURSOR_RIGHT_REQUEST:
		view_step_column(tl, request == VIEW_CURSOR_LEFT_REQUEST ? -1 : 1);
		return true;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		view_go_end(tl, request == VIEW_END_REQUEST);
		return true;
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
		view_zoom(tl, request == VIEW_ZOOM_IN_REQUEST ? 1 : 2,
			  request == VIEW_ZOOM_IN_REQUEST ? 2 : 1);
		return true;
	case VIEW_ZOOM_ALL_REQUEST:
		view__clock(tl)->window = view__clock(tl)->extent;
		return true;
	case VIEW_ZOOM_SPAN_REQUEST:
		view_zoom_span(tl, context);
		return true;
	case VIEW_CENTRE_REQUEST:
		view_centre(tl);
		return true;
	case VIEW_MARK_ROW_REQUEST:
		view_measure(tl, context);
		return true;
	case VIEW_ENTER_REQUEST:
		tl->details = !tl->details;
		return true;
	default:
		return false;
	}
}

/* A step that leads nowhere says why. */
static bool view_move(struct view_timeline *tl, struct view_context *context,
		      enum view_request request)
{
	static const struct {
		enum view_request request;
		const char *limit;
	} steps[] = {{VIEW_LEFT_REQUEST, "this is the beginning of the run"},
		     {VIEW_PAGE_LEFT_REQUEST, "this is the beginning of the run"},
		     {VIEW_CURSOR_LEFT_REQUEST, "this is the beginning of the run"},
		     {VIEW_RIGHT_REQUEST, "this is the end of the run"},
		     {VIEW_PAGE_RIGHT_REQUEST, "this is the end of the run"},
		     {VIEW_CURSOR_RIGHT_REQUEST, "this is the end of the run"},
		     {VIEW_ZOOM_OUT_REQUEST, "this is the whole run"},
		     {VIEW_ZOOM_IN_REQUEST, "this is as close as it goes"}};
	const struct view_window before = view__clock(tl)->window,
				 *after = &view__clock(tl)->window;
	const int64_t cursor = tl->cursor_ns;

	if (!view_make_move(tl, context, request))
		return false;
	if (tl->cursor_ns != cursor || after->from != before.from || after->to != before.to)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].request == request)
			snprintf(context->message, sizeof(context->message), "%s", steps[i].limit);
	return true;
}

/* The timeline's own requests; the rest are the session's. */
static bool view_is_movement(enum view_request request)
{
	const char *group = view_request_info(request)->group;

	return strcmp(group, "Moving") == 0 || strcmp(group, "Timeline") == 0 ||
	       strcmp(group, "Zooming") == 0 || strcmp(group, "Looking closer") == 0;
}

static bool view_end_filter(struct view_timeline *tl, enum view_request request)
{
	if (request != VIEW_BACK_REQUEST || !tl->filter.text[0])
		return false;
	view__timeline_filter(tl, "");
	return true;
}

enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_timeline *tl = state;

	if (!(view_request_info(request)->screens & VIEW_ON_TIMELINE))
		return VIEW_UNHANDLED;
	if (tl->lane_count == 0) {
		if (!view_is_movement(request))
			return VIEW_UNHANDLED;
		snprintf(context->message, sizeof(context->message), "no spans recorded");
		return VIEW_DRAW;
	}
	if (view_move(tl, context, request) || view_end_filter(tl, request))
		return VIEW_LOAD;
	if (view__way_request(tl, context, request) || view__hide_request(tl, context, request) ||
	    view__counters_request(tl, context, request))
		return VIEW_LOAD;
	if (!context->source->db && view_is_movement(request)) {
		snprintf(context->message, sizeof(context->message),
			 "the run is being closed: a moment");
		return VIEW_DRAW;
	}
	return view_jump(tl, context, request) ? VIEW_LOAD : VIEW_UNHANDLED;
}
