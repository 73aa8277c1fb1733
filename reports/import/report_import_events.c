/*
 * Convert events to records, by phase. Also read what a trace tells about itself: names and order
 * of processes and threads (events of phase M), and top-level values beside the events, which are
 * stored in meta as `trace.KEY`.
 *
 * Events with a counterpart elsewhere in the file (begins and ends, flows) become records as they
 * are; they are matched and counted after sorting. All other events are counted here.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "reports/import/report_import_internal.h"

/* ---- events of phase M ----------------------------------------------------------------------- */

static enum status set_text(char **to, const struct import_arg *arg, struct err *err)
{
	char number[32];
	char *copy;

	snprintf(number, sizeof(number), "%" PRId64, arg->value.i);
	copy = mem_strdup(arg->type == IMPORT_ARG_STRING ? import_arg_text(arg) : number);
	if (!copy)
		return err_nomem(err);
	mem_free(*to);
	*to = copy;
	return ST_OK;
}

enum metadata_kind {
	PROCESS_NAME,
	PROCESS_LABELS,
	PROCESS_SORT,
	THREAD_NAME,
	THREAD_SORT
};

static const struct {
	const char *name;
	enum metadata_kind metadata_kind;
	enum import_name arg;
} metadata[] = {
	{"process_name", PROCESS_NAME, IMPORT_NAME_NAME},
	{"process_labels", PROCESS_LABELS, IMPORT_NAME_LABELS},
	{"process_sort_index", PROCESS_SORT, IMPORT_NAME_SORT_INDEX},
	{"thread_name", THREAD_NAME, IMPORT_NAME_NAME},
	{"thread_sort_index", THREAD_SORT, IMPORT_NAME_SORT_INDEX},
};

/* Traces exported by ipuscope have the track and its parent beside the displayed name, unless the
 * track was split into lanes, and the clock. */
static enum status name_thread(struct import_thread *thread, const struct import_event *event,
			       const struct import_arg *name, struct err *err)
{
	const struct import_arg *track = report__import_find_arg(event, IMPORT_NAME_TRACK);
	const struct import_arg *ipu = report__import_find_arg(event, IMPORT_NAME_IPU);
	const struct import_arg *clock = report__import_find_arg(event, IMPORT_NAME_CLOCK);
	const struct import_arg *parent = report__import_find_arg(event, IMPORT_NAME_PARENT);
	enum status status;

	if (ipu && ipu->type == IMPORT_ARG_INT)
		thread->ipu = ipu->value.i;
	if (clock && clock->type == IMPORT_ARG_STRING)
		thread->clock =
			strcmp(import_arg_text(clock), "device") == 0 ? IPS_DEVICE : IPS_HOST;
	thread->exported = track != NULL;
	if (!track || report__import_find_arg(event, IMPORT_NAME_LANE))
		return set_text(&thread->name, name, err);
	status = set_text(&thread->shown, name, err);
	if (status == ST_OK && parent)
		status = set_text(&thread->parent, parent, err);
	return status == ST_OK ? set_text(&thread->name, track, err) : status;
}

static enum status apply_metadata(struct import *import, const struct import_event *event,
				  enum metadata_kind metadata_kind, const struct import_arg *arg,
				  struct err *err)
{
	bool of_thread = metadata_kind == THREAD_NAME || metadata_kind == THREAD_SORT;
	uint32_t id =
		of_thread ? report__import_thread(import, IMPORT_THREAD, event, err)
			  : report__import_process(import, &event->fields[IMPORT_FIELD_PID], err);

	if (id == IMPORT_NO_ID) {
		if (err->status == ST_OK)
			report__import_left_at(import, REPORT_IMPORT_LEFT_TOO_MANY, event->offset);
		return err->status;
	}
	import_used(import, REPORT_IMPORT_NAME);
	switch (metadata_kind) {
	case PROCESS_NAME:
		return set_text(&import->processes.items[id].name, arg, err);
	case PROCESS_LABELS:
		return set_text(&import->processes.items[id].labels, arg, err);
	case PROCESS_SORT:
		import->processes.items[id].sort = arg->value.i;
		import->processes.items[id].sorted = true;
		break;
	case THREAD_NAME:
		return name_thread(&import->threads.items[id], event, arg, err);
	case THREAD_SORT:
		import->threads.items[id].sort = arg->value.i;
		break;
	}
	return ST_OK;
}

