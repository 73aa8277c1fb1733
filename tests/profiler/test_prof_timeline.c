/*
 * Pictures against a naive scan of all rows: the same time per depth, the same spans, for random
 * traces in live, killed, repaired and complete files.
 */
#include "support/prof_testing.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/rng.h"
#include "profiler/prof_repair.h"
#include "profiler/prof_timeline.h"

#define MAX_DEPTH 40

struct naive_span {
	int64_t id, start_ns, end_ns;
	int depth;
	bool open;
};

struct naive {
	struct naive_span *spans;
	size_t count, capacity;
	int64_t last_ns;
};

/* ---- making traces --------------------------------------------------------------------------- */

/* Nested spans within [start, end), from a few ns to minutes long. */
static void make_device(struct rng *rng, struct ips_track *track, struct ips_site **sites,
			struct ips_recording *recording, int depth, int64_t start, int64_t end)
{
	while (start < end && depth < 5) {
		int64_t length = (int64_t)1 << (18 - 4 * depth + (int)rng_below(rng, 16));

		length += rng_below(rng, (uint32_t)(length < 1000000000 ? length : 1000000000) + 1);
		if (rng_below(rng, 3) == 0)
			start += length / (1 + rng_below(rng, 50));
		if (rng_below(rng, 20) == 0)
			length = 0;
		if (start + length > end)
			break;
		ips_span_at(track, sites[rng_below(rng, 4)], start, length);
		if (rng_below(rng, 2) != 0)
			make_device(rng, track, sites, recording, depth + 1, start, start + length);
		start += length + rng_below(rng, 2);
		if (rng_below(rng, 400) == 0)
			ips_recording_flush(recording);
	}
}

static void make_host(struct rng *rng, struct ips_track *track, struct ips_site **sites,
		      struct ips_recording *recording)
{
	int depth = 0;

	for (int i = 0; i < 4000; i++) {
		unsigned dice = rng_below(rng, 100);

		if (dice < 50 && depth < 8) {
			ips_span_begin(track, sites[rng_below(rng, 4)]);
			depth++;
		} else if (dice < 95 && depth > (i > 3000 ? 2 : 0)) {
			ips_span_end(track);
			depth--;
		} else if (dice >= 98) {
			usleep(rng_below(rng, 300));
		} else if (rng_below(rng, 20) == 0) {
			ips_recording_flush(recording);
		}
	}
	while (depth++ < 3)
		ips_span_begin(track, sites[0]);
}

static struct ips_recording *make_trace(const char *path, unsigned seed)
{
	const struct ips_track_params device = {NULL, NULL, 0, IPS_DEVICE, 0};
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_site *sites[4];
	struct rng rng;

	rng_init(&rng, seed, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "Site %c", 'A' + i);
		sites[i] = ips_site_intern("trace", name, NULL);
	}
	ips_recording_params_defaults(&params);
	params.commit_ms = 3;
	if (ips_recording_open(&recording, path, &params, NULL, 0) != 0)
		return NULL;
	make_device(&rng, ips_track_open(recording, "ipu 0", &device), sites, recording, 0, 0,
		    (int64_t)1 << 36);
	make_device(&rng, ips_track_open(recording, "ipu 1", &device), sites, recording, 0, 5000,
		    (int64_t)1 << 33);
	make_host(&rng, ips_track_open(recording, "worker", NULL), sites, recording);
	ips_track_open(recording, "empty", NULL);
	ips_recording_flush(recording);
	return recording;
}

/* ---- the naive side -------------------------------------------------------------------------- */

