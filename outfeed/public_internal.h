/*
 * The handles of the public outfeed; tests/outfeed/test_outfeed_public.c begins calls by hand.
 *
 * Locks: `settling` is held by the thread that settles, feeds losses or registers; `lock`, taken
 * after it, guards the calls under way and the first failure. The program is called back under
 * `settling` and locks of the recorder.
 */
#ifndef PUBLIC_INTERNAL_H
#define PUBLIC_INTERNAL_H

#include <ipuscope/outfeed.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/err.h"
#include "outfeed/outfeed.h"

/* A call of ips_outfeed_record() under way; on its thread's stack. */
struct call {
	uint64_t order;
	struct call *older, *newer;
};

struct ips_outfeed_tensor {
	struct ips_outfeed *outfeed;
	struct outfeed_tensor *tensor;
	char *queue, *key;
	size_t count; /* elements of a value */
	size_t row;   /* and of an item of its first axis; of a number: 1 */
};

struct ips_outfeed {
	struct ips_outfeed_params params; /* texts are not kept */
	struct ips_recording *recording;
	struct outfeed_policy policy; /* the recorder borrows it */
	struct outfeed *recorder;
	struct ips_outfeed_tensor **tensors;
	size_t count, capacity;
	_Atomic int64_t broken[OUTFEED_HEALTH_RULES];
	pthread_mutex_t settling, lock;
	uint64_t next; /* order of the next call */
	struct call *oldest, *newest;
	struct err first; /* failure; its status ST_OK: none */
};

#endif /* PUBLIC_INTERNAL_H */
