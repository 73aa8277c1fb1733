/*
 * A Keras model: its layers, their shapes and their parameters. Knows no data set, schedule or
 * file.
 *
 * The parameters of all layers share one block of floats: parameter p of the model is at
 * weights + p.offset. Gradients, accumulators and optimizer slots have the same layout.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json.h"

/*
 * Initial values and regularisers of parameters, by Keras's names.
 */

enum model_init_kind {
	MODEL_INIT_CONSTANT,
	MODEL_INIT_UNIFORM,
	MODEL_INIT_NORMAL,
	MODEL_INIT_TRUNCATED,
	MODEL_INIT_ORTHOGONAL,
	MODEL_INIT_ONES_AT /* an LSTM's bias: zeros, except ones in one range of units */
};

/* The distribution to draw from; Keras's variance scaling is already applied. */
struct model_init {
	enum model_init_kind kind;
	/* Constant: low is the value. Uniform: [low, high). Normal: low is the mean, high the
	 * standard deviation. Orthogonal: low is the gain. Ones: units [low, 2 low) are `high`. */
	double low, high;
	int64_t columns; /* orthogonal: the parameter's last dimension */
};

/* Read @at (a name or {class_name, config}); @fan_in and @fan_out scale the variance. */
enum status model_init_read(struct model_init *out, const struct json_at *at, int64_t fan_in,
			    int64_t fan_out, struct err *err);
/* The initializer @name, which must be supported (asserted). */
struct model_init model_init_named(const char *name, int64_t fan_in, int64_t fan_out);

/* Read a regulariser, which adds l1 sum |w| + l2 sum w^2 to the loss: "l2", "L1L2" (factors
 * 0.01), or {"class_name": "L2", "config": {"l2": 0.0001}}; null: none. */
enum status model_regularizer_read(float *l1, float *l2, const struct json_at *at, struct err *err);

#define MODEL_DIMS 8

struct layer_ops; /* layer.h */

struct model_shape {
	int ndim; /* without the batch */
	int64_t dim[MODEL_DIMS];
};

struct model_param {
	const char *name;       /* "Dense_128/kernel:0" */
	const char *short_name; /* "kernel" */
	int layer;
	struct model_shape shape;
	size_t offset, count; /* floats; offsets are multiples of 16 */
	struct model_init init;
	bool trainable; /* false: moving statistics, or a layer with trainable: false */
	/* Keras's autocast: a layer that computes in half precision reads the parameter rounded.
	 * False for statistics, and for the scale and shift (gamma, beta) of normalisations. */
	bool autocast;
	bool half;     /* autocast, and the layer computes in float16 */
	bool bfloat16; /* autocast, and the layer is mixed_bfloat16 */
	float l1, l2;  /* the regulariser: l1 sum |w| + l2 sum w^2; 0: none */
};

enum model_activation {
	MODEL_LINEAR,
	MODEL_RELU,
	MODEL_SOFTMAX,
	MODEL_ELU,
	MODEL_EXPONENTIAL,
	MODEL_GELU,
	MODEL_HARD_SIGMOID,
	MODEL_LEAKY_RELU,
	MODEL_LOG_SOFTMAX,
	MODEL_MISH,
	MODEL_RELU6,
	MODEL_SELU,
	MODEL_SIGMOID,
	MODEL_SOFTPLUS,
	MODEL_SOFTSIGN,
	MODEL_SWISH,
	MODEL_TANH,
	MODEL_ACTIVATIONS
};

/* The value of a layer's "dtype". */
enum model_policy {
	MODEL_POLICY_OPEN,    /* absent */
	MODEL_POLICY_TEXT,    /* "float32" */
	MODEL_POLICY_FLOAT32, /* a policy object of float32 */
	MODEL_POLICY_MIXED,   /* mixed_float16, as a text or an object */
	MODEL_POLICY_MIXED_BFLOAT16,
	MODEL_POLICIES
};

#define MODEL_INPUT (-1) /* stands for the model's input among a layer's inputs */

