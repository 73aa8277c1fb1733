/*
 * The values that outfeed queues send, on their way to the callbacks of a program; and asynchronous
 * callbacks: a thread that looks at what the workers have done while an execution runs, and calls
 * each step's batch_end as soon as its results are there.
 *
 * Values are taken by one thread at a time: the main one, or while an execution runs that of
 * asynchronous callbacks, which waits 1 ms where there is nothing new, longer where there is
 * nothing for long, as Keras for IPU's does. Steps come in order, each once for every replica.
 */
#ifndef TRAIN_VALUES_H
#define TRAIN_VALUES_H

#include "trainer/callbacks/callback.h"
#include "trainer/train_phase.h"
#include "trainer/train_session.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* Who takes values in a run with @callbacks; @kept: the program dequeues them itself. */
enum train_values train_values_of(const struct run_file *run, const struct callbacks *callbacks,
				  bool kept);

/* The polling thread calls batch_end and outfeed in this run. */
bool train_values_running(const struct run_file *run);

/* All of an execution that nobody has taken while it ran; the workers rest. */
void train_values_finish(struct train_session *session, const struct callbacks *callbacks);

/* An epoch begins: what is still kept of the last one goes. */
void train_values_begin_epoch(struct train_session *session);

/* ---- asynchronous callbacks ------------------------------------------------------------------ */

struct train_async;

/* From now on every execution of @phase has such a thread. All is borrowed. */
enum status train_async_new(struct train_async **out, struct train_phase *phase,
			    const struct callbacks *callbacks, const struct callback_host *host,
			    struct err *err);
void train_async_free(struct train_async *async); /* accepts NULL */

/* After an execution: calls what is left, and returns the first failure of a callback. */
enum status train_async_join(struct train_async *async, struct err *err);

#endif /* TRAIN_VALUES_H */
