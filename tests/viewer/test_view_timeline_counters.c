/*
 * Counters under the timeline's lanes, against what SQL says.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_levels.h"
#include "support/view_fixture.h"
#include "support/view_fixture_counters.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

#define SAMPLES 60000
#define MOST    12

static bool write_counters(const char *path, const void *params)
{
	const double *most = params;

	return view_fixture_counters_write(path, SAMPLES, *most);
}

static int setup(void **state)
{
	static const double most = MOST;
	const int failed = view_rig_setup_with(state, write_counters, &most, NULL, "70");

	if (!failed)
		view_rig_size(*state, 120, 36);
	return failed;
}

static int setup_pair(void **state)
{
	static const double most = MOST, other = 5 * MOST;
	const int failed = view_rig_setup_with(state, write_counters, &most, &other, "70");

	if (!failed)
		view_rig_size(*state, 120, 44);
	return failed;
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Of the counter main's samples in the first window and the buckets that it cuts. */
static double main_number(struct view_rig *rig, const char *what)
{
	const struct view_timeline *tl = timeline_of(rig);
	const struct view_window at = tl->clock[0].window;
	const int level = prof_timeline_level(at.to - at.from, 2 * tl->width);
	const int64_t bucket = level < 0 ? 1 : INT64_C(1) << prof_level_shift(level);
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "SELECT %s FROM counters WHERE track = 'main' AND time_ns >= %lld AND time_ns < "
		 "%lld",
		 what, (long long)(at.from / bucket * bucket),
		 (long long)((at.to + bucket - 1) / bucket * bucket));
	return view_rig_sql_real(rig, sql);
}

/* The points of the first strip have the least and greatest that SQL finds; single samples have a
 * point before the first: what was before the window. */
static void check_extremes(struct view_rig *rig, bool single)
{
	const struct view_timeline *tl = timeline_of(rig);
	const struct view_strip *strip = &tl->counters.strips[0];
	double least = INFINITY, greatest = -INFINITY;

	assert_true(tl->counters.strip_count > 0);
	for (int i = 0; i < 2 * tl->width; i++) {
		least = fmin(least, strip->points[i].least);
		greatest = fmax(greatest, strip->points[i].greatest);
		assert_true(strip->points[i].least <= strip->points[i].value &&
			    strip->points[i].value <= strip->points[i].greatest);
	}
	assert_int_equal(prof_timeline_level(tl->clock[0].window.to - tl->clock[0].window.from,
					     2 * tl->width) < 0,
			 single);
	assert_true(fabs(greatest - main_number(rig, "max(value)")) <= single);
	assert_true(fabs(least - main_number(rig, "min(value)")) <= single);
}

static void test_least_and_greatest_are_those_of_sql(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "p");
	check_extremes(rig, false);
	assert_shows(rig, "main queue de");
	assert_shows(rig, "0 to 12");
	/* A spike is one of a thousand samples: of a cell with 250 it must not be lost. */
	for (int i = 0; i < 4; i++) {
		view_rig_press(rig, "+");
		check_extremes(rig, false);
	}
	/* Single samples. */
	for (int i = 0; i < 5; i++)
		view_rig_press(rig, "++");
	check_extremes(rig, true);
}

static void test_the_mean_of_cells_is_that_of_sql(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char sql[256];

	view_rig_press(rig, "p");
	for (int i = 0; i < 2 * tl->width; i += 37) {
		const struct view_window all = tl->clock[0].window;
		const double cell = (double)(all.to - all.from) / (2 * tl->width);
		const double from = (double)all.from + cell * i;
		double mean;

		/* Buckets lie across the edges of cells. */
		snprintf(sql, sizeof(sql),
			 "SELECT avg(value) FROM counters WHERE track = 'main' AND name = 'queue "
			 "depth' AND time_ns BETWEEN %.0f AND %.0f",
			 from - cell / 4, from + cell * 5 / 4);
		mean = view_rig_sql_real(rig, sql);
		assert_true(fabs(mean - tl->counters.strips[0].points[i].value) < 0.35);
	}
}

static void test_the_value_is_the_last_until_the_cursor(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	char sql[256];

	view_rig_press(rig, "p");
	assert_int_equal(tl->counters.strip_count, 3);
	for (int i = 0; i < 40; i++) {
		view_rig_press(rig, i % 4 == 0 ? "+" : "l.");
		for (int s = 0; s < 3; s++) {
			const struct prof_counter *counter = tl->counters.strips[s].counter;
			const double value = tl->counters.strips[s].at_cursor;

			snprintf(sql, sizeof(sql),
				 "SELECT coalesce((SELECT value FROM counters WHERE track = '%s' "
				 "AND time_ns <= %lld ORDER BY time_ns DESC LIMIT 1), -1)",
				 counter->track, (long long)tl->cursor.ns);
			assert_true(view_rig_sql_real(rig, sql) == (isnan(value) ? -1 : value));
		}
	}
}

