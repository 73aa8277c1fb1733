/*
 * `export chrome`: a recording as Chrome's trace JSON, for Perfetto, chrome://tracing and
 * speedscope.
 *
 * Events: B and E bound spans and device steps, s and f bound flows, i are instants, C are counter
 * samples, M names the lanes. Times are microseconds from the run's start, with the ns as decimals.
 * Spans of a lane are ordered by start, parents before children. The trace is as complete as the
 * views; args are named like their columns.
 *
 * A process stands for a clock of a rank, a thread for a track. Thread ids: lane 0 of a track has
 * its track_id; further lanes of a track that does not nest have greater ids, device steps the
 * greatest.
 *
 * Threading: none. Ownership: an export owns its sink, walk and caches.
 */
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "reports/export/report_export.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_walk.h"
#include "reports/table/report_internal.h"

#define CHROME_LANE 1000000 /* distance of the thread ids of a track's lanes */

enum chrome_kind {
	CHROME_SPANS,
	CHROME_INSTANTS,
	CHROME_FLOWS,
	CHROME_COUNTERS,
	CHROME_STEPS,
	CHROME_KINDS
};

struct chrome_export {
	const struct report_export_request *request;
	struct err *err; /* sticky, shared with the walk, the caches and the sink */
	struct report_sink sink;
	struct report_walk walk;
	bool instant_args; /* there are some */
	struct report_pieces sites, operations, contexts, names;
	struct str text; /* scratch */
	int64_t counter_tracks;
	bool begun; /* an event was written */
	int64_t counts[CHROME_KINDS];
	int64_t loose_flows; /* flows without a span at an end */
	int64_t loose_steps; /* steps without a time */
};

/* ---- events and lanes ------------------------------------------------------------------------ */

#define SORT_GROUP 10000 /* sort positions per IPU */

static int64_t chrome_pid(int64_t rank, int clock)
{
	return 2 * (rank == IPS_NULL ? 0 : rank & INT32_MAX) + (clock == IPS_HOST ? 1 : 2);
}

static int64_t chrome_tid(const struct prof_track *track, int lane)
{
	return track->track_id % INT32_MAX + (int64_t)lane * CHROME_LANE;
}

static int64_t chrome_sort(int64_t ipu, int64_t place)
{
	const int64_t group = ipu == IPS_NULL ? 0 : 1 + (ipu & UINT16_MAX);

	return group * SORT_GROUP + place % SORT_GROUP;
}

static void begin_event(struct chrome_export *chrome, char phase, int64_t pid, int64_t tid)
{
	static const char begin[] = ",\n{\"ph\":\"X\",\"pid\":";
	struct report_sink *sink = &chrome->sink;
	char *at = report_sink_room(sink);
	/* The first event has no comma before it. */
	const size_t skipped = chrome->begun ? 0 : 2, length = sizeof(begin) - 1 - skipped;

	memcpy(at, begin + skipped, length);
	at[9 - skipped] = phase;
	chrome->begun = true;
	sink->used += length;
	report_sink_int(sink, pid);
	report_sink_text(sink, ",\"tid\":");
	report_sink_int(sink, tid);
}

static void write_metadata(struct chrome_export *chrome, int64_t pid, int64_t tid, const char *name,
			   struct str *args)
{
	begin_event(chrome, 'M', pid, tid);
	report_sink_text(&chrome->sink, ",\"name\":\"");
	report_sink_text(&chrome->sink, name);
	report_sink_text(&chrome->sink, "\",\"args\":");
	report_sink_add(&chrome->sink, str_peek(args), args->length);
	report_sink_text(&chrome->sink, "}");
	if (args->failed)
		err_nomem(chrome->err);
	str_free(args);
}

static void write_thread_name(struct chrome_export *chrome, int64_t pid, int64_t tid, int64_t sort,
			      struct str *args)
{
	struct str index = {0};

	write_metadata(chrome, pid, tid, "thread_name", args);
	str_addf(&index, "{\"sort_index\":%lld}", (long long)sort);
	write_metadata(chrome, pid, tid, "thread_sort_index", &index);
}

static void write_piece(struct chrome_export *chrome, struct report_piece piece, bool *comma)
{
	if (piece.length == 0)
		return;
	if (*comma)
		report_sink_add(&chrome->sink, ",", 1);
	*comma = true;
	report_sink_add(&chrome->sink, piece.bytes, piece.length);
}

