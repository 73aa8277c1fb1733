/*
 * Optimizers, one table row each, with the formulas and defaults of TensorFlow 2.6's OptimizerV2
 * (keras/optimizer_v2/ and the operations ResourceApply... of core/kernels/training_ops.cc).
 *
 * With g the gradient, r the rate of the update (see optimizer_rate()), slots in brackets:
 *
 *	SGD                       w -= r g
 *	    momentum > 0          a = momentum a - r g;  w += a   [momentum a]
 *	    nesterov              w += momentum a - r g
 *	RMSprop                   s = rho s + (1 - rho) g^2   [rms s]
 *	                          w -= r g / (sqrt(s) + epsilon)
 *	    centered              m = rho m + (1 - rho) g   [rms s, mg m]
 *	                          w -= r g / (sqrt(s - m^2) + epsilon)
 *	    momentum > 0          a = momentum a + r g / sqrt(s + epsilon)   [rms s, momentum a]
 *	                          w -= a
 *	    both                  sqrt(s - m^2 + epsilon) is the divisor
 *	Adam                      m += (1 - beta_1) (g - m)   [m, v]
 *	                          v += (1 - beta_2) (g^2 - v)
 *	                          w -= r sqrt(1 - beta_2^t) / (1 - beta_1^t) m
 *	                               / (sqrt(v) + epsilon), t from 1
 *	    amsgrad               vhat = max(vhat, v) stands for v in the last line   [m, v, vhat]
 *
 * So RMSprop's epsilon is outside of the root, but inside where there is momentum: without momentum
 * TensorFlow writes the update in Python, with it calls ResourceApplyRMSProp. Nesterov without
 * momentum is plain SGD. An epsilon of null or 0 is 1e-7.
 */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "common/json.h"
#include "ipu/plan/ipu_op.h"
#include "model/learn/schedule.h"
#include "model/model.h"

enum optimizer_kind {
	OPTIMIZER_ADAM,
	OPTIMIZER_RMSPROP,
	OPTIMIZER_SGD,
	OPTIMIZER_KINDS
};

#define OPTIMIZER_SLOTS 3 /* the most of a kind */

struct optimizer {
	enum optimizer_kind kind;
	struct schedule learning_rate;
	double decay; /* Keras 2's: the rate of update u is divided by 1 + decay u */
	double momentum, rho, epsilon, beta_1, beta_2;
	bool nesterov, centered, amsgrad;
};

/* NULL @at: SGD with its defaults (learning_rate 0.01). */
enum status optimizer_get(struct optimizer *out, const struct json_at *at, struct err *err);
const char *optimizer_name(const struct optimizer *optimizer); /* "SGD" */

/* The learning rate of @update, from 0. */
double optimizer_rate(const struct optimizer *optimizer, int64_t update);

/* Floats of state per weight, zero before the first update, and what Keras calls them ("rms"). */
int optimizer_slots(const struct optimizer *optimizer);
const char *optimizer_slot_name(const struct optimizer *optimizer, int slot);

/* The update on a device: one map over @count weights, with the gradient and the slots. */
struct ipu_elements optimizer_elements(const struct optimizer *optimizer, int64_t count);

#endif /* OPTIMIZER_H */
