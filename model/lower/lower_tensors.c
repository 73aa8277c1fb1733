/*
 * Lowering: the tensors that exist before any operation. Threads: none.
 */
#include "model/layers/layer_config.h"
#include "model/lower/lower_internal.h"

static void set_shape(struct ipu_tensor *tensor, int64_t batch, const struct model_shape *shape)
{
	if (batch > 0)
		tensor->dim[tensor->ndim++] = batch;
	for (int d = 0; d < shape->ndim; d++)
		tensor->dim[tensor->ndim++] = shape->dim[d];
}

enum ipu_dtype lower_infeed_dtype(const struct run_file *run, const struct model *model)
{
	return run->infeed.dtype == RUN_UINT8     ? IPU_UINT8
	       : model_input_is_rows(model)       ? IPU_INT32
	       : run->infeed.dtype == RUN_FLOAT16 ? IPU_FLOAT16
						  : IPU_FLOAT32;
}

static void add_input(struct lowering *lowering)
{
	struct ipu_tensor tensor = {
		.name = "infeed",
		.kind = IPU_TENSOR_INPUT,
		.dtype = lower_infeed_dtype(lowering->from->run, lowering->from->model)};

	set_shape(&tensor, lower__batch(lowering), &lowering->from->model->input);
	lowering->input = lower__tensor(lowering, &tensor);
}

/* Keras's labels are float32, including class numbers. They are streamed to the loss's stage. */
static void add_labels(struct lowering *lowering)
{
	const struct target_kind *kind = &lowering->from->targets;
	struct ipu_tensor tensor = {.name = "infeed/labels",
				    .kind = IPU_TENSOR_LABELS,
				    .ndim = 1,
				    .dim = {lower__batch(lowering)},
				    .stage = lowering->from->layout->stages - 1};

	lowering->labels = lowering->weights = -1;
	if (!lowering->from->losses)
		return;
	if (kind->width > 0)
		tensor.dim[tensor.ndim++] = kind->width;
	lowering->labels = lower__tensor(lowering, &tensor);
	if (kind->weights == 0)
		return;
	tensor.name = "infeed/sample_weight";
	tensor.ndim = kind->weights > 1 ? 2 : 1;
	tensor.dim[1] = kind->weights > 1 ? kind->weights : 0;
	lowering->weights = lower__tensor(lowering, &tensor);
}

/* ---- layers ---------------------------------------------------------------------------------- */

int lower__output(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct ipu_tensor tensor = {
		.name = lower__name(lowering, "%s/output", layer->name),
		.layer = layer->name,
		.kind = IPU_TENSOR_ACTIVATION,
		.dtype = layer->half ? IPU_FLOAT16 : IPU_FLOAT32,
		.stage = lowering->from->layout->stage[position],
	};

	set_shape(&tensor, lower__batch(lowering), &layer->output);
	return lower__tensor(lowering, &tensor);
}

static void add_layer(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct lower_layer *of = &lowering->layers[position];
	const size_t inputs = (size_t)layer->input_count;

	of->output = of->kept = of->between = of->between_too = of->gradient = of->state = -1;
	if (layer->state > 0 && model_layer_again(lowering->from->model, layer))
		of->state =
			lowering->layers[lowering->from->model->params[layer->first_param].layer]
				.state;
	else if (layer->state > 0)
		of->state = lower__flat(lowering, position, IPU_TENSOR_STATE,
					layer->half ? IPU_FLOAT16 : IPU_FLOAT32, "state",
					lower__batch(lowering) * layer->state);
	of->edge = arena_alloc(lowering->arena, (size_t)of->edges_most + 1, sizeof(*of->edge));
	of->given = arena_alloc(lowering->arena, inputs, sizeof(*of->given));
	of->wanted = arena_alloc(lowering->arena, inputs, sizeof(*of->wanted));
	of->cast_input = arena_alloc(lowering->arena, inputs, sizeof(*of->cast_input));
	if (!of->edge || !of->given || !of->wanted || !of->cast_input)
		lowering->failed = true;
	for (int i = 0; i < layer->input_count && !lowering->failed; i++) {
		const int at = layer->inputs[i];

		of->given[i] = -1;
		of->wanted[i] = of->needs && at != MODEL_INPUT && lowering->layers[at].needs;
	}
}

/* A layer's output needs a gradient if the layer or one before it is trained, and if the model's
 * output depends on it. */
static void mark_needs(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;
	const int last = model->layer_count - 1;

	for (int i = 0; i <= last && lowering->training; i++) {
		const struct model_layer *layer = &model->layers[i];
		struct lower_layer *of = &lowering->layers[i];

		for (int p = 0; p < layer->param_count; p++)
			of->needs |= model->params[layer->first_param + p].trainable;
		for (int k = 0; k < layer->input_count; k++)
			of->needs |= layer->inputs[k] != MODEL_INPUT &&
				     lowering->layers[layer->inputs[k]].needs;
	}
	lowering->layers[last].outputs = true;
	for (int i = last; i >= 0; i--) {
		struct lower_layer *of = &lowering->layers[i];

		of->needs &= of->outputs;
		for (int k = 0; k < model->layers[i].input_count; k++) {
			const int at = model->layers[i].inputs[k];

			if (at == MODEL_INPUT)
				continue;
			lowering->layers[at].outputs |= of->outputs;
			lowering->layers[at].edges_most += of->needs;
		}
	}
}

/* ---- what an inference folds ----------------------------------------------------------------- */

