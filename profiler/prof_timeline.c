/*
 * The timeline, by range. See prof_timeline.h.
 *
 * What covers an instant: nesting makes it the last span that began before it and that span's
 * ancestors. What is open at the end of the file: the last span of a track and its ancestors.
 * With these two chains, the levels, the long spans and ranges of rows there is nothing to search
 * for. Every picture is read in one read transaction.
 *
 * One thread per database handle. Results are the caller's arena's.
 */
#include "profiler/prof_timeline.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_levels.h"

#define ROW_COLUMNS                                                                                \
	"SELECT r.span_id, r.start_ns, r.dur_ns, r.site_id, r.depth, r.parent_back, c.stage, "     \
	"c.microbatch, c.step, c.weight_update, c.phase "

#define ROW_BY_ID                                                                                  \
	ROW_COLUMNS "FROM span_rows r LEFT JOIN contexts c ON c.context_id = r.context_id "        \
		    "WHERE r.span_id = :span"

#define ROWS_BY_RANGE                                                                              \
	ROW_COLUMNS "FROM span_rows r LEFT JOIN contexts c ON c.context_id = r.context_id "        \
		    "WHERE r.span_id BETWEEN :first AND :last ORDER BY r.span_id"

#define ROWS_LONG                                                                                  \
	ROW_COLUMNS "FROM long_spans l JOIN span_rows r ON r.span_id = l.span_id "                 \
		    "LEFT JOIN contexts c ON c.context_id = r.context_id "                         \
		    "WHERE l.track_id = :track AND l.level = :level AND l.start_ns >= :from "      \
		    "AND l.start_ns < :to ORDER BY l.start_ns"

struct row {
	struct prof_bar bar;
	int64_t parent_id; /* INT64_MIN: none */
};

struct bars {
	struct prof_bar *items;
	size_t count, capacity;
};

struct zone {
	int64_t first_row, last_row;
};

/* ---- one snapshot ---- */

static enum status run(struct prof_db *db, const char *sql, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);
	bool row;

	if (status == ST_OK)
		status = prof_query_step(query, &row, err);
	prof_query_close(query);
	return status;
}

static enum status snapshot_begin(struct prof_db *db, struct err *err)
{
	return run(db, "SAVEPOINT prof_timeline", err);
}

static void snapshot_end(struct prof_db *db)
{
	run(db, "RELEASE prof_timeline", NULL);
}

/* ---- rows ---- */

/* Files may be damaged: what no writer writes must not overflow a sum or turn a walk into a circle.
 */
#define TIME_MOST  (INT64_C(1) << 61)
#define DEPTH_MOST 65535

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static void read_row(const struct prof_query *query, int64_t now_ns, struct row *out)
{
	struct prof_bar *bar = &out->bar;
	int64_t dur_ns = prof_column_int(query, 2), back = prof_column_int(query, 5);
	const char *phase;

	memset(out, 0, sizeof(*out));
	bar->span_id = prof_column_int(query, 0);
	bar->start_ns = within(prof_column_int(query, 1), -TIME_MOST, TIME_MOST);
	bar->open = dur_ns == INT64_MIN;
	bar->dur_ns = within(dur_ns, 0, TIME_MOST);
	if (bar->open)
		bar->dur_ns = within(now_ns, bar->start_ns, TIME_MOST) - bar->start_ns;
	bar->busy_ns = bar->dur_ns;
	bar->count = 1;
	bar->site_id = prof_column_int(query, 3);
	bar->depth = (int)within(prof_column_int(query, 4), 0, DEPTH_MOST);
	bar->stage = prof_column_int(query, 6);
	bar->microbatch = prof_column_int(query, 7);
	bar->step = prof_column_int(query, 8);
	bar->weight_update = prof_column_int(query, 9);
	phase = prof_column_text(query, 10);
	bar->phase = phase == NULL ? 0 : phase[0];
	out->parent_id = back <= 0 || back >= bar->span_id ? INT64_MIN : bar->span_id - back;
}

