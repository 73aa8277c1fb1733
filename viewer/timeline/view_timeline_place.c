/*
 * From the timeline to other screens and back, and to the same place of another report.
 *
 * The start of a step or weight update is found without indexes, so also in a run that is still
 * recording: its execution by the first step, then by bisection over one lane's spans, whose weight
 * updates (or steps, if nothing is updated) are in order of time within an execution.
 *
 * With two reports the target has a timeline that follows the source's window, cursor and choices;
 * keys move the source. The target's window starts at the same distance from a common start as the
 * source's and has the same length, so that durations can be compared by eye. In training the
 * common start is that of a weight update, which has the same number in both. An evaluation or a
 * prediction has no updates: there it is the start of a step, at the same offset in the nth
 * execution of that mode. A target that has not got so far is shown at its last one.
 *
 * Threading: one thread. Ownership: the source's timeline owns the target's; texts of spans are in
 * the picture's arena.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"

#define MOST_WORKS 512 /* spans read from the start of an update on */

/* ---- the place under the cursor -------------------------------------------------------------- */

bool view__timeline_place(const void *state, struct view_place *out)
{
	const struct view_timeline *tl = state;
	const struct prof_step *step = tl->device.at_cursor.step;
	const struct prof_run *run = &tl->device.at_cursor.run;
	const struct prof_span *span = &tl->under.span;
	const struct prof_track *track;
	char phase = 0;

	if (tl->cursor.lane >= tl->lane_count)
		return false;
	track = tl->lanes[tl->cursor.lane].track;
	out->track_id = track->track_id;
	out->rank = track->rank;
	view_place_text(out->clock, track->clock == IPS_DEVICE ? "device" : "host");
	out->ipu = track->ipu;
	if (step) {
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
		phase = step->phase;
	} else if (tl->under.in_gap) {
		out->time_ns = tl->under.gap.at.from;
		out->until_ns = tl->under.gap.at.to;
		if (tl->under.gap_run >= 0) {
			out->weight_update = tl->runs[tl->under.gap_run].weight_update;
			out->execution = tl->runs[tl->under.gap_run].execution;
		}
	} else if (tl->under.selected != IPS_NULL) {
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
		phase = span->phase;
	} else {
		out->time_ns = tl->cursor.ns;
	}
	if (phase)
		snprintf(out->phase, sizeof(out->phase), "%c", phase);
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

/* ---- the start of a step or weight update ---------------------------------------------------- */

/* The lane of @clock that matches @place best; -1: none. */
static int view_find_lane(const struct view_timeline *tl, int clock, const struct view_place *place)
{
	const int64_t each = tl->facts.replicas > 0 ? tl->facts.ipus / tl->facts.replicas : 0;
	int best = -1, best_score = -1;

	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *track = tl->lanes[i].track;
		const int64_t replica = view__replica_of(tl, track->ipu);
		int score = tl->lanes[i].pipeline;

		if (track->clock != clock ||
		    (place->rank != IPS_NULL && track->rank != place->rank))
			continue;
		if (place->track_id != IPS_NULL && view__lane_of(tl, place->track_id) == i)
			return i;
		if (place->ipu != IPS_NULL)
			score += track->ipu == place->ipu ? 16 : 0;
		else if (place->stage != IPS_NULL) /* a first guess: one stage per IPU */
			score += track->ipu - max(replica, 0) * each == place->stage ? 4 : 0;
		if (place->replica != IPS_NULL && track->ipu != IPS_NULL)
			score += replica == place->replica ? 8 : 0;
		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	return best;
}

/* Find the execution of the place as a window of @clock. false: unknown, or not on that clock. */
static bool view_find_execution(struct view_timeline *tl, int clock, const struct view_place *place,
				struct view_window *out, int64_t *accumulation)
{
	static const char sql[] =
		"SELECT start_ns, start_ns + dur_ns, start_cycle, start_cycle + cycles, steps, "
		"updates FROM executions WHERE (:rank IS NULL OR rank = :rank) AND CASE WHEN "
		":execution IS NOT NULL THEN "
		"execution = :execution WHEN :step IS NOT NULL THEN mode = :mode AND first_step <= "
		":step ELSE mode = 'train' AND updates > 0 AND "
		"first_step / (steps / updates) <= :update END ORDER BY execution DESC LIMIT 1";
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {{":rank", place->rank},
		       {":execution", place->execution},
		       {":step", place->step},
		       {":update", place->weight_update}};
	struct prof_query *query;
	enum status status = prof_query_open(&query, tl->db, sql, NULL);
	bool row;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i].value != IPS_NULL)
			prof_query_int(query, numbers[i].name, numbers[i].value);
	prof_query_text(query, ":mode", place->mode[0] ? place->mode : "train");
	row = prof_query_next(query, &status, NULL);
	if (row) {
		const int64_t updates = prof_column_int(query, 5);

		out->from = prof_column_int(query, clock ? 2 : 0);
		out->to = prof_column_int(query, clock ? 3 : 1);
		*accumulation = updates > 0 ? prof_column_int(query, 4) / updates : 0;
		/* Still running: its end so far. */
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

/* A search for work on a track. */
struct view_work_seek {
	struct view_timeline *tl;
	const struct prof_track *track;
	bool by_step; /* by step, since nothing is updated */
	bool any;     /* accept any span with an update or a step */
	int64_t wanted;
};

static int64_t view_key_of(const struct view_work_seek *seek, const struct prof_span *span)
{
	return seek->by_step ? span->step : span->weight_update;
}

/* Find the next span of work after @time; false: none among MOST_WORKS spans. */
static bool view_next_work(const struct view_work_seek *seek, int64_t time, struct prof_span *out)
{
	struct view_timeline *tl = seek->tl;

	for (int i = 0; i < MOST_WORKS; i++) {
		if (!view__next_span(tl, seek->track, time, true, &tl->picture, out))
			return false;
		if (view_key_of(seek, out) != IPS_NULL || (seek->any && out->step != IPS_NULL))
			return true;
		time = out->start_ns;
	}
	return false;
}

/* The last time in @within before the wanted work starts, by bisection. */
static int64_t view_seek_start(const struct view_work_seek *seek, struct view_window within)
{
	int64_t low = within.from - 1, high = within.to;

	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		struct prof_span span;

		if (view_next_work(seek, middle, &span) && span.start_ns < within.to &&
		    view_key_of(seek, &span) < seek->wanted)
			low = max(span.start_ns, middle);
		else
			high = middle;
	}
	return low;
}

