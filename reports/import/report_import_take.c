/*
 * From an event to a record: what each phase means.
 *
 * What has its counterpart elsewhere in the file (begins and ends, flows) becomes a record as it is
 * and is judged when all is known; those events are counted then. Everything else is counted here.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "reports/import/report_import_internal.h"

#define FAMILY_THREAD 1 /* seeds of hashes, so that families never meet */
#define FAMILY_NEST   2
#define FAMILY_OLD    3
#define FAMILY_FLOW   4

void report__import_left_at(struct import *import, enum report_import_left left, uint64_t offset)
{
	if (import->counts->left[left]++ == 0)
		import->counts->left_at[left] = offset;
}

void report__import_extend(struct import *import, int64_t ns, int64_t dur)
{
	if (ns < import->first_ns)
		import->first_ns = ns;
	if (ns + dur > import->last_ns)
		import->last_ns = ns + dur;
}

/* An index is missing: memory is short (then @err says so), or there are too many threads. */
static enum status no_index(struct import *import, const struct import_event *event,
			    const struct err *err)
{
	if (err->status == ST_OK)
		report__import_left_at(import, REPORT_IMPORT_LEFT_TOO_MANY, event->offset);
	return err->status;
}

/* ---- parts of records ------------------------------------------------------------------------ */

/* The time of @event; false: there is none, and that is counted. */
static bool take_time(struct import *import, const struct import_event *event, int64_t *ns)
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

/* A record in the sorter with @args bytes of the arguments of @event. */
static enum status put(struct import *import, struct import_sorter *sorter,
		       const struct import_event *event, size_t args,
		       const struct import_record *record, struct err *err)
{
	size_t size = sizeof(*record) + args;
	struct import_record *out;
	enum status status = report__import_sorter_put(sorter, size, &out, err);

	if (status != ST_OK)
		return status;
	*out = *record;
	out->bytes = (uint32_t)size;
	out->number = import->counts->events;
	memcpy(out + 1, event->args.bytes, args);
	import->counts->notes[REPORT_IMPORT_NOTE_CUT_ARGS] += event->args.left;
	import->threads.items[record->thread].used = true;
	import->records++;
	return ST_OK;
}

/* A record without arguments. */
static enum status put_point(struct import *import, const struct import_event *event,
			     const struct import_record *record, struct err *err)
{
	report__import_extend(import, record->time_ns, 0);
	return put(import, import->main, event, 0, record, err);
}

static uint64_t hash_token(uint64_t hash, const struct import_token *token)
{
	return import_hash(hash, token->at, token->kind == IMPORT_ABSENT ? 0 : token->length);
}

/* What tells an asynchronous event or a flow from others: category, id and scope. 0: no id. */
static uint64_t hash_id(const struct import_event *event, uint64_t family)
{
	const struct import_token *id = &event->fields[IMPORT_FIELD_ID];
	const struct import_token *id2 = &event->fields[IMPORT_FIELD_ID2];
	uint64_t hash = hash_token(family, &event->fields[IMPORT_FIELD_CAT]);

	if (id->kind == IMPORT_ABSENT && id2->kind == IMPORT_ABSENT)
		return 0;
	hash = hash_token(hash, &event->fields[IMPORT_FIELD_SCOPE]);
	hash = hash_token(hash, id->kind == IMPORT_ABSENT ? id2 : id);
	/* {"local": ...}: of its process alone */
	if (id->kind == IMPORT_ABSENT &&
	    memmem(id2->at, id2->length, "\"local\"", sizeof("\"local\"") - 1))
		hash = hash_token(hash, &event->fields[IMPORT_FIELD_PID]);
	return hash | 1;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static enum status take_complete(struct import *import, struct import_event *event, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_SPAN};
	enum import_time time =
		report__import_time(&event->fields[IMPORT_FIELD_DUR], &record.dur_ns);

	if (!take_time(import, event, &record.time_ns))
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
	record.thread = report__import_thread(import, IMPORT_THREAD, event, err);
	if (record.thread == IMPORT_NO_ID)
		return no_index(import, event, err);
	record.site = report__import_site(import, event, NULL, err);
	if (record.site == IMPORT_NO_ID)
		return no_index(import, event, err);
	import->counts->notes[REPORT_IMPORT_NOTE_NO_DURATION] += time == IMPORT_TIME_NONE;
	if (event->fields[IMPORT_FIELD_ID].kind != IMPORT_ABSENT)
		report__import_args_put(&event->args, IMPORT_NAME_ID,
					&event->fields[IMPORT_FIELD_ID]);
	report__import_extend(import, record.time_ns, record.dur_ns);
	import_used(import, REPORT_IMPORT_SPAN);
	return put(import, import->main, event, event->args.used, &record, err);
}

