/*
 * The screen Health: what it shows is what SQL says, however many hits there are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "common/str.h"
#include "support/prof_testing.h"
#include "support/view_fixture_tensors.h"
#include "support/view_rig.h"
#include "viewer/health/view_health_internal.h"

#define MANY 20011

static bool write_tensors(const char *path, const void *params)
{
	return view_fixture_tensors_write(path, params);
}

static int setup_with(void **state, int hits, int other)
{
	const struct view_fixture_tensors params = {.steps = 20, .hits = hits, .scale = 1};
	const struct view_fixture_tensors more = {.steps = 20, .hits = other, .scale = 1};

	return view_rig_setup_with(state, write_tensors, &params, other ? &more : NULL, "H");
}

static int setup(void **state)
{
	return setup_with(state, 9, 0);
}

static int setup_many(void **state)
{
	return setup_with(state, MANY, 0);
}

static int setup_none(void **state)
{
	return setup_with(state, 0, 0);
}

static int setup_two(void **state)
{
	return setup_with(state, 9, 30);
}

static int setup_target_only(void **state)
{
	return setup_with(state, 0, 9);
}

static struct view_health *screen_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_HEALTH];
}

static double strip_sum(const struct view_health_strip *strip)
{
	double sum = 0;

	for (int i = 0; i < VIEW_HEALTH_BUCKETS; i++)
		sum += strip->bucket[i];
	return sum;
}

static void test_rules_have_their_hits_the_most_first(void **state)
{
	struct view_rig *rig = *state;
	const struct view_grid *grid = &screen_of(rig)->grid;

	assert_int_equal(grid->count, 3);
	assert_string_equal(view_grid_cell(grid, "rule")->text, "nonfinite");
	assert_int_equal(view_grid_cell(grid, "hits")->integer,
			 view_rig_sql_int(rig, "SELECT hits FROM health_sums WHERE rule = "
					       "'nonfinite'"));
	assert_shows(rig, "more NaN or infinite values than the threshold");
	assert_shows(rig, "overfit");
	assert_shows(rig, "9 hits over time");
	assert_int_equal((int64_t)strip_sum(&screen_of(rig)->source), 9);
}

/* The time at which the strip ends stands at its end, where there is room for it. */
static void test_the_strip_says_when_it_ends(void **state)
{
	struct view_rig *rig = *state;
	const struct view_canvas *canvas = &rig->session.canvas;
	const struct view_health *screen = screen_of(rig);
	int shown = 0, missing = 0;
	char until[FMT_SIZE], said[64];

	snprintf(said, sizeof(said), "%d and %d hits over time", (int)strip_sum(&screen->source),
		 (int)strip_sum(&screen->target));
	fmt_ns(until, max(screen->source.until_ns, screen->target.until_ns));
	for (int width = 24; width <= 120; width++) {
		const int length = (int)strlen(until), end = width - 1;
		const bool fits = 12 + (int)strlen(said) + length < width;

		view_rig_size(rig, width, 24);
		for (int y = 0; y < canvas->height; y++) {
			const struct view_cell *row = &canvas->cells[y * width];
			char cells[128];

			for (int x = 0; x < width; x++)
				cells[x] = row[x].character < 128 ? (char)row[x].character : '?';
			cells[width] = '\0';
			if (strncmp(cells + 8, said, strlen(said)) != 0)
				continue;
			assert_true((strncmp(cells + end - length, until, (size_t)length) == 0) ==
				    fits);
			assert_true((strstr(cells, until) != NULL) == fits);
			assert_int_equal(cells[end], ' ');
			shown += fits;
			missing += !fits;
		}
	}
	assert_true(shown > 10 && missing > 0);
}

static void test_it_says_where_bad_numbers_began_and_what_led_there(void **state)
{
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);

	assert_shows(rig, "Bad numbers began with nan in it's");
	assert_contains(screen->origin, "element 4, phase F (forward), step 7, update 3, epoch 1");
	view_rig_press(rig, "V");
	assert_int_equal(screen->way, VIEW_HEALTH_ORIGIN);
	assert_int_equal(screen->grid.count, 3);
	/* The cursor is where it began. */
	assert_string_equal(view_grid_cell(&screen->grid, "role")->text, "bad");
	assert_shows(rig, "Dense_0/kernel:0_grad");
	assert_shows(rig, "weight");
	view_rig_press(rig, "g");
	assert_int_equal(view_grid_cell(&screen->grid, "position")->integer, -2);
}

