/*
 * The read side: opening a file, and what it says of itself. See prof_db.h; queries are in
 * prof_query.c.
 *
 * One thread per handle, except prof_db_interrupt(). The handle owns its connection, the cached
 * statements, the calls and the guard.
 */
#include "profiler/prof_db_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_process.h"
#include "profiler/prof_sql.h"

#define BUSY_MS        500
#define STEPS          INT64_C(300000000) /* some seconds; more for each byte of the file */
#define STEPS_PER_BYTE 200
#define CPU_NS         INT64_C(100000000000) /* of the thread; more for each byte of the file */
#define CPU_NS_BYTE    5000
#define ROWS           INT64_C(10000000)
#define BYTES          (INT64_C(1) << 30) /* of SQLite's memory; more for each byte of the file */
#define BYTES_PER_BYTE 8
#define VALUE_BYTES    (INT64_C(64) << 20) /* most of one value; more for each byte of the file, */
#define VALUE_PER_BYTE 4
#define VALUE_MOST     (INT64_C(256) << 20) /* up to this */

static bool unlimited;      /* by the user */
static bool limited_memory; /* by the command */

static const char *const view_names[] = {
	"meta",
	"executions",
	"layers",
	"operations",
	"plans",
	"programs",
	"compute_sets",
	"device_steps",
	"stage_timings",
	"bubbles",
	"tracks",
	"spans",
	"span_args",
	"instants",
	"instant_args",
	"flows",
	"counters",
	"variables",
	"variable_tiles",
	"tile_memory",
	"liveness",
	"tensors",
	"tensor_tiers",
	"tensor_stats",
	"tensor_histograms",
	"tensor_epochs",
	"captures",
	"metrics",
	"health_rules",
	"health",
	"first_nonfinite",
	"nonfinite_trail",
	"overhead",
	"time_split",
	"stage_sums",
	"bubble_sums",
	"execution_sums",
	"metric_sums",
	"health_sums",
	"overhead_sums",
	"tensor_sums",
	"devices",
	"kernels",
	"launches",
	"copies",
	"critical_path",
	"ranges",
	"memory_events",
};

const char *const *prof_view_names(size_t *count)
{
	*count = ARRAY_LEN(view_names);
	return view_names;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Resolve @path to the path of a database. */
static enum status resolve(const char *path, char out[FS_PATH_SIZE], struct err *err)
{
	struct stat info;

	if (!path || path[0] == 0)
		return err_set(err, ST_INVALID, "no database named");
	if (!fs_path(out, "%s", path))
		return err_set(err, ST_LIMIT, "%s: path too long", path);
	if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
		if (!fs_path(out, "%s/profile.db", path))
			return err_set(err, ST_LIMIT, "%s: path too long", path);
		if (stat(out, &info) != 0)
			return err_set(err, ST_NOTFOUND, "%s: holds no profile.db", path);
		return ST_OK;
	}
	if (stat(path, &info) != 0)
		return err_set(err, errno == ENOENT || errno == ENOTDIR ? ST_NOTFOUND : ST_IO,
			       "%s: %s", path, strerror(errno));
	return S_ISREG(info.st_mode) ? ST_OK : err_set(err, ST_FORMAT, "%s: not a file", path);
}

/* URI parameters of the three ways to open a file. The second is for a file in WAL mode without a
 * log, where none can be created: it has no writer. The third is for a log whose index in shared
 * memory cannot be created: the index is made in this process's memory, and nothing is locked. */
#define AS_USUAL      "mode=ro"
#define IMMUTABLE     "immutable=1"
#define WITHOUT_LOCKS "mode=ro&vfs=unix-none"

/* What makes tables for our statements. A file could reach the code of other modules by a virtual
 * table under a name that we read. SQLite adds those of pragmas when a statement names them. */
static const char *modules[] = {"json_each", "json_tree", NULL};

