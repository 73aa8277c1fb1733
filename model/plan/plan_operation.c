/*
 * One operation asked of the planner: its options, its answer as text or JSON.
 *
 * Threading: none. Ownership: the planner of a request is freed before it returns.
 */
#include "model/plan/plan_operation.h"

#include <inttypes.h>
#include <string.h>

#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/str.h"

void plan_request_defaults(struct plan_request *request)
{
	*request = (struct plan_request){
		.target = "ipu2", .dtype = IPU_FLOAT32, .partials = IPU_FLOAT32, .memory = 0.6};
}

static enum status read_memory(const struct cli_argument *argument, double *out, struct err *err)
{
	if (!str_to_double(argument->value, out) || !(*out > 0 && *out <= 1))
		return err_set(err, ST_INVALID, "%s: \"%s\" is not a fraction above 0, up to 1",
			       argument->name, argument->value);
	return ST_OK;
}

static enum ipu_dtype dtype_of(const char *name)
{
	return strcmp(name, ipu_dtype_name(IPU_FLOAT16)) == 0 ? IPU_FLOAT16 : IPU_FLOAT32;
}

enum status plan_request_read(struct plan_request *request, int row,
			      const struct cli_argument *argument, struct err *err)
{
	switch (row) {
	case PLAN_OPTION_TARGET:
		request->target = argument->value;
		return ST_OK;
	case PLAN_OPTION_TILES:
		return cli_number(argument->name, argument->value, 1, INT32_MAX, &request->tiles,
				  err);
	case PLAN_OPTION_DTYPE:
		request->dtype = dtype_of(argument->value);
		return ST_OK;
	case PLAN_OPTION_PARTIALS:
		request->partials = dtype_of(argument->value);
		return ST_OK;
	case PLAN_OPTION_MEMORY:
		return read_memory(argument, &request->memory, err);
	case PLAN_OPTION_JSON:
		request->json = true;
		return ST_OK;
	}
	return ST_OK;
}

/* ---- figures --------------------------------------------------------------------------------- */

static double microseconds(const struct ipu_target *target, const struct ipu_plan *plan)
{
	return (double)plan->cycles / target->clock_hz * 1e6;
}

static double teraflops(const struct ipu_target *target, const struct ipu_plan *plan)
{
	return plan->cycles > 0
		       ? (double)plan->flops * target->clock_hz / (double)plan->cycles / 1e12
		       : 0;
}

struct split {
	const char *name;
	int64_t parts;
};

#define SPLITS 6

static void splits_of(const struct ipu_plan *plan, struct split out[SPLITS])
{
	const struct split splits[SPLITS] = {
		{"batch", plan->split_batch},   {"field", plan->split_field},
		{"in", plan->split_in},         {"out", plan->split_out},
		{"kernel", plan->split_kernel}, {"serial", plan->serial_splits},
	};

	memcpy(out, splits, sizeof(splits));
}

