/*
 * The control programs: what an Engine::run is, down to the calls of the stages' functions.
 *
 *	Engine::run          two stream copies that bring the number of the program to run, the
 *	                     exchange that tells all tiles, a switch over the modes
 *	train, evaluate ..   Repeat over the pipeline runs of an execution: FIFOs undefined,
 *	                     accumulators zeroed, ramp-up, Repeat of the main phase, ramp-down,
 *	                     weight update; Sequential has a Repeat over the micro-batches
 *	                     instead of the three
 */
#ifndef IPU_CONTROL_H
#define IPU_CONTROL_H

#include "ipu/compile/ipu_program.h"

/* What an Engine::run can be asked for. */
struct ipu_mode {
	const char *name; /* "train" */
	const struct ipu_schedule *schedule;
	struct ipu_timeline *timeline; /* its transfers get their programs */
	int64_t runs;                  /* pipeline runs of an execution */
};

/* How time steps become Sequences: the first @lead, then @period again and again, then the rest. */
struct ipu_folding {
	int lead, period, repeats; /* repeats 0: there is no main phase */
	int microbatches;          /* that begin in a period */
	int slots;                 /* Sequences; the weight update has one more */
};
struct ipu_folding ipu_control_fold(const struct ipu_schedule *schedule,
				    const struct ipu_timeline *timeline);

/* Write the control programs behind the functions; once. */
enum status ipu_control_add(struct ipu_executable *executable, const struct ipu_mode *modes,
			    int count, struct err *err);

#endif /* IPU_CONTROL_H */
