/*
 * All that the verbs of ipu-report print, of small recordings: tables, files and refusals, each
 * compared whole. What is long is compared by the digests of its lines, eight to a digest.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/mem.h"
#include "common/str.h"
#include "ipuscope/profiler.h"
#include "support/guard_alloc.h"
#include "support/prof_testing.h"
#include "support/verb_out.h"

static const char *folder;

/* ---- recordings ------------------------------------------------------------------------------ */

/* Flows between spans that overlap and nest, on seven threads of two processes. */
static const char trace[] =
	"[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"host;a\"}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,"
	"\"args\":{\"name\":\"twenty-one letters ..\"}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":5,"
	"\"args\":{\"name\":\"twenty-two letters ...\"}},"
	"{\"ph\":\"X\",\"name\":\"call\",\"cat\":\"api\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":100},"
	"{\"ph\":\"X\",\"name\":\"kernel\",\"pid\":1,\"tid\":2,\"ts\":50,\"dur\":10},"
	"{\"ph\":\"s\",\"name\":\"a\",\"cat\":\"f\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":40},"
	"{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"a\",\"cat\":\"f\",\"id\":1,\"pid\":1,\"tid\":2,"
	"\"ts\":50},"
	"{\"ph\":\"X\",\"name\":\"late\\n\",\"pid\":2,\"tid\":3,\"ts\":60,\"dur\":30},"
	"{\"ph\":\"X\",\"name\":\"long;er\",\"pid\":2,\"tid\":4,\"ts\":5,\"dur\":200},"
	"{\"ph\":\"s\",\"name\":\"b\",\"cat\":\"f\",\"id\":2,\"pid\":2,\"tid\":3,\"ts\":65},"
	"{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"b\",\"cat\":\"f\",\"id\":2,\"pid\":2,\"tid\":4,"
	"\"ts\":70},"
	"{\"ph\":\"X\",\"name\":\"moment\",\"pid\":1,\"tid\":5,\"ts\":80,\"dur\":0,"
	"\"args\":{\"x\":1,\"r\":0.5,\"t\":\"\\\"\\\\\\u00e9\"}},"
	"{\"ph\":\"s\",\"name\":\"c\",\"cat\":\"f\",\"id\":3,\"pid\":1,\"tid\":5,\"ts\":80},"
	"{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"c\",\"cat\":\"f\",\"id\":3,\"pid\":2,\"tid\":4,"
	"\"ts\":80},"
	"{\"ph\":\"X\",\"name\":\"outer\",\"pid\":1,\"tid\":6,\"ts\":0,\"dur\":100,"
	"\"args\":{\"mode\":\"train\",\"step\":7,\"epoch\":1,\"phase\":\"F\",\"stage\":1}},"
	"{\"ph\":\"X\",\"name\":\"inner\",\"pid\":1,\"tid\":6,\"ts\":20,\"dur\":80},"
	"{\"ph\":\"X\",\"name\":\"inner\",\"pid\":1,\"tid\":6,\"ts\":30.5,\"dur\":10.25},"
	"{\"ph\":\"X\",\"name\":\"beside\",\"pid\":1,\"tid\":6,\"ts\":50,\"dur\":80},"
	"{\"ph\":\"b\",\"name\":\"async\",\"cat\":\"net\",\"id\":1,\"pid\":1,\"ts\":10},"
	"{\"ph\":\"e\",\"name\":\"async\",\"cat\":\"net\",\"id\":1,\"pid\":1,\"ts\":90},"
	"{\"ph\":\"C\",\"name\":\"load\",\"pid\":1,\"ts\":10,\"args\":{\"cpu\":1.5,\"io\":2}},"
	"{\"ph\":\"C\",\"name\":\"load\",\"pid\":1,\"ts\":20,\"args\":{\"cpu\":-3,\"io\":1e30}},"
	"{\"ph\":\"i\",\"name\":\"mark\",\"pid\":1,\"tid\":6,\"ts\":32,"
	"\"args\":{\"bytes\":7,\"text\":\"t\",\"step\":2}},"
	"{\"ph\":\"i\",\"name\":\"bare\",\"pid\":1,\"tid\":6,\"ts\":33}]";

