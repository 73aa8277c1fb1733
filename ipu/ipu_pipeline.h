/*
 * A stand-alone pipeline, for `ipu-plan schedule`: any schedule of the table, simulated work by
 * work with given times, and in closed form if one is known.
 *
 * p stages on p devices, m micro-batches. A micro-batch takes F on a stage for its forward, B for
 * the gradient of the stage's input and W for the gradient of its weights, T = F + B + W. With
 * chunks (1f1b-interleaved) a device has several pieces of the model, each with its share of the
 * stage's time. The output of a device reaches the next one after one hop of communication c, which
 * occupies no device. Poplar's schedules run in lockstep: a step lasts as long as its busiest
 * device, plus c if one of its programs sends to another device.
 *
 * In schedules that do not split the backward, B takes B + W and there is no W: the gradient is
 * sent when both are done. A time is an int64_t of ns; sums are exact if all works together take
 * less than 2^53 ns, which is 104 days.
 */
#ifndef IPU_PIPELINE_H
#define IPU_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_schedule.h"

#define IPU_PIPELINE_STAGES_MAX 512
#define IPU_PIPELINE_WORKS_MAX  (1 << 20)

struct ipu_pipeline_params {
	enum ipu_schedule_kind kind;
	int stages, microbatches;
	int chunks; /* per stage: at least 2 for a chunked schedule, else 0 or 1 */
	const int64_t *forward_ns, *backward_input_ns, *backward_weight_ns; /* by stage */
	int64_t communication_ns;                                           /* of one hop */
};

/* A work. A chunk takes its share of the stage's time. */
struct ipu_pipeline_work {
	int stage, chunk, microbatch;
	char phase; /* enum ipu_work_phase: F, B, W */
	int64_t start_ns, end_ns;
};

/* As defined in ipu_schedule.h; NaN if no closed form is known for the parameters. */
struct ipu_pipeline_closed {
	double makespan_ns, idle_fraction, bubble_rate, bubble_over_ideal;
};

struct ipu_pipeline {
	enum ipu_schedule_kind kind;
	int stages, microbatches, chunks;
	struct ipu_pipeline_work *works; /* by stage, then time */
	int *first;               /* stage s has works[first[s]] .. works[first[s + 1] - 1] */
	double *peak_activations; /* by stage: most micro-batches between the start of F and the
				   * end of B; a chunk counts 1 / chunks */
	int *peak_weights;        /* by stage: most delayed W's (after B, before the end of W) */
	struct ipu_bubble bubble; /* measured on the works */
	struct ipu_pipeline_closed closed;
};

/* Return whether the schedule needs chunks, at least two. */
bool ipu_pipeline_chunked(enum ipu_schedule_kind kind);

/* Return ST_OK, or report the rule that @params violate; ST_LIMIT if they are too many or too long.
 */
enum status ipu_pipeline_check(const struct ipu_pipeline_params *params, struct err *err);

/* Simulate. On success the caller owns *@out, else it is NULL. Time and memory are proportional to
 * the number of works. */
enum status ipu_pipeline_new(struct ipu_pipeline **out, const struct ipu_pipeline_params *params,
			     struct err *err);
void ipu_pipeline_free(struct ipu_pipeline *pipeline); /* accepts NULL */

/*
 * Only the closed forms, in ns; formulas and sources in docs/cost-model.md. Equal to the simulation
 * wherever they are not NaN, with one exception: 1f1b-interleaved with communication is the
 * published figure, which has fewer hops than Megatron's order. @params must be valid.
 */
void ipu_pipeline_closed_get(const struct ipu_pipeline_params *params,
			     struct ipu_pipeline_closed *out);

#endif /* IPU_PIPELINE_H */