/* The row @span_id; *@found false: there is none. */
static enum status get_row(struct prof_db *db, int64_t span_id, int64_t now_ns, struct row *out,
			   bool *found, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, ROW_BY_ID, err);

	*found = false;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":span", span_id);
	status = prof_query_step(query, found, err);
	if (status == ST_OK && *found)
		read_row(query, now_ns, out);
	prof_query_close(query);
	return status;
}

/* The same on the way up from @below, which is @row's depth afterwards: a parent is less deep. */
static enum status get_ancestor(struct prof_db *db, int64_t span_id, int64_t now_ns, int *below,
				struct row *out, bool *found, struct err *err)
{
	enum status status = get_row(db, span_id, now_ns, out, found, err);

	if (*found && out->bar.depth >= *below)
		*found = false;
	else if (*found)
		*below = out->bar.depth;
	return status;
}

static enum status get_start(struct prof_db *db, int64_t span_id, int64_t *start_ns,
			     struct err *err)
{
	struct prof_query *query;
	bool row;
	enum status status = prof_query_open(
		&query, db, "SELECT start_ns FROM span_rows WHERE span_id = :span", err);

	*start_ns = INT64_MAX;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":span", span_id);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row)
		*start_ns = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

/* Of the rows @first .. @last, in order of start, the first that starts at @time_ns or later; @last
 * + 1: none. */
static enum status first_at(struct prof_db *db, int64_t first, int64_t last, int64_t time_ns,
			    int64_t *out, struct err *err)
{
	int64_t low = first, high = last + 1;
	enum status status = ST_OK;

	while (low < high && status == ST_OK) {
		int64_t middle = low + (high - low) / 2, start_ns;

		status = get_start(db, middle, &start_ns, err);
		if (start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	*out = low;
	return status;
}

/* The last span of @track_id that starts before @time_ns; INT64_MIN: none. */
static enum status last_before(struct prof_db *db, int64_t track_id, int64_t time_ns,
			       int64_t *span_id, struct err *err)
{
	struct prof_query *query;
	struct zone zone = {0, 0};
	bool row;
	enum status status = prof_query_open(
		&query, db,
		"SELECT first_row, last_row FROM zones WHERE kind = 0 AND track_id = :track "
		"AND first_ns < :time ORDER BY first_ns DESC, first_row DESC LIMIT 1",
		err);

	*span_id = INT64_MIN;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", track_id);
	prof_query_int(query, ":time", time_ns);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row) {
		zone.first_row = within(prof_column_int(query, 0), 0, TIME_MOST);
		zone.last_row = within(prof_column_int(query, 1), 0, TIME_MOST);
	}
	prof_query_close(query);
	if (status != ST_OK || !row)
		return status;
	status = first_at(db, zone.first_row, zone.last_row, time_ns, span_id, err);
	--*span_id;
	return status;
}

/* ---- collecting bars ---- */

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
	bool row;
	enum status status =
		prof_query_open(&query, db,
				"SELECT finest FROM zones WHERE kind = 0 AND track_id = :track "
				"AND first_ns <= :time AND first_row <= :row "
				"ORDER BY first_ns DESC, first_row DESC LIMIT 1",
				err);

	*sparse = false;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":time", bar->start_ns);
	prof_query_int(query, ":row", bar->span_id);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row)
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
	enum status status = last_before(db, window->track_id, window->from_ns, &span_id, err);

	while (status == ST_OK && span_id != INT64_MIN) {
		struct row row;
		bool found, outside;

		status = get_ancestor(db, span_id, window->now_ns, &below, &row, &found, err);
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
	enum status status = last_before(db, window->track_id, INT64_MAX, &span_id, err);

	while (status == ST_OK && span_id != INT64_MIN) {
		struct row row;
		bool found;

		status = get_ancestor(db, span_id, window->now_ns, &below, &row, &found, err);
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
	bool more = status == ST_OK;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":level", level);
	prof_query_int(query, ":from", window->from_ns);
	prof_query_int(query, ":to", window->to_ns);
	while (more && status == ST_OK) {
		struct row row;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		read_row(query, window->now_ns, &row);
		status = add_bar(bars, &row.bar, err);
	}
	prof_query_close(query);
	return status;
}