/* Find when the work of @place's weight update, or of its step and execution, starts on the lane of
 * @clock that matches best; false: unknown. */
static bool view_place_start(struct view_timeline *tl, int clock, const struct view_place *place,
			     int64_t *start)
{
	const bool by_step = place->weight_update == IPS_NULL;
	const int lane = view_find_lane(tl, clock, place);
	struct view_work_seek seek = {.tl = tl,
				      .by_step = by_step,
				      .wanted = by_step ? place->step : place->weight_update};
	struct view_window within = {0, 0};
	int64_t accumulation = 0;
	struct prof_span span;

	if (!tl->db || lane < 0 || !view_find_execution(tl, clock, place, &within, &accumulation))
		return false;
	seek.track = tl->lanes[lane].track;
	if (!view_next_work(&seek, view_seek_start(&seek, within), &span) ||
	    span.start_ns >= within.to || view_key_of(&seek, &span) != seek.wanted)
		return false;
	*start = span.start_ns;
	return true;
}

static bool view_update_start(struct view_timeline *tl, int clock, int64_t update, int64_t *start)
{
	struct view_place place;

	view_place_clear(&place);
	place.weight_update = update;
	return view_place_start(tl, clock, &place, start);
}

/* ---- going ----------------------------------------------------------------------------------- */

