/*
 * The targets that a loss and the metrics compare the model's outputs with.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#define TARGET_PARTS 16 /* limit on outputs that have targets */

/*
 * The kind of targets that a data set has. Several integers per item may be a class number for each
 * of its positions (tokens, pixels), or values; this depends on the output that they are compared
 * with, see targets_are_classes().
 */
struct target_kind {
	int classes;   /* integers from 0 to below this; 0: values */
	int64_t width; /* numbers per item; 0: one class number */
	/* Numbers per item that weight its rows (sample_weight): 1, or one per position, or with
	 * several outputs one per part; 0: every row has weight 1. */
	int64_t weights;
	/* With several outputs, in the order of data.outputs: each has `width` consecutive values
	 * of an item. */
	struct target_part {
		int classes;
		int64_t width;
	} parts[TARGET_PARTS];
	int part_count; /* 0: the model has one output */
	bool ignores;   /* rows may have the class @ignored, which compile.loss ignores */
	int64_t ignored;
};

/* Keras's class_weight for each part of several outputs, or for the first of a single one. */
struct class_weights {
	struct class_weight {
		float *items;  /* by class; NULL: every class has weight 1 */
		int64_t count; /* of classes */
	} parts[TARGET_PARTS];
};

static inline int64_t targets_per_item(const struct target_kind *kind)
{
	return kind->width > 0 ? kind->width : 1;
}

/* Whether there is one class number for each of an item's @positions. */
static inline bool targets_are_classes(const struct target_kind *kind, int64_t positions)
{
	return kind->classes > 0 && targets_per_item(kind) == positions;
}

/*
 * The targets of the rows that a loss or a metric reads: classes or values.
 *
 * @weights combines all factors of a row: sample_weight, class_weight, and whatever makes rows
 * count less or not at all (0), multiplied. A loss is the sum of weight times the row's loss
 * over the number of all rows (Keras's sum_over_batch_size); its gradient likewise. A metric is
 * the sum of weight times the row's value over the sum of weights. Metrics that are not weighted
 * get the targets without weights. Rows with mask 0 are not counted at all: neither in the
 * number of rows of a loss nor in a metric.
 */
struct targets {
	const int32_t *classes; /* [rows] */
	const float *values;    /* [rows, width]; with width 1 also class numbers */
	int64_t width;
	const float *weights; /* [rows]; NULL: 1 each */
	const float *mask;    /* [rows]: 1 or 0; NULL: all rows count */
};

#endif /* TARGETS_H */
