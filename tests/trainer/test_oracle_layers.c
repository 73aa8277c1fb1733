/*
 * Single layers against what PyTorch said of them (tests/golden/torch_layers.txt, made by
 * script/make-torch-golden.py, which makes the same inputs): outputs, and the gradients of the
 * input and of each parameter, to 1e-5.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/layer_rig.h"

#define LAYER(name, options) "[{'class_name': '" name "', 'config': {'name': 'l'" options "}}]"

static const struct oracle_layer {
	const char *name, *layer;
	int64_t batch;
	int ndim;
	int64_t dims[3];
	int lines; /* of the golden file: y, x, each parameter */
} layers[] = {
	{"conv1d",
	 LAYER("Conv1D", ", 'filters': 6, 'kernel_size': 3, 'strides': 2, 'padding': 'same', "
			 "'activation': 'tanh'"),
	 3,
	 2,
	 {11, 4},
	 4},
	{"separable_conv1d",
	 LAYER("SeparableConv1D", ", 'filters': 5, 'kernel_size': 4, 'depth_multiplier': 2"),
	 2,
	 2,
	 {9, 3},
	 5},
	{"simple_rnn",
	 LAYER("SimpleRNN", ", 'units': 5, 'return_sequences': true"),
	 2,
	 2,
	 {6, 4},
	 5},
	{"lstm", LAYER("LSTM", ", 'units': 5, 'return_sequences': true"), 2, 2, {6, 4}, 5},
	{"gru", LAYER("GRU", ", 'units': 5, 'return_sequences': true"), 2, 2, {6, 4}, 5},
	{"embedding", LAYER("Embedding", ", 'input_dim': 9, 'output_dim': 5"), 3, 1, {8}, 2},
	{"group_normalization", LAYER("GroupNormalization", ", 'groups': 4"), 2, 3, {3, 4, 8}, 4},
	{"conv2d_transpose",
	 LAYER("Conv2DTranspose",
	       ", 'filters': 2, 'kernel_size': [3, 4], 'strides': 2, 'padding': 'same'"),
	 2,
	 3,
	 {3, 4, 3},
	 4},
	{"conv2d_transpose_valid",
	 LAYER("Conv2DTranspose", ", 'filters': 4, 'kernel_size': [2, 3], 'strides': 3"),
	 2,
	 3,
	 {3, 2, 3},
	 4},
	{"p_relu", LAYER("PReLU", ", 'shared_axes': [1]"), 2, 2, {7, 4}, 3},
	{"rot90", LAYER("RandomRotation", ", 'factor': [0.25, 0.25]"), 2, 3, {5, 5, 2}, 2},
	{"rotation_reflect", LAYER("RandomRotation", ", 'factor': [0.1, 0.1]"), 2, 3, {6, 5, 2}, 2},
	{"rotation_constant",
	 LAYER("RandomRotation", ", 'factor': [-0.2, -0.2], 'fill_mode': 'constant'"),
	 2,
	 3,
	 {6, 5, 2},
	 2},
	{"rotation_nearest",
	 LAYER("RandomRotation",
	       ", 'factor': [0.3, 0.3], 'fill_mode': 'nearest', 'interpolation': 'nearest'"),
	 2,
	 3,
	 {6, 5, 2},
	 2},
	{"translation",
	 LAYER("RandomTranslation", ", 'height_factor': [0.3, 0.3], 'width_factor': [-0.6, -0.6], "
				    "'fill_mode': 'constant'"),
	 2,
	 3,
	 {6, 5, 2},
	 2},
	{"zoom",
	 LAYER("RandomZoom", ", 'height_factor': [-0.3, -0.3], 'width_factor': [0.6, 0.6]"),
	 2,
	 3,
	 {6, 5, 2},
	 2},
	{"zoom_joined",
	 LAYER("RandomZoom", ", 'height_factor': [0.4, 0.4], 'fill_mode': 'nearest'"),
	 2,
	 3,
	 {6, 5, 2},
	 2},
	{"resizing", LAYER("Resizing", ", 'height': 4, 'width': 9"), 2, 3, {6, 5, 2}, 2},
	{"resizing_nearest",
	 LAYER("Resizing", ", 'height': 7, 'width': 3, 'interpolation': 'nearest'"),
	 2,
	 3,
	 {6, 5, 2},
	 2},
	{"resizing_cropped",
	 LAYER("Resizing", ", 'height': 6, 'width': 6, 'crop_to_aspect_ratio': true"),
	 2,
	 3,
	 {4, 7, 2},
	 2},
	{"up_sampling2d",
	 LAYER("UpSampling2D", ", 'size': [2, 3], 'interpolation': 'bilinear'"),
	 2,
	 3,
	 {3, 4, 2},
	 2},
	{"center_crop", LAYER("CenterCrop", ", 'height': 3, 'width': 5"), 2, 3, {7, 8, 2}, 2},
	{"center_crop_small", LAYER("CenterCrop", ", 'height': 3, 'width': 9"), 2, 3, {4, 7, 2}, 2},
};