/* Open the file with the URI parameters @query. */
static int connect_to(struct prof_db *db, const char *query)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int code;

	db->opened_as = query;
	sqlite3_close(db->handle);
	code = prof_sql_open(&db->handle, db->path, query, flags, NULL);
	if (code != SQLITE_OK)
		return code;
	sqlite3_busy_timeout(db->handle, BUSY_MS);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_drop_modules(db->handle, modules);
	/* SQLite keeps the log's index in its own memory if it may assume to be alone. */
	if (strcmp(query, WITHOUT_LOCKS) == 0)
		sqlite3_exec(db->handle, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
	/* The file is never mapped: another program may shorten it, and reading beyond the end of a
	 * mapped file is a signal instead of an error. The SELECT is the first access to the file,
	 * which may need the log's index. */
	return sqlite3_exec(
		db->handle,
		"PRAGMA mmap_size=0; PRAGMA cache_size=-32768; PRAGMA temp_store=MEMORY;"
		"SELECT count(*) FROM sqlite_schema",
		NULL, NULL, NULL);
}

/* Whether SQLite's result may be due to a log or index that cannot be created. */
static bool lacks_index(int code)
{
	return (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY ||
	       code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMMAP ||
	       code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMLOCK;
}

static int connect_without_index(struct prof_db *db)
{
	char wal[FS_PATH_SIZE + 8];
	struct stat info;

	snprintf(wal, sizeof(wal), "%s-wal", db->path);
	return connect_to(db,
			  stat(wal, &info) == 0 && info.st_size > 0 ? WITHOUT_LOCKS : IMMUTABLE);
}

void prof_db_unlimited(void)
{
	unlimited = true;
}

void prof_db_limit_memory(void)
{
	limited_memory = true;
}

/* No statement of ours needs more in an honest file. */
static void set_limits(struct prof_db *db)
{
	struct stat info;

	if (unlimited || stat(db->path, &info) != 0)
		return;
	sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH,
		      (int)min(VALUE_BYTES + VALUE_PER_BYTE * (int64_t)info.st_size, VALUE_MOST));
	/* SQLite has one limit on memory for all connections of the process: the greatest. */
	if (limited_memory)
		db->most_bytes = BYTES + BYTES_PER_BYTE * (int64_t)info.st_size;
	if (limited_memory && !prof__guarded() && sqlite3_hard_heap_limit64(-1) < db->most_bytes)
		sqlite3_hard_heap_limit64(db->most_bytes);
	db->most_steps = STEPS + STEPS_PER_BYTE * (int64_t)info.st_size;
	db->most_ns = CPU_NS + CPU_NS_BYTE * (int64_t)info.st_size;
	db->most_rows = ROWS + (int64_t)info.st_size;
	sqlite3_progress_handler(db->handle, PROF_STEPS_PER_CHECK, prof__query_progress, db);
}

static enum status report_open_failure(struct prof_db *db, int code, struct err *err)
{
	char wal[FS_PATH_SIZE + 8];

	switch (code & 0xff) {
	case SQLITE_NOTADB:
		return err_set(err, ST_FORMAT, "%s: not a recorded database", db->path);
	case SQLITE_CORRUPT:
		return err_set(err, ST_FORMAT, "%s: damaged: %s", db->path,
			       sqlite3_errmsg(db->handle));
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
		snprintf(wal, sizeof(wal), "%s-wal", db->path);
		if (access(db->path, R_OK) == 0 && fs_exists(wal))
			return err_set(err, ST_IO,
				       "%s: has a write-ahead log that cannot be read without "
				       "write permission in its folder; copy both files elsewhere",
				       db->path);
		return err_set(err, ST_IO, "%s: cannot be read: %s", db->path,
			       sqlite3_errmsg(db->handle));
	default:
		return prof_sql_error(db->handle, code, err, db->path);
	}
}

/* Check whose the file is and its version, and make our views if it has others. */
static enum status check_schema(struct prof_db *db, struct err *err)
{
	int64_t application, version;
	int code = prof__pragma_int(db, "PRAGMA application_id", &application);

