/*
 * The cells of the map, read from the report `communication`, and the rows of the table.
 *
 * Threading: the session's worker. Ownership: view_communication_internal.h.
 */
#include "viewer/communication/view_communication_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "reports/named/report_communication.h"

const struct view_comm_quantity_info view__comm_quantities[VIEW_COMM_QUANTITIES] = {
	[VIEW_COMM_EXPOSED] = {"exposed_ns", "exposed", REPORT_NS},
	[VIEW_COMM_HIDDEN] = {"hidden_share", "share hidden", REPORT_FRACTION},
	[VIEW_COMM_WAITED] = {"waited_ns", "waited", REPORT_NS},
	[VIEW_COMM_BYTES] = {"bytes", "sent", REPORT_BYTES},
	[VIEW_COMM_LAST] = {"last_calls", "came last", REPORT_COUNT},
};

/* ---- the cells ------------------------------------------------------------------------------- */

/* Unknown keys are last: calls at an execution's end belong to no weight update. */
static int64_t comm_key(int64_t value)
{
	return value == IPS_NULL ? INT64_MAX : value;
}

static int comm_compare_keys(const struct view_comm_cell *x, const struct view_comm_cell *y)
{
	int order = SORTED_ORDER(comm_key(x->execution), comm_key(y->execution));

	if (order == 0)
		order = SORTED_ORDER(comm_key(x->weight_update), comm_key(y->weight_update));
	if (order == 0)
		order = SORTED_ORDER(comm_key(x->number), comm_key(y->number));
	return order ? order : strcmp(x->mode ? x->mode : "", y->mode ? y->mode : "");
}

static int comm_compare_cells(const void *a, const void *b)
{
	const struct view_comm_cell *x = a, *y = b;
	const int keys = comm_compare_keys(x, y);

	return keys ? keys : SORTED_ORDER(x->rank, y->rank);
}

static int comm_compare_ranks(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return SORTED_ORDER(x, y);
}

/* Read the query's row into @cell. The columns are those of the report. */
static void comm_read_cell(struct view_communication *screen, struct prof_query *query,
			   struct view_comm_cell *cell, struct err *err)
{
	const struct {
		const char *name;
		int64_t *value;
	} numbers[] = {{"rank", &cell->rank},      {"execution", &cell->execution},
		       {"epoch", &cell->epoch},    {"weight_update", &cell->weight_update},
		       {"number", &cell->number},  {"start_ns", &cell->start_ns},
		       {"span_id", &cell->span_id}};

	const char *before = screen->count > 0 ? screen->cells[screen->count - 1].mode : NULL;

	*cell = (struct view_comm_cell){0};
	for (int c = 0; c < prof_column_count(query); c++) {
		const char *name = prof_column_name(query, c);

		for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
			if (strcmp(name, numbers[i].name) == 0)
				*numbers[i].value = prof_column_int(query, c);
		for (int q = 0; q < VIEW_COMM_QUANTITIES; q++)
			if (strcmp(name, view__comm_quantities[q].column) == 0)
				cell->value[q] = prof_column_type(query, c) == PROF_NULL
							 ? (double)NAN
							 : prof_column_real(query, c);
		if (strcmp(name, "mode") != 0 || !prof_column_text(query, c))
			continue;
		cell->mode = before && strcmp(before, prof_column_text(query, c)) == 0
				     ? before
				     : arena_strdup(&screen->arena, prof_column_text(query, c));
		if (!cell->mode)
			err_nomem(err);
	}
}

const struct report_grouping *view__comm_grouping(const char *by)
{
	const struct report_grouping *of = report_named_communication.groupings;

	while (strcmp(of->by, by) != 0)
		of++;
	return of;
}

