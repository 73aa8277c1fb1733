/*
 * Construction of a memory, shared by the ipu_memory files. The order is: functions, stashes,
 * steps, uses of tensors, variables, code, liveness.
 */
#ifndef IPU_MEMORY_INTERNAL_H
#define IPU_MEMORY_INTERNAL_H

#include "ipu/compile/ipu_memory.h"

/* Number of phases of graph operations: F, B, U. */
#define MEMORY_PHASES 3
_Static_assert(IPU_FUNCTION_F < MEMORY_PHASES && IPU_FUNCTION_B < MEMORY_PHASES &&
		       IPU_FUNCTION_U < MEMORY_PHASES,
	       "F, B and U are not the first functions");

/* Most bytes of a variable, so that sums of a million variables do not overflow. */
#define MEMORY_MOST_BYTES     (INT64_C(1) << 42)
#define MEMORY_MOST_VARIABLES (1 << 20)

/* Program steps of a stage's phase on its IPU: [first, end). */
struct memory_section {
	int first, end;
};

/* Program steps of an operation; -1 if it does not run. @again: recomputed before the backward
 * pass. */
struct memory_when {
	int first, last, again_first, again_last;
};

/* Use of a tensor by the operations of one phase at one place; W counts as B. */
struct memory_use {
	int tensor, place;
	int node; /* the first operation */
	enum ipu_function_phase phase;
	int first, last;             /* program steps */
	int again_first, again_last; /* program steps of the recomputation, or -1 */
	bool read, written;          /* is */
	bool held;                   /* by a W, which may run later than its B */
	bool read_first;             /* before anything writes it, or updated in place */
	int writer;                  /* the first operation that writes it, or -1 */
};

/* The first tile of a tensor. */
struct memory_spread {
	int ipu; /* -1: not yet allocated */
	int64_t start;
};

struct memory_build {
	struct ipu_memory *memory;
	const struct ipu_executable *executable;
	const struct ipu_graph *graph;
	const struct ipu_target *target;
	const struct ipu_schedule *schedule; /* NULL: one stage, one IPU */
	int64_t batch_divisor;               /* 1; more to evaluate a smaller batch */
	bool training;
	bool streaming;           /* stages work on different micro-batches at the same time */
	bool grouped;             /* and an IPU runs all its programs in each time step */
	bool replays_late;        /* a stage recomputes right before its backward */
	int64_t compute_tiles;    /* per IPU */
	int *same;                /* by operation: the first with its function on its IPU */
	bool **stashed;           /* by stage, by tensor: saved by its forward for its backward */
	bool *replayed;           /* by operation: recomputed */
	struct memory_when *when; /* by operation */
	struct memory_section (*sections)[IPU_FUNCTION_PHASES]; /* by stage */
	struct memory_use *uses; /* by tensor, then place, then phase */
	int use_count;
	int *plan_node; /* by tensor: the operation whose plan defines its mapping, or -1 */
	int *like;      /* by tensor: the tensor whose mapping it shares, or itself */
	struct memory_spread *spread; /* by tensor */
	int64_t *cursor;              /* by IPU: first tile of the next tensor */
	size_t variable_capacity;
	struct err *err; /* the first failure (never NULL), after which nothing is added */
};

/* Allocate zeroed memory that lives as long as the memory model; NULL: a failure, now recorded. */
void *memory__alloc(struct memory_build *build, size_t count, size_t size);
/* Format a name likewise; "" after a failure. */
const char *memory__name(struct memory_build *build, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The IPU of a stage. */
int memory__device(const struct memory_build *build, int stage);
/* A place is a set of stages that share tensors: one stage if stages stream, otherwise an IPU. */
int memory__place(const struct memory_build *build, int stage);
int memory__place_device(const struct memory_build *build, int place);

/* Return whether the plan of the operation says where its weights and its result lie. */
bool memory__is_planned(const struct ipu_op *op);
/* Identical convolutions, matrix products and normalisations are one function that is called, as
 * TensorFlow for IPU caches them: code and mapping exist once. */
bool memory__is_function(const struct ipu_node *node);

/* In the order in which ipu_memory_new() calls them. */
void memory__add_functions(struct memory_build *build);
void memory__add_stashes(struct memory_build *build);
void memory__add_steps(struct memory_build *build);
void memory__add_uses(struct memory_build *build);
void memory__add_tensors(struct memory_build *build);
void memory__add_temporaries(struct memory_build *build);
void memory__add_code(struct memory_build *build);

/* The tile of an operation's first vertex. */
int64_t memory__node_start(const struct memory_build *build, int node);

/* Append a variable; copies the runs. */
void memory__add_variable(struct memory_build *build, const struct ipu_variable *variable);

/* Distribute @elements of @element_bytes each in whole grains over at most @tiles tiles from @start
 * on, modulo @limit; return the number of runs. */
#define MEMORY_RUNS 4
struct memory_deal {
	int64_t elements, element_bytes, grain, tiles, start, limit;
};
int memory__deal(const struct memory_deal *deal, struct ipu_tile_run runs[MEMORY_RUNS]);

#endif /* IPU_MEMORY_INTERNAL_H */
