/*
 * What tiles hold, as lines that open: exact bytes by liveness, category and region, and their
 * largest variables; a column for each tile and for all. Comparing, one for each report: the
 * selected tiles together, each of them, and all.
 *
 * Threading: the worker's. Ownership: lines and texts are the details' arena's, until the next
 * load.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sat.h"
#include "common/sorted.h"
#include "reports/named/report_floor.h"
#include "viewer/memory/view_memory_internal.h"

#define LINES_MOST  (VIEW_MEMORY_CATEGORIES + VIEW_MEMORY_REGIONS + 16 + VIEW_MEMORY_NAMES)
#define VALUE_LEAST 12 /* "tile 63,1471" */

/* ---- columns --------------------------------------------------------------------------------- */

/* Comparing, of each report. */
static void view_add_column(struct view_memory *screen, int64_t index)
{
	struct view_memory_details *details = &screen->details;

	if (details->column_count + screen->sides > VIEW_MEMORY_COLUMNS)
		return;
	for (int s = 0; s < screen->sides; s++)
		details->columns[details->column_count++] = (struct view_memory_tile){index, s};
}

/* The cursor's tile, then the selected ones. */
static void view_gather(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	const int64_t cursor = view__memory_cursor(screen);

	details->together_count = 0;
	details->together[details->together_count++] = cursor;
	for (int i = 0; i < screen->marks; i++) {
		const int64_t index =
			view__memory_index(screen, screen->mark[i].ipu, screen->mark[i].tile);

		if (index >= 0 && index != cursor)
			details->together[details->together_count++] = index;
	}
}

/*
 * Comparing, a tile takes three columns, so that their sum comes first: it is there at any width.
 */
