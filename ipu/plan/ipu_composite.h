/*
 * Neural network layers as lists of planner operations, as popnn and poplibs run them, in order.
 * Pure functions: any thread.
 */
#ifndef IPU_COMPOSITE_H
#define IPU_COMPOSITE_H

#include "ipu/plan/ipu_op.h"

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

#endif /* IPU_COMPOSITE_H */
