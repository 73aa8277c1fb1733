/*
 * Normalisation against plain loops in double: odd shapes, a mean far greater than the deviation,
 * fused ReLUs, NaN.
 */
#include "trainer/kernels/kernel_norm.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/kernels/kernel_watch.h"

static const int64_t shapes[][2] = {
	{1, 1}, {2, 5}, {1000, 1}, {517, 3}, {333, 32}, {777, 64}, {65, 300}, {70, 512}, {19, 1300},
};

static void *memory(int64_t count, size_t size)
{
	void *out = mem_aligned((size_t)count, size);

	assert_non_null(out);
	return out;
}

static float *numbers(int64_t count, uint32_t seed, float low, float high)
{
	float *out = memory(count, sizeof(float));

	math_fill(out, (size_t)count, seed, low, high);
	return out;
}

/* The mean and the sum of squared deviations of a column. */
static void column(const float *x, int64_t rows, int64_t channels, int64_t c, double *mean,
		   double *squares)
{
	double sum = 0.0;

	for (int64_t i = 0; i < rows; i++)
		sum += (double)x[i * channels + c];
	*mean = sum / (double)rows;
	*squares = 0.0;
	for (int64_t i = 0; i < rows; i++) {
		double d = (double)x[i * channels + c] - *mean;

		*squares += d * d;
	}
}

/* All slices' moments, merged. */
static void moments(const float *x, int64_t rows, int64_t channels, double *mean, double *squares)
{
	struct kernel_norm_cut cut = kernel_norm_cut(rows, channels);

	for (unsigned s = 0; s < cut.slices; s++)
		kernel_norm_moments(x + s * cut.step * channels, kernel_norm_slice_rows(&cut, s),
				    channels, mean + s * channels, squares + s * channels);
	kernel_norm_merge_moments(&cut, channels, mean, squares);
}

static void check_moments(int64_t rows, int64_t channels, float low, float high, double tolerance)
{
	struct kernel_norm_cut cut = kernel_norm_cut(rows, channels);
	float *x = numbers(rows * channels, 7, low, high);
	double *mean = memory(cut.slices * channels, sizeof(double));
	double *squares = memory(cut.slices * channels, sizeof(double));
	double wide = (double)high - (double)low;

	moments(x, rows, channels, mean, squares);
	for (int64_t c = 0; c < channels; c++) {
		double m, s;

		column(x, rows, channels, c, &m, &s);
		if (!(fabs(mean[c] - m) <= tolerance * wide))
			fail_msg("%lld x %lld: mean %.12g, wanted %.12g", (long long)rows,
				 (long long)channels, mean[c], m);
		if (!(fabs(squares[c] - s) <= tolerance * (s + 1e-9)))
			fail_msg("%lld x %lld: squares %.12g, wanted %.12g", (long long)rows,
				 (long long)channels, squares[c], s);
	}
	mem_free(x);
	mem_free(mean);
	mem_free(squares);
}

static void test_moments_are_those_of_plain_loops(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		check_moments(shapes[i][0], shapes[i][1], -1.0f, 1.0f, 1e-6);
	check_moments(100000, 7, -1.0f, 1.0f, 1e-6);
}

static void test_moments_survive_a_mean_far_greater_than_the_deviation(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		check_moments(shapes[i][0], shapes[i][1], 9999.0f, 10001.0f, 1e-6);
	check_moments(100000, 7, 9999.0f, 10001.0f, 1e-6);
}

/* The first rows say nothing of the others here. */
static void test_moments_survive_a_slice_that_begins_unlike_the_rest(void **state)
{
	enum {
		ROWS = 4000,
		CHANNELS = 8
	};
	struct kernel_norm_cut cut = kernel_norm_cut(ROWS, CHANNELS);
	double mean[KERNEL_NORM_SLICES * CHANNELS], squares[KERNEL_NORM_SLICES * CHANNELS];
	float *x = numbers(ROWS * CHANNELS, 3, -1.0f, 1.0f);

	(void)state;
	for (int i = 0; i < 20 * CHANNELS; i++)
		x[i] += 1e5f;
	assert_true(cut.slices <= KERNEL_NORM_SLICES);
	moments(x, ROWS, CHANNELS, mean, squares);
	for (int64_t c = 0; c < CHANNELS; c++) {
		double m, s;

		column(x, ROWS, CHANNELS, c, &m, &s);
		assert_close(mean[c], m, 1e-5);
		assert_close(squares[c], s, 1e-5);
	}
	mem_free(x);
}

