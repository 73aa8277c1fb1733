/*
 * Substring filters of outfeed keys.
 */
#include "outfeed/outfeed_filter.h"

#include <stddef.h>
#include <string.h>

bool outfeed_filter_passes(const char *const *filters, int count, const char *key)
{
	if (!filters)
		return true;
	for (int i = 0; i < count; i++) {
		if (strstr(key, filters[i]))
			return true;
	}
	return false;
}
