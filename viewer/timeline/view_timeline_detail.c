/*
 * The timeline's details: the span or the idle time under the cursor, in words.
 *
 * Threading: one thread. Ownership: texts live in the details' arena until the next load.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "viewer/timeline/view_timeline_internal.h"

#define MOST_PARENTS 8

static void view_add_text(struct view_timeline *tl, const char *name, const char *value)
{
	if (value && value[0] && tl->field_count < VIEW_FIELDS)
		tl->fields[tl->field_count++] = (struct view_field){name, value};
}

static void view_add_number(struct view_timeline *tl, const char *name, int64_t value)
{
	if (value != IPS_NULL)
		view_add_text(tl, name, arena_printf(&tl->detail, "%lld", (long long)value));
}

/* A time in the exact ns and as people read it, after @before. */
static void view_add_ns(struct view_timeline *tl, const char *name, int64_t ns, const char *before)
{
	char short_form[FMT_SIZE], exact[FMT_SIZE];

	if (ns > -1000 && ns < 1000)
		view_add_text(tl, name,
			      arena_printf(&tl->detail, "%s%s", before, fmt_ns(short_form, ns)));
	else
		view_add_text(tl, name,
			      arena_printf(&tl->detail, "%s%s (%s ns)", before,
					   fmt_ns(short_form, ns), fmt_count(exact, ns)));
}

static const char *view_phase_text(char phase)
{
	static const struct {
		char phase;
		const char *text;
	} phases[] = {{IPS_FORWARD, "F forward"},
		      {IPS_BACKWARD, "B backward"},
		      {IPS_WEIGHTS, "W weight gradient"},
		      {IPS_RECOMPUTATION, "R recomputation"},
		      {IPS_UPDATE, "U weight update"}};

	for (size_t i = 0; i < ARRAY_LEN(phases); i++)
		if (phases[i].phase == phase)
			return phases[i].text;
	return NULL;
}

/* What other screens know of it. */
static void view_belongs_fields(struct view_timeline *tl, struct prof_db *db, const char *operation,
				const char *name)
{
	const struct view_belongs *belongs = view__belongs(tl, db, operation ? operation : name);

	view_add_text(tl, "operation", operation);
	if (!belongs)
		return;
	view_add_text(tl, "layer", belongs->layer);
	view_add_number(tl, "program", belongs->program_id);
	if (belongs->tensors > 0)
		view_add_number(tl, "its tensors", belongs->tensors);
}

/* Without the spans in it. */
static void view_self_field(struct view_timeline *tl, struct prof_db *db)
{
	char ns[FMT_SIZE];
	bool exact;
	const int64_t self = view__self_ns(tl, db, &exact);

	if (self != IPS_NULL)
		view_add_text(tl, "self",
			      arena_printf(&tl->detail, "%s%s (%.1f %%)", exact ? "" : "about ",
					   fmt_ns(ns, self),
					   (double)self / (double)tl->span.dur_ns * 100));
}

static void view_span_fields(struct view_timeline *tl, struct prof_db *db)
{
	const struct prof_span *span = &tl->span;

	view_add_ns(tl, "start", span->start_ns, "");
	if (span->dur_ns == IPS_NULL)
		view_add_text(tl, "duration", "still open");
	else
		view_add_ns(tl, "duration", span->dur_ns, "");
	view_self_field(tl, db);
	view_add_text(tl, "phase", view_phase_text(span->phase));
	view_add_number(tl, "stage", span->stage);
	view_add_number(tl, "micro-batch", span->microbatch);
	view_add_number(tl, "step", span->step);
	view_add_number(tl, "weight update", span->weight_update);
	view_add_text(tl, "arguments", span->arguments);
	view_belongs_fields(tl, db, span->operation, span->name);
	view_add_text(tl, "waits for", view__flow_text(tl, db, true));
	view_add_text(tl, "leads to", view__flow_text(tl, db, false));
	view_add_number(tl, "execution", span->execution);
	view_add_number(tl, "epoch", span->epoch);
	view_add_text(tl, "mode", span->mode);
	view_add_number(tl, "IPU", span->ipu);
	view_add_number(tl, "replica", span->replica);
	view_add_text(tl, "category", span->category);
	view_add_text(tl, "clock", span->clock);
	view_add_number(tl, "depth", span->depth);
	view_add_number(tl, "span", span->span_id);
}

