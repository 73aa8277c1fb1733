/*
 * Pooling and normalisation at the shapes of the tutorial's convnet and of ResNet50, beside the
 * bandwidth at which this machine reads memory in the same run.
 *
 *	bench_layers [ROUNDS]
 *
 * A pass's bytes are what it must read and write at least: BatchNormalization forward reads x twice
 * and writes y, backward reads x and dy twice and writes dx; poolings read and write each tensor
 * once. Buffers change from call to call, as they do between the layers of a network. Printed are
 * the least times of all rounds; rounds take turns over all cases.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/str.h"
#include "trainer/layers/compute.h"
#include "trainer/models/model_weights.h"

#define ROUNDS     15
#define ROUNDS_MAX 999
#define THREADS    2
#define SETS       3                   /* of buffers that take turns */
#define READ_BYTES ((size_t)256 << 20) /* beyond the caches of a core */
#define READ_TURNS 8 /* a reading is of one part: short enough not to be interrupted */
#define READ_CUT   64

static const struct bench_case {
	const char *layer, *config;
	int64_t dims[3], batch;
	bool relu;
	/* Floats by input and output value that go forward and backward. */
	double in_forward, out_forward, in_backward, out_backward;
} cases[] = {
	{"MaxPooling2D", "{}", {26, 26, 32}, 64, false, 1, 1.25, 1, 1.25},
	{"MaxPooling2D", "{}", {11, 11, 64}, 64, false, 1, 1.25, 1, 1.25},
	{"MaxPooling2D",
	 "{\"pool_size\": 3, \"strides\": 2}",
	 {114, 114, 64},
	 2,
	 false,
	 1,
	 1.25,
	 1,
	 1.25},
	{"AveragePooling2D", "{}", {26, 26, 32}, 64, false, 1, 1, 1, 1},
	{"GlobalAveragePooling2D", "{}", {7, 7, 2048}, 32, false, 1, 1, 1, 1},
	{"GlobalMaxPooling2D", "{}", {7, 7, 2048}, 32, false, 1, 1, 3, 2},
	{"BatchNormalization", "{}", {112, 112, 64}, 2, true, 2, 1, 3, 2},
	{"BatchNormalization", "{}", {56, 56, 256}, 2, false, 2, 1, 3, 2},
	{"BatchNormalization", "{}", {28, 28, 512}, 2, true, 2, 1, 3, 2},
	{"BatchNormalization", "{}", {14, 14, 1024}, 2, false, 2, 1, 3, 2},
	{"BatchNormalization", "{}", {7, 7, 2048}, 2, true, 2, 1, 3, 2},
	{"BatchNormalization", "{}", {112, 112, 24}, 2, true, 2, 1, 3, 2},
	{"LayerNormalization", "{}", {128, 1, 768}, 8, false, 2, 1, 3, 2},
};

struct bench_set {
	float *x, *y, *dy, *dx;
	void *kept;
};

struct bench {
	cJSON *json;
	struct model *model;
	struct layer_pass pass;
	float *weights, *gradients;
	struct bench_set sets[SETS];
	double forward[THREADS], backward[THREADS]; /* the least, in seconds */
};

static void stop(const char *why)
{
	fprintf(stderr, "bench_layers: %s\n", why);
	exit(1);
}

static void *memory(size_t bytes)
{
	void *out = mem_aligned(bytes ? bytes : 1, 1);

	if (!out)
		stop("out of memory");
	return out;
}

static float *floats(size_t count)
{
	float *values = memory(count * sizeof(float));

	for (size_t i = 0; i < count; i++)
		values[i] = (float)((i * 2654435761u >> 7) % 1000) * 1e-3f - 0.5f;
	return values;
}