static enum status read_metadata(struct import *import, struct import_event *event, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
		const struct import_arg *arg;

		if (!report__import_is(&event->fields[IMPORT_FIELD_NAME], metadata[i].name))
			continue;
		arg = report__import_find_arg(event, metadata[i].arg);
		if (arg &&
		    (arg->type == IMPORT_ARG_INT ||
		     (arg->type == IMPORT_ARG_STRING && metadata[i].arg != IMPORT_NAME_SORT_INDEX)))
			return apply_metadata(import, event, metadata[i].metadata_kind, arg, err);
	}
	report__import_left_at(import, REPORT_IMPORT_LEFT_METADATA, event->offset);
	return ST_OK;
}

/* ---- top-level values ------------------------------------------------------------------------ */

/* In traces of Kineto, times count from this wall-clock time. */
static void parse_epoch(struct import *import, const struct import_token *value)
{
	bool is_int;
	double r;
	int64_t ns;

	if (report__import_number(value, &is_int, &ns, &r) && is_int && ns > 0 &&
	    ns < IMPORT_TIME_MOST)
		import->epoch_ns = ns;
}

/* Store the members of an object as separate facts. */
static enum status add_object_meta(struct import *import, const struct import_token *key,
				   const struct import_token *object, struct err *err)
{
	struct import_reader reader = {.at = object->at + 1, .end = object->at + object->length};
	struct import_token member, value;
	enum status status = ST_OK;
	char head[256] = ".";

	report__import_unescape(key, head + 1, sizeof(head) - 1, NULL, NULL);
	while (status == ST_OK && report__import_member(&reader, &member) &&
	       report__import_value(&reader, &value)) {
		/* Facts of ipuscope's export on itself and on the run. */
		if (report__import_is(&member, "tool") && report__import_is(&value, "ipu-report"))
			import->own = true;
		if (report__import_is(&member, "meta") && value.kind == IMPORT_OBJECT) {
			struct import_reader facts = {.at = value.at + 1,
						      .end = value.at + value.length};
			struct import_token fact, text;

			/* Of the facts of an exported run its start is used. */
			while (report__import_member(&facts, &fact) &&
			       report__import_value(&facts, &text)) {
				text.kind = text.kind == IMPORT_TEXT ? IMPORT_NUMBER : text.kind;
				if (report__import_is(&fact, "start_epoch_ns") && text.length > 0)
					parse_epoch(import, &text);
			}
		}
		status = report__import_meta_add(import, head, &member, &value, err);
	}
	return status;
}

static enum status on_value(void *user, const struct import_token *key,
			    const struct import_token *value, struct err *err)
{
	struct import *import = user;
	enum status status;
	bool taken;

	import->rocprof_json |= report__import_is(key, "rocprofiler-sdk-tool");
	if (!value || report__import_is(key, "stackFrames") || report__import_is(key, "samples")) {
		report__import_note(import, REPORT_IMPORT_NOTE_KEYS);
		return ST_OK;
	}
	if (report__import_is(key, "baseTimeNanoseconds"))
		parse_epoch(import, value);
	status = report__import_kineto_value(import, key, value, &taken, err);
	if (status != ST_OK || taken)
		return status;
	if (value->kind == IMPORT_OBJECT)
		return add_object_meta(import, key, value, err);
	return report__import_meta_add(import, "", key, value, err);
}

/* ---- events ---------------------------------------------------------------------------------- */

#define FAMILY_THREAD 1 /* seeds of hashes, so that ids of different families never match */
#define FAMILY_NEST   2
#define FAMILY_OLD    3
#define FAMILY_FLOW   4

