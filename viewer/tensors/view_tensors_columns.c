/*
 * The columns of the table of tensors: widths, and the order of rows by them.
 *
 * Threading: constant data. Ownership: none.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"

const struct view_tensor_column view__columns[VIEW_COLUMNS] = {
	[VIEW_COLUMN_KEY] = {"key", 0, 0, false, false},
	[VIEW_COLUMN_KIND] = {"kind", 10, 96, false, false},
	[VIEW_COLUMN_STAGE] = {"stage", 5, 120, true, false},
	[VIEW_COLUMN_SHAPE] = {"shape", 16, 140, false, false},
	[VIEW_COLUMN_ROWS] = {"rows", 7, 60, true, false},
	[VIEW_COLUMN_NAN] = {"NaN", 6, 0, true, false},
	[VIEW_COLUMN_INF] = {"Inf", 6, 0, true, false},
	[VIEW_COLUMN_FIRST] = {"first", 10, 160, true, true},
	[VIEW_COLUMN_LAST] = {"last", 10, 50, true, true},
	[VIEW_COLUMN_LEAST] = {"least", 10, 112, true, true},
	[VIEW_COLUMN_GREATEST] = {"greatest", 10, 112, true, true},
	[VIEW_COLUMN_TREND] = {"trend", 14, 70, false, true},
};

bool view__column_shown(int column, int width)
{
	return width >= view__columns[column].from_width;
}

/* The width of @column; the key gets the rest, and the trend of a wide screen some of it. */
int view__column_width(int column, int width)
{
	const int trend = width >= 160 ? VIEW_SPARK_POINTS : width >= 100 ? 20 : 14;
	int rest = width - 2;

	if (column == VIEW_COLUMN_TREND)
		return trend;
	if (column != VIEW_COLUMN_KEY)
		return view__columns[column].width;
	for (int i = 1; i < VIEW_COLUMNS; i++)
		if (view__column_shown(i, width))
			rest -= 1 + (i == VIEW_COLUMN_TREND ? trend : view__columns[i].width);
	return rest > 8 ? rest : 8;
}

double view__sort_number(const struct view_tensor *row, int column)
{
	const struct report_tensor *tensor = row->tensor;

	switch (column) {
	case VIEW_COLUMN_STAGE:
		return tensor->stage == INT64_MIN ? NAN : (double)tensor->stage;
	case VIEW_COLUMN_ROWS:
		return (double)tensor->rows;
	case VIEW_COLUMN_NAN:
		return (double)tensor->n_nan;
	case VIEW_COLUMN_INF:
		return (double)tensor->n_inf;
	case VIEW_COLUMN_FIRST:
		return row->first;
	case VIEW_COLUMN_LAST:
		return row->last;
	case VIEW_COLUMN_LEAST:
		return row->least;
	case VIEW_COLUMN_GREATEST:
		return row->greatest;
	case VIEW_COLUMN_TREND:
		/* How far it has moved. */
		return fabs(row->last - row->first);
	default:
		return NAN;
	}
}

static const char *view_sort_text(const struct view_tensor *row, int column)
{
	const struct report_tensor *tensor = row->tensor;
	const char *text = column == VIEW_COLUMN_KEY    ? tensor->key
			   : column == VIEW_COLUMN_KIND ? tensor->kind
							: tensor->shape;

	return text ? text : "";
}

int view__compare(const void *a, const void *b, void *user)
{
	const struct view_tensors *screen = user;
	const int left = *(const int *)a, right = *(const int *)b;
	const struct view_tensor *one = &screen->rows[left], *two = &screen->rows[right];
	int order = 0;

	if (screen->sort == VIEW_COLUMN_KEY || screen->sort == VIEW_COLUMN_KIND ||
	    screen->sort == VIEW_COLUMN_SHAPE) {
		order = strcmp(view_sort_text(one, screen->sort),
			       view_sort_text(two, screen->sort));
	} else if (screen->sort != VIEW_NO_SORT) {
		const double x = view__sort_number(one, screen->sort);
		const double y = view__sort_number(two, screen->sort);

		/* Unknown last, whatever the direction. */
		if (isnan(x) || isnan(y))
			return isnan(x) != isnan(y) ? (isnan(x) ? 1 : -1) : left - right;
		/* The greatest first: that is what is looked for. */
		order = x > y ? -1 : x < y;
	}
	if (order == 0)
		order = left < right ? -1 : left > right;
	return screen->reverse ? -order : order;
}
