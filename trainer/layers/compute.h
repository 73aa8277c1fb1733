/*
 * How each kind of layer computes: forward and backward over one micro-batch. model/layers/ defines
 * what the kinds are; a row of its layer_map.h joins the two.
 */
#ifndef COMPUTE_H
#define COMPUTE_H

#include "common/pool.h"
#include "model/layers/layer_config.h"
#include "trainer/kernels/kernel_watch.h"

/*
 * One layer's view of one micro-batch. The stage owns the buffers; each begins on a 64-byte line.
 * Images are NHWC.
 */
struct layer_pass {
	const struct model *model;
	const struct model_layer *layer;
	int64_t batch;
	bool training;
	struct pool *pool;
	bool openblas; /* OpenBLAS computes products */
	/* The model's parameter block. Only a layer's own moving statistics are written, in a
	 * training forward pass. */
	float *weights;
	float *halves;              /* the same block, for half-precision parameters: see stage.h */
	const float *const *inputs; /* by input of the layer: [batch, its shape] */
	float *output;              /* [batch, output]; inputs[0] if compute_ops.in_place */
	float *logits; /* receives the softmax's input, for the loss; NULL: not wanted */
	void *kept; /* compute_ops.kept() bytes of this micro-batch, from its forward to its backward */
	float *state;  /* read and updated: the state from the layer's previous forward pass */
	void *scratch; /* compute_ops.scratch() bytes, until the call returns */
	/* Random numbers are keyed by (seed, the layer's name, step, replica). */
	uint64_t seed, step;
	uint32_t replica;
	/* Apply the ReLU layer that follows in the same pass: min(max(y, 0), relu_most). Only if
	 * compute_ops.fuses_relu. */
	bool relu;
	float relu_most; /* INFINITY: no upper bound */
	/* Forward: add this tensor to the output, before the ReLU. Only if compute_ops.fuses_add;
	 * NULL: none. */
	const float *plus;
	/* Forward: slices report the greatest magnitude of their part of @output while it is still
	 * in the cache, and the layer then marks the watch as known; or it leaves both to the
	 * stage. NULL: not wanted. */
	struct kernel_watch *watch;
	float *scores; /* forward: receives compute_ops.scores() bytes; NULL: not wanted */
	/* Forward of one item, see stage_forward_step(): attention computes only step @step_at;
	 * earlier steps are in `kept` and @output. */
	bool one_step;
	int64_t step_at;

	/* backward only: */
	float *grad_output;        /* [batch, output]; overwritten */
	float *const *grad_inputs; /* by input: [batch, its shape]; NULL entries: not wanted */
	const bool *add;           /* by input: add to the buffer; only if compute_ops.adds */
	/* The model's gradient block: the pass writes this layer's trainable parameters. NULL: not
	 * wanted, like a NULL entry of grad_inputs. The value of one does not depend on whether the
	 * other is wanted. */
	float *gradients;
	size_t first_gradient; /* offset of the first parameter in `gradients`: usually 0 */
	bool skip_activation;  /* the loss already computed the gradient of the pre-activation */
};

struct compute_ops {
	void (*forward)(const struct layer_pass *pass);
	/* Called only if at least one gradient is wanted: of an input, or of the parameters. */
	void (*backward)(const struct layer_pass *pass);
	/* Sizes for a pass over the greatest batch, of which only model, layer, batch, training and
	 * pool are set. Bytes; NULL: none. */
	size_t (*kept)(const struct layer_pass *pass);
	size_t (*scratch)(const struct layer_pass *pass);
	/* Bytes of attention scores: the softmax [batch, heads, queries, keys], before dropout.
	 * NULL: the layer is no attention. */
	size_t (*scores)(const struct layer_pass *pass);
	/* Floats passed from one forward pass to the next, contiguous per item; NULL: none. */
	size_t (*state)(const struct layer_pass *pass);
	const void *own; /* data specific to the kind: kernels */
	/* Where a pass may write; the stage plans its memory accordingly. */
	bool in_place;      /* forward: output may be inputs[0], if nothing reads that later */
	bool grad_in_place; /* backward: grad_inputs[0] may be grad_output */
	bool adds;          /* backward honours pass->add */
	bool fuses_relu;
	bool fuses_add;
};

/* The ops of the layer's kind; never NULL. A layer that passes its input through has no passes. */
const struct compute_ops *compute_of(const struct model_layer *layer);

#endif /* COMPUTE_H */
