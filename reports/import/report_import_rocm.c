/*
 * Read AMD's databases: rocpd (schema 3, of rocprofv3) and RPD (rocmProfileData, whose schema is
 * called 2).
 *
 * rocpd: every table's name ends in an id of the process, "_0000..."; a merged file has several of
 * each. The views without that ending are not read: a file could define them as anything. A region
 * and what it launched have events of the same stack_id. The environment and names of hosts
 * (rocpd_info_process, rocpd_info_node) are not read.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_sqlite.h"

#define QUEUE_SORT 1000000 /* queues are below the threads of their process */

enum {
	SITE_API,
	SITE_KERNEL,
	SITE_COPY,
	SITE_MONITOR
};

/* ---- both ------------------------------------------------------------------------------------ */

/* The track of a thread, or of a queue of @device, or the row @what of a process. */
static uint32_t find_track(struct import_sqlite *in, int64_t pid, int64_t number, int64_t queue,
			   const char *device, const char *what)
{
	const int64_t key[4] = {!device ? -2 : -3, pid, number,
				(int64_t)((uint64_t)queue ^ map_text(MAP_SEED, what))};
	char process[32], thread[64], name[64];
	struct import_track track = {.kind = IMPORT_THREAD,
				     .process = process,
				     .thread = what ? what : thread,
				     .process_sort = IPS_NULL,
				     .device = device};
	const uint32_t known = report__sqlite_known(in, key);

	if (known != IMPORT_NO_ID)
		return known;
	snprintf(process, sizeof(process), "%lld", (long long)pid);
	snprintf(thread, sizeof(thread), "%lld", (long long)number);
	if (device) {
		snprintf(thread, sizeof(thread), "%lld/%lld", (long long)number, (long long)queue);
		snprintf(name, sizeof(name), "queue %lld", (long long)queue);
		track.name = name;
		track.sort = QUEUE_SORT;
	}
	return report__sqlite_track(in, key, &track);
}

/* Run @row for each row of @sql, whose tables are constants of this file and there. */
static void each(struct import_sqlite *in, const char *sql,
		 void (*row)(struct import_sqlite *in, struct prof_query *query))
{
	struct prof_query *query = report__sqlite_rows(in, sql);

	while (query && report__sqlite_next(in, query))
		row(in, query);
	prof_query_close(query);
}

/* "MEMORY_COPY_HOST_TO_DEVICE", "CopyHostToDevice". */
static const char *copy_kind(const char *name)
{
	static const char *const kinds[][3] = {
		{"HOST_TO_DEVICE", "HostToDevice", "HtoD"},
		{"DEVICE_TO_HOST", "DeviceToHost", "DtoH"},
		{"DEVICE_TO_DEVICE", "DeviceToDevice", "DtoD"},
		{"HOST_TO_HOST", "HostToHost", "HtoH"},
		{"FILL", "FillBuffer", "memset"},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strstr(name, kinds[i][0]) || strstr(name, kinds[i][1]))
			return kinds[i][2];
	}
	return NULL;
}

/* ---- RPD ------------------------------------------------------------------------------------- */

/* Launches are linked across processes: ids of calls are of the file. */
static int64_t rpd_key(int64_t call)
{
	return call == IPS_NULL ? IPS_NULL : import_launch_key(0, call);
}

static void rpd_call(struct import_sqlite *in, struct prof_query *query)
{
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const struct ips_call call = {rpd_key(prof_column_int(query, 0))};
	const char *text = prof_column_text(query, 6);
	const uint32_t track =
		find_track(in, prof_column_int(query, 1), prof_column_int(query, 2), 0, NULL, NULL);
	const uint32_t site =
		report__sqlite_site(in, SITE_API, "hip_api", prof_column_int(query, 5));
	uint32_t name;

	if (err_stuck(in->err) ||
	    report__import_arg_name(in->import, "args", &name, in->err) != ST_OK ||
	    !report__sqlite_has_place(in, track, site, start))
		return;
	if (text && text[0] != 0)
		report__import_arg_text(in->import, name, text);
	report__import_row(in->import, IPS_TABLE_call, &call, sizeof(call));
	report__sqlite_span(in, track, site, start, end);
}

/* Operations whose call is recorded, with what the call says of them; of several calls, the first
 * comes first. */
