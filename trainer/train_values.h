/*
 * The values that outfeed queues send, on their way to the callbacks of a program.
 *
 * Threads: one at a time; the main one, or while an execution runs that of asynchronous callbacks.
 */
#ifndef TRAIN_VALUES_H
#define TRAIN_VALUES_H

#include "trainer/callbacks/callback.h"
#include "trainer/train_session.h"

/* Who takes values in a run with @callbacks; @kept: the program dequeues them itself. */
enum train_values train_values_of(const struct run_file *run, const struct callbacks *callbacks,
				  bool kept);

/* The polling thread calls batch_end and outfeed in this run. */
bool train_values_running(const struct run_file *run);

/* Show @callbacks (NULL: nobody) what has arrived; while workers enqueue (@running) at most one
 * enqueue of each queue, so that none waits for another. false: there was nothing. */
bool train_values_take(struct train_session *session, const struct callbacks *callbacks,
		       bool running);

/* All of an execution that nobody has taken while it ran; the workers rest. */
void train_values_finish(struct train_session *session, const struct callbacks *callbacks);

/* There is no thread to take values while an execution runs: nobody waits for one. */
void train_values_let_go(struct train_session *session);

/* An epoch begins: what is still kept of the last one goes. */
void train_values_begin_epoch(struct train_session *session);

#endif /* TRAIN_VALUES_H */
