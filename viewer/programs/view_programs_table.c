/*
 * The rows of the screen Programs for CSV and JSON.
 *
 * Threading: the worker's. Ownership: the table is the caller's.
 */
#include "viewer/programs/view_programs_internal.h"

#include "common/mem.h"
#include "viewer/draw/view_table.h"

static const struct report_column table_columns[] = {
	{"program_id", REPORT_NUMBER},
	{"depth", REPORT_NUMBER},
	{"type", REPORT_TEXT},
	{"name", REPORT_TEXT},
	{"operation", REPORT_TEXT},
	{"repeat_count", REPORT_COUNT},
	{"call_target", REPORT_NUMBER},
	{"times", REPORT_COUNT},
	{"own_cycles", REPORT_CYCLES},
	{"cycles", REPORT_CYCLES},
	{"target_id", REPORT_NUMBER},
	{"own_cycles_target", REPORT_CYCLES},
	{"cycles_target", REPORT_CYCLES},
	{"cycles_diff", REPORT_CYCLES},
};
#define TABLE_ONE 10 /* columns of one report */

static enum status table_row(const struct view_program *node, struct report_table *out, int64_t row,
			     struct err *err)
{
	const int64_t numbers[] = {node->repeat, node->call, node->times[0], node->own[0],
				   node->cycles[0]};
	enum status status;

	view_table_int(out, row, 0, node->id[0]);
	view_table_int(out, row, 1, node->depth);
	for (int i = 0; i < (int)ARRAY_LEN(numbers); i++)
		view_table_int(out, row, 5 + i, numbers[i]);
	if (out->column_count > TABLE_ONE) {
		view_table_int(out, row, TABLE_ONE, node->id[1]);
		view_table_int(out, row, TABLE_ONE + 1, node->own[1]);
		view_table_int(out, row, TABLE_ONE + 2, node->cycles[1]);
		view_table_int(out, row, TABLE_ONE + 3, node->cycles[1] - node->cycles[0]);
	}
	status = view_table_text(out, row, 2, node->type, err);
	if (status == ST_OK)
		status = view_table_text(out, row, 3, node->name, err);
	if (status == ST_OK && node->operation[0])
		status = view_table_text(out, row, 4, node->operation, err);
	return status;
}

/* All programs that the filter lets through, open or not. */
enum status view__programs_table(void *state, struct view_context *context,
				 struct report_table *out, struct err *err)
{
	const struct view_programs *screen = state;
	const struct view_tree *tree = &screen->tree;
	enum status status;
	int64_t rows = 0;

	for (int i = 0; i < tree->walk_count; i++)
		rows += tree->nodes[tree->walk[i]].shown;
	status = view_table_new(out, "programs", table_columns,
				context->target ? (int)ARRAY_LEN(table_columns) : TABLE_ONE, rows,
				err);
	rows = 0;
	for (int i = 0; status == ST_OK && i < tree->walk_count; i++)
		if (tree->nodes[tree->walk[i]].shown)
			status = table_row(&tree->nodes[tree->walk[i]], out, rows++, err);
	if (status != ST_OK)
		report_table_free(out);
	return status;
}