static const char rpd_links_sql[] =
	"SELECT l.op_id, l.api_id, k.gridX, k.gridY, k.gridZ, k.workgroupX, k.workgroupY, "
	"k.workgroupZ, k.groupSegmentSize, c.size FROM main.rocpd_api_ops l "
	"LEFT JOIN main.rocpd_kernelapi k ON k.api_ptr_id = l.api_id "
	"LEFT JOIN main.rocpd_copyapi c ON c.api_ptr_id = l.api_id "
	"WHERE typeof(l.op_id) = 'integer' AND l.api_id IS NOT NULL ORDER BY l.op_id, l.api_id";

/* @link: the operation's row of rpd_links_sql; NULL: it has none. */
static void rpd_op(struct import_sqlite *in, struct prof_query *query,
		   const struct prof_query *link)
{
	const int64_t gpu = prof_column_int(query, 1), queue = prof_column_int(query, 2);
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const char *type = prof_column_text(query, 7);
	const bool kernel = !type || strstr(type, "Kernel") != NULL;
	const char *device = report__sqlite_gpu(in, gpu);
	const int64_t named = prof_column_int(query, prof_column_int(query, 6) == 1 ? 5 : 8);
	const int64_t key = rpd_key(link ? prof_column_int(link, 1) : IPS_NULL);
	const uint32_t track = find_track(in, 0, gpu, queue, device, NULL);
	const uint32_t site = report__sqlite_site(in, kernel ? SITE_KERNEL : SITE_COPY,
						  kernel ? "kernel" : "copy", named);

	if (!report__sqlite_has_place(in, track, site, start))
		return;
	if (kernel) {
		struct ips_kernel row = report__import_kernel(
			device, queue, in->import->sites.items[site].kernel_kind, key);

		if (link) {
			report__sqlite_grid(&row, link, 2);
			row.shared_bytes = prof_column_int(link, 8);
		}
		report__import_row(in->import, IPS_TABLE_kernel, &row, sizeof(row));
	} else {
		const struct ips_copy row = {.device = device,
					     .context = IPS_NULL,
					     .stream = queue,
					     .kind = copy_kind(type),
					     .launch_key = key,
					     .bytes = link ? prof_column_int(link, 9) : IPS_NULL};

		report__import_row(in->import, IPS_TABLE_copy, &row, sizeof(row));
	}
	report__sqlite_span(in, track, site, start, end);
}

static void rpd_monitor(struct import_sqlite *in, struct prof_query *query)
{
	const int64_t start = prof_column_int(query, 2), gpu = prof_column_int(query, 0);
	const enum prof_type type = prof_column_type(query, 3);
	uint32_t track, site;
	char row[48];

	snprintf(row, sizeof(row), "GPU %lld monitor", (long long)gpu);
	track = find_track(in, 0, gpu, 0, NULL, row);
	if (err_stuck(in->err) ||
	    report__import_track_shows(in->import, track, report__import_gpu(in->import, gpu),
				       in->err) != ST_OK)
		return;
	site = report__sqlite_name(in, "monitor", prof_column_text(query, 1));
	if (!report__sqlite_has_place(in, track, site, start))
		return;
	if (type != PROF_INT && type != PROF_REAL)
		report__import_left(in->import, REPORT_IMPORT_LEFT_NO_NUMBER);
	else
		report__import_sample(in->import, track, site, start, prof_column_real(query, 3),
				      in->err);
}

static bool recognise_rpd(struct import_sqlite *in)
{
	return report__sqlite_has(in, "rocpd_api") && report__sqlite_has(in, "rocpd_op") &&
	       report__sqlite_has(in, "rocpd_string");
}

