/*
 * Read AMD's databases: rocpd (schema 3, of rocprofv3) and RPD (rocmProfileData, whose schema is
 * called 2).
 *
 * rocpd: every table's name ends in an id of the process, "_0000..."; a merged file has several of
 * each. The views without that ending are not read: a file could define them as anything. A region
 * and what it launched have events of the same stack_id. The environment and names of hosts
 * (rocpd_info_process, rocpd_info_node) are not read.
 */
#include <math.h>
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
static enum status find_track(struct import_sqlite *in, int64_t pid, int64_t number, int64_t queue,
			      const char *device, const char *what, uint32_t *out, struct err *err)
{
	const int64_t key[4] = {!device ? -2 : -3, pid, number,
				(int64_t)((uint64_t)queue ^ map_text(MAP_SEED, what))};
	char process[32], thread[64], name[64];
	struct import_track track = {.kind = IMPORT_THREAD,
				     .process = process,
				     .thread = what ? what : thread,
				     .process_sort = IPS_NULL,
				     .device = device};
	enum status status;

	*out = report__sqlite_known(in, key);
	if (*out != IMPORT_NO_ID)
		return ST_OK;
	snprintf(process, sizeof(process), "%lld", (long long)pid);
	snprintf(thread, sizeof(thread), "%lld", (long long)number);
	if (device) {
		snprintf(thread, sizeof(thread), "%lld/%lld", (long long)number, (long long)queue);
		snprintf(name, sizeof(name), "queue %lld", (long long)queue);
		track.name = name;
		track.sort = QUEUE_SORT;
	}
	status = report__import_track(in->import, &track, out, err);
	return status == ST_OK ? report__sqlite_remember(in, key, *out, err) : status;
}

/* Run @row for each row of @sql, whose tables are constants of this file and there. */
static enum status each(struct import_sqlite *in, const char *sql,
			enum status (*row)(struct import_sqlite *in, struct prof_query *query,
					   struct err *err),
			struct err *err)
{
	struct prof_query *query;
	enum status status = report__sqlite_rows(in, sql, &query, err);

