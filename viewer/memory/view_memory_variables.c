/*
 * The largest variables of tiles, as lines of the details: the same name is one line, whichever of
 * the tiles and reports hold it.
 *
 * Where the variables lie is in memory (view_memory_rows.c); a query gives names to those that were
 * found. Of each report at most HITS_MOST rows are looked at, those with the most bytes.
 *
 * Threading: the worker's. Ownership: lines and texts are the details' arena's.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"
#include "viewer/memory/view_memory_internal.h"

#define HITS_MOST (VIEW_MEMORY_NAMES / VIEW_MEMORY_SIDES)

#define SQL_NAMES                                                                                  \
	"SELECT variable_id, variable, kind, layer, bytes, always_live FROM variables "            \
	"WHERE variable_id IN ("

/* Bytes of a variable on a tile of view_memory_details.together. */
struct view_hit {
	int64_t variable_id, bytes;
	int tile;
};

struct view_hits {
	struct view_hit hit[2 * HITS_MOST];
	int count;
};

/* ---- what lies on the tiles ------------------------------------------------------------------ */

static int view_more_bytes(const void *a, const void *b)
{
	const struct view_hit *x = a, *y = b;

	return x->bytes != y->bytes ? SORTED_BY(y, x, bytes) : SORTED_BY(x, y, variable_id);
}

static int view_by_variable(const void *a, const void *b)
{
	const struct view_hit *x = a, *y = b;

	return SORTED_BY(x, y, variable_id);
}

static void view_cut(struct view_hits *hits)
{
	if (hits->count <= HITS_MOST)
		return;
	qsort(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]), view_more_bytes);
	hits->count = HITS_MOST;
}

/* What the tiles hold in a report, by variable. */
static enum status view_find(struct view_memory *screen, struct view_context *context, int side,
			     struct view_hits *hits, struct err *err)
{
	const struct view_memory_details *details = &screen->details;
	enum status status = ST_OK;

	hits->count = 0;
	for (int t = 0; t < details->together_count && status == ST_OK; t++) {
		const struct view_memory_run *run = NULL;
		const int64_t index = details->together[t];

		status = view__memory_rows(screen, context, side, index, err);
		while (status == ST_OK && (run = view__memory_next_run(screen, side, index, run))) {
			if (hits->count == 2 * HITS_MOST)
				view_cut(hits);
			hits->hit[hits->count++] =
				(struct view_hit){run->variable_id, run->bytes, t};
		}
	}
	view_cut(hits);
	qsort(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]), view_by_variable);
	return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The line of the variable @name; a new one where there is none yet. NULL: no room or memory. */
static struct view_memory_line *view_line(struct view_memory *screen, const char *name)
{
	struct view_memory_details *details = &screen->details;
	char *copy;

	for (int i = details->variables_at + 1; i < details->count; i++)
		if (strcmp(details->lines[i].name, name) == 0)
			return &details->lines[i];
	copy = arena_strdup(&details->arena, name);
	return copy ? view__memory_add_line(screen, VIEW_MEMORY_VARIABLE,
					    VIEW_MEMORY_VARIABLE_GROUP, copy)
		    : NULL;
}

static void view_add(struct view_memory_line *line, int column, int64_t bytes)
{
	line->value[column] =
		sat_add(line->value[column] == IPS_NULL ? 0 : line->value[column], bytes);
}

/* To the columns of the tile and of all selected; @bytes of all tiles to the last one. */
static void view_add_hits(struct view_memory *screen, struct view_memory_line *line, int side,
			  const struct view_hits *hits, int64_t variable_id, int64_t bytes)
{
	const struct view_memory_details *details = &screen->details;
	const int first = (int)sorted_place(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]),
					    offsetof(struct view_hit, variable_id), variable_id);

	for (int c = side; c < details->column_count; c += screen->sides) {
		const int64_t index = details->columns[c].index;

		if (index == VIEW_MEMORY_ALL)
			view_add(line, c, bytes);
		for (int h = first; h < hits->count && hits->hit[h].variable_id == variable_id; h++)
			if (index == VIEW_MEMORY_TOGETHER ||
			    index == details->together[hits->hit[h].tile])
				view_add(line, c, hits->hit[h].bytes);
	}
}

