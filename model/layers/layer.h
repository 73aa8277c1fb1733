/*
 * The kinds of layers: one table row each, listed in layer_map.h. The model and the lowering know
 * layers only by this table; how a layer computes is in trainer/layers/compute.h.
 */
#ifndef LAYER_H
#define LAYER_H

#include "common/arena.h"
#include "ipu/plan/ipu_op.h"
#include "model/layers/layer_map.h"
#include "model/model.h"
#include "model/model_config.h"

/*
 * A device operation and the tensors that it reads and writes, as bits; the trainer knows the
 * actual tensors. An operation may continue in place on what the previous one wrote: it then
 * both reads and writes LAYER_OUTPUT, LAYER_KEPT or LAYER_BETWEEN.
 *
 * If no operation of phase F writes LAYER_OUTPUT, the output is the first input. If no operation
 * of phase B writes an input's gradient, that gradient is the (possibly modified) gradient of
 * the output.
 */
enum layer_operand {
	LAYER_INPUT = 1 << 0, /* all inputs */
	LAYER_OUTPUT = 1 << 1,
	LAYER_KEPT = 1 << 2,        /* retained from the forward to the backward pass */
	LAYER_BETWEEN = 1 << 3,     /* scratch between two operations of the same phase */
	LAYER_GRAD_OUTPUT = 1 << 4, /* may be written in place: an activation's gradient */
	LAYER_GRAD_INPUT = 1 << 5,  /* of all inputs whose gradient is wanted */
	LAYER_BETWEEN_TOO = 1 << 6, /* a second LAYER_BETWEEN, live at the same time */
	LAYER_STATE = 1 << 7,       /* layer->state values of each item: a variable */
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
	/* Elements that it allocates of LAYER_KEPT, LAYER_BETWEEN and LAYER_BETWEEN_TOO; 0 if it
	 * continues on an existing tensor. */
	int64_t makes;
	bool bytes;         /* those elements are bytes, not of the operation's type */
	bool full;          /* float32 even in a layer that is half */
	bool training_only; /* omitted in evaluation and prediction */
};

#define LAYER_OPS 20 /* limit on the operations of a layer in a phase */

/* The circumstances for which a layer is lowered, and the operations that it becomes. */
struct layer_lowering {
	const struct model *model;
	const struct model_layer *layer;
	int64_t batch;       /* items of a micro-batch */
	char phase;          /* enum ipu_work_phase: F or B */
	bool training;       /* in training: the forward pass drops, and updates statistics */
	bool retains;        /* a backward pass of this layer follows and reads what is retained */
	bool takes_logits;   /* the loss reads the input of this layer's activation */
	bool folded;         /* a normalisation whose factors the layer before has in its weights */
	const bool *wanted;  /* phase B, by input: its gradient is needed; NULL: none */
	struct arena *arena; /* for operation names: "LAYER/..." */
	struct layer_op ops[LAYER_OPS];
	int count;
	bool failed; /* out of memory */
};

/* The rows of layer_map.h as numbers, for parallel tables. */
enum layer_kind {
#define LAYER_KIND(kind, name, compute) LAYER_KIND_##kind,
	LAYER_MAP(LAYER_KIND)
#undef LAYER_KIND
	LAYER_KINDS
};

/* How a kind treats the mask of its input, which marks the valid steps. */
enum layer_masks {
	LAYER_MASKS_END,   /* the output has no mask */
	LAYER_MASKS_PASS,  /* the output has the same mask */
	LAYER_MASKS_USED,  /* it is the last input; an output of as many steps has it, too */
	LAYER_MASKS_ATTEND /* the masks of queries and keys are inputs; the output has the former */
};

/* A layer whose config is read; its row, inputs and input shape are set. */
struct layer_reading {
	struct model *model;
	struct model_layer *layer;
	const struct json_at *config;
	struct err *err; /* sticky; never NULL */
};

struct compute_ops; /* trainer/layers/compute.h */

struct layer_ops {
	const char *class_name;
	enum layer_kind kind;
	/* How a layer outside the map computes. NULL: as its kind's row states. */
	const struct compute_ops *compute;
	struct model_options options; /* beyond those of every layer: fields of layer->config, */
				      /* or (`second`) of the layer */
	size_t config_size;           /* of layer->config; 0: NULL */
	bool images;                  /* its input must be images, or sequences if `sequence` */
	/* Read what the rows of the options do not; set the output shape, which is the input's, and
	 * parameters (layer__add_param). Not called after a failure; NULL: nothing. */
	enum status (*read)(const struct layer_reading *in);
	int64_t (*flops)(const struct model_layer *layer, int64_t batch); /* NULL: 0 */
	/* Append the device operations of a phase for one micro-batch. `stage` is 0; the caller
	 * sets it. NULL: no operations. */
	void (*lower)(struct layer_lowering *lowering);
	int least_inputs, most_inputs; /* 0, 0: exactly one */
	bool sequence;     /* input is (steps, channels), processed as an image one pixel high */
	bool pass_through; /* output is the input: no buffer, no gradient work */
	bool looks_up;     /* inputs are row numbers: never rounded or cast */
	bool function;     /* on the device: layers that are alike share their code */
	bool each_step;    /* steps of a sequence are independent: TimeDistributed may hold it */
	/* What a backward pass reads. */
	bool reads_inputs; /* the values of inputs[] */
	bool reads_output; /* the values of output (also if a ReLU is fused) */
	enum model_outfeed outfeed;
	enum layer_masks masks;
};

const struct layer_ops *layer_find(const char *class_name); /* NULL: unknown */

/* Read the config of @layer, whose row, inputs and input shape are set. */
enum status layer_read(struct model *model, struct model_layer *layer, const struct json_at *config,
		       struct err *err);
/* The classes that a model's list of layers may contain, "InputLayer" and wrappers included. */
const char *const *layer_names(int *count);

/* Make @mask, whose input is set, the layer that computes the mask of @maker's input: 1 or 0 for
 * each step. */
enum status layer_mask(struct model *model, const struct model_layer *maker,
		       struct model_layer *mask, struct err *err);

/* Number of states that a layer with this config returns beside its output; 0: return_state is not
 * set, or the layer has no states. If layer->returns_state is set, its output is one row of all. */
int layer_states(const struct layer_ops *ops, const cJSON *config);
/* Number of its states, which a call may pass as initial_state; 0: not a recurrent layer. */
int layer_state_count(const struct layer_ops *ops);
/* Make @part, whose input is the output row of @from, the slice of its output (0) or state
 * @index. */
enum status layer_state(struct model *model, const struct model_layer *from, int index,
			struct model_layer *part, struct err *err);

/* Number of inputs that are not masks. */
int layer_own_inputs(const struct model_layer *layer);

/* Whether the layer is a plain ReLU, which can be fused into the layer before. Sets its upper
 * bound. */
bool layer_is_relu(const struct model_layer *layer, float *most);

#endif /* LAYER_H */
