/*
 * Statements that users write: what they may access, how long they run and how much memory they
 * allocate. See prof_guard.h.
 *
 * Three barriers, each sufficient to protect the file: the handle is opened read-only, SQLite's
 * defensive settings are on, and an authorizer allows reading only, with allow lists of actions,
 * functions, pragmas and tables. Deny lists would miss features of a newer SQLite.
 *
 * Threading: as the handle's. The bound on memory is SQLite's, for the whole process: it applies
 * while a guarded handle is open. Ownership: the handle owns its guard.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_db_internal.h"
#include "profiler/prof_guard.h"

#define MEMORY_BYTES (INT64_C(128) << 20)
#define STEPS_PER_POLL                                                                             \
	100 /* of SQLite's machine between two calls of `cancelled`; one may take ms */
#define PRAGMA_TABLE "pragma_" /* prefix of a pragma's name as a table-valued function */

/* ---- allow lists, sorted for bsearch() ------------------------------------------------------- */

/* SQLite's functions that read nothing but their arguments. load_extension() is one of SQLite's
 * own, too, and not in the list. */
/* clang-format off */
static const char *const functions[] = {
	"->", "->>", "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg",
	"ceil", "ceiling", "char", "coalesce", "concat", "concat_ws", "cos", "cosh", "count",
	"cume_dist", "current_date", "current_time", "current_timestamp", "date", "datetime",
	"degrees", "dense_rank", "exp", "first_value", "floor", "format", "glob", "group_concat",
	"hex", "if", "ifnull", "iif", "instr", "json", "json_array", "json_array_length",
	"json_each", "json_extract", "json_group_array", "json_group_object", "json_object",
	"json_quote", "json_tree", "json_type", "json_valid", "julianday", "lag", "last_value",
	"lead", "length", "like", "likelihood", "likely", "ln", "log", "log10", "log2", "lower",
	"ltrim", "max", "median", "min", "mod", "nth_value", "ntile", "nullif", "octet_length",
	"percent_rank", "percentile", "percentile_cont", "percentile_disc", "pi", "pow", "power",
	"printf", "quote", "radians", "random", "randomblob", "rank", "replace", "round",
	"row_number", "rtrim", "sign", "sin", "sinh", "soundex", "sqlite_version", "sqrt",
	"strftime", "string_agg", "substr", "substring", "sum", "tan", "tanh", "time", "timediff",
	"total", "trim", "trunc", "typeof", "unhex", "unicode", "unixepoch", "unlikely", "upper",
	"zeroblob",
};
/* clang-format on */

/* Read-only pragmas, by the names of their tables. The argument of the marked ones names the object
 * of the query; an argument of the others would set a value. */
static const struct prof_pragma {
	const char *table;
	bool argument;
} pragmas[] = {
	{PRAGMA_TABLE "application_id", false},  {PRAGMA_TABLE "collation_list", false},
	{PRAGMA_TABLE "compile_options", false}, {PRAGMA_TABLE "database_list", false},
	{PRAGMA_TABLE "encoding", false},        {PRAGMA_TABLE "foreign_key_list", true},
	{PRAGMA_TABLE "freelist_count", false},  {PRAGMA_TABLE "function_list", false},
	{PRAGMA_TABLE "index_info", true},       {PRAGMA_TABLE "index_list", true},
	{PRAGMA_TABLE "index_xinfo", true},      {PRAGMA_TABLE "page_count", false},
	{PRAGMA_TABLE "page_size", false},       {PRAGMA_TABLE "pragma_list", false},
	{PRAGMA_TABLE "schema_version", false},  {PRAGMA_TABLE "table_info", true},
	{PRAGMA_TABLE "table_list", true},       {PRAGMA_TABLE "table_xinfo", true},
	{PRAGMA_TABLE "user_version", false},
};

/* SQLite's built-in tables. A statement may read these, those of the pragmas above and those that
 * the file's schema names, but no table of another module. */
static const char *const library_tables[] = {
	"json_each",     "json_tree",          "sqlite_master",
	"sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema",
};

