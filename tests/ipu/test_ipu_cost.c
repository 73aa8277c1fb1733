/*
 * The cost model's formulas beside tests/golden/cost_model.txt, which script/make-cost-golden.py
 * works out from docs/cost-model.md alone.
 */
#include "support/ipu_functions.h"
#include "support/pipeline_sample.h"
#include "support/program_sample.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/compile/ipu_memory.h"
#include "ipu/compile/ipu_program_internal.h"
#include "ipu/ipu_partition.h"
#include "ipu/ipu_timeline.h"
#include "ipu/plan/ipu_plan.h"
#include "ipu/plan/plan_conv_internal.h"
#include "ipu/plan/plan_vector.h"

/* Each word of a line, in turn; a line that has too few fails. */
struct words {
	char *rest;
};

static char *word(struct words *words)
{
	char *text = strtok_r(NULL, " \n", &words->rest);

	assert_non_null(text);
	return text;
}

static int64_t whole(struct words *words)
{
	return strtoll(word(words), NULL, 10);
}

static double number(struct words *words)
{
	return strtod(word(words), NULL);
}

static struct ipu_target target_of(struct words *words)
{
	struct ipu_target target;
	const char *name = word(words);

	assert_int_equal(ipu_target_get(name, whole(words), &target, NULL), ST_OK);
	return target;
}

static enum ipu_dtype dtype_of(struct words *words)
{
	return strcmp(word(words), "float16") == 0 ? IPU_FLOAT16 : IPU_FLOAT32;
}

/* The plan's phases are those that the line has; so are the figures at its end, if it has any. */
static void check_phases(const struct ipu_plan *plan, struct words *words)
{
	for (int i = 0; i < plan->phase_count; i++) {
		const struct ipu_phase *phase = &plan->phases[i];

		assert_string_equal(word(words), "|");
		assert_string_equal(phase->part, word(words));
		assert_int_equal(phase->cycles, whole(words));
		assert_close(phase->mean_cycles, number(words), 1e-6);
		assert_int_equal(phase->tiles, whole(words));
		assert_int_equal(phase->bytes, whole(words));
	}
	for (char *name; (name = strtok_r(NULL, " \n", &words->rest));) {
		const bool flops = strcmp(name, "flops") == 0;

		assert_true(flops || strcmp(name, "temporary") == 0);
		assert_int_equal(flops ? plan->flops : plan->temporary_bytes, whole(words));
	}
}

static void check_plan(const struct ipu_target *target, const struct ipu_op *op,
		       struct words *words)
{
	struct ipu_planner *planner;
	const struct ipu_plan *plan;

	assert_int_equal(ipu_planner_new(&planner, target, NULL), ST_OK);
	assert_int_equal(ipu_planner_plan(planner, op, NULL, &plan, NULL), ST_OK);
	check_phases(plan, words);
	ipu_planner_free(planner);
}

/* A map up to its number of elements and operands. */
static struct ipu_op map_of(struct words *words)
{
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE, .dtype = dtype_of(words)};
	char *rest = word(words);

	for (char *name; (name = strtok_r(NULL, "+", &rest));)
		for (int f = 0; f < IPU_FUNCTIONS; f++)
			if (strcmp(name, ipu_function_names[f]) == 0)
				op.elements.times[f]++;
	op.elements.count = whole(words);
	op.elements.operands = whole(words);
	return op;
}

static void check_map(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const struct ipu_op op = map_of(words);

	check_plan(&target, &op, words);
}

static struct ipu_amp_use use_of(struct words *words)
{
	const char *mode = word(words);
	struct ipu_amp_use use = {.mode = strcmp(mode, "float") == 0  ? IPU_AMP_FLOAT
					  : strcmp(mode, "half") == 0 ? IPU_AMP_HALF
								      : IPU_AMP_HALF_HALF};

	use.units = number(words);
	use.in_group = number(words);
	use.passes = number(words);
	use.height = 1;
	return use;
}

static void check_1x1(struct words *words)
{
	const struct ipu_amp_use use = use_of(words);
	struct ipu_vertex_share share = {.taps_outer = 1, .taps_inner = 1};
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	share.positions = number(words);
	share.in_groups = number(words);
	share.out_groups = number(words);
	share.conv_groups = number(words);
	assert_close(ipu__amp_1x1(&target, &use, &share), number(words), 1e-12);
}

static void check_nx1_worker(struct words *words)
{
	const struct ipu_amp_use use = use_of(words);
	struct ipu_target target;
	double rows, columns;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	rows = number(words);
	columns = number(words);
	assert_close(ipu__amp_nx1_worker(&target, &use, rows, columns), number(words), 1e-12);
}

static void check_slic(struct words *words)
{
	const enum ipu_dtype partials = dtype_of(words);
	const double groups = number(words), stride = number(words), rows = number(words);
	struct ipu_vertex_share share = {.taps_outer = 1, .in_groups = 1, .out_groups = 1};
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	share.worker =
		ipu__slic_worker(&target, partials, groups, (int64_t)stride, rows, number(words));
	share.conv_groups = number(words);
	share.taps_inner = number(words);
	assert_close(ipu__slic(&target, groups, &share), number(words), 1e-12);
}

static void check_slic_worker(struct words *words)
{
	const enum ipu_dtype partials = dtype_of(words);
	const double groups = number(words), stride = number(words), rows = number(words);
	struct ipu_target target;
	double columns;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	columns = number(words);
	assert_close(ipu__slic_worker(&target, partials, groups, (int64_t)stride, rows, columns),
		     number(words), 1e-12);
}

static void check_nx1(struct words *words)
{
	struct ipu_amp_use use = use_of(words);
	struct ipu_vertex_share share;
	struct ipu_target target;
	double rows, columns;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	use.height = number(words);
	rows = number(words);
	columns = number(words);
	share.positions = rows * columns;
	share.in_groups = number(words);
	share.out_groups = number(words);
	share.conv_groups = number(words);
	share.taps_outer = number(words);
	share.taps_inner = number(words);
	share.worker = ipu__amp_nx1_worker(&target, &use, rows, columns);
	assert_close(ipu__amp_nx1(&target, &use, &share), number(words), 1e-12);
}

