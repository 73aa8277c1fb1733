/*
 * The device operations that the layers of images become.
 */
#include "common/mem.h"
#include "support/lowered.h"
#include "support/math.h"
#include "model/layers/layer.h"

static void check(const char *layers, const char *const *forward, const char *const *backward,
		  const char *const *first)
{
	struct math_model m;

	math_model_open(&m, layers, 3, (int64_t[]){5, 5, 4});
	lowered_check(m.model, 0, 32, 'F', true, forward);
	lowered_check(m.model, 0, 32, 'B', false, backward);
	lowered_check(m.model, 0, 32, 'B', true, first);
	math_model_close(&m);
}

static void test_depthwise_convolutions_have_a_group_for_each_channel(void **state)
{
	static const char *const forward[] = {
		"depthwise_conv2d/depthwise conv f 32 4*1>3 5x5>2x2 k2x2 s2x2 d1x1: x p0 -> y",
		NULL};
	static const char *const backward[] = {"depthwise_conv2d/depthwise/GradW conv w 32 4*1>3 "
					       "5x5>2x2 k2x2 s2x2 d1x1: x dy -> dp0",
					       "depthwise_conv2d/depthwise/GradX conv d 32 4*1>3 "
					       "5x5>2x2 k2x2 s2x2 d1x1: dy p0 -> dx",
					       NULL};
	static const char *const first[] = {"depthwise_conv2d/depthwise/GradW conv w 32 4*1>3 "
					    "5x5>2x2 k2x2 s2x2 d1x1: x dy -> dp0",
					    NULL};

	(void)state;
	check("[{'class_name': 'DepthwiseConv2D', 'config': {'kernel_size': 2, 'use_bias': "
	      "false, 'depth_multiplier': 3, 'strides': 2}}]",
	      forward, backward, first);
}

static void test_separable_convolutions_are_two(void **state)
{
	static const char *const forward[] = {
		"separable_conv2d/separable_conv2d/depthwise conv f 32 4*1>1 5x5>4x4 k2x2 s1x1 "
		"d1x1 makes=3584: x p0 -> k",
		"separable_conv2d/separable_conv2d conv f 32 1*4>3 4x4>4x4 k1x1 s1x1 d1x1: k p1 -> "
		"k",
		"separable_conv2d/BiasAdd elementwise 1536*1/3 add=1: k p2 -> k",
		"separable_conv2d/Swish elementwise 1536*1 add=1 sigmoid=1: k -> y", NULL};
	static const char *const backward[] = {
		"separable_conv2d/Swish/Grad elementwise 1536*2 add=5 sigmoid=1: k dy -> dy",
		"separable_conv2d/separable_conv2d/GradW conv w 32 1*4>3 4x4>4x4 k1x1 s1x1 d1x1: k "
		"dy -> dp1",
		"separable_conv2d/BiasAdd/Grad reduce 1536>3: dy -> dp2",
		"separable_conv2d/separable_conv2d/GradX conv d 32 1*4>3 4x4>4x4 k1x1 s1x1 d1x1 "
		"makes=2048: dy p1 -> b",
		"separable_conv2d/separable_conv2d/depthwise/GradW conv w 32 4*1>1 5x5>4x4 k2x2 "
		"s1x1 d1x1: x b -> dp0",
		"separable_conv2d/separable_conv2d/depthwise/GradX conv d 32 4*1>1 5x5>4x4 k2x2 "
		"s1x1 d1x1: b p0 -> dx",
		NULL};
	static const char *const first[] = {
		"separable_conv2d/Swish/Grad elementwise 1536*2 add=5 sigmoid=1: k dy -> dy",
		"separable_conv2d/separable_conv2d/GradW conv w 32 1*4>3 4x4>4x4 k1x1 s1x1 d1x1: k "
		"dy -> dp1",
		"separable_conv2d/BiasAdd/Grad reduce 1536>3: dy -> dp2",
		"separable_conv2d/separable_conv2d/GradX conv d 32 1*4>3 4x4>4x4 k1x1 s1x1 d1x1 "
		"makes=2048: dy p1 -> b",
		"separable_conv2d/separable_conv2d/depthwise/GradW conv w 32 4*1>1 5x5>4x4 k2x2 "
		"s1x1 d1x1: x b -> dp0",
		NULL};

	(void)state;
	check("[{'class_name': 'SeparableConv2D', 'config': {'filters': 3, 'kernel_size': 2, "
	      "'activation': 'swish'}}]",
	      forward, backward, first);
}

/* popops::pad makes a view: nothing is copied, the next layer reads zeros where they are. */
static void test_padding_is_a_view(void **state)
{
	static const char *const none[] = {NULL};

	(void)state;
	check("[{'class_name': 'ZeroPadding2D', 'config': {}}]", none, none, none);
}

