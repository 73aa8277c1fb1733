/*
 * Layout and drawing of the SQL screen.
 *
 * Threading: the terminal's. Ownership: none.
 */
#include "viewer/sql/view_sql_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/view_layout.h"

/* ---- areas ----------------------------------------------------------------------------------- */

#define SIDE         44 /* columns of the views beside the result */
#define RESULT_LEAST 76
#define COLUMNS_ROWS 3 /* rows for the column names of a view */
#define COLUMNS_SIDE 6
#define VIEWS_LEAST  4 /* rows of the views above them */
#define MAIN_LEAST   3
#define ROW_LINES    4 /* rows for the cells of the cursor's row, with the line above them */
#define RESULT_ROWS  6 /* least rows of the result above those, including headings */

/* Cut @rows rows from the bottom of @area; if it is too low, cut none. */
static struct view_rect sql_cut_bottom(struct view_rect *area, int rows, int least)
{
	struct view_rect foot = *area;

	if (area->height < least + rows)
		rows = 0;
	area->height -= rows;
	foot.y += area->height;
	foot.height = rows;
	return foot;
}

struct view_sql_areas view__sql_areas(struct view_rect body, int prompt, bool wide)
{
	struct view_sql_areas areas = {.prompt = body, .heading = body, .main = body};
	const int rest = body.height - 1 - MAIN_LEAST;
	struct view_sides sides;

	areas.prompt.height = prompt < rest ? prompt : rest > 1 ? rest : min(1, body.height);
	areas.heading.y += areas.prompt.height;
	areas.heading.height = min(1, body.height - areas.prompt.height);
	areas.main.y = areas.heading.y + areas.heading.height;
	areas.main.height = body.height - areas.prompt.height - areas.heading.height;
	sides = view_split_sides(areas.main, wide ? SIDE : 0, RESULT_LEAST);
	if (wide && sides.right.width > 0) {
		areas.main = sides.left;
		areas.side = sides.right;
		areas.columns = sql_cut_bottom(&areas.side, COLUMNS_SIDE, VIEWS_LEAST);
	} else {
		areas.columns = sql_cut_bottom(&areas.main, COLUMNS_ROWS, VIEWS_LEAST);
	}
	return areas;
}

void view__sql_areas_row(struct view_sql_areas *areas)
{
	areas->row = sql_cut_bottom(&areas->main, ROW_LINES, RESULT_ROWS);
}

bool view__sql_shows_result(const struct view_sql *screen)
{
	return screen->ran && (screen->areas.side.width > 0 || screen->focus != VIEW_SQL_VIEWS);
}

/* The statement's lines, a caret if the position is known, and one row for the error. */
int view__sql_prompt_rows(const struct view_sql *screen, int width)
{
	const int lines = view_edit_lines(&screen->edit);

	(void)width;
	if (screen->trouble.status == ST_OK)
		return lines;
	return lines + (screen->wrong_at >= 0) + 1;
}

/* ---- the statement --------------------------------------------------------------------------- */

/* Terminal columns of the first @length bytes. */
static int sql_columns(const char *text, size_t length)
{
	char copy[VIEW_PLACE_SQL];

	snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
	return utf8_columns(copy);
}

/* Draw text with highlighted SQL keywords. */
static void sql_draw_words(struct view_pane *pane, int x, int y, const char *text, size_t length)
{
	char word[VIEW_PLACE_SQL];

	for (size_t at = 0, size; at < length && x < pane->rect.width; at += size) {
		const bool name = isalpha((unsigned char)text[at]) != 0;

		for (size = 1; at + size < length; size++) {
			const unsigned char c = (unsigned char)text[at + size];

			if ((isalnum(c) != 0 || c == '_') != name)
				break;
		}
		snprintf(word, sizeof(word), "%.*s", (int)size, text + at);
		x += view_text(pane, x, y,
			       name && view_sql_is_word(text + at, size) ? VIEW_KEY : VIEW_NORMAL,
			       word);
	}
}

/* Draw line @line in row @y, with the cursor if it is on that line. Return the bytes skipped at its
 * beginning. */
static size_t sql_draw_line(const struct view_sql *screen, const struct view_context *context,
			    struct view_pane *pane, int line, int y)
{
	const struct view_edit *edit = &screen->edit;
	struct view_rect room = {VIEW_SQL_MARGIN, y, pane->rect.width - VIEW_SQL_MARGIN, 1};
	struct view_pane text_pane = view_pane_sub(pane, room);
	size_t length, begin, skip = 0;
	const char *text = view_edit_peek(edit, line, &length);
	const bool here = view_edit_line(edit, edit->at, &begin) == line;

	view_text(pane, 0, y, VIEW_TITLE, line == 0 ? "sql>" : "  ->");
	if (here) {
		const size_t upto = edit->at - begin;

		/* The line's beginning is skipped until the cursor is within the room. */
		while (skip < upto && sql_columns(text + skip, upto - skip) >= room.width) {
			skip++;
			while (skip < upto && ((unsigned char)text[skip] & 0xc0) == 0x80)
				skip++;
		}
	}
	sql_draw_words(&text_pane, 0, 0, text + skip, length - skip);
	if (here && screen->focus == VIEW_SQL_EDIT && !context->whole)
		view_restyle(&text_pane, sql_columns(text + skip, edit->at - begin - skip), 0,
			     VIEW_CURSOR);
	return skip;
}

