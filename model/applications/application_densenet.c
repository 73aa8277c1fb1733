/*
 * DenseNet (Huang et al. 2017), with the names and sizes of keras.applications. No state.
 */
#include "model/applications/application_nets.h"

#define DENSENET_EPSILON 1.001e-5
#define DENSENET_GROWTH  32

static int dense_norm_relu(struct application_graph *g, int x, const char *norm, const char *relu)
{
	x = application_norm(g, x, norm, DENSENET_EPSILON, 0, true);
	return application_activation(g, x, relu, "relu");
}

/* Each unit appends its channels to its input's. */
static int dense_unit(struct application_graph *g, int input, const char *name)
{
	const struct application_conv narrow = {.filters = 4 * DENSENET_GROWTH};
	const struct application_conv square = {
		.filters = DENSENET_GROWTH, .kernel = 3, .same = true};
	int x = dense_norm_relu(g, input, application_name(g, "%s_0_bn", name),
				application_name(g, "%s_0_relu", name));

	x = application_conv(g, x, application_name(g, "%s_1_conv", name), &narrow);
	x = dense_norm_relu(g, x, application_name(g, "%s_1_bn", name),
			    application_name(g, "%s_1_relu", name));
	x = application_conv(g, x, application_name(g, "%s_2_conv", name), &square);
	return application_merge(g, "Concatenate", application_name(g, "%s_concat", name),
				 (int[]){input, x}, 2);
}

static int dense_transition(struct application_graph *g, int x, const char *name)
{
	const struct application_conv half = {.filters = application_channels(g, x) / 2};

	x = dense_norm_relu(g, x, application_name(g, "%s_bn", name),
			    application_name(g, "%s_relu", name));
	x = application_conv(g, x, application_name(g, "%s_conv", name), &half);
	return application_pool(g, x, "AveragePooling2D", application_name(g, "%s_pool", name), 2,
				2, false);
}

int application_densenet(struct application_graph *graph, const struct application_row *row,
			 int input, double alpha)
{
	const struct application_conv stem = {.filters = 64, .kernel = 7, .stride = 2};
	const struct application_side three = {3, 3}, one = {1, 1};
	int x = application_pad(graph, input, NULL, three, three);

	(void)alpha;
	x = application_conv(graph, x, "conv1/conv", &stem);
	x = dense_norm_relu(graph, x, "conv1/bn", "conv1/relu");
	x = application_pad(graph, x, NULL, one, one);
	x = application_pool(graph, x, "MaxPooling2D", "pool1", 3, 2, false);
	for (int stack = 0; stack < 4; stack++) {
		for (int i = 1; i <= row->blocks[stack]; i++)
			x = dense_unit(graph, x,
				       application_name(graph, "conv%d_block%d", stack + 2, i));
		if (stack < 3)
			x = dense_transition(graph, x,
					     application_name(graph, "pool%d", stack + 2));
	}
	return dense_norm_relu(graph, x, "bn", "relu");
}
