/*
 * What it costs to know the greatest magnitude of every layer's output (is anything in it not
 * finite?) in each forward pass of training.
 *
 *	bench_taps [NETWORK ...] [--seconds S] [--threads N]
 *
 * Four stages of the same network run in turn, step by step, so that a noisy machine treats them
 * alike. One is not looked at. A layer that is looked at does not do the ReLU behind it, so one has
 * taps that ask for nothing. In one, layers look at their output while it is in the cache; and in
 * one taps read all of it again, shared out as such a pass would be. Printed are the medians and
 * the least of a forward pass, what looking costs beside a step (forward and backward), and beside
 * the time that reading all outputs once takes at the bandwidth beyond the cache. On one thread
 * (the default) its processor time is taken, so that others on the machine do not count; on more
 * the time that passes.
 *
 * Networks: convnet (the tutorial's: batch 80) and resnet50 (224x224, batch 2).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "model/applications/application.h"
#include "trainer/kernels/kernel_watch.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage.h"

#define SAMPLES_MAX 20000
#define READ_FLOATS ((size_t)1 << 26) /* 256 MB: beyond what a processor's share of a cache is */
#define READ_ROUNDS 7

struct network {
	const char *name, *model;
	struct model_shape image;
	int64_t batch;
};

#define LAYER(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"
#define CONV(filters)                                                                              \
	LAYER("Conv2D", "\"filters\": " filters ", \"kernel_size\": 3, \"activation\": \"relu\"")
#define POOL LAYER("MaxPooling2D", "")
#define FLAT LAYER("Flatten", "")
#define DROP LAYER("Dropout", "\"rate\": 0.5")
#define TOP  LAYER("Dense", "\"units\": 10, \"activation\": \"softmax\"")

static const struct network networks[] = {
	{"convnet",
	 "{\"layers\": [" CONV("32") "," POOL "," CONV("64") "," POOL "," FLAT "," DROP "," TOP
							     "]}",
	 {3, {28, 28, 1}},
	 80},
	{"resnet50",
	 "{\"application\": \"ResNet50\", \"config\": {\"classes\": 10}}",
	 {3, {224, 224, 3}},
	 2},
};

enum {
	LOOK_NEVER,   /* no taps */
	LOOK_UNFUSED, /* taps that look at nothing */
	LOOK_HOT,
	LOOK_AGAIN,
	LOOKS
};

static const char *const look_names[LOOKS] = {"no taps", "taps that ask for nothing",
					      "greatest magnitudes, in the kernels",
					      "greatest magnitudes, by passes of their own"};

struct bench {
	const struct network *network;
	struct model *model;
	struct pool *pool;
	struct stage *stages[LOOKS];
	float *weights, *gradients, *slopes;
	size_t outputs, bytes; /* of the slopes; that taps show */
	double forward[LOOKS][SAMPLES_MAX], step[LOOKS][SAMPLES_MAX];
};

struct look {
	struct bench *bench;
	int how;
	uint32_t most;
	size_t bytes;
};

static void stop(const struct err *err)
{
	fprintf(stderr, "bench_taps: %s\n", err->text);
	exit(1);
}

static float *floats(size_t count)
{
	float *values = mem_aligned(count, sizeof(float));

	if (!values) {
		fprintf(stderr, "bench_taps: out of memory\n");
		exit(1);
	}
	return values;
}

static void open_model(struct bench *b)
{
	cJSON *json, *built = NULL;
	struct json_at at;
	struct err err;

	if (json_parse(&json, b->network->model, strlen(b->network->model), "bench", &err))
		stop(&err);
	at = json_root("model", json);
	if (cJSON_GetObjectItemCaseSensitive(json, "application")) {
		if (application_build(&built, &at, NULL, 0, &err))
			stop(&err);
		at = json_root("model", built);
	}
	if (model_new(&b->model, &at, &b->network->image, &err))
		stop(&err);
	cJSON_Delete(json);
	cJSON_Delete(built);
}