/* Handle a missing index: out of memory (set in @err), or too many threads, which is counted. */
static enum status count_no_index(struct import *import, const struct import_event *event,
				  const struct err *err)
{
	if (err->status == ST_OK)
		report__import_left_at(import, REPORT_IMPORT_LEFT_TOO_MANY, event->offset);
	return err->status;
}

/* ---- parts of records ------------------------------------------------------------------------ */

/* Read the time of @event; false: missing or out of range, which is counted. */
static bool read_time(struct import *import, const struct import_event *event, int64_t *ns)
{
	enum import_time time = report__import_time(&event->fields[IMPORT_FIELD_TS], ns);

	if (time == IMPORT_TIME_GOOD && *ns<IMPORT_TIME_MOST && * ns> - IMPORT_TIME_MOST)
		return true;
	report__import_left_at(import,
			       time == IMPORT_TIME_NONE ? REPORT_IMPORT_LEFT_NO_TIME
							: REPORT_IMPORT_LEFT_TIME_RANGE,
			       event->offset);
	return false;
}

/* Put a record without arguments. */
static enum status put_point(struct import *import, struct import_record *record, struct err *err)
{
	return report__import_put(import, record, NULL, err);
}

static uint64_t hash_token(uint64_t hash, const struct import_token *token)
{
	return import_hash(hash, token->at, token->kind == IMPORT_ABSENT ? 0 : token->length);
}

/* Hash the identity of an asynchronous event or a flow: category, id and scope. 0: no id. */
static uint64_t hash_id(const struct import_event *event, uint64_t family)
{
	const struct import_token *id = &event->fields[IMPORT_FIELD_ID];
	const struct import_token *id2 = &event->fields[IMPORT_FIELD_ID2];
	uint64_t hash = hash_token(family, &event->fields[IMPORT_FIELD_CAT]);

	if (id->kind == IMPORT_ABSENT && id2->kind == IMPORT_ABSENT)
		return 0;
	hash = hash_token(hash, &event->fields[IMPORT_FIELD_SCOPE]);
	hash = hash_token(hash, id->kind == IMPORT_ABSENT ? id2 : id);
	/* {"local": ...}: unique within its process only */
	if (id->kind == IMPORT_ABSENT &&
	    memmem(id2->at, id2->length, "\"local\"", sizeof("\"local\"") - 1))
		hash = hash_token(hash, &event->fields[IMPORT_FIELD_PID]);
	return hash | 1;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static enum status read_complete(struct import *import, struct import_event *event, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_SPAN};
	enum import_time time =
		report__import_time(&event->fields[IMPORT_FIELD_DUR], &record.dur_ns);
	const struct import_site *site;

	if (!read_time(import, event, &record.time_ns))
		return ST_OK;
	if (time == IMPORT_TIME_RANGE || record.dur_ns >= IMPORT_TIME_MOST ||
	    record.dur_ns <= -IMPORT_TIME_MOST) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_TIME_RANGE, event->offset);
		return ST_OK;
	}
	if (record.dur_ns < 0) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_NEGATIVE, event->offset);
		return ST_OK;
	}
	record.site = report__import_site(import, event, NULL, err);
	if (record.site == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	site = &import->sites.items[record.site];
	record.thread =
		report__import_thread(import, report__import_kineto_kind(site->kineto), event, err);
	if (record.thread == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	import->counts->notes[REPORT_IMPORT_NOTE_NO_DURATION] += time == IMPORT_TIME_NONE;
	if (event->fields[IMPORT_FIELD_ID].kind != IMPORT_ABSENT)
		report__import_args_put(&event->args, IMPORT_NAME_ID,
					&event->fields[IMPORT_FIELD_ID]);
	if (site->kineto != KINETO_NONE &&
	    report__import_kineto_span(import, event, record.thread, site, err) != ST_OK)
		return err->status;
	import_used(import, REPORT_IMPORT_SPAN);
	return report__import_put(import, &record, &event->args, err);
}

/* Put a begin or an end; halves with the same @pair are matched. An end without a name matches any
 * begin. */
static enum status put_half(struct import *import, struct import_event *event,
			    enum import_thread_kind kind, uint64_t pair, struct err *err)
{
	const char phase = *event->fields[IMPORT_FIELD_PH].at;
	bool stops = phase == 'E' || phase == 'e' || phase == 'F';
	struct import_record record = {.value = pair,
				       .kind = stops ? IMPORT_RECORD_STOP : IMPORT_RECORD_BEGIN,
				       .async = kind == IMPORT_ASYNC,
				       .site = IMPORT_NO_ID};

	if (!read_time(import, event, &record.time_ns))
		return ST_OK;
	record.thread = report__import_thread(import, kind, event, err);
	if (record.thread == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	if (!stops || event->fields[IMPORT_FIELD_NAME].kind != IMPORT_ABSENT) {
		record.site = report__import_site(import, event, NULL, err);
		if (record.site == IMPORT_NO_ID)
			return count_no_index(import, event, err);
	}
	if (pair == 0)
		record.value = import_hash(FAMILY_THREAD, &record.thread, sizeof(record.thread));
	return report__import_put(import, &record, &event->args, err);
}

static enum status read_half(struct import *import, struct import_event *event, struct err *err)
{
	return put_half(import, event, IMPORT_THREAD, 0, err);
}

static enum status read_async(struct import *import, struct import_event *event, uint64_t family,
			      struct err *err)
{
	uint64_t pair = hash_id(event, family);

	if (pair == 0) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_ID, event->offset);
		return ST_OK;
	}
	return put_half(import, event, IMPORT_ASYNC, pair, err);
}