static void sql_draw_caret(const struct view_sql *screen, struct view_pane *pane, size_t skip,
			   int y)
{
	size_t begin;
	int x;

	view_edit_line(&screen->edit, (size_t)screen->wrong_at, &begin);
	if ((size_t)screen->wrong_at < begin + skip)
		return;
	x = sql_columns(screen->edit.text + begin + skip, (size_t)screen->wrong_at - begin - skip);
	if (x + VIEW_SQL_MARGIN < pane->rect.width)
		view_glyphs(pane, x + VIEW_SQL_MARGIN, y, VIEW_BAD, VIEW_GLYPH_UP, 1);
}

/* Draw the lines around the cursor, the caret below the wrong line, and the error at the bottom. */
static void sql_draw_prompt(const struct view_sql *screen, const struct view_context *context,
			    struct view_pane *pane)
{
	const bool wrong = screen->trouble.status != ST_OK;
	const int lines = view_edit_lines(&screen->edit);
	const int caret = wrong && screen->wrong_at >= 0;
	size_t begin;
	const int wrong_line =
		caret ? view_edit_line(&screen->edit, (size_t)screen->wrong_at, &begin) : -1;
	int room = pane->rect.height - wrong - caret, first = 0, y = 0;
	const int here = view_edit_line(&screen->edit, screen->edit.at, &begin);

	if (room < 1)
		room = 1;
	if (here >= room)
		first = here - room + 1;
	for (int line = first; line < lines && line < first + room; line++) {
		const size_t skip = sql_draw_line(screen, context, pane, line, y++);

		if (line == wrong_line && y < pane->rect.height - 1)
			sql_draw_caret(screen, pane, skip, y++);
	}
	if (wrong && y < pane->rect.height)
		view_text_cut(pane, VIEW_SQL_MARGIN, y, pane->rect.width - VIEW_SQL_MARGIN,
			      VIEW_BAD, screen->trouble.text);
	else if (wrong)
		view_text_cut(pane, 0, pane->rect.height - 1, pane->rect.width, VIEW_BAD,
			      screen->trouble.text);
}

/* ---- the result and the views ---------------------------------------------------------------- */

/* Draw the columns of the view under the cursor that fit. */
static void sql_draw_columns(const struct view_sql *screen, struct view_pane *pane)
{
	const struct report_cell *cell = view_grid_cell(&screen->views, "view");
	const struct view_sql_view *view =
		cell && cell->text ? view_sql_names_find(&screen->names, cell->text) : NULL;
	int x, y = 0;

	if (!view || pane->rect.height < 1)
		return;
	x = view_text(pane, 0, 0, VIEW_BOLD, view->name) + 1;
	for (int i = 0; i < view->column_count && y < pane->rect.height; i++) {
		const int width = utf8_columns(view->columns[i]);

		if (x + width > pane->rect.width) {
			x = 1;
			if (++y == pane->rect.height)
				view_glyphs(pane, pane->rect.width - 1, y - 1, VIEW_DIM,
					    VIEW_GLYPH_ELLIPSIS, 1);
		}
		x += view_text(pane, x, y, VIEW_DIM, view->columns[i]) + 1;
	}
}

void view__sql_draw(const void *state, const struct view_context *context, struct view_pane *pane)
{
	static const char views[] = " Views: what a row is ";
	const struct view_sql *screen = state;
	const struct view_sql_areas *areas = &screen->areas;
	const bool result = view__sql_shows_result(screen);
	struct view_pane part = view_pane_sub(pane, areas->prompt);
	char text[128], rows[FMT_SIZE], took[FMT_SIZE];

	sql_draw_prompt(screen, context, &part);
	part = view_pane_sub(pane, areas->heading);

	view_glyphs(&part, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, part.rect.width);
	if (!result)
		snprintf(text, sizeof(text), "%s", views);
	else
		snprintf(text, sizeof(text), " %s%s row%s in %s%s ",
			 screen->more ? "the first " : "",
			 fmt_count(rows, screen->result.table.row_count),
			 screen->result.table.row_count == 1 ? "" : "s",
			 fmt_ns(took, (int64_t)screen->took_ns),
			 screen->more ? "; there are more, with LIMIT and OFFSET" : "");
	view_text_cut(&part, 1, 0, part.rect.width - 2,
		      screen->focus == VIEW_SQL_EDIT ? VIEW_DIM : VIEW_BOLD, text);
	if (screen->areas.side.width > 0)
		view_text(&part, screen->areas.side.x + 1, 0, VIEW_DIM, views);
	view_grid_draw(result ? &screen->result : &screen->views, pane,
		       screen->focus != VIEW_SQL_EDIT && !context->whole &&
			       (screen->focus == VIEW_SQL_RESULT) == result);
	part = view_pane_sub(pane, areas->row);
	view_grid_draw_whole(&screen->result, &part);
	if (result && areas->side.width > 0)
		view_grid_draw(&screen->views, pane, screen->focus == VIEW_SQL_VIEWS);
	if (areas->side.width > 0 || !result) {
		part = view_pane_sub(pane, areas->columns);
		sql_draw_columns(screen, &part);
	}
}

void view__sql_status(const void *state, const struct view_context *context, char *out, size_t size)
{
	const struct view_sql *screen = state;

	(void)context;
	if (screen->focus == VIEW_SQL_EDIT) {
		snprintf(out, size,
			 "Enter after a ; runs it, or on an empty last line; Esc: to the %s",
			 screen->ran ? "rows" : "views");
		return;
	}
	if (screen->focus == VIEW_SQL_VIEWS) {
		snprintf(out, size, "Enter takes the view into the statement%s",
			 screen->ran ? ", v: to the rows" : "");
		return;
	}
	view_grid_status(&screen->result, out, size);
	view_append(out, size, "; Enter edits, v: the views");
}