	if (code == SQLITE_OK)
		code = prof__pragma_int(db, "PRAGMA user_version", &version);
	if (code != SQLITE_OK)
		return prof_sql_error(db->handle, code, err, db->path);
	if (application != PROF_APPLICATION_ID) {
		struct stat info;

		if (stat(db->path, &info) == 0 && info.st_size == 0)
			return err_set(
				err, ST_FORMAT,
				"%s: is empty: nothing was recorded yet, or the writer died before "
				"its first commit",
				db->path);
		return err_set(err, ST_FORMAT, "%s: a database, but not one of ipuscope", db->path);
	}
	if (version != PROF_SCHEMA_VERSION)
		return err_set(
			err, ST_VERSION,
			"%s: its schema has version %lld, and this ipuscope reads version %d: use "
			"the ipuscope that recorded it",
			db->path, (long long)version, PROF_SCHEMA_VERSION);
	return prof__older_find(db, err);
}

static enum status open_database(struct prof_db **out, const char *path, bool foreign,
				 struct err *err)
{
	char file[FS_PATH_SIZE];
	enum status status = resolve(path, file, err);
	struct prof_db *db;
	int code;

	*out = NULL;
	if (status != ST_OK)
		return status;
	db = mem_calloc(1, sizeof(*db));
	if (!db)
		return err_nomem(err);
	db->path = mem_strdup(file);
	if (!db->path) {
		prof_db_close(db);
		return err_nomem(err);
	}
	db->foreign = foreign;
	code = connect_to(db, AS_USUAL);
	if (lacks_index(code) && connect_without_index(db) == SQLITE_OK)
		code = SQLITE_OK;
	if (code != SQLITE_OK)
		status = report_open_failure(db, code, err);
	else if (prof__calls_bound(db) != SQLITE_OK)
		status = err_nomem(err);
	else if (!foreign)
		status = check_schema(db, err);
	if (status == ST_OK)
		status = prof_sql_run(db->handle, "PRAGMA query_only=1", err);
	if (status != ST_OK) {
		prof_db_close(db);
		return status;
	}
	set_limits(db);
	*out = db;
	return ST_OK;
}

enum status prof_db_open(struct prof_db **out, const char *path, struct err *err)
{
	return open_database(out, path, false, err);
}

enum status prof_db_open_foreign(struct prof_db **out, const char *path, struct err *err)
{
	return open_database(out, path, true, err);
}

enum status prof_db_attach(struct prof_db *db, const struct prof_db *other, const char *name,
			   struct err *err)
{
	int code;

	if (!db || !other)
		return err_set(err, ST_BUSY, "the run is being closed: a moment");
	sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 1);
	code = prof_sql_attach(db->handle, other->path, other->opened_as, name);
	sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 0);
	return code == SQLITE_OK ? ST_OK : prof_sql_error(db->handle, code, err, other->path);
}

void prof_db_detach(struct prof_db *db, const char *name)
{
	/* Retry if interrupted: interrupts are meant for queries, and @name must become free. */
	while (prof_sql_detach(db->handle, name) == SQLITE_INTERRUPT)
		;
}

void prof_db_close(struct prof_db *db)
{
	if (!db)
		return;
	prof__query_cache_free(db);
	sqlite3_close(db->handle);
	prof__calls_free(db);
	prof__guard_free(db);
	mem_free(db->older_views);
	mem_free(db->path);
	mem_free(db);
}

const char *prof_db_path(const struct prof_db *db)
{
	return db->path;
}

const char *prof_db_note(const struct prof_db *db)
{
	if (strcmp(db->opened_as, WITHOUT_LOCKS) != 0)
		return NULL;
	return "without locks, because nothing can be written beside the file: what a writer adds "
	       "meanwhile is not seen";
}

