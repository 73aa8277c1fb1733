/*
 * A recording of a training on sequences whose run file can be planned again: tokens with names,
 * losses of each token, scores of attention, rows of an Embedding, each kept twice.
 */
#ifndef SUPPORT_VIEW_FIXTURE_SEQUENCE_H
#define SUPPORT_VIEW_FIXTURE_SEQUENCE_H

#include <stdbool.h>

#define VIEW_SEQUENCE_BATCH  3
#define VIEW_SEQUENCE_TOKENS 40
#define VIEW_SEQUENCE_HEADS  2
#define VIEW_SEQUENCE_ROWS   26 /* of the Embedding, as many as names */

/* Write @path, which must not exist. @other: other values, and tokens without names. false: it
 * could not be written. */
bool view_fixture_sequence_write(const char *path, bool other);

#endif /* SUPPORT_VIEW_FIXTURE_SEQUENCE_H */
