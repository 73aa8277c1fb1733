/*
 * Run statements into tables; and the names for statements, read from the schema once.
 *
 * Threading: the session's worker. Ownership: the caller's table; names in their arena.
 */
#include "viewer/sql/view_sql_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_guard.h"
#include "reports/table/report_views.h"
#include "viewer/draw/view_grid.h"

/* ---- names ----------------------------------------------------------------------------------- */

#define COLUMNS_MOST 128 /* of a view */
#define NAMES_MOST   1024

static const char *const sql_keywords[] = {
	"SELECT",    "FROM",   "WHERE",  "GROUP BY", "ORDER BY", "LIMIT",   "HAVING",  "DISTINCT",
	"JOIN",      "LEFT",   "ON",     "USING",    "AS",       "AND",     "OR",      "NOT",
	"NULL",      "IS",     "IN",     "LIKE",     "GLOB",     "BETWEEN", "CASE",    "WHEN",
	"THEN",      "ELSE",   "END",    "UNION",    "ALL",      "EXCEPT",  "WITH",    "RECURSIVE",
	"INTERSECT", "OVER",   "OFFSET", "DESC",     "ASC",      "CAST",    "EXPLAIN", "QUERY PLAN",
	"PARTITION", "EXISTS", "CROSS",  "VALUES",   "GROUP",    "ORDER",   "BY",      "INTEGER",
	"REAL",      "TEXT"};

static const char *const sql_functions[] = {
	"count(",       "sum(",          "avg(",        "min(",     "max(",   "total(",  "round(",
	"abs(",         "coalesce(",     "ifnull(",     "nullif(",  "iif(",   "length(", "substr(",
	"instr(",       "lower(",        "upper(",      "replace(", "trim(",  "printf(", "typeof(",
	"hex(",         "group_concat(", "row_number(", "rank(",    "lag(",   "lead(",   "ntile(",
	"first_value(", "last_value(",   "sqrt(",       "pow(",     "log10(", "exp(",    "ln(",
	"floor(",       "percent_rank(", "json_each(",  "ceil("};

/* ---- reading the schema ---------------------------------------------------------------------- */

static void sql_read_columns(struct view_sql_names *names, struct view_sql_view *view,
			     struct prof_db *db, struct err *err)
{
	struct prof_query *query =
		view_query_open(db, "SELECT name FROM pragma_table_info(:view) LIMIT 128", err);

	view->columns = view_alloc(&names->arena, COLUMNS_MOST, sizeof(*view->columns), err);
	prof_query_text(query, ":view", view->name);
	while (view->column_count < COLUMNS_MOST && view_query_next(query, err)) {
		const char *name = prof_column_text(query, 0);

		name = arena_strdup(&names->arena, name ? name : "");
		if (!name)
			err_nomem(err);
		else
			view->columns[view->column_count++] = name;
	}
	prof_query_close(query);
}

void view_sql_names_fini(struct view_sql_names *names)
{
	arena_fini(&names->arena);
	memset(names, 0, sizeof(*names));
}

void view_sql_names_load(struct view_sql_names *names, struct prof_db *db, struct err *err)
{
	size_t count;
	const char *const *views = prof_view_names(&count);

	view_sql_names_fini(names);
	names->views = view_alloc(&names->arena, count, sizeof(*names->views), err);
	for (size_t i = 0; i < count && !err_stuck(err); i++) {
		const struct report_view *known = report_view_find(views[i]);

		names->views[i].name = views[i];
		names->views[i].usage = known ? known->usage : "";
		sql_read_columns(names, &names->views[i], db, err);
		names->count++;
	}
	if (err_stuck(err))
		view_sql_names_fini(names);
}

const struct view_sql_view *view_sql_names_find(const struct view_sql_names *names,
						const char *view)
{
	for (int i = 0; i < names->count; i++)
		if (strcasecmp(names->views[i].name, view) == 0)
			return &names->views[i];
	return NULL;
}

