/*
 * Read Nsight Systems' SQLite exports: schemas 2.9 to 3.25, whose names of columns have stayed.
 * Tables without rows are absent, columns came with versions.
 *
 * A launch and what it ran have the same correlationId within a process. Streams are told apart by
 * process, device, context and stream. A wait for an event has the event's last record before it:
 * the stream and the call that recorded it. What the file says of the machine and its people
 * (META_DATA_CAPTURE, TARGET_INFO_SYSTEM_ENV, ProcessStreams, EXPORT_USER ...) is not read.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/import/report_import_sqlite.h"

#define STREAM_SORT 1000000    /* streams are below the threads of their process */
#define NO_STREAM   4294967295 /* of a wait for a whole context */

#define MOST_RECORDS ((size_t)1 << 19) /* of events */

/* Numbers of the categories of sites. */
enum {
	SITE_API,
	SITE_OSRT,
	SITE_LIBRARY,
	SITE_MPI,
	SITE_GRAPH,
	SITE_PROFILER,
	SITE_KERNEL,
	SITE_NVTX,
	SITE_METRIC,
};

static int64_t pid_of(int64_t global)
{
	return (int64_t)((uint64_t)global >> 24 & 0xffffff);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* The name of @global in the table @table, which @sql selects; "": none. */
static void name_of(struct import_sqlite *in, const char *table, const char *sql, int64_t global,
		    char *out, size_t size)
{
	struct prof_query *query;

	out[0] = 0;
	if (err_stuck(in->err) || !report__sqlite_has(in, table))
		return;
	prof_query_open(&query, in->db, sql, in->err);
	prof_query_int(query, ":global", global);
	if (prof_query_next(query, &in->err->status, in->err) && prof_column_text(query, 0))
		str_copy(out, size, prof_column_text(query, 0));
	prof_query_close(query);
}

/* The program without its folder, which often has the name of a user. */
static void process_name(struct import_sqlite *in, int64_t pid, char *out, size_t size)
{
	const char *program = out;

	name_of(in, "PROCESSES", "SELECT name FROM main.PROCESSES WHERE pid = :global", pid, out,
		size);
	for (const char *c = out; *c; c++)
		if ((*c == '/' || *c == '\\') && c[1])
			program = c + 1;
	memmove(out, program, strlen(program) + 1);
}

/* A thread's row, or with @what another one of its process. */
static uint32_t thread_track(struct import_sqlite *in, int64_t global, const char *what)
{
	const int64_t key[4] = {what ? -3 : -2, global, (int64_t)map_text(MAP_SEED, what), 0};
	const uint32_t known = report__sqlite_known(in, key);
	char pid[32], tid[32], name[256] = "", program[4096], shown[320];
	struct import_track track = {.kind = IMPORT_THREAD,
				     .process = pid,
				     .thread = what ? what : tid,
				     .process_sort = IPS_NULL};

	if (known != IMPORT_NO_ID)
		return known;
	snprintf(pid, sizeof(pid), "%lld", (long long)pid_of(global));
	snprintf(tid, sizeof(tid), "%lld", (long long)(global & 0xffffff));
	if (!what)
		name_of(in, "ThreadNames",
			"SELECT s.value FROM main.ThreadNames t JOIN main.StringIds s ON "
			"s.id = t.nameId WHERE t.globalTid = :global",
			global, name, sizeof(name));
	process_name(in, pid_of(global), program, sizeof(program));
	snprintf(shown, sizeof(shown), "thread %s (%s)", tid, name);
	track.name = name[0] != 0 ? shown : NULL;
	track.process_name = program[0] != 0 ? program : NULL;
	return report__sqlite_track(in, key, &track);
}

/* Processes and threads of rows without one: those of the first row that has one. */
static int64_t known_process(const struct import_sqlite *in, int64_t global)
{
	for (size_t i = 0; i < in->count && global == IPS_NULL; i++) {
		if (in->known[i].key[0] == -2)
			global = in->known[i].key[1];
	}
	return global == IPS_NULL ? 0 : global & ~(int64_t)0xffffff;
}

/* Where something is on a device. */
struct place {
	int64_t global, device, context, stream;
	const char *name; /* of the device */
	uint32_t track;
	uint32_t process; /* index, for launch keys */
};

static void find_place(struct import_sqlite *in, struct place *place, enum import_thread_kind kind)
{
	const bool streams = place->stream != IPS_NULL && place->stream != NO_STREAM;
	char pid[32], what[96], name[64];
	struct import_track track = {.kind = kind,
				     .process = pid,
				     .thread = what,
				     .name = streams               ? name
					     : kind == IMPORT_SYNC ? "context"
								   : NULL,
				     .sort = STREAM_SORT,
				     .process_sort = IPS_NULL};
	int64_t key[4];
	uint32_t device;

	place->global = known_process(in, place->global);
	place->device = place->device == IPS_NULL ? 0 : place->device;
	/* A wait's device may be 0 whatever its context's is, which kernels and copies have. */
	memcpy(key, (int64_t[]){-6, place->global, place->context, 0}, sizeof(key));
	device = report__sqlite_known(in, key);
	if (kind == IMPORT_SYNC && device != IMPORT_NO_ID)
		place->device = device;
	else if (kind == IMPORT_THREAD && device == IMPORT_NO_ID)
		report__sqlite_remember(in, key, (uint32_t)place->device);
	key[0] = (int64_t)kind << 32 | (place->device & 0xffffffff);
	key[1] = place->global;
	key[2] = place->context;
	key[3] = place->stream;
	place->name = report__sqlite_gpu(in, place->device);
	place->track = report__sqlite_known(in, key);
	if (place->track == IMPORT_NO_ID) {
		snprintf(pid, sizeof(pid), "%lld", (long long)pid_of(place->global));
		snprintf(what, sizeof(what), "%lld/%lld/%lld", (long long)place->device,
			 (long long)place->context, (long long)place->stream);
		snprintf(name, sizeof(name), "stream %lld", (long long)place->stream);
		track.device = place->name;
		track.sort += place->device;
		place->track = report__sqlite_track(in, key, &track);
	}
	if (place->track != IMPORT_NO_ID)
		place->process = in->import->threads.items[place->track].process;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Tables of calls on threads: start, end, globalTid, and a name. */
struct call_table {
	const char *table, *category, *row; /* @row: on a row of their own, or NULL */
	int site;
};
static const struct call_table call_tables[] = {
	{"CUPTI_ACTIVITY_KIND_RUNTIME", "cuda_api", NULL, SITE_API},
	{"OSRT_API", "osrt", NULL, SITE_OSRT},
	{"CUDNN_EVENTS", "cudnn", NULL, SITE_LIBRARY},
	{"CUBLAS_EVENTS", "cublas", NULL, SITE_LIBRARY},
	{"OPENACC_DATA_EVENTS", "openacc", NULL, SITE_LIBRARY},
	{"OPENACC_LAUNCH_EVENTS", "openacc", NULL, SITE_LIBRARY},
	{"OPENACC_OTHER_EVENTS", "openacc", NULL, SITE_LIBRARY},
	{"MPI_P2P_EVENTS", "mpi", NULL, SITE_MPI},
	{"MPI_COLLECTIVES_EVENTS", "mpi", NULL, SITE_MPI},
	{"MPI_START_WAIT_EVENTS", "mpi", NULL, SITE_MPI},
	{"MPI_OTHER_EVENTS", "mpi", NULL, SITE_MPI},
	{"NVSHMEM_EVENTS", "nvshmem", NULL, SITE_LIBRARY},
	{"VULKAN_API", "vulkan", NULL, SITE_LIBRARY},
	{"CUDA_GRAPH_EVENTS", "cuda_graph", "CUDA graphs", SITE_GRAPH},
	{"CUDA_GRAPH_NODE_EVENTS", "cuda_graph", "CUDA graphs", SITE_GRAPH},
	{"PROFILER_OVERHEAD", "profiler", "profiler overhead", SITE_PROFILER},
	{"CUPTI_ACTIVITY_KIND_OVERHEAD", "profiler", "CUPTI overhead", SITE_PROFILER},
};

static void call_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	const struct call_table *table = user;
	const int64_t start = prof_column_int(query, 0), end = prof_column_int(query, 1);
	const int64_t name = prof_column_int(query, 3), text = prof_column_int(query, 4);
	const int64_t correlation = prof_column_int(query, 5), code = prof_column_int(query, 6);
	int64_t global = prof_column_int(query, 2);
	uint32_t track, site, result;

	global = global == IPS_NULL ? known_process(in, global) : global;
	track = thread_track(in, global, table->row);
	site = report__sqlite_site(in, table->site, table->category,
				   name == IPS_NULL ? text : name);
	if (!err_stuck(in->err) && code != IPS_NULL && code != 0 &&
	    report__import_arg_name(in->import, "return value", &result, in->err) == ST_OK)
		report__import_arg_int(in->import, result, code);
	if (!report__sqlite_has_place(in, track, site, start))
		return;
	if (table->site == SITE_API && correlation != IPS_NULL) {
		const struct ips_call call = {
			import_launch_key(in->import->threads.items[track].process, correlation)};

		report__import_row(in->import, IPS_TABLE_call, &call, sizeof(call));
	}
	report__sqlite_span(in, track, site, start, end);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* What every row of a device's activities has, in its first columns. */
#define ACTIVITY_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "globalPid"

struct activity {
	int64_t start, end;
	struct place place;
};

static struct activity read_activity(struct import_sqlite *in, struct prof_query *query,
				     enum import_thread_kind kind)
{
	struct activity out = {.start = prof_column_int(query, 0),
			       .end = prof_column_int(query, 1),
			       .place = {.global = prof_column_int(query, 5),
					 .device = prof_column_int(query, 2),
					 .context = prof_column_int(query, 3),
					 .stream = prof_column_int(query, 4)}};

	find_place(in, &out.place, kind);
	return out;
}

static bool has_place(struct import_sqlite *in, const struct activity *activity, uint32_t site)
{
	return report__sqlite_has_place(in, activity->place.track, site, activity->start);
}

static void put_activity(struct import_sqlite *in, const struct activity *activity, uint32_t site)
{
	report__sqlite_span(in, activity->place.track, site, activity->start, activity->end);
}

static int64_t launch_key(const struct place *place, int64_t correlation)
{
	return correlation == IPS_NULL ? IPS_NULL : import_launch_key(place->process, correlation);
}

static int64_t sum_of(int64_t a, int64_t b)
{
	return a == IPS_NULL ? b : b == IPS_NULL ? a : (int64_t)((uint64_t)a + (uint64_t)b);
}

static void kernel_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	const bool graph = *(const bool *)user; /* that was launched and recorded as a whole */
	const int64_t full = graph ? IPS_NULL : prof_column_int(query, 7);
	const struct activity activity = read_activity(in, query, IMPORT_THREAD);
	const uint32_t site =
		graph ? report__sqlite_name(in, "graph", "CUDA graph")
		      : report__sqlite_site(in, SITE_KERNEL, "kernel",
					    full == IPS_NULL ? prof_column_int(query, 8) : full);
	struct ips_kernel row;

	if (!has_place(in, &activity, site))
		return;
	row = report__import_kernel(activity.place.name, activity.place.stream,
				    graph ? "graph" : in->import->sites.items[site].kernel_kind,
				    launch_key(&activity.place, prof_column_int(query, 6)));
	row.context = activity.place.context;
	if (graph) {
		row.graph = prof_column_int(query, 7);
	} else {
		report__sqlite_grid(&row, query, 9);
		row.registers = prof_column_int(query, 15);
		row.shared_bytes = sum_of(prof_column_int(query, 16), prof_column_int(query, 17));
		row.graph = prof_column_int(query, 18);
		row.graph_node = prof_column_int(query, 19);
	}
	report__import_row(in->import, IPS_TABLE_kernel, &row, sizeof(row));
	put_activity(in, &activity, site);
}

/* The text of a code; NULL: unknown. */
static const char *code_text(const char *const *texts, size_t count, int64_t code)
{
	return code < 0 || code >= (int64_t)count ? NULL : texts[code];
}

static const char *memory_kind(int64_t code)
{
	static const char *const texts[] = {"pageable", "pinned",        "device",        "array",
					    "managed",  "device static", "managed static"};

	return code_text(texts, ARRAY_LEN(texts), code);
}

static void copy_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	static const char *const kinds[] = {NULL,   "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
					    "DtoA", "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
	const bool fills = *(const bool *)user;
	const char *kind =
		fills ? "memset" : code_text(kinds, ARRAY_LEN(kinds), prof_column_int(query, 8));
	const int64_t to = prof_column_int(query, 11);
	const struct activity activity = read_activity(in, query, IMPORT_THREAD);
	struct ips_copy row;
	uint32_t site;
	char name[32];

	snprintf(name, sizeof(name), fills ? "Memset" : "Memcpy %s", !kind ? "" : kind);
	site = report__sqlite_name(in, fills ? "memset" : "memcpy", name);
	if (!has_place(in, &activity, site))
		return;
	row = (struct ips_copy){
		.device = activity.place.name,
		.context = activity.place.context,
		.stream = activity.place.stream,
		.kind = kind,
		.launch_key = launch_key(&activity.place, prof_column_int(query, 6)),
		.bytes = prof_column_int(query, 7),
		.source = memory_kind(prof_column_int(query, 9)),
		.target = memory_kind(prof_column_int(query, fills ? 12 : 10)),
		.to_device = kind && strcmp(kind, "PtoP") == 0 && to != IPS_NULL
				     ? report__import_gpu(in->import, to)
				     : NULL,
	};
	report__import_row(in->import, IPS_TABLE_copy, &row, sizeof(row));
	put_activity(in, &activity, site);
}

/* The records of events, in order of process, event and time: @order is the number that a record
 * and its waits share (schemas from 3.24.14 on), or the record's correlation. */
struct record {
	int64_t global, event, order, correlation, stream;
};

struct records {
	struct record *all; /* owned */
	size_t count, capacity;
	bool numbered; /* @order is a shared number */
};

static int compare_records(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return SORTED_BY(x, y, global, event, order);
}

static void record_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	struct records *records = user;
	struct record record = {.global = known_process(in, prof_column_int(query, 0)),
				.event = prof_column_int(query, 1),
				.order = prof_column_int(query, 2),
				.correlation = prof_column_int(query, 3),
				.stream = prof_column_int(query, 4)};

	if (records->count >= MOST_RECORDS || record.event == IPS_NULL ||
	    record.correlation == IPS_NULL) {
		report__import_left_what(in->import, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", 1);
		return;
	}
	records->numbered |= record.order > 0;
	if (record.order <= 0)
		record.order = record.correlation;
	if (mem_grow(&records->all, &records->capacity, records->count + 1,
		     sizeof(*records->all)) != 0)
		err_nomem(in->err);
	else
		records->all[records->count++] = record;
	import_used(in->import, REPORT_IMPORT_RECORD);
}

/* The record that a wait of @global is for; NULL: unknown. */
static const struct record *find_record(const struct records *records, int64_t global,
					int64_t event, int64_t number, int64_t correlation)
{
	const bool numbered = records->numbered && number > 0;
	/* Without a number: the last record of a call before the one that waits. */
	const int64_t order = numbered                  ? number
			      : correlation == IPS_NULL ? IPS_NULL
							: correlation - 1;
	const struct record wanted = {.global = global, .event = event, .order = order};
	const struct record *found;
	size_t next;

	if (order == IPS_NULL)
		return NULL;
	SORTED_FIRST(next, 0, records->count, compare_records(&records->all[next], &wanted) <= 0);
	found = next > 0 ? &records->all[next - 1] : NULL;
	return found && found->global == global && found->event == event &&
			       (!numbered || found->order == number)
		       ? found
		       : NULL;
}

static void sync_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	static const char *const names[] = {NULL, "Event synchronize", "Stream wait event",
					    "Stream synchronize", "Context synchronize"};
	const int64_t type = prof_column_int(query, 6);
	const char *name = code_text(names, ARRAY_LEN(names), type);
	const struct activity activity = read_activity(in, query, IMPORT_SYNC);
	const uint32_t site = report__sqlite_name(in, "sync", !name ? "Synchronize" : name);
	const struct record *record = NULL;
	uint32_t stream, call;

	if (!has_place(in, &activity, site))
		return;
	if (type == 1 || type == 2)
		record = find_record(user, activity.place.global, prof_column_int(query, 8),
				     prof_column_int(query, 9), prof_column_int(query, 7));
	/* As PyTorch's profiler names them. */
	if (record &&
	    report__import_arg_name(in->import, "wait_on_stream", &stream, in->err) == ST_OK)
		report__import_arg_int(in->import, stream, record->stream);
	if (record && !err_stuck(in->err) &&
	    report__import_arg_name(in->import, "wait_on_cuda_event_record_corr_id", &call,
				    in->err) == ST_OK)
		report__import_arg_int(in->import, call, record->correlation);
	if (!err_stuck(in->err))
		put_activity(in, &activity, site);
}

