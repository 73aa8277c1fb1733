/*
 * Input of the planner: an operation with its sizes and type.
 *
 * An operation does not mention tiles: the planner decides how to distribute it (ipu_plan.h).
 * Shapes are those of one micro-batch on one replica.
 */
#ifndef IPU_OP_H
#define IPU_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Phases of operations and pipeline works, with the letters that pipeline papers use. A field
 * `phase` is a char with one of these values, or '\0' for none.
 */

enum ipu_work_phase {
	IPU_PHASE_F = 'F', /* forward */
	IPU_PHASE_B = 'B', /* backward; if split, the gradients of the inputs */
	IPU_PHASE_W = 'W', /* and the gradients of the weights */
	IPU_PHASE_R = 'R', /* recomputation: forward operations repeated for B */
	IPU_PHASE_U = 'U', /* weight update */
};

enum ipu_dtype {
	IPU_FLOAT32,
	IPU_FLOAT16,
	IPU_INT32,
	IPU_UINT8, /* of fed data: it is cast before any computation */
	IPU_DTYPES
};

int64_t ipu_dtype_bytes(enum ipu_dtype dtype);
const char *ipu_dtype_name(enum ipu_dtype dtype); /* "float32", as in Keras */

enum ipu_op_kind {
	IPU_OP_CONV,
	IPU_OP_MATMUL,
	IPU_OP_ELEMENTWISE,
	IPU_OP_REDUCE,
	IPU_OP_POOL,
	IPU_OP_ROWS,
	IPU_OP_COPY,
	IPU_OP_SLICE,
	IPU_OP_KINDS
};

const char *ipu_op_kind_name(enum ipu_op_kind kind); /* "conv", "matmul" ... */

/* The three passes of a convolution; the geometry is always that of the forward pass. */
enum ipu_pass {
	IPU_FORWARD,
	IPU_BACKWARD_DATA,    /* the gradient of the input */
	IPU_BACKWARD_WEIGHTS, /* the gradient of the kernel */
	IPU_PASSES
};

struct ipu_conv {
	enum ipu_pass pass;
	int64_t batch, groups;
	int64_t in_channels, out_channels; /* of a group */
	int64_t in[2], out[2];             /* field: height, width */
	int64_t kernel[2], stride[2], dilation[2];
};

/* [m, k] x [k, n], as a convolution with the n columns as field and the m rows as output channels,
 * so that operands and result need no new layout. The planner also tries the transposed form, in
 * which all of them do. Dense is m = batch, k = inputs, n = units. */
struct ipu_matmul {
	int64_t m, k, n;
};

/* Elementwise functions; docs/cost-model.md lists the cycles of each. */
enum ipu_function {
	IPU_FN_ADD, /* subtract, multiply, maximum and the like: one vector instruction */
	IPU_FN_DIVIDE,
	IPU_FN_DIVIDE_BY, /* one divisor for many elements: the sum of a row */
	IPU_FN_SELECT,    /* compare and choose */
	IPU_FN_EXP,
	IPU_FN_LOG,
	IPU_FN_SQRT,
	IPU_FN_SIGMOID,
	IPU_FN_TANH,
	IPU_FN_RELU,
	IPU_FN_RELU_GRAD,
	IPU_FN_RANDOM,     /* a random number and its comparison: dropout */
	IPU_FN_SCALED_ADD, /* a += s b */
	IPU_FN_FILL,
	IPU_FN_CAST,
	IPU_FUNCTIONS
};

/* One fused map over @count elements, with the number of uses of each function per element. */
struct ipu_elements {
	int64_t count;
	int64_t operands;  /* tensors of that size that it reads */
	int64_t broadcast; /* elements of a small broadcast operand (a bias); 0: none */
	uint8_t times[IPU_FUNCTIONS];
};

/* Reduction of @inputs elements to @outputs sums (or maxima). */
struct ipu_reduce {
	int64_t inputs, outputs;
};

struct ipu_pool {
	bool max, backward;
	int64_t batch, channels;
	int64_t in[2], out[2], kernel[2], stride[2];
};

/* Computation on rows: a softmax over the classes, the loss of an item. */
enum ipu_rows_work {
	IPU_ROWS_SOFTMAX,
	IPU_ROWS_SOFTMAX_GRAD,
	IPU_ROWS_CROSS_ENTROPY, /* loss and gradient fused */
	IPU_ROWS_ERROR,         /* mean squared or absolute error, and its gradient */
	IPU_ROWS_ARGMAX,        /* and the comparison with the label: accuracy */
	IPU_ROWS_WORKS
};

