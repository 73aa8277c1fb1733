/*
 * Opening and finishing the writer: the database with its schema and statements; at the end
 * indexes, the final state, and a file without a write-ahead log if no reader holds it.
 *
 * On the thread that opens and closes the recording, while the writer's threads do not run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_db.h"
#include "profiler/prof_disk.h"
#include "profiler/prof_finish.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_process.h"

#define FLOWS_KEPT   65536u
#define INDEX_SHARE  50          /* building indexes takes at most 1/50 of the recording's time */
#define LEVEL_ROWS   131072      /* sorted in memory, of 56 bytes */
#define LEAVE_WAL_NS 1000000000u /* longest wait for readers at the end */

/* Run statements without results. */
static void run(struct prof_writer *writer, const char *sql)
{
	if (prof__writer_ok(writer))
		prof_sql_run(writer->db, sql, &writer->err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int on_wal(void *user, sqlite3 *db, const char *name, int pages)
{
	(void)db;
	(void)name;
	*(int *)user = pages;
	return SQLITE_OK;
}

/* Set the journal mode with @sql, and return whether it is @wanted now. */
static bool set_journal_mode(sqlite3 *db, const char *sql, const char *wanted)
{
	sqlite3_stmt *statement;
	bool is = false;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	if (sqlite3_step(statement) == SQLITE_ROW) {
		const unsigned char *mode = sqlite3_column_text(statement, 0);

		is = mode && strcmp((const char *)mode, wanted) == 0;
	}
	return sqlite3_finalize(statement) == SQLITE_OK && is;
}

/* Use a write-ahead log that readers can read, or, if @alone, no journal. */
static void set_journal(struct prof_writer *writer, bool alone)
{
	if (alone) {
		run(writer, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "
			    "PRAGMA locking_mode=EXCLUSIVE");
		return;
	}
	/* The switch writes to a file that was just made and has no rows yet: the first checkpoint
	 * syncs it. */
	run(writer, "PRAGMA synchronous=OFF");
	if (prof__writer_ok(writer) &&
	    !set_journal_mode(writer->db, "PRAGMA journal_mode=WAL", "wal"))
		err_set(&writer->err,
			sqlite3_errcode(writer->db) == SQLITE_FULL ? ST_NOSPACE : ST_IO,
			"cannot keep a write-ahead log here (%s); record on a local disk",
			sqlite3_errmsg(writer->db));
	run(writer, "PRAGMA synchronous=NORMAL");
}

static void open_database(struct prof_writer *writer, const char *path, bool alone)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int code = prof_sql_open(&writer->db, path, "mode=rw", flags, prof_space_vfs());

	if (code != SQLITE_OK) {
		prof_sql_error(writer->db, code, &writer->err, "open");
		return;
	}
	sqlite3_busy_timeout(writer->db, PROF_BUSY_MS);
	run(writer, "PRAGMA page_size=16384; PRAGMA cache_size=-16384;"
		    "PRAGMA locking_mode=NORMAL");
	run(writer, alone ? "PRAGMA temp_store=FILE" : "PRAGMA temp_store=MEMORY");
	set_journal(writer, alone);
	sqlite3_wal_autocheckpoint(writer->db, 0);
	sqlite3_wal_hook(writer->db, on_wal, &writer->wal_pages);
}

static void prepare_statements(struct prof_writer *writer)
{
	const struct {
		sqlite3_stmt **statement;
		const char *sql;
	} list[] = {
		{&writer->begin, "BEGIN IMMEDIATE"},
		{&writer->commit, "COMMIT"},
		{&writer->end_span,
		 writer->bulk ? "INSERT INTO temp.late_ends (dur_ns, span_id) VALUES (?, ?)"
			      : "UPDATE span_rows SET dur_ns = ? WHERE span_id = ?"},
	};

	for (size_t i = 0; i < ARRAY_LEN(list) && prof__writer_ok(writer); i++)
		prof_sql_prepare(list[i].statement, writer->db, list[i].sql, &writer->err);
}

static void prepare_inserts(struct prof_writer *writer)
{
	const struct {
		struct prof_insert *insert;
		const char *head;
		size_t columns;
		const char *tail;
	} list[] = {
		{&writer->strings, "INSERT OR FAIL INTO strings (string_id, value)", 2, NULL},
		{&writer->sites,
		 "INSERT OR FAIL INTO sites (site_id, category_id, name_id, operation_id, file_id, "
		 "line)",
		 6, NULL},
		{&writer->contexts,
		 "INSERT OR FAIL INTO contexts (context_id, rank, mode, epoch, execution, "
		 "weight_update, step, microbatch, replica, ipu, stage, phase)",
		 12, NULL},
		{&writer->tracks,
		 "INSERT OR FAIL INTO track_rows (track_id, rank, clock, pid, tid, ipu, track, "
		 "name, parent)",
		 9, NULL},
		{&writer->spans,
		 "INSERT OR FAIL INTO span_rows (track_id, site_id, start_ns, dur_ns, context_id, "
		 "parent_back, depth)",
		 7, NULL},
		{&writer->args, "INSERT OR REPLACE INTO span_arg_rows (span_id, name_id, value)", 3,
		 NULL},
		{&writer->instant_args,
		 "INSERT OR REPLACE INTO instant_arg_rows (instant_id, name_id, value)", 3, NULL},
		{&writer->flows,
		 "INSERT OR FAIL INTO flow_rows (from_span_id, to_span_id, name_id)", 3, NULL},
		{&writer->instants,
		 "INSERT OR FAIL INTO instant_rows (track_id, site_id, time_ns, context_id)", 4,
		 NULL},
		{&writer->samples,
		 "INSERT OR FAIL INTO counter_rows (track_id, site_id, time_ns, value)", 4, NULL},
		{&writer->zones, PROF_INSERT_ZONE, 7, NULL},
		{&writer->sparse_zones, PROF_INSERT_SPARSE_ZONE, 6, NULL},
		{&writer->longs, PROF_INSERT_LONG, 4, NULL},
		{&writer->levels, PROF_INSERT_LEVEL, 8, PROF_INSERT_LEVEL_TAIL},
		{&writer->counter_levels, PROF_INSERT_COUNTER_LEVEL, 8,
		 PROF_INSERT_COUNTER_LEVEL_TAIL},
		{&writer->overhead,
		 "INSERT OR FAIL INTO overhead_rows (rank, time_ns, events, rows, bytes, dropped, "
		 "record_ns_estimate, write_ns, lag_ns)",
		 9, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(list) && prof__writer_ok(writer); i++)
		prof_insert_init(list[i].insert, writer->db, list[i].head, list[i].columns,
				 list[i].tail, &writer->err);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Nobody reads the file of a recording that is alone, and its rows come in order of their keys: the
 * tables of what is recorded on tracks are loaded. */
static void load_rows(struct prof_writer *writer)
{
	const struct {
		struct prof_bulk *bulk;
		struct prof_insert *insert;
		const char *table;
		enum prof_bulk_kind kind;
	} list[] = {
		{writer->bulk, &writer->spans, "span_rows", PROF_BULK_ASSIGNED},
		{writer->bulk, &writer->args, "span_arg_rows", PROF_BULK_KEYS},
		{writer->bulk, &writer->instants, "instant_rows", PROF_BULK_ASSIGNED},
		{writer->bulk, &writer->instant_args, "instant_arg_rows", PROF_BULK_KEYS},
		{writer->bulk, &writer->samples, "counter_rows", PROF_BULK_ASSIGNED},
		{writer->bulk, &writer->levels, "span_levels", PROF_BULK_4_KEYS},
		{writer->flow_bulk, &writer->flows, "flow_rows", PROF_BULK_ASSIGNED},
	};

	for (size_t i = 0; i < ARRAY_LEN(list) && writer->bulk && prof__writer_ok(writer); i++)
		prof_bulk_table(list[i].bulk, list[i].table, list[i].kind, list[i].insert->columns,
				&list[i].insert->bulk, &writer->err);
}

static void start_loading(struct prof_writer *writer)
{
	struct err *err = &writer->err;

	if (prof__writer_ok(writer))
		prof_bulk_new(&writer->bulk, writer->db, err);
	if (!writer->bulk) /* after a failure, or if the pages have another form */
		return;
	if (prof_bulk_new(&writer->flow_bulk, writer->db, err) == ST_OK)
		prof_level_sort_new(&writer->level_sort, sqlite3_db_filename(writer->db, NULL),
				    LEVEL_ROWS, err);
	/* Ends of spans that are loaded already. */
	run(writer, "CREATE TEMP TABLE late_ends (span_id INTEGER PRIMARY KEY, "
		    "dur_ns INTEGER NOT NULL)");
}

/* Put the rows loaded by @bulk into the database. */
static void join(struct prof_writer *writer, struct prof_bulk *bulk)
{
	if (bulk && prof__writer_ok(writer))
		prof_bulk_join(bulk, &writer->err);
}

/* Put the loaded rows into the database, but flows, and what came late. */
static void finish_loading(struct prof_writer *writer)
{
	if (!writer->bulk)
		return;
	if (prof__writer_ok(writer))
		prof_level_sort_load(writer->level_sort, &writer->levels, &writer->err);
	prof_level_sort_free(writer->level_sort);
	writer->level_sort = NULL;
	join(writer, writer->bulk);
	run(writer, "UPDATE span_rows SET dur_ns = (SELECT l.dur_ns FROM temp.late_ends l "
		    "WHERE l.span_id = span_rows.span_id) "
		    "WHERE span_id IN (SELECT span_id FROM temp.late_ends)");
}

static void set_meta_int(struct prof_writer *writer, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	prof__writer_meta(writer, key, text);
}

static void write_initial_meta(struct prof_writer *writer, const char *command)
{
	char host[PROF_HOST_SIZE];
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {
		{"schema_version", PROF_SCHEMA_VERSION},
		{"pid", getpid()},
		{"process_start", prof_process_start(getpid())},
		{"start_epoch_ns", writer->clock.start_epoch_ns},
		{"ticks_per_second", (int64_t)writer->clock.ticks_per_second},
		{"page_bytes", PROF_PAGE_BYTES},
		{"rank", writer->rank},
	};

	prof__writer_meta(writer, "state", "recording");
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		set_meta_int(writer, numbers[i].key, numbers[i].value);
	prof_process_host(host);
	prof__writer_meta(writer, "host", host);
	prof__writer_meta(writer, "library_version", IPUSCOPE_VERSION);
	prof__writer_meta(writer, "sqlite_version", sqlite3_libversion());
	if (command)
		prof__writer_meta(writer, "command", command);
}

static void count_forgotten_flow(void *user, int64_t value)
{
	struct prof_writer *writer = user;

	(void)value;
	writer->forgotten++;
}

/* Write the database in memory to the new file @path: it appears there as a whole. */
static enum status install(sqlite3 *db, const char *path, struct err *err)
{
	struct fs_writer file;
	sqlite3_int64 size;
	unsigned char *bytes;
	enum status status;

	if (fs_exists(path))
		return err_set(err, ST_INVALID, "%s: exists already; choose another name", path);
	bytes = sqlite3_serialize(db, "main", &size, 0);
	if (!bytes)
		return err_nomem(err);
	status = fs_writer_begin(&file, path, FS_NEW, err);
	if (status == ST_OK) {
		file.remade = true;
		status = fs_writer_put(&file, bytes, (size_t)size, err);
	}
	sqlite3_free(bytes);
	return status == ST_OK ? fs_writer_close(&file, err) : status;
}

enum status prof__writer_create(struct prof_writer *writer, const char *path,
				const struct ips_recording_params *params)
{
	int code;

	writer->rank = params->rank;
	prof_clock_start(&writer->clock);
	code = sqlite3_open_v2(":memory:", &writer->db,
			       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			       NULL);
	if (code != SQLITE_OK)
		prof_sql_error(writer->db, code, &writer->err, "open");
	run(writer, "PRAGMA page_size=16384; BEGIN");
	if (prof__writer_ok(writer))
		prof_schema_create(writer->db, &writer->err);
	prof_clock_calibrate(&writer->clock);
	write_initial_meta(writer, params->command);
	run(writer, "COMMIT");
	if (prof__writer_ok(writer))
		install(writer->db, path, &writer->err);
	else
		err_prefix(&writer->err, "%s", path);
	sqlite3_close(writer->db);
	writer->db = NULL;
	return writer->err.status;
}

enum status prof__writer_open(struct prof_writer *writer, const char *path,
			      const struct ips_recording_params *params)
{
	struct stat info = {0};

	writer->leave_ns = LEAVE_WAL_NS;
	prof_recent_init(&writer->open_flows, 16, FLOWS_KEPT);
	writer->open_flows.forget = count_forgotten_flow;
	writer->open_flows.user = writer;
	if (!prof_contexts_init(&writer->recent_contexts))
		return err_nomem(&writer->err);
	open_database(writer, path, params->alone != 0);
	if (params->alone)
		start_loading(writer);
	prepare_statements(writer);
	prepare_inserts(writer);
	load_rows(writer);
	if (prof__writer_ok(writer) && stat(sqlite3_db_filename(writer->db, NULL), &info) != 0)
		err_set(&writer->err, ST_IO, "%s", strerror(errno));
	writer->device = info.st_dev;
	writer->inode = info.st_ino;
	if (prof__writer_ok(writer) && !params->alone)
		writer->copier = prof_copier_new(sqlite3_db_filename(writer->db, NULL));
	writer->safe_ns = writer->round_ns = writer->committed_ns = clock_ns();
	writer->lag_ns = IPS_NULL;
	return writer->err.status;
}

/* Finalize the statements before closing the database. */
static void close_database(struct prof_writer *writer)
{
	struct prof_insert *const inserts[] = {
		&writer->strings,        &writer->sites,    &writer->contexts,
		&writer->tracks,         &writer->args,     &writer->flows,
		&writer->instant_args,   &writer->instants, &writer->samples,
		&writer->zones,          &writer->levels,   &writer->longs,
		&writer->counter_levels, &writer->overhead, &writer->sparse_zones,
		&writer->spans,
	};
	sqlite3_stmt **const statements[] = {&writer->begin, &writer->commit, &writer->end_span};

	for (size_t i = 0; i < ARRAY_LEN(inserts); i++)
		prof_insert_fini(inserts[i]);
	for (size_t i = 0; i < PROF_TABLES; i++)
		prof_insert_fini(&writer->rows[i]);
	prof__sums_fini(writer);
	for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
		sqlite3_finalize(*statements[i]);
		*statements[i] = NULL;
	}
	sqlite3_close(writer->db);
	writer->db = NULL;
}

void prof__writer_close(struct prof_writer *writer)
{
	prof_copier_free(writer->copier);
	writer->copier = NULL;
	close_database(writer);
	prof_bulk_free(writer->bulk);
	prof_bulk_free(writer->flow_bulk);
	writer->bulk = writer->flow_bulk = NULL;
	prof_level_sort_free(writer->level_sort);
	writer->level_sort = NULL;
	prof_texts_fini(&writer->texts);
	prof_contexts_fini(&writer->recent_contexts);
	prof_recent_fini(&writer->open_flows);
	mem_free(writer->sites_seen);
	writer->sites_seen = NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Checkpoint the log and make the database one plain file, unless a reader holds it too long. */
static void leave_wal(struct prof_writer *writer)
{
	uint64_t deadline = clock_ns() + writer->leave_ns;
	const struct timespec pause = {0, 10000000};
	int pages, copied;

	sqlite3_busy_timeout(writer->db, 0);
	/* If all frames are in the database and synced, only the mode is left to write, in one
	 * page. */
	if (sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
				      &copied) == SQLITE_OK &&
	    pages == copied)
		sqlite3_exec(writer->db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
	for (;;) {
		if (set_journal_mode(writer->db, "PRAGMA journal_mode=DELETE", "delete"))
			return;
		if (clock_ns() >= deadline)
			break;
		nanosleep(&pause, NULL);
	}
	sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &pages, &copied);
}

static void commit_cost(struct prof_writer *writer)
{
	prof__writer_flush(writer, &writer->overhead);
	prof__sums_flush(writer);
	prof__writer_commit(writer);
}

/* Write the cost of the last commit and the number of lost flows. */
static void write_last_overhead(struct ips_recording *recording)
{
	struct prof_writer *writer = &recording->writer;
	/* Upper bound of flows whose sides were both recorded but not matched, because the first one
	 * was discarded before the second came. A side whose other side was never recorded is no
	 * loss. */
	const uint64_t lost =
		min(writer->forgotten, min(writer->one_sided[0], writer->one_sided[1]));

	if (lost == 0 && writer->write_ns == 0)
		return;
	prof__writer_begin(writer);
	prof__writer_overhead(recording, writer->told.dropped + lost);
	commit_cost(writer);
}

/* The program waits for the finish: write its duration since @begun as the last overhead row. */
static void write_end(struct ips_recording *recording, uint64_t begun)
{
	struct prof_writer *writer = &recording->writer;
	const struct prof_sum_overhead cost = {
		.time_ns = prof_clock_now(&writer->clock),
		.record_ns = __atomic_exchange_n(&recording->waited_ns, 0, __ATOMIC_RELAXED) +
			     (int64_t)(clock_ns() - begun),
	};

	prof__writer_begin(writer);
	prof__writer_cost(writer, &cost);
	commit_cost(writer);
}

void prof__writer_finish(struct ips_recording *recording, uint64_t begun)
{
	struct prof_writer *writer = &recording->writer;

	/* The copier's connection would prevent leaving WAL mode. */
	prof_copier_free(writer->copier);
	writer->copier = NULL;
	write_last_overhead(recording);
	finish_loading(writer);
	prof__writer_meta(writer, "state", "closing");
	/* In memory SQLite would sort the rows of an index at once. */
	run(writer, "PRAGMA temp_store=FILE");
	prof_nudge_send(recording->path);
	set_meta_int(writer, "ticks_per_second", (int64_t)writer->clock.ticks_per_second);
	prof_launch_link(writer->db, writer->flow_bulk ? &writer->flows : NULL, &writer->err);
	/* Launches make flows; now all of these are there. */
	join(writer, writer->flow_bulk);
	prof_critical_find(writer->db, &writer->err);
	if (prof__writer_ok(writer)) {
		const int64_t share_ms = prof_clock_now(&writer->clock) / 1000000 / INDEX_SHARE;
		const bool all = prof_index_build(
			writer->db, min(share_ms, recording->params.finish_ms), NULL, NULL);

		prof__writer_meta(writer, "indexes", all ? "all" : "some");
	}
	write_end(recording, begun);
	prof__writer_meta(writer, "state", "complete");
	if (prof__writer_ok(writer))
		leave_wal(writer);
	else
		prof__writer_fail(recording);
	prof_nudge_send(recording->path);
}
