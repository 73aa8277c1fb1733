/*
 * What the kinds of layers share: reading their options, and writing device operations. Failures of
 * reading stick in @err, which is not NULL: once it has one, nothing more is read.
 */
#ifndef LAYER_INTERNAL_H
#define LAYER_INTERNAL_H

#include "model/layers/layer_config.h"
#include "model/model_config.h"
#include "model/model_internal.h"

/* Layers that are layer->activation and nothing else. */
void layer__set_activation(struct model_layer *layer, enum model_activation activation);
int64_t layer__activation_flops(const struct model_layer *layer, int64_t batch);
void layer__activation_lower(struct layer_lowering *lowering);

/* Make @part, whose input is one row, its numbers from @first on. */
enum status layer_part(struct model *model, struct model_layer *part,
		       const struct model_shape *shape, int64_t first, struct err *err);

/* Options that every layer has, and its own. */
enum status layer__check(const struct json_at *config, const struct model_option *own, size_t count,
			 struct err *err);

/*
 * The same; then layer->config is @size cleared bytes of the model's, and the output as the input.
 */
enum status layer__begin(struct model *model, struct model_layer *layer,
			 const struct json_at *config, const struct model_option *own, size_t count,
			 size_t size, struct err *err);
/* An item of the input must be an image, three dimensions, or of a sequence layer have two. */
enum status layer__check_images(const struct model_layer *layer, const struct json_at *config,
				struct err *err);

/* "use_bias" (absent: true) and "activation", of a layer that ends in them. */
enum status layer__read_finish(struct model_layer *layer, const struct json_at *config,
			       struct err *err);

/* What a parameter is by default, and what its config may say: NAME_initializer,
 * NAME_regularizer and NAME_constraint. */
struct layer_param {
	const char *name;        /* "kernel" */
	const char *option;      /* NAME of its options where that is another; NULL: it is not */
	const char *initializer; /* "GlorotUniform" */
	struct model_shape shape;
	int64_t fan_in, fan_out;
	bool fixed;       /* never learns: moving statistics */
	bool no_autocast; /* float32 in a layer that is half, too */
};
enum status layer__add_param(struct model *model, struct model_layer *layer,
			     const struct json_at *config, const struct layer_param *param,
			     struct err *err);
/* The rows of an option table for such a parameter. */
#define LAYER_PARAM_OPTIONS(name)                                                                  \
	{name "_initializer", MODEL_ANY}, {name "_regularizer", MODEL_ANY},                        \
	{                                                                                          \
		name "_constraint", MODEL_NULL                                                     \
	}

/* The option "axis" (the batch's is 0), a number or a list of one, must name the last axis: -1 or
 * its number. Absent or null passes. */
enum status layer__check_last_axis(const struct model_layer *layer, const struct json_at *config,
				   struct err *err);

/* The option @key: a number for all channels or a list of @channels; *@here is false where it is
 * absent or null. */
enum status layer__channel_numbers(const struct json_at *config, const char *key, float *out,
				   int64_t channels, bool *here, struct err *err);

/* The rate at @key of @config, from 0 to below 1: what it drops; absent leaves *@out. */
void layer__read_drop(const struct json_at *config, const char *key, struct layer_drop *out,
		      struct err *err);
/* The "seed" of @config, to be mixed into a layer's stream; 0: there is none. */
void layer__read_seed(const struct json_at *config, uint32_t *out, struct err *err);

/*
 * Append @op, whose kind, sizes and operands are set; adds names, phase and type. @part is
 * "MatMul".
 */
void layer__lower(struct layer_lowering *lowering, const char *part, const struct layer_op *op);
/* A map over the layer's output or, in phase B, its input's elements. */
struct layer_op layer__map(const struct ipu_elements *elements, unsigned reads, unsigned writes);
struct layer_op layer__reduce(int64_t inputs, int64_t outputs, unsigned reads, unsigned writes);
struct layer_op layer__copy(int64_t count, int64_t atom, unsigned reads, unsigned writes);
int64_t layer__lower_count(const struct layer_lowering *lowering); /* elements of the output */
bool layer__wants_any(const struct layer_lowering *lowering);      /* a gradient of an input */
bool layer__wants(const struct layer_lowering *lowering, int input);

/*
 * Layers that end in a bias and an activation. The sums before the activation are the output itself
 * where that is worked on in place, what is kept where the gradient reads it, or what the loss
 * takes.
 */
unsigned layer__lower_sums(const struct layer_lowering *lowering);
void layer__lower_bias(struct layer_lowering *lowering, int param);
void layer__lower_bias_grad(struct layer_lowering *lowering, int param);
/* From the sums to the output; and the gradient, in place. Nothing for linear. */
void layer__lower_activation(struct layer_lowering *lowering);
/* All of a layer that is a product with its parameter 0, a bias (parameter 1) and an activation;
 * @product describes the three passes. */
typedef void (*layer_product)(const struct layer_lowering *lowering, enum ipu_pass pass,
			      struct ipu_op *out);
void layer__lower_product(struct layer_lowering *lowering, const char *part, layer_product product);

int64_t layer__activation_work(enum model_activation activation); /* operations per element */

/* ---- normalising layers ---------------------------------------------------------------------- */

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

/* ---- windows --------------------------------------------------------------------------------- */

/* One whole number for both, or a list of two; each @least to @most. */
enum status layer__pair(const struct json_at *at, int64_t least, int64_t most, int64_t out[2],
			struct err *err);
/* A window's option: of height and width, or of a sequence's steps, whose height is 1. @absent
 * where it is not given (0: it must be). */
enum status layer__window_option(const struct model_layer *layer, const struct json_at *config,
				 const char *key, int64_t least, int64_t most, int64_t absent,
				 int64_t out[LAYER_WAYS], struct err *err);
/* The output is an image of these sides, or a sequence. */
void layer__set_output(struct model_layer *layer, const int64_t sides[LAYER_WAYS],
		       int64_t channels);
/* "padding": is it "same"? Absent, it is "valid". */
enum status layer__padding(const struct json_at *config, bool *same, struct err *err);

/* How many places a window has along a side of @size, 0: it does not fit; @before is what the first
 * has outside of the image. */
int64_t layer__windows(int64_t size, int64_t reach, int64_t stride, bool same, int64_t *before);

#endif /* LAYER_INTERNAL_H */
