/*
 * MaxPooling2D, AveragePooling2D and the global ones: shapes, values and gradients through whole
 * layers, any number of threads, refusals. The arithmetic itself is tested with the kernels.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {" options "}}]"

static void check_shape(const char *layer, const int64_t *in, int ndim, const int64_t *out)
{
	struct math_model m;

	math_model_open(&m, layer, 3, in);
	assert_int_equal(m.model->layers[0].output.ndim, ndim);
	for (int i = 0; i < ndim; i++)
		assert_int_equal(m.model->layers[0].output.dim[i], out[i]);
	math_model_close(&m);
}

static void test_output_shapes_are_tensorflows(void **state)
{
	static const struct {
		const char *layer;
		int64_t in[3], out[3];
	} rows[] = {
		{LAYER("MaxPooling2D", ""), {26, 26, 32}, {13, 13, 32}},
		{LAYER("MaxPooling2D", ""), {11, 11, 64}, {5, 5, 64}},
		{LAYER("MaxPooling2D", "'padding': 'same'"), {11, 11, 64}, {6, 6, 64}},
		{LAYER("MaxPooling2D", "'pool_size': 3, 'strides': 2"),
		 {114, 114, 64},
		 {56, 56, 64}},
		{LAYER("AveragePooling2D", "'pool_size': [3, 2], 'strides': [1, 2]"),
		 {9, 9, 4},
		 {7, 4, 4}},
		{LAYER("AveragePooling2D", "'pool_size': [3, 2], 'strides': null, 'padding': "
					   "'same'"),
		 {10, 9, 4},
		 {4, 5, 4}},
		{LAYER("MaxPooling2D", "'pool_size': [5, 5], 'padding': 'same', 'strides': 1"),
		 {2, 3, 1},
		 {2, 3, 1}},
		{LAYER("GlobalAveragePooling2D", "'keepdims': true"), {7, 7, 20}, {1, 1, 20}},
		{LAYER("GlobalMaxPooling2D", "'keepdims': true"), {7, 7, 20}, {1, 1, 20}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_shape(rows[i].layer, rows[i].in, 3, rows[i].out);
	check_shape(LAYER("GlobalAveragePooling2D", ""), (int64_t[]){7, 7, 20}, 1, (int64_t[]){20});
	check_shape(LAYER("GlobalMaxPooling2D", "'keepdims': false"), (int64_t[]){7, 7, 20}, 1,
		    (int64_t[]){20});
}

static void test_configs_of_keras_2_and_3_are_read(void **state)
{
	(void)state;
	check_shape(LAYER("MaxPooling2D",
			  "'name': 'max_pooling2d', 'trainable': true, 'dtype': 'float32', "
			  "'pool_size': [2, 2], 'padding': 'valid', 'strides': [2, 2], "
			  "'data_format': 'channels_last'"),
		    (int64_t[]){8, 8, 2}, 3, (int64_t[]){4, 4, 2});
	check_shape(LAYER("AveragePooling2D",
			  "'name': 'average_pooling2d', 'trainable': true, 'dtype': {'module': "
			  "'keras', 'class_name': 'DTypePolicy', 'config': {'name': 'float32'}, "
			  "'registered_name': null}, 'pool_size': [2, 2], 'padding': 'valid', "
			  "'strides': [2, 2], 'data_format': 'channels_last'"),
		    (int64_t[]){8, 8, 2}, 3, (int64_t[]){4, 4, 2});
	check_shape(LAYER("GlobalAveragePooling2D",
			  "'name': 'avg_pool', 'trainable': true, 'dtype': 'float32', "
			  "'data_format': 'channels_last', 'keepdims': false"),
		    (int64_t[]){8, 8, 2}, 1, (int64_t[]){2});
}

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{LAYER("MaxPooling2D", "'pool_size': 0"), "config.pool_size", ST_INVALID},
		{LAYER("MaxPooling2D", "'pool_size': [2, 0]"), "config.pool_size[1]", ST_INVALID},
		{LAYER("MaxPooling2D", "'pool_size': [2]"), "a list of two", ST_INVALID},
		{LAYER("MaxPooling2D", "'pool_size': '2'"), "config.pool_size", ST_INVALID},
		{LAYER("MaxPooling2D", "'strides': 1.5"), "config.strides", ST_INVALID},
		{LAYER("MaxPooling2D", "'pool_size': 9"),
		 "config: a pool of 9x9 does not fit into an image of 4x5", ST_INVALID},
		{LAYER("AveragePooling2D", "'padding': 'sane'"), "did you mean \"same\"",
		 ST_INVALID},
		{LAYER("AveragePooling2D", "'data_format': 'channels_first'"), "config.data_format",
		 ST_UNSUPPORTED},
		{LAYER("AveragePooling2D", "'dilation': 2"), "dilation", ST_INVALID},
		{LAYER("GlobalMaxPooling2D", "'keepdims': 1"), "config.keepdims", ST_INVALID},
		{LAYER("GlobalAveragePooling2D", "'data_format': 'channels_first'"),
		 "config.data_format", ST_UNSUPPORTED},
		{LAYER("MaxPool2D", ""), "did you mean \"MaxPooling2D\"", ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 3, (int64_t[]){4, 5, 6}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(LAYER("MaxPooling2D", ""), 2, (int64_t[]){4, 5}, ST_INVALID,
			  "needs images");
	layer_rig_refused(LAYER("GlobalAveragePooling2D", ""), 1, (int64_t[]){4}, ST_INVALID,
			  "needs images");
}

/* 3 x 3 by hand: "same" has its missing row and column at the end. */
static void test_same_padding_by_hand(void **state)
{
	static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, -9};
	static const float most[] = {5, 6, 8, -9}, mean[] = {3, 4.5f, 7.5f, -9};
	static const float most_dx[] = {0, 0, 0, 0, 1, 2, 0, 3, 4};
	static const float mean_dx[] = {0.25f, 0.25f, 1, 0.25f, 0.25f, 1, 1.5f, 1.5f, 4};
	struct layer_rig rig;

	(void)state;
	for (int average = 0; average < 2; average++) {
		layer_rig_open(&rig,
			       average ? LAYER("AveragePooling2D", "'padding': 'same'")
				       : LAYER("MaxPooling2D", "'padding': 'same'"),
			       3, (int64_t[]){3, 3, 1}, 1, true, NULL);
		memcpy(rig.x, x, sizeof(x));
		memcpy(rig.dy, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		assert_memory_equal(rig.y, average ? mean : most, sizeof(most));
		assert_memory_equal(rig.dx, average ? mean_dx : most_dx, sizeof(most_dx));
		layer_rig_close(&rig);
	}
}

