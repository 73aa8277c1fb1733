/*
 * The options that the kinds of layers have read, for the code that describes and the code that
 * computes them: the type of layer->config of each kind (in the model's arena), and derived sizes.
 *
 * Plain data, constant after the model is read; usable from any thread.
 */
#ifndef LAYER_CONFIG_H
#define LAYER_CONFIG_H

#include "model/layers/layer.h"

int64_t layer_last_dim(const struct model_shape *shape); /* 1 for a scalar */
/* Number of rows along the last axis in a batch of the layer's input. */
int64_t layer_rows(const struct model_layer *layer, int64_t batch);

/* Whether the gradient of an activation reads the activation's input; its output. */
bool layer_activation_needs_input(enum model_activation activation);
bool layer_activation_needs_output(enum model_activation activation);

/*
 * Windows that slide over an image, in convolutions and pools. Sizes are TensorFlow's
 * (tf.nn.convolution, tf.nn.pool). A window with a reach of r pixels has (size - r) / stride + 1
 * positions with "valid". With "same" it has ceil(size / stride) positions and
 * max((positions - 1) stride + r - size, 0) pixels of padding, the smaller half of them before.
 */
enum {
	LAYER_Y,
	LAYER_X,
	LAYER_WAYS
};
/* The size of an image; a sequence counts as an image one pixel high. */
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
	int64_t multiplier; /* outputs per channel of a depthwise convolution */
	bool transposed;    /* the convolution runs from the output to the input */
};
int64_t layer_conv_pixels(const struct model_layer *layer, int64_t batch); /* of the output */

/* Parameter numbers of SeparableConv2D, and the channels between its two convolutions. */
enum {
	LAYER_SEPARABLE_DEPTHWISE,
	LAYER_SEPARABLE_POINTWISE,
	LAYER_SEPARABLE_BIAS
};
int64_t layer_separable_between(const struct model_layer *layer);

/* ---- dropout --------------------------------------------------------------------------------- */

struct layer_drop {
	uint32_t threshold; /* a random number below it drops; 0: no dropout */
	float scale;        /* of retained values: 1 / (1 - rate) */
};

/* ---- SimpleRNN, LSTM, GRU -------------------------------------------------------------------- */

struct layer_recurrent {
	int64_t gates;      /* 1, 4, 3 */
	bool sequences;     /* the output contains all steps */
	bool backwards;     /* the first step processed is the input's last */
	bool reversed;      /* output sequences are in input order, not in processing order */
	bool reset_before;  /* GRU with reset_after false */
	int initial_states; /* inputs that are initial states: h, c; 0: none */
	bool returns_state; /* the output row ends with the final state */
	bool stateful;      /* a batch begins with the final state of the batch before */
	bool zeros;         /* masked steps output zeros, not the previous output */
	enum model_activation activation, recurrent_activation;
	/* Drop an item's features; its state before each step's product. The same at all steps. */
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
	int64_t heads, key_dim, value_dim; /* the widths are per head */
	int input[LAYER_ATTENTION_PARTS];  /* the input that each is computed from */
	bool projects;                     /* MultiHeadAttention: it has projection kernels */
	bool causal;
	float scale;            /* of projected queries */
	struct layer_drop drop; /* scores */
	uint32_t seed;          /* mixed into the layer's stream; 0: none */
};

/* ---- pools and padding ----------------------------------------------------------------------- */

struct layer_pool {
	int64_t height, width, channels;
	int64_t out_height, out_width;
	int64_t pool_height, pool_width;
	int64_t stride_height, stride_width;
	int64_t top, left; /* padding before the first window, in pixels */
};

/* Along a dimension: output @at is the input's element (at / repeat + first); neighbours in the
 * input are @stride values apart. */
struct layer_rearrange_dim {
	int64_t size, stride, repeat, first;
};
struct layer_rearrange {
	int ndim; /* of the output */
	struct layer_rearrange_dim dim[MODEL_DIMS];
};

struct layer_pad {
	int64_t top, bottom, left, right; /* zeros to add, in pixels */
};

/* ---- RandomFlip, RandomCrop, RandomRotation, Resizing and their like ------------------------- */

