/*
 * The cost model's formulas beside tests/golden/cost_model.txt, which script/make-cost-golden.py
 * works out from docs/cost-model.md alone.
 */
#include "support/ipu_functions.h"
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/compile/ipu_program_internal.h"
#include "ipu/ipu_timeline.h"
#include "ipu/plan/ipu_plan.h"
#include "ipu/plan/plan_vector.h"
#include "ipu/plan/plan_vertex.h"

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