struct ipu_rows {
	enum ipu_rows_work work;
	int64_t rows, columns;
};

/* A change of layout; an atom is a contiguous run of elements that stays contiguous. */
struct ipu_copy {
	int64_t count;
	int64_t atom; /* elements; 1: the smallest */
};

/* An embedding: lookups of rows in a table of @entries rows, or (@update) gradients added to the
 * rows. */
struct ipu_slice {
	bool update;
	int64_t entries, columns, lookups;
	int64_t tables; /* number of such tables, each with its own lookups; 0 means 1 */
};

struct ipu_op {
	enum ipu_op_kind kind;
	const char *name;  /* Poplar-like: "Dense_128/MatMul" */
	const char *layer; /* the Keras layer it comes from, or NULL */
	char phase;        /* enum ipu_work_phase */
	int stage;
	enum ipu_dtype dtype; /* of operands and result */
	/* Number of consecutive executions, such as the steps of a recurrent layer; 0 means 1. */
	int64_t repeats;
	enum ipu_pass pass; /* of a layer's product; forward for a stand-alone one */
	bool trained;       /* a layer's product, planned jointly with its other passes */
	union {
		struct ipu_conv conv;
		struct ipu_matmul matmul;
		struct ipu_elements elements;
		struct ipu_reduce reduce;
		struct ipu_pool pool;
		struct ipu_rows rows;
		struct ipu_copy copy;
		struct ipu_slice slice;
	};
};

/* FLOP count; multiply-adds count twice; saturates at INT64_MAX. */
int64_t ipu_op_flops(const struct ipu_op *op);
/* Return whether it draws random numbers. */
bool ipu_op_draws(const struct ipu_op *op);

/*
 * Neural network layers as lists of planner operations, as popnn and poplibs run them, in order.
 * Pure functions: any thread.
 */

enum ipu_composite_kind {
	IPU_COMPOSITE_ATTENTION,
	IPU_COMPOSITE_CONV1D,
	IPU_COMPOSITE_CONV2DTRANSPOSE,
	IPU_COMPOSITE_EMBEDDING,
	IPU_COMPOSITE_GROUPNORM,
	IPU_COMPOSITE_GRU,
	IPU_COMPOSITE_LSTM,
	IPU_COMPOSITE_POOL,
	IPU_COMPOSITE_REDUCE,
	IPU_COMPOSITE_RNN,
	IPU_COMPOSITE_SOFTMAX,
	IPU_COMPOSITES
};

/* Sizes; a kind ignores those that it does not have. */
struct ipu_composite {
	enum ipu_composite_kind kind;
	enum ipu_pass pass;
	enum ipu_dtype dtype;
	int64_t batch;
	int64_t steps, features, units;    /* recurrent: sequence, width of inputs and of state */
	bool trained;                      /* its gradients are also computed */
	bool reset_before;                 /* gru: the state is reset before its product */
	bool fixed_input;                  /* recurrent: no gradient of the inputs */
	int64_t length, keys, heads, head; /* attention: queries, keys, heads and their width */
	int64_t values;                    /* attention: width of a head's values; 0: as of keys */
	int64_t entries, lookups;          /* embedding: rows of the table; lookups per item */
	int64_t inputs, outputs;           /* reduce */
	int64_t channels, groups;          /* pool, groupnorm, softmax; groups: of channels */
	int64_t in_channels, out_channels; /* convolutions: of all groups */
	int64_t field[2], out[2];          /* of the input and the output */
	int64_t kernel[2], stride[2], dilation[2];
	bool max; /* pool: the maximum, not the average */
};

#define IPU_COMPOSITE_OPS 16

/* Write the pass as operations, in order; return their number: 0 if the kind has no such pass. The
 * `repeats` of an operation is how often it runs, step after step. */
int ipu_composite_ops(const struct ipu_composite *composite, struct ipu_op out[IPU_COMPOSITE_OPS]);

/* Number of elements read (including parameters) and made. */
void ipu_composite_elements(const struct ipu_composite *composite, double *operands,
			    double *result);

#endif /* IPU_OP_H */
