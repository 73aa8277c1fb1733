/*
 * The values of a model's parameters: those that Keras begins with, and those that layers in half
 * read.
 *
 * Threading: none but the pool's; slices depend on the parameters' sizes alone.
 */
#include "trainer/models/model_values.h"

#include <string.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_half.h"
#include "trainer/kernels/kernel_work.h"

#define POLICY_GRAIN 65536 /* floats of a slice */

/* ---- initial values -------------------------------------------------------------------------- */

static float init_truncated(struct rng *rng)
{
	float value = rng_normal(rng);

	while (value < -2.0f || value > 2.0f)
		value = rng_normal(rng);
	return value;
}

void model_init_fill(const struct model_init *init, float *values, size_t count, struct rng *rng)
{
	float low = (float)init->low, high = (float)init->high;

	for (size_t i = 0; i < count; i++) {
		switch (init->kind) {
		case MODEL_INIT_CONSTANT:
			values[i] = low;
			break;
		case MODEL_INIT_UNIFORM:
			values[i] = low + (high - low) * rng_uniform(rng);
			break;
		case MODEL_INIT_NORMAL:
			values[i] = low + high * rng_normal(rng);
			break;
		case MODEL_INIT_TRUNCATED:
			values[i] = low + high * init_truncated(rng);
			break;
		}
	}
}

void model_init_weights(const struct model *model, float *weights, uint64_t seed)
{
	memset(weights, 0, model->weights * sizeof(*weights));
	for (int i = 0; i < model->param_count; i++) {
		const struct model_param *param = &model->params[i];
		const struct model_layer *layer = &model->layers[param->layer];
		struct rng rng;

		/* The parameter's place in its layer stands where replicas do: all replicas begin
		 * with the same weights. */
		rng_init(&rng, seed, rng_stream(layer->name), 0,
			 (uint32_t)(i - layer->first_param));
		model_init_fill(&param->init, weights + param->offset, param->count, &rng);
	}
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

	kernel_round_half(r->to + begin, r->from + begin, min(left, POLICY_GRAIN));
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
