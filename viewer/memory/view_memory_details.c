/*
 * Details of tiles as foldable lines: exact bytes by liveness, category and region, and the largest
 * variables. Columns: each selected tile and all tiles; in a comparison per report.
 *
 * Threading: the session's; drawing is the terminal's. Ownership: the details' arena.
 */
#include "viewer/memory/view_memory_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/named/report_floor.h"

#define LINES_MOST  (VIEW_MEMORY_CATEGORIES + VIEW_MEMORY_REGIONS + 16 + VIEW_MEMORY_NAMES)
#define VALUE_LEAST 12 /* "tile 63,1471" */

/* ---- savings by overlap ---------------------------------------------------------------------- */

/* Compute details->apart of the selected tiles. */
static enum status memory_apart(struct view_memory *screen, struct view_context *context,
				struct err *err)
{
	struct view_memory_details *details = &screen->details;
	enum status status = ST_OK;

	for (int s = 0; s < screen->sides; s++)
		for (int t = 0; t < details->together_count && status == ST_OK; t++) {
			const int64_t index = details->together[t];
			const struct view_memory_run *run = NULL;

			status = view__memory_rows(screen, context, s, index, err);
			details->apart[s][t] = 0;
			while (status == ST_OK &&
			       (run = view__memory_next_run(screen, s, index, run)))
				if (run->passing)
					details->apart[s][t] =
						sat_add(details->apart[s][t], run->bytes);
		}
	return status;
}

