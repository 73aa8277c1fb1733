/*
 * Launches are linked at the end of a recording: a kernel may be written before the call that
 * launched it, on another track, and one call of a graph starts many. See prof_launch.h.
 */
#include "profiler/prof_launch.h"

#include "profiler/prof_sql.h"

/* Of several calls with one key, such as a driver's within the runtime's, the first one counts. */
static const char link_sql[] =
	"INSERT OR IGNORE INTO launch_rows (span_id, launch_span_id) "
	"SELECT d.span_id, c.span_id FROM (SELECT span_id, launch_key FROM kernel_rows "
	"UNION ALL SELECT span_id, launch_key FROM copy_rows) d "
	"CROSS JOIN call_rows c ON c.launch_key = d.launch_key;"
	"INSERT INTO strings (string_id, value) SELECT max(string_id) + 1, 'launch' FROM strings "
	"HAVING NOT EXISTS (SELECT 1 FROM strings WHERE value = 'launch');"
	"INSERT INTO flow_rows (from_span_id, to_span_id, name_id) "
	"SELECT launch_span_id, span_id, (SELECT min(string_id) FROM strings "
	"WHERE value = 'launch') FROM launch_rows;";

static const char needed_sql[] = "SELECT EXISTS (SELECT 1 FROM call_rows) AND NOT EXISTS (SELECT 1 "
				 "FROM launch_rows)";

enum status prof_launch_link(sqlite3 *db, struct err *err)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db, needed_sql, -1, &statement, NULL);
	bool needed;

	if (code != SQLITE_OK)
		return prof_sql_error(db, code, err, "link launches");
	needed = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == 1;
	sqlite3_finalize(statement);
	if (!needed)
		return ST_OK;
	code = sqlite3_exec(db, "SAVEPOINT launches", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, link_sql, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "RELEASE launches", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		return ST_OK;
	prof_sql_error(db, code, err, "link launches");
	sqlite3_exec(db, "ROLLBACK TO launches; RELEASE launches", NULL, NULL, NULL);
	return err ? err->status : ST_FAILED;
}