static void open_stage(struct bench *b, int look)
{
	const size_t layers = (size_t)b->model->layer_count;
	uint8_t *taps = mem_calloc(layers, 1);
	const struct stage_params params = {
		.model = b->model,
		.layer_count = b->model->layer_count,
		.batch = b->network->batch,
		.slots = 1,
		.training = true,
		.fixed_input = true,
		.pool = b->pool,
		.taps = look == LOOK_NEVER ? NULL : taps,
	};
	struct err err;

	if (!taps)
		exit(1);
	memset(taps, look == LOOK_HOT ? STAGE_LOOK | STAGE_ABS_MAX : STAGE_LOOK, layers);
	if (stage_new(&b->stages[look], &params, &err))
		stop(&err);
	mem_free(taps);
	for (size_t i = 0; i < stage_input_count(b->stages[look]); i++)
		stage_input(b->stages[look], 0)[i] = (float)(i * 2654435761u % 1009) * 1e-3f;
}

/* Where memory lies matters as much as looking does: the other order gives other places. */
static void open_stages(struct bench *b, bool backwards)
{
	for (int i = 0; i < LOOKS; i++)
		open_stage(b, backwards ? LOOKS - 1 - i : i);
}

static void close_stages(struct bench *b)
{
	for (int look = 0; look < LOOKS; look++)
		stage_free(b->stages[look]);
}

static void open_bench(struct bench *b, const struct network *network, unsigned threads)
{
	const struct model_layer *last;
	struct err err;

	b->network = network;
	open_model(b);
	if (pool_new(&b->pool, threads - 1, &err))
		stop(&err);
	b->weights = floats(b->model->weights);
	b->gradients = floats(b->model->weights);
	model_init_weights(b->model, b->weights, 1);
	last = &b->model->layers[b->model->layer_count - 1];
	b->outputs = (size_t)(model_shape_count(&last->output) * network->batch);
	b->slopes = floats(b->outputs);
}

static void close_bench(struct bench *b)
{
	pool_free(b->pool);
	model_free(b->model);
	mem_free(b->weights);
	mem_free(b->gradients);
	mem_free(b->slopes);
}

static uint64_t now_ns(const struct bench *b)
{
	return pool_helpers(b->pool) > 0 ? clock_ns() : clock_thread_cpu_ns();
}

static void tap(void *user, const struct stage_tapped *tapped)
{
	struct look *look = user;
	struct kernel_watch watch = {0};
	uint32_t most = tapped->abs_max_known ? tapped->abs_max : 0;

	if (look->how == LOOK_AGAIN)
		most = kernel_watch_most(&watch, look->bench->pool, tapped->values, tapped->count);
	look->most = most > look->most ? most : look->most;
	look->bytes += tapped->count * sizeof(float);
}

