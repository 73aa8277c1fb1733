/*
 * Matrix products beside OpenBLAS's: the Dense layers of tutorials and applications in their three
 * passes, and squares.
 *
 *	bench_gemm [avx512|avx2|portable]
 *
 * One thread each. OpenBLAS chooses its kernels once, when it is loaded, by a list of processors
 * that ends with those it was released for: so it is measured in a process of its own for each core
 * type (`bench_gemm --openblas`), and the one that does best beside ours counts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/kernels/kernel_openblas.h"

#define PAIRS    9
#define LEAST_NS 500000 /* of a sample: short products are repeated */

static const struct {
	const char *name;
	int64_t batch, inputs, units; /* a square has inputs alone */
} shapes[] = {
	{"mlp 784 -> 256", 32, 784, 256},
	{"mlp 256 -> 128", 32, 256, 128},
	{"mlp 128 -> 10", 32, 128, 10},
	{"mlp 784 -> 128, batch 128", 128, 784, 128},
	{"convnet 1600 -> 10", 64, 1600, 10},
	{"mobilenet 1024 -> 1000", 16, 1024, 1000},
	{"resnet50 2048 -> 1000", 2, 2048, 1000},
	{"resnet50 2048 -> 1000", 32, 2048, 1000},
	{"vgg16 4096 -> 4096", 8, 4096, 4096},
	{"vgg16 4096 -> 1000", 32, 4096, 1000},
	{"square", 64, 64, 0},
	{"square", 96, 96, 0},
	{"square", 128, 128, 0},
	{"square", 192, 192, 0},
	{"square", 256, 256, 0},
	{"square", 384, 384, 0},
	{"square", 512, 512, 0},
	{"square", 1024, 1024, 0},
	{"square", 2048, 2048, 0},
};

enum pass {
	FORWARD,
	KERNEL,
	INPUT,
	PASSES
};
static const char *const pass_names[] = {"forward", "kernel gradient", "input gradient"};
/* Those with AVX-512 are compared with our tiles for it alone. */
static const struct {
	const char *name; /* "": the one that OpenBLAS chooses */
	bool avx512;
} core_types[] = {
	{"", true},         {"SkylakeX", true}, {"Cooperlake", true},   {"SapphireRapids", true},
	{"Haswell", false}, {"Zen", false},     {"Sandybridge", false}, {"Nehalem", false},
};

struct result {
	double us, ratio; /* ours; OpenBLAS's time to it */
};

