/*
 * Every kind of layer with its options, and models of one layer that are refused: shapes,
 * parameters, work, and the device operations of each phase are those of before, in
 * tests/golden/layers.txt, which UPDATE_GOLDEN=1 rewrites. How a layer computes has its own tests,
 * in the rooms of the trainer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/layers/layer.h"
#include "support/lowered.h"
#include "support/support.h"

enum {
	BATCH = 3
};

/* ' stands for a quotation mark. */
struct sample {
	const char *class_name, *config;
	const char *inputs; /* a shape for each: "5,4 4" */
};

#define IMAGE "5,6,4"
#define STEPS "5,4"

/* clang-format off */
static const struct sample samples[] = {
	{"Dense", "'units': 3", "4"},
	{"Dense", "'units': 3, 'use_bias': false, 'activation': 'relu'", STEPS},
	{"Dense", "'units': 3, 'activation': 'softmax'", "4"},
	{"Dense", "'units': 3, 'activation': 'gelu', 'dtype': 'mixed_float16'", STEPS},
	{"Dense", "'units': 3, 'activation': 'sigmoid', 'trainable': false", "4"},
	{"Dense", "'units': 3, 'kernel_initializer': 'he_normal', 'bias_initializer': 'ones', "
		  "'kernel_regularizer': 'l2', 'bias_regularizer': 'L1L2'", "4"},
	{"Dense", "'units': 3, 'kernel_initializer': 'Orthogonal'", "4"},
	{"Dense", "'units': 3", ""},
	{"Dense", "'units': 3000000000", "4"},
	{"Dense", "'units': 100000, 'kernel_initializer': 'Orthogonal'", "4000"},
	{"Activation", "'activation': 'linear'", "4"},
	{"Activation", "'activation': 'relu'", STEPS},
	{"Activation", "'activation': 'softmax'", STEPS},
	{"Activation", "'activation': 'elu'", "4"},
	{"Activation", "'activation': 'exponential'", "4"},
	{"Activation", "'activation': 'gelu'", "4"},
	{"Activation", "'activation': 'hard_sigmoid'", "4"},
	{"Activation", "'activation': 'leaky_relu'", "4"},
	{"Activation", "'activation': 'log_softmax'", "4"},
	{"Activation", "'activation': 'mish'", "4"},
	{"Activation", "'activation': 'relu6'", "4"},
	{"Activation", "'activation': 'selu'", "4"},
	{"Activation", "'activation': 'sigmoid'", "4"},
	{"Activation", "'activation': 'softplus'", "4"},
	{"Activation", "'activation': 'softsign'", "4"},
	{"Activation", "'activation': 'swish'", "4"},
	{"Activation", "'activation': 'tanh'", "4"},
	{"Softmax", "", STEPS},
	{"Softmax", "'axis': 2", STEPS},
	{"Softmax", "'axis': 1", STEPS},
	{"Softmax", "'axis': [1, 2]", STEPS},
	{"ReLU", "", "4"},
	{"ReLU", "'max_value': 6.0", "4"},
	{"ReLU", "'max_value': 2.0, 'negative_slope': 0.5, 'threshold': 1.0", STEPS},
	{"LeakyReLU", "", "4"},
	{"LeakyReLU", "'alpha': 0.25", "4"},
	{"ELU", "'alpha': 0.5", "4"},
	{"PReLU", "", IMAGE},
	{"PReLU", "'shared_axes': [1, 2]", IMAGE},
	{"PReLU", "'shared_axes': [1], 'alpha_initializer': 'ones'", IMAGE},
	{"PReLU", "'shared_axes': [2]", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 3", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': [2, 3], 'strides': [1, 2], 'padding': 'same', "
		   "'use_bias': false, 'activation': 'relu'", IMAGE},
	{"Conv2D", "'filters': 6, 'kernel_size': 2, 'groups': 2, 'dilation_rate': 2", IMAGE},
	{"Conv2D", "'filters': 6, 'kernel_size': 2, 'groups': 3", IMAGE},
	{"Conv2D", "'filters': 5, 'kernel_size': 2, 'groups': 2", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 2, 'dilation_rate': 2, 'strides': 2", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 5", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 6", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 3, 'dilation_rate': 3", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 65536, 'padding': 'same'", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': [1, 2, 3]", IMAGE},
	{"Conv2D", "'filters': 2, 'kernel_size': 2", STEPS},
	{"Conv1D", "'filters': 2, 'kernel_size': 2", STEPS},
	{"Conv1D", "'filters': 2, 'kernel_size': [3], 'strides': 2, 'padding': 'same', "
		   "'activation': 'swish'", STEPS},
	{"Conv1D", "'filters': 2, 'kernel_size': 3, 'padding': 'causal', 'dilation_rate': 2", STEPS},
	{"Conv1D", "'filters': 2, 'kernel_size': 2", IMAGE},
	{"Conv2DTranspose", "'filters': 2, 'kernel_size': 3", IMAGE},
	{"Conv2DTranspose", "'filters': 3, 'kernel_size': [2, 3], 'strides': [2, 1], "
			    "'activation': 'relu'", IMAGE},
	{"Conv2DTranspose", "'filters': 2, 'kernel_size': 3, 'strides': 2, 'padding': 'same', "
			    "'output_padding': 1, 'use_bias': false", IMAGE},
	{"Conv2DTranspose", "'filters': 2, 'kernel_size': 4, 'strides': 2, 'padding': 'same', "
			    "'output_padding': [0, 1]", IMAGE},
	{"Conv2DTranspose", "'filters': 2, 'kernel_size': 3, 'strides': 2, 'output_padding': 2", IMAGE},
	{"Conv2DTranspose", "'filters': 2, 'kernel_size': 3, 'strides': 2, 'groups': 2", IMAGE},
	{"Conv2DTranspose", "'filters': 2, 'kernel_size': 1, 'strides': 3, 'padding': 'same', "
			    "'output_padding': 2", IMAGE},
	{"Conv2DTranspose", "'filters': 1, 'kernel_size': 1, 'strides': 2147483647", IMAGE},
	{"Conv1DTranspose", "'filters': 2, 'kernel_size': 3, 'strides': 2", STEPS},
	{"Conv1DTranspose", "'filters': 2, 'kernel_size': 3, 'strides': 2, 'output_padding': 1", STEPS},
	{"DepthwiseConv2D", "'kernel_size': 2", IMAGE},
	{"DepthwiseConv2D", "'kernel_size': 3, 'depth_multiplier': 2, 'padding': 'same', "
			    "'activation': 'relu'", IMAGE},
	{"DepthwiseConv2D", "'kernel_size': 1, 'depth_multiplier': 2000000000", IMAGE},
	{"DepthwiseConv1D", "'kernel_size': 2, 'depth_multiplier': 2, 'use_bias': false", STEPS},
	{"SeparableConv2D", "'filters': 3, 'kernel_size': 2, 'depth_multiplier': 2", IMAGE},
	{"SeparableConv2D", "'filters': 3, 'kernel_size': 3, 'strides': 2, 'padding': 'same', "
			    "'use_bias': false, 'trainable': false", IMAGE},
	{"SeparableConv1D", "'filters': 3, 'kernel_size': 2, 'activation': 'tanh'", STEPS},
	{"MaxPooling2D", "", IMAGE},
	{"MaxPooling2D", "'pool_size': [2, 3], 'strides': 1", IMAGE},
	{"MaxPooling2D", "'pool_size': 3, 'strides': 2, 'padding': 'same'", IMAGE},
	{"MaxPooling2D", "'pool_size': 5", IMAGE},
	{"MaxPooling2D", "'pool_size': 6", IMAGE},
	{"MaxPooling2D", "'pool_size': [2, 7]", IMAGE},
	{"AveragePooling2D", "'pool_size': 3, 'strides': 2, 'padding': 'same'", IMAGE},
	{"MaxPooling1D", "'pool_size': 3", STEPS},
	{"AveragePooling1D", "'padding': 'same'", STEPS},
	{"GlobalAveragePooling2D", "", IMAGE},
	{"GlobalAveragePooling2D", "'keepdims': true", IMAGE},
	{"GlobalMaxPooling2D", "", IMAGE},
	{"GlobalAveragePooling1D", "", STEPS},
	{"GlobalMaxPooling1D", "'keepdims': true", STEPS},
	{"BatchNormalization", "", IMAGE},
	{"BatchNormalization", "'scale': false, 'momentum': 0.5", "4"},
	{"BatchNormalization", "'center': false, 'trainable': false", IMAGE},
	{"BatchNormalization", "'axis': [3]", IMAGE},
	{"BatchNormalization", "'axis': 1", IMAGE},
	{"BatchNormalization", "", ""},
	{"LayerNormalization", "", STEPS},
	{"LayerNormalization", "'scale': false, 'center': false", STEPS},
	{"LayerNormalization", "'dtype': 'mixed_float16'", STEPS},
	{"LayerNormalization", "'gamma_initializer': 'zeros', 'trainable': false", STEPS},
	{"GroupNormalization", "'groups': 2", IMAGE},
	{"GroupNormalization", "'groups': -1, 'scale': false", IMAGE},
	{"GroupNormalization", "'groups': 3", IMAGE},
	{"Normalization", "'mean': 1.0, 'variance': 4.0, 'axis': null", IMAGE},
	{"Normalization", "'mean': [1, 2, 3, 4], 'variance': [1, 1, 4, 4]", IMAGE},
	{"Normalization", "", IMAGE},
	{"Normalization", "'axis': null", IMAGE},
	{"Normalization", "'mean': 1.0", IMAGE},
	{"Normalization", "'mean': [1, 2, 3], 'variance': 1", IMAGE},
	{"Normalization", "'mean': 1.0, 'variance': -1.0", IMAGE},
	{"Rescaling", "'scale': 0.5", IMAGE},
	{"Rescaling", "'scale': [1, 2, 3, 4], 'offset': -1", IMAGE},
	{"Rescaling", "'offset': 1", IMAGE},
	{"Dropout", "'rate': 0.25", STEPS},
	{"Dropout", "'rate': 0", STEPS},
	{"Dropout", "'rate': 0.25, 'seed': 7, 'noise_shape': [null, 1, 4]", STEPS},
	{"Dropout", "'rate': 0.25, 'noise_shape': [null, 1, 6, 1]", IMAGE},
	{"Dropout", "'rate': 0.25, 'noise_shape': [null, 2]", STEPS},
	{"Dropout", "'rate': 0.25, 'noise_shape': [null, 2, 4]", STEPS},
	{"Dropout", "'rate': 1", STEPS},
	{"SpatialDropout1D", "'rate': 0.25", STEPS},
	{"SpatialDropout2D", "'rate': 0.25", IMAGE},
	{"GaussianNoise", "'stddev': 0.5", STEPS},
	{"GaussianNoise", "'stddev': 0", STEPS},
	{"GaussianDropout", "'rate': 0.5", STEPS},
	{"AlphaDropout", "'rate': 0.5", STEPS},
	{"Embedding", "'input_dim': 9, 'output_dim': 3", "5"},
	{"Embedding", "'input_dim': 9, 'output_dim': 3, 'trainable': false, "
		      "'embeddings_initializer': 'ones'", "5"},
	{"Embedding", "'input_dim': 9, 'output_dim': 3", "5,2"},
	{"Embedding", "'input_dim': 9, 'output_dim': 3", "1,1,1,1,1,1,1,1"},
	{"PositionEmbedding", "'sequence_length': 5", STEPS},
	{"PositionEmbedding", "'sequence_length': 7, 'trainable': false", STEPS},
	{"PositionEmbedding", "'sequence_length': 4", STEPS},
	{"PositionEmbedding", "'sequence_length': 4", IMAGE},
	{"Masking", "'mask_value': 1.0", STEPS},
	{"Masking", "", "5"},
	{"SimpleRNN", "'units': 3", STEPS},
	{"SimpleRNN", "'units': 3, 'return_sequences': true, 'use_bias': false, 'activation': 'relu'",
	 STEPS},
	{"GRU", "'units': 3", STEPS},
	{"GRU", "'units': 3, 'reset_after': false, 'return_sequences': true", STEPS},
	{"GRU", "'units': 3, 'use_bias': false, 'stateful': true, 'go_backwards': true", STEPS},
	{"LSTM", "'units': 3", STEPS},
	{"LSTM", "'units': 3, 'unit_forget_bias': false, 'stateful': true, 'return_sequences': true",
	 STEPS},
	{"LSTM", "'units': 3, 'dropout': 0.5, 'recurrent_dropout': 0.25, 'trainable': false", STEPS},
	{"LSTM", "'units': 3, 'return_state': true", STEPS},
	{"LSTM", "'units': 3", STEPS " 3 3"},
	{"LSTM", "'units': 3", STEPS " 3"},
	{"LSTM", "'units': 3", STEPS " 3 4"},
	{"GRU", "'units': 3", STEPS " 3"},
	{"GRU", "'units': 3", STEPS " 3 3"},
	{"GRU", "'units': 20000, 'recurrent_initializer': 'zeros'", "1000000,4"},
	{"Bidirectional", "'layer': {'class_name': 'GRU', 'config': {'units': 3}}", STEPS},
	{"Bidirectional", "'merge_mode': 'sum', 'layer': {'class_name': 'LSTM', 'config': {'units': 3, "
			  "'return_sequences': true}}", STEPS},
	{"TimeDistributed", "'layer': {'class_name': 'Dense', 'config': {'units': 3}}", IMAGE},
	{"MultiHeadAttention", "'num_heads': 2, 'key_dim': 3", STEPS " " STEPS},
	{"MultiHeadAttention", "'num_heads': 2, 'key_dim': 3, 'value_dim': 5, 'dropout': 0.5, "
			       "'use_bias': false", STEPS " 7,4"},
	{"MultiHeadAttention", "'num_heads': 2, 'key_dim': 3", STEPS " 7,6 7,2"},
	{"MultiHeadAttention", "'num_heads': 2, 'key_dim': 3, 'attention_axes': [2]", STEPS " " STEPS},
	{"MultiHeadAttention", "'num_heads': 2, 'key_dim': 3", STEPS " 4"},
	{"Attention", "", STEPS " 7,4"},
	{"Attention", "'dropout': 0.5, 'causal': true", STEPS " 7,2 7,4"},
	{"Attention", "", STEPS " 7,2 6,4"},
	{"Attention", "", STEPS " 7,2"},
	{"Attention", "'score_mode': 'concat'", STEPS " 7,4"},
	{"Add", "", STEPS " " STEPS},
	{"Add", "", STEPS " " STEPS " " STEPS},
	{"Add", "", STEPS " 5,3"},
	{"Add", "", STEPS " 1,4"},
	{"Subtract", "", STEPS " " STEPS},
	{"Average", "", STEPS " " STEPS " " STEPS},
	{"Maximum", "", STEPS " " STEPS},
	{"Minimum", "", STEPS " " STEPS " " STEPS},
	{"Multiply", "", STEPS " " STEPS},
	{"Multiply", "", STEPS " " STEPS " " STEPS},
	{"Multiply", "", IMAGE " 1,1,4"},
	{"Multiply", "", "1,4 " STEPS},
	{"Multiply", "", "1,4 1,4"},
	{"Multiply", "", "4 3"},
	{"Multiply", "", STEPS " 1,3"},
	{"Multiply", "", STEPS " 1,4 1,4"},
	{"Concatenate", "", STEPS " 5,3"},
	{"Concatenate", "'axis': 1", STEPS " 2,4"},
	{"Concatenate", "'axis': -2", IMAGE " 5,1,4 5,2,4"},
	{"Concatenate", "", STEPS " 4,4"},
	{"Concatenate", "'axis': 3", STEPS " " STEPS},
	{"Concatenate", "'axis': 0", STEPS " " STEPS},
	{"Flatten", "", IMAGE},
	{"Reshape", "'target_shape': [4, -1]", STEPS},
	{"Reshape", "'target_shape': [3, -1]", STEPS},
	{"Reshape", "'target_shape': [-1, -1]", STEPS},
	{"Reshape", "'target_shape': [1, 1, 1, 1, 1, 1, 1, 1, 20]", STEPS},
	{"Permute", "'dims': [2, 1]", STEPS},
	{"Permute", "'dims': [3, 1, 2]", IMAGE},
	{"Permute", "'dims': [1, 1]", STEPS},
	{"RepeatVector", "'n': 3", "4"},
	{"RepeatVector", "'n': 3", STEPS},
	{"ZeroPadding2D", "'padding': [[1, 2], [0, 3]]", IMAGE},
	{"ZeroPadding1D", "'padding': [0, 2]", STEPS},
	{"Cropping2D", "'cropping': [[1, 2], [0, 3]]", IMAGE},
	{"Cropping2D", "'cropping': [[2, 3], 0]", IMAGE},
	{"Cropping2D", "'cropping': [[2, 3], [0, 0]]", IMAGE},
	{"Cropping1D", "'cropping': 2", STEPS},
	{"Cropping1D", "'cropping': [3, 2]", STEPS},
	{"UpSampling2D", "'size': [2, 3]", IMAGE},
	{"UpSampling2D", "'size': 2, 'interpolation': 'bilinear'", IMAGE},
	{"UpSampling1D", "'size': 3", STEPS},
	{"CenterCrop", "'height': 3, 'width': 2", IMAGE},
	{"CenterCrop", "'height': 7, 'width': 3", IMAGE},
	{"RandomCrop", "'height': 3, 'width': 2", IMAGE},
	{"RandomCrop", "'height': 7, 'width': 7, 'seed': 3", IMAGE},
	{"RandomFlip", "", IMAGE},
	{"RandomFlip", "'mode': 'vertical', 'seed': 5", IMAGE},
	{"RandomRotation", "'factor': 0.1", IMAGE},
	{"RandomRotation", "'factor': [-0.1, 0.2], 'interpolation': 'nearest', 'fill_mode': 'constant'",
	 IMAGE},
	{"RandomTranslation", "'height_factor': 0.1, 'width_factor': [-0.2, 0.3]", IMAGE},
	{"RandomZoom", "'height_factor': 0.1", IMAGE},
	{"Resizing", "'height': 3, 'width': 9", IMAGE},
	{"Resizing", "'height': 3, 'width': 9, 'interpolation': 'nearest'", IMAGE},
	{"Resizing", "'height': 3, 'width': 9, 'crop_to_aspect_ratio': true", IMAGE},
	{"Resizing", "'height': 5, 'width': 6", IMAGE},
	{"Outfeed", "", STEPS},
	{"MaybeOutfeed", "'final_outfeed': false", STEPS},
};
/* clang-format on */

