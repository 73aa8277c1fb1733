/*
 * Flows under way: which link a key stands for now. Ids are used again in long traces, and tracks
 * are recorded side by side, so every arrow gets a number of its own.
 */
#include "common/mem.h"
#include "reports/import/report_import_internal.h"

/* Open addressing; linear probing with shifting back, so nothing is left of what ended. */
struct import_flows {
	struct flow_slot {
		uint64_t key, link; /* link 0: free */
		bool start;         /* begun by a start, not by a step */
	} * slots;
	size_t count, capacity;
	size_t starts; /* of them begun by a start */
	uint64_t last_link;
};

#define FIRST_CAPACITY 1024

bool report__import_flows_init(struct import *import)
{
	struct import_flows *flows = mem_calloc(1, sizeof(*flows));

	import->flows = flows;
	if (!flows)
		return false;
	flows->slots = mem_calloc(FIRST_CAPACITY, sizeof(*flows->slots));
	flows->capacity = FIRST_CAPACITY;
	return flows->slots != NULL;
}

void report__import_flows_fini(struct import *import)
{
	if (import->flows)
		mem_free(import->flows->slots);
	mem_free(import->flows);
	import->flows = NULL;
}

size_t report__import_flows_open(const struct import *import)
{
	return import->flows->starts;
}

static size_t home_of(const struct import_flows *flows, uint64_t key)
{
	return (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (flows->capacity - 1);
}

/* Where @key is, or would be. */
static size_t place_of(const struct import_flows *flows, uint64_t key)
{
	size_t at = home_of(flows, key);

	while (flows->slots[at].link != 0 && flows->slots[at].key != key)
		at = (at + 1) & (flows->capacity - 1);
	return at;
}

static bool grow(struct import_flows *flows)
{
	struct flow_slot *old = flows->slots;
	size_t capacity = flows->capacity;

	flows->slots = mem_calloc(capacity * 2, sizeof(*old));
	if (!flows->slots) {
		flows->slots = old;
		return false;
	}
	flows->capacity = capacity * 2;
	for (size_t i = 0; i < capacity; i++) {
		if (old[i].link != 0)
			flows->slots[place_of(flows, old[i].key)] = old[i];
	}
	mem_free(old);
	return true;
}

uint64_t report__import_flow_end(struct import *import, uint64_t key)
{
	struct import_flows *flows = import->flows;
	size_t hole = place_of(flows, key), mask = flows->capacity - 1;
	uint64_t link = flows->slots[hole].link;

	if (link == 0)
		return 0;
	flows->count--;
	flows->starts -= flows->slots[hole].start;
	for (size_t at = (hole + 1) & mask; flows->slots[at].link != 0; at = (at + 1) & mask) {
		size_t home = home_of(flows, flows->slots[at].key);

		/* Moves into the hole unless its home lies behind the hole. */
		if (((at - home) & mask) >= ((at - hole) & mask)) {
			flows->slots[hole] = flows->slots[at];
			hole = at;
		}
	}
	flows->slots[hole].link = 0;
	return link;
}

uint64_t report__import_flow_begin(struct import *import, uint64_t key, bool start, bool *lost)
{
	struct import_flows *flows = import->flows;
	size_t at;

	*lost = false;
	if (flows->count * 2 >= flows->capacity &&
	    (flows->count >= IMPORT_MOST_FLOWS || !grow(flows)))
		return 0;
	at = place_of(flows, key);
	flows->count += flows->slots[at].link == 0;
	*lost = flows->slots[at].link != 0 && flows->slots[at].start;
	flows->starts += start;
	flows->starts -= *lost;
	flows->slots[at] = (struct flow_slot){key, ++flows->last_link, start};
	return flows->last_link;
}
