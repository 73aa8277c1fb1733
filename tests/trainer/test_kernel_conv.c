/*
 * Convolutions: every body against plain loops in double, on odd shapes, and the same bytes for any
 * body and number of threads.
 */
#include "trainer/kernels/kernel_conv.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_conv_internal.h"

struct shape {
	int64_t batch, height, width, channels, filters;
	int64_t kernel[2], stride[2], dilation[2];
	bool same;
	int64_t groups;
};

static const struct shape shapes[] = {
	{2, 7, 9, 3, 5, {3, 3}, {1, 1}, {1, 1}, false, 1},
	{1, 1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, false, 1},
	{3, 28, 28, 1, 32, {3, 3}, {1, 1}, {1, 1}, false, 1},
	{2, 13, 13, 32, 64, {3, 3}, {1, 1}, {1, 1}, false, 1},
	{2, 10, 11, 5, 17, {3, 2}, {1, 1}, {1, 1}, true, 1},
	{2, 8, 8, 16, 16, {2, 2}, {2, 2}, {1, 1}, true, 1},
	{2, 9, 10, 17, 16, {3, 3}, {2, 2}, {1, 1}, true, 1},
	{1, 9, 10, 5, 64, {5, 4}, {3, 2}, {1, 1}, false, 1},
	{2, 11, 12, 3, 48, {7, 7}, {2, 2}, {1, 1}, false, 1},
	{2, 9, 9, 5, 5, {3, 3}, {1, 1}, {2, 3}, true, 1},
	{1, 12, 9, 4, 3, {2, 3}, {1, 1}, {3, 2}, false, 1},
	{2, 7, 7, 64, 65, {3, 3}, {1, 1}, {1, 1}, true, 1},
	{5, 3, 3, 16, 33, {3, 3}, {1, 1}, {1, 1}, true, 1},
	{2, 9, 7, 64, 40, {1, 1}, {1, 1}, {1, 1}, false, 1},
	{2, 9, 7, 17, 70, {1, 1}, {2, 2}, {1, 1}, false, 1},
	{1, 7, 7, 1024, 24, {1, 1}, {1, 1}, {1, 1}, false, 1},
	{1, 9, 9, 512, 24, {1, 1}, {2, 2}, {1, 1}, true, 1},
	{40, 6, 6, 4, 6, {3, 3}, {1, 1}, {1, 1}, true, 2},
	{2, 9, 10, 6, 9, {3, 3}, {2, 1}, {1, 1}, true, 3},
	{1, 40, 300, 2, 3, {3, 3}, {1, 1}, {1, 1}, true, 1},
	{2, 5, 5, 64, 130, {3, 3}, {1, 1}, {1, 1}, true, 1},
	{30, 9, 9, 8, 24, {1, 3}, {1, 2}, {1, 1}, false, 1},
	/* pixels read 4 KB apart, of three rows */
	{1, 4, 5, 256, 5, {3, 1}, {1, 4}, {1, 1}, false, 1},
	{2, 4, 4, 3, 2, {2, 1}, {4, 3}, {1, 1}, false, 1},
	/* 3x3 of many channels: in Winograd's tiles, whole and in part, of kernels small and large */
	{5, 12, 12, 16, 16, {3, 3}, {1, 1}, {1, 1}, true, 1},
	{9, 13, 17, 18, 35, {3, 3}, {1, 1}, {1, 1}, false, 1},
	{2, 8, 8, 140, 60, {3, 3}, {1, 1}, {1, 1}, true, 1},
	/* depthwise */
	{2, 9, 9, 16, 16, {3, 3}, {1, 1}, {1, 1}, true, 16},
	{2, 9, 10, 35, 35, {3, 3}, {2, 2}, {1, 1}, true, 35},
	{2, 9, 10, 5, 15, {5, 3}, {2, 1}, {1, 1}, true, 5},
	{2, 9, 8, 17, 34, {3, 2}, {1, 1}, {2, 1}, false, 17},
	{3, 5, 5, 33, 33, {1, 1}, {1, 1}, {1, 1}, false, 33},
	{2, 12, 13, 64, 64, {2, 2}, {3, 3}, {1, 1}, false, 64},
	{7, 30, 30, 24, 24, {7, 7}, {1, 1}, {1, 1}, true, 24},
};

static void plan_side(int64_t size, int64_t kernel, int64_t stride, int64_t dilation, bool same,
		      int64_t *out, int64_t *pad)
{
	int64_t reach = (kernel - 1) * dilation + 1, all;

	*pad = 0;
	*out = (size - reach) / stride + 1;
	if (!same)
		return;
	*out = (size + stride - 1) / stride;
	all = (*out - 1) * stride + reach - size;
	*pad = all > 0 ? all / 2 : 0;
}

static struct kernel_conv conv_of(const struct shape *s)
{
	struct kernel_conv c = {
		.batch = s->batch,
		.height = s->height,
		.width = s->width,
		.channels = s->channels,
		.filters = s->filters,
		.kernel_height = s->kernel[0],
		.kernel_width = s->kernel[1],
		.stride_y = s->stride[0],
		.stride_x = s->stride[1],
		.dilation_y = s->dilation[0],
		.dilation_x = s->dilation[1],
		.groups = s->groups,
	};

