/*
 * Control programs: the tree below Engine::run, down to the calls of the stages' functions.
 *
 * Engine::run          two stream copies that transfer the number of the program to run, the
 *                      exchange that broadcasts it to all tiles, a switch over the modes
 * train, evaluate ..   Repeat over the pipeline runs of an execution: FIFOs undefined,
 *                      accumulators zeroed, ramp-up, Repeat of the main phase, ramp-down,
 *                      weight update; Sequential has a Repeat over the micro-batches
 *                      instead of the three
 */
#ifndef IPU_CONTROL_H
#define IPU_CONTROL_H

#include "ipu/compile/ipu_program.h"

/* A mode of Engine::run. */
struct ipu_mode {
	const char *name; /* "train" */
	const struct ipu_schedule *schedule;
	struct ipu_timeline *timeline; /* ipu_control_add() stores programs in its transfers */
	int64_t runs;                  /* pipeline runs per execution */
};

/* Time steps as Sequences: the first @lead, then @period of them @repeats times, then the rest. */
struct ipu_folding {
	int lead, period, repeats; /* repeats 0: no main phase */
	int microbatches;          /* that begin in a period */
	int slots;                 /* Sequences; the weight update has one more */
};
struct ipu_folding ipu_control_fold(const struct ipu_schedule *schedule,
				    const struct ipu_timeline *timeline);

/* Append the control programs to those of the functions; call once. */
enum status ipu_control_add(struct ipu_executable *executable, const struct ipu_mode *modes,
			    int count, struct err *err);

#endif /* IPU_CONTROL_H */