static int64_t memory_positive_difference(int64_t apart, int64_t needed)
{
	const int64_t saved = sat_sub(apart, needed);

	return max(saved, 0);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Add a column for @index; in a comparison one per report. */
static void memory_add_column(struct view_memory *screen, int64_t index)
{
	struct view_memory_details *details = &screen->details;

	if (details->column_count + screen->sides > VIEW_MEMORY_COLUMNS)
		return;
	for (int s = 0; s < screen->sides; s++)
		details->columns[details->column_count++] = (struct view_memory_tile){index, s};
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool memory_is_open(const struct view_memory *screen, int group)
{
	return screen->details.open & (1u << group);
}

/* Append a line whose values are IPS_NULL. Return NULL if the limit is reached. */
static struct view_memory_line *memory_add_line(struct view_memory *screen,
						enum view_memory_line_kind kind, int group,
						const char *name)
{
	struct view_memory_details *details = &screen->details;
	struct view_memory_line *line;

	if (details->count == LINES_MOST)
		return NULL;
	line = &details->lines[details->count++];
	*line = (struct view_memory_line){
		.kind = kind, .group = group, .name = name, .variable_id = IPS_NULL};
	line->depth = group >= 0 && kind != VIEW_MEMORY_GROUP;
	for (int c = 0; c < VIEW_MEMORY_COLUMNS; c++)
		line->value[c] = IPS_NULL;
	return line;
}

typedef int64_t (*view_tile_value)(const struct view_memory *screen, int side, const int64_t *bytes,
				   int64_t index);

static int64_t memory_value_held(const struct view_memory *screen, int side, const int64_t *bytes,
				 int64_t index)
{
	(void)screen, (void)side;
	return bytes ? bytes[index] : 0;
}

static int64_t memory_value_free(const struct view_memory *screen, int side, const int64_t *bytes,
				 int64_t index)
{
	(void)bytes;
	return sat_sub(screen->side[side].capacity[index], screen->side[side].total[index]);
}

static int64_t memory_value_excess(const struct view_memory *screen, int side, const int64_t *bytes,
				   int64_t index)
{
	(void)bytes;
	return view__memory_excess(&screen->side[side], index);
}

static int64_t memory_value_saved(const struct view_memory *screen, int side, const int64_t *bytes,
				  int64_t index)
{
	const struct view_memory_details *details = &screen->details;

	(void)bytes;
	for (int t = 0; t < details->together_count; t++)
		if (details->together[t] == index)
			return memory_positive_difference(details->apart[side][t],
							  screen->side[side].not_always[index]);
	return 0;
}

/* Sum over all shown tiles; a tile that the report lacks counts as 0. */
static int64_t memory_sum_all(const struct view_memory *screen, int side, view_tile_value of,
			      const int64_t *bytes)
{
	const int64_t first = view__memory_first(screen), end = first + view__memory_shown(screen);
	int64_t sum = 0;

	if (of == memory_value_saved) {
		const struct view_memory_side *from = &screen->side[side];
		int64_t apart = 0, needed = 0;

		for (int64_t i = first; i < end; i++) {
			needed = sat_add(needed, from->not_always[i]);
			if (i % screen->tiles == 0)
				apart = sat_add(apart, from->apart[i / screen->tiles]);
		}
		return memory_positive_difference(apart, needed);
	}
	if (of == memory_value_held)
		for (int64_t i = first; bytes && i < end; i++)
			sum = sat_add(sum, bytes[i]);
	else
		for (int64_t i = first; i < end; i++)
			sum = sat_add(sum, of(screen, side, bytes, i));
	return sum;
}

/* Sum over the tiles of a column; IPS_NULL: the report has none of them. */
static int64_t memory_details_sum(const struct view_memory *screen,
				  const struct view_memory_tile *column, view_tile_value of,
				  const int64_t *bytes)
{
	const struct view_memory_details *details = &screen->details;
	const int side = column->side;
	const bool together = column->index == VIEW_MEMORY_TOGETHER;
	const int64_t *tiles = together ? details->together : &column->index;
	const int count = together ? details->together_count : 1;
	int64_t sum = IPS_NULL;

	if (column->index == VIEW_MEMORY_ALL)
		return memory_sum_all(screen, column->side, of, bytes);
	for (int i = 0; i < count; i++)
		if (screen->side[side].capacity[tiles[i]] > 0)
			sum = sat_add(sum == IPS_NULL ? 0 : sum, of(screen, side, bytes, tiles[i]));
	return sum;
}

/* Return true if Source and Target of any column differ. */
static bool memory_differs(const struct view_memory *screen, const struct view_memory_line *line)
{
	for (int c = 0; c + 1 < screen->details.column_count; c += 2)
		if (screen->details.columns[c].index != VIEW_MEMORY_ALL &&
		    line->value[c] != line->value[c + 1])
			return true;
	return false;
}

/* Add a line of the values of @of for the arrays @source and @target. Omit it if all values are 0
 * (except for memory_value_free) and, with D, if both reports are equal. */
static void memory_add_sums(struct view_memory *screen, const struct view_context *context,
			    int group, const char *name, view_tile_value of, const int64_t *source,
			    const int64_t *target)
{
	const int64_t *const arrays[] = {source, target};
	struct view_memory_line *line = memory_add_line(screen, VIEW_MEMORY_VALUE, group, name);
	bool some = of == memory_value_free;

	if (!line)
		return;
	for (int c = 0; c < screen->details.column_count; c++) {
		const struct view_memory_tile *column = &screen->details.columns[c];

		line->value[c] = memory_details_sum(screen, column, of, arrays[column->side]);
		/* Tiles that fit need not shrink, even if others do not fit. */
		if (of != memory_value_excess || column->index != VIEW_MEMORY_ALL)
			some = some || line->value[c] > 0;
	}
	if (!some || (context->differ && screen->sides > 1 && !memory_differs(screen, line)))
		screen->details.count--;
}

static void memory_add_values(struct view_memory *screen, const struct view_context *context,
			      int group, const char *name, const int64_t *source,
			      const int64_t *target)
{
	memory_add_sums(screen, context, group, name, memory_value_held, source, target);
}

static int memory_largest_first(const void *left, const void *right)
{
	const struct view_memory_line *a = left, *b = right;

	if (a->most != b->most)
		return SORTED_BY(b, a, most);
	for (int c = 0; c < VIEW_MEMORY_COLUMNS; c++)
		if (a->value[c] != b->value[c])
			return SORTED_ORDER(b->value[c], a->value[c]);
	return strcmp(a->name, b->name);
}

/* Sort the lines from @from on by the first tile's bytes; in a comparison, by the greater of both
 * reports. */
static void memory_sort_lines(struct view_memory *screen, int from)
{
	struct view_memory_details *details = &screen->details;

	for (int i = from; i < details->count; i++) {
		struct view_memory_line *line = &details->lines[i];

		line->most =
			screen->sides > 1 ? max(line->value[0], line->value[1]) : line->value[0];
	}
	qsort(details->lines + from, (size_t)(details->count - from), sizeof(*details->lines),
	      memory_largest_first);
}

static void memory_add_notes(struct view_memory *screen)
{
	const struct view_memory_side *side = &screen->side[0];
	const char *note = NULL;

	memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP, "gaps: none in this model");
	memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
			"vertices, exchanges: not by tile; see Programs");
	if (side->first_other != IPS_NULL)
		note = arena_printf(&screen->details.arena,
				    "IPUs from %" PRId64 " on: models of other ranks",
				    side->first_other);
	else if (side->ranks > 1)
		note = arena_printf(&screen->details.arena, "the same in all %" PRId64 " ranks",
				    side->ranks);
	if (note)
		memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP, note);
	if (screen->ipus < screen->all_ipus)
		memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
				"further IPUs are left out: there are too many");
}

