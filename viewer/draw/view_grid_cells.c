/*
 * Columns and cells of a grid: what they are called, the texts that are shown, and how wide these
 * are. The files that sort, compare, lay out and draw rest on this one.
 *
 * Threading: the screen's; the texts are read on the terminal's, too. Ownership: the grid's arrays.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/diff/report_diff.h"
#include "reports/table/report_render.h"

#define GRID_SAMPLE 1000 /* rows measured for widths, whether on the screen or not */

bool view__grid_listed(const char *list, const char *name)
{
	const size_t length = strlen(name);

	while (list && *list) {
		const size_t word = strcspn(list, ",");

		if (word == length && memcmp(list, name, length) == 0)
			return true;
		list += word + (list[word] == ',');
	}
	return false;
}

/* ---- columns --------------------------------------------------------------------------------- */

bool view__grid_chosen(const struct view_grid *grid, int column)
{
	const struct view_grid_trait *trait = &grid->traits[grid->traits[column].group];

	return !trait->hidden && (grid->every || !trait->column || trait->column->importance > 0);
}

const struct view_grid_place *view__grid_place(const struct view_grid *grid, int column)
{
	for (int i = 0; i < grid->place_count; i++)
		if (grid->places[i].column == column)
			return &grid->places[i];
	return NULL;
}

const char *view__grid_title(const struct view_grid *grid, int column)
{
	static const char *const roles[] = {
		[VIEW_GRID_TARGET] = "Target", [VIEW_GRID_DIFF] = "Diff"};
	const struct view_grid_trait *trait = &grid->traits[column];

	if (roles[trait->role])
		return roles[trait->role];
	return trait->column && trait->column->title ? trait->column->title
						     : grid->table.columns[column].name;
}

/* ---- cells ----------------------------------------------------------------------------------- */

double view__cell_number(const struct report_cell *cell)
{
	return cell->type == PROF_INT    ? (double)cell->integer
	       : cell->type == PROF_REAL ? cell->real
					 : NAN;
}

/* "+1,234 (12.50 %)": the share of the larger value. */
static const char *grid_diff_text(const struct view_grid *grid, int64_t row, int column,
				  bool percent, char out[VIEW_GRID_TEXT])
{
	const enum report_quantity quantity = grid->table.columns[column].quantity;
	const double source = fabs(view__cell_number(view__grid_at(grid, row, column - 2)));
	const double target = fabs(view__cell_number(view__grid_at(grid, row, column - 1)));
	struct report_cell size = *view__grid_at(grid, row, column);
	const double diff = view__cell_number(&size);
	char text[VIEW_GRID_TEXT], share[FMT_SIZE];

	if (size.type == PROF_INT && size.integer < 0 && size.integer != IPS_NULL)
		size.integer = -size.integer;
	size.real = fabs(size.real);
	report_cell_text(&size, quantity, text, sizeof(text));
	if (!(diff < 0 || diff > 0))
		snprintf(out, VIEW_GRID_TEXT, "%.*s", VIEW_GRID_TEXT - 1, text);
	else if (percent && quantity != REPORT_FRACTION)
		snprintf(out, VIEW_GRID_TEXT, "%c%.128s (%s)", diff < 0 ? '-' : '+', text,
			 fmt_percent(share, fabs(diff) / max(source, target)));
	else
		snprintf(out, VIEW_GRID_TEXT, "%c%.128s", diff < 0 ? '-' : '+', text);
	return out;
}

const char *view__grid_text(const struct view_grid *grid, int64_t row, int column, bool percent,
			    char out[VIEW_GRID_TEXT])
{
	const struct report_cell *cell = view__grid_at(grid, row, column);

	if (cell->type == PROF_TEXT)
		return cell->text;
	if (cell->type == PROF_NULL && grid->null_text)
		return grid->null_text;
	if (grid->traits[column].role == VIEW_GRID_DIFF && cell->type != PROF_NULL)
		return grid_diff_text(grid, row, column, percent, out);
	return report_cell_text(cell, grid->table.columns[column].quantity, out, VIEW_GRID_TEXT);
}

/* ---- traits ---------------------------------------------------------------------------------- */

/* Return true if the name of column @at is the name of column @first plus @suffix. */
static bool grid_has_suffix(const struct report_table *table, int first, int at, const char *suffix)
{
	const char *name = table->columns[first].name;
	const size_t length = strlen(name);

	return at < table->column_count && strncmp(table->columns[at].name, name, length) == 0 &&
	       strcmp(table->columns[at].name + length, suffix) == 0;
}

/* The verdict column of a comparison; -1: not a comparison. */
static int grid_verdict_column(const struct report_table *table)
{
	const int last = table->column_count - 1;

	return last >= 0 && strcmp(table->columns[last].name, VIEW_GRID_VERDICT) == 0 ? last : -1;
}

