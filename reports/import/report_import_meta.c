/*
 * What a trace says about itself: names and order of processes and threads (events of phase M), and
 * the top-level values beside the events, which go to the table of facts as `trace.KEY`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "reports/import/report_import_internal.h"

/* ---- events of phase M ----------------------------------------------------------------------- */

static const struct import_arg *find_arg(const struct import_event *event, uint32_t name)
{
	const struct import_arg *arg;

	for (size_t at = 0; at < event->args.used; at += import_arg_size(arg)) {
		arg = (const struct import_arg *)(const void *)(event->args.bytes + at);
		if (arg->name == name)
			return arg;
	}
	return NULL;
}

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

enum about {
	PROCESS_NAME,
	PROCESS_LABELS,
	PROCESS_SORT,
	THREAD_NAME,
	THREAD_SORT
};

static const struct {
	const char *name;
	enum about about;
	enum import_name arg;
} metadata[] = {
	{"process_name", PROCESS_NAME, IMPORT_NAME_NAME},
	{"process_labels", PROCESS_LABELS, IMPORT_NAME_LABELS},
	{"process_sort_index", PROCESS_SORT, IMPORT_NAME_SORT_INDEX},
	{"thread_name", THREAD_NAME, IMPORT_NAME_NAME},
	{"thread_sort_index", THREAD_SORT, IMPORT_NAME_SORT_INDEX},
};

/* Our own traces tell the track beside the name that is shown, unless it was parted into lanes, and
 * the clock. */
static enum status name_thread(struct import_thread *thread, const struct import_event *event,
			       const struct import_arg *name, struct err *err)
{
	const struct import_arg *track = find_arg(event, IMPORT_NAME_TRACK);
	const struct import_arg *ipu = find_arg(event, IMPORT_NAME_IPU);
	const struct import_arg *clock = find_arg(event, IMPORT_NAME_CLOCK);
	enum status status;

	if (ipu && ipu->type == IMPORT_ARG_INT)
		thread->ipu = ipu->value.i;
	if (clock && clock->type == IMPORT_ARG_STRING)
		thread->clock =
			strcmp(import_arg_text(clock), "device") == 0 ? IPS_DEVICE : IPS_HOST;
	if (!track || find_arg(event, IMPORT_NAME_LANE))
		return set_text(&thread->name, name, err);
	status = set_text(&thread->shown, name, err);
	return status == ST_OK ? set_text(&thread->name, track, err) : status;
}

static enum status tell(struct import *import, const struct import_event *event, enum about about,
			const struct import_arg *arg, struct err *err)
{
	bool of_thread = about == THREAD_NAME || about == THREAD_SORT;
	uint32_t id =
		of_thread ? report__import_thread(import, IMPORT_THREAD, event, err)
			  : report__import_process(import, &event->fields[IMPORT_FIELD_PID], err);

	if (id == IMPORT_NO_ID) {
		if (err->status == ST_OK)
			report__import_left_at(import, REPORT_IMPORT_LEFT_TOO_MANY, event->offset);
		return err->status;
	}
	import_used(import, REPORT_IMPORT_NAME);
	switch (about) {
	case PROCESS_NAME:
		return set_text(&import->processes.items[id].name, arg, err);
	case PROCESS_LABELS:
		return set_text(&import->processes.items[id].labels, arg, err);
	case PROCESS_SORT:
		import->processes.items[id].sort = arg->value.i;
		break;
	case THREAD_NAME:
		return name_thread(&import->threads.items[id], event, arg, err);
	case THREAD_SORT:
		import->threads.items[id].sort = arg->value.i;
		break;
	}
	return ST_OK;
}

enum status report__import_metadata(struct import *import, const struct import_event *event,
				    struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
		const struct import_arg *arg;

		if (!report__import_is(&event->fields[IMPORT_FIELD_NAME], metadata[i].name))
			continue;
		arg = find_arg(event, metadata[i].arg);
		if (arg &&
		    (arg->type == IMPORT_ARG_INT ||
		     (arg->type == IMPORT_ARG_STRING && metadata[i].arg != IMPORT_NAME_SORT_INDEX)))
			return tell(import, event, metadata[i].about, arg, err);
	}
	report__import_left_at(import, REPORT_IMPORT_LEFT_METADATA, event->offset);
	return ST_OK;
}

/* ---- top-level values ------------------------------------------------------------------------ */

static enum status keep(struct import *import, const char *head, const struct import_token *key,
			const struct import_token *value, struct err *err)
{
	struct import_meta *meta = &import->meta[import->meta_count];
	char name[256];

	if (import->meta_count == IMPORT_MOST_META || value->length >= IMPORT_TEXT_SIZE) {
		import_note(import, REPORT_IMPORT_NOTE_KEYS);
		return ST_OK;
	}
	report__import_unescape(key, name, sizeof(name), NULL, NULL);
	report__import_unescape(value, import->text, IMPORT_TEXT_SIZE, NULL, NULL);
	meta->key = mem_printf("trace%s.%s", head, name);
	meta->value = mem_strdup(import->text);
	import->meta_count++;
	return !meta->key || !meta->value ? err_nomem(err) : ST_OK;
}

