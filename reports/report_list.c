/*
 * `list`: the names of the reports. Threading: none. Ownership: the table lives for one call.
 */
#include "reports/report_registry.h"

#include <string.h>

#include "reports/table/report_table.h"
#include "reports/report_verbs.h"

enum {
	LIST_NAME,
	LIST_KIND,
	LIST_SHOWS,
	LIST_COLUMNS
};

static void list_row(struct report_table *table, const char *name, const char *kind,
		     const char *shows)
{
	struct report_cell *row = table->cells + table->row_count * LIST_COLUMNS;

	row[LIST_NAME] = (struct report_cell){.type = PROF_TEXT, .text = name};
	row[LIST_KIND] = (struct report_cell){.type = PROF_TEXT, .text = kind};
	row[LIST_SHOWS] = (struct report_cell){.type = PROF_TEXT, .text = shows};
	table->row_count++;
}

/* A view whose word a report has is reached by another. */
static const char *list_name(struct report_table *table, const struct report_entry *entry)
{
	const struct report_entry *meant;

	if (report_entry_find(&meant, entry->name, NULL) == ST_OK && meant == entry)
		return entry->name;
	return arena_printf(&table->arena, "view:%s", entry->name);
}

static enum status list_fill(struct report_table *table, struct err *err)
{
	static const char *const kinds[] = {
		[REPORT_GROUP_REPORTS] = "report",
		[REPORT_GROUP_VIEWS] = "view",
	};
	static struct report_column columns[LIST_COLUMNS] = {
		[LIST_NAME] = {"report", REPORT_TEXT},
		[LIST_KIND] = {"kind", REPORT_TEXT},
		[LIST_SHOWS] = {"shows", REPORT_TEXT},
	};
	const struct report_entry *entry;
	enum report_group group;
	int verb_count, entries = 0;
	const struct report_verb *verbs = report_verbs(&verb_count);

	while (report_entry_at(entries, &group))
		entries++;
	table->name = "list";
	table->columns = columns;
	table->column_count = LIST_COLUMNS;
	table->cells = arena_alloc(&table->arena, (size_t)(entries + verb_count) * LIST_COLUMNS,
				   sizeof(*table->cells));
	if (!table->cells)
		return err_nomem(err);
	for (int i = 0; (entry = report_entry_at(i, &group)); i++) {
		const char *name = list_name(table, entry);

		if (!name)
			return err_nomem(err);
		list_row(table, name, kinds[group], entry->usage);
	}
	for (int i = 0; i < verb_count; i++)
		list_row(table, verbs[i].name, "verb", verbs[i].command->summary);
	table->note = "A word that is a report's and a view's means the report; `view:NAME` is the "
		      "view of that name.";
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
