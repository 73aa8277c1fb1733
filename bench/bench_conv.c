/*
 * Convolutions: forward (with bias and ReLU), kernel gradient (with the bias's and the
 * ReLU's) and input gradient, beside a large
 * matrix product's rate (the limit) on the same threads.
 *
 *	bench_conv [ROUNDS [BODY]]
 *
 * Rounds take turns over threads, shapes and passes, so that a noisy machine treats all alike.
 * Printed are the least times as GFLOP/s and as a ratio to the product of 2048 x 2048 x 2048, and
 * what the convolutions of Keras's MNIST convnet take together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/str.h"
#include "trainer/kernels/kernel_conv.h"
#include "trainer/kernels/kernel_gemm.h"

#define ROUNDS  9
#define THREADS 2
#define SIDE    2048 /* of the product */
#define LEAST   2e7  /* ns of a sample */

enum pass {
	FORWARD,
	GRAD_KERNEL,
	GRAD_INPUT,
	PASSES
};

static const struct {
	const char *name;
	int64_t batch, size, channels, filters, kernel, stride;
	bool same, convnet;
} shapes[] = {
	{"convnet conv1 3x3 28x28x1->32", 64, 28, 1, 32, 3, 1, false, true},
	{"convnet conv2 3x3 13x13x32->64", 64, 13, 32, 64, 3, 1, false, true},
	{"stem 7x7/2 230x230x3->64", 2, 230, 3, 64, 7, 2, false, false},
	{"1x1 56x56x64->64", 2, 56, 64, 64, 1, 1, false, false},
	{"3x3 56x56x64->64", 2, 56, 64, 64, 3, 1, true, false},
	{"1x1 56x56x64->256", 2, 56, 64, 256, 1, 1, false, false},
	{"1x1 56x56x256->64", 2, 56, 256, 64, 1, 1, false, false},
	{"1x1/2 56x56x256->128", 2, 56, 256, 128, 1, 2, false, false},
	{"3x3 28x28x128->128", 2, 28, 128, 128, 3, 1, true, false},
	{"1x1 28x28x128->512", 2, 28, 128, 512, 1, 1, false, false},
	{"1x1 28x28x512->128", 2, 28, 512, 128, 1, 1, false, false},
	{"1x1/2 28x28x512->1024", 2, 28, 512, 1024, 1, 2, false, false},
	{"3x3 14x14x256->256", 2, 14, 256, 256, 3, 1, true, false},
	{"1x1 14x14x256->1024", 2, 14, 256, 1024, 1, 1, false, false},
	{"1x1 14x14x1024->256", 2, 14, 1024, 256, 1, 1, false, false},
	{"1x1/2 14x14x1024->512", 2, 14, 1024, 512, 1, 2, false, false},
	{"3x3 7x7x512->512", 2, 7, 512, 512, 3, 1, true, false},
	{"1x1 7x7x512->2048", 2, 7, 512, 2048, 1, 1, false, false},
	{"1x1 7x7x2048->512", 2, 7, 2048, 512, 1, 1, false, false},
};

struct work {
	struct kernel_conv conv;
	struct kernel_room rooms[THREADS];
	float *x, *y, *out, *w, *bias; /* y: the gradient; out: what forward makes */
	double least[THREADS][PASSES]; /* ns */
};

