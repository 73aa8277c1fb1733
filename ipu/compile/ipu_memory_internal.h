/*
 * What the files of ipu_memory share: how a memory is built. Steps first, then uses of tensors,
 * then variables, then code, then what lives when.
 */
#ifndef IPU_MEMORY_INTERNAL_H
#define IPU_MEMORY_INTERNAL_H

#include "ipu/compile/ipu_memory.h"

/* The phases that operations of the graph belong to: F, B, U. */
#define MEMORY_PHASES 3
_Static_assert(IPU_FUNCTION_F < MEMORY_PHASES && IPU_FUNCTION_B < MEMORY_PHASES &&
		       IPU_FUNCTION_U < MEMORY_PHASES,
	       "F, B and U are not the first functions");

/* Of what is placed: sums of a million of these stay in range. */
#define MEMORY_MOST_BYTES     (INT64_C(1) << 42)
#define MEMORY_MOST_VARIABLES (1 << 20)

/* The program steps of a stage's phase on its IPU: [first, end). */
struct memory_section {
	int first, end;
};

/* When an operation runs: its program steps, -1 where it does not. @again: replayed before the
 * backward pass. */
struct memory_when {
	int first, last, again_first, again_last;
};

/* A tensor's use by the operations of one phase of a place; W's are B's. */
struct memory_use {
	int tensor, place;
	int node; /* the first operation */
	enum ipu_function_phase phase;
	int first, last;             /* program steps */
	int again_first, again_last; /* where they are replayed; -1: they are not */
	bool read, written;          /* is */
	bool held;                   /* by a W, which may come later than its B */
	bool read_first;             /* before anything writes it, or in place */
	int writer;                  /* the first operation that writes it; -1 */
};

/* Where a tensor lies: on so many tiles from @start on. */
struct memory_spread {
	int ipu; /* -1: nowhere yet */
	int64_t start;
};

struct memory_build {
	struct ipu_memory *memory;
	const struct ipu_executable *executable;
	const struct ipu_graph *graph;
	const struct ipu_target *target;
	const struct ipu_schedule *schedule; /* NULL: one stage, one IPU */
	int64_t batch_divisor;               /* 1; to ask what a smaller batch would need */
	bool training;
	bool streaming;           /* stages work on different micro-batches at once */
	bool grouped;             /* and an IPU does all its programs in each time step */
	bool replays_late;        /* a stage's replay is right before its backward */
	int64_t compute_tiles;    /* of an IPU */
	int *same;                /* by operation: the first on its IPU of the same function */
	bool **stashed;           /* by stage, by tensor: its forward leaves it for its backward */
	bool *replayed;           /* by operation */
	struct memory_when *when; /* by operation */
	struct memory_section (*sections)[IPU_FUNCTION_PHASES]; /* by stage */
	struct memory_use *uses; /* by tensor, then place, then phase */
	int use_count;
	int *plan_node; /* by tensor: the operation whose plan says where it lies; -1: none */
	int *like;      /* by tensor: lies as that one; itself where it is no other's */
	struct memory_spread *spread; /* by tensor */
	int64_t *cursor;              /* by IPU: the tile on which the next tensor starts */
	size_t variable_capacity;
	struct err *err;
};

/* A stage's IPU. */
int memory__device(const struct memory_build *build, int stage);
/* Where stages' tensors lie apart: each stage where they stream, else each IPU. */
int memory__place(const struct memory_build *build, int stage);
int memory__place_device(const struct memory_build *build, int place);

enum status memory__add_stashes(struct memory_build *build);
enum status memory__add_stashes(struct memory_build *build);
enum status memory__add_steps(struct memory_build *build);
enum status memory__add_uses(struct memory_build *build);
enum status memory__add_tensors(struct memory_build *build);
enum status memory__add_temporaries(struct memory_build *build);
enum status memory__add_code(struct memory_build *build);
enum status memory__add_liveness(struct memory_build *build);

/* Convolutions and products that are the same are a function that is called, as TensorFlow for IPU
 * caches them: its code and its place are there once. */
enum status memory__add_functions(struct memory_build *build);
/* Tile of an operation's first vertex. */
int64_t memory__node_start(const struct memory_build *build, int node);

/* Append; the runs are copied. */
enum status memory__add_variable(struct memory_build *build, const struct ipu_variable *variable);

/* @elements of @element_bytes each, dealt in whole grains to at most @tiles tiles from @start on,
 * around @limit tiles; returns the number of runs. */
#define MEMORY_RUNS 4
struct memory_deal {
	int64_t elements, element_bytes, grain, tiles, start, limit;
};
int memory__deal(const struct memory_deal *deal, struct ipu_tile_run runs[MEMORY_RUNS]);

/* The least of a tensor's bytes on a tile, as poputil::mapTensorLinearly has it. */
#define MEMORY_TILE_BYTES 128

enum status memory__add_spreads(struct memory_build *build);
/* Which tiles of @ipu a tensor takes: of the plan it is for, or as many as the linear mapping
 * gives it, from where the tensor before it ended. Fills tiles, start and limit. */
void memory__place_linearly(struct memory_build *build, struct memory_deal *deal, int tensor,
			    int ipu);
/* The same among the I/O tiles, counted from the first of them. */
void memory__place_on_io_tiles(const struct memory_build *build, struct memory_deal *deal);

/* The uses of a tensor at one place. */
struct memory_at {
	struct memory_build *build;
	int tensor, place, ipu;
	const struct memory_use *use[MEMORY_PHASES]; /* NULL: none */
	const char *suffix;                          /* of names: "" where it is at home */
	bool received, sent;
	bool crosses; /* from or to another IPU */
};

/* What becomes a variable. */
struct memory_piece {
	const char *name, *kind;
	int64_t elements, copies;
	bool always_live, on_io_tiles, crosses;
	int first, last;
};

const struct ipu_tensor *memory__tensor(const struct memory_at *at);
/* Elements of a tensor, of the part of the batch that is asked about. */
int64_t memory__elements(const struct memory_build *build, const struct ipu_tensor *tensor);
/* The tensor's name, the place's suffix, and @what; NULL: no memory. */
const char *memory__name(const struct memory_at *at, const char *what);

enum status memory__add_piece(const struct memory_at *at, const struct memory_piece *piece);
/* @copies of @elements that always live, as NAME@what. */
enum status memory__add_always(const struct memory_at *at, const char *what, const char *kind,
			       int64_t elements, int64_t copies);
/* @elements that live from step @first to @last at least. */
enum status memory__add_while(const struct memory_at *at, const char *what, int64_t elements,
			      int first, int last);

/* All of it, for @batch_divisor times fewer items; @graph may be another than the executable's, of
 * the same operations. */
enum status memory__build(struct ipu_memory **out, const struct ipu_executable *executable,
			  const struct ipu_graph *graph, const struct ipu_target *target,
			  int64_t batch_divisor, struct err *err);

#endif /* IPU_MEMORY_INTERNAL_H */