/* Names of SQLite's actions, for messages. */
static const struct {
	int action;
	const char *name;
} actions[] = {
	{SQLITE_ALTER_TABLE, "ALTER TABLE"},
	{SQLITE_ANALYZE, "ANALYZE"},
	{SQLITE_ATTACH, "ATTACH"},
	{SQLITE_CREATE_INDEX, "CREATE INDEX"},
	{SQLITE_CREATE_TABLE, "CREATE TABLE"},
	{SQLITE_CREATE_TEMP_INDEX, "CREATE TEMP INDEX"},
	{SQLITE_CREATE_TEMP_TABLE, "CREATE TEMP TABLE"},
	{SQLITE_CREATE_TEMP_TRIGGER, "CREATE TEMP TRIGGER"},
	{SQLITE_CREATE_TEMP_VIEW, "CREATE TEMP VIEW"},
	{SQLITE_CREATE_TRIGGER, "CREATE TRIGGER"},
	{SQLITE_CREATE_VIEW, "CREATE VIEW"},
	{SQLITE_CREATE_VTABLE, "CREATE VIRTUAL TABLE"},
	{SQLITE_DELETE, "DELETE"},
	{SQLITE_DETACH, "DETACH"},
	{SQLITE_DROP_INDEX, "DROP INDEX"},
	{SQLITE_DROP_TABLE, "DROP TABLE"},
	{SQLITE_DROP_TEMP_INDEX, "DROP INDEX"},
	{SQLITE_DROP_TEMP_TABLE, "DROP TABLE"},
	{SQLITE_DROP_TEMP_TRIGGER, "DROP TRIGGER"},
	{SQLITE_DROP_TEMP_VIEW, "DROP VIEW"},
	{SQLITE_DROP_TRIGGER, "DROP TRIGGER"},
	{SQLITE_DROP_VIEW, "DROP VIEW"},
	{SQLITE_DROP_VTABLE, "DROP TABLE"},
	{SQLITE_INSERT, "INSERT"},
	{SQLITE_REINDEX, "REINDEX"},
	{SQLITE_SAVEPOINT, "SAVEPOINT"},
	{SQLITE_TRANSACTION, "a transaction"},
	{SQLITE_UPDATE, "UPDATE"},
};

static int name_order(const void *name, const void *entry)
{
	return sqlite3_stricmp(name, *(const char *const *)entry);
}

static const struct prof_pragma *find_pragma(const char *table)
{
	return bsearch(table, pragmas, ARRAY_LEN(pragmas), sizeof(pragmas[0]), name_order);
}

static bool is_pragma_allowed(const char *name, const char *argument)
{
	const struct prof_pragma *found;
	char table[64];

	snprintf(table, sizeof(table), PRAGMA_TABLE "%s", !name ? "" : name);
	found = find_pragma(table);
	return found && (found->argument || !argument);
}

/* A name that is no table, with an empty @column, is a common table expression of the statement:
 * prof_db_guard() has dropped all other modules, but SQLite registers pragma modules on first
 * use. */
static bool is_table_allowed(const struct prof_guard *guard, const char *name, const char *column)
{
	const struct prof_guard_table *found;

	if (!name)
		return false;
	found = guard->table_count == 0 ? NULL
					: bsearch(name, guard->tables, guard->table_count,
						  sizeof(guard->tables[0]), name_order);
	if (found)
		return !found->module;
	if (find_pragma(name) || bsearch(name, library_tables, ARRAY_LEN(library_tables),
					 sizeof(library_tables[0]), name_order))
		return true;
	return column && column[0] == 0 &&
	       sqlite3_strnicmp(name, PRAGMA_TABLE, sizeof(PRAGMA_TABLE) - 1) != 0;
}

/* @table: the table that is changed; every CREATE or DROP changes a table of the schema's own. */
static const char *action_name(int action, const char *table)
{
	if ((action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE) &&
	    table && str_starts_with(table, "sqlite_"))
		return "what is not in the schema";
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		if (actions[i].action == action)
			return actions[i].name;
	}
	return "this";
}

/* The authorizer: for @a and @b see SQLite's documentation of @action. */
static int authorize(void *user, int action, const char *a, const char *b, const char *schema,
		     const char *inside)
{
	struct prof_guard *guard = user;

	(void)schema;
	(void)inside;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_READ:
		if (is_table_allowed(guard, a, b))
			return SQLITE_OK;
		snprintf(guard->denied, sizeof(guard->denied), "the table %s", !a ? "" : a);
		return SQLITE_DENY;
	case SQLITE_FUNCTION:
		if (b &&
		    bsearch(b, functions, ARRAY_LEN(functions), sizeof(functions[0]), name_order))
			return SQLITE_OK;
		snprintf(guard->denied, sizeof(guard->denied), "the function %s()", !b ? "" : b);
		return SQLITE_DENY;
	case SQLITE_PRAGMA:
		if (is_pragma_allowed(a, b))
			return SQLITE_OK;
		snprintf(guard->denied, sizeof(guard->denied), "PRAGMA %s%s", !a ? "" : a,
			 !b ? "" : " = ...");
		return SQLITE_DENY;
	default:
		snprintf(guard->denied, sizeof(guard->denied), "%s", action_name(action, a));
		return SQLITE_DENY;
	}
}

static int is_cancelled(void *user)
{
	const struct prof_guard *guard = user;

	return guard->params.cancelled && guard->params.cancelled(guard->params.user);
}

bool prof__guard_cancelled(const struct prof_db *db)
{
	return db->guard && is_cancelled(db->guard);
}

static int guards; /* atomic: open guarded handles, whose limit on memory applies */