static enum status read_nestable(struct import *import, struct import_event *event, struct err *err)
{
	return read_async(import, event, FAMILY_NEST, err);
}

static enum status read_legacy_async(struct import *import, struct import_event *event,
				     struct err *err)
{
	return read_async(import, event, hash_token(FAMILY_OLD, &event->fields[IMPORT_FIELD_NAME]),
			  err);
}

/* ---- points ---------------------------------------------------------------------------------- */

static enum status put_instant(struct import *import, struct import_event *event,
			       enum import_thread_kind kind, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_INSTANT};

	if (!read_time(import, event, &record.time_ns))
		return ST_OK;
	record.site = report__import_site(import, event, NULL, err);
	if (record.site == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	if (import->sites.items[record.site].kineto == KINETO_MEMORY &&
	    report__import_find_arg(event, IMPORT_NAME_BYTES_CHANGED))
		return report__import_kineto_memory(import, event, record.time_ns, err);
	record.thread = report__import_thread(import, kind, event, err);
	if (record.thread == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	import_used(import, REPORT_IMPORT_INSTANT);
	return report__import_put(import, &record, &event->args, err);
}

static enum status read_instant(struct import *import, struct import_event *event, struct err *err)
{
	const struct import_token *scope = &event->fields[IMPORT_FIELD_S];
	enum import_thread_kind kind = IMPORT_THREAD;

	if (scope->kind == IMPORT_TEXT && scope->length == 1)
		kind = *scope->at == 'g'   ? IMPORT_GLOBAL
		       : *scope->at == 'p' ? IMPORT_PROCESS
					   : IMPORT_THREAD;
	return put_instant(import, event, kind, err);
}

static enum status read_async_instant(struct import *import, struct import_event *event,
				      struct err *err)
{
	return put_instant(import, event, IMPORT_ASYNC, err);
}

/* Put one sample; @alone: the counter's only series, which is named like the counter. */
static enum status put_sample(struct import *import, const struct import_event *event,
			      const struct import_record *head, uint32_t name, bool alone,
			      double value, struct err *err)
{
	struct import_record record = *head;

	memcpy(&record.value, &value, sizeof(value));
	record.site = report__import_site(import, event,
					  alone ? NULL : import->scan.names.clean[name], err);
	if (record.site == IMPORT_NO_ID)
		return err->status;
	return put_point(import, &record, err);
}

/* Read the number of an argument. For a non-finite value ipuscope's export has null, and the word
 * in a sibling. */
static bool is_number(const struct import_arg *arg, double *out)
{
	const char *text = import_arg_text(arg);

	*out = arg->type == IMPORT_ARG_INT ? (double)arg->value.i : arg->value.r;
	if (arg->type == IMPORT_ARG_INT || arg->type == IMPORT_ARG_REAL)
		return isfinite(*out);
	if (arg->name != IMPORT_NAME_VALUE_NONFINITE || arg->type != IMPORT_ARG_STRING)
		return false;
	*out = strcmp(text, "nan") == 0 ? NAN : text[0] == '-' ? -INFINITY : INFINITY;
	return strcmp(text, "nan") == 0 || strcmp(text + (text[0] == '-'), "inf") == 0;
}

/* Every numeric argument is a series. */
static enum status read_counter(struct import *import, struct import_event *event, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_SAMPLE};
	const struct import_arg *arg;
	size_t numbers = 0, others = 0;
	enum status status = ST_OK;
	double value;

	if (!read_time(import, event, &record.time_ns))
		return ST_OK;
	record.thread = report__import_thread(import, IMPORT_THREAD, event, err);
	if (record.thread == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	for (size_t at = 0; at < event->args.used; at += import_arg_size(arg)) {
		arg = (const struct import_arg *)(const void *)(event->args.bytes + at);
		others +=
			arg->name != IMPORT_NAME_VALUE && arg->name != IMPORT_NAME_VALUE_NONFINITE;
	}
	for (size_t at = 0; at < event->args.used && status == ST_OK; at += import_arg_size(arg)) {
		arg = (const struct import_arg *)(const void *)(event->args.bytes + at);
		if (!is_number(arg, &value))
			continue;
		status = put_sample(import, event, &record,
				    arg->type == IMPORT_ARG_STRING ? IMPORT_NAME_VALUE : arg->name,
				    others == 0, value, err);
		numbers++;
	}
	if (numbers > 0)
		import_used(import, REPORT_IMPORT_COUNTER);
	else
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_NUMBER, event->offset);
	return status;
}

