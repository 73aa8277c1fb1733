/*
 * The works of a piece of time, on all IPUs of a clock: those that overlap it, and of each lane the
 * one before and the one after, which tell what its idle time in the piece is for.
 *
 * Threading: one thread. Ownership: works are the piece's; bars live in its arena until the next.
 */
#include "viewer/timeline/view_timeline_causes.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define MOST_TRIES 64 /* spans that are no work, before the one that is */

static enum status view_add_work(struct view_piece *piece, const struct view_work *work,
				 struct err *err)
{
	struct view_timeline *tl = piece->tl;
	const int64_t stage = work->stage;

	if (mem_grow(&piece->works, &piece->capacity, piece->count + 1, sizeof(*piece->works)))
		return err_nomem(err);
	if (stage >= tl->stages[piece->clock] && stage < INT64_MAX)
		tl->stages[piece->clock] = stage + 1;
	if (stage >= 0 && stage < 64)
		tl->lanes[work->lane].stages |= UINT64_C(1) << stage;
	piece->works[piece->count++] = *work;
	return ST_OK;
}

/* Are the lane's bars of work spans, or are there buckets among them? */
static bool view_are_spans(const struct view_lane *lane, const struct prof_bar *bars, int count)
{
	for (int i = 0; i < count; i++)
		if (bars[i].depth == lane->work_depth && bars[i].span_id == IPS_NULL)
			return false;
	return true;
}

/* The works of lane @index that overlap @window. */
static enum status view_read_works(struct view_piece *piece, struct prof_db *db, int index,
				   struct view_window window, struct err *err)
{
	struct view_timeline *tl = piece->tl;
	const struct view_lane *lane = &tl->lanes[index];
	struct prof_bar *bars = NULL;
	const int levels[] = {piece->level, -1};
	bool spans = false;
	int count = 0;
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(levels) && status == ST_OK && !spans; i++) {
		arena_reset(&piece->bars);
		status = prof_timeline_bars_at(db, lane->track->track_id, levels[i], window.from,
					       window.to, tl->clock[piece->clock].extent.to,
					       &piece->bars, &bars, &count, err);
		spans = status == ST_OK && view_are_spans(lane, bars, count);
	}
	for (int i = 0; i < count && status == ST_OK; i++) {
		const struct prof_bar *bar = &bars[i];

		if (view__is_work(tl, lane, bar))
			status = view_add_work(
				piece,
				&(struct view_work){index, piece->group, bar->execution,
						    bar->weight_update, bar->start_ns,
						    bar->start_ns + bar->dur_ns, bar->stage,
						    bar->microbatch, view__phase(tl, bar)},
				err);
	}
	return status;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* The span at the lane's depth of work that holds the next span from @time on; false: none. */
static bool view_next_span(struct view_piece *piece, struct prof_db *db,
			   const struct view_lane *lane, int64_t time, bool forward,
			   struct prof_span *out)
{
	const int64_t track = lane->track->track_id;
	int64_t id;

	if (prof_timeline_find(db, track, lane->track->clock, NULL, time, forward, &id, NULL) !=
		    ST_OK ||
	    id == IPS_NULL || prof_timeline_span(db, id, &piece->bars, out, NULL) != ST_OK)
		return false;
	return out->depth <= lane->work_depth ||
	       (prof_timeline_at(db, track, out->start_ns, lane->work_depth, &id, NULL) == ST_OK &&
		id != IPS_NULL && prof_timeline_span(db, id, &piece->bars, out, NULL) == ST_OK);
}

/* The work of lane @index before @window, or after it; false: none near by. */
static bool view_neighbour(struct view_piece *piece, struct prof_db *db, int index,
			   struct view_window window, bool forward, struct view_work *out)
{
	const struct view_lane *lane = &piece->tl->lanes[index];
	int64_t time = forward ? window.to - 1 : window.from;

	for (int i = 0; i < MOST_TRIES; i++) {
		struct prof_span span;
		int64_t end;

		if (!view_next_span(piece, db, lane, time, forward, &span))
			return false;
		end = span.start_ns + max(span.dur_ns, 0);
		if (span.depth == lane->work_depth && span.phase && strchr("FBWR", span.phase) &&
		    (forward ? span.start_ns >= window.to : span.start_ns < window.from)) {
			*out = (struct view_work){
				index,         piece->group, span.execution, span.weight_update,
				span.start_ns, end,          span.stage,     span.microbatch,
				span.phase};
			return true;
		}
		/* What is inside of it is none, either. */
		if (forward)
			time = span.depth == lane->work_depth && end > time + 1 ? end - 1
			       : span.start_ns > time                           ? span.start_ns
										: time + 1;
		else
			time = span.start_ns < time ? span.start_ns : time - 1;
	}
	return false;
}

static bool view_same_run(const struct view_work *a, const struct view_work *b)
{
	return a->group == b->group && a->execution == b->execution &&
	       a->weight_update == b->weight_update;
}

/* The lane's works, and *@waits: until when its last idle time in the window lasts, if that is
 * within a run. */
static enum status view_read_lane(struct view_piece *piece, struct prof_db *db, int index,
				  struct view_window window, int64_t *waits, struct err *err)
{
	const size_t first = piece->count;
	struct view_work before, after;
	enum status status = view_read_works(piece, db, index, window, err);

	if (status == ST_OK && view_neighbour(piece, db, index, window, false, &before) &&
	    before.to <= window.from)
		status = view_add_work(piece, &before, err);
	if (status != ST_OK || !view_neighbour(piece, db, index, window, true, &after))
		return status;
	for (size_t i = first; i < piece->count; i++)
		if (view_same_run(&piece->works[i], &after) && after.from > *waits)
			*waits = after.from;
	return view_add_work(piece, &after, err);
}

/* ---- a piece --------------------------------------------------------------------------------- */

/* By run, lane and start. */
static int view_by_run(const void *left, const void *right)
{
	const struct view_work *a = left, *b = right;

	return SORTED_BY(a, b, group, execution, weight_update, lane, from, to);
}

static void view_drop_doubles(struct view_piece *piece)
{
	size_t used = 0;

	if (piece->count == 0)
		return;
	qsort(piece->works, piece->count, sizeof(*piece->works), view_by_run);
	for (size_t i = 1; i < piece->count; i++)
		if (view_by_run(&piece->works[i], &piece->works[used]) != 0 ||
		    piece->works[i].microbatch != piece->works[used].microbatch)
			piece->works[++used] = piece->works[i];
	piece->count = used + 1;
}

enum status view__piece_load(struct view_piece *piece, struct view_context *context,
			     struct view_window window, struct err *err)
{
	struct view_timeline *tl = piece->tl;
	struct prof_db *db = context->source->db;
	int64_t waits = window.to;
	enum status status = ST_OK;

	piece->count = 0;
	piece->window = window;
	/* Twice on the host: who waits beyond the window waits for works beyond it. */
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < tl->all_lanes && status == ST_OK; i++) {
			const struct view_lane *lane = &tl->lanes[i];

			if (!lane->pipeline || (lane->track->clock == IPS_DEVICE) != piece->clock)
				continue;
			if (view_cancelled(context))
				return err_set(err, ST_INTERRUPTED, "interrupted");
			piece->group = view__group(tl, lane);
			status = pass == 0 ? view_read_lane(piece, db, i, window, &waits, err)
					   : view_read_works(piece, db, i,
							     (struct view_window){window.to, waits},
							     err);
		}
		if (status != ST_OK || piece->clock == IPS_DEVICE || waits <= window.to)
			break;
	}
	view_drop_doubles(piece);
	return status;
}
