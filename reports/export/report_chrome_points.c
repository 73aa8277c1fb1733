/*
 * Instants, counter samples and flows of `export chrome`.
 *
 * A slice of rows is read in a transaction of its own; what came after the export began is left
 * out. Threading: none. Ownership: the export's.
 */
#include "common/mem.h"
#include "reports/export/report_chrome.h"
#include "reports/table/report_internal.h"

#define SLICE 16384

struct points {
	const char *last; /* asks for the greatest row */
	const char *sql;  /* at most :count rows, :after < row_id <= :last, the row_id first */
	enum report_chrome_kind kind;
	enum status (*put)(struct report_chrome *chrome, const struct prof_query *query,
			   struct err *err);
};

/* Read on after row *@at, to which it is moved. */
static enum status put_slice(struct report_chrome *chrome, const struct points *points,
			     int64_t last, int64_t *at, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, chrome->request->db, points->sql, err);
	int rows = 0;

	prof_query_int(query, ":after", *at);
	prof_query_int(query, ":last", last);
	prof_query_int(query, ":count", SLICE);
	while (prof_query_next(query, &status, err)) {
		rows++;
		*at = prof_column_int(query, 0);
		status = points->put(chrome, query, err);
	}
	prof_query_close(query);
	if (rows < SLICE)
		*at = last;
	chrome->sites.round++;
	chrome->contexts.round++;
	return status;
}

static enum status put_points(struct report_chrome *chrome, const struct points *points,
			      struct err *err)
{
	int64_t last, at = -INT64_MAX;
	enum status status = prof_db_number(chrome->request->db, points->last, &last, err);

	while (status == ST_OK && at < last) {
		status = put_slice(chrome, points, last, &at, err);
		if (status == ST_OK)
			status = report_export_tick(chrome->request, chrome->counts[points->kind],
						    last, err);
	}
	return status;
}

/* ---- instants -------------------------------------------------------------------------------- */

static enum status put_instant(struct report_chrome *chrome, const struct prof_query *query,
			       struct err *err)
{
	const int64_t time_ns = prof_column_int(query, 3), context_id = prof_column_int(query, 4);
	const struct prof_track *track =
		report_walk_track(&chrome->walk, prof_column_int(query, 1));
	struct report_piece site, context;
	bool has = false, comma = false;
	enum status status = ST_OK;

	if (track)
		status = report_walk_has(&chrome->walk, time_ns, time_ns, context_id, &has, err);
	if (status != ST_OK || !has)
		return status;
	status = report_pieces_get(&chrome->sites, prof_column_int(query, 2), &site, err);
	if (status == ST_OK)
		status = report_pieces_get(&chrome->contexts, context_id, &context, err);
	if (status != ST_OK)
		return status;
	report_chrome_event(chrome, 'i', report_chrome_pid(track->rank, track->clock),
			    report_chrome_tid(track, 0));
	comma = true;
	report_chrome_piece(chrome, &site, &comma);
	report_sink_text(&chrome->sink, ",\"s\":\"t\",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	report_sink_text(&chrome->sink, ",\"args\":{");
	comma = false;
	report_chrome_piece(chrome, &context, &comma);
	report_sink_text(&chrome->sink, "}}");
	chrome->counts[REPORT_CHROME_INSTANTS]++;
	return chrome->sink.status;
}

enum status report_chrome_instants(struct report_chrome *chrome, struct err *err)
{
	static const struct points points = {
		"SELECT max(row_id) FROM instant_rows",
		"SELECT row_id, track_id, site_id, time_ns, context_id FROM instant_rows "
		"WHERE row_id > :after AND row_id <= :last ORDER BY row_id LIMIT :count",
		REPORT_CHROME_INSTANTS,
		put_instant,
	};

	return put_points(chrome, &points, err);
}

/* ---- counters -------------------------------------------------------------------------------- */

static void put_json(struct report_chrome *chrome, struct str *text)
{
	report_sink_add(&chrome->sink, str_peek(text), text->length);
	if (text->failed)
		report_sink_fail(&chrome->sink, err_nomem(chrome->sink.err));
}

/* {"value":1} or, not finite, null and a word for it. SQLite has no NaN: it is stored as NULL. */
static void put_value(struct report_chrome *chrome, const struct prof_query *query)
{
	const struct report_cell cell = {.type = PROF_REAL, .real = prof_column_real(query, 4)};
	struct jsonw w;

	str_clear(&chrome->text);
	jsonw_init_str(&w, &chrome->text, 0);
	jsonw_begin_object(&w);
	report__json_cell(&w, "value", &cell);
	jsonw_end_object(&w);
	put_json(chrome, &chrome->text);
}

/* Readers know a counter by its process and name: tracks with counters of one name differ in id. */
static void put_id(struct report_chrome *chrome, const struct prof_track *track)
{
	struct jsonw w;

	str_clear(&chrome->text);
	jsonw_init_str(&w, &chrome->text, 0);
	jsonw_text(&w, track->track);
	report_sink_text(&chrome->sink, ",\"id\":");
	put_json(chrome, &chrome->text);
}

