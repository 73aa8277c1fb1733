/*
 * A statistic of one tensor over the run: its rows in both reports, a cursor on them, and drawing.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the arena of the
 * curves.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"

static int64_t tensors_row_at(const struct report_tensor_row *row, enum view_tensor_axis by)
{
	return by == VIEW_BY_STEP ? row->step : row->weight_update;
}

/* ---- the rows of the shown replicas, one line each ------------------------------------------- */

/* Make a line for each replica with rows; they are filled when the axis is known. */
static void tensors_curve_lines(struct view_tensors *screen, struct view_tensor_curve *curve,
				struct err *err)
{
	const size_t replicas = (size_t)screen->replicas + 1;
	int *counts = view_alloc(&screen->curve_arena, replicas, sizeof(*counts), err);
	int first = 0;

	curve->line_count = 0;
	curve->lines = view_alloc(&screen->curve_arena, replicas, sizeof(*curve->lines), err);
	if (err_stuck(err))
		return;
	for (int i = 0; i < curve->rows.count; i++)
		counts[view__replica_number(curve->rows.row[i].replica)]++;
	for (size_t r = 0; r < replicas; r++) {
		if (counts[r] == 0)
			continue;
		curve->lines[curve->line_count++] =
			(struct view_tensor_line){(int64_t)r, first, counts[r]};
		first += counts[r];
	}
}

/* ---- the axis -------------------------------------------------------------------------------- */

/* Do all of @replica's rows have it, in ascending order? */
static bool tensors_is_ascending(const struct report_tensor_rows *rows, int64_t replica,
				 enum view_tensor_axis by)
{
	int64_t last = IPS_NULL;

	for (int i = 0; i < rows->count; i++) {
		const int64_t at = tensors_row_at(&rows->row[i], by);

		if (view__replica_number(rows->row[i].replica) != replica)
			continue;
		if (at == IPS_NULL || at < last)
			return false;
		last = at;
	}
	return true;
}

static bool tensors_all_ascend(const struct view_tensors *screen, enum view_tensor_axis by)
{
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		const struct view_tensor_curve *curve = &screen->curve[side];

		for (int i = 0; i < curve->line_count; i++)
			if (!tensors_is_ascending(&curve->rows, curve->lines[i].replica, by))
				return false;
	}
	return true;
}

static int tensors_order_rows(const struct report_tensor_row *a, const struct report_tensor_row *b,
			      enum view_tensor_axis by)
{
	const int order = SORTED_ORDER(tensors_row_at(a, by), tensors_row_at(b, by));

	return order != 0 ? order : SORTED_BY(a, b, replica, row_id);
}

static int tensors_compare_steps(const void *a, const void *b)
{
	return tensors_order_rows(a, b, VIEW_BY_STEP);
}

static int tensors_compare_updates(const void *a, const void *b)
{
	return tensors_order_rows(a, b, VIEW_BY_UPDATE);
}

static void tensors_curve_fill(struct view_tensors *screen, struct view_tensor_curve *curve,
			       struct err *err)
{
	struct arena *arena = &screen->curve_arena;
	const size_t count = (size_t)curve->rows.count;
	int at[VIEW_REPLICAS_MOST] = {0};

