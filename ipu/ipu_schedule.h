/*
 * Pipeline schedules: one table of all schedules, and the order of work that each defines.
 *
 * A schedule is a row (struct ipu_schedule_row) in a file of ipu/schedules/ and a line of
 * IPU_SCHEDULE_MAP. All code that depends on the schedule queries the row: ipu-plan, the
 * partitioner, the validation of run files, the device clock, bubbles, memory and the trainer.
 *
 * N stages; a micro-batch runs F0 .. F(N-1) and, in training, B(N-1) .. B0; a weight update has G
 * micro-batches. A schedule that splits the backward pass has a third work per stage and
 * micro-batch, W: B makes the gradient of the stage's input, W those of its weights. On every stage
 * the micro-batches of F, of B and of W run as 0, 1, .. G-1, so that sums have one order.
 *
 * Time steps order the works of all IPUs: the input of a work is made in an earlier step, or
 * earlier by its own IPU. Sources: docs/cost-model.md, "Pipeline schedules".
 */
#ifndef IPU_SCHEDULE_H
#define IPU_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/plan/ipu_op.h"

/* Enumerator, row, and the name in run files and on the command line. */
#define IPU_SCHEDULE_MAP(X)                                                                        \
	X(GPIPE, gpipe, "gpipe")                                                                   \
	X(1F1B, 1f1b, "1f1b")                                                                      \
	X(1F1B_INTERLEAVED, 1f1b_interleaved, "1f1b-interleaved")                                  \
	X(ZB_H1, zb_h1, "zb-h1")                                                                   \
	X(ZB_H2, zb_h2, "zb-h2")                                                                   \
	X(GROUPED, grouped, "Grouped")                                                             \
	X(INTERLEAVED, interleaved, "Interleaved")                                                 \
	X(SEQUENTIAL, sequential, "Sequential")

#define IPU_SCHEDULE_KIND(kind, row, name) IPU_##kind,
enum ipu_schedule_kind {
	IPU_SCHEDULE_MAP(IPU_SCHEDULE_KIND) IPU_SCHEDULE_KINDS
};
#undef IPU_SCHEDULE_KIND

/* What an IPU waits for before its next work. */
enum ipu_schedule_pace {
	IPU_PACE_BOTH,  /* all IPUs after each time step: forwards and backwards of its stages */
	IPU_PACE_ONE,   /* all IPUs after each time step: one program on each */
	IPU_PACE_ALONE, /* one stage works at a time */
	IPU_PACE_FREE,  /* only its own input */
};

/* Which stages may share an IPU. */
enum ipu_schedule_sharing {
	IPU_SHARE_ANY,
	IPU_SHARE_FORWARD, /* any without backward passes, none in training */
	IPU_SHARE_NONE,
	IPU_SHARE_IN_TURN, /* stages assigned to the IPUs in turn: 0, 1, 0, 1; at least two each */
};

/* When recomputation of a stage's forward may run; bits. */
enum ipu_schedule_replay {
	IPU_REPLAY_AHEAD = 1 << 0, /* in the previous time step: RecomputeThenBackpropagate */
	IPU_REPLAY_LATE = 1 << 1,  /* right before B: RecomputeAndBackpropagateInterleaved */
};

/* One stage program of one micro-batch. */
struct ipu_work {
	int time_step; /* from 0 */
	int stage;
	int microbatch;
	char phase; /* enum ipu_work_phase: F, B, W */
};

/* The parameters of an order of work. */
struct ipu_schedule_shape {
	int stages, microbatches;
	int places; /* of the pipeline: stage s is at place s % places, as chunk s / places */
	int chunks;
	bool training;
	int ipus;          /* including those without a stage */
	const int *device; /* stage -> IPU; NULL: the place */
};

struct ipu__times;
struct ipu__form;

