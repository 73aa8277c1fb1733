/*
 * The screen Tensors as rows: the pages that are tables, the tables for CSV and JSON, and the
 * statements behind them. With two reports the same statement is run on both.
 *
 * Threading: that of the session. Ownership: the grid's, or the caller's table.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- pages that are tables ------------------------------------------------------------------- */

#define RANGE 50000 /* row ids of all tensors per query */

/* Append " WHERE ..." for the tensor, its rank and the shown replica. @key, @queue: column names;
 * @context: the prefix of "rank" and "replica". @queue NULL: any queue, since two runs may have the
 * same keys in other queues. */
static void tensors_where(const struct view_tensors *screen, const char *key, const char *queue,
			  const char *context, struct str *out)
{
	str_addf(out, " WHERE %s = ", key);
	str_add_sql(out, screen->key);
	if (screen->has_queue && queue) {
		str_addf(out, " AND %s = ", queue);
		str_add_sql(out, screen->queue);
	}
	if (screen->rank != IPS_NULL)
		str_addf(out, " AND %srank = %lld", context, (long long)screen->rank);
	if (screen->replica >= 0)
		str_addf(out, " AND %sreplica = %d", context, screen->replica);
}

static const struct view_grid_column tensors_rules_columns[] = {
	{.name = "row", .importance = 0},
	{.name = "rule", .importance = 100},
	{.name = "step", .importance = 95},
	{.name = "weight_update", .title = "update", .importance = 94},
	{.name = "phase", .importance = 80},
	{.name = "value", .title = "found", .importance = 90},
	{.name = "threshold", .importance = 85},
	{.name = "at_ns", .title = "at", .importance = 70},
	{.name = "epoch", .importance = 60},
	{.name = "microbatch", .importance = 40},
	{.name = "replica", .importance = 30},
};

static const struct view_grid_column tensors_rows_columns[] = {
	{.name = "row", .importance = 0},
	{.name = "step", .importance = 100},
	{.name = "weight_update", .title = "update", .importance = 99},
	{.name = "replica", .importance = 60},
	{.name = "phase", .importance = 50},
	{.name = "mean", .importance = 90},
	{.name = "std", .importance = 95},
	{.name = "min", .importance = 80},
	{.name = "max", .importance = 80},
	{.name = "n_nan", .title = "NaN", .importance = 92},
	{.name = "n_pos_inf", .title = "+Inf", .importance = 91},
	{.name = "n_neg_inf", .title = "-Inf", .importance = 91},
	{.name = "abs_max", .importance = 75},
	{.name = "n_zero", .title = "zeros", .importance = 70},
	{.name = "l2", .importance = 65},
	{.name = "l1", .importance = 64},
	{.name = "n", .importance = 40},
};

/* The statement up to the condition on the tensor, the columns of its key and queue (NULL: any),
 * and the keys of a comparison's rows. */
static const struct {
	const char *name, *sql, *key, *queue, *keys;
	const struct view_grid_column *columns;
	int column_count;
} tensors_grids[] = {
	[VIEW_TENSOR_RULES] = {"rules",
			       "SELECT h.row_id AS row, h.rule, c.step, c.weight_update, c.phase, "
			       "h.value, h.threshold, h.time_ns AS at_ns, c.epoch, c.microbatch, "
			       "c.replica FROM health_rows h "
			       "LEFT JOIN tensor_rows i ON i.tensor_id = h.tensor_id "
			       "LEFT JOIN contexts c ON c.context_id = h.context_id",
			       "coalesce(h.key, i.key)", NULL, "rule,step,phase,replica",
			       tensors_rules_columns, ARRAY_LEN(tensors_rules_columns)},
	[VIEW_TENSOR_ROWS] = {"rows",
			      "SELECT h.row_id AS row, c.step, c.weight_update, c.phase, h.mean, "
			      "h.std, h.min, h.max, h.n_nan, h.n_pos_inf, h.n_neg_inf, h.abs_max, "
			      "h.n_zero, h.l2, h.l1, h.n, h.abs_min_nonzero, h.n_neg, h.n_pos, "
			      "h.inactive, h.update_ratio, h.n_changed, h.time_ns AS at_ns, "
			      "c.mode, c.epoch, c.execution, c.microbatch, c.replica, c.rank "
			      "FROM tensor_stat_rows h "
			      "JOIN tensor_rows i ON i.tensor_id = h.tensor_id "
			      "LEFT JOIN contexts c ON c.context_id = h.context_id",
			      "i.key", "i.queue", "mode,step,phase,replica", tensors_rows_columns,
			      ARRAY_LEN(tensors_rows_columns)},
};

