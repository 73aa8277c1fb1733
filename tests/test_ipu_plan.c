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

#define BATCH 64

/* A matmul done @times: forward, gradient of the weights, gradient of the input. */
static void add_matmul(struct ipu_cost *sum, int64_t m, int64_t k, int64_t n, int times)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_MATMUL, .m = m, .n = n, .k = k};
	struct ipu_cost cost;

	ipu_plan(&target, &op, &cost);
	sum->cycles += times * cost.cycles;
	sum->compute_cycles += times * cost.compute_cycles;
}

static void add_elementwise(struct ipu_cost *sum, int64_t n, int64_t work)
{
	struct ipu_target target = mk2();
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE, .n = n, .work = work};
	struct ipu_cost cost;

	ipu_plan(&target, &op, &cost);
	sum->cycles += cost.cycles;
}

/* The Keras MNIST convnet, batch 64: Conv2D 32 and 64 (3 x 3), pools, dropout, Dense 10: 224 us a
 * step were published. What the roofline makes of it stands in docs/cost-model.md. */
static void test_the_roofline_of_the_convnet_step_is_optimistic(void **state)
{
	static const int64_t activations[] = {26 * 26 * 32, 13 * 13 * 32, 11 * 11 * 64, 5 * 5 * 64};
	struct ipu_cost sum = {0};
	struct ipu_target target = mk2();
	double us;

	(void)state;
	add_matmul(&sum, (int64_t)BATCH * 26 * 26, 9, 32, 2); /* the images need no gradient */
	add_matmul(&sum, (int64_t)BATCH * 11 * 11, 9 * 32, 64, 3);
	add_matmul(&sum, BATCH, 1600, 10, 3);
	for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
		add_elementwise(&sum, BATCH * activations[i], 4); /* ReLU or pool, forward */
		add_elementwise(&sum, BATCH * activations[i], 4); /* and backward */
	}
	add_elementwise(&sum, 34826, 2); /* SGD on all weights */
	us = (double)ipu_target_ns(&target, sum.cycles) / 1000;
	print_message("simulated (roofline): convnet step %lld cycles, %.1f us, of them matmul "
		      "arithmetic %lld cycles; published: 224 us\n",
		      (long long)sum.cycles, us, (long long)sum.compute_cycles);
	assert_in_range((unsigned)sum.compute_cycles, 19360,
			19380); /* worked out by hand: 19,363 */
	assert_true(us > 15 && us < 224);
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
