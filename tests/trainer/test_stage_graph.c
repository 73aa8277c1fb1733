/*
 * Stages of graphs: gradients against central differences of a plain evaluation, and the same bytes
 * whatever is shared, fused, cut, interleaved or run by several threads.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/graph_pipe.h"

/* ---- the reference --------------------------------------------------------------------------- */

struct reference {
	const struct graph *graph;
	const struct graph_micro *micro;
	double weights[GRAPH_WEIGHTS], input[GRAPH_BATCH * GRAPH_WIDEST];
};

static double reference_value(const struct reference *r)
{
	int64_t in = graph_width(r->graph, MODEL_INPUT);
	int64_t out = graph_width(r->graph, r->graph->model.layer_count - 1);
	double value = 0.0, y[GRAPH_WIDTH];

	for (int64_t b = 0; b < GRAPH_BATCH; b++) {
		graph_evaluate(r->graph, r->weights, r->input + b * in, y);
		for (int64_t i = 0; i < out; i++)
			value += (double)r->micro->slopes[b * out + i] * y[i];
	}
	return value;
}

static double reference_slope(struct reference *r, double *x)
{
	const double h = 1e-6, kept = *x;
	double up, down;

	*x = kept + h;
	up = reference_value(r);
	*x = kept - h;
	down = reference_value(r);
	*x = kept;
	return (up - down) / (2.0 * h);
}

static void check_slope(double got, double wanted, const char *what, size_t at)
{
	if (!(fabs(got - wanted) < 1e-4 * (fabs(wanted) + 0.3)))
		fail_msg("%s[%zu]: the gradient is %.9g, the difference %.9g", what, at, got,
			 wanted);
}

static void check_differences(const struct graph *g, const float *weights,
			      const struct graph_micro *m)
{
	static struct reference r;
	int64_t in = graph_width(g, MODEL_INPUT), out = graph_width(g, g->model.layer_count - 1);
	double y[GRAPH_WIDTH];

	r.graph = g;
	r.micro = m;
	for (size_t i = 0; i < g->model.weights; i++)
		r.weights[i] = (double)weights[i];
	for (size_t i = 0; i < graph_input_count(g); i++)
		r.input[i] = (double)m->input[i];
	for (int64_t b = 0; b < GRAPH_BATCH; b++) {
		graph_evaluate(g, r.weights, r.input + b * in, y);
		for (int64_t i = 0; i < out; i++)
			check_slope((double)m->output[b * out + i], y[i], "output",
				    (size_t)(b * out + i));
	}
	for (int p = 0; p < g->model.param_count; p++) {
		const struct model_param *param = &g->params[p];

		for (size_t i = param->offset; i < param->offset + param->count; i++)
			if (param->trainable)
				check_slope((double)m->gradients[i],
					    reference_slope(&r, &r.weights[i]), param->name,
					    i - param->offset);
	}
	for (size_t i = 0; i < graph_input_count(g); i++)
		check_slope((double)m->grad_input[i], reference_slope(&r, &r.input[i]), "input", i);
}

/* Differences, then every way: alone and together, cut at each place and at all. */
static void check_graph(const struct graph *g)
{
	static float weights[GRAPH_WEIGHTS];
	static struct graph_micro wanted;
	struct graph_way way = graph_usual_way;

	graph_micro_init(&wanted, g, 5);
	graph_weights(g, weights, 77);
	graph_run_way(g, &graph_plain_way, weights, &wanted);
	check_differences(g, weights, &wanted);

	graph_check_way(g, &graph_usual_way, weights, &wanted);
	graph_check_way(g, &(struct graph_way){.unfused = true, .poison = true}, weights, &wanted);
	graph_check_way(g, &(struct graph_way){.unshared = true, .poison = true}, weights, &wanted);
	graph_check_way(g, &(struct graph_way){.fixed_input = true, .poison = true}, weights,
			&wanted);
	graph_check_way(g, &(struct graph_way){.poison = true, .room = GRAPH_BATCH + 2}, weights,
			&wanted);
	graph_check_way(g, &(struct graph_way){.poison = true, .slots = 2}, weights, &wanted);
	graph_check_way(g, &(struct graph_way){.poison = true, .split = true}, weights, &wanted);
	for (int i = 1; i < g->model.layer_count; i++) {
		way.cuts = 1u << i;
		graph_check_way(g, &way, weights, &wanted);
		way.cuts |= 1u << (i + 1) / 2;
		way.room = GRAPH_BATCH + 1;
		graph_check_way(g, &way, weights, &wanted);
		way.split = !way.split;
		way.room = 0;
	}
	way.cuts = UINT32_MAX;
	graph_check_way(g, &way, weights, &wanted);
	way.fixed_input = true;
	graph_check_way(g, &way, weights, &wanted);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_graphs_have_the_gradients_of_differences_whatever_the_way(void **state)
{
	static struct graph g;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(graph_samples); i++) {
		graph_samples[i](&g);
		check_graph(&g);
	}
}

static void test_random_graphs_do_too(void **state)
{
	static struct graph g;

	(void)state;
	for (uint32_t seed = 1; seed <= support_rounds(200); seed++) {
		graph_random(&g, seed, 4 + (int)(seed % 17));
		check_graph(&g);
	}
}

/* ---- schedules ------------------------------------------------------------------------------- */

/* Stages take turns; each does what it may do next: a backward where one is ready, else a forward
 * while fewer than @most of its micro-batches are in flight. */
