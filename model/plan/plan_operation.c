/*
 * `ipu-plan matmul` and `ipu-plan conv`: what one operation costs, as text or JSON.
 *
 * Threading: none. Ownership: the planner of a request is freed before it returns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "ipu/plan/ipu_plan.h"
#include "model/plan/plan_command.h"

#define SIZE_MOST    (INT64_C(1) << 40)
#define SHAPE_SIZE   256
#define NUMBER_SIZE  32
#define MATMUL_SIZES 3
#define SPLITS       6

/* The machine that is asked, and how it answers: options of both. */
struct plan_request {
	const char *target;
	int64_t tiles;
	enum ipu_dtype dtype, partials;
	bool given_partials;
	double memory;
	bool json;
};

/* An operation that was asked for, and how its shapes are said. */
struct plan_question {
	struct ipu_op op;
	const char *pass;   /* "forward"; NULL: it has none */
	const char *shape;  /* "[64, 784] x [784, 128]" */
	const char *layout; /* which dimension is what, or NULL */
};

/* ---- options --------------------------------------------------------------------------------- */

/* Rows that both tables of options begin with; a request of either begins with the machine's. */
enum {
	OPTION_TARGET,
	OPTION_TILES,
	OPTION_DTYPE,
	OPTION_PARTIALS,
	OPTION_MEMORY,
	OPTION_JSON,
	OPTION_OWN
};

#define MACHINE_OPTIONS                                                                            \
	[OPTION_TARGET] = {.name = "--target",                                                     \
			   .argument = "NAME",                                                     \
			   .choices = PLAN_TARGETS,                                                \
			   .help = PLAN_TARGET_HELP " (default ipu2).",                            \
			   .field = CLI_FIELD(TEXT, struct plan_request, target)},                 \
	[OPTION_TILES] = {.name = "--tiles",                                                       \
			  .argument = "COUNT",                                                     \
			  .help = "Tiles of the IPU (default: all of them).",                      \
			  .field = CLI_RANGE(NUMBER, struct plan_request, tiles, 1, INT32_MAX)},   \
	[OPTION_DTYPE] = {.name = "--dtype",                                                       \
			  .argument = "TYPE",                                                      \
			  .choices = "float32 float16",                                            \
			  .help = "Type of operands and result: float32 (default) or float16.",    \
			  .field = CLI_FIELD(CHOICE, struct plan_request, dtype)},                 \
	[OPTION_PARTIALS] = {.name = "--partials",                                                 \
			     .argument = "TYPE",                                                   \
			     .choices = "float32 float16",                                         \
			     .help = "Type that float16 products are summed in. Default: of "      \
				     "matmul that of --dtype, as the published float16 products "  \
				     "have it; of conv float32, as TensorFlow has it.",            \
			     .field = CLI_FIELD(CHOICE, struct plan_request, partials)},           \
	[OPTION_MEMORY] = {.name = "--available-memory-proportion",                                \
			   .argument = "FRACTION",                                                 \
			   .help = "Of a tile's memory, for the operation's own use (default "     \
				   "0.6)."},                                                       \
	[OPTION_JSON] = {.name = "--json",                                                         \
			 .help = "Print JSON.",                                                    \
			 .field = CLI_FIELD(SWITCH, struct plan_request, json)}

