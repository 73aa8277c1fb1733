/*
 * Layers over sequences, which are those over images one pixel high; layers that rearrange; PReLU
 * and Embedding: shapes, values by hand, gradients, any number of threads, refusals, device
 * operations.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"
#include "support/lowered.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {'name': 'l'" options "}}]"

/* ---- one dimension --------------------------------------------------------------------------- */

static const struct {
	const char *sequence, *image;
	int64_t steps; /* of the output of 19 steps; 0: a vector */
	const char *params;
} twins[] = {
	{LAYER("Conv1D", ", 'filters': 8, 'kernel_size': 3"),
	 LAYER("Conv2D", ", 'filters': 8, 'kernel_size': [1, 3]"), 17, "(3, 4, 8) (8,)"},
	{LAYER("Conv1D", ", 'filters': 6, 'kernel_size': [5], 'strides': [2], 'padding': 'same', "
			 "'activation': 'tanh', 'groups': 2"),
	 LAYER("Conv2D", ", 'filters': 6, 'kernel_size': [1, 5], 'strides': [1, 2], 'padding': "
			 "'same', 'activation': 'tanh', 'groups': 2"),
	 10, "(5, 2, 6) (6,)"},
	{LAYER("Conv1D", ", 'filters': 3, 'kernel_size': 3, 'dilation_rate': 4, 'use_bias': false"),
	 LAYER("Conv2D", ", 'filters': 3, 'kernel_size': [1, 3], 'dilation_rate': [1, 4], "
			 "'use_bias': false"),
	 11, "(3, 4, 3)"},
	{LAYER("DepthwiseConv1D", ", 'kernel_size': 4, 'depth_multiplier': 2"),
	 LAYER("DepthwiseConv2D", ", 'kernel_size': [1, 4], 'depth_multiplier': 2"), 16,
	 "(4, 4, 2) (8,)"},
	{LAYER("SeparableConv1D", ", 'filters': 5, 'kernel_size': 3, 'padding': 'same'"),
	 LAYER("SeparableConv2D", ", 'filters': 5, 'kernel_size': [1, 3], 'padding': 'same'"), 19,
	 "(3, 4, 1) (1, 4, 5) (5,)"},
	{LAYER("MaxPooling1D", ""), LAYER("MaxPooling2D", ", 'pool_size': [1, 2]"), 9, ""},
	{LAYER("AveragePooling1D", ", 'pool_size': [3], 'strides': 2, 'padding': 'same'"),
	 LAYER("AveragePooling2D", ", 'pool_size': [1, 3], 'strides': [1, 2], 'padding': 'same'"),
	 10, ""},
	{LAYER("GlobalAveragePooling1D", ""), LAYER("GlobalAveragePooling2D", ""), 0, ""},
	{LAYER("GlobalMaxPooling1D", ", 'keepdims': true"),
	 LAYER("GlobalMaxPooling2D", ", 'keepdims': true"), 1, ""},
	{LAYER("ZeroPadding1D", ", 'padding': [2, 3]"),
	 LAYER("ZeroPadding2D", ", 'padding': [[0, 0], [2, 3]]"), 24, ""},
	{LAYER("ZeroPadding1D", ""), LAYER("ZeroPadding2D", ", 'padding': [0, 1]"), 21, ""},
	{LAYER("SpatialDropout1D", ", 'rate': 0.5"), LAYER("SpatialDropout2D", ", 'rate': 0.5"), 19,
	 ""},
	{LAYER("Cropping1D", ", 'cropping': [3, 1]"),
	 LAYER("Cropping2D", ", 'cropping': [[0, 0], [3, 1]]"), 15, ""},
	{LAYER("Cropping1D", ""), LAYER("Cropping2D", ", 'cropping': [0, 1]"), 17, ""},
	{LAYER("UpSampling1D", ", 'size': 3"), LAYER("UpSampling2D", ", 'size': [1, 3]"), 57, ""},
};

