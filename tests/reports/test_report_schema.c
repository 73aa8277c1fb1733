/*
 * docs/schema.md cannot rot: its queries run, and its columns are those of the views.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "reports/table/report_table.h"
#include "reports/table/report_views.h"

#define QUERY_SIZE 8192
#define MAY_BE     "-- may be empty"

enum {
	FULL,
	EMPTY,
	KILLED,
	FILES
};

static char folder[SUPPORT_PATH_SIZE];
static struct prof_db *files[FILES];
static char *document;

static int setup(void **state)
{
	static void (*const write[])(const char *path) = {
		report_sample_write, report_sample_write_empty, report_sample_write_killed};
	char path[SUPPORT_PATH_SIZE + 64];

	(void)state;
	support_tempdir(folder);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d.db", folder, i);
		write[i](path);
		assert_int_equal(prof_db_open(&files[i], path, NULL), ST_OK);
	}
	snprintf(path, sizeof(path), "%s/docs/schema.md", support_source_dir());
	document = support_read_file(path, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++)
		prof_db_close(files[i]);
	free(document);
	support_tempdir_remove(folder);
	return 0;
}

/* The next ```sql block from *@at on, copied to @out; false: no more. */
static bool next_query(const char **at, char out[QUERY_SIZE])
{
	static const char open[] = "```sql\n", close[] = "```";
	const char *start = strstr(*at, open), *end;

	if (!start)
		return false;
	start += strlen(open);
	end = strstr(start, close);
	assert_non_null(end);
	assert_true(end - start < QUERY_SIZE);
	memcpy(out, start, (size_t)(end - start));
	out[end - start] = '\0';
	*at = end + strlen(close);
	return true;
}

static int64_t rows_of(struct prof_db *db, const char *sql)
{
	struct report_table table;
	struct err err = {0};
	int64_t rows;

	if (report_table_query(&table, db, "query", sql, 0, &err) != ST_OK)
		fail_msg("%s\n%s", err.text, sql);
	rows = table.row_count;
	report_table_free(&table);
	return rows;
}

static void test_every_query_runs_and_finds_something(void **state)
{
	const char *at = document;
	char sql[QUERY_SIZE];
	int count = 0;

	(void)state;
	for (; next_query(&at, sql); count++) {
		/* One statement. */
		assert_ptr_equal(strchr(sql, ';'), sql + strlen(sql) - 2);
		if (!rows_of(files[FULL], sql) && !strstr(sql, MAY_BE))
			fail_msg("nothing found by\n%s", sql);
		/* Launches are linked at the end. */
		if (!strstr(sql, "flows"))
			assert_int_equal(rows_of(files[KILLED], sql), rows_of(files[FULL], sql));
		rows_of(files[EMPTY], sql);
	}
	assert_true(count >= 25);
}

static bool is_key(const char *column)
{
	static const char *const keys[] = {"rank",          "mode", "epoch",      "execution",
					   "weight_update", "step", "microbatch", "replica"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(column, keys[i]))
			return true;
	return false;
}

/* The section on @view: from its heading to the next. */
static char *section_of(const char *view)
{
	char heading[128];
	const char *start, *end;
	char *section;

	snprintf(heading, sizeof(heading), "\n### `%s`\n", view);
	start = strstr(document, heading);
	if (!start)
		fail_msg("docs/schema.md has no section on %s", view);
	start += strlen(heading);
	end = strstr(start, "\n##");
	assert_non_null(end);
	section = strndup(start, (size_t)(end - start));
	assert_non_null(section);
	return section;
}

static void test_every_view_and_column_is_documented(void **state)
{
	const struct report_view *views;
	int count;

	(void)state;
	views = report_views(&count);
	for (int i = 0; i < count; i++) {
		char *section = section_of(views[i].name);
		struct report_table table;

		assert_int_equal(report_table_view(&table, files[EMPTY], views[i].name, 1, NULL),
				 ST_OK);
		for (int c = 0; c < table.column_count; c++) {
			char quoted[128];

			snprintf(quoted, sizeof(quoted), "`%s`", table.columns[c].name);
			if (!strstr(section, quoted) &&
			    !(is_key(table.columns[c].name) && strstr(section, "KEYS")))
				fail_msg("%s.%s is not documented", views[i].name,
					 table.columns[c].name);
		}
		report_table_free(&table);
		free(section);
	}
}

/* And nothing else: each `name` in the first cell of a section's table is a column. */
static void test_no_documented_column_is_missing(void **state)
{
	const struct report_view *views;
	int count;

	(void)state;
	views = report_views(&count);
	for (int i = 0; i < count; i++) {
		char *section = section_of(views[i].name), *rest = NULL;
		struct report_table table;

		assert_int_equal(report_table_view(&table, files[EMPTY], views[i].name, 1, NULL),
				 ST_OK);
		for (char *line = strtok_r(section, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			const char *end = strchr(line + 1, '|');

			if (strncmp(line, "| `", 3) != 0 && strncmp(line, "| KEYS", 6) != 0)
				continue;
			assert_non_null(end);
			for (const char *at = strchr(line, '`'); at && at < end;) {
				size_t length = strcspn(at + 1, "`");
				bool found = false;

				for (int c = 0; c < table.column_count; c++)
					found |= strlen(table.columns[c].name) == length &&
						 !strncmp(table.columns[c].name, at + 1, length);
				if (!found)
					fail_msg("%s has no column %.*s", views[i].name,
						 (int)length, at + 1);
				at = strchr(at + length + 2, '`');
			}
		}
		report_table_free(&table);
		free(section);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_query_runs_and_finds_something),
		cmocka_unit_test(test_every_view_and_column_is_documented),
		cmocka_unit_test(test_no_documented_column_is_missing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