/*
 * Each pixel of the output is sampled from a window of the input: @size rows and columns from
 * @first on. Pixel centres are at half-integer coordinates. The output's pixel o samples the window
 * at u: bilinear, between the pixels floor(u - 0.5) and the next; nearest, from pixel floor(u).
 * @fill defines the values outside of the window.
 */
enum layer_sampling_by {
	LAYER_SAMPLING_WINDOW, /* u = (o + 0.5) size / output: not random */
	LAYER_SAMPLING_CROP,   /* u = o + 0.5 + an offset, one for all items of a micro-batch */
	LAYER_SAMPLING_FLIP,   /* u = size - (o + 0.5), for half of the items */
	LAYER_SAMPLING_TURN,   /* by share[LAYER_Y] of a full turn, around the centre */
	LAYER_SAMPLING_SHIFT,  /* u = o + 0.5 - share x size */
	LAYER_SAMPLING_ZOOM    /* u = (o + 0.5) (1 + share), around the centre */
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
	bool joined;                 /* the height's share is used for the width, too */
	double share[LAYER_WAYS][2]; /* drawn uniformly from [0] to [1] */
	uint32_t seed;               /* mixed into the layer's stream; 0: none */
};

/* How the layer samples, in training or elsewhere. False: the output is the input. */
bool layer_sampling_now(const struct model_layer *layer, bool training, struct layer_sampling *out);

/* ---- activations ----------------------------------------------------------------------------- */

/* Keras's ReLU: min(x, most) if x > threshold, otherwise slope (x - threshold). */
struct layer_relu {
	float threshold, slope, most; /* most: may be INFINITY */
	float alpha;                  /* ELU */
};
bool layer_relu_is_plain(const struct model_layer *layer); /* neither slope nor threshold */

/* ---- Dropout --------------------------------------------------------------------------------- */

struct layer_dropout {
	struct layer_drop drop;
	uint32_t seed; /* mixed into the layer's stream; 0: none */
	/* The range of dimensions (the batch is 0) that share one decision; equal: none. */
	int shared, shared_end;
};

/* The micro-batch as [outer, shared, inner]: decisions are [outer, inner]. */
struct layer_dropout_sizes {
	int64_t outer, shared, inner;
};
struct layer_dropout_sizes layer_dropout_sizes(const struct model_layer *layer, int64_t batch);

/* ---- GaussianNoise, GaussianDropout, AlphaDropout -------------------------------------------- */

/* In training y = factor x + offset, both from the element's random number. */
struct layer_noise {
	double rate;   /* standard deviation of GaussianNoise; 0: the layer does nothing */
	float spread;  /* standard deviation of the normal numbers */
	uint32_t seed; /* mixed into the layer's stream; 0: none */
	/* AlphaDropout: retained and dropped elements. */
	float keep_factor, keep_offset, drop_offset;
	uint32_t threshold; /* a random number below it drops */
};

/* ---- normalising layers ---------------------------------------------------------------------- */

struct layer_norm {
	double epsilon;
	bool scale, center; /* has a gamma (parameter 0), a beta (the next parameter) */
	int64_t groups;     /* GroupNormalization: groups of channels per item; otherwise 0 */
};

struct layer_batch_norm {
	struct layer_norm norm;
	double momentum;
	bool fused;
};
/* Whether training uses the batch's statistics and updates the moving ones. */
bool layer_batch_norm_learns(const struct model_layer *layer);
/* Number of the parameter that is a bias once factors are folded: beta, else the moving mean. */
int layer_batch_norm_bias(const struct model_layer *layer);

/* Parameter numbers of Normalization, if the config states no mean and variance. */
enum {
	LAYER_NORMALIZATION_MEAN,
	LAYER_NORMALIZATION_VARIANCE
};
struct layer_normalization {
	float *mean, *variance; /* by channel; NULL: they are parameters */
};

struct layer_masking {
	float value; /* a step whose features all equal it is padding */
	bool alone; /* the output is the mask, one value per step; else the input, padding zeroed */
};

struct layer_rescaling {
	float *scale, *offset; /* by channel */
};

/* ---- Add and its like ------------------------------------------------------------------------ */

#define LAYER_NO_GATE (-1)

struct layer_merge {
	int gate; /* index of the input that is broadcast, or LAYER_NO_GATE */
};

#endif /* LAYER_CONFIG_H */
