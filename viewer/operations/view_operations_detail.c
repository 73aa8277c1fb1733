/*
 * More of the row under the cursor: of an operation its plan, compute sets, programs and what its
 * layer keeps; of a sum its greatest operations.
 *
 * Threading: the worker's. Ownership: texts are the blocks'.
 */
#include "viewer/operations/view_operations_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"

#define DETAIL_ROWS 40
#define NAME_WIDTH  12

/* What is told of one database. */
struct detail {
	struct view_blocks *blocks;
	struct prof_db *db;
	const char *operation, *layer; /* NULL: unknown */
	const char *report;            /* "", "Source", "Target" */
	int64_t root;                  /* what the compute set before is part of; IPS_NULL: none */
};

typedef void (*detail_row)(struct detail *detail, const struct prof_query *query);

/* Each row of @sql, whose :operation and :layer are bound, to @take. */
static enum status detail_each(struct detail *detail, const char *sql, detail_row take,
			       struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, detail->db, sql, err);

	if (strstr(sql, ":operation"))
		prof_query_text(query, ":operation", detail->operation);
	if (strstr(sql, ":layer"))
		prof_query_text(query, ":layer", detail->layer);
	while (prof_query_next(query, &status, err))
		take(detail, query);
	prof_query_close(query);
	return status;
}

static const char *detail_text(const struct prof_query *query, int column)
{
	const char *text = prof_column_text(query, column);

	return text ? text : "-";
}

static const char *detail_count(const struct prof_query *query, int column, char out[FMT_SIZE])
{
	const int64_t value = prof_column_int(query, column);

	return value == IPS_NULL ? "-" : fmt_count(out, value);
}

static const char *detail_bytes(const struct prof_query *query, int column, char out[FMT_SIZE])
{
	const int64_t value = prof_column_int(query, column);

	return value < 0 ? "-" : fmt_bytes(out, (uint64_t)value);
}

static const char plan_sql[] =
	"SELECT method, split_batch, split_field, split_in, split_out, split_kernel, "
	"serial_splits, temporary_bytes FROM plans WHERE operation = :operation LIMIT 4";

static void plan_row(struct detail *detail, const struct prof_query *query)
{
	static const char *const splits[] = {"batch", "field", "in", "out", "kernel", "serial"};
	char bytes[FMT_SIZE], text[160] = "";
	const char *method = detail_text(query, 0);

	for (int i = 0; i < (int)ARRAY_LEN(splits); i++) {
		const size_t used = strlen(text);

		if (prof_column_int(query, i + 1) > 1)
			snprintf(text + used, sizeof(text) - used, ", %s %lld", splits[i],
				 (long long)prof_column_int(query, i + 1));
	}
	view_blocks_fact(detail->blocks, "plan", VIEW_NORMAL, "%s%s%s%s; %s temporary",
			 strcmp(method, "-") == 0 ? "" : method,
			 strcmp(method, "-") == 0 ? "" : ", ", text[0] ? "split by " : "not split",
			 text[0] ? text + 2 : "", detail_bytes(query, 7, bytes));
}

static const char programs_sql[] = "SELECT count(*), min(program_id), max(program_id) FROM "
				   "programs WHERE operation = :operation";

static void programs_row(struct detail *detail, const struct prof_query *query)
{
	char count[FMT_SIZE];

	if (prof_column_int(query, 0) > 0)
		view_blocks_fact(detail->blocks, "programs", VIEW_NORMAL, "%s: %lld to %lld",
				 detail_count(query, 0, count),
				 (long long)prof_column_int(query, 1),
				 (long long)prof_column_int(query, 2));
}

static const char layer_sql[] =
	"SELECT class, output_shape, params, flops FROM layers WHERE layer = :layer LIMIT 1";

static void layer_row(struct detail *detail, const struct prof_query *query)
{
	char params[FMT_SIZE];

	view_blocks_fact(detail->blocks, "layer", VIEW_NORMAL, "%s: %s, output %s, %s parameters",
			 detail->layer, detail_text(query, 0), detail_text(query, 1),
			 detail_count(query, 2, params));
}

static const char variables_sql[] =
	"SELECT ifnull(kind, 'other'), count(*), sum(bytes) FROM variables WHERE layer = :layer "
	"GROUP BY kind ORDER BY sum(bytes) DESC LIMIT 6";

static void variables_row(struct detail *detail, const struct prof_query *query)
{
	char count[FMT_SIZE], bytes[FMT_SIZE];

	view_blocks_fact(detail->blocks, "variables", VIEW_NORMAL, "%s: %s in %s",
			 detail_text(query, 0), detail_bytes(query, 2, bytes),
			 detail_count(query, 1, count));
}

static const char tensors_sql[] =
	"SELECT key, kind FROM tensors WHERE layer = :layer GROUP BY key ORDER BY key LIMIT 8";

static void tensors_row(struct detail *detail, const struct prof_query *query)
{
	view_blocks_fact(detail->blocks, "tensor", VIEW_NORMAL, "%s (%s)", detail_text(query, 0),
			 detail_text(query, 1));
}

/* Evaluation has the sets of its forward part once more: each stands under the program it is part
 * of. Ways up end also where parents go round in circles. */
static const char sets_sql[] =
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

