/*
 * Numbers in a mixed base: update, micro-batch, place of the stage, tensor. As the header says.
 */
#include "trainer/train_order.h"

#include <assert.h>

static uint64_t tensors(const struct train_order *order)
{
	const uint64_t variables = ((uint64_t)order->slots + 1) * (uint64_t)order->params;
	const uint64_t layers = (uint64_t)order->layers;

	return variables > layers ? variables : layers;
}

/* Of a micro-batch: stages forward, then backward. Of an update: gradients as they came out of the
 * backward pass, then what does not leave its stage. */
static uint64_t position(const struct train_order *order, const struct train_order_place *place)
{
	const uint64_t stages = (uint64_t)order->stages, stage = (uint64_t)place->stage;
	const uint64_t reverse = stages - 1 - stage;

	if (place->phase == 'U')
		return place->kind == OUTFEED_GRADIENT ? reverse : stages + stage;
	return place->kind == OUTFEED_ACTIVATION ? stage : stages + reverse;
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

	return ((uint64_t)update * parts + (uint64_t)microbatch) * (2 * (uint64_t)order->stages) *
	       tensors(order);
}

uint64_t train_order_of(const struct train_order *order, const struct train_order_place *place)
{
	const int64_t microbatch = place->phase == 'U' ? order->accumulation : place->microbatch;

	assert(place->stage >= 0 && place->stage < order->stages);
	assert(microbatch >= 0 && microbatch <= order->accumulation);
	return train_order_begin(order, place->update, microbatch) +
	       position(order, place) * tensors(order) + within(order, place);
}
