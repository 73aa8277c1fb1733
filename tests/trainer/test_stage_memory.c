/*
 * What stages of graphs leave out, what memory they take, and how they fail.
 */
#include <string.h>

#include "common/mem.h"
#include "support/graph_pipe.h"

/* ---- what is not done ------------------------------------------------------------------------ */

struct spans {
	int forwards[GRAPH_LAYERS], backwards[GRAPH_LAYERS];
	bool back;
};

static void note_span(void *user, int layer, bool begin)
{
	struct spans *spans = user;

	if (begin && spans->back)
		spans->backwards[layer]++;
	else if (begin)
		spans->forwards[layer]++;
}

static void trace_graph(struct spans *spans, const struct graph *g, bool fixed_input)
{
	struct graph_way way = {.fixed_input = fixed_input, .trace = note_span, .user = spans};
	static float weights[GRAPH_WEIGHTS];
	static struct graph_micro m;
	struct graph_pipe pipe;

	memset(spans, 0, sizeof(*spans));
	graph_weights(g, weights, 3);
	graph_micro_init(&m, g, 1);
	graph_pipe_open(&pipe, g, &way, weights);
	graph_pipe_forward(&pipe, 0, 0, &m);
	spans->back = true;
	graph_pipe_backward(&pipe, 0, 0, &m);
	graph_pipe_close(&pipe);
	for (int p = 0; p < g->model.param_count; p++)
		if (!g->params[p].trainable)
			assert_true(m.gradients[g->params[p].offset] == GRAPH_UNSET);
}

static void test_layers_before_the_first_that_learns_have_no_backward_pass(void **state)
{
	static struct graph g;
	struct spans spans;

	(void)state;
	graph_frozen_layers(&g);
	trace_graph(&spans, &g, true);
	for (int i = 0; i < g.model.layer_count; i++)
		/* The ReLU is fused; scale, tanh and the negation of scale do not learn. */
		assert_int_equal(spans.backwards[i], i == 2 || i == 4 || i == 6);
	trace_graph(&spans, &g, false);
	for (int i = 0; i < g.model.layer_count; i++) {
		assert_int_equal(spans.forwards[i], i != 3);
		assert_int_equal(spans.backwards[i], i != 3);
	}
}

static void test_dead_branches_have_no_backward_pass_and_no_gradient(void **state)
{
	static struct graph g;
	struct spans spans;

	(void)state;
	graph_dead_branches(&g);
	trace_graph(&spans, &g, false);
	assert_int_equal(spans.backwards[0], 1);
	assert_int_equal(spans.backwards[1], 0);
	assert_int_equal(spans.backwards[2], 0);
	assert_int_equal(spans.forwards[2], 1);
}

