/*
 * Cursors of the public report: steps of a run, variables on tiles, and spans (PVTI's events).
 *
 * A query is closed at its last row, so a cursor that was read to its end holds no lock on the
 * database. Spans are read in the order of span_id, the table's key, so nothing is sorted. The
 * children of a span follow it on its track until a span starts that is not inside it.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include "common/mem.h"
#include "popvision/public/report_public_internal.h"

/* ---- common to all cursors ------------------------------------------------------------------- */

/* Allocate a cursor of @size bytes over @sql; bind parameters to *@query, then step or close it.
 * NULL: a failure, which is in @err; *@query is NULL. */
static void *cursor_open(size_t size, struct ips_report *report, const char *sql,
			 struct prof_query **query, struct err *err)
{
	struct report_public__cursor *cursor = mem_calloc(1, size);

	*query = NULL;
	if (!cursor) {
		err_nomem(err);
		return NULL;
	}
	cursor->report = report;
	if (prof_query_open(query, report->db, sql, err) != ST_OK) {
		err_prefix(err, "%s", prof_db_path(report->db));
		mem_free(cursor);
		return NULL;
	}
	cursor->query = *query;
	return cursor;
}

static void cursor_stop(struct report_public__cursor *cursor)
{
	prof_query_close(cursor->query);
	cursor->query = NULL;
}

/* Step, and fill @item from the row; false: no more rows, or a failure. */
static bool cursor_next(struct report_public__cursor *cursor,
			const struct report_public__field *fields, size_t count, void *item)
{
	struct err *err = &cursor->err;
	bool row;

	if (!cursor->query)
		return false;
	row = prof_query_next(cursor->query, &err->status, err);
	if (row)
		report_public__row(cursor->report, cursor->query, fields, count, item, err);
	if (row && !err_stuck(err))
		return true;
	if (err_stuck(err))
		err_prefix(err, "%s", prof_db_path(cursor->report->db));
	report_public__status(cursor->report, err, NULL, 0);
	cursor_stop(cursor);
	return false;
}

static int cursor_close(struct report_public__cursor *cursor)
{
	const int status = (int)cursor->err.status;

	prof_query_close(cursor->query);
	mem_free(cursor);
	return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct ips_report_steps {
	struct report_public__cursor cursor;
	struct ips_report_step step;
};

#define STEP(name, member) PUBLIC_FIELD(step, name, member)

static const struct report_public__field step_fields[] = {
	STEP(rank, INT),
	STEP(execution, INT),
	STEP(mode, MODE),
	STEP(epoch, INT),
	STEP(weight_update, INT),
	STEP(step, INT),
	STEP(microbatch, INT),
	STEP(replica, INT),
	STEP(ipu, INT),
	STEP(stage, INT),
	STEP(phase, PHASE),
	STEP(trace_step, INT),
	STEP(program_id, INT),
	STEP(kind, KIND),
	STEP(type, TEXT),
	STEP(name, TEXT),
	STEP(operation, TEXT),
	STEP(cycles, INT),
	STEP(cycles_from, INT),
	STEP(cycles_to, INT),
	STEP(start_ns, INT),
	STEP(dur_ns, INT),
	STEP(cycles_overlapped, INT),
	STEP(active_tiles, INT),
	STEP(tile_balance, REAL),
	STEP(active_tile_balance, REAL),
	STEP(data_in, INT),
	STEP(data_out, INT),
};

/* In the view's order: runs, and within each its trace's steps. Sorting would buffer all rows. */
static const char steps_sql[] =
	"SELECT rank, execution, mode, epoch, weight_update, step, microbatch, replica, ipu, "
	"stage, phase, trace_step, program_id, type, type, name, operation, cycles, start_cycle, "
	"start_cycle + cycles, start_ns, dur_ns, cycles_overlapped, active_tiles, tile_balance, "
	"active_tile_balance, bytes_in, bytes_out FROM device_steps "
	"WHERE (:execution IS NULL OR execution = :execution) AND (:ipu IS NULL OR ipu = :ipu) "
	"AND (:replica IS NULL OR replica = :replica) "
	"AND (:weight_update IS NULL OR weight_update = :weight_update)";

int ips_report_steps_open(struct ips_report *report, struct ips_report_steps **out,
			  const struct ips_report_step_filter *filter, char *message, size_t size)
{
	const struct ips_report_step_filter all = ips_report_step_filter_all();
	struct err err = {ST_OK, ""};
	struct prof_query *query;

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!report)
		return report_public__null_argument("report", message, size);
	if (!filter)
		filter = &all;
	*out = cursor_open(sizeof(**out), report, steps_sql, &query, &err);
	prof_query_int(query, ":execution", filter->execution);
	prof_query_int(query, ":ipu", filter->ipu);
	prof_query_int(query, ":replica", filter->replica);
	prof_query_int(query, ":weight_update", filter->weight_update);
	return report_public__status(report, &err, message, size);
}

