/*
 * The variables' rows in memory, so that another tile costs no query: a table of half a million
 * rows has no index by tile, and is read through for each.
 *
 * At first those of the IPU that is asked for are read; with the next IPU all, where there are at
 * most VIEW_MEMORY_RUNS_MOST of them (24 MB of each report), else those of that IPU, else those of
 * the tile alone.
 *
 * Threading: the worker's. Ownership: a side owns its runs, until the reports change or
 * view__memory_rows_fini().
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "viewer/memory/view_memory_internal.h"

#define LOOK_EVERY 4096 /* rows between two looks whether it is still wanted */

#define SQL_PASSING "variable_id IN (SELECT variable_id FROM variables WHERE always_live = 0)"

static const char sql_rows[] =
	"SELECT ipu, tile, coalesce(more_tiles, 0), bytes, variable_id, " SQL_PASSING
	" FROM variable_tile_rows WHERE ipu BETWEEN :ipu AND :last_ipu AND tile <= :last_tile "
	"AND tile + coalesce(more_tiles, 0) >= :tile";

/* How much around a tile is read; the next one where there is too much of it. */
enum view_reach {
	REACH_ALL,
	REACH_IPU,
	REACH_TILE,
	REACHES
};

static void view_bounds(const struct view_memory *screen, enum view_reach reach, int64_t index,
			int64_t *from, int64_t *to)
{
	const int64_t base = index / screen->tiles * screen->tiles;

	*from = reach == REACH_ALL ? 0 : reach == REACH_IPU ? base : index;
	*to = reach == REACH_ALL   ? (int64_t)screen->ipus * screen->tiles
	      : reach == REACH_IPU ? base + screen->tiles
				   : index + 1;
}

static int view_by_index(const void *a, const void *b)
{
	const struct view_memory_run *x = a, *y = b;

	return SORTED_BY(x, y, index);
}

/* A recording has them IPU by IPU; if not, they are sorted. */
static void view_order(const struct view_memory *screen, struct view_memory_rows *rows)
{
	bool ordered = true;

	for (size_t i = 1; i < rows->count && ordered; i++)
		ordered = rows->runs[i].index / screen->tiles >=
			  rows->runs[i - 1].index / screen->tiles;
	if (!ordered)
		qsort(rows->runs, rows->count, sizeof(*rows->runs), view_by_index);
}

static enum status view_keep(struct view_memory_rows *rows, const struct view_memory_run *run,
			     struct err *err)
{
	if (mem_grow(&rows->runs, &rows->capacity, rows->count + 1, sizeof(*rows->runs)) != 0)
		return err_nomem(err);
	rows->runs[rows->count++] = *run;
	return ST_OK;
}

/* *@whole: all rows of the bounds are there. */
static enum status view_read(const struct view_memory *screen, struct view_context *context,
			     struct view_memory_rows *rows, struct prof_query *query, bool *whole,
			     struct err *err)
{
	enum status status = ST_OK;
	struct view_memory_run run;
	int64_t looked = 0;
	bool row;

	*whole = false;
	while (status == ST_OK && rows->count < screen->runs_most) {
		if (++looked % LOOK_EVERY == 0 && view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "stopped");
		status = prof_query_step(query, &row, err);
		*whole = status == ST_OK && !row;
		if (status != ST_OK || !row)
			break;
		if (!view__memory_run(screen, query, &run))
			continue;
		run.variable_id = prof_column_int(query, 4);
		run.passing = prof_column_int(query, 5) == 1;
		status = view_keep(rows, &run, err);
	}
	return status;
}

static enum status view_read_reach(const struct view_memory *screen, struct view_context *context,
				   struct view_memory_rows *rows, struct prof_db *db,
				   enum view_reach reach, int64_t index, bool *whole,
				   struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_rows, err);
	int64_t from, to;

	if (status != ST_OK)
		return status;
	view_bounds(screen, reach, index, &from, &to);
	prof_query_int(query, ":ipu", view__memory_ipu_of(screen, from));
	prof_query_int(query, ":last_ipu", view__memory_ipu_of(screen, to - 1));
	prof_query_int(query, ":tile", reach == REACH_TILE ? index % screen->tiles : 0);
	prof_query_int(query, ":last_tile", (to - 1) % screen->tiles);
	rows->count = 0;
	/* What is not filled costs nothing; growing would leave as much again behind. */
	if (reach == REACH_ALL &&
	    mem_grow(&rows->runs, &rows->capacity, screen->runs_most, sizeof(*rows->runs)) != 0)
		status = err_nomem(err);
	if (status == ST_OK)
		status = view_read(screen, context, rows, query, whole, err);
	prof_query_close(query);
	rows->from = from;
	rows->to = status == ST_OK ? to : from;
	return status;
}

enum status view__memory_rows(struct view_memory *screen, struct view_context *context, int side,
			      int64_t index, struct err *err)
{
	struct prof_db *db = side == 0 ? context->source->db : context->target->db;
	struct view_memory_rows *rows = &screen->side[side].rows;
	enum status status = ST_OK;
	bool whole = false;

	if (index >= rows->from && index < rows->to)
		return ST_OK;
	for (int reach = rows->many || !rows->begun ? REACH_IPU : REACH_ALL;
	     reach < REACHES && !whole && status == ST_OK; reach++) {
		status = view_read_reach(screen, context, rows, db, (enum view_reach)reach, index,
					 &whole, err);
		rows->many = rows->many || (status == ST_OK && !whole);
	}
	rows->begun = status == ST_OK;
	view_order(screen, rows);
	return status;
}

const struct view_memory_run *view__memory_next_run(const struct view_memory *screen, int side,
						    int64_t index,
						    const struct view_memory_run *run)
{
	const struct view_memory_rows *rows = &screen->side[side].rows;
	const int64_t base = index / screen->tiles * screen->tiles;
	size_t at;

	/* The first of its IPU: none reaches over from another one. */
	if (run)
		at = (size_t)(run - rows->runs) + 1;
	else
		SORTED_FIRST(at, 0, rows->count, rows->runs[at].index < base);
	for (; at < rows->count && rows->runs[at].index < base + screen->tiles; at++)
		if (rows->runs[at].index <= index &&
		    rows->runs[at].index + rows->runs[at].more >= index)
			return &rows->runs[at];
	return NULL;
}

void view__memory_rows_fini(struct view_memory_rows *rows)
{
	mem_free(rows->runs);
	*rows = (struct view_memory_rows){0};
}
