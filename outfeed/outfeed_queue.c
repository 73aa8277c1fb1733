/*
 * Outfeed queues and the table of the callback.
 *
 * A key owns a summary per replica, each on a cache line of its own, so replicas record at once
 * without a lock. A queue owns its keys; recording and params' texts are the caller's (names are
 * copied).
 */
#include "outfeed/outfeed_queue.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "outfeed/outfeed_filter.h"
#include "outfeed/outfeed_internal.h"

/* What came since the last dequeue, of one replica. */
struct summary {
	struct outfeed_stats stats;
	int64_t enqueues;
	bool ever; /* since the queue was made */
} __attribute__((aligned(64)));

struct outfeed_key {
	struct outfeed_queue *queue;
	char *name;
	int64_t shape[OUTFEED_NDIM_MAX];
	int ndim;
	struct outfeed_tensor *tensor;
	bool sent; /* false: added after the place that enqueues, so never part of it */
	struct summary *summaries; /* by replica */
};

struct outfeed_queue {
	struct outfeed *outfeed;
	char *name;
	char **filters; /* NULL: none */
	int filter_count;
	enum outfeed_mode mode;
	int replicas;
	bool wrapped;
	bool enqueues;    /* some place enqueues (always, where not wrapped) */
	bool layer_final; /* that place is a layer */
	int refused;      /* keys that the filters refused */
	struct outfeed_key **keys;
	size_t count, capacity;
};

/* ---- life ---------------------------------------------------------------------------------------
 */

static enum status copy_filters(struct outfeed_queue *queue,
				const struct outfeed_queue_params *params, struct err *err)
{
	if (params->filters == NULL)
		return ST_OK;
	queue->filters = mem_calloc((size_t)params->filter_count + 1, sizeof(*queue->filters));
	if (queue->filters == NULL)
		return err_nomem(err);
	for (; queue->filter_count < params->filter_count; queue->filter_count++) {
		char *copy = mem_strdup(params->filters[queue->filter_count]);

		if (copy == NULL)
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
		return err_set(err, ST_INVALID, "outfeed queue \"%s\": %d replicas, %d filters",
			       params->name, params->replicas, params->filter_count);
	queue = mem_calloc(1, sizeof(*queue));
	if (queue == NULL)
		return err_nomem(err);
	queue->outfeed = outfeed;
	queue->mode = params->mode;
	queue->replicas = params->replicas;
	queue->wrapped = params->wrapped;
	queue->enqueues = !params->wrapped;
	queue->name = mem_strdup(params->name);
	status = queue->name != NULL ? copy_filters(queue, params, err) : err_nomem(err);
	if (status != ST_OK) {
		outfeed_queue_free(queue);
		return status;
	}
	*out = queue;
	return ST_OK;
}

static void key_free(struct outfeed_key *key)
{
	if (key == NULL)
		return;
	mem_free(key->name);
	mem_free(key->summaries);
	mem_free(key);
}

void outfeed_queue_free(struct outfeed_queue *queue)
{
	if (queue == NULL)
		return;
	for (size_t i = 0; i < queue->count; i++)
		key_free(queue->keys[i]);
	for (int i = 0; i < queue->filter_count; i++)
		mem_free(queue->filters[i]);
	mem_free(queue->filters);
	mem_free(queue->keys);
	mem_free(queue->name);
	mem_free(queue);
}

/* ---- keys ---------------------------------------------------------------------------------------
 */

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
	if (key == NULL)
		return err_nomem(err);
	key->queue = queue;
	key->name = mem_strdup(params->key);
	key->summaries = mem_aligned((size_t)queue->replicas, sizeof(*key->summaries));
	sent.queue = queue->name;
	sent.queued = true;
	status = key->name == NULL || key->summaries == NULL
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

/* The rules of where a queue is enqueued. */
static enum status check_place(const struct outfeed_queue *queue, const char *name, bool layer,
			       bool final, struct err *err)
{
	if (!queue->wrapped && queue->count > 0)
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": a queue is enqueued in one place, but both "
			       "\"%s\" and \"%s\" use it (give each a queue, or use MaybeOutfeed)",
			       queue->name, queue->keys[0]->name, name);
	if (queue->wrapped && layer && final && queue->layer_final && queue->count > 0)
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": a queue is enqueued in one place, so \"%s\" "
			       "cannot be a second final outfeed (give all but the last layer "
			       "final_outfeed=False)",
			       queue->name, name);
	return ST_OK;
}

enum status outfeed_queue_add(struct outfeed_queue *queue, struct outfeed_key **out,
			      const struct outfeed_tensor_params *tensor, bool final,
			      struct err *err)
{
	const bool is_layer = tensor->kind == OUTFEED_ACTIVATION;
	const bool after = queue->layer_final && is_layer;
	const char *name = tensor->key;
	enum status status;