static void read_device_tables(struct import_sqlite *in)
{
	static const char *const kernel[] = {ACTIVITY_COLUMNS,
					     "correlationId",
					     "demangledName",
					     "shortName",
					     "gridX",
					     "gridY",
					     "gridZ",
					     "blockX",
					     "blockY",
					     "blockZ",
					     "registersPerThread",
					     "staticSharedMemory",
					     "dynamicSharedMemory",
					     "graphId",
					     "graphNodeId"};
	static const char *const copy[] = {ACTIVITY_COLUMNS, "correlationId", "bytes",
					   "copyKind",       "srcKind",       "dstKind",
					   "dstDeviceId",    "memKind"};
	static const char *const event[] = {"globalPid", "eventId", "eventSyncId", "correlationId",
					    "streamId"};
	static const char *const sync[] = {ACTIVITY_COLUMNS, "syncType", "correlationId", "eventId",
					   "eventSyncId"};
	static const char *const graph[] = {ACTIVITY_COLUMNS, "correlationId", "graphId"};
	bool one = false, whole = true, copies = false, fills = true;
	struct records records = {0};
	const struct {
		const char *table;
		const char *const *columns;
		size_t count;
		sqlite_row_fn row;
		void *user;
	} tables[] = {
		{"CUPTI_ACTIVITY_KIND_KERNEL", kernel, ARRAY_LEN(kernel), kernel_row, &one},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", copy, ARRAY_LEN(copy), copy_row, &copies},
		{"CUPTI_ACTIVITY_KIND_MEMSET", copy, ARRAY_LEN(copy), copy_row, &fills},
		{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync, ARRAY_LEN(sync), sync_row, &records},
		{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph, ARRAY_LEN(graph), kernel_row, &whole},
	};

	report__sqlite_each(in, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", event, ARRAY_LEN(event),
			    record_row, &records);
	if (records.count > 0)
		qsort(records.all, records.count, sizeof(*records.all), compare_records);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		report__sqlite_each(in, tables[i].table, tables[i].columns, tables[i].count,
				    tables[i].row, tables[i].user);
	mem_free(records.all);
}

