/*
 * An interactive table: its rows, their filter, the cursor, the keys.
 *
 * Threading: the screen's. Ownership: the grid owns its table and, in an arena, all arrays with one
 * entry per row or column.
 */
#include "viewer/draw/view_grid_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- rows ------------------------------------------------------------------------------------ */

#define GRID_KEYS 8

void view_grid_fini(struct view_grid *grid)
{
	report_table_free(&grid->table);
	arena_fini(&grid->arena);
	memset(grid, 0, sizeof(*grid));
}

struct view_grid *view_state_grid(void *state)
{
	return state;
}

void view_state_grid_fini(void *state)
{
	view_grid_fini(state);
}

static void grid_alloc(struct view_grid *grid, struct err *err)
{
	const size_t rows = (size_t)grid->table.row_count;
	const size_t columns = (size_t)grid->table.column_count;

	grid->arena = (struct arena){0};
	grid->order = view_alloc(&grid->arena, rows, sizeof(*grid->order), err);
	grid->keys = view_alloc(&grid->arena, rows, sizeof(*grid->keys), err);
	grid->spare = view_alloc(&grid->arena, rows, sizeof(*grid->spare), err);
	grid->sequence = view_alloc(&grid->arena, rows, sizeof(*grid->sequence), err);
	grid->passes = view_alloc(&grid->arena, rows, sizeof(*grid->passes), err);
	grid->tried = view_alloc(&grid->arena, rows, sizeof(*grid->tried), err);
	grid->places = view_alloc(&grid->arena, columns, sizeof(*grid->places), err);
	grid->lineup = view_alloc(&grid->arena, columns, sizeof(*grid->lineup), err);
	grid->traits = view_alloc(&grid->arena, columns, sizeof(*grid->traits), err);
}

static bool grid_cells_equal(const struct report_cell *a, const struct report_cell *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case PROF_INT:
		return a->integer == b->integer;
	case PROF_REAL:
		return a->real == b->real;
	case PROF_TEXT:
		return strcmp(a->text, b->text) == 0;
	default:
		return true;
	}
}

/* The row of @grid with the same keys as @old's cursor, or the cursor's number if there is none. */
static int64_t grid_find_cursor(const struct view_grid *old, const struct view_grid *grid)
{
	int from[GRID_KEYS], to[GRID_KEYS], keys = 0;

	for (int i = 0; i < grid->table.column_count && keys < GRID_KEYS; i++) {
		if (!grid->traits[i].key)
			continue;
		from[keys] = view_table_column(&old->table, grid->table.columns[i].name);
		to[keys] = i;
		if (from[keys++] < 0)
			return old->at;
	}
	if (old->at >= old->count || keys == 0)
		return old->at;
	for (int64_t i = 0; i < grid->count; i++) {
		int same = 0;

		while (same < keys &&
		       grid_cells_equal(view__grid_at(old, old->order[old->at], from[same]),
					view__grid_at(grid, grid->order[i], to[same])))
			same++;
		if (same == keys)
			return i;
		if (i % VIEW_GRID_SLICE == 0 && view__grid_stopped(grid->context))
			break;
	}
	return old->at;
}

bool view_filter_compile(regex_t *out, const char *filter, char *trouble, size_t size)
{
	const int error =
		regcomp(out, filter + (filter[0] == '!'), REG_EXTENDED | REG_ICASE | REG_NOSUB);

	if (error)
		regerror(error, out, trouble, size);
	return error == 0;
}

#define GRID_TRIES 256 /* rows between two cancellation checks: matching a row's cells is slow */

/* Return true if @matches(text, @with) is true for any shown cell of the row. */
static bool grid_row_matches(const struct view_grid *grid, int64_t row,
			     bool (*matches)(const char *text, const void *with), const void *with)
{
	char text[VIEW_GRID_TEXT];

	for (int i = 0; i < grid->table.column_count; i++)
		if (view__grid_chosen(grid, i) &&
		    matches(view__grid_text(grid, row, i, false, text), with))
			return true;
	return false;
}

