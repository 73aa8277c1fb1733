/*
 * Files whose schema is not word for word that of this version. Later versions add tables, views
 * and columns, and a stranger may put anything under the name of a view that we read. So every view
 * of ours is made anew as a temporary one, which SQLite finds before the file's, and what a table
 * lacks is NULL in a temporary view of its name. The contract forbids other changes. What has the
 * name of a table of ours and is none is refused.
 *
 * On the thread of the handle. The columns of this version are those of its schema in an empty
 * database in memory, which takes milliseconds, so it is made only where the file's schema differs.
 */
#include "profiler/prof_db_internal.h"

#include <string.h>

#include "common/str.h"
#include "profiler/prof_rows.h"
#include "profiler/prof_sql.h"

/* The tables and views: name, definition, definition of a view. */
#define DEFINED                                                                                    \
	"SELECT name, sql, iif(type = 'view', sql, NULL) FROM main.sqlite_schema WHERE type IN "   \
	"('table', 'view') AND name NOT GLOB 'sqlite_*' "                                          \
	"ORDER BY rowid"

/* Find out whether the file's tables and views are defined word for word as in @schema, in the same
 * order. Return SQLite's result. Runs for each database that is opened: memmem(), since strstr()
 * searches for the schema's end each time under the sanitizers. */
static int is_current(sqlite3 *file, const struct str *schema, bool *current)
{
	static const char create[] = "CREATE ";
	const char *at = schema->text, *end = at + schema->length;
	sqlite3_stmt *rows;
	int left = 0, code;

	for (const char *next = at;
	     (next = memmem(next, (size_t)(end - next), create, sizeof(create) - 1)); next++)
		left += str_starts_with(next, "CREATE TABLE ") ||
			str_starts_with(next, "CREATE VIEW ");
	code = sqlite3_prepare_v2(file, DEFINED, -1, &rows, NULL);
	if (code != SQLITE_OK)
		return code;
	while (at && sqlite3_step(rows) == SQLITE_ROW) {
		const char *sql = (const char *)sqlite3_column_text(rows, 1);

		at = sql ? memmem(at, (size_t)(end - at), sql, strlen(sql)) : NULL;
		left--;
	}
	*current = at && left == 0;
	return sqlite3_finalize(rows);
}

/* The columns of table ?1 of this version. */
static const char columns_sql[] = "SELECT json_group_array(name) FROM pragma_table_info(?1)";

/* The statement that makes a view in the place of table ?1 of the file, which should have the
 * columns ?2; no row if it has them. NULL for a table that views of the file read: it was there. */
static const char view_sql[] =
	"SELECT CASE WHEN EXISTS (SELECT 1 FROM pragma_table_info(?1, 'main')) "
	"THEN 'CREATE TEMP VIEW ' || ?1 || ' AS SELECT *, ' || missing || ' FROM main.' || ?1 "
	"WHEN NOT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE instr(sql, ?1)) "
	"THEN 'CREATE TEMP VIEW ' || ?1 || ' AS SELECT ' || missing || ' WHERE 0' END || ';' "
	"FROM (SELECT group_concat('NULL AS \"' || value || '\"', ', ') AS missing "
	"FROM json_each(?2) WHERE value NOT IN (SELECT name FROM pragma_table_info(?1, 'main'))) "
	"WHERE missing IS NOT NULL";