	while (report__sqlite_next(in, query, &status, err))
		status = row(in, query, err);
	prof_query_close(query);
	return status;
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

static enum status rpd_call(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const struct ips_call call = {rpd_key(prof_column_int(query, 0))};
	const char *text = prof_column_text(query, 6);
	uint32_t track, site, name;
	enum status status = find_track(in, prof_column_int(query, 1), prof_column_int(query, 2), 0,
					NULL, NULL, &track, err);

	if (status == ST_OK)
		status = report__sqlite_site(in, SITE_API, "hip_api", prof_column_int(query, 5),
					     &site, err);
	if (status == ST_OK)
		status = report__import_arg_name(in->import, "args", &name, err);
	if (status != ST_OK || !report__sqlite_has_place(in, track, site, start))
		return status;
	if (text && text[0] != 0)
		report__import_arg_text(in->import, name, text);
	report__import_row(in->import, IPS_TABLE_call, &call, sizeof(call));
	return report__sqlite_span(in, track, site, start, end, err);
}

static enum status rpd_kernel(struct import_sqlite *in, struct prof_query *query, uint32_t track,
			      uint32_t site, const char *device, struct err *err)
{
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const struct ips_kernel row = {.device = device,
				       .context = IPS_NULL,
				       .stream = prof_column_int(query, 2),
				       .kind = in->import->sites.items[site].kernel_kind,
				       .launch_key = rpd_key(prof_column_int(query, 8)),
				       .grid_x = prof_column_int(query, 9),
				       .grid_y = prof_column_int(query, 10),
				       .grid_z = prof_column_int(query, 11),
				       .block_x = prof_column_int(query, 12),
				       .block_y = prof_column_int(query, 13),
				       .block_z = prof_column_int(query, 14),
				       .registers = IPS_NULL,
				       .shared_bytes = prof_column_int(query, 15),
				       .occupancy = (double)NAN,
				       .graph = IPS_NULL,
				       .graph_node = IPS_NULL};

	report__import_row(in->import, IPS_TABLE_kernel, &row, sizeof(row));
	return report__sqlite_span(in, track, site, start, end, err);
}

static enum status rpd_op(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	const int64_t gpu = prof_column_int(query, 1), queue = prof_column_int(query, 2);
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const char *type = prof_column_text(query, 7);
	const bool kernel = !type || strstr(type, "Kernel") != NULL;
	const char *device = report__import_gpu(in->import, gpu == IPS_NULL ? 0 : gpu);
	const int64_t named = prof_column_int(query, prof_column_int(query, 6) == 1 ? 5 : 16);
	struct ips_copy row = {.device = device,
			       .context = IPS_NULL,
			       .stream = queue,
			       .kind = !type ? NULL : copy_kind(type),
			       .launch_key = rpd_key(prof_column_int(query, 8)),
			       .bytes = prof_column_int(query, 17)};
	uint32_t track, site;
	enum status status;

	if (!device)
		return err_nomem(err);
	status = find_track(in, 0, gpu, queue, device, NULL, &track, err);
	if (status == ST_OK)
		status = report__sqlite_site(in, kernel ? SITE_KERNEL : SITE_COPY,
					     kernel ? "kernel" : "copy", named, &site, err);
	if (status != ST_OK || !report__sqlite_has_place(in, track, site, start))
		return status;
	if (kernel)
		return rpd_kernel(in, query, track, site, device, err);
	report__import_row(in->import, IPS_TABLE_copy, &row, sizeof(row));
	return report__sqlite_span(in, track, site, start, end, err);
}

static enum status rpd_monitor(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	const int64_t start = prof_column_int(query, 2), gpu = prof_column_int(query, 0);
	const char *name = prof_column_text(query, 1);
	const enum prof_type type = prof_column_type(query, 3);
	uint32_t track = IMPORT_NO_ID, site = IMPORT_NO_ID;
	char row[48];
	enum status status;

	snprintf(row, sizeof(row), "GPU %lld monitor", (long long)gpu);
	status = find_track(in, 0, gpu, 0, NULL, row, &track, err);
	if (status == ST_OK)
		status = report__import_track_shows(in->import, track,
						    report__import_gpu(in->import, gpu), err);
	if (status == ST_OK)
		status = report__import_name_site(in->import, "monitor", !name ? "" : name, &site,
						  err);
	if (status != ST_OK || !report__sqlite_has_place(in, track, site, start))
		return status;
	if (type != PROF_INT && type != PROF_REAL) {
		report__import_left(in->import, REPORT_IMPORT_LEFT_NO_NUMBER);
		return ST_OK;
	}
	return report__import_sample(in->import, track, site, start, prof_column_real(query, 3),
				     err);
}

static bool recognise_rpd(struct import_sqlite *in)
{
	return report__sqlite_has(in, "rocpd_api") && report__sqlite_has(in, "rocpd_op") &&
	       report__sqlite_has(in, "rocpd_string");
}

static enum status read_rpd(struct import_sqlite *in, struct err *err)
{
	static const char api_sql[] =
		"SELECT a.id, a.pid, a.tid, a.start, a.\"end\", a.apiName_id, s.string "
		"FROM main.rocpd_api a LEFT JOIN main.rocpd_string s ON s.id = a.args_id "
		"ORDER BY a.id";
	/* Of several calls of one operation, the first. */
	static const char op_sql[] =
		"SELECT o.id, o.gpuId, o.queueId, o.start, o.\"end\", o.description_id, "
		"length(d.string) > 0, "
		"t.string, l.api_id, k.gridX, k.gridY, k.gridZ, k.workgroupX, k.workgroupY, "
		"k.workgroupZ, k.groupSegmentSize, o.opType_id, c.size "
		"FROM main.rocpd_op o LEFT JOIN main.rocpd_string d ON d.id = o.description_id "
		"LEFT JOIN main.rocpd_string t ON t.id = o.opType_id "
		"LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM main.rocpd_api_ops "
		"GROUP BY op_id) l ON l.op_id = o.id "
		"LEFT JOIN main.rocpd_kernelapi k ON k.api_ptr_id = l.api_id "
		"LEFT JOIN main.rocpd_copyapi c ON c.api_ptr_id = l.api_id ORDER BY o.id";
	static const char monitor_sql[] =
		"SELECT deviceId, monitorType, start, CASE WHEN value GLOB '*[^-0-9.eE+]*' THEN "
		"value ELSE CAST(value AS NUMERIC) END FROM main.rocpd_monitor ORDER BY id";
	static const char *const joined[] = {"rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi"};
	enum status status;

	for (size_t i = 0; i < ARRAY_LEN(joined); i++) {
		if (!report__sqlite_has(in, joined[i]))
			return err_set(err, ST_FORMAT, "%s: has no table %s",
				       in->import->input.name, joined[i]);
	}
	in->strings = "rocpd_string";
	in->string_column = "string";
	status = each(in, api_sql, rpd_call, err);
	if (status == ST_OK)
		status = each(in, op_sql, rpd_op, err);
	if (status == ST_OK && report__sqlite_has(in, "rocpd_monitor"))
		status = each(in, monitor_sql, rpd_monitor, err);
	return status;
}

const struct sqlite_format report__sqlite_rpd = {"rpd", recognise_rpd, read_rpd};

/* ---- rocpd ----------------------------------------------------------------------------------- */

#define SUFFIX_SIZE 64
#define FILES_MOST  256 /* merged */

/* Replace each @ in @sql by @suffix, which is checked. */
static enum status with_suffix(struct str *out, const char *sql, const char *suffix,
			       struct err *err)
{
	str_clear(out);
	for (; *sql; sql++) {
		if (*sql == '@')
			str_add(out, suffix);
		else
			str_add_bytes(out, sql, 1);
	}
	return out->failed ? err_nomem(err) : ST_OK;
}

static bool has_with(struct import_sqlite *in, const char *table, const char *suffix)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s", table, suffix);
	return report__sqlite_has(in, name);
}

