/*
 * From a fuzzer's bytes a run that can be trained: a small model of the layers in the table of
 * layers, a run file around it and the data that it is trained on.
 *
 * Bytes are drawn one at a time; beyond the end numbers that follow from all of them are drawn, so
 * every input makes a run. The model grows by one layer at a time, with options from the layer's
 * own table; what model_new() refuses is taken back. A refusal that is not one line aborts.
 */
#ifndef FUZZ_GRAMMAR_H
#define FUZZ_GRAMMAR_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/rng.h"
#include "model/model.h"

struct draw {
	const uint8_t *bytes;
	size_t size, at;
	struct rng beyond;
};

void draw_init(struct draw *draw, const uint8_t *bytes, size_t size); /* @bytes are borrowed */

unsigned draw_below(struct draw *draw, unsigned bound); /* from 0; bound at most 256 */
bool draw_one_in(struct draw *draw, unsigned bound);
const char *draw_word(struct draw *draw, const char *words); /* one of "a b c", until the next */

/* @what failed: its reason is one line, or the process aborts. */
void grammar_check_refusal(const char *what, const struct err *err);

struct grammar {
	cJSON *run;          /* the run file, with the model */
	struct model *model; /* as it was read; its layers are in order */
	int replicas, microbatches;
	bool ended; /* a part could not be made: there is nothing to train */
};

/* Write FOLDER/run.json and the arrays of its data; grammar_free() in any case. */
void grammar_make(struct grammar *grammar, struct draw *draw, const char *folder);
void grammar_free(struct grammar *grammar);

#endif /* FUZZ_GRAMMAR_H */
