/*
 * `ipu-plan op`: the cost of a layer's operations, as text, JSON or CSV. A table has a row for each
 * kind: its required and its optional keys.
 *
 * Threading: none. Ownership: the planner of a request is freed before it returns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "ipu/plan/ipu_op.h"
#include "model/plan/plan_operation.h"

enum {
	OPTION_STEPS = CONV_OPTIONS,
	OPTION_FEATURES,
	OPTION_UNITS,
	OPTION_LENGTH,
	OPTION_KEYS,
	OPTION_HEADS,
	OPTION_HEAD,
	OPTION_ENTRIES,
	OPTION_LOOKUPS,
	OPTION_INPUTS,
	OPTION_OUTPUTS,
	OPTION_CHANNELS,
	OPTION_AVERAGE,
	OPTION_CSV,
	KIND_OPTIONS
};

struct kind_request {
	struct conv_request geometry; /* must be first: its table's rows refer to its members */
	struct ipu_composite of;
	bool average, csv;
	uint64_t given; /* bits of rows */
};

#define KIND_ROW(id, word, member, text)                                                           \
	[id] = {.name = word,                                                                      \
		.argument = "COUNT",                                                               \
		.help = text,                                                                      \
		.field = CLI_RANGE(NUMBER, struct kind_request, of.member, 1, SIZE_MOST)}

static const struct cli_option kind_options[] = {
	GEOMETRY_OPTIONS,
	KIND_ROW(OPTION_STEPS, "--steps", steps, "Time steps of a sequence."),
	KIND_ROW(OPTION_FEATURES, "--features", features, "Width of a step or row of the input."),
	KIND_ROW(OPTION_UNITS, "--units", units, "Width of the state, or of a row of the table."),
	KIND_ROW(OPTION_LENGTH, "--length", length,
		 "Rows of an item: of a Conv1D's input, of attention's queries."),
	KIND_ROW(OPTION_KEYS, "--keys", keys,
		 "Rows of attention's keys and values (default: those of --length)."),
	KIND_ROW(OPTION_HEADS, "--heads", heads, "Heads of attention."),
	KIND_ROW(OPTION_HEAD, "--head-size", head, "Width of a head (default: features / heads)."),
	KIND_ROW(OPTION_ENTRIES, "--entries", entries, "Rows of an embedding's table."),
	KIND_ROW(OPTION_LOOKUPS, "--lookups", lookups, "Lookups of an item (default 1)."),
	KIND_ROW(OPTION_INPUTS, "--inputs", inputs, "Elements that are summed."),
	KIND_ROW(OPTION_OUTPUTS, "--outputs", outputs, "Sums that they become (default 1)."),
	KIND_ROW(OPTION_CHANNELS, "--channels", channels,
		 "Channels, which input and output have alike."),
	[OPTION_AVERAGE] = {.name = "--average",
			    .help = "Pool by the average, not by the maximum.",
			    .field = CLI_FIELD(SWITCH, struct kind_request, average)},
	[OPTION_CSV] = {.name = "--csv",
			.help = "Print CSV: a line for each operation.",
			.field = CLI_FIELD(SWITCH, struct kind_request, csv)},
};
_Static_assert(ARRAY_LEN(kind_options) == KIND_OPTIONS && KIND_OPTIONS <= 64,
	       "option table out of step");

#define BIT(option) (UINT64_C(1) << (option))
#define BITS_CELL   (BIT(OPTION_STEPS) | BIT(OPTION_FEATURES) | BIT(OPTION_UNITS))
#define BITS_WINDOW (BIT(OPTION_KERNEL) | BIT(OPTION_STRIDE) | BIT(OPTION_PADDING))
#define BITS_SIDES  (BIT(OPTION_IN) | BIT(OPTION_OUT))
/* Keys of every kind: the machine's and the output's. */
#define BITS_ALL (BIT(OPTION_OWN) - 1) | BIT(OPTION_CSV)

