/*
 * NASNet-A (Zoph et al. 2018), with the names and sizes of keras.applications. A cell reads the
 * outputs of the two cells before it; the older one is first adjusted to the size of the newer. No
 * state.
 */
#include "model/applications/application_nets.h"

#define NASNET_MOMENTUM 0.9997
#define NASNET_EPSILON  1e-3

/* The inputs, width and name of a cell. */
struct nasnet_cell {
	int newer, older; /* outputs of the two cells before; older -1: none */
	int64_t filters;
	const char *id; /* "stem_1", "reduce_4", "5" */
};

static const char *cell_name(struct application_graph *g, const char *part,
			     const struct nasnet_cell *cell)
{
	return application_name(g, "%s_%s", part, cell->id);
}

static int nasnet_norm(struct application_graph *g, int x, const char *name)
{
	return application_norm(g, x, name, NASNET_EPSILON, NASNET_MOMENTUM, true);
}

static int nasnet_point(struct application_graph *g, int x, const char *name, int64_t filters)
{
	const struct application_conv conv = {
		.filters = filters, .same = true, .initializer = "\"he_normal\""};

	return application_conv(g, x, name, &conv);
}

static int nasnet_add(struct application_graph *g, int x, int y, const char *name)
{
	return application_merge(g, "Add", name, (int[]){x, y}, 2);
}

/* Two separable convolutions, the first with @stride; @part: "normal_left1". */
static int nasnet_separable(struct application_graph *g, int x, const struct nasnet_cell *cell,
			    const char *part, int kernel, int stride)
{
	struct application_conv conv = {
		.filters = cell->filters, .kernel = kernel, .stride = stride, .same = stride == 1};
	const char *id = cell_name(g, part, cell);

	x = application_activation(g, x, NULL, "relu");
	if (stride > 1) {
		struct application_side rows, columns;

		application_stride_pad(g, x, kernel, &rows, &columns);
		x = application_pad(g, x, application_name(g, "separable_conv_1_pad_%s", id), rows,
				    columns);
	}
	x = application_separable(g, x, application_name(g, "separable_conv_1_%s", id), &conv);
	x = nasnet_norm(g, x, application_name(g, "separable_conv_1_bn_%s", id));
	x = application_activation(g, x, NULL, "relu");
	conv.stride = 1;
	conv.same = true;
	x = application_separable(g, x, application_name(g, "separable_conv_2_%s", id), &conv);
	return nasnet_norm(g, x, application_name(g, "separable_conv_2_bn_%s", id));
}

/* Subsample by 2 twice, from the first and from the second pixel on, with half of the filters
 * each. */
static int nasnet_halve(struct application_graph *g, const struct nasnet_cell *cell)
{
	const struct application_side begin = {1, 0}, end = {0, 1};
	int both[2], x;

	x = application_activation(g, cell->older, cell_name(g, "adjust_relu_1", cell), "relu");
	both[0] = application_pool(g, x, "AveragePooling2D",
				   cell_name(g, "adjust_avg_pool_1", cell), 1, 2, false);
	both[0] = nasnet_point(g, both[0], cell_name(g, "adjust_conv_1", cell), cell->filters / 2);
	x = application_pad(g, x, NULL, end, end);
	x = application_crop(g, x, NULL, begin, begin);
	both[1] = application_pool(g, x, "AveragePooling2D",
				   cell_name(g, "adjust_avg_pool_2", cell), 1, 2, false);
	both[1] = nasnet_point(g, both[1], cell_name(g, "adjust_conv_2", cell), cell->filters / 2);
	x = application_merge(g, "Concatenate", NULL, both, 2);
	return nasnet_norm(g, x, cell_name(g, "adjust_bn", cell));
}

/* Adjust the older output to the cell's size and channels. */
static int nasnet_adjust(struct application_graph *g, const struct nasnet_cell *cell)
{
	const struct application_node *newer = &g->nodes[cell->newer], *older;
	int x;

	if (cell->older < 0 || g->status != ST_OK)
		return cell->newer;
	older = &g->nodes[cell->older];
	if (older->width != newer->width)
		return nasnet_halve(g, cell);
	if (older->channels == cell->filters)
		return cell->older;
	x = application_activation(g, cell->older, NULL, "relu");
	x = nasnet_point(g, x, cell_name(g, "adjust_conv_projection", cell), cell->filters);
	return nasnet_norm(g, x, cell_name(g, "adjust_bn", cell));
}

static int nasnet_first(struct application_graph *g, const struct nasnet_cell *cell,
			const char *kind)
{
	int x = application_activation(g, cell->newer, NULL, "relu");

	x = nasnet_point(g, x, application_name(g, "%s_conv_1_%s", kind, cell->id), cell->filters);
	return nasnet_norm(g, x, application_name(g, "%s_bn_1_%s", kind, cell->id));
}

static int nasnet_mean(struct application_graph *g, int x, const struct nasnet_cell *cell,
		       const char *part)
{
	return application_pool(g, x, "AveragePooling2D", cell_name(g, part, cell), 3, 1, true);
}

