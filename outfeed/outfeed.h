/*
 * What a run looks at: tensors, each at its tier, within a budget of bytes; what they say goes to
 * the recording and to the health rules, and the first value that is not finite is found.
 *
 * A program adds its tensors, records each as often as it likes, and settles now and then. For one
 * recorded value this does: the pass that its tier asks for, a row (rows), the rules, the first bad
 * number.
 *
 * Threads: tensors are added by one thread before any is recorded; one tensor and replica is
 * recorded by one thread at a time; outfeed_settle() and outfeed_flush() by any one thread beside
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
#define OUTFEED_LINES    20 /* of hits of one rule */
#define OUTFEED_TRAIL    21 /* tensors that led to the first bad number, as the trail keeps them */

struct outfeed_params {
	struct ips_recording *recording; /* NULL: rules and the rows that callers ask for alone */
	/* Of the instants; NULL: a track of its own, "health". Nobody else may use it before the
	 * recorder is closed. */
	struct ips_track *track;
	const struct outfeed_policy *policy; /* borrowed */
	/* Copied, and recorded as used; NULL: none is asked. */
	const struct outfeed_health_rules *rules;
	/* As many, from the least that keys have. A rule that no tensor breaks (of losses, epochs
	 * and classes) is recorded and said where replica 0 is: all find it alike. */
	int replicas, first_replica;
	/* Bytes that tensors may add to the recording, as outfeed_bytes() reckons them; 0 and
	 * INT64_MAX: no end. What is left over when values have used up four fifths goes to
	 * cheaper tiers. Hits and the first bad number are always written. */
	int64_t budget;
	struct pool *pool; /* helps with great tensors; may be NULL */
	/* A line for people (a rule broken, a tier lowered), without "\n"; any thread, one at a
	 * time. Of one rule OUTFEED_LINES, and one that says that there are more. NULL: none. */
	void (*say)(void *user, const char *line);
	void (*hit)(void *user,
		    const struct outfeed_hit *hit); /* after its row is there; may be NULL */
	void *user;
};

enum status outfeed_new(struct outfeed **out, const struct outfeed_params *params, struct err *err);
/* Settles what is left and writes the rings of the last N. Accepts NULL. */
enum status outfeed_close(struct outfeed *outfeed, struct err *err);

struct outfeed_tensor_params {
	const char *queue; /* "watch": of no queue */
	const char *key;
	enum outfeed_kind kind;
	const char *layer;    /* NULL: none */
	int stage;            /* -1: none */
	const int64_t *shape; /* of one recorded value; ndim 0 .. OUTFEED_NDIM_MAX */
	int ndim;
	enum outfeed_dtype dtype;
	enum outfeed_activity activity; /* of activations */
	enum outfeed_asked asked;       /* OUTFEED_SENT: its row is asked for at any tier */
	const char *dims; /* what its dimensions are, "batch, tokens, features"; NULL: unknown */
};

/* *@out is NULL where its tier is `off` and no queue sends it. Owned by @outfeed. */
enum status outfeed_tensor_add(struct outfeed *outfeed, struct outfeed_tensor **out,
			       const struct outfeed_tensor_params *params, struct err *err);
enum outfeed_tier outfeed_tensor_tier(const struct outfeed_tensor *tensor);

/* Is @tensor looked at in this step (update)? NULL: no. Saves the work of getting the values. */
bool outfeed_due(const struct outfeed_tensor *tensor, const struct ips_keys *keys);

/* What is known of a value besides its values. */
struct outfeed_moment {
	struct ips_keys keys;
	int64_t time_ns;
	uint64_t order; /* of execution: what is computed from what has a greater one; see
			   outfeed_settle() */
	/*
	 * The bits of the greatest |x|, where a kernel has found them on its way (outfeed_stats.h).
	 */
	bool abs_max_known;
	uint32_t abs_max;
	/* The tensors that this one was computed from and are still there, for the trail of a bad
	 * number. */
	const struct outfeed_source *sources;
	int source_count;
};
struct outfeed_source {
	const struct outfeed_tensor_params *tensor; /* where never added: registered when needed */
	const float *values;
	size_t count;
};

/* Allocates nothing, but for the first bad number's sources that were never added. Variables at
 * tier `stats` and above know what changed since their last look (with `every`, several updates).
 * Failures: a value with more elements than its shape; the recording's, told once.
 *
 * Record one value of @count elements, float or (OUTFEED_FLOAT16) uint16_t. @row: filled with the
 * whole statistics where not NULL, at any tier, also where the tensor is not due. Accepts a NULL
 * tensor: does nothing (@row NULL too). The values may be gone after the call. */
enum status outfeed_record(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			   const void *values, size_t count, struct outfeed_stats *row,
			   struct err *err);

/*
 * The loss of a step, an epoch's losses, the classes: as outfeed_health.h, where rules are asked.
 */
struct outfeed_health *outfeed_health_of(struct outfeed *outfeed);      /* NULL: none */
struct ips_recording *outfeed_recording(const struct outfeed *outfeed); /* NULL: none */

/* What is known of the tensors of replica @index, from 0, as outfeed_health.h has it: also the
 * variables' last values. */
void outfeed_state(struct outfeed *outfeed, int index, outfeed_state_visit visit, void *user);

/* Everything of an order below @before has been recorded: if the first bad number is among it,
 * write it. */
enum status outfeed_settle(struct outfeed *outfeed, uint64_t before, struct err *err);

/* Each ring of the last N is written before its tensor is recorded next, or by the next
 * outfeed_settle() that finds it untouched. Safe in a signal handler. */
void outfeed_flush(struct outfeed *outfeed);

/* Bytes of the database that one recorded value takes at @choice, as the budget counts them; for
 * forecasts too. */
double outfeed_bytes(const struct outfeed_choice *choice, size_t count, enum outfeed_dtype dtype);
/* Bytes of memory that a tensor takes for as long as it is watched: rings, the values before an
 * update. */
double outfeed_memory(const struct outfeed_choice *choice, enum outfeed_kind kind, size_t count,
		      enum outfeed_dtype dtype, int replicas);

#endif /* OUTFEED_H */
