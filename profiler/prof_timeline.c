/*
 * The timeline, by range: tracks, the bars of a window, one span with its details, the span at a
 * position, and the next span with a name. See prof_timeline.h.
 *
 * Spans nest, so the spans that cover an instant are the last span that began before it and that
 * span's ancestors; the spans open at the end of the file are the last span of a track and its
 * ancestors. With these two chains, the levels, the long spans and ranges of rows, no search is
 * needed. Every picture is read in one read transaction.
 *
 * One thread per database handle. The caller's arena owns the results.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "profiler/prof_levels.h"
#include "profiler/prof_timeline_internal.h"

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

static void add_bar(struct prof_timeline *t, struct bars *bars, const struct prof_bar *bar)
{
	if (mem_grow(&bars->items, &bars->capacity, bars->count + 1, sizeof(*bars->items)) != 0)
		prof__timeline_nomem(t);
	else
		bars->items[bars->count++] = *bar;
}

struct window {
	int64_t track_id, from_ns, to_ns, now_ns;
	int level; /* -1: rows */
};

/* Return whether no bucket of the window's level contains the span. */
static bool is_outside(const struct window *window, const struct prof_bar *bar)
{
	return window->level < 0 || bar->open || prof_level_enter(bar->dur_ns) > window->level;
}

/* Return whether the span's zone has no buckets at the window's level: readers read its rows. */
static bool is_sparse(struct prof_timeline *t, const struct window *window,
		      const struct prof_bar *bar)
{
	struct prof_query *query = prof__timeline_ask(
		t, "SELECT finest FROM zones WHERE kind = 0 AND track_id = :track "
		   "AND first_ns <= :time AND first_row <= :row "
		   "ORDER BY first_ns DESC, first_row DESC LIMIT 1");
	bool sparse;

	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":time", bar->start_ns);
	prof_query_int(query, ":row", bar->span_id);
	sparse = prof__timeline_next(t, query) && prof_column_int(query, 0) > window->level;
	prof_query_close(query);
	return sparse;
}

/* Add the spans that cover the left edge. A span that only ends there does not. */
static void add_left_edge(struct prof_timeline *t, const struct window *window, struct bars *bars)
{
	int64_t span_id = prof__timeline_last_before(t, window->track_id, window->from_ns);
	struct prof_timeline_row row;
	int below = INT_MAX;

	for (; prof__timeline_ancestor(t, span_id, window->now_ns, &below, &row);
	     span_id = row.parent_id) {
		if ((is_outside(window, &row.bar) || is_sparse(t, window, &row.bar)) &&
		    row.bar.start_ns + row.bar.dur_ns > window->from_ns)
			add_bar(t, bars, &row.bar);
	}
}

/* Add open spans that begin within the window: they are not in buckets or long_spans. */
static void add_open(struct prof_timeline *t, const struct window *window, struct bars *bars)
{
	int64_t span_id = prof__timeline_last_before(t, window->track_id, INT64_MAX);
	struct prof_timeline_row row;
	int below = INT_MAX;

	for (; prof__timeline_ancestor(t, span_id, window->now_ns, &below, &row);
	     span_id = row.parent_id) {
		if (row.bar.open && row.bar.start_ns >= window->from_ns &&
		    row.bar.start_ns < window->to_ns)
			add_bar(t, bars, &row.bar);
	}
}

static void add_long(struct prof_timeline *t, const struct window *window, int level,
		     struct bars *bars)
{
	struct prof_query *query = prof__timeline_ask(t, ROWS_LONG);

	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":level", level);
	prof_query_int(query, ":from", window->from_ns);
	prof_query_int(query, ":to", window->to_ns);
	while (prof__timeline_next(t, query)) {
		struct prof_timeline_row row;

		prof__timeline_read(query, window->now_ns, &row);
		add_bar(t, bars, &row.bar);
	}
	prof_query_close(query);
}

