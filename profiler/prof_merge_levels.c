/*
 * Merging: zones and levels of the rows just copied, made anew. See prof_merge.h, prof_levels.h.
 *
 * A first walk over a table finds the zones: rows of one track behind each other, at most as many
 * as the recorder writes at once, which no source needs to be believed. Then each track's zones are
 * read in order and give their levels, as the recorder's lanes do.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_inserts.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_merge_internal.h"

#define TIME_MOST  (INT64_C(1) << 61)
#define DEPTH_MOST 65535

struct zone {
	int64_t track_id, first_ns, first_row, last_ns, last_row;
};

struct making {
	struct merge *m;
	struct prof_insert zones, sparse_zones, longs, levels, counter_levels;
	sqlite3_stmt *set_finest, *find_zones, *read_spans, *read_samples;
};

static int64_t within(int64_t value)
{
	return value < -TIME_MOST ? -TIME_MOST : min(TIME_MOST, value);
}

/* ---- zones ----------------------------------------------------------------------------------- */

/* The cells of the next row of @insert; NULL after a failure. */
static struct prof_cell *next_row(struct making *make, struct prof_insert *insert)
{
	struct prof_cell *cells;

	if (!prof__merge_ok(make->m) || prof_insert_row(insert, &cells, &make->m->err) != ST_OK)
		return NULL;
	return cells;
}

static void put_zone(struct making *make, int kind, const struct zone *zone)
{
	struct prof_cell *cells = next_row(make, &make->zones);

	if (!cells)
		return;
	prof_cell_int(&cells[0], kind);
	prof_cell_int(&cells[1], zone->track_id);
	prof_cell_int(&cells[2], zone->first_ns);
	prof_cell_int(&cells[3], zone->first_row);
	prof_cell_int(&cells[4], zone->last_ns);
	prof_cell_int(&cells[5], zone->last_row);
	prof_cell_int(&cells[6], IPS_NULL);
}

/* @sql gives row, track and time, in the order of rows from number ?1 on. */
static void find_zones(struct making *make, int kind, const char *sql, int64_t first)
{
	struct zone zone = {.last_row = IPS_NULL};
	struct merge *m = make->m;
	sqlite3_stmt *rows = prof__merge_prepare(m, sql);

	if (rows)
		sqlite3_bind_int64(rows, 1, first);
	while (prof__merge_step(m, rows)) {
		int64_t row = sqlite3_column_int64(rows, 0), track = sqlite3_column_int64(rows, 1);
		int64_t ns = within(sqlite3_column_int64(rows, 2));

		if (zone.last_row == IPS_NULL || zone.track_id != track || ns < zone.last_ns ||
		    row != zone.last_row + 1 || row - zone.first_row >= PROF_LANE_ROWS) {
			if (zone.last_row != IPS_NULL)
				put_zone(make, kind, &zone);
			zone = (struct zone){track, ns, row, ns, row};
		}
		zone.last_ns = ns;
		zone.last_row = row;
	}
	sqlite3_finalize(rows);
	if (zone.last_row != IPS_NULL)
		put_zone(make, kind, &zone);
	if (prof__merge_ok(m))
		prof_insert_flush(&make->zones, &m->err);
}

