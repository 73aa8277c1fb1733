/*
 * How far the simulated IPU is from what was published: a table of workloads, and what it would be
 * with other costs of a phase and with the operands' layout left free.
 *
 *	fidelity [--table] [--golden FILE]
 *
 * --table leaves out all but the table. Published figures and their sources stand in the tables
 * below and in FILE (fidelity_golden.c; by default ../shared/golden/poplibs_cycles.csv beside the
 * project, left out where it is not there). A row is "calibrated" if a constant of the simulator
 * was solved or chosen by its help.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "fidelity.h"
#include "fidelity_network.h"

static void die(const struct err *err)
{
	fprintf(stderr, "fidelity: %s\n", err->text);
	exit(1);
}

const struct ipu_plan *fidelity_plan(const struct ipu_target *target, const struct ipu_op *op,
				     enum ipu_dtype partials)
{
	static struct ipu_planner *planner;
	static struct ipu_target now;
	struct ipu_plan_options options;
	const struct ipu_plan *plan;
	struct err err = {ST_OK, ""};

	if (!planner || strcmp(now.name, target->name) != 0 ||
	    fabs(now.phase_cycles - target->phase_cycles) > 0) {
		ipu_planner_free(planner);
		if (ipu_planner_new(&planner, target, &err) != ST_OK)
			die(&err);
		now = *target;
	}
	ipu_plan_options_defaults(&options);
	options.partials = partials;
	if (ipu_planner_plan(planner, op, &options, &plan, &err) != ST_OK)
		die(&err);
	return plan;
}

static double teraflops(const struct ipu_target *target, const struct ipu_plan *plan)
{
	return (double)plan->flops * target->clock_hz / (double)plan->cycles / 1e12;
}

static double gemm(const struct workload *workload, const struct ipu_target *target)
{
	return teraflops(target, fidelity_plan(target, &workload->ops[0], workload->partials));
}

/* The better of both layouts: output rows as channels, or as field. */
static double gemm_free(const struct workload *workload, const struct ipu_target *target)
{
	struct ipu_op swapped = workload->ops[0];
	double fixed = gemm(workload, target);

	swapped.matmul.m = workload->ops[0].matmul.n;
	swapped.matmul.n = workload->ops[0].matmul.m;
	return fmax(fixed, teraflops(target, fidelity_plan(target, &swapped, workload->partials)));
}

/* Square products of 512 to 4096: the best. */
static double gemm_best(const struct workload *workload, const struct ipu_target *target)
{
	struct ipu_op op = workload->ops[0];
	double best = 0;

	for (int64_t size = 512; size <= 4096; size += 256) {
		op.matmul = (struct ipu_matmul){size, size, size};
		best = fmax(best,
			    teraflops(target, fidelity_plan(target, &op, workload->partials)));
	}
	return best;
}

/* A step as Keras prints it: the time of an execution by the batches of all replicas. */
static double network(const struct workload *workload, const struct ipu_target *target)
{
	const struct plan_figures figures = fidelity_network(workload->run, workload->words);

	(void)target;
	return figures.execution_us / (double)(figures.steps_per_execution * figures.replicas);
}

/* ---- the published --------------------------------------------------------------------------- */

/* Dense products on one Bow IPU, [m, m] x [m, n], TF/s: read off the figures of the notebook
 * analysis/Analysis.ipynb of github.com/graphcore-research/sparsity-benchmarks (PopSparse), to
 * about 2 %. The float16 ones exceed what float32 partials allow (174 TF/s), so partials are
 * float16. */
struct gemm_point {
	int64_t m, n;
	double published;
};

static const struct gemm_point bow_half[] = {
	{1024, 4, 6.1},       {1024, 16, 20.4},    {1024, 64, 45.6},    {1024, 256, 89.5},
	{1024, 1024, 120.3},  {1024, 2048, 153.1}, {1024, 4096, 180.2}, {1024, 8192, 205.7},
	{1024, 16384, 223.1}, {4096, 4, 18.4},     {4096, 16, 61.4},    {4096, 64, 130.2},
	{4096, 256, 175.2},   {4096, 1024, 209.4}, {4096, 2048, 223.6},
};

