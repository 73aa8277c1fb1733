/*
 * Pooling as popnn plans it (PoolPlan.cpp, PerformanceEstimation.hpp). Pure functions: any thread.
 *
 * The result (the outputs; backward, the gradient of the input) is split by batch, rows, columns
 * and groups of channels, which are whole vectors; a tile receives everything that its windows
 * cover. Its positions are evenly divided among the workers, each of which takes
 *
 *	19 + groups (4 + zeros) + 8 + start + pieces (15 + taps (23 + groups (2 + vectors each)))
 *
 * with 4 more (6) for each group except the first; pieces of rows, zeros that it stores,
 * each = 7 + 3 (n - 1) for n positions of a piece (average 8; the gradient of a maximum
 * 10 + 5 (n - 1)).
 */
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_vector.h"

#define SUPERVISOR  13
#define GRAINS_MOST 8   /* per group of channels (PoolPlan.cpp) */
#define CHANNELS    16  /* per group, as convolutions produce them */
#define PARTS_MOST  128 /* numbers of parts to try per dimension */

/* Geometry of the result and of its inputs. */
struct window {
	const int64_t *field;            /* height, width of the result */
	int64_t apart, most;             /* columns that a tap reaches: each @apart'th, @most */
	int64_t taps[2];                 /* taps (rows, columns) used by a row of the result */
	double start, fixed, each, next; /* instructions of a worker, as above */
	int64_t covered, own;            /* tensors received: by windows, and of the result */
	const char *part, *vertex;
};

static struct window window_of(const struct ipu_pool *pool)
{
	const bool grad = pool->max && pool->backward;
	struct window window = {.field = pool->backward ? pool->in : pool->out,
				.apart = pool->backward ? pool->stride[1] : 1,
				.most = pool->out[1],
				.start = (pool->max ? 13 : 14) + (grad ? 10 : 0),
				.fixed = grad        ? 10
					 : pool->max ? 7
						     : 8,
				.each = grad ? 5 : 3,
				.next = grad ? 6 : 4,
				.covered = grad ? 2 : 1,
				.own = grad,
				.part = pool->backward ? "PoolGrad" : "Pool",
				.vertex = grad        ? "popnn::MaxPoolingGrad"
					  : pool->max ? "popnn::MaxPooling"
						      : "popnn::SumPooling"};

	/* A row of the input's gradient uses only those rows of a window that can fall on it. */
	window.taps[0] = pool->kernel[0];
	if (pool->backward)
		window.taps[0] = min(pool->out[0], ipu__ceil_div(pool->kernel[0], pool->stride[0]));
	window.taps[1] = pool->kernel[1];
	return window;
}

/* Inputs (backward: windows) in dimension @d that @n adjacent results need. */
static int64_t covered(const struct ipu_pool *pool, int d, int64_t n)
{
	const int64_t kernel = pool->kernel[d], stride = pool->stride[d];

	if (pool->backward)
		return min(pool->out[d], (n + kernel - 2) / stride + 1);
	return min(pool->in[d], kernel < stride ? ipu__product(n, kernel)
						: ipu__product(n - 1, stride) + kernel);
}

/* A tile's share of each dimension, and its cost. */
struct pool_cut {
	int64_t batch, field[2];
	int64_t vectors, groups; /* vectors per group of channels, groups per tile */
	int64_t tiles;
	double received; /* bytes */
	double copied;   /* cycles to regroup channels */
	double cycles;
};

/* Positions that a tap reaches in a worker's pieces of rows; *@pieces is their number. */
static double reached_positions(const struct window *window, int64_t begin, int64_t end,
				int64_t columns, double *pieces)
{
	const int64_t first = begin / columns, last = (end - 1) / columns;
	const int64_t head = min(end, (first + 1) * columns) - begin, tail = end - last * columns;
	const double row = (double)min(window->most, ipu__ceil_div(columns, window->apart));
	const double ends = (double)min(window->most, ipu__ceil_div(head, window->apart));

	*pieces = (double)(last - first + 1);
	if (first == last)
		return ends;
	return ends + (*pieces - 2) * row +
	       (double)min(window->most, ipu__ceil_div(tail, window->apart));
}

static double vertex_cycles(const struct ipu_target *target, const struct window *window,
			    const struct pool_cut *cut)
{
	const int64_t rows = ipu__product(cut->batch, cut->field[0]);
	const int64_t positions = ipu__product(rows, cut->field[1]);
	const double vectors = (double)cut->vectors, groups = (double)cut->groups;
	const double taps = (double)window->taps[0] * (double)window->taps[1];
	double slowest = 0;

	for (int64_t w = 0; w < target->workers; w++) {
		const int64_t begin = positions / target->workers * w +
				      positions % target->workers * w / target->workers;
		const int64_t end = positions / target->workers * (w + 1) +
				    positions % target->workers * (w + 1) / target->workers;
		double pieces, n;

		if (begin == end)
			continue;
		n = reached_positions(window, begin, end, cut->field[1], &pieces);
		slowest = fmax(
			slowest,
			window->start + pieces * 15 +
				taps * (pieces * (23 + window->next * (groups - 1)) +
					groups * (pieces * 2 + vectors * (pieces * (window->fixed -
										    window->each) +
									  window->each * n))));
	}
	return SUPERVISOR +
	       (double)target->workers *
		       (19 + 8 +
			groups * (4 + ceil((double)positions * vectors / (double)target->workers)) +
			slowest);
}