/* A weight that had infinities before is where they began; and the insight leads to the trail. */
static int setup_earlier(void **state)
{
	const struct view_fixture_tensors params = {.steps = 20, .hits = 9, .scale = 1};
	struct view_rig *rig = view_rig_new(state);

	if (!write_tensors(rig->path, &params))
		return -1;
	prof_change(rig->path, "UPDATE nonfinite_trail_rows SET n_nan = 0, n_pos_inf = 5, "
			       "n_neg_inf = 0 WHERE position = -2");
	view_rig_start(rig, false, 120, 40, "2");
	return 0;
}

static void test_bad_numbers_began_with_the_earliest_that_is_known(void **state)
{
	struct view_rig *rig = *state;
	const struct view_health *screen;
	char *key = view_rig_sql_text(rig, "SELECT key FROM nonfinite_trail WHERE position = -2");

	view_rig_press(rig, "/first_nonf\r");
	assert_shows(rig, key);
	/* The trail is the first of the places that it leads to. */
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_shows(rig, "where bad numbers began");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(rig->session.screen, VIEW_HEALTH);
	screen = screen_of(rig);
	assert_int_equal(screen->way, VIEW_HEALTH_ORIGIN);
	assert_contains(screen->origin, "Bad numbers began with inf in ");
	assert_contains(screen->origin, key);
	assert_shows(rig, "Bad numbers began with inf in ");
	free(key);
}

static void test_a_rule_leads_to_its_hits_and_those_to_their_moment(void **state)
{
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);
	struct view_place place;

	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(screen->way, VIEW_HEALTH_HITS);
	assert_int_equal(screen->grid.count,
			 view_rig_sql_int(rig, "SELECT count(*) FROM health WHERE rule = "
					       "'nonfinite'"));
	assert_true(view_health_ops.place(screen, &place));
	assert_string_equal(place.rule, "nonfinite");
	assert_string_equal(place.layer, "odd");
	assert_string_equal(place.queue, "activations");
	assert_string_equal(place.phase, "B");
	assert_string_equal(place.clock, "host");
	assert_int_equal(place.step, 7);
	assert_int_equal(place.time_ns, 7000000);
}

static void test_hits_are_read_a_page_at_a_time(void **state)
{
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);

	view_rig_press(rig, "1");
	assert_hides(rig, "none broken");
	view_rig_press(rig, "H");
	view_rig_press(rig, "v");
	assert_string_not_equal(rig->session.words[VIEW_ENTER_REQUEST], "");
	assert_int_equal(screen->grid.table.row_count, VIEW_HEALTH_PAGE);
	assert_shows(rig, "hits 1 to 2,000 of 20,011");
	screen->grid.at = VIEW_HEALTH_PAGE - 1;
	view_rig_press(rig, "j");
	assert_shows(rig, "hits 2,001 to 4,000 of 20,011");
	assert_int_equal(screen->grid.at, 0);
	view_rig_press(rig, "k");
	assert_shows(rig, "hits 1 to 2,000 of 20,011");
	view_rig_press(rig, "G");
	assert_shows(rig, "hits 18,012 to 20,011 of 20,011");
	assert_int_equal(view_grid_cell(&screen->grid, "at_ns")->integer,
			 view_rig_sql_int(rig, "SELECT max(time_ns) FROM health"));
	view_rig_press(rig, "g");
	assert_shows(rig, "hits 1 to 2,000 of 20,011");
}

/* A damaged file's last hit may have the greatest number there is. */
static int setup_far(void **state)
{
	const struct view_fixture_tensors params = {.steps = 20, .hits = 9, .scale = 1};
	struct view_rig *rig = view_rig_new(state);

	if (!write_tensors(rig->path, &params))
		return -1;
	prof_change(rig->path, "UPDATE health_rows SET row_id = 9223372036854775807 "
			       "WHERE row_id = (SELECT max(row_id) FROM health_rows)");
	view_rig_start(rig, false, 120, 40, "H");
	return 0;
}

static void test_the_hit_with_the_greatest_number_is_on_the_last_page(void **state)
{
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);

	view_rig_press(rig, "vG");
	assert_int_equal(screen->way, VIEW_HEALTH_HITS);
	assert_int_equal(screen->page, INT64_MAX - VIEW_HEALTH_PAGE + 1);
	assert_int_equal(screen->grid.table.row_count, 1);
	assert_int_equal(view_grid_cell(&screen->grid, "at_ns")->integer,
			 view_rig_sql_int(rig, "SELECT max(time_ns) FROM health"));
}