/* A begin or an end, to be paired within @pair. An end without a name fits every begin. */
static enum status put_half(struct import *import, struct import_event *event,
			    enum import_thread_kind kind, uint64_t pair, struct err *err)
{
	const char phase = *event->fields[IMPORT_FIELD_PH].at;
	bool stops = phase == 'E' || phase == 'e' || phase == 'F';
	struct import_record record = {.value = pair,
				       .kind = stops ? IMPORT_RECORD_STOP : IMPORT_RECORD_BEGIN,
				       .async = kind == IMPORT_ASYNC,
				       .site = IMPORT_NO_ID};

	if (!take_time(import, event, &record.time_ns))
		return ST_OK;
	record.thread = report__import_thread(import, kind, event, err);
	if (record.thread == IMPORT_NO_ID)
		return no_index(import, event, err);
	if (!stops || event->fields[IMPORT_FIELD_NAME].kind != IMPORT_ABSENT) {
		record.site = report__import_site(import, event, NULL, err);
		if (record.site == IMPORT_NO_ID)
			return no_index(import, event, err);
	}
	if (pair == 0)
		record.value = import_hash(FAMILY_THREAD, &record.thread, sizeof(record.thread));
	report__import_extend(import, record.time_ns, 0);
	import->pairs_put++;
	return put(import, import->pairs, event, event->args.used, &record, err);
}

static enum status take_half(struct import *import, struct import_event *event, struct err *err)
{
	return put_half(import, event, IMPORT_THREAD, 0, err);
}

static enum status take_async(struct import *import, struct import_event *event, uint64_t family,
			      struct err *err)
{
	uint64_t pair = hash_id(event, family);

	if (pair == 0) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_ID, event->offset);
		return ST_OK;
	}
	return put_half(import, event, IMPORT_ASYNC, pair, err);
}

static enum status take_nestable(struct import *import, struct import_event *event, struct err *err)
{
	return take_async(import, event, FAMILY_NEST, err);
}

static enum status take_old_async(struct import *import, struct import_event *event,
				  struct err *err)
{
	return take_async(import, event, hash_token(FAMILY_OLD, &event->fields[IMPORT_FIELD_NAME]),
			  err);
}

/* ---- points ---------------------------------------------------------------------------------- */

static enum status put_instant(struct import *import, struct import_event *event,
			       enum import_thread_kind kind, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_INSTANT};

	if (!take_time(import, event, &record.time_ns))
		return ST_OK;
	record.thread = report__import_thread(import, kind, event, err);
	if (record.thread == IMPORT_NO_ID)
		return no_index(import, event, err);
	record.site = report__import_site(import, event, NULL, err);
	if (record.site == IMPORT_NO_ID)
		return no_index(import, event, err);
	report__import_extend(import, record.time_ns, 0);
	import_used(import, REPORT_IMPORT_INSTANT);
	return put(import, import->main, event, event->args.used, &record, err);
}

static enum status take_instant(struct import *import, struct import_event *event, struct err *err)
{
	const struct import_token *scope = &event->fields[IMPORT_FIELD_S];
	enum import_thread_kind kind = IMPORT_THREAD;

	if (scope->kind == IMPORT_TEXT && scope->length == 1)
		kind = *scope->at == 'g'   ? IMPORT_GLOBAL
		       : *scope->at == 'p' ? IMPORT_PROCESS
					   : IMPORT_THREAD;
	return put_instant(import, event, kind, err);
}

static enum status take_async_instant(struct import *import, struct import_event *event,
				      struct err *err)
{
	return put_instant(import, event, IMPORT_ASYNC, err);
}

static bool is_number(const struct import_arg *arg, double *out)
{
	*out = arg->type == IMPORT_ARG_INT ? (double)arg->value.i : arg->value.r;
	return (arg->type == IMPORT_ARG_INT || arg->type == IMPORT_ARG_REAL) && isfinite(*out);
}

/* One sample; @alone: the counter has one series, which then goes by the counter's name. */
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
	return put_point(import, event, &record, err);
}