static void check_copy(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_op op = {.kind = IPU_OP_COPY, .dtype = dtype_of(words)};

	op.copy.count = whole(words);
	op.copy.atom = whole(words);
	check_plan(&target, &op, words);
}

static void check_fifo(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const int64_t bytes = whole(words);

	assert_int_equal(ipu_fifo_cycles(&target, bytes, false), whole(words));
	assert_int_equal(ipu_fifo_cycles(&target, bytes, true), whole(words));
}

static void check_stream(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const struct ipu_stream_copy copy =
		ipu_stream_copy(&target, (double)whole(words), target.host_bytes_second);

	assert_int_equal(copy.cycles, whole(words));
	assert_int_equal(copy.begin_cycles, whole(words));
	assert_int_equal(copy.end_cycles, whole(words));
}

static void check_sync(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const int64_t ipus = whole(words);

	assert_int_equal(ipu_sync_cycles(&target, (int)ipus), whole(words));
}

static void check_all_reduce(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const int64_t replicas = whole(words), own = whole(words), bytes = whole(words);
	const struct ipu_graph graph = {
		.layout = {.replicas = (int)replicas, .replica_ipus = (int)own}};
	struct ipu_executable executable = {.graph = &graph};
	struct ipu_lowering lowering = {.executable = &executable, .target = &target};
	int64_t sync = 0, exchange = 0, cycles = 0;

	assert_int_equal(arena_init(&executable.arena, 0), 0);
	ipu__collective_lower(&lowering, ipu__sequence_add(&lowering, -1, "U"), IPU_ALL_REDUCE,
			      bytes, "CrossReplicaSum");
	assert_false(lowering.failed);
	for (size_t s = 0; s < lowering.step_count; s++) {
		const struct ipu_step *step = &lowering.steps[s];
		const int64_t all = step->cycles * step->repeats;

		sync += step->type == IPU_SYNC ? all : 0;
		exchange += step->type == IPU_DO_EXCHANGE || step->type == IPU_GLOBAL_EXCHANGE ? all
											       : 0;
		cycles += all;
	}
	assert_int_equal(sync, whole(words));
	assert_int_equal(exchange, whole(words));
	assert_int_equal(cycles, whole(words));
	mem_free(lowering.programs);
	mem_free(lowering.steps);
	arena_fini(&executable.arena);
}

/* ---- on the vector pipe ---------------------------------------------------------------------- */

static void check_map_repeated(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_op op = map_of(words);

	op.elements.broadcast = whole(words);
	check_plan(&target, &op, words);
}

static void check_reduction(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_op op = {.kind = IPU_OP_REDUCE, .dtype = dtype_of(words)};

	op.reduce.inputs = whole(words);
	op.reduce.outputs = whole(words);
	check_plan(&target, &op, words);
}

static void check_reduce_over_tiles(struct words *words)
{
	static const struct ipu__reduce_names names = IPU_REDUCE_NAMES("");
	const struct ipu_target target = target_of(words);
	struct ipu_plan plan = {0};
	struct ipu__reducing reducing = {&plan, &target, IPU_FLOAT32, &names, 0};
	const int64_t partials = whole(words);

	ipu__reduce_over_tiles(&reducing, partials, whole(words));
	check_phases(&plan, words);
}

static void check_pool(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_op op = {.kind = IPU_OP_POOL, .dtype = dtype_of(words)};
	int64_t *sizes[] = {op.pool.in, op.pool.out, op.pool.kernel, op.pool.stride};

	op.pool.max = strcmp(word(words), "max") == 0;
	op.pool.backward = strcmp(word(words), "backward") == 0;
	op.pool.batch = whole(words);
	op.pool.channels = whole(words);
	for (size_t i = 0; i < 2 * ARRAY_LEN(sizes); i++)
		sizes[i / 2][i % 2] = whole(words);
	check_plan(&target, &op, words);
}

static void check_rows(struct words *words)
{
	static const char *const works[IPU_ROWS_WORKS] = {
		[IPU_ROWS_SOFTMAX] = "softmax",
		[IPU_ROWS_SOFTMAX_GRAD] = "softmax_grad",
		[IPU_ROWS_CROSS_ENTROPY] = "cross_entropy",
		[IPU_ROWS_ERROR] = "error",
		[IPU_ROWS_ARGMAX] = "accuracy",
	};
	const struct ipu_target target = target_of(words);
	struct ipu_op op = {.kind = IPU_OP_ROWS, .dtype = dtype_of(words)};
	const char *name = word(words);

	while (strcmp(works[op.rows.work], name) != 0)
		op.rows.work++;
	op.rows.rows = whole(words);
	op.rows.columns = whole(words);
	check_plan(&target, &op, words);
}

static void check_slice(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_op op = {.kind = IPU_OP_SLICE, .dtype = dtype_of(words)};

	op.slice.update = strcmp(word(words), "update") == 0;
	op.slice.entries = whole(words);
	op.slice.columns = whole(words);
	op.slice.lookups = whole(words);
	op.slice.tables = whole(words);
	check_plan(&target, &op, words);
}

/* What an operation of a cell is in the file: its kind, how often it runs, its sizes. */
static void check_cell_op(const struct ipu_op *op, struct words *words)
{
	const struct ipu_elements *elements = &op->elements;
	const char *kind = word(words);

	assert_int_equal(op->repeats, whole(words));
	if (strcmp(kind, "product") == 0) {
		assert_int_equal(op->kind, IPU_OP_MATMUL);
		assert_int_equal(op->matmul.m, whole(words));
		assert_int_equal(op->matmul.k, whole(words));
		assert_int_equal(op->matmul.n, whole(words));
	} else if (strcmp(kind, "reduce") == 0) {
		assert_int_equal(op->kind, IPU_OP_REDUCE);
		assert_int_equal(op->reduce.inputs, whole(words));
		assert_int_equal(op->reduce.outputs, whole(words));
	} else {
		assert_int_equal(op->kind, IPU_OP_ELEMENTWISE);
		assert_int_equal(elements->count, whole(words));
		if (strcmp(kind, "sum") == 0) {
			assert_int_equal(elements->operands, 2);
			assert_int_equal(elements->times[IPU_FN_ADD] +
						 elements->times[IPU_FN_SCALED_ADD],
					 1);
		} else {
			assert_int_equal(elements->times[IPU_FN_SIGMOID], whole(words));
			assert_int_equal(elements->times[IPU_FN_TANH], whole(words));
			assert_int_equal(elements->times[IPU_FN_ADD], whole(words));
		}
	}
}

