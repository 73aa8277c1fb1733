/*
 * A training step of the MLP 784-256-128-10 with batches of 32, beside what its matrix products
 * alone cost (the limit), ours and OpenBLAS's. bench_train compares whole networks with PyTorch.
 *
 *	bench_mlp [ROUNDS]
 *
 * Rounds take turns over 1 and 2 threads and over step and products, so that a noisy machine treats
 * them alike. Printed are medians in microseconds of a step and the ratios.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/str.h"
#include "model/learn/loss.h"
#include "model/learn/optimizer.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/learn/measure_run.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage.h"

#define BATCH      32
#define CLASSES    10
#define STEPS      200 /* of a sample: the scheduler needs some to spread the threads */
#define ROUNDS     25
#define ROUNDS_MAX 999
#define THREADS    2

static const char model_text[] =
	"{\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"units\": 256, \"activation\": "
	"\"relu\"}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 128, \"activation\": "
	"\"relu\"}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 10, \"activation\": "
	"\"softmax\"}}]}";

/* m, n, k and transposes of a step: forward, kernel gradient, input gradient of each layer. */
static const struct {
	int64_t m, n, k;
	bool ta, tb;
} products[] = {
	{32, 256, 784, false, false}, {32, 128, 256, false, false}, {32, 10, 128, false, false},
	{128, 10, 32, true, false},   {32, 128, 10, false, true},   {256, 128, 32, true, false},
	{32, 256, 128, false, true},  {784, 256, 32, true, false},
};

struct net {
	cJSON *json, *loss_json;
	struct model *model;
	struct loss loss;
	struct optimizer optimizer;
	struct optimizer_range *ranges;
	size_t range_count;
	struct stage *stages[THREADS];
	struct pool *pools[THREADS];
	float *weights, *gradients, *scratch;
	float *a[ARRAY_LEN(products)], *b[ARRAY_LEN(products)], *c[ARRAY_LEN(products)];
	int32_t labels[BATCH];
	double last_loss;
};

/* What the samples of a thread count were, in microseconds of a step. */
struct samples {
	double step[ROUNDS_MAX], update[ROUNDS_MAX], ours[ROUNDS_MAX], openblas[ROUNDS_MAX];
};

static void stop(const struct err *err)
{
	fprintf(stderr, "bench_mlp: %s\n", err->text);
	exit(1);
}

