/*
 * Memory of tiles with given bytes.
 */
#include "support/view_fixture_memory.h"

#include <stdio.h>

#include "profiler/ipuscope/profiler.h"
#include "support/view_fixture.h"

#define LARGE_TILES      1472
#define LARGE_CATEGORIES 16

static void fixture_memory(struct ips_recording *r, int64_t ipu, int64_t tile, int64_t more,
			   const char *category, const char *region, int64_t bytes)
{
	ips_append_tile_memory(r, &(struct ips_tile_memory){ipu, tile, category, region, bytes,
							    VIEW_FIXTURE_CAPACITY, more});
}

/* A variable on @more + 1 tiles from @tile on. */
static void fixture_variable(struct ips_recording *r, int64_t id, const char *name,
			     const char *layer, const char *kind, int64_t ipu, int64_t tile,
			     int64_t more, int64_t bytes, bool always)
{
	ips_append_variable(r,
			    &(struct ips_variable){id, name, layer, kind, "(8, 8)", "float32",
						   bytes * (more + 1), ipu, always,
						   always ? IPS_NULL : 3, always ? IPS_NULL : 9});
	ips_append_variable_tile(r, &(struct ips_variable_tile){id, ipu, tile, bytes, more});
}

static void fixture_ipu(struct ips_recording *r, int64_t ipu)
{
	fixture_memory(r, ipu, 0, VIEW_FIXTURE_TILES - 1, "stack", "nonInterleaved", 3584);
	fixture_memory(r, ipu, 10, 49, "variables", "interleaved", 8192);
	fixture_memory(r, ipu, 30, 9, "vertexCode", "nonInterleaved", 1000 * (ipu + 1));
	fixture_memory(r, ipu, 40, 0, "vertexCode", "nonInterleaved", 12345);
	fixture_memory(r, ipu, 100, 20, "notAlwaysLiveVariables", "interleaved", 5000);
	fixture_variable(r, 10 * ipu, "Dense_128/kernel:0", "Dense_128", "weight", ipu, 10, 49,
			 8192, true);
	fixture_variable(r, 10 * ipu + 1, "Dense_128/out", "Dense_128", "activation", ipu, 100, 20,
			 5000, false);
	fixture_variable(r, 10 * ipu + 2, "evil\x1b[31m\xff'name", NULL, "temporary", ipu, 40, 0,
			 77, false);
}

/* Beyond what the others have: memory, a variable, and more of one that they have, too. */
static void fixture_more(struct ips_recording *r, int64_t last_ipu)
{
	fixture_memory(r, last_ipu, 77, 0, "variables", "overflowed", 70000);
	fixture_variable(r, 1000, "more/alone", NULL, "temporary", 0, 40, 1, 500, false);
	fixture_variable(r, 1001, "Dense_128/kernel:0", "Dense_128", "weight", 0, 40, 0, 8, true);
}

static void fixture_large(struct ips_recording *r, int64_t ipu)
{
	char category[32];

	for (int c = 0; c < LARGE_CATEGORIES; c++) {
		snprintf(category, sizeof(category), "category%d", c);
		for (int64_t tile = 0; tile < LARGE_TILES; tile += 92)
			fixture_memory(r, ipu, tile, 91, category, "nonInterleaved",
				       100 * (c + 1) + tile);
	}
}

bool view_fixture_memory_write(const char *path, enum view_fixture_memory what, int ipus)
{
	struct ips_recording *recording = view_fixture_record(path, NULL);

	if (!recording)
		return false;
	for (int ipu = 0; ipu < ipus; ipu++) {
		if (what == VIEW_FIXTURE_LARGE)
			fixture_large(recording, ipu);
		else
			fixture_ipu(recording, ipu);
	}
	if (what == VIEW_FIXTURE_FULL)
		fixture_more(recording, ipus - 1);
	return ips_recording_close(recording, NULL, 0) == 0;
}
