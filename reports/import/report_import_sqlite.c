/*
 * Databases of other profilers: opening them, and reading tables that may lack columns. See
 * report_import_sqlite.h.
 */
#include "reports/import/report_import_sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_guard.h"

#define MEMORY_BYTES (INT64_C(64) << 20)
#define TELL_ROWS    8192 /* between two reports of the progress */

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_sqlite(const unsigned char *head, size_t size)
{
	static const char magic[16] = "SQLite format 3";

	return size >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

static enum status open_one(struct prof_db **db, const char *path, struct err *err)
{
	const struct prof_guard_params guard = {.memory_bytes = MEMORY_BYTES};
	enum status status = prof_db_open_foreign(db, path, err);

	if (status == ST_OK)
		prof_db_read_through(*db);
	return status == ST_OK ? prof_db_guard(*db, &guard, err) : status;
}

static enum status open_all(struct import_sqlite *in, const char *path, struct err *err)
{
	enum status status = open_one(&in->db, path, err);

	for (size_t i = 0; i < ARRAY_LEN(in->ahead) && status == ST_OK; i++)
		status = open_one(&in->ahead[i], path, err);
	return status;
}

/* A pipe or a compressed file: copy the database beside the output, where it has no name. */
static enum status open_copy(struct import_sqlite *in, struct err *err)
{
	char path[FS_PATH_SIZE];
	size_t size;
	int fd;
	enum status status = report__import_copy(in->import, path, &fd, &size, err);

	if (fd < 0)
		return status;
	close(fd);
	if (status == ST_OK)
		status = open_all(in, path, err);
	unlink(path);
	return status;
}

static enum status read_sqlite(struct import *import, struct err *err)
{
	static const struct sqlite_format *const formats[] = {
		&report__sqlite_nsys, &report__sqlite_rocpd, &report__sqlite_rpd};
	struct err own;
	struct import_sqlite in = {.import = import, .err = err_start(err, &own)};
	const struct sqlite_format *format = NULL;

	if (import->input.packed || import->input.size == 0)
		open_copy(&in, in.err);
	else
		open_all(&in, import->input.name, in.err);
	import->counts->bytes = import->input.size;
	for (size_t i = 0; i < ARRAY_LEN(formats) && !format && !err_stuck(in.err); i++) {
		if (formats[i]->recognise(&in))
			format = formats[i];
	}
	if (format) {
		import->source = format->source;
		format->read(&in);
	} else if (!err_stuck(in.err)) {
		err_set(in.err, ST_FORMAT,
			"%s: is a database, but not of Nsight Systems, rocprofv3 or "
			"rocmProfileData",
			import->input.name);
	}
	for (size_t i = 0; i < ARRAY_LEN(in.ahead); i++)
		prof_db_close(in.ahead[i]);
	prof_db_close(in.db);
	map_fini(&in.map);
	mem_free(in.known);
	return in.err->status;
}

const struct import_format report__import_sqlite = {NULL, is_sqlite, read_sqlite};

/* ---- tables ---------------------------------------------------------------------------------- */

bool report__sqlite_has(struct import_sqlite *in, const char *table)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, in->db,
		"SELECT 1 FROM sqlite_schema WHERE name = :name COLLATE NOCASE AND type = 'table'",
		NULL);
	bool found;

	prof_query_text(query, ":name", table);
	found = prof_query_next(query, &status, NULL);
	prof_query_close(query);
	return found;
}

static bool has_column(struct import_sqlite *in, const char *table, const char *column)
{
	struct prof_query *query;
	bool found;

	prof_query_open(&query, in->db,
			"SELECT 1 FROM pragma_table_info(:table) WHERE name = :column "
			"COLLATE NOCASE",
			in->err);
	prof_query_text(query, ":table", table);
	prof_query_text(query, ":column", column);
	found = prof_query_next(query, &in->err->status, in->err);
	prof_query_close(query);
	return found;
}

/* A thread has a connection for itself. */
static struct prof_query *rows_ahead(struct import_sqlite *in, struct prof_db *db, const char *sql)
{
	struct prof_query *query = NULL;
	struct err own;

	if (err_stuck(in->err))
		return NULL;
	if (prof_query_open(&query, db, sql, &own) == ST_OK)
		prof_query_ahead(query, in->err);
	else
		err_set(in->err, own.status, "%s: %s", in->import->input.name, own.text);
	return query;
}

