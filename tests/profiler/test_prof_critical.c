/*
 * The critical path of recordings whose longest way can be seen by eye: times are a few
 * nanoseconds, and a way's length is the sum of its rows.
 */
#include "support/prof_testing.h"

#include <sqlite3.h>
#include <string.h>

/* A thread within a span `work` of 1,000 ns, and two streams. */
struct machine {
	struct ips_recording *recording;
	struct ips_track *thread, *streams[2], *waits[2]; /* of a stream's waits */
};

static void begin(struct machine *m, const struct prof_place *place)
{
	IPS_SITE(work, "nvtx", "work");

	m->recording = prof_start(place, NULL);
	m->thread = ips_track_open(m->recording, "thread", NULL);
	m->streams[0] = ips_track_open(m->recording, "GPU 0 stream 7", NULL);
	m->streams[1] = ips_track_open(m->recording, "GPU 0 stream 8", NULL);
	m->waits[0] = ips_track_open(m->recording, "GPU 0 stream 7 (sync)", NULL);
	m->waits[1] = ips_track_open(m->recording, "GPU 0 stream 8 (sync)", NULL);
	ips_span_at(m->thread, &work, 0, 1000);
}

static void call(struct machine *m, struct ips_site *site, int64_t start, int64_t end, int64_t key)
{
	ips_span_at(m->thread, site, start, end - start);
	ips_span_row(m->thread, IPS_TABLE_call, &(struct ips_call){key});
}

static void kernel(struct machine *m, int stream, struct ips_site *site, int64_t start, int64_t end,
		   int64_t key)
{
	const struct ips_kernel row = {.device = "GPU 0", .kind = "compute", .launch_key = key};

	ips_span_at(m->streams[stream], site, start, end - start);
	ips_span_row(m->streams[stream], IPS_TABLE_kernel, &row);
}

IPS_SITE(launch, "cuda_runtime", "cudaLaunchKernel");
IPS_SITE(wait_all, "cuda_runtime", "cudaDeviceSynchronize");
IPS_SITE(wait_stream, "cuda_runtime", "cudaStreamSynchronize");
IPS_SITE(wait_event, "cuda_runtime", "cudaEventSynchronize");
IPS_SITE(record_event, "cuda_runtime", "cudaEventRecord");
IPS_SITE(stream_wait, "cuda_runtime", "cudaStreamWaitEvent");
IPS_SITE(quick, "kernel", "quick");
IPS_SITE(slow, "kernel", "slow");
IPS_SITE(stream_record, "sync", "Stream Sync");
IPS_SITE(event_record, "sync", "Event Sync");
IPS_SITE(wait_record, "sync", "Stream Wait Event");

static void assert_path(const struct prof_place *place, const char *expected)
{
	assert_answer(place->path,
		      "SELECT start_ns, kind, name, dur_ns FROM critical_path ORDER BY position",
		      expected);
}

static void test_a_thread_that_waits_for_a_kernel(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	call(&m, &launch, 100, 120, 1);
	kernel(&m, 0, &quick, 200, 500, 1);
	call(&m, &wait_all, 300, 520, 2);
	prof_stop(m.recording);
	assert_path(place,
		    "0|host|work|100\n100|launch|cudaLaunchKernel|100\n200|compute|quick|300\n"
		    "500|sync|cudaDeviceSynchronize|0\n520|host|work|480\n");
}

/* What is in the queue of a busy stream waits for the kernel before it. */
static void test_a_kernel_behind_another(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	call(&m, &launch, 100, 120, 1);
	call(&m, &launch, 150, 170, 2);
	kernel(&m, 0, &slow, 200, 500, 1);
	kernel(&m, 0, &quick, 530, 600, 2);
	call(&m, &wait_all, 300, 620, 3);
	prof_stop(m.recording);
	assert_path(place,
		    "0|host|work|100\n100|launch|cudaLaunchKernel|100\n200|compute|slow|300\n"
		    "500|kernel_delay|slow|30\n530|compute|quick|70\n"
		    "600|sync|cudaDeviceSynchronize|0\n620|host|work|380\n");
}