static void check_cell(struct words *words)
{
	const char *cell = word(words), *pass = word(words);
	struct ipu_composite composite = {.kind = strcmp(cell, "lstm") == 0  ? IPU_COMPOSITE_LSTM
						  : strcmp(cell, "rnn") == 0 ? IPU_COMPOSITE_RNN
									     : IPU_COMPOSITE_GRU,
					  .pass = strcmp(pass, "forward") == 0 ? IPU_FORWARD
						  : strcmp(pass, "data") == 0
							  ? IPU_BACKWARD_DATA
							  : IPU_BACKWARD_WEIGHTS,
					  .dtype = dtype_of(words),
					  .reset_before = strcmp(cell, "gru_reset_before") == 0};
	struct ipu_op ops[IPU_COMPOSITE_OPS];
	int count;

	composite.batch = whole(words);
	composite.steps = whole(words);
	composite.features = whole(words);
	composite.units = whole(words);
	composite.fixed_input = whole(words);
	count = ipu_composite_ops(&composite, ops);
	for (int o = 0; o < count; o++) {
		if (ops[o].kind == IPU_OP_COPY)
			continue;
		assert_string_equal(word(words), "|");
		check_cell_op(&ops[o], words);
	}
	assert_null(strtok_r(NULL, " \n", &words->rest));
}

/* ---- convolutions, memory, the device clock -------------------------------------------------- */

static void check_hmac(struct words *words)
{
	const enum ipu_dtype dtype = dtype_of(words), partials = dtype_of(words);
	const double in_size = number(words), out_size = number(words);
	struct ipu_vertex_share share = {.taps_outer = 1};
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	share.positions = number(words);
	share.taps_inner = number(words);
	share.in_groups = number(words);
	share.out_groups = number(words);
	share.conv_groups = number(words);
	assert_close(ipu__horizontal_mac(&target, dtype, partials, in_size, out_size, &share),
		     number(words), 1e-12);
}

static void check_outer(struct words *words)
{
	const enum ipu_dtype dtype = dtype_of(words);
	const double out_size = number(words);
	struct ipu_vertex_share share = {.in_groups = 1, .taps_outer = 1, .taps_inner = 1};
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	share.positions = number(words);
	share.out_groups = number(words);
	share.conv_groups = number(words);
	assert_close(ipu__outer_product(&target, dtype, out_size, &share), number(words), 1e-12);
}

static void check_transpose(struct words *words)
{
	const enum ipu_dtype dtype = dtype_of(words);
	const double rows = number(words), columns = number(words), count = number(words);
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_close(ipu__transpose(&target, dtype, rows, columns, count), number(words), 1e-12);
}

static void check_reduce(struct words *words)
{
	struct ipu_target target;
	enum ipu_dtype partials, result;
	double depth, outputs;

	assert_int_equal(ipu_target_get(word(words), 0, &target, NULL), ST_OK);
	partials = dtype_of(words);
	result = dtype_of(words);
	depth = number(words);
	outputs = number(words);
	assert_close(ipu__reduce_add(&target, partials, result, depth, outputs), number(words),
		     1e-12);
}

static void check_cast(struct words *words)
{
	const double elements = number(words);
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_close(ipu__cast(&target, IPU_FLOAT32, IPU_FLOAT16, elements), number(words), 1e-12);
}

static void check_add_in_place(struct words *words)
{
	const enum ipu_dtype dtype = dtype_of(words);
	const double elements = number(words);
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_close(ipu__add_in_place(&target, dtype, elements), number(words), 1e-12);
}

static void check_dynamic_slice(struct words *words)
{
	const double bytes = number(words);
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_close(ipu__dynamic_slice(&target, bytes), number(words), 1e-12);
}

static void check_zeros(struct words *words)
{
	const double bytes = number(words);
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_close(ipu__fill(&target, bytes), number(words), 1e-12);
}

static void check_rearrange(struct words *words)
{
	const enum ipu_dtype dtype = dtype_of(words);
	const double channels = number(words), bytes = number(words);
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_close(ipu__rearrange_operand(&target, bytes, dtype, channels), number(words), 1e-12);
}

static void check_vmac(struct words *words)
{
	const enum ipu_dtype partials = dtype_of(words);
	const double together = number(words);
	struct ipu_vertex_share share = {.out_groups = 1};
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	share.positions = number(words);
	share.taps_outer = number(words);
	share.taps_inner = number(words);
	share.in_groups = number(words);
	share.conv_groups = number(words);
	assert_close(ipu__vertical_mac(&target, partials, together, &share), number(words), 1e-12);
}

static const char *const conv_parts[CONV_PARTS] = {
	[CONV_INPUT_EXCHANGE] = "input/exchange",
	[CONV_PRE_EXCHANGE] = "before/exchange",
	[CONV_PRE_COPY] = "before",
	[CONV_SLICE] = "slice",
	[CONV_EXCHANGE] = "exchange",
	[CONV_REDUCE_EXCHANGE_0] = "sum0/exchange",
	[CONV_REDUCE_0] = "sum0",
	[CONV_REDUCE_EXCHANGE_1] = "sum1/exchange",
	[CONV_REDUCE_1] = "sum1",
	[CONV_REDUCE_EXCHANGE_2] = "sum2/exchange",
	[CONV_REDUCE_2] = "sum2",
	[CONV_ADD] = "add",
	[CONV_UPDATE] = "update",
	[CONV_CAST] = "cast",
	[CONV_FILL] = "fill",
	[CONV_POST_EXCHANGE] = "after/exchange",
	[CONV_POST_COPY] = "after",
};

