/*
 * keras.applications: networks by name, built as the JSON that Keras writes for them.
 *
 * Names, shapes and parameter counts are those of keras.applications in TensorFlow 2.6. There are
 * no pretrained weights.
 */
#ifndef APPLICATION_H
#define APPLICATION_H

#include <cjson/cJSON.h>

#include "common/json.h"
#include "model/model.h"

/*
 * Build the network @at: {"application": "ResNet50", "config": {...}}. The config may contain the
 * arguments of the function in keras.applications: include_top (true), weights (must be null),
 * input_shape, pooling ("avg", "max"; without the top), classes (1000), classifier_activation
 * ("softmax"), alpha (MobileNets), name. Other keys of @at are ignored. @input: the shape of the
 * input image, used if input_shape is absent, otherwise compared with it; NULL: Keras's default.
 * @batch: 0: any. *@out is a Functional model, which the caller deletes.
 */
enum status application_build(cJSON **out, const struct json_at *at,
			      const struct model_shape *input, int64_t batch, struct err *err);

/* The names of all networks. */
const char *const *application_names(int *count);

/* Side of the (square) images that the network @name is designed for; 0: unknown network. */
int64_t application_side(const char *name);

#endif /* APPLICATION_H */
