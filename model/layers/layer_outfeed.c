/*
 * Outfeed and MaybeOutfeed: pass their input on and also send it to the host.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_outfeed;
extern const struct layer_ops layer_maybe_outfeed;

/* Read "queue", an option of ours: Keras's layers get the queue object. */
static enum status outfeed_read_queue(struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	struct json_at here;
	const char *text;

	layer->output = layer->input;
	if (!model_option_at(config, "queue", &here, err) || json_text(&here, &text, err) != ST_OK)
		return err->status;
	if (text[0] == '\0')
		return json_fail(&here, err, "is no name of a queue; null: chosen for it");
	layer->outfeed_queue = arena_printf(model__arena(model), "%s", text);
	return layer->outfeed_queue ? ST_OK : err_nomem(err);
}

static enum status outfeed_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"queue", MODEL_ANY}};

	layer__check(config, own, ARRAY_LEN(own), err);
	return outfeed_read_queue(model, layer, config, err);
}

static enum status maybe_outfeed_read(struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"final_outfeed", MODEL_ANY},
						  {"queue", MODEL_ANY}};
	struct json_at here;

	layer->final_outfeed = true;
	layer__check(config, own, ARRAY_LEN(own), err);
	if (model_option_given(config, "final_outfeed", &here, err))
		json_bool(&here, &layer->final_outfeed, err);
	return outfeed_read_queue(model, layer, config, err);
}

const struct layer_ops layer_outfeed = {
	.class_name = "Outfeed",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_outfeed,
	.read = outfeed_read,
	.pass_through = true,
	.outfeed = MODEL_OUTFEED,
};

const struct layer_ops layer_maybe_outfeed = {
	.class_name = "MaybeOutfeed",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_maybe_outfeed,
	.read = maybe_outfeed_read,
	.pass_through = true,
	.outfeed = MODEL_MAYBE_OUTFEED,
};