/* As Nsight Systems exports them, twenty times: calls that take longer than the kernels they
 * launch, on an idle GPU; copies while nothing is computed; exchanges, of which a part is. */
static const char gpus[] =
	"BEGIN; CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
	"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
	"INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel'), (2, 'gemm'), (3, 'ncclAllReduce'), "
	"(4, 'add');"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
	"correlationId INTEGER, nameId INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
	"contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, "
	"shortName INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, "
	"contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, "
	"bytes INTEGER, copyKind INTEGER);"
	"CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n "
	"WHERE i < 19) SELECT i, i * 100000 AS t FROM n;"
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT t, t + 5000, 0x7000007, i, 1 FROM n;"
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
	"SELECT t + 20000, t + 21000, 0, 1, 7, 0x7000000, i, 2 + 2 * (i % 4 = 0) FROM n UNION ALL "
	"SELECT t, t + 20000, 1, 1, 7, 0x7000000, NULL, 2 FROM n UNION ALL "
	"SELECT t, t + 50000, 2, 1, 7, 0x7000000, NULL, 2 FROM n UNION ALL "
	"SELECT t + 45000, t + 95000, 2, 1, 8, 0x7000000, NULL, 3 FROM n;"
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY "
	"SELECT t + 20000, t + 90000, 1, 1, 7, 0x7000000, 100 + i, 4096 * i, 1 FROM n;"
	"DROP TABLE n; COMMIT";

struct kept {
	const char *key, *kind, *shape, *dims;
	int64_t step; /* negative: of the weight update -1 - step */
	int count;
	float first, more; /* values: first + i * more, so that each differs */
};

/* Two samples of three tokens; scores of two heads; losses of two steps; an Embedding of five rows
 * that was kept twice. */
static const struct kept kept[] = {
	{"input", "input", "(2, 3)", "batch, tokens", 0, 6, 0, 1},
	{"targets", "input", "(2, 3)", "batch, tokens", 0, 6, 1, 1},
	{"attention_0_scores", "activation", "(2, 2, 3, 3)", "batch, heads, queries, keys", 0, 36,
	 0.01F, 0.01F},
	{"loss_tokens", "activation", "(2, 3)", "batch, tokens", 0, 6, 0.5F, 0.25F},
	{"flat_scores", "activation", "(1, 2, 3)", "batch, queries, keys", 1, 6, 0, 0},
	{"wide", "activation", "(1, 1, 2, 40)", "batch, heads, queries, keys", 1, 80, 1, 1},
	{"input", "input", "(2, 3)", "batch, tokens", 1, 6, 2, 1},
	{"attention_0_scores", "activation", "(2, 2, 3, 3)", "batch, heads, queries, keys", 1, 36,
	 0.5F, -0.01F},
	{"loss_tokens", "activation", "(2, 3)", "batch, tokens", 1, 6, 3, -0.5F},
	{"loss_tokens", "activation", "(2, 4)", "batch, tokens", 2, 8, 9, 1},
	{"loss_tokens", "activation", "(1, 3)", "batch, tokens", 3, 3, 0, 0},
	{"embedding/embeddings:0", "weight", "(5, 2)", "tokens, features", -1, 10, 0, 1},
	{"embedding/embeddings:0", "weight", "(5, 2)", "tokens, features", -2, 10, 0, 1.5F},
	{"once", "weight", "(3, 2)", "tokens, features", -2, 6, 3, -1},
	{"cube", "weight", "(1, 1, 1)", "tokens, features", -2, 1, 3, -1},
};

static void write_sequences(const char *path)
{
	struct ips_recording *r;
	float values[80];

	assert_int_equal(ips_recording_open(&r, path, NULL, NULL, 0), 0);
	ips_meta_set(r, "tokens",
		     "{\"key\":\"input\",\"names\":[\"a\",\"\\n\",\"caf\\u00e9\",\"x "
		     "y\",\"\\u0001\",\"\\t\",\"last\"]}");
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		const struct kept *k = &kept[i];
		struct ips_keys keys = IPS_KEYS_NULL;
		const struct ips_tensor tensor = {"outfeed", k->key,    k->kind, NULL,   0,
						  k->shape,  "float32", NULL,    k->dims};

		for (int v = 0; v < k->count; v++)
			values[v] = k->first + (float)v * k->more;
		keys.mode = IPS_TRAIN;
		keys.replica = 0;
		if (k->step >= 0)
			keys.step = k->step;
		else
			keys.weight_update = -1 - k->step;
		assert_int_equal(ips_append_capture(
					 r, &(struct ips_capture){keys, ips_tensor_add(r, &tensor),
								  "float32", k->shape, 4 * k->count,
								  0, values}),
				 0);
	}
	assert_int_equal(ips_recording_close(r, NULL, 0), 0);
}

