/*
 * Predictions as rows. Threading: none. Ownership: the table's arena.
 */
#include "reports/whatif/report_whatif_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_select.h"

enum {
	COLUMN_KIND,
	COLUMN_CHANGE,
	COLUMN_SCHEDULE,
	COLUMN_STAGES,
	COLUMN_MICRO_BATCHES,
	COLUMN_REPLICAS,
	COLUMN_TARGET,
	COLUMN_WEIGHT_UPDATE,
	COLUMN_STEP,
	COLUMN_OPTIMIZER,
	COLUMN_SAMPLES,
	COLUMN_SPEEDUP,
	COLUMN_MAKESPAN,
	COLUMN_BUSY,
	COLUMN_IDLE,
	COLUMN_RATE,
	COLUMN_OVER_IDEAL,
	COLUMN_SLOWEST,
	COLUMN_SLOWEST_NS,
	COLUMN_MEMORY_IPU,
	COLUMN_MEMORY_TILE,
	COLUMN_MEMORY_FITS,
	COLUMN_SPLIT,
	COLUMN_FLAGS,
	COLUMN_WHY_NOT,
	COLUMN_ASSUMPTIONS,
	COLUMN_INSTANCES,
	COLUMN_EXPOSED,
	COLUMN_LINK,
	COLUMN_EFFICIENCY,
	COLUMNS
};

static const struct {
	struct report_column column;
	bool people; /* shown in text */
} whatif_columns[] = {
	[COLUMN_KIND] = {{"kind", REPORT_TEXT}, true},
	[COLUMN_CHANGE] = {{"change", REPORT_TEXT}, false},
	[COLUMN_SCHEDULE] = {{"schedule", REPORT_TEXT}, true},
	[COLUMN_STAGES] = {{"stages", REPORT_NUMBER}, true},
	[COLUMN_MICRO_BATCHES] = {{"micro_batches", REPORT_NUMBER}, true},
	[COLUMN_REPLICAS] = {{"replicas", REPORT_NUMBER}, true},
	[COLUMN_TARGET] = {{"target", REPORT_TEXT}, true},
	[COLUMN_WEIGHT_UPDATE] = {{"weight_update_ns", REPORT_NS}, true},
	[COLUMN_STEP] = {{"step_ns", REPORT_NS}, true},
	[COLUMN_OPTIMIZER] = {{"optimizer_ns", REPORT_NS}, false},
	[COLUMN_SAMPLES] = {{"samples_second", REPORT_COUNT}, true},
	[COLUMN_SPEEDUP] = {{"speedup", REPORT_REAL}, false},
	[COLUMN_MAKESPAN] = {{"makespan_ns", REPORT_NS}, false},
	[COLUMN_BUSY] = {{"busy_ns", REPORT_NS}, false},
	[COLUMN_IDLE] = {{"idle_fraction", REPORT_FRACTION}, true},
	[COLUMN_RATE] = {{"bubble_rate", REPORT_FRACTION}, true},
	[COLUMN_OVER_IDEAL] = {{"bubble_over_ideal", REPORT_FRACTION}, true},
	[COLUMN_SLOWEST] = {{"slowest_stage", REPORT_NUMBER}, false},
	[COLUMN_SLOWEST_NS] = {{"slowest_stage_ns", REPORT_NS}, false},
	[COLUMN_MEMORY_IPU] = {{"memory_ipu_bytes", REPORT_BYTES}, true},
	[COLUMN_MEMORY_TILE] = {{"memory_tile_bytes", REPORT_BYTES}, false},
	[COLUMN_MEMORY_FITS] = {{"memory_fits", REPORT_BOOL}, false},
	[COLUMN_SPLIT] = {{"split", REPORT_TEXT}, false},
	[COLUMN_FLAGS] = {{"flags", REPORT_TEXT}, false},
	[COLUMN_WHY_NOT] = {{"why_not", REPORT_TEXT}, false},
	[COLUMN_ASSUMPTIONS] = {{"assumptions", REPORT_TEXT}, false},
	[COLUMN_INSTANCES] = {{"instances", REPORT_NUMBER}, false},
	[COLUMN_EXPOSED] = {{"exposed_ns", REPORT_NS}, false},
	[COLUMN_LINK] = {{"link_ns", REPORT_NS}, false},
	[COLUMN_EFFICIENCY] = {{"efficiency", REPORT_FRACTION}, false},
};
_Static_assert(ARRAY_LEN(whatif_columns) == COLUMNS, "columns out of step");

static struct report_cell to_text_cell(const char *text)
{
	return (struct report_cell){.type = text && *text ? PROF_TEXT : PROF_NULL, .text = text};
}

static struct report_cell to_number_cell(int64_t value)
{
	return (struct report_cell){.type = value > 0 ? PROF_INT : PROF_NULL, .integer = value};
}

