/*
 * `ipu-plan matmul` and `ipu-plan conv`: the cost of one operation, as text or JSON.
 *
 * Threading: none. Ownership: the planner of a request is freed before it returns.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "model/plan/plan_operation.h"

#define SHAPE_SIZE   256
#define NUMBER_SIZE  32
#define MATMUL_SIZES 3
#define SPLITS       6

/* ---- options --------------------------------------------------------------------------------- */

const struct plan_request plan_machine_defaults = {
	.target = "ipu2", .dtype = IPU_FLOAT32, .partials = IPU_FLOAT32, .memory = 0.6};

static enum status read_machine(struct plan_request *request, int row,
				const struct cli_argument *argument, struct err *err)
{
	request->given_partials = request->given_partials || row == OPTION_PARTIALS;
	if (row != OPTION_MEMORY)
		return cli_set(argument, request, err);
	if (str_to_double(argument->value, &request->memory) && request->memory > 0 &&
	    request->memory <= 1)
		return ST_OK;
	return err_set(err, ST_INVALID, "%s: \"%s\" is not a fraction above 0, up to 1",
		       argument->name, argument->value);
}

enum status plan_machine(struct ipu_planner **out, struct ipu_target *target,
			 const struct plan_request *request, struct err *err)
{
	*out = NULL;
	if (ipu_target_get(request->target, request->tiles, target, err) != ST_OK)
		return err_prefix(err, "--tiles");
	return ipu_planner_new(out, target, err);
}

/* ---- figures --------------------------------------------------------------------------------- */

double plan_microseconds(const struct ipu_target *target, const struct ipu_plan *plan)
{
	return (double)plan->cycles / target->clock_hz * 1e6;
}

double plan_teraflops(const struct ipu_target *target, const struct ipu_plan *plan)
{
	return plan->cycles > 0
		       ? (double)plan->flops * target->clock_hz / (double)plan->cycles / 1e12
		       : 0;
}

double plan_stored_bytes(const struct plan_question *question)
{
	return (question->operands + question->result) *
	       (double)ipu_dtype_bytes(question->op.dtype);
}

static double tile_bytes(const struct ipu_target *target, const struct plan_question *question,
			 const struct ipu_plan *plan)
{
	return plan_stored_bytes(question) / (double)target->tiles + (double)plan->temporary_bytes;
}

enum status plan_check_memory(const struct ipu_target *target, const struct plan_question *question,
			      const struct ipu_plan *plan, struct err *err)
{
	const double need = tile_bytes(target, question, plan);
	char bytes[FMT_SIZE], stored[FMT_SIZE], temporary[FMT_SIZE], limit[FMT_SIZE];

	if (need <= (double)target->bytes_per_tile)
		return ST_OK;
	return err_set(err, ST_FAILED,
		       "%s cannot be on one %s: a tile needs %s of %s, operands and result are %s "
		       "in all and temporaries %s of a tile; cut it, or use more IPUs",
		       question->shape, target->description,
		       fmt_bytes(bytes, (uint64_t)fmin(need, 0x1p60)),
		       fmt_bytes(limit, (uint64_t)target->bytes_per_tile),
		       fmt_bytes(stored, (uint64_t)fmin(plan_stored_bytes(question), 0x1p60)),
		       fmt_bytes(temporary, (uint64_t)plan->temporary_bytes));
}

struct split {
	const char *name;
	int64_t parts;
};

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

void plan_json_phases(struct jsonw *w, const struct ipu_plan *plan)
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

void plan_json_cycles(struct jsonw *w, const struct ipu_target *target, const struct ipu_plan *plan)
{
	jsonw_key_int(w, "cycles", plan->cycles);
	jsonw_key_real(w, "microseconds", plan_microseconds(target, plan));
	jsonw_key_real(w, "tflops", plan_teraflops(target, plan));
	jsonw_key_int(w, "flops", plan->flops);
	jsonw_key_int(w, "compute_cycles", plan->compute_cycles);
	jsonw_key_int(w, "exchange_cycles", plan->exchange_cycles);
	jsonw_key_int(w, "sync_cycles", plan->sync_cycles);
}

