/*
 * Dtype policies: what Keras 2 and 3 write and what follows the global one, which parameters are
 * rounded, and what passes read.
 */
#include "trainer/models/model_weights.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "support/model_texts.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/models/stage.h"

static const struct model_shape image = {.ndim = 3, .dim = {6, 6, 3}};

#define OPEN ""
#define TEXT ", \"dtype\": \"float32\""
#define NONE ", \"dtype\": null"
#define OLD  ", \"dtype\": \"mixed_float16\""
#define KERAS2                                                                                     \
	", \"dtype\": {\"class_name\": \"Policy\", \"config\": {\"name\": \"mixed_float16\"}}"
#define KERAS2_F ", \"dtype\": {\"class_name\": \"Policy\", \"config\": {\"name\": \"float32\"}}"
#define KERAS3_OF(name)                                                                            \
	", \"dtype\": {\"module\": \"keras\", \"class_name\": \"DTypePolicy\", \"config\": "       \
	"{\"name\": \"" name "\"}, \"registered_name\": null}"
#define KERAS3   KERAS3_OF("mixed_float16")
#define BFLOAT   ", \"dtype\": \"mixed_bfloat16\""
#define BFLOAT3  KERAS3_OF("mixed_bfloat16")
#define KERAS3_F KERAS3_OF("float32")

#define LAYER(class_name, config)                                                                  \
	"{\"class_name\": \"" class_name "\", \"config\": {\"trainable\": true" config "}}"
#define DENSE(dtype) LAYER("Dense", ", \"units\": 2" dtype)
#define TWO(a, b)    "{\"layers\": [" DENSE(a) "," DENSE(b) "]}"

/* ---- reading --------------------------------------------------------------------------------- */

/* Two layers, and which of them are half or bfloat16 by the global policy: h, b or -. */
static const struct {
	const char *text, *float32, *mixed;
} readings[] = {
	{TWO(OPEN, OPEN), "--", "hh"},
	{TWO(TEXT, TEXT), "--", "hh"},
	{TWO(NONE, TEXT), "--", "hh"},
	{TWO(OLD, OPEN), "h-", "hh"},
	{TWO(KERAS2, OPEN), "h-", "hh"},
	{TWO(KERAS3, KERAS3), "hh", "hh"},
	/* Keras 2 writes a policy that has float32 as a text, Keras 3 as an object. */
	{TWO(KERAS2, TEXT), "h-", "h-"},
	{TWO(KERAS3, KERAS3_F), "h-", "h-"},
	{TWO(KERAS3_F, OLD), "-h", "-h"},
	/* Chosen by hand, beside layers that say nothing. */
	{TWO(OPEN, KERAS2_F), "--", "h-"},
	{TWO(TEXT, KERAS3_F), "--", "h-"},
	/* What Keras 3 writes where nobody has chosen. */
	{TWO(KERAS3_F, KERAS3_F), "--", "hh"},
	{TWO(BFLOAT, OPEN), "b-", "bh"},
	{TWO(BFLOAT3, TEXT), "b-", "b-"},
	{TWO(BFLOAT, OLD), "bh", "bh"},
	{"{\"layers\": [" DENSE(KERAS3_F) "," LAYER("Outfeed", "") "]}", "--", "hh"},
};

static void says(const struct model *model, const char *expected, const char *text)
{
	bool any = false;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		if (layer->half != (expected[i] == 'h') || layer->bfloat16 != (expected[i] == 'b'))
			fail_msg("%s: layer %d: half %d, bfloat16 %d", text, i, layer->half,
				 layer->bfloat16);
		any = any || expected[i] != '-';
	}
	assert_true((model_policy(model) != MODEL_POLICY_TEXT) == any);
}

