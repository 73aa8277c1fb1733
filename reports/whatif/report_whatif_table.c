/*
 * Predictions as rows. Threading: none. Ownership: the table's arena.
 */
#include "reports/whatif/report_whatif.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_select.h"

#define COLUMNS 30

/* A column, and a row's cell in it. */
struct value {
	struct report_column column;
	bool people; /* shown in text */
	struct report_cell cell;
};

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

/* Copy @text, and set *@failed if out of memory. */
static struct report_cell copy_text(struct arena *arena, const char *text, bool *failed)
{
	const char *copy = text ? arena_strdup(arena, text) : NULL;

	*failed |= !copy;
	return to_text_cell(copy);
}

/* Return false if out of memory. */
static bool read_row(struct value out[COLUMNS], struct arena *arena,
		     const struct report_whatif_row *row, const struct report_whatif_row *first)
{
	static const struct report_whatif_prediction none = {
		.idle_fraction = NAN, .bubble_rate = NAN, .bubble_over_ideal = NAN};
	const struct report_whatif_prediction *from = &row->prediction;
	const struct report_whatif_prediction *measured = &first->prediction;
	/* An illegal change has no figures. */
	const bool legal = !*row->why_not, instances = legal && from->instances > 0;
	const struct report_whatif_prediction *f = legal ? from : &none;
	bool failed = false;
	const struct value values[] = {
		{{"kind", REPORT_TEXT},
		 true,
		 to_text_cell(row->measured ? "measured" : "predicted")},
		{{"change", REPORT_TEXT}, false, copy_text(arena, row->change, &failed)},
		{{"schedule", REPORT_TEXT},
		 true,
		 to_text_cell(from->pipelined ? ipu_schedule_name(from->schedule) : "none")},
		{{"stages", REPORT_NUMBER}, true, to_number_cell(from->stages)},
		{{"micro_batches", REPORT_NUMBER}, true, to_number_cell(from->microbatches)},
		{{"replicas", REPORT_NUMBER}, true, to_number_cell(from->replicas)},
		{{"target", REPORT_TEXT}, true, to_text_cell(from->target)},
		{{"weight_update_ns", REPORT_NS}, true, to_number_cell(f->run_ns)},
		{{"step_ns", REPORT_NS}, true, to_number_cell(llround(f->step_ns))},
		{{"optimizer_ns", REPORT_NS}, false, to_number_cell(f->update_ns)},
		{{"samples_second", REPORT_COUNT},
		 true,
		 to_number_cell(llround(f->samples_second))},
		{{"speedup", REPORT_REAL},
		 false,
		 report_cell_of_real(legal ? f->samples_second / measured->samples_second
					   : (double)NAN)},
		{{"makespan_ns", REPORT_NS}, false, to_number_cell(f->makespan_ns)},
		{{"busy_ns", REPORT_NS}, false, to_number_cell(f->busy_ns)},
		{{"idle_fraction", REPORT_FRACTION}, true, report_cell_of_real(f->idle_fraction)},
		{{"bubble_rate", REPORT_FRACTION}, true, report_cell_of_real(f->bubble_rate)},
		{{"bubble_over_ideal", REPORT_FRACTION},
		 true,
		 report_cell_of_real(f->bubble_over_ideal)},
		{{"slowest_stage", REPORT_NUMBER},
		 false,
		 report_cell_of_int(legal ? f->slowest : IPS_NULL)},
		{{"slowest_stage_ns", REPORT_NS}, false, to_number_cell(f->slowest_ns)},
		{{"memory_ipu_bytes", REPORT_BYTES}, true, to_number_cell(f->memory_ipu_bytes)},
		{{"memory_tile_bytes", REPORT_BYTES}, false, to_number_cell(f->memory_tile_bytes)},
		{{"memory_fits", REPORT_BOOL},
		 false,
		 report_cell_of_int(f->memory_ipu_bytes > 0 ? f->memory_fits : IPS_NULL)},
		{{"split", REPORT_TEXT}, false, copy_text(arena, from->split, &failed)},
		{{"flags", REPORT_TEXT}, false, copy_text(arena, from->flags, &failed)},
		{{"why_not", REPORT_TEXT}, false, copy_text(arena, row->why_not, &failed)},
		{{"assumptions", REPORT_TEXT},
		 false,
		 copy_text(arena, join_assumptions(arena, from->assumptions), &failed)},
		{{"instances", REPORT_NUMBER}, false, to_number_cell(from->instances)},
		{{"exposed_ns", REPORT_NS},
		 false,
		 report_cell_of_int(instances ? f->exposed_ns : IPS_NULL)},
		{{"link_ns", REPORT_NS}, false, to_number_cell(instances ? f->link_ns : 0)},
		{{"efficiency", REPORT_FRACTION},
		 false,
		 report_cell_of_real(instances ? f->samples_second * measured->instances /
							 (measured->samples_second * f->instances)
					       : (double)NAN)},
	};

	_Static_assert(ARRAY_LEN(values) == COLUMNS, "columns out of step");
	memcpy(out, values, sizeof(values));
	return !failed;
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
	if (change.schedule)
		snprintf(out->change, sizeof(out->change), "schedule %s", change.schedule);
	else if (change.microbatches)
		snprintf(out->change, sizeof(out->change), "%lld micro-batches",
			 (long long)change.microbatches);
	else if (change.split)
		snprintf(out->change, sizeof(out->change), "split %s", change.split);
	else if (change.stages)
		snprintf(out->change, sizeof(out->change), "%d stage%s", change.stages,
			 change.stages == 1 ? "" : "s");
	else
		snprintf(out->change, sizeof(out->change), "target %s", change.target);
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
static enum status select_columns(int **out, int *count, const struct value all[COLUMNS],
				  const char *columns, struct arena *arena, struct err *err)
{
	const char *names[COLUMNS];

	for (int c = 0; c < COLUMNS; c++)
		names[c] = all[c].column.name;
	if (columns && strcmp(columns, "all") != 0)
		return report__choose_columns(out, count, &(struct report_names){names, COLUMNS},
					      columns, arena, err);
	*count = 0;
	*out = arena_alloc(arena, COLUMNS, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	for (int c = 0; c < COLUMNS; c++)
		if (columns || all[c].people)
			(*out)[(*count)++] = c;
	return ST_OK;
}

static enum status fill_table(struct report_table *out, const struct report_whatif_row *rows,
			      int count, const char *columns, struct err *err)
{
	struct value values[COLUMNS];
	int *chosen;
	enum status status;

	if (!read_row(values, &out->arena, &rows[0], &rows[0]))
		return err_nomem(err);
	status = select_columns(&chosen, &out->column_count, values, columns, &out->arena, err);
	if (status != ST_OK)
		return status;
	out->columns = arena_alloc(&out->arena, (size_t)out->column_count, sizeof(*out->columns));
	out->cells = arena_alloc(&out->arena, (size_t)count * (size_t)out->column_count,
				 sizeof(*out->cells));
	if (!out->columns || !out->cells)
		return err_nomem(err);
	for (int c = 0; c < out->column_count; c++)
		out->columns[c] = values[chosen[c]].column;
	for (int i = 0; i < count; i++) {
		struct report_cell *cells = report_table_add(out);

		if (!read_row(values, &out->arena, &rows[i], &rows[0]))
			return err_nomem(err);
		for (int c = 0; c < out->column_count; c++)
			cells[c] = values[chosen[c]].cell;
	}
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
