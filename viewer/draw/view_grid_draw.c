/*
 * Layout and drawing of a grid: which columns fit, where they stand, and the picture.
 *
 * The first column, and keys next to it, are fixed. The others form a line-up that Left and Right
 * scroll: first those that fit, chosen by importance, in the table's order, then the rest. A
 * column gets at least its least useful width; remaining cells go to columns that want more (a
 * long text, a bar, a percentage). In a comparison a number stays with its target and diff; if
 * the three do not fit, each scrolls separately.
 *
 * Threading: layout runs on the screen's thread; drawing runs on the terminal's and loads
 * nothing. Ownership: the grid's arrays.
 */
#include "viewer/draw/view_grid_internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_chart.h"
#include "viewer/view_layout.h"

/* ---- the text of a heading ------------------------------------------------------------------- */

/* The heading of a column in @width cells. The first of a group names the group and marks itself as
 * the source: "bytes Source", or "bytes S" if that is too long. */
static const char *grid_heading_text(const struct view_grid *grid, int column, int width,
				     char out[VIEW_GRID_TEXT])
{
	const struct view_grid_trait *trait = &grid->traits[column];
	const char *title = view__grid_title(grid, column);

	/* A separated column needs the group's name, as its first column may be off the screen. */
	if (trait->alone && trait->role != VIEW_GRID_PLAIN) {
		snprintf(out, VIEW_GRID_TEXT, "%.200s %s", view__grid_title(grid, trait->group),
			 title);
		if (utf8_columns(out) > width)
			snprintf(out, VIEW_GRID_TEXT, "%.200s %.1s",
				 view__grid_title(grid, trait->group), title);
		return utf8_columns(out) > width ? title : out;
	}
	if (trait->size < 2)
		return title;
	snprintf(out, VIEW_GRID_TEXT, "%.200s Source", title);
	if (utf8_columns(out) > width)
		snprintf(out, VIEW_GRID_TEXT, "%.200s S", title);
	return out;
}

/* ---- widths ---------------------------------------------------------------------------------- */

#define GRID_TEXT_MOST  40
#define GRID_TEXT_LEAST 12
#define GRID_HEAD_LEAST 10 /* headings are not cut shorter */
#define GRID_HEAD_MORE  2  /* for a group: " S" */
#define GRID_BAR_LEAST  6  /* including the blank before it */
#define GRID_BAR_MOST   13
#define GRID_BAR_FROM   60 /* on narrower screens bars get only remaining cells */
#define GRID_STAY_LEAST 8  /* width to which a fixed text is cut to make room for another column */
#define GRID_EDGES      2  /* marks at the left and at the right */

/* @head: widths of the short and the long heading. Percentages have priority over long headings. */
static void grid_compute_number_width(const struct view_grid *grid, struct view_grid_trait *trait,
				      const int head[2])
{
	const bool bar = trait->column && trait->column->bar && trait->role == VIEW_GRID_PLAIN;
	const int most = GRID_HEAD_LEAST + (trait->size > 1 ? GRID_HEAD_MORE : 0);
	const int number = max(trait->cells, min(head[0], most));

	trait->base = number;
	trait->wanted = max(number, head[0]);
	if (trait->role == VIEW_GRID_DIFF)
		trait->wanted = max(trait->wanted, trait->percents);
	/* Columns with bars are a table's main content: reserve room for their percentages, too. */
	if (trait->role == VIEW_GRID_DIFF && trait->column && trait->column->bar &&
	    grid->area.width >= GRID_BAR_FROM)
		trait->base = trait->wanted;
	trait->bar_from = bar ? number : 0;
	if (bar) {
		trait->base += grid->area.width >= GRID_BAR_FROM ? GRID_BAR_LEAST : 0;
		trait->wanted = max(trait->wanted,
				    number + (trait->size > 1 ? GRID_BAR_LEAST : GRID_BAR_MOST));
	}
	trait->most = bar ? trait->wanted : max(trait->wanted, head[1]);
}

