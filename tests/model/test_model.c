/*
 * Reading Keras models: what Keras 2 and 3 write, what is refused and where, and no memory.
 */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "support/math.h"
#include "support/model_texts.h"
#include "model/layers/layer.h"
#include "model/layers/layer_config.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "model/model_internal.h"

static const struct model_shape mnist = {.ndim = 3, .dim = {28, 28, 1}};

/* TensorFlow 2.6's Sequential([Flatten(input_shape=(28, 28)), Dense(128, relu), Dense(10,
 * softmax)]) */
static const char keras2[] =
	"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"sequential\", \"layers\": ["
	"{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null, 28, 28], "
	"\"dtype\": \"float32\", \"sparse\": false, \"ragged\": false, \"name\": "
	"\"flatten_input\"}},"
	"{\"class_name\": \"Flatten\", \"config\": {\"name\": \"flatten\", \"trainable\": true, "
	"\"batch_input_shape\": [null, 28, 28], \"dtype\": \"float32\", \"data_format\": "
	"\"channels_last\"}},"
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"Dense_128\", \"trainable\": true, "
	"\"dtype\": \"float32\", \"units\": 128, \"activation\": \"relu\", \"use_bias\": true, "
	"\"kernel_initializer\": {\"class_name\": \"GlorotUniform\", \"config\": {\"seed\": "
	"null}}, \"bias_initializer\": {\"class_name\": \"Zeros\", \"config\": {}}, "
	"\"kernel_regularizer\": null, \"bias_regularizer\": null, \"activity_regularizer\": null, "
	"\"kernel_constraint\": null, \"bias_constraint\": null}},"
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"Dense_10\", \"trainable\": true, "
	"\"dtype\": \"float32\", \"units\": 10, \"activation\": \"softmax\", \"use_bias\": true}}"
	"]}, \"keras_version\": \"2.6.0\", \"backend\": \"tensorflow\"}";

/* Keras 3 of the same. */
static const char keras3[] =
	"{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": "
	"\"sequential\", \"trainable\": true, \"dtype\": {\"module\": \"keras\", \"class_name\": "
	"\"DTypePolicy\", \"config\": {\"name\": \"float32\"}, \"registered_name\": null}, "
	"\"layers\": ["
	"{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": "
	"{\"batch_shape\": [null, 28, 28], \"dtype\": \"float32\", \"sparse\": false, \"ragged\": "
	"false, \"name\": \"input_layer\"}, \"registered_name\": null},"
	"{\"module\": \"keras.layers\", \"class_name\": \"Flatten\", \"config\": {\"name\": "
	"\"flatten\", \"trainable\": true, \"dtype\": {\"module\": \"keras\", \"class_name\": "
	"\"DTypePolicy\", \"config\": {\"name\": \"float32\"}, \"registered_name\": null}, "
	"\"data_format\": \"channels_last\"}, \"registered_name\": null, \"build_config\": "
	"{\"input_shape\": [null, 28, 28]}},"
	"{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": "
	"\"Dense_128\", \"trainable\": true, \"dtype\": {\"module\": \"keras\", \"class_name\": "
	"\"DTypePolicy\", \"config\": {\"name\": \"float32\"}, \"registered_name\": null}, "
	"\"units\": 128, \"activation\": \"relu\", \"use_bias\": true, \"kernel_initializer\": "
	"{\"module\": \"keras.initializers\", \"class_name\": \"GlorotUniform\", \"config\": "
	"{\"seed\": null}, \"registered_name\": null}, \"bias_initializer\": {\"module\": "
	"\"keras.initializers\", \"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": "
	"null}, \"kernel_regularizer\": null, \"bias_regularizer\": null, \"kernel_constraint\": "
	"null, \"bias_constraint\": null}, \"registered_name\": null, \"build_config\": "
	"{\"input_shape\": [null, 784]}},"
	"{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": "
	"\"Dense_10\", \"units\": 10, \"activation\": \"softmax\"}}"
	"], \"build_input_shape\": [null, 28, 28]}, \"registered_name\": null, \"build_config\": "
	"{\"input_shape\": [null, 28, 28]}}";

