/*
 * Mixed-radix numbers: update, micro-batch, direction, tensor. See the header.
 */
#include "trainer/train_order.h"

#include <assert.h>
#include <ipuscope/profiler.h>

static uint64_t tensors(const struct train_order *order)
{
	const uint64_t variables = ((uint64_t)order->slots + 1) * (uint64_t)order->params;
	const uint64_t layers = (uint64_t)order->layers;

	return variables > layers ? variables : layers;
}

/* Within a micro-batch: forward, then backward. Within an update: gradients, then slots and
 * variables. */
static uint64_t position(const struct train_order_place *place)
{
	const enum outfeed_kind first =
		place->phase == IPS_UPDATE ? OUTFEED_GRADIENT : OUTFEED_ACTIVATION;

	return place->kind == first ? 0 : 1;
}

static uint64_t within(const struct train_order *order, const struct train_order_place *place)
{
	const uint64_t params = (uint64_t)order->params, number = (uint64_t)place->number;

	switch (place->kind) {
	case OUTFEED_GRADIENT:
		return params - 1 - number;
	case OUTFEED_OPTIMIZER_STATE:
		return (uint64_t)place->slot * params + number;
	case OUTFEED_WEIGHT:
		return (uint64_t)order->slots * params + number;
	default:
		return number;
	}
}

uint64_t train_order_begin(const struct train_order *order, int64_t update, int64_t microbatch)
{
	const uint64_t parts = (uint64_t)order->accumulation + 1;

	return ((uint64_t)update * parts + (uint64_t)microbatch) * 2 * tensors(order);
}

uint64_t train_order_of(const struct train_order *order, const struct train_order_place *place)
{
	const int64_t microbatch =
		place->phase == IPS_UPDATE ? order->accumulation : place->microbatch;

	assert(microbatch >= 0 && microbatch <= order->accumulation);
	return train_order_begin(order, place->update, microbatch) +
	       position(place) * tensors(order) + within(order, place);
}