	plan_side(c.height, c.kernel_height, c.stride_y, c.dilation_y, s->same, &c.out_height,
		  &c.pad_top);
	plan_side(c.width, c.kernel_width, c.stride_x, c.dilation_x, s->same, &c.out_width,
		  &c.pad_left);
	return c;
}

/* A convolution with all its arrays. */
struct problem {
	struct kernel_conv c;
	size_t inputs, outputs, weights;
	float *x, *y, *dx, *w, *dw, *bias, *dbias;
	struct kernel_room room;
};

static float *filled(size_t count, uint32_t seed, float low, float high)
{
	float *values = mem_aligned(count, sizeof(float));

	assert_non_null(values);
	math_fill(values, count, seed, low, high);
	return values;
}

static void problem_open(struct problem *p, const struct shape *s, struct pool *pool)
{
	struct kernel_conv *c = &p->c;

	*c = conv_of(s);
	p->inputs = (size_t)(c->batch * c->height * c->width * c->channels);
	p->outputs = (size_t)(c->batch * c->out_height * c->out_width * c->filters);
	p->weights = (size_t)(c->kernel_height * c->kernel_width * (c->channels / c->groups) *
			      c->filters);
	p->x = filled(p->inputs, 1, -1.0f, 1.0f);
	p->w = filled(p->weights, 2, -1.0f, 1.0f);
	p->bias = filled((size_t)c->filters, 3, -1.0f, 1.0f);
	/* Results must not depend on what was there. */
	p->y = filled(p->outputs, 4, NAN, NAN);
	p->dx = filled(p->inputs, 5, NAN, NAN);
	p->dw = filled(p->weights, 6, NAN, NAN);
	p->dbias = filled((size_t)c->filters, 7, NAN, NAN);
	p->room.pool = pool;
	p->room.scratch =
		filled(kernel_conv_scratch(c, pool_lanes(pool), true) / sizeof(float), 8, NAN, NAN);
}

static void problem_close(struct problem *p)
{
	mem_free(p->x);
	mem_free(p->y);
	mem_free(p->dx);
	mem_free(p->w);
	mem_free(p->dw);
	mem_free(p->bias);
	mem_free(p->dbias);
	mem_free(p->room.scratch);
}

/* ---- the plain loops ------------------------------------------------------------------------- */

/* Called for each product of the convolution, with indices into x, kernel and y. */
typedef void (*product)(void *user, size_t x, size_t w, size_t y);

struct place {
	int64_t n, oy, ox, f, i, j;
};

/* The pixel of the input that a tap reads; -1: of the padding. */
static int64_t pixel_read(const struct kernel_conv *c, const struct place *p)
{
	int64_t row = p->oy * c->stride_y + p->i * c->dilation_y - c->pad_top;
	int64_t column = p->ox * c->stride_x + p->j * c->dilation_x - c->pad_left;

	if (row < 0 || row >= c->height || column < 0 || column >= c->width)
		return -1;
	return (p->n * c->height + row) * c->width + column;
}

static void each_channel(const struct kernel_conv *c, const struct place *p, product visit,
			 void *user)
{
	int64_t depth = c->channels / c->groups, group = p->f / (c->filters / c->groups);
	int64_t pixel = pixel_read(c, p);

	for (int64_t d = 0; pixel >= 0 && d < depth; d++)
		visit(user, (size_t)(pixel * c->channels + group * depth + d),
		      (size_t)(((p->i * c->kernel_width + p->j) * depth + d) * c->filters + p->f),
		      (size_t)(((p->n * c->out_height + p->oy) * c->out_width + p->ox) *
				       c->filters +
			       p->f));
}

static void each_product(const struct kernel_conv *c, product visit, void *user)
{
	int64_t taps = c->kernel_height * c->kernel_width;
	int64_t outputs = c->batch * c->out_height * c->out_width * c->filters;

	for (int64_t o = 0; o < outputs; o++) {
		int64_t pixel = o / c->filters;
		struct place p = {.f = o % c->filters,
				  .ox = pixel % c->out_width,
				  .oy = pixel / c->out_width % c->out_height,
				  .n = pixel / c->out_width / c->out_height};

		for (int64_t tap = 0; tap < taps; tap++) {
			p.i = tap / c->kernel_width;
			p.j = tap % c->kernel_width;
			each_channel(c, &p, visit, user);
		}
	}
}

/* sum[to] += a[] b[], and the same of absolute values: what rounding is measured by. */
struct plain {
	const float *x, *w, *dy;
	double *sum, *size;
};

static void plain_add(struct plain *p, size_t at, double value)
{
	p->sum[at] += value;
	p->size[at] += fabs(value);
}

static void plain_forward(void *user, size_t x, size_t w, size_t y)
{
	struct plain *p = user;

	plain_add(p, y, (double)p->x[x] * (double)p->w[w]);
}

