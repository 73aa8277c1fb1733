/*
 * A recording of nothing but the memory of many IPUs, for bench_view:
 *
 *	make_memory FILE [IPUS [VARIABLES]]
 *
 * IPUS (64) of 1472 tiles, each with VARIABLES (1000) of RUNS stretches of neighbouring tiles:
 * half a million rows. The same arguments give the same rows. One thread beside the recording's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/rng.h"
#include "common/str.h"
#include "profiler/ipuscope/profiler.h"

#define TILES    1472
#define CAPACITY 638976
#define RUNS     8
#define LONGEST  200 /* tiles of a stretch */
#define STEPS    400 /* of the program */

static const char *const categories[] = {"variables", "notAlwaysLiveVariables", "vertexCode",
					 "stack", "internalExchangeCode"};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

static void must(int status)
{
	if (status != 0) {
		fprintf(stderr, "make_memory: %s\n", ips_status_text(status));
		exit(1);
	}
}

static void put_variable(struct ips_recording *recording, struct rng *rng, int64_t id, int64_t ipu,
			 int64_t number)
{
	struct ips_variable row = {.variable_id = id,
				   .kind = "temporary",
				   .dtype = "float32",
				   .ipu = ipu,
				   .first_program_step = rng_below(rng, STEPS / 2)};
	char name[64], layer[32];

	snprintf(layer, sizeof(layer), "Dense_%lld", (long long)(number % 50));
	snprintf(name, sizeof(name), "%s/part%lld", layer, (long long)number);
	row.variable = name;
	row.layer = layer;
	row.always_live = number % 3 == 0;
	row.last_program_step = row.first_program_step + rng_below(rng, STEPS / 2);
	for (int i = 0; i < RUNS; i++) {
		const int64_t more = rng_below(rng, LONGEST);
		const int64_t tile = rng_below(rng, (uint32_t)(TILES - more));
		const int64_t bytes = 4 * (1 + rng_below(rng, 100));

		row.bytes += bytes * (more + 1);
		must(ips_append_variable_tile(
			recording, &(struct ips_variable_tile){id, ipu, tile, bytes, more}));
	}
	must(ips_append_variable(recording, &row));
}

static void put_tiles(struct ips_recording *recording, struct rng *rng, int64_t ipu)
{
	for (size_t c = 0; c < CATEGORIES; c++)
		for (int64_t tile = 0; tile < TILES; tile += TILES / 16)
			must(ips_append_tile_memory(
				recording,
				&(struct ips_tile_memory){ipu, tile, categories[c],
							  c < 2 ? "interleaved" : "nonInterleaved",
							  1000 + rng_below(rng, 100000), CAPACITY,
							  TILES / 16 - 1}));
}

int main(int argc, char **argv)
{
	long long ipus = 64, variables = 1000;
	struct ips_recording *recording;
	struct rng rng;
	char why[512];

	if (argc < 2 || argc > 4 || (argc > 2 && !str_to_int(argv[2], &ipus)) ||
	    (argc > 3 && !str_to_int(argv[3], &variables))) {
		fprintf(stderr, "usage: make_memory FILE [IPUS [VARIABLES]]\n");
		return 2;
	}
	if (ips_recording_open(&recording, argv[1], NULL, why, sizeof(why)) != 0) {
		fprintf(stderr, "make_memory: %s\n", why);
		return 1;
	}
	rng_init(&rng, 1, rng_stream("make_memory"), 0, 0);
	for (int64_t ipu = 0; ipu < ipus; ipu++) {
		put_tiles(recording, &rng, ipu);
		for (int64_t i = 0; i < variables; i++)
			put_variable(recording, &rng, ipu * variables + i, ipu, i);
	}
	if (ips_recording_close(recording, why, sizeof(why)) == 0)
		return 0;
	fprintf(stderr, "make_memory: %s\n", why);
	return 1;
}
