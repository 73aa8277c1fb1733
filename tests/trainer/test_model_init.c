/*
 * Initial values: Keras's limits and deviations, keyed by seed and layer name alone.
 */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/models/model_weights.h"

#define COUNT 40000

static enum status read_init(struct model_init *out, const char *text, struct err *err)
{
	enum status status;
	struct json_at root;
	cJSON *json;

	assert_int_equal(json_parse(&json, text, strlen(text), "i.json", NULL), ST_OK);
	root = json_root("i.json", json);
	status = model_init_read(out, &root, 300, 100, err);
	cJSON_Delete(json);
	return status;
}

static const struct distribution {
	const char *text;
	double low, high, mean, deviation;
} distributions[] = {
	/* limit sqrt(6 / 400); a uniform's deviation is limit / sqrt(3) */
	{"\"GlorotUniform\"", -0.122474, 0.122474, 0.0, 0.0707107},
	{"{\"class_name\": \"glorot_uniform\", \"config\": {\"seed\": null}}", -0.122474, 0.122474,
	 0.0, 0.0707107},
	/* deviation sqrt(1 / 200), cut at twice that over 0.8796 */
	{"\"GlorotNormal\"", -0.160775, 0.160775, 0.0, 0.0707107},
	{"\"HeUniform\"", -0.141421, 0.141421, 0.0, 0.0816497},
	{"\"HeNormal\"", -0.185647, 0.185647, 0.0, 0.0816497},
	/* sqrt(3 / 300); deviation sqrt(1 / 300) */
	{"\"LecunUniform\"", -0.1, 0.1, 0.0, 0.0577350},
	{"\"LecunNormal\"", -0.131273, 0.131273, 0.0, 0.0577350},
	{"\"VarianceScaling\"", -0.131273, 0.131273, 0.0, 0.0577350},
	/* EfficientNet's: sqrt(2 / 100), and sqrt(3 / 300) from a third over fan-out 100 */
	{"{\"class_name\": \"VarianceScaling\", \"config\": {\"scale\": 2.0, \"mode\": "
	 "\"fan_out\", "
	 "\"distribution\": \"truncated_normal\"}}",
	 -0.321549, 0.321549, 0.0, 0.141421},
	{"{\"class_name\": \"VarianceScaling\", \"config\": {\"scale\": 0.3333333333333333, "
	 "\"mode\": "
	 "\"fan_out\", \"distribution\": \"uniform\"}}",
	 -0.1, 0.1, 0.0, 0.0577350},
	{"{\"class_name\": \"VarianceScaling\", \"config\": {\"mode\": \"fan_avg\", "
	 "\"distribution\": "
	 "\"untruncated_normal\"}}",
	 -0.4, 0.4, 0.0, 0.0707107},
	{"{\"class_name\": \"TruncatedNormal\", \"config\": {\"mean\": 1, \"stddev\": 0.5}}", 0.0,
	 2.0, 1.0, 0.439813},
	{"\"Zeros\"", 0.0, 0.0, 0.0, 0.0},
	{"{\"class_name\": \"Ones\", \"config\": {}}", 1.0, 1.0, 1.0, 0.0},
	{"{\"class_name\": \"Constant\", \"config\": {\"value\": 2.5}}", 2.5, 2.5, 2.5, 0.0},
	{"{\"class_name\": \"RandomUniform\", \"config\": {\"minval\": 1, \"maxval\": 3, \"seed\": "
	 "null}}",
	 1.0, 3.0, 2.0, 0.577350},
	{"{\"class_name\": \"RandomNormal\", \"config\": {\"mean\": 1, \"stddev\": 0.5}}", -2.0,
	 4.0, 1.0, 0.5},
};

