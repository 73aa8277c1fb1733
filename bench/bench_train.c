/*
 * Training steps of whole networks beside PyTorch's, on one thread, on two and on all processors,
 * and the peak memory of each process.
 *
 *	bench_train [NETWORK ...] [--rounds N] [--seconds S] [--half]
 *
 * A step is forward, loss, backward and update on data that is in memory; nothing is recorded.
 * Every figure is of a process of its own, ours and PyTorch's (bench/peer.py) in turn, and the
 * medians over the rounds are compared, so that a noisy machine treats both alike. The shortest
 * steps of all rounds stand beside them, and the lower quartile of the process's processor time: on
 * a machine whose processors others use too, they alone are of the program. Processor time counts
 * threads that wait in a loop, too. Networks: mlp128 and mlp256 (batch 32, SGD), convnet (Keras's
 * for MNIST, batch 64, SGD, dropout on), resnet50 (224x224, batch 2, Adam). The peer is Debian's
 * python3-torch; without it our figures stand alone. With --half the peer is our own step under
 * mixed_float16.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/str.h"
#include "model/learn/loss.h"
#include "model/learn/optimizer.h"
#include "trainer/learn/measure_run.h"
#include "trainer/learn/optimizer_run.h"
#include "trainer/models/model_weights.h"
#include "trainer/models/stage.h"

#define CLASSES     10
#define BATCHES     8 /* different ones, in turn */
#define SAMPLES_MAX 100000
#define ROUNDS_MAX  99

struct network {
	const char *name, *model, *optimizer;
	struct model_shape image;
	int64_t batch;
	double seconds; /* of a figure */
};

#define LAYER(name, config) "{\"class_name\": \"" name "\", \"config\": {" config "}}"
#define DENSE(units)        LAYER("Dense", "\"units\": " units ", \"activation\": \"relu\"")
#define CONV(filters)                                                                              \
	LAYER("Conv2D", "\"filters\": " filters ", \"kernel_size\": 3, \"activation\": \"relu\"")
#define TOP LAYER("Dense", "\"units\": 10, \"activation\": \"softmax\"")

static const struct network networks[] = {
	{"mlp128", "{\"layers\": [" DENSE("128") "," TOP "]}", "\"SGD\"", {1, {784}}, 32, 1.0},
	{"mlp256",
	 "{\"layers\": [" DENSE("256") "," DENSE("128") "," TOP "]}",
	 "\"SGD\"",
	 {1, {784}},
	 32,
	 1.0},
	{"convnet",
	 "{\"layers\": [" CONV("32") "," LAYER("MaxPooling2D", "") "," CONV("64") "," LAYER(
		 "MaxPooling2D",
		 "") "," LAYER("Flatten", "") "," LAYER("Dropout", "\"rate\": 0.5") "," TOP "]}",
	 "\"SGD\"",
	 {3, {28, 28, 1}},
	 64,
	 2.0},
	{"resnet50",
	 "{\"application\": \"ResNet50\", \"config\": {\"classes\": 10}}",
	 "\"Adam\"",
	 {3, {224, 224, 3}},
	 2,
	 6.0},
};

/* ---- one figure: in a child ------------------------------------------------------------------ */

struct net {
	const struct network *network;
	struct model *model;
	struct stage *stage;
	struct pool *pool;
	struct loss loss;
	struct optimizer optimizer;
	struct optimizer_range *ranges;
	size_t range_count, inputs;
	float *weights, *gradients, *slots, *images, *gradient;
	float *halves; /* NULL: float32 */
	int32_t labels[64];
};

static void stop(const struct err *err)
{
	fprintf(stderr, "bench_train: %s\n", err->text);
	exit(1);
}

static cJSON *parse(const char *text)
{
	struct err err;
	cJSON *json;

	if (json_parse(&json, text, strlen(text), "bench", &err))
		stop(&err);
	return json;
}

static float *floats(size_t count)
{
	float *values = mem_aligned(count, sizeof(float));

	if (!values) {
		fprintf(stderr, "bench_train: out of memory\n");
		exit(1);
	}
	return values;
}

static void compile(struct net *net)
{
	cJSON *model = parse(net->network->model), *optimizer = parse(net->network->optimizer);
	cJSON *loss = parse("\"sparse_categorical_crossentropy\"");
	struct json_at at = json_root("model", model);
	struct err err;

	if (model_new(&net->model, &at, &net->network->image, &err))
		stop(&err);
	at = json_root("loss", loss);
	if (loss_get(&net->loss, &at, &err))
		stop(&err);
	at = json_root("optimizer", optimizer);
	if (optimizer_get(&net->optimizer, &at, &err) ||
	    optimizer_ranges_new(&net->ranges, &net->range_count, &net->optimizer, net->model, 0,
				 net->model->layer_count, &err))
		stop(&err);
	cJSON_Delete(model);
	cJSON_Delete(optimizer);
	cJSON_Delete(loss);
}

