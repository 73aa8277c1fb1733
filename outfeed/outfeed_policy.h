/*
 * Policy: which tensors are recorded at which tier. Enumerations of tiers, kinds and types with
 * their names, and the rules of the run file's outfeed.capture.
 *
 * Ownership: texts are copied. Constant after reading: any thread.
 */
#ifndef OUTFEED_POLICY_H
#define OUTFEED_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/dtype.h"
#include "common/json.h"

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * In order of cost. Each records what the cheaper ones record, but `full` and `last` have no bins.
 */
enum outfeed_tier {
	OUTFEED_OFF,
	OUTFEED_HEALTH,    /* the greatest |x|, non-finite if any value is; a row only then */
	OUTFEED_COUNTS,    /* a row of exact counts, and the greatest |x| */
	OUTFEED_STATS,     /* the whole row */
	OUTFEED_HISTOGRAM, /* and a histogram of signs and exponents */
	OUTFEED_LAST_N,    /* the whole row; the last N values in memory, written on request */
	OUTFEED_FULL,      /* the whole row, and the values */
	OUTFEED_TIERS
};

enum outfeed_kind {
	OUTFEED_ACTIVATION,
	OUTFEED_GRADIENT,
	OUTFEED_WEIGHT,
	OUTFEED_OPTIMIZER_STATE,
	OUTFEED_KINDS
};

/* Defines when a neuron of an activation is active: see outfeed_stats.h. */
enum outfeed_activity {
	OUTFEED_NO_ACTIVITY,
	OUTFEED_RELU,
	OUTFEED_TANH,
	OUTFEED_SIGMOID,
	OUTFEED_ACTIVITIES
};

const char *outfeed_tier_text(enum outfeed_tier tier);             /* "last" for OUTFEED_LAST_N */
const char *outfeed_kind_text(enum outfeed_kind kind);             /* as in the tables */
const char *outfeed_activity_text(enum outfeed_activity activity); /* NULL for no activity */
bool outfeed_activity_of(enum outfeed_activity *out, const char *text);
bool outfeed_kind_of(enum outfeed_kind *out, const char *text); /* false: unknown */
bool outfeed_tier_of(enum outfeed_tier *out, const char *text); /* "last" without the N */

/* ---- rules ----------------------------------------------------------------------------------- */

/*
 * outfeed.capture is the name of a tier ("stats", "last 20"), for all tensors that outfeed queues
 * send; or a list of rules. The first rule that matches a tensor applies, whether a queue sends
 * it or not:
 *
 *	[{"tensors": "Dense_1*", "kind": "gradient", "tier": "full", "every": 10},
 *	 {"tensors": ["conv?", "dense"], "tier": "last 20"},
 *	 {"kind": ["weight", "optimizer_state"], "tier": "stats", "every": 100}]
 *
 * `tensors`: shell patterns of keys (fnmatch; default "*"); `kind`: default any; `every`: counts
 * steps, or weight updates if a tensor belongs to one (default 1); `tier` is required. A tensor
 * that a queue sends and no rule matches is recorded as "stats". Other tensors are not recorded,
 * except for the health of the watched kinds.
 */
struct outfeed_rule {
	char **tensors; /* patterns; tensor_count 0: all */
	int tensor_count;
	unsigned kinds; /* bit 1 << enum outfeed_kind; 0: all */
	enum outfeed_tier tier;
	int64_t every; /* >= 1 */
	int64_t last;  /* N of OUTFEED_LAST_N, >= 1 */
	bool queued_only;
};

struct outfeed_policy {
	struct outfeed_rule *rules;
	int count;
	/* Kinds (bit 1 << enum outfeed_kind) recorded at tier `health` if no rule matches. */
	unsigned watched;
};

/* @at NULL: "stats". On failure @out is empty; errors name the position and the nearest name. */
enum status outfeed_policy_read(struct outfeed_policy *out, const struct json_at *at,
				struct err *err);
void outfeed_policy_fini(struct outfeed_policy *policy); /* accepts a zeroed struct */
/* Return the errors that outfeed_policy_read() would. */
enum status outfeed_policy_check(const struct json_at *at, struct err *err);

/* Why a tensor may be recorded. */
enum outfeed_asked {
	OUTFEED_WATCHED, /* only if a rule matches it, or the health of its kind is watched */
	OUTFEED_SENT,    /* a queue sends it */
	OUTFEED_NAMED    /* only if a rule with `tensors` matches: otherwise not computed */
};

/*
 * The choice for the tensor @key: tier, every and last of the matching rule, or the default.
 */
struct outfeed_choice {
	enum outfeed_tier tier;
	int64_t every, last;
};
struct outfeed_choice outfeed_policy_choose(const struct outfeed_policy *policy, const char *key,
					    enum outfeed_kind kind, enum outfeed_asked asked);

/* Write the source of that choice to @out: "outfeed.capture[2]". */
#define OUTFEED_POLICY_TEXT 64
void outfeed_policy_explain(char out[OUTFEED_POLICY_TEXT], const struct outfeed_policy *policy,
			    const char *key, enum outfeed_kind kind, enum outfeed_asked asked);

#endif /* OUTFEED_POLICY_H */
