/*
 * Ready-made networks read as models: keras.applications' published numbers of parameters, and the
 * lines of its summaries.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/model_texts.h"

static int64_t parameters(const struct model *model)
{
	int64_t count = 0;

	for (int i = 0; i < model->layer_count; i++)
		count += model_layer_params(model, i);
	return count;
}

/* https://keras.io/api/applications and the summaries of TensorFlow 2.6; the number of rows is
 * len(model.layers). */
static const struct published {
	const char *text;
	int64_t parameters;
	int rows;
	const char *last;
} published[] = {
	{"{\"application\": \"ResNet50\"}", 25636712, 177, "predictions"},
	{"{\"application\": \"ResNet101\"}", 44707176, 347, "predictions"},
	{"{\"application\": \"ResNet152\"}", 60419944, 517, "predictions"},
	{"{\"application\": \"ResNet50V2\"}", 25613800, 192, "predictions"},
	{"{\"application\": \"ResNet101V2\"}", 44675560, 379, "predictions"},
	{"{\"application\": \"ResNet152V2\"}", 60380648, 566, "predictions"},
	{"{\"application\": \"VGG16\"}", 138357544, 23, "predictions"},
	{"{\"application\": \"VGG19\"}", 143667240, 26, "predictions"},
	{"{\"application\": \"MobileNet\"}", 4253864, 91, "predictions"},
	{"{\"application\": \"MobileNetV2\"}", 3538984, 156, "predictions"},
	{"{\"application\": \"DenseNet121\"}", 8062504, 429, "predictions"},
	{"{\"application\": \"DenseNet169\"}", 14307880, 597, "predictions"},
	{"{\"application\": \"DenseNet201\"}", 20242984, 709, "predictions"},
	{"{\"application\": \"EfficientNetB0\"}", 5330571, 240, "predictions"},
	{"{\"application\": \"EfficientNetB1\"}", 7856239, 342, "predictions"},
	{"{\"application\": \"EfficientNetB2\"}", 9177569, 342, "predictions"},
	{"{\"application\": \"EfficientNetB3\"}", 12320535, 387, "predictions"},
	{"{\"application\": \"EfficientNetB4\"}", 19466823, 477, "predictions"},
	{"{\"application\": \"EfficientNetB5\"}", 30562527, 579, "predictions"},
	{"{\"application\": \"EfficientNetB6\"}", 43265143, 669, "predictions"},
	{"{\"application\": \"EfficientNetB7\"}", 66658687, 816, "predictions"},
	{"{\"application\": \"MobileNetV3Small\"}", 2554968, 239, "Predictions"},
	{"{\"application\": \"MobileNetV3Large\"}", 5507432, 273, "Predictions"},
	{"{\"application\": \"MobileNetV3Small\", \"config\": {\"include_top\": false}}", 939120,
	 229, "multiply_17"},
	{"{\"application\": \"MobileNetV3Large\", \"config\": {\"include_top\": false}}", 2996352,
	 263, "multiply_19"},
	{"{\"application\": \"Xception\"}", 22910480, 134, "predictions"},
	{"{\"application\": \"InceptionV3\"}", 23851784, 313, "predictions"},
	{"{\"application\": \"NASNetMobile\"}", 5326716, 771, "predictions"},
	{"{\"application\": \"NASNetLarge\"}", 88949818, 1041, "predictions"},
	{"{\"application\": \"NASNetMobile\", \"config\": {\"include_top\": false}}", 4269716, 769,
	 "activation_187"},
	{"{\"application\": \"ResNet50\", \"config\": {\"include_top\": false}}", 23587712, 175,
	 "conv5_block3_out"},
	{"{\"application\": \"VGG16\", \"config\": {\"include_top\": false}}", 14714688, 19,
	 "block5_pool"},
};

static void test_parameters_are_as_published(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(published); i++) {
		const struct published *row = &published[i];
		struct model *m = support_model(row->text, NULL);

		if (parameters(m) != row->parameters || m->row_count != row->rows)
			fail_msg("%s: %lld parameters, %d rows", row->text,
				 (long long)parameters(m), m->row_count);
		assert_string_equal(m->layers[m->layer_count - 1].name, row->last);
		assert_string_equal(m->rows[m->row_count - 1].name, row->last);
		assert_string_equal(m->rows[0].class_name, "InputLayer");
		model_free(m);
	}
}

