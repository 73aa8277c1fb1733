/*
 * A Keras model: its layers, their shapes and their parameters. Knows no data set, schedule or
 * file.
 *
 * Parameters of all layers lie in one block of floats: parameter p of the model is weights +
 * p.offset. Gradients, accumulators and optimizer slots have the same layout.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json.h"
#include "model/model_init.h"

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
	bool trainable; /* false: moving statistics, or a layer that is not to learn */
	/* Keras's: passes read it rounded where its layer computes in half. Not so are statistics,
	 * and what a normalisation scales and shifts by. */
	bool autocast;
	bool half;     /* it is: autocast, and its layer is half */
	bool bfloat16; /* the same of a layer of mixed_bfloat16 */
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

/* What a layer's "dtype" says. */
enum model_policy {
	MODEL_POLICY_OPEN,    /* nothing */
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
	const int *inputs; /* positions of the layers whose outputs come in, or MODEL_INPUT */
	int input_count;
	/* Of the inputs, 0: none. Masks come last, after those that Keras knows: which steps of the
	 * first input count; of attention, which keys do, too. They may be one. */
	int mask, key_mask;
	struct model_shape input; /* of the first input */
	struct model_shape output;
	int first_param,
		param_count; /* of a further call: the first one's, see model_layer_again() */
	bool trainable;
	bool reads_inputs,
		reads_output; /* in a backward pass: the kind's, unless read() knows better */
	int row;              /* of the model's rows */
	const char *home; /* where Keras 3's files keep it: "layers/functional/layers/dense_1" */
	enum model_policy policy;
	bool half;     /* computes in float16 (mixed_float16): see model_set_policy() */
	bool bfloat16; /* reads its variables rounded to bfloat16 (mixed_bfloat16) */
	enum model_activation activation;
	int64_t units; /* Dense */
	bool use_bias;
	bool causal_mask;          /* the call's use_causal_mask */
	bool hands_state;          /* its call's states are read: see layer_states() */
	bool makes_mask;           /* Masking, and an Embedding with mask_zero */
	int64_t state;             /* numbers of an item that go from batch to batch */
	bool inference;            /* the call's training is false: in fit(), too */
	bool final_outfeed;        /* MaybeOutfeed */
	const char *outfeed_queue; /* Outfeed, MaybeOutfeed: its name; NULL: left open */
	void *config;              /* a layer kind's own, in the model's arena; NULL */
};

/* A line of Keras's summary: a layer, an input, or a nested model as a whole. The latter has the
 * shapes of its own input layer, not those of its call: any batch, and where that input leaves
 * height and width open, so does the line. */
struct model_row {
	const char *name, *class_name;
	struct model_shape output; /* 0: open */
	bool any_batch;
	int *inputs; /* rows that it is connected to */
	int *calls;  /* by input: which call of that one, from 0 */
	int input_count;
};

/* An input of a model that has several. Such a model's input is one row of numbers: those of all
 * inputs, one after the other. Each InputLayer is a layer then, which takes its part of the row. */
struct model_part {
	const char *name;
	struct model_shape shape;
	int64_t first; /* its place in the row */
};

#define MODEL_OUTPUTS 16 /* the most of a model */

/* What the model gives. Where there are several, the last layer joins them to one row of an item,
 * those of all outputs one after the other: so they all come to the last stage of a pipeline. */
struct model_output {
	const char *name; /* the layer's, as losses and metrics call it */
	struct model_shape shape;
	int64_t first; /* its place in the row */
	int mask;      /* the layer that tells which of its steps count; 0: all do */
};

/* Layers stand in the order of execution: after all of their inputs. The last one's output is the
 * model's. Nested models are dissolved into their layers. */
