/*
 * Merging: the sources one after the other, each in one transaction. See prof_merge.h.
 *
 * This file reads the sources' ranks and clocks, stores once what all share (strings, call sites,
 * tensors, rules), renames tracks and writes `meta`; prof_merge_rows.c copies the rows. At most two
 * sources are attached at a time, so SQLite's limit of attached files does not limit a merge.
 *
 * The merged file is written without a journal: no other process opens it before it is complete.
 */
#include "profiler/prof_merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "profiler/prof_finish.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_merge_internal.h"
#include "profiler/prof_sql.h"

#define INDEX_MS     ((int64_t)30 * 60 * 1000)
#define TICK         100000     /* SQLite instructions between two calls of the progress handler */
#define VALUE_BYTES  (64 << 20) /* of a value; pieces of captures have 1 MiB */
#define NUMBERS_MOST (INT64_C(1) << 60)
#define EPOCH_MOST   (INT64_C(1) << 62) /* ns: in the year 2116 */
#define RANK_MOST    999999
#define BUSY_MS      5000 /* longest wait for a writer that is finishing */

/* ---- statements ------------------------------------------------------------------------------ */

static int on_tick(void *user)
{
	struct merge *m = user;

	if (m->params->progress && !m->params->progress(m->params->user, m->at, m->what))
		m->stopped = true;
	return m->stopped;
}

/* Set the error for SQLite's result @code. */
static void fail(struct merge *m, int code)
{
	if (m->stopped)
		err_set(&m->err, ST_INTERRUPTED, "stopped");
	else
		prof_sql_error(m->db, code, &m->err, m->what);
}

static void bind(sqlite3_stmt *statement, const char *name, int64_t value)
{
	int index = sqlite3_bind_parameter_index(statement, name);

	if (index > 0)
		sqlite3_bind_int64(statement, index, value);
}

sqlite3_stmt *prof__merge_prepare(struct merge *m, const char *sql)
{
	static const char *const bases[MERGE_BASES] = {":context",  ":track", ":span",  ":instant",
						       ":health",   ":stats", ":trace", ":program",
						       ":variable", ":ipu"};
	sqlite3_stmt *statement = NULL;
	int code;

	if (!prof__merge_ok(m))
		return NULL;
	code = sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL);
	if (code != SQLITE_OK) {
		fail(m, code);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(bases); i++)
		bind(statement, bases[i], m->base[i]);
	bind(statement, ":first_span", m->first_span);
	bind(statement, ":first_instant", m->first_instant);
	bind(statement, ":first_counter", m->first_counter);
	bind(statement, ":rank_context", m->rank_context);
	if (m->source) {
		bind(statement, ":shift", m->source->shift_ns);
		bind(statement, ":rank", m->source->rank);
	}
	return statement;
}

bool prof__merge_step(struct merge *m, sqlite3_stmt *statement)
{
	int code;

	if (!prof__merge_ok(m))
		return false;
	code = sqlite3_step(statement);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		fail(m, code);
	return code == SQLITE_ROW;
}

void prof__merge_run(struct merge *m, const char *sql)
{
	sqlite3_stmt *statement = prof__merge_prepare(m, sql);

	while (prof__merge_step(m, statement))
		;
	sqlite3_finalize(statement);
}

static void run_all(struct merge *m, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		prof__merge_run(m, list[i]);
}

/* Run the statements of @sql, which have no parameters. */
static void run_script(struct merge *m, const char *sql)
{
	if (prof__merge_ok(m))
		prof_sql_run(m->db, sql, &m->err);
}