static void test_convolutions_become_device_operations(void **state)
{
	static const char layers[] =
		"[{'class_name': 'Conv2D', 'config': {'filters': 6, 'kernel_size': [2, 3], "
		"'groups': 2, 'activation': 'relu'}}]";
	static const char *const forward[] = {
		"conv2d/Conv2D conv f 32 2*2>3 5x5>4x3 k2x3 s1x1 d1x1: x p0 -> y",
		"conv2d/BiasAdd elementwise 2304*1/6 add=1: y p1 -> y",
		"conv2d/Relu elementwise 2304*1 relu=1: y -> y", NULL};
	static const char *const backward[] = {
		"conv2d/Relu/Grad elementwise 2304*2 relu_grad=1: y dy -> dy",
		"conv2d/Conv2D/GradW conv w 32 2*2>3 5x5>4x3 k2x3 s1x1 d1x1: x dy -> dp0",
		"conv2d/BiasAdd/Grad reduce 2304>6: dy -> dp1",
		"conv2d/Conv2D/GradX conv d 32 2*2>3 5x5>4x3 k2x3 s1x1 d1x1: dy p0 -> dx", NULL};
	static const char *const first[] = {
		"conv2d/Relu/Grad elementwise 2304*2 relu_grad=1: y dy -> dy",
		"conv2d/Conv2D/GradW conv w 32 2*2>3 5x5>4x3 k2x3 s1x1 d1x1: x dy -> dp0",
		"conv2d/BiasAdd/Grad reduce 2304>6: dy -> dp1", NULL};
	struct math_model m;

	(void)state;
	check(layers, forward, backward, first);
	math_model_open(&m, layers, 3, (int64_t[]){5, 5, 4});
	assert_int_equal(model_layer_flops(m.model, 0, 32), 32 * 4 * 3 * 6 * (2 * 12 + 2));
	math_model_close(&m);
}

static void test_a_kept_activation_and_a_dilation(void **state)
{
	static const char *const forward[] = {
		"conv2d/Conv2D conv f 32 1*4>3 5x5>5x5 k2x2 s1x1 d2x2 makes=2400: x p0 -> k",
		"conv2d/BiasAdd elementwise 2400*1/3 add=1: k p1 -> k",
		"conv2d/Gelu elementwise 2400*1 add=19 divide=1: k -> y", NULL};
	static const char *const backward[] = {
		"conv2d/Gelu/Grad elementwise 2400*2 add=23 divide=1 exp=1: k dy -> dy",
		"conv2d/Conv2D/GradW conv w 32 1*4>3 5x5>5x5 k2x2 s1x1 d2x2: x dy -> dp0",
		"conv2d/BiasAdd/Grad reduce 2400>3: dy -> dp1",
		"conv2d/Conv2D/GradX conv d 32 1*4>3 5x5>5x5 k2x2 s1x1 d2x2: dy p0 -> dx", NULL};
	static const char *const first[] = {
		"conv2d/Gelu/Grad elementwise 2400*2 add=23 divide=1 exp=1: k dy -> dy",
		"conv2d/Conv2D/GradW conv w 32 1*4>3 5x5>5x5 k2x2 s1x1 d2x2: x dy -> dp0",
		"conv2d/BiasAdd/Grad reduce 2400>3: dy -> dp1", NULL};

	(void)state;
	check("[{'class_name': 'Conv2D', 'config': {'filters': 3, 'kernel_size': 2, "
	      "'dilation_rate': 2, 'padding': 'same', 'activation': 'gelu'}}]",
	      forward, backward, first);
}

static void test_a_frozen_convolution_has_the_gradient_of_its_input_alone(void **state)
{
	static const char *const forward[] = {
		"conv2d/Conv2D conv f 32 1*4>3 5x5>5x5 k1x1 s1x1 d1x1: x p0 -> y",
		"conv2d/BiasAdd elementwise 2400*1/3 add=1: y p1 -> y", NULL};
	static const char *const backward[] = {
		"conv2d/Conv2D/GradX conv d 32 1*4>3 5x5>5x5 k1x1 s1x1 d1x1: dy p0 -> dx", NULL};
	static const char *const first[] = {NULL};

	(void)state;
	check("[{'class_name': 'Conv2D', 'config': {'filters': 3, 'kernel_size': 1, 'trainable': "
	      "false}}]",
	      forward, backward, first);
}

static void test_mixed_float16_computes_in_half(void **state)
{
	static const char *const forward[] = {
		"conv2d/Conv2D conv f 32 1*4>3 5x5>5x5 k1x1 s1x1 d1x1 half: x p0 -> y",
		"conv2d/BiasAdd elementwise 2400*1/3 add=1 half: y p1 -> y", NULL};
	static const char *const backward[] = {
		"conv2d/Conv2D/GradW conv w 32 1*4>3 5x5>5x5 k1x1 s1x1 d1x1 half: x dy -> dp0",
		"conv2d/BiasAdd/Grad reduce 2400>3 half: dy -> dp1",
		"conv2d/Conv2D/GradX conv d 32 1*4>3 5x5>5x5 k1x1 s1x1 d1x1 half: dy p0 -> dx",
		NULL};
	static const char *const first[] = {
		"conv2d/Conv2D/GradW conv w 32 1*4>3 5x5>5x5 k1x1 s1x1 d1x1 half: x dy -> dp0",
		"conv2d/BiasAdd/Grad reduce 2400>3 half: dy -> dp1", NULL};

	(void)state;
	check("[{'class_name': 'Conv2D', 'config': {'filters': 3, 'kernel_size': 1, 'dtype': "
	      "'mixed_float16'}}]",
	      forward, backward, first);
}

