/*
 * Draw the Operations screen: totals, the table with its bars, and details of the row under the
 * cursor: of an operation its plan, compute sets, programs and the variables of its layer; of a sum
 * its largest operations.
 *
 * Threading: the terminal's, but loads compute the details. Ownership: the screen's arena.
 */
#include "viewer/operations/view_operations_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/sat.h"
#include "reports/named/report_named.h"
#include "viewer/draw/view_table.h"

/* ---- one row --------------------------------------------------------------------------------- */

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
static enum status operations_add_rows(struct detail *detail, const char *sql, detail_row add_row,
				       struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, detail->db, sql, err);

	if (strstr(sql, ":operation"))
		prof_query_text(query, ":operation", detail->operation);
	if (strstr(sql, ":layer"))
		prof_query_text(query, ":layer", detail->layer);
	while (prof_query_next(query, &status, err))
		add_row(detail, query);
	prof_query_close(query);
	return status;
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

	for (int i = 0; i < (int)ARRAY_LEN(splits); i++) {
		const size_t used = strlen(text);

		if (prof_column_int(query, i + 1) > 1)
			snprintf(text + used, sizeof(text) - used, ", %s %lld", splits[i],
				 (long long)prof_column_int(query, i + 1));
	}
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

static enum status operations_detail_operation(struct detail *detail, struct err *err)
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
	enum status status = ST_OK;

	detail->root = IPS_NULL;
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(parts); i++) {
		if (parts[i].title)
			operations_detail_begin(detail, parts[i].title);
		status = operations_add_rows(detail, parts[i].sql, parts[i].add_row, err);
	}
	return status;
}

static enum status operations_detail_group(struct detail *detail, const char *sql, struct err *err)
{
	enum status status;

	operations_detail_begin(detail, "The longest operations: Enter shows all of them");
	status = operations_add_rows(detail, sql, operations_largest_row, err);
	if (status != ST_OK || !detail->layer)
		return status;
	operations_detail_begin(detail, "What it keeps");
	status = operations_add_rows(detail, operations_layer_sql, operations_layer_row, err);
	if (status == ST_OK)
		status = operations_add_rows(detail, operations_variables_sql,
					     operations_variables_row, err);
	return status == ST_OK ? operations_add_rows(detail, operations_tensors_sql,
						     operations_tensors_row, err)
			       : status;
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

static enum status operations_detail_report(struct view_operations *screen, struct detail *detail,
					    struct err *err)
{
	static const char *const all[] = {operations_plan_sql,     operations_sets_sql,
					  operations_programs_sql, operations_variables_sql,
					  operations_tensors_sql,  operations_layer_sql};
	struct str sql = {0};
	enum status status;
	char name[128];

	str_clear(&screen->more);
	if (screen->way == VIEW_BY_OPERATION) {
		if (!detail->operation)
			return ST_OK;
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			operations_add_statement(&screen->more, all[i], detail);
		return operations_detail_operation(detail, err);
	}

	/* The largest operations of the selected sum. */
	str_add(&sql, "SELECT operation, update_cycles, 1.0 * update_cycles / "
		      "nullif(sum(update_cycles) OVER (), 0) FROM " REPORT_OPERATIONS);
	view__operations_where(screen, &sql);
	str_add(&sql, screen->stage >= 0 || screen->inside[0] ? " AND " : " WHERE ");
	view__operations_condition(screen, &sql, name, sizeof(name));
	str_addf(&sql, " ORDER BY update_cycles DESC LIMIT %d", DETAIL_ROWS);
	str_addf(&screen->more, "%s;\n", str_peek(&sql));
	status = sql.failed ? err_nomem(err) : operations_detail_group(detail, sql.text, err);
	str_free(&sql);
	return status;
}

enum status view__operations_detail(struct view_operations *screen, struct view_context *context,
				    struct err *err)
{
	struct detail detail = {.blocks = &screen->details,
				.db = context->source->db,
				.operation = view_grid_text(&screen->grid, "operation"),
				.layer = view_grid_text(&screen->grid, "layer"),
				.report = context->target ? "Source" : ""};
	enum status status;

