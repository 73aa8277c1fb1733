/*
 * A report's result in memory: cells copied from one query.
 *
 * Threading: none. Ownership: a table owns its arena, and the arena all cells and texts.
 */
#include "reports/table/report_table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_views.h"

enum status report_table_begin(struct report_table *out, const char *name, int64_t rows,
			       struct err *err)
{
	*out = (struct report_table){.name = name, .room = max(rows, 1)};
	if (arena_init(&out->arena, 0) == 0)
		return ST_OK;
	*out = (struct report_table){0};
	return err_nomem(err);
}

void report_table_put(struct report_table *table, const struct report_value *values, size_t count,
		      struct err *err)
{
	const bool first = !table->columns;
	const size_t had = first ? 0 : (size_t)table->row_count * count;
	struct report_cell *cells = table->cells;

	if (err_stuck(err))
		return;
	if (first) {
		table->column_count = (int)count;
		table->columns = arena_alloc(&table->arena, count, sizeof(*table->columns));
		for (size_t i = 0; i < count && table->columns; i++)
			table->columns[i] = values[i].column;
	}
	assert(count == (size_t)table->column_count);
	if (first || table->row_count == table->room) {
		table->room = first ? table->room : 2 * table->room;
		cells = arena_alloc(&table->arena, (size_t)table->room * count, sizeof(*cells));
		if (cells && had > 0)
			memcpy(cells, table->cells, had * sizeof(*cells));
	}
	if (!table->columns || !cells) {
		err_nomem(err);
		return;
	}
	table->cells = cells;
	cells += had;
	table->row_count++;
	for (size_t i = 0; i < count; i++) {
		cells[i] = values[i].cell;
		cells[i].text = report__copy(&table->arena, values[i].cell.text, err);
	}
}

void report_table_free(struct report_table *table)
{
	arena_fini(&table->arena);
	*table = (struct report_table){0};
}

struct report_cell report_cell_of_text(const char *text)
{
	return (struct report_cell){.type = text ? PROF_TEXT : PROF_NULL, .text = text};
}

struct report_cell report_cell_of_int(int64_t value)
{
	return (struct report_cell){.type = value == IPS_NULL ? PROF_NULL : PROF_INT,
				    .integer = value};
}

struct report_cell report_cell_of_real(double value)
{
	return (struct report_cell){.type = isnan(value) ? PROF_NULL : PROF_REAL, .real = value};
}

/* ---- quantities of columns ------------------------------------------------------------------- */

enum name_match {
	NAME_IS,
	NAME_STARTS,
	NAME_ENDS
};

static const struct {
	const char *text;
	enum name_match match;
	enum report_quantity quantity;
} quantity_rules[] = {
	/* Points in time are shown exactly, so that rows can be distinguished. */
	{"start_ns", NAME_IS, REPORT_COUNT},
	{"time_ns", NAME_IS, REPORT_COUNT},
	{"start_cycle", NAME_IS, REPORT_COUNT},
	{"_ns", NAME_ENDS, REPORT_NS},
	{"share", NAME_IS, REPORT_FRACTION},
	{"_share", NAME_ENDS, REPORT_FRACTION},
	{"efficiency", NAME_ENDS, REPORT_FRACTION},
	{"imbalance", NAME_IS, REPORT_FRACTION},
	{"communication", NAME_IS, REPORT_FRACTION},
	{"ramp_up", NAME_IS, REPORT_FRACTION},
	{"ramp_down", NAME_IS, REPORT_FRACTION},
	{"bytes", NAME_IS, REPORT_BYTES},
	{"_bytes", NAME_ENDS, REPORT_BYTES},
	{"bytes_", NAME_STARTS, REPORT_BYTES},
	{"capacity", NAME_IS, REPORT_BYTES},
	{"data", NAME_IS, REPORT_BYTES},
	{"_per_s", NAME_ENDS, REPORT_COUNT},
	{"_per_cycle", NAME_ENDS, REPORT_COUNT},
	{"cycles", NAME_IS, REPORT_CYCLES},
	{"_cycles", NAME_ENDS, REPORT_CYCLES},
	{"cycles_", NAME_STARTS, REPORT_CYCLES},
	{"_fraction", NAME_ENDS, REPORT_FRACTION},
	{"bubble", NAME_ENDS, REPORT_FRACTION},
	{"bubble_rate", NAME_ENDS, REPORT_FRACTION},
	{"bubble_over_ideal", NAME_ENDS, REPORT_FRACTION},
	{"tile_balance", NAME_ENDS, REPORT_FRACTION},
	{"traced", NAME_IS, REPORT_BOOL},
	{"always_live", NAME_IS, REPORT_BOOL},
	{"oversubscribed", NAME_IS, REPORT_BOOL},
	{"enabled", NAME_IS, REPORT_BOOL},
	{"warm_up", NAME_IS, REPORT_BOOL},
	{"out_of_memory", NAME_IS, REPORT_BOOL},
	{"fullest_tile", NAME_IS, REPORT_NUMBER},
	{"rank", NAME_IS, REPORT_NUMBER},
	{"epoch", NAME_IS, REPORT_NUMBER},
	{"execution", NAME_IS, REPORT_NUMBER},
	{"weight_update", NAME_IS, REPORT_NUMBER},
	{"step", NAME_IS, REPORT_NUMBER},
	{"microbatch", NAME_IS, REPORT_NUMBER},
	{"replica", NAME_IS, REPORT_NUMBER},
	{"ipu", NAME_IS, REPORT_NUMBER},
	{"stage", NAME_IS, REPORT_NUMBER},
	{"pid", NAME_IS, REPORT_NUMBER},
	{"tid", NAME_IS, REPORT_NUMBER},
	{"tile", NAME_IS, REPORT_NUMBER},
	{"depth", NAME_IS, REPORT_NUMBER},
	{"position", NAME_IS, REPORT_NUMBER},
	{"bin", NAME_IS, REPORT_NUMBER},
	{"chunk", NAME_IS, REPORT_NUMBER},
	{"_id", NAME_ENDS, REPORT_NUMBER},
	{"_step", NAME_ENDS, REPORT_NUMBER},
	{"call_target", NAME_IS, REPORT_NUMBER},
};

