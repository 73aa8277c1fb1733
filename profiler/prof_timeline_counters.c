/*
 * Counters by range: the list of series, and their samples in the cells of a window. See
 * prof_timeline.h.
 *
 * A window is read from the buckets that fit its cells, or, if even the finest are wider, from the
 * rows of the zones it overlaps.
 *
 * One thread per database handle. The caller's arena owns the texts.
 */
#include "profiler/prof_timeline_internal.h"

#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "common/sorted.h"
#include "profiler/prof_levels.h"

/* ---- series ---------------------------------------------------------------------------------- */

/* The series after (@track_id, @site_id): a seek in the index, not a scan. */
#define SERIES_AFTER                                                                               \
	"SELECT c.track_id, c.site_id, t.clock, t.rank, t.track, n.value FROM (SELECT track_id, "  \
	"site_id FROM counter_levels WHERE (track_id, site_id) > (:track, :site) ORDER BY "        \
	"track_id, site_id LIMIT 1) c LEFT JOIN track_rows t ON t.track_id = c.track_id "          \
	"LEFT JOIN sites s ON s.site_id = c.site_id LEFT JOIN strings n ON n.string_id = "         \
	"s.name_id"

static bool next_series(struct prof_timeline *t, const struct prof_counter *last,
			struct arena *arena, struct prof_counter *out)
{
	struct prof_query *query = prof__timeline_ask(t, SERIES_AFTER);
	bool found;

	prof_query_int(query, ":track", !last ? INT64_MIN + 1 : last->track_id);
	prof_query_int(query, ":site", !last ? INT64_MIN + 1 : last->site_id);
	found = prof__timeline_next(t, query);
	if (found) {
		const char *track = prof_column_text(query, 4), *name = prof_column_text(query, 5);

		*out = (struct prof_counter){
			.track_id = prof_column_int(query, 0),
			.site_id = prof_column_int(query, 1),
			.clock = prof_column_int(query, 2) == 1,
			.rank = prof_column_int(query, 3),
			.track = prof__timeline_text(t, arena, !track ? "?" : track),
			.name = prof__timeline_text(t, arena, !name ? "?" : name),
		};
	}
	prof_query_close(query);
	return found && t->status == ST_OK;
}

enum status prof_timeline_counters(struct prof_db *db, int most, struct arena *arena,
				   struct prof_counter **out, int *count, struct err *err)
{
	struct prof_timeline t;

