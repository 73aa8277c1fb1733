/*
 * What the parts of a stage share: the plan, which says where each tensor and each gradient lies
 * and what each layer does in both directions.
 *
 * stage.c makes and frees stages, stage_plan.c plans them, stage_run.c does the work. A plan is
 * read-only once it is made; all of it lies in its arena.
 */
#ifndef STAGE_INTERNAL_H
#define STAGE_INTERNAL_H

#include "common/arena.h"
#include "trainer/layers/compute.h"
#include "trainer/models/stage.h"

/* The most floats of a stage: 256 TB, so that layers may count bytes without care. */
#define STAGE_FLOATS ((size_t)1 << 46)
#define STAGE_NONE   (-1) /* in place of an index */

/* What a buffer's offset counts from. */
enum stage_area {
	STAGE_SHARED, /* within one pass, or where there is one slot alone until its backward */
	STAGE_SLOT,   /* of one slot, from its forward to its backward */
	STAGE_GRAD_OUTPUT,
	STAGE_GRAD_INPUT, /* the caller's; may be NULL */
	STAGE_AREAS
};

/* Time runs over the layers of the stage, forward and then backward: layer i works at i and at
 * 2 * layers - 1 - i. */
struct stage_buffer {
	enum stage_area area;
	size_t floats; /* of the greatest batch, a multiple of 16 */
	size_t offset;
	int first, last; /* times at which it is in use, for STAGE_SHARED */
};

/* A tensor: made by a layer of the stage, or come in. Layers that pass on make none. */
struct stage_value {
	size_t each; /* floats of an item */
	int buffer, gradient;
	int last;     /* the last layer in the stage that reads it; STAGE_NONE */
	bool wanted;  /* something that learns comes before: it needs a gradient */
	bool held;    /* the next stage or the caller reads it */
	int until;    /* the last time a backward pass reads it; STAGE_NONE */
	bool written; /* while gradients are planned: there is one already */
	bool watched; /* a tap asks for the greatest magnitude in it */
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
	int partial;  /* the layer writes here and it is added; STAGE_NONE: it writes itself */
	bool add;     /* the layer adds to what is there */
};

struct stage_layer {
	const struct model_layer *layer;
	struct stage_link *links;   /* by input */
	int output;                 /* value */
	int kept, logits, scores;   /* buffers, or STAGE_NONE */
	size_t state, state_floats; /* in stage.states */
	int partial;    /* the same: a further call's gradients of the parameters, to be added */
	int held;       /* buffer: its output's gradient until its weights', where split */
	bool passes;    /* nothing to do: its output is its input */
	bool learns;    /* has trainable parameters */
	bool backward;  /* has a backward pass */
	bool unreached; /* learns, but no gradient comes: its gradients are 0 */
	bool skip_activation;
	bool tapped;
	bool relu; /* does the ReLU behind it too */
	float relu_most;
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
	int *value_of; /* by position + 1 in the model; STAGE_NONE: not here */
	bool *reached; /* by position: the model's output depends on it */
	bool *written; /* by position, while gradients are planned: its parameters have theirs */
	int logits;    /* buffer, or STAGE_NONE */
	int masks[MODEL_OUTPUTS]; /* values, by output, of the last stage; or STAGE_NONE */
	int most_inputs;
	size_t slot_floats, shared_floats, scratch_floats, state_floats;
};

/* ST_LIMIT, without a message: the stage's floats are beyond what can be counted. On failure there
 * is nothing to undo. */
enum status stage__plan(struct stage_plan *plan, const struct stage_params *params,
			struct err *err);
void stage__plan_fini(struct stage_plan *plan);

/* What a slot holds at present. */
struct stage_micro {
	int64_t batch;
	uint64_t step;
};

/* Where the areas are during a pass, and what a layer is shown. */
struct stage {
	struct stage_plan plan;
	float *block; /* the slots, the shared area, then the layers' working memory */
	float *shared;
	float *scratch;
	float *states; /* what goes from one micro-batch to the next, of all layers; NULL: nothing */
	struct stage_micro *micro;    /* by slot */
	bool inference;               /* forward passes are none of training */
	bool scores;                  /* they keep what attention looks at */
	struct kernel_watch *watches; /* by value: of the forward pass at work */
	const float **inputs;         /* by input of the layer at work */
	float **grad_inputs;
	bool *add;
};

float *stage__slot(const struct stage *stage, int slot);

#endif /* STAGE_INTERNAL_H */
