/*
 * The rounded copy of a model's weights, which layers that compute in half read.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include "common/pool.h"
#include "trainer/models/model.h"

/*
 * Write the parameters that are half, of layers @first_layer .. @first_layer + @layer_count - 1,
 * into @halves, each value rounded to the nearest float16. Both blocks have the model's layout;
 * what is not half is left alone. With @learning only those that learn: what an update has changed.
 */
void model_round_weights(const struct model *model, struct pool *pool, int first_layer,
			 int layer_count, bool learning, const float *weights, float *halves);

#endif /* MODEL_POLICY_H */
