/*
 * What the Operations screen reads: the statement of its rows, their totals, and the details of the
 * row under the cursor: of an operation its plan, compute sets, programs and the variables of its
 * layer; of a sum its largest operations.
 *
 * Threading: the session's. Ownership: texts belong to the grid, or to the arena of the details.
 */
#include "viewer/operations/view_operations_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "reports/named/report_named.h"

/* ---- the statement of the rows --------------------------------------------------------------- */

/* Sums read each operation once; a model has only some thousands. */
const struct view_operations_grouping view__operations_groupings[VIEW_OPERATIONS_WAYS] = {
	[VIEW_BY_OPERATION] = {"operation", "operation", "operation",
			       "operation, owner AS layer, kind, phase, stage", NULL},
	[VIEW_BY_LAYER] = {"layer", "layer", "layer", "owner AS layer, min(stage) AS stage",
			   "owner"},
	[VIEW_BY_PART] = {"layer, optimizer apart", "layer", "layer",
			  "part AS layer, min(stage) AS stage", "part"},
	[VIEW_BY_KIND] = {"kind", "kind", "kind", "kind", "kind"},
	[VIEW_BY_STAGE] = {"stage and phase", "phase", "stage,phase", "stage, phase",
			   "stage, phase"},
};

static const struct view_grid_column operations_columns[] = {
	{.name = "operation", .importance = 20, .least = 20},
	{.name = "layer", .importance = 6, .least = 10},
	{.name = "kind", .importance = 8},
	{.name = "phase", .importance = 5},
	{.name = "stage", .importance = 5},
	{.name = "operations", .importance = 18},
	{.name = "times", .importance = 12},
	{.name = "update_cycles", .title = "cycles", .importance = 19, .bar = true},
	{.name = "update_ns", .title = "time", .importance = 19, .bar = true},
	{.name = "share", .importance = 11},
	{.name = "update_compute", .title = "compute", .importance = 14},
	{.name = "update_exchange", .title = "exchange", .importance = 13},
	{.name = "update_sync", .title = "sync", .importance = 12},
	{.name = "compute_ns", .title = "compute", .importance = 14},
	{.name = "exchange_ns", .title = "exchange", .importance = 13},
	{.name = "sync_ns", .title = "sync", .importance = 12},
	{.name = "update_flops", .title = "FLOP", .importance = 7},
	{.name = "flops_per_cycle", .title = "FLOP/cycle", .importance = 10},
	{.name = "tflops", .title = "TFLOP/s", .importance = 10},
	{.name = "peak_share", .title = "of peak", .importance = 11},
	{.name = "code_bytes", .title = "code", .importance = 4},
	{.name = "tiles_used", .title = "tiles", .importance = 9},
	{.name = "tile_balance", .title = "balance", .importance = 9},
	{.name = "update_bytes", .title = "exchanged", .importance = 3},
};

/* Columns of every row: the expressions for one operation, and for a sum of several. */
static const struct {
	const char *name, *one, *sum;
	const char *ns; /* the column's name as a time; NULL: it is no time */
} measures[] = {
	{"update_cycles", "update_cycles", "sum(update_cycles)", "update_ns"},
	{"update_compute", "update_compute", "sum(update_compute)", "compute_ns"},
	{"update_exchange", "update_exchange", "sum(update_exchange)", "exchange_ns"},
	{"update_sync", "update_sync", "sum(update_sync)", "sync_ns"},
	{"update_flops", "update_flops", "sum(update_flops)", NULL},
	{"flops_per_cycle", "round(1.0 * flops / nullif(cycles, 0), 1)",
	 "round(1.0 * sum(update_flops) / nullif(sum(update_cycles), 0), 1)", NULL},
	{"tflops", "round(" REPORT_TFLOPS("flops", "cycles") ", 4)",
	 "round(" REPORT_TFLOPS("sum(update_flops)", "sum(update_cycles)") ", 4)", NULL},
	{"peak_share", REPORT_PEAK_SHARE("flops", "cycles"),
	 REPORT_PEAK_SHARE("sum(update_flops)", "sum(update_cycles)"), NULL},
	{"tiles_used", "tiles_used", "max(tiles_used)", NULL},
	{"tile_balance", "tile_balance",
	 "sum(tile_balance * update_compute) / nullif(sum(update_compute), 0)", NULL},
	{"code_bytes", "code_bytes", "sum(code_bytes)", NULL},
	{"update_bytes", "update_bytes", "sum(update_bytes)", NULL},
};

