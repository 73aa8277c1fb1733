/*
 * Memory of the simulated IPUs of one replica: every tensor mapped to tiles, additions of the
 * layout, code bytes, and liveness by program step. Rules, estimates and their sources:
 * docs/cost-model.md.
 *
 * Plain data, immutable after ipu_memory_new(); it owns its strings and lists and borrows graph and
 * executable. Bytes are of one IPU of one replica; the other replicas hold the same.
 */
#ifndef IPU_MEMORY_H
#define IPU_MEMORY_H

#include "ipu/compile/ipu_program.h"

/* PopVision's categories, and one for variables that share bytes over time. */
enum ipu_memory_category {
	IPU_MEMORY_VARIABLES,       /* always live */
	IPU_MEMORY_NOT_ALWAYS_LIVE, /* other variables: the most live at once */
	IPU_MEMORY_CONTROL_CODE,
	IPU_MEMORY_VERTEX_CODE,
	IPU_MEMORY_VERTEX_INSTANCE_STATE,
	IPU_MEMORY_VERTEX_FIELD_DATA,
	IPU_MEMORY_VECTOR_LIST_DESCRIPTOR,
	IPU_MEMORY_COPY_DESCRIPTOR,
	IPU_MEMORY_INTERNAL_EXCHANGE_CODE,
	IPU_MEMORY_HOST_EXCHANGE_CODE,
	IPU_MEMORY_GLOBAL_EXCHANGE_CODE,
	IPU_MEMORY_HOST_EXCHANGE_PACKET_HEADER,
	IPU_MEMORY_GLOBAL_EXCHANGE_PACKET_HEADER,
	IPU_MEMORY_CONTROL_TABLE,
	IPU_MEMORY_CONTROL_ID,
	IPU_MEMORY_STACK,
	IPU_MEMORY_CATEGORIES
};

const char *ipu_memory_category_name(enum ipu_memory_category category); /* "vertexCode" */

enum ipu_memory_region {
	IPU_MEMORY_NON_INTERLEAVED, /* code, and data that does not fit into the other */
	IPU_MEMORY_INTERLEAVED,
	IPU_MEMORY_OVERFLOWED, /* beyond the tile's memory */
	IPU_MEMORY_REGIONS
};

const char *ipu_memory_region_name(enum ipu_memory_region region); /* "nonInterleaved" */

/* A range of tiles: @bytes on each of @tiles tiles from @tile on. */
struct ipu_tile_run {
	int64_t tile, tiles, bytes;
};

/* A named allocation, live always or from the first to the last of its program steps. A tensor
 * whose allocation changes over time has several variables: a stashed activation is live in the
 * forward pass, in its FIFO, and when it is popped for the backward pass. */
struct ipu_variable {
	const char *name; /* unique in the replica */
	const char *kind; /* of the tensor, "fifo", "io_buffer", or the name of a category */
	const char *layer;
	const struct ipu_tensor *tensor; /* or NULL */
	int node;                        /* whose temporary it is, or -1 */
	int ipu;                         /* within the replica */
	enum ipu_memory_category category;
	int64_t bytes;
	bool always_live;
	bool crosses;              /* copied to or from another IPU */
	int first_step, last_step; /* program steps of its IPU; -1: always live, or never used */
	const struct ipu_tile_run *runs;
	int run_count;
};

/* A program step: a leaf of the program tree other than a sync, in the order in which the IPU works
 * on a weight update: forward by stage, backward from the last stage, update. */
struct ipu_memory_step {
	int program, node; /* node -1: none */
	int64_t not_always_live_bytes;
};

struct ipu_memory_ipu {
	const struct ipu_memory_step *steps;
	int step_count;
	int64_t always_live_bytes;
	int64_t peak_bytes; /* always live, plus the most of the others at one step */
	int peak_step;      /* -1: there are no steps */
	int64_t *category[IPU_MEMORY_CATEGORIES]; /* bytes by tile; their sum is the tile's need */
	int *tile_peak_step;                      /* by tile, of variables not always live */
	int tiles_over;                           /* number of tiles over their limit */
	int64_t worst_tile, worst_bytes;          /* the tile fullest relative to its limit */
};

struct ipu_memory {
	const struct ipu_graph *graph;
	struct ipu_variable *variables; /* by IPU, in order of allocation */
	int variable_count;
	struct ipu_memory_ipu *ipus;
	int ipu_count;
	int64_t tiles, io_tiles; /* per IPU; the last ones are I/O tiles */
	int64_t bytes_per_tile;
	int64_t io_bytes_per_tile; /* limit of an I/O tile */
	int64_t interleaved_bytes; /* per tile */
	struct arena arena;
};

/* Fails if out of memory, and on tensors too large for any machine (4 TB and more). */
enum status ipu_memory_new(struct ipu_memory **out, const struct ipu_executable *executable,
			   const struct ipu_target *target, struct err *err);
void ipu_memory_free(struct ipu_memory *memory); /* accepts NULL */

/* Bytes that a tile needs, and its limit. */
int64_t ipu_memory_tile_bytes(const struct ipu_memory *memory, int ipu, int64_t tile);
int64_t ipu_memory_tile_limit(const struct ipu_memory *memory, int64_t tile);
/* Divide a tile's categories among its regions: code in non-interleaved memory, data in interleaved
 * memory, and either in the other region when its own is full. */
void ipu_memory_regions(const struct ipu_memory *memory, int ipu, int64_t tile,
			int64_t bytes[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS]);

int64_t ipu_variable_on_tile(const struct ipu_variable *variable, int64_t tile); /* bytes */

/* peak_bytes of the IPU that needs most: always live plus the most of the others at one step. */
int64_t ipu_memory_peak(const struct ipu_memory *memory);

/* Return whether no tile exceeds its limit. */
bool ipu_memory_fits(const struct ipu_memory *memory);

/* Return ST_OK if the memory fits. Otherwise return ST_FAILED with one line: how many tiles exceed
 * their limit, the fullest tile with its largest variables, and which changes would reduce its
 * memory to how much. @executable and @target as for ipu_memory_new(). */
enum status ipu_memory_check(const struct ipu_memory *memory,
			     const struct ipu_executable *executable,
			     const struct ipu_target *target, struct err *err);

#endif /* IPU_MEMORY_H */