/* ---- models of one layer --------------------------------------------------------------------- */

/* A Functional model of as many inputs as the sample has. */
static char *model_text(const struct sample *sample)
{
	char *inputs = mem_printf("%s", sample->inputs), *rest = NULL, *made;
	struct str layers = {0}, calls = {0}, ends = {0};
	int count = 0;

	assert_non_null(inputs);
	for (char *shape = strtok_r(inputs, " ", &rest); shape || count == 0;
	     shape = strtok_r(NULL, " ", &rest)) {
		const char *between = count ? ", " : "";

		str_addf(&layers,
			 "{'class_name': 'InputLayer', 'name': 'i%d', 'config': {'name': 'i%d', "
			 "'batch_input_shape': [null%s%s]}, 'inbound_nodes': []}, ",
			 count, count, shape ? ", " : "", shape ? shape : "");
		str_addf(&calls, "%s['i%d', 0, 0, {}]", between, count);
		str_addf(&ends, "%s['i%d', 0, 0]", between, count);
		count++;
	}
	made = mem_printf(
		"{'class_name': 'Functional', 'config': {'name': 'm', 'layers': [%s"
		"{'class_name': '%s', 'name': 'a', 'config': {'name': 'a'%s%s}, 'inbound_nodes': "
		"[[%s]]}], 'input_layers': [%s], 'output_layers': [['a', 0, 0]]}}",
		str_peek(&layers), sample->class_name, *sample->config ? ", " : "", sample->config,
		str_peek(&calls), str_peek(&ends));
	assert_non_null(made);
	for (char *c = made; *c; c++)
		if (*c == '\'')
			*c = '"';
	str_free(&layers);
	str_free(&calls);
	str_free(&ends);
	mem_free(inputs);
	return made;
}