static void read_rpd(struct import_sqlite *in)
{
	static const char api_sql[] =
		"SELECT a.id, a.pid, a.tid, a.start, a.\"end\", a.apiName_id, s.string "
		"FROM main.rocpd_api a LEFT JOIN main.rocpd_string s ON s.id = a.args_id "
		"ORDER BY a.id";
	static const char op_sql[] =
		"SELECT o.id, o.gpuId, o.queueId, o.start, o.\"end\", o.description_id, "
		"length(d.string) > 0, t.string, o.opType_id "
		"FROM main.rocpd_op o LEFT JOIN main.rocpd_string d ON d.id = o.description_id "
		"LEFT JOIN main.rocpd_string t ON t.id = o.opType_id ORDER BY o.id";
	static const char monitor_sql[] =
		"SELECT deviceId, monitorType, start, CASE WHEN value GLOB '*[^-0-9.eE+]*' THEN "
		"value ELSE CAST(value AS NUMERIC) END FROM main.rocpd_monitor ORDER BY id";
	static const char *const joined[] = {"rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi"};
	struct prof_query *links, *query;
	bool more;

	for (size_t i = 0; i < ARRAY_LEN(joined); i++) {
		if (report__sqlite_has(in, joined[i]))
			continue;
		err_set(in->err, ST_FORMAT, "%s: has no table %s", in->import->input.name,
			joined[i]);
		return;
	}
	in->strings = "rocpd_string";
	in->string_column = "string";
	links = report__sqlite_rows_beside(in, rpd_links_sql); /* sorted while calls are read */
	each(in, api_sql, rpd_call);
	/* Both results are in the order of the operations. SQLite would sort the links twice to
	 * join them. */
	query = report__sqlite_rows(in, op_sql);
	more = links && prof_query_next(links, &in->err->status, in->err);
	while (query && report__sqlite_next(in, query)) {
		const int64_t op = prof_column_int(query, 0);

		while (more && prof_column_int(links, 0) < op)
			more = prof_query_next(links, &in->err->status, in->err);
		rpd_op(in, query, more && prof_column_int(links, 0) == op ? links : NULL);
	}
	prof_query_close(query);
	prof_query_close(links);
	if (!err_stuck(in->err) && report__sqlite_has(in, "rocpd_monitor"))
		each(in, monitor_sql, rpd_monitor);
}

const struct sqlite_format report__sqlite_rpd = {"rpd", recognise_rpd, read_rpd};

/* ---- rocpd ----------------------------------------------------------------------------------- */

#define SUFFIX_SIZE 64
#define FILES_MOST  256 /* merged */

/* Replace each @ in @sql by @suffix, which is checked. */
static void with_suffix(struct import_sqlite *in, struct str *out, const char *sql,
			const char *suffix)
{
	str_clear(out);
	for (; *sql; sql++) {
		if (*sql == '@')
			str_add(out, suffix);
		else
			str_add_bytes(out, sql, 1);
	}
	if (out->failed)
		err_nomem(in->err);
}

static int64_t rocpd_key(const struct import_sqlite *in, uint32_t track, int64_t stack)
{
	return stack == IPS_NULL || stack == 0 || track == IMPORT_NO_ID
		       ? IPS_NULL
		       : import_launch_key(in->import->threads.items[track].process, stack);
}

static void rocpd_region(struct import_sqlite *in, struct prof_query *query)
{
	const int64_t start = prof_column_int(query, 2), end = prof_column_int(query, 3);
	const char *name = prof_column_text(query, 4), *category = prof_column_text(query, 5);
	const char *message = prof_column_text(query, 7);
	const bool marker = category && str_starts_with(category, "MARKER");
	const struct ips_range range = {"roctx", NULL};
	struct ips_call call;
	const uint32_t track =
		find_track(in, prof_column_int(query, 0), prof_column_int(query, 1), 0, NULL, NULL);
	uint32_t site;

	if (marker && message && message[0] != 0)
		name = message;
	site = report__sqlite_name(in, marker ? "roctx" : !category ? "" : category, name);
	if (!report__sqlite_has_place(in, track, site, start))
		return;
	call.launch_key = rocpd_key(in, track, prof_column_int(query, 6));
	if (marker)
		report__import_row(in->import, IPS_TABLE_range, &range, sizeof(range));
	else if (call.launch_key != IPS_NULL)
		report__import_row(in->import, IPS_TABLE_call, &call, sizeof(call));
	report__sqlite_span(in, track, site, start, end);
}

static void rocpd_kernel(struct import_sqlite *in, struct prof_query *query)
{
	const int64_t gpu = prof_column_int(query, 1), queue = prof_column_int(query, 2);
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const char *name = prof_column_text(query, 5);
	const char *device = report__sqlite_gpu(in, gpu);
	struct ips_kernel row;
	uint32_t track, site;

	track = find_track(in, prof_column_int(query, 0), gpu, queue, device, NULL);
	site = report__sqlite_name(in, "kernel", name);
	if (!report__sqlite_has_place(in, track, site, start))
		return;
	row = report__import_kernel(device, queue, in->import->sites.items[site].kernel_kind,
				    rocpd_key(in, track, prof_column_int(query, 6)));
	report__sqlite_grid(&row, query, 7);
	row.registers = prof_column_int(query, 13);
	row.shared_bytes = prof_column_int(query, 14);
	report__import_row(in->import, IPS_TABLE_kernel, &row, sizeof(row));
	report__sqlite_span(in, track, site, start, end);
}