/* ---- points in time -------------------------------------------------------------------------- */

/* Instants, counter samples and flows are read in slices of rows, each in a separate transaction.
 * Rows added after the export began are left out. */

#define SLICE 16384

struct points {
	const char *last; /* selects the greatest row_id */
	const char *sql;  /* at most :count rows, :after < row_id <= :last; row_id first */
	enum chrome_kind kind;
	void (*put)(struct chrome_export *chrome, const struct prof_query *query);
};

static void write_points(struct chrome_export *chrome, const struct points *points)
{
	int64_t last, at = -INT64_MAX;

	prof_db_number(chrome->request->db, points->last, &last, chrome->err);
	while (!err_stuck(chrome->err) && at < last) {
		struct prof_query *query;
		int rows = 0;

		/* The slice after the last row read. */
		prof_query_open(&query, chrome->request->db, points->sql, chrome->err);
		prof_query_int(query, ":after", at);
		prof_query_int(query, ":last", last);
		prof_query_int(query, ":count", SLICE);
		while (prof_query_next(query, &chrome->err->status, chrome->err)) {
			rows++;
			at = prof_column_int(query, 0);
			points->put(chrome, query);
		}
		prof_query_close(query);
		if (rows < SLICE)
			at = last;
		chrome->sites.round++;
		chrome->contexts.round++;
		if (!err_stuck(chrome->err))
			report_export_tick(chrome->request, chrome->counts[points->kind], last,
					   chrome->err);
	}
}

/* ---- instants -------------------------------------------------------------------------------- */

/* The arguments of an instant as members of an object, valid until the next call. */
static struct report_piece instant_args(struct chrome_export *chrome, int64_t instant_id)
{
	struct report_walk *walk = &chrome->walk;
	struct prof_query *query;

	if (!chrome->instant_args)
		return (struct report_piece){"", 0};
	str_clear(&walk->text);
	prof_query_open(&query, walk->db,
			"SELECT a.instant_id, n.value, a.value FROM instant_arg_rows a "
			"LEFT JOIN strings n ON n.string_id = a.name_id "
			"WHERE a.instant_id = :id ORDER BY a.name_id",
			chrome->err);
	prof_query_int(query, ":id", instant_id);
	while (prof_query_next(query, &chrome->err->status, chrome->err))
		report_walk_add_argument(walk, query);
	prof_query_close(query);
	if (walk->text.failed)
		err_nomem(chrome->err);
	return (struct report_piece){str_peek(&walk->text), walk->text.length};
}

static void write_instant(struct chrome_export *chrome, const struct prof_query *query)
{
	const int64_t time_ns = prof_column_int(query, 3), context_id = prof_column_int(query, 4);
	const struct prof_track *track =
		report_walk_track(&chrome->walk, prof_column_int(query, 1));
	bool comma = true;

	if (!track || !report_walk_selects_row(&chrome->walk, time_ns, time_ns, context_id))
		return;
	begin_event(chrome, 'i', chrome_pid(track->rank, track->clock), chrome_tid(track, 0));
	write_piece(chrome, report_pieces_get(&chrome->sites, prof_column_int(query, 2)), &comma);
	report_sink_text(&chrome->sink, ",\"s\":\"t\",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	report_sink_text(&chrome->sink, ",\"args\":{");
	comma = false;
	write_piece(chrome, report_pieces_get(&chrome->contexts, context_id), &comma);
	write_piece(chrome, instant_args(chrome, prof_column_int(query, 0)), &comma);
	report_sink_text(&chrome->sink, "}}");
	chrome->counts[CHROME_INSTANTS]++;
}

static void write_instants(struct chrome_export *chrome)
{
	static const struct points points = {
		"SELECT max(row_id) FROM instant_rows",
		"SELECT row_id, track_id, site_id, time_ns, context_id FROM instant_rows "
		"WHERE row_id > :after AND row_id <= :last ORDER BY row_id LIMIT :count",
		CHROME_INSTANTS,
		write_instant,
	};
	int64_t any;

	prof_db_number(chrome->walk.db, "SELECT instant_id FROM instant_arg_rows LIMIT 1", &any,
		       chrome->err);
	chrome->instant_args = any != IPS_NULL;
	write_points(chrome, &points);
}

