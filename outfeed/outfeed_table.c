/*
 * The table of the tutorial's OutfeedCallback, and its rows of `tensor_epochs`.
 *
 * Threading: while no one records.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "common/tree.h"
#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_queue_internal.h"

/* numpy's mean, std, min and max of all that was recorded, bad values included. */
struct printed {
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

/* All replicas' values; the count of enqueues (of the replica with most). */
static int64_t merge_replicas(const struct outfeed_key *key, struct outfeed_stats *all)
{
	int64_t enqueues = 0;

	for (int r = 0; r < key->queue->replicas; r++)
		if (key->summaries[r].enqueues > enqueues)
			enqueues = key->summaries[r].enqueues;
	merge_branch(key->summaries, key->queue->replicas, all);
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
		stacked_shape(&shape, key, merge_replicas(key, &all));
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
		merge_replicas(key, &all);
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
	else if (!queue->final && queue->idle)
		fprintf(out,
			"(the final outfeed of queue \"%s\" comes before all that its filters let "
			"pass, so nothing is sent)\n",
			queue->name);
	else if (!queue->final)
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

	stacked_shape(&shape, key, merge_replicas(key, &all));
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

	if (out)
		fprintf(out, "\n%s\n", callback);
	if (!queue_waiting(queue)) {
		if (out)
			print_nothing(queue, out);
		return ST_OK;
	}
	if (out) {
		status = print_keys(queue, out, err);
		if (status == ST_OK)
			print_table(queue, epoch, out);
	}
	for (size_t i = 0; i < queue->count; i++) {
		if (status == ST_OK && outfeed_recording(queue->outfeed) &&
		    key_waiting(queue->keys[i]))
			status = append_epoch(queue->keys[i], callback, mode, epoch, err);
		start_new_summary(queue->keys[i]);
	}
	return status;
}
