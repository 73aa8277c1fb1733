/*
 * The device operations that the layers with windows become.
 */
#include "common/arena.h"
#include "common/mem.h"
#include "support/math.h"
#include "trainer/layers/layer.h"

struct wanted {
	const char *name;
	enum ipu_op_kind kind;
	int64_t m, n, k;
};

static void check_lowered(const struct model *model, char phase, bool first,
			  const struct wanted *wanted, int count)
{
	const struct model_layer *at = &model->layers[0];
	struct layer_op ops[LAYER_OPS];
	struct arena arena;

	assert_int_equal(arena_init(&arena, 0), 0);
	assert_int_equal(at->ops->lower(model, at, 32, phase, first, ops, LAYER_OPS, &arena),
			 count);
	for (int i = 0; i < count; i++) {
		assert_string_equal(ops[i].op.name, wanted[i].name);
		assert_int_equal(ops[i].op.kind, wanted[i].kind);
		assert_int_equal(ops[i].op.phase, phase);
	}
	arena_fini(&arena);
}

static void test_other_windows_become_device_operations(void **state)
{
	static const char *const layers[] = {
		"[{'class_name': 'DepthwiseConv2D', 'config': {'kernel_size': 2, 'use_bias': "
		"false}}]",
		"[{'class_name': 'SeparableConv2D', 'config': {'filters': 3, 'kernel_size': 2}}]",
		"[{'class_name': 'ZeroPadding2D', 'config': {}}]",
	};
	static const struct wanted depthwise[] = {
		{"depthwise_conv2d/depthwise", IPU_OP_ELEMENTWISE, 0, 32 * 16 * 4, 0},
		{"depthwise_conv2d/depthwise/GradW", IPU_OP_ELEMENTWISE, 0, 32 * 16 * 4, 0},
		{"depthwise_conv2d/depthwise/GradX", IPU_OP_ELEMENTWISE, 0, 32 * 16 * 4, 0},
	};
	static const struct wanted separable[] = {
		{"separable_conv2d/separable_conv2d/depthwise", IPU_OP_ELEMENTWISE, 0, 32 * 16 * 4,
		 0},
		{"separable_conv2d/separable_conv2d", IPU_OP_MATMUL, 32 * 16, 3, 4},
		{"separable_conv2d/BiasAdd", IPU_OP_ELEMENTWISE, 0, 32 * 16 * 3, 0},
		{"separable_conv2d/separable_conv2d/GradW", IPU_OP_MATMUL, 4, 3, 32 * 16},
		{"separable_conv2d/BiasAdd/Grad", IPU_OP_REDUCE, 3, 32 * 16 * 3, 0},
		{"separable_conv2d/separable_conv2d/GradX", IPU_OP_MATMUL, 32 * 16, 4, 3},
		{"separable_conv2d/separable_conv2d/depthwise/GradW", IPU_OP_ELEMENTWISE, 0,
		 32 * 16 * 4, 0},
		{"separable_conv2d/separable_conv2d/depthwise/GradX", IPU_OP_ELEMENTWISE, 0,
		 32 * 16 * 4, 0},
	};
	static const struct wanted padding[] = {
		{"zero_padding2d/Pad", IPU_OP_COPY, 0, 32 * 49 * 4, 0},
		{"zero_padding2d/Pad/Grad", IPU_OP_COPY, 0, 32 * 25 * 4, 0},
	};
	const struct wanted *const wanted[] = {depthwise, separable, padding};
	static const int forward[] = {1, 3, 1}, backward[] = {2, 5, 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
		struct math_model m;

		math_model_open(&m, layers[i], 3, (int64_t[]){5, 5, 4});
		check_lowered(m.model, 'F', true, wanted[i], forward[i]);
		check_lowered(m.model, 'B', false, wanted[i] + forward[i], backward[i]);
		check_lowered(m.model, 'B', true, wanted[i] + forward[i], backward[i] - 1);
		math_model_close(&m);
	}
}

static void test_convolutions_become_device_operations(void **state)
{
	static const char layers[] =
		"[{'class_name': 'Conv2D', 'config': {'filters': 6, 'kernel_size': [2, 3], "
		"'groups': 2, 'activation': 'relu'}}]";
	static const struct wanted forward[] = {
		{"conv2d/Conv2D", IPU_OP_MATMUL, 32 * 4 * 3, 6, 12},
		{"conv2d/BiasAdd", IPU_OP_ELEMENTWISE, 0, 32 * 4 * 3 * 6, 0},
		{"conv2d/Relu", IPU_OP_ELEMENTWISE, 0, 32 * 4 * 3 * 6, 0},
	};
	static const struct wanted backward[] = {
		{"conv2d/Relu/Grad", IPU_OP_ELEMENTWISE, 0, 32 * 4 * 3 * 6, 0},
		{"conv2d/Conv2D/GradW", IPU_OP_MATMUL, 12, 6, 32 * 4 * 3},
		{"conv2d/BiasAdd/Grad", IPU_OP_REDUCE, 6, 32 * 4 * 3 * 6, 0},
		{"conv2d/Conv2D/GradX", IPU_OP_MATMUL, 32 * 4 * 3, 12, 6},
	};
	struct math_model m;

	(void)state;
	math_model_open(&m, layers, 3, (int64_t[]){5, 5, 4});
	check_lowered(m.model, 'F', false, forward, 3);
	check_lowered(m.model, 'B', false, backward, 4);
	check_lowered(m.model, 'B', true, backward, 3);
	assert_int_equal(model_layer_flops(m.model, 0, 32), 32 * 4 * 3 * 6 * (2 * 12 + 2));
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_convolutions_become_device_operations),
		cmocka_unit_test(test_other_windows_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