static void operations_where(const struct view_operations *screen, struct str *out)
{
	if (screen->stage >= 0)
		str_addf(out, " WHERE stage = %lld", (long long)screen->stage);
	if (screen->inside[0])
		str_addf(out, " %s %s", screen->stage >= 0 ? "AND" : "WHERE", screen->inside);
}

/* Make the statement of the rows. Comparisons omit @share: every row would differ in it. */
static void operations_make_sql(struct view_operations *screen, bool share)
{
	const struct view_operations_grouping *grouping = &view__operations_groupings[screen->way];
	struct str *sql = &screen->sql;

	str_clear(sql);
	str_addf(sql, "SELECT %s", grouping->columns);
	str_add(sql, grouping->group ? ", count(*) AS operations" : ", times");
	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		const char *value = grouping->group ? measures[i].sum : measures[i].one;

		if (screen->ns && measures[i].ns)
			str_addf(sql,
				 ",\n\tCAST(round(%s * 1e9 / (SELECT value FROM meta WHERE key = "
				 "'clock_hz')) AS INTEGER) AS %s",
				 value, measures[i].ns);
		else
			str_addf(sql, ",\n\t%s AS %s", value, measures[i].name);
		if (i > 0 || !share)
			continue;
		str_addf(sql, ",\n\t1.0 * %s / nullif((SELECT sum(update_cycles) FROM ", value);
		str_add(sql, REPORT_OPERATIONS);
		operations_where(screen, sql);
		str_add(sql, "), 0) AS share");
	}
	str_add(sql, "\nFROM " REPORT_OPERATIONS);
	operations_where(screen, sql);
	if (grouping->group)
		str_addf(sql, "\nGROUP BY %s\nORDER BY sum(update_cycles) DESC", grouping->group);
	else
		str_add(sql, "\nORDER BY update_cycles DESC, operation");
}

/* ---- reading the rows ------------------------------------------------------------------------ */

#define ROWS_MOST 100000

static void operations_read_totals(struct view_operations *screen, struct prof_db *db,
				   struct view_operations_totals *out, struct err *err)
{
	double *const sums[] = {&out->cycles, &out->compute, &out->exchange,
				&out->sync,   &out->flops,   &out->code_bytes};
	struct str sql = {0};
	struct prof_query *query;

	str_add(&sql,
		"SELECT count(*), sum(update_cycles), sum(update_compute), sum(update_exchange), "
		"sum(update_sync), sum(update_flops), sum(code_bytes) FROM " REPORT_OPERATIONS);
	operations_where(screen, &sql);
	if (sql.failed && !err_stuck(err))
		err_nomem(err);
	query = view_query_open(db, str_peek(&sql), err);
	if (view_query_next(query, err)) {
		out->operations = prof_column_int(query, 0);
		for (int i = 0; i < (int)ARRAY_LEN(sums); i++)
			*sums[i] = prof_column_real(query, i + 1);
	}
	prof_query_close(query);
	str_free(&sql);
}

void view__operations_read(struct view_operations *screen, struct view_context *context,
			   struct err *err)
{
	const struct view_operations_grouping *grouping = &view__operations_groupings[screen->way];

	screen->clock_hz = view_source_fact(context->source->db, "clock_hz");
	screen->peak_cycle = view_source_fact(context->source->db, "peak_flops_per_cycle");
	if (isnan(screen->clock_hz))
		screen->ns = false;
	screen->alone = view_query_number(context->source->db,
					  "SELECT " REPORT_MICROBATCHES " IS NULL", err);
	screen->last =
		view_query_number(context->source->db, "SELECT max(stage) FROM operations", err);
	if (err_stuck(err))
		return;
	operations_make_sql(screen, !context->target);
	if (screen->sql.failed)
		err_nomem(err);
	operations_read_totals(screen, context->source->db, &screen->totals[0], err);
	if (context->target)
		operations_read_totals(screen, context->target->db, &screen->totals[1], err);
	if (!err_stuck(err) && view_cancelled(context))
		err_set(err, ST_INTERRUPTED, "stopped");
	/* Sorting marks the order in the heading, and sorts in the rows that only the target
	 * has. */
	if (!err_stuck(err) &&
	    view_grid_query(&screen->grid, context, "operations", screen->sql.text, grouping->keys,
			    operations_columns, (int)ARRAY_LEN(operations_columns), ROWS_MOST,
			    err) == ST_OK)
		view_grid_sort_first(&screen->grid, screen->ns ? "update_ns" : "update_cycles");
}

/* ---- the row under the cursor ---------------------------------------------------------------- */

