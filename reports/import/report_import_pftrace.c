/*
 * Perfetto's protobuf traces: track events (slices, instants, counters, flows, the old form of
 * Chrome's phases), with interned names, clocks of their own and deflated packets.
 *
 * A file is a sequence of packets, each of a writer's sequence, which has its own interned names,
 * defaults and clocks until it clears them. Packets come in any order of time; names of tracks may
 * come behind their events.
 *
 * Threading: the calling thread only.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_internal.h"
#include "reports/import/report_import_wire.h"

#define PACKET_MOST    ((size_t)16 << 20)
#define INFLATED_MOST  ((size_t)32 << 20)
#define SEQUENCES_MOST ((size_t)65536)
#define TRACKS_MOST    ((size_t)1 << 20)
#define FLOWS_MOST     ((size_t)1 << 20)
#define INTERNED_MOST  ((size_t)1 << 20) /* names of a sequence */
#define CLOCKS         128
#define BOOTTIME       6
#define DEPTH_MOST     8 /* of a nested argument */

enum packet_field {
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCKS = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_CLEARED = 41,
	PACKET_DROPPED = 42,
	PACKET_PROCESS = 43,
	PACKET_THREAD = 44,
	PACKET_DEFLATED = 50,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_ZSTD = 133
};

/* Fields of InternedData that are read; an entry is {iid 1, text 2}. */
enum interned_kind {
	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_ARGUMENT = 3,
	INTERNED_TEXT = 29
};

struct interned {
	uint64_t iid;
	uint32_t kind;
	const char *text;
};

/* ns = ticks * multiplier + offset; of incremental clocks a timestamp is a distance to the last. */
struct pf_clock {
	int64_t multiplier, offset_ns, last_ns;
	bool known, incremental;
};

struct sequence {
	uint64_t id;
	struct interned *names;
	size_t count, capacity;
	struct map map;
	bool whole;     /* nothing that its packets refer to is missing */
	uint64_t clock; /* default of its packets; 0: boot time */
	uint64_t track; /* default of its events */
	bool has_track;
	uint64_t extra[8]; /* default tracks of extra counter values */
	size_t extra_count;
	int64_t reference_ns; /* of timestamps in events, on the clock of thread descriptors */
	int64_t pid, tid;     /* of an old thread descriptor; IPS_NULL: none */
	struct pf_clock clocks[CLOCKS - 64];
};

struct pf_track {
	uint64_t uuid, parent;
	int64_t pid, tid; /* IPS_NULL: not known */
	const char *name;
	bool described, has_parent, counter, incremental;
	int64_t multiplier;
	double sum;           /* of an incremental counter */
	uint32_t track, site; /* of the import; IMPORT_NO_ID: not declared yet */
};

struct pf_process {
	int64_t pid;
	const char *name;
};

struct pftrace {
	struct import *import;
	struct import_stream stream;
	struct sequence *sequences;
	size_t sequence_count, sequence_capacity;
	struct map sequence_map;
	struct pf_track *tracks;
	size_t track_count, track_capacity;
	struct map track_map;
	struct pf_process *processes;
	size_t process_count, process_capacity;
	struct map process_map, flow_map;
	struct pf_clock clocks[64];
	unsigned char *inflated;
	size_t inflated_capacity;
	char text[IMPORT_TEXT_SIZE];
	bool broken;
};

static bool is_bytes(const struct import_wire_field *field)
{
	return field->type == IMPORT_WIRE_BYTES && field->bytes.at;
}

static const char *keep_bytes(struct pftrace *pf, const struct import_wire *bytes)
{
	const size_t length = min(import_wire_size(bytes), sizeof(pf->text) - 1);

	memcpy(pf->text, bytes->at, length);
	pf->text[length] = '\0';
	return report__import_keep(pf->import, pf->text);
}

/* ---- sequences ------------------------------------------------------------------------------- */

static struct sequence *find_sequence(struct pftrace *pf, uint64_t id, struct err *err)
{
	size_t at;

	MAP_FIND(at, &pf->sequence_map, id, pf->sequences[at].id == id);
	if (at != MAP_NONE)
		return &pf->sequences[at];
	if (pf->sequence_count == SEQUENCES_MOST) {
		err_set(err, ST_FORMAT, "%s: more than %zu sequences of packets",
			pf->import->input.name, SEQUENCES_MOST);
		return NULL;
	}
	if (mem_grow(&pf->sequences, &pf->sequence_capacity, pf->sequence_count + 1,
		     sizeof(*pf->sequences)) != 0 ||
	    map_add(&pf->sequence_map, id, pf->sequence_count) != 0) {
		err_nomem(err);
		return NULL;
	}
	pf->sequences[pf->sequence_count] =
		(struct sequence){.id = id, .pid = IPS_NULL, .tid = IPS_NULL};
	return &pf->sequences[pf->sequence_count++];
}

static void clear_sequence(struct sequence *sequence)
{
	sequence->count = 0;
	map_clear(&sequence->map);
	sequence->clock = 0;
	sequence->has_track = false;
	sequence->extra_count = 0;
	sequence->whole = true;
}

