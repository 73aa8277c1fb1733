/*
 * The matrix product: every body against the definition of an element's sum, bit by bit, and
 * OpenBLAS against a product in double.
 */
#include "trainer/kernels/kernel_gemm.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/pool.h"
#include "support/math.h"

struct product {
	struct kernel_gemm gemm;
	float *a, *b, *c, *bias;
	float *sums;        /* m x n, by the definition; NULL: not yet computed */
	size_t rows, pitch; /* of C as it lies in memory */
	struct kernel_room room;
};

static float *filled(int64_t count, uint32_t seed, float low, float high)
{
	float *values = mem_aligned((size_t)count + 1, sizeof(float));

	assert_non_null(values);
	math_fill(values, (size_t)count, seed, low, high);
	return values;
}

/* Rows lie @gap floats further apart than they are long. */
static void product_open(struct product *p, const int64_t sides[3], int64_t gap, bool ta, bool tb,
			 struct pool *pool)
{
	int64_t m = sides[0], n = sides[1], k = sides[2];
	struct kernel_gemm gemm = {.transpose_a = ta, .transpose_b = tb, .m = m, .n = n, .k = k};

	gemm.lda = (ta ? m : k) + gap;
	gemm.ldb = (tb ? k : n) + gap;
	gemm.ldc = n + gap;
	p->rows = (size_t)m;
	p->pitch = (size_t)gemm.ldc;
	p->a = filled((ta ? k : m) * gemm.lda, 1, -1.0f, 1.0f);
	p->b = filled((tb ? n : k) * gemm.ldb, 2, -1.0f, 1.0f);
	p->bias = filled(n, 3, -1.0f, 1.0f);
	p->sums = NULL;
	/* The product must not depend on what was in C, nor write between its rows. */
	p->c = filled(m * gemm.ldc, 4, NAN, NAN);
	gemm.a = p->a;
	gemm.b = p->b;
	gemm.c = p->c;
	p->gemm = gemm;
	p->room.pool = pool;
	p->room.scratch = mem_aligned(kernel_gemm_scratch(pool_lanes(pool)), 1);
	assert_non_null(p->room.scratch);
	memset(p->room.scratch, 0xff, kernel_gemm_scratch(pool_lanes(pool))); /* NaN */
}

static void product_close(struct product *p)
{
	mem_free(p->a);
	mem_free(p->b);
	mem_free(p->c);
	mem_free(p->bias);
	mem_free(p->sums);
	mem_free(p->room.scratch);
}

static float element_a(const struct kernel_gemm *g, int64_t i, int64_t q)
{
	return g->a[g->transpose_a ? q * g->lda + i : i * g->lda + q];
}

static float element_b(const struct kernel_gemm *g, int64_t q, int64_t j)
{
	return g->b[g->transpose_b ? j * g->ldb + q : q * g->ldb + j];
}

/* The definition: from k = 0 on, one fused multiply-add each; then bias, then the ReLU. The sums
 * are computed once for all that is checked of a product. */
static void define_sums(struct product *p)
{
	const struct kernel_gemm *g = &p->gemm;

	p->sums = mem_aligned((size_t)(g->m * g->n) + 1, sizeof(float));
	assert_non_null(p->sums);
	for (int64_t i = 0; i < g->m; i++) {
		for (int64_t j = 0; j < g->n; j++) {
			float sum = 0.0f;

			for (int64_t q = 0; q < g->k; q++)
				sum = fmaf(element_a(g, i, q), element_b(g, q, j), sum);
			p->sums[i * g->n + j] = sum;
		}
	}
}

static float defined(const struct product *p, int64_t i, int64_t j)
{
	const struct kernel_gemm *g = &p->gemm;
	float sum = p->sums[i * g->n + j];

	if (g->finish.bias)
		sum += g->finish.bias[j];
	if (g->finish.relu && sum <= 0.0f)
		sum = 0.0f;
	if (g->finish.relu && sum > g->finish.most)
		sum = g->finish.most;
	return sum;
}

static bool same(float a, float b)
{
	return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof(a)) == 0 || a == b;
}

static void product_check(struct product *p)
{
	const struct kernel_gemm *g = &p->gemm;

	if (!p->sums)
		define_sums(p);
	for (size_t i = 0; i < p->rows; i++) {
		for (size_t j = 0; j < p->pitch; j++) {
			float got = g->c[i * p->pitch + j];

			if (j >= (size_t)g->n)
				assert_true(isnan(got));
			else if (!same(got, defined(p, (int64_t)i, (int64_t)j)))
				fail_msg("%lld x %lld x %lld, transposes %d %d: C[%zu,%zu] is "
					 "%.9g, not %.9g",
					 (long long)g->m, (long long)g->k, (long long)g->n,
					 g->transpose_a, g->transpose_b, i, j, (double)got,
					 (double)defined(p, (int64_t)i, (int64_t)j));
		}
	}
}