static void grid_compute_widths(struct view_grid *grid)
{
	for (int i = 0; i < grid->table.column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];
		char text[VIEW_GRID_TEXT];
		int head[2];

		for (int k = 0; k < 2; k++)
			head[k] =
				utf8_columns(grid_heading_text(grid, i, k * VIEW_GRID_TEXT, text)) +
				(grid->sort == i);
		trait->stays = trait->fits = trait->alone = false;
		if (trait->number) {
			grid_compute_number_width(grid, trait, head);
		} else {
			trait->most = max(trait->cells, head[1]);
			trait->wanted = min(trait->most, GRID_TEXT_MOST);
			trait->base = min(trait->most, trait->column && trait->column->least > 0
							       ? trait->column->least
							       : GRID_TEXT_LEAST);
		}
		if (trait->column && trait->column->width > 0 && trait->role != VIEW_GRID_DIFF)
			trait->base = trait->wanted = trait->most = trait->column->width;
	}
}

/* Number of columns that scroll together with @column. */
static int grid_group_size(const struct view_grid *grid, int column)
{
	return grid->traits[column].alone ? 1 : grid->traits[column].size;
}

/* Width of the columns that scroll together with @column, with a blank after each. */
static int grid_group_width(const struct view_grid *grid, int column)
{
	int width = 0;

	for (int i = column; i < column + grid_group_size(grid, column); i++)
		width += grid->traits[i].base + 1;
	return width;
}

/* ---- the line-up ----------------------------------------------------------------------------- */

static bool grid_scrolls(const struct view_grid *grid, int column)
{
	const struct view_grid_trait *trait = &grid->traits[column];

	return (trait->role == VIEW_GRID_PLAIN || trait->alone) && !trait->stays &&
	       view__grid_chosen(grid, column);
}

/* Fix the first column and following keys while they leave half of the screen. Return their
 * width. */
static int grid_fix_columns(struct view_grid *grid, int room)
{
	int used = 0;

	for (int i = 0; i < grid->table.column_count; i++) {
		const int width = grid_group_width(grid, i);

		if (!view__grid_chosen(grid, i))
			continue;
		if (used > 0 && (!grid->traits[i].key || used + width > room / 2))
			break;
		if (grid->traits[i].size > 1)
			break;
		grid->traits[i].stays = true;
		used += width;
	}
	return used;
}

/* The most important column that is not chosen yet; -1: none. */
static int grid_next_fit(const struct view_grid *grid)
{
	int best = -1, importance = 0;

	for (int i = 0; i < grid->table.column_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[i];
		const int own = grid->compared && grid->sort >= 0 &&
						grid->traits[grid->sort].group == trait->group
					? INT_MAX
				: trait->column ? trait->column->importance
						: 1;

		if (!grid_scrolls(grid, i) || grid->traits[i].fits)
			continue;
		if (best < 0 || own > importance) {
			best = i;
			importance = own;
		}
	}
	return best;
}

/* The widest text among the fixed columns; -1: none can be cut. */
static int grid_widest(const struct view_grid *grid)
{
	int widest = -1;

	for (int i = 0; i < grid->table.column_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[i];

		if (!trait->stays || trait->number || trait->base <= GRID_STAY_LEAST)
			continue;
		if (widest < 0 || trait->base > grid->traits[widest].base)
			widest = i;
	}
	return widest;
}

/* Cut fixed texts until @group fits, as a table of names alone is useless. If that is not enough,
 * do without its Diff, then without its Target. Return the columns gained. */
static int grid_make_room(struct view_grid *grid, int group, int room)
{
	int slack = 0, size = grid->traits[group].size;
	int need = grid_group_width(grid, group) - room;

	for (int i = 0; i < grid->table.column_count; i++)
		if (grid->traits[i].stays && !grid->traits[i].number)
			slack += max(grid->traits[i].base - GRID_STAY_LEAST, 0);
	while (need > slack && size > 1)
		need -= grid->traits[group + --size].base + 1;
	need = max(min(need, slack), 0);
	for (int i = 0; i < need; i++)
		grid->traits[grid_widest(grid)].base--;
	return need;
}

/* Choose the columns that fit, by importance. The most important group is always shown; the other
 * columns of a separated group follow right after its first. */
