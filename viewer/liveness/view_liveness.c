/*
 * The Liveness screen: bytes in use over the program's steps, and the variables live at one step.
 *
 * Threading: the session's. Ownership: view_liveness_internal.h.
 */
#include "viewer/liveness/view_liveness_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_layout.h"

/* ---- areas ----------------------------------------------------------------------------------- */

#define BESIDE_FROM  150 /* least columns of the body with the table beside the chart */
#define CHART_LEAST  3
#define LEGEND_FROM  6 /* least rows of the chart's area with a legend, ... */
#define LIFE_FROM    5
#define STRIP_FROM   8
#define HEADING_FROM 8 /* least rows of the body with a heading */

/* Split the chart's area, from top to bottom. */
static void liveness_chart_area(struct view_liveness_layout *out, struct view_rect part, bool life)
{
	const int height = part.height;

	if (height >= LEGEND_FROM)
		out->legend = view_cut_top(&part, 1);
	if (height >= STRIP_FROM)
		out->overview = view_cut_top(&part, 1);
	out->chart = part;
	if (life && height >= LIFE_FROM) {
		out->chart.height--;
		out->life = (struct view_rect){part.x, part.y + out->chart.height, part.width, 1};
	}
}

struct view_liveness_layout view_liveness_areas(struct view_rect body, bool table)
{
	struct view_liveness_layout out = {0};
	struct view_rect rest = body;
	int rows;

	if (!table) {
		if (body.height >= HEADING_FROM)
			out.heading = view_cut_top(&rest, 1);
		liveness_chart_area(&out, rest, false);
		return out;
	}
	if (body.width >= BESIDE_FROM) {
		const struct view_sides sides = view_split_sides(body, body.width / 2, 60);

		out.table = sides.right;
		if (body.height >= HEADING_FROM)
			out.heading = view_cut_top(&out.table, 1);
		liveness_chart_area(&out, sides.left, true);
		return out;
	}
	rows = body.height >= HEADING_FROM ? body.height / 2 : body.height - CHART_LEAST - 1;
	if (rows < CHART_LEAST) {
		liveness_chart_area(&out, rest, false);
		return out;
	}
	liveness_chart_area(&out, view_cut_top(&rest, rows), true);
	if (body.height >= HEADING_FROM)
		out.heading = view_cut_top(&rest, 1);
	out.table = rest;
	return out;
}

/* ---- cursor and window ----------------------------------------------------------------------- */

static void liveness_move_to(struct view_liveness *live, int64_t step)
{
	if (step >= live->extent.to)
		step = live->extent.to - 1;
	live->cursor = max(live->extent.from, step);
	if (live->cursor < live->window.from || live->cursor >= live->window.to)
		live->window = view_window_show(live->window, live->cursor, live->extent);
}

/* Update the extent to what is shown, and clamp cursor and window to it. */
static void liveness_clamp(struct view_liveness *live)
{
	const bool whole = view__live_shows_all(live);
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
	live->window = whole ? extent : view_window_clamp(live->window, extent);
	live->extent = extent;
	liveness_move_to(live, live->cursor);
}

/* Find the step with the most shown bytes. Return false if there is none. */
static bool liveness_find_peak(const struct view_liveness *live, int64_t *step)
{
	const struct view_live_step *best = NULL;

	for (int r = 0; r < 2 && !best; r++)
		for (size_t i = 0; i < live->report[r].curve_count; i++) {
			const int64_t ipu = live->report[r].curves[i].ipu;
			const struct view_live_step *peak =
				view__live_peak(live, r, ipu, live->always_live);

			if (view__live_shown(live, ipu) &&
			    (!best || view__live_bytes(live, peak) > view__live_bytes(live, best)))
				best = peak;
		}
	if (best)
		*step = best->step;
	return best != NULL;
}