const struct ips_report_step *ips_report_steps_next(struct ips_report_steps *cursor)
{
	struct ips_report_step *step;

	if (!cursor)
		return NULL;
	step = &cursor->step;
	if (!cursor_next(&cursor->cursor, step_fields, ARRAY_LEN(step_fields), step))
		return NULL;
	step->program = report_public__program_index(cursor->cursor.report, step->program_id);
	return step;
}

int ips_report_steps_close(struct ips_report_steps *cursor)
{
	return !cursor ? 0 : cursor_close(&cursor->cursor);
}

/* ---- variables on tiles ---------------------------------------------------------------------- */

struct ips_report_lowered_variables {
	struct report_public__cursor cursor;
	struct ips_report_lowered_variable row;
};

#define LOWERED(name) PUBLIC_FIELD(lowered_variable, name, INT)

static const struct report_public__field lowered_fields[] = {LOWERED(variable_id), LOWERED(ipu),
							     LOWERED(tile), LOWERED(bytes)};

/* The view can use an index on variable or tile only if the query has an equality for it.
 * [one variable][one tile] */
#define LOWERED_SQL(where)                                                                         \
	"SELECT variable_id, ipu, tile, bytes FROM variable_tiles "                                \
	"WHERE (:ipu IS NULL OR ipu = :ipu)" where

static const char *const lowered_sql[2][2] = {
	{LOWERED_SQL(""), LOWERED_SQL(" AND tile = :tile")},
	{LOWERED_SQL(" AND variable_id = :variable"),
	 LOWERED_SQL(" AND variable_id = :variable AND tile = :tile")},
};

int ips_report_lowered_variables_open(struct ips_report *report,
				      struct ips_report_lowered_variables **out,
				      int64_t variable_id, int64_t ipu, int64_t tile, char *message,
				      size_t size)
{
	const bool one = variable_id != IPS_NULL, here = tile != IPS_NULL;
	struct err err = {ST_OK, ""};
	struct prof_query *query;

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!report)
		return report_public__null_argument("report", message, size);
	*out = cursor_open(sizeof(**out), report, lowered_sql[one][here], &query, &err);
	prof_query_int(query, ":ipu", ipu);
	if (one)
		prof_query_int(query, ":variable", variable_id);
	if (here)
		prof_query_int(query, ":tile", tile);
	return report_public__status(report, &err, message, size);
}

const struct ips_report_lowered_variable *
ips_report_lowered_variables_next(struct ips_report_lowered_variables *cursor)
{
	struct ips_report_lowered_variable *row;

	if (!cursor)
		return NULL;
	row = &cursor->row;
	if (!cursor_next(&cursor->cursor, lowered_fields, ARRAY_LEN(lowered_fields), row))
		return NULL;
	row->variable = report_public__variable_index(cursor->cursor.report, row->variable_id);
	return row;
}

int ips_report_lowered_variables_close(struct ips_report_lowered_variables *cursor)
{
	return !cursor ? 0 : cursor_close(&cursor->cursor);
}

/* ---- spans ----------------------------------------------------------------------------------- */

struct ips_report_spans {
	struct report_public__cursor cursor;
	struct ips_report_span span;
	int64_t parent_depth; /* IPS_NULL: all spans; otherwise children of a span at this depth */
};

/* ---- all spans ------------------------------------------------------------------------------- */

#define SPAN(name, member) PUBLIC_FIELD(span, name, member)

static const struct report_public__field span_fields[] = {
	SPAN(track, INT),        SPAN(span_id, INT),         SPAN(parent_id, INT),
	SPAN(depth, INT),        SPAN(category, TEXT),       SPAN(name, TEXT),
	SPAN(operation, TEXT),   SPAN(start_ns, INT),        SPAN(dur_ns, INT),
	SPAN(keys.epoch, INT),   SPAN(keys.execution, INT),  SPAN(keys.weight_update, INT),
	SPAN(keys.step, INT),    SPAN(keys.microbatch, INT), SPAN(keys.replica, INT),
	SPAN(keys.ipu, INT),     SPAN(keys.stage, INT),      SPAN(keys.mode, MODE_BYTE),
	SPAN(keys.phase, PHASE),
};

/* The view `spans`, restricted to a track by number and to spans after a given one. */
static const char spans_sql[] =
	"SELECT r.track_id, r.span_id, r.span_id - r.parent_back, r.depth, g.value, n.value, "
	"o.value, r.start_ns, r.dur_ns, c.epoch, c.execution, c.weight_update, c.step, "
	"c.microbatch, c.replica, c.ipu, c.stage, c.mode, c.phase FROM span_rows r "
	"LEFT JOIN sites s ON s.site_id = r.site_id "
	"LEFT JOIN strings g ON g.string_id = s.category_id "
	"LEFT JOIN strings n ON n.string_id = s.name_id "
	"LEFT JOIN strings o ON o.string_id = s.operation_id "
	"LEFT JOIN contexts c ON c.context_id = r.context_id "
	"WHERE r.span_id > :after AND (:track IS NULL OR r.track_id = :track) "
	"AND (:from_ns IS NULL OR r.start_ns >= :from_ns) "
	"AND (:to_ns IS NULL OR r.start_ns < :to_ns) "
	"AND (:max_depth IS NULL OR r.depth <= :max_depth) ORDER BY r.span_id";

