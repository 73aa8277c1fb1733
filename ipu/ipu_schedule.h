/*
 * Pipeline schedules: one table for all of them, and the order of work that a schedule gives.
 *
 * A schedule is a row (struct ipu_schedule_row) in a file of ipu/schedules/ and a line of
 * IPU_SCHEDULE_MAP. Everything that knows schedules asks the row: ipu-plan, the partition, the run
 * file's rules, the device clock, the bubbles, the memory and the trainer.
 *
 * N stages; a micro-batch runs F0 .. F(N-1) and, in training, B(N-1) .. B0; G micro-batches make a
 * weight update. A schedule that splits the backward pass has a third work of each stage and
 * micro-batch, W: B makes the gradient of the stage's input, W those of its weights. On every stage
 * the micro-batches of F, of B and of W come as 0, 1, .. G-1, so that sums have one order.
 *
 * Time steps put the works of all IPUs in one order: what a work reads was made in an earlier step,
 * or by its own IPU before. Sources: docs/cost-model.md, "Pipeline schedules".
 */
#ifndef IPU_SCHEDULE_H
#define IPU_SCHEDULE_H

#include <stdbool.h>

#include "common/err.h"
#include "ipu/ipu_phase.h"

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

/* What an IPU waits for before it goes on. */
enum ipu_schedule_pace {
	IPU_PACE_BOTH,  /* all IPUs meet after a time step: forwards and backwards of its stages */
	IPU_PACE_ONE,   /* all IPUs meet after a time step: one program on each */
	IPU_PACE_ALONE, /* one stage works at a time */
	IPU_PACE_FREE,  /* for its input alone */
};

/* Which stages may share an IPU. */
enum ipu_schedule_sharing {
	IPU_SHARE_ANY,
	IPU_SHARE_FORWARD, /* any without backward passes, none in training */
	IPU_SHARE_NONE,
	IPU_SHARE_IN_TURN, /* stages are dealt to the IPUs in turn: 0, 1, 0, 1; at least two each */
};

/* When recomputation may replay a stage's forward, as bits. */
enum ipu_schedule_replay {
	IPU_REPLAY_AHEAD = 1 << 0, /* in the time step before: RecomputeThenBackpropagate */
	IPU_REPLAY_LATE = 1 << 1,  /* right before: RecomputeAndBackpropagateInterleaved */
};

/* One stage program of one micro-batch. */
struct ipu_work {
	int time_step; /* from 0 */
	int stage;
	int microbatch;
	char phase; /* enum ipu_work_phase: F, B, W */
};

/* What an order of work follows from. */
struct ipu_schedule_shape {
	int stages, microbatches;
	int places; /* of the pipeline: stage s is at place s % places, as chunk s / places */
	int chunks;
	bool training;
	int ipus;          /* there are, whether they have a stage or not */
	const int *device; /* stage -> IPU; NULL: the place */
};

struct ipu__times;
struct ipu__form;

struct ipu_schedule_row {
	const char *about; /* in half a sentence */
	enum ipu_schedule_pace pace;
	enum ipu_schedule_sharing sharing;
	unsigned replays; /* of enum ipu_schedule_replay; 0: nothing is computed again */
	bool splits;      /* W is a work of its own */
	/* The order of work, one of two. By place: the works of training at @place in their order,
	 * without their time steps. */
	void (*order)(const struct ipu_schedule_shape *shape, int place, struct ipu_work *out);
	/* By step: micro-batches go in lines, each of which takes its next one as soon as the one
	 * before is done. The time step in which each line begins, ascending, into @offsets, which
	 * has room for the programs of a micro-batch; returns how many lines there are. */
	int (*lines)(const struct ipu_schedule_shape *shape, int *offsets);
	/* What the number of micro-batches must be a multiple of: of @lines' it is their number;
	 * NULL: any will do. And in words. */
	int (*multiple)(const struct ipu_schedule_shape *shape);
	const char *(*rule)(const struct ipu_schedule_shape *shape, int multiple);
	/* Makespan and longest span where a closed form is known: docs/cost-model.md. */
	struct ipu__form (*closed)(const struct ipu__times *times);
	const char *closed_note; /* of the closed form with communication; NULL: none */
};