static void plain_input(void *user, size_t x, size_t w, size_t y)
{
	struct plain *p = user;

	plain_add(p, x, (double)p->dy[y] * (double)p->w[w]);
}

static void plain_kernel(void *user, size_t x, size_t w, size_t y)
{
	struct plain *p = user;

	plain_add(p, w, (double)p->dy[y] * (double)p->x[x]);
}

/* In Winograd's tiles an element's rounding is of all that its tile reads, and these numbers are
 * alike everywhere: as that of the element with the most products. */
static void plain_spread(struct plain *plain, const struct problem *p, size_t count)
{
	const struct conv_view view = conv__forward_view(&p->c, NULL);
	double most = 0.0;

	if (!conv__winograd_applies(&view, p->c.filters, p->c.groups))
		return;
	for (size_t i = 0; i < count; i++)
		most = fmax(most, plain->size[i]);
	for (size_t i = 0; i < count; i++)
		plain->size[i] = most;
}

static void plain_open(struct plain *plain, const struct problem *p, const float *dy, size_t count,
		       product visit)
{
	*plain = (struct plain){.x = p->x, .w = p->w, .dy = dy};
	plain->sum = mem_calloc(count, sizeof(double));
	plain->size = mem_calloc(count, sizeof(double));
	assert_true(plain->sum && plain->size);
	each_product(&p->c, visit, plain);
	plain_spread(plain, p, count);
}

static void plain_close(struct plain *plain)
{
	mem_free(plain->sum);
	mem_free(plain->size);
}

