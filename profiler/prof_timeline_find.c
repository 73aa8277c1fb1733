/*
 * Which span lies at a place, and the next one with a name. See prof_timeline.h.
 *
 * One thread per database handle.
 */
#include "profiler/prof_timeline_internal.h"

#include <limits.h>
#include <string.h>

#include "common/mem.h"

/* ---- by place -------------------------------------------------------------------------------- */

static enum status find_at(struct prof_db *db, int64_t track_id, int64_t time_ns, int depth,
			   int64_t *out, struct err *err)
{
	int64_t span_id;
	int below = INT_MAX;
	enum status status = prof__timeline_last_before(
		db, track_id, time_ns == INT64_MAX ? time_ns : time_ns + 1, &span_id, err);

	while (status == ST_OK && span_id != IPS_NULL) {
		struct prof_timeline_row row;
		bool found;

		status = prof__timeline_ancestor(db, span_id, INT64_MAX, &below, &row, &found, err);
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

	*span_id = IPS_NULL;
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = find_at(db, track_id, time_ns, depth, span_id, err);
	prof__timeline_end(db);
	return status;
}

/* ---- searching ------------------------------------------------------------------------------- */

struct search {
	unsigned char *sites; /* by id: 1 where the name matches; NULL: every site does */
	size_t site_count;
	int64_t low_site, high_site; /* of those that match */
	int64_t time_ns;
	bool forward;
	int64_t best_ns, best_id; /* IPS_NULL: none yet */
	int64_t budget;           /* spans that may be looked at; < 0: any number */
};

/* The call sites whose names contain @text; *@any false: there are none. */
static enum status match_sites(struct prof_db *db, const char *text, struct search *search,
			       bool *any, struct err *err)
{
	struct prof_query *query;
	size_t capacity = 0;
	enum status status = prof_query_open(
		&query, db,
		"SELECT s.site_id FROM sites s JOIN strings n ON n.string_id = s.name_id "
		"WHERE instr(lower(n.value), lower(:text)) > 0 ORDER BY s.site_id",
		err);

	*any = false;
	prof_query_text(query, ":text", text);
	while (prof_query_next(query, &status, err)) {
		const size_t id = (size_t)prof_column_int(query, 0);

		if (mem_grow(&search->sites, &capacity, id + 1, 1) != 0) {
			status = err_nomem(err);
			break;
		}
		memset(search->sites + search->site_count, 0, id + 1 - search->site_count);
		search->sites[id] = 1;
		search->site_count = id + 1;
		if (!*any)
			search->low_site = (int64_t)id;
		search->high_site = (int64_t)id;
		*any = true;
	}
	prof_query_close(query);
	return status;
}

static bool site_matches(const struct search *search, int64_t site_id)
{
	return !search->sites ||
	       ((size_t)site_id < search->site_count && search->sites[site_id] != 0);
}

/* Whether a span that starts at @start_ns would be beyond the best one so far. */
static bool is_worse(const struct search *search, int64_t start_ns)
{
	if (search->best_id == IPS_NULL)
		return false;
	return search->forward ? start_ns >= search->best_ns : start_ns <= search->best_ns;
}

/* Most rows are passed over inside the statement, which costs a third of handing them out. */
#define ROWS_BETWEEN                                                                               \
	"SELECT span_id, start_ns, site_id FROM span_rows WHERE span_id BETWEEN :first AND :last " \
	"AND site_id BETWEEN :low AND :high ORDER BY span_id"
#define ROWS_AFTER  ROWS_BETWEEN
#define ROWS_BEFORE ROWS_BETWEEN " DESC"

/* Look through one zone; *@done: no later zone of the track can have a better one. */
static enum status search_zone(struct prof_db *db, struct prof_timeline_zone zone,
			       struct search *search, bool *done, struct err *err)
{
	struct prof_query *query;
	int64_t edge;
	enum status status = prof__timeline_first_at(
		db, zone.first_row, zone.last_row,
		search->time_ns + (search->forward && search->time_ns < INT64_MAX), &edge, err);

	if (status == ST_OK)
		status = prof_query_open(&query, db, search->forward ? ROWS_AFTER : ROWS_BEFORE,
					 err);
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":first", search->forward ? edge : zone.first_row);
	prof_query_int(query, ":last", search->forward ? zone.last_row : edge - 1);
	prof_query_int(query, ":low", search->low_site);
	prof_query_int(query, ":high", search->high_site);
	while (!*done && prof_query_next(query, &status, err)) {
		*done = is_worse(search, prof_column_int(query, 1));
		if (*done || !site_matches(search, prof_column_int(query, 2)))
			continue;
		search->best_id = prof_column_int(query, 0);
		search->best_ns = prof_column_int(query, 1);
		*done = true;
	}
	prof_query_close(query);
	if (!*done && search->budget > 0)
		search->budget -=
			prof__within(zone.last_row - zone.first_row + 1, 0, search->budget);
	return status;
}

