/*
 * Lanes that are hidden, and what the timeline says where it has no room or not all rows.
 */
#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_runs.h"
#include "support/view_rig.h"
#include "viewer/timeline/view_timeline_internal.h"

static bool write_usual(const char *path, const void *params)
{
	return view_fixture_write(path, *(const int *)params);
}

static int setup(void **state)
{
	static const int usual = 0;

	return view_rig_setup_with(state, write_usual, &usual, NULL, "7");
}

static int setup_pair(void **state)
{
	static const int usual = 0, few = 12;
	const int failed = view_rig_setup_with(state, write_usual, &usual, &few, "7");

	if (!failed)
		view_rig_size(*state, 120, 44);
	return failed;
}

/* More spans than a table has rows. */
static bool write_many(const char *path, const void *params)
{
	static const struct view_runs_execution plan[] = {{true, true, 1, 10000}};

	(void)params;
	return view_fixture_runs_write(path, plan, ARRAY_LEN(plan));
}

static int setup_many(void **state)
{
	return view_rig_setup_with(state, write_many, NULL, NULL, "70");
}

static struct view_timeline *timeline_of(struct view_rig *rig)
{
	return rig->session.state[VIEW_TIMELINE];
}

static const char *cursor_lane(struct view_rig *rig)
{
	return view__lane(timeline_of(rig))->track->name;
}

/* ---- hiding ---------------------------------------------------------------------------------- */

static void test_a_lane_is_hidden_and_shown_again(void **state)
{
	struct view_rig *rig = *state;
	const int all = timeline_of(rig)->lane_count;

	assert_string_equal(cursor_lane(rig), "IPU 0");
	view_rig_press(rig, "c");
	assert_shows(rig, "IPU 0 is hidden: E shows all lanes again");
	assert_string_equal(cursor_lane(rig), "IPU 1");
	assert_int_equal(timeline_of(rig)->lane_count, all - 1);
	view_rig_press(rig, ".");
	assert_shows(rig, "1 lane hidden, device ");
	assert_hides(rig, "IPU 0");
	view_rig_press(rig, "c.");
	assert_shows(rig, "2 lanes hidden, ");
	view_rig_press(rig, "E");
	assert_shows(rig, "all lanes are shown");
	assert_int_equal(timeline_of(rig)->lane_count, all);
	view_rig_press(rig, ".");
	assert_shows(rig, "IPU 0");
	assert_hides(rig, "hidden");
	view_rig_press(rig, "E");
	assert_shows(rig, "no lane is hidden");
}

static void test_one_lane_stays(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "C");
	assert_int_equal(timeline_of(rig)->lane_count, 1);
	assert_string_equal(cursor_lane(rig), "IPU 0");
	assert_shows(rig, "only this lane");
	view_rig_press(rig, "c");
	assert_shows(rig, "the only lane that is shown stays");
	assert_int_equal(timeline_of(rig)->lane_count, 1);
	/* Of the other IPUs there is nothing to show. */
	view_rig_press(rig, "iiivv");
	assert_string_equal(cursor_lane(rig), "IPU 0");
}

static void test_hidden_lanes_stay_hidden_over_news(void **state)
{
	struct view_rig *rig = *state;

	view_rig_press(rig, "c");
	for (int i = 0; i < 3; i++) {
		view_rig_press(rig, "r");
		assert_hides(rig, "IPU 0");
		assert_string_equal(cursor_lane(rig), "IPU 1");
	}
	/* A lane of the host, too; the cursor stays on its clock. */
	view_rig_press(rig, "Ejjjjjjjjjjjjjjcr");
	assert_string_equal(cursor_lane(rig), "worker 0");
	assert_hides(rig, "worker 1");
	assert_shows(rig, "IPU 0");
}

static void test_a_place_on_a_hidden_lane_brings_it_back(void **state)
{
	struct view_rig *rig = *state;
	struct view_timeline *tl = timeline_of(rig);
	struct view_place place;
	int64_t span;

	view_rig_press(rig, "]");
	span = tl->under.selected;
	assert_true(view_screen(VIEW_TIMELINE)->place(tl, &place));
	view_rig_press(rig, "c");
	assert_int_not_equal(tl->under.selected, span);
	assert_int_equal(view_screen(VIEW_TIMELINE)->go(tl, &rig->session.context, &place, NULL),
			 ST_OK);
	view_rig_press(rig, "r");
	assert_string_equal(cursor_lane(rig), "IPU 0");
	assert_int_equal(tl->under.selected, span);
}

