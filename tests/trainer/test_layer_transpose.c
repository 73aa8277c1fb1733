/*
 * Conv2DTranspose and Conv1DTranspose: sides, values against loops in double, gradients against
 * central differences, any number of threads, refusals, device operations.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {'name': 'l'" options "}}]"

enum {
	BATCH = 2,
	HEIGHT = 4,
	WIDTH = 5,
	CHANNELS = 3,
	FILTERS = 2
};

/* Sides are those that Keras 2.6 gives. */
static const struct form {
	const char *layer;
	int kernel[2], stride[2], dilation[2];
	int pad[2]; /* of the convolution from the output: above, to the left */
	int64_t out[2];
} forms[] = {
	{LAYER("Conv2DTranspose", ", 'filters': 2, 'kernel_size': 3"),
	 {3, 3},
	 {1, 1},
	 {1, 1},
	 {0, 0},
	 {6, 7}},
	{LAYER("Conv2DTranspose",
	       ", 'filters': 2, 'kernel_size': 3, 'strides': 2, 'padding': 'same'"),
	 {3, 3},
	 {2, 2},
	 {1, 1},
	 {0, 0},
	 {8, 10}},
	{LAYER("Conv2DTranspose",
	       ", 'filters': 2, 'kernel_size': [4, 5], 'strides': [2, 3], 'padding': "
	       "'same', 'use_bias': false"),
	 {4, 5},
	 {2, 3},
	 {1, 1},
	 {1, 1},
	 {8, 15}},
	{LAYER("Conv2DTranspose", ", 'filters': 2, 'kernel_size': [2, 1], 'strides': [3, 2]"),
	 {2, 1},
	 {3, 2},
	 {1, 1},
	 {0, 0},
	 {12, 10}},
	{LAYER("Conv2DTranspose",
	       ", 'filters': 2, 'kernel_size': 3, 'strides': 2, 'output_padding': 1"),
	 {3, 3},
	 {2, 2},
	 {1, 1},
	 {0, 0},
	 {10, 12}},
	{LAYER("Conv2DTranspose",
	       ", 'filters': 2, 'kernel_size': 3, 'strides': 2, 'padding': 'same', "
	       "'output_padding': [1, 0]"),
	 {3, 3},
	 {2, 2},
	 {1, 1},
	 {0, 1},
	 {8, 9}},
	{LAYER("Conv2DTranspose", ", 'filters': 2, 'kernel_size': [2, 3], 'dilation_rate': [3, 2]"),
	 {2, 3},
	 {1, 1},
	 {3, 2},
	 {0, 0},
	 {7, 9}},
};

static void open_form(struct layer_rig *rig, const struct form *form)
{
	layer_rig_open(rig, form->layer, 3, (int64_t[]){HEIGHT, WIDTH, CHANNELS}, BATCH, true,
		       NULL);
	math_fill(rig->x, rig->in, 1, -1.0f, 1.0f);
	math_fill(rig->dy, rig->out, 2, -1.0f, 1.0f);
	math_fill(rig->weights, rig->m.model->weights, 3, -1.0f, 1.0f);
}

/* Each pixel of the input is spread over the kernel's places in the output. */
static void reference(const struct form *form, const struct layer_rig *rig, double *y)
{
	const float *kernel = rig->weights;
	const struct model_param *last = &rig->m.model->params[rig->m.model->param_count - 1];

	for (size_t i = 0; i < rig->out; i++)
		y[i] = rig->m.model->param_count > 1
			       ? (double)rig->weights[last->offset + i % FILTERS]
			       : 0.0;
	for (int64_t at = 0; at < BATCH * HEIGHT * WIDTH * form->kernel[0] * form->kernel[1];
	     at++) {
		const int64_t kx = at % form->kernel[1], rest = at / form->kernel[1];
		const int64_t ky = rest % form->kernel[0], pixel = rest / form->kernel[0];
		const int64_t x = pixel % WIDTH, row = pixel / WIDTH % HEIGHT;
		const int64_t b = pixel / WIDTH / HEIGHT;
		const int64_t oy = row * form->stride[0] + ky * form->dilation[0] - form->pad[0];
		const int64_t ox = x * form->stride[1] + kx * form->dilation[1] - form->pad[1];

		if (oy < 0 || oy >= form->out[0] || ox < 0 || ox >= form->out[1])
			continue;
		for (int64_t f = 0; f < FILTERS; f++)
			for (int64_t c = 0; c < CHANNELS; c++)
				y[((b * form->out[0] + oy) * form->out[1] + ox) * FILTERS + f] +=
					(double)rig->x[pixel * CHANNELS + c] *
					(double)kernel[((ky * form->kernel[1] + kx) * FILTERS + f) *
							       CHANNELS +
						       c];
	}
}