/* ---- counters -------------------------------------------------------------------------------- */

static void write_counter(struct chrome_export *chrome, const struct prof_query *query)
{
	const struct prof_track *track =
		report_walk_track(&chrome->walk, prof_column_int(query, 1));
	const int64_t time_ns = prof_column_int(query, 3);
	const struct report_cell cell = {.type = PROF_REAL, .real = prof_column_real(query, 4)};
	bool comma = true;
	struct jsonw w;

	if (!track || !report_walk_selects_point(&chrome->walk, track, time_ns))
		return;
	begin_event(chrome, 'C', chrome_pid(track->rank, track->clock), chrome_tid(track, 0));
	write_piece(chrome, report_pieces_get(&chrome->sites, prof_column_int(query, 2)), &comma);
	/* Readers identify a counter by process and name; the id separates tracks with equal
	 * names. */
	if (chrome->counter_tracks > 1) {
		report_sink_text(&chrome->sink, ",\"id\":");
		report_sink_json(&chrome->sink, &chrome->text, track->track);
	}
	report_sink_text(&chrome->sink, ",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	report_sink_text(&chrome->sink, ",\"args\":");
	/* {"value":1}, or null and a word for a non-finite value. SQLite stores NaN as NULL. */
	str_clear(&chrome->text);
	jsonw_init_str(&w, &chrome->text, 0);
	jsonw_begin_object(&w);
	report__json_cell(&w, "value", &cell);
	jsonw_end_object(&w);
	report_sink_add(&chrome->sink, str_peek(&chrome->text), chrome->text.length);
	if (chrome->text.failed)
		err_nomem(chrome->err);
	report_sink_text(&chrome->sink, "}");
	chrome->counts[CHROME_COUNTERS]++;
}

static void write_counters(struct chrome_export *chrome)
{
	static const struct points points = {
		"SELECT max(row_id) FROM counter_rows",
		"SELECT row_id, track_id, site_id, time_ns, value FROM counter_rows "
		"WHERE row_id > :after AND row_id <= :last ORDER BY row_id LIMIT :count",
		CHROME_COUNTERS,
		write_counter,
	};

	prof_db_number(chrome->request->db,
		       "SELECT count(DISTINCT track_id) FROM zones WHERE kind = 2",
		       &chrome->counter_tracks, chrome->err);
	write_points(chrome, &points);
}

/* ---- flows ----------------------------------------------------------------------------------- */

/*
 * A flow leaves a span in the span's last ns and enters one in its first. Readers pair a start with
 * a later end. If the spans overlap (a call that continues beside what it launched), the flow
 * leaves when the other span begins, or, if that began first, enters it later.
 */
static void flow_times(const struct prof_query *query, int64_t *out_ns, int64_t *in_ns)
{
	const int64_t from_ns = prof_column_int(query, 3), dur_ns = prof_column_int(query, 4);
	const int64_t to_ns = prof_column_int(query, 7), to_dur_ns = prof_column_int(query, 8);
	const int64_t last_ns = dur_ns > 0 ? sat_add(from_ns, dur_ns - 1) : from_ns;

	*out_ns = max(from_ns, min(last_ns, to_ns));
	*in_ns = max(to_ns,
		     to_dur_ns == IPS_NULL ? *out_ns : min(*out_ns, sat_add(to_ns, to_dur_ns)));
}

/* Write the side whose span's columns begin at @column. The arguments name that span exactly: at
 * @time_ns one within it may be open. */
static void write_flow_end(struct chrome_export *chrome, const struct prof_query *query, int column,
			   char phase, int64_t time_ns, struct report_piece name)
{
	const struct prof_track *track =
		report_walk_track(&chrome->walk, prof_column_int(query, column));
	const int64_t dur_ns = prof_column_int(query, column + 2);
	bool comma = true;

	begin_event(chrome, phase, chrome_pid(track->rank, track->clock), chrome_tid(track, 0));
	write_piece(chrome, name, &comma);
	report_sink_text(&chrome->sink, phase == 'f' ? ",\"bp\":\"e\",\"id\":" : ",\"id\":");
	report_sink_int(&chrome->sink, prof_column_int(query, 0));
	report_sink_text(&chrome->sink, ",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	if (dur_ns != IPS_NULL) {
		report_sink_text(&chrome->sink, ",\"args\":{\"span_start_ns\":");
		report_sink_int(&chrome->sink, prof_column_int(query, column + 1));
		report_sink_text(&chrome->sink, ",\"span_dur_ns\":");
		report_sink_int(&chrome->sink, dur_ns);
		report_sink_text(&chrome->sink, "}");
	}
	report_sink_text(&chrome->sink, "}");
}