static bool grid_matches_expression(const char *text, const void *expression)
{
	return regexec(expression, text, 0, NULL, 0) == 0;
}

/* Compute `passes` from the filter; an invalid filter passes all rows. Return false if cancelled;
 * `passes` is then unchanged. */
static bool grid_apply_filter(struct view_grid *grid)
{
	const bool no = grid->filter[0] == '!';
	bool *tried = grid->tried, filtered = grid->filter[no] != '\0';
	regex_t expression;
	int64_t row = 0;

	grid->trouble[0] = '\0';
	filtered = filtered && view_filter_compile(&expression, grid->filter, grid->trouble,
						   sizeof(grid->trouble));
	for (; row < grid->table.row_count; row++) {
		tried[row] = (!grid->differ || view__grid_differs(grid, row)) &&
			     (!filtered || grid_row_matches(grid, row, grid_matches_expression,
							    &expression) != no);
		if (row % GRID_TRIES == 0 && view__grid_stopped(grid->context))
			break;
	}
	if (filtered)
		regfree(&expression);
	if (row < grid->table.row_count)
		return false;
	grid->tried = grid->passes;
	grid->passes = tried;
	return true;
}

enum status view_grid_set(struct view_grid *grid, struct view_context *context,
			  struct report_table *table, const struct view_grid_column *columns,
			  int column_count, const char *keys, struct err *err)
{
	struct view_grid next = *grid;
	struct err own;
	bool stopped;

	err = err_start(err, &own);
	next.context = context;
	next.table = *table;
	memset(table, 0, sizeof(*table));
	next.count = 0;
	next.place_count = next.lineup_count = 0;
	grid_alloc(&next, err);
	if (err_stuck(err)) {
		arena_fini(&next.arena);
		report_table_free(&next.table);
		return err->status;
	}
	next.columns = columns;
	next.column_count = column_count;
	view__grid_traits(&next, keys);
	/* The order and the hidden columns stay, by name. */
	next.sort = -1;
	if (grid->sort >= 0 && grid->sort < grid->table.column_count)
		next.sort = view_table_column(&next.table, grid->table.columns[grid->sort].name);
	for (int i = 0; i < grid->table.column_count; i++) {
		const int at = grid->traits[i].hidden
				       ? view_table_column(&next.table, grid->table.columns[i].name)
				       : -1;

		if (at >= 0)
			next.traits[at].hidden = true;
	}
	stopped = !view__grid_sort(&next) || !grid_apply_filter(&next);
	if (!stopped) {
		view__grid_reorder(&next);
		next.at = grid_find_cursor(grid, &next);
		next.scroll = next.at - (grid->at - grid->scroll);
		stopped = view__grid_stopped(context);
	}
	if (stopped) {
		arena_fini(&next.arena);
		report_table_free(&next.table);
		return err_set(err, ST_INTERRUPTED, "stopped");
	}

	report_table_free(&grid->table);
	arena_fini(&grid->arena);
	*grid = next;
	return ST_OK;
}

const struct report_cell *view_grid_cell(const struct view_grid *grid, const char *column)
{
	const int at = view_table_column(&grid->table, column);

	return at >= 0 && grid->at < grid->count ? view__grid_at(grid, grid->order[grid->at], at)
						 : NULL;
}

int64_t view_grid_int(const struct view_grid *grid, const char *column)
{
	const struct report_cell *cell = view_grid_cell(grid, column);

	return cell && cell->type == PROF_INT ? cell->integer : IPS_NULL;
}

const char *view_grid_text(const struct view_grid *grid, const char *column)
{
	const struct report_cell *cell = view_grid_cell(grid, column);

	return cell && cell->type == PROF_TEXT ? cell->text : NULL;
}

void view_grid_place(const struct view_grid *grid, const char *names, const char *suffix,
		     struct view_place *place)
{
	char name[64];
	int count;
	const struct view_place_field *fields = view_place_fields(&count);

