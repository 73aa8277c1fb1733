/*
 * The table of layers, and reading of the options they share. Failures are sticky in @err. No
 * state.
 */
#include "model/layers/layer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

#define ORTHOGONAL_MOST 2e10 /* limit on the multiplications to create one: 20 s */

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
	static const char *const names[] = {"Bidirectional", "TimeDistributed",
#define LAYER_NAME(kind, name, compute) name,
					    LAYER_MAP(LAYER_NAME)
#undef LAYER_NAME
	};

	*count = (int)ARRAY_LEN(names);
	return names;
}

enum status layer_read(struct model *model, struct model_layer *layer, const struct json_at *config,
		       struct err *err)
{
	static const struct model_option common[] = {
		{"name", .rule = MODEL_ANY},
		{"trainable", .rule = MODEL_ANY},
		{"dtype", .rule = MODEL_DTYPE},
		{"batch_input_shape", .rule = MODEL_ANY},
		{"batch_shape", .rule = MODEL_ANY},
		{"dynamic", .rule = MODEL_FALSE},
		{"autocast", .rule = MODEL_ANY},
		{"build_config", .rule = MODEL_ANY},
		{"quantization_config", .rule = MODEL_NULL},
	};
	const struct layer_ops *ops = layer->ops;

	layer->output = layer->input;
	model_config_check(config, ops->options.rows, ops->options.count, common, ARRAY_LEN(common),
			   err);
	if (ops->images) {
		/* An item must have 3 dimensions, as an image, or 2 for a sequence layer. */
		const bool sequence = ops->sequence;

		if (!err_stuck(err) && layer->input.ndim != (sequence ? 2 : 3))
			json_fail(config, err, "%s needs %s, but its input has %d dimension%s",
				  ops->class_name,
				  sequence ? "sequences (steps, channels)"
					   : "images (height, width, channels)",
				  layer->input.ndim, layer->input.ndim == 1 ? "" : "s");
	}
	if (!err_stuck(err) && ops->config_size > 0) {
		layer->config = model__alloc(model, 1, ops->config_size);
		if (!layer->config)
			err_nomem(err);
	}
	model_config_read(config, &ops->options, layer->config, layer, err);
	if (!err_stuck(err) && ops->read)
		ops->read(&(const struct layer_reading){model, layer, config, err});
	return err->status;
}

/* Find the option "NAME_part", or "part" if @name is empty; false: absent or null. */
static bool layer_param_option(const struct layer_reading *in, const char *name, const char *part,
			       struct json_at *out)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s%s", name, *name ? "_" : "", part);
	return model_option_at(in->config, key, out, in->err);
}

enum status layer__add_param(const struct layer_reading *in, const struct layer_param *param)
{
	struct model_init init =
		model_init_named(param->initializer, param->fan_in, param->fan_out);
	const char *option = param->option ? param->option : param->name;
	float l1 = 0.0f, l2 = 0.0f;
	struct model_param *added;
	struct json_at here;

	if (layer_param_option(in, option, "initializer", &here))
		model_init_read(&init, &here, param->fan_in, param->fan_out, in->err);
	if (layer_param_option(in, option, "regularizer", &here))
		model_regularizer_read(&l1, &l2, &here, in->err);
	init.columns = layer_last_dim(&param->shape);
	if (init.kind == MODEL_INIT_ORTHOGONAL) {
		/* Creating an orthogonal matrix costs the smaller side squared times the greater
		 * side. */
		const double columns = (double)layer_last_dim(&param->shape);
		const double rows = (double)model_shape_count(&param->shape) / columns;

		if (!err_stuck(in->err) && rows * columns * min(rows, columns) > ORTHOGONAL_MOST)
			model_config_limit(in->config, in->err,
					   "an orthogonal matrix of %.0f x %.0f would take minutes "
					   "to make: use another initializer, or weights.load",
					   rows, columns);
	}
	if (err_stuck(in->err) || model__add_param(in->model, in->layer, in->config, param->name,
						   &param->shape, &init, &added, in->err) != ST_OK)
		return in->err->status;
	added->trainable = in->layer->trainable && !param->fixed;
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

enum status layer__check_last_axis(const struct layer_reading *in)
{
	struct json_at here, item;
	int64_t axis;

	if (!model_option_given(in->config, "axis", &here, in->err))
		return in->err->status;
	item = here;
	if (cJSON_IsArray(here.node) && (json_count(&here) != 1 || !json_item(&here, 0, &item)))
		return model_config_unsupported(
			&here, in->err, "not supported: it must be the last axis alone here");
	if (json_int(&item, INT64_MIN, INT64_MAX, &axis, in->err) == ST_OK && axis != -1 &&
	    axis != in->layer->input.ndim)
		model_config_unsupported(&item, in->err,
					 "not supported: it must be the last axis (-1 or %d) here",
					 in->layer->input.ndim);
	return in->err->status;
}

/* ---- windows --------------------------------------------------------------------------------- */

enum status layer__pair(const struct json_at *at, int64_t least, int64_t most, int64_t out[2],
			struct err *err)
{
	struct json_at item;

	if (err_stuck(err))
		return err->status;
	if (!cJSON_IsArray(at->node)) {
		json_int(at, least, most, &out[0], err);
		out[1] = out[0];
		return err->status;
	}
	if (json_count(at) != 2)
		return json_fail(at, err, "must be a whole number or a list of two of them, not %d",
				 json_count(at));
	for (int i = 0; i < 2 && !err_stuck(err); i++) {
		json_item(at, i, &item);
		json_int(&item, least, most, &out[i], err);
	}
	return err->status;
}

enum status layer__window_option(const struct layer_reading *in, const char *key, int64_t least,
				 int64_t most, int64_t absent, int64_t out[LAYER_WAYS])
{
	struct json_at here, item;

	out[LAYER_Y] = out[LAYER_X] = absent;
	if (in->layer->ops->sequence)
		out[LAYER_Y] = 1;
	if (!(absent ? model_option_given(in->config, key, &here, in->err)
		     : model_option_need(in->config, key, &here, in->err)))
		return in->err->status;
	if (!in->layer->ops->sequence)
		return layer__pair(&here, least, most, out, in->err);
	if (cJSON_IsArray(here.node) && json_count(&here) == 1 && json_item(&here, 0, &item))
		here = item;
	return json_int(&here, least, most, &out[LAYER_X], in->err);
}

void layer__set_output(struct model_layer *layer, const int64_t sides[LAYER_WAYS], int64_t channels)
{
	if (layer->ops->sequence)
		layer->output = (struct model_shape){.ndim = 2, .dim = {sides[LAYER_X], channels}};
	else
		layer->output = (struct model_shape){
			.ndim = 3, .dim = {sides[LAYER_Y], sides[LAYER_X], channels}};
}

enum status layer__padding(const struct layer_reading *in, bool *same)
{
	static const char *const known[] = {"valid", "same"};
	size_t choice = 0;

	model_option_choice(in->config, "padding", known, ARRAY_LEN(known), &choice, in->err);
	*same = choice == 1;
	return in->err->status;
}

int64_t layer__windows(int64_t size, int64_t reach, int64_t stride, bool same, int64_t *before)
{
	int64_t places, outside;

	*before = 0;
	if (!same)
		return size < reach ? 0 : (size - reach) / stride + 1;
	places = (size - 1) / stride + 1;
	outside = (places - 1) * stride + reach - size;
	if (outside > 0)
		*before = outside / 2;
	return places;
}