	*out = NULL;
	status = check_place(queue, name, is_layer, final, err);
	if (status != ST_OK)
		return status;
	/* A final layer enqueues what the dictionary holds, even where its own key is refused. */
	queue->enqueues = queue->enqueues || final;
	queue->layer_final = queue->layer_final || (final && is_layer);
	if (!outfeed_filter_passes((const char *const *)queue->filters, queue->filter_count,
				   name)) {
		queue->refused++;
		return ST_OK;
	}
	if (find_key(queue, name) != NULL)
		return err_set(err, ST_INVALID, "outfeed queue \"%s\": it has two keys \"%s\"",
			       queue->name, name);
	if (mem_grow(&queue->keys, &queue->capacity, queue->count + 1, sizeof(*queue->keys)) != 0)
		return err_nomem(err);
	status = key_new(out, queue, tensor, err);
	if (status != ST_OK)
		return status;
	(*out)->sent = !after;
	queue->keys[queue->count++] = *out;
	return ST_OK;
}

/* ---- enqueueing ---------------------------------------------------------------------------------
 */

enum status outfeed_enqueue(struct outfeed_key *key, const struct outfeed_moment *moment,
			    const void *values, size_t count, struct err *err)
{
	const int64_t replica = moment->keys.replica == IPS_NULL ? 0 : moment->keys.replica;
	struct outfeed_queue *queue;
	struct outfeed_stats stats;
	struct summary *summary;
	enum status status;

	if (key == NULL || !key->queue->enqueues || !key->sent)
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

/* ---- the callback -------------------------------------------------------------------------------
 */

/* numpy's mean, std, min and max of all that was recorded, bad values included. */
struct printed {
	double mean, std, min, max;
	bool nans, infs;
};

/* All replicas' values; the count of enqueues (of the replica with most). */
static int64_t dequeue(const struct outfeed_key *key, struct outfeed_stats *all)
{
	int64_t enqueues = 0;

	outfeed_stats_init(all);
	for (int r = 0; r < key->queue->replicas; r++) {
		outfeed_stats_merge(all, &key->summaries[r].stats);
		if (key->summaries[r].enqueues > enqueues)
			enqueues = key->summaries[r].enqueues;
	}
	return enqueues;
}

static void as_numpy(struct printed *out, const struct outfeed_stats *stats)
{
	int64_t pos = stats->n_pos_inf, neg = stats->n_neg_inf;

	*out = (struct printed){.mean = stats->mean,
				.std = outfeed_stats_std(stats),
				.min = neg > 0 ? -(double)INFINITY : stats->min,
				.max = pos > 0 ? (double)INFINITY : stats->max,
				.nans = stats->n_nan > 0,
				.infs = pos + neg > 0};
	if (neg > 0 && outfeed_stats_finite(stats) == 0 && pos == 0)
		out->max = -(double)INFINITY;
	if (pos > 0 && outfeed_stats_finite(stats) == 0 && neg == 0)
		out->min = (double)INFINITY;
	if (out->infs) {
		out->mean = pos > 0 && neg > 0 ? (double)NAN : pos > 0 ? INFINITY : -INFINITY;
		out->std = (double)NAN;
	}
	if (out->nans)
		out->mean = out->std = out->min = out->max = (double)NAN;
}

/* "%.6f" as Python prints it: nan has no sign. */
static void print_number(FILE *out, double value)
{
	char text[360];

	if (isnan(value))
		str_copy(text, sizeof(text), "nan");
	else
		snprintf(text, sizeof(text), "%.6f", value);
	fprintf(out, "%-12s ", text);
}

static void print_row(FILE *out, size_t index, int width, const char *name,
		      const struct printed *numbers)
{
	fprintf(out, "%-5zu %-*s ", index, width, name);
	print_number(out, numbers->mean);
	print_number(out, numbers->std);
	print_number(out, numbers->min);
	print_number(out, numbers->max);
	fprintf(out, "%-7s %-7s\n", numbers->nans ? "True" : "False",
		numbers->infs ? "True" : "False");
}

static void stacked_shape(struct str *out, const struct outfeed_key *key, int64_t enqueues)
{
	outfeed__shape_text(out, key->queue->mode == OUTFEED_LAST ? -1 : enqueues,
			    key->queue->replicas > 1 ? key->queue->replicas : -1, key->shape,
			    key->ndim);
}

static bool key_waiting(const struct outfeed_key *key)
{
	for (int r = 0; r < key->queue->replicas; r++) {
		if (key->summaries[r].enqueues > 0)
			return true;
	}
	return false;
}

static bool queue_waiting(const struct outfeed_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++) {
		if (key_waiting(queue->keys[i]))
			return true;
	}
	return false;
}

