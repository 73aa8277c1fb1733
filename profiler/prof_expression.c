/*
 * Checks an expression that a user writes as a condition on rows. See prof_guard.h.
 *
 * SQLite parses the expression in an in-memory database whose only table has the given columns and
 * no rows, so no data of a recording is reachable. An authorizer allows those columns and a list of
 * pure functions, none of whose results can be much longer than its arguments: replace() within
 * replace() would grow without bound. An expression has no loop, so the bounds on its length and
 * depth also bound the steps per row.
 *
 * Threading: none. Ownership: the database lives for one call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_guard.h"
#include "profiler/prof_sql.h"

#define EXPRESSION_TABLE "report"
#define EXPRESSION_DEPTH 100
#define EXPRESSION_BYTES 8192

/* Sorted for bsearch(). SQLite treats GLOB, LIKE, -> and ->> as functions. */
/* clang-format off */
static const char *const pure_functions[] = {
	"->", "->>", "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil",
	"ceiling", "coalesce", "cos", "cosh", "degrees", "exp", "floor", "glob", "if", "ifnull",
	"iif", "instr", "json_array_length", "json_extract", "json_type", "json_valid", "length",
	"like", "ln", "log", "log10", "log2", "lower", "ltrim", "max", "min", "mod", "nullif", "pi",
	"pow", "power", "radians", "round", "rtrim", "sign", "sin", "sinh", "sqrt", "substr",
	"substring", "tan", "tanh", "trim", "trunc", "typeof", "unicode", "upper",
};
/* clang-format on */

/* The authorizer's state: the allowed columns, and the name of what it refused. */
struct expression_guard {
	const char *const *columns;
	size_t column_count;
	int selects; /* the first is ours, every other is a subquery */
	char refused[160];
};

static int function_order(const void *name, const void *entry)
{
	return sqlite3_stricmp(name, *(const char *const *)entry);
}

static bool is_column(const struct expression_guard *guard, const char *name)
{
	for (size_t i = 0; i < guard->column_count; i++)
		if (sqlite3_stricmp(guard->columns[i], name) == 0)
			return true;
	return false;
}

/* The authorizer: for @a and @b see SQLite's documentation of @action. */
static int authorize_expression(void *user, int action, const char *a, const char *b,
				const char *schema, const char *inside)
{
	struct expression_guard *guard = user;

	(void)schema;
	(void)inside;
	if (action == SQLITE_SELECT && guard->selects++ == 0)
		return SQLITE_OK;
	/* SQLite asks for the column "" of a table if the statement uses none of its columns. */
	if (action == SQLITE_READ && a && !strcmp(a, EXPRESSION_TABLE) && b &&
	    (!*b || is_column(guard, b)))
		return SQLITE_OK;
	if (action == SQLITE_FUNCTION && b &&
	    bsearch(b, pure_functions, ARRAY_LEN(pure_functions), sizeof(pure_functions[0]),
		    function_order))
		return SQLITE_OK;

	if (action == SQLITE_FUNCTION)
		snprintf(guard->refused, sizeof(guard->refused), "the function %s()", b ? b : "");
	else if (action == SQLITE_READ && a && !strcmp(a, EXPRESSION_TABLE))
		snprintf(guard->refused, sizeof(guard->refused), "the column %s", b ? b : "");
	else if (action == SQLITE_READ)
		snprintf(guard->refused, sizeof(guard->refused), "the table %s", a ? a : "");
	else
		snprintf(guard->refused, sizeof(guard->refused), "a query within it");
	return SQLITE_DENY;
}

/* Open an in-memory database with a table of @guard's columns, which @guard then guards. */
static enum status open_columns(sqlite3 **out, struct expression_guard *guard, struct err *err)
{
	static const struct {
		int id, most;
	} limits[] = {
		{SQLITE_LIMIT_LENGTH, 1 << 20},
		{SQLITE_LIMIT_SQL_LENGTH, EXPRESSION_BYTES},
		{SQLITE_LIMIT_EXPR_DEPTH, EXPRESSION_DEPTH},
		{SQLITE_LIMIT_ATTACHED, 0},
	};
	struct str sql = {0};
	enum status status;
	int code =
		sqlite3_open_v2(":memory:", out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (code != SQLITE_OK)
		return prof_sql_error(*out, code, err, "a database in memory");
	str_add(&sql, "CREATE TABLE " EXPRESSION_TABLE " (");
	for (size_t i = 0; i < guard->column_count; i++) {
		char *name = sqlite3_mprintf("%s\"%w\"", i ? ", " : "", guard->columns[i]);

		sql.failed |= !name;
		str_add(&sql, name ? name : "");
		sqlite3_free(name);
	}
	str_add(&sql, ")");
	status = sql.failed ? err_nomem(err) : prof_sql_run(*out, str_peek(&sql), err);
	str_free(&sql);
	/* "x" is always a column, never a text: a misspelt name must be an error. */
	sqlite3_db_config(*out, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		sqlite3_limit(*out, limits[i].id, limits[i].most);
	sqlite3_set_authorizer(*out, authorize_expression, guard);
	return status;
}

/* Prepare "SELECT 1 ... WHERE @before @text @after". */
static enum status prepare_expression(sqlite3 *handle, struct expression_guard *guard,
				      const char *before, const char *text, const char *after,
				      struct err *err)
{
	sqlite3_stmt *statement = NULL;
	const char *rest = NULL;
	char *sql =
		mem_printf("SELECT 1 FROM " EXPRESSION_TABLE " WHERE %s%s%s", before, text, after);
	enum status status = ST_OK;
	int code;

	if (!sql)
		return err_nomem(err);
	guard->selects = 0;
	guard->refused[0] = '\0';
	code = sqlite3_prepare_v2(handle, sql, -1, &statement, &rest);
	if (guard->refused[0])
		status = err_set(err, ST_INVALID, "%s is not allowed in a condition",
				 guard->refused);
	else if (code == SQLITE_NOMEM)
		status = err_nomem(err);
	else if (code != SQLITE_OK)
		status = err_set(err, ST_INVALID, "%s", sqlite3_errmsg(handle));
	else if (!statement || *rest)
		status = err_set(err, ST_INVALID, "more than one expression");
	else if (sqlite3_bind_parameter_count(statement) > 0)
		status = err_set(err, ST_INVALID, "a parameter is not allowed in a condition");
	sqlite3_finalize(statement);
	mem_free(sql);
	return status;
}

enum status prof_expression_check(const char *text, const char *const *columns, size_t count,
				  struct err *err)
{
	/* Once without parentheses, so that the text cannot close those put around it later, and
	 * once within parentheses, so that it is a single expression. */
	static const char *const around[][2] = {{"", ""}, {"(", ")"}};
	struct expression_guard guard = {.columns = columns, .column_count = count};
	sqlite3 *handle = NULL;
	enum status status = open_columns(&handle, &guard, err);

	for (size_t i = 0; i < ARRAY_LEN(around) && status == ST_OK; i++)
		status = prepare_expression(handle, &guard, around[i][0], text, around[i][1], err);
	sqlite3_close(handle);
	return status;
}
