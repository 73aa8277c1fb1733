/*
 * Perfetto's track events: slices, instants, counters and flows on tracks, and the old form of
 * Chrome's phases. See report_import_pftrace.h.
 *
 * Threading: the calling thread only.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "reports/import/report_import_pftrace.h"

#define OLD_FLOWS  3 /* seed of the keys of flows in the old form */
#define DEPTH_MOST 8 /* of a nested argument */

/* ---- tracks ---------------------------------------------------------------------------------- */

static struct pf_track *find_track(const struct pftrace *pf, uint64_t uuid)
{
	size_t at;

	MAP_FIND(at, &pf->track_map, uuid, pf->tracks[at].uuid == uuid);
	return at == MAP_NONE ? NULL : &pf->tracks[at];
}

/* Find or add a track; NULL: too many, or out of memory. */
static struct pf_track *get_track(struct pftrace *pf, uint64_t uuid)
{
	struct pf_track *track = find_track(pf, uuid);

	if (track || pf->track_count == PFTRACE_MOST)
		return track;
	track = report__import_append(&pf->track_map, uuid, &pf->tracks, &pf->track_count,
				      &pf->track_capacity, sizeof(*track), pf->err);
	if (track)
		*track = (struct pf_track){.uuid = uuid,
					   .pid = IPS_NULL,
					   .tid = IPS_NULL,
					   .multiplier = 1,
					   .track = IMPORT_NO_ID,
					   .site = IMPORT_NO_ID};
	return track;
}

/* {pid 1, tid 2, name 5} of a thread, {pid 1, name 6} of a process. */
void report__pftrace_descriptor(struct pftrace *pf, struct import_wire message, bool of_thread,
				struct pf_track *track, int64_t *reference_us)
{
	struct import_wire_field field;
	const char *name = NULL;

	while (import_wire_next(&message, &field)) {
		if (field.number == 1)
			track->pid = (int32_t)field.value;
		else if (field.number == 2 && of_thread)
			track->tid = import_wire_int(&field);
		else if (field.number == 6 && of_thread && reference_us)
			*reference_us = import_wire_int(&field);
		else if (field.number == (of_thread ? 5u : 6u) && pftrace_is_bytes(&field))
			name = report__pftrace_store(pf, &field.bytes);
	}
	if (!of_thread)
		report__pftrace_name_process(pf, track->pid, name);
	else
		track->name = !track->name ? name : track->name;
}

/* The track that @track is under, if that is not a process's own; or NULL. */
static struct pf_track *track_above(const struct pftrace *pf, const struct pf_track *track)
{
	struct pf_track *above = track->has_parent ? find_track(pf, track->parent) : NULL;
	const bool is_process = above && above->pid != IPS_NULL && above->tid == IPS_NULL;

	return above && above->described && !is_process ? above : NULL;
}

/* The order that the track's parent, or else the root, asks for. Processes and threads have orders
 * of their own. */
static uint64_t order_of(const struct pftrace *pf, const struct pf_track *track)
{
	const struct pf_track *parent = find_track(pf, track->parent);

	return track->pid != IPS_NULL || !parent ? ORDER_UNKNOWN : parent->order;
}

/* Declare the track to the import; again where its names or its order have come. */
static void declare(struct pftrace *pf, struct pf_track *track)
{
	const struct pf_track *above = track;
	const uint64_t order = order_of(pf, track);
	char process[32], thread[48];
	struct import_track own = {
		.kind = IMPORT_THREAD,
		.process_sort = IPS_NULL,
		.rank = order == ORDER_NAMES || order == ORDER_RANKS ? track->rank : 0};
	int64_t pid = track->pid;

	for (int i = 0; i < IMPORT_NESTED_MOST && pid == IPS_NULL && above && above->has_parent;
	     i++) {
		above = find_track(pf, above->parent);
		pid = !above ? IPS_NULL : above->pid;
	}
	if (pid != IPS_NULL) {
		const struct pf_process *of =
			pf->processes_ordered ? report__pftrace_process(pf, pid) : NULL;

		snprintf(process, sizeof(process), "%" PRId64, pid);
		own.process = process;
		own.process_name = report__pftrace_process_name(pf, pid);
		own.process_sort = of ? of->rank : IPS_NULL;
	}
	own.name = track->name;
	if (above && above->tid != IPS_NULL)
		own.sort = pf->threads_ordered ? above->rank : above->tid;
	if (track->tid != IPS_NULL)
		snprintf(thread, sizeof(thread), "%" PRId64, track->tid);
	else
		snprintf(thread, sizeof(thread), "track %" PRIu64, track->uuid);
	own.thread = thread;
	report__import_track(pf->import, &own, &track->track, pf->err);
}

