/*
 * The tensors that a training session records: those of its registry (train_tensors.h) in the
 * recorder and its queues, and the path of their values: to the report, to the health rules, and to
 * a program's callbacks.
 *
 * Threads: the main thread creates and frees it while the workers are idle. A worker records the
 * tensors of its stages.
 */
#ifndef TRAIN_OUTFEED_H
#define TRAIN_OUTFEED_H

#include <stdint.h>
#include <stdio.h>

#include "outfeed/outfeed_policy.h"
#include "outfeed/outfeed_queue.h"
#include "trainer/callbacks/callback.h"
#include "trainer/train_session.h"

struct train_phase;

/* The position of a worker in the execution. */
struct train_outfeed_place {
	struct train_worker *worker;
	struct ips_keys keys;
	int64_t update;     /* of the whole run */
	int64_t microbatch; /* of its pipeline run; the accumulation count in a weight update */
};

/* Create session->outfeed from session->tensors; NULL if nothing is recorded. */
enum status train_outfeed_new(struct train_session *session, struct err *err);

/* Write the remaining rows and free session->outfeed. */
enum status train_outfeed_close(struct train_session *session, struct err *err);

/* ---- recording values ------------------------------------------------------------------------ */

/* A failure of these is the worker's (train_record_failed()). */

/* Is any part of an activation recorded in the forward pass at @place, from @first on: the output,
 * then the attention scores? */
bool train_outfeed_due(const struct train_outfeed_place *place, enum train_part first);

/* Record the model's input. */
void train_outfeed_input(const struct train_outfeed_place *place, const float *values,
			 size_t count);

/* Return the buffer for the losses of the micro-batch's tokens, written by loss_run() and passed to
 * train_outfeed_losses(); NULL: not recorded. */
float *train_outfeed_tokens(const struct train_outfeed_place *place);
/* Record losses and targets. @tokens is overwritten. @count: rows without padding. */
void train_outfeed_losses(const struct train_outfeed_place *place, const struct targets *targets,
			  float *tokens, int64_t count);

/* Record the output of a layer in a forward pass, and its attention scores. */
void train_outfeed_activation(const struct train_outfeed_place *place,
			      const struct stage_tapped *tapped);

/* Record the gradients of a stage's variables, in reverse order, as the tutorial's optimizer does.
 * @mode: the kind of @gradients; those of the other mode are not recorded. */
void train_outfeed_gradients(const struct train_outfeed_place *place,
			     enum run_outfeed_optimizer mode, const float *gradients);

/* Record the variables and slots of a stage after its update. */
void train_outfeed_update(const struct train_outfeed_place *place);

/* Called by the main thread: @runs pipeline runs of the current execution are complete on all
 * replicas; @ended: their updates, too. Write the rows that can be determined only then, and those
 * that a signal has requested (train_flush()). A failure is stored in session->looking. */
void train_outfeed_finalize(struct train_session *session, int64_t runs, bool ended);

/* ---- queues ---------------------------------------------------------------------------------- */

/* Return the queue @name, or NULL. */
struct outfeed_queue *train_outfeed_queue(const struct train_session *session, const char *name);

/* Visit the oldest enqueue of each queue that has one; @visit NULL: discard it. @running: workers
 * are enqueuing, so queues of the mode LAST wait for the end. Return false if there was none. */
bool train_outfeed_next(const struct train_session *session, bool running, outfeed_visit visit,
			void *user);
void train_outfeed_abandon(const struct train_session *session); /* outfeed_abandon() of all */
void train_outfeed_restart(const struct train_session *session); /* outfeed_restart() of all */

/* Run an OutfeedCallback called @callback for @queue at the end of an epoch: print, append rows,
 * and dequeue. For an unknown queue, or one that was never enqueued, print why. @out NULL:
 * append rows only. */
enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err);

/* outfeed_state() of session->replica[@index]. */
void train_outfeed_state(const struct train_session *session, int index, outfeed_state_visit visit,
			 void *user);

/* Return the rules of this session's tensors and losses; NULL: no rules. */
struct outfeed_health *train_outfeed_health(const struct train_session *session);

