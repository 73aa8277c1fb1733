/*
 * Two timelines at the same moment of their runs: the target's window begins as far from it as the
 * source's and is as long, so that what is longer looks longer.
 *
 * In training the moment is the beginning of a weight update, which has the same number in both. An
 * evaluation or a prediction updates nothing: there it is the beginning of a step, so many steps
 * into the nth execution of that mode. A target that has not come so far is shown at its last.
 *
 * Threading: one thread. Ownership: none; spans' texts are the picture's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/minmax.h"

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
	return view__next_work(tl, db, lane->track, from - 1, &out->span) &&
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
	return view__place_start(tl, db, clock, &place, &out->start_ns);
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
			       &tl->aligned))
		return false;
	if (!view_ask_nth(context->target->db, view_nth_sql, lane->track->rank, span->mode,
			  mine.nth, &its)) {
		snprintf(tl->alignment, sizeof(tl->alignment), "T has no %s to be beside this",
			 span->mode);
		return false;
	}
	if (!view_offset_start(target, context->target->db, clock, &its,
			       span->step - mine.first_step, &target->aligned)) {
		snprintf(tl->alignment, sizeof(tl->alignment), "%s %lld of T is not on the %s",
			 span->mode, (long long)its.nth, clock ? "device's lanes" : "host's lanes");
		return false;
	}
	if (mine.nth == its.nth && tl->aligned.number == target->aligned.number)
		snprintf(tl->alignment, sizeof(tl->alignment), "S and T from step %lld of %s %lld",
			 (long long)tl->aligned.number, span->mode, (long long)mine.nth);
	else
		snprintf(tl->alignment, sizeof(tl->alignment),
			 "S from step %lld of %s %lld, T from step %lld of its %lld",
			 (long long)tl->aligned.number, span->mode, (long long)mine.nth,
			 (long long)target->aligned.number, (long long)its.nth);
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
	return view__place_start(tl, db, clock, &place, &out->start_ns);
}

static bool view_align_update(struct view_timeline *tl, struct view_context *context, int clock,
			      int64_t update)
{
	struct view_timeline *target = tl->target;
	int64_t last;

	if (!view_update_start(tl, context->source->db, clock, update, &tl->aligned))
		return false;
	snprintf(tl->alignment, sizeof(tl->alignment), "S and T from update %lld",
		 (long long)update);
	if (view_update_start(target, context->target->db, clock, update, &target->aligned))
		return true;
	tl->alignment[0] = '\0';
	last = view_last_update(context->target->db);
	if (last == IPS_NULL || last > update ||
	    !view_update_start(target, context->target->db, clock, last, &target->aligned))
		return false;
	snprintf(tl->alignment, sizeof(tl->alignment), "S from update %lld, T from its last, %lld",
		 (long long)update, (long long)last);
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
	target->clock[clock].window =
		(struct view_window){window.from - tl->aligned.start_ns + target->aligned.start_ns,
				     window.to - tl->aligned.start_ns + target->aligned.start_ns};
	return true;
}

int view__same_lane(const struct view_timeline *tl, const struct prof_track *track)
{
	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *its = tl->lanes[i].track;

		if (its->clock == track->clock && its->ipu == track->ipu &&
		    (track->ipu != IPS_NULL || strcmp(its->name, track->name) == 0))
			return i;
	}
	return -1;
}

void view__align(struct view_timeline *tl, struct view_context *context)
{
	struct view_timeline *target = tl->target;
	const int clock = view__lead(tl);
	const struct view_window window = tl->clock[clock].window;
	const int lane = view__same_lane(target, view__lane(tl)->track);

	tl->aligned.number = target->aligned.number = IPS_NULL;
	tl->alignment[0] = '\0';
	if (lane >= 0) {
		target->lane = lane;
		target->lane_id = target->lanes[lane].track->track_id;
		target->depth = tl->depth;
	}
	if (view__lead(target) != clock)
		return;
	if (view__shows_all(&tl->clock[clock])) {
		target->clock[clock].window = target->clock[clock].extent;
	} else if (!view_align_window(tl, context, clock)) {
		tl->aligned.number = target->aligned.number = IPS_NULL;
		target->clock[clock].window =
			view_window_clamp(window, target->clock[clock].extent);
	}
	target->cursor_ns = tl->cursor_ns - window.from + target->clock[clock].window.from;
}
