/*
 * Merging: the sources one after the other, each in one transaction, which is one moment of it.
 * See prof_merge.h.
 *
 * The merged file is made without a journal: nobody else sees it before it is whole.
 */
#include "profiler/prof_merge.h"

#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_index.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_merge_internal.h"
#include "profiler/prof_schema.h"
#include "profiler/prof_sql.h"

#define INDEX_MS     ((int64_t)30 * 60 * 1000)
#define TICK         100000     /* instructions of SQLite's between looks at the progress */
#define VALUE_BYTES  (64 << 20) /* of a value; pieces of captures have 1 MiB */
#define NUMBERS_MOST (INT64_C(1) << 60)
#define EPOCH_MOST   (INT64_C(1) << 62) /* ns: in the year 2116 */
#define RANK_MOST    999999
#define BUSY_MS      5000 /* the greatest wait for a writer that finishes */

/* ---- statements ------------------------------------------------------------------------------ */

static int on_tick(void *user)
{
	struct merge *m = user;

	if (m->params->progress && !m->params->progress(m->params->user, m->at, m->what))
		m->stopped = true;
	return m->stopped;
}

void prof__merge_tell(struct merge *m, int code)
{
	if (m->stopped)
		err_set(&m->err, ST_INTERRUPTED, "stopped");
	else
		prof_sql_error(m->db, code, &m->err, m->what);
}

sqlite3_stmt *prof__merge_prepare(struct merge *m, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int code;

	if (!prof__merge_ok(m))
		return NULL;
	code = sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL);
	if (code != SQLITE_OK)
		prof__merge_tell(m, code);
	return statement;
}

bool prof__merge_step(struct merge *m, sqlite3_stmt *statement)
{
	int code;

	if (!prof__merge_ok(m))
		return false;
	code = sqlite3_step(statement);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		prof__merge_tell(m, code);
	return code == SQLITE_ROW;
}

static void bind(sqlite3_stmt *statement, const char *name, int64_t value)
{
	int index = sqlite3_bind_parameter_index(statement, name);

	if (index > 0)
		sqlite3_bind_int64(statement, index, value);
}

void prof__merge_bind(struct merge *m, sqlite3_stmt *statement)
{
	static const char *const names[MERGE_BASES] = {":context", ":track",    ":span",
						       ":health",  ":stats",    ":trace",
						       ":program", ":variable", ":ipu"};

	if (!prof__merge_ok(m))
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		bind(statement, names[i], m->base[i]);
	if (!m->source)
		return;
	bind(statement, ":shift", m->source->shift_ns);
	bind(statement, ":rank", m->source->rank);
	bind(statement, ":nowhere", m->nowhere);
}

void prof__merge_run(struct merge *m, const char *sql)
{
	sqlite3_stmt *statement = prof__merge_prepare(m, sql);

	prof__merge_bind(m, statement);
	while (prof__merge_step(m, statement))
		;
	sqlite3_finalize(statement);
}

void prof__merge_script(struct merge *m, const char *sql)
{
	if (prof__merge_ok(m))
		prof_sql_run(m->db, sql, &m->err);
}

