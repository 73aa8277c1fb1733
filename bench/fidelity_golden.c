/*
 * Cycles and memory that Graphcore kept of poplibs' tools on the IPU Model of Mk2. What its tools
 * run beside the product is counted as they do: a convolution and a fully connected layer update
 * their weights and have no bias (tests/CMakeLists.txt: --bias 0), a product is added to C. The
 * forward convolution is a function: its operands are copied to it, and its result from it
 * (tools/single_conv_layer.cpp). The gradient of its input calls that function again where it is
 * the same convolution. What is read lives all the time: activations, the output's gradient and
 * weights. The tools of convolutions and of products have code compiled (compileIPUCode), without
 * which the IPU Model knows no size of it; that of fully connected layers has not. One thread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "fidelity.h"

#define LINE_SIZE   512
#define COPY_CYCLES 288 /* a call of a tile's copy, measured on a C600 [O] */

enum column {
	COLUMN_NAME,
	COLUMN_WHAT,
	COLUMN_DTYPE,
	COLUMN_BATCH,
	COLUMN_IN,
	COLUMN_OUT,
	COLUMN_FIELD,
	COLUMN_KERNEL,
	COLUMN_STRIDE,
	COLUMN_PADDING,
	COLUMN_GROUPS,
	COLUMN_M,
	COLUMN_K,
	COLUMN_N,
	COLUMN_CYCLES,
	COLUMN_MEMORY,
	COLUMN_TILE,
	COLUMNS
};

/* ---- what the tools run ---------------------------------------------------------------------- */

static struct ipu_op *next(struct workload *workload, enum ipu_op_kind kind, enum ipu_dtype dtype)
{
	struct ipu_op *op = &workload->ops[workload->op_count++];

	*op = (struct ipu_op){.kind = kind, .dtype = dtype};
	return op;
}

static void scaled_add(struct workload *workload, enum ipu_dtype dtype, int64_t count)
{
	next(workload, IPU_OP_ELEMENTWISE, dtype)->elements = (struct ipu_elements){
		.count = count, .operands = 2, .times = {[IPU_FN_SCALED_ADD] = 1}};
}

/* Return whether the gradient of the input is the same convolution, of the output's gradient. */
static bool is_symmetric(const struct ipu_conv *conv)
{
	if (conv->in_channels != conv->out_channels)
		return false;
	for (int i = 0; i < 2; i++)
		if (conv->stride[i] != 1 || conv->in[i] != conv->out[i])
			return false;
	return true;
}

static void conv_layer(struct workload *workload, const struct ipu_conv *conv, enum ipu_dtype dtype)
{
	const int64_t in = conv->groups * conv->in_channels;
	const int64_t channels = conv->groups * conv->out_channels;
	const int64_t outputs = conv->batch * channels * conv->out[0] * conv->out[1];
	const int64_t weights = conv->in_channels * channels * conv->kernel[0] * conv->kernel[1];
	const int64_t inputs = conv->batch * in * conv->in[0] * conv->in[1];
	const int64_t copied[WORKLOAD_COPIES] = {inputs, weights, outputs};

	for (int pass = 0; pass < IPU_PASSES; pass++) {
		struct ipu_op *op = next(workload, IPU_OP_CONV, dtype);

		op->conv = *conv;
		op->conv.pass = (enum ipu_pass)pass;
	}
	scaled_add(workload, dtype, weights);
	workload->live_bytes =
		(double)((2 * (inputs + outputs) + weights) * ipu_dtype_bytes(dtype));
	for (int i = 0; i < WORKLOAD_COPIES; i++)
		workload->copied_bytes[i] = (double)(copied[i] * ipu_dtype_bytes(dtype));
	workload->copied_ops = is_symmetric(conv) ? 2 : 1;
	workload->compiled = true;
}

