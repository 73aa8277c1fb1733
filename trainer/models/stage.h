/*
 * A pipeline stage of one replica: a contiguous range of layers, and the memory of the
 * micro-batches in flight.
 *
 * A slot holds what one micro-batch keeps from its forward until its backward pass. The caller
 * chooses slots, and several may be in flight. Buffers that live within one pass are in an area
 * shared by all slots; with a single slot, so are kept buffers until their last use. All memory is
 * allocated and touched at creation; a step allocates nothing. One thread at a time. Results
 * depend only on (weights, input, seed, replica, step, states of stateful layers): the same bytes
 * for any pool, any cut of the model into stages, and any sharing of memory.
 *
 * A border between stages carries the tensors that an earlier stage makes (the model's input
 * included) and a later one reads, in the order of their layers, the model's input first. The loss
 * counts as a reader, too: it reads the mask of the model's output. A layer that passes its input
 * through makes no tensor. The tensors of a border are contiguous in one block, each [greatest
 * batch, its shape], beginning on a 64-byte line. Gradients between stages have the same layout.
 * The last stage has one outgoing tensor, the model's output.
 */
#ifndef STAGE_H
#define STAGE_H

#include "common/pool.h"
#include "model/model.h"

struct stage;

/* What taps see of a layer, as bits: stage_params.taps. */
enum stage_look {
	STAGE_LOOK = 1 << 0,    /* its output; implied for an outfeed layer */
	STAGE_ABS_MAX = 1 << 1, /* the output and its greatest magnitude */
	STAGE_SCORES = 1 << 2,  /* attention scores, in passes enabled by stage_set_scores() */
};

#define STAGE_TAP_INPUTS 4 /* maximum inputs of a layer that a tap sees */

struct stage_tap_input {
	const float *values; /* NULL: overwritten by the output, or never computed */
	size_t count;
};

/* The output of a layer, as in Keras, right after the layer ran. Pointers are valid until the tap
 * returns. */
struct stage_tapped {
	int layer;
	const float *values;
	size_t count;                                    /* of the current batch */
	struct stage_tap_input inputs[STAGE_TAP_INPUTS]; /* in the layer's order */
	int input_count;
	/* The greatest |x| as the bits of a float, which sort like the numbers: from 0x7f800000 on
	 * some value is not finite (a NaN's payload may make it greater). Known if STAGE_ABS_MAX
	 * requests it, or if it is available without extra cost. */
	bool abs_max_known;
	uint32_t abs_max;
	const float *scores; /* as in compute_ops.scores; NULL: not requested */
	size_t score_count;
};

/* Called in a forward pass after each tapped layer, in the order of the layers. */
typedef void (*stage_tap)(void *user, const struct stage_tapped *tapped);

/* Called in a pass that writes gradients, between its layers: the gradients of the parameters of
 * @layer and of all later layers are complete. */
typedef void (*stage_passed)(void *user, int layer);

/* Called around each layer's work, in both directions. */
typedef void (*stage_trace)(void *user, int layer, bool begin);

struct stage_params {
	const struct model *model;
	int first_layer, layer_count;
	int64_t batch; /* the greatest batch */
	int slots;
	bool training;
	bool split; /* stage_backward() runs without gradients, stage_backward_weights() later */
	/* The loss's gradient is that of the input of the model's final softmax (or sigmoid): see
	 * loss_takes_logits(). */
	bool logits_loss;
	/* The gradient of the model's input is not wanted. Layers before the first trainable one
	 * then have no backward pass, and nothing is kept for it. */
	bool fixed_input;
	uint64_t seed; /* key of the random numbers, together with the replica and a step */
	uint32_t replica;
	struct pool *pool; /* may be NULL; see stage_pool() */
	bool openblas;     /* OpenBLAS computes products: the bytes then depend on the processor */
	/* Borrowed block with the model's layout, written by model_round_weights(): passes read
	 * half-precision parameters from it. NULL: the model has none. */
	float *halves;
	/* By layer of the model: enum stage_look; read at creation. NULL: only outfeed layers are
	 * tapped. A tapped layer does not fuse the following ReLU or Add, which changes no byte. */
	const uint8_t *taps;
	stage_trace trace; /* may be NULL */
	void *trace_user;
	stage_passed passed; /* may be NULL */
	void *passed_user;
	/* For tests that compare bytes: */
	bool spread;   /* use the pool's threads even for a small step */
	bool unfused;  /* never fuse a ReLU or an Add with the layer before it */
	bool unshared; /* each tensor and gradient has separate memory */
	bool poison;   /* fill memory with NaN while it holds no value */
};

