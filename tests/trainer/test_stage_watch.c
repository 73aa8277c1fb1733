/*
 * Greatest magnitudes that layers find while they write: right for any shape, batch and pool, and
 * what is not finite is seen at exactly the layers that have it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/network.h"
#include "trainer/kernels/kernel_conv.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage_internal.h"

#define BATCH    3
#define NOT_MANY 16 /* bodies */

/* A stage all of whose layers are watched, and what its taps have seen. */
struct watched {
	const struct model *model;
	float *weights;
	struct stage *stage;
	uint8_t *taps;
	bool *known;     /* by layer: by its kernels */
	bool *nonfinite; /* by layer */
	int64_t batch;
	int seen;
};

static uint32_t abs_max_of(const float *values, size_t count)
{
	uint32_t most = 0, bits;

	for (size_t i = 0; i < count; i++) {
		memcpy(&bits, &values[i], sizeof(bits));
		bits &= 0x7fffffff;
		most = bits > most ? bits : most;
	}
	return most;
}

/* Between a layer's work and its tap. */
static void note_known(void *user, int layer, bool begin)
{
	struct watched *w = user;

	if (!begin)
		w->known[layer] = w->stage->watches[w->stage->plan.layers[layer].output].known;
}

static void check_tap(void *user, const struct stage_tapped *tapped)
{
	struct watched *w = user;
	const struct model_layer *layer = &w->model->layers[tapped->layer];

	assert_int_equal(tapped->count, model_shape_count(&layer->output) * w->batch);
	assert_true(tapped->abs_max_known);
	assert_int_equal(tapped->abs_max, abs_max_of(tapped->values, tapped->count));
	w->nonfinite[tapped->layer] = tapped->abs_max >= KERNEL_NONFINITE_BITS;
	w->seen++;
}

/* @fused: the layers before a ReLU are not looked at. */
static void watched_open(struct watched *w, const struct model *model, int64_t room,
			 struct pool *pool, bool fused)
{
	const size_t layers = (size_t)model->layer_count;
	struct stage_params p = {
		.model = model,
		.layer_count = model->layer_count,
		.batch = room,
		.slots = 1,
		.training = true,
		.fixed_input = true,
		.pool = pool,
		.trace = note_known,
		.trace_user = w,
		.poison = true,
	};
	struct err err;
	float most;

	*w = (struct watched){.model = model, .batch = room};
	w->weights = network_floats(model->weights + 1);
	w->taps = mem_calloc(layers, 1);
	w->known = mem_calloc(layers, sizeof(bool));
	w->nonfinite = mem_calloc(layers, sizeof(bool));
	assert_true(w->taps && w->known && w->nonfinite);
	model_init_weights(model, w->weights, 3);
	for (int i = 0; i < model->layer_count; i++) {
		w->taps[i] = STAGE_ABS_MAX;
		if (fused && i && layer_is_relu(&model->layers[i], &most))
			w->taps[i - 1] = 0;
	}
	p.taps = w->taps;
	if (stage_new(&w->stage, &p, &err) != ST_OK)
		fail_msg("%s", err.text);
}

static void watched_close(struct watched *w)
{
	stage_free(w->stage);
	mem_free(w->weights);
	mem_free(w->taps);
	mem_free(w->known);
	mem_free(w->nonfinite);
}

static void watched_fill(struct watched *w, uint32_t seed)
{
	math_fill(stage_input(w->stage, 0), stage_input_count(w->stage), seed, -1.0f, 1.0f);
}

static void watched_forward(struct watched *w, int64_t batch, bool training)
{
	int wanted = 0;

	for (int i = 0; i < w->model->layer_count; i++)
		wanted += w->taps[i] != 0;
	w->batch = batch;
	w->seen = 0;
	stage_set_training(w->stage, training);
	stage_forward(w->stage, 0, batch, 1, w->weights, check_tap, w);
	assert_int_equal(w->seen, wanted);
}

