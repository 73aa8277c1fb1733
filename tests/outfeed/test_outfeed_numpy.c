/*
 * The statistics row against numpy's float64 (tests/golden/outfeed_stats.txt, written by
 * script/make-stats-golden.py), in every variant: counts and extremes exact, moments to 1e-9.
 *
 * The arrays are made here by the rules of that script: integers scaled by powers of two, so that
 * both have the same bytes.
 */
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_kernel.h"
#include "outfeed/outfeed_stats.h"

#define TOLERANCE 1e-9
#define HUGE_ONE  100000000

/* 400 MB and some seconds: not where all is slow anyway. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FAST 1
#else
#define FAST 0
#endif

/* ---- the arrays ------------------------------------------------------------------------------ */

static uint32_t mixed_bits(size_t i)
{
	uint32_t u = (uint32_t)(i * 2654435761u);

	u ^= u >> 15;
	u *= 2246822519u;
	return u ^ u >> 13;
}

/* An integer of deviation 512 about 0. */
static int centred(uint32_t u)
{
	return (int)((u & 1023) + (u >> 10 & 1023) + (u >> 20 & 1023)) - 1535;
}

static float gradient(size_t i, size_t n)
{
	(void)n;
	return (float)centred(mixed_bits(i)) * 0x1p-16f;
}

static float far(size_t i, size_t n)
{
	int z = centred(mixed_bits(i)) + 1536; /* so that dividing rounds down */

	(void)n;
	return 10000 + (float)(z / 512 - 3) * 0x1p-10f;
}

static float bad_first(size_t i, size_t n)
{
	return i == 0 ? 0 : far(i, n);
}

static float huge_first(size_t i, size_t n)
{
	return i == 0 ? FLT_MAX : gradient(i, n);
}

static float equal(size_t i, size_t n)
{
	(void)i;
	(void)n;
	return 0.1f;
}

static float one_nan(size_t i, size_t n)
{
	return i == n * 5 / 7 ? NAN : far(i, n);
}

static float minus_inf(size_t i, size_t n)
{
	(void)i;
	(void)n;
	return -INFINITY;
}

static float denormals(size_t i, size_t n)
{
	(void)n;
	return (float)centred(mixed_bits(i)) * 0x1p-149f;
}

static float mixture(size_t i, size_t n)
{
	static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
	uint32_t which = (mixed_bits(i) >> 3) % 16;

	return which < 5 ? odd[which] : gradient(i, n);
}

static float magnitudes(size_t i, size_t n)
{
	uint32_t u = mixed_bits(i);

	(void)n;
	return ldexpf((float)centred(u), (int)((u >> 7) % 200) - 120);
}

static const struct {
	const char *name;
	float (*value)(size_t i, size_t n);
} kinds[] = {
	{"gradient", gradient},   {"far", far},
	{"bad_first", bad_first}, {"huge_first", huge_first},
	{"equal", equal},         {"one_nan", one_nan},
	{"minus_inf", minus_inf}, {"denormals", denormals},
	{"mixture", mixture},     {"magnitudes", magnitudes},
};

static void fill(float *values, const char *kind, size_t n)
{
	size_t k = 0;

	while (k < ARRAY_LEN(kinds) && strcmp(kinds[k].name, kind) != 0)
		k++;
	assert_true(k < ARRAY_LEN(kinds));
	for (size_t i = 0; i < n; i++)
		values[i] = kinds[k].value(i, n);
}

/* ---- a line of the file ---------------------------------------------------------------------- */

struct golden {
	char kind[32];
	struct outfeed_stats row; /* counts, extremes, mean, l1 */
	double std, l2;
};

/* False: a comment, or the end. */
static bool read_golden(struct golden *out, const char *line)
{
	static const char format[] = "%31s %lld %lld %lld %lld %lld %lld %lld %f %f %f %f %lf %lf "
				     "%lf %lf";
	long long n[7];
	float ends[4]; /* nine digits tell every float */

	if (line[0] == '#' || line[0] == 0)
		return false;
	assert_int_equal(sscanf(line, format, out->kind, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5],
				&n[6], &ends[0], &ends[1], &ends[2], &ends[3], &out->row.mean,
				&out->std, &out->row.l1, &out->l2),
			 16);
	out->row.n = n[0];
	out->row.n_nan = n[1];
	out->row.n_pos_inf = n[2];
	out->row.n_neg_inf = n[3];
	out->row.n_zero = n[4];
	out->row.n_neg = n[5];
	out->row.n_pos = n[6];
	out->row.min = (double)ends[0];
	out->row.max = (double)ends[1];
	out->row.abs_min_nonzero = (double)ends[2];
	out->row.abs_max = (double)ends[3];
	return true;
}

