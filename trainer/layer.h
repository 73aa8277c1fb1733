/*
 * The kinds of layers: one table row each. The model, the stages and the lowering know layers by this alone.
 */
#ifndef LAYER_H
#define LAYER_H

#include "common/arena.h"
#include "common/pool.h"
#include "ipu/ipu_plan.h"
#include "trainer/model.h"

/* One layer's view of one micro-batch. Buffers are the stage's. */
struct layer_pass {
	const struct model *model;
	const struct model_layer *layer;
	int64_t batch;
	bool training;
	struct pool *pool;
	const float *weights;   /* the model's block */
	const float *input;     /* [batch, input] */
	float *output;          /* [batch, output]; may be the input where ops->in_place */
	/* backward only: */
	const float *grad_output; /* may be overwritten through `scratch` rules of the stage: see stage.c */
	float *grad_input;        /* NULL: not wanted (the first layer) */
	float *gradients;         /* the model's block: this layer's parameters are written, not added */
	float *scratch;           /* [batch, output] floats */
	bool skip_activation;     /* the loss has given the gradient of the pre-activation already */
};

struct layer_ops {
	const char *class_name;
	/* Read config, set output shape and parameters (model__add_param). */
	enum status (*read)(struct model *model, struct model_layer *layer,
			    const struct json_at *config, struct err *err);
	void (*forward)(const struct layer_pass *pass);
	void (*backward)(const struct layer_pass *pass);
	int64_t (*flops)(const struct model_layer *layer, int64_t batch); /* NULL: 0 */
	/* Device operations of phase F or B for one micro-batch; returns how many were written to
	 * @ops (at most @most). Names are "LAYER/..." and owned by the caller's arena. */
	int (*lower)(const struct model *model, const struct model_layer *layer, int64_t batch,
		     char phase, bool first, struct ipu_op *ops, int most, struct arena *arena);
	bool pass_through; /* output is the input: no buffer, no gradient work */
	enum model_outfeed outfeed;
};

const struct layer_ops *layer_find(const char *class_name);
const char *const *layer_names(int *count);

#endif /* LAYER_H */