static void memory_add_groups(struct view_memory *screen, const struct view_context *context)
{
	const struct view_memory_side *s = &screen->side[0], *t = &screen->side[1];
	int from;

	memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_LIVENESS_GROUP, "By liveness");
	if (memory_is_open(screen, VIEW_MEMORY_LIVENESS_GROUP)) {
		memory_add_values(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "always live",
				  s->always, t->always);
		memory_add_values(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "not always live",
				  s->not_always, t->not_always);
		memory_add_sums(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "saved by overlap",
				memory_value_saved, NULL, NULL);
	}
	memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_CATEGORY_GROUP, "By category");
	from = screen->details.count;
	for (int c = 0; c < screen->categories; c++)
		if (memory_is_open(screen, VIEW_MEMORY_CATEGORY_GROUP))
			memory_add_values(screen, context, VIEW_MEMORY_CATEGORY_GROUP,
					  screen->category[c], s->category[c], t->category[c]);
	memory_sort_lines(screen, from);
	memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_REGION_GROUP, "By region");
	for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
		if (memory_is_open(screen, VIEW_MEMORY_REGION_GROUP))
			memory_add_values(screen, context, VIEW_MEMORY_REGION_GROUP,
					  view__memory_regions[r], s->region[r], t->region[r]);
}

#define HITS_MOST (VIEW_MEMORY_NAMES / VIEW_MEMORY_SIDES)

/* Bytes of a variable on tile number @tile of view_memory_details.together. */
struct view_hit {
	int64_t variable_id, bytes;
	int tile;
};

struct view_hits {
	struct view_hit hit[2 * HITS_MOST];
	int count;
};

static int memory_by_variable(const void *a, const void *b)
{
	const struct view_hit *x = a, *y = b;

	return SORTED_BY(x, y, variable_id);
}

static int memory_more_bytes(const void *a, const void *b)
{
	const struct view_hit *x = a, *y = b;

	return x->bytes != y->bytes ? SORTED_BY(y, x, bytes) : SORTED_BY(x, y, variable_id);
}

static void memory_truncate_hits(struct view_hits *hits)
{
	if (hits->count <= HITS_MOST)
		return;
	qsort(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]), memory_more_bytes);
	hits->count = HITS_MOST;
}

/* Find the variables on the details' tiles in a report, sorted by variable. */
static enum status memory_find_hits(struct view_memory *screen, struct view_context *context,
				    int side, struct view_hits *hits, struct err *err)
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
				memory_truncate_hits(hits);
			hits->hit[hits->count++] =
				(struct view_hit){run->variable_id, run->bytes, t};
		}
	}
	memory_truncate_hits(hits);
	qsort(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]), memory_by_variable);
	return status;
}

#define SQL_NAMES                                                                                  \
	"SELECT variable_id, variable, kind, layer, bytes, always_live FROM variables "            \
	"WHERE variable_id IN ("

/* Find or add the line of variable @name. NULL: line limit reached, or out of memory. */
static struct view_memory_line *memory_variable_line(struct view_memory *screen, const char *name)
{
	struct view_memory_details *details = &screen->details;
	char *copy;

	for (int i = details->variables_at + 1; i < details->count; i++)
		if (strcmp(details->lines[i].name, name) == 0)
			return &details->lines[i];
	copy = arena_strdup(&details->arena, name);
	return copy ? memory_add_line(screen, VIEW_MEMORY_VARIABLE, VIEW_MEMORY_VARIABLE_GROUP,
				      copy)
		    : NULL;
}