static void operations_condition_text(const struct view_operations *screen, const char *column,
				      const char *expression, struct str *out)
{
	const char *text = view_grid_text(&screen->grid, column);

	str_addf(out, text ? "%s = " : "%s IS NULL", expression);
	if (text)
		str_add_sql(out, text);
}

void view__operations_row_name(const struct view_operations *screen, char *out, size_t size)
{
	const char *column = view__operations_groupings[screen->way].column;
	const int64_t stage = view_grid_int(&screen->grid, "stage");
	const char *text = view_grid_text(&screen->grid, column);

	if (screen->way == VIEW_BY_STAGE)
		snprintf(out, size, "stage %lld, phase %s",
			 stage != IPS_NULL ? (long long)stage : -1, text ? text : "-");
	else
		snprintf(out, size, "%s %s", column, text ? text : "-");
}

bool view__operations_condition(const struct view_operations *screen, struct str *out, char *name,
				size_t size)
{
	const struct view_operations_grouping *grouping = &view__operations_groupings[screen->way];
	const int64_t stage = view_grid_int(&screen->grid, "stage");

	if (screen->grid.count == 0)
		return false;
	view__operations_row_name(screen, name, size);
	if (screen->way != VIEW_BY_STAGE) {
		operations_condition_text(screen, grouping->column,
					  grouping->group ? grouping->group : grouping->column,
					  out);
		return true;
	}
	operations_condition_text(screen, "phase", "phase", out);
	if (stage != IPS_NULL)
		str_addf(out, " AND stage = %lld", (long long)stage);
	else
		str_add(out, " AND stage IS NULL");
	return true;
}

/* ---- details of a row ------------------------------------------------------------------------ */

#define DETAIL_ROWS 40
#define NAME_WIDTH  12

/* Details from one database. */
struct detail {
	struct view_blocks *blocks;
	struct prof_db *db;
	const char *operation, *layer; /* NULL: unknown */
	const char *report;            /* "", "Source", "Target" */
	int64_t root; /* root program of the previous compute set; IPS_NULL: none */
};

typedef void (*detail_row)(struct detail *detail, const struct prof_query *query);

/* Bind :operation and :layer of @sql, and pass each row to @add_row. */
static void operations_add_rows(struct detail *detail, const char *sql, detail_row add_row,
				struct err *err)
{
	struct prof_query *query = view_query_open(detail->db, sql, err);

	if (strstr(sql, ":operation"))
		prof_query_text(query, ":operation", detail->operation);
	if (strstr(sql, ":layer"))
		prof_query_text(query, ":layer", detail->layer);
	while (view_query_next(query, err))
		add_row(detail, query);
	prof_query_close(query);
}

static const char *operations_detail_text(const struct prof_query *query, int column)
{
	const char *text = prof_column_text(query, column);

	return text ? text : "-";
}

static const char *operations_detail_count(const struct prof_query *query, int column,
					   char out[FMT_SIZE])
{
	const int64_t value = prof_column_int(query, column);

	return value == IPS_NULL ? "-" : fmt_count(out, value);
}

static const char *operations_detail_bytes(const struct prof_query *query, int column,
					   char out[FMT_SIZE])
{
	const int64_t value = prof_column_int(query, column);

	return value < 0 ? "-" : fmt_bytes(out, (uint64_t)value);
}

static const char operations_plan_sql[] =
	"SELECT method, split_batch, split_field, split_in, split_out, split_kernel, "
	"serial_splits, temporary_bytes FROM plans WHERE operation = :operation LIMIT 4";

static void operations_plan_row(struct detail *detail, const struct prof_query *query)
{
	static const char *const splits[] = {"batch", "field", "in", "out", "kernel", "serial"};
	char bytes[FMT_SIZE], text[160] = "";
	const char *method = operations_detail_text(query, 0);

	for (int i = 0; i < (int)ARRAY_LEN(splits); i++)
		if (prof_column_int(query, i + 1) > 1)
			view_append(text, sizeof(text), ", %s %lld", splits[i],
				    (long long)prof_column_int(query, i + 1));
	view_blocks_fact(detail->blocks, "plan", VIEW_NORMAL, "%s%s%s%s; %s temporary",
			 strcmp(method, "-") == 0 ? "" : method,
			 strcmp(method, "-") == 0 ? "" : ", ", text[0] ? "split by " : "not split",
			 text[0] ? text + 2 : "", operations_detail_bytes(query, 7, bytes));
}

static const char operations_programs_sql[] =
	"SELECT count(*), min(program_id), max(program_id) FROM "
	"programs WHERE operation = :operation";

