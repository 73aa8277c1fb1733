/*
 * Outfeed queues: which tensors they send, and the table of the tutorial's OutfeedCallback.
 *
 * A queue owns copies of all texts and the summaries of its tensors; the recorder owns the tensors.
 */
#include "outfeed/outfeed_queue.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/cli.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "common/tree.h"
#include "outfeed/outfeed_queue_internal.h"

/* ---- creating and freeing -------------------------------------------------------------------- */

static enum status queue_init(struct outfeed_queue *queue,
			      const struct outfeed_queue_params *params, struct err *err)
{
	queue->name = mem_strdup(params->name);
	if (!queue->name)
		return err_nomem(err);
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
	pthread_mutex_init(&queue->retained.lock, NULL);
	pthread_cond_init(&queue->retained.room_made, NULL);
	queue->outfeed = outfeed;
	queue->mode = params->mode;
	queue->replicas = params->replicas;
	queue->wrapped = params->wrapped;
	queue->final = !params->wrapped;
	status = queue_init(queue, params, err);
	if (status == ST_OK)
		*out = queue;
	else
		outfeed_queue_free(queue);
	return status;
}

static void sent_free(struct outfeed_sent *sent)
{
	mem_free(sent->values);
	mem_free(sent->keys);
	mem_free(sent->summaries);
	mem_free(sent);
}

void outfeed_queue_free(struct outfeed_queue *queue)
{
	if (!queue)
		return;
	for (size_t i = 0; i < queue->count; i++)
		sent_free(queue->sent[i]);
	mem_free(queue->sent);
	for (int i = 0; i < queue->filter_count; i++)
		mem_free(queue->filters[i]);
	mem_free(queue->filters);
	mem_free(queue->retained.arrays);
	pthread_cond_destroy(&queue->retained.room_made);
	pthread_mutex_destroy(&queue->retained.lock);
	mem_free(queue->name);
	mem_free(queue);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Add a tensor that passed the filters. */
static enum status add_queued(struct outfeed_queue *queue, struct outfeed_tensor **out,
			      const struct outfeed_tensor_params *params, struct err *err)
{
	struct outfeed_tensor_params queued = *params;
	struct outfeed_sent *sent;
	enum status status;

	for (size_t i = 0; i < queue->count; i++)
		if (strcmp(queue->sent[i]->tensor->key, params->key) == 0)
			return err_set(err, ST_INVALID,
				       "outfeed queue \"%s\": it has two keys \"%s\"", queue->name,
				       params->key);
	if (mem_grow(&queue->sent, &queue->capacity, queue->count + 1, sizeof(*queue->sent)) != 0)
		return err_nomem(err);
	sent = mem_calloc(1, sizeof(*sent));
	if (!sent)
		return err_nomem(err);
	sent->queue = queue;
	sent->late = queue->placed && params->kind == OUTFEED_ACTIVATION;
	sent->summaries = mem_aligned((size_t)queue->replicas, sizeof(*sent->summaries));
	queued.queue = queue->name;
	queued.asked = OUTFEED_SENT;
	status = !sent->summaries ? err_nomem(err)
				  : outfeed_tensor_add(queue->outfeed, out, &queued, err);
	if (status != ST_OK) {
		sent_free(sent);
		return status;
	}
	for (int i = 0; i < queue->replicas; i++)
		outfeed_stats_init(&sent->summaries[i].stats);
	sent->tensor = *out;
	(*out)->sent = sent;
	queue->sent[queue->count++] = sent;
	return ST_OK;
}

enum status outfeed_queue_add(struct outfeed_queue *queue, struct outfeed_tensor **out,
			      const struct outfeed_tensor_params *tensor, bool final,
			      struct err *err)
{
	enum status status;

	*out = NULL;
	if (!queue->wrapped && queue->count > 0)
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": a queue is enqueued in one place, but both "
			       "\"%s\" and \"%s\" use it (give each a queue, or use MaybeOutfeed)",
			       queue->name, queue->sent[0]->tensor->key, tensor->key);
	if (!str_has_any(tensor->key, (const char *const *)queue->filters, queue->filter_count)) {
		queue->refused++;
	} else {
		status = add_queued(queue, out, tensor, err);
		if (status != ST_OK)
			return status;
	}
	if (!final)
		return ST_OK;
	if (queue->count == 0) {
		queue->idle = true;
		return ST_OK;
	}
	queue->final = true;
	/* A final layer enqueues all tensors collected so far, even if its own key is refused. */
	if (tensor->kind != OUTFEED_ACTIVATION)
		return ST_OK;
	if (queue->placed && queue->wrapped) {
		*out = NULL;
		return err_set(err, ST_INVALID,
			       "outfeed queue \"%s\": a queue is enqueued in one place, so \"%s\" "
			       "cannot be a second final outfeed (give all but the last layer "
			       "final_outfeed=False)",
			       queue->name, tensor->key);
	}
	queue->placed = true;
	return ST_OK;
}

