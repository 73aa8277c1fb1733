/*
 * Text from a model that has learnt what follows each token of a text.
 *
 * The model computes on the host with replica 0's weights, a window of the last tokens at a time;
 * nothing of it is simulated or recorded. Without a temperature the likeliest token follows, the
 * first of several; with one tokens are drawn with the probabilities p^(1 / temperature), by a
 * stream of fit.seed: same weights and seed, same bytes.
 */
#ifndef TRAIN_GENERATE_H
#define TRAIN_GENERATE_H

#include <stdio.h>

#include "trainer/train_session.h"

/* Can @model go on with generate.prompt in the numbers of @set? The message says what lacks. */
enum status train_generate_check(const struct run_file *run, const struct model *model,
				 const struct dataset *set, struct err *err);

/* Write the prompt and generate.length tokens behind it, and end the line. The workers rest. */
enum status train_generate(FILE *out, const struct train_session *session, struct err *err);

#endif /* TRAIN_GENERATE_H */
