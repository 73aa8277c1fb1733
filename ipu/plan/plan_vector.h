/*
 * What the planners on the vector pipe share.
 *
 * A tile's elements are shared by its workers, each of which issues an instruction every `workers`
 * cycles; so a vertex on n elements takes
 *
 *	supervisor + workers (prologue + ceil(ceil(n / workers) / lanes) cycles_each)
 */
#ifndef PLAN_VECTOR_H
#define PLAN_VECTOR_H

#include "ipu/plan/plan_internal.h"

/* Of a vertex's inner loop, prologue and table: an estimate, no source gives sizes. */
#define IPU_VERTEX_CODE_BYTES 512

struct ipu__vertex {
	const char *name;
	double supervisor;  /* cycles of the tile */
	double prologue;    /* instructions of a worker */
	double cycles_each; /* instructions of a worker for a vector of elements */
};

/* Elements and bytes are counted up to 2^48 (times tiles and bytes of an element it is in range);
 * what is more is planned as that. */
#define IPU_COUNT_MOST (INT64_C(1) << 48)
int64_t ipu__product(int64_t a, int64_t b); /* both in 0 to 2^48 */

/* How elements lie on tiles. */
struct ipu__spread {
	int64_t tiles; /* that have any */
	int64_t most;  /* on the fullest */
	double mean;   /* over those that have any */
};

/* @count elements over at most @tiles, grains of @grain elements whole. */
struct ipu__spread ipu__spread_over(const struct ipu_target *target, int64_t count, int64_t grain,
				    int64_t tiles);

#define IPU_TILE_CHOICES 128
/* Numbers of tiles to try, up to @most; returns how many. */
int ipu__tile_choices(const struct ipu_target *target, int64_t most, int64_t *out);

int64_t ipu__lanes(const struct ipu_target *target, enum ipu_dtype dtype);
/* Cycles of the fullest tile, and of one with @elements on average. */
int64_t ipu__busiest(const struct ipu_target *target, const struct ipu__vertex *vertex,
		     enum ipu_dtype dtype, int64_t elements);
double ipu__workers(const struct ipu_target *target, const struct ipu__vertex *vertex,
		    enum ipu_dtype dtype, double elements);

void ipu__add_compute(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      const struct ipu__vertex *vertex, enum ipu_dtype dtype,
		      const struct ipu__spread *spread);
/* The busiest of @tiles receives @bytes_most, all together @bytes_all; nothing is added for 0. */
void ipu__add_exchange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		       int64_t bytes_most, double bytes_all, int64_t tiles);

/* @bytes_most of an operand that lies otherwise were exchanged: they are put in their places on the
 * tile, @atom_bytes at a time, in a compute set of its own. */
void ipu__add_arrange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      int64_t atom_bytes, int64_t bytes_most, double bytes_all, int64_t tiles);

/* Cycles with what each phase costs beside its work. */
int64_t ipu__plan_time(const struct ipu_target *target, const struct ipu_plan *plan);

/* The vertex of one map with these functions, by their times on an element. */
struct ipu__vertex ipu__map_vertex(const uint8_t times[IPU_FUNCTIONS], enum ipu_dtype dtype);

/* ---- reductions (plan_reduce.c) -------------------------------------------------------------- */

#define IPU_REDUCE_STAGES 5
/* Parts of a reduction, in order: of each stage its compute set and the exchange before. */
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

/* A reduction that is being added to a plan. */
struct ipu__reducing {
	struct ipu_plan *plan;
	const struct ipu_target *target;
	enum ipu_dtype dtype;
	const struct ipu__reduce_names *names;
	int number; /* of the next compute set */
};

/*
 * Over tiles: so many partial sums for each of @outputs. Stages: 1 below 16, 2 below 125, else 3.
 */
int ipu__reduce_stages(int64_t partials);
/* On each tile, @depth inputs for each of its outputs. */
void ipu__reduce_on_tiles(struct ipu__reducing *reducing, int64_t depth,
			  const struct ipu__spread *outputs);
void ipu__reduce_over_tiles(struct ipu__reducing *reducing, int64_t partials, int64_t outputs);
/* Sums of @inputs elements to @outputs: where they lie, then over tiles. @gathered: they lie
 * somewhere and are sent to as many tiles as is best; otherwise they already are on these. Returns
 * how many tiles that is. */
int64_t ipu__add_reduce(struct ipu__reducing *reducing, int64_t inputs, int64_t outputs,
			bool gathered);

#endif /* PLAN_VECTOR_H */
