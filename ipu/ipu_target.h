/*
 * The machines that are simulated: constants of the target, each with its source in
 * docs/cost-model.md.
 */
#ifndef IPU_TARGET_H
#define IPU_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* The accumulating matrix unit in one number format: every `cycles` cycles a tile multiplies a
 * position's group of `in_group` input channels with the weights of `units` output channels. */
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
	const char *machine;       /* "IPU-M2000": what ipus_host_link IPUs are in */
	int64_t tiles;             /* per IPU */
	int64_t bytes_per_tile;    /* SRAM */
	int64_t interleaved_bytes; /* of it */
	double clock_hz;           /* of a tile */
	int64_t workers;           /* threads of a tile; each issues every so many cycles */
	struct ipu_amp amp[IPU_AMP_MODES];
	int64_t vector_bytes;        /* of a vector instruction: 2 float32 or 4 float16 lanes */
	int64_t load_bytes_cycle;    /* of a tile from its memory; twice that where interleaved */
	double exchange_bytes_cycle; /* per tile, each way */
	double sync_cycles;          /* of all tiles of one IPU */
	double global_sync_cycles;   /* between IPUs */
	double sync_hop_ns;          /* and for each hop of a ladder, there and back twice that */
	/* Of every exchange and compute set, beside its busiest tile's work: sync, entry, launch of
	 * vertices, skew of tiles. Solved once, from published products (docs/cost-model.md). */
	double phase_cycles;
	/* Of a framework's step with each stream copy, beside its latency: the host's sync, a copy
	 * for each tensor, loop counters and the like. Solved once, from one published step. */
	double framework_ns;
	double link_bytes_second;    /* between the IPUs of a pair, each way */
	int64_t ipus_link_domain;    /* that IPU-Links join; gateways join the domains */
	double gateway_bytes_second; /* of an IPU from its domain to another, each way */
	double host_bytes_second;    /* stream copies of one host link */
	double host_latency_ns;      /* of a stream copy, beside its bytes */
	/* At which the host fills the buffers that it streams from. */
	double host_fill_bytes_second;
	int64_t ipus_host;          /* IPUs for which one host prepares the input */
	int64_t ipus_host_link;     /* IPUs of a machine, which share its host link */
	double execution_host_ns;   /* fixed host cost of one Engine::run */
	double remote_bytes_second; /* streaming memory, per IPU; 0: there is none */
};

/* float32 multiply-adds count twice. */
double ipu_target_flops_cycle_tile(const struct ipu_target *target, enum ipu_amp_mode mode);

/* By name; ST_NOTFOUND names the nearest. @tiles > 0 shrinks it, as
 * IPUConfig.ipu_model.tiles_per_ipu. */
enum status ipu_target_get(const char *name, int64_t tiles, struct ipu_target *out,
			   struct err *err);

/* Of all tiles of an IPU: the peak that is published, float16 operands with float16 partials where
 * @half, else float32. */
double ipu_target_peak_flops_cycle(const struct ipu_target *target, bool half);

/* ns of @cycles, rounded to the nearest. */
int64_t ipu_target_ns(const struct ipu_target *target, int64_t cycles);

/* The names, for messages and completion. */
const char *const *ipu_target_names(int *count);

#endif /* IPU_TARGET_H */
