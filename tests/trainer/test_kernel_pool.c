/*
 * Pooling against plain loops in double: odd shapes, both paddings, overlaps, gaps, windows larger
 * than a byte can name, NaN and infinities.
 */
#include "trainer/kernels/kernel_pool.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/kernels/kernel_pool_internal.h"

struct shape {
	int64_t batch, height, width, channels;
	int64_t pool_height, pool_width, stride_height, stride_width;
	bool same;
};

static const struct shape shapes[] = {
	{2, 6, 8, 32, 2, 2, 2, 2, false},   {3, 7, 5, 17, 2, 2, 2, 2, false},
	{3, 7, 5, 17, 2, 2, 2, 2, true},    {2, 9, 9, 64, 3, 3, 2, 2, false},
	{2, 8, 11, 5, 3, 3, 2, 2, true},    {1, 5, 5, 33, 3, 3, 1, 1, true},
	{1, 6, 7, 3, 3, 2, 1, 2, false},    {2, 4, 4, 130, 2, 2, 1, 1, false},
	{1, 9, 10, 4, 2, 2, 3, 4, false},   {1, 9, 10, 4, 2, 2, 3, 4, true},
	{1, 3, 2, 7, 5, 4, 2, 1, true},     {1, 12, 12, 1, 5, 5, 1, 1, false},
	{1, 20, 19, 3, 17, 16, 2, 3, true}, {2, 1, 1, 16, 3, 3, 2, 2, true},
	{1, 7, 7, 6, 1, 1, 1, 1, false},    {1, 7, 7, 6, 1, 1, 2, 3, true},
};

static void side(int64_t length, int64_t pool, int64_t stride, bool same, int64_t *out,
		 int64_t *before)
{
	int64_t missing;

	*out = same ? (length + stride - 1) / stride : (length - pool) / stride + 1;
	missing = (*out - 1) * stride + pool - length;
	*before = same && missing > 0 ? missing / 2 : 0;
}

struct sample {
	struct kernel_pool pool;
	int64_t batch;
	size_t in, out;
	float *x, *y, *dy, *dx;
	uint8_t *argmax;
	double *wanted, *wanted_dx;
	uint32_t *places;
};

static void *memory(size_t count, size_t size)
{
	void *out = mem_aligned(count, size);

	assert_non_null(out);
	return out;
}

static void sample_open(struct sample *s, const struct shape *shape, uint32_t seed)
{
	s->batch = shape->batch;
	s->pool = (struct kernel_pool){.height = shape->height,
				       .width = shape->width,
				       .channels = shape->channels,
				       .pool_height = shape->pool_height,
				       .pool_width = shape->pool_width,
				       .stride_height = shape->stride_height,
				       .stride_width = shape->stride_width};
	side(shape->height, shape->pool_height, shape->stride_height, shape->same,
	     &s->pool.out_height, &s->pool.top);
	side(shape->width, shape->pool_width, shape->stride_width, shape->same, &s->pool.out_width,
	     &s->pool.left);
	s->in = (size_t)(shape->batch * shape->height * shape->width * shape->channels);
	s->out = (size_t)(shape->batch * s->pool.out_height * s->pool.out_width * shape->channels);
	s->x = memory(s->in, sizeof(float));
	s->dx = memory(s->in, sizeof(float));
	s->y = memory(s->out, sizeof(float));
	s->dy = memory(s->out, sizeof(float));
	s->argmax = memory(s->out, kernel_pool_argmax_size(&s->pool));
	s->wanted = memory(s->out, sizeof(double));
	s->wanted_dx = memory(s->in, sizeof(double));
	s->places = memory(s->out, sizeof(uint32_t));
	math_fill(s->x, s->in, seed, -1.0f, 1.0f);
	math_fill(s->dy, s->out, seed + 1, -1.0f, 1.0f);
	/* Ties. */
	for (size_t i = 0; i < s->in; i++)
		s->x[i] = roundf(s->x[i] * 8.0f) / 8.0f;
}

