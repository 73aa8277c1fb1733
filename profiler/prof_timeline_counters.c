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

static enum status next_series(struct prof_db *db, const struct prof_counter *last,
			       struct arena *arena, struct prof_counter *out, bool *found,
			       struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, SERIES_AFTER, err);

	*found = false;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", !last ? INT64_MIN + 1 : last->track_id);
	prof_query_int(query, ":site", !last ? INT64_MIN + 1 : last->site_id);
	*found = prof_query_next(query, &status, err);
	if (*found) {
		const char *track = prof_column_text(query, 4), *name = prof_column_text(query, 5);

		*out = (struct prof_counter){
			.track_id = prof_column_int(query, 0),
			.site_id = prof_column_int(query, 1),
			.clock = prof_column_int(query, 2) == 1,
			.rank = prof_column_int(query, 3),
			.track = arena_strdup(arena, !track ? "?" : track),
			.name = arena_strdup(arena, !name ? "?" : name),
		};
		status = !out->track || !out->name ? err_nomem(err) : ST_OK;
	}
	prof_query_close(query);
	return status;
}

enum status prof_timeline_counters(struct prof_db *db, int most, struct arena *arena,
				   struct prof_counter **out, int *count, struct err *err)
{
	bool found = true;
	enum status status;

	*count = 0;
	*out = arena_alloc(arena, (size_t)most + 1, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	while (status == ST_OK && *count < most) {
		status = next_series(db, *count == 0 ? NULL : &(*out)[*count - 1], arena,
				     &(*out)[*count], &found, err);
		if (status != ST_OK || !found)
			break;
		++*count;
	}
	prof__timeline_end(db);
	return status;
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct sampling {
	struct prof_db *db;
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

static enum status add_sample_buckets(const struct sampling *at, int level, struct err *err)
{
	const int shift = prof_level_shift(level);
	const int64_t width = (int64_t)1 << shift;
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, at->db,
		"SELECT bucket, count, least, greatest, total FROM counter_levels WHERE track_id = "
		":track AND site_id = :site AND level = :level AND bucket BETWEEN :first AND :last",
		err);

	prof_query_int(query, ":track", at->counter->track_id);
	prof_query_int(query, ":site", at->counter->site_id);
	prof_query_int(query, ":level", level);
	prof_query_int(query, ":first", at->from_ns >> shift);
	prof_query_int(query, ":last", (at->to_ns - 1) >> shift);
	while (prof_query_next(query, &status, err))
		add_samples(at,
			    prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST >> shift) *
					    width +
				    width / 2,
			    prof_column_int(query, 1), prof_column_real(query, 2),
			    prof_column_real(query, 3), prof_column_real(query, 4));
	prof_query_close(query);
	return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_sample_before(struct prof_db *db, int64_t row, int64_t time_ns, enum status *status,
			     struct err *err)
{
	int64_t at_ns;

	if (*status == ST_OK)
		*status = prof__timeline_number(
			db, "SELECT time_ns FROM counter_rows WHERE row_id = :id", row, &at_ns,
			err);
	return *status == ST_OK && at_ns != IPS_NULL && at_ns < time_ns;
}

static enum status add_sample_zone(const struct sampling *at, struct prof_timeline_zone zone,
				   struct err *err)
{
	struct prof_query *query = NULL;
	int64_t first = 0;
	enum status status = ST_OK;

	/* The zone's rows are sorted by time. */
	SORTED_FIRST(first, zone.first_row, zone.last_row + 1,
		     is_sample_before(at->db, first, at->from_ns, &status, err));
	if (status == ST_OK)
		status = prof_query_open(&query, at->db,
					 "SELECT time_ns, value, site_id FROM counter_rows WHERE "
					 "row_id BETWEEN :first AND :last ORDER BY row_id",
					 err);
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", zone.last_row);
	while (prof_query_next(query, &status, err) && prof_column_int(query, 0) < at->to_ns) {
		const double value = prof_column_real(query, 1);

		if (prof_column_int(query, 2) == at->counter->site_id)
			add_samples(at, prof_column_int(query, 0), 1, value, value, value);
	}
	prof_query_close(query);
	return status;
}

/* Add the rows of the overlapping zones of kind 2 (PROF_ZONE_COUNTERS), latest first. */
static enum status add_sample_rows(const struct sampling *at, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, at->db,
		"SELECT first_row, last_row, last_ns FROM zones WHERE kind = 2 AND track_id = "
		":track AND first_ns < :to ORDER BY first_ns DESC, first_row DESC",
		err);

	prof_query_int(query, ":track", at->counter->track_id);
	prof_query_int(query, ":to", at->to_ns);
	while (prof_query_next(query, &status, err) && prof_column_int(query, 2) >= at->from_ns) {
		struct prof_timeline_zone zone;

		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
		status = add_sample_zone(at, zone, err);
	}
	prof_query_close(query);
	return status;
}

/* ---- a window -------------------------------------------------------------------------------- */

enum status prof_timeline_samples(struct prof_db *db, const struct prof_counter *counter,
				  int64_t from_ns, int64_t to_ns, int columns,
				  struct prof_samples_cell *cells, struct err *err)
{
	const struct sampling at = {db, counter, from_ns, to_ns, cells, columns};
	const int level = prof_timeline_level(to_ns - from_ns, columns);
	enum status status;