static const struct plan_request machine_defaults = {
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

/* Plan each and print: text, or JSON (one object; several: a list). */
static enum status plan_answer(const struct plan_request *request,
			       const struct plan_question *questions, int count, FILE *out,
			       struct err *err)
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

/* ---- matmul ---------------------------------------------------------------------------------- */

static const struct cli_option product_options[] = {MACHINE_OPTIONS};

struct product_request {
	struct plan_request machine; /* first: its fields are those of the table */
	int64_t size[MATMUL_SIZES];  /* M, K, N */
	int sizes;
};

static enum status read_product(struct product_request *request, int argc, char **argv,
				struct err *err)
{
	static const char *const names[MATMUL_SIZES] = {"M", "K", "N"};
	struct cli_argument argument;
	struct cli_walk walk;
	bool more;

	cli_begin(&walk, &plan_product.command, argc, argv, false);
	for (;;) {
		enum status status = cli_next(&walk, &argument, &more, err);

		if (status != ST_OK || !more)
			return status;
		if (argument.option) {
			status = read_machine(&request->machine,
					      (int)(argument.option - product_options), &argument,
					      err);
		} else if (request->sizes < MATMUL_SIZES) {
			status = cli_number(names[request->sizes], argument.value, 1, SIZE_MOST,
					    &request->size[request->sizes], err);
			request->sizes++;
		} else {
			status = err_set(err, ST_INVALID,
					 "a word too many: \"%s\" (M K N are three sizes)",
					 argument.value);
		}
		if (status != ST_OK)
			return status;
	}
}

static enum status run_product(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			       struct err *err)
{
	struct product_request request = {.machine = machine_defaults};
	struct plan_question question = {
		.layout = "rows of A are channels out, columns of B the field"};
	char shape[SHAPE_SIZE];
	enum status status;

	(void)trainer;
	status = read_product(&request, argc, argv, err);
	if (status != ST_OK)
		return status;
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
	question.op = (struct ipu_op){
		.kind = IPU_OP_MATMUL,
		.name = "matmul",
		.dtype = request.machine.dtype,
		.matmul = {.m = request.size[2], .k = request.size[1], .n = request.size[0]}};
	return plan_answer(&request.machine, &question, 1, out, err);
}

const struct plan_subcommand plan_product = {
	.name = "matmul",
	.command =
		{.name = "ipu-plan matmul",
		 .synopsis = "M K N [OPTION ...]",
		 .summary = "what a product of two matrices costs",
		 .about = "Plans A, of M x K, times B, of K x N, on one IPU: how it is cut over "
			  "tiles, and what each phase takes. The operands' layout is fixed: A's M "
			  "rows are the output's channels, B's N columns the field (the batch) "
			  "that A's weights work on, K is summed over. Both operands lie where "
			  "the plan wants them, and the result stays where it is made. So "
			  "`matmul 1024 1024 4` and `matmul 4 1024 1024` differ: a Dense layer of "
			  "128 units on 784 inputs, batch 64, is `matmul 128 784 64`.",
		 .options = product_options,
		 .option_count = ARRAY_LEN(product_options),
		 .examples =
			 "ipu-plan matmul 4096 4096 1024 --target ipu21 --dtype float16\ta large "
			 "product on a Bow\n"
			 "ipu-plan matmul 128 784 64 --json\ta Dense layer, for a program\n"},
	.run = run_product,
};

/* ---- conv ------------------------------------------------------------------------------------ */

enum {
	OPTION_BATCH = OPTION_OWN,
	OPTION_IN,
	OPTION_OUT,
	OPTION_FIELD,
	OPTION_KERNEL,
	OPTION_STRIDE,
	OPTION_DILATION,
	OPTION_GROUPS,
	OPTION_PADDING,
	OPTION_PASS,
	CONV_OPTIONS
};

struct conv_request {
	struct plan_request machine; /* first: its fields are those of the table */
	struct ipu_conv conv;        /* channels of all groups until checked */
	int valid;                   /* --padding: not "same" */
	int pass;                    /* enum ipu_pass; IPU_PASSES: all */
};

#define CONV_COUNT(member)                                                                         \
	.field = CLI_RANGE(NUMBER, struct conv_request, conv.member, 1, SIZE_MOST)

static const struct cli_option conv_options[] = {
	MACHINE_OPTIONS,
	[OPTION_BATCH] = {.name = "--batch",
			  .argument = "COUNT",
			  .help = "Items (default 1).",
			  CONV_COUNT(batch)},
	[OPTION_IN] = {.name = "--in-channels",
		       .argument = "COUNT",
		       .help = "Channels of the input, of all groups.",
		       CONV_COUNT(in_channels)},
	[OPTION_OUT] = {.name = "--out-channels",
			.argument = "COUNT",
			.help = "Channels of the output, of all groups.",
			CONV_COUNT(out_channels)},
	[OPTION_FIELD] = {.name = "--field",
			  .argument = "HxW",
			  .help = "Rows and columns of the input: 56x56, or 56 for both."},
	[OPTION_KERNEL] = {.name = "--kernel",
			   .argument = "HxW",
			   .help = "Taps: 3x3, or 3 for both (default 1)."},
	[OPTION_STRIDE] = {.name = "--stride", .argument = "HxW", .help = "Default 1."},
	[OPTION_DILATION] = {.name = "--dilation", .argument = "HxW", .help = "Default 1."},
	[OPTION_GROUPS] = {.name = "--groups",
			   .argument = "COUNT",
			   .help = "Groups of channels (default 1); as many as channels: "
				   "depthwise.",
			   CONV_COUNT(groups)},
	[OPTION_PADDING] = {.name = "--padding",
			    .argument = "KIND",
			    .choices = "same valid",
			    .help = "As Keras says it: same (default) or valid.",
			    .field = CLI_FIELD(CHOICE, struct conv_request, valid)},
	[OPTION_PASS] = {.name = "--pass",
			 .argument = "PASS",
			 .choices = "forward backward-data backward-weights all",
			 .help = "forward (default): the output; backward-data: the input's "
				 "gradient; backward-weights: the weights' gradient; all: a plan "
				 "for each.",
			 .field = CLI_FIELD(CHOICE, struct conv_request, pass)},
};
_Static_assert(ARRAY_LEN(conv_options) == CONV_OPTIONS, "option table out of step");

static const char *const pass_names[] = {
	[IPU_FORWARD] = "forward",
	[IPU_BACKWARD_DATA] = "backward-data",
	[IPU_BACKWARD_WEIGHTS] = "backward-weights",
};
_Static_assert(ARRAY_LEN(pass_names) == IPU_PASSES, "passes out of step");

/* "3x5", or "3" for both. */
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
	status = cli_number(argument->name, first, 1, SIZE_MOST, &out[0], err);
	if (status == ST_OK)
		status = cli_number(argument->name, cross + 1, 1, SIZE_MOST, &out[1], err);
	return status;
}

