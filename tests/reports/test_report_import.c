/*
 * Import from end to end, in small: what each phase becomes, that events in equal events out, that
 * memory for sorting does not change the result, hostile files, failing allocations.
 */
#include "support/support.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import.h"
#include "reports/import/report_import_internal.h"
#include "reports/import/report_import_sort.h"

struct fixture {
	char folder[SUPPORT_PATH_SIZE], trace[SUPPORT_PATH_SIZE + 16], db[SUPPORT_PATH_SIZE + 16];
	struct report_import_counts counts;
	struct err err;
	uint64_t sort_bytes;
};

/* What was given back of the memory of mapped files. */
static struct {
	const char *at;
	size_t length;
} given_back[4];
static size_t given_count;

int madvise(void *at, size_t length, int advice)
{
	if (advice == MADV_DONTNEED && given_count < ARRAY_LEN(given_back)) {
		given_back[given_count].at = at;
		given_back[given_count++].length = length;
	}
	return (int)syscall(SYS_madvise, at, length, advice);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	support_tempdir(f->folder);
	snprintf(f->trace, sizeof(f->trace), "%s/trace.json", f->folder);
	snprintf(f->db, sizeof(f->db), "%s/trace.db", f->folder);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	support_tempdir_remove(f->folder);
	free(f);
	return 0;
}

static enum status import_bytes(struct fixture *f, const char *text, size_t length)
{
	const struct report_import_params params = {
		.trace = f->trace, .output = f->db, .force = true, .sort_bytes = f->sort_bytes};

	f->err = (struct err){ST_OK, ""};
	assert_int_equal(fs_write(f->trace, text, length, NULL), ST_OK);
	return report_import(&params, &f->counts, &f->err);
}

static enum status import(struct fixture *f, const char *text)
{
	return import_bytes(f, text, strlen(text));
}

/* Each event is counted once. */
static void assert_balanced(const struct report_import_counts *counts)
{
	uint64_t sum = 0, phases = 0;

	for (int i = 0; i < REPORT_IMPORT_USES; i++)
		sum += counts->used[i];
	for (int i = 0; i < REPORT_IMPORT_LEFTS; i++)
		sum += counts->left[i];
	for (size_t i = 0; i < 128; i++)
		phases += counts->phases[i];
	assert_int_equal(sum, counts->events);
	assert_int_equal(phases, counts->events);
}

/* All rows of @sql, columns joined by |, rows by ;. */
static void assert_rows(const struct fixture *f, const char *sql, const char *wanted)
{
	struct str got = {0};
	sqlite3_stmt *query;
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(f->db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &query, NULL), SQLITE_OK);
	while (sqlite3_step(query) == SQLITE_ROW) {
		str_add(&got, got.length > 0 ? ";" : "");
		for (int i = 0; i < sqlite3_column_count(query); i++) {
			const char *text = (const char *)sqlite3_column_text(query, i);

			str_addf(&got, "%s%s", i > 0 ? "|" : "", !text ? "-" : text);
		}
	}
	sqlite3_finalize(query);
	sqlite3_close(db);
	assert_string_equal(str_peek(&got), wanted);
	str_free(&got);
}

#define SPANS "SELECT track, depth, name, start_ns, dur_ns FROM spans ORDER BY track, span_id"

static void pairs_of_a_thread_nest_whatever_their_order(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		import(f, "[{\"ph\":\"E\",\"ts\":9,\"tid\":1},{\"ph\":\"B\",\"ts\":2,\"tid\":1,"
			  "\"name\":\"b\"},{\"ph\":\"B\",\"ts\":1,\"tid\":1,\"name\":\"a\"},"
			  "{\"ph\":\"E\",\"ts\":5,\"tid\":1}]"),
		ST_OK);
	assert_balanced(&f->counts);
	assert_rows(f, SPANS, "thread 1|0|a|1000|8000;thread 1|1|b|2000|3000");
}

static void a_named_end_ends_its_begin_and_what_is_within(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		import(f, "[{\"ph\":\"B\",\"ts\":1,\"name\":\"a\"},{\"ph\":\"B\",\"ts\":2,\"name\":"
			  "\"b\"},{\"ph\":\"E\",\"ts\":5,\"name\":\"a\"},{\"ph\":\"E\",\"ts\":6,"
			  "\"name\":\"b\"}]"),
		ST_OK);
	assert_balanced(&f->counts);
	assert_int_equal(f->counts.left[REPORT_IMPORT_LEFT_NO_BEGIN], 1);
	assert_int_equal(f->counts.notes[REPORT_IMPORT_NOTE_UNFINISHED], 1);
	assert_rows(f, SPANS, "trace|0|a|1000|4000;trace|1|b|2000|3000");
}