/* ---- words of a statement -------------------------------------------------------------------- */

static bool sql_is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool sql_mentions(const char *sql, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = sql; *at;) {
		size_t word = 0;

		while (sql_is_name(at[word]))
			word++;
		if (word == length && strncasecmp(at, name, length) == 0)
			return true;
		at += word ? word : 1;
	}
	return false;
}

bool view_sql_is_word(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_LEN(sql_keywords); i++)
		if (strlen(sql_keywords[i]) == length &&
		    strncasecmp(sql_keywords[i], text, length) == 0)
			return true;
	return false;
}

/* ---- completion ------------------------------------------------------------------------------ */

static void sql_add_offer(struct view_sql_offers *out, const char *word, const char *name)
{
	if (out->count == VIEW_SQL_OFFERS || strncasecmp(word, name, out->length) != 0)
		return;
	for (int i = 0; i < out->count; i++)
		if (strcmp(out->items[i], name) == 0)
			return;
	out->items[out->count++] = name;
}

/* Offer the columns of the views that @sql names (@named), or those of all other views. */
static void sql_add_column_offers(const struct view_sql_names *names, const char *sql, bool named,
				  const char *word, struct view_sql_offers *out)
{
	for (int i = 0; i < names->count; i++) {
		const struct view_sql_view *view = &names->views[i];

		if (sql_mentions(sql, view->name) != named)
			continue;
		for (int c = 0; c < view->column_count; c++)
			sql_add_offer(out, word, view->columns[c]);
	}
}

void view_sql_complete(const struct view_sql_names *names, const char *sql, size_t at,
		       struct view_sql_offers *out)
{
	char word[128];
	bool column;

	memset(out, 0, sizeof(*out));
	while (out->length < at && sql_is_name(sql[at - out->length - 1]))
		out->length++;
	column = out->length < at && sql[at - out->length - 1] == '.';
	if (out->length >= sizeof(word) || (out->length == 0 && !column))
		return;
	memcpy(word, sql + at - out->length, out->length);
	word[out->length] = '\0';
	sql_add_column_offers(names, sql, true, word, out);
	for (int i = 0; i < names->count && !column; i++)
		sql_add_offer(out, word, names->views[i].name);
	for (size_t i = 0; i < ARRAY_LEN(sql_keywords) && !column; i++)
		sql_add_offer(out, word, sql_keywords[i]);
	for (size_t i = 0; i < ARRAY_LEN(sql_functions) && !column; i++)
		sql_add_offer(out, word, sql_functions[i]);
	sql_add_column_offers(names, sql, false, word, out);
}

/* ---- suggestions after errors ---------------------------------------------------------------- */

enum view_named {
	VIEW_NAMED_COLUMN,
	VIEW_NAMED_VIEW,
	VIEW_NAMED_FUNCTION
};

/* Collect names of that kind; columns only of the views that @sql names, if it names any. */
static size_t sql_collect_names(const struct view_sql_names *names, const char *sql,
				enum view_named kind, const char *out[NAMES_MOST])
{
	size_t count = 0;
	bool named = false;

	if (kind == VIEW_NAMED_FUNCTION) {
		memcpy(out, sql_functions, sizeof(sql_functions));
		return ARRAY_LEN(sql_functions);
	}
	for (int i = 0; i < names->count; i++)
		named = named || sql_mentions(sql, names->views[i].name);
	for (int i = 0; i < names->count; i++) {
		const struct view_sql_view *view = &names->views[i];

		if (kind == VIEW_NAMED_VIEW && count < NAMES_MOST)
			out[count++] = view->name;
		if (kind != VIEW_NAMED_COLUMN || (named && !sql_mentions(sql, view->name)))
			continue;
		for (int c = 0; c < view->column_count && count < NAMES_MOST; c++)
			out[count++] = view->columns[c];
	}
	return count;
}

