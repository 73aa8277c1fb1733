/*
 * Run files for tests: a small valid one, and loading it with changes.
 */
#ifndef RUN_SAMPLE_H
#define RUN_SAMPLE_H

#include "model/model.h"
#include "model/run/run_file.h"

/* Two layers, two stages, accumulation 4, 40 steps an epoch, evaluation. */
extern const char run_sample[];

/* Parse run_sample with the words of @line (split at blanks) as its command line. */
enum status run_sample_load(struct run_file **out, const char *line, struct err *err);

/* Load; fails the test where that fails. */
struct run_file *run_sample_get(const char *line);

/* Load and expect failure with @part in the text. */
void run_sample_refuses(const char *line, const char *part);

/* Parse another run file; fails the test where that fails. */
struct run_file *run_sample_of(const char *text);

/* The model of @run for 28x28 images, or for @input (NULL: the model says it); fails the test where
 * there is none. */
struct model *run_sample_model(const struct run_file *run);
struct model *run_sample_model_of(const struct run_file *run, const struct model_shape *input);

#endif /* RUN_SAMPLE_H */
