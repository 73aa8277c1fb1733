/*
 * Batches in the order of steps, for the workers of every replica, made ahead by a thread of its
 * own or on the spot.
 *
 * With a depth the thread fills a ring of so many steps, each with a batch for every replica,
 * waiting where the ring is full. Two threads may take from a replica: one its inputs, one its
 * targets; when both have, the place is free. Each takes its steps in order, each once. Bytes are
 * the same for any depth. All memory is allocated at creation.
 *
 * Items of a set with a decoder are decoded so, in the order in which they are trained on: the
 * feed's thread shares those of a batch out to threads of its own. Such a feed has a depth of at
 * least 1.
 */
#ifndef DATASET_FEED_H
#define DATASET_FEED_H

#include "trainer/data/dataset.h"

struct dataset_feed;

struct dataset_feed_params {
	const struct dataset *set; /* borrowed */
	int64_t batch;
	int replicas;
	int first_taken, taken; /* of them, that are taken from; 0: all */
	int64_t shuffle;        /* as dataset_order's, like seed and partial */
	uint64_t seed;
	bool partial;
	int64_t pad;        /* the same; what is short is given out as a whole batch, filled up with
			       zeros of weight 0 */
	bool no_targets;    /* nobody will take them */
	int64_t first_step; /* the number of the first step that is taken */
	int64_t skip;       /* so many from there on nobody takes: a run before this one has */
	int64_t steps;      /* that are taken in all, skipped ones too; 0: without end */
	int64_t pass_steps; /* after so many a pass over the set begins anew; 0: when it is used up
			     */
	int depth;          /* steps made ahead; 0: no thread, whoever takes gathers */
	int64_t positions;  /* rows that a loss has of an item (loss.h); 0: 1 */
	const float *class_weights; /* [class_count], borrowed; NULL: none */
	int64_t class_count;
	unsigned threads; /* that decode; 0: as many as there are processors */
	/* Told by the feed's thread as the decoding of a batch of @items begins, and as it ends; may
	 * be NULL. */
	void (*decoding)(void *user, int replica, int64_t step, int64_t items, bool ends);
	void *user;
};

enum status dataset_feed_new(struct dataset_feed **out, const struct dataset_feed_params *params,
			     struct err *err);

/* Ends the thread wherever it is; nobody may be taking. Accepts NULL. */
void dataset_feed_free(struct dataset_feed *feed);

/* Step s of replica r has batch (s - first_step) x replicas + r of its pass: so many items. */
int64_t dataset_feed_items(const struct dataset_feed *feed, int replica, int64_t step);

/* How many are given out: with @pad always the batch. */
int64_t dataset_feed_given(const struct dataset_feed *feed, int replica, int64_t step);

/* Is the batch decoded ahead, and is it not there yet? Who takes it now waits. */
bool dataset_feed_lags(struct dataset_feed *feed, int replica, int64_t step);

/* What could not be decoded; such items are zeros. */
enum status dataset_feed_failure(struct dataset_feed *feed, struct err *err);

/* The inputs of that batch into @inputs [given, shape]; returns how many are given. */
int64_t dataset_feed_inputs(struct dataset_feed *feed, int replica, int64_t step, float *inputs);

/* Its targets, as rows: their weights are sample_weight times the weight of the class, where the
 * set or the params have such. They stay until the replica's next are taken. */
int64_t dataset_feed_targets(struct dataset_feed *feed, int replica, int64_t step,
			     struct targets *out);

#endif /* DATASET_FEED_H */
