/*
 * Drawing the details of tiles: names, and a column of bytes for each tile; where it is wide the
 * variables stand beside the rest.
 *
 * Threading: the terminal's. Ownership: none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/minmax.h"
#include "viewer/memory/view_memory_internal.h"

#define NAME_LEAST  16
#define NAME_GOOD   30
#define NAME_CUT    12 /* rather than not to see both reports */
#define DIFF_WIDTH  20 /* "+12,345 (+1.23 %)" */
#define MORE_LEAST  10 /* of a variable's kind and layer */
#define SPLIT_LEAST 38 /* of each half */

/* ---- columns --------------------------------------------------------------------------------- */

/* What goes into a pane: columns 0 .. shown - 1 of the details; after each pair its difference. */
struct view_cells {
	int name, value; /* cells of the name, and of each number */
	int shown;
	bool diff;
};

/* Of the first @count columns. */
static int view_value_width(const struct view_memory_details *details, int count)
{
	int width = 0;

	for (int c = 0; c < count && c < details->column_count; c++)
		width = max(details->width[c], width);
	return width;
}

static struct view_cells view_cells_of(const struct view_memory *screen, int width)
{
	const int count = screen->details.column_count, room = width - 2;
	const int value = view_value_width(&screen->details, count);
	const int pair = 2 * value + DIFF_WIDTH;
	struct view_cells cells = {.diff = screen->sides > 1 && room - NAME_LEAST >= pair};

	/* Not so many that names are cut: but for the first pair. */
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
	cells.value = view_value_width(&screen->details, cells.shown);
	cells.name =
		room - cells.shown * cells.value - (cells.diff ? cells.shown / 2 * DIFF_WIDTH : 0);
	return cells;
}

/* "0,986", "3 tiles", "all tiles" */
static const char *view_tiles_text(const struct view_memory *screen, int64_t index, char *out,
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

static const char *view_column_title(const struct view_memory *screen, int column, bool alone,
				     char *out, size_t size)
{
	const struct view_memory_tile *tile = &screen->details.columns[column];
	char name[32];

	view_tiles_text(screen, tile->index, name, sizeof(name));
	if (screen->sides > 1 && alone)
		snprintf(out, size, "%s", tile->side == 0 ? "Source" : "Target");
	else if (screen->sides > 1)
		snprintf(out, size, "%c %s", tile->side == 0 ? 'S' : 'T', name);
	else
		snprintf(out, size, "%s%s", tile->index < 0 ? "" : "tile ", name);
	return out;
}

static void view_draw_titles(const struct view_memory *screen, struct view_pane *pane,
			     const struct view_cells *cells, const char *title)
{
	const bool alone = cells->shown <= 2;
	char text[64];
	int x = 2 + cells->name;

	view_text_cut(pane, 2, 0, cells->name, VIEW_DIM, title);
	for (int c = 0; c < cells->shown; c++, x += cells->value) {
		view_text_right(pane, x, 0, cells->value, c < screen->sides ? VIEW_KEY : VIEW_DIM,
				view_column_title(screen, c, alone, text, sizeof(text)));
		if (!cells->diff || c % 2 == 0)
			continue;
		view_text_right(pane, x + cells->value, 0, DIFF_WIDTH, VIEW_DIM, "Diff");
		x += DIFF_WIDTH;
	}
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *view_diff_text(int64_t source, int64_t target, char out[FMT_SIZE + 32])
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

static void view_draw_numbers(struct view_pane *pane, const struct view_memory_line *line, int y,
			      const struct view_cells *cells, enum view_style style)
{
	char text[FMT_SIZE + 32];
	int x = 2 + cells->name;

	for (int c = 0; c < cells->shown; c++, x += cells->value) {
		const int64_t value = line->value[c], before = c ? line->value[c - 1] : value;

		view_text_right(pane, x, y, cells->value, style,
				value == IPS_NULL ? "-" : fmt_count(text, value));
		if (!cells->diff || c % 2 == 0)
			continue;
		view_text_right(pane, x + cells->value, y, DIFF_WIDTH,
				style == VIEW_CURSOR || before == value ? style : VIEW_BAD,
				view_diff_text(before, value, text));
		x += DIFF_WIDTH;
	}
}

static void view_draw_line(const struct view_memory *screen, struct view_pane *pane,
			   const struct view_memory_line *line, int y,
			   const struct view_cells *cells, bool here)
{
	const bool open = line->group >= 0 && screen->details.open & 1u << line->group;
	const enum view_style style = here                              ? VIEW_CURSOR
				      : line->kind == VIEW_MEMORY_GROUP ? VIEW_BOLD
				      : line->kind == VIEW_MEMORY_NOTE  ? VIEW_DIM
									: VIEW_NORMAL;
	char brief[VIEW_PLACE_NAME];
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
	/* Of variables of one layer the ends tell them apart. */
	used = (line->kind == VIEW_MEMORY_VARIABLE ? view_text_middle : view_text_cut)(
		pane, x, y, used, style, view__memory_brief(line->name, used, brief));
	x += used + 2;
	if (line->more && cells->name + 2 - x >= MORE_LEAST)
		view_text_cut(pane, x, y, cells->name + 2 - x - 1, here ? style : VIEW_DIM,
			      line->more);
	view_draw_numbers(pane, line, y, cells, style);
}

/* Lines @from .. @to - 1, scrolled so that the cursor's is among them. */
static void view_draw_lines(const struct view_memory *screen, const struct view_context *context,
			    struct view_pane *pane, int from, int to, const char *title)
{
	const struct view_memory_details *details = &screen->details;
	/* The last column is for the mark that there is more. */
	const struct view_cells cells = view_cells_of(screen, pane->rect.width - 1);
	const int rows = pane->rect.height - 1;
	const bool cursor = details->active || screen->view == VIEW_MEMORY_CURVE;
	int first = from;

	if (details->at >= from && details->at < to && details->at >= from + rows)
		first = details->at - rows + 1;
	view_draw_titles(screen, pane, &cells, title);
	for (int i = 0; i < rows && first + i < to; i++)
		view_draw_line(screen, pane, &details->lines[first + i], 1 + i, &cells,
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
	const int value = view_value_width(details, details->column_count);
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
			 view_tiles_text(screen, details->columns[0].index, name, sizeof(name)));
	if (half < SPLIT_LEAST || half < needed || context->whole ||
	    screen->areas.rule.height == 0) {
		view_draw_lines(screen, context, pane, 0, details->count, title);
		return;
	}
	part = view_pane_sub(pane, (struct view_rect){0, 0, half, height});
	view_draw_lines(screen, context, &part, 0, details->variables_at, title);
	part = view_pane_sub(pane,
			     (struct view_rect){half + 1, 0, pane->rect.width - half - 1, height});
	view_draw_lines(screen, context, &part, details->variables_at, details->count, title);
}
