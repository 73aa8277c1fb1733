/*
 * Record sorted records.
 *
 * Open flows: long traces reuse ids, and tracks are recorded concurrently, so every arrow gets a
 * unique number.
 *
 * Spans of a track nest. A span that overlaps the end of an open one goes to the thread's next lane
 * that has room for it, or to a new one. Asynchronous spans of one id stay together: a lane belongs
 * to the id of its outermost span while that is open.
 */
#include <string.h>

#include "common/map.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_internal.h"

/* ---- flows ----------------------------------------------------------------------------------- */

/* Maps a flow's hash to its link number and a bit: the link was begun by a flow start. */
struct import_flows {
	struct map map;
	size_t starts; /* open links begun by a start */
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

static uint64_t link_end(struct import *import, uint64_t key)
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

static uint64_t link_begin(struct import *import, uint64_t key, bool start, bool *lost)
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

/* ---- recording ------------------------------------------------------------------------------- */

#define CHECK_EVERY 16384 /* records between checks for progress and failure */

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Pop spans that ended before @ns. */
static void close_until(struct import_lane *lane, int64_t ns)
{
	while (lane->count > 0 && lane->open[lane->count - 1].end_ns <= ns)
		lane->count--;
}

/* Return true if the lane has room for a span until @end_ns. */
static bool has_room(struct import_lane *lane, const struct import_record *record, bool device,
		     int64_t end_ns)
{
	const struct import_open *top;

	close_until(lane, record->time_ns);
	if (lane->count == 0)
		return true;
	top = &lane->open[lane->count - 1];
	return record->async == 0 && top->end_ns >= end_ns && !(device && top->device);
}

/* The same for a span nested in an asynchronous span. */
static bool has_inner_room(struct import_lane *lane, const struct import_record *record,
			   int64_t end_ns)
{
	close_until(lane, record->time_ns);
	return lane->count > 0 && lane->async == record->value &&
	       lane->open[lane->count - 1].end_ns >= end_ns;
}

/* Find a lane for a span; NULL: too many tracks, or a failure. */
static struct import_lane *find_lane(struct import *import, struct import_thread *thread,
				     const struct import_record *record, bool device,
				     struct err *err)
{
	/* A span without an end ends with the enclosing one. */
	int64_t end_ns = record->time_ns + max(0, record->dur_ns);

	for (size_t i = 0; i < thread->lane_count && record->async > 1; i++)
		if (has_inner_room(&thread->lanes[i], record, end_ns))
			return &thread->lanes[i];
	for (size_t i = 0; i < thread->lane_count; i++) {
		if (has_room(&thread->lanes[i], record, device, end_ns)) {
			import->counts->notes[REPORT_IMPORT_NOTE_OVERLAP] +=
				i > 0 && record->async == 0;
			return &thread->lanes[i];
		}
	}
	import->counts->notes[REPORT_IMPORT_NOTE_OVERLAP] += record->async == 0;
	return report__import_lane_add(import, thread, err);
}

/* ---- keys and arguments ---------------------------------------------------------------------- */

static const struct import_arg *arg_at(const struct import_record *record, size_t at)
{
	return (const struct import_arg *)(const void *)((const unsigned char *)record + at);
}

/* Store @arg in @keys if it is a key, as in traces exported by ipuscope. */
static bool parse_key(const struct import_arg *arg, struct ips_keys *keys)
{
	static const size_t fields[] = {
		[IMPORT_NAME_EPOCH] = offsetof(struct ips_keys, epoch),
		[IMPORT_NAME_EXECUTION] = offsetof(struct ips_keys, execution),
		[IMPORT_NAME_WEIGHT_UPDATE] = offsetof(struct ips_keys, weight_update),
		[IMPORT_NAME_STEP] = offsetof(struct ips_keys, step),
		[IMPORT_NAME_MICROBATCH] = offsetof(struct ips_keys, microbatch),
		[IMPORT_NAME_REPLICA] = offsetof(struct ips_keys, replica),
		[IMPORT_NAME_IPU] = offsetof(struct ips_keys, ipu),
		[IMPORT_NAME_STAGE] = offsetof(struct ips_keys, stage),
	};

	if (arg->name == IMPORT_NAME_MODE && arg->type == IMPORT_ARG_STRING) {
		static const char *const modes[] = {"train", "evaluate", "predict"};

		for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
			if (strcmp(import_arg_text(arg), modes[i]) == 0)
				keys->mode = (uint8_t)(IPS_TRAIN + i);
		}
		return keys->mode != IPS_MODE_NULL;
	}
	if (arg->name == IMPORT_NAME_PHASE && arg->type == IMPORT_ARG_STRING) {
		const char *text = import_arg_text(arg);

		if (text[0] == 0 || text[1] != 0 || !strchr("FBWRU", text[0]))
			return false;
		keys->phase = text[0];
		return true;
	}
	if (arg->name >= ARRAY_LEN(fields) || arg->type != IMPORT_ARG_INT || arg->value.i < 0)
		return false;
	memcpy((char *)keys + fields[arg->name], &arg->value.i, sizeof(arg->value.i));
	return true;
}