static int nasnet_normal(struct application_graph *g, const struct nasnet_cell *cell)
{
	const int p = nasnet_adjust(g, cell), h = nasnet_first(g, cell, "normal");
	int all[6] = {p}, x, y;

	x = nasnet_separable(g, h, cell, "normal_left1", 5, 1);
	y = nasnet_separable(g, p, cell, "normal_right1", 3, 1);
	all[1] = nasnet_add(g, x, y, cell_name(g, "normal_add_1", cell));
	x = nasnet_separable(g, p, cell, "normal_left2", 5, 1);
	y = nasnet_separable(g, p, cell, "normal_right2", 3, 1);
	all[2] = nasnet_add(g, x, y, cell_name(g, "normal_add_2", cell));
	x = nasnet_mean(g, h, cell, "normal_left3");
	all[3] = nasnet_add(g, x, p, cell_name(g, "normal_add_3", cell));
	x = nasnet_mean(g, p, cell, "normal_left4");
	y = nasnet_mean(g, p, cell, "normal_right4");
	all[4] = nasnet_add(g, x, y, cell_name(g, "normal_add_4", cell));
	x = nasnet_separable(g, h, cell, "normal_left5", 3, 1);
	all[5] = nasnet_add(g, x, h, cell_name(g, "normal_add_5", cell));
	return application_merge(g, "Concatenate", cell_name(g, "normal_concat", cell), all, 6);
}

static int nasnet_pool(struct application_graph *g, int x, const struct nasnet_cell *cell,
		       const char *class_name, const char *part)
{
	return application_pool(g, x, class_name, cell_name(g, part, cell), 3, 2, false);
}

static int nasnet_reduction(struct application_graph *g, const struct nasnet_cell *cell)
{
	const int p = nasnet_adjust(g, cell), h = nasnet_first(g, cell, "reduction");
	struct application_side rows, columns;
	int all[4], padded, first, x, y;

	application_stride_pad(g, h, 3, &rows, &columns);
	padded = application_pad(g, h, cell_name(g, "reduction_pad_1", cell), rows, columns);
	x = nasnet_separable(g, h, cell, "reduction_left1", 5, 2);
	y = nasnet_separable(g, p, cell, "reduction_right1", 7, 2);
	first = nasnet_add(g, x, y, cell_name(g, "reduction_add_1", cell));
	x = nasnet_pool(g, padded, cell, "MaxPooling2D", "reduction_left2");
	y = nasnet_separable(g, p, cell, "reduction_right2", 7, 2);
	all[0] = nasnet_add(g, x, y, cell_name(g, "reduction_add_2", cell));
	x = nasnet_pool(g, padded, cell, "AveragePooling2D", "reduction_left3");
	y = nasnet_separable(g, p, cell, "reduction_right3", 5, 2);
	all[1] = nasnet_add(g, x, y, cell_name(g, "reduction_add3", cell));
	x = nasnet_mean(g, first, cell, "reduction_left4");
	all[2] = nasnet_add(g, all[0], x, NULL);
	x = nasnet_separable(g, first, cell, "reduction_left4", 3, 1);
	y = nasnet_pool(g, padded, cell, "MaxPooling2D", "reduction_right5");
	all[3] = nasnet_add(g, x, y, cell_name(g, "reduction_add4", cell));
	return application_merge(g, "Concatenate", cell_name(g, "reduction_concat", cell), all, 4);
}

/* Add the cell and make its output the newer input of the next. */
static void nasnet_step(struct application_graph *g, struct nasnet_cell *cell,
			int (*build)(struct application_graph *g, const struct nasnet_cell *cell))
{
	const int x = build(g, cell);

	cell->older = cell->newer;
	cell->newer = x;
}

int application_nasnet(struct application_graph *graph, const struct application_row *row,
		       int input, double alpha)
{
	const int blocks = row->blocks[0], filters = row->blocks[2];
	const bool skips = row->blocks[3];
	const struct application_conv stem = {.filters = row->blocks[1],
					      .kernel = 3,
					      .stride = 2,
					      .initializer = "\"he_normal\""};
	struct nasnet_cell cell = {.older = -1};

	(void)alpha;
	cell.newer = application_conv(graph, input, "stem_conv1", &stem);
	cell.newer = nasnet_norm(graph, cell.newer, "stem_bn1");
	for (int i = 1; i <= 2; i++) {
		cell.filters = filters * i / 4;
		cell.id = application_name(graph, "stem_%d", i);
		nasnet_step(graph, &cell, nasnet_reduction);
	}
	for (int stack = 0; stack < 3; stack++) {
		cell.filters = (int64_t)filters << stack;
		if (stack > 0) {
			const int before = cell.older;

			cell.id = application_name(graph, "reduce_%d", stack * blocks);
			nasnet_step(graph, &cell, nasnet_reduction);
			cell.older = skips ? before : cell.older;
		}
		for (int i = 0; i < blocks; i++) {
			cell.id = application_name(graph, "%d", stack * blocks + i + (stack > 0));
			nasnet_step(graph, &cell, nasnet_normal);
		}
	}
	return application_activation(graph, cell.newer, NULL, "relu");
}

int application_nasnet_top(struct application_graph *graph, const struct application_row *row,
			   int from, int64_t classes, const char *activation)
{
	const int x = application_global_pool(graph, from, "GlobalAveragePooling2D", NULL, false);

	(void)row;
	return application_dense(graph, x, "predictions", classes, activation, NULL);
}
