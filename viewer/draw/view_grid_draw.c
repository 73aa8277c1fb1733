/*
 * A grid as a picture: headings, rows, marks at the edges.
 *
 * Threading: the terminal's. Ownership: none; nothing is loaded here.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <stdio.h>

#include "common/minmax.h"

/* ---- headings -------------------------------------------------------------------------------- */

static void grid_heading(const struct view_grid *grid, const struct view_grid_place *place,
			 struct view_pane *pane)
{
	const struct view_grid_trait *trait = &grid->traits[place->column];
	const bool sorted = grid->sort == place->column;
	const enum view_style style = sorted ? VIEW_KEY : VIEW_DIM;
	const int room = trait->bar_from > 0 ? trait->bar_from : place->width;
	char head[VIEW_GRID_TEXT];
	const char *title = view__grid_head(grid, place->column, room - sorted, head);
	int width = place->width - sorted, used = view_text_width(title);
	int x = place->x;

	/* Over the number, not over its bar. */
	if (trait->bar_from > 0 && trait->bar_from - sorted >= used)
		width = trait->bar_from - sorted;
	if (width < 0)
		width = 0;
	if (trait->number && used < width)
		x += width - used;
	used = view_text_cut(pane, x, 0, min(used, width), style, title);
	if (sorted)
		view_glyphs(pane, x + used, 0, style,
			    view__grid_descends(grid, place->column) ? VIEW_GLYPH_DOWN
								     : VIEW_GLYPH_UP,
			    1);
}

static void grid_headings(const struct view_grid *grid, struct view_pane *pane)
{
	view_fill(pane, 0, 0, pane->rect.width, VIEW_BOLD);
	for (int i = 0; i < grid->place_count; i++)
		grid_heading(grid, &grid->places[i], pane);
	if (grid->before)
		view_put(pane, 0, 0, VIEW_KEY, '<');
	if (grid->after)
		view_put(pane, pane->rect.width - 1, 0, VIEW_KEY, '>');
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Cells of eighths where there is Unicode. */
static void grid_bar(struct view_pane *pane, int x, int y, int width, enum view_style style,
		     double share)
{
	const int eighths = share > 0 ? (int)ceil(fmin(share, 1) * width * 8) : 0;
	const int full = pane->canvas->ascii ? (eighths + 7) / 8 : eighths / 8;

	view_glyphs(pane, x, y, style, VIEW_GLYPH_FULL, full);
	if (!pane->canvas->ascii && eighths % 8 > 0)
		view_put(pane, x + full, y, style, 0x2590u - (uint32_t)(eighths % 8));
}

static enum view_style grid_cell_style(const struct view_grid *grid, int64_t row, int column)
{
	const struct report_cell *cell = view__grid_at(grid, row, column);
	const double number = view__cell_number(cell);

	if (cell->type == PROF_NULL)
		return VIEW_DIM;
	if (grid->traits[column].role == VIEW_GRID_DIFF)
		return number < 0 || number > 0 ? VIEW_WARN : VIEW_DIM;
	return grid->style ? grid->style(&grid->table, row, column) : VIEW_NORMAL;
}

static void grid_cell(const struct view_grid *grid, const struct view_grid_place *place,
		      int64_t row, int y, bool selected, struct view_pane *pane)
{
	const struct view_grid_trait *trait = &grid->traits[place->column];
	const enum view_style style =
		selected ? VIEW_CURSOR : grid_cell_style(grid, row, place->column);
	const bool percent = trait->role == VIEW_GRID_DIFF && place->width >= trait->percents;
	const bool bar = trait->bar_from > 0 && place->width >= trait->bar_from + 3;
	char out[VIEW_GRID_TEXT];
	const char *text = view__grid_text(grid, row, place->column, percent, out);

	if (!trait->number) {
		view_text_cut(pane, place->x, y, place->width, style, text);
		return;
	}
	view_text_right(pane, place->x, y, bar ? trait->bar_from : place->width, style, text);
	if (bar && trait->greatest > 0)
		grid_bar(pane, place->x + trait->bar_from + 1, y,
			 place->width - trait->bar_from - 1, selected ? VIEW_CURSOR : VIEW_CURVE,
			 fabs(view__cell_number(view__grid_at(grid, row, place->column))) /
				 trait->greatest);
}

static void grid_row(const struct view_grid *grid, int64_t at, int y, bool selected,
		     struct view_pane *pane)
{
	const int64_t row = grid->order[at];
	const char only = view__grid_only(grid, row);

	if (selected) {
		view_fill(pane, 0, y, pane->rect.width, VIEW_CURSOR);
		view_glyphs(pane, 0, y, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
	} else if (only) {
		view_put(pane, 0, y, VIEW_WARN, (uint32_t)only);
	}
	for (int i = 0; i < grid->place_count; i++)
		grid_cell(grid, &grid->places[i], row, y, selected, pane);
}

/* Which part of the rows is shown. */
static void grid_scroll_mark(const struct view_grid *grid, struct view_pane *pane)
{
	const int rows = pane->rect.height - 1, x = pane->rect.width - 1;
	const double part = (double)rows / (double)grid->count;
	int from = (int)((double)grid->scroll * part);
	const int size = part * rows < 1 ? 1 : (int)(part * rows);

	/* At the very end only where there is nothing more. */
	if (grid->scroll + rows >= grid->count)
		from = rows - size;
	for (int y = 0; y < rows; y++)
		view_glyphs(pane, x, y + 1, VIEW_DIM,
			    y >= from && y < from + size ? VIEW_GLYPH_FULL : VIEW_GLYPH_VERTICAL,
			    1);
}

void view_grid_draw(const struct view_grid *grid, struct view_pane *pane, bool active)
{
	const int rows = pane->rect.height - 1;

	if (!grid->traits)
		return;
	grid_headings(grid, pane);
	if (grid->count == 0 && rows > 0) {
		view_text(pane, 1, 1, VIEW_DIM,
			  grid->table.row_count == 0 ? "There are no rows."
			  : grid->filter[0]          ? "Nothing matches the filter: Esc shows all."
						     : "Nothing differs: D shows all.");
		return;
	}
	for (int i = 0; i < rows && grid->scroll + i < grid->count; i++)
		grid_row(grid, grid->scroll + i, i + 1, active && grid->scroll + i == grid->at,
			 pane);
	if (grid->count > rows && rows > 0)
		grid_scroll_mark(grid, pane);
}
