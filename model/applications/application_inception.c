/*
 * InceptionV3 (Szegedy et al. 2015), with the names and sizes of keras.applications. No state.
 */
#include "model/applications/application_nets.h"

/* Convolution, normalisation without scale, ReLU; with Keras's default names. */
static int inception_unit(struct application_graph *g, int x, int64_t filters, int rows,
			  int columns)
{
	const struct application_conv conv = {
		.filters = filters, .rows = rows, .columns = columns, .same = true};

	x = application_conv(g, x, NULL, &conv);
	x = application_norm(g, x, NULL, 0, 0, false);
	return application_activation(g, x, NULL, "relu");
}

static int inception_valid(struct application_graph *g, int x, int64_t filters, int kernel,
			   int stride)
{
	const struct application_conv conv = {
		.filters = filters, .kernel = kernel, .stride = stride};

	x = application_conv(g, x, NULL, &conv);
	x = application_norm(g, x, NULL, 0, 0, false);
	return application_activation(g, x, NULL, "relu");
}

static int inception_pool(struct application_graph *g, int x, int64_t filters)
{
	x = application_pool(g, x, "AveragePooling2D", NULL, 3, 1, true);
	return inception_unit(g, x, filters, 1, 1);
}

static int inception_max(struct application_graph *g, int x)
{
	return application_pool(g, x, "MaxPooling2D", NULL, 3, 2, false);
}

static int inception_mixed(struct application_graph *g, int number, const int *branches, int count)
{
	return application_merge(g, "Concatenate", application_name(g, "mixed%d", number), branches,
				 count);
}

/* mixed0 to mixed2: 35 x 35 */
static int inception_a(struct application_graph *g, int x, int number)
{
	int one = inception_unit(g, x, 64, 1, 1), five, three, pool;

	five = inception_unit(g, x, 48, 1, 1);
	five = inception_unit(g, five, 64, 5, 5);
	three = inception_unit(g, x, 64, 1, 1);
	three = inception_unit(g, three, 96, 3, 3);
	three = inception_unit(g, three, 96, 3, 3);
	pool = inception_pool(g, x, number ? 64 : 32);
	return inception_mixed(g, number, (int[]){one, five, three, pool}, 4);
}

static int inception_to_17(struct application_graph *g, int x)
{
	int three = inception_valid(g, x, 384, 3, 2), twice, pool;

	twice = inception_unit(g, x, 64, 1, 1);
	twice = inception_unit(g, twice, 96, 3, 3);
	twice = inception_valid(g, twice, 96, 3, 2);
	pool = inception_max(g, x);
	return inception_mixed(g, 3, (int[]){three, twice, pool}, 3);
}

/* mixed4 to mixed7: 17 x 17, with 7 x 7 convolutions factorized */
static int inception_b(struct application_graph *g, int x, int number, int64_t filters)
{
	int one = inception_unit(g, x, 192, 1, 1), seven, twice, pool;

	seven = inception_unit(g, x, filters, 1, 1);
	seven = inception_unit(g, seven, filters, 1, 7);
	seven = inception_unit(g, seven, 192, 7, 1);
	twice = inception_unit(g, x, filters, 1, 1);
	twice = inception_unit(g, twice, filters, 7, 1);
	twice = inception_unit(g, twice, filters, 1, 7);
	twice = inception_unit(g, twice, filters, 7, 1);
	twice = inception_unit(g, twice, 192, 1, 7);
	pool = inception_pool(g, x, 192);
	return inception_mixed(g, number, (int[]){one, seven, twice, pool}, 4);
}

static int inception_to_8(struct application_graph *g, int x)
{
	int three = inception_unit(g, x, 192, 1, 1), seven, pool;

	three = inception_valid(g, three, 320, 3, 2);
	seven = inception_unit(g, x, 192, 1, 1);
	seven = inception_unit(g, seven, 192, 1, 7);
	seven = inception_unit(g, seven, 192, 7, 1);
	seven = inception_valid(g, seven, 192, 3, 2);
	pool = inception_max(g, x);
	return inception_mixed(g, 8, (int[]){three, seven, pool}, 3);
}

/* A 1 x 3 and a 3 x 1 convolution in parallel. */
static int inception_cross(struct application_graph *g, int x, const char *name)
{
	int wide = inception_unit(g, x, 384, 1, 3);
	int high = inception_unit(g, x, 384, 3, 1);

	return application_merge(g, "Concatenate", name, (int[]){wide, high}, 2);
}

/* mixed9 and mixed10: 8 x 8 */
static int inception_c(struct application_graph *g, int x, int number)
{
	int one = inception_unit(g, x, 320, 1, 1), three, twice, pool;

	three = inception_unit(g, x, 384, 1, 1);
	three = inception_cross(g, three, application_name(g, "mixed9_%d", number - 9));
	twice = inception_unit(g, x, 448, 1, 1);
	twice = inception_unit(g, twice, 384, 3, 3);
	twice = inception_cross(g, twice, NULL);
	pool = inception_pool(g, x, 192);
	return inception_mixed(g, number, (int[]){one, three, twice, pool}, 4);
}

int application_inception(struct application_graph *graph, const struct application_row *row,
			  int input, double alpha)
{
	static const int filters[] = {128, 160, 160, 192}; /* of mixed4 to mixed7 */
	int x = inception_valid(graph, input, 32, 3, 2);

	(void)row;
	(void)alpha;
	x = inception_valid(graph, x, 32, 3, 1);
	x = inception_unit(graph, x, 64, 3, 3);
	x = inception_max(graph, x);
	x = inception_valid(graph, x, 80, 1, 1);
	x = inception_valid(graph, x, 192, 3, 1);
	x = inception_max(graph, x);
	for (int number = 0; number < 3; number++)
		x = inception_a(graph, x, number);
	x = inception_to_17(graph, x);
	for (int number = 4; number < 8; number++)
		x = inception_b(graph, x, number, filters[number - 4]);
	x = inception_to_8(graph, x);
	x = inception_c(graph, x, 9);
	return inception_c(graph, x, 10);
}
