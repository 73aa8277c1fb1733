/*
 * Health rules at work in tests: an engine whose hits are kept, and rows to feed it.
 */
#ifndef SUPPORT_HEALTH_H
#define SUPPORT_HEALTH_H

#include "outfeed/outfeed_health.h"
#include "support/support.h"

#define HEALTH_RIG_HITS 65536

struct health_rig_hit {
	enum outfeed_health_id rule;
	int64_t tensor_id, replica, update, step, epoch, time_ns;
	double value, threshold;
	char key[32];
};

struct health_rig {
	struct outfeed_health *health;
	struct health_rig_hit *hits;
	int count;
};

/* @rules: JSON of changes (' stands for a quotation mark), NULL: the defaults. */
void health_rig_open(struct health_rig *rig, const char *rules);
void health_rig_open_rules(struct health_rig *rig, const struct outfeed_health_rules *rules);
void health_rig_close(struct health_rig *rig);

/* A tensor of replica 0: a matrix where it is no activation. */
struct outfeed_health_tensor *health_rig_tensor(struct health_rig *rig, enum outfeed_kind kind,
						enum outfeed_activity activity);

/* Of update @update, nothing else known. */
struct outfeed_health_row health_row_unknown(int64_t update);
/* 100 sound values, different in each update. */
struct outfeed_health_row health_row_sound(int64_t update);

/* Hits of @rule so far. */
int health_rig_count(const struct health_rig *rig, enum outfeed_health_id rule);
/* There is one hit, the last, of @rule at @update; forget it. */
void health_rig_expect(struct health_rig *rig, enum outfeed_health_id rule, int64_t update,
		       double value);
void health_rig_quiet(const struct health_rig *rig); /* there are none */

/* The status of reading @text (' for "); @err may be NULL. */
enum status health_read(struct outfeed_health_rules *rules, const char *text, struct err *err);

#endif /* SUPPORT_HEALTH_H */
