/*
 * The device operations that MultiHeadAttention becomes, and its FLOPs.
 */
#include "support/lowered.h"
#include "support/math.h"
#include "model/layers/layer.h"

/* Of 2 items with 4 steps of 5 features. */
static void test_attention_is_products_of_each_head(void **state)
{
	static const char *const forward[] = {
		"l/Query/MatMul matmul 8x5x6 makes=256: x p0 -> k",
		"l/Key/MatMul matmul 8x5x6: x p2 -> k",
		"l/Value/MatMul matmul 8x5x6: x p4 -> k",
		"l/Projections/BiasAdd elementwise 144*1/18 add=1: k p1 p3 p5 -> k",
		"l/Scale elementwise 48*1 add=1: k -> k",
		"l/Scores conv f 4 4*3>4 1x1>1x1 k1x1 s1x1 d1x1: k -> k",
		"l/Softmax rows softmax 16x4: k -> k",
		"l/Context conv f 4 4*4>3 1x1>1x1 k1x1 s1x1 d1x1: k -> k",
		"l/Output/MatMul matmul 8x6x5: k p6 -> y",
		"l/Output/BiasAdd elementwise 40*1/5 add=1: y p7 -> y",
		NULL};
	static const char *const backward[] = {
		"l/Output/GradX matmul 8x5x6 makes=256: dy p6 -> b",
		"l/Context/GradX conv d 4 4*4>3 1x1>1x1 k1x1 s1x1 d1x1: k b -> b",
		"l/Context/GradV conv w 4 4*4>3 1x1>1x1 k1x1 s1x1 d1x1: k b -> b",
		"l/Softmax/Grad rows softmax_grad 16x4: k b -> b",
		"l/Scores/GradX conv d 4 4*3>4 1x1>1x1 k1x1 s1x1 d1x1: k b -> b",
		"l/Scores/GradK conv w 4 4*3>4 1x1>1x1 k1x1 s1x1 d1x1: k b -> b",
		"l/Scale/Grad elementwise 48*1 add=1: b -> b",
		"l/Query/GradX matmul 8x6x5: b p0 -> dx0",
		"l/Key/GradX matmul 8x6x5: b p2 -> dx0",
		"l/Value/GradX matmul 8x6x5: b p4 -> dx0",
		"l/Query/GradW matmul 5x8x6: x b -> dp0",
		"l/Key/GradW matmul 5x8x6: x b -> dp2",
		"l/Value/GradW matmul 5x8x6: x b -> dp4",
		"l/Output/GradW matmul 6x8x5: k dy -> dp6",
		"l/Projections/BiasAdd/Grad reduce 144>18: b -> dp1 dp3 dp5",
		"l/Output/BiasAdd/Grad reduce 40>5: dy -> dp7",
		NULL};
	struct math_model m;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'MultiHeadAttention', 'config': {'name': 'l', "
			"'num_heads': 2, 'key_dim': 3}}]",
			2, (int64_t[]){4, 5});
	lowered_check(m.model, 0, 2, 'F', false, forward);
	lowered_check(m.model, 0, 2, 'B', false, backward);
	math_model_close(&m);
}

/* A product of MxK and KxN takes 2 M K N, a value of a softmax 5. */
static void test_flops_are_those_of_the_products_and_the_softmax(void **state)
{
	const int64_t items = 2, steps = 4, features = 5, heads = 2, key = 3, value = 2;
	const int64_t rows = items * steps, pairs = items * heads * steps * steps;
	const int64_t projections = 2 * rows * features * heads * (2 * key + 2 * value);
	struct math_model m;

	(void)state;
	math_model_open(&m,
			"[{'class_name': 'MultiHeadAttention', 'config': {'num_heads': 2, "
			"'key_dim': 3, 'value_dim': 2}}]",
			2, (int64_t[]){steps, features});
	assert_int_equal(model_layer_flops(m.model, 0, items),
			 projections + pairs * (2 * key + 5 + 2 * value));
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attention_is_products_of_each_head),
		cmocka_unit_test(test_flops_are_those_of_the_products_and_the_softmax),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
