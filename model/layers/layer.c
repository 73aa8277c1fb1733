/*
 * The table of layers, and what they share. No state.
 */
#include "model/layers/layer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"
#include "model/model_regularizer.h"

#define LAYER_EXTERN(kind, name, compute) extern const struct layer_ops layer_##kind;
LAYER_MAP(LAYER_EXTERN)
#undef LAYER_EXTERN

static const struct layer_ops *const layer_table[] = {
#define LAYER_ROW(kind, name, compute) [LAYER_KIND_##kind] = &layer_##kind,
	LAYER_MAP(LAYER_ROW)
#undef LAYER_ROW
};

const struct layer_ops *layer_find(const char *class_name)
{
	for (size_t i = 0; i < ARRAY_LEN(layer_table); i++)
		if (!strcmp(layer_table[i]->class_name, class_name))
			return layer_table[i];
	return NULL;
}

const char *const *layer_names(int *count)
{
	static const char *const names[] = {"InputLayer",
#define LAYER_NAME(kind, name, compute) name,
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
	layer->reads_output = layer_activation_needs_output(layer->activation);
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

int64_t layer_last_dim(const struct model_shape *shape)
{
	return shape->ndim ? shape->dim[shape->ndim - 1] : 1;
}

int64_t layer_rows(const struct model_layer *layer, int64_t batch)
{
	return batch * (model_shape_count(&layer->input) / layer_last_dim(&layer->input));
}
