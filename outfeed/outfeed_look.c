/*
 * Looking through a value: the passes over memory that a tier asks for.
 *
 * Halves are widened piece by piece. Threading: a tensor and replica belong to the calling thread.
 */
#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "outfeed/outfeed_change.h"
#include "outfeed/outfeed_internal.h"
#include "outfeed/outfeed_neurons.h"
#include "outfeed/outfeed_scan.h"

#define PIECE 4096

void outfeed__pieces(enum outfeed_dtype dtype, const void *values, size_t count,
		     outfeed_piece piece, void *user)
{
	const uint16_t *halves = values;
	float wide[PIECE];

	if (dtype == OUTFEED_FLOAT32) {
		piece(user, values, 0, count);
		return;
	}
	for (size_t at = 0; at < count; at += PIECE) {
		size_t size = min(count - at, PIECE);

		outfeed_scan_widen(wide, halves + at, size);
		piece(user, wide, at, size);
	}
}

/* ---- statistics ------------------------------------------------------------------------------ */

void outfeed__stats(struct outfeed_stats *out, enum outfeed_dtype dtype, const void *values,
		    size_t count, struct pool *pool)
{
	outfeed_stats_init(out);
	if (dtype == OUTFEED_FLOAT32)
		outfeed_stats_add_pool(out, values, count, pool);
	else
		outfeed_stats_add_half(out, values, count);
}

static void counts_piece(void *user, const float *values, size_t at, size_t count)
{
	struct outfeed_stats counts;

	(void)at;
	outfeed_scan_counts(&counts, values, count);
	outfeed_stats_merge(user, &counts);
}

static void abs_max_piece(void *user, const float *values, size_t at, size_t count)
{
	uint32_t *most = user;
	const uint32_t bits = outfeed_scan_abs_max(values, count);

	(void)at;
	*most = bits > *most ? bits : *most;
}

static void take(struct outfeed_look *look, const struct outfeed_tensor *tensor,
		 const struct outfeed_moment *moment, const void *values, size_t count)
{
	outfeed_stats_init(&look->stats);
	look->abs_max = 0;
	if (look->known >= OUTFEED_STATS) {
		outfeed__stats(&look->stats, tensor->dtype, values, count,
			       tensor->outfeed->params.pool);
		return;
	}
	look->stats.n = (int64_t)count;
	if (moment->abs_max_known)
		look->abs_max = moment->abs_max;
	else
		outfeed__pieces(tensor->dtype, values, count, abs_max_piece, &look->abs_max);
	if (look->known != OUTFEED_COUNTS)
		return;
	outfeed_stats_init(&look->stats);
	outfeed__pieces(tensor->dtype, values, count, counts_piece, &look->stats);
	if (count > 0 && look->abs_max < OUTFEED_NONFINITE_BITS)
		look->stats.abs_max = outfeed__float(look->abs_max);
}

/* ---- neurons --------------------------------------------------------------------------------- */

struct neurons {
	uint32_t *active;
	size_t count;
	enum outfeed_activity activity;
};

static void neurons_piece(void *user, const float *values, size_t at, size_t count)
{
	const struct neurons *neurons = user;

	while (count > 0) {
		const size_t column = at % neurons->count, left = neurons->count - column;
		const bool rows = column == 0 && count >= neurons->count;
		const size_t cases = rows ? count / neurons->count : 1;
		const size_t width = rows ? neurons->count : min(left, count);

		outfeed_neurons_add(neurons->active + column, neurons->activity, values, cases,
				    width);
		values += cases * width;
		at += cases * width;
		count -= cases * width;
	}
}

static double inactive(const struct outfeed_tensor *tensor, const struct outfeed_replica *replica,
		       const void *values, size_t count)
{
	struct neurons neurons = {replica->active, tensor->neurons, tensor->activity};

	if (!replica->active || count % tensor->neurons != 0)
		return (double)NAN;
	memset(replica->active, 0, tensor->neurons * sizeof(*replica->active));
	outfeed__pieces(tensor->dtype, values, count, neurons_piece, &neurons);
	return outfeed_neurons_inactive(replica->active, count / tensor->neurons, tensor->neurons);
}

