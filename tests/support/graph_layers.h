/*
 * The layers of the tests' own, for the graphs of graph.h.
 */
#ifndef SUPPORT_GRAPH_LAYERS_H
#define SUPPORT_GRAPH_LAYERS_H

#include "trainer/layers/compute.h"

extern const struct layer_ops graph_negate, graph_tanh, graph_square, graph_scale, graph_sum,
	graph_product, graph_join, graph_pick;

#endif /* SUPPORT_GRAPH_LAYERS_H */
