/*
 * Tables of spans and arguments as pages. See prof_bulk.h.
 */
#include "profiler/prof_bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "profiler/prof_btree.h"

#define NAMES_KEPT 16 /* of arguments, within one flush */

struct bulk_arg {
	int64_t span_id, name_id;
	size_t index;
};

struct prof_bulk {
	char *path;
	struct prof_btree *spans, *args;
	struct bulk_arg *order;
	size_t capacity;
	struct {
		const char *name;
		int64_t id;
	} names[NAMES_KEPT];
	int64_t last_span, last_name; /* of the arguments in the tree */
	uint32_t span_root, arg_root, pages;
	struct prof_row_text row;
};

/* ---- life ------------------------------------------------------------------------------------ */

enum status prof__bulk_new(struct prof_bulk **out, sqlite3 *db, struct err *err)
{
	struct prof_bulk *bulk;
	enum status status;
	int reserved = -1;

	sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
	if (reserved != 0)
		return ST_OK;
	bulk = mem_calloc(1, sizeof(*bulk));
	*out = bulk;
	if (!bulk)
		return err_nomem(err);
	bulk->path = mem_strdup(sqlite3_db_filename(db, NULL));
	if (!bulk->path)
		return err_nomem(err);
	status = prof_btree_new(&bulk->spans, PROF_BTREE_ROWS, bulk->path, err);
	if (status == ST_OK)
		status = prof_btree_new(&bulk->args, PROF_BTREE_KEYS, bulk->path, err);
	if (status == ST_OK)
		status = prof_sql_run(
			db,
			"CREATE TABLE late_ends (span_id INTEGER PRIMARY KEY, dur_ns INTEGER);"
			"CREATE TABLE late_args (span_id INTEGER, name_id INTEGER, value)",
			err);
	return status;
}

void prof__bulk_free(struct prof_bulk *bulk)
{
	if (!bulk)
		return;
	prof_btree_free(bulk->spans);
	prof_btree_free(bulk->args);
	mem_free(bulk->order);
	mem_free(bulk->path);
	mem_free(bulk);
}

/* ---- spans ----------------------------------------------------------------------------------- */

static int64_t null_if_0(int64_t value)
{
	return value == 0 ? IPS_NULL : value;
}

enum status prof__bulk_spans(struct prof_writer *writer, const struct prof_lane *lane, int64_t base)
{
	struct prof_bulk *bulk = writer->bulk;
	enum status status = ST_OK;

	for (size_t i = 0; i < lane->spans.count && status == ST_OK; i++) {
		const struct prof_span_row *span = &lane->spans.items[i];

		prof_row_begin(&bulk->row);
		prof_row_null(&bulk->row);
		prof_row_int(&bulk->row, lane->track_id);
		prof_row_int(&bulk->row, span->site);
		prof_row_int(&bulk->row, span->start_ns);
		prof_row_int(&bulk->row, span->dur_ns);
		prof_row_int(&bulk->row, null_if_0(span->context));
		prof_row_int(&bulk->row, null_if_0(prof_span_back(span, base + (int64_t)i, base)));
		prof_row_int(&bulk->row, span->depth);
		status = prof_btree_put(bulk->spans, base + (int64_t)i, &bulk->row, &writer->err);
	}
	return status;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_before(const struct bulk_arg *a, int64_t span_id, int64_t name_id)
{
	return a->span_id != span_id ? a->span_id < span_id : a->name_id < name_id;
}

static int by_place(const void *a, const void *b)
{
	const struct bulk_arg *x = a, *y = b;

	if (x->span_id == y->span_id && x->name_id == y->name_id)
		return x->index < y->index ? -1 : x->index > y->index;
	return is_before(x, y->span_id, y->name_id) ? -1 : 1;
}

/* Arguments of neighbours have the same few names, which are constants. */
static enum status name_of(struct prof_writer *writer, const char *name, int64_t *id)
{
	const size_t i = (uintptr_t)name % NAMES_KEPT;
	struct prof_bulk *bulk = writer->bulk;
	enum status status = ST_OK;

	if (bulk->names[i].name != name) {
		status = prof__writer_text(writer, name, &bulk->names[i].id);
		bulk->names[i].name = status == ST_OK ? name : NULL;
	}
	*id = bulk->names[i].id;
	return status;
}

/* The order that the table wants, of what usually has it nearly. */
static enum status set_order(struct prof_writer *writer, const struct prof_lane *lane, int64_t base)
{
	struct prof_bulk *bulk = writer->bulk;
	enum status status = ST_OK;
	bool sorted = true;

