/*
 * The device clock: when each stage program of a pipeline run starts and how long it takes.
 *
 * All IPUs meet at the end of every time step, so a step lasts as long as its busiest IPU (stream
 * copies first, then programs), the copies between IPUs and the sync after it; the weight update
 * follows the last step on all IPUs at once. Times are cycles from the start of the pipeline run: a
 * run is the same every time, so it is simulated once.
 */
#ifndef IPU_TIMELINE_H
#define IPU_TIMELINE_H

#include <stdint.h>

#include "ipu/ipu_schedule.h"
#include "ipu/ipu_target.h"

/* What a stage costs, cycles of one micro-batch. */
struct ipu_stage_cost {
	int64_t forward, backward; /* compute and exchange on the stage's IPU */
	int64_t update;            /* once per weight update (0 without training) */
	int64_t host_bytes;        /* streamed from and to the host for each micro-batch */
	int64_t output_bytes;      /* activations sent to the next stage per micro-batch */
	/* Parts of the three above that are on-chip exchange and sync; 0 counts all as compute. */
	int64_t forward_exchange, forward_sync;
	int64_t backward_exchange, backward_sync;
	int64_t update_exchange, update_sync;
};

struct ipu_event {
	int ipu, stage, microbatch; /* microbatch -1: the weight update */
	char phase;                 /* F, B, U */
	int time_step;
	int64_t start_cycle, cycles;
};

/* Data on its way: what an IPU waits for between its programs. */
enum ipu_transfer_kind {
	IPU_TRANSFER_STREAM_COPY, /* from and to the host, at the start of a step */
	IPU_TRANSFER_GLOBAL,      /* between IPUs, at the end of a step */
	IPU_TRANSFER_KINDS
};

struct ipu_transfer {
	enum ipu_transfer_kind kind;
	int ipu, time_step;
	int64_t start_cycle, cycles, bytes;
};

/* Where an IPU's cycles of one pipeline run go. They add up to the run's cycles. `exchange` holds
 * the on-chip exchange that the stage costs name and the copies between IPUs. */
struct ipu_split {
	int64_t compute, exchange, sync, host_io, idle;
};

struct ipu_timeline {
	struct ipu_event *events; /* by IPU, then start */
	int count;
	struct ipu_transfer *transfers; /* by IPU, then start */
	int transfer_count;
	int64_t cycles;          /* of the whole pipeline run */
	struct ipu_split *split; /* by IPU */
	int64_t host_io_cycles;  /* of the run's stream copies, summed over its steps */
};

enum status ipu_timeline_new(struct ipu_timeline **out, const struct ipu_target *target,
			     const struct ipu_schedule *schedule,
			     const struct ipu_stage_cost *costs, struct err *err);
/* Poplar's name of the program: "StreamCopyMid", "GlobalExchange". */
const char *ipu_transfer_name(enum ipu_transfer_kind kind);
void ipu_timeline_free(struct ipu_timeline *timeline); /* accepts NULL */

#endif /* IPU_TIMELINE_H */
