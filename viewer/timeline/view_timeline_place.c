/*
 * From the timeline to other screens and back: the place under the cursor, and how to get to one.
 *
 * A moment is found without indexes, so in a run that is still recorded too: an execution by its
 * first step, then a bisection over one lane's spans, whose weight updates (or steps, where nothing
 * is updated) come in order of time within an execution.
 *
 * Threading: one thread. Ownership: spans' texts are the picture's.
 */
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#define MOST_WORKS 512 /* spans looked at from the beginning of an update on */

/* ---- where the cursor is --------------------------------------------------------------------- */

static void view_place_span(const struct view_timeline *tl, struct view_place *out)
{
	const struct prof_span *span = &tl->span;

	out->span_id = span->span_id;
	out->execution = span->execution;
	out->epoch = span->epoch;
	out->weight_update = span->weight_update;
	out->step = span->step;
	out->microbatch = span->microbatch;
	out->replica = span->replica;
	out->ipu = span->ipu;
	out->stage = span->stage;
	out->time_ns = span->start_ns;
	if (span->dur_ns != IPS_NULL)
		out->until_ns = span->start_ns + span->dur_ns;
	view_place_text(out->mode, span->mode);
	view_place_text(out->operation, span->operation);
	if (span->phase)
		snprintf(out->phase, sizeof(out->phase), "%c", span->phase);
}

static void view_place_step(const struct view_timeline *tl, struct view_place *out)
{
	const struct prof_step *step = tl->step.step;
	const struct prof_run *run = &tl->step.run;

	out->program_id = step->program_id;
	out->stage = step->stage;
	out->execution = run->execution;
	out->weight_update = run->weight_update;
	out->replica = run->replica;
	if (step->microbatch != IPS_NULL) {
		out->microbatch = run->first_microbatch + step->microbatch;
		out->step = run->first_step + step->microbatch;
	}
	out->time_ns = tl->step.from_ns;
	out->until_ns = tl->step.to_ns;
	view_place_text(out->operation, step->operation);
	if (step->phase)
		snprintf(out->phase, sizeof(out->phase), "%c", step->phase);
}

bool view__timeline_place(const void *state, const struct view_context *context,
			  struct view_place *out)
{
	const struct view_timeline *tl = state;
	const struct prof_track *track;

	(void)context;
	if (tl->lane >= tl->lane_count)
		return false;
	track = tl->lanes[tl->lane].track;
	out->track_id = track->track_id;
	out->rank = track->rank;
	view_place_text(out->clock, track->clock == IPS_DEVICE ? "device" : "host");
	out->ipu = track->ipu;
	if (tl->step.step) {
		view_place_step(tl, out);
		return true;
	}
	if (tl->selected != IPS_NULL && !tl->in_gap) {
		view_place_span(tl, out);
		return true;
	}
	out->time_ns = tl->in_gap ? tl->gap.at.from : tl->cursor_ns;
	if (tl->in_gap)
		out->until_ns = tl->gap.at.to;
	if (tl->gap_run >= 0 && tl->in_gap) {
		out->weight_update = tl->runs[tl->gap_run].weight_update;
		out->execution = tl->runs[tl->gap_run].execution;
	}
	return true;
}

bool view__timeline_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->span_id != IPS_NULL)
		snprintf(out, size, "the span %lld", (long long)place->span_id);
	else if (place->until_ns != IPS_NULL && place->time_ns != IPS_NULL)
		snprintf(out, size, "that stretch of time");
	else if (place->step != IPS_NULL)
		snprintf(out, size, "step %lld", (long long)place->step);
	else if (place->weight_update != IPS_NULL)
		snprintf(out, size, "weight update %lld", (long long)place->weight_update);
	else if (place->time_ns != IPS_NULL)
		snprintf(out, size, "that moment");
	else if (place->operation[0])
		snprintf(out, size, "the next %s", place->operation);
	else if (place->layer[0])
		snprintf(out, size, "the next span of %s", place->layer);
	else
		return false;
	return true;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* How well a lane fits; -1: not at all. */
