/*
 * The registry of tensors that a training records, planned before any of them is created: the
 * tensors, for each the queue that sends it or the rule that watches it, its tier, and its cost.
 *
 * A tensor is sent by a queue or watched. It is watched if a rule of outfeed.capture matches it, or
 * if the health of its kind is watched. A tensor that a queue sends is not watched again. Layers
 * that pass their input on (Flatten, Reshape, outfeeds) have no output tensor. Only training is
 * recorded.
 *
 * Pure functions of a session's run, model and layout: one thread. The session's arena owns all
 * memory except that of the policy.
 */
#ifndef TRAIN_TENSORS_H
#define TRAIN_TENSORS_H

#include "trainer/train_session.h"

/* Plan session->outfeed_plan, session->tensors and session->taps. @recorded: the run has (or would
 * have) a recording. */
enum status train_tensors_plan(struct train_session *session, bool recorded, struct err *err);
void train_tensors_fini(struct train_tensors *tensors); /* accepts a zeroed struct */

/* Are tensors watched and rules checked? Without a recording the results would be visible only if
 * the run file enables rules. */
bool train_tensors_watched(const struct run_file *run, bool recorded);

/* Return the layer (or MODEL_INPUT) that computed the output of @layer. */
int train_tensors_origin(const struct model *model, int layer);

/* Return the key under which the input of the first Embedding would be recorded, or NULL. */
const char *train_tensors_tokens(const struct train_session *session);

/* Return how many enqueues of queue @number of the plan are buffered if values are retained. */
int64_t train_tensors_room(const struct train_session *session, int number);
/* Return the bytes of all retained values (session->values); 0 if none are read. */
double train_tensors_retained(const struct train_session *session);

/* ---- forecast: the same for ipu-train's line and for ipu-plan -------------------------------- */

struct train_tensors_forecast {
	int tensors;
	double bytes;  /* of the report, ignoring the budget */
	double memory; /* bytes, during the run */
};

void train_tensors_forecast(struct train_tensors_forecast *out,
			    const struct train_session *session);

/* Return outfeed.budget, or half of the free space on the report's disk if that is less (*@disk,
 * may be NULL). */
int64_t train_tensors_budget(const struct train_session *session, bool *disk);

/* Format one line to print, without "\n"; "" if nothing is recorded. */
#define TRAIN_TENSORS_TEXT 256
void train_tensors_text(char out[TRAIN_TENSORS_TEXT], const struct train_session *session);

/* Return the first rule of outfeed.capture from @rule on that matches no tensor of the run; -1:
 * none. */
int train_tensors_unused_rule(const struct train_session *session, int rule);

#endif /* TRAIN_TENSORS_H */
