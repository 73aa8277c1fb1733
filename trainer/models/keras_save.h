/*
 * Saving a model as Keras does. The ending of the file's name says how: .keras and .h5 for a model
 * with its weights, .weights.h5, .h5 and any other (.npz) for weights alone. Whole or not at all;
 * the same weights give the same bytes.
 */
#ifndef KERAS_SAVE_H
#define KERAS_SAVE_H

#include <cjson/cJSON.h>

#include "model/model.h"

/* What keras_save_weights() and keras_save_model() would refuse of @path, before there is anything
 * to write. @json: the model's, of one that is to be saved; NULL: weights. */
enum status keras_save_check(const char *path, const cJSON *json, struct err *err);

/* .weights.h5 or .h5; others are .npz. */
enum status keras_save_weights(const struct model *model, const float *weights, const char *path,
			       struct err *err);

/* @json: as model_new() read it, but no application by name. */
enum status keras_save_model(const struct model *model, const cJSON *json, const float *weights,
			     const char *path, struct err *err);

#endif /* KERAS_SAVE_H */
