/*
 * The timeline's filter: which spans are shown, by name and category.
 *
 * Both are a call site's, so sites are judged, each once, and no span is looked at: what the filter
 * leaves out stays where it is, as a thin line under what it lets through, and idle time is that of
 * all spans. A bucket of many spans goes by the site with most of its time.
 *
 * Threading: one thread. Ownership: the expression and the condition are the timeline's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"

#define MOST_SITES 200 /* that a statement names */

static bool view_is_no(const struct view_filter *filter)
{
	return filter->text[0] == '!';
}

static bool view_matches(const struct view_filter *filter, const char *text)
{
	return text && regexec(&filter->expression, text, 0, NULL, 0) == 0;
}

/* Does the filter leave out what has this name and category? */
static bool view_leaves_out(const struct view_filter *filter, const char *category,
			    const char *name)
{
	return filter->active &&
	       (view_matches(filter, name) || view_matches(filter, category)) == view_is_no(filter);
}

void view__judge_site(const struct view_timeline *tl, struct view_site *site)
{
	site->left_out = view_leaves_out(&tl->filter, site->category, site->name);
}

bool view__left_out(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site;

	if (!tl->filter.active)
		return false;
	site = view__site(tl, bar->site_id);
	return site ? site->left_out : !view_is_no(&tl->filter);
}

void view__filter_free(struct view_timeline *tl)
{
	if (tl->filter.active)
		regfree(&tl->filter.expression);
	tl->filter.active = false;
	str_free(&tl->filter.condition);
}

static void view_set_filter(struct view_timeline *tl, const char *text)
{
	struct view_filter *filter = &tl->filter;
	const char *expression;

	view__filter_free(tl);
	str_copy(filter->text, sizeof(filter->text), text);
	filter->trouble[0] = '\0';
	filter->stale = true;
	expression = filter->text + view_is_no(filter);
	if (*expression) {
		const int error = regcomp(&filter->expression, expression,
					  REG_EXTENDED | REG_ICASE | REG_NOSUB);

		filter->active = error == 0;
		if (error)
			regerror(error, &filter->expression, filter->trouble,
				 sizeof(filter->trouble));
	}
	for (size_t i = 0; i < tl->site_count; i++)
		view__judge_site(tl, &tl->sites[i]);
	tl->overview_lane = IPS_NULL;
	tl->sums.known = false;
}

void view__timeline_filter(void *state, const char *text)
{
	struct view_timeline *tl = state;

	view_set_filter(tl, text);
	if (tl->target)
		view_set_filter(tl->target, text);
}

/* ---- the statement's condition --------------------------------------------------------------- */

static void view_add_condition(struct str *out, const char *category, const char *name, int number)
{
	str_add(out, number ? ", (" : "(category, name) IN (VALUES (");
	str_add_sql(out, category);
	str_add(out, ", ");
	str_add_sql(out, name);
	str_add(out, ")");
}

enum status view__filter_load(struct view_timeline *tl, struct prof_db *db, bool news,
			      struct err *err)
{
	static const char sql[] =
		"SELECT DISTINCT c.value, n.value FROM sites s JOIN strings c ON c.string_id = "
		"s.category_id JOIN strings n ON n.string_id = s.name_id ORDER BY 1, 2";
	struct view_filter *filter = &tl->filter;
	struct prof_query *query;
	bool row = false;
	int count = 0;
	enum status status;

	if (!filter->active || (!filter->stale && !news))
		return ST_OK;
	filter->stale = true;
	str_clear(&filter->condition);
	status = prof_query_open(&query, db, sql, err);
	if (status != ST_OK)
		return status;
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row &&
	       count <= MOST_SITES) {
		const char *category = prof_column_text(query, 0);
		const char *name = prof_column_text(query, 1);

		if (category && name && !view_leaves_out(filter, category, name))
			view_add_condition(&filter->condition, category, name, count++);
	}
	prof_query_close(query);
	filter->sites = count;
	str_add(&filter->condition, count ? ")" : "false");
	filter->stale = status != ST_OK;
	return status == ST_OK && filter->condition.failed ? err_nomem(err) : status;
}

void view__filter_query(const struct view_timeline *tl, struct str *out)
{
	if (!tl->filter.active || tl->filter.stale)
		return;
	if (tl->filter.sites > MOST_SITES)
		str_add(out, " /* and the filter, which lets too many names through to list */");
	else
		str_addf(out, "\n  AND %s", str_peek(&tl->filter.condition));
}

/* ---- what it does to the picture ------------------------------------------------------------- */

void view__filter_count(struct view_timeline *tl)
{
	struct view_filter *filter = &tl->filter;

	filter->all = filter->passed = 0;
	filter->rough = false;
	for (int i = 0; i < tl->lane_count && filter->active; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		for (int b = 0; b < lane->bar_count && lane->rows > 0; b++) {
			const struct prof_bar *bar = &lane->bars[b];

			filter->all += bar->count;
			filter->passed += view__left_out(tl, bar) ? 0 : bar->count;
			filter->rough |= bar->span_id == IPS_NULL && bar->count > 1;
		}
	}
}

bool view__filter_status(const struct view_timeline *tl, char *out, size_t size)
{
	const struct view_filter *filter = &tl->filter;
	char passed[FMT_SIZE], all[FMT_SIZE];

	if (filter->trouble[0]) {
		snprintf(out, size, "filter: %s", filter->trouble);
		return true;
	}
	if (!filter->active || tl->way == VIEW_BSP)
		return false;
	snprintf(out, size, "filter %s: %s%s of %s spans in view%s; idle time of all", filter->text,
		 filter->rough ? "about " : "", fmt_count(passed, filter->passed),
		 fmt_count(all, filter->all), filter->rough ? " (a cell by its most)" : "");
	return true;
}
