/*
 * What a training session sends back to look at: the tensors of its registry (train_tensors.h) in
 * the recorder and its queues, and the path that their values take.
 *
 * Threads: made and freed by the main thread while the workers rest. A worker records the tensors
 * of its own stages.
 */
#ifndef TRAIN_OUTFEED_H
#define TRAIN_OUTFEED_H

#include <stdio.h>

#include "outfeed/outfeed_queue.h"
#include "trainer/train_session.h"

/* Where a worker is. */
struct train_outfeed_place {
	struct ips_keys keys;
	int64_t update;     /* of the whole run */
	int64_t microbatch; /* of its pipeline run; the accumulation count in a weight update */
};

/* Make session->outfeed from session->tensors; NULL where nothing is recorded. */
enum status train_outfeed_new(struct train_session *session, struct err *err);

/* Write what is left. */
enum status train_outfeed_close(struct train_session *session, struct err *err);

/* ---- values on their way --------------------------------------------------------------------- */

/* Is anything recorded in the forward pass at @place? */
bool train_outfeed_due(const struct train_session *session,
		       const struct train_outfeed_place *place);

/* Is what attention looks at? */
bool train_outfeed_scores_due(const struct train_session *session,
			      const struct train_outfeed_place *place);

/* What comes into the model. */
enum status train_outfeed_input(struct train_session *session,
				const struct train_outfeed_place *place, const float *values,
				size_t count, struct err *err);

/* Where the losses of the micro-batch's tokens go, from loss_run() to train_outfeed_losses(); NULL:
 * nobody asks. */
float *train_outfeed_tokens(const struct train_session *session,
			    const struct train_outfeed_place *place);
/* @tokens: overwritten. @count: of the rows that are there. */
enum status train_outfeed_losses(struct train_session *session,
				 const struct train_outfeed_place *place,
				 const struct targets *targets, float *tokens, int64_t count,
				 struct err *err);

/* The output of a layer in a forward pass, and what it looked at. */
enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place,
				     const struct stage_tapped *tapped, struct err *err);

/* Of a stage's variables, in reverse order, as the tutorial's optimizer does. @mode: what
 * @gradients are; those of the other mode are not recorded. */
enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err);

/* The variables and slots of a stage after its update. */
enum status train_outfeed_update(struct train_session *session,
				 const struct train_outfeed_place *place, struct err *err);

/* By the main thread: @runs pipeline runs of the execution under way are done in all replicas;
 * @ended: and their updates too. Rows that can be known only then are written, and those that a
 * signal has asked for (train_flush()). A failure is kept in session->looking. */
void train_outfeed_finalize(struct train_session *session, int64_t runs, bool ended);

/* ---- queues ---------------------------------------------------------------------------------- */

/* NULL: there is none of this name. */
struct outfeed_queue *train_outfeed_queue(const struct train_session *session, const char *name);

/* Read an enqueue of each queue that has one, the oldest; @visit NULL: it is let go. @running:
 * while workers enqueue, so queues of the mode LAST wait for the end. false: there was none. */
bool train_outfeed_next(const struct train_session *session, bool running, outfeed_visit visit,
			void *user);
void train_outfeed_abandon(const struct train_session *session); /* outfeed_abandon() of all */
void train_outfeed_restart(const struct train_session *session); /* outfeed_restart() of all */

/* An OutfeedCallback called @callback for @queue, at the end of an epoch: prints, appends rows, and
 * dequeues. A queue that there is none of, or that was never enqueued, says why. @out NULL: rows
 * alone. */
enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err);

/* outfeed_state() of session->replica[@index]. */
void train_outfeed_state(const struct train_session *session, int index, outfeed_state_visit visit,
			 void *user);

/* The rules of this session's tensors and losses; NULL: none are asked. */
struct outfeed_health *train_outfeed_health(const struct train_session *session);

#endif /* TRAIN_OUTFEED_H */
