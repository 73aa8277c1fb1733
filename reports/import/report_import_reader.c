/*
 * What readers of all formats hand over becomes records. See report_import_reader.h.
 */
#include "reports/import/report_import_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_internal.h"

#define COPY_BYTES ((size_t)1 << 16)

/* ---- records --------------------------------------------------------------------------------- */

/* Put a copy of @record with its arguments into @sorter. */
static enum status put_sorted(struct import_sorter *sorter, const struct import_record *record,
			      const struct import_args *args, struct err *err)
{
	const size_t more = !args ? 0 : args->used;
	struct import_record *out;
	enum status status = report__import_sorter_put(sorter, sizeof(*record) + more, &out, err);

	if (status != ST_OK)
		return status;
	*out = *record;
	out->bytes = (uint32_t)(sizeof(*record) + more);
	if (more > 0)
		memcpy(out + 1, args->bytes, more);
	return ST_OK;
}

enum status report__import_put(struct import *import, const struct import_record *given,
			       const struct import_args *args, struct err *err)
{
	const bool half = given->kind >= IMPORT_RECORD_BEGIN;
	struct import_record record = *given;
	enum status status;
	int64_t dur;

	record.number = import->counts->events;
	if (!half)
		status = put_sorted(import->main, &record, args, err);
	else if (import->halves)
		status = put_sorted(import->halves, &record, args, err);
	else
		status = report__import_half(import, &record, args, err);
	if (status != ST_OK)
		return status;
	import->counts->notes[REPORT_IMPORT_NOTE_CUT_ARGS] += !args ? 0 : args->left;
	import->threads.items[record.thread].used = true;
	import->records += !half;
	dur = record.kind == IMPORT_RECORD_SPAN && record.dur_ns > 0 ? record.dur_ns : 0;
	if (record.time_ns < import->first_ns)
		import->first_ns = record.time_ns;
	if (record.time_ns + dur > import->last_ns)
		import->last_ns = record.time_ns + dur;
	return ST_OK;
}

/* Put a record of a reader with the arguments collected for it. */
static enum status put(struct import *import, const struct import_record *record, struct err *err)
{
	enum status status = ST_OK;

	if (record->time_ns >= IMPORT_TIME_MOST || record->time_ns <= -IMPORT_TIME_MOST ||
	    record->dur_ns >= IMPORT_TIME_MOST)
		report__import_left(import, REPORT_IMPORT_LEFT_TIME_RANGE);
	else if (record->dur_ns < -1)
		report__import_left(import, REPORT_IMPORT_LEFT_NEGATIVE);
	else
		status = report__import_put(import, record, &import->args, err);
	import->args.used = 0;
	import->args.left = 0;
	return status;
}

/* ---- where and what -------------------------------------------------------------------------- */

static struct import_token token_of(const char *text)
{
	/* a number's text is copied as it is */
	return (struct import_token){.at = !text ? "" : text,
				     .length = !text ? 0 : strlen(text),
				     .kind = !text ? IMPORT_ABSENT : IMPORT_NUMBER};
}

/* An event without any fields. Its arguments are not touched: they are many pages. */
static void clear_event(struct import_event *event)
{
	memset(event, 0, offsetof(struct import_event, args));
	event->args.used = 0;
	event->args.left = 0;
}

static enum status set_text(char **to, const char *text, struct err *err)
{
	char *copy;

	if (!text || (*to && strcmp(*to, text) == 0))
		return ST_OK;
	copy = mem_strdup(text);
	if (!copy)
		return err_nomem(err);
	mem_free(*to);
	*to = copy;
	return ST_OK;
}

/* The status of a function that returned @id. */
static enum status status_of(uint32_t id, const struct err *err)
{
	return id == IMPORT_NO_ID ? err->status : ST_OK;
}