static void check_sum(float got, double wanted, double size, const char *what, size_t shape,
		      size_t at)
{
	if (!(fabs((double)got - wanted) <= 1e-6 * (size + 1.0)))
		fail_msg("shape %zu, %s[%zu] is %.9g, not %.9g", shape, what, at, (double)got,
			 wanted);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static double finished(double sum, float bias, const struct kernel_conv_finish *finish)
{
	if (finish->bias)
		sum += (double)bias;
	if (finish->relu)
		sum = fmin(fmax(sum, 0.0), (double)finish->most);
	return sum;
}

static void check_forward(struct problem *p, size_t shape)
{
	const struct kernel_conv_finish finishes[] = {{NULL, false, 0.0f, NULL},
						      {p->bias, false, 0.0f, NULL},
						      {p->bias, true, INFINITY, NULL},
						      {NULL, true, 0.5f, NULL}};
	struct plain plain;

	plain_open(&plain, p, NULL, p->outputs, plain_forward);
	for (size_t f = 0; f < ARRAY_LEN(finishes); f++) {
		kernel_conv_forward(&p->c, &p->room, p->x, p->w, &finishes[f], p->y);
		for (size_t i = 0; i < p->outputs; i++)
			check_sum(p->y[i],
				  finished(plain.sum[i], p->bias[i % (size_t)p->c.filters],
					   &finishes[f]),
				  plain.size[i], "y", shape, i);
	}
	plain_close(&plain);
}

static void check_grad_input(struct problem *p, const float *dy, size_t shape)
{
	struct plain plain;

	plain_open(&plain, p, dy, p->inputs, plain_input);
	kernel_conv_grad_input(&p->c, &p->room, dy, p->w, p->dx, false);
	for (size_t i = 0; i < p->inputs; i++)
		check_sum(p->dx[i], plain.sum[i], plain.size[i], "dx", shape, i);
	kernel_conv_grad_input(&p->c, &p->room, dy, p->w, p->dx, true);
	for (size_t i = 0; i < p->inputs; i++)
		check_sum(p->dx[i], 2.0 * plain.sum[i], 2.0 * plain.size[i], "added dx", shape, i);
	plain_close(&plain);
}

static void check_grad_kernel(struct problem *p, float *dy, size_t shape)
{
	const struct kernel_conv_relu none = {0};
	size_t filters = (size_t)p->c.filters;
	struct plain plain;

	plain_open(&plain, p, dy, p->weights, plain_kernel);
	kernel_conv_grad_kernel(&p->c, &p->room, p->x, dy, &none, p->dw, p->dbias);
	for (size_t i = 0; i < p->weights; i++)
		check_sum(p->dw[i], plain.sum[i], plain.size[i], "dw", shape, i);
	for (size_t f = 0; f < filters; f++) {
		double sum = 0.0, size = 0.0;

		for (size_t i = f; i < p->outputs; i += filters) {
			sum += (double)dy[i];
			size += fabs((double)dy[i]);
		}
		check_sum(p->dbias[f], sum, size, "dbias", shape, f);
	}
	kernel_conv_grad_kernel(&p->c, &p->room, p->x, dy, &none, p->dw, NULL);
	for (size_t i = 0; i < p->weights; i++)
		check_sum(p->dw[i], plain.sum[i], plain.size[i], "dw alone", shape, i);
	plain_close(&plain);
}

/* The gradient of a ReLU between 0 and @most, done on the way, is that done before. */
static void check_relu(struct problem *p, const float *dy, float most, size_t shape)
{
	size_t bytes = p->weights * sizeof(float);
	float *masked = filled(p->outputs, 0, 0.0f, 0.0f), *own = filled(p->outputs, 0, 0.0f, 0.0f);
	float *first = filled(p->weights, 0, 0.0f, 0.0f);
	struct kernel_conv_relu relu = {p->y, most, false};
	const struct kernel_conv_relu none = {0};

	math_fill(p->y, p->outputs, 11, -1.0f, 1.0f);
	p->y[0] = NAN;
	p->y[p->outputs - 1] = INFINITY;
	for (size_t i = 0; i < p->outputs; i++) {
		bool passes = !(p->y[i] <= 0.0f) && !(most < INFINITY && p->y[i] >= most);

		masked[i] = passes ? dy[i] : 0.0f;
		own[i] = dy[i];
	}
	kernel_conv_grad_kernel(&p->c, &p->room, p->x, masked, &none, first, p->dbias);
	kernel_conv_grad_kernel(&p->c, &p->room, p->x, own, &relu, p->dw, p->dbias);
	if (memcmp(p->dw, first, bytes))
		fail_msg("shape %zu: dw changes where the ReLU's gradient is done with it", shape);
	/* Depthwise ones always keep it. */
	if (p->c.groups == 1)
		assert_memory_equal(own, dy, p->outputs * sizeof(float));
	memcpy(own, dy, p->outputs * sizeof(float));
	relu.keep = true;
	kernel_conv_grad_kernel(&p->c, &p->room, p->x, own, &relu, p->dw, p->dbias);
	assert_memory_equal(p->dw, first, bytes);
	assert_memory_equal(own, masked, p->outputs * sizeof(float));
	memcpy(own, dy, p->outputs * sizeof(float));
	kernel_conv_grad_relu(&relu, p->room.pool, own, p->outputs);
	assert_memory_equal(own, masked, p->outputs * sizeof(float));
	mem_free(masked);
	mem_free(own);
	mem_free(first);
}

/* Sanitizers make a loop over lanes some hundred times slower: there large shapes are left to the
 * bodies whose lanes are registers. So are some hundred channels in any build. */
#ifdef KERNEL_SANITIZED
#define PORTABLE_PRODUCTS 400000
#define PRODUCTS          4000000
#define RANDOM_SHAPES     2
#else
#define PORTABLE_PRODUCTS 40000000
#define PRODUCTS          INT64_MAX
#define RANDOM_SHAPES     60
#endif

static bool too_large(const struct shape *shape, const char *body)
{
	const struct kernel_conv c = conv_of(shape);
	const int64_t products = c.batch * c.out_height * c.out_width * c.filters *
				 c.kernel_height * c.kernel_width * (c.channels / c.groups);

	return products > (strcmp(body, "portable") == 0 ? PORTABLE_PRODUCTS : PRODUCTS);
}

static void check_body(void **state)
{
	const int *body = *state;
	struct pool *pool;

	if (!kernel_conv_use(*body))
		skip();
	assert_int_equal(pool_new(&pool, 1, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct problem p;
		float *dy;

		if (too_large(&shapes[i], kernel_conv_body(*body)))
			continue;
		problem_open(&p, &shapes[i], pool);
		dy = filled(p.outputs, 9, -1.0f, 1.0f);
		check_forward(&p, i);
		check_grad_input(&p, dy, i);
		check_grad_kernel(&p, dy, i);
		check_relu(&p, dy, INFINITY, i);
		check_relu(&p, dy, 0.5f, i);
		mem_free(dy);
		problem_close(&p);
	}
	pool_free(pool);
	kernel_conv_use(0);
}

static void run_all(struct problem *p, float *dy)
{
	const struct kernel_conv_relu relu = {p->y, 6.0f, true};
	const struct kernel_conv_finish finish = {p->bias, true, 6.0f, NULL};

	kernel_conv_forward(&p->c, &p->room, p->x, p->w, &finish, p->y);
	kernel_conv_grad_kernel(&p->c, &p->room, p->x, dy, &relu, p->dw, p->dbias);
	kernel_conv_grad_input(&p->c, &p->room, dy, p->w, p->dx, false);
}

static void test_any_number_of_threads_gives_the_same_bytes(void **state)
{
	static const unsigned helpers[] = {1, 3};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct problem one;
		float *dy;

		problem_open(&one, &shapes[i], NULL);
		dy = filled(one.outputs, 9, -1.0f, 1.0f);
		run_all(&one, dy);
		for (size_t h = 0; h < ARRAY_LEN(helpers); h++) {
			struct problem p;
			struct pool *pool;

			assert_int_equal(pool_new(&pool, helpers[h], NULL), ST_OK);
			problem_open(&p, &shapes[i], pool);
			math_fill(dy, p.outputs, 9, -1.0f, 1.0f);
			run_all(&p, dy);
			assert_memory_equal(p.y, one.y, p.outputs * sizeof(float));
			assert_memory_equal(p.dx, one.dx, p.inputs * sizeof(float));
			assert_memory_equal(p.dw, one.dw, p.weights * sizeof(float));
			assert_memory_equal(p.dbias, one.dbias,
					    (size_t)p.c.filters * sizeof(float));
			problem_close(&p);
			pool_free(pool);
		}
		mem_free(dy);
		problem_close(&one);
	}
}

/* ---- the same bytes everywhere --------------------------------------------------------------- */

static int64_t drawn(uint32_t *state, int64_t most)
{
	*state = *state * 1664525u + 1013904223u;
	return 1 + (int64_t)(*state >> 8) % most;
}

/* Sides of a few pixels up to some tiles, depths about the widths of the panels and beyond. */
static struct shape drawn_shape(uint32_t *state)
{
	struct shape s = {.batch = drawn(state, 5), .groups = drawn(state, 8) == 8 ? 2 : 1};
	int64_t most = drawn(state, 3) == 3 ? 140 : 40;
	bool dilated = drawn(state, 6) == 6;

	s.channels = s.groups * drawn(state, most);
	s.filters = s.groups * drawn(state, most);
	for (int i = 0; i < 2; i++) {
		s.kernel[i] = drawn(state, 3) > 1 ? 3 : drawn(state, 5);
		s.stride[i] = dilated ? 1 : drawn(state, 2);
		s.dilation[i] = dilated ? drawn(state, 3) : 1;
	}
	s.height = (s.kernel[0] - 1) * s.dilation[0] + drawn(state, 18);
	s.width = (s.kernel[1] - 1) * s.dilation[1] + drawn(state, 18);
	s.same = drawn(state, 2) == 1;
	return s;
}

/* Bit by bit; one NaN is like the other. */
static void check_same(const float *a, const float *b, size_t count, const char *what, size_t shape)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(&a[i], &b[i], sizeof(float)) && !(isnan(a[i]) && isnan(b[i])))
			fail_msg("shape %zu: %s[%zu] of %zu is %a here, %a there", shape, what, i,
				 count, (double)a[i], (double)b[i]);
}

