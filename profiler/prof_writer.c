/*
 * The writer: one thread that turns rings and queued rows into commits.
 *
 * It sleeps until it is woken (a ring half full, the queue a quarter full, a flush, the end) or a
 * commit is due, drains what is there, and commits at least every commit_ms when there is anything:
 * few large batches disturb the program less than many small ones. The write-ahead log is copied
 * into the database beside it (prof_copier.h); readers are never waited for. The first failure ends
 * writing for good: what is recorded from then on is thrown away, and whoever waits is told.
 *
 * Writing gives way to the program: its thread is nice. Where no core is ever idle that would make
 * commits late, so the first round that mostly waited hands over, for good, to a standby thread of
 * the program's own priority.
 *
 * The writer's thread (one of the two at a time) owns struct prof_writer from prof__writer_main()
 * until it ends; before and after that the thread that opens and closes the recording does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_copier.h"
#include "profiler/prof_index.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_process.h"
#include "profiler/prof_schema.h"
#include "profiler/prof_site.h"

#define PAGE_BYTES      16384
#define EVENTS_AT_ONCE  4096u /* between looks at the time */
#define FLOWS_KEPT      65536u
#define INDEX_SHARE     50          /* indexes take at most this part of the recording's time */
#define KEYS_NS         10.0        /* at the call site, of a change of keys (measured) */
#define ROW_NS          150.0       /* of an appended row (measured) */
#define WRITER_NICE     19          /* gives way to the program */
#define FIRST_COMMIT_NS 4000000u    /* the first commits come early, then ever later */
#define LEAVE_WAL_NS    1000000000u /* the longest wait for readers at the end */
#define LIBRARY_VERSION "0.1.0"

/* ---- opening ---- */

static int on_wal(void *user, sqlite3 *db, const char *name, int pages)
{
	(void)db;
	(void)name;
	*(int *)user = pages;
	return SQLITE_OK;
}

/* What journal mode @sql leads to. */
static bool journal_is(sqlite3 *db, const char *sql, const char *wanted)
{
	sqlite3_stmt *statement;
	bool is = false;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	if (sqlite3_step(statement) == SQLITE_ROW) {
		const unsigned char *mode = sqlite3_column_text(statement, 0);

		is = mode != NULL && strcmp((const char *)mode, wanted) == 0;
	}
	return sqlite3_finalize(statement) == SQLITE_OK && is;
}

static enum status open_database(struct prof_writer *writer, const char *path, struct err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int code = sqlite3_open_v2(path, &writer->db, flags, NULL);
	enum status status;

	if (code != SQLITE_OK)
		return prof_sql_error(writer->db, code, err, "open");
	sqlite3_busy_timeout(writer->db, 1000);
	status = prof_sql_run(writer->db,
			      "PRAGMA page_size=16384; PRAGMA cache_size=-16384;"
			      "PRAGMA temp_store=MEMORY; PRAGMA locking_mode=NORMAL",
			      err);
	if (status != ST_OK)
		return status;
	if (!journal_is(writer->db, "PRAGMA journal_mode=WAL", "wal"))
		return err_set(err, sqlite3_errcode(writer->db) == SQLITE_FULL ? ST_NOSPACE : ST_IO,
			       "cannot keep a write-ahead log here (%s); record on a local disk",
			       sqlite3_errmsg(writer->db));
	status = prof_sql_run(writer->db, "PRAGMA synchronous=NORMAL; BEGIN", err);
	if (status == ST_OK)
		status = prof_sql_run(writer->db, prof_schema_sql(), err);
	sqlite3_wal_autocheckpoint(writer->db, 0);
	sqlite3_wal_hook(writer->db, on_wal, &writer->wal_pages);
	return status;
}

static enum status prepare(sqlite3_stmt **out, sqlite3 *db, const char *sql, struct err *err)
{
	int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);

	return code == SQLITE_OK ? ST_OK : prof_sql_error(db, code, err, "prepare");
}

#define SPAN_VALUES    "(?,?,?,?,?,?,?)"
#define SPAN_VALUES_4  SPAN_VALUES "," SPAN_VALUES "," SPAN_VALUES "," SPAN_VALUES
#define SPAN_VALUES_16 SPAN_VALUES_4 "," SPAN_VALUES_4 "," SPAN_VALUES_4 "," SPAN_VALUES_4
#define SPAN_VALUES_64 SPAN_VALUES_16 "," SPAN_VALUES_16 "," SPAN_VALUES_16 "," SPAN_VALUES_16
#define SPAN_INSERT                                                                                \
	"INSERT INTO span_rows (track_id, site_id, start_ns, dur_ns, context_id, parent_back, "    \
	"depth) VALUES "

