/*
 * Arrows between spans, such as from the launch of a kernel to the kernel, and the critical path of
 * steps of a GPU program, both as the recording has them.
 *
 * The arrows of the selected span are drawn over what is empty between the lanes, and a key follows
 * them: from the call to what it launched, and back; from a call that launched many, to the next
 * one each time. If the critical path is chosen, spans that are not on it are drawn as those that a
 * filter excludes. A cell of many spans is on it if the path leads through its lane then.
 *
 * Threading: one thread. Ownership: arrows are in the arena of what is under the cursor; the path's
 * edges are owned, and read once until news.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define MOST_ARROWS 64
#define MOST_EDGES  1000000
#define MOST_LOOKED 1000000 /* arrows that are looked through, without an index */

/* ---- arrows ---------------------------------------------------------------------------------- */

bool view__has_arrows(struct view_timeline *tl, int64_t most)
{
	static const char sql[] =
		"SELECT iif(EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND "
		"name = 'flow_to'), 0, (SELECT ifnull(max(row_id), 0) FROM flow_rows))";
	int64_t count = 0;

	return tl->db && prof_db_number(tl->db, sql, &count, NULL) == ST_OK && count < most;
}

void view__arrows_load(struct view_timeline *tl)
{
	static const char *const sql[] = {
		"SELECT to_span_id FROM flows WHERE from_span_id = :span ORDER BY 1 LIMIT :most",
		"SELECT from_span_id FROM flows WHERE to_span_id = :span ORDER BY 1 LIMIT :most"};
	struct view_arrows *arrows = &tl->arrows;

	arrows->count = 0;
	arrows->all = NULL;
	if (tl->status != ST_OK || tl->under.selected == IPS_NULL || tl->under.in_gap ||
	    !view__has_arrows(tl, MOST_LOOKED))
		return;
	arrows->all = view__alloc(tl, &tl->under.arena, MOST_ARROWS, sizeof(*arrows->all));
	for (int in = 0; in < 2 && arrows->all; in++) {
		struct prof_query *query;
		enum status status = prof_query_open(&query, tl->db, sql[in], NULL);

		prof_query_int(query, ":span", tl->under.selected);
		prof_query_int(query, ":most", MOST_ARROWS);
		while (arrows->count < MOST_ARROWS && prof_query_next(query, &status, NULL)) {
			struct view_arrow *arrow = &arrows->all[arrows->count];

			arrow->in = in == 1;
			arrows->count +=
				prof_timeline_span(tl->db, prof_column_int(query, 0),
						   &tl->under.arena, &arrow->other, NULL) == ST_OK;
		}
		prof_query_close(query);
	}
}

/* Find where an arrow from the selected span leads: behind the one followed last, or else first. */
static int64_t view_next_arrow(struct view_timeline *tl, bool in, int64_t behind, int64_t *nth,
			       int64_t *count)
{
	static const char *const sql[] = {
		"SELECT coalesce(min(iif(to_span_id > :behind, to_span_id, NULL)), "
		"min(to_span_id)), count(*), sum(to_span_id <= :behind) FROM flows "
		"WHERE from_span_id = :span",
		"SELECT min(from_span_id), count(*), 0 FROM flows WHERE to_span_id = :span"};
	struct prof_query *query;
	enum status status = prof_query_open(&query, tl->db, sql[in], NULL);
	int64_t to = IPS_NULL;

	prof_query_int(query, ":span", tl->under.selected);
	if (!in)
		prof_query_int(query, ":behind", behind);
	if (prof_query_next(query, &status, NULL)) {
		to = prof_column_int(query, 0);
		*count = prof_column_int(query, 1);
		*nth = prof_column_int(query, 2) % max(*count, 1) + 1;
	}
	prof_query_close(query);
	return to;
}

