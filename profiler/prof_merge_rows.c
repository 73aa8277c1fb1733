/*
 * Merging: the rows of a source, and the zones and levels computed from them. See prof_merge.h.
 *
 * Each table is copied by one INSERT ... SELECT, generated from its columns and the rules below,
 * which say how a column is converted. Most rules apply to a column name, because a name means
 * the same in all tables.
 *
 * Zones and levels are computed from the rows just copied, because time buckets cannot be shifted
 * and the sources' own need not be trusted. One scan of a table finds its zones: consecutive rows
 * of one track, at most as many as the recorder writes at once. The scan adds each zone's rows to
 * the levels of their track, as the recorder's lanes do.
 */
#include <string.h>

#include "common/map.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_insert.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_merge_internal.h"

#define TIME_MOST   (INT64_C(1) << 61)
#define DEPTH_MOST  65535
#define STATES_MOST 16384 /* depths and series with open buckets in memory: 32 MB */

/* ---- rules ----------------------------------------------------------------------------------- */

enum rule {
	RULE_PLAIN,
	RULE_OWN, /* omitted: SQLite assigns new row ids */
	RULE_BASE,
	RULE_RANK,
	RULE_CONTEXT, /* a context; if NULL, the context with the rank alone */
	RULE_MAP,     /* looked up in a map of ids */
	RULE_HOST,    /* a time of the host clock */
	RULE_CLOCK,   /* a time of the clock in the row's column `clock` */
	RULE_TRACK    /* a time of its track's clock */
};

struct column_rule {
	const char *table; /* NULL: any */
	const char *column;
	enum rule rule;
	const char *with; /* the base's name, or the map */
};

/* The first matching rule applies. */
static const struct column_rule rules[] = {
	{"health_rows", "row_id", RULE_BASE, ":health"},
	{"health_sum_rows", "first_row", RULE_BASE, ":health"},
	{"tensor_stat_rows", "row_id", RULE_BASE, ":stats"},
	{"tensor_sum_rows", "first_row", RULE_BASE, ":stats"},
	{"tensor_sum_rows", "last_row", RULE_BASE, ":stats"},
	{"tensor_sum_rows", "last_ns", RULE_HOST, NULL},
	{"program_rows", "parent_id", RULE_BASE, ":program"},
	{"program_rows", "call_target", RULE_BASE, ":program"},
	{"variable_rows", "ipu", RULE_BASE, ":ipu"},
	{"variable_tile_rows", "ipu", RULE_BASE, ":ipu"},
	{"tile_memory_rows", "ipu", RULE_BASE, ":ipu"},
	{"liveness_rows", "ipu", RULE_BASE, ":ipu"},
	{"execution_rows", "start_ns", RULE_HOST, NULL},
	{"execution_sum_rows", "first_start_ns", RULE_HOST, NULL},
	{"execution_sum_rows", "last_end_ns", RULE_HOST, NULL},
	{"span_rows", "start_ns", RULE_TRACK, NULL},
	{"instant_rows", "time_ns", RULE_TRACK, NULL},
	{"counter_rows", "time_ns", RULE_TRACK, NULL},
	{"instant_rows", "row_id", RULE_BASE, ":instant"},
	{NULL, "row_id", RULE_OWN, NULL},
	{NULL, "sum_id", RULE_OWN, NULL},
	{NULL, "rank", RULE_RANK, NULL},
	{"contexts", "context_id", RULE_BASE, ":context"},
	{"span_rows", "context_id", RULE_BASE, ":context"}, /* the track has the rank */
	{"instant_rows", "context_id", RULE_BASE, ":context"},
	{NULL, "context_id", RULE_CONTEXT, NULL},
	{NULL, "track_id", RULE_BASE, ":track"},
	{NULL, "span_id", RULE_BASE, ":span"},
	{NULL, "from_span_id", RULE_BASE, ":span"},
	{NULL, "to_span_id", RULE_BASE, ":span"},
	{NULL, "launch_span_id", RULE_BASE, ":span"},
	{NULL, "instant_id", RULE_BASE, ":instant"},
	{NULL, "trace_id", RULE_BASE, ":trace"},
	{NULL, "program_id", RULE_BASE, ":program"},
	{NULL, "variable_id", RULE_BASE, ":variable"},
	{NULL, "site_id", RULE_MAP, "site_map"},
	{NULL, "tensor_id", RULE_MAP, "tensor_map"},
	{NULL, "category_id", RULE_MAP, "text_map"},
	{NULL, "name_id", RULE_MAP, "text_map"},
	{NULL, "operation_id", RULE_MAP, "text_map"},
	{NULL, "region_id", RULE_MAP, "text_map"},
	{NULL, "type_id", RULE_MAP, "text_map"},
	{NULL, "schedule_id", RULE_MAP, "text_map"},
	{NULL, "rule_id", RULE_MAP, "text_map"},
	{NULL, "device_id", RULE_MAP, "text_map"},
	{NULL, "kind_id", RULE_MAP, "text_map"},
	{NULL, "domain_id", RULE_MAP, "text_map"},
	{NULL, "source_id", RULE_MAP, "text_map"},
	{NULL, "target_id", RULE_MAP, "text_map"},
	{NULL, "to_device_id", RULE_MAP, "text_map"},
	{NULL, "time_ns", RULE_HOST, NULL},
	{NULL, "first_ns", RULE_HOST, NULL},
	{NULL, "last_time_ns", RULE_HOST, NULL},
	{NULL, "start_ns", RULE_CLOCK, NULL},
	{NULL, "first_start_ns", RULE_CLOCK, NULL},
	{NULL, "last_end_ns", RULE_CLOCK, NULL},
};

