/*
 * Reshape: the same values in another shape.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_reshape;

/* Read the dimensions, with 1 for a -1; *@open receives the index of that one, or -1. */
static enum status reshape_dims(const struct json_at *at, struct model_shape *out, int *open,
				struct err *err)
{
	enum status status = json_array(at, err);
	struct json_at item;

	*open = -1;
	if (status != ST_OK)
		return status;
	if (json_count(at) > MODEL_DIMS)
		return json_fail(at, err, "a shape has at most %d dimensions without the batch",
				 MODEL_DIMS);
	*out = (struct model_shape){.ndim = json_count(at)};
	for (int i = 0; json_item(at, i, &item); i++) {
		status = json_int(&item, -1, INT32_MAX, &out->dim[i], err);
		if (status != ST_OK)
			return status;
		if (out->dim[i] > 0)
			continue;
		if (!out->dim[i] || *open >= 0)
			return json_fail(&item, err,
					 "dimensions are at least 1; one of them may be -1, for "
					 "what is left");
		*open = i;
		out->dim[i] = 1;
	}
	return ST_OK;
}

static enum status report_mismatch(const struct model_layer *layer, const struct json_at *at,
				   struct err *err)
{
	char text[192];

	model_shape_text(&layer->input, 0, text, sizeof(text));
	return json_fail(at, err, "%s has %lld values for each item, which do not fill this shape",
			 text, (long long)model_shape_count(&layer->input));
}

static enum status reshape_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"target_shape", MODEL_ANY}};
	int64_t count = model_shape_count(&layer->input), filled = 1;
	struct json_at here;
	int open;

	(void)model;
	layer__check(config, own, ARRAY_LEN(own), err);
	if (!model_option_need(config, "target_shape", &here, err) ||
	    reshape_dims(&here, &layer->output, &open, err) != ST_OK)
		return err->status;
	for (int i = 0; i < layer->output.ndim; i++)
		if (__builtin_mul_overflow(filled, layer->output.dim[i], &filled))
			return report_mismatch(layer, &here, err);
	if (open >= 0 ? count % filled != 0 : count != filled)
		return report_mismatch(layer, &here, err);
	if (open >= 0)
		layer->output.dim[open] = count / filled;
	return ST_OK;
}

const struct layer_ops layer_reshape = {
	.class_name = "Reshape",
	.kind = LAYER_KIND_reshape,
	.read = reshape_read,
	.pass_through = true,
};
