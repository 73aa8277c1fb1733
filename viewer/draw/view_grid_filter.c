/*
 * Which rows of a grid are shown, and which one is looked for.
 *
 * Threading: the screen's. Ownership: none; the C library's regular expressions own theirs.
 */
#include "viewer/draw/view_grid_internal.h"

#include <regex.h>
#include <string.h>

#include "common/str.h"

#define GRID_TRIES 256 /* rows between two looks: each is all of its cells against an expression */

/* false: @trouble says why. */
static bool grid_compile(regex_t *out, const char *filter, char *trouble, size_t size)
{
	const int error =
		regcomp(out, filter + (filter[0] == '!'), REG_EXTENDED | REG_ICASE | REG_NOSUB);

	if (error)
		regerror(error, out, trouble, size);
	return error == 0;
}

static bool grid_matches(const struct view_grid *grid, int64_t row, const regex_t *expression)
{
	char text[VIEW_GRID_TEXT];

	for (int i = 0; i < grid->table.column_count; i++)
		if (view__grid_chosen(grid, i) &&
		    regexec(expression, view__grid_text(grid, row, i, false, text), 0, NULL, 0) ==
			    0)
			return true;
	return false;
}

/* All rows by @expression (NULL: any will do), or by what does not match it. */
static bool grid_judge(struct view_grid *grid, const regex_t *expression, bool no)
{
	for (int64_t row = 0; row < grid->table.row_count; row++) {
		grid->judged[row] = (!grid->differ || view__grid_differs(grid, row)) &&
				    (!expression || grid_matches(grid, row, expression) != no);
		if (row % GRID_TRIES == 0 && view__grid_stopped(grid->context))
			return false;
	}
	return true;
}

bool view__grid_pass(struct view_grid *grid)
{
	const bool no = grid->filter[0] == '!';
	bool all = grid->filter[no] == '\0', *judged = grid->judged, through;
	regex_t expression;

	grid->trouble[0] = '\0';
	if (!all && !grid_compile(&expression, grid->filter, grid->trouble, sizeof(grid->trouble)))
		all = true;
	through = grid_judge(grid, all ? NULL : &expression, no);
	if (!all)
		regfree(&expression);
	if (!through)
		return false;
	grid->judged = grid->passes;
	grid->passes = judged;
	return true;
}

void view_grid_filter(struct view_grid *grid, const char *text)
{
	char filter[sizeof(grid->filter)], before[sizeof(grid->filter)];
	regex_t expression;

	str_copy(filter, sizeof(filter), text);
	if (!grid_compile(&expression, filter, grid->trouble, sizeof(grid->trouble)))
		return;
	regfree(&expression);
	grid->trouble[0] = '\0';
	memcpy(before, grid->filter, sizeof(before));
	memcpy(grid->filter, filter, sizeof(filter));
	if (!grid->traits)
		return;
	if (view__grid_pass(grid)) {
		view__grid_reorder(grid);
		return;
	}
	memcpy(grid->filter, before, sizeof(before));
	view__grid_say(grid, "stopped: the rows are those of before");
}

static bool grid_contains(const struct view_grid *grid, int64_t row, const char *text)
{
	char cell[VIEW_GRID_TEXT];

	for (int i = 0; i < grid->table.column_count; i++)
		if (view__grid_chosen(grid, i) &&
		    strcasestr(view__grid_text(grid, row, i, false, cell), text))
			return true;
	return false;
}

bool view_grid_search(struct view_grid *grid, int height, const char *text, bool forward)
{
	for (int64_t i = 1; i <= grid->count; i++) {
		const int64_t at = (grid->at + (forward ? i : grid->count - i)) % grid->count;

		if (i % GRID_TRIES == 0 && view__grid_stopped(grid->context))
			return false;
		if (!grid_contains(grid, grid->order[at], text))
			continue;
		view__grid_move(grid, height, at);
		return true;
	}
	return false;
}