static void read_gpus(struct import_sqlite *in)
{
	static const char *const columns[] = {"id",           "cuDevice",     "name",
					      "totalMemory",  "smCount",      "clockRate",
					      "computeMajor", "computeMinor", "memoryBandwidth"};
	struct prof_query *query =
		report__sqlite_select(in, "TARGET_INFO_GPU", columns, ARRAY_LEN(columns));

	while (query && prof_query_next(query, &in->err->status, in->err)) {
		const int64_t cuda = prof_column_int(query, 1);
		const int64_t major = prof_column_int(query, 6), minor = prof_column_int(query, 7);
		struct ips_device device = {.number = cuda == IPS_NULL ? prof_column_int(query, 0)
								       : cuda,
					    .model = prof_column_text(query, 2),
					    .memory_bytes = prof_column_int(query, 3),
					    .units = prof_column_int(query, 4),
					    .clock_hz = prof_column_int(query, 5),
					    .memory_bytes_per_s = prof_column_int(query, 8)};
		char architecture[48];

		snprintf(architecture, sizeof(architecture), "%lld.%lld", (long long)major,
			 (long long)minor);
		if (major != IPS_NULL && minor != IPS_NULL)
			device.architecture = architecture;
		device.device = report__sqlite_gpu(in, device.number);
		if (device.device)
			report__import_device(in->import, &device, in->err);
	}
	prof_query_close(query);
}