enum {
	MANY_TENSORS = 26, /* two more than a page draws */
	MANY_UPDATES = 6,  /* likewise */
	MANY_METRICS = 14, /* likewise */
	MANY_STEPS = 1001  /* of the first metric: more than a curve has points */
};

/* A traced program that waits for the host, and how two IPUs split their time. */
static void write_trace(struct ips_recording *r)
{
	static const struct {
		const char *type;
		int64_t cycles, tiles;
	} steps[] = {{"StreamCopyBegin", 300, 0}, {"StreamCopyMid", 500, 4},
		     {"StreamCopyEnd", 200, 0},   {"OnTileExecute", 700, 1000},
		     {"DoExchange", 400, 1472},   {"Sync", 350, 0}};
	static const int64_t splits[2][5] = {{100, 250, 250, 300, 100}, {100, 200, 300, 310, 90}};
	int64_t start = 0;

	ips_append_device_trace(r, &(struct ips_device_trace){.clock_hz = 1.33e9, .name = "train"});
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		ips_append_device_step(r, &(struct ips_device_step){.phase = "F",
								    .type = steps[i].type,
								    .name = "layer/op",
								    .start_cycle = start,
								    .cycles = steps[i].cycles,
								    .active_tiles = steps[i].tiles,
								    .tile_balance = 0.25,
								    .active_tile_balance = 0.5});
		start += steps[i].cycles;
	}
	ips_append_device_run(r, &(struct ips_device_run){.mode = IPS_TRAIN, .epoch = 1});
	ips_append_execution(r, &(struct ips_execution){.mode = IPS_TRAIN,
							.epoch = 1,
							.steps = 6,
							.updates = 6,
							.dur_ns = 9000,
							.start_cycle = 0,
							.cycles = start,
							.traced = 1});
	for (int ipu = 0; ipu < 2; ipu++)
		ips_append_time_split(r, &(struct ips_time_split){1, 0, 0, ipu, splits[ipu][0],
								  splits[ipu][1], splits[ipu][2],
								  splits[ipu][3], splits[ipu][4]});
}

/* More than a page shows of everything; some of it is not finite. */
static void write_many(const char *path)
{
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_recording *r;

	assert_int_equal(ips_recording_open(&r, path, NULL, NULL, 0), 0);
	keys.mode = IPS_TRAIN;
	for (int i = 0; i < 2 * MANY_UPDATES * 2; i++) {
		struct ips_stage_timing timing = {.keys = keys, .clock = i % 2};
		const int update = i / 4;

		timing.keys.stage = timing.keys.ipu = i / 2 % 2;
		timing.keys.execution = update / 4;
		timing.keys.weight_update = timing.keys.step = update;
		timing.keys.microbatch = 0;
		timing.keys.phase = "FB"[update % 2];
		timing.start_ns = 1000 * (update + 1) + 100 * timing.keys.stage;
		timing.dur_ns = 100 + update;
		ips_append_stage_timing(r, &timing);
	}
	write_trace(r);
	ips_meta_set(r, "stages", "2");
	ips_meta_set(r, "run", "{}");
	for (int m = 0; m < MANY_METRICS; m++)
		for (int step = 0; step < (m == 0 ? MANY_STEPS : 3); step++) {
			char name[32];

			snprintf(name, sizeof(name), m == 0 ? "loss" : "metric %d", m);
			ips_append_metric(r,
					  &(struct ips_metric){IPS_TRAIN, 1, 0, step, step, name,
							       step % 400 == 399 ? (double)NAN
										 : m + step % 7});
		}
	for (int t = 0; t < MANY_TENSORS; t++) {
		char key[32];
		const struct ips_tensor tensor = {"outfeed", key,       "gradient", NULL, 0,
						  "(4,)",    "float32", NULL,       NULL};
		int64_t id;

		snprintf(key, sizeof(key), "tensor %d", t);
		id = ips_tensor_add(r, &tensor);
		for (int step = 0; step < 3; step++) {
			keys.step = keys.weight_update = step;
			ips_append_tensor_stats(
				r, &(struct ips_tensor_stats){.keys = keys,
							      .tensor_id = id,
							      .n = 4,
							      .n_nan = t == 3 && step == 1,
							      .mean = step,
							      .min = -t,
							      .max = 2.0 * step,
							      .std = 1 + t * step});
		}
	}
	assert_int_equal(ips_recording_close(r, NULL, 0), 0);
}

