/*
 * Models lowered as a run lowers them, for tests: from the words of a command line over an example,
 * or from a model's JSON.
 */
#ifndef SUPPORT_LOWERING_H
#define SUPPORT_LOWERING_H

#include "model/lower/lower.h"

struct lowered {
	struct run_file *run;
	struct model *model;
	struct run_layout *layout;
	struct optimizer optimizer;
	struct loss_list losses;
	struct metric_list metrics;
	struct arena arena;
	struct lower_request from;
	struct ipu_graph graph;
};

/* "keras-mnist.json --use-ipu": a file of examples/ and its flags; fails the test on an error. */
void lowered_open_example(struct lowered *out, const char *line);
/* A run file's text (' stands for a quotation mark), for images of @shape. */
void lowered_open_text(struct lowered *out, const char *text, const struct model_shape *shape);
void lowered_close(struct lowered *lowered);

#endif /* SUPPORT_LOWERING_H */