static void memory_add_bytes(struct view_memory_line *line, int column, int64_t bytes)
{
	line->value[column] =
		sat_add(line->value[column] == IPS_NULL ? 0 : line->value[column], bytes);
}

static enum status memory_add_variable(struct view_memory *screen, int side,
				       const struct view_hits *hits, const struct prof_query *query,
				       struct err *err)
{
	struct arena *arena = &screen->details.arena;
	const char *name = prof_column_text(query, 1), *kind = prof_column_text(query, 2);
	const char *layer = prof_column_text(query, 3);
	struct view_memory_line *line = memory_variable_line(screen, name ? name : "?");
	const struct view_memory_details *details = &screen->details;
	const int64_t variable_id = prof_column_int(query, 0);
	const int first = (int)sorted_place(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]),
					    offsetof(struct view_hit, variable_id), variable_id);

	if (!line)
		return err_nomem(err);
	/* Add its bytes to the columns of its tiles and of all selected tiles, and its bytes on all
	 * tiles to the last column. */
	for (int c = side; c < details->column_count; c += screen->sides) {
		const int64_t index = details->columns[c].index;

		if (index == VIEW_MEMORY_ALL)
			memory_add_bytes(line, c, prof_column_int(query, 4));
		for (int h = first; h < hits->count && hits->hit[h].variable_id == variable_id; h++)
			if (index == VIEW_MEMORY_TOGETHER ||
			    index == details->together[hits->hit[h].tile])
				memory_add_bytes(line, c, hits->hit[h].bytes);
	}
	if (line->more)
		return ST_OK;
	line->variable_id = variable_id;
	line->side = side;
	line->more = arena_printf(arena, "%s%s%s%s", kind ? kind : "",
				  prof_column_int(query, 5) == 1 ? ", always live" : "",
				  layer ? ", " : "", layer ? layer : "");
	line->layer = layer ? arena_strdup(arena, layer) : NULL;
	return line->more && (!layer || line->layer) ? ST_OK : err_nomem(err);
}

static enum status memory_read_names(struct view_memory *screen, struct prof_db *db, int side,
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
		status = memory_add_variable(screen, side, hits, query, err);
	}
	prof_query_close(query);
	return status;
}

/* Keep the largest variables; with D, of those that differ. */
static void memory_retain_largest(struct view_memory *screen, const struct view_context *context)
{
	struct view_memory_details *details = &screen->details;
	const int first = details->variables_at + 1;
	const int most = first + VIEW_MEMORY_LARGEST * details->together_count;
	const bool differ = context->differ && screen->sides > 1;
	int kept = first;

	for (int i = first; i < details->count; i++)
		if (!differ || memory_differs(screen, &details->lines[i]))
			details->lines[kept++] = details->lines[i];
	details->count = kept;
	memory_sort_lines(screen, first);
	if (details->count > most)
		details->count = most;
	if (kept == first)
		memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
				differ                        ? "none that differs"
				: details->together_count > 1 ? "none is on these tiles"
							      : "none is on this tile");
}

static enum status memory_load_variables(struct view_memory *screen, struct view_context *context,
					 struct err *err)
{
	struct view_memory_details *details = &screen->details;
	struct view_hits *hits;
	enum status status = ST_OK;

	details->variables_at = details->count;
	memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_VARIABLE_GROUP, "Largest variables");
	if (!(details->open & 1u << VIEW_MEMORY_VARIABLE_GROUP))
		return ST_OK;
	hits = arena_alloc(&details->arena, 1, sizeof(*hits));
	if (!hits)
		return err_nomem(err);
	for (int s = 0; s < screen->sides && status == ST_OK; s++) {
		status = view_cancelled(context) ? err_set(err, ST_INTERRUPTED, "stopped")
						 : memory_find_hits(screen, context, s, hits, err);
		if (status == ST_OK)
			status = memory_read_names(
				screen, s == 0 ? context->source->db : context->target->db, s, hits,
				err);
	}
	memory_retain_largest(screen, context);
	return status;
}

enum status view__memory_details(struct view_memory *screen, struct view_context *context,
				 struct err *err)
{
	struct view_memory_details *details = &screen->details;
	enum status status = ST_OK;
	const int64_t cursor = view__memory_cursor(screen);
	char text[FMT_SIZE];

