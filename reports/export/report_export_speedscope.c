/*
 * `export speedscope`: the spans in speedscope's format: an evented profile per track, times in ns,
 * shared names.
 *
 * A further lane of a track that does not nest is a separate profile, written in a separate pass.
 * Threading: none. Ownership: an export owns its sink, walk and sites.
 */
#include "common/fmt.h"
#include "common/mem.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_sites.h"
#include "reports/export/report_walk.h"

struct scope {
	const struct report_export_request *request;
	struct report_sink sink;
	struct report_walk walk;
	struct report_sites sites;
	struct str text;        /* scratch */
	int lane;               /* lane being written */
	int last_lane;          /* greatest lane of the track so far */
	int64_t events, end_ns; /* of the profile */
	int64_t spans, profiles;
};

static void write_json_text(struct scope *scope, const char *text)
{
	struct jsonw w;

	str_clear(&scope->text);
	jsonw_init_str(&w, &scope->text, 0);
	jsonw_text(&w, !text ? "" : text);
	report_sink_add(&scope->sink, str_peek(&scope->text), scope->text.length);
	if (scope->text.failed)
		report_sink_fail(&scope->sink, err_nomem(scope->sink.err));
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void begin_profile(struct scope *scope, const struct prof_track *track)
{
	struct str name = {0};

	str_addf(&name, "%s", track->track);
	if (scope->lane > 0)
		str_addf(&name, " (%d)", scope->lane + 1);
	if (track->clock != IPS_HOST)
		str_add(&name, " (simulated)");
	report_sink_text(&scope->sink, scope->profiles++ > 0 ? ",\n" : "\n");
	report_sink_text(&scope->sink, "{\"type\":\"evented\",\"name\":");
	write_json_text(scope, str_peek(&name));
	report_sink_text(&scope->sink, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"events\":[");
	str_free(&name);
}

static void write_event(struct scope *scope, char type, int64_t at, int64_t site_id)
{
	struct report_sink *sink = &scope->sink;

	report_sink_text(sink, scope->events++ > 0 ? ",\n" : "\n");
	report_sink_text(sink, type == 'O' ? "{\"type\":\"O\",\"at\":" : "{\"type\":\"C\",\"at\":");
	report_sink_int(sink, at);
	report_sink_text(sink, ",\"frame\":");
	report_sink_int(sink, (int64_t)report_sites_find(&scope->sites, site_id));
	report_sink_add(sink, "}", 1);
	scope->end_ns = at;
}

static enum status enter_span(void *user, const struct prof_track *track,
			      const struct report_walk_span *span, struct err *err)
{
	struct scope *scope = user;

	(void)err; /* errors are stored in the sink */
	if (span->lane > scope->last_lane)
		scope->last_lane = span->lane;
	if (span->lane != scope->lane)
		return ST_OK;
	/* A track without spans gets no profile. */
	if (scope->events == 0)
		begin_profile(scope, track);
	write_event(scope, 'O', span->start_ns, span->site_id);
	if (span->dur_ns == 0)
		write_event(scope, 'C', span->start_ns, span->site_id);
	scope->spans++;
	return scope->sink.status;
}

static enum status leave_span(void *user, const struct prof_track *track,
			      const struct report_walk_enclosing *span, int lane, struct err *err)
{
	struct scope *scope = user;

	(void)track;
	(void)err;
	if (lane == scope->lane)
		write_event(scope, 'C', span->end_ns, span->site_id);
	return scope->sink.status;
}

static enum status write_track(struct scope *scope, const struct prof_track *track, struct err *err)
{
	const struct report_walk_callbacks callbacks = {enter_span, leave_span, scope};
	struct report_walk_counts counts;
	enum status status = ST_OK;

	scope->last_lane = 0;
	for (scope->lane = 0; scope->lane <= scope->last_lane && status == ST_OK; scope->lane++) {
		scope->events = 0;
		counts = scope->walk.counts;
		status = report_walk_spans(&scope->walk, track, &callbacks, err);
		/* Only the first pass counts. */
		if (scope->lane > 0)
			scope->walk.counts = counts;
		if (scope->events == 0)
			continue;
		report_sink_text(&scope->sink, "\n],\"endValue\":");
		report_sink_int(&scope->sink, scope->end_ns);
		report_sink_text(&scope->sink, "}");
	}
	return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_frames(struct scope *scope)
{
	report_sink_text(&scope->sink, ",\"shared\":{\"frames\":[");
	for (size_t i = 0; i < scope->sites.count; i++) {
		const struct report_site *site = &scope->sites.items[i];

		report_sink_text(&scope->sink, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
		write_json_text(scope, site->name);
		if (site->file) {
			report_sink_text(&scope->sink, ",\"file\":");
			write_json_text(scope, site->file);
		}
		if (site->line > 0) {
			report_sink_text(&scope->sink, ",\"line\":");
			report_sink_int(&scope->sink, site->line);
		}
		report_sink_text(&scope->sink, "}");
	}
	report_sink_text(&scope->sink, "\n]}");
}

static enum status write_all(struct scope *scope, struct err *err)
{
	enum status status = ST_OK;
	char model[256];

	report_sink_text(&scope->sink,
			 "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			 "\"exporter\":\"ipu-report " IPUSCOPE_VERSION "\",\"name\":");
	write_json_text(scope, prof_db_meta(scope->request->db, "model", model, sizeof(model))
				       ? model
				       : "run");
	report_sink_text(&scope->sink, ",\"activeProfileIndex\":0");
	write_frames(scope);
	report_sink_text(&scope->sink, ",\"profiles\":[");
	for (int i = 0; i < scope->walk.track_count && status == ST_OK; i++)
		if (report_walk_selects_track(&scope->walk, &scope->walk.tracks[i]))
			status = write_track(scope, &scope->walk.tracks[i], err);
	report_sink_text(&scope->sink, "\n]}\n");
	return status;
}

static enum status report_result(const struct scope *scope, const char *path, struct err *err)
{
	char spans[FMT_SIZE], profiles[FMT_SIZE], bytes[FMT_SIZE];
	struct str what = {0};
	enum status status;

	str_addf(&what, "%s span%s on %s track%s, %s", fmt_count(spans, scope->spans),
		 scope->spans == 1 ? "" : "s", fmt_count(profiles, scope->profiles),
		 scope->profiles == 1 ? "" : "s", fmt_bytes(bytes, scope->sink.bytes));
	status = what.failed
			 ? err_nomem(err)
			 : report_walk_print_result(&scope->walk, path, str_peek(&what), "", err);
	str_free(&what);
	return status;
}

enum status report_export_speedscope(const struct report_export_request *request, const char *path,
				     struct err *err)
{
	struct scope scope = {.request = request};
	enum status status = report_walk_open(&scope.walk, request, err);

	if (status == ST_OK)
		status = report_sites_read(&scope.sites, request->db, err);
	if (status == ST_OK)
		status = report_sink_open(&scope.sink, path, err);
	if (status == ST_OK)
		status = report_sink_close(&scope.sink, write_all(&scope, err));
	if (status == ST_OK)
		status = report_result(&scope, path, err);
	str_free(&scope.text);
	report_sites_free(&scope.sites);
	report_walk_close(&scope.walk);
	return status;
}