static int64_t learned_parameters(const struct model *model)
{
	int64_t count = 0;

	for (int i = 0; i < model->param_count; i++)
		if (model->params[i].trainable)
			count += (int64_t)model->params[i].count;
	return count;
}

/* What learns, and what are moving statistics. */
static void test_trainable_parameters_are_as_published(void **state)
{
	static const struct {
		const char *text;
		int64_t trainable;
	} rows[] = {
		{"{\"application\": \"ResNet50\"}", 25583592},
		{"{\"application\": \"ResNet50\", \"config\": {\"include_top\": false}}", 23534592},
		{"{\"application\": \"MobileNetV2\"}", 3504872},
		{"{\"application\": \"DenseNet121\"}", 7978856},
		{"{\"application\": \"EfficientNetB0\"}", 5288548},
		{"{\"application\": \"NASNetMobile\"}", 5289978},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = support_model(rows[i].text, NULL);

		if (learned_parameters(m) != rows[i].trainable)
			fail_msg("%s: %lld learn", rows[i].text, (long long)learned_parameters(m));
		model_free(m);
	}
}

/* Height, width and channels where networks end, and on the way. */
static void test_shapes_are_as_published(void **state)
{
	static const struct {
		const char *text, *layer;
		int64_t side, channels;
	} rows[] = {
		{"{\"application\": \"ResNet50\"}", "conv1_conv", 112, 64},
		{"{\"application\": \"ResNet50\"}", "pool1_pool", 56, 64},
		{"{\"application\": \"ResNet50\"}", "conv4_block2_add", 14, 1024},
		{"{\"application\": \"ResNet50\"}", "conv5_block3_out", 7, 2048},
		{"{\"application\": \"ResNet50V2\"}", "post_relu", 7, 2048},
		{"{\"application\": \"VGG16\"}", "block5_pool", 7, 512},
		{"{\"application\": \"MobileNetV2\"}", "out_relu", 7, 1280},
		{"{\"application\": \"DenseNet121\"}", "pool4_pool", 7, 512},
		{"{\"application\": \"DenseNet121\"}", "relu", 7, 1024},
		{"{\"application\": \"EfficientNetB0\"}", "top_conv", 7, 1280},
		{"{\"application\": \"EfficientNetB7\"}", "top_conv", 19, 2560},
		{"{\"application\": \"Xception\"}", "block14_sepconv2_act", 10, 2048},
		{"{\"application\": \"InceptionV3\"}", "mixed10", 8, 2048},
		{"{\"application\": \"NASNetMobile\"}", "stem_bn1", 111, 32},
		{"{\"application\": \"NASNetMobile\"}", "adjust_bn_stem_2", 56, 22},
		{"{\"application\": \"NASNetMobile\"}", "reduction_concat_reduce_4", 14, 352},
		{"{\"application\": \"NASNetMobile\"}", "normal_concat_12", 7, 1056},
		{"{\"application\": \"NASNetLarge\"}", "normal_concat_18", 11, 4032},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct model *m = support_model(rows[i].text, NULL);
		bool found = false;

		for (int k = 0; k < m->layer_count; k++) {
			const struct model_shape *shape = &m->layers[k].output;

			if (strcmp(m->layers[k].name, rows[i].layer) != 0)
				continue;
			found = true;
			assert_int_equal(shape->ndim, 3);
			assert_int_equal(shape->dim[0], rows[i].side);
			assert_int_equal(shape->dim[1], rows[i].side);
			assert_int_equal(shape->dim[2], rows[i].channels);
		}
		if (!found)
			fail_msg("%s: no %s", rows[i].text, rows[i].layer);
		model_free(m);
	}
}

