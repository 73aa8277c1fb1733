/*
 * What a loss and the metrics compare the model's outputs with.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a data set's targets are like. Whole numbers of which an item has several may be a class
 * number for each of its positions (tokens, pixels), or values: that depends on what they are
 * compared with, see targets_are_classes().
 */
struct target_kind {
	int classes;   /* whole numbers from 0 up to below this; 0: values */
	int64_t width; /* numbers of an item; 0: one class number */
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

/* Those of rows that a loss is the mean of: one of the two. */
struct targets {
	const int32_t *classes; /* [rows] */
	const float *values;    /* [rows, width]; of width 1 also class numbers */
	int64_t width;
};

#endif /* TARGETS_H */
