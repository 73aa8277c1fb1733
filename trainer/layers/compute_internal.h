/*
 * What the kinds of layers share in computing: slices, activations over a whole pass, parameters.
 */
#ifndef COMPUTE_INTERNAL_H
#define COMPUTE_INTERNAL_H

#include "trainer/layers/compute.h"

/* Share @rows of @columns elements out in slices of about COMPUTE_GRAIN elements; @body does rows
 * @first .. @first + @rows - 1. Elements alone are rows of one column. */
#define COMPUTE_GRAIN 16384
typedef void (*compute_body)(const void *context, int64_t first, int64_t rows);
void compute__share(struct pool *pool, int64_t rows, int64_t columns, compute_body body,
		    const void *context);
/* The same for a forward pass whose rows, one after the other, are all of pass->output: it is
 * looked at where the pass is watched. */
void compute__share_output(const struct layer_pass *pass, int64_t rows, int64_t columns,
			   compute_body body, const void *context);

/* Is anything dropped, or noise added? */
static inline bool compute__varies(const struct layer_pass *pass)
{
	return pass->training && !pass->layer->inference;
}

/* pass->output = activation(x) over [rows, columns]; x may be the output. */
void compute__activate(const struct layer_pass *pass, enum model_activation activation,
		       const float *x, int64_t rows, int64_t columns);
/* dy becomes the gradient of the activation's input, from its output @y, or from its input @x
 * where layer_activation_needs_input(); what is not needed may be NULL. */
void compute__activate_grad(struct pool *pool, enum model_activation activation, const float *x,
			    const float *y, float *dy, int64_t rows, int64_t columns);

/* The same for @count elements within a slice, of an activation of single elements whose slope is
 * told from its output; @y may be @x. */
void compute__activate_elements(enum model_activation activation, const float *x, float *y,
				size_t count);
void compute__activate_elements_grad(enum model_activation activation, const float *y, float *dy,
				     size_t count);

/*
 * Layers that end in layer->activation: compute_ops.kept, and where their forward pass writes what
 * the activation is to be taken of: to the logits where the loss wants them, to what is kept where
 * the gradient reads it (an evaluation may keep none), else to the output.
 */
size_t compute__activation_kept(const struct model *model, const struct model_layer *layer,
				int64_t batch);
float *compute__activation_sums(const struct layer_pass *pass);

/* Parameter @index of the pass's layer, in what it reads (rounded where the parameter is half; a
 * statistic never is, and may be written) and in its gradients. */
float *compute__weights(const struct layer_pass *pass, int index);
float *compute__gradients(const struct layer_pass *pass, int index);
/* A mask has no slope: zeros, where its gradient is wanted. */
void compute__masks_backward(const struct layer_pass *pass);

/* Does this backward pass make the gradients of the layer's parameters? */
bool compute__learns(const struct layer_pass *pass);

/*
 * Numbers per channel, repeated until loops over them are long: COMPUTE_PATTERN floats or the
 * channels, whichever is more, rounded down to whole repetitions.
 */
#define COMPUTE_PATTERN 256
int64_t compute__pattern(int64_t channels);
/* The scratch of a layer with two of them: a row of its compute_ops. */
size_t compute__pattern_pair(const struct model *model, const struct model_layer *layer,
			     int64_t batch, unsigned lanes, bool training);
/* @pattern gets @numbers, of @channels, and their repetitions. */
void compute__repeat(float *pattern, const float *numbers, int64_t channels);

#endif /* COMPUTE_INTERNAL_H */
