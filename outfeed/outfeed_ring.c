/*
 * The last values of a tensor, in memory until somebody asks for them.
 *
 * An entry is written once: a ring that was written is empty. Threading: with the replica's lock
 * held; outfeed_flush() only counts, so it is safe in a signal handler.
 */
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_internal.h"

static size_t value_bytes(const struct outfeed_tensor *tensor)
{
	return tensor->count * (size_t)outfeed_dtype_bytes(tensor->dtype);
}

enum status outfeed__ring_new(struct outfeed_ring *ring, const struct outfeed_tensor *tensor,
			      struct err *err)
{
	ring->size = tensor->choice.last;
	ring->values = mem_aligned((size_t)ring->size, value_bytes(tensor));
	ring->entries = mem_calloc((size_t)ring->size, sizeof(*ring->entries));
	return ring->values && ring->entries ? ST_OK : err_nomem(err);
}

void outfeed__ring_free(struct outfeed_ring *ring)
{
	mem_free(ring->values);
	mem_free(ring->entries);
}

static enum status write_out(struct outfeed_tensor *tensor, struct outfeed_ring *ring,
			     struct err *err)
{
	enum status status = ST_OK;

	for (; ring->held > 0 && status == ST_OK; ring->held--) {
		const int64_t at = (ring->next + ring->size - ring->held) % ring->size;
		const struct outfeed_entry *entry = &ring->entries[at];
		const struct outfeed_moment moment = {.keys = entry->keys,
						      .time_ns = entry->time_ns};
		const struct outfeed_choice full = {.tier = OUTFEED_FULL};

		if (!outfeed__spend(
			    tensor, OUTFEED_LAST_N, &moment,
			    outfeed_bytes(&full, entry->count, tensor->dtype) -
				    outfeed_bytes(&tensor->choice, entry->count, tensor->dtype)))
			break;
		status = outfeed__append_capture(tensor, &entry->keys,
						 ring->values + (size_t)at * value_bytes(tensor),
						 entry->count, err);
	}
	ring->held = 0;
	return status;
}

enum status outfeed__ring_follow(struct outfeed_tensor *tensor, struct outfeed_replica *replica,
				 struct err *err)
{
	const uint64_t flushes =
		atomic_load_explicit(&tensor->outfeed->flushes, memory_order_relaxed);

	if (!replica->ring.values || replica->ring.flushed == flushes)
		return ST_OK;
	replica->ring.flushed = flushes;
	return write_out(tensor, &replica->ring, err);
}

void outfeed__ring_push(struct outfeed_tensor *tensor, struct outfeed_replica *replica,
			const struct outfeed_moment *moment, const void *values, size_t count)
{
	struct outfeed_ring *ring = &replica->ring;

	if (!ring->values)
		return;
	if (count > 0)
		memcpy(ring->values + (size_t)ring->next * value_bytes(tensor), values,
		       count * (size_t)outfeed_dtype_bytes(tensor->dtype));
	ring->entries[ring->next] = (struct outfeed_entry){
		.keys = moment->keys, .time_ns = moment->time_ns, .count = count};
	ring->next = (ring->next + 1) % ring->size;
	ring->held += ring->held < ring->size;
}

void outfeed_flush(struct outfeed *outfeed)
{
	atomic_fetch_add_explicit(&outfeed->flushes, 1, memory_order_relaxed);
}

static enum status settle_tensor(struct outfeed_tensor *tensor, struct err *err)
{
	enum status status = ST_OK;

	if (tensor->choice.tier != OUTFEED_LAST_N)
		return ST_OK;
	for (int r = 0; r < tensor->outfeed->params.replicas && status == ST_OK; r++) {
		struct outfeed_replica *replica = &tensor->replica[r];

		pthread_mutex_lock(&replica->lock);
		status = outfeed__ring_follow(tensor, replica, err);
		pthread_mutex_unlock(&replica->lock);
	}
	return status;
}

enum status outfeed__rings_settle(struct outfeed *outfeed, struct err *err)
{
	const uint64_t flushes = atomic_load_explicit(&outfeed->flushes, memory_order_relaxed);
	enum status status = ST_OK;

	if (outfeed->settled == flushes)
		return ST_OK;
	for (size_t i = 0; i < outfeed->count && status == ST_OK; i++)
		status = settle_tensor(outfeed->tensors[i], err);
	outfeed->settled = flushes;
	return status;
}