/* What our own traces write where JSON has no number: null, and beside it the word. */
static bool is_nonfinite(const struct import_arg *arg, double *out)
{
	const char *text = import_arg_text(arg);

	if (arg->name != IMPORT_NAME_VALUE_NONFINITE || arg->type != IMPORT_ARG_STRING)
		return false;
	*out = strcmp(text, "nan") == 0 ? NAN : text[0] == '-' ? -INFINITY : INFINITY;
	return strcmp(text, "nan") == 0 || strcmp(text + (text[0] == '-'), "inf") == 0;
}

/* Every argument that is a number is a series. */
static enum status take_counter(struct import *import, struct import_event *event, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_SAMPLE};
	const struct import_arg *arg;
	size_t numbers = 0, others = 0;
	enum status status = ST_OK;
	double value;

	if (!take_time(import, event, &record.time_ns))
		return ST_OK;
	record.thread = report__import_thread(import, IMPORT_THREAD, event, err);
	if (record.thread == IMPORT_NO_ID)
		return no_index(import, event, err);
	for (size_t at = 0; at < event->args.used; at += import_arg_size(arg)) {
		arg = (const struct import_arg *)(const void *)(event->args.bytes + at);
		others +=
			arg->name != IMPORT_NAME_VALUE && arg->name != IMPORT_NAME_VALUE_NONFINITE;
	}
	for (size_t at = 0; at < event->args.used && status == ST_OK; at += import_arg_size(arg)) {
		arg = (const struct import_arg *)(const void *)(event->args.bytes + at);
		if (is_number(arg, &value))
			status = put_sample(import, event, &record, arg->name, others == 0, value,
					    err);
		else if (is_nonfinite(arg, &value))
			status = put_sample(import, event, &record, IMPORT_NAME_VALUE, others == 0,
					    value, err);
		else
			continue;
		numbers++;
	}
	if (numbers > 0)
		import_used(import, REPORT_IMPORT_COUNTER);
	else
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_NUMBER, event->offset);
	return status;
}

/* ---- flows ----------------------------------------------------------------------------------- */

static enum status take_flow(struct import *import, struct import_event *event, struct err *err)
{
	const struct import_token *bind = &event->fields[IMPORT_FIELD_BP];
	const char phase = *event->fields[IMPORT_FIELD_PH].at;
	struct import_record record = {.value = hash_id(event, FAMILY_FLOW)};

	record.kind = phase == 's'                   ? IMPORT_RECORD_FLOW_START
		      : phase == 't'                 ? IMPORT_RECORD_FLOW_STEP
		      : report__import_is(bind, "e") ? IMPORT_RECORD_FLOW_END
						     : IMPORT_RECORD_FLOW_NEXT;
	if (!take_time(import, event, &record.time_ns))
		return ST_OK;
	if (record.value == 0) {
		report__import_left_at(import, REPORT_IMPORT_LEFT_NO_ID, event->offset);
		return ST_OK;
	}
	record.value = hash_token(record.value, &event->fields[IMPORT_FIELD_NAME]) | 1;
	record.thread = report__import_thread(import, IMPORT_THREAD, event, err);
	if (record.thread == IMPORT_NO_ID)
		return no_index(import, event, err);
	record.site = report__import_site(import, event, NULL, err);
	if (record.site == IMPORT_NO_ID)
		return no_index(import, event, err);
	return put_point(import, event, &record, err);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static enum status take_metadata(struct import *import, struct import_event *event, struct err *err)
{
	return report__import_metadata(import, event, err);
}

static enum status (*const phases[128])(struct import *import, struct import_event *event,
					struct err *err) = {
	['X'] = take_complete,      ['B'] = take_half,      ['E'] = take_half,
	['b'] = take_nestable,      ['e'] = take_nestable,  ['n'] = take_async_instant,
	['S'] = take_old_async,     ['F'] = take_old_async, ['T'] = take_async_instant,
	['p'] = take_async_instant, ['i'] = take_instant,   ['I'] = take_instant,
	['R'] = take_instant,       ['C'] = take_counter,   ['s'] = take_flow,
	['t'] = take_flow,          ['f'] = take_flow,      ['M'] = take_metadata,
};

enum status report__import_take(void *user, const struct import_event *given, struct err *err)
{
	struct import *import = user;
	struct import_event *event = &import->scan.event;
	const struct import_token *ph = &event->fields[IMPORT_FIELD_PH];
	unsigned char phase = 0;

	(void)given; /* the scan's own, which arguments are added to */
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