static void test_keras_2_and_3_give_the_same_model(void **state)
{
	const char *texts[] = {keras2, keras3};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct model *m = support_model(texts[i], &mnist);

		assert_string_equal(m->name, "sequential");
		assert_int_equal(m->layer_count, 3);
		assert_int_equal(m->param_count, 4);
		assert_string_equal(m->layers[1].name, "Dense_128");
		assert_string_equal(model_layer_class(&m->layers[1]), "Dense");
		assert_int_equal(m->layers[1].activation, MODEL_RELU);
		assert_int_equal(m->layers[2].activation, MODEL_SOFTMAX);
		assert_string_equal(m->params[0].name, "Dense_128/kernel:0");
		assert_string_equal(m->params[0].short_name, "kernel");
		assert_string_equal(m->params[3].name, "Dense_10/bias:0");
		assert_int_equal(model_layer_params(m, 0), 0);
		assert_int_equal(model_layer_params(m, 1), 784 * 128 + 128);
		assert_int_equal(model_layer_params(m, 2), 128 * 10 + 10);
		model_shape_text(&m->layers[0].output, 0, text, sizeof(text));
		assert_string_equal(text, "(None, 784)");
		model_shape_text(&m->layers[2].output, 32, text, sizeof(text));
		assert_string_equal(text, "(32, 10)");
		model_shape_text(&m->input, 0, text, sizeof(text));
		assert_string_equal(text, "(None, 28, 28)");
		model_free(m);
	}
}

#define LAYERS(list)  "{\"layers\": [" list "]}"
#define DENSE(config) "{\"class_name\": \"Dense\", \"config\": {" config "}}"

/* As Keras has it: what users leave in the config of a later layer is no input shape. */
static void test_a_later_layers_input_shape_is_ignored(void **state)
{
	struct model *m =
		support_model(LAYERS(DENSE("\"units\": 2") "," DENSE(
				      "\"units\": 2, \"batch_input_shape\": [null, 28, null]")),
			      &mnist);

	(void)state;
	assert_int_equal(m->layer_count, 2);
	model_free(m);
}

static void test_parameters_lie_one_after_another_on_lines_of_64_bytes(void **state)
{
	struct model *m = support_model(keras2, &mnist);
	size_t at = 0;

	(void)state;
	for (int i = 0; i < m->param_count; i++) {
		assert_int_equal(m->params[i].offset, at);
		assert_int_equal(at % 16, 0);
		at += (m->params[i].count + 15) / 16 * 16;
	}
	assert_int_equal(m->weights, at);
	model_free(m);
}

static void test_names_default_as_in_keras(void **state)
{
	struct model *m = support_model(
		"{\"layers\": [{\"class_name\": \"Flatten\", \"config\": {}},"
		"{\"class_name\": \"Dense\", \"config\": {\"units\": 4}},"
		"{\"class_name\": \"Dense\", \"config\": {\"units\": 3, \"name\": \"mine\"}},"
		"{\"class_name\": \"MaybeOutfeed\", \"config\": {\"final_outfeed\": false}},"
		"{\"class_name\": \"MaybeOutfeed\", \"config\": {\"name\": \"x\"}},"
		"{\"class_name\": \"Outfeed\", \"config\": {\"name\": \"y\"}},"
		"{\"class_name\": \"Dense\", \"config\": {\"units\": 2, \"activation\": null}}]}",
		&mnist);

	(void)state;
	assert_string_equal(m->name, "sequential");
	assert_string_equal(m->layers[0].name, "flatten");
	assert_string_equal(m->layers[1].name, "dense");
	assert_string_equal(m->layers[2].name, "mine");
	assert_string_equal(m->layers[3].name, "maybe_outfeed");
	assert_string_equal(m->layers[6].name, "dense_1");
	assert_false(m->layers[3].final_outfeed);
	assert_true(m->layers[4].final_outfeed);
	assert_int_equal(model_layer_outfeed(&m->layers[2]), MODEL_NO_OUTFEED);
	assert_int_equal(model_layer_outfeed(&m->layers[4]), MODEL_MAYBE_OUTFEED);
	assert_int_equal(model_layer_outfeed(&m->layers[5]), MODEL_OUTFEED);
	model_free(m);
}