static int view_lane_score(const struct view_timeline *tl, const struct view_lane *lane, int clock,
			   const struct view_place *place)
{
	const struct prof_track *track = lane->track;
	const int64_t replica = view__replica_of(tl, track->ipu);
	int score = 0;

	if (clock >= 0 && (track->clock == IPS_DEVICE) != (clock == IPS_DEVICE))
		return -1;
	if (place->rank != IPS_NULL && track->rank != place->rank)
		return -1;
	if (place->track_id != IPS_NULL && track->track_id == place->track_id)
		return 100;
	if (place->ipu != IPS_NULL)
		score += track->ipu == place->ipu ? 16 : 0;
	if (place->replica != IPS_NULL && track->ipu != IPS_NULL)
		score += replica == place->replica ? 8 : 0;
	/* A first guess: a stage an IPU. */
	if (place->ipu == IPS_NULL && place->stage != IPS_NULL)
		score += track->ipu - view__first_ipu(tl, replica) == place->stage ? 4 : 0;
	return score + (lane->pipeline ? 1 : 0);
}

static int view_lane_for(const struct view_timeline *tl, int clock, const struct view_place *place)
{
	int best = -1, best_score = -1;

	for (int i = 0; i < tl->lane_count; i++) {
		const int score = view_lane_score(tl, &tl->lanes[i], clock, place);

		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	return best;
}

/* ---- going ----------------------------------------------------------------------------------- */

/* The window holds @from .. @to with something around it, unless it does so by now. */
static void view_fit(struct view_clock *clock, int64_t from, int64_t to)
{
	const int64_t length = clock->window.to - clock->window.from;
	int64_t around;

	if (from >= clock->window.from && to <= clock->window.to && (to - from) > length / 50)
		return;
	around = (to - from) * 2 > VIEW_WINDOW_LEAST ? (to - from) * 2 : VIEW_WINDOW_LEAST;
	clock->window =
		view_window_clamp((struct view_window){from - around, to + around}, clock->extent);
}

static bool view_go_to_span(struct view_timeline *tl, struct prof_db *db, int64_t id)
{
	struct prof_span span;
	int lane;

	if (prof_timeline_span(db, id, &tl->picture, &span, NULL) != ST_OK)
		return false;
	lane = view__lane_of(tl, span.track_id);
	if (lane < 0)
		return false;
	if (span.dur_ns != IPS_NULL && span.dur_ns > 0)
		view_fit(&tl->clock[tl->lanes[lane].track->clock == IPS_DEVICE], span.start_ns,
			 span.start_ns + span.dur_ns);
	view__go(tl, lane, span.depth, span.start_ns, id);
	return true;
}

static void view_go_to_time(struct view_timeline *tl, const struct view_place *place)
{
	const int clock = strcmp(place->clock, "device") == 0;
	const int lane = view_lane_for(tl, clock, place);
	struct view_window window = {place->time_ns, place->until_ns};

	if (lane < 0)
		return;
	if (place->until_ns != IPS_NULL && place->until_ns > place->time_ns) {
		const int64_t around = (window.to - window.from) / 4 + VIEW_WINDOW_LEAST;

		window.from -= around;
		window.to += around;
		tl->clock[clock].window = view_window_clamp(window, tl->clock[clock].extent);
	}
	view__go(tl, lane, tl->lanes[lane].work_depth, place->time_ns, IPS_NULL);
}

/* The execution of the place, as a window of @clock. false: unknown, or not on that clock. */
static bool view_execution(struct view_timeline *tl, struct prof_db *db, int clock,
			   const struct view_place *place, struct view_window *out,
			   int64_t *accumulation)
{
	static const char sql[] =
		"SELECT start_ns, start_ns + dur_ns, start_cycle, start_cycle + cycles, steps, "
		"updates FROM executions WHERE (:rank IS NULL OR rank = :rank) AND CASE WHEN "
		":execution IS NOT NULL THEN "
		"execution = :execution WHEN :step IS NOT NULL THEN mode = :mode AND first_step <= "
		":step ELSE mode = 'train' AND updates > 0 AND "
		"first_step / (steps / updates) <= :update END ORDER BY execution DESC LIMIT 1";
	struct prof_query *query;
	bool row = false;

	if (prof_query_open(&query, db, sql, NULL) != ST_OK)
		return false;
	if (place->rank != IPS_NULL)
		prof_query_int(query, ":rank", place->rank);
	if (place->execution != IPS_NULL)
		prof_query_int(query, ":execution", place->execution);
	if (place->step != IPS_NULL)
		prof_query_int(query, ":step", place->step);
	if (place->weight_update != IPS_NULL)
		prof_query_int(query, ":update", place->weight_update);
	prof_query_text(query, ":mode", place->mode[0] ? place->mode : "train");
	if (prof_query_step(query, &row, NULL) != ST_OK)
		row = false;
	if (row) {
		const int64_t updates = prof_column_int(query, 5);

		out->from = prof_column_int(query, clock ? 2 : 0);
		out->to = prof_column_int(query, clock ? 3 : 1);
		*accumulation = updates > 0 ? prof_column_int(query, 4) / updates : 0;
		/* Still running: up to now. */
		if (out->to == IPS_NULL)
			out->to = clock ? IPS_NULL : tl->clock[IPS_HOST].extent.to;
		row = out->from != IPS_NULL && out->to != IPS_NULL;
	}
	prof_query_close(query);
	if (row && clock) {
		out->from = sat_real((double)out->from * tl->ns_per_cycle);
		out->to = sat_add(sat_real((double)out->to * tl->ns_per_cycle), 1);
	}
	return row;
}

struct view_seek {
	struct view_timeline *tl;
	struct prof_db *db;
	const struct prof_track *track;
	bool by_step; /* nothing is updated */
	bool any;     /* what has an update or a step will do */
	int64_t wanted;
};

/* The next span of work after @time; false: none. */
static bool view_next_work(const struct view_seek *seek, int64_t time, struct prof_span *out)
{
	for (int i = 0; i < MOST_WORKS; i++) {
		int64_t id;

		if (prof_timeline_find(seek->db, seek->track->track_id, seek->track->clock, NULL,
				       time, true, &id, NULL) != ST_OK ||
		    id == IPS_NULL ||
		    prof_timeline_span(seek->db, id, &seek->tl->picture, out, NULL) != ST_OK)
			return false;
		if ((seek->by_step ? out->step : out->weight_update) != IPS_NULL ||
		    (seek->any && out->step != IPS_NULL))
			return true;
		time = out->start_ns;
	}
	return false;
}

/* The last moment of @within before the work that is wanted begins. */
static int64_t view_seek_start(const struct view_seek *seek, struct view_window within)
{
	int64_t low = within.from - 1, high = within.to;

	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		struct prof_span span;

		if (view_next_work(seek, middle, &span) && span.start_ns < within.to &&
		    (seek->by_step ? span.step : span.weight_update) < seek->wanted)
			low = max(span.start_ns, middle);
		else
			high = middle;
	}
	return low;
}