struct model_layer {
	const char *name;
	const struct layer_ops *ops;
	int position;
	const int *inputs; /* positions of the layers that produce them, or MODEL_INPUT */
	int input_count;
	/* Indices of mask inputs, 0: none. Mask inputs follow the inputs that Keras has: `mask`
	 * marks the valid steps of the first input, `key_mask` (attention) the valid keys. Both
	 * may be the same input. */
	int mask, key_mask;
	struct model_shape input; /* of the first input */
	struct model_shape output;
	int first_param,
		param_count; /* a repeated call has those of the first: see model_layer_again() */
	bool trainable;
	bool reads_inputs,
		reads_output; /* in the backward pass: the kind's default, unless read() sets it */
	int row;              /* index of its row in the model's `rows` */
	const char *home; /* its path in Keras 3 weight files: "layers/functional/layers/dense_1" */
	enum model_policy policy;
	bool half;     /* computes in float16 (mixed_float16): see model_set_policy() */
	bool bfloat16; /* reads its variables rounded to bfloat16 (mixed_bfloat16) */
	enum model_activation activation;
	int64_t units; /* Dense */
	bool use_bias;
	bool causal_mask;          /* the call's use_causal_mask */
	bool returns_state;        /* another layer reads this call's states: see layer_states() */
	bool makes_mask;           /* Masking, and an Embedding with mask_zero */
	int64_t state;             /* values per item that persist from batch to batch */
	bool inference;            /* the call has training: false, which fit() does not override */
	bool final_outfeed;        /* MaybeOutfeed */
	const char *outfeed_queue; /* Outfeed, MaybeOutfeed: the queue's name; NULL: not given */
	void *config;              /* owned by the layer kind, in the model's arena; may be NULL */
};

/* A line of Keras's summary: a layer, an input, or a whole nested model. A nested model's row shows
 * the shapes of its own input layer, not those of its call: any batch, and open height and width if
 * that input leaves them open. */
struct model_row {
	const char *name, *class_name;
	struct model_shape output; /* dimension 0: open */
	bool any_batch;
	int *inputs; /* rows that are connected to its inputs */
	int *calls;  /* by input: the call number of that row, from 0 */
	int input_count;
};

/* An input of a model that has several. The model's input is then one row of numbers that
 * concatenates all inputs, and each InputLayer is a layer that slices its part out of the row. */
struct model_part {
	const char *name;
	struct model_shape shape;
	int64_t first; /* its offset in the row */
};

#define MODEL_OUTPUTS 16 /* limit on a model's outputs */

/* An output of the model. If there are several, the last layer concatenates them into one row per
 * item; so all of them reach the last stage of a pipeline. */
struct model_output {
	const char *name; /* the layer's name, which losses and metrics use */
	struct model_shape shape;
	int64_t first; /* its offset in the row */
	int mask;      /* the layer that marks the valid steps; 0: all steps are valid */
};

/* Layers are in execution order: each follows all of its inputs. The last layer's output is the
 * model's output. Nested models are flattened into their layers. */
struct model {
	const char *name; /* Keras's: "sequential" */
	bool functional;
	struct model_layer *layers;
	int layer_count;
	struct model_row *rows;
	int row_count;
	struct model_param *params;
	int param_count;
	size_t weights; /* total floats, including alignment gaps */
	struct model_shape input;
	const struct model_part *parts; /* in the order of "input_layers" */
	int part_count;                 /* 0: the model has a single input */
	struct model_output *outputs;   /* in the order of "output_layers" */
	int output_count;               /* at least 1 */
	int64_t batch; /* the micro-batch size that the input layer fixes; 0: any */
	void *memory;  /* the arena that owns all of this */
};

/* Create a model from the object that Keras's model.to_json() writes, from its config alone, or
 * from {"application": NAME, "config": {...}}. @input: the data's shape; used if the model
 * states none, otherwise compared with the model's. The InputLayer of a single-input model does
 * not become a layer. A layer of a nested model whose name is already used is called
 * "NESTED/NAME". Errors name their position in the JSON. */
