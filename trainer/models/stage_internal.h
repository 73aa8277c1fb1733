/*
 * Shared by a stage's files: the plan, which holds the location of each tensor and each gradient
 * and what each layer does in both directions.
 *
 * stage.c creates, runs and frees stages; stage_plan.c plans them. A plan is read-only after its
 * creation; all of it is in its arena.
 */
#ifndef STAGE_INTERNAL_H
#define STAGE_INTERNAL_H

#include "common/arena.h"
#include "trainer/layers/compute.h"
#include "trainer/models/stage.h"

/* Maximum floats of a stage: 256 TB, so that layers may count bytes without overflow checks. */
#define STAGE_FLOATS ((size_t)1 << 46)
#define STAGE_NONE   (-1) /* no index */

/* The base of a buffer's offset. */
enum stage_area {
	STAGE_SHARED, /* within one pass; with a single slot, until its backward pass */
	STAGE_SLOT,   /* in the slot, from its forward to its backward pass */
	STAGE_GRAD_OUTPUT,
	STAGE_GRAD_INPUT, /* the caller's; may be NULL */
	STAGE_AREAS
};

/* Time counts the layers of the stage, forward and then backward: layer i runs at times i and
 * 2 * layers - 1 - i. */
struct stage_buffer {
	enum stage_area area;
	size_t floats; /* of the greatest batch, a multiple of 16 */
	size_t offset;
	int first, last; /* times at which it is in use, for STAGE_SHARED */
};

/* A tensor: made by a layer of the stage, or incoming. Layers that pass through make none. */
struct stage_value {
	size_t each; /* floats per item */
	int buffer, gradient;
	int last;     /* the last layer in the stage that reads it; STAGE_NONE */
	bool wanted;  /* needs a gradient: a trainable layer comes before */
	bool held;    /* the next stage or the caller reads it */
	int until;    /* the last time a backward pass reads it; STAGE_NONE */
	bool written; /* used while planning gradients: its gradient has a writer */
	bool watched; /* a tap requests its greatest magnitude */
};

/* A tensor between stages. */
struct stage_tensor {
	int position; /* the layer that made it, or MODEL_INPUT */
	int value;
	size_t offset; /* in the block */
	bool live;     /* the model's output depends on it behind the border */
};

struct stage_border {
	struct stage_tensor *tensors;
	int count;
	size_t floats;
};

/* One input of a layer. */
struct stage_link {
	int value;
	int gradient; /* buffer; STAGE_NONE: not wanted */
	int partial;  /* buffer that the layer writes and that is then added; STAGE_NONE: none */
	bool add;     /* the layer adds to the gradient */
};

struct stage_layer {
	const struct model_layer *layer;
	struct stage_link *links;   /* by input */
	int output;                 /* value */
	int kept, logits, scores;   /* buffers, or STAGE_NONE */
	size_t state, state_floats; /* in stage.states */
	int partial;    /* buffer: a repeated call's parameter gradients; or STAGE_NONE */
	int held;       /* buffer: its output's gradient until stage_backward_weights(), if split */
	bool passes;    /* no computation: its output is its input */
	bool learns;    /* has trainable parameters */
	bool backward;  /* has a backward pass */
	bool unreached; /* trainable, but no gradient reaches it: its gradients are 0 */
	bool skip_activation;
	bool tapped;
	bool relu; /* also applies the following ReLU */
	float relu_most;
	/* An Add whose sum the layer before it computes, in its own output's buffer: the other
	 * input's value; STAGE_NONE: the layer adds by itself. */
	int plus;
};

struct stage_plan {
	struct arena arena;
	struct stage_params params;
	struct stage_layer *layers;
	struct stage_value *values;
	int value_count;
	struct stage_buffer *buffers;
	int buffer_count;
	struct stage_border in, out;
	int *value_of;            /* by position + 1 in the model; STAGE_NONE: not in this stage */
	bool *reached;            /* by position: the model's output depends on it */
	int logits;               /* buffer, or STAGE_NONE */
	int masks[MODEL_OUTPUTS]; /* of the last stage, by output: values, or STAGE_NONE */
	int most_inputs;
	size_t slot_floats, shared_floats, scratch_floats, state_floats;
	/* The rest is of use only while planning. */
	struct stage_buffer **sorted; /* those in the shared area */
	/* By position in the model: */
	bool *written; /* its parameters' gradients have a writer */
	int *uses;     /* readers of its output, over the whole model */
	int *user;     /* the last of them */
	/* By position + 1 in the model: */
	bool *wanted; /* needs a gradient, as in struct stage_value */
	bool *read;   /* made before a border and read behind it */
	bool *live;   /* as in struct stage_tensor, of that border */
};

/* ST_LIMIT, without a message: more floats than STAGE_FLOATS. On failure *@plan is cleaned up. */
enum status stage__plan(struct stage_plan *plan, const struct stage_params *params,
			struct err *err);
void stage__plan_fini(struct stage_plan *plan);

/* The micro-batch that a slot holds. */
struct stage_micro {
	int64_t batch;
	uint64_t step;
};

/* The stage's memory, and the arrays that a layer's pass refers to. */
struct stage {
	struct stage_plan plan;
	float *block; /* the slots, the shared area, then the layers' working memory */
	float *shared;
	float *scratch;
	float *states;                /* the layers' states from one micro-batch to the next */
	struct stage_micro *micro;    /* by slot */
	bool inference;               /* forward passes run in inference mode */
	bool scores;                  /* forward passes store attention scores */
	struct kernel_watch *watches; /* by value: of the current forward pass */
	const float **inputs;         /* by input of the current layer */
	float **grad_inputs;
	bool *add;
};

float *stage__slot(const struct stage *stage, int slot);

#endif /* STAGE_INTERNAL_H */
