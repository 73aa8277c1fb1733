/*
 * The timeline's windows as rows: for CSV and JSON, and the statement that gives them.
 *
 * Ids of spans rise in order of start on each track, so a window is a range of ids: looked up with
 * each picture (a bisection per lane), it makes the statement quick on a file of any size.
 *
 * Threading: one thread. Ownership: rows are the table's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define TABLE_LIMIT 100000

/* The same from the picture, where it has all of the lane's spans; false: it has buckets. */
static bool view_picture_rows(const struct view_lane *lane, int64_t *first, int64_t *last)
{
	*first = INT64_MAX;
	*last = IPS_NULL;
	for (int i = 0; i < lane->bar_count; i++) {
		const int64_t id = lane->bars[i].span_id;

		if (id == IPS_NULL)
			return false;
		*first = id < *first ? id : *first;
		*last = id > *last ? id : *last;
	}
	return lane->bar_count > 0;
}

bool view__lane_rows(const struct view_lane *lane, struct prof_db *db, struct view_window window,
		     int64_t *first, int64_t *last)
{
	const struct prof_track *track = lane->track;

	if (prof_timeline_at(db, track->track_id, window.from, 0, first, NULL) != ST_OK)
		return false;
	if (*first == IPS_NULL && prof_timeline_find(db, track->track_id, track->clock, NULL,
						     window.from - 1, true, first, NULL) != ST_OK)
		return false;
	if (prof_timeline_find(db, track->track_id, track->clock, NULL, window.to, false, last,
			       NULL) != ST_OK)
		return false;
	return *first != IPS_NULL && *last != IPS_NULL && *first <= *last;
}

static enum status view_half_load(struct view_timeline *tl, struct prof_db *db,
				  struct view_context *context, struct err *err)
{
	for (int c = 0; c < 2; c++)
		tl->rows_of[c] = (struct view_window){0, -1};
	for (int i = 0; i < tl->lane_count; i++) {
		const int c = tl->lanes[i].track->clock == IPS_DEVICE;
		struct view_window *rows = &tl->rows_of[c];
		int64_t first, last;

		if (tl->lanes[i].rows == 0 && !context->whole)
			continue;
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		if (!view_picture_rows(&tl->lanes[i], &first, &last) &&
		    !view__lane_rows(&tl->lanes[i], db, tl->clock[c].window, &first, &last))
			continue;
		if (rows->to < rows->from)
			*rows = (struct view_window){first, last};
		rows->from = min(first, rows->from);
		rows->to = max(last, rows->to);
	}
	return ST_OK;
}

enum status view__rows_load(struct view_timeline *tl, struct view_context *context, struct err *err)
{
	enum status status = view_half_load(tl, context->source->db, context, err);

	if (status == ST_OK && tl->target && context->target)
		status = view_half_load(tl->target, context->target->db, context, err);
	return status;
}

#define SPAN_COLUMNS                                                                               \
	"clock, track, span_id, parent_id, depth, category, name, start_ns, dur_ns, mode, "        \
	"epoch, execution, weight_update, step, microbatch, replica, ipu, stage, phase, operation"

static const struct report_column view_span_columns[] = {
	{"clock", REPORT_TEXT},
	{"track", REPORT_TEXT},
	{"span_id", REPORT_NUMBER},
	{"parent_id", REPORT_NUMBER},
	{"depth", REPORT_NUMBER},
	{"category", REPORT_TEXT},
	{"name", REPORT_TEXT},
	{"start_ns", REPORT_NS},
	{"dur_ns", REPORT_NS},
	{"mode", REPORT_TEXT},
	{"epoch", REPORT_NUMBER},
	{"execution", REPORT_NUMBER},
	{"weight_update", REPORT_NUMBER},
	{"step", REPORT_NUMBER},
	{"microbatch", REPORT_NUMBER},
	{"replica", REPORT_NUMBER},
	{"ipu", REPORT_NUMBER},
	{"stage", REPORT_NUMBER},
	{"phase", REPORT_TEXT},
	{"operation", REPORT_TEXT},
	{"report", REPORT_TEXT}, /* comparing: "source", "target" */
};