bool prof__guarded(void)
{
	return __atomic_load_n(&guards, __ATOMIC_RELAXED) > 0;
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* No statement of a user needs more. SQLite cannot be interrupted within one step. */
static void set_limits(sqlite3 *handle)
{
	static const struct {
		int id, most;
	} limits[] = {
		{SQLITE_LIMIT_LENGTH, 8 << 20},      {SQLITE_LIMIT_SQL_LENGTH, 100000},
		{SQLITE_LIMIT_COLUMN, 500},          {SQLITE_LIMIT_EXPR_DEPTH, 200},
		{SQLITE_LIMIT_COMPOUND_SELECT, 200}, {SQLITE_LIMIT_VDBE_OP, 250000},
		{SQLITE_LIMIT_ATTACHED, 0},          {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
		{SQLITE_LIMIT_VARIABLE_NUMBER, 100}, {SQLITE_LIMIT_TRIGGER_DEPTH, 10},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		sqlite3_limit(handle, limits[i].id, limits[i].most);
}

/* SQLite declares a built-in table when a statement first names it, which the authorizer would
 * refuse. So declare the allowed ones before the authorizer is set, and drop all other modules. */
static bool declare_library_tables(sqlite3 *handle)
{
	const char *kept[ARRAY_LEN(library_tables) + ARRAY_LEN(pragmas) + 1] = {NULL};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LEN(library_tables); i++)
		kept[count++] = library_tables[i];
	for (size_t i = 0; i < ARRAY_LEN(pragmas); i++)
		kept[count++] = pragmas[i].table;
	for (size_t i = 0; i < count; i++) {
		sqlite3_stmt *statement = NULL;
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT 1 FROM %s", kept[i]);
		/* If this fails, the table cannot be read; nothing else depends on it. */
		sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
		sqlite3_finalize(statement);
	}
	return sqlite3_drop_modules(handle, kept) == SQLITE_OK;
}

static enum status list_tables(struct prof_guard *guard, struct prof_db *db, struct err *err)
{
	static const char sql[] =
		"SELECT name, max(type = 'table' AND rootpage = 0) FROM "
		"(SELECT * FROM sqlite_schema UNION ALL SELECT * FROM sqlite_temp_schema) "
		"WHERE name IS NOT NULL AND type IN ('table', 'view') "
		"GROUP BY name COLLATE NOCASE ORDER BY name COLLATE NOCASE";
	size_t room = 0;
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	while (prof_query_next(query, &status, err)) {
		struct prof_guard_table *table;

		if (guard->table_count == room) {
			room = room == 0 ? 128 : 2 * room;
			table = mem_resize(guard->tables, room, sizeof(*table));
			if (!table) {
				status = err_nomem(err);
				break;
			}
			guard->tables = table;
		}
		table = &guard->tables[guard->table_count];
		table->name = arena_strdup(&guard->names, prof_column_text(query, 0));
		table->module = prof_column_int(query, 1) != 0;
		if (!table->name) {
			status = err_nomem(err);
			break;
		}
		guard->table_count++;
	}
	prof_query_close(query);
	return status;
}

static bool set_options(sqlite3 *handle)
{
	static const struct {
		int option, value;
	} options[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
		{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
		{SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (sqlite3_db_config(handle, options[i].option, options[i].value, NULL) !=
		    SQLITE_OK)
			return false;
	}
	return true;
}

static void free_guard(struct prof_guard *guard)
{
	mem_free(guard->tables);
	arena_fini(&guard->names);
	mem_free(guard);
}

enum status prof_db_guard(struct prof_db *db, const struct prof_guard_params *params,
			  struct err *err)
{
	struct prof_guard *guard = mem_calloc(1, sizeof(*guard));
	enum status status;

	if (!guard)
		return err_nomem(err);
	if (params)
		guard->params = *params;
	if (guard->params.memory_bytes <= 0)
		guard->params.memory_bytes = MEMORY_BYTES;
	status = list_tables(guard, db, err);
	if (status == ST_OK && (!declare_library_tables(db->handle) || !set_options(db->handle) ||
				sqlite3_set_authorizer(db->handle, authorize, guard) != SQLITE_OK))
		status = err_set(err, ST_UNSUPPORTED, "%s: this SQLite cannot be kept from writing",
				 db->path);
	if (status != ST_OK) {
		free_guard(guard);
		return status;
	}
	set_limits(db->handle);
	db->most_rows = 0; /* the user decides how long to wait, and for what */
	sqlite3_progress_handler(db->handle, STEPS_PER_POLL, is_cancelled, guard);
	guard->soft_before = sqlite3_soft_heap_limit64(-1);
	guard->hard_before =
		sqlite3_hard_heap_limit64(sqlite3_memory_used() + guard->params.memory_bytes);
	__atomic_add_fetch(&guards, 1, __ATOMIC_RELAXED);
	db->guard = guard;
	return ST_OK;
}

void prof__guard_free(struct prof_db *db)
{
	if (!db->guard)
		return;
	sqlite3_hard_heap_limit64(db->guard->hard_before);
	sqlite3_soft_heap_limit64(db->guard->soft_before);
	__atomic_sub_fetch(&guards, 1, __ATOMIC_RELAXED);
	free_guard(db->guard);
	db->guard = NULL;
}

int prof_db_error_offset(struct prof_db *db)
{
	return sqlite3_error_offset(db->handle);
}

bool prof_query_is_complete(const char *sql)
{
	return sqlite3_complete(sql) == 1;
}