/* Strip an aggregate function: "sum(s.dur_ns)" has the quantity of dur_ns. count() keeps its
 * name. */
static void strip_aggregate(const char *name, char *out, size_t size)
{
	const char *open = strchr(name, '('), *dot;

	str_copy(out, size, name);
	if (!open || str_starts_with(name, "count("))
		return;
	str_copy(out, size, open + 1);
	out[strcspn(out, ")")] = '\0';
	dot = strrchr(out, '.');
	if (dot)
		memmove(out, dot + 1, strlen(dot + 1) + 1);
}

static bool name_matches(const char *name, const char *text, enum name_match match)
{
	size_t length = strlen(name), tail = strlen(text);

	switch (match) {
	case NAME_IS:
		return strcmp(name, text) == 0;
	case NAME_STARTS:
		return str_starts_with(name, text);
	case NAME_ENDS:
		return length >= tail && !strcmp(name + length - tail, text);
	}
	return false;
}

static enum report_quantity quantity_of_type(enum prof_type type)
{
	static const enum report_quantity quantities[] = {
		[PROF_NULL] = REPORT_TEXT, [PROF_INT] = REPORT_COUNT,  [PROF_REAL] = REPORT_REAL,
		[PROF_TEXT] = REPORT_TEXT, [PROF_BLOB] = REPORT_BYTES,
	};

	return quantities[type];
}

enum report_quantity report__quantity(const char *column, enum prof_type type)
{
	char name[128];

	if (type == PROF_TEXT || type == PROF_BLOB)
		return quantity_of_type(type);
	strip_aggregate(column, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_LEN(quantity_rules); i++)
		if (name_matches(name, quantity_rules[i].text, quantity_rules[i].match))
			return quantity_rules[i].quantity;
	return quantity_of_type(type);
}

/* ---- reading --------------------------------------------------------------------------------- */

void report__columns(const struct prof_query *query, struct arena *arena,
		     struct report_column **out, int *count, struct err *err)
{
	const int columns = prof_column_count(query);

	*count = 0;
	*out = arena_alloc(arena, (size_t)columns, sizeof(**out));
	if (!*out)
		err_nomem(err);
	for (int i = 0; i < columns && !err_stuck(err); i++) {
		const char *name = prof_column_name(query, i);

		(*out)[i].name = report__copy(arena, name, err);
		(*out)[i].quantity = report__quantity(name, PROF_NULL);
	}
	if (!err_stuck(err))
		*count = columns;
}

void report__cell(const struct prof_query *query, int column, struct report_cell *out)
{
	size_t size = 0;

	*out = (struct report_cell){.type = prof_column_type(query, column)};
	switch (out->type) {
	case PROF_NULL:
		break;
	case PROF_INT:
		out->integer = prof_column_int(query, column);
		break;
	case PROF_REAL:
		out->real = prof_column_real(query, column);
		break;
	case PROF_TEXT:
		out->text = prof_column_text(query, column);
		break;
	case PROF_BLOB:
		prof_column_blob(query, column, &size);
		out->type = PROF_INT;
		out->integer = (int64_t)size;
		break;
	}
}

/* Rows while they are read: cells are on the heap because their number is unknown. */
struct table_rows {
	struct report_cell *cells;
	size_t capacity;
	int64_t count;
	size_t most; /* bound of the bytes of cells and texts; 0: unbounded */
};