const char *view_sql_nearest(const struct view_sql_names *names, const char *sql,
			     const char *message, char word[128])
{
	static const struct {
		const char *text;
		enum view_named kind;
	} unknown[] = {{"no such column: ", VIEW_NAMED_COLUMN},
		       {"no such table: ", VIEW_NAMED_VIEW},
		       {"no such function: ", VIEW_NAMED_FUNCTION}};
	const char *candidates[NAMES_MOST], *at;

	word[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		if (!str_starts_with(message, unknown[i].text))
			continue;
		at = message + strlen(unknown[i].text);
		if (strrchr(at, '.'))
			at = strrchr(at, '.') + 1;
		str_copy(word, 128, at);
		return str_nearest(word, candidates,
				   sql_collect_names(names, sql, unknown[i].kind, candidates));
	}
	return NULL;
}

/* ---- one report ------------------------------------------------------------------------------ */

static bool sql_cancelled(void *user)
{
	return view_cancelled(user);
}

/* Make column names unique: of SELECT a.x, b.x the second becomes x_2. */
static void sql_make_names_unique(struct report_table *table, struct err *err)
{
	for (int i = table->column_count - 1; i > 0 && !err_stuck(err); i--) {
		int same = 1;

		for (int j = 0; j < i; j++)
			same += strcmp(table->columns[j].name, table->columns[i].name) == 0;
		if (same == 1)
			continue;
		table->columns[i].name =
			arena_printf(&table->arena, "%s_%d", table->columns[i].name, same);
		if (!table->columns[i].name)
			err_nomem(err);
	}
}

static void sql_run_on_report(struct view_sql_answer *out, struct report_table *table,
			      struct view_context *context, const struct view_source *source,
			      const char *sql, struct err *err)
{
	const struct prof_guard_params params = {sql_cancelled, context, 0};
	struct prof_db *db;
	bool more = false;

	if (!err_stuck(err) && !source->db)
		err_set(err, ST_BUSY, "the run is being closed: a moment");
	if (err_stuck(err) || prof_db_open(&db, source->path, err) != ST_OK)
		return;
	if (prof_db_guard(db, &params, err) == ST_OK &&
	    report_table_query_most(table, db, "sql", sql, VIEW_SQL_ROWS, VIEW_SQL_BYTES, &more,
				    err) == ST_OK)
		sql_make_names_unique(table, err);
	if (err->status == ST_INVALID)
		out->offset = prof_db_error_offset(db);
	prof_db_close(db);
	out->more = out->more || more;
}

/* ---- two reports ----------------------------------------------------------------------------- */

/* Return true if a column identifies rows rather than measuring something. */
static bool sql_is_key(const struct report_column *column)
{
	return (column->quantity == REPORT_TEXT || column->quantity == REPORT_NUMBER ||
		view_place_field(column->name)) &&
	       !strchr(column->name, ',');
}

/* The leading columns that are keys in both tables. */
static void sql_join_keys(char out[512], const struct report_table *source,
			  const struct report_table *target)
{
	size_t length = 0;

	out[0] = '\0';
	for (int i = 0; i < source->column_count && i < target->column_count; i++) {
		const char *name = source->columns[i].name;

		if (!sql_is_key(&source->columns[i]) || !sql_is_key(&target->columns[i]) ||
		    length + strlen(name) + 2 > 512)
			break;
		length += (size_t)snprintf(out + length, 512 - length, "%s%s", length ? "," : "",
					   name);
	}
}

/* Insert a column `row` with the row number before the others. */
static void sql_number_rows(struct report_table *table, struct err *err)
{
	const size_t columns = (size_t)table->column_count, rows = (size_t)table->row_count;
	struct report_column *named =
		view_alloc(&table->arena, columns, sizeof(*table->columns), err);
	struct report_cell *cells =
		view_alloc(&table->arena, rows * (columns + 1), sizeof(*table->cells), err);

	if (err_stuck(err))
		return;
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
}