static void read_bucket(const struct prof_query *query, int level, struct prof_bar *bar)
{
	int shift = prof_level_shift(level);

	memset(bar, 0, sizeof(*bar));
	bar->start_ns =
		within(prof_column_int(query, 0), 0, TIME_MOST >> shift) * ((int64_t)1 << shift);
	bar->dur_ns = (int64_t)1 << shift;
	bar->span_id = INT64_MIN;
	bar->depth = (int)within(prof_column_int(query, 1), 0, DEPTH_MOST);
	bar->busy_ns = prof_column_int(query, 2);
	bar->count = prof_column_int(query, 3);
	bar->site_id = prof_column_int(query, 4);
	bar->stage = INT64_MIN;
	bar->microbatch = INT64_MIN;
	bar->step = INT64_MIN;
	bar->weight_update = INT64_MIN;
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
	bool more = status == ST_OK;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":level", window->level);
	prof_query_int(query, ":first", window->from_ns >> shift);
	prof_query_int(query, ":last", (window->to_ns - 1) >> shift);
	while (more && status == ST_OK) {
		struct prof_bar bar;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		read_bucket(query, window->level, &bar);
		status = add_bar(bars, &bar, err);
	}
	prof_query_close(query);
	return status;
}

/* Rows of one zone that start within the window; beside buckets, those that are in no other table.
 */
static enum status add_zone(struct prof_db *db, const struct window *window, struct zone zone,
			    struct bars *bars, struct err *err)
{
	struct prof_query *query;
	int64_t first;
	bool more = true;
	enum status status =
		first_at(db, zone.first_row, zone.last_row, window->from_ns, &first, err);

	if (status == ST_OK)
		status = prof_query_open(&query, db, ROWS_BY_RANGE, err);
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", zone.last_row);
	while (more && status == ST_OK) {
		struct row row;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		read_row(query, window->now_ns, &row);
		if (row.bar.start_ns >= window->to_ns)
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
	bool more = status == ST_OK;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":kind", kind);
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":to", window->to_ns);
	while (more && status == ST_OK) {
		struct zone zone;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more || prof_column_int(query, 2) < window->from_ns)
			break;
		zone.first_row = within(prof_column_int(query, 0), 0, TIME_MOST);
		zone.last_row = within(prof_column_int(query, 1), 0, TIME_MOST);
		status = add_zone(db, window, zone, bars, err);
	}
	prof_query_close(query);
	return status;
}

static int by_place(const void *a, const void *b)
{
	const struct prof_bar *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->span_id != y->span_id)
		return x->span_id < y->span_id ? -1 : 1;
	return 0;
}

