/*
 * How long planning takes: every convolution of ResNet50, forward and both backward passes, on one
 * thread; and what they cost on the simulated IPU.
 *
 *	bench_plan [ROUNDS]
 *
 * Printed are the least times of all rounds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"

#define ROUNDS 3

/* A row of the network: @times convolutions of the same shape. */
struct conv_row {
	int64_t in, out, field, kernel, stride;
	int times;
};

/* ResNet50 (He et al., arXiv 1512.03385) at 224 x 224; field: of the output; stride 2 in the first
 * 1x1 of a stage, as Keras has it. */
static const struct conv_row resnet50[] = {
	{3, 64, 112, 7, 2, 1},    {64, 64, 56, 1, 1, 1},    {64, 64, 56, 3, 1, 3},
	{64, 256, 56, 1, 1, 4},   {256, 64, 56, 1, 1, 2},   {256, 128, 28, 1, 2, 1},
	{128, 128, 28, 3, 1, 4},  {128, 512, 28, 1, 1, 4},  {256, 512, 28, 1, 2, 1},
	{512, 128, 28, 1, 1, 3},  {512, 256, 14, 1, 2, 1},  {256, 256, 14, 3, 1, 6},
	{256, 1024, 14, 1, 1, 6}, {512, 1024, 14, 1, 2, 1}, {1024, 256, 14, 1, 1, 5},
	{1024, 512, 7, 1, 2, 1},  {512, 512, 7, 3, 1, 3},   {512, 2048, 7, 1, 1, 3},
	{1024, 2048, 7, 1, 2, 1}, {2048, 512, 7, 1, 1, 2},
};

static void conv_of(const struct conv_row *row, int64_t batch, enum ipu_pass pass,
		    enum ipu_dtype dtype, struct ipu_op *op)
{
	*op = (struct ipu_op){.kind = IPU_OP_CONV, .dtype = dtype};
	op->conv = (struct ipu_conv){.pass = pass,
				     .batch = batch,
				     .groups = 1,
				     .in_channels = row->in,
				     .out_channels = row->out};
	for (int i = 0; i < 2; i++) {
		op->conv.in[i] = row->field * row->stride;
		op->conv.out[i] = row->field;
		op->conv.kernel[i] = row->kernel;
		op->conv.stride[i] = row->stride;
		op->conv.dilation[i] = 1;
	}
}

struct result {
	double ns, cycles[IPU_PASSES];
	int plans;
};

static void plan_all(const struct ipu_target *target, int64_t batch, enum ipu_dtype dtype,
		     struct result *result)
{
	struct ipu_planner *planner;
	struct err err = {ST_OK, ""};
	uint64_t start = clock_ns();

	*result = (struct result){0};
	if (ipu_planner_new(&planner, target, &err) != ST_OK)
		goto failed;
	for (size_t i = 0; i < ARRAY_LEN(resnet50); i++) {
		for (int p = 0; p < IPU_PASSES; p++) {
			const struct ipu_plan *plan;
			struct ipu_op op;

			conv_of(&resnet50[i], batch, (enum ipu_pass)p, dtype, &op);
			if (ipu_planner_plan(planner, &op, NULL, &plan, &err) != ST_OK)
				goto failed;
			result->cycles[p] += (double)plan->cycles * resnet50[i].times;
			result->plans++;
		}
	}
	result->ns = (double)(clock_ns() - start);
	ipu_planner_free(planner);
	return;
failed:
	fprintf(stderr, "bench_plan: %s\n", err.text);
	exit(1);
}

int main(int argc, char **argv)
{
	static const int64_t batches[] = {2, 16};
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	struct ipu_target target;

	if (ipu_target_get("ipu2", 0, &target, NULL) != ST_OK)
		return 1;
	printf("ResNet50's convolutions, planned for one Mk2 IPU\n%-16s %6s %10s   %s\n", "",
	       "plans", "ms", "simulated ms: forward, backward-data, backward-weights");
	for (size_t b = 0; b < ARRAY_LEN(batches); b++) {
		for (int dtype = IPU_FLOAT32; dtype <= IPU_FLOAT16; dtype++) {
			struct result least = {.ns = 1e30}, now;

			for (int r = 0; r < rounds || r < 1; r++) {
				plan_all(&target, batches[b], (enum ipu_dtype)dtype, &now);
				if (now.ns < least.ns)
					least = now;
			}
			printf("%-9s x %-4lld %6d %10.1f   ", ipu_dtype_name((enum ipu_dtype)dtype),
			       (long long)batches[b], least.plans, least.ns / 1e6);
			for (int p = 0; p < IPU_PASSES; p++)
				printf(" %8.3f", least.cycles[p] / target.clock_hz * 1e3);
			printf("\n");
		}
	}
	return 0;
}
