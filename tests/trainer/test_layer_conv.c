/*
 * The layers that slide windows over images: shapes as TensorFlow has them, options that are
 * refused with their place, gradients against central differences.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "model/layers/layer.h"
#include "trainer/models/stage.h"

#define BATCH 2

/* ---- shapes ---------------------------------------------------------------------------------- */

struct shape_row {
	const char *layer;
	int64_t in[3], out[3];
	int64_t params;
};

static const struct shape_row shape_rows[] = {
	{"{'class_name': 'Conv2D', 'config': {'filters': 32, 'kernel_size': [3, 3]}}",
	 {28, 28, 1},
	 {26, 26, 32},
	 320},
	{"{'class_name': 'Conv2D', 'config': {'filters': 64, 'kernel_size': 7, 'strides': 2}}",
	 {230, 230, 3},
	 {112, 112, 64},
	 9472},
	{"{'class_name': 'Conv2D', 'config': {'filters': 4, 'kernel_size': [3, 2], 'strides': "
	 "[2, 3], 'padding': 'same', 'use_bias': false}}",
	 {224, 225, 3},
	 {112, 75, 4},
	 72},
	{"{'class_name': 'Conv2D', 'config': {'filters': 8, 'kernel_size': [3, 3], "
	 "'dilation_rate': [2, 3], 'padding': 'valid', 'groups': 2, 'data_format': "
	 "'channels_last', 'activation': 'linear', 'kernel_initializer': null}}",
	 {10, 10, 4},
	 {6, 4, 8},
	 152},
	{"{'class_name': 'Conv2D', 'config': {'filters': 1, 'kernel_size': 1, 'strides': 2, "
	 "'padding': 'same'}}",
	 {7, 8, 5},
	 {4, 4, 1},
	 6},
	/* As Keras 2 writes it. */
	{"{'class_name': 'DepthwiseConv2D', 'config': {'name': 'd', 'trainable': true, 'dtype': "
	 "'float32', 'kernel_size': [3, 3], 'strides': [2, 2], 'padding': 'same', 'data_format': "
	 "'channels_last', 'dilation_rate': [1, 1], 'groups': 1, 'activation': 'linear', "
	 "'use_bias': false, 'bias_initializer': {'class_name': 'Zeros', 'config': {}}, "
	 "'bias_regularizer': null, 'activity_regularizer': null, 'bias_constraint': null, "
	 "'depth_multiplier': 2, 'depthwise_initializer': {'class_name': 'GlorotUniform', "
	 "'config': {'seed': null}}, 'depthwise_regularizer': null, 'depthwise_constraint': "
	 "null}}",
	 {9, 8, 3},
	 {5, 4, 6},
	 54},
	{"{'class_name': 'SeparableConv2D', 'config': {'filters': 10, 'kernel_size': 3, "
	 "'depth_multiplier': 2, 'depthwise_initializer': 'he_normal', 'pointwise_initializer': "
	 "'he_uniform', 'pointwise_regularizer': 'l2'}}",
	 {9, 8, 3},
	 {7, 6, 10},
	 3 * 3 * 6 + 6 * 10 + 10},
	{"{'class_name': 'ZeroPadding2D', 'config': {}}", {4, 5, 2}, {6, 7, 2}, 0},
	{"{'class_name': 'ZeroPadding2D', 'config': {'padding': 3, 'data_format': null}}",
	 {4, 5, 2},
	 {10, 11, 2},
	 0},
	{"{'class_name': 'ZeroPadding2D', 'config': {'padding': [1, 2]}}", {4, 5, 2}, {6, 9, 2}, 0},
	{"{'class_name': 'ZeroPadding2D', 'config': {'padding': [[0, 1], [2, 3]]}}",
	 {4, 5, 2},
	 {5, 10, 2},
	 0},
};

static void test_shapes_are_those_of_tensorflow(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shape_rows); i++) {
		const struct shape_row *row = &shape_rows[i];
		char *layers = mem_printf("[%s]", row->layer);
		struct math_model m;

		assert_non_null(layers);
		math_model_open(&m, layers, 3, row->in);
		assert_int_equal(m.model->layers[0].output.ndim, 3);
		assert_memory_equal(m.model->layers[0].output.dim, row->out, sizeof(row->out));
		assert_int_equal(model_layer_params(m.model, 0), row->params);
		math_model_close(&m);
		mem_free(layers);
	}
}

