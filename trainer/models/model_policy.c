/*
 * Keras's dtype policies: which layers compute in half, and the weights that they read.
 *
 * Threading: none but the pool's; slices depend on the parameters' sizes alone.
 */
#include "trainer/models/model_policy.h"

#include <string.h>

#include "trainer/kernels/kernel_half.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/layer.h"
#include "trainer/models/model_config.h"
#include "trainer/models/model_internal.h"

#define POLICY_GRAIN 65536 /* floats of a slice */

/* ---- which layers ---------------------------------------------------------------------------- */

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

/* ---- the rounded copy ------------------------------------------------------------------------ */

struct policy_round {
	const float *from;
	float *to;
	size_t count;
};

static void policy_round_slice(void *context, unsigned slice)
{
	const struct policy_round *r = context;
	const size_t begin = (size_t)slice * POLICY_GRAIN, left = r->count - begin;

	kernel_round_half(r->to + begin, r->from + begin,
			  left < POLICY_GRAIN ? left : POLICY_GRAIN);
}

void model_round_weights(const struct model *model, struct pool *pool, int first_layer,
			 int layer_count, bool learning, const float *weights, float *halves)
{
	for (int i = first_layer; i < first_layer + layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int p = layer->first_param; p < layer->first_param + layer->param_count; p++) {
			const struct model_param *param = &model->params[p];
			struct policy_round round = {.from = weights + param->offset,
						     .to = halves + param->offset,
						     .count = param->count};

			if (param->half && (param->trainable || !learning))
				pool_share(pool, kernel_work_floats(2 * (int64_t)param->count),
					   policy_round_slice, &round,
					   (unsigned)((param->count + POLICY_GRAIN - 1) /
						      POLICY_GRAIN));
		}
	}
}
