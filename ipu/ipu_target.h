/*
 * The simulated machines: constants of each target, with their sources in docs/cost-model.md.
 */
#ifndef IPU_TARGET_H
#define IPU_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* The accumulating matrix unit (AMP) in one number format: every `cycles` cycles a tile multiplies
 * `in_group` input channels of a position with the weights of `units` output channels. */
enum ipu_amp_mode {
	IPU_AMP_FLOAT,     /* float32 */
	IPU_AMP_HALF,      /* float16 operands, float32 partials */
	IPU_AMP_HALF_HALF, /* float16 operands and partials */
	IPU_AMP_MODES
};

struct ipu_amp {
	int64_t units, in_group, cycles;
};

struct ipu_target {
	const char *name;          /* ipu1, ipu2, ipu21, c600 */
	const char *description;   /* "Mk2 GC200" */
	const char *architecture;  /* "Mk1", "Mk2" */
	const char *machine;       /* "IPU-M2000": the unit that contains ipus_host_link IPUs */
	int64_t tiles;             /* per IPU */
	int64_t bytes_per_tile;    /* SRAM */
	int64_t interleaved_bytes; /* part of bytes_per_tile */
	double clock_hz;           /* of a tile */
	int64_t workers;           /* threads per tile; each issues once per `workers` cycles */
	struct ipu_amp amp[IPU_AMP_MODES];
	int64_t vector_bytes;        /* of a vector instruction: 2 float32 or 4 float16 lanes */
	int64_t load_bytes_cycle;    /* per tile from its memory; doubled if interleaved */
	double exchange_bytes_cycle; /* per tile, in each direction */
	double sync_cycles;          /* of all tiles of one IPU */
	double global_sync_cycles;   /* between IPUs */
	double sync_hop_ns;          /* added per hop of a ladder in each direction */
	/* Overhead of every exchange and compute set beside its busiest tile's work: sync, entry,
	 * launch of vertices, skew of tiles. Fitted to published products (docs/cost-model.md). */
	double phase_cycles;
	/* Overhead of a framework's step with each stream copy beside its latency: the host's sync,
	 * a copy per tensor, loop counters. Fitted to one published step. */
	double framework_ns;
	double link_bytes_second;    /* between the IPUs of a pair, in each direction */
	int64_t ipus_link_domain;    /* IPUs joined by IPU-Links; gateways join the domains */
	double gateway_bytes_second; /* per IPU, between domains, in each direction */
	double host_bytes_second;    /* stream copies of one host link */
	double host_latency_ns;      /* of a stream copy, independent of its bytes */
	/* Rate at which the host fills the buffers from which it streams. */
	double host_fill_bytes_second;
	int64_t ipus_host;          /* IPUs whose input one host prepares */
	int64_t ipus_host_link;     /* IPUs that share the host link of a machine */
	double execution_host_ns;   /* fixed host cost of one Engine::run */
	double remote_bytes_second; /* streaming memory, per IPU; 0: none */
};

/* Look up a target; ST_NOTFOUND suggests the nearest name. @tiles > 0 reduces its tiles, as
 * IPUConfig.ipu_model.tiles_per_ipu does. */
enum status ipu_target_get(const char *name, int64_t tiles, struct ipu_target *out,
			   struct err *err);

/* Published peak of an IPU with all tiles: float16 operands with float16 partials if @half, else
 * float32. */
double ipu_target_peak_flops_cycle(const struct ipu_target *target, bool half);

/* Convert @cycles to ns, rounded to the nearest. */
int64_t ipu_target_ns(const struct ipu_target *target, int64_t cycles);

/* The names, for messages and completion. */
const char *const *ipu_target_names(int *count);

#endif /* IPU_TARGET_H */
