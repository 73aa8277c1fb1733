/*
 * The array of named reports. Threading: constant data only. Ownership: literals.
 */
#include "reports/report_registry.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_internal.h"
#include "reports/named/report_named.h"
#include "reports/table/report_select.h"
#include "reports/table/report_table.h"
#include "reports/table/report_views.h"

#define NAMES_MAX   256
#define VIEW_PREFIX "view:"

/* Reports that are programs of their own. */
static const struct report_entry entry_table[] = {
	{"summary", "the run at a glance", REPORT_NEEDS_DB, report_run_summary},
	{"insights", "what is wrong, what would be faster, and what to do", REPORT_NEEDS_DB,
	 report_run_insights},
	{"list", "these names", REPORT_NEEDS_NOTHING, report_run_list},
	{"repair", "finish a file whose writer died", REPORT_NEEDS_PATH, report_run_repair},
};

/* Reports that are a query each. */
static const struct report_named *const named_table[] = {
	&report_named_runs,          &report_named_metrics,    &report_named_stages,
	&report_named_bubbles,       &report_named_time_split, &report_named_layers,
	&report_named_operations,    &report_named_programs,   &report_named_execution_trace,
	&report_named_memory,        &report_named_liveness,   &report_named_tensors,
	&report_named_tensor_epochs, &report_named_health,     &report_named_overhead,
};

static const struct report_entry view_entries[] = {
#define ENTRY_ROW(view, table, what, from, key) {#view, (what), REPORT_NEEDS_DB, report_run_view},
	REPORT_VIEW_MAP(ENTRY_ROW)
#undef ENTRY_ROW
};

enum {
	ENTRIES = ARRAY_LEN(entry_table),
	NAMED = ARRAY_LEN(named_table),
	VIEWS = ARRAY_LEN(view_entries)
};
_Static_assert(ENTRIES + NAMED + 2 * VIEWS <= NAMES_MAX, "too many names to suggest from");

const struct report_entry *report_entry_at(int at, enum report_group *group)
{
	*group = at < ENTRIES + NAMED ? REPORT_GROUP_REPORTS : REPORT_GROUP_VIEWS;
	if (at < ENTRIES)
		return &entry_table[at];
	at -= ENTRIES;
	if (at < NAMED)
		return &named_table[at]->entry;
	at -= NAMED;
	return at < VIEWS ? &view_entries[at] : NULL;
}

static enum status entry_unknown(const char *name, bool only_views, struct err *err)
{
	const char *names[NAMES_MAX], *near;
	const char *kind = only_views ? "view" : "report";
	const struct report_entry *entry;
	enum report_group group;
	size_t count = 0;

	for (int i = 0; (entry = report_entry_at(i, &group)); i++)
		if (!only_views || group == REPORT_GROUP_VIEWS)
			names[count++] = entry->name;
	near = str_nearest(name, names, count);
	if (near)
		return err_set(err, ST_NOTFOUND, "unknown %s \"%s\" (did you mean \"%s\"?)", kind,
			       name, near);
	return err_set(err, ST_NOTFOUND, "unknown %s \"%s\" (`ipu-report list` names them)", kind,
		       name);
}

enum status report_entry_find(const struct report_entry **out, const char *name, struct err *err)
{
	const bool only_views = str_starts_with(name, VIEW_PREFIX);
	const char *word = only_views ? name + strlen(VIEW_PREFIX) : name;
	enum report_group group;

	for (int i = 0; (*out = report_entry_at(i, &group)); i++)
		if (!strcmp((*out)->name, word) && (!only_views || group == REPORT_GROUP_VIEWS))
			return ST_OK;
	return entry_unknown(word, only_views, err);
}

bool report_entry_selects(const struct report_entry *entry)
{
	return entry->run == report_run_view || entry->run == report_run_named ||
	       entry->run == report_run_insights;
}

enum status report_run_source(const struct report_source *source,
			      const struct report_request *request, struct err *err)
{
	const bool as_text = request->render.format == REPORT_AS_TEXT;
	int64_t limit = request->limit;

	if (request->choice.sql)
		return report_select_print(source, &request->choice, request->db, as_text,
					   limit == REPORT_LIMIT_DEFAULT ? 0 : limit, request->out,
					   err);
	if (limit == REPORT_LIMIT_DEFAULT)
		limit = as_text ? REPORT_TEXT_LIMIT : 0;
	return report_select_write(source, &request->choice, request->db, &request->render, limit,
				   request->out, err);
}

static enum status view_note(struct report_table *table, struct prof_db *db, struct err *err)
{
	char sentence[REPORT_UNFINISHED_SIZE];
	const char *unfinished = report__unfinished(db, sentence);

	if (!unfinished)
		return ST_OK;
	table->note = arena_printf(&table->arena, "%s%s%s", table->note ? table->note : "",
				   table->note ? "\n" : "", unfinished);
	return table->note ? ST_OK : err_nomem(err);
}

enum status report_run_view(const struct report_entry *entry, const struct report_request *request,
			    struct err *err)
{
	const struct report_view *view = report_view_find(entry->name);
	bool unset = request->limit == REPORT_LIMIT_DEFAULT;
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
	status = view_note(&table, request->db, err);
	if (status == ST_OK)
		status = report_render(&table, &request->render, request->out, err);
	report_table_free(&table);
	return status;
}
