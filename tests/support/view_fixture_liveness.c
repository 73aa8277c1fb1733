/*
 * Variables that come and go in a fixed pattern, and the live bytes that follow from them.
 *
 * Threading: one thread. Ownership: none.
 */
#include "support/view_fixture_liveness.h"

#include <stdio.h>
#include <stdlib.h>

#include "profiler/ipuscope/profiler.h"
#include "support/view_fixture.h"

#define IPUS       2
#define LASTING    3 /* variables that are always live, of each IPU */
#define LAYERS     4
#define TILE_BYTES 4096

/* When variable @v of a program of @steps lives, and how large it is: later ones are shorter. */
static void variable_of(const struct view_fixture_liveness *params, int64_t steps, int v,
			struct ips_variable *out)
{
	out->always_live = 0;
	out->first_program_step = v * (steps - 1) / (params->variables + 1);
	out->last_program_step = out->first_program_step + steps / (2 + v % 5);
	if (out->last_program_step > steps - 2)
		out->last_program_step = steps - 2;
	out->bytes = params->scale * (1024 + 512 * (int64_t)(v * 37 % 11));
}

static bool left_out(const struct view_fixture_liveness *params, int v)
{
	return params->less && v % 7 == 3;
}

/* Changes of the live bytes by step, added up. */
static void write_steps(struct ips_recording *recording, int64_t ipu, int64_t steps,
			int64_t lasting, int64_t *changes)
{
	int64_t live = 0;

	for (int64_t step = 0; step < steps; step++) {
		const struct ips_liveness row = {ipu, step, ipu * 100000000 + step, lasting,
						 live += changes[step]};

		ips_append_liveness(recording, &row);
	}
}

static bool write_ipu(struct ips_recording *recording, const struct view_fixture_liveness *params,
		      int64_t ipu)
{
	const int64_t steps = params->steps / (ipu + 1);
	int64_t *changes = calloc((size_t)steps + 1, sizeof(*changes));
	int64_t id = params->ids + ipu * 1000000, lasting = 0;
	char name[64], layer[32];

	if (!changes)
		return false;
	for (int v = 0; v < params->variables + LASTING; v++) {
		struct ips_variable row = {.variable_id = id++,
					   .variable = name,
					   .layer = layer,
					   .kind = v % 2 ? "temporary" : "activation",
					   .shape = "(32, 16)",
					   .dtype = "float32",
					   .ipu = ipu};
		const bool always = v >= params->variables;

		snprintf(name, sizeof(name), "%s_%d", always ? "kernel" : "buffer", v);
		snprintf(layer, sizeof(layer), "layer_%d", v % LAYERS);
		variable_of(params, steps, v, &row);
		if (left_out(params, v))
			continue;
		if (always) {
			row.always_live = 1;
			row.kind = "weight";
			row.first_program_step = row.last_program_step = IPS_NULL;
			lasting += row.bytes;
		} else {
			changes[row.first_program_step] += row.bytes;
			changes[row.last_program_step + 1] -= row.bytes;
		}
		ips_append_variable(recording, &row);
	}
	write_steps(recording, ipu, steps, lasting, changes);
	free(changes);
	return true;
}

static void write_programs(struct ips_recording *recording)
{
	static const char *const names[] = {"Dense/MatMul/ExchangePre", "Dense/MatMul/Convolve",
					    "Dense/Relu", "loss/Reduce"};

	for (int64_t ipu = 0; ipu < IPUS; ipu++)
		for (int64_t p = 0; p < 4; p++)
			ips_append_program(recording,
					   &(struct ips_program){ipu * 100000000 + p, IPS_NULL, p,
								 "OnTileExecute", names[p],
								 p < 2 ? "Dense/MatMul" : NULL,
								 IPS_NULL, IPS_NULL});
}

bool view_fixture_liveness_write(const char *path, const struct view_fixture_liveness *params)
{
	struct ips_recording *recording = view_fixture_record(path, NULL);
	bool written = true;

	if (!recording)
		return false;
	write_programs(recording);
	for (int64_t ipu = 0; ipu < IPUS && written; ipu++) {
		written = write_ipu(recording, params, ipu);
		for (int64_t tile = 0; tile < params->tiles; tile++)
			ips_append_tile_memory(recording,
					       &(struct ips_tile_memory){ipu, tile, "variables",
									 "interleaved", 1024,
									 TILE_BYTES, 0});
	}
	return ips_recording_close(recording, NULL, 0) == 0 && written;
}
