/*
 * Tables of trained rows: Embedding, and PositionEmbedding of keras_hub (formerly keras_nlp). No
 * state.
 */
#include "common/mem.h"
#include "ipu/plan/ipu_composite.h"
#include "model/layers/layer_internal.h"

/* Each input value, a row number from 0, becomes that row. */
static enum status embedding_read(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"input_dim", .rule = MODEL_ANY},
		{"output_dim", .rule = MODEL_ANY},
		{"input_length", .rule = MODEL_ANY},
		{"mask_zero", .rule = MODEL_ANY},
		LAYER_PARAM_OPTIONS("embeddings"),
		{"activity_regularizer", .rule = MODEL_NULL},
		{"sparse", .rule = MODEL_FALSE},
		{"dtype", .rule = MODEL_INPUT_DTYPE}, /* Keras 2.0 writes int32 */
	};
	struct layer_param table = {.name = "embeddings", .initializer = "RandomUniform"};
	struct json_at here;
	int64_t rows = 1;

	layer__check(config, own, ARRAY_LEN(own), err);
	if (model_option_need(config, "input_dim", &here, err))
		json_int(&here, 1, INT32_MAX, &rows, err);
	if (model_option_need(config, "output_dim", &here, err))
		json_int(&here, 1, INT32_MAX, &layer->units, err);
	model_option_bool(config, "mask_zero", &layer->makes_mask, err);
	if (!err_stuck(err) && layer->input.ndim >= MODEL_DIMS)
		json_fail(config, err, "Embedding adds a dimension, and there are %d at most",
			  MODEL_DIMS);
	if (err_stuck(err))
		return err->status;
	layer->output = layer->input;
	layer->output.dim[layer->output.ndim++] = layer->units;
	table.shape = (struct model_shape){.ndim = 2, .dim = {rows, layer->units}};
	table.fan_in = rows;
	table.fan_out = layer->units;
	return layer__add_param(model, layer, config, &table, err);
}

/* Row numbers have no gradient: it is filled with zeros. */
static void embedding_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const struct ipu_composite from = {
		.kind = IPU_COMPOSITE_EMBEDDING,
		.pass = forward ? IPU_FORWARD : IPU_BACKWARD_WEIGHTS,
		.batch = lowering->batch,
		.entries = lowering->model->params[layer->first_param].shape.dim[0],
		.units = layer->units,
		.lookups = model_shape_count(&layer->input),
	};
	struct layer_op op = {.writes = forward ? (unsigned)LAYER_OUTPUT : LAYER_GRAD_PARAM(0)};
	struct ipu_op ops[IPU_COMPOSITE_OPS];
	const int count = ipu_composite_ops(&from, ops);

	for (int i = 0; i < count && (forward || layer->trainable); i++) {
		op.op = ops[i];
		if (op.op.kind == IPU_OP_SLICE)
			op.reads = LAYER_INPUT | (forward ? LAYER_PARAM(0) : LAYER_GRAD_OUTPUT);
		layer__lower(lowering, ops[i].name, &op);
	}
	op = layer__map(&(struct ipu_elements){.count = from.batch * from.lookups,
					       .operands = 0,
					       .times = {[IPU_FN_FILL] = 1}},
			0, LAYER_GRAD_INPUT);
	if (layer__wants_any(lowering))
		layer__lower(lowering, "Fill", &op);
}

const struct layer_ops layer_embedding = {
	.class_name = "Embedding",
	.kind = LAYER_KIND_embedding,
	.read = embedding_read,
	.lower = embedding_lower,
	.reads_inputs = true,
	.looks_up = true,
};

/* For an input (steps, features) the output is the first `steps` rows, whatever the input's values
 * are. An Add combines it with the token embeddings. */
static enum status position_read(struct model *model, struct model_layer *layer,
				 const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"sequence_length", .rule = MODEL_ANY},
		{"initializer", .rule = MODEL_ANY},
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