static void run(struct layer_rig *rig, const char *layer, bool image)
{
	const int64_t dims[] = {1, 19, 4};

	layer_rig_open(rig, layer, image ? 3 : 2, image ? dims : dims + 1, 3, true, NULL);
	math_fill(rig->x, rig->in, 1, -1.0f, 1.0f);
	math_fill(rig->dy, rig->out, 2, -1.0f, 1.0f);
	layer_rig_forward(rig);
	layer_rig_backward(rig);
}

static void check_shapes(const struct layer_rig *rig, int64_t steps, const char *params)
{
	const struct model *model = rig->m.model;
	const struct model_shape *output = &model->layers[0].output;
	char text[256] = "";

	assert_int_equal(output->ndim, steps ? 2 : 1);
	if (steps)
		assert_int_equal(output->dim[0], steps);
	for (int p = 0; p < model->param_count; p++) {
		const struct model_shape *shape = &model->params[p].shape;

		strcat(text, p ? " (" : "(");
		for (int d = 0; d < shape->ndim; d++) {
			const char *after = d < shape->ndim - 1 ? ", "
					    : shape->ndim == 1  ? ","
								: "";

			snprintf(text + strlen(text), 32, "%lld%s", (long long)shape->dim[d],
				 after);
		}
		strcat(text, ")");
	}
	assert_string_equal(text, params);
}

static void test_a_sequence_is_an_image_one_pixel_high(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(twins); i++) {
		struct layer_rig sequence, image;

		run(&sequence, twins[i].sequence, false);
		run(&image, twins[i].image, true);
		check_shapes(&sequence, twins[i].steps, twins[i].params);
		assert_int_equal(sequence.out, image.out);
		assert_int_equal(sequence.m.model->weights, image.m.model->weights);
		assert_memory_equal(sequence.y, image.y, sequence.out * sizeof(float));
		assert_memory_equal(sequence.dx, image.dx, sequence.in * sizeof(float));
		if (sequence.m.model->weights)
			assert_memory_equal(sequence.gradients, image.gradients,
					    sequence.m.model->weights * sizeof(float));
		layer_rig_close(&sequence);
		layer_rig_close(&image);
	}
}

/* ---- rearranging by hand --------------------------------------------------------------------- */

