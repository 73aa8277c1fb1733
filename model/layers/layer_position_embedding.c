/*
 * PositionEmbedding of keras_hub (formerly keras_nlp): for an input (steps, features) the output
 * is the first `steps` rows of a trained table, whatever the input's values are. An Add combines
 * it with the token embeddings. No state.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_position_embedding;

static enum status position_read(struct model *model, struct model_layer *layer,
				 const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"sequence_length", MODEL_ANY},
		{"initializer", MODEL_ANY},
	};
	struct layer_param table = {
		.name = "position_embeddings", .initializer = "GlorotUniform", .option = ""};
	struct json_at here;
	int64_t length = 1;

	layer__check(config, own, ARRAY_LEN(own), err);
	layer->output = layer->input;
	if (!err_stuck(err) && layer->input.ndim != 2)
		json_fail(config, err, "PositionEmbedding needs sequences (steps, features)");
	if (model_option_need(config, "sequence_length", &here, err) &&
	    json_int(&here, 1, INT32_MAX, &length, err) == ST_OK && length < layer->input.dim[0])
		json_fail(&here, err, "is less than the input's %lld steps",
			  (long long)layer->input.dim[0]);
	if (err_stuck(err))
		return err->status;
	table.shape = (struct model_shape){.ndim = 2, .dim = {length, layer->input.dim[1]}};
	table.fan_in = length;
	table.fan_out = layer->input.dim[1];
	return layer__add_param(model, layer, config, &table, err);
}

/* Forward: a broadcast over the items; backward: a sum over the items. */
static void position_lower(struct layer_lowering *lowering)
{
	const int64_t count = layer__lower_count(lowering);
	struct layer_op op = layer__copy(count, layer_last_dim(&lowering->layer->output),
					 LAYER_PARAM(0), LAYER_OUTPUT);

	if (lowering->phase == IPU_PHASE_F) {
		layer__lower(lowering, "BroadcastTo", &op);
		return;
	}
	op = layer__reduce(count, count / lowering->batch, LAYER_GRAD_OUTPUT, LAYER_GRAD_PARAM(0));
	op.makes = 0;
	if (lowering->layer->trainable)
		layer__lower(lowering, "BroadcastTo/Grad", &op);
	op = layer__map(
		&(struct ipu_elements){.count = count, .operands = 0, .times = {[IPU_FN_FILL] = 1}},
		0, LAYER_GRAD_INPUT);
	if (layer__wants_any(lowering))
		layer__lower(lowering, "Fill", &op);
}

const struct layer_ops layer_position_embedding = {
	.class_name = "PositionEmbedding",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_position_embedding,
	.read = position_read,
	.lower = position_lower,
};
