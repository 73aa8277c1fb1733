/*
 * Values that a queue keeps until somebody takes them.
 *
 * A key has room for so many enqueues, each with all replicas beside each other: what is dequeued
 * lies stacked as it is handed out. Enqueue number n goes to place (n - base) modulo the room; an
 * enqueue has arrived when every key of every replica has been written.
 *
 * Threads: one key and replica is written by one thread at a time. One thread takes; `written`
 * hands a value to it, `taken` hands the place back. Who finds no room sleeps under the lock.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "outfeed/outfeed_queue_internal.h"

/* ---- life ------------------------------------------------------------------------------------ */

static enum status keep_key(struct outfeed_key *key, int64_t room, struct err *err)
{
	const size_t places = (size_t)room * (size_t)key->queue->replicas;

	key->size = (size_t)outfeed_dtype_bytes(key->dtype);
	for (int i = 0; i < key->ndim; i++)
		if (__builtin_mul_overflow(key->size, (size_t)key->shape[i], &key->size))
			return err_nomem(err);
	if (!outfeed__sent(key))
		return ST_OK;
	key->values = mem_aligned(places, key->size);
	key->moments = mem_calloc(places, sizeof(*key->moments));
	return !key->values || !key->moments ? err_nomem(err) : ST_OK;
}

enum status outfeed_keep(struct outfeed_queue *queue, int64_t enqueues, bool waits, struct err *err)
{
	struct outfeed_kept *kept = &queue->kept;
	const int64_t room = queue->mode == OUTFEED_LAST ? 1 : enqueues;
	enum status status = ST_OK;

	assert(kept->room == 0 && room > 0);
	kept->arrays = mem_calloc(queue->count + 1, sizeof(*kept->arrays));
	if (!kept->arrays)
		return err_nomem(err);
	for (size_t i = 0; i < queue->count && status == ST_OK; i++)
		status = keep_key(queue->keys[i], room, err);
	if (status != ST_OK)
		return status;
	kept->room = room;
	kept->waits = waits && queue->mode == OUTFEED_ALL;
	return ST_OK;
}

void outfeed__keep_init(struct outfeed_queue *queue)
{
	pthread_mutex_init(&queue->kept.lock, NULL);
	pthread_cond_init(&queue->kept.given_back, NULL);
}

void outfeed__keep_fini(struct outfeed_queue *queue)
{
	mem_free(queue->kept.arrays);
	pthread_cond_destroy(&queue->kept.given_back);
	pthread_mutex_destroy(&queue->kept.lock);
}

/* ---- who enqueues ---------------------------------------------------------------------------- */

/* false: there is none, and nobody will take what would go there. */
static bool wait_for_room(struct outfeed_kept *kept, int64_t number)
{
	bool room;

	if (number - atomic_load_explicit(&kept->taken, memory_order_acquire) < kept->room)
		return true;
	pthread_mutex_lock(&kept->lock);
	while (kept->waits && !kept->let_go && number - atomic_load(&kept->taken) >= kept->room)
		pthread_cond_wait(&kept->given_back, &kept->lock);
	room = number - atomic_load(&kept->taken) < kept->room;
	pthread_mutex_unlock(&kept->lock);
	return room;
}

/* Of the first replica. */
static size_t place_of(const struct outfeed_queue *queue, int64_t number)
{
	if (queue->mode == OUTFEED_LAST)
		return 0;
	return (size_t)((number - queue->kept.base) % queue->kept.room) * (size_t)queue->replicas;
}

static enum status no_room(const struct outfeed_queue *queue, struct err *err)
{
	return err_set(err, ST_LIMIT,
		       "outfeed queue \"%s\": %" PRId64 " enqueues wait to be dequeued, and there "
		       "is room for no more",
		       queue->name, queue->kept.room);
}

/* A value without room is no enqueue that has come. */
enum status outfeed__keep(struct outfeed_key *key, const struct outfeed_moment *moment, int replica,
			  const void *values, struct err *err)
{
	struct outfeed_kept *kept = &key->queue->kept;
	struct outfeed_summary *summary = &key->summaries[replica];
	const int64_t number = atomic_load_explicit(&summary->written, memory_order_relaxed);
	const size_t place = place_of(key->queue, number) + (size_t)replica;

	if (key->queue->mode == OUTFEED_ALL && !wait_for_room(kept, number))
		return kept->waits ? ST_OK : no_room(key->queue, err);
	memcpy(key->values + place * key->size, values, key->size);
	key->moments[place] = moment->keys;
	atomic_store_explicit(&summary->written, number + 1, memory_order_release);
	return ST_OK;
}

/* ---- who takes ------------------------------------------------------------------------------- */