static float *floats(size_t count)
{
	float *values = mem_aligned(count, sizeof(float));

	if (!values) {
		fprintf(stderr, "bench_gemm: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
	return values;
}

static struct kernel_gemm product(size_t shape, enum pass pass)
{
	int64_t batch = shapes[shape].batch, inputs = shapes[shape].inputs;
	int64_t units = shapes[shape].units ? shapes[shape].units : inputs;
	const struct kernel_gemm products[] = {
		[FORWARD] = {.m = batch, .n = units, .k = inputs, .lda = inputs, .ldb = units},
		[KERNEL] = {.transpose_a = true,
			    .m = inputs,
			    .n = units,
			    .k = batch,
			    .lda = inputs,
			    .ldb = units},
		[INPUT] = {.transpose_b = true,
			   .m = batch,
			   .n = inputs,
			   .k = units,
			   .lda = units,
			   .ldb = units},
	};
	struct kernel_gemm gemm = products[pass];

	gemm.ldc = gemm.n;
	return gemm;
}

static double sample(const struct kernel_gemm *gemm, const struct kernel_room *room)
{
	uint64_t begin = clock_ns(), now = begin;
	int times = 0;

	for (; now - begin < LEAST_NS; times++) {
		kernel_gemm(gemm, room);
		now = clock_ns();
	}
	return (double)(now - begin) * 1e-3 / times;
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Pairs of samples, ours and OpenBLAS's right after each other: their ratio holds on a machine
 * whose speed changes. */
static struct result measure(size_t shape, enum pass pass, const struct kernel_room *room)
{
	struct kernel_gemm ours = product(shape, pass), theirs;
	float *a = floats((size_t)(ours.m * ours.k)), *b = floats((size_t)(ours.k * ours.n));
	double ratios[PAIRS];
	struct result result = {INFINITY, 0.0};

	ours.a = a;
	ours.b = b;
	ours.c = floats((size_t)(ours.m * ours.n));
	theirs = ours;
	theirs.openblas = true;
	for (int i = 0; i < PAIRS; i++) {
		double us = sample(&ours, room);

		ratios[i] = sample(&theirs, room) / us;
		result.us = fmin(result.us, us);
	}
	qsort(ratios, PAIRS, sizeof(ratios[0]), compare);
	result.ratio = ratios[PAIRS / 2];
	mem_free(a);
	mem_free(b);
	mem_free(ours.c);
	return result;
}

/* What a process with one of the core types does. */
static void measure_all(void)
{
	struct kernel_room room = {.scratch = floats(kernel_gemm_scratch(1) / sizeof(float))};

	for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
		for (int pass = 0; pass < PASSES; pass++) {
			struct result r = measure(s, (enum pass)pass, &room);

			printf("%.9g %.9g\n", r.us, r.ratio);
		}
	}
	mem_free(room.scratch);
}

/* A core type that this processor cannot run says nothing. */
static void run_core_type(const char *program, const char *body, const char *core_type,
			  struct result best[ARRAY_LEN(shapes)][PASSES])
{
	char *command = NULL;
	struct result r;
	FILE *pipe;

	if (*core_type)
		setenv("OPENBLAS_CORETYPE", core_type, 1);
	else
		unsetenv("OPENBLAS_CORETYPE");
	if (asprintf(&command, "'%s' --openblas %s 2>/dev/null", program, body) < 0)
		return;
	pipe = popen(command, "r");
	free(command);
	for (size_t i = 0; pipe && i < ARRAY_LEN(shapes) * PASSES &&
			   fscanf(pipe, "%lf %lf", &r.us, &r.ratio) == 2;
	     i++) {
		struct result *b = &best[i / PASSES][i % PASSES];

		b->us = fmin(b->us, r.us);
		b->ratio = fmin(b->ratio, r.ratio);
	}
	if (pipe)
		pclose(pipe);
}

static void report(const char *body, struct result best[ARRAY_LEN(shapes)][PASSES])
{
	printf("one thread, ours with %s; the ratio is OpenBLAS's time with its best core type to "
	       "ours: above 1 ours is faster\n",
	       body);
	printf("%-26s %-16s %5s   %5s   %5s %10s %8s %6s\n", "", "", "m", "k", "n", "us", "GFLOP/s",
	       "ratio");
	for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
		for (int pass = 0; pass < PASSES; pass++) {
			struct kernel_gemm g = product(s, (enum pass)pass);

			printf("%-26s %-16s %5lld x %5lld x %5lld %10.1f %8.1f %6.2f\n",
			       shapes[s].name, pass_names[pass], (long long)g.m, (long long)g.k,
			       (long long)g.n, best[s][pass].us,
			       2e-3 * (double)g.m * (double)g.n * (double)g.k / best[s][pass].us,
			       best[s][pass].ratio);
		}
	}
}

static const char *use_body(const char *name)
{
	for (int i = 0; kernel_conv_body(i); i++)
		if ((!name || !strcmp(kernel_conv_body(i), name)) && kernel_conv_use(i))
			return kernel_conv_body(i);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct result best[ARRAY_LEN(shapes)][PASSES];
	bool child = argc > 1 && !strcmp(argv[1], "--openblas");
	const char *body = use_body(argc > 2 - !child ? argv[2 - !child] : NULL);

	if (argc > 2 + child || !body || kernel_openblas_open(1, NULL) != ST_OK) {
		fprintf(stderr, "usage: bench_gemm [avx512|avx2|portable] (needs OpenBLAS)\n");
		return 2;
	}
	if (child) {
		measure_all();
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(shapes) * PASSES; i++)
		best[i / PASSES][i % PASSES] = (struct result){INFINITY, INFINITY};
	for (size_t i = 0; i < ARRAY_LEN(core_types); i++)
		if (!core_types[i].avx512 || !strcmp(body, "avx512"))
			run_core_type(argv[0], body, core_types[i].name, best);
	report(body, best);
	return 0;
}