static void test_the_kernels_variance_is_scaled_by_its_fans(void **state)
{
	static const char layers[] =
		"[{'class_name': 'Conv2D', 'config': {'filters': 6, 'kernel_size': [2, 3], "
		"'groups': 2, 'kernel_regularizer': {'class_name': 'L2', 'config': {'l2': 0.25}}, "
		"'bias_regularizer': {'class_name': 'L1', 'config': {'l1': 0.5}}, "
		"'bias_initializer': 'ones'}}]";
	const struct model_param *params;
	struct math_model m;

	(void)state;
	math_model_open(&m, layers, 3, (int64_t[]){5, 5, 4});
	params = m.model->params;
	/* Glorot: sqrt(6 / (2 3 2 + 2 3 6)) */
	assert_close(params[0].init.high, sqrt(6.0 / 48.0), 1e-12);
	assert_string_equal(params[0].name, "conv2d/kernel:0");
	assert_true(params[0].shape.ndim == 4 && params[0].shape.dim[2] == 2);
	assert_close((double)params[0].l2, 0.25, 0.0);
	assert_close((double)params[1].l1, 0.5, 0.0);
	assert_close(params[1].init.low, 1.0, 0.0);
	math_model_close(&m);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *const refusals[][3] = {
	/* class, options, what the message holds */
	{"Conv2D", "'kernel_size': 3", "model.layers[0].config: \"filters\" is missing"},
	{"Conv2D", "'filters': 3", "model.layers[0].config: \"kernel_size\" is missing"},
	{"Conv2D", "'filters': 0, 'kernel_size': 3", "model.layers[0].config.filters"},
	{"Conv2D", "'filters': 2, 'kernel_size': [3]", "model.layers[0].config.kernel_size"},
	{"Conv2D", "'filters': 2, 'kernel_size': [3, 0]", "model.layers[0].config.kernel_size[1]"},
	{"Conv2D", "'filters': 2, 'kernel_size': 9", "but the image only 8"},
	{"Conv2D", "'filters': 2, 'kernel_size': 3, 'padding': 'sme'", "did you mean \"same\""},
	{"Conv2D", "'filters': 2, 'kernel_size': 3, 'strides': 2, 'dilation_rate': 2",
	 "model.layers[0].config.dilation_rate"},
	{"Conv2D", "'filters': 4, 'kernel_size': 4096, 'padding': 'same', 'dilation_rate': 4096",
	 "limit of 65536"},
	{"Conv2D", "'filters': 4, 'kernel_size': 3, 'groups': 4",
	 "model.layers[0].config.groups: 4 groups do not divide the input's 6"},
	{"Conv2D", "'filters': 4, 'kernel_size': 3, 'groups': 3",
	 "model.layers[0].config.groups: 3 groups do not divide the 4"},
	{"Conv2D", "'filters': 4, 'kernel_size': 3, 'data_format': 'channels_first'",
	 "\"channels_last\""},
	{"Conv2D", "'filters': 4, 'kernel_size': 3, 'kernel_constraint': 'max_norm'",
	 "kernel_constraint"},
	{"Conv2D", "'filters': 4, 'kernel_size': 3, 'stride': 2", "did you mean \"strides\""},
	{"Conv2D", "'filters': 2147483647, 'kernel_size': [8, 9]", "TB"},
	{"DepthwiseConv2D", "'kernel_size': 3, 'groups': 2", "model.layers[0].config.groups"},
	{"DepthwiseConv2D", "'kernel_size': 3, 'depth_multiplier': 0",
	 "model.layers[0].config.depth_multiplier"},
	{"DepthwiseConv2D", "'kernel_size': 3, 'depth_multiplier': 2147483647",
	 "model.layers[0].config.depth_multiplier"},
	{"DepthwiseConv2D", "'kernel_size': 3, 'depthwise_constraint': 'x'",
	 "model.layers[0].config.depthwise_constraint"},
	{"DepthwiseConv2D", "'kernel_size': 3, 'depthwise_initializer': 'glorot'",
	 "model.layers[0].config.depthwise_initializer"},
	{"SeparableConv2D", "'kernel_size': 3", "model.layers[0].config: \"filters\" is missing"},
	{"SeparableConv2D", "'kernel_size': 3, 'filters': 2, 'pointwise_regularizer': 3",
	 "model.layers[0].config.pointwise_regularizer"},
	{"ZeroPadding2D", "'padding': [1, 2, 3]", "model.layers[0].config.padding: must be"},
	{"ZeroPadding2D", "'padding': [1, -1]", "model.layers[0].config.padding[1]"},
	{"ZeroPadding2D", "'padding': [[1, 2], [3]]", "model.layers[0].config.padding[1]"},
	{"ZeroPadding2D", "'padding': 'same'", "model.layers[0].config.padding"},
	{"ZeroPadding2D", "'data_format': 'channels_first'", "\"channels_last\""},
};

static void test_what_is_not_supported_names_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct model_shape shape = {.ndim = 3, .dim = {8, 9, 6}};
		char *text =
			mem_printf("{\"layers\": [{\"class_name\": \"%s\", \"config\": {%s}}]}",
				   refusals[i][0], refusals[i][1]);
		struct model *model;
		struct json_at root;
		struct err err = {0};
		cJSON *json;

		assert_non_null(text);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		assert_int_equal(json_parse(&json, text, strlen(text), "model", &err), ST_OK);
		root = json_root("model", json);
		assert_int_not_equal(model_new(&model, &root, &shape, &err), ST_OK);
		assert_null(model);
		if (!strstr(err.text, refusals[i][2]) &&
		    (strncmp(refusals[i][2], "model.", 6) || !strstr(err.text, refusals[i][2] + 6)))
			fail_msg("\"%s\" does not say \"%s\"", err.text, refusals[i][2]);
		cJSON_Delete(json);
		mem_free(text);
	}
}