/* ---- NVTX ------------------------------------------------------------------------------------ */

enum nvtx {
	NVTX_CATEGORY = 33,
	NVTX_MARK = 34,
	NVTX_THREAD_NAME = 39,
	NVTX_PUSH_POP = 59,
	NVTX_START_END = 60,
	NVTX_TEXT_PUSH_POP = 70,
	NVTX_TEXT_START_END = 71,
	NVTX_DOMAIN = 75,
	NVTX_DOMAIN_END = 76
};

static void nvtx_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	const int64_t start = prof_column_int(query, 0), end = prof_column_int(query, 1);
	const int64_t type = prof_column_int(query, 2), global = prof_column_int(query, 3);
	const bool spans = type == NVTX_PUSH_POP || type == NVTX_TEXT_PUSH_POP;
	const bool crosses = type == NVTX_START_END || type == NVTX_TEXT_START_END;
	const char *text = prof_column_text(query, 4);
	struct ips_range range = {"nvtx", NULL}; /* of the default domain */
	uint32_t track, site, domain;

	(void)user;
	if (type == NVTX_DOMAIN) {
		const int64_t key[4] = {-4, known_process(in, global), prof_column_int(query, 6)};
		bool fresh;
		uint32_t index = report__import_intern(&in->import->kept, !text ? "" : text,
						       !text ? 0 : strlen(text), SIZE_MAX, &fresh);

		import_used(in->import, REPORT_IMPORT_NAME);
		if (index == IMPORT_NO_ID)
			err_nomem(in->err);
		report__sqlite_remember(in, key, index);
		return;
	}
	if (type == NVTX_CATEGORY || type == NVTX_THREAD_NAME || type == NVTX_DOMAIN_END) {
		import_used(in->import, REPORT_IMPORT_NAME);
		return;
	}
	if (!spans && !crosses && type != NVTX_MARK) {
		report__import_left_what(in->import, "NVTX_EVENTS of other types", 1);
		return;
	}
	track = thread_track(in, global == IPS_NULL ? known_process(in, global) : global,
			     crosses ? "NVTX ranges" : NULL);
	site = text ? report__sqlite_name(in, "nvtx", text)
		    : report__sqlite_site(in, SITE_NVTX, "nvtx", prof_column_int(query, 5));
	if (!report__sqlite_has_place(in, track, site, start))
		return;
	if (type == NVTX_MARK) {
		report__import_instant(in->import, track, site, start, in->err);
		return;
	}
	domain = report__sqlite_known(
		in, (int64_t[4]){-4, known_process(in, global), prof_column_int(query, 6)});
	range.domain = domain == IMPORT_NO_ID ? NULL : in->import->kept.strings[domain].text;
	report__import_row(in->import, IPS_TABLE_range, &range, sizeof(range));
	report__sqlite_span(in, track, site, start, end);
}

