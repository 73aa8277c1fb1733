/*
 * The summary of a run as rows for CSV and JSON: the same numbers as the text, in full precision.
 *
 * Threading: none. Ownership: the table owns the rows and their texts.
 */
#include "reports/summary/report_summary.h"

#include <math.h>

#include "common/mem.h"

#define ROWS 128 /* of most runs */

struct rows {
	struct report_table *table;
	struct err *err;
};

static void rows_add(struct rows *rows, const char *section, const char *name, const char *clock,
		     int64_t stage, struct report_cell value)
{
	const struct report_value values[] = {
		{{"section", REPORT_TEXT}, report_cell_of_text(section)},
		{{"name", REPORT_TEXT}, report_cell_of_text(name)},
		{{"clock", REPORT_TEXT}, report_cell_of_text(clock)},
		{{"stage", REPORT_NUMBER}, report_cell_of_int(stage)},
		{{"value", REPORT_REAL}, value},
	};

	report_table_put(rows->table, values, ARRAY_LEN(values), rows->err);
}

static void rows_text(struct rows *rows, const char *section, const char *name, const char *text)
{
	rows_add(rows, section, name, NULL, IPS_NULL, report_cell_of_text(text));
}

static void rows_integer(struct rows *rows, const char *section, const char *name, int64_t value)
{
	rows_add(rows, section, name, NULL, IPS_NULL, report_cell_of_int(value));
}

static void rows_real(struct rows *rows, const char *section, const char *name, double value)
{
	rows_add(rows, section, name, NULL, IPS_NULL, report_cell_of_real(value));
}

static void rows_run(struct rows *rows, const struct report_summary *s)
{
	rows_text(rows, "run", "path", s->path);
	rows_text(rows, "run", "command", s->command);
	rows_text(rows, "run", "state", s->state);
	rows_text(rows, "run", "failure", s->failure);
	if (s->note)
		rows_text(rows, "run", "note", s->note);
	rows_integer(rows, "run", "whole", s->whole);
	rows_text(rows, "run", "absent", s->absent);
	rows_integer(rows, "run", "last_commit_ns", s->last_commit_ns);
	if (s->reached.known) {
		rows_integer(rows, "reached", "epoch", s->reached.epoch);
		rows_integer(rows, "reached", "execution", s->reached.execution);
		rows_integer(rows, "reached", "weight_update", s->reached.weight_update);
		rows_integer(rows, "reached", "step", s->reached.step);
	}
	rows_integer(rows, "run", "start_epoch_ns", s->start_epoch_ns);
	rows_integer(rows, "run", "duration_ns", s->duration_ns);
	rows_text(rows, "run", "model", s->model);
	rows_text(rows, "run", "dataset", s->dataset);
	rows_text(rows, "run", "schedule", s->schedule);
	rows_text(rows, "run", "target", s->target);
	rows_text(rows, "run", "cost_model", s->cost_model);
	rows_integer(rows, "run", "batch_size", s->batch_size);
	rows_integer(rows, "run", "gradient_accumulation", s->gradient_accumulation);
	if (s->part != IPS_NULL) {
		rows_integer(rows, "run", "part", s->part);
		rows_text(rows, "run", "continues", s->continues);
		rows_integer(rows, "run", "continues_after_step", s->after_step);
	}
	if (s->parts)
		rows_text(rows, "run", "parts", s->parts);
	if (s->ranks != IPS_NULL)
		rows_integer(rows, "run", "ranks", s->ranks);
	rows_integer(rows, "run", "stages", s->stages);
	rows_integer(rows, "run", "ipus", s->ipus);
	rows_integer(rows, "run", "replicas", s->replicas);
	rows_integer(rows, "run", "host_threads", s->host_threads);
	rows_integer(rows, "run", "oversubscribed", s->oversubscribed);
	rows_integer(rows, "run", "epochs", s->epochs);
	rows_integer(rows, "run", "executions", s->executions);
	rows_integer(rows, "run", "steps", s->steps);
	rows_integer(rows, "run", "weight_updates", s->weight_updates);
	rows_real(rows, "train", "loss", s->loss);
	rows_real(rows, "train", "accuracy", s->accuracy);
	rows_real(rows, "evaluate", "loss", s->evaluate_loss);
	rows_real(rows, "evaluate", "accuracy", s->evaluate_accuracy);
}

static const char *const clock_names[] = {"host", "device"};

static void rows_bubble(struct rows *rows, const struct report_bubble_mean *bubble,
			const char *clock)
{
	const struct {
		const char *name;
		double value;
	} values[] = {
		{"idle_fraction", bubble->idle_fraction},
		{"bubble_rate", bubble->bubble_rate},
		{"bubble_over_ideal", bubble->bubble_over_ideal},
		{"theory_idle_fraction", bubble->theory_idle_fraction},
		{"theory_bubble_rate", bubble->theory_bubble_rate},
		{"theory_bubble_over_ideal", bubble->theory_bubble_over_ideal},
		{"ramp_up_fraction", bubble->ramp_up},
		{"ramp_down_fraction", bubble->ramp_down},
		{"imbalance_fraction", bubble->imbalance},
		{"communication_fraction", bubble->communication},
	};

	rows_add(rows, "bubble", "runs", clock, IPS_NULL, report_cell_of_int(bubble->runs));
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		rows_add(rows, "bubble", values[i].name, clock, IPS_NULL,
			 report_cell_of_real(bubble->known ? values[i].value : NAN));
}

