/*
 * The bytes that tensors may add to the recording, and what happens when they run short.
 *
 * Each tier may spend up to a part of the budget, the dearer the smaller, so that something is left
 * for the cheaper ones when values have used up theirs. The first that finds its part spent lowers
 * all tensors of its tier, for good: one line, one instant, a row per tensor.
 *
 * Threading: any thread. Bytes are counted in one atomic; lowering is under the recorder's lock.
 */
#include <math.h>
#include <stdio.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "outfeed/outfeed_internal.h"

/* What rows take in the database, bytes, its share of contexts and of pages' free space counted:
 * measured, and held to by test_outfeed_budget.c. */
#define STATS_ROW   115.0
#define COUNTS_ROW  45.0
#define BIN_ROW     33.0
#define CAPTURE_ROW 64.0
#define PAGES       1.01 /* what values take more in pages than in memory */

static const struct {
	enum outfeed_tier below; /* what it becomes where its part is spent */
	double part;             /* of the budget */
} tiers[OUTFEED_TIERS] = {
	[OUTFEED_OFF] = {OUTFEED_OFF, 1},           [OUTFEED_HEALTH] = {OUTFEED_HEALTH, 1},
	[OUTFEED_COUNTS] = {OUTFEED_HEALTH, 0.995}, [OUTFEED_STATS] = {OUTFEED_COUNTS, 0.97},
	[OUTFEED_HISTOGRAM] = {OUTFEED_STATS, 0.9}, [OUTFEED_LAST_N] = {OUTFEED_STATS, 0.8},
	[OUTFEED_FULL] = {OUTFEED_HISTOGRAM, 0.8},
};

double outfeed__bytes_of_bins(int bins)
{
	return BIN_ROW * bins;
}

/* Of @count values of both signs about 0, where the least is about a @count-th of the usual. */
int outfeed__usual_bins(size_t count)
{
	int exponent;
	const double mantissa = frexp((double)count, &exponent);

	/* 2 (log2(count) + 2), cut to whole bins */
	return count == 0 ? 0 : 2 * (exponent - 1) + (mantissa >= M_SQRT1_2) + 4;
}

double outfeed_bytes(const struct outfeed_choice *choice, size_t count, enum outfeed_dtype dtype)
{
	const double values = CAPTURE_ROW + PAGES * (double)count * outfeed_dtype_bytes(dtype);

	switch (choice->tier) {
	case OUTFEED_COUNTS:
		return COUNTS_ROW;
	case OUTFEED_STATS:
	case OUTFEED_LAST_N:
		return STATS_ROW;
	case OUTFEED_HISTOGRAM:
		return STATS_ROW + outfeed__bytes_of_bins(outfeed__usual_bins(count));
	case OUTFEED_FULL:
		return STATS_ROW + values;
	default:
		return 0;
	}
}

double outfeed_memory(const struct outfeed_choice *choice, enum outfeed_kind kind, size_t count,
		      enum outfeed_dtype dtype, int replicas)
{
	const double frame = sizeof(struct outfeed_frame) +
			     (choice->tier >= OUTFEED_COUNTS ? sizeof(struct outfeed_stats) : 0);
	double bytes = sizeof(struct outfeed_replica) + OUTFEED_FRAMES * frame;

	if (choice->tier == OUTFEED_OFF)
		return 0;
	if (choice->tier == OUTFEED_LAST_N)
		bytes += (double)choice->last * ((double)sizeof(struct outfeed_entry) +
						 (double)count * outfeed_dtype_bytes(dtype));
	if (choice->tier >= OUTFEED_STATS &&
	    (kind == OUTFEED_WEIGHT || kind == OUTFEED_OPTIMIZER_STATE))
		bytes += (double)count * sizeof(float);
	return bytes * replicas;
}

/* ---- lowering -------------------------------------------------------------------------------- */