static void rocpd_copy(struct import_sqlite *in, struct prof_query *query)
{
	const int64_t to = prof_column_int(query, 1), from = prof_column_int(query, 2);
	const int64_t gpu = from != IPS_NULL ? from : to;
	const int64_t start = prof_column_int(query, 4), end = prof_column_int(query, 5);
	const char *name = prof_column_text(query, 6);
	const char *device = report__sqlite_gpu(in, gpu);
	struct ips_copy row = {.device = device,
			       .context = IPS_NULL,
			       .stream = prof_column_int(query, 3),
			       .kind = copy_kind(!name ? "" : name),
			       .bytes = prof_column_int(query, 8)};
	uint32_t track, site;

	if (from != IPS_NULL && to != IPS_NULL && from != to)
		row.to_device = report__import_gpu(in->import, to);
	track = find_track(in, prof_column_int(query, 0), gpu, row.stream, device, NULL);
	site = report__sqlite_name(in, "memcpy", name);
	if (!report__sqlite_has_place(in, track, site, start))
		return;
	row.launch_key = rocpd_key(in, track, prof_column_int(query, 7));
	report__import_row(in->import, IPS_TABLE_copy, &row, sizeof(row));
	report__sqlite_span(in, track, site, start, end);
}

static void rocpd_memory(struct import_sqlite *in, struct prof_query *query)
{
	const int64_t gpu = prof_column_int(query, 1), bytes = prof_column_int(query, 5);
	const char *type = prof_column_text(query, 2);
	const bool frees = type && strcmp(type, "FREE") == 0;
	struct ips_memory_event event = {
		.device = gpu == IPS_NULL ? NULL : report__import_gpu(in->import, gpu),
		.time_ns = prof_column_int(query, 3),
		.kind = frees                                 ? "free"
			: !type || strcmp(type, "ALLOC") == 0 ? "alloc"
							      : "other",
		.bytes = frees && bytes > 0 ? -bytes : bytes,
		.address = prof_column_int(query, 4),
		.total_bytes = IPS_NULL,
		.reserved_bytes = IPS_NULL};
	const uint32_t track = find_track(in, prof_column_int(query, 0), 0, 0, NULL, "memory");

	if (report__sqlite_has_place(in, track, 0, event.time_ns))
		report__import_memory(in->import, track, &event, in->err);
}

static void rocpd_device(struct import_sqlite *in, struct prof_query *query)
{
	struct ips_device device = {.number = prof_column_int(query, 0),
				    .architecture = prof_column_text(query, 1),
				    .model = prof_column_text(query, 2),
				    .memory_bytes = IPS_NULL,
				    .units = IPS_NULL,
				    .clock_hz = IPS_NULL,
				    .memory_bytes_per_s = IPS_NULL};

	import_used(in->import, REPORT_IMPORT_NAME);
	if (device.number == IPS_NULL)
		return;
	device.device = report__sqlite_gpu(in, device.number);
	if (device.device)
		report__import_device(in->import, &device, in->err);
}