static void test_images_are_needed(void **state)
{
	struct model_shape shape = {.ndim = 2, .dim = {8, 9}};
	static const char text[] = "{\"layers\": [{\"class_name\": \"Conv2D\", \"config\": "
				   "{\"filters\": 1, \"kernel_size\": 1}}]}";
	struct model *model;
	struct json_at root;
	struct err err = {0};
	cJSON *json;

	(void)state;
	assert_int_equal(json_parse(&json, text, strlen(text), "model", &err), ST_OK);
	root = json_root("model", json);
	assert_int_equal(model_new(&model, &root, &shape, &err), ST_INVALID);
	assert_non_null(strstr(err.text, "its input has 2 dimensions"));
	cJSON_Delete(json);
}

/* ---- gradients ------------------------------------------------------------------------------- */

struct slope {
	struct math_model m;
	struct stage *stage;
	struct pool *pool;
	size_t inputs, outputs;
	float *weights, *gradients, *input, *grad_input, *slopes, *grad_output;
	double *up, *down; /* outputs */
};

static float *slope_floats(size_t count, uint32_t seed)
{
	float *values = mem_aligned(count, sizeof(float));

	assert_non_null(values);
	math_fill(values, count, seed, -1.0f, 1.0f);
	return values;
}

static void slope_open(struct slope *s, const char *layers, const int64_t *dims)
{
	struct stage_params p = {.batch = BATCH, .slots = 1, .training = true, .spread = true};
	struct err err;

	math_model_open(&s->m, layers, 3, dims);
	assert_int_equal(pool_new(&s->pool, 1, NULL), ST_OK);
	p.pool = s->pool;
	p.model = s->m.model;
	p.layer_count = s->m.model->layer_count;
	if (stage_new(&s->stage, &p, &err) != ST_OK)
		fail_msg("%s", err.text);
	s->inputs = stage_input_count(s->stage);
	s->outputs = stage_output_count(s->stage);
	s->weights = slope_floats(s->m.model->weights, 1);
	s->gradients = slope_floats(s->m.model->weights, 2);
	s->input = slope_floats(s->inputs, 3);
	s->grad_input = slope_floats(s->inputs, 4);
	s->slopes = slope_floats(s->outputs, 5);
	s->grad_output = slope_floats(s->outputs, 5);
	s->up = mem_calloc(s->outputs, sizeof(double));
	s->down = mem_calloc(s->outputs, sizeof(double));
	assert_true(s->up && s->down);
}

