/*
 * What the PyTorch profiler (Kineto) says by the categories of its events in a Chrome trace: what
 * ran on a device, which call launched it, what the program named, allocations, devices, the rank.
 *
 * Python's frames are on a row of their own: a step or an annotation begins within the frame that
 * enters it and ends within the one that leaves it, so on one row they would cross. So are spans
 * that wait for a stream, which last until after the kernels that they wait for.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_internal.h"

/* ---- rows beside a thread's ------------------------------------------------------------------ */

enum import_thread_kind report__import_kineto_kind(enum import_kineto kineto)
{
	return kineto == KINETO_PYTHON ? IMPORT_PYTHON
	       : kineto == KINETO_SYNC ? IMPORT_SYNC
				       : IMPORT_THREAD;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* An integer; builds for ROCm write some as texts. IPS_NULL: none. */
static int64_t int_of(const struct import_event *event, enum import_name name)
{
	const struct import_arg *arg = report__import_find_arg(event, name);
	long long value;

	if (arg && arg->type == IMPORT_ARG_INT)
		return arg->value.i;
	if (arg && arg->type == IMPORT_ARG_STRING && str_to_int(import_arg_text(arg), &value))
		return value;
	return IPS_NULL;
}

static double real_of(const struct import_event *event, enum import_name name)
{
	const struct import_arg *arg = report__import_find_arg(event, name);

	if (arg && arg->type == IMPORT_ARG_REAL)
		return arg->value.r;
	return arg && arg->type == IMPORT_ARG_INT ? (double)arg->value.i : (double)NAN;
}

/* "[80,1,1]" */
static void triple_of(const struct import_event *event, enum import_name name, int64_t *x,
		      int64_t *y, int64_t *z)
{
	const struct import_arg *arg = report__import_find_arg(event, name);
	int64_t *const out[] = {x, y, z};
	const char *at;

	*x = *y = *z = IPS_NULL;
	if (!arg || arg->type != IMPORT_ARG_STRING)
		return;
	at = import_arg_text(arg);
	for (size_t i = 0; i < ARRAY_LEN(out) && (*at == '[' || *at == ','); i++) {
		char *end;
		const long long value = strtoll(at + 1, &end, 10);

		if (end == at + 1)
			return;
		*out[i] = value;
		at = end;
	}
}

static int64_t launch_key(struct import *import, const struct import_event *event)
{
	const int64_t correlation = int_of(event, IMPORT_NAME_CORRELATION);

	(void)import;
	/* 0: none was there; the ids of a trace are of one process */
	return correlation == IPS_NULL || correlation == 0 ? IPS_NULL
							   : import_launch_key(0, correlation);
}

static enum status no_memory_without(const void *text, struct err *err)
{
	return !text ? err_nomem(err) : ST_OK;
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* "Memcpy HtoD (Pinned -> Device)", "CopyHostToDevice", an MTIA's direction "HOST_TO_DEVICE". */
static const char *copy_kind(const char *name)
{
	static const struct {
		const char *text, *kind;
	} kinds[] = {
		{"HtoD", "HtoD"},
		{"HostToDevice", "HtoD"},
		{"DtoH", "DtoH"},
		{"DtoD", "DtoD"},
		{"DeviceToHost", "DtoH"},
		{"HtoH", "HtoH"},
		{"PtoP", "PtoP"},
		{"DeviceToDevice", "DtoD"},
		{"HostToHost", "HtoH"},
		{"M2D", "HtoD"},
		{"D2M", "DtoH"},
		{"D2D", "DtoD"},
		{"HOST_TO_DEVICE", "HtoD"},
		{"DEVICE_TO_HOST", "DtoH"},
		{"DEVICE_TO_DEVICE", "DtoD"},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strstr(name, kinds[i].text))
			return kinds[i].kind;
	}
	return NULL;
}

static bool is_mtia(const struct import_event *event)
{
	return report__import_is(&event->fields[IMPORT_FIELD_CAT], "mtia_ccp_events");
}

/* The device of a stream's span: its argument, or the number of its process. NULL: out of
 * memory. */
static const char *device_of(struct import *import, const struct import_event *event)
{
	const struct import_token *pid = &event->fields[IMPORT_FIELD_PID];
	int64_t number = int_of(event, IMPORT_NAME_DEVICE);
	bool is_int;
	double r;

	if (number == IPS_NULL && !report__import_number(pid, &is_int, &number, &r))
		number = 0;
	return is_mtia(event) ? report__import_accelerator(import, "MTIA", number)
			      : report__import_gpu(import, number);
}

static enum status put_kernel(struct import *import, struct import_event *event,
			      struct import_thread *thread, const struct import_site *site,
			      struct err *err)
{
	struct ips_kernel row = {
		.device = device_of(import, event),
		.context = int_of(event, IMPORT_NAME_CONTEXT),
		.stream = int_of(event, IMPORT_NAME_STREAM),
		.kind = site->kernel_kind,
		.launch_key = launch_key(import, event),
		.registers = int_of(event, IMPORT_NAME_REGISTERS),
		.shared_bytes = int_of(event, IMPORT_NAME_SHARED),
		.occupancy = real_of(event, IMPORT_NAME_OCCUPANCY) / 100,
		.graph = int_of(event, IMPORT_NAME_GRAPH),
		.graph_node = int_of(event, IMPORT_NAME_GRAPH_NODE),
	};