/* The compiled model. It has no rank: sources with equal models share one copy. */
static const char *const model_tables[] = {
	"layer_rows",         "operation_rows",   "plan_rows",
	"program_rows",       "compute_set_rows", "variable_rows",
	"variable_tile_rows", "tile_memory_rows", "liveness_rows",
};

static const char *const row_tables[] = {
	"contexts", /* first */
	"span_rows",
	"span_arg_rows",
	"instant_rows",
	"instant_arg_rows",
	"flow_rows",
	"counter_rows",
	"execution_rows",
	"device_traces",
	"device_step_rows",
	"device_run_rows",
	"stage_timing_rows",
	"bubble_rows",
	"tensor_tier_rows",
	"tensor_stat_rows",
	"tensor_histogram_rows",
	"tensor_epoch_rows",
	"capture_rows",
	"metric_rows",
	"health_rows",
	"first_nonfinite_rows",
	"nonfinite_trail_rows",
	"overhead_rows",
	"time_split_rows",
	"device_rows",
	"kernel_rows",
	"copy_rows",
	"call_rows",
	"launch_rows",
	"critical_rows",
	"range_rows",
	"memory_event_rows",
	"stage_sum_rows",
	"bubble_sum_rows",
	"execution_sum_rows",
	"metric_sum_rows",
	"health_sum_rows",
	"overhead_sum_rows",
	"tensor_sum_rows",
};

/* ---- the statements -------------------------------------------------------------------------- */

/* SQL of a copy: column names, their values in the merged file, the joins for these. */
struct copy {
	struct str names, values, joins;
	int maps;
};

static void copy_free(struct copy *copy)
{
	str_free(&copy->names);
	str_free(&copy->values);
	str_free(&copy->joins);
}

static const struct column_rule *find_rule(const char *table, const char *column)
{
	static const struct column_rule plain = {NULL, NULL, RULE_PLAIN, NULL};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (strcmp(rules[i].column, column) == 0 &&
		    (!rules[i].table || strcmp(rules[i].table, table) == 0))
			return &rules[i];
	}
	return &plain;
}