/* The softmax's input is kept as it is, though layers around work in place. */
static void test_logits_are_what_comes_before_the_softmax(void **state)
{
	static float weights[GRAPH_WEIGHTS], with[GRAPH_WEIGHTS], without[GRAPH_WEIGHTS];
	float slopes[GRAPH_BATCH * 4], input[GRAPH_BATCH * 4], to_input[GRAPH_BATCH * 4],
		expected[GRAPH_BATCH * 4];
	static struct graph g;

	(void)state;
	graph_init(&g, 4);
	graph_one(&g, GRAPH_SCALE, MODEL_INPUT);
	graph_two(&g, GRAPH_SUM, 0, MODEL_INPUT);
	graph_one(&g, GRAPH_NEGATE, 1);
	graph_one(&g, GRAPH_SOFTMAX, 2);
	graph_one(&g, GRAPH_OUTFEED, 3);
	graph_weights(&g, weights, 3);
	math_fill(input, ARRAY_LEN(input), 8, -1.0f, 1.0f);
	for (int softmax = 0; softmax < 2; softmax++) {
		struct stage_params p = {
			.model = &g.model, .batch = GRAPH_BATCH, .slots = 1, .poison = true};
		struct stage *stage;

		p.training = true;
		p.logits_loss = softmax;
		p.layer_count = g.model.layer_count = softmax ? 5 : 3;
		assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
		memcpy(stage_input(stage, 0), input, sizeof(input));
		stage_forward(stage, 0, GRAPH_BATCH, 0, weights, NULL, NULL);
		math_fill(slopes, ARRAY_LEN(slopes), 9, -1.0f, 1.0f);
		if (softmax)
			assert_memory_equal(stage_logits(stage, 0), expected, sizeof(expected));
		else
			memcpy(expected, stage_output(stage, 0), sizeof(expected));
		assert_true(softmax == !!stage_logits(stage, 0));
		stage_backward(stage, 0, weights, slopes, softmax ? with : without, to_input);
		stage_free(stage);
	}
	assert_memory_equal(with, without, g.model.weights * sizeof(float));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t memory_of(const struct graph *g, bool training, bool unshared, int slots)
{
	struct stage_params p = {
		.model = &g->model,
		.layer_count = g->model.layer_count,
		.batch = 16,
		.slots = slots,
		.training = training,
		.fixed_input = true,
		.unshared = unshared,
	};

	return stage_memory(&p);
}

static void test_memory_is_what_lives_at_the_same_time(void **state)
{
	const int64_t tensor = 16 * 5 * (int64_t)sizeof(float);
	static struct graph g;
	int x = MODEL_INPUT;

	(void)state;
	graph_init(&g, 5);
	for (int i = 0; i < 6; i++)
		x = graph_one(&g, GRAPH_PICK, x);
	/* Input and output; two tensors at a time, what a layer keeps, and the scratch memory. */
	assert_int_equal(memory_of(&g, false, false, 1), (2 + 2 + 1 + 1) * tensor);
	assert_int_equal(memory_of(&g, false, false, 3), (3 * 2 + 2 + 1 + 1) * tensor);
	/* Nothing learns: training takes no more. */
	assert_int_equal(memory_of(&g, true, false, 3), (3 * 2 + 2 + 1 + 1) * tensor);

	graph_init(&g, 5);
	x = graph_one(&g, GRAPH_SCALE, MODEL_INPUT);
	for (int i = 0; i < 6; i++)
		x = graph_one(&g, GRAPH_NEGATE, x);
	/* All in place, and the gradients in the one that comes in. */
	assert_int_equal(memory_of(&g, false, false, 1), 2 * tensor);
	assert_int_equal(memory_of(&g, true, false, 1), 2 * tensor + 0 * tensor);
	assert_int_equal(memory_of(&g, true, true, 1), (2 + 6 + 6) * tensor);
}

struct tapped {
	const float *input;
	int count;
};

static void check_tap(void *user, const struct stage_tapped *shown)
{
	struct tapped *tapped = user;
	const float sign = shown->layer == 1 ? -1.0f : 1.0f;

	assert_int_equal(shown->count, GRAPH_BATCH * 4);
	for (size_t i = 0; i < shown->count; i++)
		assert_true(shown->values[i] == sign * tapped->input[i]);
	tapped->count++;
}

static void test_more_than_the_machine_has_is_refused_with_its_size(void **state)
{
	struct stage_params p = {.layer_count = 1, .batch = 1 << 30, .slots = 2, .training = true};
	static struct graph g;
	struct stage *stage;
	struct err err;

	(void)state;
	graph_init(&g, 1 << 12);
	graph_one(&g, GRAPH_SCALE, MODEL_INPUT);
	p.model = &g.model;
	assert_int_equal(stage_memory(&p), INT64_C(4) << (12 + 30 + 2));
	assert_int_equal(stage_new(&stage, &p, &err), ST_LIMIT);
	assert_null(stage);
	assert_contains(err.text, "out of memory: 64 TB for");
}

/* The product of 2^12 floats and 2^52 items is 2^64, of which a size_t keeps 0. */
static void test_more_than_can_be_counted_is_not_little(void **state)
{
	struct stage_params p = {.layer_count = 1, .batch = INT64_C(1) << 52, .slots = 1};
	static struct graph g;

	(void)state;
	graph_init(&g, 1 << 12);
	graph_one(&g, GRAPH_SCALE, MODEL_INPUT);
	p.model = &g.model;
	assert_int_equal(stage_memory(&p), STAGE_UNCOUNTABLE);
}

static void test_outfeeds_show_what_is_overwritten_later(void **state)
{
	struct stage_params p = {
		.layer_count = 5, .batch = GRAPH_BATCH, .slots = 1, .poison = true};
	struct tapped tapped = {0};
	struct stage *stage;
	static struct graph g;
	float input[GRAPH_BATCH * 4];
	int x = MODEL_INPUT;

	(void)state;
	graph_init(&g, 4);
	x = graph_one(&g, GRAPH_NEGATE, x);
	x = graph_one(&g, GRAPH_OUTFEED, x);
	x = graph_one(&g, GRAPH_NEGATE, x);
	x = graph_one(&g, GRAPH_OUTFEED, x);
	graph_one(&g, GRAPH_NEGATE, x);
	p.model = &g.model;
	math_fill(input, ARRAY_LEN(input), 8, -1.0f, 1.0f);
	tapped.input = input;
	assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
	memcpy(stage_input(stage, 0), input, sizeof(input));
	stage_forward(stage, 0, GRAPH_BATCH, 0, NULL, check_tap, &tapped);
	assert_int_equal(tapped.count, 2);
	stage_free(stage);
}

static void test_a_step_allocates_nothing(void **state)
{
	static float weights[GRAPH_WEIGHTS];
	static struct graph_micro m;
	static struct graph g;
	struct graph_way way = {.cuts = 0x110};
	struct graph_pipe pipe;

	(void)state;
	graph_residual_blocks(&g);
	graph_weights(&g, weights, 1);
	graph_micro_init(&m, &g, 1);
	graph_pipe_open(&pipe, &g, &way, weights);
	support_fail_alloc(0);
	for (int s = 0; s < pipe.count; s++)
		graph_pipe_forward(&pipe, s, 0, &m);
	for (int s = pipe.count - 1; s >= 0; s--)
		graph_pipe_backward(&pipe, s, 0, &m);
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	graph_pipe_close(&pipe);
}

static void test_no_memory_leaves_nothing(void **state)
{
	static struct graph g;
	bool failed = true;

	(void)state;
	graph_residual_blocks(&g);
	for (long n = 0; failed; n++) {
		struct stage_params p = {.model = &g.model,
					 .first_layer = 3,
					 .layer_count = g.model.layer_count - 3,
					 .batch = GRAPH_BATCH,
					 .slots = 2,
					 .training = true};
		struct stage *stage;
		enum status status;

		support_fail_alloc(n);
		status = stage_new(&stage, &p, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* The plan's arena asks for less where it is refused more. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		assert_true(status == ST_OK ? !!stage : !stage);
		stage_free(stage);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_before_the_first_that_learns_have_no_backward_pass),
		cmocka_unit_test(test_dead_branches_have_no_backward_pass_and_no_gradient),
		cmocka_unit_test(test_logits_are_what_comes_before_the_softmax),
		cmocka_unit_test(test_memory_is_what_lives_at_the_same_time),
		cmocka_unit_test(test_more_than_the_machine_has_is_refused_with_its_size),
		cmocka_unit_test(test_more_than_can_be_counted_is_not_little),
		cmocka_unit_test(test_outfeeds_show_what_is_overwritten_later),
		cmocka_unit_test(test_a_step_allocates_nothing),
		cmocka_unit_test(test_no_memory_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