static void test_an_input_is_spread_over_the_output(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		const struct form *form = &forms[i];
		double y[BATCH * 16 * 16 * FILTERS];
		struct layer_rig rig;

		open_form(&rig, form);
		assert_int_equal(rig.m.model->layers[0].output.dim[0], form->out[0]);
		assert_int_equal(rig.m.model->layers[0].output.dim[1], form->out[1]);
		assert_int_equal(rig.m.model->layers[0].output.dim[2], FILTERS);
		assert_true(rig.out <= ARRAY_LEN(y));
		reference(form, &rig, y);
		layer_rig_forward(&rig);
		for (size_t at = 0; at < rig.out; at++)
			if (fabs((double)rig.y[at] - y[at]) > 1e-5)
				fail_msg("%s: number %zu is %g, not %g", form->layer, at,
					 (double)rig.y[at], y[at]);
		layer_rig_close(&rig);
	}
}

/* ---- gradients ------------------------------------------------------------------------------- */

static double value_of(const struct form *form, struct layer_rig *rig, const float *slopes)
{
	double y[BATCH * 16 * 16 * FILTERS], value = 0.0;

	reference(form, rig, y);
	for (size_t i = 0; i < rig->out; i++)
		value += y[i] * (double)slopes[i];
	return value;
}

/* The layer is linear in each of its numbers: a great step is as good as a small one. */
static void check_slopes(const struct form *form, struct layer_rig *rig, float *numbers,
			 size_t count, const float *gradient, const float *slopes)
{
	for (size_t i = 0; i < count; i++) {
		const float kept = numbers[i];
		double up, wanted;

		numbers[i] = kept + 1.0f;
		up = value_of(form, rig, slopes);
		numbers[i] = kept - 1.0f;
		wanted = (up - value_of(form, rig, slopes)) / 2.0;
		numbers[i] = kept;
		if (fabs((double)gradient[i] - wanted) > 1e-5 * (fabs(wanted) + 1.0))
			fail_msg("%s: gradient %zu is %g, not %g", form->layer, i,
				 (double)gradient[i], wanted);
	}
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		float slopes[BATCH * 16 * 16 * FILTERS];
		struct layer_rig rig;

		open_form(&rig, &forms[i]);
		memcpy(slopes, rig.dy, rig.out * sizeof(float));
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		check_slopes(&forms[i], &rig, rig.x, rig.in, rig.dx, slopes);
		for (int p = 0; p < rig.m.model->param_count; p++) {
			const struct model_param *param = &rig.m.model->params[p];

			check_slopes(&forms[i], &rig, rig.weights + param->offset, param->count,
				     rig.gradients + param->offset, slopes);
		}
		layer_rig_close(&rig);
	}
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	layer_rig_check_pools(LAYER("Conv2DTranspose",
				    ", 'filters': 12, 'kernel_size': 4, 'strides': 2, "
				    "'padding': 'same', 'activation': 'relu'"),
			      (int64_t[]){17, 15, 20}, 5, layer_rig_fill, NULL);
	layer_rig_check_pools(LAYER("Conv2DTranspose",
				    ", 'filters': 12, 'kernel_size': 3, 'activation': 'swish'"),
			      (int64_t[]){17, 15, 20}, 5, layer_rig_fill, NULL);
}