static void test_images_of_one_channel_fit_with_and_without_it(void **state)
{
	const struct model_shape flat = {.ndim = 2, .dim = {28, 28}};

	(void)state;
	model_free(support_model(keras2, &flat));
	model_free(support_model(keras2, NULL));
}

static void test_forward_flops_count_product_bias_and_activation(void **state)
{
	struct model *m = support_model(keras2, &mnist);

	(void)state;
	assert_int_equal(model_layer_flops(m, 0, 32), 0);
	assert_int_equal(model_layer_flops(m, 1, 32), 32 * 128 * (2 * 784 + 1 + 1));
	assert_int_equal(model_layer_flops(m, 2, 32), 32 * 10 * (2 * 128 + 1 + 5));
	model_free(m);
}

static void test_every_layer_of_the_table_is_found_by_its_name(void **state)
{
	const char *const *names;
	int count;

	(void)state;
	names = layer_names(&count);
	assert_true(count > 1);
	assert_string_equal(names[0], "Bidirectional");
	assert_string_equal(names[1], "TimeDistributed");
	for (int i = 2; i < count; i++)
		assert_string_equal(layer_find(names[i])->class_name, names[i]);
	for (int i = 0; i < 2; i++)
		assert_null(layer_find(names[i]));
	assert_null(layer_find("dense"));
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct support_refusal refusals[] = {
	{"[]", ST_INVALID, "m.json: must be an object"},
	{"{}", ST_INVALID, "\"class_name\" is missing"},
	{"{\"class_name\": \"Sequental\", \"config\": {}}", ST_INVALID,
	 "class_name: unknown model class|did you mean \"Sequential\"?"},
	{"{\"class_name\": \"VAE\", \"config\": {}}", ST_INVALID,
	 "class_name: unknown model class \"VAE\"|save each Sequential or Functional model in it "
	 "alone"},
	{"{\"class_name\": \"Functional\", \"config\": {}}", ST_INVALID,
	 "config: \"layers\" is missing"},
	{"{\"application\": \"ResNet5\"}", ST_INVALID, "application: |\"ResNet50\""},
	{"{\"application\": \"ResNet50\", \"classes\": 10}", ST_INVALID,
	 "unknown option \"classes\""},
	{"{\"class_name\": \"Sequential\"}", ST_INVALID, "\"config\" is missing"},
	{"{\"class_name\": \"Sequential\", \"config\": []}", ST_INVALID,
	 "config: a model needs at least one layer"},
	{"{\"class_name\": \"Sequential\", \"config\": 3}", ST_INVALID,
	 "config: must be an object"},
	{"{\"class_name\": \"Sequential\", \"config\": {\"layers\": 3}}", ST_INVALID,
	 "config.layers: must be an array"},
	{"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"x\"}}", ST_INVALID,
	 "config: \"layers\" is missing"},
	{"{\"class_name\": \"Sequential\", \"confg\": {}}", ST_INVALID,
	 "unknown option \"confg\" (did you mean \"config\"?)"},
	{LAYERS(""), ST_INVALID, "layers: a model needs at least one layer"},
	{LAYERS("7"), ST_INVALID, "layers[0]: must be an object"},
	{LAYERS("\"Dense\""), ST_INVALID, "layers[0]: must be an object"},
	{LAYERS("{\"class_name\": \"Dens\", \"config\": {}}"), ST_INVALID,
	 "layers[0]: unknown layer \"Dens\" (did you mean \"Dense\"?)"},
	{LAYERS("{\"class_name\": \"ClusteringLayer\", \"config\": {}}"), ST_INVALID,
	 "layers[0]: unknown layer \"ClusteringLayer\": a class of one's own"},
	{LAYERS("{\"class_name\": \"Dense\"}"), ST_INVALID, "layers[0]: \"config\" is missing"},
	{LAYERS("{\"config\": {}}"), ST_INVALID, "layers[0]: \"class_name\" is missing"},
	{LAYERS(DENSE("")), ST_INVALID, "layers[0].config: \"units\" is missing"},
	{LAYERS(DENSE("\"units\": 0")), ST_INVALID, "layers[0].config.units: must be at least 1"},
	{LAYERS(DENSE("\"units\": -3")), ST_INVALID, "units: must be at least 1, not -3"},
	{LAYERS(DENSE("\"units\": 2.5")), ST_INVALID, "units: must be a whole number"},
	{LAYERS(DENSE("\"units\": \"2\"")), ST_INVALID, "units: must be a whole number"},
	{LAYERS(DENSE("\"units\": 1e300")), ST_INVALID, "units: "},
	{LAYERS(DENSE("\"units\": 4000000000000")), ST_LIMIT, "units|GB"},
	{LAYERS(DENSE("\"units\": 2000000000") "," DENSE("\"units\": 2000000000")), ST_LIMIT, "GB"},
	{LAYERS(DENSE("\"units\": 2, \"unit\": 3")), ST_INVALID,
	 "layers[0].config: unknown option \"unit\" (did you mean \"units\"?)"},
	{LAYERS(DENSE("\"units\": 2, \"activation\": \"rel\"")), ST_INVALID,
	 "layers[0].config.activation: unknown activation \"rel\" (did you mean \"relu\"?)"},
	{LAYERS(DENSE("\"units\": 2, \"activation\": {}")), ST_INVALID,
	 "activation: \"class_name\" is missing"},
	{LAYERS(DENSE("\"units\": 2, \"use_bias\": 1")), ST_INVALID,
	 "use_bias: must be true or false"},
	{LAYERS(DENSE("\"units\": 2, \"dtype\": \"float16\"")), ST_UNSUPPORTED,
	 "dtype: not supported: it must be \"float32\""},
	{LAYERS(DENSE("\"units\": 2, \"kernel_regularizer\": {\"class_name\": \"L3\"}")),
	 ST_INVALID, "kernel_regularizer: unknown regularizer \"L3\" (did you mean"},
	{LAYERS(DENSE("\"units\": 2, \"kernel_constraint\": \"max_norm\"")), ST_UNSUPPORTED,
	 "kernel_constraint: not supported"},
	{LAYERS(DENSE("\"units\": 2, \"kernel_initializer\": \"Identity\"")), ST_UNSUPPORTED,
	 "kernel_initializer: initializer \"Identity\" is not supported (there are "
	 "GlorotUniform, "},
	{LAYERS(DENSE("\"units\": 2, \"name\": \"a\"") "," DENSE("\"units\": 2, \"name\": \"a\"")),
	 ST_INVALID, "layers[1].config.name: two layers are named \"a\""},
	{LAYERS(DENSE("\"units\": 2, \"name\": \"\"")), ST_INVALID, "name: |must not be empty"},
	{LAYERS(DENSE("\"units\": 2, \"name\": \"a\\nb\"")), ST_INVALID, "control characters"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": [null, 3]")), ST_INVALID,
	 "batch_input_shape: the input shape (None, 3) does not fit (None, 28, 28, 1)"},
	{LAYERS(DENSE("\"units\": 2, \"quantization_config\": null") "," DENSE(
		 "\"units\": 2, \"quantization_config\": {\"class_name\": "
		 "\"Int8QuantizationConfig\"}")),
	 ST_UNSUPPORTED, "layers[1].config.quantization_config: not supported: it must be null"},
	{LAYERS(DENSE("\"units\": 2, \"input_shape\": [3]")), ST_INVALID,
	 "unknown option \"input_shape\""},
	{"{\"layers\": [], \"name\": \"a\\tb\"}", ST_INVALID, "name: |control characters"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": []")), ST_INVALID,
	 "a shape has the batch"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": [null,1,1,1,1,1,1,1,1,1]")), ST_INVALID,
	 "a shape has the batch"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": [null, null]")), ST_INVALID,
	 "batch_input_shape: the input shape (None, None) does not fit (None, 28, 28, 1)"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": [null, 0]")), ST_INVALID,
	 "batch_input_shape[1]: must be at least 1"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": [null, 9000000000]")), ST_LIMIT, "GB"},
	{LAYERS(DENSE("\"units\": 2, \"batch_input_shape\": {}")), ST_INVALID, "must be an array"},
	{LAYERS(DENSE("\"units\": 2") ",{\"class_name\": \"InputLayer\", \"config\": {}}"),
	 ST_INVALID, "layers[1]: InputLayer must be the first layer"},
	{LAYERS("{\"class_name\": \"InputLayer\", \"config\": {\"sparse\": true}}"), ST_UNSUPPORTED,
	 "sparse: not supported"},
	{LAYERS("{\"class_name\": \"Flatten\", \"config\": {\"data_format\": \"channels_first\"}}"),
	 ST_UNSUPPORTED, "data_format: not supported: it must be \"channels_last\""},
	{LAYERS("{\"class_name\": \"MaybeOutfeed\", \"config\": {\"final_outfeed\": 1}}"),
	 ST_INVALID, "final_outfeed: must be true or false"},
	{LAYERS("{\"class_name\": \"PReLU\", \"config\": {\"shared_axes\": [2]}}"), ST_UNSUPPORTED,
	 "shared_axes: not supported: shared axes must be the first ones"},
};