/* ---- every layer ----------------------------------------------------------------------------- */

static const char *const layers[] = {
	LAYER("MaxPooling2D", ""),
	LAYER("MaxPooling2D", "'pool_size': 3, 'strides': 2, 'padding': 'same'"),
	LAYER("MaxPooling2D", "'pool_size': [17, 16], 'strides': 3"),
	LAYER("AveragePooling2D", ""),
	LAYER("AveragePooling2D", "'pool_size': 3, 'strides': 2, 'padding': 'same'"),
	LAYER("GlobalAveragePooling2D", ""),
	LAYER("GlobalMaxPooling2D", ""),
};

static double rig_value(struct layer_rig *rig, const float *slopes)
{
	double value = 0.0;

	layer_rig_forward(rig);
	for (size_t i = 0; i < rig->out; i++)
		value += (double)rig->y[i] * (double)slopes[i];
	return value;
}

/* All of them are linear around a point where no two cells are near each other, so that a step may
 * be as wide as float needs. */
static void test_gradients_are_those_of_central_differences(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		const float h = 0x1p-12f;
		float slopes[3000];
		struct layer_rig rig;

		layer_rig_open(&rig, layers[l], 3, (int64_t[]){18, 17, 3}, 2, true, NULL);
		assert_true(rig.out <= ARRAY_LEN(slopes));
		math_fill(slopes, rig.out, 2, -1.0f, 1.0f);
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		/* All different: a permutation. */
		for (size_t i = 0; i < rig.in; i++)
			rig.x[i] = (float)(i * 1103 % 2048) * 0x1p-9f;
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		for (size_t i = 0; i < rig.in; i += 7) {
			float kept = rig.x[i];
			double up, wanted;

			rig.x[i] = kept + h;
			up = rig_value(&rig, slopes);
			rig.x[i] = kept - h;
			wanted = (up - rig_value(&rig, slopes)) / (2.0 * (double)h);
			rig.x[i] = kept;
			assert_true(fabs((double)rig.dx[i] - wanted) < 5e-3 * (fabs(wanted) + 0.1));
		}
		layer_rig_close(&rig);
	}
}

