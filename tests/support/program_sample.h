/*
 * A made-up model compiled for the simulated IPU, with its timeline and control programs: a chain
 * of dense layers, some with a dropout, accumulation and an optimizer with a slot.
 */
#ifndef PROGRAM_SAMPLE_H
#define PROGRAM_SAMPLE_H

#include "ipu/compile/ipu_program.h"

#define PROGRAM_SAMPLE_LAYERS  8
#define PROGRAM_SAMPLE_TENSORS (10 * PROGRAM_SAMPLE_LAYERS)
#define PROGRAM_SAMPLE_NODES   (8 * PROGRAM_SAMPLE_LAYERS)

/* A chain of dense layers, some with a dropout: enough for every kind of step. */
struct program_sample {
	struct ipu_tensor tensors[PROGRAM_SAMPLE_TENSORS];
	struct ipu_node nodes[PROGRAM_SAMPLE_NODES];
	int lists[PROGRAM_SAMPLE_NODES][6];
	struct ipu_graph graph;
	struct ipu_target target, compute;
	struct ipu_schedule *schedule;
	struct ipu_planner *planner;
	struct ipu_executable *executable;
	struct ipu_costs costs;
	struct ipu_timeline *timeline;
	struct arena arena;
	int layers;
	bool dropout[PROGRAM_SAMPLE_LAYERS];
	int64_t units[PROGRAM_SAMPLE_LAYERS + 1];
};

struct program_sample_params {
	enum ipu_schedule_kind kind;
	int stages, microbatches;
	const int *device;
	struct ipu_layout layout;
	const char *target; /* NULL: ipu2 */
};

/* A layer's tensors. */
enum {
	PROGRAM_OUT,
	PROGRAM_MASK,
	PROGRAM_GRADIENT,
	PROGRAM_WEIGHT,
	PROGRAM_WEIGHT_GRADIENT,
	PROGRAM_SUM,
	PROGRAM_SLOT,
	PROGRAM_OF_LAYER
};

int program_sample_tensor(int layer, int what);

/* Eight layers of 64 units, none with a dropout: `layers`, `units` and `dropout` may be changed
 * before setup. */
void program_sample_plain(struct program_sample *sample);
/* The graph, target, schedule and planner; asserts that they come to be. */
void program_sample_setup(struct program_sample *sample,
			  const struct program_sample_params *params);
/* What of it is there after a failure is freed with the rest. */
enum status program_sample_compile(struct program_sample *sample, struct err *err);
void program_sample_free(struct program_sample *sample);

#endif /* PROGRAM_SAMPLE_H */