/* ---- the order of execution ------------------------------------------------------------------ */

/*
 * The order of execution as numbers. A value has a greater number than those it is computed from,
 * whatever the schedule, so that the first bad value of a run is the one with the least number.
 *
 * Values are ordered by weight update; within it by micro-batch, with the update itself last;
 * within a micro-batch forward before backward; within an update gradients in the order of the
 * backward pass, then slots, then variables. Layers and parameters are ordered by their numbers,
 * which grow along the stages (model_order()). The numbers are independent of the number of stages.
 *
 * Pure functions: any thread.
 */

/* The ranges of a value's indices. */
struct train_order {
	int layers, params, slots; /* slots: per parameter */
	int64_t accumulation;
};

/* A value's indices. */
struct train_order_place {
	int64_t update, microbatch; /* microbatch: of its pipeline run; unused in an update */
	char phase;                 /* enum ips_phase: F, B, U */
	enum outfeed_kind kind;
	int number; /* the layer of an activation; of all other kinds the parameter */
	int slot;   /* of optimizer state */
};

uint64_t train_order_of(const struct train_order *order, const struct train_order_place *place);

/* Return a bound: at most the numbers of @update's micro-batch @microbatch and all after it,
 * greater than all before it. The accumulation count stands for the update itself. */
uint64_t train_order_begin(const struct train_order *order, int64_t update, int64_t microbatch);

/* ---- health rules ---------------------------------------------------------------------------- */

/*
 * Passes a training's losses and classes to the health rules, which see its tensors by themselves,
 * and implements what a broken rule does to the training.
 *
 * Threads: hits come from any worker, one at a time; the main thread calls all other functions.
 */

/* Callbacks of outfeed_params: the line of a broken rule, and the hit itself. @user: the
 * session. */
void train_health_print(void *user, const char *line);
void train_health_hit(void *user, const struct outfeed_hit *hit);

/* Return the line at a run's end: how often each rule was broken, and where to find more (@report
 * NULL: nowhere). Free with mem_free(). NULL: no rule was broken, or out of memory. */
char *train_health_text(const int64_t broken[OUTFEED_HEALTH_RULES], const char *report);

/* Read the run file's rules, and which of them end the run. Call before train_outfeed_new(). */
enum status train_health_read(struct train_session *session, struct err *err);

/* Allocate the counts of targets that the rules need. Call after train_outfeed_new(). */
enum status train_health_new(struct train_session *session, struct err *err);

/* Evaluate the rules for the loss of the current execution at @step: the mean over replicas, and
 * over steps with common results, of which @step is the last. The execution trains, and there are
 * rules: see train_outfeed_health(). */
void train_health_loss(struct train_session *session, int64_t step, double loss);

/* Evaluate the rules at the end of an epoch, with its counts of classes; @val_loss NULL: it was not
 * validated. Returns train_health_check(). */
enum status train_health_epoch(struct train_session *session, int64_t epoch, double loss,
			       const double *val_loss, struct err *err);

/* Write or read the rules' state for session->replica[@index] and its targets, with the first one
 * also that for losses. If the backup has none, or that of other rules, the state starts empty. */
void train_health_snapshot(struct train_session *session, int index, struct snapshot *snapshot);

/* Return ST_FAILED, with the rule and where it was broken, if a rule of health.stop was broken
 * on any rank: all ranks end. */
enum status train_health_check(struct train_session *session, struct err *err);

/* ---- values for a program -------------------------------------------------------------------- */

/*
 * Passes the values that outfeed queues send to a program's callbacks; and asynchronous callbacks:
 * a thread that polls the workers' progress while an execution runs, and calls batch_end for each
 * step as soon as its results are available.
 *
 * Only one thread dequeues values at a time: the main thread, or while an execution runs the thread
 * of asynchronous callbacks. That thread sleeps 1 ms if there is nothing new, and longer if that
 * persists, as Keras for IPU does. Steps are delivered in order, each once for every replica.
 */

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

/* After an execution: make the remaining calls. The first failure of a callback goes to @err,
 * unless it holds one already. */
void train_async_join(struct train_async *async, struct err *err);

#endif /* TRAIN_OUTFEED_H */