/* Set what differs from one recording to the next. */
static void steady(const char *path)
{
	prof_change(path,
		    "DELETE FROM meta_facts WHERE CASE WHEN key GLOB 'merge.?.*' THEN "
		    "substr(key, 9) ELSE key END IN ('host', 'library_version', 'page_bytes', "
		    "'pid', 'process_start', 'sqlite_version', 'ticks_per_second'); "
		    "UPDATE meta_facts SET value = '1700000000000000000' WHERE key = "
		    "'start_epoch_ns' AND value IS NOT NULL; "
		    "DELETE FROM overhead_rows; "
		    "UPDATE overhead_sum_rows SET time_ns = 30000000, bytes = 966656, "
		    "record_ns_estimate = 1000000, write_ns = 2000000");
}

/* The times of what the sample's own threads did, which are the host's. */
static void place(const char *path)
{
	prof_change(path,
		    "UPDATE track_rows SET pid = 7, tid = track_id WHERE pid IS NOT NULL; "
		    "UPDATE span_rows SET start_ns = 10000 * span_id, dur_ns = CASE span_id "
		    "WHEN 1 THEN 60000 WHEN 2 THEN 30000 ELSE 5000 END WHERE track_id <= 2; "
		    "UPDATE zones SET first_ns = CASE kind WHEN 0 THEN 10000 * first_row "
		    "ELSE 55000 END, last_ns = CASE kind WHEN 0 THEN 10000 * last_row "
		    "ELSE 55000 END WHERE track_id <= 2; "
		    "UPDATE instant_rows SET time_ns = 55000; "
		    "UPDATE counter_rows SET time_ns = 55000; "
		    "DELETE FROM span_levels WHERE track_id <= 2; DELETE FROM counter_levels");
}

/* Files that are no recordings of a known format: names and contents. */
static const char *const others[][2] = {
	{"a.nsys-rep", "x"},        {"a.qdrep", "x"},
	{"perf.data", "PERFILE2x"}, {"short", "PERFILE"},
	{"a.zip", "PK\003\004"},    {"none.txt", "none"},
	{"nothing.json", ""},       {"open.json", "{"},
	{"list.json", "[]"},        {"deep.json", "[{\"ph\":\"X\",\"ts\":1},"},
};

/* The trace in two members of one file, without its last bytes, and with one that is wrong. It is
 * stored, so that any zlib makes the same bytes. */
static void write_packed(void)
{
	const size_t half = strlen(trace) / 2;
	size_t size;
	char *bytes;

	for (int i = 0; i < 2; i++) {
		gzFile file = gzopen("twice.json.gz", i == 0 ? "wb0" : "ab0");

		assert_non_null(file);
		gzwrite(file, i == 0 ? trace : trace + half,
			(unsigned)(i == 0 ? half : strlen(trace) - half));
		gzclose(file);
	}
	bytes = support_read_file("twice.json.gz", &size);
	support_write_file("cut.json.gz", bytes, size - 40);
	bytes[size - 30] = (char)~bytes[size - 30];
	support_write_file("broken.json.gz", bytes, size);
	free(bytes);
}

