/*
 * Flows under way: which link a key stands for now. Ids are used again in long traces, and tracks
 * are recorded side by side, so every arrow gets a number of its own.
 */
#include "common/map.h"
#include "common/mem.h"
#include "reports/import/report_import_internal.h"

/* The key is the hash, and what is known of it the item: its link, and whether a start began it. */
struct import_flows {
	struct map map;
	size_t starts; /* of them begun by a start */
	uint64_t last_link;
};

#define FLOW_ITEM(link, start) ((size_t)(link) << 1 | (start))

bool report__import_flows_init(struct import *import)
{
	import->flows = mem_calloc(1, sizeof(*import->flows));
	return import->flows != NULL;
}

void report__import_flows_fini(struct import *import)
{
	if (import->flows)
		map_fini(&import->flows->map);
	mem_free(import->flows);
	import->flows = NULL;
}

size_t report__import_flows_open(const struct import *import)
{
	return import->flows->starts;
}

uint64_t report__import_flow_end(struct import *import, uint64_t key)
{
	struct import_flows *flows = import->flows;
	size_t item;

	MAP_FIND(item, &flows->map, key, true);
	if (item == MAP_NONE)
		return 0;
	map_remove(&flows->map, key, item);
	flows->starts -= item & 1;
	return item >> 1;
}

uint64_t report__import_flow_begin(struct import *import, uint64_t key, bool start, bool *lost)
{
	struct import_flows *flows = import->flows;
	size_t item;

	*lost = false;
	MAP_FIND(item, &flows->map, key, true);
	if (item == MAP_NONE && flows->map.count >= IMPORT_MOST_FLOWS)
		return 0;
	if (item != MAP_NONE)
		map_remove(&flows->map, key, item);
	if (map_add(&flows->map, key, FLOW_ITEM(flows->last_link + 1, start)) != 0)
		return 0;
	*lost = item != MAP_NONE && (item & 1);
	flows->starts += start;
	flows->starts -= *lost;
	return ++flows->last_link;
}
