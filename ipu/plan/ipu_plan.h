/*
 * What an operation costs on a target: the planner.
 *
 * A plan is a list of phases, each an exchange or a compute set: every tile does its part, and all
 * meet at its end. A phase lasts as long as its busiest tile, and the sync, entry and launch before
 * it take the target's phase_cycles. Formulas, constants and their sources: docs/cost-model.md.
 *
 * Plans are pure functions of target, operation and options, and cached by these. More tiles never
 * make a plan slower that fits in its memory; where none fits, the plan of least memory is taken,
 * and how fast that would be says nothing.
 */
#ifndef IPU_PLAN_H
#define IPU_PLAN_H

#include <stdbool.h>

#include "common/err.h"
#include "ipu/ipu_target.h"
#include "ipu/plan/ipu_op.h"

#define IPU_COST_MODEL "planner"

struct ipu_plan_options {
	double available_memory_proportion; /* of a tile's memory, for a plan's own use */
	enum ipu_dtype partials;            /* float32 (default) or float16 */
};

/* 0.6, float32. */
void ipu_plan_options_defaults(struct ipu_plan_options *options);

enum ipu_method {
	IPU_METHOD_NONE, /* nothing to choose: elementwise and the like */
	IPU_METHOD_AMP_1X1,
	IPU_METHOD_AMP_NX1,
	IPU_METHOD_HORIZONTAL_MAC,
	IPU_METHOD_VERTICAL_MAC,
	IPU_METHOD_OUTER_PRODUCT,
	IPU_METHOD_SLIC,
	IPU_METHODS
};

const char *ipu_method_name(enum ipu_method method); /* "AMP", as poplibs calls it */

enum ipu_phase_kind {
	IPU_EXCHANGE,
	IPU_COMPUTE
};

struct ipu_phase {
	enum ipu_phase_kind kind;
	const char *part;   /* static: "Convolve/ExchangePre", "Reduce0", "OnTileCopy-0" */
	const char *vertex; /* static: the vertex type of a compute set; NULL: an exchange */
	int64_t cycles;     /* of the busiest tile, without the sync */
	double mean_cycles; /* over the tiles with work */
	int64_t tiles;      /* with work */
	int64_t vertices;   /* of a compute set */
	int64_t bytes;      /* exchanged: what all tiles receive, which is what they are sent */
	int64_t repeats;    /* serial splits: it runs so many times, one after the other */
};

#define IPU_PHASES 48

struct ipu_plan {
	enum ipu_method method;
	/* Parts that each dimension is cut into; serial splits run one after the other. */
	int64_t split_batch, split_field, split_in, split_out, split_kernel, serial_splits;
	int64_t temporary_bytes; /* on the fullest tile while it runs: copies of operands, partials
				  */
	int64_t code_bytes;      /* of its vertices and exchanges on a tile, estimated */
	struct ipu_phase phases[IPU_PHASES];
	int phase_count;
	/* Sums over the phases. */
	int64_t flops;
	int64_t cycles; /* all in all: the next three */
	int64_t compute_cycles, exchange_cycles, sync_cycles;
	int64_t bytes_exchanged;
	int64_t tiles_used;  /* of the phase with most */
	double tile_balance; /* mean over all tiles of the target by the busiest, of compute */
};

struct ipu_planner; /* opaque: a target and the plans that were asked for; not for two threads */

enum status ipu_planner_new(struct ipu_planner **out, const struct ipu_target *target,
			    struct err *err);
/* Would plans for @target be the same? Clocks and hosts make no difference to cycles. */
bool ipu_planner_suits(const struct ipu_planner *planner, const struct ipu_target *target);
void ipu_planner_free(struct ipu_planner *planner); /* accepts NULL */

/*
 * Lends a plan that lives as long as the planner. @options NULL: defaults. Fails on lack of memory
 * and on an operation that cannot be (a dimension below 1). An operation on nothing has no phases.
 */
enum status ipu_planner_plan(struct ipu_planner *planner, const struct ipu_op *op,
			     const struct ipu_plan_options *options, const struct ipu_plan **out,
			     struct err *err);
/* How many were planned, and how many answered from the cache. */
void ipu_planner_counts(const struct ipu_planner *planner, int64_t *planned, int64_t *cached);

#endif /* IPU_PLAN_H */
