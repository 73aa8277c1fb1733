/*
 * Outfeed queues: their keys, and what is enqueued.
 *
 * A key owns a summary per replica, each on a cache line of its own, so replicas record at once
 * without a lock. A queue owns its keys and copies of all texts; what records is the caller's.
 */
#include "outfeed/outfeed_queue.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "outfeed/outfeed_queue_internal.h"

/* ---- life ------------------------------------------------------------------------------------ */

static enum status copy_filters(struct outfeed_queue *queue,
				const struct outfeed_queue_params *params, struct err *err)
{
	if (!params->filters)
		return ST_OK;
	queue->filters = mem_calloc((size_t)params->filter_count + 1, sizeof(*queue->filters));
	if (!queue->filters)
		return err_nomem(err);
	for (; queue->filter_count < params->filter_count; queue->filter_count++) {
		char *copy = mem_strdup(params->filters[queue->filter_count]);

		if (!copy)
			return err_nomem(err);
		queue->filters[queue->filter_count] = copy;
	}
	return ST_OK;
}

enum status outfeed_queue_new(struct outfeed_queue **out, struct outfeed *outfeed,
			      const struct outfeed_queue_params *params, struct err *err)
{
	struct outfeed_queue *queue;
	enum status status;

	*out = NULL;
	if (params->replicas < 1 || params->filter_count < 0)
		return err_set(err, ST_INVALID, "outfeed queue: %d replicas, %d filters",
			       params->replicas, params->filter_count);
	queue = mem_calloc(1, sizeof(*queue));
	if (!queue)
		return err_nomem(err);
	outfeed__keep_init(queue);
	queue->outfeed = outfeed;
	queue->mode = params->mode;
	queue->replicas = params->replicas;
	queue->wrapped = params->wrapped;
	queue->final = !params->wrapped;
	queue->name = mem_strdup(params->name);
	status = queue->name ? copy_filters(queue, params, err) : err_nomem(err);
	if (status != ST_OK) {
		outfeed_queue_free(queue);
		return status;
	}
	*out = queue;
	return ST_OK;
}

static void key_free(struct outfeed_key *key)
{
	if (!key)
		return;
	mem_free(key->name);
	mem_free(key->layer);
	mem_free(key->values);
	mem_free(key->moments);
	mem_free(key->summaries);
	mem_free(key);
}

void outfeed_queue_free(struct outfeed_queue *queue)
{
	if (!queue)
		return;
	for (size_t i = 0; i < queue->count; i++)
		key_free(queue->keys[i]);
	for (int i = 0; i < queue->filter_count; i++)
		mem_free(queue->filters[i]);
	mem_free(queue->filters);
	mem_free(queue->keys);
	outfeed__keep_fini(queue);
	mem_free(queue->name);
	mem_free(queue);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static struct outfeed_key *find_key(const struct outfeed_queue *queue, const char *name)
{
	for (size_t i = 0; i < queue->count; i++) {
		if (strcmp(queue->keys[i]->name, name) == 0)
			return queue->keys[i];
	}
	return NULL;
}

static enum status key_new(struct outfeed_key **out, struct outfeed_queue *queue,
			   const struct outfeed_tensor_params *params, struct err *err)
{
	struct outfeed_tensor_params sent = *params;
	struct outfeed_key *key = mem_calloc(1, sizeof(*key));
	enum status status;

	*out = NULL;
	if (!key)
		return err_nomem(err);
	key->queue = queue;
	key->kind = params->kind;
	key->dtype = params->dtype;
	key->name = mem_strdup(params->key);
	key->layer = params->layer ? mem_strdup(params->layer) : NULL;
	key->summaries = mem_aligned((size_t)queue->replicas, sizeof(*key->summaries));
	sent.queue = queue->name;
	sent.queued = true;
	status = !key->name || !key->summaries || (!key->layer && params->layer)
			 ? err_nomem(err)
			 : outfeed_tensor_add(queue->outfeed, &key->tensor, &sent, err);
	if (status != ST_OK) {
		key_free(key);
		return status;
	}
	for (int i = 0; i < queue->replicas; i++)
		outfeed_stats_init(&key->summaries[i].stats);
	key->ndim = params->ndim;
	for (int i = 0; i < params->ndim; i++)
		key->shape[i] = params->shape[i];
	*out = key;
	return ST_OK;
}

static enum status check_place(const struct outfeed_queue *queue, const char *name, struct err *err)
{
	if (queue->wrapped || queue->count == 0)
		return ST_OK;
	return err_set(
		err, ST_INVALID,
		"outfeed queue \"%s\": a queue is enqueued in one place, but both \"%s\" and "
		"\"%s\" use it (give each a queue, or use MaybeOutfeed)",
		queue->name, queue->keys[0]->name, name);
}

/* A final layer enqueues what the dictionary holds, even where its own key is refused; where that
 * is nothing, it does nothing. */
static enum status place(struct outfeed_queue *queue, const char *name, struct err *err)
{
	if (queue->count == 0)
		return ST_OK;
	if (queue->placed && queue->wrapped)
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": a queue is enqueued in one place, so \"%s\" "
			       "cannot be a second final outfeed (give all but the last layer "
			       "final_outfeed=False)",
			       queue->name, name);
	queue->placed = true;
	return ST_OK;
}