static void test_a_constant_has_no_variance(void **state)
{
	float *x = numbers(5000 * 3, 1, 0.1f, 0.1f);
	double mean[3 * KERNEL_NORM_SLICES], squares[3 * KERNEL_NORM_SLICES];

	(void)state;
	moments(x, 5000, 3, mean, squares);
	for (int c = 0; c < 3; c++) {
		assert_close(mean[c], (double)0.1f, 1e-7);
		assert_true(squares[c] >= 0.0 && squares[c] < 1e-9);
	}
	mem_free(x);
}

static void test_not_a_number_stays_in_its_channel(void **state)
{
	float *x = numbers(500 * 4, 1, -1.0f, 1.0f);
	double mean[4 * KERNEL_NORM_SLICES], squares[4 * KERNEL_NORM_SLICES];

	(void)state;
	x[400 * 4 + 1] = NAN;
	x[3 * 4 + 2] = INFINITY;
	moments(x, 500, 4, mean, squares);
	for (int c = 0; c < 4; c++)
		assert_int_equal(isnan(squares[c]) != 0, c == 1 || c == 2);
	mem_free(x);
}

static void test_a_cut_covers_all_rows_within_a_bound_that_holds_for_fewer(void **state)
{
	static const int64_t rows[] = {1, 2, 31, 98, 392, 1024, 1025, 1568, 6272, 25088, 100352};
	static const int64_t channels[] = {1, 3, 64, 256, 2048, 100000};

	(void)state;
	for (size_t j = 0; j < ARRAY_LEN(channels); j++) {
		unsigned before = 0, most;

		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct kernel_norm_cut cut = kernel_norm_cut(rows[i], channels[j]);
			int64_t sum = 0;

			for (unsigned s = 0; s < cut.slices; s++) {
				assert_true(kernel_norm_slice_rows(&cut, s) > 0);
				sum += kernel_norm_slice_rows(&cut, s);
			}
			assert_int_equal(sum, rows[i]);
			most = kernel_norm_max_slices(rows[i], channels[j]);
			assert_true(cut.slices <= most && most <= KERNEL_NORM_SLICES);
			assert_true(before <= most);
			before = most;
		}
	}
}

/* ---- the passes ------------------------------------------------------------------------------ */

struct passes {
	int64_t rows, channels;
	float *x, *y, *dy, *dx, *mean, *scale, *offset, *constant, *slope;
	double *sums, *products;
	struct kernel_norm norm;
};

static void passes_open(struct passes *p, int64_t rows, int64_t channels, float most)
{
	p->rows = rows;
	p->channels = channels;
	p->x = numbers(rows * channels, 1, -3.0f, 3.0f);
	p->y = numbers(rows * channels, 2, 0.0f, 0.0f);
	p->dy = numbers(rows * channels, 3, -1.0f, 1.0f);
	p->dx = numbers(rows * channels, 4, -1.0f, 1.0f);
	p->mean = numbers(channels, 5, -1.0f, 1.0f);
	p->scale = numbers(channels, 6, -2.0f, 2.0f);
	p->offset = numbers(channels, 7, -1.0f, 3.0f);
	p->constant = numbers(channels, 8, -1.0f, 1.0f);
	p->slope = numbers(channels, 9, -1.0f, 1.0f);
	p->sums = memory(channels, sizeof(double));
	p->products = memory(channels, sizeof(double));
	p->norm = (struct kernel_norm){.channels = channels,
				       .mean = p->mean,
				       .scale = p->scale,
				       .offset = p->offset,
				       .relu = most > 0.0f,
				       .most = most};
}