	for (int i = 0; i < count; i++) {
		const struct view_place_field *field = &fields[i];
		const struct report_cell *cell;

		snprintf(name, sizeof(name), "%s%s", field->name, suffix);
		cell = view_grid_cell(grid, name);
		if (!cell || (names && !view__grid_listed(names, field->name)) ||
		    view_place_knows(place, field))
			continue;
		if (field->text && cell->type == PROF_TEXT)
			view_place_text(view_place_chars(place, field), cell->text);
		else if (!field->text && cell->type == PROF_INT)
			*view_place_number(place, field) = cell->integer;
	}
}

/* The index of the matching row in the shown order; -1: not shown. */
static int64_t grid_find_row(const struct view_grid *grid, int column, const char *text,
			     int64_t number)
{
	for (int64_t i = 0; i < grid->count; i++) {
		const struct report_cell *cell = view__grid_at(grid, grid->order[i], column);

		if (text ? cell->type == PROF_TEXT && strcmp(cell->text, text) == 0
			 : cell->type == PROF_INT && cell->integer == number)
			return i;
	}
	return -1;
}

/* Show @text in the status line once. */
static void grid_set_message(struct view_grid *grid, const char *text)
{
	if (grid->context)
		str_copy(grid->context->message, sizeof(grid->context->message), text);
}

void view_grid_filter(struct view_grid *grid, const char *text)
{
	char filter[sizeof(grid->filter)], before[sizeof(grid->filter)];
	regex_t expression;

	str_copy(filter, sizeof(filter), text);
	if (!view_filter_compile(&expression, filter, grid->trouble, sizeof(grid->trouble)))
		return;
	regfree(&expression);
	grid->trouble[0] = '\0';
	memcpy(before, grid->filter, sizeof(before));
	memcpy(grid->filter, filter, sizeof(filter));
	if (!grid->traits)
		return;
	if (grid_apply_filter(grid)) {
		view__grid_reorder(grid);
		return;
	}
	memcpy(grid->filter, before, sizeof(before));
	grid_set_message(grid, "stopped: the rows are those of before");
}

/* Move the cursor to row @at or the nearest existing one. */
static void grid_move_cursor(struct view_grid *grid, int64_t at)
{
	if (!grid->traits)
		return;
	grid->at = at;
	view_grid_layout(grid, grid->area);
}

bool view_grid_go(struct view_grid *grid, const char *column, const char *text, int64_t number)
{
	const int at = view_table_column(&grid->table, column);
	int64_t row = at >= 0 ? grid_find_row(grid, at, text, number) : -1;
	char filter[sizeof(grid->filter)];

	if (row < 0 && at >= 0 && grid->filter[0]) {
		memcpy(filter, grid->filter, sizeof(filter));
		view_grid_filter(grid, "");
		row = grid_find_row(grid, at, text, number);
		if (row < 0)
			view_grid_filter(grid, filter);
	}
	if (row < 0)
		return false;
	grid_move_cursor(grid, row);
	return true;
}

/* Copy *@text into the table's arena; NULL stays NULL. */
static enum status grid_copy_text(struct report_table *table, const char **text, struct err *err)
{
	if (!*text)
		return ST_OK;
	*text = arena_strdup(&table->arena, *text);
	return *text ? ST_OK : err_nomem(err);
}

enum status view_grid_table(const struct view_grid *grid, struct report_table *out, struct err *err)
{
	const int columns = grid->table.column_count;
	enum status status = view_table_new(out, grid->table.name ? grid->table.name : "table",
					    grid->table.columns, columns, grid->count, err);

	if (status != ST_OK)
		return status;
	out->note = grid->table.note;
	status = grid_copy_text(out, &out->name, err);
	if (status == ST_OK)
		status = grid_copy_text(out, &out->note, err);
	for (int i = 0; status == ST_OK && i < columns; i++)
		status = grid_copy_text(out, &out->columns[i].name, err);
	for (int64_t i = 0; status == ST_OK && i < grid->count * columns; i++) {
		if (i % VIEW_GRID_SLICE == 0 && view__grid_stopped(grid->context)) {
			status = err_set(err, ST_INTERRUPTED, "stopped");
			break;
		}
		out->cells[i] = *view__grid_at(grid, grid->order[i / columns], (int)(i % columns));
		status = grid_copy_text(out, &out->cells[i].text, err);
	}
	if (status != ST_OK)
		report_table_free(out);
	return status;
}