void prof_db_read_through(struct prof_db *db)
{
	/* A failure leaves the settings unchanged, which is correct, too. */
	sqlite3_exec(db->handle, "PRAGMA cache_size=-2000", NULL, NULL, NULL);
	sqlite3_exec(db->handle, "PRAGMA query_only=0; PRAGMA temp_store=FILE", NULL, NULL, NULL);
	prof__older_add_views(db, NULL); /* setting temp_store drops temporary views */
	sqlite3_exec(db->handle, "PRAGMA query_only=1", NULL, NULL, NULL);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Copy the value of a meta key to @out; ST_NOTFOUND if it does not exist. */
static enum status read_meta(struct prof_db *db, const char *key, char *out, size_t size,
			     struct err *err)
{
	struct prof_query *query;
	enum status status;

	if (size > 0)
		out[0] = 0;
	status = prof_query_open(&query, db, "SELECT value FROM meta_facts WHERE key = :key", err);
	if (status != ST_OK)
		return status;
	prof_query_text(query, ":key", key);
	if (prof_query_next(query, &status, err)) {
		const bool null = prof_column_type(query, 0) == PROF_NULL;
		const char *text = prof_column_text(query, 0);

		if (!text && !null)
			status = err_nomem(err);
		else
			str_copy(out, size, !text ? "" : text);
	} else if (status == ST_OK) {
		status = err_set(err, ST_NOTFOUND, "%s: no %s", db->path, key);
	}
	prof_query_close(query);
	return prof__store_failure(db, status, err);
}

bool prof_db_meta(struct prof_db *db, const char *key, char *out, size_t size)
{
	return read_meta(db, key, out, size, NULL) == ST_OK;
}

/* A merged file has the metadata of its later ranks as merge.RANK.KEY. */
static const char sql_origin[] =
	"SELECT max(key IN ('run', 'schedule') OR key GLOB 'merge.*.run' "
	"           OR (key = 'command' AND value GLOB 'ipu-train*')), max(key = 'source') "
	"FROM meta_facts";

enum prof_origin prof_db_origin(struct prof_db *db)
{
	enum prof_origin origin = PROF_FROM_TRAINER;
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_origin, NULL);

	if (prof_query_next(query, &status, NULL) && prof_column_int(query, 0) != 1)
		origin = prof_column_int(query, 1) == 1 ? PROF_FROM_TRACE : PROF_FROM_PROGRAM;
	prof_query_close(query);
	return origin;
}

const char *prof_origin_none(enum prof_origin origin)
{
	static const char *const words[] = {
		[PROF_FROM_PROGRAM] = "the program that recorded this wrote none.",
		[PROF_FROM_TRACE] = "the trace that was imported has none.",
	};

	return origin == PROF_FROM_TRAINER ? NULL : words[origin];
}

/* Return whether the process with the recorded @host, @pid and @start runs. */
static bool is_process_alive(const char *host, const char *pid, const char *start)
{
	char here[PROF_HOST_SIZE];

	prof_process_host(here);
	return strcmp(host, here) == 0 && strtoll(start, NULL, 10) != 0 &&
	       prof_process_start(strtoll(pid, NULL, 10)) == strtoll(start, NULL, 10);
}

enum status prof_db_poll(struct prof_db *db, enum prof_state *state, bool *alive, struct err *err)
{
	static const char *const keys[] = {"state", "host", "pid", "process_start"};
	char values[ARRAY_LEN(keys)][PROF_HOST_SIZE];
	bool known = true;

	*state = PROF_RECORDING;
	*alive = false;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const enum status status =
			read_meta(db, keys[i], values[i], sizeof(values[i]), err);

		if (status != ST_OK && status != ST_NOTFOUND)
			return status;
		known = known && (status == ST_OK || i == 0);
	}
	if (strcmp(values[0], "complete") == 0)
		*state = PROF_COMPLETE;
	else if (strcmp(values[0], "closing") == 0)
		*state = PROF_CLOSING;
	*alive = known && *state != PROF_COMPLETE &&
		 is_process_alive(values[1], values[2], values[3]);
	return ST_OK;
}

enum prof_state prof_db_state(struct prof_db *db)
{
	enum prof_state state;
	bool alive;

	(void)prof_db_poll(db, &state, &alive, NULL);
	return state;
}

bool prof_db_writer_alive(struct prof_db *db)
{
	enum prof_state state;
	bool alive;

	(void)prof_db_poll(db, &state, &alive, NULL);
	return alive;
}

int64_t prof_db_version(struct prof_db *db)
{
	int64_t version;

	return prof_db_number(db, "PRAGMA data_version", &version, NULL) == ST_OK ? version : 0;
}

void prof_db_interrupt(struct prof_db *db)
{
	sqlite3_interrupt(db->handle);
}