/* Required and optional keys of each kind, in order of name. */
static const struct kind {
	const char *name;
	uint64_t needs, may;
} kinds[] = {
	[IPU_COMPOSITE_ATTENTION] = {"attention",
				     BIT(OPTION_LENGTH) | BIT(OPTION_FEATURES) | BIT(OPTION_HEADS),
				     BIT(OPTION_BATCH) | BIT(OPTION_KEYS) | BIT(OPTION_HEAD) |
					     BIT(OPTION_PASS)},
	[IPU_COMPOSITE_CONV1D] = {"conv1d", BITS_SIDES | BIT(OPTION_LENGTH),
				  BIT(OPTION_BATCH) | BITS_WINDOW | BIT(OPTION_DILATION) |
					  BIT(OPTION_GROUPS) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_CONV2DTRANSPOSE] = {"conv2dtranspose", BITS_SIDES | BIT(OPTION_FIELD),
					   BIT(OPTION_BATCH) | BITS_WINDOW | BIT(OPTION_DILATION) |
						   BIT(OPTION_GROUPS) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_EMBEDDING] = {"embedding", BIT(OPTION_ENTRIES) | BIT(OPTION_UNITS),
				     BIT(OPTION_BATCH) | BIT(OPTION_LOOKUPS) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_GROUPNORM] = {"groupnorm",
				     BIT(OPTION_CHANNELS) | BIT(OPTION_FIELD) | BIT(OPTION_GROUPS),
				     BIT(OPTION_BATCH) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_GRU] = {"gru", BITS_CELL, BIT(OPTION_BATCH) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_LSTM] = {"lstm", BITS_CELL, BIT(OPTION_BATCH) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_POOL] = {"pool",
				BIT(OPTION_CHANNELS) | BIT(OPTION_FIELD) | BIT(OPTION_KERNEL),
				BIT(OPTION_BATCH) | BIT(OPTION_STRIDE) | BIT(OPTION_PADDING) |
					BIT(OPTION_AVERAGE) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_REDUCE] = {"reduce", BIT(OPTION_INPUTS), BIT(OPTION_OUTPUTS)},
	[IPU_COMPOSITE_RNN] = {"rnn", BITS_CELL, BIT(OPTION_BATCH) | BIT(OPTION_PASS)},
	[IPU_COMPOSITE_SOFTMAX] = {"softmax", BIT(OPTION_CHANNELS),
				   BIT(OPTION_BATCH) | BIT(OPTION_PASS)},
};
_Static_assert(ARRAY_LEN(kinds) == IPU_COMPOSITES, "kinds out of step");
#define KIND_NAMES                                                                                 \
	"attention conv1d conv2dtranspose embedding groupnorm gru lstm pool reduce rnn softmax"

/* List the rows in @bits ("--steps, --features, --units"), without those of the machine. */
static const char *list_keys(struct str *text, uint64_t bits)
{
	for (int row = OPTION_OWN; row < KIND_OPTIONS; row++)
		if (bits & BIT(row))
			str_addf(text, "%s%s", text->length > 0 ? ", " : "",
				 kind_options[row].name);
	return str_peek(text);
}

static enum status check_keys(const struct kind_request *request, struct err *err)
{
	const struct kind *kind = &kinds[request->of.kind];
	const uint64_t wrong = request->given & ~(BITS_ALL | kind->needs | kind->may);
	const uint64_t missing = kind->needs & ~request->given;
	struct str keys = {0}, text = {0};
	enum status status = ST_OK;

	if (wrong != 0)
		status = err_set(err, ST_INVALID, "%s: %s has no such key (it has %s)",
				 list_keys(&text, wrong), kind->name,
				 list_keys(&keys, kind->needs | kind->may));
	else if (missing != 0)
		status = err_set(err, ST_INVALID, "%s needs %s", kind->name,
				 list_keys(&text, missing));
	else if (request->csv && request->geometry.machine.json)
		status = err_set(err, ST_INVALID, "--csv and --json: one of them");
	str_free(&keys);
	str_free(&text);
	return status;
}

static enum status read_kind_option(void *user, const struct cli_argument *argument,
				    struct err *err)
{
	struct kind_request *request = user;
	const int row = (int)(argument->option - kind_options);

	request->given |= BIT(row);
	return row < CONV_OPTIONS ? plan_read_geometry(&request->geometry, row, argument, err)
				  : cli_set(argument, request, err);
}

