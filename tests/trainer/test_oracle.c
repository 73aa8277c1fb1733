/*
 * Twenty micro-batches of three networks against what PyTorch said of them
 * (tests/golden/torch_*.txt, made by script/make-torch-golden.py, which makes the same inputs):
 * losses, and weights after them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pool.h"
#include "support/math.h"
#include "model/learn/loss.h"
#include "model/learn/optimizer.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/learn/measure_run.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage.h"

#define STEPS      20
#define BATCH_MOST 32
#define CLASSES    10

/* A line of the golden file's runs. */
struct oracle_run {
	const char *network, *name, *optimizer;
	int accumulation;
	double tolerance; /* of a loss, relative */
	double least;     /* of a weight, absolute: what is left of its first value */
	bool half;        /* mixed_float16 */
};

struct oracle_network {
	const char *name;
	struct model_shape image;
	int64_t batch;
};

static const struct oracle_network networks[] = {
	{"mlp", {.ndim = 3, .dim = {28, 28, 1}}, 32},
	{"convnet", {.ndim = 3, .dim = {28, 28, 1}}, 32},
	{"residual", {.ndim = 3, .dim = {16, 16, 3}}, 16},
};

struct oracle {
	const struct oracle_network *network;
	cJSON *json;
	struct model *model;
	struct stage *stage;
	struct loss loss;
	struct optimizer optimizer;
	struct optimizer_range *ranges;
	size_t range_count;
	float *weights, *gradients, *sums, *slots;
	float *halves; /* NULL: float32 */
	double losses[STEPS];
	double inference; /* the loss of the last batch again, with moving statistics */
};

/* ---- opening --------------------------------------------------------------------------------- */

static void oracle_model(struct oracle *o, const char *name)
{
	char path[SUPPORT_PATH_SIZE];
	struct json_at root;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(networks); i++)
		if (!strcmp(networks[i].name, name))
			o->network = &networks[i];
	assert_non_null(o->network);
	snprintf(path, sizeof(path), "%s/tests/golden/%s.json", support_source_dir(), name);
	assert_int_equal(json_load(&o->json, path, NULL), ST_OK);
	root = json_root(path, o->json);
	if (model_new(&o->model, &root, &o->network->image, &err) != ST_OK)
		fail_msg("%s", err.text);
}

static void oracle_compile(struct oracle *o, const char *optimizer)
{
	cJSON *loss = cJSON_CreateString("sparse_categorical_crossentropy");
	struct json_at at = json_root("loss", loss);
	cJSON *json;

	assert_int_equal(loss_get(&o->loss, &at, NULL), ST_OK);
	cJSON_Delete(loss);
	assert_true(loss_takes_logits(&o->loss, o->model));
	assert_int_equal(json_parse(&json, optimizer, strlen(optimizer), "optimizer", NULL), ST_OK);
	at = json_root("optimizer", json);
	assert_int_equal(optimizer_get(&o->optimizer, &at, NULL), ST_OK);
	cJSON_Delete(json);
	assert_int_equal(optimizer_ranges_new(&o->ranges, &o->range_count, &o->optimizer, o->model,
					      0, o->model->layer_count, NULL),
			 ST_OK);
}

static float *oracle_block(const struct oracle *o, int blocks)
{
	float *block = mem_aligned(o->model->weights * (size_t)blocks + 1, sizeof(float));

	assert_non_null(block);
	return block;
}

static void oracle_open(struct oracle *o, const struct oracle_run *run, struct pool *pool)
{
	struct stage_params params = {
		.slots = 1,
		.training = true,
		.logits_loss = true,
		.fixed_input = true,
		.pool = pool,
		.spread = true,
	};

	memset(o, 0, sizeof(*o));
	oracle_model(o, run->network);
	oracle_compile(o, run->optimizer);
	if (run->half) {
		model_set_policy(o->model, MODEL_POLICY_MIXED);
		o->halves = params.halves = oracle_block(o, 1);
	}
	params.model = o->model;
	params.layer_count = o->model->layer_count;
	params.batch = o->network->batch;
	assert_int_equal(stage_new(&o->stage, &params, NULL), ST_OK);
	o->weights = oracle_block(o, 1);
	o->gradients = oracle_block(o, 1);
	o->sums = oracle_block(o, 1);
	o->slots = oracle_block(o, optimizer_slots(&o->optimizer));
}

static void oracle_close(struct oracle *o)
{
	stage_free(o->stage);
	model_free(o->model);
	cJSON_Delete(o->json);
	mem_free(o->ranges);
	mem_free(o->weights);
	mem_free(o->halves);
	mem_free(o->gradients);
	mem_free(o->sums);
	mem_free(o->slots);
}

/* ---- training -------------------------------------------------------------------------------- */