/* ---- what is printed ------------------------------------------------------------------------- */

static FILE *out;

static void print_params(const struct model *model, const struct model_layer *layer)
{
	static const char *const kinds[] = {
		[MODEL_INIT_CONSTANT] = "constant",     [MODEL_INIT_UNIFORM] = "uniform",
		[MODEL_INIT_NORMAL] = "normal",         [MODEL_INIT_TRUNCATED] = "truncated",
		[MODEL_INIT_ORTHOGONAL] = "orthogonal", [MODEL_INIT_ONES_AT] = "ones",
	};

	for (int p = 0; p < layer->param_count; p++) {
		const struct model_param *param = &model->params[layer->first_param + p];
		char shape[192];

		model_shape_text(&param->shape, 1, shape, sizeof(shape));
		fprintf(out, "    p%d %s %s %s %.6g %.6g/%lld l1=%.6g l2=%.6g%s%s%s\n", p,
			param->name, shape, kinds[param->init.kind], param->init.low,
			param->init.high, (long long)param->init.columns, (double)param->l1,
			(double)param->l2, param->trainable ? "" : " fixed",
			param->autocast ? "" : " float32", param->half ? " half" : "");
	}
}

/* The operations for one set of circumstances, where there are any. */
static void print_lowered(const char *when, struct layer_lowering lowering)
{
	char text[LOWERED_TEXT];
	struct arena arena;

	assert_int_equal(arena_init(&arena, 0), 0);
	lowering.arena = &arena;
	if (lowering.layer->ops->lower)
		lowering.layer->ops->lower(&lowering);
	assert_false(lowering.failed);
	if (lowering.count > 0)
		fprintf(out, "    %s\n", when);
	for (int i = 0; i < lowering.count; i++) {
		lowered_text(&lowering.ops[i], text);
		fprintf(out, "      %s\n", text);
	}
	arena_fini(&arena);
}

