/*
 * Taps: what they show is each layer's own output, whatever is fused, shared or written over, and
 * looking changes nothing.
 */
#include "trainer/models/stage.h"

#include <string.h>

#include "common/mem.h"
#include "support/graph_pipe.h"
#include "support/model_texts.h"
#include "support/network.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage_internal.h"

#define STAGES      4
#define RANDOM      40 /* graphs */
#define SEEN_VALUES 2  /* of a random mask: a layer in so many is looked at */

/* Layers of one input after another: each kind of fusion and of work in place. */
static const char convnet[] =
	"["
	"{'class_name': 'Rescaling', 'config': {'scale': 0.5, 'offset': 0.1}},"
	"{'class_name': 'Conv2D', 'config': {'filters': 5, 'kernel_size': 3}},"
	"{'class_name': 'ReLU', 'config': {}},"
	"{'class_name': 'MaxPooling2D', 'config': {'pool_size': 2}},"
	"{'class_name': 'Conv2D', 'config': {'filters': 7, 'kernel_size': 3, 'activation': 'relu',"
	" 'padding': 'same'}},"
	"{'class_name': 'BatchNormalization', 'config': {}},"
	"{'class_name': 'Activation', 'config': {'activation': 'relu6'}},"
	"{'class_name': 'Dropout', 'config': {'rate': 0.25}},"
	"{'class_name': 'DepthwiseConv2D', 'config': {'kernel_size': 2}},"
	"{'class_name': 'ReLU', 'config': {'max_value': 0.5}},"
	"{'class_name': 'Outfeed', 'config': {}},"
	"{'class_name': 'SeparableConv2D', 'config': {'filters': 6, 'kernel_size': 2}},"
	"{'class_name': 'ReLU', 'config': {}},"
	"{'class_name': 'AveragePooling2D', 'config': {'pool_size': 2, 'padding': 'same'}},"
	"{'class_name': 'Flatten', 'config': {}},"
	"{'class_name': 'Dropout', 'config': {'rate': 0.5}},"
	"{'class_name': 'LayerNormalization', 'config': {}},"
	"{'class_name': 'Dense', 'config': {'units': 9}},"
	"{'class_name': 'ReLU', 'config': {}},"
	"{'class_name': 'Reshape', 'config': {'target_shape': [3, 3]}},"
	"{'class_name': 'Dense', 'config': {'units': 4, 'activation': 'gelu'}},"
	"{'class_name': 'Activation', 'config': {'activation': 'tanh'}},"
	"{'class_name': 'Flatten', 'config': {}},"
	"{'class_name': 'Dense', 'config': {'units': 3}},"
	"{'class_name': 'Softmax', 'config': {}}"
	"]";

/* ---- what is run ----------------------------------------------------------------------------- */

struct subject {
	const struct model *model;
	const float *initial; /* weights */
	const float *input, *slopes;
};

struct way {
	int stages;
	bool unfused, unshared, poison;
	bool training;
	unsigned helpers;
	int64_t room; /* more than the batch */
};

/* Of a plain run: each layer's output, by layer, and what must not change. */
struct plain {
	float **outputs;
	float *weights, *gradients;
};

/* What a tap compares with; what it has seen. */
struct look {
	const struct subject *subject;
	const struct plain *plain;
	const uint8_t *mask;
	int next; /* the first layer that has not been passed */
	int seen;
};

static size_t count_of(const struct subject *s, int position)
{
	const struct model_shape *shape =
		position == MODEL_INPUT ? &s->model->input : &s->model->layers[position].output;

	return (size_t)model_shape_count(shape) * NETWORK_BATCH;
}

static bool is_outfeed(const struct model_layer *layer)
{
	return layer->ops->outfeed != MODEL_NO_OUTFEED;
}

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