enum status stage_new(struct stage **out, const struct stage_params *params, struct err *err);
void stage_free(struct stage *stage); /* accepts NULL */

/*
 * The pool that runs the stage's passes, for other work on its weights; NULL: none. Between the
 * passes of a training step weights and gradients move from core to core. A small step would lose
 * more by that than it gains from threads, so it runs on one thread.
 */
struct pool *stage_pool(const struct stage *stage);

/* The block of incoming tensors in @slot: the caller fills it before the forward pass. */
float *stage_input(struct stage *stage, int slot);
/* Floats of the incoming and outgoing blocks, for the greatest batch. */
size_t stage_input_count(const struct stage *stage);
size_t stage_output_count(const struct stage *stage);

/* Copy to the input of @slot what @from, the preceding stage, computed in its slot @from_slot, for
 * the batch of that slot's forward pass. */
void stage_receive(struct stage *stage, int slot, const struct stage *from, int from_slot);

/* Set the mode of the following forward passes: training (the default, if params->training) or
 * inference, without dropout and with fixed moving statistics. */
void stage_set_training(struct stage *stage, bool training);

/* Set whether the following forward passes store attention scores, for layers with STAGE_SCORES;
 * false by default. */
void stage_set_scores(struct stage *stage, bool scores);

/* Run a forward pass. @batch: at most the stage's; its items are at the beginning of each tensor.
 * @step keys the random numbers. Only the moving statistics of this stage's layers are written in
 * @weights. @tap NULL: no taps in this pass. */
void stage_forward(struct stage *stage, int slot, int64_t batch, uint64_t step, float *weights,
		   stage_tap tap, void *user);

/* Whether stage_forward_step() may be called: each layer treats steps independently, or reads
 * earlier steps only. */
bool stage_by_steps(const struct model *model);

/* Recompute step @at of the slot's item, whose input changed at that step only. Requires a stage
 * of a whole such model, not training, with params.unshared and a batch of 1. Earlier steps are
 * reused, later ones keep their old values. The bytes are those of stage_forward(). */
void stage_forward_step(struct stage *stage, int slot, int64_t at, float *weights);

/* For the last stage: the model's output in @slot, from its forward until its backward pass (or
 * next forward). For others: the first outgoing tensor. */
const float *stage_output(const struct stage *stage, int slot);

/* The input of the model's final softmax (or sigmoid), for a loss that takes it; NULL if there is
 * none. */
const float *stage_logits(const struct stage *stage, int slot);

/* The mask of the rows of the model's output, 1 or 0 each; NULL: all rows count. */
const float *stage_mask(const struct stage *stage, int slot, int output);

/* The state that a stateful layer, given by its position in the model, passes to the next forward
 * pass of any slot; initially zeros. *@count: its floats; 0: not stateful, or a repeated call. */
float *stage_state(struct stage *stage, int layer, size_t *count);

/*
 * Run the backward pass, for the batch of the slot's forward pass. @grad_output: laid out like the
 * outputs, overwritten. Writes this stage's part of @gradients (the model's layout; not added to).
 * Non-trainable parameters are not written; those of layers that the output does not depend on
 * become 0. @gradients NULL: stage_backward_weights() follows. @grad_input: laid out like the
 * inputs, or NULL if not wanted; tensors without trainable layers before them are not written.
 */
void stage_backward(struct stage *stage, int slot, float *weights, float *grad_output,
		    float *gradients, float *grad_input);

/*
 * The second part of a backward pass that stage_backward() began with @gradients NULL (in a stage
 * with params.split): write the gradients, with the same bytes as in one pass. The slot keeps its
 * micro-batch until then; other slots may run any passes in between.
 */
void stage_backward_weights(struct stage *stage, int slot, float *weights, float *gradients);

/* Bytes that stage_new() would allocate for tensors, gradients and working memory. */
#define STAGE_UNCOUNTABLE INT64_C(-1) /* more than can be counted */
#define STAGE_NO_MEMORY   INT64_C(-2) /* there was no memory to find out */
int64_t stage_memory(const struct stage_params *params);

#endif /* STAGE_H */
