/*
 * Pipeline schedules to compare with: who would do what when, simulated event by event, and by
 * closed form where one is known.
 *
 * p stages on p devices, m micro-batches. A micro-batch takes F on a stage for its forward, B for
 * the gradient of the stage's input and W for the gradient of its weights, T = F + B + W; what a
 * stage makes is at the next one after one hop of communication c, which keeps no device busy.
 *
 *	gpipe             all forwards, then all backwards (arXiv 1811.06965)
 *	1f1b              p - s forwards of stage s in flight, then backward and forward in turn
 *	1f1b-interleaved  `chunks` pieces of the model on each device (Megatron-LM,
 *	                  arXiv 2104.04473)
 *	zb-h1             the order of 1f1b; stage s runs a W after each B once more than s
 *	                  backwards are done, the rest at its end (arXiv 2401.10241)
 *	zb-h2             2 (p - s) - 1 forwards in flight; stage s holds back 2 s W's (ibid.)
 *	Grouped, Interleaved, Sequential
 *	                  ipu_schedule.h's, in lockstep: a step lasts as long as its busiest IPU,
 *	                  and c more if one of its programs sends to another IPU
 *
 * The first three and the last three do not split the backward: their B takes B + W, there is no W,
 * and the gradient leaves when both are done. A time is an int64_t of ns, so every sum is exact.
 */
#ifndef IPU_PIPELINE_H
#define IPU_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ipu/ipu_bubble.h"

enum ipu_pipeline_kind {
	IPU_PIPELINE_GPIPE,
	IPU_PIPELINE_1F1B,
	IPU_PIPELINE_1F1B_INTERLEAVED,
	IPU_PIPELINE_ZB_H1,
	IPU_PIPELINE_ZB_H2,
	IPU_PIPELINE_GROUPED,
	IPU_PIPELINE_INTERLEAVED,
	IPU_PIPELINE_SEQUENTIAL,
	IPU_PIPELINE_KINDS
};

#define IPU_PIPELINE_STAGES_MAX 512
#define IPU_PIPELINE_WORKS_MAX  (1 << 20)

struct ipu_pipeline_params {
	enum ipu_pipeline_kind kind;
	int stages, microbatches;
	int chunks; /* of a stage, for 1f1b-interleaved: at least 2; else 0 or 1 */
	const int64_t *forward_ns, *backward_input_ns, *backward_weight_ns; /* by stage */
	int64_t communication_ns;                                           /* of one hop */
};

/* A piece of work. A chunk takes its share of the stage's time. */
struct ipu_pipeline_work {
	int stage, chunk, microbatch;
	char phase; /* F, B, W */
	int64_t start_ns, end_ns;
};

/* By ipu_bubble.h's definitions; NaN where no closed form is known for the parameters. */
struct ipu_pipeline_closed {
	double makespan_ns, idle_fraction, bubble_rate, bubble_over_ideal;
};

struct ipu_pipeline {
	enum ipu_pipeline_kind kind;
	int stages, microbatches, chunks;
	struct ipu_pipeline_work *works; /* of all stages, stage after stage, each in time */
	int *first;               /* stage s has works[first[s]] .. works[first[s + 1] - 1] */
	double *peak_activations; /* by stage: micro-batches between the start of their F and the
				   * end of their B at most; a chunk counts 1 / chunks */
	int *peak_weights;        /* by stage: W's held back at most (after B, before W's end) */
	struct ipu_bubble bubble; /* measured on the works */
	struct ipu_pipeline_closed closed;
};

/* Names as above; what a schedule is in half a sentence; whether it has W's of their own. */
const char *ipu_pipeline_name(enum ipu_pipeline_kind kind);
const char *ipu_pipeline_about(enum ipu_pipeline_kind kind);
bool ipu_pipeline_splits(enum ipu_pipeline_kind kind);
/* ST_NOTFOUND with the nearest name, or all. */
enum status ipu_pipeline_kind_get(const char *name, enum ipu_pipeline_kind *out, struct err *err);

/*
 * The rule that @params break, in words; ST_LIMIT where they are too many or too long; else ST_OK.
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