/* ---- searching ------------------------------------------------------------------------------- */

static bool grid_contains(const char *text, const void *word)
{
	return strcasestr(text, word) != NULL;
}

/* Visit all rows, not only up to the next hit: the message needs the hit's number and the total. */
bool view_grid_search(struct view_grid *grid, struct view_context *context, const char *text,
		      bool forward)
{
	struct view_search search = view_search_from(grid->at, forward);
	int64_t found;

	for (int64_t at = 0; at < grid->count; at++) {
		if (at % GRID_TRIES == 0 && view__grid_stopped(grid->context))
			return false;
		if (grid_row_matches(grid, grid->order[at], grid_contains, text))
			view_search_match(&search, at);
	}
	found = view_search_end(&search, &context->hit, &context->hits);
	if (found >= 0)
		grid_move_cursor(grid, found);
	return found >= 0;
}

/* ---- choosing columns ------------------------------------------------------------------------ */

enum grid_choice {
	GRID_ALL,   /* include columns of importance 0 */
	GRID_FEWER, /* hide the one that orders the rows */
	GRID_USUAL  /* columns of importance above 0 */
};

/* Number of columns that are not shown on any width; a group counts as one. */
static int grid_count_unselected(const struct view_grid *grid)
{
	int count = 0;

	for (int i = 0; i < grid->table.column_count; i++)
		count += grid->traits[i].role == VIEW_GRID_PLAIN && !view__grid_chosen(grid, i);
	return count;
}

/* Number of columns that do not fit, to the left and to the right. */
static int grid_count_off_screen(const struct view_grid *grid)
{
	int count = grid->lineup_count;

	for (int i = 0; i < grid->place_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[grid->places[i].column];

		count -= (trait->role == VIEW_GRID_PLAIN || trait->alone) && !trait->stays;
	}
	return count;
}

static bool grid_hides_some(const struct view_grid *grid)
{
	for (int i = 0; i < grid->table.column_count; i++)
		if (grid->traits[i].hidden)
			return true;
	return false;
}

/* The first column of the group that orders the rows, if it can be hidden; otherwise -1. */
static int grid_hideable_group(const struct view_grid *grid)
{
	const int group = grid->sort >= 0 ? grid->traits[grid->sort].group : -1;

	return group >= 0 && !grid->traits[group].stays && view__grid_chosen(grid, group) ? group
											  : -1;
}

/* Show more columns, fewer, or the usual ones, and report which. */
static void grid_toggle_columns(struct view_grid *grid)
{
	const enum grid_choice choice = !grid_hides_some(grid) && grid_count_unselected(grid) > 0
						? GRID_ALL
					: grid_hideable_group(grid) >= 0 ? GRID_FEWER
									 : GRID_USUAL;
	const bool every = grid->every, changed = every || grid_hides_some(grid);
	const int hidden = choice == GRID_FEWER ? grid_hideable_group(grid) : -1;
	char text[VIEW_MESSAGE_SIZE];

	for (int i = 0; i < grid->table.column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];

		trait->before = trait->hidden;
		trait->hidden = i == hidden || (choice == GRID_FEWER && trait->hidden);
	}
	grid->every = choice == GRID_ALL || (choice == GRID_FEWER && every);
	/* A filter matches shown cells only, so apply it again. */
	if (grid->filter[0] && !grid_apply_filter(grid)) {
		for (int i = 0; i < grid->table.column_count; i++)
			grid->traits[i].hidden = grid->traits[i].before;
		grid->every = every;
		grid_set_message(grid, "stopped: the columns are those of before");
		return;
	}
	view__grid_reorder(grid);
	grid->column = 0;
	view_grid_layout(grid, grid->area);
	if (choice == GRID_FEWER)
		snprintf(text, sizeof(text), "%.40s is hidden; | again: the usual columns",
			 view__grid_title(grid, hidden));
	else if (choice == GRID_USUAL && changed)
		snprintf(text, sizeof(text), "the usual columns again");
	else if (grid_count_off_screen(grid) > 0)
		snprintf(text, sizeof(text), "all columns are shown: %s",
			 grid->still ? "> goes through them" : "l and h go sideways");
	else
		snprintf(text, sizeof(text), "all columns are shown; %s",
			 choice == GRID_ALL ? "| again: fewer" : "> orders by one, and | hides it");
	grid_set_message(grid, text);
}