static void what_overlaps_goes_to_a_track_of_its_own(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(import(f, "[{\"ph\":\"X\",\"ts\":0,\"dur\":10,\"tid\":1,\"name\":\"a\"},"
				   "{\"ph\":\"X\",\"ts\":5,\"dur\":10,\"tid\":1,\"name\":\"b\"},"
				   "{\"ph\":\"X\",\"ts\":6,\"dur\":1,\"tid\":1,\"name\":\"c\"},"
				   "{\"ph\":\"X\",\"ts\":7,\"dur\":9,\"tid\":1,\"name\":\"d\"},"
				   "{\"ph\":\"X\",\"ts\":10,\"dur\":3,\"tid\":1,\"name\":\"e\"}]"),
			 ST_OK);
	assert_balanced(&f->counts);
	assert_int_equal(f->counts.notes[REPORT_IMPORT_NOTE_OVERLAP], 2);
	assert_rows(f, SPANS,
		    "thread 1|0|a|0|10000;thread 1|1|c|6000|1000;thread 1|0|e|10000|3000;"
		    "thread 1 (overlap 1)|0|b|5000|10000;thread 1 (overlap 2)|0|d|7000|9000");
}

/* Many records, out of order, through runs in a file: the same as sorted in memory. */
static void the_result_does_not_depend_on_memory(void **state)
{
	struct fixture *f = *state;
	struct str trace = {0};
	static const char ask[] =
		"SELECT count(DISTINCT track), sum(start_ns * a.value % 1000003), "
		"sum(depth), sum(dur_ns) FROM spans JOIN span_args a USING (span_id) "
		"WHERE a.name = 'i'";
	char row[128] = "";
	sqlite3_stmt *query;
	sqlite3 *db;

	str_add(&trace, "{\"traceEvents\":[");
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t place = i * 7919u % 20000u;

		str_addf(&trace,
			 "{\"ph\":\"X\",\"ts\":%u.%03u,\"dur\":2.5,\"tid\":%u,\"name\":\"n%u\","
			 "\"args\":{\"i\":%u,\"text\":\"some text %u\"}},",
			 place, place % 1000, place % 7, place % 50, i, i);
	}
	str_add(&trace, "]}");
	assert_int_equal(import(f, str_peek(&trace)), ST_OK);
	assert_int_equal(f->counts.spans, 20000);
	assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, ask, -1, &query, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(query), SQLITE_ROW);
	for (int i = 0; i < 4; i++) {
		strcat(row, i > 0 ? "|" : "");
		strcat(row, (const char *)sqlite3_column_text(query, i));
	}
	sqlite3_finalize(query);
	sqlite3_close(db);
	f->sort_bytes = 1; /* the least that works */
	assert_int_equal(import(f, str_peek(&trace)), ST_OK);
	assert_balanced(&f->counts);
	assert_rows(f, ask, row);
	assert_rows(f, "SELECT count(*), count(DISTINCT value) FROM span_args WHERE name = 'text'",
		    "20000|20000");
	str_free(&trace);
}

/* Records of which many are equal in the order, in many more runs than are merged at one time: four
 * are a run. */
enum {
	RECORDS = 800,
	TWICE = 1024, /* of them are exactly twice as many runs */
	BYTES = 32768,
	TIMES = 50
};

static void put_records(struct import_sorter *sorter, uint32_t records, struct err *err)
{
	struct import_record *put;

	for (uint32_t i = 0; i < records; i++) {
		if (report__import_sorter_put(sorter, BYTES, &put, err) != ST_OK)
			return;
		memset(put, (int)i, BYTES);
		*put = (struct import_record){.time_ns = (int64_t)i * 7919 % TIMES - TIMES / 2,
					      .kind = IMPORT_RECORD_INSTANT,
					      .thread = i,
					      .bytes = BYTES};
	}
}

static void assert_sorted(const struct fixture *f, uint32_t records)
{
	const struct import_record *got;
	struct import_sorter *sorter;
	struct err err = {ST_OK, ""};
	int64_t last_time = -1;
	uint32_t last = 0, count = 0;

	assert_int_equal(report__import_sorter_new(&sorter, report__import_by_time, f->db, 1, NULL),
			 ST_OK);
	put_records(sorter, records, &err);
	assert_int_equal(err.status, ST_OK);
	assert_int_equal(report__import_sorter_read(sorter, &err), ST_OK);
	for (; (got = report__import_sorter_next(sorter, &err)); count++) {
		assert_int_equal(got->time_ns, (int64_t)got->thread * 7919 % TIMES - TIMES / 2);
		assert_int_equal(((const unsigned char *)got)[BYTES - 1], got->thread & 255);
		assert_true(count == 0 || got->time_ns > last_time ||
			    (got->time_ns == last_time && got->thread > last));
		last_time = got->time_ns;
		last = got->thread;
	}
	assert_int_equal(err.status, ST_OK);
	assert_int_equal(count, records);
	report__import_sorter_free(sorter);
}