static void sample_close(struct sample *s)
{
	mem_free(s->x);
	mem_free(s->dx);
	mem_free(s->y);
	mem_free(s->dy);
	mem_free(s->argmax);
	mem_free(s->wanted);
	mem_free(s->wanted_dx);
	mem_free(s->places);
}

static int64_t forward_rows(const struct sample *s)
{
	return s->batch * s->pool.out_height;
}

static int64_t backward_rows(const struct sample *s)
{
	return s->batch * s->pool.height;
}

/* Calls @each for every cell of every window, in order. */
typedef void (*cell)(struct sample *s, size_t in, size_t out, uint32_t place, bool first,
		     int cells);

static void window_cells(struct sample *s, int64_t b, int64_t i, int64_t j, int64_t c, cell each)
{
	const struct kernel_pool *p = &s->pool;
	int64_t top = i * p->stride_height - p->top, left = j * p->stride_width - p->left;
	size_t out = (size_t)(((b * p->out_height + i) * p->out_width + j) * p->channels + c);
	bool first = true;
	int cells = 0;

	for (int turn = 0; turn < 2; turn++) {
		for (int64_t k = 0; k < p->pool_height * p->pool_width; k++) {
			int64_t row = top + k / p->pool_width, column = left + k % p->pool_width;

			if (row < 0 || row >= p->height || column < 0 || column >= p->width)
				continue;
			if (!turn) {
				cells++;
				continue;
			}
			each(s,
			     (size_t)(((b * p->height + row) * p->width + column) * p->channels +
				      c),
			     out, (uint32_t)k, first, cells);
			first = false;
		}
	}
	assert_true(cells > 0);
}

static void all_cells(struct sample *s, cell each)
{
	for (int64_t b = 0; b < s->batch; b++)
		for (int64_t i = 0; i < s->pool.out_height; i++)
			for (int64_t j = 0; j < s->pool.out_width; j++)
				for (int64_t c = 0; c < s->pool.channels; c++)
					window_cells(s, b, i, j, c, each);
}

static void wanted_max(struct sample *s, size_t in, size_t out, uint32_t place, bool first,
		       int cells)
{
	double x = (double)s->x[in];

	(void)cells;
	if (!first && (isnan(s->wanted[out]) || (!isnan(x) && x <= s->wanted[out])))
		return;
	s->wanted[out] = x;
	s->places[out] = place;
}

static void wanted_max_grad(struct sample *s, size_t in, size_t out, uint32_t place, bool first,
			    int cells)
{
	(void)first;
	(void)cells;
	if (s->places[out] == place)
		s->wanted_dx[in] += (double)s->dy[out];
}

static void wanted_average(struct sample *s, size_t in, size_t out, uint32_t place, bool first,
			   int cells)
{
	(void)place;
	s->wanted[out] = (first ? 0.0 : s->wanted[out]) + (double)s->x[in] / cells;
}

static void wanted_average_grad(struct sample *s, size_t in, size_t out, uint32_t place, bool first,
				int cells)
{
	(void)first;
	(void)place;
	s->wanted_dx[in] += (double)s->dy[out] / cells;
}

static void check_near(const float *got, const double *wanted, size_t count, double tolerance)
{
	for (size_t i = 0; i < count; i++)
		if (!(fabs((double)got[i] - wanted[i]) <= tolerance) &&
		    !(isnan(got[i]) && isnan(wanted[i])) && (double)got[i] != wanted[i])
			fail_msg("[%zu] is %.9g, wanted %.9g", i, (double)got[i], wanted[i]);
}

static void check_places(const struct sample *s)
{
	for (size_t i = 0; i < s->out; i++)
		assert_int_equal(kernel_pool_argmax_size(&s->pool) == 1
					 ? s->argmax[i]
					 : ((const uint32_t *)(const void *)s->argmax)[i],
				 s->places[i]);
}