static enum status prepare_statements(struct prof_writer *writer, struct err *err)
{
	const struct {
		sqlite3_stmt **statement;
		const char *sql;
	} list[] = {
		{&writer->begin, "BEGIN IMMEDIATE"},
		{&writer->commit, "COMMIT"},
		{&writer->spans_many, SPAN_INSERT SPAN_VALUES_64},
		{&writer->spans_one, SPAN_INSERT SPAN_VALUES},
		{&writer->end_span, "UPDATE span_rows SET dur_ns = ? WHERE span_id = ?"},
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(list) && status == ST_OK; i++)
		status = prepare(list[i].statement, writer->db, list[i].sql, err);
	return status;
}

static enum status prepare_inserts(struct prof_writer *writer, struct err *err)
{
	const struct {
		struct prof_insert *insert;
		const char *head;
		size_t columns;
		const char *tail;
	} list[] = {
		{&writer->strings, "INSERT INTO strings (string_id, value)", 2, NULL},
		{&writer->sites,
		 "INSERT INTO sites (site_id, category_id, name_id, operation_id, file_id, line)",
		 6, NULL},
		{&writer->contexts,
		 "INSERT INTO contexts (context_id, rank, mode, epoch, execution, weight_update, "
		 "step, "
		 "microbatch, replica, ipu, stage, phase)",
		 12, NULL},
		{&writer->tracks,
		 "INSERT INTO track_rows (track_id, rank, clock, pid, tid, ipu, track, name, "
		 "parent)",
		 9, NULL},
		{&writer->args, "INSERT OR REPLACE INTO span_arg_rows (span_id, name_id, value)", 3,
		 NULL},
		{&writer->flows, "INSERT INTO flow_rows (from_span_id, to_span_id, name_id)", 3,
		 NULL},
		{&writer->instants,
		 "INSERT INTO instant_rows (track_id, site_id, time_ns, context_id)", 4, NULL},
		{&writer->samples, "INSERT INTO counter_rows (track_id, site_id, time_ns, value)",
		 4, NULL},
		{&writer->zones,
		 "INSERT INTO zones (kind, track_id, first_ns, first_row, last_ns, last_row, "
		 "finest)",
		 7, NULL},
		{&writer->sparse_zones,
		 "INSERT INTO sparse_zones (track_id, finest, first_ns, first_row, last_ns, "
		 "last_row)",
		 6, NULL},
		{&writer->longs, "INSERT INTO long_spans (track_id, level, start_ns, span_id)", 4,
		 NULL},
		{&writer->levels,
		 "INSERT INTO span_levels (track_id, level, bucket, depth, busy_ns, count, "
		 "site_id, "
		 "site_ns)",
		 8,
		 "ON CONFLICT DO UPDATE SET busy_ns = busy_ns + excluded.busy_ns, "
		 "count = count + excluded.count, "
		 "site_id = iif(excluded.site_ns >= site_ns, excluded.site_id, site_id), "
		 "site_ns = max(excluded.site_ns, site_ns)"},
		{&writer->counter_levels,
		 "INSERT INTO counter_levels (track_id, site_id, level, bucket, count, least, "
		 "greatest, "
		 "total)",
		 8,
		 "ON CONFLICT DO UPDATE SET count = count + excluded.count, "
		 "least = min(least, excluded.least), greatest = max(greatest, excluded.greatest), "
		 "total = total + excluded.total"},
		{&writer->overhead,
		 "INSERT INTO overhead_rows (rank, time_ns, events, rows, bytes, dropped, "
		 "record_ns_estimate, write_ns)",
		 8, NULL},
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(list) && status == ST_OK; i++)
		status = prof_insert_init(list[i].insert, writer->db, list[i].head, list[i].columns,
					  list[i].tail, err);
	return status;
}

static enum status set_fact(struct prof_writer *writer, const char *key, const char *value,
			    struct err *err)
{
	sqlite3_stmt *statement;
	enum status status =
		prepare(&statement, writer->db,
			"INSERT OR REPLACE INTO meta_facts (key, value) VALUES (?, ?)", err);

	if (status != ST_OK)
		return status;
	sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
	status = prof_sql_execute(statement, err, "write meta");
	sqlite3_finalize(statement);
	return status;
}

static enum status set_fact_int(struct prof_writer *writer, const char *key, int64_t value,
				struct err *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return set_fact(writer, key, text, err);
}