/* What a cut of a product on the AMP costs beside its vertex: these parts, and no other. */
static void check_conv(struct words *words)
{
	struct conv_form form = {.stride = {1, 1}, .dilation = {1, 1}, .input_dilation = {1, 1}};
	struct conv_way way = {.amp = {.units = 16, .passes = 1, .height = 1}, .conv_group = 1};
	struct conv_field field = {.parts = 1, .balance = 1};
	struct ipu_target target;
	struct conv_cost cost;
	struct conv_cut cut;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	form.dtype = dtype_of(words);
	form.partials = dtype_of(words);
	way.amp.in_group = way.in_group = number(words);
	way.out_group = number(words);
	for (int i = 0; i < 3; i++)
		form.position[i] = whole(words);
	form.in = whole(words);
	form.out = whole(words);
	form.groups = whole(words);
	for (int i = 0; i < 2; i++) {
		form.kernel[i] = whole(words);
		form.in_field[i] = form.position[i + 1] + form.kernel[i] - 1;
	}
	cut = (struct conv_cut){.groups = whole(words)};
	cut.in = whole(words);
	cut.out = whole(words);
	cut.kernel = whole(words);
	for (int i = 0; i < 3; i++) {
		field.split[i] = (int32_t)whole(words);
		field.parts *= field.split[i];
	}
	cut.serial_in = whole(words);
	cut.serial_out = whole(words);
	cut.input_first = whole(words);
	form.apart = whole(words);
	form.move_in = whole(words);
	form.move_weights = whole(words);
	form.move_out = whole(words);
	form.fill_elements = number(words);
	field.positions = number(words);
	field.inputs = number(words);
	form.inputs = number(words);
	form.weights = number(words);
	form.outputs = number(words);
	form.flat = form.kernel[0] * form.kernel[1] == 1;
	way.method = form.flat ? IPU_METHOD_AMP_1X1 : IPU_METHOD_AMP_NX1;
	way.amp.mode = ipu__conv_amp_mode(&form);
	ipu__conv_cost(&target, &form, &way, &cut, &field, &cost);
	for (int p = 0; p < CONV_PARTS; p++) {
		if (p == CONV_COMPUTE || cost.part[p] <= 0)
			continue;
		assert_string_equal(word(words), "|");
		assert_string_equal(conv_parts[p], word(words));
		assert_close(cost.part[p], number(words), 1e-12);
	}
	assert_null(strtok_r(NULL, " \n", &words->rest));
}

static enum ipu_schedule_kind schedule_kind_of(struct words *words)
{
	enum ipu_schedule_kind kind;

	assert_int_equal(ipu_schedule_kind_get(word(words), &kind, NULL), ST_OK);
	return kind;
}

/* Time steps (0: the document has none), then of each stage what lives, its FIFO's depth, and the
 * works W that are held back. */
static void check_schedule(struct words *words)
{
	struct ipu_schedule_params params = {.kind = schedule_kind_of(words)};
	struct ipu_schedule *schedule;
	int64_t steps;

	params.stages = (int)whole(words);
	params.microbatches = (int)whole(words);
	params.training = whole(words);
	assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
	steps = whole(words);
	if (steps > 0)
		assert_int_equal(schedule->time_steps, steps);
	for (int s = 0; s < params.stages; s++) {
		assert_int_equal(ipu_schedule_live(schedule, s), whole(words));
		assert_int_equal(ipu_schedule_fifo_depth(schedule, s), whole(words));
		assert_int_equal(ipu_schedule_held(schedule, s), whole(words));
	}
	assert_null(strtok_r(NULL, " \n", &words->rest));
	ipu_schedule_free(schedule);
}

static void check_figure(double figure, struct words *words)
{
	const double known = number(words);

	assert_int_equal(isnan(figure), isnan(known));
	if (!isnan(known))
		assert_close(figure, known, 1e-8);
}

static void check_closed(struct words *words)
{
	const enum ipu_schedule_kind kind = schedule_kind_of(words);
	const int stages = (int)whole(words), microbatches = (int)whole(words);
	struct ipu_pipeline_closed closed;
	struct pipeline_sample sample;
	int64_t f, b, w;

	pipeline_sample_fill(&sample, kind, stages, microbatches, (int)whole(words));
	f = whole(words);
	b = whole(words);
	w = whole(words);
	pipeline_sample_times(&sample, f, b, w, whole(words));
	ipu_pipeline_closed_get(&sample.params, &closed);
	check_figure(closed.makespan_ns, words);
	check_figure(closed.idle_fraction, words);
	check_figure(closed.bubble_rate, words);
	check_figure(closed.bubble_over_ideal, words);
}

static void check_ns(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const int64_t cycles = whole(words);

	assert_int_equal(ipu_target_ns(&target, cycles), whole(words));
}

/* A run of @schedule, whose stages have the IPUs of their numbers. */
static struct ipu_timeline *timeline_of(const struct ipu_timeline_params *params)
{
	struct ipu_timeline *timeline;

	assert_int_equal(ipu_timeline_new(&timeline, params, NULL), ST_OK);
	return timeline;
}

static struct ipu_schedule *schedule_of(enum ipu_schedule_kind kind, int stages, int microbatches,
					bool training)
{
	const struct ipu_schedule_params params = {
		.kind = kind, .stages = stages, .microbatches = microbatches, .training = training};
	struct ipu_schedule *schedule;

	assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
	return schedule;
}

/* The only IPU's run takes what the line ends with. */
static void check_run(const struct ipu_timeline_params *params, struct words *words)
{
	struct ipu_timeline *timeline = timeline_of(params);

	assert_int_equal(timeline->cycles, whole(words));
	ipu_timeline_free(timeline);
}

