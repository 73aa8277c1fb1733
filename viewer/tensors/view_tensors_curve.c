/*
 * A statistic of one tensor over the run: its line, marks where numbers were bad, and a cursor.
 *
 * Threading: the session's worker; drawing on the terminal's thread.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t row_at(const struct report_tensor_row *row, enum view_tensor_axis by)
{
	return by == VIEW_BY_STEP ? row->step : row->weight_update;
}

/* Are all rows known by it, and in its order? */
static bool rises(const struct report_tensor_rows *rows, enum view_tensor_axis by)
{
	for (int i = 0; i < rows->count; i++) {
		if (row_at(&rows->row[i], by) == INT64_MIN)
			return false;
		if (i > 0 && row_at(&rows->row[i], by) < row_at(&rows->row[i - 1], by))
			return false;
	}
	return true;
}

static enum view_tensor_axis choose_axis(const struct view_tensors *screen)
{
	for (int by = VIEW_BY_STEP; by < VIEW_BY_ROW; by++)
		if (rises(&screen->source.rows, (enum view_tensor_axis)by) &&
		    rises(&screen->target.rows, (enum view_tensor_axis)by))
			return (enum view_tensor_axis)by;
	return VIEW_BY_ROW;
}

static enum status curve_fill(struct view_tensors *screen, struct view_tensor_curve *curve,
			      struct err *err)
{
	const size_t count = (size_t)curve->rows.count;

	curve->values = arena_alloc(&screen->curve_arena, count + 1, sizeof(*curve->values));
	curve->at = arena_alloc(&screen->curve_arena, count + 1, sizeof(*curve->at));
	if (!curve->values || !curve->at)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		curve->values[i] = curve->rows.row[i].value;
		curve->at[i] = screen->by == VIEW_BY_ROW
				       ? (double)i
				       : (double)row_at(&curve->rows.row[i], screen->by);
	}
	view_axis_take(&screen->x, curve->at, (int64_t)count);
	view_axis_take(&screen->y, curve->values, (int64_t)count);
	return ST_OK;
}

static enum status curve_read(struct view_tensor_curve *curve, struct view_source *source,
			      const struct view_tensors *screen, int64_t id, struct err *err)
{
	curve->rows.count = 0;
	if (!source || id == INT64_MIN)
		return ST_OK;
	return report_tensor_rows_read(&curve->rows, source->db, id, screen->rank,
				       view__statistic(screen), VIEW_TENSORS_CURVE, err);
}

enum status view__curve_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err)
{
	static const char *const titles[] = {
		[VIEW_BY_STEP] = "step", [VIEW_BY_UPDATE] = "weight update", [VIEW_BY_ROW] = "row"};
	enum status status = curve_read(&screen->source, context->source, screen, screen->id, err);

	arena_reset(&screen->curve_arena);
	screen->source.values = screen->target.values = NULL;
	if (status == ST_OK)
		status = curve_read(&screen->target, context->target, screen, screen->target_id,
				    err);
	if (status != ST_OK) {
		screen->source.rows.count = screen->target.rows.count = 0;
		return status;
	}
	screen->by = choose_axis(screen);
	screen->x = (struct view_axis){.quantity = REPORT_NUMBER, .title = titles[screen->by]};
	screen->y = (struct view_axis){.quantity = REPORT_REAL};
	view_axis_begin(&screen->x);
	view_axis_begin(&screen->y);
	status = curve_fill(screen, &screen->source, err);
	if (status == ST_OK)
		status = curve_fill(screen, &screen->target, err);
	if (status != ST_OK) {
		screen->source.rows.count = screen->target.rows.count = 0;
		return status;
	}
	view_axis_settle(&screen->x);
	screen->known = view_axis_settle(&screen->y);
	view__curve_go(screen);
	if (screen->cursor < 0 || context->follow)
		screen->cursor = screen->source.rows.count - 1;
	if (screen->cursor >= screen->source.rows.count)
		screen->cursor = screen->source.rows.count - 1;
	return ST_OK;
}

const struct report_tensor_row *view__curve_row(const struct view_tensors *screen)
{
	const struct report_tensor_rows *rows = &screen->source.rows;

	return screen->cursor >= 0 && screen->cursor < rows->count ? &rows->row[screen->cursor]
								   : NULL;
}

void view__curve_go(struct view_tensors *screen)
{
	const struct report_tensor_rows *rows = &screen->source.rows;

	for (int i = 0; i < rows->count; i++) {
		const bool steps =
			rows->row[i].step != INT64_MIN && screen->wanted_step != INT64_MIN;
		const int64_t at = steps ? rows->row[i].step : rows->row[i].weight_update;
		const int64_t wanted = steps ? screen->wanted_step : screen->wanted_update;

		if (at != INT64_MIN && at <= wanted)
			screen->cursor = i;
	}
	screen->wanted_step = screen->wanted_update = INT64_MIN;
}

/* --- the cursor ------------------------------------------------------------------------------- */

static int curve_column(const struct view_tensors *screen, int64_t row, int width)
{
	return (int)(view_axis_part(&screen->x, screen->source.at[row]) * (width - 1));
}