static void check_inputs(struct look *look, const struct stage_tapped *tapped)
{
	const struct model_layer *layer = &look->subject->model->layers[tapped->layer];
	const int most =
		layer->input_count < STAGE_TAP_INPUTS ? layer->input_count : STAGE_TAP_INPUTS;

	assert_int_equal(tapped->input_count, most);
	for (int k = 0; k < most; k++) {
		const int from = layer->inputs[k];
		const float *wanted =
			from == MODEL_INPUT ? look->subject->input : look->plain->outputs[from];

		assert_int_equal(tapped->inputs[k].count, count_of(look->subject, from));
		if (!tapped->inputs[k].values)
			continue;
		assert_memory_equal(tapped->inputs[k].values, wanted,
				    tapped->inputs[k].count * sizeof(float));
	}
}

static void check_tap(void *user, const struct stage_tapped *tapped)
{
	struct look *look = user;
	const struct subject *s = look->subject;
	const int layer = tapped->layer;

	/* None is left out, and none comes twice. */
	for (; look->next < layer; look->next++)
		assert_true(!look->mask[look->next] && !is_outfeed(&s->model->layers[look->next]));
	assert_int_equal(look->next++, layer);
	assert_true(look->mask[layer] || is_outfeed(&s->model->layers[layer]));

	assert_int_equal(tapped->count, count_of(s, layer));
	assert_memory_equal(tapped->values, look->plain->outputs[layer],
			    tapped->count * sizeof(float));
	if (look->mask[layer] & STAGE_ABS_MAX)
		assert_true(tapped->abs_max_known);
	if (tapped->abs_max_known)
		assert_int_equal(tapped->abs_max,
				 abs_max_of(look->plain->outputs[layer], tapped->count));
	check_inputs(look, tapped);
	look->seen++;
}

/* As many as the way has; one where that would part calls of a layer. */
static int stages_of(const struct subject *s, const struct way *way)
{
	for (int i = 1; i < way->stages; i++)
		if (!graph_may_cut(s->model, s->model->layer_count * i / way->stages))
			return 1;
	return way->stages;
}

static void open_stages(struct stage **stages, const struct subject *s, const struct way *way,
			struct pool *pool, const uint8_t *mask)
{
	const int layers = s->model->layer_count, count = stages_of(s, way);
	struct stage_params p = {
		.model = s->model,
		.batch = NETWORK_BATCH + way->room,
		.slots = 1,
		.training = true,
		.fixed_input = true,
		.pool = pool,
		.spread = true,
		.taps = mask,
		.unfused = way->unfused,
		.unshared = way->unshared,
		.poison = way->poison,
	};
	struct err err;

	for (int i = 0; i < count; i++) {
		p.first_layer = layers * i / count;
		p.layer_count = layers * (i + 1) / count - p.first_layer;
		if (stage_new(&stages[i], &p, &err) != ST_OK)
			fail_msg("%s", err.text);
		stage_set_training(stages[i], way->training);
	}
}

static void run_backward(struct stage **stages, const struct subject *s, int count, float *weights,
			 float *gradients)
{
	float *flow = network_floats(stage_output_count(stages[count - 1]));

	memcpy(flow, s->slopes, count_of(s, s->model->layer_count - 1) * sizeof(float));
	for (int i = count - 1; i >= 0; i--) {
		float *to = i ? network_floats(stage_input_count(stages[i])) : NULL;

		stage_backward(stages[i], 0, weights, flow, gradients, to);
		mem_free(flow);
		flow = to;
	}
}

/* ---- the plain run --------------------------------------------------------------------------- */

/* Nothing is fused or shared, so all tensors are there when the forward pass has ended. */
static void copy_outputs(struct plain *plain, const struct subject *s, const struct stage *stage)
{
	plain->outputs = mem_calloc((size_t)s->model->layer_count, sizeof(float *));
	assert_non_null(plain->outputs);
	for (int i = 0; i < s->model->layer_count; i++) {
		const struct stage_value *value = &stage->plan.values[stage->plan.layers[i].output];
		const struct stage_buffer *buffer = &stage->plan.buffers[value->buffer];
		const float *base =
			buffer->area == STAGE_SLOT ? stage__slot(stage, 0) : stage->shared;

		plain->outputs[i] = network_floats(count_of(s, i));
		memcpy(plain->outputs[i], base + buffer->offset, count_of(s, i) * sizeof(float));
	}
}

