/*
 * Activations, Dropout and merges on one thread: nanoseconds for an element, in a core's nearest
 * caches, and for the elementary functions beside the C library's.
 *
 *	bench_elementwise [ROUNDS]
 *
 * Printed are the least times of all rounds; rounds take turns over all cases.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "trainer/kernels/kernel_activation.h"
#include "trainer/kernels/kernel_vector.h"

#define COUNT      4000 /* a multiple of the columns of a softmax */
#define COLUMNS    10
#define TURNS      50 /* of a sample */
#define ROUNDS     40
#define ROUNDS_MAX 9999

/* Aligned as arenas align: vectors that cross lines of the cache take twice as long. */
static _Alignas(64) float x[COUNT], y[COUNT], dy[COUNT], dx[COUNT];
static uint8_t mask[COUNT];
static struct rng stream;

static void library_exp(void)
{
	for (int i = 0; i < COUNT; i++)
		y[i] = expf(x[i]);
}

static void library_tanh(void)
{
	for (int i = 0; i < COUNT; i++)
		y[i] = tanhf(x[i]);
}

static void library_erf(void)
{
	for (int i = 0; i < COUNT; i++)
		y[i] = erff(x[i]);
}

#define ACTIVATION(name, reads)                                                                    \
	static void run_##name(void)                                                               \
	{                                                                                          \
		kernel_##name(x, y, COUNT);                                                        \
	}                                                                                          \
	static void run_##name##_grad(void)                                                        \
	{                                                                                          \
		kernel_##name##_grad(x, y, dy, dx, COUNT);                                         \
	}
KERNEL_ACTIVATION_MAP(ACTIVATION)

static void run_softmax(void)
{
	kernel_softmax(x, y, COUNT / COLUMNS, COLUMNS);
}

static void run_softmax_grad(void)
{
	kernel_softmax_grad(y, dy, dx, COUNT / COLUMNS, COLUMNS);
}

static void run_dropout(void)
{
	kernel_dropout_mask(&stream, 0x40000000u, 0, COUNT, mask);
	kernel_dropout_apply(x, mask, 2.0f, y, COUNT);
}

static void run_dropout_grad(void)
{
	kernel_dropout_apply(dy, mask, 2.0f, dx, COUNT);
}

static void run_add(void)
{
	kernel_merge_add(x, dy, y, COUNT);
}

static void run_add_relu(void)
{
	kernel_merge_add_relu(x, dy, y, INFINITY, COUNT);
}

static void run_multiply(void)
{
	kernel_merge_multiply(x, dy, y, COUNT);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"expf of the C library", library_exp},
	{"tanhf of the C library", library_tanh},
	{"erff of the C library", library_erf},
#define ROW(name, reads) {#name, run_##name}, {#name " gradient", run_##name##_grad},
	KERNEL_ACTIVATION_MAP(ROW){"softmax of 10", run_softmax},
	{"softmax of 10 gradient", run_softmax_grad},
	{"dropout", run_dropout},
	{"dropout gradient", run_dropout_grad},
	{"add", run_add},
	{"add and relu", run_add_relu},
	{"multiply", run_multiply},
};

int main(int argc, char **argv)
{
	double least[ARRAY_LEN(cases)];
	long long rounds = ROUNDS;

	if (argc > 2 ||
	    (argc == 2 && (!str_to_int(argv[1], &rounds) || rounds < 1 || rounds > ROUNDS_MAX))) {
		fprintf(stderr, "usage: bench_elementwise [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
		return 2;
	}
	rng_init(&stream, 1, 2, 3, 4);
	for (int i = 0; i < COUNT; i++) {
		x[i] = (float)(i % 997) * 1e-2f - 5.0f;
		dy[i] = (float)(i % 13) - 6.0f;
	}
	for (size_t c = 0; c < ARRAY_LEN(cases); c++)
		least[c] = INFINITY;
	for (long long round = 0; round < rounds; round++) {
		for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
			uint64_t begin = clock_ns();
			double each;

			for (int turn = 0; turn < TURNS; turn++)
				cases[c].run();
			each = (double)(clock_ns() - begin) / (TURNS * COUNT);
			least[c] = each < least[c] ? each : least[c];
		}
	}
	for (size_t c = 0; c < ARRAY_LEN(cases); c++)
		printf("%-24s %6.3f ns\n", cases[c].name, least[c]);
	return 0;
}
