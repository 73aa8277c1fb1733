/*
 * The outfeed queues of a run and what each sends, planned before anything is created: those of
 * outfeed layers, of the run file's outfeed.layers, and of the optimizer.
 *
 * Default names, if a layer's config names no "queue": a single Outfeed has the tutorial's
 * "activations_outfeed_queue"; if there are several, each appends "_LAYER". MaybeOutfeeds have
 * one queue per stage, "multi_activations_outfeed_queue", with "_stage_N" appended if several
 * stages have one. The optimizer's is "optimizer_outfeed_queue".
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
	const char *callback; /* the tutorial's name of the OutfeedCallback of such a queue */
	bool gradients;       /* the optimizer's; otherwise of activations */
	bool wrapped;         /* a MaybeOutfeedQueue: it has filters */
	int stage;            /* -1: the optimizer's, on all stages */
};

/* An activation that may be sent to a queue. */
struct run_send {
	int queue;
	int layer; /* its output is sent */
	const char *key;
	bool final;  /* the queue is enqueued here */
	bool placed; /* by outfeed.layers; otherwise the layer is an outfeed */
	bool passes; /* the filters of a MaybeOutfeedQueue match it */
	bool sent;   /* it passes, and is not after the enqueue */
};

/* A parameter's gradient, which may be sent to the optimizer's queue. */
struct run_gradient {
	const char *key; /* in queues and in health records */
	bool sent;       /* it is trainable, and the filters match it */
};

struct run_queues {
	struct run_queue *queues; /* in the order in which their tables are printed */
	int queue_count;
	struct run_send *sends; /* in the order of their layers */
	int send_count;
	struct run_gradient *gradients; /* by parameter */
};

/* Everything is allocated from @arena. Nothing is sent if the run file switches outfeeds off.
 * Errors name the layers at fault. */
enum status run_queues_plan(struct run_queues *out, struct arena *arena, const struct run_file *run,
			    const struct model *model, const struct run_layout *layout,
			    struct err *err);

/* Report what outfeed_queue_add() would refuse, before anything is created. Valid only for the
 * stages that are run: while stages are being chosen, another plan's queue may hold more. */
enum status run_queues_check(const struct run_queues *plan, const struct run_file *run,
			     const struct model *model, struct err *err);

#endif /* RUN_QUEUES_H */