static float *param_of(struct watched *w, int layer, int index)
{
	return w->weights + w->model->params[w->model->layers[layer].first_param + index].offset;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct sample {
	int filters, kernel, stride, groups;
	const char *padding, *activation;
	int64_t height, width, channels;
};

static void sample_model(struct math_model *m, const struct sample *s)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "[{'class_name': 'Rescaling', 'config': {'scale': 0.5}},"
		 "{'class_name': 'Conv2D', 'config': {'filters': %d, 'kernel_size': %d,"
		 " 'strides': %d, 'groups': %d, 'padding': '%s', 'activation': '%s'}},"
		 "{'class_name': 'ReLU', 'config': {}},"
		 "{'class_name': 'DepthwiseConv2D', 'config': {'kernel_size': 2,"
		 " 'padding': 'same', 'depth_multiplier': %d}},"
		 "{'class_name': 'BatchNormalization', 'config': {}},"
		 "{'class_name': 'ReLU', 'config': {'max_value': 0.75}},"
		 "{'class_name': 'MaxPooling2D', 'config': {'pool_size': 2, 'padding': 'same'}},"
		 "{'class_name': 'AveragePooling2D', 'config': {'pool_size': 3, 'strides': 1,"
		 " 'padding': 'same'}},"
		 "{'class_name': 'ZeroPadding2D', 'config': {}},"
		 "{'class_name': 'SeparableConv2D', 'config': {'filters': 5, 'kernel_size': 2,"
		 " 'activation': '%s'}},"
		 "{'class_name': 'SpatialDropout2D', 'config': {'rate': 0.3}},"
		 "{'class_name': 'LayerNormalization', 'config': {}},"
		 "{'class_name': 'Dense', 'config': {'units': %d, 'activation': '%s'}},"
		 "{'class_name': 'Dropout', 'config': {'rate': 0.4}},"
		 "{'class_name': 'ELU', 'config': {}},"
		 "{'class_name': 'Flatten', 'config': {}},"
		 "{'class_name': 'Dense', 'config': {'units': 7}},"
		 "{'class_name': 'Softmax', 'config': {}}]",
		 s->filters, s->kernel, s->stride, s->groups, s->padding, s->activation,
		 1 + s->filters % 2, s->activation, s->filters, s->activation);
	math_model_open(m, text, 3, (int64_t[]){s->height, s->width, s->channels});
}

static const struct sample samples[] = {
	{1, 1, 1, 1, "valid", "linear", 5, 4, 1},  {3, 3, 1, 1, "same", "relu", 7, 5, 2},
	{16, 3, 1, 1, "valid", "tanh", 13, 9, 3},  {33, 2, 2, 1, "same", "linear", 17, 6, 5},
	{64, 3, 1, 1, "same", "gelu", 6, 31, 1},   {50, 1, 1, 1, "valid", "linear", 20, 19, 7},
	{12, 3, 1, 3, "same", "relu", 9, 8, 6},    {40, 5, 3, 2, "same", "linear", 23, 15, 4},
	{70, 1, 2, 1, "valid", "sigmoid", 9, 9, 8}};

static void check_sample(const struct model *model, struct pool *pool, bool fused)
{
	struct watched w;

	watched_open(&w, model, BATCH, pool, fused);
	for (int64_t batch = BATCH; batch > 0; batch--) {
		watched_fill(&w, (uint32_t)batch);
		watched_forward(&w, batch, batch != 2);
	}
	watched_close(&w);
}

static void test_any_shape_on_any_pool_in_any_body(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct math_model m;

		sample_model(&m, &samples[i]);
		for (unsigned helpers = 0; helpers < 4; helpers += 1 + helpers) {
			struct pool *pool;

			assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
			for (int body = 0; body < NOT_MANY; body++) {
				if (!kernel_conv_use(body))
					continue;
				check_sample(m.model, pool, false);
				check_sample(m.model, pool, true);
			}
			pool_free(pool);
		}
		kernel_conv_use(0);
		math_model_close(&m);
	}
}

/* Tensors so small that a pass of their own costs nothing, and copies. */
static bool leaves_it_to_the_stage(const struct model_layer *layer)
{
	const char *name = layer->ops->class_name;

	return layer->ops->pass_through || strstr(name, "Global") || strstr(name, "ZeroPadding");
}

static void check_known(const struct model *model)
{
	struct watched w;

	watched_open(&w, model, BATCH, NULL, false);
	watched_fill(&w, 9);
	watched_forward(&w, BATCH, true);
	for (int i = 0; i < model->layer_count; i++)
		if (!leaves_it_to_the_stage(&model->layers[i]) && !w.known[i])
			fail_msg("%s does not look at its output",
				 model->layers[i].ops->class_name);
	watched_close(&w);
}

static void test_layers_look_at_their_outputs_themselves(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct math_model m;

		sample_model(&m, &samples[i]);
		check_known(m.model);
		math_model_close(&m);
	}
	for (size_t i = 0; i < NETWORKS; i += support_stride()) {
		struct network net;

		network_open(&net, networks[i]);
		check_known(net.model);
		network_close(&net);
	}
}

static void test_nobody_looks_where_no_tap_is_called(void **state)
{
	struct math_model m;
	struct watched w;

	(void)state;
	sample_model(&m, &samples[1]);
	watched_open(&w, m.model, BATCH, NULL, false);
	watched_fill(&w, 1);
	stage_forward(w.stage, 0, BATCH, 1, w.weights, NULL, NULL);
	for (int i = 0; i < m.model->layer_count; i++)
		assert_false(w.known[i]);
	watched_close(&w);
	math_model_close(&m);
}

/* ---- faults ---------------------------------------------------------------------------------- */

enum {
	FAULT_CONV,
	FAULT_RELU,
	FAULT_POOL,
	FAULT_CONV_2,
	FAULT_MEAN,
	FAULT_FLATTEN,
	FAULT_DENSE,
	FAULT_SOFTMAX,
	FAULT_LAYERS
};