	if (mem_grow(&bulk->order, &bulk->capacity, lane->args.count, sizeof(*bulk->order)) != 0)
		return err_nomem(&writer->err);
	memset(bulk->names, 0, sizeof(bulk->names));
	for (size_t i = 0; i < lane->args.count && status == ST_OK; i++) {
		struct bulk_arg *arg = &bulk->order[i];

		arg->span_id = prof_span_id(lane->args.items[i].span, base);
		arg->index = i;
		status = name_of(writer, lane->args.items[i].name, &arg->name_id);
		sorted = sorted && (i == 0 || by_place(arg - 1, arg) < 0);
	}
	if (status == ST_OK && !sorted)
		qsort(bulk->order, lane->args.count, sizeof(*bulk->order), by_place);
	return status;
}

/* False: too long for the tree. */
static bool fill_row(struct prof_row_text *row, const struct bulk_arg *place,
		     const struct prof_arg *arg)
{
	const char *text = prof_arg_text(arg);
	double real;

	prof_row_begin(row);
	prof_row_int(row, place->span_id);
	prof_row_int(row, place->name_id);
	if (arg->type == PROF_ARG_INT) {
		prof_row_int(row, (int64_t)arg->bits);
	} else if (arg->type == PROF_ARG_REAL) {
		memcpy(&real, &arg->bits, sizeof(real));
		prof_row_real(row, real);
	} else if (!text) {
		prof_row_null(row);
	} else {
		return prof_row_bytes(row, text, strlen(text));
	}
	return true;
}

static enum status put_arg(struct prof_writer *writer, const struct bulk_arg *place,
			   const struct prof_arg *arg)
{
	struct prof_bulk *bulk = writer->bulk;
	const struct bulk_arg last = {bulk->last_span, bulk->last_name, 0};

	if (!is_before(&last, place->span_id, place->name_id) || !fill_row(&bulk->row, place, arg))
		return prof__insert_arg(writer, arg, place->span_id, place->name_id);
	bulk->last_span = place->span_id;
	bulk->last_name = place->name_id;
	return prof_btree_put(bulk->args, 0, &bulk->row, &writer->err);
}

enum status prof__bulk_args(struct prof_writer *writer, const struct prof_lane *lane, int64_t base)
{
	const struct bulk_arg *order;
	enum status status;

	if (lane->args.count == 0)
		return ST_OK;
	status = set_order(writer, lane, base);
	order = writer->bulk->order;
	for (size_t i = 0; i < lane->args.count && status == ST_OK; i++) {
		/* Of those given twice, the later stays. */
		if (i + 1 < lane->args.count && order[i].span_id == order[i + 1].span_id &&
		    order[i].name_id == order[i + 1].name_id)
			continue;
		status = put_arg(writer, &order[i], &lane->args.items[order[i].index]);
	}
	return status;
}

/* ---- joining --------------------------------------------------------------------------------- */

static enum status number_of(sqlite3 *db, const char *sql, uint32_t *out, struct err *err)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		*out = (uint32_t)sqlite3_column_int64(statement, 0);
		code = SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return code == SQLITE_OK ? ST_OK : prof_sql_error(db, code, err, "find tables");
}

enum status prof__bulk_locate(struct prof_bulk *bulk, sqlite3 *db, struct err *err)
{
	enum status status = number_of(
		db,
		"SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = 'span_rows'",
		&bulk->span_root, err);

	if (status == ST_OK)
		status = number_of(db,
				   "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND "
				   "name = 'span_arg_rows'",
				   &bulk->arg_root, err);
	return status == ST_OK ? number_of(db, "PRAGMA page_count", &bulk->pages, err) : status;
}

enum status prof__bulk_join(struct prof_bulk *bulk, struct err *err)
{
	int fd = open(bulk->path, O_RDWR | O_CLOEXEC);
	enum status status = ST_OK;

	if (fd < 0)
		return err_set(err, ST_IO, "%s: cannot open: %s", bulk->path, strerror(errno));
	status = prof_btree_join(bulk->spans, fd, bulk->span_root, &bulk->pages, err);
	if (status == ST_OK)
		status = prof_btree_join(bulk->args, fd, bulk->arg_root, &bulk->pages, err);
	if (status == ST_OK)
		status = prof_btree_set_pages(fd, bulk->pages, err);
	close(fd);
	return status;
}

enum status prof__bulk_settle(sqlite3 *db, struct err *err)
{
	return prof_sql_run(db,
			    "BEGIN;"
			    "UPDATE span_rows SET dur_ns = (SELECT l.dur_ns FROM late_ends l "
			    "WHERE l.span_id = span_rows.span_id) WHERE span_id IN (SELECT span_id "
			    "FROM late_ends);"
			    "INSERT OR REPLACE INTO span_arg_rows (span_id, name_id, value) "
			    "SELECT span_id, name_id, value FROM late_args ORDER BY rowid;"
			    "DROP TABLE late_ends; DROP TABLE late_args; COMMIT",
			    err);
}
