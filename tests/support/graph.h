/*
 * Models of any shape, built by hand, for the tests of stages: small layers of the tests' own
 * beside the real ones, and their plain evaluation in double.
 *
 * Tensors are vectors. The layers cover what a stage may meet: several inputs, parameters, kept and
 * scratch memory, work in place, gradients that are added and that are not, fused ReLUs.
 */
#ifndef SUPPORT_GRAPH_H
#define SUPPORT_GRAPH_H

#include "support/math.h"
#include "trainer/layers/compute.h"

#define GRAPH_LAYERS 32
#define GRAPH_INPUTS 8
#define GRAPH_WIDTH  512 /* of the widest tensor */

enum graph_kind {
	GRAPH_NEGATE, /* in place in both directions, reads nothing */
	GRAPH_TANH,   /* in place, reads its output */
	GRAPH_SQUARE, /* in place where its input is not read later; adds */
	GRAPH_SCALE,  /* w * x; adds, fuses a ReLU */
	GRAPH_SUM,    /* of several; gradient in place, adds, fuses a ReLU */
	GRAPH_PRODUCT,
	GRAPH_JOIN, /* one after the other; adds */
	GRAPH_PICK, /* the greater neighbour: kept and scratch memory */
	GRAPH_DENSE,
	GRAPH_RELU,
	GRAPH_SOFTMAX,
	GRAPH_FLATTEN,
	GRAPH_OUTFEED,
	GRAPH_KINDS
};

struct graph {
	struct model model;
	struct model_layer layers[GRAPH_LAYERS];
	enum graph_kind kinds[GRAPH_LAYERS];
	int inputs[GRAPH_LAYERS][GRAPH_INPUTS];
	char names[GRAPH_LAYERS][8];
	struct model_param params[2 * GRAPH_LAYERS];
};

void graph_init(struct graph *graph, int64_t width);
/* Add a layer, for Dense of @units; its position. */
int graph_add(struct graph *graph, enum graph_kind kind, const int *inputs, int count,
	      int64_t units);
int graph_one(struct graph *graph, enum graph_kind kind, int input);
int graph_two(struct graph *graph, enum graph_kind kind, int first, int second);
/* Another call of @layer, which has one input; its position. */
int graph_again(struct graph *graph, int layer, int input);
/* May a stage begin with @layer? Calls of one layer belong together. */
bool graph_may_cut(const struct model *model, int layer);
void graph_freeze(struct graph *graph, int layer); /* all its calls */
/* Small numbers of both signs in all parameters. */
void graph_weights(const struct graph *graph, float *weights, uint32_t seed);

int64_t graph_width(const struct graph *graph, int position);

/* One item: its output, of the last layer. */
void graph_evaluate(const struct graph *graph, const double *weights, const double *input,
		    double *output);

/* A graph of @layers layers or a few more, different for each seed. */
void graph_random(struct graph *graph, uint32_t seed, int layers);

#endif /* SUPPORT_GRAPH_H */