static void test_maxima_and_their_places_are_those_of_plain_loops(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct sample s;

		sample_open(&s, &shapes[i], (uint32_t)i);
		all_cells(&s, wanted_max);
		kernel_pool_max(&s.pool, s.x, s.y, s.argmax, 0, forward_rows(&s));
		check_near(s.y, s.wanted, s.out, 0.0);
		check_places(&s);
		memset(s.y, 0, s.out * sizeof(float));
		kernel_pool_max(&s.pool, s.x, s.y, NULL, 0, forward_rows(&s));
		check_near(s.y, s.wanted, s.out, 0.0);
		sample_close(&s);
	}
}

static void test_a_maximums_gradient_goes_to_the_first_greatest_cell(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct sample s;

		sample_open(&s, &shapes[i], (uint32_t)i);
		all_cells(&s, wanted_max);
		all_cells(&s, wanted_max_grad);
		kernel_pool_max(&s.pool, s.x, s.y, s.argmax, 0, forward_rows(&s));
		math_fill(s.dx, s.in, 1, 9.0f, 9.0f);
		kernel_pool_max_grad(&s.pool, s.argmax, s.dy, s.dx, 0, backward_rows(&s), false);
		check_near(s.dx, s.wanted_dx, s.in, 2e-6);

		/* Added to what is there. */
		math_fill(s.dx, s.in, 1, 9.0f, 9.0f);
		kernel_pool_max_grad(&s.pool, s.argmax, s.dy, s.dx, 0, backward_rows(&s), true);
		for (size_t j = 0; j < s.in; j++)
			s.wanted_dx[j] += 9.0;
		check_near(s.dx, s.wanted_dx, s.in, 2e-5);
		sample_close(&s);
	}
}

static void test_means_are_over_the_cells_inside_the_image(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct sample s;

		sample_open(&s, &shapes[i], (uint32_t)i);
		all_cells(&s, wanted_average);
		all_cells(&s, wanted_average_grad);
		kernel_pool_average(&s.pool, s.x, s.y, 0, forward_rows(&s));
		check_near(s.y, s.wanted, s.out, 1e-5);
		math_fill(s.dx, s.in, 1, 9.0f, 9.0f);
		kernel_pool_average_grad(&s.pool, s.dy, s.dx, 0, backward_rows(&s), false);
		check_near(s.dx, s.wanted_dx, s.in, 2e-6);
		math_fill(s.dx, s.in, 1, 9.0f, 9.0f);
		kernel_pool_average_grad(&s.pool, s.dy, s.dx, 0, backward_rows(&s), true);
		for (size_t j = 0; j < s.in; j++)
			s.wanted_dx[j] += 9.0;
		check_near(s.dx, s.wanted_dx, s.in, 2e-5);
		sample_close(&s);
	}
}

static void test_not_a_number_wins_and_infinities_are_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct sample s;

		sample_open(&s, &shapes[i], (uint32_t)i);
		for (size_t j = 0; j < s.in; j += 5)
			s.x[j] = j % 3 == 0 ? NAN : j % 3 == 1 ? -INFINITY : INFINITY;
		all_cells(&s, wanted_max);
		all_cells(&s, wanted_max_grad);
		kernel_pool_max(&s.pool, s.x, s.y, s.argmax, 0, forward_rows(&s));
		check_near(s.y, s.wanted, s.out, 0.0);
		check_places(&s);
		kernel_pool_max_grad(&s.pool, s.argmax, s.dy, s.dx, 0, backward_rows(&s), false);
		check_near(s.dx, s.wanted_dx, s.in, 2e-6);

		all_cells(&s, wanted_average);
		kernel_pool_average(&s.pool, s.x, s.y, 0, forward_rows(&s));
		check_near(s.y, s.wanted, s.out, 1e-5);
		sample_close(&s);
	}
}

