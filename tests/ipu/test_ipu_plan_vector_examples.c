/*
 * Plans on the vector pipe that were worked out by hand. All on ipu2: 1472 tiles of 6 workers,
 * vectors of 2 float32 or 4 float16, 4 bytes a cycle; a phase costs 450 cycles beside its work, so
 * that of the 587 of a change of layout nothing is left beside its two phases.
 */
#include "support/support.h"

#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"
#include "ipu/plan/plan_vector.h"

struct expected {
	const char *part;
	int64_t cycles, tiles, bytes;
};

#define MOST 12

struct example {
	struct ipu_op op;
	int64_t tiles;                /* of the target; 0: all */
	struct expected phases[MOST]; /* up to the one without a part */
};

static struct ipu_target target_of(int64_t tiles)
{
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", tiles, &target, NULL), ST_OK);
	target.phase_cycles = 450;
	return target;
}

static void check_phases(const struct ipu_plan *plan, const struct expected *expected)
{
	int count = 0;

	while (count < MOST && expected[count].part)
		count++;
	assert_int_equal(plan->phase_count, count);
	for (int i = 0; i < count; i++) {
		assert_string_equal(plan->phases[i].part, expected[i].part);
		assert_int_equal(plan->phases[i].cycles, expected[i].cycles);
		assert_int_equal(plan->phases[i].tiles, expected[i].tiles);
		assert_int_equal(plan->phases[i].bytes, expected[i].bytes);
	}
}

static void check(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ipu_target target = target_of(examples[i].tiles);
		struct ipu_planner *planner;
		const struct ipu_plan *plan;

		assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
		assert_int_equal(ipu_planner_plan(planner, &examples[i].op, NULL, &plan, NULL),
				 ST_OK);
		check_phases(plan, examples[i].phases);
		ipu_planner_free(planner);
	}
}

static void test_maps_follow_their_vertices(void **state)
{
	static const struct example examples[] = {
		/* A ReLU of 64 x 26 x 26 x 32 = 1384448: 692224 vectors, 471 on a tile, 1470 tiles.
		 * 942 elements, 157 a worker, 79 vectors: 9 + 6 (20 + 79 x 2). */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 1384448, .operands = 1, .times = {[IPU_FN_RELU] = 1}}},
		 0,
		 {{"Op", 1077, 1470, 0}}},
		/* SGD of 784 x 128 + 128 weights: 35 vectors on each of 1436 tiles; 12 elements a
		 * worker, 6 vectors: 45 + 6 (15 + 6 + 3 x 5). The gradient comes, 70 x 4 / 4, and
		 * is put in place: 0.44 x 280 = 123.2. */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 100480, .operands = 2, .times = {[IPU_FN_SCALED_ADD] = 1}}},
		 0,
		 {{"Op/ExchangePre", 70, 1436, 401920},
		  {"Op/OnTileCopyPre", 124, 1436, 0},
		  {"Op", 261, 1436, 0}}},
		/* A bias of 10 on 64 x 10: a vector on each of 320 tiles, and 2 of the 10 biases:
		 * 11 + 6 (20 + 2). */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 640,
			       .operands = 1,
			       .broadcast = 10,
			       .times = {[IPU_FN_ADD] = 1}}},
		 0,
		 {{"Op/ExchangePre", 2, 320, 2560}, {"Op", 143, 320, 0}}},
		/* The same with a second operand of that size: both come, and 8 bytes are put in
		 * place: 0.44 x 8 = 3.5. */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 640,
			       .operands = 2,
			       .broadcast = 10,
			       .times = {[IPU_FN_ADD] = 1}}},
		 0,
		 {{"Op/ExchangePre", 4, 320, 5120},
		  {"Op/OnTileCopyPre", 4, 320, 0},
		  {"Op", 143, 320, 0}}},
		/* 10000 exponentials in float16: 2 vectors of 4 on 1250 tiles; 2 a worker, 1
		 * vector: 11 + 6 (58 + 4). In float32, 4 vectors of 2 on 1250 tiles: 58 + 6. */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .dtype = IPU_FLOAT16,
		  .elements = {.count = 10000, .operands = 1, .times = {[IPU_FN_EXP] = 1}}},
		 0,
		 {{"Op", 383, 1250, 0}}},
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 10000, .operands = 1, .times = {[IPU_FN_EXP] = 1}}},
		 0,
		 {{"Op", 395, 1250, 0}}},
		/* Dropout's mask, 12 on each tile: 6 + 24 x 6 + 12. */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 1472 * 12, .times = {[IPU_FN_RANDOM] = 1}}},
		 0,
		 {{"Op", 162, 1472, 0}}},
		/* Zeros, 120 on each tile: 6 (22 + 10). */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 1472 * 120, .times = {[IPU_FN_FILL] = 1}}},
		 0,
		 {{"Op", 192, 1472, 0}}},
		/* A cast, 120 on each tile: 10 loads of float32 a worker, 6 (10 + 26), from either
		 * side. */
		{{.kind = IPU_OP_ELEMENTWISE,
		  .elements = {.count = 1472 * 120, .times = {[IPU_FN_CAST] = 1}}},
		 0,
		 {{"Op", 216, 1472, 0}}},
		{{.kind = IPU_OP_ELEMENTWISE,
		  .dtype = IPU_FLOAT16,
		  .elements = {.count = 1472 * 120, .times = {[IPU_FN_CAST] = 1}}},
		 0,
		 {{"Op", 216, 1472, 0}}},
	};

	(void)state;
	check(examples, ARRAY_LEN(examples));
}