/* Return whether a layer's result is linear in its weights, by output channel. */
static bool scales_channels(const struct model_layer *layer)
{
	const enum layer_kind kind = layer->ops->kind;

	return layer->activation == MODEL_LINEAR &&
	       (kind == LAYER_KIND_conv1d || kind == LAYER_KIND_conv2d ||
		kind == LAYER_KIND_depthwise_conv1d || kind == LAYER_KIND_depthwise_conv2d ||
		kind == LAYER_KIND_separable_conv1d || kind == LAYER_KIND_separable_conv2d);
}

/* Return whether the factors of a BatchNormalization are in the weights of the convolution before
 * it: in a run that trains nothing, where they are constants, as in a model that was exported. */
static bool is_folded(const struct lowering *lowering, int position)
{
	const struct model *model = lowering->from->model;
	const struct model_layer *layer = &model->layers[position], *from;
	const int at = layer->inputs[0];
	int readers = 0;

	if (lowering->from->run->fit.wanted || at == MODEL_INPUT || layer->mask ||
	    layer->ops->kind != LAYER_KIND_batch_normalization)
		return false;
	from = &model->layers[at];
	for (int p = layer->first_param; p < layer->first_param + layer->param_count; p++)
		if (model->params[p].l1 > 0.0f || model->params[p].l2 > 0.0f)
			return false; /* a penalty reads it */
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *other = &model->layers[i];

		for (int k = 0; k < other->input_count; k++)
			readers += other->inputs[k] == at;
		if (other->param_count > 0 &&
		    ((i != at && other->first_param == from->first_param) ||
		     (i != position && other->first_param == layer->first_param)))
			return false; /* another call has the same weights */
	}
	return readers == 1 && scales_channels(from) &&
	       lowering->from->layout->stage[at] == lowering->from->layout->stage[position];
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int param_tensor(struct lowering *lowering, const struct model_param *param,
			enum ipu_tensor_kind kind, enum ipu_dtype dtype, const char *prefix,
			const char *suffix)
{
	const struct model_layer *layer = &lowering->from->model->layers[param->layer];
	struct ipu_tensor tensor = {
		.name = lower__name(lowering, "%s%s/%s%s", prefix, layer->name, param->short_name,
				    suffix),
		.layer = layer->name,
		.kind = kind,
		.dtype = dtype,
		.stage = lowering->from->layout->stage[param->layer],
	};

	set_shape(&tensor, 0, &param->shape);
	return lower__tensor(lowering, &tensor);
}

static void add_trainable(struct lowering *lowering, const struct model_param *param,
			  struct lower_param *of)
{
	const struct run_file *run = lowering->from->run;
	const struct optimizer *optimizer = lowering->from->optimizer;
	const bool half = run->accumulation.wanted && run->accumulation.dtype == RUN_FLOAT16;

	of->gradient =
		param_tensor(lowering, param, IPU_TENSOR_WEIGHT_GRADIENT, IPU_FLOAT32, "", "_grad");
	if (lowering->from->layout->accumulation > 1)
		of->accumulator =
			param_tensor(lowering, param, IPU_TENSOR_ACCUMULATOR,
				     half ? IPU_FLOAT16 : IPU_FLOAT32, "GradientAccumulation/", "");
	for (int s = 0; s < optimizer_slots(optimizer); s++) {
		const char *prefix = lower__name(lowering, "%s/%s/", optimizer_name(optimizer),
						 optimizer_slot_name(optimizer, s));
		const int slot = param_tensor(lowering, param, IPU_TENSOR_OPTIMIZER_STATE,
					      IPU_FLOAT32, prefix, "");

		if (s == 0)
			of->first_slot = slot;
	}
}

/* Return whether a parameter is in the weights of the layer before; a bias is left if that has
 * none. */
static bool is_folded_param(const struct lowering *lowering, int p)
{
	const struct model *model = lowering->from->model;
	const struct model_layer *layer = &model->layers[model->params[p].layer];

	return lowering->layers[layer->position].folded &&
	       (model->layers[layer->inputs[0]].use_bias ||
		p != layer->first_param + layer_batch_norm_bias(layer));
}

static void add_param(struct lowering *lowering, int p)
{
	const struct model_param *param = &lowering->from->model->params[p];
	struct lower_param *of = &lowering->params[p];

	*of = (struct lower_param){.gradient = -1,
				   .accumulator = -1,
				   .half = -1,
				   .half_gradient = -1,
				   .sum = -1,
				   .first_slot = -1};
	if (is_folded_param(lowering, p)) {
		of->weight = -1;
		return;
	}
	of->weight = param_tensor(lowering, param,
				  param->trainable ? IPU_TENSOR_WEIGHT : IPU_TENSOR_STATE,
				  IPU_FLOAT32, "", "");
	if (param->trainable && lowering->layers[param->layer].needs)
		add_trainable(lowering, param, of);
}

void lower__tensors(struct lowering *lowering)
{
	const struct model *model = lowering->from->model;

	lowering->layers =
		arena_alloc(lowering->arena, (size_t)model->layer_count, sizeof(*lowering->layers));
	lowering->params = arena_alloc(lowering->arena, (size_t)model->param_count + 1,
				       sizeof(*lowering->params));
	if (!lowering->layers || !lowering->params) {
		lowering->failed = true;
		return;
	}
	mark_needs(lowering);
	add_input(lowering);
	add_labels(lowering);
	for (int i = 0; i < model->layer_count && !lowering->failed; i++) {
		add_layer(lowering, i);
		lowering->layers[i].folded = is_folded(lowering, i);
	}
	for (int p = 0; p < model->param_count && !lowering->failed; p++)
		add_param(lowering, p);
}