/* Join the texts of the assumptions. */
static const char *join_assumptions(struct arena *arena, uint32_t assumptions)
{
	const char *text = "";

	for (int i = 0; text && i < REPORT_WHATIF_ASSUMPTIONS; i++)
		if (assumptions & 1u << i)
			text = arena_printf(
				arena, "%s%s%s", text, *text ? " " : "",
				report_whatif_assumption((enum report_whatif_assumption)i));
	return text;
}

/* Fill the cells that describe the change. */
static void fill_change(struct report_cell cells[COLUMNS],
			const struct report_whatif_prediction *from)
{
	cells[COLUMN_SCHEDULE] =
		to_text_cell(from->pipelined ? ipu_schedule_name(from->schedule) : "none");
	cells[COLUMN_STAGES] = to_number_cell(from->stages);
	cells[COLUMN_MICRO_BATCHES] = to_number_cell(from->microbatches);
	cells[COLUMN_REPLICAS] = to_number_cell(from->replicas);
	cells[COLUMN_INSTANCES] = to_number_cell(from->instances);
	cells[COLUMN_TARGET] = to_text_cell(from->target);
}

static void fill_figures(struct report_cell cells[COLUMNS],
			 const struct report_whatif_prediction *from,
			 const struct report_whatif_prediction *measured)
{
	cells[COLUMN_WEIGHT_UPDATE] = to_number_cell(from->run_ns);
	cells[COLUMN_STEP] = to_number_cell(llround(from->step_ns));
	cells[COLUMN_OPTIMIZER] = to_number_cell(from->update_ns);
	cells[COLUMN_SAMPLES] = to_number_cell(llround(from->samples_second));
	cells[COLUMN_SPEEDUP] =
		report_cell_of_real(from->samples_second / measured->samples_second);
	cells[COLUMN_MAKESPAN] = to_number_cell(from->makespan_ns);
	cells[COLUMN_BUSY] = to_number_cell(from->busy_ns);
	cells[COLUMN_IDLE] = report_cell_of_real(from->idle_fraction);
	cells[COLUMN_RATE] = report_cell_of_real(from->bubble_rate);
	cells[COLUMN_OVER_IDEAL] = report_cell_of_real(from->bubble_over_ideal);
	cells[COLUMN_SLOWEST] = (struct report_cell){.type = PROF_INT, .integer = from->slowest};
	cells[COLUMN_SLOWEST_NS] = to_number_cell(from->slowest_ns);
	cells[COLUMN_MEMORY_IPU] = to_number_cell(from->memory_ipu_bytes);
	cells[COLUMN_MEMORY_TILE] = to_number_cell(from->memory_tile_bytes);
	if (from->instances > 0) {
		cells[COLUMN_EXPOSED] =
			(struct report_cell){.type = PROF_INT, .integer = from->exposed_ns};
		cells[COLUMN_LINK] = to_number_cell(from->link_ns);
		cells[COLUMN_EFFICIENCY] =
			report_cell_of_real(from->samples_second * measured->instances /
					    (measured->samples_second * from->instances));
	}
	if (from->memory_ipu_bytes > 0)
		cells[COLUMN_MEMORY_FITS] =
			(struct report_cell){.type = PROF_INT, .integer = from->memory_fits};
}

static int fill_row(struct report_cell cells[COLUMNS], struct arena *arena,
		    const struct report_whatif_row *row, const struct report_whatif_row *first)
{
	const struct report_whatif_prediction *from = &row->prediction;
	const char *split = arena_strdup(arena, from->split);
	const char *why = arena_strdup(arena, row->why_not);
	const char *flags = arena_strdup(arena, from->flags);
	const char *change = arena_strdup(arena, row->change);
	const char *assumptions = join_assumptions(arena, from->assumptions);

	memset(cells, 0, COLUMNS * sizeof(*cells));
	if (!split || !why || !flags || !change || !assumptions)
		return -1;
	cells[COLUMN_KIND] = to_text_cell(row->measured ? "measured" : "predicted");
	cells[COLUMN_CHANGE] = to_text_cell(change);
	fill_change(cells, from);
	if (!*why)
		fill_figures(cells, from, &first->prediction);
	cells[COLUMN_SPLIT] = to_text_cell(split);
	cells[COLUMN_FLAGS] = to_text_cell(flags);
	cells[COLUMN_WHY_NOT] = to_text_cell(why);
	cells[COLUMN_ASSUMPTIONS] = to_text_cell(assumptions);
	return 0;
}

/* ---- default changes ------------------------------------------------------------------------- */

