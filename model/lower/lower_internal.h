/*
 * What the parts of the lowering share: the tensors and operations created so far.
 *
 * Failures, which are always lack of memory, are sticky: after one, nothing is appended. A tensor
 * is identified by its index; -1 is none. After a failure, functions that append a tensor return 0,
 * the infeed, which exists as soon as lower__tensors() has succeeded.
 */
#ifndef LOWER_INTERNAL_H
#define LOWER_INTERNAL_H

#include "model/layers/layer.h"
#include "model/lower/lower.h"
#include "model/run/run_queues.h"

/* A gradient that a consumer contributes to an output. */
struct lower_edge {
	int tensor;
	bool shared; /* others read it, too: no operation may modify it in place */
};

/* The tensors of a layer, by enum layer_operand. */
struct lower_layer {
	int output, kept, between, between_too, state;
	int betweens;   /* created so far; each has a separate name */
	int gradient;   /* of the output */
	bool shared;    /* `gradient` is shared */
	bool needs;     /* needs a gradient of its output: it or a layer before it is trained */
	bool outputs;   /* the model's output depends on it */
	bool folded;    /* its factors are in the weights of the layer before */
	int edges;      /* gradients of its output so far */
	int edges_most; /* consumers that contribute one */
	struct lower_edge *edge;
	int *given;      /* by input, in phase B: the gradient that was created; -1: none yet */
	bool *wanted;    /* by input: its gradient is needed */
	int *cast_input; /* by input: in the layer's type; the input itself if that is its type */
};

struct lower_param {
	int weight, gradient, accumulator;
	int half, half_gradient; /* if the layer reads it as float16: the copy and its gradient */
	char half_phase;         /* the phase in which the copy was made; 0: not yet */
	bool made;               /* a later call of the layer has created the gradient */
	int sum; /* the later calls' gradient, while `gradient` is this call's; or -1 */
	int first_slot;
};

struct lowering {
	const struct lower_request *from;
	struct arena *arena;
	bool failed; /* out of memory */
	bool training;
	struct run_queues outfeeds; /* empty without training */
	int logits_layer;           /* the loss reads its activation's input; -1: none */
	struct ipu_tensor *tensors;
	size_t tensor_count, tensor_capacity;
	struct ipu_node *nodes;
	size_t node_count, node_capacity;
	int input, labels, weights; /* -1: none */
	struct lower_loss {
		int backprop;      /* the gradient, retained for phase B */
		int rows;          /* mask of the output's valid rows; -1: all are valid */
		int mask, counted; /* mask of the rows that the loss uses, and their number */
	} losses[MODEL_OUTPUTS];   /* by output; gradients only of losses that are given */
	int sums;                  /* AddN operations so far */
	struct lower_layer *layers;
	struct lower_param *params;
	/* The operands of the current operation: reads, then writes. */
	int *list;
	size_t listed, list_capacity;
};

/* Format a name, in the arena; "" after a failure. */
const char *lower__name(struct lowering *lowering, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Append a tensor and return its index. */
int lower__tensor(struct lowering *lowering, const struct ipu_tensor *tensor);
/* Append a 1D tensor of @elements on the stage of layer @position; @part is the end of its name. */
int lower__flat(struct lowering *lowering, int position, enum ipu_tensor_kind kind,
		enum ipu_dtype dtype, const char *part, int64_t elements);
/* Append a tensor of the same shape. */
int lower__like(struct lowering *lowering, int tensor, enum ipu_tensor_kind kind,
		enum ipu_dtype dtype, int stage, const char *name);
/* Append @node; lists are copied, and options are set from the run. */
void lower__node(struct lowering *lowering, const struct ipu_node *node);
/* Append an operation that reads the @count tensors @reads and writes @to. */
void lower__op(struct lowering *lowering, const struct ipu_op *op, const int *reads, int count,
	       int to);
/* Append a cast from one tensor to another; bytes become floats in [0, 1]: a division by 255. */
void lower__cast(struct lowering *lowering, const char *name, const char *layer, char phase,
		 int stage, int from, int to);

int lower__output(struct lowering *lowering, int position); /* of a layer */
void lower__tensors(struct lowering *lowering); /* all that exist before any operation */

void lower__layer_forward(struct lowering *lowering, int position);
void lower__layer_backward(struct lowering *lowering, int position);

void lower__loss_forward(struct lowering *lowering);
void lower__loss_backward(struct lowering *lowering); /* to the last layer's gradient */

static inline int64_t lower__batch(const struct lowering *lowering)
{
	return lowering->from->run->data.batch_size;
}

#endif /* LOWER_INTERNAL_H */
