/*
 * EfficientNet (Tan and Le 2019), with the names and sizes of keras.applications in TensorFlow 2.6.
 * No state.
 */
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/applications/application_nets.h"

#define EFFICIENT_DROP_CONNECT 0.2
#define EFFICIENT_SQUEEZE      0.25

/* Fan-out scaling, as in the reference code. */
#define EFFICIENT_CONV                                                                             \
	"{\"class_name\":\"VarianceScaling\",\"config\":{\"scale\":2.0,\"mode\":\"fan_out\","      \
	"\"distribution\":\"truncated_normal\"}}"
#define EFFICIENT_DENSE                                                                            \
	"{\"class_name\":\"VarianceScaling\",\"config\":{\"scale\":0.3333333333333333,"            \
	"\"mode\":\"fan_out\",\"distribution\":\"uniform\"}}"

struct efficient_stack {
	int kernel, repeats, in, out, expand, stride;
};

static const struct efficient_stack efficient_stacks[] = {
	{3, 1, 32, 16, 1, 1},  {3, 2, 16, 24, 6, 2},   {5, 2, 24, 40, 6, 2},   {3, 3, 40, 80, 6, 2},
	{5, 3, 80, 112, 6, 1}, {5, 4, 112, 192, 6, 2}, {3, 1, 192, 320, 6, 1},
};

struct efficient_block {
	const char *prefix; /* "block1a_" */
	int kernel, stride, expand;
	int64_t in, out;
	double drop;
};

static int64_t efficient_filters(int filters, double width)
{
	return application_round_to_8(filters * width);
}

static int efficient_repeats(int repeats, double depth)
{
	return (int)ceil(depth * repeats);
}

static const char *efficient_name(struct application_graph *g, const struct efficient_block *b,
				  const char *part)
{
	return application_name(g, "%s%s", b->prefix, part);
}

static int efficient_norm_swish(struct application_graph *g, int x, const char *norm,
				const char *swish)
{
	x = application_norm(g, x, norm, 0, 0, true);
	return application_activation(g, x, swish, "swish");
}

/* Squeeze and excitation: scale the channels by factors computed from the whole image. */
static int efficient_squeeze(struct application_graph *g, int x, const struct efficient_block *b,
			     int64_t filters)
{
	int64_t narrow = (int64_t)((double)b->in * EFFICIENT_SQUEEZE);
	const struct application_conv reduce = {.filters = max(narrow, 1),
						.same = true,
						.bias = true,
						.activation = "swish",
						.initializer = EFFICIENT_CONV};
	const struct application_conv expand = {.filters = filters,
						.same = true,
						.bias = true,
						.activation = "sigmoid",
						.initializer = EFFICIENT_CONV};
	int se = application_global_pool(g, x, "GlobalAveragePooling2D",
					 efficient_name(g, b, "se_squeeze"), false);

	se = application_reshape(g, se, efficient_name(g, b, "se_reshape"),
				 (int64_t[]){1, 1, filters}, 3);
	se = application_conv(g, se, efficient_name(g, b, "se_reduce"), &reduce);
	se = application_conv(g, se, efficient_name(g, b, "se_expand"), &expand);
	return application_merge(g, "Multiply", efficient_name(g, b, "se_excite"), (int[]){x, se},
				 2);
}

static int efficient_depthwise(struct application_graph *g, int x, const struct efficient_block *b)
{
	const struct application_conv conv = {.kernel = b->kernel,
					      .stride = b->stride,
					      .same = b->stride == 1,
					      .initializer = EFFICIENT_CONV};
	struct application_side rows, columns;

	if (b->stride == 2) {
		application_stride_pad(g, x, b->kernel, &rows, &columns);
		x = application_pad(g, x, efficient_name(g, b, "dwconv_pad"), rows, columns);
	}
	x = application_depthwise(g, x, efficient_name(g, b, "dwconv"), &conv);
	return efficient_norm_swish(g, x, efficient_name(g, b, "bn"),
				    efficient_name(g, b, "activation"));
}

