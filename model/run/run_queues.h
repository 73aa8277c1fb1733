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
#ifndef RUN_QUEUES_H
#define RUN_QUEUES_H

#include "common/arena.h"
#include "model/run/run_rules.h"

#define RUN_OPTIMIZER_QUEUE "optimizer_outfeed_queue"

struct run_queue {
	const char *name;
	const char *callback; /* what the tutorial calls the OutfeedCallback of such a queue */
	bool gradients;       /* the optimizer's; else of activations */
	bool wrapped;         /* a MaybeOutfeedQueue: it has filters */
	int stage;            /* -1: the optimizer's, of all */
};

/* An activation that a queue gets. */
struct run_send {
	int queue;
	int layer; /* its output is sent */
	const char *key;
	bool final;  /* here the queue is enqueued */
	bool placed; /* by outfeed.layers: no layer of the model is an outfeed */
	bool passes; /* of a MaybeOutfeedQueue: the filters let it */
	bool sent;   /* it comes before what enqueues too */
};

/* A parameter's gradient, which the optimizer's queue may get. */
struct run_gradient {
	const char *key; /* of queues, and of what is watched */
	bool sent;       /* it is trainable, and the filters let it pass */
};

struct run_queues {
	struct run_queue *queues; /* in the order in which their tables are printed */
	int queue_count;
	struct run_send *sends; /* in the order of their layers */
	int send_count;
	struct run_gradient *gradients; /* by parameter */
};

/* All of it lies in @arena. Nothing is sent where the run file switches outfeeds off. Errors name
 * the layers at fault. */
enum status run_queues_plan(struct run_queues *out, struct arena *arena, const struct run_file *run,
			    const struct model *model, const struct run_layout *layout,
			    struct err *err);

/* What outfeed_queue_add() would refuse, before anything is made. Of the stages that are run: a
 * queue may hold more in a plan of others, as where stages are being chosen. */
enum status run_queues_check(const struct run_queues *plan, const struct run_file *run,
			     const struct model *model, struct err *err);

#endif /* RUN_QUEUES_H */