static void add_column(struct copy *copy, const char *table, const char *column, bool needed)
{
	const struct column_rule *rule = find_rule(table, column);
	struct str *to = &copy->values;
	int map;

	if (rule->rule == RULE_OWN)
		return;
	str_addf(&copy->names, "%s%s", copy->names.length == 0 ? "" : ", ", column);
	str_add(to, to->length == 0 ? "" : ", ");
	switch (rule->rule) {
	case RULE_OWN:
	case RULE_PLAIN:
		str_addf(to, "x.%s", column);
		break;
	case RULE_BASE:
		str_addf(to, "x.%s + %s", column, rule->with);
		break;
	case RULE_RANK:
		str_addf(to, "coalesce((SELECT new FROM temp.rank_map WHERE old = x.%s), :rank)",
			 column);
		break;
	case RULE_CONTEXT:
		str_addf(to, "coalesce(x.%s + :context, :rank_context)", column);
		break;
	case RULE_MAP:
		map = copy->maps++;
		str_addf(to, needed ? "coalesce(j%d.new, 0)" : "j%d.new", map);
		str_addf(&copy->joins, " LEFT JOIN temp.%s j%d ON j%d.old = x.%s", rule->with, map,
			 map, column);
		break;
	case RULE_HOST:
		str_addf(to, "x.%s + :shift", column);
		break;
	case RULE_CLOCK:
		str_addf(to, "x.%s + iif(x.clock = 0, :shift, 0)", column);
		break;
	case RULE_TRACK:
		str_addf(to, "x.%s + coalesce(k.shift, 0)", column);
		str_add(&copy->joins, " LEFT JOIN temp.track_map k ON k.old = x.track_id");
		break;
	}
}

/* The columns of @table that the source has, too: one of an earlier version may lack some, or all.
 * After a failure the texts may be incomplete; the caller must free them nevertheless. */
static void copy_make(struct merge *m, struct copy *copy, const char *table)
{
	sqlite3_stmt *columns = prof__merge_prepare(
		m, "SELECT name, \"notnull\" FROM pragma_table_info(?1, 'main') WHERE name IN "
		   "(SELECT name FROM pragma_table_info(?1, 'src'))");

	*copy = (struct copy){0};
	if (columns)
		sqlite3_bind_text(columns, 1, table, -1, SQLITE_STATIC);
	while (prof__merge_step(m, columns)) {
		const char *name = (const char *)sqlite3_column_text(columns, 0);

		if (!name)
			err_nomem(&m->err);
		else
			add_column(copy, table, name, sqlite3_column_int(columns, 1) != 0);
	}
	sqlite3_finalize(columns);
	if (copy->names.failed || copy->values.failed || copy->joins.failed)
		err_nomem(&m->err);
}

/* Rows are copied in order of row ids, the table's own order, which the planner's outer loop
 * uses. */
static void copy_table(struct merge *m, const char *table)
{
	struct str sql = {0};
	struct copy copy;

	copy_make(m, &copy, table);
	str_addf(&sql, "INSERT INTO main.%s (%s) SELECT %s FROM src.%s x%s", table,
		 str_peek(&copy.names), str_peek(&copy.values), table, str_peek(&copy.joins));
	m->what = table;
	if (sql.failed)
		err_nomem(&m->err);
	if (copy.names.length > 0)
		prof__merge_run(m, str_peek(&sql));
	str_free(&sql);
	copy_free(&copy);
}

/* ---- the compiled model ---------------------------------------------------------------------- */

static void digest_bytes(uint64_t digest[2], const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < size; i++) {
		digest[0] = (digest[0] ^ byte[i]) * 1099511628211u;
		digest[1] = (digest[1] + byte[i]) * 11400714819323198485u;
		digest[1] ^= digest[1] >> 29;
	}
}

/* Digest the rows as they would be copied with the current bases; names by their merged ids. */
static void digest_table(struct merge *m, const char *table, uint64_t digest[2], int64_t *rows)
{
	sqlite3_stmt *statement;
	struct str sql = {0};
	struct copy copy;

	copy_make(m, &copy, table);
	str_addf(&sql, "SELECT %s FROM src.%s x%s", str_peek(&copy.values), table,
		 str_peek(&copy.joins));
	m->what = table;
	if (sql.failed)
		err_nomem(&m->err);
	statement = prof__merge_prepare(m, str_peek(&sql));
	digest_bytes(digest, table, strlen(table));
	while (prof__merge_step(m, statement)) {
		for (int i = 0; i < sqlite3_column_count(statement); i++) {
			const int type = sqlite3_column_type(statement, i);
			const void *value = sqlite3_column_blob(statement, i);
			const int size = sqlite3_column_bytes(statement, i);

			digest_bytes(digest, &type, sizeof(type));
			digest_bytes(digest, &size, sizeof(size));
			if (value)
				digest_bytes(digest, value, (size_t)size);
		}
		++*rows;
	}
	sqlite3_finalize(statement);
	str_free(&sql);
	copy_free(&copy);
}

