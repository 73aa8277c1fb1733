/*
 * The planner as a whole: what it refuses, what it remembers, and that its sums are sums.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"

struct bench {
	struct ipu_target target;
	struct ipu_planner *planner;
};

static int setup(void **state)
{
	static struct bench bench;

	assert_int_equal(ipu_target_get("ipu2", 0, &bench.target, NULL), ST_OK);
	assert_int_equal(ipu_planner_new(&bench.planner, &bench.target, NULL), ST_OK);
	*state = &bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	ipu_planner_free(bench->planner);
	return 0;
}

/* One of each kind. */
static const struct ipu_op samples[] = {
	{.kind = IPU_OP_CONV,
	 .conv = {IPU_FORWARD, 4, 1, 3, 8, {9, 9}, {7, 7}, {3, 3}, {1, 1}, {1, 1}}},
	{.kind = IPU_OP_MATMUL, .matmul = {32, 784, 128}},
	{.kind = IPU_OP_ELEMENTWISE, .elements = {.count = 5000, .times = {[IPU_FN_ADD] = 2}}},
	{.kind = IPU_OP_REDUCE, .reduce = {4096, 10}},
	{.kind = IPU_OP_POOL, .pool = {true, false, 2, 8, {8, 8}, {4, 4}, {2, 2}, {2, 2}}},
	{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX, 32, 10}},
	{.kind = IPU_OP_COPY, .copy = {1000, 1}},
	{.kind = IPU_OP_SLICE, .slice = {false, 30000, 128, 256, 1}},
};

static void test_a_plan_is_the_sum_of_its_phases(void **state)
{
	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		int64_t compute = 0, exchange = 0, sync = 0, bytes = 0;
		const struct ipu_plan *plan;

		assert_int_equal(ipu_planner_plan(bench->planner, &samples[i], NULL, &plan, NULL),
				 ST_OK);
		assert_true(plan->phase_count > 0 && plan->phase_count <= IPU_PHASES);
		for (int p = 0; p < plan->phase_count; p++) {
			const struct ipu_phase *phase = &plan->phases[p];

			assert_true(phase->tiles >= 1 && phase->tiles <= bench->target.tiles);
			assert_true(phase->repeats >= 1);
			assert_non_null(phase->part);
			assert_true((phase->kind == IPU_COMPUTE) == (phase->vertex != NULL));
			assert_true(phase->mean_cycles <= (double)phase->cycles + 0.5);
			sync += (int64_t)ceil(bench->target.phase_cycles) * phase->repeats;
			bytes += phase->bytes * phase->repeats;
			if (phase->kind == IPU_COMPUTE)
				compute += phase->cycles * phase->repeats;
			else
				exchange += phase->cycles * phase->repeats;
		}
		assert_int_equal(plan->compute_cycles, compute);
		assert_int_equal(plan->exchange_cycles, exchange);
		assert_int_equal(plan->sync_cycles, sync);
		assert_int_equal(plan->cycles, compute + exchange + sync);
		assert_int_equal(plan->bytes_exchanged, bytes);
		assert_int_equal(plan->flops, ipu_op_flops(&samples[i]));
		assert_true(isnan(plan->tile_balance) ||
			    (plan->tile_balance > 0 && plan->tile_balance <= 1));
	}
}

static void test_the_same_operation_is_planned_once(void **state)
{
	struct bench *bench = *state;
	struct ipu_plan_options options;
	const struct ipu_plan *first, *again, *other;
	struct ipu_op op = samples[0];

	assert_int_equal(ipu_planner_plan(bench->planner, &op, NULL, &first, NULL), ST_OK);
	op.name = "Conv_2/Convolve";
	op.layer = "Conv_2";
	op.stage = 3;
	op.phase = 'B';
	assert_int_equal(ipu_planner_plan(bench->planner, &op, NULL, &again, NULL), ST_OK);
	assert_ptr_equal(first, again);

	op.conv.pass = IPU_BACKWARD_DATA;
	assert_int_equal(ipu_planner_plan(bench->planner, &op, NULL, &other, NULL), ST_OK);
	assert_ptr_not_equal(first, other);
	ipu_plan_options_defaults(&options);
	options.available_memory_proportion = 0.3;
	assert_int_equal(ipu_planner_plan(bench->planner, &samples[0], &options, &other, NULL),
			 ST_OK);
	assert_ptr_not_equal(first, other);
}

static void test_what_cannot_be_planned_is_refused(void **state)
{
	struct bench *bench = *state;
	const struct ipu_plan *plan;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct ipu_op op = {.kind = samples[i].kind, .name = "nothing"};

		assert_int_equal(ipu_planner_plan(bench->planner, &op, NULL, &plan, &err),
				 ST_INVALID);
		assert_non_null(strstr(err.text, "nothing"));
		assert_null(plan);
	}
}

