/*
 * The producing side of tracks. First, what a producer needs of the recording: whether it belongs
 * to this process, and waking its writer.
 *
 * A ring holds `mask + 1` slots; `head`, `published` and `consumed` count slots from the start and
 * never wrap. Free slots are those before consumed + capacity. Each open span reserves one of them
 * for its end, so an event of n slots fits if head + open + n <= consumed + capacity (n = 2 for a
 * begin: itself and its end). `limit` is at most the last known consumed + capacity. It is often
 * less, so that ips_track_make_room() is called now and then and can wake the writer in time. It is
 * 0 while keys wait for room, because no event may be recorded before them. If params.alone is set,
 * it is at most the position of the next turn, which does not depend on the writer.
 *
 * Turns: in a recording that is all the program does, rings are drained half by half, in the order
 * in which the program filled the halves. The same events then give the same rows, independent of
 * thread scheduling. ips_recording.lock guards the turns.
 */
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_process.h"

#define MEMORY_NS (200 * UINT64_C(1000000)) /* between two samples of the process's memory */

/* ---- the recording --------------------------------------------------------------------------- */

static unsigned generation; /* number of forks that led to this process */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
	__atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

void prof__claim(struct ips_recording *recording)
{
	pthread_once(&fork_once, watch_forks);
	recording->generation = __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

bool prof__is_child(const struct ips_recording *recording)
{
	return recording->generation != __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

void prof__wake(void *user)
{
	struct ips_recording *recording = user;

	if (__atomic_exchange_n(&recording->nudged, 1, __ATOMIC_ACQ_REL) == 0)
		sem_post(&recording->wake);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool push_turn(struct ips_recording *recording, struct prof_turn turn)
{
	bool room;

	pthread_mutex_lock(&recording->lock);
	room = recording->turns_set - recording->turns_taken < PROF_TURNS;
	if (room)
		recording->turns[recording->turns_set++ % PROF_TURNS] = turn;
	pthread_mutex_unlock(&recording->lock);
	return room;
}

/* On the producer's thread: queue what @lane has published as the next turn. Blocks if the turns
 * are full. */
static void end_turn(struct prof_lane *lane)
{
	const struct timespec pause = {0, 100000};
	const struct prof_turn turn = {lane, lane->ring.head};

	if (turn.end == lane->handed)
		return;
	lane->handed = turn.end;
	while (!push_turn(lane->recording, turn) && !prof__is_child(lane->recording)) {
		prof__wake(lane->recording);
		nanosleep(&pause, NULL);
	}
	prof__wake(lane->recording);
}

bool prof__turn_pop(struct ips_recording *recording, struct prof_turn *out)
{
	bool any;

	pthread_mutex_lock(&recording->lock);
	any = recording->turns_taken != recording->turns_set;
	if (any)
		*out = recording->turns[recording->turns_taken++ % PROF_TURNS];
	pthread_mutex_unlock(&recording->lock);
	return any;
}

/* ---- the ring -------------------------------------------------------------------------------- */

static struct prof_lane *lane_of(struct ips_track *track)
{
	return (struct prof_lane *)track; /* the ring is its first member */
}

static void count_dropped(struct ips_track *track)
{
	__atomic_fetch_add(&track->dropped, 1, __ATOMIC_RELAXED); /* a handler may count, too */
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

/* Copy @size bytes into the slots after the event's first one, and on from the ring's start. */
static void put_bytes(struct ips_track *track, const void *bytes, size_t size)
{
	struct ips_slot *to = slot_after(track, 1);
	const size_t before =
		min(size, (size_t)(track->slots + track->mask + 1 - to) * sizeof(*to));

	memcpy(to, bytes, before);
	memcpy(track->slots, (const char *)bytes + before, size - before);
}

/* Return whether there is room for pending keys and @slots more; if so, write the keys. */
static bool reserve_room(struct ips_track *track, uint64_t slots)
{
	struct prof_lane *lane = lane_of(track);
	uint64_t capacity = track->mask + 1, full, soft;
	uint64_t keys = lane->keys_wait ? 1 + PROF_KEYS_SLOTS : 0;

	full = __atomic_load_n(&track->consumed, __ATOMIC_ACQUIRE) + capacity;
	if (lane->recording->params.alone) {
		if (track->head + track->open + keys + slots > lane->handed + capacity / 2)
			end_turn(lane);
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

/* Wait for room for an event of @slots slots; false: there will never be room, and the event is
 * counted as dropped. */
static bool wait_for_room(struct ips_track *track, uint64_t slots)
{
	const struct timespec pause = {0, 100000};
	const struct prof_lane *lane = lane_of(track);
	struct ips_recording *recording = lane->recording;

	if (track->skipping != 0) {
		count_dropped(track);
		return false;
	}
	while (track->head + track->open + slots > track->limit && !reserve_room(track, slots)) {
		const uint64_t keys = lane->keys_wait ? 1 + PROF_KEYS_SLOTS : 0;

		/* Draining does not help if reserved slots leave too few, and no ring is drained
		 * while the disk is full. What the writer has drained is not asked: it may have
		 * drained all since there was no room. */
		if (track->open + keys + slots > track->mask + 1 ||
		    __atomic_load_n(&recording->no_space, __ATOMIC_ACQUIRE) != 0 ||
		    prof__is_child(recording)) {
			count_dropped(track);
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
		return wait_for_room(track, slots);
	if (track->skipping != 0 || !reserve_room(track, slots)) {
		count_dropped(track);
		return 0;
	}
	return 1;
}

/* Return whether there is room for an event of @slots slots that reserves none. */
static bool has_room(struct ips_track *track, uint64_t slots)
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

	if (!track || !ips_track_enter(track))
		return;
	keys = !keys ? &none : keys;
	if (!same_keys(&lane->keys, keys)) {
		lane->keys = *keys;
		lane->keys_wait = true;
		if (track->skipping != 0 || !reserve_room(track, 0))
			track->limit = 0;
	}
	ips_track_leave(track);
}

static void put_event(struct ips_track *track, struct ips_site *site, uint64_t kind, uint64_t value)
{
	struct ips_slot *slot;

	if (!track || !site || !ips_track_enter(track))
		return;
	if (has_room(track, 1)) {
		slot = slot_after(track, 0);
		slot->site = site;
		slot->kind = kind;
		slot->value = value;
		slot->ticks = ips_ticks();
		publish(track, 1);
	}
	ips_track_leave(track);
}

void ips_instant(struct ips_track *track, struct ips_site *site)
{
	put_event(track, site, IPS_EVENT_INSTANT, 0);
}

void ips_counter(struct ips_track *track, struct ips_site *site, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_event(track, site, IPS_EVENT_COUNTER, bits);
}

void ips_memory_sample(struct ips_track *track)
{
	IPS_SITE(resident, "memory", IPS_RESIDENT_BYTES);
	const uint64_t now_ns = clock_ns();
	struct prof_lane *lane = lane_of(track);
	int64_t bytes;

	if (!track || (lane->memory_ns != 0 && now_ns - lane->memory_ns < MEMORY_NS))
		return;
	lane->memory_ns = now_ns;
	bytes = prof_process_resident();
	if (bytes > 0)
		ips_counter(track, &resident, (double)bytes);
}

void ips_flow_out(struct ips_track *track, struct ips_site *site, uint64_t id)
{
	put_event(track, site, IPS_EVENT_FLOW_OUT, id);
}

void ips_flow_in(struct ips_track *track, struct ips_site *site, uint64_t id)
{
	put_event(track, site, IPS_EVENT_FLOW_IN, id);
}

/* The slot of an argument has its name in the member that holds the call site of other events.
 * @text, if not NULL, of PROF_ARG_TEXT bytes, is put behind it. Return false if it was dropped. */
static bool put_argument(struct ips_track *track, uint64_t event, const char *name, uint64_t type,
			 uint64_t bits, const char *text)
{
	const uint64_t slots = text ? 1 + PROF_TEXT_SLOTS : 1;
	struct ips_slot *slot;
	bool room;

	if (!track || !name || !ips_track_enter(track))
		return false;
	room = has_room(track, slots);
	if (room) {
		if (text)
			put_bytes(track, text, PROF_ARG_TEXT);
		slot = slot_after(track, 0);
		memcpy(&slot->site, &name, sizeof(name));
		slot->kind = event | type << PROF_KIND_BITS;
		slot->value = bits;
		slot->ticks = 0;
		publish(track, slots);
	}
	ips_track_leave(track);
	return room;
}

static void put_real(struct ips_track *track, uint64_t event, const char *name, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_argument(track, event, name, PROF_ARG_REAL, bits, NULL);
}

static void put_text(struct ips_track *track, uint64_t event, const char *name, const char *value)
{
	char text[PROF_ARG_TEXT + 1] = {0};

	if (value)
		str_copy(text, sizeof(text), value);
	/* bits: 0 for a NULL text */
	put_argument(track, event, name, PROF_ARG_TEXT_TYPE, value != NULL, text);
}

/* Texts on their way to the file take as much memory as rows: after so many bytes of them, wait
 * until all are written. */
static void bound_texts(struct ips_recording *recording, size_t length)
{
	const size_t before = __atomic_fetch_add(&recording->text_bytes, length, __ATOMIC_RELAXED);

	if (before > 0 && before + length > recording->params.row_queue_bytes) {
		__atomic_store_n(&recording->text_bytes, length, __ATOMIC_RELAXED);
		ips_recording_flush(recording);
	}
}

static void put_long_text(struct ips_track *track, uint64_t event, const char *name,
			  const char *value)
{
	const size_t length = !value ? 0 : strlen(value);
	char *copy;

	if (length <= PROF_ARG_TEXT) {
		put_text(track, event, name, value);
		return;
	}
	if (!track || !name)
		return;
	bound_texts(lane_of(track)->recording, length);
	copy = mem_strdup(value);
	if (!copy)
		count_dropped(track);
	else if (!put_argument(track, event, name, PROF_ARG_LONG_TEXT, (uint64_t)(uintptr_t)copy,
			       NULL))
		mem_free(copy);
}

void ips_span_arg_int(struct ips_track *track, const char *static_name, int64_t value)
{
	put_argument(track, IPS_EVENT_ARGUMENT, static_name, PROF_ARG_INT, (uint64_t)value, NULL);
}

void ips_span_arg_real(struct ips_track *track, const char *static_name, double value)
{
	put_real(track, IPS_EVENT_ARGUMENT, static_name, value);
}

void ips_span_arg_text(struct ips_track *track, const char *static_name, const char *value)
{
	put_text(track, IPS_EVENT_ARGUMENT, static_name, value);
}

/* ---- events with given times ----------------------------------------------------------------- */

static void put_at(struct ips_track *track, struct ips_site *site, uint64_t kind, uint64_t value,
		   int64_t time_ns)
{
	struct ips_slot *slot;

	if (!track || !site || !ips_track_enter(track))
		return;
	if (time_ns < 0) {
		count_dropped(track);
	} else if (wait_for_room(track, 1)) {
		slot = slot_after(track, 0);
		slot->site = site;
		slot->kind = kind;
		slot->value = value;
		slot->ticks = (uint64_t)time_ns;
		publish(track, 1);
	}
	ips_track_leave(track);
}

void ips_span_at(struct ips_track *track, struct ips_site *site, int64_t start_ns, int64_t dur_ns)
{
	const bool valid = start_ns >= 0 && dur_ns >= 0 && dur_ns <= INT64_MAX - start_ns;

	put_at(track, site, IPS_EVENT_AT, (uint64_t)dur_ns, valid ? start_ns : -1);
}

void ips_instant_at(struct ips_track *track, struct ips_site *site, int64_t time_ns)
{
	put_at(track, site, IPS_EVENT_INSTANT | PROF_AT << PROF_KIND_BITS, 0, time_ns);
}

void ips_counter_at(struct ips_track *track, struct ips_site *site, int64_t time_ns, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_at(track, site, IPS_EVENT_COUNTER | PROF_AT << PROF_KIND_BITS, bits, time_ns);
}

void ips_flow_out_at(struct ips_track *track, struct ips_site *site, uint64_t id, int64_t time_ns)
{
	put_at(track, site, IPS_EVENT_FLOW_OUT | PROF_AT << PROF_KIND_BITS, id, time_ns);
}

void ips_flow_in_at(struct ips_track *track, struct ips_site *site, uint64_t id, int64_t time_ns)
{
	put_at(track, site, IPS_EVENT_FLOW_IN | PROF_AT << PROF_KIND_BITS, id, time_ns);
}

void ips_span_arg_long_text(struct ips_track *track, const char *static_name, const char *value)
{
	put_long_text(track, IPS_EVENT_ARGUMENT, static_name, value);
}

void ips_instant_arg_int(struct ips_track *track, const char *static_name, int64_t value)
{
	put_argument(track, IPS_EVENT_INSTANT_ARGUMENT, static_name, PROF_ARG_INT, (uint64_t)value,
		     NULL);
}

void ips_instant_arg_real(struct ips_track *track, const char *static_name, double value)
{
	put_real(track, IPS_EVENT_INSTANT_ARGUMENT, static_name, value);
}

void ips_instant_arg_text(struct ips_track *track, const char *static_name, const char *value)
{
	put_long_text(track, IPS_EVENT_INSTANT_ARGUMENT, static_name, value);
}

void ips_span_row(struct ips_track *track, enum ips_table table, const void *row)
{
	struct ips_slot *slot;
	uint64_t slots;

	if (!track || (unsigned)table >= IPS_TABLES || !row ||
	    prof_row_types[table].columns[0].kind != PROF_COLUMN_SPAN || !ips_track_enter(track))
		return;
	slots = prof_row_slots(table);
	if (has_room(track, 1 + slots)) {
		slot = slot_after(track, 0);
		slot->site = NULL;
		slot->kind = IPS_EVENT_ROW | (uint64_t)table << PROF_KIND_BITS;
		slot->ticks = 0;
		put_bytes(track, row, prof_row_types[table].size);
		publish(track, 1 + slots);
	}
	ips_track_leave(track);
}

/* ---- for languages that cannot use inline functions of C ------------------------------------- */

void ips_track_begin(struct ips_track *track, struct ips_site *site)
{
	ips_span_begin(track, site);
}

void ips_track_end(struct ips_track *track)
{
	ips_span_end(track);
}