static void plain_open(struct plain *plain, const struct subject *s, bool training)
{
	const struct way way = {
		.stages = 1, .unfused = true, .unshared = true, .training = training};
	struct stage *stage;

	plain->weights = network_floats(s->model->weights + 1);
	plain->gradients = network_floats(s->model->weights + 1);
	memcpy(plain->weights, s->initial, s->model->weights * sizeof(float));
	open_stages(&stage, s, &way, NULL, NULL);
	memcpy(stage_input(stage, 0), s->input, count_of(s, MODEL_INPUT) * sizeof(float));
	stage_forward(stage, 0, NETWORK_BATCH, 7, plain->weights, NULL, NULL);
	copy_outputs(plain, s, stage);
	if (training)
		run_backward(&stage, s, 1, plain->weights, plain->gradients);
	stage_free(stage);
}

static void plain_close(struct plain *plain, const struct subject *s)
{
	for (int i = 0; i < s->model->layer_count; i++)
		mem_free(plain->outputs[i]);
	mem_free(plain->outputs);
	mem_free(plain->weights);
	mem_free(plain->gradients);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int masked(const struct subject *s, const uint8_t *mask)
{
	int count = 0;

	for (int i = 0; i < s->model->layer_count; i++)
		count += mask[i] || is_outfeed(&s->model->layers[i]);
	return count;
}

static void check_way(const struct subject *s, const struct plain *plain, const struct way *way,
		      const uint8_t *mask)
{
	const size_t weights = s->model->weights * sizeof(float);
	const int last = s->model->layer_count - 1, count = stages_of(s, way);
	struct look look = {.subject = s, .plain = plain, .mask = mask};
	float *now = network_floats(s->model->weights + 1);
	float *gradients = network_floats(s->model->weights + 1);
	struct stage *stages[STAGES];
	struct pool *pool;

	assert_int_equal(pool_new(&pool, way->helpers, NULL), ST_OK);
	open_stages(stages, s, way, pool, mask);
	memcpy(now, s->initial, weights);
	memcpy(stage_input(stages[0], 0), s->input, count_of(s, MODEL_INPUT) * sizeof(float));
	for (int i = 0; i < count; i++) {
		if (i)
			stage_receive(stages[i], 0, stages[i - 1], 0);
		stage_forward(stages[i], 0, NETWORK_BATCH, 7, now, check_tap, &look);
	}
	assert_int_equal(look.seen, masked(s, mask));
	assert_memory_equal(stage_output(stages[count - 1], 0), plain->outputs[last],
			    count_of(s, last) * sizeof(float));
	if (way->training && !way->room) {
		run_backward(stages, s, count, now, gradients);
		assert_memory_equal(gradients, plain->gradients, weights);
	}
	assert_memory_equal(now, plain->weights, weights);
	for (int i = 0; i < count; i++)
		stage_free(stages[i]);
	pool_free(pool);
	mem_free(now);
	mem_free(gradients);
}

/* All layers, none, each on its own side of what is fused, and any. */
static void fill_mask(uint8_t *mask, const struct subject *s, int number)
{
	uint32_t random = (uint32_t)number + 1;

	for (int i = 0; i < s->model->layer_count; i++) {
		const uint32_t draw = math_lcg(&random);
		float most;

		switch (number) {
		case 0:
			mask[i] = STAGE_LOOK | STAGE_ABS_MAX;
			break;
		case 1:
			mask[i] = 0;
			break;
		case 2:
			mask[i] = layer_is_relu(&s->model->layers[i], &most) ? STAGE_ABS_MAX : 0;
			break;
		default:
			mask[i] = draw % SEEN_VALUES ? 0 : (uint8_t)(draw / SEEN_VALUES % 4);
		}
	}
}

static void check_subject(const struct subject *s, bool cut)
{
	static const struct way ways[] = {
		{.stages = 1, .poison = true},
		{.stages = 1, .unfused = true, .helpers = 1},
		{.stages = 1, .unshared = true},
		{.stages = 1, .poison = true, .room = 3},
		{.stages = STAGES, .poison = true, .helpers = 3},
	};
	uint8_t *mask = mem_calloc((size_t)s->model->layer_count, 1);
	struct plain plain;

	assert_non_null(mask);
	for (int training = 0; training < 2; training++) {
		plain_open(&plain, s, training);
		for (size_t i = 0; i < ARRAY_LEN(ways) - !cut; i++) {
			struct way way = ways[i];

			way.training = training;
			for (int number = 0; number < 5; number++) {
				fill_mask(mask, s, number);
				check_way(s, &plain, &way, mask);
			}
		}
		plain_close(&plain, s);
	}
	mem_free(mask);
}

/* ---- the promises ---------------------------------------------------------------------------- */

static void check_graph(const struct graph *g, uint32_t seed)
{
	static float input[NETWORK_BATCH * GRAPH_WIDTH], slopes[NETWORK_BATCH * GRAPH_WIDTH];
	static float weights[1 << 16];

	assert_true(g->model.weights <= ARRAY_LEN(weights));
	graph_weights(g, weights, seed);
	math_fill(input, ARRAY_LEN(input), seed + 1, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), seed + 2, -1.0f, 1.0f);
	check_subject(&(struct subject){&g->model, weights, input, slopes},
		      g->model.layer_count >= STAGES);
}