static void load(struct naive *naive, const char *path, int64_t track_id, int64_t now_ns)
{
	sqlite3_stmt *statement;
	sqlite3 *db;

	naive->count = 0;
	naive->last_ns = 1;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(db,
				   "SELECT span_id, start_ns, dur_ns, depth FROM span_rows WHERE "
				   "track_id = ? ORDER BY span_id",
				   -1, &statement, NULL),
		SQLITE_OK);
	sqlite3_bind_int64(statement, 1, track_id);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		struct naive_span *span;

		assert_int_equal(mem_grow(&naive->spans, &naive->capacity, naive->count + 1,
					  sizeof(*naive->spans)),
				 0);
		span = &naive->spans[naive->count++];
		span->id = sqlite3_column_int64(statement, 0);
		span->start_ns = sqlite3_column_int64(statement, 1);
		span->open = sqlite3_column_type(statement, 2) == SQLITE_NULL;
		span->end_ns = span->start_ns + sqlite3_column_int64(statement, 2);
		if (span->open)
			span->end_ns = now_ns > span->start_ns ? now_ns : span->start_ns;
		span->depth = sqlite3_column_int(statement, 3);
		assert_true(span->depth < MAX_DEPTH);
		if (span->end_ns > naive->last_ns)
			naive->last_ns = span->end_ns;
	}
	sqlite3_finalize(statement);
	sqlite3_close(db);
}

static int64_t overlap(int64_t start, int64_t end, int64_t from, int64_t to)
{
	int64_t first = start > from ? start : from, last = end < to ? end : to;

	return last > first ? last - first : 0;
}

/* ---- one picture ----------------------------------------------------------------------------- */

struct sums {
	int64_t busy[MAX_DEPTH], starts[MAX_DEPTH];
	size_t spans;
};

static void sum_naive(struct sums *sums, const struct naive *naive, int64_t from, int64_t to)
{
	memset(sums, 0, sizeof(*sums));
	for (size_t i = 0; i < naive->count; i++) {
		const struct naive_span *span = &naive->spans[i];
		bool starts = span->start_ns >= from && span->start_ns < to;

		sums->busy[span->depth] += overlap(span->start_ns, span->end_ns, from, to);
		sums->starts[span->depth] += starts;
		sums->spans += starts || (span->start_ns < from && span->end_ns > from);
	}
}

static void sum_bars(struct sums *sums, const struct prof_bar *bars, int count, int64_t from,
		     int64_t to)
{
	memset(sums, 0, sizeof(*sums));
	for (int i = 0; i < count; i++) {
		const struct prof_bar *bar = &bars[i];
		int64_t end = bar->start_ns + bar->dur_ns;

		assert_true(bar->depth >= 0 && bar->depth < MAX_DEPTH);
		if (i > 0) /* by depth, then start */
			assert_true(
				bar->depth > bar[-1].depth ||
				(bar->depth == bar[-1].depth && bar->start_ns >= bar[-1].start_ns));
		if (bar->span_id == INT64_MIN) {
			assert_true(bar->busy_ns <= bar->dur_ns);
			sums->busy[bar->depth] += bar->busy_ns;
			sums->starts[bar->depth] += bar->count;
		} else {
			sums->busy[bar->depth] += overlap(bar->start_ns, end, from, to);
			sums->starts[bar->depth] += bar->start_ns >= from && bar->start_ns < to;
			sums->spans++;
		}
	}
}

static bool has_buckets(const struct prof_bar *bars, int count)
{
	for (int i = 0; i < count; i++) {
		if (bars[i].span_id == INT64_MIN)
			return true;
	}
	return false;
}

