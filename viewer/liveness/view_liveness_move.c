/*
 * Moving over program steps: cursor, window, selected steps, IPUs.
 *
 * Threading: the session's worker. Ownership: none.
 */
#include <stdio.h>
#include <string.h>

#include "common/minmax.h"
#include "viewer/liveness/view_liveness_internal.h"

/* ---- where everything is --------------------------------------------------------------------- */

static struct view_window view_live_extent(const struct view_liveness *live)
{
	struct view_window extent = {0, 1};
	bool found = false;

	for (int r = 0; r < 2; r++)
		for (size_t i = 0; i < live->report[r].curve_count; i++) {
			const struct view_live_curve *curve = &live->report[r].curves[i];
			const int64_t from = curve->steps[0].step,
				      to = curve->steps[curve->count - 1].step + 1;

			if (!view__live_shown(live, curve->ipu))
				continue;
			extent.from = found && extent.from < from ? extent.from : from;
			extent.to = found && extent.to > to ? extent.to : to;
			found = true;
		}
	return extent;
}

void view__live_clamp(struct view_liveness *live)
{
	const struct view_window extent = view_live_extent(live);
	const bool whole =
		live->window.from == live->extent.from && live->window.to == live->extent.to;

	live->window = whole ? extent : view_window_clamp(live->window, extent);
	live->extent = extent;
	view__live_to(live, live->cursor);
}

void view__live_to(struct view_liveness *live, int64_t step)
{
	if (step >= live->extent.to)
		step = live->extent.to - 1;
	live->cursor = max(live->extent.from, step);
	if (live->cursor < live->window.from || live->cursor >= live->window.to)
		live->window = view_window_show(live->window, live->cursor, live->extent);
}

static int64_t view_live_bytes(const struct view_liveness *live, const struct view_live_step *step)
{
	return step->rest + (live->always_live ? step->always : 0);
}

bool view__live_peak(const struct view_liveness *live, int64_t *step)
{
	const struct view_live_step *best = NULL;

	for (int r = 0; r < 2 && !best; r++)
		for (size_t i = 0; i < live->report[r].curve_count; i++) {
			const struct view_live_curve *curve = &live->report[r].curves[i];
			const struct view_live_step *peak =
				&curve->steps[curve->peak[live->always_live]];

			if (view__live_shown(live, curve->ipu) &&
			    (!best || view_live_bytes(live, peak) > view_live_bytes(live, best)))
				best = peak;
		}
	if (best)
		*step = best->step;
	return best != NULL;
}

