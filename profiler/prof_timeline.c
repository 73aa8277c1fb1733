/*
 * The timeline, by range: the bars of a window. See prof_timeline.h.
 *
 * What covers an instant: nesting makes it the last span that began before it and that span's
 * ancestors. What is open at the end of the file: the last span of a track and its ancestors.
 * With these two chains, the levels, the long spans and ranges of rows there is nothing to search
 * for. Every picture is read in one read transaction.
 *
 * One thread per database handle. Results are the caller's arena's.
 */
#include "profiler/prof_timeline_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_levels.h"

#define ROWS_BY_RANGE                                                                              \
	PROF_LEAN_COLUMNS                                                                          \
	"FROM span_rows r WHERE r.span_id BETWEEN :first AND :last ORDER BY r.span_id"

#define ROWS_LONG                                                                                  \
	PROF_ROW_COLUMNS "FROM long_spans l JOIN span_rows r ON r.span_id = l.span_id "            \
			 "LEFT JOIN contexts c ON c.context_id = r.context_id "                    \
			 "WHERE l.track_id = :track AND l.level = :level AND l.start_ns >= :from " \
			 "AND l.start_ns < :to ORDER BY l.start_ns"

struct bars {
	struct prof_bar *items;
	size_t count, capacity;
};

/* ---- collecting bars ------------------------------------------------------------------------- */

static enum status add_bar(struct bars *bars, const struct prof_bar *bar, struct err *err)
{
	if (mem_grow(&bars->items, &bars->capacity, bars->count + 1, sizeof(*bars->items)) != 0)
		return err_nomem(err);
	bars->items[bars->count++] = *bar;
	return ST_OK;
}

struct window {
	int64_t track_id, from_ns, to_ns, now_ns;
	int level; /* -1: rows */
};

/* Whether no bucket of the window's level holds the span. */
static bool is_outside(const struct window *window, const struct prof_bar *bar)
{
	return window->level < 0 || bar->open || prof_level_enter(bar->dur_ns) > window->level;
}

/* Whether the span's zone leaves the window's level to its rows. */
static enum status is_sparse(struct prof_db *db, const struct window *window,
			     const struct prof_bar *bar, bool *sparse, struct err *err)
{
	struct prof_query *query;
	enum status status =
		prof_query_open(&query, db,
				"SELECT finest FROM zones WHERE kind = 0 AND track_id = :track "
				"AND first_ns <= :time AND first_row <= :row "
				"ORDER BY first_ns DESC, first_row DESC LIMIT 1",
				err);

	*sparse = false;
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":time", bar->start_ns);
	prof_query_int(query, ":row", bar->span_id);
	if (prof_query_next(query, &status, err))
		*sparse = prof_column_int(query, 0) > window->level;
	prof_query_close(query);
	return status;
}

/* What covers the left edge. A span that only touches it does not. */
static enum status add_left_edge(struct prof_db *db, const struct window *window, struct bars *bars,
				 struct err *err)
{
	int64_t span_id;
	int below = INT_MAX;
	enum status status =
		prof__timeline_last_before(db, window->track_id, window->from_ns, &span_id, err);

	while (status == ST_OK && span_id != IPS_NULL) {
		struct prof_timeline_row row;
		bool found, outside;

		status = prof__timeline_ancestor(db, span_id, window->now_ns, &below, &row, &found,
						 err);
		if (status != ST_OK || !found)
			break;
		outside = is_outside(window, &row.bar);
		if (!outside)
			status = is_sparse(db, window, &row.bar, &outside, err);
		if (status == ST_OK && outside &&
		    row.bar.start_ns + row.bar.dur_ns > window->from_ns)
			status = add_bar(bars, &row.bar, err);
		span_id = row.parent_id;
	}
	return status;
}

