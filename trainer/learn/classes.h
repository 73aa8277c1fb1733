/*
 * How often each class was a target, and how often it was mispredicted: input of the health rule
 * for class imbalance.
 *
 * Counts are exact, and merging adds them, so each replica (or thread) has separate counts. Adding
 * a batch allocates nothing. No locks: one thread at a time.
 */
#ifndef CLASSES_H
#define CLASSES_H

#include "common/err.h"
#include "model/learn/targets.h"

/* Minimum items per class, on average, to report imbalance: where 50 are expected, random draws
 * hardly ever give fewer than 25 or more than 80. For 10 classes that is 500, SageMaker Debugger's
 * number. */
#define CLASS_ITEMS_LEAST 50

struct class_counts {
	int64_t *targets, *missed; /* [classes] */
	int64_t classes, items;
	int64_t predicted; /* items whose prediction is known */
};

/* @classes >= 1, numbered from 0. On failure *@out is empty. */
enum status class_counts_init(struct class_counts *out, int64_t classes, struct err *err);
void class_counts_fini(struct class_counts *counts); /* accepts an empty one */
void class_counts_clear(struct class_counts *counts);

/* Add the items of a batch. @outputs [batch, width]: the index of the greatest is the prediction
 * (the first of equals; NaN is skipped). @targets: class numbers, also as single values, or
 * vectors of `width` whose greatest is the class. Masked items and items of no class are not
 * counted. If @width is not the number of classes (a single output) there is no prediction. */
void class_counts_add(struct class_counts *counts, const float *outputs,
		      const struct targets *targets, int64_t batch, int64_t width);
void class_counts_merge(struct class_counts *into, const struct class_counts *from);

struct class_figures {
	int64_t items;
	/* The most frequent class over the least frequent one that occurred; NaN below
	 * CLASS_ITEMS_LEAST items per class on average. */
	double imbalance;
	/* Over the classes, the greatest fraction of items that were mispredicted; NaN: unknown. */
	double misprediction;
};
struct class_figures class_counts_figures(const struct class_counts *counts);

#endif /* CLASSES_H */
