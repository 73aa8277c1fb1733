/*
 * The convolutions of ResNet50 (batch 2) and of Keras's MNIST convnet (batch 64), one after the
 * other, beside oneDNN's (Debian's libdnnl-dev, where it was there at configure time): forward with
 * bias (the convnet's with the ReLU), the gradient of kernel and bias (of the convnet's ours does
 * the ReLU's too), the input's gradient.
 *
 *	bench_conv [ROUNDS [BODY]]
 *
 * Rounds take turns over threads, shapes, passes and the two libraries, so that a noisy machine
 * treats all alike. Printed are the least times as GFLOP/s, their ratio to oneDNN's, and what all
 * convolutions of each network take together. The rates count the multiplications of plain sums,
 * where Winograd's tiles do fewer, too. oneDNN has its weights and pixels in its own blocks
 * beforehand; ours has rows of pixels with all their channels, and copies weights in time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/clock.h"
#include "common/pool.h"
#include "common/str.h"
#include "peer_conv.h"
#include "trainer/kernels/kernel_conv.h"

#define ROUNDS  9
#define THREADS 2
#define LEAST   1e7 /* ns of a sample, about */

enum network {
	CONVNET,
	RESNET50,
	NETWORKS
};

/* Square images and kernels; @times: how many of it the network has. */
static const struct {
	enum network network;
	int times;
	int64_t batch, size, channels, filters, kernel, stride;
	bool same;
} shapes[] = {
	{CONVNET, 1, 64, 28, 1, 32, 3, 1, false},      {CONVNET, 1, 64, 13, 32, 64, 3, 1, false},
	{RESNET50, 1, 2, 230, 3, 64, 7, 2, false},     {RESNET50, 1, 2, 56, 64, 64, 1, 1, false},
	{RESNET50, 3, 2, 56, 64, 64, 3, 1, true},      {RESNET50, 4, 2, 56, 64, 256, 1, 1, false},
	{RESNET50, 2, 2, 56, 256, 64, 1, 1, false},    {RESNET50, 1, 2, 56, 256, 128, 1, 2, false},
	{RESNET50, 1, 2, 56, 256, 512, 1, 2, false},   {RESNET50, 4, 2, 28, 128, 128, 3, 1, true},
	{RESNET50, 4, 2, 28, 128, 512, 1, 1, false},   {RESNET50, 3, 2, 28, 512, 128, 1, 1, false},
	{RESNET50, 1, 2, 28, 512, 256, 1, 2, false},   {RESNET50, 1, 2, 28, 512, 1024, 1, 2, false},
	{RESNET50, 6, 2, 14, 256, 256, 3, 1, true},    {RESNET50, 6, 2, 14, 256, 1024, 1, 1, false},
	{RESNET50, 5, 2, 14, 1024, 256, 1, 1, false},  {RESNET50, 1, 2, 14, 1024, 512, 1, 2, false},
	{RESNET50, 1, 2, 14, 1024, 2048, 1, 2, false}, {RESNET50, 3, 2, 7, 512, 512, 3, 1, true},
	{RESNET50, 3, 2, 7, 512, 2048, 1, 1, false},   {RESNET50, 2, 2, 7, 2048, 512, 1, 1, false},
};