static void view_make_columns(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;

	view_gather(screen);
	details->column_count = 0;
	if (screen->sides > 1 && details->together_count > 1)
		view_add_column(screen, VIEW_MEMORY_TOGETHER);
	for (int i = 0; i < details->together_count; i++)
		view_add_column(screen, details->together[i]);
	view_add_column(screen, VIEW_MEMORY_ALL);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool view_open_group(const struct view_memory *screen, int group)
{
	return screen->details.open & (1u << group);
}

struct view_memory_line *view__memory_add_line(struct view_memory *screen,
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

typedef int64_t (*view_of_tile)(const struct view_memory *screen, int side, const int64_t *bytes,
				int64_t index);

static int64_t view_held(const struct view_memory *screen, int side, const int64_t *bytes,
			 int64_t index)
{
	(void)screen, (void)side;
	return bytes ? bytes[index] : 0;
}

static int64_t view_free(const struct view_memory *screen, int side, const int64_t *bytes,
			 int64_t index)
{
	(void)bytes;
	return sat_sub(screen->side[side].capacity[index], screen->side[side].total[index]);
}

static int64_t view_excess(const struct view_memory *screen, int side, const int64_t *bytes,
			   int64_t index)
{
	(void)bytes;
	return view__memory_excess(&screen->side[side], index);
}

static int64_t view_saved(const struct view_memory *screen, int side, const int64_t *bytes,
			  int64_t index)
{
	(void)bytes;
	return view__memory_saved(screen, side, index);
}

/* Of all tiles that are shown; one of which a report says nothing has nothing. */
static int64_t view_sum_all(const struct view_memory *screen, int side, view_of_tile of,
			    const int64_t *bytes)
{
	const int64_t first = view__memory_first(screen), end = first + view__memory_shown(screen);
	int64_t sum = 0;

	if (of == view_saved)
		return view__memory_saved_of_all(screen, side);
	if (of == view_held)
		for (int64_t i = first; bytes && i < end; i++)
			sum = sat_add(sum, bytes[i]);
	else
		for (int64_t i = first; i < end; i++)
			sum = sat_add(sum, of(screen, side, bytes, i));
	return sum;
}

/* Of a tile, or of several together; IPS_NULL: that report has none of them. */
static int64_t view_sum(const struct view_memory *screen, const struct view_memory_tile *column,
			view_of_tile of, const int64_t *bytes)
{
	const struct view_memory_details *details = &screen->details;
	const int side = column->side;
	const bool together = column->index == VIEW_MEMORY_TOGETHER;
	const int64_t *tiles = together ? details->together : &column->index;
	const int count = together ? details->together_count : 1;
	int64_t sum = IPS_NULL;

	if (column->index == VIEW_MEMORY_ALL)
		return view_sum_all(screen, column->side, of, bytes);
	for (int i = 0; i < count; i++)
		if (screen->side[side].capacity[tiles[i]] > 0)
			sum = sat_add(sum == IPS_NULL ? 0 : sum, of(screen, side, bytes, tiles[i]));
	return sum;
}

bool view__memory_differs(const struct view_memory *screen, const struct view_memory_line *line)
{
	for (int c = 0; c + 1 < screen->details.column_count; c += 2)
		if (screen->details.columns[c].index != VIEW_MEMORY_ALL &&
		    line->value[c] != line->value[c + 1])
			return true;
	return false;
}

/* A line of what @of says of the arrays @source and @target; gone where that is nothing. */
static void view_add_sums(struct view_memory *screen, const struct view_context *context, int group,
			  const char *name, view_of_tile of, const int64_t *source,
			  const int64_t *target)
{
	const int64_t *const arrays[] = {source, target};
	struct view_memory_line *line =
		view__memory_add_line(screen, VIEW_MEMORY_VALUE, group, name);
	bool some = of == view_free;

	if (!line)
		return;
	for (int c = 0; c < screen->details.column_count; c++) {
		const struct view_memory_tile *column = &screen->details.columns[c];

		line->value[c] = view_sum(screen, column, of, arrays[column->side]);
		/* Where other tiles are over, these have nothing to shrink. */
		if (of != view_excess || column->index != VIEW_MEMORY_ALL)
			some = some || line->value[c] > 0;
	}
	/* Gone, too, where both reports have the same of it, if that is asked for. */
	if (!some || (context->differ && screen->sides > 1 && !view__memory_differs(screen, line)))
		screen->details.count--;
}

static void view_add_values(struct view_memory *screen, const struct view_context *context,
			    int group, const char *name, const int64_t *source,
			    const int64_t *target)
{
	view_add_sums(screen, context, group, name, view_held, source, target);
}

/* Of the first tile that stands there: comparing, the greater of both. */
static int64_t view_first(const struct view_memory_line *line, bool both)
{
	return both && line->value[1] > line->value[0] ? line->value[1] : line->value[0];
}

static int view_compare(const void *a, const void *b, bool both)
{
	const struct view_memory_line *x = a, *y = b;
	int64_t most_x = view_first(x, both), most_y = view_first(y, both);

	for (int c = 0; c < VIEW_MEMORY_COLUMNS && most_x == most_y; c++) {
		most_x = x->value[c];
		most_y = y->value[c];
	}
	if (most_x != most_y)
		return SORTED_ORDER(most_y, most_x);
	return strcmp(x->name, y->name);
}

static int view_more_first(const void *a, const void *b)
{
	return view_compare(a, b, false);
}

static int view_more_of_both_first(const void *a, const void *b)
{
	return view_compare(a, b, true);
}

void view__memory_sort_lines(struct view_memory *screen, int from)
{
	qsort(screen->details.lines + from, (size_t)(screen->details.count - from),
	      sizeof(*screen->details.lines),
	      screen->sides > 1 ? view_more_of_both_first : view_more_first);
}

/* Where the cursor is when it walks the tiles in physical order (t). */
static void view_add_position(struct view_memory *screen)
{
	struct view_memory_details *details = &screen->details;
	struct view_memory_line *line = view__memory_add_line(
		screen, VIEW_MEMORY_VALUE, VIEW_MEMORY_NO_GROUP, "Place in physical order");

	for (int c = 0; line && c < details->column_count; c++)
		if (details->columns[c].index >= 0)
			line->value[c] = report_floor_position(
				details->columns[c].index % screen->tiles, screen->tiles);
}

static void view_add_room(struct view_memory *screen, const struct view_context *context)
{
	view_add_values(screen, context, VIEW_MEMORY_NO_GROUP, "Capacity", screen->side[0].capacity,
			screen->side[1].capacity);
	view_add_sums(screen, context, VIEW_MEMORY_NO_GROUP, "Free", view_free, NULL, NULL);
	if (!context->differ || screen->sides == 1)
		view_add_position(screen);
}

static void view_add_notes(struct view_memory *screen)
{
	const struct view_memory_side *side = &screen->side[0];
	const char *note = NULL;

	view__memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
			      "gaps: none in this model");
	view__memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
			      "vertices, exchanges: not by tile; see Programs");
	if (side->first_other != IPS_NULL)
		note = arena_printf(&screen->details.arena,
				    "IPUs from %" PRId64 " on: models of other ranks",
				    side->first_other);
	else if (side->ranks > 1)
		note = arena_printf(&screen->details.arena, "the same in all %" PRId64 " ranks",
				    side->ranks);
	if (note)
		view__memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP, note);
	if (screen->ipus < screen->all_ipus)
		view__memory_add_line(screen, VIEW_MEMORY_NOTE, VIEW_MEMORY_NO_GROUP,
				      "further IPUs are left out: there are too many");
}

