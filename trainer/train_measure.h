/*
 * The measurements of the last stage on a micro-batch: the loss with its gradient, and the metrics.
 *
 * A model of several outputs produces one row per item that concatenates all outputs (model.h), and
 * the data's targets have the same layout. Losses and metrics need each output's rows contiguously,
 * so parts are copied out, and gradients back. Results are sums in a fixed order. Nothing is
 * allocated.
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
	const float *logits;               /* NULL: the loss does not use them */
	struct targets targets;            /* of the items, without masks */
	const float *masks[MODEL_OUTPUTS]; /* NULL: all rows of the output count */
	int64_t items, there;         /* there: items without the padding, which is at the end */
	float *gradient;              /* shaped like the outputs; NULL: not needed */
	float *parts;                 /* train_measure_parts() floats; NULL if that is 0 */
	struct class_counts *classes; /* NULL: not needed */
	double *states;               /* of the metrics, written */
	float *each;                  /* losses of one output's rows, written; NULL: not needed */
};

/* Return the floats needed to copy out the parts of @batch items; 0: the model has one output. */
size_t train_measure_parts(const struct model *model, int64_t batch);

/* Return the loss, without the weights' penalties. */
double train_measure_run(const struct train_measured *measured);

#endif /* TRAIN_MEASURE_H */