struct prof_query *report__sqlite_rows(struct import_sqlite *in, const char *sql)
{
	return rows_ahead(in, in->ahead[0], sql);
}

struct prof_query *report__sqlite_rows_beside(struct import_sqlite *in, const char *sql)
{
	return rows_ahead(in, in->ahead[1], sql);
}

/* Select @columns of @table, NULL for those that it has not, and the row's number. */
static void add_select(struct import_sqlite *in, struct str *sql, const char *table,
		       const char *const *columns, size_t count)
{
	str_add(sql, "SELECT ");
	for (size_t i = 0; i < count; i++)
		str_addf(sql, has_column(in, table, columns[i]) ? "\"%s\", " : "NULL, ",
			 columns[i]);
	str_addf(sql, "rowid FROM main.\"%s\"", table);
}

/* Open the query @sql by @db, and free its text. */
static struct prof_query *take_rows(struct import_sqlite *in, struct prof_db *db, struct str *sql)
{
	struct prof_query *query;

	if (sql->failed)
		err_nomem(in->err);
	query = rows_ahead(in, db, str_peek(sql));
	str_free(sql);
	return query;
}

struct prof_query *report__sqlite_select(struct import_sqlite *in, const char *table,
					 const char *const *columns, size_t count)
{
	struct str sql = {0};

	if (err_stuck(in->err) || !report__sqlite_has(in, table))
		return NULL;
	add_select(in, &sql, table, columns, count);
	str_add(&sql, " ORDER BY rowid");
	return take_rows(in, in->ahead[0], &sql);
}

static void count_row(struct import_sqlite *in)
{
	if (++in->rows % TELL_ROWS == 0)
		report__import_progress_read(in->import, 0, 0, in->err);
	in->import->counts->events++;
}

bool report__sqlite_next(struct import_sqlite *in, struct prof_query *query)
{
	if (!prof_query_next(query, &in->err->status, in->err))
		return false;
	count_row(in);
	return true;
}

/* SQLite takes longer to read a row than what becomes of it takes, so two threads do it: of every
 * 2,048 numbers of rows one reads the lower half, and one the upper. */
void report__sqlite_each(struct import_sqlite *in, const char *table, const char *const *columns,
			 size_t count, sqlite_row_fn row, void *user)
{
	struct prof_query *halves[2] = {NULL, NULL};
	bool more[2] = {false, false};

	if (err_stuck(in->err) || !report__sqlite_has(in, table))
		return;
	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		struct str sql = {0};

		add_select(in, &sql, table, columns, count);
		str_addf(&sql, " WHERE (rowid >> 10 & 1) IS %s ORDER BY rowid",
			 i == 0 ? "0" : "NOT 0");
		halves[i] = take_rows(in, in->ahead[i], &sql);
	}
	for (size_t i = 0; i < ARRAY_LEN(halves); i++)
		more[i] = halves[i] && prof_query_next(halves[i], &in->err->status, in->err);
	while (!err_stuck(in->err) && (more[0] || more[1])) {
		const bool upper =
			!more[0] || (more[1] && prof_column_int(halves[1], (int)count) <
							prof_column_int(halves[0], (int)count));

		count_row(in);
		row(in, halves[upper], user);
		more[upper] = prof_query_next(halves[upper], &in->err->status, in->err);
	}
	for (size_t i = 0; i < ARRAY_LEN(halves); i++)
		prof_query_close(halves[i]);
}

/* ---- what is known --------------------------------------------------------------------------- */

uint32_t report__sqlite_known(const struct import_sqlite *in, const int64_t key[4])
{
	const struct sqlite_known *known = in->known;
	size_t at;

	MAP_FIND(at, &in->map, map_bytes(MAP_SEED, key, sizeof(known->key)),
		 memcmp(known[at].key, key, sizeof(known->key)) == 0);
	return at == MAP_NONE ? IMPORT_NO_ID : known[at].index;
}

void report__sqlite_remember(struct import_sqlite *in, const int64_t key[4], uint32_t index)
{
	struct sqlite_known *known;

	if (err_stuck(in->err))
		return;
	known = report__import_append(&in->map, map_bytes(MAP_SEED, key, sizeof(known->key)),
				      &in->known, &in->count, &in->capacity, sizeof(*known),
				      in->err);
	if (!known)
		return;
	memcpy(known->key, key, sizeof(known->key));
	known->index = index;
}

