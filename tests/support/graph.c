/*
 * Models of any shape, built by hand, and their plain evaluation in double.
 */
#include "support/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/graph_layers.h"
#include "model/model_internal.h"

struct evaluation {
	const struct graph *graph;
	const double *weights;
	double values[GRAPH_LAYERS + 1][GRAPH_WIDTH]; /* by position + 1 */
};

/* What layer @at of the evaluation makes of its inputs @x. */
typedef void (*evaluate)(const struct evaluation *e, const struct model_layer *at,
			 const double *const *x, double *y);

/* ---- evaluation ------------------------------------------------------------------------------ */

static int64_t width(const struct model_layer *at)
{
	return model_shape_count(&at->output);
}

static const double *param(const struct evaluation *e, const struct model_layer *at, int index)
{
	return e->weights + e->graph->params[at->first_param + index].offset;
}

static void copy_of(const struct evaluation *e, const struct model_layer *at,
		    const double *const *x, double *y)
{
	(void)e;
	memcpy(y, x[0], (size_t)width(at) * sizeof(*y));
}

static void negate_of(const struct evaluation *e, const struct model_layer *at,
		      const double *const *x, double *y)
{
	(void)e;
	for (int64_t i = 0; i < width(at); i++)
		y[i] = -x[0][i];
}

static void tanh_of(const struct evaluation *e, const struct model_layer *at,
		    const double *const *x, double *y)
{
	(void)e;
	for (int64_t i = 0; i < width(at); i++)
		y[i] = tanh(x[0][i]);
}

static void scale_of(const struct evaluation *e, const struct model_layer *at,
		     const double *const *x, double *y)
{
	for (int64_t i = 0; i < width(at); i++)
		y[i] = param(e, at, 0)[i] * x[0][i];
}

static void sum_of(const struct evaluation *e, const struct model_layer *at, const double *const *x,
		   double *y)
{
	copy_of(e, at, x, y);
	for (int k = 1; k < at->input_count; k++)
		for (int64_t i = 0; i < width(at); i++)
			y[i] += x[k][i];
}

/* Of the first input with the last: with itself where there is one. */
static void product_of(const struct evaluation *e, const struct model_layer *at,
		       const double *const *x, double *y)
{
	(void)e;
	for (int64_t i = 0; i < width(at); i++)
		y[i] = x[0][i] * x[at->input_count - 1][i];
}

static void join_of(const struct evaluation *e, const struct model_layer *at,
		    const double *const *x, double *y)
{
	for (int k = 0; k < at->input_count; k++) {
		int64_t count = graph_width(e->graph, at->inputs[k]);

		memcpy(y, x[k], (size_t)count * sizeof(*y));
		y += count;
	}
}

static void pick_of(const struct evaluation *e, const struct model_layer *at,
		    const double *const *x, double *y)
{
	(void)e;
	for (int64_t i = 0; i < width(at); i++)
		y[i] = fmax(x[0][i], x[0][(i + 1) % width(at)]);
}

static void dense_of(const struct evaluation *e, const struct model_layer *at,
		     const double *const *x, double *y)
{
	for (int64_t j = 0; j < width(at); j++) {
		y[j] = param(e, at, 1)[j];
		for (int64_t i = 0; i < model_shape_count(&at->input); i++)
			y[j] += x[0][i] * param(e, at, 0)[i * width(at) + j];
	}
}

static void relu_of(const struct evaluation *e, const struct model_layer *at,
		    const double *const *x, double *y)
{
	(void)e;
	for (int64_t i = 0; i < width(at); i++)
		y[i] = fmax(x[0][i], 0.0);
}

static void softmax_of(const struct evaluation *e, const struct model_layer *at,
		       const double *const *x, double *y)
{
	double sum = 0.0;

	(void)e;
	for (int64_t i = 0; i < width(at); i++)
		sum += y[i] = exp(x[0][i]);
	for (int64_t i = 0; i < width(at); i++)
		y[i] /= sum;
}

/* ---- building -------------------------------------------------------------------------------- */

static const struct {
	const struct layer_ops *own;
	const char *real; /* by name */
	evaluate evaluate;
	enum model_activation activation;
} rows[] = {
	[GRAPH_NEGATE] = {&graph_negate, NULL, negate_of, MODEL_LINEAR},
	[GRAPH_TANH] = {&graph_tanh, NULL, tanh_of, MODEL_LINEAR},
	[GRAPH_SQUARE] = {&graph_square, NULL, product_of, MODEL_LINEAR},
	[GRAPH_SCALE] = {&graph_scale, NULL, scale_of, MODEL_LINEAR},
	[GRAPH_SUM] = {&graph_sum, NULL, sum_of, MODEL_LINEAR},
	[GRAPH_PRODUCT] = {&graph_product, NULL, product_of, MODEL_LINEAR},
	[GRAPH_JOIN] = {&graph_join, NULL, join_of, MODEL_LINEAR},
	[GRAPH_PICK] = {&graph_pick, NULL, pick_of, MODEL_LINEAR},
	[GRAPH_DENSE] = {NULL, "Dense", dense_of, MODEL_LINEAR},
	[GRAPH_RELU] = {NULL, "Activation", relu_of, MODEL_RELU},
	[GRAPH_SOFTMAX] = {NULL, "Activation", softmax_of, MODEL_SOFTMAX},
	[GRAPH_FLATTEN] = {NULL, "Flatten", copy_of, MODEL_LINEAR},
	[GRAPH_OUTFEED] = {NULL, "Outfeed", copy_of, MODEL_LINEAR},
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == GRAPH_KINDS, "kinds of layers out of step");

