/*
 * The rows of tensors: tiers, statistics, histograms, captures.
 *
 * Nothing is allocated here. Threading: any thread; a tensor and replica belong to the calling one.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "outfeed/outfeed_histogram.h"
#include "outfeed/outfeed_internal.h"

/* With its texts a piece fits into one of the chunks of 256 KiB that the recording keeps and uses
 * again, so it is not allocated. */
#define CAPTURE_PIECE ((size_t)255 * 1024)
#define SHAPE_TEXT    (OUTFEED_NDIM_MAX * 22 + 4)
#define BIN_ROWS      32 /* appended at once */

enum status outfeed__append_tier(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
				 const char *why, struct err *err)
{
	static const struct ips_keys none = IPS_KEYS_NULL;
	const enum outfeed_tier tier = outfeed__tier(tensor);
	const struct ips_tensor_tier row = {
		.keys = moment ? moment->keys : none,
		.tensor_id = tensor->tensor_id,
		.tier = outfeed_tier_text(tier),
		.every = tensor->choice.every,
		.keep = tier == OUTFEED_LAST_N ? tensor->choice.last : IPS_NULL,
		.time_ns = moment ? moment->time_ns : IPS_NULL,
		.why = why,
	};
	const int status = ips_append_tensor_tier(tensor->outfeed->params.recording, &row);

	return outfeed__failed(tensor->outfeed, status, err);
}

/* ---- statistics ------------------------------------------------------------------------------ */

enum status outfeed__append_stats(struct outfeed_tensor *tensor,
				  const struct outfeed_moment *moment,
				  const struct outfeed_look *look, struct err *err)
{
	struct ips_tensor_stats row = {.keys = moment->keys,
				       .tensor_id = tensor->tensor_id,
				       .time_ns = moment->time_ns,
				       .inactive = look->inactive,
				       .update_ratio = look->update_ratio,
				       .n_changed = look->n_changed};

	OUTFEED_FILL_COLUMNS(&row, &look->stats, look->known >= OUTFEED_COUNTS);
	if (look->known == OUTFEED_HEALTH)
		row.abs_max = outfeed__float(look->abs_max);
	return outfeed__failed(tensor->outfeed,
			       ips_append_tensor_stats(tensor->outfeed->params.recording, &row),
			       err);
}

/* ---- histograms ------------------------------------------------------------------------------ */

static void histogram_piece(void *user, const float *values, size_t at, size_t count)
{
	(void)at;
	outfeed_histogram_add(user, values, count);
}

enum status outfeed__append_histogram(struct outfeed_tensor *tensor,
				      const struct outfeed_moment *moment, const void *values,
				      size_t count, struct err *err)
{
	struct ips_recording *recording = tensor->outfeed->params.recording;
	struct ips_tensor_histogram rows[BIN_ROWS];
	struct outfeed_histogram histogram = {{0}};
	int status = 0, waiting = 0, bins = 0;

	outfeed__pieces(tensor->dtype, values, count, histogram_piece, &histogram);
	for (int i = 0; i < OUTFEED_BINS && status == 0; i++) {
		struct ips_tensor_histogram *row = &rows[waiting];

		if (histogram.count[i] > 0) {
			*row = (struct ips_tensor_histogram){.keys = moment->keys,
							     .tensor_id = tensor->tensor_id,
							     .bin = i + OUTFEED_BIN_LEAST,
							     .count = histogram.count[i]};
			outfeed_histogram_range((int)row->bin, &row->low, &row->high);
			waiting++;
			bins++;
		}
		if (waiting == BIN_ROWS || (i == OUTFEED_BINS - 1 && waiting > 0)) {
			status = ips_append(recording, IPS_TABLE_tensor_histogram, rows,
					    (size_t)waiting);
			waiting = 0;
		}
	}
	outfeed__budget_correct(tensor->outfeed,
				outfeed__bytes_of_bins(bins - outfeed__usual_bins(count)));
	return outfeed__failed(tensor->outfeed, status, err);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* As outfeed__shape_text(), of what @count elements of @tensor are: a last batch may be shorter. */
static void actual_shape(char out[SHAPE_TEXT], const struct outfeed_tensor *tensor, size_t count)
{
	const size_t rest = tensor->ndim > 0 && tensor->shape[0] > 0
				    ? tensor->count / (size_t)tensor->shape[0]
				    : 0;
	int length = 0;

	if (count != tensor->count && (rest == 0 || count % rest != 0)) {
		snprintf(out, SHAPE_TEXT, "(%zu,)", count);
		return;
	}
	for (int i = 0; i < tensor->ndim; i++) {
		const int64_t size = i == 0 && count != tensor->count ? (int64_t)(count / rest)
								      : tensor->shape[i];

		length += snprintf(out + length, SHAPE_TEXT - (size_t)length, "%s%" PRId64,
				   i == 0 ? "(" : ", ", size);
	}
	snprintf(out + length, SHAPE_TEXT - (size_t)length, "%s",
		 tensor->ndim == 0   ? "()"
		 : tensor->ndim == 1 ? ",)"
				     : ")");
}

enum status outfeed__append_capture(struct outfeed_tensor *tensor, const struct ips_keys *keys,
				    const void *values, size_t count, struct err *err)
{
	const size_t bytes = count * (size_t)outfeed_dtype_bytes(tensor->dtype);
	struct ips_capture row = {.keys = *keys,
				  .tensor_id = tensor->tensor_id,
				  .dtype = outfeed_dtype_text(tensor->dtype)};
	char shape[SHAPE_TEXT];
	size_t at = 0;
	int status;

	actual_shape(shape, tensor, count);
	row.shape = shape;
	do {
		const size_t size = min(bytes - at, CAPTURE_PIECE);

		row.bytes = (int64_t)size;
		row.data = size > 0 ? (const unsigned char *)values + at : (const void *)"";
		status = ips_append_capture(tensor->outfeed->params.recording, &row);
		row.chunk++;
		at += size;
	} while (at < bytes && status == 0);
	return outfeed__failed(tensor->outfeed, status, err);
}
