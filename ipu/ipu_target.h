/*
 * The machines that are simulated: constants of the target, each with its source in
 * docs/cost-model.md.
 */
#ifndef IPU_TARGET_H
#define IPU_TARGET_H

#include <stdint.h>

#include "common/err.h"

struct ipu_target {
	const char *name;            /* ipu1, ipu2, ipu21, c600 */
	const char *description;     /* "Mk2 GC200" */
	int64_t tiles;               /* per IPU */
	int64_t bytes_per_tile;      /* SRAM */
	double clock_hz;             /* of a tile */
	double flops_per_cycle_tile; /* AMP peak, fp32: 2 x MACs */
	double vector_lanes_fp32;    /* non-AMP lanes per cycle and tile */
	double exchange_bytes_cycle; /* per tile, each way */
	double sync_cycles;          /* of all tiles of one IPU */
	double global_sync_cycles;   /* between IPUs */
	double link_bytes_second;    /* between the IPUs of a pair, each way */
	double host_bytes_second;    /* stream copies of one host link */
	double execution_host_ns;    /* fixed host cost of one Engine::run */
};

/* By name; ST_NOTFOUND names the nearest. @tiles > 0 shrinks it, as
 * IPUConfig.ipu_model.tiles_per_ipu. */
enum status ipu_target_get(const char *name, int64_t tiles, struct ipu_target *out,
			   struct err *err);

/* ns of @cycles, rounded to the nearest. */
int64_t ipu_target_ns(const struct ipu_target *target, int64_t cycles);

/* The names, for messages and completion. */
const char *const *ipu_target_names(int *count);

#endif /* IPU_TARGET_H */
