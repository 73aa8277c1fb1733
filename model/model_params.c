/*
 * A model's parameters: where they lie in its block, what they begin with, and whether they fit.
 */
#include <string.h>

#include "model/layers/layer.h"
#include "model/model_internal.h"

#define PARAMS_FIRST  8
#define PARAMS_VALUES (INT64_C(1) << 39) /* the most values of a model */

/* The list doubles whenever its length is a power of two, so no capacity is kept. */
static int params_grow(struct model *model)
{
	size_t count = (size_t)model->param_count;
	struct model_param *params;

	if (count && (count < PARAMS_FIRST || (count & (count - 1))))
		return 0;
	params = model__alloc(model, count ? 2 * count : PARAMS_FIRST, sizeof(*params));
	if (!params)
		return -1;
	if (count)
		memcpy(params, model->params, count * sizeof(*params));
	model->params = params;
	return 0;
}

/* Whether this machine could train it is another question: a model may be read to plan it. */
static enum status params_fit(const struct model *model, const struct json_at *at,
			      const struct model_shape *shape, struct err *err)
{
	double added = 1.0, count;

	for (int i = 0; i < shape->ndim; i++)
		added *= (double)shape->dim[i];
	count = (double)model->weights + added;
	if (count <= (double)PARAMS_VALUES)
		return ST_OK;
	json_fail(at, err, "the weights up to this layer would take %.1f TB: more than is planned",
		  4.0 * count * 1e-12);
	if (err)
		err->status = ST_LIMIT;
	return ST_LIMIT;
}

enum status model__add_param(struct model *model, struct model_layer *layer,
			     const struct json_at *at, const char *short_name,
			     const struct model_shape *shape, const struct model_init *init,
			     struct model_param **out, struct err *err)
{
	enum status status = params_fit(model, at, shape, err);
	struct model_param *param;
	const char *name;

	*out = NULL;
	if (status != ST_OK)
		return status;
	name = arena_printf(model__arena(model), "%s/%s:0", layer->name, short_name);
	if (!name || params_grow(model))
		return err_nomem(err);

	param = &model->params[model->param_count++];
	*param = (struct model_param){
		.name = name,
		.short_name = short_name,
		.layer = layer->position,
		.shape = *shape,
		.offset = model->weights,
		.count = (size_t)model_shape_count(shape),
		.init = *init,
		.trainable = layer->trainable,
		.autocast = true,
	};
	model->weights += model_align(param->count);
	layer->param_count++;
	*out = param;
	return ST_OK;
}

int64_t model_layer_params(const struct model *model, int layer)
{
	const struct model_layer *at = &model->layers[layer];
	size_t count = 0;

	for (int i = 0; i < at->param_count; i++)
		count += model->params[at->first_param + i].count;
	return (int64_t)count;
}