enum status view_sql_run(struct view_sql_answer *out, struct view_context *context, const char *sql,
			 struct err *err)
{
	struct report_table source = {0}, target = {0};
	const uint64_t start = clock_ns();
	struct err own;

	err = err_start(err, &own);
	memset(out, 0, sizeof(*out));
	out->offset = -1;
	sql_run_on_report(out, &source, context, context->source, sql, err);
	if (!err_stuck(err) && !context->target) {
		out->table = source;
		source = (struct report_table){0};
	} else {
		if (context->target)
			sql_run_on_report(out, &target, context, context->target, sql, err);
		if (!err_stuck(err))
			sql_join_keys(out->keys, &source, &target);
		if (!err_stuck(err) && !out->keys[0]) {
			str_copy(out->keys, sizeof(out->keys), "row");
			sql_number_rows(&source, err);
			sql_number_rows(&target, err);
		}
		if (!err_stuck(err))
			view_grid_compare(&out->table, context, &source, &target, out->keys, err);
	}
	report_table_free(&source);
	report_table_free(&target);
	out->took_ns = clock_ns() - start;
	return err->status;
}

/* ---- rows of a place ------------------------------------------------------------------------- */

/* Add a condition on @column. Values of text fields are quoted even if they look like numbers. A
 * pattern ends in "*"; elsewhere it is part of a name, such as a kernel's with its arguments. Of a
 * value that is @cut only the beginning is known. */
static void sql_add_condition(struct str *out, const char *column, const char *value, size_t length,
			      bool cut)
{
	const struct view_place_field *field = view_place_field(column);
	const bool pattern = length > 0 && value[length - 1] == '*';
	char number[64];
	double real;

	if (cut) {
		str_addf(out, "instr(%s, ", column);
		str_add_sql_bytes(out, value, length);
		str_add(out, ") = 1");
		return;
	}
	str_addf(out, "%s %s ", column, pattern ? "GLOB" : "=");
	snprintf(number, sizeof(number), "%.*s", length < sizeof(number) ? (int)length : 0, value);
	if (!pattern && !(field && field->text) && str_to_double(number, &real))
		str_add(out, number);
	else
		str_add_sql_bytes(out, value, length);
}

/* The "=" of a pair that begins at @at, if only a column name precedes it; otherwise NULL. */
static const char *sql_pair_equals(const char *at)
{
	const char *equals = at + strcspn(at, "= ");
	const size_t length = (size_t)(equals - at);

	return *equals == '=' && length > 0 && length < 64 &&
			       strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_") == length
		       ? equals
		       : NULL;
}

static void sql_add_conditions(struct str *out, const char *keys)
{
	/* view_place_text() leaves at most this much, and no part of a character */
	const bool cut = strlen(keys) + 4 >= VIEW_PLACE_NAME;
	const char *word = " WHERE ";
	char column[64];

	for (const char *at = keys + strspn(keys, " "); *at;) {
		const char *equals = sql_pair_equals(at), *end;

		if (!equals)
			return;
		/* A value may contain blanks, so it ends where the next pair begins. */
		for (end = equals + 1; *end; end++)
			if (*end == ' ' && sql_pair_equals(end + strspn(end, " ")))
				break;
		snprintf(column, sizeof(column), "%.*s", (int)(equals - at), at);
		str_add(out, word);
		sql_add_condition(out, column, equals + 1, (size_t)(end - equals - 1),
				  cut && !*end);
		word = " AND ";
		at = end + strspn(end, " ");
	}
}

static const char *sql_known_view(const char *view)
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
	const char *known = sql_known_view(view);
	struct str text = {0};
	enum status status = ST_OK;

	if (!known)
		return err_set(err, ST_NOTFOUND, "there is no view %s", view);
	str_addf(&text, "SELECT * FROM %s", known);
	sql_add_conditions(&text, keys);
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