/* What one process recorded. The joins are by primary keys. */
static void read_process(struct import_sqlite *in, const char *suffix)
{
#define GPU(agent)                                                                                 \
	"(SELECT type_index FROM main.\"rocpd_info_agent@\" g WHERE g.id = " agent                 \
	" AND g.type = 'GPU')"
#define PID "(SELECT pid FROM main.\"rocpd_info_process@\" p WHERE p.id = x.pid)"
	static const struct {
		const char *table, *sql;
		void (*row)(struct import_sqlite *in, struct prof_query *query);
	} tables[] = {
		{"rocpd_info_agent",
		 "SELECT type_index, name, product_name FROM main.\"rocpd_info_agent@\" WHERE "
		 "type = 'GPU' ORDER BY id",
		 rocpd_device},
		{"rocpd_region",
		 "SELECT " PID ", (SELECT tid FROM main.\"rocpd_info_thread@\" t WHERE t.id = "
		 "x.tid), x.start, x.\"end\", n.string, c.string, e.stack_id, "
		 "CASE WHEN json_valid(e.extdata) THEN json_extract(e.extdata, '$.message') END "
		 "FROM main.\"rocpd_region@\" x "
		 "LEFT JOIN main.\"rocpd_string@\" n ON n.id = x.name_id "
		 "LEFT JOIN main.\"rocpd_event@\" e ON e.id = x.event_id "
		 "LEFT JOIN main.\"rocpd_string@\" c ON c.id = e.category_id ORDER BY x.id",
		 rocpd_region},
		{"rocpd_kernel_dispatch",
		 "SELECT " PID
		 ", " GPU("x.agent_id") ", x.queue_id, x.start, x.\"end\", "
					"coalesce(k.display_name, k.kernel_name), e.stack_id, "
					"x.grid_size_x, "
					"x.grid_size_y, x.grid_size_z, x.workgroup_size_x, "
					"x.workgroup_size_y, "
					"x.workgroup_size_z, k.arch_vgpr_count, "
					"x.group_segment_size "
					"FROM main.\"rocpd_kernel_dispatch@\" x "
					"LEFT JOIN main.\"rocpd_info_kernel_symbol@\" k ON k.id = "
					"x.kernel_id "
					"LEFT JOIN main.\"rocpd_event@\" e ON e.id = x.event_id "
					"ORDER BY x.id",
		 rocpd_kernel},
		{"rocpd_memory_copy",
		 "SELECT " PID ", " GPU("x.dst_agent_id") ", " GPU(
			 "x.src_agent_id") ", "
					   "x.queue_id, x.start, x.\"end\", n.string, e.stack_id, "
					   "x.size "
					   "FROM main.\"rocpd_memory_copy@\" x "
					   "LEFT JOIN main.\"rocpd_string@\" n ON n.id = x.name_id "
					   "LEFT JOIN main.\"rocpd_event@\" e ON e.id = x.event_id "
					   "ORDER BY x.id",
		 rocpd_copy},
		{"rocpd_memory_allocate",
		 "SELECT " PID
		 ", " GPU("x.agent_id") ", x.type, x.start, x.address, x.size "
					"FROM main.\"rocpd_memory_allocate@\" x ORDER BY x.id",
		 rocpd_memory},
	};
	static const char *const left[] = {"rocpd_sample", "rocpd_pmc_event"};
	char name[SUFFIX_SIZE + 32];
	struct str text = {0};

	for (size_t i = 0; i < ARRAY_LEN(tables) && !err_stuck(in->err); i++) {
		snprintf(name, sizeof(name), "%s%s", tables[i].table, suffix);
		if (!report__sqlite_has(in, name))
			continue;
		with_suffix(in, &text, tables[i].sql, suffix);
		each(in, str_peek(&text), tables[i].row);
	}
	for (size_t i = 0; i < ARRAY_LEN(left) && !err_stuck(in->err); i++) {
		snprintf(name, sizeof(name), "%s%s", left[i], suffix);
		report__sqlite_left(in, (const char *const[]){name}, 1);
	}
	str_free(&text);
}

/* The endings of the tables' names; those that are no ids are not taken. */
static const char suffix_sql[] =
	"SELECT substr(name, 15) FROM sqlite_schema WHERE type = 'table' AND name GLOB "
	"'rocpd_metadata_*' AND length(name) BETWEEN 16 AND 60 AND substr(name, 15) NOT GLOB "
	"'*[^_0-9a-f]*' ORDER BY 1 LIMIT 256";

static bool recognise_rocpd(struct import_sqlite *in)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, in->db, suffix_sql, NULL);
	const bool found = prof_query_next(query, &status, NULL);

	prof_query_close(query);
	return found;
}

static void read_rocpd(struct import_sqlite *in)
{
	char(*suffixes)[SUFFIX_SIZE] = mem_calloc(FILES_MOST, sizeof(*suffixes));
	struct prof_query *query;
	struct str text = {0};
	size_t count = 0;

	if (!suffixes) {
		err_nomem(in->err);
		return;
	}
	prof_query_open(&query, in->db, suffix_sql, in->err);
	while (count < FILES_MOST && prof_query_next(query, &in->err->status, in->err))
		str_copy(suffixes[count++], SUFFIX_SIZE, prof_column_text(query, 0));
	prof_query_close(query);
	for (size_t i = 0; i < count && !err_stuck(in->err); i++) {
		with_suffix(in, &text,
			    "SELECT value FROM main.\"rocpd_metadata@\" WHERE tag = "
			    "'schema_version'",
			    suffixes[i]);
		prof_query_open(&query, in->db, str_peek(&text), in->err);
		if (prof_query_next(query, &in->err->status, in->err) &&
		    prof_column_int(query, 0) > 3)
			err_set(in->err, ST_UNSUPPORTED,
				"%s: has rocpd's schema %s; 3 can be imported (`rocpd "
				"convert -f pftrace` makes a trace of it)",
				in->import->input.name, prof_column_text(query, 0));
		prof_query_close(query);
		if (!err_stuck(in->err))
			read_process(in, suffixes[i]);
	}
	str_free(&text);
	mem_free(suffixes);
}

const struct sqlite_format report__sqlite_rocpd = {"rocpd", recognise_rocpd, read_rocpd};
