/*
 * VGG (Simonyan and Zisserman 2014), with the names and sizes of keras.applications. No state.
 */
#include "model/applications/application_nets.h"

int application_vgg(struct application_graph *graph, const struct application_row *row, int input,
		    double alpha)
{
	int x = input;

	(void)alpha;
	for (int block = 1; block <= 5; block++) {
		const struct application_conv conv = {
			.filters = block < 5 ? 32 << block : 512,
			.kernel = 3,
			.same = true,
			.bias = true,
			.activation = "relu",
		};
		int count = block < 3 ? 2 : row->blocks[block - 3];

		for (int i = 1; i <= count; i++)
			x = application_conv(graph, x,
					     application_name(graph, "block%d_conv%d", block, i),
					     &conv);
		x = application_pool(graph, x, "MaxPooling2D",
				     application_name(graph, "block%d_pool", block), 2, 2, false);
	}
	return x;
}

int application_vgg_top(struct application_graph *graph, const struct application_row *row,
			int from, int64_t classes, const char *activation)
{
	int x = application_flatten(graph, from, "flatten");

	(void)row;
	x = application_dense(graph, x, "fc1", 4096, "relu", NULL);
	x = application_dense(graph, x, "fc2", 4096, "relu", NULL);
	return application_dense(graph, x, "predictions", classes, activation, NULL);
}
