/*
 * The memory of the simulated IPUs of one replica: every tensor placed on tiles, what the layout
 * adds to them, the bytes of code, and what of it lives at which program step. Rules, estimates and
 * their sources: docs/cost-model.md.
 *
 * Plain data that does not change after ipu_memory_new(); texts and lists belong to it, graph and
 * executable are borrowed. Bytes are of one IPU of one replica; the other replicas hold the same.
 */
#ifndef IPU_MEMORY_H
#define IPU_MEMORY_H

#include "ipu/compile/ipu_program.h"

/* PopVision's categories, and what takes turns on the same bytes. */
enum ipu_memory_category {
	IPU_MEMORY_VARIABLES,       /* always live */
	IPU_MEMORY_NOT_ALWAYS_LIVE, /* other variables: the most at once */
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
	IPU_MEMORY_NON_INTERLEAVED, /* code, and what data does not fit in the other */
	IPU_MEMORY_INTERLEAVED,
	IPU_MEMORY_OVERFLOWED, /* beyond the tile's memory */
	IPU_MEMORY_REGIONS
};

const char *ipu_memory_region_name(enum ipu_memory_region region); /* "nonInterleaved" */

/* @bytes on each of @tiles tiles from @tile on. */
struct ipu_tile_run {
	int64_t tile, tiles, bytes;
};

/* A piece of memory with a name. Always live, or from the first to the last of its program steps.
 * What is not in one piece all the time is several variables: a stashed activation lives in the
 * forward pass, in its FIFO, and as it is popped for the backward pass. */
struct ipu_variable {
	const char *name; /* unique in the replica */
	const char *kind; /* a tensor's, "fifo", "io_buffer", or a category's name */
	const char *layer;
	const struct ipu_tensor *tensor; /* that it is of; NULL: none */
	int node;                        /* whose temporaries; -1: of none */
	int ipu;                         /* in the replica */
	enum ipu_memory_category category;
	int64_t bytes;
	bool always_live;
	bool crosses;              /* it is copied to or from another IPU */
	int first_step, last_step; /* program steps of its IPU; -1: always live, or never used */
	const struct ipu_tile_run *runs;
	int run_count;
};

/* A program step: a leaf of the tree other than a sync, in the order of a weight update's work on
 * the IPU: forward by stage, backward from the last stage, update. */
struct ipu_memory_step {
	int program, node; /* node -1: none */
	int64_t not_always_live_bytes;
};

struct ipu_memory_ipu {
	const struct ipu_memory_step *steps;
	int step_count;
	int64_t always_live_bytes;
	int64_t peak_bytes; /* always live, and the most of the others at one step */
	int peak_step;      /* -1: there are no steps */
	int64_t *category[IPU_MEMORY_CATEGORIES]; /* by tile; their sum is what the tile needs */
	int *tile_peak_step;                      /* by tile, of the not always live */
	int tiles_over;                           /* that need more than they have */
	int64_t worst_tile, worst_bytes;          /* with most in proportion to what it has */
};

struct ipu_memory {
	const struct ipu_graph *graph;
	struct ipu_variable *variables; /* by IPU, in order of placing */
	int variable_count;
	struct ipu_memory_ipu *ipus;
	int ipu_count;
	int64_t tiles, io_tiles; /* of an IPU; I/O tiles are its last ones */
	int64_t bytes_per_tile;
	int64_t io_bytes_per_tile; /* what an I/O tile may use of it */
	int64_t interleaved_bytes; /* of a tile */
	struct arena arena;
};

/* Fails on lack of memory and on tensors that no machine has memory for (4 TB and more). */
enum status ipu_memory_new(struct ipu_memory **out, const struct ipu_executable *executable,
			   const struct ipu_target *target, struct err *err);
void ipu_memory_free(struct ipu_memory *memory); /* accepts NULL */

/* What a tile needs, and what it has. */
int64_t ipu_memory_tile_bytes(const struct ipu_memory *memory, int ipu, int64_t tile);
int64_t ipu_memory_tile_limit(const struct ipu_memory *memory, int64_t tile);
/* A tile's categories laid into its regions: code in the memory that is not interleaved, data in
 * the interleaved, either in the other where its own is full. */
void ipu_memory_regions(const struct ipu_memory *memory, int ipu, int64_t tile,
			int64_t bytes[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS]);

int64_t ipu_variable_on_tile(const struct ipu_variable *variable, int64_t tile); /* bytes */

/* Of the IPU that needs most: always live, and the most of the others at one step. */
int64_t ipu_memory_peak(const struct ipu_memory *memory);

/* No tile needs more than it has. */
bool ipu_memory_fits(const struct ipu_memory *memory);

/* ST_OK where it fits; else ST_FAILED and a line that tells how many tiles do not, the fullest with
 * what is largest there, and which changes would help how far. @executable and @target as for
 * ipu_memory_new(). */
enum status ipu_memory_check(const struct ipu_memory *memory,
			     const struct ipu_executable *executable,
			     const struct ipu_target *target, struct err *err);

#endif /* IPU_MEMORY_H */
