/*
 * Keras's dtype policies: which layers compute in half. No state.
 */
#include <string.h>

#include "model/layers/layer.h"
#include "model/model_config.h"
#include "model/model_internal.h"

enum model_policy model__read_policy(const struct json_at *config)
{
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(config->node, "dtype");
	const char *name = model_config_dtype(node);

	if (!name)
		return MODEL_POLICY_OPEN;
	if (!strcmp(name, "mixed_float16"))
		return MODEL_POLICY_MIXED;
	return cJSON_IsObject(node) ? MODEL_POLICY_FLOAT32 : MODEL_POLICY_TEXT;
}

void model_set_policy(struct model *model, bool mixed_float16)
{
	bool said[MODEL_POLICIES] = {false};
	bool follows[MODEL_POLICIES];

	for (int i = 0; i < model->layer_count; i++)
		if (model_layer_outfeed(&model->layers[i]) == MODEL_NO_OUTFEED)
			said[model->layers[i].policy] = true;
	follows[MODEL_POLICY_OPEN] = true;
	follows[MODEL_POLICY_TEXT] = !said[MODEL_POLICY_MIXED];
	follows[MODEL_POLICY_FLOAT32] =
		!said[MODEL_POLICY_OPEN] && !said[MODEL_POLICY_TEXT] && !said[MODEL_POLICY_MIXED];
	follows[MODEL_POLICY_MIXED] = false;

	for (int i = 0; i < model->layer_count; i++) {
		struct model_layer *layer = &model->layers[i];

		layer->half = follows[layer->policy] ? mixed_float16
						     : layer->policy == MODEL_POLICY_MIXED;
	}
	for (int i = 0; i < model->param_count; i++) {
		struct model_param *param = &model->params[i];

		param->half = param->autocast && model->layers[param->layer].half;
	}
}

bool model_any_half(const struct model *model)
{
	for (int i = 0; i < model->layer_count; i++)
		if (model->layers[i].half)
			return true;
	return false;
}