static void test_bad_models_are_refused_with_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		support_assert_refused(&refusals[i], &mnist);
}

static void test_an_input_that_nobody_gives_is_an_error(void **state)
{
	struct model *model;
	struct err err;

	(void)state;
	assert_int_equal(support_model_read(&model, LAYERS(DENSE("\"units\": 2")), NULL, &err),
			 ST_INVALID);
	assert_contains(err.text, "the input's shape is not known");
}

static void test_too_many_layers_are_refused(void **state)
{
	struct str text = {0};
	struct model *model;
	struct err err;

	(void)state;
	str_add(&text, "{\"layers\": [");
	for (int i = 0; i < 16385; i++)
		str_addf(&text, "%s{\"class_name\": \"Flatten\", \"config\": {}}", i ? "," : "");
	str_add(&text, "]}");
	assert_int_equal(support_model_read(&model, str_peek(&text), &mnist, &err), ST_INVALID);
	assert_contains(err.text, "limit of 16384");
	str_free(&text);
}

static void test_deep_nesting_is_survived(void **state)
{
	struct str text = {0};
	struct model *model;
	struct err err;

	(void)state;
	str_add(&text, "{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"units\": ");
	for (int i = 0; i < 900; i++)
		str_add(&text, "[");
	for (int i = 0; i < 900; i++)
		str_add(&text, "]");
	str_add(&text, "}}]}");
	assert_int_equal(support_model_read(&model, str_peek(&text), &mnist, &err), ST_INVALID);
	assert_contains(err.text, "units: must be a whole number");
	str_free(&text);
}

