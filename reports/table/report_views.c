/*
 * The table of the contract's views.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/table/report_views.h"

#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

/* No ORDER BY: rows are append-only and come in the order they were written. */
#define SELECT(view) "SELECT * FROM " #view

static const struct report_view view_table[] = {
#define VIEW_ROW(view, table, what, from, key_column)                                              \
	{.name = #view,                                                                            \
	 .usage = (what),                                                                          \
	 .sql = SELECT(view),                                                                      \
	 .sql_count = "SELECT count(*) FROM " #table, /* avoids the view\'s joins */               \
	 .sql_from = SELECT(view) from,                                                            \
	 .key = (key_column)},
	REPORT_VIEW_MAP(VIEW_ROW)
#undef VIEW_ROW
};

const struct report_view *report_views(int *count)
{
	*count = (int)ARRAY_LEN(view_table);
	return view_table;
}

const struct report_view *report_view_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(view_table); i++)
		if (!strcmp(view_table[i].name, name))
			return &view_table[i];
	return NULL;
}

enum status report_table_view(struct report_table *out, struct prof_db *db, const char *name,
			      int64_t limit, struct err *err)
{
	const struct report_view *view = report_view_find(name);
	char shown[FMT_SIZE], whole[FMT_SIZE];
	enum status status;
	int64_t count = 0;
	bool more;

	*out = (struct report_table){0};
	if (!view) {
		const char *names[ARRAY_LEN(view_table)], *near;

		for (size_t i = 0; i < ARRAY_LEN(view_table); i++)
			names[i] = view_table[i].name;
		near = str_nearest(name, names, ARRAY_LEN(names));
		if (near)
			return err_set(err, ST_NOTFOUND,
				       "unknown view \"%s\" (did you mean \"%s\"?)", name, near);
		return err_set(err, ST_NOTFOUND, "unknown view \"%s\"", name);
	}
	status = report_table_query_most(out, db, view->name, view->sql, limit, 0, &more, err);
	if (status != ST_OK || !more)
		return status;

	status = prof_db_number(db, view->sql_count, &count, err);
	if (status == ST_OK) {
		out->note = arena_printf(&out->arena, "%s rows of %s",
					 fmt_count(shown, out->row_count), fmt_count(whole, count));
		status = out->note ? ST_OK : err_nomem(err);
	}
	if (status != ST_OK)
		report_table_free(out);
	return status;
}