/* @row: of DEFINED, a table. */
static int add_table(struct str *sql, sqlite3_stmt *columns, sqlite3_stmt *view, sqlite3_stmt *row)
{
	int code;

	sqlite3_bind_value(columns, 1, sqlite3_column_value(row, 0));
	sqlite3_bind_value(view, 1, sqlite3_column_value(row, 0));
	code = sqlite3_step(columns);
	if (code == SQLITE_ROW) {
		sqlite3_bind_value(view, 2, sqlite3_column_value(columns, 0));
		code = sqlite3_step(view);
	}
	if (code == SQLITE_ROW && sqlite3_column_type(view, 0) != SQLITE_NULL) {
		const char *text = (const char *)sqlite3_column_text(view, 0);

		if (text)
			str_add(sql, text);
		else
			sql->failed = true;
	}
	sqlite3_reset(columns);
	sqlite3_reset(view);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Refuse what stands in the file under the name of a table of ours but is none: a view, a virtual
 * table, or a table whose columns are computed as they are read. */
static enum status check_table(const struct prof_db *db, sqlite3_stmt *found, sqlite3_stmt *row,
			       struct err *err)
{
	enum status status = ST_OK;
	int code;

	if (sqlite3_column_type(row, 2) != SQLITE_NULL) /* a view */
		return ST_OK;
	sqlite3_bind_value(found, 1, sqlite3_column_value(row, 0));
	code = sqlite3_step(found);
	if (code == SQLITE_ROW)
		status = err_set(err, ST_FORMAT,
				 "%s: damaged: %s is not a table of recorded values but a %s",
				 db->path, (const char *)sqlite3_column_text(row, 0),
				 (const char *)sqlite3_column_text(found, 0));
	else if (code != SQLITE_DONE)
		status = prof_sql_error(db->handle, code, err, db->path);
	sqlite3_reset(found);
	return status;
}

static enum status check_tables(const struct prof_db *db, sqlite3 *own, struct err *err)
{
	static const char found_sql[] =
		"SELECT CASE WHEN type <> 'table' THEN type WHEN rootpage = 0 THEN 'virtual table' "
		"ELSE 'table that computes its columns' END FROM main.sqlite_schema s "
		"WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view') AND (type <> 'table' "
		"OR rootpage = 0 OR EXISTS (SELECT 1 FROM pragma_table_xinfo(s.name, 'main') "
		"WHERE hidden IN (2, 3)))";
	sqlite3_stmt *rows = NULL, *found = NULL;
	enum status status = ST_OK;
	int code = sqlite3_prepare_v2(own, DEFINED, -1, &rows, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db->handle, found_sql, -1, &found, NULL);
	if (code != SQLITE_OK)
		status = prof_sql_error(db->handle, code, err, db->path);
	while (status == ST_OK && (code = sqlite3_step(rows)) == SQLITE_ROW)
		status = check_table(db, found, rows, err);
	if (status == ST_OK && code != SQLITE_DONE)
		status = prof_sql_error(db->handle, code, err, db->path);
	sqlite3_finalize(rows);
	sqlite3_finalize(found);
	return status;
}

/* Append the statements that make all views of @own, and take the place of those of its tables
 * that the file lacks or whose columns it lacks. */
static int add_views(struct str *sql, sqlite3 *file, sqlite3 *own)
{
	sqlite3_stmt *rows = NULL, *columns = NULL, *view = NULL;
	int code = sqlite3_prepare_v2(own, DEFINED, -1, &rows, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(own, columns_sql, -1, &columns, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(file, view_sql, -1, &view, NULL);
	while (code == SQLITE_OK && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *definition = (const char *)sqlite3_column_text(rows, 2);

		code = SQLITE_OK;
		if (definition)
			str_addf(sql, "CREATE TEMP%s;", definition + strlen("CREATE"));
		else if (sqlite3_column_type(rows, 2) == SQLITE_NULL)
			code = add_table(sql, columns, view, rows);
		else
			code = SQLITE_NOMEM;
	}
	sqlite3_finalize(rows);
	sqlite3_finalize(columns);
	sqlite3_finalize(view);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

enum status prof__older_find(struct prof_db *db, struct err *err)
{
	struct str schema = {0}, sql = {0};
	sqlite3 *own = NULL;
	bool current = false;
	enum status status = ST_OK;
	int code;

	prof_schema_text(&schema);
	code = schema.failed ? SQLITE_NOMEM : is_current(db->handle, &schema, &current);
	if (code == SQLITE_OK && !current) {
		code = sqlite3_open(":memory:", &own);
		if (code == SQLITE_OK)
			code = sqlite3_exec(own, str_peek(&schema), NULL, NULL, NULL);
		if (code == SQLITE_OK)
			status = check_tables(db, own, err);
		if (code == SQLITE_OK && status == ST_OK)
			code = add_views(&sql, db->handle, own);
		sqlite3_close(own);
	}
	str_free(&schema);
	if (sql.failed)
		code = SQLITE_NOMEM;
	if (code != SQLITE_OK || status != ST_OK)
		str_free(&sql);
	if (status != ST_OK)
		return status;
	if (code == SQLITE_NOMEM)
		return err_nomem(err);
	db->older_views = sql.text;
	return code == SQLITE_OK ? prof__older_add_views(db, err)
				 : prof_sql_error(db->handle, code, err, db->path);
}

enum status prof__older_add_views(struct prof_db *db, struct err *err)
{
	return db->older_views ? prof_sql_run(db->handle, db->older_views, err) : ST_OK;
}
