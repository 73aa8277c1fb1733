/*
 * A recorder of tensors with a recording in a folder of its own, for the tests of outfeed/.
 *
 * Threading: recorder_record() from any thread, one per tensor and replica; the rest is the test's
 * main thread's.
 */
#ifndef SUPPORT_RECORDER_H
#define SUPPORT_RECORDER_H

#include "outfeed/outfeed.h"
#include "support/prof_testing.h"

#define RECORDER_LINES 65536

struct recorder {
	struct prof_place place;
	struct ips_recording *recording; /* NULL: none */
	struct outfeed_policy policy;
	struct outfeed *outfeed;
	char lines[RECORDER_LINES]; /* what was said, each with "\n" */
	int hits;
	struct ips_keys keys; /* of what is recorded next */
	uint64_t order;
};

struct recorder_params {
	const char *capture; /* JSON of outfeed.capture; NULL: the default */
	unsigned watched;
	int replicas; /* 0: 1 */
	int64_t budget;
	struct pool *pool;
	const struct outfeed_health_rules *rules;
	bool unrecorded;
};

/* @params may be NULL. */
void recorder_open(struct recorder *recorder, const struct recorder_params *params);
/* Closes outfeed and recording; then @recorder->place.path is complete. */
void recorder_stop(struct recorder *recorder);
void recorder_close(struct recorder *recorder); /* and takes the folder away */

/* "{...}" as outfeed.capture; must be good. */
void recorder_policy(struct outfeed_policy *out, const char *json);

/* A watched tensor, of float32, stage 0 and layer "layer". */
struct outfeed_tensor *recorder_tensor(struct recorder *recorder, const char *key,
				       enum outfeed_kind kind, const int64_t *shape, int ndim);
/* The same with all parameters. */
struct outfeed_tensor *recorder_add(struct recorder *recorder,
				    const struct outfeed_tensor_params *params);

/* At step @step of replica 0, with the next order; must end well. */
void recorder_record(struct recorder *recorder, struct outfeed_tensor *tensor, int64_t step,
		     const void *values, size_t count);

/* All rules off but @id, with @threshold and @patience. */
void recorder_rule(struct outfeed_health_rules *out, enum outfeed_health_id id, double threshold,
		   int64_t patience);

#endif /* SUPPORT_RECORDER_H */