/* Return whether the request selects the end whose columns begin at @column. */
static bool flow_end_selected(struct chrome_export *chrome, const struct prof_query *query,
			      int column)
{
	const int64_t start_ns = prof_column_int(query, column + 1);
	const int64_t dur_ns = prof_column_int(query, column + 2);

	return report_walk_track(&chrome->walk, prof_column_int(query, column)) &&
	       report_walk_selects_row(&chrome->walk, start_ns,
				       sat_add(start_ns, dur_ns == IPS_NULL ? 0 : dur_ns),
				       prof_column_int(query, column + 3));
}

static void write_flow(struct chrome_export *chrome, const struct prof_query *query)
{
	struct report_piece name;
	int64_t out_ns, in_ns;

	if (prof_column_type(query, 2) == PROF_NULL || prof_column_type(query, 6) == PROF_NULL)
		chrome->loose_flows++;
	if (!flow_end_selected(chrome, query, 2) || !flow_end_selected(chrome, query, 6))
		return;
	name = report_pieces_get(&chrome->names, prof_column_int(query, 1));
	flow_times(query, &out_ns, &in_ns);
	write_flow_end(chrome, query, 2, 's', out_ns, name);
	write_flow_end(chrome, query, 6, 'f', in_ns, name);
	chrome->counts[CHROME_FLOWS]++;
}

static void write_flows(struct chrome_export *chrome)
{
	static const struct points points = {
		"SELECT max(row_id) FROM flow_rows",
		"SELECT f.row_id, f.name_id, a.track_id, a.start_ns, a.dur_ns, a.context_id, "
		"b.track_id, b.start_ns, b.dur_ns, b.context_id FROM flow_rows f "
		"LEFT JOIN span_rows a ON a.span_id = f.from_span_id "
		"LEFT JOIN span_rows b ON b.span_id = f.to_span_id "
		"WHERE f.row_id > :after AND f.row_id <= :last ORDER BY f.row_id LIMIT :count",
		CHROME_FLOWS,
		write_flow,
	};

	write_points(chrome, &points);
}

/* ---- steps of the device --------------------------------------------------------------------- */

/* A lane per IPU, beside the spans of its programs. Steps are read from their view, which expands
 * the recorded traces, in one transaction: only traced executions have any. */

#define STEPS_TID      1000000000 /* thread id of the first lane */
#define STEPS_POSITION 9999       /* sort position, after the tracks of the IPU */
#define TICK_STEPS     16384

struct step_lane {
	int64_t rank, ipu, tid, end_ns;
	int number; /* among the IPU's lanes, from 0 */
};

struct step_lanes {
	struct step_lane *items;
	size_t count, capacity;
};

/* Columns from STEPS_ARGS on become args. */
#define STEPS                                                                                      \
	"SELECT rank, ipu, start_ns, dur_ns, type, mode, epoch, execution, weight_update, step, "  \
	"microbatch, replica, ipu, stage, phase, operation, name AS program, program_id, "         \
	"trace_step, start_cycle, cycles, active_tiles, bytes_in, bytes_out FROM device_steps "    \
	"WHERE :execution IS NULL OR execution = :execution"
#define STEPS_ARGS 5

static void name_step_lane(struct chrome_export *chrome, const struct step_lane *lane)
{
	struct str args = {0}, name = {0};
	struct jsonw w;

	str_addf(&name, "IPU %lld steps", (long long)(lane->ipu == IPS_NULL ? 0 : lane->ipu));
	if (lane->number > 0)
		str_addf(&name, " (%d)", lane->number + 1);
	jsonw_init_str(&w, &args, 0);
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "name", str_peek(&name));
	jsonw_key_text(&w, "clock", "device");
	if (lane->rank != IPS_NULL)
		jsonw_key_int(&w, "rank", lane->rank);
	if (lane->ipu != IPS_NULL)
		jsonw_key_int(&w, "ipu", lane->ipu);
	jsonw_end_object(&w);
	args.failed |= name.failed;
	str_free(&name);
	write_thread_name(chrome, chrome_pid(lane->rank, IPS_DEVICE), lane->tid,
			  chrome_sort(lane->ipu, STEPS_POSITION), &args);
}