static void operations_programs_row(struct detail *detail, const struct prof_query *query)
{
	char count[FMT_SIZE];

	if (prof_column_int(query, 0) > 0)
		view_blocks_fact(detail->blocks, "programs", VIEW_NORMAL, "%s: %lld to %lld",
				 operations_detail_count(query, 0, count),
				 (long long)prof_column_int(query, 1),
				 (long long)prof_column_int(query, 2));
}

static const char operations_layer_sql[] =
	"SELECT class, output_shape, params, flops FROM layers WHERE layer = :layer LIMIT 1";

static void operations_layer_row(struct detail *detail, const struct prof_query *query)
{
	char params[FMT_SIZE];

	view_blocks_fact(detail->blocks, "layer", VIEW_NORMAL, "%s: %s, output %s, %s parameters",
			 detail->layer, operations_detail_text(query, 0),
			 operations_detail_text(query, 1),
			 operations_detail_count(query, 2, params));
}

static const char operations_variables_sql[] =
	"SELECT ifnull(kind, 'other'), count(*), sum(bytes) FROM variables WHERE layer = :layer "
	"GROUP BY kind ORDER BY sum(bytes) DESC LIMIT 6";

static void operations_variables_row(struct detail *detail, const struct prof_query *query)
{
	char count[FMT_SIZE], bytes[FMT_SIZE];

	view_blocks_fact(detail->blocks, "variables", VIEW_NORMAL, "%s: %s in %s",
			 operations_detail_text(query, 0), operations_detail_bytes(query, 2, bytes),
			 operations_detail_count(query, 1, count));
}

static const char operations_tensors_sql[] =
	"SELECT key, kind FROM tensors WHERE layer = :layer GROUP BY key ORDER BY key LIMIT 8";

static void operations_tensors_row(struct detail *detail, const struct prof_query *query)
{
	view_blocks_fact(detail->blocks, "tensor", VIEW_NORMAL, "%s (%s)",
			 operations_detail_text(query, 0), operations_detail_text(query, 1));
}

/* Evaluation repeats the compute sets of the forward pass, so list each below its root program.
 * UNION ends the recursion if parents form a cycle. */
static const char operations_sets_sql[] =
	"WITH RECURSIVE longest AS (SELECT compute_set, tiles, vertices, max_cycles, mean_cycles, "
	"program_id FROM compute_sets WHERE operation = :operation "
	"ORDER BY max_cycles DESC LIMIT 40),\n"
	"above(program_id, at) AS (SELECT program_id, program_id FROM longest\n"
	"\tUNION SELECT above.program_id, p.parent_id FROM above JOIN programs p "
	"ON p.program_id = above.at WHERE p.parent_id IS NOT NULL),\n"
	"roots AS (SELECT above.program_id, p.program_id AS root, p.name FROM above "
	"JOIN programs p ON p.program_id = above.at AND p.parent_id IS NULL)\n"
	"SELECT compute_set, tiles, vertices, max_cycles, mean_cycles, roots.root, roots.name "
	"FROM longest LEFT JOIN roots USING (program_id) "
	"ORDER BY roots.root, max_cycles DESC, program_id";

/* Numbers come first, because names are long and differ at their ends. */
static void operations_sets_row(struct detail *detail, const struct prof_query *query)
{
	const char *name = operations_detail_text(query, 0);
	const size_t prefix = strlen(detail->operation);
	const int64_t root = prof_column_int(query, 5);
	char tiles[FMT_SIZE], vertices[FMT_SIZE], most[FMT_SIZE], balance[FMT_SIZE];

	if (root != detail->root)
		view_blocks_text(detail->blocks, VIEW_DIM, "in %s (#%lld)",
				 operations_detail_text(query, 6), (long long)root);
	detail->root = root;
	if (strncmp(name, detail->operation, prefix) == 0 && name[prefix] == '/')
		name += prefix + 1;
	view_blocks_text(
		detail->blocks, VIEW_NORMAL, "%7s cycles %5s %s %6s %s %5s  %s",
		operations_detail_count(query, 3, most), operations_detail_count(query, 1, tiles),
		prof_column_int(query, 1) == 1 ? "tile " : "tiles",
		operations_detail_count(query, 2, vertices),
		prof_column_int(query, 2) == 1 ? "vertex  " : "vertices",
		fmt_share(balance, prof_column_real(query, 4) / prof_column_real(query, 3)), name);
}

static void operations_largest_row(struct detail *detail, const struct prof_query *query)
{
	char cycles[FMT_SIZE], share[FMT_SIZE];

	view_blocks_text(detail->blocks, VIEW_NORMAL, "%11s cycles  %8s  %s",
			 operations_detail_count(query, 1, cycles),
			 fmt_percent(share, prof_column_real(query, 2)),
			 operations_detail_text(query, 0));
}

