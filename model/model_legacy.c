/*
 * Names of other versions of Keras, and Keras's layers that are not supported, with what replaces
 * them or comes nearest: one table row each. No state.
 *
 * TensorFlow 2.4 removed the classes and arguments of Keras for IPUs; Keras 2 removed those of
 * Keras 1.
 */
#include <string.h>

#include "common/mem.h"
#include "model/model_config.h"

struct legacy_row {
	const char *name, *instead;
};

static const struct legacy_row legacy_classes[] = {
	{"IPUModel", "was removed with TensorFlow 2.4: use \"Functional\""},
	{"ipu.keras.Model", "was removed with TensorFlow 2.4: use \"Functional\""},
	{"IPUSequential", "was removed with TensorFlow 2.4: use \"Sequential\""},
	{"ipu.keras.Sequential", "was removed with TensorFlow 2.4: use \"Sequential\""},
	{"PipelineModel", "was removed with TensorFlow 2.4: use \"Functional\", and give the "
			  "stages in the run file's pipeline.stages"},
	{"PipelineSequential", "was removed with TensorFlow 2.4: use \"Sequential\", and give the "
			       "stages in the run file's pipeline.stages"},
	{"Convolution2D", "is Keras 1's name: since Keras 2 it is \"Conv2D\" (load and save the "
			  "model with Keras 2)"},
	{"AtrousConvolution2D", "is Keras 1's name: since Keras 2 it is \"Conv2D\" with "
				"\"dilation_rate\" (load and save the model with Keras 2)"},
	{"SeparableConvolution2D", "is Keras 1's name: since Keras 2 it is \"SeparableConv2D\" "
				   "(load and save the model with Keras 2)"},
	{"Merge", "is Keras 1's name: since Keras 2 it is \"Add\", \"Multiply\" or "
		  "\"Concatenate\" (load and save the model with Keras 2)"},
	{"TFOpLambda", "is a TensorFlow function called on a layer's output: use a layer instead "
		       "(\"Add\" for x + y)"},
	{"TensorFlowOpLayer", "is a TensorFlow operation called on a layer's output: use a layer "
			      "instead (\"Add\" for x + y)"},
	{"SlicingOpLambda", "is a slice of a layer's output: Cropping1D and Cropping2D cut borders "
			    "off, and no layer cuts elsewhere"},
	{"Lambda", "holds Python code, which cannot be run here: \"Rescaling\" is x * scale + "
		   "offset, \"Activation\" a function by name; \"Reshape\", \"Permute\" and "
		   "\"RepeatVector\" change shapes, \"Add\", \"Multiply\", \"Average\" and "
		   "\"Concatenate\" join inputs; data can be prepared before training"},
	{"RNN", "holds a cell: use \"LSTM\", \"GRU\" or \"SimpleRNN\""},
	{"ConvLSTM2D", "is not supported: \"Conv2D\" with the steps as channels comes nearest"},
	{"Conv3D", "is not supported: \"Conv2D\" with the third dimension as channels comes "
		   "nearest"},
	{"RandomBrightness", "is not supported: \"RandomFlip\", \"RandomRotation\" and their like "
			     "vary where things are, not how bright; without the layer the model "
			     "computes the same in inference"},
	{"RandomContrast", "is not supported: \"RandomFlip\", \"RandomRotation\" and their like "
			   "vary where things are, not their contrast; without the layer the model "
			   "computes the same in inference"},
	{"RandomHeight", "makes pictures of any height, and shapes are fixed here: \"RandomZoom\" "
			 "comes nearest"},
	{"RandomWidth", "makes pictures of any width, and shapes are fixed here: \"RandomZoom\" "
			"comes nearest"},
	{"Dot", "is not supported: of two vectors it is \"Multiply\", then \"Dense\" of one unit "
		"with kernel_initializer \"ones\", use_bias and trainable false"},
	{"Identity",
	 "changes nothing: leave it out, or put \"Activation\" of \"linear\" in its place"},
	{"AdditiveAttention",
	 "is not supported: \"Attention\", which scores by dot products, comes nearest"},
	{"GroupedQueryAttention", "is not supported: \"MultiHeadAttention\", with keys and values "
				  "for each head, comes nearest"},
	{"GroupQueryAttention", "is not supported: \"MultiHeadAttention\", with keys and values "
				"for each head, comes nearest"},
	{"CuDNNLSTM", "is \"LSTM\" with another order of weights: make the model with \"LSTM\" in "
		      "Keras, whose load_weights() converts them, and save that"},
	{"CuDNNGRU", "is \"GRU\" with another order of weights: make the model with \"GRU\" "
		     "(reset_after) in Keras, whose load_weights() converts them, and save that"},
	{"UnitNormalization", "is not supported: \"LayerNormalization\" comes nearest"},
	{"RMSNormalization", "is not supported: \"LayerNormalization\" comes nearest"},
	{"SpectralNormalization", "is not supported: save the model with the layer in it instead"},
	{"EinsumDense",
	 "is not supported: \"Dense\", along the last axis, and \"Permute\" come nearest"},
	{"LocallyConnected1D",
	 "is not supported: \"Conv1D\", whose places share their weights, comes nearest"},
	{"LocallyConnected2D",
	 "is not supported: \"Conv2D\", whose places share their weights, comes nearest"},
	{"ThresholdedReLU", "is \"ReLU\" with its theta as \"threshold\""},
	{"ActivityRegularization", "is not supported: a \"kernel_regularizer\" comes nearest; "
				   "without the layer the model computes the same in inference"},
	{"ConvLSTM1D", "is not supported: \"Conv1D\" with the steps as channels comes nearest"},
	{"StackedRNNCells",
	 "holds cells: use \"LSTM\", \"GRU\" or \"SimpleRNN\" one after the other"},
	{"GetItem", "is a slice of a layer's output: Cropping1D and Cropping2D cut borders off, "
		    "and no layer cuts elsewhere"},
	{"Conv3DTranspose", "has three dimensions: layers of one and of two are supported"},
	{"MaxPooling3D", "has three dimensions: layers of one and of two are supported"},
	{"AveragePooling3D", "has three dimensions: layers of one and of two are supported"},
	{"GlobalMaxPooling3D", "has three dimensions: layers of one and of two are supported"},
	{"GlobalAveragePooling3D", "has three dimensions: layers of one and of two are supported"},
	{"UpSampling3D", "has three dimensions: layers of one and of two are supported"},
	{"ZeroPadding3D", "has three dimensions: layers of one and of two are supported"},
	{"Cropping3D", "has three dimensions: layers of one and of two are supported"},
	{"SpatialDropout3D", "has three dimensions: layers of one and of two are supported"},
	{"ConvLSTM3D", "has three dimensions: layers of one and of two are supported"},
	{"StringLookup", "prepares data: do that before training"},
	{"IntegerLookup", "prepares data: do that before training"},
	{"CategoryEncoding", "prepares data: do that before training"},
	{"Hashing", "prepares data: do that before training"},
	{"HashedCrossing", "prepares data: do that before training"},
	{"Discretization", "prepares data: do that before training"},
	{"TextVectorization", "is not supported: make numbers of words before training, which "
			      "\"Embedding\" takes"},
};