/* The greatest level whose buckets are no wider than a column; -1: rows. */
static int level_for(int64_t window_ns, int columns)
{
	int64_t column_ns = window_ns / (columns < 1 ? 1 : columns);
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
	if (*out == NULL)
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

enum status prof_timeline_bars(struct prof_db *db, int64_t track_id, int64_t from_ns, int64_t to_ns,
			       int columns, int64_t now_ns, struct arena *arena,
			       struct prof_bar **out, int *count, struct err *err)
{
	struct window window = {track_id, from_ns, to_ns, now_ns, 0};
	struct bars bars = {NULL, 0, 0};
	enum status status;

	*out = NULL;
	*count = 0;
	if (to_ns <= from_ns)
		return ST_OK;
	window.level = level_for(to_ns - from_ns, columns);
	status = snapshot_begin(db, err);
	if (status != ST_OK)
		return status;
	status = collect(db, &window, &bars, err);
	snapshot_end(db);
	if (status == ST_OK)
		status = hand_out(&bars, arena, out, count, err);
	mem_free(bars.items);
	return status;
}

/* ---- tracks ---- */

static char *keep_text(struct arena *arena, const struct prof_query *query, int column,
		       bool *failed)
{
	const char *text = prof_column_text(query, column);
	char *copy = text == NULL ? NULL : arena_strdup(arena, text);

	if (text != NULL && copy == NULL)
		*failed = true;
	return copy;
}

/* The greatest number of the query's one column; INT64_MIN: none. */
static enum status ask_int(struct prof_db *db, const char *sql, int64_t track_id, int64_t *out,
			   struct err *err)
{
	struct prof_query *query;
	bool row;
	enum status status = prof_query_open(&query, db, sql, err);

	*out = INT64_MIN;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", track_id);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row)
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

/* From the track's last span and its ancestors: the depth, and the last time. */
static enum status measure_end(struct prof_db *db, struct prof_track *track, struct err *err)
{
	int64_t span_id;
	int below = INT_MAX;
	enum status status = last_before(db, track->track_id, INT64_MAX, &span_id, err);

	while (status == ST_OK && span_id != INT64_MIN) {
		struct row row;
		bool found;

		status = get_ancestor(db, span_id, 0, &below, &row, &found, err);
		if (status != ST_OK || !found)
			break;
		if (row.bar.depth + 1 > track->depth)
			track->depth = row.bar.depth + 1;
		if (row.bar.start_ns + row.bar.dur_ns > track->last_ns)
			track->last_ns = row.bar.start_ns + row.bar.dur_ns;
		span_id = row.parent_id;
	}
	return status;
}

static enum status measure_track(struct prof_db *db, struct prof_track *track, struct err *err)
{
	static const char *const depths[] = {
		"SELECT max(depth) FROM span_levels WHERE track_id = :track AND level = 12",
		"SELECT max(r.depth) FROM long_spans l JOIN span_rows r ON r.span_id = l.span_id "
		"WHERE l.track_id = :track AND l.level = 12",
	};
	int64_t value;
	enum status status = ask_int(db,
				     "SELECT first_ns FROM zones WHERE kind = 0 AND track_id = "
				     ":track ORDER BY first_ns LIMIT 1",
				     track->track_id, &value, err);

	track->first_ns = 0;
	track->last_ns = -1;
	if (status != ST_OK || value == INT64_MIN)
		return status;
	track->first_ns = value;
	track->last_ns = value;
	for (size_t i = 0; i < ARRAY_LEN(depths) && status == ST_OK; i++) {
		status = ask_int(db, depths[i], track->track_id, &value, err);
		value = within(value, -1, DEPTH_MOST);
		if (value + 1 > track->depth)
			track->depth = (int)value + 1;
	}
	return status == ST_OK ? measure_end(db, track, err) : status;
}

static enum status list_tracks(struct prof_db *db, struct arena *arena, struct prof_track *tracks,
			       int64_t most, int *count, struct err *err)
{
	struct prof_query *query;
	bool more = true, failed = false;
	enum status status = prof_query_open(
		&query, db,
		"SELECT track_id, rank, ipu, clock, track, name, parent FROM track_rows "
		"ORDER BY clock DESC, rank, ipu, name, track_id",
		err);

	while (status == ST_OK && more && *count < most) {
		struct prof_track *track = &tracks[*count];

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		track->track_id = prof_column_int(query, 0);
		track->rank = prof_column_int(query, 1);
		track->ipu = prof_column_int(query, 2);
		track->clock = (int)prof_column_int(query, 3);
		track->track = keep_text(arena, query, 4, &failed);
		track->name = keep_text(arena, query, 5, &failed);
		track->parent = keep_text(arena, query, 6, &failed);
		++*count;
	}
	prof_query_close(query);
	return failed ? err_nomem(err) : status;
}

static enum status read_tracks(struct prof_db *db, struct arena *arena, struct prof_track **out,
			       int *count, struct err *err)
{
	int64_t rows;
	enum status status =
		ask_int(db, "SELECT count(*) FROM track_rows WHERE :track = 0", 0, &rows, err);

	if (status != ST_OK || rows <= 0)
		return status;
	*out = arena_alloc(arena, (size_t)rows, sizeof(**out));
	if (*out == NULL)
		return err_nomem(err);
	status = list_tracks(db, arena, *out, rows, count, err);
	for (int i = 0; i < *count && status == ST_OK; i++)
		status = measure_track(db, &(*out)[i], err);
	return status;
}

enum status prof_timeline_tracks(struct prof_db *db, struct arena *arena, struct prof_track **out,
				 int *count, struct err *err)
{
	enum status status;

	*out = NULL;
	*count = 0;
	status = snapshot_begin(db, err);
	if (status != ST_OK)
		return status;
	status = read_tracks(db, arena, out, count, err);
	snapshot_end(db);
	if (status != ST_OK) {
		*out = NULL;
		*count = 0;
	}
	return status;
}

/* ---- one span ---- */

static enum status read_arguments(struct prof_db *db, int64_t span_id, struct arena *arena,
				  const char **out, struct err *err)
{
	struct prof_query *query;
	bool more = true;
	const char *all = NULL;
	enum status status = prof_query_open(
		&query, db, "SELECT name, value FROM span_args WHERE span_id = :span", err);

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":span", span_id);
	while (more && status == ST_OK) {
		const char *name, *value;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		name = prof_column_text(query, 0);
		value = prof_column_text(query, 1);
		all = arena_printf(arena, "%s%s%s=%s", all == NULL ? "" : all,
				   all == NULL ? "" : ", ", name == NULL ? "" : name,
				   value == NULL ? "-" : value);
		if (all == NULL)
			status = err_nomem(err);
	}
	prof_query_close(query);
	*out = all;
	return status;
}

static enum status read_span(const struct prof_query *query, struct arena *arena,
			     struct prof_span *out, struct err *err)
{
	const char *phase = prof_column_text(query, 14);
	bool failed = false;

	out->span_id = prof_column_int(query, 0);
	out->parent_id = prof_column_int(query, 1);
	out->track_id = prof_column_int(query, 2);
	out->start_ns = within(prof_column_int(query, 3), -TIME_MOST, TIME_MOST);
	out->dur_ns = prof_column_int(query, 4);
	out->depth = (int)within(prof_column_int(query, 5), 0, DEPTH_MOST);
	out->epoch = prof_column_int(query, 6);
	out->execution = prof_column_int(query, 7);
	out->weight_update = prof_column_int(query, 8);
	out->step = prof_column_int(query, 9);
	out->microbatch = prof_column_int(query, 10);
	out->replica = prof_column_int(query, 11);
	out->ipu = prof_column_int(query, 12);
	out->stage = prof_column_int(query, 13);
	out->phase = phase == NULL ? 0 : phase[0];
	out->track = keep_text(arena, query, 15, &failed);
	out->clock = keep_text(arena, query, 16, &failed);
	out->category = keep_text(arena, query, 17, &failed);
	out->name = keep_text(arena, query, 18, &failed);
	out->operation = keep_text(arena, query, 19, &failed);
	out->mode = keep_text(arena, query, 20, &failed);
	return failed ? err_nomem(err) : ST_OK;
}

enum status prof_timeline_span(struct prof_db *db, int64_t span_id, struct arena *arena,
			       struct prof_span *out, struct err *err)
{
	struct prof_query *query;
	bool row;
	enum status status = prof_query_open(
		&query, db,
		"SELECT v.span_id, v.parent_id, r.track_id, v.start_ns, v.dur_ns, v.depth, "
		"v.epoch, "
		"v.execution, v.weight_update, v.step, v.microbatch, v.replica, v.ipu, v.stage, "
		"v.phase, v.track, v.clock, v.category, v.name, v.operation, v.mode "
		"FROM spans v JOIN span_rows r ON r.span_id = v.span_id WHERE v.span_id = :span",
		err);

	memset(out, 0, sizeof(*out));
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":span", span_id);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && !row)
		status = err_set(err, ST_NOTFOUND, "no span %lld", (long long)span_id);
	if (status == ST_OK)
		status = read_span(query, arena, out, err);
	prof_query_close(query);
	return status == ST_OK ? read_arguments(db, span_id, arena, &out->arguments, err) : status;
}