/* ---- flows ----------------------------------------------------------------------------------- */

static enum status read_flow(struct import *import, struct import_event *event, struct err *err)
{
	const struct import_token *bind = &event->fields[IMPORT_FIELD_BP];
	const char phase = *event->fields[IMPORT_FIELD_PH].at;
	struct import_record record = {.value = hash_id(event, FAMILY_FLOW)};
	const struct import_arg *start, *dur;

	record.kind = phase == 's'                   ? IMPORT_RECORD_FLOW_START
		      : phase == 't'                 ? IMPORT_RECORD_FLOW_STEP
		      : report__import_is(bind, "e") ? IMPORT_RECORD_FLOW_END
						     : IMPORT_RECORD_FLOW_NEXT;
	if (!read_time(import, event, &record.time_ns))
		return ST_OK;
	if (record.value == 0) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_ID, event->offset);
		return ST_OK;
	}
	/* In traces exported by ipuscope, a side of a flow has the time and the duration of its
	 * span. */
	start = report__import_find_arg(event, IMPORT_NAME_SPAN_START_NS);
	dur = report__import_find_arg(event, IMPORT_NAME_SPAN_DUR_NS);
	if (start && dur && start->type == IMPORT_ARG_INT && dur->type == IMPORT_ARG_INT &&
	    llabs(start->value.i) < IMPORT_TIME_MOST && dur->value.i >= 0 && phase != 't') {
		record.kind =
			phase == 's' ? IMPORT_RECORD_SPAN_FLOW_OUT : IMPORT_RECORD_SPAN_FLOW_IN;
		record.time_ns = start->value.i;
		record.dur_ns = dur->value.i;
	}
	record.value = hash_token(record.value, &event->fields[IMPORT_FIELD_NAME]) | 1;
	record.thread = report__import_thread(import, IMPORT_THREAD, event, err);
	if (record.thread == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	record.site = report__import_site(import, event, NULL, err);
	if (record.site == IMPORT_NO_ID)
		return count_no_index(import, event, err);
	return put_point(import, &record, err);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static enum status (*const phases[128])(struct import *import, struct import_event *event,
					struct err *err) = {
	['X'] = read_complete,      ['B'] = read_half,         ['E'] = read_half,
	['b'] = read_nestable,      ['e'] = read_nestable,     ['n'] = read_async_instant,
	['S'] = read_legacy_async,  ['F'] = read_legacy_async, ['T'] = read_async_instant,
	['p'] = read_async_instant, ['i'] = read_instant,      ['I'] = read_instant,
	['R'] = read_instant,       ['C'] = read_counter,      ['s'] = read_flow,
	['t'] = read_flow,          ['f'] = read_flow,         ['M'] = read_metadata,
};

static enum status on_event(void *user, const struct import_event *given, struct err *err)
{
	struct import *import = user;
	struct import_event *event = &import->scan.event;
	const struct import_token *ph = &event->fields[IMPORT_FIELD_PH];
	unsigned char phase = 0;

	(void)given; /* the scan's event itself, used because arguments are added to it */
	if (ph->kind == IMPORT_TEXT && ph->length == 1)
		phase = (unsigned char)*ph->at & 0x7f;
	import->counts->events++;
	import->counts->phases[phase]++;
	import->counts->notes[REPORT_IMPORT_NOTE_FIELDS] += event->others;
	if (phase == 0) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_PHASE, event->offset);
		return ST_OK;
	}
	if (!phases[phase]) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_PHASE, event->offset);
		import->counts->left_phases[phase]++;
		return ST_OK;
	}
	return phases[phase](import, event, err);
}