static const char *phase_kind(const struct ipu_phase *phase)
{
	return phase->kind == IPU_EXCHANGE ? "exchange" : "compute";
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_phases(struct jsonw *w, const struct ipu_plan *plan)
{
	jsonw_key(w, "phases");
	jsonw_begin_array(w);
	for (int p = 0; p < plan->phase_count; p++) {
		const struct ipu_phase *phase = &plan->phases[p];

		jsonw_begin_object(w);
		jsonw_key_text(w, "part", phase->part);
		jsonw_key_text(w, "kind", phase_kind(phase));
		jsonw_key_text(w, "vertex", phase->vertex);
		jsonw_key_int(w, "cycles", phase->cycles);
		jsonw_key_int(w, "tiles", phase->tiles);
		jsonw_key_int(w, "bytes", phase->bytes);
		jsonw_key_int(w, "repeats", phase->repeats);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

static void json_plan(struct jsonw *w, const struct plan_request *request,
		      const struct ipu_target *target, const struct plan_question *question,
		      const struct ipu_plan *plan)
{
	struct split splits[SPLITS];

	jsonw_begin_object(w);
	jsonw_key_text(w, "operation", ipu_op_kind_name(question->op.kind));
	jsonw_key_text(w, "pass", question->pass);
	jsonw_key_text(w, "shape", question->shape);
	jsonw_key_text(w, "target", target->name);
	jsonw_key_text(w, "dtype", ipu_dtype_name(request->dtype));
	jsonw_key_text(w, "partials", ipu_dtype_name(request->partials));
	jsonw_key_text(w, "method", ipu_method_name(plan->method));
	jsonw_key_int(w, "cycles", plan->cycles);
	jsonw_key_real(w, "microseconds", microseconds(target, plan));
	jsonw_key_real(w, "tflops", teraflops(target, plan));
	jsonw_key_int(w, "flops", plan->flops);
	jsonw_key_int(w, "compute_cycles", plan->compute_cycles);
	jsonw_key_int(w, "exchange_cycles", plan->exchange_cycles);
	jsonw_key_int(w, "sync_cycles", plan->sync_cycles);
	jsonw_key_int(w, "tiles", target->tiles);
	jsonw_key_int(w, "tiles_used", plan->tiles_used);
	jsonw_key_real(w, "tile_balance", plan->tile_balance);
	jsonw_key_int(w, "bytes_exchanged", plan->bytes_exchanged);
	jsonw_key_int(w, "temporary_bytes", plan->temporary_bytes);
	jsonw_key_int(w, "code_bytes", plan->code_bytes);
	splits_of(plan, splits);
	jsonw_key(w, "splits");
	jsonw_begin_object(w);
	for (int i = 0; i < SPLITS; i++)
		jsonw_key_int(w, splits[i].name, splits[i].parts);
	jsonw_end_object(w);
	json_phases(w, plan);
	jsonw_end_object(w);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void text_phases(const struct ipu_target *target, const struct ipu_plan *plan, FILE *out)
{
	fprintf(out, "\n  %-26s %-8s %10s %7s %5s %9s\n", "phase", "kind", "cycles", "repeats",
		"tiles", "received");
	for (int p = 0; p < plan->phase_count; p++) {
		const struct ipu_phase *phase = &plan->phases[p];
		char cycles[FMT_SIZE], bytes[FMT_SIZE];

		fprintf(out, "  %-26s %-8s %10s %7" PRId64 " %5" PRId64 " %9s\n", phase->part,
			phase_kind(phase), fmt_count(cycles, phase->cycles), phase->repeats,
			phase->tiles,
			phase->kind == IPU_EXCHANGE ? fmt_bytes(bytes, (uint64_t)phase->bytes)
						    : "");
	}
	fprintf(out, "  Each phase takes %.0f cycles more: sync, entry, launch.\n",
		target->phase_cycles);
}

static void text_plan(const struct plan_request *request, const struct ipu_target *target,
		      const struct plan_question *question, const struct ipu_plan *plan, FILE *out)
{
	char cycles[FMT_SIZE], compute[FMT_SIZE], exchange[FMT_SIZE], sync[FMT_SIZE];
	char temporary[FMT_SIZE];
	struct split splits[SPLITS];
	const char *comma = "";

	fprintf(out, "%s%s%s %s, %s on one %s, simulated (%s)\n",
		ipu_op_kind_name(question->op.kind), question->pass ? " " : "",
		question->pass ? question->pass : "", question->shape,
		ipu_dtype_name(request->dtype), target->description, IPU_COST_MODEL);
	if (question->layout)
		fprintf(out, "  %-12s%s\n", "layout", question->layout);
	fprintf(out, "  %-12s%.2f us, %s cycles: compute %s, exchange %s, sync %s\n", "time",
		microseconds(target, plan), fmt_count(cycles, plan->cycles),
		fmt_count(compute, plan->compute_cycles),
		fmt_count(exchange, plan->exchange_cycles), fmt_count(sync, plan->sync_cycles));
	fprintf(out, "  %-12s%.2f TFLOP/s\n", "arithmetic", teraflops(target, plan));
	fprintf(out, "  %-12s%s%s%s; %" PRId64 " of %" PRId64 " tiles, balance %.0f %%\n", "method",
		ipu_method_name(plan->method),
		request->dtype == IPU_FLOAT16 ? ", partials in " : "",
		request->dtype == IPU_FLOAT16 ? ipu_dtype_name(request->partials) : "",
		plan->tiles_used, target->tiles, plan->tile_balance * 100);
	splits_of(plan, splits);
	fprintf(out, "  %-12s", "splits");
	for (int i = 0; i < SPLITS; i++) {
		fprintf(out, "%s%s %" PRId64, comma, splits[i].name, splits[i].parts);
		comma = ", ";
	}
	fprintf(out, "\n  %-12s%s of a tile while it runs%s\n", "memory",
		fmt_bytes(temporary, (uint64_t)plan->temporary_bytes),
		(double)plan->temporary_bytes > request->memory * (double)target->bytes_per_tile
			? ": more than it may have, and nothing takes less"
			: "");
	text_phases(target, plan, out);
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum status answer_all(const struct plan_request *request, const struct ipu_target *target,
			      struct ipu_planner *planner, const struct plan_question *questions,
			      int count, FILE *out, struct err *err)
{
	const struct ipu_plan_options options = {.available_memory_proportion = request->memory,
						 .partials = request->partials};
	enum status status = ST_OK;
	struct jsonw w;

	if (request->json)
		jsonw_init_file(&w, out, 2);
	if (request->json && count > 1)
		jsonw_begin_array(&w);
	for (int i = 0; i < count && status == ST_OK; i++) {
		const struct ipu_plan *plan;

		status = ipu_planner_plan(planner, &questions[i].op, &options, &plan, err);
		if (status != ST_OK)
			break;
		if (request->json)
			json_plan(&w, request, target, &questions[i], plan);
		else
			text_plan(request, target, &questions[i], plan, out);
		if (!request->json && i + 1 < count)
			fputc('\n', out);
	}
	if (!request->json || status != ST_OK)
		return status;
	if (count > 1)
		jsonw_end_array(&w);
	return jsonw_end(&w, err);
}

enum status plan_answer(const struct plan_request *request, const struct plan_question *questions,
			int count, FILE *out, struct err *err)
{
	struct ipu_planner *planner = NULL;
	struct ipu_target target;
	enum status status = ipu_target_get(request->target, request->tiles, &target, err);

	if (status != ST_OK && err)
		err_prefix(err, "--tiles");
	if (status == ST_OK)
		status = ipu_planner_new(&planner, &target, err);
	if (status == ST_OK)
		status = answer_all(request, &target, planner, questions, count, out, err);
	ipu_planner_free(planner);
	return status;
}