/* How much of what the place says the span is; -1: another update or step. */
static int view_match(const struct prof_span *span, const struct view_place *place)
{
	int score = 0;

	if (place->step != IPS_NULL && span->phase != IPS_UPDATE && span->step != place->step)
		return -1;
	if (place->weight_update != IPS_NULL && span->weight_update != place->weight_update)
		return -1;
	if (place->microbatch != IPS_NULL)
		score += span->microbatch == place->microbatch ? 4 : 0;
	if (place->stage != IPS_NULL)
		score += span->stage == place->stage ? 2 : 0;
	if (place->phase[0])
		score += span->phase == place->phase[0] ? 8 : 0;
	if (place->operation[0] && span->operation)
		score += strcmp(place->operation, span->operation) == 0 ? 1 : 0;
	return score + (span->phase ? 1 : 0);
}

/* The best match among the spans from @time on. IPS_NULL: none. */
static int64_t view_best_work(const struct view_seek *seek, int64_t time,
			      const struct view_place *place)
{
	int64_t best = IPS_NULL;
	int best_score = -1;

	for (int i = 0; i < MOST_WORKS; i++) {
		struct prof_span span;
		int64_t key;
		int score;

		if (!view_next_work(seek, time, &span))
			break;
		key = seek->by_step ? span.step : span.weight_update;
		/* A pipeline works at several steps at once: a few beyond are looked at. */
		if (key > seek->wanted + (seek->by_step ? 64 : 0))
			break;
		score = view_match(&span, place);
		if (score > best_score) {
			best = span.span_id;
			best_score = score;
		}
		time = span.start_ns;
	}
	return best;
}

bool view__place_start(struct view_timeline *tl, struct prof_db *db, int clock,
		       const struct view_place *place, int64_t *start)
{
	const bool by_step = place->weight_update == IPS_NULL;
	const int lane = view_lane_for(tl, clock, place);
	struct view_seek seek = {.tl = tl,
				 .db = db,
				 .by_step = by_step,
				 .wanted = by_step ? place->step : place->weight_update};
	struct view_window within = {0, 0};
	int64_t accumulation = 0;
	struct prof_span span;

	if (!db || lane < 0 || !view_execution(tl, db, clock, place, &within, &accumulation))
		return false;
	seek.track = tl->lanes[lane].track;
	if (!view_next_work(&seek, view_seek_start(&seek, within), &span) ||
	    span.start_ns >= within.to || (by_step ? span.step : span.weight_update) != seek.wanted)
		return false;
	*start = span.start_ns;
	return true;
}

