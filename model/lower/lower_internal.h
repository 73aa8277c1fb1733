/*
 * What the parts of the lowering share: the tensors and operations so far.
 *
 * Functions that return int fail with -1, on lack of memory alone. Tensors are named by their
 * index; -1 is none.
 */
#ifndef LOWER_INTERNAL_H
#define LOWER_INTERNAL_H

#include "model/layers/layer.h"
#include "model/lower/lower.h"
#include "model/run/run_queues.h"

/* A gradient that a consumer gives to an output. */
struct lower_edge {
	int tensor;
	bool shared; /* others read it as well: nobody works on it in place */
};

/* Of a layer, by what its operations call them. */
struct lower_layer {
	int output, kept, between, between_too, state;
	int betweens;   /* made so far: each has a name of its own */
	int gradient;   /* of the output */
	bool shared;    /* that gradient is */
	bool needs;     /* a gradient of its output: it learns, or what comes before does */
	bool outputs;   /* the model's output depends on it */
	int edges;      /* so far */
	int edges_most; /* consumers that give one */
	struct lower_edge *edge;
	int *given;      /* by input, in phase B: the gradient that was made; -1: none yet */
	bool *wanted;    /* by input */
	int *cast_input; /* by input: as the layer computes; the input itself where that fits */
};

struct lower_param {
	int weight, gradient, accumulator;
	int half, half_gradient; /* where the layer reads it as float16: the copy, its gradient */
	char half_phase;         /* in which the copy was made; 0: not yet */
	bool made;               /* the gradient, by a later call of the layer */
	int sum;                 /* that one, while `gradient` is this call's; -1 */
	int first_slot;
};

struct lowering {
	const struct lower_request *from;
	struct arena *arena;
	bool training;
	struct run_queues outfeeds; /* nothing where nothing is trained */
	int logits_layer;           /* whose activation's input the loss takes; -1: none */
	struct ipu_tensor *tensors;
	size_t tensor_count, tensor_capacity;
	struct ipu_node *nodes;
	size_t node_count, node_capacity;
	int input, labels, weights; /* -1: none */
	struct lower_loss {
		int backprop;      /* the gradient, kept for phase B */
		int rows;          /* which rows of the output count; -1: all do */
		int mask, counted; /* which do in the loss, and their sum */
	} losses[MODEL_OUTPUTS];   /* by output; gradients of those that are given */
	int sums;                  /* AddN operations so far */
	struct lower_layer *layers;
	struct lower_param *params;
	/* The operands of the present operation: what it reads, then what it writes. */
	int *list;
	size_t listed, list_capacity;
};

/* Append; the tensor's index. A NULL name is lack of memory. */
int lower__tensor(struct lowering *lowering, const struct ipu_tensor *tensor);
/* One of @elements, of a layer's (@position) stage; @part is the last part of its name. */
int lower__flat(struct lowering *lowering, int position, enum ipu_tensor_kind kind,
		enum ipu_dtype dtype, const char *part, int64_t elements);
/* A tensor of the same shape. */
int lower__like(struct lowering *lowering, int tensor, enum ipu_tensor_kind kind,
		enum ipu_dtype dtype, int stage, const char *name);
int lower__output(struct lowering *lowering, int position); /* of a layer */
int lower__tensors(struct lowering *lowering); /* all that stand before any operation */

/* Append @node, but for its options, which are the run's; lists are copied. */
int lower__node(struct lowering *lowering, const struct ipu_node *node);
/* One map that reads and writes a tensor each. */
int lower__cast(struct lowering *lowering, const char *name, const char *layer, char phase,
		int stage, int from, int to);

int lower__layer_forward(struct lowering *lowering, int position);
int lower__layer_backward(struct lowering *lowering, int position);

/* The batch, as its operations want it. */
int lower__infeeds(struct lowering *lowering);
/* @value goes into the mean over the steps so far, which is @result. */
int lower__running_mean(struct lowering *lowering, const char *name, int value, int result);
/* One more, in phase U of the first stage. */
int lower__iterations(struct lowering *lowering);

int lower__loss_forward(struct lowering *lowering);
int lower__loss_backward(struct lowering *lowering); /* to the last layer's gradient */
int lower__outfeed(struct lowering *lowering, int position);

/* Of the parameters of a layer, in phase F: penalties; in B: regularisers' gradients, gradients
 * that are fed out, accumulation; in U: the update. */
int lower__params(struct lowering *lowering, int position, char phase);

static inline int64_t lower__batch(const struct lowering *lowering)
{
	return lowering->from->run->data.batch_size;
}

#endif /* LOWER_INTERNAL_H */
