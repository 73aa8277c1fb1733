/*
 * What every plan on the vector pipe promises, over random operations of each kind.
 */
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"
#include "ipu/plan/plan_vector.h"

#define ROUNDS 400

/* ---- random operations ----------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* 1 to @most, every order of magnitude alike. */
static int64_t size_to(int64_t most)
{
	int bits = 0;

	while (most >> bits)
		bits++;
	return (int64_t)(draw() % (uint64_t)(most >> (draw() % (uint64_t)bits))) + 1;
}

static bool coin(void)
{
	return draw() >> 32 & 1;
}

static struct ipu_op random_elements(void)
{
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE};

	op.elements.count = size_to(1 << 24);
	op.elements.operands = (int64_t)(draw() % 4);
	op.elements.broadcast = coin() ? size_to(4096) : 0;
	for (int mix = (int)(draw() % 4); mix >= 0; mix--)
		op.elements.times[draw() % IPU_FUNCTIONS]++;
	return op;
}

static struct ipu_op random_reduce(void)
{
	struct ipu_op op = {.kind = IPU_OP_REDUCE};

	op.reduce.outputs = draw() % 4 == 0 ? 1 : size_to(1 << 14);
	op.reduce.inputs =
		draw() % 8 == 0 ? op.reduce.outputs : op.reduce.outputs * size_to(1 << 12);
	return op;
}

static struct ipu_op random_pool(void)
{
	struct ipu_op op = {.kind = IPU_OP_POOL};
	struct ipu_pool *pool = &op.pool;

	pool->max = coin();
	pool->backward = coin();
	pool->batch = size_to(64);
	pool->channels = size_to(512);
	for (int d = 0; d < 2; d++) {
		pool->kernel[d] = size_to(7);
		pool->stride[d] = size_to(4);
		pool->out[d] = size_to(56);
		pool->in[d] = (pool->out[d] - 1) * pool->stride[d] + pool->kernel[d];
	}
	return op;
}

static struct ipu_op random_rows(void)
{
	struct ipu_op op = {.kind = IPU_OP_ROWS};

	op.rows.work = (enum ipu_rows_work)(draw() % IPU_ROWS_WORKS);
	op.rows.rows = draw() % 4 == 0 ? 1 : size_to(1 << 14);
	op.rows.columns = draw() % 4 == 0 ? 1 : size_to(100000);
	return op;
}

static struct ipu_op random_copy(void)
{
	return (struct ipu_op){.kind = IPU_OP_COPY, .copy = {size_to(1 << 24), size_to(64)}};
}

static struct ipu_op random_op(void)
{
	static struct ipu_op (*const kinds[])(void) = {random_elements, random_reduce, random_pool,
						       random_rows, random_copy};
	static const enum ipu_dtype dtypes[] = {IPU_FLOAT32, IPU_FLOAT16, IPU_INT32};
	struct ipu_op op = kinds[draw() % ARRAY_LEN(kinds)]();

	op.dtype = dtypes[draw() % ARRAY_LEN(dtypes)];
	return op;
}

static struct ipu_target random_target(int64_t tiles)
{
	struct ipu_target target;
	const char *const *names;
	int count;

