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

/* A number of bytes of a tile, read or computed. */
static int64_t memory_number(const struct view_memory *screen, int side, int number, int64_t index)
{
	const struct view_memory_details *details = &screen->details;
	int64_t *const *bytes = screen->side[side].bytes;

	switch (number) {
	case VIEW_MEMORY_FREE:
		return sat_sub(bytes[VIEW_MEMORY_CAPACITY][index], bytes[VIEW_MEMORY_TOTAL][index]);
	case VIEW_MEMORY_EXCESS:
		return view__memory_excess(screen, side, index);
	case VIEW_MEMORY_SAVED:
		for (int t = 0; t < details->together_count; t++)
			if (details->together[t] == index)
				return max(sat_sub(details->apart[side][t],
						   bytes[VIEW_MEMORY_NOT_ALWAYS_LIVE][index]),
					   0);
		return 0;
	default:
		return view__memory_bytes(screen, side, number, index);
	}
}

/* Sum over all shown tiles; a tile that the report lacks counts as 0. */
static int64_t memory_sum_all(const struct view_memory *screen, int side, int number)
{
	const int64_t first = view__memory_first(screen), end = first + view__memory_shown(screen);
	int64_t sum = 0;

	if (number < VIEW_MEMORY_READ)
		return view__memory_all(screen, side, number);
	if (number == VIEW_MEMORY_SAVED) {
		for (int64_t i = first; i < end; i += screen->tiles)
			sum = sat_add(sum, screen->side[side].apart[i / screen->tiles]);
		return max(
			sat_sub(sum, view__memory_all(screen, side, VIEW_MEMORY_NOT_ALWAYS_LIVE)),
			0);
	}
	for (int64_t i = first; i < end; i++)
		sum = sat_add(sum, memory_number(screen, side, number, i));
	return sum;
}

/* Sum over the tiles of a column; IPS_NULL: the report has none of them. */
static int64_t memory_details_sum(const struct view_memory *screen,
				  const struct view_memory_tile *column, int number)
{
	const struct view_memory_details *details = &screen->details;
	const int side = column->side;
	const bool together = column->index == VIEW_MEMORY_TOGETHER;
	const int64_t *tiles = together ? details->together : &column->index;
	const int count = together ? details->together_count : 1;
	int64_t sum = IPS_NULL;

	if (column->index == VIEW_MEMORY_ALL)
		return memory_sum_all(screen, side, number);
	for (int i = 0; i < count; i++)
		if (view__memory_bytes(screen, side, VIEW_MEMORY_CAPACITY, tiles[i]) > 0)
			sum = sat_add(sum == IPS_NULL ? 0 : sum,
				      memory_number(screen, side, number, tiles[i]));
	return sum;
}