/* Characters, so that the columns stand under each other for any name. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_header(FILE *out, int64_t epoch, int width)
{
	static const char *const columns[] = {"Mean", "Std", "Minimum", "Maximum"};

	fprintf(out, "Epoch %" PRId64 " - Summary Stats\n", epoch);
	fprintf(out, "%-5s %-*s ", "Index", width, "Name");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		fprintf(out, "%-12s ", columns[i]);
	fprintf(out, "%-7s %-7s\n", "NaNs", "infs");
}

static enum status print_keys(const struct outfeed_queue *queue, FILE *out, struct err *err)
{
	for (size_t i = 0; i < queue->count; i++) {
		const struct outfeed_key *key = queue->keys[i];
		struct outfeed_stats all;
		struct str shape = {0};

		if (!key_waiting(key))
			continue;
		stacked_shape(&shape, key, dequeue(key, &all));
		if (shape.failed) {
			str_free(&shape);
			return err_nomem(err);
		}
		fprintf(out, "key: %s shape: %s\n", key->name, str_peek(&shape));
		str_free(&shape);
	}
	return ST_OK;
}

static void print_table(const struct outfeed_queue *queue, int64_t epoch, FILE *out)
{
	int longest = 0;
	size_t row = 0;

	for (size_t i = 0; i < queue->count; i++) {
		int width = text_width(queue->keys[i]->name);

		if (key_waiting(queue->keys[i]) && width > longest)
			longest = width;
	}
	print_header(out, epoch, longest + 5);
	for (size_t i = 0; i < queue->count; i++) {
		const struct outfeed_key *key = queue->keys[i];
		struct outfeed_stats all;
		struct printed numbers;
		int bytes = (int)strlen(key->name);

		if (!key_waiting(key))
			continue;
		dequeue(key, &all);
		as_numpy(&numbers, &all);
		/* printf pads by bytes: add those that are no characters. */
		print_row(out, row++, longest + 5 + bytes - text_width(key->name), key->name,
			  &numbers);
	}
}

static void print_nothing(const struct outfeed_queue *queue, FILE *out)
{
	fprintf(out, "No data enqueued\n");
	if (queue->count == 0 && queue->refused > 0)
		fprintf(out, "(the filters of queue \"%s\" let none of its %d keys pass)\n",
			queue->name, queue->refused);
	else if (queue->count == 0)
		fprintf(out, "(nothing feeds queue \"%s\")\n", queue->name);
	else if (!queue->enqueues)
		fprintf(out, "(no layer of queue \"%s\" has final_outfeed, so nothing is sent)\n",
			queue->name);
	else if (outfeed_queue_enqueued(queue))
		fprintf(out, "(nothing was recorded since the last time)\n");
	else
		fprintf(out, "(nothing was recorded)\n");
}

static enum status append_epoch(const struct outfeed_key *key, const char *callback,
				enum ips_mode mode, int64_t epoch, struct err *err)
{
	struct ips_tensor_epoch row = {.mode = mode,
				       .epoch = epoch,
				       .callback = callback,
				       .queue = key->queue->name,
				       .key = key->name};
	struct outfeed_stats all;
	struct printed numbers;
	struct str shape = {0};
	int status;

	stacked_shape(&shape, key, dequeue(key, &all));
	if (shape.failed) {
		str_free(&shape);
		return err_nomem(err);
	}
	as_numpy(&numbers, &all);
	row.shape = str_peek(&shape);
	row.mean = numbers.mean;
	row.std = numbers.std;
	row.min = numbers.min;
	row.max = numbers.max;
	row.nans = numbers.nans;
	row.infs = numbers.infs;
	status = ips_append_tensor_epoch(outfeed_recording(key->queue->outfeed), &row);
	str_free(&shape);
	return outfeed__failed(key->queue->outfeed, status, err);
}

static void start_new_summary(struct outfeed_key *key)
{
	for (int r = 0; r < key->queue->replicas; r++) {
		outfeed_stats_init(&key->summaries[r].stats);
		key->summaries[r].enqueues = 0;
	}
}

enum status outfeed_callback(struct outfeed_queue *queue, const char *callback, enum ips_mode mode,
			     int64_t epoch, FILE *out, struct err *err)
{
	enum status status = ST_OK;

	if (out != NULL)
		fprintf(out, "\n%s\n", callback);
	if (!queue_waiting(queue)) {
		if (out != NULL)
			print_nothing(queue, out);
		return ST_OK;
	}
	if (out != NULL) {
		status = print_keys(queue, out, err);
		if (status == ST_OK)
			print_table(queue, epoch, out);
	}
	for (size_t i = 0; i < queue->count; i++) {
		if (status == ST_OK && outfeed_recording(queue->outfeed) != NULL &&
		    key_waiting(queue->keys[i]))
			status = append_epoch(queue->keys[i], callback, mode, epoch, err);
		start_new_summary(queue->keys[i]);
	}
	return status;
}
