/*
 * Graphs at work, and sample graphs. See the header.
 */
#include "support/graph_pipe.h"

#include <string.h>

#include "common/mem.h"

const struct graph_way graph_plain_way = {.unfused = true, .unshared = true};
const struct graph_way graph_usual_way = {.poison = true};

size_t graph_input_count(const struct graph *g)
{
	return (size_t)graph_width(g, MODEL_INPUT) * GRAPH_BATCH;
}

size_t graph_output_count(const struct graph *g)
{
	return (size_t)graph_width(g, g->model.layer_count - 1) * GRAPH_BATCH;
}

void graph_micro_init(struct graph_micro *m, const struct graph *g, uint32_t seed)
{
	memset(m, 0, sizeof(*m));
	assert_true(g->model.weights <= GRAPH_WEIGHTS &&
		    graph_output_count(g) <= ARRAY_LEN(m->slopes));
	math_fill(m->input, graph_input_count(g), seed, -1.0f, 1.1f);
	math_fill(m->slopes, graph_output_count(g), seed + 1, -1.0f, 1.2f);
	for (size_t i = 0; i < GRAPH_WEIGHTS; i++)
		m->gradients[i] = GRAPH_UNSET;
}

/* ---- running --------------------------------------------------------------------------------- */

void graph_pipe_open(struct graph_pipe *pipe, const struct graph *g, const struct graph_way *way,
		     float *weights)
{
	struct stage_params p = {
		.model = &g->model,
		.batch = way->room ? way->room : GRAPH_BATCH,
		.slots = way->slots ? way->slots : 1,
		.training = true,
		.split = way->split,
		.fixed_input = way->fixed_input,
		.pool = way->pool,
		.spread = true,
		.trace = way->trace,
		.trace_user = way->user,
		.unfused = way->unfused,
		.unshared = way->unshared,
		.poison = way->poison,
	};
	struct err err;

	memset(pipe, 0, sizeof(*pipe));
	pipe->graph = g;
	pipe->weights = weights;
	pipe->slots = p.slots;
	pipe->input_gradient = !way->fixed_input;
	pipe->split = way->split;
	while (p.first_layer < g->model.layer_count) {
		int end = p.first_layer + 1;

		while (end < g->model.layer_count &&
		       (!(way->cuts & 1u << end) || !graph_may_cut(&g->model, end)))
			end++;
		p.layer_count = end - p.first_layer;
		if (stage_new(&pipe->stages[pipe->count], &p, &err) != ST_OK)
			fail_msg("%s", err.text);
		for (int m = 0; pipe->count && m < GRAPH_MICROS; m++) {
			size_t floats = stage_input_count(pipe->stages[pipe->count]);

			assert_int_equal(floats, stage_output_count(pipe->stages[pipe->count - 1]));
			pipe->flows[m][pipe->count] = mem_aligned(floats, sizeof(float));
			assert_non_null(pipe->flows[m][pipe->count]);
			memset(pipe->flows[m][pipe->count], 0xff, floats * sizeof(float));
		}
		pipe->count++;
		p.first_layer = end;
	}
}

void graph_pipe_close(struct graph_pipe *pipe)
{
	for (int s = 0; s < pipe->count; s++) {
		stage_free(pipe->stages[s]);
		for (int m = 0; m < GRAPH_MICROS; m++)
			mem_free(pipe->flows[m][s]);
	}
}

void graph_pipe_forward(struct graph_pipe *pipe, int s, int number, struct graph_micro *m)
{
	struct stage *stage = pipe->stages[s];
	int slot = number % pipe->slots;

	if (s)
		stage_receive(stage, slot, pipe->stages[s - 1], slot);
	else
		memcpy(stage_input(stage, slot), m->input,
		       graph_input_count(pipe->graph) * sizeof(float));
	stage_forward(stage, slot, GRAPH_BATCH, (uint64_t)number, pipe->weights, NULL, NULL);
	if (s == pipe->count - 1)
		memcpy(m->output, stage_output(stage, slot),
		       graph_output_count(pipe->graph) * sizeof(float));
}

void graph_pipe_backward(struct graph_pipe *pipe, int s, int number, struct graph_micro *m)
{
	float *to = s ? pipe->flows[number][s] : pipe->input_gradient ? m->grad_input : NULL;
	float slopes[GRAPH_BATCH * GRAPH_WIDEST], *from = slopes;

	if (s == pipe->count - 1)
		memcpy(slopes, m->slopes, sizeof(slopes));
	else
		from = pipe->flows[number][s + 1];
	stage_backward(pipe->stages[s], number % pipe->slots, pipe->weights, from,
		       pipe->split ? NULL : m->gradients, to);
}

void graph_pipe_weights(struct graph_pipe *pipe, int s, int number, struct graph_micro *m)
{
	if (pipe->split)
		stage_backward_weights(pipe->stages[s], number % pipe->slots, pipe->weights,
				       m->gradients);
}

void graph_run_way(const struct graph *g, const struct graph_way *way, float *weights,
		   struct graph_micro *m)
{
	struct graph_pipe pipe;

	graph_pipe_open(&pipe, g, way, weights);
	for (int s = 0; s < pipe.count; s++)
		graph_pipe_forward(&pipe, s, 0, m);
	for (int s = pipe.count - 1; s >= 0; s--)
		graph_pipe_backward(&pipe, s, 0, m);
	for (int s = 0; s < pipe.count; s++)
		graph_pipe_weights(&pipe, s, 0, m);
	graph_pipe_close(&pipe);
}