static void slope_close(struct slope *s)
{
	stage_free(s->stage);
	pool_free(s->pool);
	math_model_close(&s->m);
	mem_free(s->weights);
	mem_free(s->gradients);
	mem_free(s->input);
	mem_free(s->grad_input);
	mem_free(s->slopes);
	mem_free(s->grad_output);
	mem_free(s->up);
	mem_free(s->down);
}

static void slope_forward(struct slope *s, double *outputs)
{
	memcpy(stage_input(s->stage, 0), s->input, s->inputs * sizeof(float));
	stage_forward(s->stage, 0, BATCH, 0, s->weights, NULL, NULL);
	for (size_t i = 0; i < s->outputs; i++)
		outputs[i] = (double)stage_output(s->stage, 0)[i];
}

/*
 * Outputs are linear in each single weight and input, but where a ReLU bends: steps may be wide,
 * and elements of which an output has met a bend are left out.
 */
static bool slope_difference(struct slope *s, float *x, double *difference)
{
	const float h = 0.0625f, kept = *x;

	*x = kept + h;
	slope_forward(s, s->up);
	*x = kept - h;
	slope_forward(s, s->down);
	*x = kept;
	*difference = 0.0;
	for (size_t i = 0; i < s->outputs; i++) {
		/* What lies on a bound of a ReLU is a whole number. */
		bool up = s->up[i] - floor(s->up[i]) > 0.0,
		     down = s->down[i] - floor(s->down[i]) > 0.0;

		if (up != down)
			return false;
		*difference += (double)s->slopes[i] * (s->up[i] - s->down[i]);
	}
	*difference /= 2.0 * (double)h;
	return true;
}

static size_t slope_check(struct slope *s, float *values, const float *gradients, size_t count,
			  const char *what)
{
	size_t checked = 0;

	for (size_t i = 0; i < count; i++) {
		double wanted;

		if (!slope_difference(s, &values[i], &wanted))
			continue;
		checked++;
		if (!(fabs((double)gradients[i] - wanted) < 1e-4 * (fabs(wanted) + 1.0)))
			fail_msg("%s[%zu]: the gradient is %.9g, the difference %.9g", what, i,
				 (double)gradients[i], wanted);
	}
	return checked;
}

static void slope_run(const char *layers, const int64_t *dims)
{
	size_t all = 0, checked = 0;
	struct slope s;

	slope_open(&s, layers, dims);
	slope_forward(&s, s.up);
	stage_backward(s.stage, 0, s.weights, s.grad_output, s.gradients, s.grad_input);
	for (int p = 0; p < s.m.model->param_count; p++) {
		const struct model_param *param = &s.m.model->params[p];

		all += param->count;
		checked += slope_check(&s, s.weights + param->offset, s.gradients + param->offset,
				       param->count, param->name);
	}
	checked += slope_check(&s, s.input, s.grad_input, s.inputs, "input");
	all += s.inputs;
	assert_true(3 * checked > all);
	slope_close(&s);
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	static const char *const layers[] = {
		"{'class_name': 'Conv2D', 'config': {'filters': 5, 'kernel_size': [3, 2], "
		"'padding': 'same'}}",
		"{'class_name': 'Conv2D', 'config': {'filters': 4, 'kernel_size': 3, 'strides': "
		"[2, 1], 'activation': 'relu'}}",
		"{'class_name': 'Conv2D', 'config': {'filters': 4, 'kernel_size': 2, "
		"'dilation_rate': [1, 2], 'padding': 'same', 'groups': 2, 'use_bias': false}}",
		"{'class_name': 'Conv2D', 'config': {'filters': 18, 'kernel_size': 1, 'strides': "
		"2}}",
		"{'class_name': 'Conv2D', 'config': {'filters': 8, 'kernel_size': 2, 'groups': 4, "
		"'activation': 'relu'}}",
		"{'class_name': 'DepthwiseConv2D', 'config': {'kernel_size': 3, 'padding': "
		"'same', 'strides': 2}}",
		"{'class_name': 'DepthwiseConv2D', 'config': {'kernel_size': [1, 2], "
		"'depth_multiplier': 3, 'activation': 'relu'}}",
		"{'class_name': 'SeparableConv2D', 'config': {'filters': 3, 'kernel_size': 2, "
		"'depth_multiplier': 2}}, {'class_name': 'Activation', 'config': {'activation': "
		"'relu'}}",
		"{'class_name': 'ZeroPadding2D', 'config': {'padding': [[1, 0], [2, 3]]}}, "
		"{'class_name': 'Conv2D', 'config': {'filters': 2, 'kernel_size': 3}}",
		/* The second layer's ReLU is done in the first's pass. */
		"{'class_name': 'Conv2D', 'config': {'filters': 3, 'kernel_size': 2}}, "
		"{'class_name': 'Activation', 'config': {'activation': 'relu'}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
		char *text = mem_printf("[%s]", layers[i]);

		assert_non_null(text);
		slope_run(text, (int64_t[]){5, 6, 4});
		mem_free(text);
	}
}

