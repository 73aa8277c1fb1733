/*
 * The call sites of a recording. See report_sites.h.
 *
 * Threading: none. Ownership: the list owns the array and its texts.
 */
#include "reports/export/report_sites.h"

#include "common/mem.h"
#include "common/sorted.h"

static const char *copy_text(struct report_sites *sites, const struct prof_query *query, int column,
			     struct err *err)
{
	const char *text = prof_column_text(query, column);
	const char *copy = !text ? NULL : arena_strdup(&sites->arena, text);

	if (text && !copy)
		err_nomem(err);
	return copy;
}

static void add_site(struct report_sites *sites, struct report_site site, struct err *err)
{
	if (err_stuck(err))
		return;
	if (mem_grow(&sites->items, &sites->capacity, sites->count + 1, sizeof(*sites->items)) != 0)
		err_nomem(err);
	else
		sites->items[sites->count++] = site;
}

void report_sites_read(struct report_sites *sites, struct prof_db *db, struct err *err)
{
	struct prof_query *query;

	*sites = (struct report_sites){0};
	if (err_stuck(err))
		return;
	if (arena_init(&sites->arena, 0) != 0) {
		err_nomem(err);
		return;
	}
	prof_query_open(&query, db,
			"SELECT s.site_id, n.value, f.value, s.line FROM sites s "
			"LEFT JOIN strings n ON n.string_id = s.name_id "
			"LEFT JOIN strings f ON f.string_id = s.file_id "
			"ORDER BY s.site_id",
			err);
	while (prof_query_next(query, &err->status, err))
		add_site(sites,
			 (struct report_site){
				 .site_id = prof_column_int(query, 0),
				 .name = copy_text(sites, query, 1, err),
				 .file = copy_text(sites, query, 2, err),
				 .line = prof_column_int(query, 3),
			 },
			 err);
	prof_query_close(query);
	add_site(sites, (struct report_site){INT64_MAX, IPS_NULL, "(unknown)", NULL}, err);
}

void report_sites_free(struct report_sites *sites)
{
	mem_free(sites->items);
	arena_fini(&sites->arena);
	*sites = (struct report_sites){0};
}

size_t report_sites_find(const struct report_sites *sites, int64_t site_id)
{
	const size_t last = sites->count - 1;
	size_t low;

	/* Usually ids are contiguous from 1. */
	if (site_id > 0 && site_id <= (int64_t)last && sites->items[site_id - 1].site_id == site_id)
		return (size_t)site_id - 1;
	SORTED_FIRST(low, 0, last, sites->items[low].site_id < site_id);
	return sites->items[low].site_id == site_id ? low : last;
}
