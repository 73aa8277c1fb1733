/*
 * How much of a tensor is kept, of which kinds tensors are, and the words for both.
 *
 * Constant data: any thread.
 */
#ifndef OUTFEED_TIER_H
#define OUTFEED_TIER_H

#include <stdbool.h>

/*
 * In order of cost; each keeps what those before it keep, but that `full` and `last` have no bins.
 */
enum outfeed_tier {
	OUTFEED_OFF,
	OUTFEED_HEALTH,    /* the greatest |x|, which is not finite where any is; a row only then */
	OUTFEED_COUNTS,    /* a row of exact counts, and the greatest |x| */
	OUTFEED_STATS,     /* the whole row */
	OUTFEED_HISTOGRAM, /* and a histogram of signs and exponents */
	OUTFEED_LAST_N, /* the whole row; values of the last N in memory until they are asked for */
	OUTFEED_FULL,   /* the whole row, and the values */
	OUTFEED_TIERS
};

enum outfeed_kind {
	OUTFEED_ACTIVATION,
	OUTFEED_GRADIENT,
	OUTFEED_WEIGHT,
	OUTFEED_OPTIMIZER_STATE,
	OUTFEED_KINDS
};

enum outfeed_dtype {
	OUTFEED_FLOAT32,
	OUTFEED_FLOAT16, /* IEEE binary16 */
	OUTFEED_DTYPES
};

/* What makes a neuron of an activation active: see outfeed_neurons.h. */
enum outfeed_activity {
	OUTFEED_NO_ACTIVITY,
	OUTFEED_RELU,
	OUTFEED_TANH,
	OUTFEED_SIGMOID,
	OUTFEED_ACTIVITIES
};

const char *outfeed_tier_text(enum outfeed_tier tier);    /* "last" for OUTFEED_LAST_N */
const char *outfeed_kind_text(enum outfeed_kind kind);    /* as the tables have it */
const char *outfeed_dtype_text(enum outfeed_dtype dtype); /* "float32" */
int outfeed_dtype_bytes(enum outfeed_dtype dtype);
const char *outfeed_activity_text(enum outfeed_activity activity); /* NULL: of none */
bool outfeed_activity_of(enum outfeed_activity *out, const char *text);
bool outfeed_kind_of(enum outfeed_kind *out, const char *text); /* false: none is called so */
bool outfeed_tier_of(enum outfeed_tier *out, const char *text); /* without the N of "last 20" */

#endif /* OUTFEED_TIER_H */