enum status model_new(struct model **out, const struct json_at *at, const struct model_shape *input,
		      struct err *err);
/* Create only the names of the model's outputs, without needing the data's shape. An application
 * gets no names (output_count 0): it always has one output. */
enum status model_new_outputs(struct model **out, const struct json_at *at, struct err *err);
void model_free(struct model *model); /* accepts NULL */

/* Sort layers and parameters by stage (@stage, indexed by current position), so that each
 * stage's layers are contiguous; the order within a stage is stable. Rows do not change. Fails,
 * changing nothing, if a layer needs the output of a later stage. Initial weights do not depend
 * on the order: they are keyed by name. */
enum status model_order(struct model *model, const int *stage, struct err *err);

/*
 * Keras's mixed_precision.set_global_policy(): decide which layers are half or bfloat16. @global
 * is Keras's global policy; MODEL_POLICY_TEXT means float32, which model_new() sets. Layers with
 * a mixed policy keep it. Layers with a float32 policy object keep it if any other layer has
 * another value, and layers with the text "float32" keep it if any layer is mixed. All other
 * layers get @global; so do all layers of a model in which every layer has a float32 object,
 * because Keras 3 writes that by default. Outfeed layers are ignored in these comparisons.
 */
void model_set_policy(struct model *model, enum model_policy global);
/* The first mixed policy among the layers, or MODEL_POLICY_TEXT if no layer is mixed. */
enum model_policy model_policy(const struct model *model);
const char *model_policy_name(enum model_policy policy); /* "mixed_float16" */

/* The shape of input @index of @layer. */
const struct model_shape *model_input_shape(const struct model *model,
					    const struct model_layer *layer, int index);

/* Whether a layer (an Embedding) uses the model's inputs as row numbers. Such inputs
 * are integers and must not be rounded. */
bool model_input_is_rows(const struct model *model);
/* Whether @layer is such a layer. *@part receives the input that it reads, or NULL if the model has
 * only one. */
bool model_layer_looks_up(const struct model *model, int layer, const struct model_part **part);

/* A layer that is called several times, or listed in several models, becomes several layers NAME,
 * NAME_1 and so on, in one stage and with shared parameters, which belong to the first. Whether
 * @layer is one of the later calls. */
bool model_layer_again(const struct model *model, const struct model_layer *layer);
/* Whether an earlier layer of the same row has the parameters of @layer. Keras counts and saves the
 * weights of a layer that is listed in two models with both, but once in each. */
bool model_layer_again_in_row(const struct model *model, const struct model_layer *layer);

/* The layer named @name, or -1. */
int model_find_layer(const struct model *model, const char *name);
/* Report, at @at, that there is no layer @name, with the nearest name. */
enum status model_unknown_layer(const struct model *model, const struct json_at *at,
				const char *name, struct err *err);

int64_t model_layer_params(const struct model *model, int layer); /* 0 for a repeated call */
int64_t model_layer_flops(const struct model *model, int layer, int64_t batch); /* forward */
const char *model_layer_class(const struct model_layer *layer);

/* The layer whose softmax or sigmoid produces the model's output (ignoring outfeeds after it), or
 * -1. A loss may read the input of that activation instead. */
int model_final_activation(const struct model *model);

/* Round up to whole 64-byte lines, the alignment of each block. In floats. */
static inline size_t model_align(size_t floats)
{
	return (floats + 15) / 16 * 16;
}

/* "(None, 128)", or with @batch > 0 "(32, 128)". */
void model_shape_text(const struct model_shape *shape, int64_t batch, char *out, size_t size);
int64_t model_shape_count(const struct model_shape *shape);

/* Kinds of outfeed layers: the trainer sends their input to a queue. */
enum model_outfeed {
	MODEL_NO_OUTFEED,
	MODEL_OUTFEED,
	MODEL_MAYBE_OUTFEED
};
enum model_outfeed model_layer_outfeed(const struct model_layer *layer);

#endif /* MODEL_H */
