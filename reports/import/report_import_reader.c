/*
 * What readers of all formats hand over becomes records. See report_import_reader.h.
 */
#include "reports/import/report_import_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
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

enum status report__import_put(struct import *import, struct import_record *record,
			       const struct import_args *args, struct err *err)
{
	const bool half = record->kind >= IMPORT_RECORD_BEGIN;
	enum status status;
	int64_t dur;

	record->number = import->counts->events;
	if (!half)
		status = put_sorted(import->main, record, args, err);
	else if (import->halves)
		status = put_sorted(import->halves, record, args, err);
	else
		status = report__import_half(import, record, args, err);
	if (status != ST_OK)
		return status;
	import->counts->notes[REPORT_IMPORT_NOTE_CUT_ARGS] += !args ? 0 : args->left;
	import->threads.items[record->thread].used = true;
	import->records += !half;
	dur = record->kind == IMPORT_RECORD_SPAN && record->dur_ns > 0 ? record->dur_ns : 0;
	import->first_ns = min(import->first_ns, record->time_ns);
	import->last_ns = max(import->last_ns, record->time_ns + dur);
	return ST_OK;
}

/* Put a record of a reader with the arguments collected for it. */
static enum status put(struct import *import, struct import_record *record, struct err *err)
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

/* ---- arguments and rows ---------------------------------------------------------------------- */

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

/* ---- events ---------------------------------------------------------------------------------- */

enum status report__import_span(struct import *import, uint32_t track, uint32_t site,
				int64_t start_ns, int64_t dur_ns, struct err *err)
{
	struct import_record record = {.kind = IMPORT_RECORD_SPAN,
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
	/* A thread's spans, its states, and pairs by number never end each other. */
	const uint64_t seed = pair != 0 ? 1 : kind == IMPORT_RECORD_STATE ? 2 : 0;
	struct import_record record = {
		.kind = (uint8_t)kind,
		.time_ns = ns,
		.thread = track,
		.site = site,
		.async = import->threads.items[track].kind == IMPORT_ASYNC,
		.value = import_hash(seed, pair == 0 ? (const void *)&track : &pair,
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

enum status report__import_state(struct import *import, uint32_t track, uint32_t site, int64_t ns,
				 struct err *err)
{
	return put_half(import, IMPORT_RECORD_STATE, track, site, ns, 0, err);
}

/* Put a point; @use: what it is counted as; IMPORT_NO_USE: it is counted when recorded. */
#define IMPORT_NO_USE REPORT_IMPORT_USES
static enum status put_point(struct import *import, struct import_record *record,
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
	struct import_record record = {
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
	struct import_record record = sample(track, site, ns, value);

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
	struct import_record record = {.kind = kinds[side],
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
	struct import_record record = {
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
			const int number = put == 0 ? EIO : errno;

			if (put == 0 || (put < 0 && number != EINTR))
				status = err_set(err, number == ENOSPC ? ST_NOSPACE : ST_IO,
						 "%s: cannot write: %s", path, strerror(number));
			done += put < 0 ? 0 : (size_t)put;
		}
		*size += status == ST_OK ? got : 0;
		if (status == ST_OK)
			status = report__import_progress_read(import, 0, 0, err);
	}
	mem_free(buffer);
	return status;
}
