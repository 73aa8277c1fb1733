/*
 * `export chrome`: a recording as Chrome's trace JSON, for Perfetto, chrome://tracing and
 * speedscope.
 *
 * B and E are the ends of spans and device steps, s and f those of flows; i are instants, C counter
 * samples; M names the lanes. Times are microseconds with the ns as decimals, from the run's start.
 * Spans of a lane are in order of start, parents before children. What the views have is there:
 * args are called as their columns.
 *
 * Threading: none. Ownership: an export has its sink, walk and caches.
 */
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "reports/export/report_chrome.h"
#include "reports/table/report_internal.h"

static const struct {
	const char *key, *one;
} kind_names[] = {
	[REPORT_CHROME_SPANS] = {"spans", "span"},
	[REPORT_CHROME_INSTANTS] = {"instants", "instant"},
	[REPORT_CHROME_FLOWS] = {"flows", "flow"},
	[REPORT_CHROME_COUNTERS] = {"counters", "counter sample"},
	[REPORT_CHROME_STEPS] = {"device_steps", "device step"},
};
_Static_assert(ARRAY_LEN(kind_names) == REPORT_CHROME_KINDS, "kind table out of step");

/* ---- lanes ----------------------------------------------------------------------------------- */

/* What the view `tracks` has of a track. */
static void name_track(struct report_chrome *chrome, const struct prof_track *track, int lane)
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
	report_chrome_thread(chrome, report_chrome_pid(track->rank, track->clock),
			     report_chrome_tid(track, lane),
			     report_chrome_sort(track->ipu, track->track_id), &args);
}

/* The process of the track, unless one before it has named it. */
static void name_process(struct report_chrome *chrome, int at)
{
	const struct report_walk *walk = &chrome->walk;
	const struct prof_track *track = &walk->tracks[at];
	const int64_t pid = report_chrome_pid(track->rank, track->clock);
	const char *name = track->clock == IPS_HOST ? "Host" : "IPUs (simulated)";
	struct str args = {0}, index = {0};

	for (int i = 0; i < at; i++)
		if (report_walk_wants(walk, &walk->tracks[i]) &&
		    report_chrome_pid(walk->tracks[i].rank, walk->tracks[i].clock) == pid)
			return;
	if (track->rank > 0)
		str_addf(&args, "{\"name\":\"%s, rank %lld\"}", name, (long long)track->rank);
	else
		str_addf(&args, "{\"name\":\"%s\"}", name);
	report_chrome_metadata(chrome, pid, 0, "process_name", &args);
	str_addf(&index, "{\"sort_index\":%lld}", (long long)pid);
	report_chrome_metadata(chrome, pid, 0, "process_sort_index", &index);
}

static void name_all(struct report_chrome *chrome)
{
	const struct report_walk *walk = &chrome->walk;

	for (int i = 0; i < walk->track_count; i++) {
		if (!report_walk_wants(walk, &walk->tracks[i]))
			continue;
		name_process(chrome, i);
		name_track(chrome, &walk->tracks[i], 0);
	}
}

/* ---- spans ----------------------------------------------------------------------------------- */

/*
 * A span is a B and an E. As an X, with its length, its end and what touches it would be sums that
 * readers make in floating point, and come out one after the other; written out, they are the same
 * number. Of a span that takes no time the E has the args too: by them speedscope knows that it is
 * not the end of another.
 */
struct span_lane {
	struct report_chrome *chrome;
	struct str heads[2]; /* events up to their pid and tid */
	int lane;            /* that they are of; -1: none yet */
	int named;           /* lanes of the track that have a name */
};

enum span_phase {
	SPAN_BEGIN,
	SPAN_END
};

/* The lane is another one than the last event's. */
static void turn_to(struct span_lane *lane, const struct prof_track *track, int number)
{
	static const char phases[] = {[SPAN_BEGIN] = 'B', [SPAN_END] = 'E'};

	lane->lane = number;
	for (; lane->named <= number; lane->named++)
		name_track(lane->chrome, track, lane->named);
	for (size_t i = 0; i < ARRAY_LEN(lane->heads); i++) {
		str_clear(&lane->heads[i]);
		str_addf(&lane->heads[i], ",\n{\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld,", phases[i],
			 (long long)report_chrome_pid(track->rank, track->clock),
			 (long long)report_chrome_tid(track, number));
		if (lane->heads[i].failed)
			report_sink_fail(&lane->chrome->sink, err_nomem(lane->chrome->sink.err));
	}
}

