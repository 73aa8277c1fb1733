/*
 * Read the live bytes of all program steps, look them up, and list the variables that are live at
 * the step under the cursor and at the selected steps.
 *
 * Threading: the session's. Ownership: the screen's arenas and grid.
 */
#include "viewer/liveness/view_liveness_internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

/* ---- steps ----------------------------------------------------------------------------------- */

static const char liveness_sql_counts[] = "SELECT (SELECT count(*) FROM liveness), "
					  "(SELECT count(*) FROM variables)";

static const char liveness_sql_steps[] =
	"SELECT ipu, program_step, program_id, always_live_bytes, not_always_live_bytes "
	"FROM liveness";

static const char liveness_sql_capacity[] =
	"SELECT ipu, sum(capacity) FROM (SELECT ipu, tile, max(capacity) AS capacity "
	"FROM tile_memory GROUP BY ipu, tile) GROUP BY ipu";

void view__live_report_fini(struct view_live_report *report)
{
	mem_free(report->steps);
	mem_free(report->curves);
	memset(report, 0, sizeof(*report));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Clamp bytes and steps of damaged files, so that sums and step + 1 do not overflow. */
static int64_t liveness_clamp_value(int64_t value)
{
	return value < 0 ? 0 : value > INT64_MAX / 4 ? INT64_MAX / 4 : value;
}

static void liveness_read_steps(struct view_live_report *report, struct prof_db *db,
				struct err *err)
{
	struct prof_query *query = view_query_open(db, liveness_sql_steps, err);

	report->count = 0;
	report->cut = false;
	while (view_query_next(query, err)) {
		report->cut = report->count == VIEW_LIVE_STEPS;
		if (report->cut)
			break;
		if (prof_column_type(query, 1) != PROF_INT)
			continue;
		if (mem_grow(&report->steps, &report->capacity, report->count + 1,
			     sizeof(*report->steps)))
			err_nomem(err);
		else
			report->steps[report->count++] = (struct view_live_step){
				prof_column_int(query, 0),
				liveness_clamp_value(prof_column_int(query, 1)),
				prof_column_int(query, 2),
				liveness_clamp_value(prof_column_int(query, 3)),
				liveness_clamp_value(prof_column_int(query, 4))};
	}
	prof_query_close(query);
}

static int liveness_by_step(const void *a, const void *b)
{
	const struct view_live_step *x = a, *y = b;

	return SORTED_BY(x, y, ipu, step);
}

/* Make a curve of the sorted steps of each IPU. */
static void liveness_make_curves(struct view_live_report *report, struct err *err)
{
	struct view_live_curve *curve = NULL;

	report->curve_count = 0;
	for (size_t i = 0; i < report->count && !err_stuck(err); i++) {
		const struct view_live_step *step = &report->steps[i];

		if (!curve || curve->ipu != step->ipu) {
			if (mem_grow(&report->curves, &report->curve_capacity,
				     report->curve_count + 1, sizeof(*report->curves))) {
				report->curve_count = 0;
				err_nomem(err);
				return;
			}
			curve = &report->curves[report->curve_count++];
			*curve = (struct view_live_curve){
				.ipu = step->ipu, .steps = step, .capacity = IPS_NULL};
		}
		if (step->rest > curve->steps[curve->peak[0]].rest)
			curve->peak[0] = curve->count;
		if (view__live_all(step) > view__live_all(&curve->steps[curve->peak[1]]))
			curve->peak[1] = curve->count;
		curve->count++;
	}
}

/* Read a report, unless its numbers of rows are those of the last time: a plan is written at once
 * and never changed. Return whether it was read. */
static bool liveness_read_report(struct view_live_report *report, struct prof_db *db,
				 struct err *err)
{
	struct prof_query *query = view_query_open(db, liveness_sql_counts, err);
	int64_t rows = 0, variables = 0;
	bool sorted = true;

	if (view_query_next(query, err)) {
		rows = prof_column_int(query, 0);
		variables = prof_column_int(query, 1);
	}
	prof_query_close(query);
	if (err_stuck(err) || (rows == report->rows && variables == report->variables))
		return false;
	report->rows = 0;
	report->curve_count = 0;
	liveness_read_steps(report, db, err);
	/* ipuscope writes the steps in order. */
	for (size_t i = 1; i < report->count && sorted; i++)
		sorted = liveness_by_step(&report->steps[i - 1], &report->steps[i]) <= 0;
	if (!sorted)
		qsort(report->steps, report->count, sizeof(*report->steps), liveness_by_step);
	liveness_make_curves(report, err);
	query = view_query_open(db, liveness_sql_capacity, err);
	while (view_query_next(query, err))
		for (size_t i = 0; i < report->curve_count; i++)
			if (report->curves[i].ipu == prof_column_int(query, 0))
				report->curves[i].capacity = prof_column_int(query, 1);
	prof_query_close(query);
	if (!err_stuck(err)) {
		report->rows = rows;
		report->variables = variables;
	}
	return true;
}

/* ---- both reports ---------------------------------------------------------------------------- */

static int liveness_by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return SORTED_ORDER(x, y);
}

