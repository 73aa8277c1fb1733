/*
 * The statistics row against a plain two-pass reference in extended precision, on arrays that break
 * one-pass formulas; every kernel variant against every other, to the last bit.
 */
#include "support/floats.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pool.h"
#include "common/rng.h"
#include "outfeed/outfeed_kernel.h"
#include "outfeed/outfeed_stats.h"

#define TOLERANCE 1e-9

/* ---- reference ------------------------------------------------------------------------------- */

struct reference {
	struct outfeed_stats counts; /* counts, min, max, abs_min_nonzero, abs_max */
	long double mean, m2, l1, l2_squared;
	long double scale; /* mean of |x|: what an error of the mean is measured by */
};

static double lesser(double a, double b)
{
	return isnan(a) || b < a ? b : a;
}

static double greater(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

static void count_one(struct outfeed_stats *counts, float x)
{
	counts->n++;
	counts->n_nan += isnan(x) ? 1 : 0;
	counts->n_pos_inf += isinf(x) && x > 0;
	counts->n_neg_inf += isinf(x) && x < 0;
	counts->n_zero += x == 0;
	counts->n_neg += x < 0;
	counts->n_pos += x > 0;
	if (!isfinite(x))
		return;
	counts->min = lesser(counts->min, (double)x);
	counts->max = greater(counts->max, (double)x);
	counts->abs_max = greater(counts->abs_max, fabs((double)x));
	if (x != 0)
		counts->abs_min_nonzero = lesser(counts->abs_min_nonzero, fabs((double)x));
}

static void reference_of(struct reference *out, const float *values, size_t count)
{
	long double sum = 0, finite = 0;

	memset(out, 0, sizeof(*out));
	outfeed_stats_init(&out->counts);
	for (size_t i = 0; i < count; i++) {
		count_one(&out->counts, values[i]);
		if (!isfinite(values[i]))
			continue;
		finite++;
		sum += (long double)values[i];
		out->l1 += fabsl((long double)values[i]);
		out->l2_squared += (long double)values[i] * (long double)values[i];
	}
	out->mean = sum / finite; /* NaN where there are none */
	out->scale = out->l1 / finite;
	for (size_t i = 0; i < count; i++) {
		long double d = (long double)values[i] - out->mean;

		if (isfinite(values[i]))
			out->m2 += d * d;
	}
}

static void check_counts(const struct outfeed_stats *a, const struct outfeed_stats *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->n_nan, b->n_nan);
	assert_int_equal(a->n_pos_inf, b->n_pos_inf);
	assert_int_equal(a->n_neg_inf, b->n_neg_inf);
	assert_int_equal(a->n_zero, b->n_zero);
	assert_int_equal(a->n_neg, b->n_neg);
	assert_int_equal(a->n_pos, b->n_pos);
	assert_close(a->min, b->min, 0);
	assert_close(a->max, b->max, 0);
	assert_close(a->abs_min_nonzero, b->abs_min_nonzero, 0);
	assert_close(a->abs_max, b->abs_max, 0);
}

static void check_moments(const struct outfeed_stats *a, const struct reference *r)
{
	if (outfeed_stats_finite(a) == 0) {
		assert_true(isnan(a->mean) && isnan(a->m2) && isnan(a->l1) &&
			    isnan(a->l2_squared) && isnan(outfeed_stats_std(a)));
		return;
	}
	assert_true(fabsl((long double)a->mean - r->mean) <= TOLERANCE * r->scale);
	assert_close(a->m2, (double)r->m2, TOLERANCE);
	assert_close(a->l1, (double)r->l1, TOLERANCE);
	assert_close(a->l2_squared, (double)r->l2_squared, TOLERANCE);
}

/* ---- every variant, the same bytes ----------------------------------------------------------- */

static bool same_bits(const struct outfeed_stats *a, const struct outfeed_stats *b)
{
	/* Every member is 8 bytes wide, so there is no padding. NaN has one source: NAN. */
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void check_array(const float *values, size_t count)
{
	struct outfeed_stats first, stats;
	struct reference reference;
	bool any = false;

	reference_of(&reference, values, count);
	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		outfeed_stats_init(&stats);
		outfeed_stats_add(&stats, values, count);
		check_counts(&stats, &reference.counts);
		check_moments(&stats, &reference);
		if (any)
			assert_true(same_bits(&stats, &first));
		first = stats;
		any = true;
	}
	assert_true(any);
}

/* A variant may take values to have no zeros until it meets one. */
static void test_a_zero_is_counted_wherever_it_is(void **state)
{
	float values[700];

	(void)state;
	for (size_t at = 0; at < ARRAY_LEN(values); at++) {
		for (size_t i = 0; i < ARRAY_LEN(values); i++)
			values[i] = i % 3 ? (float)(i + 1) : -(float)(i + 1) * 0x1p-149f;
		values[at] = at % 2 ? 0.0f : -0.0f;
		if (at % 5 == 0)
			values[(at * 7 + 300) % ARRAY_LEN(values)] = -0.0f;
		check_array(values, ARRAY_LEN(values));
	}
}

