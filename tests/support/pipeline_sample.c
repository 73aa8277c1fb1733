/*
 * Requests for a pipeline, for the tests of ipu_pipeline.h.
 */
#include "support/pipeline_sample.h"

#include "support/support.h"

void pipeline_sample_fill(struct pipeline_sample *sample, enum ipu_schedule_kind kind, int stages,
			  int microbatches, int chunks)
{
	sample->params = (struct ipu_pipeline_params){
		.kind = kind,
		.stages = stages,
		.microbatches = microbatches,
		.chunks = kind == IPU_1F1B_INTERLEAVED ? chunks : 1,
		.forward_ns = sample->forward,
		.backward_input_ns = sample->input,
		.backward_weight_ns = sample->weight,
	};
}

void pipeline_sample_times(struct pipeline_sample *sample, int64_t f, int64_t b, int64_t w,
			   int64_t c)
{
	for (int s = 0; s < PIPELINE_SAMPLE_STAGES; s++) {
		sample->forward[s] = f;
		sample->input[s] = b;
		sample->weight[s] = w;
	}
	sample->params.communication_ns = c;
}

struct ipu_pipeline *pipeline_sample_run(const struct pipeline_sample *sample)
{
	struct ipu_pipeline *pipeline;
	struct err err = {ST_OK, ""};

	if (ipu_pipeline_new(&pipeline, &sample->params, &err) != ST_OK)
		fail_msg("%s", err.text);
	return pipeline;
}

bool pipeline_sample_holds(const struct pipeline_sample *sample)
{
	return ipu_pipeline_check(&sample->params, NULL) == ST_OK;
}

void pipeline_sample_random(struct pipeline_sample *sample, struct rng *rng)
{
	for (int s = 0; s < PIPELINE_SAMPLE_STAGES; s++) {
		sample->forward[s] = rng_below(rng, 100);
		sample->input[s] = rng_below(rng, 100);
		sample->weight[s] = rng_below(rng, 100);
	}
	sample->params.communication_ns = rng_below(rng, 2) ? rng_below(rng, 30) : 0;
}