static enum status view_add_variable(struct view_memory *screen, int side,
				     const struct view_hits *hits, const struct prof_query *query,
				     struct err *err)
{
	struct arena *arena = &screen->details.arena;
	const char *name = prof_column_text(query, 1), *kind = prof_column_text(query, 2);
	const char *layer = prof_column_text(query, 3);
	struct view_memory_line *line = view_line(screen, name ? name : "?");

	if (!line)
		return err_nomem(err);
	view_add_hits(screen, line, side, hits, prof_column_int(query, 0),
		      prof_column_int(query, 4));
	if (line->more)
		return ST_OK;
	line->variable_id = prof_column_int(query, 0);
	line->side = side;
	line->more = arena_printf(arena, "%s%s%s%s", kind ? kind : "",
				  prof_column_int(query, 5) == 1 ? ", always live" : "",
				  layer ? ", " : "", layer ? layer : "");
	line->layer = layer ? arena_strdup(arena, layer) : NULL;
	return line->more && (!layer || line->layer) ? ST_OK : err_nomem(err);
}

static enum status view_name(struct view_memory *screen, struct prof_db *db, int side,
			     const struct view_hits *hits, struct err *err)
{
	struct prof_query *query = NULL;
	struct str sql = {0};
	enum status status;

	str_add(&sql, SQL_NAMES);
	for (int h = 0; h < hits->count; h++)
		if (h == 0 || hits->hit[h].variable_id != hits->hit[h - 1].variable_id)
			str_addf(&sql, "%s%" PRId64, h ? "," : "", hits->hit[h].variable_id);
	str_add(&sql, ")");
	status = sql.failed ? err_nomem(err) : prof_query_open(&query, db, str_peek(&sql), err);
	str_free(&sql);
	while (prof_query_next(query, &status, err)) {
		status = view_add_variable(screen, side, hits, query, err);
	}
	prof_query_close(query);
	return status;
}

/* The largest are left, and where that is asked for of those what differs. */
static void view_leave_largest(struct view_memory *screen, const struct view_context *context)
{
	struct view_memory_details *details = &screen->details;
	const int first = details->variables_at + 1;
	const int most = first + VIEW_MEMORY_LARGEST * details->together_count;
	const bool differ = context->differ && screen->sides > 1;
	int kept = first;

	for (int i = first; i < details->count; i++)
		if (!differ || view__memory_differs(screen, &details->lines[i]))
			details->lines[kept++] = details->lines[i];
	details->count = kept;
	view__memory_sort_lines(screen, first);
	if (details->count > most)
		details->count = most;
	if (kept == first)
		view__memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
				      differ                        ? "none that differs"
				      : details->together_count > 1 ? "none is on these tiles"
								    : "none is on this tile");
}

enum status view__memory_variables(struct view_memory *screen, struct view_context *context,
				   struct err *err)
{
	struct view_memory_details *details = &screen->details;
	struct view_hits *hits;
	enum status status = ST_OK;

	details->variables_at = details->count;
	view__memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_VARIABLE_GROUP,
			      "Largest variables");
	if (!(details->open & 1u << VIEW_MEMORY_VARIABLE_GROUP))
		return ST_OK;
	hits = arena_alloc(&details->arena, 1, sizeof(*hits));
	if (!hits)
		return err_nomem(err);
	for (int s = 0; s < screen->sides && status == ST_OK; s++) {
		status = view_cancelled(context) ? err_set(err, ST_INTERRUPTED, "stopped")
						 : view_find(screen, context, s, hits, err);
		if (status == ST_OK)
			status = view_name(screen,
					   s == 0 ? context->source->db : context->target->db, s,
					   hits, err);
	}
	view_leave_largest(screen, context);
	return status;
}
