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

/* The columns of text. */
static const char text_columns[] =
	"kind,schedule,stages,micro_batches,replicas,target,weight_update_ns,step_ns,"
	"samples_second,idle_fraction,bubble_rate,bubble_over_ideal,memory_ipu_bytes";

/* An empty cell if there is no text, or the number is not positive. */
static struct report_cell text_cell(const char *text)
{
	return report_cell_of_text(text && *text ? text : NULL);
}

static struct report_cell number_cell(int64_t value)
{
	return report_cell_of_int(value > 0 ? value : IPS_NULL);
}

/* Join the texts of the assumptions. */
static const char *join_assumptions(struct str *text, uint32_t assumptions)
{
	for (int i = 0; i < REPORT_WHATIF_ASSUMPTIONS; i++)
		if (assumptions & 1u << i)
			str_addf(text, "%s%s", text->length ? " " : "",
				 report_whatif_assumption((enum report_whatif_assumption)i));
	return str_peek(text);
}

static void put_row(struct report_table *table, const struct report_whatif_row *row,
		    const struct report_whatif_prediction *measured, struct err *err)
{
	static const struct report_whatif_prediction none = {
		.idle_fraction = NAN, .bubble_rate = NAN, .bubble_over_ideal = NAN};
	const struct report_whatif_prediction *from = &row->prediction;
	/* An illegal change has no figures. */
	const bool legal = !*row->why_not, instances = legal && from->instances > 0;
	const struct report_whatif_prediction *f = legal ? from : &none;
	const char *kind = row->measured ? "measured" : "predicted";
	const char *schedule = from->pipelined ? ipu_schedule_name(from->schedule) : "none";
	const double speedup = legal ? f->samples_second / measured->samples_second : (double)NAN;
	const double efficiency = instances ? f->samples_second * measured->instances /
						      (measured->samples_second * f->instances)
					    : (double)NAN;
	struct str text = {0};
	const char *assumptions = join_assumptions(&text, from->assumptions);
	const struct report_value values[] = {
		{{"kind", REPORT_TEXT}, text_cell(kind)},
		{{"change", REPORT_TEXT}, text_cell(row->change)},
		{{"schedule", REPORT_TEXT}, text_cell(schedule)},
		{{"stages", REPORT_NUMBER}, number_cell(from->stages)},
		{{"micro_batches", REPORT_NUMBER}, number_cell(from->microbatches)},
		{{"replicas", REPORT_NUMBER}, number_cell(from->replicas)},
		{{"target", REPORT_TEXT}, text_cell(from->target)},
		{{"weight_update_ns", REPORT_NS}, number_cell(f->run_ns)},
		{{"step_ns", REPORT_NS}, number_cell(llround(f->step_ns))},
		{{"optimizer_ns", REPORT_NS}, number_cell(f->update_ns)},
		{{"samples_second", REPORT_COUNT}, number_cell(llround(f->samples_second))},
		{{"speedup", REPORT_REAL}, report_cell_of_real(speedup)},
		{{"makespan_ns", REPORT_NS}, number_cell(f->makespan_ns)},
		{{"busy_ns", REPORT_NS}, number_cell(f->busy_ns)},
		{{"idle_fraction", REPORT_FRACTION}, report_cell_of_real(f->idle_fraction)},
		{{"bubble_rate", REPORT_FRACTION}, report_cell_of_real(f->bubble_rate)},
		{{"bubble_over_ideal", REPORT_FRACTION}, report_cell_of_real(f->bubble_over_ideal)},
		{{"slowest_stage", REPORT_NUMBER},
		 report_cell_of_int(legal ? f->slowest : IPS_NULL)},
		{{"slowest_stage_ns", REPORT_NS}, number_cell(f->slowest_ns)},
		{{"memory_ipu_bytes", REPORT_BYTES}, number_cell(f->memory_ipu_bytes)},
		{{"memory_tile_bytes", REPORT_BYTES}, number_cell(f->memory_tile_bytes)},
		{{"memory_fits", REPORT_BOOL},
		 report_cell_of_int(f->memory_ipu_bytes > 0 ? f->memory_fits : IPS_NULL)},
		{{"split", REPORT_TEXT}, text_cell(from->split)},
		{{"flags", REPORT_TEXT}, text_cell(from->flags)},
		{{"why_not", REPORT_TEXT}, text_cell(row->why_not)},
		{{"assumptions", REPORT_TEXT}, text_cell(assumptions)},
		{{"instances", REPORT_NUMBER}, number_cell(from->instances)},
		{{"exposed_ns", REPORT_NS},
		 report_cell_of_int(instances ? f->exposed_ns : IPS_NULL)},
		{{"link_ns", REPORT_NS}, number_cell(instances ? f->link_ns : 0)},
		{{"efficiency", REPORT_FRACTION}, report_cell_of_real(efficiency)},
	};

	if (text.failed && !err_stuck(err))
		err_nomem(err);
	report_table_put(table, values, ARRAY_LEN(values), err);
	str_free(&text);
}

