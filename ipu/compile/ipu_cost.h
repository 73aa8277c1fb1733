/*
 * What the device clock needs to know of an executable.
 */
#ifndef IPU_COST_H
#define IPU_COST_H

#include "ipu/compile/ipu_program.h"

struct ipu_costs {
	struct ipu_stage_cost *stages;              /* by stage, of training */
	struct ipu_stage_cost *forward, *predicted; /* of evaluation and of prediction */
	struct ipu_send *sends;
	int send_count;
};

/* Arrays are @arena's. Streamed are the inputs and labels that a stage reads, and the results that
 * it makes; sent is what it makes in its forward and a later stage reads in any phase. */
enum status ipu_costs_get(struct ipu_costs *out, const struct ipu_executable *executable,
			  struct arena *arena, struct err *err);

#endif /* IPU_COST_H */