	arena_reset(&details->arena);
	if (context->whole)
		details->open = VIEW_MEMORY_ALL_GROUPS;
	details->count = details->variables_at = 0;
	/* The cursor's tile, then the selected ones. In a comparison a tile takes three columns, so
	 * the sum of several tiles comes first to be visible at any width. */
	details->together_count = 0;
	details->together[details->together_count++] = cursor;
	for (int i = 0; i < screen->marks; i++) {
		const int64_t index =
			view__memory_index(screen, screen->mark[i].ipu, screen->mark[i].tile);

		if (index >= 0 && index != cursor)
			details->together[details->together_count++] = index;
	}
	details->column_count = 0;
	if (screen->sides > 1 && details->together_count > 1)
		memory_add_column(screen, VIEW_MEMORY_TOGETHER);
	for (int i = 0; i < details->together_count; i++)
		memory_add_column(screen, details->together[i]);
	memory_add_column(screen, VIEW_MEMORY_ALL);
	details->lines = arena_alloc(&details->arena, LINES_MOST, sizeof(*details->lines));
	if (!details->lines)
		return err_nomem(err);
	if (memory_is_open(screen, VIEW_MEMORY_LIVENESS_GROUP))
		status = memory_apart(screen, context, err);
	memory_add_values(screen, context, VIEW_MEMORY_NO_GROUP, "Memory excluding gaps",
			  screen->side[0].total, screen->side[1].total);
	memory_add_sums(screen, context, VIEW_MEMORY_NO_GROUP, "Must shrink by, to fit",
			memory_value_excess, NULL, NULL);
	memory_add_groups(screen, context);
	memory_add_values(screen, context, VIEW_MEMORY_NO_GROUP, "Capacity",
			  screen->side[0].capacity, screen->side[1].capacity);
	memory_add_sums(screen, context, VIEW_MEMORY_NO_GROUP, "Free", memory_value_free, NULL,
			NULL);
	if (!context->differ || screen->sides == 1) {
		struct view_memory_line *line = memory_add_line(
			screen, VIEW_MEMORY_VALUE, VIEW_MEMORY_NO_GROUP, "Place in physical order");

		/* The tile's rank in physical order (t). */
		for (int c = 0; line && c < details->column_count; c++)
			if (details->columns[c].index >= 0)
				line->value[c] = report_floor_position(
					details->columns[c].index % screen->tiles, screen->tiles);
	}
	memory_add_notes(screen);
	if (status == ST_OK)
		status = memory_load_variables(screen, context, err);
	if (status != ST_OK)
		details->count = 0;
	/* A column is as wide as its longest number and its title. */
	for (int c = 0; c < details->column_count; c++) {
		details->width[c] = VALUE_LEAST;
		for (int i = 0; i < details->count; i++) {
			const int64_t value = details->lines[i].value[c];
			const int width = (int)strlen(fmt_count(text, value)) + 1;

			if (value != IPS_NULL && width > details->width[c])
				details->width[c] = width;
		}
	}
	if (details->at >= details->count)
		details->at = details->count > 0 ? details->count - 1 : 0;
	return status;
}

/* ---- drawing --------------------------------------------------------------------------------- */

#define NAME_LEAST  16
#define NAME_GOOD   30
#define NAME_CUT    12 /* shorter names are better than hiding one of two reports */
#define DIFF_WIDTH  20 /* "+12,345 (+1.23 %)" */
#define MORE_LEAST  10 /* of a variable's kind and layer */
#define SPLIT_LEAST 38 /* of each half */

/* ---- columns --------------------------------------------------------------------------------- */

/* Layout of a pane: columns 0 .. shown - 1 of the details, and after each pair its difference. */
struct view_cells {
	int name, value; /* cells of the name and of each number */
	int shown;
	bool diff;
};

/* Width of the widest of the first @count columns. */
static int memory_value_width(const struct view_memory_details *details, int count)
{
	int width = 0;

	for (int c = 0; c < count && c < details->column_count; c++)
		width = max(details->width[c], width);
	return width;
}

static struct view_cells memory_layout_cells(const struct view_memory *screen, int width)
{
	const int count = screen->details.column_count, room = width - 2;
	const int value = memory_value_width(&screen->details, count);
	const int pair = 2 * value + DIFF_WIDTH;
	struct view_cells cells = {.diff = screen->sides > 1 && room - NAME_LEAST >= pair};

