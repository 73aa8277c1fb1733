/*
 * Metrics: what is measured beside the loss, one table row each.
 *
 * Most metrics of a row (loss.h) are a number; what is shown is the mean over the rows so far, so a
 * batch adds to a sum and a count (Keras's MeanMetricWrapper). The others are made of counts over
 * all rows: Precision and Recall of outputs above a threshold, AUC of those above num_thresholds of
 * them, F1Score of each class's, MeanIoU of a confusion matrix. ConfusionMatrix, which Keras has as
 * a function alone, shows what is right of all and keeps the matrix. Perplexity is exp of the mean
 * crossentropy. "accuracy" is resolved as Keras does (compile_utils.MetricsContainer): binary
 * where the model's output is one number, else sparse categorical where a target is a class number
 * or a single value of its row, else categorical; "crossentropy" alike. Losses are metrics too,
 * taken from the outputs.
 *
 * Ties and bad numbers as in TensorFlow: an argmax is the first of equals and passes NaN over; an
 * item is in the top k where fewer than k scores are above its own, and not where a score that had
 * to be looked at is not finite.
 */
#ifndef METRIC_H
#define METRIC_H

#include "model/learn/loss.h"

enum metric_kind {
	METRIC_BINARY,
	METRIC_CATEGORICAL,
	METRIC_SPARSE_CATEGORICAL,
	METRIC_TOP_K,
	METRIC_SPARSE_TOP_K,
	METRIC_PRECISION,
	METRIC_RECALL,
	METRIC_AUC,
	METRIC_F1,
	METRIC_MEAN_IOU,
	METRIC_ONE_HOT_MEAN_IOU,
	METRIC_CONFUSION,
	METRIC_PERPLEXITY,
	METRIC_KINDS,
	METRIC_LOSS = METRIC_KINDS, /* metric.loss */
	METRIC_OUTPUT_LOSS          /* of several outputs, what this one's is trained on */
};

/* Of the classes' F1Scores. */
enum metric_average {
	METRIC_MACRO,
	METRIC_MICRO,
	METRIC_WEIGHTED
};

struct metric {
	enum metric_kind kind;
	struct loss loss; /* of other kinds the class it ignores alone */
	const char *name; /* as shown: "accuracy"; of the table, of the JSON read or `own` */
	char *own;        /* of several outputs: "OUTPUT_accuracy"; the list's; NULL */
	int output;       /* of the model */
	bool weighted;    /* rows count by their weights (Keras's weighted_metrics) */
	float threshold;  /* above it is a 1; F1Score NaN: the greatest output is */
	int64_t k;        /* top k */
	int64_t classes;  /* of F1Score and MeanIoU */
	enum metric_average average;
	int64_t thresholds; /* of AUC */
	bool pr;            /* AUC of precision over recall, not of the ROC curve */
	/* Numbers that batches add to: a sum and a count of items where metric_is_mean() and of
	 * Perplexity, else counts.
	 * Those of a list's metrics stand one after the other, from @first_state. */
	int64_t first_state, states;
};

/* Of a list, in its order. Names are all different, and none is "loss". */
struct metric_list {
	struct metric *items;
	int count;
	int64_t states; /* of all of them */
};

/* What a row is called: "binary_accuracy", "BinaryAccuracy". Losses and "accuracy" are no rows. */
const char *metric_kind_name(enum metric_kind kind);
const char *metric_kind_class(enum metric_kind kind);

/* A name or {class_name, config}. Names point into @at's JSON or a table. The error names the place
 * where the metric does not fit the model's output and such targets. */
enum status metric_get(struct metric *out, const struct json_at *at,
		       const struct model_output *output, const struct target_kind *kind,
		       struct err *err);

/* Is it the name of a metric, or has one? The error lists them. */
enum status metric_check_name(const struct json_at *at, struct err *err);

/* Append those of @at, a list or one alone, which compare @output of the model with @kind; NULL or
 * null: none. @list begins zeroed; on failure it is empty. */
enum status metric_list_add(struct metric_list *list, const struct json_at *at, bool weighted,
			    const struct model *model, int output, const struct target_kind *kind,
			    struct err *err);
/* Append what @output's own loss is. */
enum status metric_list_add_loss(struct metric_list *list, const struct loss *loss,
				 const struct model *model, int output, struct err *err);
void metric_list_free(struct metric_list *list); /* accepts an empty one */

bool metric_is_mean(const struct metric *metric);

/* What a metric is made of. */
enum metric_work {
	METRIC_OF_ELEMENTS, /* each output is compared with its target */
	METRIC_OF_GREATEST, /* a row's greatest output, or its k greatest */
	METRIC_OF_LOSS      /* metric->loss */
};
enum metric_work metric_work(const struct metric *metric);

#endif /* METRIC_H */
