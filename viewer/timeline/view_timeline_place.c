/*
 * From the timeline to other screens and back, and to the same place of another report.
 *
 * The beginning of a step or weight update is found without indexes, so in a run that is still
 * recorded too: an execution by its first step, then a bisection over one lane's spans, whose
 * weight updates (or steps, where nothing is updated) come in order of time within an execution.
 *
 * Of two reports the target is a timeline of its own that follows the source's window, cursor and
 * way to look at it; keys move the source. The target's window begins as far from the same
 * beginning as the source's and is as long, so that what is longer looks longer. In training that
 * is the beginning of a weight update, which has the same number in both. An evaluation or a
 * prediction updates nothing: there it is the beginning of a step, so many steps into the nth
 * execution of that mode. A target that has not come so far is shown at its last.
 *
 * Threading: one thread. Ownership: the source's timeline owns the target's; spans' texts are the
 * picture's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"

#define MOST_WORKS  512 /* spans looked at from the beginning of an update on */
#define TABLE_ROWS  4   /* the table above, with its head */
#define TABLE_FROM  20  /* rows of a body that has it; else a line */
#define DETAIL_ROWS 6
#define DETAIL_FROM 24

/* ---- where the cursor is --------------------------------------------------------------------- */

static void view_place_span(const struct view_timeline *tl, struct view_place *out)
{
	const struct prof_span *span = &tl->under.span;

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
	const struct prof_step *step = tl->device.at_cursor.step;
	const struct prof_run *run = &tl->device.at_cursor.run;

	out->program_id = step->program_id;
	out->stage = step->stage;
	out->execution = run->execution;
	out->weight_update = run->weight_update;
	out->replica = run->replica;
	if (step->microbatch != IPS_NULL) {
		out->microbatch = run->first_microbatch + step->microbatch;
		out->step = run->first_step + step->microbatch;
	}
	out->time_ns = tl->device.at_cursor.from_ns;
	out->until_ns = tl->device.at_cursor.to_ns;
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
	if (tl->cursor.lane >= tl->lane_count)
		return false;
	track = tl->lanes[tl->cursor.lane].track;
	out->track_id = track->track_id;
	out->rank = track->rank;
	view_place_text(out->clock, track->clock == IPS_DEVICE ? "device" : "host");
	out->ipu = track->ipu;
	if (tl->device.at_cursor.step) {
		view_place_step(tl, out);
		return true;
	}
	if (tl->under.selected != IPS_NULL && !tl->under.in_gap) {
		view_place_span(tl, out);
		return true;
	}
	out->time_ns = tl->under.in_gap ? tl->under.gap.at.from : tl->cursor.ns;
	if (tl->under.in_gap)
		out->until_ns = tl->under.gap.at.to;
	if (tl->under.gap_run >= 0 && tl->under.in_gap) {
		out->weight_update = tl->runs[tl->under.gap_run].weight_update;
		out->execution = tl->runs[tl->under.gap_run].execution;
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
		out->from = sat_real((double)out->from * tl->links.ns_per_cycle);
		out->to = sat_add(sat_real((double)out->to * tl->links.ns_per_cycle), 1);
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

static bool view_place_start(struct view_timeline *tl, struct prof_db *db, int clock,
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

static bool view_any_work(struct view_timeline *tl, struct prof_db *db,
			  const struct prof_track *track, int64_t time, struct prof_span *out)
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

static bool view_go_to_work(struct view_timeline *tl, struct prof_db *db,
			    const struct view_place *place)
{
	const bool device = strcmp(place->clock, "host") != 0;

	if (place->step == IPS_NULL && place->weight_update == IPS_NULL)
		return false;
	return (device && view_go_to_step(tl, db, 1, place)) || view_go_to_step(tl, db, 0, place);
}

static int view_same_lane(const struct view_timeline *tl, const struct prof_track *track)
{
	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *its = tl->lanes[i].track;

		if (its->clock == track->clock && its->ipu == track->ipu &&
		    (track->ipu != IPS_NULL || strcmp(its->name, track->name) == 0))
			return i;
	}
	return -1;
}

/* What keys have chosen holds for both. */
static void view_follow(struct view_timeline *tl)
{
	struct view_timeline *target = tl->target;

	target->relane |= target->choice.way != tl->choice.way ||
			  target->choice.only_ipu != tl->choice.only_ipu ||
			  target->choice.only_replica != tl->choice.only_replica;
	target->choice.way = tl->choice.way;
	target->choice.only_ipu = tl->choice.only_ipu;
	target->choice.only_replica = tl->choice.only_replica;
	target->choice.cycles = tl->choice.cycles;
	target->choice.by_cause = tl->choice.by_cause;
	target->choice.by_name = tl->choice.by_name;
	target->choice.balance = tl->choice.balance;
	target->counters.shown = tl->counters.shown;
	target->counters.first = tl->counters.first;
}

/* The source's window begins with the update that @its, the target's work, is of, and holds as much
 * of it as lies before the work; the target's follows (view_timeline_align.c). */
static enum status view_go_beside(struct view_timeline *tl, struct view_context *context,
				  const struct prof_span *its, struct err *err)
{
	struct view_timeline *target = tl->target;
	const int c = view__lead(target);
	const int lane = view_same_lane(tl, view__lane(target)->track);
	const int64_t last = its->start_ns + max(its->dur_ns, 0);
	struct view_window window;
	struct view_place update;
	int64_t mine, begin;

	view_place_clear(&update);
	update.weight_update = its->weight_update;
	if (lane < 0 || its->weight_update == IPS_NULL ||
	    !view_place_start(tl, context->source->db, c, &update, &mine) ||
	    !view_place_start(target, context->target->db, c, &update, &begin))
		return err_set(err, ST_NOTFOUND,
			       "only the target has it: the source has no lane "
			       "or weight update to be beside it");
	window = (struct view_window){mine, sat_add(mine, (last - begin) / 4 * 5)};
	if (window.to - window.from < VIEW_WINDOW_LEAST)
		window.to = window.from + VIEW_WINDOW_LEAST;
	tl->clock[c].window = window;
	tl->cursor.lane = lane;
	tl->cursor.track_id = tl->lanes[lane].track->track_id;
	tl->cursor.depth = its->depth;
	tl->cursor.ns = mine + its->start_ns - begin;
	tl->cursor.pinned = IPS_NULL;
	return ST_OK;
}

static enum status view_go_to_target(struct view_timeline *tl, struct view_context *context,
				     const struct view_place *place, struct err *err)
{
	struct view_context its = {.source = context->target, .body = context->body};
	struct view_timeline *target = tl->target;
	enum status status = ST_OK;
	struct prof_span span;

	view_follow(tl);
	if (target->relane)
		status = view__tracks_load(target, &its, err);
	if (status != ST_OK)
		return status;
	if (!its.source->db || !view_go_to_work(target, its.source->db, place) ||
	    prof_timeline_span(its.source->db, target->cursor.pinned, &target->picture, &span,
			       NULL) != ST_OK)
		return err_set(err, ST_NOTFOUND, "only the target has it, and not on the timeline");
	status = view_go_beside(tl, context, &span, err);
	if (status == ST_OK)
		snprintf(context->message, sizeof(context->message),
			 "only T has it, and there the cursor is: S is beside it");
	return status;
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
	if (tl->choice.only_ipu == IPS_NULL && tl->choice.only_replica == IPS_NULL &&
	    tl->choice.way != VIEW_BSP)
		return ST_OK;
	tl->choice.only_ipu = tl->choice.only_replica = IPS_NULL;
	tl->choice.way = tl->choice.way == VIEW_BSP ? VIEW_GANTT : tl->choice.way;
	return view__tracks_load(tl, context, err);
}

/* To a span, for which hidden lanes are shown again where it is on one of them. */
static enum status view_go_to_any_span(struct view_timeline *tl, struct view_context *context,
				       int64_t span_id, bool *there, struct err *err)
{
	struct prof_db *db = context->source->db;
	enum status status;

	*there = view_go_to_span(tl, db, span_id);
	if (*there || tl->hiding.lanes == 0)
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
		return view_go_to_target(tl, context, place, err);
	if (place->span_id != IPS_NULL) {
		bool there;

		status = view_go_to_any_span(tl, context, place->span_id, &there, err);
		if (status != ST_OK || there)
			return status;
	}
	if (place->until_ns == IPS_NULL && view_go_to_work(tl, db, place))
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

/* What the source's window begins with. */
struct view_anchor {
	struct prof_span span;
	int64_t rank;
	int64_t nth, offset; /* of its mode's executions, from 1; steps into it */
};

/* An execution of a mode. */
struct view_nth {
	int64_t rank, execution, first_step, steps, nth;
};

static const struct view_lane *view_first_pipeline(const struct view_timeline *tl, int clock)
{
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].pipeline && (tl->lanes[i].track->clock == IPS_DEVICE) == clock)
			return &tl->lanes[i];
	return NULL;
}

/* The first work that is in the window, of the first IPU that is shown. */
static bool view_find_anchor(struct view_timeline *tl, struct prof_db *db, int clock,
			     struct view_anchor *out)
{
	const struct view_lane *lane = view_first_pipeline(tl, clock);
	const int64_t from = tl->clock[clock].window.from;
	int64_t id = IPS_NULL;

	if (!lane || !db)
		return false;
	out->rank = lane->track->rank;
	if (prof_timeline_at(db, lane->track->track_id, from, lane->work_depth, &id, NULL) ==
		    ST_OK &&
	    id != IPS_NULL && prof_timeline_span(db, id, &tl->picture, &out->span, NULL) == ST_OK &&
	    (out->span.weight_update != IPS_NULL || out->span.step != IPS_NULL))
		return true;
	return view_any_work(tl, db, lane->track, from - 1, &out->span) &&
	       out->span.start_ns < tl->clock[clock].window.to;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const char view_execution_sql[] =
	"SELECT rank, execution, first_step, steps, (SELECT count(*) FROM executions e WHERE "
	"e.rank = x.rank AND e.mode = x.mode AND e.execution <= x.execution) FROM executions x "
	"WHERE execution = :number AND rank = :rank AND mode = :mode";
/* The nth, or the last that there is. */
static const char view_nth_sql[] =
	"SELECT rank, execution, first_step, steps, (SELECT count(*) FROM executions e WHERE "
	"e.rank = x.rank AND e.mode = x.mode AND e.execution <= x.execution) AS nth "
	"FROM executions x WHERE rank = :rank AND mode = :mode AND execution <= (SELECT "
	"max(execution) FROM (SELECT execution FROM executions WHERE rank = :rank AND mode = :mode "
	"ORDER BY execution LIMIT :number)) ORDER BY execution DESC LIMIT 1";

static bool view_ask_nth(struct prof_db *db, const char *sql, int64_t rank, const char *mode,
			 int64_t number, struct view_nth *out)
{
	struct prof_query *query;
	bool row = false;

	if (!db || prof_query_open(&query, db, sql, NULL) != ST_OK)
		return false;
	prof_query_int(query, ":rank", rank);
	prof_query_text(query, ":mode", mode);
	prof_query_int(query, ":number", number);
	if (prof_query_step(query, &row, NULL) != ST_OK)
		row = false;
	if (row)
		*out = (struct view_nth){prof_column_int(query, 0), prof_column_int(query, 1),
					 prof_column_int(query, 2), prof_column_int(query, 3),
					 prof_column_int(query, 4)};
	prof_query_close(query);
	return row && out->first_step != IPS_NULL && out->steps > 0;
}

/* When step @offset of @of begins, or its last. */
static bool view_offset_start(struct view_timeline *tl, struct prof_db *db, int clock,
			      const struct view_nth *of, int64_t offset, struct view_moment *out)
{
	const int64_t last = of->steps - 1;
	struct view_place place;

	view_place_clear(&place);
	place.rank = of->rank;
	place.execution = of->execution;
	place.step = of->first_step + min(offset, last);
	out->nth = of->nth;
	out->number = place.step;
	return view_place_start(tl, db, clock, &place, &out->start_ns);
}

/* Both at the same step of the nth execution of the mode. */
static bool view_align_step(struct view_timeline *tl, struct view_context *context, int clock,
			    const struct view_anchor *anchor)
{
	struct view_timeline *target = tl->target;
	const struct view_lane *lane = view_first_pipeline(target, clock);
	const struct prof_span *span = &anchor->span;
	struct view_nth mine, its;

	if (!span->mode || !lane ||
	    !view_ask_nth(context->source->db, view_execution_sql, anchor->rank, span->mode,
			  span->execution, &mine) ||
	    !view_offset_start(tl, context->source->db, clock, &mine, span->step - mine.first_step,
			       &tl->beside.at))
		return false;
	if (!view_ask_nth(context->target->db, view_nth_sql, lane->track->rank, span->mode,
			  mine.nth, &its)) {
		snprintf(tl->beside.text, sizeof(tl->beside.text), "T has no %s to be beside this",
			 span->mode);
		return false;
	}
	if (!view_offset_start(target, context->target->db, clock, &its,
			       span->step - mine.first_step, &target->beside.at)) {
		snprintf(tl->beside.text, sizeof(tl->beside.text), "%s %lld of T is not on the %s",
			 span->mode, (long long)its.nth, clock ? "device's lanes" : "host's lanes");
		return false;
	}
	if (mine.nth == its.nth && tl->beside.at.number == target->beside.at.number)
		snprintf(tl->beside.text, sizeof(tl->beside.text),
			 "S and T from step %lld of %s %lld", (long long)tl->beside.at.number,
			 span->mode, (long long)mine.nth);
	else
		snprintf(tl->beside.text, sizeof(tl->beside.text),
			 "S from step %lld of %s %lld, T from step %lld of its %lld",
			 (long long)tl->beside.at.number, span->mode, (long long)mine.nth,
			 (long long)target->beside.at.number, (long long)its.nth);
	return true;
}

/* ---- weight updates -------------------------------------------------------------------------- */

/* The last weight update that has begun; IPS_NULL: none. */
static int64_t view_last_update(struct prof_db *db)
{
	static const char sql[] =
		"SELECT max(first_step / (steps / updates) + updates - 1) FROM "
		"executions WHERE mode = 'train' AND updates > 0 AND steps >= updates";
	struct prof_query *query;
	int64_t last = IPS_NULL;
	bool row = false;

	if (!db || prof_query_open(&query, db, sql, NULL) != ST_OK)
		return last;
	if (prof_query_step(query, &row, NULL) == ST_OK && row)
		last = prof_column_int(query, 0);
	prof_query_close(query);
	return last;
}

static bool view_update_start(struct view_timeline *tl, struct prof_db *db, int clock,
			      int64_t update, struct view_moment *out)
{
	struct view_place place;

	view_place_clear(&place);
	place.weight_update = out->number = update;
	return view_place_start(tl, db, clock, &place, &out->start_ns);
}

static bool view_align_update(struct view_timeline *tl, struct view_context *context, int clock,
			      int64_t update)
{
	struct view_timeline *target = tl->target;
	int64_t last;

	if (!view_update_start(tl, context->source->db, clock, update, &tl->beside.at))
		return false;
	snprintf(tl->beside.text, sizeof(tl->beside.text), "S and T from update %lld",
		 (long long)update);
	if (view_update_start(target, context->target->db, clock, update, &target->beside.at))
		return true;
	tl->beside.text[0] = '\0';
	last = view_last_update(context->target->db);
	if (last == IPS_NULL || last > update ||
	    !view_update_start(target, context->target->db, clock, last, &target->beside.at))
		return false;
	snprintf(tl->beside.text, sizeof(tl->beside.text),
		 "S from update %lld, T from its last, %lld", (long long)update, (long long)last);
	return true;
}

/* ---- the same window ------------------------------------------------------------------------- */

static bool view_align_window(struct view_timeline *tl, struct view_context *context, int clock)
{
	struct view_timeline *target = tl->target;
	const struct view_window window = tl->clock[clock].window;
	struct view_anchor anchor = {0};

	if (!view_find_anchor(tl, context->source->db, clock, &anchor) ||
	    !(anchor.span.weight_update != IPS_NULL
		      ? view_align_update(tl, context, clock, anchor.span.weight_update)
		      : view_align_step(tl, context, clock, &anchor)))
		return false;
	target->clock[clock].window = (struct view_window){
		window.from - tl->beside.at.start_ns + target->beside.at.start_ns,
		window.to - tl->beside.at.start_ns + target->beside.at.start_ns};
	return true;
}

static void view_align(struct view_timeline *tl, struct view_context *context)
{
	struct view_timeline *target = tl->target;
	const int clock = view__lead(tl);
	const struct view_window window = tl->clock[clock].window;
	const int lane = view_same_lane(target, view__lane(tl)->track);

	tl->beside.at.number = target->beside.at.number = IPS_NULL;
	tl->beside.text[0] = '\0';
	if (lane >= 0) {
		target->cursor.lane = lane;
		target->cursor.track_id = target->lanes[lane].track->track_id;
		target->cursor.depth = tl->cursor.depth;
	}
	if (view__lead(target) != clock)
		return;
	if (view__shows_all(&tl->clock[clock])) {
		target->clock[clock].window = target->clock[clock].extent;
	} else if (!view_align_window(tl, context, clock)) {
		tl->beside.at.number = target->beside.at.number = IPS_NULL;
		target->clock[clock].window =
			view_window_clamp(window, target->clock[clock].extent);
	}
	target->cursor.ns = tl->cursor.ns - window.from + target->clock[clock].window.from;
}

/* ---- loading --------------------------------------------------------------------------------- */

static void view_place_halves(struct view_timeline *tl, const struct view_context *context)
{
	const int width = context->body.width, height = context->body.height;
	const int head = height >= TABLE_FROM ? TABLE_ROWS : height >= 4 ? 1 : 0;
	const bool sums = view__shows_sums(tl);
	const int wanted = sums ? height / 3 : DETAIL_ROWS;
	const int details = tl->under.wanted && !context->whole &&
					    height >= (sums ? VIEW_SUMS_FROM_TWO : DETAIL_FROM)
				    ? wanted
				    : 0;
	const int rest = height - head - details, upper = (rest + 1) / 2;

	tl->beside.head = (struct view_rect){0, 0, width, head};
	tl->beside.half = (struct view_rect){0, head, width, upper};
	tl->beside.foot = (struct view_rect){0, head + rest, width, details};
	tl->target->beside.half = (struct view_rect){0, head + upper, width, rest - upper};
	tl->target->beside.foot = (struct view_rect){0, head + rest, 0, 0};
}

enum status view__timeline_compare(struct view_timeline *tl, struct view_context *context,
				   bool news, struct err *err)
{
	struct view_context its = view_context_of_target(context);
	struct view_timeline *target = tl->target;
	enum status status;

	view_place_halves(tl, context);
	view_follow(tl);
	target->filter.stale |= news;
	status = view__timeline_load(tl, context, news, err);
	if (status != ST_OK || tl->lane_count == 0)
		return status;
	view__picture_forget(target);
	if (news || target->relane || !target->started)
		status = view__tracks_load(target, &its, err);
	if (status != ST_OK || target->lane_count == 0)
		return status;
	view_align(tl, context);
	status = view__timeline_load(target, &its, false, err);
	view__strips_match(tl);
	return status;
}

/* ---- the table above ------------------------------------------------------------------------- */

static double view_figure(const struct view_bubble *bubble, int column)
{
	if (bubble->runs < 1)
		return NAN;
	if (column == 0)
		return (double)bubble->mean_makespan_ns;
	if (column == 1)
		return bubble->idle * 100;
	if (column == 2)
		return bubble->theory * 100;
	return bubble->part[column - 3 + VIEW_CAUSE_RAMP_UP] * 100;
}

#define FIGURES 7

static void view_figure_text(double value, int column, bool sign, char *out, size_t size)
{
	char ns[FMT_SIZE];

	if (isnan(value))
		snprintf(out, size, "-");
	else if (column == 0)
		snprintf(out, size, "%s%s", sign && value > 0 ? "+" : "",
			 fmt_ns(ns, (int64_t)value));
	else
		snprintf(out, size, sign ? "%+.1f" : "%.1f", value);
}

/* Source, Target, Diff of the runs in the windows: makespan, and idle time in % of IPUs x it. */
static void view_draw_table(const struct view_timeline *tl, struct view_pane *pane)
{
	static const char *const titles[FIGURES] = {"makespan",  "idle %",    "theory", "ramp-up",
						    "ramp-down", "imbalance", "comm."};
	static const char *const rows[] = {"Source", "Target", "Diff"};
	const int c = view__lead(tl), left = 9;
	const int width = (pane->rect.width - left - 1) / FIGURES;
	const int cells = width < 9 ? 9 : width > 16 ? 16 : width;
	char text[FMT_SIZE + 8];

	for (int i = 0; i < FIGURES; i++) {
		const double mine = view_figure(&tl->bubbles.shown[c], i);
		const double its = view_figure(&tl->target->bubbles.shown[c], i);
		const double values[] = {mine, its, its - mine};

		if (left + (i + 1) * cells > pane->rect.width)
			break;
		view_text_right(pane, left + i * cells, 0, cells, VIEW_DIM, titles[i]);
		for (int r = 0; r < 3; r++) {
			view_figure_text(values[r], i, r == 2, text, sizeof(text));
			view_text_right(pane, left + i * cells, r + 1, cells,
					r == 2 ? VIEW_BOLD : VIEW_NORMAL, text);
		}
	}
	view_text(pane, 1, 0, VIEW_TITLE, view__way_names[tl->choice.way]);
	for (int r = 0; r < 3; r++)
		view_text(pane, 1, r + 1,
			  r == 0   ? VIEW_SOURCE
			  : r == 1 ? VIEW_TARGET
				   : VIEW_BOLD,
			  rows[r]);
}

static void view_draw_line(const struct view_timeline *tl, struct view_pane *pane)
{
	const int c = view__lead(tl);
	const double mine = view_figure(&tl->bubbles.shown[c], 1);
	const double its = view_figure(&tl->target->bubbles.shown[c], 1);

	if (isnan(mine) || isnan(its))
		view_text(pane, 1, 0, VIEW_DIM, "no pipeline runs to compare");
	else
		view_textf(pane, 1, 0, VIEW_BOLD, "idle: S %.1f %% T %.1f %% diff %+.1f", mine, its,
			   its - mine);
}

void view__timeline_compared(const struct view_timeline *tl, struct view_pane *pane)
{
	struct view_pane head = view__sub(pane, tl->beside.head);

	if (head.rect.height >= TABLE_ROWS)
		view_draw_table(tl, &head);
	else if (head.rect.height > 0)
		view_draw_line(tl, &head);
}