static bool view_go_to_span(struct view_timeline *tl, int64_t id)
{
	struct prof_span span;
	int lane;

	if (prof_timeline_span(tl->db, id, &tl->picture, &span, NULL) != ST_OK)
		return false;
	lane = view__lane_of(tl, span.track_id);
	if (lane < 0)
		return false;
	if (span.dur_ns != IPS_NULL && span.dur_ns > 0) {
		/* Show the whole span and its surroundings, unless the window already does. */
		struct view_clock *clock = &tl->clock[tl->lanes[lane].track->clock];
		const int64_t from = span.start_ns, to = from + span.dur_ns;
		const int64_t around = max(span.dur_ns * 2, VIEW_WINDOW_LEAST);

		if (from < clock->window.from || to > clock->window.to ||
		    span.dur_ns <= (clock->window.to - clock->window.from) / 50)
			clock->window = view_window_clamp(
				(struct view_window){from - around, to + around}, clock->extent);
	}
	view__go(tl, lane, span.depth, span.start_ns, id);
	return true;
}

/* Score how well the span matches the place; -1: another update or step. */
static int view_match_score(const struct prof_span *span, const struct view_place *place)
{
	int score = span->phase ? 1 : 0;

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
	return score;
}

static bool view_go_to_step(struct view_timeline *tl, int clock, const struct view_place *place)
{
	const int lane = view_find_lane(tl, clock, place);
	struct view_window within = {0, 0};
	int64_t accumulation = 0, best = IPS_NULL, time;
	struct view_work_seek seek = {.tl = tl};
	int best_score = -1;

	if (lane < 0 || !view_find_execution(tl, clock, place, &within, &accumulation))
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
	/* Find the best match among the spans from there on. */
	time = view_seek_start(&seek, within);
	for (int i = 0; i < MOST_WORKS; i++) {
		struct prof_span span;
		int score;

		if (!view_next_work(&seek, time, &span))
			break;
		/* A pipeline works on several steps at once, so read some steps beyond. */
		if (view_key_of(&seek, &span) > seek.wanted + (seek.by_step ? 64 : 0))
			break;
		score = view_match_score(&span, place);
		if (score > best_score) {
			best = span.span_id;
			best_score = score;
		}
		time = span.start_ns;
	}
	return best != IPS_NULL && view_go_to_span(tl, best);
}

/* Go to the work of @place's weight update or step, preferably on the device. */
static bool view_go_to_work(struct view_timeline *tl, const struct view_place *place)
{
	if (place->step == IPS_NULL && place->weight_update == IPS_NULL)
		return false;
	return (strcmp(place->clock, "host") != 0 && view_go_to_step(tl, IPS_DEVICE, place)) ||
	       view_go_to_step(tl, IPS_HOST, place);
}

void view__copy_choices(struct view_timeline *tl)
{
	struct view_timeline *target = tl->target;

	target->relane |= target->choice.way != tl->choice.way ||
			  target->choice.fold != tl->choice.fold ||
			  target->choice.only_ipu != tl->choice.only_ipu ||
			  target->choice.only_replica != tl->choice.only_replica;
	target->choice = tl->choice;
	target->counters.shown = tl->counters.shown;
	target->counters.first = tl->counters.first;
}

/* Go to a place that only the target has. The source's window starts with the weight update of the
 * target's work and is long enough for that work; the target's window follows (view__align()). */
