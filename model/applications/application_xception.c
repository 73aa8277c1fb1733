/*
 * Xception (Chollet 2017), with the names and sizes of keras.applications. No state.
 */
#include "model/applications/application_nets.h"

/* Separable convolution @number of a block, normalised; preceded by ReLU if @before. */
static int xception_unit(struct application_graph *g, int x, int block, int number, int64_t filters,
			 bool before)
{
	const struct application_conv conv = {.filters = filters, .kernel = 3, .same = true};
	const char *name = application_name(g, "block%d_sepconv%d", block, number);

	if (before)
		x = application_activation(g, x, application_name(g, "%s_act", name), "relu");
	x = application_separable(g, x, name, &conv);
	return application_norm(g, x, application_name(g, "%s_bn", name), 0, 0, true);
}

/* Two units and a pool, in parallel to a convolution of stride 2. */
static int xception_down(struct application_graph *g, int input, int block, int64_t first,
			 int64_t filters)
{
	const struct application_conv skip = {.filters = filters, .stride = 2, .same = true};
	int residual = application_conv(g, input, NULL, &skip), x;

	residual = application_norm(g, residual, NULL, 0, 0, true);
	x = xception_unit(g, input, block, 1, first, block > 2);
	x = xception_unit(g, x, block, 2, filters, true);
	x = application_pool(g, x, "MaxPooling2D", application_name(g, "block%d_pool", block), 3, 2,
			     true);
	return application_merge(g, "Add", NULL, (int[]){x, residual}, 2);
}

static int xception_middle(struct application_graph *g, int input, int block)
{
	int x = input;

	for (int i = 1; i <= 3; i++)
		x = xception_unit(g, x, block, i, 728, true);
	return application_merge(g, "Add", NULL, (int[]){x, input}, 2);
}

static int xception_conv(struct application_graph *g, int x, int number, int64_t filters,
			 int stride)
{
	const struct application_conv conv = {.filters = filters, .kernel = 3, .stride = stride};
	const char *name = application_name(g, "block1_conv%d", number);

	x = application_conv(g, x, name, &conv);
	x = application_norm(g, x, application_name(g, "%s_bn", name), 0, 0, true);
	return application_activation(g, x, application_name(g, "%s_act", name), "relu");
}

int application_xception(struct application_graph *graph, const struct application_row *row,
			 int input, double alpha)
{
	int x = xception_conv(graph, input, 1, 32, 2);

	(void)row;
	(void)alpha;
	x = xception_conv(graph, x, 2, 64, 1);
	x = xception_down(graph, x, 2, 128, 128);
	x = xception_down(graph, x, 3, 256, 256);
	x = xception_down(graph, x, 4, 728, 728);
	for (int block = 5; block <= 12; block++)
		x = xception_middle(graph, x, block);
	x = xception_down(graph, x, 13, 728, 1024);
	x = xception_unit(graph, x, 14, 1, 1536, false);
	x = application_activation(graph, x, "block14_sepconv1_act", "relu");
	x = xception_unit(graph, x, 14, 2, 2048, false);
	return application_activation(graph, x, "block14_sepconv2_act", "relu");
}
