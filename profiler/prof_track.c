/*
 * The producing side of tracks.
 *
 * A ring holds `mask + 1` slots; `head`, `published` and `consumed` count slots for ever. Free
 * slots are those before consumed + capacity. Each open span keeps one of them for its end, so head
 * + open + n <= consumed + capacity is the condition for an event of n slots (n = 2 for a begin:
 * itself and the end to come). `limit` is at most consumed + capacity as last seen; it is often
 * less, so that ips_track_make_room() is visited now and then and can wake the writer in good time,
 * and it is 0 while keys wait for room, because nothing may be recorded before them. In a recording
 * that is alone it is at most where the next turn is to be set, which does not depend on the
 * writer.
 */
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_internal.h"

static struct prof_lane *lane_of(struct ips_track *track)
{
	return (struct prof_lane *)track; /* the ring is its first member */
}

void prof__track_drop(struct ips_track *track)
{
	__atomic_store_n(&track->dropped, track->dropped + 1, __ATOMIC_RELAXED);
}

static struct ips_slot *slot_after(struct ips_track *track, uint64_t slots)
{
	return &track->slots[(track->head + slots) & track->mask];
}

static void publish(struct ips_track *track, uint64_t slots)
{
	track->head += slots;
	__atomic_store_n(&track->published, track->head, __ATOMIC_RELEASE);
}

/* Copy @size bytes into the slots after the event's first. */
static void put_bytes(struct ips_track *track, const void *bytes, size_t size)
{
	const char *from = bytes;

	for (uint64_t i = 1; size > 0; i++) {
		size_t piece = min(size, sizeof(struct ips_slot));

		memcpy(slot_after(track, i), from, piece);
		from += piece;
		size -= piece;
	}
}

/* Waiting keys go into the ring first. Whether there is room for them and @slots more. */
static bool take_room(struct ips_track *track, uint64_t slots)
{
	struct prof_lane *lane = lane_of(track);
	uint64_t capacity = track->mask + 1, full, soft;
	uint64_t keys = lane->keys_wait ? 1 + PROF_KEYS_SLOTS : 0;

	full = __atomic_load_n(&track->consumed, __ATOMIC_ACQUIRE) + capacity;
	if (lane->recording->params.alone) {
		if (track->head + track->open + keys + slots > lane->handed + capacity / 2)
			prof__turn_set(lane);
	} else if (full - track->head <= capacity / 2) {
		prof__wake(lane->recording);
	}
	if (track->head + track->open + keys + slots > full)
		return false;
	if (keys > 0) {
		slot_after(track, 0)->kind = IPS_EVENT_KEYS;
		slot_after(track, 0)->ticks = 0;
		put_bytes(track, &lane->keys, sizeof(lane->keys));
		publish(track, keys);
		lane->keys_wait = false;
	}
	soft = lane->recording->params.alone ? lane->handed + capacity / 2
					     : track->head + track->open + slots + capacity / 4;
	track->limit = min(soft, full);
	return true;
}

bool prof__track_wait(struct ips_track *track, uint64_t slots)
{
	const struct timespec pause = {0, 100000};
	struct ips_recording *recording = lane_of(track)->recording;

	if (track->skipping != 0) {
		prof__track_drop(track);
		return false;
	}
	while (track->head + track->open + slots > track->limit && !take_room(track, slots)) {
		/* A ring full of reserves alone would never drain. */
		if (track->head == __atomic_load_n(&track->consumed, __ATOMIC_ACQUIRE) ||
		    prof__is_child(recording)) {
			prof__track_drop(track);
			return false;
		}
		prof__wake(recording);
		nanosleep(&pause, NULL);
	}
	return true;
}

int ips_track_make_room(struct ips_track *track, uint64_t slots)
{
	if (lane_of(track)->waits)
		return prof__track_wait(track, slots);
	if (track->skipping != 0 || !take_room(track, slots)) {
		prof__track_drop(track);
		return 0;
	}
	return 1;
}

/* Room for an event of @slots slots that keeps none in reserve. */
bool prof__track_has_room(struct ips_track *track, uint64_t slots)
{
	if (track->skipping == 0 && track->head + track->open + slots <= track->limit)
		return true;
	return ips_track_make_room(track, slots) != 0;
}