static void test_what_is_estimated_is_said_and_near(void **state)
{
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);
	int64_t hits;

	assert_shows(rig, "by one in 3");
	assert_int_equal(screen->source.every, 3);
	assert_true(strip_sum(&screen->source) >= MANY);
	assert_true(strip_sum(&screen->source) < MANY + 3);
	view_rig_press(rig, "vv");
	assert_shows(rig, "estimated from one hit in 3");
	hits = view_grid_cell(&screen->grid, "hits")->integer;
	assert_true(hits > 0);
}

static void test_hits_are_broken_down(void **state)
{
	static const char *const columns[] = {"layer", "key", "stage", "phase", "epoch"};
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		char sql[160];

		view_rig_press(rig, "b");
		if (i == 0)
			assert_int_equal(screen->part, VIEW_HEALTH_BY_LAYER);
		assert_string_equal(screen->grid.table.columns[0].name, columns[screen->part]);
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM health GROUP BY %s ORDER BY 1 DESC LIMIT 1",
			 columns[screen->part]);
		assert_int_equal(view_grid_cell(&screen->grid, "hits")->integer,
				 view_rig_sql_int(rig, sql));
	}
}

static void test_it_goes_to_a_hit_a_rule_and_a_layer(void **state)
{
	struct view_rig *rig = *state;
	struct view_health *screen = screen_of(rig);
	struct view_place place;
	char text[128];

	view_place_clear(&place);
	assert_false(view_health_ops.offers(&place, text, sizeof(text)));
	view_place_text(place.layer, "odd");
	assert_true(view_health_ops.offers(&place, text, sizeof(text)));
	assert_int_equal(view_health_ops.go(screen, &rig->session.context, &place, NULL), ST_OK);
	assert_string_equal(view_grid_cell(&screen->grid, "layer")->text, "odd");
	view_place_text(place.rule, "exploding");
	assert_int_equal(view_health_ops.go(screen, &rig->session.context, &place, NULL), ST_OK);
	assert_string_equal(view_grid_cell(&screen->grid, "rule")->text, "exploding");
	place.time_ns = view_rig_sql_int(rig, "SELECT max(time_ns) FROM health");
	assert_int_equal(view_health_ops.go(screen, &rig->session.context, &place, NULL), ST_OK);
	assert_int_equal(view_grid_cell(&screen->grid, "at_ns")->integer, place.time_ns);
	view_place_text(place.rule, "nobody's");
	place.time_ns = IPS_NULL;
	assert_int_equal(view_health_ops.go(screen, &rig->session.context, &place, NULL),
			 ST_NOTFOUND);
}

static void test_a_healthy_run_says_so(void **state)
{
	struct view_rig *rig = *state;

	assert_shows(rig, "No rule has been broken.");
	assert_shows(rig, "No NaN and no Inf");
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_shows(rig, "has not been broken");
	view_rig_press(rig, "vvvv");
	view_rig_press(rig, "1");
	assert_shows(rig, "in force, none broken");
}

static void test_two_reports_have_their_hits_beside_each_other(void **state)
{
	struct view_rig *rig = *state;
	const struct view_grid *grid = &screen_of(rig)->grid;

	assert_int_equal(view_grid_cell(grid, "hits")->integer, 6);
	assert_int_equal(view_grid_cell(grid, "hits_target")->integer, 20);
	assert_int_equal(view_grid_cell(grid, "hits_diff")->integer, 14);
	assert_shows(rig, "Source");
	assert_shows(rig, "Target");
}

/* Its time, step and report are known of a hit that only the target has, and lead back to it. */
static void test_a_hit_that_only_the_target_has_is_the_targets(void **state)
{
	struct view_rig *rig = *state;
	const struct view_health *screen = screen_of(rig);
	struct view_place place, again;

	view_rig_press(rig, "vg");
	assert_int_equal(screen->way, VIEW_HEALTH_HITS);
	view_place_clear(&place);
	assert_true(view_health_ops.place(screen, &place));
	assert_int_equal(place.target_only, IPS_NULL);
	view_rig_press(rig, "G");
	assert_true(view_health_ops.place(screen, &place));
	assert_int_equal(place.target_only, 1);
	assert_int_equal(place.time_ns, view_grid_cell(&screen->grid, "at_ns_target")->integer);
	assert_true(place.step != IPS_NULL);
	view_rig_press(rig, "g");
	assert_int_equal(view_health_ops.go(rig->session.state[VIEW_HEALTH], &rig->session.context,
					    &place, NULL),
			 ST_OK);
	assert_true(view_health_ops.place(screen, &again));
	assert_true(view_place_same(&place, &again));
}