void graph_evaluate(const struct graph *graph, const double *weights, const double *input,
		    double *output)
{
	static struct evaluation e;
	int last = graph->model.layer_count;

	e.graph = graph;
	e.weights = weights;
	memcpy(e.values[0], input, (size_t)graph_width(graph, MODEL_INPUT) * sizeof(*input));
	for (int i = 0; i < last; i++) {
		const double *x[GRAPH_INPUTS];

		for (int k = 0; k < graph->layers[i].input_count; k++)
			x[k] = e.values[graph->inputs[i][k] + 1];
		rows[graph->kinds[i]].evaluate(&e, &graph->layers[i], x, e.values[i + 1]);
	}
	memcpy(output, e.values[last], (size_t)graph_width(graph, last - 1) * sizeof(*output));
}

static struct model_shape vector(int64_t count)
{
	return (struct model_shape){.ndim = 1, .dim = {count}};
}

void graph_init(struct graph *graph, int64_t wide)
{
	memset(graph, 0, sizeof(*graph));
	graph->model.name = "graph";
	graph->model.layers = graph->layers;
	graph->model.params = graph->params;
	graph->model.input = vector(wide);
}

int64_t graph_width(const struct graph *graph, int position)
{
	return model_shape_count(position == MODEL_INPUT ? &graph->model.input
							 : &graph->layers[position].output);
}

static void add_param(struct graph *graph, struct model_layer *layer, int64_t rows_of,
		      int64_t columns)
{
	struct model_param *added = &graph->params[graph->model.param_count++];

	*added = (struct model_param){
		.name = layer->name,
		.short_name = "w",
		.layer = layer->position,
		.shape = {.ndim = 2, .dim = {rows_of, columns}},
		.offset = graph->model.weights,
		.count = (size_t)(rows_of * columns),
		.trainable = true,
	};
	graph->model.weights += model_align(added->count);
	layer->param_count++;
}

/* @again: the layer of which this is another call; NULL: of none. */
static int put_layer(struct graph *graph, enum graph_kind kind, const int *inputs, int count,
		     int64_t units, const struct model_layer *again)
{
	int position = graph->model.layer_count++;
	struct model_layer *layer = &graph->layers[position];
	int64_t in = graph_width(graph, inputs[0]), joined = 0;

	assert_true(position < GRAPH_LAYERS && count <= GRAPH_INPUTS);
	graph->kinds[position] = kind;
	snprintf(graph->names[position], sizeof(graph->names[position]), "l%d", position);
	for (int k = 0; k < count; k++) {
		graph->inputs[position][k] = inputs[k];
		joined += graph_width(graph, inputs[k]);
	}
	*layer = (struct model_layer){
		.name = graph->names[position],
		.ops = rows[kind].own ? rows[kind].own : layer_find(rows[kind].real),
		.position = position,
		.inputs = graph->inputs[position],
		.input_count = count,
		.input = vector(in),
		.output = vector(kind == GRAPH_JOIN    ? joined
				 : kind == GRAPH_DENSE ? units
						       : in),
		.first_param = graph->model.param_count,
		.trainable = true,
		.activation = rows[kind].activation,
		.units = units,
		.use_bias = kind == GRAPH_DENSE,
	};
	layer->reads_inputs = layer->ops->reads_inputs;
	/* A layer of ours that fuses a ReLU reads its output for that alone. */
	layer->reads_output = layer->ops->reads_output && !compute_of(layer)->fuses_relu;
	if (again) {
		layer->first_param = again->first_param;
		layer->param_count = again->param_count;
		return position;
	}
	if (kind == GRAPH_SCALE)
		add_param(graph, layer, 1, in);
	if (kind == GRAPH_DENSE) {
		add_param(graph, layer, in, units);
		add_param(graph, layer, 1, units);
	}
	return position;
}

int graph_add(struct graph *graph, enum graph_kind kind, const int *inputs, int count,
	      int64_t units)
{
	return put_layer(graph, kind, inputs, count, units, NULL);
}

int graph_again(struct graph *graph, int layer, int input)
{
	const struct model_layer *again = &graph->layers[layer];

	assert_int_equal(graph_width(graph, input), model_shape_count(&again->input));
	return put_layer(graph, graph->kinds[layer], &input, 1, again->units, again);
}

bool graph_may_cut(const struct model *model, int layer)
{
	for (int i = layer; i < model->layer_count; i++)
		if (model_layer_again(model, &model->layers[i]) &&
		    model->params[model->layers[i].first_param].layer < layer)
			return false;
	return true;
}