/* A gradient that is not a number stays in the cells that it belongs to. */
static void test_a_gradient_of_nan_reaches_its_cell_alone(void **state)
{
	struct sample s;

	(void)state;
	sample_open(&s, &shapes[3], 1);
	s.dy[70] = NAN;
	s.dy[71] = INFINITY;
	all_cells(&s, wanted_max);
	all_cells(&s, wanted_max_grad);
	kernel_pool_max(&s.pool, s.x, s.y, s.argmax, 0, forward_rows(&s));
	kernel_pool_max_grad(&s.pool, s.argmax, s.dy, s.dx, 0, backward_rows(&s), false);
	check_near(s.dx, s.wanted_dx, s.in, 2e-6);
	sample_close(&s);
}

static void test_rows_shared_out_are_the_same_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct sample s;
		float *y, *dx;

		sample_open(&s, &shapes[i], (uint32_t)i);
		y = memory(s.out, sizeof(float));
		dx = memory(s.in, sizeof(float));
		kernel_pool_max(&s.pool, s.x, s.y, s.argmax, 0, forward_rows(&s));
		kernel_pool_max_grad(&s.pool, s.argmax, s.dy, s.dx, 0, backward_rows(&s), false);
		for (int64_t r = forward_rows(&s); r-- > 0;)
			kernel_pool_max(&s.pool, s.x, y, s.argmax, r, 1);
		for (int64_t r = backward_rows(&s); r-- > 0;)
			kernel_pool_max_grad(&s.pool, s.argmax, s.dy, dx, r, 1, false);
		assert_memory_equal(y, s.y, s.out * sizeof(float));
		assert_memory_equal(dx, s.dx, s.in * sizeof(float));
		mem_free(y);
		mem_free(dx);
		sample_close(&s);
	}
}

static void test_whole_images(void **state)
{
	static const int64_t sizes[][2] = {{1, 1}, {49, 700}, {200, 3}, {7, 512}};

	(void)state;
	for (size_t n = 0; n < ARRAY_LEN(sizes); n++) {
		int64_t cells = sizes[n][0], channels = sizes[n][1], stride = channels + 3;
		size_t in = (size_t)(cells * stride);
		float *x = memory(in, sizeof(float)), *dx = memory(in, sizeof(float));
		float *y = memory((size_t)channels, sizeof(float));
		float *dy = memory((size_t)channels, sizeof(float));

		math_fill(x, in, 1, -1.0f, 1.0f);
		math_fill(dy, (size_t)channels, 2, -1.0f, 1.0f);
		for (size_t i = 0; i < in; i++)
			x[i] = roundf(x[i] * 8.0f) / 8.0f;
		kernel_pool_mean_all(x, stride, cells, channels, y);
		kernel_pool_mean_all_grad(dy, dx, stride, cells, channels, false);
		for (int64_t c = 0; c < channels; c++) {
			double sum = 0.0;

			for (int64_t i = 0; i < cells; i++)
				sum += (double)x[i * stride + c];
			assert_true(fabs((double)y[c] - sum / (double)cells) < 1e-6);
			assert_close((double)dx[(cells - 1) * stride + c],
				     (double)dy[c] / (double)cells, 1e-6);
		}
		kernel_pool_mean_all_grad(dy, dx, stride, cells, channels, true);
		assert_close((double)dx[channels - 1],
			     2.0 * (double)dy[channels - 1] / (double)cells, 1e-6);

		/* Ties share. */
		kernel_pool_max_all(x, stride, cells, channels, y);
		kernel_pool_max_all_grad(x, y, dy, dx, stride, cells, channels, false);
		for (int64_t c = 0; c < channels; c++) {
			float most = -INFINITY;
			int ties = 0;

			for (int64_t i = 0; i < cells; i++)
				most = fmaxf(most, x[i * stride + c]);
			for (int64_t i = 0; i < cells; i++)
				ties += x[i * stride + c] == most;
			assert_true(y[c] == most);
			for (int64_t i = 0; i < cells; i++)
				assert_close((double)dx[i * stride + c],
					     x[i * stride + c] == most ? (double)dy[c] / ties : 0.0,
					     1e-6);
		}
		x[(cells - 1) * stride] = NAN;
		kernel_pool_max_all(x, stride, cells, channels, y);
		kernel_pool_max_all_grad(x, y, dy, dx, stride, cells, channels, false);
		assert_true(isnan(y[0]) && isnan(dx[0]));
		kernel_pool_mean_all(x, stride, cells, channels, y);
		assert_true(isnan(y[0]));
		assert_true(channels == 1 || !isnan(y[1]));
		mem_free(x);
		mem_free(dx);
		mem_free(y);
		mem_free(dy);
	}
}

