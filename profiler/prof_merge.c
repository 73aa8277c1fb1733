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

enum status prof__merge_tell(struct merge *m, int code, struct err *err)
{
	if (m->stopped)
		return err_set(err, ST_INTERRUPTED, "stopped");
	return prof_sql_error(m->db, code, err, m->what);
}

enum status prof__merge_prepare(struct merge *m, sqlite3_stmt **out, const char *sql,
				struct err *err)
{
	int code = sqlite3_prepare_v2(m->db, sql, -1, out, NULL);

	return code == SQLITE_OK ? ST_OK : prof__merge_tell(m, code, err);
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

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		bind(statement, names[i], m->base[i]);
	if (!m->source)
		return;
	bind(statement, ":shift", m->source->shift_ns);
	bind(statement, ":rank", m->source->rank);
	bind(statement, ":nowhere", m->nowhere);
}

enum status prof__merge_run(struct merge *m, const char *sql, struct err *err)
{
	sqlite3_stmt *statement;
	enum status status = prof__merge_prepare(m, &statement, sql, err);
	int code;

	if (status != ST_OK)
		return status;
	prof__merge_bind(m, statement);
	do
		code = sqlite3_step(statement);
	while (code == SQLITE_ROW);
	if (code != SQLITE_DONE)
		status = prof__merge_tell(m, code, err);
	sqlite3_finalize(statement);
	return status;
}

