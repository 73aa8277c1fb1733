/*
 * What the screen Tensors shows as rows, for CSV and JSON: the list, or of the page that is open
 * its counts, values or rows; of two reports with the Target's and the difference.
 *
 * Threading: the session's worker. Ownership: tables are the caller's.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define CELLS_MOST 100000 /* of a picture, which may have millions */

/* ---- histograms ------------------------------------------------------------------------------ */

enum {
	BIN_STEP,
	BIN_UPDATE,
	BIN_BIN,
	BIN_LOW,
	BIN_HIGH,
	BIN_COUNT,
	BIN_TARGET,
	BIN_DIFF,
	BIN_COLUMNS
};

static const struct report_column bin_columns[] = {
	[BIN_STEP] = {"step", REPORT_NUMBER},
	[BIN_UPDATE] = {"weight_update", REPORT_NUMBER},
	[BIN_BIN] = {"bin", REPORT_NUMBER},
	[BIN_LOW] = {"low", REPORT_REAL},
	[BIN_HIGH] = {"high", REPORT_REAL},
	[BIN_COUNT] = {"count", REPORT_COUNT},
	[BIN_TARGET] = {"count_target", REPORT_COUNT},
	[BIN_DIFF] = {"count_diff", REPORT_COUNT},
};

/* IPS_NULL: the report has no such column. */
static int64_t bin_count(const struct view_tensor_histogram *h, int side, int column, int bin)
{
	const double count = h->side[side].count[bin * h->columns + column];

	if (column >= h->side[side].columns)
		return IPS_NULL;
	return isnan(count) ? 0 : (int64_t)count;
}

static bool bin_empty(const struct view_tensor_histogram *h, int column, int bin)
{
	return bin_count(h, 0, column, bin) <= 0 && bin_count(h, 1, column, bin) <= 0;
}

static void bin_row(const struct view_tensor_histogram *h, int column, int bin, bool compared,
		    struct report_table *out, int64_t row)
{
	const struct view_tensor_histograms *side = &h->side[column >= h->side[0].columns];
	const int64_t source = bin_count(h, 0, column, bin), target = bin_count(h, 1, column, bin);

	view_table_int(out, row, BIN_STEP, side->step[column]);
	view_table_int(out, row, BIN_UPDATE, side->update[column]);
	view_table_int(out, row, BIN_BIN, h->bin[bin]);
	view_table_real(out, row, BIN_LOW, h->low[bin]);
	view_table_real(out, row, BIN_HIGH, h->high[bin]);
	view_table_int(out, row, BIN_COUNT, source);
	if (!compared)
		return;
	view_table_int(out, row, BIN_TARGET, target);
	if (source != IPS_NULL && target != IPS_NULL)
		view_table_int(out, row, BIN_DIFF, target - source);
}

static enum status histogram_table(const struct view_tensors *screen, bool compared,
				   struct report_table *out, struct err *err)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	int64_t rows = 0, row = 0;
	enum status status;

	for (int i = 0; i < h->bins * h->columns; i++)
		rows += !bin_empty(h, i / h->bins, i % h->bins);
	status = view_table_new(out, "histograms", bin_columns, compared ? BIN_COLUMNS : BIN_TARGET,
				rows, err);
	for (int i = 0; i < h->bins * h->columns && status == ST_OK; i++)
		if (!bin_empty(h, i / h->bins, i % h->bins))
			bin_row(h, i / h->bins, i % h->bins, compared, out, row++);
	return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum {
	CELL_STEP,
	CELL_UPDATE,
	CELL_SLICE,
	CELL_ROW,
	CELL_COLUMN,
	CELL_VALUE,
	CELL_TARGET,
	CELL_DIFF,
	CELL_COLUMNS
};

static const struct report_column cell_columns[] = {
	[CELL_STEP] = {"step", REPORT_NUMBER},
	[CELL_UPDATE] = {"weight_update", REPORT_NUMBER},
	[CELL_SLICE] = {"slice", REPORT_TEXT},
	[CELL_ROW] = {"row", REPORT_NUMBER},
	[CELL_COLUMN] = {"column", REPORT_NUMBER},
	[CELL_VALUE] = {"value", REPORT_REAL},
	[CELL_TARGET] = {"value_target", REPORT_REAL},
	[CELL_DIFF] = {"value_diff", REPORT_REAL},
};

/* "0, 2": of the axes above rows and columns; "" where there are none. */
static void cell_slice(const struct view_tensor_values *v, struct str *out)
{
	const int ndim = v->part[VIEW_OF_SOURCE].ndim > 0 ? v->part[VIEW_OF_SOURCE].ndim
							  : v->part[VIEW_OF_TARGET].ndim;

	for (int i = 0; i < ndim - 2; i++)
		str_addf(out, i > 0 ? ", %lld" : "%lld", (long long)v->first[i]);
}

static void cell_row(const struct view_tensors *screen, int64_t at, bool compared,
		     struct report_table *out, int64_t row)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const int y = (int)(at / v->shown_columns), x = (int)(at % v->shown_columns);

	view_table_int(out, row, CELL_STEP, capture->step);
	view_table_int(out, row, CELL_UPDATE, capture->weight_update);
	view_table_int(out, row, CELL_ROW, v->row + y);
	view_table_int(out, row, CELL_COLUMN, v->column + x);
	for (int i = 0; i < (compared ? VIEW_TENSOR_SHARES : 1); i++)
		if (v->part[i].cell && view__values_has(v, &v->part[i], y, x))
			view_table_real(out, row, CELL_VALUE + i, v->part[i].cell[at]);
}

static enum status values_table(const struct view_tensors *screen, bool compared,
				struct report_table *out, struct err *err)
{
	const struct view_tensor_values *v = &screen->values;
	const int64_t all =
		view__values_capture(screen) ? (int64_t)v->shown_rows * v->shown_columns : 0;
	const int64_t cells = min(all, CELLS_MOST);
	struct str slice = {0};
	int64_t rows = 0, row = 0;
	enum status status;

	for (int64_t at = 0; at < cells; at++)
		rows += !(v->equal && v->equal[at]);
	cell_slice(v, &slice);
	status = slice.failed ? err_nomem(err)
			      : view_table_new(out, "values", cell_columns,
					       compared ? CELL_COLUMNS : CELL_TARGET, rows, err);
	for (int64_t at = 0; at < cells && status == ST_OK; at++) {
		if (v->equal && v->equal[at])
			continue;
		cell_row(screen, at, compared, out, row);
		if (slice.text)
			status = view_table_text(out, row, CELL_SLICE, slice.text, err);
		row++;
	}
	str_free(&slice);
	if (cells < all)
		out->note = "the first 100,000 values of the picture";
	return status;
}

/* ---- what is shown --------------------------------------------------------------------------- */

enum status view__tensors_table(void *state, struct view_context *context, struct report_table *out,
				struct err *err)
{
	const struct view_tensors *screen = state;
	const bool compared = context->target != NULL;
	enum status status;

	if (screen->opened && screen->page >= VIEW_TENSOR_RULES)
		return view_grid_table(&screen->grid, out, err);
	if (screen->opened && screen->page == VIEW_TENSOR_HISTOGRAM)
		status = histogram_table(screen, compared, out, err);
	else if (screen->opened && screen->page == VIEW_TENSOR_VALUES)
		status = values_table(screen, compared, out, err);
	else
		return view__tensors_list_table(screen, context, out, err);
	if (status != ST_OK) {
		report_table_free(out);
		memset(out, 0, sizeof(*out));
	}
	return status;
}
