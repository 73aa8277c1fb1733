/*
 * One layer at work, without a stage: its model, its memory, and a pass that tests may change.
 */
#ifndef SUPPORT_LAYER_RIG_H
#define SUPPORT_LAYER_RIG_H

#include "support/math.h"
#include "trainer/layers/compute.h"

/* What y, dx and the gradients hold before a pass. What lies between the gradients of parameters,
 * and behind each of the three, must still hold it after each pass. */
#define LAYER_RIG_UNWRITTEN 9.0f

struct layer_rig {
	struct math_model m;
	struct layer_pass pass; /* of the layer */
	float *weights, *gradients;
	float *x, *y, *dy, *dx; /* the layer's input and output, and their gradients */
	size_t in, out;         /* floats of x and of y */
	float *mask; /* [batch, steps], where a Masking stands before the layer: ones; else NULL */
	const float *inputs[2];
	float *grad_inputs[2];
	bool add[2];
};

/* @layers: a list as for math_model_open(), of one layer, or of Masking, the layer and
 * Flatten. Weights are Keras's initial values. */
void layer_rig_open(struct layer_rig *rig, const char *layers, int ndim, const int64_t *dims,
		    int64_t batch, bool training, struct pool *pool);
void layer_rig_close(struct layer_rig *rig);

void layer_rig_fill(struct layer_rig *rig); /* x and dy from -1 to 1; dx with what must go */
void layer_rig_forward(struct layer_rig *rig);
void layer_rig_backward(struct layer_rig *rig); /* dy to dx and gradients; dy may be lost */
float *layer_rig_weights(struct layer_rig *rig, const char *short_name);
const float *layer_rig_gradients(struct layer_rig *rig, const char *short_name);

/*
 * A pass of the layer over images of @dims, forward and backward, gives the same bytes with any
 * pool, and allocates nothing. @fill sets x and dy. @more, if not NULL, goes on with each rig but
 * the first, whose @y and @dx it is given.
 */
void layer_rig_check_pools(const char *layer, const int64_t dims[3], int64_t batch,
			   void (*fill)(struct layer_rig *rig),
			   void (*more)(struct layer_rig *rig, const float *y, const float *dx));

/* Fail unless a model of these layers is refused with @status and a text that has @part. */
void layer_rig_refused(const char *layers, int ndim, const int64_t *dims, enum status status,
		       const char *part);

#endif /* SUPPORT_LAYER_RIG_H */