/* A decision for each channel of an item: 32 of 4 channels. */
static void test_a_spatial_dropout_decides_for_whole_channels(void **state)
{
	static const char *const forward[] = {
		"spatial_dropout2d/dropout/RandomUniform elementwise 128*0 random=1 makes=128B "
		"training: -> k",
		"spatial_dropout2d/dropout/Mul elementwise 3200*1/128 add=1 select=1 training: x k "
		"-> y",
		NULL};
	static const char *const backward[] = {
		"spatial_dropout2d/dropout/Mul/Grad elementwise 3200*1/128 add=1 select=1 "
		"training: k dy -> dx",
		NULL};
	static const char *const first[] = {NULL};

	(void)state;
	check("[{'class_name': 'SpatialDropout2D', 'config': {'rate': 0.5}}]", forward, backward,
	      first);
}

/* 5x5 to 5x7 to 6x7 pixels: 3200, 4480 and 5376 values, each between two. */
static void test_resizing_goes_along_one_axis_after_the_other(void **state)
{
	static const char *const forward[] = {
		"resizing/ResizeBilinear/Columns copy 8960/4 makes=8960: x -> b",
		"resizing/ResizeBilinear/Columns/Lerp elementwise 4480*2/7 add=3 makes=4480: b -> "
		"c",
		"resizing/ResizeBilinear/Rows copy 10752/28 makes=10752: c -> b",
		"resizing/ResizeBilinear/Rows/Lerp elementwise 5376*2/6 add=3: b -> y", NULL};
	static const char *const backward[] = {
		"resizing/ResizeBilinear/Grad/Rows/Lerp elementwise 10752*1/6 add=1 makes=10752: "
		"dy -> b",
		"resizing/ResizeBilinear/Grad/Rows reduce 10752>4480 makes=4480: b -> c",
		"resizing/ResizeBilinear/Grad/Columns/Lerp elementwise 8960*1/7 add=1 makes=8960: "
		"c -> b",
		"resizing/ResizeBilinear/Grad/Columns reduce 8960>3200: b -> dx", NULL};
	static const char *const first[] = {NULL};

	(void)state;
	check("[{'class_name': 'Resizing', 'config': {'height': 6, 'width': 7}}]", forward,
	      backward, first);
}

static void test_resizing_to_the_nearest_pixel_copies(void **state)
{
	static const char *const forward[] = {"resizing/ResizeNearest copy 5376/4: x -> y", NULL};
	static const char *const backward[] = {
		"resizing/ResizeNearest/Grad reduce 5376>3200: dy -> dx", NULL};
	static const char *const first[] = {NULL};

	(void)state;
	check("[{'class_name': 'Resizing', 'config': {'height': 6, 'width': 7, 'interpolation': "
	      "'nearest'}}]",
	      forward, backward, first);
}

/* Each of 32 * 5 * 5 rows has a mean and an inverse deviation, which are kept for the gradients. */
static void test_a_normalisation_keeps_two_numbers_of_each_row(void **state)
{
	static const char *const forward[] = {
		"l/LayerNorm/Mean reduce 3200>800 makes=800: x -> b",
		"l/LayerNorm/PowerSum reduce 3200>800 makes=800: x -> c",
		"l/LayerNorm/Statistics elementwise 800*2 add=5 divide=1 sqrt=1 makes=1600: b c "
		"-> k",
		"l/LayerNorm elementwise 3200*1/4 add=4: x k p0 p1 -> y", NULL};
	struct math_model m;

	(void)state;
	math_model_open(&m, "[{'class_name': 'LayerNormalization', 'config': {'name': 'l'}}]", 3,
			(int64_t[]){5, 5, 4});
	lowered_check(m.model, 0, 32, 'F', false, forward);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_convolutions_become_device_operations),
		cmocka_unit_test(test_depthwise_convolutions_have_a_group_for_each_channel),
		cmocka_unit_test(test_separable_convolutions_are_two),
		cmocka_unit_test(test_padding_is_a_view),
		cmocka_unit_test(test_a_kept_activation_and_a_dilation),
		cmocka_unit_test(test_a_frozen_convolution_has_the_gradient_of_its_input_alone),
		cmocka_unit_test(test_mixed_float16_computes_in_half),
		cmocka_unit_test(test_a_spatial_dropout_decides_for_whole_channels),
		cmocka_unit_test(test_resizing_goes_along_one_axis_after_the_other),
		cmocka_unit_test(test_resizing_to_the_nearest_pixel_copies),
		cmocka_unit_test(test_a_normalisation_keeps_two_numbers_of_each_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