static void check_host(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_stage_cost cost = {0};
	struct ipu_timeline_params params = {.target = &target, .stages = &cost};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, false);

	params.schedule = schedule;
	params.replicas = (int)whole(words);
	cost.infeed_bytes = whole(words);
	check_run(&params, words);
	ipu_schedule_free(schedule);
}

static void check_prefetch(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_stage_cost cost = {0};
	struct ipu_timeline_params params = {
		.target = &target, .stages = &cost, .prefetch_depth = 1};
	const bool training = whole(words);
	struct ipu_schedule *schedule;

	cost.infeed_bytes = whole(words);
	cost.function[IPU_FUNCTION_F].cycles = whole(words);
	cost.function[IPU_FUNCTION_B].cycles = cost.function[IPU_FUNCTION_F].cycles + 1;
	cost.function[IPU_FUNCTION_U].cycles = 7;
	schedule = schedule_of(IPU_SEQUENTIAL, 1, (int)whole(words), training);
	params.schedule = schedule;
	check_run(&params, words);
	ipu_schedule_free(schedule);
}

static void check_io_tiles(struct words *words)
{
	const struct ipu_target target = target_of(words);
	struct ipu_stage_cost cost = {0};
	struct ipu_timeline_params params = {.target = &target, .stages = &cost};
	struct ipu_schedule *schedule;

	params.io_tiles = whole(words);
	cost.infeed_bytes = whole(words);
	cost.outfeed_bytes = whole(words);
	cost.function[IPU_FUNCTION_F].cycles = whole(words);
	cost.function[IPU_FUNCTION_B].cycles = whole(words);
	schedule = schedule_of(IPU_SEQUENTIAL, 1, (int)whole(words), true);
	params.schedule = schedule;
	check_run(&params, words);
	ipu_schedule_free(schedule);
}

#define LADDER_STAGES 8
#define SENDS_MOST    4

/* All sends are of one stage's function: forward from the first, back from the last. */
static void check_links(struct words *words)
{
	const struct ipu_target target = target_of(words);
	const struct ipu_stage_cost costs[LADDER_STAGES] = {0};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, LADDER_STAGES, 1, true);
	struct ipu_send sends[SENDS_MOST];
	struct ipu_timeline_params params = {
		.target = &target, .schedule = schedule, .stages = costs, .sends = sends};
	const bool backward = whole(words);
	struct ipu_timeline *timeline;
	int found = 0, ipu;

	for (char *next; strcmp(next = word(words), "|") != 0;) {
		struct ipu_send *send = &sends[params.send_count++];

		*send = (struct ipu_send){.from = (int)strtol(next, NULL, 10)};
		send->to = (int)whole(words);
		send->bytes = whole(words);
	}
	ipu = backward ? sends[0].to : sends[0].from;
	timeline = timeline_of(&params);
	for (int i = 0; i < timeline->transfer_count; i++) {
		const struct ipu_transfer *transfer = &timeline->transfers[i];

		if (transfer->kind != IPU_TRANSFER_GLOBAL || transfer->ipu != ipu ||
		    transfer->backward != backward || transfer->bytes_out == 0)
			continue;
		assert_int_equal(transfer->cycles, whole(words));
		found++;
	}
	assert_int_equal(found, 1);
	ipu_timeline_free(timeline);
	ipu_schedule_free(schedule);
}

/* The model of the document's script: layers, and what they make and read. */
static const struct ipu_unit layers[] = {
	{7, 13, 2, 5, 100, true, false}, {11, 17, 3, 0, 40, true, false},
	{3, 6, 1, 0, 64, true, false},   {20, 31, 0, 0, 80, true, false},
	{5, 9, 6, 2, 12, true, false},
};
static const int layer_numbers[] = {0, 1, 2, 3, 4};
static const struct ipu_flow flows[] = {
	{16, -1, 0, &layer_numbers[0], 1, 4}, {40, 0, 1, &layer_numbers[1], 1, 3},
	{33, 1, 2, &layer_numbers[1], 2, 5},  {21, 2, 3, &layer_numbers[3], 1, 2},
	{18, 3, 4, &layer_numbers[4], 1, 6},  {10, 0, 4, &layer_numbers[4], 1, 1},
};

/* A given split: its stages' work, transfer, time, bytes sent and held, and a run's cycles. */
static void check_partition(struct words *words)
{
	struct ipu_partition_params params = {.units = layers,
					      .unit_count = ARRAY_LEN(layers),
					      .flows = flows,
					      .flow_count = ARRAY_LEN(flows),
					      .schedule = schedule_kind_of(words)};
	struct ipu_partition *partition;
	int first[ARRAY_LEN(layers)], device[ARRAY_LEN(layers)];
	int64_t microbatches;

	params.training = whole(words);
	params.recompute = whole(words);
	params.offload_activations = whole(words);
	params.link_bytes_cycle = number(words);
	params.sync_cycles = whole(words);
	params.memory_bytes = whole(words);
	params.stages = (int)whole(words);
	for (int s = 0; s < params.stages; s++)
		first[s] = (int)whole(words);
	for (int s = 0; s < params.stages; s++)
		device[s] = (int)whole(words);
	params.device = device;
	assert_string_equal(word(words), "|");
	params.microbatches = (int)whole(words);
	microbatches = whole(words);
	assert_int_equal(ipu_partition_given(&partition, &params, first, NULL), ST_OK);
	assert_int_equal(ipu_partition_run_cycles(partition, &params, microbatches), whole(words));
	assert_int_equal(partition->cycles, whole(words));
	for (int s = 0; s < params.stages; s++) {
		const struct ipu_partition_stage *stage = &partition->stage[s];
		int64_t transfer;

		assert_int_equal(stage->work, whole(words));
		transfer = whole(words);
		if (transfer >= 0)
			assert_int_equal(stage->transfer, transfer);
		assert_int_equal(stage->cycles, whole(words));
		assert_int_equal(stage->sent_bytes, whole(words));
		assert_int_equal(stage->memory_bytes, whole(words));
		assert_int_equal(stage->overflow_bytes, whole(words));
	}
	assert_null(strtok_r(NULL, " \n", &words->rest));
	ipu_partition_free(partition);
}

