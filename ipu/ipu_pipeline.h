/*
 * A pipeline by itself, for `ipu-plan schedule`: any schedule of the table simulated work by work
 * for given times, and by closed form where one is known.
 *
 * p stages on p devices, m micro-batches. A micro-batch takes F on a stage for its forward, B for
 * the gradient of the stage's input and W for the gradient of its weights, T = F + B + W. With
 * chunks (1f1b-interleaved) a device has several pieces of the model, each with its share of the
 * stage's time. What a device makes is at the next one after one hop of communication c, which
 * keeps nobody busy; of Poplar's schedules, in lockstep, a step lasts as long as its busiest
 * device, and c more if one of its programs sends to another.
 *
 * Schedules that do not split the backward have a B that takes B + W and no W: the gradient leaves
 * when both are done. A time is an int64_t of ns; sums are exact where all works together take less
 * than 2^53 ns, which is 104 days.
 */
#ifndef IPU_PIPELINE_H
#define IPU_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_bubble.h"

#define IPU_PIPELINE_STAGES_MAX 512
#define IPU_PIPELINE_WORKS_MAX  (1 << 20)

struct ipu_pipeline_params {
	enum ipu_schedule_kind kind;
	int stages, microbatches;
	int chunks; /* of a stage, where they are dealt in turn: at least 2; else 0 or 1 */
	const int64_t *forward_ns, *backward_input_ns, *backward_weight_ns; /* by stage */
	int64_t communication_ns;                                           /* of one hop */
};

/* A piece of work. A chunk takes its share of the stage's time. */
struct ipu_pipeline_work {
	int stage, chunk, microbatch;
	char phase; /* enum ipu_work_phase: F, B, W */
	int64_t start_ns, end_ns;
};

/* By ipu_bubble.h's definitions; NaN where no closed form is known for the parameters. */
struct ipu_pipeline_closed {
	double makespan_ns, idle_fraction, bubble_rate, bubble_over_ideal;
};

struct ipu_pipeline {
	enum ipu_schedule_kind kind;
	int stages, microbatches, chunks;
	struct ipu_pipeline_work *works; /* of all stages, stage after stage, each in time */
	int *first;               /* stage s has works[first[s]] .. works[first[s + 1] - 1] */
	double *peak_activations; /* by stage: micro-batches between the start of their F and the
				   * end of their B at most; a chunk counts 1 / chunks */
	int *peak_weights;        /* by stage: W's held back at most (after B, before W's end) */
	struct ipu_bubble bubble; /* measured on the works */
	struct ipu_pipeline_closed closed;
};

/* Takes chunks, and at least two. */
bool ipu_pipeline_chunked(enum ipu_schedule_kind kind);

/* The rule that @params break, in words; ST_LIMIT where they are too many or too long; else ST_OK.
 */
enum status ipu_pipeline_check(const struct ipu_pipeline_params *params, struct err *err);

/* Simulate. On success *@out is the caller's, else NULL. Takes time and memory in proportion to the
 * number of works. */
enum status ipu_pipeline_new(struct ipu_pipeline **out, const struct ipu_pipeline_params *params,
			     struct err *err);
void ipu_pipeline_free(struct ipu_pipeline *pipeline); /* accepts NULL */

/*
 * The closed forms alone, in ns; formulas and sources in docs/cost-model.md. Equal to the
 * simulation wherever they are claimed, but for one: 1f1b-interleaved with communication is the
 * published figure, which has fewer hops than Megatron's order pays. @params have been checked.
 */
void ipu_pipeline_closed_get(const struct ipu_pipeline_params *params,
			     struct ipu_pipeline_closed *out);

#endif /* IPU_PIPELINE_H */
