/*
 * What sharing work out costs, and from which size on it pays: the source of POOL_LANE_WORK and
 * POOL_WAKE_WORK (common/pool.h).
 *
 *	bench_pool [ROUNDS]
 *
 * A run is 16 slices of arithmetic that touch no memory. Printed are medians in microseconds for
 * one thread and for two, where runs follow each other at once (the helper still looks out for
 * work) and where a pause lets the helper fall asleep before each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/str.h"

#define SLICES     16
#define RUNS       300 /* of a sample */
#define ROUNDS     9
#define ROUNDS_MAX 99

static volatile float sink;

/* About a nanosecond each. */
static void spend(void *context, unsigned slice)
{
	unsigned times = *(const unsigned *)context;
	float x = (float)slice;

	for (unsigned i = 0; i < times; i++)
		x = x * 0.5f + 1.0f;
	sink = x;
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The median of RUNS runs, us. */
static double sample(struct pool *pool, unsigned times, long pause_ns)
{
	static double us[RUNS];

	for (int i = 0; i < RUNS; i++) {
		uint64_t begin;

		if (pause_ns)
			nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
		begin = clock_ns();
		pool_run(pool, spend, &times, SLICES);
		us[i] = (double)(clock_ns() - begin) * 1e-3;
	}
	qsort(us, RUNS, sizeof(*us), compare);
	return us[RUNS / 2];
}

int main(int argc, char **argv)
{
	static const unsigned times[] = {1, 25, 50, 100, 150, 250, 500, 1000, 2500, 5000};
	struct pool *pools[2];
	long long rounds = ROUNDS;
	struct err err;

	if (argc > 2 ||
	    (argc == 2 && (!str_to_int(argv[1], &rounds) || rounds < 1 || rounds > ROUNDS_MAX))) {
		fprintf(stderr, "usage: bench_pool [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
		return 2;
	}
	for (unsigned t = 0; t < 2; t++)
		if (pool_new(&pools[t], t, &err)) {
			fprintf(stderr, "bench_pool: %s\n", err.text);
			return 1;
		}

	printf("%12s %12s %12s %12s\n", "one thread", "two, awake", "one, paused", "two, asleep");
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		double us[4][ROUNDS_MAX];

		for (int round = 0; round < (int)rounds; round++)
			for (int kind = 0; kind < 4; kind++)
				us[kind][round] =
					sample(pools[kind % 2], times[i], kind < 2 ? 0 : 100000);
		for (int kind = 0; kind < 4; kind++) {
			qsort(us[kind], (size_t)rounds, sizeof(double), compare);
			printf("%9.2f us ", us[kind][rounds / 2]);
		}
		printf("\n");
	}
	for (unsigned t = 0; t < 2; t++)
		pool_free(pools[t]);
	return 0;
}
