/*
 * What tiles hold, as lines that open: exact bytes by category, region and liveness, and their
 * largest variables; a column for each tile, comparing for each report.
 *
 * Threading: the worker's. Ownership: lines and texts are the details' arena's, until the next
 * load.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/memory/view_memory_internal.h"

#define LINES_MOST  (VIEW_MEMORY_CATEGORIES + VIEW_MEMORY_REGIONS + 16 + VARIABLES_MOST)
#define VALUE_LEAST 12 /* "tile 63,1471" */
/* Of all columns' tiles together. */
#define VARIABLES_MOST (VIEW_MEMORY_LARGEST * VIEW_MEMORY_COLUMNS)

#define LARGEST                                                                                    \
	"SELECT t.variable_id, v.variable, v.kind, v.layer, sum(t.bytes), v.bytes, v.always_live "
#define BY_BYTES " GROUP BY t.variable_id ORDER BY sum(t.bytes) DESC, v.variable LIMIT :most"

static const char *const sql_largest[VIEW_MEMORY_FORMS] = {
	LARGEST "FROM variable_tile_rows t JOIN variables v ON v.variable_id = t.variable_id "
		"WHERE t.ipu = :ipu AND t.tile <= :tile "
		"AND t.tile + coalesce(t.more_tiles, 0) >= :tile" BY_BYTES,
	LARGEST "FROM variable_tiles t JOIN variables v ON v.variable_id = t.variable_id "
		"WHERE t.ipu = :ipu AND t.tile = :tile" BY_BYTES};

/* --- columns ---------------------------------------------------------------------------------- */

static void view_add_column(struct view_memory_details *details, int64_t index, int side)
{
	for (int i = 0; i < details->column_count; i++)
		if (details->columns[i].index == index && details->columns[i].side == side)
			return;
	if (details->column_count < VIEW_MEMORY_COLUMNS)
		details->columns[details->column_count++] = (struct view_memory_tile){index, side};
}