static void operations_detail_begin(const struct detail *detail, const char *title)
{
	char text[160];

	snprintf(text, sizeof(text), "%s%s%s", title, detail->report[0] ? ", " : "",
		 detail->report);
	view_blocks_begin(detail->blocks, arena_strdup(&detail->blocks->arena, text), NAME_WIDTH);
}

static void operations_detail_operation(struct detail *detail, struct err *err)
{
	static const struct {
		const char *title, *sql;
		detail_row add_row;
	} parts[] = {{"How it runs", operations_plan_sql, operations_plan_row},
		     {NULL, operations_programs_sql, operations_programs_row},
		     {NULL, operations_layer_sql, operations_layer_row},
		     {NULL, operations_variables_sql, operations_variables_row},
		     {NULL, operations_tensors_sql, operations_tensors_row},
		     {"Compute sets, with the balance of the tiles at work", operations_sets_sql,
		      operations_sets_row}};

	detail->root = IPS_NULL;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].title)
			operations_detail_begin(detail, parts[i].title);
		operations_add_rows(detail, parts[i].sql, parts[i].add_row, err);
	}
}

/* Write the statement with its parameters replaced by their values. */
static void operations_add_statement(struct str *out, const char *sql, const struct detail *detail)
{
	while (*sql) {
		const char *value = NULL;
		size_t length = 1;

		if (str_starts_with(sql, ":operation")) {
			value = detail->operation;
			length = strlen(":operation");
		} else if (str_starts_with(sql, ":layer")) {
			value = detail->layer;
			length = strlen(":layer");
		}
		if (length == 1)
			str_add_bytes(out, sql, 1);
		else if (value)
			str_add_sql(out, value);
		else
			str_add(out, "NULL");
		sql += length;
	}
	str_add(out, ";\n");
}

static void operations_detail_report(struct view_operations *screen, struct detail *detail,
				     struct err *err)
{
	static const char *const all[] = {operations_plan_sql,     operations_sets_sql,
					  operations_programs_sql, operations_variables_sql,
					  operations_tensors_sql,  operations_layer_sql};
	struct str sql = {0};
	char name[128];

	str_clear(&screen->more);
	if (screen->way == VIEW_BY_OPERATION) {
		if (!detail->operation)
			return;
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			operations_add_statement(&screen->more, all[i], detail);
		operations_detail_operation(detail, err);
		return;
	}

	/* The largest operations of the selected sum. */
	str_add(&sql, "SELECT operation, update_cycles, 1.0 * update_cycles / "
		      "nullif(sum(update_cycles) OVER (), 0) FROM " REPORT_OPERATIONS);
	operations_where(screen, &sql);
	str_add(&sql, screen->stage >= 0 || screen->inside[0] ? " AND " : " WHERE ");
	view__operations_condition(screen, &sql, name, sizeof(name));
	str_addf(&sql, " ORDER BY update_cycles DESC LIMIT %d", DETAIL_ROWS);
	str_addf(&screen->more, "%s;\n", str_peek(&sql));
	if (sql.failed)
		err_nomem(err);
	operations_detail_begin(detail, "The longest operations: Enter shows all of them");
	operations_add_rows(detail, str_peek(&sql), operations_largest_row, err);
	str_free(&sql);
	if (!detail->layer)
		return;
	operations_detail_begin(detail, "What it keeps");
	operations_add_rows(detail, operations_layer_sql, operations_layer_row, err);
	operations_add_rows(detail, operations_variables_sql, operations_variables_row, err);
	operations_add_rows(detail, operations_tensors_sql, operations_tensors_row, err);
}

void view__operations_detail(struct view_operations *screen, struct view_context *context,
			     struct err *err)
{
	struct detail detail = {.blocks = &screen->details,
				.db = context->source->db,
				.operation = view_grid_text(&screen->grid, "operation"),
				.layer = view_grid_text(&screen->grid, "layer"),
				.report = context->target ? "Source" : ""};

	if (err_stuck(err))
		return;
	view_blocks_clear(&screen->details);
	screen->details.two_from = VIEW_OPERATIONS_TWO_FROM;
	screen->details.folds = true;
	if (screen->grid.count == 0)
		return;
	operations_detail_report(screen, &detail, err);
	if (!err_stuck(err) && context->target) {
		detail.db = context->target->db;
		detail.report = "Target";
		operations_detail_report(screen, &detail, err);
	}
	if (!err_stuck(err) && screen->more.failed)
		err_nomem(err);
}