static enum status read_kind(struct kind_request *request, int argc, char **argv, struct err *err)
{
	const char *names[IPU_COMPOSITES], *nearest, *word = NULL;
	int count = 0;
	const struct cli_words words = {&word, 1, &count, "keys give all but the kind"};

	if (cli_parse(&plan_kind.command, argc, argv, read_kind_option, request, &words, err) !=
	    ST_OK)
		return err->status;
	for (int k = 0; k < IPU_COMPOSITES; k++) {
		names[k] = kinds[k].name;
		request->of.kind = (enum ipu_composite_kind)k;
		if (word && strcmp(word, kinds[k].name) == 0)
			return ST_OK;
	}
	if (!word)
		return err_set(err, ST_INVALID, "a kind is missing: one of %s", KIND_NAMES);
	nearest = str_nearest(word, names, IPU_COMPOSITES);
	if (nearest)
		return err_set(err, ST_INVALID, "unknown kind \"%s\" (did you mean \"%s\"?)", word,
			       nearest);
	return err_set(err, ST_INVALID,
		       "unknown kind \"%s\" (one of: %s; products and convolutions have verbs of "
		       "their own, `ipu-plan matmul` and `ipu-plan conv`)",
		       word, KIND_NAMES);
}

/* Set the geometry of a Conv1D: a field of one column. */
static enum status set_conv1d(struct kind_request *request, struct err *err)
{
	struct ipu_conv *conv = &request->geometry.conv;
	int64_t *const pairs[] = {conv->kernel, conv->stride, conv->dilation};
	static const int rows[] = {OPTION_KERNEL, OPTION_STRIDE, OPTION_DILATION};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		if (pairs[i][1] != pairs[i][0] && pairs[i][1] != 1)
			return err_set(err, ST_INVALID, "%s: conv1d has one number",
				       kind_options[rows[i]].name);
		pairs[i][1] = 1;
	}
	conv->in[0] = request->of.length;
	conv->in[1] = 1;
	return ST_OK;
}

/* Set the output's rows and columns; for a transposed convolution, those of the larger image. */
static enum status set_fields(struct kind_request *request, struct err *err)
{
	struct ipu_conv *conv = &request->geometry.conv;
	const bool window = kinds[request->of.kind].may & BIT(OPTION_PADDING);

	if (request->of.kind == IPU_COMPOSITE_CONV1D && set_conv1d(request, err) != ST_OK)
		return err->status;
	for (int i = 0; i < 2; i++) {
		if (request->of.kind == IPU_COMPOSITE_POOL &&
		    !(request->given & BIT(OPTION_STRIDE)))
			conv->stride[i] = conv->kernel[i];
		if (request->of.kind == IPU_COMPOSITE_CONV2DTRANSPOSE) {
			if (conv->in[i] > SIZE_MOST / conv->stride[i] ||
			    conv->kernel[i] > SIZE_MOST / conv->dilation[i])
				return err_set(err, ST_INVALID, "--field: too large");
			conv->out[i] = conv->in[i] * conv->stride[i];
			if (request->geometry.valid)
				conv->out[i] += max((conv->kernel[i] - 1) * conv->dilation[i] + 1 -
							    conv->stride[i],
						    (int64_t)0);
		} else if (!window) {
			conv->out[i] = conv->in[i];
		} else if (plan_set_field(&request->geometry, i, err) != ST_OK) {
			return err->status;
		}
	}
	return ST_OK;
}

static enum status complete_request(struct kind_request *request, struct err *err)
{
	const struct ipu_conv *conv = &request->geometry.conv;
	struct ipu_composite *of = &request->of;