	*count = 0;
	*out = arena_alloc(arena, (size_t)most + 1, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	t = prof__timeline_begin(db, err);
	while (*count < most &&
	       next_series(&t, *count == 0 ? NULL : &(*out)[*count - 1], arena, &(*out)[*count]))
		++*count;
	return prof__timeline_end(&t);
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct sampling {
	struct prof_timeline *timeline;
	const struct prof_counter *counter;
	int64_t from_ns, to_ns;
	struct prof_samples_cell *cells;
	int columns;
};

/* Add @count samples of sum @total, at or around @time_ns; a damaged file may have any values. */
static void add_samples(const struct sampling *at, int64_t time_ns, int64_t count, double least,
			double greatest, double total)
{
	const double part = ((double)time_ns - (double)at->from_ns) /
			    (double)(at->to_ns - at->from_ns) * at->columns;
	const int column = part <= 0 ? 0 : part >= at->columns ? at->columns - 1 : (int)part;
	struct prof_samples_cell *cell = &at->cells[column];

	if (count <= 0 || isnan(total))
		return;
	if (cell->count == 0 || least < cell->least)
		cell->least = least;
	if (cell->count == 0 || greatest > cell->greatest)
		cell->greatest = greatest;
	if (cell->count == 0 || time_ns >= cell->last_ns) {
		cell->last_ns = time_ns;
		cell->last = total / (double)count;
	}
	cell->count = prof__within(cell->count + prof__within(count, 0, PROF_TIME_MOST), 0,
				   PROF_TIME_MOST);
	cell->total += total;
}

static void add_sample_buckets(const struct sampling *at, int level)
{
	const int shift = prof_level_shift(level);
	const int64_t width = (int64_t)1 << shift;
	struct prof_query *query = prof__timeline_ask(
		at->timeline,
		"SELECT bucket, count, least, greatest, total FROM counter_levels WHERE track_id = "
		":track AND site_id = :site AND level = :level AND bucket BETWEEN :first AND "
		":last");

	prof_query_int(query, ":track", at->counter->track_id);
	prof_query_int(query, ":site", at->counter->site_id);
	prof_query_int(query, ":level", level);
	prof_query_int(query, ":first", at->from_ns >> shift);
	prof_query_int(query, ":last", (at->to_ns - 1) >> shift);
	while (prof__timeline_next(at->timeline, query))
		add_samples(at,
			    prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST >> shift) *
					    width +
				    width / 2,
			    prof_column_int(query, 1), prof_column_real(query, 2),
			    prof_column_real(query, 3), prof_column_real(query, 4));
	prof_query_close(query);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_sample_before(struct prof_timeline *t, int64_t row, int64_t time_ns)
{
	const int64_t at_ns = prof__timeline_number(
		t, "SELECT time_ns FROM counter_rows WHERE row_id = :id", row);

	return at_ns != IPS_NULL && at_ns < time_ns;
}

static void add_sample_zone(const struct sampling *at, struct prof_timeline_zone zone)
{
	struct prof_timeline *t = at->timeline;
	struct prof_query *query;
	int64_t first;

	/* The zone's rows are sorted by time. */
	SORTED_FIRST(first, zone.first_row, zone.last_row + 1,
		     is_sample_before(t, first, at->from_ns));
	query = prof__timeline_ask(t, "SELECT time_ns, value, site_id FROM counter_rows WHERE "
				      "row_id BETWEEN :first AND :last ORDER BY row_id");
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", zone.last_row);
	while (prof__timeline_next(t, query) && prof_column_int(query, 0) < at->to_ns) {
		const double value = prof_column_real(query, 1);

		if (prof_column_int(query, 2) == at->counter->site_id)
			add_samples(at, prof_column_int(query, 0), 1, value, value, value);
	}
	prof_query_close(query);
}

/* Add the rows of the overlapping zones of kind 2 (PROF_ZONE_COUNTERS), latest first. */
static void add_sample_rows(const struct sampling *at)
{
	struct prof_query *query = prof__timeline_ask(
		at->timeline,
		"SELECT first_row, last_row, last_ns FROM zones WHERE kind = 2 AND track_id = "
		":track AND first_ns < :to ORDER BY first_ns DESC, first_row DESC");

	prof_query_int(query, ":track", at->counter->track_id);
	prof_query_int(query, ":to", at->to_ns);
	while (prof__timeline_next(at->timeline, query) &&
	       prof_column_int(query, 2) >= at->from_ns) {
		struct prof_timeline_zone zone;

		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
		add_sample_zone(at, zone);
	}
	prof_query_close(query);
}

/* ---- a window -------------------------------------------------------------------------------- */

enum status prof_timeline_samples(struct prof_db *db, const struct prof_counter *counter,
				  int64_t from_ns, int64_t to_ns, int columns,
				  struct prof_samples_cell *cells, struct err *err)
{
	struct prof_timeline t;
	const struct sampling at = {&t, counter, from_ns, to_ns, cells, columns};
	const int level = prof_timeline_level(to_ns - from_ns, columns);

	memset(cells, 0, (size_t)columns * sizeof(*cells));
	if (to_ns <= from_ns)
		return ST_OK;
	t = prof__timeline_begin(db, err);
	if (level < 0)
		add_sample_rows(&at);
	else
		add_sample_buckets(&at, level);
	return prof__timeline_end(&t);
}

/* Find the last of the finest buckets up to @bucket that has samples; IPS_NULL: none. */
static int64_t last_bucket(struct prof_timeline *t, const struct prof_counter *counter,
			   int64_t bucket)
{
	struct prof_query *query = prof__timeline_ask(
		t, "SELECT bucket FROM counter_levels WHERE track_id = :track AND site_id = :site "
		   "AND level = 0 AND bucket <= :bucket ORDER BY bucket DESC LIMIT 1");
	int64_t found = IPS_NULL;

	prof_query_int(query, ":track", counter->track_id);
	prof_query_int(query, ":site", counter->site_id);
	prof_query_int(query, ":bucket", bucket);
	if (prof__timeline_next(t, query))
		found = prof__within(prof_column_int(query, 0), 0,
				     PROF_TIME_MOST >> PROF_LEVEL_SHIFT);
	prof_query_close(query);
	return found;
}

enum status prof_timeline_sample_at(struct prof_db *db, const struct prof_counter *counter,
				    int64_t time_ns, struct prof_samples_cell *out, struct err *err)
{
	const int64_t end = time_ns < PROF_TIME_MOST ? time_ns + 1 : PROF_TIME_MOST;
	int64_t bucket = time_ns >> PROF_LEVEL_SHIFT;
	struct prof_timeline t = prof__timeline_begin(db, err);

	*out = (struct prof_samples_cell){0};
	/* All samples of the bucket at @time_ns may come after it: then try the bucket before. */
	for (int tries = 0; tries < 2 && out->count == 0; tries++) {
		struct sampling at = {&t, counter, 0, 0, out, 1};

		bucket = last_bucket(&t, counter, bucket);
		if (bucket == IPS_NULL)
			break;
		at.from_ns = bucket * ((int64_t)1 << PROF_LEVEL_SHIFT);
		at.to_ns = at.from_ns + ((int64_t)1 << PROF_LEVEL_SHIFT);
		at.to_ns = min(end, at.to_ns);
		add_sample_rows(&at);
		bucket--;
	}
	return prof__timeline_end(&t);
}