/* The numbers first: names are long, and end in what tells them apart. */
static void sets_row(struct detail *detail, const struct prof_query *query)
{
	const char *name = detail_text(query, 0);
	const size_t prefix = strlen(detail->operation);
	const int64_t root = prof_column_int(query, 5);
	char tiles[FMT_SIZE], vertices[FMT_SIZE], most[FMT_SIZE];

	if (root != detail->root)
		view_blocks_text(detail->blocks, VIEW_DIM, "in %s (#%lld)", detail_text(query, 6),
				 (long long)root);
	detail->root = root;
	if (strncmp(name, detail->operation, prefix) == 0 && name[prefix] == '/')
		name += prefix + 1;
	view_blocks_text(detail->blocks, VIEW_NORMAL, "%7s cycles %5s %s %6s %s %3.0f %%  %s",
			 detail_count(query, 3, most), detail_count(query, 1, tiles),
			 prof_column_int(query, 1) == 1 ? "tile " : "tiles",
			 detail_count(query, 2, vertices),
			 prof_column_int(query, 2) == 1 ? "vertex  " : "vertices",
			 100 * prof_column_real(query, 4) / (double)prof_column_int(query, 3),
			 name);
}

static void greatest_row(struct detail *detail, const struct prof_query *query)
{
	char cycles[FMT_SIZE], share[FMT_SIZE];

	view_blocks_text(detail->blocks, VIEW_NORMAL, "%11s cycles  %8s  %s",
			 detail_count(query, 1, cycles),
			 fmt_percent(share, prof_column_real(query, 2)), detail_text(query, 0));
}

static void detail_begin(const struct detail *detail, const char *title)
{
	char text[160];

	snprintf(text, sizeof(text), "%s%s%s", title, detail->report[0] ? ", " : "",
		 detail->report);
	view_blocks_begin(detail->blocks, arena_strdup(&detail->blocks->arena, text), NAME_WIDTH);
}

static enum status detail_operation(struct detail *detail, struct err *err)
{
	static const struct {
		const char *title, *sql;
		detail_row take;
	} parts[] = {{"How it runs", plan_sql, plan_row},
		     {NULL, programs_sql, programs_row},
		     {NULL, layer_sql, layer_row},
		     {NULL, variables_sql, variables_row},
		     {NULL, tensors_sql, tensors_row},
		     {"Compute sets, with the balance of the tiles at work", sets_sql, sets_row}};
	enum status status = ST_OK;

	detail->root = IPS_NULL;
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(parts); i++) {
		if (parts[i].title)
			detail_begin(detail, parts[i].title);
		status = detail_each(detail, parts[i].sql, parts[i].take, err);
	}
	return status;
}

static enum status detail_group(struct detail *detail, const char *sql, struct err *err)
{
	enum status status;

	detail_begin(detail, "The longest operations: Enter shows all of them");
	status = detail_each(detail, sql, greatest_row, err);
	if (status != ST_OK || !detail->layer)
		return status;
	detail_begin(detail, "What it keeps");
	status = detail_each(detail, layer_sql, layer_row, err);
	if (status == ST_OK)
		status = detail_each(detail, variables_sql, variables_row, err);
	return status == ST_OK ? detail_each(detail, tensors_sql, tensors_row, err) : status;
}

/* The statements, for people: parameters become what they stand for. */
static void detail_spell(struct str *out, const char *sql, const struct detail *detail)
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

static const char *detail_cell(const struct view_operations *screen, const char *column)
{
	const struct report_cell *cell = view_grid_cell(&screen->grid, column);

	return cell && cell->type == PROF_TEXT ? cell->text : NULL;
}

/* The greatest of the operations that the row sums up. */
static void detail_greatest_sql(const struct view_operations *screen, struct str *sql)
{
	char name[128];

	str_add(sql, "SELECT operation, cycles, 1.0 * cycles / nullif(sum(cycles) OVER (), 0) FROM "
		     "operations");
	view__operations_where(screen, sql);
	str_add(sql, screen->stage >= 0 || screen->inside[0] ? " AND " : " WHERE ");
	view__operations_condition(screen, sql, name, sizeof(name));
	str_addf(sql, " ORDER BY cycles DESC LIMIT %d", DETAIL_ROWS);
}

static enum status detail_report(struct view_operations *screen, struct detail *detail,
				 struct err *err)
{
	static const char *const all[] = {plan_sql,      sets_sql,    programs_sql,
					  variables_sql, tensors_sql, layer_sql};
	struct str sql = {0};
	enum status status;

	str_clear(&screen->more);
	if (screen->way == VIEW_BY_OPERATION) {
		if (!detail->operation)
			return ST_OK;
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			detail_spell(&screen->more, all[i], detail);
		return detail_operation(detail, err);
	}
	detail_greatest_sql(screen, &sql);
	str_addf(&screen->more, "%s;\n", str_peek(&sql));
	status = sql.failed ? err_nomem(err) : detail_group(detail, sql.text, err);
	str_free(&sql);
	return status;
}

enum status view__operations_detail(struct view_operations *screen, struct view_context *context,
				    struct err *err)
{
	struct detail detail = {.blocks = &screen->details,
				.db = context->source->db,
				.operation = detail_cell(screen, "operation"),
				.layer = detail_cell(screen, "layer"),
				.report = context->target ? "Source" : ""};
	enum status status;

	view_blocks_clear(&screen->details);
	screen->details.two_from = 110;
	screen->details.folds = true;
	if (screen->grid.count == 0)
		return ST_OK;
	status = detail_report(screen, &detail, err);
	if (status == ST_OK && context->target) {
		detail.db = context->target->db;
		detail.report = "Target";
		status = detail_report(screen, &detail, err);
	}
	if (status == ST_OK && screen->more.failed)
		return err_nomem(err);
	return status;
}
