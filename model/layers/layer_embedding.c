/*
 * Tables of trained rows: Embedding, and PositionEmbedding of keras_hub (formerly keras_nlp). No
 * state.
 */
#include "common/mem.h"
#include "ipu/plan/ipu_op.h"
#include "model/layers/layer_internal.h"

struct layer_table {
	int64_t rows;
};

/* Each input value, a row number from 0, becomes that row. */
static const struct model_option embedding_options[] = {
	{"input_dim", MODEL_INT, LAYER_CONFIG(table, rows), .required = true, .strict = true,
	 .least = 1, .most = INT32_MAX},
	{"output_dim", MODEL_INT, LAYER_FIELD(units), .required = true, .strict = true, .least = 1,
	 .most = INT32_MAX},
	{"input_length", .rule = MODEL_ANY},
	{"mask_zero", MODEL_BOOL, LAYER_FIELD(makes_mask)},
	LAYER_PARAM_OPTIONS("embeddings"),
	{"activity_regularizer", .rule = MODEL_NULL},
	{"sparse", .rule = MODEL_FALSE},
	{"dtype", .rule = MODEL_INPUT_DTYPE}, /* Keras 2.0 writes int32 */
};

static enum status embedding_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const int64_t rows = ((const struct layer_table *)layer->config)->rows;
	struct layer_param table = {.name = "embeddings", .initializer = "RandomUniform"};

	if (layer->input.ndim >= MODEL_DIMS)
		return json_fail(in->config, in->err,
				 "Embedding adds a dimension, and there are %d at most",
				 MODEL_DIMS);
	layer->output.dim[layer->output.ndim++] = layer->units;
	table.shape = (struct model_shape){.ndim = 2, .dim = {rows, layer->units}};
	table.fan_in = rows;
	table.fan_out = layer->units;
	return layer__add_param(in, &table);
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
	.options = MODEL_OPTIONS(embedding_options),
	.config_size = sizeof(struct layer_table),
	.read = embedding_read,
	.lower = embedding_lower,
	.each_step = true,
	.reads_inputs = true,
	.looks_up = true,
};

/* For an input (steps, features) the output is the first `steps` rows, whatever the input's values
 * are. An Add combines it with the token embeddings. */
static const struct model_option position_options[] = {
	{"sequence_length", MODEL_INT, LAYER_CONFIG(table, rows), .required = true, .strict = true,
	 .least = 1, .most = INT32_MAX},
	{"initializer", .rule = MODEL_ANY},
};

static enum status position_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const int64_t length = ((const struct layer_table *)layer->config)->rows;
	struct layer_param table = {
		.name = "position_embeddings", .initializer = "GlorotUniform", .option = ""};
	struct json_at here;

	if (layer->input.ndim != 2)
		return json_fail(in->config, in->err,
				 "PositionEmbedding needs sequences (steps, features)");
	if (length < layer->input.dim[0] && json_child(in->config, "sequence_length", &here))
		return json_fail(&here, in->err, "is less than the input's %lld steps",
				 (long long)layer->input.dim[0]);
	table.shape = (struct model_shape){.ndim = 2, .dim = {length, layer->input.dim[1]}};
	table.fan_in = length;
	table.fan_out = layer->input.dim[1];
	return layer__add_param(in, &table);
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
	.options = MODEL_OPTIONS(position_options),
	.config_size = sizeof(struct layer_table),
	.read = position_read,
	.lower = position_lower,
};