static const char *interned(const struct sequence *sequence, uint32_t kind, uint64_t iid)
{
	size_t at;

	MAP_FIND(at, &sequence->map, iid << 8 | kind,
		 sequence->names[at].iid == iid && sequence->names[at].kind == kind);
	return at == MAP_NONE ? NULL : sequence->names[at].text;
}

static enum status add_interned(struct pftrace *pf, struct sequence *sequence,
				struct import_wire data, struct err *err)
{
	struct import_wire_field field, inner;

	while (report__import_wire_next(&data, &field)) {
		struct interned item = {0, field.number, ""};
		struct import_wire entry = field.bytes;

		if (!is_bytes(&field) ||
		    (field.number > INTERNED_ARGUMENT && field.number != INTERNED_TEXT))
			continue;
		while (report__import_wire_next(&entry, &inner)) {
			if (inner.number == 1)
				item.iid = inner.value;
			else if (inner.number == 2 && is_bytes(&inner))
				item.text = keep_bytes(pf, &inner.bytes);
		}
		if (!item.text)
			return err_nomem(err);
		if (sequence->count == INTERNED_MOST || interned(sequence, item.kind, item.iid))
			continue;
		if (mem_grow(&sequence->names, &sequence->capacity, sequence->count + 1,
			     sizeof(item)) != 0 ||
		    map_add(&sequence->map, item.iid << 8 | item.kind, sequence->count) != 0)
			return err_nomem(err);
		sequence->names[sequence->count++] = item;
	}
	return ST_OK;
}

/* Numbers of a repeated field, one value or many packed in bytes; return how many there are. */
static size_t take_numbers(const struct import_wire_field *field, bool fixed, uint64_t *out,
			   size_t most, size_t count)
{
	struct import_wire packed = field->bytes;

	if (!is_bytes(field)) {
		if (count < most)
			out[count++] = field->value;
		return count;
	}
	while (packed.at < packed.end && count < most) {
		uint64_t value = 0;
		unsigned shift = 0;

		if (fixed && packed.end - packed.at < 8)
			break;
		if (fixed) {
			memcpy(&value, packed.at, sizeof(value));
			packed.at += 8;
		} else {
			do {
				value |= shift < 64 ? (uint64_t)(*packed.at & 0x7f) << shift : 0;
				shift += 7;
			} while ((*packed.at++ & 0x80) != 0 && packed.at < packed.end);
		}
		out[count++] = value;
	}
	return count;
}

