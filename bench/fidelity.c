/*
 * How far the simulated IPU is from what was published: a table of workloads, and what it would be
 * with other costs of a phase and with the operands' layout left free.
 *
 *	fidelity [--table]
 *
 * --table leaves out all but the table. Published figures and their sources stand in the tables
 * below; a row is "calibrated" if a constant of the simulator was solved or chosen by its help.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "fidelity_network.h"
#include "ipu/plan/ipu_plan.h"

/* A published figure and how it is simulated. */
struct workload {
	const char *table; /* rows of a table stand together; rms and bias are its */
	const char *name, *unit;
	const char *target;
	double published;
	bool calibrated;
	bool higher; /* is more of it faster? */
	bool limit;  /* published is the best that was seen: of all sizes, ours is the best too */
	double (*simulate)(const struct workload *workload, const struct ipu_target *target);
	struct ipu_op op;
	enum ipu_dtype partials;
	const char *run, *words; /* of a network */
};

static void die(const struct err *err)
{
	fprintf(stderr, "fidelity: %s\n", err->text);
	exit(1);
}

/* Planner of @target (asked for in turn: kept until another is), and a plan of it. */
static const struct ipu_plan *plan_on(const struct ipu_target *target, const struct ipu_op *op,
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
	return teraflops(target, plan_on(target, &workload->op, workload->partials));
}

/* The better of both layouts: output rows as channels, or as field. */
static double gemm_free(const struct workload *workload, const struct ipu_target *target)
{
	struct ipu_op swapped = workload->op;
	double fixed = gemm(workload, target);

	swapped.matmul.m = workload->op.matmul.n;
	swapped.matmul.n = workload->op.matmul.m;
	return fmax(fixed, teraflops(target, plan_on(target, &swapped, workload->partials)));
}

/* Of the plan that would be chosen were phases free, what it costs where they are not. */
static double gemm_unweighed(const struct workload *workload, const struct ipu_target *target)
{
	struct ipu_target free_phases = *target;
	struct ipu_plan plan;

	free_phases.phase_cycles = 0;
	plan = *plan_on(&free_phases, &workload->op, workload->partials);
	for (int p = 0; p < plan.phase_count; p++)
		plan.cycles += (int64_t)ceil(target->phase_cycles) * plan.phases[p].repeats;
	return teraflops(target, &plan);
}

