/*
 * Pooling. Pure functions: any thread.
 *
 * Outputs lie evenly over the tiles, whole vectors of channels together; a tile receives the window
 * below its outputs. A worker takes, for its rows of outputs and each vector of channels,
 *
 *	17 + 13 rows + 20 work items + vectors (6 + 3 taps)	forward, max; 5 + 3 taps average
 *	... + vectors (7 + 5 taps)				backward, over inputs
 */
#include "ipu/plan/plan_vector.h"

#define WORKER_START 17
#define WORKER_INIT  24 /* of the outputs */
#define PER_ROW      13
#define PER_ITEM     20
#define SUPERVISOR   13

struct window {
	int64_t elements; /* that are made */
	int64_t row;      /* of them, in a row of the field */
	int64_t taps;
	double fixed, per_tap; /* instructions for a vector */
	int64_t received;      /* elements that a made one needs */
	const char *part, *vertex;
};

static struct window window_of(const struct ipu_pool *pool)
{
	const int64_t planes = pool->batch * pool->channels;
	const int64_t in = planes * pool->in[0] * pool->in[1];
	const int64_t out = planes * pool->out[0] * pool->out[1];
	const int64_t taps = pool->kernel[0] * pool->kernel[1];

	if (!pool->backward)
		return (struct window){.elements = out,
				       .row = pool->out[1],
				       .taps = taps,
				       .fixed = pool->max ? 6 : 5,
				       .per_tap = 3,
				       .received = ipu__ceil_div(in, out),
				       .part = "Pool",
				       .vertex = pool->max ? "popnn::MaxPooling"
							   : "popnn::SumPooling"};
	/* Windows that an input is in; what comes from outside is the gradient of each, and of a
	 * maximum the output itself. */
	return (struct window){.elements = in,
			       .row = pool->in[1],
			       .taps = ipu__ceil_div(pool->kernel[0], pool->stride[0]) *
				       ipu__ceil_div(pool->kernel[1], pool->stride[1]),
			       .fixed = 7,
			       .per_tap = 5,
			       .received = pool->max ? 2 : 1,
			       .part = "PoolGrad",
			       .vertex = pool->max ? "popnn::MaxPoolingGrad" : "popnn::SumPooling"};
}

void ipu__plan_pool(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct window window = window_of(&op->pool);
	const int64_t lanes = ipu__lanes(target, op->dtype);
	const struct ipu__spread spread =
		ipu__spread_over(target, window.elements, lanes, target->tiles);
	/* Rows of a worker: each with all of its channels. */
	const int64_t positions =
		ipu__ceil_div(ipu__ceil_div(spread.most, target->workers), op->pool.channels);
	const double rows = (double)ipu__ceil_div(positions, window.row);
	const struct ipu__vertex vertex = {
		.name = window.vertex,
		.supervisor = SUPERVISOR,
		.prologue = WORKER_START + WORKER_INIT + (PER_ROW + PER_ITEM) * rows,
		.cycles_each = window.fixed + window.per_tap * (double)window.taps,
	};
	int64_t received = spread.most * window.received;

	(void)options;
	if (op->pool.backward)
		received = ipu__ceil_div(received * op->pool.out[0] * op->pool.out[1],
					 op->pool.in[0] * op->pool.in[1]);
	plan->split_field = spread.tiles;
	ipu__add_exchange(plan, target, "Pool/ExchangePre", received * ipu_dtype_bytes(op->dtype),
			  spread.tiles);
	ipu__add_compute(plan, target, window.part, &vertex, op->dtype, &spread);
}
