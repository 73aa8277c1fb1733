/*
 * Batches in the order of steps for the workers of every replica, prepared ahead by a thread or on
 * demand.
 *
 * With a depth, the feed's thread fills a ring of that many steps, each with a batch for every
 * replica, and waits while the ring is full. Two threads may consume a replica's batches: one its
 * inputs, one its targets; the slot is free when both have. Each consumes its steps in order, each
 * once. The bytes are the same for any depth. All memory is allocated at creation.
 *
 * Items of a set with a decoder are decoded ahead in the order of training: the feed's thread
 * distributes a batch's items over a pool. Such a feed has a depth of at least 1.
 */
#ifndef DATASET_FEED_H
#define DATASET_FEED_H

#include "trainer/data/dataset.h"

struct dataset_feed;

struct dataset_feed_params {
	const struct dataset *set; /* borrowed */
	int64_t batch;
	int replicas;
	int first_taken, taken; /* range of replicas whose batches are consumed; taken 0: all */
	int64_t shuffle;        /* as in struct dataset_order_params, like seed and partial */
	uint64_t seed;
	bool partial;
	int64_t pad;        /* likewise; short batches are filled up with zeros of weight 0 */
	bool no_targets;    /* targets are never consumed */
	int64_t first_step; /* the number of the feed's first step */
	int64_t skip;       /* steps from there on that an earlier run has consumed */
	int64_t steps;      /* steps in all, skipped ones included; 0: unlimited */
	int64_t pass_steps; /* steps of a pass, after which the next begins; 0: until it is used
			       up */
	int depth;          /* steps prepared ahead; 0: no thread, the consumer gathers */
	int64_t positions;  /* rows of an item in the loss (loss.h); 0: 1 */
	const struct class_weights *class_weights; /* borrowed; NULL: none */
	/* With several outputs, deliver a weight for each, even if the set has one for all. */
	bool weigh_parts;
	unsigned threads; /* that decode; 0: one per processor */
	/* Called by the feed's thread when the decoding of a batch of @items begins and when it
	 * ends; may be NULL. */
	void (*decoding)(void *user, int replica, int64_t step, int64_t items, bool ends);
	void *user;
};

enum status dataset_feed_new(struct dataset_feed **out, const struct dataset_feed_params *params,
			     struct err *err);

/* Stop the thread and free the feed; no call on it may be in progress. Accepts NULL. */
void dataset_feed_free(struct dataset_feed *feed);

/* Return the number of items of step s of replica r: batch (s - first_step) x replicas + r of
 * its pass. */
int64_t dataset_feed_items(const struct dataset_feed *feed, int replica, int64_t step);

/* Return the number of rows that a batch is delivered with: with @pad always the batch size. */
int64_t dataset_feed_given(const struct dataset_feed *feed, int replica, int64_t step);

/* Return true if the batch is decoded ahead but not ready yet: consuming it now would wait. */
bool dataset_feed_lags(struct dataset_feed *feed, int replica, int64_t step);

/* Return the error of the first item that could not be decoded; such items are zeros. */
enum status dataset_feed_failure(struct dataset_feed *feed, struct err *err);

/* Copy the batch's inputs to @inputs [given, shape]; return the number given. */
int64_t dataset_feed_inputs(struct dataset_feed *feed, int replica, int64_t step, float *inputs);

/* Get the batch's targets as rows. Their weights are sample_weight times the weight of the
 * class, if the set or the params have such. Valid until the replica's next targets are
 * consumed. */
int64_t dataset_feed_targets(struct dataset_feed *feed, int replica, int64_t step,
			     struct targets *out);

#endif /* DATASET_FEED_H */