static int compare_names(const void *a, const void *b)
{
	const struct pf_track *x = *(struct pf_track *const *)a, *y = *(struct pf_track *const *)b;
	const int order = x->parent == y->parent ? strcmp(x->name, y->name) : 0;

	return order != 0 ? order : SORTED_BY(x, y, parent, uuid);
}

/* Rank the tracks whose parents order them by name. */
static void rank_names(struct pftrace *pf)
{
	struct pf_track **list = mem_calloc(pf->track_count + 1, sizeof(struct pf_track *));
	size_t count = 0;

	if (!list) {
		err_nomem(pf->err);
		return;
	}
	for (size_t t = 0; t < pf->track_count; t++)
		if (pf->tracks[t].name && order_of(pf, &pf->tracks[t]) == ORDER_NAMES)
			list[count++] = &pf->tracks[t];
	qsort(list, count, sizeof(struct pf_track *), compare_names);
	for (size_t i = 0; i < count; i++)
		list[i]->rank = (int64_t)i;
	mem_free(list);
}

void report__pftrace_nest(struct pftrace *pf)
{
	if (pf->ordered) {
		rank_names(pf);
		for (size_t t = 0; t < pf->track_count && !err_stuck(pf->err); t++)
			if (pf->tracks[t].track != IMPORT_NO_ID)
				declare(pf, &pf->tracks[t]);
	}
	for (size_t t = 0; t < pf->track_count && !err_stuck(pf->err); t++) {
		struct pf_track *track = &pf->tracks[t];

		for (int i = 0; i < IMPORT_NESTED_MOST && track->track != IMPORT_NO_ID; i++) {
			struct pf_track *above = track_above(pf, track);

			if (!above)
				break;
			if (above->track == IMPORT_NO_ID)
				declare(pf, above);
			if (above->track != IMPORT_NO_ID)
				report__import_track_under(pf->import, track->track, above->track);
			track = above;
		}
	}
}

/* {uuid 1, name 2 (static 10, atrace 13), process 3, thread 4, parent_uuid 5, counter 8,
 * child_ordering 11, sibling_order_rank 12, and of the root: process_ordering 19, thread_ordering
 * 20, where 1 is by rank}. */
