/*
 * The kinds of layers, how each computes: forward and backward over one micro-batch. What they are
 * stands in model/layers/; a row of its layer_map.h joins the two.
 */
#ifndef COMPUTE_H
#define COMPUTE_H

#include "common/pool.h"
#include "model/layers/layer_config.h"
#include "trainer/kernels/kernel_watch.h"

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
	float *output;              /* [batch, output]; inputs[0] where compute_ops.in_place */
	float *logits; /* the softmax's input, to be kept for the loss; NULL: not wanted */
	void *kept; /* compute_ops.kept() bytes of this micro-batch, from its forward to its backward */
	float *state;  /* what the layer's last forward pass left; this one leaves its own */
	void *scratch; /* compute_ops.scratch() bytes, until the call returns */
	/* Random numbers are named by (seed, the layer's name, step, replica). */
	uint64_t seed, step;
	uint32_t replica;
	/* A ReLU that follows is done here, in the same pass: min(max(y, 0), relu_most). Only where
	 * compute_ops.fuses_relu. */
	bool relu;
	float relu_most; /* INFINITY: no upper bound */
	/* Forward: slices put the greatest magnitude of their part of @output in while it is still
	 * in the cache, and the layer says that all have; or it leaves that to the stage. NULL:
	 * nobody asks. */
	struct kernel_watch *watch;
	float *scores; /* forward: where compute_ops.scores() bytes go; NULL: nobody asks */
	/* Forward of one item, see stage_forward_step(): attention works out its step @step_at
	 * alone, and has those before it in `kept` and @output. */
	bool one_step;
	int64_t step_at;

	/* backward only: */
	float *grad_output;        /* [batch, output]; overwritten */
	float *const *grad_inputs; /* by input: [batch, its shape]; NULL entries: not wanted */
	const bool *add;           /* by input: add to what is there; only where compute_ops.adds */
	/* The model's block: this layer's trainable parameters are written. NULL: not wanted, as
	 * inputs' gradients may not be. Each comes out the same whether the other is wanted or not.
	 */
	float *gradients;
	size_t first_gradient; /* the offset of the parameter with which `gradients` begins: else 0 */
	bool skip_activation; /* the loss has given the gradient of the pre-activation already */
};

struct compute_ops {
	void (*forward)(const struct layer_pass *pass);
	void (*backward)(const struct layer_pass *pass);
	/* Bytes; NULL: none. @lanes: of the pool. Both are asked once, for the greatest batch. */
	size_t (*kept)(const struct model *model, const struct model_layer *layer, int64_t batch);
	size_t (*scratch)(const struct model *model, const struct model_layer *layer, int64_t batch,
			  unsigned lanes, bool training);
	/* Of what attention looks at: the softmax of its scores [batch, heads, queries, keys],
	 * before any is dropped. NULL: it is no attention. */
	size_t (*scores)(const struct model *model, const struct model_layer *layer, int64_t batch);
	/* Floats that go from one forward pass to the next, an item's beside each other; NULL: none.
	 */
	size_t (*state)(const struct model_layer *layer, int64_t batch);
	const void *own; /* what a kind's passes need to know of it: kernels */
	/* Where a pass may write: by these a stage lays its memory out. */
	bool in_place;      /* forward: output may be inputs[0], if nothing reads those later */
	bool grad_in_place; /* backward: grad_inputs[0] may be grad_output */
	bool adds;          /* backward honours pass->add */
	bool fuses_relu;
};

/* Of the layer's kind; never NULL. What hands its input on has no passes. */
const struct compute_ops *compute_of(const struct model_layer *layer);

#endif /* COMPUTE_H */