static int setup(void **state)
{
	(void)state;
	folder = support_enter();
	report_sample_write("run.db");
	report_sample_write_empty("empty.db");
	write_sequences("seq.db");
	write_many("many.db");
	steady("many.db");
	support_write_file("trace.json", trace, strlen(trace));
	write_packed();
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		support_write_file(others[i][0], others[i][1], strlen(others[i][1]));
	free(verb_out("import trace.json", NULL));
	support_write_file("gpus.sqlite", "", 0);
	prof_change("gpus.sqlite", gpus);
	free(verb_out("import gpus.sqlite", NULL));
	steady("gpus.db");
	free(verb_out("merge gpus.db gpus.db -o ranks.db", NULL));
	steady("ranks.db");
	steady("run.db");
	place("run.db");
	steady("empty.db");
	steady("trace.db");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_leave();
	return 0;
}

/* ---- sequences ------------------------------------------------------------------------------- */

static const char *const sequences[] = {
	"attention seq.db",
	"attention seq.db attention_0 --sample 1 --head 1 --step 0",
	"attention seq.db --sample 1 --by score --step 0 --csv",
	"attention seq.db attention_0 --by head --json",
	"attention seq.db flat_scores",
	"attention seq.db wide --width 30",
	"attention seq.db wide --width 20 --csv",
	"attention seq.db loss_tokens",
	"attention seq.db attention_0 --sample 2",
	"attention seq.db attention_0 --head 2",
	"attention seq.db attention_0 --step 9",
	"attention seq.db --replica 1",
	"attention empty.db",
	"token-losses seq.db",
	"token-losses seq.db --step 0 --sample 1",
	"token-losses seq.db --step 1 --color always --width 20",
	"token-losses seq.db --step 3 --color always",
	"token-losses seq.db --by position",
	"token-losses seq.db --by position --step 1 --json",
	"token-losses seq.db --step 1 --sample 2",
	"token-losses seq.db wide",
	"embeddings seq.db embedding/embeddings:0",
	"embeddings seq.db embedding/embeddings:0 --limit 2",
	"embeddings seq.db embedding/embeddings:0 --csv",
	"embeddings seq.db embedding/embeddings:0 --step 0 --json",
	"embeddings seq.db once",
	"embeddings seq.db cube",
	"embeddings empty.db",
};

static void print_sequences(FILE *out)
{
	verb_print(out, sequences, ARRAY_LEN(sequences));
}

static void test_sequences_are_shown_as_they_were_kept(void **state)
{
	(void)state;
	support_check_golden("report_sequences.txt", print_sequences);
}

/* ---- exports --------------------------------------------------------------------------------- */

static const char *const exports[] = {
	"export trace.db folded -o -",
	"export trace.db folded -o - --from 50000 --to 60000",
	"export trace.db speedscope -o -",
	"export trace.db speedscope -o - --clock device",
	"export trace.db chrome -o -",
	"export trace.db chrome -o - --from 50000 --to 60000",
	"export trace.db chrome -o - --from 100000",
	"export trace.db html -o -",
	"export run.db folded -o - --clock device",
	"export run.db folded -o - --clock host",
	"export run.db chrome -o -",
	"export run.db chrome -o - --execution 0 --clock host",
	"export run.db html -o -",
	"export empty.db html -o -",
	"export many.db html -o -",
	"export gpus.db html -o -",
	"export ranks.db chrome -o - --to 100000",
	"export run.db chrome -o - --clock device",
	"export run.db chrome -o - --clock device --execution 1",
	"export run.db torch-csv -o -",
	"export run.db torch-csv -o - --clock host --weight-update 1",
	"export run.db torch-csv -o - --weight-update 2",
	"export run.db torch-csv -o - --execution 1 --clock host",
	"export empty.db torch-csv -o -",
	"export empty.db torch-csv -o - --clock host",
	"export empty.db chrome -o - --clock device",
	"export empty.db folded -o - --clock device",
	"export empty.db npz",
	"export run.db npz",
	"export run.db npz --force --keys Dense_10* --steps",
	"export run.db npz --force --keys none",
	"export seq.db npz -o seq.npz --steps",
	"export run.db popvision",
	"export empty.db popvision -o empty",
	"export run.db chrome -o own.json",
	"import own.json -q",
	"export own.db speedscope -o -",
	"export own.db folded -o -",
	"export run.db folded -o own.folded.gz",
	"import own.folded.gz -o packed.db -q",
	"export packed.db folded -o -",
	"import twice.json.gz -q",
	"export twice.db folded -o -",
	"import cut.json.gz -q",
	"import broken.json.gz -q",
	"export run.db npz -o -",
	"export run.db npz",
	"export run.db npz -o run.db --force",
	"export run.db chrome -o /dev/null --force",
	"export run.db chrome --keys a",
	"export run.db html --from 1",
	"export run.db chrome --from 5 --to 5",
	"export run.db chrom",
	"export run.db zip",
	"export run.db",
};

