/*
 * Databases that somebody damaged: whatever stands in the file, reading it ends with an answer or
 * an error, never with a crash or without an end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "profiler/prof_timeline.h"
#include "reports/summary/report_summary.h"
#include "reports/table/report_table.h"
#include "reports/named/report_tensors.h"
#include "support/support.h"
#include "support/view_fixture.h"

#define ROUNDS       150
#define PAGE         16384
#define ROWS_OF_VIEW 200

struct sample {
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	char *bytes, *damaged;
	size_t length;
	int opened, answered; /* of all reads: both have to happen for the test to mean anything */
};

static int make_sample(void **state)
{
	struct sample *sample = calloc(1, sizeof(*sample));

	assert_non_null(sample);
	support_tempdir(sample->folder);
	snprintf(sample->path, sizeof(sample->path), "%s/profile.db", sample->folder);
	assert_true(view_fixture_write(sample->path, 6));
	sample->bytes = support_read_file(sample->path, &sample->length);
	sample->damaged = malloc(sample->length);
	assert_non_null(sample->damaged);
	*state = sample;
	return 0;
}

static int remove_sample(void **state)
{
	struct sample *sample = *state;

	support_tempdir_remove(sample->folder);
	free(sample->bytes);
	free(sample->damaged);
	free(sample);
	return 0;
}

static void read_views(struct sample *sample, struct prof_db *db)
{
	size_t count;
	const char *const *names = prof_view_names(&count);
	struct err err;

	for (size_t i = 0; i < count; i++) {
		struct report_table table;

		if (report_table_view(&table, db, names[i], ROWS_OF_VIEW, &err) == ST_OK) {
			sample->answered++;
			report_table_free(&table);
		}
	}
}

static void read_timeline(struct sample *sample, struct prof_db *db)
{
	struct prof_track *tracks;
	struct arena arena;
	struct err err;
	int count;

	assert_int_equal(arena_init(&arena, 0), 0);
	if (prof_timeline_tracks(db, &arena, &tracks, &count, &err) == ST_OK) {
		for (int i = 0; i < count && i < 8; i++) {
			struct prof_bar *bars;
			struct prof_span span;
			int64_t span_id;
			int bar_count;

			if (prof_timeline_bars(db, tracks[i].track_id, 0, 1000000000, 100,
					       1000000000, &arena, &bars, &bar_count,
					       &err) == ST_OK)
				sample->answered++;
			if (prof_timeline_at(db, tracks[i].track_id, 1000000, 3, &span_id, &err) ==
				    ST_OK &&
			    span_id != INT64_MIN)
				(void)prof_timeline_span(db, span_id, &arena, &span, &err);
			(void)prof_timeline_find(db, tracks[i].track_id, -1, "stage", 0, true,
						 &span_id, &err);
		}
	}
	arena_fini(&arena);
}

static void read_reports(struct sample *sample, struct prof_db *db)
{
	struct report_summary summary;
	struct report_tensor_rows rows = {0};
	struct err err;

	memset(&summary, 0, sizeof(summary));
	if (report_summary_get(&summary, db, &err) == ST_OK) {
		FILE *nowhere = fopen("/dev/null", "w");

		assert_non_null(nowhere);
		sample->answered++;
		(void)report_summary_print(&summary, 80, nowhere, &err);
		fclose(nowhere);
		report_summary_free(&summary);
	}
	(void)report_tensor_rows_read(&rows, db, INT64_MIN, INT64_MIN, "std", 100, &err);
	(void)report_tensor_rows_read(&rows, db, 1, 0, "mean", 10000, &err);
	report_tensor_rows_free(&rows);
}

static void read_all(struct sample *sample)
{
	struct prof_db *db;
	struct err err;

	support_write_file(sample->path, sample->damaged, sample->length);
	if (prof_db_open(&db, sample->path, &err) != ST_OK) {
		assert_true(err.text[0] != '\0');
		return;
	}
	sample->opened++;
	read_views(sample, db);
	read_timeline(sample, db);
	read_reports(sample, db);
	prof_db_close(db);
}

