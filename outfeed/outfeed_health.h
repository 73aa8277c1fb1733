/*
 * Health rules: the thresholds, and the state machine that detects violations.
 *
 * It reads rows, never tensors, so a recorded run can be checked again with other thresholds, with
 * the same hits as if it had run with them. A rule is hit once, when it has been violated for
 * `patience` rows in a row, and again only after it was satisfied in between.
 *
 * Threads: one thread at a time feeds each tensor's state. One thread feeds losses, epochs and
 * classes and drains, also concurrently with those. Hits are reported one at a time.
 */
#ifndef OUTFEED_HEALTH_H
#define OUTFEED_HEALTH_H

#include <ipuscope/profiler.h>

#include "common/json.h"
#include "outfeed/outfeed_policy.h"

/* The names are those of the run file, the tables and --health.stop. */
#define OUTFEED_HEALTH_MAP(X)                                                                      \
	X(nonfinite)                                                                               \
	X(exploding)                                                                               \
	X(vanishing)                                                                               \
	X(dead_relu)                                                                               \
	X(saturated_activation)                                                                    \
	X(poor_initialization)                                                                     \
	X(unchanged_tensor)                                                                        \
	X(all_zero)                                                                                \
	X(update_ratio)                                                                            \
	X(loss_not_decreasing)                                                                     \
	X(overfit)                                                                                 \
	X(class_imbalance)

enum outfeed_health_id {
#define OUTFEED_HEALTH_ENUM(name) OUTFEED_HEALTH_##name,
	OUTFEED_HEALTH_MAP(OUTFEED_HEALTH_ENUM)
#undef OUTFEED_HEALTH_ENUM
	OUTFEED_HEALTH_RULES
};

#define OUTFEED_HEALTH_PARAMETERS 3 /* most parameters of a rule, besides its threshold */

/* Indices of a rule's parameters in outfeed_health_rule.parameter. */
enum {
	OUTFEED_DEAD_CASES = 0,
	OUTFEED_POOR_RANGE = 0,
	OUTFEED_POOR_STEPS = 1,
	OUTFEED_UNCHANGED_ATOL = 0,
	OUTFEED_UPDATE_SMALL = 0,
	OUTFEED_LOSS_STEPS = 0,
	OUTFEED_LOSS_FLOOR = 1,
	OUTFEED_CLASS_MISPREDICTION = 0,
	OUTFEED_CLASS_SAMPLES = 1
};

/*
 * The settings of a rule. docs/health.md explains each parameter and the source of its default.
 */
struct outfeed_health_rule {
	bool enabled;
	double threshold;
	int64_t patience;                            /* rows (steps, epochs) in a row, >= 1 */
	double parameter[OUTFEED_HEALTH_PARAMETERS]; /* in the order of outfeed_health_describe() */
};

struct outfeed_health_rules {
	struct outfeed_health_rule rule[OUTFEED_HEALTH_RULES];
};

/* Description of a rule: constant. */
struct outfeed_health_about {
	const char *name, *why; /* `why`: what it detects, and the source of the default */
	const char *parameter[OUTFEED_HEALTH_PARAMETERS]; /* names; NULL: end */
	struct outfeed_health_rule fallback;
};
const struct outfeed_health_about *outfeed_health_describe(enum outfeed_health_id id);
bool outfeed_health_find(enum outfeed_health_id *out, const char *name);

void outfeed_health_defaults(struct outfeed_health_rules *out);
/*
 * Change the rules that @at names: {"vanishing": {"threshold": 1e-9, "patience": 5, "enabled":
 * true}, "overfit": false}. A rule may also be just true or false. Errors name the position and the
 * nearest name.
 */
enum status outfeed_health_read(struct outfeed_health_rules *rules, const struct json_at *at,
				struct err *err);
/* Return the errors that outfeed_health_read() would, starting from the defaults. */
enum status outfeed_health_check(const struct json_at *at, struct err *err);
/*
 * Write the parameters of a rule as JSON, {"steps": 10, "floor": 1e-07}, as the recording stores
 * them and outfeed_health_read() accepts them beside threshold, patience and enabled. "{}" if it
 * has none.
 */
#define OUTFEED_HEALTH_TEXT 160
void outfeed_health_parameters(char out[OUTFEED_HEALTH_TEXT],
			       const struct outfeed_health_rules *rules, enum outfeed_health_id id);