static void find_all_zones(struct making *make)
{
	const struct merge *m = make->m;
	const struct {
		int kind;
		const char *sql;
		int64_t first;
	} list[] = {
		{PROF_ZONE_SPANS,
		 "SELECT span_id, track_id, start_ns FROM main.span_rows WHERE span_id >= ?1 "
		 "ORDER BY span_id",
		 m->first_span},
		{PROF_ZONE_INSTANTS,
		 "SELECT row_id, track_id, time_ns FROM main.instant_rows WHERE row_id >= ?1 "
		 "ORDER BY row_id",
		 m->first_instant},
		{PROF_ZONE_COUNTERS,
		 "SELECT row_id, track_id, time_ns FROM main.counter_rows WHERE row_id >= ?1 "
		 "ORDER BY row_id",
		 m->first_counter},
	};

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		find_zones(make, list[i].kind, list[i].sql, list[i].first);
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void put_long(struct making *make, int64_t track_id, int level, int64_t start_ns,
		     int64_t span_id)
{
	struct prof_cell *cells = next_row(make, &make->longs);

	if (!cells)
		return;
	prof_cell_int(&cells[0], track_id);
	prof_cell_int(&cells[1], level);
	prof_cell_int(&cells[2], start_ns);
	prof_cell_int(&cells[3], span_id);
}

static void put_finest(struct making *make, const struct zone *zone, int finest)
{
	struct prof_cell *cells;

	if (!prof__merge_ok(make->m))
		return;
	sqlite3_bind_int64(make->set_finest, 1, finest);
	sqlite3_bind_int64(make->set_finest, 2, zone->track_id);
	sqlite3_bind_int64(make->set_finest, 3, zone->first_ns);
	sqlite3_bind_int64(make->set_finest, 4, zone->first_row);
	prof_sql_execute(make->set_finest, &make->m->err, "zone");
	cells = finest == 0 ? NULL : next_row(make, &make->sparse_zones);
	if (!cells)
		return;
	prof_cell_int(&cells[0], zone->track_id);
	prof_cell_int(&cells[1], finest);
	prof_cell_int(&cells[2], zone->first_ns);
	prof_cell_int(&cells[3], zone->first_row);
	prof_cell_int(&cells[4], zone->last_ns);
	prof_cell_int(&cells[5], zone->last_row);
}

/* Open spans, and what no recorder writes, are in no level. */
static void add_span(struct making *make, struct prof_levels *levels, int64_t track_id,
		     sqlite3_stmt *row)
{
	const int64_t start_ns = within(sqlite3_column_int64(row, 1));
	const int64_t dur_ns = sqlite3_column_int64(row, 2);
	const int64_t depth = sqlite3_column_int64(row, 4);
	int level;

	if (sqlite3_column_type(row, 2) == SQLITE_NULL || dur_ns < 0 || dur_ns > TIME_MOST ||
	    depth < 0 || depth > DEPTH_MOST)
		return;
	level = prof_level_enter(dur_ns);
	prof_levels_add(levels, (uint32_t)depth, start_ns, dur_ns,
			(uint32_t)sqlite3_column_int64(row, 3), 0);
	if (level > 0)
		put_long(make, track_id, level - 1, start_ns, sqlite3_column_int64(row, 0));
}

static void span_zone(struct making *make, struct prof_levels *levels, const struct zone *zone)
{
	sqlite3_stmt *rows = make->read_spans;
	struct merge *m = make->m;
	int finest;

	sqlite3_bind_int64(rows, 1, zone->first_row);
	sqlite3_bind_int64(rows, 2, zone->last_row);
	while (prof__merge_step(m, rows))
		add_span(make, levels, zone->track_id, rows);
	sqlite3_reset(rows);
	prof_levels_flush(levels);
	finest = prof_levels_finest(levels, zone->last_ns - zone->first_ns);
	put_finest(make, zone, finest);
	if (prof__merge_ok(m))
		prof__insert_levels(&make->levels, zone->track_id, levels, finest, &m->err);
}

/* ---- counters -------------------------------------------------------------------------------- */

static void counter_zone(struct making *make, struct prof_counters *counters,
			 const struct zone *zone)
{
	sqlite3_stmt *rows = make->read_samples;
	struct merge *m = make->m;

	sqlite3_bind_int64(rows, 1, zone->first_row);
	sqlite3_bind_int64(rows, 2, zone->last_row);
	while (prof__merge_step(m, rows)) {
		if (sqlite3_column_type(rows, 2) != SQLITE_NULL)
			prof_counters_add(counters, (uint32_t)sqlite3_column_int64(rows, 0),
					  within(sqlite3_column_int64(rows, 1)),
					  sqlite3_column_double(rows, 2));
	}
	sqlite3_reset(rows);
	if (prof__merge_ok(m))
		prof__insert_counters(&make->counter_levels, zone->track_id, counters, &m->err);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

struct track_state {
	struct prof_levels levels;
	struct prof_counters counters;
};

/* The finest level is written to the row that is being read: its key stays. */
static void track_zones(struct making *make, struct track_state *state, int kind, int64_t track_id)
{
	sqlite3_stmt *zones = make->find_zones;

	sqlite3_bind_int64(zones, 1, kind);
	sqlite3_bind_int64(zones, 2, track_id);
	while (prof__merge_step(make->m, zones)) {
		const struct zone zone = {
			track_id, sqlite3_column_int64(zones, 0), sqlite3_column_int64(zones, 1),
			sqlite3_column_int64(zones, 2), sqlite3_column_int64(zones, 3)};

		if (kind == PROF_ZONE_SPANS)
			span_zone(make, &state->levels, &zone);
		else
			counter_zone(make, &state->counters, &zone);
	}
	sqlite3_reset(zones);
}

static void all_tracks(struct making *make)
{
	sqlite3_stmt *tracks =
		prof__merge_prepare(make->m, "SELECT new FROM temp.track_map ORDER BY new");

	while (prof__merge_step(make->m, tracks)) {
		int64_t track_id = sqlite3_column_int64(tracks, 0);
		struct track_state state;

		memset(&state, 0, sizeof(state));
		track_zones(make, &state, PROF_ZONE_SPANS, track_id);
		track_zones(make, &state, PROF_ZONE_COUNTERS, track_id);
		prof_levels_fini(&state.levels);
		prof_counters_fini(&state.counters);
	}
	sqlite3_finalize(tracks);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void prepare_all(struct making *make)
{
	const struct {
		struct prof_insert *insert;
		const char *head;
		size_t columns;
		const char *tail;
	} inserts[] = {
		{&make->zones, PROF_INSERT_ZONE, 7, NULL},
		{&make->sparse_zones, PROF_INSERT_SPARSE_ZONE, 6, NULL},
		{&make->longs, PROF_INSERT_LONG, 4, NULL},
		{&make->levels, PROF_INSERT_LEVEL, 8, PROF_INSERT_LEVEL_TAIL},
		{&make->counter_levels, PROF_INSERT_COUNTER_LEVEL, 8,
		 PROF_INSERT_COUNTER_LEVEL_TAIL},
	};
	const struct {
		sqlite3_stmt **statement;
		const char *sql;
	} statements[] = {
		{&make->set_finest, "UPDATE main.zones SET finest = ?1 WHERE kind = 0 AND "
				    "track_id = ?2 AND first_ns = ?3 AND first_row = ?4"},
		{&make->find_zones, "SELECT first_ns, first_row, last_ns, last_row FROM main.zones "
				    "WHERE kind = ?1 AND track_id = ?2 "
				    "ORDER BY first_ns, first_row"},
		{&make->read_spans, "SELECT span_id, start_ns, dur_ns, site_id, depth "
				    "FROM main.span_rows WHERE span_id BETWEEN ?1 AND ?2 "
				    "ORDER BY span_id"},
		{&make->read_samples, "SELECT site_id, time_ns, value FROM main.counter_rows "
				      "WHERE row_id BETWEEN ?1 AND ?2 ORDER BY row_id"},
	};
	struct merge *m = make->m;

	for (size_t i = 0; i < ARRAY_LEN(inserts) && prof__merge_ok(m); i++)
		prof_insert_init(inserts[i].insert, m->db, inserts[i].head, inserts[i].columns,
				 inserts[i].tail, &m->err);
	for (size_t i = 0; i < ARRAY_LEN(statements); i++)
		*statements[i].statement = prof__merge_prepare(m, statements[i].sql);
}

static void flush_all(struct making *make)
{
	struct prof_insert *const inserts[] = {&make->sparse_zones, &make->longs, &make->levels,
					       &make->counter_levels};

	for (size_t i = 0; i < ARRAY_LEN(inserts) && prof__merge_ok(make->m); i++)
		prof_insert_flush(inserts[i], &make->m->err);
}

void prof__merge_levels(struct merge *m)
{
	struct making make = {.m = m};

	prepare_all(&make);
	find_all_zones(&make);
	all_tracks(&make);
	flush_all(&make);
	prof_insert_fini(&make.zones);
	prof_insert_fini(&make.sparse_zones);
	prof_insert_fini(&make.longs);
	prof_insert_fini(&make.levels);
	prof_insert_fini(&make.counter_levels);
	sqlite3_finalize(make.set_finest);
	sqlite3_finalize(make.find_zones);
	sqlite3_finalize(make.read_spans);
	sqlite3_finalize(make.read_samples);
	/* What was stopped says so, wherever that was. */
	if (!prof__merge_ok(m) && m->stopped)
		prof__merge_tell(m, SQLITE_INTERRUPT);
}
