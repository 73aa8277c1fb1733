/*
 * The kinds of layers, what each is: one table row each, listed in layer_map.h. The model and the
 * lowering know layers by this alone; how a layer computes stands in trainer/layers/compute.h.
 */
#ifndef LAYER_H
#define LAYER_H

#include "common/arena.h"
#include "ipu/plan/ipu_op.h"
#include "model/layers/layer_map.h"
#include "model/model.h"

/*
 * A device operation with what it reads and writes, as bits: the trainer knows which tensors these
 * are. An operation may go on with what the one before wrote in place: LAYER_OUTPUT, LAYER_KEPT or
 * LAYER_BETWEEN both read and written.
 *
 * Where no operation of phase F writes LAYER_OUTPUT, the output is the first input. Where none of
 * phase B writes an input's gradient, it is what has become of the output's.
 */
enum layer_operand {
	LAYER_INPUT = 1 << 0, /* the outputs of all layers that come in */
	LAYER_OUTPUT = 1 << 1,
	LAYER_KEPT = 1 << 2,        /* kept from the forward to the backward pass */
	LAYER_BETWEEN = 1 << 3,     /* what two operations of the same phase pass on */
	LAYER_GRAD_OUTPUT = 1 << 4, /* may be written in place: an activation's gradient */
	LAYER_GRAD_INPUT = 1 << 5,  /* of all inputs that it is wanted of */
	LAYER_BETWEEN_TOO = 1 << 6, /* a second of the kind, at the same time */
	LAYER_STATE = 1 << 7,       /* layer->state numbers of each item: a variable */
	LAYER_PARAM_0 = 1 << 8,
	LAYER_GRAD_PARAM_0 = 1 << 16,
	LAYER_GRAD_INPUT_0 = 1 << 24
};
#define LAYER_PARAM(index)         ((unsigned)LAYER_PARAM_0 << (index)) /* index below 8 */
#define LAYER_GRAD_PARAM(index)    ((unsigned)LAYER_GRAD_PARAM_0 << (index))
#define LAYER_GRAD_INPUT_AT(index) ((unsigned)LAYER_GRAD_INPUT_0 << (index)) /* of one input */

struct layer_op {
	struct ipu_op op;
	unsigned reads, writes; /* of enum layer_operand */
	/* Elements of what it makes of LAYER_KEPT, LAYER_BETWEEN and LAYER_BETWEEN_TOO; 0 where it
	 * goes on with what is there. */
	int64_t makes;
	bool bytes;         /* a byte each, not the operation's type */
	bool full;          /* float32 in a layer that is half, too */
	bool training_only; /* an evaluation or prediction goes without it */
};

#define LAYER_OPS 20 /* the most operations of a layer in a phase */

/* What a layer is lowered for, and the operations that it becomes. */
struct layer_lowering {
	const struct model *model;
	const struct model_layer *layer;
	int64_t batch;       /* items of a micro-batch */
	char phase;          /* enum ipu_work_phase: F or B */
	bool training;       /* the forward pass is training's: it drops, and learns statistics */
	bool keeps;          /* a backward pass of this layer follows, which reads what is kept */
	bool takes_logits;   /* the loss takes what goes into this layer's activation */
	const bool *wanted;  /* phase B, by input: its gradient is; NULL: none is */
	struct arena *arena; /* of the names: "LAYER/..." */
	struct layer_op ops[LAYER_OPS];
	int count;
	bool failed; /* there was no memory */
};

/* The rows of layer_map.h by number, for those who keep a table beside them. */
enum layer_kind {
#define LAYER_KIND(kind, name, compute) LAYER_KIND_##kind,
	LAYER_MAP(LAYER_KIND)
#undef LAYER_KIND
	LAYER_KINDS
};

/* What becomes of the mask of a layer's input, which tells the steps that count. */
enum layer_masks {
	LAYER_MASKS_END,  /* the output has none */
	LAYER_MASKS_PASS, /* the output has the same */
	LAYER_MASKS_USED, /* it comes in as the last input; outputs of as many steps have it, too */
	LAYER_MASKS_ATTEND /* so do that of the queries, which the output has, and of the keys */
};

struct compute_ops; /* trainer/layers/compute.h */

struct layer_ops {
	const char *class_name;
	enum layer_kind kind;
	/* A layer that is no row of the map: how it computes. NULL: as its kind's row says. */
	const struct compute_ops *compute;
	/* Read config, set output shape and parameters (model__add_param). */
	enum status (*read)(struct model *model, struct model_layer *layer,
			    const struct json_at *config, struct err *err);
	int64_t (*flops)(const struct model_layer *layer, int64_t batch); /* NULL: 0 */
	/* Append the device operations of a phase for one micro-batch; `stage` is 0, for the caller
	 * to set. NULL: there are none. */
	void (*lower)(struct layer_lowering *lowering);
	int least_inputs, most_inputs; /* 0, 0: exactly one */
	bool sequence;     /* of (steps, channels): it works as on an image one pixel high */
	bool pass_through; /* output is the input: no buffer, no gradient work */
	bool looks_up;     /* the input is numbers of rows: never rounded, cast to no type */
	/* What a backward pass reads. */
	bool reads_inputs; /* the values of inputs[] */
	bool reads_output; /* the values of output (also where a ReLU is fused) */
	enum model_outfeed outfeed;
	enum layer_masks masks;
};

const struct layer_ops *layer_find(const char *class_name); /* NULL: unknown */
/* What may stand in a model's list of layers, "InputLayer" and wrappers included. */
const char *const *layer_names(int *count);

/* Make @mask, whose input is set, the layer that tells which steps of @maker's input count: from
 * the same input, a number for each step, 1 or 0. */
enum status layer_mask(struct model *model, const struct model_layer *maker,
		       struct model_layer *mask, struct err *err);

/* How many states a layer of this config hands on beside its output; 0: return_state is not asked
 * for, or it has none. Where layer->hands_state is set its output is one row of all. */
int layer_states(const struct layer_ops *ops, const cJSON *config);
/* How many it has, which its call may be given as initial_state; 0: it is no recurrent layer. */
int layer_state_count(const struct layer_ops *ops);
/* Make @part, whose input is such a layer's output, that layer's output (0) or state @index. */
enum status layer_state(struct model *model, const struct model_layer *from, int index,
			struct model_layer *part, struct err *err);

/* Inputs that are no masks. */
int layer_own_inputs(const struct model_layer *layer);

/* Is the layer a plain ReLU, which the layer before may do? Sets its upper bound. */
bool layer_is_relu(const struct model_layer *layer, float *most);

#endif /* LAYER_H */
