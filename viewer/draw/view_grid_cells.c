/*
 * Columns and cells of a grid: what they are called, what they say.
 *
 * Threading: the screen's. Ownership: none.
 */
#include "viewer/draw/view_grid_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "reports/table/report_render.h"

#define GRID_SAMPLE 1000 /* rows that are measured whether they are on the screen or not */

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

/* ---- what is known of columns ---------------------------------------------------------------- */

static const struct view_grid_column *grid_entry(const struct view_grid *grid, const char *name)
{
	for (int i = 0; i < grid->column_count; i++)
		if (strcmp(grid->columns[i].name, name) == 0)
			return &grid->columns[i];
	return NULL;
}

/* Is the column @at called like the column @first with @suffix behind? */
static bool grid_sibling(const struct report_table *table, int first, int at, const char *suffix)
{
	const char *name = table->columns[first].name;
	const size_t length = strlen(name);

	return at < table->column_count && strncmp(table->columns[at].name, name, length) == 0 &&
	       strcmp(table->columns[at].name + length, suffix) == 0;
}

/* Columns one after another: a number, its target and their difference. */
static void grid_groups(struct view_grid *grid)
{
	const struct report_table *table = &grid->table;

	for (int i = 0; i < table->column_count; i += grid->traits[i].size) {
		struct view_grid_trait *trait = &grid->traits[i];

		*trait = (struct view_grid_trait){.group = i, .size = 1};
		if (grid_sibling(table, i, i + 1, "_target"))
			trait->size = grid_sibling(table, i, i + 2, "_diff") ? 3 : 2;
		for (int part = 1; part < trait->size; part++)
			grid->traits[i + part] = (struct view_grid_trait){
				.group = i,
				.size = 1,
				.role = part == 1 ? VIEW_GRID_TARGET : VIEW_GRID_DIFF};
		if (trait->size > 1)
			grid->compared = true;
	}
}

static void grid_measure_row(struct view_grid *grid, int64_t row)
{
	char text[VIEW_GRID_TEXT];

	for (int i = 0; i < grid->table.column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];
		int width = view_text_width(view__grid_text(grid, row, i, false, text));

		trait->cells = max(width, trait->cells);
		if (trait->role != VIEW_GRID_DIFF)
			continue;
		width = view_text_width(view__grid_text(grid, row, i, true, text));
		trait->percents = max(width, trait->percents);
	}
}

void view__grid_measure(struct view_grid *grid, int height)
{
	for (int64_t i = grid->scroll; i < grid->count && i < grid->scroll + height - 1; i++)
		grid_measure_row(grid, grid->order[i]);
}

/* The greatest magnitude of a group's numbers, which share their scale. */
static void grid_greatest(struct view_grid *grid, int column)
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

void view__grid_traits(struct view_grid *grid, const char *keys)
{
	const struct report_table *table = &grid->table;
	const int64_t step = table->row_count / GRID_SAMPLE + 1;

	grid->compared = table->column_count > 0 &&
			 strcmp(table->columns[table->column_count - 1].name, "only") == 0;
	grid_groups(grid);
	for (int i = 0; i < table->column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];
		const enum report_quantity quantity = table->columns[i].quantity;

		trait->column = grid_entry(grid, table->columns[trait->group].name);
		trait->key = view__grid_listed(keys, table->columns[i].name);
		trait->number = quantity != REPORT_TEXT && quantity != REPORT_BOOL;
		if (trait->role == VIEW_GRID_PLAIN && trait->column && trait->column->bar)
			grid_greatest(grid, i);
	}
	for (int64_t row = 0; row < table->row_count; row += step)
		grid_measure_row(grid, row);
}

bool view__grid_chosen(const struct view_grid *grid, int column)
{
	const struct view_grid_trait *trait = &grid->traits[grid->traits[column].group];

	return !trait->hidden && (grid->every || !trait->column || trait->column->importance > 0);
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

const char *view__grid_head(const struct view_grid *grid, int column, int width,
			    char out[VIEW_GRID_TEXT])
{
	const struct view_grid_trait *trait = &grid->traits[column];
	const char *title = view__grid_title(grid, column);

	/* It may stand where nothing else says what of. */
	if (trait->alone && trait->role != VIEW_GRID_PLAIN) {
		snprintf(out, VIEW_GRID_TEXT, "%.200s %s", view__grid_title(grid, trait->group),
			 title);
		if (view_text_width(out) > width)
			snprintf(out, VIEW_GRID_TEXT, "%.200s %.1s",
				 view__grid_title(grid, trait->group), title);
		return view_text_width(out) > width ? title : out;
	}
	if (trait->size < 2)
		return title;
	snprintf(out, VIEW_GRID_TEXT, "%.200s Source", title);
	if (view_text_width(out) > width)
		snprintf(out, VIEW_GRID_TEXT, "%.200s S", title);
	return out;
}

/* ---- cells ----------------------------------------------------------------------------------- */

double view__cell_number(const struct report_cell *cell)
{
	return cell->type == PROF_INT    ? (double)cell->integer
	       : cell->type == PROF_REAL ? cell->real
					 : NAN;
}

/* "+1,234 (12.50 %)": the share is of the larger of the two. */
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

/* Numbers that lead to other screens, which each recording gives out anew. */
static bool grid_is_link(const struct view_grid *grid, int column)
{
	const struct view_grid_trait *trait = &grid->traits[column];

	return trait->column && trait->column->importance == 0 &&
	       grid->table.columns[column].quantity == REPORT_NUMBER;
}

bool view__grid_differs(const struct view_grid *grid, int64_t row)
{
	const int last = grid->table.column_count - 1;

	if (view__grid_only(grid, row))
		return true;
	for (int i = 0; i < last; i++)
		if (grid->traits[i].size > 1 && !grid_is_link(grid, i) &&
		    grid_pair_differs(view__grid_at(grid, row, i), view__grid_at(grid, row, i + 1)))
			return true;
	return false;
}

char view__grid_only(const struct view_grid *grid, int64_t row)
{
	const int last = grid->table.column_count - 1;
	const struct report_cell *cell;

	if (last < 0 || !grid->compared || strcmp(grid->table.columns[last].name, "only") != 0)
		return '\0';
	cell = view__grid_at(grid, row, last);
	if (cell->type != PROF_TEXT)
		return '\0';
	return strcmp(cell->text, "source") == 0 ? '-' : '+';
}