/* Every prefix of a good model: an error each, never a crash. */
static void test_truncated_models_are_refused(void **state)
{
	char text[sizeof(keras2)];
	struct model *model;
	struct err err;

	(void)state;
	for (size_t length = 0; length + 1 < sizeof(keras2); length += 7) {
		memcpy(text, keras2, length);
		text[length] = '\0';
		assert_int_not_equal(support_model_read(&model, text, &mnist, &err), ST_OK);
		assert_null(model);
	}
}

static void test_no_memory_leaves_nothing(void **state)
{
	(void)state;
	support_model_no_memory(keras2, &mnist);
	model_free(NULL);
}

static void test_shape_texts_are_cut_where_there_is_no_room(void **state)
{
	const struct model_shape scalar = {0};
	char text[16];

	(void)state;
	model_shape_text(&scalar, 0, text, sizeof(text));
	assert_string_equal(text, "(None,)");
	model_shape_text(&mnist, 0, text, 8);
	assert_string_equal(text, "(None, ");
	model_shape_text(&mnist, 0, text, 3);
	assert_string_equal(text, "(N");
	assert_int_equal(model_shape_count(&scalar), 1);
}

/* ---- layers that are read in a way of their own ---------------------------------------------- */

static void test_a_transposed_convolution_widens_its_input(void **state)
{
#define WIDENS(padding)                                                                            \
	"[{'class_name': 'Conv2DTranspose', 'config': {'filters': 6, 'kernel_size': 3, "           \
	"'strides': 2" padding "}}]"
	struct math_model m;

	(void)state;
	math_model_open(&m, WIDENS(""), 3, (int64_t[]){5, 5, 4});
	assert_int_equal(m.model->layers[0].output.dim[0], 2 * (5 - 1) + 3);
	assert_int_equal(m.model->layers[0].output.dim[1], 2 * (5 - 1) + 3);
	assert_int_equal(m.model->layers[0].output.dim[2], 6);
	math_model_close(&m);
	math_model_open(&m, WIDENS(", 'output_padding': 1"), 3, (int64_t[]){5, 5, 4});
	assert_int_equal(m.model->layers[0].output.dim[0], 2 * (5 - 1) + 3 + 1);
	math_model_close(&m);
}

