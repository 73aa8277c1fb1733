/*
 * What the files of the recorder share.
 */
#ifndef OUTFEED_INTERNAL_H
#define OUTFEED_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "outfeed/outfeed.h"

struct outfeed_tensor {
	struct outfeed *outfeed;
	char *queue, *key, *layer; /* layer NULL: none */
	enum outfeed_kind kind;
	enum outfeed_dtype dtype;
	enum outfeed_activity activity;
	int stage; /* -1: none */
	int64_t shape[OUTFEED_NDIM_MAX];
	int ndim;
	int64_t tensor_id;
	struct outfeed_choice choice;
};

struct outfeed {
	struct outfeed_params params;
	struct ips_track *track;
	struct outfeed_tensor **tensors;
	size_t count, capacity;
	pthread_mutex_t lock; /* lines for people, and hits */
};

/* The recording's failure, in words. */
enum status outfeed__failed(const struct outfeed *outfeed, int status, struct err *err);

/* "(125, 256, 128)", "(125,)" and "()": Python's way. The numbers before @shape are left out where
 * they are below 0. */
struct str;
void outfeed__shape_text(struct str *out, int64_t count, int64_t replicas, const int64_t *shape,
			 int ndim);

#endif /* OUTFEED_INTERNAL_H */