static void tell(struct outfeed *outfeed, enum outfeed_tier tier, size_t lowered, const char *why,
		 const struct outfeed_moment *moment)
{
	const char *from = outfeed_tier_text(tier), *to = outfeed_tier_text(tiers[tier].below);
	struct outfeed_line line = {.length = 0};
	char spent[FMT_SIZE], name[64];

	fmt_bytes(spent, (uint64_t)atomic_load_explicit(&outfeed->spent, memory_order_relaxed));
	outfeed__line_add(&line, "[OUTFEED] %s: %s are used, so %zu tensor%s of tier %s %s from ",
			  why, spent, lowered, lowered == 1 ? "" : "s", from,
			  lowered == 1 ? "is" : "are");
	outfeed__line_add(&line, "now on kept as %s", to);
	outfeed__line_where(&line, NULL, NULL, &moment->keys);
	snprintf(name, sizeof(name), "%s lowered to %s", from, to);
	outfeed__tell(outfeed, ips_site_intern("outfeed", name, NULL), &moment->keys, &line);
}

/* All tensors of @tier are lowered, once. A failure of the recording shows with the next row. */
static void lower(struct outfeed *outfeed, enum outfeed_tier tier,
		  const struct outfeed_moment *moment)
{
	struct outfeed_line why = {.length = 0};
	char budget[FMT_SIZE];
	size_t lowered = 0;

	fmt_bytes(budget, (uint64_t)outfeed->params.budget);
	outfeed__line_add(&why, "budget of %s", budget);
	pthread_mutex_lock(&outfeed->lock);
	for (size_t i = 0; i < outfeed->count; i++) {
		struct outfeed_tensor *tensor = outfeed->tensors[i];

		if (outfeed__tier(tensor) != tier)
			continue;
		atomic_store_explicit(&tensor->tier, (int)tiers[tier].below, memory_order_relaxed);
		outfeed__append_tier(tensor, moment, why.text, NULL);
		lowered++;
	}
	if (lowered > 0)
		tell(outfeed, tier, lowered, why.text, moment);
	pthread_mutex_unlock(&outfeed->lock);
}

/* What tier `health` looks at goes on without rows. */
static void tell_spent_up(struct outfeed *outfeed, const struct outfeed_moment *moment)
{
	struct outfeed_line line = {.length = 0};
	char budget[FMT_SIZE];

	fmt_bytes(budget, (uint64_t)outfeed->params.budget);
	outfeed__line_add(&line,
			  "[OUTFEED] budget of %s: it is used up, so bad values have no more rows "
			  "of tensor_stats; rules and the first bad number go on",
			  budget);
	outfeed__line_where(&line, NULL, NULL, &moment->keys);
	pthread_mutex_lock(&outfeed->lock);
	outfeed__tell(outfeed, ips_site_intern("outfeed", "budget used up", NULL), &moment->keys,
		      &line);
	pthread_mutex_unlock(&outfeed->lock);
}

/* ---- spending -------------------------------------------------------------------------------- */

void outfeed__budget_correct(struct outfeed *outfeed, double bytes)
{
	atomic_fetch_add_explicit(&outfeed->spent, (int64_t)bytes, memory_order_relaxed);
}

static bool spend(struct outfeed *outfeed, enum outfeed_tier tier, double bytes)
{
	const int64_t more = (int64_t)ceil(bytes), budget = outfeed->params.budget;
	int64_t spent;

	if (budget == 0 || budget == INT64_MAX || !outfeed->params.recording)
		return true;
	/* Never more than there is, not for a moment: others would be lowered for it. */
	spent = atomic_load_explicit(&outfeed->spent, memory_order_relaxed);
	do {
		if ((double)spent + (double)more > tiers[tier].part * (double)budget)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&outfeed->spent, &spent, spent + more, memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool outfeed__spend(struct outfeed_tensor *tensor, enum outfeed_tier tier,
		    const struct outfeed_moment *moment, double bytes)
{
	if (spend(tensor->outfeed, tier, bytes))
		return true;
	if (tier != tiers[tier].below)
		lower(tensor->outfeed, tier, moment);
	else if (!atomic_exchange(&tensor->outfeed->spent_up, true))
		tell_spent_up(tensor->outfeed, moment);
	return false;
}

enum outfeed_tier outfeed__afford(struct outfeed_tensor *tensor, enum outfeed_tier tier,
				  const struct outfeed_moment *moment, size_t count)
{
	struct outfeed_choice choice = tensor->choice;

	for (;;) {
		choice.tier = tier;
		if (tier <= OUTFEED_HEALTH ||
		    outfeed__spend(tensor, tier, moment,
				   outfeed_bytes(&choice, count, tensor->dtype)))
			return tier;
		tier = tiers[tier].below;
	}
}