/* Added to what is there; a micro-batch smaller than the greatest. */
static void check_added(struct layer_rig *rig, const float *y, const float *dx)
{
	rig->add[0] = true;
	rig->pass.batch = 3;
	layer_rig_forward(rig);
	layer_rig_backward(rig);
	for (size_t i = 0; i < rig->in / 5 * 3; i++)
		assert_true(fabsf(rig->dx[i] - 2.0f * dx[i]) < 1e-6f);
	assert_memory_equal(y, rig->y, rig->out * sizeof(float));
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		layer_rig_check_pools(layers[l], (int64_t[]){27, 25, 40}, 5, layer_rig_fill,
				      check_added);
}

static void test_inference_gives_the_same_values(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		struct layer_rig training, inference;

		layer_rig_open(&training, layers[l], 3, (int64_t[]){18, 17, 3}, 2, true, NULL);
		layer_rig_open(&inference, layers[l], 3, (int64_t[]){18, 17, 3}, 2, false, NULL);
		math_fill(training.x, training.in, 1, -1.0f, 1.0f);
		math_fill(inference.x, inference.in, 1, -1.0f, 1.0f);
		layer_rig_forward(&training);
		layer_rig_forward(&inference);
		assert_memory_equal(training.y, inference.y, training.out * sizeof(float));
		layer_rig_close(&training);
		layer_rig_close(&inference);
	}
}

static void test_layers_become_device_operations(void **state)
{
	static const struct {
		const char *layer;
		int64_t flops;
		const char *forward[2], *backward[4];
	} rows[] = {
		{LAYER("MaxPooling2D", "'name': 'p'"),
		 2 * 3 * 3 * 5 * 4,
		 {"p/MaxPool pool max 2*5 6x6>3x3 k2x2 s2x2: x -> y"},
		 {"p/MaxPool/Grad pool max backward 2*5 6x6>3x3 k2x2 s2x2: x y dy -> dx"}},
		{LAYER("AveragePooling2D", "'name': 'p', 'pool_size': 3, 'strides': [3, 2]"),
		 2 * 2 * 2 * 5 * 9,
		 {"p/AvgPool pool mean 2*5 6x6>2x2 k3x3 s3x2: x -> y"},
		 {"p/AvgPool/Grad pool mean backward 2*5 6x6>2x2 k3x3 s3x2: dy -> dx"}},
		{LAYER("GlobalAveragePooling2D", "'name': 'p'"),
		 2 * 6 * 6 * 5,
		 {"p/Mean reduce 360>10: x -> y"},
		 {"p/Mean/Grad elementwise 360*0/10 add=1: dy -> dx"}},
		{LAYER("GlobalMaxPooling2D", "'name': 'p'"),
		 2 * 6 * 6 * 5,
		 {"p/Max reduce 360>10: x -> y"},
		 {"p/Max/Grad/Equal elementwise 360*1/10 select=1 makes=360: x y -> b",
		  "p/Max/Grad/Sum reduce 360>10 makes=10: b -> c",
		  "p/Max/Grad elementwise 360*1/10 add=1 divide=1: b c dy -> dx"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;

		math_model_open(&m, rows[i].layer, 3, (int64_t[]){6, 6, 5});
		lowered_check(m.model, 0, 2, 'F', true, rows[i].forward);
		lowered_check(m.model, 0, 2, 'B', false, rows[i].backward);
		lowered_check(m.model, 0, 2, 'B', true, (const char *[]){NULL});
		assert_int_equal(m.model->layers[0].ops->flops(&m.model->layers[0], 2),
				 rows[i].flops);
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output_shapes_are_tensorflows),
		cmocka_unit_test(test_configs_of_keras_2_and_3_are_read),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_same_padding_by_hand),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_inference_gives_the_same_values),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