static enum status on_read_progress(void *user, uint64_t done, struct err *err)
{
	struct import *import = user;

	return report__import_progress_read(import, done, import->input.size, err);
}

static enum status on_other_element(void *user, bool too_large, uint64_t offset, struct err *err)
{
	struct import *import = user;

	(void)err;
	import->counts->events++;
	import->counts->phases[0]++;
	report__import_left_at(
		import, too_large ? REPORT_IMPORT_LEFT_TOO_LARGE : REPORT_IMPORT_LEFT_NOT_OBJECT,
		offset);
	return ST_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status read_chrome(struct import *import, struct err *err)
{
	const struct import_scan_calls calls = {.event = on_event,
						.other = on_other_element,
						.value = on_value,
						.progress = on_read_progress,
						.user = import};
	struct import_scan *scan = &import->scan;
	struct report_import_counts *counts = import->counts;
	enum status status;

	scan->calls = &calls;
	status = report__import_scan(scan, err);
	counts->bytes = report__import_scan_at(scan);
	counts->broken = scan->broken != NULL;
	counts->broken_at = scan->broken_at;
	if (scan->broken)
		str_copy(counts->why, sizeof(counts->why), scan->broken);
	if (status != ST_OK)
		return status;
	if (scan->broken && counts->events == 0)
		return err_set(err, ST_FORMAT, "%s: byte %llu: %s", import->input.name,
			       (unsigned long long)scan->broken_at, scan->broken);
	if (counts->events > 0 && counts->phases[0] == counts->events)
		return err_set(
			err, ST_FORMAT,
			"%s: is JSON without an event: no element has a phase (ph), so it is "
			"no Chrome trace",
			import->input.name);
	if (!scan->found && import->rocprof_json)
		return err_set(err, ST_FORMAT,
			       "%s: is rocprofv3's JSON, which is no trace: import what "
			       "--output-format rocpd or pftrace writes",
			       import->input.name);
	if (!scan->found)
		return err_set(err, ST_FORMAT,
			       "%s: is JSON without traceEvents, so no Chrome trace",
			       import->input.name);
	return ST_OK;
}

static bool is_chrome(const unsigned char *head, size_t size)
{
	/* A byte order mark is no part of the text. */
	size_t at = size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (at < size && memchr(" \t\r\n", head[at], 4))
		at++;
	return at < size && (head[at] == '{' || head[at] == '[');
}

const struct import_format report__import_chrome = {"chrome trace", is_chrome, read_chrome};