static void test_both_directions_of_a_layer_are_joined(void **state)
{
	struct math_model m;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'Bidirectional', 'config': {'layer': {'class_name': "
			"'LSTM', 'config': {'units': 3}}}}]",
			2, (int64_t[]){7, 4});
	assert_int_equal(m.model->layers[m.model->layer_count - 1].output.dim[0], 6);
	math_model_close(&m);
}

static void test_a_mask_looks_for_the_value_of_its_masking(void **state)
{
	struct math_model m;
	int masks = 0;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'Masking', 'config': {'mask_value': 5}}, "
			"{'class_name': 'LSTM', 'config': {'units': 3}}]",
			2, (int64_t[]){7, 4});
	for (int i = 0; i < m.model->layer_count; i++) {
		const struct layer_masking *c = m.model->layers[i].config;

		if (strcmp(m.model->layers[i].ops->class_name, "Masking") != 0)
			continue;
		assert_true(c->value == 5.0f);
		if (c->alone)
			assert_int_equal(m.model->layers[i].output.ndim, 1);
		masks += c->alone;
	}
	assert_int_equal(masks, 1);
	math_model_close(&m);
}

static void test_the_first_axes_of_a_prelu_may_share_their_alphas(void **state)
{
	struct math_model m;

	(void)state;
	math_model_open(&m, "[{'class_name': 'PReLU', 'config': {'shared_axes': [1, 2]}}]", 3,
			(int64_t[]){7, 5, 4});
	assert_int_equal(model_layer_params(m.model, 0), 4);
	math_model_close(&m);
}

static void test_numbers_of_a_normalization_are_of_all_channels_or_of_each(void **state)
{
	const struct layer_normalization *c;
	struct math_model m;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'Normalization', 'config': {'mean': [1, 2, 3], "
			"'variance': 4}}]",
			1, (int64_t[]){3});
	c = m.model->layers[0].config;
	for (int i = 0; i < 3; i++) {
		assert_true(c->mean[i] == 1.0f + (float)i);
		assert_true(c->variance[i] == 4.0f);
	}
	math_model_close(&m);
}