static struct ips_report_spans *spans_open(struct ips_report *report, int64_t after,
					   int64_t track_id, int64_t parent_depth,
					   const struct ips_report_span_filter *filter,
					   struct err *err)
{
	struct prof_query *query;
	struct ips_report_spans *spans =
		cursor_open(sizeof(*spans), report, spans_sql, &query, err);

	if (spans)
		spans->parent_depth = parent_depth;
	prof_query_int(query, ":after", after);
	prof_query_int(query, ":track", track_id);
	prof_query_int(query, ":from_ns", filter->from_ns);
	prof_query_int(query, ":to_ns", filter->to_ns);
	prof_query_int(query, ":max_depth", filter->max_depth);
	return spans;
}

int ips_report_spans_open(struct ips_report *report, struct ips_report_spans **out,
			  const struct ips_report_span_filter *filter, char *message, size_t size)
{
	const struct ips_report_span_filter all = ips_report_span_filter_all();
	struct err err = {ST_OK, ""};
	int64_t track_id = IPS_NULL;

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!report)
		return report_public__null_argument("report", message, size);
	if (!filter)
		filter = &all;
	/* The filter has the track's index, the query the database's number. */
	if (filter->track != IPS_NULL) {
		const struct report_public__track *track =
			report_public__item(report, PUBLIC_TRACKS, filter->track);

		if (!track) {
			err_set(&err, ST_INVALID, "%s: track %lld, where there are %lld",
				prof_db_path(report->db), (long long)filter->track,
				(long long)report_public__count(report, PUBLIC_TRACKS));
			return report_public__status(NULL, &err, message, size);
		}
		track_id = track->track_id;
	}
	*out = spans_open(report, INT64_MIN + 1, track_id, IPS_NULL, filter, &err);
	return report_public__status(report, &err, message, size);
}

/* ---- children -------------------------------------------------------------------------------- */

/* Read the track and the depth of span @span_id. */
static void find_span(struct ips_report *report, int64_t span_id, int64_t *track_id, int64_t *depth,
		      struct err *err)
{
	struct prof_query *query;

	prof_query_open(&query, report->db,
			"SELECT track_id, depth FROM span_rows WHERE span_id = :span", err);
	prof_query_int(query, ":span", span_id);
	if (prof_query_next(query, &err->status, err)) {
		*track_id = prof_column_int(query, 0);
		*depth = prof_column_int(query, 1);
	} else if (!err_stuck(err)) {
		err_set(err, ST_NOTFOUND, "%s: no span has the number %lld",
			prof_db_path(report->db), (long long)span_id);
	}
	prof_query_close(query);
	if (!err_stuck(err) && (*depth < 0 || *depth == INT64_MAX))
		err_set(err, ST_FORMAT, "%s: span %lld is damaged: its depth is %lld",
			prof_db_path(report->db), (long long)span_id, (long long)*depth);
}

int ips_report_span_children(struct ips_report *report, struct ips_report_spans **out,
			     int64_t span_id, char *message, size_t size)
{
	struct ips_report_span_filter filter = ips_report_span_filter_all();
	int64_t track_id = IPS_NULL, depth = 0;
	struct err err = {ST_OK, ""};

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!report)
		return report_public__null_argument("report", message, size);
	find_span(report, span_id, &track_id, &depth, &err);
	if (!err_stuck(&err)) {
		filter.max_depth = depth + 1;
		*out = spans_open(report, span_id, track_id, depth, &filter, &err);
	}
	return report_public__status(err.status == ST_NOTFOUND ? NULL : report, &err, message,
				     size);
}

/* ---- rows ------------------------------------------------------------------------------------ */

const struct ips_report_span *ips_report_spans_next(struct ips_report_spans *cursor)
{
	const struct ips_report_track *track;
	struct ips_report_span *span;

	if (!cursor)
		return NULL;
	span = &cursor->span;
	if (!cursor_next(&cursor->cursor, span_fields, ARRAY_LEN(span_fields), span))
		return NULL;
	if (cursor->parent_depth != IPS_NULL && span->depth <= cursor->parent_depth) {
		cursor_stop(&cursor->cursor);
		return NULL;
	}
	span->track = report_public__track_index(cursor->cursor.report, span->track);
	track = report_public__item(cursor->cursor.report, PUBLIC_TRACKS, span->track);
	if (track && span->keys.ipu == IPS_NULL)
		span->keys.ipu = track->ipu;
	return span;
}

int ips_report_spans_close(struct ips_report_spans *cursor)
{
	return !cursor ? 0 : cursor_close(&cursor->cursor);
}