static void print_exports(FILE *out)
{
	static const char *const files[] = {"captures.npz", "seq.npz"};
	/* Of both clocks, neither of which begins at 0. */
	static const char *const own[] = {"export own.db html -o -", "own.db summary",
					  "own.db insights"};

	guard_alloc(4096);
	verb_print(out, exports, ARRAY_LEN(exports));
	guard_alloc(0);
	steady("own.db");
	verb_print(out, own, ARRAY_LEN(own));
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		size_t length;
		char *bytes = support_read_file(files[i], &length);

		fprintf(out, "%s: %zu bytes, %016" PRIx64 "\n", files[i], length,
			support_digest(SUPPORT_DIGEST, bytes, length));
		free(bytes);
	}
}

/* What a window holds whose ends are those of events, or a nanosecond beside them. */
static void print_windows(FILE *out)
{
	static const char *const formats[] = {"chrome", "folded", "speedscope"};
	static const int64_t ends[] = {0, 5000, 20000, 30500, 40750, 50000, 80000, 100000};
	char command[128];

	for (size_t i = 0; i < ARRAY_LEN(ends) * 3; i++) {
		const int64_t at = ends[i / 3] + (int64_t)(i % 3) - 1;

		snprintf(command, sizeof(command), "export trace.db %s -o - --%s %" PRId64,
			 formats[(i + i / 6) % 3], i % 2 ? "from" : "to", at > 0 ? at : 1);
		verb_digest(out, command);
		fputs(i % 2 ? "\n" : "", out);
	}
	for (int width = 1; width < 132; width += width < 9 ? 1 : 11) {
		static const char *const tables[] = {"run.db summary", "run.db metrics",
						     "run.db tensor_stats", "run.db operations"};

		snprintf(command, sizeof(command), "%s --width %d", tables[width % 4], width);
		verb_digest(out, command);
		fputs(width % 2 ? "\n" : "", out);
	}
}

static void test_any_window_and_any_width_will_do(void **state)
{
	(void)state;
	support_check_golden("report_windows.txt", print_windows);
}

static void test_exports_are_the_same_to_the_byte(void **state)
{
	(void)state;
	support_check_golden("report_exports.txt", print_exports);
}

/* ---- reports --------------------------------------------------------------------------------- */

static const char *const reports[] = {
	"run.db",
	"run.db summary --width 40",
	"run.db summary --json",
	"run.db summary --csv",
	"run.db insights",
	"run.db insights --json",
	"empty.db summary",
	"empty.db insights --json",
	"empty.db insights",
	"gpus.db summary",
	"ranks.db summary",
	"ranks.db insights",
	"gpus.db critical-path",
	"gpus.db launch",
	"gpus.db kernels --sort -total_ns,name --limit 5",
	"gpus.db view:kernels --where dur_ns=50000 --limit 2 --columns name,device --csv",
	"trace.db summary",
	"trace.db insights",
	"seq.db captures --columns key,step,dtype,shape --limit 3",
	"run.db spans --limit 2 --columns none",
	"run.db insights --by x",
	"run.db insights extra",
	"run.db --csv-safe",
	"import a.nsys-rep",
	"import a.qdrep",
	"import perf.data",
	"import short",
	"import a.zip",
	"import none.txt",
	"import nothing.json",
	"import open.json",
	"import list.json -q",
	"import deep.json -q",
	"import deep.json",
	"import trace.db",
	"import",
	"import -",
	"import trace.json -o -",
	"import missing.json",
};

static void print_reports(FILE *out)
{
	verb_print(out, reports, ARRAY_LEN(reports));
}

static void test_reports_are_the_same_to_the_letter(void **state)
{
	(void)state;
	support_check_golden("report_screens.txt", print_reports);
}