static enum status first_facts(struct prof_writer *writer, const char *command, struct err *err)
{
	char host[PROF_HOST_SIZE];
	const struct {
		const char *key;
		int64_t value;
	} numbers[] = {
		{"schema_version", 1},
		{"pid", getpid()},
		{"process_start", prof_process_start(getpid())},
		{"start_epoch_ns", writer->clock.start_epoch_ns},
		{"ticks_per_second", (int64_t)writer->clock.ticks_per_second},
		{"page_bytes", PAGE_BYTES},
		{"rank", writer->rank},
	};
	enum status status = set_fact(writer, "state", "recording", err);

	for (size_t i = 0; i < ARRAY_LEN(numbers) && status == ST_OK; i++)
		status = set_fact_int(writer, numbers[i].key, numbers[i].value, err);
	prof_process_host(host);
	if (status == ST_OK)
		status = set_fact(writer, "host", host, err);
	if (status == ST_OK)
		status = set_fact(writer, "library_version", LIBRARY_VERSION, err);
	if (status == ST_OK)
		status = set_fact(writer, "sqlite_version", sqlite3_libversion(), err);
	if (status == ST_OK && command != NULL)
		status = set_fact(writer, "command", command, err);
	return status;
}

static void count_lost_flow(void *user, int64_t value)
{
	struct prof_writer *writer = user;

	(void)value;
	writer->dropped_here++;
}

enum status prof__writer_open(struct prof_writer *writer, const char *path, int64_t rank,
			      const char *command, struct err *err)
{
	enum status status;

	writer->rank = rank;
	prof_recent_init(&writer->open_flows, 16, FLOWS_KEPT);
	writer->open_flows.forget = count_lost_flow;
	writer->open_flows.user = writer;
	if (!prof_contexts_init(&writer->recent_contexts))
		return err_nomem(err);
	prof_clock_start(&writer->clock);
	status = open_database(writer, path, err);
	if (status == ST_OK)
		status = prepare_statements(writer, err);
	if (status == ST_OK)
		status = prepare_inserts(writer, err);
	prof_clock_settle(&writer->clock);
	if (status == ST_OK)
		status = first_facts(writer, command, err);
	if (status == ST_OK)
		status = prof_sql_run(writer->db, "COMMIT", err);
	if (status == ST_OK)
		writer->copier = prof_copier_new(sqlite3_db_filename(writer->db, NULL));
	writer->last_commit_ns = clock_ns();
	return status;
}

void prof__writer_close(struct prof_writer *writer)
{
	struct prof_insert *const inserts[] = {
		&writer->strings,  &writer->sites,        &writer->contexts,
		&writer->tracks,   &writer->args,         &writer->flows,
		&writer->instants, &writer->samples,      &writer->zones,
		&writer->levels,   &writer->longs,        &writer->counter_levels,
		&writer->overhead, &writer->sparse_zones,
	};
	sqlite3_stmt *const statements[] = {writer->begin, writer->commit, writer->spans_many,
					    writer->spans_one, writer->end_span};

	prof_copier_free(writer->copier);
	writer->copier = NULL;
	for (size_t i = 0; i < ARRAY_LEN(inserts); i++)
		prof_insert_fini(inserts[i]);
	for (size_t i = 0; i < PROF_TABLES; i++)
		prof_insert_fini(&writer->rows[i]);
	for (size_t i = 0; i < ARRAY_LEN(statements); i++)
		sqlite3_finalize(statements[i]);
	sqlite3_close(writer->db);
	writer->db = NULL;
	prof_texts_fini(&writer->texts);
	prof_contexts_fini(&writer->recent_contexts);
	prof_recent_fini(&writer->open_flows);
	mem_free(writer->sites_seen);
	writer->sites_seen = NULL;
}

/* ---- dictionaries ---- */

enum status prof__writer_begin(struct prof_writer *writer)
{
	enum status status;

	if (writer->in_transaction)
		return ST_OK;
	status = prof_sql_execute(writer->begin, &writer->err, "begin");
	writer->in_transaction = status == ST_OK;
	return status;
}

enum status prof__writer_text(struct prof_writer *writer, const char *text, int64_t *id)
{
	struct prof_cell *cells;
	enum status status;
	bool fresh;

	*id = INT64_MIN;
	if (text == NULL)
		return ST_OK;
	*id = (int64_t)prof_texts_add(&writer->texts, text, &fresh);
	if (*id == 0)
		return err_nomem(&writer->err);
	if (!fresh)
		return ST_OK;
	status = prof__writer_begin(writer);
	if (status == ST_OK)
		status = prof_insert_row(&writer->strings, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], *id);
	prof_cell_text(&cells[1], text);
	/* At once: the text may be gone before the batch is full. */
	return prof_insert_flush(&writer->strings, &writer->err);
}