/* ---- the status line ------------------------------------------------------------------------- */

/* "+3 columns: l, +12: |": how many more columns exist, and the keys that show them. */
static void grid_status_columns(const struct view_grid *grid, char *out, size_t size)
{
	const int off = grid_count_off_screen(grid), out_of_all = grid_count_unselected(grid);
	/* If the screen uses Left and Right itself, sorting by a column brings it into view. */
	const char *keys = grid->still ? ">" : !grid->before ? "l" : grid->after ? "h l" : "h";
	char sideways[40] = "", more[40] = "";

	if (off > 0)
		snprintf(sideways, sizeof(sideways), ", +%d column%s: %s", off, off == 1 ? "" : "s",
			 keys);
	if (out_of_all > 0)
		snprintf(more, sizeof(more), ", +%d%s: |", out_of_all,
			 off > 0           ? ""
			 : out_of_all == 1 ? " column"
					   : " columns");
	snprintf(out, size, "%s%s", sideways, more);
}

const char *view_grid_word(const struct view_grid *grid, enum view_request request)
{
	if (request == VIEW_SORT_NEXT_REQUEST || request == VIEW_REVERSE_REQUEST)
		return grid->count < 2 ? "" : NULL;
	return request == VIEW_FILTER_REQUEST && grid->table.row_count == 0 ? "" : NULL;
}

void view_grid_status(const struct view_grid *grid, char *out, size_t size)
{
	char at[FMT_SIZE], count[FMT_SIZE], number[FMT_SIZE];
	char row[2 * FMT_SIZE + 16] = "no rows", all[FMT_SIZE + 16] = "", order[160] = "",
				columns[80] = "";

	if (grid->trouble[0]) {
		snprintf(out, size, "filter: %s", grid->trouble);
		return;
	}
	if (grid->count < grid->table.row_count)
		snprintf(all, sizeof(all), " (%s in all)",
			 fmt_count(number, grid->table.row_count));
	if (grid->traits) {
		const int group = grid->sort >= 0 ? grid->traits[grid->sort].group : -1;

		if (grid->sort >= 0)
			snprintf(order, sizeof(order), ", by %.60s%s%s%s",
				 view__grid_title(grid, group), group == grid->sort ? "" : " ",
				 group == grid->sort ? "" : view__grid_title(grid, grid->sort),
				 grid->reverse ? " reversed" : "");
		else if (grid->reverse)
			snprintf(order, sizeof(order), ", reversed");
		grid_status_columns(grid, columns, sizeof(columns));
	}
	if (grid->count > 0)
		snprintf(row, sizeof(row), "row %s of %s", fmt_count(at, grid->at + 1),
			 fmt_count(count, grid->count));
	/* The order comes last: if it is cut off, the headings still show it. */
	snprintf(out, size, "%s%s%s%s%s%s", row, all, grid->filter[0] ? ", filter " : "",
		 grid->filter, grid->count > 0 ? columns : "", order);
}

/* ---- ordering by a column -------------------------------------------------------------------- */

static bool grid_order_by(struct view_grid *grid, int column, bool reverse)
{
	const int column_before = grid->sort;
	const bool reverse_before = grid->reverse;

	grid->sort = column;
	grid->reverse = reverse;
	if (view__grid_sort(grid)) {
		view__grid_reorder(grid);
		return true;
	}
	grid->sort = column_before;
	grid->reverse = reverse_before;
	grid_set_message(grid, "stopped: the order is the one of before");
	return false;
}