/* How many micro-batches are advised, by schedule, stages, their number, and the steps that they
 * must divide. */
static const struct {
	const char *schedule;
	int stages, microbatches;
	const char *steps;
} ramps[] = {
	{"Grouped", 2, 4, "32"}, {"Grouped", 2, 4, "28"},     {"Grouped", 2, 6, "null"},
	{"Grouped", 2, 8, "64"}, {"1f1b", 4, 6, "60"},        {"zb-h1", 4, 7, "\"epoch\""},
	{"gpipe", 4, 3, "24"},   {"Interleaved", 3, 3, "27"}, {"Grouped", 2, 3, "32"},
	{"zb-h1", 3, 24, "192"},
};

static void print_ramps(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(ramps); i++) {
		char sql[640], *text;

		snprintf(sql, sizeof(sql),
			 "INSERT OR REPLACE INTO meta_facts VALUES ('schedule', '%s'), ('stages', "
			 "'%d'), ('gradient_accumulation', '%d'), ('run', "
			 "'{\"compile\":{\"steps_per_execution\":%s},\"fit\":{\"epochs\":1}}')",
			 ramps[i].schedule, ramps[i].stages, ramps[i].microbatches, ramps[i].steps);
		prof_change("many.db", sql);
		text = verb_out(
			"many.db insights --where id='ramps' --columns sentence,remedy --csv",
			NULL);
		fputs(text, out);
		free(text);
	}
}

/* What a run is beside what it did, each added to the ones before. */
static const char *const facts[] = {
	"('part', '2'), ('continues', '/a/rather/long/path/to/what/was/before/tf_report__1'), "
	"('continues_after_step', '1234'), ('parts', 'steps 0 to 7, killed, steps 8 to 15, "
	"then on, and on, to the end of it')",
	"('ranks', '3'), ('tracks_refused', '5'), ('names_cut', '7'), ('ipus', '2'), "
	"('target', 'ipu2'), ('replicas', '2'), ('host_threads', '1'), ('oversubscribed', 'true')",
	"('repaired', '1'), ('gaps', '3')",
	"('gaps', '0'), ('failure', ''), ('other', 'fact'), ('merge.0.pid', '7')",
	"('state', 'recording'), ('failure', 'the disk is full')",
};

static void print_facts(FILE *out)
{
	static const char *const shown[] = {"many.db insights --width 70",
					    "many.db summary --width 50", "many.db summary --csv"};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		char sql[640];

		snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta_facts VALUES %s", facts[i]);
		prof_change("many.db", sql);
		verb_print(out, shown + i % 2, ARRAY_LEN(shown) - i % 2);
	}
}

static void test_what_became_of_a_run_is_in_its_summary(void **state)
{
	(void)state;
	support_check_golden("report_facts.txt", print_facts);
}

static void test_ramps_ask_for_more_microbatches(void **state)
{
	(void)state;
	support_check_golden("report_ramps.txt", print_ramps);
}

/* ---- the cache ------------------------------------------------------------------------------- */

/* What an imported recording is kept beside: of 2.4 MB each, the first being opened longest ago. */
static const char *const entries[] = {"first.db", "second.db", "third.db", "other.txt",
				      "folder.db"};

static void fill_cache(void)
{
	mkdir("cache", 0700);
	mkdir("cache/ipuscope", 0700);
	mkdir("cache/ipuscope/imports", 0700);
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		const struct timespec times[2] = {{1000 + (long)i, 0}, {1000 + (long)i, (long)i}};
		char path[64];

		snprintf(path, sizeof(path), "cache/ipuscope/imports/%s", entries[i]);
		if (strcmp(entries[i], "folder.db") == 0) {
			mkdir(path, 0700);
			continue;
		}
		support_write_file(path, "", 0);
		assert_int_equal(truncate(path, 2400000), 0);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	}
}

/* Which of the entries are there. */
static void print_entries(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		char path[64];

		snprintf(path, sizeof(path), "cache/ipuscope/imports/%s", entries[i]);
		fprintf(out, "%s%s", access(path, F_OK) == 0 ? entries[i] : "-",
			i + 1 < ARRAY_LEN(entries) ? " " : "\n");
	}
}

