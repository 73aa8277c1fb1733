/*
 * The handles of the public outfeed; tests/outfeed/test_outfeed_public.c begins calls directly.
 *
 * Locks: `draining` is held by the thread that drains, checks losses or registers tensors;
 * `lock`, acquired after it, guards the running calls and the first failure. The program's
 * callbacks run with `draining` and locks of the recorder held.
 */
#ifndef PUBLIC_INTERNAL_H
#define PUBLIC_INTERNAL_H

#include <ipuscope/outfeed.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/err.h"
#include "outfeed/outfeed.h"

/* A running call of ips_outfeed_record(); on its thread's stack. */
struct call {
	uint64_t order;
	struct call *older, *newer;
};

struct ips_outfeed_tensor {
	struct ips_outfeed *outfeed;
	struct outfeed_tensor *tensor;
	char *queue, *key;
	size_t count; /* elements of a value */
	size_t row;   /* elements of an item of its first axis; 1 for a scalar */
};

struct ips_outfeed {
	struct ips_outfeed_params params; /* without its texts */
	struct ips_recording *recording;
	struct outfeed_policy policy; /* borrowed by the recorder */
	struct outfeed *recorder;
	struct ips_outfeed_tensor **tensors;
	size_t count, capacity;
	_Atomic int64_t broken[OUTFEED_HEALTH_RULES];
	pthread_mutex_t draining, lock;
	uint64_t next; /* order of the next call */
	struct call *oldest, *newest;
	struct err first; /* first failure; status ST_OK: none */
};

#endif /* PUBLIC_INTERNAL_H */