/* Find the first lane of the IPU that is free at @start_ns; NULL: out of memory. Steps are
 * sequential, so usually one lane suffices. */
static struct step_lane *find_step_lane(struct chrome_export *chrome, struct step_lanes *lanes,
					int64_t rank, int64_t ipu, int64_t start_ns)
{
	struct step_lane *lane;
	int number = 0;

	for (size_t i = 0; i < lanes->count; i++) {
		lane = &lanes->items[i];
		if (lane->rank != rank || lane->ipu != ipu)
			continue;
		number++;
		if (lane->end_ns <= start_ns)
			return lane;
	}
	if (mem_grow(&lanes->items, &lanes->capacity, lanes->count + 1, sizeof(*lanes->items)) !=
	    0) {
		err_nomem(chrome->err);
		return NULL;
	}
	lane = &lanes->items[lanes->count];
	*lane = (struct step_lane){.rank = rank,
				   .ipu = ipu,
				   .tid = STEPS_TID + (int64_t)lanes->count++,
				   .number = number};
	name_step_lane(chrome, lane);
	return lane;
}

/* Write integers and texts; omit NULL. */
static void write_step_args(struct chrome_export *chrome, const struct prof_query *query)
{
	struct report_sink *sink = &chrome->sink;
	const char *comma = "\"";

	report_sink_text(sink, ",\"args\":{");
	for (int i = STEPS_ARGS; i < prof_column_count(query); i++) {
		const enum prof_type type = prof_column_type(query, i);

		if (type == PROF_NULL)
			continue;
		report_sink_text(sink, comma);
		report_sink_text(sink, prof_column_name(query, i));
		report_sink_text(sink, "\":");
		if (type == PROF_INT)
			report_sink_int(sink, prof_column_int(query, i));
		else
			report_sink_json(sink, &chrome->text, prof_column_text(query, i));
		comma = ",\"";
	}
	report_sink_text(sink, "}");
}

/* Write one end of a step. Steps touch on a lane. For a step of length 0 the end has the arguments,
 * too, so that readers can distinguish it from the end of the previous step. */