/* What the arguments of a record say. */
struct record_facts {
	struct ips_keys keys;
	size_t others;                /* number of other arguments */
	const struct import_arg *row; /* of a call, kernel or copy, or NULL */
};

static int64_t launch_key(const struct import_arg *row)
{
	switch ((enum ips_table)row->name) {
	case IPS_TABLE_call:
		return ((const struct ips_call *)(const void *)(row + 1))->launch_key;
	case IPS_TABLE_kernel:
		return ((const struct ips_kernel *)(const void *)(row + 1))->launch_key;
	case IPS_TABLE_copy:
		return ((const struct ips_copy *)(const void *)(row + 1))->launch_key;
	default:
		return IPS_NULL;
	}
}

static void read_facts(const struct import_record *record, struct record_facts *facts)
{
	static const struct ips_keys none = IPS_KEYS_NULL;
	const struct import_arg *arg;

	facts->keys = none;
	facts->others = 0;
	facts->row = NULL;

	for (size_t at = sizeof(*record); at < record->bytes; at += import_arg_size(arg)) {
		arg = arg_at(record, at);
		if (arg->type == IMPORT_ARG_ROW && arg->name != IPS_TABLE_range)
			facts->row = arg;
		if (arg->type == IMPORT_ARG_ROW || arg->name >= IMPORT_NAME_KEYS ||
		    !parse_key(arg, &facts->keys))
			facts->others++;
	}
}

/* Functions that record an argument: of a span, or of an instant. */
struct arg_calls {
	void (*integer)(struct ips_track *track, const char *name, int64_t value);
	void (*real)(struct ips_track *track, const char *name, double value);
	void (*text)(struct ips_track *track, const char *name, const char *value);
};
static const struct arg_calls span_calls = {ips_span_arg_int, ips_span_arg_real,
					    ips_span_arg_long_text};
static const struct arg_calls instant_calls = {ips_instant_arg_int, ips_instant_arg_real,
					       ips_instant_arg_text};

static void record_arg(struct ips_track *track, const struct arg_calls *calls, const char *name,
		       const struct import_arg *arg)
{
	switch ((enum import_arg_type)arg->type) {
	case IMPORT_ARG_INT:
		calls->integer(track, name, arg->value.i);
		break;
	case IMPORT_ARG_REAL:
		calls->real(track, name, arg->value.r);
		break;
	case IMPORT_ARG_NULL:
		calls->text(track, name, NULL);
		break;
	case IMPORT_ARG_STRING:
		calls->text(track, name, import_arg_text(arg));
		break;
	case IMPORT_ARG_ROW: /* about a span */
		if (calls == &span_calls)
			ips_span_row(track, (enum ips_table)arg->name, arg + 1);
		break;
	}
}

static void record_args(struct import *import, struct ips_track *track,
			const struct arg_calls *calls, const struct import_record *record)
{
	const struct import_arg *arg;
	struct ips_keys keys = IPS_KEYS_NULL;
	const char *name;

	for (size_t at = sizeof(*record); at < record->bytes; at += import_arg_size(arg)) {
		arg = arg_at(record, at);
		if (arg->type == IMPORT_ARG_ROW) {
			record_arg(track, calls, NULL, arg);
			continue;
		}
		if (arg->name < IMPORT_NAME_KEYS && parse_key(arg, &keys))
			continue;
		name = import->scan.names.clean[arg->name];
		/* The export puts "arg." before the name of a key. */
		if (import->own && strncmp(name, "arg.", 4) == 0)
			name += 4;
		record_arg(track, calls, name, arg);
	}
	if (record->unfinished)
		ips_span_arg_int(track, import->scan.names.clean[IMPORT_NAME_UNFINISHED], 1);
}

/* ---- spans ----------------------------------------------------------------------------------- */

static struct ips_site *site_at(const struct import *import, uint32_t site)
{
	return import->sites.items[site].site;
}