static enum status write_site(struct prof_writer *writer, const struct ips_site *site, uint32_t id)
{
	int64_t category, name, operation, file;
	struct prof_cell *cells;
	enum status status = prof__writer_begin(writer);

	if (status == ST_OK)
		status = prof__writer_text(writer, site->category == NULL ? "" : site->category,
					   &category);
	if (status == ST_OK)
		status = prof__writer_text(writer, site->name == NULL ? "" : site->name, &name);
	if (status == ST_OK)
		status = prof__writer_text(writer, site->operation, &operation);
	if (status == ST_OK)
		status = prof__writer_text(writer, site->file, &file);
	if (status == ST_OK)
		status = prof_insert_row(&writer->sites, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], id);
	prof_cell_int(&cells[1], category);
	prof_cell_int(&cells[2], name);
	prof_cell_int(&cells[3], operation);
	prof_cell_int(&cells[4], file);
	prof_cell_int(&cells[5], site->file == NULL ? INT64_MIN : (int64_t)site->line);
	return ST_OK;
}

enum status prof__writer_site(struct prof_writer *writer, struct ips_site *site, uint32_t *id)
{
	size_t capacity = writer->sites_capacity;

	*id = prof_site_id(site);
	if (*id < capacity && writer->sites_seen[*id])
		return ST_OK;
	if (*id >= capacity) {
		if (mem_grow(&writer->sites_seen, &writer->sites_capacity, (size_t)*id + 1, 1) != 0)
			return err_nomem(&writer->err);
		memset(writer->sites_seen + capacity, 0, writer->sites_capacity - capacity);
	}
	writer->sites_seen[*id] = 1;
	return write_site(writer, site, *id);
}

static enum status write_context(struct prof_writer *writer, const struct ips_keys *keys,
				 int64_t id)
{
	static const char phases[][2] = {"F", "B", "W", "R", "U"};
	struct prof_cell *cells;
	enum status status = prof__writer_begin(writer);

	if (status == ST_OK)
		status = prof_insert_row(&writer->contexts, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], id);
	prof_cell_int(&cells[1], writer->rank);
	prof_cell_text(&cells[2], prof_mode_text(keys->mode));
	prof_cell_int(&cells[3], keys->epoch);
	prof_cell_int(&cells[4], keys->execution);
	prof_cell_int(&cells[5], keys->weight_update);
	prof_cell_int(&cells[6], keys->step);
	prof_cell_int(&cells[7], keys->microbatch);
	prof_cell_int(&cells[8], keys->replica);
	prof_cell_int(&cells[9], keys->ipu);
	prof_cell_int(&cells[10], keys->stage);
	prof_cell_text(&cells[11], NULL);
	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		if (phases[i][0] == keys->phase)
			prof_cell_text(&cells[11], phases[i]);
	}
	return ST_OK;
}

static bool is_none(const struct ips_keys *keys)
{
	return keys->epoch == IPS_NULL && keys->execution == IPS_NULL &&
	       keys->weight_update == IPS_NULL && keys->step == IPS_NULL &&
	       keys->microbatch == IPS_NULL && keys->replica == IPS_NULL && keys->ipu == IPS_NULL &&
	       keys->stage == IPS_NULL && prof_mode_text(keys->mode) == NULL && keys->phase == 0;
}

/* *@id 0: no context. */
enum status prof__writer_context(struct prof_writer *writer, const struct ips_keys *keys,
				 bool needed, int64_t *id)
{
	struct ips_keys key;

	*id = 0;
	if (!needed && is_none(keys))
		return ST_OK;
	memset(&key, 0, sizeof(key)); /* the padding counts for the hash */
	key.epoch = keys->epoch;
	key.execution = keys->execution;
	key.weight_update = keys->weight_update;
	key.step = keys->step;
	key.microbatch = keys->microbatch;
	key.replica = keys->replica;
	key.ipu = keys->ipu;
	key.stage = keys->stage;
	key.mode = keys->mode;
	key.phase = keys->phase;
	*id = prof_contexts_add(&writer->recent_contexts, &key, writer->last_context + 1);
	if (*id <= writer->last_context)
		return ST_OK;
	writer->last_context = *id;
	return write_context(writer, &key, *id);
}

/* ---- appended rows ---- */

static enum status prepare_rows(struct prof_writer *writer, unsigned table)
{
	const struct prof_row_type *type = &prof_row_types[table];
	struct str head = {0};
	enum status status;