/* Open spans that begin within the window: buckets and long spans do not have them. */
static enum status add_open(struct prof_db *db, const struct window *window, struct bars *bars,
			    struct err *err)
{
	int64_t span_id;
	int below = INT_MAX;
	enum status status =
		prof__timeline_last_before(db, window->track_id, INT64_MAX, &span_id, err);

	while (status == ST_OK && span_id != IPS_NULL) {
		struct prof_timeline_row row;
		bool found;

		status = prof__timeline_ancestor(db, span_id, window->now_ns, &below, &row, &found,
						 err);
		if (status != ST_OK || !found)
			break;
		if (row.bar.open && row.bar.start_ns >= window->from_ns &&
		    row.bar.start_ns < window->to_ns)
			status = add_bar(bars, &row.bar, err);
		span_id = row.parent_id;
	}
	return status;
}

static enum status add_long(struct prof_db *db, const struct window *window, int level,
			    struct bars *bars, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, ROWS_LONG, err);

	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":level", level);
	prof_query_int(query, ":from", window->from_ns);
	prof_query_int(query, ":to", window->to_ns);
	while (prof_query_next(query, &status, err)) {
		struct prof_timeline_row row;

		prof__timeline_read(query, window->now_ns, &row);
		status = add_bar(bars, &row.bar, err);
	}
	prof_query_close(query);
	return status;
}

static void read_bucket(const struct prof_query *query, int level, struct prof_bar *bar)
{
	int shift = prof_level_shift(level);

	memset(bar, 0, sizeof(*bar));
	bar->start_ns = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST >> shift) *
			((int64_t)1 << shift);
	bar->dur_ns = (int64_t)1 << shift;
	bar->span_id = IPS_NULL;
	bar->depth = (int)prof__within(prof_column_int(query, 1), 0, PROF_DEPTH_MOST);
	bar->busy_ns = prof_column_int(query, 2);
	bar->count = prof_column_int(query, 3);
	bar->site_id = prof_column_int(query, 4);
	bar->stage = IPS_NULL;
	bar->microbatch = IPS_NULL;
	bar->step = IPS_NULL;
	bar->weight_update = IPS_NULL;
	bar->execution = IPS_NULL;
}

static enum status add_buckets(struct prof_db *db, const struct window *window, struct bars *bars,
			       struct err *err)
{
	int shift = prof_level_shift(window->level);
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db,
		"SELECT bucket, depth, busy_ns, count, site_id FROM span_levels "
		"WHERE track_id = :track AND level = :level AND bucket BETWEEN :first AND :last",
		err);

	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":level", window->level);
	prof_query_int(query, ":first", window->from_ns >> shift);
	prof_query_int(query, ":last", (window->to_ns - 1) >> shift);
	while (prof_query_next(query, &status, err)) {
		struct prof_bar bar;

		read_bucket(query, window->level, &bar);
		status = add_bar(bars, &bar, err);
	}
	prof_query_close(query);
	return status;
}

/*
 * Rows of one zone that start within the window; beside buckets, those that are in no other table.
 */
static enum status add_zone(struct prof_db *db, const struct window *window,
			    struct prof_timeline_zone zone, struct bars *bars, struct err *err)
{
	struct prof_timeline_context context = PROF_NO_CONTEXT;
	struct prof_query *query = NULL;
	int64_t first = 0;
	enum status status = prof__timeline_first_at(db, zone.first_row, zone.last_row,
						     window->from_ns, &first, err);

	if (status == ST_OK)
		status = prof_query_open(&query, db, ROWS_BY_RANGE, err);
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", zone.last_row);
	while (prof_query_next(query, &status, err)) {
		struct prof_timeline_row row;

		status = prof__timeline_read_lean(db, query, window->now_ns, &context, &row, err);
		if (status != ST_OK || row.bar.start_ns >= window->to_ns)
			break;
		if (window->level < 0 || !is_outside(window, &row.bar))
			status = add_bar(bars, &row.bar, err);
	}
	prof_query_close(query);
	return status;
}