/* Kernels from the generator; gamma and moving variance begin with ones, the rest with zeros. */
static void oracle_weights(struct oracle *o)
{
	uint32_t lcg = 1;

	for (int i = 0; i < o->model->param_count; i++) {
		const struct model_param *p = &o->model->params[i];
		int64_t in, out, field;
		float limit;

		if (p->shape.ndim < 2) {
			bool one = !strcmp(p->short_name, "gamma") ||
				   !strcmp(p->short_name, "moving_variance");

			for (size_t j = 0; j < p->count; j++)
				o->weights[p->offset + j] = one ? 1.0f : 0.0f;
			continue;
		}
		in = p->shape.dim[p->shape.ndim - 2];
		out = p->shape.dim[p->shape.ndim - 1];
		field = (int64_t)p->count / (in * out);
		limit = (float)sqrt(6.0 / (double)(field * (in + out)));
		for (size_t j = 0; j < p->count; j++)
			o->weights[p->offset + j] = (math_lcg_unit(&lcg) * 2.0f - 1.0f) * limit;
	}
}

static void oracle_batch(const struct oracle *o, uint32_t *lcg, int32_t *labels)
{
	float *images = stage_input(o->stage, 0);
	int64_t size = model_shape_count(&o->network->image);

	for (int64_t i = 0; i < o->network->batch; i++, images += size) {
		labels[i] = (int32_t)(math_lcg(lcg) % 10);
		for (int64_t j = 0; j < size; j++)
			images[j] = math_lcg_unit(lcg) * 0.5f;
		for (int64_t j = labels[i]; j < size; j += 10)
			images[j] += 0.5f;
	}
}

static double oracle_loss(struct oracle *o, const int32_t *labels, float *gradient)
{
	const struct targets targets = {.classes = labels};

	return loss_run(&o->loss, stage_output(o->stage, 0), stage_logits(o->stage, 0), &targets,
			o->network->batch, CLASSES, gradient);
}

static void oracle_round(struct oracle *o, bool learning)
{
	if (o->halves)
		model_round_weights(o->model, NULL, 0, o->model->layer_count, learning, o->weights,
				    o->halves);
}

