/*
 * A model's life, and what one may ask it.
 *
 * Threading: a model is read-only once it is made. Ownership: the model and all it points to lie in
 * one arena, which the model holds in `memory`.
 */
#include "model/model.h"

#include "common/mem.h"
#include "model/layers/layer.h"
#include "model/model_reader.h"

/* What `memory` points to. */
struct model_box {
	struct arena arena;
	struct model model;
};

static enum status model_read(struct model_box *box, const struct json_at *at,
			      const struct model_shape *input, struct err *err)
{
	struct model_reader reader = {
		.model = &box->model, .arena = &box->arena, .data = input, .err = err};
	enum status status;

	if (arena_init(&reader.scratch, 0))
		return err_nomem(err);
	status = model__read(&reader, at);
	arena_fini(&reader.scratch);
	model__names_free(&reader.taken);
	model__names_free(&reader.shared);
	mem_free(reader.list);
	return status;
}

enum status model_new(struct model **out, const struct json_at *at, const struct model_shape *input,
		      struct err *err)
{
	struct model_box *box;
	enum status status;

	*out = NULL;
	box = mem_calloc(1, sizeof(*box));
	if (!box)
		return err_nomem(err);
	/* The first block is chained when it is asked for. */
	if (arena_init(&box->arena, 0)) {
		mem_free(box);
		return err_nomem(err);
	}

	box->model.memory = box;
	status = model_read(box, at, input, err);
	if (status != ST_OK) {
		model_free(&box->model);
		return status;
	}
	model_set_policy(&box->model, false);
	*out = &box->model;
	return ST_OK;
}

void model_free(struct model *model)
{
	struct model_box *box;

	if (!model)
		return;
	box = model->memory;
	arena_fini(&box->arena);
	mem_free(box);
}

struct arena *model__arena(struct model *model)
{
	struct model_box *box = model->memory;

	return &box->arena;
}

void *model__alloc(struct model *model, size_t count, size_t size)
{
	return arena_alloc(model__arena(model), count, size);
}

/* ---- asking ---------------------------------------------------------------------------------- */

const struct model_shape *model_input_shape(const struct model *model,
					    const struct model_layer *layer, int index)
{
	int from = layer->inputs[index];

	return from == MODEL_INPUT ? &model->input : &model->layers[from].output;
}

int64_t model_layer_flops(const struct model *model, int layer, int64_t batch)
{
	const struct model_layer *at = &model->layers[layer];

	return at->ops->flops ? at->ops->flops(at, batch) : 0;
}

const char *model_layer_class(const struct model_layer *layer)
{
	return layer->ops->class_name;
}

enum model_outfeed model_layer_outfeed(const struct model_layer *layer)
{
	return layer->ops->outfeed;
}
