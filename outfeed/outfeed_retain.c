/*
 * What queues send: summaries of enqueued values, and the values themselves until they are read.
 *
 * A tensor has room for a fixed number of enqueues, each with all replicas side by side, so
 * values are stored as outfeed_dequeue() returns them. Enqueue number n has position (n - base)
 * modulo the room; an enqueue has arrived when every tensor of every replica has been written.
 *
 * Threads: one thread at a time writes a tensor and replica. One thread reads; `written`
 * publishes a value to it, `freed` releases the position. A thread that finds no room waits on
 * the condition variable.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "outfeed/outfeed_queue_internal.h"

/* ---- enqueueing ------------------------------------------------------------------------------ */

bool outfeed__sends(const struct outfeed_sent *sent)
{
	return !sent->late && sent->queue->final;
}

/* Wait for room; false if there is none and will be none. */
static bool wait_for_room(struct outfeed_retained *retained, int64_t number)
{
	bool room;

	if (number - atomic_load_explicit(&retained->freed, memory_order_acquire) < retained->room)
		return true;
	pthread_mutex_lock(&retained->lock);
	while (retained->waits && !retained->abandoned &&
	       number - atomic_load(&retained->freed) >= retained->room)
		pthread_cond_wait(&retained->room_made, &retained->lock);
	room = number - atomic_load(&retained->freed) < retained->room;
	pthread_mutex_unlock(&retained->lock);
	return room;
}

/* Return the position of the first replica's value; those of the others follow. */
static size_t position_of(const struct outfeed_queue *queue, int64_t number)
{
	if (queue->mode == OUTFEED_LAST)
		return 0;
	return (size_t)((number - queue->retained.base) % queue->retained.room) *
	       (size_t)queue->replicas;
}

/* Store a value. Without room it is lost, and its enqueue does not count. */
static enum status retain_value(struct outfeed_sent *sent, const struct ips_keys *keys,
				int64_t replica, const void *values, size_t bytes, struct err *err)
{
	struct outfeed_queue *queue = sent->queue;
	struct outfeed_retained *retained = &queue->retained;
	struct outfeed_summary *summary = &sent->summaries[replica];
	const int64_t number = atomic_load_explicit(&summary->written, memory_order_relaxed);
	const size_t place = position_of(queue, number) + (size_t)replica;
	unsigned char *to = sent->values + place * sent->size;

	if (queue->mode == OUTFEED_ALL && !wait_for_room(retained, number))
		return retained->waits
			       ? ST_OK
			       : err_set(err, ST_LIMIT,
					 "outfeed queue \"%s\": %" PRId64
					 " enqueues wait to be dequeued, and there is room for no "
					 "more",
					 queue->name, retained->room);
	memcpy(to, values, bytes);
	memset(to + bytes, 0, sent->size - bytes); /* of a last, short batch */
	sent->keys[place] = *keys;
	atomic_store_explicit(&summary->written, number + 1, memory_order_release);
	return ST_OK;
}

enum status outfeed__enqueue(struct outfeed_sent *sent, const struct outfeed_moment *moment,
			     int64_t replica, const struct outfeed_stats *stats, const void *values,
			     size_t count, struct err *err)
{
	struct outfeed_queue *queue = sent->queue;
	struct outfeed_summary *summary = &sent->summaries[replica];

	assert(replica < queue->replicas);
	if (queue->mode == OUTFEED_LAST)
		summary->stats = *stats;
	else
		outfeed_stats_merge(&summary->stats, stats);
	summary->enqueues++;
	summary->ever = true;
	if (queue->retained.room == 0)
		return ST_OK;
	return retain_value(sent, &moment->keys, replica, values,
			    count * (size_t)dtype_bytes(sent->tensor->dtype), err);
}

/* ---- room ------------------------------------------------------------------------------------ */

enum status outfeed_retain(struct outfeed_queue *queue, int64_t enqueues, bool waits,
			   struct err *err)
{
	struct outfeed_retained *retained = &queue->retained;
	const int64_t room = queue->mode == OUTFEED_LAST ? 1 : enqueues;
	const size_t places = (size_t)room * (size_t)queue->replicas;

	assert(retained->room == 0 && room > 0);
	retained->arrays = mem_calloc(queue->count + 1, sizeof(*retained->arrays));
	if (!retained->arrays)
		return err_nomem(err);
	for (size_t i = 0; i < queue->count; i++) {
		struct outfeed_sent *sent = queue->sent[i];

		sent->size = sent->tensor->count * (size_t)dtype_bytes(sent->tensor->dtype);
		if (!outfeed__sends(sent))
			continue;
		sent->values = mem_aligned(places, sent->size);
		sent->keys = mem_calloc(places, sizeof(*sent->keys));
		if (!sent->values || !sent->keys)
			return err_nomem(err);
	}
	retained->room = room;
	retained->waits = waits && queue->mode == OUTFEED_ALL;
	return ST_OK;
}

