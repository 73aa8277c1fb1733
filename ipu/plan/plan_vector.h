/*
 * Shared by the planners on the vector pipe.
 *
 * The workers of a tile share its elements; each issues an instruction every `workers` cycles. So a
 * vertex on n elements takes
 *
 *	supervisor + workers (prologue + ceil(ceil(n / workers) / lanes) cycles_each)
 */
#ifndef PLAN_VECTOR_H
#define PLAN_VECTOR_H

#include "ipu/plan/plan_internal.h"

/* Inner loop, prologue and table of a vertex: an estimate, since no source gives sizes. */

struct ipu__vertex {
	const char *name;
	double supervisor;  /* cycles of the tile */
	double prologue;    /* instructions of a worker */
	double cycles_each; /* instructions of a worker per vector of elements */
};

/* Counts of elements and bytes saturate at 2^48, so that products with tiles and bytes per element
 * do not overflow. */
#define IPU_COUNT_MOST (INT64_C(1) << 48)
int64_t ipu__product(int64_t a, int64_t b); /* factors 0 to 2^48; saturates */

/* Distribution of elements over tiles. */
struct ipu__spread {
	int64_t tiles; /* with elements */
	int64_t most;  /* elements on the fullest */
	double mean;   /* over tiles with elements */
};

/* Distribute @count elements over at most @tiles in whole grains of @grain elements. */
struct ipu__spread ipu__spread_over(const struct ipu_target *target, int64_t count, int64_t grain,
				    int64_t tiles);

#define IPU_TILE_CHOICES 128
/* Candidate numbers of tiles up to @most; return how many. */
int ipu__tile_choices(const struct ipu_target *target, int64_t most, int64_t *out);

int64_t ipu__lanes(const struct ipu_target *target, enum ipu_dtype dtype);
/* Cycles of the tile with the most elements. */
int64_t ipu__busiest(const struct ipu_target *target, const struct ipu__vertex *vertex,
		     enum ipu_dtype dtype, int64_t elements);

void ipu__add_compute(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      const struct ipu__vertex *vertex, enum ipu_dtype dtype,
		      const struct ipu__spread *spread);
/* Add an exchange: the busiest of @tiles receives @bytes_most, all together @bytes_all. No phase
 * if @bytes_most is 0. */
void ipu__add_exchange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		       int64_t bytes_most, double bytes_all, int64_t tiles);

/* Add a compute set that arranges @bytes_most of an exchanged operand with another layout on the
 * tile, @atom_bytes at a time. */
void ipu__add_arrange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      int64_t atom_bytes, int64_t bytes_most, double bytes_all, int64_t tiles);

/* Total cycles, including the overhead of each phase. */
int64_t ipu__plan_time(const struct ipu_target *target, const struct ipu_plan *plan);

/* Vertex of one map with these functions, given the uses of each per element. */
struct ipu__vertex ipu__map_vertex(const uint8_t times[IPU_FUNCTIONS], enum ipu_dtype dtype);

/* ---- reductions (plan_reduce.c) -------------------------------------------------------------- */

#define IPU_REDUCE_STAGES 5
/* Names of the parts of a reduction, by stage: its compute set, and the exchange before it. */
struct ipu__reduce_names {
	const char *compute[IPU_REDUCE_STAGES], *exchange[IPU_REDUCE_STAGES];
};
#define IPU_REDUCE_NAMES(of)                                                                       \
	{                                                                                          \
		{of "Reduce0", of "Reduce1", of "Reduce2", of "Reduce3", of "Reduce4"},            \
		{                                                                                  \
			of "Reduce0/ExchangePre", of "Reduce1/ExchangePre",                        \
				of "Reduce2/ExchangePre", of "Reduce3/ExchangePre",                \
				of "Reduce4/ExchangePre"                                           \
		}                                                                                  \
	}

/* State of adding a reduction to a plan. */
struct ipu__reducing {
	struct ipu_plan *plan;
	const struct ipu_target *target;
	enum ipu_dtype dtype;
	const struct ipu__reduce_names *names;
	int number; /* index of the next compute set */
};

/*
 * Stages to reduce @partials partial sums per output over tiles: 1 up to 64, 2 up to 64^2, else 3.
 */
int ipu__reduce_stages(int64_t partials);
/* Reduce on each tile, @depth inputs per output. */
void ipu__reduce_on_tiles(struct ipu__reducing *reducing, int64_t depth,
			  const struct ipu__spread *outputs);
void ipu__reduce_over_tiles(struct ipu__reducing *reducing, int64_t partials, int64_t outputs);
/* Reduce @inputs elements to @outputs: on each tile, then over tiles. @gathered: the inputs are
 * elsewhere and are first sent to the best number of tiles; otherwise they are already on these.
 * Return that number of tiles. */
int64_t ipu__add_reduce(struct ipu__reducing *reducing, int64_t inputs, int64_t outputs,
			bool gathered);

#endif /* PLAN_VECTOR_H */
