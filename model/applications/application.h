/*
 * keras.applications: networks by name, as the JSON that Keras writes of them.
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
 * @at: {"application": "ResNet50", "config": {...}}, where config may say what the function of
 * keras.applications is given: include_top (true), weights (null alone), input_shape, pooling
 * ("avg", "max"; without the top), classes (1000), classifier_activation ("softmax"), alpha
 * (MobileNets), name. Other keys of @at are the caller's. @input: the image that comes in, used
 * where input_shape is absent, compared where it is there; NULL: Keras's default. @batch: 0: any.
 * *@out is a Functional model, the caller's to delete.
 */
enum status application_build(cJSON **out, const struct json_at *at,
			      const struct model_shape *input, int64_t batch, struct err *err);

/* The networks there are. */
const char *const *application_names(int *count);

/* Height and width of the images that the network @name is made for; 0: there is none. */
int64_t application_side(const char *name);

#endif /* APPLICATION_H */
