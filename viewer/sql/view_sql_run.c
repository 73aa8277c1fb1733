/*
 * Statements to tables.
 *
 * Threading: where screens load. Ownership: see the header.
 */
#include "viewer/sql/view_sql_run.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_grid.h"

/* ---- one report ------------------------------------------------------------------------------ */

static bool view_sql_cancelled(void *user)
{
	return view_cancelled(user);
}

/* SELECT a.x, b.x: the second becomes x_2. */
static enum status view_tell_apart(struct report_table *table, struct err *err)
{
	for (int i = table->column_count - 1; i > 0; i--) {
		int same = 1;

		for (int j = 0; j < i; j++)
			same += strcmp(table->columns[j].name, table->columns[i].name) == 0;
		if (same == 1)
			continue;
		table->columns[i].name =
			arena_printf(&table->arena, "%s_%d", table->columns[i].name, same);
		if (!table->columns[i].name) {
			report_table_free(table);
			return err_nomem(err);
		}
	}
	return ST_OK;
}

static enum status view_ask(struct view_sql_answer *out, struct report_table *table,
			    struct view_context *context, const struct view_source *source,
			    const char *sql, struct err *err)
{
	const struct prof_guard_params params = {view_sql_cancelled, context, 0};
	struct prof_db *db;
	bool more = false;
	enum status status;

	if (!source->db)
		return err_set(err, ST_BUSY, "the run is being closed: a moment");
	status = prof_db_open(&db, source->path, err);
	if (status != ST_OK)
		return status;
	status = prof_db_guard(db, &params, err);
	if (status == ST_OK)
		status = report_table_query_most(table, db, "sql", sql, VIEW_SQL_ROWS,
						 VIEW_SQL_BYTES, &more, err);
	if (status == ST_INVALID)
		out->offset = prof_db_error_offset(db);
	prof_db_close(db);
	out->more = out->more || more;
	return status == ST_OK ? view_tell_apart(table, err) : status;
}

/* ---- two reports ----------------------------------------------------------------------------- */

/* Does a column say which row it is, not how much? */
static bool view_is_key(const struct report_column *column)
{
	return (column->quantity == REPORT_TEXT || column->quantity == REPORT_NUMBER ||
		view_place_field(column->name)) &&
	       !strchr(column->name, ',');
}

/* The first columns, as far as they are keys of both. */
static void view_join_keys(char out[512], const struct report_table *source,
			   const struct report_table *target)
{
	size_t length = 0;

	out[0] = '\0';
	for (int i = 0; i < source->column_count && i < target->column_count; i++) {
		const char *name = source->columns[i].name;

		if (!view_is_key(&source->columns[i]) || !view_is_key(&target->columns[i]) ||
		    length + strlen(name) + 2 > 512)
			break;
		length += (size_t)snprintf(out + length, 512 - length, "%s%s", length ? "," : "",
					   name);
	}
}

/* A column `row` before the others. */
static enum status view_number_rows(struct report_table *table, struct err *err)
{
	const size_t columns = (size_t)table->column_count, rows = (size_t)table->row_count;
	struct report_column *named =
		arena_alloc(&table->arena, columns + 1, sizeof(*table->columns));
	struct report_cell *cells =
		arena_alloc(&table->arena, rows * (columns + 1) + 1, sizeof(*table->cells));

	if (!named || !cells)
		return err_nomem(err);
	named[0] = (struct report_column){"row", REPORT_NUMBER};
	memcpy(named + 1, table->columns, columns * sizeof(*named));
	for (size_t row = 0; row < rows; row++) {
		struct report_cell *cell = &cells[row * (columns + 1)];

		cell->type = PROF_INT;
		cell->integer = (int64_t)row + 1;
		cell->real = (double)row + 1;
		memcpy(cell + 1, table->cells + row * columns, columns * sizeof(*cell));
	}
	table->columns = named;
	table->cells = cells;
	table->column_count++;
	return ST_OK;
}

