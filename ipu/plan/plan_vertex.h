/*
 * How long vertices take: poplibs' open-source estimates, in own words (docs/cost-model.md, "An
 * operation"). Cycles of a tile, as doubles, which hold any product of dimensions; whole numbers up
 * to 2^53. Pure functions: any thread.
 */
#ifndef PLAN_VERTEX_H
#define PLAN_VERTEX_H

#include <stdbool.h>

#include "ipu/ipu_target.h"
#include "ipu/plan/ipu_op.h"

#define IPU_SLIC_TAPS 4 /* that it does at once, in a row */

/* What an AMP vertex works with. */
struct ipu_amp_use {
	enum ipu_amp_mode mode;
	double units;    /* of the matrix unit: all, or half of them */
	double in_group; /* input channels of a group */
	double passes;   /* output channels of a group / units */
	double height;   /* taps that fill a group with too few channels: 1, 2, 4 */
};

/* A tile's share of a product. */
struct ipu_vertex_share {
	double positions, in_groups, out_groups, conv_groups;
	double taps_outer, taps_inner; /* kernel rows / height, kernel columns */
	double worker;                 /* the slowest worker's cycles for a tap (AMP nx1, SLIC) */
};

/* The slowest worker's one call of the 1x1 vertex on @positions of the tile's six workers, in
 * tile cycles; @zero: it also clears the output. */
double ipu__amp_1x1_inner(const struct ipu_target *target, const struct ipu_amp_use *use,
			  double positions, bool zero);
double ipu__amp_1x1(const struct ipu_target *target, const struct ipu_amp_use *use,
		    const struct ipu_vertex_share *share);

/* A worker's cycles for one tap, of rows of @columns positions each: the slowest of all workers. */
double ipu__amp_nx1_worker(const struct ipu_target *target, const struct ipu_amp_use *use,
			   double rows, double columns);
double ipu__amp_nx1(const struct ipu_target *target, const struct ipu_amp_use *use,
		    const struct ipu_vertex_share *share);

/* The SLIC vertex does rows of four taps on groups of few channels: 4 channels of one group, 2 of
 * two, 1 of 4, 8 or 16 @groups; float16 only. A worker's cycles for one of these rows of taps, of
 * @rows rows of @columns positions each: the slowest of all workers. */
double ipu__slic_worker(const struct ipu_target *target, enum ipu_dtype partials, double groups,
			int64_t stride, double rows, double columns);
/* share->conv_groups counts what a vertex does at once, of @groups; taps_inner are rows of four. */
double ipu__slic(const struct ipu_target *target, double groups,
		 const struct ipu_vertex_share *share);

/* Multiply-adds of the vector pipe. @in_size and @out_size: channels of a group. */
double ipu__horizontal_mac(const struct ipu_target *target, enum ipu_dtype dtype, double in_size,
			   double out_size, const struct ipu_vertex_share *share);
/* float16, groups of one channel in and one out, of which a vertex does @chans (4; with float16
 * partials 8 or 16) at once: share->conv_groups counts these. */
double ipu__vertical_mac(const struct ipu_target *target, enum ipu_dtype partials, double chans,
			 const struct ipu_vertex_share *share);
/* One input channel: share->in_groups is not looked at. */
double ipu__outer_product(const struct ipu_target *target, enum ipu_dtype dtype, double out_size,
			  const struct ipu_vertex_share *share);

/* Sums of @depth partials for each of @outputs. */
double ipu__reduce_add(const struct ipu_target *target, enum ipu_dtype partials, double depth,
		       double outputs);
double ipu__cast(const struct ipu_target *target, enum ipu_dtype from, enum ipu_dtype to,
		 double elements);
/* On-tile change of layout, after its exchange; elements that stay together are @atom_bytes. */
double ipu__rearrange(const struct ipu_target *target, double bytes, int64_t atom_bytes);
/* A slice copied out of (or into) what a tile holds. */
double ipu__dynamic_slice(const struct ipu_target *target, double bytes);
/* a += b. */
double ipu__add_in_place(const struct ipu_target *target, enum ipu_dtype dtype, double elements);
/* Zeros. */
double ipu__fill(const struct ipu_target *target, double bytes);

#endif /* PLAN_VERTEX_H */