static const struct gemm_point bow_float[] = {
	{1024, 4, 3.7},     {1024, 16, 11.2},   {1024, 64, 21.2},   {1024, 128, 29.2},
	{1024, 256, 34.3},  {1024, 512, 36.3},  {1024, 1024, 43.7}, {1024, 2048, 50.0},
	{1024, 4096, 55.6}, {1024, 8192, 57.1}, {4096, 4, 7.1},     {4096, 16, 22.4},
	{4096, 64, 41.4},   {4096, 128, 48.6},  {4096, 256, 52.7},  {4096, 512, 54.1},
	{4096, 1024, 55.5}, {4096, 2048, 57.1}, {4096, 4096, 58.6},
};

#define WORKLOADS_MOST 512

static struct workload workloads[WORKLOADS_MOST];
static int workload_count;

void fidelity_add(const struct workload *workload)
{
	if (workload_count == WORKLOADS_MOST) {
		fprintf(stderr, "fidelity: more than %d workloads\n", WORKLOADS_MOST);
		exit(1);
	}
	workloads[workload_count++] = *workload;
}

static void add_gemms(const char *table, const struct gemm_point *points, size_t count,
		      enum ipu_dtype dtype)
{
	for (size_t i = 0; i < count; i++) {
		const struct gemm_point *point = &points[i];
		struct workload workload = {
			.table = table,
			.unit = "TF/s",
			.target = "ipu21",
			.source = "[SP]",
			.published = point->published,
			.higher = true,
			.calibrated = true,
			.simulate = gemm,
			.ops = {{.kind = IPU_OP_MATMUL,
				 .dtype = dtype,
				 .matmul = {point->m, point->m, point->n}}},
			.op_count = 1,
			.partials = dtype,
		};

		snprintf(workload.name, sizeof(workload.name), "[%lld, %lld] x [.., %lld]",
			 (long long)point->m, (long long)point->m, (long long)point->n);
		fidelity_add(&workload);
	}
}

/* Best of any size on one Mk1 (Jia et al., arXiv 1912.03413, as quoted by Louw and McIntosh-Smith):
 * sizes are not published. Its float16 peak is given for float32 partials. */
static void add_best(const char *name, enum ipu_dtype dtype, enum ipu_dtype partials,
		     double published)
{
	struct workload workload = {
		.table = "best product on Mk1",
		.unit = "TF/s",
		.target = "ipu1",
		.source = "[J]",
		.published = published,
		.higher = true,
		.simulate = gemm_best,
		.ops = {{.kind = IPU_OP_MATMUL, .dtype = dtype}},
		.op_count = 1,
		.partials = partials,
	};

	snprintf(workload.name, sizeof(workload.name), "%s", name);
	fidelity_add(&workload);
}

/* Steps that Keras printed: the tutorials of graphcore/tutorials, tutorials/tensorflow2/keras (the
 * convolutional network on MNIST, batch 64, Mk2), and the University of Luxembourg's tutorial on
 * IPUs (ResNet50 on CIFAR-10 at 224 x 224, batch 2; its third epoch of 50 steps). The latter's
 * machine runs at 1850 MHz: a Bow. Its step is its host's, of which nothing is published: the
 * device's is a table of its own. */
