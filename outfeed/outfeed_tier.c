/*
 * The words for tiers, kinds and dtypes.
 *
 * Constant data: any thread.
 */
#include "outfeed/outfeed_tier.h"

#include <string.h>

#include "common/mem.h"

static const char *const tier_texts[] = {
	[OUTFEED_OFF] = "off",     [OUTFEED_HEALTH] = "health", [OUTFEED_COUNTS] = "counts",
	[OUTFEED_STATS] = "stats", [OUTFEED_LAST_N] = "last",   [OUTFEED_HISTOGRAM] = "histogram",
	[OUTFEED_FULL] = "full",
};
_Static_assert(ARRAY_LEN(tier_texts) == OUTFEED_TIERS, "table out of step");

static const char *const kind_texts[] = {
	[OUTFEED_ACTIVATION] = "activation",
	[OUTFEED_GRADIENT] = "gradient",
	[OUTFEED_WEIGHT] = "weight",
	[OUTFEED_OPTIMIZER_STATE] = "optimizer_state",
};
_Static_assert(ARRAY_LEN(kind_texts) == OUTFEED_KINDS, "table out of step");

static const struct {
	const char *text;
	int bytes;
} dtypes[] = {
	[OUTFEED_FLOAT32] = {"float32", 4},
	[OUTFEED_FLOAT16] = {"float16", 2},
};
_Static_assert(ARRAY_LEN(dtypes) == OUTFEED_DTYPES, "table out of step");

static const char *const activity_texts[] = {
	[OUTFEED_NO_ACTIVITY] = NULL,
	[OUTFEED_RELU] = "relu",
	[OUTFEED_TANH] = "tanh",
	[OUTFEED_SIGMOID] = "sigmoid",
};
_Static_assert(ARRAY_LEN(activity_texts) == OUTFEED_ACTIVITIES, "table out of step");

/* Index of @text, or -1. */
static int index_of(const char *const *texts, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++) {
		if (texts[i] && strcmp(texts[i], text) == 0)
			return (int)i;
	}
	return -1;
}

const char *outfeed_tier_text(enum outfeed_tier tier)
{
	return tier_texts[tier];
}

const char *outfeed_kind_text(enum outfeed_kind kind)
{
	return kind_texts[kind];
}

const char *outfeed_dtype_text(enum outfeed_dtype dtype)
{
	return dtypes[dtype].text;
}

int outfeed_dtype_bytes(enum outfeed_dtype dtype)
{
	return dtypes[dtype].bytes;
}

const char *outfeed_activity_text(enum outfeed_activity activity)
{
	return activity_texts[activity];
}

bool outfeed_activity_of(enum outfeed_activity *out, const char *text)
{
	int index = index_of(activity_texts, ARRAY_LEN(activity_texts), text);

	if (index < 0)
		return false;
	*out = (enum outfeed_activity)index;
	return true;
}

bool outfeed_kind_of(enum outfeed_kind *out, const char *text)
{
	int index = index_of(kind_texts, ARRAY_LEN(kind_texts), text);

	if (index < 0)
		return false;
	*out = (enum outfeed_kind)index;
	return true;
}

bool outfeed_tier_of(enum outfeed_tier *out, const char *text)
{
	int index = index_of(tier_texts, ARRAY_LEN(tier_texts), text);

	if (index < 0)
		return false;
	*out = (enum outfeed_tier)index;
	return true;
}