/* Does D show only what differs? */
static bool memory_differ(const struct view_memory *screen)
{
	return screen->context->differ && screen->sides > 1;
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

/* Add a line of a number. Omit it if all values are 0 (except for what is free) and, with D, if
 * both reports are equal. */
static void memory_add_values(struct view_memory *screen, int group, const char *name, int number)
{
	struct view_memory_line *line = memory_add_line(screen, VIEW_MEMORY_VALUE, group, name);
	bool some = number == VIEW_MEMORY_FREE;

	if (!line)
		return;
	for (int c = 0; c < screen->details.column_count; c++) {
		const struct view_memory_tile *column = &screen->details.columns[c];

		line->value[c] = memory_details_sum(screen, column, number);
		/* Tiles that fit need not shrink, even if others do not fit. */
		if (number != VIEW_MEMORY_EXCESS || column->index != VIEW_MEMORY_ALL)
			some = some || line->value[c] > 0;
	}
	if (!some || (memory_differ(screen) && !memory_differs(screen, line)))
		screen->details.count--;
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

static void memory_add_note(struct view_memory *screen, const char *note)
{
	memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP, note);
}

static void memory_add_notes(struct view_memory *screen)
{
	const struct view_memory_side *side = &screen->side[0];
	const char *note = NULL;

	memory_add_note(screen, "gaps: none in this model");
	memory_add_note(screen, "vertices, exchanges: not by tile; see Programs");
	if (side->first_other != IPS_NULL)
		note = arena_printf(&screen->details.arena,
				    "IPUs from %" PRId64 " on: models of other ranks",
				    side->first_other);
	else if (side->ranks > 1)
		note = arena_printf(&screen->details.arena, "the same in all %" PRId64 " ranks",
				    side->ranks);
	if (note)
		memory_add_note(screen, note);
	if (screen->ipus < screen->all_ipus)
		memory_add_note(screen, "further IPUs are left out: there are too many");
}

static void memory_add_groups(struct view_memory *screen)
{
	int group = VIEW_MEMORY_LIVENESS_GROUP, from;

	memory_add_line(screen, VIEW_MEMORY_GROUP, group, "By liveness");
	if (memory_is_open(screen, group)) {
		memory_add_values(screen, group, "always live", VIEW_MEMORY_ALWAYS_LIVE);
		memory_add_values(screen, group, "not always live", VIEW_MEMORY_NOT_ALWAYS_LIVE);
		memory_add_values(screen, group, "saved by overlap", VIEW_MEMORY_SAVED);
	}
	group = VIEW_MEMORY_CATEGORY_GROUP;
	memory_add_line(screen, VIEW_MEMORY_GROUP, group, "By category");
	from = screen->details.count;
	for (int c = 0; c < screen->categories && memory_is_open(screen, group); c++)
		memory_add_values(screen, group, screen->category[c], VIEW_MEMORY_CATEGORY + c);
	memory_sort_lines(screen, from);
	group = VIEW_MEMORY_REGION_GROUP;
	memory_add_line(screen, VIEW_MEMORY_GROUP, group, "By region");
	for (int r = 0; r < VIEW_MEMORY_REGIONS && memory_is_open(screen, group); r++)
		memory_add_values(screen, group, view__memory_regions[r], VIEW_MEMORY_REGION + r);
}

/* ---- variables ------------------------------------------------------------------------------- */

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
static void memory_find_hits(struct view_memory *screen, int side, struct view_hits *hits)
{
	const struct view_memory_details *details = &screen->details;
	const struct view_memory_run *run;

	hits->count = 0;
	for (int t = 0; t < details->together_count; t++) {
		const int64_t index = details->together[t];

		for (run = NULL; (run = view__memory_next_run(screen, side, index, run));) {
			if (hits->count == 2 * HITS_MOST)
				memory_truncate_hits(hits);
			hits->hit[hits->count++] =
				(struct view_hit){run->variable_id, run->bytes, t};
		}
	}
	memory_truncate_hits(hits);
	qsort(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]), memory_by_variable);
}

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

static void memory_add_variable(struct view_memory *screen, int side, const struct view_hits *hits,
				const struct prof_query *query)
{
	const struct view_memory_details *details = &screen->details;
	struct arena *arena = &screen->details.arena;
	const char *name = prof_column_text(query, 1), *kind = prof_column_text(query, 2);
	const char *layer = prof_column_text(query, 3);
	struct view_memory_line *line = memory_variable_line(screen, name ? name : "?");
	const int64_t variable_id = prof_column_int(query, 0);
	const int first = (int)sorted_place(hits->hit, (size_t)hits->count, sizeof(hits->hit[0]),
					    offsetof(struct view_hit, variable_id), variable_id);

	if (!line) {
		err_nomem(&screen->err);
		return;
	}
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
		return;
	line->variable_id = variable_id;
	line->side = side;
	line->more = arena_printf(arena, "%s%s%s%s", kind ? kind : "",
				  prof_column_int(query, 5) == 1 ? ", always live" : "",
				  layer ? ", " : "", layer ? layer : "");
	line->layer = layer ? arena_strdup(arena, layer) : NULL;
	if (!line->more || (layer && !line->layer))
		err_nomem(&screen->err);
}

