/*
 * ZeroPadding2D and ZeroPadding1D: zeros around images, and around sequences. On the device the
 * output is a view of the input and a constant (popops::pad), which the layer after it reads.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_zero_padding1d, layer_zero_padding2d;

#define PADDING_MOST 65536 /* pixels of zeros on a side */

/* "padding" is a number, [height, width] or [[top, bottom], [left, right]]; for a sequence a number
 * or [left, right]. */
static enum status padding_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"padding", MODEL_ANY},
		{"data_format", MODEL_CHANNELS_LAST},
	};
	const bool sequence = layer->ops->sequence;
	int64_t sides[LAYER_WAYS][2] = {{!sequence, !sequence}, {1, 1}};
	struct json_at here, item;

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(struct layer_pad), err);
	if (layer__check_images(layer, config, err) != ST_OK)
		return err->status;
	if (json_child(config, "padding", &here) && sequence) {
		layer__pair(&here, 0, PADDING_MOST, sides[LAYER_X], err);
	} else if (json_child(config, "padding", &here)) {
		if (cJSON_IsArray(here.node) && json_count(&here) != LAYER_WAYS)
			return json_fail(&here, err,
					 "must be a whole number, [height, width] or [[top, "
					 "bottom], [left, right]]");
		for (int way = 0; way < LAYER_WAYS; way++) {
			if (!json_item(&here, way, &item))
				item = here;
			layer__pair(&item, 0, PADDING_MOST, sides[way], err);
		}
	}
	*(struct layer_pad *)layer->config = (struct layer_pad){
		.top = sides[LAYER_Y][0],
		.bottom = sides[LAYER_Y][1],
		.left = sides[LAYER_X][0],
		.right = sides[LAYER_X][1],
	};
	for (int way = 0; way < LAYER_WAYS; way++)
		sides[way][0] += sides[way][1] + layer_side(&layer->input, way);
	layer__set_output(layer, (const int64_t[]){sides[LAYER_Y][0], sides[LAYER_X][0]},
			  layer_last_dim(&layer->input));
	return err->status;
}

const struct layer_ops layer_zero_padding2d = {
	.class_name = "ZeroPadding2D",
	.kind = LAYER_KIND_zero_padding2d,
	.read = padding_read,
};

const struct layer_ops layer_zero_padding1d = {
	.class_name = "ZeroPadding1D",
	.kind = LAYER_KIND_zero_padding1d,
	.read = padding_read,
	.sequence = true,
};