static void test_huge_operations_stay_in_range(void **state)
{
	struct bench *bench = *state;
	const struct ipu_plan *plan;
	const int64_t huge = INT64_C(1) << 40;
	const struct ipu_op ops[] = {
		{.kind = IPU_OP_MATMUL, .matmul = {huge, huge, huge}},
		{.kind = IPU_OP_ELEMENTWISE,
		 .elements = {.count = huge, .times = {[IPU_FN_TANH] = 255}}},
		{.kind = IPU_OP_REDUCE, .reduce = {huge, 1}},
		{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX, huge, 4}},
		{.kind = IPU_OP_COPY, .copy = {huge, 1}},
		{.kind = IPU_OP_SLICE, .slice = {false, huge, huge, huge, huge}},
		{.kind = IPU_OP_SLICE, .slice = {true, huge, huge, huge, huge}},
	};

	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		assert_int_equal(ipu_planner_plan(bench->planner, &ops[i], NULL, &plan, NULL),
				 ST_OK);
		assert_true(plan->cycles > 0 && plan->bytes_exchanged >= 0 && plan->flops >= 0);
	}
}

static struct ipu_plan plan_on(int64_t tiles, const struct ipu_op *op)
{
	struct ipu_planner *planner;
	const struct ipu_plan *plan;
	struct ipu_target target;
	struct ipu_plan out;

	assert_int_equal(ipu_target_get("ipu2", tiles, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_plan(planner, op, NULL, &plan, NULL), ST_OK);
	out = *plan;
	ipu_planner_free(planner);
	return out;
}

/* A table of 16 rows of 8 floats, all on one tile; a worker looks up one of 3 rows of 4 vectors. */
static void test_a_lookup_by_hand(void **state)
{
	const struct ipu_op op = {.kind = IPU_OP_SLICE, .slice = {false, 16, 8, 3, 1}};
	const struct ipu_plan plan = plan_on(1, &op);

	(void)state;
	assert_int_equal(plan.exchange_cycles, 3);
	assert_int_equal(plan.compute_cycles, 6 * (30 + 19 + 2 * 4));
	assert_int_equal(plan.temporary_bytes, 3 * 4 + 3 * 8 * 4);
}

/* Of a single lookup there are no more groups than that one. */
static void test_a_single_lookup_by_hand(void **state)
{
	const struct ipu_op op = {.kind = IPU_OP_SLICE, .slice = {false, 16, 8, 1, 1}};
	const struct ipu_plan plan = plan_on(1, &op);

	(void)state;
	assert_int_equal(plan.exchange_cycles, 1);
	assert_int_equal(plan.compute_cycles, 6 * (30 + 19 + 2 * 4));
	assert_int_equal(plan.temporary_bytes, 4 + 8 * 4);
}

/*
 * A table of 4096 rows of 4 floats on 64 tiles: 16 groups of 256 lookups, each with 4 parts of 1024
 * rows. A tile receives 256 indices, and of its part what the 15 other groups have; it makes 256
 * rows, 64 of them its own entries', receives as many again and selects 64. A worker's share of 64
 * is 11, of 192 it is 32.
 */
static void test_a_lookup_in_parts_by_hand(void **state)
{
	const struct ipu_op op = {.kind = IPU_OP_SLICE, .slice = {false, 4096, 4, 4096, 1}};
	const struct ipu_plan plan = plan_on(64, &op);

	(void)state;
	assert_int_equal(plan.split_batch, 16);
	assert_int_equal(plan.split_field, 4);
	assert_int_equal(plan.exchange_cycles, (256 * 4 + 1024 * 16 / 16 * 15) / 4 + 256 * 16 / 4);
	assert_int_equal(plan.compute_cycles,
			 6 * (30 + 11 * (19 + 2 * 2) + 8 * 32) + 6 * (30 + 11 * (19 + 2 * 2)));
	assert_int_equal(plan.temporary_bytes, 256 * 4 + 1024 * 16 / 16 * 15 + 256 * 16 + 256 * 16);
}

/* Tables with tiles of their own take as long as one of them, those of a tile one after another. */
static void test_tables_are_shared_out_over_tiles(void **state)
{
	static const struct {
		int64_t tiles, tables, alone; /* tiles that one table has */
	} rows[] = {{1472, 16, 92}, {64, 64, 1}, {1472, 1, 1472}};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++)
		for (int update = 0; update < 2; update++) {
			const struct ipu_op op = {.kind = IPU_OP_SLICE,
						  .slice = {update, 784, 3, 3136, rows[r].tables}};
			const struct ipu_op one = {.kind = IPU_OP_SLICE,
						   .slice = {update, 784, 3, 3136, 0}};
			const struct ipu_plan plan = plan_on(rows[r].tiles, &op);
			const struct ipu_plan alone = plan_on(rows[r].alone, &one);

			assert_int_equal(plan.compute_cycles, alone.compute_cycles);
			assert_int_equal(plan.temporary_bytes, alone.temporary_bytes);
			/* Sums of an update are spread over all tiles anew. */
			if (!update)
				assert_int_equal(plan.tiles_used,
						 alone.tiles_used * rows[r].tables);
			assert_true(plan.flops == alone.flops * rows[r].tables);
		}
}

/* 50 vectors of columns are on 50 tiles, not on 32: else these lookups would have no plan within
 * 0.6 of a tile's memory. */