	/* Rows with an id of the caller's replace an older one with the same id. */
	str_addf(&head, "INSERT OR REPLACE INTO %s (", type->table);
	for (size_t i = 0; i < type->count; i++)
		str_addf(&head, "%s%s", i == 0 ? "" : ", ", type->columns[i].name);
	str_add(&head, ")");
	status = head.failed ? err_nomem(&writer->err)
			     : prof_insert_init(&writer->rows[table], writer->db, str_peek(&head),
						type->count, NULL, &writer->err);
	str_free(&head);
	return status;
}

static enum status fill_cell(struct prof_writer *writer, const struct prof_column *column,
			     const unsigned char *row, struct prof_cell *cell)
{
	const unsigned char *field = row + column->offset;
	enum status status = ST_OK;
	struct ips_keys keys;
	const char *text;
	int64_t value = INT64_MIN;
	double real;

	switch (column->kind) {
	case PROF_COLUMN_INT:
	case PROF_COLUMN_NEEDED:
		memcpy(&value, field, sizeof(value));
		prof_cell_int(cell, value);
		break;
	case PROF_COLUMN_REAL:
		memcpy(&real, field, sizeof(real));
		prof_cell_real(cell, real);
		break;
	case PROF_COLUMN_TEXT:
		memcpy(&text, field, sizeof(text));
		prof_cell_text(cell, text);
		break;
	case PROF_COLUMN_NAME:
		memcpy(&text, field, sizeof(text));
		status = prof__writer_text(writer, text, &value);
		prof_cell_int(cell, value);
		break;
	case PROF_COLUMN_MODE:
		memcpy(&value, field, sizeof(value));
		prof_cell_text(cell, prof_mode_text(value));
		break;
	case PROF_COLUMN_KEYS:
	case PROF_COLUMN_CONTEXT:
		memcpy(&keys, field, sizeof(keys));
		status = prof__writer_context(writer, &keys, column->kind == PROF_COLUMN_CONTEXT,
					      &value);
		prof_cell_int(cell, value == 0 ? INT64_MIN : value);
		break;
	case PROF_COLUMN_RANK:
		prof_cell_int(cell, writer->rank);
		break;
	case PROF_COLUMN_BLOB:
		memcpy(&cell->value.p, field, sizeof(cell->value.p));
		memcpy(&cell->size, row + column->size_offset, sizeof(cell->size));
		cell->type =
			cell->value.p == NULL || cell->size < 0 ? PROF_CELL_NULL : PROF_CELL_BLOB;
		break;
	}
	return status;
}

static enum status write_row(struct prof_writer *writer, unsigned table, const unsigned char *row)
{
	const struct prof_row_type *type = &prof_row_types[table];
	enum status status = ST_OK;
	struct prof_cell *cells;

	if (writer->rows[table].many == NULL)
		status = prepare_rows(writer, table);
	if (status == ST_OK)
		status = prof__writer_begin(writer);
	if (status == ST_OK)
		status = prof_insert_row(&writer->rows[table], &cells, &writer->err);
	for (size_t i = 0; i < type->count && status == ST_OK; i++)
		status = fill_cell(writer, &type->columns[i], row, &cells[i]);
	writer->rows_total++;
	return status;
}

static enum status flush_rows(struct prof_writer *writer)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < PROF_TABLES && status == ST_OK; i++)
		status = prof_insert_flush(&writer->rows[i], &writer->err);
	return status;
}

static enum status write_chunk(struct prof_writer *writer, const struct prof_chunk *chunk)
{
	enum status status = ST_OK;

	for (size_t at = 0; at < chunk->used && status == ST_OK;) {
		struct prof_record record;

		memcpy(&record, chunk->data + at, sizeof(record));
		status = write_row(writer, record.table, chunk->data + at + sizeof(record));
		at += record.size;
	}
	/* The texts of waiting rows are the chunk's. */
	return status == ST_OK ? flush_rows(writer) : status;
}

/* ---- commits ---- */