/* "worker 0 > Engine::run > update": the names around the span, outermost first. */
static void view_span_path(struct view_timeline *tl, struct prof_db *db)
{
	const char *names[MOST_PARENTS];
	int64_t parent = tl->span.parent_id;
	size_t length;
	int count = 0;

	while (parent != IPS_NULL && count < MOST_PARENTS) {
		struct prof_span span;

		if (prof_timeline_span(db, parent, &tl->detail, &span, NULL) != ST_OK)
			break;
		names[count++] = span.name ? span.name : "?";
		parent = span.parent_id;
	}
	length = (size_t)snprintf(tl->path, sizeof(tl->path), "%s", view__lane(tl)->track->name);
	while (count-- > 0 && length < sizeof(tl->path))
		length += (size_t)snprintf(tl->path + length, sizeof(tl->path) - length, " > %s",
					   names[count]);
}

static void view_gap_fields(struct view_timeline *tl)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_gap *gap = &tl->gap;
	const bool bsp = tl->way == VIEW_BSP; /* whose steps are not what the lane is idle of */

	tl->gap_run = -1;
	if (!gap->dark)
		for (int i = 0; i < tl->run_count && lane->pipeline; i++)
			if (tl->runs[i].group == view__group(tl, lane) &&
			    tl->cursor_ns >= tl->runs[i].from && tl->cursor_ns < tl->runs[i].to)
				tl->gap_run = i;
	if (gap->begun)
		view_add_ns(tl,
			    gap->dark ? "untraced from"
			    : bsp     ? "no stage from"
				      : "idle from",
			    gap->at.from, "");
	view_add_ns(tl,
		    gap->dark ? "for"
		    : bsp     ? "no stage for"
			      : "idle for",
		    gap->at.to - gap->at.from, gap->begun && gap->ended ? "" : "at least ");
	view_add_text(tl, "lane", lane->track->name);
	if (tl->gap_run >= 0) {
		view_add_number(tl, "weight update", tl->runs[tl->gap_run].weight_update);
		view_add_text(tl, "bubble", "within the pipeline run");
	}
}

/* Transfers and syncs within a run are idle time to the bubble: why. */
static void view_cause_field(struct view_timeline *tl)
{
	static const char *const why[VIEW_CAUSES] = {
		"", "ramp-up: before its first work", "ramp-down: after its last work",
		"imbalance: waits for others", "communication: its input is on the way"};

	view_add_text(tl, "idle because", why[tl->cursor_cause]);
}

/* Device lanes hold the first executions only: say so where one of the others would be. */
static void view_untraced_fields(struct view_timeline *tl, struct prof_db *db)
{
	static const char sql[] =
		"SELECT execution, traced, (SELECT min(execution) FROM executions WHERE traced = "
		"1), "
		"(SELECT max(execution) FROM executions WHERE traced = 1), "
		"(SELECT count(*) FROM executions WHERE traced = 1) FROM executions "
		"WHERE start_ns <= :at ORDER BY start_ns DESC LIMIT 1";
	const int64_t at = view_link_map(tl->links, tl->link_count, tl->cursor_ns, 0);
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db, sql, NULL) != ST_OK)
		return;
	prof_query_int(query, ":at", at);
	if (prof_query_step(query, &row, NULL) == ST_OK && row && prof_column_int(query, 1) == 0 &&
	    prof_column_int(query, 4) > 0) {
		const long long first = prof_column_int(query, 2), last = prof_column_int(query, 3);

		snprintf(tl->hint, sizeof(tl->hint),
			 "execution %lld has no device lanes: "
			 "autoReport.executionProfileProgramRunCount %lld",
			 (long long)prof_column_int(query, 0),
			 (long long)prof_column_int(query, 4));
		view_add_text(tl, "recorded for",
			      arena_printf(&tl->detail, "executions %lld to %lld", first, last));
		view_add_text(tl, "all are in", "stage_timings");
	}
	prof_query_close(query);
}

