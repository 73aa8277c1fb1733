/*
 * Outfeed queues: what layers and the optimizer send back to the host for inspection.
 *
 * A queue has keys, all known before training starts. A key whose name contains none of the filters
 * is refused at registration (MaybeOutfeedQueue's rule: case-sensitive substring; no filters: all
 * pass; an empty list: none). Values are reduced to statistics when recorded: a row of
 * `tensor_stats` each, and a running summary per key since the last dequeue, which is what the
 * callback prints.
 *
 * Threads: keys are added by one thread before any is recorded; one key and replica is recorded by
 * one thread at a time; dequeue and print while no one records.
 */
#ifndef OUTFEED_QUEUE_H
#define OUTFEED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "outfeed/outfeed.h"

enum outfeed_mode {
	OUTFEED_ALL,
	OUTFEED_LAST
};

struct outfeed_queue_params {
	const char
		*name; /* the `queue` of the tables; NULL: "outfeed_queue", "outfeed_queue_1" .. */
	enum outfeed_mode mode;
	const char *const *filters; /* NULL: no filter */
	int filter_count;
	int replicas;
	int64_t buffer_depth; /* >= 1: enqueues that may wait for the host, see outfeed_keep() */
	bool wrapped;         /* MaybeOutfeedQueue: nothing is sent unless some layer is final */
};

struct outfeed_queue;
struct outfeed_key;

/* @outfeed records what is enqueued; borrowed. */
enum status outfeed_queue_new(struct outfeed_queue **out, struct outfeed *outfeed,
			      const struct outfeed_queue_params *params, struct err *err);
void outfeed_queue_free(struct outfeed_queue *queue); /* accepts NULL; its keys go with it */

/* Register a key. *@out is NULL when the filters refuse it. @tensor: what it is; its queue and
 * `queued` are set here. @final: an Outfeed layer, a MaybeOutfeed with final_outfeed, or an
 * optimizer: the place that enqueues. Several plain Outfeed layers on one queue: ST_INVALID (a
 * queue is enqueued in one place). */
enum status outfeed_queue_add(struct outfeed_queue *queue, struct outfeed_key **out,
			      const struct outfeed_tensor_params *tensor, bool final,
			      struct err *err);

/* Enqueue one value of @count elements. Accepts NULL (refused key): does nothing. */
enum status outfeed_enqueue(struct outfeed_key *key, const struct outfeed_moment *moment,
			    const void *values, size_t count, struct err *err);

/* Has anything been sent since the queue was made? */
bool outfeed_queue_enqueued(const struct outfeed_queue *queue);

/*
 * The OutfeedCallback at the end of an epoch: print the keys, stacked shapes and the table of
 * summary statistics as the tutorial does (docs/design.md), append rows to `tensor_epochs`, and
 * start a new summary. Keys print in order of registration. @epoch from 1. @out may be NULL (rows
 * only).
 */
enum status outfeed_callback(struct outfeed_queue *queue, const char *callback, enum ips_mode mode,
			     int64_t epoch, FILE *out, struct err *err);

#endif /* OUTFEED_QUEUE_H */
