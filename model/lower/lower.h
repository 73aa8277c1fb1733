/*
 * The model as the simulated device gets it: tensors, operations, and how the run is laid out.
 *
 * Modelled as TensorFlow for IPUs runs Keras: gradients of an output that several layers read are
 * added by an AddN; mixed_float16 casts each variable to float16 once per micro-batch and its
 * gradient back to float32; the optimizer runs once per weight update (phase U). docs/cost-model.md
 * has the list.
 */
#ifndef LOWER_H
#define LOWER_H

#include "common/arena.h"
#include "ipu/compile/ipu_graph.h"
#include "model/learn/loss.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "model/model.h"
#include "model/run/run_rules.h"

struct plan_device;

/* What is lowered. */
struct lower_request {
	const struct run_file *run;
	const struct run_layout *layout;
	const struct model *model;
	const struct optimizer *optimizer;
	/* Of training, else of the evaluation; NULL: nothing is measured (prediction alone). */
	const struct loss_list *losses;
	const struct metric_list *metrics; /* may be NULL */
	struct target_kind targets;        /* that they compare with */
	/* Its planner is taken, with the plans that it has made, where the target is the same; it
	 * outlives the device. NULL: a planner of its own. */
	const struct plan_device *like;
};

/* Texts, lists and arrays of *@graph belong to @arena. `layout.schedule` and `layout.forward` are
 * the caller's to set. */
enum status lower_model(struct ipu_graph *graph, const struct lower_request *lowered,
			struct arena *arena, struct err *err);

/* What the inputs are streamed as. */
enum ipu_dtype lower_infeed_dtype(const struct run_file *run, const struct model *model);

#endif /* LOWER_H */
