/*
 * Normalising and pooling layers through a stage: gradients against differences, and what a stage
 * fuses and shares against each layer for itself.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "support/model_texts.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage.h"

#define STAGE_BATCH 3
#define STAGE_IN    (STAGE_BATCH * 8 * 7 * 6)
#define STAGE_MOST  256 /* floats of the output and of the parameters, at most */

static const int64_t stage_dims[] = {8, 7, 6};

/* Nothing with a corner: differences may be as wide as float needs. */
static const char smooth[] = "["
			     "{'class_name': 'BatchNormalization', 'config': {}},"
			     "{'class_name': 'AveragePooling2D', 'config': {'padding': 'same'}},"
			     "{'class_name': 'LayerNormalization', 'config': {}},"
			     "{'class_name': 'BatchNormalization', 'config': {'scale': false}},"
			     "{'class_name': 'GlobalAveragePooling2D', 'config': {}},"
			     "{'class_name': 'Dense', 'config': {'units': 3}}"
			     "]";

static const char cornered[] = "["
			       "{'class_name': 'BatchNormalization', 'config': {}},"
			       "{'class_name': 'Activation', 'config': {'activation': 'relu'}},"
			       "{'class_name': 'MaxPooling2D', 'config': {'pool_size': 3, "
			       "'strides': 2, 'padding': 'same'}},"
			       "{'class_name': 'BatchNormalization', 'config': {}},"
			       "{'class_name': 'Activation', 'config': {'activation': 'relu'}},"
			       "{'class_name': 'GlobalMaxPooling2D', 'config': {}},"
			       "{'class_name': 'BatchNormalization', 'config': {}},"
			       "{'class_name': 'Dense', 'config': {'units': 3}}"
			       "]";

struct through {
	struct math_model m;
	struct stage *stage;
	float weights[STAGE_MOST], gradients[STAGE_MOST], input[STAGE_IN], grad_input[STAGE_IN];
	float output[STAGE_BATCH * 3], slopes[STAGE_BATCH * 3];
};

static void through_open(struct through *t, const char *layers, bool plain)
{
	struct stage_params p = {.batch = STAGE_BATCH,
				 .slots = 1,
				 .training = true,
				 .unfused = plain,
				 .unshared = plain,
				 .poison = true};

	memset(t, 0, sizeof(*t));
	math_model_open(&t->m, layers, 3, stage_dims);
	assert_true(t->m.model->weights <= STAGE_MOST);
	p.model = t->m.model;
	p.layer_count = t->m.model->layer_count;
	assert_int_equal(stage_new(&t->stage, &p, NULL), ST_OK);
	model_init_weights(t->m.model, t->weights, 1);
	for (int i = 0; i < t->m.model->param_count; i++)
		if (t->m.model->params[i].shape.ndim == 1 && t->m.model->params[i].trainable)
			math_fill(t->weights + t->m.model->params[i].offset,
				  t->m.model->params[i].count, 5, 0.4f, 1.2f);
	math_fill(t->input, STAGE_IN, 6, -2.0f, 3.0f);
	math_fill(t->slopes, ARRAY_LEN(t->slopes), 7, -1.0f, 1.0f);
}

static void through_close(struct through *t)
{
	stage_free(t->stage);
	math_model_close(&t->m);
}

static double through_forward(struct through *t)
{
	double value = 0.0;

	memcpy(stage_input(t->stage, 0), t->input, sizeof(t->input));
	stage_forward(t->stage, 0, STAGE_BATCH, 0, t->weights, NULL, NULL);
	memcpy(t->output, stage_output(t->stage, 0), sizeof(t->output));
	for (size_t i = 0; i < ARRAY_LEN(t->output); i++)
		value += (double)t->output[i] * (double)t->slopes[i];
	return value;
}

static void through_run(struct through *t)
{
	float slopes[STAGE_BATCH * 3];

	through_forward(t);
	memcpy(slopes, t->slopes, sizeof(slopes));
	stage_backward(t->stage, 0, t->weights, slopes, t->gradients, t->grad_input);
}

static void check_through(struct through *t, float *at, float got)
{
	const float h = 0x1p-8f, kept = *at;
	double up, wanted;

	*at = kept + h;
	up = through_forward(t);
	*at = kept - h;
	wanted = (up - through_forward(t)) / (2.0 * (double)h);
	*at = kept;
	if (!(fabs((double)got - wanted) < 1e-3 + 1e-2 * fabs(wanted)))
		fail_msg("the gradient is %.9g, the difference %.9g", (double)got, wanted);
}

static void test_a_stage_of_normalised_layers_has_the_gradients_of_differences(void **state)
{
	static struct through t;

	(void)state;
	through_open(&t, smooth, false);
	through_run(&t);
	for (int i = 0; i < t.m.model->param_count; i++) {
		const struct model_param *param = &t.m.model->params[i];

		for (size_t j = 0; param->trainable && j < param->count; j++)
			check_through(&t, &t.weights[param->offset + j],
				      t.gradients[param->offset + j]);
	}
	for (size_t i = 0; i < STAGE_IN; i += 5)
		check_through(&t, &t.input[i], t.grad_input[i]);
	through_close(&t);
}

/* A ReLU in the normalising pass, gradients in place, memory shared: as each for itself. */
static void test_what_a_stage_fuses_and_shares_changes_no_byte(void **state)
{
	static struct through plain, fused;

	(void)state;
	through_open(&plain, cornered, true);
	through_open(&fused, cornered, false);
	through_run(&plain);
	through_run(&fused);
	assert_memory_equal(plain.output, fused.output, sizeof(plain.output));
	assert_memory_equal(plain.grad_input, fused.grad_input, sizeof(plain.grad_input));
	assert_memory_equal(plain.gradients, fused.gradients, sizeof(plain.gradients));
	assert_memory_equal(plain.weights, fused.weights, sizeof(plain.weights));
	for (size_t i = 0; i < STAGE_IN; i++)
		assert_true(isfinite(fused.grad_input[i]));
	through_close(&plain);
	through_close(&fused);
}

/* Reading these layers, wherever memory ends. */
static void test_no_memory_leaves_no_model(void **state)
{
	struct model_shape shape = {.ndim = 3, .dim = {8, 7, 6}};
	char *text = mem_printf("{\"layers\": %s}", cornered);

	(void)state;
	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	support_model_no_memory(text, &shape);
	mem_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_stage_of_normalised_layers_has_the_gradients_of_differences),
		cmocka_unit_test(test_what_a_stage_fuses_and_shares_changes_no_byte),
		cmocka_unit_test(test_no_memory_leaves_no_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