/* As many layers of as many rows each: groups of a convolution of one position. */
static void grouped_layer(struct workload *workload, int64_t groups, int64_t batch, int64_t in,
			  int64_t out, enum ipu_dtype dtype)
{
	for (int pass = 0; pass < IPU_PASSES; pass++)
		next(workload, IPU_OP_CONV, dtype)->conv =
			(struct ipu_conv){.pass = (enum ipu_pass)pass,
					  .batch = batch,
					  .groups = groups,
					  .in_channels = in,
					  .out_channels = out,
					  .in = {1, 1},
					  .out = {1, 1},
					  .kernel = {1, 1},
					  .stride = {1, 1},
					  .dilation = {1, 1}};
	scaled_add(workload, dtype, groups * in * out);
	workload->live_bytes =
		(double)(groups * (2 * batch * (in + out) + in * out) * ipu_dtype_bytes(dtype));
}

static void dense_layer(struct workload *workload, int64_t batch, int64_t in, int64_t out,
			enum ipu_dtype dtype)
{
	const struct ipu_matmul products[] = {
		{batch, in, out},
		{batch, out, in},
		{in, batch, out},
	};

	for (int pass = 0; pass < IPU_PASSES; pass++) {
		struct ipu_op *op = next(workload, IPU_OP_MATMUL, dtype);

		op->pass = (enum ipu_pass)pass;
		op->trained = true;
		op->matmul = products[pass];
	}
	scaled_add(workload, dtype, in * out);
	workload->live_bytes =
		(double)((2 * batch * (in + out) + in * out) * ipu_dtype_bytes(dtype));
}

/* A's rows are channels and B's columns positions, as `ipu-plan matmul` has them. */
static void product(struct workload *workload, int64_t m, int64_t k, int64_t n,
		    enum ipu_dtype dtype)
{
	next(workload, IPU_OP_MATMUL, dtype)->matmul = (struct ipu_matmul){m, k, n};
	scaled_add(workload, dtype, m * n);
	workload->ops[workload->op_count - 1].elements.operands = 1; /* C lies as A B */
	workload->live_bytes = (double)((m * k + k * n + m * n) * ipu_dtype_bytes(dtype));
	workload->compiled = true;
}

/* ---- figures --------------------------------------------------------------------------------- */

static double copy_cycles(const struct ipu_target *target, double bytes)
{
	const double rate = (double)(target->tiles * target->load_bytes_cycle);

	return bytes > 0 ? target->phase_cycles + COPY_CYCLES + ceil(bytes / rate) : 0;
}

static double cycles_of(const struct workload *workload, const struct ipu_target *target)
{
	double cycles = 0;
	bool joint = false;

	for (int i = 0; i < WORKLOAD_COPIES; i++)
		cycles += workload->copied_ops * copy_cycles(target, workload->copied_bytes[i]);
	for (int i = 0; i < workload->op_count; i++) {
		struct ipu_op op = workload->ops[i];
		const struct ipu_plan *plan;

		/* In a joint plan a weight's gradient lies as the weight, which it is added to. */
		if (joint && op.kind == IPU_OP_ELEMENTWISE)
			op.elements.operands = 1;
		plan = fidelity_plan(target, &op, workload->partials);
		joint = plan->joint;
		cycles += (double)plan->cycles;
	}
	return cycles;
}

#define TILES_MOST 1472

/* Tiles that have the code of vertices, by their names. */
struct code {
	const char *vertex[WORKLOAD_OPS * IPU_PHASES];
	int64_t tiles[WORKLOAD_OPS * IPU_PHASES];
	int count;
};

/* Return how many tiles more have the code of a vertex that is on the first @tiles. */
static int64_t more_tiles(struct code *code, const char *vertex, int64_t tiles)
{
	int64_t had;
	int i = 0;

	while (i < code->count && strcmp(code->vertex[i], vertex) != 0)
		i++;
	if (i == code->count) {
		code->vertex[code->count] = vertex;
		code->tiles[code->count++] = 0;
	}
	had = code->tiles[i];
	if (tiles <= had)
		return 0;
	code->tiles[i] = tiles;
	return tiles - had;
}