static enum status find_at(struct prof_db *db, int64_t track_id, int64_t time_ns, int depth,
			   int64_t *out, struct err *err)
{
	int64_t span_id;
	int below = INT_MAX;
	enum status status = last_before(db, track_id, time_ns == INT64_MAX ? time_ns : time_ns + 1,
					 &span_id, err);

	while (status == ST_OK && span_id != INT64_MIN) {
		struct row row;
		bool found;

		status = get_ancestor(db, span_id, INT64_MAX, &below, &row, &found, err);
		if (status != ST_OK || !found)
			break;
		if (row.bar.depth <= depth &&
		    (time_ns - row.bar.start_ns < row.bar.dur_ns || time_ns == row.bar.start_ns)) {
			*out = span_id;
			break;
		}
		span_id = row.parent_id;
	}
	return status;
}

enum status prof_timeline_at(struct prof_db *db, int64_t track_id, int64_t time_ns, int depth,
			     int64_t *span_id, struct err *err)
{
	enum status status;

	*span_id = INT64_MIN;
	status = snapshot_begin(db, err);
	if (status != ST_OK)
		return status;
	status = find_at(db, track_id, time_ns, depth, span_id, err);
	snapshot_end(db);
	return status;
}

enum status prof_timeline_site(struct prof_db *db, int64_t site_id, struct arena *arena,
			       const char **category, const char **name, struct err *err)
{
	struct prof_query *query;
	bool row, failed = false;
	enum status status = prof_query_open(
		&query, db,
		"SELECT c.value, n.value FROM sites s LEFT JOIN strings c ON c.string_id = "
		"s.category_id LEFT JOIN strings n ON n.string_id = s.name_id WHERE s.site_id = "
		":site",
		err);

	*category = NULL;
	*name = NULL;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":site", site_id);
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && !row)
		status = err_set(err, ST_NOTFOUND, "no call site %lld", (long long)site_id);
	if (status == ST_OK) {
		*category = keep_text(arena, query, 0, &failed);
		*name = keep_text(arena, query, 1, &failed);
	}
	prof_query_close(query);
	return failed ? err_nomem(err) : status;
}