	/* Show the columns that leave room for the names, but at least the first pair. */
	if (cells.diff)
		cells.shown = 2 * ((room - NAME_GOOD) / pair);
	else if (value > 0)
		cells.shown = (room - (screen->sides > 1 ? NAME_CUT : NAME_LEAST)) / value;
	if (cells.shown < 1 + cells.diff)
		cells.shown = 1 + cells.diff;
	if (cells.shown > count)
		cells.shown = count;
	if (screen->sides > 1 && !cells.diff && cells.shown > 2)
		cells.shown = 2;
	cells.value = memory_value_width(&screen->details, cells.shown);
	cells.name =
		room - cells.shown * cells.value - (cells.diff ? cells.shown / 2 * DIFF_WIDTH : 0);
	return cells;
}

/* "0,986", "3 tiles", "all tiles" */
static const char *memory_tiles_text(const struct view_memory *screen, int64_t index, char *out,
				     size_t size)
{
	char name[FMT_SIZE];

	if (index == VIEW_MEMORY_ALL)
		snprintf(out, size, "all tiles");
	else if (index == VIEW_MEMORY_TOGETHER)
		snprintf(out, size, "%d tiles", screen->details.together_count);
	else
		snprintf(out, size, "%.20s", view__memory_name(screen, index, name));
	return out;
}