static uint64_t file_bytes(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static uint64_t database_bytes(struct prof_writer *writer)
{
	const char *path = sqlite3_db_filename(writer->db, NULL);

	return file_bytes(path) + file_bytes(sqlite3_filename_wal(path));
}

static enum status write_overhead(struct prof_writer *writer, uint64_t dropped)
{
	uint64_t events = writer->events - writer->events_told;
	struct prof_cell *cells;
	enum status status;
	int pages = 0, peak = 0;

	sqlite3_db_status(writer->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &peak, 0);
	status = prof_insert_row(&writer->overhead, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], writer->rank);
	prof_cell_int(&cells[1], prof_clock_now(&writer->clock));
	prof_cell_int(&cells[2], (int64_t)events);
	prof_cell_int(&cells[3], (int64_t)(writer->rows_total - writer->rows_told));
	prof_cell_int(&cells[4], (int64_t)((uint64_t)pages - writer->pages_told) * PAGE_BYTES);
	prof_cell_int(&cells[5], (int64_t)(dropped - writer->told.dropped));
	prof_cell_int(&cells[6],
		      (int64_t)((double)events * (writer->clock.stamp_ns + 2.0) +
				(double)(writer->keys - writer->keys_told) * KEYS_NS +
				(double)(writer->rows_total - writer->rows_told) * ROW_NS));
	prof_cell_int(&cells[7], (int64_t)writer->write_ns);
	writer->events_told = writer->events;
	writer->keys_told = writer->keys;
	writer->rows_told = writer->rows_total;
	writer->pages_told = (uint64_t)pages;
	writer->write_ns = 0;
	return ST_OK;
}

static enum status flush_dictionaries(struct prof_writer *writer)
{
	struct prof_insert *const inserts[] = {
		&writer->strings,      &writer->sites,          &writer->contexts,
		&writer->tracks,       &writer->flows,          &writer->instants,
		&writer->samples,      &writer->zones,          &writer->levels,
		&writer->longs,        &writer->counter_levels, &writer->overhead,
		&writer->sparse_zones,
	};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(inserts) && status == ST_OK; i++)
		status = prof_insert_flush(inserts[i], &writer->err);
	return status;
}

/* The list of lanes as it is now; *@count of them are safe to walk. */
static struct prof_lane *first_lane(struct ips_recording *recording, int64_t *count)
{
	struct prof_lane *lane;

	pthread_mutex_lock(&recording->lock);
	lane = recording->lanes;
	*count = recording->lane_count;
	pthread_mutex_unlock(&recording->lock);
	return lane;
}

/* The next of @left lanes; the last one's link may be changing. */
static struct prof_lane *next_lane(const struct prof_lane *lane, int64_t left)
{
	return left > 1 ? lane->next : NULL;
}

static enum status flush_lanes(struct ips_recording *recording, uint64_t *dropped)
{
	struct prof_writer *writer = &recording->writer;
	enum status status = ST_OK;
	int64_t left;

	*dropped = 0;
	for (struct prof_lane *lane = first_lane(recording, &left); left > 0 && status == ST_OK;
	     lane = next_lane(lane, left), left--) {
		if (prof__lane_waits(lane))
			status = prof__lane_flush(writer, lane);
		lane->dropped_told = __atomic_load_n(&lane->ring.dropped, __ATOMIC_RELAXED);
		*dropped += lane->dropped_told;
	}
	*dropped += writer->dropped_here;
	return status;
}

static bool has_anything(struct ips_recording *recording)
{
	int64_t left;

	if (recording->writer.in_transaction ||
	    recording->writer.events != recording->writer.events_told)
		return true;
	for (struct prof_lane *lane = first_lane(recording, &left); left > 0;
	     lane = next_lane(lane, left), left--) {
		if (prof__lane_waits(lane))
			return true;
	}
	return false;
}

static void tell_commit(struct ips_recording *recording, uint64_t dropped)
{
	struct prof_writer *writer = &recording->writer;
	struct ips_commit *told = &writer->told;

	told->number++;
	told->spans = (uint64_t)writer->last_span;
	told->instants = (uint64_t)writer->last_row[PROF_ZONE_INSTANTS];
	told->counters = (uint64_t)writer->last_row[PROF_ZONE_COUNTERS];
	told->rows = writer->rows_total;
	told->dropped = dropped;
	told->bytes = database_bytes(writer);
	if (recording->params.on_commit != NULL)
		recording->params.on_commit(recording->params.user, told);
}

static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum status commit(struct ips_recording *recording)
{
	struct prof_writer *writer = &recording->writer;
	uint64_t dropped, started = clock_ns();
	enum status status;

	writer->last_commit_ns = started;
	writer->commit_ns =
		shorter(writer->commit_ns * 2, (uint64_t)recording->params.commit_ms * 1000000u);
	if (!has_anything(recording))
		return ST_OK;
	status = prof__writer_begin(writer);
	if (status == ST_OK)
		status = flush_lanes(recording, &dropped);
	if (status == ST_OK)
		status = flush_rows(writer);
	if (status == ST_OK)
		status = write_overhead(writer, dropped);
	if (status == ST_OK)
		status = flush_dictionaries(writer);
	if (status == ST_OK)
		status = prof_sql_execute(writer->commit, &writer->err, "commit");
	if (status != ST_OK)
		return status;
	writer->in_transaction = false;
	tell_commit(recording, dropped);
	prof_copier_run(writer->copier, writer->db, writer->wal_pages);
	prof_clock_refine(&writer->clock);
	return ST_OK;
}

