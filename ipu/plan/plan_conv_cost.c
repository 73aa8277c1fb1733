/*
 * Cost of a cut of a convolution over tiles. Pure functions: any thread.
 *
 * A cost depends on the cut, never on the number of unused tiles, so a target with more tiles
 * offers the same cuts at the same costs, and further ones.
 */
#include "ipu/plan/plan_conv_internal.h"

#include <math.h>

#include "common/elementary.h"
#include "common/minmax.h"

#define REDUCE_STAGES 3
#define LIST_NUMBER   2   /* bytes of a number in a list of work */
#define POINTER       4   /* bytes, of a vertex's field */
#define SLIC_BUFFER   200 /* bytes, beside the outputs of a group */
/* Least bytes of an operand on a tile that has any (Convolution.cpp, mapActivationsOrWeights). */
#define IN_BYTES_A_TILE     128
#define WEIGHT_BYTES_A_TILE 256
#define TILES_ON_A_BUS      2 /* neighbours that receive the same stream get twice the rate */

static double ceil_div(double value, double by)
{
	return ceil(value / by);
}

static double bytes_of(enum ipu_dtype dtype)
{
	return (double)ipu_dtype_bytes(dtype);
}

/* A tile's share of the channels of one serial split, in groups of channels. */
static double share(int64_t channels, double group, int64_t serial, int64_t parts)
{
	return ceil_div(ceil_div(ceil_div((double)channels, group), (double)serial), (double)parts);
}

static void vertex_share(const struct conv_form *form, const struct conv_way *way,
			 const struct conv_cut *cut, struct ipu_vertex_share *out)
{
	double rows = ceil_div((double)form->kernel[0], (double)cut->kernel);

	*out = (struct ipu_vertex_share){
		.in_groups = share(form->in, way->in_group, cut->serial_in, cut->in),
		.out_groups = share(form->out, way->out_group, cut->serial_out, cut->out),
		.conv_groups = ceil_div(ceil_div((double)form->groups, way->conv_group),
					(double)cut->groups),
		.taps_outer =
			way->method == IPU_METHOD_AMP_NX1 ? ceil_div(rows, way->amp.height) : rows,
		.taps_inner = ceil_div((double)form->kernel[1],
				       way->method == IPU_METHOD_SLIC ? IPU_SLIC_TAPS : 1),
	};
}

static double vertex_cycles(const struct ipu_target *target, const struct conv_form *form,
			    const struct conv_way *way, const struct ipu_vertex_share *share_)
{
	switch (way->method) {
	case IPU_METHOD_AMP_1X1:
		return ipu__amp_1x1(target, &way->amp, share_);
	case IPU_METHOD_AMP_NX1:
		return ipu__amp_nx1(target, &way->amp, share_);
	case IPU_METHOD_HORIZONTAL_MAC:
		return ipu__horizontal_mac(target, form->dtype, form->partials, way->in_group,
					   way->out_group, share_);
	case IPU_METHOD_VERTICAL_MAC:
		return ipu__vertical_mac(target, form->partials, way->conv_group, share_);
	case IPU_METHOD_SLIC:
		return ipu__slic(target, way->conv_group, share_);
	default:
		return ipu__outer_product(target, form->dtype, way->out_group, share_);
	}
}

bool ipu__conv_part_loops(enum conv_part part)
{
	return part >= CONV_PRE_EXCHANGE && part <= CONV_UPDATE;
}

/* Data on a tile while the vertex runs. */
struct tile_data {
	double in, weights, outputs; /* in, weights: bytes; outputs: elements */
	double buffer;               /* bytes that the vertex needs beside its partials */
};

/* The lists of work that tell each worker its pieces of rows, for each tap three 16-bit numbers a
 * piece; the vertical MAC's, of four, are of pieces of the kernel's rows, for each position
 * (ConvVertices.cpp). The 1x1 vertex has one piece for each worker. */
