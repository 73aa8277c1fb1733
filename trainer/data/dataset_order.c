/*
 * The order in which batches take items: a permutation per pass, keyed by (seed, pass).
 *
 * Threading: an order belongs to one thread at a time.
 */
#include "trainer/data/dataset.h"

#include <assert.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/rng.h"

enum status dataset_order_new(struct dataset_order **out, const struct dataset_order_params *params,
			      struct err *err)
{
	const int64_t count = params->count, batch = params->batch, shuffle = params->shuffle;
	struct dataset_order *order;

	*out = NULL;
	if (count < 1 || count > UINT32_MAX || batch < 1 || batch > count || shuffle < -1)
		return err_set(err, ST_INVALID, "batches of %lld from %lld items cannot be ordered",
			       (long long)batch, (long long)count);

	order = mem_calloc(1, sizeof(*order));
	if (!order)
		return err_nomem(err);
	for (int i = 0; i < 2; i++) {
		order->items[i] = mem_calloc((size_t)count, sizeof(*order->items[i]));
		order->pass[i] = -1;
	}
	/* A buffer beyond the set holds all of it. */
	order->shuffle = shuffle >= count ? -1 : shuffle;
	if (order->shuffle > 0)
		order->buffer = mem_calloc((size_t)shuffle, sizeof(*order->buffer));
	if (!order->items[0] || !order->items[1] || (order->shuffle > 0 && !order->buffer)) {
		dataset_order_free(order);
		return err_nomem(err);
	}
	order->count = count;
	order->batch = batch;
	order->batches = count / batch + (params->partial && count % batch);
	order->seed = params->seed;
	*out = order;
	return ST_OK;
}

void dataset_order_free(struct dataset_order *order)
{
	if (!order)
		return;
	mem_free(order->items[0]);
	mem_free(order->items[1]);
	mem_free(order->buffer);
	mem_free(order);
}

/* tf.data's rule: the buffer is filled in order; each output is drawn from it, and the next input
 * takes its place. */
static void order_through_buffer(struct dataset_order *order, uint32_t *items, struct rng *rng)
{
	uint32_t *buffer = order->buffer;
	uint32_t held = (uint32_t)order->shuffle, next = held;

	for (uint32_t i = 0; i < held; i++)
		buffer[i] = i;
	for (int64_t i = 0; i < order->count; i++) {
		uint32_t taken = rng_below(rng, held);

		items[i] = buffer[taken];
		if (next < order->count)
			buffer[taken] = next++;
		else
			buffer[taken] = buffer[--held];
	}
}

static const uint32_t *order_pass(struct dataset_order *order, int64_t pass)
{
	uint32_t *items = order->items[pass & 1];
	struct rng rng;

	if (order->pass[pass & 1] == pass)
		return items;
	order->pass[pass & 1] = pass;
	rng_init(&rng, order->seed, rng_stream("data.order"), (uint64_t)pass, 0);
	if (order->shuffle > 0) {
		order_through_buffer(order, items, &rng);
		return items;
	}
	for (int64_t i = 0; i < order->count; i++)
		items[i] = (uint32_t)i;
	if (order->shuffle < 0)
		rng_shuffle(&rng, items, (size_t)order->count);
	return items;
}

int64_t dataset_order_size(const struct dataset_order *order, int64_t number)
{
	int64_t left = order->count - number % order->batches * order->batch;

	return min(left, order->batch);
}

const uint32_t *dataset_order_batch(struct dataset_order *order, int64_t number, int64_t *count)
{
	assert(number >= 0);
	*count = dataset_order_size(order, number);
	return order_pass(order, number / order->batches) + number % order->batches * order->batch;
}