void graph_check_same(const struct graph *g, const struct graph_micro *a,
		      const struct graph_micro *b, bool with_input)
{
	assert_memory_equal(a->output, b->output, graph_output_count(g) * sizeof(float));
	for (int i = 0; i < g->model.param_count; i++) {
		const struct model_param *param = &g->params[i];

		if (param->trainable)
			assert_memory_equal(a->gradients + param->offset,
					    b->gradients + param->offset,
					    param->count * sizeof(float));
	}
	if (with_input)
		assert_memory_equal(a->grad_input, b->grad_input,
				    graph_input_count(g) * sizeof(float));
}

void graph_check_way(const struct graph *g, const struct graph_way *way, float *weights,
		     const struct graph_micro *wanted)
{
	static struct graph_micro m;

	graph_micro_init(&m, g, 5);
	graph_run_way(g, way, weights, &m);
	graph_check_same(g, wanted, &m, !way->fixed_input);
}

void graph_residual_blocks(struct graph *g)
{
	int x;

	graph_init(g, 4);
	x = graph_add(g, GRAPH_DENSE, (int[]){MODEL_INPUT}, 1, 5);
	for (int i = 0; i < 3; i++) {
		int y = graph_one(g, GRAPH_RELU, graph_one(g, GRAPH_SCALE, x));

		y = graph_one(g, GRAPH_SCALE, graph_add(g, GRAPH_DENSE, &y, 1, 5));
		x = graph_one(g, GRAPH_RELU, graph_two(g, GRAPH_SUM, y, x));
	}
	graph_add(g, GRAPH_DENSE, &x, 1, 3);
}

/* The first layer's output and the model's input are read at the end. */
void graph_long_skips(struct graph *g)
{
	int first, x;

	graph_init(g, 4);
	first = x = graph_one(g, GRAPH_SCALE, MODEL_INPUT);
	for (int i = 0; i < 4; i++)
		x = graph_one(g, i % 2 ? GRAPH_TANH : GRAPH_SCALE, x);
	x = graph_two(g, GRAPH_JOIN, x, first);
	x = graph_two(g, GRAPH_JOIN, graph_one(g, GRAPH_PICK, x), MODEL_INPUT);
	graph_one(g, GRAPH_SOFTMAX, x);
}

void graph_fan_out_of_three(struct graph *g)
{
	int x, ends[3];

	graph_init(g, 5);
	x = graph_one(g, GRAPH_SCALE, MODEL_INPUT);
	ends[0] = graph_one(g, GRAPH_PICK, x);
	ends[1] = graph_one(g, GRAPH_NEGATE, x);
	ends[2] = graph_one(g, GRAPH_SQUARE, graph_one(g, GRAPH_FLATTEN, x));
	graph_add(g, GRAPH_SUM, ends, 3, 0);
}

void graph_diamond(struct graph *g)
{
	int x, y, z;

	graph_init(g, 4);
	x = graph_one(g, GRAPH_TANH, graph_one(g, GRAPH_SCALE, MODEL_INPUT));
	y = graph_one(g, GRAPH_NEGATE, x);
	z = graph_one(g, GRAPH_SCALE, x);
	x = graph_two(g, GRAPH_PRODUCT, y, z);
	graph_two(g, GRAPH_SUM, x, x);
}

/* Layers that the output does not depend on, with and without parameters. */
void graph_dead_branches(struct graph *g)
{
	int x, y;

	graph_init(g, 4);
	x = graph_one(g, GRAPH_SCALE, MODEL_INPUT);
	y = graph_one(g, GRAPH_SCALE, x);
	graph_one(g, GRAPH_OUTFEED, graph_two(g, GRAPH_SUM, y, x));
	graph_one(g, GRAPH_PICK, MODEL_INPUT);
	x = graph_one(g, GRAPH_SCALE, graph_one(g, GRAPH_OUTFEED, x));
	graph_one(g, GRAPH_OUTFEED, x);
}

void graph_frozen_layers(struct graph *g)
{
	int x;

	graph_init(g, 4);
	x = graph_one(g, GRAPH_SCALE, MODEL_INPUT);
	graph_freeze(g, x);
	x = graph_one(g, GRAPH_TANH, x);
	x = graph_one(g, GRAPH_SCALE, x);
	x = graph_one(g, GRAPH_SCALE, graph_one(g, GRAPH_RELU, x));
	graph_freeze(g, x);
	graph_two(g, GRAPH_SUM, x, graph_one(g, GRAPH_NEGATE, 0));
}

/* Layers that are called again, on what they made themselves too, one before a loose end. */
static void shared_layers(struct graph *g)
{
	int x, y, z;

	graph_init(g, 4);
	x = graph_one(g, GRAPH_SCALE, MODEL_INPUT);
	y = graph_add(g, GRAPH_DENSE, &x, 1, 4);
	z = graph_again(g, y, graph_one(g, GRAPH_RELU, graph_again(g, x, y)));
	graph_again(g, x, graph_again(g, y, z));
	y = graph_two(g, GRAPH_SUM, graph_again(g, y, z), graph_again(g, x, x));
	graph_add(g, GRAPH_DENSE, &y, 1, 3);
}

/* Nothing learns, and the input flows through all stages. */
void graph_only_passing(struct graph *g)
{
	int x;

	graph_init(g, 4);
	x = graph_one(g, GRAPH_FLATTEN, MODEL_INPUT);
	x = graph_one(g, GRAPH_OUTFEED, x);
	graph_one(g, GRAPH_FLATTEN, x);
}

void (*const graph_samples[GRAPH_SAMPLES])(struct graph *g) = {
	graph_residual_blocks, graph_long_skips,    graph_fan_out_of_three, graph_diamond,
	graph_dead_branches,   graph_frozen_layers, graph_only_passing,     shared_layers,
};
