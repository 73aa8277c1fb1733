/*
 * Recordings that are all that their program does: the same rows as others have, and the same every
 * time, whatever comes out of order.
 */
#include "support/prof_testing.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"

#define TRACKS 3
#define SPANS  30000

static struct ips_recording *start(const struct prof_place *place, int alone)
{
	struct ips_recording_params params;

	ips_recording_params_defaults(&params);
	params.alone = alone;
	return prof_start(place, &params);
}

static void put_args(struct ips_track *track, int i, const char *text)
{
	ips_span_arg_int(track, "second", i);
	ips_span_arg_real(track, "first", i / 4.0);
	if (i % 100 == 0)
		ips_span_arg_long_text(track, "text", text);
	if (i % 7 == 0)
		ips_span_arg_int(track, "second", -i); /* given twice */
	if (i % 11 == 0)
		ips_span_arg_text(track, "none", NULL);
}

/* Spans with given times on several tracks, of which one in three is within another. */
static void record(struct ips_recording *recording)
{
	const struct ips_track_params params = {.ipu = IPS_NULL, .ring_slots = 1024};
	struct ips_site *sites[] = {ips_site_intern("c", "a", NULL),
				    ips_site_intern("c", "b", NULL)};
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_track *tracks[TRACKS];
	char *text = calloc(1, 6001);

	memset(text, 'x', 6000);
	for (int t = 0; t < TRACKS; t++) {
		char name[16];

		snprintf(name, sizeof(name), "t%d", t);
		tracks[t] = ips_track_open_foreign(recording, name, &params, 1, t);
	}
	for (int i = 0; i < SPANS; i++) {
		struct ips_track *track = tracks[i * i % TRACKS];

		keys.step = i / 1000;
		ips_track_set_keys(track, &keys);
		ips_span_at(track, sites[i % 2], i * 1000, i % 3 == 0 ? 2500 : 10);
		text[i % 2 == 0 ? 5000 : 50] = 0;
		put_args(track, i, text);
		text[i % 2 == 0 ? 5000 : 50] = 'x';
		if (i % 13 == 0)
			ips_instant_at(track, sites[0], i * 1000);
		if (i % 17 == 0)
			ips_counter_at(track, sites[1], i * 1000, i);
	}
	free(text);
}

static char *rows_of(const char *path, const char *sql)
{
	char *rows = prof_ask_all(path, sql);

	prof_check_file(path);
	return rows;
}

static void compare(int alone, const char *sql)
{
	struct prof_place places[2];
	char *rows[2];

	for (int i = 0; i < 2; i++) {
		struct ips_recording *recording;

		prof_place_make(&places[i]);
		recording = start(&places[i], i == 0 ? 1 : alone);
		record(recording);
		prof_stop(recording);
		rows[i] = rows_of(places[i].path, sql);
		prof_place_remove(&places[i]);
	}
	assert_true(strcmp(rows[0], rows[1]) == 0);
	assert_true(strlen(rows[0]) > SPANS);
	free(rows[0]);
	free(rows[1]);
}

static void test_the_rows_are_those_of_any_recording(void **state)
{
	(void)state;
	compare(0, "SELECT s.track, s.start_ns, s.dur_ns, s.depth, s.name, s.step, p.start_ns, "
		   "a.name, "
		   "typeof(a.value), a.value FROM spans s "
		   "LEFT JOIN spans p ON p.span_id = s.parent_id "
		   "LEFT JOIN span_args a ON a.span_id = s.span_id "
		   "ORDER BY s.track, s.start_ns, a.name");
}

static void test_two_recordings_have_the_same_rows(void **state)
{
	(void)state;
	compare(1, "SELECT * FROM span_rows LEFT JOIN span_arg_rows USING (span_id)");
	compare(1, "SELECT *, 'a long text that makes it many' FROM zones UNION ALL "
		   "SELECT track_id, level, bucket, depth, busy_ns, count, site_id, site_ns "
		   "FROM span_levels");
}

/* Rows between spans, whose texts are new. @pauses: the writer has time between them. */
static char *strings_of(const struct prof_place *place, bool pauses, int rows, uint64_t queue_bytes)
{
	const struct timespec pause = {0, 20000000};
	struct ips_memory_event events[3] = {{.bytes = 1}};
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *track;
	char name[16];

	ips_recording_params_defaults(&params);
	params.alone = 1;
	params.commit_ms = 1;
	params.row_queue_bytes = queue_bytes;
	recording = prof_start(place, &params);
	track = ips_track_open(recording, "t", NULL);
	for (int i = 0; i < rows; i++) {
		snprintf(name, sizeof(name), "span %d", i);
		ips_span_at(track, ips_site_intern("c", name, NULL), i, 1);
		snprintf(name, sizeof(name), "row %d", i);
		events[0].device = name;
		events[0].kind = "alloc";
		events[0].time_ns = i;
		events[1] = events[2] = events[0];
		assert_int_equal(ips_append(recording, IPS_TABLE_memory_event, events, 3), 0);
		if (pauses && i % (rows / 4) == 1)
			nanosleep(&pause, NULL);
	}
	prof_stop(recording);
	return rows_of(place->path, "SELECT * FROM strings");
}