/* Find the greatest magnitude of a group's numbers, which share one scale. */
static void grid_measure_greatest(struct view_grid *grid, int column)
{
	struct view_grid_trait *trait = &grid->traits[column];

	for (int part = column; part < column + trait->size && part < column + 2; part++)
		for (int64_t row = 0; row < grid->table.row_count; row++) {
			const double value =
				fabs(view__cell_number(view__grid_at(grid, row, part)));

			if (isfinite(value) && value > trait->greatest)
				trait->greatest = value;
		}
}

void view__grid_measure_row(struct view_grid *grid, int64_t row)
{
	char text[VIEW_GRID_TEXT];

	for (int i = 0; i < grid->table.column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];
		int width = utf8_columns(view__grid_text(grid, row, i, false, text));

		trait->cells = max(width, trait->cells);
		if (trait->role != VIEW_GRID_DIFF)
			continue;
		width = utf8_columns(view__grid_text(grid, row, i, true, text));
		trait->percents = max(width, trait->percents);
	}
}

void view__grid_traits(struct view_grid *grid, const char *keys)
{
	const struct report_table *table = &grid->table;
	const int64_t step = table->row_count / GRID_SAMPLE + 1;

	grid->compared = grid_verdict_column(table) >= 0;
	/* Group adjacent columns: a number, its target and their difference. */
	for (int i = 0; i < table->column_count; i += grid->traits[i].size) {
		struct view_grid_trait *trait = &grid->traits[i];

		*trait = (struct view_grid_trait){.group = i, .size = 1};
		if (grid_has_suffix(table, i, i + 1, "_target"))
			trait->size = grid_has_suffix(table, i, i + 2, "_diff") ? 3 : 2;
		for (int part = 1; part < trait->size; part++)
			grid->traits[i + part] = (struct view_grid_trait){
				.group = i,
				.size = 1,
				.role = part == 1 ? VIEW_GRID_TARGET : VIEW_GRID_DIFF};
		if (trait->size > 1)
			grid->compared = true;
	}
	for (int i = 0; i < table->column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];
		const enum report_quantity quantity = table->columns[i].quantity;
		const char *name = table->columns[trait->group].name;

		for (int c = 0; c < grid->column_count && !trait->column; c++) {
			const char *of = grid->columns[c].name;

			if (of ? strcmp(of, name) == 0 : strcmp(name, VIEW_GRID_VERDICT) != 0)
				trait->column = &grid->columns[c];
		}
		trait->key = view__grid_listed(keys, table->columns[i].name);
		trait->number = quantity != REPORT_TEXT && quantity != REPORT_BOOL;
		if (trait->role == VIEW_GRID_PLAIN && trait->column && trait->column->bar)
			grid_measure_greatest(grid, i);
	}
	for (int64_t row = 0; row < table->row_count; row += step)
		view__grid_measure_row(grid, row);
}

/* ---- rows of a comparison -------------------------------------------------------------------- */

static bool grid_pair_differs(const struct report_cell *a, const struct report_cell *b)
{
	const double x = view__cell_number(a), y = view__cell_number(b);

	if (a->type == PROF_TEXT && b->type == PROF_TEXT)
		return strcmp(a->text, b->text) != 0;
	if (a->type == PROF_INT && b->type == PROF_INT)
		return a->integer != b->integer;
	if (isnan(x) && isnan(y))
		return a->type != b->type;
	return isnan(x) || isnan(y) || x < y || x > y;
}

char view__grid_only_mark(const struct view_grid *grid, int64_t row)
{
	const int column = grid_verdict_column(&grid->table);
	const struct report_cell *cell = column < 0 ? NULL : view__grid_at(grid, row, column);

	if (!cell || cell->type != PROF_TEXT)
		return '\0';
	if (strcmp(cell->text, REPORT_ONLY_SOURCE) == 0)
		return '-';
	return strcmp(cell->text, REPORT_ONLY_TARGET) == 0 ? '+' : '\0';
}

bool view__grid_differs(const struct view_grid *grid, int64_t row)
{
	const int last = grid->table.column_count - 1;

	if (view__grid_only_mark(grid, row))
		return true;
	for (int i = 0; i < last; i++) {
		const struct view_grid_trait *trait = &grid->traits[i];
		/* Ids that link to other screens are assigned anew by each recording. */
		const bool is_link = trait->column && trait->column->importance == 0 &&
				     grid->table.columns[i].quantity == REPORT_NUMBER;

		if (trait->size > 1 && !is_link &&
		    grid_pair_differs(view__grid_at(grid, row, i), view__grid_at(grid, row, i + 1)))
			return true;
	}
	return false;
}
