/*
 * `list`: the names of the reports. Threading: none. Ownership: the table lives for one call.
 */
#include "reports/report_registry.h"

#include "reports/report_table.h"
#include "reports/report_verbs.h"

enum {
	LIST_NAME,
	LIST_SHOWS,
	LIST_COLUMNS
};

static void list_row(struct report_table *table, const char *name, const char *shows)
{
	struct report_cell *row = table->cells + table->row_count * LIST_COLUMNS;

	row[LIST_NAME] = (struct report_cell){.type = PROF_TEXT, .text = name};
	row[LIST_SHOWS] = (struct report_cell){.type = PROF_TEXT, .text = shows};
	table->row_count++;
}

static enum status list_fill(struct report_table *table, struct err *err)
{
	static struct report_column columns[LIST_COLUMNS] = {
		[LIST_NAME] = {"report", REPORT_TEXT},
		[LIST_SHOWS] = {"shows", REPORT_TEXT},
	};
	const struct report_entry *entries;
	const struct report_verb *verbs;
	int entry_count, verb_count;

	entries = report_entries(&entry_count);
	verbs = report_verbs(&verb_count);
	table->name = "list";
	table->columns = columns;
	table->column_count = LIST_COLUMNS;
	table->cells = arena_alloc(&table->arena, (size_t)(entry_count + verb_count) * LIST_COLUMNS,
				   sizeof(*table->cells));
	if (!table->cells)
		return err_nomem(err);
	for (int i = 0; i < entry_count; i++)
		list_row(table, entries[i].name, entries[i].usage);
	for (int i = 0; i < verb_count; i++)
		list_row(table, verbs[i].name, verbs[i].command->summary);
	return ST_OK;
}

enum status report_run_list(const struct report_entry *entry, const struct report_request *request,
			    struct err *err)
{
	struct report_table table = {0};
	enum status status;

	(void)entry;
	if (arena_init(&table.arena, 0))
		return err_nomem(err);
	status = list_fill(&table, err);
	if (status == ST_OK)
		status = report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	return status;
}
