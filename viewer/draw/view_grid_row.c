/*
 * What a grid has no room for: the cells of the cursor's row that are cut or off the screen.
 *
 * Threading: the terminal's. Ownership: none; nothing is loaded here.
 */
#include "viewer/draw/view_grid_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"

#define ROW_CELL 2048 /* bytes of a cell that are looked at */

/* Where the next cell of the row begins. */
struct row_pen {
	struct view_pane *pane;
	int x, y;
};

static const struct view_grid_place *row_place(const struct view_grid *grid, int column)
{
	for (int i = 0; i < grid->place_count; i++)
		if (grid->places[i].column == column)
			return &grid->places[i];
	return NULL;
}

bool view_grid_is_cut(const struct view_grid *grid)
{
	for (int i = 0; grid->traits && i < grid->table.column_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[i];
		const struct view_grid_place *place = row_place(grid, i);

		if (view__grid_chosen(grid, i) && (!place || place->width < trait->cells))
			return true;
	}
	return false;
}

/* Bytes of @text that take at most @columns of the terminal. */
static size_t row_fitting(const char *text, int columns)
{
	size_t at = 0;

	while (text[at]) {
		char one[5] = "";
		size_t size = 1;

		while (size < 4 && ((unsigned char)text[at + size] & 0xc0) == 0x80)
			size++;
		memcpy(one, text + at, size);
		columns -= view_text_width(one);
		if (columns < 0)
			break;
		at += size;
	}
	return at;
}

/* From line to line, as far as there are any. */
static void row_write(struct row_pen *pen, enum view_style style, const char *text)
{
	char line[ROW_CELL];

	while (*text && pen->y < pen->pane->rect.height) {
		const size_t size = row_fitting(text, pen->pane->rect.width - pen->x);

		snprintf(line, sizeof(line), "%.*s", (int)size, text);
		pen->x += view_text(pen->pane, pen->x, pen->y, style, line);
		text += size;
		if (!*text || (size == 0 && pen->x <= 1))
			return;
		pen->x = 1;
		pen->y++;
	}
}

/* A cell that does not fit beside those before begins a line. */
static void row_cell(struct row_pen *pen, const char *title, const char *text)
{
	char cell[ROW_CELL];
	const int width = view_text_width(title) + 1;

	snprintf(cell, sizeof(cell), "%s", text);
	if (pen->x > 1 && pen->x + width + view_text_width(cell) > pen->pane->rect.width) {
		pen->x = 1;
		pen->y++;
	}
	if (pen->y >= pen->pane->rect.height)
		return;
	pen->x += view_text_cut(pen->pane, pen->x, pen->y, pen->pane->rect.width - pen->x, VIEW_DIM,
				title) +
		  1;
	row_write(pen, VIEW_NORMAL, cell);
	pen->x += 2;
}

bool view_grid_draw_row(const struct view_grid *grid, struct view_pane *pane)
{
	struct row_pen pen = {pane, 1, 0};
	char out[VIEW_GRID_TEXT], head[VIEW_GRID_TEXT];

	if (!grid->traits || grid->at >= grid->count)
		return false;
	for (int i = 0; i < grid->table.column_count; i++) {
		const struct view_grid_place *place = row_place(grid, i);
		const char *text = view__grid_text(grid, grid->order[grid->at], i, false, out);

		if (view__grid_chosen(grid, i) && (!place || view_text_width(text) > place->width))
			row_cell(&pen, view__grid_head(grid, i, VIEW_GRID_TEXT, head), text);
	}
	return pen.x > 1;
}

void view_grid_draw_whole(const struct view_grid *grid, struct view_pane *pane)
{
	struct view_pane cells = view_pane_sub(
		pane, (struct view_rect){0, 1, pane->rect.width, pane->rect.height - 1});
	char text[FMT_SIZE + 32], number[FMT_SIZE];

	if (pane->rect.height < 2)
		return;
	snprintf(text, sizeof(text),
		 view_grid_draw_row(grid, &cells) ? " row %s, whole " : " row %s is seen whole ",
		 fmt_count(number, grid->at + 1));
	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	view_text_cut(pane, 1, 0, pane->rect.width - 2, VIEW_DIM, text);
}
