/*
 * What the files of the health rules share: verdicts, and the states they are gathered in.
 */
#ifndef OUTFEED_HEALTH_INTERNAL_H
#define OUTFEED_HEALTH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "outfeed/outfeed_health.h"

/* Where a rule's parameters are in outfeed_health_rule.parameter. */
enum {
	HEALTH_DEAD_CASES = 0,
	HEALTH_POOR_RANGE = 0,
	HEALTH_POOR_STEPS = 1,
	HEALTH_UNCHANGED_ATOL = 0,
	HEALTH_UPDATE_SMALL = 0,
	HEALTH_LOSS_STEPS = 0,
	HEALTH_LOSS_FLOOR = 1,
	HEALTH_CLASS_MISPREDICTION = 0,
	HEALTH_CLASS_SAMPLES = 1
};

enum health_verdict {
	HEALTH_UNKNOWN, /* not asked: neither breaks nor mends */
	HEALTH_SOUND,
	HEALTH_BROKEN
};

struct health_finding {
	enum health_verdict verdict;
	double value, threshold; /* of a broken one */
};

/* The ways to break a rule by a row of a tensor; some rules have two. */
enum health_judge_id {
	HEALTH_JUDGE_NONFINITE,
	HEALTH_JUDGE_EXPLODING,
	HEALTH_JUDGE_VANISHING,
	HEALTH_JUDGE_DEAD,
	HEALTH_JUDGE_SATURATED,
	HEALTH_JUDGE_CONSTANT_KERNEL,
	HEALTH_JUDGE_SILENT_KERNEL,
	HEALTH_JUDGE_UNCHANGED_VARIABLE,
	HEALTH_JUDGE_UNCHANGED_ROW,
	HEALTH_JUDGE_ALL_ZERO,
	HEALTH_JUDGE_UPDATE_RATIO,
	HEALTH_JUDGES
};

struct outfeed_health_tensor {
	struct outfeed_health *health;
	struct outfeed_health_tensor *next;
	struct outfeed_health_about_tensor about; /* its texts are owned */
	int64_t rows;                             /* seen so far */
	int64_t broken[HEALTH_JUDGES];            /* rows in a row */
	struct outfeed_health_row before;         /* where rows > 0 */

	/* Of the first row, of a kernel or its gradient; under the health's `start` lock. NaN: not
	 * known yet. */
	double start_variance, start_range;
};

struct health_judge {
	enum outfeed_health_id rule;
	unsigned kinds; /* bit 1 << enum outfeed_kind */
	bool matrices;  /* no biases */
	bool at_once;   /* whatever the rule's patience */
	struct health_finding (*ask)(const struct outfeed_health_rule *rule,
				     const struct outfeed_health_tensor *tensor,
				     const struct outfeed_health_row *row);
};
extern const struct health_judge outfeed__health_judges[HEALTH_JUDGES];

/* How many updates came before @row's, as far as its keys tell. */
int64_t outfeed__health_age(const struct outfeed_health_tensor *tensor,
			    const struct outfeed_health_row *row);

/* The losses of the first steps, for poor_initialization: of those before its last `patience`
 * steps, and of these. */
struct health_start {
	int64_t count;
	double sum[2], least[2];
	bool judged;
	struct ips_keys keys; /* of the last one */
	int64_t time_ns;
};

struct outfeed_health {
	struct outfeed_health_rules rules;
	void (*hit)(void *user, const struct outfeed_hit *hit);
	void *user;
	pthread_mutex_t hits;  /* hits are handed on one at a time */
	pthread_mutex_t start; /* what tensors keep of their first updates */
	struct outfeed_health_tensor *tensors, **end;
	/* A row of a later update has been seen, so that all first ones are there. */
	atomic_bool started;

	/* Of the thread of losses. */
	double *losses;                 /* the last ones, a ring of parameter "steps" */
	int64_t loss_count, loss_steps; /* in the ring's present run of finite ones; its size */
	bool any_loss;
	int64_t broken_loss, broken_val_loss; /* not finite: in a row */
	int64_t stuck_steps, stuck_epochs, overfit_epochs, imbalanced;
	double best_epoch; /* NaN: none yet */
	struct health_start first;
};

/* Count @verdict in @broken; true when it has just been broken @patience times in a row. */
bool outfeed__health_onset(int64_t *broken, enum health_verdict verdict, int64_t patience);
void outfeed__health_hand_on(struct outfeed_health *health, const struct outfeed_hit *hit);

#endif /* OUTFEED_HEALTH_INTERNAL_H */