static void test_rows_leave_hidden_lanes_out(void **state)
{
	struct view_rig *rig = *state;
	struct str text = {0}, sql = {0};
	char *end;

	view_rig_press(rig, "0c");
	view_screen(VIEW_TIMELINE)->query(timeline_of(rig), &rig->session.context, &text);
	end = strstr(str_peek(&text), ";\n");
	assert_non_null(end);
	*end = '\0';
	str_addf(&sql, "SELECT count(*) FROM (%s)", text.text);
	assert_int_equal(view_rig_sql_int(rig, str_peek(&sql)),
			 view_rig_sql_int(rig, "SELECT count(*) FROM spans WHERE clock = 'device' "
					       "AND track <> 'IPU 0'"));
	str_free(&text);
	str_free(&sql);
}

static void test_of_two_reports_the_lane_is_hidden_in_both(void **state)
{
	struct view_rig *rig = *state;

	assert_line_shows(rig, "S IPU 0");
	assert_line_shows(rig, "T IPU 0");
	view_rig_press(rig, "c.");
	assert_hides(rig, "IPU 0");
	assert_line_shows(rig, "S IPU 1");
	assert_line_shows(rig, "T IPU 1");
	view_rig_press(rig, "C.");
	assert_int_equal(timeline_of(rig)->target->lane_count, 1);
	view_rig_press(rig, "E.");
	assert_line_shows(rig, "T IPU 0");
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void test_sums_without_room_say_so(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 80, VIEW_SUMS_FROM + 3);
	view_rig_press(rig, "bb.");
	assert_shows(rig, "by name: IPU 0");
	assert_hides(rig, "no room");
	view_rig_size(rig, 80, VIEW_SUMS_FROM + 1);
	assert_shows(rig, "no room for the sums by name: 2 more rows");
	view_rig_press(rig, "bbb");
	assert_shows(rig, "no room for the sums by name: 2 more rows");
	view_rig_press(rig, "b.");
	assert_hides(rig, "no room");
}

static void test_sums_of_two_reports_without_room_say_so(void **state)
{
	struct view_rig *rig = *state;

	view_rig_size(rig, 80, VIEW_SUMS_FROM_TWO + 3);
	view_rig_press(rig, "bb.");
	assert_shows(rig, "by name: IPU 0");
	view_rig_size(rig, 80, VIEW_SUMS_FROM_TWO + 2);
	assert_hides(rig, "by name: IPU 0");
	assert_shows(rig, "no room for the sums by name: 1 more row");
}

static void test_a_file_that_has_not_all_rows_is_said_to(void **state)
{
	struct view_rig *rig = *state;
	char path[FS_PATH_SIZE];

	assert_true(view_rig_sql_int(rig, "SELECT count(*) FROM spans") > 100000);
	view_rig_size(rig, 200, 24);
	for (int cut = 1; cut >= 0; cut--) {
		assert_true(fs_path(path, "%s/rows%d.csv", rig->folder, cut));
		view_rig_press(rig, cut ? "0W" : "++++++W");
		view_rig_key(rig, VIEW_CTRL('U'));
		view_rig_press(rig, path);
		view_rig_key(rig, VIEW_KEY_ENTER);
		assert_shows(rig, "written: ");
		if (cut)
			assert_shows(rig, ".csv (there are more rows: zoom in");
		else
			assert_hides(rig, "there are more rows");
	}
}

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, view_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_a_lane_is_hidden_and_shown_again, setup),
		WITH(test_one_lane_stays, setup),
		WITH(test_hidden_lanes_stay_hidden_over_news, setup),
		WITH(test_a_place_on_a_hidden_lane_brings_it_back, setup),
		WITH(test_rows_leave_hidden_lanes_out, setup),
		WITH(test_of_two_reports_the_lane_is_hidden_in_both, setup_pair),
		WITH(test_sums_without_room_say_so, setup),
		WITH(test_sums_of_two_reports_without_room_say_so, setup_pair),
		WITH(test_a_file_that_has_not_all_rows_is_said_to, setup_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