static void add_buckets(struct prof_timeline *t, const struct window *window, struct bars *bars)
{
	int shift = prof_level_shift(window->level);
	struct prof_query *query = prof__timeline_ask(
		t, "SELECT bucket, depth, busy_ns, count, site_id FROM span_levels "
		   "WHERE track_id = :track AND level = :level "
		   "AND bucket BETWEEN :first AND :last");

	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":level", window->level);
	prof_query_int(query, ":first", window->from_ns >> shift);
	prof_query_int(query, ":last", (window->to_ns - 1) >> shift);
	while (prof__timeline_next(t, query)) {
		struct prof_bar bar;

		memset(&bar, 0, sizeof(bar));
		bar.start_ns = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST >> shift) *
			       ((int64_t)1 << shift);
		bar.dur_ns = (int64_t)1 << shift;
		bar.span_id = IPS_NULL;
		bar.depth = (int)prof__within(prof_column_int(query, 1), 0, PROF_DEPTH_MOST);
		bar.busy_ns = prof_column_int(query, 2);
		bar.count = prof_column_int(query, 3);
		bar.site_id = prof_column_int(query, 4);
		bar.stage = IPS_NULL;
		bar.microbatch = IPS_NULL;
		bar.step = IPS_NULL;
		bar.weight_update = IPS_NULL;
		bar.execution = IPS_NULL;

		add_bar(t, bars, &bar);
	}
	prof_query_close(query);
}

/*
 * Add the rows of one zone that start within the window; at a level, those that are not in
 * long_spans.
 */
static void add_zone(struct prof_timeline *t, const struct window *window,
		     struct prof_timeline_zone zone, struct bars *bars)
{
	const int64_t first =
		prof__timeline_first_at(t, zone.first_row, zone.last_row, window->from_ns);
	struct prof_timeline_context context = PROF_NO_CONTEXT;
	struct prof_query *query = prof__timeline_ask(t, ROWS_BY_RANGE);

	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", zone.last_row);
	while (prof__timeline_next(t, query)) {
		struct prof_timeline_row row;

		prof__timeline_read_lean(t, query, window->now_ns, &context, &row);
		if (row.bar.start_ns >= window->to_ns)
			break;
		if (window->level < 0 || !is_outside(window, &row.bar))
			add_bar(t, bars, &row.bar);
	}
	prof_query_close(query);
}

#define ZONES_ALL                                                                                  \
	"SELECT first_row, last_row, last_ns FROM zones WHERE kind = :kind "                       \
	"AND track_id = :track AND first_ns < :to ORDER BY first_ns DESC, first_row DESC"

#define ZONES_SPARSE                                                                               \
	"SELECT first_row, last_row, last_ns FROM sparse_zones WHERE finest = :kind "              \
	"AND track_id = :track AND first_ns < :to ORDER BY first_ns DESC, first_row DESC"

/* Add the rows of the zones that @sql lists, latest first. */
static void add_rows(struct prof_timeline *t, const struct window *window, const char *sql,
		     int kind, struct bars *bars)
{
	struct prof_query *query = prof__timeline_ask(t, sql);

	prof_query_int(query, ":kind", kind);
	prof_query_int(query, ":track", window->track_id);
	prof_query_int(query, ":to", window->to_ns);
	while (prof__timeline_next(t, query)) {
		struct prof_timeline_zone zone;

		if (prof_column_int(query, 2) < window->from_ns)
			break;
		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
		add_zone(t, window, zone, bars);
	}
	prof_query_close(query);
}

int prof_timeline_order(const struct prof_bar *a, const struct prof_bar *b)
{
	return SORTED_BY(a, b, depth, start_ns, span_id);
}

static int compare_bars(const void *a, const void *b)
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

