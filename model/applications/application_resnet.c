/*
 * ResNet, versions 1 and 2 (He et al. 2015, 2016), with the names and sizes of keras.applications.
 * No state.
 */
#include "model/applications/application_nets.h"

#define RESNET_EPSILON 1.001e-5
#define RESNET_STACKS  4

struct resnet_block {
	const char *name; /* "conv2_block1" */
	int64_t filters;
	int stride;
	bool shortcut; /* a convolution on the shortcut */
};

static int resnet_norm(struct application_graph *g, int x, const char *block, const char *part)
{
	return application_norm(g, x, application_name(g, "%s_%s", block, part), RESNET_EPSILON, 0,
				true);
}

static int resnet_relu(struct application_graph *g, int x, const char *block, const char *part)
{
	return application_activation(g, x, application_name(g, "%s_%s", block, part), "relu");
}

static int resnet_conv(struct application_graph *g, int x, const char *block, int number,
		       const struct application_conv *conv)
{
	return application_conv(g, x, application_name(g, "%s_%d_conv", block, number), conv);
}

/* Convolution, normalisation and, if @relu, ReLU. */
static int resnet_unit(struct application_graph *g, int x, const char *block, int number, bool relu,
		       const struct application_conv *conv)
{
	x = resnet_conv(g, x, block, number, conv);
	x = resnet_norm(g, x, block, application_name(g, "%d_bn", number));
	return relu ? resnet_relu(g, x, block, application_name(g, "%d_relu", number)) : x;
}

static int resnet_block1(struct application_graph *g, int x, const struct resnet_block *b)
{
	const struct application_conv wide = {.filters = 4 * b->filters, .bias = true};
	const struct application_conv skip = {
		.filters = 4 * b->filters, .stride = b->stride, .bias = true};
	const struct application_conv narrow = {
		.filters = b->filters, .stride = b->stride, .bias = true};
	const struct application_conv square = {
		.filters = b->filters, .kernel = 3, .same = true, .bias = true};
	int shortcut = b->shortcut ? resnet_unit(g, x, b->name, 0, false, &skip) : x;

	x = resnet_unit(g, x, b->name, 1, true, &narrow);
	x = resnet_unit(g, x, b->name, 2, true, &square);
	x = resnet_unit(g, x, b->name, 3, false, &wide);
	x = application_merge(g, "Add", application_name(g, "%s_add", b->name),
			      (int[]){shortcut, x}, 2);
	return resnet_relu(g, x, b->name, "out");
}

static int resnet_shortcut2(struct application_graph *g, int x, int preact,
			    const struct resnet_block *b)
{
	const struct application_conv skip = {
		.filters = 4 * b->filters, .stride = b->stride, .bias = true};

	if (b->shortcut)
		return resnet_conv(g, preact, b->name, 0, &skip);
	if (b->stride > 1)
		return application_pool(g, x, "MaxPooling2D", NULL, 1, b->stride, false);
	return x;
}

static int resnet_block2(struct application_graph *g, int x, const struct resnet_block *b)
{
	const struct application_conv narrow = {.filters = b->filters};
	const struct application_conv square = {
		.filters = b->filters, .kernel = 3, .stride = b->stride};
	const struct application_conv wide = {.filters = 4 * b->filters, .bias = true};
	const struct application_side one = {1, 1};
	int preact = resnet_norm(g, x, b->name, "preact_bn");
	int shortcut;

	preact = resnet_relu(g, preact, b->name, "preact_relu");
	shortcut = resnet_shortcut2(g, x, preact, b);
	x = resnet_unit(g, preact, b->name, 1, true, &narrow);
	x = application_pad(g, x, application_name(g, "%s_2_pad", b->name), one, one);
	x = resnet_unit(g, x, b->name, 2, true, &square);
	x = resnet_conv(g, x, b->name, 3, &wide);
	return application_merge(g, "Add", application_name(g, "%s_out", b->name),
				 (int[]){shortcut, x}, 2);
}

/* 7x7 with stride 2, before the pooling. */
static int resnet_stem(struct application_graph *g, int x, bool norm)
{
	const struct application_conv conv = {
		.filters = 64, .kernel = 7, .stride = 2, .bias = true};
	const struct application_side three = {3, 3}, one = {1, 1};

	x = application_pad(g, x, "conv1_pad", three, three);
	x = application_conv(g, x, "conv1_conv", &conv);
	if (norm) {
		x = resnet_norm(g, x, "conv1", "bn");
		x = resnet_relu(g, x, "conv1", "relu");
	}
	x = application_pad(g, x, "pool1_pad", one, one);
	return application_pool(g, x, "MaxPooling2D", "pool1_pool", 3, 2, false);
}

typedef int (*resnet_adder)(struct application_graph *g, int x, const struct resnet_block *b);

/* Four stacks of @blocks. The stride of a stack is in its first block, except in the first
 * stack; in version 2 (@late) it is in the last block, except in the last stack. */
static int resnet_stacks(struct application_graph *g, int x, const int *blocks, bool late,
			 resnet_adder add)
{
	for (int stack = 0; stack < RESNET_STACKS; stack++) {
		const int strided = late ? blocks[stack] : 1;
		const int whole = late ? RESNET_STACKS - 1 : 0; /* the stack with stride 1 */

		for (int i = 1; i <= blocks[stack]; i++) {
			const struct resnet_block block = {
				.name = application_name(g, "conv%d_block%d", stack + 2, i),
				.filters = 64 << stack,
				.stride = i == strided && stack != whole ? 2 : 1,
				.shortcut = i == 1,
			};

			x = add(g, x, &block);
		}
	}
	return x;
}

int application_resnet(struct application_graph *graph, const struct application_row *row,
		       int input, double alpha)
{
	int x = resnet_stem(graph, input, true);

	(void)alpha;
	return resnet_stacks(graph, x, row->blocks, false, resnet_block1);
}

int application_resnet_v2(struct application_graph *graph, const struct application_row *row,
			  int input, double alpha)
{
	int x = resnet_stem(graph, input, false);

	(void)alpha;
	x = resnet_stacks(graph, x, row->blocks, true, resnet_block2);
	x = resnet_norm(graph, x, "post", "bn");
	return resnet_relu(graph, x, "post", "relu");
}