/* Bytes of vertices and exchanges of @plan, of which @code has some already. */
static double program_bytes(const struct ipu_plan *plan, bool compiled, struct code *code)
{
	double bytes = 0;

	for (int i = 0; i < plan->phase_count; i++) {
		const struct ipu_phase *phase = &plan->phases[i];
		int64_t tiles = phase->tiles;

		bytes += (double)(ipu_phase_state_bytes(plan, phase) * tiles);
		if (!compiled)
			continue;
		if (phase->kind == IPU_COMPUTE)
			tiles = more_tiles(code, phase->vertex, tiles);
		bytes += (double)(ipu_phase_code_bytes(plan, phase) * tiles);
	}
	return bytes + (double)(plan->list_bytes * plan->tiles_used);
}

/* What lives through all of it, and on each tile the largest temporaries, as tools/bench.py of
 * poplibs adds them up: variables, lists of work, vertices and, where it is compiled, code; every
 * operation begins on the first tile, as poplibs has it without enableConvDithering. A function's
 * copies of its operands live while its vertices run. */
static double memory_of(const struct workload *workload, const struct ipu_target *target)
{
	const double copied =
		(workload->copied_bytes[0] + workload->copied_bytes[1]) / (double)target->tiles;
	double most[TILES_MOST] = {0}, bytes = workload->live_bytes;
	struct code code = {.count = 0};

	for (int i = 0; i < workload->op_count; i++) {
		const struct ipu_plan *plan =
			fidelity_plan(target, &workload->ops[i], workload->partials);
		const double operands = i < workload->copied_ops ? copied : 0;

		bytes += program_bytes(plan, workload->compiled, &code);
		for (int64_t t = 0; t < target->tiles; t++)
			most[t] = fmax(most[t], operands + (t < plan->tiles_used
								    ? (double)plan->temporary_bytes
								    : 0));
	}
	for (int t = 0; t < TILES_MOST; t++)
		bytes += most[t];
	return bytes / 1e6;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Cuts @line at its commas, but for those within quotes; how many fields. */
static int split(char *line, char *fields[COLUMNS])
{
	bool quoted = false;
	int count = 1;

	fields[0] = line;
	line[strcspn(line, "\r\n")] = '\0';
	for (char *at = line; *at; at++) {
		quoted = quoted != (*at == '"');
		if (*at != ',' || quoted)
			continue;
		*at = '\0';
		if (count == COLUMNS)
			return COLUMNS + 1;
		fields[count++] = at + 1;
	}
	return count;
}

static void die(const char *path, int number, const char *what)
{
	fprintf(stderr, "fidelity: %s:%d: %s\n", path, number, what);
	exit(1);
}

/* @count whole numbers of 0 to 2^31 with x between: all that there is in @text. */
static bool read_numbers(const char *text, int64_t *out, int count)
{
	char *end = NULL;

	for (int i = 0; i < count; i++, text = end + 1) {
		long long value = strtoll(text, &end, 10);

		if (end == text || value < 0 || value > INT32_MAX ||
		    *end != (i + 1 < count ? 'x' : '\0'))
			return false;
		out[i] = value;
	}
	return true;
}

static bool read_conv(char *fields[COLUMNS], struct ipu_conv *conv)
{
	int64_t padding[2];

	*conv = (struct ipu_conv){.dilation = {1, 1}};
	if (!read_numbers(fields[COLUMN_BATCH], &conv->batch, 1) ||
	    !read_numbers(fields[COLUMN_IN], &conv->in_channels, 1) ||
	    !read_numbers(fields[COLUMN_OUT], &conv->out_channels, 1) ||
	    !read_numbers(fields[COLUMN_FIELD], conv->in, 2) ||
	    !read_numbers(fields[COLUMN_KERNEL], conv->kernel, 2) ||
	    !read_numbers(fields[COLUMN_STRIDE], conv->stride, 2) ||
	    !read_numbers(fields[COLUMN_PADDING], padding, 2) ||
	    !read_numbers(fields[COLUMN_GROUPS], &conv->groups, 1) || conv->groups < 1)
		return false;
	conv->in_channels /= conv->groups;
	conv->out_channels /= conv->groups;
	for (int i = 0; i < 2; i++) {
		if (conv->stride[i] < 1)
			return false;
		conv->out[i] =
			(conv->in[i] + 2 * padding[i] - conv->kernel[i]) / conv->stride[i] + 1;
	}
	return true;
}

static bool read_workload(char *fields[COLUMNS], struct workload *workload)
{
	const enum ipu_dtype dtype =
		strcmp(fields[COLUMN_DTYPE], "float16") == 0 ? IPU_FLOAT16 : IPU_FLOAT32;
	int64_t m, k, n, batch, in, out, groups = 1;
	struct ipu_conv conv;

	if (strncmp(fields[COLUMN_WHAT], "conv ", 5) == 0 && read_conv(fields, &conv)) {
		workload->table = conv.groups > 1 ? "depthwise convolutions" : "convolutions";
		conv_layer(workload, &conv, dtype);
		return true;
	}
	if (strncmp(fields[COLUMN_WHAT], "fully connected ", 16) == 0 &&
	    read_numbers(fields[COLUMN_BATCH], &batch, 1) &&
	    read_numbers(fields[COLUMN_IN], &in, 1) && read_numbers(fields[COLUMN_OUT], &out, 1)) {
		workload->table =
			dtype == IPU_FLOAT16 ? "fully connected, large" : "fully connected, small";
		if (*fields[COLUMN_GROUPS] &&
		    (!read_numbers(fields[COLUMN_GROUPS], &groups, 1) || groups < 1))
			return false;
		if (groups > 1)
			grouped_layer(workload, groups, batch, in, out, dtype);
		else
			dense_layer(workload, batch, in, out, dtype);
		return true;
	}
	if (strncmp(fields[COLUMN_WHAT], "\"product ", 9) == 0 &&
	    read_numbers(fields[COLUMN_M], &m, 1) && read_numbers(fields[COLUMN_K], &k, 1) &&
	    read_numbers(fields[COLUMN_N], &n, 1)) {
		workload->table = "products added to C";
		product(workload, m, k, n, dtype);
		return true;
	}
	return false;
}

/* The row's cycles, or its memory in MB. */
static bool add_row(char *fields[COLUMNS], bool memory)
{
	struct workload workload = {.unit = memory ? "MB" : "cycles",
				    .target = "ipu2",
				    .source = "[P]",
				    .partials = IPU_FLOAT32,
				    .simulate = memory ? memory_of : cycles_of};
	int64_t figure;

	if (!read_workload(fields, &workload) ||
	    !read_numbers(fields[memory ? COLUMN_MEMORY : COLUMN_CYCLES], &figure, 1) || figure < 1)
		return false;
	workload.published = memory ? (double)figure / 1e6 : (double)figure;
	if (memory)
		workload.table = "memory of all of these, as plans have it";
	snprintf(workload.name, sizeof(workload.name), "%s", fields[COLUMN_NAME]);
	fidelity_add(&workload);
	return true;
}

static int add_rows(const char *path, FILE *file, bool memory)
{
	char line[LINE_SIZE], *fields[COLUMNS];
	int number = 0;

	rewind(file);
	while (fgets(line, (int)sizeof(line), file)) {
		if (!strchr(line, '\n'))
			die(path, number + 1, "a line is too long or does not end");
		if (split(line, fields) != COLUMNS)
			die(path, number + 1, "17 columns are expected");
		if (number++ > 0 && !add_row(fields, memory))
			die(path, number, "the shape or the figure cannot be read");
	}
	return number > 0 ? number - 1 : 0;
}

int fidelity_golden(const char *path)
{
	FILE *file = fopen(path, "r");
	int count;

	if (!file)
		return 0;
	count = add_rows(path, file, false);
	add_rows(path, file, true);
	fclose(file);
	return count;
}