/* Between its four samples the rare counter has the value of the one before. */
static void test_a_counter_keeps_its_value_until_the_next(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);
	const struct view_strip *rare;

	view_rig_press(rig, "p");
	rare = &tl->counters.strips[2];
	assert_string_equal(rare->counter->name, "pool bytes");
	assert_true(isnan(rare->points[0].value));
	for (int i = 1; i < VIEW_COUNTERS_RARE; i++)
		assert_true(rare->points[tl->width * i / 2].value == (i - 1) * 1048576.0);
	view_rig_press(rig, "G");
	assert_line_shows(rig, "pool bytes", "3 MB");
	/* Of a window without a sample, too. */
	view_rig_press(rig, "++++");
	assert_true(tl->counters.strips[2].points[0].value == 3 * 1048576.0);
	assert_true(tl->counters.strips[2].flat);
}

static void test_the_statement_gives_the_samples_of_the_window(void **state)
{
	struct view_rig *rig = *state;
	struct str text = {0}, sql = {0};
	char *begin, *end;

	view_rig_press(rig, "p++++++++++++++++");
	view_screen(VIEW_TIMELINE)->query(timeline_of(rig), &rig->session.context, &text);
	begin = strstr(str_peek(&text), "SELECT time_ns, value FROM counters");
	assert_non_null(begin);
	end = strstr(begin, ";\n");
	assert_non_null(end);
	*end = '\0';
	str_addf(&sql, "SELECT count(*) FROM (%s)", begin);
	assert_true(view_rig_sql_real(rig, str_peek(&sql)) > 0);
	assert_true(view_rig_sql_real(rig, str_peek(&sql)) == main_number(rig, "count(*)"));
	str_free(&text);
	str_free(&sql);
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void test_counters_are_there_when_asked_for(void **state)
{
	struct view_rig *rig = *state;
	char *before = view_rig_text(&rig->session), *after;

	assert_hides(rig, "queue");
	view_rig_press(rig, "p");
	assert_shows(rig, "main queue de");
	assert_shows(rig, "loader queue");
	assert_shows(rig, "pool bytes");
	view_rig_press(rig, "r");
	assert_shows(rig, "pool bytes");
	view_rig_press(rig, "pr");
	after = view_rig_text(&rig->session);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_where_there_is_room_for_few_the_next_ones_follow(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 80, 10);
	view_rig_press(rig, "p");
	assert_shows(rig, "main queue");
	assert_hides(rig, "pool bytes");
	assert_shows(rig, "counters 1 to 2 of 3: p shows the next");
	view_rig_press(rig, "p");
	assert_shows(rig, "counters 3 to 3 of 3");
	assert_hides(rig, "main queue");
	assert_shows(rig, "pool bytes");
	view_rig_press(rig, "p");
	assert_hides(rig, "pool bytes");
	assert_shows(rig, "no counters");
}

static void test_ascii_shows_heights(void **state)
{
	struct view_rig *rig = *state;
	char *text;

	rig->session.canvas.ascii = true;
	view_rig_press(rig, "p");
	text = view_rig_text(&rig->session);
	for (const char *at = text; *at; at++)
		assert_true((unsigned char)*at < 127);
	free(text);
	assert_line_shows(rig, "main queue de", "#");
}

static void test_two_reports_have_the_same_scale(void **state)
{
	struct view_rig *rig = *state;
	const struct view_timeline *tl = timeline_of(rig);

	view_rig_press(rig, "p");
	assert_line_shows(rig, "S main queue");
	assert_line_shows(rig, "T main queue");
	assert_true(tl->counters.strips[0].high == 5 * MOST);
	assert_true(tl->target->counters.strips[0].high == 5 * MOST);
	assert_true(tl->counters.strips[0].low == tl->target->counters.strips[0].low);
}

static void test_without_counters_that_is_said(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "7p");
	assert_shows(rig, "no counters were recorded");
	view_rig_press(rig, ".");
	assert_hides(rig, "no counters");
}

static void press_counters(struct view_rig *rig)
{
	view_rig_press(rig, "70p+l-vvvvbp");
}

static void test_any_size_shows_them(void **state)
{
	view_rig_each_look(*state, press_counters);
}

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_least_and_greatest_are_those_of_sql, setup),
		WITH(test_the_mean_of_cells_is_that_of_sql, setup),
		WITH(test_the_value_is_the_last_until_the_cursor, setup),
		WITH(test_a_counter_keeps_its_value_until_the_next, setup),
		WITH(test_the_statement_gives_the_samples_of_the_window, setup),
		WITH(test_counters_are_there_when_asked_for, setup),
		WITH(test_where_there_is_room_for_few_the_next_ones_follow, setup),
		WITH(test_ascii_shows_heights, setup),
		WITH(test_two_reports_have_the_same_scale, setup_pair),
		WITH(test_without_counters_that_is_said, view_rig_setup),
		WITH(test_any_size_shows_them, setup),
		WITH(test_any_size_shows_them, setup_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