static void more_runs_than_are_merged_at_once_are_sorted(void **state)
{
	assert_sorted(*state, RECORDS);
	assert_sorted(*state, TWICE);
}

/* The file has no room for the runs, for what they are merged into, or for its last byte. */
static void a_file_that_is_full_ends_the_sorting(void **state)
{
	static const long rooms[] = {0, RECORDS / 2 * BYTES, RECORDS * BYTES,
				     RECORDS * BYTES * 3 / 2, 2 * RECORDS * BYTES - 1};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
		struct import_sorter *sorter;
		struct err err = {ST_OK, ""};

		assert_int_equal(
			report__import_sorter_new(&sorter, report__import_by_time, f->db, 1, NULL),
			ST_OK);
		support_limit_files(rooms[i]);
		put_records(sorter, RECORDS, &err);
		report__import_sorter_read(sorter, &err);
		support_limit_files(-1);
		assert_int_equal(err.status, ST_NOSPACE);
		assert_contains(err.text, "File too large");
		assert_null(report__import_sorter_next(sorter, &err));
		report__import_sorter_free(sorter);
	}
}

static void instants_have_arguments(void **state)
{
	struct fixture *f = *state;
	struct str trace = {0};

	/* more than a lane buffers before it writes */
	str_add(&trace, "[{\"ph\":\"i\",\"ts\":1,\"name\":\"a\",\"args\":{\"whole\":7,\"real\":1.5,"
			"\"text\":\"t\",\"none\":null,\"step\":3}}");
	for (int i = 0; i < 9000; i++)
		str_addf(&trace, ",{\"ph\":\"i\",\"ts\":%d,\"name\":\"b\",\"args\":{\"n\":%d}}",
			 9100 - i, i);
	str_addf(&trace,
		 ",{\"ph\":\"i\",\"ts\":20000,\"name\":\"c\",\"args\":{\"long\":\"%0100d\"}},"
		 "{\"ph\":\"i\",\"ts\":20001,\"name\":\"d\"}]",
		 7);
	assert_int_equal(import(f, str_peek(&trace)), ST_OK);
	assert_balanced(&f->counts);
	assert_rows(
		f,
		"SELECT i.name, step, a.name, quote(a.value) FROM instants i JOIN instant_args a "
		"USING (instant_id) WHERE i.name = 'a' ORDER BY a.name",
		"a|3|none|NULL;a|3|real|1.5;a|3|text|'t';a|3|whole|7");
	assert_rows(f,
		    "SELECT count(*), sum(value = (9100000 - time_ns) / 1000) FROM instants i JOIN "
		    "instant_args a USING (instant_id) WHERE i.name = 'b'",
		    "9000|9000");
	assert_rows(f,
		    "SELECT i.name, length(value) FROM instants i JOIN instant_args a USING "
		    "(instant_id) WHERE i.name IN ('c', 'd')",
		    "c|100");
	assert_rows(f, "SELECT count(*) FROM span_args", "0");
	str_free(&trace);
}

static void names_that_are_wrong_do_no_harm(void **state)
{
	struct fixture *f = *state;
	static const char trace[] = "[{\"ph\":\"X\",\"ts\":1,\"name\":\"a\xff\\u0000b\",\"name\":"
				    "\"c\xff\",\"args\":{\"\\n\":\"\xfe\"}},"
				    "{\"ph\":\"\",\"ts\":1},{\"ph\":\"long\",\"ts\":1},{\"ph\":5},{"
				    "},[],null,\"x\",1e9]";

	assert_int_equal(import(f, trace), ST_OK);
	assert_balanced(&f->counts);
	assert_int_equal(f->counts.events, 9);
	assert_int_equal(f->counts.left[REPORT_IMPORT_LEFT_NO_PHASE], 4);
	assert_int_equal(f->counts.left[REPORT_IMPORT_LEFT_NOT_OBJECT], 4);
	assert_rows(f, "SELECT name FROM spans", "c\xef\xbf\xbd");
	assert_rows(f, "SELECT value FROM span_args", "\xef\xbf\xbd");
}