/* Most damage keeps away from the first page, or little more than the header would be tried. */
static void test_flipped_bytes_are_survived(void **state)
{
	const uint32_t rounds = support_rounds(ROUNDS);
	struct sample *sample = *state;

	for (uint32_t round = 0; round < rounds; round++) {
		const bool header = round % 10 == 0;
		struct rng rng;

		rng_init(&rng, 7, 1, round, 0);
		memcpy(sample->damaged, sample->bytes, sample->length);
		for (int i = 0; i < 1 + (int)rng_below(&rng, 40); i++) {
			const uint32_t size = (uint32_t)sample->length;
			const uint32_t at = header ? rng_below(&rng, PAGE)
						   : PAGE + rng_below(&rng, size - PAGE);

			sample->damaged[at] = (char)rng_u32(&rng);
		}
		read_all(sample);
	}
	assert_true(sample->opened > (int)rounds / 2);
	assert_true(sample->answered > (int)rounds * 10);
}

static void test_torn_files_are_survived(void **state)
{
	struct sample *sample = *state;
	const size_t whole = sample->length;

	memcpy(sample->damaged, sample->bytes, whole);
	for (size_t length = 0; length < whole; length += length < 200 ? 17 : whole / 37) {
		sample->length = length;
		read_all(sample);
	}
	sample->length = whole;
}

/* Numbers no writer writes: cycles of parents, absurd depths and times. */
static void test_absurd_rows_are_survived(void **state)
{
	static const char *const damages[] = {
		"UPDATE span_rows SET parent_back = 0",
		"UPDATE span_rows SET parent_back = -1",
		"UPDATE span_rows SET parent_back = 9223372036854775807",
		"UPDATE span_rows SET depth = 1000000000",
		"UPDATE span_rows SET depth = -5",
		"UPDATE span_rows SET start_ns = -9223372036854775807, dur_ns = "
		"9223372036854775807",
		"UPDATE span_rows SET dur_ns = -1",
		"UPDATE span_rows SET start_ns = 'x', dur_ns = x'00'",
		"UPDATE zones SET first_row = -9223372036854775807, last_row = 9223372036854775807",
		"UPDATE OR REPLACE span_levels SET bucket = 9223372036854775807 - bucket, busy_ns "
		"= -1",
		"UPDATE span_levels SET depth = depth + 1000000",
		"UPDATE sites SET site_id = -1 - site_id",
		"UPDATE sites SET site_id = 9223372036854775807 - site_id",
		"UPDATE track_rows SET name = cast(x'ff1b5b324aff' AS TEXT)",
		"UPDATE strings SET value = cast(x'1b5d30073b07c3' AS TEXT)",
		"UPDATE tensor_stat_rows SET mean = 9e999, std = -9e999, n = -1",
		"UPDATE tensor_rows SET shape = NULL, key = NULL, queue = NULL",
		"UPDATE stage_timing_rows SET context_id = -1, dur_ns = 9223372036854775807",
		"UPDATE bubble_rows SET idle_fraction = 'nan', makespan_ns = 0",
		"DELETE FROM strings",
		"DELETE FROM contexts",
		"DELETE FROM meta_facts",
		"DELETE FROM zones",
		"DROP VIEW spans",
		"DROP TABLE span_rows",
	};
	struct sample *sample = *state;
	const size_t whole = sample->length;

	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		struct support_result result;
		char *saved = sample->damaged;

		support_write_file(sample->path, sample->bytes, whole);
		support_shell(&result, "sqlite3 -bail '%s' \"%s\"", sample->path, damages[i]);
		if (result.exit_code != 0)
			fail_msg("%s: %s", damages[i], result.err);
		support_result_free(&result);
		sample->damaged = support_read_file(sample->path, &sample->length);
		read_all(sample);
		free(sample->damaged);
		sample->damaged = saved;
	}
	sample->length = whole;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flipped_bytes_are_survived),
		cmocka_unit_test(test_torn_files_are_survived),
		cmocka_unit_test(test_absurd_rows_are_survived),
	};

	return cmocka_run_group_tests(tests, make_sample, remove_sample);
}
