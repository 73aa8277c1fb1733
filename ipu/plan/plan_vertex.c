/*
 * Cycles of vertices. A worker issues an instruction every target->workers cycles, so workers'
 * instructions are multiplied by that; supervisor instructions count once.
 */
#include "ipu/plan/plan_vertex.h"

#include <math.h>

#define SMALLEST_GAP      14 /* least time after the first worker is done */
#define RETAINED          7  /* saved per worker call: state retained from the previous one */
#define WEIGHT_BYTES_UNIT 32 /* bytes of weights loaded per AMP unit */
#define REARRANGE_FIXED   587
#define REDUCE_BLOCKS     16      /* of a tile's memory: one is too large for a block of partials */
#define MEMORY_ELEMENT    16384.0 /* bytes; from 8 to 32 KiB the same blocks are too large on Mk2 */

static double lanes_of(const struct ipu_target *target, enum ipu_dtype dtype)
{
	return (double)(target->vector_bytes / ipu_dtype_bytes(dtype));
}

static double share_of(const struct ipu_target *target, double elements)
{
	return ceil(elements / (double)target->workers);
}

/* ---- AMP ------------------------------------------------------------------------------------- */

/* float16 with all 16 units, or with float32 partials. */
static bool is_common(const struct ipu_amp_use *use)
{
	return use->mode == IPU_AMP_HALF || (use->mode == IPU_AMP_HALF_HALF && use->units >= 16);
}

static double weight_load(const struct ipu_target *target, const struct ipu_amp_use *use)
{
	return use->units * WEIGHT_BYTES_UNIT / (double)target->load_bytes_cycle;
}

static double worker_1x1(const struct ipu_target *target, const struct ipu_amp_use *use, double n,
			 double zero)
{
	double each = (double)target->amp[use->mode].cycles;
	double steady = n > 3 ? each * (n - 3) : 0;

	if (use->mode == IPU_AMP_FLOAT) {
		double clear = use->units >= 16 ? 8 : 4;

		if (n < 1)
			return 24;
		return (n < 2 ? 47 : 46) + (2 + clear * n) * zero + steady;
	}
	if (is_common(use)) {
		static const double first[] = {22, 33, 42, 38};

		return first[n < 3 ? (int)n : 3] - zero - RETAINED + steady;
	}
	if (n < 1)
		return 24;
	return (n < 3 ? 38 + n : 41) + (2 + 2 * n) * zero + steady;
}

double ipu__amp_1x1_inner(const struct ipu_target *target, const struct ipu_amp_use *use,
			  double positions, bool zero)
{
	double workers = (double)target->workers;
	double most = worker_1x1(target, use, ceil(positions / workers), zero);
	double least = worker_1x1(target, use, floor(positions / workers), zero);

	return fmax(workers * fmax(most, least), workers * fmin(most, least) + SMALLEST_GAP);
}

double ipu__amp_1x1(const struct ipu_target *target, const struct ipu_amp_use *use,
		    const struct ipu_vertex_share *share)
{
	double load = weight_load(target, use), groups = share->conv_groups;
	double spare = use->mode == IPU_AMP_FLOAT || is_common(use) ? 1 : 0;
	double workers = (double)target->workers;
	double once = is_common(use) ? workers * 7 : 0;
	double again = is_common(use) ? workers * 3 : 0;
	double next = ipu__amp_1x1_inner(target, use, share->positions, false);
	double first = ipu__amp_1x1_inner(target, use, share->positions, true);

	return 50 + once + again * (share->in_groups * groups - 1) +
	       groups * (12 + spare +
			 (share->in_groups - 1) *
				 (16 - spare +
				  share->out_groups * (19 + use->passes * (6 + load + next))) +
			 11 + share->out_groups * (19 - spare + use->passes * (7 + load + first)));
}

/* Cycles of the slowest worker; @piece gives those of a piece of a row. Positions are evenly
 * divided in order, so a worker's share begins and ends within rows. */
static double slowest_worker(const struct ipu_target *target, double rows, double columns,
			     double (*piece)(const void *context, int64_t n), const void *context)
{
	const double most = 0x1p50;
	int64_t width = (int64_t)fmin(columns, most);
	int64_t total = (int64_t)fmin(rows * (double)width, most);
	double slowest = 0;

	for (int64_t w = 0; w < target->workers; w++) {
		int64_t begin =
			total / target->workers * w + total % target->workers * w / target->workers;
		int64_t end = total / target->workers * (w + 1) +
			      total % target->workers * (w + 1) / target->workers;
		int64_t head = (width - begin % width) % width, whole, tail;
		double cycles = 0;

		if (head > end - begin)
			head = end - begin;
		whole = (end - begin - head) / width;
		tail = end - begin - head - whole * width;
		if (head > 0)
			cycles += piece(context, head);
		cycles += (double)whole * piece(context, width);
		if (tail > 0)
			cycles += piece(context, tail);
		slowest = fmax(slowest, cycles);
	}
	return slowest;
}

