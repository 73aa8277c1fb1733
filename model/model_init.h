/*
 * Initial values and regularisers of parameters, by Keras's names.
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
	MODEL_INIT_ONES_AT /* an LSTM's bias: zeros, except ones in one range of units */
};

/* The distribution to draw from; Keras's variance scaling is already applied. */
struct model_init {
	enum model_init_kind kind;
	/* Constant: low is the value. Uniform: [low, high). Normal: low is the mean, high the
	 * standard deviation. Orthogonal: low is the gain. Ones: units [low, 2 low) are `high`. */
	double low, high;
	int64_t columns; /* orthogonal: the parameter's last dimension */
};

/* Read @at (a name or {class_name, config}); @fan_in and @fan_out scale the variance. */
enum status model_init_read(struct model_init *out, const struct json_at *at, int64_t fan_in,
			    int64_t fan_out, struct err *err);
/* The initializer @name, which must be supported (asserted). */
struct model_init model_init_named(const char *name, int64_t fan_in, int64_t fan_out);

/* Read a regulariser, which adds l1 sum |w| + l2 sum w^2 to the loss: "l2", "L1L2" (factors
 * 0.01), or {"class_name": "L2", "config": {"l2": 0.0001}}; null: none. */
enum status model_regularizer_read(float *l1, float *l2, const struct json_at *at, struct err *err);

#endif /* MODEL_INIT_H */