struct model {
	const char *name; /* Keras's: "sequential" */
	bool functional;
	struct model_layer *layers;
	int layer_count;
	struct model_row *rows;
	int row_count;
	struct model_param *params;
	int param_count;
	size_t weights; /* floats in all, alignment gaps included */
	struct model_shape input;
	const struct model_part *parts; /* in the order of "input_layers" */
	int part_count;                 /* 0: there is one input */
	struct model_output *outputs;   /* in the order of "output_layers" */
	int output_count;               /* at least 1 */
	int64_t batch;                  /* the micro-batch that the input layer asks for; 0: any */
	void *memory;                   /* the arena that owns all this */
};

/* From the object that Keras's model.to_json() gives, its config alone, or {"application": NAME,
 * "config": {...}}. @input: the data's shape, used where the model gives none, compared where it
 * does. The InputLayer of a model of one input is not a layer of ours. A layer of a nested model
 * whose name is taken is called "NESTED/NAME". Errors name the place. */
enum status model_new(struct model **out, const struct json_at *at, const struct model_shape *input,
		      struct err *err);
/* The same with nothing known but its outputs' names, for which no data's shape is needed; of an
 * application not even those (output_count 0): it has one. */
enum status model_new_outputs(struct model **out, const struct json_at *at, struct err *err);
void model_free(struct model *model); /* accepts NULL */

/* Bring layers and parameters into the order of their stages (@stage, by present position), so that
 * each stage's lie together; within a stage they keep their order. Rows stay as they are. Fails,
 * with nothing changed, where a layer needs the output of a later stage. Initial weights do not
 * change: they go by name. */
enum status model_order(struct model *model, const int *stage, struct err *err);

/*
 * Keras's mixed_precision.set_global_policy(): decide which layers are half or bfloat16, @global
 * standing for Keras's global policy: MODEL_POLICY_TEXT is float32, which model_new() has set. Kept
 * are the mixed policies, a float32 policy object beside layers that say anything else, and
 * "float32" beside a mixed one; the rest follows: also a model all of whose layers hold a float32
 * object, which is what Keras 3 writes where nobody has chosen anything (outfeed layers do not
 * count).
 */
void model_set_policy(struct model *model, enum model_policy global);
/* What most would call the model's: MODEL_POLICY_TEXT where no layer's is mixed, else the first
 * mixed one. */
enum model_policy model_policy(const struct model *model);
const char *model_policy_name(enum model_policy policy); /* "mixed_float16" */

/* Of input @index of the layer. */
const struct model_shape *model_input_shape(const struct model *model,
					    const struct model_layer *layer, int index);

/* Does a layer look the model's inputs up as numbers of rows (an Embedding)? They stay whole. */
bool model_input_is_rows(const struct model *model);
/* Is @layer such a one? *@part gets the input that it reads; NULL: the model has only one. */
bool model_layer_looks_up(const struct model *model, int layer, const struct model_part **part);

/* A layer that is called several times is as many layers, NAME, NAME_1 and so on, of one stage and
 * of the same parameters: those belong to the first. Is this another one? */
bool model_layer_again(const struct model *model, const struct model_layer *layer);

int64_t model_layer_params(const struct model *model, int layer); /* 0 where they are another's */
int64_t model_layer_flops(const struct model *model, int layer, int64_t batch); /* forward */
const char *model_layer_class(const struct model_layer *layer);

/* The layer whose softmax or sigmoid is the model's output, outfeeds after it left out; -1: none.
 * A loss may take what goes into it. */
int model_final_activation(const struct model *model);

/* Floats of one 64-byte line: where blocks begin. */
static inline size_t model_align(size_t floats)
{
	return (floats + 15) / 16 * 16;
}

/* "(None, 128)", or with @batch > 0 "(32, 128)". */
void model_shape_text(const struct model_shape *shape, int64_t batch, char *out, size_t size);
int64_t model_shape_count(const struct model_shape *shape);

/* What outfeed layers are: the trainer sends their input to a queue. */
enum model_outfeed {
	MODEL_NO_OUTFEED,
	MODEL_OUTFEED,
	MODEL_MAYBE_OUTFEED
};
enum model_outfeed model_layer_outfeed(const struct model_layer *layer);

#endif /* MODEL_H */
