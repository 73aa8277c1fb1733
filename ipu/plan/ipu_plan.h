/*
 * The planner: the cost of an operation on a target.
 *
 * A plan is a list of phases, each an exchange or a compute set: every tile does its part, and all
 * tiles synchronize at its end. A phase lasts as long as its busiest tile, plus the target's
 * phase_cycles for sync, entry and launch. Formulas, constants and their sources:
 * docs/cost-model.md.
 *
 * Plans are pure functions of target, operation and options, which are the key of the cache. More
 * tiles never make a plan slower that fits in its memory. If none fits, the planner returns the
 * plan of least memory, whose cycles are meaningless.
 */
#ifndef IPU_PLAN_H
#define IPU_PLAN_H

#include <stdbool.h>

#include "common/err.h"
#include "ipu/ipu_target.h"
#include "ipu/plan/ipu_op.h"

#define IPU_COST_MODEL "planner"

struct ipu_plan_options {
	double available_memory_proportion; /* of a tile's memory, usable by a plan */
	enum ipu_dtype partials;            /* float32 (default) or float16 */
};

/* Set 0.6, float32. */
void ipu_plan_options_defaults(struct ipu_plan_options *options);

enum ipu_method {
	IPU_METHOD_NONE, /* no choice: elementwise and the like */
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
	int64_t bytes;      /* exchanged: the total that all tiles receive */
	int64_t repeats;    /* serial splits: number of consecutive executions */
	int64_t sources;    /* of an exchange: tiles that a tile listens to; 0: not known */
	int64_t sent;       /* of an exchange: the total that all tiles send, to one or more */
};

#define IPU_PHASES 48

struct ipu_plan {
	enum ipu_method method;
	/* Number of parts of each dimension; serial splits run one after the other. */
	int64_t split_batch, split_field, split_in, split_out, split_kernel, serial_splits;
	bool joint;              /* of a layer's product: planned with its other passes */
	int64_t temporary_bytes; /* on the fullest tile while it runs: copies of operands, partials
				  */
	int64_t list_bytes;      /* constants on a tile: lists of work of a product's vertex */
	int64_t pointer_bytes;   /* on a tile: that vertex's pointers to lists and operands */
	int64_t code_bytes;      /* estimated code of its vertices and exchanges on a tile */
	struct ipu_phase phases[IPU_PHASES];
	int phase_count;
	/* Sums over the phases. */
	int64_t flops;
	int64_t cycles; /* the sum of the next three */
	int64_t compute_cycles, exchange_cycles, sync_cycles;
	int64_t bytes_exchanged;
	int64_t tiles_used;  /* most of any phase */
	double tile_balance; /* compute: mean over all tiles of the target / the busiest tile */
};

/* Code of @phase of @plan on a tile, in bytes: of its exchange, or of its vertex, which a tile has
 * once however many phases run it. An estimate. */
int64_t ipu_phase_code_bytes(const struct ipu_plan *plan, const struct ipu_phase *phase);
/* State of the phase's vertices on a tile, in bytes, with what a product's vertex points to. */
int64_t ipu_phase_state_bytes(const struct ipu_plan *plan, const struct ipu_phase *phase);

struct ipu_planner; /* opaque: a target and its cached plans; not thread safe */

enum status ipu_planner_new(struct ipu_planner **out, const struct ipu_target *target,
			    struct err *err);
/* Return whether plans for @target would be the same. Clocks and hosts do not affect cycles. */
bool ipu_planner_suits(const struct ipu_planner *planner, const struct ipu_target *target);
void ipu_planner_free(struct ipu_planner *planner); /* accepts NULL */

/*
 * Plan @op, or find its plan. The planner owns the plan. @options NULL: defaults. Fails if out of
 * memory, and on an invalid operation (a dimension below 1). A plan may have no phases.
 */
enum status ipu_planner_plan(struct ipu_planner *planner, const struct ipu_op *op,
			     const struct ipu_plan_options *options, const struct ipu_plan **out,
			     struct err *err);

#endif /* IPU_PLAN_H */