/* The script's numbers: x, the parameters in Keras's order, the output's gradient. */
static void fill(struct layer_rig *rig, bool rows)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < rig->in; i++)
		rig->x[i] = math_lcg_unit(&seed) - 0.5f;
	for (size_t i = 0; rows && i < rig->in; i++)
		rig->x[i] = floorf((rig->x[i] + 0.5f) * 9.0f);
	for (int p = 0; p < rig->m.model->param_count; p++)
		for (size_t i = 0; i < rig->m.model->params[p].count; i++)
			rig->weights[rig->m.model->params[p].offset + i] =
				math_lcg_unit(&seed) - 0.5f;
	for (size_t i = 0; i < rig->out; i++)
		rig->dy[i] = math_lcg_unit(&seed) - 0.5f;
}

/* @text: the numbers of a line. */
static void check_numbers(const struct oracle_layer *layer, const char *what, char *text,
			  size_t count, const float *values, size_t own)
{
	if (count != own)
		fail_msg("%s: %s has %zu numbers, PyTorch's %zu", layer->name, what, own, count);
	for (size_t i = 0; i < count; i++) {
		const double wanted = strtod(text, &text);

		if (!(fabs((double)values[i] - wanted) <= 1e-5 * (fabs(wanted) + 0.1)))
			fail_msg("%s: number %zu of %s is %.9g, PyTorch says %.9g", layer->name, i,
				 what, (double)values[i], wanted);
	}
}

static void check_line(const struct oracle_layer *layer, const struct layer_rig *rig, char *line)
{
	unsigned long param;
	char what[4], *end;
	size_t count;
	int used = 0;

	assert_int_equal(sscanf(line, "%3s %zu%n", what, &count, &used), 2);
	if (!strcmp(what, "y")) {
		check_numbers(layer, what, line + used, count, rig->y, rig->out);
		return;
	}
	if (!strcmp(what, "x")) {
		check_numbers(layer, what, line + used, count, rig->dx, rig->in);
		return;
	}
	param = strtoul(what, &end, 10);
	assert_true(!*end && param < (unsigned long)rig->m.model->param_count);
	check_numbers(layer, what, line + used, count,
		      rig->gradients + rig->m.model->params[param].offset,
		      rig->m.model->params[param].count);
}

static void test_outputs_and_gradients_are_pytorchs(void **state)
{
	char path[4096], line[16384];

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/torch_layers.txt", support_source_dir());
	for (size_t l = 0; l < ARRAY_LEN(layers); l++) {
		const struct oracle_layer *layer = &layers[l];
		const size_t length = strlen(layer->name);
		FILE *file = fopen(path, "r");
		struct layer_rig rig;
		int lines = 0;

		assert_non_null(file);
		layer_rig_open(&rig, layer->layer, layer->ndim, layer->dims, layer->batch, true,
			       NULL);
		fill(&rig, !strcmp(layer->name, "embedding"));
		layer_rig_forward(&rig);
		layer_rig_backward(&rig);
		while (fgets(line, sizeof(line), file)) {
			if (strncmp(line, layer->name, length) != 0 || line[length] != ' ')
				continue;
			check_line(layer, &rig, line + length);
			lines++;
		}
		assert_int_equal(lines, layer->lines);
		layer_rig_close(&rig);
		fclose(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outputs_and_gradients_are_pytorchs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