static void take_defaults(struct sequence *sequence, struct import_wire defaults)
{
	struct import_wire_field field, inner;

	while (report__import_wire_next(&defaults, &field)) {
		struct import_wire event = field.bytes;

		if (field.number == PACKET_CLOCK)
			sequence->clock = field.value;
		if (field.number != PACKET_EVENT || !is_bytes(&field))
			continue;
		while (report__import_wire_next(&event, &inner)) {
			if (inner.number == 11) {
				sequence->track = inner.value;
				sequence->has_track = true;
			} else if (inner.number == 31) {
				sequence->extra_count = take_numbers(&inner, false, sequence->extra,
								     ARRAY_LEN(sequence->extra),
								     sequence->extra_count);
			}
		}
	}
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static struct pf_clock *clock_of(struct pftrace *pf, struct sequence *sequence, uint64_t id)
{
	if (id < 64)
		return &pf->clocks[id];
	return id < CLOCKS ? &sequence->clocks[id - 64] : NULL;
}

/* All clocks of a snapshot show the same instant: boot time, or what the file has instead of it. */
static void take_snapshot(struct pftrace *pf, struct sequence *sequence,
			  struct import_wire snapshot)
{
	struct {
		struct pf_clock *clock;
		int64_t ns;
	} seen[32];
	size_t count = 0;
	struct import_wire_field field, inner;
	int64_t now = IPS_NULL, wall = IPS_NULL, any = 0;

	while (count < ARRAY_LEN(seen) && report__import_wire_next(&snapshot, &field)) {
		struct import_wire message = field.bytes;
		int64_t multiplier = 1, ticks = 0;
		uint64_t id = 0;
		bool incremental = false;
		struct pf_clock *clock;

		if (field.number != 1 || !is_bytes(&field))
			continue;
		while (report__import_wire_next(&message, &inner)) {
			if (inner.number == 1)
				id = inner.value;
			else if (inner.number == 2)
				ticks = import_wire_int(&inner);
			else if (inner.number == 3)
				incremental = inner.value != 0;
			else if (inner.number == 4 && inner.value > 0)
				multiplier = import_wire_int(&inner);
		}
		clock = clock_of(pf, sequence, id);
		if (!clock || __builtin_mul_overflow(ticks, multiplier, &ticks) || ticks < 0)
			continue;
		clock->multiplier = multiplier;
		clock->incremental = incremental;
		clock->last_ns = ticks;
		if (id == BOOTTIME)
			now = ticks;
		else if (now == IPS_NULL && clock->known)
			now = ticks + clock->offset_ns;
		if (id == 1)
			wall = ticks;
		any = any == 0 ? ticks : any;
		seen[count].clock = clock;
		seen[count++].ns = ticks;
	}
	now = now == IPS_NULL ? any : now;
	for (size_t i = 0; i < count; i++) {
		seen[i].clock->offset_ns = now - seen[i].ns;
		seen[i].clock->known = true;
	}
	if (wall != IPS_NULL && pf->import->epoch_ns == IPS_NULL)
		pf->import->epoch_ns = wall - now;
}

/* A timestamp in ns of boot time; a clock that no snapshot has counts as it. */
static int64_t to_ns(struct pftrace *pf, struct sequence *sequence, uint64_t id, int64_t ticks)
{
	struct pf_clock *clock = clock_of(pf, sequence, id);
	int64_t ns;

	if (!clock || !clock->known)
		return ticks;
	if (__builtin_mul_overflow(ticks, clock->multiplier, &ns) ||
	    (clock->incremental && __builtin_add_overflow(ns, clock->last_ns, &ns)))
		return IPS_NULL;
	if (clock->incremental)
		clock->last_ns = ns;
	return __builtin_add_overflow(ns, clock->offset_ns, &ns) ? IPS_NULL : ns;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static struct pf_track *find_track(struct pftrace *pf, uint64_t uuid)
{
	size_t at;

	MAP_FIND(at, &pf->track_map, uuid, pf->tracks[at].uuid == uuid);
	return at == MAP_NONE ? NULL : &pf->tracks[at];
}

/* NULL: out of memory, or (err untouched) too many. */
static enum status get_track(struct pftrace *pf, uint64_t uuid, struct pf_track **out,
			     struct err *err)
{
	*out = find_track(pf, uuid);
	if (*out || pf->track_count == TRACKS_MOST)
		return ST_OK;
	if (mem_grow(&pf->tracks, &pf->track_capacity, pf->track_count + 1, sizeof(*pf->tracks)) !=
		    0 ||
	    map_add(&pf->track_map, uuid, pf->track_count) != 0)
		return err_nomem(err);
	*out = &pf->tracks[pf->track_count++];
	**out = (struct pf_track){.uuid = uuid,
				  .pid = IPS_NULL,
				  .tid = IPS_NULL,
				  .multiplier = 1,
				  .track = IMPORT_NO_ID,
				  .site = IMPORT_NO_ID};
	return ST_OK;
}

static enum status name_process(struct pftrace *pf, int64_t pid, const char *name, struct err *err)
{
	size_t at;

	if (pid == IPS_NULL || !name || name[0] == '\0')
		return ST_OK;
	MAP_FIND(at, &pf->process_map, (uint64_t)pid, pf->processes[at].pid == pid);
	if (at != MAP_NONE) {
		pf->processes[at].name = name;
		return ST_OK;
	}
	if (pf->process_count == TRACKS_MOST)
		return ST_OK;
	if (mem_grow(&pf->processes, &pf->process_capacity, pf->process_count + 1,
		     sizeof(*pf->processes)) != 0 ||
	    map_add(&pf->process_map, (uint64_t)pid, pf->process_count) != 0)
		return err_nomem(err);
	pf->processes[pf->process_count++] = (struct pf_process){pid, name};
	return ST_OK;
}

static const char *process_name(const struct pftrace *pf, int64_t pid)
{
	size_t at;

	MAP_FIND(at, &pf->process_map, (uint64_t)pid, pf->processes[at].pid == pid);
	return at == MAP_NONE ? NULL : pf->processes[at].name;
}

/* {pid 1, tid 2, name 5} of a thread, {pid 1, name 6} of a process. */
static enum status take_descriptor(struct pftrace *pf, struct import_wire message, bool of_thread,
				   struct pf_track *track, int64_t *reference_us, struct err *err)
{
	struct import_wire_field field;
	const char *name = NULL;

	while (report__import_wire_next(&message, &field)) {
		if (field.number == 1)
			track->pid = (int32_t)field.value;
		else if (field.number == 2 && of_thread)
			track->tid = import_wire_int(&field);
		else if (field.number == 6 && of_thread && reference_us)
			*reference_us = import_wire_int(&field);
		else if (field.number == (of_thread ? 5u : 6u) && is_bytes(&field)) {
			name = keep_bytes(pf, &field.bytes);
			if (!name)
				return err_nomem(err);
		}
	}
	if (!of_thread)
		return name_process(pf, track->pid, name, err);
	track->name = !track->name ? name : track->name;
	return ST_OK;
}

/* Declare the track to the import; again where its names have come. */
static enum status declare(struct pftrace *pf, struct pf_track *track, struct err *err)
{
	const struct pf_track *above = track;
	char process[32], thread[48];
	struct import_track own = {.kind = IMPORT_THREAD, .process_sort = IPS_NULL};
	int64_t pid = track->pid;

	for (int i = 0; i < 64 && pid == IPS_NULL && above && above->has_parent; i++) {
		above = find_track(pf, above->parent);
		pid = !above ? IPS_NULL : above->pid;
	}
	if (pid != IPS_NULL) {
		snprintf(process, sizeof(process), "%" PRId64, pid);
		own.process = process;
		own.process_name = process_name(pf, pid);
	}
	own.name = track->name;
	own.sort = track->tid != IPS_NULL ? track->tid : 0;
	if (track->tid != IPS_NULL)
		snprintf(thread, sizeof(thread), "%" PRId64, track->tid);
	else
		snprintf(thread, sizeof(thread), "track %" PRIu64, track->uuid);
	own.thread = thread;
	return report__import_track(pf->import, &own, &track->track, err);
}

static enum status take_track(struct pftrace *pf, struct import_wire message, struct err *err)
{
	struct import_wire_field field, inner;
	struct pf_track given = {.pid = IPS_NULL, .tid = IPS_NULL, .multiplier = 1};
	struct pf_track *track;
	enum status status = ST_OK;

	while (status == ST_OK && report__import_wire_next(&message, &field)) {
		struct import_wire counter = field.bytes;

		if (field.number == 1) {
			given.uuid = field.value;
		} else if (field.number == 5) {
			given.parent = field.value;
			given.has_parent = field.value != 0;
		} else if (!is_bytes(&field)) {
			continue;
		} else if (field.number == 2 || field.number == 10 || field.number == 13) {
			given.name = keep_bytes(pf, &field.bytes);
			status = !given.name ? err_nomem(err) : ST_OK;
		} else if (field.number == 3 || field.number == 4) {
			status = take_descriptor(pf, field.bytes, field.number == 4, &given, NULL,
						 err);
		} else if (field.number == 8) {
			given.counter = true;
			while (report__import_wire_next(&counter, &inner)) {
				if (inner.number == 4 && inner.value > 0)
					given.multiplier = import_wire_int(&inner);
				else if (inner.number == 5)
					given.incremental = inner.value != 0;
			}
		}
	}
	if (status == ST_OK)
		status = get_track(pf, given.uuid, &track, err);
	if (status != ST_OK || !track)
		return status;
	given.sum = track->sum;
	given.track = track->track;
	given.site = IMPORT_NO_ID;
	given.described = true;
	given.name = !given.name ? track->name : given.name;
	if (!given.name && !given.has_parent && given.tid == IPS_NULL)
		given.name = process_name(pf, given.pid);
	*track = given;
	return track->track == IMPORT_NO_ID ? ST_OK : declare(pf, track, err);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char *argument_name(struct pftrace *pf, const struct sequence *sequence,
				 struct import_wire annotation)
{
	struct import_wire_field field;
	const char *name = NULL;

	while (report__import_wire_next(&annotation, &field)) {
		if (field.number == 10 && is_bytes(&field))
			name = keep_bytes(pf, &field.bytes);
		else if (field.number == 1 && field.type == IMPORT_WIRE_VARINT)
			name = interned(sequence, INTERNED_ARGUMENT, field.value);
	}
	return name;
}

/* An annotation as the argument @name; the members of a dictionary are NAME.MEMBER, those of an
 * array NAME[i]. */
static enum status take_argument(struct pftrace *pf, const struct sequence *sequence,
				 struct import_wire annotation, const char *name, int depth,
				 struct err *err)
{
	struct import *import = pf->import;
	struct import_wire_field field;
	enum status status = ST_OK;
	char nested[IMPORT_TEXT_SIZE];
	uint32_t id, items = 0;

	status = report__import_arg_name(import, name, &id, err);
	while (status == ST_OK && report__import_wire_next(&annotation, &field)) {
		const char *text;

		switch (field.number) {
		case 2: /* bool, uint, int, pointer */
		case 3:
		case 4:
		case 7:
			report__import_arg_int(import, id, import_wire_int(&field));
			break;
		case 5:
			report__import_arg_real(import, id, import_wire_double(&field));
			break;
		case 6: /* a text, JSON */
		case 9:
			text = !is_bytes(&field) ? NULL : keep_bytes(pf, &field.bytes);
			report__import_arg_text(import, id, text);
			break;
		case 17:
			report__import_arg_text(import, id,
						interned(sequence, INTERNED_TEXT, field.value));
			break;
		case 11:
		case 12:
			if (!is_bytes(&field) || depth == DEPTH_MOST)
				break;
			text = field.number == 12 ? NULL : argument_name(pf, sequence, field.bytes);
			if (text)
				snprintf(nested, sizeof(nested), "%s.%s", name, text);
			else
				snprintf(nested, sizeof(nested), "%s[%u]", name, items++);
			status = take_argument(pf, sequence, field.bytes, nested, depth + 1, err);
			break;
		default:
			break;
		}
	}
	return status;
}

/* ---- events ---------------------------------------------------------------------------------- */

#define FLOWS_OF_EVENT 16

struct pf_event {
	uint64_t type, track;
	bool has_track, has_value, has_time;
	const char *name;
	char category[512];
	double value;
	int64_t ns;
	uint64_t flows[FLOWS_OF_EVENT], ends[FLOWS_OF_EVENT], extra[8], extra_tracks[8];
	size_t flow_count, end_count, extra_count, extra_track_count;
	/* the old form */
	uint64_t phase, id, bind;
	int64_t dur_us, pid, tid;
	bool has_id, has_bind;
	unsigned direction; /* 1: in, 2: out, 3: both */
};

static void add_category(struct pf_event *event, const char *text)
{
	const size_t used = strlen(event->category);

	if (text)
		snprintf(event->category + used, sizeof(event->category) - used, "%s%s",
			 used > 0 ? "," : "", text);
}

static void read_legacy(const struct sequence *sequence, struct import_wire message,
			struct pf_event *event)
{
	struct import_wire_field field;

	while (report__import_wire_next(&message, &field)) {
		switch (field.number) {
		case 1:
			event->name = interned(sequence, INTERNED_NAME, field.value);
			break;
		case 2:
			event->phase = field.value;
			break;
		case 3:
			event->dur_us = import_wire_int(&field);
			break;
		case 6:
		case 10:
		case 11:
			event->id = field.value;
			event->has_id = true;
			break;
		case 8:
			event->bind = field.value;
			event->has_bind = true;
			break;
		case 13:
			event->direction = (unsigned)field.value;
			break;
		case 18:
			event->pid = (int32_t)field.value;
			break;
		case 19:
			event->tid = (int32_t)field.value;
			break;
		default:
			break;
		}
	}
}

static enum status read_event(struct pftrace *pf, struct sequence *sequence,
			      struct import_wire message, struct pf_event *event, struct err *err)
{
	struct import_wire_field field;

	while (report__import_wire_next(&message, &field)) {
		switch (field.number) {
		case 1:
			sequence->reference_ns += 1000 * import_wire_int(&field);
			event->ns = to_ns(pf, sequence, 3, sequence->reference_ns);
			event->has_time = true;
			break;
		case 16:
			event->ns = to_ns(pf, sequence, 3, 1000 * import_wire_int(&field));
			event->has_time = true;
			break;
		case 3: {
			uint64_t iids[16];
			const size_t count = take_numbers(&field, false, iids, 16, 0);

			for (size_t i = 0; i < count; i++)
				add_category(event, interned(sequence, INTERNED_CATEGORY, iids[i]));
			break;
		}
		case 6:
			if (is_bytes(&field))
				read_legacy(sequence, field.bytes, event);
			break;
		case 9:
			event->type = field.value;
			break;
		case 10:
			event->name = interned(sequence, INTERNED_NAME, field.value);
			break;
		case 11:
			event->track = field.value;
			event->has_track = true;
			break;
		case 12:
			event->extra_count =
				take_numbers(&field, false, event->extra, 8, event->extra_count);
			break;
		case 31:
			event->extra_track_count = take_numbers(&field, false, event->extra_tracks,
								8, event->extra_track_count);
			break;
		case 22:
			if (is_bytes(&field))
				add_category(event, keep_bytes(pf, &field.bytes));
			break;
		case 23:
			if (is_bytes(&field)) {
				event->name = keep_bytes(pf, &field.bytes);
				if (!event->name)
					return err_nomem(err);
			}
			break;
		case 30:
			event->value = (double)import_wire_int(&field);
			event->has_value = true;
			break;
		case 44:
			event->value = import_wire_double(&field);
			event->has_value = true;
			break;
		case 36:
		case 47:
			event->flow_count = take_numbers(&field, field.number == 47, event->flows,
							 FLOWS_OF_EVENT, event->flow_count);
			break;
		case 42:
		case 48:
			event->end_count = take_numbers(&field, field.number == 48, event->ends,
							FLOWS_OF_EVENT, event->end_count);
			break;
		default:
			break;
		}
	}
	return ST_OK;
}

static enum status put_sample(struct pftrace *pf, struct pf_track *track, int64_t ns, double value,
			      struct err *err)
{
	enum status status = ST_OK;

	pf->import->counts->events++;
	if (!isfinite(value)) {
		report__import_left(pf->import, REPORT_IMPORT_LEFT_NO_NUMBER);
		return ST_OK;
	}
	value *= (double)track->multiplier;
	if (track->incremental)
		value = track->sum += value;
	if (track->track == IMPORT_NO_ID)
		status = declare(pf, track, err);
	if (status == ST_OK && track->site == IMPORT_NO_ID)
		status = report__import_name_site(
			pf->import, NULL, track->name ? track->name : "counter", &track->site, err);
	if (status != ST_OK)
		return status;
	if (track->track == IMPORT_NO_ID) {
		report__import_left(pf->import, REPORT_IMPORT_LEFT_TOO_MANY);
		return ST_OK;
	}
	return report__import_sample(pf->import, track->track, track->site, ns, value, err);
}

/* The sides of flows at an event: the first of a number in the file begins it. */
static enum status put_flows(struct pftrace *pf, const struct pf_event *event, uint32_t track,
			     struct err *err)
{
	enum status status = ST_OK;
	uint32_t site;

	if (event->flow_count + event->end_count == 0)
		return ST_OK;
	status = report__import_name_site(pf->import, NULL, "flow", &site, err);
	for (size_t i = 0; i < event->flow_count + event->end_count && status == ST_OK; i++) {
		const bool ends = i >= event->flow_count;
		const uint64_t id = ends ? event->ends[i - event->flow_count] : event->flows[i];
		enum import_flow side = ends ? IMPORT_FLOW_END : IMPORT_FLOW_STEP;
		size_t at;

		MAP_FIND(at, &pf->flow_map, id, true);
		if (at == MAP_NONE && !ends) {
			side = IMPORT_FLOW_START;
			if (pf->flow_map.count < FLOWS_MOST && map_add(&pf->flow_map, id, 0) != 0)
				return err_nomem(err);
		}
		pf->import->counts->events++;
		status = report__import_flow(pf->import, track, site, event->ns, side, id, err);
	}
	return status;
}

/* The track of an event in the old form: of a thread, or of asynchronous events of a process. */
static enum status legacy_track(struct pftrace *pf, const struct sequence *sequence,
				const struct pf_event *event, bool async, uint32_t *out,
				struct err *err)
{
	const int64_t pid = event->pid != IPS_NULL ? event->pid : sequence->pid;
	const int64_t tid = event->tid != IPS_NULL ? event->tid : sequence->tid;
	char process[32], thread[32];
	struct import_track own = {.kind = async ? IMPORT_ASYNC : IMPORT_THREAD,
				   .process = process,
				   .thread = async ? event->category : thread,
				   .process_sort = IPS_NULL};

	snprintf(process, sizeof(process), "%" PRId64, pid == IPS_NULL ? 0 : pid);
	snprintf(thread, sizeof(thread), "%" PRId64, tid == IPS_NULL ? 0 : tid);
	own.process_name = process_name(pf, pid);
	return report__import_track(pf->import, &own, out, err);
}

static enum status put_event(struct pftrace *pf, struct sequence *sequence,
			     struct import_wire message, struct pf_event *event, struct err *err)
{
	struct import *import = pf->import;
	struct import_wire_field field;
	const bool async = event->phase == 'b' || event->phase == 'e' || event->phase == 'n' ||
			   event->phase == 'S' || event->phase == 'F' || event->phase == 'T';
	uint32_t track = IMPORT_NO_ID, site;
	enum status status = ST_OK;
	const uint64_t pair = async ? (event->id << 1 | 1) : 0;

	if (event->type == 0)
		event->type = event->phase == 'B' || event->phase == 'b' || event->phase == 'S' ? 1
			      : event->phase == 'E' || event->phase == 'e' || event->phase == 'F'
				      ? 2
			      : event->phase == 'X' ? 100
			      : event->phase == 'I' || event->phase == 'i' || event->phase == 'R' ||
					      event->phase == 'n' || event->phase == 'T'
				      ? 3
				      : 0;
	if (event->type < 1 || (event->type > 3 && event->type != 100)) {
		report__import_left(import, REPORT_IMPORT_LEFT_PHASE);
		return ST_OK;
	}
	if (event->has_track && !async && event->pid == IPS_NULL && event->tid == IPS_NULL) {
		struct pf_track *of_event;

		status = get_track(pf, event->track, &of_event, err);
		if (status == ST_OK && of_event && of_event->track == IMPORT_NO_ID)
			status = declare(pf, of_event, err);
		track = status == ST_OK && of_event ? of_event->track : IMPORT_NO_ID;
	} else {
		status = legacy_track(pf, sequence, event, async, &track, err);
	}
	if (status != ST_OK)
		return status;
	if (track == IMPORT_NO_ID) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return ST_OK;
	}
	status = report__import_name_site(import, event->category[0] ? event->category : NULL,
					  event->name ? event->name : "", &site, err);
	while (status == ST_OK && report__import_wire_next(&message, &field)) {
		const char *name;

		if (field.number != 4 || !is_bytes(&field))
			continue;
		name = argument_name(pf, sequence, field.bytes);
		if (name)
			status = take_argument(pf, sequence, field.bytes, name, 0, err);
	}
	if (status != ST_OK)
		return status;
	if (event->type == 1)
		status = report__import_begin(import, track, site, event->ns, pair, err);
	else if (event->type == 2)
		status = report__import_end(import, track, async ? site : IMPORT_NO_ID, event->ns,
					    pair, err);
	else if (event->type == 100)
		status = report__import_span(
			import, track, site, event->ns,
			event->dur_us > INT64_MAX / 1000 ? 0 : event->dur_us * 1000, err);
	else
		status = report__import_instant(import, track, site, event->ns, err);
	return status == ST_OK ? put_flows(pf, event, track, err) : status;
}

static enum status take_event(struct pftrace *pf, struct sequence *sequence,
			      struct import_wire message, bool has_time, int64_t ns,
			      struct err *err)
{
	struct import *import = pf->import;
	struct pf_event event = {.pid = IPS_NULL, .tid = IPS_NULL, .ns = ns, .has_time = has_time};
	enum status status = read_event(pf, sequence, message, &event, err);
	struct pf_track *track;

	if (status != ST_OK)
		return status;
	if (!event.has_track && sequence->has_track) {
		event.track = sequence->track;
		event.has_track = true;
	}
	event.has_track = event.has_track || (sequence->tid == IPS_NULL && event.phase == 0);
	for (size_t i = 0; i < event.extra_count && event.has_time && status == ST_OK; i++) {
		const uint64_t *tracks =
			event.extra_track_count > 0 ? event.extra_tracks : sequence->extra;

		if (i >=
		    (event.extra_track_count > 0 ? event.extra_track_count : sequence->extra_count))
			break;
		status = get_track(pf, tracks[i], &track, err);
		if (status == ST_OK && track)
			status = put_sample(pf, track, event.ns, (double)(int64_t)event.extra[i],
					    err);
	}
	if (status != ST_OK)
		return status;
	if (event.type == 4 && event.has_value && event.has_time) {
		status = get_track(pf, event.track, &track, err);
		return status == ST_OK && track ? put_sample(pf, track, event.ns, event.value, err)
						: status;
	}
	import->counts->events++;
	if (!event.has_time || event.ns == IPS_NULL) {
		report__import_left(import, REPORT_IMPORT_LEFT_NO_TIME);
		return ST_OK;
	}
	return put_event(pf, sequence, message, &event, err);
}

/* ---- packets --------------------------------------------------------------------------------- */

static enum status take_packet(struct pftrace *pf, struct import_wire packet, bool compressed,
			       struct err *err);

/* The packets in deflated bytes. */
static enum status take_deflated(struct pftrace *pf, struct import_wire bytes, struct err *err)
{
	uLongf size;
	struct import_wire trace;
	struct import_wire_field field;
	enum status status = ST_OK;

	if (!pf->inflated)
		pf->inflated = mem_alloc(INFLATED_MOST);
	if (!pf->inflated)
		return err_nomem(err);
	size = INFLATED_MOST;
	if (uncompress(pf->inflated, &size, bytes.at, (uLong)import_wire_size(&bytes)) != Z_OK) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, "compressed packets that are damaged or large",
					 1);
		return ST_OK;
	}
	trace = (struct import_wire){pf->inflated, pf->inflated + size, false};
	while (status == ST_OK && report__import_wire_next(&trace, &field))
		if (field.number == 1 && is_bytes(&field))
			status = take_packet(pf, field.bytes, true, err);
	return status;
}