uint32_t report__sqlite_track(struct import_sqlite *in, const int64_t key[4],
			      const struct import_track *track)
{
	uint32_t index = IMPORT_NO_ID;

	if (!err_stuck(in->err))
		report__import_track(in->import, track, &index, in->err);
	report__sqlite_remember(in, key, index);
	return index;
}

uint32_t report__sqlite_name(struct import_sqlite *in, const char *category, const char *name)
{
	uint32_t site = IMPORT_NO_ID;

	if (!err_stuck(in->err))
		report__import_name_site(in->import, category, !name ? "" : name, &site, in->err);
	return site;
}

const char *report__sqlite_gpu(struct import_sqlite *in, int64_t gpu)
{
	const char *name = report__import_gpu(in->import, gpu == IPS_NULL ? 0 : gpu);

	if (!name)
		err_nomem(in->err);
	return name;
}

uint32_t report__sqlite_site(struct import_sqlite *in, int number, const char *category, int64_t id)
{
	const int64_t key[4] = {-1, number, id, 0};
	uint32_t site = report__sqlite_known(in, key);
	char *name, *at;

	if (site != IMPORT_NO_ID || err_stuck(in->err))
		return site;
	name = mem_alloc(SQLITE_NAME_SIZE);
	if (!name) {
		err_nomem(in->err);
		return site;
	}
	name[0] = 0;
	if (id != IPS_NULL) {
		struct prof_query *query;
		struct str sql = {0};

		str_addf(&sql, "SELECT \"%s\" FROM main.\"%s\" WHERE id = :id", in->string_column,
			 in->strings);
		if (sql.failed)
			err_nomem(in->err);
		prof_query_open(&query, in->db, str_peek(&sql), in->err);
		prof_query_int(query, ":id", id);
		if (prof_query_next(query, &in->err->status, in->err) && prof_column_text(query, 0))
			str_copy(name, SQLITE_NAME_SIZE, prof_column_text(query, 0));
		prof_query_close(query);
		str_free(&sql);
	}
	/* "cudaLaunchKernel_v7000": the version is that of the first header that declared it. */
	at = strrchr(name, '_');
	if (at && at[1] == 'v' && at[2] != 0 && strspn(at + 2, "0123456789") == strlen(at + 2))
		*at = 0;
	site = report__sqlite_name(in, category, name);
	mem_free(name);
	report__sqlite_remember(in, key, site);
	return site;
}

bool report__sqlite_has_place(struct import_sqlite *in, uint32_t track, uint32_t site,
			      int64_t start)
{
	if (err_stuck(in->err))
		return false;
	if (start == IPS_NULL)
		report__import_left(in->import, REPORT_IMPORT_LEFT_NO_TIME);
	else if (track == IMPORT_NO_ID || site == IMPORT_NO_ID)
		report__import_left(in->import, REPORT_IMPORT_LEFT_TOO_MANY);
	else
		return true;
	in->import->args.used = 0;
	return false;
}

void report__sqlite_span(struct import_sqlite *in, uint32_t track, uint32_t site, int64_t start,
			 int64_t end)
{
	int64_t dur = -1;

	if (end != IPS_NULL && __builtin_sub_overflow(end, start, &dur))
		dur = end < start ? -2 : INT64_MAX; /* counted as negative, as out of range */
	else if (end != IPS_NULL && dur < 0)
		dur = -2;
	report__import_span(in->import, track, site, start, dur, in->err);
}

void report__sqlite_grid(struct ips_kernel *kernel, const struct prof_query *query, int column)
{
	int64_t *const to[] = {&kernel->grid_x,  &kernel->grid_y,  &kernel->grid_z,
			       &kernel->block_x, &kernel->block_y, &kernel->block_z};

	for (int i = 0; i < (int)ARRAY_LEN(to); i++)
		*to[i] = prof_column_int(query, column + i);
}

void report__sqlite_left(struct import_sqlite *in, const char *const *tables, size_t count)
{
	for (size_t i = 0; i < count && !err_stuck(in->err); i++) {
		struct str sql = {0};
		int64_t rows = 0;

		if (!report__sqlite_has(in, tables[i]))
			continue;
		str_addf(&sql, "SELECT count(*) FROM main.\"%s\"", tables[i]);
		if (sql.failed)
			err_nomem(in->err);
		else if (prof_db_number(in->db, str_peek(&sql), &rows, in->err) != ST_OK)
			rows = 0;
		str_free(&sql);
		in->import->counts->events += (uint64_t)rows;
		report__import_left_what(in->import, tables[i], (uint64_t)rows);
	}
}