/* Two streams have work, of which the slow one's ends later. An event is recorded at @recorded. */
static void two_streams(struct machine *m, int64_t recorded)
{
	if (recorded < 100)
		call(m, &record_event, recorded, recorded + 5, 3);
	call(m, &launch, 100, 110, 1);
	call(m, &launch, 200, 210, 2);
	if (recorded >= 100)
		call(m, &record_event, recorded, recorded + 5, 3);
	kernel(m, 1, &slow, 150, 390, 1);
	kernel(m, 0, &quick, 220, 300, 2);
}

static void test_waiting_for_one_stream_is_not_waiting_for_all(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 215);
	call(&m, &wait_stream, 250, 400, 4);
	ips_span_at(m.waits[0], &stream_record, 255, 140);
	call(&m, &wait_all, 900, 950, 5);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|100\n100|host|cudaLaunchKernel|10\n110|host|work|90\n"
			   "200|launch|cudaLaunchKernel|20\n220|compute|quick|80\n"
			   "300|sync|cudaStreamSynchronize|0\n400|host|work|500\n"
			   "900|host|cudaDeviceSynchronize|0\n950|host|work|50\n");
}

/* A record of waiting, on a track of @waits, for what was launched on @stream before the event. */
static void wait_for_event(struct ips_track *waits, struct ips_site *site, int64_t start,
			   int64_t end, int64_t stream)
{
	ips_span_at(waits, site, start, end - start);
	ips_span_arg_int(waits, "wait_on_cuda_event_record_corr_id", 3);
	ips_span_arg_int(waits, "wait_on_stream", stream);
}

static void test_waiting_for_an_event_is_waiting_for_the_kernel_before_it(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 215);
	call(&m, &wait_event, 250, 400, 4);
	wait_for_event(m.waits[0], &event_record, 255, 395, 7);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|100\n100|host|cudaLaunchKernel|10\n110|host|work|90\n"
			   "200|launch|cudaLaunchKernel|20\n220|compute|quick|80\n"
			   "300|sync|cudaEventSynchronize|0\n400|host|work|600\n");
}

/* Which kernel it was is not known: the call may wait for any stream. */
static void test_an_event_before_all_kernels_of_its_stream(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 50);
	call(&m, &wait_event, 250, 400, 4);
	wait_for_event(m.waits[0], &event_record, 255, 395, 8);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|50\n50|host|cudaEventRecord|5\n55|host|work|45\n"
			   "100|launch|cudaLaunchKernel|50\n150|compute|slow|240\n"
			   "390|sync|cudaEventSynchronize|0\n400|host|work|600\n");
}

/* The stream is not recorded: again the call may wait for any. */
static void test_an_event_of_a_stream_that_is_nowhere(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 215);
	call(&m, &wait_event, 250, 400, 4);
	wait_for_event(m.waits[0], &event_record, 255, 395, 9);
	/* Three more lanes make eight, for which there is room at first: none is behind the last. */
	for (int i = 0; i < 3; i++)
		ips_track_open(m.recording, "GPU 1 (sync)", NULL);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|100\n100|launch|cudaLaunchKernel|50\n"
			   "150|compute|slow|240\n390|sync|cudaEventSynchronize|0\n"
			   "400|host|work|600\n");
}

static void test_a_stream_that_waits_for_an_event(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	call(&m, &launch, 200, 210, 2);
	call(&m, &record_event, 215, 220, 3);
	kernel(&m, 0, &quick, 220, 300, 2);
	call(&m, &stream_wait, 225, 230, 4);
	wait_for_event(m.waits[1], &wait_record, 226, 229, 7);
	call(&m, &launch, 240, 245, 5);
	kernel(&m, 1, &slow, 310, 400, 5);
	call(&m, &wait_all, 250, 410, 6);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|200\n200|launch|cudaLaunchKernel|20\n220|compute|quick|80\n"
			   "300|sync|slow|0\n310|compute|slow|90\n"
			   "400|sync|cudaDeviceSynchronize|0\n410|host|work|590\n");
}

