/*
 * docs/schema.md: the sections on views that show a table as it is are made of the lists of
 * columns. UPDATE_GOLDEN=1 writes them.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "profiler/prof_rows.h"

#define TABLE_HEAD "| column | is |\n|---|---|\n"

/* Neighbours that are the same share a line. */
static void add_columns(struct str *page, const struct prof_row_type *type)
{
	str_add(page, TABLE_HEAD);
	for (size_t i = 0; i < type->count; i++) {
		const struct prof_column *column = &type->columns[i];
		const bool again = i > 0 && strcmp(column->about, column[-1].about) == 0;
		const bool ends =
			i + 1 == type->count || strcmp(column->about, column[1].about) != 0;

		assert_true(column->about[0] != '\0');
		str_addf(page, "%s`%s`", again ? ", " : "| ", column->name);
		if (ends)
			str_addf(page, " | %s |\n", column->about);
	}
}

static void test_sections_on_tables_are_made_of_their_columns(void **state)
{
	char path[SUPPORT_PATH_SIZE + 32], *document;
	struct str page = {0};
	const char *at;
	int views = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/docs/schema.md", support_source_dir());
	document = support_read_file(path, NULL);
	at = document;
	while (*at != '\0') {
		const char *table = strstr(at, TABLE_HEAD), *end;
		const struct prof_row_type *type = NULL;

		if (!table) {
			str_add(&page, at);
			break;
		}
		for (size_t i = 0; i < PROF_TABLES; i++) {
			char heading[128];
			const char *section;

			if (!prof_row_types[i].view)
				continue;
			snprintf(heading, sizeof(heading), "\n### `%s`\n", prof_row_types[i].view);
			section = strstr(at, heading);
			if (section && section < table)
				type = &prof_row_types[i];
		}
		end = strstr(table, "|\n\n");
		assert_non_null(end);
		end += 2;
		str_add_bytes(&page, at, (size_t)(table - at));
		if (type)
			add_columns(&page, type);
		else
			str_add_bytes(&page, table, (size_t)(end - table));
		views += type != NULL;
		at = end;
	}
	assert_false(page.failed);
	assert_int_equal(views, 11);
	if (getenv("UPDATE_GOLDEN"))
		support_write_file(path, str_peek(&page), page.length);
	else if (strcmp(str_peek(&page), document) != 0)
		fail_msg("docs/schema.md: its sections are not those of the lists of columns in "
			 "ipuscope/profiler.h (UPDATE_GOLDEN=1 writes them)");
	str_free(&page);
	free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections_on_tables_are_made_of_their_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
