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

/* A piece of the parameters' block, at most OPTIMIZER_PIECE floats of it. */
struct optimizer_range {
	size_t first, count;
};

#define OPTIMIZER_PIECE 65536 /* a quarter of a megabyte */

/* The pieces that cover the parameters that learn of @layer_count layers from @first_layer on, and
 * nothing else. *@out is the caller's (mem_free); on failure, and where nothing learns, it is NULL
 * with *@count 0. */
enum status optimizer_ranges_new(struct optimizer_range **out, size_t *count,
				 const struct model *model, int first_layer, int layer_count,
				 struct err *err);

/*
 * Update the weights of the ranges, shared out over @pool (may be NULL): the same bytes for any.
 * @weights, @gradients: the model's blocks. @slots: optimizer_slots() blocks of the same layout,
 * each @stride floats after the one before; NULL where there are none. @update from 0.
 */
void optimizer_run(const struct optimizer *optimizer, struct pool *pool,
		   const struct optimizer_range *ranges, size_t count, float *weights,
		   const float *gradients, float *slots, size_t stride, int64_t update);

/* ---- regularisers ---------------------------------------------------------------------------- */

/* Has any parameter of these layers a regulariser? Where none has, the others do nothing. */
bool regularizer_any(const struct model *model, int first_layer, int layer_count);

/* @pool may be NULL, here and below. */
double regularizer_penalty(struct pool *pool, const struct model *model, int first_layer,
			   int layer_count, const float *weights);

/* gradients += l1 sign(w) + 2 l2 w */
void regularizer_gradient(struct pool *pool, const struct model *model, int first_layer,
			  int layer_count, const float *weights, float *gradients);

#endif /* OPTIMIZER_RUN_H */