/* The second step is as the first, a microsecond later: what the first one ended with is nothing to
 * it. Each step has a path of its own. */
static void test_steps_have_paths_of_their_own(void **state)
{
	struct prof_place *place = *state;
	struct machine m;
	IPS_SITE(step, "nvtx", "step");
	IPS_SITE(work, "nvtx", "work");

	m.recording = prof_start(place, NULL);
	m.thread = ips_track_open(m.recording, "thread", NULL);
	m.streams[0] = ips_track_open(m.recording, "GPU 0 stream 7", NULL);
	for (int64_t i = 0, at = 0; i < 2; i++, at += 1000) {
		struct ips_keys keys = IPS_KEYS_NULL;

		keys.step = i;
		ips_track_set_keys(m.thread, &keys);
		ips_span_at(m.thread, &step, at, 900);
		ips_span_row(m.thread, IPS_TABLE_range, &(struct ips_range){"step", NULL});
		ips_span_at(m.thread, &work, at, 900);
		call(&m, &launch, at + 100, at + 120, 2 * i + 1);
		kernel(&m, 0, &quick, at + 200, at + 500, 2 * i + 1);
		call(&m, &wait_all, at + 300, at + 520, 2 * i + 2);
	}
	prof_stop(m.recording);
	assert_answer(place->path,
		      "SELECT step, start_ns, kind, name, dur_ns FROM critical_path "
		      "ORDER BY step, position",
		      "0|0|host|work|100\n0|100|launch|cudaLaunchKernel|100\n"
		      "0|200|compute|quick|300\n0|500|sync|cudaDeviceSynchronize|0\n"
		      "0|520|host|work|380\n"
		      "1|1000|host|work|100\n1|1100|launch|cudaLaunchKernel|100\n"
		      "1|1200|compute|quick|300\n1|1500|sync|cudaDeviceSynchronize|0\n"
		      "1|1520|host|work|380\n");
}

/* ---- any recording --------------------------------------------------------------------------- */

enum {
	THREADS = 3,
	STREAMS = 3,
	SPANS_MOST = 400,
	UNTIL = 6000
};

/* What is recorded of a track, in order of start. */
struct planned {
	struct ips_site *site;
	int64_t start, end, key, wait;
	const char *kind; /* of a kernel; NULL: a copy */
};

struct chance {
	uint32_t state;
	struct planned thread[THREADS][SPANS_MOST], stream[STREAMS][SPANS_MOST],
		waits[STREAMS][SPANS_MOST];
	int thread_count[THREADS], stream_count[STREAMS], wait_count[STREAMS];
	int64_t at[THREADS], until[THREADS], free[STREAMS], keys;
};

IPS_SITE(any_work, "nvtx", "work");
IPS_SITE(any_step, "nvtx", "step");
IPS_SITE(any_copy, "cuda_runtime", "cudaMemcpyAsync");
IPS_SITE(any_note, "nvtx", "note");
IPS_SITE(backward, "flow", "fwdbwd");

static int64_t any(struct chance *c, int64_t most)
{
	c->state = c->state * 1664525 + 1013904223;
	return (int64_t)(c->state >> 8) % (most + 1);
}

static void plan(struct planned *list, int *count, struct planned span)
{
	assert_in_range(*count, 0, SPANS_MOST - 1);
	list[(*count)++] = span;
}

