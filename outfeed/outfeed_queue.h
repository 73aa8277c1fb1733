/*
 * Outfeed queues: layers and the optimizer send tensors back to the host for inspection.
 *
 * A queue sends tensors of the recorder's registry, all of which are added before training
 * starts. Each value passed to outfeed_record() is an enqueue. A tensor whose key contains none
 * of the filters is refused (MaybeOutfeedQueue's rule: case-sensitive substring; no filters: all
 * pass; an empty list: none pass). Values are reduced to statistics when recorded: a row of
 * `tensor_stats` each, and a running summary per tensor since the last dequeue, which the
 * callback prints.
 *
 * Values themselves are retained only if a reader needs them: outfeed_retain().
 *
 * Threads: one thread adds tensors before any is recorded; one thread at a time records a tensor
 * and replica; print while no thread records. One thread reads values, also while others record.
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

/* @outfeed records what is enqueued; it is borrowed and may be closed before or after the queue. */
enum status outfeed_queue_new(struct outfeed_queue **out, struct outfeed *outfeed,
			      const struct outfeed_queue_params *params, struct err *err);
/* Accepts NULL. Its tensors must not be recorded any more. */
void outfeed_queue_free(struct outfeed_queue *queue);

/* Register a tensor that the queue sends: outfeed_tensor_add(), at any tier. *@out is NULL if the
 * filters refuse it. @tensor describes it; its queue and `asked` are set here. @final: it belongs
 * to an Outfeed layer, a MaybeOutfeed with final_outfeed, or an optimizer, which enqueue. Several
 * plain Outfeed layers on one queue are ST_INVALID (a queue is enqueued in one place). */
enum status outfeed_queue_add(struct outfeed_queue *queue, struct outfeed_tensor **out,
			      const struct outfeed_tensor_params *tensor, bool final,
			      struct err *err);

/* Return whether anything was sent since the queue was created. */
bool outfeed_queue_enqueued(const struct outfeed_queue *queue);

/*
 * Retain values from now on, with room for @enqueues of each tensor (for an OUTFEED_LAST queue,
 * for the last one). Call it after all tensors are added and before any is recorded; nothing is
 * allocated later.
 *
 * @waits: values are read while others record, so a thread that finds no room blocks, as the
 * device does. Room for a single enqueue cannot deadlock if each thread records all its tensors
 * of one enqueue before those of the next; otherwise add as many as a thread may be ahead of
 * itself. Without @waits, more enqueues than there is room for are ST_LIMIT.
 */
enum status outfeed_retain(struct outfeed_queue *queue, int64_t enqueues, bool waits,
			   struct err *err);

/* One enqueued value. */
struct outfeed_value {
	const char *queue, *key, *layer; /* layer NULL: none */
	enum outfeed_kind kind;
	enum dtype dtype;
	const int64_t *shape;
	int ndim;
	struct ips_keys keys;
	const void *values;
	size_t count; /* elements */
};
typedef void (*outfeed_visit)(void *user, const struct outfeed_value *value);

/* Read the next enqueue that is complete in all replicas: call @visit (may be NULL) for its values,
 * replica by replica, tensors in the order they were added. Then its room is free again. Of an
 * OUTFEED_LAST queue read the last one, while no thread records. Return false if there is none. */
bool outfeed_next(struct outfeed_queue *queue, outfeed_visit visit, void *user);

/* No thread reads values any more: unblock threads that wait for room; values without room are
 * lost. Any thread. */
void outfeed_abandon(struct outfeed_queue *queue);

/* Free all room, while no thread records: values that were not read are lost. */
void outfeed_restart(struct outfeed_queue *queue);

/* The enqueues of one tensor, stacked: [enqueues,] [replicas,] and the shape of a value. Only
 * OUTFEED_ALL has the axis of enqueues, only several replicas have the other. */
struct outfeed_array {
	const char *key, *layer;
	enum outfeed_kind kind;
	enum dtype dtype;
	int64_t shape[OUTFEED_NDIM_MAX + 2];
	int ndim;
	const void *values;
};

/*
 * IPUOutfeedQueue.dequeue(): everything since the last dequeue or restart, as one array per
 * tensor, in the order in which tensors were added; *@count 0 if nothing was enqueued. The queue
 * owns the arrays until the next dequeue and the values until the restart. @wait: the caller is
 * the thread that runs the device, so a queue that was never enqueued is ST_INVALID. false:
 * another thread, which gets what has arrived (of OUTFEED_LAST nothing: while others record, no
 * value is known to be the last). The queue must retain values without waiting.
 */
enum status outfeed_dequeue(struct outfeed_queue *queue, bool wait,
			    const struct outfeed_array **out, int *count, struct err *err);

/*
 * The OutfeedCallback at the end of an epoch: print the keys, stacked shapes and the table of
 * summary statistics as the tutorial does (docs/design.md), append rows to `tensor_epochs`, and
 * start a new summary. Keys are printed in order of registration. @epoch from 1. @out may be NULL
 * (rows only).
 */
enum status outfeed_callback(struct outfeed_queue *queue, const char *callback, enum ips_mode mode,
			     int64_t epoch, FILE *out, struct err *err);

#endif /* OUTFEED_QUEUE_H */