	names = ipu_target_names(&count);
	assert_int_equal(ipu_target_get(names[draw() % (uint64_t)count], tiles, &target, NULL),
			 ST_OK);
	return target;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static struct ipu_plan plan_of(const struct ipu_target *target, const struct ipu_op *op)
{
	struct ipu_planner *planner;
	const struct ipu_plan *plan;
	struct ipu_plan copy;

	assert_int_equal(ipu_planner_new(&planner, target, NULL), ST_OK);
	assert_int_equal(ipu_planner_plan(planner, op, NULL, &plan, NULL), ST_OK);
	copy = *plan;
	ipu_planner_free(planner);
	return copy;
}

static void show(const struct ipu_op *op, const struct ipu_target *target)
{
	const int64_t *number = (const int64_t *)(const void *)&op->conv;

	printf("%s %s on %" PRId64 " tiles of %s:", ipu_op_kind_name(op->kind),
	       ipu_dtype_name(op->dtype), target->tiles, target->name);
	for (int i = 0; i < 11; i++)
		printf(" %" PRIx64, number[i]);
	printf("\n");
}

static void expect(bool holds, const char *promise, const struct ipu_op *op,
		   const struct ipu_target *target)
{
	if (holds)
		return;
	show(op, target);
	fail_msg("%s", promise);
}

#define EXPECT(holds) expect((holds), #holds, op, target)

static void check_phase(const struct ipu_phase *phase, const struct ipu_plan *plan,
			const struct ipu_op *op, const struct ipu_target *target)
{
	EXPECT(phase->tiles >= 1 && phase->tiles <= target->tiles);
	EXPECT(phase->repeats == 1);
	EXPECT(phase->cycles > 0 && phase->mean_cycles > 0);
	EXPECT(phase->mean_cycles <= (double)phase->cycles * (1 + 1e-9));
	EXPECT(phase->part != NULL);
	EXPECT((phase->kind == IPU_COMPUTE) == (phase->vertex != NULL));
	if (phase->kind == IPU_COMPUTE) {
		EXPECT(phase->vertices >= phase->tiles && phase->bytes == 0);
		return;
	}
	/* No tile receives more than the busiest, which keeps it until it is used. */
	EXPECT(phase->vertices == 0 && phase->bytes >= 1);
	EXPECT((double)phase->bytes <=
	       (double)phase->cycles * target->exchange_bytes_cycle * (double)phase->tiles);
	EXPECT((double)plan->temporary_bytes >=
	       ((double)phase->cycles - 1) * target->exchange_bytes_cycle);
}

static void check_plan(const struct ipu_plan *plan, const struct ipu_op *op,
		       const struct ipu_target *target)
{
	for (int i = 0; i < plan->phase_count; i++)
		check_phase(&plan->phases[i], plan, op, target);
	EXPECT(plan->tiles_used <= target->tiles);
	EXPECT(plan->method == IPU_METHOD_NONE && plan->serial_splits == 1);
	EXPECT(plan->split_batch <= target->tiles && plan->split_field <= target->tiles);
	EXPECT(plan->phase_count == 0 || (plan->code_bytes > 0 && plan->tile_balance > 0));
	EXPECT(plan->phase_count == 0 || plan->tile_balance <= 1 + 1e-9);
	EXPECT(plan->cycles == ipu__plan_time(target, plan));
	/* Nothing to sum is the only work that takes no time. */
	EXPECT((plan->phase_count == 0) ==
	       (op->kind == IPU_OP_REDUCE && op->reduce.inputs <= op->reduce.outputs));
}

static void test_phases_fit_the_target_and_a_mean_is_below_its_busiest(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const struct ipu_target target = random_target(size_to(1216));
		const struct ipu_op op = random_op();
		const struct ipu_plan plan = plan_of(&target, &op);

		check_plan(&plan, &op, &target);
	}
}

static void test_more_tiles_never_make_a_plan_slower(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const struct ipu_op one = random_op(), *op = &one;
		const struct ipu_target all = random_target(0), *target = &all;
		struct ipu_target fewer = all;
		int64_t before = INT64_MAX;

		for (fewer.tiles = size_to(8); fewer.tiles < all.tiles;
		     fewer.tiles += size_to(200)) {
			const int64_t cycles = plan_of(&fewer, op).cycles;

			target = &fewer;
			EXPECT(cycles <= before);
			before = cycles;
		}
		target = &all;
		EXPECT(plan_of(target, op).cycles <= before);
	}
}

/* All of a machine's tiles are a choice, beside the list. */
static void test_all_tiles_may_be_chosen(void **state)
{
	(void)state;
	for (int tiles = 1216; tiles <= 1472; tiles += 256) {
		struct ipu_target target;
		int64_t choices[IPU_TILE_CHOICES];
		int count;

		assert_int_equal(ipu_target_get("ipu2", tiles, &target, NULL), ST_OK);
		count = ipu__tile_choices(&target, target.tiles, choices);
		assert_true(count > 2);
		assert_int_equal(choices[count - 1], tiles);
		assert_int_equal(choices[0], 1);
	}
}

static void test_a_tile_more_is_never_slower(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const struct ipu_op one = random_op(), *op = &one;
		struct ipu_target one_more = random_target(0), *target = &one_more;
		int64_t before;

		target->tiles = size_to(target->tiles - 1);
		before = plan_of(target, op).cycles;
		target->tiles++;
		EXPECT(plan_of(target, op).cycles <= before);
	}
}

/* ---- more elements --------------------------------------------------------------------------- */

/* A dimension in which an operation may grow. Not a pool's channels: with more of them a tile has
 * fewer positions, whose windows overlap less or fit better. Not a reduction's outputs: there is
 * less to sum. */