/* Return change @at of the default list; false: no more. */
static bool change_at(struct report_whatif_change *out,
		      const struct report_whatif_prediction *measured, int at)
{
	const int64_t batches[] = {measured->microbatches / 2, 2 * measured->microbatches};
	const int stages[] = {measured->stages / 2, 2 * measured->stages};
	static const char *const targets[] = {"ipu1", "ipu2", "ipu21"};

	*out = (struct report_whatif_change){0};
	for (int k = IPU_SCHEDULE_KINDS - 1; k >= 0 && measured->pipelined; k--)
		if (k != (int)measured->schedule && at-- == 0) {
			out->schedule = ipu_schedule_name((enum ipu_schedule_kind)k);
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(batches); i++)
		if (batches[i] > 0 && at-- == 0) {
			out->microbatches = batches[i];
			return true;
		}
	/* The host clock is limited to the measured stages and machine. */
	if (!measured->target)
		return false;
	if (measured->pipelined && at-- == 0) {
		out->split = "auto";
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(stages); i++)
		if (stages[i] > 0 && at-- == 0) {
			out->stages = stages[i];
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (strcmp(targets[i], measured->target) != 0 && at-- == 0) {
			out->target = targets[i];
			return true;
		}
	return false;
}

static void name_change(char *out, size_t size, const struct report_whatif_change *change)
{
	if (change->schedule)
		snprintf(out, size, "schedule %s", change->schedule);
	else if (change->microbatches)
		snprintf(out, size, "%lld micro-batches", (long long)change->microbatches);
	else if (change->split)
		snprintf(out, size, "split %s", change->split);
	else if (change->stages)
		snprintf(out, size, "%d stage%s", change->stages, change->stages == 1 ? "" : "s");
	else
		snprintf(out, size, "target %s", change->target);
}

enum status report_whatif_row_at(struct report_whatif_row *out, const struct report_whatif *whatif,
				 int at, bool *more, struct err *err)
{
	const struct report_whatif_prediction *measured = report_whatif_measured(whatif);
	struct report_whatif_change change;
	struct err why = {0};
	enum status status;

	*out = (struct report_whatif_row){.measured = at == 0, .prediction = *measured};
	*more = at == 0 || change_at(&change, measured, at - 1);
	if (at == 0)
		str_copy(out->change, sizeof(out->change), "as recorded");
	if (at == 0 || !*more)
		return ST_OK;
	name_change(out->change, sizeof(out->change), &change);
	status = report_whatif_predict(&out->prediction, whatif, &change, &why);
	if (status == ST_OK || status == ST_NOMEM)
		return status == ST_OK ? ST_OK : err_nomem(err);
	/* An illegal change becomes a row with the reason. */
	out->prediction = *measured;
	out->prediction.assumptions = 0;
	if (change.schedule)
		ipu_schedule_kind_get(change.schedule, &out->prediction.schedule, NULL);
	if (change.microbatches)
		out->prediction.microbatches = change.microbatches;
	if (change.stages)
		out->prediction.stages = change.stages;
	if (change.target)
		out->prediction.target = change.target;
	str_copy(out->why_not, sizeof(out->why_not), why.text);
	return ST_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Select the columns and their order. */
static enum status select_columns(int **out, int *count, const char *columns, struct arena *arena,
				  struct err *err)
{
	const char *names[COLUMNS];
	const struct report_names all = {names, COLUMNS};

	for (int c = 0; c < COLUMNS; c++)
		names[c] = whatif_columns[c].column.name;
	if (columns && strcmp(columns, "all") != 0)
		return report__choose_columns(out, count, &all, columns, arena, err);
	*count = 0;
	*out = arena_alloc(arena, COLUMNS, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	for (int c = 0; c < COLUMNS; c++)
		if (columns || whatif_columns[c].people)
			(*out)[(*count)++] = c;
	return ST_OK;
}

static enum status fill_table(struct report_table *out, const struct report_whatif_row *rows,
			      int count, const char *columns, struct err *err)
{
	struct report_cell cells[COLUMNS];
	int *chosen;
	enum status status = select_columns(&chosen, &out->column_count, columns, &out->arena, err);

	if (status != ST_OK)
		return status;
	out->columns = arena_alloc(&out->arena, (size_t)out->column_count, sizeof(*out->columns));
	out->cells = arena_alloc(&out->arena, (size_t)count * (size_t)out->column_count,
				 sizeof(*out->cells));
	if (!out->columns || !out->cells)
		return err_nomem(err);
	for (int c = 0; c < out->column_count; c++)
		out->columns[c] = whatif_columns[chosen[c]].column;
	for (int i = 0; i < count; i++) {
		if (fill_row(cells, &out->arena, &rows[i], &rows[0]))
			return err_nomem(err);
		for (int c = 0; c < out->column_count; c++)
			out->cells[i * out->column_count + c] = cells[chosen[c]];
	}
	out->row_count = count;
	return ST_OK;
}

enum status report_whatif_table(struct report_table *out, const struct report_whatif_row *rows,
				int count, const char *columns, struct err *err)
{
	enum status status;

	*out = (struct report_table){.name = "what-if"};
	if (arena_init(&out->arena, 0))
		return err_nomem(err);
	status = fill_table(out, rows, count, columns, err);
	if (status != ST_OK)
		report_table_free(out);
	return status;
}
