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

/* What is sent and which layers are looked at: session->outfeed_plan and taps, both in the
 * session's arena. Before its stages are made. */
enum status train_outfeed_plan_session(struct train_session *session, struct err *err);

/* Make session->outfeed and what feeds it, as the run file says; all NULL where nothing is looked
 * at. */
enum status train_outfeed_new(struct train_session *session, struct err *err);

/* Write what is left. */
enum status train_outfeed_close(struct train_session *session, struct err *err);

/* What flows through @layer of the model in a forward pass: @count floats. */
enum status train_outfeed_activation(struct train_session *session,
				     const struct train_outfeed_place *place, int layer,
				     const float *values, size_t count, struct err *err);

/* Of a stage's variables, in reverse order, as the tutorial's optimizer does. @mode: what
 * @gradients are; those of the other mode are not looked at. */
enum status train_outfeed_gradients(struct train_session *session,
				    const struct train_outfeed_place *place,
				    enum run_outfeed_optimizer mode, const float *gradients,
				    struct err *err);

/* An OutfeedCallback at the end of an epoch: train_queues_callback(). */
enum status train_outfeed_callback(struct train_session *session, const char *queue,
				   const char *callback, FILE *out, int64_t epoch, struct err *err);

#endif /* TRAIN_OUTFEED_H */