bool outfeed_queue_enqueued(const struct outfeed_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		for (int r = 0; r < queue->replicas; r++)
			if (queue->sent[i]->summaries[r].ever)
				return true;
	return false;
}

/* ---- the callback: summaries ----------------------------------------------------------------- */

/* A row of the table: numpy's mean, std, min and max of all recorded values, non-finite ones
 * included. */
struct row {
	const struct outfeed_tensor *tensor;
	char shape[OUTFEED_SHAPE_TEXT]; /* stacked, as the arrays of outfeed_dequeue() are */
	double mean, std, min, max;
	bool nans, infs;
};

static void merge_branch(const struct outfeed_summary *summaries, int count,
			 struct outfeed_stats *all)
{
	const int left = count > 1 ? tree_left(count) : 0;
	struct outfeed_stats right;

	if (count == 1) {
		*all = summaries[0].stats;
		return;
	}
	merge_branch(summaries, left, all);
	merge_branch(summaries + left, count - left, &right);
	outfeed_stats_merge(all, &right);
}

static void fill_numbers(struct row *row, const struct outfeed_stats *stats)
{
	const int64_t pos = stats->n_pos_inf, neg = stats->n_neg_inf;
	const bool finite = outfeed_stats_finite(stats) > 0;

	row->nans = stats->n_nan > 0;
	row->infs = pos + neg > 0;
	row->mean = stats->mean;
	row->std = outfeed_stats_std(stats);
	row->min = neg > 0 ? -(double)INFINITY : pos > 0 && !finite ? (double)INFINITY : stats->min;
	row->max = pos > 0 ? (double)INFINITY : neg > 0 && !finite ? -(double)INFINITY : stats->max;
	if (row->infs) {
		row->mean = pos > 0 && neg > 0 ? (double)NAN : pos > 0 ? INFINITY : -INFINITY;
		row->std = (double)NAN;
	}
	if (row->nans)
		row->mean = row->std = row->min = row->max = (double)NAN;
}

/* Return false if nothing was enqueued since the last call. */
static bool summarize(struct row *row, const struct outfeed_sent *sent)
{
	const struct outfeed_queue *queue = sent->queue;
	const struct outfeed_tensor *tensor = sent->tensor;
	int64_t enqueues = 0, shape[OUTFEED_NDIM_MAX + 2];
	struct outfeed_stats all;
	int ndim = 0;

	for (int r = 0; r < queue->replicas; r++)
		enqueues = max(sent->summaries[r].enqueues, enqueues);
	if (enqueues == 0)
		return false;
	if (queue->mode != OUTFEED_LAST)
		shape[ndim++] = enqueues;
	if (queue->replicas > 1)
		shape[ndim++] = queue->replicas;
	for (int i = 0; i < tensor->ndim; i++)
		shape[ndim++] = tensor->shape[i];
	outfeed__shape_text(row->shape, shape, ndim);
	row->tensor = tensor;
	merge_branch(sent->summaries, queue->replicas, &all);
	fill_numbers(row, &all);
	return true;
}

/* ---- the callback: the table ----------------------------------------------------------------- */

