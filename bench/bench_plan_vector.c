/*
 * How long planning takes of what runs on the vector pipe: plans a second of each kind of operation
 * and of all mixed, none from the cache, on one thread.
 *
 *	bench_plan_vector [ROUNDS]
 *
 * Printed are the least times of all rounds, operation by operation; last, how many such plans fit
 * in the 2 s in which all of ResNet50 is to be planned.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"

#define ROUNDS     5
#define OPERATIONS 400

/* The @i-th operation of a kind: sizes grow by about a twentieth from one to the next. */
typedef void (*sample_fn)(int64_t size, struct ipu_op *op);

static void sample_elements(int64_t size, struct ipu_op *op)
{
	op->elements = (struct ipu_elements){.count = size,
					     .operands = 2,
					     .broadcast = size % 1000,
					     .times = {[IPU_FN_ADD] = 2, [IPU_FN_EXP] = 1}};
}

static void sample_reduce(int64_t size, struct ipu_op *op)
{
	op->reduce = (struct ipu_reduce){size, size % 2048 + 1};
}

static void sample_pool(int64_t size, struct ipu_op *op)
{
	op->pool = (struct ipu_pool){true,       size % 2, size % 64 + 1, 64,
				     {112, 112}, {56, 56}, {3, 3},        {2, 2}};
	op->pool.channels = size % 512 + 1;
}

static void sample_rows(int64_t size, struct ipu_op *op)
{
	op->rows = (struct ipu_rows){(enum ipu_rows_work)(size % IPU_ROWS_WORKS), size % 256 + 1,
				     size % 100000 + 1};
}

static void sample_copy(int64_t size, struct ipu_op *op)
{
	op->copy = (struct ipu_copy){size, size % 8 + 1};
}

static const struct {
	enum ipu_op_kind kind;
	sample_fn sample;
} kinds[] = {
	{IPU_OP_ELEMENTWISE, sample_elements},
	{IPU_OP_REDUCE, sample_reduce},
	{IPU_OP_POOL, sample_pool},
	{IPU_OP_ROWS, sample_rows},
	{IPU_OP_COPY, sample_copy},
};

static double least_ns[ARRAY_LEN(kinds)][OPERATIONS];

static void plan_one(struct ipu_planner *planner, size_t kind, int i, int64_t size)
{
	struct ipu_op op = {.kind = kinds[kind].kind};
	const struct ipu_plan *plan;
	struct err err = {ST_OK, ""};
	uint64_t start;
	double ns;

	kinds[kind].sample(size, &op);
	start = clock_ns();
	if (ipu_planner_plan(planner, &op, NULL, &plan, &err) != ST_OK) {
		fprintf(stderr, "bench_plan_vector: %s\n", err.text);
		exit(1);
	}
	ns = (double)(clock_ns() - start);
	if (least_ns[kind][i] == 0 || ns < least_ns[kind][i])
		least_ns[kind][i] = ns;
}

static void plan_round(const struct ipu_target *target)
{
	struct ipu_planner *planner;
	int64_t size = 1;

	if (ipu_planner_new(&planner, target, NULL) != ST_OK)
		exit(1);
	for (int i = 0; i < OPERATIONS; i++) {
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			plan_one(planner, k, i, size);
		size += size / 24 + 1;
	}
	ipu_planner_free(planner);
}

/* Of the kinds from @first to before @end. */
static void print_line(const char *name, size_t first, size_t end)
{
	double ns = 0, slowest = 0, plans_second;

	for (size_t k = first; k < end; k++) {
		for (int i = 0; i < OPERATIONS; i++) {
			ns += least_ns[k][i];
			if (least_ns[k][i] > slowest)
				slowest = least_ns[k][i];
		}
	}
	plans_second = (double)(end - first) * OPERATIONS / ns * 1e9;
	printf("%-12s %12.0f %12.1f %12.0f\n", name, plans_second, slowest / 1e3, plans_second * 2);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	struct ipu_target target;

	if (ipu_target_get("ipu2", 0, &target, NULL) != ST_OK)
		return 1;
	for (int r = 0; r < rounds || r < 1; r++)
		plan_round(&target);
	printf("%-12s %12s %12s %12s\n", "operations", "plans/s", "slowest us", "in 2 s");
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		print_line(ipu_op_kind_name(kinds[k].kind), k, k + 1);
	print_line("mixed", 0, ARRAY_LEN(kinds));
	return 0;
}
