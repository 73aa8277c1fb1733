/*
 * Published figures and how each is simulated: between fidelity's table (fidelity.c) and the
 * figures that are read from a file (fidelity_golden.c).
 */
#ifndef FIDELITY_H
#define FIDELITY_H

#include "ipu/ipu_schedule.h"
#include "ipu/plan/ipu_plan.h"

#define WORKLOAD_OPS    8
#define WORKLOAD_NAME   64
#define WORKLOAD_COPIES 3

struct bubble_row;

struct workload {
	const char *table; /* rows of a table stand together; bias, rms and worst are its */
	const char *unit, *target;
	const char *source; /* as docs/cost-model.md lists it */
	char name[WORKLOAD_NAME];
	double published;
	bool calibrated; /* was a constant of the simulator solved or chosen by its help? */
	bool higher;     /* is more of it faster? */
	double (*simulate)(const struct workload *workload, const struct ipu_target *target);
	struct ipu_op ops[WORKLOAD_OPS]; /* one after the other */
	int op_count;
	double live_bytes; /* of all operands and results, where memory is asked for */
	double copied_bytes[WORKLOAD_COPIES]; /* of tensors that are copied as they lie: a
						 function's operands, then its result; 0: none */
	int copied_ops; /* how many of @ops, the first ones, are calls of that function */
	bool compiled;  /* is the code of vertices and exchanges compiled, and so counted? */
	enum ipu_dtype partials;
	const char *run, *words;         /* of a network */
	const struct bubble_row *bubble; /* of a pipeline: with which times, and its schedule */
	enum ipu_schedule_kind schedule;
};

/* A copy of @workload becomes the table's last row. */
void fidelity_add(const struct workload *workload);

/* Adds the published bubble rates of pipeline schedules. */
void fidelity_bubbles(void);

/* A plan, kept until another target is asked for. Ends the process on errors. */
const struct ipu_plan *fidelity_plan(const struct ipu_target *target, const struct ipu_op *op,
				     enum ipu_dtype partials);

/*
 * Adds the rows of @path: name, what, dtype, batch, in_channels, out_channels, field, kernel,
 * stride, padding, groups, m, k, n, cycles_mk2, total_memory_bytes, max_tile_bytes. Returns how
 * many; 0 where there is no such file. Ends the process on a row that it cannot read.
 */
int fidelity_golden(const char *path);

#endif /* FIDELITY_H */