static void check_counts(const struct outfeed_stats *got, const struct outfeed_stats *golden)
{
	assert_int_equal(got->n, golden->n);
	assert_int_equal(got->n_nan, golden->n_nan);
	assert_int_equal(got->n_pos_inf, golden->n_pos_inf);
	assert_int_equal(got->n_neg_inf, golden->n_neg_inf);
	assert_int_equal(got->n_zero, golden->n_zero);
	assert_int_equal(got->n_neg, golden->n_neg);
	assert_int_equal(got->n_pos, golden->n_pos);
}

static void check_row(const struct outfeed_stats *got, const struct golden *golden)
{
	/*
	 * Values of both signs cancel in a mean, so the mean of |x| is what errors are measured by.
	 */
	double scale = golden->row.l1 / (double)outfeed_stats_finite(got);

	check_counts(got, &golden->row);
	assert_close(got->min, golden->row.min, 0);
	assert_close(got->max, golden->row.max, 0);
	assert_close(got->abs_min_nonzero, golden->row.abs_min_nonzero, 0);
	assert_close(got->abs_max, golden->row.abs_max, 0);
	assert_close(got->l1, golden->row.l1, TOLERANCE);
	assert_close(outfeed_stats_l2(got), golden->l2, TOLERANCE);
	assert_close(outfeed_stats_std(got), golden->std, TOLERANCE);
	assert_true(isnan(scale) ? isnan(got->mean)
				 : fabs(got->mean - golden->row.mean) <= TOLERANCE * scale);
}

static void check_variants(const float *values, const struct golden *golden)
{
	size_t count = (size_t)golden->row.n;
	struct outfeed_stats first, got;
	bool any = false;

	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		outfeed_scan_counts(&got, values, count);
		check_counts(&got, &golden->row);
		outfeed_stats_init(&got);
		outfeed_stats_add(&got, values, count);
		check_row(&got, golden);
		if (any)
			assert_memory_equal(&got, &first, sizeof(got));
		first = got;
		any = true;
	}
	assert_true(any);
}

/* Short ones at every distance of a float from the start of a cache line, long ones at one. */
static void check_golden(float *memory, const struct golden *golden)
{
	size_t n = (size_t)golden->row.n, first = n <= 257 ? 0 : 1, last = n <= 257 ? 15 : 1;

	for (size_t offset = first; offset <= last; offset++) {
		fill(memory + offset, golden->kind, n);
		check_variants(memory + offset, golden);
	}
}

/* All lines of up to and from @least values on; @memory has room for the greatest. */
static size_t check_file(float *memory, size_t least, size_t greatest)
{
	char path[SUPPORT_PATH_SIZE], *text, *save = NULL;
	struct golden golden;
	size_t checked = 0;

	snprintf(path, sizeof(path), "%s/tests/golden/outfeed_stats.txt", support_source_dir());
	text = support_read_file(path, NULL);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t n;

		if (!read_golden(&golden, line))
			continue;
		n = (size_t)golden.row.n;
		if (n < least || n > greatest)
			continue;
		check_golden(memory, &golden);
		checked++;
	}
	free(text);
	return checked;
}

static void test_arrays_that_break_formulas_have_numpys_statistics(void **state)
{
	float *memory = mem_aligned(1000003 + 16, sizeof(float));

	(void)state;
	assert_non_null(memory);
	assert_int_equal(check_file(memory, 0, 1000003), 257 + 7 * 10);
	mem_free(memory);
}

static void test_a_hundred_million_values_have_numpys_statistics(void **state)
{
	float *memory;

	(void)state;
	if (!FAST)
		skip();
	memory = mem_aligned(HUGE_ONE + 16, sizeof(float));
	if (!memory)
		skip();
	assert_int_equal(check_file(memory, HUGE_ONE, HUGE_ONE), 2);
	mem_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrays_that_break_formulas_have_numpys_statistics),
		cmocka_unit_test(test_a_hundred_million_values_have_numpys_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
