/*
 * The roofline by hand, and what it does to a published step (docs/cost-model.md).
 */
#include "support/support.h"

#include <math.h>
#include <stdio.h>

#include "ipu/ipu_plan.h"

static struct ipu_target mk2(void)
{
	struct ipu_target target;

	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	return target;
}

static void test_a_matmul_takes_the_longer_of_arithmetic_and_exchange(void **state)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .m = 4096, .n = 4096, .k = 4096};
	struct ipu_cost cost;

	(void)state;
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.flops, INT64_C(137438953472));
	assert_int_equal(cost.compute_cycles, 2917777); /* / (1472 x 32), up */
	assert_int_equal(cost.bytes_exchanged, 3 * 4 * 4096 * 4096);
	assert_int_equal(cost.exchange_cycles, 34193); /* / (1472 x 4), up */
	assert_int_equal(cost.sync_cycles, 126);
	assert_int_equal(cost.cycles, 2917777 + 126);
	op.k = 1;
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.cycles, cost.exchange_cycles + 126);
}

static void test_given_bytes_replace_the_operands_size(void **state)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .m = 8, .n = 8, .k = 8, .bytes_in = 5888 * 10};
	struct ipu_cost cost;

	(void)state;
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.exchange_cycles, 10);
	assert_int_equal(cost.cycles, 136);
}

static void test_the_rest_runs_on_the_vector_lanes(void **state)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE, .n = 2944 * 7, .work = 3};
	struct ipu_cost cost;

	(void)state;
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.flops, 2944 * 7 * 3);
	assert_int_equal(cost.compute_cycles, 21);
	assert_int_equal(cost.exchange_cycles, 0);
	op = (struct ipu_op){.kind = IPU_OP_REDUCE, .n = 2944 * 4 + 10, .m = 10};
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.flops, 2944 * 4);
	assert_int_equal(cost.compute_cycles, 4);
	op = (struct ipu_op){.kind = IPU_OP_COPY, .n = 1472 * 9};
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.flops, 0);
	assert_int_equal(cost.exchange_cycles, 9);
}

static void test_what_a_roofline_cannot_know_is_unknown(void **state)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_COPY, .n = 1};
	struct ipu_cost cost;

	(void)state;
	ipu_plan(&target, &op, &cost);
	assert_true(cost.tiles_used == IPU_UNKNOWN && cost.code_bytes == IPU_UNKNOWN);
	assert_true(isnan(cost.tile_balance));
}

static void test_huge_and_empty_operations_stay_in_range(void **state)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .m = INT64_MAX, .n = INT64_MAX, .k = INT64_MAX};
	struct ipu_cost cost;

	(void)state;
	ipu_plan(&target, &op, &cost);
	assert_int_equal(cost.flops, INT64_C(1) << 60);
	assert_true(cost.cycles > 0);
	for (int kind = 0; kind < IPU_OP_KINDS; kind++) {
		op = (struct ipu_op){.kind = (enum ipu_op_kind)kind};
		ipu_plan(&target, &op, &cost);
		assert_int_equal(cost.cycles, 126);
		assert_true(ipu_op_kind_name(op.kind) != NULL);
	}
}

/* ---- the published convnet step -----------------------------------------------------------------
 */

/* Convolution of [batch, height, width, in] with 3 x 3 taps to @out: as a matmul, three times
 * (forward, by input, by weights; the first layer needs no gradient of its input). */
static int64_t conv_cycles(const struct ipu_target *target, int64_t positions, int64_t in,
			   int64_t out, int64_t taps, bool first)
{
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .m = positions, .k = taps * in, .n = out};
	struct ipu_cost cost;

	ipu_plan(target, &op, &cost);
	return cost.cycles * (first ? 2 : 3);
}

/* The Keras MNIST convnet, batch 32: Conv2D 32 and 64 (3 x 3), pools, Dense 10: 224 us a step were
 * published. The roofline of its matmuls is what docs/cost-model.md calls optimistic. */
static void test_the_roofline_of_the_convnet_step_is_optimistic(void **state)
{
	struct ipu_target target = mk2();
	int64_t cycles = conv_cycles(&target, 32 * 26 * 26, 1, 32, 9, true) +
			 conv_cycles(&target, 32 * 11 * 11, 32, 64, 9, false) +
			 conv_cycles(&target, 32, 1600, 10, 1, false);
	double us = (double)ipu_target_ns(&target, cycles) / 1000;

	(void)state;
	print_message(
		"roofline of the convnet step's matmuls: %lld cycles, %.1f us (published 224)\n",
		(long long)cycles, us);
	assert_true(us > 5 && us < 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_matmul_takes_the_longer_of_arithmetic_and_exchange),
		cmocka_unit_test(test_given_bytes_replace_the_operands_size),
		cmocka_unit_test(test_the_rest_runs_on_the_vector_lanes),
		cmocka_unit_test(test_what_a_roofline_cannot_know_is_unknown),
		cmocka_unit_test(test_huge_and_empty_operations_stay_in_range),
		cmocka_unit_test(test_the_roofline_of_the_convnet_step_is_optimistic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
