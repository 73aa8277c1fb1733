/*
 * The table below the chart: what is live at the step under the cursor, and at the selected ones.
 *
 * Threading: the session's worker; the query is read on the terminal's thread. Ownership: the
 * statement is the screen's, the rows are the grid's.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/liveness/view_liveness_internal.h"

#define NAME_LEAST 16
#define NAME_MOST  40

enum {
	VIEW_LIVE_IPU,
	VIEW_LIVE_NAME /* of a variable or a layer */
};

static const struct view_grid_column view_live_columns[] = {
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

static const struct view_grid_column view_layer_columns[] = {
	[VIEW_LIVE_IPU] = {.name = "ipu", .title = "IPU", .importance = 95},
	[VIEW_LIVE_NAME] = {.name = "layer", .least = NAME_LEAST, .importance = 100},
	{.name = "bytes", .importance = 90, .bar = true},
	{.name = "not_always_live_bytes", .title = "not always live", .importance = 70},
	{.name = "always_live_bytes", .title = "always live", .importance = 60},
	{.name = "variables", .importance = 50},
};

_Static_assert(ARRAY_LEN(view_live_columns) <= VIEW_LIVE_COLUMNS, "no room for all columns");
_Static_assert(ARRAY_LEN(view_layer_columns) <= VIEW_LIVE_COLUMNS, "no room for all columns");

/* Names begin alike and end unlike (Dense_256/MatMul/GradW/temporary), so they come first. */
static int view_live_name_least(int width)
{
	const int part = width * 3 / 10;

	return part < NAME_LEAST ? NAME_LEAST : part > NAME_MOST ? NAME_MOST : part;
}

/* Beside selected steps the cursor's is one of several, and called by its number, too. */
static int view_live_looks(struct view_liveness *live, const struct view_grid_column *columns,
			   size_t count)
{
	memcpy(live->columns, columns, count * sizeof(*columns));
	for (size_t i = 0; i < count && live->mark_count > 0; i++)
		if (strcmp(columns[i].name, "bytes") == 0) {
			snprintf(live->titles[VIEW_LIVE_MARKS], sizeof(live->titles[0]),
				 "step %lld", (long long)live->cursor);
			live->columns[i].title = live->titles[VIEW_LIVE_MARKS];
		}
	for (int i = 0; i < live->mark_count; i++) {
		snprintf(live->names[i], sizeof(live->names[i]), "step_%lld_bytes",
			 (long long)live->marks[i]);
		snprintf(live->titles[i], sizeof(live->titles[i]), "step %lld",
			 (long long)live->marks[i]);
		live->columns[count++] = (struct view_grid_column){
			.name = live->names[i], .title = live->titles[i], .importance = 85};
	}
	return (int)count;
}

/* ---- the statement --------------------------------------------------------------------------- */

static void view_add_at(struct str *sql, int64_t step)
{
	str_addf(sql, "(always_live OR %lld BETWEEN first_program_step AND last_program_step)",
		 (long long)step);
}

/* Bytes at @step, NULL where it is not live then. */
static void view_add_bytes(struct str *sql, const char *begin, int64_t step, const char *end)
{
	str_addf(sql, "%sCASE WHEN ", begin);
	view_add_at(sql, step);
	str_addf(sql, " THEN bytes END%s", end);
}

/* The cursor's step and the selected ones, as columns of a sum or of a row. */
static void view_add_columns(const struct view_liveness *live, struct str *sql, bool sum)
{
	const char *begin = sum ? ", sum(" : ", ", *end = sum ? ")" : "";
	char name[64];

	snprintf(name, sizeof(name), "%s AS bytes", end);
	view_add_bytes(sql, begin, live->cursor, name);
	for (int i = 0; i < live->mark_count; i++) {
		snprintf(name, sizeof(name), "%s AS step_%lld_bytes", end,
			 (long long)live->marks[i]);
		view_add_bytes(sql, begin, live->marks[i], name);
	}
}

static void view_add_ipu(const struct view_liveness *live, struct str *sql)
{
	const int64_t ipu = live->ipus[live->ipu];

	if (ipu == IPS_NULL)
		str_add(sql, "ipu IS NULL");
	else
		str_addf(sql, "ipu = %lld", (long long)ipu);
}

static void view_add_from(const struct view_liveness *live, struct str *sql)
{
	static const char *const groups[VIEW_LIVE_GROUPS] = {
		[VIEW_LIVE_BOTH] = "",
		[VIEW_LIVE_NOT_ALWAYS] = " AND NOT always_live",
		[VIEW_LIVE_ALWAYS] = " AND always_live"};

	str_add(sql, "\n  FROM variables WHERE (");
	view_add_at(sql, live->cursor);
	for (int i = 0; i < live->mark_count; i++) {
		str_add(sql, "\n    OR ");
		view_add_at(sql, live->marks[i]);
	}
	str_addf(sql, ")%s", groups[live->group]);
	if (live->ipu != VIEW_LIVE_ALL) {
		str_add(sql, " AND ");
		view_add_ipu(live, sql);
	}
}

static void view_add_names(const struct view_liveness *live, struct str *sql)
{
	str_add(sql, "bytes");
	for (int i = 0; i < live->mark_count; i++)
		str_addf(sql, ", step_%lld_bytes", (long long)live->marks[i]);
}

/* The sum over all first, then the largest. */
static void view_add_variables(const struct view_liveness *live, struct str *sql)
{
	str_addf(sql, "SELECT %svariable, kind, ", live->ipu == VIEW_LIVE_ALL ? "ipu, " : "");
	view_add_names(live, sql);
	str_add(sql, ", layer, always_live, first_program_step,\n"
		     "  last_program_step, shape, dtype, variable_id\nFROM (\n"
		     "  SELECT ipu, 'Total' AS variable, NULL AS kind");
	view_add_columns(live, sql, true);
	str_add(sql, ",\n    NULL AS layer, NULL AS always_live, NULL AS first_program_step,\n"
		     "    NULL AS last_program_step, NULL AS shape, NULL AS dtype,\n"
		     "    NULL AS variable_id");
	view_add_from(live, sql);
	str_add(sql, "\n  GROUP BY ipu\n  UNION ALL\n  SELECT ipu, variable, kind");
	view_add_columns(live, sql, false);
	str_add(sql, ",\n    layer, always_live, first_program_step, last_program_step, shape,\n"
		     "    dtype, variable_id");
	view_add_from(live, sql);
	str_add(sql, "\n) ORDER BY variable_id IS NOT NULL, bytes DESC, variable");
}

static void view_add_layers(const struct view_liveness *live, struct str *sql)
{
	static const char *const heads[2] = {"'Total'", "coalesce(layer, '(no layer)')"};
	static const char *const groups[2] = {"ipu", "ipu, layer"};

	str_addf(sql, "SELECT %slayer, ", live->ipu == VIEW_LIVE_ALL ? "ipu, " : "");
	view_add_names(live, sql);
	str_add(sql, ", not_always_live_bytes, always_live_bytes, variables\nFROM (");
	for (int i = 0; i < 2; i++) {
		str_addf(sql, "%s\n  SELECT ipu, %s AS layer, %d AS part", i ? "\n  UNION ALL" : "",
			 heads[i], i);
		view_add_columns(live, sql, true);
		str_add(sql, ",\n    sum(CASE WHEN NOT always_live");
		str_addf(sql,
			 " AND %lld BETWEEN first_program_step AND last_program_step\n"
			 "      THEN bytes ELSE 0 END) AS not_always_live_bytes,\n"
			 "    sum(CASE WHEN always_live THEN bytes ELSE 0 END) AS "
			 "always_live_bytes,\n"
			 "    count(*) AS variables",
			 (long long)live->cursor);
		view_add_from(live, sql);
		str_addf(sql, "\n  GROUP BY %s", groups[i]);
	}
	str_add(sql, "\n) ORDER BY part, bytes DESC, layer");
}

/* ---- the rows -------------------------------------------------------------------------------- */

static enum status view_live_rows(struct view_liveness *live, struct view_context *context,
				  struct err *err)
{
	const bool layers = live->show == VIEW_LIVE_LAYERS, all = live->ipu == VIEW_LIVE_ALL;
	struct str sql = {0};
	enum status status;

	(layers ? view_add_layers : view_add_variables)(live, &sql);
	if (sql.failed) {
		str_free(&sql);
		return err_nomem(err);
	}
	str_free(&live->sql);
	live->sql = sql;
	live->grid.differ = context->differ;
	live->grid.still = true;
	if (layers)
		status = view_grid_query(
			&live->grid, context, "liveness_layers", str_peek(&live->sql),
			all ? "ipu,layer" : "layer", live->columns,
			view_live_looks(live, view_layer_columns, ARRAY_LEN(view_layer_columns)),
			VIEW_LIVE_ROWS, err);
	else
		status = view_grid_query(
			&live->grid, context, "liveness_variables", str_peek(&live->sql),
			all ? "ipu,variable" : "variable", live->columns,
			view_live_looks(live, view_live_columns, ARRAY_LEN(view_live_columns)),
			VIEW_LIVE_ROWS, err);
	live->listed = status == ST_OK;
	live->listed_at = live->cursor;
	return status;
}

enum status view__live_list(struct view_liveness *live, struct view_context *context,
			    struct err *err)
{
	enum status status = ST_OK;

	if (live->ipu_count == 0 || live->show == VIEW_LIVE_CHART)
		return ST_OK;
	if (!live->listed && context->source->db)
		status = view_live_rows(live, context, err);
	if (status != ST_OK)
		return status;
	live->columns[VIEW_LIVE_NAME].least = view_live_name_least(live->areas.table.width);
	view_grid_layout(&live->grid, live->areas.table.width, live->areas.table.height);
	if (live->wanted != IPS_NULL)
		view_grid_go(&live->grid, live->areas.table.height, "variable_id", NULL,
			     live->wanted);
	live->wanted = IPS_NULL;
	return ST_OK;
}

/* ---- for others ------------------------------------------------------------------------------ */

static void view_add_window(const struct view_liveness *live, struct str *sql)
{
	str_add(sql, "SELECT ipu, program_step, program_id, always_live_bytes,\n"
		     "  not_always_live_bytes FROM liveness\nWHERE ");
	if (live->ipu != VIEW_LIVE_ALL) {
		view_add_ipu(live, sql);
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
	view_add_window(live, out);
	str_add(out, ";\n");
	if (live->show != VIEW_LIVE_CHART && live->sql.length)
		str_addf(out, "%s;\n", str_peek(&live->sql));
}

/* The steps of the window: what the chart alone shows. */
static enum status view_live_steps_table(const struct view_liveness *live,
					 const struct view_context *context,
					 struct report_table *out, struct err *err)
{
	struct report_table source = {0}, target = {0};
	struct str sql = {0};
	enum status status;

	view_add_window(live, &sql);
	status = sql.failed ? err_nomem(err)
			    : report_table_query(&source, context->source->db, "liveness",
						 str_peek(&sql), 0, err);
	if (status == ST_OK && context->target)
		status = report_table_query(&target, context->target->db, "liveness",
					    str_peek(&sql), 0, err);
	if (status == ST_OK && context->target) {
		status = view_grid_compare(out, context, &source, &target, "ipu,program_step", err);
	} else if (status == ST_OK) {
		*out = source;
		memset(&source, 0, sizeof(source));
	}
	str_free(&sql);
	report_table_free(&source);
	report_table_free(&target);
	return status;
}

enum status view__live_table(void *state, struct view_context *context, struct report_table *out,
			     struct err *err)
{
	static const char *const names[VIEW_LIVE_SHOWS] = {"liveness_variables", "liveness_layers",
							   "liveness"};
	struct view_liveness *live = state;
	enum status status;

	memset(out, 0, sizeof(*out));
	if (live->show == VIEW_LIVE_CHART && live->ipu_count > 0)
		status = view_live_steps_table(live, context, out, err);
	else
		status = view_grid_table(&live->grid, out, err);
	if (status == ST_OK)
		out->name = names[live->show];
	return status;
}
