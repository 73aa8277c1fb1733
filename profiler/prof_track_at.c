/*
 * Tracks whose events come with their times: what was measured elsewhere.
 *
 * On the producing thread. See prof_track.c for the ring; these wait for room in it.
 */
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_internal.h"

static void put(struct ips_track *track, struct ips_site *site, uint64_t kind, uint64_t value,
		int64_t time_ns)
{
	struct ips_slot *slot;

	if (!track || !site)
		return;
	if (time_ns < 0) {
		prof__track_drop(track);
		return;
	}
	if (!prof__track_wait(track, 1))
		return;
	slot = &track->slots[track->head & track->mask];
	slot->site = site;
	slot->kind = kind | PROF_AT << PROF_KIND_BITS;
	slot->value = value;
	slot->ticks = (uint64_t)time_ns;
	track->head++;
	__atomic_store_n(&track->published, track->head, __ATOMIC_RELEASE);
}

void ips_instant_at(struct ips_track *track, struct ips_site *site, int64_t time_ns)
{
	put(track, site, IPS_EVENT_INSTANT, 0, time_ns);
}

void ips_counter_at(struct ips_track *track, struct ips_site *site, int64_t time_ns, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put(track, site, IPS_EVENT_COUNTER, bits, time_ns);
}

void ips_flow_out_at(struct ips_track *track, struct ips_site *site, uint64_t id, int64_t time_ns)
{
	put(track, site, IPS_EVENT_FLOW_OUT, id, time_ns);
}

void ips_flow_in_at(struct ips_track *track, struct ips_site *site, uint64_t id, int64_t time_ns)
{
	put(track, site, IPS_EVENT_FLOW_IN, id, time_ns);
}

void ips_span_arg_long_text(struct ips_track *track, const char *static_name, const char *value)
{
	struct ips_slot *slot;
	char *copy;

	if (!track || !static_name)
		return;
	if (!value || strlen(value) <= PROF_ARG_TEXT) {
		ips_span_arg_text(track, static_name, value);
		return;
	}
	copy = mem_strdup(value);
	if (!copy)
		prof__track_drop(track);
	if (!copy || !prof__track_has_room(track, 1)) {
		mem_free(copy);
		return;
	}
	slot = &track->slots[track->head & track->mask];
	memcpy(&slot->site, &static_name, sizeof(static_name));
	slot->kind = IPS_EVENT_ARGUMENT | PROF_ARG_LONG_TEXT << PROF_KIND_BITS;
	slot->value = (uint64_t)(uintptr_t)copy;
	slot->ticks = 0;
	track->head++;
	__atomic_store_n(&track->published, track->head, __ATOMIC_RELEASE);
}