/* The step of @from .. @to - 1 with the most shown bytes. */
static int64_t liveness_highest_step(const struct view_liveness *live, int64_t from, int64_t to)
{
	int64_t best = from, most = -1;

	for (int64_t step = from; step < to; step++)
		for (size_t i = 0; i < live->report[0].curve_count; i++) {
			const struct view_live_curve *curve = &live->report[0].curves[i];
			const struct view_live_step *at = view__live_shown(live, curve->ipu)
								  ? view__live_at(curve, step)
								  : NULL;

			if (at && view__live_bytes(live, at) > most) {
				most = view__live_bytes(live, at);
				best = step;
			}
		}
	return best;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Move by one step; if a column covers several steps, to the highest step of the next column. */
static void liveness_step(struct view_liveness *live, int by)
{
	const int point = view__live_point_of(live, live->cursor) + by;
	int64_t from, to;

	if (live->points == 0 || live->window.to - live->window.from <= live->points) {
		liveness_move_to(live, live->cursor + by);
		return;
	}
	if (point < 0 || point >= live->points) {
		liveness_move_to(live, by < 0 ? live->window.from - 1 : live->window.to);
		return;
	}
	view__live_point(live, point, &from, &to);
	liveness_move_to(live, liveness_highest_step(live, from, to));
}

static void liveness_toggle_mark(struct view_liveness *live, struct view_context *context)
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
		view_messagef(context,
			      "%d program steps are selected: x on one of them lets go of it",
			      VIEW_LIVE_MARKS);
		return;
	}
	live->marks[live->mark_count++] = live->cursor;
	view_messagef(context, "program step %lld has a column beside the cursor's",
		      (long long)live->cursor);
}

static void liveness_zoom(struct view_liveness *live, struct view_context *context, bool closer)
{
	const struct view_window before = live->window;

	live->window = view_window_zoom(before, live->cursor, closer ? 1 : 2, closer ? 2 : 1,
					live->extent);
	if (live->window.from == before.from && live->window.to == before.to)
		view_message(context,
			     closer ? "this is as close as it gets" : "all program steps are shown",
			     NULL);
}

static void liveness_page(struct view_liveness *live, int by)
{
	const int64_t before = live->window.from;

	live->window = view_window_pan(live->window, by, 1, live->extent);
	if (live->window.from == before)
		liveness_move_to(live, by < 0 ? live->extent.from : live->extent.to - 1);
	else
		liveness_move_to(live, live->cursor + live->window.from - before);
}

static void liveness_next_ipu(struct view_liveness *live, struct view_context *context)
{
	live->ipu = live->ipu + 1 < (int)live->ipu_count ? live->ipu + 1 : VIEW_LIVE_ALL;
	if (live->ipu_count == 1)
		live->ipu = 0;
	if (live->ipu == VIEW_LIVE_ALL)
		view_messagef(context, "all %zu IPUs", live->ipu_count);
	else
		view_messagef(context, "IPU %lld", (long long)live->ipus[live->ipu]);
	live->listed = false;
	liveness_clamp(live);
}

static enum view_answer liveness_request(void *state, struct view_context *context,
					 enum view_request request)
{
	static const char *const groups[VIEW_LIVE_GROUPS] = {"variables of both kinds",
							     "variables that are not always live",
							     "variables that are always live"};
	struct view_liveness *live = state;
	int64_t step;

	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		liveness_step(live, request == VIEW_LEFT_REQUEST ? -1 : 1);
		return VIEW_LOAD;
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		liveness_page(live, request == VIEW_PAGE_LEFT_REQUEST ? -1 : 1);
		return VIEW_LOAD;
	case VIEW_HOME_REQUEST:
		liveness_move_to(live, live->extent.from);
		return VIEW_LOAD;
	case VIEW_END_REQUEST:
		liveness_move_to(live, live->extent.to - 1);
		return VIEW_LOAD;
	case VIEW_LONGEST_GAP_REQUEST:
		if (liveness_find_peak(live, &step))
			liveness_move_to(live, step);
		return VIEW_LOAD;
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
		liveness_zoom(live, context, request == VIEW_ZOOM_IN_REQUEST);
		return VIEW_LOAD;
	case VIEW_ZOOM_ALL_REQUEST:
		live->window = live->extent;
		return VIEW_LOAD;
	case VIEW_ALWAYS_LIVE_REQUEST:
		live->always_live = !live->always_live;
		view_messagef(context, "%s what is always live",
			      live->always_live ? "with" : "without");
		return VIEW_LOAD;
	case VIEW_MARK_ROW_REQUEST:
		liveness_toggle_mark(live, context);
		return VIEW_LOAD;
	case VIEW_SELECT_REQUEST:
		liveness_next_ipu(live, context);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		live->group = (live->group + 1) % VIEW_LIVE_GROUPS;
		live->listed = false;
		view_message(context, groups[live->group], NULL);
		return VIEW_LOAD;
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		live->show = (enum view_live_show)view_next_choice((int)live->show, VIEW_LIVE_SHOWS,
								   request);
		live->listed = false;
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		return VIEW_JOIN;
	default:
		return view_grid_request(&live->grid, request);
	}
}