static void view_go_to_target(struct view_timeline *tl, const struct view_place *place)
{
	struct view_timeline *target = tl->target;
	struct view_context its = view_context_of_target(tl->context);
	struct prof_span span;
	int64_t mine, begin;
	int lane, c;

	view__begin(target, &its);
	view__copy_choices(tl);
	if (target->relane)
		view__lanes_load(target);
	tl->status = target->status;
	tl->err = target->err;
	if (tl->status != ST_OK)
		return;
	if (!target->db || !view_go_to_work(target, place) ||
	    prof_timeline_span(target->db, target->cursor.pinned, &target->picture, &span, NULL) !=
		    ST_OK) {
		tl->status = err_set(&tl->err, ST_NOTFOUND,
				     "only the target has it, and not on the timeline");
		return;
	}
	c = view__lead(target);
	lane = view__same_lane(tl, view__lane(target)->track);
	if (lane < 0 || span.weight_update == IPS_NULL ||
	    !view_update_start(tl, c, span.weight_update, &mine) ||
	    !view_update_start(target, c, span.weight_update, &begin)) {
		tl->status = err_set(&tl->err, ST_NOTFOUND,
				     "only the target has it: the source has no lane "
				     "or weight update to be beside it");
		return;
	}
	tl->clock[c].window.from = mine;
	tl->clock[c].window.to =
		max(sat_add(mine, (span.start_ns + max(span.dur_ns, 0) - begin) / 4 * 5),
		    mine + VIEW_WINDOW_LEAST);
	tl->cursor.lane = lane;
	tl->cursor.track_id = tl->lanes[lane].track->track_id;
	tl->cursor.depth = span.depth;
	tl->cursor.ns = mine + span.start_ns - begin;
	tl->cursor.pinned = IPS_NULL;
	view__say(tl, "only T has it, and there the cursor is: S is beside it");
}

static void view_go_to_place(struct view_timeline *tl, const struct view_place *place)
{
	if (place->target_only == 1 && tl->target) {
		view_go_to_target(tl, place);
		return;
	}
	if (place->span_id != IPS_NULL &&
	    (view_go_to_span(tl, place->span_id) ||
	     (view__show_hidden(tl) && view_go_to_span(tl, place->span_id))))
		return;
	if (tl->status != ST_OK || (place->until_ns == IPS_NULL && view_go_to_work(tl, place)))
		return;
	if (place->time_ns != IPS_NULL) {
		const int clock = strcmp(place->clock, "device") == 0;
		const int lane = view_find_lane(tl, clock, place);
		struct view_window at = {place->time_ns, place->until_ns};

		if (lane < 0)
			return;
		if (at.to != IPS_NULL && at.to > at.from) {
			const int64_t around = (at.to - at.from) / 4 + VIEW_WINDOW_LEAST;

			at = (struct view_window){at.from - around, at.to + around};
			tl->clock[clock].window = view_window_clamp(at, tl->clock[clock].extent);
		}
		view__go(tl, lane, tl->lanes[lane].work_depth, place->time_ns, IPS_NULL);
		return;
	}
	if ((place->operation[0] && view__jump_name(tl, place->operation, true)) ||
	    (place->layer[0] && view__jump_name(tl, place->layer, true)))
		return;
	tl->status =
		err_set(&tl->err, ST_NOTFOUND, "%s is not on the timeline",
			place->operation[0] ? place->operation
			: place->layer[0]   ? place->layer
			: place->step != IPS_NULL || place->weight_update != IPS_NULL ? "that step"
										      : "this");
}

enum status view__timeline_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err)
{
	struct view_timeline *tl = state;
	struct view_chosen *choice = &tl->choice;

	view__begin(tl, context);
	if (!tl->db || tl->lane_count == 0)
		return err_set(err, ST_NOTFOUND, "no spans recorded");
	/* The current choice may exclude the lane of the place: reset it. */
	if (choice->only_ipu != IPS_NULL || choice->only_replica != IPS_NULL ||
	    choice->way == VIEW_BSP) {
		choice->only_ipu = choice->only_replica = IPS_NULL;
		choice->way = choice->way == VIEW_BSP ? VIEW_GANTT : choice->way;
		view__lanes_load(tl);
	}
	if (tl->status == ST_OK)
		view_go_to_place(tl, place);
	return view__end(tl, err);
}

/* ---- alignment of two reports ---------------------------------------------------------------- */

/* An execution of a mode. */
struct view_nth {
	int64_t rank, execution, first_step, steps, nth; /* nth: within its mode, from 1 */
};

