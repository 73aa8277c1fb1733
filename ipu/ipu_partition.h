/*
 * Partitioning: a model's layers into the stages of a pipeline, so that the slowest stage is as
 * fast as can be.
 *
 * A unit is a layer, in the order of execution. A stage is a range of units, so that what a unit
 * needs is always in its own stage or in one before. (A model with branches can have other orders
 * that are as legal; they are not looked for.) Found by dynamic programming, exactly, in
 * O(stages x units^2) time. Pure functions; threads: none.
 */
#ifndef IPU_PARTITION_H
#define IPU_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_schedule.h"

struct ipu_unit {
	int64_t forward, backward; /* cycles of a micro-batch */
	int64_t update;            /* cycles of a weight update */
	int64_t host;              /* cycles of the stream copies beside each forward */
	int64_t variable_bytes;    /* weights, optimizer state, accumulators */
	bool computes; /* every stage has one that does; others only pass their input on */
	bool joined;   /* is in the stage of the unit before */
};

/* A tensor of a micro-batch. It goes from stage to stage as far as it is read; what a backward pass
 * reads is kept in the reader's stage until then. */
struct ipu_flow {
	int64_t bytes;
	int made;        /* by this unit; -1: streamed from the host to the first */
	int last;        /* the last unit that reads it, in any pass */
	const int *kept; /* the units whose backward pass reads it, ascending; the caller's */
	int kept_count;
	int64_t fifo; /* cycles to put it into a FIFO, as many to take it out */
};

/*
 * What a stage takes, with F and B its passes (in training with what goes into the stage's FIFO, if
 * it has one, and comes out), H its stream copies, and i and o what goes over the cuts before and
 * after it, as cycles of the links between two IPUs (gradients count as the activations, the other
 * way). Between pairs the links of a ladder have half the rate of those within one. The input is
 * streamed to each stage that reads it, and goes over no cut.
 *
 *                 work            transfer, training   else
 *   Grouped       H + F + B       o + sync, i + sync   o + sync
 *   Interleaved   max(H + F, B)   o + sync             o + sync
 *   Sequential    H + F + B + the two syncs and what it sends, i + o; else o
 *   others        H + F + B + two syncs and 2 (i + o): it sends and takes; else half of them
 *
 * Recomputation adds F to B of all stages but the last, whose backward pass follows at once; FIFOs
 * then have little to hold, and cost nothing here. With Grouped and Interleaved all IPUs meet, then
 * the stages' copies are made one after the other, and they go on together: a time step takes the
 * greatest work and the sum of the transfers (at least a sync); a stage's time is its own work and
 * this sum. What is sent nowhere takes no sync.
 *
 * Its memory is
 *
 *   variables + live x (what it keeps of a micro-batch) + what only passes through,
 *
 * live as ipu_schedule_live(): the earlier a stage, the more it keeps. With recomputation it keeps
 * its inputs so often and the rest once; with offloaded activations FIFOs are elsewhere. Code and
 * temporary data are left out.
 */
struct ipu_partition_params {
	const struct ipu_unit *units;
	int unit_count;
	const struct ipu_flow *flows;
	int flow_count;
	int stages;
	enum ipu_schedule_kind schedule;
	int microbatches; /* of a weight update; 0: many. Some schedules keep all of them */
	bool training, recompute, offload_activations;
	double link_bytes_cycle; /* between the IPUs of a pair; 0: transfers are free */
	int64_t sync_cycles;     /* at the end of a time step */
	int64_t memory_bytes;    /* of an IPU, shared alike by its stages; 0: no limit */
	const int *device;       /* the IPU of each stage; NULL: each has its own */
};

struct ipu_partition_stage {
	int first, count;          /* units */
	int64_t forward, backward; /* cycles: H + F, and B with what is computed again */
	int64_t update;
	int64_t work, transfer; /* as above */
	int64_t one_way;        /* of the transfer, the forward's */
	int64_t cycles;         /* its time, as above */
	int64_t sent_bytes;     /* over the cut after it, per micro-batch, the input left out */
	int64_t memory_bytes;   /* by the sum above */
	int64_t overflow_bytes; /* more than there is */
};

struct ipu_partition {
	struct ipu_partition_stage *stage;
	int stages;
	int slowest;           /* stage */
	int fullest;           /* with the greatest overflow; -1: all fit */
	int64_t cycles;        /* the slowest's time: what a time step takes */
	int64_t sent_bytes;    /* over all cuts */
	int64_t most_overflow; /* of the fullest */
};

/*
 * The best split into exactly params->stages stages, none without a unit that computes: of those
 * that fit memory (where none does, of those whose greatest overflow is least) the one whose
 * slowest stage is fastest; of these, one with the least greatest work; of these, that which sends
 * least over all cuts; of these, that whose stages end earliest. ST_INVALID where there are too few
 * units. More stages are never slower where they cost nothing: transfers and FIFOs are free, memory
 * is not limited, and nothing is computed again. Else they may be.
 */
enum status ipu_partition_new(struct ipu_partition **out, const struct ipu_partition_params *params,
			      struct err *err);
/* What a given split costs: @first is the first unit of each stage, ascending from 0. */
enum status ipu_partition_given(struct ipu_partition **out,
				const struct ipu_partition_params *params, const int *first,
				struct err *err);
void ipu_partition_free(struct ipu_partition *partition); /* accepts NULL */

/* The most stages that the units can be split into; 0: none computes. */
int ipu_partition_most_stages(const struct ipu_partition_params *params);

/*
 * Cycles of a pipeline run of G = @microbatches and a weight update (training), the greatest of all
 * stages taken for each of N stages: Grouped training G - 1 time steps, N with forwards alone and N
 * with backwards alone; Interleaved training 2 (G + N - 1) time steps; Sequential G times the sum
 * of the stages; else, and where IPUs do not meet, G + N - 1 times the slowest.
 */
int64_t ipu_partition_run_cycles(const struct ipu_partition *partition,
				 const struct ipu_partition_params *params, int64_t microbatches);

#endif /* IPU_PARTITION_H */
