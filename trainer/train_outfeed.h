/*
 * The tensors that a training session records: those of its registry (train_tensors.h) in the
 * recorder and its queues, and the path of their values.
 *
 * Threads: the main thread creates and frees it while the workers are idle. A worker records the
 * tensors of its stages.
 */
#ifndef TRAIN_OUTFEED_H
#define TRAIN_OUTFEED_H

#include <stdio.h>

#include "outfeed/outfeed_queue.h"
#include "trainer/train_session.h"

/* The position of a worker in the execution. */
struct train_outfeed_place {
	struct ips_keys keys;
	int64_t update;     /* of the whole run */
	int64_t microbatch; /* of its pipeline run; the accumulation count in a weight update */
};

/* Create session->outfeed from session->tensors; NULL if nothing is recorded. */
enum status train_outfeed_new(struct train_session *session, struct err *err);

/* Write the remaining rows and free session->outfeed. */
enum status train_outfeed_close(struct train_session *session, struct err *err);

/* ---- recording values ------------------------------------------------------------------------ */

/* Is anything recorded in the forward pass at @place? */
bool train_outfeed_due(const struct train_session *session,
		       const struct train_outfeed_place *place);

/* Are attention scores recorded in the forward pass at @place? */
bool train_outfeed_scores_due(const struct train_session *session,
			      const struct train_outfeed_place *place);

/* Record the model's input. */
enum status train_outfeed_input(struct train_session *session,
				const struct train_outfeed_place *place, const float *values,
				size_t count, struct err *err);

/* Return the buffer for the losses of the micro-batch's tokens, written by loss_run() and passed to
 * train_outfeed_losses(); NULL: not recorded. */
float *train_outfeed_tokens(const struct train_session *session,
			    const struct train_outfeed_place *place);
/* Record losses and targets. @tokens is overwritten. @count: rows without padding. */
enum status train_outfeed_losses(struct train_session *session,
				 const struct train_outfeed_place *place,
				 const struct targets *targets, float *tokens, int64_t count,
				 struct err *err);

/* Record the output of a layer in a forward pass, and its attention scores. */
enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place,
				     const struct stage_tapped *tapped, struct err *err);

/* Record the gradients of a stage's variables, in reverse order, as the tutorial's optimizer does.
 * @mode: the kind of @gradients; those of the other mode are not recorded. */
enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err);

/* Record the variables and slots of a stage after its update. */
enum status train_outfeed_update(struct train_session *session,
				 const struct train_outfeed_place *place, struct err *err);

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

#endif /* TRAIN_OUTFEED_H */