static enum view_style tensors_grids_style(const struct report_table *table, int64_t row,
					   int column)
{
	const struct report_cell *cell = &table->cells[row * table->column_count + column];
	const char *name = table->columns[column].name;

	if (strcmp(name, "n_nan") == 0 || strcmp(name, "n_pos_inf") == 0 ||
	    strcmp(name, "n_neg_inf") == 0)
		return cell->type == PROF_INT && cell->integer > 0 ? VIEW_BAD : VIEW_DIM;
	return strcmp(name, "rule") == 0 ? VIEW_WARN : VIEW_NORMAL;
}

void view__grids_load(struct view_tensors *screen, struct view_context *context, struct err *err)
{
	const enum view_tensor_page page = screen->page;
	const struct report_tensor_row *row = view__curve_row(screen);
	struct str sql = {0};

	/* For another tensor or page, start at the curve's cursor, or at the first row. */
	if (screen->grid_page != page || screen->grid_replica != screen->replica ||
	    memcmp(screen->grid_of, screen->id, sizeof(screen->id)) != 0) {
		view_grid_fini(&screen->grid);
		screen->grid_page = page;
		screen->grid_replica = screen->replica;
		memcpy(screen->grid_of, screen->id, sizeof(screen->id));
		screen->grid_from = 1;
		if (page == VIEW_TENSOR_ROWS && row)
			screen->grid_from = row->row_id > RANGE / 2 ? row->row_id - RANGE / 2 : 1;
	}
	str_add(&sql, tensors_grids[page].sql);
	tensors_where(screen, tensors_grids[page].key,
		      context->target ? NULL : tensors_grids[page].queue, "c.", &sql);
	str_addf(&sql, " AND h.row_id BETWEEN %lld AND %lld ORDER BY h.row_id LIMIT %d",
		 (long long)screen->grid_from, (long long)sat_add(screen->grid_from, RANGE - 1),
		 VIEW_TENSORS_PAGE);
	screen->grid.style = tensors_grids_style;
	if (sql.failed)
		err_nomem(err);
	else
		view_grid_query(&screen->grid, context, tensors_grids[page].name, str_peek(&sql),
				context->target ? tensors_grids[page].keys : "row",
				tensors_grids[page].columns, tensors_grids[page].column_count, 0,
				err);
	str_free(&sql);
	if (!err_stuck(err))
		view_grid_layout(&screen->grid, screen->body);
}

enum view_answer view__grids_request(struct view_tensors *screen, enum view_request request)
{
	struct view_grid *grid = &screen->grid;
	const bool down = request == VIEW_DOWN_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
	const bool up = request == VIEW_UP_REQUEST || request == VIEW_PAGE_UP_REQUEST;
	const struct report_table *table = &grid->table;
	const int64_t all = screen->curve[0].rows.all;

	if (screen->page == VIEW_TENSOR_ROWS && down && grid->at + 1 >= grid->count) {
		int64_t next = sat_add(screen->grid_from, RANGE);

		/* A full page ends before its range does: its last row's id, before sorting. */
		if (table->row_count == VIEW_TENSORS_PAGE)
			next = sat_add(table->cells[(table->row_count - 1) * table->column_count +
						    view_table_column(table, "row")]
					       .integer,
				       1);

		if (next <= all) {
			screen->grid_from = next;
			grid->at = 0;
			return VIEW_LOAD;
		}
	}
	if (screen->page == VIEW_TENSOR_ROWS && up && grid->at == 0 && screen->grid_from > 1) {
		screen->grid_from = screen->grid_from > RANGE ? screen->grid_from - RANGE : 1;
		return VIEW_LOAD;
	}
	return view_grid_request(grid, request);
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

#define CELLS_MOST 100000 /* of a picture, which may have millions of values */

/* ---- histograms ------------------------------------------------------------------------------ */

#define BIN_ONE 6 /* columns of one report */

static const struct report_column tensors_bin_columns[] = {
	{"step", REPORT_NUMBER},        {"weight_update", REPORT_NUMBER},
	{"bin", REPORT_NUMBER},         {"low", REPORT_REAL},
	{"high", REPORT_REAL},          {"count", REPORT_COUNT},
	{"count_target", REPORT_COUNT}, {"count_diff", REPORT_COUNT},
};

/* The count of a bin; IPS_NULL: the report has no such column. */
static int64_t tensors_bin_count(const struct view_tensor_histogram *h, int side, int column,
				 int bin)
{
	const double count = h->side[side].count[bin * h->columns + column];

	if (column >= h->side[side].columns)
		return IPS_NULL;
	return isnan(count) ? 0 : (int64_t)count;
}

static bool tensors_bin_empty(const struct view_tensor_histogram *h, int column, int bin)
{
	return tensors_bin_count(h, 0, column, bin) <= 0 &&
	       tensors_bin_count(h, 1, column, bin) <= 0;
}

static void tensors_bin_row(const struct view_tensor_histogram *h, int column, int bin,
			    struct report_table *out, int64_t row, struct err *err)
{
	const struct view_tensor_histograms *side = &h->side[column >= h->side[0].columns];
	const int64_t source = tensors_bin_count(h, 0, column, bin),
		      target = tensors_bin_count(h, 1, column, bin);
	const bool both = source != IPS_NULL && target != IPS_NULL;
	const struct report_cell cells[] = {
		view_int(side->step[column]),
		view_int(side->update[column]),
		view_int(h->bin[bin]),
		view_real(h->low[bin]),
		view_real(h->high[bin]),
		view_int(source),
		view_int(target),
		view_int(both ? target - source : IPS_NULL),
	};

