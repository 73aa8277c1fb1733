/*
 * The costs of an executable that the device clock needs.
 */
#ifndef IPU_COST_H
#define IPU_COST_H

#include "ipu/compile/ipu_program.h"

struct ipu_costs {
	struct ipu_stage_cost *stages;              /* by stage, in training */
	struct ipu_stage_cost *forward, *predicted; /* in evaluation and in prediction */
	struct ipu_send *sends;
	int send_count;
};

/* The arrays belong to @arena. Streams: the inputs and labels that a stage reads, and its results.
 * Sends: tensors that a stage makes in its forward phase and a later stage reads in any phase. */
enum status ipu_costs_get(struct ipu_costs *out, const struct ipu_executable *executable,
			  struct arena *arena, struct err *err);

#endif /* IPU_COST_H */