/* Enqueues that have arrived whole, from the first. */
static int64_t arrived(const struct outfeed_queue *queue)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < queue->count; i++) {
		const struct outfeed_key *key = queue->keys[i];

		for (int r = 0; key->values && r < queue->replicas; r++) {
			const int64_t written = atomic_load_explicit(&key->summaries[r].written,
								     memory_order_acquire);

			least = min(written, least);
		}
	}
	return least == INT64_MAX ? 0 : least;
}

static void show_key(const struct outfeed_key *key, size_t place, outfeed_visit visit, void *user)
{
	const struct outfeed_value value = {
		.queue = key->queue->name,
		.key = key->name,
		.layer = key->layer,
		.kind = key->kind,
		.dtype = key->dtype,
		.shape = key->shape,
		.ndim = key->ndim,
		.keys = key->moments[place],
		.values = key->values + place * key->size,
		.count = key->size / (size_t)outfeed_dtype_bytes(key->dtype),
	};

	visit(user, &value);
}

static void show(const struct outfeed_queue *queue, int64_t number, outfeed_visit visit, void *user)
{
	const size_t place = place_of(queue, number);

	for (int r = 0; r < queue->replicas; r++)
		for (size_t i = 0; i < queue->count; i++)
			if (queue->keys[i]->values)
				show_key(queue->keys[i], place + (size_t)r, visit, user);
}

static void give_back(struct outfeed_kept *kept, int64_t taken)
{
	if (!kept->waits) {
		kept->next = taken;
		return;
	}
	pthread_mutex_lock(&kept->lock);
	kept->next = taken;
	atomic_store_explicit(&kept->taken, taken, memory_order_release);
	pthread_cond_broadcast(&kept->given_back);
	pthread_mutex_unlock(&kept->lock);
}

bool outfeed_next(struct outfeed_queue *queue, outfeed_visit visit, void *user)
{
	struct outfeed_kept *kept = &queue->kept;
	const int64_t count = kept->room > 0 ? arrived(queue) : 0;

	if (kept->next >= count)
		return false;
	if (queue->mode == OUTFEED_LAST)
		kept->next = count - 1;
	if (visit)
		show(queue, kept->next, visit, user);
	give_back(kept, kept->next + 1);
	return true;
}

void outfeed_let_go(struct outfeed_queue *queue)
{
	pthread_mutex_lock(&queue->kept.lock);
	queue->kept.let_go = true;
	pthread_cond_broadcast(&queue->kept.given_back);
	pthread_mutex_unlock(&queue->kept.lock);
}

void outfeed_restart(struct outfeed_queue *queue)
{
	struct outfeed_kept *kept = &queue->kept;

	kept->base = kept->next = kept->dequeued = arrived(queue);
	kept->let_go = false;
	atomic_store(&kept->taken, kept->base);
}

/* ---- stacked --------------------------------------------------------------------------------- */

static void stack(const struct outfeed_key *key, int64_t first, int64_t count,
		  struct outfeed_array *out)
{
	const struct outfeed_queue *queue = key->queue;

	*out = (struct outfeed_array){
		.key = key->name,
		.layer = key->layer,
		.kind = key->kind,
		.dtype = key->dtype,
		.values = key->values + place_of(queue, first) * key->size,
	};
	if (queue->mode == OUTFEED_ALL)
		out->shape[out->ndim++] = count;
	if (queue->replicas > 1)
		out->shape[out->ndim++] = queue->replicas;
	for (int i = 0; i < key->ndim; i++)
		out->shape[out->ndim++] = key->shape[i];
}

enum status outfeed_dequeue(struct outfeed_queue *queue, bool wait,
			    const struct outfeed_array **out, int *count, struct err *err)
{
	struct outfeed_kept *kept = &queue->kept;
	const int64_t came = kept->room > 0 ? arrived(queue) : 0;
	const int64_t first = queue->mode == OUTFEED_LAST ? came - 1 : kept->dequeued;

	*out = kept->arrays;
	*count = 0;
	if (kept->room == 0 || kept->waits)
		return err_set(
			err, ST_INVALID,
			"outfeed queue \"%s\": it does not keep values until they are dequeued",
			queue->name);
	if (came == 0 && wait)
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": it is dequeued before anything was enqueued",
			       queue->name);
	/* The place of the last may be written at any time. */
	if (came <= kept->dequeued || (queue->mode == OUTFEED_LAST && !wait))
		return ST_OK;
	for (size_t i = 0; i < queue->count; i++)
		if (queue->keys[i]->values)
			stack(queue->keys[i], first, came - first, &kept->arrays[(*count)++]);
	kept->dequeued = came;
	return ST_OK;
}