/* To the next row that is drawn in another column, or the one with another step. */
static void cursor_move(struct view_tensors *screen, int by, int columns)
{
	const int width = screen->body.width > 14 ? screen->body.width - 10 : 4;
	const int64_t count = screen->source.rows.count;
	const int from = count > 0 ? curve_column(screen, screen->cursor, width) : 0;
	int64_t at = screen->cursor;

	while (at + by >= 0 && at + by < count) {
		const int column = curve_column(screen, at + by, width);

		at += by;
		if (column - from >= columns || from - column >= columns ||
		    (columns == 1 && count < width &&
		     screen->source.at[at] < screen->source.at[screen->cursor]) ||
		    (columns == 1 && count < width &&
		     screen->source.at[at] > screen->source.at[screen->cursor]))
			break;
	}
	screen->cursor = at;
}

enum view_answer view__curve_request(struct view_tensors *screen, enum view_request request)
{
	const int page = screen->body.width / 8 + 2;

	if (screen->source.rows.count == 0)
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
		screen->cursor = request == VIEW_HOME_REQUEST ? 0 : screen->source.rows.count - 1;
		return VIEW_DRAW;
	default:
		return VIEW_UNHANDLED;
	}
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void draw_bad(const struct view_tensors *screen, const struct view_tensor_curve *curve,
		     struct view_pane *plot)
{
	for (int i = 0; i < curve->rows.count; i++) {
		const double part = view_axis_part(&screen->x, curve->at[i]);

		if (curve->rows.row[i].n_bad > 0 || isinf(curve->values[i]))
			view_put(plot, (int)(part * (plot->rect.width - 1)), plot->rect.height - 1,
				 VIEW_BAD, '!');
	}
}

static void draw_line(const struct view_tensors *screen, const struct view_tensor_curve *curve,
		      enum view_style style, struct view_pane *plot)
{
	const struct view_series series = {curve->values, curve->at, curve->rows.count, style};

	if (curve->rows.count > 0)
		view_chart_line(plot, &series, &screen->x, &screen->y);
}

/* "step 812, update 203: std 0.0123, 7 bad": what the cursor is on, or how many rows there are. */
static void draw_readout(const struct view_tensors *screen, const struct view_context *context,
			 struct view_pane *pane)
{
	const struct report_tensor_row *row = view__curve_row(screen);
	const struct report_tensor_rows *rows = &screen->source.rows;
	char all[FMT_SIZE], value[FMT_SIZE], bad[FMT_SIZE] = "";
	int x = 1;

	if (screen->opened && row && !context->whole) {
		x += view_textf(pane, x, 0, VIEW_BOLD, "%s %lld: %s %s", screen->x.title,
				(long long)screen->source.at[screen->cursor],
				view__statistic(screen), fmt_real(value, row->value));
		if (row->n_bad > 0)
			x += view_textf(pane, x, 0, VIEW_BAD, ", %s NaN or Inf",
					fmt_count(bad, row->n_bad));
		x += 2;
	}
	if (context->target) {
		x += view_chart_key(pane, x, 0, pane->rect.width - x, VIEW_SOURCE, "source");
		x += view_chart_key(pane, x, 0, pane->rect.width - x, VIEW_TARGET, "target");
	}
	if (context->target)
		view_textf(pane, x, 0, VIEW_DIM, "%s and %s rows", fmt_count(value, rows->count),
			   fmt_count(all, screen->target.rows.count));
	else if (rows->looked < rows->all)
		view_textf(pane, x, 0, VIEW_DIM, "%s of %s rows", fmt_count(value, rows->count),
			   fmt_count(all, screen->row_count));
	else
		view_textf(pane, x, 0, VIEW_DIM, "all %s rows", fmt_count(value, rows->count));
}

void view__curve_draw(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane)
{
	struct view_rect area = pane->rect;
	struct view_pane chart, plot;

	if (screen->source.rows.count == 0 && screen->target.rows.count == 0) {
		view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM,
			      screen->row_count > 0
				      ? "None of its rows is among those that were looked at."
				      : "No rows are kept of it: only its health is watched.");
		return;
	}
	if (!screen->known) {
		view_textf(pane, 1, 0, VIEW_DIM,
			   "Its rows do not say %s: s shows another statistic.",
			   view__statistic(screen));
		return;
	}
	draw_readout(screen, context, pane);
	area.y++;
	area.height--;
	chart = view_pane_at(pane->canvas, area);
	plot = view_chart_axes(&chart, &screen->x, &screen->y, 0);
	draw_line(screen, &screen->source, context->target ? VIEW_SOURCE : VIEW_CURVE, &plot);
	draw_line(screen, &screen->target, VIEW_TARGET, &plot);
	draw_bad(screen, &screen->source, &plot);
	draw_bad(screen, &screen->target, &plot);
	if (screen->opened && !context->whole && view__curve_row(screen))
		view_chart_marker(&plot, curve_column(screen, screen->cursor, plot.rect.width));
}