/* A call of the thread, and what it launches or waits for. */
static void plan_call(struct chance *c, int t)
{
	static const char *const kinds[] = {"compute", "compute", "communication", "memory", NULL};
	const int64_t start = c->at[t], what = any(c, 9), s = any(c, STREAMS - 1);
	struct planned call = {&launch, start, start + 5 + any(c, 20), ++c->keys, 0, NULL};

	if (what <= 5) {
		const char *kind = kinds[any(c, 4)];
		int64_t begin = start + any(c, 60);

		begin = begin > c->free[s] ? begin : c->free[s] + any(c, 1);
		c->free[s] = begin + 10 + any(c, 150);
		call.site = kind ? &launch : &any_copy;
		plan(c->stream[s], &c->stream_count[s],
		     (struct planned){what ? &quick : &slow, begin, c->free[s],
				      what == 5 ? 0 : c->keys, 0, kind});
	} else if (what == 6) {
		call.site = &wait_all;
		for (int i = 0; i < STREAMS; i++)
			call.end = c->free[i] > call.end ? c->free[i] : call.end;
	} else if (what == 7) {
		call.site = &wait_stream;
		call.end = c->free[s] > call.end ? c->free[s] + any(c, 2) : call.end;
		plan(c->waits[s], &c->wait_count[s],
		     (struct planned){&stream_record, start + 1, call.end - any(c, 1), 0, 0, NULL});
	} else if (what == 8) {
		call.site = &record_event;
	} else {
		const bool stream = any(c, 1);

		call.site = stream ? &stream_wait : &wait_event;
		plan(c->waits[s], &c->wait_count[s],
		     (struct planned){stream ? &wait_record : &event_record, start + 1,
				      call.end - 1, 1 + any(c, c->keys - 1), 7 + any(c, STREAMS),
				      NULL});
	}
	plan(c->thread[t], &c->thread_count[t], call);
	c->at[t] = call.end + any(c, 15);
}

static void plan_all(struct chance *c, uint32_t seed)
{
	*c = (struct chance){.state = seed};
	for (;;) {
		int t = 0;

		for (int i = 1; i < THREADS; i++)
			if (c->at[i] < c->at[t])
				t = i;
		if (c->at[t] > UNTIL)
			return;
		if (c->at[t] >= c->until[t]) {
			c->until[t] = c->at[t] + 300 + any(c, 500);
			plan(c->thread[t], &c->thread_count[t],
			     (struct planned){any(c, 4) ? &any_work : &any_note, c->at[t],
					      c->until[t] + 4000, 0, -1, NULL});
		}
		plan_call(c, t);
	}
}

/* An enclosing span ends with the last call in it. */
static int64_t end_of(const struct planned *list, int count, int at)
{
	int64_t end = list[at].end;

	if (list[at].wait != -1)
		return end;
	end = list[at].start + 1;
	for (int i = at + 1; i < count && list[i].wait != -1; i++)
		end = list[i].end;
	return end;
}

/* @flow: an end of a flow is within the first span. */
static void record_thread(struct ips_track *track, const struct planned *list, int count,
			  void (*flow)(struct ips_track *, struct ips_site *, uint64_t, int64_t))
{
	for (int i = 0; i < count; i++) {
		ips_span_at(track, list[i].site, list[i].start,
			    end_of(list, count, i) - list[i].start);
		if (list[i].site == &any_note)
			ips_span_row(track, IPS_TABLE_range,
				     &(struct ips_range){"annotation", NULL});
		else if (list[i].key)
			ips_span_row(track, IPS_TABLE_call, &(struct ips_call){list[i].key});
		if (i % 5 == 2)
			ips_span_arg_int(track, "n", list[i].key);
		if (i % 7 == 3)
			ips_span_arg_real(track, "r", (double)list[i].start / 3);
		if (i % 11 == 4)
			ips_span_arg_text(track, "t", i % 2 ? "text" : NULL);
		if (i % 6 == 5) {
			ips_instant_at(track, &record_event, list[i].start);
			ips_instant_arg_int(track, "n", list[i].key);
			ips_instant_arg_real(track, "r", (double)list[i].end / 7);
			ips_instant_arg_text(track, "t", i % 4 ? "a text of an instant" : NULL);
		}
		if (i % 3 == 1)
			ips_counter_at(track, &any_note, list[i].start,
				       (double)(list[i].key * 37 % 101) - 50);
		if (i == 0 && flow)
			flow(track, &backward, 1, list[i].start);
	}
}