void view__follow_arrow(struct view_timeline *tl)
{
	struct view_arrows *arrows = &tl->arrows;
	const int64_t here = tl->under.selected;
	const bool back = here != IPS_NULL && here == arrows->to;
	int64_t to = back ? arrows->from : IPS_NULL, nth = 1, count = 1;
	bool in = back;
	struct prof_span span;
	char text[64], number[FMT_SIZE], of[FMT_SIZE];
	int lane;

	if (to == IPS_NULL && here != IPS_NULL && view__has_arrows(tl, MOST_LOOKED)) {
		to = view_next_arrow(tl, false, here == arrows->from ? arrows->to : INT64_MIN + 1,
				     &nth, &count);
		in = to == IPS_NULL;
		if (in)
			to = view_next_arrow(tl, true, 0, &nth, &count);
	}
	if (to == IPS_NULL ||
	    prof_timeline_span(tl->db, to, &tl->under.arena, &span, NULL) != ST_OK) {
		view__say(tl, "no arrow leads from or to this span");
		return;
	}
	lane = view__lane_of(tl, span.track_id);
	if (lane < 0 && view__show_hidden(tl))
		lane = view__lane_of(tl, span.track_id);
	if (lane < 0)
		return;
	/* Back at the arrow's start, its end is kept: the key goes on to the next one. */
	arrows->from = in ? to : here;
	arrows->to = in ? here : to;
	view__go(tl, lane, span.depth, span.start_ns, to);
	if (!in && count > 1) {
		snprintf(text, sizeof(text), "%s of %s", fmt_count(number, nth),
			 fmt_count(of, count));
		view_message(tl->context, "arrow ", text);
	}
}

/* ---- the critical path ----------------------------------------------------------------------- */

static int view_edge_order(const void *a, const void *b)
{
	const struct view_edge *x = a, *y = b;

	return SORTED_BY(x, y, track_id, from);
}

static int view_id_order(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return SORTED_ORDER(x, y);
}

bool view__has_path(struct view_timeline *tl)
{
	int64_t has;

	return tl->db &&
	       prof_db_number(tl->db, "SELECT EXISTS (SELECT 1 FROM critical_rows)", &has, NULL) ==
		       ST_OK &&
	       has == 1;
}

void view__path_load(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT r.track_id, p.span_id, p.time_ns, p.time_ns + p.dur_ns "
		"FROM critical_rows p JOIN span_rows r ON r.span_id = p.span_id LIMIT :most";
	struct view_path *path = &tl->path;
	struct prof_query *query;

	if (!tl->choice.critical || path->known || tl->status != ST_OK)
		return;
	path->count = 0;
	path->known = true;
	if (!view__has_path(tl))
		return;
	tl->status = prof_query_open(&query, tl->db, sql, &tl->err);
	prof_query_int(query, ":most", MOST_EDGES);
	while (prof_query_next(query, &tl->status, &tl->err)) {
		if (mem_grow(&path->edges, &path->capacity, path->count + 1,
			     sizeof(*path->edges)) != 0) {
			tl->status = err_nomem(&tl->err);
			break;
		}
		path->edges[path->count++] =
			(struct view_edge){prof_column_int(query, 0), prof_column_int(query, 1),
					   prof_column_int(query, 2), prof_column_int(query, 3)};
	}
	prof_query_close(query);
	mem_free(path->ids);
	path->ids = mem_alloc((path->count + 1) * sizeof(*path->ids));
	if (!path->ids)
		tl->status = err_nomem(&tl->err);
	if (tl->status != ST_OK) {
		path->known = false;
		path->count = 0;
		return;
	}
	for (size_t i = 0; i < path->count; i++)
		path->ids[i] = path->edges[i].span_id;
	if (path->count == 0)
		return;
	qsort(path->ids, path->count, sizeof(*path->ids), view_id_order);
	qsort(path->edges, path->count, sizeof(*path->edges), view_edge_order);
}

bool view__is_off_path(const struct view_timeline *tl, int64_t track_id, const struct prof_bar *bar)
{
	const struct view_path *path = &tl->path;
	const struct view_edge *edges = path->edges;
	size_t at;

	if (!tl->choice.critical || !path->known)
		return false;
	if (bar->span_id != IPS_NULL)
		return path->count == 0 || !bsearch(&bar->span_id, path->ids, path->count,
						    sizeof(*path->ids), view_id_order);
	/* Edges of a lane do not overlap: the last that begins before the bucket ends. */
	SORTED_FIRST(at, 0, path->count,
		     edges[at].track_id < track_id ||
			     (edges[at].track_id == track_id &&
			      edges[at].from < bar->start_ns + bar->dur_ns));
	return at == 0 || edges[at - 1].track_id != track_id || edges[at - 1].to < bar->start_ns;
}