	memset(cells, 0, (size_t)columns * sizeof(*cells));
	if (to_ns <= from_ns)
		return ST_OK;
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = level < 0 ? add_sample_rows(&at, err) : add_sample_buckets(&at, level, err);
	prof__timeline_end(db);
	return status;
}

/* Find the last of the finest buckets up to @bucket that has samples; IPS_NULL: none. */
static enum status last_bucket(struct prof_db *db, const struct prof_counter *counter,
			       int64_t bucket, int64_t *out, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db,
		"SELECT bucket FROM counter_levels WHERE track_id = :track AND site_id = :site AND "
		"level = 0 AND bucket <= :bucket ORDER BY bucket DESC LIMIT 1",
		err);

	*out = IPS_NULL;
	prof_query_int(query, ":track", counter->track_id);
	prof_query_int(query, ":site", counter->site_id);
	prof_query_int(query, ":bucket", bucket);
	if (prof_query_next(query, &status, err))
		*out = prof__within(prof_column_int(query, 0), 0,
				    PROF_TIME_MOST >> PROF_LEVEL_SHIFT);
	prof_query_close(query);
	return status;
}

enum status prof_timeline_sample_at(struct prof_db *db, const struct prof_counter *counter,
				    int64_t time_ns, struct prof_samples_cell *out, struct err *err)
{
	const int64_t end = time_ns < PROF_TIME_MOST ? time_ns + 1 : PROF_TIME_MOST;
	int64_t bucket = time_ns >> PROF_LEVEL_SHIFT;
	enum status status = prof__timeline_begin(db, err);

	*out = (struct prof_samples_cell){0};
	if (status != ST_OK)
		return status;
	/* All samples of the bucket at @time_ns may come after it: then try the bucket before. */
	for (int tries = 0; tries < 2 && status == ST_OK && out->count == 0; tries++) {
		struct sampling at = {db, counter, 0, 0, out, 1};

		status = last_bucket(db, counter, bucket, &bucket, err);
		if (status != ST_OK || bucket == IPS_NULL)
			break;
		at.from_ns = bucket * ((int64_t)1 << PROF_LEVEL_SHIFT);
		at.to_ns = at.from_ns + ((int64_t)1 << PROF_LEVEL_SHIFT);
		at.to_ns = min(end, at.to_ns);
		status = add_sample_rows(&at, err);
		bucket--;
	}
	prof__timeline_end(db);
	return status;
}
