/*
 * Optimizers at work: model/learn/optimizer.h says what each is and has the formulas. And what the
 * parameters' regularisers add to the loss, and to the gradients.
 *
 * As in Keras, the penalty of every parameter that has a regulariser counts, l1 sum |w| + l2 sum
 * w^2, and is part of every micro-batch's loss; only parameters that learn have a gradient of it.
 * Sums are taken in double and in a fixed order: the same bytes for any pool.
 */
#ifndef OPTIMIZER_RUN_H
#define OPTIMIZER_RUN_H

#include "common/pool.h"
#include "model/learn/optimizer.h"
#include "model/model.h"

/* ---- optimizers ------------------------------------------------------------------------------ */

/* Of what optimizer_run() sums squares, parameter by parameter. */
enum optimizer_sum {
	OPTIMIZER_GRADIENT,
	OPTIMIZER_WEIGHT,
	OPTIMIZER_STEP,
	OPTIMIZER_SUMS
};

/* A piece of the parameters' block, at most OPTIMIZER_PIECE floats of it. */
struct optimizer_range {
	size_t first, count;
	size_t kept; /* where its slots begin in each slot's block; where that has all, first */
	int param;   /* of the model; of several small ones that lie together, the first */
	double squares[OPTIMIZER_SUMS]; /* of the piece, then of its parameter */
};

#define OPTIMIZER_PIECE 65536 /* a quarter of a megabyte */

/*
 * The pieces that cover the parameters that learn of @layer_count layers from @first_layer on, and
 * nothing else. Where the optimizer needs norms no piece has a part of two parameters. *@out is the
 * caller's (mem_free); on failure, and where nothing learns, it is NULL with *@count 0.
 */
enum status optimizer_ranges_new(struct optimizer_range **out, size_t *count,
				 const struct optimizer *optimizer, const struct model *model,
				 int first_layer, int layer_count, struct err *err);

/* The state before the first update: @stride floats of each slot. */
void optimizer_start(const struct optimizer *optimizer, float *slots, size_t stride);

/*
 * Sums of squares of the ranges' gradients, to @squares by the parameter's number: for
 * global_clipnorm, whose norm is that of all parameters, of other stages, too.
 */
void optimizer_squares(struct pool *pool, struct optimizer_range *ranges, size_t count,
		       const float *gradients, double *squares);

/*
 * Update the weights of the ranges, shared out over @pool (may be NULL): the same bytes for any.
 * @weights, @gradients: the model's blocks. @slots: optimizer_slots() blocks, each @stride floats
 * after the one before, in which a range's slots begin at range.kept; NULL where there are none.
 * @update from 0. @norm: of all gradients, where the optimizer has a global_clipnorm.
 */
void optimizer_run(const struct optimizer *optimizer, struct pool *pool,
		   struct optimizer_range *ranges, size_t count, float *weights,
		   const float *gradients, float *slots, size_t stride, int64_t update,
		   double norm);

/* ---- regularisers ---------------------------------------------------------------------------- */

/* Has any parameter of these layers a regulariser? Where none has, the others do nothing. */
bool regularizer_any(const struct model *model, int first_layer, int layer_count);

/* @pool may be NULL, here and below. */
double regularizer_penalty(struct pool *pool, const struct model *model, int first_layer,
			   int layer_count, const float *weights);

/* gradients += loss_scale (l1 sign(w) + 2 l2 w) */
void regularizer_gradient(struct pool *pool, const struct model *model, int first_layer,
			  int layer_count, const float *weights, float *gradients,
			  double loss_scale);

#endif /* OPTIMIZER_RUN_H */