static void test_a_sequence_is_an_image_one_pixel_high(void **state)
{
	static const char sequence[] = LAYER(
		"Conv1DTranspose", ", 'filters': 4, 'kernel_size': 5, 'strides': 2, 'padding': "
				   "'same', 'activation': 'tanh', 'output_padding': 1");
	static const char image[] = LAYER(
		"Conv2DTranspose", ", 'filters': 4, 'kernel_size': [1, 5], 'strides': [1, 2], "
				   "'padding': 'same', 'activation': 'tanh'");
	struct layer_rig one, two;

	(void)state;
	layer_rig_open(&one, sequence, 2, (int64_t[]){9, 3}, 2, true, NULL);
	layer_rig_open(&two, image, 3, (int64_t[]){1, 9, 3}, 2, true, NULL);
	assert_int_equal(one.m.model->layers[0].output.dim[0], 18);
	assert_int_equal(one.m.model->params[0].shape.ndim, 3);
	assert_int_equal(one.m.model->params[0].shape.dim[1], 4);
	assert_int_equal(one.m.model->params[0].shape.dim[2], 3);
	layer_rig_fill(&one);
	layer_rig_fill(&two);
	layer_rig_forward(&one);
	layer_rig_forward(&two);
	layer_rig_backward(&one);
	layer_rig_backward(&two);
	assert_memory_equal(one.y, two.y, one.out * sizeof(float));
	assert_memory_equal(one.dx, two.dx, one.in * sizeof(float));
	assert_memory_equal(one.gradients, two.gradients, one.m.model->weights * sizeof(float));
	layer_rig_close(&one);
	layer_rig_close(&two);
}

/* ---- refusals and costs ---------------------------------------------------------------------- */

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{LAYER("Conv2DTranspose", ", 'filters': 2"), "kernel_size", ST_INVALID},
		{LAYER("Conv2DTranspose", ", 'kernel_size': 2"), "filters", ST_INVALID},
		{LAYER("Conv2DTranspose", ", 'filters': 2, 'kernel_size': 3, 'groups': 3"),
		 "it must be 1", ST_UNSUPPORTED},
		{LAYER("Conv2DTranspose",
		       ", 'filters': 2, 'kernel_size': 3, 'strides': 2, 'output_padding': 2"),
		 "below the stride, 2", ST_INVALID},
		{LAYER("Conv2DTranspose",
		       ", 'filters': 2, 'kernel_size': 2, 'strides': 2, 'padding': "
		       "'same', 'output_padding': 0"),
		 "leave \"output_padding\" out", ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 3, (int64_t[]){5, 4, 3}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(LAYER("Conv1DTranspose", ", 'filters': 2, 'kernel_size': 3"), 3,
			  (int64_t[]){4, 5, 6}, ST_INVALID, "needs sequences");
}

static void test_it_becomes_a_convolution_the_other_way_round(void **state)
{
	static const char *const forward[] = {
		"l/Conv2DTranspose conv d 2 1*8>3 8x10>4x5 k3x3 s2x2 d1x1: x p0 -> y",
		"l/BiasAdd elementwise 1280*1/8 add=1: y p1 -> y", NULL};
	static const char *const backward[] = {
		"l/Conv2DTranspose/GradW conv w 2 1*8>3 8x10>4x5 k3x3 s2x2 d1x1: x dy -> dp0",
		"l/BiasAdd/Grad reduce 1280>8: dy -> dp1",
		"l/Conv2DTranspose/GradX conv f 2 1*8>3 8x10>4x5 k3x3 s2x2 d1x1: dy p0 -> dx",
		NULL};
	static const enum ipu_pass passes[] = {IPU_FORWARD, IPU_BACKWARD_WEIGHTS,
					       IPU_BACKWARD_DATA};
	const struct ipu_composite from = {.kind = IPU_COMPOSITE_CONV2DTRANSPOSE,
					   .batch = 2,
					   .groups = 1,
					   .in_channels = CHANNELS,
					   .out_channels = 8,
					   .field = {HEIGHT, WIDTH},
					   .out = {2 * HEIGHT, 2 * WIDTH},
					   .kernel = {3, 3},
					   .stride = {2, 2},
					   .dilation = {1, 1}};
	struct math_model m;

	(void)state;
	math_model_open(&m,
			LAYER("Conv2DTranspose",
			      ", 'filters': 8, 'kernel_size': 3, 'strides': 2, 'padding': 'same'"),
			3, (int64_t[]){HEIGHT, WIDTH, CHANNELS});
	lowered_check(m.model, 0, 2, 'F', false, forward);
	lowered_check(m.model, 0, 2, 'B', false, backward);
	lowered_check_composite(m.model, 0, 2, 'F', &from, passes, 1);
	lowered_check_composite(m.model, 0, 2, 'B', &from, &passes[1], 2);
	/* Products of all inputs with the kernel, and a sum for each output. */
	assert_int_equal(m.model->layers[0].ops->flops(&m.model->layers[0], 2),
			 2 * (4 * 5 * 3) * 2 * 9 * 8 + 1280);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_input_is_spread_over_the_output),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_a_sequence_is_an_image_one_pixel_high),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_it_becomes_a_convolution_the_other_way_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
