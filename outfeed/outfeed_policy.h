/*
 * Which tensors are kept, and how much of each: the run file's outfeed.capture.
 *
 * It is the name of a tier ("stats", "last 20"), for all that outfeed queues send; or a list of
 * rules, of which the first that fits a tensor decides, whether a queue sends it or not:
 *
 *	[{"tensors": "Dense_1*", "kind": "gradient", "tier": "full", "every": 10},
 *	 {"tensors": ["conv?", "dense"], "tier": "last 20"},
 *	 {"kind": ["weight", "optimizer_state"], "tier": "stats", "every": 100}]
 *
 * `tensors`: shell patterns of keys (fnmatch; default "*"); `kind`: default any; `every`: of steps,
 * of weight updates where a tensor belongs to one (default 1); `tier` must be given. What a queue
 * sends and no rule fits is kept as "stats"; other tensors are not kept, but for the health of the
 * kinds that are watched.
 *
 * Ownership: texts are copied. Constant once read: any thread.
 */
#ifndef OUTFEED_POLICY_H
#define OUTFEED_POLICY_H

#include <stdint.h>

#include "common/json.h"
#include "outfeed/outfeed_tier.h"

struct outfeed_rule {
	char **tensors; /* patterns; tensor_count 0: all */
	int tensor_count;
	unsigned kinds; /* bit 1 << enum outfeed_kind; 0: all */
	enum outfeed_tier tier;
	int64_t every; /* >= 1 */
	int64_t last;  /* of OUTFEED_LAST_N: how many, >= 1 */
	bool queued_only;
};

struct outfeed_policy {
	struct outfeed_rule *rules;
	int count;
	/* Kinds (bit 1 << enum outfeed_kind) looked at with tier `health` where no rule fits. */
	unsigned watched;
};

/* @at NULL: "stats". On failure @out is empty; errors name the place and the nearest word. */
enum status outfeed_policy_read(struct outfeed_policy *out, const struct json_at *at,
				struct err *err);
void outfeed_policy_fini(struct outfeed_policy *policy); /* accepts a zeroed struct */
/* Would it be read? The same errors. */
enum status outfeed_policy_check(const struct json_at *at, struct err *err);

/*
 * What becomes of the tensor @key: tier, every and last of the rule that fits it, or the default.
 */
struct outfeed_choice {
	enum outfeed_tier tier;
	int64_t every, last;
};
struct outfeed_choice outfeed_policy_choose(const struct outfeed_policy *policy, const char *key,
					    enum outfeed_kind kind, bool queued);

/* Why that is so, in words: "outfeed.capture[2]". */
#define OUTFEED_POLICY_TEXT 64
void outfeed_policy_explain(char out[OUTFEED_POLICY_TEXT], const struct outfeed_policy *policy,
			    const char *key, enum outfeed_kind kind, bool queued);

#endif /* OUTFEED_POLICY_H */