static void print_phases(const struct model *model, const struct model_layer *layer)
{
	struct layer_lowering forward = {.model = model,
					 .layer = layer,
					 .batch = BATCH,
					 .phase = IPU_PHASE_F,
					 .training = true,
					 .retains = true};
	struct layer_lowering backward = forward;
	bool wanted[8] = {0};

	assert_true(layer->input_count <= (int)ARRAY_LEN(wanted));
	print_lowered("forward", forward);
	forward.takes_logits = layer->activation == MODEL_SOFTMAX;
	if (forward.takes_logits)
		print_lowered("forward, whose loss takes logits", forward);
	forward.takes_logits = forward.training = forward.retains = false;
	print_lowered("evaluation", forward);
	forward.folded = strstr(layer->ops->class_name, "BatchNorm");
	if (forward.folded)
		print_lowered("evaluation, folded", forward);
	backward.phase = IPU_PHASE_B;
	print_lowered("backward, of the first layer", backward);
	backward.wanted = wanted;
	for (int i = 0; i < layer->input_count; i++) {
		memset(wanted, 0, sizeof(wanted));
		wanted[i] = true;
		print_lowered(i ? "backward, of a further input" : "backward", backward);
	}
	memset(wanted, 1, sizeof(wanted));
	if (layer->input_count > 1)
		print_lowered("backward, of all inputs", backward);
}