static bool same_keys(const struct ips_keys *a, const struct ips_keys *b)
{
	return a->epoch == b->epoch && a->execution == b->execution &&
	       a->weight_update == b->weight_update && a->step == b->step &&
	       a->microbatch == b->microbatch && a->replica == b->replica && a->ipu == b->ipu &&
	       a->stage == b->stage && a->mode == b->mode && a->phase == b->phase;
}

void ips_track_set_keys(struct ips_track *track, const struct ips_keys *keys)
{
	static const struct ips_keys none = IPS_KEYS_NULL;
	struct prof_lane *lane = lane_of(track);

	if (!track)
		return;
	keys = !keys ? &none : keys;
	if (same_keys(&lane->keys, keys))
		return;
	lane->keys = *keys;
	lane->keys_wait = true;
	if (track->skipping != 0 || !take_room(track, 0))
		track->limit = 0;
}

static void put_event(struct ips_track *track, struct ips_site *site, uint64_t kind, uint64_t value)
{
	struct ips_slot *slot = slot_after(track, 0);

	slot->site = site;
	slot->kind = kind;
	slot->value = value;
	slot->ticks = ips_ticks();
	publish(track, 1);
}

void ips_instant(struct ips_track *track, struct ips_site *site)
{
	if (track && site && prof__track_has_room(track, 1))
		put_event(track, site, IPS_EVENT_INSTANT, 0);
}

void ips_counter(struct ips_track *track, struct ips_site *site, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (track && site && prof__track_has_room(track, 1))
		put_event(track, site, IPS_EVENT_COUNTER, bits);
}

void ips_flow_out(struct ips_track *track, struct ips_site *site, uint64_t id)
{
	if (track && site && prof__track_has_room(track, 1))
		put_event(track, site, IPS_EVENT_FLOW_OUT, id);
}

void ips_flow_in(struct ips_track *track, struct ips_site *site, uint64_t id)
{
	if (track && site && prof__track_has_room(track, 1))
		put_event(track, site, IPS_EVENT_FLOW_IN, id);
}

/* An argument's name travels where other events have their call site. */
static void put_argument(struct ips_track *track, const char *name, uint64_t type, uint64_t bits,
			 uint64_t more)
{
	struct ips_slot *slot = slot_after(track, 0);

	memcpy(&slot->site, &name, sizeof(name));
	slot->kind = IPS_EVENT_ARGUMENT | type << PROF_KIND_BITS;
	slot->value = bits;
	slot->ticks = 0;
	publish(track, 1 + more);
}

void ips_span_arg_int(struct ips_track *track, const char *static_name, int64_t value)
{
	if (track && static_name && prof__track_has_room(track, 1))
		put_argument(track, static_name, PROF_ARG_INT, (uint64_t)value, 0);
}

void ips_span_arg_real(struct ips_track *track, const char *static_name, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (track && static_name && prof__track_has_room(track, 1))
		put_argument(track, static_name, PROF_ARG_REAL, bits, 0);
}

void ips_span_arg_text(struct ips_track *track, const char *static_name, const char *value)
{
	char text[PROF_ARG_TEXT + 1] = {0};

	if (!track || !static_name || !prof__track_has_room(track, 1 + PROF_TEXT_SLOTS))
		return;
	if (value)
		str_copy(text, sizeof(text), value);
	put_bytes(track, text, PROF_ARG_TEXT);
	/* bits: 1 where there is a text at all */
	put_argument(track, static_name, PROF_ARG_TEXT_TYPE, value != NULL, PROF_TEXT_SLOTS);
}

void ips_span_at(struct ips_track *track, struct ips_site *site, int64_t start_ns, int64_t dur_ns)
{
	struct ips_slot *slot;

	if (!track || !site)
		return;
	if (start_ns < 0 || dur_ns < 0 || dur_ns > INT64_MAX - start_ns) {
		prof__track_drop(track);
		return;
	}
	if (!prof__track_wait(track, 1))
		return;
	slot = slot_after(track, 0);
	slot->site = site;
	slot->kind = IPS_EVENT_AT;
	slot->ticks = (uint64_t)start_ns;
	slot->value = (uint64_t)dur_ns;
	publish(track, 1);
}