static float *floats(size_t count)
{
	float *values = mem_aligned(count, sizeof(float));

	if (!values) {
		fprintf(stderr, "bench_mlp: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(i * 2654435761u % 1000) * 1e-3f;
	return values;
}

static void open_net(struct net *net)
{
	struct model_shape input = {.ndim = 1, .dim = {784}};
	struct json_at at;
	struct err err;

	if (json_parse(&net->json, model_text, strlen(model_text), "model", &err))
		stop(&err);
	at = json_root("model", net->json);
	if (model_new(&net->model, &at, &input, &err))
		stop(&err);
	if (json_parse(&net->loss_json, "\"SparseCategoricalCrossentropy\"", 31, "loss", &err))
		stop(&err);
	at = json_root("loss", net->loss_json);
	if (loss_get(&net->loss, &at, &err) || optimizer_get(&net->optimizer, NULL, &err))
		stop(&err);
	if (optimizer_ranges_new(&net->ranges, &net->range_count, &net->optimizer, net->model, 0,
				 net->model->layer_count, &err))
		stop(&err);

	net->weights = floats(net->model->weights);
	net->gradients = floats(net->model->weights);
	net->scratch = floats(kernel_gemm_scratch(THREADS) / sizeof(float));
	model_init_weights(net->model, net->weights, 1);
	for (unsigned t = 0; t < THREADS; t++) {
		struct stage_params p = {.model = net->model,
					 .layer_count = 3,
					 .batch = BATCH,
					 .slots = 1,
					 .training = true,
					 .logits_loss = true};

		if (pool_new(&net->pools[t], t, &err))
			stop(&err);
		p.pool = net->pools[t];
		if (stage_new(&net->stages[t], &p, &err))
			stop(&err);
		for (size_t i = 0; i < BATCH * 784; i++)
			stage_input(net->stages[t], 0)[i] = (float)(i * 2654435761u % 997) * 1e-3f;
	}
	for (size_t i = 0; i < ARRAY_LEN(products); i++) {
		net->a[i] = floats((size_t)(products[i].m * products[i].k));
		net->b[i] = floats((size_t)(products[i].k * products[i].n));
		net->c[i] = floats((size_t)(products[i].m * products[i].n));
	}
	for (int i = 0; i < BATCH; i++)
		net->labels[i] = i % CLASSES;
}

static void close_net(struct net *net)
{
	for (unsigned t = 0; t < THREADS; t++) {
		stage_free(net->stages[t]);
		pool_free(net->pools[t]);
	}
	for (size_t i = 0; i < ARRAY_LEN(products); i++) {
		mem_free(net->a[i]);
		mem_free(net->b[i]);
		mem_free(net->c[i]);
	}
	mem_free(net->ranges);
	mem_free(net->weights);
	mem_free(net->gradients);
	mem_free(net->scratch);
	model_free(net->model);
	cJSON_Delete(net->json);
	cJSON_Delete(net->loss_json);
}

static void one_step(struct net *net, unsigned t, uint64_t *update_ns)
{
	static float gradient[BATCH * CLASSES];
	const struct targets targets = {.classes = net->labels};
	struct stage *stage = net->stages[t];
	uint64_t begin;

	stage_forward(stage, 0, BATCH, 0, net->weights, NULL, NULL);
	net->last_loss = loss_run(&net->loss, stage_output(stage, 0), stage_logits(stage, 0),
				  &targets, BATCH, CLASSES, gradient);
	stage_backward(stage, 0, net->weights, gradient, net->gradients, NULL);
	begin = clock_ns();
	optimizer_run(&net->optimizer, stage_pool(stage), net->ranges, net->range_count,
		      net->weights, net->gradients, NULL, 0, 0, 0.0);
	*update_ns += clock_ns() - begin;
}

static struct kernel_gemm product(const struct net *net, size_t i)
{
	return (struct kernel_gemm){
		.transpose_a = products[i].ta,
		.transpose_b = products[i].tb,
		.m = products[i].m,
		.n = products[i].n,
		.k = products[i].k,
		.a = net->a[i],
		.lda = products[i].ta ? products[i].m : products[i].k,
		.b = net->b[i],
		.ldb = products[i].tb ? products[i].k : products[i].n,
		.c = net->c[i],
		.ldc = products[i].n,
	};
}

/* All products of a step. */
static void all_products(const struct net *net, struct pool *pool, bool openblas)
{
	const struct kernel_room room = {pool, net->scratch};

	for (size_t i = 0; i < ARRAY_LEN(products); i++) {
		struct kernel_gemm gemm = product(net, i);

		gemm.openblas = openblas;
		kernel_gemm(&gemm, &room);
	}
}

static double since(uint64_t begin)
{
	return (double)(clock_ns() - begin) * 1e-3 / STEPS;
}

static void sample(struct net *net, unsigned t, struct samples *out, int round)
{
	uint64_t begin = clock_ns(), update_ns = 0;

	for (int i = 0; i < STEPS; i++)
		one_step(net, t, &update_ns);
	out->step[round] = since(begin);
	out->update[round] = (double)update_ns * 1e-3 / STEPS;
	begin = clock_ns();
	for (int i = 0; i < STEPS; i++)
		all_products(net, net->pools[t], false);
	out->ours[round] = since(begin);
	begin = clock_ns();
	for (int i = 0; kernel_openblas_open(1, NULL) == ST_OK && i < STEPS; i++)
		all_products(net, NULL, true);
	out->openblas[round] = since(begin);
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}

static void report(unsigned threads, struct samples *s, int rounds)
{
	double step = median(s->step, rounds), update = median(s->update, rounds);
	double ours = median(s->ours, rounds), openblas = median(s->openblas, rounds);

	printf("%u thread%s  step %7.1f us (of it update %.1f)\n", threads, threads > 1 ? "s" : " ",
	       step, update);
	printf("           products alone                 %7.1f us   step / it %.2f\n", ours,
	       step / ours);
	if (kernel_openblas_open(1, NULL) == ST_OK)
		printf("           by OpenBLAS, on one thread     %7.1f us   step / it %.2f\n",
		       openblas, step / openblas);
}

int main(int argc, char **argv)
{
	static struct samples samples[THREADS];
	static struct net net;
	long long rounds = ROUNDS;
	unsigned threads = pool_processors() < THREADS ? 1 : THREADS;

	if (argc > 2 ||
	    (argc == 2 && (!str_to_int(argv[1], &rounds) || rounds < 1 || rounds > ROUNDS_MAX))) {
		fprintf(stderr, "usage: bench_mlp [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
		return 2;
	}

	open_net(&net);
	for (unsigned t = 0; t < threads; t++)
		sample(&net, t, &samples[t], 0); /* warm up; overwritten */
	for (int round = 0; round < (int)rounds; round++)
		for (unsigned t = 0; t < threads; t++)
			sample(&net, t, &samples[t], round);

	printf("MLP 784-256-128-10, batch %d, SGD; medians of %lld rounds of %d steps; loss %.3g\n",
	       BATCH, rounds, STEPS, net.last_loss);
	for (unsigned t = 0; t < threads; t++)
		report(t + 1, &samples[t], (int)rounds);
	close_net(&net);
	return 0;
}