static double list_bytes(const struct ipu_target *target, const struct conv_form *form,
			 const struct conv_way *way, const struct conv_field *field,
			 const struct ipu_vertex_share *tile)
{
	const double entry = 3 * LIST_NUMBER, taps = tile->taps_outer * tile->taps_inner;
	double size[3];

	for (int i = 0; i < 3; i++)
		size[i] = ceil_div((double)form->position[i], (double)field->split[i]);
	for (int i = 0; i < 2; i++)
		size[1 + i] = ceil_div(size[1 + i], (double)form->input_dilation[i]);
	if (way->method == IPU_METHOD_OUTER_PRODUCT)
		return 0;
	if (way->method == IPU_METHOD_VERTICAL_MAC)
		return tile->taps_outer * 4 * LIST_NUMBER *
		       ipu__row_pieces(target, tile->positions, tile->taps_inner);
	if (form->flat)
		return (double)target->workers * entry;
	return taps * entry * ipu__row_pieces(target, size[0] * size[1], size[2]);
}

/* Vertices of a tile: one with all workers, but of an outer product one for each worker that has
 * positions, and each group (ConvVertices.cpp). */
static double vertex_count(const struct ipu_target *target, const struct conv_way *way,
			   const struct ipu_vertex_share *tile)
{
	if (way->method != IPU_METHOD_OUTER_PRODUCT)
		return 1;
	return tile->conv_groups * fmin((double)target->workers, tile->positions);
}

/* What the vertices point to: each group of input, output and weights (SLIC: weights of each row of
 * four taps; an outer product: output), and each list of work, a worker's for each tap. The AMP's
 * 1x1 has one list of all (ConvVertices.cpp). */
static double pointer_bytes(const struct ipu_target *target, const struct conv_way *way,
			    const struct ipu_vertex_share *tile)
{
	const double taps = tile->taps_outer * tile->taps_inner;
	const double lists = way->method == IPU_METHOD_AMP_1X1 ? 1
			     : way->method == IPU_METHOD_VERTICAL_MAC
				     ? (double)target->workers
				     : (double)target->workers * taps;
	const double operands = way->method == IPU_METHOD_SLIC
					? tile->conv_groups * (2 + taps)
					: tile->conv_groups * (tile->in_groups + tile->out_groups +
							       tile->in_groups * tile->out_groups);

	if (way->method == IPU_METHOD_OUTER_PRODUCT)
		return POINTER * vertex_count(target, way, tile) * tile->out_groups;
	return POINTER * (operands + lists);
}

static void compute_tile_data(const struct ipu_target *target, const struct conv_form *form,
			      const struct conv_way *way, const struct conv_cut *cut,
			      const struct ipu_vertex_share *tile, double inputs,
			      struct tile_data *out)
{
	double rows = ceil_div((double)form->kernel[0], (double)cut->kernel);
	double columns = tile->taps_inner * (way->method == IPU_METHOD_SLIC ? IPU_SLIC_TAPS : 1);
	double groups = tile->conv_groups * way->conv_group;
	double in = tile->in_groups * way->in_group * groups;
	double channels = tile->out_groups * way->out_group;
	double group =
		tile->positions * way->out_group * way->conv_group * bytes_of(form->partials);

	out->in = inputs * in * bytes_of(form->dtype);
	out->weights = rows * columns * in * channels * bytes_of(form->dtype);
	out->outputs = tile->positions * channels * groups;
	/* A SLIC vertex has a second buffer for the outputs of a group, a vertical MAC one for each
	 * worker (ConvVertices.cpp). */
	if (way->method == IPU_METHOD_SLIC)
		out->buffer = SLIC_BUFFER + group;
	else
		out->buffer = way->method == IPU_METHOD_VERTICAL_MAC
				      ? (double)target->workers * group
				      : 0;
}

/* Return @form, or a copy in @own: what an outer product makes is of its operands' type
 * (ConvVertexType.cpp). */
