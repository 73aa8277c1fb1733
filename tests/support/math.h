/*
 * What the tests of the trainer's mathematics share: models from text, numbers from a generator.
 */
#ifndef SUPPORT_MATH_H
#define SUPPORT_MATH_H

#include "common/json.h"
#include "support/support.h"
#include "model/model.h"

/* A model and the JSON it was read from. */
struct math_model {
	cJSON *json;
	struct model *model;
};

/* The list of layers as Keras writes it, without the outer object (' stands for a quotation mark);
 * fails the test on an error. */
void math_model_open(struct math_model *out, const char *layers, int ndim, const int64_t *dims);
void math_model_close(struct math_model *model);

/* x' = 1664525 x + 1013904223; the upper 24 bits. script/make-torch-golden.py does the same. */
uint32_t math_lcg(uint32_t *state);
float math_lcg_unit(uint32_t *state); /* [0, 1) */
void math_fill(float *values, size_t count, uint32_t seed, float low, float high);

/*
 * Fail unless each of @gradient is the slope of value(@context) over the number that it belongs to,
 * by central differences in double, up to @error (|slope| + @floor). @what names them.
 */
void math_check_slopes(double (*value)(const void *context), const void *context, double *numbers,
		       size_t count, const float *gradient, double error, double floor,
		       const char *what);

#endif /* SUPPORT_MATH_H */