/* Of the span @id among the naive ones, which are in order of it; their number where it is none. */
static size_t place_of(const struct naive *naive, int64_t id)
{
	size_t low = 0, high = naive->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (naive->spans[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < naive->count && naive->spans[low].id == id ? low : naive->count;
}

/* Every span of the picture is one of the file, once, with its own times. */
static void check_spans(const struct naive *naive, const struct prof_bar *bars, int count)
{
	unsigned char *seen = calloc(naive->count + 1, 1);

	for (int i = 0; i < count; i++) {
		const struct naive_span *span;
		size_t place;

		if (bars[i].span_id == INT64_MIN)
			continue;
		place = place_of(naive, bars[i].span_id);
		assert_true(place < naive->count);
		span = &naive->spans[place];
		assert_false(seen[place]);
		seen[place] = 1;
		assert_true(span->start_ns == bars[i].start_ns && span->depth == bars[i].depth &&
			    span->end_ns == bars[i].start_ns + bars[i].dur_ns &&
			    span->open == bars[i].open);
	}
	free(seen);
}

static int level_of(int64_t column_ns)
{
	int level = -1;

	while (level < 12 && ((int64_t)1 << (16 + 2 * (level + 1))) <= column_ns)
		level++;
	return level;
}

static void check_picture(struct prof_db *db, const struct naive *naive, int64_t track_id,
			  int64_t from, int64_t to, int columns, int64_t now_ns)
{
	int level = level_of((to - from) / columns);
	struct sums wanted, found;
	struct prof_bar *bars;
	struct arena arena;
	struct err err;
	int count;

	if (level >= 0) { /* to whole buckets, so that sums can be exact */
		from = from >> (16 + 2 * level) << (16 + 2 * level);
		to = ((to - 1) >> (16 + 2 * level) << (16 + 2 * level)) +
		     ((int64_t)1 << (16 + 2 * level));
		columns = (int)((to - from) >> (16 + 2 * level));
	}
	assert_int_equal(arena_init(&arena, 0), 0);
	if (prof_timeline_bars(db, track_id, from, to, columns, now_ns, &arena, &bars, &count,
			       &err) != ST_OK)
		fail_msg("%s", err.text);
	sum_naive(&wanted, naive, from, to);
	sum_bars(&found, bars, count, from, to);
	check_spans(naive, bars, count);
	for (int d = 0; d < MAX_DEPTH; d++) {
		if (found.busy[d] != wanted.busy[d] || found.starts[d] != wanted.starts[d])
			fail_msg("track %d [%lld, %lld) level %d depth %d: busy %lld for %lld, "
				 "starts "
				 "%lld for %lld",
				 (int)track_id, (long long)from, (long long)to, level, d,
				 (long long)found.busy[d], (long long)wanted.busy[d],
				 (long long)found.starts[d], (long long)wanted.starts[d]);
	}
	if (level < 0) {
		assert_false(has_buckets(bars, count));
		assert_int_equal(found.spans, wanted.spans);
	}
	/* a picture's size depends on its columns */
	if (level >= 0)
		assert_true(count <= MAX_DEPTH * (columns + 8));
	arena_fini(&arena);
}

static void check_at(struct prof_db *db, const struct naive *naive, int64_t track_id,
		     int64_t time_ns, int depth)
{
	int64_t wanted = INT64_MIN, found;
	int best = -1;

	for (size_t i = 0; i < naive->count; i++) {
		const struct naive_span *span = &naive->spans[i];

		if (span->depth <= depth && span->start_ns <= time_ns &&
		    (span->open || span->end_ns > time_ns || span->start_ns == time_ns) &&
		    span->depth >= best) {
			best = span->depth;
			wanted = span->id;
		}
	}
	assert_int_equal(prof_timeline_at(db, track_id, time_ns, depth, &found, NULL), ST_OK);
	if (found != wanted) {
		/* Of zero-length spans at the same instant any may be named. */
		struct prof_span span;
		struct arena arena;

		assert_true(found != INT64_MIN && wanted != INT64_MIN);
		arena_init(&arena, 0);
		assert_int_equal(prof_timeline_span(db, found, &arena, &span, NULL), ST_OK);
		assert_int_equal(span.start_ns, time_ns);
		arena_fini(&arena);
	}
}

static void check_tracks(struct prof_db *db, const char *path, int64_t now_ns)
{
	struct prof_track *tracks;
	struct naive naive = {0};
	struct arena arena;
	int count;

	assert_int_equal(arena_init(&arena, 0), 0);
	assert_int_equal(prof_timeline_tracks(db, &arena, &tracks, &count, NULL), ST_OK);
	assert_int_equal(count, 4);
	assert_string_equal(tracks[0].track, "ipu 0");
	for (int i = 0; i < count; i++) {
		int depth = 0;

		load(&naive, path, tracks[i].track_id, now_ns);
		for (size_t s = 0; s < naive.count; s++)
			depth = naive.spans[s].depth + 1 > depth ? naive.spans[s].depth + 1 : depth;
		assert_int_equal(tracks[i].depth, depth);
		if (naive.count == 0)
			assert_true(tracks[i].first_ns > tracks[i].last_ns);
		else
			assert_int_equal(tracks[i].first_ns, naive.spans[0].start_ns);
		if (naive.count > 0 && tracks[i].clock == 1)
			assert_int_equal(tracks[i].last_ns, naive.last_ns);
	}
	mem_free(naive.spans);
	arena_fini(&arena);
}

static void check_file(const char *path, unsigned seed)
{
	const int64_t now_ns = (int64_t)3 << 32;
	struct naive naive = {0};
	struct prof_db *db;
	struct rng rng;
	struct err err;

	if (prof_db_open(&db, path, &err) != ST_OK)
		fail_msg("%s", err.text);
	rng_init(&rng, seed, 1, 0, 0);
	check_tracks(db, path, now_ns);
	for (int64_t track = 1; track <= 4; track++) {
		load(&naive, path, track, now_ns);
		for (int i = 0; i < 120; i++) {
			int64_t width = (int64_t)1 << rng_below(&rng, 37);
			int64_t from = naive.last_ns * (int64_t)rng_below(&rng, 1000) / 1000;

			if (i % 2 == 0 && naive.count > 0) /* about a span */
				from = naive.spans[rng_below(&rng, (uint32_t)naive.count)]
					       .start_ns -
				       (int64_t)rng_below(&rng, 3);
			from = from < 0 ? 0 : from;
			check_picture(db, &naive, track, from, from + width + 1,
				      (int)(1 + rng_below(&rng, 300)), now_ns);
			check_at(db, &naive, track, from, (int)rng_below(&rng, 7));
		}
		check_picture(db, &naive, track, 0, naive.last_ns, 100, now_ns);
	}
	mem_free(naive.spans);
	prof_db_close(db);
}

static void test_pictures_of_live_and_complete_files_equal_a_naive_scan(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= support_rounds(3); seed++) {
		struct ips_recording *recording;
		struct prof_place place;

		prof_place_make(&place);
		recording = make_trace(place.path, seed);
		assert_non_null(recording);
		check_file(place.path, seed);
		prof_stop(recording);
		check_file(place.path, seed + 100);
		prof_place_remove(&place);
	}
}

static void test_pictures_of_killed_and_repaired_files_equal_a_naive_scan(void **state)
{
	struct prof_place place;
	char byte;
	int ends[2];
	bool done;
	pid_t child;

	(void)state;
	prof_place_make(&place);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		byte = make_trace(place.path, 7) ? 'y' : 'n';
		if (write(ends[1], &byte, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	check_file(place.path, 7);
	assert_int_equal(prof_repair(place.path, &done, NULL), ST_OK);
	assert_true(done);
	check_file(place.path, 8);
	assert_answer(place.path, "PRAGMA journal_mode", "delete\n");
	assert_int_equal(prof_repair(place.path, &done, NULL), ST_OK);
	assert_false(done);
	prof_place_remove(&place);
}

/* ---- search, details ------------------------------------------------------------------------- */

static void test_finding_goes_from_span_to_span_in_both_directions(void **state)
{
	struct ips_recording *recording;
	struct prof_place place;
	struct prof_db *db;
	sqlite3 *reader;
	char sql[256];
	int64_t at, id, next;

	(void)state;
	prof_place_make(&place);
	recording = make_trace(place.path, 5);
	prof_stop(recording);
	assert_int_equal(prof_db_open(&db, place.path, NULL), ST_OK);
	/* The naive scans read a copy of the view, which is computed once. */
	reader = prof_reader_open(place.path);
	assert_int_equal(
		sqlite3_exec(reader,
			     "CREATE TEMP TABLE seen AS SELECT s.*, r.track_id FROM spans s "
			     "JOIN span_rows r ON r.span_id = s.span_id",
			     NULL, NULL, NULL),
		SQLITE_OK);
	at = 1000000;
	for (unsigned i = 0; i < support_rounds(50); i++) {
		snprintf(sql, sizeof(sql),
			 "SELECT min(start_ns) FROM seen WHERE clock = 'device' AND name = "
			 "'Site C' AND start_ns > %lld",
			 (long long)at);
		assert_int_equal(
			prof_timeline_find(db, INT64_MIN, 1, "site c", at, true, &id, NULL), ST_OK);
		next = prof_reader_ask(reader, sql);
		if (next == INT64_MIN) {
			assert_true(id == INT64_MIN);
			break;
		}
		at = next;
		snprintf(sql, sizeof(sql),
			 "SELECT start_ns FROM seen WHERE name = 'Site C' AND span_id = %lld",
			 (long long)id);
		assert_int_equal(prof_reader_ask(reader, sql), at);
	}
	for (unsigned i = 0; i < support_rounds(50); i++) {
		snprintf(sql, sizeof(sql),
			 "SELECT max(start_ns) FROM seen WHERE track_id = 1 AND start_ns < "
			 "%lld",
			 (long long)at);
		assert_int_equal(prof_timeline_find(db, 1, -1, NULL, at, false, &id, NULL), ST_OK);
		/* All names have it. */
		assert_int_equal(prof_timeline_find(db, 1, -1, "SITE", at, false, &next, NULL),
				 ST_OK);
		assert_int_equal(next, id);
		if (id == INT64_MIN)
			break;
		at = prof_reader_ask(reader, sql);
		snprintf(sql, sizeof(sql), "SELECT start_ns FROM seen WHERE span_id = %lld",
			 (long long)id);
		assert_int_equal(prof_reader_ask(reader, sql), at);
	}
	assert_int_equal(prof_timeline_find(db, INT64_MIN, -1, "nobody", 0, true, &id, NULL),
			 ST_OK);
	assert_true(id == INT64_MIN);
	sqlite3_close(reader);
	prof_db_close(db);
	prof_place_remove(&place);
}

static void test_a_span_tells_all_about_itself(void **state)
{
	struct ips_keys keys = {1, 2, 3, 4, 5, 6, 7, 8, IPS_TRAIN, 'B'};
	struct ips_recording *recording;
	const char *category, *name;
	struct prof_place place;
	struct prof_span span;
	struct ips_track *track;
	struct arena arena;
	struct prof_db *db;
	IPS_SITE(a, "category", "name");

	(void)state;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	track = ips_track_open(recording, "lane", NULL);
	ips_track_set_keys(track, &keys);
	ips_span_begin(track, &a);
	ips_span_arg_int(track, "x", 5);
	ips_span_arg_text(track, "y", "z");
	ips_recording_flush(recording);
	assert_int_equal(prof_db_open(&db, place.path, NULL), ST_OK);
	assert_int_equal(arena_init(&arena, 0), 0);
	assert_int_equal(prof_timeline_span(db, 1, &arena, &span, NULL), ST_OK);
	assert_true(span.dur_ns == INT64_MIN && span.parent_id == INT64_MIN);
	assert_string_equal(span.arguments, "x=5, y=z");
	assert_string_equal(span.mode, "train");
	assert_null(span.operation);
	assert_int_equal(span.phase, 'B');
	assert_int_equal(span.stage, 8);
	assert_int_equal(prof_timeline_site(db, prof_ask(place.path, "SELECT site_id FROM sites"),
					    &arena, &category, &name, NULL),
			 ST_OK);
	assert_string_equal(category, "category");
	assert_string_equal(name, "name");
	assert_int_equal(prof_timeline_span(db, 2, &arena, &span, NULL), ST_NOTFOUND);
	arena_fini(&arena);
	prof_db_close(db);
	prof_stop(recording);
	prof_place_remove(&place);
}

/* With every bar or none: spans alone, and spans with buckets. */
static void test_no_failed_allocation_leaves_half_a_picture(void **state)
{
	struct ips_recording *recording;
	struct prof_place place;
	struct prof_db *db;

	(void)state;
	prof_place_make(&place);
	recording = make_trace(place.path, 9);
	prof_stop(recording);
	assert_int_equal(prof_db_open(&db, place.path, NULL), ST_OK);
	for (int level = -1; level < 6; level += 3) {
		int whole = 0, tried = 0;
		bool failed = true;

		for (long n = 0; failed; n++, tried++) {
			struct prof_bar *bars;
			struct arena arena;
			enum status status;
			int count;

			arena_init(&arena, 0);
			support_fail_alloc(n);
			status = prof_timeline_bars_at(db, 1, level, (int64_t)1 << 30,
						       (int64_t)1 << 33, (int64_t)1 << 36, &arena,
						       &bars, &count, NULL);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
			assert_true(failed == (count == 0) && failed == !bars);
			whole = count;
			arena_fini(&arena);
		}
		assert_true(whole > 10 && tried > 2);
	}
	prof_db_close(db);
	prof_place_remove(&place);
}

/* What is added to a time that was read is still a time. */
static void test_times_of_a_damaged_file_are_no_extremes(void **state)
{
	static const char damage[] = "UPDATE zones SET first_ns = 9223372036854775807;"
				     "UPDATE span_rows SET dur_ns = 9223372036854775807;";
	struct ips_recording *recording;
	struct prof_place place;
	struct prof_track *tracks;
	struct prof_span span;
	struct ips_track *track;
	struct arena arena;
	struct prof_db *db;
	sqlite3 *raw;
	int count;
	IPS_SITE(a, "category", "name");

	(void)state;
	prof_place_make(&place);
	recording = prof_start(&place, NULL);
	track = ips_track_open(recording, "lane", NULL);
	ips_span_begin(track, &a);
	ips_span_end(track);
	prof_stop(recording);
	assert_int_equal(sqlite3_open(place.path, &raw), SQLITE_OK);
	assert_int_equal(sqlite3_exec(raw, damage, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(raw), SQLITE_OK);
	assert_int_equal(prof_db_open(&db, place.path, NULL), ST_OK);
	assert_int_equal(arena_init(&arena, 0), 0);
	assert_int_equal(prof_timeline_tracks(db, &arena, &tracks, &count, NULL), ST_OK);
	assert_int_equal(count, 1);
	assert_true(tracks[0].first_ns < INT64_MAX / 2 && tracks[0].last_ns < INT64_MAX);
	assert_int_equal(prof_timeline_span(db, 1, &arena, &span, NULL), ST_OK);
	assert_true(span.dur_ns > 0 && span.dur_ns < INT64_MAX / 2);
	arena_fini(&arena);
	prof_db_close(db);
	prof_place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pictures_of_live_and_complete_files_equal_a_naive_scan),
		cmocka_unit_test(test_pictures_of_killed_and_repaired_files_equal_a_naive_scan),
		cmocka_unit_test(test_finding_goes_from_span_to_span_in_both_directions),
		cmocka_unit_test(test_a_span_tells_all_about_itself),
		cmocka_unit_test(test_no_failed_allocation_leaves_half_a_picture),
		cmocka_unit_test(test_times_of_a_damaged_file_are_no_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
