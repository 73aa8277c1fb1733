/*
 * The kinds of layers: one table row each. The model, the stages and the lowering know layers by
 * this alone.
 */
#ifndef LAYER_H
#define LAYER_H

#include "common/arena.h"
#include "common/pool.h"
#include "ipu/plan/ipu_op.h"
#include "trainer/kernels/kernel_watch.h"
#include "trainer/models/model.h"

/*
 * One layer's view of one micro-batch. Buffers are the stage's; each begins on a 64-byte line.
 * Images are NHWC.
 */
struct layer_pass {
	const struct model *model;
	const struct model_layer *layer;
	int64_t batch;
	bool training;
	struct pool *pool;
	bool openblas; /* computes products */
	/* The model's block. Only a layer's own moving statistics are written, in a training
	 * forward pass. */
	float *weights;
	float *halves; /* the same block, where parameters that are half are read; see stage.h */
	const float *const *inputs; /* by input of the layer: [batch, its shape] */
	float *output;              /* [batch, output]; inputs[0] where ops->in_place */
	float *logits; /* the softmax's input, to be kept for the loss; NULL: not wanted */
	void *kept;    /* ops->kept() bytes of this micro-batch, from its forward to its backward */
	void *scratch; /* ops->scratch() bytes, until the call returns */
	/* Random numbers are named by (seed, the layer's name, step, replica). */
	uint64_t seed, step;
	uint32_t replica;
	/* A ReLU that follows is done here, in the same pass: min(max(y, 0), relu_most). Only where
	 * ops->fuses_relu. */
	bool relu;
	float relu_most; /* INFINITY: no upper bound */
	/* Forward: slices put the greatest magnitude of their part of @output in while it is still
	 * in the cache, and the layer says that all have; or it leaves that to the stage. NULL:
	 * nobody asks. */
	struct kernel_watch *watch;

	/* backward only: */
	float *grad_output;        /* [batch, output]; overwritten */
	float *const *grad_inputs; /* by input: [batch, its shape]; NULL entries: not wanted */
	const bool *add;           /* by input: add to what is there; only where ops->adds */
	float *gradients;     /* the model's block: this layer's trainable parameters are written */
	bool skip_activation; /* the loss has given the gradient of the pre-activation already */
};

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

#define LAYER_OPS 8 /* the most operations of a layer in a phase */

/* What a layer is lowered for, and the operations that it becomes. */
struct layer_lowering {
	const struct model *model;
	const struct model_layer *layer;
	int64_t batch;       /* items of a micro-batch */
	char phase;          /* F or B */
	bool training;       /* the forward pass is training's: it drops, and learns statistics */
	bool keeps;          /* a backward pass of this layer follows, which reads what is kept */
	bool takes_logits;   /* the loss takes what goes into this layer's activation */
	const bool *wanted;  /* phase B, by input: its gradient is; NULL: none is */
	struct arena *arena; /* of the names: "LAYER/..." */
	struct layer_op ops[LAYER_OPS];
	int count;
	bool failed; /* there was no memory */
};

struct layer_ops {
	const char *class_name;
	/* Read config, set output shape and parameters (model__add_param). */
	enum status (*read)(struct model *model, struct model_layer *layer,
			    const struct json_at *config, struct err *err);
	void (*forward)(const struct layer_pass *pass);
	void (*backward)(const struct layer_pass *pass);
	/* Bytes; NULL: none. @lanes: of the pool. Both are asked once, for the greatest batch. */
	size_t (*kept)(const struct model *model, const struct model_layer *layer, int64_t batch);
	size_t (*scratch)(const struct model *model, const struct model_layer *layer, int64_t batch,
			  unsigned lanes, bool training);
	int64_t (*flops)(const struct model_layer *layer, int64_t batch); /* NULL: 0 */
	/* Append the device operations of a phase for one micro-batch; `stage` is 0, for the caller
	 * to set. NULL: there are none. */
	void (*lower)(struct layer_lowering *lowering);
	int least_inputs, most_inputs; /* 0, 0: exactly one */
	bool pass_through;             /* output is the input: no buffer, no gradient work */
	/*
	 * What a backward pass reads, and where it may write: by these a stage lays its memory out.
	 */
	bool reads_inputs;  /* the values of inputs[] */
	bool reads_output;  /* the values of output (also where a ReLU is fused) */
	bool in_place;      /* forward: output may be inputs[0], if nothing reads those later */
	bool grad_in_place; /* backward: grad_inputs[0] may be grad_output */
	bool adds;          /* backward honours pass->add */
	bool fuses_relu;
	enum model_outfeed outfeed;
};

const struct layer_ops *layer_find(const char *class_name); /* NULL: unknown */
/* What may stand in a model's list of layers, "InputLayer" included. */
const char *const *layer_names(int *count);

/* Is the layer a plain ReLU, which the layer before may do? Sets its upper bound. */
bool layer_is_relu(const struct model_layer *layer, float *most);

#endif /* LAYER_H */