/* ---- searching ---- */

struct search {
	unsigned char *sites; /* by id: 1 where the name matches; NULL: every site does */
	size_t site_count;
	int64_t time_ns;
	bool forward;
	int64_t best_ns, best_id; /* INT64_MIN: none yet */
};

/* The call sites whose names contain @text; *@any false: there are none. */
static enum status match_sites(struct prof_db *db, const char *text, struct search *search,
			       bool *any, struct err *err)
{
	struct prof_query *query;
	size_t capacity = 0;
	bool more = true;
	enum status status = prof_query_open(
		&query, db,
		"SELECT s.site_id FROM sites s JOIN strings n ON n.string_id = s.name_id "
		"WHERE instr(lower(n.value), lower(:text)) > 0 ORDER BY s.site_id",
		err);

	*any = false;
	if (status != ST_OK)
		return status;
	prof_query_text(query, ":text", text);
	while (more && status == ST_OK) {
		size_t id;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		id = (size_t)prof_column_int(query, 0);
		if (mem_grow(&search->sites, &capacity, id + 1, 1) != 0) {
			status = err_nomem(err);
			break;
		}
		memset(search->sites + search->site_count, 0, id + 1 - search->site_count);
		search->sites[id] = 1;
		search->site_count = id + 1;
		*any = true;
	}
	prof_query_close(query);
	return status;
}

static bool site_matches(const struct search *search, int64_t site_id)
{
	return search->sites == NULL ||
	       ((size_t)site_id < search->site_count && search->sites[site_id] != 0);
}

