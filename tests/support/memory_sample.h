/*
 * A made-up model on simulated IPUs: a chain of dense layers, so many to a stage, with dropout,
 * gradient accumulation, an optimizer with a slot for each weight, and a skip connection.
 */
#ifndef MEMORY_SAMPLE_H
#define MEMORY_SAMPLE_H

#include "ipu/compile/ipu_memory.h"

#define MEMORY_SAMPLE_LAYERS 40

struct memory_sample_params {
	enum ipu_schedule_kind kind;
	int stages, layers_per_stage;
	const int *device;                   /* by stage; NULL: each has its own IPU */
	int ipus;                            /* with @device */
	int64_t units[MEMORY_SAMPLE_LAYERS]; /* 0: 256 */
	bool dropout[MEMORY_SAMPLE_LAYERS];
	int skip_from,
		skip_to; /* layers: the output of one is added to that of the other; 0: none */
	bool sum_apart;  /* the sum, of the last layer, is a tensor of its own */
	int64_t tiles;   /* of the target; 0: all */
	bool forward_only;
	struct ipu_layout
		layout; /* batch (32), replicas (1), recompute, offload_*, shard_*, io_* */
};

struct memory_sample {
	struct ipu_target target;
	struct ipu_schedule *schedule;
	struct ipu_planner *planner;
	struct ipu_graph graph;
	struct ipu_executable *executable;
	struct arena arena;
};

/* Asserts that it comes to be. */
void memory_sample_make(struct memory_sample *sample, const struct memory_sample_params *params);
void memory_sample_free(struct memory_sample *sample);

/* The memory of what @params describe; asserts that there is one. */
struct ipu_memory *memory_sample_memory(struct memory_sample *sample,
					const struct memory_sample_params *params);

/* By name; asserts that it is there. */
const struct ipu_variable *memory_sample_variable(const struct ipu_memory *memory,
						  const char *name);
const struct ipu_variable *memory_sample_find(const struct ipu_memory *memory,
					      const char *name); /* NULL: none */

#endif /* MEMORY_SAMPLE_H */