/* ---- bodies ---------------------------------------------------------------------------------- */

#define CHANNELS 67

struct body_sample {
	float x[9 * CHANNELS], y[CHANNELS], dy[POOL_SHARES * CHANNELS], dx[6 * CHANNELS];
	uint8_t argmax[POOL_SHARES * CHANNELS];
};

/* What a body makes of @s, for @channels channels. */
static void run_body(const struct pool_body *body, struct body_sample *s, int64_t channels,
		     int kind)
{
	static const int64_t offsets[9] = {0,
					   CHANNELS,
					   2 * CHANNELS,
					   3 * CHANNELS,
					   4 * CHANNELS,
					   5 * CHANNELS,
					   6 * CHANNELS,
					   7 * CHANNELS,
					   8 * CHANNELS};
	struct pool_run run = {
		s->x, s->y, kind % 2 ? s->argmax : NULL, 1, 0, channels, kind < 2 ? 4 : 9, offsets};
	struct pool_share shares[POOL_SHARES] = {{0}};

	for (uint32_t i = 0; i < POOL_SHARES; i++) {
		shares[i].dy = s->dy + i * CHANNELS;
		shares[i].argmax = s->argmax + i * CHANNELS;
		shares[i].cell = i + 1;
	}
	if (kind < 4)
		body->max(&run);
	else if (kind < 12)
		body->gather(shares, kind % 4 + 1, s->dx, channels, kind > 7);
	else
		body->spread(s->dy, s->argmax, s->dx, kind < 15 ? 1 : 2, kind % 3 + 1, channels, 2);
}

static void test_every_body_gives_the_same_bytes(void **state)
{
	static struct body_sample first, wanted, got;
	const struct pool_body *bodies;
	int count;

	(void)state;
	bodies = pool__bodies(&count);
	math_fill(first.x, ARRAY_LEN(first.x), 1, -1.0f, 1.0f);
	math_fill(first.dy, ARRAY_LEN(first.dy), 2, -1.0f, 1.0f);
	math_fill(first.dx, ARRAY_LEN(first.dx), 3, -1.0f, 1.0f);
	for (size_t i = 0; i < ARRAY_LEN(first.x); i++)
		first.x[i] = i % 11 ? roundf(first.x[i] * 4.0f) : i % 2 ? NAN : INFINITY;
	for (size_t i = 0; i < ARRAY_LEN(first.argmax); i++)
		first.argmax[i] = (uint8_t)(i * 7 % 5);
	for (int b = 0; b < count; b++) {
		for (int64_t channels = 1; bodies[b].runs_here() && channels <= CHANNELS;
		     channels++) {
			for (int kind = 0; kind < 18; kind++) {
				wanted = got = first;
				run_body(&bodies[count - 1], &wanted, channels, kind);
				run_body(&bodies[b], &got, channels, kind);
				if (memcmp(&wanted, &got, sizeof(got)) != 0)
					fail_msg("%s differs at %lld channels, kind %d",
						 bodies[b].name, (long long)channels, kind);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maxima_and_their_places_are_those_of_plain_loops),
		cmocka_unit_test(test_a_maximums_gradient_goes_to_the_first_greatest_cell),
		cmocka_unit_test(test_means_are_over_the_cells_inside_the_image),
		cmocka_unit_test(test_not_a_number_wins_and_infinities_are_values),
		cmocka_unit_test(test_a_gradient_of_nan_reaches_its_cell_alone),
		cmocka_unit_test(test_rows_shared_out_are_the_same_bytes),
		cmocka_unit_test(test_whole_images),
		cmocka_unit_test(test_every_body_gives_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