/* ---- default changes ------------------------------------------------------------------------- */

/* Make @row, which has the measured prediction, that of change @at of the default list: its name,
 * and what is asked for. False: no more. */
static bool change_at(struct report_whatif_change *out, struct report_whatif_row *row, int at)
{
	struct report_whatif_prediction *asked = &row->prediction;
	const int64_t batches[] = {asked->microbatches / 2, 2 * asked->microbatches};
	const int stages[] = {asked->stages / 2, 2 * asked->stages};
	static const char *const targets[] = {"ipu1", "ipu2", "ipu21"};
	const size_t size = sizeof(row->change);

	*out = (struct report_whatif_change){0};
	for (int k = IPU_SCHEDULE_KINDS - 1; k >= 0 && asked->pipelined; k--)
		if (k != (int)asked->schedule && at-- == 0) {
			asked->schedule = (enum ipu_schedule_kind)k;
			out->schedule = ipu_schedule_name(asked->schedule);
			snprintf(row->change, size, "schedule %s", out->schedule);
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(batches); i++)
		if (batches[i] > 0 && at-- == 0) {
			asked->microbatches = out->microbatches = batches[i];
			snprintf(row->change, size, "%lld micro-batches", (long long)batches[i]);
			return true;
		}
	/* The host clock is limited to the measured stages and machine. */
	if (!asked->target)
		return false;
	if (asked->pipelined && at-- == 0) {
		out->split = "auto";
		snprintf(row->change, size, "split %s", out->split);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(stages); i++)
		if (stages[i] > 0 && at-- == 0) {
			asked->stages = out->stages = stages[i];
			snprintf(row->change, size, "%d stage%s", stages[i],
				 stages[i] == 1 ? "" : "s");
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (strcmp(targets[i], asked->target) != 0 && at-- == 0) {
			asked->target = out->target = targets[i];
			snprintf(row->change, size, "target %s", targets[i]);
			return true;
		}
	return false;
}

enum status report_whatif_row_at(struct report_whatif_row *out, const struct report_whatif *whatif,
				 int at, bool *more, struct err *err)
{
	struct report_whatif_prediction asked;
	struct report_whatif_change change;
	struct err why = {0};
	enum status status;

	*out = (struct report_whatif_row){.measured = at == 0,
					  .prediction = *report_whatif_measured(whatif)};
	if (at == 0)
		str_copy(out->change, sizeof(out->change), "as recorded");
	*more = at == 0 || change_at(&change, out, at - 1);
	if (at == 0 || !*more)
		return ST_OK;
	asked = out->prediction;
	asked.assumptions = 0;
	status = report_whatif_predict(&out->prediction, whatif, &change, &why);
	if (status == ST_OK || status == ST_NOMEM)
		return status == ST_OK ? ST_OK : err_nomem(err);
	/* An illegal change becomes a row with the reason. */
	out->prediction = asked;
	str_copy(out->why_not, sizeof(out->why_not), why.text);
	return ST_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Keep the columns that @list names, in its order. */
static void choose_columns(struct report_table *table, const char *list, struct err *err)
{
	const int all = table->column_count;
	const char **names = arena_alloc(&table->arena, (size_t)all, sizeof(*names));
	const struct report_column *columns = table->columns;
	const struct report_cell *cells = table->cells;
	int *chosen, count;

	if (!names) {
		err_nomem(err);
		return;
	}
	for (int c = 0; c < all; c++)
		names[c] = columns[c].name;
	if (report__choose_columns(&chosen, &count, &(struct report_names){names, all}, list,
				   &table->arena, err) != ST_OK)
		return;
	table->columns = arena_alloc(&table->arena, (size_t)count, sizeof(*columns));
	table->cells = arena_alloc(&table->arena, (size_t)table->row_count * (size_t)count,
				   sizeof(*cells));
	if (!table->columns || !table->cells) {
		err_nomem(err);
		return;
	}
	table->column_count = count;
	for (int c = 0; c < count; c++) {
		table->columns[c] = columns[chosen[c]];
		for (int64_t row = 0; row < table->row_count; row++)
			table->cells[row * count + c] = cells[row * all + chosen[c]];
	}
}

enum status report_whatif_table(struct report_table *out, const struct report_whatif_row *rows,
				int count, const char *columns, struct err *err)
{
	struct err own;

	err = err_start(err, &own);
	report_table_begin(out, "what-if", count, err);
	for (int i = 0; i < count; i++)
		put_row(out, &rows[i], &rows[0].prediction, err);
	if (!err_stuck(err))
		choose_columns(out, columns ? columns : text_columns, err);
	if (err_stuck(err))
		report_table_free(out);
	return err->status;
}
