/*
 * Text generation with a model that has learnt the next token of a text.
 *
 * The model runs on the host with replica 0's weights, on a window of the last tokens at a time;
 * nothing is simulated or recorded. Without a temperature the likeliest token is chosen, the first
 * one among equals. With a temperature tokens are drawn with the probabilities p^(1 / temperature),
 * from a stream of fit.seed: same weights and seed, same bytes.
 */
#ifndef TRAIN_GENERATE_H
#define TRAIN_GENERATE_H

#include <stdio.h>

#include "trainer/train_session.h"

/* Check that @model can continue generate.prompt with the tokens of @set; the error says why
 * not. */
enum status train_generate_check(const struct run_file *run, const struct model *model,
				 const struct dataset *set, struct err *err);

/* Write the prompt, generate.length more tokens and a newline. The workers must be idle. */
enum status train_generate(FILE *out, const struct train_session *session, struct err *err);

#endif /* TRAIN_GENERATE_H */