static void print_layer(const struct model *model, int index)
{
	const struct model_layer *layer = &model->layers[index];
	char input[192], output[192];

	model_shape_text(&layer->input, 0, input, sizeof(input));
	model_shape_text(&layer->output, 0, output, sizeof(output));
	fprintf(out, "  %s %s: %s -> %s, %lld flops%s%s", layer->name, layer->ops->class_name,
		input, output, (long long)model_layer_flops(model, index, BATCH),
		layer->reads_inputs ? ", reads x" : "", layer->reads_output ? ", reads y" : "");
	if (layer->state)
		fprintf(out, ", %lld of state", (long long)layer->state);
	fprintf(out, "%s\n", layer->half ? ", half" : "");
	print_params(model, layer);
	print_phases(model, layer);
}

static void print_sample(const struct sample *sample)
{
	char *text = model_text(sample);
	struct model *model = NULL;
	struct err err = {0};
	struct json_at root;
	cJSON *json;

	fprintf(out, "%s {%s} of %s\n", sample->class_name, sample->config, sample->inputs);
	if (json_parse(&json, text, strlen(text), "m.json", &err) != ST_OK)
		fail_msg("%s", err.text);
	root = json_root("m.json", json);
	if (model_new(&model, &root, NULL, &err) != ST_OK) {
		fprintf(out, "  %s: %s\n", status_text(err.status), err.text);
	} else {
		model_set_policy(model, MODEL_POLICY_TEXT);
		for (int i = 0; i < model->layer_count; i++)
			if (strcmp(model->layers[i].ops->class_name, "InputLayer") != 0)
				print_layer(model, i);
	}
	model_free(model);
	cJSON_Delete(json);
	mem_free(text);
}

static void print_all(FILE *to)
{
	out = to;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		print_sample(&samples[i]);
}

static void test_no_layer_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("layers.txt", print_all);
}

/* A kind that has no sample would change unseen. */
static void test_every_kind_of_layer_has_a_sample(void **state)
{
	const char *const *names;
	int count;

	(void)state;
	names = layer_names(&count);
	for (int i = 0; i < count; i++) {
		size_t at = 0;

		if (strcmp(names[i], "InputLayer") == 0) /* one stands before each */
			continue;
		while (at < ARRAY_LEN(samples) && strcmp(samples[at].class_name, names[i]) != 0)
			at++;
		if (at == ARRAY_LEN(samples))
			fail_msg("no sample of %s", names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_layer_changes_unseen),
		cmocka_unit_test(test_every_kind_of_layer_has_a_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
