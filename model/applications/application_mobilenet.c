/*
 * MobileNet (Howard et al. 2017) and MobileNetV2 (Sandler et al. 2018), with the names and sizes of
 * keras.applications. No state.
 */
#include "common/mem.h"
#include "model/applications/application_nets.h"

#define MOBILENET_V2_EPSILON  1e-3
#define MOBILENET_V2_MOMENTUM 0.999

/* ---- version 1 ------------------------------------------------------------------------------- */

static int mobilenet_block(struct application_graph *g, int x, int number, int64_t filters,
			   int stride)
{
	const struct application_conv depthwise = {
		.kernel = 3, .stride = stride, .same = stride == 1};
	const struct application_conv pointwise = {.filters = filters, .same = true};
	const struct application_side after = {0, 1};

	if (stride > 1)
		x = application_pad(g, x, application_name(g, "conv_pad_%d", number), after, after);
	x = application_depthwise(g, x, application_name(g, "conv_dw_%d", number), &depthwise);
	x = application_norm(g, x, application_name(g, "conv_dw_%d_bn", number), 0, 0, true);
	x = application_relu6(g, x, application_name(g, "conv_dw_%d_relu", number));
	x = application_conv(g, x, application_name(g, "conv_pw_%d", number), &pointwise);
	x = application_norm(g, x, application_name(g, "conv_pw_%d_bn", number), 0, 0, true);
	return application_relu6(g, x, application_name(g, "conv_pw_%d_relu", number));
}

int application_mobilenet(struct application_graph *graph, const struct application_row *row,
			  int input, double alpha)
{
	static const struct {
		int filters, stride;
	} blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
		      {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
	const struct application_conv stem = {
		.filters = (int64_t)(32 * alpha), .kernel = 3, .stride = 2, .same = true};
	int x = application_conv(graph, input, "conv1", &stem);

	(void)row;
	x = application_norm(graph, x, "conv1_bn", 0, 0, true);
	x = application_relu6(graph, x, "conv1_relu");
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		x = mobilenet_block(graph, x, (int)i + 1, (int64_t)(blocks[i].filters * alpha),
				    blocks[i].stride);
	return x;
}

int application_mobilenet_top(struct application_graph *graph, const struct application_row *row,
			      int from, int64_t classes, const char *activation)
{
	const struct application_conv conv = {.filters = classes, .same = true, .bias = true};
	int x = application_global_pool(graph, from, "GlobalAveragePooling2D", NULL, true);

	x = application_dropout(graph, x, "dropout", row->dropout, false);
	x = application_conv(graph, x, "conv_preds", &conv);
	x = application_reshape(graph, x, "reshape_2", &classes, 1);
	return application_activation(graph, x, "predictions", activation);
}

/* ---- version 2 ------------------------------------------------------------------------------- */

struct bottleneck {
	int filters, stride, expansion, times;
};

static int v2_norm(struct application_graph *g, int x, const char *name)
{
	return application_norm(g, x, name, MOBILENET_V2_EPSILON, MOBILENET_V2_MOMENTUM, true);
}

/* Expand to @filters channels; not used by the first block. */
static int v2_expand(struct application_graph *g, int x, const char *prefix, int64_t filters)
{
	const struct application_conv conv = {.filters = filters, .same = true};

	x = application_conv(g, x, application_name(g, "%sexpand", prefix), &conv);
	x = v2_norm(g, x, application_name(g, "%sexpand_BN", prefix));
	return application_relu6(g, x, application_name(g, "%sexpand_relu", prefix));
}

static int v2_depthwise(struct application_graph *g, int x, const char *prefix, int stride)
{
	const struct application_conv conv = {.kernel = 3, .stride = stride, .same = stride == 1};
	struct application_side rows, columns;

	if (stride > 1) {
		application_stride_pad(g, x, 3, &rows, &columns);
		x = application_pad(g, x, application_name(g, "%spad", prefix), rows, columns);
	}
	x = application_depthwise(g, x, application_name(g, "%sdepthwise", prefix), &conv);
	x = v2_norm(g, x, application_name(g, "%sdepthwise_BN", prefix));
	return application_relu6(g, x, application_name(g, "%sdepthwise_relu", prefix));
}

static int v2_block(struct application_graph *g, int input, int number, int64_t filters,
		    const struct bottleneck *b, int stride)
{
	const struct application_conv project = {.filters = filters, .same = true};
	int64_t channels = application_channels(g, input);
	const char *prefix = number ? application_name(g, "block_%d_", number) : "expanded_conv_";
	int x = number ? v2_expand(g, input, prefix, b->expansion * channels) : input;

	x = v2_depthwise(g, x, prefix, stride);
	x = application_conv(g, x, application_name(g, "%sproject", prefix), &project);
	x = v2_norm(g, x, application_name(g, "%sproject_BN", prefix));
	if (stride > 1 || channels != filters)
		return x;
	return application_merge(g, "Add", application_name(g, "%sadd", prefix), (int[]){input, x},
				 2);
}

int application_mobilenet_v2(struct application_graph *graph, const struct application_row *row,
			     int input, double alpha)
{
	static const struct bottleneck blocks[] = {{16, 1, 1, 1}, {24, 2, 6, 2}, {32, 2, 6, 3},
						   {64, 2, 6, 4}, {96, 1, 6, 3}, {160, 2, 6, 3},
						   {320, 1, 6, 1}};
	const struct application_conv stem = {.filters = application_round_to_8(32 * alpha),
					      .kernel = 3,
					      .stride = 2,
					      .same = true};
	const struct application_conv last = {
		.filters = alpha > 1.0 ? application_round_to_8(1280 * alpha) : 1280};
	int x = application_conv(graph, input, "Conv1", &stem), number = 0;

	(void)row;
	x = v2_norm(graph, x, "bn_Conv1");
	x = application_relu6(graph, x, "Conv1_relu");
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		for (int j = 0; j < blocks[i].times; j++)
			x = v2_block(graph, x, number++,
				     application_round_to_8(
					     (double)(int64_t)(blocks[i].filters * alpha)),
				     &blocks[i], j ? 1 : blocks[i].stride);
	x = application_conv(graph, x, "Conv_1", &last);
	x = v2_norm(graph, x, "Conv_1_bn");
	return application_relu6(graph, x, "out_relu");
}

int application_mobilenet_v2_top(struct application_graph *graph, const struct application_row *row,
				 int from, int64_t classes, const char *activation)
{
	int x = application_global_pool(graph, from, "GlobalAveragePooling2D", NULL, false);

	(void)row;
	return application_dense(graph, x, "predictions", classes, activation, NULL);
}
