/*
 * What the files of outfeed queues share: keys, and what came since the last dequeue.
 */
#ifndef OUTFEED_QUEUE_INTERNAL_H
#define OUTFEED_QUEUE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "outfeed/outfeed_queue.h"

/* What came since the last dequeue, of one replica. */
struct outfeed_summary {
	struct outfeed_stats stats;
	int64_t enqueues;
	bool ever;               /* since the queue was made */
	_Atomic int64_t written; /* enqueues whose values are there, since the queue was made */
} __attribute__((aligned(64)));

struct outfeed_key {
	struct outfeed_queue *queue;
	char *name, *layer; /* layer NULL: none */
	enum outfeed_kind kind;
	enum outfeed_dtype dtype;
	int64_t shape[OUTFEED_NDIM_MAX];
	int ndim;
	struct outfeed_tensor *tensor;
	bool sent; /* false: added after the place that enqueues, so never part of it */
	struct outfeed_summary *summaries; /* by replica */
	size_t size;                       /* bytes of a value */
	unsigned char *values;             /* [room, replicas] of such; NULL: none are kept */
	struct ips_keys *moments;          /* of each */
};

/* Enqueues are numbered from 0, since the queue was made. */
struct outfeed_kept {
	int64_t room; /* enqueues; 0: no values are kept */
	bool waits;
	int64_t base;           /* the one at the first place, as they were last numbered anew */
	int64_t next, dequeued; /* of who takes */
	_Atomic int64_t taken;  /* places given back: all before */
	bool let_go;            /* nobody takes any more; under the lock */
	pthread_mutex_t lock;
	pthread_cond_t given_back;
	struct outfeed_array *arrays; /* room for one of each key */
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
	int refused; /* keys that the filters refused */
	struct outfeed_key **keys;
	size_t count, capacity;
	struct outfeed_kept kept;
};

/* Does the queue ever send this key? Known once all keys are added. */
bool outfeed__sent(const struct outfeed_key *key);

void outfeed__keep_init(struct outfeed_queue *queue);
void outfeed__keep_fini(struct outfeed_queue *queue);
enum status outfeed__keep(struct outfeed_key *key, const struct outfeed_moment *moment, int replica,
			  const void *values, struct err *err);

#endif /* OUTFEED_QUEUE_INTERNAL_H */