static float *floats(size_t count)
{
	float *values = mem_aligned(count, sizeof(float));

	if (!values) {
		fprintf(stderr, "bench_conv: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
	return values;
}

static void open_work(struct work *work, size_t i, struct pool *const pools[THREADS])
{
	int64_t out = shapes[i].same ? (shapes[i].size + shapes[i].stride - 1) / shapes[i].stride
				     : (shapes[i].size - shapes[i].kernel) / shapes[i].stride + 1;
	struct kernel_conv *c = &work->conv;

	*c = (struct kernel_conv){
		.batch = shapes[i].batch,
		.height = shapes[i].size,
		.width = shapes[i].size,
		.channels = shapes[i].channels,
		.out_height = out,
		.out_width = out,
		.filters = shapes[i].filters,
		.kernel_height = shapes[i].kernel,
		.kernel_width = shapes[i].kernel,
		.stride_y = shapes[i].stride,
		.stride_x = shapes[i].stride,
		.dilation_y = 1,
		.dilation_x = 1,
		.pad_top = shapes[i].same ? (shapes[i].kernel - 1) / 2 : 0,
		.groups = 1,
	};
	c->pad_left = c->pad_top;
	work->x = floats((size_t)(c->batch * c->height * c->width * c->channels));
	work->y = floats((size_t)(c->batch * out * out * c->filters));
	work->out = floats((size_t)(c->batch * out * out * c->filters));
	work->w = floats((size_t)(c->kernel_height * c->kernel_width * c->channels * c->filters));
	work->bias = floats((size_t)c->filters);
	for (unsigned t = 0; t < THREADS; t++) {
		work->rooms[t].pool = pools[t];
		work->rooms[t].scratch =
			floats(kernel_conv_scratch(c, pool_lanes(pools[t]), true) / sizeof(float));
		for (int p = 0; p < PASSES; p++)
			work->least[t][p] = INFINITY;
	}
}

static void close_work(struct work *work)
{
	mem_free(work->x);
	mem_free(work->y);
	mem_free(work->out);
	mem_free(work->w);
	mem_free(work->bias);
	for (unsigned t = 0; t < THREADS; t++)
		mem_free(work->rooms[t].scratch);
}

/* The gradients are written over the values: nobody looks at them, and 0 is not faster. */
static void run(struct work *work, unsigned t, enum pass pass)
{
	const struct kernel_conv_finish finish = {work->bias, true, INFINITY, NULL};
	const struct kernel_conv_relu relu = {work->out, INFINITY, work->conv.channels > 3};

	if (pass == FORWARD)
		kernel_conv_forward(&work->conv, &work->rooms[t], work->x, work->w, &finish,
				    work->out);
	else if (pass == GRAD_KERNEL)
		kernel_conv_grad_kernel(&work->conv, &work->rooms[t], work->x, work->y, &relu,
					work->w, work->bias);
	else
		kernel_conv_grad_input(&work->conv, &work->rooms[t], work->y, work->w, work->x,
				       false);
}

/* Values that come back from a gradient would grow from round to round. */
static void reset(struct work *work)
{
	const struct kernel_conv *c = &work->conv;
	size_t inputs = (size_t)(c->batch * c->height * c->width * c->channels);
	size_t weights = (size_t)(c->kernel_height * c->kernel_width * c->channels * c->filters);

	for (size_t i = 0; i < inputs; i++)
		work->x[i] = (float)(i % 1000) * 1e-3f - 0.5f;
	for (size_t i = 0; i < weights; i++)
		work->w[i] = (float)(i % 997) * 1e-3f - 0.5f;
	for (int64_t i = 0; i < c->filters; i++)
		work->bias[i] = 0.0f;
}

static double flops(const struct work *work)
{
	const struct kernel_conv *c = &work->conv;

	return 2.0 * (double)(c->batch * c->out_height * c->out_width) *
	       (double)(c->kernel_height * c->kernel_width * c->channels * c->filters);
}

static void sample(struct work *work, unsigned t, enum pass pass)
{
	int times = (int)(LEAST / (flops(work) / 100.0 + 1e4)) + 1;

	for (int i = 0; i < times; i++) {
		uint64_t begin;
		double ns;

		reset(work);
		begin = clock_ns();
		run(work, t, pass);
		ns = (double)(clock_ns() - begin);
		if (ns < work->least[t][pass])
			work->least[t][pass] = ns;
	}
}

/* --- the product -------------------------------------------------------------------------------
 */

struct product {
	struct kernel_gemm gemm;
	float *scratch;
	double least[THREADS]; /* ns */
};

static void sample_product(struct product *p, struct pool *const pools[THREADS], unsigned t)
{
	const struct kernel_room room = {pools[t], p->scratch};
	uint64_t begin = clock_ns();
	double ns;

	kernel_gemm(&p->gemm, &room);
	ns = (double)(clock_ns() - begin);
	if (ns < p->least[t])
		p->least[t] = ns;
}

static void open_product(struct product *p)
{
	p->gemm = (struct kernel_gemm){
		.m = SIDE,
		.n = SIDE,
		.k = SIDE,
		.a = floats((size_t)SIDE * SIDE),
		.lda = SIDE,
		.b = floats((size_t)SIDE * SIDE),
		.ldb = SIDE,
		.c = floats((size_t)SIDE * SIDE),
		.ldc = SIDE,
	};
	p->gemm.openblas = kernel_gemm_has_openblas();
	p->scratch = floats(kernel_gemm_scratch(THREADS) / sizeof(float));
	for (unsigned t = 0; t < THREADS; t++)
		p->least[t] = INFINITY;
}

static void close_product(struct product *p)
{
	mem_free((float *)p->gemm.a);
	mem_free((float *)p->gemm.b);
	mem_free(p->gemm.c);
	mem_free(p->scratch);
}

/* --- the report --------------------------------------------------------------------------------
 */

static void report(struct work *works, const struct product *p, unsigned t)
{
	double limit = 2.0 * SIDE * SIDE * (double)SIDE / p->least[t];
	double convnet = 0.0, all = 0.0, work_done = 0.0;

	printf("\n%u thread%s, sgemm of %d: %.1f GFLOP/s; GFLOP/s and ratio to it\n", t + 1,
	       t ? "s" : "", SIDE, limit);
	printf("%-32s %16s %16s %16s\n", "", "forward", "kernel gradient", "input gradient");
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		printf("%-32s", shapes[i].name);
		for (int pass = 0; pass < PASSES; pass++) {
			double rate = flops(&works[i]) / works[i].least[t][pass];

			printf("   %7.1f  %.2f ", rate, rate / limit);
			if (shapes[i].convnet && (pass != GRAD_INPUT || shapes[i].channels > 1))
				convnet += works[i].least[t][pass];
			if (!shapes[i].convnet && (pass != GRAD_INPUT || shapes[i].channels > 3)) {
				all += works[i].least[t][pass];
				work_done += flops(&works[i]);
			}
		}
		printf("\n");
	}
	printf("the convnet's convolutions, batch 64, forward and backward: %.2f ms\n",
	       convnet * 1e-6);
	printf("the other shapes together: %.1f ms, %.1f GFLOP/s, %.2f of sgemm's rate\n",
	       all * 1e-6, work_done / all, work_done / all / limit);
}

static bool use_body(const char *name)
{
	for (int i = 0; kernel_conv_body(i); i++)
		if (!strcmp(kernel_conv_body(i), name))
			return kernel_conv_use(i);
	return false;
}

int main(int argc, char **argv)
{
	static struct work works[ARRAY_LEN(shapes)];
	struct pool *pools[THREADS];
	long long rounds = ROUNDS;
	struct product product;
	unsigned threads = pool_processors() < THREADS ? 1 : THREADS;

	if (argc > 3 || (argc > 1 && (!str_to_int(argv[1], &rounds) || rounds < 1)) ||
	    (argc > 2 && !use_body(argv[2]))) {
		fprintf(stderr, "usage: bench_conv [ROUNDS [avx512|avx2|portable]]\n");
		return 2;
	}
	for (unsigned t = 0; t < THREADS; t++)
		if (pool_new(&pools[t], t, NULL))
			return 1;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		open_work(&works[i], i, pools);
	open_product(&product);
	for (int round = 0; round < (int)rounds; round++) {
		for (unsigned t = 0; t < threads; t++) {
			sample_product(&product, pools, t);
			for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
				for (int pass = 0; pass < PASSES; pass++)
					sample(&works[i], t, (enum pass)pass);
		}
	}
	for (unsigned t = 0; t < threads; t++)
		report(works, &product, t);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		close_work(&works[i]);
	close_product(&product);
	for (unsigned t = 0; t < THREADS; t++)
		pool_free(pools[t]);
	return 0;
}
