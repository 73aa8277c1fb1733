/*
 * Metrics: values measured beside the loss, one table row each.
 *
 * Most metrics compute a number per row (loss.h) and show the mean over the rows so far, so a
 * batch adds to a sum and a count (Keras's MeanMetricWrapper). The others use counts over all
 * rows: Precision and Recall of outputs above a threshold, AUC of those above each of
 * num_thresholds thresholds, F1Score of each class, MeanIoU of a confusion matrix.
 * ConfusionMatrix, which is only a function in Keras, shows the share of correct rows and keeps
 * the matrix. Perplexity is exp of the mean crossentropy. "accuracy" is resolved as in Keras
 * (compile_utils.MetricsContainer): binary if the model's output is one number, sparse
 * categorical if a target is a class number or a single value of its row, otherwise categorical;
 * likewise "crossentropy". Losses are metrics, too, computed from the outputs.
 *
 * Ties and non-finite numbers as in TensorFlow: argmax is the first of equals and skips NaN. An
 * item is in the top k if fewer than k scores are above its score, and not if a score that was
 * compared is not finite.
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
	METRIC_OUTPUT_LOSS          /* the loss of one of several outputs */
};

/* How F1Score averages over the classes. */
enum metric_average {
	METRIC_MACRO,
	METRIC_MICRO,
	METRIC_WEIGHTED
};

struct metric {
	enum metric_kind kind;
	struct loss loss; /* of other kinds only its ignored class is used */
	const char *name; /* as shown: "accuracy"; in the table, in the JSON or `own` */
	char *own;        /* with several outputs: "OUTPUT_accuracy"; owned by the list; or NULL */
	int output;       /* of the model */
	bool weighted;    /* rows count by their weights (Keras's weighted_metrics) */
	float threshold;  /* an output above it is a 1; F1Score NaN: the greatest output is */
	int64_t k;        /* top k */
	int64_t classes;  /* of F1Score and MeanIoU */
	enum metric_average average;
	int64_t thresholds; /* of AUC */
	bool pr;            /* AUC of precision over recall, not of the ROC curve */
	/* Numbers that batches add to: a sum and a count of items if metric_is_mean() and for
	 * Perplexity, otherwise counts. Those of a list's metrics are contiguous, from
	 * @first_state. */
	int64_t first_state, states;
};

/* A list in order. Names are unique, and none is "loss". */
struct metric_list {
	struct metric *items;
	int count;
	int64_t states; /* of all of them */
};

/* A row's names: "binary_accuracy", "BinaryAccuracy". Losses and "accuracy" have no rows. */
const char *metric_kind_name(enum metric_kind kind);
const char *metric_kind_class(enum metric_kind kind);

/* Read a name or {class_name, config}. Names point into @at's JSON or a table. Fails, naming the
 * position, if the metric does not fit the model's output and such targets. */
enum status metric_get(struct metric *out, const struct json_at *at,
		       const struct model_output *output, const struct target_kind *kind,
		       struct err *err);

/* Check that @at is or has the name of a metric. The error lists the names. */
enum status metric_check_name(const struct json_at *at, struct err *err);

/* Append the metrics of @at (a list or a single one; NULL or null: none), which compare @output of
 * the model with @kind. @list begins zeroed; on failure it is empty. */
enum status metric_list_add(struct metric_list *list, const struct json_at *at, bool weighted,
			    const struct model *model, int output, const struct target_kind *kind,
			    struct err *err);
/* Append the loss of @output as a metric. */
enum status metric_list_add_loss(struct metric_list *list, const struct loss *loss,
				 const struct model *model, int output, struct err *err);
void metric_list_free(struct metric_list *list); /* accepts an empty one */

bool metric_is_mean(const struct metric *metric);

/* What a metric is computed from. */
enum metric_work {
	METRIC_OF_ELEMENTS, /* each output is compared with its target */
	METRIC_OF_GREATEST, /* a row's greatest output, or its k greatest */
	METRIC_OF_LOSS      /* metric->loss */
};
enum metric_work metric_work(const struct metric *metric);

#endif /* METRIC_H */