static void grid_choose_fitting(struct view_grid *grid, int room)
{
	int next = grid_next_fit(grid), group = -1;

	if (next >= 0 && grid_group_width(grid, next) > room)
		room += grid_make_room(grid, next, room);
	/* Separate a group that is wider than the room: each of its columns scrolls alone. */
	for (int i = 0; i < grid->table.column_count; i++) {
		const int size = grid->traits[i].size;

		if (size < 2 || grid_group_width(grid, i) <= room)
			continue;
		for (int of = i; of < i + size; of++)
			grid->traits[of].alone = true;
	}
	for (; next >= 0; next = grid_next_fit(grid)) {
		room -= grid_group_width(grid, next);
		if (room < 0 && group >= 0 && grid->traits[next].group != group)
			return;
		group = grid->traits[next].group;
		grid->traits[next].fits = true;
	}
}

/* The first index of the line-up from which all the rest fits. */
static int grid_last_start(const struct view_grid *grid, int room)
{
	int start = grid->lineup_count;

	while (start > 0) {
		room -= grid_group_width(grid, grid->lineup[start - 1]);
		if (room < 0)
			break;
		start--;
	}
	return start == grid->lineup_count && start > 0 ? start - 1 : start;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Add the columns of a group that fit; only the first may be cut. Return false if any is left
 * out. */
static bool grid_position_group(struct view_grid *grid, int column, int *room)
{
	for (int i = column; i < column + grid_group_size(grid, column); i++) {
		const int width = min(grid->traits[i].base, *room - 1);

		if (width < 1 || (i > column && width < grid->traits[i].base))
			return false;
		grid->places[grid->place_count++] =
			(struct view_grid_place){.column = i, .width = width};
		*room -= width + 1;
	}
	return true;
}

static void grid_position_lineup(struct view_grid *grid, int *room)
{
	bool first = true;

	grid->after = false;
	for (int i = grid->column; i < grid->lineup_count; i++) {
		/* Always show one column, cut if necessary; otherwise scrolling would get stuck. */
		if (!first && grid_group_width(grid, grid->lineup[i]) > *room)
			grid->after = true;
		if (grid->after || !grid_position_group(grid, grid->lineup[i], room)) {
			grid->after = true;
			return;
		}
		first = false;
	}
}

/* ---- layout ---------------------------------------------------------------------------------- */

void view_grid_layout(struct view_grid *grid, struct view_rect area)
{
	/* Each column has a blank after it; the last one's is needed only beside a scroll mark. */
	int room = area.width - GRID_EDGES + (grid->count < area.height), x = 1;

	grid->area = area;
	grid->place_count = 0;
	if (!grid->traits)
		return;
	view_list_scroll(&grid->at, &grid->scroll, grid->count, max(area.height - 1, 1));
	/* Measure the rows on the screen. */
	for (int64_t i = grid->scroll; i < grid->count && i < grid->scroll + area.height - 1; i++)
		view__grid_measure_row(grid, grid->order[i]);
	grid_compute_widths(grid);
	grid_choose_fitting(grid, room - grid_fix_columns(grid, room));
	grid->lineup_count = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < grid->table.column_count; i++)
			if (grid_scrolls(grid, i) && grid->traits[i].fits == (pass == 0))
				grid->lineup[grid->lineup_count++] = i;
	for (int i = 0; i < grid->table.column_count; i++)
		if (grid->traits[i].stays)
			grid_position_group(grid, i, &room);
	grid->column = min(grid->column, grid_last_start(grid, room));
	grid->column = max(grid->column, 0);
	grid->before = grid->column > 0;
	grid_position_lineup(grid, &room);
	/* Distribute remaining cells to columns that want more, from left to right. */
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < grid->place_count; i++) {
			struct view_grid_place *place = &grid->places[i];
			const struct view_grid_trait *trait = &grid->traits[place->column];
			const int want = pass == 0 ? trait->wanted : trait->most;
			const int more = min(want - place->width, room);

			if (more <= 0)
				continue;
			place->width += more;
			room -= more;
		}
	for (int i = 0; i < grid->place_count; i++) {
		grid->places[i].x = x;
		x += grid->places[i].width + 1;
	}
}