	view_table_row(out, row, cells, err);
}

static void tensors_histogram_table(const struct view_tensors *screen, bool compared,
				    struct report_table *out, struct err *err)
{
	const struct view_tensor_histogram *h = &screen->histogram;
	int64_t rows = 0, row = 0;

	for (int i = 0; i < h->bins * h->columns; i++)
		rows += !tensors_bin_empty(h, i / h->bins, i % h->bins);
	view_table_new(out, "histograms", tensors_bin_columns,
		       compared ? (int)ARRAY_LEN(tensors_bin_columns) : BIN_ONE, rows, err);
	for (int i = 0; i < h->bins * h->columns && !err_stuck(err); i++)
		if (!tensors_bin_empty(h, i / h->bins, i % h->bins))
			tensors_bin_row(h, i / h->bins, i % h->bins, out, row++, err);
}

/* ---- values ---------------------------------------------------------------------------------- */

#define CELL_ONE 6 /* columns of one report */

static const struct report_column tensors_cell_columns[] = {
	{"step", REPORT_NUMBER},       {"weight_update", REPORT_NUMBER}, {"slice", REPORT_TEXT},
	{"row", REPORT_NUMBER},        {"column", REPORT_NUMBER},        {"value", REPORT_REAL},
	{"value_target", REPORT_REAL}, {"value_diff", REPORT_REAL},
};

static void tensors_values_table(const struct view_tensors *screen, bool compared,
				 struct report_table *out, struct err *err)
{
	const struct view_tensor_values *v = &screen->values;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const int64_t all = capture ? (int64_t)v->shown_rows * v->shown_columns : 0;
	const int64_t cells = min(all, CELLS_MOST);
	struct str slice = {0};
	int64_t rows = 0, row = 0;
	int ndim;

	for (int64_t at = 0; at < cells; at++)
		rows += !(v->equal && v->equal[at]);

	/* "0, 2": the indexes in the leading axes. */
	ndim = v->part[VIEW_OF_SOURCE].ndim > 0 ? v->part[VIEW_OF_SOURCE].ndim
						: v->part[VIEW_OF_TARGET].ndim;
	for (int i = 0; i < ndim - 2; i++)
		str_addf(&slice, i > 0 ? ", %lld" : "%lld", (long long)v->first[i]);
	if (slice.failed)
		err_nomem(err);
	else
		view_table_new(out, "values", tensors_cell_columns,
			       compared ? (int)ARRAY_LEN(tensors_cell_columns) : CELL_ONE, rows,
			       err);
	for (int64_t at = 0; at < cells && !err_stuck(err); at++)
		if (!v->equal || !v->equal[at]) {
			const int y = (int)(at / v->shown_columns);
			const int x = (int)(at % v->shown_columns);
			struct report_cell shown[CELL_ONE - 1 + VIEW_TENSOR_SHARES] = {
				view_int(capture->step), view_int(capture->weight_update),
				view_text_cell(slice.text), view_int(v->row + y),
				view_int(v->column + x)};

			for (int i = 0; i < VIEW_TENSOR_SHARES; i++)
				if (v->part[i].cell && view__values_has(v, &v->part[i], y, x))
					shown[CELL_ONE - 1 + i] = view_real(v->part[i].cell[at]);
			view_table_row(out, row++, shown, err);
		}
	str_free(&slice);
	if (cells < all)
		out->note = "the first 100,000 values of the slice";
}

/* ---- the shown page -------------------------------------------------------------------------- */

enum status view__tensors_table(void *state, struct view_context *context, struct report_table *out,
				struct err *err)
{
	struct view_tensors *screen = state;
	struct view_tensor_values *v = &screen->values;
	const bool compared = context->target != NULL;
	struct err own;

