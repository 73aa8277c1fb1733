/*
 * The order of a grid's rows: a stable merge sort of numbers that stand for the cells.
 *
 * A cell's key is its number, or the first bytes of its text; only equal keys look at the cells
 * again. So a million rows are sorted without touching a million cells twenty times.
 *
 * Threading: the screen's. Ownership: the grid's arrays.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <string.h>

struct grid_sorter {
	const struct view_grid *grid;
	bool descending;
};

static unsigned char grid_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : (unsigned char)c;
}

/* The first eight bytes, case aside. */
static uint64_t grid_text_key(const char *text)
{
	uint64_t key = 0;

	for (int i = 0; i < 8; i++) {
		key = key << 8 | grid_lower(*text);
		text += *text != '\0';
	}
	return key;
}

static uint64_t grid_number_key(double value)
{
	uint64_t bits;

	value += 0.0; /* -0 is 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static bool grid_empty(const struct report_cell *cell)
{
	return cell->type != PROF_TEXT && isnan(view__cell_number(cell));
}

static int grid_compare_texts(const char *a, const char *b)
{
	while (*a && grid_lower(*a) == grid_lower(*b)) {
		a++;
		b++;
	}
	return grid_lower(*a) - grid_lower(*b);
}

static int grid_compare_cells(const struct report_cell *a, const struct report_cell *b)
{
	double x, y;

	if (a->type == PROF_TEXT && b->type == PROF_TEXT)
		return grid_compare_texts(a->text, b->text);
	if (a->type == PROF_TEXT || b->type == PROF_TEXT)
		return a->type == PROF_TEXT ? 1 : -1;
	if (a->type == PROF_INT && b->type == PROF_INT)
		return (a->integer > b->integer) - (a->integer < b->integer);
	x = view__cell_number(a);
	y = view__cell_number(b);
	return (x > y) - (x < y);
}

/* Does @a stand after @b? */
static bool grid_after(const struct grid_sorter *sorter, const struct view_grid_key *a,
		       const struct view_grid_key *b)
{
	const struct view_grid *grid = sorter->grid;
	int order = (a->key > b->key) - (a->key < b->key);

	if (order == 0)
		order = grid_compare_cells(view__grid_at(grid, a->row, grid->sort),
					   view__grid_at(grid, b->row, grid->sort));
	return sorter->descending ? order < 0 : order > 0;
}

static void grid_merge(const struct grid_sorter *sorter, const struct view_grid_key *from,
		       struct view_grid_key *to, int64_t begin, int64_t middle, int64_t end)
{
	int64_t left = begin, right = middle;

	for (int64_t i = begin; i < end; i++) {
		const bool take = left < middle &&
				  (right >= end || !grid_after(sorter, &from[left], &from[right]));

		to[i] = from[take ? left++ : right++];
	}
}

static void grid_merge_sort(const struct grid_sorter *sorter, struct view_grid_key *keys,
			    struct view_grid_key *spare, int64_t count)
{
	struct view_grid_key *from = keys, *to = spare, *swap;

	for (int64_t run = 1; run < count; run *= 2) {
		for (int64_t i = 0; i < count; i += 2 * run) {
			const int64_t middle = i + run < count ? i + run : count;
			const int64_t end = i + 2 * run < count ? i + 2 * run : count;

			if (middle < end && grid_after(sorter, &from[middle - 1], &from[middle]))
				grid_merge(sorter, from, to, i, middle, end);
			else
				memcpy(&to[i], &from[i], (size_t)(end - i) * sizeof(*to));
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, (size_t)count * sizeof(*keys));
}

/* The rows that have a value first, then the others. Returns how many have. */
static int64_t grid_fill_keys(struct view_grid *grid)
{
	const int64_t rows = grid->table.row_count;
	bool texts = false, numbers = false;
	int64_t count = 0, rest;

	for (int64_t row = 0; row < rows; row++) {
		const struct report_cell *cell = view__grid_at(grid, row, grid->sort);

		if (grid_empty(cell))
			continue;
		if (cell->type == PROF_TEXT)
			texts = true;
		else
			numbers = true;
		grid->keys[count].row = row;
		grid->keys[count++].key = cell->type == PROF_TEXT
						  ? grid_text_key(cell->text)
						  : grid_number_key(view__cell_number(cell));
	}
	/* Keys of texts and of numbers say nothing of each other. */
	for (int64_t i = 0; texts && numbers && i < count; i++)
		grid->keys[i].key = 0;
	rest = count;
	for (int64_t row = 0; row < rows; row++)
		if (grid_empty(view__grid_at(grid, row, grid->sort)))
			grid->keys[rest++].row = row;
	return count;
}

bool view__grid_descends(const struct view_grid *grid, int column)
{
	const bool number = grid->traits[column].number &&
			    grid->table.columns[column].quantity != REPORT_NUMBER;

	return number != grid->reverse;
}

void view__grid_sort(struct view_grid *grid)
{
	const int64_t rows = grid->table.row_count;
	struct grid_sorter sorter = {.grid = grid};

	if (grid->sort >= 0 && grid->sort < grid->table.column_count) {
		sorter.descending = view__grid_descends(grid, grid->sort);
		grid_merge_sort(&sorter, grid->keys, grid->spare, grid_fill_keys(grid));
		return;
	}
	for (int64_t row = 0; row < rows; row++)
		grid->keys[row].row = grid->reverse ? rows - 1 - row : row;
}

void view__grid_reorder(struct view_grid *grid)
{
	const int64_t row = grid->at < grid->count ? grid->order[grid->at] : -1;

	grid->count = 0;
	for (int64_t i = 0; i < grid->table.row_count; i++) {
		if (!grid->passes[grid->keys[i].row])
			continue;
		if (grid->keys[i].row == row)
			grid->at = grid->count;
		grid->order[grid->count++] = grid->keys[i].row;
	}
}