#define EXECUTION                                                                                  \
	"SELECT rank, execution, first_step, steps, (SELECT count(*) FROM executions e WHERE "     \
	"e.rank = x.rank AND e.mode = x.mode AND e.execution <= x.execution) AS nth "              \
	"FROM executions x "

static const char view_execution_sql[] =
	EXECUTION "WHERE execution = :number AND rank = :rank AND mode = :mode";
/* The nth execution, or the last one if there are fewer. */
static const char view_nth_sql[] =
	EXECUTION "WHERE rank = :rank AND mode = :mode AND execution <= (SELECT "
		  "max(execution) FROM (SELECT execution FROM executions WHERE rank = :rank AND "
		  "mode = :mode ORDER BY execution LIMIT :number)) ORDER BY execution DESC LIMIT 1";

static bool view_read_nth(struct prof_db *db, const char *sql, int64_t rank, const char *mode,
			  int64_t number, struct view_nth *out)
{
	struct prof_query *query;
	enum status status = db ? prof_query_open(&query, db, sql, NULL) : ST_NOTFOUND;
	bool row;

	if (status != ST_OK)
		return false;
	prof_query_int(query, ":rank", rank);
	prof_query_text(query, ":mode", mode);
	prof_query_int(query, ":number", number);
	row = prof_query_next(query, &status, NULL);
	if (row)
		*out = (struct view_nth){prof_column_int(query, 0), prof_column_int(query, 1),
					 prof_column_int(query, 2), prof_column_int(query, 3),
					 prof_column_int(query, 4)};
	prof_query_close(query);
	return row && out->first_step != IPS_NULL && out->steps > 0;
}

/* Align at the start of step @offset of execution @of, or of its last step. */
static bool view_align_at(struct view_timeline *tl, int clock, const struct view_nth *of,
			  int64_t offset)
{
	const int64_t last = of->steps - 1;
	struct view_place place;

	view_place_clear(&place);
	place.rank = of->rank;
	place.execution = of->execution;
	place.step = tl->beside.at.number = of->first_step + min(offset, last);
	tl->beside.at.nth = of->nth;
	return view_place_start(tl, clock, &place, &tl->beside.at.start_ns);
}

static const struct view_lane *view_first_pipeline(const struct view_timeline *tl, int clock)
{
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].pipeline && tl->lanes[i].track->clock == clock)
			return &tl->lanes[i];
	return NULL;
}

/* Align both at the same step of the nth execution of the mode. */
static bool view_align_step(struct view_timeline *tl, int clock, int64_t rank,
			    const struct prof_span *span)
{
	struct view_timeline *target = tl->target;
	const struct view_beginning *s = &tl->beside.at, *t = &target->beside.at;
	const struct view_lane *lane = view_first_pipeline(target, clock);
	struct view_nth mine, its;
	char *text = tl->beside.text;

	if (!span->mode || !lane ||
	    !view_read_nth(tl->db, view_execution_sql, rank, span->mode, span->execution, &mine) ||
	    !view_align_at(tl, clock, &mine, span->step - mine.first_step))
		return false;
	if (!view_read_nth(target->db, view_nth_sql, lane->track->rank, span->mode, mine.nth,
			   &its)) {
		snprintf(text, VIEW_HINT_SIZE, "T has no %s to be beside this", span->mode);
		return false;
	}
	if (!view_align_at(target, clock, &its, span->step - mine.first_step)) {
		snprintf(text, VIEW_HINT_SIZE, "%s %lld of T is not on the %s", span->mode,
			 (long long)its.nth, clock ? "device's lanes" : "host's lanes");
		return false;
	}
	if (mine.nth == its.nth && s->number == t->number)
		snprintf(text, VIEW_HINT_SIZE, "S and T from step %lld of %s %lld",
			 (long long)s->number, span->mode, (long long)mine.nth);
	else
		snprintf(text, VIEW_HINT_SIZE,
			 "S from step %lld of %s %lld, T from step %lld of its %lld",
			 (long long)s->number, span->mode, (long long)mine.nth,
			 (long long)t->number, (long long)its.nth);
	return true;
}

