/*
 * What the files of outfeed queues share: keys, and what came since the last dequeue.
 */
#ifndef OUTFEED_QUEUE_INTERNAL_H
#define OUTFEED_QUEUE_INTERNAL_H

#include "outfeed/outfeed_queue.h"

/* What came since the last dequeue, of one replica. */
struct outfeed_summary {
	struct outfeed_stats stats;
	int64_t enqueues;
	bool ever; /* since the queue was made */
} __attribute__((aligned(64)));

struct outfeed_key {
	struct outfeed_queue *queue;
	char *name;
	int64_t shape[OUTFEED_NDIM_MAX];
	int ndim;
	struct outfeed_tensor *tensor;
	bool sent; /* false: added after the place that enqueues, so never part of it */
	struct outfeed_summary *summaries; /* by replica */
};

struct outfeed_queue {
	struct outfeed *outfeed;
	char *name;
	char **filters; /* NULL: none */
	int filter_count;
	enum outfeed_mode mode;
	int replicas;
	bool wrapped;
	bool final;  /* some place would enqueue (always, where not wrapped) */
	bool placed; /* a layer enqueues: what layers add later is never sent */
	int refused; /* keys that the filters refused */
	struct outfeed_key **keys;
	size_t count, capacity;
};

/* Does the queue ever send this key? Known once all keys are added. */
bool outfeed__sent(const struct outfeed_key *key);

#endif /* OUTFEED_QUEUE_INTERNAL_H */
