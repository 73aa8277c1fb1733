/*
 * What the kinds of layers have read of their options, for those who describe and those who compute
 * them: layer->config of each, in the model's arena, and sizes that follow from it.
 *
 * Plain data, constant once the model is read: any thread.
 */
#ifndef LAYER_CONFIG_H
#define LAYER_CONFIG_H

#include "model/layers/layer.h"

int64_t layer_last_dim(const struct model_shape *shape); /* 1 for a scalar */
/* Rows of the last axis in a batch of the layer's input. */
int64_t layer_rows(const struct model_layer *layer, int64_t batch);

/* What the gradient of an activation reads: the activation's input, its output. */
bool layer_activation_needs_input(enum model_activation activation);
bool layer_activation_needs_output(enum model_activation activation);

/*
 * Windows that slide over an image, as convolutions and pools have them. Sizes are TensorFlow's
 * (tf.nn.convolution, tf.nn.pool): a window that reaches r pixels far has (size - r) / stride + 1
 * places with "valid"; with "same" it has ceil(size / stride), and max((places - 1) stride + r -
 * size, 0) pixels outside of the image, the smaller half of them before.
 */
enum {
	LAYER_Y,
	LAYER_X,
	LAYER_WAYS
};
/* The size of an image, or of a sequence as an image one pixel high. */
static inline int64_t layer_side(const struct model_shape *shape, int way)
{
	if (shape->ndim == 2)
		return way == LAYER_X ? shape->dim[0] : 1;
	return shape->dim[way];
}

/* ---- Dense ----------------------------------------------------------------------------------- */

/* [rows, inputs] times [inputs, units]. */
struct layer_dense_sizes {
	int64_t rows, inputs, units;
};
struct layer_dense_sizes layer_dense_sizes(const struct model_layer *layer, int64_t batch);

/* ---- convolutions ---------------------------------------------------------------------------- */

struct layer_conv {
	int64_t kernel[LAYER_WAYS], stride[LAYER_WAYS], dilation[LAYER_WAYS];
	bool same;
	int64_t out[LAYER_WAYS], pad[LAYER_WAYS]; /* outputs; zeros above and to the left */
	int64_t groups;
	int64_t multiplier; /* outputs of a channel, of depthwise ones */
	bool transposed;    /* the convolution is from the output to the input */
};
int64_t layer_conv_pixels(const struct model_layer *layer, int64_t batch); /* of the output */

/* Parameters of SeparableConv2D by number, and the channels between its two convolutions. */
enum {
	LAYER_SEPARABLE_DEPTHWISE,
	LAYER_SEPARABLE_POINTWISE,
	LAYER_SEPARABLE_BIAS
};
int64_t layer_separable_between(const struct model_layer *layer);

/* ---- what is dropped in training ------------------------------------------------------------- */

struct layer_drop {
	uint32_t threshold; /* random numbers below it drop; 0: none */
	float scale;        /* of what stays: 1 / (1 - rate) */
};

/* ---- SimpleRNN, LSTM, GRU -------------------------------------------------------------------- */

struct layer_recurrent {
	int64_t gates;     /* 1, 4, 3 */
	bool sequences;    /* the output is of all steps */
	bool backwards;    /* the first step looks at the input's last */
	bool reversed;     /* sequences stand as the input's steps, not as they were worked out */
	bool reset_before; /* of a GRU: reset_after false */
	int starts;        /* inputs that are the state before the first step: h, c; 0: none */
	bool hands;        /* the state after the last step stands behind the outputs */
	bool stateful;     /* a batch begins with the state that the one before has left */
	bool zeros;        /* masked steps put out zeros, not what the step before left */
	enum model_activation activation, recurrent_activation;
	/* An item's features, and its state before each step's product: the same at all steps. */
	struct layer_drop drop, recurrent_drop;
	uint32_t seed; /* mixed into the layer's stream; 0: none */
};

/* ---- MultiHeadAttention, Attention ----------------------------------------------------------- */

enum {
	LAYER_ATTENTION_QUERY,
	LAYER_ATTENTION_KEY,
	LAYER_ATTENTION_VALUE,
	LAYER_ATTENTION_PARTS
};
struct layer_attention {
	int64_t heads, key_dim, value_dim; /* the widths are a head's */
	int input[LAYER_ATTENTION_PARTS];  /* which input each is made of */
	bool projects;                     /* MultiHeadAttention: by kernels of its own */
	bool causal;
	float scale;            /* of queries that were projected */
	struct layer_drop drop; /* scores */
	uint32_t seed;          /* mixed into the layer's stream; 0: none */
};

/* ---- pools and padding ----------------------------------------------------------------------- */

struct layer_pool {
	int64_t height, width, channels;
	int64_t out_height, out_width;
	int64_t pool_height, pool_width;
	int64_t stride_height, stride_width;
	int64_t top, left; /* pixels of the first window outside of the image */
};

/* Along a dimension: output @at has the input's (at / repeat + first), whose numbers are @stride
 * apart. */
struct layer_rearrange_dim {
	int64_t size, stride, repeat, first;
};
struct layer_rearrange {
	int ndim; /* of the output */
	struct layer_rearrange_dim dim[MODEL_DIMS];
};