#define TENSORS_MOST 8

/* A model of a map, or of two on an IPU each, whose tensors are of one dimension. */
struct small_model {
	struct ipu_target target;
	struct ipu_tensor tensors[TENSORS_MOST];
	char names[TENSORS_MOST][8];
	int lists[TENSORS_MOST];
	struct ipu_node nodes[2];
	struct ipu_graph graph;
	struct ipu_executable *executable;
	struct ipu_planner *planner;
	struct ipu_memory *memory;
};

static void small_model_tensor(struct small_model *model, enum ipu_tensor_kind kind,
			       enum ipu_dtype dtype, int64_t elements)
{
	const int t = model->graph.tensor_count++;

	assert_true(t < TENSORS_MOST);
	snprintf(model->names[t], sizeof(model->names[t]), "t%d", t);
	model->lists[t] = t;
	model->tensors[t] = (struct ipu_tensor){.name = model->names[t],
						.kind = kind,
						.dtype = dtype,
						.ndim = 1,
						.dim = {elements}};
}

/* The next operation reads and writes these of the model's tensors. */
static void small_model_map(struct small_model *model, enum ipu_work_phase phase,
			    enum ipu_dtype dtype, int64_t count, int reads, const int *writes,
			    int write_count)
{
	const int n = model->graph.node_count++;

	model->nodes[n] = (struct ipu_node){.reads = &model->lists[n],
					    .read_count = reads,
					    .writes = writes,
					    .write_count = write_count};
	model->nodes[n].op = (struct ipu_op){.kind = IPU_OP_ELEMENTWISE,
					     .name = n ? "Second" : "First",
					     .phase = (char)phase,
					     .stage = n,
					     .dtype = dtype,
					     .elements = {.count = count, .operands = reads}};
	model->nodes[n].op.elements.times[IPU_FN_ADD] = 1;
	ipu_plan_options_defaults(&model->nodes[n].options);
}

/* Lay out what the model has; its schedule is the caller's. */
static void small_model_make(struct small_model *model, const struct ipu_schedule *schedule)
{
	struct ipu_layout *layout = &model->graph.layout;
	struct ipu_target compute = model->target;

	compute.tiles -= layout->io_tiles;
	layout->batch = layout->accumulation = layout->runs = 1;
	layout->replicas = layout->replicas > 0 ? layout->replicas : 1;
	layout->replica_ipus = layout->stages = schedule->stages;
	if (schedule->training)
		layout->schedule = schedule;
	else
		layout->forward = schedule;
	model->graph.tensors = model->tensors;
	model->graph.nodes = model->nodes;
	assert_int_equal(ipu_planner_new(&model->planner, &compute, NULL), ST_OK);
	assert_int_equal(ipu_executable_new(&model->executable, &model->graph, model->planner,
					    &model->target, NULL),
			 ST_OK);
	assert_int_equal(ipu_memory_new(&model->memory, model->executable, &model->target, NULL),
			 ST_OK);
}

static void small_model_free(struct small_model *model)
{
	ipu_memory_free(model->memory);
	ipu_executable_free(model->executable);
	ipu_planner_free(model->planner);
}

/* The runs of a tensor: bytes of a tile, and how many tiles have them, from its first tile on. */
static void check_runs(const struct ipu_memory *memory, const struct ipu_variable *variable,
		       struct words *words)
{
	const int64_t tiles = memory->tiles - memory->io_tiles;
	int64_t at = whole(words), sum = 0;

	for (int64_t runs = whole(words); runs > 0; runs--) {
		const int64_t bytes = whole(words);

		for (int64_t count = whole(words); count > 0; count--) {
			assert_int_equal(ipu_variable_on_tile(variable, at), bytes);
			at = (at + 1) % tiles;
			sum += bytes;
		}
	}
	assert_int_equal(variable->bytes, sum);
}

static void check_mapping(struct words *words)
{
	struct small_model model = {.target = target_of(words)};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, true);
	char *rest[TENSORS_MOST];
	enum ipu_dtype dtype;
	int64_t count;

	model.graph.layout.io_tiles = whole(words);
	model.graph.layout.io_memory_proportion = 0.5;
	dtype = dtype_of(words);
	count = whole(words);
	for (int t = 0; t < count; t++) {
		struct words tensor = {strtok_r(NULL, "|", &words->rest)};

		small_model_tensor(&model, IPU_TENSOR_WEIGHT, dtype, whole(&tensor));
		rest[t] = tensor.rest;
	}
	small_model_map(&model, IPU_PHASE_U, dtype, 1, (int)count, model.lists, (int)count);
	small_model_make(&model, schedule);
	for (int v = 0; v < model.memory->variable_count; v++) {
		const struct ipu_variable *variable = &model.memory->variables[v];

		if (variable->tensor)
			check_runs(model.memory, variable,
				   &(struct words){rest[variable->tensor - model.tensors]});
	}
	small_model_free(&model);
	ipu_schedule_free(schedule);
}

/* What the rest of the line names: bytes of a category on every tile of the IPU. */
static void check_categories(const struct small_model *model, int ipu, char *rest)
{
	for (char *name; (name = strtok_r(NULL, " \n", &rest));) {
		const int64_t bytes = strtoll(strtok_r(NULL, " \n", &rest), NULL, 10);
		int c = 0;

		while (strcmp(ipu_memory_category_name((enum ipu_memory_category)c), name) != 0)
			assert_true(++c < IPU_MEMORY_CATEGORIES);
		for (int64_t tile = 0; tile < model->memory->tiles; tile++)
			assert_int_equal(model->memory->ipus[ipu].category[c][tile], bytes);
	}
}