static int64_t rocpd_key(const struct import_sqlite *in, uint32_t track, int64_t stack)
{
	return stack == IPS_NULL || stack == 0 || track == IMPORT_NO_ID
		       ? IPS_NULL
		       : import_launch_key(in->import->threads.items[track].process, stack);
}

static enum status rocpd_region(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	const int64_t start = prof_column_int(query, 2), end = prof_column_int(query, 3);
	const char *name = prof_column_text(query, 4), *category = prof_column_text(query, 5);
	const char *message = prof_column_text(query, 7);
	const bool marker = category && str_starts_with(category, "MARKER");
	const struct ips_range range = {"roctx", NULL};
	struct ips_call call;
	uint32_t track, site = IMPORT_NO_ID;
	enum status status = find_track(in, prof_column_int(query, 0), prof_column_int(query, 1), 0,
					NULL, NULL, &track, err);

	if (marker && message && message[0] != 0)
		name = message;
	if (status == ST_OK)
		status = report__import_name_site(in->import,
						  marker      ? "roctx"
						  : !category ? ""
							      : category,
						  !name ? "" : name, &site, err);
	if (status != ST_OK || !report__sqlite_has_place(in, track, site, start))
		return status;
	call.launch_key = rocpd_key(in, track, prof_column_int(query, 6));
	if (marker)
		report__import_row(in->import, IPS_TABLE_range, &range, sizeof(range));
	else if (call.launch_key != IPS_NULL)
		report__import_row(in->import, IPS_TABLE_call, &call, sizeof(call));
	return report__sqlite_span(in, track, site, start, end, err);
}

static enum status rocpd_kernel(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	const int64_t gpu = prof_column_int(query, 1), queue = prof_column_int(query, 2);
	const int64_t start = prof_column_int(query, 3), end = prof_column_int(query, 4);
	const char *name = prof_column_text(query, 5);
	const char *device = report__import_gpu(in->import, gpu == IPS_NULL ? 0 : gpu);
	struct ips_kernel row = {.device = device,
				 .context = IPS_NULL,
				 .stream = queue,
				 .grid_x = prof_column_int(query, 7),
				 .grid_y = prof_column_int(query, 8),
				 .grid_z = prof_column_int(query, 9),
				 .block_x = prof_column_int(query, 10),
				 .block_y = prof_column_int(query, 11),
				 .block_z = prof_column_int(query, 12),
				 .registers = prof_column_int(query, 13),
				 .shared_bytes = prof_column_int(query, 14),
				 .occupancy = (double)NAN,
				 .graph = IPS_NULL,
				 .graph_node = IPS_NULL};
	uint32_t track, site = IMPORT_NO_ID;
	enum status status;

	if (!device)
		return err_nomem(err);
	status = find_track(in, prof_column_int(query, 0), gpu, queue, device, NULL, &track, err);
	if (status == ST_OK)
		status = report__import_name_site(in->import, "kernel", !name ? "" : name, &site,
						  err);
	if (status != ST_OK || !report__sqlite_has_place(in, track, site, start))
		return status;
	row.kind = in->import->sites.items[site].kernel_kind;
	row.launch_key = rocpd_key(in, track, prof_column_int(query, 6));
	report__import_row(in->import, IPS_TABLE_kernel, &row, sizeof(row));
	return report__sqlite_span(in, track, site, start, end, err);
}

static enum status rocpd_copy(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	const int64_t to = prof_column_int(query, 1), from = prof_column_int(query, 2);
	const int64_t gpu = from != IPS_NULL ? from : to;
	const int64_t start = prof_column_int(query, 4), end = prof_column_int(query, 5);
	const char *name = prof_column_text(query, 6);
	const char *device = report__import_gpu(in->import, gpu == IPS_NULL ? 0 : gpu);
	struct ips_copy row = {.device = device,
			       .context = IPS_NULL,
			       .stream = prof_column_int(query, 3),
			       .kind = copy_kind(!name ? "" : name),
			       .bytes = prof_column_int(query, 8)};
	uint32_t track, site = IMPORT_NO_ID;
	enum status status;

	if (!device)
		return err_nomem(err);
	if (from != IPS_NULL && to != IPS_NULL && from != to)
		row.to_device = report__import_gpu(in->import, to);
	status = find_track(in, prof_column_int(query, 0), gpu, row.stream, device, NULL, &track,
			    err);
	if (status == ST_OK)
		status = report__import_name_site(in->import, "memcpy", !name ? "" : name, &site,
						  err);
	if (status != ST_OK || !report__sqlite_has_place(in, track, site, start))
		return status;
	row.launch_key = rocpd_key(in, track, prof_column_int(query, 7));
	report__import_row(in->import, IPS_TABLE_copy, &row, sizeof(row));
	return report__sqlite_span(in, track, site, start, end, err);
}