static bool view_align_update(struct view_timeline *tl, int clock, int64_t update)
{
	/* The last weight update that has started. */
	static const char sql[] =
		"SELECT max(first_step / (steps / updates) + updates - 1) FROM "
		"executions WHERE mode = 'train' AND updates > 0 AND steps >= updates";
	struct view_timeline *target = tl->target;
	struct view_beginning *s = &tl->beside.at, *t = &target->beside.at;
	int64_t last = IPS_NULL;

	s->number = t->number = update;
	if (!view_update_start(tl, clock, update, &s->start_ns))
		return false;
	if (view_update_start(target, clock, update, &t->start_ns)) {
		snprintf(tl->beside.text, VIEW_HINT_SIZE, "S and T from update %lld",
			 (long long)update);
		return true;
	}
	if (!target->db || prof_db_number(target->db, sql, &last, NULL) != ST_OK ||
	    last == IPS_NULL || last > update ||
	    !view_update_start(target, clock, last, &t->start_ns))
		return false;
	t->number = last;
	snprintf(tl->beside.text, VIEW_HINT_SIZE, "S from update %lld, T from its last, %lld",
		 (long long)update, (long long)last);
	return true;
}

/* Choose the update to align at. If @update started before the window and the next one starts in
 * the window's first half, take the next one. */
static int64_t view_update_shown(struct view_timeline *tl, int clock, int64_t update)
{
	const struct view_window window = tl->clock[clock].window;
	int64_t start, next;

	return view_update_start(tl, clock, update, &start) && start < window.from &&
			       view_update_start(tl, clock, update + 1, &next) &&
			       next < window.from + (window.to - window.from) / 2
		       ? update + 1
		       : update;
}

/* Align at the first work in the window, on the first IPU shown. */
static bool view_align_window(struct view_timeline *tl, int clock)
{
	const struct view_lane *lane = view_first_pipeline(tl, clock);
	const struct view_window window = tl->clock[clock].window;
	struct view_work_seek seek = {.tl = tl, .any = true};
	struct prof_span span;
	int64_t shift;

	if (!lane || !tl->db)
		return false;
	seek.track = lane->track;
	if (!(view__span_at(tl, lane->track, window.from, lane->work_depth, &tl->picture, &span) &&
	      (span.weight_update != IPS_NULL || span.step != IPS_NULL)) &&
	    !(view_next_work(&seek, window.from - 1, &span) && span.start_ns < window.to))
		return false;
	if (!(span.weight_update != IPS_NULL
		      ? view_align_update(tl, clock,
					  view_update_shown(tl, clock, span.weight_update))
		      : view_align_step(tl, clock, lane->track->rank, &span)))
		return false;
	shift = tl->target->beside.at.start_ns - tl->beside.at.start_ns;
	tl->target->clock[clock].window =
		(struct view_window){window.from + shift, window.to + shift};
	return true;
}

void view__align(struct view_timeline *tl)
{
	struct view_timeline *target = tl->target;
	const int clock = view__lead(tl);
	const struct view_window window = tl->clock[clock].window;
	const int lane = view__same_lane(target, view__lane(tl)->track);
	struct view_clock *its = &target->clock[clock];

	tl->beside.at = target->beside.at = (struct view_beginning){.number = IPS_NULL};
	tl->beside.text[0] = '\0';
	if (lane >= 0) {
		target->cursor.lane = lane;
		target->cursor.track_id = target->lanes[lane].track->track_id;
		target->cursor.depth = tl->cursor.depth;
	}
	if (view__lead(target) != clock)
		return;
	if (view__shows_all(&tl->clock[clock])) {
		its->window = its->extent;
	} else if (!view_align_window(tl, clock)) {
		tl->beside.at.number = target->beside.at.number = IPS_NULL;
		its->window = view_window_clamp(window, its->extent);
	}
	target->cursor.ns = tl->cursor.ns - window.from + its->window.from;
}