/* Some numbers that are none, or too large for a product. */
static void spoil(float *values, size_t count, uint32_t seed)
{
	static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-40f};

	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		if (drawn(&seed, 3) == 3)
			values[(size_t)drawn(&seed, (int64_t)count) - 1] = odd[i];
}

static void check_bodies(const struct shape *shape, size_t index, bool odd)
{
	struct problem first = {.inputs = 0};
	float *first_dy = NULL;

	for (int body = 0; kernel_conv_body(body); body++) {
		struct problem p;
		float *dy;

		if (too_large(shape, kernel_conv_body(body)) || !kernel_conv_use(body))
			continue;
		problem_open(&p, shape, NULL);
		dy = filled(p.outputs, 9, -1.0f, 1.0f);
		if (odd) {
			spoil(p.x, p.inputs, (uint32_t)index);
			spoil(p.w, p.weights, (uint32_t)index + 1000);
			spoil(dy, p.outputs, (uint32_t)index + 2000);
		}
		run_all(&p, dy);
		if (!first_dy) {
			first = p;
			first_dy = dy;
			continue;
		}
		check_same(p.y, first.y, p.outputs, "y", index);
		check_same(p.dx, first.dx, p.inputs, "dx", index);
		check_same(p.dw, first.dw, p.weights, "dw", index);
		check_same(p.dbias, first.dbias, (size_t)p.c.filters, "dbias", index);
		check_same(dy, first_dy, p.outputs, "dy", index);
		mem_free(dy);
		problem_close(&p);
	}
	mem_free(first_dy);
	problem_close(&first);
	kernel_conv_use(0);
}

static void test_any_body_gives_the_same_bytes(void **state)
{
	uint32_t seed = 17;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		for (int odd = 0; odd < 2; odd++)
			check_bodies(&shapes[i], i, odd);
	for (size_t i = 0; i < RANDOM_SHAPES; i++) {
		struct shape shape = drawn_shape(&seed);

		check_bodies(&shape, 100 + i, i % 2);
	}
}

/* An image's output and gradient are the same alone. */
static void test_an_image_does_not_know_of_others(void **state)
{
	const struct kernel_conv_finish finish = {NULL, false, 0.0f, NULL};
	uint32_t seed = 5;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes) + RANDOM_SHAPES / 3; i++) {
		struct shape shape = i < ARRAY_LEN(shapes) ? shapes[i] : drawn_shape(&seed);
		struct problem all, one;
		size_t last = (size_t)shape.batch - 1;
		float *dy;

		problem_open(&all, &shape, NULL);
		shape.batch = 1;
		problem_open(&one, &shape, NULL);
		dy = filled(all.outputs, 9, -1.0f, 1.0f);
		if (i % 2)
			spoil(all.w, all.weights, (uint32_t)i);
		memcpy(one.w, all.w, one.weights * sizeof(float));
		memcpy(one.x, all.x + last * one.inputs, one.inputs * sizeof(float));
		kernel_conv_forward(&all.c, &all.room, all.x, all.w, &finish, all.y);
		kernel_conv_forward(&one.c, &one.room, one.x, one.w, &finish, one.y);
		check_same(all.y + last * one.outputs, one.y, one.outputs, "y", i);
		kernel_conv_grad_input(&all.c, &all.room, dy, all.w, all.dx, false);
		kernel_conv_grad_input(&one.c, &one.room, dy + last * one.outputs, one.w, one.dx,
				       false);
		check_same(all.dx + last * one.inputs, one.dx, one.inputs, "dx", i);
		mem_free(dy);
		problem_close(&all);
		problem_close(&one);
	}
}

