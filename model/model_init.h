/*
 * What a parameter begins with and what is added to the loss for it, by Keras's names.
 */
#ifndef MODEL_INIT_H
#define MODEL_INIT_H

#include <stddef.h>
#include <stdint.h>

#include "common/json.h"

enum model_init_kind {
	MODEL_INIT_CONSTANT,
	MODEL_INIT_UNIFORM,
	MODEL_INIT_NORMAL,
	MODEL_INIT_TRUNCATED,
	MODEL_INIT_ORTHOGONAL,
	MODEL_INIT_ONES_AT /* of an LSTM's bias: zeros, but for units of ones */
};

/* What to draw: Keras's scaling is worked in when it is read. */
struct model_init {
	enum model_init_kind kind;
	/* Constant: low; uniform: [low, high); normal: mean, deviation; orthogonal: low is the gain;
	 * ones: high from low on, low of them. */
	double low, high;
	int64_t columns; /* of an orthogonal matrix: the parameter's last dimension */
};

/* Read @at (a name or {class_name, config}); @fan_in and @fan_out scale the variance. */
enum status model_init_read(struct model_init *out, const struct json_at *at, int64_t fan_in,
			    int64_t fan_out, struct err *err);
/* By name, one of the supported (asserted). */
struct model_init model_init_named(const char *name, int64_t fan_in, int64_t fan_out);

/* Regularisers: l1 sum |w| + l2 sum w^2 is added to the loss. "l2", "L1L2" (factors 0.01), or
 * {"class_name": "L2", "config": {"l2": 0.0001}}; null: none. */
enum status model_regularizer_read(float *l1, float *l2, const struct json_at *at, struct err *err);

#endif /* MODEL_INIT_H */