/* An event of 17 MiB is passed over, and what follows is read. */
static void an_enormous_event_is_counted(void **state)
{
	struct fixture *f = *state;
	size_t huge = (size_t)17 << 20, length;
	char *text = malloc(huge + 200);

	assert_non_null(text);
	strcpy(text, "[{\"ph\":\"X\",\"ts\":1,\"name\":\"");
	length = strlen(text);
	memset(text + length, 'x', huge);
	strcpy(text + length + huge, "\"},{\"ph\":\"X\",\"ts\":2,\"name\":\"after\"}]");
	assert_int_equal(import(f, text), ST_OK);
	assert_balanced(&f->counts);
	assert_int_equal(f->counts.left[REPORT_IMPORT_LEFT_TOO_LARGE], 1);
	assert_int_equal(f->counts.left_at[REPORT_IMPORT_LEFT_TOO_LARGE], 1);
	assert_rows(f, "SELECT name FROM spans", "after");
	free(text);
}

static void deep_nesting_is_where_the_file_breaks(void **state)
{
	struct fixture *f = *state;
	struct str trace = {0};

	str_add(&trace, "[{\"ph\":\"X\",\"ts\":1,\"name\":\"a\"},{\"ph\":\"X\",\"args\":{\"x\":");
	for (int i = 0; i < 100000; i++)
		str_add(&trace, "[");
	assert_int_equal(import(f, str_peek(&trace)), ST_OK);
	assert_true(f->counts.broken);
	assert_int_equal(f->counts.spans, 1);
	assert_string_equal(f->counts.why, "brackets are nested too deeply");
	str_free(&trace);
}

/* What a trace cut at any byte gives is a part of what the whole gives. */
static void cut_anywhere_the_whole_events_are_kept(void **state)
{
	struct fixture *f = *state;
	static const char trace[] =
		"{\"a\":{\"b\":1},\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\"}"
		","
		"{\"ph\":\"C\",\"ts\":2,\"name\":\"c\",\"args\":{\"value\":3}}],\"z\":[]}";
	size_t second = (size_t)(strstr(trace, "{\"ph\":\"C\"") - trace);

	for (size_t cut = 1; cut < sizeof(trace) - 1; cut += 3) {
		enum status status = import_bytes(f, trace, cut);

		assert_true(status == ST_OK || status == ST_FORMAT);
		assert_int_equal(status == ST_OK, cut >= second - 1);
		if (status == ST_OK) {
			assert_balanced(&f->counts);
			assert_int_equal(f->counts.spans, 1);
			assert_true(f->counts.broken);
		}
	}
}

static void own_keys_are_columns_and_others_arguments(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		import(f,
		       "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"a\",\"args\":{\"step\":4,"
		       "\"microbatch\":1,\"stage\":0,\"phase\":\"F\",\"mode\":\"train\",\"epoch\":"
		       "2,"
		       "\"execution\":3,\"weight_update\":5,\"replica\":0,\"ipu\":1,"
		       "\"operation\":\"conv\",\"other\":6}},{\"ph\":\"X\",\"ts\":5,\"name\":\"b\","
		       "\"args\":{\"step\":\"four\",\"phase\":\"forward\",\"stage\":-1}}]"),
		ST_OK);
	assert_rows(f,
		    "SELECT mode, epoch, execution, weight_update, step, microbatch, replica, ipu, "
		    "stage, phase, operation FROM spans",
		    "train|2|3|5|4|1|0|1|0|F|conv;-|-|-|-|-|-|-|-|-|-|-");
	assert_rows(f, "SELECT span_id, name, value FROM span_args ORDER BY 1, 2",
		    "1|other|6;2|phase|forward;2|stage|-1;2|step|four");
}

static void a_failed_import_leaves_what_was_there(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(import(f, "[{\"ph\":\"X\",\"ts\":1,\"name\":\"a\"}]"), ST_OK);
	assert_int_equal(import(f, "{\"no\":\"events\"}"), ST_FORMAT);
	assert_rows(f, "SELECT name FROM spans", "a");
}

#define SPAN(cat, name, ts, dur, pid, tid, args)                                                   \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"ts\":" ts ",\"dur\":" dur       \
	",\"pid\":" pid ",\"tid\":" tid ",\"args\":{" args "}},"
#define FLOW(ph, ts, pid, tid, id)                                                                 \
	"{\"ph\":\"" ph "\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"ts\":" ts            \
	",\"pid\":" pid ",\"tid\":" tid ",\"id\":" id "},"

/* What Kineto writes: a graph's launch with one flow's end for each kernel, a step that crosses
 * Python's frames, the backward pass on a thread of its own, and events of a device. */
