/*
 * Weight updates beside what memory allows: ns per weight, the bytes that had to move in that time,
 * and how fast a sum of two blocks moves them on the same threads.
 *
 *	bench_optimizer [ROUNDS]
 *
 * Of as many weights as ResNet50 has, which come from memory, and as the MLP 784-256-128-10 has,
 * which stay in the cache. Rounds take turns over optimizers and threads; printed is the least.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "model/learn/optimizer.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/learn/optimizer_run.h"

#define ROUNDS  5
#define THREADS 2
#define SLOTS   3 /* at most */

static const struct {
	const char *name, *text;
	int blocks; /* read; all but the gradients are written too */
} rows[] = {
	{"SGD", "\"SGD\"", 2},
	{"SGD momentum", "{\"class_name\": \"SGD\", \"config\": {\"momentum\": 0.9}}", 3},
	{"RMSprop", "\"RMSprop\"", 3},
	{"RMSprop centered", "{\"class_name\": \"RMSprop\", \"config\": {\"centered\": true}}", 4},
	{"RMSprop momentum", "{\"class_name\": \"RMSprop\", \"config\": {\"momentum\": 0.9}}", 4},
	{"Adam", "\"Adam\"", 4},
	{"Adam amsgrad", "{\"class_name\": \"Adam\", \"config\": {\"amsgrad\": true}}", 5},
	{"AdamW", "\"AdamW\"", 4},
	{"Adam clipped", "{\"class_name\": \"Adam\", \"config\": {\"global_clipnorm\": 1}}", 4},
	{"Adagrad", "\"Adagrad\"", 3},
	{"Nadam", "\"Nadam\"", 4},
	{"Lion", "\"Lion\"", 3},
	{"Lamb", "\"Lamb\"", 4},
};

static const struct {
	const char *what;
	size_t weights;
} sizes[] = {{"ResNet50", 25636712}, {"MLP", 235146}};

struct bench {
	struct optimizer optimizers[ARRAY_LEN(rows)];
	struct optimizer_range *ranges;
	struct pool *pools[THREADS];
	float *weights, *gradients, *slots;
	size_t count, range_count;
	double least[ARRAY_LEN(rows) + 1][THREADS]; /* ns; the last row: the sum */
};

static void stop(const struct err *err)
{
	fprintf(stderr, "bench_optimizer: %s\n", err->text);
	exit(1);
}

static void *need(void *memory)
{
	if (!memory) {
		fprintf(stderr, "bench_optimizer: out of memory\n");
		exit(1);
	}
	return memory;
}

static void read_optimizers(struct bench *b)
{
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json_at at;
		cJSON *json;

		if (json_parse(&json, rows[i].text, strlen(rows[i].text), rows[i].name, &err))
			stop(&err);
		at = json_root(rows[i].name, json);
		if (optimizer_get(&b->optimizers[i], &at, &err))
			stop(&err);
		cJSON_Delete(json);
	}
}

static void open_blocks(struct bench *b, size_t count)
{
	b->count = count;
	b->weights = need(mem_aligned((2 + SLOTS) * count, sizeof(float)));
	b->gradients = b->weights + count;
	b->slots = b->gradients + count;
	for (size_t i = 0; i < count; i++)
		b->gradients[i] = (float)(i * 2654435761u % 1000) * 1e-3f;
	b->range_count = (count + OPTIMIZER_PIECE - 1) / OPTIMIZER_PIECE;
	b->ranges = need(mem_calloc(b->range_count, sizeof(*b->ranges)));
	for (size_t r = 0; r < b->range_count; r++) {
		size_t first = count * r / b->range_count, next = count * (r + 1) / b->range_count;

		b->ranges[r] = (struct optimizer_range){
			.first = first, .count = next - first, .kept = first, .param = (int)r};
	}
}

static void close_blocks(struct bench *b)
{
	mem_free(b->weights);
	mem_free(b->ranges);
}

static void sum_slice(void *context, unsigned slice)
{
	const struct bench *b = context;
	const struct optimizer_range *range = &b->ranges[slice];

	kernel_add(b->weights + range->first, b->gradients + range->first, range->count);
}

static void sample(struct bench *b, size_t row, unsigned t, bool first)
{
	int repeat = b->count > 1000000 ? 3 : 300;
	uint64_t begin = clock_ns();
	double ns;

	for (int i = 0; i < repeat; i++) {
		if (row == ARRAY_LEN(rows))
			pool_run(b->pools[t], sum_slice, b, (unsigned)b->range_count);
		else
			optimizer_run(&b->optimizers[row], b->pools[t], b->ranges, b->range_count,
				      b->weights, b->gradients, b->slots, b->count, i, 1.0);
	}
	ns = (double)(clock_ns() - begin) / repeat / (double)b->count;
	if (first || ns < b->least[row][t])
		b->least[row][t] = ns;
}

static void print_row(const struct bench *b, const char *name, size_t row, int blocks,
		      unsigned threads)
{
	double bytes = (double)(2 * blocks - 1) * sizeof(float);

	printf("  %-18s %3.0f", name, bytes);
	for (unsigned t = 0; t < threads; t++) {
		double ns = b->least[row][t], sum = 12.0 / b->least[ARRAY_LEN(rows)][t];

		printf("   %6.3f %6.1f %6.2f", ns, bytes / ns, bytes / ns / sum);
	}
	printf("\n");
}

static void run(struct bench *b, const char *what, unsigned threads, int rounds)
{
	for (int round = 0; round < rounds; round++) {
		for (size_t row = 0; row <= ARRAY_LEN(rows); row++) {
			memset(b->slots, 0, SLOTS * b->count * sizeof(float));
			for (unsigned t = 0; t < threads; t++)
				sample(b, row, t, round == 0);
		}
	}
	printf("%s, %zu weights\n  %-18s %s", what, b->count, "", "B/w");
	for (unsigned t = 0; t < threads; t++)
		printf("   %u thr: ns   GB/s  / sum", t + 1);
	printf("\n");
	for (size_t row = 0; row < ARRAY_LEN(rows); row++)
		print_row(b, rows[row].name, row, rows[row].blocks, threads);
	print_row(b, "y += x", ARRAY_LEN(rows), 2, threads);
}

int main(int argc, char **argv)
{
	static struct bench b;
	long long rounds = ROUNDS;
	unsigned threads = pool_processors() < THREADS ? 1 : THREADS;
	struct err err;

	if (argc > 2 || (argc == 2 && (!str_to_int(argv[1], &rounds) || rounds < 1))) {
		fprintf(stderr, "usage: bench_optimizer [ROUNDS]\n");
		return 2;
	}
	read_optimizers(&b);
	for (unsigned t = 0; t < threads; t++)
		if (pool_new(&b.pools[t], t, &err))
			stop(&err);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		open_blocks(&b, sizes[i].weights);
		run(&b, sizes[i].what, threads, (int)rounds);
		close_blocks(&b);
	}
	for (unsigned t = 0; t < threads; t++)
		pool_free(b.pools[t]);
	return 0;
}
