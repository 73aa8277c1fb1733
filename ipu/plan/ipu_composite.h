/*
 * Layers of neural networks as lists of operations of the planner: what popnn and poplibs run for
 * them, in order. Pure functions: any thread.
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

/* Sizes that a kind may have; those it does not have are not looked at. */
struct ipu_composite {
	enum ipu_composite_kind kind;
	enum ipu_pass pass;
	enum ipu_dtype dtype;
	int64_t batch;
	int64_t steps, features, units;    /* recurrent: sequence, width of inputs and of state */
	bool trained;                      /* its gradients are wanted too */
	bool reset_before;                 /* gru: the state is reset, then multiplied */
	bool fixed_input;                  /* recurrent: the inputs' gradient is not wanted */
	int64_t length, keys, heads, head; /* attention: queries, keys, heads and their width */
	int64_t values;                    /* attention: a head's width of values; 0: as of keys */
	int64_t entries, lookups;          /* embedding: rows of the table; of a batch's item */
	int64_t inputs, outputs;           /* reduce */
	int64_t channels, groups;          /* pool, groupnorm, softmax; groups: of channels */
	int64_t in_channels, out_channels; /* convolutions: of all groups */
	int64_t field[2], out[2];          /* of the input and the output */
	int64_t kernel[2], stride[2], dilation[2];
	bool max; /* pool: the maximum, not the average */
};

#define IPU_COMPOSITE_OPS 16

/* Writes the pass as operations, in order; returns how many: 0 where the kind has no such pass. An
 * op's repeats are the times that it runs, step after step. */
int ipu_composite_ops(const struct ipu_composite *composite, struct ipu_op out[IPU_COMPOSITE_OPS]);

/* Elements of what is read and of what is made: parameters are of the operands. */
void ipu_composite_elements(const struct ipu_composite *composite, double *operands,
			    double *result);

#endif /* IPU_COMPOSITE_H */