static void write_step_end(struct chrome_export *chrome, const struct step_lane *lane, char phase,
			   int64_t time_ns, const struct prof_query *query)
{
	begin_event(chrome, phase, chrome_pid(lane->rank, IPS_DEVICE), lane->tid);
	report_sink_text(&chrome->sink, ",\"cat\":\"device_step\",\"name\":");
	report_sink_json(&chrome->sink, &chrome->text, prof_column_text(query, 4));
	report_sink_text(&chrome->sink, ",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	if (phase == 'B' || prof_column_int(query, 3) == 0)
		write_step_args(chrome, query);
	report_sink_text(&chrome->sink, "}");
}

static void write_step(struct chrome_export *chrome, struct step_lanes *lanes,
		       const struct prof_query *query)
{
	const int64_t start_ns = prof_column_int(query, 2), dur_ns = prof_column_int(query, 3);
	const int64_t end_ns = sat_add(start_ns, dur_ns);
	struct step_lane *lane;

	if (start_ns == IPS_NULL || dur_ns < 0) {
		chrome->loose_steps++;
		return;
	}
	if (start_ns >= chrome->request->to_ns || end_ns < chrome->request->from_ns)
		return;
	lane = find_step_lane(chrome, lanes, prof_column_int(query, 0), prof_column_int(query, 1),
			      start_ns);
	if (!lane)
		return;
	lane->end_ns = end_ns;
	write_step_end(chrome, lane, 'B', start_ns, query);
	write_step_end(chrome, lane, 'E', end_ns, query);
	chrome->counts[CHROME_STEPS]++;
}

static void write_steps(struct chrome_export *chrome)
{
	const struct report_export_request *request = chrome->request;
	int64_t *count = &chrome->counts[CHROME_STEPS];
	struct step_lanes lanes = {0};
	struct prof_query *query;

	if (request->clock == IPS_HOST)
		return;
	prof_query_open(&query, request->db, STEPS, chrome->err);
	prof_query_int(query, ":execution", request->execution);
	while (prof_query_next(query, &chrome->err->status, chrome->err)) {
		write_step(chrome, &lanes, query);
		if (*count % TICK_STEPS == 0 && !err_stuck(chrome->err))
			report_export_tick(request, *count, 0, chrome->err);
	}
	prof_query_close(query);
	mem_free(lanes.items);
}

/* ---- kinds of events ------------------------------------------------------------------------- */

static const struct {
	const char *key, *one;
} kind_names[] = {
	[CHROME_SPANS] = {"spans", "span"},
	[CHROME_INSTANTS] = {"instants", "instant"},
	[CHROME_FLOWS] = {"flows", "flow"},
	[CHROME_COUNTERS] = {"counters", "counter sample"},
	[CHROME_STEPS] = {"device_steps", "device step"},
};
_Static_assert(ARRAY_LEN(kind_names) == CHROME_KINDS, "kind table out of step");

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Name a track's lane, with the columns of the view `tracks`. */
static void name_track(struct chrome_export *chrome, const struct prof_track *track, int lane)
{
	const char *name = !track->name ? track->track : track->name;
	struct str args = {0}, further = {0};
	struct jsonw w;

	str_addf(&further, "%s (%d)", !name ? "" : name, lane + 1);
	jsonw_init_str(&w, &args, 0);
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "name", lane == 0 ? name : str_peek(&further));
	jsonw_key_text(&w, "track", track->track);
	jsonw_key_text(&w, "clock", track->clock == IPS_HOST ? "host" : "device");
	if (track->rank != IPS_NULL)
		jsonw_key_int(&w, "rank", track->rank);
	if (track->ipu != IPS_NULL)
		jsonw_key_int(&w, "ipu", track->ipu);
	if (track->parent)
		jsonw_key_text(&w, "parent", track->parent);
	if (lane > 0)
		jsonw_key_int(&w, "lane", lane);
	jsonw_end_object(&w);
	args.failed |= further.failed;
	str_free(&further);
	write_thread_name(chrome, chrome_pid(track->rank, track->clock), chrome_tid(track, lane),
			  chrome_sort(track->ipu, track->track_id), &args);
}

/* Name the process of the track, unless an earlier track did. */
static void name_process(struct chrome_export *chrome, int at)
{
	const struct report_walk *walk = &chrome->walk;
	const struct prof_track *track = &walk->tracks[at];
	const int64_t pid = chrome_pid(track->rank, track->clock);
	const char *name = track->clock == IPS_HOST ? "Host" : "IPUs (simulated)";
	struct str args = {0}, index = {0};

	for (int i = 0; i < at; i++)
		if (report_walk_selects_track(walk, &walk->tracks[i]) &&
		    chrome_pid(walk->tracks[i].rank, walk->tracks[i].clock) == pid)
			return;
	if (track->rank > 0)
		str_addf(&args, "{\"name\":\"%s, rank %lld\"}", name, (long long)track->rank);
	else
		str_addf(&args, "{\"name\":\"%s\"}", name);
	write_metadata(chrome, pid, 0, "process_name", &args);
	str_addf(&index, "{\"sort_index\":%lld}", (long long)pid);
	write_metadata(chrome, pid, 0, "process_sort_index", &index);
}

/* ---- spans ----------------------------------------------------------------------------------- */

/*
 * A span is written as B and E, not as X with a duration: readers would compute the end of an X in
 * floating point, and touching spans could come out in sequence or overlapping; as B and E they
 * have the same number. A span of length 0 is written as X, because its E could be paired with
 * another B.
 */
struct span_lane {
	struct chrome_export *chrome;
	struct str heads[3]; /* events up to pid and tid, by enum span_phase */
	int lane;            /* lane of the heads; -1: none yet */
	int named;           /* number of named lanes of the track */
};

enum span_phase {
	SPAN_BEGIN,
	SPAN_END,
	SPAN_MOMENT /* a span of length 0 */
};

