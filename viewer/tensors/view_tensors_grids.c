/*
 * The pages about a tensor that are tables: the rules it broke, and its rows of statistics.
 *
 * Both look at a range of rows by their ids, and go on with the next where the cursor leaves it.
 *
 * Threading: the session's worker.
 */
#include "viewer/tensors/view_tensors_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

#define RANGE 50000 /* rows of all tensors looked at */

static const struct view_grid_column rules_columns[] = {
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

static const struct view_grid_column rows_columns[] = {
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

static void rules_sql(const struct view_tensors *screen, bool compared, struct str *out)
{
	(void)compared;
	str_add(out, "SELECT h.row_id AS row, h.rule, c.step, c.weight_update, c.phase, h.value, "
		     "h.threshold, h.time_ns AS at_ns, c.epoch, c.microbatch, c.replica "
		     "FROM health_rows h LEFT JOIN tensor_rows i ON i.tensor_id = h.tensor_id "
		     "LEFT JOIN contexts c ON c.context_id = h.context_id");
	view__tensors_where(screen, "coalesce(h.key, i.key)", NULL, "c.", out);
}

static void rows_sql(const struct view_tensors *screen, bool compared, struct str *out)
{
	str_add(out, "SELECT h.row_id AS row, c.step, c.weight_update, c.phase, h.mean, h.std, "
		     "h.min, h.max, h.n_nan, h.n_pos_inf, h.n_neg_inf, h.abs_max, h.n_zero, h.l2, "
		     "h.l1, h.n, h.abs_min_nonzero, h.n_neg, h.n_pos, h.inactive, "
		     "h.update_ratio, h.n_changed, h.time_ns AS at_ns, c.mode, c.epoch, "
		     "c.execution, c.microbatch, c.replica, c.rank FROM tensor_stat_rows h "
		     "JOIN tensor_rows i ON i.tensor_id = h.tensor_id "
		     "LEFT JOIN contexts c ON c.context_id = h.context_id");
	view__tensors_where(screen, "i.key", compared ? NULL : "i.queue", "c.", out);
}

static enum view_style grids_style(const struct report_table *table, int64_t row, int column)
{
	const struct report_cell *cell = &table->cells[row * table->column_count + column];
	const char *name = table->columns[column].name;

	if (strcmp(name, "n_nan") == 0 || strcmp(name, "n_pos_inf") == 0 ||
	    strcmp(name, "n_neg_inf") == 0)
		return cell->type == PROF_INT && cell->integer > 0 ? VIEW_BAD : VIEW_DIM;
	return strcmp(name, "rule") == 0 ? VIEW_WARN : VIEW_NORMAL;
}

/* Another tensor or page: from where the curve's cursor is, or from the beginning. */
static void grids_begin(struct view_tensors *screen)
{
	const struct report_tensor_row *row = view__curve_row(screen);

	if (screen->grid_page == screen->page && screen->grid_replica == screen->replica &&
	    memcmp(screen->grid_of, screen->id, sizeof(screen->id)) == 0)
		return;
	view_grid_fini(&screen->grid);
	memset(&screen->grid, 0, sizeof(screen->grid));
	screen->grid_page = screen->page;
	screen->grid_replica = screen->replica;
	memcpy(screen->grid_of, screen->id, sizeof(screen->id));
	screen->grid_from = 1;
	if (screen->page == VIEW_TENSOR_ROWS && row)
		screen->grid_from = row->row_id > RANGE / 2 ? row->row_id - RANGE / 2 : 1;
}

enum status view__grids_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err)
{
	const bool rules = screen->page == VIEW_TENSOR_RULES;
	struct str sql = {0};
	enum status status;

	grids_begin(screen);
	(rules ? rules_sql : rows_sql)(screen, context->target != NULL, &sql);
	str_addf(&sql, " AND h.row_id BETWEEN %lld AND %lld ORDER BY h.row_id LIMIT %d",
		 (long long)screen->grid_from, (long long)screen->grid_from + RANGE - 1,
		 VIEW_TENSORS_PAGE);
	if (sql.failed) {
		str_free(&sql);
		return err_nomem(err);
	}
	str_copy(screen->sql, sizeof(screen->sql), str_peek(&sql));
	screen->grid.style = grids_style;
	screen->grid.differ = context->differ;
	status = view_grid_query(
		&screen->grid, context, rules ? "rules" : "rows", str_peek(&sql),
		context->target ? (rules ? "rule,step,phase,replica" : "mode,step,phase,replica")
				: "row",
		rules ? rules_columns : rows_columns,
		rules ? (int)(sizeof(rules_columns) / sizeof(rules_columns[0]))
		      : (int)(sizeof(rows_columns) / sizeof(rows_columns[0])),
		0, err);
	str_free(&sql);
	if (status == ST_OK)
		view_grid_layout(&screen->grid, screen->body.width, screen->body.height);
	return status;
}

/* The row id in the last row as it came; 0: none. */
static int64_t last_row(const struct view_grid *grid)
{
	const struct report_table *table = &grid->table;

	for (int c = 0; c < table->column_count && table->row_count > 0; c++)
		if (strcmp(table->columns[c].name, "row") == 0)
			return table->cells[(table->row_count - 1) * table->column_count + c]
				.integer;
	return 0;
}

enum view_answer view__grids_request(struct view_tensors *screen, enum view_request request)
{
	struct view_grid *grid = &screen->grid;
	const bool down = request == VIEW_DOWN_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
	const bool up = request == VIEW_UP_REQUEST || request == VIEW_PAGE_UP_REQUEST;
	const int64_t all = screen->curve[0].rows.all, last = last_row(grid);

	if (screen->page == VIEW_TENSOR_ROWS && down && grid->at + 1 >= grid->count) {
		const bool full = grid->table.row_count == VIEW_TENSORS_PAGE;
		const int64_t next = full ? last + 1 : screen->grid_from + RANGE;

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
	return view_grid_request(grid, screen->body.height, request);
}