static void test_a_smaller_batch_needs_no_more_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		for (unsigned lanes = 1; lanes < 4; lanes += 2) {
			struct shape s = shapes[i];
			size_t before = 0;

			for (s.batch = 1; s.batch < 70; s.batch++) {
				struct kernel_conv c = conv_of(&s);
				size_t bytes = kernel_conv_scratch(&c, lanes, true);

				assert_true(bytes >= before);
				assert_true(bytes >= kernel_conv_scratch(&c, lanes, false));
				before = bytes;
			}
		}
	}
}

static void test_not_a_number_and_infinities_go_through(void **state)
{
	static const struct shape shape = {1, 6, 6, 3, 20, {3, 3}, {1, 1}, {1, 1}, true, 1};

	(void)state;
	for (int body = 0; kernel_conv_body(body); body++) {
		struct kernel_conv_finish finish = {NULL, true, 6.0f, NULL};
		struct problem p;

		if (!kernel_conv_use(body))
			continue;
		problem_open(&p, &shape, NULL);
		p.x[0] = NAN;
		p.x[p.inputs - 1] = INFINITY;
		kernel_conv_forward(&p.c, &p.room, p.x, p.w, &finish, p.y);
		for (size_t f = 0; f < 20; f++) {
			float last = p.y[p.outputs - 20 + f];

			assert_true(isnan(p.y[f]));
			assert_true(last < 1.0f ? last <= 0.0f : last >= 6.0f);
			assert_true(isfinite(p.y[3 * 20 + f]));
		}
		problem_close(&p);
	}
	kernel_conv_use(0);
}

/* A sum is no number, or infinite, where its products make it so, and nowhere else. */
static void check_places(const float *got, const struct plain *plain, size_t count, double size,
			 const char *what)
{
	for (size_t i = 0; i < count; i++) {
		double wanted = plain->sum[i];

		if (isfinite(wanted))
			check_sum(got[i], wanted, size, what, 0, i);
		else if (isnan(wanted) ? !isnan(got[i]) : (double)got[i] != wanted)
			fail_msg("%s[%zu] is %g, not %g", what, i, (double)got[i], wanted);
	}
}

/* Rows of tiles that read such numbers, and filters that have such weights, are summed plainly. */
static void check_no_numbers(const struct shape *shape)
{
	const struct kernel_conv_finish finish = {NULL, false, 0.0f, NULL};
	const struct kernel_conv_relu none = {0};
	const double depth = (double)(9 * shape->channels), filters = (double)(9 * shape->filters);
	struct plain plain;
	struct problem p;
	float *dy;

	problem_open(&p, shape, NULL);
	dy = filled(p.outputs, 9, -1.0f, 1.0f);
	p.x[5] = dy[p.outputs / 2] = NAN;
	p.x[p.inputs - 9] = dy[7] = INFINITY;
	plain_open(&plain, &p, dy, p.outputs, plain_forward);
	kernel_conv_forward(&p.c, &p.room, p.x, p.w, &finish, p.y);
	check_places(p.y, &plain, p.outputs, depth, "y");
	plain_close(&plain);
	plain_open(&plain, &p, dy, p.inputs, plain_input);
	memset(p.dx, 0, p.inputs * sizeof(float));
	kernel_conv_grad_input(&p.c, &p.room, dy, p.w, p.dx, true);
	check_places(p.dx, &plain, p.inputs, filters, "dx");
	plain_close(&plain);
	plain_open(&plain, &p, dy, p.weights, plain_kernel);
	kernel_conv_grad_kernel(&p.c, &p.room, p.x, dy, &none, p.dw, NULL);
	check_places(p.dw, &plain, p.weights, (double)p.outputs / (double)shape->filters, "dw");
	plain_close(&plain);

	/* A weight spoils all outputs of its filter and of no other. */
	math_fill(p.x, p.inputs, 1, -1.0f, 1.0f);
	p.w[40] = -INFINITY;
	plain_open(&plain, &p, dy, p.outputs, plain_forward);
	kernel_conv_forward(&p.c, &p.room, p.x, p.w, &finish, p.y);
	check_places(p.y, &plain, p.outputs, depth, "y of weights");
	plain_close(&plain);
	mem_free(dy);
	problem_close(&p);
}