int64_t prof__merge_ask(struct merge *m, const char *sql)
{
	sqlite3_stmt *statement = prof__merge_prepare(m, sql);
	int64_t number = IPS_NULL;

	prof__merge_bind(m, statement);
	if (prof__merge_step(m, statement) && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

/* ---- the files ------------------------------------------------------------------------------- */

static int attach(struct merge *m, const char *path, const char *query, const char *name)
{
	char sql[64];
	char *uri = prof_sql_uri(path, query);
	sqlite3_stmt *statement;
	int code;

	if (!uri)
		return SQLITE_NOMEM;
	snprintf(sql, sizeof(sql), "ATTACH ?1 AS %s", name);
	code = sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL);
	if (code == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, uri, -1, SQLITE_STATIC);
		sqlite3_step(statement);
		code = sqlite3_finalize(statement);
	}
	mem_free(uri);
	if (code != SQLITE_OK)
		return code;
	/* The first look at the file: it may need the log's index. */
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s.sqlite_schema", name);
	code = sqlite3_exec(m->db, sql, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		prof__merge_detach(m, name);
	return code;
}

/* A view or virtual table in the place of a table would be a program to run. */
static void check_tables(struct merge *m, const char *name)
{
	char sql[256];

	snprintf(
		sql, sizeof(sql),
		"SELECT count(*) FROM %s.sqlite_schema WHERE (type <> 'table' OR rootpage < 1) AND "
		"lower(name) IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')",
		name);
	if (prof__merge_ask(m, sql) != 0 && prof__merge_ok(m))
		err_set(&m->err, ST_FORMAT, "its tables are not those of a recording");
}

void prof__merge_attach(struct merge *m, const char *path, const char *name)
{
	char wal[FS_PATH_SIZE + 8];
	int code;

	if (!prof__merge_ok(m))
		return;
	code = attach(m, path, "mode=ro", name);
	snprintf(wal, sizeof(wal), "%s-wal", path);
	/* As prof_db_open(): no log may be made here, and there is none. */
	if (((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY) &&
	    !fs_exists(wal))
		code = attach(m, path, "mode=ro&immutable=1", name);
	if (code != SQLITE_OK)
		prof__merge_tell(m, code);
	check_tables(m, name);
	if (!prof__merge_ok(m))
		err_prefix(&m->err, "%s", path);
}

void prof__merge_detach(struct merge *m, const char *name)
{
	char sql[32];

	snprintf(sql, sizeof(sql), "DETACH %s", name);
	sqlite3_exec(m->db, sql, NULL, NULL, NULL);
}

static void create(struct merge *m, const char *path)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
			  SQLITE_OPEN_URI;
	int code = sqlite3_open_v2(path, &m->db, flags, NULL);

	if (code != SQLITE_OK) {
		prof__merge_tell(m, code);
		return;
	}
	sqlite3_db_config(m->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(m->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(m->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES);
	sqlite3_busy_timeout(m->db, BUSY_MS);
	sqlite3_progress_handler(m->db, TICK, on_tick, m);
	prof__merge_script(m, "PRAGMA page_size=16384; PRAGMA cache_size=-16384;"
			      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
	prof__merge_script(m, prof_schema_sql());
	prof__merge_script(m, "COMMIT");
}

/* ---- what the sources are -------------------------------------------------------------------- */

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

static void look(struct merge *m, struct merge_file *file, struct prof_merge_source *source)
{
	struct prof_db *db;
	char failure[ERR_TEXT_SIZE];
	int64_t last;

	if (prof_db_open(&db, source->path, &m->err) != ST_OK)
		return;
	*source = (struct prof_merge_source){.path = source->path, .same_model = -1};
	source->state = prof_db_state(db);
	source->alive = prof_db_writer_alive(db);
	source->failed = prof_db_meta(db, "failure", failure, sizeof(failure));
	file->recorded = meta_rank(db, "rank", 0);
	last = meta_rank(db, "last_rank", file->recorded);
	source->ranks = last < file->recorded ? 1 : (size_t)(last - file->recorded) + 1;
	file->epoch_ns = meta_int(db, "start_epoch_ns", 0);
	source->has_clock = file->epoch_ns > 0 && file->epoch_ns < EPOCH_MOST;
	file->path = mem_strdup(prof_db_path(db));
	prof_db_close(db);
	if (!file->path)
		err_nomem(&m->err);
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

static void give_ranks(struct merge *m)
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

static void look_at_all(struct merge *m)
{
	m->what = "look";
	for (m->at = 0; m->at < m->count && prof__merge_ok(m); m->at++) {
		m->source = &m->sources[m->at];
		look(m, &m->files[m->at], m->source);
		prof__merge_attach(m, m->files[m->at].path, "src");
		prof__merge_survey_tracks(m);
		prof__merge_detach(m, "src");
	}
	if (prof__merge_ok(m))
		give_ranks(m);
}

/* ---- one source ------------------------------------------------------------------------------ */

/* How much to add to a source's numbers: the first keeps its own, the next go on after. */
static void find_base(struct merge *m, enum merge_base which, const char *table, const char *column)
{
	int64_t least, greatest, last;
	char sql[128];

	m->base[which] = 0;
	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM main.%s", column, table);
	last = prof__merge_ask(m, sql);
	snprintf(sql, sizeof(sql), "SELECT min(%s) FROM src.%s", column, table);
	least = prof__merge_ask(m, sql);
	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM src.%s", column, table);
	greatest = prof__merge_ask(m, sql);
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
		/* The first source's ids may be of any size. */
		{"SELECT coalesce(max(span_id) + 1, -(1 << 62)) FROM main.span_rows",
		 &m->first_span},
		{"SELECT coalesce(max(row_id), 0) + 1 FROM main.instant_rows", &m->first_instant},
		{"SELECT coalesce(max(row_id), 0) + 1 FROM main.counter_rows", &m->first_counter},
	};

	for (size_t i = 0; i < ARRAY_LEN(firsts); i++)
		*firsts[i].first = prof__merge_ask(m, firsts[i].sql);
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		find_base(m, list[i].which, list[i].table, list[i].column);
}

/* The first rank of the source becomes its rank here, the others (merged before) follow. */
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

static void merge_rows(struct merge *m)
{
	static const struct {
		const char *what;
		void (*run)(struct merge *m);
	} steps[] = {
		{"look", find_bases},          {"ranks", map_ranks},
		{"names", prof__merge_intern}, {"tracks", prof__merge_tracks},
		{"rows", prof__merge_copy},    {"levels", prof__merge_levels},
		{"facts", prof__merge_facts},
	};

	prof__merge_script(m, "BEGIN");
	for (size_t i = 0; i < ARRAY_LEN(steps) && prof__merge_ok(m); i++) {
		m->what = steps[i].what;
		steps[i].run(m);
	}
	m->source->spans = prof__merge_ask(m, "SELECT count(*) FROM src.span_rows");
	prof__merge_script(m, "COMMIT");
}

static void merge_source(struct merge *m)
{
	const char *path = m->files[m->at].path;

	m->source = &m->sources[m->at];
	prof__merge_attach(m, path, "src");
	if (!prof__merge_ok(m))
		return;
	merge_rows(m);
	if (!prof__merge_ok(m)) {
		if (m->err.status != ST_INTERRUPTED && m->err.status != ST_NOSPACE)
			err_prefix(&m->err, "%s", path);
		sqlite3_exec(m->db, "ROLLBACK", NULL, NULL, NULL);
	}
	prof__merge_detach(m, "src");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void finish(struct merge *m)
{
	bool all;

	m->what = "finish";
	m->source = NULL;
	prof__merge_script(m, "BEGIN");
	prof__merge_names_end(m);
	prof__merge_facts_end(m);
	prof__merge_script(m, "COMMIT");
	if (!prof__merge_ok(m))
		return;
	all = prof_index_build(m->db, INDEX_MS); /* takes the progress handler */
	prof__merge_script(m, all ? "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'all')"
				  : "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'some')");
	if (prof__merge_ok(m) && on_tick(m))
		prof__merge_tell(m, SQLITE_INTERRUPT);
}

static void merge_all(struct merge *m, const char *out)
{
	create(m, out);
	prof__merge_names_begin(m);
	look_at_all(m);
	prof__merge_align(m);
	for (m->at = 0; m->at < m->count && prof__merge_ok(m); m->at++)
		merge_source(m);
	if (prof__merge_ok(m))
		finish(m);
}

enum status prof_merge(const char *out, struct prof_merge_source *sources, size_t count,
		       const struct prof_merge_params *params, struct err *err)
{
	struct merge m = {.params = params, .sources = sources, .count = count, .what = "open"};

	m.files = mem_calloc(count, sizeof(*m.files));
	if (m.files)
		merge_all(&m, out);
	else
		err_nomem(&m.err);
	/* Closing writes nothing more: the file is as it was committed. */
	if (sqlite3_close(m.db) != SQLITE_OK && prof__merge_ok(&m))
		err_set(&m.err, ST_FAILED, "%s: cannot be closed", out);
	for (size_t i = 0; m.files && i < count; i++)
		mem_free(m.files[i].path);
	mem_free(m.files);
	mem_free(m.models);
	return prof__merge_ok(&m) ? ST_OK : err_set(err, m.err.status, "%s", m.err.text);
}
