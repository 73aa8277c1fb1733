/*
 * The statements behind the screen Operations.
 *
 * Threading: the worker's. Ownership: texts grow in the screen's.
 */
#include "viewer/operations/view_operations_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

/* All of what a row of sums needs has to be visited once; operations are a model's, some
 * thousands. */
const struct view_operations_look view__operations_looks[VIEW_OPERATIONS_WAYS] = {
	[VIEW_BY_OPERATION] = {"operation", "operation", "operation, layer, kind, phase, stage",
			       NULL},
	[VIEW_BY_LAYER] = {"layer", "layer", "layer, min(stage) AS stage", "layer"},
	[VIEW_BY_KIND] = {"kind", "kind", "kind", "kind"},
	[VIEW_BY_STAGE] = {"stage and phase", "stage,phase", "stage, phase", "stage, phase"},
};

const struct view_grid_column view__operations_columns[] = {
	{.name = "operation", .importance = 20, .least = 20},
	{.name = "layer", .importance = 6, .least = 10},
	{.name = "kind", .importance = 8},
	{.name = "phase", .importance = 5},
	{.name = "stage", .importance = 5},
	{.name = "operations", .importance = 18},
	{.name = "cycles", .importance = 19, .bar = true},
	{.name = "dur_ns", .title = "time", .importance = 19, .bar = true},
	{.name = "share", .importance = 11},
	{.name = "compute_cycles", .title = "compute", .importance = 14},
	{.name = "exchange_cycles", .title = "exchange", .importance = 13},
	{.name = "sync_cycles", .title = "sync", .importance = 12},
	{.name = "compute_ns", .title = "compute", .importance = 14},
	{.name = "exchange_ns", .title = "exchange", .importance = 13},
	{.name = "sync_ns", .title = "sync", .importance = 12},
	{.name = "flops", .title = "FLOP", .importance = 7},
	{.name = "flops_per_cycle", .title = "FLOP/cycle", .importance = 10},
	{.name = "code_bytes", .title = "code", .importance = 4},
	{.name = "tiles_used", .title = "tiles", .importance = 9},
	{.name = "tile_balance", .title = "balance", .importance = 9},
	{.name = "bytes_exchanged", .title = "exchanged", .importance = 3},
};
const int view__operations_column_count = (int)ARRAY_LEN(view__operations_columns);

/* Columns of every row: of an operation, and of several. */
static const struct {
	const char *name, *one, *sum;
	const char *ns; /* called so where it is a time; NULL: it is none */
} measures[] = {
	{"cycles", "cycles", "sum(cycles)", "dur_ns"},
	{"compute_cycles", "compute_cycles", "sum(compute_cycles)", "compute_ns"},
	{"exchange_cycles", "exchange_cycles", "sum(exchange_cycles)", "exchange_ns"},
	{"sync_cycles", "sync_cycles", "sum(sync_cycles)", "sync_ns"},
	{"flops", "flops", "sum(flops)", NULL},
	{"flops_per_cycle", "round(1.0 * flops / nullif(cycles, 0), 1)",
	 "round(1.0 * sum(flops) / nullif(sum(cycles), 0), 1)", NULL},
	{"tiles_used", "tiles_used", "max(tiles_used)", NULL},
	{"tile_balance", "tile_balance",
	 "sum(tile_balance * compute_cycles) / nullif(sum(compute_cycles), 0)", NULL},
	{"code_bytes", "code_bytes", "sum(code_bytes)", NULL},
	{"bytes_exchanged", "bytes_exchanged", "sum(bytes_exchanged)", NULL},
};

void view__operations_where(const struct view_operations *screen, struct str *out)
{
	if (screen->stage >= 0)
		str_addf(out, " WHERE stage = %lld", (long long)screen->stage);
	if (screen->inside[0])
		str_addf(out, " %s %s", screen->stage >= 0 ? "AND" : "WHERE", screen->inside);
}

void view__operations_sql(struct view_operations *screen, bool share)
{
	const struct view_operations_look *look = &view__operations_looks[screen->way];
	struct str *sql = &screen->sql;

	str_clear(sql);
	str_addf(sql, "SELECT %s", look->columns);
	if (look->group)
		str_add(sql, ", count(*) AS operations");
	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		const char *value = look->group ? measures[i].sum : measures[i].one;

		if (screen->ns && measures[i].ns)
			str_addf(sql,
				 ",\n\tCAST(round(%s * 1e9 / (SELECT value FROM meta WHERE key = "
				 "'clock_hz')) AS INTEGER) AS %s",
				 value, measures[i].ns);
		else
			str_addf(sql, ",\n\t%s AS %s", value, measures[i].name);
		if (i > 0 || !share)
			continue;
		str_addf(sql, ",\n\t1.0 * %s / nullif((SELECT sum(cycles) FROM operations", value);
		view__operations_where(screen, sql);
		str_add(sql, "), 0) AS share");
	}
	str_add(sql, "\nFROM operations");
	view__operations_where(screen, sql);
	if (look->group)
		str_addf(sql, "\nGROUP BY %s\nORDER BY sum(cycles) DESC", look->group);
	else
		str_add(sql, "\nORDER BY cycles DESC, operation");
}

enum status view__operations_totals(struct view_operations *screen, struct prof_db *db,
				    struct view_operations_totals *out, struct err *err)
{
	double *const sums[] = {&out->cycles, &out->compute, &out->exchange,
				&out->sync,   &out->flops,   &out->code_bytes};
	struct str sql = {0};
	struct prof_query *query;
	enum status status;

	str_add(&sql, "SELECT count(*), sum(cycles), sum(compute_cycles), sum(exchange_cycles), "
		      "sum(sync_cycles), sum(flops), sum(code_bytes) FROM operations");
	view__operations_where(screen, &sql);
	status = sql.failed ? err_nomem(err) : prof_query_open(&query, db, sql.text, err);
	if (status == ST_OK) {
		if (prof_query_next(query, &status, err)) {
			out->operations = prof_column_int(query, 0);
			for (int i = 0; i < (int)ARRAY_LEN(sums); i++)
				*sums[i] = prof_column_real(query, i + 1);
		}
		prof_query_close(query);
	}
	str_free(&sql);
	return status;
}

static void condition_text(const struct view_operations *screen, const char *column,
			   struct str *out)
{
	const struct report_cell *cell = view_grid_cell(&screen->grid, column);

	if (!cell || cell->type != PROF_TEXT) {
		str_addf(out, "%s IS NULL", column);
		return;
	}
	str_addf(out, "%s = ", column);
	str_add_sql(out, cell->text);
}

bool view__operations_condition(const struct view_operations *screen, struct str *out, char *name,
				size_t size)
{
	const char *column = view__operations_looks[screen->way].name;
	const struct report_cell *stage = view_grid_cell(&screen->grid, "stage");
	const struct report_cell *text;

	if (screen->grid.count == 0)
		return false;
	if (screen->way != VIEW_BY_STAGE) {
		text = view_grid_cell(&screen->grid, column);
		condition_text(screen, column, out);
		snprintf(name, size, "%s %s", column,
			 text && text->type == PROF_TEXT ? text->text : "-");
		return true;
	}
	text = view_grid_cell(&screen->grid, "phase");
	condition_text(screen, "phase", out);
	if (stage && stage->type == PROF_INT)
		str_addf(out, " AND stage = %lld", (long long)stage->integer);
	else
		str_add(out, " AND stage IS NULL");
	snprintf(name, size, "stage %lld, phase %s",
		 stage && stage->type == PROF_INT ? (long long)stage->integer : -1,
		 text && text->type == PROF_TEXT ? text->text : "-");
	return true;
}