struct ipu_schedule_row {
	const char *about; /* a short phrase */
	enum ipu_schedule_pace pace;
	enum ipu_schedule_sharing sharing;
	unsigned replays; /* of enum ipu_schedule_replay; 0: no recomputation */
	bool splits;      /* W is separate from B */
	/* The order of work, by one of two functions. order(): the works of training at @place in
	 * order, without their time steps. */
	void (*order)(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out);
	/* lines(): micro-batches run in lines; a line starts its next micro-batch when the previous
	 * one is done. Store the first time step of each line, ascending, in @offsets, which has
	 * room for the programs of a micro-batch; return the number of lines. */
	int (*lines)(const struct ipu_schedule_shape *shape, int *offsets);
	/* The number of micro-batches must be a multiple of this (of the number of lines if there
	 * is lines(); NULL: any number); and the same in words. */
	int (*multiple)(const struct ipu_schedule_shape *shape);
	const char *(*rule)(const struct ipu_schedule_shape *shape, int multiple);
	/* Makespan and longest span, if a closed form is known: docs/cost-model.md. */
	struct ipu__form (*closed)(const struct ipu__times *times);
	const char *closed_note; /* on the closed form with communication, or NULL */
};

const struct ipu_schedule_row *ipu_schedule_row(enum ipu_schedule_kind kind);
/* Return whether all IPUs synchronize after each time step. */
bool ipu_schedule_lockstep(enum ipu_schedule_kind kind);

/* All names, each followed by a blank. */
#define IPU_SCHEDULE_NAME(kind, row, name) name " "
#define IPU_SCHEDULE_NAMES                 IPU_SCHEDULE_MAP(IPU_SCHEDULE_NAME)
const char *ipu_schedule_name(enum ipu_schedule_kind kind);
/* Look up a name. ST_NOTFOUND suggests the nearest name, or lists all. */
enum status ipu_schedule_kind_get(const char *name, enum ipu_schedule_kind *out, struct err *err);

struct ipu_schedule_params {
	enum ipu_schedule_kind kind;
	int stages;
	int microbatches; /* G: per weight update, or per execution without training */
	bool training;
	int ipus;          /* 0: one per stage */
	const int *device; /* stage -> IPU; NULL: stage s on IPU s */
};

struct ipu_schedule {
	enum ipu_schedule_kind kind;
	int stages, microbatches, ipus;
	bool training;
	bool splits;    /* it has W works */
	int time_steps; /* non-empty ones */
	int round;      /* time steps after which a line starts its next micro-batch; 0: none */
	int *device;    /* stage -> IPU */
	struct ipu_work *works; /* by IPU, each in its order of work */
	int *first;             /* IPU i has works[first[i]] .. works[first[i + 1] - 1] */
	int *by_step;           /* all works by time step, then IPU, then order of work */
	int *step_first;        /* step t has by_step[step_first[t]] .. [step_first[t + 1] - 1] */
	int *live, *depth;      /* by stage, see below */
};

/* Return ST_OK, or report the rule that @params violate. @what is the caller's name for the number
 * of micro-batches, for example "gradient_accumulation.steps_per_replica". */
enum status ipu_schedule_check(const struct ipu_schedule_params *params, const char *what,
			       struct err *err);
/* The same for the stages and their IPUs only, regardless of the number of micro-batches. */
enum status ipu_schedule_check_stages(const struct ipu_schedule_params *params, struct err *err);
/* The number of micro-batches must be a multiple of this; 0: @params violate another rule. */
int ipu_schedule_multiple(const struct ipu_schedule_params *params);

enum status ipu_schedule_new(struct ipu_schedule **out, const struct ipu_schedule_params *params,
			     struct err *err);
void ipu_schedule_free(struct ipu_schedule *schedule); /* accepts NULL */

/* Most activations of @stage live at once, from the start of a forward to the end of its backward
 * (of its W if split), in the IPU's order of work: Grouped 2 (N-s), since the forward of a step
 * runs before its backward, Interleaved N-s, Sequential 1; without training 1. */
int ipu_schedule_live(const struct ipu_schedule *schedule, int stage);