static void test_reductions_take_the_best_number_of_tiles(void **state)
{
	static const struct example examples[] = {
		/* 4096 to 64 on a tile: 6 (16 + (10 + 64) 6), 12 outputs in a loop. */
		{{.kind = IPU_OP_REDUCE, .reduce = {4096, 64}}, 1, {{"Reduce0", 2760, 1, 0}}},
		/* On two it would be 1608 + 64 + 312 in three phases, which is slower. */
		{{.kind = IPU_OP_REDUCE, .reduce = {4096, 64}}, 2, {{"Reduce0", 2760, 1, 0}}},
		/* 4 times as many on two: on one, 9672; so 6 (16 + (10 + 128) 6); of 2 partials
		 * 32 x 2 x 4 bytes / 4, 6 (16 + (10 + 2) 3). */
		{{.kind = IPU_OP_REDUCE, .reduce = {16384, 64}},
		 2,
		 {{"Reduce0", 5064, 2, 0},
		  {"Reduce1/ExchangePre", 64, 2, 512},
		  {"Reduce1", 312, 2, 0}}},
		/* 1000 to 1 on a tile, 6156 at once. In 8 sums of 125, then these:
		 * 6 (16 + 10 + 125), 6 (16 + 10 + 8). */
		{{.kind = IPU_OP_REDUCE, .reduce = {1000, 1}},
		 1,
		 {{"Reduce0", 906, 1, 0}, {"Reduce1", 204, 1, 0}}},
		/* A vector of 4 float16 takes 3 more: 6 (16 + (13 + 64) 3), 24 in a loop. */
		{{.kind = IPU_OP_REDUCE, .dtype = IPU_FLOAT16, .reduce = {4096, 64}},
		 1,
		 {{"Reduce0", 1482, 1, 0}}},
		/* Nothing to sum. */
		{{.kind = IPU_OP_REDUCE, .reduce = {1000, 1000}}, 0, {{0}}},
	};

	(void)state;
	check(examples, ARRAY_LEN(examples));
}

static void test_seventy_partials_take_two_stages(void **state)
{
	static const struct ipu__reduce_names names = IPU_REDUCE_NAMES("");
	/* By 8 to 9 x 1000, 7 on each of 1286 tiles: 7 x 8 x 4 bytes / 4, 6 (16 + 10 + 8). By 9 to
	 * 1000, one on each: 9 x 4 / 4, 6 (16 + 10 + 9). */
	static const struct expected expected[MOST] = {{"Reduce0/ExchangePre", 56, 1286, 280000},
						       {"Reduce0", 204, 1286, 0},
						       {"Reduce1/ExchangePre", 9, 1000, 36000},
						       {"Reduce1", 210, 1000, 0}};
	const struct ipu_target target = target_of(0);
	struct ipu_plan plan = {0};
	struct ipu__reducing reducing = {&plan, &target, IPU_FLOAT32, &names, 0};

	(void)state;
	ipu__reduce_over_tiles(&reducing, 70, 1000);
	check_phases(&plan, expected);
}

