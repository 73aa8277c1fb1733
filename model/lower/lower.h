/*
 * The model as the simulated device runs it: tensors, operations, and the layout of the run.
 *
 * Modelled on TensorFlow for IPUs running Keras: the gradients of an output that several layers
 * read are added by an AddN; mixed_float16 casts each variable to float16 once per micro-batch
 * and its gradient back to float32; the optimizer runs once per weight update (phase U).
 * docs/cost-model.md has the full list.
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

/* The input of the lowering. */
struct lower_request {
	const struct run_file *run;
	const struct run_layout *layout;
	const struct model *model;
	const struct optimizer *optimizer;
	/* Of training, or else of the evaluation. NULL: prediction only, nothing is measured. */
	const struct loss_list *losses;
	const struct metric_list *metrics; /* may be NULL */
	struct target_kind targets;        /* the targets that losses and metrics compare with */
	/* Reuse this device's planner, with its cached plans, if the target is the same; it must
	 * outlive the new device. NULL: create a planner. */
	const struct plan_device *like;
};

/* Texts, lists and arrays of *@graph are in @arena. The caller sets `layout.schedule` and
 * `layout.forward`. */
enum status lower_model(struct ipu_graph *graph, const struct lower_request *lowered,
			struct arena *arena, struct err *err);

/* The type in which the inputs are streamed. */
enum ipu_dtype lower_infeed_dtype(const struct run_file *run, const struct model *model);

#endif /* LOWER_H */
