/*
 * Regularisers of a parameter, by Keras's names: l1 sum |w| + l2 sum w^2 is added to the loss.
 */
#ifndef MODEL_REGULARIZER_H
#define MODEL_REGULARIZER_H

#include "common/json.h"

/* "l2", "L1L2" (factors 0.01), or {"class_name": "L2", "config": {"l2": 0.0001}}; null: none. */
enum status model_regularizer_read(float *l1, float *l2, const struct json_at *at, struct err *err);

#endif /* MODEL_REGULARIZER_H */
