/*
 * Losses, one table row each.
 *
 * A row is the last axis of the model's output: an item has one row, or one per position (tokens
 * of [T, C], pixels of [H, W, C]). The loss of a micro-batch is the mean over its counted rows
 * (Keras's reduction sum_over_batch_size), each times its weight (targets.h); the gradient is
 * that of this mean. Formulas are those of TensorFlow 2.6 (the Keras backend's crossentropies,
 * tf.keras.losses), with e = 1e-7, p an output, x a logit, y a target, c(p) = p clipped to [e, 1
 * - e]; a clipped output has no gradient.
 *
 *	sparse_categorical_crossentropy   log sum c(p) - log c(p_label)
 *	    from logits                   log sum exp x - x_label
 *	categorical_crossentropy          -sum y log c(p / sum p)
 *	    from logits                   sum y (log sum exp x - x)
 *	binary_crossentropy               -(y log(c(p) + e) + (1 - y) log(1 - c(p) + e))
 *	    from logits                   max(x, 0) - x y + log(1 + exp -|x|)
 *	mean_squared_error                (p - y)^2
 *	mean_absolute_error               |p - y|
 *	huber                             (p - y)^2 / 2 if |p - y| is at most delta (1), otherwise
 *	                                  delta |p - y| - delta^2 / 2
 *	log_cosh                          log cosh (p - y)
 *	hinge, squared_hinge              max(0, 1 - y p), and its square; a target of 0 is -1
 *	categorical_hinge                 max(0, 1 + max (1 - y) p - sum y p)
 *	kl_divergence                     sum y log(y / p), both within [e, 1]
 *	binary_focal_crossentropy         (1 - q)^gamma times binary_crossentropy, gamma 2, with
 *	                                  q = y p + (1 - y) (1 - p), and p the sigmoid of a logit
 *	    apply_class_balancing         times y alpha + (1 - y) (1 - alpha), alpha 0.25
 *	categorical_focal_crossentropy    -sum alpha (1 - c(q))^gamma y log c(q), q = p / sum p or the
 *	                                  softmax of logits; gamma 2, alpha 0.25
 *
 * ignore_class: rows of that class are not counted; it may be a number outside of the classes.
 * label_smoothing s: y becomes y (1 - s) + s / classes (categorical) or y (1 - s) + s / 2
 * (binary). The gradient of categorical_crossentropy from logits is softmax(x) - y, as in
 * TensorFlow: targets are assumed to sum to 1. No state, no allocation.
 */
#ifndef LOSS_H
#define LOSS_H

#include "common/json.h"
#include "model/learn/targets.h"
#include "model/model.h"

enum loss_kind {
	LOSS_BINARY_CROSSENTROPY,
	LOSS_BINARY_FOCAL_CROSSENTROPY,
	LOSS_CATEGORICAL_CROSSENTROPY,
	LOSS_CATEGORICAL_FOCAL_CROSSENTROPY,
	LOSS_CATEGORICAL_HINGE,
	LOSS_HINGE,
	LOSS_HUBER,
	LOSS_KL_DIVERGENCE,
	LOSS_LOG_COSH,
	LOSS_MEAN_ABSOLUTE_ERROR,
	LOSS_MEAN_SQUARED_ERROR,
	LOSS_SQUARED_HINGE,
	LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
	LOSS_KINDS
};

struct loss {
	enum loss_kind kind;
	bool from_logits;
	bool apply_class_balancing;
	float label_smoothing; /* 0 .. 1 */
	double delta, gamma, alpha;
	bool ignores; /* rows of class @ignore_class are not counted */
	int64_t ignore_class;
};

/* Read a loss: "mse", "mean_squared_error", "MeanSquaredError", or {class_name, config}. */
enum status loss_get(struct loss *out, const struct json_at *at, struct err *err);
/* Read the ignored class at @key ("ignore_class" of a loss; metrics have other keys): a number or
 * null. */
void loss_read_ignored(struct loss *out, const struct json_at *config, const char *key,
		       struct err *err);
bool loss_known(const char *name);                    /* a class, function or short name */
struct loss loss_of(enum loss_kind kind);             /* with Keras's defaults */
const char *loss_name(const struct loss *loss);       /* Keras's snake case */
const char *loss_class_name(const struct loss *loss); /* "MeanSquaredError" */

bool loss_is_error(const struct loss *loss); /* an error of values, not a crossentropy */

/*
 * Whether the loss reads the input of the activation that ends the model (as Keras does if it can).
 */
bool loss_takes_logits(const struct loss *loss, const struct model *model);

/* Number of rows of an item, and of outputs in each. */
struct loss_rows {
	int64_t positions, width;
};
struct loss_rows loss_rows_of(const struct model_output *output);
/* Number of rows of an item by which targets and weights are given; 1 if there are several
 * outputs. */
int64_t loss_positions(const struct model *model);

/* Check that the loss fits the output and such targets. The error names the layer. */
enum status loss_check(const struct loss *loss, const struct model_output *output,
		       const struct target_kind *kind, struct err *err);

/* Check that a loss which needs the class of a row has one for each row that it counts. */
enum status loss_check_ignored(const struct loss *loss, const struct model_output *output,
			       const struct target_kind *kind, struct err *err);

/* The losses of the model's outputs, in their order. The model's loss is the sum of weight times
 * the losses that are given. */
struct loss_list {
	struct loss_part {
		struct loss loss;
		bool given; /* false: null; the output is not trained on */
		float weight;
		struct target_kind targets; /* of this output only; empty if nothing reads them */
		int64_t first;              /* their offset among the targets of an item */
		int weight_at;              /* index of its weight among the item's `weights` */
	} items[MODEL_OUTPUTS];
	int count;
	int64_t weights; /* weights per item, if there are several outputs */
};

_Static_assert(MODEL_OUTPUTS == TARGET_PARTS, "each output may have targets");

#endif /* LOSS_H */