/* Kineto's times are from this wall-clock time on. */
static void take_epoch(struct import *import, const struct import_token *value)
{
	bool is_int;
	double r;
	int64_t ns;

	if (report__import_number(value, &is_int, &ns, &r) && is_int && ns > 0 &&
	    ns < IMPORT_TIME_MOST)
		import->epoch_ns = ns;
}

/* The facts of a run that was exported: when it began. */
static void take_run(struct import *import, const struct import_token *object)
{
	struct import_reader reader = {.at = object->at + 1, .end = object->at + object->length};
	struct import_token member, value;

	while (report__import_member(&reader, &member) && report__import_value(&reader, &value)) {
		value.kind = value.kind == IMPORT_TEXT ? IMPORT_NUMBER : value.kind;
		if (report__import_is(&member, "start_epoch_ns") && value.length > 0)
			take_epoch(import, &value);
	}
}

/* An object's members are facts of their own. */
static enum status keep_members(struct import *import, const struct import_token *key,
				const struct import_token *object, struct err *err)
{
	struct import_reader reader = {.at = object->at + 1, .end = object->at + object->length};
	struct import_token member, value;
	enum status status = ST_OK;
	char head[256] = ".";

	report__import_unescape(key, head + 1, sizeof(head) - 1, NULL, NULL);
	while (status == ST_OK && report__import_member(&reader, &member) &&
	       report__import_value(&reader, &value)) {
		/* What our own export says of itself and of the run. */
		if (report__import_is(&member, "tool") && report__import_is(&value, "ipu-report"))
			import->own = true;
		if (report__import_is(&member, "meta") && value.kind == IMPORT_OBJECT)
			take_run(import, &value);
		status = keep(import, head, &member, &value, err);
	}
	return status;
}

enum status report__import_value_taken(void *user, const struct import_token *key,
				       const struct import_token *value, struct err *err)
{
	struct import *import = user;

	if (!value || report__import_is(key, "stackFrames") || report__import_is(key, "samples")) {
		import_note(import, REPORT_IMPORT_NOTE_KEYS);
		return ST_OK;
	}
	if (report__import_is(key, "baseTimeNanoseconds"))
		take_epoch(import, value);
	if (value->kind == IMPORT_OBJECT)
		return keep_members(import, key, value, err);
	return keep(import, "", key, value, err);
}

/* ---- the table of facts ---------------------------------------------------------------------- */

static int set_int(struct import *import, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return ips_meta_set(import->recording, key, text);
}

/* When the recording began, as far as the trace says. */
static int set_epoch(struct import *import)
{
	const int64_t least = (int64_t)1000000000 * 1000000000; /* in 2001 */
	int64_t base = import->counts->base_ns;

	if (import->epoch_ns != IPS_NULL)
		return set_int(import, "start_epoch_ns", import->epoch_ns + base);
	if (base > least)
		return set_int(import, "start_epoch_ns", base);
	return ips_meta_set(import->recording, "start_epoch_ns", NULL);
}

/* What processes say of themselves beside their names. */
static int set_labels(struct import *import)
{
	int code = 0;

	for (size_t i = 0; i < import->processes.table.count && code == 0; i++) {
		const struct import_string *pid = &import->processes.table.strings[i];
		const struct import_token token = {.at = pid->text, .length = pid->length};
		char name[64], key[128];

		if (!import->processes.items[i].labels)
			continue;
		report__import_unescape(&token, name, sizeof(name), NULL, NULL);
		snprintf(key, sizeof(key), "trace.process %s.labels", name);
		code = ips_meta_set(import->recording, key, import->processes.items[i].labels);
	}
	return code;
}

enum status report__import_meta_write(struct import *import, struct err *err)
{
	const struct report_import_counts *counts = import->counts;
	struct ips_recording *recording = import->recording;
	int code = ips_meta_set(recording, "source", "chrome trace");

	if (code == 0)
		code = ips_meta_set(recording, "trace_file", import->input.name);
	if (code == 0)
		code = set_int(import, "trace_base_ns", counts->base_ns);
	if (code == 0)
		code = set_epoch(import);
	if (code == 0)
		code = set_int(import, "trace_events", (int64_t)counts->events);
	if (code == 0 && counts->broken)
		code = set_int(import, "trace_broken_at", (int64_t)counts->broken_at);
	if (code == 0)
		code = set_labels(import);
	for (size_t i = 0; i < import->meta_count && code == 0; i++)
		code = ips_meta_set(recording, import->meta[i].key, import->meta[i].value);
	if (code != 0)
		return err_set(err, (enum status)code, "cannot write: %s", ips_status_text(code));
	return ST_OK;
}
