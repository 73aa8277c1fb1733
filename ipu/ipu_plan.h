/*
 * What an operation costs on a target: the interface of the planner.
 *
 * The present estimate is a roofline: an operation takes the longer of its arithmetic at the
 * target's peak (AMP for matmul and convolution, vector lanes for the rest) and the exchange of its
 * operands, plus one sync. It knows nothing of layouts, splits or tile memory: what it cannot know
 * is IPU_UNKNOWN. It is optimistic, and everything shown from it says "simulated (roofline)".
 */
#ifndef IPU_PLAN_H
#define IPU_PLAN_H

#include <stdint.h>

#include "ipu/ipu_target.h"

#define IPU_UNKNOWN    INT64_MIN
#define IPU_COST_MODEL "roofline"

enum ipu_op_kind {
	IPU_OP_MATMUL,      /* [m, k] x [k, n] */
	IPU_OP_ELEMENTWISE, /* n elements, `work` operations each */
	IPU_OP_REDUCE,      /* n elements to m */
	IPU_OP_COPY,        /* a layout change of n elements */
	IPU_OP_KINDS
};

struct ipu_op {
	enum ipu_op_kind kind;
	const char *name;  /* Poplar-like: "Dense_128/MatMul" */
	const char *layer; /* the Keras layer it comes from, or NULL */
	char phase;        /* F, B, W or U */
	int stage;
	int64_t m, n, k;
	int64_t work;      /* operations per element (elementwise) */
	int64_t bytes_in;  /* read from elsewhere */
	int64_t bytes_out; /* written */
};

struct ipu_cost {
	int64_t flops;
	int64_t cycles; /* all in all */
	int64_t compute_cycles, exchange_cycles, sync_cycles;
	int64_t bytes_exchanged, tiles_used, code_bytes;
	double tile_balance; /* NaN: unknown */
};

const char *ipu_op_kind_name(enum ipu_op_kind kind);

void ipu_plan(const struct ipu_target *target, const struct ipu_op *op, struct ipu_cost *out);

#endif /* IPU_PLAN_H */