static void test_taps_show_the_layers_of_any_graph(void **state)
{
	static struct graph g;

	(void)state;
	for (int i = 0; i < GRAPH_SAMPLES; i++) {
		graph_samples[i](&g);
		check_graph(&g, 1);
	}
	for (uint32_t seed = 0; seed < support_rounds(RANDOM); seed++) {
		graph_random(&g, seed, 12);
		check_graph(&g, seed);
	}
}

static void test_taps_show_the_layers_of_a_convnet(void **state)
{
	static const int64_t dims[] = {11, 9, 3};
	struct math_model m;
	float input[NETWORK_BATCH * 11 * 9 * 3], slopes[NETWORK_BATCH * 3], *weights;

	(void)state;
	math_model_open(&m, convnet, 3, dims);
	weights = network_floats(m.model->weights);
	model_init_weights(m.model, weights, 3);
	math_fill(input, ARRAY_LEN(input), 4, -1.0f, 1.0f);
	math_fill(slopes, ARRAY_LEN(slopes), 5, -1.0f, 1.0f);
	check_subject(&(struct subject){m.model, weights, input, slopes}, true);
	mem_free(weights);
	math_model_close(&m);
}

static void test_taps_show_the_layers_of_networks(void **state)
{
	static const struct way ways[] = {
		{.stages = 1, .poison = true, .training = true},
		{.stages = STAGES, .poison = true, .helpers = 3},
	};

	(void)state;
	for (size_t i = 0; i < NETWORKS; i += support_stride()) {
		struct network net;
		struct subject s;
		uint8_t *mask;

		network_open(&net, networks[i]);
		s = (struct subject){net.model, net.initial, net.input, net.slopes};
		mask = mem_calloc((size_t)net.model->layer_count, 1);
		assert_non_null(mask);
		for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
			struct plain plain;

			plain_open(&plain, &s, ways[w].training);
			for (int number = 0; number < 4; number += 2 - number % 2) {
				fill_mask(mask, &s, number);
				check_way(&s, &plain, &ways[w], mask);
			}
			plain_close(&plain, &s);
		}
		mem_free(mask);
		network_close(&net);
	}
}

static void note_inputs(void *user, const struct stage_tapped *tapped)
{
	bool *there = user;

	there[tapped->layer] = tapped->inputs[0].values != NULL;
}

