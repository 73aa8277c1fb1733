/*
 * Which keys a queue takes: MaybeOutfeedQueue's rule.
 *
 * Pure: any thread.
 */
#ifndef OUTFEED_FILTER_H
#define OUTFEED_FILTER_H

#include <stdbool.h>

/* Does @key contain any of the @count @filters (case-sensitive)? NULL filters: every key passes;
 * none of them (@count 0): no key; an empty filter: every key. */
bool outfeed_filter_passes(const char *const *filters, int count, const char *key);

#endif /* OUTFEED_FILTER_H */
