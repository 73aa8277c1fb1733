/*
 * Outfeed queues: what layers and the optimizer send back to the host for inspection.
 *
 * A queue sends tensors of the recorder's registry, all known before training starts, and each
 * value that outfeed_record() gets of them is an enqueue. A tensor whose key contains none of the
 * filters is refused (MaybeOutfeedQueue's rule: case-sensitive substring; no filters: all pass; an
 * empty list: none). Values are reduced to statistics when recorded: a row of `tensor_stats` each,
 * and a running summary per tensor since the last dequeue, which is what the callback prints.
 *
 * Values themselves are retained only where somebody reads them: outfeed_retain().
 *
 * Threads: tensors are added by one thread before any is recorded; one tensor and replica is
 * recorded by one thread at a time; print while no one records. One thread reads values, also while
 * others record.
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
	const char *name; /* the `queue` of the tables */
	enum outfeed_mode mode;
	const char *const *filters; /* NULL: no filter */
	int filter_count;
	int replicas;
	bool wrapped; /* MaybeOutfeedQueue: nothing is sent unless some layer is final */
};

struct outfeed_queue;

/* @outfeed records what is enqueued; borrowed, to be closed before or after. */
enum status outfeed_queue_new(struct outfeed_queue **out, struct outfeed *outfeed,
			      const struct outfeed_queue_params *params, struct err *err);
/* Accepts NULL. None of its tensors is recorded any more. */
void outfeed_queue_free(struct outfeed_queue *queue);

/* Register a tensor that the queue sends: outfeed_tensor_add(), at any tier. *@out is NULL when the
 * filters refuse it. @tensor: what it is; its queue and `asked` are set here. @final: an Outfeed
 * layer, a MaybeOutfeed with final_outfeed, or an optimizer: the place that enqueues. Several plain
 * Outfeed layers on one queue: ST_INVALID (a queue is enqueued in one place). */
enum status outfeed_queue_add(struct outfeed_queue *queue, struct outfeed_tensor **out,
			      const struct outfeed_tensor_params *tensor, bool final,
			      struct err *err);

/* Has anything been sent since the queue was made? */
bool outfeed_queue_enqueued(const struct outfeed_queue *queue);

/*
 * Retain values from now on, with room for @enqueues of each tensor (of an OUTFEED_LAST queue: for
 * one, the last). After all tensors are added, before any is recorded; nothing is allocated later.
 *
 * @waits: they are read while others record, so a thread that finds no room waits for it, as the
 * device does. Room for a single enqueue never locks up where all that one thread records of an
 * enqueue comes before what it records of the next; else room must be for as many more as a thread
 * may be ahead of itself. Without @waits more enqueues than there is room for are ST_LIMIT.
 */
enum status outfeed_retain(struct outfeed_queue *queue, int64_t enqueues, bool waits,
			   struct err *err);

/* One value as it was enqueued. */
struct outfeed_value {
	const char *queue, *key, *layer; /* layer NULL: none */
	enum outfeed_kind kind;
	enum outfeed_dtype dtype;
	const int64_t *shape;
	int ndim;
	struct ips_keys keys;
	const void *values;
	size_t count; /* elements */
};
typedef void (*outfeed_visit)(void *user, const struct outfeed_value *value);

/* Read the next enqueue that has arrived whole, from all replicas: @visit sees its values, replica
 * by replica, tensors as they were added (NULL: nobody does). Then its room is free again. Of an
 * OUTFEED_LAST queue the last one, while no one records. false: there is none. */
bool outfeed_next(struct outfeed_queue *queue, outfeed_visit visit, void *user);

/* Nobody reads values any more: threads that wait for room go on, and values without room are lost.
 * Any thread. */
void outfeed_abandon(struct outfeed_queue *queue);

/* Begin anew with all room, while no one records: values that nobody has read are gone. */
void outfeed_restart(struct outfeed_queue *queue);

/* What came of one tensor, stacked: [enqueues,] [replicas,] and the shape of a value; enqueues of
 * OUTFEED_ALL alone, replicas where there are several. */
struct outfeed_array {
	const char *key, *layer;
	enum outfeed_kind kind;
	enum outfeed_dtype dtype;
	int64_t shape[OUTFEED_NDIM_MAX + 2];
	int ndim;
	const void *values;
};

/*
 * IPUOutfeedQueue.dequeue(): everything since the last dequeue or restart, as one array per
 * tensor in the order in which they were added; *@count 0 where nothing came. Arrays are the
 * queue's, until the next dequeue; values until the restart. @wait: the caller's is the thread that
 * runs the device, so a queue that was never enqueued is ST_INVALID; false: another thread, which
 * gets what has arrived (of OUTFEED_LAST nothing: while others record no value is known to be the
 * last). Of a queue that retains values without waiting.
 */
enum status outfeed_dequeue(struct outfeed_queue *queue, bool wait,
			    const struct outfeed_array **out, int *count, struct err *err);

/*
 * The OutfeedCallback at the end of an epoch: print the keys, stacked shapes and the table of
 * summary statistics as the tutorial does (docs/design.md), append rows to `tensor_epochs`, and
 * start a new summary. Keys print in order of registration. @epoch from 1. @out may be NULL (rows
 * only).
 */
enum status outfeed_callback(struct outfeed_queue *queue, const char *callback, enum ips_mode mode,
			     int64_t epoch, FILE *out, struct err *err);

#endif /* OUTFEED_QUEUE_H */