static void test_numbers_go_where_keras_has_them(void **state)
{
	static const struct {
		const char *layer;
		int ndim;
		int64_t dims[3], out[3];
		int out_ndim;
		float y[24]; /* of 0, 1, 2, ... */
	} rows[] = {
		{LAYER("Cropping2D", ", 'cropping': [[1, 0], [0, 2]]"),
		 3,
		 {2, 3, 2},
		 {1, 1, 2},
		 3,
		 {6, 7}},
		{LAYER("Cropping1D", ", 'cropping': 1"), 2, {4, 2}, {2, 2}, 2, {2, 3, 4, 5}},
		{LAYER("UpSampling2D", ", 'interpolation': 'nearest'"),
		 3,
		 {1, 2, 1},
		 {2, 4, 1},
		 3,
		 {0, 0, 1, 1, 0, 0, 1, 1}},
		{LAYER("UpSampling2D", ", 'size': [1, 3]"),
		 3,
		 {2, 1, 2},
		 {2, 3, 2},
		 3,
		 {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}},
		{LAYER("Permute", ", 'dims': [2, 1]"), 2, {2, 3}, {3, 2}, 2, {0, 3, 1, 4, 2, 5}},
		{LAYER("Permute", ", 'dims': [3, 1, 2]"),
		 3,
		 {2, 2, 3},
		 {3, 2, 2},
		 3,
		 {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}},
		{LAYER("RepeatVector", ", 'n': 3"), 1, {2}, {3, 2}, 2, {0, 1, 0, 1, 0, 1}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct model_shape *output;
		struct layer_rig rig;

		layer_rig_open(&rig, rows[i].layer, rows[i].ndim, rows[i].dims, 1, true, NULL);
		output = &rig.m.model->layers[0].output;
		assert_int_equal(output->ndim, rows[i].out_ndim);
		for (int d = 0; d < output->ndim; d++)
			assert_int_equal(output->dim[d], rows[i].out[d]);
		for (size_t x = 0; x < rig.in; x++)
			rig.x[x] = (float)x;
		layer_rig_forward(&rig);
		assert_memory_equal(rig.y, rows[i].y, rig.out * sizeof(float));
		layer_rig_close(&rig);
	}
}

/* ---- every layer ----------------------------------------------------------------------------- */

static const char *const layers[] = {
	LAYER("Cropping2D", ", 'cropping': [[1, 2], [3, 0]]"),
	LAYER("UpSampling2D", ", 'size': [2, 3]"),
	LAYER("UpSampling2D", ", 'size': [3, 2], 'interpolation': 'bilinear'"),
	LAYER("Permute", ", 'dims': [2, 3, 1]"),
	LAYER("Permute", ", 'dims': [2, 1, 3]"),
	LAYER("PReLU", ", 'alpha_initializer': 'RandomNormal'"),
	LAYER("PReLU", ", 'alpha_initializer': 'RandomNormal', 'shared_axes': [1, 2]"),
};

/* Its numbers of rows have no slope. */
static const char embedding[] = LAYER("Embedding", ", 'input_dim': 50, 'output_dim': 24");

static double value_of(struct layer_rig *rig, const float *slopes)
{
	double value = 0.0;

	layer_rig_forward(rig);
	for (size_t i = 0; i < rig->out; i++)
		value += (double)rig->y[i] * (double)slopes[i];
	return value;
}

/* All are linear in steps this small, and in their parameters. */
static void check_slopes(struct layer_rig *rig, float *numbers, size_t count, const float *gradient,
			 const float *slopes)
{
	const float h = 0x1p-9f;

	for (size_t i = 0; i < count; i += 1 + count / 97) {
		const float kept = numbers[i];
		double up, wanted;

		numbers[i] = kept + h;
		up = value_of(rig, slopes);
		numbers[i] = kept - h;
		wanted = (up - value_of(rig, slopes)) / (2.0 * (double)h);
		numbers[i] = kept;
		if (fabs((double)gradient[i] - wanted) > 2e-3 * (fabs(wanted) + 0.1))
			fail_msg("gradient %zu is %g, not %g", i, (double)gradient[i], wanted);
	}
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		float slopes[6000];
		struct layer_rig rig;

		layer_rig_open(&rig, layers[l], 3, (int64_t[]){6, 7, 5}, 2, true, NULL);
		assert_true(rig.out <= ARRAY_LEN(slopes));
		math_fill(slopes, rig.out, 2, -1.0f, 1.0f);
		memcpy(rig.dy, slopes, rig.out * sizeof(float));
		/* None near 0, where PReLU bends. */
		for (size_t i = 0; i < rig.in; i++)
			rig.x[i] = ((float)(i * 1103 % 64) - 31.5f) * 0x1p-4f;
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		check_slopes(&rig, rig.x, rig.in, rig.dx, slopes);
		if (rig.m.model->param_count)
			check_slopes(&rig, rig.weights, rig.m.model->params[0].count, rig.gradients,
				     slopes);
		layer_rig_close(&rig);
	}
}

static void fill_numbers(struct layer_rig *rig)
{
	layer_rig_fill(rig);
	math_fill(rig->x, rig->in, 1, -1.0f, 51.0f);
}

static void test_any_pool_gives_the_same_bytes_and_nothing_is_allocated(void **state)
{
	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(layers); l++)
		layer_rig_check_pools(layers[l], (int64_t[]){27, 25, 40}, 5, layer_rig_fill, NULL);
	layer_rig_check_pools(embedding, (int64_t[]){7, 5, 40}, 5, fill_numbers, NULL);
}

