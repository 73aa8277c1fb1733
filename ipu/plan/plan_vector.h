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

struct ipu__vertex {
	const char *name;
	double supervisor;  /* cycles of the tile */
	double prologue;    /* instructions of a worker */
	double cycles_each; /* instructions of a worker for a vector of elements */
};

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
/* Each of @tiles receives @bytes_each; nothing is added for 0. */
void ipu__add_exchange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		       int64_t bytes_each, int64_t tiles);

/* Cycles with what each phase costs beside its work. */
int64_t ipu__plan_time(const struct ipu_target *target, const struct ipu_plan *plan);
void ipu__keep_better(const struct ipu_target *target, struct ipu_plan *best,
		      const struct ipu_plan *plan);

/* Sums of @inputs elements, which lie on @tiles, to @outputs, in stages named Reduce0, Reduce1 ...
 * of which the first works where the elements are. */
void ipu__add_reduce(struct ipu_plan *plan, const struct ipu_target *target, enum ipu_dtype dtype,
		     int64_t inputs, int64_t outputs, int64_t tiles);

#endif /* PLAN_VECTOR_H */