/* Copy the model unless an equal one is in the merged file: then use the ids of that copy. */
static void copy_model(struct merge *m)
{
	static const enum merge_base of_model[] = {MERGE_PROGRAM, MERGE_VARIABLE, MERGE_IPU};
	struct merge_model model = {.digest = {14695981039346656037u, 0}, .rank = m->source->rank};
	int64_t rows = 0;

	memcpy(model.base, m->base, sizeof(model.base));
	for (size_t i = 0; i < ARRAY_LEN(of_model); i++)
		m->base[of_model[i]] = 0;
	for (size_t i = 0; i < ARRAY_LEN(model_tables) && prof__merge_ok(m); i++)
		digest_table(m, model_tables[i], model.digest, &rows);
	if (!prof__merge_ok(m) || rows == 0)
		return;
	for (size_t i = 0; i < m->model_count; i++) {
		const struct merge_model *other = &m->models[i];

		if (memcmp(other->digest, model.digest, sizeof(model.digest)) != 0)
			continue;
		for (size_t j = 0; j < ARRAY_LEN(of_model); j++)
			m->base[of_model[j]] = other->base[of_model[j]];
		m->source->same_model = other->rank;
		return;
	}
	if (mem_grow(&m->models, &m->model_capacity, m->model_count + 1, sizeof(*m->models)) != 0) {
		err_nomem(&m->err);
		return;
	}
	m->source->own_model = m->model_count > 0;
	m->models[m->model_count++] = model;
	memcpy(m->base, model.base, sizeof(m->base));
	for (size_t i = 0; i < ARRAY_LEN(model_tables) && prof__merge_ok(m); i++)
		copy_table(m, model_tables[i]);
}

/* ---- all rows -------------------------------------------------------------------------------- */

void prof__merge_copy(struct merge *m)
{
	copy_model(m);
	for (size_t i = 0; i < ARRAY_LEN(row_tables) && prof__merge_ok(m); i++) {
		copy_table(m, row_tables[i]);
		if (i != 0)
			continue;
		/* After the contexts: add the one for rows that have none. */
		prof__merge_run(m, "INSERT INTO main.contexts (rank) VALUES (:rank)");
		m->rank_context = sqlite3_last_insert_rowid(m->db);
	}
}

/* ---- zones and levels ------------------------------------------------------------------------ */

/* The open buckets of a track, retained from one of its zones to the next. */
struct track_state {
	int64_t track_id;
	struct prof_levels levels;
	struct prof_counters counters;
};

struct zone {
	int64_t track_id, first_ns, first_row, last_ns, last_row;
};

struct level_builder {
	struct merge *m;
	struct prof_insert zones, sparse_zones, longs, levels, counter_levels;
	struct track_state *tracks;
	size_t count, capacity;
	struct map by_id; /* of tracks */
	size_t states;    /* depths and series that they have */
	struct zone zone; /* being read */
	struct track_state *track;
};

static int64_t clamp_ns(int64_t value)
{
	return value < -TIME_MOST ? -TIME_MOST : min(TIME_MOST, value);
}

/* Return the cells of the next row of @insert; NULL after a failure. */
static struct prof_cell *next_row(struct level_builder *builder, struct prof_insert *insert)
{
	struct prof_cell *cells;

	if (!prof__merge_ok(builder->m) ||
	    prof_insert_row(insert, &cells, &builder->m->err) != ST_OK)
		return NULL;
	return cells;
}

/* Discard the open buckets of all tracks; later rows of these buckets add further increments. So
 * memory is bounded whatever number of tracks and depths a file has. */
