/*
 * What the modules of outfeed queues share: what came of the tensors that a queue sends.
 */
#ifndef OUTFEED_QUEUE_INTERNAL_H
#define OUTFEED_QUEUE_INTERNAL_H

#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_queue.h"

/* What came since the last dequeue, of one replica; on cache lines of its own, so that replicas
 * record at once without a lock. */
struct outfeed_summary {
	struct outfeed_stats stats;
	int64_t enqueues;
	bool ever;               /* since the queue was made */
	_Atomic int64_t written; /* enqueues whose values are there, since the queue was made */
} __attribute__((aligned(64)));

/* A tensor that a queue sends; the queue's. */
struct outfeed_sent {
	struct outfeed_queue *queue;
	const struct outfeed_tensor *tensor;
	bool late; /* added after the place that enqueues, so never part of it */
	struct outfeed_summary *summaries; /* by replica */
	size_t size;                       /* bytes of a value */
	unsigned char *values;             /* [room, replicas] of such; NULL: none are retained */
	struct ips_keys *keys;             /* of each */
};

/* Retained values. Enqueues are numbered from 0, since the queue was made. */
struct outfeed_retained {
	int64_t room; /* enqueues; 0: no values are retained */
	bool waits;
	int64_t base;           /* the one at the first place, since the last restart */
	int64_t next, dequeued; /* of the reading thread */
	_Atomic int64_t freed;  /* places that are free again: all before */
	bool abandoned;         /* nobody reads any more; under the lock */
	pthread_mutex_t lock;
	pthread_cond_t room_made;
	struct outfeed_array *arrays; /* room for one of each tensor */
};

struct outfeed_queue {
	struct outfeed *outfeed;
	char *name;
	char **filters; /* NULL: none */
	int filter_count;
	enum outfeed_mode mode;
	int replicas;
	bool wrapped;
	bool final;  /* some place has something to enqueue (always, where not wrapped) */
	bool idle;   /* some place would, but nothing that comes before it has passed */
	bool placed; /* a layer enqueues: what layers add later is never sent */
	int refused; /* tensors that the filters refused */
	struct outfeed_sent **sent;
	size_t count, capacity;
	struct outfeed_retained retained;
};

#endif /* OUTFEED_QUEUE_INTERNAL_H */