/* clang-format off */
static const char kineto[] =
	"{\"deviceProperties\":[{\"id\":1,\"name\":\"H100\",\"totalGlobalMem\":85,\"computeMajor\":9,"
	"\"computeMinor\":0,\"numSms\":132}],\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3},"
	"\"host_name\":\"alice-laptop\",\"traceEvents\":["
	SPAN("python_function", "__enter__", "0", "2", "10", "10", "")
	SPAN("user_annotation", "ProfilerStep#4", "1", "100", "10", "10", "")
	SPAN("cpu_op", "aten::mm", "5", "10", "10", "10", "")
	SPAN("cuda_runtime", "cudaLaunchKernel", "6", "2", "10", "10", "\"correlation\":7")
	SPAN("cpu_op", "MmBackward0", "40", "10", "10", "11", "")
	SPAN("cuda_runtime", "cudaGraphLaunch", "41", "2", "10", "11", "\"correlation\":8")
	SPAN("cuda_runtime", "cudaMemcpyAsync", "101", "1", "10", "10", "\"correlation\":9")
	FLOW("s", "6", "10", "10", "7") FLOW("f", "20", "1", "7", "7")
	FLOW("f", "150", "1", "7", "8") FLOW("f", "152", "1", "7", "8")
	SPAN("kernel", "gemm", "20", "10", "1", "7",
	     "\"device\":1,\"stream\":7,\"correlation\":7,\"grid\":[4,2,1],\"block\":[128,1,1],"
	     "\"registers per thread\":32,\"est. achieved occupancy %\":50")
	SPAN("kernel", "ncclDevKernel_AllReduce", "150", "10", "1", "7",
	     "\"device\":1,\"stream\":7,\"correlation\":8,\"graph id\":5")
	SPAN("kernel", "add", "152", "3", "1", "7", "\"device\":1,\"stream\":7,\"correlation\":8")
	SPAN("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "170", "1", "1", "7",
	     "\"device\":1,\"stream\":\"7\",\"correlation\":9,\"bytes\":4096")
	SPAN("cuda_sync", "Stream Sync", "155", "20", "1", "7", "\"stream\":7")
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"ts\":50,\"pid\":10,"
	"\"tid\":10,\"s\":\"t\",\"args\":{\"Addr\":64,\"Bytes\":-512,\"Total Allocated\":1024,"
	"\"Total Reserved\":4096,\"Device Type\":1,\"Device Id\":1}}]}";
/* clang-format on */

static void what_ran_on_a_device_is_known_by_kinetos_categories(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(import(f, kineto), ST_OK);
	assert_balanced(&f->counts);
	assert_int_equal(f->counts.used[REPORT_IMPORT_LAUNCH], 4);
	assert_int_equal(f->counts.used[REPORT_IMPORT_MEMORY], 1);
	assert_int_equal(f->counts.notes[REPORT_IMPORT_NOTE_PRIVATE], 1);
	/* Steps by time on all threads of the process, on the device by the launch. */
	assert_rows(f, "SELECT track, name, step FROM spans ORDER BY start_ns, depth, dur_ns",
		    "thread 10 (python)|__enter__|-;thread 10|ProfilerStep#4|4;"
		    "thread 10|aten::mm|4;thread 10|cudaLaunchKernel|4;GPU 1 stream 7|gemm|4;"
		    "thread 11|MmBackward0|4;thread 11|cudaGraphLaunch|4;"
		    "thread 10|cudaMemcpyAsync|-;"
		    "GPU 1 stream 7|ncclDevKernel_AllReduce|4;GPU 1 stream 7 (overlap 1)|add|4;"
		    "GPU 1 stream 7 (sync)|Stream Sync|-;"
		    "GPU 1 stream 7|Memcpy HtoD (Pinned -> Device)|-");
	assert_rows(f,
		    "SELECT device, stream, name, kind, grid_x, grid_y, block_x, registers, "
		    "occupancy, graph FROM kernels ORDER BY start_ns",
		    "GPU 1|7|gemm|compute|4|2|128|32|0.5|-;"
		    "GPU 1|7|ncclDevKernel_AllReduce|communication|-|-|-|-|-|5;"
		    "GPU 1|7|add|compute|-|-|-|-|-|-");
	assert_rows(
		f, "SELECT call, name, delay_ns FROM launches ORDER BY device_start_ns",
		"cudaLaunchKernel|gemm|12000;cudaGraphLaunch|ncclDevKernel_AllReduce|107000;"
		"cudaGraphLaunch|add|109000;cudaMemcpyAsync|Memcpy HtoD (Pinned -> Device)|68000");
	assert_rows(f, "SELECT kind, bytes, source, target FROM copies", "HtoD|4096|pinned|device");
	assert_rows(f, "SELECT kind, name FROM ranges", "step|ProfilerStep#4");
	assert_rows(f, "SELECT rank, device, number, model, architecture, units FROM devices",
		    "3|GPU 1|1|H100|9.0|132");
	assert_rows(f, "SELECT * FROM memory_events", "3|GPU 1|50000|free|-512|64|1024|4096");
	assert_rows(f, "SELECT track, name, value FROM counters ORDER BY name",
		    "GPU 1 memory|allocated bytes|1024.0;GPU 1 memory|reserved bytes|4096.0");
	assert_rows(f, "SELECT count(*) FROM meta WHERE value LIKE '%alice%'", "0");
	assert_rows(f, "SELECT count(*) FROM flows", "4");
}