static void round_weights(struct net *net, bool learning)
{
	if (net->halves)
		model_round_weights(net->model, stage_pool(net->stage), 0, net->model->layer_count,
				    learning, net->weights, net->halves);
}

static void open_net(struct net *net, const struct network *network, unsigned threads, bool half)
{
	struct stage_params params = {
		.slots = 1, .training = true, .logits_loss = true, .fixed_input = true};
	struct err err;

	net->network = network;
	compile(net);
	model_set_policy(net->model, half);
	if (half)
		net->halves = params.halves = floats(net->model->weights);
	if (pool_new(&net->pool, threads - 1, &err))
		stop(&err);
	params.model = net->model;
	params.layer_count = net->model->layer_count;
	params.batch = network->batch;
	params.pool = net->pool;
	if (stage_new(&net->stage, &params, &err))
		stop(&err);
	net->weights = floats(net->model->weights);
	net->gradients = floats(net->model->weights);
	net->slots = floats(net->model->weights * (size_t)optimizer_slots(&net->optimizer) + 1);
	model_init_weights(net->model, net->weights, 1);
	round_weights(net, false);
	net->inputs = (size_t)(model_shape_count(&network->image) * network->batch);
	net->images = floats(BATCHES * net->inputs);
	net->gradient = floats((size_t)network->batch * CLASSES);
	for (size_t i = 0; i < BATCHES * net->inputs; i++)
		net->images[i] = (float)(i * 2654435761u % 1009) * 1e-3f;
	for (int i = 0; i < 64; i++)
		net->labels[i] = i * 7 % CLASSES;
}

static void close_net(struct net *net)
{
	stage_free(net->stage);
	pool_free(net->pool);
	model_free(net->model);
	mem_free(net->ranges);
	mem_free(net->weights);
	mem_free(net->halves);
	mem_free(net->gradients);
	mem_free(net->slots);
	mem_free(net->images);
	mem_free(net->gradient);
}

