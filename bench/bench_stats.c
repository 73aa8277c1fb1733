/*
 * How fast is the full row of tensor statistics, beside reading the same memory once?
 *
 *	bench_stats [MILLIONS OF FLOATS [ROUNDS]]
 *
 * Beyond the caches (100 million floats, 400 MB) the row should cost what reading costs. Printed
 *are medians over rounds in which the passes take turns, so that a noisy machine treats them alike,
 *and the ratio to the read-only sum of the same round.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/str.h"
#include "outfeed/outfeed_kernel.h"
#include "outfeed/outfeed_stats.h"

#define ROUNDS_MAX 99
#define PASSES_MAX 8

#if defined(__x86_64__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

/* Results end here, so that no pass is optimised away. */
static volatile double sink;

struct pass {
	const char *name;
	void (*run)(const float *values, size_t count);
	int variant; /* of the kernel, or -1 */
};

/* Every lane counts: the compiler may not leave any out. */
static double fold_floats(const float *lanes, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)lanes[i];
	return sum;
}

static double fold_doubles(const double *lanes, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += lanes[i];
	return sum;
}

/* The limit: one load and one add per vector, eight sums so that no add waits for the one before.
 */
CLONES static void read_only(const float *values, size_t count)
{
	float sums[128] = {0};

	for (size_t i = 0; i + 128 <= count; i += 128) {
		for (size_t j = 0; j < 128; j++)
			sums[j] += values[i + j];
	}
	sink = fold_floats(sums, 128);
}

static void full_row(const float *values, size_t count)
{
	struct outfeed_stats stats;

	outfeed_stats_init(&stats);
	outfeed_stats_add(&stats, values, count);
	sink = stats.m2;
}

CLONES static double pass_mean(const float *values, size_t count)
{
	double sum[16] = {0};

	for (size_t i = 0; i + 16 <= count; i += 16) {
		for (size_t j = 0; j < 16; j++)
			sum[j] += (double)values[i + j];
	}
	return fold_doubles(sum, 16) / (double)count;
}

CLONES static double pass_squares(const float *values, size_t count, double mean)
{
	double sum[16] = {0};

	for (size_t i = 0; i + 16 <= count; i += 16) {
		for (size_t j = 0; j < 16; j++) {
			double d = (double)values[i + j] - mean;

			sum[j] += d * d;
		}
	}
	return fold_doubles(sum, 16);
}

CLONES static double pass_extremes(const float *values, size_t count)
{
	float min[16], max[16];

	for (size_t j = 0; j < 16; j++)
		min[j] = max[j] = values[j];
	for (size_t i = 0; i + 16 <= count; i += 16) {
		for (size_t j = 0; j < 16; j++) {
			min[j] = values[i + j] < min[j] ? values[i + j] : min[j];
			max[j] = values[i + j] > max[j] ? values[i + j] : max[j];
		}
	}
	return fold_floats(min, 16) + fold_floats(max, 16);
}

CLONES static int64_t pass_nonfinite(const float *values, size_t count)
{
	int64_t bad = 0;

	for (size_t i = 0; i < count; i++)
		bad += isfinite(values[i]) ? 0 : 1;
	return bad;
}

CLONES static double pass_norms(const float *values, size_t count)
{
	double l1[16] = {0};

	for (size_t i = 0; i + 16 <= count; i += 16) {
		for (size_t j = 0; j < 16; j++)
			l1[j] += fabs((double)values[i + j]);
	}
	return fold_doubles(l1, 16);
}

/* The row column by column, as a program without a one-pass kernel would. */
static void naive_passes(const float *values, size_t count)
{
	double mean = pass_mean(values, count);

	sink = pass_squares(values, count, mean) + pass_extremes(values, count) +
	       (double)pass_nonfinite(values, count) + pass_norms(values, count);
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(const double *values, int count)
{
	double sorted[ROUNDS_MAX];

	for (int i = 0; i < count; i++)
		sorted[i] = values[i];
	qsort(sorted, (size_t)count, sizeof(double), compare_doubles);
	return sorted[count / 2];
}

static int collect_passes(struct pass *passes)
{
	int count = 0;

	passes[count++] = (struct pass){"read-only sum", read_only, -1};
	for (int v = 0; outfeed_kernel_at(v) != NULL; v++) {
		if (outfeed_kernel_use(v))
			passes[count++] = (struct pass){outfeed_kernel_at(v)->name, full_row, v};
	}
	passes[count++] = (struct pass){"separate passes", naive_passes, -1};
	return count;
}

static double time_pass(const struct pass *pass, const float *values, size_t count, int repeat)
{
	uint64_t start;

	if (pass->variant >= 0)
		outfeed_kernel_use(pass->variant);
	start = clock_ns();
	for (int i = 0; i < repeat; i++)
		pass->run(values, count);
	return (double)(clock_ns() - start) / repeat;
}

static void measure(const char *title, const float *values, size_t count, int rounds, int repeat)
{
	struct pass passes[PASSES_MAX];
	double ns[PASSES_MAX][ROUNDS_MAX], ratio[ROUNDS_MAX];
	int n = collect_passes(passes);

	for (int round = 0; round < rounds; round++) {
		for (int p = 0; p < n; p++)
			ns[p][round] = time_pass(&passes[p], values, count, repeat);
	}
	printf("%s: %zu floats, medians of %d rounds\n", title, count, rounds);
	printf("%-18s %10s %10s %10s %14s\n", "pass", "ms", "GB/s", "ns/float", "of read-only");
	for (int p = 0; p < n; p++) {
		double typical = median(ns[p], rounds);

		for (int round = 0; round < rounds; round++)
			ratio[round] = ns[0][round] / ns[p][round];
		printf("%-18s %10.3f %10.2f %10.3f %12.1f %%\n", passes[p].name, typical / 1e6,
		       4.0 * (double)count / typical, typical / (double)count,
		       100 * median(ratio, rounds));
	}
	printf("\n");
}

static void fill(float *values, size_t count)
{
	struct rng rng;
	float table[4096];

	rng_init(&rng, 1, rng_stream("bench_stats"), 0, 0);
	for (size_t i = 0; i < 4096; i++)
		table[i] = 1e-3f + 0.02f * rng_normal(&rng);
	for (size_t i = 0; i < count; i++)
		values[i] = table[(i * 2654435761u >> 7) & 4095];
}

int main(int argc, char **argv)
{
	long long millions = 100, rounds = 9;
	size_t count;
	float *values;

	if ((argc > 1 && !str_to_int(argv[1], &millions)) ||
	    (argc > 2 && !str_to_int(argv[2], &rounds)) || millions < 1 || millions > 10000 ||
	    rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "bench_stats: [MILLIONS OF FLOATS [ROUNDS (1 to %d)]]\n",
			ROUNDS_MAX);
		return 2;
	}
	count = (size_t)millions * 1000000;
	values = mem_aligned(count, sizeof(float));
	if (values == NULL) {
		fprintf(stderr, "bench_stats: out of memory\n");
		return 1;
	}
	fill(values, count);
	measure("beyond the caches", values, count, (int)rounds, 1);
	measure("in the second-level cache", values, 65536, (int)rounds, 200);
	mem_free(values);
	return 0;
}