/* Add the lines of the variables that are on the details' tiles of a report. */
static void memory_add_variables(struct view_memory *screen, int side, struct view_hits *hits)
{
	struct err *err = &screen->err;
	struct prof_query *query;
	struct str sql = {0};

	if (!err_stuck(err) && view_cancelled(screen->context))
		err_set(err, ST_INTERRUPTED, "stopped");
	if (err_stuck(err))
		return;
	memory_find_hits(screen, side, hits);
	str_add(&sql,
		"SELECT variable_id, variable, kind, layer, bytes, always_live FROM variables "
		"WHERE variable_id IN (");
	for (int h = 0; h < hits->count; h++)
		if (h == 0 || hits->hit[h].variable_id != hits->hit[h - 1].variable_id)
			str_addf(&sql, "%s%" PRId64, h ? "," : "", hits->hit[h].variable_id);
	str_add(&sql, ")");
	if (sql.failed && !err_stuck(err))
		err_nomem(err);
	query = view_query_open(view__memory_db(screen, side), str_peek(&sql), err);
	str_free(&sql);
	while (view_query_next(query, err))
		memory_add_variable(screen, side, hits, query);
	prof_query_close(query);
}

/* Add the largest variables; with D, of those that differ. */
static void memory_load_variables(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	const int first = details->count + 1;
	const int most = first + VIEW_MEMORY_LARGEST * details->together_count;
	const bool differ = memory_differ(screen);
	struct view_hits *hits;
	int kept = first;

	details->variables_at = details->count;
	memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_VARIABLE_GROUP, "Largest variables");
	if (!memory_is_open(screen, VIEW_MEMORY_VARIABLE_GROUP))
		return;
	hits = view_alloc(&details->arena, 1, sizeof(*hits), &screen->err);
	for (int s = 0; s < screen->sides && hits; s++)
		memory_add_variables(screen, s, hits);
	for (int i = first; i < details->count; i++)
		if (!differ || memory_differs(screen, &details->lines[i]))
			details->lines[kept++] = details->lines[i];
	details->count = kept;
	memory_sort_lines(screen, first);
	details->count = min(details->count, most);
	if (kept == first)
		memory_add_note(screen, differ                        ? "none that differs"
					: details->together_count > 1 ? "none is on these tiles"
								      : "none is on this tile");
}

/* ---- the details ----------------------------------------------------------------------------- */

/* Add a column for @index; in a comparison one per report. */
static void memory_add_column(struct view_memory *screen, int64_t index)
{
	struct view_memory_details *details = &screen->details;

	if (details->column_count + screen->sides > VIEW_MEMORY_COLUMNS)
		return;
	for (int s = 0; s < screen->sides; s++)
		details->columns[details->column_count++] = (struct view_memory_tile){index, s};
}

/* Choose the columns: the cursor's tile, the selected ones, and all. In a comparison a tile takes
 * three columns, so the sum of several tiles comes first to be visible at any width. */
static void memory_choose_columns(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	const int64_t cursor = view__memory_cursor(screen);

	details->together_count = details->column_count = 0;
	details->together[details->together_count++] = cursor;
	for (int i = 0; i < screen->marks; i++) {
		const int64_t index = view__memory_mark(screen, i);

		if (index >= 0 && index != cursor)
			details->together[details->together_count++] = index;
	}
	if (screen->sides > 1 && details->together_count > 1)
		memory_add_column(screen, VIEW_MEMORY_TOGETHER);
	for (int i = 0; i < details->together_count; i++)
		memory_add_column(screen, details->together[i]);
	memory_add_column(screen, VIEW_MEMORY_ALL);
}