static void test_inputs_are_shown_where_they_are_left(void **state)
{
	static const char layers[] =
		"["
		"{'class_name': 'Dense', 'config': {'units': 6}},"
		"{'class_name': 'Flatten', 'config': {}},"
		"{'class_name': 'Activation', 'config': {'activation': 'tanh'}},"
		"{'class_name': 'Reshape', 'config': {'target_shape': [1, 2, 3]}},"
		"{'class_name': 'Conv2D', 'config': {'filters': 4, 'kernel_size': 1}},"
		"{'class_name': 'ReLU', 'config': {}}"
		"]";
	static const bool wanted[] = {true, true, false, true, true, false};
	uint8_t mask[] = {STAGE_LOOK, STAGE_LOOK, STAGE_LOOK, STAGE_LOOK, STAGE_LOOK, STAGE_LOOK};
	bool there[ARRAY_LEN(wanted)];
	struct stage_params p = {.batch = 2, .slots = 1, .taps = mask};
	struct math_model m;
	struct stage *stage;
	float *weights;

	(void)state;
	math_model_open(&m, layers, 1, (int64_t[]){5});
	weights = network_floats(m.model->weights);
	model_init_weights(m.model, weights, 3);
	p.model = m.model;
	p.layer_count = m.model->layer_count;
	for (int fused = 0; fused < 2; fused++) {
		mask[4] = fused ? 0 : STAGE_LOOK;
		there[4] = true;
		assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
		math_fill(stage_input(stage, 0), 10, 1, -1.0f, 1.0f);
		stage_forward(stage, 0, 2, 0, weights, note_inputs, there);
		assert_memory_equal(there, wanted, sizeof(wanted));
		stage_free(stage);
	}
	mem_free(weights);
	math_model_close(&m);
}

/* A tap of a sum is given both tensors, so no BatchNormalization computes it in its own pass. */
static void note_two_inputs(void *user, const struct stage_tapped *tapped)
{
	*(bool *)user = tapped->inputs[0].values && tapped->inputs[1].values;
}

static void test_a_tap_of_a_sum_is_given_both_tensors(void **state)
{
	static const char text[] =
		"{\"class_name\": \"Functional\", \"config\": {\"name\": \"f\", \"layers\": ["
		"{\"class_name\": \"InputLayer\", \"name\": \"x\", \"inbound_nodes\": [], "
		"\"config\": {\"name\": \"x\", \"batch_input_shape\": [null, 5]}},"
		"{\"class_name\": \"BatchNormalization\", \"name\": \"n\", "
		"\"config\": {\"name\": \"n\"}, \"inbound_nodes\": [[[\"x\", 0, 0, {}]]]},"
		"{\"class_name\": \"Add\", \"name\": \"m\", \"config\": {\"name\": \"m\"}, "
		"\"inbound_nodes\": [[[\"x\", 0, 0, {}], [\"n\", 0, 0, {}]]]}], "
		"\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"m\", 0, 0]]}}";
	struct model *model = support_model(text, NULL);
	uint8_t mask[] = {0, STAGE_LOOK};
	struct stage_params p = {.batch = 2, .slots = 1, .taps = mask, .model = model};
	struct stage *stage;
	bool both = false;
	float *weights;

	(void)state;
	p.layer_count = model->layer_count;
	assert_int_equal(p.layer_count, ARRAY_LEN(mask));
	weights = network_floats(model->weights);
	model_init_weights(model, weights, 3);
	assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
	math_fill(stage_input(stage, 0), 10, 1, -1.0f, 1.0f);
	stage_forward(stage, 0, 2, 0, weights, note_two_inputs, &both);
	assert_true(both);
	stage_free(stage);
	mem_free(weights);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taps_show_the_layers_of_any_graph),
		cmocka_unit_test(test_taps_show_the_layers_of_a_convnet),
		cmocka_unit_test(test_taps_show_the_layers_of_networks),
		cmocka_unit_test(test_inputs_are_shown_where_they_are_left),
		cmocka_unit_test(test_a_tap_of_a_sum_is_given_both_tensors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