/* An event up to its time. */
static enum status put_head(struct span_lane *lane, const struct prof_track *track, int number,
			    enum span_phase phase, int64_t site_id, int64_t time_ns,
			    struct err *err)
{
	static const struct report_piece unknown = {"\"name\":\"(unknown)\"", 18};
	struct report_sink *sink = &lane->chrome->sink;
	struct report_piece site;
	enum status status = report_pieces_get(&lane->chrome->sites, site_id, &site, err);

	if (status != ST_OK)
		return status;
	if (site.length == 0)
		site = unknown;
	if (lane->lane != number)
		turn_to(lane, track, number);
	report_sink_add(sink, str_peek(&lane->heads[phase]), lane->heads[phase].length);
	report_sink_add(sink, site.bytes, site.length);
	report_sink_text(sink, ",\"ts\":");
	report_sink_us(sink, time_ns);
	return sink->status;
}

static enum status put_args(struct report_chrome *chrome, const struct report_walk_span *span,
			    struct err *err)
{
	static const struct report_piece open = {"\"open\":1", 8};
	struct report_piece operation, context;
	enum status status = report_pieces_get(&chrome->operations, span->site_id, &operation, err);
	bool comma = false;

	if (status == ST_OK)
		status = report_pieces_get(&chrome->contexts, span->context_id, &context, err);
	if (status != ST_OK)
		return status;
	report_sink_text(&chrome->sink, ",\"args\":{");
	report_chrome_piece(chrome, &context, &comma);
	report_chrome_piece(chrome, &operation, &comma);
	if (span->open)
		report_chrome_piece(chrome, &open, &comma);
	report_chrome_piece(chrome, &span->arguments, &comma);
	report_sink_text(&chrome->sink, "}}");
	return chrome->sink.status;
}

static enum status enter_span(void *user, const struct prof_track *track,
			      const struct report_walk_span *span, struct err *err)
{
	struct span_lane *lane = user;
	const enum span_phase last = span->dur_ns > 0 ? SPAN_BEGIN : SPAN_END;
	enum status status = ST_OK;

	for (int phase = SPAN_BEGIN; phase <= (int)last && status == ST_OK; phase++) {
		status = put_head(lane, track, span->lane, (enum span_phase)phase, span->site_id,
				  span->start_ns, err);
		if (status == ST_OK)
			status = put_args(lane->chrome, span, err);
	}
	return status;
}

static enum status leave_span(void *user, const struct prof_track *track,
			      const struct report_walk_around *span, int number, struct err *err)
{
	struct span_lane *lane = user;
	enum status status =
		put_head(lane, track, number, SPAN_END, span->site_id, span->end_ns, err);

	report_sink_text(&lane->chrome->sink, "}");
	return status;
}

static enum status put_spans(struct report_chrome *chrome, struct err *err)
{
	struct report_walk *walk = &chrome->walk;
	struct span_lane lane = {.chrome = chrome};
	const struct report_walk_taker taker = {enter_span, leave_span, &lane};
	enum status status = ST_OK;

	for (int i = 0; i < walk->track_count && status == ST_OK; i++) {
		if (!report_walk_wants(walk, &walk->tracks[i]))
			continue;
		lane.lane = -1;
		lane.named = 1;
		status = report_walk_spans(walk, &walk->tracks[i], &taker, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(lane.heads); i++)
		str_free(&lane.heads[i]);
	chrome->counts[REPORT_CHROME_SPANS] = walk->counts.spans;
	return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* What the run says of itself, and how much of it is here. */
static enum status put_facts(struct report_chrome *chrome, struct err *err)
{
	struct prof_query *query;
	struct str text = {0};
	struct jsonw w;
	enum status status = prof_query_open(&query, chrome->request->db,
					     "SELECT key, value FROM meta ORDER BY key", err);

	if (status != ST_OK)
		return status;
	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "tool", "ipu-report");
	jsonw_key_text(&w, "version", IPUSCOPE_VERSION);
	for (int i = 0; i < REPORT_CHROME_KINDS; i++)
		jsonw_key_int(&w, kind_names[i].key, chrome->counts[i]);
	jsonw_key(&w, "meta");
	jsonw_begin_object(&w);
	while (prof_query_next(query, &status, err))
		jsonw_key_text(&w, prof_column_text(query, 0), prof_column_text(query, 1));
	prof_query_close(query);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	report_sink_add(&chrome->sink, str_peek(&text), text.length);
	if (text.failed)
		status = err_nomem(err);
	str_free(&text);
	return status;
}

static enum status put_all(struct report_chrome *chrome, struct err *err)
{
	static enum status (*const parts[])(struct report_chrome * chrome, struct err * err) = {
		put_spans,
		report_chrome_flows,
		report_chrome_instants,
		report_chrome_counters,
		report_chrome_steps,
	};
	enum status status = ST_OK;

