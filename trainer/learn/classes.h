/*
 * How often each class was a target, and how often it was predicted wrong: what the health rule of
 * class imbalance wants to know.
 *
 * Counts are exact and merging is adding, so each replica (or thread) has counts of its own. Adding
 * a batch allocates nothing. No locks: one thread at a time.
 */
#ifndef CLASSES_H
#define CLASSES_H

#include "common/err.h"
#include "model/learn/targets.h"

/* Of so many items for each class, on average, it can be told which classes are rare: 50 drawn at
 * random are hardly ever fewer than 25 or more than 80. For 10 classes that is 500, SageMaker
 * Debugger's number of samples. */
#define CLASS_ITEMS_LEAST 50

struct class_counts {
	int64_t *targets, *missed; /* [classes] */
	int64_t classes, items;
	int64_t predicted; /* items whose prediction is known */
};

/* @classes >= 1, from 0 on. On failure *@out is empty. */
enum status class_counts_init(struct class_counts *out, int64_t classes, struct err *err);
void class_counts_fini(struct class_counts *counts); /* accepts an empty one */
void class_counts_clear(struct class_counts *counts);

/* Add the items of a batch: @outputs [batch, width], whose greatest is the prediction (the first of
 * equals; NaN is passed over). @targets: class numbers, also as single values, or vectors of
 * `width` whose greatest is the class. An item whose class is none of `classes`, or that is masked,
 * is not counted.
 * Where @width is not the number of classes (a single output) there is no prediction. */
void class_counts_add(struct class_counts *counts, const float *outputs,
		      const struct targets *targets, int64_t batch, int64_t width);
void class_counts_merge(struct class_counts *into, const struct class_counts *from);

struct class_figures {
	int64_t items;
	/* The commonest class over the rarest of those that came; NaN before there are
	 * CLASS_ITEMS_LEAST items for each class on average. */
	double imbalance;
	/* The greatest part of a class's items that was predicted wrong; NaN: unknown. */
	double misprediction;
};
struct class_figures class_counts_figures(const struct class_counts *counts);

#endif /* CLASSES_H */
