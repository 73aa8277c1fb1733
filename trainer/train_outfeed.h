/*
 * What a training session sends back to look at: outfeed queues, watched tensors, and the recorder
 * behind both.
 *
 * Threads: made and freed by the main thread while the workers rest. A worker records the tensors
 * of its own stages.
 */
#ifndef TRAIN_OUTFEED_H
#define TRAIN_OUTFEED_H

#include <stdio.h>

#include "trainer/train_session.h"

/* Where a worker is. */
struct train_outfeed_place {
	struct ips_keys keys;
	int64_t update;     /* of the whole run */
	int64_t microbatch; /* of its pipeline run; the accumulation count in a weight update */
};

/* What is looked at, before anything is made: session->taps and the plans. @recorded: there is (or
 * would be) a recording. */
enum status train_outfeed_plan_session(struct train_session *session, bool recorded,
				       struct err *err);

/* Make session->outfeed and what feeds it, as planned; NULL where nothing is looked at. */
enum status train_outfeed_new(struct train_session *session, struct err *err);

/* Write what is left. */
enum status train_outfeed_close(struct train_session *session, struct err *err);

/* Is anything looked at in the forward pass at @place? */
bool train_outfeed_looks(const struct train_session *session,
			 const struct train_outfeed_place *place);

/* The output of a layer in a forward pass. */
enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place,
				     const struct stage_tapped *tapped, struct err *err);

/* Of a stage's variables, in reverse order, as the tutorial's optimizer does. @mode: what
 * @gradients are; those of the other mode are not looked at. */
enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err);

/* The variables and slots of a stage after its update. */
enum status train_outfeed_update(struct train_session *session,
				 const struct train_outfeed_place *place, struct err *err);

/* By the main thread: @runs pipeline runs of the execution under way are done in all replicas;
 * @ended: and their updates too. What can only be told afterwards is written, and what a signal has
 * asked for (train_flush()). A failure is kept in session->looking. */
void train_outfeed_settle(struct train_session *session, int64_t runs, bool ended);

/* The moment of a value that a worker looks at; of no slot: 0. */
struct outfeed_moment train_outfeed_moment(const struct train_session *session,
					   const struct train_outfeed_place *place,
					   enum outfeed_kind kind, int number, int slot);

/* NULL: outfeeds are off. */
struct train_queues *train_outfeed_queues(const struct train_session *session);

/* An OutfeedCallback at the end of an epoch: train_queues_callback(). */
enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err);

/* The rules of this session's tensors and losses; NULL: none are asked. */
struct outfeed_health *train_outfeed_health(const struct train_session *session);

#endif /* TRAIN_OUTFEED_H */
