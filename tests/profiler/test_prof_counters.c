/*
 * Samples of counters by range against a naive scan: two series on one track and one on another, as
 * rows and as buckets.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <string.h>

#include "common/arena.h"
#include "common/rng.h"
#include "profiler/prof_levels.h"
#include "profiler/prof_timeline.h"

#define SAMPLES 4000
#define COLUMNS 50
#define BUCKET  ((int64_t)1 << PROF_LEVEL_SHIFT) /* ns of the finest buckets */

struct sample { /* the first of each series come in their order */
	int series;
	int64_t time_ns;
	double value; /* a whole number, so that sums are exact */
};

struct recorded {
	struct prof_db *db;
	struct arena arena;
	struct prof_counter *counters;
	struct sample samples[SAMPLES];
};

IPS_SITE(memory, "counter", "memory");
IPS_SITE(power, "counter", "power");

static void setup_recorded(struct recorded *r, struct prof_place *place)
{
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *tracks[] = {ips_track_open(recording, "GPU 0", NULL),
				      ips_track_open(recording, "GPU 1", NULL)};
	struct rng rng;
	int64_t time_ns = 5 * BUCKET;
	int count;

	rng_init(&rng, 3, 0, 0, 0);
	for (int i = 0; i < SAMPLES; i++) {
		struct sample *sample = &r->samples[i];
		const int64_t most = rng_below(&rng, 100) == 0 ? 20 * BUCKET : BUCKET / 8;

		*sample = (struct sample){i < 3 ? i : (int)rng_below(&rng, 3), time_ns,
					  (double)rng_below(&rng, 1000)};
		ips_counter_at(tracks[sample->series / 2], sample->series == 1 ? &power : &memory,
			       sample->time_ns, sample->value);
		if (rng_below(&rng, 400) == 0)
			ips_recording_flush(recording); /* zones of a track are those of commits */
		time_ns += rng_below(&rng, (uint32_t)most);
	}
	prof_stop(recording);
	assert_int_equal(arena_init(&r->arena, 0), 0);
	assert_int_equal(prof_db_open(&r->db, place->path, NULL), ST_OK);
	assert_int_equal(prof_timeline_counters(r->db, 10, &r->arena, &r->counters, &count, NULL),
			 ST_OK);
	assert_int_equal(count, 3);
}

static void teardown_recorded(struct recorded *r)
{
	prof_db_close(r->db);
	arena_fini(&r->arena);
}

/* What the samples of series @which in [@from, @to) are, one at a time. */
static struct prof_samples_cell naive_cell(const struct recorded *r, int which, int64_t from,
					   int64_t to)
{
	struct prof_samples_cell cell = {0};

	for (int i = 0; i < SAMPLES; i++) {
		const struct sample *sample = &r->samples[i];

		if (sample->series != which || sample->time_ns < from || sample->time_ns >= to)
			continue;
		cell.least = cell.count == 0 ? sample->value : fmin(cell.least, sample->value);
		cell.greatest = fmax(cell.greatest, sample->value);
		cell.total += sample->value;
		cell.last = sample->value;
		cell.last_ns = sample->time_ns;
		cell.count++;
	}
	return cell;
}

/* Cells of @width ns from @from: whole buckets, or narrower than the finest. */
static void check_window(const struct recorded *r, int64_t from, int64_t width)
{
	for (int which = 0; which < 3; which++) {
		struct prof_samples_cell cells[COLUMNS];

		assert_int_equal(prof_timeline_samples(r->db, &r->counters[which], from,
						       from + COLUMNS * width, COLUMNS, cells,
						       NULL),
				 ST_OK);
		for (int i = 0; i < COLUMNS; i++) {
			const struct prof_samples_cell wanted =
				naive_cell(r, which, from + i * width, from + (i + 1) * width);

			assert_int_equal(cells[i].count, wanted.count);
			if (wanted.count == 0)
				continue;
			assert_true(cells[i].least == wanted.least);
			assert_true(cells[i].greatest == wanted.greatest);
			assert_true(cells[i].total == wanted.total);
			if (width >= BUCKET)
				continue; /* the last of a bucket is not known */
			assert_true(cells[i].last == wanted.last);
			assert_int_equal(cells[i].last_ns, wanted.last_ns);
		}
	}
}

static void test_series_are_told_apart_by_track_and_name(void **state)
{
	struct recorded r;
	int count;

	setup_recorded(&r, *state);
	assert_string_equal(r.counters[0].track, "GPU 0");
	assert_string_equal(r.counters[1].track, "GPU 0");
	assert_string_equal(r.counters[2].track, "GPU 1");
	assert_string_equal(r.counters[0].name, "memory");
	assert_string_equal(r.counters[1].name, "power");
	assert_string_equal(r.counters[2].name, "memory");
	assert_int_equal(prof_timeline_counters(r.db, 2, &r.arena, &r.counters, &count, NULL),
			 ST_OK);
	assert_int_equal(count, 2);
	teardown_recorded(&r);
}

static void test_cells_have_what_a_scan_finds(void **state)
{
	struct recorded r;

	setup_recorded(&r, *state);
	for (int64_t from = 0; from < r.samples[SAMPLES - 1].time_ns; from += 61 * BUCKET) {
		check_window(&r, from + 1234, BUCKET / 7);
		check_window(&r, from, BUCKET - 1);
		check_window(&r, from / BUCKET * BUCKET, BUCKET);
		check_window(&r, from / (4 * BUCKET) * (4 * BUCKET), 4 * BUCKET);
	}
	teardown_recorded(&r);
}

static void test_the_last_sample_at_a_time(void **state)
{
	struct recorded r;
	const int64_t end = 2 * BUCKET;

	setup_recorded(&r, *state);
	for (int64_t time_ns = 0; time_ns < r.samples[SAMPLES - 1].time_ns + end;
	     time_ns += BUCKET / 3) {
		for (int which = 0; which < 3; which++) {
			const struct prof_samples_cell wanted =
				naive_cell(&r, which, 0, time_ns + 1);
			struct prof_samples_cell found;

			assert_int_equal(prof_timeline_sample_at(r.db, &r.counters[which], time_ns,
								 &found, NULL),
					 ST_OK);
			assert_int_equal(found.count > 0, wanted.count > 0);
			if (wanted.count == 0)
				continue;
			assert_true(found.last == wanted.last);
			assert_int_equal(found.last_ns, wanted.last_ns);
		}
	}
	teardown_recorded(&r);
}

/* A damaged file may lack what samples are found by: that is an error, and there are none. */
static void test_without_zones_there_is_an_error(void **state)
{
	const struct prof_place *place = *state;
	struct prof_samples_cell cells[COLUMNS];
	struct err err = {ST_OK, ""};
	struct recorded r;

	setup_recorded(&r, *state);
	prof_db_close(r.db);
	prof_change(place->path, "DROP TABLE zones");
	assert_int_equal(prof_db_open(&r.db, place->path, NULL), ST_OK);
	assert_int_not_equal(prof_timeline_samples(r.db, &r.counters[0], 5 * BUCKET, 6 * BUCKET,
						   COLUMNS, cells, &err),
			     ST_OK);
	assert_contains(err.text, "zones");
	for (int i = 0; i < COLUMNS; i++)
		assert_int_equal(cells[i].count, 0);
	teardown_recorded(&r);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, prof_place_setup, prof_place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_series_are_told_apart_by_track_and_name),
		CASE(test_cells_have_what_a_scan_finds),
		CASE(test_the_last_sample_at_a_time),
		CASE(test_without_zones_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
