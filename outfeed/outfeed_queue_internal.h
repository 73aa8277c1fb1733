/*
 * Shared by the modules of outfeed queues: the state of the tensors that a queue sends.
 */
#ifndef OUTFEED_QUEUE_INTERNAL_H
#define OUTFEED_QUEUE_INTERNAL_H

#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_queue.h"

/* Enqueues since the last dequeue, of one replica; on cache lines of its own, so that replicas can
 * record concurrently without a lock. */
struct outfeed_summary {
	struct outfeed_stats stats;
	int64_t enqueues;
	bool ever;               /* any enqueue since the queue was created */
	_Atomic int64_t written; /* enqueues with values written, since the queue was created */
} __attribute__((aligned(64)));

/* A tensor that a queue sends; owned by the queue. */
struct outfeed_sent {
	struct outfeed_queue *queue;
	const struct outfeed_tensor *tensor;
	bool late; /* added after the layer that enqueues, so never part of an enqueue */
	struct outfeed_summary *summaries; /* by replica */
	size_t size;                       /* bytes of a value */
	unsigned char *values;             /* [room, replicas] values; NULL: none are retained */
	struct ips_keys *keys;             /* of each value */
};

/* Retained values. Enqueues are numbered from 0, since the queue was created. */
struct outfeed_retained {
	int64_t room; /* enqueues; 0: no values are retained */
	bool waits;
	int64_t base;           /* enqueue at the first position, since the last restart */
	int64_t next, dequeued; /* of the reading thread */
	_Atomic int64_t freed;  /* positions of enqueues before this one are free again */
	bool abandoned;         /* no thread reads any more; guarded by the lock */
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
	bool final;  /* some layer enqueues (always true if not wrapped) */
	bool idle;   /* some layer would, but the filters refused everything before it */
	bool placed; /* a layer enqueues: tensors of layers added later are never sent */
	int refused; /* number of tensors that the filters refused */
	struct outfeed_sent **sent;
	size_t count, capacity;
	struct outfeed_retained retained;
};

#endif /* OUTFEED_QUEUE_INTERNAL_H */
