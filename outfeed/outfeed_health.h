/*
 * Health rules: the thresholds, and the state machine that finds which are broken.
 *
 * It sees rows, never tensors, so that a recorded run can be checked again with other thresholds
 * and gives the same hits as when it ran with them. A rule that is broken is hit once, when it has
 * been so for `patience` rows in a row, and again only after it has been mended in between.
 *
 * Threads: each tensor's state is fed by one thread at a time; losses, epochs, classes and settling
 * by one thread, which may run beside those. Hits of several threads are handed on one at a time.
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

#define OUTFEED_HEALTH_PARAMETERS 3 /* the most that a rule has beside its threshold */

/* Where a rule's parameters are in outfeed_health_rule.parameter. */
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
 * A rule as it is used. What each parameter is, and where its default comes from: docs/health.md.
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

/* What a rule is, for people: constant. */
struct outfeed_health_about {
	const char *name, *why; /* `why`: what it finds, and the source of the default */
	const char *parameter[OUTFEED_HEALTH_PARAMETERS]; /* names; NULL: no more */
	struct outfeed_health_rule fallback;
};
const struct outfeed_health_about *outfeed_health_describe(enum outfeed_health_id id);
bool outfeed_health_find(enum outfeed_health_id *out, const char *name);

void outfeed_health_defaults(struct outfeed_health_rules *out);
/*
 * Change what @at names: {"vanishing": {"threshold": 1e-9, "patience": 5, "enabled": true},
 * "overfit": false}. A rule may be true or false alone. Errors name the place and the nearest word.
 */
enum status outfeed_health_read(struct outfeed_health_rules *rules, const struct json_at *at,
				struct err *err);
/* Would it be read, of the defaults? The same errors. */
enum status outfeed_health_check(const struct json_at *at, struct err *err);
/*
 * The parameters of a rule as JSON, {"steps": 10, "floor": 1e-07}, as the recording keeps them and
 * outfeed_health_read() takes them beside threshold, patience and enabled. "{}" where it has none.
 */
#define OUTFEED_HEALTH_TEXT 160
void outfeed_health_parameters(char out[OUTFEED_HEALTH_TEXT],
			       const struct outfeed_health_rules *rules, enum outfeed_health_id id);

/* A rule broken. Texts are valid until the call returns. */
struct outfeed_hit {
	enum outfeed_health_id rule;
	int64_t tensor_id;       /* IPS_NULL: of no tensor */
	const char *key, *layer; /* key "loss", "val_loss", "classes" where there is no tensor */
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

/* The state of a tensor of one replica; owned by @health. Its texts are copied. @matrix: it has two
 * axes or more, so it is no bias. @neurons: its last axis, 0: unknown; then dead_relu takes any
 * number of cases for enough. */
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

/* One look at a tensor. What a tier does not know is IPS_NULL or NaN, and no rule that needs it is
 * asked. `abs_max`: of all values, so not finite where any is not (that is all that the tier
 * `health` knows, with n); it is unknown where it is NaN and n_nan and n_inf are known. */
struct outfeed_health_row {
	struct ips_keys keys;
	int64_t time_ns;
	int64_t n, n_nan, n_inf, n_zero, n_changed;
	double abs_max, min, max, mean, std, l1, l2, inactive, update_ratio;
};
/* true: the row is one of those that a rule finds broken, or the first one that mends it. With
 * these alone (and not the sound ones between) the same rules give the same hits again, so a tier
 * that does not record every row must record them. */
bool outfeed_health_row(struct outfeed_health_tensor *tensor, const struct outfeed_health_row *row);

/* The loss of a step (mean over replicas), in order of steps. */
void outfeed_health_loss(struct outfeed_health *health, const struct ips_keys *keys,
			 int64_t time_ns, double loss);
/* An epoch's; @val_loss NaN: there was no validation. */
void outfeed_health_epoch(struct outfeed_health *health, const struct ips_keys *keys,
			  int64_t time_ns, double loss, double val_loss, bool validated);
/* Of the targets so far: samples, the commonest class over the rarest (NaN: too few to say), and
 * the greatest part of a class that was predicted wrong (NaN: unknown, then the imbalance alone
 * decides). */
void outfeed_health_classes(struct outfeed_health *health, const struct ips_keys *keys,
			    int64_t time_ns, int64_t samples, double imbalance,
			    double misprediction);
/* Rules across tensors (poor_initialization); now and then, and at the end. When it is called
 * changes no hit. */
void outfeed_health_settle(struct outfeed_health *health);

/*
 * What rules know of the past, so that a stopped training goes on with it: @visit writes or reads
 * @bytes at @data, or says that there is nothing (of that size); then the rules begin anew. What
 * cannot be is not believed. Not while rows or losses come.
 */
typedef bool (*outfeed_state_visit)(void *user, const char *name, void *data, size_t bytes);
/* Of losses, epochs and classes. */
void outfeed_health_state(struct outfeed_health *health, outfeed_state_visit visit, void *user);
/* Of a tensor, whose state is called @name. */
void outfeed_health_tensor_state(struct outfeed_health_tensor *tensor, const char *name,
				 outfeed_state_visit visit, void *user);
/* Are these counts, which only grow, from 0 on and far from the greatest? */
bool outfeed_health_are_counts(const int64_t *counts, size_t count);

#endif /* OUTFEED_HEALTH_H */