int view_grid_used(const struct view_grid *grid)
{
	const struct view_grid_place *last;

	if (grid->place_count == 0)
		return 0;
	last = &grid->places[grid->place_count - 1];
	return min(last->x + last->width + 1, grid->area.width);
}

/* ---- headings -------------------------------------------------------------------------------- */

static void grid_draw_heading(const struct view_grid *grid, const struct view_grid_place *place,
			      struct view_pane *pane)
{
	const struct view_grid_trait *trait = &grid->traits[place->column];
	const bool sorted = grid->sort == place->column;
	const enum view_style style = sorted ? VIEW_KEY : VIEW_DIM;
	const int room = trait->bar_from > 0 ? trait->bar_from : place->width;
	char head[VIEW_GRID_TEXT];
	const char *title = grid_heading_text(grid, place->column, room - sorted, head);
	int width = place->width - sorted, used = utf8_columns(title);
	int x = place->x;

	/* Align with the number, not with its bar. */
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

/* ---- rows ------------------------------------------------------------------------------------ */

static enum view_style grid_verdict_style(const char *verdict)
{
	static const struct {
		const char *verdict;
		enum view_style style;
	} styles[] = {{"faster", VIEW_GOOD}, {"better", VIEW_GOOD}, {"slower", VIEW_WARN},
		      {"worse", VIEW_WARN},  {"equal", VIEW_DIM},   {"same", VIEW_DIM}};

	for (size_t i = 0; i < ARRAY_LEN(styles); i++)
		if (strcmp(styles[i].verdict, verdict) == 0)
			return styles[i].style;
	return VIEW_NORMAL;
}

static enum view_style grid_cell_style(const struct view_grid *grid, int64_t row, int column)
{
	const struct report_cell *cell = view__grid_at(grid, row, column);
	const double number = view__cell_number(cell);

	if (cell->type == PROF_NULL)
		return VIEW_DIM;
	if (cell->type == PROF_TEXT &&
	    strcmp(grid->table.columns[column].name, VIEW_GRID_VERDICT) == 0)
		return grid_verdict_style(cell->text);
	if (grid->traits[column].role == VIEW_GRID_DIFF)
		return number < 0 || number > 0 ? VIEW_WARN : VIEW_DIM;
	return grid->style ? grid->style(&grid->table, row, column) : VIEW_NORMAL;
}

static void grid_draw_cell(const struct view_grid *grid, const struct view_grid_place *place,
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
		/* Identifiers differ at their ends, so keep these; sentences are cut at the end. */
		(text && strchr(text, ' ') ? view_text_cut : view_text_middle)(
			pane, place->x, y, place->width, style, text);
		return;
	}
	view_text_right(pane, place->x, y, bar ? trait->bar_from : place->width, style, text);
	if (bar && trait->greatest > 0)
		view_chart_bar(pane, place->x + trait->bar_from + 1, y,
			       place->width - trait->bar_from - 1,
			       selected ? VIEW_CURSOR : VIEW_CURVE,
			       fabs(view__cell_number(view__grid_at(grid, row, place->column))) /
				       trait->greatest);
}

/* Draw the scroll bar: which part of the rows is visible. */
static void grid_draw_scroll_mark(const struct view_grid *grid, struct view_pane *pane)
{
	const int rows = pane->rect.height - 1, x = pane->rect.width - 1;
	const double part = (double)rows / (double)grid->count;
	int from = (int)((double)grid->scroll * part);
	const int size = part * rows < 1 ? 1 : (int)(part * rows);

	/* Reach the bottom only if the last row is visible. */
	if (grid->scroll + rows >= grid->count)
		from = rows - size;
	for (int y = 0; y < rows; y++)
		view_glyphs(pane, x, y + 1, VIEW_DIM,
			    y >= from && y < from + size ? VIEW_GLYPH_FULL : VIEW_GLYPH_VERTICAL,
			    1);
}

