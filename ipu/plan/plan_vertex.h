/*
 * Cycles of vertices, after the estimates in poplibs' open source (docs/cost-model.md, "An
 * operation"). Cycles of a tile, as doubles, which hold any product of dimensions; whole numbers up
 * to 2^53. Pure functions: any thread.
 */
#ifndef PLAN_VERTEX_H
#define PLAN_VERTEX_H

#include <stdbool.h>

#include "ipu/ipu_target.h"
#include "ipu/plan/ipu_op.h"

#define IPU_SLIC_TAPS 4 /* taps of a row that it processes at once */

/* Configuration of an AMP vertex. */
struct ipu_amp_use {
	enum ipu_amp_mode mode;
	double units;    /* of the matrix unit: all, or half of them */
	double in_group; /* input channels per group */
	double passes;   /* output channels per group / units */
	double height;   /* taps that pad a group with too few channels: 1, 2, 4 */
};

/* A tile's share of a product. */
struct ipu_vertex_share {
	double positions, in_groups, out_groups, conv_groups;
	double taps_outer, taps_inner; /* kernel rows / height, kernel columns */
	double worker;                 /* the slowest worker's cycles per tap (AMP nx1, SLIC) */
};

/* Tile cycles of one call of the 1x1 vertex on @positions divided among the workers, until the
 * slowest is done; @zero: it also clears the output. */
double ipu__amp_1x1_inner(const struct ipu_target *target, const struct ipu_amp_use *use,
			  double positions, bool zero);
double ipu__amp_1x1(const struct ipu_target *target, const struct ipu_amp_use *use,
		    const struct ipu_vertex_share *share);

/* The slowest worker's cycles per tap, for @rows rows of @columns positions each. */
double ipu__amp_nx1_worker(const struct ipu_target *target, const struct ipu_amp_use *use,
			   double rows, double columns);
double ipu__amp_nx1(const struct ipu_target *target, const struct ipu_amp_use *use,
		    const struct ipu_vertex_share *share);

/* The SLIC vertex processes rows of four taps on groups of few channels: 4 channels of one group, 2
 * of two, 1 of 4, 8 or 16 @groups; float16 only. Returns the slowest worker's cycles per row of
 * taps, for @rows rows of @columns positions each. */
double ipu__slic_worker(const struct ipu_target *target, enum ipu_dtype partials, double groups,
			int64_t stride, double rows, double columns);
/* share->conv_groups counts sets of @groups, processed at once; taps_inner are rows of four. */
double ipu__slic(const struct ipu_target *target, double groups,
		 const struct ipu_vertex_share *share);

/* Return the number of pieces of rows that the workers have together, of @rows rows of @columns
 * positions each: each is an entry of the lists of work that a vertex has for a tap. */
double ipu__row_pieces(const struct ipu_target *target, double rows, double columns);

/* Multiply-adds of the vector pipe. @in_size and @out_size: channels per group. */
double ipu__horizontal_mac(const struct ipu_target *target, enum ipu_dtype dtype,
			   enum ipu_dtype partials, double in_size, double out_size,
			   const struct ipu_vertex_share *share);
/* float16, groups of one channel in and one out. A vertex processes @chans groups (4; with float16
 * partials 8 or 16) at once: share->conv_groups counts these sets. */
double ipu__vertical_mac(const struct ipu_target *target, enum ipu_dtype partials, double chans,
			 const struct ipu_vertex_share *share);
/* One input channel: share->in_groups is ignored. */
double ipu__outer_product(const struct ipu_target *target, enum ipu_dtype dtype, double out_size,
			  const struct ipu_vertex_share *share);

/* Sum @depth partials for each of @outputs, to type @result. */
double ipu__reduce_add(const struct ipu_target *target, enum ipu_dtype partials,
		       enum ipu_dtype result, double depth, double outputs);
double ipu__cast(const struct ipu_target *target, enum ipu_dtype from, enum ipu_dtype to,
		 double elements);
/* On-tile change of layout, after its exchange; @atom_bytes is the size of contiguous pieces. */
double ipu__rearrange(const struct ipu_target *target, double bytes, int64_t atom_bytes);
/* The same of a convolution's operand or result, as poplibs estimates it when it plans. @channels
 * are those of a group, in times out, of a result out. */
double ipu__rearrange_operand(const struct ipu_target *target, double bytes, enum ipu_dtype dtype,
			      double channels);
/* Transpose @count matrices of @rows x @columns elements each, where they are. */
double ipu__transpose(const struct ipu_target *target, enum ipu_dtype dtype, double rows,
		      double columns, double count);
/* Copy a slice out of (or into) a tile's data. */
double ipu__dynamic_slice(const struct ipu_target *target, double bytes);
/* a += b. */
double ipu__add_in_place(const struct ipu_target *target, enum ipu_dtype dtype, double elements);
/* Write zeros. */
double ipu__fill(const struct ipu_target *target, double bytes);

#endif /* PLAN_VERTEX_H */