/* ---- arrays that break things ---------------------------------------------------------------- */

/* Lengths 0 to 257 and around the block's, at every alignment of a float in a vector in turn. */
static void test_every_variant_meets_the_reference_on_every_length(void **state)
{
	static const size_t long_ones[] = {4095, 4096, 8191, 8192, 8193, 24611, 140003};
	float *memory = mem_aligned(140003 + 16, sizeof(float));
	struct rng rng;

	(void)state;
	assert_non_null(memory);
	for (int f = 0; f < FLOATS_KINDS; f++) {
		rng_init(&rng, 1, (uint32_t)f, 0, 0);
		for (size_t count = 0; count <= 257; count++) {
			floats_fill(f, memory + count % 16, count, &rng);
			check_array(memory + count % 16, count);
		}
		for (size_t i = 0; i < ARRAY_LEN(long_ones); i++) {
			floats_fill(f, memory + i + 1, long_ones[i], &rng);
			check_array(memory + i + 1, long_ones[i]);
		}
	}
	mem_free(memory);
}

static void test_nothing_seen_is_zero_counts_and_nan(void **state)
{
	struct outfeed_stats stats;

	(void)state;
	outfeed_stats_init(&stats);
	outfeed_stats_add(&stats, NULL, 0);
	assert_int_equal(stats.n, 0);
	assert_true(isnan(stats.mean) && isnan(stats.min) && isnan(stats.max));
	assert_true(isnan(outfeed_stats_std(&stats)) && isnan(outfeed_stats_l2(&stats)));
}

static void test_equal_values_have_no_deviation_at_all(void **state)
{
	float values[10000];
	struct outfeed_stats stats;

	(void)state;
	floats_fill(FLOATS_EQUAL, values, 10000, NULL);
	outfeed_stats_init(&stats);
	outfeed_stats_add(&stats, values, 10000);
	assert_true(stats.m2 == 0);
	assert_true(stats.mean == (double)0.1f);
}

/* ---- halves and threads ---------------------------------------------------------------------- */

static void test_halves_give_the_row_of_the_floats_that_they_are(void **state)
{
	static const size_t counts[] = {0, 1, 17, 257, 8191, 8193, 300001};
	static uint16_t memory[300001 + 3];
	static float wide[300001];
	struct outfeed_stats of_halves, of_floats;
	struct rng rng;

	(void)state;
	rng_init(&rng, 11, 11, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(memory); i++)
		memory[i] = (uint16_t)rng_u32(&rng); /* one in 32 is not finite */
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		const uint16_t *halves = memory + i % 3;

		for (int v = 0; outfeed_kernel_at(v); v++) {
			if (!outfeed_kernel_use(v))
				continue;
			outfeed_scan_widen(wide, halves, counts[i]);
			check_array(wide, counts[i]);
			assert_true(outfeed_kernel_use(v));
			outfeed_stats_init(&of_halves);
			outfeed_stats_read(&of_halves, DTYPE_FLOAT16, halves, counts[i], NULL);
			outfeed_stats_init(&of_floats);
			outfeed_stats_add(&of_floats, wide, counts[i]);
			assert_true(same_bits(&of_halves, &of_floats));
		}
	}
}

/* Enough for several rounds of slices, and a last slice that is cut. */
static void test_any_number_of_threads_gives_the_same_bytes(void **state)
{
	static const unsigned helpers[] = {0, 1, 3};
	size_t most = (size_t)131072 * 67 + 4711;
	size_t counts[] = {0, 100, 131072, 131073, 1000003, most};
	float *values = mem_aligned(most, sizeof(float));
	struct outfeed_stats one[ARRAY_LEN(counts)], several;
	struct pool *pool;
	struct rng rng;

	(void)state;
	assert_non_null(values);
	rng_init(&rng, 12, 12, 0, 0);
	floats_fill(FLOATS_MIXTURE, values, 100000, &rng);
	for (size_t i = 100000; i < most; i++)
		values[i] = values[i % 99991] * (float)(i % 7);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		outfeed_stats_init(&one[i]);
		outfeed_stats_add(&one[i], values, counts[i]);
	}
	for (size_t h = 0; h <= ARRAY_LEN(helpers); h++) {
		pool = NULL;
		if (h < ARRAY_LEN(helpers))
			assert_int_equal(pool_new(&pool, helpers[h], NULL), ST_OK);
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			outfeed_stats_init(&several);
			outfeed_stats_add_pool(&several, values, counts[i], pool);
			assert_true(same_bits(&one[i], &several));
		}
		pool_free(pool);
	}
	mem_free(values);
}

