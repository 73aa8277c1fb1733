/*
 * Passes the values that outfeed queues send to a program's callbacks; and asynchronous callbacks:
 * a thread that polls the workers' progress while an execution runs, and calls batch_end for each
 * step as soon as its results are available.
 *
 * Only one thread dequeues values at a time: the main thread, or while an execution runs the thread
 * of asynchronous callbacks. That thread sleeps 1 ms if there is nothing new, and longer if that
 * persists, as Keras for IPU does. Steps are delivered in order, each once for every replica.
 */
#ifndef TRAIN_VALUES_H
#define TRAIN_VALUES_H

#include "trainer/callbacks/callback.h"
#include "trainer/train_phase.h"
#include "trainer/train_session.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* Which thread dequeues values in a run with @callbacks; @kept: the program dequeues them
 * itself. */
enum train_values train_values_of(const struct run_file *run, const struct callbacks *callbacks,
				  bool kept);

/* Does the polling thread call batch_end and outfeed in this run? */
bool train_values_running(const struct run_file *run);

/* Deliver the values of an execution that were not dequeued while it ran. The workers are idle. */
void train_values_finish(struct train_session *session, const struct callbacks *callbacks);

/* Call at the begin of an epoch: discards values retained from the last one. */
void train_values_begin_epoch(struct train_session *session);

/* ---- asynchronous callbacks ------------------------------------------------------------------ */

struct train_async;

/* Start such a thread for every execution of @phase from now on. All arguments are borrowed. */
enum status train_async_new(struct train_async **out, struct train_phase *phase,
			    const struct callbacks *callbacks, const struct callback_host *host,
			    struct err *err);
void train_async_free(struct train_async *async); /* accepts NULL */

/* After an execution: make the remaining calls, and return the first failure of a callback. */
enum status train_async_join(struct train_async *async, struct err *err);

#endif /* TRAIN_VALUES_H */