static int64_t *growing(struct ipu_op *op)
{
	switch (op->kind) {
	case IPU_OP_ELEMENTWISE:
		return &op->elements.count;
	case IPU_OP_REDUCE:
		return &op->reduce.inputs;
	case IPU_OP_POOL:
		return &op->pool.batch;
	case IPU_OP_ROWS:
		return coin() ? &op->rows.rows : &op->rows.columns;
	default:
		return &op->copy.count;
	}
}

static void test_more_elements_are_never_faster(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const struct ipu_target any = random_target(size_to(1216)), *target = &any;
		struct ipu_op one = random_op(), *op = &one;
		const int64_t before = plan_of(target, op).cycles;
		int64_t *grown = growing(&one);

		*grown += size_to(*grown);
		/* A reduction's numbers of tiles to choose from are a twentieth apart. */
		EXPECT((double)plan_of(target, op).cycles >=
		       (double)before * (op->kind == IPU_OP_REDUCE ? 0.9 : 1));
	}
}

/* A float16 vector holds twice as many, so it may be the emptier one: by how much that can cost. */
static int64_t vector_cycles(const struct ipu_op *op, const struct ipu_target *target)
{
	switch (op->kind) {
	case IPU_OP_ELEMENTWISE:
		return target->workers *
		       (int64_t)ipu__map_vertex(op->elements.times, IPU_FLOAT16).cycles_each;
	case IPU_OP_ROWS: /* 12 for an argmax, at most 17 for each of 4 maps */
		return target->workers * 4 * 17;
	case IPU_OP_REDUCE: /* 3 for a vector on a tile, in two compute sets at most */
		return target->workers * 3 * 2;
	case IPU_OP_POOL:
		return target->workers *
			       (13 + 20 + 7 + 5 * op->pool.kernel[0] * op->pool.kernel[1]) +
		       2 * op->pool.kernel[0] * op->pool.kernel[1];
	default:
		return 0;
	}
}

/* The same for either type, or a little slower in float16: what the scalar unit does. */
static bool is_as_slow_in_float16(const struct ipu_op *op)
{
	static const enum ipu_function functions[] = {IPU_FN_RANDOM, IPU_FN_CAST, IPU_FN_DIVIDE,
						      IPU_FN_DIVIDE_BY, IPU_FN_SQRT};

	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (op->kind == IPU_OP_ELEMENTWISE && op->elements.times[functions[i]] > 0)
			return true;
	return false;
}

static void test_float16_is_slower_by_no_more_than_a_vector(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const struct ipu_target any = random_target(size_to(1216)), *target = &any;
		struct ipu_op one = random_op(), *op = &one;
		int64_t single;

		/* Copies of 2-byte atoms are dearer. */
		if (one.kind == IPU_OP_COPY || is_as_slow_in_float16(op))
			continue;
		one.dtype = IPU_FLOAT32;
		single = plan_of(target, op).cycles;
		one.dtype = IPU_FLOAT16;
		EXPECT(plan_of(target, op).cycles <= single + vector_cycles(op, target));
	}
}

static void test_float16_copies_are_dearer_where_atoms_are_below_8_bytes(void **state)
{
	const struct ipu_target any = random_target(0), *target = &any;
	struct ipu_op op = {.kind = IPU_OP_COPY, .copy = {1 << 24, 1}};
	/* float16 by float32, per element: 2 x 5.148 / (4 x 3.125), 2 x 3.125 / (4 x 0.44), 1/2. */
	static const struct {
		int64_t atom;
		double ratio;
	} cases[] = {{1, 0.824}, {2, 3.551}, {4, 0.5}};
	const double rearranged = 587 - 2 * target->phase_cycles;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double single, half;

		op.copy.atom = cases[i].atom;
		op.dtype = IPU_FLOAT32;
		single = (double)plan_of(target, &op).compute_cycles - rearranged;
		op.dtype = IPU_FLOAT16;
		half = (double)plan_of(target, &op).compute_cycles - rearranged;
		assert_close(half / single, cases[i].ratio, 0.001);
	}
}

/* ---- extremes -------------------------------------------------------------------------------- */