/* PyTorch counts steps from 0. */
static void the_first_step_of_a_profiler_is_a_step(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(import(f,
				"[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"ProfilerStep#0\"},"
				"{\"ph\":\"X\",\"ts\":3,\"dur\":1,\"name\":\"ProfilerStep#1\"},"
				"{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"ProfilerStep#-1\"}]"),
			 ST_OK);
	assert_rows(f, "SELECT name, step FROM spans ORDER BY start_ns",
		    "ProfilerStep#0|0;ProfilerStep#1|1;ProfilerStep#-1|-");
}

/* Where names are too many, an argument of one more is not kept but counted. */
static void arguments_without_a_name_are_counted(void **state)
{
	struct import *import = calloc(1, sizeof(*import));

	(void)state;
	assert_non_null(import);
	report__import_arg_text(import, IMPORT_NO_ID, "text");
	assert_int_equal(import->args.left, 1);
	report__import_arg_int(import, IMPORT_NO_ID, 7);
	report__import_arg_real(import, IMPORT_NO_ID, 0.5);
	assert_int_equal(import->args.left, 3);
	assert_int_equal(import->args.used, 0);
	free(import);
}

/* Perfetto's: {boot time 5 us, wall clock 1 ms}, and a later snapshot whose wall clock was set. */
static void a_snapshot_of_clocks_tells_when_a_trace_began(void **state)
{
	static const char trace[] = "\n\0212\017\n\005\010\006\020\210'\n\006\010\001\020\300\204="
				    "\n\020@\3306Z\013H\003X\002\272\001\004mark"
				    "\n\0212\017\n\005\010\006\020\250F\n\006\010\001\020\200\211z";
	struct fixture *f = *state;

	assert_int_equal(import_bytes(f, trace, sizeof(trace) - 1), ST_OK);
	assert_rows(f, "SELECT name, time_ns FROM instants", "mark|7000");
	/* 5 us before the wall clock's 1 ms */
	assert_rows(f, "SELECT value FROM meta WHERE key = 'start_epoch_ns'", "995000");
}

/* Perfetto's: track 2, the defaults of a writer, which name it, and an event without a track. */
static void an_event_has_the_track_of_its_writers_defaults(void **state)
{
	static const char trace[] = "\n\013\342\003\010\010\002\022\004lane"
				    "\n\013P\001h\001\332\003\004Z\002X\002"
				    "\n\017@\012P\001Z\011H\003\272\001\004mark";
	struct fixture *f = *state;

	assert_int_equal(import_bytes(f, trace, sizeof(trace) - 1), ST_OK);
	assert_int_equal(f->counts.events, 1);
	assert_rows(f, "SELECT track, name FROM instants", "lane|mark");
}

/* Perfetto's older form of GPU events: queues, stages and contexts are in a list that the trace has
 * once; an event has their places. */
static void old_names_of_a_gpus_queues_and_stages_are_found(void **state)
{
	/* {context 7 of process 42, queues "copies" and "draws", stages "vertex" and "pixel"} */
	static const char trace[] =
		"\n1\252\003.:,\n\004\010\007\020*"
		"\022\010\n\006copies\022\007\n\005draws"
		"\032\010\n\006vertex\032\007\n\005pixel"
		/* at 2 us: queue 1, stage 1, context 7, submission 9 */
		"\n\023@\320\017\252\003\015\010\001\020\364\003\030\001 \001(\007P\011"
		/* at 3 us: queue 0, stage 0, context 7 */
		"\n\020@\270\027\252\003\n\010\002\020d\030\000 \000(\007"
		/* at 4 us: queue 5, stage 9 */
		"\n\017@\240\037\252\003\t\010\003\020\310\001\030\005 \t";
	struct fixture *f = *state;

	assert_int_equal(import_bytes(f, trace, sizeof(trace) - 1), ST_OK);
	assert_int_equal(f->counts.events, 3);
	assert_rows(f,
		    "SELECT s.track, t.pid, s.name, start_ns, dur_ns FROM spans s "
		    "JOIN tracks t ON t.track = s.track ORDER BY start_ns",
		    "GPU 0 draws|42|pixel|2000|500;GPU 0 copies|42|vertex|3000|100;"
		    "GPU 0 queue 5|-|stage 9|4000|200");
	assert_rows(f,
		    "SELECT s.name, a.name, value FROM span_args a JOIN spans s USING (span_id) "
		    "WHERE a.name LIKE 'submission%'",
		    "pixel|submission_id|9");
	assert_rows(f, "SELECT device, stream, name, kind FROM kernels ORDER BY start_ns",
		    "GPU 0|1|pixel|compute;GPU 0|0|vertex|compute;GPU 0|5|stage 9|compute");
}

/* Folded stacks: a line is a stack and how often it was met; frames that go on are one span. */
static void frames_without_a_name_are_frames(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(import(f, "a;b;;c 3\na;;b 2\n; 1\n"), ST_OK);
	assert_rows(f, "SELECT name, start_ns, dur_ns, depth FROM spans ORDER BY start_ns, depth",
		    "a|0|5|0;b|0|3|1;(no name)|0|3|2;c|0|3|3;(no name)|3|2|1;b|3|2|2;"
		    "(no name)|5|1|0;(no name)|5|1|1");
}

/* What Nsight Systems exports: thread 9 of process 7 calls twice, thread 8 once. */
static void calls_of_a_thread_are_on_its_track(void **state)
{
	static const char tables[] =
		"CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);"
		"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
		"INSERT INTO StringIds VALUES (1, 'cudaFree'), (2, 'cudaMalloc');"
		"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid "
		"INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 30, 0x7000009, 1, 2, 0), "
		"(20, 50, 0x7000008, 2, 2, 0), (40, 60, 0x7000009, 3, 1, 0);";
	struct fixture *f = *state;
	const struct report_import_params params = {
		.trace = f->trace, .output = f->db, .force = true};
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->trace, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, tables, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(report_import(&params, &f->counts, &f->err), ST_OK);
	assert_rows(f,
		    "SELECT t.pid, s.track, s.name, start_ns, dur_ns FROM spans s "
		    "JOIN tracks t ON t.track = s.track ORDER BY start_ns",
		    "7|thread 9|cudaMalloc|10|20;7|thread 8|cudaMalloc|20|30;"
		    "7|thread 9|cudaFree|40|20");
}

/* Of a mapped trace the pages that were read are given back, each once: so memory for a long one is
 * bounded. This one is a plane "/host:CPU" with two fields of 17 MiB that nobody knows. */
static void pages_that_were_read_are_given_back(void **state)
{
	static const char plane[] = "\n\225\200\200\021\022\t/host:CPU",
			  unknown[] = "z\200\200\300\010";
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), field = (size_t)17 << 20;
	const size_t head = sizeof(plane) - 1, tag = sizeof(unknown) - 1;
	const size_t length = head + 2 * (tag + field);
	char *text = calloc(1, length);
	struct fixture *f = *state;

	assert_non_null(text);
	memcpy(text, plane, head);
	memcpy(text + head, unknown, tag);
	memcpy(text + head + tag + field, unknown, tag);
	given_count = 0;
	assert_int_equal(import_bytes(f, text, length), ST_OK);
	assert_int_equal(f->counts.bytes, length);
	assert_int_equal(given_count, 2);
	assert_int_equal((uintptr_t)given_back[0].at % page, 0);
	assert_ptr_equal(given_back[1].at, given_back[0].at + given_back[0].length);
	assert_int_equal(given_back[0].length + given_back[1].length, length / page * page);
	free(text);
}

