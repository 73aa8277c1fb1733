/*
 * Cycles of vertices, against sums worked by hand from the formulas of docs/cost-model.md.
 */
#include "support/support.h"

#include <math.h>

#include "common/mem.h"
#include "ipu/plan/plan_vertex.h"

static struct ipu_target target_of(const char *name)
{
	struct ipu_target target;

	assert_int_equal(ipu_target_get(name, 0, &target, NULL), ST_OK);
	return target;
}

static const struct ipu_amp_use float_use = {IPU_AMP_FLOAT, 16, 8, 1, 1};
static const struct ipu_amp_use half_use = {IPU_AMP_HALF_HALF, 16, 16, 1, 1};
static const struct ipu_amp_use mixed_use = {IPU_AMP_HALF, 8, 16, 2, 1};
static const struct ipu_amp_use old_use = {IPU_AMP_HALF_HALF, 8, 16, 1, 1};

static void test_amp_1x1_workers(void **state)
{
	const struct ipu_target target = target_of("ipu2");
	static const struct {
		const struct ipu_amp_use *use;
		double positions;
		bool zero;
		double cycles;
	} cases[] = {
		/* 6 workers; float32: 47, 46, then 46 + 8 (n - 3); zeroing 2 + 8 n. All have as
		 * much to do: 14 after the fastest. */
		{&float_use, 6, false, 6 * 47 + 14},
		{&float_use, 6, true, 6 * (47 + 2 + 8) + 14},
		{&float_use, 12, true, 6 * (46 + 2 + 16) + 14},
		{&float_use, 60, false, 6 * (46 + 8 * 7) + 14},
		{&float_use, 60, true, 6 * (46 + 2 + 80 + 8 * 7) + 14},
		/* The slowest has one position more. */
		{&float_use, 1, false, 6 * 47},
		{&float_use, 55, false, 6 * (46 + 8 * 7)},
		/* float16: 33, 42, 38 + 4 (n - 3), less 7 for state that is kept. */
		{&half_use, 6, false, 6 * 26 + 14},
		{&half_use, 6, true, 6 * 25 + 14},
		{&half_use, 12, false, 6 * 35 + 14},
		{&half_use, 59, false, 6 * (31 + 28)},
		{&mixed_use, 59, true, 6 * (30 + 28)},
		/* Mk1's float16 partials: 39, 40, 41 + 4 (n - 3); zeroing 2 + 2 n. */
		{&old_use, 6, false, 6 * 39 + 14},
		{&old_use, 11, true, 6 * (40 + 6)},
		{&old_use, 59, true, 6 * (41 + 22 + 28)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_close(ipu__amp_1x1_inner(&target, cases[i].use, cases[i].positions,
						cases[i].zero),
			     cases[i].cycles, 1e-9);
}

static void test_amp_1x1_supervisor(void **state)
{
	const struct ipu_target target = target_of("ipu2");
	const struct ipu_vertex_share share = {
		.positions = 59, .in_groups = 3, .out_groups = 2, .conv_groups = 1};
	/* float32, 16 units: a load of 16 x 32 / 8 cycles; k = 1. */
	double next = 6 * (46 + 56), first = 6 * (46 + 82 + 56);
	double by_float =
		50 + 12 + 1 + 2 * (15 + 2 * (19 + 6 + 64 + next)) + 11 + 2 * (18 + 7 + 64 + first);
	/* float16, 8 units, 2 passes: 32 cycles; r = 7 once and 3 for each further group. */
	double mixed_next = 6 * (31 + 28), mixed_first = 6 * (30 + 28);
	double by_mixed = 50 + 42 + 18 * 2 + 12 + 1 +
			  2 * (15 + 2 * (19 + 2 * (6 + 32 + mixed_next))) + 11 +
			  2 * (18 + 2 * (7 + 32 + mixed_first));

	(void)state;
	assert_close(ipu__amp_1x1(&target, &float_use, &share), by_float, 1e-9);
	assert_close(ipu__amp_1x1(&target, &mixed_use, &share), by_mixed, 1e-9);
}

static void test_amp_nx1_splits_rows_among_workers(void **state)
{
	const struct ipu_target target = target_of("ipu2");

	(void)state;
	/* Six rows of 10: one each, 17 + 3 + 45 + 8 x 7 - 9. */
	assert_close(ipu__amp_nx1_worker(&target, &float_use, 6, 10), 17 + 3 + 45 + 56 - 9, 1e-9);
	/* A row of 12: two positions each. */
	assert_close(ipu__amp_nx1_worker(&target, &float_use, 1, 12), 17 + 3 + 44 - 9, 1e-9);
	/* Two rows of 9, three positions each: none goes over an end. */
	assert_close(ipu__amp_nx1_worker(&target, &float_use, 2, 9), 17 + 3 + 45 - 9, 1e-9);
	/* Two rows of 6, two each. Nothing: as long as a worker's start. */
	assert_close(ipu__amp_nx1_worker(&target, &half_use, 2, 6), 18 + 3 + 34 - 9, 1e-9);
}

static void test_amp_nx1_loops_over_taps(void **state)
{
	const struct ipu_target target = target_of("ipu2");
	const struct ipu_vertex_share share = {.positions = 60,
					       .in_groups = 2,
					       .out_groups = 1,
					       .conv_groups = 1,
					       .taps_outer = 3,
					       .taps_inner = 3,
					       .worker = 112};
	double inner = 3 * (14 + 3 * (12 + 64 + 15 + 3)) + 6 * 112 * 9;
	double zeroing = 6 * (80 + 5); /* 60 x 16 outputs, 6 workers, 2 at once */

	(void)state;
	assert_close(ipu__amp_nx1(&target, &float_use, &share),
		     109 + 54 + 54 + 18 + 1 + 16 + 2 * (14 + 14 + inner) + zeroing, 1e-9);
}

/* 12 positions, 2 a worker, of one group; 3 taps. */
static const struct ipu_vertex_share twelve = {.positions = 12,
					       .in_groups = 1,
					       .out_groups = 1,
					       .conv_groups = 1,
					       .taps_outer = 3,
					       .taps_inner = 1};

static void test_the_horizontal_mac_sums_vectors(void **state)
{
	static const struct {
		enum ipu_dtype dtype, partials;
		double channels, dot;
	} cases[] = {
		{IPU_FLOAT32, IPU_FLOAT32, 4, 7 + 2}, /* two vectors */
		{IPU_FLOAT32, IPU_FLOAT32, 3, 8 + 2 * 3},
		{IPU_FLOAT16, IPU_FLOAT32, 8, 7 + 2},
		{IPU_FLOAT16, IPU_FLOAT32, 6, 8 + 2 * 3},
		{IPU_FLOAT16, IPU_FLOAT16, 8, 11 + 2}, /* of two outputs */
		{IPU_FLOAT16, IPU_FLOAT16, 6, 13 + 2 * 3},
	};
	const struct ipu_target target = target_of("ipu2");

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		const bool pair = cases[c].partials == IPU_FLOAT16;
		const double zeroing = pair ? 10 + 2 + 5 : 9 + 1 + 5;
		const double worker = 16 + 3 * (16 + 19 + 2 * (7 + cases[c].dot));

		assert_close(ipu__horizontal_mac(&target, cases[c].dtype, cases[c].partials,
						 cases[c].channels, pair ? 2 : 1, &twelve),
			     (cases[c].dtype == IPU_FLOAT16 ? 65 : 58) + 6 * zeroing + 23 + 15 +
				     10 + 6 * worker,
			     1e-9);
	}
}

/* Three vectors of a group take 6 cycles, one more for each further vector; fewer, or parts of one,
 * are written one by one. */
static void test_an_outer_product_needs_three_vectors(void **state)
{
	static const struct {
		enum ipu_dtype dtype;
		double channels, row;
	} cases[] = {
		{IPU_FLOAT32, 6, 6},        {IPU_FLOAT32, 12, 6 + 3},   {IPU_FLOAT32, 2, 10 + 4},
		{IPU_FLOAT32, 11, 10 + 22}, {IPU_FLOAT16, 12, 6},       {IPU_FLOAT16, 20, 6 + 2},
		{IPU_FLOAT16, 4, 10 + 10},  {IPU_FLOAT16, 18, 10 + 45},
	};
	const struct ipu_target target = target_of("ipu2");

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(cases); c++)
		assert_close(
			ipu__outer_product(&target, cases[c].dtype, cases[c].channels, &twelve),
			6 * (25 + (cases[c].dtype == IPU_FLOAT16 ? 10 : 11) + 2 * cases[c].row),
			1e-9);
}

