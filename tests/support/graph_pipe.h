/*
 * Graphs at work: cut into stages and run in different ways, which must all give the same bytes;
 * and sample graphs. For the tests of stages.
 */
#ifndef SUPPORT_GRAPH_PIPE_H
#define SUPPORT_GRAPH_PIPE_H

#include "support/graph.h"
#include "trainer/models/stage.h"

#define GRAPH_BATCH   3
#define GRAPH_MICROS  6 /* the most in flight */
#define GRAPH_WEIGHTS 8192
#define GRAPH_WIDEST  256
#define GRAPH_UNSET   12345.0f /* stands in gradients before a pass */

/* How a graph is run; all of them must give the same bytes. */
struct graph_way {
	uint32_t cuts; /* bit i: a stage begins with layer i */
	int slots;
	int64_t room; /* the stages' greatest batch where it is not GRAPH_BATCH */
	bool unfused, unshared, poison, fixed_input;
	bool split; /* gradients of weights are a pass of their own */
	struct pool *pool;
	stage_trace trace;
	void *user;
};

extern const struct graph_way graph_plain_way; /* nothing shared, nothing fused */
extern const struct graph_way graph_usual_way; /* all of it, and poison */

struct graph_pipe {
	const struct graph *graph;
	struct stage *stages[GRAPH_LAYERS];
	int count, slots;
	bool input_gradient, split;
	float *weights;
	float *flows[GRAPH_MICROS][GRAPH_LAYERS]; /* gradients that come out of a stage */
};

/* What is known of a micro-batch before and after. */
struct graph_micro {
	float input[GRAPH_BATCH * GRAPH_WIDEST], slopes[GRAPH_BATCH * GRAPH_WIDEST];
	float output[GRAPH_BATCH * GRAPH_WIDEST], grad_input[GRAPH_BATCH * GRAPH_WIDEST],
		gradients[GRAPH_WEIGHTS];
};

/* Floats of a batch. */
size_t graph_input_count(const struct graph *g);
size_t graph_output_count(const struct graph *g);
/* Input and slopes (the gradient of the output) are @seed's. */
void graph_micro_init(struct graph_micro *m, const struct graph *g, uint32_t seed);

/* Stages of @g, cut as @way says, that work with @weights. */
void graph_pipe_open(struct graph_pipe *pipe, const struct graph *g, const struct graph_way *way,
		     float *weights);
void graph_pipe_close(struct graph_pipe *pipe);
/* Micro-batch @number on stage @s, in slot @number % slots; what goes on to the next stage is taken
 * there, what is wanted of the whole goes to @m. */
void graph_pipe_forward(struct graph_pipe *pipe, int s, int number, struct graph_micro *m);
void graph_pipe_backward(struct graph_pipe *pipe, int s, int number, struct graph_micro *m);
/* The gradients of the weights, where the pipe splits them from the backward pass. */
void graph_pipe_weights(struct graph_pipe *pipe, int s, int number, struct graph_micro *m);

/* One micro-batch forward and back. */
void graph_run_way(const struct graph *g, const struct graph_way *way, float *weights,
		   struct graph_micro *m);
/* Outputs and gradients are the same bytes. */
void graph_check_same(const struct graph *g, const struct graph_micro *a,
		      const struct graph_micro *b, bool with_input);
/* @way gives what the micro-batch of seed 5 gave otherwise. */
void graph_check_way(const struct graph *g, const struct graph_way *way, float *weights,
		     const struct graph_micro *wanted);

/* Samples, and all of them in a row. */
void graph_residual_blocks(struct graph *g);
void graph_long_skips(struct graph *g);
void graph_fan_out_of_three(struct graph *g);
void graph_diamond(struct graph *g);
void graph_dead_branches(struct graph *g);
void graph_frozen_layers(struct graph *g);
void graph_only_passing(struct graph *g);
#define GRAPH_SAMPLES 8
extern void (*const graph_samples[GRAPH_SAMPLES])(struct graph *g);

#endif /* SUPPORT_GRAPH_PIPE_H */