static const struct model_legacy_option legacy_options[] = {
	{"accumulate_outfeed", MODEL_LEGACY_PLACE, "pipeline.accumulate_outfeed"},
	{"allow_recompute", MODEL_LEGACY_PLACE, "ipu.allow_recompute"},
	{"auto_select_ipus", MODEL_LEGACY_PLACE, "ipu.auto_select_ipus"},
	{"backward_propagation_stages_poplar_options", MODEL_LEGACY_PLACE,
	 "pipeline.backward_propagation_stages_poplar_options"},
	{"batch_serialization_iterations", MODEL_LEGACY_REFUSED,
	 "a micro-batch is computed whole; give a smaller data.batch_size and a greater "
	 "gradient_accumulation.steps_per_replica"},
	{"computational_stages", MODEL_LEGACY_REFUSED,
	 "its stages are made of its layers, as pipeline.stages says"},
	{"device_mapping", MODEL_LEGACY_PLACE,
	 "pipeline.stages\" (of layers) or \"pipeline.device_mapping"},
	{"experimental_normalize_gradients", MODEL_LEGACY_PLACE, "gradient_accumulation.reduction"},
	{"forward_propagation_stages_poplar_options", MODEL_LEGACY_PLACE,
	 "pipeline.forward_propagation_stages_poplar_options"},
	{"gradient_accumulation_count", MODEL_LEGACY_PLACE,
	 "gradient_accumulation.steps_per_replica"},
	{"gradient_accumulation_dtype", MODEL_LEGACY_PLACE, "gradient_accumulation.dtype"},
	{"gradient_accumulation_reduction_method", MODEL_LEGACY_PLACE,
	 "gradient_accumulation.reduction"},
	{"gradient_accumulation_steps_per_replica", MODEL_LEGACY_PLACE,
	 "gradient_accumulation.steps_per_replica"},
	{"infeed_queue", MODEL_LEGACY_REFUSED,
	 "its batches come from \"data\"; infeed.prefetch_depth says how many ahead"},
	{"inputs", MODEL_LEGACY_REFUSED, "what a stage gets is what the stages before it send on"},
	{"io_tiles", MODEL_LEGACY_PLACE, "ipu.io_tiles"},
	{"num_io_tiles", MODEL_LEGACY_PLACE, "ipu.io_tiles.num_io_tiles"},
	{"offload_activations", MODEL_LEGACY_PLACE, "pipeline.offload_activations"},
	{"offload_gradient_accumulation_buffers", MODEL_LEGACY_PLACE,
	 "pipeline.offload_gradient_accumulation_buffers"},
	{"offload_weight_update_variables", MODEL_LEGACY_PLACE,
	 "pipeline.offload_weight_update_variables"},
	{"offload_weights", MODEL_LEGACY_PLACE, "pipeline.offload_weights"},
	{"optimizer_function", MODEL_LEGACY_REFUSED,
	 "its weights are updated by compile.optimizer"},
	{"outfeed_loss", MODEL_LEGACY_REFUSED,
	 "its loss and metrics are those of \"compile\", and are sent always"},
	{"outfeed_mask", MODEL_LEGACY_REFUSED, "\"outfeed\" says which tensors are sent"},
	{"outfeed_queue", MODEL_LEGACY_REFUSED,
	 "its results are sent by themselves; \"outfeed\" says which tensors are, too"},
	{"pipeline_device_mapping", MODEL_LEGACY_PLACE,
	 "pipeline.stages\" (of layers) or \"pipeline.device_mapping"},
	{"pipeline_schedule", MODEL_LEGACY_PLACE, "pipeline.schedule"},
	{"pipeline_stage_assignment", MODEL_LEGACY_PLACE, "pipeline.stages"},
	{"place_ops_on_io_tiles", MODEL_LEGACY_PLACE, "ipu.io_tiles.place_ops_on_io_tiles"},
	{"prefetch_depth", MODEL_LEGACY_PLACE, "infeed.prefetch_depth"},
	{"recomputation_mode", MODEL_LEGACY_PLACE, "pipeline.recomputation_mode"},
	{"repeat_count", MODEL_LEGACY_REFUSED,
	 "the pipeline is repeated as often as compile.steps_per_execution needs"},
	{"replicated_optimizer_state_sharding", MODEL_LEGACY_PLACE,
	 "pipeline.replicated_optimizer_state_sharding"},
	{"replicated_weight_sharding", MODEL_LEGACY_PLACE, "pipeline.replicated_weight_sharding"},
	{"replication_factor", MODEL_LEGACY_REMOVED,
	 "the replicas are ipu.auto_select_ipus divided by the IPUs of the stages"},
	{"validation_data", MODEL_LEGACY_PLACE, "fit.validation"},
	{"weight_update_poplar_options", MODEL_LEGACY_PLACE,
	 "pipeline.weight_update_poplar_options"},
};