static void passes_close(struct passes *p)
{
	mem_free(p->x);
	mem_free(p->y);
	mem_free(p->dy);
	mem_free(p->dx);
	mem_free(p->mean);
	mem_free(p->scale);
	mem_free(p->offset);
	mem_free(p->constant);
	mem_free(p->slope);
	mem_free(p->sums);
	mem_free(p->products);
}

static double deviation(const struct passes *p, int64_t i)
{
	return (double)p->x[i] - (double)p->mean[i % p->channels];
}

static void check_y(const struct passes *p)
{
	for (int64_t i = 0; i < p->rows * p->channels; i++) {
		int64_t c = i % p->channels;
		double y = deviation(p, i) * (double)p->scale[c] + (double)p->offset[c];

		if (p->norm.relu)
			y = fmin(fmax(y, 0.0), (double)p->norm.most);
		assert_true(fabs((double)p->y[i] - y) < 5e-6);
	}
}

/* dy where the output says that the ReLU was open. */
static double gate(const struct passes *p, int64_t i, float dy)
{
	bool open = !p->norm.relu || (p->y[i] > 0.0f && p->y[i] < p->norm.most);

	return open ? (double)dy : 0.0;
}

static void check_sums(const struct passes *p)
{
	for (int64_t c = 0; c < p->channels; c++) {
		double sum = 0.0, product = 0.0, size = 0.0;

		for (int64_t i = c; i < p->rows * p->channels; i += p->channels) {
			double g = gate(p, i, p->dy[i]);

			sum += g;
			product += g * deviation(p, i);
			size += fabs(g) * (1.0 + fabs(deviation(p, i)));
		}
		assert_true(fabs(p->sums[c] - sum) <= 1e-6 * size);
		assert_true(fabs(p->products[c] - product) <= 1e-6 * size);
	}
}

static void check_dx(const struct passes *p, const float *before, bool moments)
{
	for (int64_t i = 0; i < p->rows * p->channels; i++) {
		int64_t c = i % p->channels;
		double g = gate(p, i, p->dy[i]);

		if (moments)
			g -= (double)p->constant[c] + (double)p->slope[c] * deviation(p, i);
		g = g * (double)p->scale[c] + (before ? (double)before[i] : 0.0);
		assert_true(fabs((double)p->dx[i] - g) < 1e-5);
	}
}

/* A tensor that is added before the ReLU: as a pass of its own would add it, to the bit. */
static void check_plus(struct passes *p, const float *plus)
{
	struct kernel_norm linear = p->norm;

	linear.relu = false;
	kernel_norm_apply(&linear, p->x, NULL, p->dx, p->rows, false);
	for (int watched = 0; watched < 2; watched++) {
		const uint32_t greatest =
			kernel_norm_apply(&p->norm, p->x, plus, p->y, p->rows, watched);

		for (int64_t i = 0; i < p->rows * p->channels; i++) {
			float sum = plus[i] + p->dx[i];

			sum = p->norm.relu && sum < 0.0f ? 0.0f : sum;
			sum = p->norm.relu && sum > p->norm.most ? p->norm.most : sum;
			assert_true(p->y[i] == sum);
		}
		if (watched)
			assert_int_equal(greatest,
					 kernel_abs_max(p->y, (size_t)(p->rows * p->channels)));
	}
}