static void print_cache(FILE *out)
{
	static const char *const limits[] = {NULL, "8", "1x", "6"};
	static const char *const commands[] = {"trace.json spans --limit 2 --columns name --csv",
					       "again.json tracks --limit 1 --columns track --csv",
					       "cut.json.gz tracks --csv",
					       "gpus.sqlite kernels --limit 1 --columns name"};

	char cache[SUPPORT_PATH_SIZE + 16];

	snprintf(cache, sizeof(cache), "%s/cache", folder);
	setenv("XDG_CACHE_HOME", cache, 1);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		char text[64];

		fill_cache();
		if (limits[i])
			setenv("IPUSCOPE_CACHE_MB", limits[i], 1);
		/* Another file each time: what is known is not imported again. */
		snprintf(text, sizeof(text), "[{\"ph\":\"X\",\"ts\":%zu,\"name\":\"a\"}]", i);
		support_write_file("again.json", text, strlen(text));
		verb_print(out, &commands[1], 1);
		print_entries(out);
	}
	unsetenv("IPUSCOPE_CACHE_MB");
	verb_print(out, commands, ARRAY_LEN(commands));
	verb_print(out, commands, 2);
	unsetenv("XDG_CACHE_HOME");
}

static void test_recordings_are_imported_once_and_the_oldest_forgotten(void **state)
{
	(void)state;
	support_check_golden("import_cache.txt", print_cache);
}

/* ---- runs beside each other ------------------------------------------------------------------ */

static const char *const pairs[] = {
	"diff run.db run.db",
	"diff run.db other.db",
	"diff run.db other.db --all --limit 2 --sections stages,time_split,memory",
	"diff other.db run.db --limit 0 --sections metrics,operations",
	"diff run.db other.db --csv --sections metrics,health",
	"diff run.db other.db --json --sections metrics,health",
	"diff run.db other.db --csv --all --sections bubbles",
	"diff run.db other.db --gate 5% --sections operations",
	"diff run.db other.db --gate 0 --sections operations",
	"diff run.db other.db --gate 0 --ignore-host --sections totals,bubbles",
	"diff run.db empty.db --sections tensors",
	"diff run.db other.db --gate -1",
	"diff run.db other.db --gate x",
	"diff run.db other.db --sections nothing",
	"diff run.db",
	"diff run.db other.db run.db",
	"merge run.db other.db -o both.db",
	"merge run.db other.db -o both.db",
	"merge both.db empty.db -o three.db --align steps --ranks order",
	"merge run.db other.db -o both.db --force --ranks keep",
	"merge run.db -o one.db",
	"merge run.db other.db",
	"merge run.db other.db -o -",
	"merge run.db other.db -o .",
	"merge run.db other.db -o run.db --force",
	"merge -o both.db",
};

static void print_pairs(FILE *out)
{
	char *bytes;
	size_t length;

	prof_change("run.db", "INSERT INTO meta_facts VALUES ('weights_xxh3', '0123')");
	bytes = support_read_file("run.db", &length);
	support_write_file("other.db", bytes, length);
	free(bytes);
	prof_change("other.db", "UPDATE operation_rows SET cycles = cycles * 1.5 WHERE stage = 0; "
				"UPDATE metric_rows SET value = value + 0.5 WHERE mode = 'train'; "
				"DELETE FROM health_rows WHERE row_id = 1; "
				"UPDATE meta_facts SET value = '4567' WHERE key = 'weights_xxh3'");
	verb_print(out, pairs, ARRAY_LEN(pairs));
}

static void test_runs_beside_each_other_and_in_one_file(void **state)
{
	(void)state;
	support_check_golden("report_pairs.txt", print_pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences_are_shown_as_they_were_kept),
		cmocka_unit_test(test_exports_are_the_same_to_the_byte),
		cmocka_unit_test(test_any_window_and_any_width_will_do),
		cmocka_unit_test(test_reports_are_the_same_to_the_letter),
		cmocka_unit_test(test_recordings_are_imported_once_and_the_oldest_forgotten),
		cmocka_unit_test(test_ramps_ask_for_more_microbatches),
		cmocka_unit_test(test_what_became_of_a_run_is_in_its_summary),
		cmocka_unit_test(test_runs_beside_each_other_and_in_one_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