/* ---- other screens --------------------------------------------------------------------------- */

static bool liveness_current_place(const void *state, struct view_place *out)
{
	const struct view_liveness *live = state;
	const struct view_live_step *at = NULL;

	view_place_clear(out);
	if (live->ipu_count == 0)
		return false;
	out->program_step = live->cursor;
	if (live->show != VIEW_LIVE_CHART)
		view_grid_place(&live->grid, "ipu,variable_id,layer", "", out);
	if (live->show == VIEW_LIVE_LAYERS && out->layer[0] == '(') /* belongs to no layer */
		out->layer[0] = '\0';
	if (out->ipu == IPS_NULL && live->ipu != VIEW_LIVE_ALL)
		out->ipu = live->ipus[live->ipu];
	/* The program of the step on that IPU, or on the shown one. */
	if (out->ipu != IPS_NULL)
		at = view__live_at(view__live_curve(live, 0, out->ipu), live->cursor);
	out->program_id = at ? at->program_id : live->facts[0].program_id;
	return true;
}

static bool liveness_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->variable_id != IPS_NULL)
		snprintf(out, size, "when the variable %lld is live",
			 (long long)place->variable_id);
	else if (place->program_step != IPS_NULL)
		snprintf(out, size, "what is live at program step %lld",
			 (long long)place->program_step);
	else if (place->program_id != IPS_NULL)
		snprintf(out, size, "what is live in program %lld", (long long)place->program_id);
	else if (place->operation[0])
		snprintf(out, size, "what is live in %s", place->operation);
	else
		return false;
	return true;
}

/* ---- going to a place ------------------------------------------------------------------------ */

static void liveness_show_ipu(struct view_liveness *live, int64_t ipu)
{
	for (size_t i = 0; i < live->ipu_count && ipu != IPS_NULL; i++)
		if (live->ipus[i] == ipu && live->ipu != VIEW_LIVE_ALL)
			live->ipu = (int)i;
}

/* Find the first row of a statement about a place: IPU, first and last step (IPS_NULL: always
 * live). false: there is none. */
static bool liveness_find_steps(struct view_liveness *live, const char *sql, const char *name,
				int64_t id, const char *text, int64_t out[3])
{
	struct prof_query *query = view_query_open(live->context->source->db, sql, &live->err);
	bool found;

	if (text)
		prof_query_text(query, name, text);
	else
		prof_query_int(query, name, id);
	found = view_query_next(query, &live->err);
	for (int i = 0; i < 3 && found; i++)
		out[i] = prof_column_int(query, i);
	prof_query_close(query);
	return found;
}

static void liveness_go_variable(struct view_liveness *live, const struct view_place *place)
{
	static const char sql[] = "SELECT ipu, first_program_step, last_program_step "
				  "FROM variables WHERE variable_id = :variable_id";
	int64_t step = place->program_step != IPS_NULL ? place->program_step : live->cursor;
	int64_t at[3];

	if (!liveness_find_steps(live, sql, ":variable_id", place->variable_id, NULL, at)) {
		if (!err_stuck(&live->err))
			err_set(&live->err, ST_NOTFOUND, "there is no variable %lld",
				(long long)place->variable_id);
		return;
	}
	liveness_show_ipu(live, at[0]);
	if (at[1] != IPS_NULL && (step < at[1] || step > at[2]))
		step = at[1];
	live->show = VIEW_LIVE_VARIABLES;
	live->group = VIEW_LIVE_BOTH;
	live->wanted = place->variable_id;
	liveness_clamp(live);
	liveness_move_to(live, step);
}

/* Go to the step of the program, or of the operation, with the most bytes. A program without steps
 * may belong to an operation that has some. */