/* Find the ranks and columns of the cells, which are sorted. */
static void comm_make_map(struct view_communication *screen, struct err *err)
{
	const size_t count = screen->count;
	int64_t *ranks = view_alloc(&screen->arena, count, sizeof(*ranks), err);
	size_t kept = 0;

	screen->first = view_alloc(&screen->arena, count, sizeof(*screen->first), err);
	if (err_stuck(err))
		return;
	memset(screen->greatest, 0, sizeof(screen->greatest));
	for (size_t i = 0; i < count; i++) {
		struct view_comm_cell *cell = &screen->cells[i];

		if (i == 0 || comm_compare_keys(cell - 1, cell) != 0)
			screen->first[screen->columns++] = i;
		cell->column = screen->columns - 1;
		ranks[i] = cell->rank;
		for (int q = 0; q < VIEW_COMM_QUANTITIES; q++)
			screen->greatest[q] = fmax(screen->greatest[q], cell->value[q]);
	}
	screen->first[screen->columns] = count;
	if (count > 0)
		qsort(ranks, count, sizeof(*ranks), comm_compare_ranks);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || ranks[i] != ranks[i - 1])
			ranks[kept++] = ranks[i];
	screen->ranks = ranks;
	screen->rank_count = (int)kept;
	for (size_t i = 0; i < count; i++)
		screen->cells[i].row = view__comm_row_of(screen, screen->cells[i].rank);
}

enum status view__comm_read(struct view_communication *screen, struct view_context *context,
			    struct err *err)
{
	struct prof_query *query;
	struct err own;

