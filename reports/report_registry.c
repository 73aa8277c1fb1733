/*
 * The array of named reports. Threading: constant data only. Ownership: literals.
 */
#include "reports/report_registry.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/report_table.h"
#include "reports/report_views.h"

static const struct report_entry entry_table[] = {
	{"summary", "the run at a glance", REPORT_NEEDS_DB, report_run_summary},
	{"list", "these names", REPORT_NEEDS_NOTHING, report_run_list},
	{"repair", "finish a file whose writer died", REPORT_NEEDS_PATH, report_run_repair},
#define ENTRY_ROW(view, table, what, from, key) {#view, (what), REPORT_NEEDS_DB, report_run_view},
	REPORT_VIEW_MAP(ENTRY_ROW)
#undef ENTRY_ROW
};

const struct report_entry *report_entries(int *count)
{
	*count = (int)ARRAY_LEN(entry_table);
	return entry_table;
}

enum status report_entry_find(const struct report_entry **out, const char *name, struct err *err)
{
	const char *names[ARRAY_LEN(entry_table)], *near;

	*out = NULL;
	for (size_t i = 0; i < ARRAY_LEN(entry_table); i++) {
		names[i] = entry_table[i].name;
		if (!strcmp(names[i], name)) {
			*out = &entry_table[i];
			return ST_OK;
		}
	}
	near = str_nearest(name, names, ARRAY_LEN(names));
	if (near)
		return err_set(err, ST_NOTFOUND, "unknown report \"%s\" (did you mean \"%s\"?)",
			       name, near);
	return err_set(err, ST_NOTFOUND, "unknown report \"%s\" (`ipu-report list` names them)",
		       name);
}

enum status report_run_view(const struct report_entry *entry, const struct report_request *request,
			    struct err *err)
{
	bool unset = request->limit == REPORT_LIMIT_DEFAULT;
	struct report_table table;
	enum status status;

	if (request->reevaluate != NULL)
		return report_run_reevaluate(request, err);
	if (request->render.format != REPORT_AS_TEXT)
		return report_view_stream(report_view_find(entry->name), request->db,
					  &request->render, unset ? 0 : request->limit,
					  request->out, err);

	status = report_table_view(&table, request->db, entry->name,
				   unset ? REPORT_TEXT_LIMIT : request->limit, err);
	if (status != ST_OK)
		return status;
	status = report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	return status;
}
