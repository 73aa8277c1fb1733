/*
 * The schema: tables of appended rows and the views that show them as they are, made of the lists
 * of columns; then schema.sql, which is embedded. No threads.
 */
#include "profiler/prof_schema.h"

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_rows.h"
#include "profiler/prof_sql.h"

static const char schema_sql[] = {
#include "prof_schema_text.h"
};

static const char *const definitions[] = {
	[PROF_COLUMN_ID] = "INTEGER PRIMARY KEY",
	[PROF_COLUMN_INT] = "INTEGER",
	[PROF_COLUMN_NEEDED] = "INTEGER NOT NULL",
	[PROF_COLUMN_REAL] = "REAL",
	[PROF_COLUMN_TEXT] = "TEXT",
	[PROF_COLUMN_NAME] = "INTEGER",
	[PROF_COLUMN_MODE] = "TEXT",
	[PROF_COLUMN_KEYS] = "INTEGER",
	[PROF_COLUMN_CONTEXT] = "INTEGER NOT NULL",
	[PROF_COLUMN_RANK] = "INTEGER NOT NULL",
	[PROF_COLUMN_BLOB] = "BLOB",
};

static void add_table(struct str *sql, const struct prof_row_type *type)
{
	const char *before = "";

	str_addf(sql, "CREATE TABLE %s (\n", type->table);
	if (type->columns[0].kind != PROF_COLUMN_ID) {
		str_add(sql, "\trow_id INTEGER PRIMARY KEY");
		before = ",\n";
	}
	for (size_t i = 0; i < type->count; i++, before = ",\n")
		str_addf(sql, "%s\t%s %s", before, type->columns[i].name,
			 definitions[type->columns[i].kind]);
	str_add(sql, ");\n");
	if (!type->view)
		return;
	str_addf(sql, "CREATE VIEW %s AS SELECT", type->view);
	for (size_t i = 0; i < type->count; i++)
		str_addf(sql, "%s %s", i == 0 ? "" : ",", type->columns[i].name);
	str_addf(sql, " FROM %s;\n", type->table);
}

enum status prof_schema_create(sqlite3 *db, struct err *err)
{
	struct str sql = {0};
	enum status status;

	for (size_t i = 0; i < PROF_TABLES; i++) {
		if (i != PROF_TABLE_META) /* a table without row ids: in schema.sql */
			add_table(&sql, &prof_row_types[i]);
	}
	str_add(&sql, schema_sql);
	status = sql.failed ? err_nomem(err) : prof_sql_run(db, str_peek(&sql), err);
	str_free(&sql);
	return status;
}
