/*
 * Masks in the files of Keras 3, which lists the operations that compute them among the layers and
 * passes their results to the layers as the argument "mask". Here the layers that make a mask
 * compute it, and it is passed on as Keras does: these operations are left out.
 *
 * Threading: any. No state.
 */
#include <string.h>

#include "model/model_reader.h"

#define MASKS_MODULE "keras.src.ops.numpy"

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool is_class(const cJSON *layer, const char *name)
{
	const char *class_name = text_of(layer, "class_name");

	return class_name && !strcmp(class_name, name);
}

static bool is_mask(const cJSON *layer)
{
	const char *module = text_of(layer, "module");

	return module && !strcmp(module, MASKS_MODULE) &&
	       (is_class(layer, "NotEqual") || is_class(layer, "Any"));
}

/* The keras_history of a tensor; NULL: it is none. */
static const cJSON *history_of(const cJSON *tensor)
{
	return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tensor, "config"),
						"keras_history");
}

/* Argument @index of the only call of @layer. */
static const cJSON *argument_of(const cJSON *layer, int index)
{
	const cJSON *calls = cJSON_GetObjectItemCaseSensitive(layer, "inbound_nodes");
	const cJSON *args = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(calls, 0), "args");

	return cJSON_GetArrayItem(args, index);
}

/* The layer of @layers that outputs @tensor. */
static const cJSON *source_of(const cJSON *layers, const cJSON *tensor)
{
	const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(history_of(tensor), 0));
	const cJSON *layer;

	cJSON_ArrayForEach(layer, layers)
	{
		const char *other = text_of(layer, "name");

		if (name && other && !strcmp(name, other))
			return layer;
	}
	return NULL;
}

/* Whether @operation, a NotEqual, is what an Embedding or a Masking of the same input makes. */
static bool is_made_by_layer(const cJSON *layers, const cJSON *operation)
{
	const cJSON *input = history_of(argument_of(operation, 0)), *layer;
	const cJSON *number = argument_of(operation, 1);
	const double value = cJSON_IsNumber(number) ? number->valuedouble : 0.0;

	cJSON_ArrayForEach(layer, layers)
	{
		const cJSON *config = cJSON_GetObjectItemCaseSensitive(layer, "config");
		const cJSON *masked = cJSON_GetObjectItemCaseSensitive(config, "mask_value");
		const bool embeds =
			is_class(layer, "Embedding") && value == 0.0 &&
			cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(config, "mask_zero"));
		const bool masks = is_class(layer, "Masking") &&
				   value == (cJSON_IsNumber(masked) ? masked->valuedouble : 0.0);

		if ((embeds || masks) && input &&
		    cJSON_Compare(history_of(argument_of(layer, 0)), input, true))
			return true;
	}
	return false;
}

static bool is_known_mask(const cJSON *layers, const cJSON *operation)
{
	const cJSON *source = operation;

	if (is_class(operation, "Any"))
		source = source_of(layers, argument_of(operation, 0));
	return source && is_mask(source) && is_class(source, "NotEqual") &&
	       is_made_by_layer(layers, source);
}

/* Make null each tensor of the argument @at, or of the list that it is, which is one of @masks. */
static void clear_masks(const struct model_names *masks, cJSON *at)
{
	cJSON *item;

	if (cJSON_IsArray(at)) {
		cJSON_ArrayForEach(item, at) clear_masks(masks, item);
	} else if (cJSON_IsObject(at)) {
		const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(history_of(at), 0));

		if (!name || !model__names_find(masks, name))
			return;
		cJSON_Delete(at->child);
		at->child = NULL;
		at->type = cJSON_NULL;
	}
}

static void clear_arguments(const cJSON *layers, const struct model_names *masks)
{
	static const char *const names[] = {"mask", "query_mask", "value_mask", "key_mask"};
	const cJSON *layer, *call;

	cJSON_ArrayForEach(layer, layers)
	{
		cJSON_ArrayForEach(call, cJSON_GetObjectItemCaseSensitive(layer, "inbound_nodes"))
		{
			const cJSON *kwargs = cJSON_GetObjectItemCaseSensitive(call, "kwargs");

			for (size_t i = 0; i < ARRAY_LEN(names); i++)
				clear_masks(masks,
					    cJSON_GetObjectItemCaseSensitive(kwargs, names[i]));
		}
	}
}

bool model__lists_masks(const cJSON *config)
{
	const cJSON *layers = cJSON_GetObjectItemCaseSensitive(config, "layers"), *layer;
	bool found = false;
	int count = 0;

	cJSON_ArrayForEach(layer, layers)
	{
		found = found || is_mask(layer);
		count++;
	}
	return found && count <= MODEL_LAYERS; /* more are refused as they are */
}

enum status model__leave_masks_out(cJSON **out, const struct json_at *config, struct err *err)
{
	cJSON *copy = cJSON_Duplicate(config->node, true), *layers, *layer, *next;
	struct model_names masks = {0};
	struct json_at list;
	int index = 0;

	*out = NULL;
	layers = cJSON_GetObjectItemCaseSensitive(copy, "layers");
	if (!layers || !json_child(config, "layers", &list)) {
		cJSON_Delete(copy);
		return err_nomem(err);
	}
	cJSON_ArrayForEach(layer, layers)
	{
		const struct json_at at = model__item(&list, layer, index++);
		const char *name = text_of(layer, "name");

		if (err_stuck(err) || !is_mask(layer))
			continue;
		if (name && !model__names_find(&masks, name) && model__names_add(&masks, name, 0))
			err_nomem(err);
		else if (!is_known_mask(layers, layer))
			model_config_unsupported(
				&at, err,
				"\"%s\" (%s) is no mask that an Embedding "
				"(mask_zero) or a Masking makes: only such masks are "
				"supported",
				name ? name : "", text_of(layer, "class_name"));
	}
	if (!err_stuck(err)) {
		clear_arguments(layers, &masks);
		for (layer = layers->child; layer; layer = next) {
			next = layer->next;
			if (is_mask(layer))
				cJSON_Delete(cJSON_DetachItemViaPointer(layers, layer));
		}
		*out = copy;
	}
	model__names_free(&masks); /* which borrow the copy's */
	if (!*out)
		cJSON_Delete(copy);
	return err->status;
}