	view_blocks_clear(&screen->details);
	screen->details.two_from = 110;
	screen->details.folds = true;
	if (screen->grid.count == 0)
		return ST_OK;
	status = operations_detail_report(screen, &detail, err);
	if (status == ST_OK && context->target) {
		detail.db = context->target->db;
		detail.report = "Target";
		status = operations_detail_report(screen, &detail, err);
	}
	if (status == ST_OK && screen->more.failed)
		return err_nomem(err);
	return status;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* The parts of a row's cycles. */
static const struct {
	const char *title, *cycles, *ns;
	enum view_style style;
} parts[] = {
	{"compute", "update_compute", "compute_ns", VIEW_SERIES_1},
	{"exchange", "update_exchange", "exchange_ns", VIEW_SERIES_2},
	{"sync", "update_sync", "sync_ns", VIEW_SERIES_3},
};

/* ---- totals ---------------------------------------------------------------------------------- */

/* Cycles, or their time if the screen shows times. */
static const char *operations_amount_text(const struct view_operations *screen, double cycles,
					  char out[FMT_SIZE])
{
	char text[FMT_SIZE];

	if (isnan(cycles))
		return "no cycles";
	if (screen->ns)
		return fmt_ns(out, (int64_t)(cycles * 1e9 / screen->clock_hz));
	snprintf(out, FMT_SIZE, "%s cycles", fmt_count(text, (int64_t)cycles));
	return out;
}

/* Draw @text only if it fits completely. Return the columns used. */
static int operations_draw_if_fits(struct view_pane *pane, int x, const char *text)
{
	return x + view_text_width(text) < pane->rect.width ? view_text(pane, x, 0, VIEW_DIM, text)
							    : 0;
}

static void operations_draw_totals(const struct view_operations *screen,
				   const struct view_context *context, struct view_pane *pane)
{
	const struct view_operations_totals *totals = &screen->totals[0];
	char amount[FMT_SIZE], other[FMT_SIZE], bytes[FMT_SIZE], part[2 * FMT_SIZE];
	int x = 1;

	x += view_text(pane, x, 0, VIEW_WARN, "simulated");
	x += view_textf(pane, x, 0, VIEW_DIM,
			", by %s: ", view__operations_groupings[screen->way].name);
	x += view_textf(pane, x, 0, VIEW_BOLD, "%s",
			operations_amount_text(screen, totals->cycles, amount));
	x += view_text(pane, x, 0, VIEW_DIM,
		       screen->alone ? ", each executed once" : " a weight update");
	if (context->target) {
		const double target = screen->totals[1].cycles;
		const double more = target - totals->cycles;

		view_textf(pane, x, 0, VIEW_NORMAL, ", target %s (%s%s)",
			   operations_amount_text(screen, target, other), more < 0 ? "-" : "+",
			   fmt_percent(bytes, fabs(more) / fmax(target, totals->cycles)));
		return;
	}
	if (!(totals->cycles > 0))
		return;
	snprintf(part, sizeof(part), ": compute %.0f %%, exchange %.0f %%, sync %.0f %%",
		 100 * totals->compute / totals->cycles, 100 * totals->exchange / totals->cycles,
		 100 * totals->sync / totals->cycles);
	if (x + view_text_width(part) >= pane->rect.width)
		snprintf(part, sizeof(part), ": compute %.0f %%, sync %.0f %%",
			 100 * totals->compute / totals->cycles,
			 100 * totals->sync / totals->cycles);
	x += operations_draw_if_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s while they run (%s of the peak)",
		 fmt_flops(other, totals->flops / totals->cycles * screen->clock_hz),
		 fmt_percent(bytes, totals->flops / totals->cycles / screen->peak_cycle));
	if (isfinite(totals->flops * screen->clock_hz) && screen->peak_cycle > 0)
		x += operations_draw_if_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s FLOP",
		 isnan(totals->flops) ? "-" : fmt_count(other, sat_real(totals->flops)));
	x += operations_draw_if_fits(pane, x, part);
	snprintf(part, sizeof(part), ", %s of code",
		 isnan(totals->code_bytes)
			 ? "-"
			 : fmt_bytes(bytes, (uint64_t)sat_real(fmax(totals->code_bytes, 0))));
	operations_draw_if_fits(pane, x, part);
}

/* ---- bars ------------------------------------------------------------------------------------ */

struct draw_bars {
	const struct view_operations *screen;
	int columns[ARRAY_LEN(parts)];
	double greatest; /* over all rows and both reports */
};

static double operations_part_cycles(const struct draw_bars *bars, int64_t row, int part)
{
	const struct report_table *table = &bars->screen->grid.table;
	const struct report_cell *cell;

	if (bars->columns[part] < 0)
		return 0;
	cell = &table->cells[row * table->column_count + bars->columns[part]];
	return cell->type == PROF_INT && cell->integer > 0 ? (double)cell->integer : 0;
}