void view_grid_draw(const struct view_grid *grid, const struct view_pane *body, bool active)
{
	struct view_pane pane = view_pane_sub(body, grid->area);
	const int rows = pane.rect.height - 1;

	if (!grid->traits || rows < 0)
		return;

	view_fill(&pane, 0, 0, pane.rect.width, VIEW_BOLD);
	for (int i = 0; i < grid->place_count; i++)
		grid_draw_heading(grid, &grid->places[i], &pane);
	if (grid->before)
		view_put(&pane, 0, 0, VIEW_KEY, '<');
	if (grid->after)
		view_put(&pane, pane.rect.width - 1, 0, VIEW_KEY, '>');
	if (grid->count == 0 && rows > 0) {
		view_text(&pane, 1, 1, VIEW_DIM,
			  grid->table.row_count == 0 ? "There are no rows."
			  : grid->filter[0]          ? "Nothing matches the filter: Esc shows all."
						     : "Nothing differs: D shows all.");
		return;
	}
	for (int i = 0; i < rows && grid->scroll + i < grid->count; i++) {
		const int y = i + 1;
		const bool selected = active && grid->scroll + i == grid->at;
		const int64_t row = grid->order[grid->scroll + i];
		const char only = view__grid_only_mark(grid, row);

		if (selected) {
			view_fill(&pane, 0, y, pane.rect.width, VIEW_CURSOR);
			view_glyphs(&pane, 0, y, VIEW_CURSOR, VIEW_GLYPH_SELECT, 1);
		} else if (only) {
			view_put(&pane, 0, y, VIEW_WARN, (uint32_t)only);
		}
		for (int c = 0; c < grid->place_count; c++)
			grid_draw_cell(grid, &grid->places[c], row, y, selected, &pane);
	}
	if (grid->count > rows && rows > 0)
		grid_draw_scroll_mark(grid, &pane);
}

/* ---- the cursor's row without cuts ----------------------------------------------------------- */

#define ROW_CELL 2048 /* most bytes of a cell that are shown */

/* Position of the row's next cell. */
struct row_pen {
	struct view_pane *pane;
	int x, y;
};

bool view_grid_is_cut(const struct view_grid *grid)
{
	for (int i = 0; grid->traits && i < grid->table.column_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[i];
		const struct view_grid_place *place = view__grid_place(grid, i);

		if (view__grid_chosen(grid, i) && (!place || place->width < trait->cells))
			return true;
	}
	return false;
}

/* Bytes of @text that fit in @columns of the terminal. */
static size_t row_fitting_bytes(const char *text, int columns)
{
	size_t at = 0;

	while (text[at]) {
		char one[5] = "";
		size_t size = 1;

		while (size < 4 && ((unsigned char)text[at + size] & 0xc0) == 0x80)
			size++;
		memcpy(one, text + at, size);
		columns -= utf8_columns(one);
		if (columns < 0)
			break;
		at += size;
	}
	return at;
}

/* Write @text, wrapped at the pane's edge, until its rows are used up. */
static void row_write(struct row_pen *pen, enum view_style style, const char *text)
{
	char line[ROW_CELL];

	while (*text && pen->y < pen->pane->rect.height) {
		const size_t size = row_fitting_bytes(text, pen->pane->rect.width - pen->x);

		snprintf(line, sizeof(line), "%.*s", (int)size, text);
		pen->x += view_text(pen->pane, pen->x, pen->y, style, line);
		text += size;
		if (!*text || (size == 0 && pen->x <= 1))
			return;
		pen->x = 1;
		pen->y++;
	}
}

/* Write a cell; begin a new line if it does not fit after the previous one. */
static void row_write_cell(struct row_pen *pen, const char *title, const char *text)
{
	char cell[ROW_CELL];
	const int width = utf8_columns(title) + 1;

	snprintf(cell, sizeof(cell), "%s", text);
	if (pen->x > 1 && pen->x + width + utf8_columns(cell) > pen->pane->rect.width) {
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
		const struct view_grid_place *place = view__grid_place(grid, i);
		const char *text = view__grid_text(grid, grid->order[grid->at], i, false, out);

		if (view__grid_chosen(grid, i) && (!place || utf8_columns(text) > place->width))
			row_write_cell(&pen, grid_heading_text(grid, i, VIEW_GRID_TEXT, head),
				       text);
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