struct work {
	struct kernel_conv conv;
	bool relu; /* ResNet50's are behind a normalization */
	struct kernel_room rooms[THREADS];
	float *x, *dx, *y, *dy, *w, *dw, *bias, *dbias;
	struct peer_conv *peers[THREADS][CONV_PASSES];
	double least[THREADS][CONV_PASSES], peer[THREADS][CONV_PASSES]; /* ns */
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

/* An image that is an input of the network has no gradient. */
static bool has_pass(const struct kernel_conv *conv, enum conv_pass pass)
{
	return pass != PASS_INPUT || conv->channels > 3;
}

static void open_work(struct work *work, size_t i, struct pool *const pools[THREADS])
{
	int64_t out = shapes[i].same ? (shapes[i].size + shapes[i].stride - 1) / shapes[i].stride
				     : (shapes[i].size - shapes[i].kernel) / shapes[i].stride + 1;
	struct kernel_conv *c = &work->conv;
	size_t inputs, outputs, weights;

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
	work->relu = shapes[i].network == CONVNET;
	inputs = (size_t)(c->batch * c->height * c->width * c->channels);
	outputs = (size_t)(c->batch * out * out * c->filters);
	weights = (size_t)(c->kernel_height * c->kernel_width * c->channels * c->filters);
	work->x = floats(inputs);
	work->dx = floats(inputs);
	work->y = floats(outputs);
	work->dy = floats(outputs);
	work->w = floats(weights);
	work->dw = floats(weights);
	work->bias = floats((size_t)c->filters);
	work->dbias = floats((size_t)c->filters);
	for (unsigned t = 0; t < THREADS; t++) {
		work->rooms[t].pool = pools[t];
		work->rooms[t].scratch =
			floats(kernel_conv_scratch(c, pool_lanes(pools[t]), true) / sizeof(float));
		for (int p = 0; p < CONV_PASSES; p++) {
			work->least[t][p] = work->peer[t][p] = INFINITY;
			if (has_pass(c, (enum conv_pass)p))
				work->peers[t][p] =
					peer_conv_new(c, (enum conv_pass)p, work->relu, t + 1);
		}
	}
}

static void close_work(struct work *work)
{
	mem_free(work->x);
	mem_free(work->dx);
	mem_free(work->y);
	mem_free(work->dy);
	mem_free(work->w);
	mem_free(work->dw);
	mem_free(work->bias);
	mem_free(work->dbias);
	for (unsigned t = 0; t < THREADS; t++) {
		mem_free(work->rooms[t].scratch);
		for (int p = 0; p < CONV_PASSES; p++)
			peer_conv_free(work->peers[t][p]);
	}
}

static void run(struct work *work, unsigned t, enum conv_pass pass)
{
	const struct kernel_conv_finish finish = {work->bias, work->relu, INFINITY, NULL};
	const struct kernel_conv_relu relu = {.y = work->relu ? work->y : NULL,
					      .most = INFINITY,
					      .keep = work->conv.channels > 3};

	if (pass == PASS_FORWARD)
		kernel_conv_forward(&work->conv, &work->rooms[t], work->x, work->w, &finish,
				    work->y);
	else if (pass == PASS_KERNEL)
		kernel_conv_grad_kernel(&work->conv, &work->rooms[t], work->x, work->dy, &relu,
					work->dw, work->dbias);
	else
		kernel_conv_grad_input(&work->conv, &work->rooms[t], work->dy, work->w, work->dx,
				       false);
}

static double flops(const struct work *work)
{
	const struct kernel_conv *c = &work->conv;

	return 2.0 * (double)(c->batch * c->out_height * c->out_width) *
	       (double)(c->kernel_height * c->kernel_width * c->channels * c->filters);
}

/* The peer's threads turn in circles for a while after their work. */
static void rest(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	nanosleep(&pause, NULL);
}

static void sample(struct work *work, unsigned t, enum conv_pass pass)
{
	int times = (int)(LEAST / (flops(work) / 100.0 + 1e4)) + 2;
	struct peer_conv *peer = work->peers[t][pass];

	for (int i = 0; i < times; i++) {
		uint64_t begin = clock_ns();
		double ns;

		run(work, t, pass);
		ns = (double)(clock_ns() - begin);
		work->least[t][pass] = fmin(ns, work->least[t][pass]);
	}
	if (peer) {
		work->peer[t][pass] = fmin(peer_conv_time(peer, times), work->peer[t][pass]);
		rest();
	}
}

/* ---- the report ------------------------------------------------------------------------------ */

static void report_shape(const struct work *work, size_t i, unsigned t)
{
	char name[64];

	snprintf(name, sizeof(name), "%d of %lldx%lld%s %lldx%lldx%lld->%lld", shapes[i].times,
		 (long long)shapes[i].kernel, (long long)shapes[i].kernel,
		 shapes[i].stride > 1 ? "/2" : "", (long long)shapes[i].size,
		 (long long)shapes[i].size, (long long)shapes[i].channels,
		 (long long)shapes[i].filters);
	printf("%-28s", name);
	for (int pass = 0; pass < CONV_PASSES; pass++) {
		double ns = work->least[t][pass], peer = work->peer[t][pass];

		if (!has_pass(&work->conv, (enum conv_pass)pass))
			continue;
		printf("  %6.1f", flops(work) / ns);
		if (isfinite(peer))
			printf(" %6.1f %5.2f", flops(work) / peer, peer / ns);
		else
			printf("      -     -");
	}
	printf("\n");
}

static void report(struct work *works, unsigned t)
{
	static const char *const names[NETWORKS] = {"convnet, batch 64", "ResNet50, batch 2"};
	const char *peer = peer_conv_name();
	double ns[NETWORKS][CONV_PASSES] = {{0}}, peers[NETWORKS][CONV_PASSES] = {{0}};
	double done[NETWORKS][CONV_PASSES] = {{0}};

	printf("\n%u thread%s: GFLOP/s, %s's, ratio\n%-28s  %-20s  %-20s  %-20s\n", t + 1,
	       t ? "s" : "", peer ? peer : "no peer", "", "forward", "kernel gradient",
	       "input gradient");
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		report_shape(&works[i], i, t);
		for (int pass = 0; pass < CONV_PASSES; pass++) {
			if (!has_pass(&works[i].conv, (enum conv_pass)pass))
				continue;
			ns[shapes[i].network][pass] += shapes[i].times * works[i].least[t][pass];
			peers[shapes[i].network][pass] += shapes[i].times * works[i].peer[t][pass];
			done[shapes[i].network][pass] += shapes[i].times * flops(&works[i]);
		}
	}
	for (int n = 0; n < NETWORKS; n++) {
		double all = 0.0, all_peer = 0.0;

		printf("%-28s", names[n]);
		for (int pass = 0; pass < CONV_PASSES; pass++) {
			printf("  %6.1f %6.1f %5.2f", done[n][pass] / ns[n][pass],
			       done[n][pass] / peers[n][pass], peers[n][pass] / ns[n][pass]);
			all += ns[n][pass];
			all_peer += peers[n][pass];
		}
		printf("   together %.2f, %.2f ms: %.2f\n", all * 1e-6, all_peer * 1e-6,
		       all_peer / all);
	}
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
	for (int round = 0; round < (int)rounds; round++)
		for (unsigned t = 0; t < threads; t++)
			for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
				for (int pass = 0; pass < CONV_PASSES; pass++)
					if (has_pass(&works[i].conv, (enum conv_pass)pass))
						sample(&works[i], t, (enum conv_pass)pass);
	for (unsigned t = 0; t < threads; t++)
		report(works, t);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		close_work(&works[i]);
	for (unsigned t = 0; t < THREADS; t++)
		pool_free(pools[t]);
	return 0;
}