static enum status copy_bars(struct bars *bars, struct arena *arena, struct prof_bar **out,
			     int *count, struct err *err)
{
	if (bars->count == 0)
		return ST_OK;
	if (bars->count > INT32_MAX)
		return err_set(err, ST_LIMIT, "too many spans in the window");
	qsort(bars->items, bars->count, sizeof(*bars->items), compare_bars);
	*out = arena_alloc(arena, bars->count, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	memcpy(*out, bars->items, bars->count * sizeof(**out));
	*count = (int)bars->count;
	return ST_OK;
}

enum status prof_timeline_bars_at(struct prof_db *db, int64_t track_id, int level, int64_t from_ns,
				  int64_t to_ns, int64_t now_ns, struct arena *arena,
				  struct prof_bar **out, int *count, struct err *err)
{
	const struct window window = {track_id, from_ns, to_ns, now_ns, level};
	struct bars bars = {NULL, 0, 0};
	struct prof_timeline t;
	enum status status;

	*out = NULL;
	*count = 0;
	if (to_ns <= from_ns)
		return ST_OK;
	t = prof__timeline_begin(db, err);
	add_left_edge(&t, &window, &bars);
	if (level < 0) {
		add_rows(&t, &window, ZONES_ALL, 0, &bars);
	} else {
		add_open(&t, &window, &bars);
		add_buckets(&t, &window, &bars);
		for (int l = level + 1; l < PROF_LEVELS; l++)
			add_rows(&t, &window, ZONES_SPARSE, l, &bars);
		for (int l = level; l < PROF_LEVELS; l++)
			add_long(&t, &window, l, &bars);
	}
	status = prof__timeline_end(&t);
	if (status == ST_OK)
		status = copy_bars(&bars, arena, out, count, err);
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

/* ---- tracks ---------------------------------------------------------------------------------- */

static void measure_track(struct prof_timeline *t, struct prof_track *track)
{
	static const char *const depths[] = {
		"SELECT max(depth) FROM span_levels WHERE track_id = :id AND level = 12",
		"SELECT max(r.depth) FROM long_spans l JOIN span_rows r ON r.span_id = l.span_id "
		"WHERE l.track_id = :id AND l.level = 12",
	};
	struct prof_timeline_row row;
	int64_t value, span_id;
	int below = INT_MAX;

	value = prof__timeline_number(t,
				      "SELECT first_ns FROM zones WHERE kind = 0 AND track_id = "
				      ":id ORDER BY first_ns LIMIT 1",
				      track->track_id);
	track->first_ns = 0;
	track->last_ns = -1;
	if (value == IPS_NULL)
		return;
	track->first_ns = prof__within(value, -PROF_TIME_MOST, PROF_TIME_MOST);
	track->last_ns = track->first_ns;
	for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
		value = prof__within(prof__timeline_number(t, depths[i], track->track_id), -1,
				     PROF_DEPTH_MOST);
		if (value + 1 > track->depth)
			track->depth = (int)value + 1;
	}
	/* The depth and the last time come from the last span and its ancestors, too. */
	span_id = prof__timeline_last_before(t, track->track_id, INT64_MAX);
	for (; prof__timeline_ancestor(t, span_id, 0, &below, &row); span_id = row.parent_id) {
		if (row.bar.depth + 1 > track->depth)
			track->depth = row.bar.depth + 1;
		if (row.bar.start_ns + row.bar.dur_ns > track->last_ns)
			track->last_ns = row.bar.start_ns + row.bar.dur_ns;
	}
}

static void list_tracks(struct prof_timeline *t, struct arena *arena, struct prof_track *tracks,
			int64_t most, int *count)
{
	struct prof_query *query = prof__timeline_ask(
		t,
		"WITH RECURSIVE up (id, top, branch, parent, n) AS ("
		"SELECT track_id, track_id, track_id, parent, 0 FROM track_rows UNION ALL "
		"SELECT u.id, p.track_id, u.top, p.parent, u.n + 1 FROM up u "
		"JOIN track_rows p ON p.track = u.parent WHERE u.n < 8), "
		"nested (yes) AS (SELECT EXISTS (SELECT 1 FROM track_rows WHERE parent <> '')) "
		"SELECT t.track_id, t.rank, t.ipu, t.clock, t.track, t.name, t.parent, g.top, "
		"g.branch FROM track_rows t JOIN nested JOIN (SELECT id, top, branch, max(n) "
		"FROM up GROUP BY id) g ON g.id = t.track_id ORDER BY t.clock DESC, t.rank, t.ipu, "
		"iif(yes, g.top, 0), iif(yes, g.branch, 0), iif(yes, t.track_id, 0), t.name, "
		"t.track_id");

	while (*count < most && prof__timeline_next(t, query)) {
		struct prof_track *track = &tracks[*count];

		track->track_id = prof_column_int(query, 0);
		track->rank = prof_column_int(query, 1);
		track->ipu = prof_column_int(query, 2);
		track->clock = (int)prof_column_int(query, 3);
		track->track = prof__timeline_text(t, arena, prof_column_text(query, 4));
		track->name = prof__timeline_text(t, arena, prof_column_text(query, 5));
		track->parent = prof__timeline_text(t, arena, prof_column_text(query, 6));
		track->top_id = prof_column_int(query, 7);
		track->branch_id = prof_column_int(query, 8);
		++*count;
	}
	prof_query_close(query);
}

enum status prof_timeline_tracks(struct prof_db *db, struct arena *arena, struct prof_track **out,
				 int *count, struct err *err)
{
	struct prof_timeline t = prof__timeline_begin(db, err);
	const int64_t rows = prof__timeline_number(&t, "SELECT count(*) FROM track_rows", IPS_NULL);

	*out = NULL;
	*count = 0;
	if (rows > 0) {
		*out = arena_alloc(arena, (size_t)rows, sizeof(**out));
		if (*out)
			list_tracks(&t, arena, *out, rows, count);
		else
			prof__timeline_nomem(&t);
	}
	for (int i = 0; i < *count; i++)
		measure_track(&t, &(*out)[i]);
	if (prof__timeline_end(&t) != ST_OK) {
		*out = NULL;
		*count = 0;
	}
	return t.status;
}

/* ---- one span -------------------------------------------------------------------------------- */

static void read_span(struct prof_timeline *t, const struct prof_query *query, struct arena *arena,
		      struct prof_span *out)
{
	const char *phase = prof_column_text(query, 14);

	out->span_id = prof_column_int(query, 0);
	out->parent_id = prof_column_int(query, 1);
	out->track_id = prof_column_int(query, 2);
	out->start_ns = prof__within(prof_column_int(query, 3), -PROF_TIME_MOST, PROF_TIME_MOST);
	out->dur_ns = prof_column_int(query, 4);
	if (out->dur_ns != IPS_NULL)
		out->dur_ns = prof__within(out->dur_ns, 0, PROF_TIME_MOST);
	out->depth = (int)prof__within(prof_column_int(query, 5), 0, PROF_DEPTH_MOST);
	out->epoch = prof_column_int(query, 6);
	out->execution = prof_column_int(query, 7);
	out->weight_update = prof_column_int(query, 8);
	out->step = prof_column_int(query, 9);
	out->microbatch = prof_column_int(query, 10);
	out->replica = prof_column_int(query, 11);
	out->ipu = prof_column_int(query, 12);
	out->stage = prof_column_int(query, 13);
	out->phase = !phase ? 0 : phase[0];
	out->track = prof__timeline_text(t, arena, prof_column_text(query, 15));
	out->clock = prof__timeline_text(t, arena, prof_column_text(query, 16));
	out->category = prof__timeline_text(t, arena, prof_column_text(query, 17));
	out->name = prof__timeline_text(t, arena, prof_column_text(query, 18));
	out->operation = prof__timeline_text(t, arena, prof_column_text(query, 19));
	out->mode = prof__timeline_text(t, arena, prof_column_text(query, 20));
}

enum status prof_timeline_span(struct prof_db *db, int64_t span_id, struct arena *arena,
			       struct prof_span *out, struct err *err)
{
	struct prof_timeline t = {.db = db, .err = err};
	struct prof_query *query = prof__timeline_ask(
		&t,
		"SELECT v.span_id, v.parent_id, r.track_id, v.start_ns, v.dur_ns, v.depth, "
		"v.epoch, "
		"v.execution, v.weight_update, v.step, v.microbatch, v.replica, v.ipu, v.stage, "
		"v.phase, v.track, v.clock, v.category, v.name, v.operation, v.mode "
		"FROM spans v JOIN span_rows r ON r.span_id = v.span_id WHERE v.span_id = :span");

	memset(out, 0, sizeof(*out));
	prof_query_int(query, ":span", span_id);
	if (prof__timeline_next(&t, query))
		read_span(&t, query, arena, out);
	else if (t.status == ST_OK)
		t.status = err_set(err, ST_NOTFOUND, "no span %lld", (long long)span_id);
	prof_query_close(query);

	query = prof__timeline_ask(&t, "SELECT name, value FROM span_args WHERE span_id = :span");
	prof_query_int(query, ":span", span_id);
	while (prof__timeline_next(&t, query)) {
		const char *name = prof_column_text(query, 0), *value = prof_column_text(query, 1);

		out->arguments = arena_printf(
			arena, "%s%s%s=%s", !out->arguments ? "" : out->arguments,
			!out->arguments ? "" : ", ", !name ? "" : name, !value ? "-" : value);
		if (!out->arguments)
			prof__timeline_nomem(&t);
	}
	prof_query_close(query);
	return t.status;
}

enum status prof_timeline_site(struct prof_db *db, int64_t site_id, struct arena *arena,
			       const char **category, const char **name, struct err *err)
{
	struct prof_timeline t = {.db = db, .err = err};
	struct prof_query *query = prof__timeline_ask(
		&t, "SELECT c.value, n.value FROM sites s LEFT JOIN strings c ON c.string_id = "
		    "s.category_id LEFT JOIN strings n ON n.string_id = s.name_id "
		    "WHERE s.site_id = :site");

	*category = NULL;
	*name = NULL;
	prof_query_int(query, ":site", site_id);
	if (prof__timeline_next(&t, query)) {
		*category = prof__timeline_text(&t, arena, prof_column_text(query, 0));
		*name = prof__timeline_text(&t, arena, prof_column_text(query, 1));
	} else if (t.status == ST_OK) {
		t.status = err_set(err, ST_NOTFOUND, "no call site %lld", (long long)site_id);
	}
	prof_query_close(query);
	return t.status;
}

/* ---- by position ----------------------------------------------------------------------------- */

enum status prof_timeline_at(struct prof_db *db, int64_t track_id, int64_t time_ns, int depth,
			     int64_t *span_id, struct err *err)
{
	struct prof_timeline t = prof__timeline_begin(db, err);
	int64_t at = prof__timeline_last_before(&t, track_id,
						time_ns == INT64_MAX ? time_ns : time_ns + 1);
	struct prof_timeline_row row;
	int below = INT_MAX;

	*span_id = IPS_NULL;
	for (; prof__timeline_ancestor(&t, at, INT64_MAX, &below, &row); at = row.parent_id) {
		if (row.bar.depth <= depth &&
		    (sat_sub(time_ns, row.bar.start_ns) < row.bar.dur_ns ||
		     time_ns == row.bar.start_ns)) {
			*span_id = at;
			break;
		}
	}
	return prof__timeline_end(&t);
}

/* ---- searching ------------------------------------------------------------------------------- */

struct search {
	unsigned char *sites; /* by id: 1 if the name matches; NULL: every site matches */
	size_t site_count;
	int64_t low_site, high_site; /* range of the matching ones */
	int64_t time_ns;
	bool forward;
	int64_t best_ns, best_id; /* IPS_NULL: none yet */
	int64_t budget;           /* spans that may be read; < 0: any number */
};

/* Writers number sites from 0 on; a greater id is a damaged file's. */
#define MOST_SITES (1 << 24)

/* Find the call sites whose names contain @text; return whether there are any. */
static bool match_sites(struct prof_timeline *t, const char *text, struct search *search)
{
	struct prof_query *query = prof__timeline_ask(
		t, "SELECT s.site_id FROM sites s JOIN strings n ON n.string_id = s.name_id "
		   "WHERE instr(lower(n.value), lower(:text)) > 0 "
		   "AND s.site_id BETWEEN 0 AND :most ORDER BY s.site_id");
	size_t capacity = 0;

	prof_query_text(query, ":text", text);
	prof_query_int(query, ":most", MOST_SITES);
	while (prof__timeline_next(t, query)) {
		const size_t id = (size_t)prof_column_int(query, 0);

		if (mem_grow(&search->sites, &capacity, id + 1, 1) != 0) {
			prof__timeline_nomem(t);
			break;
		}
		if (search->site_count == 0)
			search->low_site = (int64_t)id;
		memset(search->sites + search->site_count, 0, id + 1 - search->site_count);
		search->sites[id] = 1;
		search->site_count = id + 1;
		search->high_site = (int64_t)id;
	}
	prof_query_close(query);
	return search->site_count > 0;
}

/* Return whether a span that starts at @start_ns is farther away than the best match so far. */
static bool is_worse(const struct search *search, int64_t start_ns)
{
	if (search->best_id == IPS_NULL)
		return false;
	return search->forward ? start_ns >= search->best_ns : start_ns <= search->best_ns;
}

/* The statement skips most rows, which costs a third of returning them. */
#define ROWS_BETWEEN                                                                               \
	"SELECT span_id, start_ns, site_id FROM span_rows WHERE span_id BETWEEN :first AND :last " \
	"AND site_id BETWEEN :low AND :high ORDER BY span_id"
#define ROWS_AFTER  ROWS_BETWEEN
#define ROWS_BEFORE ROWS_BETWEEN " DESC"

/* Search one zone; return whether no later zone of the track can have a better match. */
static bool search_zone(struct prof_timeline *t, struct prof_timeline_zone zone,
			struct search *search)
{
	const int64_t edge = prof__timeline_first_at(
		t, zone.first_row, zone.last_row,
		search->time_ns + (search->forward && search->time_ns < INT64_MAX));
	struct prof_query *query =
		prof__timeline_ask(t, search->forward ? ROWS_AFTER : ROWS_BEFORE);
	bool done = false;

	if (!query)
		return false;
	prof_query_int(query, ":first", search->forward ? edge : zone.first_row);
	prof_query_int(query, ":last", search->forward ? zone.last_row : edge - 1);
	prof_query_int(query, ":low", search->low_site);
	prof_query_int(query, ":high", search->high_site);
	while (!done && prof__timeline_next(t, query)) {
		const int64_t site = prof_column_int(query, 2);

		done = is_worse(search, prof_column_int(query, 1));
		if (done || (search->sites &&
			     ((size_t)site >= search->site_count || search->sites[site] == 0)))
			continue;
		search->best_id = prof_column_int(query, 0);
		search->best_ns = prof_column_int(query, 1);
		done = true;
	}
	prof_query_close(query);
	if (!done && search->budget > 0)
		search->budget -=
			prof__within(zone.last_row - zone.first_row + 1, 0, search->budget);
	return done;
}

static void search_track(struct prof_timeline *t, int64_t track_id, struct search *search)
{
	bool done = false;
	struct prof_query *query = prof__timeline_ask(
		t, search->forward
			   ? "SELECT first_row, last_row, first_ns FROM zones WHERE kind = 0 AND "
			     "track_id = :track AND last_ns > :time ORDER BY first_ns, first_row"
			   : "SELECT first_row, last_row, last_ns FROM zones WHERE kind = 0 AND "
			     "track_id = :track AND first_ns < :time ORDER BY first_ns DESC, "
			     "first_row DESC");

	prof_query_int(query, ":track", track_id);
	prof_query_int(query, ":time", search->time_ns);
	while (!done && search->budget != 0 && prof__timeline_next(t, query)) {
		struct prof_timeline_zone zone;

		if (is_worse(search, prof_column_int(query, 2)))
			break;
		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
		done = search_zone(t, zone, search);
	}
	prof_query_close(query);
}

enum status prof_timeline_find_near(struct prof_db *db, int64_t track_id, int clock,
				    const char *text, int64_t time_ns, bool forward,
				    int64_t *budget, int64_t *span_id, struct err *err)
{
	struct search search = {NULL, 0, 0, INT64_MAX, time_ns, forward, 0, IPS_NULL, *budget};
	struct prof_timeline t = prof__timeline_begin(db, err);
	const bool any = !text || match_sites(&t, text, &search);
	struct prof_query *query;

	if (any && track_id != IPS_NULL) {
		search_track(&t, track_id, &search);
	} else if (any) {
		query = prof__timeline_ask(
			&t, "SELECT track_id FROM track_rows WHERE :clock < 0 OR clock = :clock "
			    "ORDER BY track_id");
		prof_query_int(query, ":clock", clock);
		while (prof__timeline_next(&t, query))
			search_track(&t, prof_column_int(query, 0), &search);
		prof_query_close(query);
	}
	mem_free(search.sites);
	*budget = search.budget;
	*span_id = prof__timeline_end(&t) == ST_OK ? search.best_id : IPS_NULL;
	return t.status;
}

enum status prof_timeline_find(struct prof_db *db, int64_t track_id, int clock, const char *text,
			       int64_t time_ns, bool forward, int64_t *span_id, struct err *err)
{
	int64_t budget = -1;

	return prof_timeline_find_near(db, track_id, clock, text, time_ns, forward, &budget,
				       span_id, err);
}

enum status prof_timeline_hits(struct prof_db *db, const struct prof_span *span, const char *text,
			       int64_t most, int64_t *hit, int64_t *hits, struct err *err)
{
	static const char sql[] =
		"SELECT sum(r.span_id <= :span), count(*) FROM zones z JOIN span_rows r "
		"ON r.span_id BETWEEN z.first_row AND z.last_row "
		"WHERE z.kind = 0 AND z.track_id = :track AND r.track_id = :track AND r.site_id IN "
		"(SELECT s.site_id FROM sites s JOIN strings n ON n.string_id = s.name_id "
		"WHERE instr(lower(n.value), lower(:text)) > 0) AND "
		"(SELECT sum(last_row - first_row + 1) FROM zones WHERE kind = 0 AND "
		"track_id = :track) <= :most";
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*hit = *hits = 0;
	prof_query_int(query, ":span", span->span_id);
	prof_query_int(query, ":track", span->track_id);
	prof_query_int(query, ":most", most);
	prof_query_text(query, ":text", text);
	if (prof_query_next(query, &status, err) && prof_column_int(query, 1) > 0) {
		*hit = prof_column_int(query, 0);
		*hits = prof_column_int(query, 1);
	}
	prof_query_close(query);
	return status;
}
