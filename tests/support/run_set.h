/*
 * The sample run file laid out: what a rule says of it.
 */
#ifndef RUN_SET_H
#define RUN_SET_H

#include "support/run_sample.h"
#include "model/run/run_rules.h"

struct run_set {
	struct run_file *run;
	struct model *model;
	struct run_layout *layout;
	struct err err;
	enum status status;
};

/* With the words of @line, and so many images for training and testing. run_set_clear() ends it. */
void run_set_lay_out(struct run_set *set, const char *line, int64_t train, int64_t test);
void run_set_clear(struct run_set *set);

/* A rule refuses it with ST_INVALID and a text that has @part. */
void run_set_refuses_with(const char *line, int64_t train, int64_t test, const char *part);
void run_set_refuses(const char *line, const char *part); /* with 60,000 and 10,000 images */

/* It is laid out; where an allocation fails, whichever it is, nothing is left behind. */
void run_set_undoes(const char *line);

/* It is laid out, and a warning or note has @part. */
void run_set_warns(const char *line, const char *part);
void run_set_notes(const char *line, const char *part);

#endif /* RUN_SET_H */
