/*
 * The execution trace of a pipeline run: a timeline's functions and transfers as the steps that
 * run, in order of IPU, then start.
 */
#ifndef IPU_TRACE_H
#define IPU_TRACE_H

#include "ipu/compile/ipu_program.h"

/* Through a timeline: by IPU, then start, transfers between the functions. Start from {.timeline =
 * ...}; false at the end. One of @event and @transfer is set. */
struct ipu_walk {
	const struct ipu_timeline *timeline;
	int events, transfers; /* passed */
	const struct ipu_event *event;
	const struct ipu_transfer *transfer;
};
bool ipu_walk_next(struct ipu_walk *walk);

struct ipu_trace_step {
	int ipu, stage, microbatch; /* -1: of no single one */
	char phase;                 /* enum ipu_work_phase; '\0': of none */
	int program, node;          /* -1: none */
	enum ipu_program_type type;
	int64_t start_cycle, cycles;
	int64_t overlapped; /* -1: nothing it could overlap with */
	int64_t tiles;      /* active; -1: all that there are to it */
	double mean_cycles; /* over these */
	int64_t bytes_in, bytes_out;
};

/* Returns 0 to go on. */
typedef int (*ipu_trace_fn)(void *user, const struct ipu_trace_step *step);

/* Every step of the run; what @fn returned if it was not 0. */
int ipu_trace(const struct ipu_executable *executable, const struct ipu_timeline *timeline,
	      ipu_trace_fn fn, void *user);

/* A pipeline run as parts of which each is run again and again: ramp-up, the time steps that repeat
 * to the cycle, the rest. A trace of the parts is as long as a pipeline is deep, however many
 * micro-batches go through it. */
#define IPU_TRACE_PARTS 3

struct ipu_trace_part {
	int first_step, end_step; /* time steps of its first repeat */
	int repeats;
	int64_t start_cycle, cycles; /* of the first repeat; from one to the next */
	int microbatches;            /* from one to the next */
};

/* Returns how many there are: 1 where nothing repeats. */
int ipu_trace_parts(struct ipu_trace_part parts[IPU_TRACE_PARTS],
		    const struct ipu_schedule *schedule, const struct ipu_timeline *timeline);

/* Every step of the first repeat of @part; cycles count from its start. */
int ipu_trace_part(const struct ipu_executable *executable, const struct ipu_timeline *timeline,
		   const struct ipu_trace_part *part, ipu_trace_fn fn, void *user);

/* What a transfer is, of a stream copy the middle part. */
enum ipu_program_type ipu_transfer_type(enum ipu_transfer_kind kind);

#endif /* IPU_TRACE_H */