/* A violated rule. Texts are valid until the call returns. */
struct outfeed_hit {
	enum outfeed_health_id rule;
	int64_t tensor_id;       /* IPS_NULL: not of a tensor */
	const char *key, *layer; /* without a tensor, key is "loss", "val_loss" or "classes" */
	struct ips_keys keys;
	int64_t time_ns;
	double value, threshold;
};

struct outfeed_health;
struct outfeed_health_tensor; /* of one replica */

struct outfeed_health_params {
	const struct outfeed_health_rules *rules; /* copied */
	void (*hit)(void *user,
		    const struct outfeed_hit *hit); /* must not call back; may be NULL */
	void *user;
};
enum status outfeed_health_new(struct outfeed_health **out,
			       const struct outfeed_health_params *params, struct err *err);
void outfeed_health_free(struct outfeed_health *health); /* accepts NULL */

/* Create the state of a tensor of one replica; owned by @health. Its texts are copied. @matrix: it
 * has two axes or more, so it is no bias. @neurons: length of its last axis, 0: unknown; then
 * dead_relu does not require a minimum number of cases. */
struct outfeed_health_about_tensor {
	int64_t tensor_id, replica;
	const char *key, *layer;
	enum outfeed_kind kind;
	enum outfeed_activity activity;
	bool matrix;
	int64_t neurons;
};
enum status outfeed_health_tensor(struct outfeed_health *health, struct outfeed_health_tensor **out,
				  const struct outfeed_health_about_tensor *about, struct err *err);

/* The measurements of one value of a tensor. Values that its tier does not measure are IPS_NULL
 * or NaN, and rules that need them are skipped. `abs_max`: of all values, so non-finite if any is
 * (tier `health` measures only this and n); it is unknown if it is NaN and n_nan and n_inf are
 * known. */
struct outfeed_health_row {
	struct ips_keys keys;
	int64_t time_ns;
	int64_t n, n_nan, n_inf, n_zero, n_changed;
	double abs_max, min, max, mean, std, l1, l2, inactive, update_ratio;
};
/* Return true if some rule finds the row in violation, or the row is the first that satisfies it
 * again. These rows alone (without the others between) give the same hits with the same rules, so a
 * tier that does not record every row must record them. */
bool outfeed_health_row(struct outfeed_health_tensor *tensor, const struct outfeed_health_row *row);

/* Check the loss of a step (mean over replicas), in order of steps. */
void outfeed_health_loss(struct outfeed_health *health, const struct ips_keys *keys,
			 int64_t time_ns, double loss);
/* Check an epoch's losses; @val_loss NaN: no validation. */
void outfeed_health_epoch(struct outfeed_health *health, const struct ips_keys *keys,
			  int64_t time_ns, double loss, double val_loss, bool validated);
/* Check the targets so far: number of samples, the most frequent class over the rarest (NaN: too
 * few samples), and the greatest fraction of a class that was mispredicted (NaN: unknown, then
 * the imbalance alone decides). */
void outfeed_health_classes(struct outfeed_health *health, const struct ips_keys *keys,
			    int64_t time_ns, int64_t samples, double imbalance,
			    double misprediction);
/* Check rules across tensors (poor_initialization); call it from time to time, and at the end. The
 * times of the calls do not change the hits. */
void outfeed_health_evaluate(struct outfeed_health *health);

/*
 * The rules' state, so that a stopped training can continue with it: @visit writes or reads @bytes
 * at @data, or returns false if there is no such entry (of that size); then the rules start anew.
 * Invalid values are ignored. Not while rows or losses are checked.
 */
typedef bool (*outfeed_state_visit)(void *user, const char *name, void *data, size_t bytes);
/* State of losses, epochs and classes. */
void outfeed_health_state(struct outfeed_health *health, outfeed_state_visit visit, void *user);
/* State of a tensor, stored as @name. */
void outfeed_health_tensor_state(struct outfeed_health_tensor *tensor, const char *name,
				 outfeed_state_visit visit, void *user);
/* Return whether these are valid counts: not negative and far from overflow. */
bool outfeed_health_are_counts(const int64_t *counts, size_t count);

#endif /* OUTFEED_HEALTH_H */
