/*
 * Execution trace of a pipeline run: a timeline's functions and transfers as executed steps, by
 * IPU, then start.
 */
#ifndef IPU_TRACE_H
#define IPU_TRACE_H

#include "ipu/compile/ipu_program.h"

struct ipu_trace_step {
	int ipu, stage, microbatch; /* -1: none, or not a single one */
	char phase;                 /* enum ipu_work_phase, or '\0' */
	int program, node;          /* -1: none */
	enum ipu_program_type type;
	int64_t start_cycle, cycles;
	int64_t overlapped; /* -1: cannot overlap */
	int64_t tiles;      /* active; -1: all of the IPU */
	double mean_cycles; /* over these */
	int64_t bytes_in, bytes_out;
};

/* Return 0 to continue. */
typedef int (*ipu_trace_fn)(void *user, const struct ipu_trace_step *step);

/* Report every step of the run; return the first nonzero result of @fn, or 0. */
int ipu_trace(const struct ipu_executable *executable, const struct ipu_timeline *timeline,
	      ipu_trace_fn fn, void *user);

/* A pipeline run in parts, each of which repeats: ramp-up, time steps that repeat to the cycle, the
 * rest. The size of a trace of the parts depends on the depth of the pipeline, not on the number of
 * micro-batches. */
#define IPU_TRACE_PARTS 3

struct ipu_trace_part {
	int first_step, end_step; /* time steps of its first repeat */
	int repeats;
	int64_t start_cycle, cycles; /* of the first repeat; between repeats */
	int microbatches;            /* between repeats */
};

/* Return the number of parts: 1 if nothing repeats. */
int ipu_trace_parts(struct ipu_trace_part parts[IPU_TRACE_PARTS],
		    const struct ipu_schedule *schedule, const struct ipu_timeline *timeline);

/* Report every step of the first repeat of @part; cycles are relative to its start. */
int ipu_trace_part(const struct ipu_executable *executable, const struct ipu_timeline *timeline,
		   const struct ipu_trace_part *part, ipu_trace_fn fn, void *user);

#endif /* IPU_TRACE_H */
