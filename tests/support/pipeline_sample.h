/*
 * Requests for a pipeline, for the tests of ipu_pipeline.h.
 *
 * A sample lends its lists to its params, so it stays where it was filled.
 */
#ifndef PIPELINE_SAMPLE_H
#define PIPELINE_SAMPLE_H

#include "common/rng.h"
#include "ipu/ipu_pipeline.h"

#define PIPELINE_SAMPLE_STAGES 16

struct pipeline_sample {
	struct ipu_pipeline_params params;
	int64_t forward[PIPELINE_SAMPLE_STAGES], input[PIPELINE_SAMPLE_STAGES];
	int64_t weight[PIPELINE_SAMPLE_STAGES];
};

/* @chunks are for 1f1b-interleaved; the others get 1. Times are left as they are. */
void pipeline_sample_fill(struct pipeline_sample *sample, enum ipu_schedule_kind kind, int stages,
			  int microbatches, int chunks);
/* The same times for all stages, ns. */
void pipeline_sample_times(struct pipeline_sample *sample, int64_t f, int64_t b, int64_t w,
			   int64_t c);
/* Other times for every stage, below 100 ns; hops of nothing or less than 30 ns. */
void pipeline_sample_random(struct pipeline_sample *sample, struct rng *rng);

/* Do the schedule's rules allow it? */
bool pipeline_sample_holds(const struct pipeline_sample *sample);
/* Simulate what they allow; the caller's. */
struct ipu_pipeline *pipeline_sample_run(const struct pipeline_sample *sample);

#endif /* PIPELINE_SAMPLE_H */