static void record_stream(struct ips_track *track, const struct planned *list, int count)
{
	for (int i = 0; i < count; i++) {
		const struct ips_kernel kernel = {
			.device = "GPU 0", .kind = list[i].kind, .launch_key = list[i].key};
		const struct ips_copy copy = {.kind = "HtoD", .launch_key = list[i].key};

		ips_span_at(track, list[i].site, list[i].start, list[i].end - list[i].start);
		ips_span_row(track, list[i].kind ? IPS_TABLE_kernel : IPS_TABLE_copy,
			     list[i].kind ? (const void *)&kernel : (const void *)&copy);
	}
}

static void record_waits(struct ips_track *track, const struct planned *list, int count)
{
	int64_t last = 0;

	for (int i = 0; i < count; i++) {
		/* Of several threads: a track's spans lie beside each other. */
		if (list[i].start < last || list[i].end <= list[i].start)
			continue;
		last = list[i].end;
		ips_span_at(track, list[i].site, list[i].start, list[i].end - list[i].start);
		if (!list[i].key)
			continue;
		ips_span_arg_int(track, "wait_on_cuda_event_record_corr_id", list[i].key);
		ips_span_arg_int(track, "wait_on_stream", list[i].wait);
	}
}

/* @seed decides, too, whether there are steps, processes that have streams of their own, and a
 * thread of backward passes. */
static void record_any(const struct prof_place *place, const struct chance *c, uint32_t seed)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *steps;

	ips_recording_params_defaults(&params);
	params.alone = 1;
	recording = prof_start(place, &params);
	for (int t = 0; t < THREADS; t++) {
		char name[32];
		struct ips_track *track;

		snprintf(name, sizeof(name), "thread %d", t);
		track = ips_track_open_foreign(recording, name, NULL, seed & 1 ? t % 2 : 5, t);
		record_thread(track, c->thread[t], c->thread_count[t],
			      !(seed & 2) || t > 1 ? NULL
			      : t                  ? ips_flow_in_at
						   : ips_flow_out_at);
	}
	for (int s = 0; s < STREAMS; s++) {
		char name[48];

		snprintf(name, sizeof(name), "GPU 0 stream %d", 7 + s);
		record_stream(ips_track_open_foreign(recording, name, NULL,
						     seed & 1 ? s % 2 : IPS_NULL, IPS_NULL),
			      c->stream[s], c->stream_count[s]);
		snprintf(name, sizeof(name), "GPU 0 stream %d (sync)", 7 + s);
		record_waits(ips_track_open_foreign(recording, name, NULL,
						    seed & 1 ? s % 2 : IPS_NULL, IPS_NULL),
			     c->waits[s], c->wait_count[s]);
	}
	steps = ips_track_open_foreign(recording, "steps", NULL, 5, 9);
	for (int64_t i = 0; seed & 4 && i < 4; i++) {
		struct ips_keys keys = IPS_KEYS_NULL;

		keys.step = i;
		ips_track_set_keys(steps, &keys);
		ips_span_at(steps, &any_step, i * 1500, 1400);
		ips_span_row(steps, IPS_TABLE_range, &(struct ips_range){"step", NULL});
	}
	prof_stop(recording);
}

static uint64_t digest_of(uint64_t digest, const char *text)
{
	digest = support_digest_text(digest, text, strlen(text));
	return support_digest_text(digest, "\n", 1);
}

/* In whatever order the rows come. */
static uint64_t digest_of_rows(struct sqlite3 *db, const char *sql, uint64_t digest)
{
	sqlite3_stmt *rows;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
	while (sqlite3_step(rows) == SQLITE_ROW) {
		uint64_t row = SUPPORT_DIGEST;

		for (int i = 0; i < sqlite3_column_count(rows); i++) {
			const char *text = (const char *)sqlite3_column_text(rows, i);

			row = digest_of(row, text ? text : "-");
		}
		digest += row;
	}
	sqlite3_finalize(rows);
	return digest;
}

/* The digest of all tables, but for what is of this process, of how it went, and of the lines of
 * this file. */
