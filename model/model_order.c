/*
 * Layers in the order of pipeline stages.
 *
 * What is new is made beside what is there, and taken over at the end: a failure changes nothing.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "model/model_internal.h"

struct order_key {
	int stage, position;
};

struct order {
	int *place; /* by old position: the new one */
	struct model_layer *layers;
	struct model_param *params;
};

static int order_compare(const void *a, const void *b)
{
	const struct order_key *x = a, *y = b;

	return SORTED_BY(x, y, stage, position);
}

static enum status order_check(const struct model *model, const int *stage, struct err *err)
{
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int j = 0; j < layer->input_count; j++) {
			int from = layer->inputs[j];

			if (from != MODEL_INPUT && stage[from] > stage[i])
				return err_set(
					err, ST_INVALID,
					"layer \"%s\" of stage %d needs the output of \"%s\" "
					"of stage %d: a layer can only depend on layers of its "
					"own stage and of those before",
					layer->name, stage[i], model->layers[from].name,
					stage[from]);
		}
	}
	return ST_OK;
}

static bool order_is_sorted(const struct model *model, const int *stage)
{
	for (int i = 1; i < model->layer_count; i++)
		if (stage[i] < stage[i - 1])
			return false;
	return true;
}

static enum status order_inputs(struct order *order, struct model *model, struct model_layer *layer,
				struct err *err)
{
	int *inputs = model__alloc(model, (size_t)layer->input_count, sizeof(*inputs));

	if (!inputs)
		return err_nomem(err);
	for (int i = 0; i < layer->input_count; i++)
		inputs[i] = layer->inputs[i] == MODEL_INPUT ? MODEL_INPUT
							    : order->place[layer->inputs[i]];
	layer->inputs = inputs;
	return ST_OK;
}

/* Layers to their new places, each followed by its parameters. */
static enum status order_fill(struct order *order, struct model *model,
			      const struct order_key *keys, struct err *err)
{
	enum status status = ST_OK;
	size_t offset = 0;
	int params = 0;

	for (int i = 0; i < model->layer_count && status == ST_OK; i++) {
		const struct model_layer *old = &model->layers[keys[i].position];
		struct model_layer *layer = &order->layers[i];

		*layer = *old;
		layer->position = i;
		layer->first_param = params;
		status = order_inputs(order, model, layer, err);
		for (int j = 0; j < old->param_count; j++) {
			struct model_param *param = &order->params[params++];

			*param = model->params[old->first_param + j];
			param->layer = i;
			param->offset = offset;
			offset += model_align(param->count);
		}
	}
	return status;
}

static enum status order_apply(struct order *order, struct model *model, struct order_key *keys,
			       struct err *err)
{
	enum status status;

	for (int i = 0; i < model->layer_count; i++)
		order->place[keys[i].position] = i;
	order->layers = model__alloc(model, (size_t)model->layer_count, sizeof(*order->layers));
	order->params = model__alloc(model, (size_t)model->param_count + 1, sizeof(*order->params));
	if (!order->layers || !order->params)
		return err_nomem(err);
	status = order_fill(order, model, keys, err);
	if (status != ST_OK)
		return status;
	model->layers = order->layers;
	model->params = order->params;
	return ST_OK;
}

enum status model_order(struct model *model, const int *stage, struct err *err)
{
	size_t count = (size_t)model->layer_count;
	struct order order = {0};
	enum status status = order_check(model, stage, err);
	struct order_key *keys;

	if (status != ST_OK || order_is_sorted(model, stage))
		return status;
	keys = mem_calloc(count, sizeof(*keys));
	order.place = mem_calloc(count, sizeof(*order.place));
	if (keys && order.place) {
		for (int i = 0; i < model->layer_count; i++)
			keys[i] = (struct order_key){stage[i], i};
		qsort(keys, count, sizeof(*keys), order_compare);
		status = order_apply(&order, model, keys, err);
	} else {
		status = err_nomem(err);
	}
	mem_free(keys);
	mem_free(order.place);
	return status;
}