/* Rebuild the heads for another lane than the last event's. */
static void select_lane(struct span_lane *lane, const struct prof_track *track, int number)
{
	static const char phases[] = {[SPAN_BEGIN] = 'B', [SPAN_END] = 'E', [SPAN_MOMENT] = 'X'};

	lane->lane = number;
	for (; lane->named <= number; lane->named++)
		name_track(lane->chrome, track, lane->named);
	for (size_t i = 0; i < ARRAY_LEN(lane->heads); i++) {
		str_clear(&lane->heads[i]);
		str_addf(&lane->heads[i], ",\n{\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld,", phases[i],
			 (long long)chrome_pid(track->rank, track->clock),
			 (long long)chrome_tid(track, number));
		if (lane->heads[i].failed)
			err_nomem(lane->chrome->err);
	}
}

/* Write an event up to its time. */
static void write_head(struct span_lane *lane, const struct prof_track *track, int number,
		       enum span_phase phase, int64_t site_id, int64_t time_ns)
{
	static const struct report_piece unknown = {"\"name\":\"(unknown)\"", 18};
	struct report_sink *sink = &lane->chrome->sink;
	struct report_piece site = report_pieces_get(&lane->chrome->sites, site_id);

	if (site.length == 0)
		site = unknown;
	if (lane->lane != number)
		select_lane(lane, track, number);
	report_sink_add(sink, str_peek(&lane->heads[phase]), lane->heads[phase].length);
	report_sink_add(sink, site.bytes, site.length);
	report_sink_text(sink, ",\"ts\":");
	report_sink_us(sink, time_ns);
}

static void enter_span(void *user, const struct prof_track *track,
		       const struct report_walk_span *span)
{
	static const struct report_piece open = {"\"open\":1", 8};
	struct span_lane *lane = user;
	struct chrome_export *chrome = lane->chrome;
	bool comma = false;

	if (span->dur_ns > 0) {
		write_head(lane, track, span->lane, SPAN_BEGIN, span->site_id, span->start_ns);
	} else {
		write_head(lane, track, span->lane, SPAN_MOMENT, span->site_id, span->start_ns);
		report_sink_text(&chrome->sink, ",\"dur\":0");
	}
	report_sink_text(&chrome->sink, ",\"args\":{");
	write_piece(chrome, report_pieces_get(&chrome->contexts, span->context_id), &comma);
	write_piece(chrome, report_pieces_get(&chrome->operations, span->site_id), &comma);
	if (span->open)
		write_piece(chrome, open, &comma);
	write_piece(chrome, span->arguments, &comma);
	report_sink_text(&chrome->sink, "}}");
}

static void leave_span(void *user, const struct prof_track *track,
		       const struct report_walk_enclosing *span, int number)
{
	struct span_lane *lane = user;

	write_head(lane, track, number, SPAN_END, span->site_id, span->end_ns);
	report_sink_text(&lane->chrome->sink, "}");
}

static void write_spans(struct chrome_export *chrome)
{
	struct report_walk *walk = &chrome->walk;
	struct span_lane lane = {.chrome = chrome};
	const struct report_walk_callbacks callbacks = {enter_span, leave_span, &lane};

	for (int i = 0; i < walk->track_count; i++) {
		if (!report_walk_selects_track(walk, &walk->tracks[i]))
			continue;
		lane.lane = -1;
		lane.named = 1;
		report_walk_spans(walk, &walk->tracks[i], &callbacks);
	}
	for (size_t i = 0; i < ARRAY_LEN(lane.heads); i++)
		str_free(&lane.heads[i]);
	chrome->counts[CHROME_SPANS] = walk->counts.spans;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Write the run's meta and the numbers of events. */
static void write_meta(struct chrome_export *chrome)
{
	struct prof_query *query;
	struct str text = {0};
	struct jsonw w;

	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "tool", "ipu-report");
	jsonw_key_text(&w, "version", IPUSCOPE_VERSION);
	for (int i = 0; i < CHROME_KINDS; i++)
		jsonw_key_int(&w, kind_names[i].key, chrome->counts[i]);
	jsonw_key_object(&w, "meta");
	prof_query_open(&query, chrome->request->db, "SELECT key, value FROM meta ORDER BY key",
			chrome->err);
	while (prof_query_next(query, &chrome->err->status, chrome->err))
		jsonw_key_text(&w, prof_column_text(query, 0), prof_column_text(query, 1));
	prof_query_close(query);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	report_sink_add(&chrome->sink, str_peek(&text), text.length);
	if (text.failed)
		err_nomem(chrome->err);
	str_free(&text);
}