	err = err_start(err, &own);
	screen->listed = -1;
	screen->count = 0;
	screen->columns = screen->rank_count = 0;
	arena_reset(&screen->arena);
	if (!context->source->db)
		return ST_OK;
	query = view_query_open(context->source->db, view__comm_grouping("update")->sql, err);
	screen->cut = false;
	while (view_query_next(query, err)) {
		struct view_comm_cell cell;

		screen->cut = screen->count == VIEW_COMM_ROWS;
		if (screen->cut)
			break;
		comm_read_cell(screen, query, &cell, err);
		if (mem_grow(&screen->cells, &screen->capacity, screen->count + 1,
			     sizeof(*screen->cells)))
			err_nomem(err);
		/* Every rank has its own process; what has no rank cannot be a row. */
		else if (cell.rank != IPS_NULL)
			screen->cells[screen->count++] = cell;
	}
	prof_query_close(query);
	if (!err_stuck(err) && view_cancelled(context))
		err_set(err, ST_INTERRUPTED, "stopped");
	if (!err_stuck(err) && screen->count > 0)
		qsort(screen->cells, screen->count, sizeof(*screen->cells), comm_compare_cells);
	comm_make_map(screen, err);
	if (err_stuck(err)) {
		screen->count = 0;
		screen->columns = screen->rank_count = 0;
	}
	return err->status;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

const struct view_comm_cell *view__comm_cell(const struct view_communication *screen, int row,
					     int column)
{
	if (column < 0 || column >= screen->columns)
		return NULL;
	for (size_t i = screen->first[column]; i < screen->first[column + 1]; i++)
		if (screen->cells[i].row == row)
			return &screen->cells[i];
	return NULL;
}

int view__comm_row_of(const struct view_communication *screen, int64_t rank)
{
	const int64_t *found = screen->rank_count > 0
				       ? bsearch(&rank, screen->ranks, (size_t)screen->rank_count,
						 sizeof(*screen->ranks), comm_compare_ranks)
				       : NULL;

	return found ? (int)(found - screen->ranks) : -1;
}

int view__comm_column_of(const struct view_communication *screen, const struct view_comm_cell *like)
{
	for (int c = 0; c < screen->columns; c++) {
		const struct view_comm_cell *cell = &screen->cells[screen->first[c]];

		if (cell->weight_update == like->weight_update && cell->number == like->number &&
		    (like->execution == IPS_NULL || cell->execution == like->execution) &&
		    (!like->mode || (cell->mode && strcmp(cell->mode, like->mode) == 0)))
			return c;
	}
	return -1;
}

bool view__comm_worst(const struct view_communication *screen, int *row, int *column)
{
	const enum view_comm_quantity q = screen->quantity;
	const int sign = q == VIEW_COMM_HIDDEN ? -1 : 1;
	const struct view_comm_cell *worst = NULL;

	for (size_t i = 0; i < screen->count; i++)
		if (!isnan(screen->cells[i].value[q]) &&
		    (!worst || sign * screen->cells[i].value[q] > sign * worst->value[q]))
			worst = &screen->cells[i];
	if (!worst)
		return false;
	*row = worst->row;
	*column = worst->column;
	return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct view_grid_column comm_shown[] = {
	{.name = "rank", .importance = 30},
	{.name = "last_rank", .title = "the last", .importance = 29},
	{.name = "name", .title = "call", .importance = 29},
	{.name = "stage", .importance = 27},
	{.name = "bucket", .importance = 28},
	{.name = "communicator", .importance = 10},
	{.name = "mode", .importance = 6},
	{.name = "epoch", .importance = 4},
	{.name = "execution", .importance = 5},
	{.name = "weight_update", .title = "update", .importance = 28},
	{.name = "number", .importance = 9},
	{.name = "calls", .importance = 20},
	{.name = "bytes", .importance = 24},
	{.name = "exposed_ns", .title = "exposed", .importance = 26},
	{.name = "exposed_share", .title = "of its time", .importance = 16, .bar = true},
	{.name = "hidden_ns", .title = "hidden", .importance = 12},
	{.name = "hidden_share", .title = "share hidden", .importance = 25},
	{.name = "waited_ns", .title = "waited", .importance = 23},
	{.name = "waited_share", .title = "of its waiting", .importance = 22, .bar = true},
	{.name = "longest_ns", .title = "longest", .importance = 21},
	{.name = "last_calls", .title = "came last", .importance = 22},
	{.name = "last_share", .title = "of calls", .importance = 13},
	{.name = "imbalance", .importance = 19},
	{.name = "own_ns", .title = "own time", .importance = 14},
	{.name = "mean_ns", .title = "mean", .importance = 15},
	{.name = "algbw_gb_s", .title = "algbw GB/s", .importance = 11},
	{.name = "busbw_gb_s", .title = "busbw GB/s", .importance = 18},
	{.name = "transfer_ns", .title = "transfer", .importance = 8},
	{.name = "total_ns", .title = "total", .importance = 3},
	{.name = "mean_size_bytes", .title = "size", .importance = 7},
	{.name = "ranks", .importance = 2},
	{.name = "start_ns", .importance = 0},
	{.name = "span_id", .importance = 0},
};

enum status view__comm_list(struct view_communication *screen, struct view_context *context,
			    struct err *err)
{
	/* The keys of a row, by the report's name of its grouping. */
	static const char *const all_keys[][2] = {
		{"call", "name,stage,bucket,communicator,rank"},
		{"bucket", "name,stage,bucket,communicator"},
		{"rank", "rank"},
		{"straggler", "rank,last_rank"},
		{"update", "rank,mode,execution,weight_update,number"}};
	const struct report_grouping *of = &report_named_communication.groupings[screen->by];
	const char *keys = NULL;
	enum status status;

	screen->grid.still = screen->show != VIEW_COMM_TABLE;
	if (screen->listed == screen->by || !context->source->db)
		return ST_OK;
	for (size_t i = 0; i < ARRAY_LEN(all_keys); i++)
		if (strcmp(all_keys[i][0], of->by) == 0)
			keys = all_keys[i][1];
	status = view_grid_query(&screen->grid, context, "communication", of->sql, keys, comm_shown,
				 ARRAY_LEN(comm_shown), VIEW_COMM_ROWS, err);
	screen->listed = status == ST_OK ? screen->by : -1;
	if (status == ST_OK && strcmp(of->by, "straggler") == 0)
		view_grid_sort_first(&screen->grid, "waited_ns");
	return status;
}
