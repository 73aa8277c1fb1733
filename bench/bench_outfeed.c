/*
 * What the recorder costs, all from one run:
 *
 *	bench_outfeed [DIRECTORY]
 *
 * ns of one recorded tensor of 10 elements at each tier, rules on, rows going to a recording that
 * its writer empties; and GB/s of tier `full` into the file, from the first value to its commit.
 * Least of several rounds; nothing is asserted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "outfeed/outfeed.h"

#define ROUNDS 9
#define BATCH  20000
#define SMALL  10
#define GREAT  ((size_t)4 << 20) /* floats: 16 MiB */
#define VALUES 16

static struct ips_recording *recording;
static struct outfeed_rule rule = {.every = 1, .last = 20};
static const struct outfeed_policy policy = {.rules = &rule, .count = 1};

static void check(enum status status, const struct err *err)
{
	if (status == ST_OK)
		return;
	fprintf(stderr, "bench_outfeed: %s\n", err->text);
	exit(1);
}

static void open_recording(const char *path)
{
	char why[256];

	unlink(path);
	if (ips_recording_open(&recording, path, NULL, why, sizeof(why)) != 0) {
		fprintf(stderr, "bench_outfeed: %s\n", why);
		exit(1);
	}
}

static struct outfeed *open_recorder(struct outfeed_tensor **tensor, int64_t count,
				     struct ips_recording *into)
{
	static struct outfeed_health_rules rules;
	const struct outfeed_params params = {
		.recording = into, .policy = &policy, .rules = &rules, .replicas = 1};
	const struct outfeed_tensor_params one = {.queue = "watch",
						  .key = "tensor",
						  .kind = OUTFEED_GRADIENT,
						  .layer = "layer",
						  .shape = &count,
						  .ndim = 1};
	struct outfeed *outfeed;
	struct err err;

	outfeed_health_defaults(&rules);
	check(outfeed_new(&outfeed, &params, &err), &err);
	check(outfeed_tensor_add(outfeed, tensor, &one, &err), &err);
	return outfeed;
}

static struct outfeed_moment moment_of(int64_t step)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL, .order = (uint64_t)step};

	moment.keys.mode = IPS_TRAIN;
	moment.keys.step = step;
	moment.keys.replica = 0;
	return moment;
}

static void fill(float *values, size_t count)
{
	uint32_t state = 1;

	for (size_t i = 0; i < count; i++) {
		state = state * 1664525u + 1013904223u;
		values[i] = (float)((int)(state >> 8) - (1 << 23)) * 0x1p-30f;
	}
}

/* ns of a look, the producer's time alone: the queue has room for a batch. */
static double look_ns(struct outfeed_tensor *tensor, const float *values, bool known)
{
	double best = 1e300;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t started;
		double ns;

		ips_recording_flush(recording);
		started = clock_ns();
		for (int i = 0; i < BATCH; i++) {
			struct outfeed_moment moment = moment_of(i / 10);
			struct err err;

			moment.abs_max_known = known;
			check(outfeed_record(tensor, &moment, values, SMALL, NULL, &err), &err);
		}
		ns = (double)(clock_ns() - started) / BATCH;
		best = ns < best ? ns : best;
	}
	return best;
}

static void small_tensors(const char *path)
{
	float values[SMALL];

	fill(values, SMALL);
	printf("ns of a recorded tensor of %d elements\n", SMALL);
	for (int tier = OUTFEED_HEALTH; tier < OUTFEED_TIERS; tier++) {
		struct outfeed_tensor *tensor;
		struct outfeed *outfeed;

		rule.tier = (enum outfeed_tier)tier;
		open_recording(path);
		outfeed = open_recorder(&tensor, SMALL, recording);
		if (tier == OUTFEED_HEALTH)
			printf("  %-10s %8.1f  (greatest magnitude known)\n", "health",
			       look_ns(tensor, values, true));
		printf("  %-10s %8.1f\n", outfeed_tier_text((enum outfeed_tier)tier),
		       look_ns(tensor, values, false));
		outfeed_close(outfeed, NULL);
		ips_recording_close(recording, NULL, 0);
	}
}

static void great_tensors(const char *path)
{
	float *values = mem_aligned(GREAT, sizeof(*values));
	double best = 1e300;

	if (!values)
		exit(1);
	fill(values, GREAT);
	rule.tier = OUTFEED_FULL;
	for (int round = 0; round < 3; round++) {
		struct outfeed_tensor *tensor;
		struct outfeed *outfeed;
		uint64_t started;
		double ns;

		open_recording(path);
		outfeed = open_recorder(&tensor, (int64_t)GREAT, recording);
		started = clock_ns();
		for (int i = 0; i < VALUES; i++) {
			const struct outfeed_moment moment = moment_of(i);
			struct err err;

			check(outfeed_record(tensor, &moment, values, GREAT, NULL, &err), &err);
		}
		ips_recording_flush(recording);
		ns = (double)(clock_ns() - started);
		best = ns < best ? ns : best;
		outfeed_close(outfeed, NULL);
		ips_recording_close(recording, NULL, 0);
	}
	printf("full: %.2f GB/s into the file (%d values of %zu MiB)\n",
	       (double)VALUES * (double)GREAT * sizeof(float) / best, VALUES,
	       GREAT * sizeof(float) >> 20);
	mem_free(values);
}

int main(int argc, char **argv)
{
	char *path = mem_printf("%s/bench_outfeed.db", argc > 1 ? argv[1] : "/tmp");

	if (!path)
		return 1;
	small_tensors(path);
	great_tensors(path);
	unlink(path);
	mem_free(path);
	return 0;
}