/* List the IPUs of both reports; the one that is shown stays. */
static void liveness_read_ipus(struct view_liveness *live)
{
	const int64_t shown = live->ipu >= 0 && (size_t)live->ipu < live->ipu_count
				      ? live->ipus[live->ipu]
				      : IPS_NULL;
	size_t count = 0;

	live->ipu_count = 0;
	for (int r = 0; r < 2; r++)
		for (size_t i = 0; i < live->report[r].curve_count; i++) {
			const int64_t ipu = live->report[r].curves[i].ipu;

			if (r == 1 && view__live_curve(live, 0, ipu))
				continue;
			if (mem_grow(&live->ipus, &live->ipu_capacity, count + 1,
				     sizeof(*live->ipus))) {
				err_nomem(&live->err);
				return;
			}
			live->ipus[count++] = ipu;
		}
	if (count > 0)
		qsort(live->ipus, count, sizeof(*live->ipus), liveness_by_number);
	live->ipu_count = count;
	if (live->ipu != VIEW_LIVE_ALL)
		live->ipu = 0;
	for (size_t i = 0; i < count && live->ipu != VIEW_LIVE_ALL; i++)
		if (live->ipus[i] == shown)
			live->ipu = (int)i;
}

void view__live_read(struct view_liveness *live)
{
	const struct view_context *context = live->context;
	bool changed = false;

	live->compared = context->target != NULL;
	for (int r = 0; r < 2 && !err_stuck(&live->err); r++) {
		const struct view_source *source = r == 0 ? context->source : context->target;

		if (view_cancelled(context))
			err_set(&live->err, ST_INTERRUPTED, "stopped");
		else if (source && source->db)
			changed |= liveness_read_report(&live->report[r], source->db, &live->err);
	}
	/* On failure keep the list of IPUs; their curves may be gone. */
	if (err_stuck(&live->err))
		return;
	live->listed &= !changed;
	liveness_read_ipus(live);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

const struct view_live_curve *view__live_curve(const struct view_liveness *live, int report,
					       int64_t ipu)
{
	const struct view_live_report *of = &live->report[report];

	for (size_t i = 0; i < of->curve_count; i++)
		if (of->curves[i].ipu == ipu)
			return &of->curves[i];
	return NULL;
}

const struct view_live_step *view__live_peak(const struct view_liveness *live, int report,
					     int64_t ipu, bool all)
{
	const struct view_live_curve *curve = view__live_curve(live, report, ipu);

	return curve ? &curve->steps[curve->peak[all]] : NULL;
}

const struct view_live_step *view__live_at(const struct view_live_curve *curve, int64_t step)
{
	size_t at;

	if (!curve || step > curve->steps[curve->count - 1].step)
		return NULL;
	at = step == INT64_MAX ? curve->count
			       : sorted_place(curve->steps, curve->count, sizeof(*curve->steps),
					      offsetof(struct view_live_step, step), step + 1);
	return at > 0 ? &curve->steps[at - 1] : NULL;
}

bool view__live_shown(const struct view_liveness *live, int64_t ipu)
{
	return live->ipu == VIEW_LIVE_ALL ||
	       ((size_t)live->ipu < live->ipu_count && live->ipus[live->ipu] == ipu);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define NAME_LEAST 16
#define NAME_MOST  40

enum {
	VIEW_LIVE_IPU,
	VIEW_LIVE_NAME /* of a variable or a layer */
};

static const struct view_grid_column liveness_columns[] = {
	[VIEW_LIVE_IPU] = {.name = "ipu", .title = "IPU", .importance = 95},
	[VIEW_LIVE_NAME] = {.name = "variable", .least = NAME_LEAST, .importance = 100},
	{.name = "kind", .least = 11, .importance = 70},
	{.name = "bytes", .importance = 90, .bar = true},
	{.name = "layer", .least = 9, .importance = 60},
	{.name = "always_live", .title = "always", .importance = 55},
	{.name = "first_program_step", .title = "from", .importance = 50},
	{.name = "last_program_step", .title = "to", .importance = 50},
	{.name = "shape", .least = 8, .importance = 40},
	{.name = "dtype", .least = 7, .importance = 30},
	{.name = "variable_id", .importance = 0},
};

static const struct view_grid_column liveness_layer_columns[] = {
	[VIEW_LIVE_IPU] = {.name = "ipu", .title = "IPU", .importance = 95},
	[VIEW_LIVE_NAME] = {.name = "layer", .least = NAME_LEAST, .importance = 100},
	{.name = "bytes", .importance = 90, .bar = true},
	{.name = "not_always_live_bytes", .title = "not always live", .importance = 70},
	{.name = "always_live_bytes", .title = "always live", .importance = 60},
	{.name = "variables", .importance = 50},
};

_Static_assert(ARRAY_LEN(liveness_columns) <= VIEW_LIVE_COLUMNS, "no room for all columns");
_Static_assert(ARRAY_LEN(liveness_layer_columns) <= VIEW_LIVE_COLUMNS, "no room for all columns");

/* Fill in the grid's columns. With selected steps, the cursor's column is titled by its step,
 * too. */
static int liveness_fill_columns(struct view_liveness *live, const struct view_grid_column *columns,
				 size_t count)
{
	memcpy(live->columns, columns, count * sizeof(*columns));
	for (size_t i = 0; i < count && live->mark_count > 0; i++)
		if (strcmp(columns[i].name, "bytes") == 0) {
			snprintf(live->titles[VIEW_LIVE_MARKS], sizeof(live->titles[0]), "at %lld",
				 (long long)live->cursor);
			live->columns[i].title = live->titles[VIEW_LIVE_MARKS];
		}
	for (int i = 0; i < live->mark_count; i++) {
		snprintf(live->names[i], sizeof(live->names[i]), "step_%lld_bytes",
			 (long long)live->marks[i]);
		snprintf(live->titles[i], sizeof(live->titles[i]), "at %lld",
			 (long long)live->marks[i]);
		live->columns[count++] = (struct view_grid_column){
			.name = live->names[i], .title = live->titles[i], .importance = 85};
	}
	return (int)count;
}

/* ---- the statement --------------------------------------------------------------------------- */

static void liveness_add_at(struct str *sql, int64_t step)
{
	str_addf(sql, "(always_live OR %lld BETWEEN first_program_step AND last_program_step)",
		 (long long)step);
}

/* Add an expression for the bytes at @step, NULL if the variable is not live then. */
static void liveness_add_bytes(struct str *sql, const char *begin, int64_t step, const char *end)
{
	str_addf(sql, "%sCASE WHEN ", begin);
	liveness_add_at(sql, step);
	str_addf(sql, " THEN bytes END%s", end);
}

/* Add columns for the cursor's step and the selected steps, summed or not. */
static void liveness_add_columns(const struct view_liveness *live, struct str *sql, bool sum)
{
	const char *begin = sum ? ", sum(" : ", ", *end = sum ? ")" : "";
	char name[64];

	snprintf(name, sizeof(name), "%s AS bytes", end);
	liveness_add_bytes(sql, begin, live->cursor, name);
	for (int i = 0; i < live->mark_count; i++) {
		snprintf(name, sizeof(name), "%s AS step_%lld_bytes", end,
			 (long long)live->marks[i]);
		liveness_add_bytes(sql, begin, live->marks[i], name);
	}
}

static void liveness_add_ipu(const struct view_liveness *live, struct str *sql)
{
	const int64_t ipu = live->ipus[live->ipu];

	if (ipu == IPS_NULL)
		str_add(sql, "ipu IS NULL");
	else
		str_addf(sql, "ipu = %lld", (long long)ipu);
}

static void liveness_add_from(const struct view_liveness *live, struct str *sql)
{
	static const char *const groups[VIEW_LIVE_GROUPS] = {
		[VIEW_LIVE_BOTH] = "",
		[VIEW_LIVE_NOT_ALWAYS] = " AND NOT always_live",
		[VIEW_LIVE_ALWAYS] = " AND always_live"};

	str_add(sql, "\n  FROM variables WHERE (");
	liveness_add_at(sql, live->cursor);
	for (int i = 0; i < live->mark_count; i++) {
		str_add(sql, "\n    OR ");
		liveness_add_at(sql, live->marks[i]);
	}
	str_addf(sql, ")%s", groups[live->group]);
	if (live->ipu != VIEW_LIVE_ALL) {
		str_add(sql, " AND ");
		liveness_add_ipu(live, sql);
	}
}

static void liveness_add_names(const struct view_liveness *live, struct str *sql)
{
	str_add(sql, "bytes");
	for (int i = 0; i < live->mark_count; i++)
		str_addf(sql, ", step_%lld_bytes", (long long)live->marks[i]);
}

/* The total comes first, then the largest variables. */
static void liveness_add_variables(const struct view_liveness *live, struct str *sql)
{
	str_addf(sql, "SELECT %svariable, kind, ", live->ipu == VIEW_LIVE_ALL ? "ipu, " : "");
	liveness_add_names(live, sql);
	str_add(sql, ", layer, always_live, first_program_step,\n"
		     "  last_program_step, shape, dtype, variable_id\nFROM (\n"
		     "  SELECT ipu, 'Total' AS variable, NULL AS kind");
	liveness_add_columns(live, sql, true);
	str_add(sql, ",\n    NULL AS layer, NULL AS always_live, NULL AS first_program_step,\n"
		     "    NULL AS last_program_step, NULL AS shape, NULL AS dtype,\n"
		     "    NULL AS variable_id");
	liveness_add_from(live, sql);
	str_add(sql, "\n  GROUP BY ipu\n  UNION ALL\n  SELECT ipu, variable, kind");
	liveness_add_columns(live, sql, false);
	str_add(sql, ",\n    layer, always_live, first_program_step, last_program_step, shape,\n"
		     "    dtype, variable_id");
	liveness_add_from(live, sql);
	str_add(sql, "\n) ORDER BY variable_id IS NOT NULL, bytes DESC, variable");
}

static void liveness_add_layers(const struct view_liveness *live, struct str *sql)
{
	static const char *const heads[2] = {"'Total'", "coalesce(layer, '(no layer)')"};
	static const char *const groups[2] = {"ipu", "ipu, layer"};

	str_addf(sql, "SELECT %slayer, ", live->ipu == VIEW_LIVE_ALL ? "ipu, " : "");
	liveness_add_names(live, sql);
	str_add(sql, ", not_always_live_bytes, always_live_bytes, variables\nFROM (");
	for (int i = 0; i < 2; i++) {
		str_addf(sql, "%s\n  SELECT ipu, %s AS layer, %d AS part", i ? "\n  UNION ALL" : "",
			 heads[i], i);
		liveness_add_columns(live, sql, true);
		str_add(sql, ",\n    sum(CASE WHEN NOT always_live");
		str_addf(sql,
			 " AND %lld BETWEEN first_program_step AND last_program_step\n"
			 "      THEN bytes ELSE 0 END) AS not_always_live_bytes,\n"
			 "    sum(CASE WHEN always_live THEN bytes ELSE 0 END) AS "
			 "always_live_bytes,\n"
			 "    count(*) AS variables",
			 (long long)live->cursor);
		liveness_add_from(live, sql);
		str_addf(sql, "\n  GROUP BY %s", groups[i]);
	}
	str_add(sql, "\n) ORDER BY part, bytes DESC, layer");
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* List the variables or layers that are live, again if the choices or the step have changed. */
void view__live_list(struct view_liveness *live)
{
	const bool layers = live->show == VIEW_LIVE_LAYERS, all = live->ipu == VIEW_LIVE_ALL;
	struct str sql = {0};
	char keys[32];
	int count;

	if (err_stuck(&live->err) || live->ipu_count == 0 || live->show == VIEW_LIVE_CHART)
		return;
	if (!live->listed && live->context->source->db) {
		(layers ? liveness_add_layers : liveness_add_variables)(live, &sql);
		if (sql.failed) {
			str_free(&sql);
			err_nomem(&live->err);
			return;
		}
		str_free(&live->sql);
		live->sql = sql;
		live->grid.differ = live->context->differ;
		live->grid.still = true;
		count = layers ? liveness_fill_columns(live, liveness_layer_columns,
						       ARRAY_LEN(liveness_layer_columns))
			       : liveness_fill_columns(live, liveness_columns,
						       ARRAY_LEN(liveness_columns));
		snprintf(keys, sizeof(keys), "%s%s", all ? "ipu," : "",
			 layers ? "layer" : "variable");
		live->listed = view_grid_query(&live->grid, live->context,
					       layers ? "liveness_layers" : "liveness_variables",
					       str_peek(&live->sql), keys, live->columns, count,
					       VIEW_LIVE_ROWS, &live->err) == ST_OK;
		live->listed_at = live->cursor;
		if (!live->listed)
			return;
	}
	/* Names differ at their ends (Dense_256/MatMul/GradW/temporary). */
	live->columns[VIEW_LIVE_NAME].least =
		max(NAME_LEAST, min(NAME_MOST, live->areas.table.width * 3 / 10));
	view_grid_layout(&live->grid, live->areas.table);
	if (live->wanted != IPS_NULL)
		view_grid_go(&live->grid, "variable_id", NULL, live->wanted);
	live->wanted = IPS_NULL;
}

/* ---- statements and tables for output -------------------------------------------------------- */

static void liveness_add_window(const struct view_liveness *live, struct str *sql)
{
	str_add(sql, "SELECT ipu, program_step, program_id, always_live_bytes,\n"
		     "  not_always_live_bytes FROM liveness\nWHERE ");
	if (live->ipu != VIEW_LIVE_ALL) {
		liveness_add_ipu(live, sql);
		str_add(sql, " AND ");
	}
	str_addf(sql, "program_step BETWEEN %lld AND %lld\nORDER BY ipu, program_step",
		 (long long)live->window.from, (long long)live->window.to - 1);
}

void view__live_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_liveness *live = state;

	(void)context;
	if (live->ipu_count == 0)
		return;
	liveness_add_window(live, out);
	str_add(out, ";\n");
	if (live->show != VIEW_LIVE_CHART && live->sql.length)
		str_addf(out, "%s;\n", str_peek(&live->sql));
}

/* The table's rows; of the chart alone the window's steps, which it shows. */
enum status view__live_table(void *state, struct view_context *context, struct report_table *out,
			     struct err *err)
{
	static const char *const names[VIEW_LIVE_SHOWS] = {"liveness_variables", "liveness_layers",
							   "liveness"};
	struct view_liveness *live = state;
	struct report_table source = {0}, target = {0};
	struct str sql = {0};
	struct err own;

	err = err_start(err, &own);
	memset(out, 0, sizeof(*out));
	if (live->show != VIEW_LIVE_CHART || live->ipu_count == 0) {
		view_grid_table(&live->grid, out, err);
	} else {
		liveness_add_window(live, &sql);
		if (sql.failed)
			err_nomem(err);
		else if (report_table_query(&source, context->source->db, "liveness",
					    str_peek(&sql), 0, err) == ST_OK &&
			 context->target &&
			 report_table_query(&target, context->target->db, "liveness",
					    str_peek(&sql), 0, err) == ST_OK)
			view_grid_compare(out, context, &source, &target, "ipu,program_step", err);
		if (!err_stuck(err) && !context->target) {
			*out = source;
			memset(&source, 0, sizeof(source));
		}
		str_free(&sql);
		report_table_free(&source);
		report_table_free(&target);
	}
	out->name = names[live->show];
	return err->status;
}