void outfeed_abandon(struct outfeed_queue *queue)
{
	pthread_mutex_lock(&queue->retained.lock);
	queue->retained.abandoned = true;
	pthread_cond_broadcast(&queue->retained.room_made);
	pthread_mutex_unlock(&queue->retained.lock);
}

/* Return the number of enqueues, from the first, that have arrived completely. */
static int64_t count_arrived(const struct outfeed_queue *queue)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < queue->count; i++) {
		const struct outfeed_sent *sent = queue->sent[i];

		for (int r = 0; sent->values && r < queue->replicas; r++) {
			const int64_t written = atomic_load_explicit(&sent->summaries[r].written,
								     memory_order_acquire);

			least = min(written, least);
		}
	}
	return least == INT64_MAX ? 0 : least;
}

void outfeed_restart(struct outfeed_queue *queue)
{
	struct outfeed_retained *retained = &queue->retained;

	retained->base = retained->next = retained->dequeued = count_arrived(queue);
	retained->abandoned = false;
	atomic_store(&retained->freed, retained->base);
}

/* ---- reading --------------------------------------------------------------------------------- */

bool outfeed_next(struct outfeed_queue *queue, outfeed_visit visit, void *user)
{
	struct outfeed_retained *retained = &queue->retained;
	const int64_t count = retained->room > 0 ? count_arrived(queue) : 0;
	size_t place;

	if (retained->next >= count)
		return false;
	if (queue->mode == OUTFEED_LAST)
		retained->next = count - 1;
	place = position_of(queue, retained->next);
	for (int r = 0; visit && r < queue->replicas; r++, place++) {
		for (size_t i = 0; i < queue->count; i++) {
			const struct outfeed_sent *sent = queue->sent[i];
			const struct outfeed_tensor *tensor = sent->tensor;

			if (!sent->values)
				continue;
			visit(user, &(struct outfeed_value){
					    .queue = tensor->queue,
					    .key = tensor->key,
					    .layer = tensor->layer,
					    .kind = tensor->kind,
					    .dtype = tensor->dtype,
					    .shape = tensor->shape,
					    .ndim = tensor->ndim,
					    .keys = sent->keys[place],
					    .values = sent->values + place * sent->size,
					    .count = tensor->count,
				    });
		}
	}
	retained->next++;
	if (retained->waits) {
		pthread_mutex_lock(&retained->lock);
		atomic_store_explicit(&retained->freed, retained->next, memory_order_release);
		pthread_cond_broadcast(&retained->room_made);
		pthread_mutex_unlock(&retained->lock);
	}
	return true;
}

enum status outfeed_dequeue(struct outfeed_queue *queue, bool wait,
			    const struct outfeed_array **out, int *count, struct err *err)
{
	struct outfeed_retained *retained = &queue->retained;
	const int64_t came = retained->room > 0 ? count_arrived(queue) : 0;
	const int64_t first = queue->mode == OUTFEED_LAST ? came - 1 : retained->dequeued;

	*out = retained->arrays;
	*count = 0;
	if (retained->room == 0 || retained->waits)
		return err_set(
			err, ST_INVALID,
			"outfeed queue \"%s\": it does not keep values until they are dequeued",
			queue->name);
	if (came == 0 && wait)
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": it is dequeued before anything was enqueued",
			       queue->name);
	/* Other threads may overwrite the last value at any time. */
	if (came <= retained->dequeued || (queue->mode == OUTFEED_LAST && !wait))
		return ST_OK;
	for (size_t i = 0; i < queue->count; i++) {
		const struct outfeed_sent *sent = queue->sent[i];
		const struct outfeed_tensor *tensor = sent->tensor;
		struct outfeed_array *array = &retained->arrays[*count];

		if (!sent->values)
			continue;
		*array = (struct outfeed_array){
			.key = tensor->key,
			.layer = tensor->layer,
			.kind = tensor->kind,
			.dtype = tensor->dtype,
			.values = sent->values + position_of(queue, first) * sent->size,
		};
		if (queue->mode == OUTFEED_ALL)
			array->shape[array->ndim++] = came - first;
		if (queue->replicas > 1)
			array->shape[array->ndim++] = queue->replicas;
		for (int d = 0; d < tensor->ndim; d++)
			array->shape[array->ndim++] = tensor->shape[d];
		++*count;
	}
	retained->dequeued = came;
	return ST_OK;
}
