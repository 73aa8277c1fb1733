/*
 * A statistic of one tensor over the run: its rows in both reports, and a cursor in them.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"

static int64_t row_at(const struct report_tensor_row *row, enum view_tensor_axis by)
{
	return by == VIEW_BY_STEP ? row->step : row->weight_update;
}

/* ---- the rows of the replica that is shown, or of all, a line each --------------------------- */

static void curve_filter(struct view_tensors *screen, struct view_tensor_curve *curve)
{
	int kept = 0;

	for (int i = 0; i < curve->rows.count; i++)
		if (view__replica_shows(screen, curve->rows.row[i].replica))
			curve->rows.row[kept++] = curve->rows.row[i];
	curve->rows.count = kept;
}

/* A line for each replica that has rows; they are filled when the axis is known. */
static enum status curve_lines(struct view_tensors *screen, struct view_tensor_curve *curve,
			       struct err *err)
{
	const size_t replicas = (size_t)screen->replicas + 1;
	int *counts = arena_alloc(&screen->curve_arena, replicas, sizeof(*counts));
	int first = 0;

	curve->line_count = 0;
	curve->lines = arena_alloc(&screen->curve_arena, replicas, sizeof(*curve->lines));
	if (!counts || !curve->lines)
		return err_nomem(err);
	for (int i = 0; i < curve->rows.count; i++)
		counts[view__replica_number(curve->rows.row[i].replica)]++;
	for (size_t r = 0; r < replicas; r++) {
		if (counts[r] == 0)
			continue;
		curve->lines[curve->line_count++] =
			(struct view_tensor_line){(int64_t)r, first, counts[r]};
		first += counts[r];
	}
	return ST_OK;
}

/* ---- the axis -------------------------------------------------------------------------------- */

/* Are all of @replica's rows known by it, and in its order? */
static bool rises(const struct report_tensor_rows *rows, int64_t replica, enum view_tensor_axis by)
{
	int64_t last = IPS_NULL;

	for (int i = 0; i < rows->count; i++) {
		const int64_t at = row_at(&rows->row[i], by);

		if (view__replica_number(rows->row[i].replica) != replica)
			continue;
		if (at == IPS_NULL || at < last)
			return false;
		last = at;
	}
	return true;
}

static bool all_rise(const struct view_tensors *screen, enum view_tensor_axis by)
{
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		const struct view_tensor_curve *curve = &screen->curve[side];

		for (int i = 0; i < curve->line_count; i++)
			if (!rises(&curve->rows, curve->lines[i].replica, by))
				return false;
	}
	return true;
}

static enum view_tensor_axis choose_axis(const struct view_tensors *screen)
{
	for (int by = VIEW_BY_STEP; by < VIEW_BY_ROW; by++)
		if (all_rise(screen, (enum view_tensor_axis)by))
			return (enum view_tensor_axis)by;
	return VIEW_BY_ROW;
}

static int order_rows(const struct report_tensor_row *a, const struct report_tensor_row *b,
		      enum view_tensor_axis by)
{
	const int order = SORTED_ORDER(row_at(a, by), row_at(b, by));

	return order != 0 ? order : SORTED_BY(a, b, replica, row_id);
}

static int by_step(const void *a, const void *b)
{
	return order_rows(a, b, VIEW_BY_STEP);
}

static int by_update(const void *a, const void *b)
{
	return order_rows(a, b, VIEW_BY_UPDATE);
}

/* Replicas hand their rows over in turn, a step's not one after another: put them so. */
static void curve_arrange(struct view_tensor_curve *curve, enum view_tensor_axis by)
{
	if (curve->line_count > 1 && by != VIEW_BY_ROW)
		qsort(curve->rows.row, (size_t)curve->rows.count, sizeof(*curve->rows.row),
		      by == VIEW_BY_STEP ? by_step : by_update);
}

