/*
 * Layers: forward and backward by hand, and the device operations they become.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/lowered.h"
#include "support/math.h"
#include "model/layers/layer.h"
#include "trainer/models/stage.h"

static const char mlp[] = "["
			  "{'class_name': 'Flatten', 'config': {}},"
			  "{'class_name': 'Dense', 'config': {'units': 256, 'activation': 'relu', "
			  "'name': 'Dense_256'}},"
			  "{'class_name': 'Dense', 'config': {'units': 20, 'use_bias': false}},"
			  "{'class_name': 'Activation', 'config': {'activation': 'softmax'}},"
			  "{'class_name': 'Dense', 'config': {'units': 10, 'activation': "
			  "'softmax', 'name': 'Dense_10'}},"
			  "{'class_name': 'MaybeOutfeed', 'config': {}}"
			  "]";

static void test_dense_by_hand(void **state)
{
	/* [1 2] [[1 -1] [2 3]] + [10 -6] = [15 -1]; of [0 1]: [12 -3] */
	const float weights[] = {1, -1, 2, 3}, bias[] = {10, -6}, input[] = {1, 2, 0, 1};
	static const struct {
		const char *activation;
		float outputs[4];
	} rows[] = {
		{"linear", {15, -1, 12, -3}},
		{"relu", {15, 0, 12, 0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stage_params p = {
			.layer_count = 1, .batch = 2, .slots = 1, .training = true};
		char *layers = mem_printf("[{'class_name': 'Dense', 'config': "
					  "{'units': 2, 'activation': '%s'}}]",
					  rows[i].activation);
		float block[32] = {0}, gradients[32] = {0}, grad[] = {1, 1, 2, 1}, grad_input[4];
		struct math_model m;
		struct stage *stage;

		math_model_open(&m, layers, 1, (int64_t[]){2});
		mem_free(layers);
		p.model = m.model;
		memcpy(block, weights, sizeof(weights));
		memcpy(block + m.model->params[1].offset, bias, sizeof(bias));
		assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
		memcpy(stage_input(stage, 0), input, sizeof(input));
		stage_forward(stage, 0, 2, 0, block, NULL, NULL);
		assert_memory_equal(stage_output(stage, 0), rows[i].outputs,
				    sizeof(rows[i].outputs));

		/* relu: the second column's gradient is gone. dW = x^T dz, db its column sums. */
		stage_backward(stage, 0, block, grad, gradients, grad_input);
		assert_memory_equal(gradients,
				    i ? ((float[]){1, 0, 4, 0}) : ((float[]){1, 1, 4, 3}),
				    4 * sizeof(float));
		assert_memory_equal(gradients + 16, i ? ((float[]){3, 0}) : ((float[]){3, 2}),
				    2 * sizeof(float));
		assert_memory_equal(grad_input,
				    i ? ((float[]){1, 2, 2, 4}) : ((float[]){0, 5, 1, 7}),
				    4 * sizeof(float));
		stage_free(stage);
		math_model_close(&m);
	}
}

static void test_layers_become_device_operations(void **state)
{
	static const char *const forward[] = {
		"Dense_256/MatMul matmul 32x784x256: x p0 -> y",
		"Dense_256/BiasAdd elementwise 8192*1/256 add=1: y p1 -> y",
		"Dense_256/Relu elementwise 8192*1 relu=1: y -> y", NULL};
	static const char *const backward[] = {
		"Dense_256/Relu/Grad elementwise 8192*2 relu_grad=1: y dy -> dy",
		"Dense_256/MatMul/GradW matmul 784x32x256: x dy -> dp0",
		"Dense_256/BiasAdd/Grad reduce 8192>256: dy -> dp1", NULL};
	static const char *const plain[] = {"dense/MatMul matmul 32x256x20: x p0 -> y", NULL};
	static const char *const plain_backward[] = {
		"dense/MatMul/GradW matmul 256x32x20: x dy -> dp0",
		"dense/MatMul/GradX matmul 32x20x256: dy p0 -> dx", NULL};
	static const char *const softmax[] = {"activation/Softmax rows softmax 32x20: x -> y",
					      NULL};
	static const char *const softmax_backward[] = {
		"activation/Softmax/Grad rows softmax_grad 32x20: y dy -> dx", NULL};
	static const char *const last[] = {"Dense_10/MatMul matmul 32x20x10: x p0 -> y",
					   "Dense_10/BiasAdd elementwise 320*1/10 add=1: y p1 -> y",
					   "Dense_10/Softmax rows softmax 32x10: y -> y", NULL};
	static const char *const last_backward[] = {
		"Dense_10/Softmax/Grad rows softmax_grad 32x10: y dy -> dy",
		"Dense_10/MatMul/GradW matmul 20x32x10: x dy -> dp0",
		"Dense_10/BiasAdd/Grad reduce 320>10: dy -> dp1",
		"Dense_10/MatMul/GradX matmul 32x10x20: dy p0 -> dx", NULL};
	struct math_model m;

	(void)state;
	math_model_open(&m, mlp, 3, (int64_t[]){28, 28, 1});
	lowered_check(m.model, 1, 32, 'F', true, forward);
	lowered_check(m.model, 1, 32, 'B', true, backward);
	lowered_check(m.model, 2, 32, 'F', false, plain);
	lowered_check(m.model, 2, 32, 'B', false, plain_backward);
	lowered_check(m.model, 3, 32, 'F', false, softmax);
	lowered_check(m.model, 3, 32, 'B', false, softmax_backward);
	lowered_check(m.model, 4, 32, 'F', false, last);
	lowered_check(m.model, 4, 32, 'B', false, last_backward);
	assert_null(m.model->layers[0].ops->lower);
	assert_null(m.model->layers[5].ops->lower);
	math_model_close(&m);
}

/* The loss takes the sums of the layer that ends the model: they are there, and their gradient is
 * the loss's. */
static void test_the_last_sums_go_to_a_loss_that_takes_them(void **state)
{
	struct layer_lowering lowering = {.batch = 32, .training = true, .retains = true};
	struct math_model m;
	struct arena arena;

	(void)state;
	math_model_open(&m, mlp, 3, (int64_t[]){28, 28, 1});
	assert_int_equal(arena_init(&arena, 0), 0);
	lowering.model = m.model;
	lowering.layer = &m.model->layers[4];
	lowering.arena = &arena;
	lowering.takes_logits = true;
	lowering.phase = 'F';
	lowering.layer->ops->lower(&lowering);
	assert_int_equal(lowering.count, 3);
	assert_int_equal(lowering.ops[0].writes, LAYER_BETWEEN);
	assert_int_equal(lowering.ops[0].makes, 320);
	assert_int_equal(lowering.ops[1].writes, LAYER_BETWEEN);
	assert_int_equal(lowering.ops[2].reads, LAYER_BETWEEN);
	assert_int_equal(lowering.ops[2].writes, LAYER_OUTPUT);

	lowering.phase = 'B';
	lowering.count = 0;
	lowering.layer->ops->lower(&lowering);
	assert_int_equal(lowering.count, 2); /* of kernel and bias */
	assert_int_equal(lowering.ops[0].op.kind, IPU_OP_MATMUL);
	arena_fini(&arena);
	math_model_close(&m);
}

static void *no_resize(void *old, size_t size)
{
	(void)old;
	(void)size;
	return NULL;
}

static void *no_aligned(size_t alignment, size_t size)
{
	(void)alignment;
	(void)size;
	return NULL;
}

static void no_release(void *p)
{
	assert_null(p);
}

static void test_lowering_without_memory_says_so(void **state)
{
	static const struct mem_functions none = {no_resize, no_aligned, no_release};
	struct layer_lowering lowering = {.batch = 32, .phase = 'F', .training = true};
	struct math_model m;
	struct arena arena;

	(void)state;
	math_model_open(&m, mlp, 3, (int64_t[]){28, 28, 1});
	lowering.model = m.model;
	lowering.layer = &m.model->layers[1];
	lowering.arena = &arena;
	assert_int_equal(arena_init(&arena, 0), 0);
	mem_set_functions(&none);
	lowering.layer->ops->lower(&lowering);
	mem_set_functions(NULL);
	assert_true(lowering.failed);
	arena_fini(&arena);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense_by_hand),
		cmocka_unit_test(test_layers_become_device_operations),
		cmocka_unit_test(test_the_last_sums_go_to_a_loss_that_takes_them),
		cmocka_unit_test(test_lowering_without_memory_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