double ipu__row_pieces(const struct ipu_target *target, double rows, double columns)
{
	const double total = rows * columns;
	double pieces = rows, last = 0;

	for (int64_t w = 1; w < target->workers; w++) {
		const double begin = floor(total * (double)w / (double)target->workers);

		if (begin > last && fmod(begin, columns) > 0)
			pieces++;
		last = begin;
	}
	return pieces;
}

struct nx1_piece {
	const struct ipu_target *target;
	const struct ipu_amp_use *use;
};

static double piece_nx1(const void *context, int64_t n)
{
	const struct nx1_piece *nx1 = context;
	const struct ipu_amp_use *use = nx1->use;
	double steady = n > 3 ? (double)nx1->target->amp[use->mode].cycles * (double)(n - 3) : 0;
	double start;

	if (use->mode == IPU_AMP_FLOAT)
		start = n < 1 ? 17 : n == 1 ? 33 : n == 2 ? 44 : 45;
	else
		start = n < 1 ? 17 : n == 1 ? 29 : n == 2 ? (is_common(use) ? 34 : 33) : 34;
	return 3 + start - 9 + steady;
}

double ipu__amp_nx1_worker(const struct ipu_target *target, const struct ipu_amp_use *use,
			   double rows, double columns)
{
	const struct nx1_piece nx1 = {target, use};

	return 17 + (use->mode == IPU_AMP_HALF_HALF ? 1 : 0) +
	       slowest_worker(target, rows, columns, piece_nx1, &nx1);
}

double ipu__amp_nx1(const struct ipu_target *target, const struct ipu_amp_use *use,
		    const struct ipu_vertex_share *share)
{
	double workers = (double)target->workers, load = weight_load(target, use);
	double height = use->height > 2 ? 60 : use->height > 1 ? 46 : 15;
	double half = use->mode == IPU_AMP_HALF_HALF ? 1 : 0;
	double in = share->in_groups, out = share->out_groups, groups = share->conv_groups;
	double lanes = (double)target->vector_bytes / (half > 0 ? 2 : 4);
	double inner =
		share->taps_outer *
			(14 + share->taps_inner * (12 + use->passes * (load + height + 3))) +
		workers * share->worker * use->passes * share->taps_outer * share->taps_inner;
	double outputs = share->positions * use->passes * use->units;
	double zeroing = workers * out * groups * (ceil(share_of(target, outputs) / lanes) + 5);

	return 109 + 54 + workers * (9 + half) + groups * (17 * out + 6 * (out - 1) + 1) +
	       6 * (groups - 1) + 1 + groups * (16 + in * (14 + out * (14 + inner))) + zeroing;
}

/* ---- SLIC ------------------------------------------------------------------------------------ */

struct slic_piece {
	bool float_partials;
	int64_t stride;
};

/* With float32 partials there are two passes over the input, each with half of the units. */
static double piece_slic(const void *context, int64_t n)
{
	const struct slic_piece *slic = context;
	double row;

	if (slic->stride > 1)
		row = n < 3 ? (n < 2 ? 13 : 15) : 15 + 2 * (double)(n - 3);
	else
		row = n < 5 ? (n < 2 ? 13 : 17 + (double)n) : 15 + (double)(n - 5);
	return slic->float_partials ? 10 + 3 + 2 * (row - 1) : 10 + row;
}

double ipu__slic_worker(const struct ipu_target *target, enum ipu_dtype partials, double groups,
			int64_t stride, double rows, double columns)
{
	const struct slic_piece slic = {partials == IPU_FLOAT32, stride};

	return 17 + (groups > 4 ? 4 : 0) + slowest_worker(target, rows, columns, piece_slic, &slic);
}

/* A loop of the supervisor: each iteration except the last stalls for its branch. */
static double looped(double body, double turns)
{
	return body * turns + 6 * (turns - 1) + 1;
}