static void test_huge_dimensions_stay_in_range(void **state)
{
	const int64_t huge = INT64_C(1) << 40;
	const struct ipu_op ops[] = {
		{.kind = IPU_OP_ELEMENTWISE,
		 .elements = {.count = huge,
			      .operands = huge,
			      .broadcast = INT64_MAX,
			      .times = {[IPU_FN_TANH] = 255, [IPU_FN_LOG] = 255}}},
		{.kind = IPU_OP_REDUCE, .reduce = {huge, 1}},
		{.kind = IPU_OP_REDUCE, .reduce = {huge, huge - 1}},
		{.kind = IPU_OP_REDUCE, .reduce = {1, huge}},
		{.kind = IPU_OP_POOL,
		 .pool = {true,
			  false,
			  huge,
			  huge,
			  {huge, huge},
			  {huge, huge},
			  {huge, huge},
			  {huge, huge}}},
		{.kind = IPU_OP_POOL,
		 .pool = {true,
			  true,
			  huge,
			  huge,
			  {huge, huge},
			  {huge, huge},
			  {huge, huge},
			  {1, 1}}},
		{.kind = IPU_OP_POOL,
		 .pool = {false, true, 1, 1, {1, 1}, {1, 1}, {huge, 1}, {1, huge}}},
		{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_CROSS_ENTROPY, huge, huge}},
		{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_ARGMAX, 1, huge}},
		{.kind = IPU_OP_ROWS, .rows = {IPU_ROWS_SOFTMAX, huge, 1}},
		{.kind = IPU_OP_COPY, .copy = {huge, huge}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ops) * 2; i++) {
		const struct ipu_target any = random_target(i % 2 ? 1 : 0), *target = &any;
		const struct ipu_op *op = &ops[i / 2];
		const clock_t begin = clock();
		const struct ipu_plan plan = plan_of(target, op);

		EXPECT(plan.cycles >= 0 && plan.bytes_exchanged >= 0);
		EXPECT(plan.temporary_bytes >= 0 && plan.code_bytes >= 0);
		check_plan(&plan, op, target);
		/* It is 0.2 ms; what grows with the counts would be minutes. */
		EXPECT(clock() - begin < CLOCKS_PER_SEC);
	}
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void test_stages_are_one_to_64_two_to_4096_then_three(void **state)
{
	static const struct {
		int64_t partials;
		int stages;
	} cases[] = {{1, 0},    {2, 1},    {64, 1},   {65, 2},
		     {1472, 2}, {4096, 2}, {4097, 3}, {1 << 30, 3}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(ipu__reduce_stages(cases[i].partials), cases[i].stages);
}

static void test_each_stage_reads_what_the_last_left_until_the_outputs(void **state)
{
	static const struct ipu__reduce_names names = IPU_REDUCE_NAMES("");

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const struct ipu_target any = random_target(0), *target = &any;
		const int64_t partials = size_to(1472), outputs = size_to(1 << 14);
		const struct ipu_op op_any = {.kind = IPU_OP_REDUCE}, *op = &op_any;
		struct ipu_plan plan = {0};
		struct ipu__reducing reducing = {&plan, target, IPU_FLOAT32, &names, 0};
		int64_t left = partials;

		ipu__reduce_over_tiles(&reducing, partials, outputs);
		EXPECT(plan.phase_count == 2 * ipu__reduce_stages(partials));
		for (int p = 0; p < plan.phase_count; p += 2) {
			EXPECT(plan.phases[p].kind == IPU_EXCHANGE);
			EXPECT(plan.phases[p + 1].kind == IPU_COMPUTE);
			EXPECT(plan.phases[p].bytes == outputs * left * 4);
			/* What is left is what the next stage receives. */
			left = p + 2 < plan.phase_count ? plan.phases[p + 2].bytes / 4 / outputs
							: 1;
			EXPECT(left >= 1 && left < plan.phases[p].bytes / 4 / outputs);
		}
		EXPECT(left == 1);
	}
}

static int restart(void **state)
{
	(void)state;
	seed = UINT64_C(0x9E3779B97F4A7C15);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, restart)
	const struct CMUnitTest tests[] = {
		TEST(test_phases_fit_the_target_and_a_mean_is_below_its_busiest),
		TEST(test_more_tiles_never_make_a_plan_slower),
		TEST(test_all_tiles_may_be_chosen),
		TEST(test_a_tile_more_is_never_slower),
		TEST(test_more_elements_are_never_faster),
		TEST(test_float16_is_slower_by_no_more_than_a_vector),
		TEST(test_float16_copies_are_dearer_where_atoms_are_below_8_bytes),
		TEST(test_huge_dimensions_stay_in_range),
		TEST(test_stages_are_one_to_64_two_to_4096_then_three),
		TEST(test_each_stage_reads_what_the_last_left_until_the_outputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