static enum status add_key(struct outfeed_queue *queue, struct outfeed_key **out,
			   const struct outfeed_tensor_params *tensor, struct err *err)
{
	enum status status;

	if (find_key(queue, tensor->key))
		return err_set(err, ST_INVALID, "outfeed queue \"%s\": it has two keys \"%s\"",
			       queue->name, tensor->key);
	if (mem_grow(&queue->keys, &queue->capacity, queue->count + 1, sizeof(*queue->keys)) != 0)
		return err_nomem(err);
	status = key_new(out, queue, tensor, err);
	if (status != ST_OK)
		return status;
	(*out)->sent = !queue->placed || tensor->kind != OUTFEED_ACTIVATION;
	queue->keys[queue->count++] = *out;
	return ST_OK;
}

enum status outfeed_queue_add(struct outfeed_queue *queue, struct outfeed_key **out,
			      const struct outfeed_tensor_params *tensor, bool final,
			      struct err *err)
{
	enum status status = check_place(queue, tensor->key, err);

	*out = NULL;
	if (status != ST_OK)
		return status;
	if (str_has_any(tensor->key, (const char *const *)queue->filters, queue->filter_count))
		status = add_key(queue, out, tensor, err);
	else
		queue->refused++;
	queue->final = queue->final || (final && queue->count > 0);
	queue->idle = queue->idle || (final && queue->count == 0);
	if (status == ST_OK && final && tensor->kind == OUTFEED_ACTIVATION)
		status = place(queue, tensor->key, err);
	if (status != ST_OK)
		*out = NULL;
	return status;
}

/* ---- enqueueing ------------------------------------------------------------------------------ */

bool outfeed__sent(const struct outfeed_key *key)
{
	return key->sent && key->queue->final;
}

enum status outfeed_enqueue(struct outfeed_key *key, const struct outfeed_moment *moment,
			    const void *values, size_t count, struct err *err)
{
	const int64_t replica = moment->keys.replica == IPS_NULL ? 0 : moment->keys.replica;
	struct outfeed_queue *queue;
	struct outfeed_stats stats;
	struct outfeed_summary *summary;
	enum status status;

	if (!key || !outfeed__sent(key))
		return ST_OK;
	queue = key->queue;
	assert(replica >= 0 && replica < queue->replicas);
	status = outfeed_record(key->tensor, moment, values, count, &stats, err);
	summary = &key->summaries[replica];
	if (queue->mode == OUTFEED_LAST)
		summary->stats = stats;
	else
		outfeed_stats_merge(&summary->stats, &stats);
	summary->enqueues++;
	summary->ever = true;
	if (queue->kept.room > 0 && status == ST_OK)
		return outfeed__keep(key, moment, (int)replica, values, err);
	if (queue->kept.room > 0)
		outfeed__keep(key, moment, (int)replica, values, NULL);
	return status;
}

bool outfeed_queue_enqueued(const struct outfeed_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		for (int r = 0; r < queue->replicas; r++) {
			if (queue->keys[i]->summaries[r].ever)
				return true;
		}
	}
	return false;
}
