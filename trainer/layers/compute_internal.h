/*
 * Shared by the layers' computations: slices, activations over a whole pass, parameters.
 */
#ifndef COMPUTE_INTERNAL_H
#define COMPUTE_INTERNAL_H

#include "trainer/layers/compute.h"

/* Distribute @rows rows of @columns elements in slices of about COMPUTE_GRAIN elements; @body
 * processes rows @first .. @first + @rows - 1. Single elements are rows of one column. */
#define COMPUTE_GRAIN 16384
typedef void (*compute_body)(const void *context, int64_t first, int64_t rows);
void compute__share(struct pool *pool, int64_t rows, int64_t columns, compute_body body,
		    const void *context);
/* The same for a forward pass whose rows, in order, make up pass->output; also updates
 * pass->watch, if set. */
void compute__share_output(const struct layer_pass *pass, int64_t rows, int64_t columns,
			   compute_body body, const void *context);

/* Whether the layer applies randomness (dropout, noise). */
static inline bool compute__is_random(const struct layer_pass *pass)
{
	return pass->training && !pass->layer->inference;
}

/* pass->output = activation(x) over [rows, columns]; x may be the output. */
void compute__activate(const struct layer_pass *pass, enum model_activation activation,
		       const float *x, int64_t rows, int64_t columns);
/* Turn dy into the gradient of the activation's input, computed from its output @y, or from its
 * input @x if layer_activation_needs_input(). The unused one may be NULL. */
void compute__activate_grad(struct pool *pool, enum model_activation activation, const float *x,
			    const float *y, float *dy, int64_t rows, int64_t columns);

/* The same for @count elements within a slice. Only for element-wise activations whose slope is
 * computed from the output; @y may be @x. */
void compute__activate_elements(enum model_activation activation, const float *x, float *y,
				size_t count);
void compute__activate_elements_grad(enum model_activation activation, const float *y, float *dy,
				     size_t count);

/*
 * For layers that end in layer->activation: compute_ops.kept, and the buffer in which their forward
 * pass stores the activation's input. That is the logits if the loss wants them, the kept memory if
 * the gradient reads it (an evaluation may have none), else the output.
 */
size_t compute__activation_kept(const struct layer_pass *pass);
float *compute__activation_sums(const struct layer_pass *pass);

/* Parameter @index of the pass's layer: the values that the layer reads (rounded if the parameter
 * is half; a statistic never is, and may be written), and its gradient. */
float *compute__weights(const struct layer_pass *pass, int index);
float *compute__gradients(const struct layer_pass *pass, int index);
/* The passes of a layer whose output is its only input: a copy, unless both have one buffer. */
void compute__identity(const struct layer_pass *pass);
void compute__identity_grad(const struct layer_pass *pass);
/* A mask has no gradient: write zeros if one is wanted. */
void compute__masks_backward(const struct layer_pass *pass);

/* Whether the backward pass adds to the gradient of input @input instead of writing it. */
static inline bool compute__adds(const struct layer_pass *pass, int input)
{
	return pass->add && pass->add[input];
}

/* The number of values in the pass's output. */
static inline int64_t compute__count(const struct layer_pass *pass)
{
	return pass->batch * model_shape_count(&pass->layer->output);
}

/* Whether this backward pass computes the gradients of the layer's parameters. */
bool compute__learns(const struct layer_pass *pass);

/*
 * Coefficients per channel, repeated so that loops over them are long: whole repetitions in
 * COMPUTE_PATTERN floats, or just the channels if they are more.
 */
#define COMPUTE_PATTERN 256
int64_t compute__pattern(int64_t channels);
/* The scratch of a layer with two patterns, for its compute_ops. */
size_t compute__pattern_pair(const struct layer_pass *pass);
/* Fill @pattern with @numbers, one per channel, and their repetitions. */
void compute__repeat(float *pattern, const float *numbers, int64_t channels);

#endif /* COMPUTE_INTERNAL_H */