static enum status read_conv(void *asked, const struct cli_argument *argument, struct err *err)
{
	struct conv_request *request = asked;
	const int row = (int)(argument->option - conv_options);

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

/* Rows or columns of the output, by Keras's rules. */
static enum status set_field(struct conv_request *request, int i, struct err *err)
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
	enum status status = ST_OK;

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
	for (int i = 0; i < 2 && status == ST_OK; i++)
		status = set_field(request, i, err);
	return status;
}

static void say_shape(const struct ipu_conv *conv, char out[SHAPE_SIZE])
{
	snprintf(out, SHAPE_SIZE,
		 "[%lld, %lld, %lld, %lld] to [%lld, %lld, %lld, %lld], %lld x %lld taps",
		 (long long)conv->batch, (long long)conv->in[0], (long long)conv->in[1],
		 (long long)(conv->in_channels * conv->groups), (long long)conv->batch,
		 (long long)conv->out[0], (long long)conv->out[1],
		 (long long)(conv->out_channels * conv->groups), (long long)conv->kernel[0],
		 (long long)conv->kernel[1]);
}

static enum status run_conv(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			    struct err *err)
{
	struct conv_request request = {
		.machine = machine_defaults,
		.pass = IPU_FORWARD,
		.conv = {.batch = 1,
			 .groups = 1,
			 .kernel = {1, 1},
			 .stride = {1, 1},
			 .dilation = {1, 1}},
	};
	struct plan_question questions[IPU_PASSES];
	char shape[SHAPE_SIZE];
	enum status status;
	int count = 0;

	(void)trainer;
	status = plan_read_options(&plan_convolution.command, argc, argv, read_conv, &request, err);
	if (status == ST_OK)
		status = check_request(&request, err);
	if (status != ST_OK)
		return status;
	say_shape(&request.conv, shape);
	for (int p = 0; p < IPU_PASSES; p++) {
		if (request.pass != IPU_PASSES && request.pass != p)
			continue;
		questions[count] = (struct plan_question){
			.pass = pass_names[p],
			.shape = shape,
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