static void liveness_go_program(struct view_liveness *live, const struct view_place *place)
{
	static const char by_program[] =
		"SELECT ipu, program_step, program_step FROM liveness "
		"WHERE program_id = :program_id ORDER BY not_always_live_bytes DESC LIMIT 1";
	static const char by_operation[] =
		"SELECT ipu, program_step, program_step FROM liveness WHERE program_id IN "
		"(SELECT program_id FROM programs WHERE operation = :operation) "
		"ORDER BY not_always_live_bytes DESC LIMIT 1";
	const bool program = place->program_id != IPS_NULL;
	bool found = false;
	int64_t at[3];

	if (program)
		found = liveness_find_steps(live, by_program, ":program_id", place->program_id,
					    NULL, at);
	if (!found && !err_stuck(&live->err) && (!program || place->operation[0]))
		found = liveness_find_steps(live, by_operation, ":operation", 0, place->operation,
					    at);
	if (!found && !err_stuck(&live->err))
		err_set(&live->err, ST_NOTFOUND, "no program step is of that program");
	if (!found)
		return;
	liveness_show_ipu(live, at[0]);
	liveness_clamp(live);
	liveness_move_to(live, at[1]);
}

static enum status liveness_go(void *state, struct view_context *context,
			       const struct view_place *place, struct err *err)
{
	struct view_liveness *live = state;

	if (live->ipu_count == 0 || !context->source->db)
		return err_set(err, ST_NOTFOUND, "no liveness was recorded");
	view__live_begin(live, context);
	live->listed = false;
	if (place->variable_id != IPS_NULL) {
		liveness_go_variable(live, place);
	} else if (place->program_step == IPS_NULL) {
		liveness_go_program(live, place);
	} else {
		liveness_show_ipu(live, place->ipu);
		liveness_clamp(live);
		if (place->program_step < live->extent.from ||
		    place->program_step >= live->extent.to)
			return err_set(err, ST_NOTFOUND, "there is no program step %lld",
				       (long long)place->program_step);
		liveness_move_to(live, place->program_step);
	}
	return view__live_end(live, err);
}

/* ---- the screen ------------------------------------------------------------------------------ */

#define CHART_ROWS 20 /* rows of the whole chart's area in a text file */

/* Initial position: the IPU with the highest peak, at that step. */
static void liveness_set_initial_position(struct view_liveness *live)
{
	int64_t best = -1;

	if (live->begun || live->ipu_count == 0)
		return;
	live->begun = true;
	for (size_t i = 0; i < live->ipu_count; i++) {
		const struct view_live_step *peak = view__live_peak(live, 0, live->ipus[i], true);

		if (peak && view__live_all(peak) > best) {
			best = view__live_all(peak);
			live->ipu = (int)i;
		}
	}
	liveness_clamp(live);
	live->window = live->extent;
	liveness_find_peak(live, &live->cursor);
}

static enum status liveness_load(void *state, struct view_context *context, bool news,
				 struct err *err)
{
	struct view_liveness *live = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};

	view__live_begin(live, context);
	if (news) {
		live->listed = live->listed && live->grid.differ == context->differ;
		view__live_read(live);
	}
	if (err_stuck(&live->err))
		return view__live_end(live, err);
	liveness_set_initial_position(live);
	liveness_clamp(live);
	live->listed = live->listed && live->cursor == live->listed_at;
	live->areas = view_liveness_areas(body, live->show != VIEW_LIVE_CHART);
	view__live_picture(live);
	view__live_list(live);
	return view__live_end(live, err);
}

static enum view_answer liveness_click(void *state, struct view_context *context, int x, int y)
{
	struct view_liveness *live = state;
	const struct view_rect chart = live->areas.chart;
	const int plot = chart.x + chart.width - live->plot;
	int64_t from, to;

	(void)context;
	if (live->ipu_count == 0 || live->points == 0 || x < plot || x >= plot + live->plot ||
	    y < chart.y || y >= chart.y + chart.height)
		return VIEW_UNHANDLED;
	view__live_point(live, (int)((int64_t)(x - plot) * live->points / live->plot), &from, &to);
	liveness_move_to(live, from);
	return VIEW_LOAD;
}