static void test_bad_numbers_keep_their_places(void **state)
{
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, LAYER("PReLU", ", 'shared_axes': [1]"), 2, (int64_t[]){2, 3}, 1, true,
		       NULL);
	memcpy(rig.x, (float[]){1, NAN, -1, 2, 3, -INFINITY}, 6 * sizeof(float));
	for (int i = 0; i < 3; i++)
		rig.weights[i] = 0.5f;
	layer_rig_forward(&rig);
	assert_true(rig.y[0] == 1.0f && isnan(rig.y[1]) && rig.y[2] == -0.5f);
	assert_true(rig.y[3] == 2.0f && rig.y[4] == 3.0f && rig.y[5] == -INFINITY);
	layer_rig_close(&rig);
}

/* ---- Embedding ------------------------------------------------------------------------------- */

#define TABLE LAYER("Embedding", ", 'input_dim': 4, 'output_dim': 3")

static void test_an_embedding_gives_rows_and_sums_their_gradients(void **state)
{
	static const float numbers[] = {2, 0, 2, 3}, outside[] = {4, -1, NAN, 1e30f};
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, TABLE, 1, (int64_t[]){4}, 1, true, NULL);
	assert_int_equal(rig.m.model->layers[0].output.ndim, 2);
	assert_int_equal(rig.out, 12);
	memcpy(rig.x, numbers, sizeof(numbers));
	for (size_t i = 0; i < rig.out; i++)
		rig.dy[i] = (float)i;
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (int i = 0; i < 4; i++)
		assert_memory_equal(rig.y + 3 * i, rig.weights + 3 * (int)numbers[i],
				    3 * sizeof(float));
	assert_memory_equal(rig.gradients, ((const float[]){3, 4, 5, 0, 0, 0, 6, 8, 10, 9, 10, 11}),
			    12 * sizeof(float));
	memcpy(rig.x, outside, sizeof(outside));
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (size_t i = 0; i < rig.out; i++)
		assert_true(isnan(rig.y[i]) && rig.gradients[i] == 0.0f);
	layer_rig_close(&rig);
}

/* ---- PositionEmbedding ----------------------------------------------------------------------- */

#define POSITIONS LAYER("PositionEmbedding", ", 'sequence_length': 3, 'initializer': 'Ones'")

/* Of the steps that count; the mean of none is 0 / 0, as in Keras. */
static void test_an_average_with_a_mask_is_of_the_steps_that_count(void **state)
{
	static const float counting[3][4] = {{1, 0, 1, 0}, {0, 1, 1, 1}, {0, 0, 0, 0}};
	const char *masked = "[{'class_name': 'Masking', 'config': {'name': 'm'}}, {'class_name': "
			     "'GlobalAveragePooling1D', 'config': {'name': 'l'}}, {'class_name': "
			     "'Flatten', 'config': {'name': 'f'}}]";
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, masked, 2, (int64_t[]){4, 2}, 3, true, NULL);
	layer_rig_fill(&rig);
	memcpy(rig.mask, counting, sizeof(counting));
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (int b = 0; b < 2; b++) {
		const float count = b == 0 ? 2.0f : 3.0f;

		for (int c = 0; c < 2; c++) {
			double sum = 0.0;

			for (int s = 0; s < 4; s++) {
				const int at = (b * 4 + s) * 2 + c;

				sum += (double)(counting[b][s] * rig.x[at]);
				assert_true(rig.dx[at] ==
					    counting[b][s] * (rig.dy[b * 2 + c] / count));
			}
			assert_true(fabs((double)rig.y[b * 2 + c] - sum / (double)count) < 1e-7);
		}
	}
	assert_true(isnan(rig.y[4]) && isnan(rig.y[5]) && rig.dx[16] == 0.0f);
	layer_rig_close(&rig);
}