bool view_grid_sort(struct view_grid *grid, const char *name, bool reverse)
{
	if (!grid->traits)
		return true;
	if (!grid_order_by(grid, name[0] ? view_table_column(&grid->table, name) : -1, reverse))
		return false;
	grid->at = grid->scroll = 0;
	return true;
}

void view_grid_sort_first(struct view_grid *grid, const char *name)
{
	if (grid->traits && grid->sort < 0 && !grid->reverse)
		grid_order_by(grid, view_table_column(&grid->table, name), false);
}

/* Sort, move to the first row (the user wants the extremes), and scroll the column into view. */
static void grid_sort_to(struct view_grid *grid, int column, bool reverse)
{
	if (!grid_order_by(grid, column, reverse))
		return;
	grid_move_cursor(grid, 0);
	for (int i = 0; column >= 0 && i < grid->lineup_count; i++)
		if ((grid->lineup[i] == column || grid->lineup[i] == grid->traits[column].group) &&
		    !view__grid_place(grid, column)) {
			grid->column = i;
			grid_move_cursor(grid, 0);
			return;
		}
}

/* Sort by the next column. -1 (original order) comes between the last column and the first. */
static void grid_sort_step(struct view_grid *grid, int by)
{
	const int columns = grid->table.column_count;
	int column = grid->sort;

	do {
		column += by;
		if (column >= columns)
			column = -1;
		if (column < -1)
			column = columns - 1;
	} while (column >= 0 && !view__grid_chosen(grid, column));
	grid_sort_to(grid, column, false);
}

/* ---- requests -------------------------------------------------------------------------------- */

enum view_answer view_grid_request(struct view_grid *grid, enum view_request request)
{
	const int64_t page = grid->area.height > 3 ? grid->area.height - 2 : 1;
	const bool rows = grid->traits != NULL; /* without rows the grid still consumes its keys */
	int64_t at = grid->at;

	if (view_list_move(&at, request, page, grid->count)) {
		grid_move_cursor(grid, at);
		return VIEW_DRAW;
	}
	switch (request) {
	case VIEW_LEFT_REQUEST:
		grid->column -= rows && grid->column > 0;
		grid_move_cursor(grid, grid->at);
		return VIEW_DRAW;
	case VIEW_RIGHT_REQUEST:
		grid->column += rows && grid->after;
		grid_move_cursor(grid, grid->at);
		return VIEW_DRAW;
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_SORT_BACK_REQUEST:
		if (rows)
			grid_sort_step(grid, request == VIEW_SORT_NEXT_REQUEST ? 1 : -1);
		return VIEW_DRAW;
	case VIEW_REVERSE_REQUEST:
		if (rows)
			grid_sort_to(grid, grid->sort, !grid->reverse);
		return VIEW_DRAW;
	case VIEW_COLUMNS_REQUEST:
		if (rows)
			grid_toggle_columns(grid);
		return VIEW_DRAW;
	case VIEW_BACK_REQUEST:
		if (!rows || (!grid->filter[0] && !grid->trouble[0]))
			return VIEW_UNHANDLED;
		view_grid_filter(grid, "");
		view_grid_layout(grid, grid->area);
		return VIEW_DRAW;
	default:
		return VIEW_UNHANDLED;
	}
}

enum view_answer view_grid_click(struct view_grid *grid, int x, int y)
{
	if (!view_rect_contains(grid->area, x, y) || !grid->traits)
		return VIEW_UNHANDLED;
	x -= grid->area.x;
	y -= grid->area.y;
	if (y > 0) {
		if (grid->scroll + y - 1 >= grid->count)
			return VIEW_UNHANDLED;
		grid_move_cursor(grid, grid->scroll + y - 1);
		return VIEW_DRAW;
	}
	for (int i = 0; i < grid->place_count; i++) {
		const struct view_grid_place *place = &grid->places[i];

		if (x < place->x || x >= place->x + place->width)
			continue;
		grid_sort_to(grid, place->column, place->column == grid->sort && !grid->reverse);
		return VIEW_DRAW;
	}
	return VIEW_UNHANDLED;
}
