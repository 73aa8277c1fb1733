/*
 * SQL functions that compare each place of a text with another text: SQLite cannot be interrupted
 * within a call, and a call on megabytes takes hours. So the calls of every connection are bounded
 * by the product of the two lengths. See prof__calls_bound() in prof_db_internal.h.
 *
 * A function of ours stands before SQLite's own one, which does the work in a connection to an
 * empty database. Threading: as the handle's. Ownership: the handle owns its calls.
 */
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_db_internal.h"

#define MOST_WORK (INT64_C(1) << 26) /* product of two lengths in bytes: a fraction of a second */

/* The lengths are those of the first two arguments. */
static const struct call {
	const char *name;
	int arguments;
	const char *sql;
} calls[] = {
	{"instr", 2, "SELECT instr(?, ?)"},  {"replace", 3, "SELECT replace(?, ?, ?)"},
	{"trim", 2, "SELECT trim(?, ?)"},    {"ltrim", 2, "SELECT ltrim(?, ?)"},
	{"rtrim", 2, "SELECT rtrim(?, ?)"},  {"like", 2, "SELECT like(?, ?)"},
	{"like", 3, "SELECT like(?, ?, ?)"}, {"glob", 2, "SELECT glob(?, ?)"},
	{"unhex", 2, "SELECT unhex(?, ?)"}, /* not of every version */
};

struct prof_calls {
	struct prof_db *db;
	sqlite3 *plain; /* opened at the first call */
	struct prof_bounded {
		struct prof_calls *calls;
		const struct call *call;
		sqlite3_stmt *statement;
	} bounded[ARRAY_LEN(calls)];
};

/* Prepare the call's statement; return SQLite's result. */
static int prepare(struct prof_bounded *bounded)
{
	struct prof_calls *all = bounded->calls;
	int code = SQLITE_OK;

	if (!all->plain) {
		code = sqlite3_open_v2(":memory:", &all->plain,
				       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
		for (int limit = SQLITE_LIMIT_LENGTH;
		     code == SQLITE_OK && limit <= SQLITE_LIMIT_WORKER_THREADS; limit++)
			sqlite3_limit(all->plain, limit, sqlite3_limit(all->db->handle, limit, -1));
	}
	if (code == SQLITE_OK && !bounded->statement)
		code = sqlite3_prepare_v3(all->plain, bounded->call->sql, -1,
					  SQLITE_PREPARE_PERSISTENT, &bounded->statement, NULL);
	return code;
}

static void run(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct prof_bounded *bounded = sqlite3_user_data(context);
	const int64_t first = sqlite3_value_bytes(values[0]);
	const int64_t second = sqlite3_value_bytes(values[1]);
	int code;

	if (prof__guard_cancelled(bounded->calls->db)) {
		sqlite3_result_error_code(context, SQLITE_INTERRUPT);
		return;
	}
	if (first * second > MOST_WORK) {
		char *text =
			sqlite3_mprintf("%s() of texts of %lld and %lld bytes takes too long",
					bounded->call->name, (long long)first, (long long)second);

		if (text)
			sqlite3_result_error(context, text, -1);
		else
			sqlite3_result_error_nomem(context);
		sqlite3_free(text);
		return;
	}
	code = prepare(bounded);
	if (code != SQLITE_OK) {
		sqlite3_result_error_code(context, code);
		return;
	}
	for (int i = 0; code == SQLITE_OK && i < count; i++)
		code = sqlite3_bind_value(bounded->statement, i + 1, values[i]);
	if (code == SQLITE_OK)
		code = sqlite3_step(bounded->statement);
	if (code == SQLITE_ROW)
		sqlite3_result_value(context, sqlite3_column_value(bounded->statement, 0));
	else if ((code & 0xff) == SQLITE_ERROR)
		sqlite3_result_error(context, sqlite3_errmsg(bounded->calls->plain), -1);
	else
		sqlite3_result_error_code(context, code);
	sqlite3_reset(bounded->statement);
	sqlite3_clear_bindings(bounded->statement);
}

int prof__calls_bound(struct prof_db *db)
{
	struct prof_calls *all = mem_calloc(1, sizeof(*all));
	int code = SQLITE_OK;

	if (!all)
		return SQLITE_NOMEM;
	all->db = db;
	db->calls = all;
	for (size_t i = 0; i < ARRAY_LEN(calls) && code == SQLITE_OK; i++) {
		if (strcmp(calls[i].name, "unhex") == 0 && sqlite3_libversion_number() < 3041000)
			continue;
		all->bounded[i].calls = all;
		all->bounded[i].call = &calls[i];
		code = sqlite3_create_function_v2(db->handle, calls[i].name, calls[i].arguments,
						  SQLITE_UTF8 | SQLITE_DETERMINISTIC |
							  SQLITE_INNOCUOUS,
						  &all->bounded[i], run, NULL, NULL, NULL);
	}
	return code;
}

void prof__calls_free(struct prof_db *db)
{
	if (!db->calls)
		return;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		sqlite3_finalize(db->calls->bounded[i].statement);
	sqlite3_close(db->calls->plain);
	mem_free(db->calls);
	db->calls = NULL;
}