static enum status curve_fill(struct view_tensors *screen, struct view_tensor_curve *curve,
			      struct err *err)
{
	struct arena *arena = &screen->curve_arena;
	const size_t count = (size_t)curve->rows.count;
	int at[VIEW_REPLICAS_MOST] = {0};

	curve_arrange(curve, screen->by);
	curve->values = arena_alloc(arena, count + 1, sizeof(*curve->values));
	curve->at = arena_alloc(arena, count + 1, sizeof(*curve->at));
	curve->line_values = arena_alloc(arena, count + 1, sizeof(*curve->line_values));
	curve->line_at = arena_alloc(arena, count + 1, sizeof(*curve->line_at));
	if (!curve->values || !curve->at || !curve->line_values || !curve->line_at)
		return err_nomem(err);
	for (int i = 0; i < curve->line_count; i++)
		at[curve->lines[i].replica] = curve->lines[i].first;
	for (size_t i = 0; i < count; i++) {
		const struct report_tensor_row *row = &curve->rows.row[i];
		const int line = at[view__replica_number(row->replica)]++;

		curve->values[i] = row->value;
		curve->at[i] =
			screen->by == VIEW_BY_ROW ? (double)i : (double)row_at(row, screen->by);
		curve->line_values[line] = curve->values[i];
		curve->line_at[line] = curve->at[i];
	}
	view_axis_take(&screen->x, curve->at, (int64_t)count);
	view_axis_take(&screen->y, curve->values, (int64_t)count);
	view_spread_take(&screen->spread, curve->values, (int64_t)count);
	return ST_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status curve_read(struct view_tensors *screen, struct view_context *context, int side,
			      struct err *err)
{
	struct view_tensor_curve *curve = &screen->curve[side];
	struct prof_db *db = view__tensors_db(context, side);
	enum status status;

	curve->rows.count = 0;
	curve->values = NULL;
	curve->line_count = 0;
	if (!db || screen->id[side] == IPS_NULL)
		return ST_OK;
	status = report_tensor_rows_read(&curve->rows, db, screen->id[side], screen->rank,
					 view__statistic(screen), VIEW_TENSORS_CURVE, err);
	if (status == ST_OK)
		curve_filter(screen, curve);
	return status;
}

static enum status curves_fill(struct view_tensors *screen, struct err *err)
{
	static const char *const titles[] = {
		[VIEW_BY_STEP] = "step", [VIEW_BY_UPDATE] = "weight update", [VIEW_BY_ROW] = "row"};
	enum status status = ST_OK;

	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = curve_lines(screen, &screen->curve[side], err);
	if (status != ST_OK)
		return status;
	screen->by = choose_axis(screen);
	screen->x = (struct view_axis){.quantity = REPORT_NUMBER, .title = titles[screen->by]};
	screen->y = (struct view_axis){.quantity = REPORT_REAL};
	view_axis_begin(&screen->x);
	screen->spread = (struct view_spread){0};
	view_axis_begin(&screen->y);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = curve_fill(screen, &screen->curve[side], err);
	view_axis_settle(&screen->x);
	view_axis_scale(&screen->y, &screen->spread, screen->scale);
	screen->known = view_axis_settle(&screen->y);
	return status;
}

enum status view__curve_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err)
{
	enum status status = ST_OK;
	int64_t count;