/* Push the span onto its lane; *@dur_ns: its recorded duration. */
static bool open_span(struct import *import, struct import_lane *lane,
		      const struct import_record *record, bool device, int64_t *dur_ns)
{
	const struct import_open *top = lane->count == 0 ? NULL : &lane->open[lane->count - 1];
	int64_t end_ns = record->time_ns + record->dur_ns;

	if (record->dur_ns < 0)
		end_ns = !top ? import->last_ns : top->end_ns;
	*dur_ns = end_ns - record->time_ns;
	if (mem_grow(&lane->open, &lane->capacity, lane->count + 1, sizeof(*lane->open)) != 0)
		return false;
	if (lane->count == 0)
		lane->async = record->value;
	lane->open[lane->count++] = (struct import_open){record->time_ns, end_ns, device};
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

#define CALLS_FIRST ((size_t)4096)

static struct import_call *call_place(const struct import *import, int64_t key)
{
	return &import->calls[(uint64_t)key & (import->call_places - 1)];
}

/* Double the table of calls. What shared no place shares none in the larger one. */
static bool grow_calls(struct import *import)
{
	const size_t before = import->call_places;
	struct import_call *old = import->calls;

	import->call_places = before == 0 ? CALLS_FIRST : 2 * before;
	import->calls = mem_alloc(import->call_places * sizeof(*import->calls));
	for (size_t i = 0; i < import->call_places && import->calls; i++)
		import->calls[i].key = IPS_NULL;
	for (size_t i = 0; i < before && import->calls; i++) {
		if (old[i].key != IPS_NULL)
			*call_place(import, old[i].key) = old[i];
	}
	mem_free(old);
	if (!import->calls)
		import->call_places = 0;
	return import->calls != NULL;
}

/* The step of a span: of what a call launched, the call's; else that of its process at the time it
 * begins, on whichever thread the step is. *@step IPS_NULL: none; false: out of memory. */
static bool find_step(struct import *import, const struct import_record *record,
		      const struct record_facts *facts, int64_t dur_ns, int64_t *step)
{
	const uint32_t id = import->threads.items[record->thread].process;
	static struct import_process nobody;
	struct import_process *process =
		id == IMPORT_NO_ID ? &nobody : &import->processes.items[id];
	const int64_t key = !facts->row ? IPS_NULL : launch_key(facts->row);
	const struct import_call *call =
		key == IPS_NULL || !import->calls ? NULL : call_place(import, key);

	*step = import->sites.items[record->site].step;
	if (*step != IPS_NULL) {
		process->step = *step;
		process->step_end_ns = record->time_ns + dur_ns;
		return true;
	}
	if (record->time_ns < process->step_end_ns)
		*step = process->step;
	if (facts->row && facts->row->name == IPS_TABLE_call && key != IPS_NULL) {
		/* What the call launches has its step. The keys of a trace grow with time, so
		 * recent ones never share a place in the largest table. */
		while (import->call_places == 0 || (import->call_places < IMPORT_MOST_CALLS &&
						    call_place(import, key)->key != IPS_NULL &&
						    call_place(import, key)->key != key)) {
			if (!grow_calls(import))
				return false;
		}
		*call_place(import, key) = (struct import_call){key, *step};
		return true;
	}
	if (call && call->key == key)
		*step = call->step;
	return true;
}

static void record_span(struct import *import, const struct import_record *record, struct err *err)
{
	struct import_thread *thread = &import->threads.items[record->thread];
	struct record_facts facts;
	struct import_lane *lane;
	int64_t step, dur_ns;
	bool device;

	read_facts(record, &facts);
	device = facts.row && facts.row->name != IPS_TABLE_call;
	lane = find_lane(import, thread, record, device, err);
	if (err_stuck(err))
		return;
	if (!lane) {
		if (record->paired) {
			import->counts->used[REPORT_IMPORT_BEGIN]--;
			import->counts->used[REPORT_IMPORT_END] -= !record->unfinished;
			import->counts->left[REPORT_IMPORT_LEFT_TOO_MANY] += !record->unfinished;
		} else {
			import->counts->used[REPORT_IMPORT_SPAN]--;
		}
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	if (!open_span(import, lane, record, device, &dur_ns) ||
	    !find_step(import, record, &facts, dur_ns, &step)) {
		err_nomem(err);
		return;
	}
	if (facts.keys.step == IPS_NULL)
		facts.keys.step = step;
	ips_track_set_keys(lane->track, &facts.keys);
	ips_span_at(lane->track, site_at(import, record->site),
		    record->time_ns - import->counts->base_ns, dur_ns);
	if (facts.others > 0 || record->unfinished)
		record_args(import, lane->track, &span_calls, record);
	/* Flows that bind to the thread's next span end here. */
	for (size_t i = 0; i < thread->next_count; i++)
		ips_flow_in(lane->track, site_at(import, thread->next[i].site),
			    thread->next[i].link);
	import->counts->flows += thread->next_count;
	import->counts->used[REPORT_IMPORT_FLOW] += thread->next_count;
	thread->next_count = 0;
	import->counts->spans++;
}

/* ---- points ---------------------------------------------------------------------------------- */

static void record_instant(struct import *import, const struct import_record *record,
			   struct err *err)
{
	struct import_thread *thread = &import->threads.items[record->thread];
	struct ips_track *track = thread->lanes[0].track;
	struct record_facts facts;

	(void)err;
	read_facts(record, &facts);
	ips_track_set_keys(track, &facts.keys);
	ips_instant_at(track, site_at(import, record->site),
		       record->time_ns - import->counts->base_ns);
	if (facts.others > 0)
		record_args(import, track, &instant_calls, record);
	import->counts->instants++;
}

static void record_sample(struct import *import, const struct import_record *record,
			  struct err *err)
{
	struct import_thread *thread = &import->threads.items[record->thread];
	double value;

	(void)err;
	memcpy(&value, &record->value, sizeof(value));
	ips_counter_at(thread->lanes[0].track, site_at(import, record->site),
		       record->time_ns - import->counts->base_ns, value);
	import->counts->counters++;
}

static void record_memory(struct import *import, const struct import_record *record,
			  struct err *err)
{
	struct ips_memory_event event;
	int code;

	memcpy(&event, arg_at(record, sizeof(*record)) + 1, sizeof(event));
	event.time_ns -= import->counts->base_ns;
	code = ips_append_memory_event(import->recording, &event);
	import->counts->memory_events++;
	if (code != 0)
		err_set(err, (enum status)code, "%s", ips_status_text(code));
}

/* ---- flows ----------------------------------------------------------------------------------- */

/* Find the lane of the innermost span open at a record's time (inclusive of its end). If lanes
 * overlap, the span that started last wins, then the one that ends first. NULL: no span is open,
 * which is counted. */
static struct import_lane *find_open_lane(struct import *import, const struct import_record *record)
{
	struct import_thread *thread = &import->threads.items[record->thread];
	struct import_lane *best = NULL;
	struct import_open top, best_top = {INT64_MIN, INT64_MAX, 0};

	for (size_t i = 0; i < thread->lane_count; i++) {
		struct import_lane *lane = &thread->lanes[i];

		while (lane->count > 0 && lane->open[lane->count - 1].end_ns < record->time_ns)
			lane->count--;
		if (lane->count == 0)
			continue;
		top = lane->open[lane->count - 1];
		if (top.start_ns > best_top.start_ns ||
		    (top.start_ns == best_top.start_ns && top.end_ns < best_top.end_ns)) {
			best = lane;
			best_top = top;
		}
	}
	if (!best)
		report__import_left(import, REPORT_IMPORT_LEFT_FLOW_NO_SPAN);
	return best;
}

static void flow_start(struct import *import, const struct import_record *record, struct err *err)
{
	struct import_lane *lane = find_open_lane(import, record);
	uint64_t link;
	bool lost;

	(void)err;
	if (!lane)
		return;
	link = link_begin(import, record->value, true, &lost);
	if (link == 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	if (lost) {
		report__import_left(import, REPORT_IMPORT_LEFT_FLOW_NO_END);
		import->counts->used[REPORT_IMPORT_FLOW]--;
	}
	import_used(import, REPORT_IMPORT_FLOW);
	ips_flow_out_at(lane->track, site_at(import, record->site), link,
			record->time_ns - import->counts->base_ns);
}

/* End an arrow; a step also begins the next one. */
static void flow_end(struct import *import, const struct import_record *record, struct err *err)
{
	struct import_lane *lane = find_open_lane(import, record);
	uint64_t link;
	bool lost;

	(void)err;
	if (!lane)
		return;
	link = link_end(import, record->value);
	if (link == 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_FLOW_NO_START);
		return;
	}
	ips_flow_in_at(lane->track, site_at(import, record->site), link,
		       record->time_ns - import->counts->base_ns);
	import->counts->flows++;
	import_used(import, REPORT_IMPORT_FLOW);
	if (record->kind == IMPORT_RECORD_FLOW_END)
		return;
	link = link_begin(import, record->value, false, &lost);
	if (link != 0)
		ips_flow_out_at(lane->track, site_at(import, record->site), link,
				record->time_ns - import->counts->base_ns);
}

static void flow_on(struct import *import, const struct import_record *record, struct err *err)
{
	size_t item;

	MAP_FIND(item, &import->flows->map, record->value, true);
	if (item == MAP_NONE)
		flow_start(import, record, err);
	else
		flow_end(import, record, err);
}

/* A side that names its span, which was recorded just before. Its flow may end before it starts: of
 * a span that began earlier than the one that it comes from. */
static void flow_of_span(struct import *import, const struct import_record *record, struct err *err)
{
	struct import_lane *lane = find_open_lane(import, record);
	const int64_t time_ns = record->time_ns - import->counts->base_ns;
	uint64_t link;
	bool lost;

	(void)err;
	if (!lane)
		return;
	link = link_end(import, record->value);
	if (link != 0)
		import->counts->flows++;
	else
		link = link_begin(import, record->value, true, &lost);
	if (link == 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	import_used(import, REPORT_IMPORT_FLOW);
	if (record->kind == IMPORT_RECORD_SPAN_FLOW_OUT)
		ips_flow_out_at(lane->track, site_at(import, record->site), link, time_ns);
	else
		ips_flow_in_at(lane->track, site_at(import, record->site), link, time_ns);
}

static void flow_next(struct import *import, const struct import_record *record, struct err *err)
{
	struct import_thread *thread = &import->threads.items[record->thread];
	uint64_t link = link_end(import, record->value);

	if (link == 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_FLOW_NO_START);
		return;
	}
	if (thread->next_count >= IMPORT_MOST_OPEN) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	if (mem_grow(&thread->next, &thread->next_capacity, thread->next_count + 1,
		     sizeof(*thread->next)) != 0) {
		err_nomem(err);
		return;
	}
	thread->next[thread->next_count++] = (struct import_next){record->site, link};
}

/* ---- all records ----------------------------------------------------------------------------- */

static void (*const record_functions[])(struct import *import, const struct import_record *record,
					struct err *err) = {
	[IMPORT_RECORD_FLOW_NEXT] = flow_next,       [IMPORT_RECORD_SPAN] = record_span,
	[IMPORT_RECORD_INSTANT] = record_instant,    [IMPORT_RECORD_SAMPLE] = record_sample,
	[IMPORT_RECORD_MEMORY] = record_memory,      [IMPORT_RECORD_FLOW_START] = flow_start,
	[IMPORT_RECORD_FLOW_STEP] = flow_end,        [IMPORT_RECORD_FLOW_END] = flow_end,
	[IMPORT_RECORD_FLOW_ON] = flow_on,           [IMPORT_RECORD_SPAN_FLOW_OUT] = flow_of_span,
	[IMPORT_RECORD_SPAN_FLOW_IN] = flow_of_span,
};

enum status report__import_record(struct import *import, struct err *err)
{
	struct report_import_counts *counts = import->counts;
	const struct import_record *record;

	if (report__import_sorter_read(import->main, err) != ST_OK)
		return err->status;
	while ((record = report__import_sorter_next(import->main, err))) {
		char why[ERR_TEXT_SIZE];
		int code;

		/* Launches are linked by their number, which says more: a graph's launch has one
		 * flow that starts and hundreds that end, or none. */
		if ((record->kind >= IMPORT_RECORD_FLOW_START ||
		     record->kind == IMPORT_RECORD_FLOW_NEXT) &&
		    import->linked && import->sites.items[record->site].kineto == KINETO_LAUNCH)
			import_used(import, REPORT_IMPORT_LAUNCH);
		else
			record_functions[record->kind](import, record, err);
		if (err_stuck(err) || ++import->recorded % CHECK_EVERY != 0)
			continue;
		code = ips_recording_status(import->recording, why, sizeof(why));
		if (code != 0)
			err_set(err, (enum status)code, "%s", why);
		report__import_progress(
			import, (int)(import->recorded * 1000 / (import->records + 1)), err);
	}
	/* Flow starts without an end, and flow ends without a following span. */
	counts->left[REPORT_IMPORT_LEFT_FLOW_NO_END] += import->flows->starts;
	counts->used[REPORT_IMPORT_FLOW] -= import->flows->starts;
	for (size_t i = 0; i < import->threads.table.count; i++)
		counts->left[REPORT_IMPORT_LEFT_FLOW_NO_SPAN] +=
			import->threads.items[i].next_count;
	return err->status;
}