int graph_one(struct graph *graph, enum graph_kind kind, int input)
{
	return graph_add(graph, kind, &input, 1, 0);
}

int graph_two(struct graph *graph, enum graph_kind kind, int first, int second)
{
	return graph_add(graph, kind, (int[]){first, second}, 2, 0);
}

void graph_freeze(struct graph *graph, int layer)
{
	const struct model_layer *at = &graph->layers[layer];

	for (int i = 0; i < graph->model.layer_count; i++)
		if (i == layer || (at->param_count > 0 && graph->layers[i].param_count > 0 &&
				   graph->layers[i].first_param == at->first_param))
			graph->layers[i].trainable = false;
	for (int i = 0; i < at->param_count; i++)
		graph->params[at->first_param + i].trainable = false;
}

void graph_weights(const struct graph *graph, float *weights, uint32_t seed)
{
	memset(weights, 0, graph->model.weights * sizeof(*weights));
	for (int i = 0; i < graph->model.param_count; i++)
		math_fill(weights + graph->params[i].offset, graph->params[i].count,
			  seed + 977 * (uint32_t)i, -0.7f, 0.8f);
}

/* ---- random graphs --------------------------------------------------------------------------- */

static int below(uint32_t *state, int limit)
{
	return (int)(math_lcg(state) % (uint32_t)limit);
}

/* A tensor made so far, more often a late one; or the model's input. */
static int any_before(const struct graph *graph, uint32_t *state)
{
	int count = graph->model.layer_count, back = below(state, 3) ? 3 : count + 1;
	int position = count - 1 - below(state, back);

	return position < MODEL_INPUT ? MODEL_INPUT : position;
}

/* Another of the same width, or the same. */
static int alike_before(const struct graph *graph, uint32_t *state, int other)
{
	for (int tries = 0; tries < 6; tries++) {
		int position = any_before(graph, state);

		if (graph_width(graph, position) == graph_width(graph, other))
			return position;
	}
	return other;
}

/* Another call of a layer that has parameters, where some tensor is as wide as its input. */
static bool call_again(struct graph *graph, uint32_t *state)
{
	const int layer = below(state, graph->model.layer_count), input = any_before(graph, state);

	if (graph->layers[layer].param_count == 0 ||
	    graph_width(graph, input) != model_shape_count(&graph->layers[layer].input))
		return false;
	graph_again(graph, layer, input);
	return true;
}

static void add_random(struct graph *graph, uint32_t *state)
{
	enum graph_kind kind = (enum graph_kind)below(state, GRAPH_KINDS);
	int inputs[GRAPH_INPUTS], count = 1;
	int64_t joined = 0;

	if (graph->model.layer_count > 0 && call_again(graph, state))
		return;
	inputs[0] = any_before(graph, state);
	if (kind == GRAPH_PRODUCT)
		count = 2;
	else if (kind == GRAPH_SUM || kind == GRAPH_JOIN)
		count = 2 + below(state, 2);
	for (int k = 1; k < count; k++)
		inputs[k] = kind == GRAPH_JOIN ? any_before(graph, state)
					       : alike_before(graph, state, inputs[0]);
	for (int k = 0; k < count; k++)
		joined += graph_width(graph, inputs[k]);
	if (kind == GRAPH_JOIN && joined > 24) {
		kind = GRAPH_DENSE;
		count = 1;
	}
	graph_add(graph, kind, inputs, count, 3 + below(state, 5));
	/* What may be fused or done in place is worth meeting often. */
	if (kind == GRAPH_SQUARE || kind == GRAPH_PRODUCT)
		graph_one(graph, GRAPH_TANH, graph->model.layer_count - 1);
	if ((kind == GRAPH_SCALE || kind == GRAPH_SUM) && below(state, 2))
		graph_one(graph, GRAPH_RELU, graph->model.layer_count - 1);
}

void graph_random(struct graph *graph, uint32_t seed, int layers)
{
	uint32_t state = seed * 2654435761u + 12345u;
	bool read[GRAPH_LAYERS] = {false};
	int ends[GRAPH_INPUTS], count = 0;

	assert_true(layers + 3 <= GRAPH_LAYERS);
	graph_init(graph, 3 + below(&state, 3));
	while (graph->model.layer_count < layers)
		add_random(graph, &state);
	for (int i = 0; i < graph->model.layer_count; i++)
		for (int k = 0; k < graph->layers[i].input_count; k++)
			if (graph->inputs[i][k] != MODEL_INPUT)
				read[graph->inputs[i][k]] = true;
	/* Most loose ends come together; a few stay loose. */
	for (int i = graph->model.layer_count - 1; i >= 0 && count < 4; i--)
		if (!read[i] && below(&state, 4))
			ends[count++] = i;
	if (count > 1)
		graph_add(graph, GRAPH_JOIN, ends, count, 0);
	for (int i = 0; i < graph->model.layer_count; i++)
		if (!below(&state, 8))
			graph_freeze(graph, i);
}