static enum status put_counter(struct report_chrome *chrome, const struct prof_query *query,
			       struct err *err)
{
	const struct prof_track *track =
		report_walk_track(&chrome->walk, prof_column_int(query, 1));
	const int64_t time_ns = prof_column_int(query, 3);
	struct report_piece site;
	bool comma = true;
	enum status status;

	if (!track || !report_walk_point(&chrome->walk, track->clock, time_ns))
		return ST_OK;
	status = report_pieces_get(&chrome->sites, prof_column_int(query, 2), &site, err);
	if (status != ST_OK)
		return status;
	report_chrome_event(chrome, 'C', report_chrome_pid(track->rank, track->clock),
			    report_chrome_tid(track, 0));
	report_chrome_piece(chrome, &site, &comma);
	if (chrome->counter_tracks > 1)
		put_id(chrome, track);
	report_sink_text(&chrome->sink, ",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	report_sink_text(&chrome->sink, ",\"args\":");
	put_value(chrome, query);
	report_sink_text(&chrome->sink, "}");
	chrome->counts[REPORT_CHROME_COUNTERS]++;
	return chrome->sink.status;
}

enum status report_chrome_counters(struct report_chrome *chrome, struct err *err)
{
	static const struct points points = {
		"SELECT max(row_id) FROM counter_rows",
		"SELECT row_id, track_id, site_id, time_ns, value FROM counter_rows "
		"WHERE row_id > :after AND row_id <= :last ORDER BY row_id LIMIT :count",
		REPORT_CHROME_COUNTERS,
		put_counter,
	};
	enum status status = prof_db_number(
		chrome->request->db, "SELECT count(DISTINCT track_id) FROM zones WHERE kind = 2",
		&chrome->counter_tracks, err);

	return status == ST_OK ? put_points(chrome, &points, err) : status;
}

/* ---- flows ----------------------------------------------------------------------------------- */

/* A flow leaves a span in its last ns and enters one in its first. */
static void put_end(struct report_chrome *chrome, const struct prof_track *track, char phase,
		    int64_t time_ns, int64_t id, const struct report_piece *name)
{
	bool comma = true;

	report_chrome_event(chrome, phase, report_chrome_pid(track->rank, track->clock),
			    report_chrome_tid(track, 0));
	report_chrome_piece(chrome, name, &comma);
	report_sink_text(&chrome->sink, phase == 'f' ? ",\"bp\":\"e\",\"id\":" : ",\"id\":");
	report_sink_int(&chrome->sink, id);
	report_sink_text(&chrome->sink, ",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	report_sink_text(&chrome->sink, "}");
}

/* Is the end whose columns begin at @column asked for? */
static enum status end_has(struct report_chrome *chrome, const struct prof_query *query, int column,
			   bool *has, struct err *err)
{
	const int64_t start_ns = prof_column_int(query, column + 1);
	int64_t dur_ns = prof_column_int(query, column + 2);

	*has = report_walk_track(&chrome->walk, prof_column_int(query, column)) != NULL;
	if (!*has)
		return ST_OK;
	if (dur_ns == IPS_NULL)
		dur_ns = 0;
	return report_walk_has(&chrome->walk, start_ns, start_ns + dur_ns,
			       prof_column_int(query, column + 3), has, err);
}

static enum status put_flow(struct report_chrome *chrome, const struct prof_query *query,
			    struct err *err)
{
	const int64_t id = prof_column_int(query, 0), from_ns = prof_column_int(query, 3);
	const int64_t dur_ns = prof_column_int(query, 4);
	struct report_piece name;
	bool from, to;
	enum status status = end_has(chrome, query, 2, &from, err);

	if (status == ST_OK)
		status = end_has(chrome, query, 6, &to, err);
	if (status == ST_OK)
		status = report_pieces_get(&chrome->names, prof_column_int(query, 1), &name, err);
	if (status != ST_OK)
		return status;
	if (prof_column_type(query, 2) == PROF_NULL || prof_column_type(query, 6) == PROF_NULL)
		chrome->loose_flows++;
	if (!from || !to)
		return ST_OK;
	put_end(chrome, report_walk_track(&chrome->walk, prof_column_int(query, 2)), 's',
		from_ns + (dur_ns > 0 ? dur_ns - 1 : 0), id, &name);
	put_end(chrome, report_walk_track(&chrome->walk, prof_column_int(query, 6)), 'f',
		prof_column_int(query, 7), id, &name);
	chrome->counts[REPORT_CHROME_FLOWS]++;
	return chrome->sink.status;
}

enum status report_chrome_flows(struct report_chrome *chrome, struct err *err)
{
	static const struct points points = {
		"SELECT max(row_id) FROM flow_rows",
		"SELECT f.row_id, f.name_id, a.track_id, a.start_ns, a.dur_ns, a.context_id, "
		"b.track_id, b.start_ns, b.dur_ns, b.context_id FROM flow_rows f "
		"LEFT JOIN span_rows a ON a.span_id = f.from_span_id "
		"LEFT JOIN span_rows b ON b.span_id = f.to_span_id "
		"WHERE f.row_id > :after AND f.row_id <= :last ORDER BY f.row_id LIMIT :count",
		REPORT_CHROME_FLOWS,
		put_flow,
	};

	return put_points(chrome, &points, err);
}