static const struct legacy_row legacy_present[] = {
	{"BatchNormalizationV1", "BatchNormalization"},
	{"BatchNormalizationV2", "BatchNormalization"},
	{"Model", "Functional"},
};

/* TensorFlow's functions of two tensors that are layers, too. */
static const struct legacy_row legacy_functions[] = {
	{"__operators__.add", "Add"},  {"math.add", "Add"},         {"math.subtract", "Subtract"},
	{"math.multiply", "Multiply"}, {"math.maximum", "Maximum"}, {"math.minimum", "Minimum"},
};

static const struct legacy_row *legacy_find(const struct legacy_row *rows, size_t count,
					    const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

void model_legacy_class(const struct json_at *at, const char *class_name, struct err *err)
{
	const char *part = strstr(class_name, "ipu.keras."), *last = strrchr(class_name, '.');
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(at->node, "config");
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(config, "name"));
	const struct legacy_row *row =
		legacy_find(legacy_classes, ARRAY_LEN(legacy_classes), part ? part : class_name);

	if (!row && part && last)
		row = legacy_find(legacy_classes, ARRAY_LEN(legacy_classes), last + 1);
	if (row)
		model_config_unsupported(at, err, "%s%s%s\"%s\" %s", name ? "\"" : "",
					 name ? name : "", name ? "\": " : "", class_name,
					 row->instead);
}

const struct model_legacy_option *model_legacy_option(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(legacy_options); i++)
		if (!strcmp(legacy_options[i].name, name))
			return &legacy_options[i];
	return NULL;
}

void model_legacy_keys(const struct json_at *config, struct err *err)
{
	struct json_at here = {0};

	while (!err_stuck(err) && json_next(config, &here)) {
		const struct model_legacy_option *row =
			here.key ? model_legacy_option(here.key) : NULL;

		if (row)
			model_config_unsupported(&here, err,
						 row->kind == MODEL_LEGACY_PLACE
							 ? "is \"%s\" in a run file"
							 : "not supported, leave it out: %s",
						 row->what);
	}
}

const char *model_legacy_present(const char *class_name)
{
	const struct legacy_row *row =
		legacy_find(legacy_present, ARRAY_LEN(legacy_present), class_name);

	return row ? row->instead : class_name;
}

const char *model_legacy_function(const cJSON *entry)
{
	const cJSON *class_name = cJSON_GetObjectItemCaseSensitive(entry, "class_name");
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(entry, "config");
	const char *function =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(config, "function"));
	const struct legacy_row *row;

	if (!function || !cJSON_IsString(class_name) ||
	    strcmp(class_name->valuestring, "TFOpLambda") != 0)
		return NULL;
	row = legacy_find(legacy_functions, ARRAY_LEN(legacy_functions), function);
	return row ? row->instead : NULL;
}