static void one_step(struct bench *b, int how, int64_t step, double *forward, double *whole)
{
	struct look look = {.bench = b, .how = how};
	uint64_t begin = now_ns(b);

	stage_forward(b->stages[how], 0, b->network->batch, (uint64_t)step, b->weights,
		      how == LOOK_NEVER ? NULL : tap, &look);
	*forward = (double)(now_ns(b) - begin) * 1e-6;
	for (size_t i = 0; i < b->outputs; i++)
		b->slopes[i] = (float)(i % 7) * 1e-3f - 3e-3f;
	stage_backward(b->stages[how], 0, b->weights, b->slopes, b->gradients, NULL);
	*whole = (double)(now_ns(b) - begin) * 1e-6;
	if (how != LOOK_NEVER)
		b->bytes = look.bytes;
	if (look.most >= KERNEL_NONFINITE_BITS) {
		fprintf(stderr, "bench_taps: a value is not finite\n");
		exit(1);
	}
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

/* Median ms of a pass over all gradients, which a step has just written. */
static double gradients_ms(const struct bench *b)
{
	double samples[READ_ROUNDS];

	for (int round = 0; round < READ_ROUNDS; round++) {
		struct kernel_watch watch = {0};
		uint64_t begin = now_ns(b);

		kernel_watch_most(&watch, b->pool, b->gradients, b->model->weights);
		samples[round] = (double)(now_ns(b) - begin) * 1e-6;
	}
	return median(samples, READ_ROUNDS);
}

/* Bytes a second at which the threads read what is in no cache: the best of several. */
static double bandwidth(const struct bench *b)
{
	float *values = floats(READ_FLOATS);
	double best = 0.0;

	for (size_t i = 0; i < READ_FLOATS; i++)
		values[i] = 1.0f;
	for (int round = 0; round < READ_ROUNDS; round++) {
		struct kernel_watch watch = {0};
		uint64_t begin = now_ns(b);
		double rate;

		kernel_watch_most(&watch, b->pool, values, READ_FLOATS);
		rate = (double)(READ_FLOATS * sizeof(float)) * 1e9 / (double)(now_ns(b) - begin);
		best = rate > best ? rate : best;
	}
	mem_free(values);
	return best;
}

/* Of the forward pass, what looking costs, and beside what. */
static void print_cost(const char *name, double cost, double step, double read)
{
	printf("  %s %+.3f ms (%.2f %% of a step, %.2f of the reading)", name, cost,
	       100.0 * cost / step, cost / read);
}

static void print(struct bench *b, int count, unsigned threads)
{
	double forward[LOOKS], least[LOOKS], step[LOOKS], rate = bandwidth(b), read;

	for (int look = 0; look < LOOKS; look++) {
		forward[look] = median(b->forward[look], count);
		step[look] = median(b->step[look], count);
		least[look] = b->forward[look][0]; /* they are sorted now */
	}
	read = (double)b->bytes / rate * 1e3;
	printf("%s, batch %lld, %u thread%s, %d rounds: outputs of %.1f MB, read in %.3f ms at "
	       "%.1f GB/s\n",
	       b->network->name, (long long)b->network->batch, threads, threads == 1 ? "" : "s",
	       count, (double)b->bytes * 1e-6, read, rate * 1e-9);
	for (int look = 0; look < LOOKS; look++) {
		printf("  %-44s forward: median %9.3f, least %9.3f ms; step: median %9.3f ms\n",
		       look_names[look], forward[look], least[look], step[look]);
		if (look <= LOOK_UNFUSED)
			continue;
		print_cost("  median", forward[look] - forward[LOOK_UNFUSED], step[LOOK_NEVER],
			   read);
		print_cost(", least", least[look] - least[LOOK_UNFUSED], b->step[LOOK_NEVER][0],
			   read);
		putchar('\n');
	}
	read = gradients_ms(b);
	printf("  a pass over %.1f MB of gradients: %.3f ms (%.2f %% of a step)\n",
	       (double)b->model->weights * 4e-6, read, 100.0 * read / step[LOOK_NEVER]);
	fflush(stdout);
}

/* Rounds until @count is SAMPLES_MAX at most or @seconds are over. */
static int rounds(struct bench *b, int count, double seconds)
{
	const int most = count + SAMPLES_MAX / 2, least = count + 3;
	uint64_t end = 0;

	for (int64_t step = 0; count < most && (count < least || clock_ns() < end); step++) {
		for (int i = 0; i < LOOKS; i++) {
			const int how = (int)((step + i) % LOOKS);

			one_step(b, how, step, &b->forward[how][count], &b->step[how][count]);
		}
		if (step == 1) /* the first two warm up */
			end = clock_ns() + (uint64_t)(seconds * 1e9);
		count += step > 1;
	}
	return count;
}

static void run(const struct network *network, unsigned threads, double seconds)
{
	static struct bench b;
	int count = 0;

	open_bench(&b, network, threads);
	for (int backwards = 0; backwards < 2; backwards++) {
		open_stages(&b, backwards);
		count = rounds(&b, count, seconds / 2);
		close_stages(&b);
	}
	print(&b, count, threads);
	close_bench(&b);
}

static const struct network *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(networks); i++)
		if (!strcmp(networks[i].name, name))
			return &networks[i];
	fprintf(stderr,
		"bench_taps: no network \"%s\" (convnet, resnet50)\n"
		"usage: bench_taps [NETWORK ...] [--seconds S] [--threads N]\n",
		name);
	exit(2);
}

int main(int argc, char **argv)
{
	const struct network *chosen[8];
	unsigned threads = 1;
	double seconds = 10.0;
	int count = 0;

	for (int i = 1; i < argc; i++) {
		if (i + 1 < argc && !strcmp(argv[i], "--seconds"))
			seconds = atof(argv[++i]);
		else if (i + 1 < argc && !strcmp(argv[i], "--threads"))
			threads = atoi(argv[++i]) > 1 ? (unsigned)atoi(argv[i]) : 1u;
		else if (count < (int)ARRAY_LEN(chosen))
			chosen[count++] = find(argv[i]);
	}
	for (size_t i = 0; count == 0 && i < ARRAY_LEN(networks); i++)
		run(&networks[i], threads, seconds);
	for (int i = 0; i < count; i++)
		run(chosen[i], threads, seconds);
	return 0;
}