	if (set_fields(request, err) != ST_OK)
		return err->status;
	of->dtype = request->geometry.machine.dtype;
	of->batch = conv->batch;
	of->groups = conv->groups;
	of->in_channels = conv->in_channels;
	of->out_channels = conv->out_channels;
	of->max = !request->average;
	for (int i = 0; i < 2; i++) {
		of->field[i] = conv->in[i];
		of->out[i] = conv->out[i];
		of->kernel[i] = conv->kernel[i];
		of->stride[i] = conv->stride[i];
		of->dilation[i] = conv->dilation[i];
	}
	if (of->keys == 0)
		of->keys = of->length;
	if (of->kind == IPU_COMPOSITE_ATTENTION && of->head == 0) {
		if (of->features % of->heads != 0)
			return err_set(err, ST_INVALID,
				       "--heads: %lld heads do not divide %lld features: give "
				       "--head-size",
				       (long long)of->heads, (long long)of->features);
		of->head = of->features / of->heads;
	}
	if ((kinds[of->kind].needs & BIT(OPTION_IN)) &&
	    (of->in_channels % of->groups != 0 || of->out_channels % of->groups != 0))
		return err_set(err, ST_INVALID,
			       "--groups: %lld groups do not divide %lld channels in and %lld out",
			       (long long)of->groups, (long long)of->in_channels,
			       (long long)of->out_channels);
	if (of->kind == IPU_COMPOSITE_GROUPNORM && of->channels % of->groups != 0)
		return err_set(err, ST_INVALID, "--groups: %lld groups do not divide %lld channels",
			       (long long)of->groups, (long long)of->channels);
	return ST_OK;
}

/* Append what was given, as it was written: "steps 25, units 256". */
static void describe_kind(int argc, char **argv, struct str *text)
{
	struct cli_argument argument;
	struct cli_walk walk;
	bool more = true;

	cli_begin(&walk, &plan_kind.command, argc, argv, false);
	while (cli_next(&walk, &argument, &more, NULL) == ST_OK && more) {
		const int row = argument.option ? (int)(argument.option - kind_options) : 0;

		if (row >= OPTION_OWN && row != OPTION_PASS && row != OPTION_CSV)
			str_addf(text, "%s%s%s%s", text->length > 0 ? ", " : "",
				 argument.option->name + 2, argument.value ? " " : "",
				 argument.value ? argument.value : "");
	}
}

/* A pass of a layer: its operations and their plans. */
struct kind_pass {
	const char *name;
	struct ipu_op ops[IPU_COMPOSITE_OPS];
	const struct ipu_plan *plans[IPU_COMPOSITE_OPS];
	int count;
	struct ipu_plan sum; /* of the plans */
};

static enum status plan_pass(struct kind_pass *pass, const struct kind_request *request,
			     struct ipu_planner *planner, struct err *err)
{
	const struct ipu_plan_options options = {.available_memory_proportion =
							 request->geometry.machine.memory,
						 .partials = request->geometry.machine.partials};

	for (int i = 0; i < pass->count; i++) {
		const struct ipu_plan *plan;

		if (ipu_planner_plan(planner, &pass->ops[i], &options, &plan, err) != ST_OK)
			return err->status;
		pass->plans[i] = plan;
		pass->sum.cycles += plan->cycles;
		pass->sum.compute_cycles += plan->compute_cycles;
		pass->sum.exchange_cycles += plan->exchange_cycles;
		pass->sum.sync_cycles += plan->sync_cycles;
		pass->sum.flops += plan->flops;
		pass->sum.bytes_exchanged += plan->bytes_exchanged;
		pass->sum.code_bytes += plan->code_bytes;
		if ((double)plan->temporary_bytes * (double)plan->tiles_used >
		    (double)pass->sum.temporary_bytes * (double)pass->sum.tiles_used)
			pass->sum.tiles_used = plan->tiles_used;
		if (plan->temporary_bytes > pass->sum.temporary_bytes)
			pass->sum.temporary_bytes = plan->temporary_bytes;
	}
	return ST_OK;
}