/* The summary of a model around a network has that network's own shapes, as Keras prints them. */
static void test_a_network_inside_leaves_its_size_open(void **state)
{
	const struct model_shape image = {.ndim = 3, .dim = {64, 64, 3}};
	struct model *m = support_model(
		"{\"layers\": [{\"application\": \"ResNet50\", \"config\": {\"include_top\": "
		"false}}, {\"class_name\": \"GlobalAveragePooling2D\", \"config\": {}}]}",
		&image);

	(void)state;
	assert_true(m->rows[0].any_batch);
	assert_int_equal(m->rows[0].output.dim[0], 0);
	assert_int_equal(m->rows[0].output.dim[1], 0);
	assert_int_equal(m->rows[0].output.dim[2], 2048);
	assert_false(m->rows[1].any_batch);
	model_free(m);
	m = support_model("{\"layers\": [{\"application\": \"ResNet50\", \"config\": "
			  "{\"include_top\": false, \"input_shape\": [64, 64, 3]}}]}",
			  &image);
	assert_true(m->rows[0].any_batch);
	assert_int_equal(m->rows[0].output.dim[0], 2);
	model_free(m);
}

/* "Connected to" has a call's inputs in their order. */
static void test_connected_layers_of_a_residual_network(void **state)
{
	struct model *m = support_model("{\"application\": \"ResNet50\"}", NULL);
	int add = -1;

	(void)state;
	for (int i = 0; i < m->row_count; i++)
		if (!strcmp(m->rows[i].name, "conv2_block1_add"))
			add = i;
	assert_true(add > 0);
	assert_int_equal(m->rows[add].input_count, 2);
	assert_string_equal(m->rows[m->rows[add].inputs[0]].name, "conv2_block1_0_bn");
	assert_string_equal(m->rows[m->rows[add].inputs[1]].name, "conv2_block1_3_bn");
	model_free(m);
}

/* As in the chapter on pipelining: all up to conv4_block2_add to stage 0, the rest to stage 1. */
static void test_resnet50_splits_at_conv4_block2_add(void **state)
{
	struct model *m = support_model("{\"application\": \"ResNet50\"}", NULL);
	int *stage = mem_calloc((size_t)m->layer_count, sizeof(*stage));
	bool after = false;
	struct err err;

	(void)state;
	assert_non_null(stage);
	for (int i = 0; i < m->layer_count; i++) {
		stage[i] = after;
		after = after || !strcmp(m->layers[i].name, "conv4_block2_add");
	}
	assert_true(after);
	if (model_order(m, stage, &err) != ST_OK)
		fail_msg("%s", err.text);
	mem_free(stage);
	model_free(m);
}

/* Transfer learning: a frozen base in a Sequential model. */
static void test_a_frozen_base_under_a_head(void **state)
{
	const struct model_shape image = {.ndim = 3, .dim = {64, 64, 3}};
	struct model *m = support_model(
		"{\"layers\": [{\"class_name\": \"Sequential\", \"config\": {\"name\": \"base\", "
		"\"trainable\": false, \"layers\": [{\"application\": \"MobileNetV2\", \"config\": "
		"{\"include_top\": false}}]}}, {\"class_name\": \"GlobalAveragePooling2D\", "
		"\"config\": {}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 10}}]}",
		&image);
	const int64_t learned = learned_parameters(m);

	(void)state;
	assert_int_equal(learned, 1280 * 10 + 10);
	assert_int_equal(parameters(m) - learned, 2257984);
	assert_int_equal(m->row_count, 3);
	model_free(m);
}

/* The last test, of all models that the others have read. */
static void test_nothing_of_these_models_changes_unseen(void **state)
{
	(void)state;
	support_assert_models(UINT64_C(0xf96281990de61633));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters_are_as_published),
		cmocka_unit_test(test_trainable_parameters_are_as_published),
		cmocka_unit_test(test_shapes_are_as_published),
		cmocka_unit_test(test_a_network_inside_leaves_its_size_open),
		cmocka_unit_test(test_connected_layers_of_a_residual_network),
		cmocka_unit_test(test_resnet50_splits_at_conv4_block2_add),
		cmocka_unit_test(test_a_frozen_base_under_a_head),
		cmocka_unit_test(test_nothing_of_these_models_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