/* Each broken rule is a row: its name and the number of hits. */
static void rows_health(struct rows *rows, const struct report_summary *s)
{
	static const char section[] = "first_nonfinite";

	rows_integer(rows, "health", "rules_enabled", s->rules);
	rows_integer(rows, "health", "rules_broken", s->broken_count);
	rows_integer(rows, "health", "tensors_lowered", s->lowered);
	rows_integer(rows, "health", "lowered_ns", s->lowered_ns);
	rows_text(rows, "health", "lowered_why", s->lowered_why);
	for (int i = 0; i < s->broken_count; i++)
		rows_integer(rows, "health_hits", s->broken[i].rule, s->broken[i].hits);
	if (!s->bad.known)
		return;
	rows_text(rows, section, "key", s->bad.key);
	rows_text(rows, section, "layer", s->bad.layer);
	rows_text(rows, section, "phase", s->bad.phase);
	rows_integer(rows, section, "epoch", s->bad.epoch);
	rows_integer(rows, section, "weight_update", s->bad.weight_update);
	rows_integer(rows, section, "step", s->bad.step);
	rows_integer(rows, section, "microbatch", s->bad.microbatch);
	rows_integer(rows, section, "replica", s->bad.replica);
	rows_integer(rows, section, "stage", s->bad.stage);
	rows_integer(rows, section, "time_ns", s->bad.time_ns);
	rows_integer(rows, section, "element", s->bad.element);
	rows_text(rows, section, "value", s->bad.value);
}

static void rows_all(struct rows *rows, const struct report_summary *s)
{
	const struct {
		const char *name;
		double value;
	} values[] = {
		{"flops_per_s", s->arithmetic.flops_s},
		{"peak_flops_per_s", s->arithmetic.peak_flops_s},
		{"peak_share", s->arithmetic.flops_s / s->arithmetic.peak_flops_s},
	};

	rows_run(rows, s);
	for (int64_t i = 0; i < s->stages; i++) {
		const struct report_stage *stage = &s->stage[i];

		rows_add(rows, "stage", "ipu", NULL, stage->stage, report_cell_of_int(stage->ipu));
		rows_add(rows, "stage", "layers", NULL, stage->stage,
			 report_cell_of_text(stage->layers));
		rows_add(rows, "stage", "microbatches", NULL, stage->stage,
			 report_cell_of_int(stage->count));
		for (int clock = 0; clock < 2; clock++) {
			rows_add(rows, "stage", "forward_ns", clock_names[clock], stage->stage,
				 report_cell_of_int(stage->forward_ns[clock]));
			rows_add(rows, "stage", "backward_ns", clock_names[clock], stage->stage,
				 report_cell_of_int(stage->backward_ns[clock]));
			rows_add(rows, "stage", "update_ns", clock_names[clock], stage->stage,
				 report_cell_of_int(stage->update_ns[clock]));
		}
	}
	for (int clock = 0; clock < 2; clock++)
		rows_bubble(rows, &s->bubble[clock], clock_names[clock]);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		rows_add(rows, "arithmetic", values[i].name, "device", IPS_NULL,
			 report_cell_of_real(values[i].value));
	rows_health(rows, s);
	rows_integer(rows, "recording", "spans", s->spans);
	rows_integer(rows, "recording", "events", s->events);
	rows_integer(rows, "recording", "dropped", s->dropped);
	rows_integer(rows, "recording", "database_bytes", s->database_bytes);
	if (s->peak_resident_bytes != IPS_NULL)
		rows_integer(rows, "recording", "peak_resident_bytes", s->peak_resident_bytes);
	rows_integer(rows, "recording", "tensors", s->tensors);
	rows_integer(rows, "recording", "tensor_rows", s->tensor_rows);
	rows_integer(rows, "recording", "health_hits", s->health_hits);
	rows_integer(rows, "recording", "record_ns", s->record_ns);
	rows_integer(rows, "recording", "write_ns", s->write_ns);
	rows_real(rows, "recording", "overhead_fraction", s->overhead_fraction);
	for (int i = 0; i < s->option_count; i++)
		rows_text(rows, "meta", s->options[i].name, s->options[i].value);
}

enum status report_summary_table(struct report_table *out, const struct report_summary *summary,
				 struct err *err)
{
	struct err own;
	struct rows rows = {out, err_start(err, &own)};

	report_table_begin(out, "summary", ROWS, rows.err);
	rows_all(&rows, summary);
	if (err_stuck(rows.err))
		report_table_free(out);
	return rows.err->status;
}
