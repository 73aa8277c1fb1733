/*
 * Ready-made networks: the names, order and options of keras.applications.
 *
 * The number of parameters and the shapes are checked where the JSON is read:
 * test_application_model.
 */
#include "model/applications/application.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"

static enum status build(cJSON **out, const char *text, const struct model_shape *input,
			 struct err *err)
{
	enum status status;
	struct json_at root;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "a.json", NULL), ST_OK);
	root = json_root("a.json", json);
	status = application_build(out, &root, input, 0, err);
	cJSON_Delete(json);
	return status;
}

static cJSON *built(const char *text)
{
	struct err err = {0};
	cJSON *model;

	if (build(&model, text, NULL, &err) != ST_OK)
		fail_msg("%s: %s", text, err.text);
	return model;
}

static const cJSON *config_of(const cJSON *model)
{
	return cJSON_GetObjectItemCaseSensitive(model, "config");
}

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *layer_name(const cJSON *model, int index)
{
	const cJSON *layers = cJSON_GetObjectItemCaseSensitive(config_of(model), "layers");

	return text_of(cJSON_GetArrayItem(layers, index), "name");
}

static int layer_count(const cJSON *model)
{
	return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(config_of(model), "layers"));
}

/* len(model.layers) of TensorFlow 2.6. */
static void test_networks_have_as_many_layers_as_keras(void **state)
{
	static const struct {
		const char *name, *model;
		int layers;
	} rows[] = {
		{"ResNet50", "resnet50", 177},
		{"ResNet101", "resnet101", 347},
		{"ResNet152", "resnet152", 517},
		{"ResNet50V2", "resnet50v2", 192},
		{"VGG16", "vgg16", 23},
		{"VGG19", "vgg19", 26},
		{"MobileNetV2", "mobilenetv2_1.00_224", 156},
		{"DenseNet121", "densenet121", 429},
		{"EfficientNetB0", "efficientnetb0", 240},
		{"Xception", "xception", 134},
		{"InceptionV3", "inception_v3", 313},
		{"NASNetMobile", "NASNet", 771},
		{"NASNetLarge", "NASNet", 1041},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[128];
		cJSON *model;

		snprintf(text, sizeof(text), "{\"application\": \"%s\"}", rows[i].name);
		model = built(text);
		assert_string_equal(text_of(model, "class_name"), "Functional");
		assert_string_equal(text_of(config_of(model), "name"), rows[i].model);
		if (layer_count(model) != rows[i].layers)
			fail_msg("%s: %d layers", rows[i].name, layer_count(model));
		cJSON_Delete(model);
	}
}

/* The head of model.summary(): by depth, the shortcut's layers between the block's. */
static void test_layers_stand_in_keras_order(void **state)
{
	static const char *const names[] = {
		"input_1",
		"conv1_pad",
		"conv1_conv",
		"conv1_bn",
		"conv1_relu",
		"pool1_pad",
		"pool1_pool",
		"conv2_block1_1_conv",
		"conv2_block1_1_bn",
		"conv2_block1_1_relu",
		"conv2_block1_2_conv",
		"conv2_block1_2_bn",
		"conv2_block1_2_relu",
		"conv2_block1_0_conv",
		"conv2_block1_3_conv",
		"conv2_block1_0_bn",
		"conv2_block1_3_bn",
		"conv2_block1_add",
		"conv2_block1_out",
		"conv2_block2_1_conv",
	};
	cJSON *model = built("{\"application\": \"resnet50\"}");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(layer_name(model, (int)i), names[i]);
	assert_string_equal(layer_name(model, layer_count(model) - 1), "predictions");
	cJSON_Delete(model);
}

static void test_default_names_count_as_in_keras(void **state)
{
	cJSON *model = built("{\"application\": \"Xception\"}");
	bool found[3] = {false, false, false};

	(void)state;
	for (int i = 0; i < layer_count(model); i++) {
		found[0] = found[0] || !strcmp(layer_name(model, i), "conv2d");
		found[1] = found[1] || !strcmp(layer_name(model, i), "batch_normalization_3");
		found[2] = found[2] || !strcmp(layer_name(model, i), "add_11");
	}
	assert_true(found[0] && found[1] && found[2]);
	cJSON_Delete(model);
}