/* @pool: the largest that will run the case. */
static void open_case(struct bench *b, const struct bench_case *c, struct pool *pool)
{
	char *text = mem_printf("{\"layers\": [{\"class_name\": \"%s\", \"config\": %s}]}",
				c->layer, c->config);
	struct model_shape input = {.ndim = 3, .dim = {c->dims[0], c->dims[1], c->dims[2]}};
	const struct model_layer *layer;
	struct json_at at;
	struct err err;
	size_t in, out;

	if (!text)
		stop("out of memory");
	if (json_parse(&b->json, text, strlen(text), "model", &err))
		stop(err.text);
	mem_free(text);
	at = json_root("model", b->json);
	if (model_new(&b->model, &at, &input, &err))
		stop(err.text);
	layer = &b->model->layers[0];
	in = (size_t)(c->batch * model_shape_count(&layer->input));
	out = (size_t)(c->batch * model_shape_count(&layer->output));
	for (int i = 0; i < SETS; i++)
		b->sets[i] =
			(struct bench_set){floats(in), floats(out), floats(out), floats(in), NULL};
	b->weights = memory(b->model->weights * sizeof(float));
	b->gradients = memory(b->model->weights * sizeof(float));
	model_init_weights(b->model, b->weights, 1);
	b->pass = (struct layer_pass){.model = b->model,
				      .layer = layer,
				      .batch = c->batch,
				      .training = true,
				      .pool = pool,
				      .weights = b->weights,
				      .gradients = b->gradients,
				      .relu = c->relu,
				      .relu_most = INFINITY};
	if (compute_of(layer)->scratch)
		b->pass.scratch = memory(compute_of(layer)->scratch(&b->pass));
	for (int i = 0; i < SETS && compute_of(layer)->kept; i++)
		b->sets[i].kept = memory(compute_of(layer)->kept(&b->pass));
	for (int t = 0; t < THREADS; t++)
		b->forward[t] = b->backward[t] = INFINITY;
}

static void close_case(struct bench *b)
{
	for (int i = 0; i < SETS; i++) {
		mem_free(b->sets[i].x);
		mem_free(b->sets[i].y);
		mem_free(b->sets[i].dy);
		mem_free(b->sets[i].dx);
		mem_free(b->sets[i].kept);
	}
	mem_free(b->pass.scratch);
	mem_free(b->weights);
	mem_free(b->gradients);
	model_free(b->model);
	cJSON_Delete(b->json);
}