/* Mean 0 and variance 1 stay so: of values of SELU, whose least is -1.758, with probability @rate
 * that least, all times a factor and plus an offset. */
static void test_noise_keeps_mean_and_variance(void **state)
{
	static const double least = -1.0507009873554805 * 1.6732632423543772;
	const struct layer_noise *c;
	struct math_model m;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'GaussianNoise', 'config': {'stddev': 0.25, 'seed': 7}}, "
			"{'class_name': 'GaussianDropout', 'config': {'rate': 0.2}}, "
			"{'class_name': 'AlphaDropout', 'config': {'rate': 0.2}}]",
			1, (int64_t[]){3});
	c = m.model->layers[0].config;
	assert_close(c->spread, 0.25, 1e-7);
	assert_int_equal(c->keep_factor != 0.0f, 0);
	assert_int_not_equal(c->seed, 0);
	c = m.model->layers[1].config;
	assert_close(c->spread, 0.5, 1e-7);
	assert_int_equal(c->keep_factor != 0.0f || c->threshold, 0);
	assert_int_equal(c->seed, 0);
	c = m.model->layers[2].config;
	assert_int_equal(c->threshold, (uint32_t)(0.2 * 4294967296.0));
	assert_close(0.8 * (double)c->keep_offset + 0.2 * (double)c->drop_offset + 1, 1, 1e-6);
	assert_close((double)c->drop_offset,
		     (double)c->keep_factor * least + (double)c->keep_offset, 1e-6);
	assert_close(0.8 * ((double)c->keep_factor * (double)c->keep_factor +
			    (double)c->keep_offset * (double)c->keep_offset) +
			     0.2 * (double)c->drop_offset * (double)c->drop_offset,
		     1, 1e-6);
	math_model_close(&m);
}

static void test_an_upsampled_sequence_is_longer(void **state)
{
	struct math_model m;

	(void)state;
	math_model_open(&m, "[{'class_name': 'UpSampling1D', 'config': {'size': 3}}]", 2,
			(int64_t[]){7, 4});
	assert_int_equal(m.model->layers[0].output.dim[0], 7 * 3);
	assert_int_equal(m.model->layers[0].output.dim[1], 4);
	math_model_close(&m);
}

/* ---- metrics and optimizers ------------------------------------------------------------------ */

/* The threshold of the metric @text, given none. */
static float threshold_of(const char *text)
{
	const struct target_kind values = {.width = 4};
	struct metric metric;
	struct json_at root;
	struct math_model m;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "m.json", NULL), ST_OK);
	root = json_root("m.json", json);
	math_model_open(&m, "[{'class_name': 'Dense', 'config': {'units': 4}}]", 1, (int64_t[]){3});
	assert_int_equal(metric_get(&metric, &root, m.model->outputs, &values, NULL), ST_OK);
	math_model_close(&m);
	cJSON_Delete(json);
	return metric.threshold;
}

/* F1Score without a threshold takes a row's greatest output for its class. */
static void test_metrics_but_the_f1score_have_a_threshold(void **state)
{
	(void)state;
	assert_true(threshold_of("\"Precision\"") == 0.5f);
	assert_true(isnan(threshold_of(
		"{\"class_name\": \"F1Score\", \"config\": {\"average\": \"macro\"}}")));
}