/* ---- counters and memory --------------------------------------------------------------------- */

/* The site of a metric, by the name that the file has of it. */
static uint32_t metric_site(struct import_sqlite *in, int64_t type, int64_t metric)
{
	const int64_t key[4] = {-5, type, metric, 0};
	uint32_t site = report__sqlite_known(in, key);
	struct prof_query *names;
	char name[256];

	if (site != IMPORT_NO_ID || err_stuck(in->err))
		return site;
	snprintf(name, sizeof(name), "metric %lld", (long long)metric);
	if (report__sqlite_has(in, "TARGET_INFO_GPU_METRICS")) {
		prof_query_open(&names, in->db,
				"SELECT metricName FROM main.TARGET_INFO_GPU_METRICS WHERE "
				"typeId = :type AND metricId = :metric AND metricName <> ''",
				in->err);
		prof_query_int(names, ":type", type);
		prof_query_int(names, ":metric", metric);
		if (prof_query_next(names, &in->err->status, in->err))
			str_copy(name, sizeof(name), prof_column_text(names, 0));
		prof_query_close(names);
	}
	site = report__sqlite_name(in, "metric", name);
	report__sqlite_remember(in, key, site);
	return site;
}

static void metric_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	const int64_t time = prof_column_int(query, 0), type = prof_column_int(query, 1);
	const double value = prof_column_real(query, 3);
	uint32_t track, site;
	char row[48];

	(void)user;
	snprintf(row, sizeof(row), "GPU %d metrics", (int)(type & 0xff));
	track = thread_track(in, known_process(in, IPS_NULL), row);
	if (err_stuck(in->err) ||
	    report__import_track_shows(in->import, track,
				       report__import_gpu(in->import, type & 0xff),
				       in->err) != ST_OK)
		return;
	site = metric_site(in, type, prof_column_int(query, 2));
	if (!report__sqlite_has_place(in, track, site, time))
		return;
	if (!isfinite(value))
		report__import_left(in->import, REPORT_IMPORT_LEFT_NO_NUMBER);
	else
		report__import_sample(in->import, track, site, time, value, in->err);
}