void report__pftrace_track(struct pftrace *pf, struct import_wire message)
{
	struct import_wire_field field, inner;
	struct pf_track given = {.pid = IPS_NULL, .tid = IPS_NULL, .multiplier = 1};
	bool processes_ordered = false, threads_ordered = false;
	struct pf_process *process;
	struct pf_track *track;

	while (import_wire_next(&message, &field)) {
		struct import_wire counter = field.bytes;

		if (field.number == 1) {
			given.uuid = field.value;
		} else if (field.number == 5) {
			given.parent = field.value;
			given.has_parent = field.value != 0;
		} else if (field.number == 11) {
			given.order = field.value;
		} else if (field.number == 12) {
			given.rank = (int32_t)field.value;
		} else if (field.number == 19) {
			processes_ordered = field.value == 1;
		} else if (field.number == 20) {
			threads_ordered = field.value == 1;
		} else if (!pftrace_is_bytes(&field)) {
			continue;
		} else if (field.number == 2 || field.number == 10 || field.number == 13) {
			given.name = report__pftrace_store(pf, &field.bytes);
		} else if (field.number == 3 || field.number == 4) {
			report__pftrace_descriptor(pf, field.bytes, field.number == 4, &given,
						   NULL);
		} else if (field.number == 8) {
			given.counter = true;
			while (import_wire_next(&counter, &inner)) {
				if (inner.number == 4 && inner.value > 0)
					given.multiplier = import_wire_int(&inner);
				else if (inner.number == 5)
					given.incremental = inner.value != 0;
			}
		}
	}
	pf->processes_ordered |= given.uuid == 0 && processes_ordered;
	pf->threads_ordered |= given.uuid == 0 && threads_ordered;
	pf->ordered |= pf->processes_ordered || pf->threads_ordered || given.order != ORDER_UNKNOWN;
	process = given.tid == IPS_NULL ? report__pftrace_process(pf, given.pid) : NULL;
	if (process)
		process->rank = given.rank;
	track = err_stuck(pf->err) ? NULL : get_track(pf, given.uuid);
	if (!track)
		return;
	given.sum = track->sum;
	given.track = track->track;
	given.site = IMPORT_NO_ID;
	given.described = true;
	given.name = !given.name ? track->name : given.name;
	if (!given.name && !given.has_parent && given.tid == IPS_NULL)
		given.name = report__pftrace_process_name(pf, given.pid);
	*track = given;
	if (track->track != IMPORT_NO_ID)
		declare(pf, track);
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct pf_recent *recent_of(struct pftrace *pf, const char *category, const char *name)
{
	const uint64_t hash = ((uint64_t)(uintptr_t)name * 31 + (uint64_t)(uintptr_t)category) *
			      UINT64_C(0x9e3779b97f4a7c15);

	return &pf->recent[hash >> 32 & (PFTRACE_RECENT - 1)];
}

/* The site of a category and a name, which are kept texts or NULL. */
static uint32_t get_site(struct pftrace *pf, const char *category, const char *name)
{
	struct pf_recent *recent;
	uint32_t site = IMPORT_NO_ID;

	name = name ? name : "";
	recent = recent_of(pf, category, name);
	if (recent->name == name && recent->category == category)
		return recent->index;
	if (report__import_name_site(pf->import, category, name, &site, pf->err) == ST_OK)
		*recent = (struct pf_recent){category, name, site};
	return site;
}

/* The index of an argument's name, which is a kept text. */
static uint32_t get_argument(struct pftrace *pf, const char *name)
{
	static const char arguments[] = "arguments";
	struct pf_recent *recent = recent_of(pf, arguments, name);
	uint32_t id = IMPORT_NO_ID;

	if (recent->name == name && recent->category == arguments)
		return recent->index;
	if (report__import_arg_name(pf->import, name, &id, pf->err) == ST_OK)
		*recent = (struct pf_recent){arguments, name, id};
	return id;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* The name of an annotation; NULL: none. *@value: its only other field; with the number 0 if it has
 * none, or several. */
static const char *argument_name(struct pftrace *pf, const struct sequence *sequence,
				 struct import_wire annotation, struct import_wire_field *value)
{
	struct import_wire_field field;
	const char *name = NULL;
	size_t values = 0;

	while (import_wire_next(&annotation, &field)) {
		if (field.number == 10 && pftrace_is_bytes(&field))
			name = report__pftrace_store(pf, &field.bytes);
		else if (field.number == 1 && field.type == IMPORT_WIRE_VARINT)
			name = report__pftrace_interned(sequence, INTERNED_ARGUMENT, field.value);
		else if (values++ == 0)
			*value = field;
	}
	if (values != 1 || import_wire_broken(&annotation))
		value->number = 0;
	return name;
}

static void read_argument(struct pftrace *pf, const struct sequence *sequence,
			  struct import_wire annotation, const char *name, uint32_t id, int depth);

/* A field of an annotation as the argument @name with the index @id; the members of a dictionary
 * are NAME.MEMBER, those of an array NAME[i], of which *@items were read. */
static void read_value(struct pftrace *pf, const struct sequence *sequence,
		       const struct import_wire_field *field, const char *name, uint32_t id,
		       int depth, uint32_t *items)
{
	struct import *import = pf->import;
	struct import_wire_field value;
	char nested[IMPORT_ARG_NAME];
	const char *text;
	uint32_t inner;

	switch (field->number) {
	case 2: /* bool, uint, int, pointer */
	case 3:
	case 4:
	case 7:
		report__import_arg_int(import, id, import_wire_int(field));
		break;
	case 5:
		report__import_arg_real(import, id, import_wire_double(field));
		break;
	case 6: /* a text, JSON */
	case 9:
		text = !pftrace_is_bytes(field) ? NULL : report__pftrace_text(pf, &field->bytes);
		report__import_arg_text(import, id, text);
		break;
	case 17:
		report__import_arg_text(
			import, id,
			report__pftrace_interned(sequence, INTERNED_TEXT, field->value));
		break;
	case 11:
	case 12:
		if (!pftrace_is_bytes(field) || depth == DEPTH_MOST)
			break;
		text = field->number == 12 ? NULL
					   : argument_name(pf, sequence, field->bytes, &value);
		if (text)
			snprintf(nested, sizeof(nested), "%s.%s", name, text);
		else
			snprintf(nested, sizeof(nested), "%s[%u]", name, (*items)++);
		/* not a kept text: there may be any number */
		if (report__import_arg_name(import, nested, &inner, pf->err) == ST_OK)
			read_argument(pf, sequence, field->bytes, nested, inner, depth + 1);
		break;
	default:
		break;
	}
}

static void read_argument(struct pftrace *pf, const struct sequence *sequence,
			  struct import_wire annotation, const char *name, uint32_t id, int depth)
{
	struct import_wire_field field;
	uint32_t items = 0;

	while (!err_stuck(pf->err) && import_wire_next(&annotation, &field))
		read_value(pf, sequence, &field, name, id, depth, &items);
}

/* An annotation of an event. Nearly all have a name and one value, and are walked once. */
static void put_argument(struct pftrace *pf, const struct sequence *sequence,
			 struct import_wire annotation)
{
	struct import_wire_field value;
	const char *name = argument_name(pf, sequence, annotation, &value);
	uint32_t items = 0, id;

	if (!name)
		return;
	id = get_argument(pf, name);
	if (value.number == 0)
		read_argument(pf, sequence, annotation, name, id, 0);
	else if (!err_stuck(pf->err))
		read_value(pf, sequence, &value, name, id, 0, &items);
}

/* ---- events ---------------------------------------------------------------------------------- */

#define FLOWS_OF_EVENT 16
#define MONOTONIC      3 /* the clock */

/* Fields of TrackEvent, and of its LegacyEvent. */
enum event_field {
	EVENT_TIME_DELTA_US = 1,
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ARGUMENT = 4,
	EVENT_LEGACY = 6,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_EXTRA_VALUES = 12,
	EVENT_TIME_US = 16,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_VALUE = 30,
	EVENT_EXTRA_TRACKS = 31,
	EVENT_OLD_FLOWS = 36,
	EVENT_OLD_ENDS = 42,
	EVENT_DOUBLE = 44,
	EVENT_FLOWS = 47,
	EVENT_ENDS = 48,
	EVENT_GPU = 3000 /* its GpuCorrelation */
};

enum legacy_field {
	LEGACY_NAME = 1,
	LEGACY_PHASE = 2,
	LEGACY_DURATION_US = 3,
	LEGACY_ID = 6,
	LEGACY_BIND_ID = 8,
	LEGACY_LOCAL_ID = 10,
	LEGACY_GLOBAL_ID = 11,
	LEGACY_BIND_ENCLOSING = 12,
	LEGACY_DIRECTION = 13,
	LEGACY_PID = 18,
	LEGACY_TID = 19
};

/* TrackEvent.Type. */
enum event_type {
	TYPE_NONE = 0,
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,
	TYPE_STATE = 5, /* its name: that of the state which begins; empty: none */
	TYPE_SPAN = 100 /* of ours: a slice with its duration, phase X */
};

struct pf_event {
	uint64_t type, track;
	bool has_track, has_value, has_time;
	const char *name, *category; /* kept texts; NULL: none */
	double value;
	int64_t ns;
	size_t flow_count, end_count, extra_count, extra_track_count;
	/* the old form */
	uint64_t phase, id, bind_id;
	uint64_t direction; /* of the flow bind_id: 1 in, 2 out, 3 both; 0: none */
	bool bind_enclosing;
	int64_t dur_us, pid, tid;
	/* `at` NULL: none. From the first argument to the last, with what is between them. */
	struct import_wire gpu, arguments;
	/* What is counted above. Not cleared, which took a quarter of the time of an event. */
	uint64_t flows[FLOWS_OF_EVENT], ends[FLOWS_OF_EVENT], extra[8], extra_tracks[8];
};

static void add_category(struct pftrace *pf, struct pf_event *event, const char *text)
{
	char joined[512];

	if (event->category && text) {
		snprintf(joined, sizeof(joined), "%s,%s", event->category, text);
		text = report__import_store(pf->import, joined);
		if (!text)
			err_nomem(pf->err);
	}
	event->category = text ? text : event->category;
}

static void read_legacy(const struct sequence *sequence, struct import_wire message,
			struct pf_event *event)
{
	struct import_wire_field field;

	while (import_wire_next(&message, &field)) {
		switch (field.number) {
		case LEGACY_NAME:
			event->name =
				report__pftrace_interned(sequence, INTERNED_NAME, field.value);
			break;
		case LEGACY_PHASE:
			event->phase = field.value;
			break;
		case LEGACY_DURATION_US:
			event->dur_us = import_wire_int(&field);
			break;
		case LEGACY_ID:
		case LEGACY_LOCAL_ID:
		case LEGACY_GLOBAL_ID:
			event->id = field.value;
			break;
		case LEGACY_BIND_ID:
			event->bind_id = field.value;
			break;
		case LEGACY_BIND_ENCLOSING:
			event->bind_enclosing = field.value != 0;
			break;
		case LEGACY_DIRECTION:
			event->direction = field.value;
			break;
		case LEGACY_PID:
			event->pid = (int32_t)field.value;
			break;
		case LEGACY_TID:
			event->tid = (int32_t)field.value;
			break;
		default:
			break;
		}
	}
}

/* Microseconds of the old form, on the monotonic clock. */
static int64_t us_to_ns(struct pftrace *pf, struct sequence *sequence, int64_t us)
{
	int64_t ns;

	return __builtin_mul_overflow(us, 1000, &ns)
		       ? IPS_NULL
		       : report__pftrace_ns(pf, sequence, MONOTONIC, ns);
}

static void read_event(struct pftrace *pf, struct sequence *sequence, struct import_wire message,
		       struct pf_event *event)
{
	const unsigned char *begun = message.at;
	struct import_wire_field field;

	for (; import_wire_next(&message, &field); begun = message.at) {
		switch (field.number) {
		case EVENT_TIME_DELTA_US:
			if (__builtin_add_overflow(sequence->reference_us, import_wire_int(&field),
						   &sequence->reference_us))
				sequence->reference_us = 0;
			event->ns = us_to_ns(pf, sequence, sequence->reference_us);
			event->has_time = true;
			break;
		case EVENT_TIME_US:
			event->ns = us_to_ns(pf, sequence, import_wire_int(&field));
			event->has_time = true;
			break;
		case EVENT_CATEGORY_IIDS: {
			uint64_t iids[16];
			const size_t count = report__pftrace_numbers(&field, false, iids, 16, 0);

			for (size_t i = 0; i < count; i++)
				add_category(pf, event,
					     report__pftrace_interned(sequence, INTERNED_CATEGORY,
								      iids[i]));
			break;
		}
		case EVENT_ARGUMENT: /* read when the event's track is known */
			if (!event->arguments.at)
				event->arguments.at = begun;
			event->arguments.end = message.at;
			break;
		case EVENT_LEGACY:
			if (pftrace_is_bytes(&field))
				read_legacy(sequence, field.bytes, event);
			break;
		case EVENT_TYPE:
			event->type = field.value;
			break;
		case EVENT_NAME_IID:
			event->name =
				report__pftrace_interned(sequence, INTERNED_NAME, field.value);
			break;
		case EVENT_TRACK:
			event->track = field.value;
			event->has_track = true;
			break;
		case EVENT_EXTRA_VALUES:
			event->extra_count = report__pftrace_numbers(&field, false, event->extra, 8,
								     event->extra_count);
			break;
		case EVENT_EXTRA_TRACKS:
			event->extra_track_count = report__pftrace_numbers(
				&field, false, event->extra_tracks, 8, event->extra_track_count);
			break;
		case EVENT_CATEGORY:
			if (pftrace_is_bytes(&field))
				add_category(pf, event, report__pftrace_store(pf, &field.bytes));
			break;
		case EVENT_NAME:
			if (pftrace_is_bytes(&field))
				event->name = report__pftrace_store(pf, &field.bytes);
			break;
		case EVENT_VALUE:
			event->value = (double)import_wire_int(&field);
			event->has_value = true;
			break;
		case EVENT_DOUBLE:
			event->value = import_wire_double(&field);
			event->has_value = true;
			break;
		case EVENT_OLD_FLOWS:
		case EVENT_FLOWS:
			event->flow_count = report__pftrace_numbers(
				&field, field.number == EVENT_FLOWS, event->flows, FLOWS_OF_EVENT,
				event->flow_count);
			break;
		case EVENT_OLD_ENDS:
		case EVENT_ENDS:
			event->end_count = report__pftrace_numbers(
				&field, field.number == EVENT_ENDS, event->ends, FLOWS_OF_EVENT,
				event->end_count);
			break;
		case EVENT_GPU:
			if (pftrace_is_bytes(&field))
				event->gpu = field.bytes;
			break;
		default:
			break;
		}
	}
}

static void put_sample(struct pftrace *pf, struct pf_track *track, int64_t ns, double value)
{
	pf->import->counts->events++;
	if (!isfinite(value)) {
		report__import_left(pf->import, REPORT_IMPORT_LEFT_NO_NUMBER);
		return;
	}
	value *= (double)track->multiplier;
	if (track->incremental)
		value = track->sum += value;
	if (track->track == IMPORT_NO_ID)
		declare(pf, track);
	if (!err_stuck(pf->err) && track->site == IMPORT_NO_ID)
		report__import_name_site(pf->import, NULL, track->name ? track->name : "counter",
					 &track->site, pf->err);
	if (err_stuck(pf->err))
		return;
	if (track->track == IMPORT_NO_ID)
		report__import_left(pf->import, REPORT_IMPORT_LEFT_TOO_MANY);
	else
		report__import_sample(pf->import, track->track, track->site, ns, value, pf->err);
}

/* The sides of flows at an event. */
static void put_flows(struct pftrace *pf, const struct pf_event *event, uint32_t track)
{
	uint32_t site;

	if (event->flow_count + event->end_count == 0)
		return;
	site = get_site(pf, NULL, "flow");
	for (size_t i = 0; i < event->flow_count + event->end_count && !err_stuck(pf->err); i++) {
		const bool ends = i >= event->flow_count;
		const uint64_t id = ends ? event->ends[i - event->flow_count] : event->flows[i];

		pf->import->counts->events++;
		report__import_flow(pf->import, track, site, event->ns,
				    ends ? IMPORT_FLOW_END : IMPORT_FLOW_ON, id, pf->err);
	}
}

/* An event of Chrome's phases s, t and f, which is a side of a flow. Ids of flows in the old form
 * count apart in each category and name. */
static void put_old_flow(struct pftrace *pf, const struct pf_event *event, uint32_t track,
			 uint32_t site)
{
	const enum import_flow side = event->phase == 's'     ? IMPORT_FLOW_START
				      : event->phase == 't'   ? IMPORT_FLOW_STEP
				      : event->bind_enclosing ? IMPORT_FLOW_END
							      : IMPORT_FLOW_NEXT;
	const char *const texts[] = {event->category, event->name};
	uint64_t key = import_hash(OLD_FLOWS, &event->id, sizeof(event->id));

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		key = texts[i] ? import_hash(key, texts[i], strlen(texts[i])) : key;
	report__import_flow(pf->import, track, site, event->ns, side, key, pf->err);
}

/* The side of a flow that a slice of the old form names, which counts as an event of its own. */
static void put_bound_flow(struct pftrace *pf, const struct pf_event *event, uint32_t track)
{
	static const enum import_flow sides[] = {
		[1] = IMPORT_FLOW_END, [2] = IMPORT_FLOW_START, [3] = IMPORT_FLOW_STEP};
	const uint64_t key = import_hash(OLD_FLOWS, &event->bind_id, sizeof(event->bind_id));
	uint32_t site;

	if (event->direction == 0 || event->direction >= ARRAY_LEN(sides) ||
	    event->type == TYPE_END)
		return;
	site = get_site(pf, NULL, "flow");
	pf->import->counts->events++;
	if (!err_stuck(pf->err))
		report__import_flow(pf->import, track, site, event->ns, sides[event->direction],
				    key, pf->err);
}

/* The track of an event in the old form: of a thread, or of asynchronous events of a process. */
static uint32_t legacy_track(struct pftrace *pf, const struct sequence *sequence,
			     const struct pf_event *event, bool async)
{
	const int64_t pid = event->pid != IPS_NULL ? event->pid : sequence->pid;
	const int64_t tid = event->tid != IPS_NULL ? event->tid : sequence->tid;
	char process[32], thread[32];
	struct import_track own = {.kind = async ? IMPORT_ASYNC : IMPORT_THREAD,
				   .process = process,
				   .thread = !async            ? thread
					     : event->category ? event->category
							       : "",
				   .process_sort = IPS_NULL};
	uint32_t track = IMPORT_NO_ID;

	snprintf(process, sizeof(process), "%" PRId64, pid == IPS_NULL ? 0 : pid);
	snprintf(thread, sizeof(thread), "%" PRId64, tid == IPS_NULL ? 0 : tid);
	own.process_name = report__pftrace_process_name(pf, pid);
	report__import_track(pf->import, &own, &track, pf->err);
	return track;
}

static bool is_phase(uint64_t phase, const char *of)
{
	return phase > 0 && phase < 128 && strchr(of, (int)phase);
}

/* What Chrome's phases are in the new form. */
static enum event_type type_of_phase(uint64_t phase)
{
	if (is_phase(phase, "BbS"))
		return TYPE_BEGIN;
	if (is_phase(phase, "EeF"))
		return TYPE_END;
	if (is_phase(phase, "IiRnT"))
		return TYPE_INSTANT;
	return phase == 'X' ? TYPE_SPAN : TYPE_NONE;
}

/* The track of an event, declared; IMPORT_NO_ID: too many, or a failure. */
static uint32_t track_of(struct pftrace *pf, const struct sequence *sequence,
			 const struct pf_event *event, bool async)
{
	struct pf_track *track;

	if (!event->has_track || async || event->pid != IPS_NULL || event->tid != IPS_NULL)
		return legacy_track(pf, sequence, event, async);
	track = get_track(pf, event->track);
	if (track && track->track == IMPORT_NO_ID) {
		/* A track without a name has that of its first event, as Perfetto shows it; but a
		 * state's name says nothing of the others. */
		if (!track->name && track->pid == IPS_NULL && track->uuid != 0 &&
		    event->type != TYPE_STATE)
			track->name = event->name;
		declare(pf, track);
	}
	return track ? track->track : IMPORT_NO_ID;
}

static void put_event(struct pftrace *pf, struct sequence *sequence, struct pf_event *event)
{
	struct import *import = pf->import;
	struct import_wire arguments = event->arguments;
	struct import_wire_field field;
	const bool async = is_phase(event->phase, "benSFT");
	const bool is_flow = event->type == TYPE_NONE && is_phase(event->phase, "stf");
	const uint64_t pair = async ? (event->id << 1 | 1) : 0;
	uint32_t track, site;
	int64_t dur_ns;

	if (event->type == TYPE_NONE)
		event->type = type_of_phase(event->phase);
	if ((event->type == TYPE_NONE && !is_flow) || event->type == TYPE_COUNTER ||
	    (event->type > TYPE_STATE && event->type != TYPE_SPAN)) {
		report__import_left(import, REPORT_IMPORT_LEFT_PHASE);
		return;
	}
	track = track_of(pf, sequence, event, async);
	if (track == IMPORT_NO_ID) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	site = event->type == TYPE_STATE && (!event->name || event->name[0] == '\0')
		       ? IMPORT_NO_ID
		       : get_site(pf, event->category, event->name);
	if (err_stuck(pf->err))
		return;
	if (is_flow) {
		put_old_flow(pf, event, track, site);
		return;
	}
	while (!err_stuck(pf->err) && import_wire_next(&arguments, &field)) {
		if (field.number == EVENT_ARGUMENT && pftrace_is_bytes(&field))
			put_argument(pf, sequence, field.bytes);
	}
	if (event->gpu.at && (event->type == TYPE_BEGIN || event->type == TYPE_SPAN))
		report__pftrace_gpu_call(pf, event->gpu);
	if (err_stuck(pf->err))
		return;
	if (event->type == TYPE_BEGIN)
		report__import_begin(import, track, site, event->ns, pair, pf->err);
	else if (event->type == TYPE_END)
		report__import_end(import, track, async ? site : IMPORT_NO_ID, event->ns, pair,
				   pf->err);
	else if (event->type == TYPE_SPAN)
		report__import_span(import, track, site, event->ns,
				    __builtin_mul_overflow(event->dur_us, 1000, &dur_ns) ? INT64_MAX
											 : dur_ns,
				    pf->err);
	else if (event->type == TYPE_STATE)
		report__import_state(import, track, site, event->ns, pf->err);
	else
		report__import_instant(import, track, site, event->ns, pf->err);
	if (event->gpu.at)
		report__pftrace_gpu_wait(pf, event->gpu, track, event->ns);
	put_bound_flow(pf, event, track);
	put_flows(pf, event, track);
}

void report__pftrace_event(struct pftrace *pf, struct sequence *sequence,
			   struct import_wire message, bool has_time, int64_t ns)
{
	struct import *import = pf->import;
	struct pf_event event;
	struct pf_track *track;

	memset(&event, 0, offsetof(struct pf_event, flows));
	event.pid = IPS_NULL;
	event.tid = IPS_NULL;
	event.ns = ns;
	event.has_time = has_time;
	read_event(pf, sequence, message, &event);
	if (!event.has_track && sequence->has_track) {
		event.track = sequence->track;
		event.has_track = true;
	}
	event.has_track = event.has_track || (sequence->tid == IPS_NULL && event.phase == 0);
	for (size_t i = 0; i < event.extra_count && event.has_time; i++) {
		const uint64_t *tracks =
			event.extra_track_count > 0 ? event.extra_tracks : sequence->extra;

		if (i >=
		    (event.extra_track_count > 0 ? event.extra_track_count : sequence->extra_count))
			break;
		track = get_track(pf, tracks[i]);
		if (track)
			put_sample(pf, track, event.ns, (double)(int64_t)event.extra[i]);
	}
	if (err_stuck(pf->err))
		return;
	if (event.type == TYPE_COUNTER && event.has_value && event.has_time) {
		track = get_track(pf, event.track);
		if (track)
			put_sample(pf, track, event.ns, event.value);
		return;
	}
	import->counts->events++;
	if (!event.has_time || event.ns == IPS_NULL)
		report__import_left(import, REPORT_IMPORT_LEFT_NO_TIME);
	else
		put_event(pf, sequence, &event);
}
