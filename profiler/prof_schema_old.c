/*
 * Older files read as new ones. See prof_schema_old.h. On the connection's thread.
 *
 * A name without a schema means the temporary view first, so no query has to know. What the file
 * has decides, not its user_version: a file need not be what it says it is.
 */
#include "profiler/prof_schema_old.h"

#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_sql.h"

#define NO_KEYS                                                                                    \
	"NULL AS rank, NULL AS mode, NULL AS epoch, NULL AS execution, NULL AS weight_update, "    \
	"NULL AS step, NULL AS microbatch, NULL AS replica, "

/* Views since schema 4, and columns since then (@column: one that shows whether they are there). */
static const struct {
	const char *view, *column, *select;
} late[] = {
	{"tensor_tiers", NULL,
	 "SELECT NULL AS queue, NULL AS key, NULL AS kind, NULL AS layer, NULL AS tier, "
	 "NULL AS every, NULL AS keep, " NO_KEYS "NULL AS time_ns, NULL AS why WHERE 0"},
	{"nonfinite_trail", NULL,
	 "SELECT NULL AS position, NULL AS role, NULL AS queue, NULL AS key, NULL AS kind, "
	 "NULL AS layer, NULL AS stage, NULL AS phase, " NO_KEYS
	 "NULL AS time_ns, NULL AS n, NULL AS n_nan, NULL AS n_pos_inf, NULL AS n_neg_inf, "
	 "NULL AS n_zero, NULL AS n_neg, NULL AS n_pos, NULL AS min, NULL AS max, NULL AS mean, "
	 "NULL AS std, NULL AS l1, NULL AS l2, NULL AS abs_min_nonzero, NULL AS abs_max WHERE 0"},
	{"tensors", "activity", "SELECT *, NULL AS activity FROM main.tensors"},
	{"tensor_stats", "inactive",
	 "SELECT *, NULL AS inactive, NULL AS update_ratio, NULL AS n_changed "
	 "FROM main.tensor_stats"},
	{"health_rules", "parameters", "SELECT *, NULL AS parameters FROM main.health_rules"},
};

/* Columns of the file's @view; 0: it has no such view that works. *@found: @column is one. */
static int columns_of(sqlite3 *db, const char *view, const char *column, bool *found)
{
	char sql[96];
	sqlite3_stmt *statement;
	int count;

	*found = false;
	sqlite3_snprintf(sizeof(sql), sql, "SELECT * FROM main.%s", view);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		return 0;
	count = sqlite3_column_count(statement);
	for (int i = 0; i < count && column != NULL; i++) {
		const char *name = sqlite3_column_name(statement, i);

		*found |= name != NULL && strcmp(name, column) == 0;
	}
	sqlite3_finalize(statement);
	return count;
}

enum status prof_schema_complete(sqlite3 *db, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(late); i++) {
		char sql[1024];
		bool found;
		int columns = columns_of(db, late[i].view, late[i].column, &found), code;

		/* There already, or nothing to add the columns to. */
		if (found || (columns == 0) != (late[i].column == NULL))
			continue;
		sqlite3_snprintf(sizeof(sql), sql, "CREATE TEMP VIEW %s AS %s", late[i].view,
				 late[i].select);
		code = sqlite3_exec(db, sql, NULL, NULL, NULL);
		if (code != SQLITE_OK)
			return prof_sql_error(db, code, err, late[i].view);
	}
	return ST_OK;
}