#define ZONES_ALL                                                                                  \
	"SELECT first_row, last_row, last_ns FROM zones WHERE kind = :kind "                       \
	"AND track_id = :track AND first_ns < :to ORDER BY first_ns DESC, first_row DESC"

#define ZONES_SPARSE                                                                               \
	"SELECT first_row, last_row, last_ns FROM sparse_zones WHERE finest = :kind "              \
	"AND track_id = :track AND first_ns < :to ORDER BY first_ns DESC, first_row DESC"

/* Rows of the zones that @sql lists, latest first. */
static enum status add_rows(struct prof_db *db, const struct window *window, const char *sql,
			    int kind, struct bars *bars, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	prof_query_int(query, ":kind", kind);
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":to", window->to_ns);
	while (prof_query_next(query, &status, err)) {
		struct prof_timeline_zone zone;

		if (prof_column_int(query, 2) < window->from_ns)
			break;
		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
		status = add_zone(db, window, zone, bars, err);
	}
	prof_query_close(query);
	return status;
}

int prof_timeline_order(const struct prof_bar *a, const struct prof_bar *b)
{
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->span_id != b->span_id)
		return a->span_id < b->span_id ? -1 : 1;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	return prof_timeline_order(a, b);
}

int prof_timeline_level(int64_t window_ns, int columns)
{
	int64_t column_ns = window_ns / max(1, columns);
	int level = -1;

	while (level + 1 < PROF_LEVELS && column_ns >> prof_level_shift(level + 1) != 0)
		level++;
	return level;
}

static enum status hand_out(struct bars *bars, struct arena *arena, struct prof_bar **out,
			    int *count, struct err *err)
{
	if (bars->count == 0)
		return ST_OK;
	if (bars->count > INT32_MAX)
		return err_set(err, ST_LIMIT, "too many spans in the window");
	qsort(bars->items, bars->count, sizeof(*bars->items), by_place);
	*out = arena_alloc(arena, bars->count, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	memcpy(*out, bars->items, bars->count * sizeof(**out));
	*count = (int)bars->count;
	return ST_OK;
}

static enum status collect(struct prof_db *db, const struct window *window, struct bars *bars,
			   struct err *err)
{
	enum status status = add_left_edge(db, window, bars, err);

	if (status == ST_OK && window->level < 0)
		return add_rows(db, window, ZONES_ALL, 0, bars, err);
	if (status == ST_OK)
		status = add_open(db, window, bars, err);
	if (status == ST_OK)
		status = add_buckets(db, window, bars, err);
	for (int level = window->level + 1; level < PROF_LEVELS && status == ST_OK; level++)
		status = add_rows(db, window, ZONES_SPARSE, level, bars, err);
	for (int level = window->level; level < PROF_LEVELS && status == ST_OK; level++)
		status = add_long(db, window, level, bars, err);
	return status;
}

enum status prof_timeline_bars_at(struct prof_db *db, int64_t track_id, int level, int64_t from_ns,
				  int64_t to_ns, int64_t now_ns, struct arena *arena,
				  struct prof_bar **out, int *count, struct err *err)
{
	const struct window window = {track_id, from_ns, to_ns, now_ns, level};
	struct bars bars = {NULL, 0, 0};
	enum status status;

	*out = NULL;
	*count = 0;
	if (to_ns <= from_ns)
		return ST_OK;
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = collect(db, &window, &bars, err);
	prof__timeline_end(db);
	if (status == ST_OK)
		status = hand_out(&bars, arena, out, count, err);
	mem_free(bars.items);
	return status;
}

enum status prof_timeline_bars(struct prof_db *db, int64_t track_id, int64_t from_ns, int64_t to_ns,
			       int columns, int64_t now_ns, struct arena *arena,
			       struct prof_bar **out, int *count, struct err *err)
{
	return prof_timeline_bars_at(db, track_id, prof_timeline_level(to_ns - from_ns, columns),
				     from_ns, to_ns, now_ns, arena, out, count, err);
}
