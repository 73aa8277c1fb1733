/*
 * What a loss and the metrics compare the model's outputs with.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#define TARGET_PARTS 16 /* the most outputs that have targets */

/*
 * What a data set's targets are like. Whole numbers of which an item has several may be a class
 * number for each of its positions (tokens, pixels), or values: that depends on what they are
 * compared with, see targets_are_classes().
 */
struct target_kind {
	int classes;   /* whole numbers from 0 up to below this; 0: values */
	int64_t width; /* numbers of an item; 0: one class number */
	/* Numbers of an item that weigh its rows (sample_weight): 1, or one for each position, or of
	 * several outputs for each part; 0: every row weighs 1. */
	int64_t weights;
	/* Of several outputs, in the order of data.outputs: `width` values of an item are theirs,
	 * one after the other. */
	struct target_part {
		int classes;
		int64_t width;
	} parts[TARGET_PARTS];
	int part_count; /* 0: the model has one output */
	bool ignores;   /* rows may be of @ignored, a class that compile.loss leaves out */
	int64_t ignored;
};

static inline int64_t targets_per_item(const struct target_kind *kind)
{
	return kind->width > 0 ? kind->width : 1;
}

/* One class number for each of an item's @positions? */
static inline bool targets_are_classes(const struct target_kind *kind, int64_t positions)
{
	return kind->classes > 0 && targets_per_item(kind) == positions;
}

/*
 * Those of the rows that a loss or a metric is of: classes or values.
 *
 * @weights is how all that weighs a row reaches losses and metrics: sample_weight, class_weight,
 * and whatever makes rows count less (their product) or not at all (0). A loss is the sum of weight
 * times the row's loss over the number of all rows (Keras's sum_over_batch_size), and its gradient
 * of that. A metric is the sum of weight times the row's value over the sum of weights. Metrics
 * that are not weighted are given the targets without weights. Rows where the mask is 0 count
 * nowhere: neither among those of a loss's mean nor in a metric.
 */
struct targets {
	const int32_t *classes; /* [rows] */
	const float *values;    /* [rows, width]; of width 1 also class numbers */
	int64_t width;
	const float *weights; /* [rows]; NULL: 1 each */
	const float *mask;    /* [rows]: 1 or 0; NULL: all count */
};

#endif /* TARGETS_H */
