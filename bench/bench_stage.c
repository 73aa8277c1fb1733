/*
 * What a stage costs beside its layers' work: the time of the walk, and memory.
 *
 *	bench_stage [APPLICATION [BATCH [SLOTS]]]
 *
 * The walk is timed over layers that do nothing, in a chain and in residual blocks: nanoseconds of
 * a layer in a forward and a backward pass together, the least of many rounds. Of a model given in
 * Keras's JSON (its input's shape must be there): bytes of the tensors, gradients and working
 * memory of training and of evaluation, shared and each with its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "model/applications/application.h"
#include "trainer/layers/compute.h"
#include "trainer/models/stage.h"

#define LAYERS 100
#define ROUNDS 200
#define PASSES 50

static void nothing(const struct layer_pass *pass)
{
	(void)pass;
}

static const struct compute_ops empty_passes = {
	.forward = nothing,
	.backward = nothing,
	.adds = true,
};
static const struct layer_ops empty_ops = {
	.class_name = "Empty",
	.compute = &empty_passes,
	.most_inputs = 2,
	.reads_inputs = true,
};

struct walk {
	struct model model;
	struct model_layer layers[LAYERS];
	int inputs[LAYERS][2];
};

/* Every other layer of @residual also reads what the one two before made. */
static void build(struct walk *walk, bool residual)
{
	const struct model_shape shape = {.ndim = 1, .dim = {16}};

	memset(walk, 0, sizeof(*walk));
	walk->model = (struct model){
		.name = "walk", .layers = walk->layers, .layer_count = LAYERS, .input = shape};
	for (int i = 0; i < LAYERS; i++) {
		walk->inputs[i][0] = i - 1;
		walk->inputs[i][1] = i - 2;
		walk->layers[i] = (struct model_layer){
			.name = "layer",
			.ops = &empty_ops,
			.position = i,
			.inputs = walk->inputs[i],
			.input_count = residual && i % 2 ? 2 : 1,
			.input = shape,
			.output = shape,
			.reads_inputs = true,
		};
	}
}

static void stop(const struct err *err)
{
	fprintf(stderr, "bench_stage: %s\n", err->text);
	exit(1);
}

static double time_walk(bool residual)
{
	static struct walk walk;
	static float weights[16], gradient[16], to_input[16];
	struct stage_params p = {
		.model = &walk.model, .layer_count = LAYERS, .batch = 1, .slots = 1};
	struct stage *stage;
	double least = 1e30;
	struct err err;

	build(&walk, residual);
	p.training = true;
	if (stage_new(&stage, &p, &err) != ST_OK)
		stop(&err);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = clock_ns();
		double each;

		for (int i = 0; i < PASSES; i++) {
			stage_forward(stage, 0, 1, 0, weights, NULL, NULL);
			stage_backward(stage, 0, weights, gradient, weights, to_input);
		}
		each = (double)(clock_ns() - begin) / (PASSES * LAYERS);
		least = each < least ? each : least;
	}
	stage_free(stage);
	return least;
}

static void print_memory(const struct model *model, int64_t batch, int slots)
{
	static const struct {
		const char *text;
		bool training, unshared;
	} rows[] = {
		{"training, shared", true, false},
		{"training, each its own", true, true},
		{"evaluation, shared", false, false},
		{"evaluation, each its own", false, true},
	};

	printf("%s: %d layers, batches of %lld in %d slots\n", model->name, model->layer_count,
	       (long long)batch, slots);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stage_params p = {
			.model = model,
			.layer_count = model->layer_count,
			.batch = batch,
			.slots = slots,
			.training = rows[i].training,
			.logits_loss = true,
			.fixed_input = true,
			.unshared = rows[i].unshared,
		};

		printf("%-26s %10.1f MB\n", rows[i].text, (double)stage_memory(&p) * 1e-6);
	}
}

static void run_application(const char *name, int64_t batch, int slots)
{
	cJSON *wanted = cJSON_CreateObject(), *json;
	struct json_at at = json_root("application", wanted);
	struct model *model;
	struct err err;

	cJSON_AddStringToObject(wanted, "application", name);
	if (application_build(&json, &at, NULL, 0, &err) != ST_OK)
		stop(&err);
	at = json_root(name, json);
	if (model_new(&model, &at, NULL, &err) != ST_OK)
		stop(&err);
	print_memory(model, batch, slots);
	model_free(model);
	cJSON_Delete(json);
	cJSON_Delete(wanted);
}

int main(int argc, char **argv)
{
	int64_t batch = argc > 2 ? atoll(argv[2]) : 2;
	int slots = argc > 3 ? atoi(argv[3]) : 1;

	if (argc > 1) {
		run_application(argv[1], batch > 0 ? batch : 1, slots > 0 ? slots : 1);
		return 0;
	}
	printf("the walk, forward and backward: %.0f ns a layer in a chain, %.0f ns in residual "
	       "blocks\n",
	       time_walk(false), time_walk(true));
	return 0;
}