/* Packets of other kinds, by the field that they have; all others are about the trace itself. */
static const struct {
	uint32_t number;
	const char *what;
} others[] = {
	{1, "ftrace bundles"},     {37, "packages of Android"},
	{38, "power rails"},       {39, "samples of batteries"},
	{46, "protocol logs"},     {48, "samples of memory"},
	{52, "counters of GPUs"},  {53, "render stages of GPUs"},
	{66, "samples of stacks"}, {75, "heap graphs"},
	{77, "heap profiles"},     {PACKET_ZSTD, "packets compressed by zstd"},
};

static enum status name_processes(struct pftrace *pf, struct import_wire tree, struct err *err)
{
	struct import_wire_field field, inner;
	enum status status = ST_OK;

	while (status == ST_OK && report__import_wire_next(&tree, &field)) {
		struct import_wire process = field.bytes;
		const char *name = NULL;
		int64_t pid = IPS_NULL;

		if (field.number != 1 || !is_bytes(&field))
			continue;
		while (report__import_wire_next(&process, &inner)) {
			if (inner.number == 1) {
				pid = (int32_t)inner.value;
			} else if (inner.number == 3 && is_bytes(&inner) && !name) {
				/* the program, without its arguments and folder */
				name = keep_bytes(pf, &inner.bytes);
				if (!name)
					return err_nomem(err);
				name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
			}
		}
		if (!process_name(pf, pid))
			status = name_process(pf, pid, name, err);
	}
	return status;
}