static void test_the_top_may_be_left_out(void **state)
{
	cJSON *bare =
		built("{\"application\": \"ResNet50\", \"config\": {\"include_top\": false}}");
	cJSON *pooled = built("{\"application\": \"VGG16\", \"config\": {\"include_top\": false, "
			      "\"pooling\": \"max\", \"name\": \"eye\"}}");

	(void)state;
	assert_string_equal(layer_name(bare, layer_count(bare) - 1), "conv5_block3_out");
	assert_string_equal(layer_name(pooled, layer_count(pooled) - 1), "global_max_pooling2d");
	assert_string_equal(text_of(config_of(pooled), "name"), "eye");
	cJSON_Delete(bare);
	cJSON_Delete(pooled);
}

static void test_bad_requests_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text;
		enum status status;
		const char *says;
	} rows[] = {
		{"{\"application\": \"ResNet5\"}", ST_INVALID, "did you mean \"ResNet50\"?"},
		{"{\"application\": 3}", ST_INVALID, "application: "},
		{"{\"application\": \"VGG16\", \"config\": {\"weights\": \"imagenet\"}}",
		 ST_UNSUPPORTED, "there are no pretrained weights here"},
		{"{\"application\": \"VGG16\", \"config\": {\"include_tip\": false}}", ST_INVALID,
		 "did you mean \"include_top\"?"},
		{"{\"application\": \"VGG16\", \"config\": {\"pooling\": \"min\"}}", ST_INVALID,
		 "pooling"},
		{"{\"application\": \"VGG16\", \"config\": {\"alpha\": 0.5}}", ST_INVALID,
		 "VGG16 has no alpha"},
		{"{\"application\": \"MobileNetV3Large\", \"config\": {\"alpha\": 1.5}}",
		 ST_INVALID, "alpha: must be from 0.1 to 1, not 1.5"},
		{"{\"application\": \"MobileNet\", \"config\": {\"alpha\": 0}}", ST_INVALID,
		 "alpha: must be from 0.1 to 10"},
		{"{\"application\": \"VGG16\", \"config\": {\"classes\": 0}}", ST_INVALID,
		 "classes: must be from 1 to"},
		{"{\"application\": \"VGG16\", \"config\": {\"input_shape\": [224, 224]}}",
		 ST_INVALID, "input_shape: must be [height, width, channels]"},
		{"{\"application\": \"Xception\", \"config\": {\"input_shape\": [64, 64, 3]}}",
		 ST_INVALID, "Xception takes images of at least 71x71, not (None, 64, 64, 3)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};
		cJSON *model;

		assert_int_equal(build(&model, rows[i].text, NULL, &err), rows[i].status);
		assert_contains(err.text, rows[i].says);
		assert_null(model);
	}
}

static void test_the_image_that_comes_in_decides(void **state)
{
	const struct model_shape image = {.ndim = 3, .dim = {96, 96, 1}};
	const struct model_shape flat = {.ndim = 1, .dim = {784}};
	struct err err = {0};
	cJSON *model;

	(void)state;
	assert_int_equal(build(&model, "{\"application\": \"MobileNet\"}", &image, &err), ST_OK);
	assert_string_equal(text_of(config_of(model), "name"), "mobilenet_1.00_96");
	cJSON_Delete(model);
	assert_int_equal(
		build(&model,
		      "{\"application\": \"VGG16\", \"config\": {\"input_shape\": [96, 96, 3]}}",
		      &image, &err),
		ST_INVALID);
	assert_contains(err.text, "does not fit (None, 96, 96, 1)");
	assert_int_equal(build(&model, "{\"application\": \"VGG16\"}", &flat, &err), ST_INVALID);
	assert_contains(err.text, "(None, 784)");
}

static void test_every_failing_allocation_is_reported(void **state)
{
	enum status status = ST_NOMEM;

	(void)state;
	for (long n = 0; status != ST_OK; n++) {
		cJSON *model;
		struct json_at root;
		cJSON *json = cJSON_Parse("{\"application\": \"VGG16\"}");
		struct err err = {0};

		root = json_root("a.json", json);
		support_fail_alloc(n);
		status = application_build(&model, &root, NULL, 0, &err);
		support_fail_alloc(-1);
		assert_true(status == ST_OK || status == ST_NOMEM);
		cJSON_Delete(model);
		cJSON_Delete(json);
		assert_true(n < 5000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_networks_have_as_many_layers_as_keras),
		cmocka_unit_test(test_layers_stand_in_keras_order),
		cmocka_unit_test(test_default_names_count_as_in_keras),
		cmocka_unit_test(test_the_top_may_be_left_out),
		cmocka_unit_test(test_bad_requests_are_refused_with_their_place),
		cmocka_unit_test(test_the_image_that_comes_in_decides),
		cmocka_unit_test(test_every_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