static void test_distributions_are_those_of_keras(void **state)
{
	static float values[COUNT];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(distributions); i++) {
		const struct distribution *d = &distributions[i];
		double sum = 0.0, squares = 0.0, least = INFINITY, most = -INFINITY, mean;
		struct model_init init;
		struct err err;
		struct rng rng;

		if (read_init(&init, d->text, &err) != ST_OK)
			fail_msg("%s", err.text);
		rng_init(&rng, 1, 2, 0, 0);
		model_init_fill(&init, values, COUNT, &rng);
		for (size_t j = 0; j < COUNT; j++) {
			sum += (double)values[j];
			squares += (double)values[j] * (double)values[j];
			least = fmin(least, (double)values[j]);
			most = fmax(most, (double)values[j]);
		}
		mean = sum / COUNT;
		assert_true(least >= d->low - 1e-5 && most <= d->high + 1e-5);
		assert_true(fabs(mean - d->mean) <= 0.02 * d->deviation);
		assert_true(fabs(sqrt(fmax(squares / COUNT - mean * mean, 0.0)) - d->deviation) <=
			    0.02 * d->deviation + 1e-6);
	}
}

/* Keras 3.0 to 3.6 name a class otherwise; a seed of Keras cannot give Keras's numbers. */
static void test_names_and_seeds_of_every_version_are_read(void **state)
{
	static const char *const texts[] = {
		"\"orthogonal\"",
		"{\"class_name\": \"Orthogonal\", \"config\": {\"gain\": 1.0, \"seed\": 3}}",
		"{\"class_name\": \"OrthogonalInitializer\", \"config\": {\"seed\": null}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct model_init init;
		struct err err = {0};

		if (read_init(&init, texts[i], &err) != ST_OK)
			fail_msg("%s", err.text);
		assert_int_equal(init.kind, MODEL_INIT_ORTHOGONAL);
	}
}

static void test_bad_initializers_are_refused(void **state)
{
	static const char *const texts[] = {
		"\"Random\"",
		"3",
		"{}",
		"{\"class_name\": \"Zeros\", \"config\": {\"valu\": 1}}",
		"{\"class_name\": \"Constant\", \"config\": {\"value\": \"1\"}}",
		"{\"class_name\": \"RandomNormal\", \"config\": {\"stddev\": -1}}",
		"{\"class_name\": \"RandomUniform\", \"config\": {\"minval\": 2, \"maxval\": 1}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct model_init init;
		struct err err = {0};

		assert_int_not_equal(read_init(&init, texts[i], &err), ST_OK);
		assert_true(*err.text);
	}
}

static void test_weights_depend_on_seed_and_layer_name_alone(void **state)
{
	const char *one =
		"[{\"class_name\": \"Dense\", \"config\": {\"units\": 8, \"name\": \"a\"}},"
		"{\"class_name\": \"Dense\", \"config\": {\"units\": 8, \"name\": \"b\", "
		"\"bias_initializer\": \"RandomNormal\"}}]";
	const char *other = "[{\"class_name\": \"Dense\", \"config\": {\"units\": 8, \"name\": "
			    "\"b\"}}]";
	struct math_model m, n;
	float first[512], second[512], third[512];

	(void)state;
	math_model_open(&m, one, 1, (int64_t[]){8});
	math_model_open(&n, other, 1, (int64_t[]){8});
	assert_true(m.model->weights <= 512);
	math_fill(first, 512, 1, 1.0f, 2.0f); /* gaps are cleared too */
	model_init_weights(m.model, first, 7);
	model_init_weights(m.model, second, 7);
	assert_memory_equal(first, second, m.model->weights * sizeof(float));
	model_init_weights(n.model, third, 7);
	assert_memory_equal(third, first + m.model->params[2].offset, 64 * sizeof(float));
	model_init_weights(n.model, third, 8);
	assert_memory_not_equal(third, first + m.model->params[2].offset, 64 * sizeof(float));
	assert_memory_not_equal(first, first + m.model->params[2].offset, 64 * sizeof(float));
	/* kernel and bias of a layer do not share numbers; default biases are 0 */
	assert_memory_not_equal(first + m.model->params[2].offset,
				first + m.model->params[3].offset, 8 * sizeof(float));
	for (size_t i = 0; i < 16; i++)
		assert_true(first[m.model->params[1].offset + i] == 0.0f);
	math_model_close(&m);
	math_model_close(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributions_are_those_of_keras),
		cmocka_unit_test(test_names_and_seeds_of_every_version_are_read),
		cmocka_unit_test(test_bad_initializers_are_refused),
		cmocka_unit_test(test_weights_depend_on_seed_and_layer_name_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