enum status report__import_track(struct import *import, const struct import_track *track,
				 uint32_t *out, struct err *err)
{
	struct import_event event;
	struct import_process *process;
	struct import_thread *thread;
	enum status status;

	clear_event(&event);
	event.fields[IMPORT_FIELD_PID] = token_of(track->process);
	event.fields[track->kind == IMPORT_ASYNC ? IMPORT_FIELD_CAT : IMPORT_FIELD_TID] =
		token_of(track->thread);
	*out = report__import_thread(import, track->kind, &event, err);
	if (*out == IMPORT_NO_ID)
		return status_of(*out, err);
	thread = &import->threads.items[*out];
	thread->sort = track->sort;
	thread->device = track->device;
	status = set_text(&thread->name, track->name, err);
	if (thread->process == IMPORT_NO_ID || status != ST_OK)
		return status;
	process = &import->processes.items[thread->process];
	if (track->process_sort != IPS_NULL) {
		process->sort = track->process_sort;
		process->sorted = true;
	}
	return set_text(&process->name, track->process_name, err);
}

void report__import_track_under(struct import *import, uint32_t track, uint32_t above)
{
	uint32_t at = above;

	/* A file may put a track under itself, or under others without end. */
	for (int i = 0; at != IMPORT_NO_ID && at != track && i < IMPORT_NESTED_MOST; i++)
		at = import->threads.items[at].above;
	if (at == IMPORT_NO_ID)
		import->threads.items[track].above = above;
}

enum status report__import_track_shows(struct import *import, uint32_t track, const char *device,
				       struct err *err)
{
	if (track == IMPORT_NO_ID || import->threads.items[track].shows)
		return ST_OK;
	import->threads.items[track].shows = device;
	return device ? ST_OK : err_nomem(err);
}

enum status report__import_name_site(struct import *import, const char *category, const char *name,
				     uint32_t *out, struct err *err)
{
	struct import_event event;

	clear_event(&event);
	event.fields[IMPORT_FIELD_CAT] = token_of(category);
	event.fields[IMPORT_FIELD_NAME] = token_of(name);
	*out = report__import_site(import, &event, NULL, err);
	return status_of(*out, err);
}

enum status report__import_arg_name(struct import *import, const char *name, uint32_t *out,
				    struct err *err)
{
	struct import_token token = token_of(name);

	*out = report__import_names_add(&import->scan.names, &token);
	return import->scan.names.failed ? err_nomem(err) : ST_OK;
}

const char *report__import_keep(struct import *import, const char *text)
{
	bool fresh;
	uint32_t id;

	if (!text)
		return NULL;
	id = report__import_intern(&import->kept, text, strlen(text), SIZE_MAX, &fresh);
	return id == IMPORT_NO_ID ? NULL : import->kept.strings[id].text;
}

enum status report__import_device(struct import *import, const struct ips_device *device,
				  struct err *err)
{
	const char *name = device->device;
	size_t i = 0;

	(void)err;
	while (i < import->device_count &&
	       (name ? !import->devices[i].device || strcmp(import->devices[i].device, name) != 0
		     : import->devices[i].number != device->number))
		i++;
	if (i == IMPORT_MOST_DEVICES)
		return ST_OK;
	if (i < import->device_count && !name)
		name = import->devices[i].device;
	import->device_count += i == import->device_count;
	import->devices[i] = *device;
	import->devices[i].device = name;
	return ST_OK;
}

const char *report__import_accelerator(struct import *import, const char *kind, int64_t number)
{
	struct ips_device device = {NULL,     number,   NULL,     NULL,
				    IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};
	char name[64];

	snprintf(name, sizeof(name), "%s %lld", kind, (long long)number);
	device.device = report__import_keep(import, name);
	for (size_t i = 0; i < import->device_count && device.device; i++) {
		struct ips_device *known = &import->devices[i];

		if (known->number == number && !known->device)
			known->device = device.device;
		if (known->number == number && strcmp(known->device, name) == 0)
			return known->device;
	}
	if (device.device)
		report__import_device(import, &device, NULL);
	return device.device;
}

const char *report__import_gpu(struct import *import, int64_t number)
{
	for (size_t i = 0; i < import->device_count; i++) {
		if (import->devices[i].number == number && import->devices[i].device)
			return import->devices[i].device;
	}
	return report__import_accelerator(import, "GPU", number);
}

