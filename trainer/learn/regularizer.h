/*
 * Regularisation: what the parameters' regularisers add to the loss, and to the gradients.
 *
 * As in Keras, the penalty of every parameter that has a regulariser counts, l1 sum |w| + l2 sum
 * w^2, and is part of every micro-batch's loss; only parameters that learn have a gradient of it.
 * Sums are taken in double and in a fixed order: the same bytes for any pool.
 */
#ifndef REGULARIZER_H
#define REGULARIZER_H

#include "common/pool.h"
#include "model/model.h"

/* Has any parameter of these layers a regulariser? Where none has, the others do nothing. */
bool regularizer_any(const struct model *model, int first_layer, int layer_count);

/* @pool may be NULL, here and below. */
double regularizer_penalty(struct pool *pool, const struct model *model, int first_layer,
			   int layer_count, const float *weights);

/* gradients += l1 sign(w) + 2 l2 w */
void regularizer_gradient(struct pool *pool, const struct model *model, int first_layer,
			  int layer_count, const float *weights, float *gradients);

#endif /* REGULARIZER_H */
