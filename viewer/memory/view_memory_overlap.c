/*
 * What overlapping saves: variables that are not always live share memory where they are never live
 * at the same time, so a tile needs less for them than they have together. What they have together
 * comes from the variables; what the tile needs for them is the category notAlwaysLiveVariables.
 *
 * Threading: the worker's; what it has made may be read by both. Ownership: data_arena.
 */
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/memory/view_memory_internal.h"

/* total(): a damaged file's sum may not fit an integer, which is an error to SQLite. */
static const char sql_apart[] = "SELECT ipu, total(bytes) FROM variables WHERE always_live = 0 "
				"AND ipu IS NOT NULL GROUP BY ipu";

enum status view__memory_read_apart(struct view_memory *screen, struct view_memory_side *side,
				    struct prof_db *db, struct err *err)
{
	struct prof_query *query = NULL;
	enum status status;

	side->apart = arena_alloc(&screen->data_arena, (size_t)screen->ipus, sizeof(*side->apart));
	if (!side->apart)
		return err_nomem(err);
	status = prof_query_open(&query, db, sql_apart, err);
	while (prof_query_next(query, &status, err)) {
		int at;

		at = view__memory_ipu_at(screen, prof_column_int(query, 0));
		if (at >= 0)
			side->apart[at] = sat_real(prof_column_real(query, 1));
	}
	prof_query_close(query);
	return status;
}

static int64_t view_apart_of(const struct view_memory *screen, int side, int64_t index)
{
	const struct view_memory_run *run = NULL;
	int64_t sum = 0;

	while ((run = view__memory_next_run(screen, side, index, run)))
		sum = sat_add(sum, run->passing ? run->bytes : 0);
	return sum;
}

enum status view__memory_apart(struct view_memory *screen, struct view_context *context,
			       struct err *err)
{
	struct view_memory_details *details = &screen->details;
	enum status status = ST_OK;

	for (int s = 0; s < screen->sides; s++)
		for (int t = 0; t < details->together_count && status == ST_OK; t++) {
			const int64_t index = details->together[t];

			status = view__memory_rows(screen, context, s, index, err);
			details->apart[s][t] =
				status == ST_OK ? view_apart_of(screen, s, index) : 0;
		}
	return status;
}

static int64_t view_above(int64_t apart, int64_t needed)
{
	const int64_t saved = sat_sub(apart, needed);

	return max(saved, 0);
}

int64_t view__memory_saved(const struct view_memory *screen, int side, int64_t index)
{
	const struct view_memory_details *details = &screen->details;

	for (int t = 0; t < details->together_count; t++)
		if (details->together[t] == index)
			return view_above(details->apart[side][t],
					  screen->side[side].not_always[index]);
	return 0;
}

int64_t view__memory_saved_of_all(const struct view_memory *screen, int side)
{
	const int64_t first = view__memory_first(screen), end = first + view__memory_shown(screen);
	const struct view_memory_side *from = &screen->side[side];
	int64_t apart = 0, needed = 0;

	for (int64_t i = first; i < end; i++) {
		needed = sat_add(needed, from->not_always[i]);
		if (i % screen->tiles == 0)
			apart = sat_add(apart, from->apart[i / screen->tiles]);
	}
	return view_above(apart, needed);
}
