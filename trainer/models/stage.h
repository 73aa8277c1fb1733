/*
 * A pipeline stage of one replica at work: a contiguous range of layers and the memory of the
 * micro-batches in flight.
 *
 * A slot holds what one micro-batch must keep from its forward until its backward; the caller
 * chooses slots, and several may be in flight. What lives within one pass only shares an area that
 * all slots have in common; with one slot alone, so does what is kept until it has been read last.
 * All memory is allocated and touched at creation, a step allocates nothing. One thread at a time.
 * Results depend on (weights, input, seed, replica, step, states of stateful layers) only: the same
 * bytes for any pool, any cut of the model into stages, and any sharing of memory.
 *
 * Between stages flow the tensors that a stage before has made (the model's input among them) and
 * this one or a later one reads (the loss, too, which reads the mask of the model's output), in the
 * order of their layers, the model's input first. A layer
 * that passes its input on makes no tensor. They lie in one block, one after the other: each
 * [greatest batch, its shape], beginning on a 64-byte line. Gradients between stages lie in the
 * same way. Behind the last stage there is one tensor, the model's output.
 */
#ifndef STAGE_H
#define STAGE_H

#include "common/pool.h"
#include "model/model.h"

struct stage;

/* What is to be seen of a layer, as bits: stage_params.taps. */
enum stage_look {
	STAGE_LOOK = 1 << 0,    /* its output; an outfeed layer's always is */
	STAGE_ABS_MAX = 1 << 1, /* with the greatest magnitude in it */
	STAGE_SCORES = 1 << 2, /* what attention looks at, in passes that stage_set_scores() asks */
};

#define STAGE_TAP_INPUTS 4 /* of a layer, the most that are shown */

struct stage_tap_input {
	const float *values; /* NULL: the output has been written over it, or it never was there */
	size_t count;
};

/* The output of a layer, as Keras has it, when the layer has just run. Pointers hold until the tap
 * returns. */
struct stage_tapped {
	int layer;
	const float *values;
	size_t count;                                    /* of the batch that is there */
	struct stage_tap_input inputs[STAGE_TAP_INPUTS]; /* in the layer's order */
	int input_count;
	/* The greatest |x| as the bits of a float, which order as the numbers do: from 0x7f800000
	 * on some value is not finite (a NaN's payload may make it greater). Known where
	 * STAGE_ABS_MAX asks for it, or it came for nothing. */
	bool abs_max_known;
	uint32_t abs_max;
	const float *scores; /* as compute_ops.scores has them; NULL: not asked for */
	size_t score_count;
};

/* Called in a forward pass after each layer that is looked at, in the layers' order. */
typedef void (*stage_tap)(void *user, const struct stage_tapped *tapped);

/* Called in a pass that writes gradients, between its layers: those of @layer's parameters, and of
 * all layers' behind it, are there. */
typedef void (*stage_passed)(void *user, int layer);

/* Called around each layer's work, in both directions. */
typedef void (*stage_trace)(void *user, int layer, bool begin);

struct stage_params {
	const struct model *model;
	int first_layer, layer_count;
	int64_t batch; /* the greatest */
	int slots;
	bool training;
	bool split; /* stage_backward() is called without gradients, stage_backward_weights() later
		     */
	/* The loss's gradient is that of the input of the softmax (or sigmoid) that ends the model:
	 * see loss_takes_logits(). */
	bool logits_loss;
	/* Nobody asks for the gradient of the model's input: layers before the first that learns
	 * have no backward pass then, and nothing is kept for it. */
	bool fixed_input;
	uint64_t seed; /* with the replica and a step: of the random numbers */
	uint32_t replica;
	struct pool *pool; /* may be NULL; see stage_pool() */
	bool openblas;     /* computes products: then bytes are this kind of processor's alone */
	/* A block of the model's layout, borrowed: what model_round_weights() has made of the
	 * weights, in which passes read the parameters that are half. NULL: there are none. */
	float *halves;
	/* By layer of the model: enum stage_look; read at creation. NULL: outfeed layers alone are
	 * looked at. A layer that is does not do the ReLU behind it, which changes no byte. */
	const uint8_t *taps;
	stage_trace trace; /* may be NULL */
	void *trace_user;
	stage_passed passed; /* may be NULL */
	void *passed_user;
	/* For tests, which compare the bytes: */
	bool spread;   /* the pool's threads take part in a step however small it is */
	bool unfused;  /* no ReLU is done by the layer before it */
	bool unshared; /* each tensor and gradient has memory of its own */
	bool poison;   /* memory holds NaN where there is no value yet, or no more */
};

