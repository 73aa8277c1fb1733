/*
 * The registry of named reports, and the reports that are not queries: `list` and `repair`.
 *
 * Threading: constant data only. Ownership: a table lives for one call.
 */
#include "reports/report_registry.h"

#include <errno.h>
#include <string.h>

#include "common/cli.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_repair.h"
#include "reports/named/report_named.h"
#include "reports/report_verbs.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_select.h"
#include "reports/table/report_table.h"
#include "reports/table/report_views.h"

#define NAMES_MAX   256
#define VIEW_PREFIX "view:"

/* Reports implemented as functions, not as one query. */
static const struct report_entry entry_table[] = {
	{"summary", "the run at a glance", REPORT_NEEDS_DB, report_run_summary},
	{"insights", "what is wrong, what would be faster, and what to do", REPORT_NEEDS_DB,
	 report_run_insights},
	{"list", "these names", REPORT_NEEDS_NOTHING, report_run_list},
	{"repair", "finish a file whose writer died", REPORT_NEEDS_PATH, report_run_repair},
};

static const struct report_entry view_entries[] = {
#define ENTRY_ROW(view, table, what, from, key) {#view, (what), REPORT_NEEDS_DB, report_run_view},
	REPORT_VIEW_MAP(ENTRY_ROW)
#undef ENTRY_ROW
};

const struct report_entry *report_entry_at(int at, enum report_group *group)
{
	int named = 0;

	while (report_named_at(named))
		named++;
	*group = REPORT_GROUP_REPORTS;
	if (at < (int)ARRAY_LEN(entry_table))
		return &entry_table[at];
	at -= (int)ARRAY_LEN(entry_table);
	if (at < named)
		return &report_named_at(at)->entry;
	at -= named;
	*group = REPORT_GROUP_VIEWS;
	return at < (int)ARRAY_LEN(view_entries) ? &view_entries[at] : NULL;
}

enum status report_entry_find(const struct report_entry **out, const char *name, struct err *err)
{
	const bool only_views = str_starts_with(name, VIEW_PREFIX);
	const char *word = only_views ? name + strlen(VIEW_PREFIX) : name;
	const char *kind = only_views ? "view" : "report";
	const char *names[NAMES_MAX], *near;
	enum report_group group;
	size_t count = 0;

	for (int i = 0; (*out = report_entry_at(i, &group)); i++) {
		if (only_views && group != REPORT_GROUP_VIEWS)
			continue;
		if (!strcmp((*out)->name, word))
			return ST_OK;
		if (count < NAMES_MAX)
			names[count++] = (*out)->name;
	}
	near = str_nearest(word, names, count);
	if (near)
		return err_set(err, ST_NOTFOUND, "unknown %s \"%s\" (did you mean \"%s\"?)", kind,
			       word, near);
	return err_set(err, ST_NOTFOUND, "unknown %s \"%s\" (`ipu-report list` names them)", kind,
		       word);
}

bool report_entry_selects(const struct report_entry *entry)
{
	return entry->run == report_run_view || entry->run == report_run_named ||
	       entry->run == report_run_insights;
}

enum status report_run_view(const struct report_entry *entry, const struct report_request *request,
			    struct err *err)
{
	const struct report_view *view = report_view_find(entry->name);
	bool unset = request->limit == REPORT_LIMIT_DEFAULT;
	char sentence[REPORT_UNFINISHED_SIZE];
	const char *unfinished;
	struct report_table table;
	enum status status;

	if (request->reevaluate)
		return report_run_reevaluate(request, err);
	if (request->choice.by)
		return err_set(err, ST_INVALID, "--by: `%s` is a view: its rows are as they are",
			       entry->name);
	if (report_choice_selects(&request->choice) || request->choice.sql)
		return report_run_source(
			&(struct report_source){.name = view->name, .sql = view->sql}, request,
			err);
	if (request->render.format != REPORT_AS_TEXT)
		return report_view_stream(view, request->db, &request->render,
					  unset ? 0 : request->limit, request->out, err);

	status = report_table_view(&table, request->db, entry->name,
				   unset ? REPORT_TEXT_LIMIT : request->limit, err);
	if (status != ST_OK)
		return status;
	unfinished = report__unfinished(request->db, sentence);
	if (unfinished)
		table.note = arena_printf(&table.arena, "%s%s%s", table.note ? table.note : "",
					  table.note ? "\n" : "", unfinished);
	if (unfinished && !table.note)
		status = err_nomem(err);
	else
		status = report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	return status;
}

/* ---- `list` ---------------------------------------------------------------------------------- */

static void list_row(struct report_table *table, const char *name, const char *kind,
		     const char *shows, struct err *err)
{
	const struct report_value values[] = {
		{{"report", REPORT_TEXT}, report_cell_of_text(name)},
		{{"kind", REPORT_TEXT}, report_cell_of_text(kind)},
		{{"shows", REPORT_TEXT}, report_cell_of_text(shows)},
	};

	report_table_put(table, values, ARRAY_LEN(values), err);
}

enum status report_run_list(const struct report_entry *list, const struct report_request *request,
			    struct err *err)
{
	static const char *const kinds[] = {
		[REPORT_GROUP_REPORTS] = "report",
		[REPORT_GROUP_VIEWS] = "view",
	};
	const struct report_entry *entry, *meant;
	enum report_group group;
	struct report_table table;
	int verb_count, entries = 0;
	const struct report_verb *verbs = report_verbs(&verb_count);
	struct err own;

	err = err_start(err, &own);
	while (report_entry_at(entries, &group))
		entries++;
	report_table_begin(&table, list->name, entries + verb_count, err);
	for (int i = 0; !err_stuck(err) && (entry = report_entry_at(i, &group)); i++) {
		const char *name = entry->name;

		/* Name under which an entry can be selected: a view shadowed by a report needs its
		 * prefix. */
		if (report_entry_find(&meant, entry->name, NULL) != ST_OK || meant != entry)
			name = arena_printf(&table.arena, "view:%s", entry->name);
		if (!name)
			err_nomem(err);
		list_row(&table, name, kinds[group], entry->usage, err);
	}
	for (int i = 0; i < verb_count; i++)
		list_row(&table, verbs[i].name, "verb", verbs[i].command->summary, err);
	table.note = "A word that is a report's and a view's means the report; `view:NAME` is the "
		     "view of that name.";
	if (!err_stuck(err))
		report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	return err->status;
}

/* ---- `repair` -------------------------------------------------------------------------------- */

enum status report_run_repair(const struct report_entry *entry,
			      const struct report_request *request, struct err *err)
{
	bool done;
	enum status status = prof_repair(request->path, &done, err);

	(void)entry;
	if (status != ST_OK)
		return status;
	cli_print(request->out, "%s: %s\n", request->path,
		  done ? "repaired: the file is complete now" : "complete already, nothing to do");
	if (fflush(request->out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}