	triple_of(event, IMPORT_NAME_GRID, &row.grid_x, &row.grid_y, &row.grid_z);
	triple_of(event, IMPORT_NAME_BLOCK, &row.block_x, &row.block_y, &row.block_z);
	thread->device = row.device;
	import->linked = import->linked || row.launch_key != IPS_NULL;
	report__import_args_row(&event->args, IPS_TABLE_kernel, &row, sizeof(row));
	return no_memory_without(row.device, err);
}

static enum status put_copy(struct import *import, struct import_event *event,
			    struct import_thread *thread, const char *name, bool fills,
			    struct err *err)
{
	const struct import_arg *direction = report__import_find_arg(event, IMPORT_NAME_DIRECTION);
	const int64_t bytes = int_of(event, IMPORT_NAME_BYTES);
	struct ips_copy row = {
		.device = device_of(import, event),
		.context = int_of(event, IMPORT_NAME_CONTEXT),
		.stream = int_of(event, IMPORT_NAME_STREAM),
		.kind = fills ? "memset"
			: direction && direction->type == IMPORT_ARG_STRING
				? copy_kind(import_arg_text(direction))
				: copy_kind(name),
		.launch_key = launch_key(import, event),
		.bytes = bytes != IPS_NULL ? bytes : int_of(event, IMPORT_NAME_SIZE),
	};
	static const char *const kinds[][2] = {{"Pageable", "pageable"}, {"Pinned", "pinned"},
					       {"Device", "device"},     {"Managed", "managed"},
					       {"Array", "array"},       {"Unified", "managed"}};
	const char *open = strrchr(name, '('), *arrow = !open ? NULL : strstr(open, "-> ");

	/* The kinds of memory of "(Pageable -> Device)". */
	for (size_t i = 0; i < ARRAY_LEN(kinds) && arrow; i++) {
		if (str_starts_with(open + 1, kinds[i][0]))
			row.source = kinds[i][1];
		if (str_starts_with(arrow + 3, kinds[i][0]))
			row.target = kinds[i][1];
	}
	thread->device = row.device;
	import->linked = import->linked || row.launch_key != IPS_NULL;
	report__import_args_row(&event->args, IPS_TABLE_copy, &row, sizeof(row));
	return no_memory_without(row.device, err);
}

enum status report__import_kineto_span(struct import *import, struct import_event *event,
				       uint32_t thread_id, const struct import_site *site,
				       struct err *err)
{
	struct import_thread *thread = &import->threads.items[thread_id];
	const char *name = site->site->name;
	const struct ips_call call = {launch_key(import, event)};
	struct ips_range range = {.kind = "annotation"};
	/* Other programs have categories of these names, too. */
	const bool device = int_of(event, IMPORT_NAME_STREAM) != IPS_NULL ||
			    int_of(event, IMPORT_NAME_DEVICE) != IPS_NULL || is_mtia(event);

