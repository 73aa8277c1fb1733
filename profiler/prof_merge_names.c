/*
 * Merging: strings, call sites, tensors and rules, which are kept once for all sources, and tracks,
 * whose names are unique in a file. See prof_merge.h.
 *
 * What is kept once is gathered in temporary tables with a unique key, and goes to the merged file
 * at the end. For the source at hand there are maps from its ids to the common ones.
 */
#include "profiler/prof_merge_internal.h"

#include <stdio.h>

#include "common/mem.h"
#include "profiler/prof_sql.h"

/* x'00' stands for NULL, as NULLs are all different for a unique key. */
void prof__merge_names_begin(struct merge *m)
{
	prof__merge_script(
		m,
		"CREATE TEMP TABLE texts (id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);"
		"CREATE TEMP TABLE text_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
		"CREATE TEMP TABLE all_sites (id INTEGER PRIMARY KEY, category, name, operation, "
		"file, line, UNIQUE (category, name, operation, file, line));"
		"CREATE TEMP TABLE site_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
		"CREATE TEMP TABLE all_tensors (id INTEGER PRIMARY KEY, queue, key, kind, layer, "
		"stage, shape, dtype, activity, "
		"UNIQUE (queue, key, kind, layer, stage, shape, dtype, activity));"
		"CREATE TEMP TABLE tensor_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
		"CREATE TEMP TABLE all_rules (id INTEGER PRIMARY KEY, rule, threshold, patience, "
		"enabled, why, parameters, "
		"UNIQUE (rule, threshold, patience, enabled, why, parameters));"
		"CREATE TEMP TABLE rank_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
		"CREATE TEMP TABLE track_names (name TEXT PRIMARY KEY, times INTEGER NOT NULL);"
		"CREATE TEMP TABLE track_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, "
		"shift INTEGER NOT NULL, rank INTEGER, was TEXT, name TEXT, shown TEXT);"
		"CREATE INDEX temp.track_was ON track_map (was);"
		"CREATE INDEX temp.track_is ON track_map (name)");
}