double ipu__slic(const struct ipu_target *target, double groups,
		 const struct ipu_vertex_share *share)
{
	const double workers = (double)target->workers,
		     taps = share->taps_outer * share->taps_inner;
	const double arranged = 9 + 6 + 6 + 16, strides = groups > 4 ? groups / 4 : 1;
	const double load = groups < 2   ? 6 + 6 + 6 + 16
			    : groups < 4 ? arranged + 12 * workers
			    : groups > 4 ? arranged + 11 * workers
					 : arranged + 10 * workers;
	double body = load + 20;

	if (groups > 4)
		body = looped(load + 6 + 7 + 8, strides) + 2 + 8 + 3 + 2;
	return 28 + looped(groups > 4 ? 15 + 8 : 15, share->conv_groups) + looped(body, taps) +
	       share->conv_groups * taps * strides * workers * share->worker;
}

/* ---- vector pipe ----------------------------------------------------------------------------- */

/* A dot product of @in_size channels, added to its output, or of two at once to two outputs of
 * float16. Fewer channels than whole vectors are loaded by smaller ones, activations and weights
 * one after the other (PerformanceEstimation.hpp, getDenseDotProductCycles). */
static double dot_product(const struct ipu_target *target, enum ipu_dtype dtype, double in_size,
			  bool pair)
{
	const double outputs = pair ? 2 : 1, fixed = 3 * outputs + (pair ? 1 : 0) + 3 + 1;
	const double lanes = lanes_of(target, dtype);
	double width = lanes;

	while (width > 1 && fmod(in_size, width) > 0)
		width /= 2;
	if (width >= lanes)
		return fixed + in_size / lanes;
	return fixed + outputs + 2 * in_size / width;
}

double ipu__horizontal_mac(const struct ipu_target *target, enum ipu_dtype dtype,
			   enum ipu_dtype partials, double in_size, double out_size,
			   const struct ipu_vertex_share *share)
{
	const bool pair = partials == IPU_FLOAT16;
	double n = share_of(target, share->positions);
	double taps = share->taps_outer * share->taps_inner;
	double dots = ceil(out_size / (pair ? 2 : 1));
	double worker =
		16 + taps * (16 + 19 + n * (7 + dots * dot_product(target, dtype, in_size, pair)));
	double inner = (double)target->workers * worker;
	double zeroing = (double)target->workers *
			 ((pair ? 10 : 9) +
			  share->out_groups * share->conv_groups * (ceil(n * out_size / 2) + 5));

	return (dtype == IPU_FLOAT16 ? 65 : 58) + zeroing +
	       share->conv_groups *
		       (23 + share->in_groups * (15 + share->out_groups * (10 + inner)));
}

/* A worker accumulates dot products along a kernel row in a private copy of the output; the copies
 * are zeroed before and summed after. */
double ipu__vertical_mac(const struct ipu_target *target, enum ipu_dtype partials, double chans,
			 const struct ipu_vertex_share *share)
{
	const int single = partials == IPU_FLOAT32;
	double workers = (double)target->workers, more = share->taps_inner - 1;
	double rows = share_of(target, share->positions) * share->taps_outer, worker, zero, sum;

	if (chans >= 8)
		worker = (chans > 8 ? 25 : 13) + chans / 8 * rows * (7 + 15 + 3 + 3 * more);
	else if (single)
		worker = 19 + rows * (7 + 5 + 3 + 2 * more);
	else
		worker = 18 + rows * (7 + 3 + 3 + 2 * more);
	zero = 4 + ceil(share->positions / (single ? 2 : 4));
	sum = single ? 9 + 2 * (workers - 1) : 7 + (workers - 1);
	sum = 10 - single + floor(sum * share_of(target, share->positions) / chans);
	return 61 + 14 + 25 + single +
	       share->conv_groups * (zero + 32 + share->in_groups * (24 + workers * worker) + sum);
}

/* Three vectors or more of a group are written in a loop, fewer one by one
 * (getOuterProductCycleEstimate). */
double ipu__outer_product(const struct ipu_target *target, enum ipu_dtype dtype, double out_size,
			  const struct ipu_vertex_share *share)
{
	const bool half = dtype == IPU_FLOAT16;
	const double lanes = lanes_of(target, dtype), least = 3 * lanes;
	const bool fast = out_size >= least && fmod(out_size, lanes) <= 0;
	const double row =
		fast ? 6 + (out_size - least) / lanes : 10 + floor(out_size * (half ? 2.5 : 2));

	return (double)target->workers *
	       (25 + share->out_groups * share->conv_groups *
			     ((half ? 10 : 11) + share_of(target, share->positions) * row));
}

/* Partials beside the tile's own are one contiguous block only where it is small: in whole memory
 * elements, less than a sixteenth of the tile's memory (ConvReducePlan.hpp). */