	report_sink_text(&chrome->sink, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	name_all(chrome);
	for (size_t i = 0; i < ARRAY_LEN(parts) && status == ST_OK; i++)
		status = parts[i](chrome, err);
	report_sink_text(&chrome->sink, "\n],\"otherData\":");
	if (status == ST_OK)
		status = put_facts(chrome, err);
	report_sink_text(&chrome->sink, "}\n");
	return status;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static enum status tell(const struct report_chrome *chrome, const char *path, uint64_t bytes,
			struct err *err)
{
	struct str what = {0}, notes = {0};
	char text[FMT_SIZE];
	enum status status;

	for (int i = 0; i < REPORT_CHROME_KINDS; i++)
		str_addf(&what, "%s %s%s, ", fmt_count(text, chrome->counts[i]), kind_names[i].one,
			 chrome->counts[i] == 1 ? "" : "s");
	str_add(&what, fmt_bytes(text, bytes));
	report_walk_note(&notes, chrome->loose_flows,
			 "flow left out: a span of its ends is not there",
			 "flows left out: a span of their ends is not there");
	report_walk_note(&notes, chrome->loose_steps, "device step left out: it has no time",
			 "device steps left out: they have no time");
	if (what.failed || notes.failed)
		status = err_nomem(err);
	else
		status = report_walk_tell(&chrome->walk, path, str_peek(&what), str_peek(&notes),
					  err);
	str_free(&what);
	str_free(&notes);
	return status;
}

static enum status open_caches(struct report_chrome *chrome, struct err *err)
{
	const struct {
		struct report_pieces *pieces;
		const char *sql;
	} caches[] = {
		{&chrome->sites, "SELECT s.site_id, c.value AS cat, n.value AS name FROM sites s "
				 "LEFT JOIN strings c ON c.string_id = s.category_id "
				 "LEFT JOIN strings n ON n.string_id = s.name_id "
				 "WHERE s.site_id BETWEEN :first AND :last ORDER BY s.site_id"},
		{&chrome->operations,
		 "SELECT s.site_id, o.value AS operation FROM sites s "
		 "LEFT JOIN strings o ON o.string_id = s.operation_id "
		 "WHERE s.site_id BETWEEN :first AND :last ORDER BY s.site_id"},
		{&chrome->contexts,
		 "SELECT context_id, mode, epoch, execution, weight_update, step, microbatch, "
		 "replica, ipu, stage, phase FROM contexts "
		 "WHERE context_id BETWEEN :first AND :last ORDER BY context_id"},
		{&chrome->names, "SELECT string_id, 'flow' AS cat, value AS name FROM strings "
				 "WHERE string_id BETWEEN :first AND :last ORDER BY string_id"},
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(caches) && status == ST_OK; i++)
		status = report_pieces_init(caches[i].pieces, chrome->request->db, caches[i].sql,
					    report_pieces_members, err);
	return status;
}

static void close_caches(struct report_chrome *chrome)
{
	report_pieces_fini(&chrome->sites);
	report_pieces_fini(&chrome->operations);
	report_pieces_fini(&chrome->contexts);
	report_pieces_fini(&chrome->names);
	str_free(&chrome->text);
}

enum status report_export_chrome(const struct report_export_request *request, const char *path,
				 struct err *err)
{
	struct report_chrome chrome = {.request = request};
	enum status status = report_walk_open(&chrome.walk, request, err);

	if (status == ST_OK)
		status = open_caches(&chrome, err);
	if (status == ST_OK)
		status = report_sink_open(&chrome.sink, path, err);
	if (status == ST_OK)
		status = report_sink_close(&chrome.sink, put_all(&chrome, err));
	if (status == ST_OK)
		status = tell(&chrome, path, chrome.sink.bytes, err);
	close_caches(&chrome);
	report_walk_close(&chrome.walk);
	return status;
}