static void test_a_frozen_layers_gradients_are_left_alone(void **state)
{
	static const char layers[] =
		"[{'class_name': 'Conv2D', 'config': {'filters': 3, 'kernel_size': 2}}, "
		"{'class_name': 'Conv2D', 'config': {'filters': 3, 'kernel_size': 2, 'trainable': "
		"false}}]";
	struct slope s;
	float *kept;
	size_t at;

	(void)state;
	slope_open(&s, layers, (int64_t[]){5, 5, 3});
	at = s.m.model->params[2].offset;
	kept = slope_floats(s.m.model->weights, 2);
	slope_forward(&s, s.up);
	stage_backward(s.stage, 0, s.weights, s.grad_output, s.gradients, s.grad_input);
	assert_memory_equal(s.gradients + at, kept + at, (s.m.model->weights - at) * sizeof(float));
	assert_memory_not_equal(s.gradients, kept, 36 * sizeof(float));
	mem_free(kept);
	slope_close(&s);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* A step of the layer with the activation @own and one behind it: output and gradients, in @out. */
static size_t activation_step(const char *layer, const char *own, const char *behind, float *out,
			      size_t room)
{
	char *layers = mem_printf("[{'class_name': %s, 'activation': '%s'}}, {'class_name': "
				  "'Activation', 'config': {'activation': '%s'}}]",
				  layer, own, behind);
	size_t at = 0;
	struct slope s;

	assert_non_null(layers);
	slope_open(&s, layers, (int64_t[]){5, 6, 4});
	slope_forward(&s, s.up);
	memcpy(out, stage_output(s.stage, 0), s.outputs * sizeof(float));
	at += s.outputs;
	stage_backward(s.stage, 0, s.weights, s.grad_output, s.gradients, s.grad_input);
	for (int p = 0; p < s.m.model->param_count; p++) {
		const struct model_param *param = &s.m.model->params[p];

		assert_true(at + param->count + s.inputs <= room);
		memcpy(out + at, s.gradients + param->offset, param->count * sizeof(float));
		at += param->count;
	}
	memcpy(out + at, s.grad_input, s.inputs * sizeof(float));
	slope_close(&s);
	mem_free(layers);
	return at + s.inputs;
}

static void test_any_activation_is_that_of_a_layer_behind(void **state)
{
	static const char *const activations[] = {"linear",  "relu",    "relu6", "tanh",
						  "sigmoid", "softmax", "swish", "elu"};
	static const char *const layers[] = {
		"'Conv2D', 'config': {'filters': 5, 'kernel_size': 2",
		"'DepthwiseConv2D', 'config': {'kernel_size': 2, 'padding': 'same'",
		"'SeparableConv2D', 'config': {'filters': 5, 'kernel_size': 2",
	};
	static float own[4096], behind[4096];

	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(layers); f++) {
		for (size_t i = 0; i < ARRAY_LEN(activations); i++) {
			size_t count = activation_step(layers[f], activations[i], "linear", own,
						       ARRAY_LEN(own));

			assert_int_equal(activation_step(layers[f], "linear", activations[i],
							 behind, ARRAY_LEN(behind)),
					 count);
			if (memcmp(own, behind, count * sizeof(float)))
				fail_msg("%s in a layer of model %zu is not that behind it",
					 activations[i], f);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes_are_those_of_tensorflow),
		cmocka_unit_test(test_the_kernels_variance_is_scaled_by_its_fans),
		cmocka_unit_test(test_what_is_not_supported_names_its_place),
		cmocka_unit_test(test_images_are_needed),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_a_frozen_layers_gradients_are_left_alone),
		cmocka_unit_test(test_any_activation_is_that_of_a_layer_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