static void check_passes(int64_t rows, int64_t channels, float most)
{
	size_t bytes = (size_t)(rows * channels) * sizeof(float);
	struct passes p;
	float *other;

	passes_open(&p, rows, channels, most);
	other = numbers(rows * channels, 10, -1.0f, 1.0f);
	kernel_norm_apply(&p.norm, p.x, NULL, p.y, rows, false);
	check_y(&p);
	kernel_norm_grad_sums(&p.norm, p.x, p.dy, rows, p.sums, p.products);
	check_sums(&p);
	for (int moments = 0; moments < 2; moments++) {
		const float *constant = moments ? p.constant : NULL;
		const float *slope = moments ? p.slope : NULL;

		memcpy(p.dx, other, bytes);
		kernel_norm_grad(&p.norm, constant, slope, p.x, p.dy, p.dx, rows, true);
		check_dx(&p, other, moments);
		kernel_norm_grad(&p.norm, constant, slope, p.x, p.dy, p.dx, rows, false);
		check_dx(&p, NULL, moments);

		/* In place. */
		memcpy(other, p.dy, bytes);
		kernel_norm_grad(&p.norm, constant, slope, p.x, other, other, rows, false);
		assert_memory_equal(other, p.dx, bytes);
	}
	check_plus(&p, other);
	mem_free(other);
	passes_close(&p);
}

static void test_passes_are_those_of_plain_loops(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		check_passes(shapes[i][0], shapes[i][1], 0.0f);
		check_passes(shapes[i][0], shapes[i][1], INFINITY);
		check_passes(shapes[i][0], shapes[i][1], 1.5f);
	}
}

static void test_a_relu_keeps_nan_and_lets_an_infinity_through(void **state)
{
	float x[] = {NAN, INFINITY, -INFINITY, 0.0f, 6.0f, 7.0f, 1.0f}, y[7], dx[7];
	const float zeros[7] = {0};
	float ones[7], dy[7];
	struct kernel_norm norm = {.channels = 7, .mean = zeros, .offset = zeros, .relu = true};

	(void)state;
	math_fill(ones, 7, 1, 1.0f, 1.0f);
	math_fill(dy, 7, 1, 2.0f, 2.0f);
	norm.scale = ones;
	for (int six = 0; six < 2; six++) {
		norm.most = six ? 6.0f : INFINITY;
		kernel_norm_apply(&norm, x, NULL, y, 1, false);
		kernel_norm_grad(&norm, NULL, NULL, x, dy, dx, 1, false);
		assert_true(isnan(y[0]) && dx[0] == 2.0f);
		assert_true(y[1] == norm.most && dx[1] == (six ? 0.0f : 2.0f));
		assert_true(y[2] == 0.0f && dx[2] == 0.0f && y[3] == 0.0f && dx[3] == 0.0f);
		assert_true(y[4] == 6.0f && dx[4] == (six ? 0.0f : 2.0f));
		assert_true(y[5] == (six ? 6.0f : 7.0f) && dx[5] == (six ? 0.0f : 2.0f));
		assert_true(y[6] == 1.0f && dx[6] == 2.0f);
	}
}

/* ---- by row ---------------------------------------------------------------------------------- */

struct row_moments {
	double mean, inverse;
};

static struct row_moments row_moments(const float *x, int64_t channels)
{
	double mean, squares;

	column(x, channels, 1, 0, &mean, &squares);
	return (struct row_moments){mean, 1.0 / sqrt(squares / (double)channels + 1e-3)};
}

static void check_row_grad(const float *x, const float *dy, const float *dx, int64_t channels,
			   const float *gamma)
{
	struct row_moments m = row_moments(x, channels);
	double sum = 0.0, products = 0.0;

	for (int64_t j = 0; j < channels; j++) {
		double h = (double)dy[j] * (gamma ? (double)gamma[j] : 1.0);

		sum += h / (double)channels;
		products += h * ((double)x[j] - m.mean) * m.inverse / (double)channels;
	}
	for (int64_t j = 0; j < channels; j++) {
		double n = ((double)x[j] - m.mean) * m.inverse;
		double h = (double)dy[j] * (gamma ? (double)gamma[j] : 1.0);

		assert_true(fabs((double)dx[j] - m.inverse * (h - sum - n * products)) <
			    1e-5 * m.inverse);
	}
}