static void view_add_liveness(struct view_memory *screen, const struct view_context *context)
{
	const struct view_memory_side *s = &screen->side[0], *t = &screen->side[1];

	view__memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_LIVENESS_GROUP, "By liveness");
	if (!view_open_group(screen, VIEW_MEMORY_LIVENESS_GROUP))
		return;
	view_add_values(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "always live", s->always,
			t->always);
	view_add_values(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "not always live",
			s->not_always, t->not_always);
	view_add_sums(screen, context, VIEW_MEMORY_LIVENESS_GROUP, "saved by overlap", view_saved,
		      NULL, NULL);
}

static void view_add_groups(struct view_memory *screen, const struct view_context *context)
{
	const struct view_memory_side *s = &screen->side[0], *t = &screen->side[1];
	int from;

	view_add_liveness(screen, context);
	view__memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_CATEGORY_GROUP, "By category");
	from = screen->details.count;
	for (int c = 0; c < screen->categories; c++)
		if (view_open_group(screen, VIEW_MEMORY_CATEGORY_GROUP))
			view_add_values(screen, context, VIEW_MEMORY_CATEGORY_GROUP,
					screen->category[c], s->category[c], t->category[c]);
	view__memory_sort_lines(screen, from);
	view__memory_add_line(screen, VIEW_MEMORY_GROUP, VIEW_MEMORY_REGION_GROUP, "By region");
	for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
		if (view_open_group(screen, VIEW_MEMORY_REGION_GROUP))
			view_add_values(screen, context, VIEW_MEMORY_REGION_GROUP,
					view__memory_regions[r], s->region[r], t->region[r]);
}

/* Columns are as wide as their longest number and a title need. */
static void view_measure(struct view_memory_details *details)
{
	char text[FMT_SIZE];

	for (int c = 0; c < details->column_count; c++) {
		details->width[c] = VALUE_LEAST;
		for (int i = 0; i < details->count; i++) {
			const int64_t value = details->lines[i].value[c];
			const int width = (int)strlen(fmt_count(text, value)) + 1;

			if (value != IPS_NULL && width > details->width[c])
				details->width[c] = width;
		}
	}
}

enum status view__memory_details(struct view_memory *screen, struct view_context *context,
				 struct err *err)
{
	struct view_memory_details *details = &screen->details;
	enum status status = ST_OK;

	arena_reset(&details->arena);
	if (context->whole)
		details->open = VIEW_MEMORY_ALL_GROUPS;
	details->count = details->variables_at = 0;
	view_make_columns(screen);
	details->lines = arena_alloc(&details->arena, LINES_MOST, sizeof(*details->lines));
	if (!details->lines)
		return err_nomem(err);
	if (view_open_group(screen, VIEW_MEMORY_LIVENESS_GROUP))
		status = view__memory_apart(screen, context, err);
	view_add_values(screen, context, VIEW_MEMORY_NO_GROUP, "Memory excluding gaps",
			screen->side[0].total, screen->side[1].total);
	view_add_sums(screen, context, VIEW_MEMORY_NO_GROUP, "Must shrink by, to fit", view_excess,
		      NULL, NULL);
	view_add_groups(screen, context);
	view_add_room(screen, context);
	view_add_notes(screen);
	if (status == ST_OK)
		status = view__memory_variables(screen, context, err);
	if (status != ST_OK)
		details->count = 0;
	view_measure(details);
	if (details->at >= details->count)
		details->at = details->count > 0 ? details->count - 1 : 0;
	return status;
}