static double operations_row_cycles(const struct draw_bars *bars, int64_t row)
{
	double whole = 0;

	for (int part = 0; part < (int)ARRAY_LEN(parts); part++)
		whole += operations_part_cycles(bars, row, part);
	return whole;
}

static void operations_find_columns(struct draw_bars *bars, const char *suffix)
{
	char name[64];

	for (int part = 0; part < (int)ARRAY_LEN(parts); part++) {
		snprintf(name, sizeof(name), "%s%s",
			 bars->screen->ns ? parts[part].ns : parts[part].cycles, suffix);
		bars->columns[part] = view_table_column(&bars->screen->grid.table, name);
	}
	for (int64_t row = 0; row < bars->screen->grid.table.row_count; row++)
		bars->greatest = fmax(bars->greatest, operations_row_cycles(bars, row));
}

/* Round the ends of parts, not their lengths, so that the whole bar has the right length. */
static void operations_draw_bar(const struct draw_bars *bars, int64_t row, int y,
				struct view_pane *pane)
{
	const double whole = operations_row_cycles(bars, row);
	const double scale = bars->screen->parts == VIEW_PARTS_EVEN ? whole : bars->greatest;
	double sum = 0;
	int x = 0;

	for (int part = 0; part < (int)ARRAY_LEN(parts) && scale > 0; part++) {
		int end;

		sum += operations_part_cycles(bars, row, part);
		end = (int)lround(sum / scale * pane->rect.width);
		for (; x < end; x++)
			view_put(pane, x, y, parts[part].style,
				 view_fill_char(pane->canvas, parts[part].style));
	}
}

static void operations_draw_bars_of(struct draw_bars *bars, const char *suffix, const char *report,
				    struct view_pane pane)
{
	const struct view_grid *grid = &bars->screen->grid;
	int x;

	operations_find_columns(bars, suffix);

	x = 0;
	x += view_text(&pane, x, 0, VIEW_DIM, report);
	for (int part = 0; part < (int)ARRAY_LEN(parts); part++) {
		x += x > 0;
		view_put(&pane, x, 0, parts[part].style,
			 view_fill_char(pane.canvas, parts[part].style));
		x += 1 + view_text_cut(&pane, x + 1, 0, pane.rect.width - x - 1, VIEW_DIM,
				       parts[part].title);
	}
	for (int i = 0; i + 1 < pane.rect.height && grid->scroll + i < grid->count; i++)
		operations_draw_bar(bars, grid->order[grid->scroll + i], i + 1, &pane);
}

static void operations_draw_breakdown(const struct view_operations *screen,
				      const struct view_context *context,
				      const struct view_pane *pane)
{
	struct draw_bars bars = {.screen = screen};
	struct view_rect left = screen->bars, right = screen->bars;

	if (screen->bars.width < 1)
		return;
	if (!context->target) {
		operations_draw_bars_of(&bars, "", "", view_pane_sub(pane, left));
		return;
	}
	left.width = (left.width - 1) / 2;
	right.x += left.width + 1;
	right.width -= left.width + 1;
	/* Include the target before drawing, so that both have the same scale. */
	operations_find_columns(&bars, "_target");
	operations_draw_bars_of(&bars, "", "Source ", view_pane_sub(pane, left));
	operations_draw_bars_of(&bars, "_target", "Target ", view_pane_sub(pane, right));
}

/* ---- the screen ------------------------------------------------------------------------------ */

void view__operations_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane)
{
	const struct view_operations *screen = state;
	struct view_pane heading = view_pane_sub(pane, screen->heading);
	struct view_pane line = view_pane_sub(pane, screen->line);
	struct view_pane lower = view_pane_sub(pane, screen->lower);

	if (screen->grid.table.row_count == 0 && !screen->inside[0] && screen->stage < 0) {
		view_nothing(pane, "No operations have been recorded:",
			     "the run had no simulated device, or its plan is not written yet.",
			     context->source->none);
		return;
	}
	operations_draw_totals(screen, context, &heading);
	view_grid_draw(&screen->grid, pane, !context->whole);
	operations_draw_breakdown(screen, context, pane);
	if (line.rect.height > 0) {
		char name[250], text[256];

		view_glyphs(&line, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, line.rect.width);
		view__operations_row_name(screen, name, sizeof(name));
		snprintf(text, sizeof(text), " %s ", name);
		view_text_cut(&line, 2, 0, line.rect.width - 4, VIEW_BOLD, text);
	}
	if (lower.rect.height > 0)
		view_blocks_draw(&screen->details, &lower);
}
