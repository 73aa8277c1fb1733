/*
 * How fast is the full row of tensor statistics, beside reading the same memory once?
 *
 *	bench_stats [MILLIONS OF FLOATS [ROUNDS]]
 *
 * Beyond the caches (100 million floats, 400 MB) the row should cost what reading costs; so should
 * the cheaper looks. Printed are medians over rounds in which the passes take turns, so that a
 * noisy machine treats them alike; the bytes per second as a part of the read-only sum's of the
 * same round; and the same for the best round of each, which is what other programs disturbed
 * least. Where there is a python3 with numpy, its separate passes over the same array stand beside.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/str.h"
#include "outfeed/outfeed_stats.h"
#include "outfeed/outfeed_kernel.h"

#define ROUNDS_MAX 99
#define PASSES_MAX 24
#define NEURONS    256

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
	int variant; /* of the kernel */
	int bytes;   /* that it reads of an element */
};

/* What some passes need beside the values. */
static uint16_t *halves;  /* as many as values */
static float *before;     /* as many */
static float *mixed;      /* the values, one in a hundred of them bad */
static struct pool *pool; /* of all processors */

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

/*
 * The limit: one load and one add per vector, eight sums so that no add waits for the one before.
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

static void full_row_mixed(const float *values, size_t count)
{
	(void)values;
	full_row(mixed, count);
}

static void full_row_pool(const float *values, size_t count)
{
	struct outfeed_stats stats;

	outfeed_stats_init(&stats);
	outfeed_stats_add_pool(&stats, values, count, pool);
	sink = stats.m2;
}

static void full_row_half(const float *values, size_t count)
{
	struct outfeed_stats stats;

	(void)values;
	outfeed_stats_init(&stats);
	outfeed_stats_read(&stats, DTYPE_FLOAT16, halves, count, NULL);
	sink = stats.m2;
}

static void abs_max(const float *values, size_t count)
{
	sink = (double)outfeed_scan_abs_max(values, count);
}

static void counts(const float *values, size_t count)
{
	struct outfeed_stats stats;

	outfeed_scan_counts(&stats, values, count);
	sink = (double)stats.n_neg;
}

static void histogram(const float *values, size_t count)
{
	static struct outfeed_histogram bins;

	outfeed_histogram_add(&bins, values, count);
	sink = (double)bins.count[OUTFEED_BINS / 2];
}

static void neurons(const float *values, size_t count)
{
	uint32_t active[NEURONS] = {0};

	outfeed_neurons_add(active, OUTFEED_RELU, values, count / NEURONS, NEURONS);
	sink = outfeed_neurons_inactive(active, count / NEURONS, NEURONS);
}

static void change(const float *values, size_t count)
{
	struct outfeed_change found;

	outfeed_change_scan(&found, before, values, count);
	sink = found.sum_change;
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

/* Every look in the fastest variant; the row in all. */
static int collect_passes(struct pass *passes)
{
	static const struct pass looks[] = {
		{"row, all threads", full_row_pool, 0, 4},
		{"row, 1 % bad", full_row_mixed, 0, 4},
		{"row, half", full_row_half, 0, 2},
		{"abs_max", abs_max, 0, 4},
		{"counts", counts, 0, 4},
		{"histogram", histogram, 0, 4},
		{"neurons", neurons, 0, 4},
		{"change", change, 0, 12},
	};
	int count = 0, fastest = -1;

	passes[count++] = (struct pass){"read-only sum", read_only, -1, 4};
	for (int v = 0; outfeed_kernel_at(v); v++) {
		static char names[4][32];

		if (!outfeed_kernel_use(v))
			continue;
		fastest = fastest < 0 ? v : fastest;
		snprintf(names[v], sizeof(names[v]), "row, %s", outfeed_kernel_at(v)->name);
		passes[count++] = (struct pass){names[v], full_row, v, 4};
	}
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		passes[count] = looks[i];
		passes[count++].variant = fastest;
	}
	passes[count++] = (struct pass){"separate passes", naive_passes, -1, 4};
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

static double least(const double *values, int count)
{
	double best = values[0];

	for (int i = 1; i < count; i++)
		best = values[i] < best ? values[i] : best;
	return best;
}

/* Bytes per second, of the read-only sum's in the same time @read_ns. */
static double part_of(const struct pass *pass, double ns, double read_ns)
{
	return 100 * read_ns / ns * pass->bytes / 4;
}

static void print_pass(const struct pass *pass, const double *ns, const double *read_ns,
		       size_t count, int rounds)
{
	double typical = median(ns, rounds), ratio[ROUNDS_MAX];

	for (int round = 0; round < rounds; round++)
		ratio[round] = part_of(pass, ns[round], read_ns[round]);
	printf("%-18s %10.3f %10.3f %10.2f %10.3f %12.1f %% %12.1f %%\n", pass->name, typical / 1e6,
	       least(ns, rounds) / 1e6, pass->bytes * (double)count / typical,
	       typical / (double)count, median(ratio, rounds),
	       part_of(pass, least(ns, rounds), least(read_ns, rounds)));
}