/* Whatever comes in; the row that no step reads has no gradient. */
static void test_a_position_embedding_is_the_same_for_every_item(void **state)
{
	struct layer_rig rig;

	(void)state;
	layer_rig_open(&rig, POSITIONS, 2, (int64_t[]){2, 2}, 3, true, NULL);
	for (int i = 0; i < 6; i++)
		assert_true(rig.weights[i] == 1.0f);
	for (size_t i = 0; i < rig.out; i++) {
		rig.x[i] = NAN;
		rig.dy[i] = (float)i;
	}
	memcpy(rig.weights, ((const float[]){1, 2, 3, 4, 5, 6}), 6 * sizeof(float));
	layer_rig_forward(&rig);
	layer_rig_backward(&rig);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(rig.y + 4 * i, rig.weights, 4 * sizeof(float));
	assert_memory_equal(rig.gradients, ((const float[]){12, 15, 18, 21, 0, 0}),
			    6 * sizeof(float));
	for (size_t i = 0; i < rig.in; i++)
		assert_true(rig.dx[i] == 0.0f);
	layer_rig_close(&rig);
	layer_rig_refused(POSITIONS, 2, (int64_t[]){4, 2}, ST_INVALID, "config.sequence_length");
	layer_rig_refused(POSITIONS, 1, (int64_t[]){4}, ST_INVALID, "needs sequences");
}

/* ---- refusals and costs ---------------------------------------------------------------------- */

