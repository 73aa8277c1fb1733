/*
 * Saving a model as Keras does. The extension selects the format: .keras and .h5 for a model with
 * its weights; .weights.h5, .h5 or any other (.npz) for weights only. A file is written completely
 * or not at all; the same weights give the same bytes.
 */
#ifndef KERAS_SAVE_H
#define KERAS_SAVE_H

#include <cjson/cJSON.h>

#include "common/err.h"
#include "model/model.h"

/* Check @path before there is anything to write: fail as keras_save_weights() or keras_save_model()
 * would. @json: the JSON of a model to be saved; NULL: weights. */
enum status keras_save_check(const char *path, const cJSON *json, struct err *err);

/* Save as .weights.h5 or .h5, by extension; all others are .npz. */
enum status keras_save_weights(const struct model *model, const float *weights, const char *path,
			       struct err *err);

/* @json: as model_new() read it, but not an application by name. */
enum status keras_save_model(const struct model *model, const cJSON *json, const float *weights,
			     const char *path, struct err *err);

#endif /* KERAS_SAVE_H */