/* Allocated bytes by device, in order of the rows. */
struct usage {
	struct {
		int64_t device, bytes;
	} of[64];
	size_t count;
};

static void memory_row(struct import_sqlite *in, struct prof_query *query, void *user)
{
	struct usage *usage = user;
	const int64_t kind = prof_column_int(query, 6), bytes = prof_column_int(query, 5);
	struct ips_memory_event event = {.time_ns = prof_column_int(query, 0),
					 .kind = kind == 1 ? "free" : "alloc",
					 .bytes = kind == 1 && bytes > 0 ? -bytes : bytes,
					 .address = prof_column_int(query, 4),
					 .total_bytes = IPS_NULL,
					 .reserved_bytes = IPS_NULL};
	const int64_t device = prof_column_int(query, 2), global = prof_column_int(query, 1);
	char name[48];
	uint32_t track;
	size_t i = 0;

	event.device = report__sqlite_gpu(in, device);
	if (!event.device)
		return;
	while (i < usage->count && usage->of[i].device != device)
		i++;
	if (i == usage->count && i < ARRAY_LEN(usage->of)) {
		usage->of[i].device = device;
		usage->of[i].bytes = 0;
		usage->count++;
	}
	if (i < usage->count && event.bytes != IPS_NULL) {
		usage->of[i].bytes = sum_of(usage->of[i].bytes, event.bytes);
		event.total_bytes = usage->of[i].bytes;
	}
	snprintf(name, sizeof(name), "%s memory", event.device);
	track = thread_track(in, known_process(in, global), name);
	if (report__sqlite_has_place(in, track, 0, event.time_ns))
		report__import_memory(in->import, track, &event, in->err);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* What the file says of itself, without people and machines. */
static void read_facts(struct import_sqlite *in)
{
	static const char *const kept[] = {"EXPORT_PRODUCT_NAME",
					   "EXPORT_PRODUCT_VERSION",
					   "EXPORT_SCHEMA_VERSION",
					   "EXPORT_PLATFORM",
					   "EXPORT_ARCH",
					   "EXPORT_PARAM_LAZY",
					   "EXPORT_PARAM_TIME_NORMALIZE",
					   "EXPORT_PARAM_TIME_SHIFT"};
	static const char *const columns[] = {"name", "value"}, *const start[] = {"utcEpochNs"};
	const char *table = report__sqlite_has(in, "META_DATA_EXPORT") ? "META_DATA_EXPORT"
								       : "EXPORT_META_DATA";
	struct prof_query *query = report__sqlite_select(in, table, columns, 2);

	while (query && prof_query_next(query, &in->err->status, in->err)) {
		const char *name = prof_column_text(query, 0);

		for (size_t i = 0; name && i < ARRAY_LEN(kept); i++) {
			if (strcmp(name, kept[i]) == 0)
				report__import_fact(in->import, name, prof_column_text(query, 1),
						    in->err);
		}
	}
	prof_query_close(query);
	query = report__sqlite_select(in, "TARGET_INFO_SESSION_START_TIME", start, 1);
	if (query && prof_query_next(query, &in->err->status, in->err))
		in->import->epoch_ns = prof_column_int(query, 0);
	prof_query_close(query);
}

static bool recognise_nsys(struct import_sqlite *in)
{
	return report__sqlite_has(in, "META_DATA_EXPORT") ||
	       report__sqlite_has(in, "EXPORT_META_DATA");
}

static void read_nsys(struct import_sqlite *in)
{
	static const char *const left[] = {"SCHED_EVENTS",      "COMPOSITE_EVENTS",
					   "DIAGNOSTIC_EVENT",  "GENERIC_EVENTS",
					   "NET_NIC_METRIC",    "ETW_EVENTS",
					   "IB_SWITCH_METRICS", "PERF_EVENT_SOC_OR_CPU_RAW_EVENT",
					   "DX12_API",          "OPENGL_API",
					   "UCP_WORKERS"};
	static const char *const metric[] = {"timestamp", "typeId", "metricId", "value"};
	static const char *const memory[] = {
		"start",   "globalPid", "deviceId",           "contextId",
		"address", "bytes",     "memoryOperationType"};
	static const char *const nvtx[] = {"start", "end",    "eventType", "globalTid",
					   "text",  "textId", "domainId"};
	static const char *const call[] = {"start",  "end",           "globalTid",  "nameId",
					   "textId", "correlationId", "returnValue"};
	struct usage usage = {.count = 0};

	in->strings = "StringIds";
	in->string_column = "value";
	read_facts(in);
	read_gpus(in);
	for (size_t i = 0; i < ARRAY_LEN(call_tables); i++)
		report__sqlite_each(in, call_tables[i].table, call, ARRAY_LEN(call), call_row,
				    (void *)(uintptr_t)&call_tables[i]);
	read_device_tables(in);
	report__sqlite_each(in, "NVTX_EVENTS", nvtx, ARRAY_LEN(nvtx), nvtx_row, NULL);
	report__sqlite_each(in, "GPU_METRICS", metric, ARRAY_LEN(metric), metric_row, NULL);
	report__sqlite_each(in, "CUDA_GPU_MEMORY_USAGE_EVENTS", memory, ARRAY_LEN(memory),
			    memory_row, &usage);
	report__sqlite_left(in, left, ARRAY_LEN(left));
}

const struct sqlite_format report__sqlite_nsys = {"nsight systems", recognise_nsys, read_nsys};
