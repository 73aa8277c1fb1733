/*
 * What a loss and the metrics compare the model's outputs with.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <stdint.h>

/* What a data set's targets are like. */
struct target_kind {
	int classes;   /* class numbers from 0 up to below this; 0: values */
	int64_t width; /* values of an item, where there are no classes */
};

/* Those of a batch: one of the two. */
struct targets {
	const int32_t *classes; /* [batch] */
	const float *values;    /* [batch, width] */
	int64_t width;
};

#endif /* TARGETS_H */