static void json_pass(struct jsonw *w, const struct plan_request *request,
		      const struct ipu_target *target, const struct plan_question *question,
		      const struct kind_pass *pass)
{
	const struct ipu_plan *sum = &pass->sum;

	jsonw_begin_object(w);
	jsonw_key_text(w, "operation", question->layout);
	jsonw_key_text(w, "pass", pass->name);
	jsonw_key_text(w, "shape", question->shape);
	jsonw_key_text(w, "target", target->name);
	jsonw_key_text(w, "dtype", ipu_dtype_name(request->dtype));
	jsonw_key_text(w, "partials", ipu_dtype_name(request->partials));
	plan_json_cycles(w, target, sum);
	plan_json_bytes(w, target, question, sum);
	jsonw_key(w, "operations");
	jsonw_begin_array(w);
	for (int i = 0; i < pass->count; i++) {
		const struct ipu_plan *plan = pass->plans[i];

		jsonw_begin_object(w);
		jsonw_key_text(w, "name", pass->ops[i].name);
		jsonw_key_text(w, "operation", ipu_op_kind_name(pass->ops[i].kind));
		jsonw_key_text(w, "method", ipu_method_name(plan->method));
		jsonw_key_int(w, "repeats", pass->ops[i].repeats);
		jsonw_key_int(w, "cycles", plan->cycles);
		jsonw_key_int(w, "flops", plan->flops);
		jsonw_key_int(w, "tiles_used", plan->tiles_used);
		jsonw_key_int(w, "bytes_exchanged", plan->bytes_exchanged);
		jsonw_key_int(w, "temporary_bytes", plan->temporary_bytes);
		plan_json_phases(w, plan);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
	jsonw_end_object(w);
}

static void csv_pass(const struct kind_pass *pass, FILE *out)
{
	for (int i = 0; i < pass->count; i++) {
		const struct ipu_plan *plan = pass->plans[i];

		fprintf(out,
			"%s,%s,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
			",%" PRId64 "\n",
			pass->name, pass->ops[i].name, ipu_op_kind_name(pass->ops[i].kind),
			ipu_method_name(plan->method), pass->ops[i].repeats, plan->cycles,
			plan->flops, plan->tiles_used, plan->bytes_exchanged,
			plan->temporary_bytes);
	}
}

static void text_pass(const struct plan_request *request, const struct ipu_target *target,
		      const struct plan_question *question, const struct kind_pass *pass, FILE *out)
{
	char cycles[FMT_SIZE], stored[FMT_SIZE], temporary[FMT_SIZE];
	const struct ipu_plan *sum = &pass->sum;

	fprintf(out, "%s %s (%s), %s on one %s, simulated (%s)\n", question->layout, pass->name,
		question->shape, ipu_dtype_name(request->dtype), target->description,
		IPU_COST_MODEL);
	fprintf(out, "  %-12s%.2f us, %s cycles, %.2f TFLOP/s\n", "time",
		plan_microseconds(target, sum), fmt_count(cycles, sum->cycles),
		plan_teraflops(target, sum));
	fprintf(out, "  %-12s%s of operands and result; of a tile %s while it runs\n\n", "memory",
		fmt_bytes(stored, (uint64_t)plan_stored_bytes(question)),
		fmt_bytes(temporary, (uint64_t)sum->temporary_bytes));
	fprintf(out, "  %-24s %-11s %7s %10s %6s %5s\n", "operation", "kind", "repeats", "cycles",
		"share", "tiles");
	for (int i = 0; i < pass->count; i++)
		fprintf(out, "  %-24s %-11s %7" PRId64 " %10s %4.0f %% %5" PRId64 "\n",
			pass->ops[i].name, ipu_op_kind_name(pass->ops[i].kind),
			pass->ops[i].repeats, fmt_count(cycles, pass->plans[i]->cycles),
			sum->cycles > 0
				? 100.0 * (double)pass->plans[i]->cycles / (double)sum->cycles
				: 0,
			pass->plans[i]->tiles_used);
}

static enum status answer_kind(const struct kind_request *request, const struct ipu_target *target,
			       struct ipu_planner *planner, const struct plan_question *question,
			       FILE *out, struct err *err)
{
	const struct plan_request *machine = &request->geometry.machine;
	struct kind_pass passes[IPU_PASSES] = {0};
	struct jsonw w;
	int count = 0;

	for (int p = 0; p < IPU_PASSES; p++) {
		struct ipu_composite of = request->of;
		struct kind_pass *pass = &passes[count];

		of.pass = (enum ipu_pass)p;
		of.trained = request->geometry.pass != IPU_FORWARD;
		if (request->geometry.pass != IPU_PASSES && request->geometry.pass != p)
			continue;
		pass->name = plan_pass_names[p];
		pass->count = ipu_composite_ops(&of, pass->ops);
		count += pass->count > 0;
		if (plan_pass(pass, request, planner, err) != ST_OK ||
		    plan_check_memory(target, question, &pass->sum, err) != ST_OK)
			return err->status;
	}
	if (count == 0)
		return err_set(err, ST_INVALID, "--pass: %s has no %s pass", question->layout,
			       plan_pass_names[request->geometry.pass]);
	if (request->csv)
		fprintf(out, "pass,name,operation,method,repeats,cycles,flops,tiles_used,"
			     "bytes_exchanged,temporary_bytes\n");
	if (machine->json)
		jsonw_init_file(&w, out, 2);
	if (machine->json && count > 1)
		jsonw_begin_array(&w);
	for (int p = 0; p < count; p++) {
		if (request->csv)
			csv_pass(&passes[p], out);
		else if (machine->json)
			json_pass(&w, machine, target, question, &passes[p]);
		else
			text_pass(machine, target, question, &passes[p], out);
		if (!request->csv && !machine->json && p + 1 < count)
			fputc('\n', out);
	}
	if (!machine->json)
		return ST_OK;
	if (count > 1)
		jsonw_end_array(&w);
	return jsonw_end(&w, err);
}

static enum status run_kind(int argc, char **argv, const struct plan_trainer *trainer, FILE *out,
			    struct err *err)
{
	struct kind_request request = {
		.geometry = {.machine = plan_machine_defaults,
			     .conv = {.batch = 1,
				      .groups = 1,
				      .in = {1, 1},
				      .kernel = {1, 1},
				      .stride = {1, 1},
				      .dilation = {1, 1}}},
		.of = {.lookups = 1, .outputs = 1},
	};
	struct plan_question question = {0};
	struct ipu_planner *planner = NULL;
	struct ipu_target target;
	struct str shape = {0};
	enum status status;

	(void)trainer;
	if (read_kind(&request, argc, argv, err) != ST_OK || check_keys(&request, err) != ST_OK ||
	    complete_request(&request, err) != ST_OK)
		return err->status;
	describe_kind(argc, argv, &shape);
	question.shape = str_peek(&shape);
	question.layout = kinds[request.of.kind].name;
	question.op.dtype = request.of.dtype;
	ipu_composite_elements(&request.of, &question.operands, &question.result);
	status = shape.failed ? err_nomem(err)
			      : plan_machine(&planner, &target, &request.geometry.machine, err);
	if (status == ST_OK)
		status = answer_kind(&request, &target, planner, &question, out, err);
	ipu_planner_free(planner);
	str_free(&shape);
	return status;
}

const struct plan_subcommand plan_kind = {
	.name = "op",
	.command =
		{.name = "ipu-plan op",
		 .synopsis = "KIND --key value ...",
		 .summary = "what a layer's operations cost",
		 .about =
			 "Plans the operations that poplibs and popnn run for a layer, on one IPU, "
			 "and "
			 "adds them up. KIND and its keys:\n\n"
			 "lstm, gru, rnn: --steps --features --units. One or two products and a "
			 "map in each step.\n\n"
			 "attention: --length --features --heads, [--keys] [--head-size]. Keras's "
			 "MultiHeadAttention, projections and all.\n\n"
			 "embedding: --entries --units, [--lookups]. A table that rows are looked "
			 "up "
			 "in; backward-weights adds to them.\n\n"
			 "reduce: --inputs, [--outputs]. softmax: --channels. pool: --channels "
			 "--field "
			 "--kernel, [--stride] [--padding] [--average]. groupnorm: --channels "
			 "--groups "
			 "--field.\n\n"
			 "conv1d: --in-channels --out-channels --length; conv2dtranspose: "
			 "--in-channels "
			 "--out-channels --field; both [--kernel] [--stride] [--dilation] "
			 "[--groups] "
			 "[--padding].\n\n"
			 "All but reduce have --batch (rows of a softmax) and --pass; all have the "
			 "machine's options. What cannot be on the chip is an error (exit code 1).",
		 .options = kind_options,
		 .option_count = ARRAY_LEN(kind_options),
		 .examples =
			 "ipu-plan op lstm --steps 50 --features 128 --units 256 --batch 8\ta "
			 "layer's forward pass\n"
			 "ipu-plan op attention --length 128 --features 768 --heads 12 --pass all "
			 "--csv\tBERT's, with its gradients, for a table\n",
		 .words = KIND_NAMES},
	.run = run_kind,
};