static void view_make_columns(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	const int64_t cursor = view__memory_cursor(screen);

	details->column_count = 0;
	for (int s = 0; s < screen->sides; s++)
		view_add_column(details, cursor, s);
	for (int i = 0; i < screen->marks && screen->sides == 1; i++) {
		const int64_t index =
			view__memory_index(screen, screen->mark[i].ipu, screen->mark[i].tile);

		if (index >= 0)
			view_add_column(details, index, 0);
	}
	if (screen->sides == 1)
		view_add_column(details, -1, 0);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool view_open_group(const struct view_memory *screen, int group)
{
	return screen->details.open & (1u << group);
}

static struct view_memory_line *view_add_line(struct view_memory *screen,
					      enum view_memory_line_kind kind, int group,
					      const char *name)
{
	struct view_memory_details *details = &screen->details;
	struct view_memory_line *line;

	if (details->count == LINES_MOST)
		return NULL;
	line = &details->lines[details->count++];
	*line = (struct view_memory_line){
		.kind = kind, .group = group, .name = name, .variable_id = VIEW_NOWHERE};
	line->depth = group >= 0 && kind != VIEW_MEMORY_GROUP;
	for (int c = 0; c < VIEW_MEMORY_COLUMNS; c++)
		line->value[c] = VIEW_NOWHERE;
	return line;
}

/* Of a tile, or of all that are shown. */
static int64_t view_of(const struct view_memory *screen, const struct view_memory_tile *tile,
		       const int64_t *bytes)
{
	const int64_t first = view__memory_first(screen), shown = view__memory_shown(screen);
	int64_t sum = 0;

	if (tile->index >= 0 && screen->side[tile->side].capacity[tile->index] <= 0)
		return VIEW_NOWHERE; /* that report has no such tile */
	if (!bytes)
		return 0;
	if (tile->index >= 0)
		return bytes[tile->index];
	for (int64_t i = first; i < first + shown; i++)
		if (__builtin_add_overflow(sum, bytes[i], &sum))
			sum = INT64_MAX;
	return sum;
}

static bool view_differs(const struct view_memory_line *line)
{
	return line->value[0] != line->value[1];
}

/* A line of the arrays @source and @target; gone where it has nothing to say. */
static void view_add_values(struct view_memory *screen, const struct view_context *context,
			    int group, const char *name, const int64_t *source,
			    const int64_t *target)
{
	const int64_t *const arrays[] = {source, target};
	struct view_memory_line *line = view_add_line(screen, VIEW_MEMORY_VALUE, group, name);
	bool some = group < 0;

	if (!line)
		return;
	for (int c = 0; c < screen->details.column_count; c++) {
		const struct view_memory_tile *tile = &screen->details.columns[c];

		line->value[c] = view_of(screen, tile, arrays[tile->side]);
		some = some || line->value[c] > 0;
	}
	if (!some || (context->differ && screen->sides > 1 && !view_differs(line)))
		screen->details.count--;
}

static int view_more_first(const void *a, const void *b)
{
	const struct view_memory_line *x = a, *y = b;
	int64_t most_x = 0, most_y = 0;

	/* The first column decides, then the others; comparing, the greater of both. */
	for (int c = 0; c < VIEW_MEMORY_COLUMNS; c++) {
		most_x = x->value[c];
		most_y = y->value[c];
		if (most_x != most_y)
			return most_x < most_y ? 1 : -1;
	}
	return strcmp(x->name, y->name);
}

static void view_sort_lines(struct view_memory *screen, int from)
{
	qsort(screen->details.lines + from, (size_t)(screen->details.count - from),
	      sizeof(*screen->details.lines), view_more_first);
}

static void view_add_room(struct view_memory *screen, const struct view_context *context)
{
	struct view_memory_line *line;

	view_add_values(screen, context, VIEW_MEMORY_NO_GROUP, "Capacity", screen->side[0].capacity,
			screen->side[1].capacity);
	line = view_add_line(screen, VIEW_MEMORY_VALUE, VIEW_MEMORY_NO_GROUP, "Free");
	for (int c = 0; line && c < screen->details.column_count; c++) {
		const struct view_memory_tile *tile = &screen->details.columns[c];
		const struct view_memory_side *from = &screen->side[tile->side];
		const int64_t all = view_of(screen, tile, from->capacity);

		if (all != VIEW_NOWHERE)
			line->value[c] = all - view_of(screen, tile, from->total);
	}
	if (line && context->differ && screen->sides > 1 && !view_differs(line))
		screen->details.count--;
}

static void view_add_notes(struct view_memory *screen)
{
	const struct view_memory_side *side = &screen->side[0];
	const char *note = NULL;

	view_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
		      "gaps and overlaps are not recorded");
	if (side->first_other != VIEW_NOWHERE)
		note = arena_printf(&screen->details.arena,
				    "IPUs from %" PRId64 " on: models of other ranks",
				    side->first_other);
	else if (side->ranks > 1)
		note = arena_printf(&screen->details.arena, "the same in all %" PRId64 " ranks",
				    side->ranks);
	if (note)
		view_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP, note);
	if (screen->ipus < screen->all_ipus)
		view_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
			      "further IPUs are left out: there are too many");
}

static void view_add_groups(struct view_memory *screen, const struct view_context *context)
{
	const struct view_memory_side *s = &screen->side[0], *t = &screen->side[1];
	int from;

	view_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_CATEGORY_GROUP, "By category");
	from = screen->details.count;
	for (int c = 0; c < screen->categories; c++)
		if (view_open_group(screen, VIEW_MEMORY_CATEGORY_GROUP))
			view_add_values(screen, context, VIEW_MEMORY_CATEGORY_GROUP,
					screen->category[c], s->category[c], t->category[c]);
	view_sort_lines(screen, from);
	view_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_REGION_GROUP, "By region");
	for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
		if (view_open_group(screen, VIEW_MEMORY_REGION_GROUP))
			view_add_values(screen, context, VIEW_MEMORY_REGION_GROUP,
					view__memory_regions[r], s->region[r], t->region[r]);
	view_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_LIVENESS_GROUP, "By liveness");
	if (view_open_group(screen, VIEW_MEMORY_LIVENESS_GROUP)) {
		view_add_values(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "always live",
				s->always, t->always);
		view_add_values(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "not always live",
				s->not_always, t->not_always);
	}
}

/* --- variables -------------------------------------------------------------------------------- */

/* The line of the variable @name; a new one where there is none yet. NULL: no room or memory. */
static struct view_memory_line *view_variable_line(struct view_memory *screen, const char *name)
{
	struct view_memory_details *details = &screen->details;
	char *copy;

	for (int i = details->variables_at + 1; i < details->count; i++)
		if (strcmp(details->lines[i].name, name) == 0)
			return &details->lines[i];
	copy = arena_strdup(&details->arena, name);
	return copy ? view_add_line(screen, VIEW_MEMORY_VARIABLE, VIEW_MEMORY_VARIABLE_GROUP, copy)
		    : NULL;
}

