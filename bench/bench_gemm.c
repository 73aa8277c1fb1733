/*
 * Matrix products beside OpenBLAS's: the Dense layers of tutorials and applications in their three
 * passes, and squares.
 *
 *	bench_gemm [avx512|avx2|portable [NAME]]
 *
 * One thread each; NAME: only shapes whose name contains it. OpenBLAS chooses its kernels once,
 * when it is loaded, by a list of processors that ends with those it was released for: so it is
 * measured in a process of its own for each core type (`bench_gemm --openblas`), and the one that
 * does best beside ours counts. Samples of both take turns, and the lower quartiles of their
 * processor times are compared, so that other programs disturb neither. (The least time would not
 * do: on a virtual machine a sample that the host interrupts may be charged too little.)
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

#define PAIRS     9
#define PAIRS_MAX 1000
#define LEAST_NS  200000   /* of a sample: short products are repeated */
#define TOTAL_NS  60000000 /* of a shape's samples: short ones have more pairs */

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
	double us, ratio;      /* ours; OpenBLAS's time to it */
	const char *core_type; /* whose ratio it is */
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

/* Nanoseconds of processor time. */
static double sample(const struct kernel_gemm *gemm, const struct kernel_room *room)
{
	uint64_t begin = clock_thread_cpu_ns(), now = begin;
	int times = 0;

	for (; now - begin < LEAST_NS; times++) {
		kernel_gemm(gemm, room);
		now = clock_thread_cpu_ns();
	}
	return (double)(now - begin) / times;
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static double quartile(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 4];
}

/* Samples of ours and of OpenBLAS's take turns: a slow spell of the machine meets both. */
static struct result measure(size_t shape, enum pass pass, const struct kernel_room *room)
{
	struct kernel_gemm ours = product(shape, pass), theirs;
	float *a = floats((size_t)(ours.m * ours.k)), *b = floats((size_t)(ours.k * ours.n));
	static double ns[PAIRS_MAX], peer_ns[PAIRS_MAX];
	int count = 0;
	uint64_t begin = clock_thread_cpu_ns();

	ours.a = a;
	ours.b = b;
	ours.c = floats((size_t)(ours.m * ours.n));
	theirs = ours;
	theirs.openblas = true;
	for (; count < PAIRS || (count < PAIRS_MAX && clock_thread_cpu_ns() - begin < TOTAL_NS);
	     count++) {
		ns[count] = sample(&ours, room);
		peer_ns[count] = sample(&theirs, room);
	}
	mem_free(a);
	mem_free(b);
	mem_free(ours.c);
	return (struct result){quartile(ns, count) * 1e-3,
			       quartile(peer_ns, count) / quartile(ns, count), NULL};
}

static bool chosen(size_t shape, const char *name)
{
	return strstr(shapes[shape].name, name);
}

/* What a process with one of the core types does. */
static void measure_all(const char *name)
{
	struct kernel_room room = {.scratch = floats(kernel_gemm_scratch(1) / sizeof(float))};

	for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
		for (int pass = 0; chosen(s, name) && pass < PASSES; pass++) {
			struct result r = measure(s, (enum pass)pass, &room);

			printf("%zu %.9g %.9g\n", s * PASSES + (size_t)pass, r.us, r.ratio);
		}
	}
	mem_free(room.scratch);
}

/* A core type that this processor cannot run says nothing. */
static void run_core_type(const char *program, const char *body, const char *name,
			  const char *core_type, struct result best[ARRAY_LEN(shapes) * PASSES])
{
	char *command = NULL;
	double us, ratio;
	size_t i;
	FILE *pipe;

	if (*core_type)
		setenv("OPENBLAS_CORETYPE", core_type, 1);
	else
		unsetenv("OPENBLAS_CORETYPE");
	if (asprintf(&command, "'%s' --openblas %s '%s' 2>/dev/null", program, body, name) < 0)
		return;
	pipe = popen(command, "r");
	free(command);
	while (pipe && fscanf(pipe, "%zu %lf %lf", &i, &us, &ratio) == 3) {
		best[i].us = fmin(best[i].us, us);
		if (ratio < best[i].ratio) {
			best[i].ratio = ratio;
			best[i].core_type = *core_type ? core_type : "(its choice)";
		}
	}
	if (pipe)
		pclose(pipe);
}

static void report(const char *body, const struct result best[ARRAY_LEN(shapes) * PASSES])
{
	printf("one thread, ours with %s; the ratio is OpenBLAS's time with its best core type to "
	       "ours: above 1 ours is faster\n",
	       body);
	printf("%-26s %-16s %5s   %5s   %5s %10s %8s %6s  %s\n", "", "", "m", "k", "n", "us",
	       "GFLOP/s", "ratio", "core type");
	for (size_t i = 0; i < ARRAY_LEN(shapes) * PASSES; i++) {
		struct kernel_gemm g = product(i / PASSES, (enum pass)(i % PASSES));

		if (isinf(best[i].us))
			continue;
		printf("%-26s %-16s %5lld x %5lld x %5lld %10.1f %8.1f %6.2f  %s\n",
		       shapes[i / PASSES].name, pass_names[i % PASSES], (long long)g.m,
		       (long long)g.k, (long long)g.n, best[i].us,
		       2e-3 * (double)g.m * (double)g.n * (double)g.k / best[i].us, best[i].ratio,
		       best[i].core_type);
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
	static struct result best[ARRAY_LEN(shapes) * PASSES];
	bool child = argc > 1 && !strcmp(argv[1], "--openblas");
	const char *body = use_body(argc > 1 + child ? argv[1 + child] : NULL);
	const char *name = argc > 2 + child ? argv[2 + child] : "";

	if (argc > 3 + child || strchr(name, '\'') || !body ||
	    kernel_openblas_open(1, NULL) != ST_OK) {
		fprintf(stderr,
			"usage: bench_gemm [avx512|avx2|portable [NAME]] (needs OpenBLAS)\n");
		return 2;
	}
	if (child) {
		measure_all(name);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(best); i++)
		best[i] = (struct result){INFINITY, INFINITY, NULL};
	for (size_t i = 0; i < ARRAY_LEN(core_types); i++)
		if (!core_types[i].avx512 || !strcmp(body, "avx512"))
			run_core_type(argv[0], body, name, core_types[i].name, best);
	report(body, best);
	return 0;
}
