/*
 * Which outfeed queues a run has and what each of them sends, before anything is made: of outfeed
 * layers, of the run file's outfeed.layers, and of the optimizer.
 *
 * Names, where a layer's config gives none ("queue"): an Outfeed alone has the tutorial's
 * "activations_outfeed_queue", each of several that and "_LAYER"; MaybeOutfeeds have one queue per
 * stage, "multi_activations_outfeed_queue", where several stages have such that and "_stage_N".
 * The optimizer's is "optimizer_outfeed_queue".
 *
 * Pure: any thread.
 */
#ifndef TRAIN_OUTFEED_PLAN_H
#define TRAIN_OUTFEED_PLAN_H

#include "common/arena.h"
#include "outfeed/outfeed_tier.h"
#include "trainer/run/run_rules.h"

#define TRAIN_OPTIMIZER_QUEUE "optimizer_outfeed_queue"

struct train_queue_plan {
	const char *name;
	const char *callback;   /* what the tutorial calls the OutfeedCallback of such a queue */
	enum outfeed_kind kind; /* of activations or gradients */
	bool wrapped;           /* a MaybeOutfeedQueue: it has filters */
	int stage;              /* -1: the optimizer's, of all */
};

/* An activation that a queue gets. */
struct train_send_plan {
	int queue;
	int layer; /* its output is sent */
	const char *key;
	bool final;  /* here the queue is enqueued */
	bool placed; /* by outfeed.layers: no layer of the model is an outfeed */
	bool passes; /* of a MaybeOutfeedQueue: the filters let it */
	bool sent;   /* it comes before what enqueues too */
};

/* A parameter's gradient, which the optimizer's queue may get. */
struct train_gradient_plan {
	const char *key; /* of queues, and of what is watched */
	bool sent;       /* it is trainable, and the filters let it pass */
};

struct train_outfeed_plan {
	struct train_queue_plan *queues; /* in the order in which their tables are printed */
	int queue_count;
	struct train_send_plan *sends; /* in the order of their layers */
	int send_count;
	struct train_gradient_plan *gradients; /* by parameter */
};

/* All of it lies in @arena. Nothing is sent where the run file switches outfeeds off. Errors name
 * the layers at fault. */
enum status train_outfeed_plan(struct train_outfeed_plan *out, struct arena *arena,
			       const struct run_file *run, const struct model *model,
			       const struct run_layout *layout, struct err *err);

/* What outfeed_queue_add() would refuse, before anything is made. Of the stages that are run: a
 * queue may hold more in a plan of others, as where stages are being chosen. */
enum status train_outfeed_check(const struct train_outfeed_plan *plan, const struct run_file *run,
				const struct model *model, struct err *err);

#endif /* TRAIN_OUTFEED_PLAN_H */
