/*
 * The registry of tensors that a training records, planned before anything is made: which there
 * are, which queue sends each or that a rule watches it, at which tier, and what that will take.
 *
 * A tensor is sent by a queue, or watched: since a rule of outfeed.capture asks for it, or the
 * health of its kind is watched. What a queue sends is not watched again. Layers that pass their
 * input on (Flatten, Reshape, outfeeds) have no output of their own. Only training is recorded.
 *
 * Pure functions of a session's run, model and layout: one thread. All memory is the session's
 * arena's, but that of the policy.
 */
#ifndef TRAIN_TENSORS_H
#define TRAIN_TENSORS_H

#include "trainer/train_session.h"

/* Plan session->outfeed_plan, session->tensors and session->taps. @recorded: there is (or would be)
 * a recording. */
enum status train_tensors_plan(struct train_session *session, bool recorded, struct err *err);
void train_tensors_fini(struct train_tensors *tensors); /* accepts a zeroed struct */

/* Is anything watched, are rules checked? Without a recording nobody sees what comes of it, unless
 * a rule was asked for. */
bool train_tensors_watched(const struct run_file *run, bool recorded);

/* The layer (or MODEL_INPUT) that has computed what comes out of @layer. */
int train_tensors_origin(const struct model *model, int layer);

/* The key of what the first Embedding looks up, as it would be recorded; NULL: there is none. */
const char *train_tensors_tokens(const struct train_session *session);

/* Enqueues of queue @number of the plan that there is room for where values are retained. */
int64_t train_tensors_room(const struct train_session *session, int number);
/* Bytes of all retained values (session->values); 0 where nobody reads any. */
double train_tensors_retained(const struct train_session *session);

/* ---- forecast: the same for ipu-train's line and for ipu-plan -------------------------------- */

struct train_tensors_forecast {
	int tensors;
	double bytes;  /* of the report, as if there were no budget */
	double memory; /* bytes, while it runs */
};

void train_tensors_forecast(struct train_tensors_forecast *out,
			    const struct train_session *session);

/* outfeed.budget, or half of what the report's disk has free where that is less (*@disk, which may
 * be NULL). */
int64_t train_tensors_budget(const struct train_session *session, bool *disk);

/* One line for people, without "\n"; "" where nothing is recorded. */
#define TRAIN_TENSORS_TEXT 256
void train_tensors_text(char out[TRAIN_TENSORS_TEXT], const struct train_session *session);

/* The first rule of outfeed.capture from @rule on that fits no tensor of the run; -1: none. */
int train_tensors_unused_rule(const struct train_session *session, int rule);

#endif /* TRAIN_TENSORS_H */