	/* Sort the rows by the axis: the replicas' rows of one step are not adjacent in the file. */
	if (curve->line_count > 1 && screen->by != VIEW_BY_ROW)
		qsort(curve->rows.row, (size_t)curve->rows.count, sizeof(*curve->rows.row),
		      screen->by == VIEW_BY_STEP ? tensors_compare_steps : tensors_compare_updates);
	curve->values = view_alloc(arena, count, sizeof(*curve->values), err);
	curve->at = view_alloc(arena, count, sizeof(*curve->at), err);
	curve->line_values = view_alloc(arena, count, sizeof(*curve->line_values), err);
	curve->line_at = view_alloc(arena, count, sizeof(*curve->line_at), err);
	if (err_stuck(err))
		return;
	for (int i = 0; i < curve->line_count; i++)
		at[curve->lines[i].replica] = curve->lines[i].first;
	for (size_t i = 0; i < count; i++) {
		const struct report_tensor_row *row = &curve->rows.row[i];
		const int line = at[view__replica_number(row->replica)]++;

		curve->values[i] = row->value;
		curve->at[i] = screen->by == VIEW_BY_ROW ? (double)i
							 : (double)tensors_row_at(row, screen->by);
		curve->line_values[line] = curve->values[i];
		curve->line_at[line] = curve->at[i];
	}
	report_axis_include(&screen->x, curve->at, (int64_t)count);
	report_axis_include(&screen->y, curve->values, (int64_t)count);
	report_spread_include(&screen->spread, curve->values, (int64_t)count);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void tensors_curve_read(struct view_tensors *screen, struct view_context *context, int side,
			       struct err *err)
{
	struct view_tensor_curve *curve = &screen->curve[side];
	struct prof_db *db = view__tensors_db(context, side);
	int kept = 0;

