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
 *	    amsgrad               vhat = max(vhat, v) replaces v in the last line   [m, v, vhat]
 *	Adagrad                   a += g^2   [accumulator a, which starts at
 *	                          initial_accumulator_value]
 *	                          w -= r g / (sqrt(a) + epsilon)
 *
 * These are of Keras 2.11 and later (keras/src/optimizers/):
 *
 *	AdamW                     Adam with a weight_decay of 0.004
 *	Nadam                     m and v as Adam's; u_t = beta_1 (1 - 0.96^t / 2), U_t = u_1 ... u_t
 *	                          w -= r (u_(t+1) m / (1 - U_(t+1)) + (1 - u_t) g / (1 - U_t))
 *	                               / (sqrt(v / (1 - beta_2^t)) + epsilon)   [m, v]
 *	Lion                      w -= r sign(beta_1 m + (1 - beta_1) g)   [m]
 *	                          m = beta_2 m + (1 - beta_2) g
 *	Lamb                      m and v as Adam's; s = m / (1 - beta_1^t)
 *	                               / (sqrt(v / (1 - beta_2^t)) + epsilon) + weight_decay_rate w
 *	                          w -= r |w| / |s| s, with norms of the whole variable; if one of them
 *	                          is 0, their ratio is 1   [m, v]
 *
 * weight_decay_rate is LAMB's in the paper, in TensorFlow Addons and in Graphcore's BERT.
 *
 * For every optimizer, before its update: the gradient is clipped, to clipvalue element by
 * element, to the norm clipnorm variable by variable, or to the norm global_clipnorm of all
 * variables together; then w -= r weight_decay w.
 *
 * Any optimizer may scale the loss, so that small gradients do not underflow in float16:
 * loss_scale_factor of Keras 3, or a LossScaleOptimizer as wrapper. Gradients are those of
 * loss_scale times the loss until they are accumulated; they are divided by it before they are
 * reduced, clipped and applied. If a gradient is not finite, a dynamic scale is halved and the
 * update skipped; after loss_scale_growth updates in a row the scale is doubled
 * (keras/src/optimizers/loss_scale_optimizer.py).
 *
 * RMSprop's epsilon is outside of the root without momentum, but inside with momentum: without
 * momentum TensorFlow implements the update in Python, with momentum it calls
 * ResourceApplyRMSProp. Nesterov without momentum is plain SGD. An epsilon of null or 0 is 1e-7.
 */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "common/json.h"
#include "ipu/plan/ipu_op.h"
#include "model/learn/schedule.h"
#include "model/model.h"

enum optimizer_kind {
	OPTIMIZER_ADAGRAD,
	OPTIMIZER_ADAM,
	OPTIMIZER_ADAMW,
	OPTIMIZER_LAMB,
	OPTIMIZER_LION,
	OPTIMIZER_NADAM,
	OPTIMIZER_RMSPROP,
	OPTIMIZER_SGD,
	OPTIMIZER_KINDS
};

#define OPTIMIZER_SLOTS 3 /* maximum of a kind */

#define OPTIMIZER_LOSS_SCALE "LossScaleOptimizer" /* the wrapper's name */
#define LOSS_SCALE_MOST      0x1p126              /* its inverse is a normal float */

struct optimizer {
	enum optimizer_kind kind;
	struct schedule learning_rate;
	double decay; /* Keras 2: the rate of update u is divided by 1 + decay u */
	double momentum, rho, epsilon, beta_1, beta_2;
	double initial_accumulator_value, weight_decay_rate;
	double weight_decay;                         /* 0: none */
	double clipvalue, clipnorm, global_clipnorm; /* at most one is not 0 */
	bool nesterov, centered, amsgrad;
	double loss_scale; /* of the first update; 1 or 0: the loss is not scaled */
	bool loss_scale_dynamic;
	double loss_scale_growth; /* in updates */
};

/* NULL @at: SGD with its defaults (learning_rate 0.01). */
enum status optimizer_get(struct optimizer *out, const struct json_at *at, struct err *err);
const char *optimizer_name(const struct optimizer *optimizer); /* "SGD" */

/* The learning rate of @update, from 0. */
double optimizer_rate(const struct optimizer *optimizer, int64_t update);

/* Floats of state per weight; Keras's name of such a slot ("rms"); its value before the first
 * update. */
int optimizer_slots(const struct optimizer *optimizer);
const char *optimizer_slot_name(const struct optimizer *optimizer, int slot);
float optimizer_slot_start(const struct optimizer *optimizer);

/* Whether an update needs norms of whole variables; whether it needs that of all variables. */
bool optimizer_needs_norms(const struct optimizer *optimizer);
bool optimizer_needs_whole_norm(const struct optimizer *optimizer);

bool optimizer_scales_loss(const struct optimizer *optimizer);

/* The update as a device operation: one map over @count weights, the gradient and the slots. */
struct ipu_elements optimizer_elements(const struct optimizer *optimizer, int64_t count);

#endif /* OPTIMIZER_H */