static void test_winograds_tiles_spread_nothing_that_is_no_number(void **state)
{
	static const struct shape small = {3, 15, 19, 18, 70, {3, 3}, {1, 1}, {1, 1}, false, 1};
	static const struct shape large = {1, 11, 13, 80, 100, {3, 3}, {1, 1}, {1, 1}, false, 1};

	(void)state;
	check_no_numbers(&small);
	check_no_numbers(&large);
}

/* ---- larger shapes, at a sample of their elements -------------------------------------------- */

static struct place output_place(const struct kernel_conv *c, int64_t pixel)
{
	return (struct place){.n = pixel / c->out_width / c->out_height,
			      .oy = pixel / c->out_width % c->out_height,
			      .ox = pixel % c->out_width};
}

/* The sum of output @at. */
static double plain_output(const struct problem *p, int64_t at)
{
	const struct kernel_conv *c = &p->c;
	const int64_t f = at % c->filters, depth = c->channels / c->groups;
	const int64_t first = f / (c->filters / c->groups) * depth;
	struct place place = output_place(c, at / c->filters);
	double sum = 0.0;

	for (int64_t tap = 0; tap < c->kernel_height * c->kernel_width; tap++) {
		int64_t pixel;

		place.i = tap / c->kernel_width;
		place.j = tap % c->kernel_width;
		pixel = pixel_read(c, &place);
		for (int64_t d = 0; pixel >= 0 && d < depth; d++)
			sum += (double)p->x[pixel * c->channels + first + d] *
			       (double)p->w[(tap * depth + d) * c->filters + f];
	}
	return sum;
}

/* The gradient of weight @at. */
static double plain_weight(const struct problem *p, const float *dy, int64_t at)
{
	const struct kernel_conv *c = &p->c;
	const int64_t depth = c->channels / c->groups, f = at % c->filters;
	const int64_t tap = at / c->filters / depth;
	const int64_t channel = f / (c->filters / c->groups) * depth + at / c->filters % depth;
	double sum = 0.0;

	for (int64_t o = 0; o < c->batch * c->out_height * c->out_width; o++) {
		struct place place = output_place(c, o);
		int64_t pixel;

		place.i = tap / c->kernel_width;
		place.j = tap % c->kernel_width;
		pixel = pixel_read(c, &place);
		if (pixel >= 0)
			sum += (double)dy[o * c->filters + f] *
			       (double)p->x[pixel * c->channels + channel];
	}
	return sum;
}

/* The gradient of input @at: of the outputs that read it. */
static double plain_pixel(const struct problem *p, const float *dy, int64_t at)
{
	const struct kernel_conv *c = &p->c;
	const int64_t depth = c->channels / c->groups, each = c->filters / c->groups;
	const int64_t channel = at % c->channels, pixel = at / c->channels;
	const int64_t image = pixel / c->width / c->height;
	double sum = 0.0;

	for (int64_t o = image * c->out_height * c->out_width;
	     o < (image + 1) * c->out_height * c->out_width; o++) {
		struct place place = output_place(c, o);

		for (int64_t tap = 0; tap < c->kernel_height * c->kernel_width; tap++) {
			const int64_t row = tap * depth + channel % depth, of = channel / depth;

			place.i = tap / c->kernel_width;
			place.j = tap % c->kernel_width;
			if (pixel_read(c, &place) != pixel)
				continue;
			for (int64_t f = of * each; f < (of + 1) * each; f++)
				sum += (double)dy[o * c->filters + f] *
				       (double)p->w[row * c->filters + f];
		}
	}
	return sum;
}

/* All bodies. Factors are 1 at most, so a sum is measured by the number of its products; Winograd's
 * tiles round some times as much. */
static void check_samples(const struct shape *shape, size_t index)
{
	const struct kernel_conv_finish unfinished = {NULL, false, 0.0f, NULL};
	const struct kernel_conv_relu none = {0};

	for (int body = 0; kernel_conv_body(body); body++) {
		struct problem p;
		const struct kernel_conv *c = &p.c;
		int64_t taps, depth, inputs, outputs, weights;
		float *dy;

		if (too_large(shape, kernel_conv_body(body)) || !kernel_conv_use(body))
			continue;
		problem_open(&p, shape, NULL);
		dy = filled(p.outputs, 9, -1.0f, 1.0f);
		taps = c->kernel_height * c->kernel_width;
		depth = c->channels / c->groups;
		inputs = (int64_t)p.inputs;
		outputs = (int64_t)p.outputs;
		weights = (int64_t)p.weights;
		kernel_conv_forward(c, &p.room, p.x, p.w, &unfinished, p.y);
		kernel_conv_grad_kernel(c, &p.room, p.x, dy, &none, p.dw, p.dbias);
		kernel_conv_grad_input(c, &p.room, dy, p.w, p.dx, false);
		for (int64_t at = (int64_t)index % 7; at < outputs; at += outputs / 100 + 1)
			check_sum(p.y[at], plain_output(&p, at), 6.0 * (double)(taps * depth), "y",
				  index, (size_t)at);
		for (int64_t at = (int64_t)index % 7; at < weights; at += weights / 200 + 1)
			check_sum(p.dw[at], plain_weight(&p, dy, at),
				  6.0 * (double)(outputs / c->filters), "dw", index, (size_t)at);
		for (int64_t at = (int64_t)index % 7; at < inputs; at += inputs / 100 + 1)
			check_sum(p.dx[at], plain_pixel(&p, dy, at),
				  6.0 * (double)(taps * c->filters / c->groups), "dx", index,
				  (size_t)at);
		mem_free(dy);
		problem_close(&p);
	}
	kernel_conv_use(0);
}