	err = err_start(err, &own);
	*out = (struct report_table){0};
	if (screen->opened && screen->page == VIEW_TENSOR_CURVE && context->whole)
		err_set(err, ST_INVALID,
			"--tensor %s: a curve is printed as --text or --svg; its rows are in "
			"the view tensor_stats (--query)",
			screen->key);
	else if (screen->opened && screen->page >= VIEW_TENSOR_RULES)
		view_grid_table(&screen->grid, out, err);
	else if (screen->opened && screen->page == VIEW_TENSOR_HISTOGRAM)
		tensors_histogram_table(screen, compared, out, err);
	else if (screen->opened && screen->page == VIEW_TENSOR_VALUES && v->paged)
		view__sequence_table(v, out, err);
	else if (screen->opened && screen->page == VIEW_TENSOR_VALUES) {
		/* A file contains the whole slice, as a picture does. */
		if (context->whole && !v->picture && view__values_capture(screen)) {
			v->picture = true;
			view__matrix_load(screen, context, err);
			v->picture = false;
		}
		if (!err_stuck(err))
			tensors_values_table(screen, compared, out, err);
	} else {
		view__tensors_list_table(screen, context, out, err);
	}
	if (err_stuck(err))
		report_table_free(out);
	return err->status;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void tensors_query_number(struct str *out, const char *column, int64_t number)
{
	if (number == IPS_NULL)
		str_addf(out, " AND %s IS NULL", column);
	else
		str_addf(out, " AND %s = %lld", column, (long long)number);
}

/* Append the pieces of the shown capture. */
static void tensors_query_capture(const struct view_tensors *screen,
				  const struct view_tensor_capture *capture, const char *queue,
				  struct str *out)
{
	str_add(out, "SELECT step, weight_update, microbatch, replica, chunk, dtype, shape, "
		     "bytes, data FROM captures");
	tensors_where(screen, "key", queue, "", out);
	tensors_query_number(out, "step", capture->step);
	if (capture->step == IPS_NULL)
		tensors_query_number(out, "weight_update", capture->weight_update);
	if (screen->replica < 0)
		tensors_query_number(out, "replica", capture->replica);
	str_addf(out, " AND mode IS %s%s%s ORDER BY chunk;\n", capture->mode[0] ? "'" : "NULL",
		 capture->mode, capture->mode[0] ? "'" : "");
}

void view__tensors_query(const void *state, const struct view_context *context, struct str *out)
{
	static const struct {
		const char *columns, *view, *rest;
	} statements[] = {
		[VIEW_TENSOR_CURVE] = {"step, weight_update, replica, time_ns, n_nan, n_pos_inf, "
				       "n_neg_inf, ",
				       "tensor_stats",
				       "ORDER BY weight_update, step, replica, time_ns"},
		[VIEW_TENSOR_HISTOGRAM] = {"mode, weight_update, step, microbatch, bin, low, high, "
					   "sum(count) AS count",
					   "tensor_histograms",
					   "GROUP BY mode, weight_update, step, microbatch, bin "
					   "ORDER BY mode, weight_update, step, microbatch, bin"},
		[VIEW_TENSOR_VALUES] = {"mode, weight_update, step, microbatch, replica, dtype, "
					"shape, sum(bytes) AS bytes",
					"captures",
					"GROUP BY mode, weight_update, step, microbatch, replica "
					"ORDER BY mode, weight_update, step, replica"},
		[VIEW_TENSOR_RULES] = {"*", "health", "ORDER BY time_ns"},
		[VIEW_TENSOR_ROWS] = {"*", "tensor_stats", "ORDER BY time_ns"},
	};
	const struct view_tensors *screen = state;
	const struct view_tensor_capture *capture = view__values_capture(screen);
	const char *queue = context->target ? NULL : "queue";

	if (!screen->opened) {
		view__tensors_list_sql(screen, context->target != NULL, out);
		str_add(out, " ORDER BY greatest DESC;\n");
	}
	if (!screen->key[0])
		return;
	if (screen->page == VIEW_TENSOR_VALUES && capture)
		tensors_query_capture(screen, capture, queue, out);
	str_addf(out, "SELECT %s%s FROM %s", statements[screen->page].columns,
		 screen->page == VIEW_TENSOR_CURVE ? view__statistic(screen) : "",
		 statements[screen->page].view);
	tensors_where(screen, "key", screen->page == VIEW_TENSOR_RULES ? NULL : queue, "", out);
	str_addf(out, " %s;\n", statements[screen->page].rest);
}