/* Compute details->apart of the selected tiles, for what overlap saves. */
static void memory_sum_apart(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	const struct view_memory_run *run;

	for (int s = 0; s < screen->sides; s++)
		for (int t = 0; t < details->together_count; t++) {
			int64_t *apart = &details->apart[s][t];

			*apart = 0;
			for (run = NULL;
			     (run = view__memory_next_run(screen, s, details->together[t], run));)
				*apart = sat_add(*apart, run->passing ? run->bytes : 0);
		}
}

void view__memory_details(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	char text[FMT_SIZE];

	if (err_stuck(&screen->err))
		return;
	arena_reset(&details->arena);
	if (screen->context->whole)
		details->open = VIEW_MEMORY_ALL_GROUPS;
	details->count = details->variables_at = 0;
	memory_choose_columns(screen);
	details->lines =
		view_alloc(&details->arena, LINES_MOST, sizeof(*details->lines), &screen->err);
	if (!details->lines)
		return;
	if (memory_is_open(screen, VIEW_MEMORY_LIVENESS_GROUP))
		memory_sum_apart(screen);
	memory_add_values(screen, VIEW_MEMORY_NO_GROUP, "Memory excluding gaps", VIEW_MEMORY_TOTAL);
	memory_add_values(screen, VIEW_MEMORY_NO_GROUP, "Must shrink by, to fit",
			  VIEW_MEMORY_EXCESS);
	memory_add_groups(screen);
	memory_add_values(screen, VIEW_MEMORY_NO_GROUP, "Capacity", VIEW_MEMORY_CAPACITY);
	memory_add_values(screen, VIEW_MEMORY_NO_GROUP, "Free", VIEW_MEMORY_FREE);
	if (!memory_differ(screen)) {
		struct view_memory_line *line = memory_add_line(
			screen, VIEW_MEMORY_VALUE, VIEW_MEMORY_NO_GROUP, "Place in physical order");

		/* The tile's rank in physical order (t). */
		for (int c = 0; line && c < details->column_count; c++)
			if (details->columns[c].index >= 0)
				line->value[c] = report_floor_position(
					details->columns[c].index % screen->tiles, screen->tiles);
	}
	memory_add_notes(screen);
	if (!err_stuck(&screen->err))
		memory_load_variables(screen);
	if (err_stuck(&screen->err))
		details->count = 0;
	/* A column is as wide as its longest number and its title. */
	for (int c = 0; c < details->column_count; c++) {
		details->width[c] = VALUE_LEAST;
		for (int i = 0; i < details->count; i++) {
			const int64_t value = details->lines[i].value[c];
			const int width = (int)strlen(fmt_count(text, value)) + 1;

			if (value != IPS_NULL)
				details->width[c] = max(width, details->width[c]);
		}
	}
	details->at = max(0, min(details->at, details->count - 1));
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
	cells.shown = min(max(cells.shown, 1 + cells.diff), count);
	if (screen->sides > 1 && !cells.diff)
		cells.shown = min(cells.shown, 2);
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
	const bool open = line->group >= 0 && memory_is_open(screen, line->group);
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
	const bool here = details->at >= from && details->at < to;
	const int first = here ? max(from, details->at - rows + 1) : from;
	char text[64];
	int x = 2 + cells.name;

	view_text_cut(pane, 2, 0, cells.name, VIEW_DIM, title);
	for (int c = 0; c < cells.shown; c++, x += cells.value) {
		view_text_right(
			pane, x, 0, cells.value, c < screen->sides ? VIEW_KEY : VIEW_DIM,
			memory_column_title(screen, c, cells.shown <= 2, text, sizeof(text)));
		if (!cells.diff || c % 2 == 0)
			continue;
		view_text_right(pane, x + cells.value, 0, DIFF_WIDTH, VIEW_DIM, "Diff");
		x += DIFF_WIDTH;
	}
	for (int i = 0; i < rows && first + i < to; i++)
		memory_draw_line(screen, pane, &details->lines[first + i], 1 + i, &cells,
				 details->active && first + i == details->at && !context->whole);
	if (screen->view == VIEW_MEMORY_CURVE && !details->active && !context->whole && here)
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
