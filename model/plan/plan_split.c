/*
 * ipu-plan's tables of a split: a row per stage, the given split and the best one, as text or JSON.
 */
#include "model/plan/plan_split.h"

#include <inttypes.h>

#include "common/fmt.h"

/* Of all stages' cycles. */
static double share_of(const struct ipu_partition *partition, int stage)
{
	int64_t sum = 0;

	for (int s = 0; s < partition->stages; s++)
		sum += partition->stage[s].cycles;
	return sum > 0 ? (double)partition->stage[stage].cycles / (double)sum : 0;
}

static void print_table(const struct partition_split *split, FILE *out)
{
	const struct ipu_partition *partition = split->partition;

	fprintf(out, "    %5s  %12s  %12s  %12s  %12s  %7s  %9s  %9s  %s\n", "stage", "forward",
		"backward", "transfer", "cycles", "share", "sent", "memory", "from layer");
	for (int s = 0; s < partition->stages; s++) {
		const struct ipu_partition_stage *stage = &partition->stage[s];
		char forward[FMT_SIZE], backward[FMT_SIZE], transfer[FMT_SIZE], cycles[FMT_SIZE];
		char share[FMT_SIZE], sent[FMT_SIZE], memory[FMT_SIZE];

		fprintf(out, "    %5d  %12s  %12s  %12s  %12s  %7s  %9s  %9s  %s\n", s,
			fmt_count(forward, stage->forward), fmt_count(backward, stage->backward),
			fmt_count(transfer, stage->transfer), fmt_count(cycles, stage->cycles),
			fmt_percent(share, share_of(partition, s)),
			fmt_bytes(sent, (uint64_t)stage->sent_bytes),
			fmt_bytes(memory, (uint64_t)stage->memory_bytes), split->first_layer[s]);
	}
}

static enum status print_split(const struct partition_split *split, const char *what, FILE *out,
			       struct err *err)
{
	struct str text = {0};

	partition_split_describe(split, what, &text);
	if (text.failed) {
		str_free(&text);
		return err_nomem(err);
	}
	fprintf(out, "  %s", str_peek(&text));
	str_free(&text);
	print_table(split, out);
	return ST_OK;
}

enum status plan_split_print(const struct plan_run *plan, FILE *out, struct err *err)
{
	enum status status = ST_OK;

	if (plan->split && !plan->run->pipeline.stages_auto)
		status = print_split(plan->split, "pipeline.stages", out, err);
	if (status == ST_OK && plan->best)
		status = print_split(plan->best, "pipeline.stages auto", out, err);
	return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_stage(const struct partition_split *split, int number, struct jsonw *w)
{
	const struct ipu_partition_stage *stage = &split->partition->stage[number];

	jsonw_begin_object(w);
	jsonw_key_text(w, "first_layer", split->first_layer[number]);
	jsonw_key_int(w, "layers", stage->count);
	jsonw_key_int(w, "forward_cycles", stage->forward);
	jsonw_key_int(w, "backward_cycles", stage->backward);
	jsonw_key_int(w, "transfer_cycles", stage->transfer);
	jsonw_key_int(w, "update_cycles", stage->update);
	jsonw_key_int(w, "cycles", stage->cycles);
	jsonw_key_real(w, "share", share_of(split->partition, number));
	jsonw_key_int(w, "sent_bytes", stage->sent_bytes);
	jsonw_key_int(w, "memory_bytes", stage->memory_bytes);
	jsonw_key_int(w, "overflow_bytes", stage->overflow_bytes);
	jsonw_end_object(w);
}

static void json_split(const struct partition_split *split, struct jsonw *w)
{
	if (!split) {
		jsonw_null(w);
		return;
	}
	jsonw_begin_object(w);
	jsonw_key(w, "first_layers");
	jsonw_begin_array(w);
	for (int s = 0; s < split->partition->stages; s++)
		jsonw_text(w, split->first_layer[s]);
	jsonw_end_array(w);
	jsonw_key_int(w, "slowest_stage", split->partition->slowest);
	jsonw_key_int(w, "slowest_stage_cycles", split->partition->cycles);
	jsonw_key_real(w, "slowest_stage_us", split->slowest_us);
	jsonw_key_real(w, "step_us_estimate", split->step_us);
	jsonw_key_int(w, "overflow_bytes", split->partition->most_overflow);
	jsonw_key(w, "stages");
	jsonw_begin_array(w);
	for (int s = 0; s < split->partition->stages; s++)
		json_stage(split, s, w);
	jsonw_end_array(w);
	jsonw_end_object(w);
}

void plan_split_json(const struct plan_run *plan, struct jsonw *w)
{
	jsonw_key(w, "stages_cycles");
	if (plan->split) {
		jsonw_begin_array(w);
		for (int s = 0; s < plan->split->partition->stages; s++)
			jsonw_int(w, plan->split->partition->stage[s].cycles);
		jsonw_end_array(w);
	} else {
		jsonw_null(w);
	}
	jsonw_key(w, "split");
	json_split(plan->split, w);
	jsonw_key(w, "auto_split");
	json_split(plan->best, w);
}
