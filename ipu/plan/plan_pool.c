/*
 * Pooling. Pure functions: any thread.
 *
 * What is made (outputs; backward, the gradient of the input) lies evenly over the tiles, whole
 * vectors of channels together; a tile receives what its windows cover. A worker takes, for its
 * rows and each vector of channels,
 *
 *	17 + 24 + 13 rows + 20 work items + vectors (6 + 3 taps)	max; 5 + 3 taps average
 *	... + vectors (7 + 5 taps)					backward, over inputs
 */
#include "ipu/plan/plan_vector.h"

#include "common/minmax.h"

#define WORKER_START 17
/* Loads and pointers: about what poplibs' estimate sums to, without the zeros that are stored. */
#define WORKER_INIT 24
#define PER_ROW     13
#define PER_ITEM    20
#define SUPERVISOR  13

/* What is made, and what it is made from. */
struct window {
	const int64_t *field, *from; /* height, width */
	double fixed, per_tap;       /* instructions for a vector */
	int64_t tensors;             /* received of size @from */
	const char *part, *vertex;
};

static struct window window_of(const struct ipu_pool *pool)
{
	if (!pool->backward)
		return (struct window){.field = pool->out,
				       .from = pool->in,
				       .fixed = pool->max ? 6 : 5,
				       .per_tap = 3,
				       .tensors = 1,
				       .part = "Pool",
				       .vertex = pool->max ? "popnn::MaxPooling"
							   : "popnn::SumPooling"};
	/* The gradient of each output, and of a maximum the output itself; the input is there. */
	return (struct window){.field = pool->in,
			       .from = pool->out,
			       .fixed = 7,
			       .per_tap = 5,
			       .tensors = pool->max ? 2 : 1,
			       .part = "PoolGrad",
			       .vertex = pool->max ? "popnn::MaxPoolingGrad" : "popnn::SumPooling"};
}

/* In dimension @d, of what @n neighbours need of the other side: inputs under windows, or windows
 * that inputs are in. */
static int64_t covered(const struct ipu_pool *pool, int d, int64_t n)
{
	const int64_t kernel = pool->kernel[d], stride = pool->stride[d];

	if (pool->backward)
		return min(pool->out[d], (n + kernel - 2) / stride + 1);
	return min(pool->in[d], kernel < stride ? ipu__product(n, kernel)
						: ipu__product(n - 1, stride) + kernel);
}

/* Positions of the other side for @positions that follow each other, whole images first. */
static int64_t received_positions(const struct ipu_pool *pool, const struct window *window,
				  int64_t positions)
{
	const int64_t field = ipu__product(window->field[0], window->field[1]);
	const int64_t from = ipu__product(window->from[0], window->from[1]);
	const int64_t rest = positions % field;
	const int64_t whole = ipu__product(positions / field, from);
	const int64_t row = window->field[1];
	int64_t part = 0;

	if (rest > 0)
		part = ipu__product(covered(pool, 0, ipu__ceil_div(rest, row)),
				    covered(pool, 1, min(rest, row)));
	return min(whole + part, IPU_COUNT_MOST);
}

static void add_exchange(const struct ipu_target *target, const struct ipu_op *op,
			 const struct window *window, const struct ipu__spread *spread,
			 struct ipu_plan *plan)
{
	const int64_t channels = op->pool.channels;
	const int64_t positions =
		received_positions(&op->pool, window, ipu__ceil_div(spread->most, channels));
	const int64_t received = ipu__product(ipu__product(positions, min(channels, spread->most)),
					      window->tensors) *
				 ipu_dtype_bytes(op->dtype);

	const double all =
		(double)received * spread->mean / (double)spread->most * (double)spread->tiles;

	ipu__add_exchange(plan, target, "Pool/ExchangePre", received, all, spread->tiles);
	ipu__add_arrange(plan, target, "Pool/OnTileCopyPre", target->vector_bytes, received, all,
			 spread->tiles);
}

void ipu__plan_pool(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct ipu_pool *pool = &op->pool;
	const struct window window = window_of(pool);
	const int64_t elements = ipu__product(ipu__product(pool->batch, pool->channels),
					      ipu__product(window.field[0], window.field[1]));
	const int64_t taps = ipu__product(covered(pool, 0, 1), covered(pool, 1, 1));
	const struct ipu__spread spread =
		ipu__spread_over(target, elements, ipu__lanes(target, op->dtype), target->tiles);
	/* Rows of a worker: each position with all of its channels. */
	const int64_t positions =
		ipu__ceil_div(ipu__ceil_div(spread.most, target->workers), pool->channels);
	const double rows = (double)ipu__ceil_div(positions, window.field[1]);
	const struct ipu__vertex vertex = {
		.name = window.vertex,
		.supervisor = SUPERVISOR,
		.prologue = WORKER_START + WORKER_INIT + (PER_ROW + PER_ITEM) * rows,
		.cycles_each = window.fixed + window.per_tap * (double)taps,
	};

	(void)options;
	plan->split_field = spread.tiles;
	add_exchange(target, op, &window, &spread, plan);
	ipu__add_compute(plan, target, window.part, &vertex, op->dtype, &spread);
}