bool view__next_work(struct view_timeline *tl, struct prof_db *db, const struct prof_track *track,
		     int64_t time, struct prof_span *out)
{
	const struct view_seek seek = {.tl = tl, .db = db, .track = track, .any = true};

	return view_next_work(&seek, time, out);
}

static bool view_go_to_step(struct view_timeline *tl, struct prof_db *db, int clock,
			    const struct view_place *place)
{
	const int lane = view_lane_for(tl, clock, place);
	struct view_window within = {0, 0};
	int64_t accumulation = 0, id;
	struct view_seek seek = {.tl = tl, .db = db};

	if (lane < 0 || !view_execution(tl, db, clock, place, &within, &accumulation))
		return false;
	seek.track = tl->lanes[lane].track;
	seek.by_step = accumulation < 1;
	if (seek.by_step)
		seek.wanted = place->step;
	else
		seek.wanted = place->weight_update != IPS_NULL ? place->weight_update
							       : place->step / accumulation;
	if (seek.wanted == IPS_NULL)
		return false;
	id = view_best_work(&seek, view_seek_start(&seek, within), place);
	return id != IPS_NULL && view_go_to_span(tl, db, id);
}

bool view__go_to_work(struct view_timeline *tl, struct prof_db *db, const struct view_place *place)
{
	const bool device = strcmp(place->clock, "host") != 0;

	if (place->step == IPS_NULL && place->weight_update == IPS_NULL)
		return false;
	return (device && view_go_to_step(tl, db, 1, place)) || view_go_to_step(tl, db, 0, place);
}

static bool view_go_to_name(struct view_timeline *tl, struct view_context *context,
			    const struct view_place *place)
{
	if (place->operation[0] && view__jump_name(tl, context, place->operation, true))
		return true;
	return place->layer[0] && view__jump_name(tl, context, place->layer, true);
}

/* Lanes that a filter or the way to look at it hides may be the ones. */
static enum status view_show_all(struct view_timeline *tl, struct view_context *context,
				 struct err *err)
{
	if (tl->only_ipu == IPS_NULL && tl->only_replica == IPS_NULL && tl->way != VIEW_BSP)
		return ST_OK;
	tl->only_ipu = tl->only_replica = IPS_NULL;
	tl->way = tl->way == VIEW_BSP ? VIEW_GANTT : tl->way;
	return view__tracks_load(tl, context, err);
}

/* To a span, for which hidden lanes are shown again where it is on one of them. */
static enum status view_go_to_any_span(struct view_timeline *tl, struct view_context *context,
				       int64_t span_id, bool *there, struct err *err)
{
	struct prof_db *db = context->source->db;
	enum status status;

	*there = view_go_to_span(tl, db, span_id);
	if (*there || tl->hidden_lanes == 0)
		return ST_OK;
	view__hidden_forget(tl);
	if (tl->target)
		tl->target->relane = true;
	status = view__tracks_load(tl, context, err);
	*there = status == ST_OK && view_go_to_span(tl, db, span_id);
	return status;
}

enum status view__timeline_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err)
{
	struct view_timeline *tl = state;
	struct prof_db *db = context->source->db;
	const bool stepped = place->step != IPS_NULL || place->weight_update != IPS_NULL;
	enum status status;

	if (!db || tl->lane_count == 0)
		return err_set(err, ST_NOTFOUND, "no spans recorded");
	status = view_show_all(tl, context, err);
	if (status != ST_OK)
		return status;
	if (place->target_only == 1 && tl->target)
		return view__go_to_target(tl, context, place, err);
	if (place->span_id != IPS_NULL) {
		bool there;

		status = view_go_to_any_span(tl, context, place->span_id, &there, err);
		if (status != ST_OK || there)
			return status;
	}
	if (place->until_ns == IPS_NULL && view__go_to_work(tl, db, place))
		return ST_OK;
	if (place->time_ns != IPS_NULL) {
		view_go_to_time(tl, place);
		return ST_OK;
	}
	if (view_go_to_name(tl, context, place))
		return ST_OK;
	return err_set(err, ST_NOTFOUND, "%s is not on the timeline",
		       place->operation[0] ? place->operation
		       : place->layer[0]   ? place->layer
		       : stepped           ? "that step"
					   : "this");
}