static uint64_t digest_of_all(const char *path)
{
	uint64_t digest = SUPPORT_DIGEST;
	struct sqlite3 *db = prof_reader_open(path);
	sqlite3_stmt *tables;

	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT name FROM sqlite_master WHERE type = 'table' "
					    "AND name NOT LIKE 'meta%' AND name NOT LIKE "
					    "'overhead%' AND name NOT LIKE 'sqlite%' ORDER BY name",
					    -1, &tables, NULL),
			 SQLITE_OK);
	while (sqlite3_step(tables) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(tables, 0);
		char sql[128];

		snprintf(sql, sizeof(sql), "SELECT %s FROM %s%s",
			 strcmp(name, "sites") == 0 ? "site_id, category_id, name_id, operation_id"
						    : "*",
			 name,
			 strcmp(name, "strings") == 0 ? " WHERE value NOT LIKE '%test_prof%'" : "");
		digest = digest_of_rows(db, sql, digest_of(digest, name));
	}
	sqlite3_finalize(tables);
	sqlite3_close(db);
	return digest;
}

static void test_no_row_of_any_recording_changes_unseen(void **state)
{
	static const struct {
		uint32_t seed;
		int64_t rows, ns;
		uint64_t path, all;
	} expected[] = {
		{0, 156, 5858, UINT64_C(0x9e96d6f220df4470), UINT64_C(0xdb38b497dc58bca6)},
		{3, 160, 6346, UINT64_C(0x11f3053f0277a209), UINT64_C(0x41c6655db95b0a08)},
		{5, 159, 6844, UINT64_C(0xb9ea2941d0255b82), UINT64_C(0xf87d1d6c77c9233c)},
		{6, 144, 6789, UINT64_C(0x72f0d3676ac9cfa7), UINT64_C(0xdb27ef367fa52b8a)},
		{7, 128, 6870, UINT64_C(0xa1550e1afc1f374c), UINT64_C(0x4e74d0ea3b82e00e)},
	};
	struct chance *chance = calloc(1, sizeof(*chance));

	(void)state;
	assert_non_null(chance);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		struct prof_place place;
		int64_t rows, ns;
		uint64_t path, all;
		struct sqlite3 *db;

		prof_place_make(&place);
		plan_all(chance, expected[i].seed);
		record_any(&place, chance, expected[i].seed);
		db = prof_reader_open(place.path);
		/* Each row begins where or after the one before it ends. */
		assert_int_equal(prof_reader_ask(db, "SELECT count(*) FROM (SELECT start_ns - "
						     "lag(start_ns + dur_ns) OVER (PARTITION BY "
						     "step ORDER BY position) AS gap FROM "
						     "critical_path) WHERE gap < 0"),
				 0);
		rows = prof_reader_ask(db, "SELECT count(*) FROM critical_path");
		ns = prof_reader_ask(db, "SELECT sum(dur_ns) FROM critical_path");
		path = digest_of_rows(db, "SELECT * FROM critical_path", SUPPORT_DIGEST);
		sqlite3_close(db);
		all = digest_of_all(place.path);
		if (rows != expected[i].rows || ns != expected[i].ns || path != expected[i].path ||
		    all != expected[i].all)
			fail_msg("{%u, %lld, %lld, UINT64_C(%#llx), UINT64_C(%#llx)}: "
				 "IPUSCOPE_TEST_DIGESTED=1 prints the rows",
				 expected[i].seed, (long long)rows, (long long)ns,
				 (unsigned long long)path, (unsigned long long)all);
		prof_place_remove(&place);
	}
	free(chance);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, prof_place_setup, prof_place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_thread_that_waits_for_a_kernel),
		CASE(test_a_kernel_behind_another),
		CASE(test_waiting_for_one_stream_is_not_waiting_for_all),
		CASE(test_waiting_for_an_event_is_waiting_for_the_kernel_before_it),
		CASE(test_an_event_before_all_kernels_of_its_stream),
		CASE(test_an_event_of_a_stream_that_is_nowhere),
		CASE(test_a_stream_that_waits_for_an_event),
		CASE(test_steps_have_paths_of_their_own),
		cmocka_unit_test(test_no_row_of_any_recording_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