static void write_all(struct chrome_export *chrome)
{
	static void (*const parts[])(struct chrome_export * chrome) = {
		write_spans, write_flows, write_instants, write_counters, write_steps,
	};
	const struct report_walk *walk = &chrome->walk;

	report_sink_text(&chrome->sink, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (int i = 0; i < walk->track_count; i++) {
		if (!report_walk_selects_track(walk, &walk->tracks[i]))
			continue;
		name_process(chrome, i);
		name_track(chrome, &walk->tracks[i], 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(parts) && !err_stuck(chrome->err); i++)
		parts[i](chrome);
	report_sink_text(&chrome->sink, "\n],\"otherData\":");
	if (!err_stuck(chrome->err))
		write_meta(chrome);
	report_sink_text(&chrome->sink, "}\n");
}

/* ---- report to the user ---------------------------------------------------------------------- */

static void report_result(const struct chrome_export *chrome, const char *path)
{
	struct str what = {0}, notes = {0};
	char text[FMT_SIZE];

	for (int i = 0; i < CHROME_KINDS; i++)
		str_addf(&what, "%s %s%s, ", fmt_count(text, chrome->counts[i]), kind_names[i].one,
			 chrome->counts[i] == 1 ? "" : "s");
	report_walk_notes(&chrome->walk, &notes);
	report_walk_note(&notes, chrome->loose_flows,
			 "flow left out: a span of its ends is not there",
			 "flows left out: a span of their ends is not there");
	report_walk_note(&notes, chrome->loose_steps, "device step left out: it has no time",
			 "device steps left out: they have no time");
	notes.failed |= what.failed;
	report_export_print_result(chrome->request, path, &notes, chrome->err, "%s%s",
				   str_peek(&what), fmt_bytes(text, chrome->sink.bytes));
	str_free(&what);
}

enum status report_export_chrome(const struct report_export_request *request, const char *path,
				 struct err *err)
{
	struct err own;
	struct chrome_export chrome = {.request = request, .err = err_start(err, &own)};
	const struct {
		struct report_pieces *pieces;
		const char *sql;
	} caches[] = {
		{&chrome.sites, "SELECT s.site_id, c.value AS cat, n.value AS name FROM sites s "
				"LEFT JOIN strings c ON c.string_id = s.category_id "
				"LEFT JOIN strings n ON n.string_id = s.name_id "
				"WHERE s.site_id BETWEEN :first AND :last ORDER BY s.site_id"},
		{&chrome.operations, "SELECT s.site_id, o.value AS operation FROM sites s "
				     "LEFT JOIN strings o ON o.string_id = s.operation_id "
				     "WHERE s.site_id BETWEEN :first AND :last ORDER BY s.site_id"},
		{&chrome.contexts,
		 "SELECT context_id, mode, epoch, execution, weight_update, step, microbatch, "
		 "replica, ipu, stage, phase FROM contexts "
		 "WHERE context_id BETWEEN :first AND :last ORDER BY context_id"},
		{&chrome.names, "SELECT string_id, 'flow' AS cat, value AS name FROM strings "
				"WHERE string_id BETWEEN :first AND :last ORDER BY string_id"},
	};

	err = chrome.err;
	report_walk_open(&chrome.walk, request, err);
	for (size_t i = 0; i < ARRAY_LEN(caches); i++)
		report_pieces_init(caches[i].pieces, request->db, caches[i].sql,
				   report_pieces_members, err);
	if (!err_stuck(err) && report_sink_open(&chrome.sink, path, err) == ST_OK) {
		write_all(&chrome);
		report_sink_close(&chrome.sink, err->status);
	}
	report_result(&chrome, path);
	report_pieces_fini(&chrome.sites);
	report_pieces_fini(&chrome.operations);
	report_pieces_fini(&chrome.contexts);
	report_pieces_fini(&chrome.names);
	str_free(&chrome.text);
	report_walk_close(&chrome.walk);
	return err->status;
}
