/*
 * The order of a grid's rows: a stable merge sort of integer keys that represent the cells.
 *
 * A cell's key is its number, or eight bytes of its text. Rows with equal eight bytes are sorted
 * again by the next eight, so a million texts are sorted without comparing whole texts.
 *
 * Threading: the screen's. Ownership: the grid's arrays.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "common/sorted.h"

#define GRID_LEVELS 32 /* of eight bytes; beyond, whole texts are compared */
#define GRID_FEW    12 /* rows that are sorted by insertion */

struct grid_sorter {
	const struct view_grid *grid;
	bool descending;
	bool cells;   /* equal keys do not imply equal cells: compare the cells */
	bool stopped; /* the work was cancelled; keys are left unsorted */
};

/* Rows whose key bytes so far are equal. */
struct grid_run {
	int64_t at, end;
};

static unsigned char grid_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : (unsigned char)c;
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
		return SORTED_BY(a, b, integer);
	x = view__cell_number(a);
	y = view__cell_number(b);
	return SORTED_ORDER(x, y);
}

/* Return true if @a sorts after @b. */
static bool grid_sorts_after(const struct grid_sorter *sorter, const struct view_grid_key *a,
			     const struct view_grid_key *b)
{
	const struct view_grid *grid = sorter->grid;
	int order = SORTED_BY(a, b, key);

	if (order == 0 && sorter->cells)
		order = grid_compare_cells(view__grid_at(grid, a->row, grid->sort),
					   view__grid_at(grid, b->row, grid->sort));
	return sorter->descending ? order < 0 : order > 0;
}

/* Check for cancellation; called every few thousand rows, less than a millisecond apart. */
static bool grid_stopped(struct grid_sorter *sorter)
{
	sorter->stopped = sorter->stopped || view__grid_stopped(sorter->grid->context);
	return sorter->stopped;
}

/* Merge the sorted rows @begin .. @middle - 1 and @middle .. @end - 1 of @from into @to. */
static void grid_merge(struct grid_sorter *sorter, const struct view_grid_key *from,
		       struct view_grid_key *to, int64_t begin, int64_t middle, int64_t end)
{
	int64_t left = begin, right = middle;

	for (int64_t i = begin; i < end && !grid_stopped(sorter);) {
		const int64_t until = min(end, i + VIEW_GRID_SLICE);

		for (; i < until; i++) {
			const bool is_left = left < middle &&
					     (right >= end ||
					      !grid_sorts_after(sorter, &from[left], &from[right]));

			to[i] = from[is_left ? left++ : right++];
		}
	}
}

/* Sort short runs by insertion, then merge them from `keys` to `spare` and back. */
static void grid_merge_sort(struct grid_sorter *sorter, struct view_grid_key *keys,
			    struct view_grid_key *spare, int64_t count)
{
	struct view_grid_key *from = keys, *to = spare, *swap;