static void check_tile_bytes(struct words *words)
{
	struct small_model model = {.target = target_of(words)};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, false);
	const enum ipu_dtype dtype = dtype_of(words);
	const int64_t count = whole(words), operands = whole(words);
	const int result = 2;

	small_model_tensor(&model, IPU_TENSOR_INPUT, dtype, count);
	small_model_tensor(&model, IPU_TENSOR_WEIGHT, dtype, count);
	small_model_tensor(&model, IPU_TENSOR_RESULT, dtype, count);
	small_model_map(&model, IPU_PHASE_F, dtype, count, (int)operands, &result, 1);
	small_model_make(&model, schedule);
	check_categories(&model, 0, words->rest);
	small_model_free(&model);
	ipu_schedule_free(schedule);
}

/* An IPU makes of the input what another makes a result of: both have the same bytes. */
static void check_pair_bytes(struct words *words)
{
	struct small_model model = {.target = target_of(words)};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 2, 1, false);
	const enum ipu_dtype dtype = dtype_of(words);
	const int64_t count = whole(words);
	const int sent = 1, result = 2;
	char *again = strdup(words->rest);

	small_model_tensor(&model, IPU_TENSOR_INPUT, dtype, count);
	small_model_tensor(&model, IPU_TENSOR_ACTIVATION, dtype, count);
	small_model_tensor(&model, IPU_TENSOR_RESULT, dtype, count);
	model.tensors[result].stage = 1;
	small_model_map(&model, IPU_PHASE_F, dtype, count, 1, &sent, 1);
	small_model_map(&model, IPU_PHASE_F, dtype, count, 1, &result, 1);
	small_model_make(&model, schedule);
	check_categories(&model, 0, words->rest);
	check_categories(&model, 1, again);
	free(again);
	small_model_free(&model);
	ipu_schedule_free(schedule);
}

static void check_shard(struct words *words)
{
	struct small_model model = {0};
	struct ipu_schedule *schedule = schedule_of(IPU_SEQUENTIAL, 1, 1, true);
	const int64_t replicas = whole(words);
	const enum ipu_dtype dtype = dtype_of(words);
	const int64_t count = whole(words);
	int found = 0;

	assert_int_equal(ipu_target_get("ipu2", 0, &model.target, NULL), ST_OK);
	model.graph.layout.replicas = (int)replicas;
	model.graph.layout.shard_optimizer_state = true;
	small_model_tensor(&model, IPU_TENSOR_WEIGHT, dtype, count);
	small_model_tensor(&model, IPU_TENSOR_OPTIMIZER_STATE, dtype, count);
	small_model_map(&model, IPU_PHASE_U, dtype, count, 2, model.lists, 2);
	small_model_make(&model, schedule);
	for (int v = 0; v < model.memory->variable_count; v++) {
		const struct ipu_variable *variable = &model.memory->variables[v];

		if (variable->tensor != &model.tensors[1])
			continue;
		assert_int_equal(variable->bytes, whole(words));
		found++;
	}
	assert_int_equal(found, 1);
	small_model_free(&model);
	ipu_schedule_free(schedule);
}

static void check_regions(struct words *words)
{
	static const enum ipu_memory_category categories[] = {IPU_MEMORY_VERTEX_CODE,
							      IPU_MEMORY_VARIABLES};
	const struct ipu_target target = target_of(words);
	int64_t bytes[IPU_MEMORY_CATEGORIES] = {0};
	int64_t regions[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS];
	struct ipu_memory_ipu ipu = {0};
	const struct ipu_memory memory = {.ipus = &ipu,
					  .ipu_count = 1,
					  .tiles = 1,
					  .bytes_per_tile = target.bytes_per_tile,
					  .interleaved_bytes = target.interleaved_bytes};

	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		ipu.category[c] = &bytes[c];
	for (size_t c = 0; c < ARRAY_LEN(categories); c++)
		bytes[categories[c]] = whole(words);
	ipu_memory_regions(&memory, 0, 0, regions);
	for (size_t c = 0; c < ARRAY_LEN(categories); c++)
		for (int r = 0; r < IPU_MEMORY_REGIONS; r++)
			assert_int_equal(regions[categories[c]][r], whole(words));
}

/* Instructions of a program by its type. The control code has those of all steps of functions, and
 * of whatever calls, repeats or switches. */
static void check_instructions(struct words *words)
{
	const struct program_sample_params params = {
		.kind = IPU_SEQUENTIAL,
		.stages = 1,
		.microbatches = 4,
		.layout = {.replicas = 4, .offload_optimizer_state = true}};
	int64_t each[IPU_PROGRAM_TYPES] = {0}, seen[IPU_PROGRAM_TYPES] = {0}, sum = 0;
	struct program_sample sample;
	struct ipu_memory *memory;

	for (char *name; (name = strtok_r(NULL, " \n", &words->rest));) {
		int type = 0;

		while (strcmp(ipu_program_type_name((enum ipu_program_type)type), name) != 0)
			assert_true(++type < IPU_PROGRAM_TYPES);
		each[type] = whole(words);
	}
	program_sample_plain(&sample);
	for (int l = 0; l <= sample.layers; l++)
		sample.units[l] += l; /* no two layers share their code */
	program_sample_setup(&sample, &params);
	assert_int_equal(program_sample_compile(&sample, NULL), ST_OK);
	assert_int_equal(ipu_memory_new(&memory, sample.executable, &sample.target, NULL), ST_OK);
	for (int f = 0; f < IPU_FUNCTION_PHASES; f++) {
		const struct ipu_code *code = &sample.executable->code[0][f];

		for (int i = 0; i < code->step_count; i++)
			seen[code->steps[i].type]++;
	}
	for (int p = 0; p < sample.executable->program_count; p++) {
		const enum ipu_program_type type = sample.executable->programs[p].type;

		seen[type] += type == IPU_CALL || type == IPU_REPEAT || type == IPU_SWITCH;
	}
	for (int type = 0; type < IPU_PROGRAM_TYPES; type++) {
		assert_true(each[type] == 0 || seen[type] > 0);
		sum += 4 * each[type] * seen[type];
	}
	assert_int_equal(memory->ipus[0].category[IPU_MEMORY_CONTROL_CODE][0], sum);
	ipu_memory_free(memory);
	program_sample_free(&sample);
}