	curve->rows.count = 0;
	curve->values = NULL;
	curve->line_count = 0;
	if (!db || screen->id[side] == IPS_NULL || err_stuck(err) ||
	    report_tensor_rows_read(&curve->rows, db, screen->id[side], screen->rank,
				    view__statistic(screen), VIEW_TENSORS_CURVE, err) != ST_OK)
		return;
	for (int i = 0; i < curve->rows.count; i++)
		if (view__replica_shows(screen, curve->rows.row[i].replica))
			curve->rows.row[kept++] = curve->rows.row[i];
	curve->rows.count = kept;
}

static void tensors_curves_fill(struct view_tensors *screen, struct err *err)
{
	static const char *const titles[] = {
		[VIEW_BY_STEP] = "step", [VIEW_BY_UPDATE] = "weight update", [VIEW_BY_ROW] = "row"};
	int by = VIEW_BY_STEP;

	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		tensors_curve_lines(screen, &screen->curve[side], err);
	if (err_stuck(err))
		return;
	while (by < VIEW_BY_ROW && !tensors_all_ascend(screen, (enum view_tensor_axis)by))
		by++;
	screen->by = (enum view_tensor_axis)by;
	screen->x = (struct report_axis){.quantity = REPORT_NUMBER, .title = titles[screen->by]};
	screen->y = (struct report_axis){.quantity = REPORT_REAL};
	report_axis_begin(&screen->x);
	screen->spread = (struct report_spread){0};
	report_axis_begin(&screen->y);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		tensors_curve_fill(screen, &screen->curve[side], err);
	report_axis_finish(&screen->x);
	report_axis_scale(&screen->y, &screen->spread, screen->scale);
	screen->known = report_axis_finish(&screen->y);
}

/* The report whose rows the cursor is in: the Source if it has rows. */
static int curve_side(const struct view_tensors *screen)
{
	return screen->curve[0].rows.count == 0 && screen->curve[1].rows.count > 0;
}

void view__curve_load(struct view_tensors *screen, struct view_context *context, struct err *err)
{
	const struct report_tensor_rows *rows;

	arena_reset(&screen->curve_arena);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
		tensors_curve_read(screen, context, side, err);
	tensors_curves_fill(screen, err);
	if (err_stuck(err)) {
		for (int side = 0; side < VIEW_TENSORS_SIDES; side++)
			screen->curve[side].rows.count = screen->curve[side].line_count = 0;
		return;
	}
	/* Move the cursor to the last row at or before the wanted step, or else weight update. */
	rows = &screen->curve[curve_side(screen)].rows;
	for (int i = 0; i < rows->count; i++) {
		const bool steps = rows->row[i].step != IPS_NULL && screen->wanted_step != IPS_NULL;
		const int64_t at = steps ? rows->row[i].step : rows->row[i].weight_update;
		const int64_t wanted = steps ? screen->wanted_step : screen->wanted_update;

		if (at != IPS_NULL && at <= wanted)
			screen->cursor = i;
	}
	screen->wanted_step = screen->wanted_update = IPS_NULL;
	if (screen->cursor < 0 || screen->cursor >= rows->count || context->follow)
		screen->cursor = rows->count - 1;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

const struct report_tensor_row *view__curve_row(const struct view_tensors *screen)
{
	const struct report_tensor_rows *rows = &screen->curve[curve_side(screen)].rows;

	return screen->cursor >= 0 && screen->cursor < rows->count ? &rows->row[screen->cursor]
								   : NULL;
}

/* The first row at or after @at. */
static int tensors_curve_find(const struct view_tensor_curve *curve, double at)
{
	int low;

	SORTED_FIRST(low, 0, curve->rows.count, curve->at[low] < at);
	return low;
}

/* Find the Target's row for the cursor's. If several rows have the same x, pair them in order. */
static const struct report_tensor_row *curve_find_partner(const struct view_tensors *screen)
{
	const struct view_tensor_curve *source = &screen->curve[0], *target = &screen->curve[1];
	const struct report_tensor_row *row = view__curve_row(screen);
	int before = 0;
	double at;

	if (!row || curve_side(screen) == 1 || screen->by == VIEW_BY_ROW)
		return NULL;
	at = source->at[screen->cursor];
	for (int i = tensors_curve_find(source, at); i < screen->cursor; i++)
		before += source->rows.row[i].replica == row->replica;
	for (int i = tensors_curve_find(target, at); i < target->rows.count; i++) {
		if (target->at[i] > at)
			break;
		if (target->rows.row[i].replica == row->replica && before-- == 0)
			return &target->rows.row[i];
	}
	return NULL;
}

static int curve_column(const struct view_tensors *screen, int64_t row, int width)
{
	const struct view_tensor_curve *curve = &screen->curve[curve_side(screen)];

	return (int)(report_axis_part(&screen->x, curve->at[row]) * (width - 1));
}

/* Move to the next row that is drawn in another column, or that has another x. */
static void tensors_cursor_move(struct view_tensors *screen, int by, int columns)
{
	const int width = screen->body.width > 14 ? screen->body.width - 10 : 4;
	const struct view_tensor_curve *curve = &screen->curve[curve_side(screen)];
	const int64_t count = curve->rows.count;
	const int from = count > 0 ? curve_column(screen, screen->cursor, width) : 0;
	int64_t at = screen->cursor;

	while (at + by >= 0 && at + by < count) {
		const int column = curve_column(screen, at + by, width);

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
	const int64_t count = screen->curve[curve_side(screen)].rows.count;

	if (count == 0)
		return VIEW_UNHANDLED;
	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		tensors_cursor_move(screen, request == VIEW_LEFT_REQUEST ? -1 : 1, 1);
		return VIEW_DRAW;
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		tensors_cursor_move(screen, request == VIEW_PAGE_UP_REQUEST ? -1 : 1, page);
		return VIEW_DRAW;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		screen->cursor = request == VIEW_HOME_REQUEST ? 0 : count - 1;
		return VIEW_DRAW;
	default:
		return VIEW_UNHANDLED;
	}
}

/* ---- the row under the cursor ---------------------------------------------------------------- */

#define NAMES_FROM 76 /* least width for "Source" instead of "S" */

static int tensors_draw_bad_count(const struct report_tensor_row *row, int x,
				  struct view_pane *pane)
{
	char bad[FMT_SIZE];

	if (row->n_bad <= 0)
		return 0;
	return view_textf(pane, x, 0, VIEW_BAD, ", %s NaN or Inf", fmt_count(bad, row->n_bad));
}

/* Draw "+0.012 (3.1 %)": the share is of the larger value, as in tables. */
static int tensors_draw_diff(double source, double target, int x, struct view_pane *pane, bool wide)
{
	const double diff = target - source, larger = fmax(fabs(source), fabs(target));
	char number[FMT_SIZE], share[FMT_SIZE];
	int used = view_text(pane, x, 0, VIEW_DIM, wide ? "Diff " : "D ");

	if (isnan(diff))
		return used + view_text(pane, x + used, 0, VIEW_BOLD, "-");
	used += view_textf(pane, x + used, 0, diff < 0 || diff > 0 ? VIEW_WARN : VIEW_DIM, "%s%s",
			   diff > 0 ? "+" : "", fmt_real(number, diff));
	if (wide && (diff < 0 || diff > 0))
		used += view_textf(pane, x + used, 0, VIEW_DIM, " (%s)",
				   fmt_percent(share, fabs(diff) / larger));
	return used;
}

static int tensors_draw_side(const struct report_tensor_row *row, enum view_style style,
			     const char *name, int x, struct view_pane *pane)
{
	char value[FMT_SIZE];
	int used = view_text(pane, x, 0, style, name);

	if (!row)
		return used + view_text(pane, x + used, 0, VIEW_DIM, " -  ");
	used += view_textf(pane, x + used, 0, VIEW_BOLD, " %s", fmt_real(value, row->value));
	used += tensors_draw_bad_count(row, x + used, pane);
	return used + 2;
}

int view__curve_readout(const struct view_tensors *screen, const struct view_context *context,
			struct view_pane *pane)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const struct report_tensor_row *partner = curve_find_partner(screen);
	const bool wide = pane->rect.width >= NAMES_FROM, target = curve_side(screen) == 1;
	char value[FMT_SIZE];
	int x;

	if (!screen->opened || !row || context->whole)
		return 1;
	x = 1 + view_textf(pane, 1, 0, VIEW_BOLD, "%s %.0f", screen->x.title,
			   screen->curve[curve_side(screen)].at[screen->cursor]);
	/* If several replicas are shown, name the row's. */
	if (screen->replica < 0 && screen->replicas > 1)
		x += view_textf(pane, x, 0, VIEW_BOLD, ", replica %lld", (long long)row->replica);
	x += view_text(pane, x, 0, VIEW_BOLD, ": ");
	if (!context->target || wide)
		x += view_textf(pane, x, 0, VIEW_BOLD, "%s ", view__statistic(screen));
	if (!context->target) {
		x += view_text(pane, x, 0, VIEW_BOLD, fmt_real(value, row->value));
		return x + tensors_draw_bad_count(row, x, pane) + 2;
	}
	x += tensors_draw_side(target ? NULL : row, VIEW_SOURCE, wide ? "Source" : "S", x, pane);
	x += tensors_draw_side(target ? row : partner, VIEW_TARGET, wide ? "Target" : "T", x, pane);
	if (partner)
		x += tensors_draw_diff(row->value, partner->value, x, pane, wide) + 2;
	return x;
}

/* ---- the legend ------------------------------------------------------------------------------ */

static enum view_style tensors_line_style(const struct view_tensors *screen,
					  const struct view_context *context, int side, int line)
{
	if (context->target)
		return side == 0 ? VIEW_SOURCE : VIEW_TARGET;
	if (screen->curve[side].line_count < 2)
		return VIEW_CURVE;
	return (enum view_style)(VIEW_SERIES_1 + line % VIEW_SERIES);
}

/* Draw the names of two reports, or else of several replicas. */
static int tensors_draw_names(const struct view_tensors *screen, const struct view_context *context,
			      int x, struct view_pane *pane)
{
	const struct view_tensor_curve *curve = &screen->curve[0];
	const int width = pane->rect.width, first = x;

	if (context->target) {
		x += view_chart_key(pane, x, 0, width - x, VIEW_SOURCE, "Source");
		x += view_chart_key(pane, x, 0, width - x, VIEW_TARGET, "Target");
		return x - first;
	}
	for (int i = 0; i < curve->line_count && curve->line_count > 1; i++) {
		char name[32];

		snprintf(name, sizeof(name), "replica %lld", (long long)curve->lines[i].replica);
		x += view_chart_key(pane, x, 0, width - x,
				    tensors_line_style(screen, context, 0, i), name);
	}
	return x - first;
}

static void tensors_draw_legend(const struct view_tensors *screen,
				const struct view_context *context, struct view_pane *pane)
{
	const struct report_tensor_rows *rows = &screen->curve[0].rows;
	char all[FMT_SIZE], some[FMT_SIZE], text[2 * FMT_SIZE + 32];
	int x = view__curve_readout(screen, context, pane);

	x += tensors_draw_names(screen, context, x, pane);
	if (context->target)
		snprintf(text, sizeof(text), "%s and %s rows", fmt_count(some, rows->count),
			 fmt_count(all, screen->curve[1].rows.count));
	else if (rows->looked < rows->all || screen->replica >= 0)
		snprintf(text, sizeof(text), "%s of %s rows", fmt_count(some, rows->count),
			 fmt_count(all, screen->row_count));
	else
		snprintf(text, sizeof(text), "all %s rows", fmt_count(some, rows->count));
	if (x + utf8_columns(text) <= pane->rect.width)
		view_text(pane, x, 0, VIEW_DIM, text);
}

/* ---- the lines ------------------------------------------------------------------------------- */

static bool tensors_draw_nothing(const struct view_tensors *screen, struct view_pane *pane)
{
	const int width = pane->rect.width - 2;

	if (screen->curve[0].rows.count + screen->curve[1].rows.count == 0) {
		if (screen->replica >= 0)
			view_text_cut(pane, 1, 0, width, VIEW_DIM,
				      "No rows of it are this replica's: i shows another.");
		else
			view_text_cut(pane, 1, 0, width, VIEW_DIM,
				      screen->row_count > 0
					      ? "None of its rows is among those looked at."
					      : "No rows are kept of it: only its health is "
						"watched.");
		return true;
	}
	if (!screen->known)
		view_textf(pane, 1, 0, VIEW_DIM,
			   "Its rows do not say %s: s shows another statistic.",
			   view__statistic(screen));
	return !screen->known;
}

void view__curve_draw(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane)
{
	struct view_rect area = pane->rect;
	struct view_pane chart, plot;

	if (tensors_draw_nothing(screen, pane))
		return;
	tensors_draw_legend(screen, context, pane);
	area.y++;
	area.height--;
	chart = view_pane_at(pane->canvas, area);
	plot = view_chart_axes(&chart, &screen->x, &screen->y, 0);
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		const struct view_tensor_curve *curve = &screen->curve[side];

		for (int i = 0; i < curve->line_count; i++) {
			const struct view_tensor_line *line = &curve->lines[i];
			const struct view_series series = {
				curve->line_values + line->first, curve->line_at + line->first,
				line->count, tensors_line_style(screen, context, side, i)};

			view_chart_line(&plot, &series, &screen->x, &screen->y);
		}
	}
	for (int side = 0; side < VIEW_TENSORS_SIDES; side++) {
		for (int i = 0; i < screen->curve[side].rows.count; i++) {
			const double part = report_axis_part(&screen->x, screen->curve[side].at[i]);

			if (screen->curve[side].rows.row[i].n_bad > 0 ||
			    isinf(screen->curve[side].values[i]))
				view_put(&plot, (int)(part * (plot.rect.width - 1)),
					 plot.rect.height - 1, VIEW_BAD, '!');
		}
	}
	if (screen->opened && !context->whole && view__curve_row(screen))
		view_chart_marker(&plot, curve_column(screen, screen->cursor, plot.rect.width));
}
