/*
 * `export speedscope`: the spans in speedscope's format: an evented profile per track, times in ns,
 * shared names.
 *
 * A further lane of a track that does not nest is a separate profile, written in a separate pass.
 * Threading: none. Ownership: an export owns its sink, walk and sites.
 */
#include "common/fmt.h"
#include "common/minmax.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_walk.h"

struct scope {
	struct report_sink sink;
	struct report_walk walk;
	struct report_sites sites;
	struct str text;        /* scratch */
	int lane;               /* lane being written */
	int last_lane;          /* greatest lane of the track so far */
	int64_t events, end_ns; /* of the profile */
	int64_t spans, profiles;
};

/* ---- profiles -------------------------------------------------------------------------------- */

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

static void enter_span(void *user, const struct prof_track *track,
		       const struct report_walk_span *span)
{
	struct scope *scope = user;

	scope->last_lane = max(scope->last_lane, span->lane);
	if (span->lane != scope->lane)
		return;
	/* A track without spans gets no profile. */
	if (scope->events == 0) {
		struct str name = {0};

		str_addf(&name, "%s", track->track);
		if (scope->lane > 0)
			str_addf(&name, " (%d)", scope->lane + 1);
		if (track->clock != IPS_HOST)
			str_add(&name, " (simulated)");
		report_sink_text(&scope->sink, scope->profiles++ > 0 ? ",\n" : "\n");
		report_sink_text(&scope->sink, "{\"type\":\"evented\",\"name\":");
		report_sink_json(&scope->sink, &scope->text, str_peek(&name));
		report_sink_text(&scope->sink,
				 ",\"unit\":\"nanoseconds\",\"startValue\":0,\"events\":[");
		str_free(&name);
	}
	write_event(scope, 'O', span->start_ns, span->site_id);
	if (span->dur_ns == 0)
		write_event(scope, 'C', span->start_ns, span->site_id);
	scope->spans++;
}

static void leave_span(void *user, const struct prof_track *track,
		       const struct report_walk_enclosing *span, int lane)
{
	struct scope *scope = user;

	(void)track;
	if (lane == scope->lane)
		write_event(scope, 'C', span->end_ns, span->site_id);
}

static void write_track(struct scope *scope, const struct prof_track *track)
{
	const struct report_walk_callbacks callbacks = {enter_span, leave_span, scope};
	struct report_walk_counts counts;

	scope->last_lane = 0;
	for (scope->lane = 0; scope->lane <= scope->last_lane; scope->lane++) {
		scope->events = 0;
		counts = scope->walk.counts;
		report_walk_spans(&scope->walk, track, &callbacks);
		/* Only the first pass counts. */
		if (scope->lane > 0)
			scope->walk.counts = counts;
		if (scope->events == 0)
			continue;
		report_sink_text(&scope->sink, "\n],\"endValue\":");
		report_sink_int(&scope->sink, scope->end_ns);
		report_sink_text(&scope->sink, "}");
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_all(struct scope *scope)
{
	char model[256];

	report_sink_text(&scope->sink,
			 "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			 "\"exporter\":\"ipu-report " IPUSCOPE_VERSION "\",\"name\":");
	report_sink_json(&scope->sink, &scope->text,
			 prof_db_meta(scope->walk.db, "model", model, sizeof(model)) ? model
										     : "run");
	report_sink_text(&scope->sink, ",\"activeProfileIndex\":0");
	report_sink_text(&scope->sink, ",\"shared\":{\"frames\":[");
	for (size_t i = 0; i < scope->sites.count; i++) {
		const struct report_site *site = &scope->sites.items[i];

		report_sink_text(&scope->sink, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
		report_sink_json(&scope->sink, &scope->text, site->name);
		if (site->file) {
			report_sink_text(&scope->sink, ",\"file\":");
			report_sink_json(&scope->sink, &scope->text, site->file);
		}
		if (site->line > 0) {
			report_sink_text(&scope->sink, ",\"line\":");
			report_sink_int(&scope->sink, site->line);
		}
		report_sink_text(&scope->sink, "}");
	}
	report_sink_text(&scope->sink, "\n]}");
	report_sink_text(&scope->sink, ",\"profiles\":[");
	for (int i = 0; i < scope->walk.track_count; i++)
		if (report_walk_selects_track(&scope->walk, &scope->walk.tracks[i]))
			write_track(scope, &scope->walk.tracks[i]);
	report_sink_text(&scope->sink, "\n]}\n");
}

enum status report_export_speedscope(const struct report_export_request *request, const char *path,
				     struct err *err)
{
	struct scope scope = {0};
	struct err own;
	char spans[FMT_SIZE], profiles[FMT_SIZE], bytes[FMT_SIZE];
	struct str notes = {0};

	err = err_start(err, &own);
	report_walk_open(&scope.walk, request, err);
	report_sites_read(&scope.sites, request->db, err);
	if (!err_stuck(err) && report_sink_open(&scope.sink, path, err) == ST_OK) {
		write_all(&scope);
		report_sink_close(&scope.sink, err->status);
	}
	report_walk_notes(&scope.walk, &notes);
	report_export_print_result(request, path, &notes, err, "%s span%s on %s track%s, %s",
				   fmt_count(spans, scope.spans), scope.spans == 1 ? "" : "s",
				   fmt_count(profiles, scope.profiles),
				   scope.profiles == 1 ? "" : "s",
				   fmt_bytes(bytes, scope.sink.bytes));
	str_free(&scope.text);
	report_sites_free(&scope.sites);
	report_walk_close(&scope.walk);
	return err->status;
}