/* Whether a span that starts at @start_ns would be beyond the best one so far. */
static bool is_worse(const struct search *search, int64_t start_ns)
{
	if (search->best_id == INT64_MIN)
		return false;
	return search->forward ? start_ns >= search->best_ns : start_ns <= search->best_ns;
}

/* Look through one zone; *@done: no later zone of the track can have a better one. */
static enum status search_zone(struct prof_db *db, struct zone zone, struct search *search,
			       bool *done, struct err *err)
{
	struct prof_query *query;
	int64_t edge;
	bool more = true;
	enum status status = first_at(
		db, zone.first_row, zone.last_row,
		search->time_ns + (search->forward && search->time_ns < INT64_MAX), &edge, err);

	if (status == ST_OK)
		status = prof_query_open(
			&query, db,
			search->forward
				? "SELECT span_id, start_ns, site_id FROM span_rows WHERE span_id "
				  "BETWEEN :first AND :last ORDER BY span_id"
				: "SELECT span_id, start_ns, site_id FROM span_rows WHERE span_id "
				  "BETWEEN :first AND :last ORDER BY span_id DESC",
			err);
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":first", search->forward ? edge : zone.first_row);
	prof_query_int(query, ":last", search->forward ? zone.last_row : edge - 1);
	while (more && status == ST_OK && !*done) {
		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		*done = is_worse(search, prof_column_int(query, 1));
		if (*done || !site_matches(search, prof_column_int(query, 2)))
			continue;
		search->best_id = prof_column_int(query, 0);
		search->best_ns = prof_column_int(query, 1);
		*done = true;
	}
	prof_query_close(query);
	return status;
}

static enum status search_track(struct prof_db *db, int64_t track_id, struct search *search,
				struct err *err)
{
	struct prof_query *query;
	bool more = true, done = false;
	enum status status = prof_query_open(
		&query, db,
		search->forward
			? "SELECT first_row, last_row FROM zones WHERE kind = 0 AND "
			  "track_id = :track AND last_ns > :time ORDER BY first_ns, first_row"
			: "SELECT first_row, last_row FROM zones WHERE kind = 0 AND "
			  "track_id = :track AND first_ns < :time ORDER BY first_ns DESC, "
			  "first_row DESC",
		err);

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", track_id);
	prof_query_int(query, ":time", search->time_ns);
	while (more && status == ST_OK && !done) {
		struct zone zone;

		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		zone.first_row = within(prof_column_int(query, 0), 0, TIME_MOST);
		zone.last_row = within(prof_column_int(query, 1), 0, TIME_MOST);
		status = search_zone(db, zone, search, &done, err);
	}
	prof_query_close(query);
	return status;
}

static enum status search_tracks(struct prof_db *db, int64_t track_id, int clock,
				 struct search *search, struct err *err)
{
	struct prof_query *query;
	bool more = true;
	enum status status;

	if (track_id != INT64_MIN)
		return search_track(db, track_id, search, err);
	status = prof_query_open(
		&query, db,
		"SELECT track_id FROM track_rows WHERE :clock < 0 OR clock = :clock "
		"ORDER BY track_id",
		err);
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":clock", clock);
	while (more && status == ST_OK) {
		status = prof_query_step(query, &more, err);
		if (status != ST_OK || !more)
			break;
		status = search_track(db, prof_column_int(query, 0), search, err);
	}
	prof_query_close(query);
	return status;
}

enum status prof_timeline_find(struct prof_db *db, int64_t track_id, int clock, const char *text,
			       int64_t time_ns, bool forward, int64_t *span_id, struct err *err)
{
	struct search search = {NULL, 0, time_ns, forward, 0, INT64_MIN};
	bool any = true;
	enum status status;

	*span_id = INT64_MIN;
	status = snapshot_begin(db, err);
	if (status != ST_OK)
		return status;
	if (text != NULL)
		status = match_sites(db, text, &search, &any, err);
	if (status == ST_OK && any)
		status = search_tracks(db, track_id, clock, &search, err);
	snapshot_end(db);
	mem_free(search.sites);
	if (status == ST_OK)
		*span_id = search.best_id;
	return status;
}