static void test_columns_are_cut_into_any_number_of_parts(void **state)
{
	struct ipu_op op = {.kind = IPU_OP_SLICE,
			    .dtype = IPU_FLOAT16,
			    .slice = {false, 100000, 200, 11520, 1}};
	struct ipu_target target;
	struct ipu_planner *planner;

	(void)state;
	assert_int_equal(ipu_target_get("ipu1", 0, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
	for (int update = 0; update < 2; update++) {
		const struct ipu_plan *plan;

		op.slice.update = update;
		assert_int_equal(ipu_planner_plan(planner, &op, NULL, &plan, NULL), ST_OK);
		assert_true((double)plan->temporary_bytes <= 0.6 * (double)target.bytes_per_tile);
	}
	ipu_planner_free(planner);
}

static void test_more_tiles_never_make_lookups_slower(void **state)
{
	static const int64_t tiles[] = {1, 2, 5, 16, 61, 200, 736, 1471, 1472};
	static const struct ipu_slice slices[] = {
		{false, 30000, 128, 256, 1}, {true, 30000, 128, 256, 1}, {false, 50, 4, 10000, 1},
		{true, 7, 1000, 1, 1},       {true, 100, 16, 100000, 1}, {false, 784, 3, 3136, 16},
		{true, 100, 16, 1000, 300},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
		const struct ipu_op op = {.kind = IPU_OP_SLICE, .slice = slices[i]};
		int64_t before = 0;

		for (size_t t = 0; t < ARRAY_LEN(tiles); t++) {
			const struct ipu_plan plan = plan_on(tiles[t], &op);

			if (before > 0)
				assert_true(plan.cycles <= before);
			assert_true(plan.tiles_used <= tiles[t]);
			if ((double)plan.temporary_bytes <= 0.6 * 638976)
				before = plan.cycles;
		}
	}
}

static void test_names_are_there(void **state)
{
	(void)state;
	for (int i = 0; i < IPU_OP_KINDS; i++)
		assert_non_null(ipu_op_kind_name((enum ipu_op_kind)i));
	for (int i = 0; i < IPU_METHODS; i++)
		assert_non_null(ipu_method_name((enum ipu_method)i));
	assert_string_equal(ipu_dtype_name(IPU_FLOAT16), "float16");
	assert_int_equal(ipu_dtype_bytes(IPU_FLOAT16), 2);
}

static void test_lack_of_memory_leaves_nothing_behind(void **state)
{
	struct bench *bench = *state;
	const struct ipu_plan *plan;
	struct ipu_planner *planner;

	support_fail_alloc(0);
	assert_int_equal(ipu_planner_new(&planner, &bench->target, NULL), ST_NOMEM);
	support_fail_alloc(0);
	assert_int_equal(ipu_planner_plan(bench->planner, &samples[0], NULL, &plan, NULL),
			 ST_NOMEM);
	support_fail_alloc(-1);
	assert_int_equal(ipu_planner_plan(bench->planner, &samples[0], NULL, &plan, NULL), ST_OK);
}

/* A Bow has Mk2's tiles at another clock: one plans for both, with the same cycles. */
static void test_a_planner_suits_targets_whose_plans_are_the_same(void **state)
{
	static const struct {
		const char *name;
		int64_t tiles;
		bool suits;
	} cases[] = {{"ipu2", 0, true},  {"ipu21", 0, true},    {"c600", 0, true},
		     {"ipu1", 0, false}, {"ipu21", 100, false}, {"ipu2", 1471, false}};
	const struct ipu_op op = {.kind = IPU_OP_MATMUL, .matmul = {640, 784, 128}};
	const struct ipu_plan *plan, *other;
	struct ipu_planner *planner, *own;
	struct ipu_target target;

	(void)state;
	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_plan(planner, &op, NULL, &plan, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(ipu_target_get(cases[i].name, cases[i].tiles, &target, NULL),
				 ST_OK);
		assert_int_equal(ipu_planner_suits(planner, &target), cases[i].suits);
		assert_int_equal(ipu_planner_new(&own, &target, NULL), ST_OK);
		assert_int_equal(ipu_planner_plan(own, &op, NULL, &other, NULL), ST_OK);
		if (cases[i].suits)
			assert_memory_equal(plan, other, sizeof(*plan));
		ipu_planner_free(own);
	}
	ipu_planner_free(planner);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_plan_is_the_sum_of_its_phases),
		TEST(test_the_same_operation_is_planned_once),
		TEST(test_what_cannot_be_planned_is_refused),
		TEST(test_huge_operations_stay_in_range),
		cmocka_unit_test(test_a_lookup_by_hand),
		cmocka_unit_test(test_a_single_lookup_by_hand),
		cmocka_unit_test(test_a_lookup_in_parts_by_hand),
		cmocka_unit_test(test_tables_are_shared_out_over_tiles),
		cmocka_unit_test(test_columns_are_cut_into_any_number_of_parts),
		cmocka_unit_test(test_more_tiles_never_make_lookups_slower),
		TEST(test_names_are_there),
		TEST(test_lack_of_memory_leaves_nothing_behind),
		cmocka_unit_test(test_a_planner_suits_targets_whose_plans_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
