/*
 * MobileNetV3 (Howard et al. 2019), with the names and sizes of keras.applications since TensorFlow
 * 2.9, without the minimalistic variants. Keras's x + 3 and x / 6 are Rescaling layers here. No
 * state.
 */
#include "common/mem.h"
#include "model/applications/application_nets.h"

#define V3_EPSILON  1e-3
#define V3_MOMENTUM 0.999
#define V3_SQUEEZE  0.25

struct v3_block {
	double expand; /* times the block's channels */
	int filters, kernel, stride;
	bool squeeze, swish; /* swish: hard_swish instead of ReLU */
};

/* min(max(x + 3, 0), 6) / 6 */
static int v3_hard_sigmoid(struct application_graph *g, int x)
{
	x = application_rescaling(g, x, 1.0, 3.0);
	x = application_relu6(g, x, NULL);
	return application_rescaling(g, x, 1.0 / 6.0, 0.0);
}

static int v3_activation(struct application_graph *g, int x, bool swish)
{
	if (!swish)
		return application_relu(g, x, NULL);
	return application_merge(g, "Multiply", NULL, (int[]){x, v3_hard_sigmoid(g, x)}, 2);
}

static int v3_norm(struct application_graph *g, int x, const char *prefix, const char *part)
{
	return application_norm(g, x, application_name(g, "%s%s/BatchNorm", prefix, part),
				V3_EPSILON, V3_MOMENTUM, true);
}

/* Squeeze and excitation: scale the channels by factors computed from the whole image. */
static int v3_squeeze(struct application_graph *g, int input, const char *prefix)
{
	const int64_t filters = application_channels(g, input);
	const struct application_conv narrow = {
		.filters = application_round_to_8((double)filters * V3_SQUEEZE),
		.same = true,
		.bias = true};
	const struct application_conv wide = {.filters = filters, .same = true, .bias = true};
	int x = application_global_pool(g, input, "GlobalAveragePooling2D",
					application_name(g, "%ssqueeze_excite/AvgPool", prefix),
					true);

	x = application_conv(g, x, application_name(g, "%ssqueeze_excite/Conv", prefix), &narrow);
	x = application_relu(g, x, application_name(g, "%ssqueeze_excite/Relu", prefix));
	x = application_conv(g, x, application_name(g, "%ssqueeze_excite/Conv_1", prefix), &wide);
	x = v3_hard_sigmoid(g, x);
	return application_merge(g, "Multiply", application_name(g, "%ssqueeze_excite/Mul", prefix),
				 (int[]){input, x}, 2);
}

static int v3_block(struct application_graph *g, int input, const struct v3_block *b, int number,
		    double alpha)
{
	const int64_t channels = application_channels(g, input),
		      filters = application_round_to_8(b->filters * alpha);
	const struct application_conv expand = {
		.filters = application_round_to_8((double)channels * b->expand), .same = true};
	const struct application_conv depthwise = {
		.kernel = b->kernel, .stride = b->stride, .same = b->stride == 1};
	const struct application_conv project = {.filters = filters, .same = true};
	const char *prefix =
		number ? application_name(g, "expanded_conv_%d/", number) : "expanded_conv/";
	struct application_side rows, columns;
	int x = input;

	if (number) {
		x = application_conv(g, x, application_name(g, "%sexpand", prefix), &expand);
		x = v3_activation(g, v3_norm(g, x, prefix, "expand"), b->swish);
	}
	if (b->stride == 2) {
		application_stride_pad(g, x, b->kernel, &rows, &columns);
		x = application_pad(g, x, application_name(g, "%sdepthwise/pad", prefix), rows,
				    columns);
	}
	x = application_depthwise(g, x, application_name(g, "%sdepthwise", prefix), &depthwise);
	x = v3_activation(g, v3_norm(g, x, prefix, "depthwise"), b->swish);
	if (b->squeeze)
		x = v3_squeeze(g, x, prefix);
	x = application_conv(g, x, application_name(g, "%sproject", prefix), &project);
	x = v3_norm(g, x, prefix, "project");
	if (b->stride != 1 || channels != filters)
		return x;
	return application_merge(g, "Add", application_name(g, "%sAdd", prefix), (int[]){input, x},
				 2);
}

static int v3_body(struct application_graph *g, int input, const struct v3_block *blocks, int count,
		   double alpha)
{
	const struct application_conv stem = {
		.filters = 16, .kernel = 3, .stride = 2, .same = true};
	int x = application_rescaling(g, input, 1.0 / 127.5, -1.0);
	struct application_conv last = {.same = true};

	x = application_conv(g, x, "Conv", &stem);
	x = v3_activation(g, v3_norm(g, x, "", "Conv"), true);
	for (int i = 0; i < count; i++)
		x = v3_block(g, x, &blocks[i], i, alpha);
	last.filters = application_round_to_8(6.0 * (double)application_channels(g, x));
	x = application_conv(g, x, "Conv_1", &last);
	return v3_activation(g, v3_norm(g, x, "", "Conv_1"), true);
}

int application_mobilenet_v3_small(struct application_graph *graph,
				   const struct application_row *row, int input, double alpha)
{
	static const struct v3_block blocks[] = {
		{1, 16, 3, 2, true, false},
		{72.0 / 16.0, 24, 3, 2, false, false},
		{88.0 / 24.0, 24, 3, 1, false, false},
		{4, 40, 5, 2, true, true},
		{6, 40, 5, 1, true, true},
		{6, 40, 5, 1, true, true},
		{3, 48, 5, 1, true, true},
		{3, 48, 5, 1, true, true},
		{6, 96, 5, 2, true, true},
		{6, 96, 5, 1, true, true},
		{6, 96, 5, 1, true, true},
	};

	(void)row;
	return v3_body(graph, input, blocks, ARRAY_LEN(blocks), alpha);
}

int application_mobilenet_v3_large(struct application_graph *graph,
				   const struct application_row *row, int input, double alpha)
{
	static const struct v3_block blocks[] = {
		{1, 16, 3, 1, false, false},  {4, 24, 3, 2, false, false},
		{3, 24, 3, 1, false, false},  {3, 40, 5, 2, true, false},
		{3, 40, 5, 1, true, false},   {3, 40, 5, 1, true, false},
		{6, 80, 3, 2, false, true},   {2.5, 80, 3, 1, false, true},
		{2.3, 80, 3, 1, false, true}, {2.3, 80, 3, 1, false, true},
		{6, 112, 3, 1, true, true},   {6, 112, 3, 1, true, true},
		{6, 160, 5, 2, true, true},   {6, 160, 5, 1, true, true},
		{6, 160, 5, 1, true, true},
	};

	(void)row;
	return v3_body(graph, input, blocks, ARRAY_LEN(blocks), alpha);
}

int application_mobilenet_v3_top(struct application_graph *graph, const struct application_row *row,
				 int from, int64_t classes, const char *activation)
{
	/* The layer before the classifier; an alpha up to 1 does not change it. */
	const struct application_conv point = {
		.filters = (int64_t)row->width, .same = true, .bias = true};
	const struct application_conv logits = {.filters = classes, .same = true, .bias = true};
	int x = application_global_pool(graph, from, "GlobalAveragePooling2D", NULL, true);

	x = application_conv(graph, x, "Conv_2", &point);
	x = v3_activation(graph, x, true);
	x = application_dropout(graph, x, NULL, row->dropout, false);
	x = application_conv(graph, x, "Logits", &logits);
	x = application_flatten(graph, x, NULL);
	return application_activation(graph, x, "Predictions", activation);
}