static void run_schedule(struct graph_pipe *pipe, struct graph_micro *micros, int most,
			 bool forwards_first)
{
	int forwards[GRAPH_LAYERS + 1] = {0}, backwards[GRAPH_LAYERS + 1] = {0}, left;

	do {
		left = 0;
		for (int s = 0; s < pipe->count; s++) {
			bool last = s == pipe->count - 1;
			int behind = last ? forwards[s] : backwards[s + 1];
			bool ready = backwards[s] < behind &&
				     (!forwards_first || forwards[s] == GRAPH_MICROS);

			left += GRAPH_MICROS - backwards[s];
			if (ready) {
				graph_pipe_backward(pipe, s, backwards[s], &micros[backwards[s]]);
				backwards[s]++;
			} else if (forwards[s] < GRAPH_MICROS &&
				   forwards[s] - backwards[s] < most &&
				   (!s || forwards[s] < forwards[s - 1])) {
				graph_pipe_forward(pipe, s, forwards[s], &micros[forwards[s]]);
				forwards[s]++;
			}
		}
	} while (left);
}

static void test_micro_batches_in_flight_do_not_touch_each_other(void **state)
{
	static struct graph_micro wanted[GRAPH_MICROS], micros[GRAPH_MICROS];
	static float weights[GRAPH_WEIGHTS];
	static struct graph g;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(graph_samples) + 10; i++) {
		if (i < ARRAY_LEN(graph_samples))
			graph_samples[i](&g);
		else
			graph_random(&g, (uint32_t)i, 14);
		graph_weights(&g, weights, 3);
		for (int m = 0; m < GRAPH_MICROS; m++) {
			graph_micro_init(&wanted[m], &g, 100 + (uint32_t)m);
			graph_run_way(&g, &graph_plain_way, weights, &wanted[m]);
		}
		for (int grouped = 0; grouped < 2; grouped++) {
			struct graph_way way = {.cuts = 0x24a, .poison = true};
			struct graph_pipe pipe;

			/* Weights wait in their slots until all backward passes are done. */
			way.split = grouped;
			way.slots = grouped ? GRAPH_MICROS : 4;
			graph_pipe_open(&pipe, &g, &way, weights);
			for (int m = 0; m < GRAPH_MICROS; m++)
				graph_micro_init(&micros[m], &g, 100 + (uint32_t)m);
			run_schedule(&pipe, micros, way.slots, grouped);
			for (int m = 0; m < GRAPH_MICROS; m++)
				for (int s = 0; s < pipe.count; s++)
					graph_pipe_weights(&pipe, s, m, &micros[m]);
			for (int m = 0; m < GRAPH_MICROS; m++)
				graph_check_same(&g, &wanted[m], &micros[m], true);
			graph_pipe_close(&pipe);
		}
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

static void test_graphs_are_the_same_bytes_on_any_pool(void **state)
{
	static float weights[GRAPH_WEIGHTS];
	static struct graph_micro wanted;
	static struct graph g;

	(void)state;
	for (unsigned helpers = 0; helpers < 4; helpers++) {
		struct graph_way way = graph_usual_way;

		assert_int_equal(pool_new(&way.pool, helpers, NULL), ST_OK);
		for (size_t i = 0; i < ARRAY_LEN(graph_samples); i++) {
			graph_samples[i](&g);
			graph_weights(&g, weights, 77);
			graph_micro_init(&wanted, &g, 5);
			graph_run_way(&g, &graph_usual_way, weights, &wanted);
			graph_check_way(&g, &way, weights, &wanted);
		}
		pool_free(way.pool);
	}
}

/* Sums of gradients that take several slices. */
static void test_wide_sums_are_the_same_bytes_on_any_pool(void **state)
{
	const int64_t width = 300, batch = 400;
	size_t count = (size_t)(width * batch);
	float *gradient = mem_aligned(count, sizeof(float));
	float *results = mem_aligned(2 * count, sizeof(float));
	static struct graph g;

	(void)state;
	assert_true(gradient && results);
	graph_init(&g, width);
	graph_two(&g, GRAPH_PRODUCT, graph_one(&g, GRAPH_NEGATE, MODEL_INPUT), MODEL_INPUT);
	for (unsigned helpers = 0; helpers < 4; helpers += 3) {
		struct stage_params p = {
			.model = &g.model, .layer_count = 2, .batch = batch, .slots = 1};
		float *result = results + (helpers ? count : 0);
		struct stage *stage;

		p.training = p.spread = true;
		assert_int_equal(pool_new(&p.pool, helpers, NULL), ST_OK);
		assert_int_equal(stage_new(&stage, &p, NULL), ST_OK);
		math_fill(stage_input(stage, 0), count, 1, -1.0f, 1.0f);
		for (size_t i = 0; i < count; i++)
			gradient[i] = 0.5f;
		stage_forward(stage, 0, batch, 0, NULL, NULL, NULL);
		stage_backward(stage, 0, NULL, gradient, NULL, result);
		/* -x^2 */
		for (size_t i = 0; i < count; i++)
			assert_true(result[i] == -stage_input(stage, 0)[i]);
		stage_free(stage);
		pool_free(p.pool);
	}
	assert_memory_equal(results, results + count, count * sizeof(float));
	mem_free(gradient);
	mem_free(results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graphs_have_the_gradients_of_differences_whatever_the_way),
		cmocka_unit_test(test_random_graphs_do_too),
		cmocka_unit_test(test_micro_batches_in_flight_do_not_touch_each_other),
		cmocka_unit_test(test_graphs_are_the_same_bytes_on_any_pool),
		cmocka_unit_test(test_wide_sums_are_the_same_bytes_on_any_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