static void test_texts_have_their_numbers_whenever_the_writer_works(void **state)
{
	const struct {
		int rows;
		uint64_t queue_bytes;
	} cases[] = {{20, 1 << 20}, {2000, 1 << 16}, {50, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct prof_place place;
		char *texts[2];

		for (int pauses = 0; pauses < 2; pauses++) {
			prof_place_make(&place);
			texts[pauses] =
				strings_of(&place, pauses, cases[i].rows, cases[i].queue_bytes);
			prof_place_remove(&place);
		}
		assert_string_equal(texts[0], texts[1]);
		free(texts[0]);
		free(texts[1]);
	}
}

/* A span that is written before it ends, and before its arguments come. */
static void test_what_comes_late_finds_its_span(void **state)
{
	struct prof_place place;
	struct ips_recording *recording;
	struct ips_track *track, *other;
	struct ips_site *site = ips_site_intern("c", "late", NULL);

	(void)state;
	prof_place_make(&place);
	recording = start(&place, 1);
	track = ips_track_open(recording, "a", NULL);
	other = ips_track_open(recording, "b", NULL);
	ips_span_begin(track, site);
	ips_span_arg_int(track, "n", 1);
	assert_int_equal(ips_recording_flush(recording), 0);
	ips_span_at(other, site, 5, 6);
	ips_span_arg_int(other, "n", 2);
	assert_int_equal(ips_recording_flush(recording), 0);
	ips_span_arg_int(track, "n", 3);
	ips_span_arg_text(track, "t", "late");
	ips_span_end(track);
	ips_span_begin(track, site);
	prof_stop(recording);
	prof_check_file(place.path);
	assert_answer(place.path,
		      "SELECT track, dur_ns > 0, a.name, a.value FROM spans "
		      "LEFT JOIN span_args a USING (span_id) ORDER BY span_id, a.name",
		      "a|1|n|3\na|1|t|late\nb|1|n|2\na|-|-|-\n");
	assert_answer(place.path, "SELECT name FROM sqlite_master WHERE name LIKE 'late%'", "");
	prof_place_remove(&place);
}

static void test_nothing_recorded_is_a_whole_file(void **state)
{
	struct prof_place place;

	(void)state;
	prof_place_make(&place);
	prof_stop(start(&place, 1));
	prof_check_file(place.path);
	assert_int_equal(prof_ask(place.path, "SELECT count(*) FROM spans"), 0);
	prof_place_remove(&place);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static atomic_size_t used, most_used;

static void count(size_t more, size_t less)
{
	const size_t now = (used += more) - less;
	size_t most = most_used;

	used -= less;
	while (now > most && !atomic_compare_exchange_weak(&most_used, &most, now))
		;
}

static void *counting_resize(void *old, size_t size)
{
	const size_t less = malloc_usable_size(old);
	void *grown = realloc(old, size);

	if (grown)
		count(malloc_usable_size(grown), less);
	return grown;
}

static void *counting_aligned(size_t alignment, size_t size)
{
	void *memory = aligned_alloc(alignment, size);

	count(malloc_usable_size(memory), 0);
	return memory;
}

static void counting_release(void *p)
{
	count(0, malloc_usable_size(p));
	free(p);
}

/* Spans and samples that are far apart have a bucket of their own at most levels. Neither their
 * number, nor that of the tracks, nor how deep spans are decides how much memory is in use. */
static void test_far_spans_of_many_tracks_take_little_memory(void **state)
{
	enum {
		MANY = 1000,
		ROUNDS = 60, /* without a limit their increments would take 105 MB */
		DEPTH = 64
	};
	static const struct mem_functions counting = {.resize = counting_resize,
						      .aligned = counting_aligned,
						      .release = counting_release};
	const struct ips_track_params params = {.ipu = IPS_NULL, .ring_slots = 64};
	struct ips_site *site = ips_site_intern("c", "far", NULL);
	struct ips_recording *recording;
	struct ips_track *tracks[MANY];
	struct prof_place place;

	(void)state;
	prof_place_make(&place);
	mem_set_functions(&counting);
	recording = start(&place, 1);
	for (int t = 0; t < MANY; t++)
		tracks[t] = ips_track_open_foreign(recording, "many", &params, 1, t);
	for (int64_t i = 0; i < ROUNDS; i++)
		for (int t = 0; t < MANY; t++) {
			ips_span_at(tracks[t], site, i * 1000000000, 10);
			ips_counter_at(tracks[t], site, i * 1000000000, (double)i);
		}
	for (int64_t d = 0; d < DEPTH; d++)
		for (int t = 0; t < MANY; t++)
			ips_span_at(tracks[t], site, ROUNDS * INT64_C(1000000000) + d,
				    1000 - 2 * d);
	prof_stop(recording);
	mem_set_functions(NULL);
	print_message("%zu MB\n", most_used / 1000000);
	assert_true(most_used < 90000000);
	assert_int_equal(prof_ask(place.path, "SELECT count(*) FROM spans"),
			 MANY * (ROUNDS + DEPTH));
	prof_place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_rows_are_those_of_any_recording),
		cmocka_unit_test(test_two_recordings_have_the_same_rows),
		cmocka_unit_test(test_texts_have_their_numbers_whenever_the_writer_works),
		cmocka_unit_test(test_what_comes_late_finds_its_span),
		cmocka_unit_test(test_nothing_recorded_is_a_whole_file),
		cmocka_unit_test(test_far_spans_of_many_tracks_take_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