static void oracle_train(struct oracle *o, int accumulation)
{
	size_t count = o->model->weights;
	_Alignas(64) float gradient[BATCH_MOST * CLASSES];
	int32_t labels[BATCH_MOST];
	uint32_t lcg = 2;

	oracle_weights(o);
	oracle_round(o, false);
	for (int step = 0; step < STEPS; step++) {
		oracle_batch(o, &lcg, labels);
		stage_forward(o->stage, 0, o->network->batch, (uint64_t)step, o->weights, NULL,
			      NULL);
		o->losses[step] = oracle_loss(o, labels, gradient);
		stage_backward(o->stage, 0, o->weights, gradient, o->gradients, NULL);
		kernel_add(o->sums, o->gradients, count);
		if ((step + 1) % accumulation)
			continue;
		optimizer_run(&o->optimizer, NULL, o->ranges, o->range_count, o->weights, o->sums,
			      o->slots, count, step / accumulation, 0.0);
		oracle_round(o, true);
		memset(o->sums, 0, count * sizeof(float));
	}
	stage_set_training(o->stage, false);
	stage_forward(o->stage, 0, o->network->batch, STEPS, o->weights, NULL, NULL);
	o->inference = oracle_loss(o, labels, NULL);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* PyTorch counts the parameters that learn. */
static const struct model_param *oracle_param(const struct oracle *o, int number)
{
	for (int i = 0; i < o->model->param_count; i++)
		if (o->model->params[i].trainable && !number--)
			return &o->model->params[i];
	fail_msg("there is no such parameter");
	return NULL;
}

static double oracle_norm(const struct oracle *o, int number)
{
	const struct model_param *p = oracle_param(o, number);
	double sum = 0.0;

	for (size_t i = 0; i < p->count; i++)
		sum += (double)o->weights[p->offset + i] * (double)o->weights[p->offset + i];
	return sqrt(sum);
}

/* One line "NAME loss STEP VALUE", "NAME inference 0 VALUE", "NAME weight PARAM AT VALUE" or "NAME
 * norm PARAM VALUE". */
static int oracle_line(const struct oracle *o, const struct oracle_run *run, const char *line)
{
	char word[32], kind[32];
	int at, used;
	unsigned element;
	double value;

	if (sscanf(line, "%31s %31s %d%n", word, kind, &at, &used) < 3 ||
	    strcmp(word, run->name) != 0)
		return 0;
	if (!strcmp(kind, "weight")) {
		const struct model_param *p = oracle_param(o, at);

		assert_int_equal(sscanf(line + used, "%u %lf", &element, &value), 2);
		assert_true(element < p->count);
		if (!(fabs((double)o->weights[p->offset + element] - value) < run->least))
			fail_msg("%s %s: %s[%u] is %.9g, not %.9g", run->network, run->name,
				 p->name, element, (double)o->weights[p->offset + element], value);
		return 1;
	}
	assert_int_equal(sscanf(line + used, "%lf", &value), 1);
	if (!strcmp(kind, "inference"))
		assert_close(o->inference, value, run->tolerance);
	else if (!strcmp(kind, "loss"))
		assert_close(o->losses[at], value, run->tolerance);
	else if (value > 0.1)
		assert_close(oracle_norm(o, at), value, 10.0 * run->tolerance);
	return 1;
}

static void oracle_compare(const struct oracle *o, const struct oracle_run *run)
{
	char path[SUPPORT_PATH_SIZE], *text, *rest = NULL;
	int lines = 0, learning = 0;

	for (int i = 0; i < o->model->param_count; i++)
		learning += o->model->params[i].trainable;
	snprintf(path, sizeof(path), "%s/tests/golden/torch_%s.txt", support_source_dir(),
		 run->network);
	text = support_read_file(path, NULL);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		lines += oracle_line(o, run, line);
	free(text);
	assert_int_equal(lines, STEPS + learning * 9 + !strcmp(run->network, "residual"));
}

static void train_and_compare(const struct oracle_run *run)
{
	struct oracle o;

	oracle_open(&o, run, NULL);
	oracle_train(&o, run->accumulation);
	oracle_compare(&o, run);
	oracle_close(&o);
}

static void test_the_mlp_trains_as_in_pytorch(void **state)
{
	static const struct oracle_run runs[] = {
		{"mlp", "sgd", "\"SGD\"", 1, 1e-4, 1e-6, false},
		{"mlp", "accumulate4", "\"SGD\"", 4, 1e-4, 1e-6, false},
		{"mlp", "rmsprop", "\"RMSprop\"", 1, 1e-4, 2e-5, false},
		{"mlp", "adam", "\"Adam\"", 1, 1e-4, 2e-5, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		train_and_compare(&runs[i]);
}

static void test_the_convnet_trains_as_in_pytorch(void **state)
{
	static const struct oracle_run runs[] = {
		{"convnet", "sgd", "\"SGD\"", 1, 1e-4, 1e-6, false},
		{"convnet", "rmsprop", "\"RMSprop\"", 1, 1e-4, 2e-4, false},
		{"convnet", "adam", "\"Adam\"", 1, 1e-4, 2e-4, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		train_and_compare(&runs[i]);
}

static void test_a_residual_network_trains_as_in_pytorch(void **state)
{
	static const struct oracle_run runs[] = {
		{"residual", "nesterov",
		 "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.01, \"momentum\": "
		 "0.9, "
		 "\"nesterov\": true}}",
		 1, 1e-3, 2e-3, false},
		{"residual", "adam", "\"Adam\"", 1, 1e-3, 2e-3, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		train_and_compare(&runs[i]);
}

static void test_half_precision_trains_as_in_pytorch(void **state)
{
	static const struct oracle_run runs[] = {
		{"mlp", "half_sgd", "\"SGD\"", 1, 1e-4, 1e-6, true},
		{"mlp", "half_accumulate4", "\"SGD\"", 4, 1e-4, 1e-6, true},
		{"mlp", "half_adam", "\"Adam\"", 1, 1e-4, 2e-5, true},
		{"convnet", "half_sgd", "\"SGD\"", 1, 1e-4, 1e-6, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		train_and_compare(&runs[i]);
}

static void test_training_is_the_same_bytes_on_any_number_of_threads(void **state)
{
	static const struct oracle_run runs[] = {
		{"mlp", "sgd", "\"SGD\"", 1, 0, 0, false},
		{"convnet", "adam", "\"Adam\"", 1, 0, 0, false},
		{"residual", "adam", "\"Adam\"", 1, 0, 0, false},
		{"residual", "adam", "\"Adam\"", 1, 0, 0, true},
	};
	static const unsigned helpers[] = {0, 1, 3};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(runs); r++) {
		float *first = NULL;

		for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
			struct pool *pool;
			struct oracle o;
			size_t bytes;

			assert_int_equal(pool_new(&pool, helpers[i], NULL), ST_OK);
			oracle_open(&o, &runs[r], pool);
			oracle_train(&o, 1);
			bytes = o.model->weights * sizeof(float);
			if (!first) {
				first = mem_alloc(bytes);
				assert_non_null(first);
				memcpy(first, o.weights, bytes);
			}
			assert_memory_equal(first, o.weights, bytes);
			oracle_close(&o);
			pool_free(pool);
		}
		mem_free(first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_mlp_trains_as_in_pytorch),
		cmocka_unit_test(test_the_convnet_trains_as_in_pytorch),
		cmocka_unit_test(test_a_residual_network_trains_as_in_pytorch),
		cmocka_unit_test(test_half_precision_trains_as_in_pytorch),
		cmocka_unit_test(test_training_is_the_same_bytes_on_any_number_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