void plan_json_bytes(struct jsonw *w, const struct ipu_target *target,
		     const struct plan_question *question, const struct ipu_plan *plan)
{
	const double element = (double)ipu_dtype_bytes(question->op.dtype);

	jsonw_key_int(w, "bytes_exchanged", plan->bytes_exchanged);
	jsonw_key_int(w, "temporary_bytes", plan->temporary_bytes);
	jsonw_key_int(w, "code_bytes", plan->code_bytes);
	jsonw_key_int(w, "operand_bytes", (int64_t)(question->operands * element));
	jsonw_key_int(w, "result_bytes", (int64_t)(question->result * element));
	jsonw_key_int(w, "tile_bytes", (int64_t)ceil(tile_bytes(target, question, plan)));
	jsonw_key_int(w, "memory_bytes",
		      (int64_t)(plan_stored_bytes(question) +
				(double)plan->temporary_bytes * (double)plan->tiles_used));
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
	plan_json_cycles(w, target, plan);
	jsonw_key_int(w, "tiles", target->tiles);
	jsonw_key_int(w, "tiles_used", plan->tiles_used);
	jsonw_key_real(w, "tile_balance", plan->tile_balance);
	plan_json_bytes(w, target, question, plan);
	splits_of(plan, splits);
	jsonw_key(w, "splits");
	jsonw_begin_object(w);
	for (int i = 0; i < SPLITS; i++)
		jsonw_key_int(w, splits[i].name, splits[i].parts);
	jsonw_end_object(w);
	plan_json_phases(w, plan);
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
	char temporary[FMT_SIZE], stored[FMT_SIZE], need[FMT_SIZE];
	struct split splits[SPLITS];
	const char *comma = "";

	fprintf(out, "%s%s%s %s, %s on one %s, simulated (%s)\n",
		ipu_op_kind_name(question->op.kind), question->pass ? " " : "",
		question->pass ? question->pass : "", question->shape,
		ipu_dtype_name(request->dtype), target->description, IPU_COST_MODEL);
	if (question->layout)
		fprintf(out, "  %-12s%s\n", "layout", question->layout);
	fprintf(out, "  %-12s%.2f us, %s cycles: compute %s, exchange %s, sync %s\n", "time",
		plan_microseconds(target, plan), fmt_count(cycles, plan->cycles),
		fmt_count(compute, plan->compute_cycles),
		fmt_count(exchange, plan->exchange_cycles), fmt_count(sync, plan->sync_cycles));
	fprintf(out, "  %-12s%.2f TFLOP/s\n", "arithmetic", plan_teraflops(target, plan));
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
	fprintf(out,
		"\n  %-12s%s of operands and result; of a tile %s while it runs, %s in all%s\n",
		"memory", fmt_bytes(stored, (uint64_t)plan_stored_bytes(question)),
		fmt_bytes(temporary, (uint64_t)plan->temporary_bytes),
		fmt_bytes(need, (uint64_t)tile_bytes(target, question, plan)),
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
	const struct ipu_plan *plans[IPU_PASSES];
	struct jsonw w;

	for (int i = 0; i < count; i++)
		if (ipu_planner_plan(planner, &questions[i].op, &options, &plans[i], err) !=
			    ST_OK ||
		    plan_check_memory(target, &questions[i], plans[i], err) != ST_OK)
			return err->status;
	if (request->json)
		jsonw_init_file(&w, out, 2);
	if (request->json && count > 1)
		jsonw_begin_array(&w);
	for (int i = 0; i < count; i++) {
		if (request->json)
			json_plan(&w, request, target, &questions[i], plans[i]);
		else
			text_plan(request, target, &questions[i], plans[i], out);
		if (!request->json && i + 1 < count)
			fputc('\n', out);
	}
	if (!request->json)
		return ST_OK;
	if (count > 1)
		jsonw_end_array(&w);
	return jsonw_end(&w, err);
}

/* Plan each question and print text or JSON (an object; for several, a list). */
static enum status plan_answer(const struct plan_request *request,
			       const struct plan_question *questions, int count, FILE *out,
			       struct err *err)
{
	struct ipu_planner *planner;
	struct ipu_target target;
	enum status status = plan_machine(&planner, &target, request, err);

	if (status == ST_OK)
		status = answer_all(request, &target, planner, questions, count, out, err);
	ipu_planner_free(planner);
	return status;
}

/* ---- matmul ---------------------------------------------------------------------------------- */

static const struct cli_option product_options[] = {MACHINE_OPTIONS};

struct product_request {
	struct plan_request machine; /* must be first: the table's rows refer to its members */
	int64_t size[MATMUL_SIZES];  /* M, K, N */
	int sizes;
};

static enum status read_product_option(void *request, const struct cli_argument *argument,
				       struct err *err)
{
	return read_machine(request, (int)(argument->option - product_options), argument, err);
}

static enum status run_product(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			       struct err *err)
{
	static const char *const names[MATMUL_SIZES] = {"M", "K", "N"};
	const char *sizes[MATMUL_SIZES];
	struct product_request request = {.machine = plan_machine_defaults};
	const struct cli_words words = {sizes, MATMUL_SIZES, &request.sizes,
					"M K N are three sizes"};
	struct plan_question question = {
		.layout = "rows of A are channels out, columns of B the field; else laid out anew"};
	char shape[SHAPE_SIZE];

	(void)trainer;
	if (cli_parse(&plan_product.command, argc, argv, read_product_option, &request, &words,
		      err) != ST_OK)
		return err->status;
	for (int i = 0; i < request.sizes; i++)
		if (cli_number(names[i], sizes[i], 1, SIZE_MOST, &request.size[i], err) != ST_OK)
			return err->status;
	if (request.sizes < MATMUL_SIZES)
		return err_set(err, ST_INVALID,
			       "sizes are missing: `ipu-plan matmul M K N`, A of M x K times B of "
			       "K x N");
	if (!request.machine.given_partials)
		request.machine.partials = request.machine.dtype;
	snprintf(shape, sizeof(shape), "[%lld, %lld] x [%lld, %lld]", (long long)request.size[0],
		 (long long)request.size[1], (long long)request.size[1],
		 (long long)request.size[2]);
	question.shape = shape;
	question.operands =
		(double)request.size[1] * ((double)request.size[0] + (double)request.size[2]);
	question.result = (double)request.size[0] * (double)request.size[2];
	question.op = (struct ipu_op){
		.kind = IPU_OP_MATMUL,
		.name = "matmul",
		.dtype = request.machine.dtype,
		.matmul = {.m = request.size[0], .k = request.size[1], .n = request.size[2]}};
	return plan_answer(&request.machine, &question, 1, out, err);
}

const struct plan_subcommand plan_product = {
	.name = "matmul",
	.command =
		{.name = "ipu-plan matmul",
		 .synopsis = "M K N [OPTION ...]",
		 .summary = "what a product of two matrices costs",
		 .about = "Plans A, of M x K, times B, of K x N, on one IPU: how it is cut over "
			  "tiles, and what each phase takes. A's M rows are the output's channels, "
			  "B's N columns the field that they work on, K is summed over: so both "
			  "operands lie where the plan wants them, and the result stays where it "
			  "is made. The other way round is tried too, and pays for laying them "
			  "out anew. A Dense layer of 128 units on 784 inputs, batch 64, is "
			  "`matmul 64 784 128`. What cannot be on the chip, operands and result "
			  "with "
			  "what the plan needs beside them, is an error (exit code 1).",
		 .options = product_options,
		 .option_count = ARRAY_LEN(product_options),
		 .examples =
			 "ipu-plan matmul 4096 4096 1024 --target ipu21 --dtype float16\ta large "
			 "product on a Bow\n"
			 "ipu-plan matmul 64 784 128 --json\ta Dense layer, for a program\n"},
	.run = run_product,
};

/* ---- conv ------------------------------------------------------------------------------------ */

static const struct cli_option conv_options[] = {GEOMETRY_OPTIONS};
_Static_assert(ARRAY_LEN(conv_options) == CONV_OPTIONS, "option table out of step");

const char *const plan_pass_names[IPU_PASSES] = {
	[IPU_FORWARD] = "forward",
	[IPU_BACKWARD_DATA] = "backward-data",
	[IPU_BACKWARD_WEIGHTS] = "backward-weights",
};

/* Read "3x5", or "3" for both. */
static enum status read_pair(const struct cli_argument *argument, int64_t out[2], struct err *err)
{
	const char *cross = strchr(argument->value, 'x');
	char first[NUMBER_SIZE];
	enum status status;

	if (!cross || (size_t)(cross - argument->value) >= sizeof(first)) {
		status = cli_number(argument->name, argument->value, 1, SIZE_MOST, &out[0], err);
		out[1] = out[0];
		return status;
	}
	str_copy(first, (size_t)(cross - argument->value) + 1, argument->value);
	if (cli_number(argument->name, first, 1, SIZE_MOST, &out[0], err) != ST_OK)
		return err->status;
	return cli_number(argument->name, cross + 1, 1, SIZE_MOST, &out[1], err);
}

enum status plan_read_geometry(struct conv_request *request, int row,
			       const struct cli_argument *argument, struct err *err)
{
	switch (row) {
	case OPTION_FIELD:
		return read_pair(argument, request->conv.in, err);
	case OPTION_KERNEL:
		return read_pair(argument, request->conv.kernel, err);
	case OPTION_STRIDE:
		return read_pair(argument, request->conv.stride, err);
	case OPTION_DILATION:
		return read_pair(argument, request->conv.dilation, err);
	}
	return row < OPTION_OWN ? read_machine(&request->machine, row, argument, err)
				: cli_set(argument, request, err);
}

static enum status read_conv(void *user, const struct cli_argument *argument, struct err *err)
{
	return plan_read_geometry(user, (int)(argument->option - conv_options), argument, err);
}

enum status plan_set_field(struct conv_request *request, int i, struct err *err)
{
	struct ipu_conv *conv = &request->conv;
	int64_t covered = 1;

	if (!request->valid) {
		conv->out[i] = (conv->in[i] - 1) / conv->stride[i] + 1;
		return ST_OK;
	}
	if (conv->kernel[i] > 1 && conv->dilation[i] > (conv->in[i] - 1) / (conv->kernel[i] - 1))
		return err_set(err, ST_INVALID,
			       "--padding valid: %lld taps do not fit in a field of %lld",
			       (long long)conv->kernel[i], (long long)conv->in[i]);
	covered += (conv->kernel[i] - 1) * conv->dilation[i];
	conv->out[i] = (conv->in[i] - covered) / conv->stride[i] + 1;
	return ST_OK;
}

static enum status check_request(struct conv_request *request, struct err *err)
{
	struct ipu_conv *conv = &request->conv;

	if (conv->in_channels == 0 || conv->out_channels == 0)
		return err_set(err, ST_INVALID, "%s is missing",
			       conv->in_channels == 0 ? "--in-channels" : "--out-channels");
	if (conv->in[0] == 0)
		return err_set(err, ST_INVALID, "--field is missing: rows and columns, 56x56");
	if (conv->in_channels % conv->groups != 0 || conv->out_channels % conv->groups != 0)
		return err_set(err, ST_INVALID,
			       "--groups: %lld groups do not divide %lld channels in and %lld out",
			       (long long)conv->groups, (long long)conv->in_channels,
			       (long long)conv->out_channels);
	conv->in_channels /= conv->groups;
	conv->out_channels /= conv->groups;
	for (int i = 0; i < 2; i++)
		if (plan_set_field(request, i, err) != ST_OK)
			return err->status;
	return ST_OK;
}

static void describe_shape(const struct ipu_conv *conv, char out[SHAPE_SIZE])
{
	snprintf(out, SHAPE_SIZE,
		 "[%lld, %lld, %lld, %lld] to [%lld, %lld, %lld, %lld], %lld x %lld taps",
		 (long long)conv->batch, (long long)conv->in[0], (long long)conv->in[1],
		 (long long)(conv->in_channels * conv->groups), (long long)conv->batch,
		 (long long)conv->out[0], (long long)conv->out[1],
		 (long long)(conv->out_channels * conv->groups), (long long)conv->kernel[0],
		 (long long)conv->kernel[1]);
}

/* Elements of the three tensors; each pass reads two of them and writes the third. */
static void conv_elements(const struct ipu_conv *conv, double *inputs, double *weights,
			  double *outputs)
{
	const double items = (double)conv->batch * (double)conv->groups;

	*inputs = items * (double)conv->in_channels * (double)conv->in[0] * (double)conv->in[1];
	*outputs = items * (double)conv->out_channels * (double)conv->out[0] * (double)conv->out[1];
	*weights = (double)conv->groups * (double)conv->in_channels * (double)conv->out_channels *
		   (double)conv->kernel[0] * (double)conv->kernel[1];
}

static enum status run_conv(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			    struct err *err)
{
	struct conv_request request = {
		.machine = plan_machine_defaults,
		.pass = IPU_FORWARD,
		.conv = {.batch = 1,
			 .groups = 1,
			 .kernel = {1, 1},
			 .stride = {1, 1},
			 .dilation = {1, 1}},
	};
	struct plan_question questions[IPU_PASSES];
	double inputs, weights, outputs;
	char shape[SHAPE_SIZE];
	int count = 0;

	(void)trainer;
	if (cli_parse(&plan_convolution.command, argc, argv, read_conv, &request, &PLAN_NO_WORDS,
		      err) != ST_OK ||
	    check_request(&request, err) != ST_OK)
		return err->status;
	describe_shape(&request.conv, shape);
	conv_elements(&request.conv, &inputs, &weights, &outputs);
	for (int p = 0; p < IPU_PASSES; p++) {
		if (request.pass != IPU_PASSES && request.pass != p)
			continue;
		questions[count] = (struct plan_question){
			.pass = plan_pass_names[p],
			.shape = shape,
			.operands = inputs + weights,
			.result = outputs,
			.op = {.kind = IPU_OP_CONV,
			       .name = "conv",
			       .dtype = request.machine.dtype,
			       .conv = request.conv},
		};
		questions[count++].op.conv.pass = (enum ipu_pass)p;
	}
	return plan_answer(&request.machine, questions, count, out, err);
}

const struct plan_subcommand plan_convolution = {
	.name = "conv",
	.command =
		{.name = "ipu-plan conv",
		 .synopsis = "--in-channels COUNT --out-channels COUNT --field HxW [OPTION ...]",
		 .summary = "what a convolution costs",
		 .about = "Plans a convolution on one IPU: how it is cut over tiles, and what each "
			  "phase takes. The shapes are the forward pass's in all passes.",
		 .options = conv_options,
		 .option_count = ARRAY_LEN(conv_options),
		 .examples = "ipu-plan conv --in-channels 64 --out-channels 64 --field 56 --pass "
			     "all\tthe three passes of a "
			     "layer of ResNet50\n"},
	.run = run_conv,
};