	arena_reset(&screen->curve_arena);
	for (int side = 0; side < VIEW_TENSORS_SIDES && status == ST_OK; side++)
		status = curve_read(screen, context, side, err);
	if (status == ST_OK)
		status = curves_fill(screen, err);
	if (status != ST_OK) {
		for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
			screen->curve[side].rows.count = screen->curve[side].line_count = 0;
		return status;
	}
	view__curve_go(screen);
	count = screen->curve[view__curve_side(screen)].rows.count;
	if (screen->cursor < 0 || screen->cursor >= count || context->follow)
		screen->cursor = count - 1;
	return ST_OK;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

int view__curve_side(const struct view_tensors *screen)
{
	return screen->curve[0].rows.count == 0 && screen->curve[1].rows.count > 0;
}

const struct report_tensor_row *view__curve_row(const struct view_tensors *screen)
{
	const struct report_tensor_rows *rows = &screen->curve[view__curve_side(screen)].rows;

	return screen->cursor >= 0 && screen->cursor < rows->count ? &rows->row[screen->cursor]
								   : NULL;
}

/* The first row at @at or later. */
static int curve_find(const struct view_tensor_curve *curve, double at)
{
	int low;

	SORTED_FIRST(low, 0, curve->rows.count, curve->at[low] < at);
	return low;
}

/* Of several rows at one moment the first belongs to the first, the second to the second. */
const struct report_tensor_row *view__curve_partner(const struct view_tensors *screen)
{
	const struct view_tensor_curve *source = &screen->curve[0], *target = &screen->curve[1];
	const struct report_tensor_row *row = view__curve_row(screen);
	int before = 0;
	double at;

	if (!row || view__curve_side(screen) == 1 || screen->by == VIEW_BY_ROW)
		return NULL;
	at = source->at[screen->cursor];
	for (int i = curve_find(source, at); i < screen->cursor; i++)
		before += source->rows.row[i].replica == row->replica;
	for (int i = curve_find(target, at); i < target->rows.count; i++) {
		if (target->at[i] > at)
			break;
		if (target->rows.row[i].replica == row->replica && before-- == 0)
			return &target->rows.row[i];
	}
	return NULL;
}

void view__curve_go(struct view_tensors *screen)
{
	const struct report_tensor_rows *rows = &screen->curve[view__curve_side(screen)].rows;

	for (int i = 0; i < rows->count; i++) {
		const bool steps = rows->row[i].step != IPS_NULL && screen->wanted_step != IPS_NULL;
		const int64_t at = steps ? rows->row[i].step : rows->row[i].weight_update;
		const int64_t wanted = steps ? screen->wanted_step : screen->wanted_update;

		if (at != IPS_NULL && at <= wanted)
			screen->cursor = i;
	}
	screen->wanted_step = screen->wanted_update = IPS_NULL;
}

int view__curve_column(const struct view_tensors *screen, int64_t row, int width)
{
	const struct view_tensor_curve *curve = &screen->curve[view__curve_side(screen)];

	return (int)(view_axis_part(&screen->x, curve->at[row]) * (width - 1));
}

/* To the next row that is drawn in another column, or the one with another step. */
static void cursor_move(struct view_tensors *screen, int by, int columns)
{
	const int width = screen->body.width > 14 ? screen->body.width - 10 : 4;
	const struct view_tensor_curve *curve = &screen->curve[view__curve_side(screen)];
	const int64_t count = curve->rows.count;
	const int from = count > 0 ? view__curve_column(screen, screen->cursor, width) : 0;
	int64_t at = screen->cursor;

	while (at + by >= 0 && at + by < count) {
		const int column = view__curve_column(screen, at + by, width);

		at += by;
		if (column - from >= columns || from - column >= columns ||
		    (columns == 1 && count < width && at != screen->cursor &&
		     (curve->line_count > 1 || curve->at[at] < curve->at[screen->cursor] ||
		      curve->at[at] > curve->at[screen->cursor])))
			break;
	}
	screen->cursor = at;
}

enum view_answer view__curve_request(struct view_tensors *screen, enum view_request request)
{
	const int page = screen->body.width / 8 + 2;
	const int64_t count = screen->curve[view__curve_side(screen)].rows.count;

	if (count == 0)
		return VIEW_UNHANDLED;
	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		cursor_move(screen, request == VIEW_LEFT_REQUEST ? -1 : 1, 1);
		return VIEW_DRAW;
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		cursor_move(screen, request == VIEW_PAGE_UP_REQUEST ? -1 : 1, page);
		return VIEW_DRAW;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		screen->cursor = request == VIEW_HOME_REQUEST ? 0 : count - 1;
		return VIEW_DRAW;
	default:
		return VIEW_UNHANDLED;
	}
}
