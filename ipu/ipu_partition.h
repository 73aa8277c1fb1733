/*
 * Partitioning of a model's layers into the stages of a pipeline with the fastest slowest stage.
 *
 * A unit is a layer, in the order of execution. A stage is a range of units, so the inputs of a
 * unit are in its own stage or an earlier one. (Other valid orders of a model with branches are
 * not tried.) Dynamic programming finds the exact optimum in O(stages x units^2) time. Pure
 * functions; threads: none.
 */
#ifndef IPU_PARTITION_H
#define IPU_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_schedule.h"

struct ipu_unit {
	int64_t forward, backward; /* cycles per micro-batch */
	int64_t update;            /* cycles per weight update */
	int64_t host;              /* cycles of the stream copies of each forward */
	int64_t variable_bytes;    /* weights, optimizer state, accumulators */
	bool computes; /* each stage needs such a unit; others only pass their input on */
	bool joined;   /* must be in the stage of the previous unit */
};

/* A tensor of a micro-batch. It is passed from stage to stage up to its last reader; a stage whose
 * backward pass reads it keeps it until then. */
struct ipu_flow {
	int64_t bytes;
	int made;        /* the unit that makes it; -1: streamed from the host to the first */
	int last;        /* the last unit that reads it, in any pass */
	const int *kept; /* the units whose backward pass reads it, ascending; borrowed */
	int kept_count;
	int64_t fifo; /* cycles to push it to a FIFO, and also to pop it */
};

/*
 * Cost of a stage. F and B are its passes (in training including pushes to and pops from the
 * stage's FIFO, if it has one), H its stream copies, and i and o the data over the cuts before and
 * after it, as cycles of the links between two IPUs (gradients count as much as the activations, in
 * the other direction). Between pairs the links of a ladder have half the rate of those within one.
 * The input is streamed to each stage that reads it and crosses no cut.
 *
 *                 work            transfer, training   else
 *   Grouped       H + F + B       o + sync, i + sync   o + sync
 *   Interleaved   max(H + F, B)   o + sync             o + sync
 *   Sequential    H + F + B + the two syncs and what it sends, i + o; else o
 *   others        H + F + B + two syncs and 2 (i + o): it sends and receives; else half of them
 *
 * Recomputation adds F to B of all stages but the last, whose backward pass follows immediately;
 * FIFOs then hold little and are free here. With Grouped and Interleaved all IPUs synchronize, then
 * the copies of the stages run one after the other, and all continue together: a time step takes
 * the greatest work plus the sum of the transfers (at least a sync); a stage's time is its own work
 * plus this sum. A stage that sends nothing needs no sync.
 *
 * The memory of a stage is
 *
 *   variables + live x (what it keeps of a micro-batch) + what only passes through,
 *
 * with live = ipu_schedule_live(): the earlier a stage, the more it keeps. With recomputation only
 * its inputs are kept that often, the rest once; with offloaded activations FIFOs are in remote
 * memory. Code and temporary data are ignored.
 */
struct ipu_partition_params {
	const struct ipu_unit *units;
	int unit_count;
	const struct ipu_flow *flows;
	int flow_count;
	int stages;
	enum ipu_schedule_kind schedule;
	int microbatches; /* per weight update; 0: many. Some schedules keep all of them */
	bool training, recompute, offload_activations;
	double link_bytes_cycle; /* between the IPUs of a pair; 0: transfers are free */
	int64_t sync_cycles;     /* at the end of a time step */
	int64_t memory_bytes;    /* per IPU, divided equally among its stages; 0: no limit */
	const int *device;       /* the IPU of each stage; NULL: one IPU per stage */
};

struct ipu_partition_stage {
	int first, count;          /* units */
	int64_t forward, backward; /* cycles: H + F; B including recomputation */
	int64_t update;
	int64_t work, transfer; /* as above */
	int64_t one_way;        /* the forward part of the transfer */
	int64_t cycles;         /* its time, as above */
	int64_t sent_bytes;     /* over the cut after it, per micro-batch, without the input */
	int64_t memory_bytes;   /* by the formula above */
	int64_t overflow_bytes; /* beyond the available memory */
};

struct ipu_partition {
	struct ipu_partition_stage *stage;
	int stages;
	int slowest;           /* stage */
	int fullest;           /* stage with the greatest overflow; -1: all fit */
	int64_t cycles;        /* the slowest stage's time: that of a time step */
	int64_t sent_bytes;    /* over all cuts */
	int64_t most_overflow; /* of the fullest */
};

/*
 * Find the best split into exactly params->stages stages, each with a unit that computes: among
 * those that fit memory (if none does, those with the least greatest overflow) the one with the
 * fastest slowest stage; then the least greatest work; then the fewest bytes over all cuts; then
 * the earliest ends of stages. ST_INVALID if there are too few units. More stages are never slower
 * if transfers and FIFOs are free, memory is unlimited, and nothing is recomputed; otherwise they
 * may be.
 */
enum status ipu_partition_new(struct ipu_partition **out, const struct ipu_partition_params *params,
			      struct err *err);
/* Evaluate a given split: @first is the first unit of each stage, ascending from 0. */
enum status ipu_partition_given(struct ipu_partition **out,
				const struct ipu_partition_params *params, const int *first,
				struct err *err);
void ipu_partition_free(struct ipu_partition *partition); /* accepts NULL */

/* The most stages into which the units can be split; 0: no unit computes. */
int ipu_partition_most_stages(const struct ipu_partition_params *params);

/*
 * Cycles of a pipeline run of G = @microbatches and (in training) a weight update, from the maxima
 * over the N stages. Grouped training: G - 1 time steps, N with only forwards and N with only
 * backwards; Interleaved training: 2 (G + N - 1) time steps; Sequential: G times the sum of the
 * stages; otherwise, and without lockstep, G + N - 1 times the slowest.
 */
int64_t ipu_partition_run_cycles(const struct ipu_partition *partition,
				 const struct ipu_partition_params *params, int64_t microbatches);

#endif /* IPU_PARTITION_H */