/* Return the number that @sql returns; IPS_NULL if none. */
static int64_t query_int(struct merge *m, const char *sql)
{
	sqlite3_stmt *statement = prof__merge_prepare(m, sql);
	int64_t number = IPS_NULL;

	if (prof__merge_step(m, statement) && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* Attach @path read-only as @name (src, ref), and check its tables. */
static void attach(struct merge *m, const char *path, const char *name)
{
	char wal[FS_PATH_SIZE + 8], sql[256];
	int code;

	if (!prof__merge_ok(m))
		return;
	code = prof_sql_attach(m->db, path, "mode=ro", name);
	snprintf(wal, sizeof(wal), "%s-wal", path);
	/* As prof_db_open(): if no log can be created here, and none exists. */
	if (((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY) &&
	    !fs_exists(wal))
		code = prof_sql_attach(m->db, path, "immutable=1", name);
	if (code != SQLITE_OK)
		fail(m, code);

	/* A view or virtual table instead of a table would make the merge execute its code. */
	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM %s.sqlite_schema WHERE (type <> 'table' OR rootpage < 1) "
		 "AND lower(name) IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')",
		 name);
	if (query_int(m, sql) != 0 && prof__merge_ok(m))
		err_set(&m->err, ST_FORMAT, "its tables are not those of a recording");

	if (!prof__merge_ok(m))
		err_prefix(&m->err, "%s", path);
}

static void create_database(struct merge *m, const char *path)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int code;

	if (!prof__merge_ok(m))
		return;
	code = prof_sql_open(&m->db, path, "mode=rw", flags, NULL);
	if (code != SQLITE_OK) {
		fail(m, code);
		return;
	}
	sqlite3_db_config(m->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(m->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(m->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES);
	sqlite3_busy_timeout(m->db, BUSY_MS);
	sqlite3_progress_handler(m->db, TICK, on_tick, m);
	run_script(m, "PRAGMA page_size=16384; PRAGMA cache_size=-16384;"
		      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
	if (prof__merge_ok(m))
		prof_schema_create(m->db, &m->err);
	run_script(m, "COMMIT");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static int64_t meta_int(struct prof_db *db, const char *key, int64_t missing)
{
	char text[32];
	long long value;

	return prof_db_meta(db, key, text, sizeof(text)) && str_to_int(text, &value) ? value
										     : missing;
}

static int64_t meta_rank(struct prof_db *db, const char *key, int64_t missing)
{
	int64_t rank = meta_int(db, key, missing);

	return rank < 0 || rank > RANK_MOST ? missing : rank;
}

/* Return the offset of its wall clock from rank 0's by the measurement with the smaller bound, at
 * the start or the end; 0 if the offset is within the bound. */
static int64_t clock_ahead(struct prof_db *db)
{
	int64_t ahead = meta_int(db, "clock_offset_ns", 0);
	int64_t bound = max(meta_int(db, "clock_bound_ns", 0), INT64_C(0));
	const int64_t end_bound = meta_int(db, "clock_bound_end_ns", INT64_MAX);

	if (end_bound >= 0 && end_bound < bound) {
		ahead = meta_int(db, "clock_offset_end_ns", 0);
		bound = end_bound;
	}
	return ahead < -bound || ahead > bound ? ahead : 0;
}

static void read_source(struct merge *m, struct merge_file *file, struct prof_merge_source *source)
{
	struct prof_db *db;
	char failure[ERR_TEXT_SIZE];
	int64_t last;

	if (prof_db_open(&db, source->path, &m->err) != ST_OK)
		return;
	*source = (struct prof_merge_source){
		.path = source->path, .same_model = -1, .after_rank = -1};
	source->state = prof_db_state(db);
	source->alive = prof_db_writer_alive(db);
	source->failed = prof_db_meta(db, "failure", failure, sizeof(failure));
	file->recorded = meta_rank(db, "rank", 0);
	last = meta_rank(db, "last_rank", file->recorded);
	source->ranks = last < file->recorded ? 1 : (size_t)(last - file->recorded) + 1;
	file->epoch_ns = sat_sub(meta_int(db, "start_epoch_ns", 0), clock_ahead(db));
	source->has_clock = file->epoch_ns > 0 && file->epoch_ns < EPOCH_MOST;
	file->path = mem_strdup(prof_db_path(db));
	source->part = max(meta_int(db, "part", 1), INT64_C(1));
	file->after_step = meta_int(db, "continues_after_step", 0);
	if (!realpath(prof_db_path(db), file->folder) || !strrchr(file->folder, '/'))
		file->folder[0] = '\0';
	else
		*strrchr(file->folder, '/') = '\0';
	if (source->part < 2 ||
	    !prof_db_meta(db, "continues", file->continues, sizeof(file->continues)))
		file->continues[0] = '\0';
	/* A fact that could not be read is not one that is missing. */
	if (!file->path || prof_db_lacked_memory(db))
		err_nomem(&m->err);
	prof_db_close(db);
}

static bool ranks_differ(const struct merge *m)
{
	for (size_t i = 0; i < m->count; i++) {
		for (size_t j = 0; j < i; j++) {
			int64_t a = m->files[i].recorded, b = m->files[j].recorded;

			if (a < b + (int64_t)m->sources[j].ranks &&
			    b < a + (int64_t)m->sources[i].ranks)
				return false;
		}
	}
	return true;
}

static void assign_ranks(struct merge *m)
{
	const bool differ = ranks_differ(m);
	const bool keep = differ && m->params->ranks != PROF_MERGE_RANKS_ORDER;
	int64_t next = 0;

	if (m->params->ranks == PROF_MERGE_RANKS_KEEP && !differ)
		err_set(&m->err, ST_INVALID,
			"two reports were recorded with the same rank; number them in order "
			"instead");
	for (size_t i = 0; i < m->count; i++) {
		m->sources[i].rank = keep ? m->files[i].recorded : next;
		next += (int64_t)m->sources[i].ranks;
	}
}

/* Map the source's first rank to its rank in the merged file; further ranks (of a merge) follow. */
static void map_ranks(struct merge *m)
{
	char sql[256];

	prof__merge_run(m, "DELETE FROM temp.rank_map");
	snprintf(sql, sizeof(sql), "INSERT INTO temp.rank_map VALUES (%lld, :rank)",
		 (long long)m->files[m->at].recorded);
	if (m->source->ranks > 1)
		snprintf(sql, sizeof(sql),
			 "INSERT INTO temp.rank_map WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL "
			 "SELECT i + 1 FROM n WHERE i + 1 < %zu) "
			 "SELECT %lld + i, :rank + i FROM n",
			 m->source->ranks, (long long)m->files[m->at].recorded);
	prof__merge_run(m, sql);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Strings, call sites, tensors and rules are stored once for all sources. They are collected in
 * temporary tables with a unique key and copied to the merged file at the end. For the current
 * source there are maps from its ids to the common ones. x'00' stands for NULL, because a unique
 * key treats all NULLs as different. */
static void create_names(struct merge *m)
{
	run_script(
		m,
		"CREATE TEMP TABLE texts (id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);"
		"CREATE TEMP TABLE text_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
		"CREATE TEMP TABLE all_sites (id INTEGER PRIMARY KEY, category, name, operation, "
		"file, line, UNIQUE (category, name, operation, file, line));"
		"CREATE TEMP TABLE site_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);"
		"CREATE TEMP TABLE all_tensors (id INTEGER PRIMARY KEY, queue, key, kind, layer, "
		"stage, shape, dtype, activity, dims, "
		"UNIQUE (queue, key, kind, layer, stage, shape, dtype, activity, dims));"
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
	"ifnull(dtype, x'00') AS dtype, ifnull(activity, x'00') AS activity, "                     \
	"ifnull(dims, x'00') AS dims FROM temp.src_tensors"

static void intern_names(struct merge *m)
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
		"dtype, activity, dims) SELECT queue, key, kind, layer, stage, shape, dtype, "
		"activity, dims "
		"FROM (" TENSOR " ORDER BY tensor_id)",
		"INSERT INTO temp.tensor_map SELECT t.old, a.id FROM (" TENSOR ") t "
		"JOIN temp.all_tensors a USING (queue, key, kind, layer, stage, shape, dtype, "
		"activity, dims)",
		"INSERT OR IGNORE INTO temp.all_rules (rule, threshold, patience, enabled, why, "
		"parameters) SELECT ifnull(rule, x'00'), ifnull(threshold, x'00'), "
		"ifnull(patience, x'00'), ifnull(enabled, x'00'), ifnull(why, x'00'), "
		"ifnull(parameters, x'00') FROM src.health_rule_rows ORDER BY row_id",
	};
	const bool dims =
		query_int(m, "SELECT count(*) FROM pragma_table_info('tensor_rows', 'src') "
			     "WHERE name = 'dims'") > 0;

	/* Recordings from before 1.0 may have no names of dimensions. */
	run_script(m, "DROP VIEW IF EXISTS temp.src_tensors");
	run_script(m, dims ? "CREATE TEMP VIEW src_tensors AS SELECT * FROM src.tensor_rows"
			   : "CREATE TEMP VIEW src_tensors AS SELECT *, NULL AS dims "
			     "FROM src.tensor_rows");

	run_all(m, list, ARRAY_LEN(list));
}

static void write_names(struct merge *m)
{
	static const char *const list[] = {
		"INSERT INTO main.strings SELECT id, value FROM temp.texts ORDER BY id",
		"INSERT INTO main.sites SELECT id, category, name, nullif(operation, x'00'), "
		"nullif(file, x'00'), nullif(line, x'00') FROM temp.all_sites ORDER BY id",
		"INSERT INTO main.tensor_rows (tensor_id, queue, key, kind, layer, stage, shape, "
		"dtype, activity, dims) SELECT id, nullif(queue, x'00'), nullif(key, x'00'), "
		"nullif(kind, x'00'), nullif(layer, x'00'), nullif(stage, x'00'), "
		"nullif(shape, x'00'), nullif(dtype, x'00'), nullif(activity, x'00'), "
		"nullif(dims, x'00') FROM temp.all_tensors ORDER BY id",
		"INSERT INTO main.health_rule_rows (rule, threshold, patience, enabled, why, "
		"parameters) SELECT nullif(rule, x'00'), nullif(threshold, x'00'), "
		"nullif(patience, x'00'), nullif(enabled, x'00'), nullif(why, x'00'), "
		"nullif(parameters, x'00') FROM temp.all_rules ORDER BY id",
	};

	run_all(m, list, ARRAY_LEN(list));
}

/* A track's name without the rank that an earlier merge prepended. */
#define UNRANKED(column)                                                                           \
	"CASE WHEN %d AND t." column " LIKE 'rank ' || t.rank || '/%%' "                           \
	"THEN substr(t." column ", length('rank ' || t.rank || '/') + 1) "                         \
	"ELSE coalesce(t." column ", '') END"

/* If tracks of several ranks have the same name, the rank is prepended to each. */
static void copy_tracks(struct merge *m)
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

/* ---- clocks ---------------------------------------------------------------------------------- */

/* Compute how far each source's host times are shifted. A recording stores its start by its host's
 * wall clock, which may be wrong by seconds if hosts differ. Processes of one job synchronize at
 * every execution: the remaining difference between the starts of executions with equal numbers is
 * the clocks' error. Its median is robust against executions that one process reached late. */

/* Anchors of a source: the starts of its first rank's executions, by number... */
#define EXECUTIONS(schema)                                                                         \
	"SELECT mode, epoch, execution AS number, min(start_ns) AS ns FROM " schema                \
	".execution_rows WHERE start_ns IS NOT NULL AND execution IS NOT NULL AND "                \
	"rank = (SELECT min(rank) FROM " schema ".execution_rows) GROUP BY 1, 2, 3"

/* ...or, if none are in common, the first span of each step on the host clock. */
#define STEPS(schema)                                                                              \
	"SELECT c.mode, NULL AS epoch, c.step AS number, min(s.start_ns) AS ns FROM " schema       \
	".span_rows s JOIN " schema ".contexts c ON c.context_id = s.context_id JOIN " schema      \
	".track_rows t ON t.track_id = s.track_id WHERE t.clock = 0 AND c.step IS NOT NULL AND "   \
	"c.rank = (SELECT min(rank) FROM " schema ".track_rows) GROUP BY 1, 2, 3"

/* No recorder writes differences beyond 2^61. */
#define COMMON(moments)                                                                            \
	"INSERT INTO temp.anchors SELECT b.ns - a.ns FROM (" moments("ref") ") a JOIN (" moments(  \
		"src") ") b ON b.number = a.number AND b.mode IS a.mode AND b.epoch IS a.epoch "   \
		       "WHERE b.ns - a.ns BETWEEN -(1 << 61) AND 1 << 61"

/* Measure what remains, after the shifts, between @reference and the current source. */
static void measure_residual(struct merge *m, const struct prof_merge_source *reference)
{
	struct prof_merge_source *source = m->source;
	const int64_t shift = source->shift_ns - reference->shift_ns;
	int64_t median, least, greatest;

	if (source->anchors <= 0)
		return;
	median = query_int(m, "SELECT d FROM temp.anchors ORDER BY d LIMIT 1 "
			      "OFFSET (SELECT (count(*) - 1) / 2 FROM temp.anchors)");
	least = query_int(m, "SELECT min(d) FROM temp.anchors");
	greatest = query_int(m, "SELECT max(d) FROM temp.anchors");
	if (!prof__merge_ok(m))
		return;
	if (m->params->align == PROF_MERGE_ALIGN_STEPS) {
		source->shift_ns = reference->shift_ns - median;
		source->residual_ns = 0;
		source->greatest_ns = max(greatest - median, median - least);
		return;
	}
	source->residual_ns = median + shift;
	least = least + shift < 0 ? -(least + shift) : least + shift;
	greatest = greatest + shift < 0 ? -(greatest + shift) : greatest + shift;
	source->greatest_ns = max(least, greatest);
}

static void measure_all(struct merge *m)
{
	static const char count[] = "SELECT count(*) FROM temp.anchors";

	attach(m, m->files[0].path, "ref");
	for (m->at = 1; m->at < m->count && prof__merge_ok(m); m->at++) {
		m->source = &m->sources[m->at];
		attach(m, m->files[m->at].path, "src");
		if (!prof__merge_ok(m))
			break;
		prof__merge_run(m, "DELETE FROM temp.anchors");
		prof__merge_run(m, COMMON(EXECUTIONS));
		if (query_int(m, count) == 0)
			prof__merge_run(m, COMMON(STEPS));
		m->source->anchors = query_int(m, count);
		measure_residual(m, &m->sources[0]);
		if (!prof__merge_ok(m))
			err_prefix(&m->err, "%s", m->files[m->at].path);
		prof_sql_detach(m->db, "src");
	}
	prof_sql_detach(m->db, "ref");
}

/* Make the earliest start 0; sources without a clock start there. */
static void start_at_zero(struct merge *m, bool all)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < m->count; i++) {
		if ((all || m->sources[i].has_clock) && m->sources[i].shift_ns < least)
			least = m->sources[i].shift_ns;
	}
	for (size_t i = 0; i < m->count && least != INT64_MAX; i++) {
		if (all || m->sources[i].has_clock)
			m->sources[i].shift_ns -= least;
	}
}

static void align_clocks(struct merge *m)
{
	if (!prof__merge_ok(m))
		return;
	m->what = "align";
	for (size_t i = 0; i < m->count; i++) {
		if (m->sources[i].has_clock && m->params->align != PROF_MERGE_ALIGN_NONE)
			m->sources[i].shift_ns = m->files[i].epoch_ns;
	}
	if (m->params->align != PROF_MERGE_ALIGN_NONE)
		start_at_zero(m, false);
	prof__merge_run(m, "CREATE TEMP TABLE anchors (d INTEGER NOT NULL)");
	if (prof__merge_ok(m))
		measure_all(m);
	start_at_zero(m, true);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* A key of `meta` with the same value in all sources stays unchanged. Keys of one recording, and
 * values that differ from the first source's, are stored as merge.RANK.KEY. */

#define EARLIER                                                                                    \
	"SELECT substr(key, 7, instr(substr(key, 7), '.') - 1) AS rank, "                          \
	"substr(key, 7 + instr(substr(key, 7), '.')) AS fact, value "                              \
	"FROM src.meta_facts WHERE key GLOB 'merge.[0-9]*.?*'"

/* Keys of one recording. A merged source's own are ignored in favour of those of its ranks. */
#define OWN                                                                                        \
	"('state', 'pid', 'process_start', 'start_epoch_ns', 'ticks_per_second', 'rank', "         \
	"'command', 'repaired', 'schema_version', "                                                \
	"'part', 'continues', 'continues_after_step', "                                            \
	"'clock_offset_ns', 'clock_bound_ns', 'clock_offset_end_ns', 'clock_bound_end_ns')"

/* Keys of the database file itself. */
#define OF_FILE                                                                                    \
	"('indexes', 'page_bytes', 'last_rank', 'ranks', 'merge_align', 'sqlite_version', "        \
	"'library_version')"

static void set_meta(struct merge *m, const char *key, const char *value)
{
	sqlite3_stmt *statement =
		prof__merge_prepare(m, "INSERT OR REPLACE INTO main.meta_facts VALUES (?1, ?2)");

	if (!statement)
		return;
	sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
	prof_sql_execute(statement, &m->err, "meta");
	sqlite3_finalize(statement);
}

static void set_meta_int(struct merge *m, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	set_meta(m, key, text);
}

/* Differing values are found by comparison with the first source's, so copy them before new keys
 * are added. */
static void copy_meta(struct merge *m)
{
	const struct prof_merge_source *source = m->source;
	const struct {
		const char *fact;
		int64_t value;
	} numbers[] = {
		{"shift_ns", source->shift_ns},
		{"residual_ns", source->residual_ns},
		{"residual_greatest_ns", source->greatest_ns},
		{"anchors", source->anchors},
		{"model_of_rank", source->same_model >= 0 ? source->same_model : IPS_NULL},
		{"memory_first_ipu", m->base[MERGE_IPU] > 0 ? m->base[MERGE_IPU] : IPS_NULL},
	};
	char key[64];

	if (source->ranks <= 1)
		prof__merge_run(m, "INSERT OR REPLACE INTO main.meta_facts "
				   "SELECT 'merge.' || :rank || '.' || s.key, s.value "
				   "FROM src.meta_facts s WHERE s.key NOT IN " OF_FILE
				   " AND s.key NOT GLOB 'merge.*' AND (s.key IN " OWN
				   " OR EXISTS (SELECT 1 FROM main.meta_facts o "
				   "WHERE o.key = s.key AND o.value IS NOT s.value))");
	prof__merge_run(m, "INSERT OR IGNORE INTO main.meta_facts "
			   "SELECT key, value FROM src.meta_facts WHERE key NOT IN " OWN
			   " AND key NOT IN " OF_FILE " AND key NOT GLOB 'merge.*'");
	if (source->ranks > 1) {
		/* The metadata of earlier merges' ranks, under their new ranks. */
		prof__merge_run(m, "INSERT OR REPLACE INTO main.meta_facts "
				   "SELECT 'merge.' || r.new || '.' || e.fact, "
				   "iif(e.fact = 'shift_ns', e.value + :shift, e.value) "
				   "FROM (" EARLIER ") e "
				   "JOIN temp.rank_map r ON r.old = CAST(e.rank AS INTEGER)");
		return;
	}
	snprintf(key, sizeof(key), "merge.%" PRId64 ".source", source->rank);
	set_meta(m, key, source->path);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		snprintf(key, sizeof(key), "merge.%" PRId64 ".%s", source->rank, numbers[i].fact);
		if (numbers[i].value != IPS_NULL)
			set_meta_int(m, key, numbers[i].value);
	}
}

/* Find which source continues which training: the folders of their reports identify them; a merged
 * report of ranks is in the folder of the first one. If all
 * are of the same part (ranks of one run), write the metadata of a part, from the first source. */
static void write_parts(struct merge *m)
{
	struct str text = {0};
	bool same = true;

	for (size_t i = 0; i < m->count; i++) {
		struct prof_merge_source *one = &m->sources[i];

		same = same && one->part > 1 && one->part == m->sources[0].part;
		for (size_t j = 0; j < m->count && one->after_rank < 0; j++)
			if (j != i && m->files[i].continues[0] != '\0' &&
			    !strcmp(m->files[i].continues, m->files[j].folder))
				one->after_rank = m->sources[j].rank;
		if (one->after_rank >= 0)
			str_addf(&text, "%srank %" PRId64 " goes on after rank %" PRId64,
				 text.length > 0 ? ", " : "", one->rank, one->after_rank);
	}
	if (text.failed)
		err_nomem(&m->err);
	else if (text.length > 0)
		set_meta(m, "parts", text.text);
	str_free(&text);
	if (!same)
		return;
	set_meta_int(m, "part", m->sources[0].part);
	if (m->files[0].continues[0] != '\0')
		set_meta(m, "continues", m->files[0].continues);
	set_meta_int(m, "continues_after_step", m->files[0].after_step);
}

/* Return the wall clock at the merged file's time 0. */
static int64_t start_epoch(const struct merge *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->sources[i].has_clock)
			return m->files[i].epoch_ns - m->sources[i].shift_ns;
	}
	return 0;
}

static void write_meta(struct merge *m)
{
	static const char *const aligns[] = {"wall", "steps", "none"};
	int64_t least = INT64_MAX, greatest = 0, ranks = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct prof_merge_source *source = &m->sources[i];
		int64_t last = source->rank + (int64_t)source->ranks - 1;

		least = min(source->rank, least);
		greatest = max(last, greatest);
		ranks += (int64_t)source->ranks;
	}
	set_meta(m, "state", "complete");
	set_meta(m, "merge_align", aligns[m->params->align]);
	set_meta(m, "sqlite_version", sqlite3_libversion());
	if (m->params->command)
		set_meta(m, "command", m->params->command);
	set_meta_int(m, "schema_version", PROF_SCHEMA_VERSION);
	set_meta_int(m, "rank", least);
	set_meta_int(m, "last_rank", greatest);
	set_meta_int(m, "ranks", ranks);
	if (start_epoch(m) > 0)
		set_meta_int(m, "start_epoch_ns", start_epoch(m));
	write_parts(m);
}

/* ---- one source ------------------------------------------------------------------------------ */

/* Compute the offset of a source's ids: the first source keeps its own, later ones follow. */
static void find_base(struct merge *m, enum merge_base which, const char *table, const char *column)
{
	int64_t least, greatest, last;
	char sql[128];

	m->base[which] = 0;
	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM main.%s", column, table);
	last = query_int(m, sql);
	snprintf(sql, sizeof(sql), "SELECT min(%s) FROM src.%s", column, table);
	least = query_int(m, sql);
	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM src.%s", column, table);
	greatest = query_int(m, sql);
	if (!prof__merge_ok(m) || least == IPS_NULL)
		return;
	if (least < -NUMBERS_MOST || greatest > NUMBERS_MOST || greatest - least > NUMBERS_MOST ||
	    (last > NUMBERS_MOST && last != IPS_NULL))
		err_set(&m->err, ST_FORMAT, "damaged: numbers its %s up to %lld", table,
			(long long)greatest);
	else if (last != IPS_NULL)
		m->base[which] = last + 1 - least;
}

static void find_bases(struct merge *m)
{
	static const struct {
		enum merge_base which;
		const char *table, *column;
	} list[] = {
		{MERGE_CONTEXT, "contexts", "context_id"},
		{MERGE_TRACK, "track_rows", "track_id"},
		{MERGE_SPAN, "span_rows", "span_id"},
		{MERGE_INSTANT, "instant_rows", "row_id"},
		{MERGE_HEALTH, "health_rows", "row_id"},
		{MERGE_STATS, "tensor_stat_rows", "row_id"},
		{MERGE_TRACE, "device_traces", "trace_id"},
		{MERGE_PROGRAM, "program_rows", "program_id"},
		{MERGE_VARIABLE, "variable_rows", "variable_id"},
		{MERGE_IPU, "variable_rows", "ipu"},
	};
	const struct {
		const char *sql;
		int64_t *first;
	} firsts[] = {
		/* The first source's ids may have any value. */
		{"SELECT coalesce(max(span_id) + 1, -(1 << 62)) FROM main.span_rows",
		 &m->first_span},
		{"SELECT coalesce(max(row_id) + 1, -(1 << 62)) FROM main.instant_rows",
		 &m->first_instant},
		{"SELECT coalesce(max(row_id), 0) + 1 FROM main.counter_rows", &m->first_counter},
	};

	for (size_t i = 0; i < ARRAY_LEN(firsts); i++)
		*firsts[i].first = query_int(m, firsts[i].sql);
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		find_base(m, list[i].which, list[i].table, list[i].column);
}

static void merge_source(struct merge *m)
{
	const char *path = m->files[m->at].path;
	static const struct {
		const char *what;
		void (*run)(struct merge *m);
	} steps[] = {
		{"numbers", find_bases}, {"ranks", map_ranks},       {"names", intern_names},
		{"tracks", copy_tracks}, {"rows", prof__merge_copy}, {"levels", prof__merge_levels},
		{"facts", copy_meta},
	};

	m->source = &m->sources[m->at];
	attach(m, path, "src");
	if (!prof__merge_ok(m))
		return;

	run_script(m, "BEGIN");
	for (size_t i = 0; i < ARRAY_LEN(steps) && prof__merge_ok(m); i++) {
		m->what = steps[i].what;
		steps[i].run(m);
	}
	m->source->spans = query_int(m, "SELECT count(*) FROM src.span_rows");
	run_script(m, "COMMIT");

	if (!prof__merge_ok(m)) {
		if (m->stopped)
			fail(m, SQLITE_INTERRUPT);
		if (m->err.status != ST_INTERRUPTED && m->err.status != ST_NOSPACE)
			err_prefix(&m->err, "%s", path);
		sqlite3_exec(m->db, "ROLLBACK", NULL, NULL, NULL);
	}
	prof_sql_detach(m->db, "src");
}

/* ---- merging --------------------------------------------------------------------------------- */

static void read_all_sources(struct merge *m)
{
	m->what = "read";
	for (m->at = 0; m->at < m->count && prof__merge_ok(m); m->at++) {
		char sql[512];

		m->source = &m->sources[m->at];
		read_source(m, &m->files[m->at], m->source);
		attach(m, m->files[m->at].path, "src");

		/* Count, over all sources, the tracks with each name. */
		snprintf(sql, sizeof(sql),
			 "INSERT INTO temp.track_names SELECT " UNRANKED(
				 "track") ", 1 "
					  "FROM src.track_rows t WHERE true "
					  "ON CONFLICT (name) DO UPDATE SET times = times + 1",
			 m->source->ranks > 1);
		prof__merge_run(m, sql);
		prof_sql_detach(m->db, "src");
	}
	if (prof__merge_ok(m))
		assign_ranks(m);
}

static void finish(struct merge *m)
{
	bool all;

	m->what = "finish";
	m->source = NULL;
	run_script(m, "BEGIN");
	write_names(m);
	write_meta(m);
	run_script(m, "COMMIT");
	if (!prof__merge_ok(m))
		return;
	m->what = "indexes";
	all = prof_index_build(m->db, INDEX_MS, on_tick, m);
	if (m->stopped)
		fail(m, SQLITE_INTERRUPT);
	run_script(m, all ? "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'all')"
			  : "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'some')");
}

enum status prof_merge(const char *out, struct prof_merge_source *sources, size_t count,
		       const struct prof_merge_params *params, struct err *err)
{
	struct merge m = {.params = params, .sources = sources, .count = count, .what = "open"};

	m.files = mem_calloc(count, sizeof(*m.files));
	if (!m.files)
		err_nomem(&m.err);
	create_database(&m, out);
	create_names(&m);
	read_all_sources(&m);
	align_clocks(&m);
	for (m.at = 0; m.at < count && prof__merge_ok(&m); m.at++)
		merge_source(&m);
	if (prof__merge_ok(&m))
		finish(&m);
	/* Closing writes nothing more: all is committed. */
	if (sqlite3_close(m.db) != SQLITE_OK && prof__merge_ok(&m))
		err_set(&m.err, ST_FAILED, "%s: cannot be closed", out);
	for (size_t i = 0; m.files && i < count; i++)
		mem_free(m.files[i].path);
	mem_free(m.files);
	mem_free(m.models);
	return prof__merge_ok(&m) ? ST_OK : err_set(err, m.err.status, "%s", m.err.text);
}
