/*
 * Bubble rates of tables 5 and 9 of the zero-bubble paper (arXiv 2401.10241): GPT of 1.5 and 6.2
 * billion parameters in eight stages. Interleaved 1F1B is its closed form, the others are
 * simulated. One thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "fidelity.h"
#include "ipu/ipu_pipeline.h"

#define STAGES 8

/* A row of the paper: times in us, and the rate of each of `kinds`. */
struct bubble_row {
	const char *model;
	int microbatches, chunks;
	int64_t forward, backward_input, backward_weight, communication;
	double rate[4];
};

static const enum ipu_schedule_kind kinds[] = {IPU_1F1B, IPU_1F1B_INTERLEAVED, IPU_ZB_H1,
					       IPU_ZB_H2};

static const struct bubble_row rows[] = {
	{"1.5B", 24, 3, 18522, 18086, 9337, 601, {0.2431, 0.1055, 0.1585, 0.1083}},
	{"1.5B", 32, 3, 18513, 18086, 9331, 626, {0.1985, 0.0818, 0.1242, 0.0837}},
	{"1.5B", 64, 3, 18546, 18097, 9321, 762, {0.1240, 0.0443, 0.0674, 0.0444}},
	{"6.2B", 24, 4, 29718, 29444, 19927, 527, {0.2347, 0.0808, 0.1323, 0.0698}},
	{"6.2B", 32, 4, 29802, 29428, 19530, 577, {0.1898, 0.0628, 0.1045, 0.0559}},
	{"6.2B", 64, 4, 29935, 29621, 19388, 535, {0.1091, 0.0320, 0.0554, 0.0294}},
};

static double percent(const struct workload *workload, const struct ipu_target *target)
{
	const struct bubble_row *row = workload->bubble;
	int64_t forward[STAGES], input[STAGES], weight[STAGES];
	const struct ipu_pipeline_params params = {
		.kind = workload->schedule,
		.stages = STAGES,
		.microbatches = row->microbatches,
		.chunks = ipu_pipeline_chunked(workload->schedule) ? row->chunks : 1,
		.forward_ns = forward,
		.backward_input_ns = input,
		.backward_weight_ns = weight,
		.communication_ns = row->communication * 1000};
	struct ipu_pipeline *pipeline;
	struct err err = {ST_OK, ""};
	double rate;

	(void)target;
	for (int s = 0; s < STAGES; s++) {
		forward[s] = row->forward * 1000;
		input[s] = row->backward_input * 1000;
		weight[s] = row->backward_weight * 1000;
	}
	if (ipu_pipeline_new(&pipeline, &params, &err) != ST_OK) {
		fprintf(stderr, "fidelity: %s\n", err.text);
		exit(1);
	}
	rate = ipu_pipeline_chunked(params.kind) ? pipeline->closed.bubble_rate
						 : pipeline->bubble.bubble_rate;
	ipu_pipeline_free(pipeline);
	return 100 * rate;
}

void fidelity_bubbles(void)
{
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct workload workload = {.table = "bubble rates",
						    .unit = "%",
						    .target = "ipu2",
						    .source = "[ZB]",
						    .published = 100 * rows[i].rate[k],
						    .simulate = percent,
						    .bubble = &rows[i],
						    .schedule = kinds[k]};

			snprintf(workload.name, sizeof(workload.name), "%s, %s, m = %d",
				 ipu_schedule_name(kinds[k]), rows[i].model, rows[i].microbatches);
			fidelity_add(&workload);
		}
}