/* @brief: only the step and the rows. */
static void liveness_status_text(const struct view_liveness *live, bool brief, const char *grid,
				 char *out, size_t size)
{
	static const char *const groups[VIEW_LIVE_GROUPS] = {"", ", not always live",
							     ", always live"};
	char bytes[FMT_SIZE] = "", of[64] = "";

	if (live->facts[0].known && !brief)
		fmt_bytes(bytes, (uint64_t)(live->facts[0].always + live->facts[0].rest));
	if (!brief)
		snprintf(of, sizeof(of), " of %lld%s", (long long)live->extent.to - 1,
			 live->report[0].cut || live->report[1].cut ? " and more" : "");
	snprintf(out, size, "program step %lld%s%s%s%s%s%s%s", (long long)live->cursor, of,
		 bytes[0] ? ", " : "", bytes, grid[0] ? "; " : "", grid,
		 grid[0] ? groups[live->group] : "",
		 live->always_live || brief ? "" : "; without always live");
}

static void liveness_status(const void *state, const struct view_context *context, char *out,
			    size_t size)
{
	const struct view_liveness *live = state;
	const int width = context->body.width - 1;
	char grid[VIEW_MESSAGE_SIZE] = "";

	if (live->ipu_count == 0) {
		snprintf(out, size, "no liveness recorded");
		return;
	}
	if (live->show != VIEW_LIVE_CHART)
		view_grid_status(&live->grid, grid, sizeof(grid));
	liveness_status_text(live, false, grid, out, size);
	if (utf8_columns(out) > width)
		liveness_status_text(live, true, grid, out, size);
	/* If the filter is invalid, the status is only its error. */
	if (live->grid.trouble[0] && grid[0])
		snprintf(out, size, "%s", grid);
	else if (grid[0] && live->areas.heading.height > 0 && utf8_columns(out) > width)
		snprintf(out, size, "%s", grid);
}

static int liveness_height(const void *state, const struct view_context *context)
{
	const struct view_liveness *live = state;
	const int rows = (int)live->grid.count + 2;

	(void)context;
	if (live->ipu_count == 0)
		return 3;
	if (live->show == VIEW_LIVE_CHART || live->areas.table.y == 0)
		return max(CHART_ROWS, rows);
	/* The table gets half of the rows. */
	return 2 * max(rows, CHART_ROWS);
}

static void liveness_init(void *state)
{
	struct view_liveness *live = state;

	live->always_live = true;
	live->wanted = IPS_NULL;
	live->window = live->extent = (struct view_window){0, 1};
}

static void liveness_fini(void *state)
{
	struct view_liveness *live = state;

	for (int r = 0; r < 2; r++)
		view__live_report_fini(&live->report[r]);
	view_grid_fini(&live->grid);
	arena_fini(&live->arena);
	str_free(&live->sql);
	mem_free(live->ipus);
}

static struct view_grid *liveness_grid(void *state)
{
	return &((struct view_liveness *)state)->grid;
}

static const char *liveness_word(const void *state, enum view_request request)
{
	const struct view_liveness *live = state;

	if (live->ipu_count == 0)
		return "";
	switch (request) {
	case VIEW_SELECT_REQUEST:
		return live->ipu_count > 1 ? NULL : "";
	case VIEW_BREAKDOWN_REQUEST:
		return live->show == VIEW_LIVE_CHART ? "" : "part";
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_REVERSE_REQUEST:
		return live->show == VIEW_LIVE_CHART ? "" : NULL;
	case VIEW_FILTER_REQUEST:
		return "filter";
	case VIEW_LONGEST_GAP_REQUEST:
		return "peak";
	case VIEW_ZOOM_IN_REQUEST:
		return live->window.to - live->window.from > VIEW_WINDOW_LEAST ? NULL : "";
	case VIEW_ZOOM_ALL_REQUEST:
		return view__live_shows_all(live) ? "" : NULL;
	default:
		return NULL;
	}
}

const struct view_screen_ops view_liveness_ops = {
	.name = "liveness",
	.title = "Liveness",
	.brief = "Liv",
	.key = '4',
	.where = VIEW_ON_LIVENESS,
	.least_ns = 2000 * UINT64_C(1000000),
	.size = sizeof(struct view_liveness),
	.init = liveness_init,
	.fini = liveness_fini,
	.grid = liveness_grid,
	.load = liveness_load,
	.draw = view__live_draw,
	.request = liveness_request,
	.word = liveness_word,
	.status = liveness_status,
	.height = liveness_height,
	.table = view__live_table,
	.place = liveness_current_place,
	.offers = liveness_offers,
	.go = liveness_go,
	.query = view__live_query,
	.click = liveness_click,
};