/* Depth of the activation FIFO between forward and backward of @stage: the activations live at the
 * start of a backward whose forward was in an earlier step, except the one that it reads. Grouped
 * 2 (N-1-s), Interleaved N-1-s, Sequential and without training 0. */
int ipu_schedule_fifo_depth(const struct ipu_schedule *schedule, int stage);

/* Most delayed W works of @stage (after B, before the end of W); 0 if there are none. */
int ipu_schedule_held(const struct ipu_schedule *schedule, int stage);

/* Most results of @stage in @phase (F or B) that its neighbour has not consumed yet: buffers for so
 * many let every IPU run its works in order without deadlock. */
int ipu_schedule_in_flight(const struct ipu_schedule *schedule, int stage, char phase);

/* Most micro-batches between the first stage, which reads their inputs, and the last, which reads
 * their targets. A feed that holds as many batches never blocks the pipeline. */
int ipu_schedule_ahead(const struct ipu_schedule *schedule);

/* Durations of works by stage, and the delay between two IPUs; in any unit of time. */
struct ipu_schedule_costs {
	const double *forward, *backward;
	const double *weight; /* of W if split; otherwise part of backward */
	double hop;           /* from the end of a work to the start of its reader on another IPU */
	bool lockstep;        /* steps last as long as their busiest IPU, plus a hop if one sends */
};

/* Compute when each work begins and ends: @start[i] and @end[i] of works[i]. */
enum status ipu_schedule_run(const struct ipu_schedule *schedule,
			     const struct ipu_schedule_costs *costs, double *start, double *end,
			     struct err *err);

/*
 * The bubble of one pipeline run, measured and in theory, by all three common definitions:
 *
 * - bubble_rate: 1 - mean busy time of an IPU / S, where S is the longest span of one IPU (last end
 *   - first start). Zero-bubble paper, arXiv 2401.10241: 1 - m (F + B + W) / S.
 * - bubble_over_ideal: idle time over ideal compute time; can exceed 1. Megatron-LM, arXiv
 *   2104.04473.
 * - idle_fraction: 1 - sum(busy) / (IPUs x makespan).
 *
 * The idle time of the makespan has four parts: ramp-up (before an IPU's first work), ramp-down
 * (after its last), and between them communication (waits after the input's producer has ended:
 * transfer and wake-up) and imbalance (the rest). They are in ns, summed over IPUs; an IPU that
 * never works is in ramp-up throughout. Weight updates are excluded: a bubble is about F and B.
 */

struct ipu_interval {
	int ipu, stage, microbatch;
	char phase; /* F, B, or W if B is split; other phases are ignored */
	int64_t start_ns, dur_ns;
};

struct ipu_bubble {
	int64_t makespan_ns, busy_ns;                         /* busy: summed over IPUs */
	double idle_fraction, bubble_rate, bubble_over_ideal; /* NaN if nothing ran */
	int64_t ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns;
};

enum status ipu_bubble_measure(const struct ipu_interval *intervals, int count, int ipus,
			       int stages, struct ipu_bubble *out, struct err *err);

/* The same for a clock on which all IPUs synchronize after each step (the device). There an input
 * waits for the end of the step, not for its transfer, so communication is the time in which no IPU
 * works (copies between IPUs, syncs, stream copies of all at once) and imbalance the rest. */
enum status ipu_bubble_measure_lockstep(const struct ipu_interval *intervals, int count, int ipus,
					int stages, struct ipu_bubble *out, struct err *err);

/* The bubble of @schedule with free communication and the durations of @costs in ns. If
 * costs->lockstep, steps are synchronous, as the device runs Poplar's schedules; otherwise each IPU
 * continues as soon as its input exists (the host, and all other schedules on the device). Without
 * backward passes only costs->forward is read. */
enum status ipu_bubble_theory(const struct ipu_schedule *schedule,
			      const struct ipu_schedule_costs *costs, struct ipu_bubble *out,
			      struct err *err);

#endif /* IPU_SCHEDULE_H */
