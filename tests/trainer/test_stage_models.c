/*
 * Stages of whole networks: the same bytes shared or not, fused or not, cut or not, on any pool, in
 * training and in evaluation; and how much memory sharing saves.
 */
#include "trainer/models/stage.h"

#include <string.h>

#include "common/mem.h"
#include "support/network.h"

#define STAGES 4

struct way {
	int stages;
	bool unfused, unshared, poison, split;
	unsigned helpers;
};

/* What must be the same: outputs, gradients, and the weights with their moving statistics. */
struct outcome {
	float *output, *gradients, *weights;
};

static void outcome_open(struct outcome *out, const struct network *net)
{
	out->output = network_floats(net->output_count);
	out->gradients = network_floats(net->model->weights);
	out->weights = network_floats(net->model->weights);
}

static void outcome_close(struct outcome *out)
{
	mem_free(out->output);
	mem_free(out->gradients);
	mem_free(out->weights);
}

static void open_stages(struct stage **stages, const struct network *net, const struct way *way,
			struct pool *pool, bool training)
{
	struct stage_params p = {
		.model = net->model,
		.batch = NETWORK_BATCH,
		.slots = 1,
		.training = training,
		.split = way->split,
		.fixed_input = true,
		.pool = pool,
		.spread = true,
		.unfused = way->unfused,
		.unshared = way->unshared,
		.poison = way->poison,
	};
	struct err err;

	for (int s = 0; s < way->stages; s++) {
		p.first_layer = net->model->layer_count * s / way->stages;
		p.layer_count = net->model->layer_count * (s + 1) / way->stages - p.first_layer;
		if (stage_new(&stages[s], &p, &err) != ST_OK)
			fail_msg("%s", err.text);
	}
}

static void run_forward(struct stage **stages, const struct network *net, int count,
			struct outcome *out)
{
	memcpy(stage_input(stages[0], 0), net->input, net->input_count * sizeof(float));
	for (int s = 0; s < count; s++) {
		if (s)
			stage_receive(stages[s], 0, stages[s - 1], 0);
		stage_forward(stages[s], 0, NETWORK_BATCH, 7, out->weights, NULL, NULL);
	}
	memcpy(out->output, stage_output(stages[count - 1], 0), net->output_count * sizeof(float));
}

static void run_backward(struct stage **stages, const struct network *net, int count, bool split,
			 struct outcome *out)
{
	float *flow = network_floats(net->output_count);

	memcpy(flow, net->slopes, net->output_count * sizeof(float));
	for (int s = count - 1; s >= 0; s--) {
		float *to = s ? network_floats(stage_input_count(stages[s])) : NULL;

		stage_backward(stages[s], 0, out->weights, flow, split ? NULL : out->gradients, to);
		if (split)
			stage_backward_weights(stages[s], 0, out->weights, out->gradients);
		mem_free(flow);
		flow = to;
	}
}

static void run_way(struct outcome *out, const struct network *net, const struct way *way,
		    bool training)
{
	struct stage *stages[STAGES];
	struct pool *pool;

	assert_int_equal(pool_new(&pool, way->helpers, NULL), ST_OK);
	open_stages(stages, net, way, pool, training);
	memcpy(out->weights, net->initial, net->model->weights * sizeof(float));
	run_forward(stages, net, way->stages, out);
	if (training)
		run_backward(stages, net, way->stages, way->split, out);
	for (int s = 0; s < way->stages; s++)
		stage_free(stages[s]);
	pool_free(pool);
}

static void check_network(const struct network *net, bool training)
{
	static const struct way ways[] = {
		{.stages = 1, .poison = true},
		{.stages = 1, .unfused = true, .poison = true},
		{.stages = 1, .unshared = true},
		{.stages = 1, .helpers = 3},
		{.stages = STAGES, .poison = true, .helpers = 1},
		{.stages = 1, .poison = true, .split = true},
		{.stages = STAGES, .poison = true, .helpers = 1, .split = true},
	};
	const struct way plain = {.stages = 1, .unfused = true, .unshared = true};
	size_t weights = net->model->weights * sizeof(float);
	struct outcome wanted, got;

	outcome_open(&wanted, net);
	outcome_open(&got, net);
	run_way(&wanted, net, &plain, training);
	for (size_t i = 0; i < net->output_count; i++)
		assert_true(wanted.output[i] == wanted.output[i]);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		run_way(&got, net, &ways[i], training);
		assert_memory_equal(wanted.output, got.output, net->output_count * sizeof(float));
		assert_memory_equal(wanted.gradients, got.gradients, weights);
		assert_memory_equal(wanted.weights, got.weights, weights);
	}
	outcome_close(&wanted);
	outcome_close(&got);
}

static void test_networks_are_the_same_bytes_whatever_the_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < NETWORKS; i += support_stride()) {
		struct network net;

		network_open(&net, networks[i]);
		check_network(&net, true);
		check_network(&net, false);
		network_close(&net);
	}
}

static int64_t memory_of(const struct network *net, bool training, bool unshared)
{
	const struct stage_params p = {
		.model = net->model,
		.layer_count = net->model->layer_count,
		.batch = NETWORK_BATCH,
		.slots = 1,
		.training = training,
		.fixed_input = true,
		.unshared = unshared,
	};

	return stage_memory(&p);
}

static void test_sharing_saves_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < NETWORKS; i += support_stride()) {
		struct network net;

		network_open(&net, networks[i]);
		assert_true(memory_of(&net, true, false) > 0);
		assert_true(memory_of(&net, true, false) < memory_of(&net, true, true));
		assert_true(memory_of(&net, false, false) < memory_of(&net, false, true));
		assert_true(memory_of(&net, false, false) < memory_of(&net, true, false));
		network_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_networks_are_the_same_bytes_whatever_the_way),
		cmocka_unit_test(test_sharing_saves_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