static void test_layers_follow_the_global_policy_unless_they_have_their_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(readings); i++) {
		struct model *model = support_model(readings[i].text, &image);

		says(model, readings[i].float32, readings[i].text);
		model_set_policy(model, MODEL_POLICY_MIXED);
		says(model, readings[i].mixed, readings[i].text);
		model_set_policy(model, MODEL_POLICY_TEXT);
		says(model, readings[i].float32, readings[i].text);
		model_free(model);
	}
}

static void test_models_of_models_and_inputs_have_dtypes_too(void **state)
{
	static const char text[] =
		"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"outer\"" KERAS3
		", \"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": "
		"[null, 6, 6, 3], \"dtype\": \"float16\", \"name\": \"in\"}},"
		"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"inner\"" KERAS3
		", \"layers\": [" LAYER("Flatten",
					KERAS3) "," DENSE(KERAS3) "]}}," DENSE(KERAS3_F) "]}}";
	struct model *model = support_model(text, &image);

	(void)state;
	says(model, "hh-", text);
	model_free(model);
}

static void test_other_dtypes_are_refused_with_their_place(void **state)
{
	static const struct support_refusal refusals[] = {
		{TWO(OPEN, ", \"dtype\": \"float16\""), ST_UNSUPPORTED,
		 "layers[1].config.dtype: not supported: it must be \"float32\", "
		 "\"mixed_float16\" or \"mixed_bfloat16\" here"},
		{TWO(", \"dtype\": \"float64\"", OPEN), ST_UNSUPPORTED, "layers[0].config.dtype"},
		{TWO(KERAS3_OF("bfloat16"), OPEN), ST_UNSUPPORTED, "layers[0].config.dtype"},
		{TWO(OPEN, ", \"dtype\": {\"class_name\": \"DTypePolicyMap\", \"config\": {}}"),
		 ST_UNSUPPORTED, "layers[1].config.dtype"},
		{TWO(OPEN, ", \"dtype\": 16"), ST_UNSUPPORTED, "layers[1].config.dtype"},
		{"{\"dtype\": \"bfloat16\", \"layers\": [" DENSE(OPEN) "]}", ST_UNSUPPORTED,
		 "dtype: not supported"},
		{"{\"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"dtype\": "
		 "\"string\"}}," DENSE(OPEN) "]}",
		 ST_UNSUPPORTED,
		 "layers[0].config.dtype: not supported: it must be \"float32\" or another type of "
		 "numbers"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		support_assert_refused(&refusals[i], &image);
}

/* ---- the rounded copy ------------------------------------------------------------------------ */

/* Everything with weights; the second Dense has its own policy, the first convolution is frozen. */
#define NAMED(name, class_name, config) LAYER(class_name, ", \"name\": \"" name "\"" config)
#define FROZEN                                                                                     \
	"{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"frozen\", \"filters\": 4, "         \
	"\"kernel_size\": 3, \"trainable\": false}}"
#define NORMS     LAYER("BatchNormalization", "") "," SEPARABLE "," LAYER("LayerNormalization", "")
#define SEPARABLE LAYER("SeparableConv2D", ", \"filters\": 3, \"kernel_size\": 2")
#define HALF      NAMED("half", "Dense", ", \"units\": 2")
#define WHOLE     NAMED("whole", "Dense", ", \"units\": 2" KERAS3_F)
#define FIRST     LAYER("Normalization", "") "," FROZEN
#define LAST      LAYER("Flatten", "") "," HALF "," WHOLE

static const char many[] = "{\"layers\": [" FIRST "," NORMS "," LAST "]}";

struct blocks {
	struct model *model;
	size_t bytes;
	float *weights, *halves;
};

static void blocks_open(struct blocks *b, const char *text)
{
	b->model = support_model(text, &image);
	model_set_policy(b->model, MODEL_POLICY_MIXED);
	b->bytes = b->model->weights * sizeof(float);
	b->weights = mem_aligned(b->model->weights, sizeof(float));
	b->halves = mem_aligned(b->model->weights, sizeof(float));
	assert_true(b->weights && b->halves);
	math_fill(b->weights, b->model->weights, 5, 0.5f, 1.0f);
}

static void blocks_close(struct blocks *b)
{
	model_free(b->model);
	mem_free(b->weights);
	mem_free(b->halves);
}

static const struct model_param *find(const struct model *model, const char *layer,
				      const char *short_name)
{
	for (int i = 0; i < model->param_count; i++)
		if (!strcmp(model->params[i].short_name, short_name) &&
		    (!layer || !strcmp(model->layers[model->params[i].layer].name, layer)))
			return &model->params[i];
	fail_msg("there is no %s", short_name);
	return NULL;
}

/* The copy holds each parameter of the policy rounded to its type, and nothing else. */
static void check_rounded(const struct blocks *b)
{
	int rounded = 0;

	memset(b->halves, 0, b->bytes);
	model_round_weights(b->model, NULL, 0, b->model->layer_count, false, b->weights, b->halves);
	for (int i = 0; i < b->model->param_count; i++) {
		const struct model_param *p = &b->model->params[i];

		rounded += p->half || p->bfloat16;
		for (size_t j = p->offset; j < p->offset + p->count; j++) {
			float expected = 0.0f;

			if (p->half)
				kernel_round_half(&expected, &b->weights[j], 1);
			else if (p->bfloat16)
				kernel_round_bfloat16(&expected, &b->weights[j], 1);
			assert_memory_equal(&b->halves[j], &expected, sizeof(float));
		}
	}
	assert_int_equal(rounded, 2 + 3 + 2);
}

static void test_kernels_and_biases_are_rounded_and_nothing_else(void **state)
{
	static const char *const whole[] = {"mean", "variance",    "count",          "gamma",
					    "beta", "moving_mean", "moving_variance"};
	struct blocks b;

	(void)state;
	blocks_open(&b, many);
	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		assert_false(find(b.model, NULL, whole[i])->half);
	assert_true(find(b.model, NULL, "depthwise_kernel")->half);
	assert_true(find(b.model, NULL, "pointwise_kernel")->half);
	assert_true(find(b.model, "frozen", "kernel")->half);
	assert_true(find(b.model, "half", "bias")->half);
	assert_false(find(b.model, "whole", "kernel")->half);

	check_rounded(&b);
	model_set_policy(b.model, MODEL_POLICY_MIXED_BFLOAT16);
	check_rounded(&b);
	blocks_close(&b);
}

static void test_after_an_update_what_learns_is_rounded(void **state)
{
	struct blocks b;
	const struct model_param *frozen, *learns;

	(void)state;
	blocks_open(&b, many);
	frozen = find(b.model, "frozen", "kernel");
	learns = find(b.model, "half", "kernel");
	model_round_weights(b.model, NULL, 0, learns->layer, true, b.weights, b.halves);
	assert_true(b.halves[frozen->offset] == 0.0f && b.halves[learns->offset] == 0.0f);
	model_round_weights(b.model, NULL, learns->layer, 1, true, b.weights, b.halves);
	assert_true(b.halves[learns->offset] != 0.0f);
	blocks_close(&b);
}

static void test_the_copy_is_the_same_bytes_on_any_number_of_threads(void **state)
{
	static const char text[] =
		"{\"layers\": [" LAYER("Flatten", "") "," LAYER("Dense", ", \"units\": 1999") "]}";
	static const unsigned helpers[] = {1, 3};
	struct blocks b;
	float *first;

	(void)state;
	blocks_open(&b, text);
	model_round_weights(b.model, NULL, 0, 2, false, b.weights, b.halves);
	first = mem_alloc(b.bytes);
	assert_non_null(first);
	memcpy(first, b.halves, b.bytes);
	for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
		struct pool *pool;

		memset(b.halves, 0, b.bytes);
		assert_int_equal(pool_new(&pool, helpers[i], NULL), ST_OK);
		model_round_weights(b.model, pool, 0, 2, false, b.weights, b.halves);
		pool_free(pool);
		assert_memory_equal(first, b.halves, b.bytes);
	}
	mem_free(first);
	blocks_close(&b);
}

/* ---- passes ---------------------------------------------------------------------------------- */

struct passes {
	float output[8], gradients[4096], to_input[2 * 108];
};

static void run_passes(struct passes *out, struct blocks *b, float *weights, float *halves)
{
	struct stage_params params = {.model = b->model,
				      .layer_count = b->model->layer_count,
				      .batch = 2,
				      .slots = 1,
				      .training = true,
				      .halves = halves};
	_Alignas(64) float gradient[16], to_input[2 * 108 + 8];
	_Alignas(64) static float gradients[4096];
	struct stage *stage;

	assert_true(b->model->weights <= ARRAY_LEN(gradients));
	memset(out, 0, sizeof(*out));
	memset(gradients, 0, sizeof(gradients));
	assert_int_equal(stage_new(&stage, &params, NULL), ST_OK);
	math_fill(stage_input(stage, 0), 2 * 108, 9, -1.0f, 1.0f);
	math_fill(gradient, ARRAY_LEN(gradient), 10, -1.0f, 1.0f);
	stage_forward(stage, 0, 2, 0, weights, NULL, NULL);
	memcpy(out->output, stage_output(stage, 0), 4 * sizeof(float));
	stage_backward(stage, 0, weights, gradient, gradients, to_input);
	memcpy(out->gradients, gradients, sizeof(gradients));
	memcpy(out->to_input, to_input, sizeof(out->to_input));
	stage_free(stage);
}

/* What passes read in two blocks is what they read in one that holds the rounded values; moving
 * statistics are written where the variables are. */
static void test_passes_read_the_copy_and_write_the_statistics(void **state)
{
	static struct passes two, one, float32;
	const struct model_param *moving;
	struct blocks b;
	float *merged, *variables;

	(void)state;
	blocks_open(&b, many);
	merged = mem_aligned(b.model->weights, sizeof(float));
	variables = mem_aligned(b.model->weights, sizeof(float));
	assert_true(merged && variables);
	model_round_weights(b.model, NULL, 0, b.model->layer_count, false, b.weights, b.halves);
	memcpy(merged, b.weights, b.bytes);
	memcpy(variables, b.weights, b.bytes);
	for (int i = 0; i < b.model->param_count; i++) {
		const struct model_param *p = &b.model->params[i];

		if (p->half)
			memcpy(merged + p->offset, b.halves + p->offset, p->count * sizeof(float));
	}
	run_passes(&two, &b, variables, b.halves);
	model_set_policy(b.model, MODEL_POLICY_TEXT);
	run_passes(&one, &b, merged, NULL);
	run_passes(&float32, &b, b.weights, NULL);

	assert_memory_equal(&two, &one, sizeof(one));
	assert_memory_not_equal(two.output, float32.output, sizeof(two.output));
	moving = find(b.model, NULL, "moving_mean");
	assert_memory_equal(variables + moving->offset, merged + moving->offset,
			    moving->count * sizeof(float));
	assert_true(variables[moving->offset] != 0.0f);
	assert_memory_equal(variables + find(b.model, "half", "kernel")->offset,
			    b.weights + find(b.model, "half", "kernel")->offset, sizeof(float));
	mem_free(merged);
	mem_free(variables);
	blocks_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_follow_the_global_policy_unless_they_have_their_own),
		cmocka_unit_test(test_models_of_models_and_inputs_have_dtypes_too),
		cmocka_unit_test(test_other_dtypes_are_refused_with_their_place),
		cmocka_unit_test(test_kernels_and_biases_are_rounded_and_nothing_else),
		cmocka_unit_test(test_after_an_update_what_learns_is_rounded),
		cmocka_unit_test(test_the_copy_is_the_same_bytes_on_any_number_of_threads),
		cmocka_unit_test(test_passes_read_the_copy_and_write_the_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