/* ---- failure ---- */

static void fail(struct ips_recording *recording, enum status status)
{
	struct prof_writer *writer = &recording->writer;

	if (writer->in_transaction)
		sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
	writer->in_transaction = false;
	writer->err.status = status;
	pthread_mutex_lock(&recording->lock);
	if (recording->failure.status == ST_OK) {
		recording->failure = writer->err;
		err_prefix(&recording->failure, "%s", recording->path);
	}
	pthread_cond_broadcast(&recording->flushed);
	pthread_mutex_unlock(&recording->lock);
	__atomic_store_n(&recording->failed, 1, __ATOMIC_RELEASE);
	prof_queue_stop(&recording->queue, status);
}

static void discard(struct ips_recording *recording)
{
	int64_t left;

	for (struct prof_lane *lane = first_lane(recording, &left); left > 0;
	     lane = next_lane(lane, left), left--)
		prof__lane_discard(lane);
	for (struct prof_chunk *chunk = prof_queue_take(&recording->queue); chunk != NULL;) {
		struct prof_chunk *next = chunk->next;

		prof_queue_release(&recording->queue, chunk);
		chunk = next;
	}
}

/* ---- the thread ---- */

/* When the next commit begins: somewhat early, since draining takes time. */
static uint64_t commit_at(const struct ips_recording *recording)
{
	return recording->writer.last_commit_ns + recording->writer.commit_ns / 4 * 3;
}

static bool commit_due(const struct ips_recording *recording)
{
	return clock_ns() >= commit_at(recording);
}

static enum status commit_if_due(struct ips_recording *recording)
{
	return commit_due(recording) ? commit(recording) : ST_OK;
}

/* Take from every ring what is there now, a piece at a time. *@work: how many slots came. */
static enum status drain_lanes(struct ips_recording *recording, uint64_t *work)
{
	enum status status = ST_OK;
	int64_t left;

	for (struct prof_lane *lane = first_lane(recording, &left); left > 0 && status == ST_OK;
	     lane = next_lane(lane, left), left--) {
		uint64_t before = lane->tail, end = before + lane->ring.mask + 1;
		bool more = true;

		while (more && lane->tail < end && status == ST_OK) {
			status = prof__lane_drain(&recording->writer, lane, EVENTS_AT_ONCE, &more);
			if (status == ST_OK && more)
				status = commit_if_due(recording);
		}
		*work += lane->tail - before;
	}
	return status;
}

static enum status drain_rows(struct ips_recording *recording, uint64_t *work)
{
	struct prof_chunk *chunk = prof_queue_take(&recording->queue);
	enum status status = ST_OK;

	while (chunk != NULL) {
		struct prof_chunk *next = chunk->next;

		if (status == ST_OK)
			status = write_chunk(&recording->writer, chunk);
		*work += chunk->used / sizeof(struct ips_slot);
		prof_queue_release(&recording->queue, chunk);
		if (status == ST_OK && next != NULL)
			status = commit_if_due(recording);
		chunk = next;
	}
	return status;
}

static uint64_t flush_ticket(struct ips_recording *recording)
{
	uint64_t ticket;

	pthread_mutex_lock(&recording->lock);
	ticket = recording->flush_wanted;
	pthread_mutex_unlock(&recording->lock);
	return ticket;
}

static void flush_is_done(struct ips_recording *recording, uint64_t ticket)
{
	pthread_mutex_lock(&recording->lock);
	recording->flush_done = ticket;
	pthread_cond_broadcast(&recording->flushed);
	pthread_mutex_unlock(&recording->lock);
}

/* One round; *@work: how much there was. */
static enum status work_round(struct ips_recording *recording, bool last, uint64_t *work)
{
	uint64_t ticket = flush_ticket(recording), started = clock_ns();
	enum status status = drain_lanes(recording, work);

	if (status == ST_OK)
		status = drain_rows(recording, work);
	if (status == ST_OK && (last || ticket != recording->flush_done || commit_due(recording)))
		status = commit(recording);
	recording->writer.write_ns += clock_ns() - started;
	if (status == ST_OK && ticket != recording->flush_done)
		flush_is_done(recording, ticket);
	return status;
}

