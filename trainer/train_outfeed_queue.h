/*
 * The outfeed queues of a session, as its plan has them (train_outfeed_plan.h).
 *
 * Threads: made, shown and freed by the main thread while the workers rest. A worker enqueues the
 * tensors of its own stages.
 */
#ifndef TRAIN_OUTFEED_QUEUE_H
#define TRAIN_OUTFEED_QUEUE_H

#include "outfeed/outfeed_queue.h"
#include "trainer/train_session.h"

struct train_queues;

/* @outfeed records what is enqueued; borrowed, to be closed before or after. */
enum status train_queues_new(struct train_queues **out, const struct train_session *session,
			     struct outfeed *outfeed, struct err *err);
void train_queues_free(struct train_queues *queues); /* accepts NULL */

/* What comes out of @layer: @count floats; nothing happens where no queue wants it. */
enum status train_queues_activation(struct train_queues *queues, int layer,
				    const struct outfeed_moment *moment, const float *values,
				    size_t count, struct err *err);

/* The gradient of parameter @number. */
enum status train_queues_gradient(struct train_queues *queues, int number,
				  const struct outfeed_moment *moment, const float *values,
				  size_t count, struct err *err);

/* Does a queue want it? */
bool train_queues_takes_gradient(const struct train_queues *queues, int number);

/* An OutfeedCallback called @callback for @queue, at the end of an epoch: prints, appends rows, and
 * dequeues. A queue that there is none of, or that was never enqueued, says why. @out NULL: rows
 * alone. @queues NULL: outfeeds are off. */
enum status train_queues_callback(struct train_queues *queues, const struct train_session *session,
				  const char *queue, const char *callback, FILE *out, int64_t epoch,
				  struct err *err);

/* ---- values ---------------------------------------------------------------------------------- */

/* Bytes that session->values takes; 0 where nobody takes values. Needs the plan alone. */
double train_queues_bytes(const struct train_session *session);

/* Take an enqueue of each queue that has one, the oldest; @visit NULL: it is let go. @running:
 * while workers enqueue, so queues of the mode LAST wait for the end. false: there was none. */
bool train_queues_take(struct train_queues *queues, bool running, outfeed_visit visit, void *user);
void train_queues_let_go(struct train_queues *queues); /* outfeed_let_go() of all */
void train_queues_restart(struct train_queues *queues);
/* NULL: there is none. */
struct outfeed_queue *train_queues_find(const struct train_queues *queues, const char *name);

#endif /* TRAIN_OUTFEED_QUEUE_H */