static enum status take_packet(struct pftrace *pf, struct import_wire packet, bool compressed,
			       struct err *err)
{
	struct import_wire walk = packet, none = {NULL, NULL, false};
	struct import_wire event = none, data = none, defaults = none, snapshot = none,
			   track = none;
	struct import_wire tree = none, process = none, thread = none, deflated = none;
	struct import_wire_field field;
	struct sequence *sequence;
	struct pf_track old = {.pid = IPS_NULL, .tid = IPS_NULL};
	int64_t time = 0, reference_us = 0;
	uint64_t id = 0, clock = 0, flags = 0;
	bool has_time = false, has_clock = false, dropped = false;
	const char *what = NULL;
	enum status status = ST_OK;

	while (report__import_wire_next(&walk, &field)) {
		struct import_wire *part = field.number == PACKET_EVENT          ? &event
					   : field.number == PACKET_INTERNED     ? &data
					   : field.number == PACKET_DEFAULTS     ? &defaults
					   : field.number == PACKET_CLOCKS       ? &snapshot
					   : field.number == PACKET_TRACK        ? &track
					   : field.number == PACKET_PROCESS_TREE ? &tree
					   : field.number == PACKET_PROCESS      ? &process
					   : field.number == PACKET_THREAD       ? &thread
					   : field.number == PACKET_DEFLATED     ? &deflated
										 : NULL;

		for (size_t i = 0; i < ARRAY_LEN(others); i++)
			if (others[i].number == field.number)
				what = others[i].what;
		if (part && is_bytes(&field)) {
			*part = field.bytes;
		} else if (field.number == PACKET_TIMESTAMP) {
			time = import_wire_int(&field);
			has_time = true;
		} else if (field.number == PACKET_CLOCK) {
			clock = field.value;
			has_clock = true;
		} else if (field.number == PACKET_SEQUENCE) {
			id = field.value;
		} else if (field.number == PACKET_FLAGS) {
			flags |= field.value;
		} else if (field.number == PACKET_CLEARED) {
			flags |= field.value != 0;
		} else if (field.number == PACKET_DROPPED) {
			dropped = field.value != 0;
		}
	}
	if (walk.broken) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, "packets that are malformed", 1);
		return ST_OK;
	}
	if (deflated.at && !compressed)
		return take_deflated(pf, deflated, err);
	sequence = find_sequence(pf, id, err);
	if (!sequence)
		return err->status;
	if (dropped)
		sequence->whole = false;
	if (flags & 1)
		clear_sequence(sequence);
	if (defaults.at)
		take_defaults(sequence, defaults);
	if (data.at)
		status = add_interned(pf, sequence, data, err);
	if (snapshot.at)
		take_snapshot(pf, sequence, snapshot);
	if (status == ST_OK && tree.at)
		status = name_processes(pf, tree, err);
	if (status == ST_OK && process.at)
		status = take_descriptor(pf, process, false, &old, NULL, err);
	if (status == ST_OK && thread.at) {
		status = take_descriptor(pf, thread, true, &old, &reference_us, err);
		sequence->pid = old.pid;
		sequence->tid = old.tid;
		sequence->reference_ns = reference_us * 1000;
	}
	if (status == ST_OK && track.at)
		status = take_track(pf, track, err);
	if (status == ST_OK && what) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, what, 1);
	}
	if (status != ST_OK || !event.at)
		return status;
	time = to_ns(pf, sequence,
		     has_clock         ? clock
		     : sequence->clock ? sequence->clock
				       : BOOTTIME,
		     time);
	if ((flags & 2) && !sequence->whole) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, "events whose names were lost", 1);
		return ST_OK;
	}
	return take_event(pf, sequence, event, has_time, time, err);
}

