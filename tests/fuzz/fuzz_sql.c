/*
 * What a user types of SQL: a condition of --where, or (after a first byte 1) a statement of the
 * prompt, under the guard.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "profiler/prof_guard.h"
#include "reports/table/report_select.h"
#include "support/damaged_database.h"

#define ROWS_MOST 100

static struct prof_db *guarded(void)
{
	static struct prof_db *db;
	const struct prof_guard_params guard = {.memory_bytes = 8 << 20};
	const char *path = db ? NULL : damaged_database((const uint8_t *)"", 0);

	if (path &&
	    (prof_db_open(&db, path, NULL) != ST_OK || prof_db_guard(db, &guard, NULL) != ST_OK))
		abort();
	return db;
}

static void run_statement(const char *text)
{
	struct prof_query *query;
	struct err err;
	enum status status = prof_query_open(&query, guarded(), text, &err);
	int rows = 0;

	while (rows++ < ROWS_MOST && prof_query_next(query, &status, &err))
		for (int i = 0; i < prof_column_count(query); i++)
			prof_column_text(query, i);
	prof_query_close(query);
}

static void check_condition(const char *text)
{
	static const char *const names[] = {"name", "start_ns", "dur_ns", "share", "step"};
	const struct report_names all = {names, 5};
	struct arena arena;
	struct err err;
	const char *sql;

	if (arena_init(&arena, 0) != 0)
		return;
	report__where(&sql, &all, text, &arena, &err);
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (size > 0 && data[0] == 1)
		run_statement(text + 1);
	else
		check_condition(text);
	free(text);
	return 0;
}