/* Print "%.6f" as Python does: nan has no sign. */
static void print_column(FILE *out, double value)
{
	char text[360] = "nan";

	if (!isnan(value))
		snprintf(text, sizeof(text), "%.6f", value);
	fprintf(out, "%-12s ", text);
}

static void print_table(FILE *out, const struct row *rows, size_t count, int64_t epoch)
{
	int width = 0;

	for (size_t i = 0; i < count; i++) {
		cli_print(out, "key: %s shape: %s\n", rows[i].tensor->key, rows[i].shape);
		width = max(width, utf8_columns(rows[i].tensor->key) + 5);
	}
	fprintf(out, "Epoch %" PRId64 " - Summary Stats\n", epoch);
	fprintf(out, "%-5s %-*s %-12s %-12s %-12s %-12s %-7s %-7s\n", "Index", width, "Name",
		"Mean", "Std", "Minimum", "Maximum", "NaNs", "infs");
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		const char *key = row->tensor->key;

		/* printf() pads by bytes. */
		cli_print(out, "%-5zu %s%*s ", i, key, width - utf8_columns(key), "");
		print_column(out, row->mean);
		print_column(out, row->std);
		print_column(out, row->min);
		print_column(out, row->max);
		fprintf(out, "%-7s %-7s\n", row->nans ? "True" : "False",
			row->infs ? "True" : "False");
	}
}

static void print_empty(FILE *out, const struct outfeed_queue *queue)
{
	fprintf(out, "No data enqueued\n");
	if (queue->count == 0 && queue->refused > 0)
		cli_print(out, "(the filters of queue \"%s\" let none of its %d keys pass)\n",
			  queue->name, queue->refused);
	else if (queue->count == 0)
		cli_print(out, "(nothing feeds queue \"%s\")\n", queue->name);
	else if (!queue->final && queue->idle)
		cli_print(
			out,
			"(the final outfeed of queue \"%s\" comes before all that its filters let "
			"pass, so nothing is sent)\n",
			queue->name);
	else if (!queue->final)
		cli_print(out, "(no layer of queue \"%s\" has final_outfeed, so nothing is sent)\n",
			  queue->name);
	else if (outfeed_queue_enqueued(queue))
		fprintf(out, "(nothing was recorded since the last time)\n");
	else
		fprintf(out, "(nothing was recorded)\n");
}

enum status outfeed_callback(struct outfeed_queue *queue, const char *callback, enum ips_mode mode,
			     int64_t epoch, FILE *out, struct err *err)
{
	struct ips_recording *recording = outfeed_recording(queue->outfeed);
	struct row *rows = mem_calloc(queue->count + 1, sizeof(*rows));
	size_t count = 0;
	int status = 0;

	if (!rows)
		return err_nomem(err);
	for (size_t i = 0; i < queue->count; i++)
		count += summarize(&rows[count], queue->sent[i]);
	if (out)
		cli_print(out, "\n%s\n", callback);
	if (out && count > 0)
		print_table(out, rows, count, epoch);
	else if (out)
		print_empty(out, queue);
	for (size_t i = 0; i < count && recording && status == 0; i++) {
		const struct row *row = &rows[i];
		const struct ips_tensor_epoch columns = {.mode = mode,
							 .epoch = epoch,
							 .callback = callback,
							 .queue = row->tensor->queue,
							 .key = row->tensor->key,
							 .shape = row->shape,
							 .mean = row->mean,
							 .std = row->std,
							 .min = row->min,
							 .max = row->max,
							 .nans = row->nans,
							 .infs = row->infs};

		status = ips_append_tensor_epoch(recording, &columns);
	}
	mem_free(rows);
	for (size_t i = 0; i < queue->count; i++) {
		for (int r = 0; r < queue->replicas; r++) {
			outfeed_stats_init(&queue->sent[i]->summaries[r].stats);
			queue->sent[i]->summaries[r].enqueues = 0;
		}
	}
	return outfeed__failed(queue->outfeed, status, err);
}