/* Square products of 512 to 4096: the best. */
static double gemm_best(const struct workload *workload, const struct ipu_target *target)
{
	struct ipu_op op = workload->op;
	double best = 0;

	for (int64_t size = 512; size <= 4096; size += 256) {
		op.matmul = (struct ipu_matmul){size, size, size};
		best = fmax(best, teraflops(target, plan_on(target, &op, workload->partials)));
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

#define WORKLOADS_MOST 128
#define NAME_SIZE      64

static struct workload workloads[WORKLOADS_MOST];
static char names[WORKLOADS_MOST][NAME_SIZE];
static int workload_count;

static struct workload *add(struct workload workload, const char *name)
{
	struct workload *added = &workloads[workload_count];

	if (workload_count == WORKLOADS_MOST) {
		fprintf(stderr, "fidelity: more than %d workloads\n", WORKLOADS_MOST);
		exit(1);
	}
	snprintf(names[workload_count], NAME_SIZE, "%s", name);
	*added = workload;
	added->name = names[workload_count++];
	return added;
}

static void add_gemms(const char *table, const struct gemm_point *points, size_t count,
		      enum ipu_dtype dtype)
{
	for (size_t i = 0; i < count; i++) {
		const struct gemm_point *point = &points[i];
		char name[NAME_SIZE];

		snprintf(name, sizeof(name), "[%lld, %lld] x [.., %lld]", (long long)point->m,
			 (long long)point->m, (long long)point->n);
		add((struct workload){.table = table,
				      .unit = "TF/s",
				      .target = "ipu21",
				      .published = point->published,
				      .higher = true,
				      .calibrated = true,
				      .simulate = gemm,
				      .op = {.kind = IPU_OP_MATMUL,
					     .dtype = dtype,
					     .matmul = {point->n, point->m, point->m}},
				      .partials = dtype},
		    name);
	}
}

/* Best of any size on one Mk1 (Jia et al., arXiv 1912.03413, as quoted by Louw and McIntosh-Smith):
 * sizes are not published. Its float16 peak is given for float32 partials. */
static void add_best(const char *name, enum ipu_dtype dtype, enum ipu_dtype partials,
		     double published)
{
	add((struct workload){.table = "best product on Mk1",
			      .unit = "TF/s",
			      .target = "ipu1",
			      .published = published,
			      .higher = true,
			      .simulate = gemm_best,
			      .op = {.kind = IPU_OP_MATMUL, .dtype = dtype},
			      .partials = partials},
	    name);
}

/* Steps that Keras printed: the tutorials of graphcore/tutorials, tutorials/tensorflow2/keras (the
 * convolutional network on MNIST, batch 64, Mk2), and the University of Luxembourg's tutorial on
 * IPUs (ResNet50 on CIFAR-10 at 224 x 224, batch 2; its third epoch of 50 steps). The latter's
 * machine runs at 1850 MHz: a Bow. */
static void add_networks(void)
{
#define KERAS_MNIST "examples/keras-mnist.json"
#define KERAS_STEP  "--use-ipu --batch-size 64 "
	static const struct {
		const char *name, *run, *words, *target;
		double published;
		bool calibrated;
	} rows[] = {
		{"convnet, 1 IPU", KERAS_MNIST, KERAS_STEP "--ipu.auto_select_ipus 1", "ipu2", 224,
		 true},
		{"convnet, a step a run", KERAS_MNIST,
		 KERAS_STEP "--ipu.auto_select_ipus 1 --compile.steps_per_execution 1", "ipu2",
		 3000, true},
		{"convnet, 2 replicas", KERAS_MNIST, KERAS_STEP "--ipu.auto_select_ipus 2", "ipu2",
		 135, false},
		{"ResNet50, batch 2", "examples/cifar10-resnet50.json",
		 "--ipu.target ipu21 --compile.steps_per_execution 50", "ipu21", 23000, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		add((struct workload){.table = "training steps, as Keras prints them",
				      .unit = "us",
				      .target = rows[i].target,
				      .published = rows[i].published,
				      .calibrated = rows[i].calibrated,
				      .simulate = network,
				      .run = rows[i].run,
				      .words = rows[i].words},
		    rows[i].name);
}

static void add_all(void)
{
	add_gemms("float16 products on Bow", bow_half, ARRAY_LEN(bow_half), IPU_FLOAT16);
	add_gemms("float32 products on Bow", bow_float, ARRAY_LEN(bow_float), IPU_FLOAT32);
	add_best("float32, any size", IPU_FLOAT32, IPU_FLOAT32, 18.9);
	add_best("float16, any size", IPU_FLOAT16, IPU_FLOAT32, 58.9);
	add_networks();
}

/* ---- the table ------------------------------------------------------------------------------- */

struct fit {
	double sum, squares;
	int count;
};

static void fit_add(struct fit *fit, double ratio)
{
	fit->sum += ratio - 1;
	fit->squares += (ratio - 1) * (ratio - 1);
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

static void print_fit(const struct fit *fit)
{
	if (fit->count > 1)
		printf("%-26s %10s %10s %7s   rms %.1f %%, bias %+.1f %%\n", "", "", "", "",
		       fit_rms(fit), fit_bias(fit));
}

static void print_table(void)
{
	const char *table = "";
	struct fit fit = {0};

	for (int i = 0; i < workload_count; i++) {
		const struct workload *workload = &workloads[i];
		struct ipu_target target = target_of(workload->target, -1);
		double simulated = workload->simulate(workload, &target);

		if (strcmp(table, workload->table) != 0) {
			print_fit(&fit);
			fit = (struct fit){0};
			table = workload->table;
			printf("%s%s (%s)\n%-26s %10s %10s %7s   %s\n", i > 0 ? "\n" : "", table,
			       workload->unit, "  workload", "published", "simulated", "ratio",
			       "calibrated on");
		}
		fit_add(&fit, simulated / workload->published);
		printf("  %-24s %10.1f %10.1f %7.2f   %s\n", workload->name, workload->published,
		       simulated, simulated / workload->published,
		       workload->calibrated ? "yes" : "no");
	}
	print_fit(&fit);
}

/* ---- what the published step says of a phase ------------------------------------------------- */

/* The step's cycles are linear in those of a phase: what would give the published one. */
static void print_solution(void)
{
	const struct plan_figures figures =
		fidelity_network(KERAS_MNIST, KERAS_STEP "--ipu.auto_select_ipus 1");
	const struct ipu_target target = target_of("ipu2", -1);
	const double cycles = (double)figures.cycles_per_step;
	const double phases = figures.sync_fraction * cycles / target.phase_cycles;
	const double host_us =
		figures.execution_us / (double)figures.steps_per_execution - figures.device_step_us;
	const double published = (224 - host_us) * 1e-6 * target.clock_hz;

	printf("\nphase_cycles is %.0f; a step of 224 us, %.0f phases, would make it %.0f\n",
	       target.phase_cycles, phases, target.phase_cycles + (published - cycles) / phases);
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
	static const double phases[] = {0, 150, 300, 450, 600, 700};
	static const struct {
		const char *name;
		simulate_fn simulate;
	} sweeps[] = {
		{"as it is", gemm},
		{"the better of both layouts", gemm_free},
		{"plans chosen as if phases were free", gemm_unweighed},
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
	add_all();
	print_table();
	print_solution();
	if (argc < 2 || strcmp(argv[1], "--table") != 0)
		print_sweep();
	return 0;
}
