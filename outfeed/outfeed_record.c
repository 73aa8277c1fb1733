/*
 * One recorded value: the pass that its tier asks for, its row, the rules.
 *
 * Threading: a tensor and replica belong to the calling thread.
 */
#include <math.h>

#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_scan.h"

/* What a look has found. */
struct look {
	enum outfeed_tier tier;
	struct outfeed_stats stats; /* as far as the tier goes */
	uint32_t abs_max;           /* of tier `health` */
};

bool outfeed_due(const struct outfeed_tensor *tensor, const struct ips_keys *keys)
{
	int64_t count;

	if (tensor == NULL || tensor->choice.tier == OUTFEED_OFF)
		return false;
	if (tensor->choice.every == 1)
		return true;
	count = keys->step != IPS_NULL ? keys->step : keys->weight_update;
	return count == IPS_NULL || count % tensor->choice.every == 0;
}

/* ---- looking ------------------------------------------------------------------------------------
 */

static void take(struct look *look, const struct outfeed_moment *moment, const float *values,
		 size_t count)
{
	outfeed_stats_init(&look->stats);
	if (look->tier >= OUTFEED_STATS) {
		outfeed_stats_add(&look->stats, values, count);
	} else if (look->tier == OUTFEED_COUNTS) {
		outfeed_scan_counts(&look->stats, values, count);
	} else if (look->tier == OUTFEED_HEALTH) {
		look->stats.n = (int64_t)count;
		look->abs_max = moment->abs_max_known ? moment->abs_max
						      : outfeed_scan_abs_max(values, count);
	}
}

/* ---- its row ------------------------------------------------------------------------------------
 */

static void fill_row(struct ips_tensor_stats *row, const struct outfeed_stats *stats)
{
	row->n = stats->n;
	row->n_nan = stats->n_nan;
	row->n_pos_inf = stats->n_pos_inf;
	row->n_neg_inf = stats->n_neg_inf;
	row->n_zero = stats->n_zero;
	row->n_neg = stats->n_neg;
	row->n_pos = stats->n_pos;
	row->min = stats->min;
	row->max = stats->max;
	row->mean = stats->mean;
	row->std = outfeed_stats_std(stats);
	row->l1 = stats->l1;
	row->l2 = outfeed_stats_l2(stats);
	row->abs_min_nonzero = stats->abs_min_nonzero;
	row->abs_max = stats->abs_max;
	row->inactive = row->update_ratio = (double)NAN;
	row->n_changed = IPS_NULL;
}

static enum status append_row(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			      const struct look *look, struct err *err)
{
	struct ips_tensor_stats row = {
		.keys = moment->keys, .time_ns = moment->time_ns, .tensor_id = tensor->tensor_id};
	int status;

	if (tensor->outfeed->params.recording == NULL)
		return ST_OK;
	fill_row(&row, &look->stats);
	status = ips_append_tensor_stats(tensor->outfeed->params.recording, &row);
	return outfeed__failed(tensor->outfeed, status, err);
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

enum status outfeed_record(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			   const void *values, size_t count, struct outfeed_stats *row,
			   struct err *err)
{
	const bool due = outfeed_due(tensor, &moment->keys);
	struct look look;

	if (tensor == NULL || (!due && row == NULL))
		return ST_OK;
	look.tier = row != NULL ? OUTFEED_STATS : tensor->choice.tier;
	take(&look, moment, values, count);
	if (row != NULL)
		*row = look.stats;
	if (!due)
		return ST_OK;
	return tensor->choice.tier >= OUTFEED_COUNTS ? append_row(tensor, moment, &look, err)
						     : ST_OK;
}