enum status stage_new(struct stage **out, const struct stage_params *params, struct err *err);
void stage_free(struct stage *stage); /* accepts NULL */

/*
 * The pool that takes part in the stage's passes, for what else goes over its weights; NULL: none.
 * Between two passes of a training step weights and gradients move from core to core; a small step
 * would lose more by that than threads win, and is one thread's.
 */
struct pool *stage_pool(const struct stage *stage);

/* The block that comes in, in @slot: to be filled before its forward. */
float *stage_input(struct stage *stage, int slot);
/* Floats of the blocks that come in and go out, for the greatest batch. */
size_t stage_input_count(const struct stage *stage);
size_t stage_output_count(const struct stage *stage);

/* Fill the input of @slot with what @from, the stage before, has made in its slot @from_slot: the
 * items of the batch which that slot's forward had. */
void stage_receive(struct stage *stage, int slot, const struct stage *from, int from_slot);

/* What the next forward passes are: training (as params->training says from the beginning), or
 * inference, in which nothing is dropped and moving statistics stand. */
void stage_set_training(struct stage *stage, bool training);

/* Do the next forward passes keep what attention looks at, of layers with STAGE_SCORES? From the
 * beginning they do not. */
void stage_set_scores(struct stage *stage, bool scores);

/* @batch: at most the stage's; the items lie at the beginning of each tensor. @step names random
 * numbers. Only the moving statistics of this stage's layers are written in @weights. @tap NULL:
 * nothing is looked at in this pass. */
void stage_forward(struct stage *stage, int slot, int64_t batch, uint64_t step, float *weights,
		   stage_tap tap, void *user);

/* May stage_forward_step() be called? Each layer does with a step what it does with all, or looks
 * at steps before it alone. */
bool stage_by_steps(const struct model *model);

/* Of a whole such model that does not learn, with params.unshared and a batch of 1: as
 * stage_forward() of the same item with other numbers at the step @at. Steps before it stand as
 * they have been worked out, those behind it are as they were. The same bytes. */
void stage_forward_step(struct stage *stage, int slot, int64_t at, float *weights);

/* The model's output in @slot, from its forward until its backward (or next forward): of the last
 * stage. Of another stage: the first tensor that goes out. */
const float *stage_output(const struct stage *stage, int slot);

/* The input of the softmax (or sigmoid) that ends the model, for a loss that takes it; NULL where
 * there is none. */
const float *stage_logits(const struct stage *stage, int slot);

/* Which rows of the model's output count, 1 or 0 each; NULL: all do. */
const float *stage_mask(const struct stage *stage, int slot, int output);

/* What a stateful layer, by its position in the model, leaves for the next forward pass, of any
 * slot: zeros at first. *@count floats, 0: it is none, or another call of one that is. */
float *stage_state(struct stage *stage, int layer, size_t *count);

/*
 * Of the batch that the slot's forward had. @grad_output: as outputs lie, overwritten. Writes this
 * stage's part of @gradients (the model's layout; not added to; parameters that do not learn are
 * left alone, those of layers that the output does not depend on become 0), or NULL where they are
 * to come later. @grad_input: as inputs
 * lie, or NULL where not wanted; tensors that nothing which learns comes before are left alone.
 */
void stage_backward(struct stage *stage, int slot, float *weights, float *grad_output,
		    float *gradients, float *grad_input);

/*
 * The second part of a backward pass that stage_backward() began with @gradients NULL (of a stage
 * with params.split): writes the gradients, the same bytes as in one pass. The slot holds its
 * micro-batch until then; any number of others may be forward or backward in between.
 */
void stage_backward_weights(struct stage *stage, int slot, float *weights, float *gradients);

/* Bytes that stage_new() would take for tensors, gradients and working memory; -1: beyond what can
 * be counted, or no memory to find out. */
int64_t stage_memory(const struct stage_params *params);

#endif /* STAGE_H */