static void test_transposing(void **state)
{
	static const struct {
		enum ipu_dtype dtype;
		double rows, columns, count, cycles;
	} cases[] = {
		{IPU_FLOAT32, 8, 8, 12, 6 * (27 + 2 * (11 + 4 * (6 + 3 * 3)))},
		{IPU_FLOAT32, 2, 6, 1, 6 * (27 + 11 + 6 + 3 * 2)},
		{IPU_FLOAT32, 5, 3, 1, 6 * (13 + 8 + 3 * (5 + 10))},
		{IPU_FLOAT32, 4, 3, 1, 6 * (13 + 8 + 3 * (5 + 8))},
		{IPU_FLOAT16, 16, 16, 6, 7 + 6 * (29 + 18 + 4 * (12 + 4 * 2))},
		{IPU_FLOAT16, 12, 4, 7, 7 + 6 * (27 + 2 * (15 + 20 + 4))},
		{IPU_FLOAT16, 4, 4, 6, 7 + 6 * 29},
		{IPU_FLOAT16, 4, 4, 24, 7 + 6 * (37 + 8)},
		{IPU_FLOAT16, 2, 4, 1, 6 * (15 + 8 + 4 * (5 + 5))},
		{IPU_FLOAT16, 4, 6, 1, 6 * (15 + 8 + 6 * (5 + 10))},
	};
	const struct ipu_target target = target_of("ipu2");

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(cases); c++)
		assert_close(ipu__transpose(&target, cases[c].dtype, cases[c].rows,
					    cases[c].columns, cases[c].count),
			     cases[c].cycles, 1e-9);
}