static void test_pools_receive_what_their_windows_cover(void **state)
{
	static const struct example examples[] = {
		/* 64 x 24 x 24 x 64 to 12 x 12: 22 parts of the batch, 12 rows and 4 groups of 16
		 * channels. A tile has 3 rows of 12, below them 3 x 2 x 24 x 16 inputs; a worker 6
		 * in a piece: 13 + 6 (27 + 4 + 48 + 13 + 15 + 4 (23 + 2 + 8 (4 + 3 x 6))). */
		{{.kind = IPU_OP_POOL,
		  .pool = {true, false, 64, 64, {24, 24}, {12, 12}, {2, 2}, {2, 2}}},
		 0,
		 {{"Pool/ExchangePre", 2304, 1056, 9437184}, {"Pool", 5479, 1056, 0}}},
		/* Its gradient: 22 x 8 x 2 parts, 3 x 3 x 12 of 16 channels; of the 2 x 7 windows
		 * of each image the gradient and the maximum, and what it was of. 18 a worker in 2
		 * pieces, 9 of them in each of the two columns of taps that lie on a row:
		 * 13 + 6 (27 + 4 + 144 + 23 + 2 x 15 + 2 (2 x 23 + 2 x 2 + 8 (2 x 5 + 5 x 9))). */
		{{.kind = IPU_OP_POOL,
		  .pool = {true, true, 64, 64, {24, 24}, {12, 12}, {2, 2}, {2, 2}}},
		 0,
		 {{"Pool/ExchangePre", 3072, 1408, 16777216}, {"PoolGrad", 7261, 1408, 0}}},
		/* Overlapping averages, 8 x 8 x 2 to 6 x 6 by 3 x 3 on one tile: all of the image
		 * comes, 128 x 4 bytes. A row a worker: 13 + 6 (27 + 4 + 6 + 14 + 15 + 9 (23 + 2 +
		 * 5 + 3 x 6)). */
		{{.kind = IPU_OP_POOL,
		  .pool = {false, false, 1, 2, {8, 8}, {6, 6}, {3, 3}, {1, 1}}},
		 1,
		 {{"Pool/ExchangePre", 128, 1, 512}, {"Pool", 3001, 1, 0}}},
		/* The gradient of a global average, 7 x 7 x 2: every input is in the one window. 9
		 * for the busiest worker, in 2 pieces, on each of which each of 7 taps lies once:
		 * 13 + 6 (27 + 4 + 9 + 14 + 2 x 15 + 7 (2 x 23 + 2 x 2 + 2 x 5 + 3 x 2)). */
		{{.kind = IPU_OP_POOL, .pool = {false, true, 1, 2, {7, 7}, {1, 1}, {7, 7}, {1, 1}}},
		 1,
		 {{"Pool/ExchangePre", 2, 1, 8}, {"PoolGrad", 3289, 1, 0}}},
	};

	(void)state;
	check(examples, ARRAY_LEN(examples));
}

static void test_rows_take_the_steps_of_their_work(void **state)
{
	static const struct example examples[] = {
		/* 64 x 10, a row on each of 64 tiles: 40 bytes, 0.44 x 40 to put in place.
		 * Sums: 6 (16 + 10 + 10). Maps of a vector: 11 + 6 (58 + 7 | 12 | 6 | 7).
		 * The 64 losses are sent to one tile: 6 (16 + 10 + 64). */
		{{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_CROSS_ENTROPY, 64, 10}},
		 0,
		 {{"Rows/ExchangePre", 10, 64, 2560},
		  {"Rows/OnTileCopyPre", 18, 64, 0},
		  {"Max/Reduce0", 216, 64, 0},
		  {"SubExp", 401, 64, 0},
		  {"Sum/Reduce0", 216, 64, 0},
		  {"Log", 431, 64, 0},
		  {"SubMul", 395, 64, 0},
		  {"Loss/Reduce0", 216, 64, 0},
		  {"Grad", 401, 64, 0},
		  {"Total/Reduce0/ExchangePre", 64, 1, 256},
		  {"Total/Reduce0", 540, 1, 0}}},
		/* Accuracy: 9 + 6 (20 + 3 x 2), 9 + 6 (20 + 4 x 2). */
		{{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_ARGMAX, 64, 10}},
		 0,
		 {{"Rows/ExchangePre", 10, 64, 2560},
		  {"Rows/OnTileCopyPre", 18, 64, 0},
		  {"ArgMax", 165, 64, 0},
		  {"CalcAccuracy", 177, 64, 0},
		  {"Total/Reduce0/ExchangePre", 64, 1, 256},
		  {"Total/Reduce0", 540, 1, 0}}},
		/* One class: nothing to sum in a row. */
		{{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX, 1, 1}},
		 0,
		 {{"Rows/ExchangePre", 1, 1, 4},
		  {"Rows/OnTileCopyPre", 2, 1, 0},
		  {"SoftmaxSub/Exp", 401, 1, 0},
		  {"SoftmaxDiv", 395, 1, 0}}},
	};

	(void)state;
	check(examples, ARRAY_LEN(examples));
}