static const char *memory_column_title(const struct view_memory *screen, int column, bool alone,
				       char *out, size_t size)
{
	const struct view_memory_tile *tile = &screen->details.columns[column];
	char name[32];

	memory_tiles_text(screen, tile->index, name, sizeof(name));
	if (screen->sides > 1 && alone)
		snprintf(out, size, "%s", tile->side == 0 ? "Source" : "Target");
	else if (screen->sides > 1)
		snprintf(out, size, "%c %s", tile->side == 0 ? 'S' : 'T', name);
	else
		snprintf(out, size, "%s%s", tile->index < 0 ? "" : "tile ", name);
	return out;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *memory_diff_text(int64_t source, int64_t target, char out[FMT_SIZE + 32])
{
	char number[FMT_SIZE], share[FMT_SIZE];
	int64_t diff;

	if (source == IPS_NULL || target == IPS_NULL ||
	    __builtin_sub_overflow(target, source, &diff))
		return "-";
	if (diff == 0)
		return "0";
	snprintf(out, FMT_SIZE + 32, "%s%s (%s)", diff > 0 ? "+" : "", fmt_count(number, diff),
		 fmt_percent(share, fabs((double)diff) /
					    fmax(fabs((double)source), fabs((double)target))));
	return out;
}

static void memory_draw_line(const struct view_memory *screen, struct view_pane *pane,
			     const struct view_memory_line *line, int y,
			     const struct view_cells *cells, bool here)
{
	const bool open = line->group >= 0 && screen->details.open & 1u << line->group;
	const enum view_style style = here                              ? VIEW_CURSOR
				      : line->kind == VIEW_MEMORY_GROUP ? VIEW_BOLD
				      : line->kind == VIEW_MEMORY_NOTE  ? VIEW_DIM
									: VIEW_NORMAL;
	char brief[VIEW_PLACE_NAME], text[FMT_SIZE + 32];
	int x = 2 + 2 * line->depth, used;

	if (here)
		view_fill(pane, 0, y, pane->rect.width, VIEW_CURSOR);
	if (line->kind == VIEW_MEMORY_GROUP) {
		view_glyphs(pane, x, y, style, open ? VIEW_GLYPH_DOWN : VIEW_GLYPH_SELECT, 1);
		view_text_cut(pane, x + 2, y, pane->rect.width - x - 2, style, line->name);
		return;
	}
	if (line->kind == VIEW_MEMORY_NOTE) {
		view_text_cut(pane, x, y, pane->rect.width - x, style, line->name);
		return;
	}
	used = cells->name + 2 - x - 1;
	/* Variables of one layer differ at the ends of their names. */
	used = (line->kind == VIEW_MEMORY_VARIABLE ? view_text_middle : view_text_cut)(
		pane, x, y, used, style, view__memory_brief(line->name, used, brief));
	x += used + 2;
	if (line->more && cells->name + 2 - x >= MORE_LEAST)
		view_text_cut(pane, x, y, cells->name + 2 - x - 1, here ? style : VIEW_DIM,
			      line->more);
	x = 2 + cells->name;
	for (int c = 0; c < cells->shown; c++, x += cells->value) {
		const int64_t value = line->value[c], before = c ? line->value[c - 1] : value;

		view_text_right(pane, x, y, cells->value, style,
				value == IPS_NULL ? "-" : fmt_count(text, value));
		if (!cells->diff || c % 2 == 0)
			continue;
		view_text_right(pane, x + cells->value, y, DIFF_WIDTH,
				style == VIEW_CURSOR || before == value ? style : VIEW_BAD,
				memory_diff_text(before, value, text));
		x += DIFF_WIDTH;
	}
}

/* Draw lines @from .. @to - 1, scrolled so that the cursor's line is visible. */
static void memory_draw_lines(const struct view_memory *screen, const struct view_context *context,
			      struct view_pane *pane, int from, int to, const char *title)
{
	const struct view_memory_details *details = &screen->details;
	/* The last column is reserved for the "more" mark. */
	const struct view_cells cells = memory_layout_cells(screen, pane->rect.width - 1);
	const int rows = pane->rect.height - 1;
	const bool cursor = details->active || screen->view == VIEW_MEMORY_CURVE;
	int first = from;
	bool alone;
	char text[64];
	int x;

	if (details->at >= from && details->at < to && details->at >= from + rows)
		first = details->at - rows + 1;

	alone = cells.shown <= 2;
	x = 2 + cells.name;
	view_text_cut(pane, 2, 0, cells.name, VIEW_DIM, title);
	for (int c = 0; c < cells.shown; c++, x += cells.value) {
		view_text_right(pane, x, 0, cells.value, c < screen->sides ? VIEW_KEY : VIEW_DIM,
				memory_column_title(screen, c, alone, text, sizeof(text)));
		if (!cells.diff || c % 2 == 0)
			continue;
		view_text_right(pane, x + cells.value, 0, DIFF_WIDTH, VIEW_DIM, "Diff");
		x += DIFF_WIDTH;
	}
	for (int i = 0; i < rows && first + i < to; i++)
		memory_draw_line(screen, pane, &details->lines[first + i], 1 + i, &cells,
				 details->active && first + i == details->at && !context->whole);
	if (cursor && !details->active && !context->whole && details->at >= first &&
	    details->at < to && details->at - first < rows)
		view_glyphs(pane, 0, 1 + details->at - first, VIEW_KEY, VIEW_GLYPH_SELECT, 1);
	if (first + rows < to && rows > 0)
		view_glyphs(pane, pane->rect.width - 1, rows, VIEW_DIM, VIEW_GLYPH_DOWN, 1);
}

void view__memory_draw_details(const struct view_memory *screen, const struct view_context *context,
			       struct view_pane *pane)
{
	const struct view_memory_details *details = &screen->details;
	const int half = (pane->rect.width - 1) / 2, height = pane->rect.height;
	const int value = memory_value_width(details, details->column_count);
	const int needed = NAME_LEAST + 3 +
			   (screen->sides > 1 ? 2 * value + DIFF_WIDTH
					      : value * (details->column_count > 2 ? 3 : 1));
	char title[64] = "bytes", name[32];
	struct view_pane part;

	if (height < 2)
		return;
	if (screen->sides > 1 && details->column_count > 0)
		snprintf(title, sizeof(title), "bytes, %s%s",
			 details->columns[0].index < 0 ? "" : "tile ",
			 memory_tiles_text(screen, details->columns[0].index, name, sizeof(name)));
	if (half < SPLIT_LEAST || half < needed || context->whole ||
	    screen->areas.rule.height == 0) {
		memory_draw_lines(screen, context, pane, 0, details->count, title);
		return;
	}
	part = view_pane_sub(pane, (struct view_rect){0, 0, half, height});
	memory_draw_lines(screen, context, &part, 0, details->variables_at, title);
	part = view_pane_sub(pane,
			     (struct view_rect){half + 1, 0, pane->rect.width - half - 1, height});
	memory_draw_lines(screen, context, &part, details->variables_at, details->count, title);
}