static void compute_cost(const struct ipu_target *target, const struct ipu_op *op,
			 const struct window *window, struct pool_cut *cut)
{
	const struct ipu_pool *pool = &op->pool;
	const double bytes = (double)target->vector_bytes;
	const double channels = (double)cut->vectors * (double)cut->groups * (double)cut->batch;
	const double from =
		(double)covered(pool, 0, cut->field[0]) * (double)covered(pool, 1, cut->field[1]);
	const double own = (double)cut->field[0] * (double)cut->field[1];
	/* Channels arrive in groups as convolutions produce them; groups of less than a vector are
	 * combined with other positions of the field (PoolPlan.cpp, getTransform). */
	const int64_t lanes = ipu__lanes(target, op->dtype);
	const int64_t comes = max(lanes, min(CHANNELS, pool->channels & -pool->channels));
	const bool as_it_comes = cut->vectors * lanes == comes;

	cut->received =
		channels * bytes * (from * (double)window->covered + own * (double)window->own);
	cut->copied = as_it_comes ? 0 : cut->received / 4 + target->phase_cycles;
	cut->cycles = vertex_cycles(target, window, cut) +
		      cut->received / target->exchange_bytes_cycle + cut->copied;
}

/* Largest parts of a dimension, with the number of parts. */
struct parts {
	int64_t count[PARTS_MOST], part[PARTS_MOST];
	int ways;
};

static void list_parts(int64_t size, int64_t most, struct parts *out)
{
	out->ways = 0;
	for (int64_t p = 1; p <= size && p <= most; p += max(1, p / 8)) {
		const int64_t part = ipu__ceil_div(size, p);

		if (out->ways > 0 && out->part[out->ways - 1] == part)
			continue;
		out->count[out->ways] = ipu__ceil_div(size, part);
		out->part[out->ways++] = part;
	}
	if (size <= most && out->ways > 0 && out->part[out->ways - 1] > 1) {
		out->count[out->ways] = size;
		out->part[out->ways++] = 1;
	}
}

/* Groups of channels use as many tiles as the field leaves: fewer groups per tile are never
 * slower. */
static void try_cuts(const struct ipu_target *target, const struct ipu_op *op,
		     const struct window *window, int64_t vectors, struct pool_cut *best)
{
	const struct ipu_pool *pool = &op->pool;
	const int64_t groups = ipu__ceil_div(
		ipu__ceil_div(pool->channels, ipu__lanes(target, op->dtype)), vectors);
	struct parts batch, rows, columns;

	list_parts(pool->batch, target->tiles, &batch);
	list_parts(window->field[0], target->tiles, &rows);
	list_parts(window->field[1], target->tiles, &columns);
	for (int b = 0; b < batch.ways; b++) {
		for (int r = 0; r < rows.ways; r++) {
			for (int c = 0; c < columns.ways; c++) {
				const int64_t field =
					batch.count[b] * rows.count[r] * columns.count[c];
				struct pool_cut cut = {.batch = batch.part[b],
						       .field = {rows.part[r], columns.part[c]},
						       .vectors = vectors};

				if (field > target->tiles)
					break;
				cut.groups =
					ipu__ceil_div(groups, min(groups, target->tiles / field));
				cut.tiles = field * ipu__ceil_div(groups, cut.groups);
				compute_cost(target, op, window, &cut);
				if (best->tiles == 0 || cut.cycles < best->cycles)
					*best = cut;
			}
		}
	}
}

static void add_phases(const struct ipu_target *target, const struct ipu_op *op,
		       const struct window *window, const struct pool_cut *cut,
		       struct ipu_plan *plan)
{
	const double made = (double)op->pool.batch * (double)op->pool.channels *
			    (double)window->field[0] * (double)window->field[1];
	const double held = (double)cut->batch * (double)cut->field[0] * (double)cut->field[1] *
			    (double)(cut->vectors * ipu__lanes(target, op->dtype)) *
			    (double)cut->groups * (double)cut->tiles;
	const double balance = fmin(made / held, 1);
	struct ipu_phase phase = {.kind = IPU_COMPUTE,
				  .part = "Pool/OnTileCopyPre",
				  .vertex = "poplar::OnTileCopy",
				  .cycles = ipu__whole(cut->received / 4),
				  .tiles = cut->tiles,
				  .vertices = cut->tiles,
				  .repeats = 1};

	ipu__add_exchange(plan, target, "Pool/ExchangePre", ipu__whole(cut->received),
			  cut->received * (double)cut->tiles * balance, cut->tiles);
	phase.mean_cycles = (double)phase.cycles * balance;
	if (cut->copied > 0)
		ipu__plan_add(plan, &phase);
	phase.part = window->part;
	phase.vertex = window->vertex;
	phase.cycles = ipu__whole(vertex_cycles(target, window, cut));
	phase.mean_cycles = (double)phase.cycles * balance;
	ipu__plan_add(plan, &phase);
}

void ipu__plan_pool(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct window window = window_of(&op->pool);
	const int64_t lanes = ipu__lanes(target, op->dtype);
	struct pool_cut best = {0};

	(void)options;
	for (int64_t vectors = 1; vectors <= GRAINS_MOST && vectors * lanes <= CHANNELS &&
				  (vectors == 1 || vectors * lanes < 2 * op->pool.channels);
	     vectors *= 2)
		try_cuts(target, op, &window, vectors, &best);
	plan->split_batch = ipu__ceil_div(op->pool.batch, best.batch);
	plan->split_field = ipu__ceil_div(window.field[0], best.field[0]) *
			    ipu__ceil_div(window.field[1], best.field[1]);
	plan->split_out = best.tiles / (plan->split_batch * plan->split_field);
	add_phases(target, op, &window, &best, plan);
}
