/*
 * What the last stage measures of a micro-batch: the loss with its gradient, and the metrics.
 *
 * A model of several outputs gives one row of an item, those of all outputs one after the other
 * (model.h), and the data's targets lie in the same way; losses and metrics want each output's rows
 * together, so parts are copied out, and gradients back. Results are sums in a fixed order. Nothing
 * is allocated.
 */
#ifndef TRAIN_MEASURE_H
#define TRAIN_MEASURE_H

#include "trainer/learn/classes.h"
#include "trainer/learn/measure_run.h"

struct train_measured {
	const struct model *model;
	const struct loss_list *losses;
	const struct metric_list *metrics;
	const float *outputs;
	const float *logits;               /* NULL: the loss takes none */
	struct targets targets;            /* of the items, without masks */
	const float *masks[MODEL_OUTPUTS]; /* NULL: all rows of the output count */
	int64_t items, there;              /* there: without those of padding, which come last */
	float *gradient;                   /* as the outputs; NULL: not wanted */
	float *parts;                 /* train_measure_parts() floats; NULL where there are none */
	struct class_counts *classes; /* NULL: nobody asks */
	double *states;               /* of the metrics, written */
	float *each; /* of one output, the rows' losses, written; NULL: nobody asks */
};

/* Floats that parts of @batch items take; 0: there is one output. */
size_t train_measure_parts(const struct model *model, int64_t batch);

/* Returns the loss, without the weights' penalties. */
double train_measure_run(const struct train_measured *measured);

#endif /* TRAIN_MEASURE_H */