/* Slices of 33 and 32 channels, and others that are not equal; of a small batch all slices share
 * the transformed pixels, of a large one each has its own. */
static void test_slices_of_a_large_kernel_need_not_be_equal(void **state)
{
	static const struct shape rows[] = {
		{2, 16, 16, 65, 128, {3, 3}, {1, 1}, {1, 1}, true, 1},
		{12, 16, 16, 65, 128, {3, 3}, {1, 1}, {1, 1}, true, 1},
		{7, 17, 19, 161, 109, {3, 3}, {1, 1}, {1, 1}, false, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_samples(&rows[i], i);
}

/* Every other time next to a multiple of 16, where panels, pitches and slices change. */
static int64_t drawn_width(uint32_t *seed, int64_t most)
{
	if (drawn(seed, 2) == 1)
		return drawn(seed, most);
	return 16 * drawn(seed, most / 16) + drawn(seed, 3) - 2;
}

/* Up to some hundred channels and filters. */
static void test_random_shapes_agree_with_plain_sums(void **state)
{
	const unsigned rounds = support_rounds(24);
	uint32_t seed = 3;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct shape s = drawn_shape(&seed);

		if (drawn(&seed, 3) > 1) { /* for Winograd's tiles */
			s.groups = 1;
			for (int side = 0; side < 2; side++) {
				s.kernel[side] = 3;
				s.stride[side] = s.dilation[side] = 1;
			}
			s.height = 8 + drawn(&seed, 10);
			s.width = 8 + drawn(&seed, 10);
		}
		s.channels = s.groups * drawn_width(&seed, 280 / s.groups);
		s.filters = s.groups * drawn_width(&seed, 200 / s.groups);
		s.batch = drawn(&seed, 12);
		if (drawn(&seed, 8) == 8) { /* depthwise */
			s.groups = s.channels;
			s.filters = s.channels * drawn(&seed, 3);
		}
		check_samples(&s, i);
	}
}

/* Tiles round otherwise than plain sums, so which shapes have them is part of every digest. */
static void test_winograds_tiles_are_for_outputs_that_fill_them(void **state)
{
	static const struct {
		struct shape shape;
		bool applies;
	} rows[] = {
		{{1, 8, 8, 16, 16, {3, 3}, {1, 1}, {1, 1}, false, 1}, true},
		{{1, 7, 7, 16, 16, {3, 3}, {1, 1}, {1, 1}, false, 1}, false},
		{{1, 7, 9, 16, 16, {3, 3}, {1, 1}, {1, 1}, false, 1}, true},
		{{1, 7, 8, 16, 16, {3, 3}, {1, 1}, {1, 1}, false, 1}, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct kernel_conv c = conv_of(&rows[i].shape);
		const struct conv_view view = conv__forward_view(&c, NULL);

		assert_int_equal(conv__winograd_applies(&view, c.filters, c.groups),
				 rows[i].applies);
	}
}

static void test_the_portable_body_is_always_there(void **state)
{
	int last = 0;

	(void)state;
	while (kernel_conv_body(last + 1))
		last++;
	assert_string_equal(kernel_conv_body(last), "portable");
	assert_true(kernel_conv_use(last));
	assert_false(kernel_conv_use(last + 1));
	assert_false(kernel_conv_use(-1));
	assert_null(kernel_conv_body(-1));
	kernel_conv_use(0);
}

int main(void)
{
	static int bodies[] = {0, 1, 2};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(check_body, &bodies[0]),
		cmocka_unit_test_prestate(check_body, &bodies[1]),
		cmocka_unit_test_prestate(check_body, &bodies[2]),
		cmocka_unit_test(test_any_number_of_threads_gives_the_same_bytes),
		cmocka_unit_test(test_any_body_gives_the_same_bytes),
		cmocka_unit_test(test_an_image_does_not_know_of_others),
		cmocka_unit_test(test_a_smaller_batch_needs_no_more_memory),
		cmocka_unit_test(test_not_a_number_and_infinities_go_through),
		cmocka_unit_test(test_winograds_tiles_spread_nothing_that_is_no_number),
		cmocka_unit_test(test_slices_of_a_large_kernel_need_not_be_equal),
		cmocka_unit_test(test_random_shapes_agree_with_plain_sums),
		cmocka_unit_test(test_winograds_tiles_are_for_outputs_that_fill_them),
		cmocka_unit_test(test_the_portable_body_is_always_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
