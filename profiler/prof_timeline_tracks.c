/*
 * The tracks of a file, one span with all that is known of it, the texts of a call site. See
 * prof_timeline.h.
 *
 * One thread per database handle. Results are the caller's arena's.
 */
#include "profiler/prof_timeline_internal.h"

#include <limits.h>
#include <string.h>

#include "common/mem.h"

/* ---- tracks ---------------------------------------------------------------------------------- */

static char *keep_text(struct arena *arena, const struct prof_query *query, int column,
		       bool *failed)
{
	const char *text = prof_column_text(query, column);
	char *copy = !text ? NULL : arena_strdup(arena, text);

	if (text && !copy)
		*failed = true;
	return copy;
}

/* From the track's last span and its ancestors: the depth, and the last time. */
static enum status measure_end(struct prof_db *db, struct prof_track *track, struct err *err)
{
	int64_t span_id;
	int below = INT_MAX;
	enum status status =
		prof__timeline_last_before(db, track->track_id, INT64_MAX, &span_id, err);

	while (status == ST_OK && span_id != IPS_NULL) {
		struct prof_timeline_row row;
		bool found;

		status = prof__timeline_ancestor(db, span_id, 0, &below, &row, &found, err);
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
		"SELECT max(depth) FROM span_levels WHERE track_id = :id AND level = 12",
		"SELECT max(r.depth) FROM long_spans l JOIN span_rows r ON r.span_id = l.span_id "
		"WHERE l.track_id = :id AND l.level = 12",
	};
	int64_t value;
	enum status status =
		prof__timeline_number(db,
				      "SELECT first_ns FROM zones WHERE kind = 0 AND track_id = "
				      ":id ORDER BY first_ns LIMIT 1",
				      track->track_id, &value, err);

	track->first_ns = 0;
	track->last_ns = -1;
	if (status != ST_OK || value == IPS_NULL)
		return status;
	track->first_ns = prof__within(value, -PROF_TIME_MOST, PROF_TIME_MOST);
	track->last_ns = track->first_ns;
	for (size_t i = 0; i < ARRAY_LEN(depths) && status == ST_OK; i++) {
		status = prof__timeline_number(db, depths[i], track->track_id, &value, err);
		value = prof__within(value, -1, PROF_DEPTH_MOST);
		if (value + 1 > track->depth)
			track->depth = (int)value + 1;
	}
	return status == ST_OK ? measure_end(db, track, err) : status;
}

static enum status list_tracks(struct prof_db *db, struct arena *arena, struct prof_track *tracks,
			       int64_t most, int *count, struct err *err)
{
	struct prof_query *query;
	bool failed = false;
	enum status status = prof_query_open(
		&query, db,
		"SELECT track_id, rank, ipu, clock, track, name, parent FROM track_rows "
		"ORDER BY clock DESC, rank, ipu, name, track_id",
		err);

	while (*count < most && prof_query_next(query, &status, err)) {
		struct prof_track *track = &tracks[*count];

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
	enum status status = prof_db_number(db, "SELECT count(*) FROM track_rows", &rows, err);

	if (status != ST_OK || rows <= 0)
		return status;
	*out = arena_alloc(arena, (size_t)rows, sizeof(**out));
	if (!*out)
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
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = read_tracks(db, arena, out, count, err);
	prof__timeline_end(db);
	if (status != ST_OK) {
		*out = NULL;
		*count = 0;
	}
	return status;
}

/* ---- one span -------------------------------------------------------------------------------- */

static enum status read_arguments(struct prof_db *db, int64_t span_id, struct arena *arena,
				  const char **out, struct err *err)
{
	struct prof_query *query;
	const char *all = NULL;
	enum status status = prof_query_open(
		&query, db, "SELECT name, value FROM span_args WHERE span_id = :span", err);

	prof_query_int(query, ":span", span_id);
	while (prof_query_next(query, &status, err)) {
		const char *name, *value;

		name = prof_column_text(query, 0);
		value = prof_column_text(query, 1);
		all = arena_printf(arena, "%s%s%s=%s", !all ? "" : all, !all ? "" : ", ",
				   !name ? "" : name, !value ? "-" : value);
		if (!all)
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