/* The lanes that are shown, as a condition on spans. */
static void view_lanes_condition(const struct view_timeline *tl, struct str *out)
{
	const int64_t each = tl->replicas > 0 ? tl->ipus / tl->replicas : 0;

	if (tl->only_ipu != IPS_NULL)
		str_addf(out, " AND ipu = %lld", (long long)tl->only_ipu);
	else if (tl->only_replica != IPS_NULL)
		str_addf(out, " AND ipu BETWEEN %lld AND %lld",
			 (long long)(tl->only_replica * each),
			 (long long)((tl->only_replica + 1) * each - 1));
	view__hidden_query(tl, out);
}

/* The spans of a clock that overlap its window, as far as ids tell: nothing else is looked at. */
static void view_clock_query(const struct view_timeline *tl, int c, const char *more,
			     struct str *out)
{
	const struct view_window window = tl->clock[c].window;

	str_addf(out,
		 "SELECT " SPAN_COLUMNS "%s\nFROM spans\nWHERE span_id BETWEEN %lld AND %lld AND "
		 "clock = '%s'",
		 more, (long long)tl->rows_of[c].from, (long long)tl->rows_of[c].to,
		 c ? "device" : "host");
	str_addf(out, " AND start_ns < %lld AND ifnull(start_ns + dur_ns, %lld) > %lld",
		 (long long)window.to, (long long)window.to, (long long)window.from);
	view_lanes_condition(tl, out);
	view__filter_query(tl, out);
	str_add(out, "\nORDER BY span_id");
}

/* The spans of one report's window; @more: a further column. */
static enum status view_half_rows(const struct view_timeline *tl, struct prof_db *db,
				  const char *more, int columns, struct view_rows *rows,
				  struct err *err)
{
	enum status status = ST_OK;

	for (int c = 1; c >= 0 && status == ST_OK; c--) {
		struct prof_query *query = NULL;
		struct str sql = {0};

		if (!tl->clock[c].present || tl->rows_of[c].to < tl->rows_of[c].from)
			continue;
		view_clock_query(tl, c, more, &sql);
		status = sql.failed ? err_nomem(err)
				    : prof_query_open(&query, db, str_peek(&sql), err);
		str_free(&sql);
		if (status == ST_OK)
			status = view_rows_add(rows, query, columns, TABLE_LIMIT, err);
		prof_query_close(query);
	}
	return status;
}

enum status view__timeline_table(void *state, struct view_context *context,
				 struct report_table *out, struct err *err)
{
	const struct view_timeline *tl = state;
	const bool two = tl->target && context->target;
	const int columns = (int)ARRAY_LEN(view_span_columns) - !two;
	struct view_rows rows = {0};
	enum status status;

	if (view__shows_sums(tl) && tl->sums.known)
		return view_grid_table(&tl->sums.grid, out, err);
	status = view_half_rows(tl, context->source->db, two ? ", 'source' AS report" : "", columns,
				&rows, err);

	if (status == ST_OK && two)
		status = view_half_rows(tl->target, context->target->db, ", 'target' AS report",
					columns, &rows, err);
	if (status == ST_OK)
		status = view_rows_table(&rows, out, "timeline", view_span_columns, columns, err);
	view_rows_fini(&rows);
	return status;
}

/* The statements of one report: of its own file. */
static void view_half_query(const struct view_timeline *tl, struct str *out)
{
	if (tl->way == VIEW_BSP)
		view__bsp_query(tl, out);
	if (view__shows_sums(tl))
		view__sums_query(tl, out);
	for (int i = 0; i < 2; i++) {
		const int c = i == 0 ? view__lead(tl) : !view__lead(tl);

		if (!tl->clock[c].present || tl->rows_of[c].to < tl->rows_of[c].from)
			continue;
		view_clock_query(tl, c, "", out);
		str_add(out, ";\n");
	}
	view__strips_query(tl, out);
	for (int c = 1; c >= 0; c--)
		view__bubble_query(tl, c, out);
}

/* A comment; of a file that is closed for a moment, what it was opened as. */
static void view_name_report(const char *name, const struct view_source *source, struct str *out)
{
	str_addf(out, "-- %s: %s\n", name, source->db ? prof_db_path(source->db) : source->path);
}

void view__timeline_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_timeline *tl = state;

	if (tl->target && context->target)
		view_name_report("Source", context->source, out);
	view_half_query(tl, out);
	if (!tl->target || !context->target)
		return;
	view_name_report("Target", context->target, out);
	view_half_query(tl->target, out);
}