/* w -= r g, or with a momentum a *= momentum, a -= r g, w += a; Nesterov's is plain without one. */
static void test_a_momentum_costs_two_functions_more(void **state)
{
	static const struct {
		double momentum;
		bool nesterov;
		int scaled_adds, adds;
	} cases[] = {{0, false, 1, 0}, {0, true, 1, 0}, {0.9, false, 1, 2}, {0.9, true, 3, 1}};
	struct optimizer optimizer;

	(void)state;
	assert_int_equal(optimizer_get(&optimizer, NULL, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ipu_elements elements;

		optimizer.momentum = cases[i].momentum;
		optimizer.nesterov = cases[i].nesterov;
		elements = optimizer_elements(&optimizer, 10);
		assert_int_equal(elements.times[IPU_FN_SCALED_ADD], cases[i].scaled_adds);
		assert_int_equal(elements.times[IPU_FN_ADD], cases[i].adds);
	}
}

static void test_clipping_a_norm_costs_two_functions_of_each_gradient(void **state)
{
	struct optimizer optimizer;
	uint8_t adds;

	(void)state;
	assert_int_equal(optimizer_get(&optimizer, NULL, NULL), ST_OK);
	adds = optimizer_elements(&optimizer, 10).times[IPU_FN_ADD];
	optimizer.clipnorm = 1;
	assert_int_equal(optimizer_elements(&optimizer, 10).times[IPU_FN_ADD], adds + 2);
	optimizer.clipnorm = 0;
	optimizer.clipvalue = 1;
	assert_int_equal(optimizer_elements(&optimizer, 10).times[IPU_FN_ADD], adds + 2);
}

static void test_shapes_are_the_same_by_the_dimensions_that_they_have(void **state)
{
	static const struct model_shape a = {2, {3, 4, 9}}, b = {2, {3, 4, 7}}, c = {2, {3, 5, 9}},
					d = {2, {2, 4, 9}}, e = {3, {3, 4, 9}}, f = {1, {3, 4, 9}};

	(void)state;
	assert_true(model__same_shape(&a, &b));
	assert_false(model__same_shape(&a, &c));
	assert_false(model__same_shape(&a, &d));
	assert_false(model__same_shape(&a, &e));
	assert_false(model__same_shape(&a, &f));
}

/* The last test, of all models that the others have read. */
static void test_nothing_of_these_models_changes_unseen(void **state)
{
	(void)state;
	support_assert_models(UINT64_C(0xea690bdfa0850229));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keras_2_and_3_give_the_same_model),
		cmocka_unit_test(test_a_later_layers_input_shape_is_ignored),
		cmocka_unit_test(test_parameters_lie_one_after_another_on_lines_of_64_bytes),
		cmocka_unit_test(test_names_default_as_in_keras),
		cmocka_unit_test(test_images_of_one_channel_fit_with_and_without_it),
		cmocka_unit_test(test_forward_flops_count_product_bias_and_activation),
		cmocka_unit_test(test_every_layer_of_the_table_is_found_by_its_name),
		cmocka_unit_test(test_bad_models_are_refused_with_their_place),
		cmocka_unit_test(test_an_input_that_nobody_gives_is_an_error),
		cmocka_unit_test(test_too_many_layers_are_refused),
		cmocka_unit_test(test_deep_nesting_is_survived),
		cmocka_unit_test(test_truncated_models_are_refused),
		cmocka_unit_test(test_no_memory_leaves_nothing),
		cmocka_unit_test(test_shape_texts_are_cut_where_there_is_no_room),
		cmocka_unit_test(test_a_transposed_convolution_widens_its_input),
		cmocka_unit_test(test_both_directions_of_a_layer_are_joined),
		cmocka_unit_test(test_a_mask_looks_for_the_value_of_its_masking),
		cmocka_unit_test(test_the_first_axes_of_a_prelu_may_share_their_alphas),
		cmocka_unit_test(test_numbers_of_a_normalization_are_of_all_channels_or_of_each),
		cmocka_unit_test(test_noise_keeps_mean_and_variance),
		cmocka_unit_test(test_an_upsampled_sequence_is_longer),
		cmocka_unit_test(test_metrics_but_the_f1score_have_a_threshold),
		cmocka_unit_test(test_a_momentum_costs_two_functions_more),
		cmocka_unit_test(test_clipping_a_norm_costs_two_functions_of_each_gradient),
		cmocka_unit_test(test_shapes_are_the_same_by_the_dimensions_that_they_have),
		cmocka_unit_test(test_nothing_of_these_models_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
