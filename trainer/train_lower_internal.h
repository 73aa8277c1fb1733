/*
 * What the parts of the lowering share: the tensors and operations so far.
 *
 * Functions that return int fail with -1, on lack of memory alone. Tensors are named by their
 * index; -1 is none.
 */
#ifndef TRAIN_LOWER_INTERNAL_H
#define TRAIN_LOWER_INTERNAL_H

#include "trainer/layers/layer.h"
#include "trainer/train_lower.h"
#include "trainer/train_outfeed_plan.h"

/* A gradient that a consumer gives to an output. */
struct lower_edge {
	int tensor;
	bool shared; /* others read it as well: nobody works on it in place */
};

/* Of a layer, by what its operations call them. */
struct lower_layer {
	int output, kept, between, between_too;
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
	int first_slot;
};

struct lowering {
	const struct train_lowered *from;
	struct arena *arena;
	bool training;
	struct train_outfeed_plan outfeeds; /* nothing where nothing is trained */
	int logits_layer;                   /* whose activation's input the loss takes; -1: none */
	struct ipu_tensor *tensors;
	size_t tensor_count, tensor_capacity;
	struct ipu_node *nodes;
	size_t node_count, node_capacity;
	int input, labels;
	int backprop; /* the loss's gradient, kept for phase B */
	int sums;     /* AddN operations so far */
	struct lower_layer *layers;
	struct lower_param *params;
	/* The operands of the present operation: what it reads, then what it writes. */
	int *list;
	size_t listed, list_capacity;
};

/* Append; the tensor's index. A NULL name is lack of memory. */
int train__lower_tensor(struct lowering *lowering, const struct ipu_tensor *tensor);
/* One of @elements, of a layer's (@position) stage; @part is the last part of its name. */
int train__lower_flat(struct lowering *lowering, int position, enum ipu_tensor_kind kind,
		      enum ipu_dtype dtype, const char *part, int64_t elements);
/* A tensor of the same shape. */
int train__lower_like(struct lowering *lowering, int tensor, enum ipu_tensor_kind kind,
		      enum ipu_dtype dtype, int stage, const char *name);
int train__lower_output(struct lowering *lowering, int position); /* of a layer */
int train__lower_tensors(struct lowering *lowering); /* all that stand before any operation */

/* Append @node, but for its options, which are the run's; lists are copied. */
int train__lower_node(struct lowering *lowering, const struct ipu_node *node);
/* One map that reads and writes a tensor each. */
int train__lower_cast(struct lowering *lowering, const char *name, const char *layer, char phase,
		      int stage, int from, int to);

int train__lower_layer_forward(struct lowering *lowering, int position);
int train__lower_layer_backward(struct lowering *lowering, int position);

/* The batch, as its operations want it. */
int train__lower_infeeds(struct lowering *lowering);
/* @value goes into the mean over the steps so far, which is @result. */
int train__lower_running_mean(struct lowering *lowering, const char *name, int value, int result);
/* One more, in phase U of the first stage. */
int train__lower_iterations(struct lowering *lowering);

int train__lower_loss_forward(struct lowering *lowering);
int train__lower_loss_backward(struct lowering *lowering); /* to the last layer's gradient */
int train__lower_outfeed(struct lowering *lowering, int position);

/* Of the parameters of a layer, in phase F: penalties; in B: regularisers' gradients, gradients
 * that are fed out, accumulation; in U: the update. */
int train__lower_params(struct lowering *lowering, int position, char phase);

static inline int64_t train__lower_batch(const struct lowering *lowering)
{
	return lowering->from->run->data.batch_size;
}

#endif /* TRAIN_LOWER_INTERNAL_H */