static enum status search_track(struct prof_db *db, int64_t track_id, struct search *search,
				struct err *err)
{
	struct prof_query *query;
	bool done = false;
	enum status status = prof_query_open(
		&query, db,
		search->forward
			? "SELECT first_row, last_row, first_ns FROM zones WHERE kind = 0 AND "
			  "track_id = :track AND last_ns > :time ORDER BY first_ns, first_row"
			: "SELECT first_row, last_row, last_ns FROM zones WHERE kind = 0 AND "
			  "track_id = :track AND first_ns < :time ORDER BY first_ns DESC, "
			  "first_row DESC",
		err);

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":track", track_id);
	prof_query_int(query, ":time", search->time_ns);
	while (!done && search->budget != 0 && prof_query_next(query, &status, err)) {
		struct prof_timeline_zone zone;

		if (is_worse(search, prof_column_int(query, 2)))
			break;
		zone.first_row = prof__within(prof_column_int(query, 0), 0, PROF_TIME_MOST);
		zone.last_row = prof__within(prof_column_int(query, 1), 0, PROF_TIME_MOST);
		status = search_zone(db, zone, search, &done, err);
	}
	prof_query_close(query);
	return status;
}

static enum status search_tracks(struct prof_db *db, int64_t track_id, int clock,
				 struct search *search, struct err *err)
{
	struct prof_query *query;
	enum status status;

	if (track_id != IPS_NULL)
		return search_track(db, track_id, search, err);
	status = prof_query_open(
		&query, db,
		"SELECT track_id FROM track_rows WHERE :clock < 0 OR clock = :clock "
		"ORDER BY track_id",
		err);
	prof_query_int(query, ":clock", clock);
	while (prof_query_next(query, &status, err))
		status = search_track(db, prof_column_int(query, 0), search, err);
	prof_query_close(query);
	return status;
}

enum status prof_timeline_find_near(struct prof_db *db, int64_t track_id, int clock,
				    const char *text, int64_t time_ns, bool forward,
				    int64_t *budget, int64_t *span_id, struct err *err)
{
	struct search search = {NULL, 0, 0, INT64_MAX, time_ns, forward, 0, IPS_NULL, *budget};
	bool any = true;
	enum status status;

	*span_id = IPS_NULL;
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	if (text)
		status = match_sites(db, text, &search, &any, err);
	if (status == ST_OK && any)
		status = search_tracks(db, track_id, clock, &search, err);
	prof__timeline_end(db);
	mem_free(search.sites);
	*budget = search.budget;
	if (status == ST_OK)
		*span_id = search.best_id;
	return status;
}

enum status prof_timeline_find(struct prof_db *db, int64_t track_id, int clock, const char *text,
			       int64_t time_ns, bool forward, int64_t *span_id, struct err *err)
{
	int64_t budget = -1;

	return prof_timeline_find_near(db, track_id, clock, text, time_ns, forward, &budget,
				       span_id, err);
}