static const struct conv_form *form_as_made(const struct conv_form *form,
					    const struct conv_way *way, struct conv_form *own)
{
	if (way->method != IPU_METHOD_OUTER_PRODUCT || form->partials == form->dtype)
		return form;
	*own = *form;
	own->partials = form->dtype;
	return own;
}

double ipu__conv_least_memory(const struct ipu_target *target, const struct conv_form *form,
			      const struct conv_way *way, const struct conv_cut *cut,
			      double positions, double inputs)
{
	struct ipu_vertex_share tile;
	struct tile_data tile_data;
	struct conv_form own;

	form = form_as_made(form, way, &own);
	vertex_share(form, way, cut, &tile);
	tile.positions = positions;
	compute_tile_data(target, form, way, cut, &tile, inputs, &tile_data);
	return tile_data.in + tile_data.weights + tile_data.outputs * bytes_of(form->partials);
}

static double depth_of(const struct conv_cut *cut)
{
	return (double)(cut->in * cut->kernel);
}

double ipu__conv_least_cycles(const struct ipu_target *target, const struct conv_form *form,
			      const struct conv_way *way, const struct conv_cut *cut,
			      double positions, double worker)
{
	struct ipu_vertex_share tile;
	double cycles;

	vertex_share(form, way, cut, &tile);
	tile.positions = positions;
	tile.worker = worker;
	cycles = vertex_cycles(target, form, way, &tile);
	if (depth_of(cut) > 1)
		cycles += positions * tile.out_groups * way->out_group * tile.conv_groups *
			  way->conv_group * bytes_of(form->partials) / target->exchange_bytes_cycle;
	return cycles * (double)(cut->serial_in * cut->serial_out);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The power of @depth that is left after the first of @stages, rounded down. */
static double root_of(double depth, int stages)
{
	return floor(stages == 2 ? sqrt(depth) : elementary_pow(depth, (stages - 1.0) / stages));
}

/* Messages that a tile receives if @depth partials are summed in @stages of at most three. */
static double messages_of(double depth, int stages)
{
	double root;

	if (stages <= 1)
		return depth;
	root = root_of(depth, stages);
	return fmin(root + depth / root, root + 1 + depth / (root + 1));
}

/* Number of partials that a reduction stage sums at once; @depth partials and @stages remain. What
 * it leaves is the root rounded so that fewer messages are received (ConvReducePlan.cpp). */
static double stage_depth(double depth, int stages)
{
	double root, down, up;

	if (stages <= 1)
		return depth;
	root = root_of(depth, stages);
	down = messages_of(root, stages - 1) + depth / root;
	up = messages_of(root + 1, stages - 1) + depth / (root + 1);
	return ceil(depth / (down < up ? root : root + 1));
}

/* Reduce partials of @outputs on each of @depth tiles to sums, distributed over these tiles in
 * grains of a group of channels (ConvReduce.cpp, partialGroupedReduce). */
static void add_reduction(const struct ipu_target *target, const struct conv_form *form,
			  const struct conv_way *way, double depth, double outputs,
			  struct conv_cost *cost)
{
	const double lanes = (double)target->vector_bytes / bytes_of(form->partials);
	const double grain = ceil_div(fmax(way->out_group, lanes), lanes) * lanes;
	int stages = depth >= 125 ? 3 : depth >= 16 ? 2 : depth > 1 ? 1 : 0;

	for (int s = 0; s < stages; s++) {
		double now = stage_depth(depth, stages - s);
		double sums = fmin(outputs, ceil_div(ceil_div(outputs, grain), now) * grain);
		double bytes = outputs * bytes_of(form->partials);

		cost->bytes[CONV_REDUCE_EXCHANGE_0 + 2 * s] = bytes;
		cost->part[CONV_REDUCE_EXCHANGE_0 + 2 * s] =
			ceil_div(bytes, target->exchange_bytes_cycle);
		cost->part[CONV_REDUCE_0 + 2 * s] =
			ipu__reduce_add(target, form->partials,
					s + 1 < stages ? form->partials : form->dtype, now, sums);
		cost->sources[CONV_REDUCE_EXCHANGE_0 + 2 * s] = now;
		cost->sent[CONV_REDUCE_EXCHANGE_0 + 2 * s] = bytes;
		outputs = sums;
		depth = ceil_div(depth, now);
	}
}

/* Return whether activations keep their layout: as many groups together as the AMP of the adjacent
 * layers reads channels. */
static bool keeps_layout(const struct conv_form *form, const struct conv_way *way)
{
	const double wanted = form->dtype == IPU_FLOAT16 ? 16 : 8;

	return form->activations && form->in == 1 && form->out == 1 &&
	       !(fabs(way->conv_group - wanted) > 0) && form->groups % (int64_t)wanted == 0;
}

/* Bytes per tile that change layout: operands before, the result after. */
struct rearranged {
	double before, after;
};

/* Factor by which padding to whole groups increases the number of channels. */
static double padding_factor(int64_t channels, double group)
{
	return ceil_div((double)channels, group) * group / (double)channels;
}

/* Rearrange the operands of a serial split, distributed over the plan's tiles. Padding is included
 * (ConvModel.cpp, addTransformCycleEstimate). @read: bytes of the input that a tile reads, which
 * may be transposed there. */
static void rearrange_operands(const struct ipu_target *target, const struct conv_form *form,
			       const struct conv_way *way, const struct conv_cut *cut, double read,
			       struct conv_cost *cost, struct rearranged *rearranged)
{
	double bytes = bytes_of(form->dtype), serial_in = (double)cut->serial_in;
	const double channels = (double)form->in * (double)form->out;
	const bool stays = keeps_layout(form, way);
	const bool fill_in = form->in % (int64_t)way->in_group != 0;
	const bool fill_out = form->out % (int64_t)way->out_group != 0;
	const double fill[] = {padding_factor(form->in, way->in_group),
			       padding_factor(form->out, way->out_group)};
	double in = (form->move_in || fill_in) && !stays
			    ? ceil_div(form->inputs * fill[0] * bytes, cost->tiles * serial_in)
			    : 0;
	double weights = form->move_weights || fill_in || fill_out
				 ? ceil_div(form->weights * fill[0] * fill[1] * bytes,
					    cost->tiles * serial_in * (double)cut->serial_out)
				 : 0;
	double out = (form->move_out || fill_out) && !stays
			     ? ceil_div(form->outputs * fill[1] * bytes, cost->tiles)
			     : 0;

	cost->bytes[CONV_PRE_EXCHANGE] = cost->sent[CONV_PRE_EXCHANGE] = in + weights;
	cost->part[CONV_PRE_EXCHANGE] = ceil_div(in + weights, target->exchange_bytes_cycle);
	cost->part[CONV_PRE_COPY] = ipu__rearrange_operand(target, in, form->dtype, channels);
	if (weights > 0)
		cost->part[CONV_PRE_COPY] +=
			ipu__rearrange_operand(target, weights, form->dtype, channels);
	if (form->transposed[0] > 0) {
		const double rows = (double)form->transposed[0];
		const double columns = (double)form->transposed[1];

		cost->part[CONV_PRE_COPY] += ipu__transpose(target, form->dtype, rows, columns,
							    ceil_div(read / bytes, rows * columns));
	}
	cost->bytes[CONV_POST_EXCHANGE] = cost->sent[CONV_POST_EXCHANGE] = out;
	cost->part[CONV_POST_EXCHANGE] = ceil_div(out, target->exchange_bytes_cycle);
	if (out > 0)
		cost->part[CONV_POST_COPY] =
			ipu__rearrange_operand(target, out, form->dtype, (double)form->out);
	*rearranged = (struct rearranged){in + weights, out};
}

/* Add the extra phases of serial splits: slices of the split operands before they are broadcast;
 * sums over the split input channels. */
static void add_serial_parts(const struct ipu_target *target, const struct conv_form *form,
			     const struct conv_cut *cut, double outputs, struct conv_cost *cost)
{
	double splits = (double)cut->serial_in * (double)cut->serial_out;
	double each = bytes_of(form->dtype) / cost->tiles;
	double in = ceil(form->inputs * each / (double)cut->serial_in);
	double weights = ceil(form->weights * each / splits);

	if (splits <= 1)
		return;
	cost->part[CONV_SLICE] = ipu__dynamic_slice(target, weights);
	if (cut->serial_in > 1) {
		cost->part[CONV_SLICE] += ipu__dynamic_slice(target, in);
		cost->part[CONV_ADD] = ipu__add_in_place(target, form->partials, outputs);
	}
	if (cut->serial_out > 1)
		cost->part[CONV_UPDATE] =
			ipu__dynamic_slice(target, outputs * bytes_of(form->dtype));
}

/* Peak bytes of a tile, with @partials and @result in addition to the operands. Data that changes
 * layout exists in the old and the new layout, then in the new one while the vertex's own copy
 * arrives; it is gone when the vertex runs and writes partials. An input that is sent first waits
 * through all of it. During a reduction the tile's own
 * partials and the received ones exist at once. */
static double peak_bytes(const struct conv_cut *cut, const struct tile_data *tile_data,
			 const struct rearranged *rearranged, double depth, double partials,
			 double result)
{
	const double waits = cut->input_first ? tile_data->in : 0;
	const double vertex = tile_data->in - waits + tile_data->weights +
			      fmax(rearranged->before, partials + tile_data->buffer);
	const double sums = depth > 1 ? 2 * partials : partials + result;
	const double most = waits + fmax(fmax(2 * rearranged->before, vertex),
					 fmax(sums, 2 * rearranged->after));

	/* The sums over serial splits of the input channels stay where they were reduced. */
	return cut->serial_in > 1 ? most + ceil_div(partials, depth) : most;
}

/* Set the memory that the planner limits, and the temporary part without the result, which is a
 * separate tensor: partials of the result's type that need no further phase are the result. */
static void set_memory(const struct conv_form *form, const struct conv_cut *cut,
		       const struct tile_data *tile_data, const struct rearranged *rearranged,
		       double depth, struct conv_cost *cost)
{
	const double partials = tile_data->outputs * bytes_of(form->partials);
	const double result = ceil_div(tile_data->outputs, depth) * bytes_of(form->dtype);
	const bool is_result = depth <= 1 && form->partials == form->dtype &&
			       rearranged->after <= 0 && cut->serial_in * cut->serial_out <= 1;

	cost->memory = peak_bytes(cut, tile_data, rearranged, depth, partials, result);
	cost->temporary = peak_bytes(cut, tile_data, &(struct rearranged){rearranged->before, 0},
				     depth, is_result ? 0 : partials, 0);
	cost->temporary = fmax(cost->temporary, rearranged->after);
}

static double balance_of(const struct conv_form *form, const struct conv_way *way,
			 const struct conv_cut *cut, const struct ipu_vertex_share *tile)
{
	double in = ceil_div(ceil_div((double)form->in, way->in_group), (double)cut->serial_in);
	double out = ceil_div(ceil_div((double)form->out, way->out_group), (double)cut->serial_out);
	double groups = ceil_div((double)form->groups, way->conv_group);

	return in / ((double)cut->in * tile->in_groups) *
	       (out / ((double)cut->out * tile->out_groups)) *
	       (groups / ((double)cut->groups * tile->conv_groups));
}

static void sum_cycles(double loops, struct conv_cost *cost)
{
	double once = 0, looped = 0;

	for (int p = 0; p < CONV_PARTS; p++) {
		if (cost->part[p] <= 0)
			continue;
		if (ipu__conv_part_loops((enum conv_part)p))
			looped += cost->part[p];
		else
			once += cost->part[p];
	}
	cost->estimate = looped * loops + once;
}

void ipu__conv_cost(const struct ipu_target *target, const struct conv_form *form,
		    const struct conv_way *way, const struct conv_cut *cut,
		    const struct conv_field *field, struct conv_cost *cost)
{
	double depth = depth_of(cut), bytes = bytes_of(form->dtype), in, weights, outputs;
	double bus = cut->out % TILES_ON_A_BUS == 0 && !form->apart ? TILES_ON_A_BUS : 1;
	struct ipu_vertex_share tile;
	struct rearranged rearranged;
	struct tile_data tile_data;
	struct conv_form own;

	form = form_as_made(form, way, &own);
	*cost = (struct conv_cost){0};
	vertex_share(form, way, cut, &tile);
	tile.positions = field->positions;
	tile.worker = field->worker;
	compute_tile_data(target, form, way, cut, &tile, field->inputs, &tile_data);
	cost->tiles = field->parts * depth * (double)(cut->out * cut->groups);
	cost->balance = field->balance * balance_of(form, way, cut, &tile);
	rearrange_operands(target, form, way, cut, tile_data.in, cost, &rearranged);

	/* Part of each operand is on its tile from the start. No element is on two tiles, however
	 * many windows contain it. */
	in = form->inputs * padding_factor(form->in, way->in_group) * bytes /
	     ((double)(cut->serial_in) * cost->tiles);
	in = tile_data.in - floor(fmin(in, tile_data.in / (double)cut->out));
	weights = tile_data.weights - floor(tile_data.weights / field->parts);
	outputs = tile_data.outputs;
	cost->bytes[CONV_EXCHANGE] = in + weights;
	cost->part[CONV_EXCHANGE] = ceil_div(in, target->exchange_bytes_cycle * bus) +
				    ceil_div(weights, target->exchange_bytes_cycle);
	if (cut->input_first) {
		cost->bytes[CONV_INPUT_EXCHANGE] = in;
		cost->part[CONV_INPUT_EXCHANGE] = ceil_div(in, target->exchange_bytes_cycle * bus);
		cost->bytes[CONV_EXCHANGE] = weights;
		cost->part[CONV_EXCHANGE] = ceil_div(weights, target->exchange_bytes_cycle);
	}
	cost->sources[CONV_EXCHANGE] =
		fmin((double)cut->out, ceil_div(tile_data.in, IN_BYTES_A_TILE)) +
		fmin(field->parts, ceil_div(tile_data.weights, WEIGHT_BYTES_A_TILE));
	cost->sent[CONV_EXCHANGE] = ceil_div((form->inputs + form->weights) * bytes,
					     cost->tiles * (double)cut->serial_in);
	cost->part[CONV_COMPUTE] = vertex_cycles(target, form, way, &tile);
	cost->vertices = vertex_count(target, way, &tile);
	cost->lists = list_bytes(target, form, way, field, &tile);
	cost->pointers = pointer_bytes(target, way, &tile);
	add_reduction(target, form, way, depth, outputs, cost);
	set_memory(form, cut, &tile_data, &rearranged, depth, cost);

	outputs = ceil_div(outputs, depth);
	add_serial_parts(target, form, cut, outputs, cost);
	if (form->partials == IPU_FLOAT32 && form->dtype == IPU_FLOAT16 &&
	    (depth <= 1 || cut->serial_in > 1))
		cost->part[CONV_CAST] = ipu__cast(target, IPU_FLOAT32, IPU_FLOAT16,
						  outputs * (double)cut->serial_out);
	if (form->fill_elements > 0)
		cost->part[CONV_FILL] =
			ipu__fill(target, ceil_div(form->fill_elements * bytes, cost->tiles));
	sum_cycles((double)(cut->serial_in * cut->serial_out), cost);
}