static void test_a_rule_that_only_the_target_broke_leads_to_its_hits(void **state)
{
	struct view_rig *rig = *state;
	const struct view_health *screen = screen_of(rig);

	view_rig_press(rig, "g");
	assert_int_equal(view_grid_cell(&screen->grid, "hits_target")->integer, 6);
	view_rig_key(rig, VIEW_KEY_ENTER);
	assert_int_equal(screen->way, VIEW_HEALTH_HITS);
	assert_int_equal(screen->grid.count, 6);
}

static void test_its_queries_run_as_they_are(void **state)
{
	struct view_rig *rig = *state;

	for (int way = 0; way < VIEW_HEALTH_WAY_COUNT; way++) {
		struct str sql = {0};
		struct prof_query *query;
		struct err err = {0};

		view_health_ops.query(screen_of(rig), &rig->session.context, &sql);
		assert_non_null(strstr(sql.text, ";\n"));
		*strstr(sql.text, ";\n") = '\0';
		if (prof_query_open(&query, rig->session.source.db, sql.text, &err) != ST_OK)
			fail_msg("%s: %s", sql.text, err.text);
		prof_query_close(query);
		str_free(&sql);
		view_rig_press(rig, "v");
	}
}

static void press_in_every_way(struct view_rig *rig)
{
	for (int way = 0; way < VIEW_HEALTH_WAY_COUNT; way++)
		view_rig_press(rig, "vjkhlgGb>I<D");
}

static void test_any_size_and_way_can_be_drawn(void **state)
{
	view_rig_each_look(*state, press_in_every_way);
}

static void test_every_key_does_something_or_says_why_not(void **state)
{
	view_rig_press_every_key(*state, VIEW_HEALTH);
}

static void test_failing_allocations_leave_it_usable(void **state)
{
	struct view_rig *rig = *state;

	for (int way = 0; way < VIEW_HEALTH_WAY_COUNT; way++) {
		for (long nth = 0; nth < 30; nth++) {
			support_fail_alloc(nth);
			view_rig_press(rig, "r");
			support_fail_alloc(-1);
		}
		view_rig_press(rig, "vr");
		assert_int_equal(rig->session.trouble.status, ST_OK);
	}
	assert_shows(rig, "9 hits over time");
}

int main(void)
{
#define CASE(name)      cmocka_unit_test_setup_teardown(name, setup, view_rig_teardown)
#define CASE_MANY(name) cmocka_unit_test_setup_teardown(name, setup_many, view_rig_teardown)
#define CASE_TWO(name)  cmocka_unit_test_setup_teardown(name, setup_two, view_rig_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_rules_have_their_hits_the_most_first),
		CASE_TWO(test_the_strip_says_when_it_ends),
		CASE(test_it_says_where_bad_numbers_began_and_what_led_there),
		CASE(test_a_rule_leads_to_its_hits_and_those_to_their_moment),
		CASE_MANY(test_hits_are_read_a_page_at_a_time),
		cmocka_unit_test_setup_teardown(
			test_the_hit_with_the_greatest_number_is_on_the_last_page, setup_far,
			view_rig_teardown),
		CASE_MANY(test_what_is_estimated_is_said_and_near),
		CASE(test_hits_are_broken_down),
		CASE(test_it_goes_to_a_hit_a_rule_and_a_layer),
		cmocka_unit_test_setup_teardown(
			test_bad_numbers_began_with_the_earliest_that_is_known, setup_earlier,
			view_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_healthy_run_says_so, setup_none,
						view_rig_teardown),
		CASE_TWO(test_two_reports_have_their_hits_beside_each_other),
		CASE_TWO(test_a_hit_that_only_the_target_has_is_the_targets),
		cmocka_unit_test_setup_teardown(
			test_a_rule_that_only_the_target_broke_leads_to_its_hits, setup_target_only,
			view_rig_teardown),
		CASE(test_its_queries_run_as_they_are),
		CASE(test_any_size_and_way_can_be_drawn),
		CASE_TWO(test_any_size_and_way_can_be_drawn),
		CASE(test_every_key_does_something_or_says_why_not),
		CASE(test_failing_allocations_leave_it_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