static void add_networks(void)
{
#define KERAS_MNIST "examples/keras-mnist.json"
#define KERAS_STEP  "--use-ipu --batch-size 64 "
	static const struct {
		const char *name, *run, *words, *target, *source;
		double published;
		bool calibrated;
		const char *table;
	} rows[] = {
		{"convnet, 1 IPU", KERAS_MNIST, KERAS_STEP "--ipu.auto_select_ipus 1", "ipu2",
		 "[K]", 224, true, NULL},
		{"convnet, a step a run", KERAS_MNIST,
		 KERAS_STEP "--ipu.auto_select_ipus 1 --compile.steps_per_execution 1", "ipu2",
		 "[K]", 3000, true, NULL},
		{"convnet, 2 replicas", KERAS_MNIST, KERAS_STEP "--ipu.auto_select_ipus 2", "ipu2",
		 "[K]", 135, false, NULL},
		{"ResNet50, batch 2", "examples/cifar10-resnet50.json",
		 "--ipu.target ipu21 --compile.steps_per_execution 50", "ipu21", "[UL]", 23000,
		 false, "the device's share of a step whose host is not known"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct workload workload = {
			.table = rows[i].table ? rows[i].table
					       : "training steps, as Keras prints them",
			.unit = "us",
			.target = rows[i].target,
			.source = rows[i].source,
			.published = rows[i].published,
			.calibrated = rows[i].calibrated,
			.simulate = network,
			.run = rows[i].run,
			.words = rows[i].words};

		snprintf(workload.name, sizeof(workload.name), "%s", rows[i].name);
		fidelity_add(&workload);
	}
}

static void add_all(void)
{
	add_gemms("float16 products on Bow", bow_half, ARRAY_LEN(bow_half), IPU_FLOAT16);
	add_gemms("float32 products on Bow", bow_float, ARRAY_LEN(bow_float), IPU_FLOAT32);
	add_best("float32, any size", IPU_FLOAT32, IPU_FLOAT32, 18.9);
	add_best("float16, any size", IPU_FLOAT16, IPU_FLOAT32, 58.9);
	add_networks();
	fidelity_bubbles();
}

/* ---- the table ------------------------------------------------------------------------------- */

struct fit {
	double sum, squares, worst; /* of ratio - 1; worst: the ratio farthest from 1 */
	int count;
};

static void fit_add(struct fit *fit, double ratio)
{
	fit->sum += ratio - 1;
	fit->squares += (ratio - 1) * (ratio - 1);
	if (fit->count == 0 || fabs(log(ratio)) > fabs(log(fit->worst)))
		fit->worst = ratio;
	fit->count++;
}

static double fit_bias(const struct fit *fit)
{
	return fit->sum / fit->count * 100;
}

static double fit_rms(const struct fit *fit)
{
	return sqrt(fit->squares / fit->count) * 100;
}

static struct ipu_target target_of(const char *name, double phase_cycles)
{
	struct ipu_target target;
	struct err err = {ST_OK, ""};

	if (ipu_target_get(name, 0, &target, &err) != ST_OK)
		die(&err);
	if (phase_cycles >= 0)
		target.phase_cycles = phase_cycles;
	return target;
}

/* What all rows of a table come to. */
struct group {
	const char *table;
	struct fit fit;
	bool calibrated;
};

#define GROUPS_MOST 32

static void print_row(const struct workload *workload, double simulated)
{
	printf("  %-40s %10.1f %10.1f %7.2f   %-6s %-3s %s\n", workload->name, workload->published,
	       simulated, simulated / workload->published, workload->target,
	       workload->calibrated ? "yes" : "no", workload->source);
}

static void print_groups(const struct group *groups, int count)
{
	printf("\nby table: simulated over published, less 1\n%-42s %6s %8s %8s %8s   %s\n",
	       "  table", "rows", "bias", "rms", "worst", "calibrated on");
	for (int g = 0; g < count; g++)
		printf("  %-40s %6d %+6.1f %% %6.1f %% %6.2f x   %s\n", groups[g].table,
		       groups[g].fit.count, fit_bias(&groups[g].fit), fit_rms(&groups[g].fit),
		       groups[g].fit.worst, groups[g].calibrated ? "some" : "none");
}

/* All rows of the table that row @first is the first of. */
static struct group print_rows(int first)
{
	struct group group = {.table = workloads[first].table};

	printf("%s%s (%s)\n%-42s %10s %10s %7s   %s\n", first > 0 ? "\n" : "", group.table,
	       workloads[first].unit, "  workload", "published", "simulated", "ratio",
	       "target, calibrated on, source");
	for (int i = first; i < workload_count; i++) {
		const struct workload *workload = &workloads[i];
		const struct ipu_target target = target_of(workload->target, -1);
		double simulated;

		if (strcmp(workload->table, group.table) != 0)
			continue;
		simulated = workload->simulate(workload, &target);
		fit_add(&group.fit, simulated / workload->published);
		group.calibrated |= workload->calibrated;
		print_row(workload, simulated);
	}
	return group;
}

static bool is_first(int row)
{
	for (int i = 0; i < row; i++)
		if (strcmp(workloads[i].table, workloads[row].table) == 0)
			return false;
	return true;
}

static void print_table(void)
{
	struct group groups[GROUPS_MOST];
	int count = 0;

	for (int i = 0; i < workload_count; i++)
		if (is_first(i) && count < GROUPS_MOST)
			groups[count++] = print_rows(i);
	print_groups(groups, count);
}

/* ---- what the published step leaves for the framework ---------------------------------------- */

/* What would give the published step. */
static void print_solution(void)
{
	const struct plan_figures figures =
		fidelity_network(KERAS_MNIST, KERAS_STEP "--ipu.auto_select_ipus 1");
	const struct ipu_target target = target_of("ipu2", -1);
	const double host_us =
		figures.execution_us / (double)figures.steps_per_execution - figures.device_step_us;
	const double each = (224 - host_us - figures.device_step_us) * 1e3 / 2;

	/* Its batch comes with one stream copy and its results go with another. */
	printf("\nframework_ns is %.0f; a step of 224 us would make it %.0f\n", target.framework_ns,
	       target.framework_ns + each);
}

/* ---- what if --------------------------------------------------------------------------------- */

typedef double (*simulate_fn)(const struct workload *workload, const struct ipu_target *target);

/* Rms and bias of each of the tables of products, then of all. */
static void print_sweep_row(double phase_cycles, simulate_fn simulate)
{
	struct fit all = {0}, one = {0};

	printf("  %-20.0f", phase_cycles);
	for (int i = 0; i < workload_count && workloads[i].simulate == gemm; i++) {
		const struct workload *workload = &workloads[i];
		struct ipu_target target = target_of(workload->target, phase_cycles);
		double ratio = simulate(workload, &target) / workload->published;
		bool last = i + 1 == workload_count || workloads[i + 1].simulate != gemm;

		fit_add(&one, ratio);
		fit_add(&all, ratio);
		if (!last && strcmp(workload->table, workloads[i + 1].table) == 0)
			continue;
		printf("  %5.1f %+6.1f ", fit_rms(&one), fit_bias(&one));
		one = (struct fit){0};
	}
	printf("  %5.1f %+6.1f\n", fit_rms(&all), fit_bias(&all));
}

static void print_sweep(void)
{
	static const double phases[] = {0, 100, 150, 190, 205, 220, 250, 300, 400, 513};
	static const struct {
		const char *name;
		simulate_fn simulate;
	} sweeps[] = {
		{"as it is", gemm},
		{"the better of both layouts", gemm_free},
	};

	printf("\nproducts on Bow with other costs of a phase, rms and bias in %%\n");
	printf("  %-20s  %-13s  %-13s  %s\n", "cycles of a phase", "float16", "float32", "both");
	for (size_t s = 0; s < ARRAY_LEN(sweeps); s++) {
		printf("%s\n", sweeps[s].name);
		for (size_t i = 0; i < ARRAY_LEN(phases); i++)
			print_sweep_row(phases[i], sweeps[s].simulate);
	}
}

int main(int argc, char **argv)
{
	const char *golden = IPUSCOPE_SOURCE_DIR "/../shared/golden/poplibs_cycles.csv";
	bool table = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--table") == 0) {
			table = true;
		} else if (strcmp(argv[i], "--golden") == 0 && i + 1 < argc) {
			golden = argv[++i];
		} else {
			fprintf(stderr, "usage: fidelity [--table] [--golden FILE]\n");
			return 2;
		}
	}
	add_all();
	if (fidelity_golden(golden) == 0)
		printf("skipped: poplibs' cycles, there is no %s (--golden FILE)\n\n", golden);
	print_table();
	if (!table) {
		print_solution();
		print_sweep();
	}
	return 0;
}
