/*
 * The device clock: when each stage program of a pipeline run starts and how long it takes, and
 * what goes between the programs. Rules and formulas: docs/cost-model.md, "The device clock".
 *
 * Times are cycles from the start of the pipeline run: a run is the same every time and on every
 * replica, so it is simulated once. On an IPU one thing follows the other without a gap, but for
 * streams through I/O tiles, which go on beside the programs.
 *
 * Poplar's schedules run in lockstep: all IPUs meet at the end of a time step and exchange. With
 * the others an IPU sends when its program has ended, and goes on as soon as its own input is
 * there.
 */
#ifndef IPU_TIMELINE_H
#define IPU_TIMELINE_H

#include <stdint.h>

#include "ipu/ipu_bubble.h"
#include "ipu/ipu_schedule.h"
#include "ipu/ipu_target.h"

/* What a stage is made of. */
enum ipu_function_phase {
	IPU_FUNCTION_F,
	IPU_FUNCTION_B, /* with W, unless the schedule splits them */
	IPU_FUNCTION_U,
	IPU_FUNCTION_R,        /* forward operations once more, for B */
	IPU_FUNCTION_PUSH,     /* what F made into the FIFOs */
	IPU_FUNCTION_START,    /* of a pipeline run: accumulators set to zero */
	IPU_FUNCTION_W,        /* gradients of weights, where the schedule splits them from B */
	IPU_FUNCTION_EVALUATE, /* F without what is training's alone */
	IPU_FUNCTION_PREDICT,  /* and without what measures */
	IPU_FUNCTION_PHASES
};

/* enum ipu_work_phase; '\0' of those that belong to no phase. */
char ipu_function_phase_char(enum ipu_function_phase function);

/* Cycles on the stage's IPU; what is none of the three parts is compute. */
struct ipu_function_cost {
	int64_t cycles;
	int64_t exchange, sync, host_io;
};

struct ipu_stage_cost {
	struct ipu_function_cost function[IPU_FUNCTION_PHASES];
	int64_t infeed_bytes, outfeed_bytes; /* streamed for each micro-batch, with its forward */
	int64_t update_bytes;                /* streamed out after the weight update */
};

/* Activations of a micro-batch that another stage reads; in training as much comes back. */
struct ipu_send {
	int from, to; /* stages, from < to */
	int64_t bytes;
};

struct ipu_timeline_params {
	const struct ipu_target *target;
	const struct ipu_schedule *schedule;
	const struct ipu_stage_cost *stages;
	const struct ipu_send *sends;
	int send_count;
	int replicas;           /* that share the host's links; 0 is 1 */
	int64_t io_tiles;       /* 0: none */
	int64_t prefetch_depth; /* batches that the host has ready; 0 is more than enough */
	bool recompute_late;    /* R right before its B, else in the step before */
	enum ipu_function_phase forward; /* what a forward is: F, EVALUATE or PREDICT */
	bool outfeed_once;               /* outfeed_bytes once a run, with the update_bytes */
};

/* A function on its way. */
struct ipu_event {
	int ipu, stage, microbatch; /* microbatch -1: of the whole run */
	enum ipu_function_phase function;
	char phase; /* enum ipu_work_phase: of the function */
	int time_step;
	int64_t start_cycle, cycles;
};

/* What an IPU does between functions: data on its way, and waits. */
enum ipu_transfer_kind {
	IPU_TRANSFER_INFEED,   /* from the host */
	IPU_TRANSFER_COPY_IN,  /* from the I/O tiles to the others */
	IPU_TRANSFER_WAIT,     /* out of lockstep: until the input is there, and the sync itself */
	IPU_TRANSFER_TAKE,     /* out of lockstep: the input, from another IPU */
	IPU_TRANSFER_COPY_OUT, /* and back */
	IPU_TRANSFER_SYNC,     /* until all IPUs are there, and the sync itself */
	IPU_TRANSFER_GLOBAL,   /* between IPUs; out of lockstep what is sent */
	IPU_TRANSFER_SYNC_ANS, /* while others copy */
	IPU_TRANSFER_OUTFEED,  /* to the host */
	IPU_TRANSFER_KINDS
};

struct ipu_transfer {
	enum ipu_transfer_kind kind;
	int ipu, time_step;
	int stage, microbatch; /* -1: of no single one, or of another run */
	bool backward;         /* of copies between IPUs: gradients */
	int64_t start_cycle, cycles;
	int64_t overlapped;               /* of the cycles: beside the IPU's programs */
	int64_t begin_cycles, end_cycles; /* INFEED, OUTFEED: Begin's and End's share */
	int64_t bytes_in, bytes_out;
	int program; /* its leaf in the program tree (of a stream copy the first of three); -1 */
};

/* Where an IPU's cycles of one pipeline run go. They add up to the run's cycles. `exchange` holds
 * the on-chip exchange that the stage costs name and the copies between IPUs, `host_io` what the
 * programs did not hide. */
struct ipu_split {
	int64_t compute, exchange, sync, host_io, idle;
};

struct ipu_timeline {
	struct ipu_event *events; /* by IPU, then start */
	int count;
	struct ipu_transfer *transfers; /* by IPU, then start */
	int transfer_count;
	int time_steps;          /* the schedule's, and 2 more of a pipeline with I/O tiles */
	int64_t cycles;          /* of the whole pipeline run */
	struct ipu_split *split; /* by IPU */
};

enum status ipu_timeline_new(struct ipu_timeline **out, const struct ipu_timeline_params *params,
			     struct err *err);
void ipu_timeline_free(struct ipu_timeline *timeline); /* accepts NULL */

/* What ipu_bubble_measure_lockstep() takes: the functions of micro-batches, in ns. Recomputation is
 * a part of its backward. @out has room for timeline->count; returns how many there are. */
int ipu_timeline_intervals(const struct ipu_timeline *timeline, const struct ipu_target *target,
			   struct ipu_interval *out);

/* A stream copy of @bytes at @bytes_second: the fixed part of Begin and End, and all of it. */
struct ipu_stream_copy {
	int64_t begin_cycles, end_cycles, cycles;
};
struct ipu_stream_copy ipu_stream_copy(const struct ipu_target *target, double bytes,
				       double bytes_second);
/* A framework's, from or to the host: with its share of the step's own programs. */
struct ipu_stream_copy ipu_host_copy(const struct ipu_target *target, double bytes);

/* Cycles in which @ipus meet: the target's sync of one; between several more for each hop. */
int64_t ipu_sync_cycles(const struct ipu_target *target, int ipus);

#endif /* IPU_TIMELINE_H */