/* ---- changes --------------------------------------------------------------------------------- */

struct change {
	float *before;
	struct outfeed_change sums;
};

static void change_piece(void *user, const float *values, size_t at, size_t count)
{
	struct change *change = user;
	struct outfeed_change piece;

	outfeed_change_take(&piece, change->before + at, values, count);
	change->sums.n_changed += piece.n_changed;
	change->sums.sum_change += piece.sum_change;
	change->sums.sum_before += piece.sum_before;
}

static void copy_piece(void *user, const float *values, size_t at, size_t count)
{
	float *before = user;

	if (count > 0)
		memcpy(before + at, values, count * sizeof(*values));
}

/* What happened since the last look: with `every`, several updates. */
static void look_changes(struct outfeed_look *look, const struct outfeed_tensor *tensor,
			 struct outfeed_replica *replica, const void *values, size_t count)
{
	struct change change = {.before = replica->before};

	if (!replica->before || count != tensor->count)
		return;
	if (!replica->has_before) {
		outfeed__pieces(tensor->dtype, values, count, copy_piece, replica->before);
		replica->has_before = true;
		return;
	}
	outfeed__pieces(tensor->dtype, values, count, change_piece, &change);
	look->n_changed = change.sums.n_changed;
	look->update_ratio = outfeed_change_ratio(&change.sums, count);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void outfeed__look(struct outfeed_look *look, const struct outfeed_tensor *tensor,
		   struct outfeed_replica *replica, enum outfeed_tier tier, bool whole,
		   const struct outfeed_moment *moment, const void *values, size_t count)
{
	look->known = whole || tier > OUTFEED_STATS ? OUTFEED_STATS : tier;
	look->inactive = look->update_ratio = (double)NAN;
	look->n_changed = IPS_NULL;
	take(look, tensor, moment, values, count);
	/* A NaN is not active, but neither is it what a dead or flat neuron gives. */
	if (tier >= OUTFEED_COUNTS && look->stats.n_nan == 0)
		look->inactive = inactive(tensor, replica, values, count);
	if (tier >= OUTFEED_STATS)
		look_changes(look, tensor, replica, values, count);
}

static int64_t count_bad(const struct outfeed_stats *stats)
{
	return stats->n_nan + stats->n_pos_inf + stats->n_neg_inf;
}

bool outfeed__look_bad(const struct outfeed_look *look)
{
	return look->known == OUTFEED_HEALTH ? look->abs_max >= OUTFEED_NONFINITE_BITS
					     : count_bad(&look->stats) > 0;
}

static uint32_t greatest_of(const struct outfeed_stats *stats)
{
	const float value = stats->n_nan > 0        ? NAN
			    : count_bad(stats) > 0  ? INFINITY
			    : isnan(stats->abs_max) ? 0
						    : (float)stats->abs_max;
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

void outfeed__look_narrow(struct outfeed_look *look, enum outfeed_tier tier)
{
	const struct outfeed_stats all = look->stats;

	if (tier >= OUTFEED_STATS || look->known <= tier)
		return;
	outfeed_stats_init(&look->stats);
	look->stats.n = all.n;
	if (tier == OUTFEED_HEALTH) {
		look->abs_max = greatest_of(&all);
	} else {
		look->stats.n_nan = all.n_nan;
		look->stats.n_pos_inf = all.n_pos_inf;
		look->stats.n_neg_inf = all.n_neg_inf;
		look->stats.n_zero = all.n_zero;
		look->stats.n_neg = all.n_neg;
		look->stats.n_pos = all.n_pos;
		look->stats.abs_max = count_bad(&all) > 0 ? (double)NAN : all.abs_max;
	}
	look->known = tier;
}
