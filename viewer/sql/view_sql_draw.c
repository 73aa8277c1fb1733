/*
 * Drawing the screen SQL.
 *
 * Threading: where screens draw. Ownership: none.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "viewer/sql/view_sql_internal.h"

static struct view_pane view_sub(const struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

/* ---- the statement --------------------------------------------------------------------------- */

/* Terminal columns of the first @length bytes. */
static int view_columns(const char *text, size_t length)
{
	char copy[VIEW_PLACE_SQL];

	snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
	return view_text_width(copy);
}

/* Bytes to leave out at the beginning of a line, so that its first @upto bytes end within @width
 * columns. */
static size_t view_skip(const char *text, size_t upto, int width)
{
	size_t skip = 0;

	while (skip < upto && view_columns(text + skip, upto - skip) >= width) {
		skip++;
		while (skip < upto && ((unsigned char)text[skip] & 0xc0) == 0x80)
			skip++;
	}
	return skip;
}

/* Words of SQL's own stand out. */
static void view_draw_words(struct view_pane *pane, int x, int y, const char *text, size_t length)
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

/*
 * Line @line in row @y; the cursor's with the cursor. Returns the bytes left out at its beginning.
 */
static size_t view_draw_line(const struct view_sql *screen, const struct view_context *context,
			     struct view_pane *pane, int line, int y)
{
	const struct view_edit *edit = &screen->edit;
	struct view_rect room = {VIEW_SQL_MARGIN, y, pane->rect.width - VIEW_SQL_MARGIN, 1};
	struct view_pane text_pane = view_sub(pane, room);
	size_t length, begin, skip = 0;
	const char *text = view_edit_peek(edit, line, &length);
	const bool here = view_edit_line(edit, edit->at, &begin) == line;

	view_text(pane, 0, y, VIEW_TITLE, line == 0 ? "sql>" : "  ->");
	if (here)
		skip = view_skip(text, edit->at - begin, room.width);
	view_draw_words(&text_pane, 0, 0, text + skip, length - skip);
	if (here && screen->focus == VIEW_SQL_EDIT && !context->whole)
		view_restyle(&text_pane, view_columns(text + skip, edit->at - begin - skip), 0,
			     VIEW_CURSOR);
	return skip;
}

static void view_draw_caret(const struct view_sql *screen, struct view_pane *pane, size_t skip,
			    int y)
{
	size_t begin;
	int x;

	view_edit_line(&screen->edit, (size_t)screen->wrong_at, &begin);
	if ((size_t)screen->wrong_at < begin + skip)
		return;
	x = view_columns(screen->edit.text + begin + skip, (size_t)screen->wrong_at - begin - skip);
	if (x + VIEW_SQL_MARGIN < pane->rect.width)
		view_glyphs(pane, x + VIEW_SQL_MARGIN, y, VIEW_BAD, VIEW_GLYPH_UP, 1);
}

/* Lines about the cursor where not all fit, the caret under its line, what is wrong at the foot. */
static void view_draw_prompt(const struct view_sql *screen, const struct view_context *context,
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
		const size_t skip = view_draw_line(screen, context, pane, line, y++);

		if (line == wrong_line && y < pane->rect.height - 1)
			view_draw_caret(screen, pane, skip, y++);
	}
	if (wrong && y < pane->rect.height)
		view_text_cut(pane, VIEW_SQL_MARGIN, y, pane->rect.width - VIEW_SQL_MARGIN,
			      VIEW_BAD, screen->trouble.text);
	else if (wrong)
		view_text_cut(pane, 0, pane->rect.height - 1, pane->rect.width, VIEW_BAD,
			      screen->trouble.text);
}

/* ---- what was found, and the views ----------------------------------------------------------- */

static void view_heading_text(const struct view_sql *screen, char *out, size_t size)
{
	char rows[FMT_SIZE], took[FMT_SIZE];

	if (!view__sql_shows_result(screen)) {
		snprintf(out, size, " Views: what a row is ");
		return;
	}
	snprintf(out, size, " %s%s row%s in %s%s ", screen->more ? "the first " : "",
		 fmt_count(rows, screen->result.table.row_count),
		 screen->result.table.row_count == 1 ? "" : "s",
		 fmt_ns(took, (int64_t)screen->took_ns),
		 screen->more ? "; there are more, with LIMIT and OFFSET" : "");
}

static void view_draw_heading(const struct view_sql *screen, struct view_pane *pane)
{
	char text[128];

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width);
	view_heading_text(screen, text, sizeof(text));
	view_text_cut(pane, 1, 0, pane->rect.width - 2,
		      screen->focus == VIEW_SQL_EDIT ? VIEW_DIM : VIEW_BOLD, text);
	if (screen->areas.side.width > 0)
		view_text(pane, screen->areas.side.x + 1, 0, VIEW_DIM, " Views: what a row is ");
}

/* Columns of the view under the cursor, as many as there is room for. */
static void view_draw_columns(const struct view_sql *screen, struct view_pane *pane)
{
	const struct report_cell *cell = view_grid_cell(&screen->views, "view");
	const struct view_sql_view *view =
		cell && cell->text ? view_sql_names_find(&screen->names, cell->text) : NULL;
	int x, y = 0;

	if (!view || pane->rect.height < 1)
		return;
	x = view_text(pane, 0, 0, VIEW_BOLD, view->name) + 1;
	for (int i = 0; i < view->column_count && y < pane->rect.height; i++) {
		const int width = view_text_width(view->columns[i]);

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
	const struct view_sql *screen = state;
	const struct view_sql_areas *areas = &screen->areas;
	const bool result = view__sql_shows_result(screen);
	struct view_pane part = view_sub(pane, areas->prompt);

	view_draw_prompt(screen, context, &part);
	part = view_sub(pane, areas->heading);
	view_draw_heading(screen, &part);
	part = view_sub(pane, areas->main);
	view_grid_draw(result ? &screen->result : &screen->views, &part,
		       screen->focus != VIEW_SQL_EDIT && !context->whole &&
			       (screen->focus == VIEW_SQL_RESULT) == result);
	part = view_sub(pane, areas->row);
	view_grid_draw_whole(&screen->result, &part);
	if (result && areas->side.width > 0) {
		part = view_sub(pane, areas->side);
		view_grid_draw(&screen->views, &part, screen->focus == VIEW_SQL_VIEWS);
	}
	if (areas->side.width > 0 || !result) {
		part = view_sub(pane, areas->columns);
		view_draw_columns(screen, &part);
	}
}

void view__sql_status(const void *state, const struct view_context *context, char *out, size_t size)
{
	const struct view_sql *screen = state;
	size_t length;

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
	length = strlen(out);
	snprintf(out + length, size - length, "; Enter edits, v: the views");
}