/* Read all rows; *@more: a bound stopped it. */
static void read_rows(struct report_table *table, struct prof_query *query, int64_t limit,
		      struct table_rows *rows, bool *more, struct err *err)
{
	const size_t columns = (size_t)table->column_count;

	while (prof_query_next(query, &err->status, err)) {
		const size_t at = (size_t)rows->count * columns;

		*more = (limit > 0 && rows->count >= limit) ||
			(rows->most > 0 &&
			 table->arena.total + at * sizeof(*rows->cells) >= rows->most);
		if (*more)
			return;
		if (mem_grow(&rows->cells, &rows->capacity, at + columns, sizeof(*rows->cells))) {
			err_nomem(err);
			return;
		}
		for (int i = 0; i < table->column_count; i++) {
			struct report_cell *cell = &rows->cells[at + (size_t)i];

			report__cell(query, i, cell);
			/* A blob's cell holds its size as an integer. */
			if (prof_column_type(query, i) == PROF_BLOB)
				table->columns[i].quantity = REPORT_BYTES;
			if (cell->type == PROF_TEXT)
				cell->text = report__copy(&table->arena, cell->text, err);
		}
		rows->count++;
	}
}

static void store_rows(struct report_table *table, const struct table_rows *rows, struct err *err)
{
	size_t cells = (size_t)rows->count * (size_t)table->column_count;

	table->row_count = rows->count;
	if (!cells)
		return;
	table->cells = arena_alloc(&table->arena, cells, sizeof(*table->cells));
	if (!table->cells) {
		err_nomem(err);
		return;
	}
	memcpy(table->cells, rows->cells, cells * sizeof(*table->cells));
	/* If a column's name implies no quantity, use the type of its first value. */
	for (int i = 0; i < table->column_count; i++) {
		struct report_column *column = &table->columns[i];

		for (int64_t row = 0; row < table->row_count; row++) {
			const struct report_cell *cell =
				&table->cells[row * table->column_count + i];

			if (cell->type == PROF_NULL)
				continue;
			if (column->quantity == REPORT_BYTES && cell->type == PROF_INT)
				break;
			column->quantity = report__quantity(column->name, cell->type);
			break;
		}
	}
}

enum status report__table_rows(struct report_table *out, struct prof_query *query, const char *name,
			       int64_t limit, size_t most, bool *more, struct err *err)
{
	struct table_rows rows = {.most = most};
	struct err own;

	err = err_start(err, &own);
	*out = (struct report_table){0};
	*more = false;
	if (arena_init(&out->arena, 0)) {
		prof_query_close(query);
		return err_nomem(err);
	}
	out->name = report__copy(&out->arena, name, err);
	report__columns(query, &out->arena, &out->columns, &out->column_count, err);
	read_rows(out, query, limit, &rows, more, err);
	/* Close the query first: it holds a snapshot of the database. */
	prof_query_close(query);
	if (!err_stuck(err))
		store_rows(out, &rows, err);
	mem_free(rows.cells);
	if (err_stuck(err))
		report_table_free(out);
	return err->status;
}

enum status report_table_query_most(struct report_table *out, struct prof_db *db, const char *name,
				    const char *sql, int64_t limit, size_t most, bool *more,
				    struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*out = (struct report_table){0};
	*more = false;
	return status == ST_OK ? report__table_rows(out, query, name, limit, most, more, err)
			       : status;
}

enum status report_table_query(struct report_table *out, struct prof_db *db, const char *name,
			       const char *sql, int64_t limit, struct err *err)
{
	char count[FMT_SIZE];
	bool more;
	enum status status = report_table_query_most(out, db, name, sql, limit, 0, &more, err);

	if (status != ST_OK || !more)
		return status;
	out->note = arena_printf(&out->arena, "the first %s rows; there are more",
				 fmt_count(count, out->row_count));
	if (out->note)
		return ST_OK;
	report_table_free(out);
	return err_nomem(err);
}

const char *report__copy(struct arena *arena, const char *text, struct err *err)
{
	const char *copy = text ? arena_strdup(arena, text) : NULL;

	if (text && !copy)
		err_nomem(err);
	return copy;
}

void report__fact(const char **out, struct arena *arena, struct prof_db *db, const char *key,
		  struct err *err)
{
	struct prof_query *query;

	*out = NULL;
	if (err_stuck(err))
		return;
	prof_query_open(&query, db, "SELECT value FROM meta WHERE key = :key", err);
	prof_query_text(query, ":key", key);
	if (prof_query_next(query, &err->status, err))
		*out = report__copy(arena, prof_column_text(query, 0), err);
	prof_query_close(query);
}