static void test_what_cannot_be_done_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *layer, *part;
		enum status status;
	} rows[] = {
		{LAYER("Conv1D", ", 'filters': 2, 'kernel_size': [3, 3]"), "config.kernel_size",
		 ST_INVALID},
		{LAYER("Conv1D", ", 'filters': 2, 'kernel_size': 9"), "the kernel is 9 wide",
		 ST_INVALID},
		{LAYER("Conv1D", ", 'filters': 2"), "kernel_size", ST_INVALID},
		{LAYER("Conv1D", ", 'filters': 2, 'kernel_size': 2, 'padding': 'causal'"),
		 "config.padding", ST_INVALID},
		{LAYER("Conv2D", ", 'filters': 2, 'kernel_size': 1"), "needs images", ST_INVALID},
		{LAYER("Cropping1D", ", 'cropping': [2, 3]"), "nothing is left of 5", ST_INVALID},
		{LAYER("Cropping1D", ", 'cropping': -1"), "config.cropping", ST_INVALID},
		{LAYER("UpSampling1D", ", 'size': 0"), "config.size", ST_INVALID},
		{LAYER("Permute", ", 'dims': [1, 1]"), "each of the input's 2 dimensions once",
		 ST_INVALID},
		{LAYER("Permute", ", 'dims': [1]"), "each of the input's 2 dimensions once",
		 ST_INVALID},
		{LAYER("Permute", ", 'dims': [1, 3]"), "config.dims[1]", ST_INVALID},
		{LAYER("Permute", ""), "dims", ST_INVALID},
		{LAYER("RepeatVector", ", 'n': 2"), "needs a vector", ST_INVALID},
		{LAYER("Embedding", ", 'input_dim': 4"), "output_dim", ST_INVALID},
		{LAYER("Embedding", ", 'input_dim': 0, 'output_dim': 2"), "config.input_dim",
		 ST_INVALID},
		{LAYER("Embedding", ", 'input_dim': 4, 'output_dim': 2, 'mask_zero': true"),
		 "comes as far as the output", ST_UNSUPPORTED},
		{LAYER("Masking", ", 'mask_value': 'x'"), "config.mask_value", ST_INVALID},
		{LAYER("PReLU", ", 'shared_axes': [2]"), "must be the first ones", ST_UNSUPPORTED},
		{LAYER("PReLU", ", 'shared_axes': [3]"), "config.shared_axes[0]", ST_INVALID},
		{LAYER("PReLU", ", 'shared_axes': [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
				"1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"),
		 "must be the first ones", ST_UNSUPPORTED},
		{LAYER("ZeroPadding1D", ", 'padding': [1, 2, 3]"), "config.padding", ST_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		layer_rig_refused(rows[i].layer, 2, (int64_t[]){5, 3}, rows[i].status,
				  rows[i].part);
	layer_rig_refused(LAYER("MaxPooling1D", ""), 3, (int64_t[]){4, 5, 6}, ST_INVALID,
			  "MaxPooling1D needs sequences (steps, channels), but its input has 3");
	layer_rig_refused(LAYER("UpSampling2D", ", 'interpolation': 'bicubic'"), 3,
			  (int64_t[]){4, 5, 6}, ST_UNSUPPORTED,
			  "must be \"nearest\" or \"bilinear\"");
}

static void test_layers_become_device_operations(void **state)
{
	static const struct {
		const char *layer;
		const char *forward[2], *backward[5];
	} rows[] = {
		{LAYER("Conv1D", ", 'filters': 8, 'kernel_size': 3, 'use_bias': false"),
		 {"l/Conv1D conv f 2 1*4>8 1x6>1x4 k1x3 s1x1 d1x1: x p0 -> y"},
		 {"l/Conv1D/GradW conv w 2 1*4>8 1x6>1x4 k1x3 s1x1 d1x1: x dy -> dp0",
		  "l/Conv1D/GradX conv d 2 1*4>8 1x6>1x4 k1x3 s1x1 d1x1: dy p0 -> dx"}},
		{LAYER("Cropping1D", ", 'cropping': 2"),
		 {"l/Cropping1D copy 16/4: x -> y"},
		 {"l/Cropping1D/Grad copy 48/4: dy -> dx"}},
		{LAYER("UpSampling1D", ""),
		 {"l/UpSampling1D copy 96/4: x -> y"},
		 {"l/UpSampling1D/Grad reduce 96>48: dy -> dx"}},
		{LAYER("Permute", ", 'dims': [2, 1]"),
		 {"l/Permute copy 48/1: x -> y"},
		 {"l/Permute/Grad copy 48/1: dy -> dx"}},
		{LAYER("Embedding", ", 'input_dim': 9, 'output_dim': 5"),
		 {"l/Embedding/Lookup slice 9x5/48: x p0 -> y"},
		 {"l/Embedding/Fill elementwise 45*0 fill=1: -> dp0",
		  "l/Embedding/Update slice 9x5/48: x dy -> dp0",
		  "l/Fill elementwise 48*0 fill=1: -> dx"}},
		{LAYER("PositionEmbedding", ", 'sequence_length': 9"),
		 {"l/BroadcastTo copy 48/4: p0 -> y"},
		 {"l/BroadcastTo/Grad reduce 48>24: dy -> dp0",
		  "l/Fill elementwise 48*0 fill=1: -> dx"}},
		{LAYER("PReLU", ", 'shared_axes': [1]"),
		 {"l/PRelu elementwise 48*1/4 add=1 select=1: x p0 -> y"},
		 {"l/PRelu/Grad/alpha elementwise 48*2 add=1 select=1 makes=48: x dy -> b",
		  "l/PRelu/Grad/alpha/Sum reduce 48>4: b -> dp0",
		  "l/PRelu/Grad elementwise 48*2/4 add=1 select=1: x dy p0 -> dx"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct math_model m;

		math_model_open(&m, rows[i].layer, 2, (int64_t[]){6, 4});
		lowered_check(m.model, 0, 2, 'F', false, rows[i].forward);
		lowered_check(m.model, 0, 2, 'B', false, rows[i].backward);
		math_model_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sequence_is_an_image_one_pixel_high),
		cmocka_unit_test(test_numbers_go_where_keras_has_them),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes_and_nothing_is_allocated),
		cmocka_unit_test(test_bad_numbers_keep_their_places),
		cmocka_unit_test(test_an_embedding_gives_rows_and_sums_their_gradients),
		cmocka_unit_test(test_an_average_with_a_mask_is_of_the_steps_that_count),
		cmocka_unit_test(test_a_position_embedding_is_the_same_for_every_item),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_at_its_place),
		cmocka_unit_test(test_layers_become_device_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
