/*
 * What the normalising layers have in common: the axis, which must be the last, epsilon, and the
 * parameters gamma and beta.
 */
#ifndef LAYER_NORM_H
#define LAYER_NORM_H

#include "model/layers/layer_internal.h"

/* The rows of an option table that layer__read_norm() reads. */
#define LAYER_NORM_OPTIONS                                                                         \
	{"axis", MODEL_ANY}, {"epsilon", MODEL_ANY}, {"center", MODEL_ANY}, {"scale", MODEL_ANY},  \
		LAYER_PARAM_OPTIONS("gamma"), LAYER_PARAM_OPTIONS("beta")

/* Read them; the output has the input's shape; gamma (ones) and beta (zeros) are added. */
enum status layer__read_norm(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct layer_norm *out, struct err *err);

/*
 * Device operations, as poplibs has them: @groups of elements have a mean and a variance each.
 *
 * Statistics: a sum and a sum of squares to LAYER_BETWEEN and LAYER_BETWEEN_TOO. Gradients of gamma
 * and beta, to their own or, where @both are needed but are no parameters, to the same two: of what
 * has been whitened, times dy, and of dy.
 */
void layer__lower_statistics(struct layer_lowering *lowering, const char *name, int64_t groups,
			     bool training_only);
void layer__lower_norm_sums(struct layer_lowering *lowering, const char *name,
			    const struct layer_norm *norm, bool both);
/* A map over all elements, @adds on each, by numbers of each channel. */
struct layer_op layer__norm_map(const struct layer_lowering *lowering, int adds, unsigned reads,
				unsigned writes);
/* Where the gradients of gamma and of beta are, or what stands for them: both as bits. */
unsigned layer__norm_sums(const struct layer_norm *norm);
unsigned layer__norm_params(const struct layer_norm *norm); /* gamma and beta themselves */
/* @op, its part being NAME/PART. */
void layer__lower_norm(struct layer_lowering *lowering, const char *name, const char *part,
		       const struct layer_op *op);

#endif /* LAYER_NORM_H */
