/*
 * Statistics without a recording.
 *
 * Pure functions on the caller's data: any thread.
 */
#include <ipuscope/outfeed.h>

#include <math.h>

#include "common/status.h"
#include "outfeed/outfeed_internal.h"

static void fill_row(struct ips_tensor_stats *row, const struct outfeed_stats *stats)
{
	OUTFEED_FILL_COLUMNS(row, stats, true);
	row->inactive = row->update_ratio = (double)NAN;
	row->n_changed = IPS_NULL;
}

static struct outfeed_stats stats_of(const struct ips_tensor_stats *row)
{
	struct outfeed_stats stats = {
		.n = row->n,
		.n_nan = row->n_nan,
		.n_pos_inf = row->n_pos_inf,
		.n_neg_inf = row->n_neg_inf,
		.n_zero = row->n_zero,
		.n_neg = row->n_neg,
		.n_pos = row->n_pos,
		.min = row->min,
		.max = row->max,
		.mean = row->mean,
		.l1 = row->l1,
		.l2_squared = row->l2 * row->l2,
		.abs_min_nonzero = row->abs_min_nonzero,
		.abs_max = row->abs_max,
	};

	stats.m2 = row->std * row->std * (double)outfeed_stats_finite(&stats);
	return stats;
}

int ips_outfeed_stats(struct ips_tensor_stats *out, const void *values, size_t count,
		      enum ips_outfeed_dtype dtype)
{
	struct outfeed_stats stats;

	if ((unsigned)dtype >= OUTFEED_DTYPES || !out || (!values && count > 0))
		return ST_INVALID;
	outfeed_stats_read(&stats, (enum outfeed_dtype)dtype, values, count, NULL);
	*out = (struct ips_tensor_stats){
		.keys = IPS_KEYS_NULL, .tensor_id = IPS_NULL, .time_ns = IPS_NULL};
	fill_row(out, &stats);
	return 0;
}

void ips_outfeed_stats_merge(struct ips_tensor_stats *into, const struct ips_tensor_stats *from)
{
	struct outfeed_stats stats, more;

	if (!into || !from)
		return;
	stats = stats_of(into);
	more = stats_of(from);
	outfeed_stats_merge(&stats, &more);
	fill_row(into, &stats);
}
