/*
 * The values of a model's parameters: those that Keras begins with, and the rounded copy that
 * layers which compute in half read.
 */
#ifndef MODEL_VALUES_H
#define MODEL_VALUES_H

#include "common/pool.h"
#include "common/rng.h"
#include "model/model.h"

/* Draw @count values as @init says. */
void model_init_fill(const struct model_init *init, float *values, size_t count, struct rng *rng);

/* Keras's initial values (kernel: GlorotUniform, bias: zeros), keyed by (seed, layer name). */
void model_init_weights(const struct model *model, float *weights, uint64_t seed);

/*
 * Write the parameters that are half, of layers @first_layer .. @first_layer + @layer_count - 1,
 * into @halves, each value rounded to the nearest float16. Both blocks have the model's layout;
 * what is not half is left alone. With @learning only those that learn: what an update has changed.
 */
void model_round_weights(const struct model *model, struct pool *pool, int first_layer,
			 int layer_count, bool learning, const float *weights, float *halves);

#endif /* MODEL_VALUES_H */