static enum status rocpd_memory(struct import_sqlite *in, struct prof_query *query, struct err *err)
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
	uint32_t track;
	enum status status =
		find_track(in, prof_column_int(query, 0), 0, 0, NULL, "memory", &track, err);

	if (status != ST_OK || !report__sqlite_has_place(in, track, 0, event.time_ns))
		return status;
	return report__import_memory(in->import, track, &event, err);
}

static enum status rocpd_device(struct import_sqlite *in, struct prof_query *query, struct err *err)
{
	struct ips_device device = {
		.number = prof_column_int(query, 0),
		.architecture = report__import_keep(in->import, prof_column_text(query, 1)),
		.model = report__import_keep(in->import, prof_column_text(query, 2)),
		.memory_bytes = IPS_NULL,
		.units = IPS_NULL,
		.clock_hz = IPS_NULL,
		.memory_bytes_per_s = IPS_NULL};

	import_used(in->import, REPORT_IMPORT_NAME);
	if (device.number == IPS_NULL)
		return ST_OK;
	device.device = report__import_gpu(in->import, device.number);
	return !device.device ? err_nomem(err) : report__import_device(in->import, &device, err);
}

/* What one process recorded. The joins are by primary keys. */
static enum status read_process(struct import_sqlite *in, const char *suffix, struct err *err)
{
#define GPU(agent)                                                                                 \
	"(SELECT type_index FROM main.\"rocpd_info_agent@\" g WHERE g.id = " agent                 \
	" AND g.type = 'GPU')"
#define PID "(SELECT pid FROM main.\"rocpd_info_process@\" p WHERE p.id = x.pid)"
	static const struct {
		const char *table, *sql;
		enum status (*row)(struct import_sqlite *in, struct prof_query *query,
				   struct err *err);
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
	enum status status = ST_OK;
	struct str text = {0};

	for (size_t i = 0; i < ARRAY_LEN(tables) && status == ST_OK; i++) {
		if (!has_with(in, tables[i].table, suffix))
			continue;
		status = with_suffix(&text, tables[i].sql, suffix, err);
		if (status == ST_OK)
			status = each(in, str_peek(&text), tables[i].row, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(left) && status == ST_OK; i++) {
		const char *name;

		str_clear(&text);
		str_addf(&text, "%s%s", left[i], suffix);
		name = str_peek(&text);
		status = text.failed ? err_nomem(err) : report__sqlite_left(in, &name, 1, err);
	}
	str_free(&text);
	return status;
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

static enum status read_rocpd(struct import_sqlite *in, struct err *err)
{
	char(*suffixes)[SUFFIX_SIZE] = mem_calloc(FILES_MOST, sizeof(*suffixes));
	struct prof_query *query = NULL;
	struct str text = {0};
	size_t count = 0;
	enum status status =
		!suffixes ? err_nomem(err) : prof_query_open(&query, in->db, suffix_sql, err);

	while (count < FILES_MOST && prof_query_next(query, &status, err))
		str_copy(suffixes[count++], SUFFIX_SIZE, prof_column_text(query, 0));
	prof_query_close(query);
	for (size_t i = 0; i < count && status == ST_OK; i++) {
		status = with_suffix(&text,
				     "SELECT value FROM main.\"rocpd_metadata@\" WHERE tag = "
				     "'schema_version'",
				     suffixes[i], err);
		if (status == ST_OK)
			status = prof_query_open(&query, in->db, str_peek(&text), err);
		if (prof_query_next(query, &status, err) && prof_column_int(query, 0) > 3)
			status = err_set(err, ST_UNSUPPORTED,
					 "%s: has rocpd's schema %s; 3 can be imported (`rocpd "
					 "convert -f pftrace` makes a trace of it)",
					 in->import->input.name, prof_column_text(query, 0));
		prof_query_close(query);
		if (status == ST_OK)
			status = read_process(in, suffixes[i], err);
	}
	str_free(&text);
	mem_free(suffixes);
	return status;
}

const struct sqlite_format report__sqlite_rocpd = {"rocpd", recognise_rocpd, read_rocpd};
