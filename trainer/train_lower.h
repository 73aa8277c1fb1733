/*
 * The model as the simulated device gets it: tensors, operations, and how the run is laid out.
 */
#ifndef TRAIN_LOWER_H
#define TRAIN_LOWER_H

#include "common/arena.h"
#include "ipu/compile/ipu_graph.h"
#include "trainer/learn/optimizer.h"
#include "trainer/models/model.h"
#include "trainer/run/run_rules.h"

/* What is lowered. */
struct train_lowered {
	const struct run_file *run;
	const struct run_layout *layout;
	const struct model *model;
	const struct optimizer *optimizer;
};

/* Texts, lists and arrays of *@graph belong to @arena. `layout.schedule` and `layout.forward` are
 * the caller's to set. */
enum status train_lower(struct ipu_graph *graph, const struct train_lowered *lowered,
			struct arena *arena, struct err *err);

#endif /* TRAIN_LOWER_H */