static void sleep_until_woken(struct ips_recording *recording)
{
	uint64_t now = clock_ns(), until = commit_at(recording);
	struct timespec at;

	if (until <= now)
		until = now + 1000000u;
	at.tv_sec = (time_t)(until / 1000000000u);
	at.tv_nsec = (long)(until % 1000000000u);
	sem_clockwait(&recording->wake, CLOCK_MONOTONIC, &at);
	__atomic_store_n(&recording->nudged, 0, __ATOMIC_RELEASE);
}

/* Whether a round of @wall_ns was mostly waiting for a core, and commits are in danger of being
 * late.
 */
static bool is_starved(const struct ips_recording *recording, uint64_t wall_ns, uint64_t cpu_ns)
{
	return wall_ns > 2 * cpu_ns &&
	       wall_ns > (uint64_t)recording->params.commit_ms * 1000000u / 2;
}

/* Write until the recording stops; false: starved before (only if @gives_way). */
static bool write_rounds(struct ips_recording *recording, bool gives_way)
{
	bool last = false;

	while (!last) {
		uint64_t work = 0, started = clock_ns(), cpu = clock_thread_cpu_ns();

		last = __atomic_load_n(&recording->stop, __ATOMIC_ACQUIRE) != 0;
		if (recording->failed != 0) {
			discard(recording);
		} else {
			enum status status = work_round(recording, last, &work);

			if (status != ST_OK)
				fail(recording, status);
		}
		if (gives_way && !last &&
		    is_starved(recording, clock_ns() - started, clock_thread_cpu_ns() - cpu))
			return false;
		if (!last && work < EVENTS_AT_ONCE)
			sleep_until_woken(recording);
	}
	return true;
}

void *prof__writer_main(void *user)
{
	struct ips_recording *recording = user;

	/* Of this thread only, on Linux: a worker that wakes up goes first. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), WRITER_NICE);
	recording->writer.commit_ns =
		shorter(FIRST_COMMIT_NS, (uint64_t)recording->params.commit_ms * 1000000u);
	recording->starved = !write_rounds(recording, true);
	sem_post(&recording->take_over);
	return NULL;
}

/* A thread cannot take its niceness back, so one of the program's priority stands by. */
void *prof__standby_main(void *user)
{
	struct ips_recording *recording = user;

	while (sem_wait(&recording->take_over) != 0)
		continue;
	if (recording->starved)
		write_rounds(recording, false);
	return NULL;
}

/* ---- the end ---- */

static enum status set_state(struct prof_writer *writer, const char *state)
{
	return set_fact(writer, "state", state, &writer->err);
}

/* Fold the log in and become one plain file, unless a reader stays for longer than is waited. */
static void leave_wal(struct prof_writer *writer)
{
	uint64_t deadline = clock_ns() + LEAVE_WAL_NS;
	const struct timespec pause = {0, 10000000};
	int pages, copied;

	sqlite3_busy_timeout(writer->db, 0);
	sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
	for (;;) {
		if (journal_is(writer->db, "PRAGMA journal_mode=DELETE", "delete"))
			return;
		if (clock_ns() >= deadline)
			break;
		nanosleep(&pause, NULL);
	}
	sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &pages, &copied);
}

/* What the last commit itself cost, and the flows that have one side for good. */
static enum status write_last_overhead(struct prof_writer *writer)
{
	uint64_t lost = prof_recent_count(&writer->open_flows);
	enum status status;

	if (lost == 0 && writer->write_ns == 0)
		return ST_OK;
	status = write_overhead(writer, writer->told.dropped + lost);
	return status == ST_OK ? prof_insert_flush(&writer->overhead, &writer->err) : status;
}

enum status prof__writer_finish(struct ips_recording *recording)
{
	struct prof_writer *writer = &recording->writer;
	enum status status;
	int64_t budget_ms;
	bool all;

	/* Its connection would hold the log in place. */
	prof_copier_free(writer->copier);
	writer->copier = NULL;
	status = write_last_overhead(writer);
	if (status == ST_OK)
		status = set_state(writer, "closing");
	if (status == ST_OK)
		status = set_fact_int(writer, "ticks_per_second",
				      (int64_t)writer->clock.ticks_per_second, &writer->err);
	if (status == ST_OK) {
		budget_ms = prof_clock_now(&writer->clock) / 1000000 / INDEX_SHARE;
		if (budget_ms > recording->params.finish_ms)
			budget_ms = recording->params.finish_ms;
		all = prof_index_build(writer->db, budget_ms);
		status = set_fact(writer, "indexes", all ? "all" : "some", &writer->err);
	}
	if (status == ST_OK)
		status = set_state(writer, "complete");
	if (status == ST_OK)
		leave_wal(writer);
	else
		fail(recording, status);
	return status;
}