static void test_the_vector_pipe(void **state)
{
	const struct ipu_target target = target_of("ipu2");
	const struct ipu_vertex_share share = twelve;
	const double fixed = 587 - 2 * target.phase_cycles;

	(void)state;
	/* A worker: 2 positions of 3 kernel rows, one tap each: 19 + 6 x 15. */
	assert_close(ipu__vertical_mac(&target, IPU_FLOAT32, 4, &share),
		     101 + 4 + 6 + 32 + 24 + 6 * (19 + 6 * 15) + 9 + 9, 1e-9);
	/* float16 partials: the copies of 12 outputs are zeroed 4 at once; 5 are summed into the first. */
	assert_close(ipu__vertical_mac(&target, IPU_FLOAT16, 4, &share),
		     100 + 4 + 3 + 32 + 24 + 6 * (18 + 6 * 13) + 10 + floor((7 + 5) * 2 / 4.0),
		     1e-9);
	assert_close(ipu__vertical_mac(&target, IPU_FLOAT16, 8, &share),
		     100 + 4 + 3 + 32 + 24 + 6 * (13 + 6 * 25) + 10 + 3, 1e-9);
	assert_close(ipu__vertical_mac(&target, IPU_FLOAT16, 16, &share),
		     100 + 4 + 3 + 32 + 24 + 6 * (25 + 12 * 25) + 10 + floor((7 + 5) * 2 / 16.0),
		     1e-9);
	/* 33 + 6 x (20 + (2 (d - 1) + 8) loops); 4 float32 a loop, 8 float16. */
	assert_close(ipu__reduce_add(&target, IPU_FLOAT32, IPU_FLOAT32, 4, 48),
		     33 + 6 * (20 + 14 * 2), 1e-9);
	assert_close(ipu__reduce_add(&target, IPU_FLOAT16, IPU_FLOAT16, 4, 48), 33 + 6 * (20 + 15),
		     1e-9);
	/* Outputs that fill no loop; partials of more than 32 KiB. */
	assert_close(ipu__reduce_add(&target, IPU_FLOAT32, IPU_FLOAT16, 4, 46), 6 * (32 + 18 * 2),
		     1e-9);
	assert_close(ipu__reduce_add(&target, IPU_FLOAT32, IPU_FLOAT32, 5, 2048),
		     33 + 6 * (20 + 16 * 86), 1e-9);
	assert_close(ipu__reduce_add(&target, IPU_FLOAT32, IPU_FLOAT32, 5, 2064),
		     6 * (32 + 22 * 86), 1e-9);
	assert_close(ipu__cast(&target, IPU_FLOAT32, IPU_FLOAT16, 120), 6 * (10 + 26), 1e-9);
	assert_close(ipu__rearrange(&target, 1000, 32), fixed + 440, 1e-9);
	assert_close(ipu__rearrange(&target, 1000, 4), fixed + 3125, 1e-9);
	assert_close(ipu__rearrange(&target, 1000, 2), fixed + 5148, 1e-9);
	assert_close(ipu__rearrange(&target, 0, 2), 0, 1e-9);
	/* An element in 5/4 of a cycle, or in 5/3 where channels fill no vectors. */
	assert_close(ipu__rearrange_operand(&target, 1200, IPU_FLOAT16, 12), fixed + 750, 1e-9);
	assert_close(ipu__rearrange_operand(&target, 1200, IPU_FLOAT16, 6), fixed + 1000, 1e-9);
	assert_close(ipu__rearrange_operand(&target, 1200, IPU_FLOAT32, 6), fixed + 375, 1e-9);
}

/* A worker's share begins and ends within rows: five rows of 35 positions are cut five times more,
 * two of three only where no row begins. */
static void test_workers_have_pieces_of_rows(void **state)
{
	struct ipu_target target;

	(void)state;
	assert_int_equal(ipu_target_get("ipu2", 0, &target, NULL), ST_OK);
	assert_int_equal((int)ipu__row_pieces(&target, 5, 35), 10);
	assert_int_equal((int)ipu__row_pieces(&target, 2, 3), 6);
	assert_int_equal((int)ipu__row_pieces(&target, 1, 3), 3);
	assert_int_equal((int)ipu__row_pieces(&target, 12, 7), 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amp_1x1_workers),
		cmocka_unit_test(test_amp_1x1_supervisor),
		cmocka_unit_test(test_amp_nx1_splits_rows_among_workers),
		cmocka_unit_test(test_amp_nx1_loops_over_taps),
		cmocka_unit_test(test_the_horizontal_mac_sums_vectors),
		cmocka_unit_test(test_an_outer_product_needs_three_vectors),
		cmocka_unit_test(test_transposing),
		cmocka_unit_test(test_the_vector_pipe),
		cmocka_unit_test(test_workers_have_pieces_of_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