static double since(uint64_t begin)
{
	return (double)(clock_ns() - begin) * 1e-9;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* In turns over the sets: what a pass finds in the caches is not what it left there itself. */
static void sample_case(struct bench *b, struct pool *pool, unsigned t)
{
	for (int turn = 0; turn < 2 * SETS; turn++) {
		struct bench_set *set = &b->sets[turn % SETS];
		const float *inputs[] = {set->x};
		float *grad_inputs[] = {set->dx};
		uint64_t begin;

		b->pass.pool = pool;
		b->pass.inputs = inputs;
		b->pass.output = set->y;
		b->pass.kept = set->kept;
		b->pass.grad_output = set->dy;
		b->pass.grad_inputs = grad_inputs;
		begin = clock_ns();
		compute_of(b->pass.layer)->forward(&b->pass);
		b->forward[t] = least(b->forward[t], since(begin));
	}
	for (int turn = 0; turn < 2 * SETS; turn++) {
		struct bench_set *set = &b->sets[turn % SETS];
		const float *inputs[] = {set->x};
		float *grad_inputs[] = {set->dx};
		uint64_t begin;

		b->pass.inputs = inputs;
		b->pass.output = set->y;
		b->pass.kept = set->kept;
		b->pass.grad_output = set->dy;
		b->pass.grad_inputs = grad_inputs;
		begin = clock_ns();
		compute_of(b->pass.layer)->backward(&b->pass);
		b->backward[t] = least(b->backward[t], since(begin));
	}
}

/* ---- the limit ------------------------------------------------------------------------------- */

struct reading {
	const uint64_t *values;
	size_t turn;
	uint64_t sums[READ_CUT];
};

static void read_slice(void *context, unsigned slice)
{
	struct reading *r = context;
	size_t part = READ_BYTES / sizeof(uint64_t) / READ_TURNS, count = part / READ_CUT;
	const uint64_t *values = r->values + r->turn * part + slice * count;
	uint64_t sums[8] = {0};

	for (size_t i = 0; i < count; i += 8)
		for (int j = 0; j < 8; j++)
			sums[j] += values[i + (size_t)j];
	for (int j = 0; j < 8; j++)
		r->sums[slice] += sums[j];
}

/* The greatest rate of all parts, in GB/s. */
static double read_all(struct reading *r, struct pool *pool)
{
	double seconds = INFINITY;

	for (r->turn = 0; r->turn < READ_TURNS; r->turn++) {
		uint64_t begin = clock_ns();

		pool_run(pool, read_slice, r, READ_CUT);
		seconds = least(seconds, since(begin));
	}
	return (double)(READ_BYTES / READ_TURNS) * 1e-9 / seconds;
}

static void report(const struct bench_case *c, const struct bench *b, const double *bandwidth,
		   unsigned threads)
{
	const struct model_layer *layer = &b->model->layers[0];
	double in = (double)(c->batch * model_shape_count(&layer->input)) * 4e-9;
	double out = (double)(c->batch * model_shape_count(&layer->output)) * 4e-9;
	char shape[32];

	snprintf(shape, sizeof(shape), "%lldx%lldx%lld x%lld%s", (long long)c->dims[0],
		 (long long)c->dims[1], (long long)c->dims[2], (long long)c->batch,
		 c->relu ? " relu" : "");
	for (unsigned t = 0; t < threads; t++) {
		double forward = (in * c->in_forward + out * c->out_forward) / b->forward[t];
		double backward = (in * c->in_backward + out * c->out_backward) / b->backward[t];

		printf("%-23s %-19s %u  %7.0f us %6.1f GB/s %5.2f   %7.0f us %6.1f GB/s %5.2f\n",
		       t ? "" : c->layer, t ? "" : shape, t + 1, b->forward[t] * 1e6, forward,
		       forward / bandwidth[t], b->backward[t] * 1e6, backward,
		       backward / bandwidth[t]);
	}
}

int main(int argc, char **argv)
{
	static struct bench benches[ARRAY_LEN(cases)];
	struct reading reading = {.values = memory(READ_BYTES)};
	double bandwidth[THREADS] = {0};
	struct pool *pools[THREADS];
	unsigned threads = pool_processors() < THREADS ? 1 : THREADS;
	long long rounds = ROUNDS;

	if (argc > 2 ||
	    (argc == 2 && (!str_to_int(argv[1], &rounds) || rounds < 1 || rounds > ROUNDS_MAX))) {
		fprintf(stderr, "usage: bench_layers [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
		return 2;
	}

	for (unsigned t = 0; t < threads; t++)
		if (pool_new(&pools[t], t, NULL))
			stop("no threads");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		open_case(&benches[i], &cases[i], pools[threads - 1]);
	for (int round = 0; round < (int)rounds; round++) {
		for (unsigned t = 0; t < threads; t++) {
			double rate = read_all(&reading, pools[t]);

			bandwidth[t] = rate > bandwidth[t] ? rate : bandwidth[t];
			for (size_t i = 0; i < ARRAY_LEN(cases); i++)
				sample_case(&benches[i], pools[t], t);
		}
	}

	for (unsigned t = 0; t < threads; t++)
		printf("%u thread%s memory is read at %.1f GB/s\n", t + 1, t ? "s:" : ": ",
		       bandwidth[t]);
	printf("%-43s thr  %-28s   backward\n", "", "forward: time, rate, ratio");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		report(&cases[i], &benches[i], bandwidth, threads);
		close_case(&benches[i]);
	}
	for (unsigned t = 0; t < threads; t++)
		pool_free(pools[t]);
	mem_free((void *)(uintptr_t)reading.values);
	return reading.sums[0] == 1;
}