static const int64_t shapes[][3] = {
	{0, 0, 0},     {0, 7, 3},     {5, 0, 3},     {3, 5, 0},     {1, 1, 1},     {3, 5, 7},
	{32, 10, 128}, {128, 10, 32}, {17, 33, 65},  {32, 64, 100}, {3, 70, 37},   {1, 1, 300},
	{2, 1, 300},   {1, 300, 2},   {29, 31, 257}, {13, 67, 513}, {257, 33, 31}, {30, 64, 258},
	{14, 16, 256}, {28, 32, 512}, {15, 37, 525}, {30, 520, 37}, {130, 15, 40}, {77, 9, 300},
	{600, 4, 33},  {4, 520, 700}, {70, 90, 2},   {33, 17, 1},   {9, 40, 3},    {2, 75, 40},
	{3, 40, 16},   {30, 45, 2},   {7, 100, 3},   {9, 18, 1},
};
/* Few rows and a large B: without tiles, and copied; then more rows of a large B. */
static const int64_t large_shapes[][3] = {
	{8, 4352, 61}, {5, 1021, 260}, {9, 512, 520}, {43, 509, 70}, {45, 256, 530}, {257, 256, 10},
};

/* The bodies that this processor has: from the widest vectors to portable code. */
#define BODIES 3

static void check_shape(const int64_t sides[3], int64_t gap, struct pool *pool)
{
	for (int flags = 0; flags < 4; flags++) {
		struct product p;

		product_open(&p, sides, gap, flags & 1, flags & 2, pool);
		for (int body = 0; body < BODIES; body++) {
			if (!kernel_conv_use(body))
				continue;
			math_fill(p.c, p.rows * p.pitch, 4, NAN, NAN);
			p.gemm.finish = (struct kernel_conv_finish){0};
			kernel_gemm(&p.gemm, &p.room);
			product_check(&p);
			for (int finish = 1; !flags && finish < 4; finish++) {
				p.gemm.finish.bias = finish & 1 ? p.bias : NULL;
				p.gemm.finish.relu = finish & 2;
				p.gemm.finish.most = finish == 3 ? 1.0f : INFINITY;
				kernel_gemm(&p.gemm, &p.room);
				product_check(&p);
			}
		}
		product_close(&p);
	}
	kernel_conv_use(0);
}

static void test_every_body_gives_the_defined_bits(void **state)
{
	(void)state;
	for (int body = 0; body < BODIES; body++)
		if (!kernel_conv_use(body))
			print_message("this processor or build has no body %d\n", body);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i += support_stride())
		check_shape(shapes[i], i % 2 ? 3 : 0, NULL);
	for (size_t i = 0; i < ARRAY_LEN(large_shapes); i += support_stride())
		check_shape(large_shapes[i], i % 2 ? 3 : 0, NULL);
}

/* Other shapes each time are not wanted: a failure must come back. */
static void test_random_shapes_too(void **state)
{
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 2, NULL), ST_OK);
	for (uint32_t i = 0; i < 16; i++) {
		int64_t sides[3];
		float draws[3];

		math_fill(draws, 3, i, 0.0f, 1.0f);
		for (int s = 0; s < 3; s++)
			sides[s] = (int64_t)powf(40.0f, draws[s]);
		sides[i % 3] *= i % 8 + 1;
		check_shape(sides, i % 2, pool);
	}
	pool_free(pool);
}

static void test_special_numbers_keep_their_places(void **state)
{
	const int64_t sides[3] = {40, 40, 300};

	(void)state;
	for (int flags = 0; flags < 4; flags++) {
		struct product p;

		product_open(&p, sides, 0, flags & 1, flags & 2, NULL);
		p.a[0] = NAN;
		p.a[77] = INFINITY;
		p.a[40 * 300 - 1] = -INFINITY;
		p.b[300] = 0.0f; /* 0 times NaN and infinity counts too */
		p.b[301] = -0.0f;
		p.b[5] = NAN;
		p.b[40 * 300 - 3] = INFINITY;
		p.b[900] = 1e-44f;
		p.a[901] = 1e-44f;
		for (int body = 0; body < BODIES; body++) {
			if (!kernel_conv_use(body))
				continue;
			math_fill(p.c, p.rows * p.pitch, 4, NAN, NAN);
			kernel_gemm(&p.gemm, &p.room);
			product_check(&p);
		}
		product_close(&p);
	}
	kernel_conv_use(0);
}