static int efficient_block(struct application_graph *g, int input, const struct efficient_block *b)
{
	int64_t filters = b->in * b->expand;
	const struct application_conv expand = {
		.filters = filters, .same = true, .initializer = EFFICIENT_CONV};
	const struct application_conv project = {
		.filters = b->out, .same = true, .initializer = EFFICIENT_CONV};
	int x = input;

	if (b->expand != 1) {
		x = application_conv(g, x, efficient_name(g, b, "expand_conv"), &expand);
		x = efficient_norm_swish(g, x, efficient_name(g, b, "expand_bn"),
					 efficient_name(g, b, "expand_activation"));
	}
	x = efficient_depthwise(g, x, b);
	x = efficient_squeeze(g, x, b, filters);
	x = application_conv(g, x, efficient_name(g, b, "project_conv"), &project);
	x = application_norm(g, x, efficient_name(g, b, "project_bn"), 0, 0, true);
	if (b->stride > 1 || b->in != b->out)
		return x;
	if (b->drop > 0.0)
		x = application_dropout(g, x, efficient_name(g, b, "drop"), b->drop, true);
	return application_merge(g, "Add", efficient_name(g, b, "add"), (int[]){x, input}, 2);
}

static int efficient_stem(struct application_graph *g, const struct application_row *row, int input)
{
	const struct application_conv conv = {.filters = efficient_filters(32, row->width),
					      .kernel = 3,
					      .stride = 2,
					      .initializer = EFFICIENT_CONV};
	struct application_side rows, columns;
	int x = application_rescaling(g, input, 1.0 / 255.0, 0.0);

	x = application_normalization(g, x);
	application_stride_pad(g, x, 3, &rows, &columns);
	x = application_pad(g, x, "stem_conv_pad", rows, columns);
	x = application_conv(g, x, "stem_conv", &conv);
	return efficient_norm_swish(g, x, "stem_bn", "stem_activation");
}

int application_efficientnet(struct application_graph *graph, const struct application_row *row,
			     int input, double alpha)
{
	const struct application_conv top = {.filters = efficient_filters(1280, row->width),
					     .same = true,
					     .initializer = EFFICIENT_CONV};
	int x = efficient_stem(graph, row, input), blocks = 0, number = 0;

	(void)alpha;
	for (size_t i = 0; i < ARRAY_LEN(efficient_stacks); i++)
		blocks += efficient_repeats(efficient_stacks[i].repeats, row->depth);
	for (size_t i = 0; i < ARRAY_LEN(efficient_stacks); i++) {
		const struct efficient_stack *s = &efficient_stacks[i];
		int times = efficient_repeats(s->repeats, row->depth);

		for (int j = 0; j < times; j++) {
			const struct efficient_block block = {
				.prefix =
					application_name(graph, "block%d%c_", (int)i + 1, 'a' + j),
				.kernel = s->kernel,
				.stride = j ? 1 : s->stride,
				.expand = s->expand,
				.in = efficient_filters(j ? s->out : s->in, row->width),
				.out = efficient_filters(s->out, row->width),
				.drop = EFFICIENT_DROP_CONNECT * number++ / blocks,
			};

			x = efficient_block(graph, x, &block);
		}
	}
	x = application_conv(graph, x, "top_conv", &top);
	return efficient_norm_swish(graph, x, "top_bn", "top_activation");
}

int application_efficientnet_top(struct application_graph *graph, const struct application_row *row,
				 int from, int64_t classes, const char *activation)
{
	int x = application_global_pool(graph, from, "GlobalAveragePooling2D", "avg_pool", false);

	x = application_dropout(graph, x, "top_dropout", row->dropout, false);
	return application_dense(graph, x, "predictions", classes, activation, EFFICIENT_DENSE);
}