static enum status view_add_variable(struct view_memory *screen, int column,
				     const struct prof_query *query, struct err *err)
{
	struct arena *arena = &screen->details.arena;
	const char *name = prof_column_text(query, 1), *kind = prof_column_text(query, 2);
	const char *layer = prof_column_text(query, 3);
	struct view_memory_line *line = view_variable_line(screen, name ? name : "?");

	if (!line)
		return err_nomem(err);
	line->value[column] = prof_column_int(query, 4);
	if (line->more)
		return ST_OK;
	line->variable_id = prof_column_int(query, 0);
	line->more = arena_printf(arena, "%s%s%s%s", kind ? kind : "",
				  prof_column_int(query, 6) == 1 ? ", always live" : "",
				  layer ? ", " : "", layer ? layer : "");
	line->layer = layer ? arena_strdup(arena, layer) : NULL;
	for (int c = 0; c < screen->details.column_count; c++)
		if (screen->details.columns[c].index < 0)
			line->value[c] = prof_column_int(query, 5);
	return line->more && (!layer || line->layer) ? ST_OK : err_nomem(err);
}

static enum status view_read_column(struct view_memory *screen, struct prof_db *db, int column,
				    struct err *err)
{
	const int64_t index = screen->details.columns[column].index;
	struct prof_query *query;
	enum status status = view__memory_open(&query, db, sql_largest, err);
	bool row;

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":ipu", view__memory_ipu_of(screen, index));
	prof_query_int(query, ":tile", view__memory_tile_of(screen, index));
	prof_query_int(query, ":most", VIEW_MEMORY_LARGEST);
	while (status == ST_OK) {
		status = prof_query_step(query, &row, err);
		if (status != ST_OK || !row)
			break;
		status = view_add_variable(screen, column, query, err);
	}
	prof_query_close(query);
	return status;
}

static enum status view_add_variables(struct view_memory *screen, struct view_context *context,
				      struct err *err)
{
	struct view_memory_details *details = &screen->details;
	enum status status = ST_OK;
	int kept;

	details->variables_at = details->count;
	view_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_VARIABLE_GROUP, "Largest variables");
	if (!view_open_group(screen, VIEW_MEMORY_VARIABLE_GROUP))
		return ST_OK;
	for (int c = 0; c < details->column_count && status == ST_OK; c++) {
		const struct view_memory_tile *tile = &details->columns[c];

		if (view_cancelled(context))
			status = err_set(err, ST_INTERRUPTED, "stopped");
		else if (tile->index >= 0)
			status = view_read_column(
				screen, tile->side == 0 ? context->source->db : context->target->db,
				c, err);
	}
	kept = details->variables_at + 1;
	for (int i = kept; i < details->count; i++)
		if (!context->differ || screen->sides == 1 || view_differs(&details->lines[i]))
			details->lines[kept++] = details->lines[i];
	details->count = kept;
	view_sort_lines(screen, details->variables_at + 1);
	if (kept == details->variables_at + 1)
		view_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
			      context->differ && screen->sides > 1 ? "none that differs"
								   : "none is on this tile");
	return status;
}

/* All columns are as wide as the longest number and a title need. */
static void view_measure(struct view_memory_details *details)
{
	char text[FMT_SIZE];

	details->value_width = VALUE_LEAST;
	for (int i = 0; i < details->count; i++)
		for (int c = 0; c < details->column_count; c++) {
			const int width = (int)strlen(fmt_count(text, details->lines[i].value[c]));

			if (details->lines[i].value[c] != VIEW_NOWHERE &&
			    width + 1 > details->value_width)
				details->value_width = width + 1;
		}
}

enum status view__memory_details(struct view_memory *screen, struct view_context *context,
				 struct err *err)
{
	struct view_memory_details *details = &screen->details;
	enum status status;

	arena_reset(&details->arena);
	if (context->whole)
		details->open = VIEW_MEMORY_ALL_GROUPS;
	details->count = details->variables_at = 0;
	view_make_columns(screen);
	details->lines = arena_alloc(&details->arena, LINES_MOST, sizeof(*details->lines));
	if (!details->lines)
		return err_nomem(err);
	view_add_values(screen, context, VIEW_MEMORY_NO_GROUP, "Memory excluding gaps",
			screen->side[0].total, screen->side[1].total);
	view_add_groups(screen, context);
	view_add_room(screen, context);
	view_add_notes(screen);
	status = view_add_variables(screen, context, err);
	if (status != ST_OK)
		details->count = 0;
	view_measure(details);
	if (details->at >= details->count)
		details->at = details->count > 0 ? details->count - 1 : 0;
	return status;
}