/* The best time of the row in the fastest variant, ns. */
static double measure(const char *title, const float *values, size_t count, int rounds, int repeat)
{
	struct pass passes[PASSES_MAX];
	double ns[PASSES_MAX][ROUNDS_MAX];
	int n = collect_passes(passes);

	for (int round = 0; round < rounds; round++) {
		for (int p = 0; p < n; p++)
			ns[p][round] = time_pass(&passes[p], values, count, repeat);
	}
	printf("%s: %zu floats, medians of %d rounds\n", title, count, rounds);
	printf("%-18s %10s %10s %10s %10s %14s %14s\n", "pass", "ms", "best ms", "GB/s", "ns/float",
	       "of read-only", "best of best");
	for (int p = 0; p < n; p++)
		print_pass(&passes[p], ns[p], ns[0], count, rounds);
	printf("\n");
	return least(ns[1], rounds);
}

/* ---- numpy ----------------------------------------------------------------------------------- */

/* All of numpy's passes, ns; 0 where @python has no numpy. */
static double numpy_passes(const char *python, size_t count, int rounds)
{
	char line[128], name[64];
	double total = 0, ms;
	FILE *pipe;

	snprintf(line, sizeof(line), "%s '%s' %zu %d 2>/dev/null", python, BENCH_STATS_NUMPY, count,
		 rounds);
	pipe = popen(line, "r");
	if (!pipe)
		return 0;
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%63[^\t]\t%lf", name, &ms) != 2)
			continue;
		printf("numpy, %-11s %21.3f\n", name, ms);
		total += ms * 1e6;
	}
	return pclose(pipe) == 0 ? total : 0;
}

static void compare_numpy(double row_ns, size_t count, int rounds)
{
	double total = numpy_passes("python3", count, rounds);

	if (total == 0)
		total = numpy_passes("/usr/bin/python3", count, rounds);
	if (total == 0) {
		printf("numpy: skipped, since no python3 here has it\n");
		return;
	}
	printf("numpy, all passes  %21.3f ms, best of each: %.1f times the row's best\n",
	       total / 1e6, total / row_ns);
}

/* ---- the array ------------------------------------------------------------------------------- */

/* Much like a gradient: three uniform numbers added up, deviation 0.0078; bench_stats_numpy.py has
 * the same. */
static void fill(float *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t u = (uint32_t)(i * 2654435761u);
		uint32_t parts = (u >> 2 & 1023) + (u >> 12 & 1023) + (u >> 22 & 1023);

		values[i] = ((float)parts - 1534) * 0x1p-16f;
		before[i] = values[i];
		mixed[i] = u % 100 == 0 ? NAN : values[i];
		halves[i] = (uint16_t)(u >> 16 & 0xbbff); /* finite, below 2 */
	}
}

static enum status prepare(float **values, size_t count, struct err *err)
{
	*values = mem_aligned(count, sizeof(float));
	before = mem_aligned(count, sizeof(float));
	mixed = mem_aligned(count, sizeof(float));
	halves = mem_aligned(count, sizeof(uint16_t));
	if (!*values || !before || !mixed || !halves)
		return err_set(err, ST_NOMEM, "out of memory");
	fill(*values, count);
	return pool_new(&pool, pool_processors() - 1, err);
}

static void finish(float *values)
{
	pool_free(pool);
	mem_free(values);
	mem_free(before);
	mem_free(mixed);
	mem_free(halves);
}

int main(int argc, char **argv)
{
	long long millions = 100, rounds = 9;
	struct err err = {0};
	size_t count;
	float *values;
	double row_ns;

	if ((argc > 1 && !str_to_int(argv[1], &millions)) ||
	    (argc > 2 && !str_to_int(argv[2], &rounds)) || millions < 1 || millions > 10000 ||
	    rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "bench_stats: [MILLIONS OF FLOATS [ROUNDS (1 to %d)]]\n",
			ROUNDS_MAX);
		return 2;
	}
	count = (size_t)millions * 1000000;
	if (prepare(&values, count, &err) != ST_OK) {
		fprintf(stderr, "bench_stats: %s\n", err.text);
		finish(values);
		return 1;
	}
	measure("in the second-level cache", values, 65536, (int)rounds, 200);
	row_ns = measure("beyond the caches", values, count, (int)rounds, 1);
	compare_numpy(row_ns, count, rounds < 5 ? (int)rounds : 5);
	finish(values);
	return 0;
}
