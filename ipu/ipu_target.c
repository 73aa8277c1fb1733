/*
 * The table of targets. docs/cost-model.md gives the source of each figure, row by row.
 *
 * Constant data: any thread.
 */
#include "ipu/ipu_target.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* Common to all four. The link within a pair: 64 GB/s in each direction at 85 % efficiency. */
#define COMMON_TILE                                                                                \
	.workers = 6, .vector_bytes = 8, .load_bytes_cycle = 8, .exchange_bytes_cycle = 4,         \
	.sync_cycles = 126, .sync_hop_ns = 15, .phase_cycles = 205
#define COMMON_SYSTEM                                                                              \
	.link_bytes_second = 54.4e9, .host_latency_ns = 2000, .framework_ns = 33200,               \
	.execution_host_ns = 2.5e6

/* The host link. M2000: through its gateway, as measured for streaming and for buffering, for four
 * IPUs. Cards: PCIe with the given GT/s and eight lanes at the efficiency of the IPU-Links; also
 * used for the copy into the host's own buffer. */
#define HOST_GATEWAY                                                                               \
	.host_bytes_second = 5.5e9, .host_fill_bytes_second = 56.5e9 / 8, .ipus_host_link = 4
#define PCIE_X8(gigatransfers) ((gigatransfers)*1e9 * 128 / 130 * 0.85)
#define HOST_PCIE(gigatransfers, ipus)                                                             \
	.host_bytes_second = PCIE_X8(gigatransfers),                                               \
	.host_fill_bytes_second = PCIE_X8(gigatransfers), .ipus_host_link = (ipus)
/* Streaming memory is behind the gateway, as the host is. */
#define REMOTE_BYTES_SECOND 5.5e9

/* The 16 M2000 of a Pod64 form one link domain; each has two GW-Links of 100 Gb/s. A server of C2
 * or C600 cards has a network port of 100 Gb/s. */
#define POD64 .ipus_host = 16, .ipus_link_domain = 64, .gateway_bytes_second = 25e9 / 4
#define SERVER(ipus)                                                                               \
	.ipus_host = (ipus), .ipus_link_domain = (ipus), .gateway_bytes_second = 12.5e9 / (ipus)

/* By enum ipu_amp_mode: units, channels per group, cycles. */
#define MK1_AMP                                                                                    \
	{                                                                                          \
		{4, 8, 4}, {8, 16, 4},                                                             \
		{                                                                                  \
			8, 16, 4                                                                   \
		}                                                                                  \
	}
#define MK2_AMP                                                                                    \
	{                                                                                          \
		{16, 8, 8}, {8, 16, 4},                                                            \
		{                                                                                  \
			16, 16, 4                                                                  \
		}                                                                                  \
	}

#define MK2_CHIP                                                                                   \
	.architecture = "Mk2", .tiles = 1472, .bytes_per_tile = 624 * 1024,                        \
	.interleaved_bytes = 416 * 1024, .amp = MK2_AMP, COMMON_TILE, .global_sync_cycles = 600,   \
	COMMON_SYSTEM

static const struct ipu_target ipu_targets[] = {
	{
		.name = "ipu1",
		.description = "Mk1 GC2",
		.machine = "C2 card",
		.architecture = "Mk1",
		.tiles = 1216,
		.bytes_per_tile = 256 * 1024,
		.interleaved_bytes = 128 * 1024,
		.clock_hz = 1.6e9,
		.amp = MK1_AMP,
		COMMON_TILE,
		.global_sync_cycles = 500,
		COMMON_SYSTEM,
		HOST_PCIE(8, 2),
		SERVER(16),
	},
	{
		.name = "ipu2",
		.description = "Mk2 GC200",
		.machine = "IPU-M2000",
		MK2_CHIP,
		.clock_hz = 1.33e9,
		HOST_GATEWAY,
		POD64,
		.remote_bytes_second = REMOTE_BYTES_SECOND,
	},
	{
		.name = "ipu21",
		.description = "Bow (Mk2 at 1.85 GHz)",
		.machine = "Bow-2000",
		MK2_CHIP,
		.clock_hz = 1.85e9,
		HOST_GATEWAY,
		POD64,
		.remote_bytes_second = REMOTE_BYTES_SECOND,
	},
	{
		.name = "c600",
		.description = "C600 card (IPU21)",
		.machine = "C600 card",
		MK2_CHIP,
		.clock_hz = 1.49e9,
		HOST_PCIE(16, 1),
		SERVER(8),
	},
};

static const char *const ipu_names[] = {"ipu1", "ipu2", "ipu21", "c600"};
_Static_assert(ARRAY_LEN(ipu_names) == ARRAY_LEN(ipu_targets), "target table out of step");

enum status ipu_target_get(const char *name, int64_t tiles, struct ipu_target *out, struct err *err)
{
	const struct ipu_target *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(ipu_targets) && !found; i++) {
		assert(strcmp(ipu_targets[i].name, ipu_names[i]) == 0);
		if (strcmp(ipu_targets[i].name, name) == 0)
			found = &ipu_targets[i];
	}
	if (!found) {
		const char *nearest = str_nearest(name, ipu_names, ARRAY_LEN(ipu_names));
		struct str names = {0};
		enum status status;

		for (size_t i = 0; i < ARRAY_LEN(ipu_names); i++)
			str_addf(&names, "%s%s", i > 0 ? ", " : "", ipu_names[i]);
		if (nearest)
			status = err_set(err, ST_NOTFOUND,
					 "unknown target \"%s\" (did you mean \"%s\"?)", name,
					 nearest);
		else
			status = err_set(err, ST_NOTFOUND, "unknown target \"%s\" (there are %s)",
					 name, str_peek(&names));
		str_free(&names);
		return status;
	}
	if (tiles < 0 || tiles > found->tiles)
		return err_set(err, ST_INVALID,
			       "%lld tiles per IPU: %s has 1 to %lld (0 for all of them)",
			       (long long)tiles, name, (long long)found->tiles);
	*out = *found;
	if (tiles > 0)
		out->tiles = tiles;
	return ST_OK;
}

/* FLOP per cycle of a tile; multiply-adds count twice. */
double ipu_target_peak_flops_cycle(const struct ipu_target *target, bool half)
{
	const struct ipu_amp *amp = &target->amp[half ? IPU_AMP_HALF_HALF : IPU_AMP_FLOAT];

	return (double)target->tiles *
	       (2.0 * (double)(amp->units * amp->in_group) / (double)amp->cycles);
}

int64_t ipu_target_ns(const struct ipu_target *target, int64_t cycles)
{
	/* Exact to about 2^52 cycles (40 days); beyond that limited by the precision of double. */
	return llround((double)cycles * 1e9 / target->clock_hz);
}

const char *const *ipu_target_names(int *count)
{
	*count = (int)ARRAY_LEN(ipu_names);
	return ipu_names;
}