static bool is_one_block(const struct ipu_target *target, double bytes)
{
	const double most = (double)target->bytes_per_tile / REDUCE_BLOCKS;

	return ceil(bytes / MEMORY_ELEMENT) * MEMORY_ELEMENT < most;
}

/* A loop sums two vectors of outputs. Partials in one block are loaded at two cycles each, and the
 * tile's own are the first; else each needs its pointer too, and all are loaded
 * (PerformanceEstimation.hpp, getReduceCycleEstimate). */
double ipu__reduce_add(const struct ipu_target *target, enum ipu_dtype partials,
		       enum ipu_dtype result, double depth, double outputs)
{
	const double lanes = 2 * lanes_of(target, partials), workers = (double)target->workers;
	const double loops = ceil(share_of(target, outputs) / lanes);
	const double store = result == IPU_FLOAT32 ? 1 : 0;
	const double last = (partials == IPU_FLOAT32 ? 0 : 2) + store;

	if (fmod(outputs, lanes) <= 0 &&
	    is_one_block(target, (depth - 1) * outputs * (double)ipu_dtype_bytes(partials)))
		return 33 + workers * (20 + (2 * (depth - 1) + 7 + last) * loops);
	return workers * (32 + (3 * depth + 6 + last) * loops);
}

double ipu__cast(const struct ipu_target *target, enum ipu_dtype from, enum ipu_dtype to,
		 double elements)
{
	double share = share_of(target, elements);
	double load = ceil(share / lanes_of(target, from)),
	       store = ceil(share / lanes_of(target, to));

	return (double)target->workers * (fmax(load, store) + 26);
}

/* The regressions' constant is of a whole change of layout and includes the overhead of two phases,
 * which is charged with the phases. */
static double rearranged(const struct ipu_target *target, double bytes, double each)
{
	return bytes > 0 ? ceil(fmax(0, REARRANGE_FIXED - 2 * target->phase_cycles) + bytes * each)
			 : 0;
}

double ipu__rearrange(const struct ipu_target *target, double bytes, int64_t atom_bytes)
{
	return rearranged(target, bytes,
			  atom_bytes % 8 == 0   ? 0.44
			  : atom_bytes % 4 == 0 ? 3.125
						: 5.148);
}

/* An element a cycle, and a quarter or two thirds more (ConvModel.cpp, getScaleFactorForTransform).
 */
double ipu__rearrange_operand(const struct ipu_target *target, double bytes, enum ipu_dtype dtype,
			      double channels)
{
	const double more = fmod(channels, lanes_of(target, dtype)) > 0 ? 5.0 / 3 : 5.0 / 4;

	return rearranged(target, bytes, more / (double)ipu_dtype_bytes(dtype));
}

/* Pairs of float32 and blocks of 4 x 4 float16 are moved in a loop, anything else one by one
 * (popopsCycleEstimators.cpp, Transpose2d and TransposeSupervisor). */
double ipu__transpose(const struct ipu_target *target, enum ipu_dtype dtype, double rows,
		      double columns, double count)
{
	const bool half = dtype == IPU_FLOAT16;
	const double grain = half ? 4 : 2, workers = (double)target->workers;
	const double down = rows / grain, across = columns / grain;
	const double each = share_of(target, count);

	if (fmod(rows, grain) > 0 || fmod(columns, grain) > 0)
		return workers * ((half ? 15 : 13) +
				  each * (8 + columns * (5 + floor(rows * (half ? 2.5 : 2)))));
	if (!half)
		return workers * (27 + each * (11 + down * (6 + 3 * (across - 1))));
	if (across > 1)
		return 7 + workers * (29 + each * (18 + down * (12 + 4 * (across - 2))));
	if (down > 1)
		return 7 + workers * (27 + each * (15 + 20 + 4 * (down - 2)));
	return 7 + workers * (each > 1 ? 37 + 4 * (each - 2) : 29);
}

double ipu__dynamic_slice(const struct ipu_target *target, double bytes)
{
	double vectors = ceil(share_of(target, bytes) / (double)target->vector_bytes);

	return bytes > 0 ? (double)target->workers * (30 + 19 + 2 * vectors) : 0;
}

double ipu__add_in_place(const struct ipu_target *target, enum ipu_dtype dtype, double elements)
{
	double vectors = ceil(share_of(target, elements) / lanes_of(target, dtype));

	return 11 + (double)target->workers * (58 + 2 * vectors);
}

double ipu__fill(const struct ipu_target *target, double bytes)
{
	double vectors = ceil(share_of(target, bytes) / (double)target->vector_bytes);

	return (double)target->workers * (22 + vectors);
}