/* What is put where, and which layers have something that is not finite then: 'x', of those in the
 * order above. As in TensorFlow, a ReLU and a maximum keep a NaN, and max(-inf, 0) is 0. */
static const struct fault {
	const char *relu; /* of its config */
	int layer;        /* whose bias; MODEL_INPUT: in the input */
	float value;
	const char *seen;
} faults[] = {
	{"", MODEL_INPUT, NAN, "xxxxxxxx"},
	{"", MODEL_INPUT, 0.0f, "........"},
	{"", FAULT_CONV, NAN, "xxxxxxxx"},
	{"", FAULT_CONV, -INFINITY, "x......."},
	{"", FAULT_CONV, INFINITY, "xxxxxxxx"},
	{"'max_value': 6.0", FAULT_CONV, INFINITY, "x......."},
	{"'max_value': 6.0", FAULT_CONV, NAN, "xxxxxxxx"},
	{"'negative_slope': 0.1", FAULT_CONV, -INFINITY, "xxxxxxxx"},
	{"", FAULT_CONV_2, NAN, "...xxxxx"},
	{"", FAULT_CONV_2, -INFINITY, "...xxxxx"},
	{"", FAULT_DENSE, -INFINITY, "......x."},
	{"", FAULT_DENSE, INFINITY, "......xx"},
	{"", FAULT_DENSE, NAN, "......xx"},
};

static void fault_model(struct math_model *m, const char *relu)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "[{'class_name': 'Conv2D', 'config': {'filters': 19, 'kernel_size': 3,"
		 " 'padding': 'same'}},"
		 "{'class_name': 'ReLU', 'config': {%s}},"
		 "{'class_name': 'MaxPooling2D', 'config': {'pool_size': 2}},"
		 "{'class_name': 'Conv2D', 'config': {'filters': 5, 'kernel_size': 2}},"
		 "{'class_name': 'AveragePooling2D', 'config': {'pool_size': 2}},"
		 "{'class_name': 'Flatten', 'config': {}},"
		 "{'class_name': 'Dense', 'config': {'units': 35}},"
		 "{'class_name': 'Softmax', 'config': {}}]",
		 relu);
	math_model_open(m, text, 3, (int64_t[]){9, 7, 2});
}

static void check_fault(const struct model *model, const struct fault *fault, struct pool *pool,
			bool fused)
{
	struct watched w;

	assert_int_equal(model->layer_count, FAULT_LAYERS);
	watched_open(&w, model, BATCH, pool, fused);
	watched_fill(&w, 7);
	if (fault->layer == MODEL_INPUT)
		stage_input(w.stage, 0)[2 * 9 * 7 * 2 + 31] = fault->value;
	else
		param_of(&w, fault->layer, 1)[3] = fault->value;
	watched_forward(&w, BATCH, true);
	for (int i = 0; i < FAULT_LAYERS; i++)
		if (w.taps[i])
			assert_int_equal(w.nonfinite[i], fault->seen[i] == 'x');
	watched_close(&w);
}

static void test_what_is_not_finite_is_seen_where_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct math_model m;

		fault_model(&m, faults[i].relu);
		for (unsigned helpers = 0; helpers < 4; helpers += 1 + helpers) {
			struct pool *pool;

			assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
			for (int body = 0; body < NOT_MANY; body++) {
				if (!kernel_conv_use(body))
					continue;
				check_fault(m.model, &faults[i], pool, false);
				check_fault(m.model, &faults[i], pool, true);
			}
			pool_free(pool);
		}
		kernel_conv_use(0);
		math_model_close(&m);
	}
}

/* Items of a batch before are still in memory. */
static void test_what_is_beyond_the_batch_does_not_count(void **state)
{
	struct math_model m;
	struct watched w;

	(void)state;
	fault_model(&m, "");
	watched_open(&w, m.model, BATCH, NULL, false);
	watched_fill(&w, 7);
	for (int i = 0; i < 9 * 7 * 2; i++)
		stage_input(w.stage, 0)[2 * 9 * 7 * 2 + i] = NAN;
	watched_forward(&w, BATCH, true);
	for (int i = 0; i < FAULT_LAYERS; i++)
		assert_true(w.nonfinite[i]);
	watched_fill(&w, 7);
	for (int i = 0; i < 9 * 7 * 2; i++)
		stage_input(w.stage, 0)[2 * 9 * 7 * 2 + i] = NAN;
	watched_forward(&w, 2, true);
	for (int i = 0; i < FAULT_LAYERS; i++)
		assert_false(w.nonfinite[i]);
	watched_close(&w);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_shape_on_any_pool_in_any_body),
		cmocka_unit_test(test_layers_look_at_their_outputs_themselves),
		cmocka_unit_test(test_nobody_looks_where_no_tap_is_called),
		cmocka_unit_test(test_what_is_not_finite_is_seen_where_it_is),
		cmocka_unit_test(test_what_is_beyond_the_batch_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