static void run_all(struct merge *m, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		prof__merge_run(m, list[i]);
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

#define SITE                                                                                       \
	"SELECT s.site_id AS old, ifnull(c.new, 0) AS category, ifnull(n.new, 0) AS name, "        \
	"ifnull(o.new, x'00') AS operation, ifnull(f.new, x'00') AS file, "                        \
	"ifnull(s.line, x'00') AS line FROM src.sites s "                                          \
	"LEFT JOIN temp.text_map c ON c.old = s.category_id "                                      \
	"LEFT JOIN temp.text_map n ON n.old = s.name_id "                                          \
	"LEFT JOIN temp.text_map o ON o.old = s.operation_id "                                     \
	"LEFT JOIN temp.text_map f ON f.old = s.file_id"

#define TENSOR                                                                                     \
	"SELECT tensor_id AS old, ifnull(queue, x'00') AS queue, ifnull(key, x'00') AS key, "      \
	"ifnull(kind, x'00') AS kind, ifnull(layer, x'00') AS layer, "                             \
	"ifnull(stage, x'00') AS stage, ifnull(shape, x'00') AS shape, "                           \
	"ifnull(dtype, x'00') AS dtype, ifnull(activity, x'00') AS activity FROM src.tensor_rows"

void prof__merge_intern(struct merge *m)
{
	static const char *const list[] = {
		"DELETE FROM temp.text_map",
		"DELETE FROM temp.site_map",
		"DELETE FROM temp.tensor_map",
		"INSERT OR IGNORE INTO temp.texts (value) SELECT value FROM src.strings "
		"ORDER BY string_id",
		"INSERT INTO temp.text_map SELECT s.string_id, t.id FROM src.strings s "
		"JOIN temp.texts t ON t.value = s.value",
		"INSERT OR IGNORE INTO temp.all_sites (category, name, operation, file, line) "
		"SELECT category, name, operation, file, line FROM (" SITE " ORDER BY s.site_id)",
		"INSERT INTO temp.site_map SELECT s.old, a.id FROM (" SITE ") s "
		"JOIN temp.all_sites a USING (category, name, operation, file, line)",
		"INSERT OR IGNORE INTO temp.all_tensors (queue, key, kind, layer, stage, shape, "
		"dtype, activity) SELECT queue, key, kind, layer, stage, shape, dtype, activity "
		"FROM (" TENSOR " ORDER BY tensor_id)",
		"INSERT INTO temp.tensor_map SELECT t.old, a.id FROM (" TENSOR ") t "
		"JOIN temp.all_tensors a USING (queue, key, kind, layer, stage, shape, dtype, "
		"activity)",
		"INSERT OR IGNORE INTO temp.all_rules (rule, threshold, patience, enabled, why, "
		"parameters) SELECT ifnull(rule, x'00'), ifnull(threshold, x'00'), "
		"ifnull(patience, x'00'), ifnull(enabled, x'00'), ifnull(why, x'00'), "
		"ifnull(parameters, x'00') FROM src.health_rule_rows ORDER BY row_id",
	};

	run_all(m, list, ARRAY_LEN(list));
}

void prof__merge_names_end(struct merge *m)
{
	static const char *const list[] = {
		"INSERT INTO main.strings SELECT id, value FROM temp.texts ORDER BY id",
		"INSERT INTO main.sites SELECT id, category, name, nullif(operation, x'00'), "
		"nullif(file, x'00'), nullif(line, x'00') FROM temp.all_sites ORDER BY id",
		"INSERT INTO main.tensor_rows (tensor_id, queue, key, kind, layer, stage, shape, "
		"dtype, activity) SELECT id, nullif(queue, x'00'), nullif(key, x'00'), "
		"nullif(kind, x'00'), nullif(layer, x'00'), nullif(stage, x'00'), "
		"nullif(shape, x'00'), nullif(dtype, x'00'), nullif(activity, x'00') "
		"FROM temp.all_tensors ORDER BY id",
		"INSERT INTO main.health_rule_rows (rule, threshold, patience, enabled, why, "
		"parameters) SELECT nullif(rule, x'00'), nullif(threshold, x'00'), "
		"nullif(patience, x'00'), nullif(enabled, x'00'), nullif(why, x'00'), "
		"nullif(parameters, x'00') FROM temp.all_rules ORDER BY id",
	};

	run_all(m, list, ARRAY_LEN(list));
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* A track's name without the rank that an earlier merge put before it. */
#define UNRANKED(column)                                                                           \
	"CASE WHEN %d AND t." column " LIKE 'rank ' || t.rank || '/%%' "                           \
	"THEN substr(t." column ", length('rank ' || t.rank || '/') + 1) "                         \
	"ELSE coalesce(t." column ", '') END"

/* Counts each name, in all sources. */
void prof__merge_survey_tracks(struct merge *m)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "INSERT INTO temp.track_names SELECT " UNRANKED(
			 "track") ", 1 "
				  "FROM src.track_rows t WHERE true "
				  "ON CONFLICT (name) DO UPDATE SET times = times + 1",
		 m->source->ranks > 1);
	prof__merge_run(m, sql);
}

/* Names that tracks of several ranks have get their rank before them, in each. */
void prof__merge_tracks(struct merge *m)
{
	static const char *const list[] = {
		"UPDATE temp.track_map SET name = 'rank ' || rank || '/' || name, "
		"shown = 'rank ' || rank || '/' || shown "
		"WHERE (SELECT times FROM temp.track_names n WHERE n.name = track_map.name) > 1",
		"UPDATE temp.track_map SET name = name || ' (' || new || ')' "
		"WHERE EXISTS (SELECT 1 FROM main.track_rows r WHERE r.track = track_map.name) OR "
		"EXISTS (SELECT 1 FROM temp.track_map o "
		"WHERE o.name = track_map.name AND o.old < track_map.old)",
		"INSERT INTO main.track_rows (track_id, rank, clock, pid, tid, ipu, track, name, "
		"parent) SELECT k.new, k.rank, t.clock, t.pid, t.tid, t.ipu, k.name, k.shown, "
		"coalesce((SELECT p.name FROM temp.track_map p WHERE p.was = t.parent), t.parent) "
		"FROM src.track_rows t JOIN temp.track_map k ON k.old = t.track_id",
	};
	char sql[1024];

	prof__merge_run(m, "DELETE FROM temp.track_map");
	snprintf(sql, sizeof(sql),
		 "INSERT INTO temp.track_map SELECT t.track_id, t.track_id + :track, "
		 "iif(t.clock = 0, :shift, 0), "
		 "coalesce((SELECT new FROM temp.rank_map WHERE old = t.rank), :rank), "
		 "t.track, " UNRANKED("track") ", " UNRANKED("name") " FROM src.track_rows t",
		 m->source->ranks > 1, m->source->ranks > 1);
	prof__merge_run(m, sql);
	run_all(m, list, ARRAY_LEN(list));
}