/* Every fifth allocation fails in turn. An import that succeeds without it is complete. */
static void failing_allocations_are_told(void **state)
{
	static const char halves[] =
		"[{\"ph\":\"B\",\"ts\":1,\"name\":\"a\",\"args\":{\"x\":1}},"
		"{\"ph\":\"E\",\"ts\":2},{\"ph\":\"C\",\"ts\":2,\"name\":\"c\",\"args\":{\"v\":1}},"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"p\"}}]";
	/* Devices on which nothing ran. */
	static const char idle[] =
		"{\"deviceProperties\":[{\"id\":0},{\"id\":1}],"
		"\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\"}]}";
	/* Perfetto's: two tracks that are ordered by name under a third, a state, and an instant. */
	static const char ordered[] = "\n\007\342\003\004\010\001X\001"
				      "\n\012\342\003\007\010\002(\001\022\001b"
				      "\n\012\342\003\007\010\003(\001\022\001a"
				      "\n\016@\012Z\012H\005X\002\272\001\003run"
				      "\n\017@\024Z\013H\003X\003\272\001\004mark";
	static const struct {
		const char *trace;
		size_t length;
		const char *wanted;
	} traces[] = {
		{kineto, sizeof(kineto) - 1, "12|0|2|3|4|20|1|1"},
		{halves, sizeof(halves) - 1, "1|0|1|0|0|17|0|0"},
		{ordered, sizeof(ordered) - 1, "1|1|0|0|0|17|0|0"},
		{idle, sizeof(idle) - 1, "1|0|0|0|0|18|2|0"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(traces); i++) {
		bool failed = true;

		for (long n = 1; failed; n += 5) {
			enum status status;

			support_fail_alloc(n);
			status = import_bytes(f, traces[i].trace, traces[i].length);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			assert_int_equal(status, failed && status != ST_OK ? ST_NOMEM : ST_OK);
			if (status == ST_OK)
				assert_rows(f,
					    "SELECT (SELECT count(*) FROM spans), "
					    "(SELECT count(*) FROM instants), "
					    "(SELECT count(*) FROM counters), "
					    "(SELECT count(*) FROM kernels), "
					    "(SELECT count(*) FROM flows), "
					    "(SELECT count(*) FROM meta), "
					    "(SELECT count(*) FROM devices), "
					    "(SELECT count(model || architecture) FROM devices)",
					    traces[i].wanted);
			assert_true(failed || n > 100); /* it came to the end of the work */
		}
	}
}

/* A text that no buffer of rows holds is copied to one of its own. What cannot be recorded is told,
 * and what was told to be recorded is there. */
static void facts_that_are_not_recorded_are_told(void **state)
{
	enum {
		LONG = 4 << 20
	};
	struct fixture *f = *state;
	struct import *import = mem_calloc(1, sizeof(*import));
	char *text = mem_alloc(LONG), key[] = "trace.key", name[] = "G";
	bool failed = true;

	assert_non_null(import);
	assert_non_null(text);
	memset(text, 'x', LONG - 1);
	text[LONG - 1] = '\0';
	import->counts = &f->counts;
	import->source = "test";
	import->input.name = "trace.json";
	import->epoch_ns = 7;
	import->counts->broken = true;
	import->meta[import->meta_count++] = (struct import_meta){key, text};
	import->devices[import->device_count++] = (struct ips_device){.device = name};
	for (long n = 0; failed; n++) {
		struct ips_recording_params params;
		enum status status;

		ips_recording_params_defaults(&params);
		params.alone = 1;
		unlink(f->db);
		assert_int_equal(ips_recording_open(&import->recording, f->db, &params, NULL, 0),
				 0);
		support_fail_alloc(n);
		status = report__import_facts_write(import, &f->err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_int_equal(f->err.status, status);
		f->err = (struct err){0};
		assert_true(failed || n > 0);
		ips_recording_close(import->recording, NULL, 0);
	}
	assert_rows(f,
		    "SELECT key, substr(value, 1, 12) FROM meta WHERE key LIKE 'trace%' OR key IN "
		    "('source', 'start_epoch_ns') ORDER BY key",
		    "source|test;start_epoch_ns|7;trace.key|xxxxxxxxxxxx;trace_base_ns|0;"
		    "trace_broken_at|0;trace_duration_ns|0;trace_events|0;trace_file|trace.json");
	assert_rows(f, "SELECT device FROM devices", "G");
	mem_free(text);
	mem_free(import);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(pairs_of_a_thread_nest_whatever_their_order),
		TEST(a_named_end_ends_its_begin_and_what_is_within),
		TEST(what_overlaps_goes_to_a_track_of_its_own),
		TEST(the_result_does_not_depend_on_memory),
		TEST(more_runs_than_are_merged_at_once_are_sorted),
		TEST(a_file_that_is_full_ends_the_sorting),
		TEST(instants_have_arguments),
		TEST(names_that_are_wrong_do_no_harm),
		TEST(an_enormous_event_is_counted),
		TEST(deep_nesting_is_where_the_file_breaks),
		TEST(cut_anywhere_the_whole_events_are_kept),
		TEST(own_keys_are_columns_and_others_arguments),
		TEST(a_failed_import_leaves_what_was_there),
		TEST(what_ran_on_a_device_is_known_by_kinetos_categories),
		TEST(the_first_step_of_a_profiler_is_a_step),
		TEST(arguments_without_a_name_are_counted),
		TEST(a_snapshot_of_clocks_tells_when_a_trace_began),
		TEST(an_event_has_the_track_of_its_writers_defaults),
		TEST(old_names_of_a_gpus_queues_and_stages_are_found),
		TEST(frames_without_a_name_are_frames),
		TEST(calls_of_a_thread_are_on_its_track),
		TEST(pages_that_were_read_are_given_back),
		TEST(failing_allocations_are_told),
		TEST(facts_that_are_not_recorded_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