static enum status view_join(struct view_sql_answer *out, const struct view_context *context,
			     struct report_table *source, struct report_table *target,
			     struct err *err)
{
	enum status status = ST_OK;

	view_join_keys(out->keys, source, target);
	if (!out->keys[0]) {
		str_copy(out->keys, sizeof(out->keys), "row");
		status = view_number_rows(source, err);
		if (status == ST_OK)
			status = view_number_rows(target, err);
	}
	return status == ST_OK
		       ? view_grid_compare(&out->table, context, source, target, out->keys, err)
		       : status;
}

enum status view_sql_run(struct view_sql_answer *out, struct view_context *context, const char *sql,
			 struct err *err)
{
	struct report_table source = {0}, target = {0};
	const uint64_t start = clock_ns();
	enum status status;

	memset(out, 0, sizeof(*out));
	out->offset = -1;
	status = view_ask(out, &source, context, context->source, sql, err);
	if (status == ST_OK && context->target) {
		status = view_ask(out, &target, context, context->target, sql, err);
		if (status == ST_OK)
			status = view_join(out, context, &source, &target, err);
		report_table_free(&source);
		report_table_free(&target);
	} else {
		out->table = source;
	}
	out->took_ns = clock_ns() - start;
	return status;
}

/* ---- rows that a place names ----------------------------------------------------------------- */

/* A value of @column: texts as such, also where they look like numbers. */
static void view_add_condition(struct str *out, const char *column, const char *value,
			       size_t length)
{
	const struct view_place_field *field = view_place_field(column);
	const bool pattern = memchr(value, '*', length) != NULL;
	char number[64];
	double real;

	str_addf(out, "%s %s ", column, pattern ? "GLOB" : "=");
	snprintf(number, sizeof(number), "%.*s", length < sizeof(number) ? (int)length : 0, value);
	if (!pattern && !(field && field->text) && str_to_double(number, &real))
		str_add(out, number);
	else
		str_add_sql_bytes(out, value, length);
}

static bool view_is_column(const char *text, size_t length)
{
	return length > 0 && length < 64 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

/* The "=" of a pair that begins at @at: nothing but a column's name before it. NULL: none. */
static const char *view_pair(const char *at)
{
	const char *equals = at + strcspn(at, "= ");

	return *equals == '=' && view_is_column(at, (size_t)(equals - at)) ? equals : NULL;
}

static void view_add_conditions(struct str *out, const char *keys)
{
	const char *word = " WHERE ";
	char column[64];

	for (const char *at = keys + strspn(keys, " "); *at;) {
		const char *equals = view_pair(at), *end;

		if (!equals)
			return;
		/* A value ends where the next pair begins: it may have blanks. */
		for (end = equals + 1; *end; end++)
			if (*end == ' ' && view_pair(end + strspn(end, " ")))
				break;
		snprintf(column, sizeof(column), "%.*s", (int)(equals - at), at);
		str_add(out, word);
		view_add_condition(out, column, equals + 1, (size_t)(end - equals - 1));
		word = " AND ";
		at = end + strspn(end, " ");
	}
}

static const char *view_known(const char *view)
{
	size_t count;
	const char *const *names = prof_view_names(&count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], view) == 0)
			return names[i];
	return NULL;
}

enum status view_sql_rows_of(char out[VIEW_PLACE_SQL], const char *view, const char *keys,
			     struct err *err)
{
	const char *known = view_known(view);
	struct str text = {0};
	enum status status = ST_OK;

	if (!known)
		return err_set(err, ST_NOTFOUND, "there is no view %s", view);
	str_addf(&text, "SELECT * FROM %s", known);
	view_add_conditions(&text, keys);
	str_add(&text, ";");
	if (text.failed)
		status = err_nomem(err);
	else if (text.length >= VIEW_PLACE_SQL)
		status = err_set(err, ST_LIMIT, "too many keys for a statement");
	else
		str_copy(out, VIEW_PLACE_SQL, str_peek(&text));
	str_free(&text);
	return status;
}