static void discard_tracks(struct level_builder *builder)
{
	for (size_t i = 0; i < builder->count; i++) {
		prof_levels_fini(&builder->tracks[i].levels);
		prof_counters_fini(&builder->tracks[i].counters);
	}
	map_clear(&builder->by_id);
	builder->count = 0;
	builder->states = 0;
}

/* Find or add a track; NULL if out of memory. */
static struct track_state *get_track(struct level_builder *builder, int64_t track_id)
{
	size_t at;

	MAP_FIND(at, &builder->by_id, (uint64_t)track_id, builder->tracks[at].track_id == track_id);
	if (at != MAP_NONE)
		return &builder->tracks[at];
	if (mem_grow(&builder->tracks, &builder->capacity, builder->count + 1,
		     sizeof(*builder->tracks)) != 0 ||
	    map_add(&builder->by_id, (uint64_t)track_id, builder->count) != 0) {
		err_nomem(&builder->m->err);
		return NULL;
	}
	builder->states++;
	builder->tracks[builder->count] = (struct track_state){.track_id = track_id};
	return &builder->tracks[builder->count++];
}

/* Spans that are open or have values no recorder writes are in no level. */
static void add_span(struct level_builder *builder, sqlite3_stmt *row, int64_t start_ns)
{
	const int64_t site = sqlite3_column_int64(row, 3), depth = sqlite3_column_int64(row, 4);
	const int64_t dur_ns = sqlite3_column_int64(row, 5);
	int level;

	if (sqlite3_column_type(row, 5) == SQLITE_NULL || dur_ns < 0 || dur_ns > TIME_MOST ||
	    depth < 0 || depth > DEPTH_MOST)
		return;
	level = prof_level_enter(dur_ns);
	prof_levels_add(&builder->track->levels, (uint32_t)depth, start_ns, dur_ns, (uint32_t)site,
			0);
	if (level > 0) {
		struct prof_cell *cells = next_row(builder, &builder->longs);

		if (!cells)
			return;
		prof_cell_int(&cells[0], builder->zone.track_id);
		prof_cell_int(&cells[1], level - 1);
		prof_cell_int(&cells[2], start_ns);
		prof_cell_int(&cells[3], sqlite3_column_int64(row, 0));
	}
}

/* After the last row of a zone: write the zone and the increments of its track's levels. */
static void end_zone(struct level_builder *builder, int kind)
{
	const struct zone *zone = &builder->zone;
	struct track_state *track = builder->track;
	struct merge *m = builder->m;
	int64_t finest = IPS_NULL;
	struct prof_cell *cells;

	if (!track)
		return;
	if (kind == PROF_ZONE_SPANS) {
		prof_levels_flush(&track->levels);
		finest = prof_levels_finest(&track->levels, zone->last_ns - zone->first_ns);
		if (prof__merge_ok(m))
			prof__insert_levels(&builder->levels, zone->track_id, &track->levels,
					    (int)finest, &m->err);
	} else if (kind == PROF_ZONE_COUNTERS && prof__merge_ok(m)) {
		prof__insert_counters(&builder->counter_levels, zone->track_id, &track->counters,
				      &m->err);
	}
	cells = next_row(builder, &builder->zones);
	if (cells) {
		prof_cell_int(&cells[0], kind);
		prof_cell_int(&cells[1], zone->track_id);
		prof_cell_int(&cells[2], zone->first_ns);
		prof_cell_int(&cells[3], zone->first_row);
		prof_cell_int(&cells[4], zone->last_ns);
		prof_cell_int(&cells[5], zone->last_row);
		prof_cell_int(&cells[6], finest);
	}
	cells = finest > 0 ? next_row(builder, &builder->sparse_zones) : NULL;
	if (cells) {
		prof_cell_int(&cells[0], zone->track_id);
		prof_cell_int(&cells[1], finest);
		prof_cell_int(&cells[2], zone->first_ns);
		prof_cell_int(&cells[3], zone->first_row);
		prof_cell_int(&cells[4], zone->last_ns);
		prof_cell_int(&cells[5], zone->last_row);
	}
}

