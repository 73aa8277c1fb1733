/*
 * The recorder of tensors: each tensor is recorded at its tier, within a budget of bytes. The
 * measurements go to the recording and to the health rules, and the first value that is not
 * finite is located.
 *
 * A program adds its tensors, records each as often as it likes, and drains from time to time.
 * For one recorded value the recorder does the passes that its tier needs, appends rows, and
 * checks the rules and the first non-finite number.
 *
 * Threads: one thread adds tensors before any is recorded; one thread at a time records a tensor
 * and replica; any one thread calls outfeed_drain() and outfeed_flush(), also concurrently with
 * those.
 */
#ifndef OUTFEED_H
#define OUTFEED_H

#include <ipuscope/profiler.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pool.h"
#include "outfeed/outfeed_health.h"
#include "outfeed/outfeed_policy.h"
#include "outfeed/outfeed_stats.h"

struct outfeed;
struct outfeed_tensor;

#define OUTFEED_NDIM_MAX 8
#define OUTFEED_LINES    20 /* printed for hits of one rule */
#define OUTFEED_TRAIL    21 /* most tensors in the trail of the first non-finite number */

struct outfeed_params {
	struct ips_recording *recording; /* NULL: only rules, and the rows that callers ask for */
	/* For the instants; NULL: a track of the recorder's own, "health". No other thread may use
	 * it before the recorder is closed. */
	struct ips_track *track;
	const struct outfeed_policy *policy; /* borrowed */
	/* Copied, and recorded as used; NULL: no rules. */
	const struct outfeed_health_rules *rules;
	/* Their number, and the least key of one. A hit without a tensor (of losses, epochs and
	 * classes) is recorded and printed only if replica 0 is among them: all find the same. */
	int replicas, first_replica;
	/* Bytes that tensors may add to the recording, as outfeed_bytes() estimates them; 0 and
	 * INT64_MAX: no limit. When values have used up four fifths, the rest goes to cheaper
	 * tiers. Hits and the first non-finite number are always written. */
	int64_t budget;
	struct pool *pool; /* for large tensors; may be NULL */
	/* Print a line for people (a violated rule, a lowered tier), without "\n"; any thread, one
	 * at a time. Of one rule OUTFEED_LINES, and one that there are more. NULL: none. */
	void (*say)(void *user, const char *line);
	/* called after the hit's row is appended; may be NULL */
	void (*hit)(void *user, const struct outfeed_hit *hit);
	void *user;
};

enum status outfeed_new(struct outfeed **out, const struct outfeed_params *params, struct err *err);
/* Settle everything and write the rings of the last N. Accepts NULL. */
enum status outfeed_close(struct outfeed *outfeed, struct err *err);

struct outfeed_tensor_params {
	const char *queue; /* "watch": without a queue */
	const char *key;
	enum outfeed_kind kind;
	const char *layer;    /* NULL: none */
	int stage;            /* -1: none */
	const int64_t *shape; /* of one recorded value; ndim 0 .. OUTFEED_NDIM_MAX */
	int ndim;
	enum dtype dtype;
	enum outfeed_activity activity; /* of activations */
	enum outfeed_asked asked;       /* OUTFEED_SENT: it is registered at any tier */
	const char *dims; /* names of its dimensions, "batch, tokens, features"; NULL: unknown */
};

/* *@out is NULL if its tier is `off` and no queue sends it. @outfeed owns it. */
enum status outfeed_tensor_add(struct outfeed *outfeed, struct outfeed_tensor **out,
			       const struct outfeed_tensor_params *params, struct err *err);
enum outfeed_tier outfeed_tensor_tier(const struct outfeed_tensor *tensor);

/* Return whether @tensor is recorded in this step (update), so that callers can skip fetching its
 * values. false for NULL. */
bool outfeed_due(const struct outfeed_tensor *tensor, const struct ips_keys *keys);

/* Properties of a value besides its elements. */
struct outfeed_moment {
	struct ips_keys keys;
	int64_t time_ns;
	uint64_t order; /* of execution: a result has a greater one than its inputs; see
			   outfeed_drain() */
	/*
	 * The bits of the greatest |x|, if a kernel has computed them already (outfeed_stats.h).
	 */
	bool abs_max_known;
	uint32_t abs_max;
	/* The tensors that this one was computed from and that still exist, for the trail of a
	 * non-finite number. */
	const struct outfeed_source *sources;
	int source_count;
};
struct outfeed_source {
	const struct outfeed_tensor_params *tensor; /* if never added: registered when needed */
	const float *values;
	size_t count;
};

/* Record one value of @count elements, float or (DTYPE_FLOAT16) uint16_t. @row, if not NULL, gets
 * the whole statistics, at any tier, also if the tensor is not due. For a NULL tensor, do nothing
 * (and leave @row). The values need not exist after the call.
 *
 * Allocates nothing, except for sources of the first non-finite number that were never added.
 * Variables at tier `stats` and above measure the change since their last value (with `every`, of
 * several updates). Failures: a value with more elements than its shape; the recording's, reported
 * once. */
enum status outfeed_record(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			   const void *values, size_t count, struct outfeed_stats *row,
			   struct err *err);

/*
 * For the loss of a step, an epoch's losses, the classes: see outfeed_health.h.
 */
struct outfeed_health *outfeed_health_of(struct outfeed *outfeed);      /* NULL: none */
struct ips_recording *outfeed_recording(const struct outfeed *outfeed); /* NULL: none */

/* Visit the state of the tensors of replica @index, from 0, as in outfeed_health.h, and the
 * variables' last values. */
void outfeed_state(struct outfeed *outfeed, int index, outfeed_state_visit visit, void *user);

/* Everything of an order below @before has been recorded: if this includes the first non-finite
 * number, write it. */
enum status outfeed_drain(struct outfeed *outfeed, uint64_t before, struct err *err);

/* Request that each ring of the last N is written before its tensor is recorded next, or by the
 * next outfeed_drain() before that. Safe in a signal handler. */
void outfeed_flush(struct outfeed *outfeed);

/* Return the database bytes of one recorded value at @choice, as the budget charges them; also used
 * for forecasts. */
double outfeed_bytes(const struct outfeed_choice *choice, size_t count, enum dtype dtype);
/* Return the memory in bytes that a tensor occupies while it is recorded: rings, the values before
 * an update. */
double outfeed_memory(const struct outfeed_choice *choice, enum outfeed_kind kind, size_t count,
		      enum dtype dtype, int replicas);

#endif /* OUTFEED_H */