/* ---- merging --------------------------------------------------------------------------------- */

static void row_of(struct outfeed_stats *out, const float *values, size_t count)
{
	outfeed_stats_init(out);
	outfeed_stats_add(out, values, count);
}

static void test_merging_is_exact_in_counts_whatever_the_grouping(void **state)
{
	float values[3000];
	struct rng rng;

	(void)state;
	rng_init(&rng, 7, 7, 0, 0);
	for (int f = 0; f < FLOATS_KINDS; f++) {
		size_t cut = rng_below(&rng, 1500), cut2 = 1500 + rng_below(&rng, 1500);
		struct outfeed_stats a, b, c, left, right;
		struct reference reference;

		floats_fill(f, values, 3000, &rng);
		reference_of(&reference, values, 3000);
		row_of(&a, values, cut);
		row_of(&b, values + cut, cut2 - cut);
		row_of(&c, values + cut2, 3000 - cut2);
		left = a;
		outfeed_stats_merge(&left, &b);
		outfeed_stats_merge(&left, &c);
		right = b;
		outfeed_stats_merge(&right, &c);
		outfeed_stats_merge(&a, &right);
		check_counts(&left, &reference.counts);
		check_counts(&a, &reference.counts);
		check_moments(&left, &reference);
		check_moments(&a, &reference);
	}
}

/* Merge two rows, whichever, until there is one. */
static void merge_in_any_order(struct outfeed_stats *rows, uint32_t count, struct rng *rng)
{
	while (count > 1) {
		uint32_t into = rng_below(rng, count), from = rng_below(rng, count - 1);

		from += from >= into;
		outfeed_stats_merge(&rows[into], &rows[from]);
		rows[from] = rows[count - 1]; /* maybe the sum itself */
		count--;
	}
}

static void test_rows_of_random_splits_merge_in_any_order(void **state)
{
	enum {
		N = 5000,
		ROWS = 24
	};
	static float values[N];
	struct outfeed_stats rows[ROWS];
	struct reference reference;
	struct rng rng;

	(void)state;
	rng_init(&rng, 13, 13, 0, 0);
	for (int round = 0; round < 20 * FLOATS_KINDS; round++) {
		uint32_t count = 1 + rng_below(&rng, ROWS);
		size_t at = 0;

		floats_fill(round % FLOATS_KINDS, values, N, &rng);
		reference_of(&reference, values, N);
		for (uint32_t i = 0; i < count; i++) {
			/* Some are empty, and the last has what is left. */
			size_t size = rng_below(&rng, 4) ? rng_below(&rng, N / 6) : 0;

			if (size > N - at || i == count - 1)
				size = N - at;
			row_of(&rows[i], values + at, size);
			at += size;
		}
		merge_in_any_order(rows, count, &rng);
		check_counts(&rows[0], &reference.counts);
		check_moments(&rows[0], &reference);
	}
}

/* Zeros of both signs are equal: the one that is there stays. */
static void test_of_equal_extremes_the_first_stays(void **state)
{
	static const float zero[] = {0.0f}, negative[] = {-0.0f};
	struct outfeed_stats row, other;

	(void)state;
	for (int sign = 0; sign < 2; sign++) {
		row_of(&row, zero, 1);
		row_of(&other, negative, 1);
		row.min = row.max = sign ? -0.0 : 0.0;
		other.min = other.max = sign ? 0.0 : -0.0;
		outfeed_stats_merge(&row, &other);
		assert_int_equal(!!signbit(row.min), sign);
		assert_int_equal(!!signbit(row.max), sign);
	}
}

static void test_merging_with_nothing_changes_nothing(void **state)
{
	static const float values[] = {1, -2, NAN, 0};
	struct outfeed_stats row, nothing, sum;

	(void)state;
	row_of(&row, values, 4);
	outfeed_stats_init(&nothing);
	sum = row;
	outfeed_stats_merge(&sum, &nothing);
	assert_true(same_bits(&sum, &row));
	outfeed_stats_merge(&nothing, &row);
	assert_true(same_bits(&nothing, &row));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_variant_meets_the_reference_on_every_length),
		cmocka_unit_test(test_a_zero_is_counted_wherever_it_is),
		cmocka_unit_test(test_nothing_seen_is_zero_counts_and_nan),
		cmocka_unit_test(test_equal_values_have_no_deviation_at_all),
		cmocka_unit_test(test_halves_give_the_row_of_the_floats_that_they_are),
		cmocka_unit_test(test_any_number_of_threads_gives_the_same_bytes),
		cmocka_unit_test(test_merging_is_exact_in_counts_whatever_the_grouping),
		cmocka_unit_test(test_rows_of_random_splits_merge_in_any_order),
		cmocka_unit_test(test_merging_with_nothing_changes_nothing),
		cmocka_unit_test(test_of_equal_extremes_the_first_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