static void check_rows(int64_t rows, int64_t channels, bool params)
{
	int64_t count = rows * channels;
	float *x = numbers(count, 1, 99.0f, 103.0f), *y = numbers(count, 2, 0.0f, 0.0f);
	float *dy = numbers(count, 3, -1.0f, 1.0f), *dx = numbers(count, 4, 1.0f, 1.0f);
	float *gamma = numbers(channels, 5, -2.0f, 2.0f), *beta = numbers(channels, 6, -1.0f, 1.0f);
	float *mean = memory(rows, sizeof(float)), *inverse = memory(rows, sizeof(float));
	double *sums = memory(2 * channels, sizeof(double)), *wanted = memory(2 * channels, 8);
	const float *scale = params ? gamma : NULL;

	kernel_norm_rows(x, y, rows, channels, 1e-3f, scale, params ? beta : NULL, mean, inverse);
	kernel_norm_rows_grad(x, dy, dx, rows, channels, scale, mean, inverse, false, sums,
			      sums + channels);
	for (int64_t i = 0; i < rows; i++) {
		struct row_moments m = row_moments(x + i * channels, channels);

		assert_close((double)mean[i], m.mean, 1e-7);
		assert_close((double)inverse[i], m.inverse, 1e-5);
		for (int64_t j = 0; j < channels; j++) {
			double n = ((double)x[i * channels + j] - m.mean) * m.inverse;
			double g = (double)dy[i * channels + j];

			wanted[j] += g * n;
			wanted[channels + j] += g;
			if (params)
				n = n * (double)gamma[j] + (double)beta[j];
			assert_true(fabs((double)y[i * channels + j] - n) < 2e-3);
		}
		check_row_grad(x + i * channels, dy + i * channels, dx + i * channels, channels,
			       scale);
	}
	for (int64_t j = 0; j < 2 * channels; j++)
		assert_true(fabs(sums[j] - wanted[j]) < 2e-3 * (double)rows);

	/* Into the gradient's own place; added. */
	memcpy(y, dy, (size_t)count * sizeof(float));
	kernel_norm_rows_grad(x, y, y, rows, channels, scale, mean, inverse, false, NULL, NULL);
	assert_memory_equal(y, dx, (size_t)count * sizeof(float));
	kernel_norm_rows_grad(x, dy, y, rows, channels, scale, mean, inverse, true, NULL, NULL);
	for (int64_t i = 0; i < count; i++)
		assert_true(y[i] == dx[i] + dx[i]);
	mem_free(x);
	mem_free(y);
	mem_free(dy);
	mem_free(dx);
	mem_free(gamma);
	mem_free(beta);
	mem_free(mean);
	mem_free(inverse);
	mem_free(sums);
	mem_free(wanted);
}

static void test_rows_are_those_of_plain_loops(void **state)
{
	static const int64_t sizes[][2] = {{3, 1}, {5, 7}, {4, 16}, {9, 67}, {2, 1000}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		check_rows(sizes[i][0], sizes[i][1], false);
		check_rows(sizes[i][0], sizes[i][1], true);
	}
}

static void test_not_a_number_stays_in_its_row(void **state)
{
	float *x = numbers(3 * 20, 1, -1.0f, 1.0f), y[3 * 20], mean[3], inverse[3];

	(void)state;
	x[25] = NAN;
	kernel_norm_rows(x, y, 3, 20, 1e-3f, NULL, NULL, mean, inverse);
	for (int i = 0; i < 60; i++)
		assert_int_equal(isnan(y[i]) != 0, i / 20 == 1);
	mem_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments_are_those_of_plain_loops),
		cmocka_unit_test(test_moments_survive_a_mean_far_greater_than_the_deviation),
		cmocka_unit_test(test_moments_survive_a_slice_that_begins_unlike_the_rest),
		cmocka_unit_test(test_a_constant_has_no_variance),
		cmocka_unit_test(test_not_a_number_stays_in_its_channel),
		cmocka_unit_test(test_a_cut_covers_all_rows_within_a_bound_that_holds_for_fewer),
		cmocka_unit_test(test_passes_are_those_of_plain_loops),
		cmocka_unit_test(test_a_relu_keeps_nan_and_lets_an_infinity_through),
		cmocka_unit_test(test_rows_are_those_of_plain_loops),
		cmocka_unit_test(test_not_a_number_stays_in_its_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