	switch (site->kineto) {
	case KINETO_KERNEL:
		return device ? put_kernel(import, event, thread, site, err) : ST_OK;
	case KINETO_COPY:
	case KINETO_FILL:
		return device ? put_copy(import, event, thread, name, site->kineto == KINETO_FILL,
					 err)
			      : ST_OK;
	case KINETO_CALL:
		if (call.launch_key != IPS_NULL)
			report__import_args_row(&event->args, IPS_TABLE_call, &call, sizeof(call));
		return ST_OK;
	case KINETO_SYNC:
		thread->device = device_of(import, event);
		return no_memory_without(thread->device, err);
	case KINETO_ANNOTATION:
	case KINETO_DEVICE_ANNOTATION:
		if (site->kineto == KINETO_DEVICE_ANNOTATION)
			range.kind = "device";
		else if (site->step != IPS_NULL)
			range.kind = "step";
		report__import_args_row(&event->args, IPS_TABLE_range, &range, sizeof(range));
		return ST_OK;
	case KINETO_NONE:
	case KINETO_PYTHON:
	case KINETO_MEMORY:
	case KINETO_LAUNCH:
		break;
	}
	return ST_OK;
}

/* ---- allocations ----------------------------------------------------------------------------- */

#define DEVICE_CPU 0 /* of c10::DeviceType */

enum status report__import_kineto_memory(struct import *import, const struct import_event *event,
					 int64_t ns, struct err *err)
{
	const struct import_token *pid = &event->fields[IMPORT_FIELD_PID];
	const int64_t bytes = int_of(event, IMPORT_NAME_BYTES_CHANGED);
	const bool host = int_of(event, IMPORT_NAME_DEVICE_TYPE) == DEVICE_CPU;
	const int64_t number = int_of(event, IMPORT_NAME_DEVICE_ID);
	struct ips_memory_event row = {
		.device = host ? NULL : report__import_gpu(import, number < 0 ? 0 : number),
		.time_ns = ns,
		.kind = bytes < 0 ? "free" : "alloc",
		.bytes = bytes,
		.address = int_of(event, IMPORT_NAME_ADDR),
		.total_bytes = int_of(event, IMPORT_NAME_TOTAL_ALLOCATED),
		.reserved_bytes = int_of(event, IMPORT_NAME_TOTAL_RESERVED),
	};
	char process[64], name[64];
	const struct import_track track = {
		.kind = IMPORT_THREAD,
		.process = process,
		.thread = name,
		.sort = INT32_MAX,
		.process_sort = IPS_NULL,
	};
	enum status status;
	uint32_t id;

	if (!host && !row.device)
		return err_nomem(err);
	report__import_unescape(pid, process, sizeof(process), NULL, NULL);
	str_copy(name, sizeof(name), host ? "CPU" : row.device);
	str_copy(name + strlen(name), sizeof(name) - strlen(name), " memory");
	status = report__import_track(import, &track, &id, err);
	if (status != ST_OK || id != IMPORT_NO_ID)
		return status != ST_OK ? status : report__import_memory(import, id, &row, err);
	report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
	return ST_OK;
}

/* ---- top-level values ------------------------------------------------------------------------ */

static bool parse_int(const struct import_token *token, int64_t *out)
{
	bool is_int;
	double r;

	return report__import_number(token, &is_int, out, &r) && is_int;
}

static enum status read_device(struct import *import, const struct import_token *object,
			       struct err *err)
{
	struct import_reader reader = {.at = object->at + 1, .end = object->at + object->length};
	struct ips_device device = {NULL,     IPS_NULL, NULL,     NULL,
				    IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};
	const struct {
		const char *key;
		int64_t *to;
	} numbers[] = {{"id", &device.number},
		       {"totalGlobalMem", &device.memory_bytes},
		       {"numSms", &device.units}};
	int64_t major = IPS_NULL, minor = 0;
	char model[256] = "", architecture[32];
	struct import_token key, value;

	while (report__import_member(&reader, &key) && report__import_value(&reader, &value)) {
		for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
			if (report__import_is(&key, numbers[i].key) &&
			    !parse_int(&value, numbers[i].to))
				*numbers[i].to = IPS_NULL;
		}
		if (report__import_is(&key, "name"))
			report__import_unescape(&value, model, sizeof(model), NULL, NULL);
		else if (report__import_is(&key, "computeMajor") && !parse_int(&value, &major))
			major = IPS_NULL;
		else if (report__import_is(&key, "computeMinor") && !parse_int(&value, &minor))
			minor = 0;
	}
	if (device.number == IPS_NULL)
		return ST_OK;
	snprintf(architecture, sizeof(architecture), "%lld.%lld", (long long)major,
		 (long long)minor);
	device.model = model[0] == 0 ? NULL : model;
	device.architecture = major == IPS_NULL ? NULL : architecture;
	return report__import_device(import, &device, err);
}

enum status report__import_kineto_value(struct import *import, const struct import_token *key,
					const struct import_token *value, bool *taken,
					struct err *err)
{
	static const char *const private[] = {"host_name", "hostname", "username", "user_name",
					      "user"};

	*taken = false;
	for (size_t i = 0; i < ARRAY_LEN(private); i++)
		*taken = *taken || report__import_is(key, private[i]);
	if (*taken)
		report__import_note(import, REPORT_IMPORT_NOTE_PRIVATE);
	if (report__import_is(key, "distributedInfo") && value->kind == IMPORT_OBJECT) {
		struct import_reader reader = {.at = value->at + 1,
					       .end = value->at + value->length};
		struct import_token member, fact;
		int64_t rank;

		while (report__import_member(&reader, &member) &&
		       report__import_value(&reader, &fact)) {
			if (report__import_is(&member, "rank") && parse_int(&fact, &rank) &&
			    rank >= 0 && rank < IMPORT_MOST_RANK)
				import->rank = rank;
		}
	}
	if (report__import_is(key, "deviceProperties") && value->kind == IMPORT_ARRAY) {
		struct import_reader reader = {.at = value->at + 1,
					       .end = value->at + value->length};
		enum status status = ST_OK;
		struct import_token device;

		while (status == ST_OK && report__import_peek(&reader) == '{' &&
		       report__import_value(&reader, &device)) {
			status = read_device(import, &device, err);
			if (report__import_peek(&reader) == ',')
				reader.at++;
		}
		return status;
	}
	return ST_OK;
}