/* A span that was jumped to stays selected while the cursor is in it. */
static bool view_pinned(struct view_timeline *tl, struct prof_db *db)
{
	int64_t end;

	if (tl->pinned == IPS_NULL ||
	    prof_timeline_span(db, tl->pinned, &tl->detail, &tl->span, NULL) != ST_OK)
		return false;
	end = tl->span.dur_ns == IPS_NULL
		      ? INT64_MAX
		      : tl->span.start_ns + (tl->span.dur_ns > 0 ? tl->span.dur_ns : 1);
	return tl->cursor_ns >= tl->span.start_ns && tl->cursor_ns < end;
}

/* A step of the device, in the view of steps. */
static void view_step_fields(struct view_timeline *tl, struct prof_db *db)
{
	const struct view_step *at = &tl->step;
	const struct prof_step *step = at->step;
	char number[FMT_SIZE];

	view_add_text(tl, "type", step->type);
	view_belongs_fields(tl, db, step->operation, NULL);
	view_add_text(tl, "cycles",
		      arena_printf(&tl->detail, "%s", fmt_count(number, step->cycles)));
	view_add_ns(tl, "duration", at->to_ns - at->from_ns, "");
	view_add_number(tl, "active tiles", step->active_tiles);
	if (!isnan(step->tile_balance))
		view_add_text(tl, "tile balance",
			      arena_printf(&tl->detail, "%.3f", step->tile_balance));
	if (!isnan(step->active_tile_balance))
		view_add_text(tl, "of active",
			      arena_printf(&tl->detail, "%.3f", step->active_tile_balance));
	view_add_number(tl, "bytes in", step->bytes_in);
	view_add_number(tl, "bytes out", step->bytes_out);
	view_add_text(tl, "phase", view_phase_text(step->phase));
	view_add_number(tl, "stage", step->stage);
	if (step->microbatch != IPS_NULL)
		view_add_number(tl, "micro-batch", step->microbatch + at->run.first_microbatch);
	view_add_number(tl, "weight update", at->run.weight_update);
	view_add_number(tl, "trace step", step->trace_step);
	view_add_number(tl, "its program", step->program_id);
	view_add_ns(tl, "start", at->from_ns, "");
	snprintf(tl->path, sizeof(tl->path), "%s", view__lane(tl)->track->name);
}

enum status view__detail_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const struct view_lane *lane = view__lane(tl);
	enum status status;

	arena_reset(&tl->detail);
	tl->field_count = 0;
	tl->in_gap = false;
	tl->path[0] = tl->hint[0] = '\0';
	tl->selected = IPS_NULL;
	if (tl->step.step) {
		view_step_fields(tl, db);
		return ST_OK;
	}
	if (view_pinned(tl, db)) {
		tl->selected = tl->pinned;
	} else {
		tl->pinned = IPS_NULL;
		status = prof_timeline_at(db, lane->track->track_id, tl->cursor_ns, tl->depth,
					  &tl->selected, err);
		if (status == ST_OK && tl->selected != IPS_NULL)
			status = prof_timeline_span(db, tl->selected, &tl->detail, &tl->span, err);
		if (status != ST_OK)
			return status;
	}
	tl->in_gap = (tl->selected == IPS_NULL || tl->span.depth < lane->work_depth) &&
		     view__gap_at(tl, db, tl->cursor_ns, &tl->gap);
	if (tl->in_gap)
		view_gap_fields(tl);
	view_cause_field(tl);
	if (tl->in_gap && lane->pipeline && lane->track->clock == IPS_DEVICE)
		view_untraced_fields(tl, db);
	if (tl->selected != IPS_NULL) {
		if (!tl->in_gap)
			view_span_fields(tl, db);
		view_span_path(tl, db);
	}
	return ST_OK;
}