/* As Holistic Trace Analysis tells communication and memory from computation. */
const char *report__import_kernel_kind(const char *name)
{
	static const struct {
		const char *text, *kind;
		bool anywhere;
	} kinds[] = {
		{"nccl", "communication", false},
		{"ncclKernel", "communication", true},
		{"ncclDevKernel", "communication", true},
		{"rccl", "communication", true},
		{"hccl", "communication", false},
		/* of XLA, which runs them on any device */
		{"all-reduce", "communication", false},
		{"all-gather", "communication", false},
		{"all-to-all", "communication", false},
		{"reduce-scatter", "communication", false},
		{"collective-", "communication", false},
		{"copy-start", "memory", false},
		{"copy-done", "memory", false},
		{"Memcpy", "memory", false},
		{"Memset", "memory", false},
		{"hipMemcpy", "memory", false},
		{"hipMemset", "memory", false},
		{"dma", "memory", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].anywhere ? strstr(name, kinds[i].text) != NULL
				      : str_starts_with(name, kinds[i].text))
			return kinds[i].kind;
	}
	return "compute";
}

struct ips_kernel report__import_kernel(const char *device, int64_t stream, const char *kind,
					int64_t launch_key)
{
	return (struct ips_kernel){.device = device,
				   .context = IPS_NULL,
				   .stream = stream,
				   .kind = kind,
				   .launch_key = launch_key,
				   .grid_x = IPS_NULL,
				   .grid_y = IPS_NULL,
				   .grid_z = IPS_NULL,
				   .block_x = IPS_NULL,
				   .block_y = IPS_NULL,
				   .block_z = IPS_NULL,
				   .registers = IPS_NULL,
				   .shared_bytes = IPS_NULL,
				   .occupancy = (double)NAN,
				   .graph = IPS_NULL,
				   .graph_node = IPS_NULL};
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Append an argument of @size bytes; NULL: there is no room, which is counted. */
static struct import_arg *append(struct import_args *args, uint32_t name, enum import_arg_type type,
				 size_t size)
{
	struct import_arg *arg = (struct import_arg *)(void *)(args->bytes + args->used);

	if (name == IMPORT_NO_ID ||
	    sizeof(args->bytes) - args->used < sizeof(*arg) + size + sizeof(int64_t)) {
		args->left++;
		return NULL;
	}
	arg->name = name;
	arg->type = type;
	arg->value.i = (int64_t)size;
	args->used += import_arg_size(arg);
	return arg;
}

void report__import_arg_int(struct import *import, uint32_t name, int64_t value)
{
	struct import_arg *arg = append(&import->args, name, IMPORT_ARG_INT, 0);

	if (arg)
		arg->value.i = value;
}

void report__import_arg_real(struct import *import, uint32_t name, double value)
{
	struct import_arg *arg =
		append(&import->args, name, isnan(value) ? IMPORT_ARG_NULL : IMPORT_ARG_REAL, 0);

	if (arg)
		arg->value.r = value;
}

void report__import_arg_text(struct import *import, uint32_t name, const char *value)
{
	/* Objects are copied as they are. */
	const struct import_token token = {.at = value,
					   .length = !value ? 0 : strlen(value),
					   .kind = !value ? IMPORT_NULL : IMPORT_OBJECT};

	if (name == IMPORT_NO_ID)
		import->args.left++;
	else
		report__import_args_put(&import->args, name, &token);
}

void report__import_args_row(struct import_args *args, enum ips_table table, const void *row,
			     size_t size)
{
	struct import_arg *arg = append(args, (uint32_t)table, IMPORT_ARG_ROW, size);

	if (arg)
		memcpy(arg + 1, row, size);
}

void report__import_row(struct import *import, enum ips_table table, const void *row, size_t size)
{
	int64_t key = IPS_NULL;

	if (table == IPS_TABLE_kernel)
		key = ((const struct ips_kernel *)row)->launch_key;
	else if (table == IPS_TABLE_copy)
		key = ((const struct ips_copy *)row)->launch_key;
	import->linked = import->linked || key != IPS_NULL;
	report__import_args_row(&import->args, table, row, size);
}

/* ---- events ---------------------------------------------------------------------------------- */

enum status report__import_span(struct import *import, uint32_t track, uint32_t site,
				int64_t start_ns, int64_t dur_ns, struct err *err)
{
	const struct import_record record = {.kind = IMPORT_RECORD_SPAN,
					     .time_ns = start_ns,
					     .dur_ns = dur_ns,
					     .thread = track,
					     .site = site,
					     .unfinished = dur_ns == -1};

	const uint64_t records = import->records;
	enum status status = put(import, &record, err);

	if (import->records > records) {
		import_used(import, REPORT_IMPORT_SPAN);
		import->counts->notes[REPORT_IMPORT_NOTE_UNFINISHED] += dur_ns == -1;
	}
	return status;
}

static enum status put_half(struct import *import, enum import_record_kind kind, uint32_t track,
			    uint32_t site, int64_t ns, uint64_t pair, struct err *err)
{
	const struct import_record record = {
		.kind = (uint8_t)kind,
		.time_ns = ns,
		.thread = track,
		.site = site,
		.async = import->threads.items[track].kind == IMPORT_ASYNC,
		.value = import_hash(pair == 0 ? 0 : 1, pair == 0 ? (const void *)&track : &pair,
				     pair == 0 ? sizeof(track) : sizeof(pair))};

	return put(import, &record, err);
}

enum status report__import_begin(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				 uint64_t pair, struct err *err)
{
	return put_half(import, IMPORT_RECORD_BEGIN, track, site, ns, pair, err);
}

enum status report__import_end(struct import *import, uint32_t track, uint32_t site, int64_t ns,
			       uint64_t pair, struct err *err)
{
	return put_half(import, IMPORT_RECORD_STOP, track, site, ns, pair, err);
}

/* Put a point; @use: what it is counted as; IMPORT_NO_USE: it is counted when recorded. */
#define IMPORT_NO_USE REPORT_IMPORT_USES
static enum status put_point(struct import *import, const struct import_record *record,
			     enum report_import_use use, struct err *err)
{
	const uint64_t records = import->records;
	enum status status = put(import, record, err);

	if (use != IMPORT_NO_USE && import->records > records)
		import_used(import, use);
	return status;
}

enum status report__import_instant(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				   struct err *err)
{
	const struct import_record record = {
		.kind = IMPORT_RECORD_INSTANT, .time_ns = ns, .thread = track, .site = site};

	return put_point(import, &record, REPORT_IMPORT_INSTANT, err);
}

static struct import_record sample(uint32_t track, uint32_t site, int64_t ns, double value)
{
	struct import_record record = {
		.kind = IMPORT_RECORD_SAMPLE, .time_ns = ns, .thread = track, .site = site};

	memcpy(&record.value, &value, sizeof(value));
	return record;
}

enum status report__import_sample(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				  double value, struct err *err)
{
	const struct import_record record = sample(track, site, ns, value);

	return put_point(import, &record, REPORT_IMPORT_COUNTER, err);
}

enum status report__import_flow(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				enum import_flow side, uint64_t key, struct err *err)
{
	static const uint8_t kinds[] = {[IMPORT_FLOW_START] = IMPORT_RECORD_FLOW_START,
					[IMPORT_FLOW_ON] = IMPORT_RECORD_FLOW_ON,
					[IMPORT_FLOW_STEP] = IMPORT_RECORD_FLOW_STEP,
					[IMPORT_FLOW_END] = IMPORT_RECORD_FLOW_END,
					[IMPORT_FLOW_NEXT] = IMPORT_RECORD_FLOW_NEXT};
	const struct import_record record = {.kind = kinds[side],
					     .time_ns = ns,
					     .thread = track,
					     .site = site,
					     .value = import_hash(2, &key, sizeof(key)) | 1};

	return put_point(import, &record, IMPORT_NO_USE, err);
}

enum status report__import_memory(struct import *import, uint32_t track,
				  const struct ips_memory_event *event, struct err *err)
{
	const struct {
		const char *name;
		int64_t value;
	} series[] = {{"allocated bytes", event->total_bytes},
		      {"reserved bytes", event->reserved_bytes}};
	const struct import_record record = {
		.kind = IMPORT_RECORD_MEMORY, .time_ns = event->time_ns, .thread = track};
	enum status status;

	import->threads.items[track].shows = event->device;
	import->args.used = 0;
	report__import_args_row(&import->args, IPS_TABLE_memory_event, event, sizeof(*event));
	status = put_point(import, &record, REPORT_IMPORT_MEMORY, err);
	for (size_t i = 0; i < ARRAY_LEN(series) && status == ST_OK; i++) {
		struct import_record point;
		uint32_t site;

		if (series[i].value == IPS_NULL)
			continue;
		status = report__import_name_site(import, "memory", series[i].name, &site, err);
		if (status != ST_OK || site == IMPORT_NO_ID)
			return status;
		point = sample(track, site, event->time_ns, (double)series[i].value);
		status = put_point(import, &point, IMPORT_NO_USE, err);
	}
	return status;
}

/* ---- facts and reasons ----------------------------------------------------------------------- */

enum status report__import_fact(struct import *import, const char *key, const char *value,
				struct err *err)
{
	const struct import_token name = token_of(key), text = token_of(value);

	return report__import_meta_add(import, "", &name, &text, err);
}

void report__import_left(struct import *import, enum report_import_left left)
{
	import->counts->left[left]++;
}

void report__import_left_what(struct import *import, const char *what, uint64_t count)
{
	struct report_import_counts *counts = import->counts;
	size_t i = 0;

	if (count == 0)
		return;
	counts->left[REPORT_IMPORT_LEFT_KIND] += count;
	while (i < REPORT_IMPORT_WHATS && counts->whats[i].count > 0 &&
	       strcmp(counts->whats[i].what, what) != 0)
		i++;
	if (i == REPORT_IMPORT_WHATS)
		return;
	str_copy(counts->whats[i].what, sizeof(counts->whats[i].what), what);
	counts->whats[i].count += count;
}

void report__import_note(struct import *import, enum report_import_note note)
{
	import->counts->notes[note]++;
}

void report__import_broken(struct import *import, uint64_t offset, const char *why)
{
	struct report_import_counts *counts = import->counts;

	counts->broken = true;
	counts->broken_at = offset;
	str_copy(counts->why, sizeof(counts->why), why);
}

/* ---- the input ------------------------------------------------------------------------------- */

enum status report__import_copy(struct import *import, char named[FS_PATH_SIZE], int *fd,
				size_t *size, struct err *err)
{
	const char *output = import->params->output;
	char *buffer = mem_alloc(COPY_BYTES), path[FS_PATH_SIZE];
	enum status status = ST_OK;
	size_t got = 1;

	*fd = -1;
	*size = 0;
	if (!buffer)
		status = err_nomem(err);
	else if (!fs_path(path, named ? "%s.XXXXXX" : "%s.copy.XXXXXX", output))
		status = err_set(err, ST_INVALID, "%s: the path is too long", output);
	else if ((*fd = mkostemp(path, O_CLOEXEC)) < 0)
		status = err_set(err, errno == ENOSPC ? ST_NOSPACE : ST_IO, "%s: cannot write: %s",
				 path, strerror(errno));
	else if (named)
		str_copy(named, FS_PATH_SIZE, path);
	else
		unlink(path);
	while (status == ST_OK && got > 0) {
		status = report__import_input_read(&import->input, buffer, COPY_BYTES, &got, err);
		for (size_t done = 0; status == ST_OK && done < got;) {
			const ssize_t put = write(*fd, buffer + done, got - done);

			if (put == 0 || (put < 0 && errno != EINTR))
				status = err_set(err, errno == ENOSPC ? ST_NOSPACE : ST_IO,
						 "%s: cannot write: %s", path, strerror(errno));
			done += put < 0 ? 0 : (size_t)put;
		}
		*size += status == ST_OK ? got : 0;
		if (status == ST_OK)
			status = report__import_progress_read(import, 0, 0, err);
	}
	mem_free(buffer);
	return status;
}

enum status report__import_progress_read(struct import *import, uint64_t done, uint64_t all,
					 struct err *err)
{
	/* Reading counts as half of the work. */
	return report__import_progress(import,
				       all == 0 || done > all ? -1 : (int)(done * 500 / all), err);
}
