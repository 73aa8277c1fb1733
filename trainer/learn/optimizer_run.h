/*
 * Running optimizers, whose formulas are in model/learn/optimizer.h, and the parameters'
 * regularizers: their penalty and its gradient.
 *
 * As in Keras, the penalty of every parameter with a regularizer counts, l1 sum |w| + l2 sum w^2,
 * and is part of every micro-batch's loss; only trainable parameters have a gradient of it. Sums
 * are computed in double and in a fixed order: the same bytes for any pool.
 */
#ifndef OPTIMIZER_RUN_H
#define OPTIMIZER_RUN_H

#include "common/pool.h"
#include "model/learn/optimizer.h"
#include "model/model.h"

/* ---- optimizers ------------------------------------------------------------------------------ */

/* Operands of the sums of squares, per parameter. */
enum optimizer_sum {
	OPTIMIZER_GRADIENT,
	OPTIMIZER_WEIGHT,
	OPTIMIZER_STEP,
	OPTIMIZER_SUMS
};

/* A piece of the parameter block, of at most OPTIMIZER_PIECE floats. */
struct optimizer_range {
	size_t first, count;
	size_t kept; /* offset in each slot block; first, if that has the model's layout */
	int param;   /* index in the model; for several small contiguous parameters, the first */
	double squares[OPTIMIZER_SUMS]; /* of the piece, later of its parameter */
};

#define OPTIMIZER_PIECE 65536 /* a quarter of a megabyte */

/*
 * List the pieces that cover exactly the trainable parameters of @layer_count layers from
 * @first_layer on. If the optimizer needs norms no piece spans two parameters. Free *@out with
 * mem_free(); on failure, or if nothing is trainable, it is NULL and *@count is 0.
 */
enum status optimizer_ranges_new(struct optimizer_range **out, size_t *count,
				 const struct optimizer *optimizer, const struct model *model,
				 int first_layer, int layer_count, struct err *err);

/* Initialize the state before the first update: @stride floats per slot. */
void optimizer_start(const struct optimizer *optimizer, float *slots, size_t stride);

/*
 * Compute the sums of squares of the ranges' gradients into @squares, indexed by parameter: for
 * global_clipnorm, whose norm is over all parameters, including those of other stages.
 */
void optimizer_squares(struct pool *pool, struct optimizer_range *ranges, size_t count,
		       const float *gradients, double *squares);

/*
 * Update the weights of the ranges, in parallel on @pool (may be NULL): the same bytes for any
 * pool. @weights, @gradients: the model's blocks. @slots: optimizer_slots() blocks, @stride floats
 * apart, in which a range's slots begin at range.kept; NULL if there are none. @update counts from
 * 0. @norm: of all gradients, if the optimizer has a global_clipnorm.
 */
void optimizer_run(const struct optimizer *optimizer, struct pool *pool,
		   struct optimizer_range *ranges, size_t count, float *weights,
		   const float *gradients, float *slots, size_t stride, int64_t update,
		   double norm);

/* ---- regularizers ---------------------------------------------------------------------------- */

/* Whether a parameter of these layers has a regularizer; if not, the functions below do nothing. */
bool regularizer_any(const struct model *model, int first_layer, int layer_count);

/* @pool may be NULL, here and below. */
double regularizer_penalty(struct pool *pool, const struct model *model, int first_layer,
			   int layer_count, const float *weights);

/* gradients += loss_scale (l1 sign(w) + 2 l2 w) */
void regularizer_gradient(struct pool *pool, const struct model *model, int first_layer,
			  int layer_count, const float *weights, float *gradients,
			  double loss_scale);

#endif /* OPTIMIZER_RUN_H */