/* The step of @from .. @to - 1 with the most bytes, of what is shown. */
static int64_t view_live_highest(const struct view_liveness *live, int64_t from, int64_t to)
{
	int64_t best = from, most = -1;

	for (int64_t step = from; step < to; step++)
		for (size_t i = 0; i < live->report[0].curve_count; i++) {
			const struct view_live_curve *curve = &live->report[0].curves[i];
			const struct view_live_step *at = view__live_shown(live, curve->ipu)
								  ? view__live_at(curve, step)
								  : NULL;

			if (at && view_live_bytes(live, at) > most) {
				most = view_live_bytes(live, at);
				best = step;
			}
		}
	return best;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A step, or where a column is several, to the highest of the next column. */
static void view_live_step(struct view_liveness *live, int by)
{
	const int point = view__live_point_of(live, live->cursor) + by;
	int64_t from, to;

	if (live->points == 0 || live->window.to - live->window.from <= live->points) {
		view__live_to(live, live->cursor + by);
		return;
	}
	if (point < 0 || point >= live->points) {
		view__live_to(live, by < 0 ? live->window.from - 1 : live->window.to);
		return;
	}
	view__live_point(live, point, &from, &to);
	view__live_to(live, view_live_highest(live, from, to));
}

static void view_live_page(struct view_liveness *live, int by)
{
	const int64_t before = live->window.from;

	live->window = view_window_pan(live->window, by, 1, live->extent);
	if (live->window.from == before)
		view__live_to(live, by < 0 ? live->extent.from : live->extent.to - 1);
	else
		view__live_to(live, live->cursor + live->window.from - before);
}

static void view_live_mark(struct view_liveness *live, struct view_context *context)
{
	live->listed = false;
	for (int i = 0; i < live->mark_count; i++)
		if (live->marks[i] == live->cursor) {
			memmove(live->marks + i, live->marks + i + 1,
				(size_t)(live->mark_count - i - 1) * sizeof(live->marks[0]));
			live->mark_count--;
			return;
		}
	if (live->mark_count == VIEW_LIVE_MARKS) {
		snprintf(context->message, sizeof(context->message),
			 "%d steps are selected: x on one of them lets go of it", VIEW_LIVE_MARKS);
		return;
	}
	live->marks[live->mark_count++] = live->cursor;
	snprintf(context->message, sizeof(context->message),
		 "program step %lld has a column beside the cursor's", (long long)live->cursor);
}

static void view_live_next_ipu(struct view_liveness *live, struct view_context *context)
{
	live->ipu = live->ipu + 1 < (int)live->ipu_count ? live->ipu + 1 : VIEW_LIVE_ALL;
	if (live->ipu_count == 1)
		live->ipu = 0;
	if (live->ipu == VIEW_LIVE_ALL)
		snprintf(context->message, sizeof(context->message), "all %zu IPUs",
			 live->ipu_count);
	else
		snprintf(context->message, sizeof(context->message), "IPU %lld",
			 (long long)live->ipus[live->ipu]);
	live->listed = false;
	view__live_clamp(live);
}

static void view_live_group(struct view_liveness *live, struct view_context *context)
{
	static const char *const what[VIEW_LIVE_GROUPS] = {"variables of both kinds",
							   "variables that are not always live",
							   "variables that are always live"};

	live->group = (live->group + 1) % VIEW_LIVE_GROUPS;
	live->listed = false;
	snprintf(context->message, sizeof(context->message), "%s", what[live->group]);
}

static void view_live_show(struct view_liveness *live, int by)
{
	live->show =
		(enum view_live_show)(((int)live->show + by + VIEW_LIVE_SHOWS) % VIEW_LIVE_SHOWS);
	live->listed = false;
}

static void view_live_zoom(struct view_liveness *live, struct view_context *context, bool closer)
{
	const struct view_window before = live->window;

	live->window = view_window_zoom(before, live->cursor, closer ? 1 : 2, closer ? 2 : 1,
					live->extent);
	if (live->window.from == before.from && live->window.to == before.to)
		snprintf(context->message, sizeof(context->message), "%s",
			 closer ? "this is as close as it gets" : "all steps are shown");
}

static enum view_answer view_live_picture(struct view_liveness *live, struct view_context *context,
					  enum view_request request)
{
	int64_t step;

	switch (request) {
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
		view_live_zoom(live, context, request == VIEW_ZOOM_IN_REQUEST);
		return VIEW_LOAD;
	case VIEW_ZOOM_ALL_REQUEST:
		live->window = live->extent;
		return VIEW_LOAD;
	case VIEW_ALWAYS_LIVE_REQUEST:
		live->always_live = !live->always_live;
		snprintf(context->message, sizeof(context->message), "%s what is always live",
			 live->always_live ? "with" : "without");
		return VIEW_LOAD;
	case VIEW_LONGEST_GAP_REQUEST:
		if (view__live_peak(live, &step))
			view__live_to(live, step);
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

static enum view_answer view_live_move(struct view_liveness *live, enum view_request request)
{
	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		view_live_step(live, request == VIEW_LEFT_REQUEST ? -1 : 1);
		return VIEW_LOAD;
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		view_live_page(live, request == VIEW_PAGE_LEFT_REQUEST ? -1 : 1);
		return VIEW_LOAD;
	case VIEW_HOME_REQUEST:
		view__live_to(live, live->extent.from);
		return VIEW_LOAD;
	case VIEW_END_REQUEST:
		view__live_to(live, live->extent.to - 1);
		return VIEW_LOAD;
	default:
		return VIEW_UNHANDLED;
	}
}

/* What the choices of what is shown do. */
static enum view_answer view_live_choose(struct view_liveness *live, struct view_context *context,
					 enum view_request request)
{
	switch (request) {
	case VIEW_MARK_ROW_REQUEST:
		view_live_mark(live, context);
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		view_live_next_ipu(live, context);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		view_live_group(live, context);
		return VIEW_LOAD;
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		view_live_show(live, request == VIEW_VIEW_REQUEST ? 1 : -1);
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		return VIEW_JOIN;
	default:
		return VIEW_UNHANDLED;
	}
}

enum view_answer view__live_request(void *state, struct view_context *context,
				    enum view_request request)
{
	struct view_liveness *live = state;
	enum view_answer answer = view_live_choose(live, context, request);

	if (answer == VIEW_UNHANDLED)
		answer = view_live_move(live, request);
	if (answer == VIEW_UNHANDLED)
		answer = view_live_picture(live, context, request);
	if (answer == VIEW_UNHANDLED)
		answer = view_grid_request(&live->grid, live->areas.table.height, request);
	return answer;
}