/* Begin a new zone with the next row: @row of @track_id at @ns. */
static void begin_zone(struct level_builder *builder, int64_t track_id, int64_t ns, int64_t row)
{
	if (builder->track)
		builder->states +=
			builder->track->levels.depth_count + builder->track->counters.series_count;
	if (builder->states > STATES_MOST)
		discard_tracks(builder);
	builder->zone = (struct zone){track_id, ns, row, ns, row};
	builder->track = get_track(builder, track_id);
	if (builder->track)
		builder->states -=
			builder->track->levels.depth_count + builder->track->counters.series_count;
}

/* @sql returns row, track and time, then the columns that @kind needs, in order of rows. */
static void build_zones(struct level_builder *builder, int kind, const char *sql)
{
	struct zone *zone = &builder->zone;
	struct merge *m = builder->m;
	sqlite3_stmt *rows = prof__merge_prepare(m, sql);

	builder->track = NULL;
	while (prof__merge_step(m, rows)) {
		int64_t row = sqlite3_column_int64(rows, 0), track = sqlite3_column_int64(rows, 1);
		int64_t ns = clamp_ns(sqlite3_column_int64(rows, 2));

		if (!builder->track || zone->track_id != track || ns < zone->last_ns ||
		    row != zone->last_row + 1 || row - zone->first_row >= PROF_LANE_ROWS) {
			end_zone(builder, kind);
			begin_zone(builder, track, ns, row);
		}
		zone->last_ns = ns;
		zone->last_row = row;
		if (!builder->track)
			break;
		if (kind == PROF_ZONE_SPANS)
			add_span(builder, rows, ns);
		else if (kind == PROF_ZONE_COUNTERS && sqlite3_column_type(rows, 4) != SQLITE_NULL)
			prof_counters_add(&builder->track->counters,
					  (uint32_t)sqlite3_column_int64(rows, 3), ns,
					  sqlite3_column_double(rows, 4));
	}
	sqlite3_finalize(rows);
	end_zone(builder, kind);
}

void prof__merge_levels(struct merge *m)
{
	struct level_builder builder = {.m = m};
	const struct {
		struct prof_insert *insert;
		const char *head;
		size_t columns;
		const char *tail;
	} inserts[] = {
		{&builder.zones, PROF_INSERT_ZONE, 7, NULL},
		{&builder.sparse_zones, PROF_INSERT_SPARSE_ZONE, 6, NULL},
		{&builder.longs, PROF_INSERT_LONG, 4, NULL},
		{&builder.levels, PROF_INSERT_LEVEL, 8, PROF_INSERT_LEVEL_TAIL},
		{&builder.counter_levels, PROF_INSERT_COUNTER_LEVEL, 8,
		 PROF_INSERT_COUNTER_LEVEL_TAIL},
	};

	for (size_t i = 0; i < ARRAY_LEN(inserts) && prof__merge_ok(m); i++)
		prof_insert_init(inserts[i].insert, m->db, inserts[i].head, inserts[i].columns,
				 inserts[i].tail, &m->err);
	build_zones(
		&builder, PROF_ZONE_SPANS,
		"SELECT span_id, track_id, start_ns, site_id, depth, dur_ns FROM main.span_rows "
		"WHERE span_id >= :first_span ORDER BY span_id");
	build_zones(&builder, PROF_ZONE_INSTANTS,
		    "SELECT row_id, track_id, time_ns FROM main.instant_rows "
		    "WHERE row_id >= :first_instant ORDER BY row_id");
	build_zones(&builder, PROF_ZONE_COUNTERS,
		    "SELECT row_id, track_id, time_ns, site_id, value FROM main.counter_rows "
		    "WHERE row_id >= :first_counter ORDER BY row_id");
	for (size_t i = 0; i < ARRAY_LEN(inserts); i++) {
		if (prof__merge_ok(m))
			prof_insert_flush(inserts[i].insert, &m->err);
		prof_insert_fini(inserts[i].insert);
	}
	discard_tracks(&builder);
	mem_free(builder.tracks);
	map_fini(&builder.by_id);
}