	for (int64_t i = 0; i < count && !sorter->stopped; i += GRID_FEW) {
		for (int64_t k = i + 1; k < min(count, i + GRID_FEW); k++) {
			const struct view_grid_key key = keys[k];
			int64_t at = k;

			for (; at > i && grid_sorts_after(sorter, &keys[at - 1], &key); at--)
				keys[at] = keys[at - 1];
			keys[at] = key;
		}
		if (i % (VIEW_GRID_SLICE * GRID_FEW) == 0)
			grid_stopped(sorter);
	}
	for (int64_t run = GRID_FEW; run < count && !grid_stopped(sorter); run *= 2) {
		for (int64_t i = 0; i < count && !sorter->stopped; i += 2 * run) {
			const int64_t middle = min(i + run, count);
			const int64_t end = min(i + 2 * run, count);

			if (middle < end &&
			    grid_sorts_after(sorter, &from[middle - 1], &from[middle]))
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

/* Sort a run by eight bytes of its texts from @offset on, ignoring case. If @last, no further level
 * follows: break ties by comparing the whole texts. */
static struct grid_run grid_sort_text_run(struct grid_sorter *sorter, int64_t begin, int64_t end,
					  size_t offset, bool last)
{
	const struct view_grid *grid = sorter->grid;

	for (int64_t i = begin; i < end; i++) {
		struct view_grid_key *key = &grid->keys[i];
		const char *text = view__grid_at(grid, key->row, grid->sort)->text + offset;

		key->key = 0;
		for (int byte = 0; byte < 8; byte++) {
			key->key = key->key << 8 | grid_lower(*text);
			text += *text != '\0';
		}
	}
	sorter->cells = last;
	grid_merge_sort(sorter, grid->keys + begin, grid->spare, end - begin);
	return (struct grid_run){begin, end};
}

/* Find the next rows of @run with equal keys whose texts continue. Return false if there are
 * none. */
static bool grid_next_equal_run(const struct view_grid_key *keys, struct grid_run *run,
				struct grid_run *out)
{
	while (run->at < run->end) {
		const int64_t begin = run->at;

		while (run->at < run->end && keys[run->at].key == keys[begin].key)
			run->at++;
		*out = (struct grid_run){begin, run->at};
		if (run->at - begin > 1 && (keys[begin].key & 0xff) != 0)
			return true;
	}
	return false;
}

static void grid_sort_texts(struct grid_sorter *sorter, int64_t count)
{
	const struct view_grid *grid = sorter->grid;
	const char *first =
		count > 0 ? view__grid_at(grid, grid->keys[0].row, grid->sort)->text : "";
	size_t prefix = strlen(first); /* skip the common prefix of all texts */
	struct grid_run runs[GRID_LEVELS], next;
	int level = 0;

	for (int64_t i = 1; i < count && prefix > 0; i++) {
		const char *text = view__grid_at(grid, grid->keys[i].row, grid->sort)->text;
		size_t same = 0;

		while (same < prefix && grid_lower(text[same]) == grid_lower(first[same]))
			same++;
		prefix = same;
	}
	runs[0] = grid_sort_text_run(sorter, 0, count, prefix, false);
	while (level >= 0 && !grid_stopped(sorter)) {
		if (level + 1 == GRID_LEVELS ||
		    !grid_next_equal_run(grid->keys, &runs[level], &next)) {
			level--;
			continue;
		}
		level++;
		runs[level] =
			grid_sort_text_run(sorter, next.at, next.end, prefix + 8 * (size_t)level,
					   level + 1 == GRID_LEVELS);
	}
}

/* Put rows with a value first, with their keys, then rows without. Return the number of the
 * former. */
static int64_t grid_fill_keys(struct view_grid *grid, bool *only_texts)
{
	const int64_t rows = grid->table.row_count;
	bool texts = false, numbers = false;
	int64_t count = 0, rest;

	for (int64_t row = 0; row < rows; row++) {
		const struct report_cell *cell = view__grid_at(grid, row, grid->sort);
		double value = view__cell_number(cell) + 0.0; /* -0 is 0 */
		uint64_t bits;

		if (cell->type != PROF_TEXT && isnan(value))
			continue;
		grid->keys[count] = (struct view_grid_key){0, row};
		if (cell->type == PROF_TEXT) {
			texts = true; /* grid_sort_text_run() makes the key */
		} else {
			/* Map the bits of a double to an integer with the same order. */
			memcpy(&bits, &value, sizeof(bits));
			grid->keys[count].key = bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
			numbers = true;
		}
		count++;
	}
	/* Text keys and number keys are not comparable: compare all cells instead. */
	for (int64_t i = 0; texts && numbers && i < count; i++)
		grid->keys[i].key = 0;
	*only_texts = texts && !numbers;
	rest = count;
	for (int64_t row = 0; row < rows; row++) {
		const struct report_cell *cell = view__grid_at(grid, row, grid->sort);

		if (cell->type != PROF_TEXT && isnan(view__cell_number(cell)))
			grid->keys[rest++].row = row;
	}
	return count;
}

bool view__grid_descends(const struct view_grid *grid, int column)
{
	const bool number = grid->traits[column].number &&
			    grid->table.columns[column].quantity != REPORT_NUMBER;

	return number != grid->reverse;
}

bool view__grid_sort(struct view_grid *grid)
{
	const int64_t rows = grid->table.row_count;
	struct grid_sorter sorter = {.grid = grid, .cells = true};
	int64_t count;
	bool texts;

	if (grid->sort < 0 || grid->sort >= grid->table.column_count) {
		for (int64_t row = 0; row < rows; row++)
			grid->sequence[row] = grid->reverse ? rows - 1 - row : row;
		return true;
	}
	sorter.descending = view__grid_descends(grid, grid->sort);
	count = grid_fill_keys(grid, &texts);
	if (texts)
		grid_sort_texts(&sorter, count);
	else
		grid_merge_sort(&sorter, grid->keys, grid->spare, count);
	if (grid_stopped(&sorter))
		return false;
	for (int64_t row = 0; row < rows; row++)
		grid->sequence[row] = grid->keys[row].row;
	return true;
}

void view__grid_reorder(struct view_grid *grid)
{
	const int64_t row = grid->at < grid->count ? grid->order[grid->at] : -1;

	grid->count = 0;
	for (int64_t i = 0; i < grid->table.row_count; i++) {
		if (!grid->passes[grid->sequence[i]])
			continue;
		if (grid->sequence[i] == row)
			grid->at = grid->count;
		grid->order[grid->count++] = grid->sequence[i];
	}
}