const struct ipu_schedule_row *ipu_schedule_row(enum ipu_schedule_kind kind);
/* All IPUs meet after each time step. */
bool ipu_schedule_lockstep(enum ipu_schedule_kind kind);

/* All names, a blank behind each. */
#define IPU_SCHEDULE_NAME(kind, row, name) name " "
#define IPU_SCHEDULE_NAMES                 IPU_SCHEDULE_MAP(IPU_SCHEDULE_NAME)
const char *ipu_schedule_name(enum ipu_schedule_kind kind);
/* ST_NOTFOUND with the nearest name, or all. */
enum status ipu_schedule_kind_get(const char *name, enum ipu_schedule_kind *out, struct err *err);

struct ipu_schedule_params {
	enum ipu_schedule_kind kind;
	int stages;
	int microbatches; /* G: of one weight update, or of one execution when not training */
	bool training;
	int ipus;          /* 0: one for each stage */
	const int *device; /* stage -> IPU; NULL: stage s on IPU s */
};

struct ipu_schedule {
	enum ipu_schedule_kind kind;
	int stages, microbatches, ipus;
	bool training;
	bool splits;    /* there are W's */
	int time_steps; /* non-empty ones */
	int round;      /* time steps after which a line takes its next micro-batch; 0: none */
	int *device;    /* stage -> IPU */
	struct ipu_work *works; /* of all IPUs, IPU after IPU, each in its order of work */
	int *first;             /* IPU i has works[first[i]] .. works[first[i + 1] - 1] */
	int *by_step;           /* all works by time step, then IPU, then order of work */
	int *step_first;        /* step t has by_step[step_first[t]] .. [step_first[t + 1] - 1] */
	int *live, *depth;      /* by stage, see below */
};

/* The rule that @params break, with its name in the text; else ST_OK. @what is how the caller calls
 * the number of micro-batches, "gradient_accumulation.steps_per_replica" for one. */
enum status ipu_schedule_check(const struct ipu_schedule_params *params, const char *what,
			       struct err *err);
/* The same, of the stages and their IPUs alone: whatever the number of micro-batches. */
enum status ipu_schedule_check_stages(const struct ipu_schedule_params *params, struct err *err);
/* What the number of micro-batches must be a multiple of; 0: @params break another rule. */
int ipu_schedule_multiple(const struct ipu_schedule_params *params);

enum status ipu_schedule_new(struct ipu_schedule **out, const struct ipu_schedule_params *params,
			     struct err *err);
void ipu_schedule_free(struct ipu_schedule *schedule); /* accepts NULL */

/* Activations of @stage alive at once at most, from the start of a forward to the end of its
 * backward (of its W, where split), as the IPU does its works: Grouped 2 (N-s), since the forward
 * of a step runs before its backward, Interleaved N-s, Sequential 1; without training 1. */
int ipu_schedule_live(const struct ipu_schedule *schedule, int stage);

/* Depth of the activation FIFO between the forward and the backward of @stage: those alive when a
 * backward begins whose forward was in an earlier step, but for the one that it reads. Grouped
 * 2 (N-1-s), Interleaved N-1-s, Sequential and without training 0. */
int ipu_schedule_fifo_depth(const struct ipu_schedule *schedule, int stage);

/* W's of @stage held back at most: after B, before W's end; 0 where there are none. */
int ipu_schedule_held(const struct ipu_schedule *schedule, int stage);

/* What @stage makes in @phase (F or B) for its neighbour and that one has not taken: as many
 * places let every IPU go through its works in order without waiting for itself. */
int ipu_schedule_in_flight(const struct ipu_schedule *schedule, int stage, char phase);

/* What works take, by stage, and what lies between two IPUs; any unit of time. */
struct ipu_schedule_costs {
	const double *forward, *backward;
	const double *weight; /* of W, where split; else part of backward */
	double hop;           /* from the end of a work to the start of its reader elsewhere */
	bool lockstep;        /* steps as long as their busiest IPU, and a hop where one sends */
};

/* When each work begins and ends, @start[i] and @end[i] of works[i]; scratch memory is freed. */
enum status ipu_schedule_run(const struct ipu_schedule *schedule,
			     const struct ipu_schedule_costs *costs, double *start, double *end,
			     struct err *err);

#endif /* IPU_SCHEDULE_H */
