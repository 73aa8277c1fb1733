/*
 * The device clock: the start and duration of each stage program of a pipeline run, and the
 * transfers between programs. Rules and formulas: docs/cost-model.md, "The device clock".
 *
 * Times are cycles from the start of the pipeline run. A run is the same every time and on every
 * replica, so it is simulated once. An IPU runs everything in sequence without gaps, except streams
 * through I/O tiles, which overlap with the programs.
 *
 * Poplar's schedules run in lockstep: all IPUs synchronize and exchange at the end of a time step.
 * With the other schedules an IPU sends when its program has ended, and continues as soon as its
 * own input is available.
 */
#ifndef IPU_TIMELINE_H
#define IPU_TIMELINE_H

#include <stdint.h>

#include "ipu/ipu_schedule.h"
#include "ipu/ipu_target.h"

/* Functions of a stage. */
enum ipu_function_phase {
	IPU_FUNCTION_F,
	IPU_FUNCTION_B, /* with W, unless the schedule splits them */
	IPU_FUNCTION_U,
	IPU_FUNCTION_R,        /* recomputation of forward operations for B */
	IPU_FUNCTION_PUSH,     /* pushes the results of F to the FIFOs */
	IPU_FUNCTION_START,    /* at the start of a pipeline run: zeroes accumulators */
	IPU_FUNCTION_W,        /* weight gradients, if the schedule splits them from B */
	IPU_FUNCTION_EVALUATE, /* F without operations only for training */
	IPU_FUNCTION_PREDICT,  /* and without losses and metrics */
	IPU_FUNCTION_PHASES
};

/* The enum ipu_work_phase of a function, or '\0' if it belongs to no phase. */
char ipu_function_phase_char(enum ipu_function_phase function);

/* Cycles on the stage's IPU; cycles in none of the three parts are compute. */
struct ipu_function_cost {
	int64_t cycles;
	int64_t exchange, sync, host_io;
};

struct ipu_stage_cost {
	struct ipu_function_cost function[IPU_FUNCTION_PHASES];
	int64_t infeed_bytes, outfeed_bytes; /* streamed per micro-batch, with its forward */
	int64_t update_bytes;                /* streamed out after the weight update */
};

/* Activations of a micro-batch that another stage reads; in training as many gradients return. */
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
	int replicas;                    /* that share the host's links; 0 means 1 */
	int64_t io_tiles;                /* 0: none */
	int64_t prefetch_depth;          /* batches that the host prepares ahead; 0: never waits */
	bool recompute_late;             /* R right before its B; otherwise in the previous step */
	enum ipu_function_phase forward; /* function of a forward: F, EVALUATE or PREDICT */
	bool outfeed_once;               /* outfeed_bytes once per run, with update_bytes */
};

/* An executed function. */
struct ipu_event {
	int ipu, stage, microbatch; /* microbatch -1: the whole run */
	enum ipu_function_phase function;
	char phase; /* enum ipu_work_phase of the function */
	int time_step;
	int64_t start_cycle, cycles;
};

/* Activities of an IPU between functions: transfers and waits. */
enum ipu_transfer_kind {
	IPU_TRANSFER_INFEED,   /* from the host */
	IPU_TRANSFER_COPY_IN,  /* from the I/O tiles to the compute tiles */
	IPU_TRANSFER_WAIT,     /* without lockstep: wait for the input, and the sync */
	IPU_TRANSFER_RECEIVE,  /* without lockstep: receive the input from another IPU */
	IPU_TRANSFER_COPY_OUT, /* from the compute tiles to the I/O tiles */
	IPU_TRANSFER_SYNC,     /* wait for all IPUs, and the sync */
	IPU_TRANSFER_GLOBAL,   /* copy between IPUs; without lockstep: send */
	IPU_TRANSFER_SYNC_ANS, /* wait while other IPUs copy */
	IPU_TRANSFER_OUTFEED,  /* to the host */
	IPU_TRANSFER_KINDS
};

struct ipu_transfer {
	enum ipu_transfer_kind kind;
	int ipu, time_step;
	int stage, microbatch; /* -1: not a single one, or of another run */
	bool backward;         /* copies between IPUs: gradients */
	int64_t start_cycle, cycles;
	int64_t overlapped;               /* part of the cycles concurrent with programs */
	int64_t begin_cycles, end_cycles; /* INFEED, OUTFEED: parts of Begin and End */
	int64_t bytes_in, bytes_out;
	int program; /* leaf in the program tree (of a stream copy the first of three), or -1 */
};

/* Breakdown of an IPU's cycles in one pipeline run; the sum is the run's cycles. `exchange`
 * includes the on-chip exchange from the stage costs and the copies between IPUs; `host_io` is the
 * part that programs did not overlap. */
struct ipu_split {
	int64_t compute, exchange, sync, host_io, idle;
};

struct ipu_timeline {
	struct ipu_event *events; /* by IPU, then start */
	int count;
	struct ipu_transfer *transfers; /* by IPU, then start */
	int transfer_count;
	int time_steps;          /* of the schedule, plus 2 for a pipeline with I/O tiles */
	int64_t cycles;          /* of the whole pipeline run */
	struct ipu_split *split; /* by IPU */
};

enum status ipu_timeline_new(struct ipu_timeline **out, const struct ipu_timeline_params *params,
			     struct err *err);
void ipu_timeline_free(struct ipu_timeline *timeline); /* accepts NULL */

/* Iterator over a timeline: by IPU, then start, transfers among the functions. Start from
 * {.timeline = ...}; false at the end. One of @event and @transfer is set. */
struct ipu_walk {
	const struct ipu_timeline *timeline;
	int events, transfers; /* already visited */
	const struct ipu_event *event;
	const struct ipu_transfer *transfer;
};
bool ipu_walk_next(struct ipu_walk *walk);

/* Input of ipu_bubble_measure_lockstep(): the functions of micro-batches, in ns. Recomputation
 * counts as part of its backward. @out has room for timeline->count; return the number stored. */
int ipu_timeline_intervals(const struct ipu_timeline *timeline, const struct ipu_target *target,
			   struct ipu_interval *out);

/* A stream copy of @bytes at @bytes_second: the fixed parts of Begin and End, and the total. */
struct ipu_stream_copy {
	int64_t begin_cycles, end_cycles, cycles;
};
struct ipu_stream_copy ipu_stream_copy(const struct ipu_target *target, double bytes,
				       double bytes_second);
/* A framework's stream copy from or to the host, with its share of the overhead of a step. */
struct ipu_stream_copy ipu_host_copy(const struct ipu_target *target, double bytes);

/* Cycles of a sync of @ipus: the target's internal sync for one; more per hop between several. */
int64_t ipu_sync_cycles(const struct ipu_target *target, int ipus);

#endif /* IPU_TIMELINE_H */