static const char *const method_names[IPU_METHODS] = {
	[IPU_METHOD_NONE] = "NONE",
	[IPU_METHOD_AMP_1X1] = "AMP_1X1",
	[IPU_METHOD_AMP_NX1] = "AMP_NX1",
	[IPU_METHOD_HORIZONTAL_MAC] = "HORIZONTAL_MAC",
	[IPU_METHOD_VERTICAL_MAC] = "VERTICAL_MAC",
	[IPU_METHOD_OUTER_PRODUCT] = "OUTER_PRODUCT",
	[IPU_METHOD_SLIC] = "SLIC",
};

static enum ipu_method method_of(struct words *words)
{
	const char *name = word(words);
	int method = 0;

	while (strcmp(method_names[method], name) != 0)
		assert_true(++method < IPU_METHODS);
	return (enum ipu_method)method;
}

static void check_phase(struct words *words)
{
	struct ipu_plan plan = {.method = method_of(words)};
	struct ipu_phase phase = {.part = word(words)};
	const bool exchange = strcmp(phase.part, "Exchange") == 0;
	int64_t code;

	phase.kind = exchange ? IPU_EXCHANGE : IPU_COMPUTE;
	if (!exchange)
		phase.vertex =
			strcmp(phase.part, "OnTileCopy-0") == 0 ? "poplar::OnTileCopy" : "vertex";
	plan.pointer_bytes = whole(words);
	phase.tiles = whole(words);
	phase.vertices = whole(words);
	phase.sent = whole(words);
	phase.sources = whole(words);
	code = whole(words);
	assert_int_equal(ipu_phase_code_bytes(&plan, &phase), code);
	if (!exchange)
		assert_int_equal(ipu_phase_state_bytes(&plan, &phase), whole(words));
}

static void check_lists(struct words *words)
{
	struct conv_form form = {.stride = {1, 1},
				 .dilation = {1, 1},
				 .input_dilation = {1, 1},
				 .partials = IPU_FLOAT32};
	struct conv_way way = {.method = method_of(words),
			       .amp = {.units = 16, .in_group = 8, .passes = 1, .height = 1},
			       .in_group = 8,
			       .out_group = 16};
	const struct conv_cut cut = {1, 1, 1, 1, 1, 1, false};
	struct conv_field field = {.split = {1, 1, 1}, .parts = 1, .balance = 1};
	struct ipu_target target;
	struct conv_cost cost;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	form.dtype = dtype_of(words);
	way.conv_group = number(words);
	form.position[0] = 1;
	for (int i = 1; i < 3; i++)
		form.position[i] = whole(words);
	for (int i = 0; i < 2; i++) {
		form.kernel[i] = whole(words);
		form.in_field[i] = form.position[i + 1] + form.kernel[i] - 1;
	}
	form.in = whole(words) * (int64_t)way.in_group;
	form.out = whole(words) * (int64_t)way.out_group;
	form.groups = whole(words) * (int64_t)way.conv_group;
	form.flat = way.method == IPU_METHOD_AMP_1X1;
	way.amp.mode = ipu__conv_amp_mode(&form);
	field.positions = (double)(form.position[1] * form.position[2]);
	field.inputs = (double)(form.in_field[0] * form.in_field[1]);
	ipu__conv_cost(&target, &form, &way, &cut, &field, &cost);
	assert_close(cost.lists, number(words), 1e-12);
	assert_close(cost.pointers, number(words), 1e-12);
}

static const struct {
	const char *kind;
	void (*check)(struct words *words);
} kinds[] = {
	{"map", check_map},
	{"copy", check_copy},
	{"amp_1x1", check_1x1},
	{"slic_worker", check_slic_worker},
	{"slic", check_slic},
	{"amp_nx1_worker", check_nx1_worker},
	{"amp_nx1", check_nx1},
	{"fifo", check_fifo},
	{"stream", check_stream},
	{"sync", check_sync},
	{"all_reduce", check_all_reduce},
	{"map_repeated", check_map_repeated},
	{"reduction", check_reduction},
	{"reduce_over_tiles", check_reduce_over_tiles},
	{"pool", check_pool},
	{"rows", check_rows},
	{"slice", check_slice},
	{"cell", check_cell},
	{"hmac", check_hmac},
	{"outer", check_outer},
	{"transpose", check_transpose},
	{"reduce", check_reduce},
	{"cast", check_cast},
	{"add_in_place", check_add_in_place},
	{"dynamic_slice", check_dynamic_slice},
	{"zeros", check_zeros},
	{"rearrange", check_rearrange},
	{"vmac", check_vmac},
	{"conv", check_conv},
	{"schedule", check_schedule},
	{"closed", check_closed},
	{"ns", check_ns},
	{"host", check_host},
	{"prefetch", check_prefetch},
	{"io_tiles", check_io_tiles},
	{"links", check_links},
	{"partition", check_partition},
	{"mapping", check_mapping},
	{"tile_bytes", check_tile_bytes},
	{"phase", check_phase},
	{"lists", check_lists},
	{"pair_bytes", check_pair_bytes},
	{"shard", check_shard},
	{"regions", check_regions},
	{"instructions", check_instructions},
};

static void test_formulas_are_those_of_the_document(void **state)
{
	const char *source = getenv("IPUSCOPE_SOURCE_DIR");
	int lines[ARRAY_LEN(kinds)] = {0};
	char path[SUPPORT_PATH_SIZE], line[2048];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/cost_model.txt", source ? source : ".");
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		struct words words;
		char *kind;
		size_t k = 0;

		print_message("%s", line);
		kind = strtok_r(line, " \n", &words.rest);
		while (k < ARRAY_LEN(kinds) && strcmp(kind, kinds[k].kind) != 0)
			k++;
		assert_true(k < ARRAY_LEN(kinds));
		kinds[k].check(&words);
		lines[k]++;
	}
	fclose(file);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		assert_true(lines[k] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formulas_are_those_of_the_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