static void test_long_rows_are_cut_into_pieces(void **state)
{
	const struct ipu_target target = target_of(0);
	const struct ipu_op op = {.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX, 1, 100000}};
	struct ipu_planner *planner;
	const struct ipu_plan *plan;

	(void)state;
	assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
	assert_int_equal(ipu_planner_plan(planner, &op, NULL, &plan, NULL), ST_OK);
	/* On one tile a map of 7 alone takes 6 x 8334 x 7 cycles. */
	assert_true(plan->split_in > 1 && plan->tiles_used == plan->split_in);
	assert_true(plan->cycles < 6 * 8334 * 7 / 10);
	ipu_planner_free(planner);
}

/* poplibs has one vertex for the cross entropy of given probabilities, of 9 cycles an element, and
 * the softmax before, of 8; XLA's steps make the exponentials once. */
static void test_a_cross_entropy_is_near_the_one_vertex_of_poplibs(void **state)
{
	static const struct ipu_rows shapes[] = {{IPU_ROWS_CROSS_ENTROPY, 640, 10},
						 {IPU_ROWS_CROSS_ENTROPY, 12, 1000}};
	const struct ipu_target target = target_of(1);
	struct ipu_planner *planner;

	(void)state;
	assert_int_equal(ipu_planner_new(&planner, &target, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct ipu_op op = {.kind = IPU_OP_ROWS, .rows = shapes[i]};
		const struct ipu_plan *plan;
		double each;

		assert_int_equal(ipu_planner_plan(planner, &op, NULL, &plan, NULL), ST_OK);
		each = (double)plan->compute_cycles / (double)(op.rows.rows * op.rows.columns);
		print_message("%" PRId64 " x %" PRId64 ": %.1f cycles an element\n", op.rows.rows,
			      op.rows.columns, each);
		assert_true(each > 9 && each < 9 + 8);
	}
	ipu_planner_free(planner);
}

static void test_copies_take_longer_for_smaller_atoms(void **state)
{
	static const struct example examples[] = {
		/* 100 on each tile: 400 bytes / 4; 3.125 x 400. */
		{{.kind = IPU_OP_COPY, .copy = {1472 * 100, 1}},
		 0,
		 {{"OnTileCopyPre/ExchangePre", 100, 1472, 588800},
		  {"OnTileCopy-0", 1250, 1472, 0}}},
		/* Pairs: 0.44 x 400. */
		{{.kind = IPU_OP_COPY, .copy = {1472 * 100, 2}},
		 0,
		 {{"OnTileCopyPre/ExchangePre", 100, 1472, 588800},
		  {"OnTileCopy-0", 176, 1472, 0}}},
		/* float16 one by one: 5.148 x 200 = 1029.6. */
		{{.kind = IPU_OP_COPY, .dtype = IPU_FLOAT16, .copy = {1472 * 100, 1}},
		 0,
		 {{"OnTileCopyPre/ExchangePre", 50, 1472, 294400},
		  {"OnTileCopy-0", 1030, 1472, 0}}},
	};

	(void)state;
	check(examples, ARRAY_LEN(examples));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps_follow_their_vertices),
		cmocka_unit_test(test_reductions_take_the_best_number_of_tiles),
		cmocka_unit_test(test_seventy_partials_take_two_stages),
		cmocka_unit_test(test_pools_receive_what_their_windows_cover),
		cmocka_unit_test(test_rows_take_the_steps_of_their_work),
		cmocka_unit_test(test_long_rows_are_cut_into_pieces),
		cmocka_unit_test(test_a_cross_entropy_is_near_the_one_vertex_of_poplibs),
		cmocka_unit_test(test_copies_take_longer_for_smaller_atoms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