enum status report__import_read_pftrace(struct import *import, struct err *err)
{
	struct pftrace pf = {.import = import,
			     .stream = {.input = &import->input, .most = PACKET_MOST}};
	struct import_wire_field field;
	enum status status;
	bool more = true;
	uint64_t packets = 0;

	do {
		status = report__import_stream_next(&pf.stream, &more, &field, err);
		if (status != ST_OK || !more)
			break;
		packets++;
		if (field.number == 1 && is_bytes(&field)) {
			status = take_packet(&pf, field.bytes, false, err);
		} else if (field.number == 1) {
			import->counts->events++;
			report__import_left(import, REPORT_IMPORT_LEFT_TOO_LARGE);
		}
		if (status == ST_OK && packets % 4096 == 0)
			status = report__import_progress_read(
				import,
				import->input.size == 0
					? -1
					: (int)(1000.0 * (double)import->input.taken /
						(double)import->input.size),
				err);
	} while (status == ST_OK);
	import->counts->bytes = pf.stream.offset + pf.stream.at;
	if (status == ST_OK && pf.stream.why)
		report__import_broken(import, pf.stream.begun, pf.stream.why);
	if (status == ST_OK && import->counts->broken && import->counts->events == 0)
		status =
			err_set(err, ST_FORMAT, "%s: byte %llu: %s", import->input.name,
				(unsigned long long)import->counts->broken_at, import->counts->why);
	for (size_t i = 0; i < pf.sequence_count; i++) {
		mem_free(pf.sequences[i].names);
		map_fini(&pf.sequences[i].map);
	}
	mem_free(pf.sequences);
	mem_free(pf.tracks);
	mem_free(pf.processes);
	mem_free(pf.inflated);
	map_fini(&pf.sequence_map);
	map_fini(&pf.track_map);
	map_fini(&pf.process_map);
	map_fini(&pf.flow_map);
	report__import_stream_fini(&pf.stream);
	return status;
}

/* Packets one after another, as far as the head has them, whose first fields are those of one. */
bool report__import_is_pftrace(const unsigned char *head, size_t size)
{
	struct import_wire wire = {head, head + size, false};
	struct import_wire_field packet, field;

	if (size < 2 || head[0] != 0x0a || head[1] == 0)
		return false;
	if (!report__import_wire_next(&wire, &packet)) {
		/* longer than the head: its beginning must be fields */
		for (wire.at = head + 1; wire.at < wire.end && (*wire.at & 0x80) != 0;)
			wire.at++;
		packet.bytes = (struct import_wire){wire.at + 1, head + size, false};
		if (packet.bytes.at >= packet.bytes.end || size < IMPORT_HEAD)
			return false;
		return report__import_wire_next(&packet.bytes, &field) ||
		       (packet.bytes.at < packet.bytes.end && (packet.bytes.at[0] & 7) == 2);
	}
	while (report__import_wire_next(&packet.bytes, &field))
		continue;
	return !packet.bytes.broken;
}
