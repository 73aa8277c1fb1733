/*
 * What the kinds of layers share: reading options and appending device operations. Read failures
 * are sticky in the reading's err: once it holds one, nothing more is read.
 */
#ifndef LAYER_INTERNAL_H
#define LAYER_INTERNAL_H

#include "model/layers/layer_config.h"
#include "model/model_config.h"
#include "model/model_internal.h"

#define LAYER_EXTERN(kind, name, compute) extern const struct layer_ops layer_##kind;
LAYER_MAP(LAYER_EXTERN)
#undef LAYER_EXTERN

/* Make @part, whose input is one row, the slice of @shape that begins at @first. */
enum status layer_part(struct model *model, struct model_layer *part,
		       const struct model_shape *shape, int64_t first, struct err *err);

/* The fields of rows of options. */
#define LAYER_FIELD(member)        .offset = offsetof(struct model_layer, member), .second = true
#define LAYER_CONFIG(kind, member) .offset = offsetof(struct layer_##kind, member)
#define LAYER_USE_BIAS                                                                             \
	{                                                                                          \
		"use_bias", MODEL_BOOL, LAYER_FIELD(use_bias), .strict = true, .fallback = true    \
	}

/* Read "activation". */
enum status layer__read_activation(const struct layer_reading *in);

/* The defaults of a parameter, and the prefix of its options NAME_initializer, NAME_regularizer and
 * NAME_constraint. */
struct layer_param {
	const char *name;        /* "kernel" */
	const char *option;      /* the prefix, if it differs from `name`; NULL: it does not */
	const char *initializer; /* "GlorotUniform" */
	struct model_shape shape;
	int64_t fan_in, fan_out;
	bool fixed;       /* never trained: moving statistics */
	bool no_autocast; /* float32 even in a layer that is half */
};
enum status layer__add_param(const struct layer_reading *in, const struct layer_param *param);
/* The rows of an option table for such a parameter. */
#define LAYER_PARAM_OPTIONS(name)                                                                  \
	{name "_initializer", .rule = MODEL_ANY}, {name "_regularizer", .rule = MODEL_ANY},        \
	{                                                                                          \
		name "_constraint", .rule = MODEL_NULL                                             \
	}

/* Check that "axis" (a number or a list of one; the batch is 0) names the last axis: -1 or its
 * number. Absent passes. */
enum status layer__check_last_axis(const struct layer_reading *in);

/* Read the dropout rate at @key, in [0, 1). If it is absent, *@out does not change. */
void layer__read_drop(const struct layer_reading *in, const char *key, struct layer_drop *out);
/* Read "seed", to be mixed into the layer's stream; if it is absent, *@out (0: none) stays. */
void layer__read_seed(const struct layer_reading *in, uint32_t *out);

/*
 * Append @op, whose kind, sizes and operands are set; set its names, phase and type. @part is the
 * operation's name below the layer's: "MatMul".
 */
void layer__lower(struct layer_lowering *lowering, const char *part, const struct layer_op *op);
/* An elementwise map over the layer's output or, in phase B, its input. */
struct layer_op layer__map(const struct ipu_elements *elements, unsigned reads, unsigned writes);
struct layer_op layer__reduce(int64_t inputs, int64_t outputs, unsigned reads, unsigned writes);
struct layer_op layer__copy(int64_t count, int64_t atom, unsigned reads, unsigned writes);
int64_t layer__lower_count(const struct layer_lowering *lowering); /* elements of the output */
bool layer__wants_any(const struct layer_lowering *lowering);      /* a gradient of an input */
bool layer__wants(const struct layer_lowering *lowering, int input);

/*
 * Layers that end in a bias and an activation. The tensor of the sums before the activation: the
 * output, if the activation works in place; LAYER_KEPT, if the activation's gradient reads the
 * sums; LAYER_BETWEEN, if the loss reads them.
 */
unsigned layer__lower_sums(const struct layer_lowering *lowering);
void layer__lower_bias(struct layer_lowering *lowering, int param);
void layer__lower_bias_grad(struct layer_lowering *lowering, int param);
/* Append the activation from the sums to the output; in phase B its gradient, in place. Appends
 * nothing for linear. */
void layer__lower_activation(struct layer_lowering *lowering);
/* Lower a layer that is a product with parameter 0, a bias (parameter 1) and an activation;
 * @product describes the three passes. */
typedef void (*layer_product)(const struct layer_lowering *lowering, enum ipu_pass pass,
			      struct ipu_op *out);
void layer__lower_product(struct layer_lowering *lowering, const char *part, layer_product product);

int64_t layer__activation_work(enum model_activation activation); /* operations per element */

/* ---- windows --------------------------------------------------------------------------------- */

/* Read one integer for both, or a list of two; each from @least to @most. */
enum status layer__pair(const struct json_at *at, int64_t least, int64_t most, int64_t out[2],
			struct err *err);
/* Read a window option: height and width, or a sequence's steps (height 1). @absent: the default
 * (0: the option is required). */
enum status layer__window_option(const struct layer_reading *in, const char *key, int64_t least,
				 int64_t most, int64_t absent, int64_t out[LAYER_WAYS]);
/* Set the output to an image of these sides, or to a sequence. */
void layer__set_output(struct model_layer *layer, const int64_t sides[LAYER_WAYS],
		       int64_t channels);
/* Read "padding": whether it is "same". Absent: "valid". */
enum status layer__padding(const struct layer_reading *in, bool *same);

/* Number of window positions along a side of @size; 0: the window does not fit. @before receives
 * the padding before the first. */
int64_t layer__windows(int64_t size, int64_t reach, int64_t stride, bool same, int64_t *before);

#endif /* LAYER_INTERNAL_H */
