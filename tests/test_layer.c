/*
 * Layers: forward and backward by hand, and the device operations they become.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/layers/layer.h"
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

struct wanted {
	const char *name;
	enum ipu_op_kind kind;
	int64_t m, n, k, work;
};

static void check_lowered(const struct model *model, int layer, char phase, bool first,
			  const struct wanted *wanted, int count)
{
	const struct model_layer *at = &model->layers[layer];
	struct layer_op ops[LAYER_OPS];
	struct arena arena;
	int got;

	assert_int_equal(arena_init(&arena, 0), 0);
	got = at->ops->lower(model, at, 32, phase, first, ops, LAYER_OPS, &arena);
	assert_int_equal(got, count);
	for (int i = 0; i < count; i++) {
		assert_string_equal(ops[i].op.name, wanted[i].name);
		assert_int_equal(ops[i].op.kind, wanted[i].kind);
		assert_int_equal(ops[i].op.phase, phase);
		assert_ptr_equal(ops[i].op.layer, at->name);
	}
	arena_fini(&arena);
}

static void test_layers_become_device_operations(void **state)
{
	static const struct wanted forward[] = {
		{"Dense_256/MatMul", IPU_OP_MATMUL, 32, 256, 784, 0},
		{"Dense_256/BiasAdd", IPU_OP_ELEMENTWISE, 0, 32 * 256, 0, 1},
		{"Dense_256/Relu", IPU_OP_ELEMENTWISE, 0, 32 * 256, 0, 1},
	};
	static const struct wanted backward[] = {
		{"Dense_256/Relu/Grad", IPU_OP_ELEMENTWISE, 0, 32 * 256, 0, 1},
		{"Dense_256/MatMul/GradW", IPU_OP_MATMUL, 784, 256, 32, 0},
		{"Dense_256/BiasAdd/Grad", IPU_OP_REDUCE, 256, 32 * 256, 0, 0},
		{"Dense_256/MatMul/GradX", IPU_OP_MATMUL, 32, 784, 256, 0},
	};
	static const struct wanted plain[] = {
		{"dense/MatMul", IPU_OP_MATMUL, 32, 20, 256, 0},
		{"dense/MatMul/GradW", IPU_OP_MATMUL, 256, 20, 32, 0},
		{"dense/MatMul/GradX", IPU_OP_MATMUL, 32, 256, 20, 0},
	};
	static const struct wanted softmax[] = {
		{"activation/Softmax", IPU_OP_ELEMENTWISE, 0, 640, 0, 5},
		{"activation/Softmax/Grad", IPU_OP_ELEMENTWISE, 0, 640, 0, 4},
	};
	/* The last softmax's gradient is the loss's. */
	static const struct wanted last[] = {
		{"Dense_10/MatMul/GradW", IPU_OP_MATMUL, 20, 10, 32, 0},
		{"Dense_10/BiasAdd/Grad", IPU_OP_REDUCE, 10, 320, 0, 0},
		{"Dense_10/MatMul/GradX", IPU_OP_MATMUL, 32, 20, 10, 0},
	};
	struct math_model m;

	(void)state;
	math_model_open(&m, mlp, 3, (int64_t[]){28, 28, 1});
	check_lowered(m.model, 1, 'F', true, forward, 3);
	check_lowered(m.model, 1, 'B', true, backward, 3);
	check_lowered(m.model, 1, 'B', false, backward, 4);
	check_lowered(m.model, 2, 'F', false, plain, 1);
	check_lowered(m.model, 2, 'B', false, plain + 1, 2);
	check_lowered(m.model, 3, 'F', false, softmax, 1);
	check_lowered(m.model, 3, 'B', false, softmax + 1, 1);
	check_lowered(m.model, 4, 'B', false, last, 3);
	assert_null(m.model->layers[0].ops->lower);
	assert_null(m.model->layers[5].ops->lower);
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

static void test_lowering_stops_at_the_room_it_is_given_and_without_memory(void **state)
{
	static const struct mem_functions none = {no_resize, no_aligned, no_release};
	const struct model_layer *layer;
	struct layer_op ops[LAYER_OPS];
	struct math_model m;
	struct arena arena;
	int got;

	(void)state;
	math_model_open(&m, mlp, 3, (int64_t[]){28, 28, 1});
	layer = &m.model->layers[1];
	assert_int_equal(arena_init(&arena, 0), 0);
	assert_int_equal(layer->ops->lower(m.model, layer, 32, 'F', true, ops, 2, &arena), 2);
	arena_fini(&arena);

	assert_int_equal(arena_init(&arena, 0), 0);
	mem_set_functions(&none);
	got = layer->ops->lower(m.model, layer, 32, 'F', true, ops, LAYER_OPS, &arena);
	mem_set_functions(NULL);
	assert_int_equal(got, -1);
	arena_fini(&arena);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense_by_hand),
		cmocka_unit_test(test_layers_become_device_operations),
		cmocka_unit_test(test_lowering_stops_at_the_room_it_is_given_and_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