enum status prof__merge_ask(struct merge *m, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *statement;
	enum status status = prof__merge_prepare(m, &statement, sql, err);
	int code;

	*out = IPS_NULL;
	if (status != ST_OK)
		return status;
	prof__merge_bind(m, statement);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		*out = sqlite3_column_int64(statement, 0);
	else if (code != SQLITE_ROW && code != SQLITE_DONE)
		status = prof__merge_tell(m, code, err);
	sqlite3_finalize(statement);
	return status;
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
static enum status check_tables(struct merge *m, const char *name, struct err *err)
{
	char sql[256];
	int64_t strange;
	enum status status;

	snprintf(
		sql, sizeof(sql),
		"SELECT count(*) FROM %s.sqlite_schema WHERE (type <> 'table' OR rootpage < 1) AND "
		"lower(name) IN (SELECT name FROM main.sqlite_schema WHERE type = 'table')",
		name);
	status = prof__merge_ask(m, sql, &strange, err);
	if (status == ST_OK && strange != 0)
		return err_set(err, ST_FORMAT, "its tables are not those of a recording");
	return status;
}

enum status prof__merge_attach(struct merge *m, const char *path, const char *name, struct err *err)
{
	char wal[FS_PATH_SIZE + 8];
	int code = attach(m, path, "mode=ro", name);
	enum status status;

	snprintf(wal, sizeof(wal), "%s-wal", path);
	/* As prof_db_open(): no log may be made here, and there is none. */
	if (((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY) &&
	    !fs_exists(wal))
		code = attach(m, path, "mode=ro&immutable=1", name);
	status = code == SQLITE_OK ? check_tables(m, name, err) : prof__merge_tell(m, code, err);
	return status == ST_OK ? ST_OK : err_prefix(err, "%s", path);
}

void prof__merge_detach(struct merge *m, const char *name)
{
	char sql[32];

	snprintf(sql, sizeof(sql), "DETACH %s", name);
	sqlite3_exec(m->db, sql, NULL, NULL, NULL);
}

static enum status create(struct merge *m, const char *path, struct err *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
			  SQLITE_OPEN_URI;
	int code = sqlite3_open_v2(path, &m->db, flags, NULL);
	enum status status;

	if (code != SQLITE_OK)
		return prof__merge_tell(m, code, err);
	sqlite3_db_config(m->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(m->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(m->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES);
	sqlite3_busy_timeout(m->db, BUSY_MS);
	sqlite3_progress_handler(m->db, TICK, on_tick, m);
	status = prof_sql_run(m->db,
			      "PRAGMA page_size=16384; PRAGMA cache_size=-16384;"
			      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN",
			      err);
	if (status == ST_OK)
		status = prof_sql_run(m->db, prof_schema_sql(), err);
	return status == ST_OK ? prof_sql_run(m->db, "COMMIT", err) : status;
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

static enum status look(struct merge_file *file, struct prof_merge_source *source, struct err *err)
{
	struct prof_db *db;
	enum status status = prof_db_open(&db, source->path, err);
	char failure[ERR_TEXT_SIZE];
	int64_t last;

	if (status != ST_OK)
		return status;
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
	return !file->path ? err_nomem(err) : status;
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

static enum status give_ranks(struct merge *m, struct err *err)
{
	const bool differ = ranks_differ(m);
	int64_t next = 0;

	if (m->params->ranks == PROF_MERGE_RANKS_KEEP && !differ)
		return err_set(err, ST_INVALID,
			       "two reports were recorded with the same rank; "
			       "number them in order instead");
	for (size_t i = 0; i < m->count; i++) {
		bool keep = differ && m->params->ranks != PROF_MERGE_RANKS_ORDER;

		m->sources[i].rank = keep ? m->files[i].recorded : next;
		next += (int64_t)m->sources[i].ranks;
	}
	return ST_OK;
}

static enum status look_at_all(struct merge *m, struct err *err)
{
	enum status status = ST_OK;

	m->what = "look";
	for (m->at = 0; m->at < m->count && status == ST_OK; m->at++) {
		m->source = &m->sources[m->at];
		status = look(&m->files[m->at], m->source, err);
		if (status == ST_OK)
			status = prof__merge_attach(m, m->files[m->at].path, "src", err);
		if (status != ST_OK)
			break;
		status = prof__merge_survey_tracks(m, err);
		prof__merge_detach(m, "src");
	}
	return status == ST_OK ? give_ranks(m, err) : status;
}

/* ---- one source ------------------------------------------------------------------------------ */

/* How much to add to a source's numbers: the first keeps its own, the next go on after. */
static enum status find_base(struct merge *m, enum merge_base which, const char *table,
			     const char *column, struct err *err)
{
	int64_t least = IPS_NULL, greatest = IPS_NULL, last;
	char sql[128];
	enum status status;

	m->base[which] = 0;
	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM main.%s", column, table);
	status = prof__merge_ask(m, sql, &last, err);
	if (status != ST_OK)
		return status;
	snprintf(sql, sizeof(sql), "SELECT min(%s) FROM src.%s", column, table);
	status = prof__merge_ask(m, sql, &least, err);
	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM src.%s", column, table);
	if (status == ST_OK)
		status = prof__merge_ask(m, sql, &greatest, err);
	if (status != ST_OK || least == IPS_NULL)
		return status;
	if (least < -NUMBERS_MOST || greatest > NUMBERS_MOST || greatest - least > NUMBERS_MOST ||
	    (last > NUMBERS_MOST && last != IPS_NULL))
		return err_set(err, ST_FORMAT, "damaged: numbers its %s up to %lld", table,
			       (long long)greatest);
	if (last != IPS_NULL)
		m->base[which] = last + 1 - least;
	return ST_OK;
}

static enum status find_bases(struct merge *m, struct err *err)
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
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(firsts) && status == ST_OK; i++)
		status = prof__merge_ask(m, firsts[i].sql, firsts[i].first, err);
	for (size_t i = 0; i < ARRAY_LEN(list) && status == ST_OK; i++)
		status = find_base(m, list[i].which, list[i].table, list[i].column, err);
	return status;
}

/* The first rank of the source becomes its rank here, the others (merged before) follow. */
static enum status map_ranks(struct merge *m, struct err *err)
{
	char sql[256];
	enum status status = prof__merge_run(m, "DELETE FROM temp.rank_map", err);

	snprintf(sql, sizeof(sql), "INSERT INTO temp.rank_map VALUES (%lld, :rank)",
		 (long long)m->files[m->at].recorded);
	if (m->source->ranks > 1)
		snprintf(sql, sizeof(sql),
			 "INSERT INTO temp.rank_map WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL "
			 "SELECT i + 1 FROM n WHERE i + 1 < %zu) "
			 "SELECT %lld + i, :rank + i FROM n",
			 m->source->ranks, (long long)m->files[m->at].recorded);
	return status == ST_OK ? prof__merge_run(m, sql, err) : status;
}

static enum status merge_rows(struct merge *m, struct err *err)
{
	static const struct {
		const char *what;
		enum status (*run)(struct merge *m, struct err *err);
	} steps[] = {
		{"look", find_bases},          {"ranks", map_ranks},
		{"names", prof__merge_intern}, {"tracks", prof__merge_tracks},
		{"rows", prof__merge_copy},    {"levels", prof__merge_levels},
		{"facts", prof__merge_facts},
	};
	enum status status = prof_sql_run(m->db, "BEGIN", err);

	for (size_t i = 0; i < ARRAY_LEN(steps) && status == ST_OK; i++) {
		m->what = steps[i].what;
		status = steps[i].run(m, err);
	}
	if (status == ST_OK)
		status = prof__merge_ask(m, "SELECT count(*) FROM src.span_rows", &m->source->spans,
					 err);
	return status == ST_OK ? prof_sql_run(m->db, "COMMIT", err) : status;
}

static enum status merge_source(struct merge *m, struct err *err)
{
	const char *path = m->files[m->at].path;
	enum status status;

	m->source = &m->sources[m->at];
	status = prof__merge_attach(m, path, "src", err);
	if (status != ST_OK)
		return status;
	status = merge_rows(m, err);
	if (status != ST_OK && status != ST_INTERRUPTED && status != ST_NOSPACE)
		err_prefix(err, "%s", path);
	if (status != ST_OK)
		sqlite3_exec(m->db, "ROLLBACK", NULL, NULL, NULL);
	prof__merge_detach(m, "src");
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status finish(struct merge *m, struct err *err)
{
	enum status status;
	bool all;

	m->what = "finish";
	m->source = NULL;
	status = prof_sql_run(m->db, "BEGIN", err);
	if (status == ST_OK)
		status = prof__merge_names_end(m, err);
	if (status == ST_OK)
		status = prof__merge_facts_end(m, err);
	if (status == ST_OK)
		status = prof_sql_run(m->db, "COMMIT", err);
	if (status != ST_OK)
		return status;
	all = prof_index_build(m->db, INDEX_MS); /* takes the progress handler */
	status = prof_sql_run(m->db,
			      all ? "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'all')"
				  : "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'some')",
			      err);
	return status == ST_OK && on_tick(m) ? prof__merge_tell(m, SQLITE_INTERRUPT, err) : status;
}

static enum status merge_all(struct merge *m, const char *out, struct err *err)
{
	enum status status = create(m, out, err);

	if (status == ST_OK)
		status = prof__merge_names_begin(m, err);
	if (status == ST_OK)
		status = look_at_all(m, err);
	if (status == ST_OK)
		status = prof__merge_align(m, err);
	for (m->at = 0; m->at < m->count && status == ST_OK; m->at++)
		status = merge_source(m, err);
	return status == ST_OK ? finish(m, err) : status;
}

enum status prof_merge(const char *out, struct prof_merge_source *sources, size_t count,
		       const struct prof_merge_params *params, struct err *err)
{
	struct merge m = {.params = params, .sources = sources, .count = count, .what = "open"};
	enum status status;

	m.files = mem_calloc(count, sizeof(*m.files));
	status = !m.files ? err_nomem(err) : merge_all(&m, out, err);
	/* Closing writes nothing more: the file is as it was committed. */
	if (sqlite3_close(m.db) != SQLITE_OK && status == ST_OK)
		status = err_set(err, ST_FAILED, "%s: cannot be closed", out);
	for (size_t i = 0; m.files && i < count; i++)
		mem_free(m.files[i].path);
	mem_free(m.files);
	mem_free(m.models);
	return status;
}
