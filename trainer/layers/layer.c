/*
 * The table of layers, and what they share. No state.
 */
#include "trainer/layers/layer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "trainer/layers/layer_internal.h"
#include "trainer/models/model_regularizer.h"

#define LAYER_MAP(X)                                                                               \
	X(layer_activation, "Activation")                                                          \
	X(layer_add, "Add")                                                                        \
	X(layer_average, "Average")                                                                \
	X(layer_average_pooling2d, "AveragePooling2D")                                             \
	X(layer_batch_normalization, "BatchNormalization")                                         \
	X(layer_concatenate, "Concatenate")                                                        \
	X(layer_conv2d, "Conv2D")                                                                  \
	X(layer_dense, "Dense")                                                                    \
	X(layer_depthwise_conv2d, "DepthwiseConv2D")                                               \
	X(layer_dropout, "Dropout")                                                                \
	X(layer_elu, "ELU")                                                                        \
	X(layer_flatten, "Flatten")                                                                \
	X(layer_global_average_pooling2d, "GlobalAveragePooling2D")                                \
	X(layer_global_max_pooling2d, "GlobalMaxPooling2D")                                        \
	X(layer_layer_normalization, "LayerNormalization")                                         \
	X(layer_leaky_relu, "LeakyReLU")                                                           \
	X(layer_maximum, "Maximum")                                                                \
	X(layer_max_pooling2d, "MaxPooling2D")                                                     \
	X(layer_maybe_outfeed, "MaybeOutfeed")                                                     \
	X(layer_minimum, "Minimum")                                                                \
	X(layer_multiply, "Multiply")                                                              \
	X(layer_normalization, "Normalization")                                                    \
	X(layer_outfeed, "Outfeed")                                                                \
	X(layer_relu, "ReLU")                                                                      \
	X(layer_rescaling, "Rescaling")                                                            \
	X(layer_reshape, "Reshape")                                                                \
	X(layer_separable_conv2d, "SeparableConv2D")                                               \
	X(layer_softmax, "Softmax")                                                                \
	X(layer_spatial_dropout2d, "SpatialDropout2D")                                             \
	X(layer_subtract, "Subtract")                                                              \
	X(layer_zero_padding2d, "ZeroPadding2D")

#define LAYER_EXTERN(ops, name) extern const struct layer_ops ops;
LAYER_MAP(LAYER_EXTERN)
#undef LAYER_EXTERN

static const struct {
	const struct layer_ops *ops;
	const char *name;
} layer_rows[] = {
#define LAYER_ROW(ops, name) {&(ops), (name)},
	LAYER_MAP(LAYER_ROW)
#undef LAYER_ROW
};

const struct layer_ops *layer_find(const char *class_name)
{
	for (size_t i = 0; i < ARRAY_LEN(layer_rows); i++)
		if (!strcmp(layer_rows[i].name, class_name))
			return layer_rows[i].ops;
	return NULL;
}

const char *const *layer_names(int *count)
{
	static const char *const names[] = {"InputLayer",
#define LAYER_NAME(ops, name) name,
					    LAYER_MAP(LAYER_NAME)
#undef LAYER_NAME
	};

	*count = (int)ARRAY_LEN(names);
	return names;
}

enum status layer__check(const struct json_at *config, const struct model_option *own, size_t count,
			 struct err *err)
{
	static const struct model_option common[] = {
		{"name", MODEL_ANY},        {"trainable", MODEL_ANY},
		{"dtype", MODEL_DTYPE},     {"batch_input_shape", MODEL_ANY},
		{"batch_shape", MODEL_ANY}, {"dynamic", MODEL_FALSE},
		{"autocast", MODEL_ANY},    {"build_config", MODEL_ANY},
	};

	return model_config_check(config, own, count, common, ARRAY_LEN(common), err);
}

enum status layer__begin(struct model *model, struct model_layer *layer,
			 const struct json_at *config, const struct model_option *own, size_t count,
			 size_t size, struct err *err)
{
	enum status status = layer__check(config, own, count, err);

	layer->output = layer->input;
	if (status != ST_OK)
		return status;
	layer->config = model__alloc(model, 1, size);
	return layer->config ? ST_OK : err_nomem(err);
}

enum status layer__check_images(const struct model_layer *layer, const struct json_at *config,
				struct err *err)
{
	if (layer->input.ndim == 3)
		return ST_OK;
	return json_fail(config, err,
			 "%s needs images (height, width, channels), but its input has %d "
			 "dimensions",
			 layer->ops->class_name, layer->input.ndim);
}

enum status layer__read_finish(struct model_layer *layer, const struct json_at *config,
			       struct err *err)
{
	enum status status = ST_OK;
	struct json_at here;

	layer->use_bias = true;
	if (json_child(config, "use_bias", &here))
		status = json_bool(&here, &layer->use_bias, err);
	if (status == ST_OK)
		status = model__read_activation(config, &layer->activation, err);
	layer->reads_output = layer__activation_needs_output(layer->activation);
	return status;
}

/* The value of "NAME_part"; false where it is absent or null. */
static bool layer_param_option(const struct json_at *config, const char *name, const char *part,
			       struct json_at *out)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s", name, part);
	return json_child(config, key, out) && !json_is_null(out);
}

enum status layer__add_param(struct model *model, struct model_layer *layer,
			     const struct json_at *config, const struct layer_param *param,
			     struct err *err)
{
	struct model_init init =
		model_init_named(param->initializer, param->fan_in, param->fan_out);
	const char *option = param->option ? param->option : param->name;
	float l1 = 0.0f, l2 = 0.0f;
	enum status status = ST_OK;
	struct model_param *added;
	struct json_at here;

	if (layer_param_option(config, option, "initializer", &here))
		status = model_init_read(&init, &here, param->fan_in, param->fan_out, err);
	if (status == ST_OK && layer_param_option(config, option, "regularizer", &here))
		status = model_regularizer_read(&l1, &l2, &here, err);
	if (status == ST_OK)
		status = model__add_param(model, layer, config, param->name, &param->shape, &init,
					  &added, err);
	if (status != ST_OK)
		return status;
	added->trainable = layer->trainable && !param->fixed;
	added->autocast = !param->fixed && !param->no_autocast;
	added->l1 = l1;
	added->l2 = l2;
	return ST_OK;
}

static const struct model_param *layer_pass_param(const struct layer_pass *pass, int index)
{
	assert(index < pass->layer->param_count);
	return &pass->model->params[pass->layer->first_param + index];
}

float *layer__weights(const struct layer_pass *pass, int index)
{
	const struct model_param *param = layer_pass_param(pass, index);

	assert(!param->half || pass->halves);
	return (param->half ? pass->halves : pass->weights) + param->offset;
}

float *layer__gradients(const struct layer_pass *pass, int index)
{
	return pass->gradients + layer_pass_param(pass, index)->offset;
}

int64_t layer__last_dim(const struct model_shape *shape)
{
	return shape->ndim ? shape->dim[shape->ndim - 1] : 1;
}