static void one_step(struct net *net, int64_t step)
{
	const struct targets targets = {.classes = net->labels};
	int64_t batch = net->network->batch;

	memcpy(stage_input(net->stage, 0), net->images + (size_t)(step % BATCHES) * net->inputs,
	       net->inputs * sizeof(float));
	stage_forward(net->stage, 0, batch, (uint64_t)step, net->weights, NULL, NULL);
	loss_run(&net->loss, stage_output(net->stage, 0), stage_logits(net->stage, 0), &targets,
		 batch, CLASSES, net->gradient);
	stage_backward(net->stage, 0, net->weights, net->gradient, net->gradients, NULL);
	optimizer_run(&net->optimizer, stage_pool(net->stage), net->ranges, net->range_count,
		      net->weights, net->gradients, net->slots, net->model->weights, step, 0.0);
	round_weights(net, true);
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

static double processor_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Prints the median and the least step and the lower quartile of the steps' processor time in ms,
 * and the peak memory in MB, as the peer does. */
static void measure(const struct network *network, unsigned threads, double seconds, bool half)
{
	static double samples[SAMPLES_MAX], processor[SAMPLES_MAX];
	struct rusage usage;
	struct net net = {0};
	uint64_t end = 0;
	int count = 0;

	open_net(&net, network, threads, half);
	for (int64_t step = 0; count < SAMPLES_MAX && (count < 3 || clock_ns() < end); step++) {
		double begin_ms = processor_ms();
		uint64_t begin = clock_ns();

		one_step(&net, step);
		processor[count] = processor_ms() - begin_ms;
		if (step == 1) /* the first two warm up */
			end = clock_ns() + (uint64_t)(seconds * 1e9);
		else if (step > 1)
			samples[count++] = (double)(clock_ns() - begin) * 1e-6;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%.4f ", median(samples, count)); /* sorts them */
	qsort(processor, (size_t)count, sizeof(*processor), compare);
	printf("%.4f %.4f %.0f\n", samples[0], processor[count / 4],
	       (double)usage.ru_maxrss / 1024.0);
	close_net(&net);
}

/* ---- comparing ------------------------------------------------------------------------------- */

struct figure {
	double ms[ROUNDS_MAX]; /* median steps */
	double least;          /* ms of the shortest step of all rounds */
	double processor, mb;  /* ms, the least of all rounds */
	int count;
};

/* Adds what a command prints; false: it failed. */
static bool ask(struct figure *figure, const char *command)
{
	FILE *pipe = popen(command, "r");
	double ms = 0.0, least = 0.0, processor = 0.0, mb = 0.0;
	int read;

	if (!pipe)
		return false;
	read = fscanf(pipe, "%lf %lf %lf %lf", &ms, &least, &processor, &mb);
	if (pclose(pipe) != 0 || read != 4)
		return false;
	figure->least = fmin(figure->least, least);
	figure->processor = fmin(figure->processor, processor);
	figure->ms[figure->count++] = ms;
	figure->mb = mb > figure->mb ? mb : figure->mb;
	return true;
}

static void row(const char *self, const struct network *network, unsigned threads, int rounds,
		double seconds, bool half)
{
	struct figure ours = {.least = INFINITY, .processor = INFINITY}, peer = ours;
	char own[512], other[512];
	bool there = true;
	double ms;

	snprintf(own, sizeof(own), "OPENBLAS_NUM_THREADS=1 %s --measure %s %u %g", self,
		 network->name, threads, seconds);
	if (half)
		snprintf(other, sizeof(other), "OPENBLAS_NUM_THREADS=1 %s --measure %s %u %g half",
			 self, network->name, threads, seconds);
	else
		snprintf(other, sizeof(other), "/usr/bin/python3 %s %s %u %g 2>/dev/null",
			 BENCH_PEER, network->name, threads, seconds);
	for (int i = 0; i < rounds; i++) {
		if (!ask(&ours, own))
			exit(1);
		there = there && ask(&peer, other);
	}
	ms = median(ours.ms, ours.count);
	printf("%-9s %u %9.3f ms %6.0f MB", network->name, threads, ms, ours.mb);
	if (half)
		printf("   mixed_float16 %9.3f ms %6.0f MB   %.3f of the time\n",
		       median(peer.ms, peer.count), peer.mb, median(peer.ms, peer.count) / ms);
	else if (there)
		printf("   PyTorch %9.3f ms %6.0f MB   %.2f times as fast, %.2f of the memory"
		       "   least %.3f, %.3f ms: %.2f"
		       "   of processor time %.3f, %.3f ms: %.2f\n",
		       median(peer.ms, peer.count), peer.mb, median(peer.ms, peer.count) / ms,
		       ours.mb / peer.mb, ours.least, peer.least, peer.least / ours.least,
		       ours.processor, peer.processor, peer.processor / ours.processor);
	else
		printf("   PyTorch is not installed (python3-torch)\n");
	fflush(stdout);
}

static const struct network *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(networks); i++)
		if (!strcmp(networks[i].name, name))
			return &networks[i];
	fprintf(stderr,
		"bench_train: no network \"%s\" (mlp128, mlp256, convnet, resnet50)\n"
		"usage: bench_train [NETWORK ...] [--rounds N] [--seconds S] [--half]\n",
		name);
	exit(2);
}

int main(int argc, char **argv)
{
	const struct network *chosen[16];
	const unsigned processors = pool_processors(), threads[] = {1, 2, processors};
	double seconds = 0.0;
	long long rounds = 3;
	bool half = false;
	int count = 0;

	if (argc >= 5 && !strcmp(argv[1], "--measure")) {
		measure(find(argv[2]), (unsigned)atoi(argv[3]), atof(argv[4]), argc > 5);
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--rounds") && i + 1 < argc &&
		    str_to_int(argv[i + 1], &rounds) && rounds > 0 && rounds < ROUNDS_MAX)
			i++;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = atof(argv[++i]);
		else if (!strcmp(argv[i], "--half"))
			half = true;
		else if (count < (int)ARRAY_LEN(chosen))
			chosen[count++] = find(argv[i]);
	}
	for (size_t i = 0; !count && i < ARRAY_LEN(networks); i++)
		chosen[i] = &networks[i];
	count = count ? count : (int)ARRAY_LEN(networks);
	printf("network   threads, medians of %lld rounds\n", rounds);
	for (int i = 0; i < count; i++)
		for (unsigned t = 0; t < (processors < 3 ? processors : 3); t++)
			row(argv[0], chosen[i], threads[t], (int)rounds,
			    seconds > 0.0 ? seconds : chosen[i]->seconds, half);
	return 0;
}