static void test_every_slice_writes_and_all_of_them_everything(void **state)
{
	static const int64_t cuts[][3] = {
		{32, 256, 784}, {784, 256, 32}, {32, 10, 128},   {1, 1, 1},
		{4096, 10, 64}, {520, 500, 99}, {3000, 3, 2},    {33, 434, 77},
		{1, 5000, 1},   {7, 7, 2000},   {300, 300, 299}, {800, 1100, 100},
	};

	(void)state;
	for (size_t c = 0; c < 3 * ARRAY_LEN(cuts); c++) {
		const int64_t *sides = cuts[c / 3];
		struct product p;
		unsigned slices;

		product_open(&p, sides, 0, c % 3 == 1, c % 3 == 2, NULL);
		slices = kernel_gemm_slices(&p.gemm);
		assert_in_range(slices, 1, 4096);
		for (unsigned s = 0; s < slices; s++) {
			size_t before = 0, after = 0, count = (size_t)(sides[0] * sides[1]);

			for (size_t i = 0; i < count; i++)
				before += (size_t)!isnan(p.c[i]);
			kernel_gemm_slice(&p.gemm, s, p.room.scratch);
			for (size_t i = 0; i < count; i++)
				after += (size_t)!isnan(p.c[i]);
			assert_true(after > before);
			if (s == slices - 1)
				assert_int_equal(after, count);
		}
		product_close(&p);
	}
}

/* Rows that have work for ten slices and more are cut, but no slice gets less than two tiles' rows,
 * 28: each copies B's panels. Columns are not cut within a panel. */
static void test_no_slice_has_few_rows(void **state)
{
	static const struct {
		int64_t rows;
		unsigned slices;
	} cuts[] = {{50, 1}, {56, 2}, {83, 2}, {84, 3}};

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(cuts); c++) {
		const struct kernel_gemm gemm = {
			.m = cuts[c].rows, .n = 32, .k = 4096, .lda = 4096, .ldb = 32, .ldc = 32};

		assert_int_equal(kernel_gemm_slices(&gemm), cuts[c].slices);
	}
}

static void test_any_number_of_threads_gives_the_same_bytes(void **state)
{
	static const unsigned helpers[] = {0, 1, 3};
	const int64_t sides[3] = {150, 300, 700};
	float *first = NULL;
	size_t bytes = 150 * 300 * sizeof(float);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
		struct pool *pool;
		struct product p;

		assert_int_equal(pool_new(&pool, helpers[i], NULL), ST_OK);
		product_open(&p, sides, 0, true, false, pool);
		assert_true(kernel_gemm_slices(&p.gemm) > 4);
		kernel_gemm(&p.gemm, &p.room);
		if (!first) {
			first = mem_alloc(bytes);
			assert_non_null(first);
			memcpy(first, p.c, bytes);
		}
		assert_memory_equal(first, p.c, bytes);
		product_close(&p);
		pool_free(pool);
	}
	mem_free(first);
}

static void test_openblas_multiplies(void **state)
{
	(void)state;
	if (kernel_openblas_open(1, NULL) != ST_OK)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		for (int flags = 0; flags < 4; flags++) {
			struct product p;
			const struct kernel_gemm *g = &p.gemm;

			product_open(&p, shapes[i], 0, flags & 1, flags & 2, NULL);
			p.gemm.openblas = true;
			p.gemm.finish.bias = flags ? NULL : p.bias;
			p.gemm.finish.relu = !flags;
			p.gemm.finish.most = INFINITY;
			kernel_gemm(&p.gemm, &p.room);
			for (int64_t e = 0; e < g->m * g->n; e++) {
				double sum = 0.0;

				for (int64_t q = 0; q < g->k; q++)
					sum += (double)element_a(g, e / g->n, q) *
					       (double)element_b(g, q, e % g->n);
				if (!flags)
					sum = fmax(sum + (double)p.bias[e % g->n], 0.0);
				assert_true(fabs((double)g->c[e] - sum) <=
					    2e-6 * (1.0 + sqrt((double)g->k)));
			}
			product_close(&p);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_body_gives_the_defined_bits),
		cmocka_unit_test(test_random_shapes_too),
		cmocka_unit_test(test_special_numbers_keep_their_places),
		cmocka_unit_test(test_every_slice_writes_and_all_of_them_everything),
		cmocka_unit_test(test_no_slice_has_few_rows),
		cmocka_unit_test(test_any_number_of_threads_gives_the_same_bytes),
		cmocka_unit_test(test_openblas_multiplies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