struct layer_pad {
	int64_t top, bottom, left, right; /* pixels of zeros */
};

/* ---- RandomFlip, RandomCrop, RandomRotation, Resizing and their like ------------------------- */

/*
 * Each pixel of the output is sampled from a window of the input: @size rows and columns from
 * @first on. Pixels have their centres at the half: the output's pixel o is looked for at u of the
 * window; bilinear, between the pixels floor(u - 0.5) and the next; nearest, in pixel floor(u).
 * What lies outside of the window is found as @fill says.
 */
enum layer_sampling_by {
	LAYER_SAMPLING_WINDOW, /* u = (o + 0.5) size / output: nothing is random */
	LAYER_SAMPLING_CROP,   /* u = o + 0.5 + a place, one for all items of a micro-batch */
	LAYER_SAMPLING_FLIP,   /* u = size - (o + 0.5), of half of the items */
	LAYER_SAMPLING_TURN,   /* by share[LAYER_Y] of a whole turn, around the middle */
	LAYER_SAMPLING_SHIFT,  /* u = o + 0.5 - share x size */
	LAYER_SAMPLING_ZOOM    /* u = (o + 0.5) (1 + share), around the middle */
};

enum layer_fill {
	LAYER_FILL_REFLECT,  /* d c b a | a b c d | d c b a */
	LAYER_FILL_WRAP,     /* a b c d | a b c d | a b c d */
	LAYER_FILL_CONSTANT, /* k k k k | a b c d | k k k k */
	LAYER_FILL_NEAREST   /* a a a a | a b c d | d d d d */
};

struct layer_sampling {
	enum layer_sampling_by by;
	enum layer_fill fill;
	float fill_value;
	bool bilinear;
	int64_t first[LAYER_WAYS], size[LAYER_WAYS];
	bool flips[LAYER_WAYS];
	bool joined;                 /* the height's share is the width's, too */
	double share[LAYER_WAYS][2]; /* drawn from [0] up to [1] */
	uint32_t seed;               /* mixed into the layer's stream; 0: none */
};

/* How the layer samples, in training or elsewhere. False: its output is its input. */
bool layer_sampling_now(const struct model_layer *layer, bool training, struct layer_sampling *out);

/* ---- activations ----------------------------------------------------------------------------- */

/* Keras's ReLU: x up to `most` where x > threshold, slope (x - threshold) elsewhere. */
struct layer_relu {
	float threshold, slope, most; /* most: may be INFINITY */
	float alpha;                  /* ELU */
};
bool layer_relu_is_plain(const struct model_layer *layer); /* neither slope nor threshold */

/* ---- Dropout --------------------------------------------------------------------------------- */

struct layer_dropout {
	struct layer_drop drop;
	uint32_t seed; /* mixed into the layer's stream; 0: none */
	/* Dimensions (the batch's is 0) along which one decision serves all: none where equal. */
	int shared, shared_end;
};

/* The micro-batch as [outer, shared, inner]: decisions are [outer, inner]. */
struct layer_dropout_sizes {
	int64_t outer, shared, inner;
};
struct layer_dropout_sizes layer_dropout_sizes(const struct model_layer *layer, int64_t batch);

/* ---- GaussianNoise, GaussianDropout, AlphaDropout -------------------------------------------- */

/* In training y = factor x + offset, both of the element's own random number. */
struct layer_noise {
	double rate;   /* standard deviation of GaussianNoise; 0: nothing happens */
	float spread;  /* of normal numbers */
	uint32_t seed; /* mixed into the layer's stream; 0: none */
	/* AlphaDropout, elements that are kept and dropped: */
	float keep_factor, keep_offset, drop_offset;
	uint32_t threshold; /* numbers below it drop */
};

/* ---- normalising layers ---------------------------------------------------------------------- */

struct layer_norm {
	double epsilon;
	bool scale, center; /* is there a gamma (parameter 0), a beta (the next)? */
	int64_t groups;     /* of the channels of an item, in GroupNormalization; else 0 */
};

struct layer_batch_norm {
	struct layer_norm norm;
	double momentum;
	bool fused;
};
/* In training it takes the batch's statistics, and the moving ones learn from them. */
bool layer_batch_norm_learns(const struct model_layer *layer);

/* Of Normalization: parameters by number, where mean and variance are not given. */
enum {
	LAYER_NORMALIZATION_MEAN,
	LAYER_NORMALIZATION_VARIANCE
};
struct layer_normalization {
	float *mean, *variance; /* by channel; NULL: there are parameters */
};

struct layer_masking {
	float value; /* a step of nothing else is padding */
	bool alone;  /* the output is the mask, a number a step; else the input, zeros at padding */
};

struct layer_rescaling {
	float *scale, *offset; /* by channel */
};

/* ---- Add and its like ------------------------------------------------------------------------ */

#define LAYER_NO_GATE (-1)

struct layer_merge {
	int gate; /* the input that is broadcast, or LAYER_NO_GATE */
};

#endif /* LAYER_CONFIG_H */
