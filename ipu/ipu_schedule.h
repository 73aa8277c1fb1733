/*
 * Pipeline schedules: which stage runs which micro-batch on which IPU in which order.
 *
 * Time is divided into steps that end with the copies between IPUs. With N stages, S = 2N stage
 * programs (F0 .. F(N-1), B(N-1) .. B0) when training and S = N otherwise, and G micro-batches in
 * lines of K: line i starts its first program at step offset_i; every S steps each line takes its
 * next micro-batch. Grouped: K = S, offsets 0, 1, .. S-1. Interleaved: K = N, offsets so that no
 * IPU runs two programs in one step. Sequential: K = 1, every program of a micro-batch before the
 * next one. G must be a multiple of K and at least K. After the last step the weight update runs
 * once. Source: the rules of TensorFlow for IPU's pipelining (facts in docs/cost-model.md).
 */
#ifndef IPU_SCHEDULE_H
#define IPU_SCHEDULE_H

#include <stdbool.h>

#include "common/err.h"

enum ipu_schedule_kind {
	IPU_GROUPED,
	IPU_INTERLEAVED,
	IPU_SEQUENTIAL,
	IPU_SCHEDULE_KINDS
};

/* One stage program of one micro-batch. */
struct ipu_work {
	int time_step; /* from 0 */
	int stage;
	int microbatch;
	char phase; /* 'F' or 'B' */
};

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
	int time_steps;         /* non-empty ones */
	int *device;            /* stage -> IPU */
	struct ipu_work *works; /* of all IPUs, IPU after IPU, each in its order of work */
	int *first;             /* IPU i has works[first[i]] .. works[first[i + 1] - 1] */
};

/* Text names: "Grouped", "Interleaved", "Sequential". */
const char *ipu_schedule_name(enum ipu_schedule_kind kind);
enum status ipu_schedule_kind_get(const char *name, enum ipu_schedule_kind *out, struct err *err);

/* The rule that @params break, with its name in the text; else ST_OK. @what is how the caller calls
 * the number of micro-batches, "gradient_accumulation.steps_per_replica" for one. */
enum status ipu_schedule_check(const struct ipu_schedule_params *params, const char *what,
			       struct err *err);

enum status ipu_schedule_new(struct ipu_schedule **out, const struct ipu_schedule_params *params,
			     struct err *err);
void ipu_schedule_free(struct ipu_schedule *schedule); /* accepts NULL */

/* Depth of the activation FIFO between the forward and the backward of @stage: Grouped 2 (N-1-s),
 * Interleaved N-1-s, Sequential and without training 0. */
int ipu_schedule_fifo_depth(const struct ipu_schedule *schedule, int stage);

/* Activations of @stage alive at once at most, from the start of a forward to the end of its
 * backward: FIFO depth + 1, and one more for Grouped training, where in every step the forward of a
 * new micro-batch runs before the backward of an old one: Grouped 2 (N-s), Interleaved N-s,
 * Sequential 1; without training 1. */
int ipu_schedule_live(const struct ipu_schedule *schedule, int stage);

#endif /* IPU_SCHEDULE_H */
